"""The σ-perceptron: equal to the naive algorithm, within its bound whatever the margin, and honest when it fails."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from rosenblatt.engine.rows import Examples, as_rows, lengths
from rosenblatt.estimators import sigma as module
from rosenblatt.estimators.sigma import SigmaPerceptron, Walk, cap_probability, draws_needed, run_round, update_bound, walk
from rosenblatt.testing import laws
from rosenblatt.testing.strategies import constants, samples, separated

may_fail = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def naive(X, signs, sigma, w, limit):
    """The algorithm as it is written down, renormalised after each update: (rows updated on, with what was left of the
    length before each; w; outcome)."""
    w, updated, length = w.copy(), [], 1.0
    while True:
        clean = True
        for i, (x, sign) in enumerate(zip(X, signs, strict=True)):
            norm = np.linalg.norm(x)
            if norm == 0:
                continue
            cosine = w @ (x / norm)
            if sign * cosine < 0 and abs(cosine) >= sigma:
                updated.append((i, length))
                clean = False
                w = w - cosine * (x / norm)
                if np.linalg.norm(w) <= 1e-12:
                    return updated, w, "vanished"
                length *= np.linalg.norm(w)
                w /= np.linalg.norm(w)
                if len(updated) > limit:
                    return updated, w, "aborted"
        if clean:
            return updated, w, "solved"


def examples_of(X, labels, constant=0.0):
    rows = as_rows(X)
    return Examples(rows, np.asarray(labels, np.int64), None, constant, lengths(rows, constant))


def start(n, seed, constant=0.0):
    """A unit vector, with the place of the constant feature, which is 0 where there is none."""
    w = np.random.default_rng(seed).standard_normal(n + 1)
    w[-1] *= constant != 0
    return w / np.linalg.norm(w)


def padded(X, constant):
    return np.hstack([X, np.full((len(X), 1), constant)])


def hard_instance(n):
    """Row i is (−1, …, −1, +1, 0, …), its margin 2⁻ⁿ and less: the plain perceptron makes exactly (4ⁿ − 1)/3 updates."""
    signs = np.where(np.arange(n) % 2, 1, -1)
    return (np.tril(-np.ones((n, n)), -1) + np.eye(n)) * signs[:, None], (signs > 0).astype(int)


@given(
    samples(classes=st.just(2)),
    st.sampled_from([0.0137, 0.137, 0.437]),
    constants(),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_updates_on_the_same_rows_as_the_naive_algorithm(sample, sigma, constant, seed, sparse):
    """As long as rounding is no part of it: renormalising a w of which a millionth is left makes errors a million times
    larger. That is no loss, for no good start loses more than 1 − 1/√n of its length."""
    X, signs = padded(sample.X, constant), np.where(sample.labels == 1, 1, -1)
    first, limit = start(sample.X.shape[1], seed, constant), 60
    examples = examples_of(sp.csr_matrix(sample.X) if sparse else sample.X, sample.labels, constant)
    all_updated, expected_w, outcome = naive(X, signs, sigma, first, limit)
    expected = [i for i, length in all_updated if length > 1e-6]

    w, done, updated = first.copy(), Walk(0, 0, 0, 1.0, 1.0), []
    while done.clean < len(X) and done.updates <= limit and done.square > 0:  # one look at a time
        position, before = done.position, done.updates
        done = walk(examples, 1, sigma, w, done, limit, 1)
        updated += [position] * (done.updates - before)
    assert updated[: len(expected)] == expected

    if len(expected) == len(all_updated):
        w = first.copy()
        done, what = run_round(examples, 1, sigma, w, limit)
        assert (done.updates, what) == (len(expected), outcome)
        if outcome == "solved":
            assert np.allclose(w, expected_w, rtol=0, atol=1e-8)
            assert math.isclose(np.linalg.norm(w), 1, rel_tol=1e-12)


def test_the_length_that_is_carried_along_stays_right():
    """Rows without a separator shorten w by hundreds of orders of magnitude."""
    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((300, 6)), rng.choice([-1, 1], 300)
    for sigma, limit in ((0.5, 2000), (0.01, 4000)):
        w, done = start(6, 1), Walk(0, 0, 0, 1.0, 1.0)
        while done.updates <= limit:
            done = walk(examples_of(X, signs > 0), 1, sigma, w, done, limit, 250)
            assert done.square == pytest.approx(w @ w, rel=1e-10)
        assert done.shrunk < 1e-100


@given(separated(), st.sampled_from([0.02, 0.1, 0.31, 0.7]), st.integers(0, 10**6))
def test_a_good_start_is_solved_within_the_bound(sample, sigma, seed):
    """And no separator has a greater cosine with a start than the length that is left of it."""
    n = sample.X.shape[1] + (sample.constant > 0)
    first = start(sample.X.shape[1], seed, sample.constant)
    examples = examples_of(sample.X, sample.labels, sample.constant)
    for w in (first.copy(), -first):
        cosine = w @ sample.separator
        done, outcome = run_round(examples, 1, sigma, w, math.floor(math.log(n) / sigma**2))
        assert cosine <= math.sqrt(done.shrunk) + 1e-9
        if cosine >= 1 / math.sqrt(n):
            assert outcome == "solved"
            assert done.updates <= update_bound(n, sigma) + 1e-9
            assert update_bound(n, sigma) <= math.log(n) / sigma**2


def test_reaching_the_limit_is_allowed_and_one_pass_is_not_enough():
    """Georgia Tech CS 4540 goes to the next round at ≥ ln n/σ² mistakes, though its theorem allows as many, and makes one
    pass over the data."""
    X, labels = hard_instance(8)
    examples, first = examples_of(X, labels, 0.0), start(8, 5, 0.0)
    done, outcome = run_round(examples, 1, 0.05, first.copy(), 10**6)
    assert (outcome, done.updates > len(X)) == ("solved", True), "more updates than rows: more passes than one"
    assert run_round(examples, 1, 0.05, first.copy(), done.updates)[1] == "solved"
    assert run_round(examples, 1, 0.05, first.copy(), done.updates - 1)[1] == "aborted"


def thin(n=3, rows=300):
    """(X, labels, separator): unit rows in all directions, of which every third is moved to 10⁻⁹ from the plane. The plain
    perceptron's bound is 10¹⁸."""
    rng = np.random.default_rng(0)
    separator = rng.standard_normal(n)
    separator /= np.linalg.norm(separator)
    X = rng.standard_normal((rows, n))
    heights = X @ separator
    X[::3] += np.outer(np.sign(heights[::3]) * 1e-9 - heights[::3], separator)
    return X / np.linalg.norm(X, axis=1)[:, None], (heights > 0).astype(int), separator


