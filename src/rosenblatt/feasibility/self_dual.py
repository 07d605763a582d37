"""Three cones that are their own duals: vectors ≥ 0, (t, w) with ‖w‖ ≤ t, and symmetric matrices without negative
eigenvalues, as vectors of all their entries. So one test, in exact arithmetic, is that of a point and of a multiplier: all
products of two vectors of such a cone are ≥ 0, and whatever has such products with all of them belongs to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rosenblatt.exact.dyadic import dot

Vector = tuple[Fraction, ...]
_BITS = (3, 6, 10, 16, 26, 40)  # of the numbers of a multiplier: as few as make it nearly as good as it can be
_NEARLY = 0.75
_EIGENVECTORS = 2  # of a matrix that become multipliers at a time


class SelfDual(Protocol):
    """A closed cone that is its own dual."""

    def contains(self, u: Sequence[Fraction]) -> bool:
        """Return whether the vector belongs to the cone, in exact arithmetic."""
        ...

    def depth(self, u: NDArray) -> float:
        """Return a number that is negative outside, and positive inside, as floats see it."""
        ...

    def multipliers(self, u: NDArray) -> list[Vector]:
        """Return vectors of the cone with products with u that are as low as can be, of few digits."""
        ...

    def corners(self) -> list[Vector]:
        """Return vectors of the cone to begin with; all that there is to know of it, if it has finitely many edges."""
        ...


class Orthant(NamedTuple):
    """Vectors of this size with all entries ≥ 0."""

    size: int

    def contains(self, u: Sequence[Fraction]) -> bool:
        return all(value >= 0 for value in u)

    def depth(self, u: NDArray) -> float:
        return float(u.min())

    def multipliers(self, u: NDArray) -> list[Vector]:
        return [_unit(self.size, int(u.argmin()))]

    def corners(self) -> list[Vector]:
        return [_unit(self.size, i) for i in range(self.size)]


class Lorentz(NamedTuple):
    """Vectors (t, w) of this size with ‖w‖ ≤ t."""

    size: int

    def contains(self, u: Sequence[Fraction]) -> bool:
        return u[0] >= 0 and u[0] * u[0] >= dot(u[1:], u[1:])

    def depth(self, u: NDArray) -> float:
        return float(u[0] - np.linalg.norm(u[1:]))

    def multipliers(self, u: NDArray) -> list[Vector]:
        length = float(np.linalg.norm(u[1:]))
        if not length:
            return [_unit(self.size, 0)]
        best = (u[0] - length) / math.sqrt(2)
        for bits in _BITS:
            w = [round(value) for value in np.ldexp(u[1:] / length, bits).tolist()]
            square = sum(value * value for value in w)
            found = (math.isqrt(square - 1) + 1 if square else 1, *(-value for value in w))
            if float(np.dot(found, u)) <= _NEARLY * best * math.hypot(*found):
                break
        return [tuple(map(Fraction, found))]

    def corners(self) -> list[Vector]:
        signs = [
            (Fraction(1), *(sign * value for value in _unit(self.size - 1, i)))
            for i in range(self.size - 1)
            for sign in (1, -1)
        ]
        return [_unit(self.size, 0), *signs]


class PositiveSemidefinite(NamedTuple):
    """Symmetric matrices with this many rows and without negative eigenvalues, as vectors of their entries."""

    rows: int

    def contains(self, u: Sequence[Fraction]) -> bool:
        k = self.rows
        M = [list(u[i * k : (i + 1) * k]) for i in range(k)]
        if any(M[i][j] != M[j][i] for i in range(k) for j in range(i)):
            return False
        for j in range(k):  # L D Lᵀ with D ≥ 0; below a pivot that is zero all has to be zero
            if M[j][j] < 0 or (not M[j][j] and any(M[i][j] for i in range(j + 1, k))):
                return False
            for i in range(j + 1, k):
                if M[i][j]:
                    factor = M[i][j] / M[j][j]
                    M[i] = [a - factor * b for a, b in zip(M[i], M[j], strict=True)]
        return True

    def depth(self, u: NDArray) -> float:
        return float(np.linalg.eigvalsh(u.reshape(self.rows, self.rows))[0])

    def multipliers(self, u: NDArray) -> list[Vector]:
        M = u.reshape(self.rows, self.rows)
        values, vectors = np.linalg.eigh(M)
        found = []
        for best, v in list(zip(values, vectors.T, strict=True))[:_EIGENVECTORS]:
            for bits in _BITS[:-1]:  # the products of two of these numbers are floats
                short = np.round(np.ldexp(v / np.abs(v).max(), bits))
                if short @ M @ short <= _NEARLY * best * (short @ short):
                    break
            found.append(tuple(Fraction(int(a * b)) for a in short for b in short))
        return found

    def corners(self) -> list[Vector]:
        return [_unit(self.rows**2, i * (self.rows + 1)) for i in range(self.rows)]


def _unit(size: int, place: int) -> Vector:
    return tuple(Fraction(i == place) for i in range(size))
