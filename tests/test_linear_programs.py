"""Linear programs: HiGHS is the yardstick, exact arithmetic the judge."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, linprog
from scipy.sparse import csr_array

from rosenblatt.exact.elimination import echelon
from rosenblatt.feasibility import METHODS, solve_lp
from rosenblatt.feasibility.programs import Infeasible

STATUS = {0: "optimal", 2: "infeasible", 3: "unbounded"}


def program(seed):
    """A small program of integers and halves: feasible or not, bounded or not, and often degenerate."""
    rng = np.random.default_rng(seed)
    m, n, p = int(rng.integers(1, 9)), int(rng.integers(1, 7)), int(rng.integers(0, 3))
    A = rng.integers(-4, 5, (m, n)) / rng.choice([1.0, 2.0])
    inside = rng.integers(0, 4, n).astype(float)
    b = A @ inside + rng.integers(0, 3, m) if rng.uniform() < 0.6 else rng.integers(-5, 6, m).astype(float)
    E = rng.integers(-2, 3, (p, n)).astype(float)
    f = E @ inside if rng.uniform() < 0.8 else rng.integers(-3, 4, p).astype(float)
    if rng.uniform() < 0.3:  # an inequality and its opposite: no interior
        A, b = np.vstack([A, -A[0]]), np.append(b, -b[0])
    if rng.uniform() < 0.3:
        A, b = np.vstack([A, A[:2]]), np.append(b, b[:2])
    bounds = [(0, None), (None, None), (0, 5), (1, 1), (-np.inf, 3)][rng.choice(5, p=[0.5, 0.15, 0.15, 0.1, 0.1])]
    c = rng.integers(-4, 5, n).astype(float)
    return {"c": c, "A_ub": A, "b_ub": b, "A_eq": E if p else None, "b_eq": f if p else None, "bounds": bounds}


def yardstick(problem):
    answer = linprog(**problem)
    if answer.status == 4:  # presolve found it infeasible or unbounded and did not say which
        answer = linprog(**problem, options={"presolve": False})
    return STATUS[answer.status], answer.fun


def test_answers_are_those_of_highs_on_200_programs():
    seen = []
    for seed in range(200):
        problem = program(seed)
        answer = solve_lp(**problem)
        status, value = yardstick(problem)
        assert answer.status == status, seed
        assert answer.verify(**problem)
        assert answer.method == "rescaling"
        if status == "optimal":
            assert answer.fun == pytest.approx(value, rel=1e-6, abs=1e-6)
            assert answer.lower == answer.fun == float(answer.certificate.value)
        seen.append(status)
    assert min(seen.count(status) for status in STATUS.values()) >= 20


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"rescaling"}))
def test_every_method_answers_or_says_that_it_cannot(method):
    answered = 0
    for seed in range(12):
        problem = program(1000 + seed)
        answer = solve_lp(**problem, method=method, max_updates=20_000)
        assert answer.method == method
        if answer.status == "undecided":
            assert not answer.verify(**problem)
            assert str(answer).startswith("undecided, ")
        else:
            answered += 1
            assert answer.verify(**problem)
            assert answer.status == yardstick(problem)[0]
    assert answered >= 6


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_floats_of_53_bits_are_taken_as_they_are(seed):
    rng = np.random.default_rng(seed)
    A, c = rng.normal(size=(8, 4)), rng.normal(size=4)
    problem = {"c": c, "A_ub": A, "b_ub": np.abs(rng.normal(size=8)), "bounds": (-1, 1)}
    answer = solve_lp(**problem)
    assert answer.status == "optimal"
    assert answer.verify(**problem)
    assert answer.fun == pytest.approx(linprog(**problem).fun, rel=1e-9, abs=1e-9)
    # The point, rounded to floats, satisfies the program but for rounding.
    assert (A @ answer.x <= problem["b_ub"] + 1e-9).all()


def test_no_tolerance_blurs_the_answer():
    less, more = 1.0, 1.0 + 2.0**-40
    assert solve_lp([0], [[1], [-1]], [less, -more]).status == "infeasible"
    assert solve_lp([0], [[1], [-1]], [more, -less]).status == "optimal"
    assert linprog([0], [[1], [-1]], [less, -more]).status == 0  # 10⁻¹² is nothing to it


def test_what_floats_cannot_tell_apart_is_undecided():
    answer = solve_lp([0], [[1], [-1]], [1, -1 - Fraction(1, 2**70)])
    assert answer.status == "undecided"
    assert answer.certificate is None
    assert answer.lower == -np.inf


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_corrupted_certificate_fails(seed):
    problem = program(seed)
    answer = solve_lp(**problem)
    proof = answer.certificate
    wrong = []
    if answer.status == "optimal":
        wrong = [
            replace(proof, value=proof.value - 1),
            replace(proof, point=tuple(v + 1000 for v in proof.point), value=proof.value + 1000 * int(sum(problem["c"]))),
            replace(proof, u=(proof.u[0] + 1, *proof.u[1:])) if any(problem["A_ub"][0]) or problem["b_ub"][0] else None,
            replace(proof, u=tuple(-v for v in proof.u)) if any(proof.u) else None,
            replace(proof, u=proof.u[1:]),
        ]
    elif answer.status == "infeasible":
        wrong = [replace(proof, u=tuple(Fraction(0) for _ in proof.u), v=tuple(Fraction(0) for _ in proof.v))]
        wrong += [replace(proof, u=tuple(-v for v in proof.u)) if any(proof.u) else None]
    else:
        wrong = [replace(proof, ray=tuple(-v for v in proof.ray)), replace(proof, point=(*proof.point, Fraction(0)))]
    for other in wrong:
        assert other is None or not replace(answer, certificate=other).verify(**problem), other


@pytest.mark.parametrize(
    "change", [{"point": (1.6, 1.2)}, {"point": None}, {"u": None}, {"u": "0000"}, {"u": np.array([0.4, 0.2, 0, 0])}]
)
def test_a_proof_of_anything_but_fractions_fails(change):
    problem = {"c": [-1, -1], "A_ub": [[1, 2], [3, 1]], "b_ub": [4, 6]}
    answer = solve_lp(**problem)
    assert answer.verify(**problem)
    assert not replace(answer, certificate=replace(answer.certificate, **change)).verify(**problem)
    assert not replace(answer, certificate="optimal").verify(**problem)


def test_floats_that_add_up_to_zero_by_rounding_prove_nothing():
    e = 1.75 * 2.0**-54
    problem = {"c": [0], "A_ub": [[1.5], [-e], [-1.5]], "b_ub": [0.9375, -e * 0.625, -0.9375], "bounds": (None, None)}
    answer = solve_lp(**problem)
    assert answer.certificate.point == (Fraction(5, 8),)
    assert (1.5 - e) - 1.5 == 0 > (0.9375 - e * 0.625) - 0.9375  # the sum of the constraints, as floats see it
    assert not replace(answer, certificate=Infeasible((1.0, 1.0, 1.0), ())).verify(**problem)


@pytest.mark.parametrize(
    "same",
    [
        {"b_ub": [[4], [6]]},
        {"b_ub": [[4, 6]]},
        {"c": [[-1], [-1]]},
        {"bounds": None},
        {"bounds": []},
        {"bounds": [(0, None)]},
        {"bounds": [[0, np.inf]]},
        {"bounds": np.array([[0, np.inf], [0, np.inf]])},
    ],
)
def test_arguments_are_read_as_linprog_reads_them(same):
    problem = {"c": [-1, -1], "A_ub": [[1, 2], [3, 1]], "b_ub": [4, 6]} | same
    assert linprog(**problem).fun == pytest.approx(-2.8)
    assert solve_lp(**problem).certificate.value == Fraction(-14, 5)


def test_rounds_are_not_exceeded_and_what_is_known_by_then_is_true():
    box = np.vstack([np.eye(4), -np.eye(4)])
    problem = {"c": [-1, 2, 0, 1], "A_ub": box, "b_ub": [0, 1, 0, 1] + [0] * 4, "bounds": (None, None)}
    needed = solve_lp(**problem).n_rounds
    for most in range(needed):
        answer = solve_lp(**problem, max_rounds=most)
        assert (answer.status, answer.n_rounds) == ("undecided", most)
        assert answer.reason.endswith("solved, which is max_rounds")
        assert answer.lower <= 0
        assert answer.fun is None or answer.fun >= 0
    assert solve_lp(**problem, max_rounds=needed).status == solve_lp(**problem, max_rounds=None).status == "optimal"


def test_a_lower_bound_is_rounded_down():
    answer = solve_lp([Fraction(1, 10)], bounds=(1, None), max_rounds=2)
    assert answer.status == "undecided"
    assert answer.lower == np.nextafter(0.1, 0)  # the float 0.1 is above 1/10


def test_numbers_beyond_floats_are_kept_in_the_proof():
    answer = solve_lp([10**200], A_eq=[[1]], b_eq=[10**200])
    assert answer.certificate.value == 10**400
    assert answer.fun == np.inf
    assert answer.x.tolist() == [1e200]


def test_equations_alone_decide():
    answer = solve_lp([1, 1], A_eq=[[1, 2], [3, -1]], b_eq=[4, 5], bounds=(None, None))
    assert answer.certificate.point == (2, 1)
    assert answer.fun == 3
    assert solve_lp([1, 1], A_eq=[[1, 2], [2, 4]], b_eq=[4, 5], bounds=(None, None)).status == "infeasible"
    assert solve_lp([1, 1], A_eq=csr_array([[1.0, 2.0]]), b_eq=[4], bounds=(None, None)).status == "unbounded"


def test_a_program_without_constraints():
    assert solve_lp([0.0], bounds=(None, None)).fun == 0
    assert solve_lp([1.0], bounds=(None, None)).status == "unbounded"
    assert solve_lp([1.0]).fun == 0


def test_beales_example_does_not_cycle():
    # Beale 1955: Dantzig's rule goes round in a circle here.
    c = [-0.75, 150, -0.02, 6]
    A = [[0.25, -60, -0.04, 9], [0.5, -90, -0.02, 3], [0, 0, 1, 0]]
    answer = solve_lp(c, A, [0, 0, 1])
    assert answer.fun == pytest.approx(-0.05)


def test_klee_and_mintys_cube():
    n = 5
    A = [[2 ** (i - j + 1) if j < i else int(i == j) for j in range(n)] for i in range(n)]
    answer = solve_lp([-(2 ** (n - 1 - j)) for j in range(n)], A, [5 ** (i + 1) for i in range(n)])
    assert answer.certificate.point == (0, 0, 0, 0, 5**n)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"c": []}, "at least one number"),
        ({"c": [[1, 2], [3, 4]]}, "vector"),
        ({"c": [1.0, np.nan]}, "finite"),
        ({"c": [1.0], "A_ub": [[1.0]]}, "A_ub and b_ub must be passed together"),
        (
            {"c": [1.0], "A_ub": [[1.0, 2.0]], "b_ub": [1.0]},
            r"1 rows, as b_ub, and 1 columns, as c; got the shape \(1, 2\)",
        ),
        ({"c": [1.0], "A_eq": [[np.inf]], "b_eq": [1.0]}, "A_eq must hold finite numbers"),
        ({"c": [1.0, 2.0], "bounds": [(0, 1)] * 3}, "for each of the 2 variables"),
        ({"c": [1.0], "bounds": (0, np.nan)}, "bounds must hold finite"),
        ({"c": [1.0], "bounds": Bounds(0, 1)}, "bounds must be one pair"),
        ({"c": [1.0, 2.0, 3.0], "bounds": [(0, 0, 0), (1, 1, 1)]}, "bounds must be one pair"),
        ({"c": [1.0], "max_rounds": -1}, "max_rounds must be .* got -1"),
        ({"c": [1.0], "max_rounds": "3"}, "max_rounds must be .* got '3'"),
        ({"c": [1.0], "method": "simplex"}, "'rescaling'"),
    ],
)
def test_nonsense_is_refused(problem, words):
    with pytest.raises(ValueError, match=words):
        solve_lp(**problem)


@given(st.integers(0, 10**9))
def test_elimination_keeps_what_the_equations_say(seed):
    rng = np.random.default_rng(seed)
    E = [[Fraction(int(v)) for v in row] for row in rng.integers(-2, 3, (int(rng.integers(0, 5)), 4))]
    system = echelon(E, 4)
    y = system.complete([Fraction(int(v)) for v in rng.integers(-3, 4, len(system.free))])
    assert all(sum(a * b for a, b in zip(row, y, strict=True)) == 0 for row in E)
    row = [Fraction(int(v)) for v in rng.integers(-3, 4, 4)]
    by_hand = sum(a * b for a, b in zip(row, y, strict=True))
    assert sum(a * y[j] for a, j in zip(system.restrict(row), system.free, strict=True)) == by_hand
    mixed = [sum(((k + 1) * e[j] for k, e in enumerate(E)), Fraction(0)) for j in range(4)]
    nu = system.multipliers(mixed)
    assert [sum((v * e[j] for v, e in zip(nu, E, strict=True)), Fraction(0)) for j in range(4)] == mixed
