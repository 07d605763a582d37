"""How training in shards would go on a larger cluster: the algorithm runs as it is, one shard after the other in this
process, and the time on as many workers as shards is computed from what was measured on the way.

    an epoch = its tasks in the scheduler + the slowest shard + adding up what changed + sending the mixture to all workers

What is measured: the processor time of each shard and of each addition, and the bytes of each change. The slowest shard is
the one with the most rows, at the median pace of all: what disturbs this machine for a moment would not disturb a cluster.
What is assumed: the latency and the bandwidth between two workers, and the time that the scheduler needs for a task. In
each level of the sum the worker that adds has one of the changes and receives the others, one after the other. The mixture
goes out as Dask sends it: in each round the workers that have it send it to as many others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.cluster.fitting import check_shards, deal
from rosenblatt.cluster.linear_run import LinearRun, check_linear, labels_of_arrays
from rosenblatt.cluster.rows import MemoryShard, RowSetup, RowSummary
from rosenblatt.cluster.run import RunOptions, seed_of
from rosenblatt.cluster.sums import Sum, add_sums, weigh
from rosenblatt.engine.mixing import ShardReport, WeightChange, tree
from rosenblatt.engine.model import LinearModel
from rosenblatt.engine.problems import winner
from rosenblatt.engine.rows import Matrix, MatrixLike
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.estimators import targets
from rosenblatt.estimators.inputs import read_rows, refuse_non_finite
from rosenblatt.estimators.interface import clone
from rosenblatt.estimators.linear import Linear

SHARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


class SimulatedEpoch(NamedTuple):
    """What an epoch did, and how long it would take on as many workers as shards.

    Attributes
    ----------
    accuracy : float
        The share of the test rows that the model predicts after it.
    mistakes, updates : int
        Those of all shards.
    weighted_updates : float
        Σ μk: the updates, each weighted by the share of its shard in the mixture.
    scheduling : float
        Seconds in the scheduler, for the tasks of the epoch.
    learning : float
        Seconds of the slowest shard.
    adding : float
        Seconds until the changes are added up, level by level, and are in the models of the client and of the workers.
    sending : float
        Seconds on the network: changes up the tree, the mixture to all workers.
    nbytes : int
        The bytes that all workers send and receive.
    """

    accuracy: float
    mistakes: int
    updates: int
    weighted_updates: float
    scheduling: float
    learning: float
    adding: float
    sending: float
    nbytes: int

    @property
    def seconds(self) -> float:
        """The seconds that the epoch would take."""
        return self.scheduling + self.learning + self.adding + self.sending


class Simulated(NamedTuple):
    """A training in so many shards.

    Attributes
    ----------
    shards : int
        The number of shards, and of workers.
    epochs : list of SimulatedEpoch
        What each epoch did, and how long it would take.
    """

    shards: int
    epochs: list[SimulatedEpoch]

    @property
    def accuracy(self) -> float:
        """The share of the test rows that the model predicts in the end."""
        return self.epochs[-1].accuracy

    @property
    def seconds(self) -> float:
        """The seconds that all epochs would take."""
        return math.fsum(epoch.seconds for epoch in self.epochs)

    @property
    def weighted_updates(self) -> float:
        """Σ Σ μk over all epochs and shards, which R²/γ² bounds where the rows can be separated."""
        return math.fsum(epoch.weighted_updates for epoch in self.epochs)

    def __str__(self) -> str:
        share = math.fsum(epoch.learning for epoch in self.epochs) / self.seconds
        return (
            f"{self.shards:,} shards: accuracy {self.accuracy:.4f} after {len(self.epochs)} epochs, "
            f"{self.seconds:.3g} s, {share:.0%} of it learning"
        )


class Network(NamedTuple):
    """What is assumed of the machines: seconds until a message arrives, bytes a second, seconds of a task."""

    latency: float
    bandwidth: float
    task: float

    def check(self) -> None:
        """Raise an error for what no network has."""
        for name, value in (("latency", self.latency), ("task", self.task)):
            if not 0 <= value < math.inf:
                raise InvalidParameter(name, value, "a number of seconds ≥ 0")
        if not self.bandwidth > 0:
            raise InvalidParameter("bandwidth", self.bandwidth, "a number of bytes a second > 0")

    def seconds(self, nbytes: int) -> float:
        """Return the time to send so many bytes from one worker to another."""
        return self.latency + nbytes / self.bandwidth


class Costs(NamedTuple):
    """The seconds of an epoch on as many workers as shards, and the bytes that are sent."""

    scheduling: float = 0.0
    learning: float = 0.0
    adding: float = 0.0
    sending: float = 0.0
    nbytes: int = 0

    def plus(self, *others: Costs) -> Costs:
        """Return the costs of what is done one after the other."""
        return Costs(*map(sum, zip(self, *others, strict=True)))


class LargerData(NamedTuple):
    """Data like those that there are, of which there are more."""

    whole: MemoryShard  # all rows that there are
    rows: int


class MeasuredShards:
    """Shards in this process that learn one after the other, with what it would cost if they were on as many workers: see
    `engine.mixing.Shards`.

    Parameters
    ----------
    shards : sequence of MemoryShard
        The shards.
    network : Network
        What lies between the workers.
    accuracy : callable
        The accuracy of a model.
    larger : LargerData, optional
        The data that the time is computed for, if they are larger.
    """

    def __init__(
        self,
        shards: Sequence[MemoryShard],
        network: Network,
        accuracy: Callable[[LinearModel], float],
        larger: LargerData | None = None,
    ):
        self.shards, self.network, self.accuracy, self.larger = shards, network, accuracy, larger
        self.mixing = "uniform"
        self.sum: Sum | None = None
        self.costs: list[Costs] = []
        self.accuracies: list[float] = []  # after each epoch but the last
        self._one_row = MemoryShard(shards[0].X[:1], shards[0].y[:1])
        self._setup: Any = None
        self._model: Any = None  # the common one

    def __len__(self) -> int:
        return len(self.shards)

    def summaries(self) -> list[RowSummary]:
        """Return what each shard says of its rows."""
        return [shard.summary() for shard in self.shards]

    def begin(self, setup: RowSetup, mixing: str, seen: int = 0, mistakes: int = 0) -> None:
        """Begin a run with this setup."""
        self._setup, self.mixing, self.costs, self.accuracies = setup, mixing, [], []

    def learn(self, model: LinearModel, number: int, order: NDArray) -> list[ShardReport]:
        """Have each shard make the epoch with this number from the weights of the model, and add up what changed."""
        self._model = model
        if number == 1:
            self.shards[0].learn(self._setup, model, 1, 0)  # what is compiled or paged in now is not measured below
        else:
            self.accuracies.append(self.accuracy(model))
        done = [_timed(partial(shard.learn, self._setup, model, number, i)) for i, shard in enumerate(self.shards)]
        learned, seconds = [one for one, _ in done], [taken for _, taken in done]
        slowest = Costs(learning=self._slowest([one.report.seen for one in learned], seconds))
        sums, costs = [weigh(self.mixing, one) for one in learned], [slowest]
        if len(sums) == 1:
            self.sum, self.costs = sums[0], [*self.costs, slowest]
            return self.sum.reports
        levels = tree(len(sums))
        for level in levels:
            sums, spent = self._add_level([[sums[i] for i in group] for group in level])
            costs.append(spent)
        tasks = len(learned) + sum(map(len, levels))
        self.sum, self.costs = sums[0], [*self.costs, Costs(tasks * self.network.task).plus(*costs)]
        return self.sum.reports

    def _slowest(self, rows: Sequence[int], seconds: Sequence[float]) -> float:
        """The seconds of the largest shard. A shard of more rows than there are here goes at the pace of all rows here."""
        small = sorted(self._time(self._one_row) for _ in range(5))
        if self.larger is None:
            fixed = min(small[2], *seconds)
            pace = np.median((np.array(seconds) - fixed) / np.maximum(np.array(rows) - 1, 1))
            return float(fixed + (max(rows) - 1) * pace)
        whole = self._time(self.larger.whole)
        fixed = min(small[2], whole)
        pace = (whole - fixed) / max(len(self.larger.whole.y) - 1, 1)
        return float(fixed + max(self.larger.rows / len(self) - 1, 0) * pace)

    def _time(self, shard: MemoryShard) -> float:
        """The seconds of an epoch of a shard, which is not mixed."""
        return _timed(partial(shard.learn, self._setup, self._model, 1, 0))[1]

    def _add_level(self, groups: Sequence[Sequence[Sum]]) -> tuple[list[Sum], Costs]:
        """Add up the groups of a level, side by side; a worker of each has one of its changes and receives the others."""
        sums, adding = zip(*(_timed(partial(add_sums, group)) for group in groups), strict=True)
        received = [[part.change.nbytes for part in group[1:]] for group in groups]
        sending = max(sum(map(self.network.seconds, sizes)) for sizes in received)
        return list(sums), Costs(adding=max(adding), sending=sending, nbytes=sum(map(sum, received)))

    def mix(self, shares: Sequence[float]) -> WeightChange:
        """Return the change of the mixture: it goes to the client, and from there to all workers, which add it to their
        models; or the model does, where that is shorter."""
        assert self.sum is not None, "learn comes first"
        change: WeightChange = self.sum.mixed(self.mixing)
        if len(self) > 1:
            _, adding = _timed(lambda: self._model.copy().add_change(change))
            out, rounds = min(change.nbytes, self._model.nbytes), math.ceil(math.log2(len(self) + 1))
            sending = self.network.seconds(change.nbytes) + rounds * self.network.seconds(out)
            nbytes = change.nbytes + len(self) * out
            self.costs[-1] = self.costs[-1].plus(Costs(adding=2 * adding, sending=sending, nbytes=nbytes))
        return change

    def count_errors(self, w: NDArray) -> int:
        """Return how many rows of all shards the weights w do not predict."""
        return sum(shard.errors(self._setup, w) for shard in self.shards)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Do some work; what came of it, and the seconds of the processor that it took."""
    began = thread_time()
    return work(), thread_time() - began


