"""Posted prices: what the ellipsoid costs and keeps, what the perceptron is bound by, and what the others lose."""

import math

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

matplotlib.use("Agg")

from matplotlib import pyplot

from rosenblatt import plot
from rosenblatt.online.pricing import (
    EllipsoidPricer,
    EpsilonGreedy,
    FixedPrice,
    PerceptronPricer,
    Sales,
    market,
    simulate,
)

KINDS = ("sphere", "basis", "drift")


def drawn(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


class Watched:
    """A pricer that answers for where θ is after every round."""

    def __init__(self, pricer, theta):
        self.pricer, self.theta, self.furthest = pricer, theta, 0.0

    def price(self, x):
        self.low, self.high = self.pricer.interval(x)
        assert self.low - 1e-9 <= self.theta @ x <= self.high + 1e-9
        return self.pricer.price(x)

    def observe(self, x, price, sold):
        if self.high - self.low <= self.pricer.epsilon:
            assert sold, "the lowest possible price is refused by nobody"
        self.pricer.observe(x, price, sold)
        self.furthest = max(self.furthest, self.pricer.reach(self.theta))


@pytest.mark.parametrize(("dimension", "published"), [(2, (27.0, 29.0)), (5, (106.9, 116.7)), (10, (319.5, 342.0))])
def test_regret_of_the_ellipsoid(dimension, published):
    """4,000 customers; θ and contexts are directions of the positive orthant, seeds 0 and 1."""
    for seed, expected in enumerate(published):
        place = market(dimension, 4000, random_state=seed)
        sales = simulate(EllipsoidPricer(dimension, horizon=4000), place.contexts, place.theta)
        assert sales.regret.sum() == pytest.approx(expected, abs=0.06)


def textbook(contexts, theta, epsilon, radius):
    """The prices of ellipsoid pricing as the paper writes it, with the matrix A and cuts through the centre."""
    d = len(theta)
    A, c, prices = radius**2 * np.eye(d), np.zeros(d), []
    for x in contexts:
        q = math.sqrt(x @ A @ x)
        if 2 * q > epsilon:
            prices.append(c @ x)
            b = A @ x / q
            c = c + b / (d + 1) if prices[-1] <= theta @ x else c - b / (d + 1)
            A = d**2 / (d**2 - 1) * (A - 2 / (d + 1) * np.outer(b, b))
        else:
            prices.append(c @ x - q)
    return np.array(prices)


@given(st.integers(2, 4), st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 10**6))
def test_prices_are_those_of_the_paper(dimension, radius, seed):
    """Contexts of any sign; until rounding may decide about a sale."""
    contexts = drawn(seed, 60, dimension)
    theta = drawn(seed + 1, dimension)
    theta *= radius * 0.9 / np.linalg.norm(theta)
    sales = simulate(EllipsoidPricer(dimension, epsilon=0.05, radius=radius), contexts, theta)
    expected = textbook(contexts, theta, 0.05, radius)
    assert np.allclose(sales.price, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_theta_never_leaves_the_ellipsoid(dimension, kind):
    for seed in range(3):
        place = market(dimension, 600, kind, radius=2.0, random_state=seed)  # θ begins on the boundary
        watched = Watched(EllipsoidPricer(dimension, horizon=600, radius=2.0), place.theta)
        sales = simulate(watched, place.contexts, place.theta)
        assert watched.furthest <= 1 + 1e-9
        assert watched.pricer.contradictions == 0
        assert 0 < watched.pricer.explorations < 600
        assert sales.regret.sum() < 0.5 * sales.value.sum()


@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_the_worst_customers_do_no_harm(dimension):
    """Contexts that always ask about the longest axis, drawn as the ellipsoid changes."""
    theta = np.abs(drawn(5, dimension))
    theta /= np.linalg.norm(theta)
    pricer = EllipsoidPricer(dimension, epsilon=1e-4)

    def adversary():
        for _ in range(1500):
            yield np.linalg.svd(pricer.axes)[0][:, 0]

    watched = Watched(pricer, theta)
    simulate(watched, adversary(), theta)
    assert watched.furthest <= 1 + 1e-9
    assert np.linalg.norm(pricer.axes, 2) <= 1e-4 / 2, "every direction is known in the end"


def test_a_long_run_keeps_its_shape():
    place = market(2, 100_000)
    pricer = EllipsoidPricer(2, horizon=100_000)
    sales = simulate(pricer, place.contexts, place.theta)
    assert np.linalg.eigvalsh(pricer.axes @ pricer.axes.T).min() > 0
    assert pricer.reach(place.theta) <= 1 + 1e-9
    assert sales.regret.sum() < 60
    tail = sales.regret[50_000:]
    assert np.mean((tail >= 0) & (tail <= pricer.epsilon)) > 0.999


def test_hundreds_of_cuts_keep_their_shape():
    """Down to widths at which float64 has three digits left."""
    theta = np.array([0.6, 0.3, 0.1])
    pricer = EllipsoidPricer(3, epsilon=1e-12)
    watched = Watched(pricer, theta)
    simulate(watched, market(3, 3000).contexts, theta)
    assert pricer.explorations > 300
    assert watched.furthest <= 1 + 1e-3
    assert np.linalg.svd(pricer.axes)[1].min() > 0


@given(st.integers(1, 5), st.floats(-0.99, 0.99), st.booleans(), st.integers(0, 10**6))
def test_any_price_keeps_every_point_that_fits_the_answer(dimension, depth, sold, seed):
    """Also prices that are not the middle: rounded to cents, or set by somebody else."""
    pricer = EllipsoidPricer(dimension, epsilon=1e-6)
    for x in drawn(seed, 3, dimension):
        pricer.observe(x, pricer.price(x), bool(x[0] > 0))
    x = drawn(seed + 1, dimension)
    low, high = pricer.interval(x)
    price = (low + high) / 2 + depth * (high - low) / 2
    z = drawn(seed + 2, 200, dimension)
    z *= (np.random.default_rng(seed).random(200) ** (1 / dimension) / np.linalg.norm(z, axis=1))[:, None]
    points = pricer.centre + z @ pricer.axes.T
    fits = (points @ x >= price) == sold
    before, cuts = abs(np.linalg.det(pricer.axes)), pricer.explorations
    pricer.observe(x, price, sold)
    assert all(pricer.reach(point) <= 1 + 1e-9 for point in points[fits])
    after, alpha = abs(np.linalg.det(pricer.axes)), depth if sold else -depth
    if pricer.explorations == cuts:
        assert alpha <= -1 / dimension + 1e-9
        assert after == before
    elif alpha >= 0:
        assert after <= before * math.exp(-1 / (2 * (dimension + 1))) * (1 + 1e-9)
    else:
        assert after <= before * (1 + 1e-9)


def test_one_dimension_is_bisection():
    pricer, widths = EllipsoidPricer(1, epsilon=1e-3), []
    x, theta = np.ones(1), np.array([0.3137])
    for _ in range(30):
        low, high = pricer.interval(x)
        widths.append(high - low)
        price = pricer.price(x)
        pricer.observe(x, price, price <= theta[0])
    assert widths[:12] == [2.0 * 0.5**k for k in range(12)]
    assert widths[-1] <= 1e-3
    assert pricer.explorations == 11
    assert 0 <= theta[0] - pricer.price(x) <= 1e-3


def totals(make, dimension, horizons):
    place = market(dimension, horizons[-1])
    return [simulate(make(h), place.contexts[:h], place.theta).regret.sum() for h in horizons]


@pytest.mark.parametrize("dimension", [2, 4])
def test_regret_grows_as_the_logarithm(dimension):
    growth = np.diff(totals(lambda h: EllipsoidPricer(dimension, horizon=h), dimension, [500, 1000, 2000, 4000, 8000]))
    assert growth.max() <= 2 * dimension**2 * math.log(2), "doubling the rounds adds a constant"


@pytest.mark.parametrize("make", [PerceptronPricer, EpsilonGreedy, lambda dimension: FixedPrice(0.5)])
def test_the_others_grow_with_the_rounds(make):
    """In 3,000 more rounds they lose more than twenty times what the ellipsoid loses."""
    more = np.diff(totals(lambda h: make(3), 3, [3000, 6000]))[0]
    assert more > 0.05 * 3000
    assert more > 20 * np.diff(totals(lambda h: EllipsoidPricer(3, horizon=h), 3, [3000, 6000]))[0]


def test_what_is_lost():
    place = market(3, 500)
    sales = simulate(PerceptronPricer(3), place.contexts, place.theta)
    assert np.allclose(sales.value, place.contexts @ place.theta)
    assert np.array_equal(sales.sold, sales.price <= sales.value)
    assert sales.regret.sum() == pytest.approx(sales.value.sum() - sales.revenue)
    assert np.array_equal(sales.regret[~sales.sold], sales.value[~sales.sold]), "all of it where nothing is sold"
    assert np.allclose(sales.regret[sales.sold], sales.distance[sales.sold]), "the rest where it is"
    assert (sales.distance >= 0).all()
    assert sales.cumulative_regret[-1] == pytest.approx(sales.regret.sum())
    assert 0 < sales.misses == int((~sales.sold).sum())


@given(st.integers(1, 4), st.floats(0.01, 1), st.floats(0.1, 1.9), st.integers(0, 10**6))
def test_refusals_of_the_perceptron_are_bounded(dimension, margin, share, seed):
    """Contexts of any sign and length, in any order; rate = share·margin/R² with share below 2."""
    contexts, theta, start = drawn(seed, 100, dimension), drawn(seed + 1, dimension), 3 * drawn(seed + 2, dimension)
    radius = float(np.linalg.norm(contexts, axis=1).max())
    pricer = PerceptronPricer(dimension, margin=margin, rate=share * margin / radius**2, gain=0.0, start=start)
    sales = simulate(pricer, np.tile(contexts, (3, 1)), theta)
    assert sales.misses == pricer.misses <= pricer.miss_bound(float(np.linalg.norm(start - theta)), radius) * (1 + 1e-9)


def test_where_the_perceptron_has_no_bound():
    assert PerceptronPricer(2, gain=0.01).miss_bound(1, 1) == math.inf
    assert PerceptronPricer(2, margin=0.1, rate=0.2, gain=0).miss_bound(1, 1) == math.inf
    assert PerceptronPricer(2, margin=0.1, rate=0.1, gain=0).miss_bound(1, 1) == pytest.approx(100)


def test_the_gain_sets_the_share_of_refusals():
    place = market(4, 8000)
    sales = simulate(PerceptronPricer(4, rate=0.1, gain=0.02), place.contexts, place.theta)
    assert np.mean(~sales.sold[2000:]) == pytest.approx(0.02 / 0.12, abs=0.02)


def test_exploring_estimates_by_least_squares():
    place, top = market(3, 3000), 1.5
    pricer = EpsilonGreedy(3, explore=1.0, top=top, random_state=7)
    sales = simulate(pricer, place.contexts, place.theta)
    assert pricer.explorations == 3000
    assert 0 <= sales.price.min() < sales.price.max() <= top
    X = place.contexts
    expected = np.linalg.solve(np.eye(3) + X.T @ X, X.T @ (top * sales.sold))
    assert np.allclose(pricer.weights, expected)
    assert np.linalg.norm(pricer.weights - place.theta) < 0.1


def test_greedy_learns_from_what_it_explored_only():
    place = market(3, 2000)
    pricer = EpsilonGreedy(3, explore=0.2)
    simulate(pricer, place.contexts, place.theta)
    assert pricer.explorations == pytest.approx(400, abs=60)
    before = pricer.weights.copy()
    pricer.observe(place.contexts[0], 0.123, True)
    assert np.array_equal(before, pricer.weights)


def test_a_false_answer_is_noticed():
    """With noise the ellipsoid shrinks around nothing; it says so and goes on."""
    place = market(2, 2000)
    pricer = EllipsoidPricer(2, epsilon=1e-3)
    sales = simulate(pricer, place.contexts, place.theta, noise=0.3)
    assert np.isfinite(sales.price).all()
    assert pricer.reach(place.theta) > 1
    assert pricer.contradictions > 100, "prices that were certain to be accepted were refused"
    certain = EllipsoidPricer(2, epsilon=1e-3)
    certain.observe(np.array([1.0, 0.0]), 1.5, True)
    assert (certain.contradictions, certain.explorations) == (1, 0)
    assert np.array_equal(certain.axes, np.eye(2))
    certain.observe(np.zeros(2), 0.0, True)
    assert (certain.contradictions, certain.explorations) == (1, 0), "a context of zeros says nothing"


def test_noise_has_the_size_asked_for():
    place = market(2, 4000)
    sales = simulate(FixedPrice(0.5), place.contexts, place.theta, noise=0.2, random_state=3)
    assert np.std(sales.value - place.contexts @ place.theta) == pytest.approx(0.2, rel=0.05)
    again = simulate(FixedPrice(0.5), place.contexts, place.theta, noise=0.2, random_state=3)
    assert np.array_equal(sales.value, again.value)


@pytest.mark.parametrize("kind", KINDS)
def test_markets(kind):
    place = market(4, 50, kind, radius=2.0, random_state=1)
    assert place.contexts.shape == (50, 4)
    assert np.allclose(np.linalg.norm(place.contexts, axis=1), 1)
    assert (place.contexts >= 0).all()
    assert (place.theta >= 0).all()
    assert np.linalg.norm(place.theta) == pytest.approx(2)
    assert np.array_equal(place.contexts, market(4, 50, kind, random_state=1).contexts)
    turned = np.linalg.norm(np.diff(place.contexts, axis=0), axis=1)
    assert {"sphere": 0.3 < turned.mean() < 1.2, "basis": np.allclose(turned, math.sqrt(2)), "drift": turned.max() < 0.3}[
        kind
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EllipsoidPricer(2), "horizon=None and epsilon=None cannot be used together: exactly one"),
        (lambda: EllipsoidPricer(2, horizon=10, epsilon=0.1), "exactly one of them is needed"),
        (lambda: EllipsoidPricer(2, epsilon=0.0), "epsilon must be a number > 0; got 0"),
        (lambda: EllipsoidPricer(2, horizon=0), "horizon must be a number > 0"),
        (lambda: EllipsoidPricer(0, horizon=10), "dimension must be a number > 0; got 0"),
        (lambda: EllipsoidPricer(2, horizon=10, radius=-1), "radius must be a number > 0; got -1"),
        (lambda: PerceptronPricer(2, rate=0), "rate must be a number > 0"),
        (lambda: PerceptronPricer(2, margin=-1), "margin must be a number ≥ 0; got -1"),
        (lambda: PerceptronPricer(2, start=[1.0]), r"start must be of shape \(2,\); got \[1.0\]"),
        (lambda: EpsilonGreedy(2, explore=1.5), "from 0 to 1; got 1.5"),
        (lambda: market(2, 5, "cube"), "one of 'sphere', 'basis', 'drift'; got 'cube'"),
        (lambda: simulate(FixedPrice(1), [[1, 2], [1, 2, 3]], [1, 1]), r"context 1 has shape \(3,\), but theta has \(2,\)"),
        (lambda: simulate(FixedPrice(math.nan), [[1, 2]], [1, 1]), "FixedPrice posted nan in round 0"),
        (lambda: plot.regret({}), "no runs to draw"),
    ],
)
def test_refusals_name_what_was_given(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def flat(rounds, regret):
    """A run that loses the same in every round."""
    return Sales(np.zeros(rounds), np.full(rounds, regret), np.ones(rounds, bool))


def test_the_picture_shows_the_regret_of_each():
    ax = plot.regret({"told": [flat(1000, 0.01), flat(100, 0.05)], "dear": flat(1000, 1.0), "dearer": flat(1000, 1.1)})
    told, dear, dearer = ax.lines
    assert told.get_xdata().tolist() == [100, 1000]
    assert np.allclose(told.get_ydata(), [5, 10])
    assert told.get_marker() == "o"
    assert np.allclose(dear.get_ydata(), np.arange(1, 1001))
    assert (dear.get_marker(), dearer.get_marker()) == ("", "")
    assert ax.get_xscale() == "log"
    assert ax.get_ylim() == (0, 40), "four times the least"
    inside, first, second = (text for text in ax.texts if text.get_text())
    assert [text.get_text() for text in (inside, first, second)] == ["told: 10", "dearer: 1,100", "dear: 1,000"]
    assert first.get_position()[0] + 0.05 < second.get_position()[0], "labels of lines that leave together do not overlap"
    assert len({line.get_linestyle() for line in ax.lines}) == 3
    pyplot.close("all")


def test_the_picture_takes_axes_and_one_run():
    _, mine = pyplot.subplots()
    assert plot.regret({"only": flat(10, 1.0)}, ax=mine) is mine
    assert mine.get_ylim() == (0, 10.5)
    assert plot.regret({"clairvoyant": flat(10, 0.0), "lucky": flat(10, -0.5)}).get_ylim() == (-5, 1)
    pyplot.close("all")
