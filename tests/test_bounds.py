"""Each bound against runs written out in plain numpy, and each corrected statement against what lecture notes print.

The margins are those of planted separators. ALMA, ROMMA, the ballseptron and the p-norm perceptron are held to their bounds
in test_scaled, Winnow in test_winnow, the second order in test_second_order, budgets in test_budget, risks in
test_conversion, prices in test_pricing.
"""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.estimators.sigma import cap_probability
from rosenblatt.testing import reference
from rosenblatt.testing.strategies import samples, separated
from rosenblatt.theory import bounds, gamma_origin

SEEDS = st.integers(0, 10**6)
MORE = 1 + 1e-9  # what rounding may add


def rows_of(sample):
    """a = y·(x, κ) of a drawn sample that a known vector separates."""
    signs = np.where(sample.labels == 1, 1.0, -1.0)
    return signs[:, None] * np.hstack([sample.X, np.full((len(sample.X), 1), sample.constant)])


def planted(rng, rows=25, features=3, least=0.05):
    """(rows that a unit vector u separates, u, its margin, the radius)."""
    u = rng.standard_normal(features)
    u /= np.linalg.norm(u)
    A = rng.standard_normal((rows, features)) * rng.uniform(0.3, 2.0)
    A *= np.where(A @ u < 0, -1.0, 1.0)[:, None]
    A += np.maximum(0.0, least - A @ u)[:, None] * u
    return A, u, float((A @ u).min()), float(np.linalg.norm(A, axis=1).max())


def perceptron(A, *, delta=0.0, rates=None, start=None, passes=10**5):
    """(updates, last weights) of a perceptron that visits the rows in turn, with the k-th rate `rates(k)`."""
    w, updates = np.zeros(A.shape[1]) if start is None else np.array(start, dtype=float), 0
    for _ in range(passes):
        before = updates
        for a in A:
            if a @ w <= delta:
                updates += 1
                w = w + (1.0 if rates is None else rates(updates)) * a
        if updates == before:
            break
    return updates, w


# The perceptron


@given(separated(most_rows=10), st.sampled_from([0.0, 1.0, 7.0]), st.sampled_from([0.5, 1.0, 4.0]), SEEDS)
def test_updates_from_anywhere_stay_within_the_bound(sample, delta, eta, seed):
    A, rng = rows_of(sample), np.random.default_rng(seed)
    known = {"delta": delta, "rate": eta}
    start = rng.integers(-6, 7, A.shape[1]).astype(float)
    from_zero, w = perceptron(A, delta=delta, rates=lambda k: eta)
    from_start, _ = perceptron(A, delta=delta, rates=lambda k: eta, start=start)
    size, along = float(np.linalg.norm(start)), float(start @ sample.separator)
    assert from_zero <= bounds.novikoff(sample.radius, sample.margin, **known) * MORE
    bound = bounds.novikoff(sample.radius, sample.margin, **known, start=size, along=along)
    assert from_start <= bound * MORE
    assert bound <= bounds.novikoff(sample.radius, sample.margin, **known, start=size) * MORE, "the worst direction"
    least = bounds.final_margin(sample.radius, sample.margin, delta, eta)
    assert (A @ w).min() / np.linalg.norm(w) >= least / MORE
    if from_zero:
        assert sample.margin <= bounds.margin_ceiling(sample.radius, from_zero, delta, eta) * MORE


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0, 10), st.floats(0.1, 10), st.floats(0, 50), st.floats(-1, 1))
def test_the_bound_is_where_the_walls_meet(radius, margin, delta, rate, start, cosine):
    bound = bounds.novikoff(radius, margin, delta=delta, rate=rate, start=start, along=start * cosine)

    def gap(t):
        return math.sqrt(start**2 + t * rate * (rate * radius**2 + 2 * delta)) - (start * cosine + t * rate * margin)

    assert gap(bound) == pytest.approx(0, abs=1e-6 * (1 + start + bound * rate * margin))
    assert gap(bound * 1.01 + 1e-3) < 1e-9
    assert gap(bound * 0.99) > -1e-9


