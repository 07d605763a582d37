"""The passive-aggressive regressor is scikit-learn's where both run the same algorithm, keeps to its bounds, and obeys what
every learner obeys."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt.errors import NumericOverflow
from rosenblatt.estimators.regression.regressor import PassiveAggressiveRegressor
from rosenblatt.testing import laws

LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]


def scikit_learns(loss, C, **settings):
    """scikit-learn's own, which since 1.8 is a setting of SGDRegressor."""
    try:
        rate = "pa1" if loss == "epsilon_insensitive" else "pa2"
        model = linear_model.SGDRegressor("epsilon_insensitive", penalty=None, learning_rate=rate, eta0=C, **settings)
        return model.fit([[1.0], [2.0]], [1.0, 2.0])
    except ValueError:  # before 1.8
        return linear_model.PassiveAggressiveRegressor(loss=loss, C=C, **settings)


def measured(rows=300, features=5, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    return X, X @ rng.standard_normal(features) * 3 + 2.0 + noise * rng.standard_normal(rows)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("average", [False, True])
def test_same_weights_as_scikit_learn_without_an_intercept(loss, C, average):
    X, y = measured()
    settings = {"loss": loss, "C": C, "shuffle": False, "fit_intercept": False, "average": average, "epsilon": 0.3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, and of deprecation in 1.8
        for stop in ({"max_iter": 4, "tol": None}, {"tol": 1e-3}):
            theirs = scikit_learns(**settings, **stop).fit(X, y)
            ours = PassiveAggressiveRegressor(**settings, **stop).fit(X, y)
            assert np.allclose(ours.coef_, theirs.coef_)
            assert np.allclose(ours.predict(X), theirs.predict(X))
            assert ours.n_iter_ == theirs.n_iter_
            assert (ours.coef_.shape, ours.intercept_.shape) == (theirs.coef_.shape, theirs.intercept_.shape)


def test_every_parameter_of_scikit_learns_class_is_here():
    names = "C fit_intercept max_iter tol early_stopping validation_fraction n_iter_no_change shuffle verbose loss epsilon"
    assert {*names.split(), "random_state", "warm_start", "average"} <= set(PassiveAggressiveRegressor().get_params())


@pytest.mark.parametrize("loss", LOSSES)
def test_as_good_as_scikit_learn_with_an_intercept(loss):
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {"loss": loss, "C": 1.0, "average": True, "random_state": 0, "max_iter": 200}
        theirs = cross_val_score(scikit_learns(**settings), X, y, cv=5).mean()
    ours = cross_val_score(PassiveAggressiveRegressor(**settings), X, y, cv=5).mean()
    assert ours > theirs - 0.01
    assert ours > 0.35


@given(st.lists(st.integers(-4, 4), min_size=3, max_size=3), st.integers(-9, 9), st.sampled_from([0.0, 0.5, 2.0]))
def test_a_step_ends_at_the_edge_of_the_tube_intercept_included(row, target, epsilon):
    X, y = np.array([row], float), np.array([target], float)
    reg = PassiveAggressiveRegressor(C=np.inf, epsilon=epsilon).partial_fit(X, y)
    assert np.isclose(abs(y - reg.predict(X))[0], min(epsilon, abs(target)))
    assert reg.n_updates_ == (abs(target) > epsilon)
    if epsilon > 0:  # the edge is no reason to move again
        assert reg.partial_fit(X, y).n_updates_ == (abs(target) > epsilon)
    capped = PassiveAggressiveRegressor(C=0.01, epsilon=epsilon).partial_fit(X, y)
    length = (X**2).sum() + 1
    tau = min(0.01, max(0.0, abs(target) - epsilon) / length) * np.sign(target)
    assert np.allclose(np.append(capped.coef_, capped.intercept_), tau * np.append(X, 1))
    damped = PassiveAggressiveRegressor(C=0.5, epsilon=epsilon, loss="squared_epsilon_insensitive").partial_fit(X, y)
    tau = max(0.0, abs(target) - epsilon) / (length + 1) * np.sign(target)
    assert np.allclose(np.append(damped.coef_, damped.intercept_), tau * np.append(X, 1))


def test_a_row_of_length_zero_rests():
    reg = PassiveAggressiveRegressor(C=np.inf, fit_intercept=False).partial_fit(np.zeros((3, 2)), np.ones(3))
    assert (reg.n_updates_, reg.n_seen_) == (0, 3)
    assert np.array_equal(reg.coef_, [0, 0])


# Crammer et al. 2006: Lemma 1 with the tube in the place of the margin, hence their Theorems 2 and 5.


@st.composite
def streams(draw):
    """Integer rows, targets that a known vector meets up to ε with some losses, and that vector with its tube."""
    rows, features = draw(st.integers(1, 15)), draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(-3, 3), min_size=rows * features, max_size=rows * features))
    X = np.array(cells, float).reshape(rows, features)
    u = np.array(draw(st.lists(st.integers(-3, 3), min_size=features + 1, max_size=features + 1)), float)
    epsilon = draw(st.sampled_from([0.0, 0.25, 1.0]))
    shifts = draw(st.lists(st.floats(-1, 1), min_size=rows, max_size=rows))
    return X, X @ u[:-1] + u[-1], u, epsilon, np.array(shifts)


