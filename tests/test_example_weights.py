"""What the weight of an example and of a class means to the learners with a state and to those on a budget: each is held
against its update written out, one weight vector at a time."""

import numpy as np
import pytest
from sklearn.base import clone

import rosenblatt as rb
from rosenblatt.testing import laws

RNG = np.random.default_rng(5)
X = RNG.integers(-3, 4, (40, 4)).astype(float)
ONES = (X > 0).astype(float)
Y = {
    2: (X @ [1, -2, 1, 0] + RNG.integers(-2, 3, 40) > 0).astype(int),
    3: np.argmax(X[:, :3] + RNG.integers(-1, 2, (40, 3)), axis=1),
}
WEIGHT = RNG.integers(0, 4, 40) / 2
BY_CLASS = {0: 2.0, 1: 0.5}
ONCE = {"order": "cyclic", "max_iter": 1, "tol": None}


def learn(start, update, classes, rows=X):
    """What each weight vector is after one pass, if `update(memory, x, side, weight)` changes it."""
    memories = [start(rows.shape[1] + 1) for _ in range(1 if classes == 2 else classes)]
    for x, label, own in zip(rows, Y[classes], WEIGHT, strict=True):
        if own > 0:
            for k, memory in enumerate(memories):
                positive = label == (1 if classes == 2 else k)
                of_class = BY_CLASS.get(label, 1.0) if positive or classes == 2 else 1.0
                update(memory, np.append(x, 1.0), 1.0 if positive else -1.0, own * of_class)
    return memories


class Memory:
    """Weights w, and whatever else a learner remembers."""

    def __init__(self, size):
        self.w, self.v, self.M, self.k = np.zeros(size), np.zeros(size), np.eye(size), 0


def p_norm(me, x, side, c):
    if side * (me.w @ x) <= 0:
        me.v += c * side * x
        me.w = np.sign(me.v) * np.abs(me.v) ** 2 / max(np.sum(np.abs(me.v) ** 3) ** (1 / 3), 1e-300)


def least_squares(me, x, side, c, margin):
    if side * (me.w @ x) <= margin:
        me.v, me.M = me.v + c * side * x, me.M + c * np.outer(x, x)
        me.w = np.linalg.solve(me.M, me.v)
        return True
    return False


def second_order(me, x, side, c):
    least_squares(me, x, side, c, 0.0)


def second_order_diagonal(me, x, side, c):
    if side * (me.w @ x) <= 0:
        me.v, me.M = me.v + c * side * x, me.M + np.diag(c * x * x)
        me.w = me.v / np.diag(me.M)


def arow(me, x, side, c):
    lack = side - me.w @ x
    if side * (me.w @ x) < 1:
        me.w = me.w + c * lack / (1 + c * x @ np.linalg.solve(me.M, x)) * np.linalg.solve(me.M, x)
        me.M = me.M + c * np.outer(x, x)


def arow_diagonal(me, x, side, c):
    lack, squares = side - me.w @ x, np.diag(me.M)
    if side * (me.w @ x) < 1:
        me.w = me.w + c * lack / (1 + c * np.sum(x * x / squares)) * x / squares
        me.M = me.M + np.diag(c * x * x)


def alma(me, x, side, c, alpha=0.9):
    unit, k = x / np.linalg.norm(x), me.k + 1
    if side * (me.w @ unit) <= (1 - alpha) * np.sqrt(8) / alpha / np.sqrt(k):
        me.k, moved = k, me.w + c * np.sqrt(2 / k) * side * unit
        me.w = moved / max(1.0, np.linalg.norm(moved))


def romma(me, x, side, c):
    """The shortest weights with margin c on x that lie beyond the half-space through the old ones."""
    m, length, squared = side * (me.w @ x), x @ x, me.w @ me.w
    if m <= 0:
        if squared * length <= c * m or squared * length - m * m <= 1e-12 * squared * length:
            me.w = c * side * x / length
        else:
            keep = (squared * length - c * m) / (squared * length - m * m)
            me.w = keep * me.w + squared * (c - m) / (squared * length - m * m) * side * x


def ballseptron(me, x, side, c, ball=0.1):
    m, norm = side * (me.w @ x), np.linalg.norm(me.w)
    if m <= 0:
        me.w = me.w + c * side * x
    elif m <= ball * norm:
        me.w = me.w + c * (side * x - ball * me.w / norm)


def balanced_winnow(me, x, side, c):
    if side * (me.w @ x) <= 0:
        me.v += c * side * x
        me.w = 1.1**me.v - 1.1**-me.v


def normalised_winnow(me, x, side, c):
    if side * (me.w @ x) <= 0:
        me.v += c * 0.2 * side * x
        both = np.exp(np.concatenate([me.v, -me.v]))
        me.w = (both[: x.size] - both[x.size :]) / both.sum()


def winnow2(me, x, side, c):
    factors, theta = 2.0 ** me.v[:-1], x.size - 1
    over = factors @ x[:-1] - theta
    if (over < 0) == (side > 0):
        me.v[:-1] += c * side * x[:-1]
    me.w = np.append(2.0 ** me.v[:-1], -theta)


