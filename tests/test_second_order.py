"""The second-order learners are what their papers say, in every form; their theorems hold; and none takes more memory than
it was given."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import rosenblatt
from rosenblatt import Perceptron
from rosenblatt.errors import UnscaledColumns
from rosenblatt.estimators.states.second_order import AROW, SecondOrderPerceptron, spectral_bound
from rosenblatt.testing import laws, reference

FORMS = {
    "perceptron full": SecondOrderPerceptron(max_iter=20),
    "perceptron dual": SecondOrderPerceptron(form="dual", a=2.0, max_iter=5),
    "perceptron diagonal": SecondOrderPerceptron(form="diagonal", max_iter=20),
    "AROW diagonal": AROW(form="diagonal", max_iter=10),
    "AROW full": AROW(form="full", r=0.5, max_iter=10),
    "AROW dual": AROW(form="dual", max_iter=3),
}


def padded(X, constant=1.0):
    return np.column_stack([X, np.full(len(X), constant)])


def tilted(rows, features=4, classes=2, noise=0.3, seed=0):
    """Rows of a skewed distribution with noisy labels; no two scores are nearly equal."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * 3.0 ** -np.arange(features) @ rng.standard_normal((features, features))
    scores = X @ rng.standard_normal((features, classes)) + noise * rng.standard_normal((rows, classes))
    return X, scores.argmax(axis=1)


# The learners as their papers write them, one weight vector at a time


class Paper:
    """Second-order perceptron: v and M, and the score with the current row in M."""

    def __init__(self, size, a):
        self.v, self.M = np.zeros(size), a * np.eye(size)

    def score(self, x):
        return self.v @ np.linalg.solve(self.M + np.outer(x, x), x)

    def learn(self, x, y):
        if y * self.score(x) <= 0:
            self.v, self.M = self.v + y * x, self.M + np.outer(x, x)
            return True
        return False

    def weights(self):
        return np.linalg.solve(self.M, self.v)


class PaperDiagonal(Paper):
    """The same with the diagonal of M only, and the score without the current row."""

    def score(self, x):
        return self.v @ (x / np.diag(self.M))

    def weights(self):
        return self.v / np.diag(self.M)


class PaperAROW:
    """AROW: mean and covariance."""

    def __init__(self, size, r):
        self.r, self.mean, self.sigma = r, np.zeros(size), np.eye(size)

    def score(self, x):
        return self.mean @ x

    def learn(self, x, y):
        loss = max(0.0, 1.0 - y * self.score(x))
        if loss > 0:
            beta = 1 / (x @ self.sigma @ x + self.r)
            self.mean = self.mean + loss * beta * y * self.sigma @ x
            self.sigma = self.shrunk(x, beta)
        return loss > 0

    def shrunk(self, x, beta):
        return self.sigma - beta * np.outer(self.sigma @ x, self.sigma @ x)

    def weights(self):
        return self.mean


class PaperAROWDiagonal(PaperAROW):
    """AROW with the precisions x²/r added on the diagonal."""

    def shrunk(self, x, beta):
        return np.diag(1 / (1 / np.diag(self.sigma) + x**2 / self.r))


def by_the_paper(kind, parameter, X, y, classes, epochs, constant=1.0):
    """(weights, mistakes, updates) of one vector for two classes, or of one a class."""
    rows = padded(X, constant)
    learners = [kind(rows.shape[1], parameter) for _ in range(1 if classes == 2 else classes)]
    mistakes = updates = 0
    for _ in range(epochs):
        for x, label in zip(rows, y, strict=True):
            signs = [1 if label == 1 else -1] if classes == 2 else [1 if label == k else -1 for k in range(classes)]
            scores = np.array([learner.score(x) for learner in learners])
            if classes == 2:
                mistakes += signs[0] * scores[0] <= 0
            else:
                linear = np.array([learner.weights() @ x for learner in learners])
                mistakes += linear[label] <= np.delete(linear, label).max()
            updates += sum(learner.learn(x, sign) for learner, sign in zip(learners, signs, strict=True))
    return np.array([learner.weights() for learner in learners]), mistakes, updates


PAPERS = [
    (SecondOrderPerceptron, "a", "full", Paper),
    (SecondOrderPerceptron, "a", "dual", Paper),
    (SecondOrderPerceptron, "a", "diagonal", PaperDiagonal),
    (AROW, "r", "full", PaperAROW),
    (AROW, "r", "dual", PaperAROW),
    (AROW, "r", "diagonal", PaperAROWDiagonal),
]


