"""The kernel perceptron is the textbook's, row by row, whatever the size of its blocks; it equals the linear one where both
exist; and it refuses what is no kernel."""

import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt import Perceptron
from rosenblatt.estimators.kernel import gram, kernel_model, perceptron_model
from rosenblatt.estimators.kernel.machine import KernelMachine, KernelPerceptron
from rosenblatt.estimators.parameters import parameter, with_parameters
from rosenblatt.rules import PA1
from rosenblatt.testing import laws
from rosenblatt.testing.reference import demands, predicted, width
from rosenblatt.testing.strategies import constants, margins, row_weights, samples, separated

small = settings(max_examples=25)


def naive(K, labels, classes, epochs, multiclass, tau, weight=None):
    """The kernel perceptron with every step in the open: the coefficients (columns, rows) after each example, and how many
    mistakes and updates there were. `tau` answers the step from a margin and the squared length of a direction."""
    coef = np.zeros((width(multiclass, classes), len(K)))
    path, mistakes, updates = [], 0, 0
    for order in epochs:
        for i in order:
            scores = coef @ K[:, i]
            mistakes += not predicted(multiclass, classes, labels[i], scores)
            coef = coef.copy()
            for demand in demands(multiclass, classes, labels[i], scores):
                moved = tau(demand.margin, len(demand.direction) * K[i, i]) * (1 if weight is None else weight[i])
                updates += moved != 0
                for column, sign in demand.direction.items():
                    coef[column, i] += sign * moved
            path.append(coef)
    return path, mistakes, updates


def kept(path, keep, K, multiclass):
    """The decision values of rows with these kernels (training rows, rows)."""
    scores = np.array([coef @ K for coef in path])  # (examples seen, columns, rows)
    if keep == "vote" and multiclass == "joint":
        scores = np.array([np.bincount(row, minlength=scores.shape[1]) for row in scores.argmax(axis=1).T]).T / len(path)
    elif keep == "vote":
        scores = np.where(scores >= 0, 1.0, -1.0).mean(axis=0)
    else:
        scores = scores[-1] if keep == "last" else scores.mean(axis=0)
    return scores[0] if multiclass == "binary" else scores.T


def quadratic(X, Z):
    return (1 + X @ Z.T) ** 2


@small
@given(
    sample=samples(),
    multiclass=st.sampled_from(["ovr", "joint"]),
    keep=st.sampled_from(["last", "average", "vote"]),
    margin=margins(),
    constant=constants(),
    block=st.integers(1, 7),
    tile=st.integers(1, 5),
    data=st.data(),
)
def test_equals_the_textbook(sample, multiclass, keep, margin, constant, block, tile, data):
    """A row of weight 0 is not there; of each class one row at least counts."""
    X, labels, classes = sample
    multiclass_now = "binary" if classes == 2 else multiclass
    weight = data.draw(st.one_of(st.none(), row_weights(len(X))))
    live = np.arange(len(X))
    if weight is not None:
        weight[np.unique(labels, return_index=True)[1]] = 2.0
        live = np.flatnonzero(weight)
    K = quadratic(X, X) + constant**2
    path, mistakes, updates = naive(
        K, labels, classes, [live] * 3, multiclass_now, lambda m, length: float(m <= margin), weight
    )
    params = {"fit_intercept": constant > 0, "intercept_scaling": constant or 1.0, "tol": None, "order": "cyclic"}
    clf = KernelPerceptron("poly", degree=2, gamma=1, margin=margin, keep=keep, multiclass=multiclass, max_iter=3, **params)
    with patch.object(kernel_model, "BLOCK", block), patch.object(gram, "TILE", tile):
        clf.fit(X, labels, sample_weight=weight)
        decision = clf.decision_function(X)
    if clf.stop_reason_ == "max_iter":
        assert (clf.n_mistakes_, clf.n_updates_, clf.n_seen_) == (mistakes, updates, 3 * len(live))
    else:
        path = path[: clf.n_seen_]
    last = np.zeros_like(path[-1])
    last[:, clf.support_] = clf.dual_coef_
    expected = np.mean(path, axis=0) if keep == "average" else path[-1]
    assert np.allclose(last, expected, rtol=0, atol=1e-12) if keep == "average" else np.array_equal(last, expected)
    assert len(set(clf.support_)) == len(clf.support_)
    assert np.array_equal(clf.support_vectors_, X[clf.support_])
    assert np.allclose(decision, kept(path, keep, K, multiclass_now), rtol=1e-12, atol=1e-9)
    norm = np.sqrt(sum(column @ K @ column for column in path[-1]))
    assert np.isclose(clf.history_[-1].norm, norm, rtol=1e-9, atol=1e-6)
    assert np.isclose(clf.radius_**2, K.diagonal()[live].max())