def test_a_margin_costs_more_than_the_bound_without_one():
    """Waterloo CS489/698 has δ in the algorithm and (R/γ)² in the corollary: a row (1) with δ = 3.5 takes four updates."""
    updates, _ = perceptron(np.ones((1, 1)), delta=3.5)
    assert updates == 4 > bounds.novikoff(1.0, 1.0) == 1
    assert updates <= bounds.novikoff(1.0, 1.0, delta=3.5) == 8


def test_a_start_costs_more_than_the_bound_from_zero():
    """IIIT-H SMAI starts from random weights and proves the bound from 0."""
    updates, _ = perceptron(np.ones((1, 1)), start=[-10.0])
    assert updates == 11 > bounds.novikoff(1.0, 1.0)
    assert updates <= bounds.novikoff(1.0, 1.0, start=10.0, along=-10.0) == 21
    assert bounds.novikoff(1.0, 1.0, start=10.0, along=10.0) == 0, "it starts as a separator"


def test_the_bound_is_reached():
    """CMU 10-607 says that mistakes must be less than the bound: one row is one mistake, and so is the bound."""
    assert perceptron(np.array([[3.0, 4.0]]))[0] == 1 == bounds.novikoff(5.0, 5.0)


def test_with_a_constant_feature_the_scale_matters():
    """CMU 10-607 says that it does not. The radius and margin of the rows without the constant do not even bound the
    updates: with x = 9 and 10 on either side of 9.5 it takes many, though the plane at 9.5 has the margin 0.5."""
    A = np.array([[10.0, 1.0], [-9.0, -1.0]])
    updates, _ = perceptron(A)
    assert perceptron(A * [0.1, 1.0])[0] != updates
    radius, gamma = 10.0, 0.5
    assert updates <= bounds.intercept(radius, gamma, offset=-9.5, constant=1.0)
    padded = bounds.padded_margin(gamma, 9.5)
    assert bounds.intercept(radius, gamma, 9.5, 1.0) == pytest.approx(bounds.novikoff(math.hypot(10, 1), padded))


def test_what_is_no_number_is_named():
    margin = gamma_origin([[1.0], [-1.0]], [1, -1])
    with pytest.raises(TypeError, match=r"margin must be a number; got Margin.*; take its `lower`"):
        bounds.novikoff(1.0, margin)
    with pytest.raises(TypeError, match=r"radius must be a number; got \["):
        bounds.novikoff([[1.0]], 1.0)
    with pytest.raises(TypeError, match=r"radius must be a number; got 'x'$"):
        bounds.novikoff("x", 1.0)


def test_too_near_to_count_or_too_far_is_a_number_all_the_same():
    assert bounds.novikoff(1e200, 1e-200) == math.inf
    assert bounds.novikoff(0.0, 1.0) == 0
    assert bounds.novikoff(1.0, 1.0, start=1e8, along=1e8 * (1 - 1e-9)) < 1.1, "no digits are lost"
    assert bounds.final_margin(1.0, 0.5, 0.0) == 0
    assert bounds.margin_ceiling(1.0, 0) == math.inf


@given(SEEDS, st.sampled_from([0.25, 0.5, 0.75]), st.sampled_from([0.0, 0.5]))
def test_diminishing_rates(seed, power, delta):
    A, _, gamma, radius = planted(np.random.default_rng(seed), rows=10, features=2, least=0.3)
    bound = bounds.diminishing(radius, gamma, power, delta=delta, rate=2.0)
    assert perceptron(A, delta=delta, rates=lambda k: 2.0 / k**power)[0] <= bound
    gain = growth = 0.0
    for k in range(1, 4 * int(min(bound, 20_000)) + 2):  # the same sums, one by one
        gain += gamma * 2.0 / k**power
        growth += (2.0 / k**power * radius) ** 2 + 2 * (2.0 / k**power) * delta
        if gain > math.sqrt(growth):
            assert bound == k - 1
            break


