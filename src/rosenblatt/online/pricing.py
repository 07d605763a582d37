"""A price is a prediction that is punished on one side: ask too much and nothing is sold, too little and the rest is given
away. What is learned from is one bit, whether the customer bought.

Customer t brings a context x and values the good at v = ⟨θ, x⟩. The seller posts p and sees whether p ≤ v, never v. The
regret of the round is v − p·[p ≤ v]. A pricer is anything that can `price(x)` and `observe(x, price, sold)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import IncompatibleParameters, InvalidData, InvalidParameter

Seed = int | np.random.Generator | None

_ROUNDING = 1e-12  # how near to its depth of 1 a cut at the very end of an interval is computed


class Pricer(Protocol):
    """A seller that posts prices and learns from what is sold at them.

    Examples
    --------
    A pricer of your own has these two methods:

    >>> class Haggler:
    ...     amount = 1.0
    ...     def price(self, x):
    ...         return self.amount
    ...     def observe(self, x, price, sold):
    ...         self.amount *= 1.1 if sold else 0.9
    >>> sales = simulate(Haggler(), [[1.0]] * 20, theta=[0.5])
    >>> int(sales.sold.sum()), sales.misses
    (7, 13)
    """

    def price(self, x: NDArray) -> float:
        """Return the price to post for a customer with context x."""

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        """Learn whether the customer with context x bought at the price."""


class FixedPrice:
    """A pricer that posts one price, whatever the context.

    Parameters
    ----------
    amount : float
        The price.

    Examples
    --------
    >>> sales = simulate(FixedPrice(0.5), [[1, 0], [0, 1]] * 10, theta=[0.3, 0.6])
    >>> int(sales.sold.sum()), round(float(sales.regret.sum()), 2)
    (10, 4.0)
    """

    def __init__(self, amount: float):
        self.amount = float(amount)

    def price(self, x: NDArray) -> float:
        return self.amount

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        pass


class EpsilonGreedy:
    """A pricer that explores in a share of the rounds, and in the others posts its estimate of the value, less a margin.

    To explore is to draw a price uniformly from [0, top]. Then top·[sold] is v on average, if 0 ≤ v ≤ top, and ridge
    regression (penalty 1) on the rounds explored estimates θ. Exploring for ever costs in proportion to the rounds.

    Parameters
    ----------
    dimension : int
        The length of a context.
    explore : float in [0, 1], default=0.1
        The share of rounds in which it explores.
    top : float, default=1
        The highest price that it explores.
    margin : float, default=0.05
        How much less than the estimate it posts.
    random_state : int, Generator or None, default=0
        The source of random numbers.

    Examples
    --------
    >>> place = market(2, 2000)
    >>> greedy = simulate(EpsilonGreedy(2), place.contexts, place.theta)
    >>> fixed = simulate(FixedPrice(0.5), place.contexts, place.theta)
    >>> round(float(greedy.regret.sum())), round(float(fixed.regret.sum()))
    (235, 805)
    """

    def __init__(
        self, dimension: int, explore: float = 0.1, top: float = 1.0, margin: float = 0.05, random_state: Seed = 0
    ):
        if not 0 <= explore <= 1:
            raise InvalidParameter("explore", explore, "a share of the rounds, from 0 to 1")
        _check_positive(top=top)
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
    """A pricer that posts w·x − margin, and moves w by −rate·x where that was too much, by gain·x where it was not.

    Without a gain it is a perceptron, and has a bound. A refusal says w·x − margin > ⟨θ, x⟩, so it brings ‖w − θ‖² down by
    more than rate·(2·margin − rate·R²), R the length of the longest context. There are fewer refusals than ‖start − θ‖²
    divided by that (`miss_bound`), ‖start − θ‖²·R²/margin² with rate = margin/R². But a price that is too low stays so.
    With a gain, about gain/(rate + gain) of the customers refuse in the long run, and the regret is linear.

    Parameters
    ----------
    dimension : int
        The length of a context.
    margin : float, default=0.05
        How much less than w·x it posts.
    rate, gain : float, default=0.1 and 0.01
        How far it moves after a refusal, and after a sale.
    start : (dimension,) array-like, optional
        The first w. By default zero.

    Examples
    --------
    >>> pricer = PerceptronPricer(2, margin=0.1, rate=0.1, gain=0.0, start=[1.0, 1.0])
    >>> sales = simulate(pricer, [[1, 0], [0, 1]] * 50, theta=[0.3, 0.6])
    >>> sales.misses, round(pricer.miss_bound(distance=math.hypot(0.7, 0.4), radius=1), 1)
    (11, 65.0)
    """

    def __init__(
        self, dimension: int, margin: float = 0.05, rate: float = 0.1, gain: float = 0.01, start: ArrayLike | None = None
    ):
        for name, value in (("margin", margin), ("gain", gain)):
            if value < 0:
                raise InvalidParameter(name, value, "a number ≥ 0")
        _check_positive(rate=rate)
        self.margin, self.rate, self.gain = float(margin), float(rate), float(gain)
        self.weights = np.zeros(dimension) if start is None else np.array(start, dtype=np.float64)
        if self.weights.shape != (dimension,):
            raise InvalidParameter("start", start, f"of shape ({dimension},)")
        self.misses = 0

    def price(self, x: NDArray) -> float:
        return float(self.weights @ x) - self.margin

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        self.misses += not sold
        self.weights += (self.gain if sold else -self.rate) * x

    def miss_bound(self, distance: float, radius: float) -> float:
        """Return a bound on the number of refusals.

        Parameters
        ----------
        distance : float
            ‖start − θ‖, or more.
        radius : float
            The length of the longest context, or more.

        Returns
        -------
        bound : float
            Infinity with a gain, or with a rate ≥ 2·margin/radius².
        """
        from rosenblatt.theory import bounds

        return math.inf if self.gain > 0 else bounds.refusals(distance, radius, self.margin, self.rate)


class EllipsoidPricer:
    """A pricer that knows an ellipsoid around θ. It posts the middle price while that may cut it, then the lowest possible.

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

    Examples
    --------
    >>> place = market(2, 4000)
    >>> pricer = EllipsoidPricer(2, horizon=4000)
    >>> sales = simulate(pricer, place.contexts, place.theta)
    >>> round(float(sales.regret.sum()), 1), sales.misses, pricer.explorations
    (27.0, 25, 60)
    """

    def __init__(self, dimension: int, horizon: int | None = None, epsilon: float | None = None, radius: float = 1.0):
        if horizon is not None and epsilon is None:
            _check_positive(horizon=horizon)
            epsilon = dimension**2 / horizon
        elif horizon is not None or epsilon is None:
            one, other = ("horizon", horizon), ("epsilon", epsilon)
            raise IncompatibleParameters(one, other, "exactly one of them is needed")
        _check_positive(dimension=dimension, epsilon=epsilon, radius=radius)
        self.epsilon = float(epsilon)
        self.centre = np.zeros(dimension)
        self.axes = float(radius) * np.eye(dimension)
        self.explorations = 0
        self.contradictions = 0

    def interval(self, x: NDArray) -> tuple[float, float]:
        """Return the lowest and the highest value that a customer with context x can have.

        Parameters
        ----------
        x : (dimension,) array
            The context.

        Returns
        -------
        low, high : float
        """
        middle, half = self._middle(x)
        return middle - half, middle + half

    def reach(self, theta: ArrayLike) -> float:
        """Compute how far out in the ellipsoid θ lies.

        Parameters
        ----------
        theta : (dimension,) array-like
            The point.

        Returns
        -------
        reach : float
            0 at the centre, 1 on the boundary, more outside.
        """
        return float(np.linalg.norm(np.linalg.solve(self.axes, np.asarray(theta) - self.centre)))

    def price(self, x: NDArray) -> float:
        middle, half = self._middle(x)
        return middle if 2 * half > self.epsilon else middle - half

    def observe(self, x: NDArray, price: float, sold: bool) -> None:
        """Cut off what the answer excludes of the ellipsoid, for any price posted, if the interval is worth a cut.

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
    """The result of a simulation.

    Attributes
    ----------
    price, value : (rounds,) arrays
        The prices posted, and what the good was worth to the customers.
    sold : (rounds,) bool array
        Whether the customers bought.

    Examples
    --------
    >>> sales = simulate(FixedPrice(0.5), [[1, 0], [0, 1]], theta=[0.25, 0.75])
    >>> sales.sold.tolist(), sales.regret.tolist(), sales.cumulative_regret.tolist()
    ([False, True], [0.25, 0.25], [0.25, 0.5])
    """

    price: NDArray
    value: NDArray
    sold: NDArray

    @property
    def regret(self) -> NDArray:
        """The regret of each round: v where nothing was sold, else v − p."""
        return self.value - self.price * self.sold

    @property
    def cumulative_regret(self) -> NDArray:
        """The regret up to each round."""
        return np.cumsum(self.regret)

    @property
    def revenue(self) -> float:
        """The sum of the prices paid."""
        return float(self.price[self.sold].sum())

    @property
    def misses(self) -> int:
        """The number of customers who refused."""
        return int(np.count_nonzero(~self.sold))

    @property
    def distance(self) -> NDArray:
        """The distance |p − v| in each round."""
        return np.abs(self.price - self.value)