@with_parameters
class KernelPassiveAggressive(KernelMachine):
    """PA-I: its rule uses the lengths of rows."""

    max_iter: int = parameter(2)
    tol: float | None = parameter(None)
    order: str = parameter("cyclic")

    def _rule(self):
        return PA1(0.5)


def test_any_rule_learns_in_a_feature_space():
    X, y = make_moons(300, noise=0.2, random_state=0)
    clf = KernelPassiveAggressive(kernel=rbf_kernel).fit(X, y)
    K = rbf_kernel(X)

    def tau(m, length):
        return min(0.5, max(0.0, 1 - m) / length)

    path, mistakes, updates = naive(K, y, 2, [range(300)] * 2, "binary", tau)
    assert (clf.n_mistakes_, clf.n_updates_) == (mistakes, updates)
    assert np.allclose(clf.dual_coef_, path[-1][:, clf.support_])


@small
@given(
    sample=samples(),
    multiclass=st.sampled_from(["ovr", "joint"]),
    constant=constants(),
    margin=margins(),
)
def test_a_linear_kernel_is_the_linear_perceptron(sample, multiclass, constant, margin):
    X, labels, _ = sample
    params = {
        "fit_intercept": constant > 0,
        "intercept_scaling": constant or 1.0,
        "multiclass": multiclass,
        "margin": margin,
        "max_iter": 4,
        "tol": None,
    }
    primal = Perceptron(keep="average", **params).fit(X, labels)
    last, average = (KernelPerceptron("linear", keep=keep, **params).fit(X, labels) for keep in ("last", "average"))
    assert [epoch[:4] for epoch in last.history_] == [epoch[:4] for epoch in primal.history_]
    assert np.array_equal(last.dual_coef_ @ last.support_vectors_, primal.last_coef_)
    assert np.array_equal(last.intercept_, primal.last_intercept_)
    close = {"rtol": 1e-12, "atol": 1e-9}
    assert np.allclose(average.dual_coef_ @ average.support_vectors_, primal.coef_, **close)
    assert np.allclose(average.intercept_, primal.intercept_, **close)
    assert np.allclose(average.decision_function(X), primal.decision_function(X), **close)


# The quadratic map of the notes of Georgia Tech's CS 4540: (x₁², x₂², x₁x₂, x₁, x₂), and a constant for what is not on it.
GRID = np.array([(a, b) for a in range(-4, 5) for b in range(-4, 5)], dtype=np.float64)


def notes_map(X):
    return np.column_stack([X[:, 0] ** 2, X[:, 1] ** 2, X[:, 0] * X[:, 1], X[:, 0], X[:, 1]])