@given(SEEDS, st.sampled_from([0.0, 0.02]))
def test_rates_like_1_over_k(seed, delta):
    A, _, gamma, radius = planted(np.random.default_rng(seed), rows=6, features=2, least=0.8)
    bound = bounds.diminishing(radius, gamma, 1.0, delta=delta)
    assert perceptron(A, delta=delta, rates=lambda k: 1 / k, passes=2000)[0] <= bound
    harmonic = growth = 0.0
    for k in range(1, min(int(bound) + 2, 10_000)):
        harmonic, growth = harmonic + 1 / k, growth + radius**2 / k**2 + 2 * delta / k
        if gamma * harmonic > math.sqrt(growth):
            assert k - 1 <= bound, "the sums allow no more"
            break


def test_rates_that_promise_nothing():
    assert bounds.diminishing(1e5, 1e-3, 1.0) == math.inf
    assert bounds.diminishing(1e6, 1e-3, 0.5) == math.inf


@given(SEEDS, st.integers(1, 6), st.sampled_from([0.0, 1.0]))
def test_batches(seed, size, delta):
    A, _, gamma, radius = planted(np.random.default_rng(seed))
    for mean in (False, True):
        w, moves, wrong = np.zeros(A.shape[1]), 0, 0
        while (A @ w <= delta).any():
            for first in range(0, len(A), size):
                rows = A[first : first + size]
                mistakes = rows[rows @ w <= delta]
                if len(mistakes):
                    w = w + (mistakes.mean(axis=0) if mean else mistakes.sum(axis=0))
                    moves, wrong = moves + 1, wrong + len(mistakes)
        if mean:
            assert moves <= bounds.batch_mean(radius, gamma, delta=delta) * MORE
        else:
            assert moves <= wrong <= bounds.batch_sum(radius, gamma, size, delta=delta) * MORE
    assert bounds.batch_sum(radius, gamma, 1) == bounds.batch_mean(radius, gamma) == bounds.novikoff(radius, gamma)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_sums_and_shards_reach_their_bounds(size):
    """The same row so many times: all copies are wrong at once, and the bound for rows one by one is exceeded."""
    rows = np.ones((size, 1))
    assert (rows @ [0.0] <= 0).sum() == size == bounds.batch_sum(1.0, 1.0, size) == bounds.parameter_mixing(1.0, 1.0, size)


@given(SEEDS, st.sampled_from([0.5, 1.0, None]))
def test_intercepts(seed, constant):
    rng = np.random.default_rng(seed)
    A, u, _, _ = planted(rng, features=2)
    offset = float(rng.uniform(-1, 1))
    signs = np.where(rng.random(len(A)) < 0.5, -1.0, 1.0)
    X = signs[:, None] * A - offset * u  # y(⟨u, x⟩ + b) = ⟨u, a⟩
    radius = float(np.linalg.norm(X, axis=1).max())
    gamma = float((signs * (X @ u + offset)).min())
    kappa = radius if constant is None else constant
    padded = signs[:, None] * np.column_stack([X, np.full(len(X), kappa)])
    direction = np.append(u, offset / kappa)
    exact = float((padded @ direction).min() / np.linalg.norm(direction))
    assert bounds.padded_margin(gamma, offset, kappa) == pytest.approx(exact)
    updates, _ = perceptron(padded)
    assert updates <= bounds.intercept(radius, gamma, offset, constant) * MORE
    if abs(offset) <= radius:
        assert updates <= bounds.intercept(radius, gamma, None, constant) * MORE
        assert constant is not None or bounds.intercept(radius, gamma) == pytest.approx(4 * radius**2 / gamma**2)


# Data that nothing separates


