"""The exponential instance is run by a perceptron of a dozen lines in Python's integers; margins are held against a
minimum-norm problem that scipy's non-negative least squares solves."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import nnls

from rosenblatt.exact.certificates import Interior
from rosenblatt.exact.solve import alternative
from rosenblatt.theory.hard import (
    exponential,
    exponential_counts,
    exponential_epochs,
    exponential_updates,
    orthogonal,
    smoothed,
    smoothing,
    with_margin,
)
from rosenblatt.theory.signed import read


def perceptron(X, y, wrong=lambda score, label: label * score <= 0, order=None):
    """(updates, epochs with the clean one, weights, counts) of the plain algorithm from 0."""
    w, counts, epochs, clean = [0] * len(X[0]), [0] * len(X), 0, False
    while not clean:
        clean, epochs = True, epochs + 1
        for i in order(len(X)) if order else range(len(X)):
            if wrong(sum(a * b for a, b in zip(X[i], w, strict=True)), y[i]):
                w = [a + y[i] * b for a, b in zip(w, X[i], strict=True)]
                counts[i] += 1
                clean = False
    return sum(counts), epochs, w, counts


def predicts(zero):
    """The test "update if the predicted label is wrong", with the sign of 0 as given."""
    return lambda score, label: (zero if score == 0 else 1 if score > 0 else -1) != label


def integers(instance):
    return instance.X.astype(int).tolist(), instance.y.tolist()


def largest_margin(A):
    """max over unit u of min A u: min ‖w‖ subject to A w ≥ 1, as Lawson and Hanson's LDP."""
    E, f = np.vstack([A.T, np.ones(len(A))]), np.append(np.zeros(A.shape[1]), 1.0)
    residual = E @ nnls(E, f)[0] - f
    return 1 / np.linalg.norm(residual[:-1] / residual[-1])


# n: updates, epochs, updates with sign(0) = +1 and the prediction test, with sign(0) = −1
TABLE = {
    1: (1, 2, 0, 1),
    2: (5, 4, 2, 3),
    3: (21, 12, 6, 15),
    4: (85, 44, 30, 55),
    5: (341, 172, 110, 231),
    6: (1365, 684, 462, 903),
    7: (5461, 2732, 1806, 3655),
    8: (21845, 10924, 7310, 14535),
}


@pytest.mark.parametrize("n", TABLE)
def test_the_exponential_instance_takes_exactly_as_long_as_the_theorem_says(n):
    instance = exponential(n)
    X, y = integers(instance)
    updates, epochs, w, counts = perceptron(X, y)
    assert (updates, epochs) == TABLE[n][:2] == (exponential_updates(n), exponential_epochs(n))
    assert updates == (4**n - 1) // 3 >= 2 ** (n - 1)
    assert w == [2**i for i in range(n)] == instance.separator.tolist()
    assert counts[:n] == exponential_counts(n)
    X, y = X[:n], y[:n]  # the mirror image that n = 1 has in addition proposes nothing new, but a prediction test sees it
    assert perceptron(X, y, predicts(1))[0] == TABLE[n][2]
    assert perceptron(X, y, predicts(-1))[0] == TABLE[n][3]


@pytest.mark.parametrize("n", range(2, 7))
def test_in_no_order_are_there_more_or_fewer(n):
    X, y = integers(exponential(n))
    rng = np.random.default_rng(n)
    orders = {
        "reverse": lambda m: range(m)[::-1],
        "shuffled": lambda m: rng.permutation(m).tolist(),
        "drawn": lambda m: [*rng.integers(m, size=m).tolist(), *range(m)],  # all of them last, to know when to stop
    }
    for order in orders.values():
        updates, _, w, counts = perceptron(X, y, order=order)
        assert (updates, counts) == (exponential_updates(n), exponential_counts(n))
        assert w == [2**i for i in range(n)]


def test_a_margin_multiplies_the_updates():
    X, y = integers(exponential(5))
    for margin in (0, 1, 2, 2.5, 7):
        updates, _, w, _ = perceptron(X, y, lambda score, label, margin=margin: label * score <= margin)
        assert updates == exponential_updates(5, margin) == (int(margin) + 1) * 341
        assert w == [(int(margin) + 1) * 2**i for i in range(5)]


