"""Theorems as tests: the exponential instance, the mistake bound, and what scaling does not change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt import Perceptron
from rosenblatt.rules import Diminishing
from rosenblatt.testing.strategies import separated
from rosenblatt.theory.hard import exponential

ORDERS = {
    "cyclic": (slice(None), "cyclic"),
    "reverse": (slice(None, None, -1), "cyclic"),
    "shuffle": (slice(None), "shuffle"),
    "most-violated": (slice(None), "most-violated"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", range(1, 11))
def test_hard_instance_takes_the_same_number_of_updates_in_every_order(n, order):
    rows, kind = ORDERS[order]
    X, y = exponential(n)[:2]
    clf = Perceptron(keep="last", fit_intercept=False, order=kind, tol=None, max_iter=10**9).fit(X[rows], y[rows])
    assert clf.n_updates_ == clf.n_mistakes_ == (4**n - 1) // 3
    assert clf.coef_[0].tolist() == [2**i for i in range(n)]
    assert clf.stop_reason_ == "converged"


@pytest.mark.parametrize("n", range(1, 7))
def test_hard_instance_in_cyclic_order_needs_this_many_epochs(n):
    X, y = exponential(n)[:2]
    clf = Perceptron(keep="last", fit_intercept=False, order="cyclic", tol=None, max_iter=10**9).fit(X, y)
    assert clf.n_iter_ == (4**n + 8) // 6


@given(
    separated(),
    st.sampled_from([0.0, 1.0, 5.0]),
    st.sampled_from([0.5, 1.0, 4.0]),
    st.sampled_from(["cyclic", "shuffle", "random", "most-violated"]),
)
def test_updates_stay_within_the_bound(sample, margin, eta, order):
    clf = Perceptron(keep="last", margin=margin, eta0=eta, order=order, fit_intercept=sample.constant > 0,
                     intercept_scaling=sample.constant or 1.0, tol=None, max_iter=100_000)  # fmt: skip
    clf.fit(sample.X, sample.labels)
    bound = clf.mistake_bound(sample.radius, sample.margin)
    assert bound == pytest.approx((sample.radius**2 + 2 * margin / eta) / sample.margin**2)
    assert clf.n_mistakes_ <= clf.n_updates_ <= bound * (1 + 1e-9)
    assert clf.stop_reason_ == "converged"
    signs = np.where(sample.labels == 1, 1, -1)
    padded = np.hstack([sample.X, np.full((len(sample.X), 1), sample.constant)])
    w = np.append(clf.coef_[0], clf.intercept_[0] / (sample.constant or 1.0))
    margins = signs * (padded @ w)
    assert (margins > margin).all()
    delta = margin / eta
    least = sample.margin * delta / (sample.radius**2 + 2 * delta)
    assert margins.min() / np.linalg.norm(w) >= least - 1e-9, "the margin that δ buys"


@given(separated(), st.integers(2, 6), st.sampled_from(["sum", "mean"]))
def test_batches_stay_within_their_bound(sample, batch, reduction):
    clf = Perceptron(keep="last", batch=batch, reduction=reduction, order="cyclic", fit_intercept=sample.constant > 0,
                     intercept_scaling=sample.constant or 1.0, tol=None, max_iter=100_000)  # fmt: skip
    clf.fit(sample.X, sample.labels)
    assert clf.stop_reason_ == "converged"
    assert clf.n_updates_ <= clf.mistake_bound(sample.radius, sample.margin) * (1 + 1e-9)
    if reduction == "sum":
        assert clf.n_mistakes_ <= clf.mistake_bound(sample.radius, sample.margin) * (1 + 1e-9)


@given(separated(), st.sampled_from([0.001, 3.0, 1e6]), st.sampled_from(["cyclic", "shuffle", "most-violated"]))
def test_scaling_the_data_changes_no_mistake_without_an_intercept(sample, scale, order):
    one, other = (
        Perceptron(keep="last", fit_intercept=False, order=order, tol=None, max_iter=50).fit(sample.X * s, sample.labels)
        for s in (1.0, 2.0 ** np.round(np.log2(scale)))  # powers of two: scaling is exact
    )
    assert [epoch.mistakes for epoch in one.history_] == [epoch.mistakes for epoch in other.history_]


@given(separated(most_rows=8, most_features=2))
def test_diminishing_rates_stay_within_theirs(sample):
    bound = Diminishing(0.0, 1.0, 0.5).bound(sample.radius, sample.margin)
    clf = Perceptron(keep="last", learning_rate="invsqrt", fit_intercept=sample.constant > 0,
                     intercept_scaling=sample.constant or 1.0, tol=None, max_iter=20_000)  # fmt: skip
    with pytest.warns(UserWarning, match="gives up the mistake bound"):
        clf.fit(sample.X, sample.labels)
    assert clf.n_updates_ <= bound


def test_the_bound_of_rates_like_1_over_k_is_exponential():
    assert Diminishing(0.0, 1.0, 1.0).bound(10.0, 1.0) == pytest.approx(np.exp(np.pi * 10 / np.sqrt(6)))
    assert Diminishing(0.0, 1.0, 1.0).bound(1e5, 1e-3) == np.inf


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
def test_many_separable_classes_converge(multiclass):
    """Joint: within 2R²/γ² for the separator of Frobenius norm 1 that names each corner its own class."""
    rng = np.random.default_rng(0)
    corners = 4 * np.eye(4)
    labels = rng.integers(0, 4, 200)
    X = corners[labels] + rng.uniform(-1, 1, (200, 4))
    clf = Perceptron(keep="last", multiclass=multiclass, tol=None, max_iter=10_000, fit_intercept=False).fit(X, labels)
    assert clf.stop_reason_ == "converged"
    assert clf.score(X, labels) == 1.0
    if multiclass == "joint":
        unit = np.eye(4) / 2
        scores = X @ unit
        rivals = np.where(np.eye(4, dtype=bool)[labels], -np.inf, scores).max(axis=1)
        gamma = (scores[np.arange(200), labels] - rivals).min()
        assert clf.n_updates_ <= 2 * (X**2).sum(axis=1).max() / gamma**2