@given(SEEDS, st.sampled_from([0.0, 1.5]))
def test_one_pass_over_any_rows(seed, delta):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 3)) + rng.uniform(-0.5, 1.0, 3)
    radius = float(np.linalg.norm(A, axis=1).max())
    updates, w = perceptron(A, delta=delta, passes=1)
    for u in (A.mean(axis=0), w, rng.standard_normal(3)):
        scores = A @ (u / np.linalg.norm(u))
        least, at = bounds.least_freund_schapire(radius, scores, delta=delta)
        assert updates <= least * MORE
        assert least <= len(A) * MORE
        for gamma in np.geomspace(0.01, 100, 30):
            bound = bounds.freund_schapire(radius, gamma, bounds.shortfall(scores, gamma), delta=delta)
            assert least <= bound * (1 + 1e-6)
        if at < math.inf:
            assert bounds.freund_schapire(radius, at, bounds.shortfall(scores, at), delta=delta) == pytest.approx(least)


@given(SEEDS)
def test_without_shortfall_it_is_novikoffs(seed):
    A, u, gamma, radius = planted(np.random.default_rng(seed))
    assert bounds.shortfall(A @ u, gamma) == pytest.approx(0, abs=1e-12)
    assert bounds.freund_schapire(radius, gamma, 0.0, delta=2.0) == pytest.approx(bounds.novikoff(radius, gamma, delta=2.0))
    assert bounds.least_freund_schapire(radius, A @ u).bound <= bounds.novikoff(radius, gamma) * MORE


def test_it_is_about_one_pass():
    A = np.array([[1.0], [-1.0]])
    bound = bounds.least_freund_schapire(1.0, A[:, 0]).bound
    assert perceptron(A, passes=1)[0] <= bound < perceptron(A, passes=3)[0]
    with pytest.raises(ValueError, match="scores must be finite"):
        bounds.least_freund_schapire(1.0, [math.nan])


# Many classes and structures


@given(samples(st.integers(2, 4), most_rows=10), st.sampled_from([0.0, 2.0]))
def test_many_classes_and_structures(sample, delta):
    """Any W of Frobenius norm 1 is a separator with shortfalls; over one pass these add up to Collins's bound, which is the
    multiclass one when there are none."""
    X, labels = reference.padded(sample.X, 1.0), sample.labels
    run = reference.learn(sample.X, labels, sample.classes, [range(len(X))], step=reference.perceptron(delta))
    radius = float(np.linalg.norm(X, axis=1).max())
    W = run.last / max(1e-9, np.linalg.norm(run.last))
    scores = X @ W.T
    leads = [scores[i, label] - np.delete(scores[i], label).max() for i, label in enumerate(labels)]
    if delta == 0:
        gamma = 0.7
        short = bounds.shortfall(np.array(leads), gamma)
        assert run.updates <= bounds.collins(math.sqrt(2) * radius, gamma, short) * MORE
    if min(leads) > 1e-6:
        many = reference.learn(sample.X, labels, sample.classes, [range(len(X))] * 200, step=reference.perceptron(delta))
        assert many.updates <= bounds.multiclass(radius, min(leads), delta=delta) * MORE
        assert bounds.multiclass(radius, min(leads)) == pytest.approx(bounds.collins(math.sqrt(2) * radius, min(leads)))


def test_ties_must_not_go_to_the_label():
    """UCSC NLP 202: from w = 0 every output scores 0; were the label taken then, nothing would ever be learned."""
    run = reference.learn(np.eye(3), [0, 1, 2], 3, [range(3)])
    assert run.updates > 0


@given(SEEDS, st.integers(1, 4))
def test_mixing_parameters(seed, shards):
    A, _, gamma, radius = planted(np.random.default_rng(seed))
    w, mistakes = np.zeros(A.shape[1]), 0
    while (A @ w <= 0).any():
        ends = []
        for part in np.array_split(A, shards):
            count, end = perceptron(part, start=w, passes=1)
            mistakes += count
            ends.append(end)
        w = np.mean(ends, axis=0)
    assert mistakes <= bounds.parameter_mixing(radius, gamma, shards) * MORE


