"""The worked examples of three sets of lecture notes, to the digit: CMU 10-607, Waterloo CS489/698, IIIT-H SMAI."""

import numpy as np
import pytest
from worked import EIGHT, EIGHT_Y, SIX, SIX_Y, SPAM, SPAM_Y

from rosenblatt import Perceptron


def path(X, y, **parameters):
    """The weights after each update, learning row by row."""
    clf, seen = Perceptron(keep="last", **parameters), []
    for i in range(len(X)):
        updates = getattr(clf, "n_updates_", 0)
        clf.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1, 1])
        if clf.n_updates_ > updates:
            seen.append((clf.coef_[0].tolist(), clf.intercept_[0]))
    return seen


def test_spam_table_of_waterloo():
    assert path(SPAM, SPAM_Y) == [
        ([1, 1, 0, 1, 1], 1),
        ([1, 1, -1, 0, 1], 0),
        ([1, 2, 0, 0, 1], 1),
        ([0, 2, 0, -1, 1], 0),
    ]
    clf = Perceptron(keep="last", order="cyclic").fit(SPAM, SPAM_Y)
    assert (clf.n_updates_, clf.n_mistakes_, clf.n_iter_, clf.stop_reason_) == (4, 4, 2, "converged")
    assert clf.mistake_bound(radius=np.sqrt(5), margin=1 / np.sqrt(3)) == pytest.approx(15)


def test_six_points_of_cmu():
    assert [w for w, _ in path(SIX, SIX_Y, fit_intercept=False)] == [[1, -2], [2, -1], [3, 1]]
    assert Perceptron(keep="last", fit_intercept=False, order="cyclic").fit(SIX, SIX_Y).coef_.tolist() == [[3, 1]]


@pytest.mark.parametrize("eta0", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("start", [(0.0, 0.0), (-1.0, -1.0), (-7.0, 2.0), (5.0, -8.0)])
def test_eight_points_of_iiith_converge_for_every_rate_and_start(eta0, start):
    clf = Perceptron(keep="last", eta0=eta0, fit_intercept=False, order="cyclic").fit(EIGHT, EIGHT_Y, coef_init=[start])
    assert clf.stop_reason_ == "converged"
    assert (EIGHT_Y * (EIGHT @ clf.coef_[0]) > 0).all()
    steps = (clf.coef_[0] - start) / eta0
    assert np.array_equal(steps, np.round(steps)), "the weights are the start plus whole multiples of the rate"


def test_eight_points_of_iiith_from_zero_take_one_update():
    clf = Perceptron(keep="last", fit_intercept=False, order="cyclic").fit(EIGHT, EIGHT_Y)
    assert (clf.n_updates_, clf.coef_.tolist()) == (1, [[1, 1]])


def test_rate_from_zero_only_scales_the_weights():
    one, three = (Perceptron(keep="last", eta0=eta, order="cyclic").fit(SPAM, SPAM_Y) for eta in (1.0, 3.0))
    assert np.array_equal(3 * one.coef_, three.coef_)
    assert one.n_updates_ == three.n_updates_


def test_the_error_form_of_iiith_is_the_mistake_form_at_twice_the_rate():
    """w += (η/2)(t − o)x with o = sign(w·x) moves exactly where m ≤ 0 does, when no score is 0."""
    w = np.array([-0.5, -0.125])
    clf = Perceptron(keep="last", fit_intercept=False, order="cyclic", max_iter=1, tol=None).fit(SIX, SIX_Y, coef_init=[w])
    for x, t in zip(SIX, SIX_Y, strict=True):
        assert w @ x != 0
        w = w + 0.5 * (t - np.sign(w @ x)) * x
    assert clf.coef_[0].tolist() == w.tolist()
