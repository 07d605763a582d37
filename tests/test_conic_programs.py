"""Conic programs: closed forms, `solve_lp` and HiGHS are the yardsticks, exact arithmetic the judge."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.feasibility import (
    Intersection,
    Polyhedral,
    SecondOrder,
    Semidefinite,
    VonNeumann,
    find_in_cone,
    solve_conic,
    solve_lp,
    symmetric,
)
from rosenblatt.feasibility.conic_programs import Bracket, ConicInfeasible, ConicProgram, ConicUnbounded
from rosenblatt.feasibility.self_dual import Lorentz, PositiveSemidefinite

small = st.integers(-4, 4)


def ball(centre, radius=1):
    """‖x − centre‖ ≤ radius, in (x, 1)."""
    n = len(centre)
    return SecondOrder(np.column_stack([np.eye(n), -np.asarray(centre, dtype=float)]), [*[0] * n, radius])


def check(answer, c, cone, value, tolerance=1e-6):
    """It is optimal, brackets the value as narrowly as was asked for, and is proved."""
    assert answer.status == "optimal", str(answer)
    assert answer.verify(c, cone)
    assert answer.lower - 1e-9 <= value <= answer.upper + 1e-9
    assert answer.upper - answer.lower <= tolerance * max(1, abs(answer.upper)) * (1 + 1e-9)
    assert answer.x @ np.asarray(c, dtype=float) == pytest.approx(answer.upper, abs=1e-9)


# Linear programs


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 6), st.data())
def test_linear_programs_have_the_answers_of_solve_lp_and_highs(n, m, data):
    A = np.array(data.draw(st.lists(st.lists(small, min_size=n, max_size=n), min_size=m, max_size=m)))
    b = np.array(data.draw(st.lists(small, min_size=m, max_size=m)))
    c = data.draw(st.lists(small, min_size=n, max_size=n))
    rows = np.vstack([np.column_stack([-A, b]), np.eye(n, n + 1)])
    cone = Polyhedral(rows[rows.any(axis=1)])
    answer, exact = solve_conic(c, cone), solve_lp(c, A, b)
    assert answer.status == exact.status
    assert answer.verify(c, cone)
    if exact.status == "optimal":
        assert answer.certificate.lower <= exact.certificate.value <= answer.certificate.upper
        check(answer, c, cone, linprog(c, A, b).fun)


def test_an_equation_is_a_row_and_its_opposite():
    cone = Polyhedral([[1, 1, -1], [-1, -1, 1], [1, 0, 0], [0, 1, 0]])  # x₁ + x₂ = 1, both ≥ 0
    answer = solve_conic([1, 2], cone)
    check(answer, [1, 2], cone, 1)
    assert sum(answer.certificate.point) == 1


# Second-order cones


@settings(max_examples=25)
@given(st.lists(small, min_size=1, max_size=3).filter(any), st.integers(1, 3), st.data())
def test_the_least_value_on_a_ball(c, radius, data):
    centre = data.draw(st.lists(small, min_size=len(c), max_size=len(c)))
    cone = ball(centre, radius)
    check(solve_conic(c, cone), c, cone, np.dot(c, centre) - radius * np.linalg.norm(c))


@pytest.mark.parametrize("n", [4, 6])
def test_balls_of_more_dimensions(n):
    c, cone = np.arange(1, n + 1), ball([0] * n)
    check(solve_conic(c, cone), c, cone, -np.linalg.norm(c))


@settings(max_examples=25)
@given(st.integers(1, 3), st.data())
def test_the_distance_from_a_point_to_a_ball(n, data):
    point = np.array(data.draw(st.lists(small, min_size=n, max_size=n)))
    centre = np.array(data.draw(st.lists(small, min_size=n, max_size=n)))
    P = np.column_stack([np.eye(n), np.zeros(n), -point])
    near = SecondOrder(P, [*[0] * n, 1, 0])  # ‖x − point‖ ≤ t
    P = np.column_stack([np.eye(n), np.zeros(n), -centre])
    cone = Intersection(near, SecondOrder(P, [*[0] * (n + 1), 2]))
    c = [*[0] * n, 1]
    check(solve_conic(c, cone), c, cone, max(0, np.linalg.norm(point - centre) - 2))


def test_a_least_value_that_nothing_attains():
    hyperbola = SecondOrder([[1, -1, 0], [0, 0, 2]], [1, 1, 0])  # x₁x₂ ≥ 1, x₁ + x₂ ≥ 0
    answer = solve_conic([1, 0], hyperbola, tolerance=1e-3)
    assert answer.lower <= 0 < answer.upper


def test_a_cone_without_an_inside():
    line = SecondOrder([[0, 1, -2]], [0, 0, 0])  # |x₂ − 2| ≤ 0
    cone = Intersection(line, Polyhedral([[1, -1, 0]]))
    check(solve_conic([1, 0], cone), [1, 0], cone, 2)


# Semidefinite cones


@settings(max_examples=20)
@given(st.integers(1, 4), st.data())
def test_the_smallest_eigenvalue(k, data):
    M = np.array(data.draw(st.lists(st.lists(small, min_size=k, max_size=k), min_size=k, max_size=k)), dtype=float)
    M = M + M.T
    cone = Semidefinite([-np.eye(k), M])  # M − tI has no negative eigenvalue
    check(solve_conic([-1], cone), [-1], cone, -np.linalg.eigvalsh(M)[0])


def test_the_largest_eigenvalue_as_a_matrix_of_trace_one():
    """The dual of the last: max ⟨M, X⟩ over X without negative eigenvalues and of trace 1, in its lower triangle."""
    M, F = np.array([[2.0, 1, 0], [1, 0, 1], [0, 1, -1]]), symmetric(3)
    trace = np.einsum("dii->d", F)
    rows = np.array([[*trace, -1], [*-trace, 1]])
    cone = Intersection(Semidefinite([*F, np.zeros((3, 3))]), Polyhedral(rows))
    c = -np.einsum("ij,dij->d", M, F)
    check(solve_conic(c, cone, tolerance=1e-4), c, cone, -np.linalg.eigvalsh(M)[-1], 1e-4)


def test_the_bound_of_goemans_and_williamson_of_a_pentagon():
    pairs = [(i, j) for i in range(5) for j in range(i)]
    F = [np.eye(5)[[i]].T @ np.eye(5)[[j]] + np.eye(5)[[j]].T @ np.eye(5)[[i]] for i, j in pairs]
    c = [1.0 * ((i - j) % 5 in (1, 4)) for i, j in pairs]
    cone = Semidefinite([*F, np.eye(5)])  # ones on the diagonal
    check(solve_conic(c, cone, tolerance=1e-2), c, cone, 5 * np.cos(4 * np.pi / 5), 1e-2)


# What is infeasible, unbounded or not known


@pytest.mark.parametrize(
    "cone",
    [
        Intersection(ball([0, 0]), ball([3, 0])),
        Intersection(ball([0, 0]), Polyhedral([[3, 4, -6]])),
        Semidefinite([[[1, 0], [0, -1]], [[0, 1], [1, 0]], [[-1, 0], [0, -1]]]),
    ],
)
def test_nothing_is_feasible(cone):
    answer = solve_conic([1, 2], cone)
    assert answer.status == "infeasible"
    assert isinstance(answer.certificate, ConicInfeasible)
    assert answer.verify([1, 2], cone)
    assert not answer.verify([1, 2], ball([0, 0]))
    assert answer.x is None
    assert answer.lower == answer.upper == np.inf
    assert str(answer).startswith("infeasible, proved exactly")


@pytest.mark.parametrize("cone", [SecondOrder([[1, 0, 0], [0, 0, 1]], [0, 1, 0]), Semidefinite(symmetric(2))])
def test_a_ray_goes_on_for_ever(cone):
    c = [0, -1] if isinstance(cone, SecondOrder) else [-1, -1]
    answer = solve_conic(c, cone)
    assert answer.status == "unbounded"
    assert isinstance(answer.certificate, ConicUnbounded)
    assert answer.verify(c, cone)
    assert not answer.verify([1, 1], cone)
    turned = replace(answer.certificate, ray=tuple(-value for value in answer.certificate.ray))
    assert not turned.verify(ConicProgram.of(c, cone))


def test_what_is_not_known_is_said():
    parabola = SecondOrder([[2, 0, 0], [0, 1, -1]], [0, 1, 1])  # x₁² ≤ x₂: without a bound, and without a ray
    answer = solve_conic([1, 0], parabola, max_rounds=20)
    assert answer.status == "undecided"
    assert answer.lower == -np.inf
    assert answer.certificate is None
    assert not answer.verify([1, 0], parabola)
    assert str(answer).startswith("undecided, the least value is in [-inf, ")
    answer = solve_conic([3, 4], ball([0, 0]), max_rounds=6)
    assert answer.status == "undecided"
    assert answer.reason == "6 systems solved, which is max_rounds"
    assert answer.lower <= -5 <= answer.upper
    assert answer.verify([3, 4], ball([0, 0]))  # what is known is proved
    assert solve_conic([3, 4], ball([0, 0]), max_rounds=0).upper == np.inf


def test_another_method():
    answer = solve_conic([3, 4], ball([0, 0]), method=VonNeumann(), tolerance=1e-2)
    check(answer, [3, 4], ball([0, 0]), -5, 1e-2)
    assert answer.method == "von-neumann"


# Proofs


def corrupted(proof):
    half = Fraction(1, 2)
    yield replace(proof, upper=proof.upper - half)
    yield replace(proof, lower=proof.lower + half)
    yield replace(proof, point=tuple(2 * value for value in proof.point), upper=2 * proof.upper)
    yield replace(proof, point=proof.point[:-1])
    yield replace(proof, point=tuple(map(float, proof.point)))
    yield replace(proof, multipliers=proof.multipliers[:-1])
    yield replace(proof, multipliers=(proof.multipliers[0][:-1], *proof.multipliers[1:]))
    yield replace(proof, multipliers=tuple(tuple(-v for v in one) for one in proof.multipliers))
    yield replace(proof, multipliers=tuple(tuple(2 * v for v in one) for one in proof.multipliers), lower=2 * proof.lower)


@pytest.mark.parametrize(
    ("c", "cone"),
    [
        ([3, 4], Intersection(ball([0, 0]), Polyhedral([[1, 0, 2]]))),
        ([-1], Semidefinite([-np.eye(2), [[3, 1], [1, 2]]])),
    ],
)
def test_a_corrupted_proof_fails(c, cone):
    program, proof = ConicProgram.of(c, cone), solve_conic(c, cone).certificate
    assert isinstance(proof, Bracket)
    assert proof.verify(program)
    for wrong in corrupted(proof):
        assert not wrong.verify(program)
        assert wrong.refutation(program)


def test_the_bracket_is_that_of_the_numbers_as_given():
    answer = solve_conic([1], Polyhedral([[1, -1 - 2.0**-40], [-1, 2]]), tolerance=2.0**-60)
    assert answer.certificate.lower <= 1 + Fraction(1, 2**40) <= answer.certificate.upper
    assert answer.certificate.lower > 1


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_matrices_are_semidefinite_where_their_eigenvalues_are(k, rank, data):
    B = np.array(data.draw(st.lists(st.lists(small, min_size=k, max_size=k), min_size=rank, max_size=rank)))
    gram = B.T @ B
    cone = PositiveSemidefinite(k)
    assert cone.contains([Fraction(int(value)) for value in gram.flat])
    less = gram - np.eye(k, dtype=int)
    assert cone.contains([Fraction(int(v)) for v in less.flat]) is bool(np.linalg.eigvalsh(less)[0] > -1e-9)
    lopsided = gram.astype(object)
    lopsided[0, -1] += 1 if k > 1 else 0
    assert cone.contains([Fraction(int(v)) for v in lopsided.flat]) is (k == 1)


@settings(max_examples=40)
@given(st.lists(st.floats(-10, 10), min_size=2, max_size=4))
def test_multipliers_belong_to_the_cone(u):
    for cone in (Lorentz(len(u)), PositiveSemidefinite(2)):
        point = np.array(u) if isinstance(cone, Lorentz) else np.array([u[0], u[1], u[1], u[-1]])
        for multiplier in (*cone.corners(), *cone.multipliers(point)):
            assert cone.contains(multiplier)


def test_find_in_cone_agrees():
    v = -5 + 2.0**-10
    for value, there in ((v, True), (-5 - 2.0**-10, False)):
        asked = Intersection(ball([0, 0]), Polyhedral([[0, 0, 1], [-3, -4, value]]))
        assert find_in_cone(asked).exists in (there, None)
    assert solve_conic([3, 4], ball([0, 0])).upper < v


# Refusals


def test_refusals_say_what_is_allowed():
    with pytest.raises(InvalidData, match="must have 3 dimensions, one more than c has numbers; got 4"):
        solve_conic([1, 2], ball([0, 0, 0]))
    with pytest.raises(InvalidParameter, match="cone must be a Polyhedral, SecondOrder or Semidefinite cone"):
        solve_conic([1, 2], lambda x: None)
    with pytest.raises(InvalidParameter, match="tolerance must be a number > 0"):
        solve_conic([1, 2], ball([0, 0]), tolerance=0)
    with pytest.raises(InvalidParameter, match="max_rounds must be a whole number ≥ 0"):
        solve_conic([1, 2], ball([0, 0]), max_rounds=-1)
    with pytest.raises(InvalidParameter, match="method must be one of"):
        solve_conic([1, 2], ball([0, 0]), method="simplex")
