"""Where nothing separates the data the perceptron never stops, and its weights stay bounded. If they ever come back to
where they were, the moves in between add up to zero: the rows, with the number of times each moved, are Gordan's
certificate.

On rational data in a fixed order they do come back: bounded weights on a lattice are finitely many. On other data they need
not, and cannot unless the rows have a combination with *integer* weights that is zero: {1, −√2} never repeats. The notes of
Waterloo CS489/698 ("if there is no separating hyperplane, then perceptron cycles") and of IIIT-H SMAI ("will eventually
repeat the same set of weights") state it for all data. In a random order weights recur on rational data, but no cycle does.

Boundedness: Minsky and Papert 1969 (the Waterloo notes print 1967), Block and Levin 1970, Amaldi and Hauser 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidParameter
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.reading import COUNT, MatrixLike
from rosenblatt.theory.walk import Number, Walk, exact_rows, is_rational, root


@dataclass(frozen=True)
class Cycle:
    """The weights came back: after `preperiod` epochs they are what they are again after every `period` epochs more.

    So nothing separates the data, and `combination` proves it: each row with the number of times it moved the weights in
    one period.
    """

    preperiod: int  # epochs before the cycle is entered
    period: int  # epochs, as few as there are
    updates: int  # in one period
    weights: tuple[Any, ...]  # where the cycle is entered, exactly; the intercept's last
    largest: float  # ‖w‖ never is larger, for ever
    combination: Combination


@dataclass(frozen=True)
class Converged:
    """An epoch without an update: the weights separate the data, and `interior` proves it."""

    epochs: int  # with the last, clean one
    updates: int
    largest: float
    interior: Interior


@dataclass(frozen=True)
class Mixture:
    """A mean of rows that is short, ‖Σ λᵢaᵢ‖ = `residual` with λ = weights / Σ weights: no unit vector has a larger margin.

    For ⟨u, Σ λᵢaᵢ⟩ is at least the least ⟨u, aᵢ⟩ and at most the length of the mean. A residual of 0 is a `Combination`.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    residual: float  # rounded up


@dataclass(frozen=True)
class NoRepeat:
    """Neither a repeat nor an epoch without an update, so far. `mixture` bounds the margin the data can have at most."""

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
    """What becomes of the perceptron on these rows, taken in their order again and again, without any rounding.

    Weights are compared at the ends of epochs by Brent's method (1980), which keeps one earlier weight vector and finds
    the least period p within 3·max(m, p) + 1 epochs, m the preperiod; m is then found by walking again.

    Parameters
    ----------
    X, y : the rows, and two labels for them. X may be an array of objects: integers and fractions of any size, or numbers
        of any type that adds, multiplies and compares exactly, with its like and with integers, and has a float.
    constant : κ, the constant feature, last; 0 for none.
    delta, rate, start : the perceptron's: rows with ⟨w, a⟩ ≤ δ move w by rate·a; weights to start from, else 0.
    max_epochs : after so many without an answer it is `NoRepeat`.

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
    """‖w‖ at the start and at the end of each epoch, of a walk without rounding: (epochs + 1,)."""
    walk = Walk(exact_rows(X, y, constant), delta=delta, rate=rate, start=start)
    found = [walk.length()]
    for _ in range(epochs):
        walk.epoch()
        found.append(walk.length())
    return np.array(found)


def mixture(X: MatrixLike, y: ArrayLike, counts: ArrayLike, *, constant: Number = 1.0) -> Mixture:
    """The mean of the rows weighted with non-negative integers, such as how often each moved the weights in any run.

    After t updates from 0 it is at most √((R² + 2δ/η)/t) long, in any order; after t updates of a run that
    never stops, at most a constant over t, since the weights stay bounded.

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
