"""Each learner on a budget does, row by row, what its paper says, never holds a row too many, and obeys its theorem."""

from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt.estimators.kernel import kernel_model
from rosenblatt.estimators.kernel.budget import (
    BudgetPerceptron,
    Forgetron,
    Projectron,
    ProjectronPlusPlus,
    RandomBudgetPerceptron,
    Stoptron,
)
from rosenblatt.estimators.kernel.budget_model import BudgetModel
from rosenblatt.estimators.kernel.machine import KernelPerceptron
from rosenblatt.testing import laws
from rosenblatt.theory import bounds

ALL = [Stoptron, RandomBudgetPerceptron, BudgetPerceptron, Forgetron, Projectron, ProjectronPlusPlus]


# The papers, in plain numpy on the matrix of all kernels: each yields, for every row in turn, the rows held, oldest first,
# and their coefficients.


def score(K, S, a, i):
    return sum(c * K[s, i] for s, c in zip(S, a, strict=True))


def stoptron(K, y, budget):
    S, a = [], []
    for i in range(len(y)):
        if y[i] * score(K, S, a, i) <= 0 and len(S) < budget:
            S, a = [*S, i], [*a, y[i]]
        yield S, a


def random_budget(K, y, budget, seed):
    S, a = [], []
    rng = np.random.Generator(np.random.PCG64([seed, 0]))
    for i in range(len(y)):
        if y[i] * score(K, S, a, i) <= 0:
            if len(S) == budget:
                gone = int(rng.random() * budget)
                S, a = S[:gone] + S[gone + 1 :], a[:gone] + a[gone + 1 :]
            S, a = [*S, i], [*a, y[i]]
        yield S, a


def safest(K, y, budget):
    S, a = [], []
    for i in range(len(y)):
        if y[i] * score(K, S, a, i) <= 0:
            S, a = [*S, i], [*a, y[i]]
            if len(S) > budget:
                margins = [y[s] * (score(K, S, a, s) - c * K[s, s]) for s, c in zip(S, a, strict=True)]
                gone = int(np.argmax(margins))
                S, a = S[:gone] + S[gone + 1 :], a[:gone] + a[gone + 1 :]
        yield S, a


def forgetron(K, y, budget, schedule, record=None):
    S, a, Q, M = [], [], 0.0, 0
    U = np.sqrt((budget + 1) / np.log(budget + 1)) / 4
    for i in range(len(y)):
        if y[i] * score(K, S, a, i) <= 0:
            S, a, M = [*S, i], [*a, y[i]], M + 1
            if len(S) > budget:
                r, mu, delta = S[0], y[S[0]] * score(K, S, a, S[0]), abs(a[0])

                def damage(phi, mu=mu, delta=delta):
                    return (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)

                if schedule == "self-tuned":
                    roots = np.roots([delta**2 - 2 * delta * mu, 2 * delta, Q - 15 * M / 32])
                    tries = [1.0, *(root.real for root in roots if abs(root.imag) < 1e-12 and 0 < root.real < 1)]
                    phi = max(phi for phi in tries if Q + damage(phi) <= 15 * M / 32 + 1e-9)
                else:
                    norm = np.sqrt(np.array(a) @ K[np.ix_(S, S)] @ np.array(a))
                    phi = min((budget + 1) ** (-1 / (2 * (budget + 1))), U / norm)
                Q += damage(phi)
                assert r == S[0]
                S, a = S[1:], [phi * c for c in a[1:]]
            if record is not None:
                record.append((Q, M))
        yield S, a


def projectron(K, y, eta, budget=np.inf, aggressive=False):
    S, a = [], np.zeros(0)
    for i in range(len(y)):
        m = y[i] * (K[i, S] @ a)
        if m <= 0 or (aggressive and m < 1):
            k = K[S, i]
            d = np.linalg.solve(K[np.ix_(S, S)], k) if S else np.zeros(0)
            rest = max(K[i, i] - k @ d, 0)
            if m > 0:
                p = K[i, i] - rest
                gain = 1 - m - np.sqrt(rest) / eta
                if gain > 0:
                    a = a + y[i] * min(1, (1 - m) / p, 2 * gain / p) * d
            elif np.sqrt(rest) <= eta or len(S) >= budget:
                a = a + y[i] * d
            else:
                S, a = [*S, i], np.append(a, y[i])
        yield S, a


