"""The weights never get longer than the bound: walks in every order, in integers, on rows that may be separable or not."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.errors import InvalidData, InvalidParameter, NumericOverflow
from rosenblatt.theory import bounds, find_cycle, length_bound
from rosenblatt.theory.hard import exponential

small = st.integers(-3, 3)


def longest(A, order, *, delta=0, start=None, updates=3000, seed=0):
    """The largest squared length of a run in integers, in the order named."""
    rng = np.random.default_rng(seed)
    w = np.zeros(A.shape[1], dtype=np.int64) if start is None else np.array(start)
    largest, place = int(w @ w), 0
    for _ in range(updates):
        products = A @ w
        wrong = np.flatnonzero(products <= delta)
        if not len(wrong):
            break
        if order == "cyclic":
            later = wrong[wrong >= place]
            i = int(later[0] if len(later) else wrong[0])
            place = (i + 1) % len(A)
        elif order == "most-violated":
            i = int(products.argmin())
        elif order == "longest":  # an adversary: whatever makes w longest
            i = int(max(wrong, key=lambda j: 2 * products[j] + A[j] @ A[j]))
        else:
            i = int(rng.choice(wrong))
        w = w + A[i]
        largest = max(largest, int(w @ w))
    return largest


@settings(max_examples=40)
@given(
    st.integers(1, 3),
    st.integers(1, 6),
    st.sampled_from(["cyclic", "most-violated", "longest", "random"]),
    st.integers(0, 5),
    st.data(),
)
def test_no_run_is_longer(d, m, order, delta, data):
    A = np.array(data.draw(st.lists(st.lists(small, min_size=d, max_size=d), min_size=m, max_size=m)), dtype=np.int64)
    start = data.draw(st.lists(st.integers(-20, 20), min_size=d, max_size=d))
    found = length_bound(A.tolist(), [1] * m, constant=0, delta=delta, start=start)
    assert math.sqrt(longest(A, order, delta=delta, start=start, updates=800)) <= found.bound


@pytest.mark.parametrize("order", ["cyclic", "most-violated", "longest", "random"])
def test_long_runs_on_rows_that_nothing_separates(order):
    A = np.array([[3, 0], [-2, 1], [-1, -3], [0, 1], [1, -2]])
    found = length_bound(A.tolist(), [1] * 5, constant=0)
    largest = max(longest(A, order, updates=20_000, seed=seed) for seed in range(3))
    assert math.sqrt(largest) <= found.bound < 5000


@given(st.integers(1, 9), st.lists(st.integers(-6, 6).filter(bool), min_size=1, max_size=6), st.integers(0, 9))
def test_in_one_dimension_the_bound_is_nearly_attained(seed, numbers, delta):
    A = np.array(numbers)[:, None]
    found = length_bound(A.tolist(), [1] * len(numbers), constant=0, delta=delta)
    assert found.bound == pytest.approx(delta / min(map(abs, numbers)) + max(map(abs, numbers)))
    assert math.sqrt(longest(A, "random", delta=delta, updates=300, seed=seed)) <= found.bound


def test_the_rate_scales_it():
    X, y = [[3, 0], [2, 1], [1, 3], [0, -1]], [1, -1, 1, 1]
    plain = length_bound(X, y, delta=2.0, start=[1.0, 2.0, 2.0])
    scaled = length_bound(X, y, delta=6.0, rate=3.0, start=[3.0, 6.0, 6.0])
    assert scaled.bound == pytest.approx(3 * plain.bound)
    assert scaled.spreads == plain.spreads
    assert find_cycle(X, y).largest <= length_bound(X, y).bound


@settings(max_examples=20)
@given(st.integers(2, 3), st.integers(2, 5), st.data())
def test_spreads_are_the_least_singular_values(d, m, data):
    A = np.array(data.draw(st.lists(st.lists(small, min_size=d, max_size=d), min_size=m, max_size=m)), dtype=float)
    found = length_bound(A, [1] * m, constant=0)
    assert len(found.spreads) == np.linalg.matrix_rank(A)
    for r, spread in enumerate(found.spreads, 1):
        independent = [A[list(s)] for s in combinations(range(m), r) if np.linalg.matrix_rank(A[list(s)]) == r]
        assert spread == pytest.approx(min(np.linalg.svd(B, compute_uv=False)[-1] for B in independent), rel=1e-9)
        assert spread > 0


def test_the_formula_is_the_one_printed():
    R, (one, two) = 3.0, (2.0, 0.5)
    assert bounds.boundedness(R, [one]) == R
    assert bounds.boundedness(R, [one], delta=4.0) == R + 2
    assert bounds.boundedness(R, [one, two]) == pytest.approx((32 * math.sqrt(2) * R**2 / (one * two) + 2) * R)
    assert bounds.boundedness(R, [one], start=4.0) == 5
    assert bounds.boundedness(0.0, []) == 0
    assert bounds.boundedness(R, [1e-3] * 9) == math.inf


def test_hard_rows_stay_within_it():
    for n in (1, 2, 3):
        hard = exponential(n)
        assert math.sqrt((4**n - 1) / 3) <= length_bound(hard.X, hard.y, constant=0).bound


def test_refusals_say_what_to_do():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidData, match="at most 200,000 sets of up to 9 different rows"):
        length_bound(rng.normal(size=(40, 8)), rng.choice([-1, 1], 40))
    with pytest.raises(InvalidData, match="too nearly dependent"):
        length_bound([[1.0, 0], [1.0, 1e-13]], [1, 1], constant=0)
    with pytest.raises(InvalidParameter, match="spreads must be a number > 0"):
        bounds.boundedness(1.0, [1.0, 0.0])


@pytest.mark.parametrize("start", [[1, 2], [1, 2, np.nan], "start", [10**400, 0, 0]])
def test_a_start_has_a_weight_for_each_feature_and_the_constant(start):
    with pytest.raises(InvalidParameter, match="start must be 3 finite numbers"):
        length_bound([[0, 1], [1, 0]], [1, -1], start=start)


def test_rows_whose_squares_overflow_are_bounded():
    assert length_bound([[1e200, 0], [0, 1e200]], [1, -1], constant=0).radius == pytest.approx(1e200)
    assert length_bound([[3.0, 0], [0, 4]], [1, -1], constant=0, start=[3e200, 4e200]).bound >= 5e200


@pytest.mark.parametrize("row", [[10**400, 0], [1.7e308, 1.7e308]])
def test_rows_that_are_too_long_for_floats_are_refused(row):
    with pytest.raises(NumericOverflow, match="the length of a row of X is too large for floats"):
        length_bound([row], [1], constant=0)
