"""The verdict agrees with an exact linear program, every certificate is true, and a corrupted one is not."""

from dataclasses import replace
from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.solve import alternative
from rosenblatt.testing import rational
from rosenblatt.theory import Inseparable, Separable, Undecided, separability
from rosenblatt.theory.alternative import STAGES
from rosenblatt.theory.signed import read


def labelled(rng, n, d):
    """Integer points and labels of both kinds."""
    X = rng.integers(-4, 5, (n, d)).astype(float)
    y = rng.permutation(np.append([1, -1], rng.choice([-1, 1], n - 2)))
    return X, y


def inseparable(rng, n, d):
    return labelled(rng, n, d)


def planted(rng, n, d):
    """Classes on the two sides of a plane, at an integer distance of at least 1."""
    X, _ = labelled(rng, n, d)
    u = rng.integers(-3, 4, d).astype(float)
    u[0] = u[0] or 1.0
    b = float(rng.integers(-3, 4)) + 0.5
    y = np.where(X @ u + b > 0, 1, -1)
    if abs(y.sum()) == n:
        X[0] -= 2 * (X[0] @ u + b) / (u @ u) * u  # its mirror image, or nearly
        y[0] = -y[0]
    return X, y


def touching(rng, n, d):
    """Both classes reach the same plane, and one of them a point between two of the other."""
    X, y = planted(rng, n, d)
    X[0] = (X[1] + X[-1]) / 2
    y[0], y[1], y[-1] = -1, 1, 1
    return X, y


def degenerate(rng, n, d):
    """All points in a subspace of one or two dimensions."""
    X, y = planted(rng, n, d)
    basis = rng.integers(-2, 3, (int(rng.integers(1, 3)), d)).astype(float)
    return X[:, : len(basis)] @ basis[:, :] if d >= len(basis) else X, y


