"""Exact arithmetic against Python's fractions."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.exact import dyadic, rounding
from rosenblatt.exact.certificates import Combination, Interior, as_floats
from rosenblatt.exact.dyadic import about, cleared, mantissas, products, whole
from rosenblatt.exact.solve import _PRIMES, dependence

floats = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float) | st.just(5e-324)
integers = st.integers(-3, 3) | st.integers(-(2**200), 2**200)


@st.composite
def matrices(draw, entries=floats):
    n, d = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    return np.array(draw(st.lists(entries, min_size=n * d, max_size=n * d))).reshape(n, d)


@given(matrices())
def test_a_float_is_an_integer_times_a_power_of_two(A):
    m, e = mantissas(A)
    V, low = whole(A)
    for value, number, power, integer in zip(A.flat, m.flat, e.flat, V.flat, strict=True):
        exact = Fraction(float(value))
        assert exact == int(number) * Fraction(2) ** int(power) == integer * Fraction(2) ** low
        assert number == 0 or number % 2


@given(st.data(), matrices(), st.booleans())
def test_products_do_not_round(data, A, sparse):
    w = data.draw(st.lists(integers, min_size=A.shape[1], max_size=A.shape[1]))
    found, e = products(sp.csr_array(A) if sparse else A, w)
    by_hand = [sum((Fraction(a) * v for a, v in zip(row, w, strict=True)), Fraction(0)) for row in A.tolist()]
    assert [p * Fraction(2) ** e for p in found] == by_hand


def test_products_of_many_rows_are_those_of_each():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3000, 1000)) * 2.0 ** rng.integers(-30, 30, (3000, 1))  # more than one chunk
    w = rng.integers(-(2**40), 2**40, 1000).tolist()
    found, e = products(A, w)
    for i in (0, 1500, 2098, 2999):
        assert found[i] * Fraction(2) ** e == sum(Fraction(a) * v for a, v in zip(A[i].tolist(), w, strict=True))


def test_products_need_one_number_for_each_column():
    with pytest.raises(ValueError, match="each of the 3 columns; got 2"):
        products(np.ones((2, 3)), [1, 2])


@settings(max_examples=50)
@given(st.integers(0, 10**9))
def test_dependence_is_exact_and_unique(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    rows = rng.integers(-3, 4, (d + 1, d)).astype(float)
    if seed % 2:
        rows = rows * rng.normal(size=(d + 1, d)) * 10.0 ** rng.integers(-80, 80, d)
    found = dependence(rows)
    rank = np.linalg.matrix_rank(rows / np.maximum(np.abs(rows).max(axis=0), 1e-300))
    assert (found is None) == (rank < d) or seed % 2  # with such numbers numpy's rank is a guess
    if found is not None:
        for column in rows.T.tolist():
            assert sum(v * Fraction(c) for v, c in zip(found, column, strict=True)) == 0


def test_dependence_of_many_rows():
    rng = np.random.default_rng(0)
    rows = (rng.uniform(size=(101, 100)) < 0.2).astype(float)
    found = dependence(rows)
    assert not (np.array(found, dtype=object) @ rows.astype(int).astype(object)).any()
    assert max(map(abs, found)) > 2**64  # no machine integer would have done


def test_rounding_takes_as_few_bits_as_will_do():
    A = np.array([[1.0, 0.0], [-1.0, 3.0]])
    assert rounding.interior(A, np.array([0.3000001, 0.2999999])).x == (10, 10)
    assert rounding.interior(A, np.array([1.0, -1.0])) is None
    assert rounding.interior(A, np.array([np.nan, 1.0])) is None
    thin = np.array([[1.0, -1.0], [-1.0, 1.0 + 2**-50]])  # 1 > x₂ / x₁ > 1 − 2⁻⁵⁰
    assert rounding.interior(thin, np.array([1.0, 1.0])) is None
    assert rounding.interior(thin, np.array([1.0, 1.0 - 2**-51])).verify(thin)


def test_combination_drops_rows_that_are_not_needed():
    A = np.array([[1.0, 0], [0, 1], [-1, -1], [-1, 0], [5, 5]])
    found = rounding.combination(A, [0, 1, 2, 3, 4], np.array([0.3, 0.2, 0.2, 0.1, 0.0]))
    assert found.verify(A)
    assert len(found.rows) <= 3
    assert rounding.combination(A, [0, 1, 4]) is None
    assert rounding.combination(np.array([[1.0], [0.0]]), [0, 1]) == Combination((1,), (1,))


def test_refutations_name_the_place():
    A = np.array([[1.0, 0], [0, 1], [-1, -1]])
    assert "row 2" in Interior.of([1, 1]).refutation(A)
    assert "3 coordinates" in Interior.of([1, 1, 1]).refutation(A)
    assert Combination((0, 1, 2), (1, 1, 1)).verify(A)
    assert "column 0: 1" in Combination((0, 1, 2), (2, 1, 1)).refutation(A)
    assert "positive" in Combination((0, 1, 2), (1, 1, 0)).refutation(A)
    assert "different" in Combination((0, 0), (1, 1)).refutation(A)
    assert "at least one" in Combination((), ()).refutation(A)


def test_numbers_of_any_size_can_be_shown():
    assert about(Fraction(10**400)) == "1e+400"
    assert about(Fraction(-1, 3)) == "-0.333333"
    assert cleared([Fraction(1, 2), Fraction(1, 3)]) == [3, 2]
    assert as_floats([Fraction(10**400), Fraction(0)])[0] > 0
    assert as_floats([Fraction(1, 10**400)])[0] > 0
    assert as_floats([Fraction(0)]).tolist() == [0]
    assert np.asarray(Interior.of([1, 2])).tolist() == [1, 2]


def test_dependence_survives_an_unlucky_prime():
    prime = 67108859.0
    rows = np.array([[prime, 0.0], [0.0, prime], [-1.0, -1.0]])
    assert dependence(rows) == [1, 1, 67108859]


def test_dependence_of_numbers_that_the_primes_divide():
    both = float(_PRIMES[0] * _PRIMES[1])
    assert dependence(np.array([[both, 0.0], [0.0, both], [-both, -both]])) == [1, 1, 1]


def test_products_of_wide_sparse_rows_are_made_many_rows_at_a_time(monkeypatch):
    parts = []
    whole_products = dyadic._chunk_products
    monkeypatch.setattr(dyadic, "_chunk_products", lambda *args: parts.append(args) or whole_products(*args))
    A = sp.eye_array(500, 10**5, format="csr")
    found, e = products(A, range(10**5))
    assert [p * 2**e for p in found] == list(range(500))
    assert len(parts) == 1
