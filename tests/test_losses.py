"""Losses lie where they should, their slopes are subgradients, and descending them is the perceptron."""

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import logsumexp

matplotlib.use("Agg")

from matplotlib import pyplot

from rosenblatt import Perceptron, plot
from rosenblatt.losses import Loss, correction, criterion, hinge, log, perceptron, rivalry, zero_one
from rosenblatt.testing.strategies import costs

FAMILY = [perceptron, hinge, log, Loss(margin=2.5), Loss(temperature=0.25), Loss(margin=1.0, temperature=3.0)]
COLD = [loss for loss in FAMILY if loss.temperature == 0]
z = np.linspace(-8, 8, 1601)  # multiples of 1/100, 0 and the margins of the family among them

margins = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def problems(draw, most=8):
    """Integer rows, signs and integer weights."""
    rows, features = draw(st.integers(1, most)), draw(st.integers(1, 3))
    numbers = st.integers(-3, 3)
    X = np.array(draw(st.lists(numbers, min_size=rows * features, max_size=rows * features)), dtype=float)
    y = np.array(draw(st.lists(st.sampled_from([-1, 1]), min_size=rows, max_size=rows)))
    w = np.array(draw(st.lists(numbers, min_size=features, max_size=features)), dtype=float)
    return w, X.reshape(rows, features), y


def by_formula(loss, z):
    """The loss as its definition writes it, which overflows, for margins that are not large."""
    if loss.temperature == 0:
        return np.where(z < loss.margin, loss.margin - z, 0)
    return loss.temperature * np.log(1 + np.exp((loss.margin - z) / loss.temperature))


# Where the losses lie


@pytest.mark.parametrize("loss", FAMILY, ids=str)
def test_the_formula(loss):
    assert np.allclose(loss(z), by_formula(loss, z), rtol=1e-12, atol=1e-12)
    assert (loss(z) >= 0).all()
    assert (np.diff(loss(z)) <= 0).all()


def test_which_losses_bound_which():
    assert (perceptron(z) <= hinge(z)).all()
    assert (perceptron(z) <= log(z)).all()
    assert (hinge(z) >= zero_one(z)).all()
    assert (log(z) / np.log(2) >= zero_one(z)).all()
    # Without the division it is not a bound, and neither is the perceptron loss, at a tie or anywhere above −1.
    assert log(0) < zero_one(0)
    assert perceptron(0) == 0 < zero_one(0) == 1
    below = z[perceptron(z) < zero_one(z)]
    assert (below.min(), below.max()) == (pytest.approx(-0.99), 0)


def test_zero_one_counts_mistakes_and_ties_are_mistakes():
    assert zero_one([-3, -1e-300, -0.0, 0.0, 1e-300, 3]).tolist() == [1, 1, 1, 1, 0, 0]
    assert not hasattr(zero_one, "slope")


def test_large_margins():
    far = np.array([-1e4, -745, -40, 40, 1e4])
    assert log(far).tolist()[:2] == [1e4, 745]
    assert log(far)[2] == pytest.approx(40, rel=1e-15)
    assert log(far)[3] == pytest.approx(np.exp(-40), rel=1e-14)  # not rounded off against the 1
    assert log(far)[4] == 0
    assert log.slope(far).tolist()[::4] == [-1, 0]
    assert log.slope(far)[3] == pytest.approx(-np.exp(-40), rel=1e-14)
    for loss in FAMILY:
        assert loss([-1e308, 1e308]).tolist() == [1e308, 0]
        assert loss([-np.inf, np.inf]).tolist() == [np.inf, 0]
        assert loss.slope([-np.inf, np.inf]).tolist() == [-1, 0]
    tiny = Loss(temperature=1e-320)
    assert (tiny([-2, 2]).tolist(), tiny.slope([-2, 2]).tolist()) == ([2, 0], [-1, 0])


