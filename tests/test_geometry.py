"""Projections, distances, margins; and γ, between two bounds that anyone can check."""

import math
import re
import warnings
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from sklearn.svm import SVC
from worked import EIGHT, EIGHT_Y, SIX, SIX_Y, SPAM, SPAM_Y

from rosenblatt import Perceptron
from rosenblatt.testing.strategies import samples, separated
from rosenblatt.theory import find_cycle, geometry, nearest, separability, trace
from rosenblatt.theory.cycles import Converged
from rosenblatt.theory.geometry import (
    NotSeparable,
    distance,
    gamma_affine,
    gamma_origin,
    gamma_padded,
    margins,
    projection,
    radius,
)
from rosenblatt.theory.nearest import Cloud, Support, in_floats, in_integers

ALL = (gamma_origin, gamma_padded, gamma_affine)


def padded(X, y, constant=1.0):
    return y[:, None] * np.column_stack([X, np.full(len(X), constant)])


def separable(A):
    """Whether some w has ⟨a, w⟩ ≥ 1 for all rows: a linear program says."""
    return linprog(np.zeros(A.shape[1]), -A, -np.ones(len(A)), bounds=(None, None)).status == 0


def independent_gamma(A):
    """The distance of the origin to the hull of the rows, by non-negative least squares (Lawson and Hanson 1974, chapter
    23: least distance programming)."""
    E = np.vstack([A.T, np.ones(len(A))])
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, _ = nnls(E, f, maxiter=10_000)
    r = E @ u - f
    w = -r[:-1] / r[-1]
    return 1 / np.linalg.norm(w)


def planted(rng, rows, features, gap):
    """Two classes with a slab of half the width `gap` between them, many rows on its faces."""
    u = rng.normal(size=features)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(rows, features))
    v = X @ u
    y = np.sign(v)
    X += np.outer(y * (gap + np.abs(v) * (rng.random(rows) > 0.5)) - v, u)
    return X, y


def exponential(n):
    """Rows e₁ and (−1, …, −1, 1, 0, …): the widest separator is (1, 2, 4, …), in a labelling with two labels."""
    y = np.where(np.arange(n) % 2, -1.0, 1.0)
    return y[:, None] * (np.eye(n) - np.tril(np.ones((n, n)), -1)), y


# ── points and hyperplanes ───────────────────────────────────────────────────────────────────────────────────────────────


def test_projection_leaves_a_remainder_at_right_angles():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(7, 3)), rng.normal(size=3)
    p = projection(u, onto=v)
    assert np.allclose((u - p) @ v, 0, atol=1e-14)
    assert np.allclose(np.linalg.matrix_rank(np.vstack([p, v])), 1)
    assert np.array_equal(projection(u[0], onto=v), p[0])
    assert projection([1.0, 1.0], onto=[0.0, 1e300]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="onto must be one vector of finite numbers, not all 0"):
        projection([1.0, 2.0], onto=[0.0, 0.0])


def test_distance_is_to_the_nearest_point_of_the_hyperplane():
    rng = np.random.default_rng(0)
    w, b, X = rng.normal(size=4), 0.7, rng.normal(size=(9, 4))
    foot = X - projection(X, onto=w) - b * w / (w @ w)
    assert np.allclose(foot @ w + b, 0, atol=1e-13)
    assert np.allclose(distance(X, w, b), np.linalg.norm(X - foot, axis=1))
    assert np.allclose(distance(X, 1e200 * w, 1e200 * b), distance(X, w, b))
    assert np.allclose(distance(sp.csr_array(X), w, b), distance(X, w, b))
    assert distance([5.0], w=[-2.0]) == 5


def test_margin_of_an_example_is_negative_on_the_wrong_side_and_zero_for_a_zero_row():
    X, w = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [2.0, 0.0]
    assert margins(X, [1, -1, 1], w).tolist() == [1, -1, 0]
    assert margins(X, ["b", "a", "b"], w).tolist() == [1, -1, 0]
    assert margins(X, [1, 1, 1], w).tolist() == [1, 1, 0], "one class is enough where the signs are given"
    with pytest.raises(ValueError, match="two labels"):
        margins(X, [3, 3, 3], w)