def noisy(rows=160, seed=0):
    X, y = make_moons(rows, noise=0.4, random_state=seed)
    return X, y, rbf_kernel(X, gamma=2.0)


CASES = {
    "Stoptron": (Stoptron(gamma=2.0, budget=9), lambda K, y, seed: stoptron(K, y, 9)),
    "random": (RandomBudgetPerceptron(gamma=2.0, budget=9), lambda K, y, seed: random_budget(K, y, 9, seed)),
    "safest": (BudgetPerceptron(gamma=2.0, budget=9), lambda K, y, seed: safest(K, y, 9)),
    "Forgetron": (Forgetron(gamma=2.0, budget=9), lambda K, y, seed: forgetron(K, y, 9, "self-tuned")),
    "Forgetron of one": (Forgetron(gamma=2.0, budget=1), lambda K, y, seed: forgetron(K, y, 1, "self-tuned")),
    "fixed": (Forgetron(gamma=2.0, budget=9, schedule="fixed"), lambda K, y, seed: forgetron(K, y, 9, "fixed")),
    "Projectron": (Projectron(gamma=2.0, eta=0.3), lambda K, y, seed: projectron(K, y, 0.3)),
    "full": (Projectron(gamma=2.0, eta=0.1, budget=9), lambda K, y, seed: projectron(K, y, 0.1, 9)),
    "Projectron++": (ProjectronPlusPlus(gamma=2.0, eta=0.3), lambda K, y, seed: projectron(K, y, 0.3, aggressive=True)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_step_is_the_papers(case):
    estimator, reference = CASES[case]
    X, y, K = noisy()
    signs = np.where(y == 1, 1.0, -1.0)
    clf = estimator.partial_fit(X[:1], y[:1], classes=[0, 1])
    steps = list(reference(K, signs, clf._model.seed))
    limit = np.inf if estimator.budget is None else estimator.budget
    for i, (S, a) in enumerate(steps):
        if i > 0:
            clf.partial_fit(X[i : i + 1], y[i : i + 1])
        held = clf._model.held[0]
        assert held.numbers.tolist() == S, f"after row {i}"
        assert np.allclose(held.coef, a, rtol=1e-7, atol=1e-9), f"after row {i}"
        assert clf.n_support_[0] == len(S) <= limit
        if hasattr(clf, "highest_damage_"):
            assert clf.highest_damage_[0] <= 15 / 32 + 1e-12 or estimator.schedule == "fixed"
    assert clf.n_updates_ > clf.n_support_[0] or case == "Stoptron", "there was no room at some point"
    for cuts in ([], [70], [40, 41, 120]):
        with patch.object(kernel_model, "BLOCK", 33):
            whole = type(estimator)(**estimator.get_params())
            for rows, labels in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
                whole.partial_fit(rows, labels, classes=[0, 1])
        held = whole._model.held[0]
        assert held.numbers.tolist() == S
        assert np.allclose(held.coef, a, rtol=1e-7, atol=1e-9)
        assert np.allclose(whole.decision_function(X), K[:, S] @ np.array(a), rtol=1e-7, atol=1e-9)
        assert (whole.n_mistakes_, whole.n_updates_) == (clf.n_mistakes_, clf.n_updates_)


@pytest.mark.parametrize("learner", [Stoptron, RandomBudgetPerceptron, BudgetPerceptron])
def test_on_whole_numbers_every_step_is_exact(learner):
    X, y = laws.data(2, rows=120)
    K, signs = X @ X.T, np.where(y == 1, 1.0, -1.0)
    clf = learner("linear", budget=6, normalize=False).partial_fit(X, y, classes=[0, 1])
    papers = {Stoptron: stoptron, BudgetPerceptron: safest, RandomBudgetPerceptron: random_budget}
    seed = (clf._model.seed,) if learner is RandomBudgetPerceptron else ()
    S, a = list(papers[learner](K, signs, 6, *seed))[-1]
    assert clf._model.held[0].numbers.tolist() == S
    assert clf._model.held[0].coef.tolist() == a
    assert np.array_equal(clf.decision_function(X), K[:, S] @ a)


@pytest.mark.parametrize("learner", ALL)
def test_many_classes_are_as_many_learners(learner):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400] % 4
    params = {"gamma": 0.001, "budget": 15}
    many = learner(**params).partial_fit(X, y, classes=range(4))
    assert many.n_support_.max() <= 15
    alone = []
    for k in range(4):
        if learner is RandomBudgetPerceptron:  # the sequence of chance is that of the weight vector
            with patch.object(BudgetModel, "_random_numbers", _random_numbers_of(k)):
                one = learner(**params).partial_fit(X, y == k, classes=[False, True])
        else:
            one = learner(**params).partial_fit(X, y == k, classes=[False, True])
        assert np.array_equal(one._model.held[0].numbers, many._model.held[k].numbers)
        assert np.array_equal(one._model.held[0].coef, many._model.held[k].coef)
        alone.append(one.decision_function(X))
    assert np.allclose(many.decision_function(X), np.column_stack(alone), rtol=1e-9, atol=1e-12)
    assert np.array_equal(many.support_, np.unique(np.concatenate([held.numbers for held in many._model.held])))
    assert np.array_equal(many.support_vectors_, X[many.support_])


def _random_numbers_of(vector):
    plain = BudgetModel._random_numbers
    return lambda self, _, drawn, wanted: plain(self, vector, drawn, wanted)


def test_what_is_forgotten_is_drawn_evenly():
    X, y, _ = noisy(4000)
    clf = RandomBudgetPerceptron(gamma=50.0, budget=10)
    gone = []
    for seed in range(4):
        model = clf.set_params(random_state=seed).fit(X[:10], y[:10])._model
        gone += (model._random_numbers(0, 0, 500) * 10).astype(int).tolist()
        assert np.array_equal(model._random_numbers(0, 7, 5), model._random_numbers(0, 0, 12)[7:])
        assert not np.array_equal(model._random_numbers(0, 0, 5), model._random_numbers(1, 0, 5))
    assert np.bincount(gone, minlength=10).min() > 150


def test_room_for_all_is_the_kernel_perceptron():
    X, y, _ = noisy()
    plain = KernelPerceptron(gamma=2.0).partial_fit(X, y, classes=[0, 1])
    for learner in (Stoptron, RandomBudgetPerceptron, BudgetPerceptron, Forgetron):
        clf = learner(gamma=2.0, budget=len(X)).partial_fit(X, y, classes=[0, 1])
        assert np.array_equal(clf.support_, plain.support_)
        assert np.array_equal(clf.dual_coef_, plain.dual_coef_)
        assert (clf.n_mistakes_, clf.n_updates_) == (plain.n_mistakes_, plain.n_updates_)


def test_a_projectron_without_projections_is_the_kernel_perceptron():
    """Rows that are met again are in the span of those held: they are projected, and nothing is lost."""
    X, y, _ = noisy()
    params = {"gamma": 20.0, "max_iter": 4, "tol": None}
    plain, ours = KernelPerceptron(**params).fit(X, y), Projectron(eta=0, **params).fit(X, y)
    assert [epoch[:4] for epoch in ours.history_] == [epoch[:4] for epoch in plain.history_]
    assert np.allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-4)
    assert np.allclose([epoch.norm for epoch in ours.history_], [epoch.norm for epoch in plain.history_], rtol=1e-4)
    assert len(ours.support_) == len(plain.support_)


