"""The kernels do what the reference does: the same weights, averages and counts, to the last bit, on integer data."""

import threading
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import rosenblatt as estimators
from rosenblatt.engine import blocks
from rosenblatt.engine.blocks import one_blas_thread
from rosenblatt.engine.jit import is_number, jit
from rosenblatt.engine.problems import Binary, Joint, OneVsOne, OneVsRest, columns, visible
from rosenblatt.engine.rows import CSR, Dense, Examples, as_rows
from rosenblatt.engine.train import Trainer
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import zeros
from rosenblatt.rules import Diminishing, Perceptron
from rosenblatt.testing import reference
from rosenblatt.testing.strategies import class_weights, constants, margins, orders, rates, row_weights, samples, sizes

PROBLEMS = {"binary": Binary, "joint": Joint, "ovr": OneVsRest, "ovo": OneVsOne}
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_matrix}


def trainer(
    X, labels, problem, *, rule, weight=None, class_weight=None, constant=1.0, batch=1, mean=False, order="cyclic",
    scales=None,
):  # fmt: skip
    rows = as_rows(X)
    ones = np.ones(X.shape[0])
    by_class = ones if class_weight is None else class_weight[labels]
    weight = np.column_stack([ones if weight is None else weight, by_class])
    weights = zeros(X.shape[1], problem, rows.values.dtype.type, True, isinstance(rows, CSR))
    visits = Visits(np.arange(X.shape[0]), order, np.random.default_rng(0), batch, mean, scales)
    return Trainer(Examples(rows, labels, weight, constant), weights, problem, rule, visits)


def weight_vectors(problem, w):
    return (w[:, None] if w.ndim == 1 else visible(problem, w)).T


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("multiclass", PROBLEMS)
@given(data=st.data())
def test_an_epoch_is_the_reference_run(multiclass, layout, data):
    sample = data.draw(samples(st.just(2) if multiclass == "binary" else st.integers(2, 4)))
    rows = len(sample.X)
    epochs = data.draw(st.lists(orders(rows), max_size=3))
    batch = data.draw(st.sampled_from([1, 1, 3, 100] if layout == "dense" or multiclass == "joint" else [1]))
    margin, eta, constant = data.draw(margins()), data.draw(rates()), data.draw(constants())
    weight, class_weight = data.draw(row_weights(rows)), data.draw(class_weights(sample.classes))

    problem = PROBLEMS[multiclass](sample.classes)
    ours = trainer(LAYOUTS[layout](sample.X), sample.labels, problem, rule=Perceptron(margin, eta), weight=weight,
                   class_weight=class_weight, constant=constant, batch=batch)  # fmt: skip
    done = [ours.epoch(order)[0] for order in epochs]
    expected = reference.learn(sample.X, sample.labels, sample.classes, epochs, multiclass=multiclass,
                               step=reference.perceptron(margin, lambda k: eta), constant=constant, weight=weight,
                               class_weight=class_weight, batch=batch)  # fmt: skip

    assert np.array_equal(weight_vectors(problem, ours.weights.w), expected.last)
    assert sum(progress.mistakes for progress in done) == expected.mistakes
    assert sum(progress.updates for progress in done) == ours.weights.tally.sum() == expected.updates
    assert ours.weights.clock[0] == len(expected.path)
    if expected.path:
        total = len(expected.path) * weight_vectors(problem, ours.weights.w.astype(float)) - weight_vectors(
            problem, ours.weights.drift
        )
        assert np.array_equal(total, np.sum(expected.path, axis=0)), "the sum of the weights after every example"


@pytest.mark.parametrize("multiclass", PROBLEMS)
@given(data=st.data())
def test_mean_batches_are_the_reference_run(multiclass, data):
    """Means of at most two moves are halves, which floating point holds exactly."""
    sample = data.draw(samples(st.just(2) if multiclass == "binary" else st.integers(2, 4)))
    epochs = [data.draw(orders(len(sample.X)))] * 2
    margin, constant, weight = data.draw(margins()), data.draw(constants()), data.draw(row_weights(len(sample.X)))
    problem = PROBLEMS[multiclass](sample.classes)
    ours = trainer(sample.X, sample.labels, problem, rule=Perceptron(margin, 1.0), weight=weight, constant=constant,
                   batch=2, mean=True)  # fmt: skip
    for order in epochs:
        ours.epoch(order)
    expected = reference.learn(sample.X, sample.labels, sample.classes, epochs, multiclass=multiclass, constant=constant,
                               step=reference.perceptron(margin), weight=weight, batch=2, mean=True)  # fmt: skip
    assert np.array_equal(weight_vectors(problem, ours.weights.w), expected.last)
    assert ours.weights.tally.sum() == expected.updates


