"""The least product of a unit row with w, made smooth, can be raised by an accelerated gradient method: the perceptron's
1/γ² becomes 1/γ.

Soheili and Peña (2012): instead of the row whose product is least, take all of them, weighted by exp(−product/μ), and
let μ fall. On n ≥ 2 unit rows that a unit vector has products ≥ γ with, at most 2√(ln n)/γ − 1 iterations. Where there is
no such vector, ‖Aᵀy‖ falls like 1/k. An iteration costs three products with the matrix.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from rosenblatt.feasibility.rows import NOTHING, row_lengths, scaled
from rosenblatt.feasibility.stages import Budget, Stage


@dataclass(frozen=True)
class Smooth:
    """The smooth perceptron."""

    name = "smooth"
    updates = 100_000

    def search(self, A: Any, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        n = A.shape[0]
        lengths = row_lengths(A)
        unit = scaled(A, 1 / lengths)
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
