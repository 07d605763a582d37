"""The point of the convex hull of the unit rows that is nearest to 0 separates them, if it is not 0. Walk there: from p
towards the row whose product with p is least, as far as p grows shorter.

von Neumann to Dantzig (Dantzig 1992); Gilbert 1966; Frank and Wolfe's method on ½‖p‖². After k steps ‖p‖ ≤ 1/√k, since
with ⟨a, p⟩ ≤ 0 a step makes ‖p‖² at most ‖p‖²/(1 + ‖p‖²); the first is the step to a row. As ‖p‖ ≥ γ always, there are at
most 1/γ² steps if a unit vector has products ≥ γ. If a ball of radius r around 0 lies in the hull, ‖p‖² ≤ (1 − r²)^(k − 1).
A step costs one product with the matrix.

Away steps (Wolfe 1970; Lacoste-Julien and Jaggi 2015) also walk straight away from a row that has a weight, where that
promises more. Then ‖p‖ falls at a linear rate even if 0 lies on the boundary of the hull, where the plain walk zigzags. A
step away gains at least as much as one towards, unless it ends because the weight is used up, and a weight can only be
used up once for each time it was given: so ‖p‖ ≤ √(2/k) after k steps, and 1/√k counts the others.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rosenblatt.feasibility.rows import NOTHING, dense_row, row_lengths, scaled
from rosenblatt.feasibility.stages import Budget, Stage


@dataclass(frozen=True)
class VonNeumann:
    """The walk to the point of the hull nearest to 0.

    Parameters
    ----------
    away : bool, default=True
        Whether to step away from rows too. Without, after k steps ‖p‖ ≤ 1/√k.
    """

    away: bool = True
    name = "von-neumann"
    updates = 100_000

    def search(self, A: Any, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        lengths = row_lengths(A)
        unit = scaled(A, 1 / lengths)
        y = np.zeros(A.shape[0])  # weights of the unit rows, of sum 1
        y[0] = 1.0
        p = dense_row(unit, 0)
        limit = self.updates if budget.updates is None else budget.updates
        need, steps = 0.0, 1
        while True:
            products = unit @ p
            square = float(p @ p)
            solved = products.min() > need * math.sqrt(square)
            yield Stage(p, solved, y / lengths, math.sqrt(square), steps)
            if solved:
                need = 10 * need or 1e-12
                continue
            if square < NOTHING**2:
                return "precision"
            if steps >= limit:
                return "max_updates"
            j = int(products.argmin())
            held = np.flatnonzero(y)
            i = int(held[products[held].argmax()])
            if self.away and products[i] - square > square - products[j]:
                direction, longest = p - dense_row(unit, i), y[i] / (1 - y[i]) if y[i] < 1 else 0.0
                step = min(longest, _shortest(p, direction))
                y *= 1 + step
                y[i] = 0.0 if step == longest else y[i] - step
            else:
                direction = dense_row(unit, j) - p
                step = min(1.0, _shortest(p, direction))
                y *= 1 - step
                y[j] += step
            p = p + step * direction if (steps + 1) % 64 else unit.T @ (y / y.sum())  # before rounding shows
            y /= y.sum()
            steps += 1


def _shortest(p: np.ndarray, direction: np.ndarray) -> float:
    """The t ≥ 0 at which p + t·direction is shortest."""
    length = float(direction @ direction)
    return max(0.0, -float(p @ direction) / length) if length else 0.0