@pytest.mark.parametrize("function", [*FAMILY, *[loss.slope for loss in FAMILY], zero_one])
def test_shape_type_and_nan_are_kept(function):
    assert np.isnan(function(np.nan))
    assert np.isscalar(function(0))
    assert function(np.zeros((2, 3, 1))).shape == (2, 3, 1)
    assert function(np.float32([1, 2])).dtype == np.float32
    assert function([1, 2]).dtype == function([True]).dtype == np.float64


@pytest.mark.parametrize("temperature", [1.0, 0.1, 1e-3, 1e-9])
def test_as_the_temperature_falls_the_loss_falls_to_the_cold_one(temperature):
    for margin in (0.0, 1.0):
        excess = Loss(margin, temperature)(z) - Loss(margin)(z)
        assert (excess >= 0).all()
        assert excess.max() == excess[np.isclose(z, margin)] == pytest.approx(temperature * np.log(2), rel=1e-6)


# Slopes


def test_the_kink_moves():
    """Every number from −1 to 0 is a subgradient there; a tie is a mistake, so −1 is the one."""
    assert perceptron.slope([-1e-300, -0.0, 0.0, 1e-300]).tolist() == [-1, -1, -1, 0]
    below, above = np.nextafter(1.0, 0), np.nextafter(1.0, 2)
    assert hinge.slope([below, 1.0, above]).tolist() == [-1, -1, 0]
    assert hinge.slope([0.0]).tolist() == [-1]
    assert log.slope(0) == Loss(temperature=1e-9).slope(0) == -0.5  # smooth, however cold


@pytest.mark.parametrize("loss", FAMILY, ids=str)
@given(at=margins, other=margins)
def test_the_slope_is_a_subgradient(loss, at, other):
    """loss(b) ≥ loss(a) + slope(a)·(b − a), up to rounding."""
    assert loss(other) >= loss(at) + loss.slope(at) * (other - at) - 1e-9 * (1 + abs(at) + abs(other))


@pytest.mark.parametrize("loss", COLD, ids=str)
@given(other=st.integers(-1000, 1000))
def test_the_slope_at_the_kink_is_a_subgradient(loss, other):
    assert loss(other) >= loss(loss.margin) + loss.slope(loss.margin) * (other - loss.margin)


@pytest.mark.parametrize("loss", FAMILY, ids=str)
def test_the_slope_is_the_derivative_away_from_the_kink(loss):
    h = 1e-6
    smooth = z if loss.temperature else z[np.abs(z - loss.margin) > 2 * h]
    assert np.allclose((loss(smooth + h) - loss(smooth - h)) / (2 * h), loss.slope(smooth), atol=1e-8)


def test_the_zero_one_loss_is_flat_wherever_it_has_a_slope():
    apart = z[z != 0]
    assert np.array_equal(zero_one(apart + 1e-6), zero_one(apart - 1e-6))


# Many classes

scored = st.integers(2, 5).flatmap(
    lambda classes: st.tuples(
        st.lists(st.lists(st.integers(-4, 4), min_size=classes, max_size=classes), min_size=1, max_size=4),
        st.integers(0, classes - 1),
    )
)


@given(scored, st.sampled_from([0.25, 1.0, 2.0]), st.data())
def test_joint_losses_are_what_their_definitions_say(drawn, temperature, data):
    scores, label = np.array(drawn[0], dtype=float), drawn[1]
    classes, own = scores.shape[1], scores[:, label]
    labels = np.full(len(scores), label)
    cost = data.draw(costs(classes))
    assert np.array_equal(perceptron.joint(scores, labels).value, scores.max(axis=1) - own)
    assert np.array_equal(hinge.joint(scores, labels).value, (scores + (np.arange(classes) != label)).max(axis=1) - own)
    assert np.array_equal(perceptron.joint(scores, labels, cost=cost).value, (scores + cost[label]).max(axis=1) - own)
    assert np.array_equal(
        hinge.joint(scores, labels).value, perceptron.joint(scores, labels, cost=1 - np.eye(classes)).value
    )
    warm = Loss(temperature=temperature).joint(scores, labels)
    assert np.allclose(warm.value, temperature * logsumexp(scores / temperature, axis=1) - own)
    probability = np.exp(scores / temperature - logsumexp(scores / temperature, axis=1, keepdims=True))
    assert np.allclose(warm.slope, probability - (np.arange(classes) == label))
    dear = Loss(temperature=temperature).joint(scores, labels, cost=cost)
    assert np.allclose(dear.value, temperature * logsumexp((scores + cost[label]) / temperature, axis=1) - own)
    wrong = zero_one(rivalry(scores, labels).margin)
    rest = np.delete(scores, label, axis=1).max(axis=1)
    assert np.array_equal(wrong, rest >= own)


