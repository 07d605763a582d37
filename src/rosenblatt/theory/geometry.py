"""How far a point is from a hyperplane, how far apart a hyperplane holds two classes, and how far the best one does.

The margin of an example is its distance to the hyperplane ⟨w, x⟩ + b = 0, negative on the wrong side. The margin of a set
is that of its worst example. γ, the margin of a set without a hyperplane given, is that of the best one; and there are
three of it, for the intercept may be absent, cost its square as one more coordinate of w does, or cost nothing:

    gamma_origin    max of min y·⟨w, x⟩ / ‖w‖                       the distance of the origin to the hull of the y·x
    gamma_padded    max of min y·(⟨w, x⟩ + κω) / √(‖w‖² + ω²)        the same for the y·(x, κ): the one in a mistake bound
    gamma_affine    max of min y·(⟨w, x⟩ + b) / ‖w‖                  half the distance between the hulls of the classes

They rise in this order, the second from the first (κ → 0) to the third (κ → ∞), and it is at least gamma_affine / √(1 +
b²/κ²), with the b of the third. γ is never just a number here, but a bracket that a separator proves from below and a
combination of rows from above, in exact arithmetic.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isqrt, nextafter
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.exact.certificates import Combination, as_floats, columns_as_rows, entries
from rosenblatt.exact.dyadic import cleared, fractions, products
from rosenblatt.exact.rounding import combination
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.theory.alternative import Open, decide
from rosenblatt.theory.nearest import MOST, Cloud, Found, in_fewer_dimensions, in_floats, in_integers
from rosenblatt.theory.signed import Signed, numbers, read, two_valued

_AIM = 1e-9  # a relative gap that is as good as none
_PROMISE = 1e-6  # a larger one is a warning
_CHEAP, _DEAR = 50, 250  # rows of a support in long arithmetic: a second, a minute or two
_DEAREST = 500  # rows of a combination that is made exact: as long
_SECONDS = 60.0  # for a verdict where no width was found


class NotSeparable(ValueError):
    """No hyperplane of the kind asked for has all examples on their right side.

    `certificate` proves it: rows of y·x (of y·(x, κ), or y·(x, 1) if the intercept is free) that add up to zero. It is None
    where the search gave up before it could tell; the message says so.
    """

    def __init__(self, message: str, certificate: Combination | None = None):
        super().__init__(message)
        self.certificate = certificate


class TooLarge(ValueError):
    """The data have too many rows and too many dimensions for their margin to be looked for."""


@dataclass(frozen=True)
class Margin:
    """γ of two classes: lower ≤ γ ≤ upper, with what proves both.

    lower : the margin of the hyperplane ⟨normal, x⟩ + intercept = 0, rounded down.
    upper : the length of the combination of the signed rows `rows` with `weights`, over the sum of the weights, rounded up.
        No unit vector has a larger product with all of these rows than with their average. If the intercept is free, both
        classes have the same sum of weights, so that it cancels.
    constant : κ; 0 for no intercept, infinite for a free one.
    """

    lower: float
    upper: float
    constant: float
    normal: tuple[Fraction, ...] = field(repr=False)
    intercept: Fraction = field(repr=False)
    rows: tuple[int, ...] = field(repr=False)
    weights: tuple[int, ...] = field(repr=False)

    @property
    def w(self) -> NDArray:
        """The normal in floats, of length 1."""
        w = as_floats(self.normal)
        return w / row_lengths(w[None])[0]

    @property
    def b(self) -> float:
        """The intercept that goes with `w`."""
        both = as_floats((*self.normal, self.intercept))
        return float(both[-1] / row_lengths(both[None, :-1])[0])

    @property
    def separator(self) -> NDArray:
        """The normal with the weight of the constant feature, if there is one, as its last entry; of length 1."""
        last = (self.intercept / Fraction(self.constant),) if 0 < abs(self.constant) < inf else ()
        u = as_floats((*self.normal, *last))
        return u / row_lengths(u[None])[0]

    @property
    def gap(self) -> float:
        """(upper − lower) / upper: 0 if γ is known to the last bit, above 1 if it is not known to be positive."""
        return (self.upper - self.lower) / self.upper if self.upper else 0.0

    def refutation(self, X: Any, y: Any) -> str | None:
        """None if both bounds are true of these examples, computed anew; otherwise a sentence that says why not."""
        data = read(X, y, self.constant if self.constant < inf else 0.0)
        n = data.A.shape[0]
        if len(self.normal) != data.features:
            return f"the normal has {len(self.normal)} coordinates, the examples have {data.features} features"
        if not all(isinstance(value, Fraction) for value in (*self.normal, self.intercept)):
            return "the normal and the intercept must be Fractions"
        if not any(self.normal):
            return "a normal of zeros is of no hyperplane"
        if not self.constant and self.intercept:
            return "there is an intercept, which a hyperplane through the origin has not"
        k = len(self.rows)
        if not k or k != len(self.weights) or not all(type(i) is int and 0 <= i < n for i in self.rows):
            return f"it needs rows from 0 to {n - 1} and a weight for each; got {k} rows and {len(self.weights)} weights"
        if not all(type(weight) is int and weight > 0 for weight in self.weights):
            return "the weights must be positive integers"
        surplus = sum([int(data.y[i]) * weight for i, weight in zip(self.rows, self.weights, strict=True)])
        if self.constant == inf and surplus:
            return "the two classes have different sums of weights, so an intercept would not cancel"
        lower, upper = _lower(data, self.constant, self.normal, self.intercept), _upper(data, self.rows, self.weights)
        if not self.lower <= lower:
            return f"the hyperplane has the margin {lower:.17g}, not {self.lower:.17g}"
        if not self.upper >= upper:
            return f"the combination shows γ ≤ {upper:.17g}, not {self.upper:.17g}"
        return None

    def verify(self, X: Any, y: Any) -> bool:
        """Whether both bounds are true of these examples, in exact arithmetic, believing nothing but the data."""
        return self.refutation(X, y) is None


def projection(u: Any, onto: Any) -> NDArray:
    """The multiple of the vector `onto` that is nearest to u: ⟨u, v⟩/⟨v, v⟩ · v. Rows of vectors u give rows.

    >>> projection([3.0, 4.0], onto=[2.0, 0.0]).tolist()
    [3.0, 0.0]
    """
    v = _vector(onto, "onto")
    v = v / np.abs(v).max()
    return np.multiply.outer(np.asarray(u, dtype=np.float64) @ v / (v @ v), v)


def distance(X: Any, w: Any, b: float = 0.0) -> Any:
    """The distance of a point, or of each row of points, to the hyperplane ⟨w, x⟩ + b = 0: |⟨w, x⟩ + b| / ‖w‖.

    >>> float(distance([3.0, 4.0], w=[0.0, 2.0], b=-2.0))
    3.0
    """
    return abs(_offset(X, w, b))


def margins(X: Any, y: Any, w: Any, b: float = 0.0) -> NDArray:
    """The margin of each example: its distance to the hyperplane ⟨w, x⟩ + b = 0, negative on the wrong side.

    Their minimum is the margin of the set. Times ‖w‖ they are the functional margins y·(⟨w, x⟩ + b). y holds −1 and +1, or
    any two labels of which the second is the positive one.

    >>> margins([[3.0, 4.0], [0.0, 0.0], [1.0, 1.0]], [1, -1, -1], w=[0.0, 2.0], b=-2.0).tolist()
    [3.0, 1.0, -0.0]
    """
    X = numbers(X)
    y = np.asarray(y)
    signed = y.shape == (X.shape[0],) and y.dtype.kind in "iuf" and np.isin(y, (-1, 1)).all()
    signs = y.astype(np.float64) if signed else two_valued(y, X.shape[0])[0]
    return signs * _offset(X, w, b)


def radius(X: Any, constant: float = 0.0) -> float:
    """R, the length of the longest row (x, κ), rounded up: how far the data reach from the origin, not from their mean.

    The R of a mistake bound is that of the rows that the learner sees: with its constant feature κ, if it has one. So
    with `gamma_padded(X, y)` goes `radius(X, constant=1.0)`; `radius(X)` goes with `gamma_origin(X, y)`.

    >>> radius([[3.0, 4.0], [1.0, 0.0]])
    5.0
    """
    X = numbers(X)
    if np.ndim(constant):
        raise TypeError(f"constant must be one number, the constant feature κ; got {constant!r:.60}. R needs no labels")
    if not np.isfinite(constant):
        raise ValueError(f"the constant feature must be a finite number; got {constant!r}. A free intercept has no radius")
    norms = row_lengths(X)
    longest = np.flatnonzero(norms >= norms.max() * (1 - 1e-12 * X.shape[1]))
    if len(longest) > 1:
        longest = np.unique(X[longest].toarray() if sp.issparse(X) else X[longest], axis=0, return_index=True)[1]
        longest = np.flatnonzero(norms >= norms.max() * (1 - 1e-12 * X.shape[1]))[longest]
    squares = [sum((Fraction(value) ** 2 for _, value in entries(X, int(i))), Fraction(constant) ** 2) for i in longest]
    return _root(max(squares), up=True)


def gamma_origin(X: Any, y: Any) -> Margin:
    """γ of hyperplanes through the origin, y·⟨w, x⟩ / ‖w‖: the distance from the origin to the hull of the y·x.

    1/γ² is the least ‖w‖² with all y·⟨w, x⟩ ≥ 1. One class alone is a question too: whether some half-space holds it.

    >>> X, y = [[2.0, 1.0], [2.0, -1.0], [-3.0, 5.0]], [1, 1, -1]
    >>> margin = gamma_origin(X, y)
    >>> margin.lower <= 2 <= margin.upper, margin.gap < 1e-15, margin.w.tolist(), margin.verify(X, y)
    (True, True, [1.0, 0.0], True)
    """
    return _gamma(X, y, 0.0)


def gamma_padded(X: Any, y: Any, constant: float = 1.0) -> Margin:
    """γ of hyperplanes whose intercept κω is one more coordinate: y·(⟨w, x⟩ + κω) / √(‖w‖² + ω²), with κ = `constant`.

    It is this γ, with `radius(X, constant)`, that the mistake bound of a learner with a constant feature speaks of. The
    notes of CMU 10-607 say that multiplying all points by 100 changes nothing; with the constant left as it is, it does.
    """
    if not 0 < abs(constant) < inf:
        raise ValueError(
            f"the constant feature must be a number other than 0; got {constant!r}: gamma_origin has no intercept, "
            "gamma_affine a free one"
        )
    return _gamma(X, y, float(constant))


def gamma_affine(X: Any, y: Any) -> Margin:
    """γ of all hyperplanes, y·(⟨w, x⟩ + b) / ‖w‖: half the distance between the hulls of the two classes (hard-margin SVM).

    >>> gamma_affine([[0.0], [1.0], [5.0]], ["no", "no", "yes"])
    Margin(lower=2.0, upper=2.0, constant=inf)
    """
    return _gamma(X, y, inf)


def gamma_seen(X: Any, y: Any, constant: float) -> Margin:
    """γ of the rows as a learner sees them: `gamma_padded` with its constant feature, `gamma_origin` if it has none."""
    return gamma_padded(X, y, constant) if constant else gamma_origin(X, y)


def _gamma(X: Any, y: Any, constant: float) -> Margin:
    data = read(X, y, constant if constant < inf else 0.0)
    if constant == inf:
        two_valued(y, len(data.y))
    with np.errstate(all="ignore"):  # what overflows is of no use, and nothing below trusts it
        cloud = Cloud(data.A, data.y, free=constant == inf)
        if not cloud.norms.all() and constant == 0:
            _refuse(data, constant, [int(np.argmin(cloud.norms))], [1])
        _decided(data, constant, [], "look")
        found = _nearest(cloud)
        best = _bracket(data, constant, found)
        for guard in (256, 1024, 4096):
            if best is not None and best.gap <= _AIM:
                break
            if not found.separates and (proof := _combination(data, constant, found.rows, found.weights)):
                _refuse(data, constant, proof.rows, proof.weights)
            kept_promise = best is not None and best.gap <= _PROMISE
            longer = in_integers(cloud, found, guard, most=_CHEAP if kept_promise else _DEAR)
            if longer is None:
                break
            found = longer
            best = _tighter(best, _bracket(data, constant, found))
        if best is None or best.lower <= 0:
            best = _tighter(best, _decided(data, constant, cloud.first()))
    if best is None or best.lower <= 0:
        raise NotSeparable(
            f"{_kind(constant)} that separates the classes was found, nor a proof that there is none"
            + (f"; γ is at most {best.upper:.3g}" if best else "")
            + ". rosenblatt.theory.separability(X, y) decides"
        )
    if best.gap > _PROMISE:
        warnings.warn(
            f"γ is between {best.lower:.9g} and {best.upper:.9g}, a relative gap of {best.gap:.1g}: floats cannot tell "
            "more of so small a margin, and long integers would take too long, or did not help",
            RuntimeWarning,
            stacklevel=3,
        )
    return best


def _nearest(cloud: Cloud) -> Found:
    """The widest separator as far as floats can tell, looked for in as few dimensions as will do."""
    n, d = cloud.A.shape
    if min(n, d) > MOST:
        raise TooLarge(
            f"the widest margin of {n:,} rows in {d:,} dimensions needs dense arrays of the smaller number, squared; at "
            f"most {MOST:,} are allowed. rosenblatt.theory.separability(X, y) may still find a separator"
        )
    if n >= d:
        return in_floats(cloud)
    found = in_floats(Cloud(in_fewer_dimensions(cloud.A), cloud.y, cloud.free))
    if not found.w:
        return found
    w, _ = products(columns_as_rows(cloud.A[found.rows]), found.weights)  # the weights are the same: w is their sum
    return found._replace(w=w)


def _decided(data: Signed, constant: float, rows: list[int], method: str = "auto") -> Margin | None:
    """What a separator proves that was not looked for with an eye to its width, beside these rows; None if none was found.
    Where there is none, that is the answer."""
    found = decide(_with_intercept(data, constant), method=method, max_seconds=_SECONDS)
    if isinstance(found, Open):
        return None
    certificate = found.certificate
    if isinstance(certificate, Combination):
        _refuse(data, constant, certificate.rows, certificate.weights)
    w = cleared(certificate.x)[: data.A.shape[1]]
    return _bracket(data, constant, Found(w, rows, [1] * len(rows), True))


def _bracket(data: Signed, constant: float, found: Found) -> Margin | None:
    """What an answer proves; None if it has no direction."""
    if not any(found.w):
        return None
    w = [Fraction(value) for value in found.w]
    size = max(abs(value) for value in found.w).bit_length()
    w = [value / 2**size for value in w]
    if constant == inf:
        values, e = products(data.A, found.w)
        low = {s: min(value for value, label in zip(values, data.y, strict=True) if label == s) for s in (1.0, -1.0)}
        b = Fraction(low[-1.0] - low[1.0], 2) * Fraction(2) ** (e - size)
    elif constant:
        b = w.pop() * Fraction(constant)
    else:
        b = Fraction(0)
    kept = [(i, weight) for i, weight in zip(found.rows, found.weights, strict=True) if weight > 0]
    rows, weights = tuple(i for i, _ in kept), tuple(weight for _, weight in kept)
    return Margin(_lower(data, constant, w, b), _upper(data, rows, weights), constant, tuple(w), b, rows, weights)


def _tighter(one: Margin | None, other: Margin | None) -> Margin | None:
    """The better half of each."""
    if one is None or other is None:
        return one or other
    low, high = max(one, other, key=lambda m: m.lower), min(one, other, key=lambda m: m.upper)
    return Margin(low.lower, high.upper, low.constant, low.normal, low.intercept, high.rows, high.weights)


def _lower(data: Signed, constant: float, normal: Any, intercept: Fraction) -> float:
    """The least margin of this hyperplane, rounded down."""
    free = constant == inf
    last = [] if free or not constant else [intercept / Fraction(constant)]
    w = cleared(fractions([*normal, *last, intercept]))
    values, e = products(data.A, w[:-1])
    if free:  # the products lack y·b
        unit = Fraction(2) ** e
        least = min(
            min(value for value, label in zip(values, data.y, strict=True) if label == s) * unit + int(s) * w[-1]
            for s in (1.0, -1.0)
        )
    else:
        least = min(values) * Fraction(2) ** e
    square = least * least / sum(value * value for value in w[:-1])
    return _root(square, up=False) if least > 0 else -_root(square, up=True)


def _upper(data: Signed, rows: Any, weights: Any) -> float:
    """The length of the weighted mean of these rows, rounded up."""
    sums, e = products(columns_as_rows(data.A[list(rows)]), list(weights))
    return _root(Fraction(sum(value * value for value in sums)) * Fraction(4) ** e / sum(weights) ** 2, up=True)


def _root(square: Fraction, up: bool) -> float:
    """The float next to the square root, above or below; the root itself if it is a float."""
    if not square:
        return 0.0
    bits = max(0, 140 + square.denominator.bit_length() - square.numerator.bit_length())
    bits += bits % 2
    scaled = (square.numerator << bits) // square.denominator
    floor = isqrt(scaled)
    exact = Fraction(floor, 1 << (bits // 2))
    if up and exact * exact != square:
        exact = Fraction(floor + 1, 1 << (bits // 2))
    try:
        near = float(exact)
    except OverflowError:
        return inf if up else float(np.finfo(np.float64).max)
    if up:
        return near if Fraction(near) >= exact else nextafter(near, inf)
    return near if Fraction(near) <= exact else nextafter(near, 0.0)


def _combination(data: Signed, constant: float, rows: Any, weights: Any) -> Combination | None:
    kept = [(i, weight) for i, weight in zip(rows, weights, strict=True) if weight > 0]
    if len(kept) > _DEAREST:
        return None
    A = _with_intercept(data, constant)
    near = as_floats([Fraction(weight) for _, weight in kept])
    found = combination(A, [i for i, _ in kept], near.tolist())
    return found if found is not None and found.verify(A) else None


def _with_intercept(data: Signed, constant: float) -> Any:
    if constant < inf:
        return data.A
    if sp.issparse(data.A):
        return sp.csr_array(sp.hstack([data.A, sp.csr_array(data.y[:, None])]))
    return np.hstack([data.A, data.y[:, None]])


def _refuse(data: Signed, constant: float, rows: Any, weights: Any) -> NoReturn:
    rows = [int(i) for i in rows]
    some = ", ".join(map(str, rows[:6])) + (", …" if len(rows) > 6 else "")
    why = (
        f"example {rows[0]} is the origin, whose margin is 0"
        if len(rows) == 1
        else f"{len(rows)} examples, with their signs and positive weights, add up to zero ({some})"
    )
    raise NotSeparable(
        f"{_kind(constant)} separates the classes: {why}. rosenblatt.theory.separability(X, y) says more",
        Combination(tuple(rows), tuple(int(weight) for weight in weights)),
    )


def _kind(constant: float) -> str:
    return "no hyperplane through the origin" if not constant else "no hyperplane"


def _offset(X: Any, w: Any, b: float) -> Any:
    w = _vector(w, "w")
    scale = np.abs(w).max()
    unit = w / scale
    return (X @ unit if sp.issparse(X) else np.asarray(X, dtype=np.float64) @ unit) / np.sqrt(unit @ unit) + b / (
        scale * np.sqrt(unit @ unit)
    )


def _vector(v: Any, name: str) -> NDArray:
    v = np.asarray(v, dtype=np.float64)
    if v.ndim != 1 or not np.isfinite(v).all() or not v.any():
        raise ValueError(f"{name} must be one vector of finite numbers, not all 0; got {v.tolist()!r:.60}")
    return v