@pytest.mark.parametrize("n", range(1, 9))
def test_the_bound_is_n_times_the_truth(n):
    instance = exponential(n)
    low, high = instance.squared_margins()
    assert low == high == Fraction(3, 4**n - 1)
    assert instance.margin == pytest.approx(sqrt(low), rel=1e-15)
    assert instance.radius**2 == pytest.approx((instance.X**2).sum(axis=1).max(), rel=1e-15)
    assert instance.bound() == pytest.approx(n * exponential_updates(n), rel=1e-13)
    if 1 < n < 7:
        assert instance.margin == pytest.approx(largest_margin(instance.y[:, None] * instance.X), rel=1e-9)


def test_rows_and_labels_are_those_of_the_notes():
    X, y = integers(exponential(5))
    assert X == [[1, 0, 0, 0, 0], [1, -1, 0, 0, 0], [-1, -1, 1, 0, 0], [1, 1, 1, -1, 0], [-1, -1, -1, -1, 1]]
    assert y == [1, -1, 1, -1, 1]
    assert not np.signbit(exponential(5).X[exponential(5).X == 0]).any()
    assert integers(exponential(1)) == ([[1], [-1]], [1, -1])
    assert np.isfinite(exponential(500).X).all()
    assert exponential(500).bound() > 1e300


@pytest.mark.parametrize(("n", "updates"), [(1, 1), (2, 2), (3, 10), (4, 36), (5, 101), (6, 393), (7, 991)])
def test_rows_of_length_one_are_easier_and_still_exponential(n, updates):
    with localcontext() as context:
        context.prec = 60
        rows = [
            [Decimal(int(v)) / Decimal(i + 1).sqrt() for v in row] for i, row in enumerate(exponential(n).X[:n].tolist())
        ]
        y = exponential(n).y[:n].tolist()
        found = perceptron(rows, y, lambda score, label: label * score <= Decimal("1e-40"))
    assert found[0] == updates


@pytest.mark.parametrize("labels", [None, [1, 1, -1, 1, -1, -1, 1]])
def test_orthogonal_rows_attain_the_bound(labels):
    instance = orthogonal(7, radius=3.0, y=labels)
    updates, _, _, counts = perceptron(instance.X.tolist(), instance.y.tolist())
    assert updates == 7 == round(instance.bound())
    assert counts == [1] * 7
    assert instance.squared_margins() == (Fraction(9, 7), Fraction(9, 7))
    assert instance.margin == pytest.approx(3 / sqrt(7), rel=1e-15)
    assert largest_margin(instance.y[:, None] * instance.X) == pytest.approx(instance.margin, rel=1e-9)


@given(
    st.integers(5, 40), st.integers(1, 6), st.sampled_from([1e-3, 0.1, 0.7, 1.0]), st.sampled_from([1.0, 2.5, 1e-6]),
    st.booleans(), st.integers(0, 10**6),
)  # fmt: skip
@example(7, 2, 1e-3, 1.0, True, 369719)  # turned by very little
def test_margin_and_radius_are_those_asked_for(rows, features, ratio, radius, rotated, seed):
    instance = with_margin(rows, features, margin=ratio * radius, radius=radius, rotated=rotated, random_state=seed)
    assert instance.X.shape == (rows, features)
    assert set(instance.y.tolist()) == {-1, 1}
    A = instance.y[:, None] * instance.X
    lengths = np.linalg.norm(A, axis=1)
    assert lengths.max() == pytest.approx(radius, rel=1e-14)
    low, high = instance.squared_margins()
    assert low <= high
    assert sqrt(low) == pytest.approx(instance.margin, abs=1e-14 * radius)
    assert sqrt(high) == pytest.approx(instance.margin, abs=1e-14 * radius)
    if not rotated:
        assert low == high == Fraction(instance.margin) ** 2
        assert max(sum(Fraction(v) ** 2 for v in row) for row in A.tolist()) == Fraction(radius) ** 2