def test_a_stoptron_freezes_when_it_is_full():
    X, y, _ = noisy()
    clf = Stoptron(gamma=2.0, budget=5).fit(X, y)
    assert clf.n_support_.tolist() == [5]
    assert clf.n_updates_ == 5
    before = clf.dual_coef_.copy()
    assert np.array_equal(clf.partial_fit(X, y).dual_coef_, before)
    assert clf.n_updates_ == 5 < clf.n_mistakes_


def competitors(X, y, longest):
    """Functions g of the feature space with ‖g‖ ≤ longest, as (‖g‖, y·g(x) of every row): averaged perceptrons that have
    seen all rows, at several lengths."""
    K, signs = rbf_kernel(X, gamma=1.0), np.where(y == 1, 1.0, -1.0)
    for epochs in (1, 5):
        seen = KernelPerceptron(gamma=1.0, keep="average", max_iter=epochs, tol=None).fit(X, y)
        a = np.zeros(len(X))
        a[seen.support_] = seen.dual_coef_[0]
        for norm in (longest, longest / 2, longest / 10):
            b = a * norm / np.sqrt(a @ K @ a)
            yield norm, signs * (K @ b)


def stream(seed, noise):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (1500, 2))
    y = (np.sin(2 * X[:, 0]) > X[:, 1]) ^ (rng.random(len(X)) < noise)
    return X, y.astype(int)


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("schedule", ["self-tuned", "fixed"])
def test_the_forgetron_obeys_its_theorem(schedule, noise):
    budget = 83
    for seed in range(3):
        X, y = stream(seed, noise)
        clf = Forgetron(gamma=1.0, budget=budget, schedule=schedule).partial_fit(X, y, classes=[0, 1])
        assert clf.n_mistakes_ > budget or noise == 0, "rows were forgotten"
        assert clf.highest_damage_[0] <= 15 / 32 + 1e-12
        for norm, margins in competitors(X, y, bounds.forgetron_reach(budget)):
            bound = bounds.forgetron(budget, norm * (1 - 1e-12), np.maximum(0, 1 - margins).sum())
            assert clf.n_mistakes_ <= bound < np.inf


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("eta", [0.05, 0.3])
def test_projectrons_obey_their_theorems(eta, noise):
    for seed in range(3):
        X, y = stream(seed, noise)
        plain = Projectron(gamma=1.0, eta=eta).partial_fit(X, y, classes=[0, 1])
        more = ProjectronPlusPlus(gamma=1.0, eta=eta).partial_fit(X, y, classes=[0, 1])
        for norm, margins in competitors(X, y, 0.99 / eta):
            losses = np.maximum(0, 1 - margins).sum()
            bound = bounds.projectron(norm, losses, eta)
            assert plain.n_mistakes_ <= bound
            assert np.isclose(bound * (1 - eta * norm), losses + norm * np.sqrt(bound))
            assert more.n_mistakes_ <= bounds.projectron_plus(norm, losses, eta)


