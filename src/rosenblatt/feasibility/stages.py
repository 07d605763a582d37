"""A method is a walk through stages. At each it shows a point and weights of rows, and whoever walks it decides whether
one of them is proof enough. Asked to go on after it said "solved", it asks for a larger margin: what it had found was
positive for floats, but not for the numbers they stand for.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Stage(NamedTuple):
    """What a method has at one moment. Weights are ≥ 0 and belong to the rows as given."""

    x: NDArray
    solved: bool  # every row's product with x is positive, as far as floats can tell
    weights: NDArray
    reach: float  # ‖Σ weightᵢ·aᵢ‖ / Σ weightᵢ·‖aᵢ‖: the margin of the unit rows is not above it
    n_updates: int
    n_rescalings: int = 0


class Budget(NamedTuple):
    """How much work is allowed; None leaves it to the method."""

    updates: int | None = None
    rescalings: int | None = None


class Method(Protocol):
    """A way to look for x with A x > 0."""

    @property
    def name(self) -> str: ...

    def search(self, A: Any, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        """Stages, until the budget is spent, and then a word for what was. A has no rows of zeros."""
        ...