@pytest.mark.parametrize("loss", FAMILY, ids=str)
@given(scored, st.data())
def test_joint_slopes_are_subgradients(loss, drawn, data):
    scores, label = np.array(drawn[0], dtype=float), drawn[1]
    labels = np.full(len(scores), label)
    move = st.lists(st.integers(-3, 3), min_size=scores.shape[1], max_size=scores.shape[1])
    there = scores + np.array(data.draw(move), dtype=float)
    here = loss.joint(scores, labels)
    assert np.allclose(here.slope.sum(axis=1), 0)
    least = here.value + (here.slope * (there - scores)).sum(axis=1)
    assert (loss.joint(there, labels).value >= least - 1e-9).all()


@pytest.mark.parametrize("loss", FAMILY, ids=str)
def test_two_classes_are_a_case_of_many(loss):
    scores = np.column_stack([np.zeros_like(z), z])
    positive, negative = np.ones(len(z), dtype=int), np.zeros(len(z), dtype=int)
    assert np.allclose(loss.joint(scores, positive).value, loss(z))
    assert np.allclose(loss.joint(scores, positive).slope[:, 1], loss.slope(z))
    assert np.allclose(loss.joint(scores, negative).value, loss(-z))


def test_the_perceptron_loss_is_the_log_loss_at_temperature_zero():
    scores = np.random.default_rng(0).integers(-4, 5, (50, 6)) / 1.0
    labels = np.arange(50) % 6
    cold = perceptron.joint(scores, labels)
    for temperature in (1.0, 0.1, 1e-3, 1e-9, 1e-300):
        warm = Loss(temperature=temperature).joint(scores, labels)
        assert (warm.value >= cold.value - 1e-12).all()
        assert (warm.value <= cold.value + temperature * np.log(6) + 1e-12).all()
    apart = np.sort(scores, axis=1)[:, -1] > np.sort(scores, axis=1)[:, -2]
    assert np.array_equal(warm.slope[apart], cold.slope[apart])


def test_ties_go_against_the_label_to_the_lowest_rival():
    tied = perceptron.joint(np.zeros((3, 3)), [0, 1, 2])
    assert tied.value.tolist() == [0, 0, 0]
    assert tied.slope.tolist() == [[-1, 1, 0], [1, -1, 0], [1, 0, -1]]


# Descent


def descend(X, y, epochs, loss=perceptron, rate=1.0):
    """The weights after each row, by stochastic subgradient descent in the order given."""
    w, path = np.zeros(X.shape[1]), []
    for _ in range(epochs):
        for i in range(len(y)):
            w = w - rate * criterion(w, X[i : i + 1], y[i : i + 1], loss).subgradient
            path.append(w)
    return np.array(path)


def learner(**parameters):
    return Perceptron(
        **{"keep": "last", "order": "cyclic", "fit_intercept": False, "tol": None, "random_state": 0} | parameters
    )


def both(y):
    """Signs of which there are two kinds, as a classifier wants."""
    return np.append(y, [-1, 1])