def test_radius_is_about_the_origin_and_counts_the_constant():
    far = np.array([[10.0, 0.0], [11.0, 0.0]])
    assert radius(far) == 11, "about the mean it would be ½"
    assert radius(far, constant=2.0) ** 2 == pytest.approx(125)
    assert radius(sp.csr_array(far)) == 11
    assert radius([[1e300, 1e300]]) == pytest.approx(2**0.5 * 1e300)
    assert Fraction(radius([[1.0, 1.0]])) ** 2 >= 2 > Fraction(np.nextafter(radius([[1.0, 1.0]]), 0)) ** 2
    assert radius([[1.0, 2.0**-200]]) == np.nextafter(1, 2), "a little more than 1 is not 1"
    with pytest.raises(ValueError, match="finite"):
        radius(far, constant=inf)


# ── γ of the worked examples ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("X", "y", "gamma", "square", "constant", "square_radius"),
    [
        (SPAM, SPAM_Y, gamma_padded, Fraction(1, 3), 1.0, 5),
        (SIX, SIX_Y, gamma_origin, Fraction(1), 0.0, 5),
        (EIGHT, EIGHT_Y, gamma_origin, Fraction(2), 0.0, 10),
    ],
)
def test_margin_and_radius_of_the_worked_examples(X, y, gamma, square, constant, square_radius):
    margin = gamma(X, y)
    assert Fraction(margin.lower) ** 2 <= square <= Fraction(margin.upper) ** 2
    assert margin.gap < 1e-14
    assert margin.verify(X, y)
    assert radius(X, constant) ** 2 == pytest.approx(square_radius)


@pytest.mark.parametrize("n", [2, 5, 12, 25, 40, 60])
def test_margin_of_the_exponential_instance(n):
    X, y = exponential(n)
    margin = gamma_origin(X, y)
    square = Fraction(3, 4**n - 1)
    assert Fraction(margin.lower) ** 2 <= square <= Fraction(margin.upper) ** 2
    assert margin.gap <= 1e-9
    if n <= 25:
        assert np.allclose(margin.w / margin.w[0], 2.0 ** np.arange(n), rtol=1e-6)


def test_three_intercepts_three_numbers():
    X, y = np.array([[1.0, 0.0], [4.0, 1.0]]), np.array([-1, 1])
    origin, constant, affine = (gamma(X, y) for gamma in ALL)
    assert origin.upper < constant.lower < constant.upper < affine.lower
    assert affine.lower <= 10**0.5 / 2 <= affine.upper
    assert affine.w == pytest.approx(np.array([3.0, 1.0]) / 10**0.5)
    assert affine.b == pytest.approx(-8 / 10**0.5)
    assert (margins(X, y, origin.w).min(), origin.b) == (pytest.approx(origin.lower), 0.0)
    assert gamma_padded(X, y, constant=1e-4).upper == pytest.approx(origin.lower, rel=1e-6)
    assert gamma_padded(X, y, constant=1e4).lower == pytest.approx(affine.upper, rel=1e-6)


# ── γ of any data ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(separated())
def test_bracket_holds_what_others_find(data):
    y = np.where(data.labels == 1, 1.0, -1.0)
    margin = gamma_padded(data.X, data.labels, data.constant) if data.constant else gamma_origin(data.X, data.labels)
    A = padded(data.X, y, data.constant) if data.constant else y[:, None] * data.X
    assert data.margin * (1 - 1e-12) <= margin.upper
    assert margin.gap <= 1e-9
    assert margin.verify(data.X, data.labels)
    assert margin.verify(sp.csr_array(data.X), data.labels)
    assert margin.lower * (1 - 1e-7) <= independent_gamma(A) <= margin.upper * (1 + 1e-7)
    assert margin.upper <= radius(data.X, data.constant)
    found = margins(data.X, y, margin.w, margin.b).min()
    assert found >= margin.lower * (1 - 1e-9), "the affine margin of a padded separator is no smaller"


@given(samples(classes=st.just(2)))
def test_every_set_has_a_bracket_or_rows_that_add_up_to_zero(data):
    y = np.where(data.labels == 1, 1.0, -1.0)
    found = []
    for gamma in ALL:
        A = y[:, None] * data.X if gamma is gamma_origin else padded(data.X, y)
        if separable(A):
            margin = gamma(data.X, data.labels)
            assert margin.gap <= 1e-9
            assert margin.verify(data.X, data.labels)
            found.append(margin)
        else:
            with pytest.raises(NotSeparable) as refusal:
                gamma(data.X, data.labels)
            assert refusal.value.certificate.verify(A)
            found.append(None)
    origin, constant, affine = found
    assert (constant is None) == (affine is None)
    if origin:
        assert origin.lower <= constant.upper
    if constant:
        assert constant.lower <= affine.upper
        assert constant.upper >= affine.lower / np.sqrt(1 + affine.b**2) * (1 - 1e-12)
        R = radius(data.X)
        assert abs(affine.b) <= R * (1 + 1e-9), "the widest slab has its middle between the hulls"
        assert gamma_padded(data.X, data.labels, constant=R).upper >= affine.lower / 2**0.5 * (1 - 1e-12)


