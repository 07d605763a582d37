"""The perceptron itself: add a row that w is wrong on, until there is none.

On rows of length ≤ R that some unit vector has products ≥ γ with, it makes at most (R/γ)² updates (Novikoff 1962; from
w = 0, in any order). An update costs the rows looked at. The bound is honest: on the rows e₁, e₂ − e₁, e₃ − e₂ − e₁, … it
makes exactly (4ⁿ − 1)/3 updates in any order, n times fewer than (R/γ)² allows.

Where no x exists, w stays bounded (Block and Levin 1970), so the counts of updates, divided by their sum t, are weights
with which the rows add up to ‖w‖/t → 0: nearly Gordan's combination.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rosenblatt.feasibility.climbing import ORDERS, Climb, Enough, checked
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.feasibility.stages import Budget, Stage


@dataclass(frozen=True)
class Plain:
    """The perceptron, on the rows as given.

    Parameters
    ----------
    order : "cyclic" or "most-violated"
        Whether to take the rows in turn, or always one whose product is least.
    """

    order: str = "cyclic"
    name = "perceptron"
    updates = 10_000_000  # unless the budget says otherwise

    def __post_init__(self) -> None:
        checked(self.order)

    def search(self, A: Any, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        n, d = A.shape
        climb = ORDERS[self.order][sp.issparse(A)]
        lengths = row_lengths(A)
        w, counts, done = np.zeros(d), np.zeros(n, dtype=np.int64), Climb(0, 0, 0)
        limit = self.updates if budget.updates is None else budget.updates
        delta, pause = 0.0, 64
        while True:
            done = climb(A, w, counts, delta, done, Enough(min(limit, pause)))
            solved = done.clean == n
            weights = counts.astype(np.float64)
            yield Stage(w, solved, weights, float(np.linalg.norm(w) / (weights @ lengths)), done.updates)
            if solved:
                delta = 10 * delta or float(lengths.max()) ** 2
                done = done._replace(clean=0)
            elif done.updates >= limit:
                return "max_updates"
            else:
                pause *= 2