@pytest.mark.parametrize("multiclass", ["binary", "joint"])
@pytest.mark.parametrize("normalised", [False, True])
@given(data=st.data())
def test_most_violated_is_the_reference_run(multiclass, normalised, data):
    sample = data.draw(samples(st.just(2) if multiclass == "binary" else st.integers(2, 3)))
    looks, margin = data.draw(st.integers(0, 15)), data.draw(margins())
    constant = data.draw(constants().filter(lambda constant: constant > 0 or not normalised))
    problem = PROBLEMS[multiclass](sample.classes)
    scales = np.linalg.norm(reference.padded(sample.X, constant), axis=1) if normalised else None
    ours = trainer(sample.X, sample.labels, problem, rule=Perceptron(margin, 1.0), constant=constant,
                   order="most-violated", scales=scales)  # fmt: skip
    rows = np.arange(len(sample.X))
    while ours.weights.clock[0] < looks:
        _, converged = ours.epoch(rows, looks - int(ours.weights.clock[0]))
        if converged:
            break
    expected = reference.learn_worst_first(sample.X, sample.labels, sample.classes, looks, multiclass=multiclass,
                                           margin=margin, constant=constant, normalised=normalised)  # fmt: skip
    assert np.array_equal(weight_vectors(problem, ours.weights.w), expected.last)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_diminishing_rates_are_the_reference_run(power):
    """On data without ties: rates like 1/√3 round, and a tie would be decided by that."""
    rng = np.random.default_rng(7)
    X, labels = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    ours = trainer(X, labels, Binary(2), rule=Diminishing(0.0, 2.0, power))
    epochs = [np.arange(60)] * 3
    for order in epochs:
        ours.epoch(order)
    expected = reference.learn(
        X, labels, 2, epochs, multiclass="binary", step=reference.perceptron(0.0, lambda k: 2.0 / k**power)
    )
    assert expected.updates == ours.weights.tally[0] > 20
    assert np.allclose(weight_vectors(Binary(2), ours.weights.w), expected.last, atol=1e-9)


def epochs_in_blocks(trainer, orders, threads, kept=None):
    """What each epoch does in blocks, whatever the shape of the rows."""
    done = []
    for order in orders:
        known = (trainer.examples, trainer._weights(), trainer.problem, trainer.rule, trainer._pace(10**9), order)
        done.append(blocks.epoch_in_blocks(*known, trainer.pending, threads, kept))
    return done


