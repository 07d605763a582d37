"""Where nothing separates the data the perceptron never stops, and its weights stay bounded. If they ever come back to
where they were, the moves in between add up to zero: the rows, with the number of times each moved, are Gordan's
certificate.

On rational data in a fixed order they do come back: bounded weights on a lattice are finitely many. On other data they need
not, and cannot unless the rows have a combination with *integer* weights that is zero: {1, −√2} never repeats. The notes of
Waterloo CS489/698 ("if there is no separating hyperplane, then perceptron cycles") and of IIIT-H SMAI ("will eventually
repeat the same set of weights") state it for all data. In a random order weights recur on rational data, but no cycle does.

Boundedness: Minsky and Papert 1969 (the Waterloo notes print 1967), Block and Levin 1970, Amaldi and Hauser 2005.

The perceptron's walk in numbers that do not round: ints, fractions, floats as the fractions they are, or any ordered
numbers that add and multiply exactly.

Rational rows are integers in one unit, and weights that start at integers in that unit stay there. After a mistake the next
is mostly near and is looked for row by row; farther on, whole windows are one product of floats, as long as no sum in it
can need more than the 53 bits a float has.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor, inf, isqrt, lcm, nextafter, sqrt
from numbers import Integral, Rational
from operator import add, mul
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, InvalidParameterType
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import whole
from rosenblatt.exact.reading import COUNT, NOT_NEGATIVE, POSITIVE, MatrixLike, dense
from rosenblatt.theory.signed import read, two_valued

__all__ = ["Converged", "Cycle", "Mixture", "NoRepeat", "find_cycle", "lengths", "mixture"]

Number: TypeAlias = Any  # int, Fraction, float, Decimal, or any type that adds, multiplies and compares exactly
DELTA = NOT_NEGATIVE._replace(advice="below 0, rows that are wrong would be passed over")
_EXACT = 2**53  # up to here every integer is a float


@dataclass(frozen=True)
class Cycle:
    """The weights came back: after `preperiod` epochs they are what they are again after every `period` epochs more.

    So nothing separates the data, and `combination` proves it.

    Attributes
    ----------
    preperiod, period : int
        Epochs before the cycle is entered, and epochs of the cycle, as few as there are.
    updates : int
        Updates in one period.
    weights : tuple
        Where the cycle is entered, exactly; the intercept's last.
    largest : float
        ‖w‖ never is larger, for ever.
    combination : Combination
        Each row with the number of times it moved the weights in one period.

    Examples
    --------
    >>> xor = find_cycle([[0, 0], [0, 1], [1, 0], [1, 1]], [-1, 1, 1, -1])
    >>> isinstance(xor, Cycle), xor.period, xor.combination.weights
    (True, 1, (1, 1, 1, 1))
    """

    preperiod: int
    period: int
    updates: int
    weights: tuple[Any, ...]
    largest: float
    combination: Combination


@dataclass(frozen=True)
class Converged:
    """An epoch without an update: the weights separate the data, and `interior` proves it.

    Attributes
    ----------
    epochs : int
        The number of epochs, with the last, in which there was no update.
    updates : int
        The number of updates.
    largest : float
        The largest ‖w‖ of the run.
    interior : Interior
        The proof that the weights separate the data.

    Examples
    --------
    >>> found = find_cycle([[2, 1], [1, 3], [-1, -2]], [1, 1, -1])
    >>> isinstance(found, Converged), found.epochs, found.updates, found.interior.x
    (True, 2, 1, (Fraction(2, 1), Fraction(1, 1), Fraction(1, 1)))
    """

    epochs: int
    updates: int
    largest: float
    interior: Interior


@dataclass(frozen=True)
class Mixture:
    """A mean of rows that is short, ‖Σ λᵢaᵢ‖ = `residual` with λ = weights / Σ weights: no unit vector has a larger margin.

    For ⟨u, Σ λᵢaᵢ⟩ is at least the least ⟨u, aᵢ⟩ and at most the length of the mean. A residual of 0 is a `Combination`.

    Attributes
    ----------
    rows : tuple of int
        The numbers of the rows.
    weights : tuple of int
        Their weights.
    residual : float
        The length of the mean, rounded up.

    Examples
    --------
    >>> found = mixture([[2], [3]], [1, -1], [3, 2], constant=0)
    >>> found.rows, found.weights, found.residual
    ((0, 1), (3, 2), 0.0)
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    residual: float


@dataclass(frozen=True)
class NoRepeat:
    """Neither a repeat nor an epoch without an update, so far. `mixture` bounds the margin the data can have at most.

    Attributes
    ----------
    epochs, updates : int
        The number of epochs and of updates.
    largest : float
        The largest ‖w‖ of the run.
    weights : tuple
        The last weights, exactly.
    mixture : Mixture
        A mean of rows that bounds the margin.

    Examples
    --------
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> found = find_cycle(X, [-1, 1, 1, -1], start=[9, 9, 9], max_epochs=2)
    >>> isinstance(found, NoRepeat), found.epochs, found.weights
    (True, 2, (Fraction(7, 1), Fraction(7, 1), Fraction(5, 1)))
    """

    epochs: int
    updates: int
    largest: float
    weights: tuple[Any, ...]
    mixture: Mixture


