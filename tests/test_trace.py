"""A traced run is the perceptron's, and the proof holds at every update of it; where it cannot, that is seen."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from worked import SPAM, SPAM_Y

from rosenblatt.errors import InvalidData
from rosenblatt.testing import reference
from rosenblatt.testing.strategies import separated
from rosenblatt.theory import bounds, hard
from rosenblatt.theory.tracing import ORDERS, trace

XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])


def known(sample):
    """The words for the constant feature of a drawn sample."""
    return {"constant": sample.constant}


def rows_of(sample):
    signs = np.where(sample.labels == 1, 1.0, -1.0)
    padded = np.column_stack([sample.X, np.full(len(sample.X), sample.constant)])
    return signs[:, None] * (padded if sample.constant else sample.X)


@given(
    separated(most_rows=10),
    st.sampled_from([0.0, 1.0, 6.0]),
    st.sampled_from([0.5, 1.0, 4.0]),
    st.sampled_from(ORDERS),
    st.sampled_from([0, 3, -5]),
)
def test_the_proof_holds_at_every_update(sample, delta, eta, order, begin):
    A = rows_of(sample)
    start = np.full(A.shape[1], float(begin))
    run = trace(sample.X, sample.labels, delta=delta, rate=eta, order=order, start=start, **known(sample))
    assert run.converged
    assert run.broken is None
    assert run.updates <= run.bound * (1 + 1e-9)
    assert run.used <= 1 + 1e-9
    assert run.radius == pytest.approx(sample.radius)
    assert run.gamma >= sample.margin - 1e-9, "the widest"
    assert np.linalg.norm(run.separator) == pytest.approx(1)
    slack = 1e-9 * (1 + run.upper)
    assert (run.lower <= run.progress + slack).all()
    assert (run.progress <= run.norm + slack).all()
    assert (run.norm <= run.upper + slack).all()
    path = np.vstack([start, start + eta * np.cumsum(A[run.example], axis=0)])  # exact: small integers, powers of two
    assert np.array_equal(run.weights, path[-1])
    assert np.allclose(run.norm, np.linalg.norm(path, axis=1), rtol=1e-12, atol=0)
    assert np.allclose(run.progress, path @ run.separator, atol=1e-9)
    assert np.array_equal(run.margin, np.einsum("ij,ij->i", A[run.example], path[:-1]))
    assert (run.margin <= delta).all()
    assert (A @ run.weights > delta).all()
    assert np.array_equal(np.isnan(run.cosine), run.norm == 0)


@given(separated(most_rows=10), st.sampled_from([0.0, 2.0]))
def test_it_is_the_perceptron(sample, delta):
    run = trace(sample.X, sample.labels, delta=delta, **known(sample))
    ours = reference.learn(sample.X, sample.labels, 2, [range(len(sample.X))] * (run.updates + 1), multiclass="binary",
                           step=reference.perceptron(delta), constant=sample.constant)  # fmt: skip
    assert run.updates == ours.updates
    assert np.array_equal(run.weights, ours.last[0] if sample.constant else ours.last[0, :-1])


@given(
    separated(most_rows=10),
    st.sampled_from([1, -1]),
    st.sampled_from(["cyclic", "reverse", "twice"]),
    st.sampled_from([0, 2, -3]),
    st.booleans(),
)
def test_by_prediction_it_is_the_program_of_the_notes(sample, zero_sign, order, begin, sparse):
    """Rows one at a time, each with a label predicted by `zero_sign` at 0, until an epoch has no mistake."""
    n = len(sample.X)
    visits = {"cyclic": [*range(n)], "reverse": [*range(n)][::-1], "twice": [*range(n), *range(n)]}[order]
    X = np.column_stack([sample.X, np.full(n, sample.constant)]) if sample.constant else sample.X
    Y = np.where(sample.labels == 1, 1, -1)
    w = np.full(X.shape[1], float(begin))
    path, learned = [w], []
    mistakes = True
    while mistakes:
        mistakes = 0
        for i in visits:
            score = X[i] @ w
            predicted = zero_sign if score == 0 else np.sign(score)
            if predicted != Y[i]:
                w = w + Y[i] * X[i]
                path.append(w)
                learned.append(i)
                mistakes += 1
    run = trace(sp.csr_array(sample.X) if sparse else sample.X, sample.labels, mistake="prediction", zero_sign=zero_sign,
                order="cyclic" if order == "cyclic" else visits, start=path[0], **known(sample))  # fmt: skip
    assert run.example.tolist() == learned
    assert np.array_equal(run.path, path)
    assert run.converged
    assert run.broken is None
    assert run.updates <= run.bound * (1 + 1e-9), "a wrong label has a margin of at most 0, so the theorem holds"
    assert (run.margin <= 0).all()


@given(separated(most_rows=10), st.sampled_from([1, -1]), st.sampled_from(ORDERS))
def test_by_prediction_every_order_ends_with_no_label_wrong(sample, zero_sign, order):
    run = trace(sample.X, sample.labels, mistake="prediction", zero_sign=zero_sign, order=order, **known(sample))
    assert run.converged
    scores = rows_of(sample) @ run.weights * np.where(sample.labels == 1, 1, -1)
    assert np.array_equal(np.where(scores == 0, zero_sign, np.sign(scores)), np.where(sample.labels == 1, 1, -1))
    assert run.updates <= run.bound * (1 + 1e-9)


@given(separated(most_rows=10), st.sampled_from([1, -1]))
def test_by_prediction_it_is_the_reference(sample, zero_sign):
    run = trace(sample.X, sample.labels, mistake="prediction", zero_sign=zero_sign, **known(sample))
    ours = reference.learn(sample.X, sample.labels, 2, [range(len(sample.X))] * (run.updates + 1), multiclass="binary",
                           step=reference.prediction_perceptron(zero_sign), constant=sample.constant)  # fmt: skip
    assert run.updates == ours.updates
    assert np.array_equal(run.weights, ours.last[0] if sample.constant else ours.last[0, :-1])


@pytest.mark.parametrize(
    ("test", "updates"),
    [
        ({}, [1, 5, 21, 85, 341, 1365, 5461, 21845]),
        ({"mistake": "prediction"}, [1, 2, 6, 30, 110, 462, 1806, 7310]),
        ({"mistake": "prediction", "zero_sign": -1}, [1, 3, 15, 55, 231, 903, 3655, 14535]),
    ],
)
def test_what_ties_do_to_the_hard_instance(test, updates):
    """Only the test by the margin gives the (4ⁿ − 1)/3 that the proof counts. At n = 1 the instance has a mirror image,
    whose label is the other one, so that some row is wrong at 0 whatever is predicted there."""
    runs = [trace(*hard.exponential(n)[:2], constant=0, separator=2.0 ** np.arange(n), **test) for n in range(1, 9)]
    assert [run.updates for run in runs] == updates
    assert all(run.converged and run.broken is None and run.updates <= run.bound for run in runs)


def test_one_row_is_right_at_zero_for_one_of_the_two_predictions():
    counts = [trace([[1.0]], [1], constant=0, mistake="prediction", zero_sign=sign).updates for sign in (1, -1)]
    assert counts == [0, 1]


def test_by_prediction_a_run_converges_with_rows_at_zero():
    run = trace(SPAM, SPAM_Y, mistake="prediction")
    assert (run.updates, run.converged) == (2, True)
    assert 0 in run.rows.A @ run.weights, "right by its label, and on the hyperplane"
    assert str(run) == "2 updates by prediction, converged; at most 15 by R = 2.236, γ = 0.5774"


@pytest.mark.parametrize("order", ["cyclic", "most-violated", "most-violated-normalised", [3, 2, 1, 0]])
@pytest.mark.parametrize("zero_sign", [1, -1])
def test_by_prediction_rows_that_nothing_separates_enter_a_cycle(order, zero_sign):
    run = trace(*XOR, separator=[1, 0, 0], mistake="prediction", zero_sign=zero_sign, order=order, max_updates=200)
    assert (run.updates, run.converged) == (200, False)
    first, length = run.repeat
    assert np.array_equal(run.path[first], run.path[first + length])
    assert np.array_equal(run.example[first : first + length], run.example[first + length : first + 2 * length])


@pytest.mark.parametrize("layout", [np.array, sp.csr_array])
@pytest.mark.parametrize("order", ORDERS)
def test_the_path_is_the_run_to_the_last_bit(layout, order):
    X = np.random.default_rng(3).normal(size=(30, 4))
    start = [0.1, -0.0, 0.3, 0.0, 1.0]
    run = trace(layout(X), X @ [1, 2, 3, 4] > 0.1, rate=0.3, order=order, start=start, separator=[1, 2, 3, 4, 0])
    assert run.path.shape == (run.updates + 1, 5)
    assert run.path[-1].tobytes() == run.weights.tobytes()
    assert run.path[0].tobytes() == run.start.tobytes()
    assert [float(np.linalg.norm(w)) for w in run.path] == run.norm.tolist()
    moves = np.array([run.rate * run.rows.A[[i]] for i in run.example]) if layout is np.array else None
    assert moves is None or np.array_equal(run.path[1:], run.path[:-1] + moves[:, 0])
    assert run.path is run.path, "added up once"


@given(separated(most_rows=8))
def test_any_separator_will_do(sample):
    """Also one that is not the widest, of any length: IIIT-H SMAI asks for the final weights."""
    u = 7 * (sample.separator if sample.constant else sample.separator[:-1])
    run = trace(sample.X, sample.labels, separator=u, **known(sample))
    assert run.gamma == pytest.approx(sample.margin)
    assert run.broken is None
    assert run.updates <= run.bound * (1 + 1e-9)


def test_the_spam_table():
    run = trace(SPAM, SPAM_Y)
    assert (run.updates, run.weights.tolist()) == (4, [0, 2, 0, -1, 1, 0])
    assert (run.radius**2, run.gamma, run.bound) == pytest.approx((5, 1 / math.sqrt(3), 15))
    assert run.used == pytest.approx(4 / 15)


def test_where_the_notes_count_one_update_too_few():
    """IIIT-H SMAI: ‖w‖² ≤ kR² after k + 1 updates; at k = 0 that is ‖w‖² ≤ 0."""
    run = trace(SPAM, SPAM_Y)
    k = np.arange(run.updates)
    squares = run.norm[1:] ** 2
    assert (squares > k * run.radius**2)[0]
    assert (squares <= (k + 1) * run.radius**2 + 1e-9).all()


def test_the_potential_has_no_value_at_zero():
    """Georgia Tech CS 4540 lets cos(w, u) start at 0; it is 0/0 there, and positive after the first update."""
    run = trace(SPAM, SPAM_Y)
    assert math.isnan(run.cosine[0])
    floor = run.gamma * np.sqrt(run.k[1:]) / run.radius
    assert (run.cosine[1:] >= floor - 1e-9).all()
    assert (run.cosine[1:] <= 1 + 1e-9).all()


def test_each_update_of_the_hard_instance_gains_as_little_as_it_can():
    n = 5
    rows, signs = np.tril(-np.ones((n, n)), -1) + np.eye(n), np.array([1, -1, 1, -1, 1])
    for order in ORDERS:
        run = trace(rows * signs[:, None], signs, order=order, constant=0)
        assert run.updates == (4**n - 1) // 3
        assert run.weights.tolist() == [1, 2, 4, 8, 16]
        assert run.bound == pytest.approx(n * run.updates)
        assert np.allclose(run.progress, run.lower)
    assert trace(rows * signs[:, None], signs, constant=0, max_updates=7).updates == 7
    assert not trace(rows * signs[:, None], signs, constant=0, max_updates=7).converged


def test_a_row_that_is_right_is_not_taken_for_the_most_violated():
    """Divided by its length, the margin of a long row is the least, but it is another that is wrong."""
    X, y = np.array([[100.0, 0.0], [0.1, 1.0], [-1.0, -1.0]]), [1, 1, 0]
    run = trace(X, y, delta=1.0, order="most-violated-normalised", constant=0, max_updates=1000)
    assert run.converged


def test_layouts_and_labels_agree():
    runs = [trace(data, labels) for data in (SPAM, sp.csr_matrix(SPAM), pd.DataFrame(SPAM))
            for labels in (SPAM_Y, np.where(SPAM_Y > 0, "spam", "ham"))]  # fmt: skip
    for run in runs:
        assert np.array_equal(run.weights, runs[0].weights)
        assert np.allclose(run.norm, runs[0].norm)


def test_orders_are_drawn_by_the_seed_or_given():
    one, same, other = (trace(SPAM, SPAM_Y, order="shuffle", random_state=seed).example.tolist() for seed in (3, 3, 4))
    assert one == same != other
    assert trace(SPAM, SPAM_Y, order=[5, 4, 3, 2, 1, 0]).example[0] == 5
    assert trace(SPAM, SPAM_Y, order=range(6)).example.tolist() == trace(SPAM, SPAM_Y).example.tolist()


def test_rows_that_nothing_separates_need_a_vector():
    with pytest.raises(ValueError, match=r"no hyperplane .* pass separator=u"):
        trace(*XOR)
    run = trace(*XOR, separator=[1.0, 1.0, -0.5], max_updates=100)
    assert (run.updates, run.converged, run.bound, run.used) == (100, False, math.inf, 0)
    assert run.gamma < 0
    assert run.broken is None, "a wall that falls is true"


def test_a_wall_that_claims_too_much_is_passed():
    run = trace(*XOR, separator=[1.0, 1.0, -0.5], gamma=0.5, max_updates=300)
    assert run.bound == pytest.approx(bounds.novikoff(math.sqrt(3), 0.5))
    assert run.updates > run.bound
    assert run.broken is not None
    assert run.progress[run.broken] < run.lower[run.broken]
    assert run.norm.max() < 5, "the weights stay bounded all the same"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": -1}, "delta must be a number ≥ 0"),
        ({"rate": 0}, "rate must be a number > 0"),
        ({"max_updates": 0}, "max_updates must be a whole number ≥ 1; got 0"),
        ({"order": "sorted"}, "order must be one of cyclic, shuffle, .* got 'sorted'"),
        ({"order": [0, 1]}, "must be a sequence that names every row"),
        ({"order": [0.5]}, "numbers of rows from 0 to 5"),
        ({"order": [[0, 1], [2]]}, "numbers of rows from 0 to 5"),
        ({"separator": [1, 2]}, "separator must be 6 finite numbers, .* got .1, 2."),
        ({"separator": np.zeros(6)}, "must be a vector that is not zero"),
        ({"start": np.full(6, np.nan)}, "start must be 6 finite numbers"),
        ({"start": [10**400] * 6}, "start must be 6 finite numbers"),
        ({"start": [1e200] * 6}, "start must be numbers up to 1e\\+150"),
        ({"gamma": 1e300}, "gamma must be numbers up to 1e\\+150"),
        ({"rate": 1e200}, "η²R² \\+ 2ηδ, .*, overflows"),
        ({"rate": 1e10, "delta": 1e308}, "η²R² \\+ 2ηδ, .*, overflows"),
        ({"constant": np.inf}, "finite"),
        ({"mistake": "label"}, "mistake must be one of margin, prediction; got 'label'"),
        ({"mistake": "prediction", "zero_sign": 0}, "zero_sign must be 1 or -1, .* got 0"),
        ({"mistake": "prediction", "delta": 1}, "delta=1 and mistake='prediction' cannot be used together"),
        ({"zero_sign": -1}, "zero_sign=-1 and mistake='margin' cannot be used together.* mistake='prediction'"),
    ],
)
def test_nonsense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        trace(SPAM, SPAM_Y, **wrong)


def test_rows_and_labels_of_different_lengths_are_refused():
    with pytest.raises(InvalidData, match=r"X must be a table .* it has lists of different lengths"):
        trace([[1, 2], [3]], [0, 1])
    with pytest.raises(InvalidData, match="y must be a table or a list of single values"):
        trace([[1, 2], [3, 4]], [[0], [0, 1]])


def test_a_separator_of_any_length_is_the_same_direction():
    units = [trace(SPAM, SPAM_Y, separator=size * np.arange(1.0, 7.0)).separator for size in (1e-200, 1.0, 1e200)]
    assert np.allclose(units, np.arange(1, 7) / math.sqrt(91))


def test_parameters_may_be_whole_numbers_in_any_form():
    run = trace(SPAM, SPAM_Y, constant=Fraction(1, 2), max_updates=4.0)
    assert np.array_equal(run.example, trace(SPAM, SPAM_Y, constant=0.5, max_updates=4).example)


def test_a_run_in_a_line():
    assert str(trace(SPAM, SPAM_Y)) == "4 updates, converged; at most 15 by R = 2.236, γ = 0.5774"
    assert str(trace([[1, 2], [-1, -2]], [1, -1])).startswith("1 update, converged")
    run = trace(*XOR, separator=[1.0, 1.0, -0.5], max_updates=5)
    assert str(run).startswith("5 updates, not converged; at most inf")


@pytest.mark.parametrize("gamma", [np.nan, np.inf, "wide"])
def test_a_claimed_margin_is_a_number(gamma):
    with pytest.raises((ValueError, TypeError), match="gamma must be a number"):
        trace([[1, 2], [-1, -1]], [1, -1], gamma=gamma)
