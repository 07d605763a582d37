"""Each conversion is its definition on all hypotheses of a pass, and its guarantee holds where the risk is known."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt.errors import InvalidData
from rosenblatt.online import OnlineToBatch
from rosenblatt.online.conversion import GUARANTEES
from rosenblatt.rules import PA1, Uneven
from rosenblatt.testing import laws, reference
from rosenblatt.theory import bounds

ONE = ("last", "random", "longest-survivor", "best-suffix")


def run(X, y, classes, multiclass="joint"):
    """All hypotheses h_0 … h_T, each (columns, features + 1)."""
    kind = "binary" if classes == 2 else multiclass
    done = reference.learn(X, y, classes, [range(len(X))], multiclass=kind)
    return [done.start, *done.path], done


def answers(w, X):
    scores = reference.padded(X, 1.0) @ w.T
    return (scores[:, 0] >= 0).astype(int) if len(w) == 1 else scores.argmax(axis=1)


def weights(clf):
    return np.column_stack([clf.coef_, clf.intercept_])


@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_every_way_is_its_definition(classes, multiclass, layout):
    X, y = laws.data(classes, rows=80)
    path, done = run(X, y, classes, multiclass)
    T = len(X)
    fitted = {how: OnlineToBatch(how, multiclass=multiclass).fit(layout(X), y) for how in GUARANTEES}
    assert all(clf.n_mistakes_ == done.mistakes for clf in fitted.values())
    for how in ONE:
        assert np.allclose(weights(fitted[how]), path[fitted[how].hypothesis_], atol=1e-12), how
    assert fitted["last"].hypothesis_ == T
    assert np.allclose(weights(fitted["average"]), np.mean(path[:T], axis=0), atol=1e-12)

    survived = np.zeros(T + 1, int)
    for t in range(T + 1):
        while t + survived[t] < T and np.array_equal(path[t + survived[t] + 1], path[t]):
            survived[t] += 1
    assert fitted["longest-survivor"].hypothesis_ == survived.argmax()

    delta = fitted["best-suffix"].delta
    risks = [
        np.mean(answers(path[t], X[t:]) != y[t:]) + math.sqrt(math.log(2 * T * (T + 1) / delta) / (2 * (T - t)))
        for t in range(T)
    ]
    assert risks[fitted["best-suffix"].hypothesis_] == pytest.approx(min(risks))

    if classes == 2:
        votes = np.mean([np.where(reference.padded(X, 1.0) @ w[0] >= 0, 1, -1) for w in path[1:]], axis=0)
        assert np.allclose(fitted["vote"].decision_function(X), votes)


def test_random_hypotheses_are_drawn_evenly_and_only_from_before_the_end():
    X, y = laws.data(2, rows=20)
    drawn = np.bincount([OnlineToBatch("random", random_state=s).fit(X, y).hypothesis_ for s in range(400)], minlength=20)
    assert len(drawn) == 20
    assert drawn.min() >= 5


def noisy(rows, rng, flip=0.1):
    """Two classes that a plane separates but for a share of flipped labels; the risk of w is then known."""
    X = rng.standard_normal((rows, 3))
    y = (X @ [1.0, -1.0, 0.5] > 0) ^ (rng.random(rows) < flip)
    return X, y.astype(int)


def risk(clf, flip=0.1):
    """The exact risk: the angle to the true plane gives the share of disagreement. Only without an intercept."""
    w, u = clf.coef_[0], np.array([1.0, -1.0, 0.5])
    if not w.any():
        return 0.5
    apart = math.acos(np.clip(w @ u / np.linalg.norm(w) / np.linalg.norm(u), -1, 1)) / math.pi
    return flip + (1 - 2 * flip) * apart


@pytest.mark.parametrize("how", ["longest-survivor", "best-suffix"])
def test_guarantees_that_hold_with_probability(how):
    held = []
    for seed in range(60):
        X, y = noisy(400, np.random.default_rng(seed))
        clf = OnlineToBatch(how, fit_intercept=False, delta=0.1).fit(X, y)
        assert clf.guarantee().kind == "probability"
        held.append(risk(clf) <= clf.guarantee().bound)
    assert np.mean(held) >= 0.9


def test_the_risk_of_a_random_hypothesis_is_the_share_of_mistakes_in_expectation():
    risks, shares = [], []
    for seed in range(300):
        X, y = noisy(100, np.random.default_rng(seed))
        clf = OnlineToBatch("random", fit_intercept=False, random_state=seed).fit(X, y)
        risks.append(risk(clf))
        shares.append(clf.n_mistakes_ / 100)
    error = math.sqrt((np.var(risks) + np.var(shares)) / 300)
    assert abs(np.mean(risks) - np.mean(shares)) <= 4 * error + 0.5 / 100  # a tie of h_0 counts as a whole mistake


def test_votes_obey_their_expectation_and_averages_beat_the_last():
    rng = np.random.default_rng(1)
    unseen, truth = noisy(20_000, rng)
    wrong = {how: [] for how in ("vote", "average", "last")}
    bounds = []
    for seed in range(20):
        X, y = noisy(300, np.random.default_rng(seed))
        for how, shares in wrong.items():
            clf = OnlineToBatch(how, fit_intercept=False).fit(X, y)
            shares.append(np.mean(clf.predict(unseen) != truth))
            if how == "vote":
                bounds.append(clf.guarantee().bound)
                assert clf.guarantee().kind == "expectation"
    assert np.mean(wrong["vote"]) <= np.mean(bounds)
    assert np.mean(wrong["average"]) < np.mean(wrong["last"]) - 0.02


def test_the_convex_bound_of_the_average():
    """For the absolute loss |tanh(s) − y|/2 it is not convex; for the clipped hinge neither: |s − y| with |s| ≤ 1 is."""
    held = []
    for seed in range(40):
        X, y = noisy(400, np.random.default_rng(seed))
        X, sign = X / np.linalg.norm(X, axis=1, keepdims=True), np.where(y == 1, 1.0, -1.0)
        path, _ = run(X, y, 2)
        scale = max(np.linalg.norm(w) for w in path) * math.sqrt(2)  # ‖(x, 1)‖ = √2: every score is then within ±1
        pad = reference.padded(X, 1.0)
        total = sum(abs(pad[t] @ path[t][0] / scale - sign[t]) / 2 for t in range(len(X)))
        clf = OnlineToBatch("average").fit(X, y)
        fresh, truth = noisy(4000, np.random.default_rng(1000 + seed))
        fresh /= np.linalg.norm(fresh, axis=1, keepdims=True)
        loss = np.mean(np.abs(clf.decision_function(fresh) / scale - np.where(truth == 1, 1.0, -1.0)) / 2)
        held.append(loss <= bounds.convex_risk(total, len(X), 0.1))
    assert np.mean(held) >= 0.9
    clf = OnlineToBatch("average").fit(*noisy(50, np.random.default_rng(0)))
    assert clf.guarantee().bound == math.inf
    assert "convex" in clf.guarantee().statement


def test_any_rule_and_what_is_refused():
    X, y = laws.data(2)
    clf = OnlineToBatch("last", rule=PA1(0.5)).fit(X, y)
    expected = reference.learn(X, y, 2, [range(len(X))], multiclass="binary",
                               step=lambda m, length, k, positive: min(0.5, max(0.0, 1 - m) / length))  # fmt: skip
    assert np.allclose(weights(clf), expected.last)
    for wrong, message in (
        ({"how": "first"}, "how must be one of 'last', 'random'"),
        ({"rule": "pa"}, r"rule must be 'perceptron' or a rule, such as rosenblatt.rules.PA1\(C=1.0\); got 'pa'"),
        ({"delta": 0}, "delta must be a number > 0 and < 1; got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            OnlineToBatch(**wrong).fit(X, y)
    for how in ("longest-survivor", "best-suffix"):
        with pytest.raises(ValueError, match="lets some mistakes pass"):
            OnlineToBatch(how, rule=Uneven(1.0, -1.0, 1.0)).fit(X, y)
        with pytest.raises(ValueError, match="row 3 has length 0"):
            OnlineToBatch(how, rule=PA1(0.5), fit_intercept=False).fit(np.vstack([X[:3], 0 * X[:1]]), y[:4])
    with pytest.raises(AttributeError, match="mixes all hypotheses"):
        OnlineToBatch("average").fit(X, y).hypothesis_  # noqa: B018
    streamed = OnlineToBatch("last").partial_fit(X[:20], y[:20], classes=[0, 1])
    with pytest.raises(ValueError, match="best-suffix"):
        streamed.set_params(how="best-suffix").partial_fit(X[20:], y[20:])


@pytest.mark.parametrize("how", ["longest-survivor", "best-suffix"])
def test_rows_that_fail_change_nothing(how):
    X, y = laws.data(2)
    clf = OnlineToBatch(how, rule=PA1(0.5), fit_intercept=False).partial_fit(X, y, classes=[0, 1])
    before, hypothesis = pickle.dumps(clf), clf.hypothesis_
    with pytest.raises(InvalidData) as caught:
        clf.partial_fit(np.vstack([-X, 0 * X[:1]]), np.append(y, 0))
    assert caught.value.row == len(X)
    clf.__dict__["_known"] = {}  # what predicts is computed when it is asked for
    assert pickle.dumps(clf) == before
    assert clf.hypothesis_ == hypothesis


RATES = "a weight multiplies the step; two visits of a row are two steps, which is another thing"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": RATES for kind in ("dense", "sparse")}


@parametrize_with_checks([OnlineToBatch("average")], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("how", ["random", "average", "best-suffix"])
def test_law(how, law):
    law(OnlineToBatch(how))
