"""Passive-aggressive, MIRA and uneven margins: equal to the reference and to scikit-learn, and within their bounds."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn import linear_model
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import rosenblatt
from rosenblatt import MIRA, PAUM, PassiveAggressiveClassifier, Perceptron
from rosenblatt.testing import laws, reference
from rosenblatt.testing.strategies import separated
from rosenblatt.theory import bounds


def blobs(classes, rows=80, features=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return rng.standard_normal((classes, features))[y] + rng.standard_normal((rows, features)), y


STEPS = {
    "PA": ({"C": np.inf}, lambda m, length, k, positive: max(0.0, 1 - m) / length),
    "PA-I": ({"C": 0.3}, lambda m, length, k, positive: min(0.3, max(0.0, 1 - m) / length)),
    "PA-II": ({"C": 0.3, "loss": "squared_hinge"}, lambda m, length, k, positive: max(0.0, 1 - m) / (length + 1 / 0.6)),
}


@pytest.mark.parametrize("multiclass", ["ovr", "joint", "ovo"])
@pytest.mark.parametrize("variant", STEPS)
def test_passive_aggressive_is_the_reference_run(variant, multiclass):
    params, step = STEPS[variant]
    X, y = blobs(3)
    ours = PassiveAggressiveClassifier(**params, multiclass=multiclass, shuffle=False, max_iter=3, tol=None, average=True)
    expected = reference.learn(X, y, 3, [range(len(X))] * 3, multiclass=multiclass, step=step)
    for rows in (X, sp.csr_matrix(X)) if multiclass == "joint" else (X,):  # test_kernels has all problems and layouts
        fitted = ours.fit(rows, y)
        assert np.allclose(fitted.last_coef_, expected.last[:, :-1], atol=1e-10)
        assert np.allclose(fitted.intercept_, expected.average[:, -1], atol=1e-10)
        assert (fitted.n_mistakes_, fitted.n_updates_) == (expected.mistakes, expected.updates)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 4])
def test_same_weights_as_scikit_learns_passive_aggressive(loss, classes):
    """Where both know the same ‖x‖²: without an intercept, or with that of a constant feature, which theirs has to be
    given as a column."""
    X, y = blobs(classes, rows=300)
    common = {"C": 0.5, "loss": loss, "max_iter": 4, "tol": None, "shuffle": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it leaves scikit-learn in 1.10
        if not hasattr(linear_model, "PassiveAggressiveClassifier"):
            pytest.skip("scikit-learn has no PassiveAggressiveClassifier any more")
        theirs = linear_model.PassiveAggressiveClassifier(fit_intercept=False, **common).fit(X, y)
        padded = linear_model.PassiveAggressiveClassifier(fit_intercept=False, **common).fit(reference.padded(X, 1.0), y)
    ours = PassiveAggressiveClassifier(fit_intercept=False, **common).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    with_intercept = PassiveAggressiveClassifier(**common).fit(X, y)
    assert np.allclose(np.column_stack([with_intercept.coef_, with_intercept.intercept_]), padded.coef_)


# The parameters of scikit-learn's class, which leaves it in version 1.10.
THEIRS = {
    "C", "average", "class_weight", "early_stopping", "fit_intercept", "loss", "max_iter", "n_iter_no_change", "n_jobs",
    "random_state", "shuffle", "tol", "validation_fraction", "verbose", "warm_start",
}  # fmt: skip


def test_every_parameter_of_scikit_learns_class_is_taken():
    assert THEIRS - set(PassiveAggressiveClassifier().get_params()) == set()
    if hasattr(linear_model, "PassiveAggressiveClassifier"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            assert set(linear_model.PassiveAggressiveClassifier().get_params()) == THEIRS


def test_a_passive_aggressive_step_ends_at_its_margin():
    X, y = blobs(2)
    clf = PassiveAggressiveClassifier(C=np.inf).partial_fit(X[:10], y[:10], classes=[0, 1])
    for i in range(10, 80):
        clf.partial_fit(X[i : i + 1], y[i : i + 1])
        assert (2 * y[i] - 1) * clf.decision_function(X[i : i + 1])[0] >= 1 - 1e-12
        updates = clf.n_updates_
        clf.partial_fit(X[i : i + 1], y[i : i + 1])
        assert clf.n_updates_ == updates, "rounding is no reason to move again"


def test_rows_of_length_zero_are_passed_over():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), [1, 1, 0]
    for clf in (PassiveAggressiveClassifier(fit_intercept=False), MIRA(fit_intercept=False)):
        assert np.isfinite(clf.fit(X, y).coef_).all()
        assert clf.predict(X[1:]).tolist() == [1, 0]


@given(separated(), st.sampled_from([np.inf, 1.0, 0.01]), st.sampled_from(["hinge", "squared_hinge"]))
def test_wrong_predictions_of_passive_aggressive_stay_within_the_bound(sample, C, loss):
    if np.isinf(C) and loss == "squared_hinge":
        C = 100.0
    clf = PassiveAggressiveClassifier(C=C, loss=loss, fit_intercept=sample.constant > 0, tol=None, max_iter=30,
                                      intercept_scaling=sample.constant or 1.0).fit(sample.X, sample.labels)  # fmt: skip
    assert not clf.bounds_updates
    assert clf.n_mistakes_ <= clf.mistake_bound(sample.radius, sample.margin) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_losses_of_passive_aggressive_obey_the_theorems_without_separability(seed):
    """For every u: PA-I mistakes ≤ max(R², 1/C)(‖u‖² + 2CΣℓ*), PA-II Σℓ² ≤ (R² + 1/(2C))(‖u‖² + 2CΣℓ*²), in one pass."""
    X, y = blobs(2, seed=seed)
    rows = np.where(y == 1, 1.0, -1.0)[:, None] * X
    u = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    hinge, radius, C = np.maximum(0, 1 - rows @ u), np.linalg.norm(rows, axis=1).max(), 0.2
    w, losses = np.zeros(X.shape[1]), []
    clf = PassiveAggressiveClassifier(C=C, loss="squared_hinge", fit_intercept=False)
    for i, row in enumerate(rows):
        losses.append(max(0.0, 1 - row @ w))
        w = clf.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1]).coef_[0]
    assert np.square(losses).sum() <= (radius**2 + 1 / (2 * C)) * (u @ u + 2 * C * np.square(hinge).sum())
    first = PassiveAggressiveClassifier(C=C, fit_intercept=False).partial_fit(X, y, classes=[0, 1])
    assert first.n_mistakes_ <= max(radius**2, 1 / C) * (u @ u + 2 * C * hinge.sum())


@settings(max_examples=15)
@given(separated(most_rows=10))
def test_squared_losses_of_pa_without_a_cap_sum_to_at_most_r_over_gamma_squared(sample):
    """Σ ℓ² ≤ R²‖u‖² for every u with margins ≥ 1, over as many passes as one likes; u = the unit separator / γ."""
    clf = PassiveAggressiveClassifier(C=np.inf, fit_intercept=sample.constant > 0, intercept_scaling=sample.constant or 1.0)
    total = 0.0
    for _ in range(4):
        for x, label in zip(sample.X, sample.labels, strict=True):
            score = clf.decision_function([x])[0] if hasattr(clf, "classes_") else 0.0
            total += max(0.0, 1 - (score if label == 1 else -score)) ** 2
            clf.partial_fit([x], [label], classes=[0, 1])
    assert total <= (sample.radius / sample.margin) ** 2 * (1 + 1e-9)


# MIRA


def shares(scores, label, length, margin):
    """The τ of the definition, by solving its one equation for θ: τ_r = min([r = label], θ − D_r) has the sum 0."""
    own = np.eye(len(scores))[label]
    heights = (scores - margin * own) / length

    def total(theta):
        return np.minimum(own, theta - heights).sum()

    theta = brentq(total, heights.min() - 2, heights.max() + 2, xtol=1e-15)
    return np.minimum(own, theta - heights)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_mira_takes_the_shortest_new_weights(margin):
    X, y = blobs(4)
    w, updates = np.zeros((4, X.shape[1] + 1)), 0
    for x, label in zip(np.hstack([X, np.ones((len(X), 1))]), y, strict=True):
        scores = w @ x
        tau = shares(scores, label, x @ x, margin)
        if margin == 0 and not w.any():
            rival = 0 if label else 1
            tau = np.eye(4)[label] - np.eye(4)[rival]
        assert tau.sum() == pytest.approx(0, abs=1e-9)
        if np.abs(tau).max() > 1e-9:
            w, updates = w + np.outer(tau, x), updates + 1
    for rows in (X, sp.csr_matrix(X)):
        clf = MIRA(margin=margin, keep="last").partial_fit(rows, y, classes=range(4))
        assert np.allclose(np.column_stack([clf.coef_, clf.intercept_]), w, atol=1e-8)
        assert clf.n_updates_ == updates


corners = st.lists(st.sampled_from([1.0, -1.0]), min_size=3, max_size=3)


@given(st.lists(st.tuples(corners, st.integers(0, 1)), min_size=1, max_size=20), st.sampled_from([0.0, 0.5, 2.0]))
def test_mira_of_two_classes_is_the_reference_run_and_its_weights_do_not_grow(drawn, margin):
    """With the constant feature, all rows have the squared length 4: each step is exact, and margins of 0 are many."""

    def step(m, length, k, positive):
        first = k == 1 and m == margin == 0
        return 1.0 if first else min(1.0, max(0.0, (margin - m) / length))

    X, y = np.array([x for x, _ in drawn]), np.array([label for _, label in drawn])
    expected = reference.learn(X, y, 2, [range(len(X))], multiclass="binary", step=step)
    clf, path = MIRA(margin=margin, keep="last"), []
    for i in range(len(X)):
        clf.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        path.append(np.column_stack([clf.coef_, clf.intercept_]))
    assert np.array_equal(path, expected.path)
    assert (clf.n_mistakes_, clf.n_updates_) == (expected.mistakes, expected.updates)
    if margin == 0:
        assert (np.diff(np.linalg.norm(path, axis=(1, 2))) <= 1e-12).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_mira_without_a_margin_moves_at_a_tie_only_from_weights_of_zero(classes):
    """Rows at right angles: the first one moves the weights, and the others are ties with weights that are none."""
    X, y = np.eye(6), np.arange(6) % classes
    clf = MIRA(margin=0, keep="last", fit_intercept=False).partial_fit(X, y, classes=range(classes))
    assert (clf.n_mistakes_, clf.n_updates_) == (6, 1)
    assert np.abs(clf.coef_).sum(axis=0).tolist() == [1.0 if classes == 2 else 2.0, 0, 0, 0, 0, 0]


@given(separated(), st.sampled_from([0.5, 1.0, 30.0]))
def test_wrong_predictions_of_mira_stay_within_the_bound(sample, margin):
    clf = MIRA(margin=margin, fit_intercept=sample.constant > 0, intercept_scaling=sample.constant or 1.0,
               tol=None, max_iter=30).fit(sample.X, sample.labels)  # fmt: skip
    assert clf.n_mistakes_ <= clf.mistake_bound(sample.radius, sample.margin) * (1 + 1e-9)


@given(separated())
def test_steps_of_mira_without_a_margin_sum_to_at_most_r_over_gamma(sample):
    steps = []

    def step(m, length, k, positive):
        steps.append(1.0 if k == 1 else min(1.0, max(0.0, -m / length)) if length else 0.0)
        return steps[-1]

    reference.learn(sample.X, sample.labels, 2, [range(len(sample.X))] * 10, multiclass="binary", step=step,
                    constant=sample.constant)  # fmt: skip
    assert sum(steps) <= sample.radius / sample.margin * (1 + 1e-9)


def test_mira_with_a_margin_of_one_is_pa_with_a_cap_of_one():
    X, y = blobs(2)
    mira = MIRA(margin=1.0, keep="last", order="cyclic", max_iter=4, tol=None).fit(X, y)
    pa = PassiveAggressiveClassifier(C=1.0, shuffle=False, max_iter=4, tol=None).fit(X, y)
    assert np.allclose(mira.coef_, pa.coef_)


# Uneven margins


def test_even_margins_are_the_perceptron():
    X, y = blobs(3)
    even = PAUM(positive_margin=0.5, negative_margin=0.5, order="cyclic", max_iter=5, tol=None).fit(X, y)
    plain = Perceptron(margin=0.5, multiclass="ovr", order="cyclic", max_iter=5, tol=None).fit(X, y)
    assert np.array_equal(even.coef_, plain.coef_)
    assert even.n_updates_ == plain.n_updates_


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_uneven_margins_are_the_reference_run(multiclass):
    X, y = laws.data(3)
    settings = {"keep": "last", "multiclass": multiclass, "order": "cyclic", "max_iter": 3, "tol": None}
    clf = PAUM(positive_margin=3, negative_margin=-1, eta0=0.5, **settings)

    def step(m, length, k, positive):
        return 0.5 if m <= (3 if positive else -1) else 0.0

    expected = reference.learn(X, y, 3, [range(len(X))] * 3, multiclass=multiclass, step=step)
    assert np.array_equal(clf.fit(X, y).coef_, expected.last[:, :-1])
    assert clf.n_updates_ == expected.updates


@given(separated(), st.sampled_from([(5.0, 0.0), (0.0, 5.0), (2.0, -1.0)]))
def test_uneven_margins_stay_within_the_bound(sample, margins):
    clf = PAUM(positive_margin=margins[0], negative_margin=margins[1], fit_intercept=sample.constant > 0,
               intercept_scaling=sample.constant or 1.0, tol=None, max_iter=100_000)  # fmt: skip
    clf.fit(sample.X, sample.labels)
    assert clf.n_updates_ <= (sample.radius**2 + 2 * max(margins)) / sample.margin**2 * (1 + 1e-9)
    assert clf.stop_reason_ == "converged"


def test_a_larger_positive_margin_finds_more_of_a_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.05).astype(int)
    X = rng.standard_normal((600, 3)) + 1.2 * y[:, None]
    found = [PAUM(positive_margin=tau, keep="average").fit(X, y).predict(X)[y == 1].mean() for tau in (0, 20)]
    assert found[1] > found[0] + 0.1


LEARNERS = [
    PassiveAggressiveClassifier(max_iter=20),
    MIRA(max_iter=20),
    PAUM(max_iter=20),
]
RATES = "a weight multiplies the step; two visits of a row are two steps, which is another thing"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": RATES for kind in ("dense", "sparse")}


@parametrize_with_checks(LEARNERS, expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_law(learner, law):
    law(learner)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (PassiveAggressiveClassifier(C=0), "C must be a number > 0; got 0"),
        (PassiveAggressiveClassifier(loss="log"), "loss must be one of 'hinge', 'squared_hinge'; got 'log'"),
        (PassiveAggressiveClassifier(average=7), "average must be True or False; got 7"),
        (MIRA(margin=-1), "margin must be a number ≥ 0; got -1"),
        (PAUM(multiclass="joint"), "multiclass must be one of 'ovr', 'ovo'; got 'joint'"),
    ],
)
def test_what_is_not_allowed_is_refused(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit([[1.0], [2.0]], [0, 1])


MANY_CLASSES = {
    "joint": rosenblatt.Perceptron(),
    "ovr": rosenblatt.Perceptron(multiclass="ovr"),
    "ovo": rosenblatt.Perceptron(multiclass="ovo"),
    "PA joint": rosenblatt.PassiveAggressiveClassifier(multiclass="joint"),
    "PA": rosenblatt.PassiveAggressiveClassifier(),
    "MIRA": rosenblatt.MIRA(),
    "PAUM": rosenblatt.PAUM(),
    "kernel joint": rosenblatt.KernelPerceptron("linear", multiclass="joint"),
    "kernel": rosenblatt.KernelPerceptron("linear"),
    "ALMA": rosenblatt.ALMA(),
    "second order": rosenblatt.SecondOrderPerceptron(),
}


@pytest.mark.parametrize("name", MANY_CLASSES)
def test_mistakes_of_many_classes_obey_the_bound(name):
    """Of unit vectors in 3 classes, each class has a unit vector of margin 1/√30 against the rest, and centred indicators
    of Frobenius norm 1 let each class lead by 1/√20."""
    X, y = np.eye(30), np.arange(30) % 3
    shuffled = "shuffle" in MANY_CLASSES[name].get_params()
    order = {"shuffle": False} if shuffled else {"order": "cyclic"}
    learner = clone(MANY_CLASSES[name]).set_params(fit_intercept=False, tol=None, max_iter=100, **order)
    two = learner.mistake_bound(1.0, 0.5)
    learner.fit(X, y)
    bound = learner.mistake_bound(1.0, 1 / np.sqrt(20 if "joint" in name else 30))
    assert 30 <= learner.n_mistakes_ <= bound
    if name == "joint":
        assert bound == pytest.approx(bounds.multiclass(1.0, 1 / np.sqrt(20)))
    assert learner.mistake_bound(1.0, 0.5, classes=2) <= two
    assert learner.mistake_bound(1.0, 0.5, classes=3) == learner.mistake_bound(1.0, 0.5) > two or two == np.inf
