"""A price is a prediction that is punished on one side: ask too much and nothing is sold, too little and the rest is given
away. What is learned from is one bit, whether the customer bought.

Customer t brings a context x and values the good at v = ⟨θ, x⟩. The seller posts p and sees whether p ≤ v, never v. The
regret of the round is v − p·[p ≤ v]. A pricer is anything that can `price(x)` and `observe(x, price, sold)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.theory import bounds

_ROUNDING = 1e-12  # how near to its depth of 1 a cut at the very end of an interval is computed


class Pricer(Protocol):
    """Posts prices and learns from what is sold at them."""

    def price(self, x: NDArray) -> float:
        """The price to post for a customer with context x."""

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        """Learn whether the customer with context x bought at the price."""


class FixedPrice:
    """Posts one price, whatever the context."""

    def __init__(self, amount: float):
        self.amount = float(amount)

    def price(self, x: NDArray) -> float:
        return self.amount

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        pass


class EpsilonGreedy:
    """Explores in a share of the rounds, and in the others posts what it estimates, less a margin.

    To explore is to draw a price uniformly from [0, top]. Then top·[sold] is v on average, if 0 ≤ v ≤ top, and ridge
    regression (penalty 1) on the rounds explored estimates θ. Exploring for ever costs in proportion to the rounds.
    """

    def __init__(self, dimension: int, explore: float = 0.1, top: float = 1.0, margin: float = 0.05, random_state: Any = 0):
        if not 0 <= explore <= 1:
            raise ValueError(f"explore is a share of the rounds, from 0 to 1; got {explore}")
        _positive(top=top)
        self.explore, self.top, self.margin = float(explore), float(top), float(margin)
        self.weights = np.zeros(dimension)
        self.explorations = 0
        self._inverse = np.eye(dimension)  # (I + Σ x xᵀ)⁻¹ over the rounds explored
        self._drawn = math.nan
        self._rng = np.random.default_rng(random_state)

    def price(self, x: NDArray) -> float:
        if self._rng.random() < self.explore:
            self._drawn = float(self._rng.uniform(0, self.top))
            return self._drawn
        self._drawn = math.nan
        return float(self.weights @ x) - self.margin

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        if price != self._drawn:
            return
        self.explorations += 1
        gain = self._inverse @ x
        gain /= 1 + x @ gain
        self.weights += gain * (self.top * sold - self.weights @ x)
        self._inverse -= np.outer(gain, self._inverse @ x)


class PerceptronPricer:
    """Posts w·x − margin, and moves w by −rate·x where that was too much, by gain·x where it was not.

    Without a gain it is a perceptron, and has a bound. A refusal says w·x − margin > ⟨θ, x⟩, so it brings ‖w − θ‖² down by
    more than rate·(2·margin − rate·R²), R the length of the longest context. There are fewer refusals than ‖start − θ‖²
    divided by that (`miss_bound`), ‖start − θ‖²·R²/margin² with rate = margin/R². But a price that is too low stays so.
    With a gain, about gain/(rate + gain) of the customers refuse in the long run, and the regret is linear.

    >>> pricer = PerceptronPricer(2, margin=0.1, rate=0.1, gain=0.0, start=[1.0, 1.0])
    >>> sales = simulate(pricer, [[1, 0], [0, 1]] * 50, theta=[0.3, 0.6])
    >>> sales.misses, round(pricer.miss_bound(distance=math.hypot(0.7, 0.4), radius=1), 1)
    (11, 65.0)
    """

    def __init__(
        self, dimension: int, margin: float = 0.05, rate: float = 0.1, gain: float = 0.01, start: ArrayLike | None = None
    ):
        if margin < 0 or gain < 0:
            raise ValueError(f"margin and gain must not be negative; got {margin} and {gain}")
        _positive(rate=rate)
        self.margin, self.rate, self.gain = float(margin), float(rate), float(gain)
        self.weights = np.zeros(dimension) if start is None else np.array(start, dtype=np.float64)
        if self.weights.shape != (dimension,):
            raise ValueError(f"start must have shape ({dimension},); it has {self.weights.shape}")
        self.misses = 0

    def price(self, x: NDArray) -> float:
        return float(self.weights @ x) - self.margin

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        self.misses += not sold
        self.weights += (self.gain if sold else -self.rate) * x

    def miss_bound(self, distance: float, radius: float) -> float:
        """The most refusals, if no context is longer than `radius` and the start is within `distance` of θ; infinity with
        a gain, or a rate ≥ 2·margin/radius²."""
        return math.inf if self.gain > 0 else bounds.refusals(distance, radius, self.margin, self.rate)


class EllipsoidPricer:
    """Knows an ellipsoid that contains θ; posts the middle price while that may teach something, then the lowest possible.

    For a context x the values ⟨θ, x⟩ of the points of the ellipsoid are an interval. If it is wider than epsilon, its
    middle is posted; the answer cuts the ellipsoid in half, and the smallest ellipsoid around the half that is left takes
    its place. Otherwise the lower end is posted, which is always sold. With epsilon = d²/horizon the regret is
    O(d² ln(horizon/d)) for any sequence of contexts of length ≤ 1 (Cohen, Lobel and Paes Leme, "Feature-based dynamic
    pricing", 2016). One dimension is bisection.

    Values must be linear without noise: one false answer may cut θ off for good.

    Parameters
    ----------
    dimension : int
        The length of a context.
    horizon : int, optional
        The number of rounds to come; epsilon is then dimension²/horizon.
    epsilon : float, optional
        The width of an interval that is not worth cutting. Give this or the horizon.
    radius : float, default=1
        A bound on the length of θ: the ball of this radius is where it begins.

    Attributes
    ----------
    centre : (d,) array
    axes : (d, d) array
        The ellipsoid is {centre + axes·z: ‖z‖ ≤ 1}. Cuts multiply the axes, so no rounding makes it lose its shape.
    explorations : int
        Cuts so far.
    contradictions : int
        Answers that no point of the ellipsoid could give, and that were left aside: above 0, the model is wrong.

    >>> place = market(2, 4000)
    >>> pricer = EllipsoidPricer(2, horizon=4000)
    >>> sales = simulate(pricer, place.contexts, place.theta)
    >>> round(float(sales.regret.sum()), 1), sales.misses, pricer.explorations
    (27.0, 25, 60)
    """

    def __init__(self, dimension: int, horizon: int | None = None, epsilon: float | None = None, radius: float = 1.0):
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1; got {dimension}")
        if horizon is not None and epsilon is None:
            _positive(horizon=horizon)
            epsilon = dimension**2 / horizon
        elif horizon is not None or epsilon is None:
            raise ValueError(f"give horizon or epsilon, and not both; got horizon={horizon}, epsilon={epsilon}")
        _positive(epsilon=epsilon, radius=radius)
        self.epsilon = float(epsilon)
        self.centre = np.zeros(dimension)
        self.axes = float(radius) * np.eye(dimension)
        self.explorations = 0
        self.contradictions = 0

    def interval(self, x: NDArray) -> tuple[float, float]:
        """The lowest and the highest value that a customer with context x can have."""
        middle, half = self._middle(x)
        return middle - half, middle + half

    def reach(self, theta: ArrayLike) -> float:
        """How far out in the ellipsoid θ lies: 0 at the centre, 1 on the boundary, more outside."""
        return float(np.linalg.norm(np.linalg.solve(self.axes, np.asarray(theta) - self.centre)))

    def price(self, x: NDArray) -> float:
        middle, half = self._middle(x)
        return middle if 2 * half > self.epsilon else middle - half

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        """Keep what the answer leaves of the ellipsoid, for any price posted, if the interval is worth a cut.

        Let A = axes·axesᵀ, b = Ax/√(xᵀAx), and α the depth of the cut: its distance from the centre in half widths,
        positive where more than half is cut off, 0 for the middle price. If sold, the centre moves by (1 + dα)/(d + 1)·b,
        if not by minus that, and A becomes d²(1 − α²)/(d² − 1)·(A − 2(1 + dα)/((d + 1)(1 + α))·bbᵀ). A cut with α ≤ −1/d
        is too shallow to leave a smaller ellipsoid, one with α ≥ 1 leaves nothing and is counted as a contradiction.
        """
        d = len(self.centre)
        middle, half = self._middle(x)
        if half == 0:
            return
        side = 1.0 if sold else -1.0
        depth = side * (price - middle) / half
        if depth > 1 - _ROUNDING:
            self.contradictions += 1
        elif depth > -1 / d and 2 * half > self.epsilon:
            self._cut(x / half, side, depth)

    def _cut(self, x: NDArray, side: float, depth: float) -> None:
        """Cut at this depth, across an x of which half the width is 1."""
        d = len(self.centre)
        across = self.axes.T @ x  # the direction of the cut in the coordinates in which the ellipsoid is a ball
        b = self.axes @ across
        self.centre += side * (1 + d * depth) / (d + 1) * b
        if d == 1:
            self.axes *= (1 - depth) / 2
        else:
            kept = math.sqrt((1 - depth) * (d - 1) / ((1 + depth) * (d + 1)))  # √(1 − 2(1 + dα)/((d + 1)(1 + α)))
            self.axes -= np.outer((1 - kept) * b, across)
            self.axes *= d * math.sqrt((1 - depth**2) / (d**2 - 1))
        self.explorations += 1

    def _middle(self, x: NDArray) -> tuple[float, float]:
        """The middle of the interval of x, and half its width."""
        image = self.axes.T @ x
        return float(self.centre @ x), math.sqrt(image @ image)


class Sales(NamedTuple):
    """What happened, round by round."""

    price: NDArray  # (rounds,)
    value: NDArray  # (rounds,)
    sold: NDArray  # (rounds,) bool

    @property
    def regret(self) -> NDArray:
        """(rounds,) what the seller would have had more with the price v: all of v where nothing was sold, else v − p."""
        return self.value - self.price * self.sold

    @property
    def cumulative_regret(self) -> NDArray:
        """(rounds,) the regret so far."""
        return np.cumsum(self.regret)

    @property
    def revenue(self) -> float:
        return float(self.price[self.sold].sum())

    @property
    def misses(self) -> int:
        """Customers who refused."""
        return int(np.count_nonzero(~self.sold))

    @property
    def distance(self) -> NDArray:
        """(rounds,) |p − v|."""
        return np.abs(self.price - self.value)


def simulate(
    pricer: Pricer, contexts: Iterable[ArrayLike], theta: ArrayLike, noise: float = 0.0, random_state: Any = 0
) -> Sales:
    """Offer the good to a customer for each context, who values it at ⟨θ, x⟩ plus `noise` times a normal variable; what
    happened. The pricer learns on the way. The contexts may be drawn as they are needed, by a generator for example.
    """
    theta = np.asarray(theta, dtype=np.float64)
    rng = np.random.default_rng(random_state)
    prices: list[float] = []
    values: list[float] = []
    sold: list[bool] = []
    for x in contexts:
        x = np.asarray(x, dtype=np.float64)
        if x.shape != theta.shape:
            raise ValueError(f"context {len(prices)} has shape {x.shape}, but theta has {theta.shape}; they must agree")
        value = float(theta @ x) + (noise * float(rng.standard_normal()) if noise else 0.0)
        price = pricer.price(x)
        if not math.isfinite(price):
            raise ValueError(f"{type(pricer).__name__} posted {price} in round {len(prices)}; a price must be a number")
        prices.append(price)
        values.append(value)
        sold.append(price <= value)
        pricer.observe(x, price, sold[-1])
    return Sales(np.array(prices, np.float64), np.array(values, np.float64), np.array(sold, bool))


class Market(NamedTuple):
    """Customers to come, and what they value."""

    contexts: NDArray  # (rounds, dimension), of length 1, no coordinate negative
    theta: NDArray  # (dimension,), no coordinate negative


def market(
    dimension: int, rounds: int, contexts: str = "sphere", radius: float = 1.0, drift: float = 0.01, random_state: Any = 0
) -> Market:
    """A market with a random θ of length `radius`; no value is negative.

    `contexts` are "sphere": random directions; "basis": one coordinate after the other, so that nothing learned from one
    customer helps with the next; "drift": a direction that wanders, `drift` a round, so that what comes is not what came.
    """
    makers = {"sphere": _sphere, "basis": _basis, "drift": _drift}
    if contexts not in makers:
        raise ValueError(f"contexts must be one of {', '.join(map(repr, makers))}; got {contexts!r}")
    rng = np.random.default_rng(random_state)
    theta = np.abs(rng.standard_normal(dimension))
    return Market(makers[contexts](rng, rounds, dimension, drift), radius * theta / np.linalg.norm(theta))


def _sphere(rng: np.random.Generator, rounds: int, dimension: int, drift: float) -> NDArray:
    return _directions(rng.standard_normal((rounds, dimension)))


def _basis(rng: np.random.Generator, rounds: int, dimension: int, drift: float) -> NDArray:
    return np.eye(dimension)[np.arange(rounds) % dimension]


def _drift(rng: np.random.Generator, rounds: int, dimension: int, drift: float) -> NDArray:
    steps = drift * rng.standard_normal((rounds, dimension))
    steps[0] = rng.standard_normal(dimension)
    return _directions(np.cumsum(steps, axis=0))


def _directions(points: NDArray) -> NDArray:
    points = np.abs(points)
    return points / np.linalg.norm(points, axis=1)[:, None]


def _positive(**numbers: Any) -> None:
    for name, value in numbers.items():
        if not value > 0:
            raise ValueError(f"{name} must be a number > 0; got {value}")