@pytest.mark.parametrize("gamma", ALL)
@pytest.mark.parametrize(("rows", "features"), [(40, 3), (90, 6)])
def test_agrees_with_other_solvers(gamma, rows, features):
    rng = np.random.default_rng(rows)
    y = np.where(np.arange(rows) % 2, 1, -1)
    X = rng.normal(size=(rows, features)) + np.outer(y, np.full(features, 2.0))
    margin = gamma(X, y)
    assert margin.verify(X, y)
    assert margin.gap <= 1e-9
    assert gamma(sp.csr_array(X), y).lower == pytest.approx(margin.lower, rel=1e-9)
    if gamma is gamma_affine:
        svm = SVC(kernel="linear", C=1e10, tol=1e-9, max_iter=1_000_000).fit(X, y)
        assert 1 / np.linalg.norm(svm.coef_) == pytest.approx(margin.lower, rel=1e-6)
        assert svm.coef_[0] / np.linalg.norm(svm.coef_) == pytest.approx(margin.w, abs=1e-6)
        assert svm.intercept_[0] / np.linalg.norm(svm.coef_) == pytest.approx(margin.b, abs=1e-6)
    else:
        A = padded(X, y) if gamma is gamma_padded else y[:, None] * X
        assert independent_gamma(A) == pytest.approx(margin.lower, rel=1e-6)


def test_rows_are_taken_up_as_they_are_missed(monkeypatch):
    """More rows than are looked at at a time, most of them where no first guess looks."""
    rng = np.random.default_rng(3)
    X, y = planted(rng, 6000, 12, 0.01)
    for gamma in ALL:
        margin = gamma(X, y)
        assert margin.gap <= 1e-9
        assert margin.verify(X, y)
        assert margin.lower >= 0.01 * (1 - 1e-9) if gamma is not gamma_padded else margin.lower > 0
    X, y = planted(rng, 6000, 12, 3.0)
    monkeypatch.setattr(nearest, "_ENTRIES", 0)  # 50 rows at a time
    found = in_floats(Cloud(y[:, None] * X, y, free=False))
    assert margins(X, y, np.array(found.w, dtype=float)).min() == pytest.approx(gamma_origin(X, y).lower, rel=1e-9)


def test_what_a_free_intercept_takes_from_one_class_it_gives_to_the_other():
    rng = np.random.default_rng(0)
    y = np.array([1.0, -1, 1, -1, 1, -1])
    V = np.column_stack([rng.normal(size=(6, 7)), y])
    support = Support(V, free=True)
    for i in range(5):
        support.approach(i)
        support.append(i)
    w, weights = support.solution()
    rate, fall = support.approach(5)
    assert np.allclose(V[:5] @ w, 1)
    assert np.isclose(weights @ y[:5], 0)
    assert np.isclose(fall @ y[:5], y[5])
    moved = V[5, :-1] - fall @ V[:5, :-1]  # of w, for each unit of weight; its intercept keeps the support touched
    shift = (V[:5, :-1] @ moved) * y[:5]
    assert np.allclose(shift, shift[0])
    assert np.isclose(rate, V[5, :-1] @ moved - y[5] * shift[0])


@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("gamma", ALL)
def test_thin_slabs(gamma, gap):
    X, y = planted(np.random.default_rng(1), 60, 6, gap)
    margin = gamma(X, y)
    assert margin.gap <= 1e-9
    assert margin.verify(X, y)
    assert margin.upper <= 1.2 * gap + 1e-14


def test_both_arithmetics_find_the_same():
    y = np.where(np.arange(80) % 2, 1.0, -1.0)
    X = np.random.default_rng(5).normal(size=(80, 6)) + 2 * y[:, None]
    for free in (False, True):
        cloud = Cloud(y[:, None] * X, y, free)
        floats = in_floats(cloud)
        start = floats._replace(rows=floats.rows[:1], weights=[1])
        integers = in_integers(cloud, start, guard=256, most=50)
        assert sorted(integers.rows) == sorted(floats.rows)
        one, other = (np.array(found.w, dtype=float) for found in (floats, integers))
        assert np.allclose(one / np.linalg.norm(one), other / np.linalg.norm(other), atol=1e-12)


