"""Dependences among rows, and Gordan's alternative, in numbers that do not round.

*Dependence*: the rational one among integer rows, by Dixon's lifting (1982): modulo a prime the elimination is cheap; each
further digit, in base of the prime, costs two products of a matrix and a vector; and a fraction is recovered from enough
digits by Euclid's algorithm.

*Alternative*: by the simplex method in integers: it never rounds, so it always ends with a proof, and it is slow,
so it is for what floats leave open. Minors of an integer matrix are integers, therefore every division below is exact
(Edmonds 1967, Bareiss 1968); ties are broken lexicographically, so no basis comes twice (Dantzig, Orden, Wolfe 1955).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, inf, isqrt
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import RosenblattError
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import cleared, join_digits, mantissas, unit_floats, whole

# The largest primes below 2²⁶: small enough that products of two residues are exact in int64 and in float64 sums of a few.
_PRIMES = (67108859, 67108837)


class Late(RosenblattError):
    """The time allowed is over."""


def check_time(until: float) -> None:
    """Go on, if the clock (`time.perf_counter`) is not past `until`."""
    if perf_counter() > until:
        raise Late("the time allowed is over")


def dependence(rows: NDArray, until: float = inf) -> list[int] | None:
    """Integers λ, without a common factor, with Σ λᵢ·rowᵢ = 0, if they are unique up to a factor; otherwise None.

    `rows` are floats (k, d). The answer is exact; it is checked before it is returned. The work is about k³, and more where
    the numbers are long; past `until` it ends with `Late`.
    """
    k = len(rows)
    _, V = _equations(rows)
    if not len(V):
        return [1] if k == 1 else None
    for prime in _PRIMES:
        equations, unknowns, free = _independent(V, prime, until)
        if not free:
            return None  # independent modulo a prime is independent
        if len(free) > 1:
            continue  # of low rank, or bad luck with the prime
        found = _lift(V[np.ix_(equations, unknowns)], V[equations, free[0]], prime, until)
        if found is None:
            continue
        numerators, denominator = found
        answer = [0] * k
        answer[free[0]] = -denominator
        for position, value in zip(unknowns, numerators, strict=True):
            answer[position] = value
        common = gcd(*answer)
        answer = [value // common for value in answer]
        if sum(value < 0 for value in answer) > sum(value > 0 for value in answer):
            answer = [-value for value in answer]
        if not any(V @ np.array(answer, dtype=object)):
            return answer
    return None


def independent_columns(rows: NDArray) -> NDArray:
    """Columns of which the others are combinations, unless the prime is unlucky; the first if all are zero. `rows` are
    floats (k, d)."""
    there, V = _equations(rows)
    return np.sort(there[_independent(V, _PRIMES[0])[0]]) if len(V) else np.arange(1)


def _equations(rows: NDArray) -> tuple[NDArray, NDArray]:
    """(columns, V): those that are not zero, as integers without a common factor, (columns, k). Scaling a column changes no
    dependence of rows; and what all its numbers have in common may be the prime."""
    there = np.flatnonzero((rows != 0).any(axis=0))
    columns = [whole(rows[:, j])[0] for j in there]
    return there, np.array([c // gcd(*c) for c in columns], dtype=object).reshape(-1, len(rows))


def _independent(V: NDArray, prime: int, until: float = inf) -> tuple[list[int], list[int], list[int]]:
    """(equations, unknowns, other unknowns): a part of V that is square, of full rank and invertible modulo the prime."""
    M = (V % prime).astype(np.int64)
    order = np.arange(len(M))
    unknowns, free, r = [], [], 0
    for j in range(M.shape[1]):
        check_time(until)
        nonzero = np.flatnonzero(M[r:, j])
        if r == len(M) or not len(nonzero):
            free.append(j)
            continue
        swap = r + nonzero[0]
        M[[r, swap]], order[[r, swap]] = M[[swap, r]], order[[swap, r]]
        M[r] = M[r] * pow(int(M[r, j]), -1, prime) % prime
        below = r + 1 + np.flatnonzero(M[r + 1 :, j])
        M[below, j:] = (M[below, j:] - M[below, j : j + 1] * M[r, j:]) % prime
        unknowns.append(j)
        r += 1
    return order[:r].tolist(), unknowns, free


def _lift(B: NDArray, b: NDArray, prime: int, until: float = inf) -> tuple[list[int], int] | None:
    """(numerators, denominator) of the solution of B x = b, B square and invertible modulo the prime."""
    if not len(B):
        return [], 1
    inverse = _inverse((B % prime).astype(np.int64), prime, until).astype(np.float64)
    low, high = inverse % 8192, inverse // 8192  # 13 bits each: with 26 of a residue and a sum of 2¹⁴ terms, 53
    limbs = _Limbs(B)
    steps_in_all = _hadamard_bits(B, b) // 25 + 3
    # Numbers made for it often have small solutions; others need twice the bits of the determinant.
    attempts = {8, 32, 128, min(steps_in_all, _determinant_bits(B) // 13 + 3), steps_in_all}
    residue = b.copy()
    digits: list[NDArray] = []
    while True:
        check_time(until)
        r = (residue % prime).astype(np.float64)
        digit = ((low @ r) % prime + ((high @ r) % prime) * 8192) % prime
        digits.append(digit.astype(np.int64))
        residue = (residue - limbs.times(digit)) // prime
        if len(digits) in attempts:
            modulus = prime ** len(digits)
            found = _reconstruct(join_digits(digits, prime).tolist(), modulus)
            if found is not None and not any(B @ np.array(found[0], dtype=object) - b * found[1]):
                return found
            if len(digits) >= steps_in_all:
                return None


class _Limbs:
    """An integer matrix cut into floats so short that its products with residues below 2²⁶ do not round."""

    def __init__(self, B: NDArray):
        width = 27 - len(B).bit_length()
        size = max(int(abs(value)).bit_length() for value in B.flat)
        sign = np.where(B < 0, -1, 1).astype(np.float64)
        absolute: Any = abs(B)
        mask = (1 << width) - 1
        self.width = width
        self.parts = [
            sign * ((absolute >> (width * k)) & mask).astype(np.float64) for k in range(max(1, -(-size // width)))
        ]

    def times(self, x: NDArray) -> NDArray:
        total: Any = 0
        for k, part in enumerate(self.parts):
            total = total + (part @ x).astype(np.int64).astype(object) * (1 << (self.width * k))
        return total


def _inverse(M: NDArray, prime: int, until: float) -> NDArray:
    n = len(M)
    M = np.hstack([M, np.eye(n, dtype=np.int64)])
    for j in range(n):
        check_time(until)
        swap = j + int(np.flatnonzero(M[j:, j])[0])
        if swap != j:
            M[[j, swap]] = M[[swap, j]]
        M[j] = M[j] * pow(int(M[j, j]), -1, prime) % prime
        others = np.flatnonzero(M[:, j])
        others = others[others != j]
        M[others, j:] = (M[others, j:] - M[others, j : j + 1] * M[j, j:]) % prime
    return M[:, n:]


def _hadamard_bits(B: NDArray, b: NDArray) -> int:
    """Enough bits for numerator times denominator, by Cramer's rule and Hadamard's inequality, and for the sign."""
    squares = [sum(int(v) ** 2 for v in row) for row in np.column_stack([B, b])]
    return 2 * sum(max(1, s.bit_length() + 1) for s in squares) // 2 + 4


def _determinant_bits(B: NDArray) -> int:
    """About log₂ |det B|, and a little more."""
    sizes = sum(max(int(abs(v)).bit_length() for v in row) for row in B)
    return max(0, sizes + int(max(np.linalg.slogdet(unit_floats(B))[1], -1e9) / np.log(2)) + 40)


def _reconstruct(residues: list[int], modulus: int) -> tuple[list[int], int] | None:
    """Numerators and a common denominator, all below √(modulus/2), that the residues stand for; None if too few digits."""
    limit = isqrt(modulus // 2)
    denominator, numerators = 1, list[int]()
    for residue in residues:
        value = residue * denominator % modulus
        if min(value, modulus - value) > limit:
            part = _fraction_of(value, modulus, limit)
            if part is None or part * denominator > limit:
                return None
            denominator *= part
            numerators = [numerator * part for numerator in numerators]
            value = value * part % modulus
        numerators.append(value - modulus if value > limit else value)
    return (numerators, denominator) if max(map(abs, numerators)) <= limit else None


def _fraction_of(value: int, modulus: int, limit: int) -> int | None:
    """The denominator of the fraction that is `value` modulo `modulus`, if there is one with both parts small."""
    r0, r1, t0, t1 = modulus, value, 0, 1
    while r1 > limit:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    return abs(t1) if 0 < abs(t1) <= limit else None


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