def simulate(
    pricer: Pricer, contexts: Iterable[ArrayLike], theta: ArrayLike, noise: float = 0.0, random_state: Seed = 0
) -> Sales:
    """Simulate customers who are offered a price each, from whom the pricer learns.

    Parameters
    ----------
    pricer : Pricer
        What posts the prices.
    contexts : iterable of (dimension,) array-likes
        The contexts of the customers. A generator may draw them as they are needed.
    theta : (dimension,) array-like
        A customer with context x values the good at ⟨θ, x⟩, plus noise.
    noise : float, default=0.0
        The standard deviation of the noise, which is normal.
    random_state : int, Generator or None, default=0
        The source of the noise.

    Returns
    -------
    sales : Sales
        Prices, values and sales of each round.

    Examples
    --------
    >>> sales = simulate(EllipsoidPricer(2, horizon=100), [[1, 0], [0, 1]] * 50, theta=[0.3, 0.6])
    >>> sales.price[-2:].round(1).tolist(), sales.misses
    ([0.3, 0.6], 14)
    """
    theta = np.asarray(theta, dtype=np.float64)
    rng = np.random.default_rng(random_state)
    prices: list[float] = []
    values: list[float] = []
    sold: list[bool] = []
    for x in contexts:
        x = np.asarray(x, dtype=np.float64)
        if x.shape != theta.shape:
            raise InvalidData(f"context {len(prices)} has shape {x.shape}, but theta has {theta.shape}", row=len(prices))
        value = float(theta @ x) + (noise * float(rng.standard_normal()) if noise else 0.0)
        price = pricer.price(x)
        if not math.isfinite(price):
            raise InvalidData(
                f"{type(pricer).__name__} posted {price} in round {len(prices)}", hint="a price must be finite"
            )
        prices.append(price)
        values.append(value)
        sold.append(price <= value)
        pricer.observe(x, price, sold[-1])
    return Sales(np.array(prices, np.float64), np.array(values, np.float64), np.array(sold, bool))


