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
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isqrt, nextafter
from typing import NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.certificates import Certificate, Combination, as_floats, columns_as_rows, entries
from rosenblatt.exact.dyadic import cleared, fractions, products
from rosenblatt.exact.reading import NUMBER, Matrix, MatrixLike, as_array, numbers
from rosenblatt.exact.rounding import combination
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.theory.alternative import Open, decide
from rosenblatt.theory.nearest import MOST, Cloud, Found, in_fewer_dimensions, in_floats, in_integers
from rosenblatt.theory.signed import Signed, read, two_valued, with_column

_AIM = 1e-9  # a relative gap that is as good as none
_PROMISE = 1e-6  # a larger one is a warning
_CHEAP, _DEAR = 50, 250  # rows of a support in long arithmetic: a second, a minute or two
_DEAREST = 500  # rows of a combination that is made exact: as long
_SECONDS = 60.0  # for a verdict where no width was found


class NotSeparable(InvalidData):
    """No hyperplane of the kind asked for has all examples on their right side.

    Attributes
    ----------
    certificate : Combination or None
        What proves it: rows of y·x (of y·(x, κ), or y·(x, 1) if the intercept is free) that add up to zero. None where the
        search gave up before it could tell; the message says so.

    Examples
    --------
    >>> try:
    ...     gamma_origin([[1.0, 0.0], [2.0, 0.0]], [1, -1])
    ... except NotSeparable as error:
    ...     print(error.certificate)
    Combination(rows=(0, 1), weights=(2, 1))
    """

    def __init__(self, problem: str, certificate: Combination | None = None, hint: str | None = None):
        super().__init__(problem, hint=hint)
        self.certificate = certificate


class TooLarge(InvalidData):
    """The data have too many rows and too many dimensions for their margin to be looked for."""


