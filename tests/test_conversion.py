"""What is chosen from the hypotheses of a pass is what its name says, and the bounds hold."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from rosenblatt import Perceptron, rules
from rosenblatt.online import GUARANTEES, OnlineToBatch
from rosenblatt.online.conversion import best_suffix_bound, mean_risk_bound, penalty, survivor_bound
from rosenblatt.testing import laws


@st.composite
def samples(draw):
    """Integer rows of two or three classes, each of which comes."""
    classes = draw(st.integers(2, 3))
    n = draw(st.integers(classes, 25))
    row = st.lists(st.integers(-2, 2), min_size=2, max_size=2)
    X = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    y = draw(st.permutations([i % classes for i in range(n)]))
    return X, np.array(y)


def trail(X, y, margin=0.0, constant=1.0):
    """(h_0, …, h_T) of the perceptron, each (vectors, features + 1), and the margin by which h_t predicted example t."""
    rows, classes = np.column_stack([X, np.full(len(X), constant)]), len(np.unique(y))
    w = np.zeros((1 if classes == 2 else classes, rows.shape[1]))
    path, margins = [w], []
    for x, label in zip(rows, y, strict=True):
        m, direction = demand(w, x, label)
        if m <= margin:
            w = w + direction
        path.append(w)
        margins.append(m)
    return path, np.array(margins)


def demand(w, x, label):
    """The margin of an example, and the direction it proposes."""
    scores = w @ x
    if len(w) == 1:
        sign = 1 if label == 1 else -1
        return sign * scores[0], sign * x[None]
    rival = max((r for r in range(len(w)) if r != label), key=lambda r: (scores[r], -r))
    direction = np.zeros_like(w)
    direction[label], direction[rival] = x, -x
    return scores[label] - scores[rival], direction


def fitted(how, X, y, **params):
    clf = OnlineToBatch(how, **params).fit(X, y)
    return clf, np.column_stack([clf.coef_, clf.intercept_ / (params.get("intercept_scaling") or 1.0)])


@given(samples(), st.sampled_from([0.0, 2.0]), st.sampled_from([1.0, 2.0]), st.integers(0, 3))
def test_each_is_what_its_name_says(sample, margin, constant, seed):
    X, y = sample
    path, margins = trail(X, y, margin, constant)
    T, delta = len(y), 0.3
    params = {"rule": rules.Perceptron(margin, 1.0), "intercept_scaling": constant, "delta": delta, "random_state": seed}
    rows = np.column_stack([X, np.full(T, constant)])
    mistakes = int(np.sum(margins <= 0))

    clf, w = fitted("last", X, y, **params)
    assert np.array_equal(w, path[-1])
    assert (clf.hypothesis_, clf.risk_bound_, clf.n_mistakes_) == (T, 1.0, mistakes)

    clf, w = fitted("random", X, y, **params)
    assert 0 <= clf.hypothesis_ < T
    assert np.array_equal(w, path[clf.hypothesis_])
    assert clf.risk_bound_ == pytest.approx(min(1, mistakes / T + math.sqrt(2 * math.log(1 / delta) / T)))

    clf, w = fitted("average", X, y, margin_bound=7.0, **params)
    np.testing.assert_allclose(w, np.mean(path[:-1], axis=0), rtol=0, atol=1e-12)
    hinge = np.maximum(0, 1 - margins).sum()
    assert clf.hypothesis_ is None
    assert clf.risk_bound_ == pytest.approx(min(1, hinge / T + 8 * math.sqrt(2 * math.log(1 / delta) / T)))
    assert fitted("average", X, y, **params)[0].risk_bound_ == 1.0

    clf, _ = fitted("vote", X, y, **params)
    decided = [[h @ x for h in path[:-1]] for x in rows]
    if len(path[0]) == 1:
        expected = [np.mean([1.0 if s[0] >= 0 else -1.0 for s in scores]) for scores in decided]
    else:
        expected = [np.bincount([int(np.argmax(s)) for s in scores], minlength=len(path[0])) / T for scores in decided]
    np.testing.assert_allclose(clf.decision_function(X), expected, rtol=0, atol=1e-12)
    assert clf.risk_bound_ == pytest.approx(min(1, 2 * (mistakes / T + math.sqrt(2 * math.log(1 / delta) / T))))

    clf, w = fitted("longest-survivor", X, y, **params)
    runs = []
    for t in range(T):
        run = 0
        while t + run < T and path[t + run] is path[t] and margins[t + run] > 0:
            run += 1
        runs.append(run)
    assert clf.hypothesis_ == int(np.argmax(runs))
    assert np.array_equal(w, path[clf.hypothesis_])
    assert clf.risk_bound_ == pytest.approx(1 - (2 * delta / (T * (T + 1))) ** (1 / max(runs)) if max(runs) else 1.0)

    clf, w = fitted("best-suffix", X, y, **params)
    estimates = []
    for t in range(T):
        wrong = [demand(path[t], x, label)[0] <= 0 for x, label in zip(rows[t:], y[t:], strict=True)]
        estimates.append(np.mean(wrong) + math.sqrt(math.log(T * (T + 1) / (delta / 2)) / (2 * (T - t))))
    assert estimates[clf.hypothesis_] == pytest.approx(min(estimates))
    assert np.array_equal(w, path[clf.hypothesis_])
    promised = mistakes / T + 6 * math.sqrt(math.log(2 * (T + 1) / delta) / T)
    assert clf.risk_bound_ == pytest.approx(min(1, promised, min(estimates)))


@pytest.mark.parametrize("how", GUARANTEES)
def test_sparse_rows_and_32_bits_give_the_same(how):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (60, 4)).astype(float)
    y = rng.integers(0, 3, 60)
    dense = OnlineToBatch(how).fit(X, y)
    for layout in (sp.csr_matrix(X), X.astype(np.float32)):
        other = OnlineToBatch(how).fit(layout, y)
        assert (other.hypothesis_, other.risk_bound_) == (dense.hypothesis_, dense.risk_bound_)
        assert other.n_mistakes_ == dense.n_mistakes_
        np.testing.assert_allclose(other.decision_function(layout), dense.decision_function(X), rtol=1e-5, atol=1e-5)
        assert other.coef_.dtype == layout.dtype


def test_the_last_is_the_perceptron_that_streams():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    clf, streaming = OnlineToBatch("last").fit(X, y), Perceptron().partial_fit(X, y, classes=["no", "yes"])
    assert np.array_equal(clf.coef_, streaming.coef_)
    assert clf.n_mistakes_ == streaming.n_mistakes_ > 0


# Bounds, on a distribution whose risks are known up to a large sample

DIRECTION = np.array([2.0, -1.0, 0.5])


def draw(rng, n, noise):
    """Points of the unit ball and labels of a linear rule, wrong with probability `noise`."""
    X = rng.standard_normal((n, 3))
    X *= (rng.random(n) ** (1 / 3) / np.linalg.norm(X, axis=1))[:, None]
    return X, ((X @ DIRECTION > 0) ^ (rng.random(n) < noise)).astype(int)


@pytest.fixture(scope="module")
def world():
    return draw(np.random.default_rng(123), 20_000, 0.1)


@pytest.mark.parametrize("how", [how for how in GUARANTEES if how != "last"])
def test_the_bound_holds_as_often_as_it_says(how, world):
    """60 samples, δ = 0.2: no more than one in ten breaks the bound, and the bound always says something."""
    fresh, answers = world
    signs, delta, T, broken = 2 * answers - 1, 0.2, 2000 if how == "average" else 300, 0
    rule = rules.Perceptron(1.0, 1 / math.sqrt(T)) if how == "average" else "perceptron"  # the step of the hinge loss
    largest = math.sqrt(T * (1 / T + 2 / math.sqrt(T)))  # ‖w‖² grows by at most η² + 2η an update, as ‖x‖ ≤ 1
    for seed in range(60):
        X, y = draw(np.random.default_rng(seed), T, 0.1)
        params = {"delta": delta, "margin_bound": largest, "fit_intercept": False, "random_state": seed}
        clf = OnlineToBatch(how, rule, **params).fit(X, y)
        margins = signs * clf.decision_function(fresh)
        if how == "random":  # the bound is about the mean of all that may be drawn
            risk = np.mean([np.mean(signs * (fresh @ h[0, :-1]) <= 0) for h in trail(X, y, constant=0.0)[0][:-1:10]])
        elif how == "average":
            risk = np.mean(np.maximum(0, 1 - margins))
        else:
            risk = np.mean(margins <= 0)
        assert clf.risk_bound_ < 1
        broken += risk > clf.risk_bound_
    assert broken <= 6


def test_expected_risk_of_a_random_hypothesis_is_the_expected_share_of_mistakes(world):
    fresh, answers = world
    signs, gaps = 2 * answers - 1, []
    for seed in range(80):
        X, y = draw(np.random.default_rng(1000 + seed), 60, 0.1)
        path, margins = trail(X, y, constant=0.0)
        risks = [np.mean(signs * (fresh @ h[0, :-1]) <= 0) for h in path[:-1]]
        gaps.append(np.mean(risks) - np.mean(margins <= 0))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / math.sqrt(len(gaps))


def test_bounds_shrink_with_examples_and_grow_with_confidence():
    for bound in (mean_risk_bound, best_suffix_bound):
        assert bound(0, 10**6, 0.05) < bound(0, 10**4, 0.05) < bound(0, 10**4, 0.01)
        assert bound(10, 100, 0.05) > bound(0, 100, 0.05)
    assert survivor_bound(0, 100, 0.05) == 1.0
    assert survivor_bound(100, 100, 0.05) < survivor_bound(10, 100, 0.05) < 1
    assert penalty(1, 100, 0.05) == pytest.approx(10 * penalty(100, 100, 0.05))


def test_the_mean_of_the_penalties_is_what_the_theorem_needs():
    for T in (1, 2, 3, 10, 100, 10_000):
        for delta in (0.5, 0.01):
            mean = np.mean([penalty(T - t, T, delta / 2) for t in range(T)])
            assert mean <= 2 * math.sqrt(math.log(2 * (T + 1) / delta) / T)
            rest = math.sqrt(2 / T * math.log(2 / delta))
            assert 2 * mean + rest <= 6 * math.sqrt(math.log(2 * (T + 1) / delta) / T)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"how": "best"}, "how must be one of 'last', 'random', 'average'"),
        ({"delta": 0}, "delta must be a number > 0 and < 1; got 0"),
        ({"delta": 1.0}, "delta must be a number > 0 and < 1"),
        ({"margin_bound": -1}, "margin_bound must be a number > 0 or None"),
        ({"rule": "pa"}, "rule must be a rule of rosenblatt.rules"),
    ],
)
def test_what_it_refuses(params, words):
    clf = OnlineToBatch(**params)
    with pytest.raises(ValueError, match=words):
        clf.fit([[1.0], [2.0]], [0, 1])
    assert not hasattr(clf, "classes_")


def test_guarantees_are_data():
    for how, guarantee in GUARANTEES.items():
        assert all(isinstance(field, str) and field for field in guarantee)
        assert OnlineToBatch(how).fit([[1.0], [-1.0]], [0, 1]).guarantee_ is guarantee


@pytest.mark.parametrize("how", ["best-suffix", "vote"])
def test_scikit_learn_checks_it(how):
    check_estimator(clone(OnlineToBatch(how)), on_skip=None)


@pytest.mark.parametrize("how", GUARANTEES)
def test_the_laws_hold(how):
    laws.check(OnlineToBatch(how))