@pytest.mark.parametrize("gamma", ALL)
def test_awkward_data(gamma):
    rng = np.random.default_rng(2)
    X, y = planted(rng, 50, 4, 0.5)
    plain = gamma(X, y)
    cases = {
        "rows twice": (np.repeat(X, 2, axis=0), np.repeat(y, 2), 1),
        "a constant column of zeros": (np.column_stack([X, np.zeros(50)]), y, 1),
        "columns twice": (np.column_stack([X, X]), y, None),
        "rows of many lengths": (X * 10.0 ** rng.integers(-8, 8, (50, 1)), y, None),
        "columns of many sizes": (X * [1e-8, 1, 1e8, 1], y, None),
        "one row a class": (X[[np.argmax(y > 0), np.argmax(y < 0)]], np.array([1, -1]), None),
        "a large power of two": (X * 2.0**400, y, None if gamma is gamma_padded else 2.0**400),
    }
    for name, (Z, labels, times) in cases.items():
        margin = gamma(Z, labels)
        assert margin.verify(Z, labels), name
        assert margin.gap <= 1e-9, name
        if times:
            assert margin.lower == pytest.approx(times * plain.lower, rel=1e-9), name
    assert gamma_affine(X + 1e7, y).lower == pytest.approx(gamma_affine(X + 1e7 - 1e7, y).lower, rel=1e-6)


def test_one_feature():
    X, y = np.array([[-3.0], [5.0], [9.0]]), ["no", "yes", "yes"]
    assert [(gamma(X, y).lower, gamma(X, y).upper) for gamma in (gamma_origin, gamma_affine)] == [(3, 3), (4, 4)]
    assert gamma_affine(X, y).b == -1
    wide = gamma_origin([[1e200], [-1.0]], [1, -1])
    assert (wide.lower, wide.upper) == (1, 1)


def test_scale_matters_to_the_padded_margin_only_by_its_constant():
    """CMU 10-607 prints that multiplying the points changes nothing; with a constant feature left as it is, it does."""
    X, y = np.array([[1.0, 0.0], [4.0, 1.0]]), np.array([-1, 1])
    ratio = [radius(Z, 1.0) / gamma_padded(Z, y).lower for Z in (X, 128 * X)]
    assert ratio[0] != pytest.approx(ratio[1], rel=0.01)
    assert radius(128 * X, 128.0) / gamma_padded(128 * X, y, 128.0).lower == pytest.approx(ratio[0], rel=1e-12)
    bare = [radius(Z) / gamma_origin(Z, y).lower for Z in (X, 128 * X)]
    assert bare[0] == pytest.approx(bare[1], rel=1e-12)


# ── what proves it, and what does not ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("gamma", ALL)
def test_a_false_bracket_is_refuted(gamma):
    X, y = planted(np.random.default_rng(0), 40, 3, 0.3)
    true = gamma(X, y)
    assert true.refutation(X, y) is None
    up, down = np.nextafter(true.lower, inf), np.nextafter(true.upper, 0)
    turned = (true.normal[0] * Fraction(11, 10), *true.normal[1:])
    heavier = (true.weights[0] * 2, *true.weights[1:])
    for false, why in [
        (replace(true, lower=up), "the hyperplane has the margin"),
        (replace(true, lower=float("nan")), "the hyperplane has the margin"),
        (replace(true, upper=down), "the combination shows"),
        (replace(true, normal=turned), "the hyperplane has the margin"),
        (replace(true, intercept=true.intercept + 1), "the hyperplane|through the origin"),
        (replace(true, weights=heavier), "the combination shows|different sums"),
        (replace(true, rows=true.rows[1:], weights=true.weights[1:]), "the combination shows|different sums"),
        (replace(true, weights=(-true.weights[0], *true.weights[1:])), "positive integers"),
        (replace(true, weights=(0.5, *true.weights[1:])), "positive integers"),
        (replace(true, rows=(len(X), *true.rows[1:])), "rows from 0 to 39"),
        (replace(true, rows=(), weights=()), "rows from 0 to 39"),
        (replace(true, normal=true.normal[1:]), "2 coordinates"),
        (replace(true, normal=(Fraction(0),) * 3), "zeros"),
    ]:
        assert not false.verify(X, y)
        assert re.search(why, false.refutation(X, y))
    assert not true.verify(X * 0.99, y), "other data, other margin"


