"""ALMA, ROMMA, the ballseptron and the p-norm perceptron: each equals its paper written in plain numpy, and keeps its bound
and its margin on data whose best margin is known from a solver that learns nothing."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt import Perceptron
from rosenblatt.estimators.states.pnorm import PNormPerceptron
from rosenblatt.estimators.states.scaled import ALMA, ROMMA, Ballseptron
from rosenblatt.testing import laws
from rosenblatt.testing.strategies import samples, separated

FORMS = {
    "ALMA": ALMA(),
    "ROMMA": ROMMA(),
    "aggressive ROMMA": ROMMA(alpha=0.2, order="random"),
    "Ballseptron": Ballseptron(),
    "p = 2": PNormPerceptron(),
    "p = 3.5": PNormPerceptron(p=3.5, margin=1.0, fit_intercept=False),
    "p = log": PNormPerceptron(p="log"),
}


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_law(form, law):
    law(FORMS[form])


RATES = "a weight multiplies the step; two visits of a row are two steps, which is another thing"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": RATES for kind in ("dense", "sparse")}
LENGTHS = "the length of the weights limits a step: weights of 1000 and 0.0001 do not make one class of overlapping ones"


@parametrize_with_checks(
    [form.set_params(max_iter=20) for form in (ALMA(), ROMMA(), Ballseptron(), PNormPerceptron(p=3))],
    expected_failed_checks=lambda estimator: (
        EXPECTED if isinstance(estimator, PNormPerceptron) else {**EXPECTED, "check_class_weight_classifiers": LENGTHS}
    ),
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


class Careless(ALMA):
    """Rounds its weights to three digits where its features are permuted or its rows are sparse."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.odd_ = sp.issparse(X) or X[0][0] < 0
        return self

    @property
    def coef_(self):
        return np.round(super().coef_, 3) if self.odd_ else super().coef_


@pytest.mark.parametrize("law", [laws.layouts_agree, laws.names_do_not_matter])
def test_a_learner_that_rounds_is_still_held_to_its_digits(law):
    with pytest.raises(AssertionError, match=r"coef_ is|weights of permuted"):
        law(Careless())


# The papers, in plain numpy: after (w, y·x) and the number of the update, the new weights, or None


def alma(w, a, k, alpha):
    unit = a / np.linalg.norm(a)
    if w @ unit > (1 - alpha) * np.sqrt(8) / alpha / np.sqrt(k):
        return None
    w = w + np.sqrt(2 / k) * unit
    return w / max(1.0, np.linalg.norm(w))


def romma(w, a, k, alpha):
    m, x2, w2 = w @ a, a @ a, w @ w
    if m > 1 - alpha:
        return None
    apart = x2 * w2 - m**2
    if k == 1 or w2 * x2 <= m or apart <= 1e-12 * x2 * w2:
        return a / x2
    new = (x2 * w2 - m) / apart * w + w2 * (1 - m) / apart * a
    return new if (new @ new) * x2 <= 1e12 else new / np.sqrt((new @ new) * x2)


def ballseptron(w, a, k, ball):
    if w @ a <= 0:
        return w + a
    unit = w / np.linalg.norm(w)
    return w + (a - ball * unit) if unit @ a <= ball else None


def link(theta, p):
    size = np.linalg.norm(theta, p)
    return np.sign(theta) * np.abs(theta) ** (p - 1) / size ** (p - 2) if size > 0 else theta


class Run(NamedTuple):
    path: list  # weights after each example
    updated: list  # whether each example changed them
    mistakes: int


def naive(X, signs, update, **param):
    w, k, path, updated, mistakes = np.zeros(X.shape[1]), 1, [], [], 0
    for x, y in zip(X, signs, strict=True):
        mistakes += y * (w @ x) <= 0
        new = update(w, y * x, k, **param)
        updated.append(new is not None)
        k += updated[-1]
        w = w if new is None else new
        path.append(w)
    return Run(path, updated, mistakes)


