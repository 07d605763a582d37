"""Theorems that run: they judge the learners, so nothing here imports a kernel.

Here are the questions asked most often. `bounds` has a function for each theorem; `cycles`, `hard` and `dichotomies` are
about what happens without separability, in the worst case, and to the labellings of given points.
"""

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
from rosenblatt.theory.growth import Growth, growth
from rosenblatt.theory.operations import Operations, count_operations
from rosenblatt.theory.separability import Inseparable, Separable, Undecided, separability
from rosenblatt.theory.trace import Trace, trace

__all__ = [
    "Growth",
    "Inseparable",
    "Margin",
    "NotSeparable",
    "Operations",
    "Separable",
    "Trace",
    "Undecided",
    "count_operations",
    "distance",
    "gamma_affine",
    "gamma_origin",
    "gamma_padded",
    "growth",
    "margins",
    "projection",
    "radius",
    "separability",
    "trace",
]
