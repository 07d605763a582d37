"""A cone says of a point that it lies inside, or names a half-space through 0 that holds the cone and not the point. What
is inside is decided exactly, for the rational numbers that floats are.

A cut is a vector a with ⟨a, z⟩ > 0 for every z inside. It is built from numbers of 20 bits, rounded to the safe side, so
that it is exact for integer data of moderate size, and it knows whether it is: a sum of exact cuts that is zero proves that
nothing is inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.certificates import Interior
from rosenblatt.exact.dyadic import dot, fractions, lowest_exponent
from rosenblatt.exact.elimination import echelon
from rosenblatt.exact.reading import dense, numbers

_BITS = 20
_BITS_HELD = 52
_NEAR = 1e-6  # what floats may be wrong by where exact arithmetic decides


class Cut(NamedTuple):
    """A half-space that contains the cone, and whether its numbers are exact: rounded ones guide the search, but prove
    nothing.

    Attributes
    ----------
    a : array
        The normal vector: ⟨a, x⟩ > 0 for all x in the cone.
    exact : bool
        Whether it is free of rounding.
    """

    a: NDArray
    exact: bool


class Cone(Protocol):
    """An open convex cone {x: every λ of a dual cone, but 0, has ⟨λ, A x⟩ > 0} in `dimension` coordinates."""

    @property
    def dimension(self) -> int: ...

    def separate(self, x: NDArray) -> Cut | NDArray | None:
        """Return a cut a with ⟨a, x⟩ ≤ 0, as deep as is easily found; None if x is inside, as far as floats can tell. A
        vector, instead of a Cut, is taken as exact.

        Parameters
        ----------
        x : array
            The point.

        Returns
        -------
        Cut, array or None
        """
        ...

    def contains(self, x: Sequence[Fraction]) -> bool:
        """Return whether x is inside, in exact arithmetic.

        Parameters
        ----------
        x : sequence of Fraction
            The point.

        Returns
        -------
        bool
        """
        ...


@runtime_checkable
class WithDual(Protocol):
    """A cone that may have a vector of its dual cone that proves that nothing is inside."""

    def dual_vector(self) -> tuple[Fraction, ...] | None:
        """Return a vector that proves that nothing is inside; None if there is none, or none is found."""
        ...

    def refuted_by(self, v: Sequence[Fraction]) -> bool:
        """Return whether the vector proves that nothing is inside, in exact arithmetic."""
        ...


@dataclass(frozen=True)
class Polyhedral(Cone):
    """The cone {x: A x > 0}. Its cut is the row with the least cosine.

    Parameters
    ----------
    A : (rows, dimension) array or scipy sparse matrix
        The rows, none of them zero.

    Examples
    --------
    >>> cone = Polyhedral([[1, 0], [0, 1]])
    >>> cone.contains([Fraction(1), Fraction(2)]), cone.contains([Fraction(1), Fraction(0)])
    (True, False)
    >>> cone.separate(np.array([1.0, -1.0])).a.tolist()
    [0.0, 1.0]
    """

    A: Any
    lengths: NDArray = field(init=False, repr=False, compare=False)  # of its rows

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", dense(numbers(self.A, "A")))
        object.__setattr__(self, "lengths", np.linalg.norm(self.A, axis=1))
        if not self.lengths.all():
            row = int(self.lengths.argmin())
            raise InvalidData(f"row {row} of A is zero: no product with it is positive, so nothing is inside", row=row)

    @property
    def dimension(self) -> int:
        return self.A.shape[1]

    def separate(self, x: NDArray) -> Cut | None:
        products = self.A @ x / self.lengths
        row = int(products.argmin())
        return None if products[row] > 0 else Cut(self.A[row].copy(), True)

    def contains(self, x: Sequence[Fraction]) -> bool:
        return Interior(tuple(x)).verify(self.A)


@dataclass(frozen=True)
class SecondOrder(Cone):
    """The cone {x: ‖P x‖ < ⟨c, x⟩}: the second-order (ice cream) cone seen through a linear map.

    Parameters
    ----------
    P : (any, dimension) array or scipy sparse matrix
    c : (dimension,) array

    Examples
    --------
    >>> ice = SecondOrder(P=[[1, 0, 0], [0, 1, 0]], c=[0, 0, 1])  # ‖(x₁, x₂)‖ < x₃
    >>> ice.contains([Fraction(3), Fraction(4), Fraction(5)]), ice.contains([Fraction(3), Fraction(4), Fraction(6)])
    (False, True)
    """

    P: Any
    c: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "P", dense(numbers(self.P, "P")))
        object.__setattr__(self, "c", dense(numbers(np.asarray(self.c)[None], "c"))[0])
        if self.P.shape[1] != self.c.size:
            raise InvalidData(f"P has {self.P.shape[1]} columns and c {self.c.size} entries; they must be equal")

    @property
    def dimension(self) -> int:
        return self.c.size

    def separate(self, x: NDArray) -> Cut | None:
        u, t = self.P @ x, float(self.c @ x)
        length = float(np.linalg.norm(u))
        if t > length:
            return None
        v = _short(u / length) if length else np.zeros(len(u))
        s = _above(v)
        unit = min(lowest_exponent(self.c) + lowest_exponent(s), lowest_exponent(self.P) + lowest_exponent(v))
        size = np.abs(self.c) * s + np.abs(v) @ np.abs(self.P)
        return Cut(self.c * s - v @ self.P, _held(size, unit))  # ⟨a, z⟩ ≥ (⟨c, z⟩ − ‖P z‖)·s: positive inside

    def contains(self, x: Sequence[Fraction]) -> bool:
        t, u = dot(fractions(self.c), x), [dot(fractions(row), x) for row in self.P]
        return t > 0 and t * t > dot(u, u)

    def dual_vector(self) -> tuple[Fraction, ...] | None:
        """Return v with Pᵀv = c and ‖v‖ ≤ 1, so that ⟨c, x⟩ = ⟨v, P x⟩ ≤ ‖P x‖ and nothing is inside; None if something is.

        There is such a v if and only if nothing is inside: c is then in the closed convex set of all Pᵀv, ‖v‖ ≤ 1. The
        shortest v with Pᵀv = c is P z with PᵀP z = c: rational, as P and c are.

        Returns
        -------
        tuple of Fraction or None
        """
        near = np.linalg.lstsq(self.P.T, self.c, rcond=None)[0]
        missed = np.linalg.norm(self.P.T @ near - self.c)
        if not (np.linalg.norm(near) <= 1 + _NEAR and missed <= _NEAR * np.linalg.norm(self.c)):
            return None  # floats are enough to see that there is none
        v = tuple(dot(fractions(row), self._normal_solution()) for row in self.P)
        return v if self.refuted_by(v) else None

    def point(self) -> tuple[Fraction, ...] | None:
        """Return a point inside, without a search: z, if ‖P z‖² = ⟨c, z⟩ > 1; where no z has PᵀP z = c, an x with P x = 0
        and ⟨c, x⟩ > 0. None if nothing is inside.

        Returns
        -------
        tuple of Fraction or None
        """
        x = self._normal_solution()
        return x if self.contains(x) else None

    def _normal_solution(self) -> tuple[Fraction, ...]:
        """z with PᵀP z = c; if there is none, x with PᵀP x = 0 and ⟨c, x⟩ = 1."""
        columns, c = [fractions(column) for column in self.P.T], fractions(self.c)
        normal = [[*(dot(a, b) for b in columns), -value] for a, value in zip(columns, c, strict=True)]
        system = echelon(normal, len(c) + 1)  # in (z, 1)
        if len(c) in system.free:
            return tuple(system.complete([Fraction(j == len(c)) for j in system.free])[:-1])
        return tuple(-value for value in system.origin[system.pivots.index(len(c))])

    def refuted_by(self, v: Sequence[Fraction]) -> bool:
        """Return whether Pᵀv = c and ‖v‖ ≤ 1, in exact arithmetic; then nothing is inside.

        Parameters
        ----------
        v : sequence of Fraction
            The dual vector.

        Returns
        -------
        bool
        """
        exact = len(v) == len(self.P) and all(isinstance(value, Fraction) for value in v)
        columns = zip(self.P.T, fractions(self.c), strict=True)
        return exact and dot(v, v) <= 1 and all(dot(fractions(column), v) == value for column, value in columns)


@dataclass(frozen=True)
class Semidefinite(Cone):
    """The cone {x: Σ xᵢFᵢ is positive definite}.

    Parameters
    ----------
    F : (dimension, k, k) array
        A symmetric matrix for each coordinate; `symmetric(k)` is the plainest.

    Examples
    --------
    >>> cone = Semidefinite(symmetric(2))  # x is (m₁₁, m₂₁, m₂₂)
    >>> cone.contains([Fraction(2), Fraction(1), Fraction(1)]), cone.contains([Fraction(1), Fraction(2), Fraction(1)])
    (True, False)
    """

    F: Any

    def __post_init__(self) -> None:
        F = np.asarray(self.F)
        if F.ndim != 3 or F.shape[1] != F.shape[2]:
            raise InvalidData(f"F must be a square matrix for each coordinate: (dimension, k, k); got the shape {F.shape}")
        F = dense(numbers(F.reshape(F.shape[0], -1), "F")).reshape(F.shape)
        if not np.array_equal(F, F.transpose(0, 2, 1)):
            raise InvalidData("each matrix of F must be symmetric, exactly", hint="try (F + F.transpose(0, 2, 1)) / 2")
        object.__setattr__(self, "F", F)

    @property
    def dimension(self) -> int:
        return len(self.F)

    def separate(self, x: NDArray) -> Cut | None:
        M = np.tensordot(x, self.F, axes=1)
        values, vectors = np.linalg.eigh(M)
        if values[0] > 0:
            return None
        v = _simple(M, vectors[:, 0])
        size = np.einsum("i,dij,j->d", np.abs(v), np.abs(self.F), np.abs(v))
        exact = _held(size, lowest_exponent(self.F) + 2 * lowest_exponent(v))
        return Cut(np.einsum("i,dij,j->d", v, self.F, v), exact)  # ⟨a, z⟩ = vᵀ(Σ zᵢFᵢ)v

    def contains(self, x: Sequence[Fraction]) -> bool:
        k = self.F.shape[1]
        return _pivots_positive([[dot(x, fractions(self.F[:, i, j])) for j in range(i + 1)] for i in range(k)])


@dataclass(frozen=True)
class Intersection(Cone):
    """The cone of what is inside all of these cones.

    Parameters
    ----------
    *cones : Cone
        At least one, all of the same dimension.

    Examples
    --------
    >>> ice = SecondOrder(P=[[1, 0, 0], [0, 1, 0]], c=[0, 0, 1])  # ‖(x₁, x₂)‖ < x₃
    >>> both = Intersection(ice, Polyhedral([[2, 0, -1]]))  # and 2x₁ > x₃
    >>> both.contains([Fraction(3), Fraction(0), Fraction(4)]), both.contains([Fraction(1), Fraction(0), Fraction(4)])
    (True, False)
    """

    cones: tuple[Cone, ...]

    def __init__(self, *cones: Cone):
        object.__setattr__(self, "cones", cones)
        dimensions = sorted({cone.dimension for cone in cones})
        if len(dimensions) != 1:
            raise InvalidParameter("cones", dimensions or None, "cones of the same dimension, at least one")

    @property
    def dimension(self) -> int:
        return self.cones[0].dimension

    def separate(self, x: NDArray) -> Cut | None:
        found = (cone.separate(x) for cone in self.cones)
        cuts = [as_cut(cut) for cut in found if cut is not None]
        return min(cuts, key=lambda cut: float(cut.a @ x) / (np.linalg.norm(cut.a) or 1.0)) if cuts else None

    def contains(self, x: Sequence[Fraction]) -> bool:
        return all(cone.contains(x) for cone in self.cones)

    def dual_vector(self) -> tuple[Fraction, ...] | None:
        """Return a dual vector of one of the cones, which proves that nothing is inside it; None if none of them has one.

        Returns
        -------
        tuple of Fraction or None
        """
        found = (cone.dual_vector() for cone in self.cones if isinstance(cone, WithDual))
        return next((v for v in found if v is not None), None)

    def refuted_by(self, v: Sequence[Fraction]) -> bool:
        """Return whether v proves of one of the cones that nothing is inside it.

        Parameters
        ----------
        v : sequence of Fraction
            The dual vector.

        Returns
        -------
        bool
        """
        return any(cone.refuted_by(v) for cone in self.cones if isinstance(cone, WithDual))


def as_cut(cut: Cut | ArrayLike) -> Cut:
    """Return the cut; a vector becomes an exact cut."""
    return cut if isinstance(cut, Cut) else Cut(np.array(cut, dtype=np.float64), True)


def _held(sizes: NDArray, unit: int) -> bool:
    """Whether sums of multiples of 2^unit, whose terms have these sizes in all, do not round: none needs over 52 bits."""
    return bool(np.frexp(sizes.max(initial=0.0))[1] <= unit + _BITS_HELD)


def symmetric(k: int) -> NDArray:
    """Return the F of `Semidefinite` where x is the lower triangle of a symmetric k × k matrix, row by row.

    An entry off the diagonal is x itself, not x/√2, which would not be rational.

    Parameters
    ----------
    k : int
        The size of the matrix.

    Returns
    -------
    (k(k + 1)/2, k, k) array

    Examples
    --------
    >>> symmetric(2).astype(int).tolist()
    [[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]]
    """
    rows, columns = np.tril_indices(k)
    F = np.zeros((len(rows), k, k))
    F[np.arange(len(rows)), rows, columns] = F[np.arange(len(rows)), columns, rows] = 1
    return F


def _short(v: NDArray) -> NDArray:
    """The nearest numbers of 20 bits."""
    return np.ldexp(np.round(np.ldexp(v, _BITS)), -_BITS)


def _simple(M: NDArray, v: NDArray) -> NDArray:
    """A vector near v with vᵀMv ≤ 0, of small integers if there is one: proofs are made of cuts that can be met exactly."""
    v = v / v[np.abs(v).argmax()]
    for size in range(1, 13):
        near = np.round(size * v)
        if np.abs(near - size * v).max() < 0.01 and near @ M @ near <= 0:
            return near
    return _short(v)


def _above(v: NDArray) -> float:
    """The least multiple of 2⁻²⁰ that is not below ‖v‖, v of such multiples."""
    square = sum(int(value) ** 2 for value in np.ldexp(v, _BITS))
    return math.ldexp(max(1, math.isqrt(square - 1) + 1 if square else 0), -_BITS)


def _pivots_positive(M: list[list[Fraction]]) -> bool:
    """Whether the symmetric matrix with this lower triangle is positive definite: L D Lᵀ with D > 0. Changes M."""
    k = len(M)
    for j in range(k):
        if M[j][j] <= 0:
            return False
        for i in range(j + 1, k):
            factor = M[i][j] / M[j][j]
            for h in range(j + 1, i + 1):
                M[i][h] -= factor * M[h][j]
    return True
