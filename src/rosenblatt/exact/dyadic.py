"""Every float is an integer times a power of two. Products of a matrix of floats with a vector of integers are therefore
integers too, and floating-point matrix products compute them exactly, as long as each number is cut into limbs so short
that no sum of products of limbs needs more than the 53 bits a float holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from math import lcm
from numbers import Integral, Rational
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.exact.reading import Matrix

_BITS = 53  # of a float's mantissa
_NONE = 2**31  # above every exponent
_LOWEST = -1074  # 2^−1074 is the smallest positive float
_CHUNK = 1 << 18  # entries cut into limbs at a time: a few megabytes, whatever the size of the matrix


def mantissas(values: NDArray) -> tuple[NDArray, NDArray]:
    """(m, e) with values = m · 2^e exactly; m odd (int64), or 0 with e = 0."""
    fraction, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    m = np.ldexp(fraction, _BITS).astype(np.int64)
    lowest = m & -m  # the lowest bit that is set: a power of two, so a float holds it
    trailing = np.frexp(lowest.astype(np.float64))[1] - 1
    trailing[m == 0] = 0
    e = exponent.astype(np.int64) - _BITS + trailing
    e[m == 0] = 0
    return m >> trailing, e


def lowest_exponent(values: ArrayLike) -> int:
    """The greatest e for which all values are multiples of 2^e; 0 if all are 0."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    lowest = _NONE
    for start in range(0, len(flat), _CHUNK):
        m, e = mantissas(flat[start : start + _CHUNK])
        lowest = min(lowest, int(e.min(where=m != 0, initial=_NONE)))
    return lowest if lowest < _NONE else 0


def whole(values: NDArray) -> tuple[NDArray, int]:
    """(V, e) with values = V · 2^e exactly, V an array of Python integers, e the same for all of them."""
    if values.dtype == object:
        return values, 0
    m, e = mantissas(values)
    base = lowest_exponent(values)
    V = m.astype(object)
    for index in zip(*np.nonzero(m), strict=True):
        V[index] = int(m[index]) << int(e[index] - base)
    return V, base


def unit_floats(V: NDArray) -> NDArray:
    """Rows of integers as the nearest floats, each row times the power of two that brings its largest entry to [½, 1)."""
    found = np.zeros(V.shape)
    for i, row in enumerate(V.tolist()):
        size = max((abs(v).bit_length() for v in row), default=0)
        found[i] = [float(Fraction(v, 1 << size)) if v else 0.0 for v in row]
    return found


def fractions(values: Iterable[Any]) -> list[Fraction]:
    """Each number as the rational number it is; integers, fractions and floats alike."""
    return [_fraction(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def _fraction(value: Any) -> Fraction:
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))


def dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """⟨a, b⟩ in fractions."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), Fraction(0))


def about(value: Fraction) -> str:
    """Six digits of a number of any size."""
    with localcontext() as context:
        context.prec = 6
        context.Emax, context.Emin = MAX_EMAX, MIN_EMIN
        return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():g}"


def cleared(values: Sequence[Fraction]) -> list[int]:
    """Integers in the same proportions: the values times the least common multiple of their denominators."""
    common = lcm(*(value.denominator for value in values)) if values else 1
    return [value.numerator * (common // value.denominator) for value in values]


def products(A: Matrix, w: Sequence[int]) -> tuple[list[int], int]:
    """(P, e) with A @ w = P · 2^e exactly, for integers w of any size and a matrix of floats (dense, or scipy's CSR) or of
    Python's integers."""
    n, d = A.shape
    if len(w) != d:
        raise ValueError(f"w must have one entry for each of the {d} columns; got {len(w)}")
    if A.dtype == object:
        return [sum(a * v for a, v in zip(row, w, strict=True) if a) for row in A.tolist()], 0
    limb = (_BITS - max(1, int(d).bit_length())) // 2
    W = _limbs_of_integers(w, limb)
    found: list[int] = []
    bases: list[int] = []
    step = max(1, _CHUNK * n // max(1, n * d if isinstance(A, np.ndarray) else A.nnz))
    for start in range(0, n, step):
        chunk = A[start : start + step]
        rows, base = _chunk_products(chunk, W, limb)
        found += rows
        bases += base
    lowest = min((b for p, b in zip(found, bases, strict=True) if p), default=0)
    return [p << (b - lowest) if p else 0 for p, b in zip(found, bases, strict=True)], lowest


def _limbs_of_integers(w: Sequence[int], limb: int) -> NDArray:
    """(d, limbs) floats below 2^limb in size, the lowest limb first, with the sign of their integer."""
    longest = max((abs(int(v)).bit_length() for v in w), default=1)
    count = max(1, -(-longest // limb))
    places = 2.0 ** np.arange(limb)
    W = np.zeros((len(w), count))
    for j, value in enumerate(w):
        size = np.frombuffer(abs(int(value)).to_bytes(-(-count * limb // 8), "little"), dtype=np.uint8)
        bits = np.unpackbits(size, count=count * limb, bitorder="little")
        W[j] = bits.reshape(count, limb) @ places * (-1.0 if value < 0 else 1.0)
    return W


def join_digits(digits: Sequence[NDArray], base: int) -> NDArray:
    """Σ digitsₖ · baseᵏ, Python's integers, two halves at a time."""
    level: list[Any] = [digit.astype(np.int64).astype(object) for digit in digits]
    while len(level) > 1:
        if len(level) % 2:
            level.append(0)
        level = [low + high * base for low, high in zip(level[::2], level[1::2], strict=True)]
        base *= base
    return level[0]


def _chunk_products(chunk: Matrix, W: NDArray, limb: int) -> tuple[list[int], list[int]]:
    """(P, e) with the products P · 2^e, an e for each row: from the highest limb of the row's largest number down, until
    nothing is left of any."""
    n = chunk.shape[0]
    rest = np.array(chunk if isinstance(chunk, np.ndarray) else chunk.data)
    if isinstance(chunk, np.ndarray):
        row_of: Any = (slice(None), None)
        largest = np.abs(rest).max(axis=1, initial=0.0)
    else:
        row_of = np.repeat(np.arange(n), np.diff(chunk.indptr))
        largest = np.zeros(n)
        np.maximum.at(largest, row_of, np.abs(rest))
    exponent = np.frexp(largest)[1].astype(np.int64)
    total = np.zeros(n, dtype=object)
    while rest.any():
        lower = np.maximum(exponent - limb, _LOWEST)
        unit = np.ldexp(1.0, lower)[row_of]
        part = np.trunc(rest / unit)  # below 2^limb, and what is left is exact
        rest -= part * unit
        if not isinstance(chunk, np.ndarray):
            part = sp.csr_array((part, chunk.indices, chunk.indptr), shape=chunk.shape)
        P = part @ W
        total *= [1 << shift for shift in (exponent - lower).tolist()]
        total += join_digits(list(P.T), 1 << limb)
        exponent = lower
    return total.tolist(), exponent.tolist()