def losses(reg, X, y):
    """ℓ of each row when it came."""
    found = []
    for i in range(len(X)):
        guess = reg.predict(X[[i]])[0] if i else 0.0
        found.append(max(0.0, abs(y[i] - guess) - reg.epsilon))
        reg.partial_fit(X[[i]], y[[i]])
    return np.array(found)


@given(streams())
def test_pa_keeps_to_its_bound_where_a_vector_fits(stream):
    X, y, u, epsilon, shifts = stream
    y = y + epsilon * shifts
    radius = np.sqrt((X**2).sum(axis=1).max() + 1)
    reg = PassiveAggressiveRegressor(C=np.inf, epsilon=epsilon)
    bound = reg.loss_bound(radius, np.linalg.norm(u))
    assert bound == pytest.approx(radius**2 * (u @ u))
    assert (losses(reg, X, y) ** 2).sum() <= bound * (1 + 1e-9) + 1e-9


@given(streams(), st.sampled_from([0.1, 1.0, 10.0]))
def test_pa2_keeps_to_its_bound_against_every_vector(stream, C):
    X, y, u, epsilon, shifts = stream
    y = y + 3 * shifts
    radius = np.sqrt((X**2).sum(axis=1).max() + 1)
    reg = PassiveAggressiveRegressor(C=C, epsilon=epsilon, loss="squared_epsilon_insensitive")
    total = (np.maximum(0, np.abs(3 * shifts) - epsilon) ** 2).sum()
    bound = reg.loss_bound(radius, np.linalg.norm(u), total)
    assert bound == pytest.approx((radius**2 + 1 / (2 * C)) * (u @ u + 2 * C * total))
    assert (losses(reg, X, y) ** 2).sum() <= bound * (1 + 1e-9) + 1e-9


def test_where_no_bound_is_known_it_is_infinite():
    assert PassiveAggressiveRegressor(C=1.0).loss_bound(1.0, 1.0) == np.inf
    assert PassiveAggressiveRegressor(C=np.inf).loss_bound(1.0, 1.0, losses=0.1) == np.inf
    damped = PassiveAggressiveRegressor(C=np.inf, loss="squared_epsilon_insensitive")
    assert damped.loss_bound(2.0, 3.0) == 36.0


def test_stopping():
    X, y = measured(noise=0.0)
    met = PassiveAggressiveRegressor(C=np.inf, epsilon=0.01, tol=None).fit(X, y)
    assert met.stop_reason_ == "converged"
    assert np.abs(met.predict(X) - y).max() <= 0.01 * (1 + 1e-6)
    assert met.history_[-1].loss < 1e-9
    X, y = measured()
    assert PassiveAggressiveRegressor().fit(X, y).stop_reason_ == "training_error"
    early = PassiveAggressiveRegressor(C=0.01, early_stopping=True).fit(X, y)
    assert early.stop_reason_ == "validation_error"
    assert early.n_seen_ == 270 * early.n_iter_
    assert 0 < early.history_[-1].validation_error < 0.5
    with pytest.raises(ValueError, match=r"holds out 1 of 5 rows and learns from 4, .* at least 11 rows"):
        PassiveAggressiveRegressor(early_stopping=True).fit(X[:5], y[:5])