def test_a_combination_must_cancel_the_intercept():
    """Rows −1 and 3, three times the first and once the second, add up to zero; yet γ of the points 1 and 3 is 1."""
    true = gamma_affine([[1.0], [3.0]], [0, 1])
    assert (true.lower, true.upper) == (1, 1)
    false = replace(true, rows=(0, 1), weights=(3, 1), upper=0.0, lower=0.0)
    assert "different sums" in false.refutation([[1.0], [3.0]], [0, 1])


def test_a_wider_bracket_is_true_as_well():
    X, y = planted(np.random.default_rng(0), 40, 3, 0.3)
    true = gamma_origin(X, y)
    assert replace(true, lower=true.lower / 2, upper=true.upper * 2).verify(X, y)


@given(separated(), st.integers(-3, 3), st.integers(1, 5))
def test_no_combination_and_no_hyperplane_can_prove_a_falsehood(data, shift, more):
    """Whatever w or λ is put in, what verifies still holds γ."""
    if not data.constant:
        return
    true = gamma_padded(data.X, data.labels, data.constant)
    other = replace(
        true,
        normal=(true.normal[0] + Fraction(shift, 7), *true.normal[1:]),
        weights=(true.weights[0] + more, *true.weights[1:]),
    )
    if other.verify(data.X, data.labels):
        assert other.lower <= true.upper
        assert other.upper >= true.lower


@pytest.mark.parametrize("gamma", ALL)
def test_inseparable_data_are_refused_with_a_proof(gamma):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 5)), np.where(rng.random(80) < 0.5, -1, 1)
    with pytest.raises(NotSeparable, match=r"add up to zero .* rosenblatt\.theory\.separability") as refusal:
        gamma(X, y)
    assert isinstance(refusal.value, ValueError)
    assert refusal.value.certificate.verify(y[:, None] * X if gamma is gamma_origin else padded(X, y))
    with pytest.raises(NotSeparable, match="add up to zero"):
        gamma(np.vstack([X[:1], X[:1]]), [0, 1])
    with pytest.raises(NotSeparable):
        gamma(np.array([[0.0], [1.0], [0.0], [-1.0]]), [0, 1, 1, 0])  # they touch: γ is 0, which separates nothing


def test_a_zero_row_has_no_margin_through_the_origin():
    X, y = np.array([[2.0, 1.0], [0.0, 0.0]]), [1, 0]
    with pytest.raises(NotSeparable, match="example 1 is the origin, whose margin is 0") as refusal:
        gamma_origin(X, y)
    assert (refusal.value.certificate.rows, refusal.value.certificate.weights) == ((1,), (1,))
    assert gamma_affine(X, y).lower == pytest.approx(5**0.5 / 2)


def test_what_cannot_be_told_is_not_claimed(monkeypatch):
    """γ/R = 1e-300: floats see nothing; what `separability` finds is proved, and without time nothing is claimed."""
    with pytest.warns(RuntimeWarning, match="a relative gap of 1"):
        found = gamma_padded([[1e-300], [-1e-300]], [1, -1])
    assert 0 < found.lower <= 1e-300 <= found.upper
    monkeypatch.setattr(geometry, "_SECONDS", 0.0)
    with pytest.raises(NotSeparable, match="nor a proof that there is none") as refusal:
        gamma_padded([[1e-300], [-1e-300]], [1, -1])
    assert refusal.value.certificate is None


def test_an_open_gap_is_a_warning_and_still_true(monkeypatch):
    monkeypatch.setattr(geometry, "_DEAR", 0)
    X, y = planted(np.random.default_rng(1), 60, 6, 1e-11)
    with pytest.warns(RuntimeWarning, match="γ is between"):
        margin = gamma_origin(X, y)
    assert margin.gap > 1e-6
    monkeypatch.undo()
    assert margin.verify(X, y)
    better = gamma_origin(X, y)
    assert margin.lower <= better.lower <= better.upper <= margin.upper