def duplicated(rng, n, d):
    X, y = (planted if rng.uniform() < 0.5 else labelled)(rng, n, d)
    twins = rng.integers(0, n, n // 2)
    flip = rng.uniform() < 0.3
    return np.vstack([X, X[twins]]), np.append(y, -y[twins] if flip else y[twins])


def constant_columns(rng, n, d):
    X, y = (planted if rng.uniform() < 0.5 else labelled)(rng, n, d)
    return np.column_stack([X, np.full(n, 7.0), np.zeros(n)]), y


def huge_and_tiny(rng, n, d):
    """Columns of sizes from 10⁻²⁰⁰ to 10²⁰⁰, and rounding where that is not a power of two."""
    X, y = (planted if rng.uniform() < 0.5 else labelled)(rng, n, d)
    return X * 10.0 ** rng.integers(-200, 200, d), y


def one_bit_off(rng, n, d):
    """Touching but for the last bit of a number."""
    X, y = touching(rng, n, d)
    X = X * 0.1
    X[0] = np.nextafter(X[0], rng.choice([-np.inf, np.inf]))
    return X, y


KINDS = [planted, inseparable, touching, degenerate, duplicated, constant_columns, huge_and_tiny, one_bit_off]


def drawn(kind, seed):
    rng = np.random.default_rng([KINDS.index(kind), seed])
    X, y = kind(rng, int(rng.integers(3, 13)), int(rng.integers(1, 6)))
    if len(set(y.tolist())) < 2:
        y[0] = -y[0]
    return X, y


@pytest.mark.parametrize("kind", KINDS)
def test_verdict_is_that_of_an_exact_linear_program(kind):
    verdicts = set()
    for seed in range(125):
        X, y = drawn(kind, seed)
        intercept = bool(seed % 2)
        proof = separability(sp.csr_array(X) if seed % 3 == 0 else X, y, intercept=intercept)
        assert isinstance(proof, Separable) == rational.separable(read(X, y, float(intercept)).A.tolist())
        assert not isinstance(proof, Undecided)
        assert proof.verify(X, y), proof.refutation(X, y)
        if isinstance(proof, Inseparable):
            assert len(proof.rows) <= X.shape[1] + intercept + 1
        verdicts.add(type(proof))
    assert len(verdicts) == 2 or kind is touching


@pytest.mark.parametrize("method", STAGES)
def test_a_stage_alone_proves_or_is_silent(method):
    answers = []
    for seed in range(40):
        X, y = drawn(KINDS[seed % len(KINDS)], 1000 + seed)
        proof = separability(X, y, method=method)
        answers.append(not isinstance(proof, Undecided))
        assert proof.verify(X, y) == answers[-1]
        assert isinstance(proof, Undecided) or isinstance(proof, Separable) == rational.separable(read(X, y).A.tolist())
    assert any(answers)
    assert method != "simplex" or all(answers)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_corrupted_certificate_fails(seed, place):
    X, y = drawn(KINDS[seed % len(KINDS)], seed)
    proof = separability(X, y)
    if isinstance(proof, Separable):
        assert not replace(proof, margin=proof.margin * 2).verify(X, y)
        assert not replace(proof, w=tuple(-v for v in proof.w), b=-proof.b).verify(X, y)
        assert "dimensions" in replace(proof, w=(*proof.w, Fraction(1))).refutation(X, y)
        i = place % len(y)
        other = y.copy()
        other[i] = -other[i]
        if len(set(other.tolist())) == 2:
            assert not proof.verify(X, other)
    else:
        i = place % len(proof.rows)
        weights = list(proof.combination)
        weights[i] += 1
        zero = not X[proof.rows[i]].any() and len(proof.rows) == 1
        assert zero or not replace(proof, combination=tuple(weights)).verify(X, y)
        assert not replace(proof, combination=tuple(-v for v in proof.combination)).verify(X, y)
        assert not replace(proof, rows=(), combination=()).verify(X, y)
        assert not replace(proof, rows=tuple(len(y) + r for r in proof.rows)).verify(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": (0.0, 1.0, 2.0, 3.0)},
        {"rows": (False, True, 2, 3)},
        {"rows": ("0", 1, 2, 3)},
        {"rows": (0, 1, 2, -1)},
        {"rows": (0, 1, 2, 2)},
        {"combination": (1.0, 1.0, 1.0, 1.0)},
        {"combination": (True, True, True, True)},
        {"combination": tuple(np.ones(4, dtype=int))},
        {"combination": (1, 1, 1, float("nan"))},
    ],
)
def test_a_combination_of_other_than_integers_is_refuted(change):
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    proof = separability(X, y)
    assert proof.verify(X, y)
    assert not replace(proof, **change).verify(X, y)


def test_a_hyperplane_of_other_than_fractions_is_refuted():
    X, y = [[1.0], [-2.0]], [1, 0]
    big = 10**17 + 1  # float(big) is 10**17: to divide integers is to round
    true = Separable((Fraction(big),), Fraction(0), False, Fraction(big), 0, "hand")
    assert true.verify(X, y)
    for change in (
        {"w": (big,), "margin": Fraction(10**17)},
        {"w": (float(big),)},
        {"w": (float("nan"),)},
        {"b": 0.0},
        {"margin": 1e17},
        {"row": -2},
        {"row": False},
        {"row": 0.0},
        {"row": 7},
    ):
        assert not replace(true, **change).verify(X, y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("w", "row"), [((0, 0), 0), ((1, 0), 0), ((1, 1), 1)])
def test_a_margin_of_zero_separates_nothing(w, row, intercept):
    """It is refuted although the certificate claims no more, and names the row."""
    X, y = [[0.0, 1.0], [2.0, -2.0], [-3.0, 3.0]], [1, 1, 0]
    proof = Separable(tuple(map(Fraction, w)), Fraction(0), intercept, Fraction(0), row, "hand")
    assert min(proof.margins(X, y)) == proof.margins(X, y)[row] == 0
    assert proof.refutation(X, y) == f"row {row} has margin 0, which is not positive"
    assert not proof.verify(X, y)


