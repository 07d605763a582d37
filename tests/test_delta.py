"""The delta rule is the textbook's to the last bit, ends at least squares, is stable exactly where theory says, and obeys
what every learner obeys; so does the other regressor."""

import pickle
import runpy
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt.errors import NumericOverflow
from rosenblatt.estimators.regression.delta import DeltaRuleClassifier, DeltaRuleRegressor
from rosenblatt.estimators.regression.stability import Diverged
from rosenblatt.testing import laws

RATE = 1 / 128  # stable for the rows of `laws.data`

REGRESSORS = {
    "last": DeltaRuleRegressor(eta0=RATE, max_iter=6),
    "normalised": DeltaRuleRegressor(normalised=True, max_iter=6),
    "average": DeltaRuleRegressor(eta0=RATE, keep="average", max_iter=6),
}
CLASSIFIERS = {
    "last": DeltaRuleClassifier(eta0=RATE, max_iter=6),
    "normalised": DeltaRuleClassifier(normalised=True, max_iter=6),
}


def padded(X, constant=1.0):
    return np.column_stack([X, np.full(len(X), constant)])


def measured(rows=60, features=3, noise=0.0, seed=0):
    """Rows, and targets that a line explains up to noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    return X, X @ rng.standard_normal(features) + 2.0 + noise * rng.standard_normal(rows)


def best(X, y, constant=1.0):
    """Least squares with an intercept: (coef, intercept)."""
    solution = np.linalg.lstsq(padded(X, constant), y, rcond=None)[0]
    return solution[:-1], constant * solution[-1]


# The textbook, in fractions


def textbook(X, y, rate, batch=1, mean=False, epochs=1):
    """The weights (targets, features + 1) after each row, with nothing rounded."""
    X = [[Fraction(v) for v in (*row, 1)] for row in X.tolist()]
    y = [[Fraction(v) for v in row] for row in y.tolist()]
    w = [[Fraction(0)] * len(X[0]) for _ in y[0]]
    path = []
    for _ in range(epochs):
        for first in range(0, len(X), batch):
            rows = range(first, min(first + batch, len(X)))
            errors = [[y[i][k] - sum(a * b for a, b in zip(w[k], X[i], strict=True)) for k in range(len(w))] for i in rows]
            share = rate / len(rows) if mean else rate
            new = [list(vector) for vector in w]
            for i, error in zip(rows, errors, strict=True):
                for k, e in enumerate(error):
                    new[k] = [a + share * e * x for a, x in zip(new[k], X[i], strict=True)]
            path += [w] * (len(rows) - 1) + [new]
            w = new
    return path


@st.composite
def tables(draw, targets=1):
    """A few integer rows and (rows, targets) integer values to be met."""
    rows, features = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(-2, 2), min_size=rows * features, max_size=rows * features))
    values = draw(st.lists(st.integers(-4, 4), min_size=rows * targets, max_size=rows * targets))
    return np.array(cells, float).reshape(rows, features), np.array(values, float).reshape(rows, targets)


@given(st.data(), st.sampled_from([("dense", 1, 1), ("dense", 1, 3), ("sparse", 2, 1)]))
def test_the_sum_of_steps_is_the_textbooks_to_the_last_bit(data, form):
    layout, targets, batch = form
    X, y = data.draw(tables(targets))
    reg = DeltaRuleRegressor(eta0=0.25, batch=batch, order="cyclic", max_iter=1)
    reg.partial_fit(sp.csr_matrix(X) if layout == "sparse" else X, y)
    expected = textbook(X, y, Fraction(1, 4), batch)[-1]
    assert reg.weights_.w.reshape(X.shape[1] + 1, -1).T.tolist() == [[float(v) for v in vector] for vector in expected]
    assert reg.n_seen_ == len(X)


@given(tables(), st.sampled_from([2, 3, "full"]))
def test_mean_and_average_are_the_textbooks(table, batch):
    X, y = table
    reg = DeltaRuleRegressor(eta0=0.25, batch=batch, reduction="mean", keep="average").partial_fit(X, y).partial_fit(X, y)
    path = textbook(X, y, Fraction(1, 4), len(X) if batch == "full" else batch, mean=True, epochs=2)
    average = [float(sum(w[0][j] for w in path) / len(path)) for j in range(X.shape[1] + 1)]
    assert np.allclose(np.append(reg.coef_, reg.intercept_), average)


def test_the_loss_of_an_epoch_is_that_of_the_rows_when_visited():
    X, y = measured(20)
    reg = DeltaRuleRegressor(eta0=0.05, order="cyclic", max_iter=1, tol=None).fit(X, y)
    losses, w = [], np.zeros(4)
    for x, t in zip(padded(X), y, strict=True):
        losses.append((t - w @ x) ** 2 / 2)
        w += 0.05 * (t - w @ x) * x
    assert np.isclose(reg.history_[0].loss, np.mean(losses))
    assert (reg.n_updates_, reg.n_seen_, reg.n_iter_, reg.stop_reason_) == (20, 20, 1, "max_iter")


def test_same_weights_as_scikit_learns_squared_loss():
    X, y = measured(200, 4, noise=1.0)
    settings = {"learning_rate": "constant", "eta0": 0.01, "penalty": None, "max_iter": 4, "tol": None, "shuffle": False}
    for average, keep in ((False, "last"), (True, "average")):
        theirs = SGDRegressor(average=average, **settings).fit(X, y)
        ours = DeltaRuleRegressor(eta0=0.01, order="cyclic", keep=keep, max_iter=4, tol=None).fit(X, y)
        assert np.allclose(ours.coef_, theirs.coef_)
        assert np.allclose(ours.intercept_, theirs.intercept_)
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.intercept_.shape == theirs.intercept_.shape


# Least squares


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_full_batches_end_at_least_squares(reduction, scaling):
    X, y = measured(noise=0.5)
    reg = DeltaRuleRegressor(batch="full", reduction=reduction, intercept_scaling=scaling, tol=None, max_iter=2000).fit(
        X, y
    )
    coef, intercept = best(X, y)
    assert np.allclose(reg.coef_, coef)
    assert np.allclose(reg.intercept_, intercept)
    losses = [epoch.loss for epoch in reg.history_]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(losses))


@pytest.mark.parametrize("normalised", [False, True])
def test_single_rows_meet_targets_that_can_be_met(normalised):
    X, y = measured()
    reg = DeltaRuleRegressor(normalised=normalised, tol=1e-15).fit(X, y)
    assert np.allclose(reg.predict(X), y)
    assert reg.score(X, y) > 1 - 1e-12


def test_of_noisy_targets_the_average_is_nearer_to_least_squares_than_the_last():
    X, y = measured(300, noise=1.0)
    optimum = np.append(*best(X, y))
    distance = {}
    for keep in ("last", "average"):
        reg = DeltaRuleRegressor(keep=keep, max_iter=50, tol=None).fit(X, y)
        distance[keep] = np.linalg.norm(np.append(reg.coef_, reg.intercept_) - optimum)
    assert distance["average"] < 0.1 * np.linalg.norm(optimum)
    assert distance["average"] < distance["last"]


def test_several_targets_are_as_many_runs_in_one_pass():
    X, y = measured(noise=0.3)
    both = np.column_stack([y, 3 - y])
    for rows in (X, sp.csr_matrix(X)):
        reg = DeltaRuleRegressor(eta0=0.05, max_iter=3, tol=None).fit(rows, both)
        for k in range(2):
            one = DeltaRuleRegressor(eta0=0.05, max_iter=3, tol=None).fit(rows, both[:, k])
            assert np.allclose(reg.coef_[k], one.coef_)
            assert np.allclose(reg.predict(rows)[:, k], one.predict(rows))
        assert (reg.coef_.shape, reg.intercept_.shape, reg.predict(rows).shape) == ((2, 3), (2,), (60, 2))
        assert reg.n_updates_ == 2 * one.n_updates_


def test_weights_of_rows_are_those_of_weighted_least_squares():
    X, y = measured(noise=1.0)
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    reg = DeltaRuleRegressor(batch="full", tol=None, max_iter=3000).fit(X, y, sample_weight=weight)
    expected = LinearRegression().fit(X, y, sample_weight=weight)
    assert np.allclose(reg.coef_, expected.coef_)
    assert np.allclose(reg.intercept_, expected.intercept_)


# Stability


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_full_batches_are_stable_up_to_the_limit_and_not_beyond(reduction):
    X, y = measured(noise=0.5, seed=3)
    steepest = np.linalg.eigvalsh(padded(X).T @ padded(X)).max() / (len(X) if reduction == "mean" else 1)
    reg = DeltaRuleRegressor(batch="full", reduction=reduction, max_iter=3000, tol=None)
    limit = reg.stable_rate(X)
    assert np.isclose(limit, 2 / steepest)
    below = clone(reg).set_params(eta0=0.99 * limit).fit(X, y)
    assert np.allclose(below.coef_, best(X, y)[0])
    with pytest.raises(Diverged, match=r"if and only if eta0 < 2(·60)?/λ_max\(XᵀX\) = ") as caught:
        clone(reg).set_params(eta0=1.01 * limit).fit(X, y)
    message = str(caught.value)
    assert f"eta0={1.01 * limit:g}" in message
    assert f"{limit:.6g}" in message
    assert f"try eta0={limit / 2:.3g}" in message
    assert caught.value.losses[-1] > caught.value.losses[-2]
    clone(reg).set_params(eta0=caught.value.advised).fit(X, y)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


@given(tables(), st.floats(0.05, 1.95), st.booleans())
def test_below_the_limit_no_row_takes_the_weights_further_from_what_fits(table, share, normalised):
    X, _ = table
    truth = np.arange(X.shape[1] + 1) - 1.0
    y = padded(X) @ truth
    reg = DeltaRuleRegressor(normalised=normalised)
    limit = reg.stable_rate(X)
    assert np.isclose(limit, 2.0 if normalised else 2 / (padded(X) ** 2).sum(axis=1).max())
    reg.set_params(eta0=share / 2 * limit)
    before = np.linalg.norm(truth)
    for i in range(len(X)):
        reg.partial_fit(X[[i]], y[[i]])
        after = np.linalg.norm(np.append(reg.coef_, reg.intercept_) - truth)
        assert after <= before + 1e-13 * np.linalg.norm(truth)  # rounding is of the weights' size, however near they are
        before = after


@pytest.mark.parametrize(
    ("batch", "reduction"),
    [
        (1, "sum"),
        (4, "sum"),
        (7, "sum"),
        (60, "sum"),
        ("full", "sum"),
        (4, "mean"),
        (7, "mean"),
        (60, "mean"),
        ("full", "mean"),
    ],
)
@pytest.mark.parametrize("normalised", [False, True])
def test_the_limit_covers_every_batch(batch, reduction, normalised):
    X, _ = measured(60)
    X *= np.linspace(0.1, 3, 60)[:, None]
    weight = np.linspace(0.5, 2, 60)
    reg = DeltaRuleRegressor(batch=batch, reduction=reduction, normalised=normalised)
    limit = reg.stable_rate(X, sample_weight=weight)
    scaled = padded(X) * np.sqrt(weight / ((padded(X) ** 2).sum(axis=1) if normalised else 1))[:, None]
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = rng.permutation(60)
        size = 60 if batch == "full" else batch
        for first in range(0, 60, size):
            rows = scaled[order[first : first + size]]
            curvature = np.linalg.norm(rows, 2) ** 2 / (len(rows) if reduction == "mean" else 1)
            assert limit * curvature <= 2 * (1 + 1e-6)


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_a_rate_that_is_too_high_is_explained(rows):
    X, y = measured(noise=0.5)
    longest = (padded(X) ** 2).sum(axis=1).max()
    with pytest.raises(Diverged, match=r"With batch=1 it is certain to be stable if eta0 < 2/max‖x‖² = ") as caught:
        DeltaRuleRegressor(eta0=3.0).fit(rows(X), y)
    assert np.isclose(caught.value.stable, 2 / longest, rtol=1e-5)
    assert np.isclose(caught.value.advised, 1 / (4 * longest), rtol=1e-5)
    DeltaRuleRegressor(eta0=caught.value.advised).fit(rows(X), y)


def test_other_ways_to_diverge_are_explained_too():
    X, y = measured(noise=0.5)
    cases = [
        ({"batch": 10, "eta0": 2.0}, r"batch=10 and reduction='sum' it is certain .* < 2/λ_max|< 2/\(10·max‖x‖²\)"),
        ({"batch": 10, "reduction": "mean", "eta0": 3.0}, "batch=10 and reduction='mean'"),
        ({"batch": 20, "normalised": True, "eta0": 1.9}, r"divided by √\(epsilon \+ ‖x‖²\)"),
        ({"order": "random", "batch": "full", "eta0": 2.0}, r"2/\(60·max‖x‖²\)"),
        ({"fit_intercept": False, "eta0": 3.0, "max_iter": 1}, "x a row of X; eta0='auto'"),
    ]
    for params, words in cases:
        with pytest.raises(Diverged, match=words):
            DeltaRuleRegressor(**params).fit(X, y)
    with pytest.raises(Diverged, match="times the root of its weight"):
        DeltaRuleRegressor(eta0=0.2).fit(X, y, sample_weight=np.full(60, 20.0))
    with pytest.raises(Diverged, match="With batch=1"):
        DeltaRuleClassifier(eta0=3.0).fit(X, y > 2)


def test_hard_data_are_no_divergence():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), 100 * rng.standard_normal(50)
    limit = DeltaRuleRegressor().stable_rate(X)
    reg = DeltaRuleRegressor(eta0=0.99 * limit, tol=None, max_iter=50).fit(X, y)  # noise only: the loss rises and falls
    assert reg.stop_reason_ == "max_iter"
    far = DeltaRuleRegressor(eta0=0.5 * limit, max_iter=3, tol=None)
    far.fit(X, y, coef_init=np.full(3, 1e6))  # a start of enormous loss
    assert far.history_[-1].loss < far.history_[0].loss


def test_what_fails_changes_nothing():
    X, y = measured()
    reg = DeltaRuleRegressor(eta0=0.05).partial_fit(X, y)
    before = pickle.dumps(reg)
    with pytest.raises(Diverged, match="With batch=1"):
        reg.partial_fit(np.full((300, 3), 1e3), np.ones(300))
    assert pickle.dumps(reg) == before
    with pytest.raises(ValueError, match="y must have the shape"):
        reg.partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(Diverged):
        reg.set_params(eta0=5.0).fit(X, y)
    assert pickle.dumps(reg.set_params(eta0=0.05)) == before
    clf = DeltaRuleClassifier(eta0=0.05).partial_fit(X, y > 2, classes=[False, True])
    before = pickle.dumps(clf)
    with pytest.raises(Diverged):
        clf.partial_fit(np.full((300, 3), 1e3), np.arange(300) % 2 == 0)
    assert pickle.dumps(clf) == before


def test_a_stream_needs_a_rate_that_no_row_to_come_can_spoil():
    for bounded in ({"eta0": 0.1}, {"normalised": True}, {"normalised": True, "batch": "full", "reduction": "mean"}):
        assert hasattr(DeltaRuleRegressor(**bounded), "partial_fit")
    for free in ({}, {"normalised": True, "batch": "full"}):
        with pytest.raises(AttributeError) as raised:
            DeltaRuleRegressor(**free).partial_fit([[1.0]], [1.0])
        assert "partial_fit cannot be used with eta0='auto'" in str(raised.value.__cause__ or raised.value)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_row_whose_length_overflows_is_refused_by_its_number(classes, method):
    X, _ = measured()
    y = np.arange(60) % classes
    clf = DeltaRuleClassifier(normalised=True).fit(X, y)
    before = pickle.dumps(clf)
    X[7] = 1e200
    with pytest.raises(NumericOverflow, match="squared length of row 7") as caught:
        getattr(clf, method)(X, y)
    assert caught.value.row == 7
    assert pickle.dumps(clf) == before


@pytest.mark.parametrize(
    ("keep", "targets", "rows"), [("last", 1, np.asarray), ("last", 1, sp.csr_matrix), ("average", 2, np.asarray)]
)
def test_targets_that_overflow_change_nothing(keep, targets, rows):
    X = np.tile([[1.0, 0.0, 2.0]], (20, 1))
    y = np.where(np.arange(20) < 15, 1.7e308, -1.7e308)[:, None].repeat(targets, axis=1)
    reg = DeltaRuleRegressor(eta0=0.05, keep=keep).partial_fit(rows(X[:3]), np.ones((3, targets)))
    before = pickle.dumps(reg)
    for method in (reg.partial_fit, reg.fit):
        with pytest.raises(NumericOverflow, match=r"overflowed at row (4|15)|square of y"):
            method(rows(X), y)
        assert pickle.dumps(reg) == before
    new = DeltaRuleRegressor(eta0=0.05, keep=keep)
    with pytest.raises(NumericOverflow):
        new.partial_fit(rows(X), y)
    assert not new.__sklearn_is_fitted__()


def test_a_stream_needs_a_rate():
    X, y = measured()
    for learner in (DeltaRuleRegressor(), DeltaRuleClassifier()):
        assert not hasattr(learner, "partial_fit")
    reg = DeltaRuleRegressor().fit(X, y)
    assert np.isclose(reg.rate_, reg.stable_rate(X) / 8)
    assert reg.set_params(eta0=reg.rate_).partial_fit(X, y).n_seen_ == len(X) * (reg.n_iter_ + 1)
    assert DeltaRuleRegressor(normalised=True).partial_fit(X, y).rate_ == 0.25
    assert not hasattr(DeltaRuleRegressor(normalised=True, batch="full"), "partial_fit")
    assert DeltaRuleRegressor(normalised=True, batch=10).partial_fit(X, y).rate_ == 0.1


def test_refusals_name_the_value():
    X, y = measured()
    for params, words in (
        ({"eta0": 0}, "eta0 must be a number > 0 or 'auto'; got 0"),
        ({"eta0": "fast"}, "eta0 must be a number > 0 or 'auto'; got 'fast'"),
        ({"eta0": 2.0, "normalised": True}, "eta0 must be less than 2 with normalised=True; got 2.0"),
        ({"keep": "vote"}, "keep must be one of 'last', 'average'; got 'vote'"),
        ({"order": "most-violated"}, "order must be one of 'shuffle', 'cyclic', 'random'"),
    ):
        with pytest.raises(ValueError, match=words):
            DeltaRuleRegressor(**params).fit(X, y)
    with pytest.raises(ValueError, match="the squared length of row 0 of X overflows"):
        DeltaRuleRegressor().fit(1e200 * X, y)
    absent = np.where(np.arange(60) < 5, 0.0, 1.0)
    DeltaRuleRegressor().fit(X * np.where(absent, 1.0, 1e200)[:, None], y, sample_weight=absent)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        DeltaRuleClassifier(eta0=5.0).fit(np.where(X > 2, np.nan, X), y > 2)
    with pytest.raises(ValueError, match="keep has changed"):
        DeltaRuleRegressor(eta0=0.1).partial_fit(X, y).set_params(keep="average").partial_fit(X, y)


@settings(max_examples=10)
@given(st.integers(-20, 20))
def test_normalised_steps_do_not_see_the_scale(power):
    X, y = measured(noise=0.5)
    settings = {"normalised": True, "fit_intercept": False, "order": "cyclic", "max_iter": 3, "tol": None}
    one, other = DeltaRuleRegressor(**settings).fit(X, y), DeltaRuleRegressor(**settings).fit(2.0**power * X, y)
    assert np.array_equal(one.coef_, 2.0**power * other.coef_)


# Stopping


def test_tol_does_not_see_the_scale_of_targets():
    X, y = measured(noise=0.5)
    epochs = {DeltaRuleRegressor().fit(X, scale * y).n_iter_ for scale in (2.0**-20, 1.0, 2.0**20)}
    assert len(epochs) == 1
    flat = DeltaRuleRegressor().fit(X, np.full(60, 7.0))
    assert np.allclose(flat.predict(X), 7)


def test_an_epoch_without_an_error_is_the_last():
    reg = DeltaRuleRegressor(eta0=0.5, fit_intercept=False, tol=None).fit(np.eye(2) * np.sqrt(2), [0.0, 0.0])
    assert (reg.stop_reason_, reg.n_iter_, reg.n_updates_) == ("converged", 1, 0)


def test_warm_start_goes_on():
    X, y = measured(noise=0.5)
    reg = DeltaRuleRegressor(order="cyclic", warm_start=True, max_iter=2, tol=None)
    twice = reg.fit(X, y).fit(X, y)
    once = DeltaRuleRegressor(order="cyclic", max_iter=4, tol=None).fit(X, y)
    assert np.array_equal(twice.coef_, once.coef_)
    start = DeltaRuleRegressor(order="cyclic", max_iter=2, tol=None)
    begun = start.fit(X, y, coef_init=twice.coef_, intercept_init=twice.intercept_)
    assert np.allclose(begun.coef_, DeltaRuleRegressor(order="cyclic", max_iter=6, tol=None).fit(X, y).coef_)
    with pytest.raises(ValueError, match=r"y must have the shape \(rows,\)"):
        reg.fit(X, y[:, None])


def test_callbacks_score_every_epoch():
    pytest.importorskip("sklearn.callback")

    class Scores(list):
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
            if context.task_name == "epoch":
                self.append(fitted_estimator.score(X, y))
            return False

    X, y = measured(noise=0.5)
    scores = Scores()
    reg = DeltaRuleRegressor(max_iter=4, tol=None).set_callbacks(scores).fit(X, y)
    assert len(scores) == 4
    assert scores[-1] == reg.score(X, y)


def test_the_example_checks_ridge_and_draws(tmp_path, capsys):
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "ridge.py"))
    X, y = measured(30, noise=1.0)
    assert np.allclose(example["leave_one_out_errors"](X, y, 2.0), example["leave_one_out_errors_by_refitting"](X, y, 2.0))
    assert not np.allclose(example["closed_form"](X, y, 2.0)[0], example["closed_form"](X, y, 1.0)[0])
    example["main"](tmp_path / "ridge.png")
    assert (tmp_path / "ridge.png").stat().st_size > 10_000
    assert "alpha=2λ" in capsys.readouterr().out


# Classes


def test_the_classifier_is_the_regressor_on_plus_and_minus_one():
    X, y = measured(noise=1.0)
    settings = {"eta0": 0.02, "max_iter": 3, "tol": None}
    two = DeltaRuleClassifier(**settings).fit(X, y > 2)
    reg = DeltaRuleRegressor(**settings).fit(X, np.where(y > 2, 1.0, -1.0))
    assert np.allclose(two.coef_[0], reg.coef_)
    assert np.allclose(two.decision_function(X), reg.predict(X))
    assert np.isclose(two.history_[-1].loss, reg.history_[-1].loss)
    labels = np.digitize(y, [1, 3])
    three = DeltaRuleClassifier(**settings).fit(X, labels)
    many = DeltaRuleRegressor(**settings).fit(X, np.where(labels[:, None] == np.arange(3), 1.0, -1.0))
    assert np.allclose(three.coef_, many.coef_)
    assert np.array_equal(three.predict(X), many.predict(X).argmax(axis=1))


def test_mistakes_are_counted_before_learning_and_a_tie_is_one():
    X, y = np.array([[1.0], [1.0], [-1.0], [-1.0]]), [1, 1, 0, 1]
    clf = DeltaRuleClassifier(eta0=0.5, fit_intercept=False).partial_fit(X, y, classes=[0, 1])
    assert (clf.n_mistakes_, clf.n_updates_, clf.n_seen_) == (2, 4, 4)  # the first is a tie, the last is wrong
    three = DeltaRuleClassifier(eta0=0.5, fit_intercept=False).partial_fit(X, [2, 2, 0, 1], classes=[0, 1, 2])
    assert three.n_mistakes_ == 3  # a tie of all, and two ties of 0 with 1


def test_class_weights_multiply_the_steps():
    X, y = measured(noise=1.0)
    labels = (y > 2).astype(int)
    settings = {"eta0": 0.01, "order": "cyclic", "max_iter": 2, "tol": None}
    named = DeltaRuleClassifier(class_weight={0: 0.5, 1: 3.0}, **settings).fit(X, labels)
    weighted = DeltaRuleClassifier(**settings).fit(X, labels, sample_weight=np.where(labels, 3.0, 0.5))
    assert np.allclose(named.coef_, weighted.coef_)


# Two classes that a line separates, but not the line of least squares: five examples far on the right side weigh more
# than two near the border.
LOPSIDED = np.array([[0.0], [1.0], [2.0], [20.0], [20.0], [20.0], [20.0], [20.0]])
SIDES = np.array([0, 0, 1, 1, 1, 1, 1, 1])


def test_separable_data_that_the_delta_rule_gets_wrong():
    assert np.array_equal(LOPSIDED[:, 0] > 1.5, SIDES)
    clf = DeltaRuleClassifier(batch="full", tol=None, max_iter=20_000).fit(LOPSIDED, SIDES)
    coef, intercept = best(LOPSIDED, 2.0 * SIDES - 1)
    assert np.allclose(clf.coef_[0], coef, atol=1e-6)
    assert np.allclose(clf.intercept_, intercept, atol=1e-5)
    assert clf.predict(LOPSIDED).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert clf.mistake_bound(1.0, 1.0) == np.inf


# What every learner obeys


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("form", CLASSIFIERS)
def test_law(form, law):
    law(CLASSIFIERS[form])


def numbers():
    """Integer rows and targets."""
    X, y = laws.data()
    return X, 3.0 * y + X[:, 0]


def same(one, other, X, tolerance=0.0):
    assert (one.n_updates_, one.n_seen_) == (other.n_updates_, other.n_seen_)
    for a, b in ((one.coef_, other.coef_), (one.intercept_, other.intercept_), (one.predict(X), other.predict(X))):
        assert laws.agree(a, b, tolerance)


@pytest.mark.parametrize("form", REGRESSORS)
def test_any_chunking_is_the_same_and_saving_changes_nothing(form):
    X, y = numbers()
    whole = clone(REGRESSORS[form]).partial_fit(X, y)
    for cuts in ([1, 2, 3], [13], list(range(1, len(X)))):
        parts = clone(REGRESSORS[form])
        for rows, values in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
            parts = pickle.loads(pickle.dumps(parts.partial_fit(rows, values)))
        same(whole, parts, X)
    assert whole.stop_reason_ == "partial_fit"


@pytest.mark.parametrize("form", REGRESSORS)
def test_weight_zero_is_absence(form):
    X, y = numbers()
    weight = np.ones(len(X))
    weight[::3] = 0
    odd = X.copy()
    odd[::3] += 50
    there = clone(REGRESSORS[form]).fit(odd, y, sample_weight=weight)
    same(clone(REGRESSORS[form]).fit(X[weight > 0], y[weight > 0]), there, X)
    there = clone(REGRESSORS[form]).partial_fit(odd, y, sample_weight=weight)
    same(clone(REGRESSORS[form]).partial_fit(X[weight > 0], y[weight > 0]), there, X)


@pytest.mark.parametrize("form", ["last", "normalised"])
def test_layouts_and_seeds_agree(form, tmp_path):
    X, y = numbers()
    expected = clone(REGRESSORS[form]).fit(X, y)
    same(expected, clone(REGRESSORS[form]).fit(X, y), X)
    np.save(tmp_path / "X.npy", X)
    fixed = y.copy()
    fixed.flags.writeable = False
    for layout in (
        np.asfortranarray(X),
        X.tolist(),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        sp.csr_matrix(X),
        sp.csc_matrix(X),
        laws.unsorted_csr(X),
    ):
        before = pickle.dumps(layout)
        same(expected, clone(REGRESSORS[form]).fit(layout, fixed), X, 1e-9)
        assert pickle.dumps(layout) == before
    single = clone(REGRESSORS[form]).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    same(expected, single, X, 1e-4)
    order = np.roll(np.arange(X.shape[1]), 1)
    assert np.allclose(clone(REGRESSORS[form]).fit(X[:, order], y).coef_, expected.coef_[order])


WEIGHTS_ARE_RATES = "a weight multiplies a step; two visits of a row are two steps, and the second sees what the first did"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_RATES,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_RATES,
}


@parametrize_with_checks(
    [
        DeltaRuleRegressor(),
        DeltaRuleRegressor(normalised=True),
        DeltaRuleClassifier(),
        DeltaRuleClassifier(normalised=True, max_iter=50),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
