"""Counts are held against Winder's formula, which sums over all subsets of the points; proofs are checked one by one."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.theory.labellings import (
    chance,
    cover,
    dependent,
    dichotomies,
    general_position,
    radon,
    shattered,
    vc_dimension,
)

SQUARE = [[0, 0], [0, 1], [1, 0], [1, 1]]


def winder(points, intercept):
    """Σ over the subsets of (−1)^(size − rank): the labellings by hyperplanes of points in any position (Winder 1966)."""
    P = np.column_stack([points, np.ones(len(points))]) if intercept else np.array(points, dtype=float)
    subsets = (list(s) for size in range(len(P) + 1) for s in combinations(range(len(P)), size))
    return sum((-1) ** (len(s) - (np.linalg.matrix_rank(P[s]) if s else 0)) for s in subsets)


def check_proofs(found):
    for labels in product((-1, 1), repeat=len(found.points)):
        proof, A = found.certificate(labels), found.rows(labels)
        assert isinstance(proof, Interior if labels in found else Combination)
        assert proof.verify(A)
        assert not found.certificate(tuple(-label for label in labels)).verify(A) or isinstance(proof, Combination)
    assert len(list(found)) == len(found)


@given(st.data(), st.integers(1, 6), st.integers(1, 3), st.booleans())
def test_every_labelling_has_a_proof_and_as_many_are_made_as_winder_counts(data, n, d, intercept):
    points = data.draw(st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=n, max_size=n))
    found = dichotomies(points, intercept)
    check_proofs(found)
    assert len(found) == winder(points, intercept) <= cover(n, d + intercept)
    assert (len(found) == cover(n, d + intercept)) == general_position(points, intercept)
    assert (len(found) == 2**n) == shattered(points, intercept)


@pytest.mark.parametrize(("n", "d"), [(2, 2), (3, 2), (4, 2), (5, 2), (9, 2), (6, 3), (8, 1)])
def test_points_in_general_position_have_covers_number(n, d):
    points = np.random.default_rng(n).standard_normal((n, d))
    assert general_position(points)
    found = dichotomies(points)
    assert len(found) == cover(n, d + 1)
    through_zero = dichotomies(points, intercept=False)
    assert len(through_zero) == cover(n, d)
    assert set(through_zero) <= set(found)


def test_a_linear_program_agrees_on_each_labelling():
    points = np.random.default_rng(1).integers(-5, 6, (6, 2))
    found = dichotomies(points)
    for labels in product((-1, 1), repeat=6):
        A = found.rows(labels)
        assert (linprog(np.zeros(3), A_ub=-A, b_ub=-np.ones(6), bounds=(None, None)).status == 0) == (labels in found)


# The notes of IIIT-H SMAI ask: can (i) two, (ii) three, (iii) four points in the plane be separated, whatever their labels?
def test_any_two_points_of_the_plane():
    for points in ([[0, 0], [1, 0]], [[3, 5], [3, 7]], [[-1, 2], [1e-9, 2]]):
        assert len(dichotomies(points)) == 4 == cover(2, 3)
    assert len(dichotomies([[1, 2], [1, 2]])) == 2  # unless they are one


def test_three_points_of_the_plane_unless_on_a_line():
    assert len(dichotomies([[0, 0], [1, 0], [0, 1]])) == 8 == cover(3, 3)
    on_a_line = dichotomies([[0, 0], [1, 1], [2, 2]])
    assert len(on_a_line) == 6
    assert set(product((-1, 1), repeat=3)) - set(on_a_line) == {(1, -1, 1), (-1, 1, -1)}
    assert on_a_line.certificate((1, -1, 1)) == Combination((0, 1, 2), (1, 2, 1))


@pytest.mark.parametrize(
    ("points", "made"),
    [
        (SQUARE, 14),  # the two missing are exclusive or and its opposite
        ([[0, 0], [4, 0], [0, 4], [1, 1]], 14),  # one within the triangle of the others
        ([[0, 0], [1, 0], [2, 0], [0, 1]], 12),  # three on a line
        ([[0, 0], [1, 0], [2, 0], [3, 0]], 8),  # four on a line
    ],
)
def test_no_four_points_of_the_plane(points, made):
    found = dichotomies(points)
    assert len(found) == made
    assert not shattered(points)
    check_proofs(found)
    meeting = radon(points)
    labels = [1 if i in meeting.positive else -1 for i in range(4)]
    assert meeting.combination.verify(found.rows(labels))
    assert tuple(labels) not in found or set(meeting.positive + meeting.negative) != set(range(4))


def test_exclusive_or_is_what_the_square_lacks():
    found = dichotomies(SQUARE)
    assert set(product((-1, 1), repeat=4)) - set(found) == {(-1, 1, 1, -1), (1, -1, -1, 1)}


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_vc_dimension(d):
    corners = np.vstack([np.zeros(d), np.eye(d)])
    assert vc_dimension(d) == len(corners) == d + 1
    assert vc_dimension(d, intercept=False) == d
    assert shattered(corners)
    assert len(dichotomies(corners)) == 2 ** (d + 1)
    assert shattered(np.eye(d), intercept=False)
    assert not shattered(corners, intercept=False)
    rng = np.random.default_rng(d)
    for _ in range(5):  # whatever d + 2 points
        points = rng.integers(-9, 10, (d + 2, d))
        assert not shattered(points)
        meeting = radon(points)
        sides = np.zeros(d + 2)
        sides[list(meeting.positive)], sides[list(meeting.negative)] = 1, -1
        A = np.column_stack([points, np.ones(d + 2)]) * sides[:, None]
        assert meeting.combination.verify(A)
        assert meeting.positive
        assert meeting.negative
        weight = dict(zip(meeting.combination.rows, meeting.combination.weights, strict=True))
        for side in (meeting.positive, meeting.negative):  # the point lies in both hulls
            total = sum(weight[i] for i in side)
            hull = [sum(Fraction(weight[i] * int(points[i, j]), total) for i in side) for j in range(d)]
            assert tuple(hull) == meeting.point


def test_the_capacity_is_twice_the_dimension():
    for d in (1, 2, 3, 10, 50):
        assert chance(d, d) == 1
        assert chance(2 * d, d) == Fraction(1, 2)
        assert chance(2 * d + 1, d) < Fraction(1, 2) < chance(2 * d - 1, d)
    assert chance(300, 100) < Fraction(1, 10**6)


def test_covers_recursion_and_its_ends():
    for n in range(1, 12):
        for d in range(1, 6):
            assert cover(n, d) == (2**n if n <= d else cover(n - 1, d) + (cover(n - 1, d - 1) if d > 1 else 0))


def test_what_is_not_in_general_position_is_named():
    assert dependent(SQUARE) is None
    assert dependent([[0, 0], [1, 0], [5, 5], [2, 0]]) == (0, 1, 3)
    assert dependent([[0, 0], [1, 0], [2, 0], [1, 0]]) == (1, 3)
    assert dependent([[1, 2], [0, 0]], intercept=False) == (1,)
    assert dependent([[1, 2], [2, 4], [1, 0]], intercept=False) == (0, 1)
    # Exact: floats a bit apart from a line are not on it.
    assert general_position([[0, 0], [1, 1], [2, 2 + 2**-51]])
    assert len(dichotomies([[0, 0], [1, 1], [2, 2 + 2**-51]])) == 8


def test_coordinates_that_a_prime_divides_are_no_trap():
    prime = 67108859
    assert shattered([[0, 0], [prime, 0], [0, prime]])
    assert not shattered([[0, 0], [prime, prime], [3 * prime, 3 * prime]])


def test_a_point_at_zero_has_no_side_of_a_hyperplane_through_it():
    found = dichotomies([[1, 0], [0, 0]], intercept=False)
    assert len(found) == 0
    check_proofs(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cover(0, 1), "≥ 1; got 0"),
        (lambda: cover(3, 1.5), "whole number"),
        (lambda: vc_dimension(0), "≥ 1; got 0"),
        (lambda: dichotomies([1, 2, 3]), "two dimensions"),
        (lambda: dichotomies([[np.inf]]), "infinity"),
        (lambda: dichotomies(SQUARE).certificate((1, 1)), "each of the 4 points"),
        (lambda: dichotomies(SQUARE).certificate((1, 1, 0, 1)), "−1 or \\+1"),
        (lambda: radon([[0, 0], [1, 0], [0, 1]]), "every labelling of them is separable"),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_points_are_named_and_counted_in_words():
    assert str(dichotomies([[0, 0], [0, 1], [1, 0], [1, 1]])) == "14 of the 16 labellings of 4 points"
    with pytest.raises(ValueError, match="points must have two dimensions"):
        dichotomies([1, 2, 3])


def test_numbers_and_labels_of_other_types_are_read():
    assert cover(4.0, 3.0) == cover(np.int64(4), 3) == 14
    assert chance(4.0, 2) == Fraction(1, 2)
    made = dichotomies([[1.0], [2.0]])
    assert [1, 1] in made
    assert np.array([1, -1]) in made
    assert (1, 2) not in made