def test_mixing_once_need_not_separate():
    one, other = np.array([[2.0, 2.0], [-1.0, 2.0]]), np.array([[3.0, 1.0], [-2.0, 0.0]])
    w1, w2 = perceptron(one)[1], perceptron(other)[1]
    assert (w1.tolist(), w2.tolist()) == ([2.0, 2.0], [-1.0, 5.0])
    assert (np.vstack([one, other]) @ [-1.0, 4.0] > 0).all(), "separable"
    assert (w1 + w2) / 2 @ other[1] == -1


# Steps that aim at a margin


def aggressive(A, step, passes=3):
    """(wrong predictions, squared losses) of w += step(m, ‖a‖²)·a."""
    w, wrong, squares = np.zeros(A.shape[1]), 0, 0.0
    for a in np.vstack([A] * passes):
        m = a @ w
        wrong, squares = wrong + (m <= 0), squares + max(0.0, 1 - m) ** 2
        w = w + step(m, a @ a) * a
    return wrong, squares


@given(SEEDS, st.sampled_from([0.05, 1.0, 20.0]))
def test_passive_aggressive(seed, C):
    rng = np.random.default_rng(seed)
    A, u, gamma, radius = planted(rng)
    wrong, squares = aggressive(A, lambda m, size: max(0.0, 1 - m) / size)
    assert wrong <= squares * MORE
    assert squares <= bounds.pa(radius, 1 / gamma) * MORE
    A[rng.random(len(A)) < 0.2] *= -1  # nothing need separate these
    for v in (u / gamma, u, np.zeros_like(u)):
        losses = np.maximum(0.0, 1 - np.vstack([A] * 3) @ v)
        norm = float(np.linalg.norm(v))
        wrong, _ = aggressive(A, lambda m, size: min(C, max(0.0, 1 - m) / size))
        assert wrong <= bounds.pa1(radius, norm, C, losses.sum()) * MORE
        _, squares = aggressive(A, lambda m, size: max(0.0, 1 - m) / (size + 0.5 / C))
        assert squares <= bounds.pa2(radius, norm, C, (losses**2).sum()) * MORE
    assert bounds.pa1(radius, 1.0, math.inf) == bounds.pa2(radius, 1.0, math.inf) == bounds.pa(radius, 1.0)
    assert bounds.pa1(radius, 1.0, math.inf, losses=1.0) == math.inf


@given(SEEDS, st.sampled_from([0.0, 0.3, 5.0]))
def test_mira(seed, goal):
    A, _, gamma, radius = planted(np.random.default_rng(seed))
    w, wrong, steps = np.zeros(A.shape[1]), 0, 0.0
    for a in np.vstack([A] * 5):
        m = a @ w
        wrong += m <= 0
        tau = 1.0 if goal == 0 and not w.any() else min(1.0, max(0.0, (goal - m) / (a @ a)))
        w, steps = w + tau * a, steps + tau
    assert wrong <= bounds.mira(radius, gamma, goal) * MORE
    assert goal > 0 or steps <= bounds.mira_steps(radius, gamma) * MORE
    assert bounds.mira(radius, gamma, 0.0) == math.inf


# Winnow


def test_normalised_winnow_needs_both_conditions():
    """Waterloo CS489/698 asks for η > 0 only: test_winnow runs this in a circle."""
    gamma, distance = 0.05, 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert bounds.exponentiated(distance, 1.0, gamma, rate=5.0) == math.inf, "η ≥ 2γ/R²"
    assert bounds.exponentiated(distance, 1.0, gamma, rate=0.05, delta=0.05) == math.inf, "δ ≥ γ"
    assert bounds.normalised_winnow(1.0, gamma, 2, delta=0.05) == math.inf
    A, w, updates = np.array([[1.0, -0.9], [-0.9, 1.0]]), np.array([0.9, 0.1]), 0
    while (A @ w <= 0).any():
        for a in A:
            if a @ w <= 0:
                w = w * np.exp(0.05 * a)
                w, updates = w / w.sum(), updates + 1
    assert 0 < updates <= bounds.exponentiated(distance, 1.0, gamma, rate=0.05)


