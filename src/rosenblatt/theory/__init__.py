"""Theorems about the perceptron as code: separability, margins, bounds, traces, cycles, hard instances. Nothing here
imports a kernel, so that it can test the learners. A name is imported when it is first used.

The questions asked most often, and what answers them:

    Can a hyperplane separate the classes?            separability(X, y), true or false, with the proof
    How wide is the margin?                           gamma_origin, gamma_padded, gamma_affine: without, with, and with a
                                                      free intercept; margins(X, y, w, b) of a given hyperplane
    How far do the data reach?                        radius(X), radius(X, constant=1.0) with the constant feature
    How many updates can there be?                    bounds.novikoff(radius, margin), and `bounds` for every other theorem
    What does the proof look like on my data?         trace(X, y), drawn by rosenblatt.plot.proof; its to_html(path) saves a
                                                      page to step through
    What happens if nothing separates them?           find_cycle(X, y), cycles.lengths
    Which data are the hardest?                       hard.exponential, hard.orthogonal, hard.with_margin
    How many labellings can a hyperplane make?        dichotomies(points), cover(n, d) in general position
    How many operations does a function execute?      count_operations(f, ...), and how they grow: growth(f, sizes)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.counting import Growth as Growth
    from rosenblatt.counting import Operations as Operations
    from rosenblatt.counting import count_operations as count_operations
    from rosenblatt.counting import growth as growth
    from rosenblatt.theory.cycles import find_cycle as find_cycle
    from rosenblatt.theory.geometry import Margin as Margin
    from rosenblatt.theory.geometry import NotSeparable as NotSeparable
    from rosenblatt.theory.geometry import distance as distance
    from rosenblatt.theory.geometry import gamma_affine as gamma_affine
    from rosenblatt.theory.geometry import gamma_origin as gamma_origin
    from rosenblatt.theory.geometry import gamma_padded as gamma_padded
    from rosenblatt.theory.geometry import margins as margins
    from rosenblatt.theory.geometry import projection as projection
    from rosenblatt.theory.geometry import radius as radius
    from rosenblatt.theory.labellings import cover as cover
    from rosenblatt.theory.labellings import dichotomies as dichotomies
    from rosenblatt.theory.runs import Trace as Trace
    from rosenblatt.theory.separation import Inseparable as Inseparable
    from rosenblatt.theory.separation import Separable as Separable
    from rosenblatt.theory.separation import Undecided as Undecided
    from rosenblatt.theory.separation import separability as separability
    from rosenblatt.theory.tracing import trace as trace

_MODULES = ("bounds", "cycles", "hard")
_HOMES = {
    **dict.fromkeys(("Growth", "Operations", "count_operations", "growth"), "rosenblatt.counting"),
    **dict.fromkeys(("Margin", "NotSeparable", "distance", "gamma_affine", "gamma_origin"), "rosenblatt.theory.geometry"),
    **dict.fromkeys(("gamma_padded", "margins", "projection", "radius"), "rosenblatt.theory.geometry"),
    **dict.fromkeys(("Inseparable", "Separable", "Undecided", "separability"), "rosenblatt.theory.separation"),
    **dict.fromkeys(("cover", "dichotomies"), "rosenblatt.theory.labellings"),
    "Trace": "rosenblatt.theory.runs",
    "trace": "rosenblatt.theory.tracing",
    "find_cycle": "rosenblatt.theory.cycles",
}
__all__ = sorted([*_MODULES, *_HOMES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"rosenblatt.theory.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt.theory' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