def find_cycle(
    X: MatrixLike,
    y: ArrayLike,
    *,
    constant: Number = 1.0,
    delta: Number = 0,
    rate: Number = 1,
    start: Sequence[Number] | None = None,
    max_epochs: int = 10_000,
) -> Cycle | Converged | NoRepeat:
    """Find out what becomes of the perceptron on these rows, taken in their order again and again, without any rounding.

    Weights are compared at the ends of epochs by Brent's method (1980), which keeps one earlier weight vector and finds
    the least period p within 3·max(m, p) + 1 epochs, m the preperiod; m is then found by walking again.

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
        It may be an array of objects: integers and fractions of any size, or numbers of any type that adds, multiplies and
        compares exactly, with its like and with integers, and has a float.
    y : (rows,) array
        Two labels; without a constant feature also one.
    constant : number, default=1.0
        κ, the constant feature, last; 0 for none.
    delta, rate : number, default=0 and 1
        Rows with ⟨w, a⟩ ≤ δ move w by rate·a.
    start : sequence of numbers, optional
        The weights to start from; 0 by default.
    max_epochs : int, default=10_000
        After so many epochs without an answer it is `NoRepeat`.

    Returns
    -------
    Cycle, Converged or NoRepeat
        The weights came back, or an epoch passed without an update, or neither happened yet.

    Examples
    --------
    Exclusive or:

    >>> from rosenblatt.theory.cycles import find_cycle
    >>> found = find_cycle([[0, 0], [0, 1], [1, 0], [1, 1]], [-1, 1, 1, -1])
    >>> found.preperiod, found.period, found.updates
    (0, 1, 4)
    >>> found.combination
    Combination(rows=(0, 1, 2, 3), weights=(1, 1, 1, 1))
    """
    COUNT.check("max_epochs", max_epochs)
    A = exact_rows(X, y, constant)
    walk = Walk(A, delta=delta, rate=rate, start=start)
    earlier, counts, period, power = walk.w, [0] * len(A), 0, 1
    while walk.epochs < max_epochs:
        if not walk.epoch():
            return Converged(walk.epochs, walk.updates, walk.longest(), Interior(walk.weights()))
        period += 1
        if walk.w == earlier:
            combination = _cycle_combination(A, [now - then for now, then in zip(walk.counts, counts, strict=True)])
            preperiod, weights = _enter_cycle(walk, period)
            return Cycle(preperiod, period, sum(combination.weights), weights, walk.longest(), combination)
        if period == power:
            earlier, counts, period, power = walk.w, walk.counts.copy(), 0, 2 * power
    return NoRepeat(walk.epochs, walk.updates, walk.longest(), walk.weights(), _mixture(A, walk.counts))


def lengths(
    X: MatrixLike,
    y: ArrayLike,
    *,
    epochs: int,
    constant: Number = 1.0,
    delta: Number = 0,
    rate: Number = 1,
    start: Sequence[Number] | None = None,
) -> NDArray:
    """Return ‖w‖ at the start and at the end of each epoch, of a walk without rounding: (epochs + 1,).

    Parameters
    ----------
    X, y, constant, delta, rate, start
        As in `find_cycle`.
    epochs : int
        How many epochs to walk.

    Returns
    -------
    (epochs + 1,) array

    Examples
    --------
    On exclusive or, which nothing separates, the weights stay bounded:

    >>> lengths([[0, 0], [0, 1], [1, 0], [1, 1]], [-1, 1, 1, -1], epochs=3, start=[0, 0, 2]).round(2)
    array([2.  , 1.41, 1.41, 1.41])
    """
    walk = Walk(exact_rows(X, y, constant), delta=delta, rate=rate, start=start)
    found = [walk.length()]
    for _ in range(epochs):
        walk.epoch()
        found.append(walk.length())
    return np.array(found)


def mixture(X: MatrixLike, y: ArrayLike, counts: ArrayLike, *, constant: Number = 1.0) -> Mixture:
    """Return the mean of the rows weighted with non-negative integers, such as how often each moved the weights in any run.

    After t updates from 0 it is at most √((R² + 2δ/η)/t) long, in any order; after t updates of a run that
    never stops, at most a constant over t, since the weights stay bounded.

    Parameters
    ----------
    X, y, constant
        As in `find_cycle`.
    counts : (rows,) array of int
        The weights, not all of them 0.

    Returns
    -------
    Mixture

    Examples
    --------
    >>> mixture([[2], [3]], [1, -1], [2, 1], constant=0).residual < 1 / 3 + 1e-15  # (2·2 − 3) / 3
    True
    """
    A = exact_rows(X, y, constant)
    counts = np.asarray(counts)
    whole = counts.dtype.kind in "iu" or all(isinstance(count, Integral) for count in counts.flat)
    if counts.shape != (len(A),) or not whole or min(counts) < 0 or not any(counts):
        raise InvalidParameter("counts", counts, f"{len(A)} integers of at least 0, not all of them 0")
    return _mixture(A, counts)