@pytest.mark.parametrize("label", [1, -1, 0, True, "spam"])
def test_one_class_through_the_origin_has_a_margin(label):
    X = np.array([[3.0, 4.0], [4.0, 3.0], [9.0, 9.0]])
    margin = gamma_origin(X, [label] * 3)
    assert margin.lower <= math.sqrt(24.5) <= margin.upper, (
        "the distance of the segment between the first two to the origin"
    )
    assert margin.verify(X, [label] * 3)
    assert np.allclose(margin.w, (-1 if label in (-1, 0) else 1) * np.sqrt([0.5, 0.5]))
    assert trace(X, [label] * 3, constant=0).updates == 1
    assert separability(X, [label] * 3, intercept=False).verify(X, [label] * 3)
    assert isinstance(find_cycle(X, [label] * 3, constant=0), Converged)
    with pytest.raises(NotSeparable, match="add up to zero"):
        gamma_origin([[1.0], [-2.0]], [label] * 2)
    with pytest.raises(ValueError, match=r"two labels; got 1: .*; with an intercept, a plane far enough away"):
        gamma_affine(X, [label] * 3)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.nan]], [0, 1], "NaN"),
        ([[1.0], [2.0]], [1, 1], "two labels"),
        (np.zeros((0, 2)), [], "at least one row"),
        ([1.0, 2.0], [0, 1], "two dimensions"),
    ],
)
def test_nonsense_is_refused(X, y, message):
    for gamma in ALL[1:] if message == "two labels" else ALL:
        with pytest.raises(ValueError, match=message):
            gamma(X, y)


def test_constant_of_the_padded_margin():
    for constant in (0.0, inf, float("nan")):
        with pytest.raises(ValueError, match="gamma_origin has no intercept"):
            gamma_padded(SIX, SIX_Y, constant)
    assert gamma_padded(SIX, SIX_Y, -2.0).lower == pytest.approx(gamma_padded(SIX, SIX_Y, 2.0).lower)


def test_labels_are_no_constant():
    with pytest.raises(TypeError, match=r"constant must be a number; .* R needs no labels"):
        radius([[1.0, 2.0], [3.0, 4.0]], [0, 1])


@pytest.mark.parametrize("gamma", [gamma_origin, gamma_padded, gamma_affine])
def test_sizes_that_floats_cannot_hold_together_are_no_obstacle(gamma):
    X = np.array([[1e200, 1.0], [1.0, -1e-200], [-3e150, 2.0], [-1e-120, 1e100]])
    y = [1, 1, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the gap stays wide
        found = gamma(X, y)
    assert 0 < found.lower <= found.upper
    assert found.verify(X, y)
    with pytest.raises(NotSeparable) as refusal:
        gamma(np.vstack([X, [1e200, 1.0]]), [*y, 0])
    assert refusal.value.certificate is not None


def test_a_bracket_of_other_than_fractions_and_integers_is_refuted():
    X, y = [[2.0], [-2.0]], [1, 0]
    found = gamma_affine(X, y)
    assert found.verify(X, y)
    for change in (
        {"rows": (True, False)},
        {"rows": (0.0, 1.0)},
        {"weights": (True, True)},
        {"weights": (1.0, 1.0)},
        {"normal": (float("nan"),)},
        {"intercept": float("nan")},
        {"lower": float("nan")},
    ):
        assert not replace(found, **change).verify(X, y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gamma", [gamma_origin, gamma_padded, gamma_affine])
def test_fewer_rows_than_features_are_looked_at_in_as_many_dimensions(gamma, sparse):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(9, 30)) * (rng.uniform(size=(9, 30)) < 0.5)
        y = np.array([1, -1, 1, -1, 1, -1, 1, 1, -1])
        margin = gamma(sp.csr_array(X) if sparse else X, y)
        again = gamma(np.vstack([X] * 4), np.tile(y, 4))  # more rows than features, and the same points
        assert max(margin.gap, again.gap) <= 1e-9
        assert margin.verify(X, y)
        assert max(margin.lower, again.lower) <= min(margin.upper, again.upper)


def test_what_is_too_large_says_so(monkeypatch):
    monkeypatch.setattr(geometry, "MOST", 5)
    X = np.random.default_rng(0).normal(size=(8, 7))
    y = np.array([1, -1] * 4)
    with pytest.raises(geometry.TooLarge, match=r"8 rows in 7 dimensions .* at most 5"):
        gamma_origin(X, y)
    clf = Perceptron(fit_intercept=False, max_iter=1000, tol=None).fit(X, y)
    certified = clf.certify(X, y)
    assert certified.separable is None
    assert "could not be determined" in certified.reason
