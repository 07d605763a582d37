"""The perceptron's walk in numbers that do not round: ints, fractions, floats as the fractions they are, or any ordered
numbers that add and multiply exactly.

Rational rows are integers in one unit, and weights that start at integers in that unit stay there. After a mistake the next
is mostly near and is looked for row by row; farther on, whole windows are one product of floats, as long as no sum in it
can need more than the 53 bits a float has.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from decimal import Decimal
from fractions import Fraction
from math import floor, isqrt, lcm, sqrt
from numbers import Integral, Rational
from operator import add, mul
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, InvalidParameterType
from rosenblatt.exact.dyadic import whole
from rosenblatt.exact.reading import NOT_NEGATIVE, POSITIVE, MatrixLike, dense
from rosenblatt.theory.signed import read, two_valued

Number: TypeAlias = Any  # int, Fraction, float, Decimal, or any type that adds, multiplies and compares exactly
DELTA = NOT_NEGATIVE._replace(advice="below 0, rows that are wrong would be passed over")
_EXACT = 2**53  # up to here every integer is a float


class Walk:
    """Weights, and the rows in turn: each whose product with them is at most δ moves them by `rate` times itself.

    `A` are rows as `exact_rows` returns them. `start` are weights, one for each column; 0 if not given.
    """

    def __init__(self, A: NDArray, *, delta: Number = 0, rate: Number = 1, start: Sequence[Number] | None = None):
        delta, rate = _rational("delta", delta), _rational("rate", rate)
        DELTA.check("delta", delta)
        POSITIVE.check("rate", rate)
        begin = [0] * A.shape[1] if start is None else [number(value) for value in start]
        if len(begin) != A.shape[1]:
            raise InvalidParameter("start", start, f"one weight for each of the {A.shape[1]} columns, not {len(begin)}")
        begin = [value if rate == 1 else value * (1 / rate) for value in begin]
        self.rational = is_rational(A) and all(isinstance(value, Rational) for value in begin)
        scale = Fraction(1)
        if self.rational:
            A, begin, scale = _in_one_unit(A, begin)
        elif A.dtype != object:  # only the start is not rational
            A = np.array([[number(value) for value in row] for row in A], dtype=object)
        self.unit = rate * scale  # the weights are this times w
        self.threshold = delta / (rate * scale**2)
        if self.rational or self.threshold == 0:
            self.threshold = floor(self.threshold)
        self._rows: list[list[Any]] = A.tolist()
        self._squares = [_square(row) for row in self._rows]
        self._near = max(1, 64 // A.shape[1])
        self._sum = max(sum(map(abs, row)) for row in self._rows) if self.rational else 0
        self._floats = A.astype(np.float64) if self.rational and self._sum <= _EXACT else None
        self._begin = begin
        self.restart()

    def restart(self) -> None:
        self.w = self._begin
        self.counts = [0] * len(self._rows)  # how often each row moved the weights
        self.updates = self.epochs = 0
        self._now = self._longest = _square(self.w)

    def again(self) -> Walk:
        """A second walk, at the start of this one."""
        other = copy(self)
        other.restart()
        return other

    def epoch(self) -> int:
        """Take every row once, in order; how many of them moved the weights."""
        before, i = self.updates, 0
        while (found := self._mistake(i)) is not None:
            i, product = found
            self.w = list(map(add, self.w, self._rows[i]))
            self.counts[i] += 1
            self.updates += 1
            self._now += 2 * product + self._squares[i]
            if self._now > self._longest:
                self._longest = self._now
            i += 1
        self.epochs += 1
        return self.updates - before

    def weights(self) -> tuple[Any, ...]:
        return tuple(self.unit * value if self.rational or self.unit != 1 else value for value in self.w)

    def length(self) -> float:
        """‖w‖ now."""
        return root(self._now, self.unit)

    def longest(self) -> float:
        """The largest ‖w‖ so far, after any update."""
        return root(self._longest, self.unit)

    def _mistake(self, first: int) -> tuple[int, Any] | None:
        """(the next row from `first` on that is to move the weights, its product with them)."""
        rows, w, threshold = self._rows, self.w, self.threshold
        near = min(first + self._near, len(rows))
        if near < len(rows) and (self._floats is None or self._sum * max(map(abs, w)) > _EXACT):
            near = len(rows)
        for i in range(first, near):
            product = sum(map(mul, rows[i], w))
            if product <= threshold:
                return i, product
        return self._far_mistake(near) if near < len(rows) else None

    def _far_mistake(self, first: int) -> tuple[int, int] | None:
        assert self._floats is not None
        w, threshold, width = np.array(self.w, dtype=np.float64), min(self.threshold, _EXACT), 8 * self._near
        while first < len(self._rows):
            products = self._floats[first : first + width] @ w
            wrong = products <= threshold
            at = int(wrong.argmax())
            if wrong[at]:
                return first + at, int(products[at])
            first, width = first + width, 2 * width
        return None


def exact_rows(X: MatrixLike, y: ArrayLike, constant: Number = 1.0) -> NDArray:
    """The rows of X times the sign of their label, the constant feature last (none if 0), each number as it was given.

    Arrays of floats, and sparse ones, give float64; integers, lists and arrays of objects give objects.
    """
    rows = (
        sp.csr_array(X).toarray()
        if sp.issparse(X)
        else np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
    )
    if rows.dtype.kind not in "biuO" and float(constant) == constant:
        return dense(read(rows, y, float(constant)).A)
    if rows.ndim != 2 or not rows.size:
        raise InvalidData(f"X must have two dimensions, rows and features, none of them empty; got the shape {rows.shape}")
    constant = number(constant)
    signs, _ = two_valued(y, len(rows), one=constant == 0)
    last = [constant] if constant != 0 else []
    A = np.empty((len(rows), rows.shape[1] + len(last)), dtype=object)
    for i, sign in enumerate(signs):
        A[i] = [value if sign > 0 else -value for value in [*map(number, rows[i]), *last]]
    return A


def number(value: Number) -> Any:
    """The value as an exact number: an int or a fraction if it is rational, itself if its type has an order."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return Fraction(value)
    if isinstance(value, float | np.floating | Decimal):
        if not np.isfinite(float(value)):
            raise InvalidData(f"every number must be finite; got {value!r}")
        return Fraction(value if isinstance(value, Decimal) else float(value))
    try:
        ordered = value * -1 + value <= 0
    except TypeError:
        ordered = False
    if not ordered:
        raise InvalidDataType(f"every number must add, multiply and compare exactly; got {value!r}")
    return value