def test_the_best_rate_of_normalised_winnow():
    best = bounds.normalised_winnow(2.0, 0.3, 50, delta=0.1)
    assert best == pytest.approx(2 * 4 * math.log(50) / 0.04)
    for rate in (0.02, 0.05, 0.08):
        assert bounds.exponentiated(math.log(50), 2.0, 0.3, rate, 0.1) >= best / MORE


# The σ-perceptron


@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-4])
def test_rounds_of_single_starts(failure):
    """Georgia Tech CS 4540 takes log_{4/3}(1/δ) single starts, each good with probability 1/8 or a little more: in many
    dimensions they fail more often than δ."""
    good = cap_probability(10**6)
    printed = math.ceil(math.log(1 / failure, 4 / 3))
    assert (1 - good) ** printed > failure
    assert (1 - good) ** bounds.sigma_rounds(failure) <= failure
    assert (1 - 2 * good) ** bounds.sigma_rounds(failure, pairs=True) <= failure
    assert bounds.sigma_rounds(failure, pairs=True) == printed


# Feasibility


def unit_rows(rng, separable):
    A = rng.standard_normal((12, 3))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    if separable:
        u = np.array([0.6, 0.0, 0.8])
        A *= np.where(A @ u < 0, -1.0, 1.0)[:, None]
        return A, float((A @ u).min())
    return np.vstack([A, -A]), 0.0


@given(SEEDS, st.booleans())
def test_von_neumann(seed, separable):
    A, gamma = unit_rows(np.random.default_rng(seed), separable)
    p = A[0].copy()
    for k in range(1, 200):
        j = int((A @ p).argmin())
        if (m := A[j] @ p) > 0:
            assert separable
            assert gamma == 0 or k <= bounds.von_neumann(gamma) + 1
            return
        assert np.linalg.norm(p) <= bounds.von_neumann_length(k) * MORE
        keep = (1 - m) / (p @ p - 2 * m + 1)
        p = keep * p + (1 - keep) * A[j]
    assert not separable or gamma < 0.1


def test_von_neumann_inside_a_ball():
    A = np.vstack([np.eye(2), -np.eye(2)])  # the hull holds a ball of radius 1/√2
    rng = np.random.default_rng(0)
    A = np.vstack([A, [[math.cos(t), math.sin(t)] for t in rng.uniform(0, 7, 9)]])
    p = A[-1].copy()
    for k in range(1, 30):
        j = int((A @ p).argmin())
        m = A[j] @ p
        keep = (1 - m) / (p @ p - 2 * m + 1)
        p = keep * p + (1 - keep) * A[j]
        assert np.linalg.norm(p) <= bounds.von_neumann_length(k, math.sqrt(0.5)) * MORE
    assert bounds.von_neumann_length(30, math.sqrt(0.5)) < bounds.von_neumann_length(30)


@given(SEEDS)
def test_the_smooth_perceptron(seed):
    A, gamma = unit_rows(np.random.default_rng(seed), True)
    if gamma < 0.005:
        return

    def soft(w, mu):
        z = -A @ w / mu
        z = np.exp(z - z.max())
        return z / z.sum()

    w, mu = A.mean(axis=0), 1.0
    y, k = soft(w, mu), 0
    while (A @ w <= 0).any():
        theta = 2 / (k + 3)
        w = (1 - theta) * (w + theta * A.T @ y) + theta**2 * A.T @ soft(w, mu)
        mu *= 1 - theta
        y = (1 - theta) * y + theta * soft(w, mu)
        k += 1
    assert k <= bounds.smooth(len(A), gamma)


