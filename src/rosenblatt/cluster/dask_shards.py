"""Shards on the workers of a Dask cluster: see `engine.mixing.Shards`.

Workers come and go. Dask repeats what a lost worker had computed; what Dask cannot repeat, because it was sent from here
(rows in memory), is sent again. Whatever is repeated gives the same bits, so nothing of this shows in the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from time import perf_counter
from typing import Any, NamedTuple
from uuid import uuid4

import dask
from distributed import Client, Future, as_completed
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker
from numpy.typing import NDArray

from rosenblatt.cluster import tasks
from rosenblatt.cluster.sums import NewLabels, Sum
from rosenblatt.cluster.tasks import Assignment
from rosenblatt.engine.mixing import ShardReport, tree
from rosenblatt.errors import ClusterUnavailable

_MOST_LOSSES = 20  # of work, in one epoch or while loading, before it is given up
_KILLED = 4  # workers that were lost with the same task, when Dask gives it up
_PATIENCE = 60.0  # seconds to wait for a worker, or for the scheduler
_LOST = (KilledWorker, CancelledError, asyncio.CancelledError, CommClosedError, TimeoutError, ConnectionError)


class ShardProgress(NamedTuple):
    """How far an epoch is.

    Attributes
    ----------
    epoch : int
        The number of the epoch, from 1; 0 while shards are loaded.
    done : int
        The shards that have finished it.
    shards : int
        The shards there are.
    seen : int
        The examples visited in the epochs before.
    mistakes : int
        Those of them that were predicted wrong when they were visited.
    seconds : float
        The time since training began.

    Examples
    --------
    >>> progress = ShardProgress(epoch=3, done=5, shards=8, seen=2_000, mistakes=40, seconds=1.5)
    >>> f"epoch {progress.epoch}: {progress.done} of {progress.shards} shards, {progress.mistakes} mistakes so far"
    'epoch 3: 5 of 8 shards, 40 mistakes so far'
    """

    epoch: int
    done: int
    shards: int
    seen: int
    mistakes: int
    seconds: float


Watch = Callable[[ShardProgress], object]


def run_on_worker(client: Client, function: Callable, *args: Any) -> Any:
    """Return what a function returns on some worker of a cluster; if that one is lost, on another."""
    return DaskShards(client, []).run(function, *args)


class DaskShards:
    """Shards on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        The connection to the scheduler.
    loads : sequence of callables
        Each sends a shard to the cluster, or has a worker load it, and returns its future.
    watch : callable
        Called with a `ShardProgress` whenever a shard is done.
    """

    def __init__(self, client: Client, loads: Sequence[Callable[[Client], Future]], watch: Watch = lambda progress: None):
        self.client, self.loads, self.watch = client, loads, watch
        self.address = str(client.scheduler.address) if client.scheduler is not None else "?"
        self.setup: Any = None
        self.mixing = "uniform"
        self.sum: Sum | None = None  # of the last epoch
        self.seen = self.mistakes = 0
        self.began = perf_counter()
        self._losses = 0
        self._shards: list[Future] = []
        self._start: tuple[Any, int] = (None, 0)  # the model and the number of the epoch under way
        self._run = ""
        self._sent_setup: Future | None = None
        self._base: tuple[int, Future] | None = None  # epochs, the model after them
        self._changes: list[Future] = []
        self._change: Any = None  # the last one, not yet sent
        self._bytes = 0  # of the changes sent since the base

    def __len__(self) -> int:
        return len(self.loads)

    def summaries(self) -> list[Any]:
        """Load all shards, and return what each says of its examples."""
        return self._persist(self._summaries)

    def replace(self, loads: Sequence[Callable[[Client], Future]]) -> None:
        """Load other shards instead, as many as there are."""
        self.loads, self._shards = loads, []

    def begin(self, setup: Any, mixing: str, seen: int = 0, mistakes: int = 0) -> None:
        """Begin a run with this setup, in which so many examples have been seen before."""
        self.setup, self.mixing, self._run = setup, mixing, uuid4().hex
        self.seen, self.mistakes = seen, mistakes
        self._forget_sent()

    def learn(self, model: Any, number: int, order: NDArray) -> list[ShardReport]:
        """Have each shard make the epoch with this number from the weights of the model; workers add up what changed."""
        self._start = model, number
        self.sum = self._persist(self._learn)
        if self.sum.new_labels:
            raise NewLabels(self.sum.new_labels)
        self.seen += sum(report.seen for report in self.sum.reports)
        self.mistakes += sum(report.mistakes for report in self.sum.reports)
        return self.sum.reports

    def mix(self, shares: Sequence[float]) -> Any:
        """Return the change of the mixture."""
        assert self.sum is not None, "learn comes first"
        self._change = self.sum.mixed(self.mixing)
        self.sum = self.sum._replace(change=None)
        return self._change

    def count_errors(self, w: NDArray) -> int:
        """Return how many rows of all shards the weights w do not predict."""

        def count() -> int:
            return sum(self._results(self._of_each_shard(tasks.count_errors, setup=self._setup(), w=self._send(w))))

        return self._persist(count)

    def run(self, function: Callable, *args: Any) -> Any:
        """Return what a function returns on some worker."""
        return self._persist(lambda: self._results([self._submit(function, *args)])[0])

    # Work that may be lost

    def _persist(self, work: Callable[[], Any]) -> Any:
        """Do some work until it succeeds, or until too much of it was lost."""
        self._losses = 0
        while True:
            try:
                return work()
            except _LOST as loss:
                self._losses += _KILLED if isinstance(loss, KilledWorker) else 1
                if self._losses > _MOST_LOSSES:
                    raise ClusterUnavailable(
                        f"workers were lost more than {_MOST_LOSSES} times during one epoch, the last time with: {loss}",
                        self.address,
                        "give workers more memory, or use more shards, which are smaller",
                    ) from loss
                self._forget_sent()
                self._await_workers()

    def _await_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        except Exception as failure:  # what Dask raises where a scheduler is gone depends on when it is noticed
            raise ClusterUnavailable(
                f"the scheduler at {self.address} has no worker, or does not answer any more: {failure!r}", self.address
            ) from failure

    def _forget_sent(self) -> None:
        """Send setup and model again when they are needed next."""
        self._sent_setup, self._base, self._changes, self._bytes = None, None, [], 0

    def _send(self, value: Any) -> Future:
        """Send a value to the cluster as a task, which the scheduler can repeat; scattered, it would be lost with the
        worker that has it, and to scatter while a worker dies may wait for ever."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):  # a model is as large as it is
            return self._submit(tasks.itself, value)

    def _submit(self, function: Callable, *args: Any, **shared: Any) -> Future:
        return self.client.submit(function, *args, pure=False, **shared)

    def _of_each_shard(self, function: Callable, **shared: Any) -> list[Future]:
        """What a function returns of each shard and its number."""
        return [self._submit(function, shard, i, **shared) for i, shard in enumerate(self._present_shards())]

    def _setup(self) -> Future:
        if self._sent_setup is None:
            self._sent_setup = self._send(self.setup)
        return self._sent_setup

    def _present_shards(self) -> list[Future]:
        """The shards, those that were lost loaded again."""
        if not self._shards:
            self._shards = [load(self.client) for load in self.loads]
        for i, future in enumerate(self._shards):
            if future.status in ("cancelled", "lost") or (
                future.status == "error" and isinstance(future.exception(), _LOST)
            ):
                self._shards[i] = self.loads[i](self.client)
        return self._shards

    def _assignment(self) -> tuple[Assignment, Future, list[Future]]:
        """Which epoch is to be learned, and the model from which it begins: a base and the changes since."""
        model, number = self._start
        if self._base is not None and self._change is not None:
            self._bytes += self._change.nbytes
            if self._bytes >= getattr(model, "nbytes", 0):
                self._base = None
            else:
                self._changes.append(self._send(self._change))
        self._change = None
        if self._base is None:
            sent = self._send(model.copy())  # a worker in this process would have the one that changes here
            self._base, self._changes, self._bytes = (number - 1, sent), [], 0
        base, sent = self._base
        return Assignment(self._run, number, base), sent, list(self._changes)

    def _summaries(self) -> list[Any]:
        return self._results(self._of_each_shard(tasks.summary_of), 0)

    def _learn(self) -> Sum:
        assignment, base, changes = self._assignment()
        shared = {"assignment": assignment, "base": base, "changes": changes}
        learned = self._of_each_shard(tasks.learn_shard, setup=self._setup(), **shared)
        levels = tree(len(learned))
        sums = [self._submit(tasks.add_learned, self.mixing, *(learned[i] for i in group)) for group in levels[0]]
        for level in levels[1:]:
            sums = [self._submit(tasks.add_up, *(sums[i] for i in group)) for group in level]
        self._wait(learned, assignment.number)
        del learned
        return self._results(sums)[0]

    def _results(self, futures: list[Future], epoch: int | None = None) -> list[Any]:
        """Return the results in the order of the futures."""
        self._wait(futures, epoch)
        return self.client.gather(futures)

    def _wait(self, futures: list[Future], epoch: int | None) -> None:
        """Wait for tasks, and show how many are done; the first error is raised, and the other tasks are cancelled."""
        waiting = set(futures)
        try:
            while waiting:
                try:
                    for batch in as_completed(waiting, loop=self.client.loop, timeout=_PATIENCE).batches():
                        if wrong := [future for future in batch if future.status != "finished"]:
                            raise self._failure(wrong)
                        waiting.difference_update(batch)
                        if epoch is not None:
                            done, seconds = len(futures) - len(waiting), perf_counter() - self.began
                            self.watch(ShardProgress(epoch, done, len(futures), self.seen, self.mistakes, seconds))
                except TimeoutError:  # a task may take as long as it needs, if there is somebody to do it
                    self._await_workers()
        except BaseException:
            self.client.cancel(futures)
            raise

    def _failure(self, wrong: Sequence[Future]) -> BaseException:
        """The error of tasks: that of the data before that of a worker, which is repeated."""
        errors = [future.exception() if future.status == "error" else CancelledError(future.status) for future in wrong]
        return next((error for error in errors if not isinstance(error, _LOST)), errors[0])
