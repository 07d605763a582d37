"""Add a row whose product with w is not above δ; stop when every row's is. All perceptrons of this package climb so; they
differ in the rows they climb and in when they have had enough.

Rows are dense float64, (rows, d), in C order. Dense integers below 2⁵³ are climbed exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit


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


def sparse_in_turn(A: Any, w: NDArray, counts: NDArray, delta: float, begun: Climb, enough: Enough) -> Climb:
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


def sparse_worst_first(A: Any, w: NDArray, counts: NDArray, delta: float, begun: Climb, enough: Enough) -> Climb:
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


def _add(A: Any, row: int, w: NDArray, counts: NDArray) -> None:
    part = slice(A.indptr[row], A.indptr[row + 1])
    w[A.indices[part]] += A.data[part]
    counts[row] += 1


ORDERS = {"cyclic": (in_turn, sparse_in_turn), "most-violated": (worst_first, sparse_worst_first)}  # dense and CSR


def checked(order: str) -> None:
    if order not in ORDERS:
        raise ValueError(f"order={order!r}: it must be one of {', '.join(map(repr, ORDERS))}")
