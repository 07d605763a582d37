"""From floats that are nearly right to a certificate that is: round to few bits, check exactly, take more bits; solve for
the weights of the rows named, check exactly, drop rows that are not needed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import unit_floats, whole
from rosenblatt.exact.reading import Matrix, dense
from rosenblatt.exact.solve import dependence

_LADDER = (4, 8, 16, 26, 40)


def interior(A: Matrix, x: NDArray, shift: NDArray | None = None) -> Interior | None:
    """A point near x with positive products, of as few bits as will do; None if neither x nor a rounding of it is one.

    With a `shift`, the point is x · 2^shift: columns of different sizes are best rounded before they are given them.
    """
    x = np.asarray(x, dtype=np.float64)
    largest = np.abs(x).max(initial=0.0)
    if not 0 < largest < np.inf:
        return None
    unit = np.ldexp(x, -int(np.frexp(largest)[1]))  # the largest entry is now in [½, 1)
    powers = [0] * len(x) if shift is None else [int(s) for s in shift]
    for bits in _LADDER:
        rounded = np.round(np.ldexp(unit, bits))
        if rounded.any() and _promising(A, rounded, powers):
            point = _point(rounded.astype(np.int64).tolist(), powers)
            if point.verify(A):
                return point
    numbers, _ = whole(unit)
    point = _point(numbers.tolist(), powers)
    return point if point.verify(A) else None


def _promising(A: Matrix, point: NDArray, powers: list[int]) -> bool:
    """Whether floats see no product that is clearly negative: a look that costs little and saves most exact checks."""
    if A.dtype == object:
        return True
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = np.ldexp(point, powers)
        least = (A @ x).min()
    return not least < -1e-6 * np.abs(x).max()


def _point(numbers: Sequence[int], powers: Sequence[int]) -> Interior:
    pairs = list(zip(numbers, powers, strict=True))
    low = min((p for v, p in pairs if v), default=0)
    return Interior(tuple(Fraction(int(v) << (p - low)) if v else Fraction(0) for v, p in pairs))


def combination(A: Matrix, rows: Sequence[int], weights: NDArray | None = None, until: float = inf) -> Combination | None:
    """A combination of some of these rows, as few as depend on one another; None if none has positive weights.

    `weights`, nearly right, say which rows to drop first when the rows have more than one dependence.
    """
    rows = [int(i) for i in rows]
    near = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    part = dense(A[rows])
    while rows:
        scale = np.abs(part).max(axis=1)
        if not scale.all():
            return Combination((rows[int(np.argmin(scale))],), (1,))
        answer = dependence(part, until)
        if answer is not None:
            kept = sorted((i, value) for i, value in zip(rows, answer, strict=True) if value)
            if all(value > 0 for _, value in kept):
                return Combination(tuple(i for i, _ in kept), tuple(value for _, value in kept))
            return None
        keep = _fewer(part, near)
        if keep is None:
            return None
        rows = [i for i, stays in zip(rows, keep[0], strict=True) if stays]
        part, near = part[keep[0]], keep[1][keep[0]]
    return None


def _fewer(part: NDArray, near: NDArray) -> tuple[NDArray, NDArray] | None:
    """(rows to keep, new weights): move along a dependence until a weight is zero (Carathéodory); None if there is none."""
    scaled = unit_floats(part) if part.dtype == object else part / np.abs(part).max(axis=1, keepdims=True)
    _, s, V = np.linalg.svd(scaled.T)
    rank = int((s > 1e-9 * s[0]).sum())
    if rank >= len(part):
        return None
    direction = V[-1]
    if direction.max() <= 0:
        direction = -direction
    ratio = np.where(direction > 1e-12, near / np.where(direction > 1e-12, direction, 1.0), np.inf)
    out = int(np.argmin(ratio))
    if ratio[out] == np.inf:
        return None
    moved = np.maximum(near - ratio[out] * direction, 0.0)
    keep = np.ones(len(part), dtype=bool)
    keep[out] = False
    return keep, moved