def is_rational(A: NDArray) -> bool:
    return A.dtype != object or all(isinstance(value, Rational) for value in A.flat)


def root(square: Number, unit: Fraction = Fraction(1)) -> float:
    """unit · √square, rounded once; of numbers that are not rational, as well as their floats allow."""
    if not isinstance(square, Rational):
        return float(unit) * sqrt(float(square))
    value = Fraction(square) * unit**2
    shift = 2 * ((128 - value.numerator.bit_length() + value.denominator.bit_length()) // 2)
    scaled = isqrt(int(value * Fraction(2) ** shift))
    return float(Fraction(scaled) / Fraction(2) ** (shift // 2))


def _in_one_unit(A: NDArray, begin: list[Any]) -> tuple[NDArray, list[int], Fraction]:
    """(V, w, unit) with A = V·unit and begin = w·unit, V and w Python's integers."""
    if A.dtype == object:
        scale = Fraction(1, lcm(*(value.denominator for value in A.flat)))
    else:
        integers, e = whole(A)
        scale = Fraction(2) ** e
    finer = lcm(*((value / scale).denominator for value in begin))
    V = np.empty(A.shape, dtype=object)
    V[...] = integers * finer if A.dtype != object else [[int(value / scale * finer) for value in row] for row in A]
    return V, [int(value / scale * finer) for value in begin], scale / finer


def _square(values: Sequence[Any]) -> Any:
    return sum(map(mul, values, values))


def _rational(name: str, value: Number) -> Fraction:
    exact = number(value)
    if not isinstance(exact, Rational):
        raise InvalidParameterType(name, value, "a rational number")
    return Fraction(exact)