@pytest.mark.parametrize("features", [2, 5, 12])
@pytest.mark.parametrize("rotated", [False, True])
def test_an_independent_solver_finds_the_same_margin_with_and_without_a_constant(features, rotated):
    instance = with_margin(40, features, margin=0.05, radius=2.0, rotated=rotated, random_state=features)
    A = instance.y[:, None] * instance.X
    assert largest_margin(A) == pytest.approx(0.05, abs=1e-9)
    for constant in (0.1, 1.0, 10.0):
        assert largest_margin(read(instance.X, instance.y, constant).A) == pytest.approx(0.05, abs=1e-9)
    # With an intercept: half the distance of the hulls. Differences of a positive and a negative row are rows of margin 2γ.
    positive, negative = instance.X[instance.y > 0], instance.X[instance.y < 0]
    pairs = (positive[:, None, :] - negative[None, :, :]).reshape(-1, features)
    assert largest_margin(pairs) / 2 == pytest.approx(0.05, abs=1e-9)
    assert isinstance(alternative(A), Interior)


def test_mistakes_stay_within_the_bound_and_the_same_seed_gives_the_same_rows():
    first, second = (with_margin(60, 3, margin=0.05, random_state=4) for _ in range(2))
    assert np.array_equal(first.X, second.X)
    assert not np.array_equal(first.X, with_margin(60, 3, margin=0.05, random_state=5).X)
    updates = perceptron(first.X.tolist(), first.y.tolist())[0]
    assert 0 < updates <= first.bound() == pytest.approx(400)
    assert first.bound(delta=0.5, rate=0.5) == pytest.approx((1 + 2) / 0.05**2)


def test_noise_makes_the_exponential_instance_easy():
    n = 6
    instance = exponential(n)
    found = smoothing(instance.X / sqrt(n), instance.y, [0.0, 0.01, 0.1, 0.3], constant=0.0, draws=6)
    assert found.separated.all()  # n rows in n dimensions are independent, almost surely, and then separable
    assert (found.updates[0] == exponential_updates(n)).all()
    medians = np.median(found.updates, axis=1)
    assert (np.diff(medians) < 0).all()
    assert medians[-1] < exponential_updates(n) / 100
    # Each count is that of the plain algorithm on the same noise.
    rng = np.random.default_rng(0)
    for k, sigma in enumerate(found.sigma):
        for draw in range(6):
            X = smoothed(instance.X / sqrt(n), sigma, rng)
            if k == 3:
                exactly = [[Fraction(v) for v in row] for row in X.tolist()]
                assert perceptron(exactly, instance.y.tolist())[0] == found.updates[k, draw]


def test_runs_that_do_not_separate_are_given_up_and_said_so():
    X, y = [[1.0], [1.0], [-1.0]], [1, -1, 1]
    found = smoothing(X, y, [0.0], constant=0.0, draws=2, max_updates=50)
    assert not found.separated.any()
    assert (found.updates >= 50).all()
    assert (found.updates < 50 + 3).all()


def test_noise_has_the_size_asked_for():
    X = np.zeros((200, 50))
    assert np.array_equal(smoothed(X, 0.0), X)
    assert smoothed(X, 0.5).std() == pytest.approx(0.5, rel=0.05)
    assert np.array_equal(smoothed(X, 0.5, 3), smoothed(sp.csr_array(X), 0.5, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exponential(0), "n must be a whole number ≥ 1 .*; got 0"),
        (lambda: exponential(2.5), "whole number"),
        (lambda: exponential(501), "≤ 500; got 501"),
        (lambda: orthogonal(1), "≥ 2; got 1"),
        (lambda: orthogonal(3, radius=-1.0), "radius must be a number > 0"),
        (lambda: orthogonal(3, y=[1, 1, 1]), "both of them"),
        (lambda: with_margin(4, 2, margin=0.1), "rows must be a whole number ≥ 5"),
        (lambda: with_margin(5, 0, margin=0.1), "features"),
        (lambda: with_margin(5, 2, margin=0.0), "margin must be a number > 0 and ≤ 1; got 0"),
        (lambda: with_margin(5, 2, margin=2.0), "at most the radius"),
        (lambda: with_margin(5, 2, margin=0.1, radius=float("nan")), "radius must be a number > 0"),
        (lambda: smoothed([[1.0]], -1.0), "sigma must be a number ≥ 0"),
        (lambda: smoothed([[np.nan]], 1.0), "NaN"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