def test_smoothed_analysis_is_an_order():
    order = bounds.smoothed_order(10, 100, 0.1, 0.05)
    assert bounds.smoothed_order(20, 100, 0.1, 0.05) == pytest.approx(8 * order)
    assert bounds.smoothed_order(10, 100, 0.2, 0.05) == pytest.approx(order / 4)
    assert bounds.smoothed_order(10, 100, 0.3, 0.05) == math.inf, "σ² > 1/(2d)"


# Other learners


def test_the_delta_rule_is_stable_below_its_rate_and_not_above():
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((20, 3)), rng.standard_normal(20)
    limit = bounds.stable_rate(np.linalg.eigvalsh(X.T @ X)[-1])
    for share, stable in ((0.99, True), (1.01, False)):
        w = np.full(3, 1.0)
        for _ in range(3000):
            w = w + share * limit * X.T @ (t - X @ w)
        assert (np.linalg.norm(w - np.linalg.lstsq(X, t)[0]) < 1e-6) == stable


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        (bounds.novikoff(math.sqrt(5), 1 / math.sqrt(3)), 15),  # the spam table of Waterloo CS489/698
        (bounds.novikoff(2, 0.5, delta=3, rate=2), (4 + 3) / 0.25),
        (bounds.final_margin(1, 0.5, delta=1, rate=0.5), 0.5 * 2 / (1 + 4)),
        (bounds.margin_ceiling(2, 10, delta=3), 1),
        (bounds.batch_sum(2, 0.5, 3, delta=1, rate=0.5), (12 + 4) / 0.25),
        (bounds.intercept(2, 0.5, offset=3, constant=1), 5 * 10 / 0.25),
        (bounds.freund_schapire(3, 0.5, 2, delta=4, rate=0.5), (5 + 2) ** 2 / 0.25),
        (bounds.multiclass(2, 0.5, delta=1), (8 + 2) / 0.25),
        (bounds.collins(2, 0.5, 1), 36),
        (bounds.parameter_mixing(2, 0.5, 3), 48),
        (bounds.pa(2, 3), 36),
        (bounds.pa1(2, 3, 0.1, 5), 10 * (9 + 1)),
        (bounds.pa2(2, 3, 0.25, 4), 6 * (9 + 2)),
        (bounds.mira(2, 0.5, 9), 36),
        (bounds.mira_steps(2, 0.5), 4),
        (bounds.alma(2, 1, 0.5), 2 * 4 * 9 + 12),
        (bounds.romma(2, 1, 0.5), 16),
        (bounds.ballseptron(2, 1, 0.5), 4.25 / 0.25),
        (bounds.p_norm(2, 0.5, 4, delta=1), (12 + 2) / 0.25),
        (bounds.exponentiated(2, 1, 0.5, 0.2, 0.1), 2 / (0.08 - 0.02)),
        (bounds.balanced_winnow(1, 0.5, 8, math.e**0.5), math.log(16) / (0.25 - 0.125)),
        (bounds.winnow1(8, 2, 2, 4), 2 * 2 * 3 + 2),
        (bounds.winnow2(8, 2, 0.75, 2, 4), 3 * (3 * 2 + 0.25 * 4) / 0.5 + 4),
        (bounds.littlestone(8, 2, 0.5, 4), 32 * 2 + (10 + 56 * math.log(4)) * 2),
        (bounds.spectral([3.0, 8.0], 1, 2, 5, losses=1.5, near=1), 0.5 + 3 * math.sqrt(math.log(36) + 1)),
        (bounds.sigma_updates(100, 0.6), math.log(100) / math.log(1 / 0.64)),
        (bounds.forgetron(100, 1, 2), 10),
        (bounds.forgetron(82, 1, 2), math.inf),
        (bounds.forgetron(100, 2, 2), math.inf),
        (bounds.projectron(2, 3, 0.25), (2 + math.sqrt(10)) ** 2),
        (bounds.projectron(2, 3, 0.5), math.inf),
        (bounds.projectron_plus(1, 3, 0.25), 14),
        (bounds.leave_one_out(5, 9), 1),
        (bounds.convex_risk(5, 50, math.exp(-1), largest=2), 0.1 + 2 * 0.2),
        (bounds.survivor_risk(8, 10, 10 / math.e**4), 0.5),
        (bounds.suffix_risk(5, 9, 20 / math.e**4), 5 / 9 + 4),
        (bounds.von_neumann(0.5), 4),
        (bounds.von_neumann_length(4), 0.5),
        (bounds.von_neumann_length(4, math.sqrt(0.5)), 0.25),
        (bounds.smooth(10, 0.5), 4 * math.sqrt(math.log(10)) - 1),
        (bounds.stable_rate(4), 0.5),
        (bounds.refusals(2, 1, 0.5, 0.5), 16),
        (bounds.refusals(2, 1, 0.5, 1.0), math.inf),
    ],
)
def test_the_formulas(bound, value):
    assert bound == pytest.approx(value)


