"""The simulator runs the algorithm as it is, and its time is what the formula says of what was measured."""

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp

matplotlib.use("Agg")

from matplotlib import pyplot

from rosenblatt import Perceptron, cluster, plot
from rosenblatt.cluster import simulation
from rosenblatt.cluster.rows import MemoryShard
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.testing import reference

rng = np.random.default_rng(5)
X = rng.integers(-4, 5, (40, 3)).astype(np.float64)
Y = np.argmax(X @ rng.integers(-3, 4, (3, 3)) + rng.integers(-3, 4, (40, 3)), axis=1)  # cannot be separated
TWO = np.where(X @ [2, 1, -1] > 0, "up", "down")


@pytest.fixture
def fixed_times(monkeypatch):
    """A shard takes half a second, and a quarter more for each of its rows; nothing else takes any time."""
    learn, clock = MemoryShard.learn, [0.0]

    def learn_in_fixed_time(shard, *args):
        clock[0] += 0.5 + 0.25 * len(shard.y)
        return learn(shard, *args)

    monkeypatch.setattr(MemoryShard, "learn", learn_in_fixed_time)
    monkeypatch.setattr(simulation, "thread_time", lambda: clock[0])


@pytest.mark.parametrize("keep", ["last", "average"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shards", [1, 2, 4, 8])
def test_each_epoch_is_that_of_the_reference(keep, layout, shards):
    """On integers, with shares that are powers of two, to the last mistake; rows are dealt to the shards in turn."""
    parts = [range(i, 40, shards) for i in range(shards)]
    naive = reference.learn_in_shards(X, Y, 3, [parts] * 4)
    model = Perceptron(keep=keep, order="cyclic")
    (run,) = cluster.simulate(model, layout(X), Y, shards=[shards], epochs=4, X_test=layout(X[:30]), y_test=Y[:30])
    assert run.shards == shards
    assert [epoch.mistakes for epoch in run.epochs] == [sum(mistakes) for mistakes in naive.mistakes]
    assert [epoch.updates for epoch in run.epochs] == [sum(updates) for updates in naive.updates]
    assert run.weighted_updates == naive.weighted_updates
    points = reference.padded(X[:30], 1.0)
    for number, epoch in enumerate(run.epochs, 1):
        w = np.mean(naive.path[: 40 * number], axis=0) if keep == "average" else naive.mixed[number - 1]
        assert epoch.accuracy == np.mean(np.argmax(points @ w.T, axis=1) == Y[:30])
    assert run.accuracy == run.epochs[-1].accuracy
    assert not hasattr(model, "classes_"), "the estimator stays as it is"


def test_shards_that_are_mixed_in_other_ways_learn_something_else():
    found = {
        mixing: [epoch.updates for epoch in run.epochs]
        for mixing in ("uniform", "mistakes", "changed")
        for run in cluster.simulate(Perceptron(keep="last"), X, Y, shards=[5], epochs=6, mixing=mixing)
    }
    assert len(set(map(tuple, found.values()))) == 3


def test_an_epoch_takes_as_long_as_its_slowest_shard(fixed_times):
    alone, three = cluster.simulate(Perceptron(), X[:10], TWO[:10], shards=(1, 3), epochs=2)
    assert [epoch.learning for epoch in alone.epochs] == [0.5 + 0.25 * 10] * len(alone.epochs)
    assert {epoch.learning for epoch in three.epochs} == {0.5 + 0.25 * 4}, "one of the three has four rows"
    assert all(epoch.seconds == epoch.learning for epoch in alone.epochs), "one shard sends nothing"
    for epoch in three.epochs:
        assert epoch.seconds == epoch.scheduling + epoch.learning + epoch.sending


def test_more_rows_take_longer_but_for_what_even_one_row_takes(fixed_times):
    (run,) = cluster.simulate(Perceptron(), X[:10], TWO[:10], shards=[2], epochs=1, rows=1000)
    assert run.epochs[0].learning == 0.5 + 100 * 0.25 * 5


def test_adding_takes_time_where_there_is_more_than_one_shard():
    alone, nine = cluster.simulate(Perceptron(), X, TWO, shards=(1, 9), epochs=1)
    assert alone.epochs[0].adding == 0.0 < nine.epochs[0].adding
    assert nine.seconds == pytest.approx(sum(nine.epochs[0][-5:-1]))


def test_messages_and_tasks_are_counted_along_the_tree():
    """Nine shards: eight are added to one and one is alone, then two; in the first level seven messages come one after the
    other, in the second one. The mixture goes to the client, and in four rounds to nine workers."""
    options = {"shards": [9], "epochs": 1, "bandwidth": np.inf}
    (run,) = cluster.simulate(Perceptron(), X, TWO, latency=1.0, task=0.0, **options)
    assert (run.epochs[0].sending, run.epochs[0].scheduling) == (7 + 1 + 1 + 4, 0.0)
    (run,) = cluster.simulate(Perceptron(), X, TWO, latency=0.0, task=1.0, **options)
    assert (run.epochs[0].sending, run.epochs[0].scheduling) == (0.0, 9 + 2 + 1)


def test_bytes_take_their_time():
    """Two shards that change all four weights: 8 bytes for each, as many for its average, and 8 each for examples and
    updates. To the workers goes the model, which has no counts."""
    (run,) = cluster.simulate(Perceptron(), X, TWO, shards=[2], epochs=1, latency=0.0, bandwidth=10.0)
    change, model = 4 * 16 + 2 * 8, 4 * 16
    assert run.epochs[0].nbytes == change + change + 2 * model
    assert run.epochs[0].sending == (change + change + 2 * model) / 10


def test_a_training_that_converges_ends():
    runs = cluster.simulate(Perceptron(), X, TWO, shards=(1, 2, 100), epochs=200)
    assert [run.shards for run in runs] == [1, 2], "there are no 100 rows"
    for run in runs:
        assert run.epochs[-1].updates == 0 < run.epochs[-2].updates
        assert run.accuracy == 1.0
        assert f"{run.shards} shards: accuracy 1.0000 after {len(run.epochs)} epochs" in str(run)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"shards": [0]}, InvalidParameter, "shards"),
        ({"epochs": 0}, InvalidParameter, "epochs"),
        ({"rows": 0}, InvalidParameter, "rows"),
        ({"latency": -1.0}, InvalidParameter, "latency"),
        ({"task": np.nan}, InvalidParameter, "task"),
        ({"bandwidth": 0.0}, InvalidParameter, "bandwidth"),
        ({"mixing": "sum"}, InvalidParameter, "mixing"),
        ({"X_test": X}, InvalidData, "together"),
        ({"X_test": X, "y_test": TWO[:3]}, InvalidData, "40 rows; it has 3"),
    ],
)
def test_what_cannot_be_simulated_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        cluster.simulate(Perceptron(), X, TWO, **options)