def test_rows_of_a_bounded_region_need_only_so_many():
    """Rows farther than η from the span of those before them are farther than η from each other, and only so many fit."""
    X, y = stream(0, 0.3)
    half = Projectron(gamma=1.0, eta=0.3).partial_fit(X[:750], y[:750], classes=[0, 1])
    sizes = [half.n_support_[0], half.partial_fit(X[750:], y[750:]).n_support_[0]]
    plain = KernelPerceptron(gamma=1.0).partial_fit(X, y, classes=[0, 1])
    assert sizes[1] <= sizes[0] + 3 < 60 < 300 < len(plain.support_)


def test_aggression_makes_fewer_mistakes():
    X, y = stream(0, 0.0)
    plain, more = (learner(gamma=1.0).partial_fit(X, y, classes=[0, 1]) for learner in (Projectron, ProjectronPlusPlus))
    assert more.n_mistakes_ < plain.n_mistakes_
    assert more.n_updates_ > more.n_mistakes_


@pytest.mark.parametrize("learner", ALL)
def test_layouts_and_given_matrices_agree(learner):
    X, y, K = noisy()
    params = {"gamma": 2.0, "budget": 12, "max_iter": 3, "tol": None}
    ours = learner(**params).fit(X, y)
    for other, rows, test in (
        (learner(lambda X, Z: rbf_kernel(X, Z, gamma=2.0), **params), X, X),
        (learner("precomputed", **params), K, K),
        (learner(**params), sp.csr_array(X), sp.csr_array(X)),
    ):
        other.fit(rows, y)
        assert np.array_equal(other.support_, ours.support_)
        assert np.allclose(other.decision_function(test), ours.decision_function(X))
        assert np.allclose([epoch.norm for epoch in other.history_], [epoch.norm for epoch in ours.history_])


