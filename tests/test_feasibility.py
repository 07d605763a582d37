"""Every answer is checked in exact arithmetic, the methods agree with one another and with an LP, and the theorems hold."""

import dataclasses
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from scipy.spatial import ConvexHull

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.feasibility import (
    DunaganVempala,
    Found,
    Intersection,
    Plain,
    Polyhedral,
    Rescaling,
    SecondOrder,
    Semidefinite,
    Smooth,
    VonNeumann,
    find_in_cone,
    find_interior,
    symmetric,
)
from rosenblatt.feasibility.interior import METHODS
from rosenblatt.feasibility.proof import thin
from rosenblatt.feasibility.search import Budget

ALL = [*METHODS.values(), Plain(order="most-violated"), Rescaling(order="most-violated"), VonNeumann(away=False)]
BY_NAME = {"ids": repr}


def hard(n):
    """e₁, e₂ − e₁, e₃ − e₂ − e₁, …"""
    return np.eye(n) - np.tril(np.ones((n, n)), -1)


def unit(A):
    return A / np.linalg.norm(A, axis=1)[:, None]


def margin(A):
    """γ of the unit rows, and a unit vector that has it: least distance programming (Lawson and Hanson), no perceptron."""
    rows = unit(A)
    E = np.vstack([rows.T, np.ones(len(rows))])
    f = np.append(np.zeros(rows.shape[1]), 1.0)
    residual = E @ nnls(E, f)[0] - f
    u = residual[:-1] / np.linalg.norm(residual[:-1])
    return float((rows @ u).min())


def planted(rng, n, d, least):
    """Rows of margin ≥ about `least`, and as thin as that if n is large."""
    u = rng.standard_normal(d)
    u /= np.linalg.norm(u)
    A = unit(rng.standard_normal((n, d)))
    A *= np.where(A @ u < 0, -1, 1)[:, None]
    return A + least * u


def has_solution(A):
    """By an LP: max t with A w ≥ t and |w| ≤ 1."""
    n, d = A.shape
    bounds = [(-1, 1)] * d + [(None, None)]
    answer = linprog(np.append(np.zeros(d), -1.0), np.c_[-A, np.ones(n)], np.zeros(n), bounds=bounds)
    return -answer.fun > 1e-9


# The exponential instance of the notes of Georgia Tech CS 4540


@pytest.mark.parametrize("method", [Plain(), Plain(order="most-violated")], **BY_NAME)
@pytest.mark.parametrize("n", range(1, 9))
def test_the_perceptron_makes_a_third_of_4_to_the_n_updates_in_any_order(n, method):
    found = find_interior(hard(n), method)
    assert found.n_updates == (4**n - 1) // 3  # the notes print the lower bound 2ⁿ⁻¹
    assert found.x.tolist() == pytest.approx(2.0 ** np.arange(n) * found.x[0], abs=0)  # w* = (1, 2, 4, …)
    assert found.verify(hard(n))
    assert found.reason == "interior"
    assert found.n_rescalings == 0


def test_that_is_5592405_for_twelve_rows():
    found = find_interior(hard(12), "perceptron")
    assert found.n_updates == 5_592_405 == (4**12 - 1) // 3
    assert found.verify(hard(12))


