"""A fitted learner beside its theorem: the bound is that of the run as it was; where none applies, nothing is claimed."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from rosenblatt import MIRA, PAUM, DeltaRuleClassifier, PassiveAggressiveClassifier, Perceptron
from rosenblatt.testing.strategies import separated
from rosenblatt.theory import bounds

rng = np.random.default_rng(0)
SCORES = (X := rng.normal(size=(80, 3))) @ [1, 2, -1] + 0.3
X, SCORES = X[np.abs(SCORES) > 0.2], SCORES[np.abs(SCORES) > 0.2]
Y = np.where(SCORES > 0, "yes", "no")
NOISY = np.where((np.arange(len(Y)) % 9 == 0) ^ (SCORES > 0), "yes", "no")
PLENTY = {"tol": None, "max_iter": 10_000}


@given(separated(), st.sampled_from([0.0, 3.0]), st.sampled_from([0.5, 2.0]), st.sampled_from([1, 3, "full"]))
def test_separable_rows_are_certified(sample, margin, eta, batch):
    constant = {"fit_intercept": sample.constant > 0, "intercept_scaling": sample.constant or 1.0}
    clf = Perceptron(margin=margin, eta0=eta, batch=batch, **constant, **PLENTY).fit(sample.X, sample.labels)
    told = clf.certify(sample.X, sample.labels)
    assert told.theorem == "Novikoff"
    assert told.holds
    assert told.converged
    assert told.separable is True
    assert (told.n_updates, told.n_mistakes, told.counted) == (clf.n_updates_, clf.n_mistakes_, "updates")
    assert told.radius == pytest.approx(sample.radius)
    low, high = told.margin
    assert sample.margin * (1 - 1e-9) <= high
    assert low == pytest.approx(high, rel=1e-6)
    size = len(sample.X) if batch == "full" else min(batch, len(sample.X))
    assert told.bound == pytest.approx(bounds.batch_sum(told.radius, low, size, delta=margin, rate=eta))
    assert told.used == pytest.approx(clf.n_updates_ / told.bound)


def test_the_sentence():
    clf = Perceptron(**PLENTY).fit(X, Y)
    told = clf.certify(X, Y)
    share = (
        f"{clf.n_updates_} updates, {told.used:.1%} of the {math.floor(told.bound)} that the theorem of Novikoff allows."
    )
    assert str(told) == f"Separable, γ = {told.margin[0]:.4g}, R = {told.radius:.4g}: {share}"
    assert clf.certify(sp.csr_matrix(X), Y) == told


def test_a_run_cut_short_is_within_the_bound_too():
    told = Perceptron(max_updates=3).fit(X, Y).certify(X, Y)
    assert (told.n_updates, told.converged, told.theorem) == (3, False, "Novikoff")


def test_the_start_enters_the_bound():
    far = Perceptron(**PLENTY).fit(X, Y, coef_init=[[50.0, -50.0, 50.0]], intercept_init=[-10.0])
    told = far.certify(X, Y)
    assert told.theorem == "Novikoff"
    assert told.holds
    assert far.n_updates_ > Perceptron(**PLENTY).fit(X, Y).certify(X, Y).bound / 4
    low, start = told.margin[0], math.sqrt(3 * 50**2 + 10**2)
    assert bounds.novikoff(told.radius, low) < told.bound <= bounds.novikoff(told.radius, low, start=start)
    again = far.set_params(warm_start=True).fit(X, Y).certify(X, Y)  # from weights that separate already
    assert (again.n_updates, again.holds) == (0, True)
    assert again.bound != told.bound


def test_streams_count_from_their_start():
    clf = Perceptron()
    for part in np.array_split(np.arange(len(X)), 5):
        clf.partial_fit(X[part], Y[part], classes=["no", "yes"])
    told = clf.certify(X, Y)
    assert (told.theorem, told.n_updates, told.holds) == ("Novikoff", clf.n_updates_, True)


@pytest.mark.parametrize("margin", [0.0, 1.0])
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_one_pass_over_rows_that_nothing_separates(learn, margin):
    clf = Perceptron(margin=margin, max_iter=1)
    clf = clf.fit(X, NOISY) if learn == "fit" else clf.partial_fit(X, NOISY, classes=["no", "yes"])
    told = clf.certify(X, NOISY)
    assert (told.separable, told.margin, told.theorem) == (False, (0.0, 0.0), "Freund and Schapire")
    assert 0 < clf.n_updates_ <= told.bound < len(X)
    rows = np.where(NOISY == "yes", 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(len(X))])
    for wobble in np.random.default_rng(1).normal(0, 0.5, (50, 4)):
        u = np.array([1, 2, -1, 0.3]) + wobble
        guess = bounds.least_freund_schapire(told.radius, rows @ u / np.linalg.norm(u), delta=margin)
        assert told.bound <= guess.bound * (1 + 1e-6), "nearly the least"
    assert str(told).startswith(f"Nothing separates these rows: {clf.n_updates_} updates, ")


@pytest.mark.parametrize(
    ("clf", "options", "reason"),
    [
        (Perceptron(max_iter=3), {}, "one pass"),
        (Perceptron(max_iter=1, order="random"), {}, "no row comes twice"),
        (Perceptron(max_iter=1, batch=4), {}, "row by row"),
        (Perceptron(max_iter=1), {"coef_init": [[1.0, 0.0, 0.0]]}, "from weights of zero"),
        (PassiveAggressiveClassifier(max_iter=1), {}, "about the perceptron"),
    ],
)
def test_what_freund_and_schapire_do_not_say(clf, options, reason):
    told = clf.set_params(tol=None).fit(X, NOISY, **options).certify(X, NOISY)
    assert (told.theorem, told.bound, told.used) == ("", math.inf, 0)
    assert reason in told.reason
    assert "no bound applies: " in str(told)


@pytest.mark.parametrize(
    ("clf", "options", "reason"),
    [
        (Perceptron(class_weight="balanced"), {}, "class_weight"),
        (Perceptron(), {"sample_weight": np.arange(len(Y)) % 3}, "sample_weight"),
        (PassiveAggressiveClassifier(), {"coef_init": [[1.0, 0.0, 0.0]]}, "initial weights of zero"),
        (MIRA(margin=0), {}, "none is known for Mira"),
        (DeltaRuleClassifier(), {}, "none is known for this learner"),
    ],
)
def test_no_theorem_is_claimed_where_none_applies(clf, options, reason):
    told = clf.fit(X, Y, **options).certify(X, Y)
    assert (told.theorem, told.bound) == ("", math.inf)
    assert reason in told.reason
    assert told.separable is True


def test_weights_of_one_are_none():
    told = Perceptron(**PLENTY).fit(X, Y, sample_weight=(np.arange(len(Y)) % 5 > 0).astype(float)).certify(X, Y)
    assert told.theorem == "Novikoff", "rows of weight 0 are not there"


def test_parameters_that_changed_since():
    clf = Perceptron(margin=5.0, **PLENTY).fit(X, Y)
    before = clf.certify(X, Y)
    assert clf.set_params(margin=0.0).certify(X, Y) == before, "the bound is that of the run"
    assert "changed during training" in clf.partial_fit(X, Y).certify(X, Y).reason


def test_rules_that_update_for_a_margin_are_bounded_in_wrong_predictions():
    for clf in (PassiveAggressiveClassifier(C=0.3), PassiveAggressiveClassifier(loss="squared_hinge"), MIRA()):
        told = clf.fit(X, Y).certify(X, Y)
        assert told.counted == "wrong predictions"
        assert told.count == clf.n_mistakes_ <= told.bound == clf.mistake_bound(told.radius, told.margin[0])
        assert "Crammer et al." in str(told)
    uneven = PAUM(positive_margin=2.0, **PLENTY).fit(X, Y).certify(X, Y)
    assert (uneven.theorem, uneven.counted, uneven.holds) == ("Novikoff", "updates", True)


def test_other_rows_than_those_learned_from_are_found_out():
    clf = Perceptron(max_iter=50, tol=None).fit(X, NOISY)
    easy = np.abs(SCORES) > 2
    told = clf.certify(X[easy], Y[easy])
    assert not told.holds
    assert "these are not the rows that were learned from" in str(told)


def test_refusals():
    with pytest.raises(NotFittedError):
        Perceptron().certify(X, Y)
    clf = Perceptron().fit(X, Y)
    with pytest.raises(ValueError, match="'maybe' is not one of the known classes: 'no', 'yes'"):
        clf.certify(X, np.where(Y == "yes", "yes", "maybe"))
    with pytest.raises(ValueError, match="expecting 3 features"):
        clf.certify(X[:, :2], Y)
    with pytest.raises(ValueError, match="two labels"):
        clf.certify(X, np.full(len(Y), "yes"))
    many = Perceptron(max_iter=2, tol=None).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="two classes; this one has 3"):
        many.certify(X, np.arange(len(X)) % 3)