def test_refusals_name_the_value():
    X, y = measured(10)
    for params, words in (
        ({"C": 0}, "C must be a number > 0; got 0"),
        ({"epsilon": -1}, "epsilon must be a number ≥ 0; got -1"),
        ({"loss": "hinge"}, "loss must be one of 'epsilon_insensitive', 'squared_epsilon_insensitive'; got 'hinge'"),
        ({"average": 10}, "average must be True or False; got 10"),
    ):
        with pytest.raises(ValueError, match=words):
            PassiveAggressiveRegressor(**params).fit(X, y)


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize(("average", "rows"), [(False, np.asarray), (False, sp.csr_matrix), (True, np.asarray)])
def test_a_row_that_makes_the_weights_infinite_is_named_and_changes_nothing(average, after, rows):
    X = rows(np.array([[1.0, 0.0], [1.0, 0.0], [1e-3, 0.0]] + [[0.0, 1.0]] * after + [[1.0, 1.0]] * (after > 0)))
    y = np.array([1.0, 2.0, 1.7e308] + [1.0] * (X.shape[0] - 3))
    reg = PassiveAggressiveRegressor(C=np.inf, fit_intercept=False, average=average, shuffle=False)
    reg.partial_fit(X[:2], y[:2])
    before = pickle.dumps(reg)
    for method in (reg.partial_fit, reg.fit):
        with pytest.raises(NumericOverflow) as caught:
            method(X, y)
        assert caught.value.row == 2
        assert pickle.dumps(reg) == before


def test_the_line_of_an_epoch_tells_the_loss(capsys):
    X, y = measured(20)
    reg = PassiveAggressiveRegressor(max_iter=1, tol=None, verbose=1).fit(X, y)
    assert f"epoch 1  loss {reg.history_[0].loss:.4g}  updates {reg.n_updates_}" in capsys.readouterr().err


# What every learner obeys


def numbers():
    X, y = laws.data()
    return X, 3.0 * y + X[:, 0]


def same(one, other, X, tolerance=0.0):
    assert (one.n_updates_, one.n_seen_) == (other.n_updates_, other.n_seen_)
    for a, b in ((one.coef_, other.coef_), (one.intercept_, other.intercept_), (one.predict(X), other.predict(X))):
        assert laws.agree(a, b, tolerance)


@pytest.mark.parametrize("average", [False, True])
def test_chunks_weights_of_zero_and_seeds(average):
    X, y = numbers()
    plain = PassiveAggressiveRegressor(max_iter=6, average=average)
    whole = clone(plain).partial_fit(X, y)
    for cuts in ([1, 2, 3], [13], list(range(1, len(X)))):
        parts = clone(plain)
        for rows, values in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
            parts = pickle.loads(pickle.dumps(parts.partial_fit(rows, values)))
        same(whole, parts, X)
    weight = np.ones(len(X))
    weight[::3] = 0
    odd = X.copy()
    odd[::3] += 50
    same(clone(plain).fit(X[weight > 0], y[weight > 0]), clone(plain).fit(odd, y, sample_weight=weight), X)
    same(clone(plain).fit(X, y), clone(plain).fit(X, y), X)


def test_layouts_agree():
    X, y = numbers()
    expected = PassiveAggressiveRegressor(max_iter=6).fit(X, y)
    for layout in (np.asfortranarray(X), X.tolist(), sp.csr_matrix(X), sp.csc_matrix(X), laws.unsorted_csr(X)):
        before = pickle.dumps(layout)
        same(expected, PassiveAggressiveRegressor(max_iter=6).fit(layout, y), X, 1e-9)
        assert pickle.dumps(layout) == before
    both = PassiveAggressiveRegressor(max_iter=6).fit(X, np.column_stack([y, -y]))
    assert np.allclose(both.coef_, [expected.coef_, -expected.coef_])


WEIGHTS_ARE_RATES = "a weight multiplies a step; two visits of a row are two steps, and the second sees what the first did"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_RATES,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_RATES,
}


@parametrize_with_checks(
    [PassiveAggressiveRegressor(), PassiveAggressiveRegressor(loss="squared_epsilon_insensitive", max_iter=100)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