@pytest.mark.parametrize(
    ("n", "limit", "published"), [(10, 5_000, 3019), (12, 10_000, 6170), (14, 20_000, 12921), (18, 60_000, 36606)]
)
def test_rescaling_needs_few(n, limit, published):
    cyclic, worst = find_interior(hard(n)), find_interior(hard(n), Rescaling(order="most-violated"))
    assert cyclic.verify(hard(n))
    assert cyclic.n_updates <= limit
    assert cyclic.method == "rescaling"
    assert worst.verify(hard(n))
    assert worst.n_updates == pytest.approx(published, rel=0.05)
    assert worst.n_rescalings == pytest.approx({10: 13, 12: 24, 14: 39, 18: 79}[n], abs=2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", range(4, 11))
def test_dunagan_and_vempala_solve_it(n, seed):
    found = find_interior(hard(n), "dunagan-vempala", random_state=seed)
    assert found.verify(hard(n))
    assert found.exists
    assert found.n_updates < 3_000_000


@pytest.mark.parametrize("n", [6, 12, 18])
@pytest.mark.parametrize("method", [Rescaling(), VonNeumann(), Smooth()], **BY_NAME)
def test_one_row_more_and_it_has_no_solution(n, method):
    A = np.vstack([hard(n), -np.eye(n)[-1]])
    found = find_interior(A, method)
    assert found.exists is False
    assert found.verify(A)
    weights = dict(zip(found.certificate.rows, found.certificate.weights, strict=True))
    assert [weights[i] for i in (n, n - 1)] == [1, 1]  # column by column, from the last one
    assert [weights[i] for i in range(n - 1)] == [2 ** (n - 2 - i) for i in range(n - 1)]


# Theorems


@pytest.mark.parametrize("seed", range(12))
def test_von_neumann_is_below_one_over_root_k_at_every_step(seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 30), rng.integers(2, 8)
    A = planted(rng, n, d, 0.02) if seed % 2 else rng.standard_normal((n, d))
    found = find_interior(A, VonNeumann(away=False), max_updates=3000)
    k = np.arange(1, len(found.trace) + 1)
    assert len(k) == found.n_updates
    assert (np.array(found.trace) <= 1 / np.sqrt(k) + 1e-12).all()
    if found.exists:
        assert found.n_updates <= 1 / margin(A) ** 2 + 1
    away = find_interior(A, VonNeumann(), max_updates=3000)
    k = np.arange(1, len(away.trace) + 1)
    assert (np.array(away.trace) <= np.sqrt(2 / k) + 1e-12).all()
    assert (np.diff(away.trace) <= 1e-12).all()
    assert away.exists == found.exists or found.exists is None


@pytest.mark.parametrize("seed", range(6))
def test_von_neumann_falls_by_the_radius_of_a_ball_in_the_hull(seed):
    rng = np.random.default_rng(seed)
    A = unit(rng.standard_normal((30, 3)))
    radius = -ConvexHull(A).equations[:, -1].max()  # of the largest ball around 0
    assert radius > 0
    reach = np.array([stage.reach for stage in VonNeumann(away=False).search(A, Budget(100), rng)])
    assert (reach <= (1 - radius**2) ** (np.arange(len(reach)) / 2) + 1e-12).all()


def test_away_steps_reach_zero_on_the_boundary_of_the_hull_where_the_plain_walk_zigzags():
    A = np.array([[1.0, 2, 9], [5, 0, 0], [-3, 4, 0], [-2, -4, 0]])  # 0 lies in the face of the last three
    reach = {}
    for away in (False, True):
        *_, last = VonNeumann(away).search(A, Budget(500), np.random.default_rng(0))
        reach[away] = last.reach
    assert reach[True] < 1e-14
    assert reach[False] > 1e-4


@pytest.mark.parametrize("seed", range(12))
def test_the_smooth_perceptron_needs_one_over_the_margin(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(2, 8))
    A = planted(rng, n, d, [0.1, 0.01, 0.001][seed % 3])
    gamma = margin(A)
    found = find_interior(A, "smooth")
    assert gamma > 0
    assert found.exists
    assert found.n_updates <= 2 * math.sqrt(math.log(n)) / gamma - 1


@pytest.mark.parametrize("n", [4, 6, 8, 10])
def test_so_it_does_on_the_exponential_instance(n):
    found = find_interior(hard(n), "smooth")
    assert found.exists
    assert found.n_updates <= 2 * math.sqrt(math.log(n)) / margin(hard(n)) - 1


@pytest.mark.parametrize("seed", range(10))
def test_rescalings_are_few_and_the_climbs_short(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    A = planted(rng, int(rng.integers(d, 200)), d, 10.0 ** -rng.integers(1, 6))
    gamma = margin(A)
    for order in ("cyclic", "most-violated"):
        found = find_interior(A, Rescaling(order))
        assert found.exists
        assert found.verify(A)
        assert found.n_rescalings <= d * math.log(1 + 1 / gamma) / (math.log(2) - 1 / 24)
        assert found.n_updates <= (found.n_rescalings + 1) * (36 * d * (d + 1) ** 2 + 1)


def test_many_thin_rows_are_rescaled():
    A = planted(np.random.default_rng(0), 2000, 4, 1e-5)
    found = find_interior(A)
    assert found.exists
    assert found.verify(A)
    assert found.n_rescalings > 0
    assert found.n_updates < 1 / margin(A) ** 2


@pytest.mark.parametrize("method", ALL, **BY_NAME)
@pytest.mark.parametrize("seed", range(3))
def test_the_margin_is_where_it_is_said_to_be(method, seed):
    rng = np.random.default_rng(seed)
    A = planted(rng, 25, 4, 0.05) * rng.uniform(0.1, 10, (25, 1))
    low, high = find_interior(A, method).margin
    assert 0 < low <= margin(A) + 1e-12 <= high + 2e-12
    stopped = find_interior(hard(9), method, max_updates=3)
    assert stopped.exists is None
    assert stopped.certificate is None
    assert stopped.x is None
    assert stopped.reason == "max_updates"
    assert stopped.n_updates == 3
    assert not stopped.verify(hard(9))
    assert stopped.margin[0] <= 0
    assert margin(hard(9)) <= stopped.margin[1] + 1e-12
    assert str(stopped).startswith("undecided (max_updates)")


@given(st.data())
@settings(max_examples=40)
def test_thinning_keeps_the_sums(data):
    n, d = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows = rng.integers(-2, 3, (n, d)).astype(float) if data.draw(st.booleans()) else rng.standard_normal((n, d))
    shares = rng.integers(1, 9, n).astype(float)
    kept, new = thin(rows, shares)
    assert len(set(kept)) == len(kept) <= d + 1
    assert (new >= 0).all()
    assert new.sum() == pytest.approx(shares.sum())
    np.testing.assert_allclose(new @ rows[kept], shares @ rows, atol=1e-9 * shares.sum())


# Agreement


@st.composite
def small_sets(draw):
    """Feasible, infeasible, and on the border: rows of a plane that add up to zero, and rows on one side of it."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    A = np.array(draw(st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=n, max_size=n)), dtype=float)
    if draw(st.booleans()):
        A[:, 0] = np.abs(A[:, 0])
    if draw(st.booleans()):
        flat = A.copy()
        flat[:, 0] = 0
        A = np.vstack([A, flat, -flat.sum(axis=0)])
    return A


@given(small_sets())
@settings(max_examples=60)
def test_all_methods_answer_and_agree(A):
    answers = set()
    for method in ALL:
        found = find_interior(A, method, max_updates=2_000_000 if method == DunaganVempala() else 50_000)
        if found.certificate is not None:
            assert found.verify(A)
            assert found.certificate.verify(A)
            answers.add(found.exists)
        else:  # only those that have no way to see the border coming
            assert isinstance(method, Plain | DunaganVempala) or method == VonNeumann(away=False)
    assert answers == {has_solution(A)}


@pytest.mark.parametrize("method", ALL, **BY_NAME)
@pytest.mark.parametrize("seed", range(4))
def test_floats(method, seed):
    rng = np.random.default_rng(seed)
    for A in (rng.standard_normal((40, 5)), rng.standard_normal((6, 5)), planted(rng, 40, 5, 0.05)):
        found = find_interior(A, method)
        assert found.exists == has_solution(A)
        assert found.verify(A)


@pytest.mark.parametrize("method", [Plain(), Plain("most-violated"), VonNeumann(), Smooth(), Rescaling()], **BY_NAME)
@pytest.mark.parametrize("A", [hard(6), np.vstack([hard(5), -np.eye(5)[-1]])], ids=["solvable", "not"])
def test_sparse_rows_give_the_same(method, A):
    dense, sparse = find_interior(A, method), find_interior(sp.csr_array(A), method)
    assert dense == sparse or isinstance(method, Smooth)  # whose sums are rounded in another order
    assert dense.exists == sparse.exists
    assert sparse.verify(sp.csr_array(A))


def test_a_sparse_matrix_too_large_to_be_dense_is_solved_by_products_and_refused_by_rescaling():
    n = 20_000
    A = sp.csr_array(sp.eye_array(n))
    for method in (Rescaling(), DunaganVempala()):
        with pytest.raises(ValueError, match="'perceptron', 'von-neumann' and 'smooth' only multiply"):
            find_interior(A, method)
    assert find_interior(A, "smooth").exists


def test_what_is_given_is_not_written_to():
    A = np.asfortranarray(hard(5))
    A.flags.writeable = False
    for method in ALL:
        assert find_interior(A, method).verify(hard(5))


def test_lists_integers_and_float32_are_read():
    for A in ([[1, 2], [3, 1]], np.array([[1, 2], [3, 1]], dtype=np.int8), np.array([[1, 2], [3, 1]], dtype=np.float32)):
        assert find_interior(A).verify(A)


def test_the_same_seed_gives_the_same():
    one, two, other = (find_interior(hard(8), "dunagan-vempala", random_state=seed) for seed in (1, 1, 2))
    assert one == two != other
    assert find_interior(hard(8), "dunagan-vempala", random_state=np.random.RandomState(0)).exists


# What is small


@pytest.mark.parametrize("method", ALL, **BY_NAME)
def test_the_smallest_sets(method):
    assert find_interior([[2.0]], method).exists
    assert find_interior([[-2.0]], method).x[0] < 0
    assert find_interior([[1.0], [-2.0]], method).certificate == Combination((0, 1), (2, 1))
    assert find_interior([[1.0, 0], [-1.0, 0]], method).certificate == Combination((0, 1), (1, 1))
    assert find_interior([[1.0, 0], [2.0, 0]], method).exists


@pytest.mark.parametrize("method", ALL, **BY_NAME)
def test_a_row_of_zeros_is_its_own_proof(method):
    found = find_interior([[1.0, 2.0], [0.0, 0.0]], method)
    assert found.certificate == Combination((1,), (1,))
    assert found.n_updates == 0
    assert "1 row with positive weights" in str(found)


def test_margins_down_to_what_floats_hold():
    for e in (20, 30, 40):
        A = np.array([[1.0, 2.0**-e], [-1.0, 2.0**-e]])
        found = find_interior(A)
        assert found.exists
        assert found.verify(A)
        assert found.n_rescalings > 0
    A = np.array([[1.0, 2.0**-40], [-math.sqrt(0.5), 2.0**-40]])
    assert find_interior(A).verify(A)
    assert find_interior(A, "perceptron", max_updates=10_000).exists is None


def test_a_solution_that_only_floats_believe_in_is_not_returned():
    # 0.1 + 0.2 > 0.3 for floats' sums, but the numbers they stand for add up otherwise: the answer must be the exact one.
    A = np.array([[0.1, 0.2, -0.3], [-0.1, -0.2, 0.3]])
    for method in ALL:
        found = find_interior(A, method)
        assert found.exists is False
        assert found.verify(A)
    B = np.array([[0.1, 0.2, -0.3], [-0.1, -0.2, 0.30000000000000004]])
    assert all(find_interior(B, method, max_updates=1000).exists is not False for method in ALL)  # a margin of 10⁻¹⁷


def test_the_answer_reads_well():
    text = str(find_interior(hard(12)))
    assert text.startswith("A x > 0 has a solution, checked exactly; margin of the unit rows in [")
    assert re.search(r"\(rescaling, \d,\d\d\d updates, 2\d rescalings\)$", text)
    assert isinstance(find_interior(hard(3)), Found)
    with pytest.raises(AttributeError):
        find_interior(hard(3)).reason = "other"


@pytest.mark.parametrize(
    ("A", "options", "message"),
    [
        (np.zeros((0, 3)), {}, "at least one row"),
        (np.zeros((3, 0)), {}, "at least one row"),
        ([1.0, 2.0], {}, "two dimensions"),
        ([[np.nan, 1.0]], {}, "NaN"),
        ([[np.inf, 1.0]], {}, "infinity"),
        ([["a", "b"]], {}, "must hold numbers"),
        ([[1j, 1.0]], {}, "real numbers"),
        ([[2**53 + 1, 1]], {}, "float64 cannot represent exactly"),
        ([[1e200, 1.0]], {}, "row 0 of A is too long"),
        ([[1.0, 1.0], [1e-200, 0.0]], {}, "row 1 of A is too short"),
        ([[1.0]], {"method": "simplex"}, "'rescaling', 'perceptron', 'dunagan-vempala', 'von-neumann', 'smooth'"),
        ([[1.0]], {"method": 3}, "must be one of"),
        ([[1.0]], {"max_updates": 0}, "max_updates must be a whole number ≥ 1"),
        ([[1.0]], {"max_updates": 1.5}, "max_updates must be .* got 1.5"),
        ([[1.0]], {"max_updates": True}, "max_updates must be .* got True"),
        ([[1.0]], {"max_rescalings": -1}, "max_rescalings must be a whole number ≥ 0"),
    ],
)
def test_nonsense_is_refused(A, options, message):
    with pytest.raises(ValueError, match=message):
        find_interior(A, **options)


def test_a_class_is_no_method():
    with pytest.raises(ValueError, match=r"or one such as Plain\(\)"):
        find_interior([[1, 2]], Plain)


def test_an_unknown_order_is_refused():
    for method in (Plain, Rescaling):
        with pytest.raises(ValueError, match="'cyclic', 'most-violated'"):
            method(order="random")


@pytest.mark.parametrize("method", ALL, **BY_NAME)
@pytest.mark.parametrize("most", [1, 2, 64, 65, 16 * 81, 16 * 81 + 1, 16 * 81 + 7])
def test_no_more_updates_than_allowed(method, most):
    A = hard(9)
    found = find_interior(A, method, max_updates=most)
    assert found.n_updates <= most
    assert found.verify(A) or (found.reason == "max_updates" and found.n_updates == most)


def test_rescalings_can_be_limited():
    for method in ("rescaling", "dunagan-vempala"):
        found = find_interior(hard(10), method, max_rescalings=1)
        assert found.exists is None
        assert found.reason == "max_rescalings"
        assert found.n_rescalings == 1


# Cones

ICE = SecondOrder(P=np.eye(3)[:2], c=[0, 0, 1])
TRIANGLE = symmetric(2)  # x ↦ [[x₁, x₂], [x₂, x₃]]


def lyapunov(M):
    """{P: P ≻ 0 and −(MᵀP + PM) ≻ 0}: not empty just when all eigenvalues of M have negative real parts."""
    return Intersection(Semidefinite(TRIANGLE), Semidefinite([-(M.T @ E + E @ M) for E in TRIANGLE]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [3, 5, 7])
def test_a_polyhedral_cone_is_what_its_rows_say(n, seed):
    found = find_in_cone(Polyhedral(hard(n)), random_state=seed)
    assert found.exists
    assert found.checked
    assert found.certificate.verify(hard(n))
    A = np.vstack([hard(n), -np.eye(n)[-1]])
    found = find_in_cone(Polyhedral(A), random_state=seed)
    assert found.exists is False
    assert found.certificate.verify(found.cuts)
    assert all((row == A).all(axis=1).any() for row in found.cuts)


def test_rescaling_reaches_thin_cones():
    found = find_in_cone(Polyhedral(hard(8)))
    assert found.exists
    assert found.n_rescalings > 0
    assert found.n_updates < (4**8 - 1) // 3


@pytest.mark.parametrize("e", [1, 4, 8, 12])
def test_the_ice_cream_cone_and_a_half_space(e):
    N = 2**e
    near = find_in_cone(Intersection(ICE, Polyhedral([[N + 1, 0, -N]])))  # (N+1)·x₁ > N·x₃
    x = near.certificate.x
    assert near.checked
    assert x[2] > 0
    assert x[0] ** 2 + x[1] ** 2 < x[2] ** 2
    assert (N + 1) * x[0] > N * x[2]
    none = find_in_cone(Intersection(ICE, Polyhedral([[N, 0, -N - 1]])))
    assert none.exists is False
    assert none.certificate.verify(none.cuts)
    assert "cuts with positive weights add up to 0" in str(none)


def test_a_cone_through_a_map():
    P, c = np.array([[1.0, 2, 0], [0, 1, -1], [3, 0, 1]]), np.array([1.0, 4, 9])
    found = find_in_cone(SecondOrder(P, c))
    x = found.x
    assert found.exists
    assert np.linalg.norm(P @ x) < c @ x
    assert find_in_cone(SecondOrder(np.vstack([P, 2 * c]), c)).exists is not True  # ‖…‖ ≥ 2|⟨c, x⟩|: nothing


@pytest.mark.parametrize("M", [[[0, 1], [-1, -1]], [[-1, 30], [0, -1]], [[-3, 1], [2, -2]]])
def test_stable_systems_have_a_lyapunov_function(M):
    M = np.array(M, dtype=float)
    found = find_in_cone(lyapunov(M))
    assert found.exists
    assert found.checked
    P = np.array([[found.x[0], found.x[1]], [found.x[1], found.x[2]]])
    assert np.linalg.eigvalsh(P).min() > 0
    assert np.linalg.eigvalsh(M.T @ P + P @ M).max() < 0


@pytest.mark.parametrize("M", [[[1, 0], [0, 2]], [[1, 1], [-1, 1]], [[1, 0], [0, -1]]])
def test_unstable_ones_have_none_and_it_is_proved(M):
    found = find_in_cone(lyapunov(np.array(M, dtype=float)))
    assert found.exists is False
    assert found.certificate.verify(found.cuts)


def test_symmetric_names_the_entries_of_the_lower_triangle():
    assert TRIANGLE.tolist() == [[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]]
    M = np.tensordot([1.0, 2, 3, 4, 5, 6], symmetric(3), axes=1)
    assert M.tolist() == [[1, 2, 4], [2, 3, 5], [4, 5, 6]]


@pytest.mark.parametrize("seed", range(4))
def test_definite_matrices_in_a_slab(seed):
    # P ≻ 0 with ⟨C, P⟩ > 0: a definite C has many, a C = −vvᵀ none.
    rng = np.random.default_rng(seed)
    v = rng.integers(-3, 4, 3)
    v[0] = 1
    weigh = np.array([1, 2, 1, 2, 2, 1])  # an entry off the diagonal is there twice
    row = (np.outer(v, v)[np.tril_indices(3)] * weigh).astype(float)
    plus = Intersection(Semidefinite(symmetric(3)), Polyhedral(row[None]))
    minus = Intersection(Semidefinite(symmetric(3)), Polyhedral(-row[None]))
    assert find_in_cone(plus, random_state=seed).verify(plus)
    found = find_in_cone(minus, random_state=seed)
    assert found.exists is False
    assert found.verify(minus)


def test_a_proof_of_irrational_cuts_only_is_not_made_up():
    golden = lyapunov(np.array([[0.0, 1], [1, -1]]))  # unstable, along an eigenvector with √5 in it
    found = find_in_cone(golden, max_updates=1000)
    assert found.exists is None
    assert not found.verify(golden)
    assert found.reason == "max_updates"


def test_inside_is_decided_exactly():
    half = Fraction(1, 2)
    assert ICE.contains((Fraction(3), Fraction(4), Fraction(5) + Fraction(1, 10**40)))
    assert not ICE.contains((Fraction(3), Fraction(4), Fraction(5)))
    assert not ICE.contains((Fraction(0), Fraction(0), Fraction(-1)))
    definite = Semidefinite(TRIANGLE)
    assert definite.contains((half, half, half + Fraction(1, 10**40)))
    assert not definite.contains((half, half, half))
    assert not definite.contains((-half, Fraction(0), half))
    three = Semidefinite(np.array([np.eye(3), np.ones((3, 3))]))
    assert three.contains((Fraction(1), Fraction(-1, 3) + Fraction(1, 10**30)))
    assert not three.contains((Fraction(1), Fraction(-1, 3)))
    assert Polyhedral([[1, -1]]).contains((half + Fraction(1, 10**40), half))


def test_a_function_is_enough():
    def positive(x):
        return None if (x > 0).all() else np.eye(4)[x.argmin()]

    found = find_in_cone(positive, 4)
    assert found.exists
    assert not found.checked
    assert (found.x > 0).all()
    assert "word of the oracle" in str(found)
    never = find_in_cone(lambda x: np.eye(2)[0] * (-1 if x[0] > 0 else 1), 2)
    assert never.exists is False
    assert isinstance(never.certificate, Combination)
    assert isinstance(found.certificate, Interior)


def orthant(scale):
    return lambda x: None if (x > 0).all() else scale * np.eye(3)[x.argmin()]


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200])
def test_a_cut_whose_length_is_no_float_is_refused_and_proves_nothing(scale):
    with pytest.raises(ValueError, match="squared length of a cut must not overflow or underflow"):
        find_in_cone(orthant(scale), 3)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_length_of_a_cut_does_not_matter(scale):
    assert find_in_cone(orthant(scale), 3).exists


def test_a_dual_vector_proves_that_a_cone_has_no_inside():
    cone = SecondOrder(np.eye(2), [1, 0])  # ‖x‖ < x₁
    found = find_in_cone(cone)
    assert (found.exists, found.reason, found.checked, found.n_updates) == (False, "combination", True, 0)
    assert found.dual == (1, 0)
    assert found.verify(cone)
    assert not found.verify(SecondOrder(np.eye(2), [1, 1]))
    assert not found.verify(Polyhedral(np.eye(2)))
    assert "a dual vector proves it" in str(found)
    both = Intersection(Polyhedral([[1, 1]]), cone)
    assert find_in_cone(both).exists is False
    assert find_in_cone(both).verify(both)


@given(st.integers(1, 4), st.integers(1, 5), st.data())
@settings(max_examples=60)
def test_every_second_order_cone_of_integers_without_an_inside_is_decided(d, m, data):
    number = st.integers(-3, 3)
    P = np.array(data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=m, max_size=m)))
    # Nothing is inside if and only if c = Pᵀv with ‖v‖ ≤ 1; these v are on the edge, or near to it.
    v = [Fraction(value, 5) for value in data.draw(st.permutations([3, 4, 0, 0, 0, 0][: max(2, m)]))[:m]]
    c = [sum((value * int(row[j]) for value, row in zip(v, P, strict=True)), Fraction(0)) * 5 for j in range(d)]
    cone = SecondOrder(5 * P, [int(value) for value in c])
    found = find_in_cone(cone)
    assert found.exists is False
    assert found.verify(cone)
    corrupted = dataclasses.replace(found, dual=(found.dual[0] + 1, *found.dual[1:]))
    assert not corrupted.verify(cone) or (P[0] == 0).all()


@given(st.integers(1, 3), st.integers(1, 4), st.data())
@settings(max_examples=60)
def test_a_second_order_cone_of_integers_has_an_inside_or_a_dual_vector(d, m, data):
    number = st.integers(-3, 3)
    P = np.array(data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=m, max_size=m)))
    cone = SecondOrder(P, data.draw(st.lists(number, min_size=d, max_size=d)))
    found = find_in_cone(cone)
    assert found.exists is (cone.dual_vector() is None)
    assert found.verify(cone)


def test_an_oracle_may_write_to_its_point():
    def separate(x):
        row = None if (x > 0).all() else np.eye(3)[x.argmin()]
        x.fill(5)
        return row

    assert find_in_cone(separate, 3).exists


def test_only_a_cone_of_the_same_dimension_is_asked_about_the_point():
    found = find_in_cone(orthant(1), 3)
    assert found.verify(Polyhedral(np.eye(3)))
    assert not found.verify(SecondOrder(np.eye(2), [1, 1]))
    assert not found.verify(Semidefinite(symmetric(2)[:2]))
    with pytest.raises(ValueError, match="has none; test the point `x` with it"):
        found.verify(orthant(1))


def test_a_search_in_a_cone_can_be_stopped():
    found = find_in_cone(Polyhedral(hard(9)), max_updates=20)
    assert found.exists is None
    assert found.reason == "max_updates"
    assert found.n_updates == 20
    assert str(found).startswith("undecided (max_updates; 20 updates")
    found = find_in_cone(Polyhedral(hard(9)), max_rescalings=0)
    assert found.reason == "max_rescalings"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: find_in_cone(3, 2), "a function from x to a cut"),
        (lambda: find_in_cone(lambda x: None), "dimension must be a whole number with a function"),
        (lambda: find_in_cone(ICE, 4), "the cone has 3"),
        (lambda: find_in_cone(lambda x: np.ones(3), 2), "a cut must be 2 finite numbers"),
        (lambda: find_in_cone(lambda x: x, 2), "positive side"),
        (lambda: find_in_cone(ICE, max_updates=0), "max_updates must be a whole number ≥ 1"),
        (lambda: Polyhedral([[0, 0]]), "row 0 of A is zero"),
        (lambda: SecondOrder(np.eye(2), [1, 2, 3]), "2 columns and c 3"),
        (lambda: Semidefinite(np.eye(2)), "(dimension, k, k)"),
        (lambda: Semidefinite([[[0, 1], [2, 0]]]), "symmetric"),
        (lambda: Intersection(), "at least one"),
        (lambda: Intersection(ICE, Polyhedral([[1, 2]])), "same dimension"),
    ],
)
def test_nonsense_about_cones_is_refused(make, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        make()


def test_an_answer_is_true_or_false_or_neither():
    assert find_interior([[2, -1], [-1, 1]])
    assert not find_interior([[1], [-1]])
    assert not find_in_cone(Polyhedral([[1, 0], [-1, 0]]))
    unknown = find_interior(np.eye(12) - np.tril(np.ones((12, 12)), -1), "perceptron", max_updates=10)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(unknown)


def test_a_cut_that_was_rounded_proves_nothing():
    a = 2.0**53
    thin = Semidefinite([[[a, 0.5], [0.5, a]], [[-0.25, -0.25], [-0.25, -0.25]]])
    cone = Intersection(thin, Polyhedral([[-(2.0**54), 1.0]]))
    assert cone.contains((Fraction(1), Fraction(2**54) + Fraction(1, 2)))
    assert find_in_cone(cone).exists is not False
    assert not thin.separate(np.array([1.0, 2.0**55])).exact
    assert Semidefinite(symmetric(2)).separate(np.array([1.0, 2.0, 1.0])).exact
