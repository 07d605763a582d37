"""First-order methods: they only multiply with the matrix of unit rows.

*Von Neumann*. The point of the convex hull of the unit rows that is nearest to 0 separates them, if it is not 0. Walk
there: from p towards the row whose product with p is least, as far as p grows shorter.

von Neumann to Dantzig (Dantzig 1992); Gilbert 1966; Frank and Wolfe's method on ½‖p‖². After k steps ‖p‖ ≤ 1/√k, since
with ⟨a, p⟩ ≤ 0 a step makes ‖p‖² at most ‖p‖²/(1 + ‖p‖²); the first is the step to a row. As ‖p‖ ≥ γ always, there are at
most 1/γ² steps if a unit vector has products ≥ γ. If a ball of radius r around 0 lies in the hull, ‖p‖² ≤ (1 − r²)^(k − 1).
A step costs one product with the matrix.

Away steps (Wolfe 1970; Lacoste-Julien and Jaggi 2015) also walk straight away from a row that has a weight, where that
promises more. Then ‖p‖ falls at a linear rate even if 0 lies on the boundary of the hull, where the plain walk zigzags. A
step away gains at least as much as one towards, unless it ends because the weight is used up, and a weight can only be
used up once for each time it was given: so ‖p‖ ≤ √(2/k) after k steps, and 1/√k counts the others.

*Smooth*. The least product of a unit row with w, made smooth, can be raised by an accelerated gradient method: the
perceptron's 1/γ² becomes 1/γ.

Soheili and Peña (2012): instead of the row whose product is least, take all of them, weighted by exp(−product/μ), and
let μ fall. On n ≥ 2 unit rows that a unit vector has products ≥ γ with, at most 2√(ln n)/γ − 1 iterations. Where there is
no such vector, ‖Aᵀy‖ falls like 1/k. An iteration costs three products with the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from rosenblatt.exact.reading import Matrix
from rosenblatt.feasibility.rows import NOTHING, dense_row, row_lengths, scale_rows
from rosenblatt.feasibility.search import Budget, Method, Stage


@dataclass(frozen=True)
class VonNeumann(Method):
    """Von Neumann's algorithm: the walk to the point of the convex hull of the rows that is nearest to 0.

    Parameters
    ----------
    away : bool, default=True
        Whether to step away from rows too. Without, after k steps ‖p‖ ≤ 1/√k.

    Examples
    --------
    >>> from rosenblatt.feasibility import find_interior
    >>> A = [[2, 1], [1, 3], [-1, 2]]
    >>> found = find_interior(A, VonNeumann(away=False))
    >>> found.method, found.verify(A)
    ('von-neumann', True)
    """

    away: bool = True
    name = "von-neumann"
    updates = 100_000

    def search(self, A: Matrix, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        lengths = row_lengths(A)
        unit = scale_rows(A, 1 / lengths)
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


def _shortest(p: NDArray, direction: NDArray) -> float:
    """The t ≥ 0 at which p + t·direction is shortest."""
    length = float(direction @ direction)
    return max(0.0, -float(p @ direction) / length) if length else 0.0


@dataclass(frozen=True)
class Smooth(Method):
    """The smooth perceptron of Soheili and Peña, as a method of `find_interior`.

    Examples
    --------
    >>> from rosenblatt.feasibility import find_interior
    >>> A = [[2, 1], [1, 3], [-1, 2]]
    >>> found = find_interior(A, Smooth())
    >>> found.method, found.verify(A)
    ('smooth', True)
    """

    name = "smooth"
    updates = 100_000

    def search(self, A: Matrix, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        n = A.shape[0]
        lengths = row_lengths(A)
        unit = scale_rows(A, 1 / lengths)
        w, mu = unit.T @ np.full(n, 1 / n), 1.0
        products = unit @ w
        y = softmax(-products / mu)
        limit = self.updates if budget.updates is None else budget.updates
        need, k = 0.0, 0
        while True:
            p = unit.T @ y
            solved = products.min() > need * float(np.linalg.norm(w))
            yield Stage(w, solved, y / lengths, float(np.linalg.norm(p)), k)
            if solved:
                need = 10 * need or 1e-12
                continue
            if p @ p < NOTHING**2:
                return "precision"
            if k >= limit:
                return "max_updates"
            theta = 2 / (k + 3)
            w = (1 - theta) * (w + theta * p) + theta**2 * (unit.T @ softmax(-products / mu))
            mu *= 1 - theta
            products = unit @ w
            y = (1 - theta) * y + theta * softmax(-products / mu)
            k += 1