class Market(NamedTuple):
    """Customers to come, and what they value.

    Attributes
    ----------
    contexts : (rounds, dimension) array
        Of length 1, and without negative coordinates.
    theta : (dimension,) array
        Without negative coordinates.

    Examples
    --------
    >>> contexts, theta = market(3, 100)
    >>> contexts.shape, theta.shape, bool((contexts @ theta >= 0).all())
    ((100, 3), (3,), True)
    """

    contexts: NDArray
    theta: NDArray


def market(
    dimension: int, rounds: int, contexts: str = "sphere", radius: float = 1.0, drift: float = 0.01, random_state: Seed = 0
) -> Market:
    """Make a market with a random θ in which no value is negative.

    Parameters
    ----------
    dimension, rounds : int
        The length and the number of contexts.
    contexts : {"sphere", "basis", "drift"}, default="sphere"
        Random directions; one coordinate after the other, so that nothing learned from one customer helps with the next;
        or a direction that wanders, so that what comes is not what came.
    radius : float, default=1.0
        The length of θ.
    drift : float, default=0.01
        How far a direction wanders in a round.
    random_state : int, Generator or None, default=0
        The source of random numbers.

    Returns
    -------
    market : Market

    Examples
    --------
    >>> market(2, 4, contexts="basis").contexts.tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    if contexts not in ("sphere", "basis", "drift"):
        raise InvalidParameter("contexts", contexts, "one of 'sphere', 'basis', 'drift'")
    rng = np.random.default_rng(random_state)
    theta = np.abs(rng.standard_normal(dimension))
    points = np.eye(dimension)[np.arange(rounds) % dimension]
    if contexts != "basis":
        points = rng.standard_normal((rounds, dimension))
    if contexts == "drift":
        points *= drift
        points[0] = rng.standard_normal(dimension)
        points = np.cumsum(points, axis=0)
    points = np.abs(points)
    return Market(points / np.linalg.norm(points, axis=1)[:, None], radius * theta / np.linalg.norm(theta))


def _check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not value > 0:
            raise InvalidParameter(name, value, "a number > 0")
