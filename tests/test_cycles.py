"""What find_cycle says is held against a naive perceptron in fractions that remembers every weight vector it had."""

from decimal import Decimal
from fractions import Fraction
from math import gcd, isqrt, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt import Perceptron
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.solve import alternative
from rosenblatt.theory import bounds
from rosenblatt.theory.cycles import Converged, Cycle, NoRepeat, Walk, exact_rows, find_cycle, lengths, mixture
from rosenblatt.theory.signed import read


def naive(X, y, *, constant=1, delta=0, rate=1, start=None, epochs=300, stop=True):
    """(weights after each epoch, counts after each epoch, largest squared length), up to a repeat or a clean epoch."""
    A = [[s * Fraction(v) for v in [*row, *([constant] if constant else [])]] for row, s in zip(X, y, strict=True)]
    w = [Fraction(v) for v in start] if start is not None else [Fraction(0)] * len(A[0])
    counts, largest = [0] * len(A), sum(v * v for v in w)
    path, moves = [tuple(w)], [tuple(counts)]
    while len(path) <= epochs:
        for i, a in enumerate(A):
            if sum(p * q for p, q in zip(a, w, strict=True)) <= delta:
                w = [p + Fraction(rate) * q for p, q in zip(w, a, strict=True)]
                counts[i] += 1
                largest = max(largest, sum(v * v for v in w))
        again = stop and tuple(w) in set(path)
        path.append(tuple(w))
        moves.append(tuple(counts))
        if again:
            break
    return path, moves, largest


def check_against_naive(X, y, **settings):
    path, moves, largest = naive(X, y, **settings)
    first = path.index(path[-1])
    period = len(path) - 1 - first
    if not period:
        found = find_cycle(X, y, max_epochs=len(path) - 1, **settings)
        assert isinstance(found, NoRepeat)
        assert (found.weights, found.updates) == (path[-1], sum(moves[-1]))
        assert dict(zip(found.mixture.rows, found.mixture.weights, strict=True)) == {
            i: count for i, count in enumerate(moves[-1]) if count
        }
    elif moves[-1] == moves[-2]:
        found = find_cycle(X, y, max_epochs=len(path) - 1, **settings)
        assert isinstance(found, Converged)
        assert (found.epochs, found.updates) == (len(path) - 1, sum(moves[-1]))
        assert found.interior.x == path[-1]
    else:
        found = find_cycle(X, y, max_epochs=3 * max(first, period) + 1, **settings)
        assert isinstance(found, Cycle)
        assert (found.preperiod, found.period) == (first, period)
        assert found.weights == path[first]
        counts = [b - a for a, b in zip(moves[first], moves[-1], strict=True)]
        assert found.combination == Combination(tuple(np.flatnonzero(counts).tolist()), tuple(c for c in counts if c))
        assert found.updates == sum(counts)
    assert found.largest == pytest.approx(sqrt(largest), rel=1e-15)
    return found


@st.composite
def labelled(draw, values):
    n, d = draw(st.integers(2, 6)), draw(st.integers(1, 2))
    X = draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n))
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n - 2, max_size=n - 2))
    return X, [-1, *y, 1]


@given(labelled(st.integers(-3, 3)), st.sampled_from([0, 1, 3]), st.sampled_from([0, 2, Fraction(1, 3)]))
def test_the_walk_is_that_of_the_naive_perceptron(data, constant, margin):
    X, y = data
    found = check_against_naive(X, y, constant=constant, delta=margin)
    A = read(X, y, constant).A
    assert isinstance(found, Converged) == isinstance(alternative(A), Interior) or isinstance(found, NoRepeat)
    if isinstance(found, Converged):
        assert found.interior.verify(A)
    if isinstance(found, Cycle):
        proof = found.combination
        assert proof.verify(A)
        corrupted = Combination(proof.rows, (proof.weights[0] + 1, *proof.weights[1:]))
        assert corrupted.verify(A) == (not A[proof.rows[0]].any())