def test_a_linear_program_blind_to_what_it_violates_does_not_go_on():
    X = np.array([
        [-1e-169, 2e43, 0, -2e169, 1e73], [0, 0, -1e-25, 0, -1e54], [0, -1e-164, -1e151, -2e171, -2e278],
        [2e-282, 0, 2e-296, 2e-125, 2e286], [2e-77, 0, 1e99, -1e-215, 0], [2e-8, -2e-91, 0, 0, -2e286],
        [1e-286, 1e145, -1e-244, 0, 2e5],
    ])  # fmt: skip
    proof = separability(X, [0, 0, 1, 0, 0, 1, 0], intercept=False, max_seconds=20)
    assert isinstance(proof, Separable)


@given(st.integers(0, 10**6))
def test_simplex_looks_at_no_more_columns_than_there_are_rows(seed):
    rng = np.random.default_rng(seed)
    n, rank = rng.integers(2, 6), rng.integers(1, 6)
    X = (rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, 12))).astype(float)
    y = np.arange(n) % 2
    proof = separability(X, y, method="simplex")
    assert isinstance(proof, Separable) == rational.separable(read(X, y).A.tolist())
    assert proof.verify(X, y)


def test_simplex_of_wide_rows_needs_little_room():
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (6, 20_000)).astype(float)  # squared, the columns would fill gigabytes
    X[5] = X[:4].sum(axis=0) - X[4]
    proof = separability(X, [1, 1, 1, 1, 0, 0], method="simplex", intercept=False)
    assert isinstance(proof, Inseparable)
    assert proof.verify(X, [1, 1, 1, 1, 0, 0])


def test_margins_are_exact():
    X, y = [[0.1, 0.2], [0.3, -0.1], [-0.1, 0.7]], [1, 1, -1]
    proof = separability(X, y)
    w, b = proof.w, proof.b
    by_hand = [s * (w[0] * Fraction(x[0]) + w[1] * Fraction(x[1]) + b) for x, s in zip(X, y, strict=True)]
    assert proof.margins(X, y) == by_hand
    assert proof.margin == min(by_hand) == by_hand[proof.row]


def test_a_zero_row_alone_makes_it_impossible_through_the_origin():
    proof = separability([[1, 2], [0, 0], [-1, -1]], [1, 1, -1], intercept=False)
    assert (proof.rows, proof.combination, proof.margin) == ((1,), (1,), 0)
    assert isinstance(separability([[1, 2], [0, 0], [-1, -1]], [1, 1, -1]), Separable)


def test_opposite_rows_are_found_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 30))
    y = rng.choice([-1, 1], 500)
    X[400], y[400] = X[3], -y[3]
    assert set(separability(X, y).rows) == {3, 400}


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_integer_simplex_decides_gordans_alternative(seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (int(rng.integers(1, 14)), int(rng.integers(1, 6)))).astype(float)
    A = A * 2.0 ** rng.integers(-60, 60, (len(A), 1)) * 10.0 ** rng.integers(-60, 60, A.shape[1])
    found = alternative(A)
    assert found.verify(A)
    assert isinstance(found, Interior) == rational.separable(A.tolist())
    assert isinstance(found, Interior) or (isinstance(found, Combination) and len(found.rows) <= A.shape[1] + 1)