@dataclass(frozen=True)
class Margin(Certificate):
    """γ of two classes: lower ≤ γ ≤ upper, with what proves both; `verify(X, y)` computes both bounds again.

    Attributes
    ----------
    lower : float
        The margin of the hyperplane ⟨normal, x⟩ + intercept = 0, rounded down.
    upper : float
        The length of the combination of the signed rows `rows` with `weights`, over the sum of the weights, rounded up. No
        unit vector has a larger product with all of these rows than with their average. If the intercept is free, both
        classes have the same sum of weights, so that it cancels.
    constant : float
        κ; 0 for no intercept, infinite for a free one.
    normal, intercept : tuple of Fraction, Fraction
        The hyperplane, exactly; `w` and `b` are it in floats.
    rows, weights : tuple of int
        The combination.

    Examples
    --------
    >>> X, y = [[2.0, 1.0], [2.0, -1.0], [-3.0, 5.0]], [1, 1, -1]
    >>> margin = gamma_padded(X, y)
    >>> margin.w.round(3).tolist(), round(margin.b, 3), round(margin.lower, 9), margin.verify(X, y)
    ([1.0, 0.0], 0.5, 2.236067977, True)
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

    def refutation(self, X: MatrixLike, y: ArrayLike) -> str | None:
        """Return None if both bounds are true of these examples, computed again; otherwise a sentence that says why not.

        Parameters
        ----------
        X : (rows, features) array or scipy sparse matrix
            The rows.
        y : (rows,) array
            Their labels.

        Returns
        -------
        str or None
            None if it is true.
        """
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


def projection(u: ArrayLike, onto: ArrayLike) -> NDArray:
    """Return the multiple of the vector `onto` that is nearest to u: ⟨u, v⟩/⟨v, v⟩ · v.

    Parameters
    ----------
    u : (dimension,) or (rows, dimension) array
        A vector, or rows of vectors, which give rows.
    onto : (dimension,) array
        v, not all 0.

    Returns
    -------
    array of the shape of u

    Examples
    --------
    >>> projection([3.0, 4.0], onto=[2.0, 0.0]).tolist()
    [3.0, 0.0]
    """
    v = _direction(onto, "onto")
    v = v / np.abs(v).max()
    return np.multiply.outer(np.asarray(u, dtype=np.float64) @ v / (v @ v), v)


def distance(X: MatrixLike, w: ArrayLike, b: float = 0.0) -> NDArray:
    """Return the distance of a point, or of each row of points, to the hyperplane ⟨w, x⟩ + b = 0: |⟨w, x⟩ + b| / ‖w‖.

    Parameters
    ----------
    X : (features,) or (rows, features) array, or scipy sparse matrix
    w : (features,) array
        The normal, not all 0.
    b : float, default=0.0
        The intercept.

    Returns
    -------
    float or (rows,) array

    Examples
    --------
    >>> float(distance([3.0, 4.0], w=[0.0, 2.0], b=-2.0))
    3.0
    """
    return abs(_offset(X, w, b))


def margins(X: MatrixLike, y: ArrayLike, w: ArrayLike, b: float = 0.0) -> NDArray:
    """Return the margin of each example: its distance to the hyperplane ⟨w, x⟩ + b = 0, negative on the wrong side.

    Their minimum is the margin of the set. Times ‖w‖ they are the functional margins y·(⟨w, x⟩ + b).

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
    y : (rows,) array
        −1 and +1, or any two labels of which the second is the positive one.
    w : (features,) array
        The normal, not all 0.
    b : float, default=0.0
        The intercept.

    Returns
    -------
    (rows,) float64 array

    Examples
    --------
    >>> margins([[3.0, 4.0], [0.0, 0.0], [1.0, 1.0]], [1, -1, -1], w=[0.0, 2.0], b=-2.0).tolist()
    [3.0, 1.0, -0.0]
    """
    X = numbers(X)
    y = as_array(y, "y")
    signed = y.shape == (X.shape[0],) and y.dtype.kind in "iuf" and np.isin(y, (-1, 1)).all()
    signs = y.astype(np.float64) if signed else two_valued(y, X.shape[0])[0]
    return signs * _offset(X, w, b)


def radius(X: MatrixLike, constant: float = 0.0) -> float:
    """Return R, the length of the longest row (x, κ), rounded up: how far the data reach from the origin, not their mean.

    The R of a mistake bound is that of the rows that the learner sees: with its constant feature κ, if it has one. So
    with `gamma_padded(X, y)` goes `radius(X, constant=1.0)`; `radius(X)` goes with `gamma_origin(X, y)`.

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
    constant : float, default=0.0
        κ, the constant feature; 0 for none.

    Returns
    -------
    float

    Examples
    --------
    >>> radius([[3.0, 4.0], [1.0, 0.0]])
    5.0
    """
    X = numbers(X)
    NUMBER._replace(advice="R needs no labels, and a free intercept has no radius").check("constant", constant)
    norms = row_lengths(X)
    longest = np.flatnonzero(norms >= norms.max() * (1 - 1e-12 * X.shape[1]))
    if len(longest) > 1:
        longest = np.unique(X[longest].toarray() if sp.issparse(X) else X[longest], axis=0, return_index=True)[1]
        longest = np.flatnonzero(norms >= norms.max() * (1 - 1e-12 * X.shape[1]))[longest]
    squares = [sum((Fraction(value) ** 2 for _, value in entries(X, int(i))), Fraction(constant) ** 2) for i in longest]
    return _root(max(squares), up=True)


def gamma_origin(X: MatrixLike, y: ArrayLike) -> Margin:
    """Compute γ of hyperplanes through the origin, y·⟨w, x⟩ / ‖w‖: the distance from the origin to the hull of the y·x.

    1/γ² is the least ‖w‖² with all y·⟨w, x⟩ ≥ 1. One class alone is a question too: whether some half-space holds it.

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
    y : (rows,) array
        Two labels, of which the second is the positive one; or one, which a number up to 0 makes the negative one.

    Returns
    -------
    Margin
        Bounds of γ with their proof.

    Raises
    ------
    NotSeparable
        If no hyperplane separates the classes, with the rows that prove it; or if none was found.
    TooLarge
        If there are more than 6,000 rows and more than 6,000 dimensions.

    Examples
    --------
    >>> X, y = [[2.0, 1.0], [2.0, -1.0], [-3.0, 5.0]], [1, 1, -1]
    >>> margin = gamma_origin(X, y)
    >>> margin.lower <= 2 <= margin.upper, margin.gap < 1e-15, margin.w.tolist(), margin.verify(X, y)
    (True, True, [1.0, 0.0], True)
    """
    return _gamma(X, y, 0.0)


def gamma_padded(X: MatrixLike, y: ArrayLike, constant: float = 1.0) -> Margin:
    """Compute γ of hyperplanes whose intercept κω is one more coordinate: y·(⟨w, x⟩ + κω) / √(‖w‖² + ω²).

    It is this γ, with `radius(X, constant)`, that the mistake bound of a learner with a constant feature speaks of. The
    notes of CMU 10-607 say that multiplying all points by 100 changes nothing; with the constant left as it is, it does.

    Parameters
    ----------
    X, y
        As in `gamma_origin`; two classes.
    constant : float, default=1.0
        κ, other than 0.

    Returns
    -------
    Margin
        Bounds of γ with their proof.

    Examples
    --------
    Points 100 times as large do not have 100 times the margin, since the constant stays as it is:

    >>> X, y = [[3.0], [4.0], [6.0]], [-1, -1, 1]
    >>> round(gamma_padded(X, y).lower, 4), round(gamma_padded([[300.0], [400.0], [600.0]], y).lower, 4)
    (0.1961, 0.2)
    """
    if not 0 < abs(constant) < inf:
        hint = "gamma_origin has no intercept, gamma_affine a free one"
        raise InvalidParameter("constant", constant, "a finite number other than 0", hint=hint)
    return _gamma(X, y, float(constant))


def gamma_affine(X: MatrixLike, y: ArrayLike) -> Margin:
    """Compute γ of all hyperplanes, y·(⟨w, x⟩ + b) / ‖w‖: half the distance between the hulls of the classes.

    It is the margin of the hard-margin support vector machine.

    Parameters
    ----------
    X, y
        As in `gamma_origin`; two classes.

    Returns
    -------
    Margin
        Bounds of γ with their proof.

    Examples
    --------
    >>> gamma_affine([[0.0], [1.0], [5.0]], ["no", "no", "yes"])
    Margin(lower=2.0, upper=2.0, constant=inf)
    """
    return _gamma(X, y, inf)


def gamma_seen(X: MatrixLike, y: ArrayLike, constant: float) -> Margin:
    """Compute γ of the rows as a learner sees them: `gamma_padded` with its constant feature, `gamma_origin` without."""
    return gamma_padded(X, y, constant) if constant else gamma_origin(X, y)


def _gamma(X: MatrixLike, y: ArrayLike, constant: float) -> Margin:
    data = read(X, y, constant if constant < inf else 0.0)
    if constant == inf:
        two_valued(y, len(data.y))
    with np.errstate(all="ignore"):  # what overflows is of no use, and nothing below trusts it
        cloud = Cloud(data.A, data.y, free=constant == inf)
        if not cloud.norms.all() and constant == 0:
            _refuse(constant, [int(np.argmin(cloud.norms))], [1])
        _decide(data, constant, [], "look")
        found = _nearest(cloud)
        best = _bracket(data, constant, found)
        for guard in (256, 1024, 4096):
            if best is not None and best.gap <= _AIM:
                break
            if not found.separates and (proof := _exact_combination(data, constant, found.rows, found.weights)):
                _refuse(constant, proof.rows, proof.weights)
            kept_promise = best is not None and best.gap <= _PROMISE
            longer = in_integers(cloud, found, guard, most=_CHEAP if kept_promise else _DEAR)
            if longer is None:
                break
            found = longer
            best = _tighter(best, _bracket(data, constant, found))
        if best is None or best.lower <= 0:
            best = _tighter(best, _decide(data, constant, cloud.first()))
    if best is None or best.lower <= 0:
        raise NotSeparable(
            f"{_kind(constant)} that separates the classes was found, nor a proof that there is none"
            + (f"; γ is at most {best.upper:.3g}" if best else ""),
            hint="rosenblatt.theory.separability(X, y) decides",
        )
    if best.gap > _PROMISE:
        between = f"γ is between {best.lower:.9g} and {best.upper:.9g}, a relative gap of {best.gap:.1g}"
        why = "floats cannot tell more of so small a margin, and long integers would take too long, or did not help"
        warnings.warn(f"{between}: {why}", RuntimeWarning, stacklevel=3)
    return best


def _nearest(cloud: Cloud) -> Found:
    """The widest separator as far as floats can tell, looked for in as few dimensions as will do."""
    n, d = cloud.A.shape
    if min(n, d) > MOST:
        raise TooLarge(
            f"the widest margin of {n:,} rows in {d:,} dimensions needs dense arrays of the smaller number, squared; at "
            f"most {MOST:,} are allowed",
            hint="rosenblatt.theory.separability(X, y) may still find a separator",
        )
    if n >= d:
        return in_floats(cloud)
    found = in_floats(Cloud(in_fewer_dimensions(cloud.A), cloud.y, cloud.free))
    if not found.w:
        return found
    w, _ = products(columns_as_rows(cloud.A[found.rows]), found.weights)  # the weights are the same: w is their sum
    return found._replace(w=w)


def _decide(data: Signed, constant: float, rows: list[int], method: str = "auto") -> Margin | None:
    """What a separator proves that was not looked for with an eye to its width, beside these rows; None if none was found.
    Where there is none, that is the answer."""
    found = decide(_with_intercept(data, constant), method=method, max_seconds=_SECONDS)
    if isinstance(found, Open):
        return None
    certificate = found.certificate
    if isinstance(certificate, Combination):
        _refuse(constant, certificate.rows, certificate.weights)
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
        high, low = _least_of_each(values, data.y)
        b = Fraction(low - high, 2) * Fraction(2) ** (e - size)
    elif constant:
        b = w.pop() * Fraction(constant)
    else:
        b = Fraction(0)
    kept = [(i, weight) for i, weight in zip(found.rows, found.weights, strict=True) if weight > 0]
    rows, weights = tuple(i for i, _ in kept), tuple(weight for _, weight in kept)
    return Margin(_lower(data, constant, w, b), _upper(data, rows, weights), constant, tuple(w), b, rows, weights)


def _least_of_each(values: Sequence[int], y: NDArray) -> tuple[int, int]:
    """The least value of the positive rows, and of the negative ones."""
    pairs = list(zip(values, y, strict=True))
    return min(value for value, label in pairs if label > 0), min(value for value, label in pairs if label < 0)


def _tighter(one: Margin | None, other: Margin | None) -> Margin | None:
    """The better half of each."""
    if one is None or other is None:
        return one or other
    low, high = max(one, other, key=lambda m: m.lower), min(one, other, key=lambda m: m.upper)
    return Margin(low.lower, high.upper, low.constant, low.normal, low.intercept, high.rows, high.weights)


def _lower(data: Signed, constant: float, normal: Sequence[Fraction], intercept: Fraction) -> float:
    """The least margin of this hyperplane, rounded down."""
    free = constant == inf
    last = [] if free or not constant else [intercept / Fraction(constant)]
    w = cleared(fractions([*normal, *last, intercept]))
    values, e = products(data.A, w[:-1])
    if free:  # the products lack y·b
        high, low = _least_of_each(values, data.y)
        least = min(high * Fraction(2) ** e + w[-1], low * Fraction(2) ** e - w[-1])
    else:
        least = min(values) * Fraction(2) ** e
    square = Fraction(least * least) / sum(value * value for value in w[:-1])
    return _root(square, up=False) if least > 0 else -_root(square, up=True)


def _upper(data: Signed, rows: Sequence[int], weights: Sequence[int]) -> float:
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


def _exact_combination(data: Signed, constant: float, rows: Sequence[int], weights: Sequence[int]) -> Combination | None:
    kept = [(i, weight) for i, weight in zip(rows, weights, strict=True) if weight > 0]
    if len(kept) > _DEAREST:
        return None
    A = _with_intercept(data, constant)
    near = as_floats([Fraction(weight) for _, weight in kept])
    found = combination(A, [i for i, _ in kept], near.tolist())
    return found if found is not None and found.verify(A) else None


def _with_intercept(data: Signed, constant: float) -> Matrix:
    return data.A if constant < inf else with_column(data.A, data.y)


def _refuse(constant: float, rows: Sequence[int], weights: Sequence[int]) -> NoReturn:
    rows = [int(i) for i in rows]
    some = ", ".join(map(str, rows[:6])) + (", …" if len(rows) > 6 else "")
    why = f"{len(rows)} examples, with their signs and positive weights, add up to zero ({some})"
    why = f"example {rows[0]} is the origin, whose margin is 0" if len(rows) == 1 else why
    raise NotSeparable(
        f"{_kind(constant)} separates the classes: {why}",
        Combination(tuple(rows), tuple(int(weight) for weight in weights)),
        hint="rosenblatt.theory.separability(X, y) says more",
    )


def _kind(constant: float) -> str:
    return "no hyperplane through the origin" if not constant else "no hyperplane"


def _offset(X: MatrixLike, w: ArrayLike, b: float) -> NDArray:
    normal = _direction(w, "w")
    scale = np.abs(normal).max()
    unit = normal / scale
    length = np.sqrt(unit @ unit)
    return (X if sp.issparse(X) else np.asarray(X, dtype=np.float64)) @ unit / length + b / (scale * length)


def _direction(v: ArrayLike, name: str) -> NDArray:
    vector = np.asarray(v, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
        raise InvalidParameter(name, vector.tolist(), "one vector of finite numbers, not all 0")
    return vector