@given(problems(), st.sampled_from([(0.0, 1.0), (1.0, 1.0), (2.5, 0.5)]))
def test_the_perceptron_descends_the_perceptron_loss(problem, drawn):
    _, X, y = problem
    margin, rate = drawn
    X, y = np.vstack([X, X[:1], X[:1]]), both(y)
    path = descend(X, y, 3, Loss(margin), rate)
    stream = learner(margin=margin, eta0=rate)
    for i, w in enumerate(path[: len(y)]):
        stream.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1, 1])
        assert np.array_equal(stream.coef_[0], w)
    for epochs in (1, 2, 3):
        fitted = learner(margin=margin, eta0=rate, max_iter=epochs).fit(X, y)
        assert np.array_equal(fitted.coef_[0], path[epochs * len(y) - 1])


@given(problems())
def test_the_averaged_perceptron_is_averaged_descent_at_a_constant_rate(problem):
    _, X, y = problem
    X, y = np.vstack([X, X[:1], X[:1]]), both(y)
    path = descend(X, y, 2)
    fitted = learner(keep="average", max_iter=2).fit(X, y)
    # A fit that converges in its first epoch sees no second one.
    seen = fitted.n_iter_ * len(y)
    assert np.allclose(fitted.coef_[0], path[:seen].mean(axis=0), rtol=0, atol=1e-12)


@given(problems(), st.sampled_from([1.0, 0.5]))
def test_the_batch_perceptron_descends_the_criterion(problem, rate):
    _, X, y = problem
    X, y = np.vstack([X, X[:1], X[:1]]), both(y)
    w = np.zeros(X.shape[1])
    for epochs in (1, 2, 3):
        w = w - rate * criterion(w, X, y).subgradient
        fitted = learner(batch="full", eta0=rate, max_iter=epochs).fit(X, y)
        assert np.array_equal(fitted.coef_[0], w)


def test_the_joint_perceptron_descends_the_joint_loss():
    rng = np.random.default_rng(1)
    X, labels = rng.integers(-3, 4, (40, 3)).astype(float), np.arange(40) % 4
    W = np.zeros((4, 3))
    for _ in range(3):
        for x, label in zip(X, labels, strict=True):
            W = W - perceptron.joint((W @ x)[None], [label]).slope[0][:, None] * x
    assert np.array_equal(learner(max_iter=3).fit(X, labels).coef_, W)


# The criterion


@given(problems())
def test_the_criterion_is_its_definition(problem):
    w, X, y = problem
    wrong = y * (X @ w) <= 0
    value, subgradient = criterion(w, X, y)
    assert value == -(y * (X @ w))[wrong].sum()
    assert np.array_equal(subgradient, -(y[:, None] * X)[wrong].sum(axis=0))
    for layout in (sp.csr_array, sp.csc_matrix):
        assert criterion(w, layout(X), y).value == value
        assert np.array_equal(criterion(w, layout(X), y).subgradient, subgradient)


@given(problems(), st.data())
def test_no_weights_are_better_than_none(problem, data):
    """w = 0 minimises J on any data; and J bends upwards everywhere."""
    w, X, y = problem
    other = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=w.size, max_size=w.size)))
    for loss in (perceptron, hinge, log):
        here, there = criterion(w, X, y, loss), criterion(other, X, y, loss)
        assert there.value >= here.value + here.subgradient @ (other - w) - 1e-9
    assert criterion(np.zeros(w.size), X, y).value == 0 <= criterion(w, X, y).value


def test_a_criterion_of_zero_separates_only_without_ties():
    X, y = np.array([[1.0, 0], [0, 1]]), np.array([1, 1])
    assert criterion([1, 0], X, y).value == 0
    assert criterion([1, 0], X, y).subgradient.tolist() == [0, -1]  # the second row lies on the line
    assert criterion([1, 1], X, y).subgradient.tolist() == [0, 0]


@given(problems())
def test_targets_and_outputs_give_the_same_step_where_no_score_is_zero(problem):
    w, X, y = problem
    score = X @ w
    for zero_sign in (-1, 0, 1):
        assert np.array_equal(
            correction(w, X[score != 0], y[score != 0], zero_sign), -criterion(w, X[score != 0], y[score != 0]).subgradient
        )


