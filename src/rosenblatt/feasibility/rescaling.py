"""When the perceptron has added one row often and has not got far, no solution can lean on that row: shrink its direction.

Peña and Soheili (2016), deterministic. Let the rows be of length 1 and αᵢ the updates of row i, so that w = Σ αᵢaᵢ. For a
solution z of length 1 all ⟨aᵢ, z⟩ are positive, so α_j⟨a_j, z⟩ ≤ ⟨w, z⟩ ≤ ‖w‖. Once 6√d·‖w‖ ≤ α_j for some j, every such z
has ⟨a_j, z⟩ ≤ 1/(6√d): all are close to the plane of a_j. Map the rows by I − ½a_j a_jᵀ, and the perceptron starts anew. As
‖w‖² ≤ t after t updates, a climb ends after 36n²d updates at the latest, for n rows, and in practice far sooner.

Where there are many rows, each of them is added seldom. But w, with the same sum of weights, is also a combination of d + 1
of the rows at most (Carathéodory), and the argument holds for the weights of these: one is large enough as soon as
6√d(d + 1)·‖w‖ ≤ t, hence after 36d(d + 1)² updates at the latest, however many rows there are.

The map doubles the part of each solution along a_j and leaves the rest: it doubles volumes, and lengthens a solution of
length 1 to √(1 + 1/(12d)) at most. So the solutions inside the unit ball gain a factor 2·e^(−1/24) or more in volume. At
margin γ they hold a ball of radius γ/(1 + γ), at most the unit ball in the end: at most d·log(1 + 1/γ)/(log 2 − 1/24)
rescalings. In all O(d⁴ log 1/γ) updates, where the paper has O(d⁵ log 1/γ) and the perceptron 1/γ². More than 57·d
rescalings mean a margin below 2⁻⁵³, which floats can hardly tell from none.

A combination of the mapped rows that is zero is one of the rows given, since the maps are invertible: the weights only
change by the rows' lengths.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.feasibility.climbing import ORDERS, Climb, Enough, checked
from rosenblatt.feasibility.mapped import Mapped
from rosenblatt.feasibility.stages import Budget, Stage
from rosenblatt.feasibility.thinning import thinned

_WIDTH = math.ceil(53 * math.log(2) / (math.log(2) - 1 / 24))  # rescalings for each dimension at a margin of 2⁻⁵³


@dataclass(frozen=True)
class Rescaling:
    """The perceptron on rows that are rescaled as soon as the counts of its updates allow it.

    Parameters
    ----------
    order : "cyclic" or "most-violated"
        Whether the perceptron takes the rows in turn, or always one whose product is least: fewer updates, more work each.
    """

    order: str = "cyclic"
    name = "rescaling"
    updates = 100_000_000

    def __post_init__(self) -> None:
        checked(self.order)

    def search(self, A: Any, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        climb = ORDERS[self.order][0]
        mapped = Mapped.of(A, self.name)
        n, d = A.shape
        limit = self.updates if budget.updates is None else budget.updates
        rescalings = _WIDTH * d if budget.rescalings is None else budget.rescalings
        updates, ratio = 0, 6 * math.sqrt(d)
        for r in range(rescalings + 1):
            w, counts, done, delta = np.zeros(d), np.zeros(n, dtype=np.int64), Climb(0, 0, 0), 0.0
            before, enough, solved = updates, Enough(limit - updates, ratio, ratio * (d + 1)), True
            while solved:
                done = climb(mapped.rows, w, counts, delta, done, enough)
                updates, solved = before + done.updates, done.clean == n
                yield mapped.stage(w, solved, counts, updates, r)
                delta, done = 10 * delta or 1.0, done._replace(clean=0)
            if updates >= limit:
                return "max_updates"
            mapped.stretch(mapped.rows[_heaviest(mapped.rows, counts, w, ratio)].copy(), -0.5)
        return "max_rescalings"


def _heaviest(rows: NDArray, counts: NDArray, w: NDArray, ratio: float) -> int:
    """The row of the largest count; if that is not large enough, of the largest weight when few rows make up w."""
    row = int(counts.argmax())
    if counts[row] >= ratio * np.linalg.norm(w):
        return row
    held = np.flatnonzero(counts)
    few, weights = thinned(rows[held], counts[held].astype(np.float64))
    return int(held[few[weights.argmax()]])