def simulate(
    estimator: Linear,
    X: MatrixLike,
    y: ArrayLike,
    shards: Sequence[int] = SHARDS,
    *,
    epochs: int = 10,
    mixing: str = "uniform",
    X_test: MatrixLike | None = None,
    y_test: ArrayLike | None = None,
    rows: int | None = None,
    latency: float = 1e-3,
    bandwidth: float = 125e6,
    task: float = 5e-4,
) -> list[Simulated]:
    """Train in different numbers of shards, in this process, and compute how long it would take on as many workers.

    The models are those of `fit` with the same numbers of shards, after the same epochs. The seconds are those of a
    cluster whose workers are each as fast as this process is now, with one shard each: see the module.

    Parameters
    ----------
    estimator : linear classifier
        What learns; it stays as it is. It makes the same number of epochs with all shards, unless it converges.
    X : array or sparse matrix (rows, features)
        The rows.
    y : array (rows,)
        Their labels.
    shards : sequence of int
        The numbers of shards to try; those above the number of rows are left out.
    epochs : int, default=10
        The epochs of each training.
    mixing : {"uniform", "mistakes", "changed"}, default="uniform"
        How shards are mixed, as in `fit`.
    X_test, y_test : optional
        The rows on which the accuracy is measured; by default X and y.
    rows : int, optional
        The number of rows that the time is computed for, if the data stand for more than there are here: a visit takes as
        long as it does here. Accuracy and bytes are those of the rows here.
    latency : float, default=0.001
        Seconds until a message arrives at another worker.
    bandwidth : float, default=125e6
        Bytes a second between two workers; the default is a network of 1 Gbit/s.
    task : float, default=0.0005
        Seconds that the scheduler needs for a task.

    Returns
    -------
    list of Simulated
        One for each number of shards: accuracy, updates, seconds and bytes of each epoch.

    Raises
    ------
    InvalidParameter
        If a parameter has a value that is not allowed, or if the estimator cannot be trained in shards.
    InvalidData
        If rows or labels cannot be used.

    Examples
    --------
    >>> from rosenblatt import Perceptron, cluster
    >>> X = [[i % 5, i % 7, i % 11] for i in range(1000)]
    >>> y = [2 * a + b > c for a, b, c in X]
    >>> for run in cluster.simulate(Perceptron(), X, y, shards=(1, 4), epochs=3):
    ...     print(run.shards, run.accuracy, [epoch.mistakes for epoch in run.epochs])
    1 1.0 [33, 0]
    4 1.0 [174, 64, 29]
    """
    network = Network(latency, bandwidth, task)
    network.check()
    for count in shards:
        check_shards(count)
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise InvalidParameter("epochs", epochs, "a whole number ≥ 1")
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise InvalidParameter("rows", rows, "a whole number ≥ 1, or None for the rows of X")
    if (X_test is None) != (y_test is None):
        raise InvalidData("X_test and y_test must be passed together, or neither of them")
    learner = clone(estimator).set_params(max_iter=epochs, tol=None)
    check_linear(learner)
    learner._plan()
    matrix, labels = learner._read(X, y, reset=True)
    refuse_non_finite(learner, matrix)
    test = (matrix, labels) if X_test is None else (read_rows(learner, X_test), np.asarray(y_test))
    if len(test[1]) != test[0].shape[0]:
        raise InvalidData(f"y_test must have one label for each of the {test[0].shape[0]} rows; it has {len(test[1])}")
    numbers = targets.numbers(test[1], targets.distinct(labels))
    accuracy = partial(_accuracy, test[0], numbers)
    larger = None if rows is None else LargerData(MemoryShard(matrix, labels), rows)
    found = []
    for count in shards:
        if count <= len(labels):
            parts = [deal(matrix, labels, None, None, i, count) for i in range(count)]
            found.append(_simulate_one(clone(learner), MeasuredShards(parts, network, accuracy, larger), mixing))
    return found


def _accuracy(X: Matrix, labels: NDArray, model: LinearModel) -> float:
    """The share of rows whose class number a model predicts."""
    return float(np.mean(winner(model.decision(X)) == labels))


def _simulate_one(learner: Linear, shards: MeasuredShards, mixing: str) -> Simulated:
    """Train in shards, and note what each epoch did and costs."""
    shuffle = learner.order == "shuffle"
    run = LinearRun(learner, shards, RunOptions(mixing), seed_of(learner), shuffle)
    report = run.fit(run.agree(), labels_of_arrays, lambda _: learner._limits(learner._plan(), None)).report
    accuracies = [*shards.accuracies, shards.accuracy(learner._model)]
    return Simulated(len(shards), [
        SimulatedEpoch(
            accuracy, sum(shard.mistakes for shard in epoch.shards), sum(shard.updates for shard in epoch.shards),
            epoch.weighted_updates, *costs,
        )
        for accuracy, epoch, costs in zip(accuracies, report.epochs, shards.costs, strict=True)
    ])  # fmt: skip