def test_an_exponentially_small_margin_is_no_obstacle():
    n = 60
    rows = np.eye(n) - np.tril(np.ones((n, n)), -1)
    y = np.where(np.arange(n) % 2, -1, 1)
    proof = separability(y[:, None] * rows, y, intercept=False)
    assert isinstance(proof, Separable)
    assert proof.verify(y[:, None] * rows, y)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[1.0], [2.0], [3.0]], [0, 1, 2], "two labels; got 3: 0, 1, 2"),
        ([[1.0], [2.0]], [1, 1], "two labels; got 1"),
        (np.empty((0, 3)), [], "at least one row"),
        (np.empty((2, 0)), [0, 1], "one column"),
        ([[1.0], [np.nan]], [0, 1], "NaN or infinity"),
        ([[1.0], [np.inf]], [0, 1], "NaN or infinity"),
        ([[1.0], [2.0]], [0.0, np.nan], "y holds NaN"),
        ([[1.0], [2.0]], [0, 1, 1], "one label for each of the 2 rows"),
        ([1.0, 2.0], [0, 1], "two dimensions"),
        ([["a"], ["b"]], [0, 1], "must hold numbers"),
        ([[1j], [2j]], [0, 1], "real numbers"),
        ([["1"], ["2"]], [0, 1], "must hold numbers; got <U1"),
        ([[None], [2]], [0, 1], "must hold numbers; got None"),
        (np.array([["1"], [2]], dtype=object), [0, 1], "must hold numbers; got '1'"),
        (np.array([[0], [1]], dtype="M8[D]"), [0, 1], "must hold numbers; got datetime64"),
        (np.ma.array([[1.0], [2.0]], mask=[[True], [False]]), [0, 1], "masked"),
        (sp.coo_array(np.ones(2)), [0, 1], "two dimensions"),
        ([[1.0], [2.0]], np.array([0, "a"], dtype=object), "labels of one type; got int, str"),
        ([[2**53 + 1], [2]], [0, 1], "which float64 cannot represent exactly"),
    ],
)
def test_nonsense_is_refused(X, y, words):
    with pytest.raises(ValueError, match=words):
        separability(X, y)


def test_unknown_method_names_the_known():
    with pytest.raises(ValueError, match=r"'auto', 'look', .*; got 'magic'"):
        separability([[1.0], [2.0]], [0, 1], method="magic")


def test_no_time_is_undecided_and_says_so():
    X, y = drawn(planted, 0)
    assert isinstance(separability(X, y, method="perceptron", max_seconds=0.0), Undecided)
    answer = separability(X, y, max_seconds=-1.0)
    assert isinstance(answer, Undecided)
    assert "undecided within [" in str(answer)
    assert not answer.verify(X, y)


def test_the_answer_is_true_or_false():
    corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    both, odd = separability(corners, [0, 0, 0, 1]), separability(corners, [0, 1, 1, 0])
    assert both
    assert not odd
    assert (both.separable, odd.separable) == (True, False)
    open_still = separability([[0.0, 1.0], [1.0, 0.0]], [0, 1], max_seconds=0.0)
    assert open_still.separable is None
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(open_still)


def test_time_is_looked_at_within_long_stages(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 400)), rng.choice([-1, 1], 1500)
    start = perf_counter()
    answer = separability(X, y, method="nearest", max_seconds=1.0, verbose=True)
    assert isinstance(answer, Undecided)
    assert "1 s were over" in str(answer)
    assert perf_counter() - start < 60  # the exact proof alone takes several times the second
    assert "separability, nearest: no proof after" in capsys.readouterr().err


def test_the_plane_in_floats_separates_too():
    X, y = np.array([[1.0, 2.0], [-1.0, 1.0], [3.0, -5.0]]), np.array([1, -1, 1])
    proof = separability(X, y)
    huge = replace(proof, w=tuple(v * 10**400 for v in proof.w), b=proof.b * 10**400)
    for w, b in (proof.plane, huge.plane):
        assert (y * (X @ w + b) > 0).all()


def test_nothing_is_said_unless_it_is_asked_for(capsys):
    assert separability([[1.0], [2.0]], [0, 1])
    assert capsys.readouterr() == ("", "")
    assert separability([[1.0], [2.0]], [0, 1], verbose=True)
    assert capsys.readouterr().err
