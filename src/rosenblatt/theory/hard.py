"""Data whose radius and margin are known because they were made so, and on which the perceptron makes as many mistakes as
its bound allows, or exponentially many in the dimension; and noise, which makes such data easy.

All margins here are those through the origin, γ = max over unit u of the least ⟨u, yᵢxᵢ⟩.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidParameter
from rosenblatt.exact.certificates import Interior
from rosenblatt.exact.dyadic import dot, fractions
from rosenblatt.exact.reading import COUNT, NOT_NEGATIVE, POSITIVE, MatrixLike, Quantity, dense, numbers
from rosenblatt.theory import bounds
from rosenblatt.theory.cycles import Walk, exact_rows
from rosenblatt.theory.signed import RandomSeed, read

_SIZE = Quantity(1, high=500, open_high=False, whole=True, advice="above that, the square of the margin underflows")


class Instance(NamedTuple):
    """A data set of known margin, with its proof.

    The proof is a separator that has the margin, and a mean of the rows whose length is the margin.

    Attributes
    ----------
    X : (rows, features) float64 array
        The rows.
    y : (rows,) array
        Their labels, −1 or +1.
    radius : float
        The length of the longest row.
    margin : float
        The largest margin of a hyperplane through the origin.
    separator : (features,) array
        A vector of the largest margin, of any length.
    weights : (rows,) array
        Weights ≥ 0 with which the mean of the rows yᵢxᵢ has the length of the margin.

    Examples
    --------
    >>> instance = orthogonal(4)
    >>> instance.radius, instance.margin, instance.bound()
    (1.0, 0.5, 4.0)
    >>> low, high = instance.squared_margins()
    >>> low == high == instance.margin**2
    True
    """

    X: NDArray
    y: NDArray
    radius: float
    margin: float
    separator: NDArray
    weights: NDArray

    def bound(self, delta: float = 0.0, rate: float = 1.0) -> float:
        """Return the largest number of updates that a perceptron from 0 can make: (R² + 2δ/η)/γ².

        Parameters
        ----------
        delta : float, default=0
            δ, the margin up to which it updates.
        rate : float, default=1
            η.

        Returns
        -------
        float
        """
        return bounds.novikoff(self.radius, self.margin, delta=delta, rate=rate)

    def squared_margins(self) -> tuple[Fraction, Fraction]:
        """Return l and h with l ≤ γ² ≤ h, computed from the rows in exact arithmetic: the squared margin of the separator,
        and the squared length of the mean.

        Returns
        -------
        l, h : Fraction
        """
        A = read(self.X, self.y, constant=0.0).A
        separator, weights = Interior.of(self.separator), fractions(self.weights)
        least = min(separator.values(A))
        mean = [dot(fractions(column), weights) for column in A.T]
        low = max(least, Fraction(0)) ** 2 / dot(separator.x, separator.x)
        return low, dot(mean, mean) / sum(weights) ** 2


def exponential(n: int) -> Instance:
    """Return n rows in n dimensions on which the perceptron from 0 makes exactly (4ⁿ − 1)/3 updates, whatever the order.

    Row i is ((−1)ⁱ, …, (−1)ⁱ, (−1)ⁱ⁺¹, 0, …) with the label (−1)ⁱ⁺¹: it proposes −1 before position i, +1 there. A
    separator with products of at least 1 has wᵢ ≥ 1 + Σ wⱼ over j < i, hence wᵢ ≥ 2ⁱ⁻¹; wᵢ grows, by 1, only while
    wᵢ ≤ Σ wⱼ, hence wᵢ ≤ 2ⁱ⁻¹. So the run ends at w* = (1, 2, 4, …); all rows have the product 1 with it, so each update
    adds 1 to ⟨w, w*⟩, which ends at ‖w*‖² = (4ⁿ − 1)/3 = 1/γ². The bound, with R² = n, is n times that.

    The notes of Georgia Tech CS 4540 prove at least 2ⁿ⁻¹ mistakes (and write 2^O(n) for 2^Ω(n)), for rows said to be of
    length at most 1; these have the lengths √i, and dividing all of them by √n changes no mistake. They give wᵢ ≥ 2ⁱ⁻¹ to a
    *unit* vector, which has no such coordinates: it is true of a w with products of at least 1, such as every integer w
    that separates, and the perceptron's is one. One row has one label, so n = 1 comes with its mirror
    image, which proposes the same direction.

    Parameters
    ----------
    n : int
        The number of rows and of dimensions, from 1 to 500.

    Returns
    -------
    Instance

    Examples
    --------
    >>> instance = exponential(4)
    >>> instance.X.astype(int).tolist()
    [[1, 0, 0, 0], [1, -1, 0, 0], [-1, -1, 1, 0], [1, 1, 1, -1]]
    >>> exponential_updates(4), round(instance.bound())
    (85, 340)
    """
    n = int(_SIZE.check("n", n))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X = y[:, None] * (np.eye(n) - np.tril(np.ones((n, n)), -1))
    weights = np.array([float(count) for count in exponential_counts(n)])
    if n == 1:
        X, y, weights = np.array([[1.0], [-1.0]]), np.array([1, -1]), np.array([1.0, 0.0])
    return Instance(X + 0.0, y, sqrt(n), sqrt(3 / (4**n - 1)), np.array([2.0**i for i in range(n)]), weights)


def exponential_updates(n: int, delta: float = 0) -> int:
    """Return the updates on `exponential(n)` from 0 at rate 1, in any order: (4ⁿ − 1)/3 times the whole part of 1 + δ.

    Parameters
    ----------
    n : int
        The number of rows.
    delta : float, default=0
        δ, the margin up to which the perceptron updates.

    Returns
    -------
    int

    Examples
    --------
    >>> [exponential_updates(n) for n in (1, 2, 3, 10)]
    [1, 5, 21, 349525]
    """
    return (floor(delta) + 1) * (4 ** int(COUNT.check("n", n)) - 1) // 3


def exponential_epochs(n: int) -> int:
    """Return the epochs on `exponential(n)` in cyclic order, with the last, clean one: (4ⁿ + 8)/6.

    Parameters
    ----------
    n : int
        The number of rows.

    Returns
    -------
    int

    Examples
    --------
    >>> [exponential_epochs(n) for n in (1, 2, 3, 10)]
    [2, 4, 12, 174764]
    """
    return (4 ** int(COUNT.check("n", n)) + 8) // 6


def exponential_counts(n: int) -> list[int]:
    """Return how many updates each row of `exponential(n)` makes, in any order: αₙ = 2ⁿ⁻¹, αᵢ = 2ⁱ⁻¹ + Σ αⱼ over j > i.

    For w* = Σ αᵢaᵢ, and the rows are independent.

    Parameters
    ----------
    n : int
        The number of rows.

    Returns
    -------
    list of int

    Examples
    --------
    >>> exponential_counts(4), sum(exponential_counts(4)) == exponential_updates(4)
    ([43, 22, 12, 8], True)
    """
    counts: list[int] = []
    for i in reversed(range(int(COUNT.check("n", n)))):
        counts.append(2**i + sum(counts))
    return counts[::-1]


def orthogonal(n: int, radius: float = 1.0, y: ArrayLike | None = None) -> Instance:
    """Return n orthogonal rows of length R: of margin R/√n whatever the labels, with a mistake on each, R²/γ² = n in all.

    So the bound is attained; and no deterministic learner has a better one: the label of each row can be whatever it does
    not predict, and the margin will still be R/√n.

    Parameters
    ----------
    n : int
        The number of rows and of dimensions, at least 2.
    radius : float, default=1.0
        R.
    y : (n,) array of −1 and +1, optional
        The labels; they alternate by default.

    Returns
    -------
    Instance

    Examples
    --------
    >>> round(orthogonal(100).bound())
    100
    """
    n = int(Quantity(2, whole=True).check("n", n))
    POSITIVE.check("radius", radius)
    signs = np.where(np.arange(n) % 2 == 0, 1, -1) if y is None else np.asarray(y)
    if signs.shape != (n,) or set(signs.tolist()) != {-1, 1}:
        raise InvalidParameter("y", signs, f"{n} labels, −1 and +1, both of them")
    return Instance(radius * np.eye(n), signs, float(radius), radius / sqrt(n), signs.astype(np.float64), np.ones(n))


def with_margin(
    rows: int, features: int, *, margin: float, radius: float = 1.0, rotated: bool = True, random_state: RandomSeed = 0
) -> Instance:
    """Return random rows within a ball of this radius, one of them on it, with exactly this margin about a plane through 0.

    Each class has two rows γu ± v, v ⟂ u and as long as the ball allows, whose mean γu is the point of the hull nearest to
    0; the others lie anywhere beyond the margin. The margin is the same three times: through the origin; with an intercept
    (half the distance of the hulls of the classes); and with any constant feature, which the means of the classes cancel.

    Parameters
    ----------
    rows, features : int
        At least 5 rows and 1 feature.
    margin : float
        γ, at most the radius.
    radius : float, default=1.0
        R.
    rotated : bool, default=True
        Whether u is a random direction, so that the numbers are those asked for to the last few bits, as `squared_margins`
        tells; otherwise it is the first axis, and they are exact.
    random_state : int, Generator or None, default=0
        The source of the draws.

    Returns
    -------
    Instance

    Examples
    --------
    >>> instance = with_margin(100, 5, margin=0.1)
    >>> round(instance.bound()), min(instance.y * (instance.X @ instance.separator)).round(9)
    (100, np.float64(0.1))
    """
    n, d = int(Quantity(5, whole=True).check("rows", rows)), int(COUNT.check("features", features))
    POSITIVE.check("radius", radius)
    Quantity(open_low=True, high=radius, open_high=False, advice="it is at most the radius").check("margin", margin)
    rng = np.random.default_rng(random_state)
    side = np.concatenate([np.full(4, margin), [radius], margin + (radius - margin) * rng.uniform(size=n - 5)])
    room = np.sqrt(np.maximum(radius**2 - side**2, 0)) * (1 - 2.0**-40)  # less than the ball, lest rounding leaves it
    across = _directions(rng, n, d - 1) * room[:, None]
    across[5:] *= rng.uniform(size=(n - 5, 1)) ** (1 / max(1, d - 1))
    across[[1, 3]] = -across[[0, 2]]
    y = np.concatenate([[1, 1, -1, -1], np.where(rng.uniform(size=n - 4) < 0.5, -1, 1)])
    A = np.column_stack([side, across])
    u = np.eye(d)[0]
    if rotated and d > 1:
        target = _directions(rng, 1, d)[0]
        side = np.copysign(1.0, target[0])  # so that no mirror is short, and none of its digits are lost
        mirror = u + side * target
        A = -side * (A - np.outer(A @ mirror, mirror * (2 / (mirror @ mirror))))
        u = target
    order = rng.permutation(n)
    weights = np.where(np.arange(n) < 4, 1.0, 0.0)
    return Instance((A * y[:, None])[order], y[order], float(radius), float(margin), u, weights[order])


def smoothed(X: MatrixLike, sigma: float, random_state: RandomSeed = 0) -> NDArray:
    """Return X with independent Gaussian noise of standard deviation `sigma` on every entry.

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
    sigma : float
        The standard deviation, at least 0.
    random_state : int, Generator or None, default=0
        The source of the noise.

    Returns
    -------
    (rows, features) array

    Examples
    --------
    >>> smoothed([[1.0, 2.0]], sigma=0.1).round(2)
    array([[1.01, 1.99]])
    """
    X = dense(numbers(X))
    noise = NOT_NEGATIVE.check("sigma", sigma) * np.random.default_rng(random_state).standard_normal(X.shape)
    return noise + X


class Smoothing(NamedTuple):
    """The number of updates on copies of the data with noise of several sizes.

    Attributes
    ----------
    sigma : (sizes,) array
        The standard deviations of the noise.
    updates : (sizes, draws) array
        The number of updates of each run.
    separated : (sizes, draws) array
        Whether the run ended with a separator.

    Examples
    --------
    >>> instance = exponential(5)
    >>> found = smoothing(instance.X, instance.y, [0.0, 0.5], constant=0, draws=3)
    >>> found.updates.shape, found.updates[0].tolist(), bool(found.separated.all())
    ((2, 3), [341, 341, 341], True)
    """

    sigma: NDArray
    updates: NDArray
    separated: NDArray


def smoothing(
    X: MatrixLike,
    y: ArrayLike,
    sigmas: Sequence[float],
    *,
    constant: float = 1.0,
    draws: int = 10,
    max_updates: int = 1_000_000,
    random_state: RandomSeed = 0,
) -> Smoothing:
    """Count the updates of the perceptron from 0, rows in their order, on noisy copies of the data: some for each sigma.

    Blum and Dunagan (2002): rows of length at most 1 in d dimensions, m of them, with noise σ² ≤ 1/(2d), are separated
    after O(d³m² log²(m/δ)/(σ²δ²)) updates with probability 1 − δ, or nothing separates them any more. Runs that make
    `max_updates` are given up, at the end of their epoch. Nothing is rounded but the data.

    Parameters
    ----------
    X : (rows, features) array or scipy sparse matrix
    y : (rows,) array
        Two labels; without a constant feature also one.
    sigmas : sequence of float
        The standard deviations of the noise.
    constant : float, default=1.0
        κ, the constant feature; 0 for none.
    draws : int, default=10
        Noisy copies for each sigma.
    max_updates : int, default=1_000_000
        When to give a run up.
    random_state : int, Generator or None, default=0
        The source of the noise.

    Returns
    -------
    Smoothing
        The updates of each run, and whether it separated its rows.

    Examples
    --------
    Noise makes hard data easy:

    >>> instance = exponential(6)
    >>> found = smoothing(instance.X, instance.y, [0.0, 0.5], constant=0, draws=5)
    >>> np.median(found.updates, axis=1).tolist()
    [1365.0, 5.0]
    """
    rng = np.random.default_rng(random_state)
    updates = np.zeros((len(sigmas), draws), dtype=np.int64)
    separated = np.zeros((len(sigmas), draws), dtype=bool)
    for k, sigma in enumerate(sigmas):
        for draw in range(draws):
            walk = Walk(exact_rows(smoothed(X, sigma, rng), y, constant))
            moves = 1
            while moves and walk.updates < max_updates:
                moves = walk.epoch()
            updates[k, draw], separated[k, draw] = walk.updates, not moves
    return Smoothing(np.asarray(sigmas, dtype=np.float64), updates, separated)


def _directions(rng: np.random.Generator, n: int, d: int) -> NDArray:
    """(n, d) random unit vectors; of no dimension, of length 0."""
    found = rng.standard_normal((n, d))
    return found / np.linalg.norm(found, axis=1, keepdims=True) if d else found