# What is refused

GOOD = {
    "along": 0.0, "offset": 0.5, "margin": 0.1, "C": 1.0, "power": 0.5, "alpha": 0.5, "gap": 0.5, "sigma": 0.1,
    "failure": 0.1, "p": 2.0, "factor": 1.5, "ball": 0.05, "distance": 0.1, "inscribed": 0.5, "eigenvalues": [1.0, 2.0],
    "spreads": [2.0, 1.0], "pairs": False, "delta": 0.01, "rate": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("name", bounds.THEOREMS)
def test_every_theorem_takes_numbers_that_make_sense_and_no_others(name):
    theorem = bounds.THEOREMS[name]
    arguments = {argument: GOOD.get(argument, 2) for argument in inspect.signature(theorem).parameters}
    answer = theorem(**arguments)
    assert isinstance(answer, int | float)
    assert answer >= 0
    for argument in arguments:
        if argument not in bounds.QUANTITIES:
            continue
        quantity = bounds.QUANTITIES[argument]
        wrong = [math.nan, -math.inf, quantity.low - 1, *([quantity.low] if quantity.open_low else [])]
        wrong += [quantity.high + 1] if quantity.high < math.inf else []
        wrong += [quantity.low + 0.5] if quantity.whole else []
        for value in wrong:
            with pytest.raises(ValueError, match=f"^{argument} must be a .*; got "):
                theorem(**(arguments | {argument: value}))
    assert theorem.__doc__


def test_refusals_say_what_to_do():
    with pytest.raises(ValueError, match=r"margin must be a number > 0 and finite; got 0.*; .*see freund_schapire"):
        bounds.novikoff(1.0, 0)
    with pytest.raises(ValueError, match=r"along must be ⟨w₀, u⟩ .* at most ‖w₀‖ = 1 in size; got 2.0"):
        bounds.novikoff(1.0, 1.0, start=1.0, along=2)
    with pytest.raises(ValueError, match=r"eigenvalues must be finite and not negative.*got .*-1.0"):
        bounds.spectral([1.0, -1.0], 1.0, 1.0, 1.0)


@pytest.mark.parametrize("name", bounds.THEOREMS)
def test_every_argument_of_a_theorem_is_documented(name):
    theorem = bounds.THEOREMS[name]
    for argument in inspect.signature(theorem).parameters:
        assert f"\n{argument} : " in theorem.__doc__


def test_boundedness_of_rows_of_rank_three_is_the_recurrence_written_out():
    """R = 1 and spreads of 1: D₂ = 1 + L₂ + 1 with L₂ = 2·2·√2·8, and q³⁻¹ with q = 4√2·D₂."""
    before = 1 + (2 * (1 + 1) * math.sqrt(2) * 8 + 1)
    reach = 2 * (before**2 + 1) * math.sqrt(3) * (4 * math.sqrt(2) * before) ** 2 + 1
    assert bounds.boundedness(1.0, [1.0, 1.0, 1.0]) == pytest.approx(reach + before, rel=1e-12)