CURVES = {
    "the notes' x₁² + x₂² − 3x₁x₂": (GRID[:, 0] ** 2 + GRID[:, 1] ** 2 - 3 * GRID[:, 0] * GRID[:, 1], [1, 1, -3, 0, 0], 0),
    "outside a ball": (
        2 * ((GRID[:, 0] - 1) ** 2 + GRID[:, 1] ** 2) - 9, [2, 2, 0, -4, 0], -7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("curve", CURVES)
def test_a_curve_is_learned_as_a_plane_by_the_quadratic_map(curve):
    value, w, b = CURVES[curve]
    X, y = GRID[value != 0], np.where(value[value != 0] > 0, 1, -1)
    assert np.array_equal(np.sign(notes_map(X) @ w + b), y), "the map makes the curve a plane"
    linear = Perceptron(keep="last", tol=None, max_iter=10_000).fit(notes_map(X), y)
    assert linear.stop_reason_ == "converged"
    assert linear.score(notes_map(X), y) == 1.0
    mapped = KernelPerceptron(
        lambda X, Z: notes_map(X) @ notes_map(Z).T, fit_intercept=True, tol=None, max_iter=10_000
    ).fit(X, y)
    assert [epoch[:4] for epoch in mapped.history_] == [epoch[:4] for epoch in linear.history_]
    assert np.array_equal(mapped.dual_coef_ @ notes_map(mapped.support_vectors_), linear.coef_)
    assert np.array_equal(mapped.intercept_, linear.intercept_)
    assert KernelPerceptron("poly", degree=2, gamma=1, tol=None, max_iter=10_000).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("keep", ["last", "average"])
def test_a_polynomial_kernel_is_the_scaled_quadratic_map(keep):
    """(1 + x·z)² = ⟨φ(x), φ(z)⟩ where φ has x_i², √2·x_i·x_j, √2·x_i and 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = rng.integers(0, 2, 200)
    powers = PolynomialFeatures(2).fit(X)
    mapped = powers.transform(X) * np.where(powers.powers_.max(axis=1) == 2, 1, np.sqrt(2))
    mapped[:, 0] = 1
    assert np.allclose(mapped @ mapped.T, quadratic(X, X))
    params = {"fit_intercept": False, "keep": keep, "max_iter": 5, "tol": None}
    linear = Perceptron(**params).fit(mapped, y)
    ours = KernelPerceptron("poly", degree=2, gamma=1, **params).fit(X, y)
    assert [epoch[:4] for epoch in ours.history_] == [epoch[:4] for epoch in linear.history_]
    assert np.allclose(ours.decision_function(X), linear.decision_function(mapped))


@pytest.mark.parametrize("margin", [0.0, 2.0])
@given(found=separated())
@small
def test_updates_obey_the_bound(margin, found):
    """In the space of (1 + x·z)² a plane of the rows is a plane too: (x, 1)·u = φ(x)·(√½·u₁, …, √½·u_d, u_{d+1}, 0, …)."""
    X, labels, unit = found.X, found.labels, found.separator
    scores = np.hstack([X, np.full((len(X), 1), found.constant)]) @ unit
    separator = np.append(unit[:-1] / np.sqrt(2), unit[-1] * found.constant)
    gamma = np.abs(scores).min() / np.linalg.norm(separator)
    clf = KernelPerceptron("poly", degree=2, gamma=1, margin=margin, tol=None, max_iter=100_000).fit(X, labels)
    assert clf.stop_reason_ == "converged"
    assert np.isclose(clf.radius_, (1 + (X**2).sum(axis=1)).max())
    assert clf.n_updates_ <= clf.mistake_bound(clf.radius_, gamma) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_updates_obey_the_bound_in_a_space_without_end(seed):
    """A sum g of Gaussian bumps separates what lies on its two sides with margin min|g(x)|/‖g‖."""
    rng = np.random.default_rng(seed)
    centres, heights = rng.uniform(-3, 3, (6, 2)), rng.choice([-1.0, 1.0], 6)
    X = rng.uniform(-4, 4, (1000, 2))
    values = rbf_kernel(X, centres, gamma=0.5) @ heights
    X, values = X[np.abs(values) > 0.2], values[np.abs(values) > 0.2]
    norm = np.sqrt(heights @ rbf_kernel(centres, gamma=0.5) @ heights)
    clf = KernelPerceptron(gamma=0.5, tol=None).fit(X, values > 0)
    assert clf.stop_reason_ == "converged"
    assert clf.n_updates_ <= clf.mistake_bound(1.0, np.abs(values).min() / norm)


def digits(rows=700):
    X, y = load_digits(return_X_y=True)
    return X[:rows], y[:rows], X[rows : 2 * rows], y[rows : 2 * rows]


def test_votes_on_digits_are_those_of_the_textbook():
    """The experiment of Freund and Schapire in small: one-vs-rest, (1 + x·z)², two epochs. All numbers are whole."""
    X, y, X_test, _ = digits(300)
    path, mistakes, updates = naive(quadratic(X, X), y, 10, [range(300)] * 2, "ovr", lambda m, length: float(m <= 0))
    params = {"degree": 2, "gamma": 1, "order": "cyclic", "max_iter": 2, "tol": None}
    fitted = {keep: KernelPerceptron("poly", keep=keep, **params).fit(X, y) for keep in ("last", "average", "vote")}
    assert np.array_equal(fitted["vote"].last_dual_coef_, fitted["last"].dual_coef_)
    assert np.array_equal(fitted["vote"].average_dual_coef_, fitted["average"].dual_coef_)
    with pytest.raises(AttributeError, match="keep='last' keeps no average"):
        fitted["last"].average_dual_coef_  # noqa: B018
    for keep, clf in fitted.items():
        assert (clf.n_mistakes_, clf.n_updates_) == (mistakes, updates)
        assert np.array_equal(clf.support_[np.argsort(clf.support_)], np.flatnonzero(np.any(path, axis=(0, 1))))
        assert np.allclose(clf.decision_function(X_test), kept(path, keep, quadratic(X, X_test), "ovr"))


def test_kernels_in_every_layout_agree():
    X, y, X_test, _ = digits()
    X, X_test = X / 16, X_test / 16
    kernels = {
        "poly": {"degree": 5, "gamma": 0.5, "coef0": 2.0},
        "rbf": {"gamma": 0.1},
        "linear": {},
    }
    functions = {
        "poly": lambda X, Z: polynomial_kernel(X, Z, degree=5, gamma=0.5, coef0=2.0),
        "rbf": lambda X, Z: rbf_kernel(X, Z, gamma=0.1),
        "linear": lambda X, Z: X @ Z.T,
    }
    for name, params in kernels.items():
        known = {"max_iter": 2, "tol": None, "keep": "average"}
        ours = KernelPerceptron(name, **params, **known).fit(X, y)
        expected = ours.decision_function(X_test)
        function = functions[name]
        close = {"rtol": 1e-6, "atol": 1e-6 * np.abs(expected).max()}
        measured = KernelPerceptron(function, **known).fit(X, y)
        assert np.allclose(measured.decision_function(X_test), expected, **close)
        assert measured.n_updates_ == ours.n_updates_
        tables = KernelPerceptron("precomputed", **known).fit(function(X, X), y)
        assert np.allclose(tables.decision_function(function(X_test, X)), expected, **close)
        assert np.array_equal(tables.support_, ours.support_)
        for layout in (sp.csr_matrix, sp.csr_array):
            sparse = KernelPerceptron(name, **params, **known).fit(layout(X), y)
            assert sp.issparse(sparse.support_vectors_)
            assert np.array_equal(sparse.support_, ours.support_)
            assert np.allclose(sparse.decision_function(layout(X_test)), expected, **close)
        single = KernelPerceptron(name, **params, **known).fit(X.astype(np.float32), y)
        assert single.support_vectors_.dtype == np.float32
        assert np.mean(single.predict(X_test) == ours.predict(X_test)) > 0.99


def test_distances_far_from_the_origin_keep_their_digits_in_float32():
    X, y = make_moons(200, noise=0.05, random_state=0)
    near, far = (
        KernelPerceptron(gamma=2.0).fit(rows, y) for rows in (X, (np.round(X * 64) / 64 + 4096).astype(np.float32))
    )
    assert near.stop_reason_ == far.stop_reason_ == "converged"


def test_threads_leave_no_trace():
    X, y, X_test, _ = digits()
    runs = []
    for threads in (1, 2, 3):
        with patch.object(gram, "TILE", 64):
            clf = KernelPerceptron(gamma=0.001, n_jobs=threads, max_iter=2, tol=None, keep="average").fit(X, y)
            runs.append((clf.dual_coef_, clf.support_, clf.decision_function(X_test)))
    for run in runs[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(run, runs[0], strict=True))


def test_the_matrix_of_all_kernels_is_never_made():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 2))
    clf = KernelPerceptron(gamma=1.0, max_iter=1, tol=None)
    clf.fit(X[:50], X[:50, 0] > 0)
    tracemalloc.start()
    clf.fit(X, X[:, 0] > 0)
    clf.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000**2 * 8 / 20


def test_a_row_is_kept_once_however_often_it_is_mistaken():
    X, y, *_ = digits()
    clf = KernelPerceptron("linear", multiclass="joint", keep="vote", max_iter=5, tol=None).fit(X, y)
    assert clf.n_updates_ > len(clf.support_) == len(set(clf.support_))
    assert len(clf.support_vectors_) == len(clf.support_) == clf.dual_coef_.shape[1]
    assert len(clf._model.moves) == clf.n_updates_


def test_warm_start_goes_on():
    X, y, X_test, _ = digits()
    params = {"degree": 2, "gamma": 1, "order": "cyclic", "tol": None, "keep": "vote"}
    through = KernelPerceptron("poly", max_iter=2, **params).fit(X, y)
    halves = KernelPerceptron("poly", max_iter=1, warm_start=True, **params).fit(X, y).fit(X, y)
    assert np.array_equal(through.decision_function(X_test), halves.decision_function(X_test))
    assert set(halves.support_ % len(X)) == set(through.support_)


def test_rows_of_a_stream_are_counted_through():
    X, y, *_ = digits()
    whole = KernelPerceptron().partial_fit(X, y, classes=range(10))
    parts = KernelPerceptron()
    for rows, labels in zip(np.split(X, [3, 500]), np.split(y, [3, 500]), strict=True):
        parts.partial_fit(rows, labels, classes=range(10))
    assert np.array_equal(parts.support_, whole.support_)
    assert np.array_equal(parts.support_vectors_, X[parts.support_])


def test_a_grid_search_chooses_rows_and_columns_of_a_given_matrix():
    X, y, *_ = digits(200)
    search = GridSearchCV(KernelPerceptron("precomputed"), {"keep": ["last", "average"]}, cv=3)
    assert search.fit(quadratic(X, X), y).best_score_ > 0.8


WRONG = {
    "gamma": ({"gamma": 0.0}, "gamma must be a number > 0 or None; got 0.0"),
    "coef0": ({"kernel": "poly", "coef0": -1.0}, "coef0 must be a number ≥ 0; got -1.0"),
    "degree": ({"kernel": "poly", "degree": 1.5}, "degree must be a whole number ≥ 1; got 1.5"),
    "name": ({"kernel": "sigmoid"}, "kernel must be 'linear', 'poly', 'rbf', 'precomputed' or a function"),
    "order": ({"order": "random"}, "order must be one of 'shuffle', 'cyclic'"),
    "keep": ({"keep": "pocket"}, "keep must be one of 'last', 'average', 'vote'"),
    "multiclass": ({"multiclass": "ovo"}, "multiclass must be one of 'ovr', 'joint'"),
    "negative": ({"kernel": lambda X, Z: -X @ Z.T}, "a kernel must be positive"),
    "indefinite": ({"kernel": lambda X, Z: np.tanh(X @ Z.T - 1)}, "a kernel must be positive"),
    "one-sided": ({"kernel": lambda X, Z: X @ (Z * np.arange(1, 5) + 1).T}, "a kernel must be symmetric"),
    "shape": ({"kernel": lambda X, Z: X[:, 0]}, r"shape \(40, 40\) for these rows, and not \(40,\)"),
    "NaN": ({"kernel": lambda X, Z: np.full((len(X), len(Z)), np.nan)}, "is not a finite number"),
    "not square": ({"kernel": "precomputed"}, r"the square matrix .* got one of shape \(40, 4\)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_kernel_is_refused_and_nothing_changes(what):
    params, message = WRONG[what]
    X, y = laws.data(2)
    clf = KernelPerceptron().fit(X, y)
    before = dict(clf.__dict__)
    clf.set_params(**params)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y)
    assert clf.__dict__ == before | params


def test_a_kernel_that_looked_positive_is_caught_by_the_norm_of_its_weights():
    X, y = laws.data(2)
    with patch.object(gram, "SAMPLE", 1), pytest.raises(ValueError, match="the kernel is not positive"):
        KernelPerceptron(lambda X, Z: 1 - 4 * (X[:, :1] - Z[:, 0]) ** 2, max_iter=5, tol=None).fit(X, y)


def test_a_support_without_room_names_the_way_out():
    X, y = laws.data(2)
    with (
        patch.object(perceptron_model, "append_tiles", side_effect=MemoryError),
        pytest.raises(MemoryError, match=r"Forgetron, Projectron"),
    ):
        KernelPerceptron().fit(X, y)


def test_a_stream_that_fails_leaves_the_model():
    X, y, *_ = digits()
    calls = []

    def failing(X, Z):
        calls.append(len(Z))
        if len(calls) > 12:
            raise RuntimeError("no more")
        return X @ Z.T

    clf = KernelPerceptron(failing).partial_fit(X[:100], y[:100], classes=range(10))
    before, counts = clf.dual_coef_.copy(), (clf.n_mistakes_, clf.n_updates_, clf.n_seen_)
    with patch.object(kernel_model, "BLOCK", 32), pytest.raises(RuntimeError, match="no more"):
        clf.partial_fit(X[100:], y[100:])
    assert np.array_equal(clf.dual_coef_, before)
    assert (clf.n_mistakes_, clf.n_updates_, clf.n_seen_) == counts


def test_a_stream_keeps_to_its_kernel():
    X, y = laws.data(2)
    clf = KernelPerceptron(gamma=1.0).partial_fit(X, y, classes=[0, 1])
    for params in ({"gamma": 2.0}, {"kernel": "linear"}, {"keep": "vote"}, {"fit_intercept": True}):
        with pytest.raises(ValueError, match="has changed since this model began to learn"):
            KernelPerceptron(gamma=1.0).partial_fit(X, y, classes=[0, 1]).set_params(**params).partial_fit(X, y)
    clf.set_params(gamma=1.0).partial_fit(X, y)
    assert not hasattr(KernelPerceptron("precomputed"), "partial_fit")
    with pytest.raises(AttributeError, match="no rows to show"):
        KernelPerceptron("precomputed").fit(X @ X.T, y).support_vectors_  # noqa: B018


def test_overflow_names_the_row_and_what_to_do():
    X, y = laws.data(2)
    with pytest.raises(ValueError, match="overflowed at row"):
        KernelPerceptron("poly", degree=30, gamma=1).fit((X * 1000).astype(np.float32), y)


FORMS = {
    "rbf": KernelPerceptron(max_iter=6),
    "linear": KernelPerceptron("linear", fit_intercept=True, multiclass="joint", keep="average"),
    "poly": KernelPerceptron("poly", gamma=1, keep="vote", margin=1.0, class_weight="balanced", max_iter=4),
}


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_law(form, law):
    if law is laws.mistakes_obey_the_bound and form != "linear":
        pytest.skip("the law measures radius and margin on the rows; tests above do it in the feature space")
    law(FORMS[form])


WEIGHTS_ARE_STEPS = "a weight multiplies the step of an update; two visits of a row are two chances of a mistake"
LOCAL = "a narrow kernel without an intercept decides by the nearest mistakes, whatever the weights of the others"
NOT_POSITIVE = "what the check passes for a kernel matrix is not positive, and says so"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_STEPS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_STEPS,
    "check_class_weight_classifiers": LOCAL,
}
EXPECTED_OF_GIVEN = {
    "check_class_weight_classifiers": LOCAL,
    "check_estimators_dtypes": NOT_POSITIVE,
    "check_positive_only_tag_during_fit": NOT_POSITIVE,
}


@parametrize_with_checks(
    [KernelPerceptron(max_iter=20), KernelPerceptron("precomputed", max_iter=20)],
    expected_failed_checks=lambda estimator: EXPECTED if estimator.kernel == "rbf" else EXPECTED_OF_GIVEN,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.reproduce
@pytest.mark.parametrize(("degree", "epochs", "published"), [(2, 1, 2.79), (3, 1, 2.36), (4, 1, 2.18), (4, 4, 1.67)])
def test_mnist_as_freund_and_schapire(data_folder, degree, epochs, published):
    """The errors of voted perceptrons on MNIST are those of Freund and Schapire (1999), up to the order of rows."""
    with np.load(data_folder / "mnist.npz") as file:
        X, y, X_test, y_test = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    X, X_test = (rows.reshape(len(rows), -1).astype(np.float32) / 255 for rows in (X, X_test))
    order = np.random.default_rng(0).permutation(len(X))
    clf = KernelPerceptron("poly", degree=degree, gamma=1, order="cyclic", keep="vote", max_iter=epochs, tol=None)
    clf.fit(X[order], y[order])
    assert abs(100 * (1 - clf.score(X_test, y_test)) - published) <= 0.15