def test_a_learner_that_cannot_be_mixed_is_refused():
    with pytest.raises(InvalidParameter, match="keep"):
        cluster.simulate(Perceptron(keep="vote"), X, TWO)


def test_the_picture_has_accuracy_and_time_against_shards():
    runs = cluster.simulate(Perceptron(), X, Y, shards=(1, 2, 4, 8), epochs=6)
    accuracy, time = plot.mixing(runs[::-1])
    texts = [text.get_text() for text in accuracy.get_legend().get_texts()]
    assert texts == ["after 1 epoch", "after 2 epochs", "after 6 epochs"]
    for line, number in zip(accuracy.lines, (1, 2, 6), strict=True):
        assert line.get_xdata().tolist() == [1, 2, 4, 8]
        assert line.get_ydata() == pytest.approx([100 * run.epochs[number - 1].accuracy for run in runs])
    total, learning, ideal, fastest = time.lines
    assert total.get_ydata() == pytest.approx([run.seconds for run in runs])
    assert learning.get_ydata() == pytest.approx([sum(epoch.learning for epoch in run.epochs) for run in runs])
    assert ideal.get_ydata() == pytest.approx([runs[0].seconds / shards for shards in (1, 2, 4, 8)])
    best = min(runs, key=lambda run: run.seconds)
    assert (fastest.get_xdata()[0], fastest.get_ydata()[0]) == (best.shards, pytest.approx(best.seconds))
    assert time.get_yscale() == time.get_xscale() == accuracy.get_xscale() == "log"
    pyplot.close("all")


def test_a_picture_of_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="runs"):
        plot.mixing([])
