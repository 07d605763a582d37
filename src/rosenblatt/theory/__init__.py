"""Theorems that run: they judge the learners, so nothing here imports a kernel.

The questions asked most often, and what answers them:

    Can a hyperplane separate the classes?            separability(X, y), true or false, with the proof
    How wide is the margin?                           gamma_origin, gamma_padded, gamma_affine: without, with, and with a
                                                      free intercept; margins(X, y, w, b) of a given hyperplane
    How far do the data reach?                        radius(X), radius(X, constant=1.0) with the constant feature
    How many updates can there be?                    bounds.novikoff(radius, margin), and `bounds` for every other theorem
    What does the proof look like on my data?         trace(X, y), drawn by rosenblatt.plot.proof
    What happens if nothing separates them?           find_cycle(X, y), cycles.lengths
    Which data are the hardest?                       hard.exponential, hard.orthogonal, hard.with_margin
    How many labellings can a hyperplane make?        dichotomies(points), cover(n, d) in general position
    How many operations does a function execute?      count_operations(f, ...), and how they grow: growth(f, sizes)
"""

from rosenblatt.counting import Growth, Operations, count_operations, growth
from rosenblatt.theory import bounds, cycles, hard
from rosenblatt.theory.cycles import find_cycle
from rosenblatt.theory.geometry import (
    Margin,
    NotSeparable,
    distance,
    gamma_affine,
    gamma_origin,
    gamma_padded,
    margins,
    projection,
    radius,
)
from rosenblatt.theory.labellings import cover, dichotomies
from rosenblatt.theory.separation import Inseparable, Separable, Undecided, separability
from rosenblatt.theory.tracing import Trace, trace

__all__ = [
    "Growth",
    "Inseparable",
    "Margin",
    "NotSeparable",
    "Operations",
    "Separable",
    "Trace",
    "Undecided",
    "bounds",
    "count_operations",
    "cover",
    "cycles",
    "dichotomies",
    "distance",
    "find_cycle",
    "gamma_affine",
    "gamma_origin",
    "gamma_padded",
    "growth",
    "hard",
    "margins",
    "projection",
    "radius",
    "separability",
    "trace",
]