@given(problems())
def test_targets_and_outputs_at_ties(problem):
    """There the sign decides which class may move; moving both by a whole step needs the mistake form."""
    w, X, y = problem
    tied = X @ w == 0
    signed = y[:, None] * X
    whole = -criterion(w, X, y).subgradient
    assert np.array_equal(correction(w, X, y), whole - signed[tied & (y == 1)].sum(axis=0))
    assert np.array_equal(correction(w, X, y, zero_sign=-1), whole - signed[tied & (y == -1)].sum(axis=0))
    assert np.array_equal(correction(w, X, y, zero_sign=0), whole - signed[tied].sum(axis=0) / 2)
    assert np.array_equal(correction(w, sp.csr_array(X), y), correction(w, X, y))


def test_from_zero_the_targets_of_one_class_teach_nothing():
    X, y = np.array([[1.0, 2], [2, 1]]), np.array([1, 1])
    assert linprog([0, 0], A_ub=-X, b_ub=[-1, -1], bounds=(None, None)).success, "separable through the origin"
    assert not correction([0, 0], X, y).any()
    assert criterion([0, 0], X, y).subgradient.tolist() == [-3, -3]


# What is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Loss(temperature=-1.0), "temperature must be finite and at least 0; got -1.0"),
        (lambda: Loss(margin=np.inf), "margin must be a finite number; got inf"),
        (lambda: hinge(["a"]), "must be real numbers; these are of type <U1"),
        (lambda: hinge(1j), "must be real numbers; these are of type complex128"),
        (lambda: log.joint([1.0, 2.0], [0]), r"two classes or more; the shape is \(2,\)"),
        (lambda: log.joint([[1.0]], [0]), r"two classes or more; the shape is \(1, 1\)"),
        (lambda: log.joint([[1.0, 2.0]], [2]), "the label 2 is not one of the known classes: 0, 1"),
        (lambda: log.joint([[1.0, 2.0]], [-1]), "the label -1 is not one of the known classes"),
        (lambda: log.joint([[1.0, 2.0]], [0, 1]), r"labels must have the shape \(1,\), .*; it is \(2,\)"),
        (lambda: log.joint([[1.0, 2.0]], ["a"]), "class numbers from 0 to 1; these are of type <U1"),
        (lambda: log.joint([[1.0, 2.0]], [0], cost=[1, 1]), r"cost must be a \(2, 2\) matrix"),
        (lambda: log.joint([[1.0, 2.0]], [0], cost=np.eye(2)), "the diagonal of cost must be 0"),
        (lambda: criterion([1.0], [[1.0, 2.0]], [1]), r"the shapes are \(1,\), \(1, 2\), \(1,\)"),
        (lambda: criterion([1.0], [1.0], [1]), r"the shapes are \(1,\), \(1,\), \(1,\)"),
        (lambda: criterion([1.0], [[1.0], [2.0]], [0, 1]), r"y must be −1 and 1; it has \[0, 1\]"),
        (lambda: correction([1.0], [[1.0]], [1], zero_sign=2), "zero_sign must be −1, 0 or 1; got 2"),
    ],
)
def test_what_is_refused_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The picture


def test_the_picture_has_four_labelled_losses():
    ax = plot.losses()
    drawn = {line.get_label(): line.get_xydata() for line in ax.lines}
    for name, loss in {"hinge": hinge, "perceptron": perceptron, "zero-one": zero_one}.items():
        at, value = drawn[name].T
        assert np.array_equal(loss(at), value, equal_nan=True)
    at, value = drawn["log / log 2"].T
    assert np.allclose(value, log(at) / np.log(2))
    names = {text.get_text(): text for text in ax.texts}
    assert set(names) == {"hinge", "perceptron", "zero-one", "log / log 2"}
    for name, text in names.items():
        assert tuple(text.xy) == pytest.approx(tuple(drawn[name][0])), f"{name} is labelled at its end"
    dots = [tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xydata()) == 1]
    assert sorted(dots) == [(0, 0), (0, 1)]
    mine = pyplot.figure().subplots()
    assert plot.losses(mine) is mine
    pyplot.close("all")
