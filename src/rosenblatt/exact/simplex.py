"""Gordan's alternative by the simplex method in integers: it never rounds, so it always ends with a proof, and it is slow,
so it is for what floats leave open. Minors of an integer matrix are integers, therefore every division below is exact
(Edmonds 1967, Bareiss 1968); ties are broken lexicographically, so no basis comes twice (Dantzig, Orden, Wolfe 1955).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, inf
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import cleared, mantissas


def alternative(A: NDArray, max_seconds: float = inf) -> Interior | Combination | None:
    """A point with positive products with all rows of A (floats), or a combination of them that is zero; None if the
    time was too short.

    Solved is: λ ≥ 0, Aᵀλ = 0, Σλ = 1, by phase one. Where that has no solution, the prices of its end are the point.
    """
    V, scale, shift = _integers(A)
    n, d = V.shape
    # Rows: the d equations, the sum, the objective; columns: λ, the artificial variables, the right side.
    T = np.zeros((d + 2, n + d + 2), dtype=object)
    T[:d, :n] = V.T
    T[d, :n] = 1
    T[: d + 1, n : n + d + 1] = np.eye(d + 1, dtype=np.int64).astype(object)
    T[d, -1] = 1
    T[-1] = -T[:-1].sum(axis=0)  # minus the sum of the artificial variables, in terms of the others
    T[-1, n : n + d + 1] = 0
    basis = list(range(n, n + d + 1))
    denominator, end = 1, perf_counter() + max_seconds
    while T[-1, -1] < 0 and (column := int(np.argmin(T[-1, :n]))) >= 0 and T[-1, column] < 0:
        if perf_counter() > end:
            return None
        row = _leaving(T, column, n)
        denominator = _pivot(T, row, column, denominator)
        basis[row] = column
    if T[-1, -1] == 0:
        found = {basis[r]: T[r, -1] for r in range(d + 1) if basis[r] < n and T[r, -1]}
        rows = sorted(found)
        weights = cleared([Fraction(found[i]) * scale[i] for i in rows])
        common = gcd(*weights)
        return Combination(tuple(rows), tuple(weight // common for weight in weights))
    # A price y has yᵀ(aᵢ, 1) ≤ 0 for every row and y_last > 0; the price of an artificial column is 1 less its entry.
    prices = [denominator - T[-1, n + j] for j in range(d)]
    point = [Fraction(-price) * Fraction(2) ** shift[j] for j, price in enumerate(prices)]
    common = gcd(*(value for value in cleared(point))) or 1
    return Interior(tuple(Fraction(value // common) for value in cleared(point)))


def _integers(A: NDArray) -> tuple[NDArray, list[Fraction], list[int]]:
    """(V, scale, shift): V = scaleᵢ · aᵢⱼ · 2^shiftⱼ, integers without a common factor in a row."""
    m, e = mantissas(A)
    low = np.where(m != 0, e, 2**31).min(axis=0)
    low[low == 2**31] = 0
    V = m.astype(object)
    scale = []
    for i in range(len(V)):
        V[i] = [int(v) << int(p) if v else 0 for v, p in zip(m[i], e[i] - low, strict=True)]
        common = gcd(*V[i]) or 1
        V[i] //= common
        scale.append(Fraction(1, common))
    return V, scale, (-low).tolist()


def _leaving(T: NDArray, column: int, n: int) -> int:
    """The row whose (right side, inverse of the basis), divided by its entry in the column, is lexicographically least."""
    able = [r for r in range(len(T) - 1) if T[r, column] > 0]
    width = T.shape[1] - 1 - n
    for position in [T.shape[1] - 1, *range(n, n + width)]:
        if len(able) == 1:
            break
        ratios = [Fraction(T[r, position], T[r, column]) for r in able]
        least = min(ratios)
        able = [r for r, ratio in zip(able, ratios, strict=True) if ratio == least]
    return able[0]


def _pivot(T: NDArray, row: int, column: int, denominator: int) -> int:
    pivot = T[row, column]
    for r in range(len(T)):
        if r != row:
            factor = T[r, column]
            T[r] = (T[r] * pivot - T[row] * factor) // denominator if factor else T[r] * pivot // denominator
    return pivot