def test_normalised_rows_have_length_one():
    X, y, _ = noisy()
    X[0] = 0  # of length 0, and staying so
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    ours = Forgetron("linear", budget=9).partial_fit(X, y, classes=[0, 1])
    scaled = Forgetron("linear", budget=9, normalize=False).partial_fit(unit, y, classes=[0, 1])
    assert np.array_equal(ours.support_, scaled.support_)
    assert np.allclose(ours.decision_function(unit), scaled.decision_function(unit))
    with pytest.raises(ValueError, match=r"K\(x, x\) must be at most 1 .* normalize=True"):
        Forgetron("linear", normalize=False).fit(10 * X, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Stoptron(budget=0), "budget must be a whole number ≥ 1; got 0"),
        (Stoptron(budget=None), "budget must be a whole number ≥ 1; got None"),
        (Projectron(eta=1.0), "eta must be a number ≥ 0 and < 1; got 1.0"),
        (Forgetron(schedule="greedy"), "schedule must be one of 'self-tuned', 'fixed'"),
        (Forgetron(normalize="yes"), "normalize must be True or False"),
        (Forgetron(lambda X, Z: -(X @ Z.T)), "a kernel must be positive"),
    ],
)
def test_what_cannot_be_done_is_refused(estimator, message):
    X, y, _ = noisy()
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)
    assert not hasattr(estimator, "classes_")


def test_overflow_names_the_row_and_what_to_do():
    X, y, _ = noisy()
    for learner in (Stoptron, Projectron):
        with pytest.raises(ValueError, match="overflowed at row"):
            learner("poly", degree=300, gamma=1, normalize=False).fit(1000 * X, y)


def test_a_stream_keeps_to_its_parameters():
    X, y, _ = noisy()
    for estimator, change in (
        (Forgetron(), {"budget": 7}),
        (Forgetron(), {"schedule": "fixed"}),
        (Projectron(), {"eta": 0.5}),
        (Stoptron(), {"normalize": False}),
        (Stoptron(), {"kernel": "linear"}),
    ):
        estimator.partial_fit(X, y, classes=[0, 1]).set_params(**change)
        with pytest.raises(ValueError, match="has changed since this model began to learn"):
            estimator.partial_fit(X, y)


FORMS = {
    "Stoptron": Stoptron(budget=10, max_iter=4),
    "random": RandomBudgetPerceptron(budget=10, max_iter=4),
    "safest": BudgetPerceptron(budget=10, max_iter=4),
    "Forgetron": Forgetron(budget=10, max_iter=4),
    "fixed": Forgetron("poly", schedule="fixed", budget=10, max_iter=4),
    "Projectron": Projectron(eta=0.3, max_iter=4),
    "Projectron++": ProjectronPlusPlus(eta=0.3, max_iter=4),
}


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_law(form, law):
    law(FORMS[form])


RATES = "a weight multiplies the step; two visits of a row are two steps, which is another thing"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": RATES for kind in ("dense", "sparse")}
EXPECTED["check_class_weight_classifiers"] = "without an intercept, rows far from all that were learned have no class"


@parametrize_with_checks(
    [Forgetron(max_iter=20), Projectron(max_iter=20)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
