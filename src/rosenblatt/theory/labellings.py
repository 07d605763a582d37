"""How many labellings of given points a hyperplane can make: all of them if and only if the points are independent, none of
more than Cover's number, and exactly that many of points in general position.

A labelling of n points that a hyperplane makes it also makes of the first n − 1. So labellings are found by adding a point
at a time to those there are, and each one that is not there has a proof which a few of its first points suffice for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import cleared
from rosenblatt.exact.elimination import echelon
from rosenblatt.exact.reading import COUNT, MatrixLike, dense, numbers
from rosenblatt.exact.solve import alternative

Labels = tuple[int, ...]  # −1 or +1 for each point


def cover(n: int, d: int) -> int:
    """Count the labellings of n points in general position in d dimensions by hyperplanes through 0.

    There are 2·Σ (n−1 choose k), k < d. Hyperplanes with an intercept are hyperplanes through 0 in one more dimension: of
    four points in the plane, lines make cover(4, 3) = 14 of the 16 labellings. Cover (1965), and Schläfli a century before.

    Parameters
    ----------
    n, d : int
        The number of points and of dimensions, both at least 1.

    Returns
    -------
    int
        The number of labellings.

    Examples
    --------
    >>> [cover(n, 3) for n in (1, 2, 3, 4, 5)]
    [2, 4, 8, 14, 22]
    """
    n, d = int(COUNT.check("n", n)), int(COUNT.check("d", d))
    return 2 * sum(comb(n - 1, k) for k in range(min(n, d)))


def chance(n: int, d: int) -> Fraction:
    """Return the probability that n points in general position in d dimensions, labelled by coins, are separable through 0.

    It is 1 up to n = d, exactly ½ at n = 2d (the capacity of a perceptron), and then falls, the faster the larger d.

    Parameters
    ----------
    n, d : int
        The number of points and of dimensions, both at least 1.

    Returns
    -------
    Fraction

    Examples
    --------
    >>> [str(chance(n, 3)) for n in (3, 4, 6, 12)]
    ['1', '7/8', '1/2', '67/2048']
    """
    return Fraction(cover(n, d), 2 ** int(n))


@dataclass(frozen=True)
class Dichotomies:
    """The labellings of points that a hyperplane makes, and a proof for each of the 2ⁿ, whether it is made or not.

    Attributes
    ----------
    points : (points, dimensions) array
        With the constant 1 last where there is an intercept.
    made : dict
        The labellings, tuples of −1 and +1, each with a hyperplane that makes it.
    refused : dict
        Labellings of the first few points, each with the rows that prove that nothing makes any that begins like this.

    Examples
    --------
    >>> found = dichotomies([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> len(found), (-1, 1, 1, -1) in found.made, (-1, 1, 1, 1) in found.made
    (14, False, True)
    """

    points: NDArray
    made: dict[Labels, Interior]
    refused: dict[Labels, Combination]

    def __len__(self) -> int:
        return len(self.made)

    def __str__(self) -> str:
        return f"{len(self)} of the {2 ** len(self.points)} labellings of {len(self.points)} points"

    def __iter__(self) -> Iterator[Labels]:
        return iter(self.made)

    def __contains__(self, labels: Iterable[int]) -> bool:
        return tuple(labels) in self.made

    def certificate(self, labels: Iterable[int]) -> Interior | Combination:
        """Return the proof that these labels are made, or are not: of the rows yᵢ·pointᵢ, as `rows` returns them.

        Parameters
        ----------
        labels : iterable of int
            −1 or +1 for each point.

        Returns
        -------
        Interior or Combination
        """
        labels = self._check(labels)
        if labels in self.made:
            return self.made[labels]
        return next(self.refused[labels[:k]] for k in range(1, len(labels) + 1) if labels[:k] in self.refused)

    def rows(self, labels: Iterable[int]) -> NDArray:
        """Return the rows yᵢ·pointᵢ.

        Parameters
        ----------
        labels : iterable of int
            −1 or +1 for each point.

        Returns
        -------
        (points, dimensions) array
        """
        return self.points * np.array(self._check(labels), dtype=np.float64)[:, None]

    def _check(self, labels: Iterable[int]) -> Labels:
        found = tuple(labels)
        if len(found) != len(self.points) or not all(label in (-1, 1) for label in found):
            raise InvalidParameter("labels", labels, f"−1 or +1 for each of the {len(self.points)} points")
        return tuple(int(label) for label in found)


def dichotomies(points: MatrixLike, intercept: bool = True) -> Dichotomies:
    """Find all labellings of the points that a hyperplane makes, by exact arithmetic.

    Every labelling has its opposite, so half are looked for. One that is extended by the side on which the next point lies
    of its own hyperplane needs nothing new; the other side is decided by the simplex method in integers.

    Parameters
    ----------
    points : (n, features) array or scipy sparse matrix
    intercept : bool, default=True
        Whether hyperplanes have an intercept, or go through 0.

    Returns
    -------
    Dichotomies
        The labellings, with a proof for each that there is and each that there is not.

    Examples
    --------
    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> found = dichotomies(square)
    >>> len(found)
    14
    >>> found.certificate((-1, 1, 1, -1))
    Combination(rows=(0, 1, 2, 3), weights=(1, 1, 1, 1))
    """
    P = _pad(points, intercept)
    made: dict[Labels, Interior] = {(): Interior((Fraction(0),) * P.shape[1])}
    refused: dict[Labels, Combination] = {}
    for k, point in enumerate(P):
        extended: dict[Labels, Interior] = {}
        for labels, plane in made.items():
            [side] = plane.values(point[None, :])
            for label in (1, -1) if k else (1,):
                proof = plane if side * label > 0 else alternative(P[: k + 1] * np.array([*labels, label])[:, None])
                if isinstance(proof, Interior):
                    extended[(*labels, label)] = proof
                elif isinstance(proof, Combination):
                    refused[(*labels, label)] = proof
        made = extended
    made |= {_opposite(labels): Interior(tuple(-v for v in plane.x)) for labels, plane in made.items()}
    refused |= {_opposite(labels): proof for labels, proof in refused.items()}
    return Dichotomies(P, made, refused)


def shattered(points: MatrixLike, intercept: bool = True) -> bool:
    """Return whether hyperplanes make every labelling of the points: if and only if the (x, 1) are linearly independent.

    Independent points have a solution of ⟨w, (x, 1)⟩ = y for any y. Dependent ones have a Radon partition. So d + 1 points
    that span d dimensions are shattered and d + 2 never are: the VC dimension is d + 1, and d through 0.

    Parameters
    ----------
    points : (n, features) array or scipy sparse matrix
    intercept : bool, default=True
        Whether hyperplanes have an intercept, or go through 0.

    Returns
    -------
    bool

    Examples
    --------
    >>> shattered([[0, 0], [0, 1], [1, 0]]), shattered([[0, 0], [0, 1], [1, 0], [1, 1]])
    (True, False)
    """
    return _dependence(_pad(points, intercept)) is None


def vc_dimension(features: int, intercept: bool = True) -> int:
    """Return the size of the largest set of points that hyperplanes shatter: d + 1 with an intercept, d without.

    Parameters
    ----------
    features : int
        d, at least 1.
    intercept : bool, default=True
        Whether hyperplanes have an intercept, or go through 0.

    Returns
    -------
    int

    Examples
    --------
    >>> vc_dimension(2), vc_dimension(2, intercept=False)
    (3, 2)
    """
    return int(COUNT.check("features", features)) + bool(intercept)


def general_position(points: MatrixLike, intercept: bool = True) -> bool:
    """Return whether no d + 1 points in d dimensions lie on one hyperplane (no d on one through 0), nor fewer on a flatter.

    Parameters
    ----------
    points : (n, features) array or scipy sparse matrix
    intercept : bool, default=True
        Whether hyperplanes have an intercept, or go through 0.

    Returns
    -------
    bool

    Examples
    --------
    >>> general_position([[0, 0], [0, 1], [1, 0], [1, 1]]), general_position([[0, 0], [1, 1], [2, 2]])
    (True, False)
    """
    return dependent(points, intercept) is None


def dependent(points: MatrixLike, intercept: bool = True) -> tuple[int, ...] | None:
    """Return the first set of points, of the least size, that lies flatter than so many can; None in general position.

    In the plane: two points that are one, or else three on a line. All sets are tried.

    Parameters
    ----------
    points : (n, features) array or scipy sparse matrix
    intercept : bool, default=True
        Whether hyperplanes have an intercept, or go through 0.

    Returns
    -------
    tuple of int, or None
        The numbers of the points.

    Examples
    --------
    >>> dependent([[0, 0], [0, 1], [1, 1], [2, 2]])
    (0, 2, 3)
    """
    P = _pad(points, intercept)
    for size in range(1, min(P.shape) + 1):
        for chosen in combinations(range(len(P)), size):
            if _dependence(P[list(chosen)]) is not None:
                return chosen
    return None


@dataclass(frozen=True)
class Radon:
    """Two sets of points whose hulls meet, so that no hyperplane separates them (Radon 1921).

    Attributes
    ----------
    positive, negative : tuple of int
        The two sets.
    point : tuple of Fraction
        Where the hulls meet.
    combination : Combination
        Of the rows yᵢ·(xᵢ, 1), y = +1 for one set and −1 for the other: they add up to zero.

    Examples
    --------
    >>> found = radon([[0], [1], [2]])
    >>> found.positive, found.negative, found.point, found.combination.weights
    ((0, 2), (1,), (Fraction(1, 1),), (1, 2, 1))
    """

    positive: tuple[int, ...]
    negative: tuple[int, ...]
    point: tuple[Fraction, ...]
    combination: Combination


def radon(points: MatrixLike) -> Radon:
    """Find two sets of the points whose hulls meet. Any d + 2 points in d dimensions have such a partition.

    Parameters
    ----------
    points : (n, features) array or scipy sparse matrix

    Raises
    ------
    InvalidData
        If the points are affinely independent, so that every labelling of them is separable.

    Examples
    --------
    >>> found = radon([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> found.positive, found.negative, [str(value) for value in found.point]
    ((0, 3), (1, 2), ['1/2', '1/2'])
    """
    P = _pad(points, intercept=True)
    weights = _dependence(P)
    if weights is None:
        raise InvalidData(f"these {len(P)} points span {len(P) - 1} dimensions: every labelling of them is separable")
    sides = [tuple(i for i, weight in enumerate(weights) if weight * sign > 0) for sign in (1, -1)]
    total = sum(weights[i] for i in sides[0])
    point = tuple(
        sum((weights[i] * Fraction(P[i, j]) for i in sides[0]), Fraction(0)) / total for j in range(P.shape[1] - 1)
    )
    moved = tuple(sorted(sides[0] + sides[1]))
    return Radon(sides[0], sides[1], point, Combination(moved, tuple(abs(weights[i]) for i in moved)))


def _pad(points: MatrixLike, intercept: bool) -> NDArray:
    P = dense(numbers(points, "points"))
    return np.column_stack([P, np.ones(len(P))]) if intercept else P


def _opposite(labels: Labels) -> Labels:
    return tuple(-label for label in labels)


def _dependence(P: NDArray) -> list[int] | None:
    """Integers, not all 0, the first of them positive, with which the first rows that are dependent add up to zero."""
    found = echelon([[Fraction(value) for value in row] for row in P.tolist()], P.shape[1]).dependence
    if found is None:
        return None
    weights = cleared([*found, *[Fraction(0)] * (len(P) - len(found))])
    return weights if next(filter(None, weights)) > 0 else [-weight for weight in weights]
