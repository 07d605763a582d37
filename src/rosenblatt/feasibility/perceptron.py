"""The perceptron itself: add a row that w is wrong on, until there is none.

On rows of length ≤ R that some unit vector has products ≥ γ with, it makes at most (R/γ)² updates (Novikoff 1962; from
w = 0, in any order). An update costs the rows looked at. The bound is honest: on the rows e₁, e₂ − e₁, e₃ − e₂ − e₁, … it
makes exactly (4ⁿ − 1)/3 updates in any order, n times fewer than (R/γ)² allows.

Where no x exists, w stays bounded (Block and Levin 1970), so the counts of updates, divided by their sum t, are weights
with which the rows add up to ‖w‖/t → 0: nearly Gordan's combination.

All perceptrons of this package climb so: they add a row whose product with w is not above δ, and stop when every row's is.
They differ in the rows they climb and in when they have had enough. Rows are dense float64, (rows, d), in C order, or CSR.
Dense integers below 2⁵³ are climbed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidParameter
from rosenblatt.exact.reading import Matrix
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.feasibility.search import Budget, Method, Stage


class Climb(NamedTuple):
    """How far w has come; `w` and `counts`, the updates of each row, are changed in place."""

    position: int  # the row to look at next
    clean: int  # rows gone by without an update; all of them: done
    updates: int


class Enough(NamedTuple):
    """When to stop short of a solution."""

    updates: int  # in this climb, counted from its beginning
    largest: float = math.inf  # when this · ‖w‖ ≤ the largest count of a row
    sum: float = math.inf  # when this · ‖w‖ ≤ the sum of the counts


@jit
def product(A, i, w):
    """⟨aᵢ, w⟩."""
    total = 0.0
    for j in range(A.shape[1]):
        total += A[i, j] * w[j]
    return total


@jit
def add(A, i, w):
    """Add the row to w; ‖w‖."""
    square = 0.0
    for j in range(A.shape[1]):
        w[j] += A[i, j]
        square += w[j] * w[j]
    return math.sqrt(square)


@jit
def in_turn(A, w, counts, delta, begun, enough):
    """Look at the rows in turn; the Climb so far."""
    position, clean, updates = begun
    limit, by_largest, by_sum = enough
    n = A.shape[0]
    largest = counts.max()
    while clean < n and updates < limit:
        clean += 1
        if product(A, position, w) <= delta:
            length = add(A, position, w)
            counts[position] += 1
            largest = max(largest, counts[position])
            clean = 0
            updates += 1
            if by_largest * length <= largest or by_sum * length <= updates:
                limit = updates
        position = position + 1 if position + 1 < n else 0
    return Climb(position, clean, updates)


@jit
def worst_first(A, w, counts, delta, begun, enough):
    """Look at all rows and add the one with the least product; the Climb so far."""
    position, clean, updates = begun
    limit, by_largest, by_sum = enough
    n = A.shape[0]
    largest = counts.max()
    while clean < n and updates < limit:
        least = math.inf
        for i in range(n):
            here = product(A, i, w)
            if here < least:
                least = here
                position = i
        if least > delta:
            clean = n
        else:
            length = add(A, position, w)
            counts[position] += 1
            largest = max(largest, counts[position])
            updates += 1
            if by_largest * length <= largest or by_sum * length <= updates:
                limit = updates
    return Climb(position, clean, updates)


def sparse_in_turn(A: sp.csr_array, w: NDArray, counts: NDArray, delta: float, begun: Climb, enough: Enough) -> Climb:
    """The same as `in_turn` for CSR: one product with the matrix an update."""
    position, clean, updates = begun
    n = A.shape[0]
    while updates < enough.updates:
        low = np.flatnonzero(A @ w <= delta)
        if not low.size:
            return Climb(position, n, updates)
        after = low[low >= position]
        row = int(after[0] if after.size else low[0])
        _add(A, row, w, counts)
        position, clean, updates = (row + 1) % n, 0, updates + 1
    return Climb(position, clean, updates)


def sparse_worst_first(A: sp.csr_array, w: NDArray, counts: NDArray, delta: float, begun: Climb, enough: Enough) -> Climb:
    """The same as `worst_first` for CSR."""
    position, clean, updates = begun
    while updates < enough.updates:
        products = A @ w
        row = int(products.argmin())
        if products[row] > delta:
            return Climb(row, A.shape[0], updates)
        _add(A, row, w, counts)
        position, updates = row, updates + 1
    return Climb(position, clean, updates)


def _add(A: sp.csr_array, row: int, w: NDArray, counts: NDArray) -> None:
    part = slice(A.indptr[row], A.indptr[row + 1])
    w[A.indices[part]] += A.data[part]
    counts[row] += 1


ORDERS = {"cyclic": (in_turn, sparse_in_turn), "most-violated": (worst_first, sparse_worst_first)}  # dense and CSR


def check_order(order: str) -> None:
    if order not in ORDERS:
        raise InvalidParameter("order", order, f"one of {', '.join(map(repr, ORDERS))}")


@dataclass(frozen=True)
class Plain(Method):
    """The perceptron, on the rows as given.

    Parameters
    ----------
    order : "cyclic" or "most-violated"
        Whether to take the rows in turn, or always one whose product is least.

    Examples
    --------
    >>> from rosenblatt.feasibility import find_interior
    >>> A = [[2, 1], [1, 3], [-1, 2]]
    >>> found = find_interior(A, Plain(order="most-violated"))
    >>> found.method, found.n_updates, found.verify(A)
    ('perceptron', 2, True)
    """

    order: str = "cyclic"
    name = "perceptron"
    updates = 10_000_000  # unless the budget says otherwise

    def __post_init__(self) -> None:
        check_order(self.order)

    def search(self, A: Matrix, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
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