def test_the_margin_does_not_enter():
    """Every good start is solved within the bound, and starts are good as often as they should be. The others may fail."""
    n, sigma = 3, 0.6
    X, labels, separator = thin(n)
    assert np.abs(X @ separator).min() < 1e-8
    examples, limit = examples_of(X, labels), math.floor(math.log(n) / sigma**2)
    good, solved = 0, 0
    for seed in range(1000):
        w = start(n, seed)
        close = w[:-1] @ separator >= 1 / math.sqrt(n)
        done, outcome = run_round(examples, 1, sigma, w, limit)
        good += close
        solved += outcome == "solved"
        if close:
            assert outcome == "solved"
            assert done.updates <= update_bound(n, sigma)
    deviation = math.sqrt(cap_probability(n) * (1 - cap_probability(n)) / 1000)
    assert abs(good / 1000 - cap_probability(n)) < 3 * deviation
    assert good <= solved < 900, "starts must fail, or the data are too easy to say anything"


@pytest.mark.parametrize("pairs", [False, True])
def test_fails_no_more_often_than_delta(pairs):
    """On 200 seeds, with data on which every third start fails and more."""
    X, labels, _ = thin()
    clf = SigmaPerceptron(sigma=0.6, delta=0.3, pairs=pairs, fit_intercept=False)
    found = [clone(clf).set_params(random_state=seed).fit(X, labels) for seed in range(200)]
    assert sum(not clf.success_ for clf in found) <= 0.3 * 200
    assert max(clf.n_rounds_ for clf in found) > 2
    for clf in found:
        assert not ((clf.predict(X) != labels) & clf.vouches(X)).any()


