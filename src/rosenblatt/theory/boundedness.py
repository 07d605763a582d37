"""How long the perceptron's weights can become, on any finite data and in any order. The constant depends on how nearly
dependent independent rows are; all sets of them are looked at, so this is for few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, islice
from math import comb, hypot, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, NumericOverflow
from rosenblatt.exact.elimination import echelon
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.feasibility.programs import near_float
from rosenblatt.theory import bounds
from rosenblatt.theory.cycles import Number, exact_rows, is_rational
from rosenblatt.theory.signed import read_weights

_SETS = 200_000  # of rows that are looked at, at most
_AT_ONCE = 4096
_CLEAR = 1e-9  # a singular value above this part of the radius is certainly not zero
_ROUNDING = 1e-12


class LengthBound(NamedTuple):
    """No weights of any run are longer than `bound`.

    Attributes
    ----------
    bound : float
        The largest ‖w‖ that is possible, or more; infinity where floats are too small for it.
    radius : float
        R, the length of the longest row.
    spreads : tuple of float
        For r = 1, …, rank the least singular value of any r independent rows.

    Examples
    --------
    >>> from rosenblatt.theory import length_bound
    >>> found = length_bound([[3, 4], [4, -3]], [1, -1], constant=0)
    >>> round(found.bound, 6), round(found.radius, 6), [round(spread, 6) for spread in found.spreads]
    (236.27417, 5.0, [5.0, 5.0])
    """

    bound: float
    radius: float
    spreads: tuple[float, ...]


def length_bound(
    X: MatrixLike,
    y: ArrayLike,
    *,
    constant: Number = 1.0,
    delta: float = 0.0,
    rate: float = 1.0,
    start: Sequence[float] | None = None,
) -> LengthBound:
    """Bound the length of the perceptron's weights on these rows for ever, in any order, separable or not.

    The bound is `bounds.boundedness`, where the proof is. It looks at all sets of independent rows, whose number is
    exponential in the rank, and grows like (R/σ)^((k + 1)!/2): it is finite, not sharp.

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
    y : (rows,) array
        Two labels; without a constant feature also one.
    constant : number, default=1.0
        κ, the constant feature, last; 0 for none.
    delta, rate : float, default=0 and 1
        Rows with ⟨w, a⟩ ≤ δ move w by rate·a.
    start : sequence of floats, optional
        The weights at the start; 0 by default.

    Returns
    -------
    LengthBound

    Raises
    ------
    InvalidData
        If there are too many sets of rows, or rows that are so nearly dependent that floats cannot tell how nearly.

    Examples
    --------
    The rows 1 and −2, and exclusive or, whose rows with the constant have rank 3:

    >>> from rosenblatt.theory import length_bound
    >>> round(length_bound([[1], [-2]], [1, 1], constant=0).bound, 6)
    2.0
    >>> found = length_bound([[0, 0], [0, 1], [1, 0], [1, 1]], [-1, 1, 1, -1])
    >>> len(found.spreads), found.bound < 1e14
    (3, True)
    """
    A = exact_rows(X, y, constant)
    if not is_rational(A):
        raise InvalidData("X must hold rational numbers: whether rows depend on one another is decided exactly")
    rows = _different([[Fraction(value) for value in row] for row in A.tolist()])
    floats = np.array([[near_float(value) for value in row] for row in rows]).reshape(-1, A.shape[1])
    radius = max(map(hypot, *floats.T), default=0.0) * (1 + _ROUNDING)
    if not isfinite(radius):
        raise NumericOverflow("the length of a row of X is too large for floats", hint="scale X down")
    rank = len(echelon(rows, A.shape[1]).pivots)
    sets = sum(comb(len(rows), r) for r in range(1, rank + 1))
    if sets > _SETS:
        raise InvalidData(
            f"X must have at most {_SETS:,} sets of up to {rank} different rows, as each is looked at; got {sets:,}",
            hint="take fewer rows or features",
        )
    spreads = tuple(_spread(rows, floats, r, radius) for r in range(1, rank + 1))
    length = 0.0 if start is None else hypot(*read_weights("start", start, A.shape[1]))
    bound = bounds.boundedness(radius, spreads, delta=delta, rate=rate, start=length * (1 + _ROUNDING))
    return LengthBound(bound * (1 + _ROUNDING), radius, spreads)


def _different(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """The rows that are not zero, each direction and length once: a row and its opposite depend on others alike."""
    kept: dict[tuple[Fraction, ...], list[Fraction]] = {}
    for row in rows:
        sign = next((1 if value > 0 else -1 for value in row if value), 0)
        if sign:
            kept.setdefault(tuple(sign * value for value in row), row)
    return list(kept.values())


def _spread(rows: list[list[Fraction]], floats: NDArray, r: int, radius: float) -> float:
    """The least singular value of any r independent rows, or a little less."""
    least = np.inf
    for chosen in _chunks(combinations(range(len(rows)), r)):
        values = np.linalg.svd(floats[chosen], compute_uv=False)
        lowest = values[:, -1] if values.shape[1] == r else np.zeros(len(values))  # more rows than columns depend
        clear = lowest > _CLEAR * radius
        least = min(least, float(lowest[clear].min(initial=np.inf)))
        for subset in chosen[~clear].tolist():
            if echelon([rows[i] for i in subset], floats.shape[1]).dependence is None:
                raise InvalidData(
                    f"the rows {subset} of the different ones are too nearly dependent for floats to bound",
                    hint="leave one of them out",
                )
    return least - _ROUNDING * radius


def _chunks(subsets: Iterator[tuple[int, ...]]) -> Iterator[NDArray]:
    while part := list(islice(subsets, _AT_ONCE)):
        yield np.array(part)