def naive_p(X, signs, p, margin):
    theta, path, updated, mistakes = np.zeros(X.shape[1]), [], [], 0
    for x, y in zip(X, signs, strict=True):
        m = y * (link(theta, p) @ x)
        mistakes += m <= 0
        updated.append(m <= margin)
        theta = theta + updated[-1] * y * x
        path.append(link(theta, p))
    return Run(path, updated, mistakes)


def papers(X, signs):
    """(estimator, what the paper does) for each learner."""
    yield ALMA(alpha=0.4), naive(X, signs, alma, alpha=0.4)
    yield ROMMA(), naive(X, signs, romma, alpha=1.0)
    yield ROMMA(alpha=0.1), naive(X, signs, romma, alpha=0.1)
    yield Ballseptron(ball=0.3), naive(X, signs, ballseptron, ball=0.3)
    yield PNormPerceptron(p=2.5, margin=0.7), naive_p(X, signs, 2.5, 0.7)
    yield PNormPerceptron(p=20.0), naive_p(X, signs, 20.0, 0.0)


def gaussian(seed, rows=60, features=4, noise=0.5):
    """Rows of no special position, so that no rounding decides an update, and labels that nearly follow from them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    y = X @ rng.standard_normal(features) + noise * rng.standard_normal(rows) > 0
    y[:2] = [True, False]
    return X, y


def planted(seed, rows=60, features=5, gap=0.15, zeros=0.0):
    """Rows of no special position, a share of their values zero, that a drawn unit vector separates by at least `gap`."""
    rng = np.random.default_rng(seed)
    X, u = rng.standard_normal((rows, features)), rng.standard_normal(features)
    X[rng.random(X.shape) < zeros] = 0.0
    scores = X @ u / np.linalg.norm(u)
    return X[np.abs(scores) > gap], (scores > 0)[np.abs(scores) > gap]


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(3, 6), st.sampled_from([0.0, 1.0, 0.5]), st.booleans())
def test_every_update_is_the_papers(seed, features, constant, sparse):
    X, y = planted(seed, rows=50, features=features, zeros=0.3)
    padded = np.hstack([X, np.full((len(X), 1), constant)])
    for clf, run in papers(padded, np.where(y, 1.0, -1.0)):
        clf.set_params(fit_intercept=constant != 0, intercept_scaling=constant or 1.0)
        updates = 0
        for i in range(len(X)):
            row = sp.csr_matrix(X[[i]]) if sparse else X[[i]]
            clf.partial_fit(row, y[[i]], classes=[False, True])
            w = np.append(clf.coef_[0], clf.intercept_[0] / (constant or 1.0))
            updates += run.updated[i]
            assert clf.n_updates_ == updates, f"{clf}, row {i}"
            assert np.allclose(w, run.path[i], rtol=1e-8, atol=1e-8 * np.abs(run.path[i]).max()), f"{clf}, row {i}"
        assert clf.n_mistakes_ == run.mistakes


def test_a_long_run_stays_on_the_papers_path():
    X, y = gaussian(5, rows=1500, features=12, noise=3.0)
    for clf, run in papers(X, np.where(y, 1.0, -1.0)):
        clf.set_params(fit_intercept=False).partial_fit(X, y, classes=[False, True])
        assert (clf.n_updates_, clf.n_mistakes_) == (sum(run.updated), run.mistakes)
        assert np.allclose(clf.coef_[0], run.path[-1], rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-150, -1e-150, 1e150])
def test_an_extreme_scale_goes_into_the_weights(scale):
    X, y = gaussian(1, features=30)
    one, other = Ballseptron(order="cyclic", max_iter=2), Ballseptron(order="cyclic", max_iter=2, warm_start=True)
    one.set_params(warm_start=True).fit(X, y)
    other.fit(X, y)
    other._model.state.v[:] /= scale
    other._model.state.scale[:] *= scale
    assert np.allclose(other.fit(X, y).coef_, one.fit(X, y).coef_, rtol=1e-9)
    assert 1e-99 < abs(other._model.state.scale[0]) < 1e99


@pytest.mark.parametrize("form", FORMS)
def test_many_classes_are_each_one_against_the_rest(form):
    X, y = laws.data(3)
    X = X + np.random.default_rng(3).normal(0, 0.1, X.shape)
    together = FORMS[form].__class__(**FORMS[form].get_params()).set_params(order="cyclic", max_iter=4, tol=None)
    together.fit(X, y)
    updates = 0
    for k in range(3):
        alone = FORMS[form].__class__(**together.get_params()).fit(X, y == k)
        assert np.allclose(alone.coef_[0], together.coef_[k])
        assert np.allclose(alone.intercept_, together.intercept_[k])
        updates += alone.n_updates_
    assert together.n_updates_ == updates


# What the theorems promise


def shortest(rows):
    """The shortest w with rows·w ≥ 1, by nonnegative least squares (Lawson and Hanson 1974, problem LDP)."""
    stacked = np.vstack([rows.T, np.ones(len(rows))])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    residual = stacked @ nnls(stacked, target)[0] - target
    return -residual[:-1] / residual[-1]


def margin(w, rows):
    return (rows @ w).min() / np.linalg.norm(w)


def signed(drawn):
    """Rows y·(x, constant); none is zero."""
    return np.where(drawn.labels == 1, 1.0, -1.0)[:, None] * np.hstack(
        [drawn.X, np.full((len(drawn.X), 1), drawn.constant)]
    )


def fitted(clf, drawn, **params):
    clf.set_params(fit_intercept=drawn.constant != 0, intercept_scaling=drawn.constant or 1.0, tol=None, max_iter=10**6)
    clf.set_params(**params).fit(drawn.X, drawn.labels)
    assert clf.stop_reason_ == "converged"
    return clf, np.append(clf.coef_[0], clf.intercept_[0] / (drawn.constant or 1.0))


@given(separated(), st.sampled_from([1.0, 0.9, 0.6]), st.sampled_from(["cyclic", "shuffle", "random"]))
def test_alma_keeps_its_bound_and_comes_near_the_best_margin(drawn, alpha, order):
    rows = signed(drawn)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    best = 1 / np.linalg.norm(shortest(rows))
    clf, w = fitted(ALMA(alpha=alpha), drawn, order=order)
    assert clf.n_updates_ <= clf.mistake_bound(1.0, best) * (1 + 1e-9)
    assert clf.n_updates_ <= clf.mistake_bound(drawn.radius, drawn.margin)
    assert clf.n_mistakes_ <= clf.n_updates_
    assert margin(w, rows) >= (1 - alpha) * best - 1e-9
    assert np.linalg.norm(w) <= 1 + 1e-12


@given(separated(), st.sampled_from([1.0, 0.5, 0.05]), st.sampled_from(["cyclic", "shuffle", "random"]))
def test_romma_keeps_its_bounds_and_comes_near_the_best_margin(drawn, alpha, order):
    rows = signed(drawn)
    best = 1 / np.linalg.norm(shortest(rows))
    radius = np.linalg.norm(rows, axis=1).max()
    clf, w = fitted(ROMMA(alpha=alpha), drawn, order=order)
    assert clf.n_mistakes_ <= (radius / best) ** 2 * (1 + 1e-9)
    assert clf.n_updates_ <= clf.mistake_bound(radius, best) * (1 + 1e-9)
    assert max(epoch.norm for epoch in clf.history_) <= (1 + 1e-9) / best
    assert margin(w, rows) >= (1 - alpha) * best - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_aggressive_romma_finds_the_best_margin(seed):
    X, y = planted(seed)
    rows = np.where(y, 1.0, -1.0)[:, None] * X
    best = 1 / np.linalg.norm(shortest(rows))
    clf = ROMMA(alpha=0.002, fit_intercept=False, tol=None, max_iter=10**5).fit(X, y)
    assert clf.stop_reason_ == "converged"
    assert best * (1 + 1e-9) >= margin(clf.coef_[0], rows) >= 0.998 * best
    assert clf.n_mistakes_ < clf.n_updates_


@given(separated(), st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from(["cyclic", "shuffle", "random"]))
def test_ballseptron_keeps_its_bound_and_ends_wider_than_its_balls(drawn, share, order):
    rows = signed(drawn)
    best = 1 / np.linalg.norm(shortest(rows))
    radius = np.linalg.norm(rows, axis=1).max()
    clf, w = fitted(Ballseptron(ball=share * best), drawn, order=order)
    assert clf.n_updates_ <= clf.mistake_bound(radius, best) * (1 + 1e-9)
    assert margin(w, rows) > share * best - 1e-12


def test_balls_wider_than_the_margin_have_no_bound():
    assert Ballseptron(ball=0.5).mistake_bound(1.0, 0.5) == np.inf
    assert Ballseptron(ball=0.0).mistake_bound(3.0, 0.5) == Perceptron().mistake_bound(3.0, 0.5)


@given(separated(), st.sampled_from([2.0, 2.5, 6.0]), st.sampled_from([0.0, 2.0]))
def test_p_norm_perceptron_keeps_its_bound_in_its_own_norms(drawn, p, delta):
    rows = signed(drawn)
    q = p / (p - 1)
    gamma = (rows @ drawn.separator).min() / np.linalg.norm(drawn.separator, q)
    radius = np.linalg.norm(rows, p, axis=1).max()
    clf, w = fitted(PNormPerceptron(p=p, margin=delta), drawn)
    assert clf.n_updates_ <= clf.mistake_bound(radius, gamma) * (1 + 1e-9)
    reached = (rows @ w).min() / np.linalg.norm(w, q)
    assert reached > delta * gamma / ((p - 1) * radius**2 + 2 * delta) - 1e-9


@given(samples(classes=st.just(2)), st.sampled_from([0.0, 2.0]))
def test_p_of_two_is_the_perceptron_to_the_last_bit(sample, delta):
    params = {"margin": delta, "order": "cyclic", "max_iter": 6, "tol": None}
    ours = PNormPerceptron(p=2, **params).fit(sample.X, sample.labels)
    laws.assert_same_model(ours, Perceptron(keep="last", **params).fit(sample.X, sample.labels), sample.X, "p = 2")


def test_p_of_log_is_found_from_the_number_of_features():
    X, y = gaussian(0, features=30)
    clf = PNormPerceptron(p="log")
    assert clf.mistake_bound(1.0, 0.1) == np.inf
    clf.fit(X, y)
    assert clf.p_ == 2 * np.log(31)
    assert clf.mistake_bound(1.0, 0.1) == pytest.approx((2 * np.log(31) - 1) / 0.01)
    assert clf.set_params(fit_intercept=False).fit(X, y).p_ == 2 * np.log(30)
    assert clf.fit(X[:, :2], y).p_ == 2.0


def test_many_irrelevant_features_cost_a_logarithm():
    updates = {}
    for features in (32, 1024):
        X = np.random.default_rng(0).choice([-1.0, 1.0], (600, features))
        for p in (2.0, "log"):
            clf = PNormPerceptron(p=p, tol=None).fit(X, X[:, :3].sum(axis=1) > 0)
            assert clf.stop_reason_ == "converged"
            updates[p, features] = clf.n_updates_
    assert updates[2.0, 1024] / updates[2.0, 32] > 2 * updates["log", 1024] / updates["log", 32]


@pytest.mark.parametrize("size", [1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize("p", [4.0, 1000.0])
def test_the_p_norm_perceptron_does_not_see_the_unit_of_its_rows(size, p):
    X, y = gaussian(2)
    params = {"p": p, "fit_intercept": False, "order": "cyclic", "max_iter": 5, "tol": None}
    one, other = PNormPerceptron(**params).fit(X, y), PNormPerceptron(**params).fit(X * size, y)
    assert other.n_updates_ == one.n_updates_
    assert np.allclose(other.coef_ / size, one.coef_, rtol=1e-9)


# Where the algorithms end


@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_romma_stays_finite_and_useful_where_nothing_separates(alpha):
    X, y = gaussian(3, rows=400, noise=0.3)
    clf = ROMMA(alpha=alpha, max_iter=60, tol=None).fit(X, y)
    assert np.isfinite(clf.coef_).all()
    assert clf.n_updates_ > 500
    assert clf.score(X, y) > 0.75


def test_romma_forgets_what_an_example_flatly_contradicts():
    clf = ROMMA(fit_intercept=False).partial_fit([[3.0, 4.0]], [1], classes=[0, 1])
    assert np.allclose(clf.coef_, [[3 / 25, 4 / 25]])
    clf.partial_fit([[6.0, 8.0]], [0])
    assert np.allclose(clf.coef_, [[-6 / 100, -8 / 100]])


def test_a_single_example_that_says_all_replaces_the_weights():
    clf = ROMMA(alpha=0.5, fit_intercept=False).partial_fit([[4.0, 0.0], [1.0, 0.5]], [1, 1], classes=[0, 1])
    assert np.allclose(clf.coef_, [[0.8, 0.4]])  # ‖w‖²‖x‖² = 5/64 is less than the margin 1/4


@pytest.mark.parametrize("clf", [ALMA(), ROMMA(), Ballseptron()], ids=lambda clf: type(clf).__name__)
def test_a_row_of_zeros_teaches_nothing(clf):
    X, y = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, -1.0]]), np.array([1, 1, 0])
    clf.set_params(fit_intercept=False, order="cyclic", tol=None).fit(X, y)
    with_zeros, updates, mistakes = clf.coef_, clf.n_updates_, clf.n_mistakes_
    assert clf.stop_reason_ == "converged"
    clf.fit(X[1:], y[1:])
    assert np.array_equal(clf.coef_, with_zeros)
    assert clf.n_updates_ == updates
    assert mistakes == clf.n_mistakes_ + clf.n_iter_  # a tie is a mistake all the same


@pytest.mark.parametrize("clf", [ALMA(), ROMMA(), Ballseptron()], ids=lambda clf: type(clf).__name__)
def test_rows_too_long_for_their_squares_are_refused(clf):
    with pytest.raises(ValueError, match="overflowed"):
        clf.fit(np.array([[1e200, 1.0], [-1e200, 1.0]]), [0, 1])
    assert not hasattr(clf, "classes_")


# What is refused

REFUSED = [
    (ALMA(alpha=0.0), "alpha must be a number > 0 and ≤ 1; got 0.0"),
    (ALMA(alpha=1.5), "alpha must be a number > 0 and ≤ 1; got 1.5"),
    (ROMMA(alpha=0.0), "alpha must be a number ≥ 1e-09 and ≤ 1; got 0.0"),
    (Ballseptron(ball=-1.0), "ball must be a number ≥ 0; got -1.0"),
    (PNormPerceptron(p=1.5), "p must be a number ≥ 2 or 'log'; got 1.5"),
    (PNormPerceptron(margin=-1.0), "margin must be a number ≥ 0; got -1.0"),
    (ALMA(order="most-violated"), "order must be one of 'shuffle', 'cyclic', 'random'; got 'most-violated'"),
]


@pytest.mark.parametrize(("clf", "message"), REFUSED, ids=lambda value: "")
def test_refused_parameters(clf, message):
    X, y = gaussian(0)
    with pytest.raises(ValueError, match=r"must be") as error:
        clf.fit(X, y)
    assert str(error.value) == message


@pytest.mark.parametrize("change", [{"alpha": 0.5}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
def test_a_model_goes_on_only_as_it_began(change):
    X, y = gaussian(0)
    clf = ALMA(warm_start=True).fit(X, y)
    before = clf.coef_.copy()
    clf.set_params(**change)
    with pytest.raises(ValueError, match="has changed since this model began to learn"):
        clf.fit(X, y)
    with pytest.raises(ValueError, match="has changed since this model began to learn"):
        clf.partial_fit(X, y)
    assert np.array_equal(clf.coef_, before)


@pytest.mark.parametrize("form", FORMS)
def test_warm_start_goes_on(form):
    X, y = gaussian(4)
    params = FORMS[form].get_params() | {"order": "cyclic", "tol": None}
    through = FORMS[form].__class__(**params).set_params(max_iter=6).fit(X, y)
    halves = FORMS[form].__class__(**params).set_params(max_iter=3, warm_start=True).fit(X, y).fit(X, y)
    assert np.array_equal(halves.coef_, through.coef_)
    assert np.array_equal(halves.intercept_, through.intercept_)