@given(
    labelled(st.sampled_from([0.1, -0.3, 0.75, -2.0, 1.0, 0.0])),
    st.sampled_from([0.5, Fraction(1, 3), 2]),
    st.lists(st.sampled_from([0, 0.2, Fraction(-2, 7)]), min_size=3, max_size=3),
)
def test_floats_rates_and_starts_are_the_fractions_they_are(data, rate, start):
    X, y = data
    check_against_naive(X, y, delta=Fraction(1, 8), rate=rate, start=start[: len(X[0]) + 1])


@pytest.mark.parametrize("size", [1, 2**24, 2**40, 2**60])
@pytest.mark.parametrize("flipped", [0, 3])
def test_windows_and_rows_find_the_same_mistakes_whatever_the_size_of_the_numbers(size, flipped):
    rng = np.random.default_rng(5)
    X = rng.integers(-9, 10, (400, 3))
    X[np.abs(X @ [3, -2, 1]) < 4] = [4, 0, 0]
    y = np.where(X @ [3, -2, 1] > 0, 1, -1)
    y[:flipped] *= -1
    walk = Walk(exact_rows((X.astype(object) * size + [[0, 0, 1]]).tolist(), y, 0))
    path, moves, largest = naive((X.astype(object) * size + [[0, 0, 1]]).tolist(), y, constant=0, epochs=12, stop=False)
    for weights, counts in zip(path[1:], moves[1:], strict=True):
        walk.epoch()
        assert (walk.weights(), tuple(walk.counts)) == (weights, counts)
    assert walk.longest() == pytest.approx(sqrt(largest), rel=1e-15)
    assert (walk.epoch() == 0) == (flipped == 0)