@pytest.mark.parametrize("n", [2, 5, 12])
def test_the_exponential_instance(n):
    X, y = hard_instance(n)
    for sigma in (0.3, 0.03):
        clf = SigmaPerceptron(sigma=sigma, fit_intercept=False).fit(X, y)
        assert clf.success_
        assert clf.history_[-1].updates <= math.log(n) / sigma**2
        assert not ((clf.predict(X) != y) & (np.abs(clf.decision_function(X)) >= sigma)).any()


@pytest.mark.parametrize("n", [2, 3, 4, 7, 30, 1000, 10**6])
def test_a_good_start_is_a_student_t_of_at_least_one(n):
    assert cap_probability(n) == pytest.approx(student.sf(1, n - 1), rel=1e-9)
    assert cap_probability(n) > math.erfc(1 / math.sqrt(2)) / 2 > 1 / 8
    assert cap_probability(n) <= cap_probability(n - 1) + 1e-12


def test_cap_probability():
    assert [round(cap_probability(n), 4) for n in (1, 2, 3, 10)] == [0.5, 0.25, 0.2113, 0.1717]
    assert cap_probability(10**8) == pytest.approx(math.erfc(1 / math.sqrt(2)) / 2, abs=1e-6)
    values = [cap_probability(n) for n in range(1, 200)]
    assert all(one > other > 1 / 8 for one, other in pairwise(values))
    for n in (3, 4, 7, 30):

        def density(t, power=(n - 3) / 2):
            return (1 - t * t) ** power

        assert cap_probability(n) == pytest.approx(quad(density, 1 / math.sqrt(n), 1)[0] / quad(density, -1, 1)[0])
    for call, message in (
        (lambda: cap_probability(0), "at least 1; got 0"),
        (lambda: update_bound(3, 1.0), "sigma must be a number between 0 and 1; got 1"),
        (lambda: draws_needed(0.0, True), "between 0 and 1; got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_as_many_draws_as_make_failing_unlikely_and_no_more():
    for delta in (0.5, 0.05, 1e-6):
        for pairs, chance in ((False, 1 / 8), (True, 1 / 4)):
            draws = draws_needed(delta, pairs)
            assert (1 - chance) ** draws <= delta < (1 - chance) ** (draws - 1)


@pytest.mark.parametrize("pairs", [False, True])
def test_failing_is_reported_and_keeps_the_best(pairs, capsys):
    X = np.repeat(np.random.default_rng(0).standard_normal((40, 4)), 2, axis=0)  # each row with both labels
    y = np.tile([0, 1], 40)
    clf = SigmaPerceptron(sigma=0.2, pairs=pairs, delta=0.1, fit_intercept=False, verbose=1)
    rounds = (2 if pairs else 1) * draws_needed(0.1, pairs)
    with pytest.warns(ConvergenceWarning, match=rf"{rounds} rounds were given up.*delta = 0\.1.*Try a larger sigma"):
        clf.fit(X, y)
    assert (clf.success_, clf.stop_reason_, clf.n_rounds_) == (False, "failed", rounds)
    assert [record.mirrored for record in clf.history_[:2]] == [False, pairs]
    limit = math.floor(math.log(4) / 0.04)
    assert all((record.outcome, record.updates) == ("aborted", limit + 1) for record in clf.history_)
    left = int(((clf.predict(X) != y) & (np.abs(clf.decision_function(X)) >= 0.2)).sum())
    assert left == min(record.far_mistakes for record in clf.history_) > 0
    assert len({record.far_mistakes for record in clf.history_}) > 1
    assert not clf.vouches(X).any(), "what is not solved vouches for nothing"
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == rounds
    assert "far mistakes left, aborted" in shown.err


def test_weights_that_vanish_are_drawn_anew_and_never_kept():
    """Both labels on every axis: each coordinate is projected out."""
    X, y = np.vstack([np.eye(4), np.eye(4)]), np.repeat([0, 1], 4)
    with pytest.warns(ConvergenceWarning, match="without a far mistake"):
        clf = SigmaPerceptron(sigma=0.01, fit_intercept=False).fit(X, y)
    assert {record.outcome for record in clf.history_} == {"vanished"}
    assert {record.updates for record in clf.history_} == {4}
    assert np.linalg.norm(clf.coef_) == pytest.approx(1)
    assert min(record.far_mistakes for record in clf.history_) >= 3


def test_one_dimension_needs_one_pair():
    for seed in range(10):
        clf = SigmaPerceptron(sigma=0.5, fit_intercept=False, random_state=seed).fit([[1.0], [-2.0], [0.0]], [1, 0, 0])
        assert clf.success_
        assert clf.coef_.tolist() == [[1.0]]
        assert clf.n_rounds_ in (1, 2)
        assert [record.outcome for record in clf.history_[:-1]] in ([], ["vanished"])


def test_rows_of_zeros_are_passed_over():
    X, y = hard_instance(6)
    clf = SigmaPerceptron(fit_intercept=False).fit(X, y)
    more = SigmaPerceptron(fit_intercept=False).fit(np.vstack([np.zeros((2, 6)), X, np.zeros((1, 6))]), [0, 1, *y, 0])
    assert np.array_equal(clf.coef_, more.coef_)
    assert more.decision_function(np.zeros((1, 6))) == 0
    assert more.predict(np.zeros((1, 6))) == 1
    assert not more.vouches(np.zeros((1, 6))).any()


def test_length_of_rows_does_not_matter():
    X, y = hard_instance(8)
    scales = 2.0 ** np.random.default_rng(0).integers(-60, 60, 8)[:, None]  # powers of two: scaling is exact
    one, other = (SigmaPerceptron(sigma=0.03, fit_intercept=False).fit(rows, y) for rows in (X, X * scales))
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.decision_function(X), other.decision_function(X * scales))


@pytest.mark.parametrize(("scale", "word"), [(1e150, "long"), (1e-150, "short")])
def test_rows_whose_squares_are_no_numbers_are_refused(scale, word):
    X, y = hard_instance(3)
    with pytest.raises(ValueError, match=f"row 0 of X is too {word} .* scale X"):
        SigmaPerceptron(fit_intercept=False).fit(X * scale, y)


def test_vouches_for_right_predictions_of_many_classes():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.warns(ConvergenceWarning, match="for 1 of 3 classes"):
        clf = SigmaPerceptron(sigma=0.05).fit(X, y)
    assert clf.solved_.tolist() == [True, False, True]
    assert not clf.success_
    assert clf.coef_.shape == (3, 4)
    assert np.allclose((clf.coef_**2).sum(axis=1) + clf.intercept_**2, 1)
    sure = clf.vouches(X)
    assert sure.sum() > 50
    assert (clf.predict(X)[sure] == y[sure]).all()
    assert not (clf.predict(X)[sure] == 1).any(), "versicolor was not solved"
    assert {record.vector for record in clf.history_} == {0, 1, 2}
    unsolved = [record for record in clf.history_ if record.vector == 1]
    assert len(unsolved) == 2 * draws_needed(0.05 / 3, True), "each class has a third of delta"
    assert clf.n_updates_ == sum(record.updates for record in clf.history_)


def test_all_solved_many_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = 4 * np.eye(4)[y] + rng.uniform(-1, 1, (300, 4))
    clf = SigmaPerceptron(sigma=0.1).fit(X, y)
    assert clf.success_
    sure = clf.vouches(X)
    assert (clf.predict(X)[sure] == y[sure]).all()
    assert sure.mean() > 0.5


@may_fail
@settings(max_examples=15)
@given(samples(most_rows=10), st.sampled_from([0.05, 0.33]))
def test_what_is_vouched_for_is_right(sample, sigma):
    """Whether or not anything was solved, on any data and any number of classes."""
    clf = SigmaPerceptron(sigma=sigma, delta=0.4).fit(sample.X, sample.labels)
    sure = clf.vouches(sample.X)
    assert (clf.predict(sample.X)[sure] == sample.labels[sure]).all()


def test_python_is_asked_between_stretches(monkeypatch):
    X, y = hard_instance(8)
    whole = SigmaPerceptron(sigma=0.01, fit_intercept=False).fit(X, y)
    monkeypatch.setattr(module, "_STRETCH", 1)
    pieces = SigmaPerceptron(sigma=0.01, fit_intercept=False).fit(X, y)
    assert whole.history_ == pieces.history_
    assert np.array_equal(whole.coef_, pieces.coef_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sigma": 0.0}, "sigma must be a number ≥ 1e-08 and < 1; got 0"),
        ({"sigma": 1.0}, "sigma must be a number ≥ 1e-08 and < 1; got 1"),
        ({"sigma": "small"}, "sigma must be a number"),
        ({"delta": 0.0}, "delta must be a number > 0 and < 1"),
        ({"delta": 1.0}, "delta must be a number > 0 and < 1"),
        ({"pairs": "yes"}, "pairs must be True or False"),
        ({"intercept_scaling": 0}, "intercept_scaling must be a number > 0"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
    ],
)
def test_bad_parameters_are_refused_in_fit_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        SigmaPerceptron(**given).fit(*hard_instance(3))


def test_an_error_changes_nothing():
    X, y = hard_instance(3)
    clf = SigmaPerceptron().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    before = pickle.dumps(clf)
    for bad, labels in ((X * np.nan, y), (X[:, :2] * 1e200, y), (X, ["spam", 1, 2]), (X, [1, 1, 1])):
        with pytest.raises((ValueError, TypeError)):
            clf.fit(bad, labels)
        assert pickle.dumps(clf) == before
    with pytest.raises(NotFittedError):
        SigmaPerceptron().vouches(X)
    assert not hasattr(SigmaPerceptron(), "partial_fit")


OTHER = {
    laws.layouts_agree: "weights are no whole numbers, so sums in another order differ in the last bit: tested below",
    laws.names_do_not_matter: "the start is drawn coordinate by coordinate: tested below",
}


@may_fail
@pytest.mark.parametrize("law", [law for law in laws.LAWS if law not in OTHER], ids=lambda law: law.__name__)
@pytest.mark.parametrize("clf", [SigmaPerceptron(), SigmaPerceptron(sigma=0.3, pairs=False, fit_intercept=False)], ids=str)
def test_law(clf, law):
    law(clf)


@may_fail
@pytest.mark.parametrize("classes", [2, 3])
def test_layouts_agree_but_for_rounding(classes):
    X, y = laws.data(classes)
    expected = SigmaPerceptron().fit(X, y)
    fixed = np.asfortranarray(X)
    fixed.flags.writeable = False
    layouts = {
        "float32": X.astype(np.float32),
        "a read-only array in Fortran order": fixed,
        "CSR": sp.csr_matrix(X),
        "CSR with int64 indices": laws.with_int64_indices(sp.csr_matrix(X)),
        "CSR unsorted, with repeats": laws.unsorted_csr(X),
    }
    for name, layout in layouts.items():
        before = pickle.dumps(layout)
        found = clone(expected).fit(layout, y)
        assert pickle.dumps(layout) == before, name
        assert [record[:5] for record in found.history_] == [record[:5] for record in expected.history_], name
        assert found.coef_.dtype == np.float64
        assert np.allclose(found.coef_, expected.coef_, rtol=0, atol=1e-11), name
        assert np.allclose(found.decision_function(layout), expected.decision_function(X), rtol=0, atol=1e-11), name


@may_fail
def test_names_do_not_matter():
    X, y = laws.data(3)
    expected = SigmaPerceptron().fit(X, y).predict(X)
    for names in (np.array(["a", "b", "c"]), np.array([-5, 0, 7])):
        assert np.array_equal(SigmaPerceptron().fit(X, names[y]).predict(X), names[expected])
    order = np.array([2, 0, 3, 1, 4])
    w = start(4, 0, 1.0)
    permuted = w[order].copy()
    one = run_round(examples_of(X, y == 1, 1.0), 1, 0.05, w, 500)
    other = run_round(examples_of(X[:, order[:-1]], y == 1, 1.0), 1, 0.05, permuted, 500)
    assert one[0].updates == other[0].updates
    assert np.allclose(w[order], permuted, atol=1e-9)


@may_fail
@parametrize_with_checks([SigmaPerceptron(), SigmaPerceptron(sigma=0.5, random_state=6)])
def test_scikit_learn_check(estimator, check):
    """The row that was projected out last has a cosine of 0, up to rounding. At exactly 0 the second class is predicted
    here, and the first in one of the checks. The second of the two estimators makes no update on that check's data."""
    try:
        check(estimator)
    except AssertionError as error:
        if check.func.__name__ != "check_classifiers_train" or estimator.sigma == 0.5 or "not equal" not in str(error):
            raise
        pytest.xfail("a cosine of exactly 0 is the second class")