def _enter_cycle(walk: Walk, period: int) -> tuple[int, tuple[Any, ...]]:
    """(the epochs after which the cycle is entered, the weights there): where two walks meet, one a period ahead."""
    ahead, behind = walk.again(), walk.again()
    for _ in range(period):
        ahead.epoch()
    while ahead.w != behind.w:
        ahead.epoch()
        behind.epoch()
    return behind.epochs, behind.weights()


def _cycle_combination(A: NDArray, counts: Sequence[int]) -> Combination:
    moved = [i for i, count in enumerate(counts) if count]
    found = Combination(tuple(moved), tuple(counts[i] for i in moved))
    if is_rational(A):
        wrong = found.refutation(A)
    else:
        wrong = None if all(total == 0 for total in _sum(A, counts)) else "they do not add up to zero"
    if wrong is not None:
        raise ArithmeticError(f"the weights came back, but of the moves in between {wrong}; do the numbers of X round?")
    return found


def _mixture(A: NDArray, counts: Sequence[int] | NDArray) -> Mixture:
    moved = [i for i, count in enumerate(counts) if count]
    weights = [int(counts[i]) for i in moved]
    square = sum(total * total for total in _sum(A, counts))
    residual = root(square, Fraction(1, sum(weights)))
    return Mixture(tuple(moved), tuple(weights), nextafter(residual, inf) if residual else 0.0)


def _sum(A: NDArray, counts: Sequence[int] | NDArray) -> list[Any]:
    """Σ countsᵢ·aᵢ, in the numbers of A; floats as the fractions they are."""
    totals: list[Any] = [0] * A.shape[1]
    for i, count in enumerate(counts):
        if count:
            for j, value in enumerate(A[i].tolist()):
                totals[j] = totals[j] + (Fraction(value) if isinstance(value, float) else value) * int(count)
    return totals


class Walk:
    """Weights, and the rows in turn: each whose product with them is at most δ moves them by `rate` times itself.

    Parameters
    ----------
    A : (rows, features) array
        Rows as `exact_rows` returns them.
    delta, rate : number, default=0 and 1
        δ and η, rational.
    start : sequence of numbers, optional
        Weights, one for each column; 0 if not given.

    Examples
    --------
    >>> walk = Walk(exact_rows([[2, 1], [1, 3], [-1, -2]], [1, 1, -1]))
    >>> walk.epoch(), walk.epoch()
    (1, 0)
    >>> [int(value) for value in walk.weights()], walk.counts
    ([2, 1, 1], [1, 0, 0])
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
    """Return the rows of X times the sign of their label, the constant feature last (none if 0).

    Each number is as it was given.

    Arrays of floats, and sparse ones, give float64; integers, lists and arrays of objects give objects.

    Parameters
    ----------
    X, y, constant
        As in `find_cycle`.

    Returns
    -------
    (rows, features) array

    Examples
    --------
    >>> exact_rows([[2, 1], [10**20, 3]], [1, -1]).tolist()
    [[2, 1, Fraction(1, 1)], [-100000000000000000000, -3, Fraction(-1, 1)]]
    """
    kind = object if isinstance(X, list | tuple) else None
    rows = sp.csr_array(X).toarray() if sp.issparse(X) else np.asarray(X, dtype=kind)
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
    """Return the value as an exact number: an int or a fraction if it is rational, itself if its type has an order.

    Parameters
    ----------
    value : number
        The value.

    Returns
    -------
    int, Fraction or the type of the value

    Raises
    ------
    InvalidData, InvalidDataType
        If it is not finite, or does not compare.

    Examples
    --------
    >>> number(3), number(0.5), str(number(0.1))
    (3, Fraction(1, 2), '3602879701896397/36028797018963968')
    """
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
    """Return whether all numbers of an array are rational; those of an array of floats are.

    Parameters
    ----------
    A : array
        The numbers.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_rational(np.array([[0.5, 2.0]])), is_rational(np.array([[Fraction(1, 3)]]))
    (True, True)
    """
    return A.dtype != object or all(isinstance(value, Rational) for value in A.flat)


def root(square: Number, unit: Fraction = Fraction(1)) -> float:
    """Return unit · √square, rounded once; of numbers that are not rational, as well as their floats allow.

    Parameters
    ----------
    square : number
        What to take the root of, at least 0.
    unit : Fraction, default=1
        A factor.

    Returns
    -------
    float

    Examples
    --------
    >>> root(2), root(10**400, Fraction(1, 10**200))
    (1.4142135623730951, 1.0)
    """
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