def test_products_that_differ_from_zero_by_one_are_told_from_it_whatever_their_size():
    """p·x − q·z = 1 has solutions for coprime p and q. Floats lose the 1 where the products have more than 53 bits."""
    rng = np.random.default_rng(0)
    for bits in [20, *[26, 27, 28, 29] * 12, 40, 62]:
        q = int(rng.integers(2 ** (bits - 1), 2**bits)) | 1
        p = next(p for p in range(q - 2, 1, -1) if gcd(p, q) == 1 and (p * pow(p, -1, q) - 1) // q > q // 8)
        x, z = pow(p, -1, q), (p * pow(p, -1, q) - 1) // q
        for sign in (1, -1):
            X, y = [[-1, 0]] + [[1, 0]] * 100 + [[sign * p, -sign * q]], [-1] + [1] * 101
            for form in (X, np.array(X), np.array(X, dtype=object)):
                assert find_cycle(form, y, constant=0, start=[x, z], max_epochs=1).updates == (sign < 0)


def test_a_mistake_is_found_wherever_it_is():
    """In 64 dimensions windows begin after one row, and there are several before the rows end."""
    for at in range(100):
        X = np.zeros((100, 64))
        X[:, 0] = 1
        X[at, 0] = -1
        walk = Walk(X, start=[5] + [0] * 63)
        walk.epoch()
        assert walk.counts == [int(i == at) for i in range(100)]


def test_dense_sparse_fractions_decimals_and_integers_agree():
    X, y = (
        np.array([[0.5, 1.25], [-1.0, 0.25], [0.75, 0.0], [0.0, -0.5], [0.25, 0.25]]),
        np.array(["b", "a", "a", "b", "b"]),
    )
    found = find_cycle(X, y)
    assert isinstance(found, Cycle)
    for kind in (Fraction, Decimal):
        assert find_cycle(np.array([[kind(v) for v in row] for row in X.tolist()], dtype=object), y) == found
    assert find_cycle(sp.csr_array(X), y) == found
    quarters = find_cycle((X * 4).astype(int), y, constant=4)
    assert (quarters.preperiod, quarters.period, quarters.combination) == (
        found.preperiod, found.period, found.combination)  # fmt: skip
    thirds = find_cycle([[Fraction(v) / 3 for v in row] for row in X.tolist()], y, constant=Fraction(1, 3))
    assert thirds.combination == found.combination
    assert find_cycle(X / 4, y, constant=Fraction(1, 3)) == find_cycle((X / 4).tolist(), y, constant=Fraction(1, 3))
    assert find_cycle(X / 4, y, constant=Fraction(1, 3)).combination == find_cycle(X * 3, y, constant=4).combination
    assert thirds.largest == pytest.approx(found.largest / 3, rel=1e-15)


def test_scaling_data_rate_and_margin_together_changes_nothing():
    rng = np.random.default_rng(1)
    X, y = rng.integers(-4, 5, (9, 2)) / 8, np.array([1, -1, 1, 1, -1, 1, -1, -1, 1])
    found = find_cycle(X, y, delta=0.5)
    scaled = find_cycle(X * 2**-30, y, constant=2.0**-30, delta=0.5 * 2.0**-62, rate=0.25)
    assert isinstance(found, Cycle)
    assert (scaled.period, scaled.combination, scaled.preperiod) == (found.period, found.combination, found.preperiod)
    assert scaled.largest == pytest.approx(found.largest * 2.0**-32, rel=1e-15)
    left_behind = find_cycle(X * 2**-30, y, constant=2.0**-30, delta=0.5, max_epochs=500)
    assert isinstance(left_behind, NoRepeat)  # every row is within a margin as large as that
    assert left_behind.updates == 500 * len(X)


def test_walks_as_the_library_learns():
    rng = np.random.default_rng(2)
    X, y = rng.integers(-5, 6, (12, 2)).astype(float), np.array([1, -1] * 6)
    found = find_cycle(X, y)
    assert isinstance(found, Cycle)
    clf = Perceptron(keep="last", order="cyclic", tol=None, max_iter=found.preperiod + 3 * found.period).fit(X, y)
    assert (*clf.coef_[0], clf.intercept_[0]) == found.weights


def test_nothing_ever_is_longer_than_the_largest_and_lengths_repeat():
    X, y = [[3, 0], [2, 1], [1, 3], [0, -1]], [1, -1, 1, 1]  # one point within the triangle of the others
    found = find_cycle(X, y)
    assert (found.preperiod, found.period, found.updates) == (5, 11, 22)
    assert found.combination == Combination((0, 1, 2, 3), (6, 11, 4, 1))
    norms = lengths(X, y, epochs=found.preperiod + 5 * found.period)
    assert norms[0] == 0
    assert norms.max() <= found.largest
    ends = norms[found.preperiod :]
    assert np.array_equal(ends[found.period :], ends[: -found.period])
    path, _, _ = naive(X, y)
    assert norms[: len(path)] == pytest.approx([sqrt(sum(v * v for v in w)) for w in path], rel=1e-15)


def test_a_row_of_zeros_is_a_cycle_by_itself():
    found = find_cycle([[1, 0], [0, 0]], [1, -1], constant=0)
    assert (found.preperiod, found.period, found.combination) == (1, 1, Combination((1,), (1,)))


class Root2:
    """a + b·√2 with integers a and b: exact, and ordered."""

    def __init__(self, a, b=0):
        self.a, self.b = a, b

    @staticmethod
    def of(other):
        return other if isinstance(other, Root2) else Root2(other)

    def __add__(self, other):
        other = Root2.of(other)
        return Root2(self.a + other.a, self.b + other.b)

    def __mul__(self, other):
        other = Root2.of(other)
        return Root2(self.a * other.a + 2 * self.b * other.b, self.a * other.b + self.b * other.a)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __eq__(self, other):
        other = Root2.of(other)
        return (self.a, self.b) == (other.a, other.b)

    def __hash__(self):
        return hash((self.a, self.b))

    def sign(self):
        a, b = self.a, self.b
        size = a * a - 2 * b * b  # never 0 unless both are
        return ((a > 0) - (a < 0)) if size > 0 else ((b > 0) - (b < 0))

    def __le__(self, other):
        return (self + Root2.of(other) * -1).sign() <= 0

    def __gt__(self, other):
        return not self <= other

    def __float__(self):
        if self.a * self.b >= 0:
            return self.a + self.b * sqrt(2)
        return float(Fraction(self.a * self.a - 2 * self.b * self.b) / Fraction(self.a - self.b * ROOT2))  # no cancellation


ROOT2 = Fraction(isqrt(2 * 10**80), 10**40)


def test_one_and_minus_root_two_stay_bounded_and_never_repeat():
    X, y = np.array([[Root2(1)], [Root2(0, 1)]], dtype=object), [1, -1]
    found = find_cycle(X, y, constant=0, max_epochs=20_000)
    assert isinstance(found, NoRepeat)
    assert found.epochs == 20_000
    assert 1.414 < found.largest < sqrt(2)
    # w = p − q√2 after p and q updates. Were it to return, p′ = q′√2 with q′ > 0, and √2 would be rational.
    p, q = found.mixture.weights
    assert found.weights == (Root2(p, -q),)
    assert p + q == found.updates
    # In particular p/q tends to √2, as fast as the bounded weights over the updates.
    assert abs(p / q - sqrt(2)) <= found.largest / q * (1 + 1e-9)
    assert found.mixture.residual == pytest.approx(abs(float(found.weights[0])) / found.updates, rel=1e-6)
    assert found.mixture.residual <= sqrt(2) / sqrt(found.updates)


def test_irrational_data_do_repeat_where_integers_combine_them_to_zero():
    root2, three = Root2(0, 1), Root2(3)
    found = find_cycle(np.array([[root2, three], [root2, three]], dtype=object), [1, -1], constant=0)
    assert isinstance(found, Cycle)
    assert found.combination == Combination((0, 1), (1, 1))
    twice = find_cycle(np.array([[root2], [root2 * 3]], dtype=object), [1, -1], constant=0, rate=Fraction(1), delta=1)
    assert twice.combination.weights == (3, 1)
    assert isinstance(find_cycle(np.array([[root2], [root2 * -3]], dtype=object), [1, -1], constant=0), Converged)


def test_an_irrational_start_on_rational_data_repeats():
    found = find_cycle(np.array([[1.0], [1.0]]), [1, -1], constant=0, start=[Root2(0, 1)])
    assert (found.preperiod, found.period, found.combination) == (2, 1, Combination((0, 1), (1, 1)))
    assert found.weights == (Root2(-2, 1),)


def test_the_floats_nearest_to_one_and_root_two_are_rational_and_would_take_long():
    found = find_cycle([[1.0], [sqrt(2)]], [1, -1], constant=0, max_epochs=3000)
    assert isinstance(found, NoRepeat)
    assert 1.41 < found.largest < sqrt(2)
    exact = Fraction(sqrt(2))
    assert Combination((0, 1), (exact.numerator, exact.denominator)).verify(exact_rows([[1.0], [sqrt(2)]], [1, -1], 0))
    assert exact.denominator == 2**52


class Disguised:
    """A float that does not say it is one."""

    def __init__(self, value):
        self.value = float(value)

    def __float__(self):
        return self.value

    def __add__(self, other):
        return Disguised(self.value + float(other))

    def __mul__(self, other):
        return Disguised(self.value * float(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Disguised(-self.value)

    def __le__(self, other):
        return self.value <= float(other)

    def __gt__(self, other):
        return self.value > float(other)

    def __eq__(self, other):
        return self.value == float(other)

    __hash__ = None


def test_numbers_that_round_are_found_out():
    X = np.array([[Disguised(1)], [Disguised(-1)]], dtype=object)
    with pytest.raises(ArithmeticError, match="round"):
        find_cycle(X, [1, -1], constant=0, start=[Disguised(-1e17)])


@given(labelled(st.integers(-3, 3)), st.randoms(use_true_random=False))
def test_a_mixture_bounds_every_margin_and_shrinks_in_any_order(data, random):
    X, y = data
    A = read(X, y).A
    w, counts, t = np.zeros(A.shape[1]), [0] * len(A), 0
    for _ in range(60):
        i = random.randrange(len(A))
        if A[i] @ w <= 0:
            w, t = w + A[i], t + 1
            counts[i] += 1
    found = mixture(X, y, counts)
    radius = np.linalg.norm(A, axis=1).max()
    assert found.residual == pytest.approx(np.linalg.norm(w) / t, rel=1e-12)
    assert found.residual <= bounds.margin_ceiling(radius, t) * (1 + 1e-12)
    u = np.random.default_rng(t).standard_normal((50, A.shape[1]))
    margins = (A @ u.T / np.linalg.norm(u, axis=1)).min(axis=0)
    assert margins.max() <= found.residual * (1 + 1e-12)


def test_a_mixture_of_residual_zero_is_a_combination_and_rounds_up_otherwise():
    assert mixture([[1, 2], [1, 2]], [1, -1], [3, 3]).residual == 0
    third = mixture([[1], [1]], [1, -1], [2, 1], constant=0)
    assert Fraction(third.residual) > Fraction(1, 3) > Fraction(third.residual) - Fraction(1, 10**15)
    tiny = mixture([[1e-200], [1e-200]], [1, -1], [2, 1], constant=0)  # its square is no float
    assert tiny.residual == pytest.approx(1e-200 / 3, rel=1e-15)
    for bad in ([1], [0, 0], [-1, 1], [0.5, 0.5]):
        with pytest.raises(ValueError, match="counts must be 2 integers"):
            mixture([[1], [1]], [1, -1], bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": -1}, "delta must be a number ≥ 0"),
        ({"rate": 0}, "rate must be a number > 0"),
        ({"start": [1]}, "one weight for each of the 3 columns"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"delta": float("nan")}, "finite"),
        ({"delta": Root2(0, 1)}, "delta must be a rational number"),
        ({"y": [1, 1]}, "two labels"),
        ({"X": np.array([[1, np.nan], [0, 1]])}, "NaN"),
        ({"X": [[1, np.nan], [0, 1]]}, "finite"),
        ({"X": [[1, 2], [0]]}, "two dimensions"),
        ({"X": [[Fraction(1, 3), np.inf], [0, 1]]}, "finite"),
        ({"X": [[Fraction(1, 3), "a"], [0, 1]]}, "got 'a'"),
        ({"X": [[Fraction(1, 3), None], [0, 1]]}, "got None"),
        ({"X": [[Fraction(1, 3), 1j], [0, 1]]}, "got 1j"),
        ({"X": [Fraction(1, 3), 1]}, "two dimensions"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        find_cycle(**{"X": [[1, 2], [3, 4]], "y": [1, -1], **arguments})


def test_a_second_walk_starts_where_the_first_did():
    walk = Walk(exact_rows([[1, 2], [2, 1]], [1, -1]), start=[1, 0, 0])
    walk.epoch()
    other = walk.again()
    assert other.weights() == (1, 0, 0)
    assert (other.updates, other.epochs, other.counts) == (0, 0, [0, 0])
    assert walk.epochs == 1
    other.epoch()
    assert (other.weights(), other.longest()) == (walk.weights(), walk.longest())


def test_counts_of_a_mixture_are_whole():
    for counts in ([Fraction(1, 2), 1], np.array([0.5, 1], dtype=object), [2.0, 1.0]):
        with pytest.raises(ValueError, match="counts must be 2 integers"):
            mixture([[2], [3]], [1, -1], counts)
    assert mixture([[2], [3]], [1, -1], [10**30, 1]).weights == (10**30, 1)