LEARNERS = {
    "p-norm": (rb.PNormPerceptron(p=3), p_norm),
    "second order, full": (rb.SecondOrderPerceptron(), second_order),
    "second order, dual": (rb.SecondOrderPerceptron(form="dual"), second_order),
    "second order, diagonal": (rb.SecondOrderPerceptron(form="diagonal"), second_order_diagonal),
    "AROW, full": (rb.AROW(), arow),
    "AROW, dual": (rb.AROW(form="dual"), arow),
    "AROW, diagonal": (rb.AROW(form="diagonal"), arow_diagonal),
    "ALMA": (rb.ALMA(), alma),
    "ROMMA": (rb.ROMMA(), romma),
    "Ballseptron": (rb.Ballseptron(), ballseptron),
    "balanced Winnow": (rb.BalancedWinnow(), balanced_winnow),
    "normalised Winnow": (rb.NormalisedWinnow(eta0=0.2), normalised_winnow),
    "Winnow2": (rb.Winnow2(), winnow2),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_weight_multiplies_the_step(name, classes):
    learner, update = LEARNERS[name]
    rows = ONES if name == "Winnow2" else X
    learner = clone(learner).set_params(class_weight=BY_CLASS, **ONCE).fit(rows, Y[classes], sample_weight=WEIGHT)
    expected = np.array([memory.w for memory in learn(Memory, update, classes, rows)])
    assert np.allclose(np.column_stack([learner.coef_, learner.intercept_]), expected)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", [rb.PNormPerceptron(), rb.Ballseptron(ball=0)])
def test_what_is_a_perceptron_is_the_same_with_weights(learner, classes):
    parameters = ONCE | {"class_weight": "balanced", "max_iter": 3}
    plain = rb.Perceptron(multiclass="ovr", keep="last", **parameters).fit(X, Y[classes], sample_weight=WEIGHT)
    learner = clone(learner).set_params(**parameters).fit(X, Y[classes], sample_weight=WEIGHT)
    assert np.allclose(learner.coef_, plain.coef_)
    assert learner.n_updates_ == plain.n_updates_


LINEAR = {"kernel": "linear", "order": "cyclic", "max_iter": 2, "tol": None, "class_weight": BY_CLASS}
BUDGETED = [
    rb.Stoptron(budget=1000), rb.RandomBudgetPerceptron(budget=1000), rb.BudgetPerceptron(budget=1000),
    rb.Forgetron(budget=1000), rb.Projectron(eta=0),
]  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("learner", BUDGETED)
def test_with_room_enough_a_budget_learner_is_the_kernel_perceptron_with_weights(learner, classes):
    unit = X / np.maximum(np.linalg.norm(X, axis=1), 1e-9)[:, None]
    plain = rb.KernelPerceptron(multiclass="ovr", fit_intercept=False, **LINEAR).fit(unit, Y[classes], sample_weight=WEIGHT)
    learner = clone(learner).set_params(**LINEAR, normalize=False).fit(unit, Y[classes], sample_weight=WEIGHT)
    assert learner.n_updates_ == plain.n_updates_ > 10
    assert np.allclose(learner.decision_function(unit), plain.decision_function(unit))


def test_projectron_plus_plus_and_a_full_budget_take_weights():
    for learner in (rb.ProjectronPlusPlus(), rb.Forgetron(budget=5), rb.BudgetPerceptron(budget=5)):
        learner = clone(learner).set_params(**LINEAR)
        equal, heavy = clone(learner).fit(X, Y[2]), clone(learner).fit(X, Y[2], sample_weight=np.full(40, 1.0))
        assert np.array_equal(equal.dual_coef_, heavy.dual_coef_)
        weighted = clone(learner).fit(X, Y[2], sample_weight=WEIGHT)
        assert not np.array_equal(weighted.decision_function(X), equal.decision_function(X))


EVERY = [learner for learner, _ in LEARNERS.values()] + [*BUDGETED, rb.ProjectronPlusPlus(), rb.Winnow1()]


@pytest.mark.parametrize("learner", EVERY, ids=lambda learner: str(learner)[:40])
def test_a_row_of_weight_zero_is_not_there_and_streams_may_be_cut(learner):
    rows, y = (ONES if "Winnow1" in str(learner) or "Winnow2" in str(learner) else X), Y[3]
    learner = clone(learner).set_params(class_weight={0: 0.0, 1: 2.0})
    whole = clone(learner).partial_fit(rows, y, classes=[0, 1, 2], sample_weight=WEIGHT)
    there = WEIGHT > 0
    absent = clone(learner).partial_fit(rows[there], y[there], classes=[0, 1, 2], sample_weight=WEIGHT[there])
    parts = clone(learner)
    for part in np.array_split(np.arange(40), 7):
        parts.partial_fit(rows[part], y[part], classes=[0, 1, 2], sample_weight=WEIGHT[part])
    for other in (absent, parts):
        assert np.array_equal(whole.decision_function(rows), other.decision_function(rows))
        assert whole.n_updates_ == other.n_updates_


def test_a_large_weight_overflows_with_an_error_and_leaves_the_model_as_it_was():
    for learner in (rb.PNormPerceptron(), rb.Ballseptron(), rb.AROW()):
        learner = clone(learner).partial_fit(X, Y[2], classes=[0, 1])
        before = learner.coef_.copy()
        with pytest.raises(rb.errors.NumericOverflow):
            learner.partial_fit(-X * 1e10, Y[2], sample_weight=np.full(40, 1e300))
        assert np.array_equal(learner.coef_, before)
    laws.weight_zero_is_absence(rb.ALMA(max_iter=3, tol=None))