@pytest.mark.parametrize(("learner", "name", "form", "paper"), PAPERS)
@given(
    seed=st.integers(0, 10**6),
    classes=st.integers(2, 3),
    constant=st.sampled_from([0.0, 1.0, 2.5]),
    ridge=st.sampled_from([1e-3, 1.0, 40.0]),
    layout=st.sampled_from([np.asarray, sp.csr_matrix]),
)
@settings(max_examples=12)
def test_equal_to_the_paper(learner, name, form, paper, seed, classes, constant, ridge, layout):
    X, y = tilted(40, classes=classes, seed=seed)
    # Never the first column: a row of the constant alone has a margin of exactly 0 where as many of its sides were learned
    # up as down, and of classes that are level, and then rounding would decide. Without the constant it is 0 for everyone.
    X[:, 1:][np.abs(X[:, 1:]) < 0.05] = 0.0
    if not constant:
        X[7] = 0.0
    y[:classes] = range(classes)
    weights, mistakes, updates = by_the_paper(paper, ridge, X, y, classes, 2, constant)
    clf = learner(form=form, order="cyclic", max_iter=2, tol=None, fit_intercept=constant > 0, **{name: ridge})
    clf.set_params(intercept_scaling=constant or 1.0).fit(layout(X), y)
    assert (clf.n_mistakes_, clf.n_updates_, clf.n_seen_) == (mistakes, updates, 2 * len(X))
    size = np.abs(weights).max()
    assert np.allclose(clf.coef_, weights[:, :-1], atol=1e-7 * size)
    assert np.allclose(clf.intercept_, weights[:, -1] * constant, atol=1e-7 * size)


def test_full_and_dual_are_the_same_learner():
    for X, y in (tilted(600, 5, noise=2.0), tilted(60, 200, noise=2.0), tilted(300, 6, classes=4, noise=1.0)):
        full, dual = (SecondOrderPerceptron(form=form, max_iter=3, tol=None).fit(X, y) for form in ("full", "dual"))
        assert [(e.mistakes, e.updates) for e in full.history_] == [(e.mistakes, e.updates) for e in dual.history_]
        assert full.n_updates_ > 100 or len(X) == 60  # enough for the dual form to have grown a few times
        assert np.allclose(full.coef_, dual.coef_, rtol=1e-8, atol=1e-10)
        rows = dual._model.state.stored[0]  # once for all the vectors that learn it
        assert rows == dual.n_updates_ if dual.coef_.shape[0] == 1 else rows < 0.8 * dual.n_updates_


def test_dropping_the_current_row_from_the_matrix_changes_no_sign():
    X, y = tilted(80)
    paper = Paper(5, 0.5)
    for x, label in zip(padded(X), y, strict=True):
        without = paper.weights() @ x
        assert np.isclose(paper.score(x), without / (1 + x @ np.linalg.solve(paper.M, x)))
        assert np.sign(paper.score(x)) == np.sign(without)
        paper.learn(x, 1 if label == 1 else -1)