@pytest.mark.parametrize("kind", [Joint, OneVsRest])
@given(data=st.data())
def test_blocks_are_the_row_at_a_time_run(kind, data):
    """Identical weights on integers, for rows that fill no block, several blocks and several panels, in any order."""
    block, panel = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    rows, classes = data.draw(sizes(block * panel, most=5)), data.draw(st.integers(2, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    X = rng.integers(-2, 3, (rows, 3)).astype(float)
    labels = rng.integers(0, classes, rows)
    rule, constant = Perceptron(data.draw(margins()), data.draw(rates())), data.draw(constants())
    settings = {"rule": rule, "constant": constant, "weight": data.draw(row_weights(rows))}
    by_row, by_block = (trainer(X, labels, kind(classes), **settings) for _ in range(2))
    by_block = by_block._replace(pending=data.draw(st.sampled_from([None, np.zeros((rows, columns(kind(classes))))])))
    if data.draw(st.booleans()):
        kept, visits = [], [data.draw(orders(rows))] * 3
    else:
        kept, visits = None, data.draw(st.lists(orders(rows), min_size=1, max_size=3))
    with patch.multiple(blocks, BLOCK=block, PANEL=panel):
        blocked = epochs_in_blocks(by_block, visits, data.draw(st.integers(1, 3)), kept)
    by_block.add_pending()
    assert blocked == [by_row.epoch(order)[0] for order in visits]
    assert np.array_equal(by_row.weights.w, by_block.weights.w)
    assert np.array_equal(by_row.weights.drift, by_block.weights.drift)
    assert np.array_equal(by_row.weights.tally, by_block.weights.tally)
    assert np.array_equal(by_row.weights.clock, by_block.weights.clock)


@given(data=st.data())
def test_blocks_name_the_row_that_is_not_a_number(data):
    """Wherever it is visited: in the first panel or a later one, at the beginning of a block or inside it."""
    rows = 30
    X, labels = np.ones((rows, 3)), np.arange(rows) % 3
    order = data.draw(orders(rows))
    place = data.draw(st.integers(0, len(order) - 1))
    X[order[place]] = np.nan
    ours = trainer(X, labels, Joint(3), rule=Perceptron(0.0, 1.0))
    with patch.multiple(blocks, BLOCK=3, PANEL=2):
        [done] = epochs_in_blocks(ours, [order], data.draw(st.integers(1, 2)))
    assert done.broken == order[place]
    assert ours.seen == np.flatnonzero(order == order[place])[0]


@pytest.mark.parametrize("order", ["cyclic", "shuffle"])
def test_every_epoch_of_many_classes_goes_in_blocks(monkeypatch, order):
    """More rows than two panels have; in cyclic order, the panels of the first epoch are used again."""
    rng = np.random.default_rng(0)
    rows = 2 * blocks.PANEL * blocks.BLOCK + 100
    X, y = rng.integers(-2, 3, (rows, 4 * blocks.BLOCK)).astype(float), rng.integers(0, 30, rows)
    settings = {"max_iter": 3, "tol": None, "order": order, "random_state": 0, "n_jobs": 2}
    calls = []
    in_blocks = blocks.epoch_in_blocks
    monkeypatch.setattr(blocks, "epoch_in_blocks", lambda *known: calls.append(known) or in_blocks(*known))
    model = estimators.Perceptron(**settings).fit(X, y)
    assert len(calls) == model.n_iter_ == 3
    monkeypatch.setattr(blocks, "is_faster", lambda rows, problem: False)
    assert np.array_equal(model.coef_, estimators.Perceptron(**settings).fit(X, y).coef_)


def test_threads_that_overlap_leave_the_threads_of_matrix_products_as_they_were():
    def limits():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    def second():
        with one_blas_thread:
            inside.set()
            assert left.wait(60)
            seen.append(limits())

    inside, left, seen, before = threading.Event(), threading.Event(), [], limits()
    thread = threading.Thread(target=second)
    with one_blas_thread:
        thread.start()
        assert inside.wait(60)
    left.set()
    thread.join(60)
    assert seen == [[1] * len(before)], "the one who came first has gone, and the other still computes alone"
    assert limits() == before


def test_blocks_are_chosen_from_the_shape_and_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X, labels = rng.integers(-2, 3, (500, 40)).astype(float), rng.integers(0, 30, 500)
    runs = []
    for faster in (True, False):
        monkeypatch.setattr(blocks, "is_faster", lambda rows, problem, faster=faster: faster)
        ours = trainer(X, labels, Joint(30), rule=Perceptron(0.0, 1.0))
        ours.epoch(np.arange(500))
        runs.append(ours.weights)
    assert np.array_equal(runs[0].w, runs[1].w)
    monkeypatch.undo()
    assert blocks.is_faster(Dense(X), Joint(30))
    assert not blocks.is_faster(Dense(X), Joint(3))
    assert not blocks.is_faster(as_rows(sp.csr_matrix(X)), Joint(30))
    assert not blocks.is_faster(Dense(X), Binary(2))


def test_float32_rows_learn_float32_weights_that_round_as_the_data_does():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6)).astype(np.float32)
    labels = (X[:, 0] + 0.3 * rng.standard_normal(200) > 0).astype(np.int64)
    ours = trainer(X, labels, Binary(2), rule=Perceptron(0.0, 1.0))
    ours.epoch(np.arange(200))
    expected = reference.learn(X, labels, 2, [range(200)], multiclass="binary")
    assert ours.weights.w.dtype == np.float32
    assert ours.weights.drift.dtype == np.float64
    assert np.allclose(ours.weights.w, expected.last[0], atol=1e-4)
    assert np.allclose(ours.weights.average(), expected.average[0], atol=1e-4)


@jit
def number_inside(values):
    a, b = values[0] + values[1], values[2]
    return is_number(a + b)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_compiled_sum_with_nan_or_infinity_is_no_number(strange, place):
    """Also where the compiler, which may regroup sums, sees the terms."""
    for dtype in (np.float32, np.float64):
        values = np.ones(3, dtype)
        assert number_inside(values)
        values[place] = strange
        assert not number_inside(values)