@pytest.mark.parametrize("form", ["full", "dual", "diagonal"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_heavy_matrix_makes_it_the_perceptron(form, classes):
    X, y = tilted(100, classes=classes)
    first = reference.learn(X, y, classes, [range(100)] * 3, multiclass="binary" if classes == 2 else "ovr")
    second = SecondOrderPerceptron(a=1e10, form=form, order="cyclic", max_iter=3, tol=None).fit(X, y)
    assert (first.mistakes, first.updates) == (second.n_mistakes_, second.n_updates_)
    assert np.allclose(1e10 * second.coef_, first.last[:, :-1], atol=1e-4)


def test_arow_is_the_second_order_perceptron_with_another_test():
    X, y = tilted(60)
    arow = AROW(form="full", r=3.0, order="cyclic", max_iter=1, tol=None)
    arow.fit(X, y)
    rows = padded(X)
    learned, twin = [], AROW(form="full", r=3.0)
    for x, label in zip(X, y, strict=True):
        before = twin.n_updates_ if hasattr(twin, "n_updates_") else 0
        twin.partial_fit(x[None], [label], classes=[0, 1])
        learned.append(twin.n_updates_ > before)
    M = 3.0 * np.eye(5) + rows[learned].T @ rows[learned]
    assert np.allclose(arow.covariance_[0], 3.0 * np.linalg.inv(M))
    assert np.allclose(
        np.append(arow.coef_, arow.intercept_), np.linalg.solve(M, rows[learned].T @ np.where(y == 1, 1, -1)[learned])
    )
    assert np.allclose(AROW(form="diagonal", r=3.0).fit(X, y).covariance_.shape, (1, 5))
    with pytest.raises(AttributeError, match="keeps no covariance"):
        _ = AROW(form="dual").fit(X, y).covariance_


def test_at_the_kink():
    """A margin of 0 is a mistake for the perceptron; one of 1 is enough for AROW, and one a hair below is not."""
    for learner, margin, learns in (
        (SecondOrderPerceptron(fit_intercept=False), 0.0, True),
        (SecondOrderPerceptron(fit_intercept=False), 5e-324, False),
        (AROW(fit_intercept=False), 1.0, False),
        (AROW(fit_intercept=False), np.nextafter(1.0, 0.0), True),
    ):
        for label in (0, 1):
            learner.__dict__.pop("_model", None)
            learner.partial_fit([[0.0]], [1], classes=[0, 1])
            learner._model.state.weights[0, 0] = margin if label else -margin
            before = learner.n_updates_
            learner.partial_fit([[1.0]], [label])
            assert (learner.n_updates_ > before) == learns


# Theorems


def run_and_note(learner, X, y, epochs):
    """(mistakes, rows of updates, their signs, updates that were no mistakes), from a stream of single rows."""
    rows, signs, near = [], [], 0
    mistakes = updates = 0
    for i in [*range(len(X))] * epochs:
        learner.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        if learner.n_updates_ > updates:
            rows.append(padded(X[i : i + 1])[0])
            signs.append(1 if y[i] else -1)
            near += learner.n_mistakes_ == mistakes
        mistakes, updates = learner.n_mistakes_, learner.n_updates_
    return mistakes, np.array(rows), np.array(signs), near


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("learner", [SecondOrderPerceptron(), SecondOrderPerceptron(a=0.01), AROW(form="full", r=2.0)])
def test_mistakes_obey_the_spectral_bound(learner, noise):
    tightest = np.inf
    for seed in range(4):
        X, y = tilted(60, noise=noise, seed=seed)
        learner.__dict__.pop("_model", None)
        mistakes, rows, signs, near = run_and_note(learner, X, y, epochs=2)
        assert (near == 0) == isinstance(learner, SecondOrderPerceptron)
        ridge = learner._ridge()
        rng = np.random.default_rng(seed)
        best = np.linalg.lstsq(padded(X), np.where(y == 1, 1.0, -1.0))[0]
        guesses = [best * scale for scale in np.geomspace(0.1, 100, 30)] + [*rng.standard_normal((30, 5))]
        bounds = [spectral_bound(rows, signs, u, ridge, near) for u in guesses]
        assert mistakes <= min(bounds)
        tightest = min(tightest, min(bounds) / mistakes)
    assert tightest < 12  # so that a bound which is far too large would be noticed


def test_the_spectral_bound_is_the_formula_of_the_paper():
    X, y = tilted(30)
    rows, signs = padded(X), np.where(y == 1, 1, -1)
    unit = np.array([0.5, -0.5, 0.5, 0.5, 0.0])
    for gamma in (0.1, 1.0, 7.0):
        hinge = np.maximum(0, gamma - signs * (rows @ unit)).sum()
        spread = np.linalg.eigvalsh(rows.T @ rows)
        expected = hinge / gamma + np.sqrt((2.0 + unit @ rows.T @ rows @ unit) * np.log(1 + spread / 2.0).sum()) / gamma
        assert np.isclose(spectral_bound(rows, signs, unit / gamma, 2.0), expected)
    assert spectral_bound(rows[:0], signs[:0], unit, 2.0) == 0


def test_the_spectral_bound_shows_where_a_second_order_pays():
    """Long in one direction, separated in another: the perceptron's bound and mistakes are many times larger."""
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 400)
    X = np.column_stack([100 * rng.standard_normal(400), side, rng.standard_normal((400, 2))])
    y = (side > 0).astype(int)
    second = SecondOrderPerceptron(fit_intercept=False)
    mistakes, rows, signs, _ = run_and_note(second, X, y, epochs=5)
    bound = spectral_bound(rows[:, :-1], signs, np.array([0, 1.0, 0, 0]), second.a)
    with pytest.warns(UnscaledColumns, match="column 0"):
        first = Perceptron(fit_intercept=False, tol=None, max_iter=100_000).fit(X, y)
    assert mistakes <= bound < first.n_mistakes_ / 3 < first.mistake_bound(np.linalg.norm(X, axis=1).max(), 1.0) / 3


def test_the_bound_known_beforehand():
    clf = SecondOrderPerceptron(a=1e9)
    assert np.isclose(clf.mistake_bound(8.0, 0.5), 64 / 0.25, rtol=1e-3)  # the perceptron's
    assert clf.mistake_bound(8.0, 0.5) > clf.mistake_bound(8.0, 0.5, features=10) >= 64 / 0.25
    clf.set_params(a=1.0)
    assert clf.mistake_bound(8.0, 0.5) == np.inf
    m = clf.mistake_bound(8.0, 0.5, features=10)
    assert np.isclose(m * 0.5, np.sqrt((1 + m * 64) * 10 * np.log(1 + m * 64 / 10)))
    assert clf.fit(np.eye(9), np.arange(9) % 2).mistake_bound(8.0, 0.5) == m  # nine features and the constant
    assert clf.set_params(form="diagonal").mistake_bound(8.0, 0.5) == np.inf


# Memory


def million(rows=60, seed=0):
    """Sparse rows of a million features, of which a few dozen occur."""
    rng = np.random.default_rng(seed)
    used = rng.choice(10**6, 40, replace=False)
    small = rng.standard_normal((rows, 40)) * (rng.uniform(size=(rows, 40)) < 0.2)
    where = np.nonzero(small)
    X = sp.csr_matrix((small[where], (where[0], used[where[1]])), shape=(rows, 10**6))
    return X, small[:, np.argsort(used)], np.sort(used), (small @ rng.standard_normal(40) > 0).astype(int)


@pytest.mark.parametrize("learner", [SecondOrderPerceptron(), AROW(form="full")])
def test_the_full_form_refuses_a_million_features_before_it_allocates(learner):
    X, _, _, y = million()
    tracemalloc.start()
    with pytest.raises(
        MemoryError, match=r"1,000,001 × 1,000,001 .* 8,000,016,000,008 bytes for 1,000,000 features.*'dual'"
    ):
        learner.fit(X, y)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    assert not hasattr(learner, "n_features_in_")
    with pytest.raises(MemoryError, match="each of 3 weight vectors"):
        learner.fit(X, np.arange(60) % 3)


def test_max_bytes_is_the_limit():
    X, y = tilted(20)
    SecondOrderPerceptron(max_bytes=200).fit(X, y)  # 5 × 5 numbers
    with pytest.raises(MemoryError, match="max_bytes=199"):
        SecondOrderPerceptron(max_bytes=199).fit(X, y)
    with pytest.raises(ValueError, match="max_bytes must be a whole number > 0; got 0"):
        SecondOrderPerceptron(max_bytes=0).fit(X, y)


def test_the_dual_form_learns_from_a_million_features():
    X, small, used, y = million()
    dual = SecondOrderPerceptron(form="dual", order="cyclic", max_bytes=10**6).fit(X, y)
    full = SecondOrderPerceptron(order="cyclic").fit(small, y)
    assert (dual.n_updates_, dual.stop_reason_) == (full.n_updates_, "converged")
    assert np.allclose(dual.coef_[:, used], full.coef_)
    assert np.count_nonzero(dual.coef_) <= len(used)


def test_random_order_converges_in_every_form():
    X, small, _, y = million()
    for form, rows in (("full", small), ("dual", X), ("diagonal", small)):
        clf = SecondOrderPerceptron(form=form, order="random", tol=None).fit(rows, y)
        assert (clf.stop_reason_, clf.score(rows, y)) == ("converged", 1.0)


def test_a_full_dual_form_leaves_the_model_as_it_was_and_can_go_on_with_more():
    X, y = tilted(400, 8, noise=5.0)
    clf = SecondOrderPerceptron(form="dual", max_bytes=10_000).partial_fit(X[:20], y[:20], classes=[0, 1])
    before = laws.model_arrays(pickle.loads(pickle.dumps(clf)))
    with pytest.raises(MemoryError, match=r"form='dual' keeps \d+ rows .* max_bytes=10,000; raise"):
        clf.partial_fit(X[20:], y[20:])
    for name, value in laws.model_arrays(clf).items():
        assert np.array_equal(before[name], value), name
    through = SecondOrderPerceptron(form="dual").partial_fit(X, y, classes=[0, 1])
    laws.assert_same_model(through, clf.set_params(max_bytes=10**7).partial_fit(X[20:], y[20:]), X, "refused, then gone on")
    with pytest.raises(MemoryError, match="no room"):
        SecondOrderPerceptron(form="dual", max_bytes=100).fit(X, y)


def test_the_dual_form_takes_what_the_documentation_says():
    X, y = tilted(2000, 8, noise=20.0)
    clf = SecondOrderPerceptron(form="dual").partial_fit(X, y, classes=[0, 1])
    state, m = clf._model.state, clf.n_updates_
    assert 500 < m <= state.members.shape[1] <= 1.6 * m + 64
    assert sum(part.nbytes for part in state if isinstance(part, np.ndarray)) < 8 * (1.6 * m + 64) * (1.6 * m + 64 + 60) / 2


# The form that is taken


@pytest.mark.parametrize("learner", [AROW(max_iter=2, tol=None), SecondOrderPerceptron(form="auto", max_iter=2, tol=None)])
def test_auto_takes_the_full_form_where_features_are_few(learner):
    X, y = tilted(30)
    auto, full = clone(learner).fit(X, y), clone(learner).set_params(form="full").fit(X, y)
    assert (auto.form, auto.form_, full.form_) == ("auto", "full", "full")
    assert np.array_equal(auto.coef_, full.coef_)
    wide = np.zeros((30, 101))
    wide[:, : X.shape[1]] = X
    assert clone(learner).fit(wide[:, :100], y).form_ == "full"
    assert clone(learner).fit(wide, y).form_ == "diagonal"
    assert clone(learner).fit(sp.csr_array(wide), y).form_ == "diagonal"
    assert clone(learner).set_params(max_bytes=100).fit(X, y).form_ == "diagonal"
    assert clone(learner)._form(822, 100) == "full"
    assert clone(learner)._form(823, 100) == "diagonal"  # over 64 MiB


def test_the_form_that_was_taken_stays(tmp_path):
    X, y = tilted(30)
    clf = AROW().partial_fit(X[:10], y[:10], classes=np.unique(y))
    clf.set_params(max_bytes=100).partial_fit(X[10:20], y[10:20])
    assert clf.form_ == "full"
    clf.save(tmp_path / "model")
    clf = rosenblatt.load(tmp_path / "model")
    assert (clf.form, clf.form_) == ("auto", "full")
    clf.partial_fit(X[20:], y[20:])
    whole = AROW(form="full").partial_fit(X, y, classes=np.unique(y))
    assert np.array_equal(clf.coef_, whole.coef_)
    assert clf.set_params(form="full").partial_fit(X, y).form_ == "full"
    with pytest.raises(ValueError, match="form has changed since"):
        clf.set_params(form="diagonal").partial_fit(X, y)
    clf.set_params(form="auto").save(tmp_path / "small", resume=False)
    assert rosenblatt.load(tmp_path / "small").form_ == "full"
    with pytest.raises(AttributeError, match="not fitted"):
        _ = AROW().form_


# Manners


def test_other_parameters_than_those_it_began_with_are_refused():
    X, y = tilted(30)
    clf = AROW(form="full", warm_start=True).fit(X, y)
    for change in ({"form": "dual"}, {"form": "diagonal"}, {"r": 2.0}):
        with pytest.raises(ValueError, match="has changed since"):
            clf.set_params(**change).fit(X, y)
        with pytest.raises(ValueError, match="has changed since"):
            clf.partial_fit(X, y)
        clf.set_params(form="full", r=1.0)
    clf.fit(X, y)
    with pytest.raises(ValueError, match=r"order must be one of 'shuffle', 'cyclic', 'random'; got 'most-violated'"):
        AROW(order="most-violated").fit(X, y)
    with pytest.raises(ValueError, match="a must be a number > 0; got 0"):
        SecondOrderPerceptron(a=0).fit(X, y)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_law(form, law):
    law(FORMS[form])


RATES = "a weight multiplies the step; two visits of a row are two steps, which is another thing"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": RATES for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [SecondOrderPerceptron(max_iter=20), SecondOrderPerceptron(form="dual", max_iter=5), AROW(max_iter=20)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
