"""Fit a learner on a cluster: from whatever the data are to shards, from shards to the fitted learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import ArrayLike, NDArray

from rosenblatt.cluster import collections as dask_collections
from rosenblatt.cluster import files, sentences
from rosenblatt.cluster.connection import connect
from rosenblatt.cluster.dask_shards import DaskShards, Watch
from rosenblatt.cluster.linear_run import LinearRun, check_linear, labels_of_arrays, not_mixable
from rosenblatt.cluster.rows import MemoryShard
from rosenblatt.cluster.run import RunOptions, seed_of
from rosenblatt.data.formats import reading_for
from rosenblatt.engine.rows import Matrix
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.estimators import targets
from rosenblatt.estimators.inputs import refuse_non_finite
from rosenblatt.estimators.interface import Learner, clone
from rosenblatt.estimators.linear import Linear
from rosenblatt.estimators.scaling import warn_unscaled
from rosenblatt.structured.base import StructuredEstimator
from rosenblatt.workflow.training import Options

SHARDS = 8  # by default, of data in memory
_PATIENCE = 60  # seconds to wait for a worker that takes rows


def fit(
    estimator: Learner,
    data: Any,
    y: Any = None,
    *,
    client: Client | str | None = None,
    shards: int | None = None,
    mixing: str | None = None,
    sample_weight: Any = None,
    checkpoint: str | PathLike | None = None,
    resume: bool = False,
    stream: bool | None = None,
    watch: Watch = lambda progress: None,
) -> Any:
    """Fit an estimator on a Dask cluster, by iterative parameter mixing.

    Every shard of the data makes one epoch from the common weights, the results are mixed, and again, until one of the
    estimator's reasons to stop. The result depends on the data, the random seed and the number of shards; not on the number
    of workers, the order in which they finish, nor on which of them are lost.

    Parameters
    ----------
    estimator : estimator
        A perceptron or another learner that is a margin and a step, `SequenceTagger`, a parser or `StructuredPerceptron`.
        It stays as it is.
    data : arrays, Dask collection, sentences or paths
        The rows (arrays, sparse matrices and DataFrames, of Dask too; a bag of pairs of examples and labels), the sentences
        of a structured learner, or files that all workers can read: paths, patterns or URLs of fsspec.
    y : array, Dask collection, list or str, optional
        The labels. Of a DataFrame, and of files that are tables, the name of a column; of files of sentences the column of
        the tags ("upos").
    client : distributed.Client or str, optional
        A client, the address of a scheduler, or "local" for worker processes on this machine; by default the current Dask
        client if there is one, else "local".
    shards : int, optional
        The number of shards. By default it depends on the data alone: the partitions of a Dask collection, one for each
        128 MiB of files, at least 8; 8 for data in memory. With one shard a worker calls `estimator.fit`.
    mixing : {"uniform", "mistakes", "changed"}, optional
        How weights are mixed: with equal shares; in proportion to the updates of the shards; or each weight as the mean
        over the shards that have changed it. The first two have a theorem and converge on separable rows. The third has
        none, and is more accurate where features are rare, as the words of text are. By default "uniform" for rows, and
        "changed" for taggers, parsers and `StructuredPerceptron`.
    sample_weight : array or Dask array, optional
        The weight of each row.
    checkpoint : path, optional
        A file to which the training is saved after every epoch, atomically; `resume` continues from it.
    resume : bool
        Continue from the checkpoint. Data and parameters must be the same; `max_iter` may be larger.
    stream : bool, optional
        Read files again in each epoch instead of loading them; by default if they have more than 2 GiB of text.
    watch : callable, optional
        Called with a `ShardProgress` whenever a shard is done.

    Returns
    -------
    estimator
        A fitted copy. Its attribute `mixing_` is a `MixingReport`: what each shard did in each epoch. After a fit with one
        shard there is none.

    Raises
    ------
    InvalidData
        If examples cannot be used; path and line say where, in files.
    UnsupportedOperation
        If the estimator cannot be trained in shards.
    ClusterUnavailable
        If the scheduler or all workers are gone; the hint names the checkpoint.

    Examples
    --------
    Dask runs here in this process; `connect("local")` starts workers on this machine.

    >>> from distributed import Client
    >>> from rosenblatt import Perceptron, cluster
    >>> X = [[i % 5, i % 7, i % 11] for i in range(200)]
    >>> y = [2 * a + b > c for a, b, c in X]
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    ...     model = cluster.fit(Perceptron(), X, y, client=client, shards=4)
    >>> model.score(X, y), model.mixing_.shards
    (1.0, 4)
    """
    if mixing is None:
        mixing = "changed" if isinstance(estimator, StructuredEstimator) else "uniform"
    options = RunOptions(mixing, checkpoint, resume)
    options.check()
    check_shards(shards)
    with connect(client) as connection:
        job = Job(connection, shards, options, watch)
        if isinstance(estimator, StructuredEstimator):
            return sentences.fit_sentences(job, estimator, data, y)
        if not isinstance(estimator, Linear):
            raise not_mixable(estimator)
        if is_paths(data):
            return _fit_row_files(job, estimator, data, y, sample_weight, stream)
        if dask_collections.is_collection(data):
            return _fit_collection(job, estimator, data, y, sample_weight)
        if y is None:
            raise InvalidData("y must be given with rows in memory: a label for each row")
        return _fit_arrays(job, estimator, data, y, sample_weight)


def fit_sentence_files(
    estimator: StructuredEstimator, paths: list[str], column: str | None, names: Sequence[str] | None, *,
    client: Client | str | None = None, shards: int | None = None, mixing: str | None = None,
    checkpoint: str | PathLike | None = None, resume: bool = False, watch: Watch = lambda progress: None,
) -> Any:  # fmt: skip
    """Return a tagger or parser fitted to files, whose columns have these names where they are not CoNLL-U."""
    options = RunOptions("changed" if mixing is None else mixing, checkpoint, resume)
    options.check()
    with connect(client) as connection:
        return sentences.fit_sentences(Job(connection, shards, options, watch), estimator, paths, column, names)


class Job:
    """A fit that was asked for: where, in how many shards, and how they are mixed."""

    def __init__(self, client: Client, shards: int | None, options: RunOptions, watch: Watch):
        self.client, self.shards, self.options, self.watch = client, shards, options, watch

    def alone(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function returns on a worker, with arguments that are sent there first."""
        return self.client.submit(function, *self.client.scatter(list(args), hash=False), pure=False).result()

    def dask_shards(self, loads: Sequence[Callable[[Client], Future]]) -> DaskShards:
        """Return the shards that these functions load."""
        return DaskShards(self.client, loads, self.watch)


def check_shards(shards: int | None) -> None:
    """Refuse what is not a number of shards."""
    if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or shards < 1):
        raise InvalidParameter("shards", shards, "a whole number ≥ 1, or None")


def is_paths(data: object) -> bool:
    """Return whether data are the names of files."""
    several = data if isinstance(data, list | tuple) else [data]
    return bool(several) and all(isinstance(one, str | PathLike) for one in several)


def _fit_arrays(job: Job, estimator: Linear, X: Any, y: Any, weight: ArrayLike | None) -> Any:
    """The estimator fitted to rows in memory, which are dealt to the shards one by one."""
    learner: Any = clone(estimator)
    count = SHARDS if job.shards is None else job.shards
    if count == 1:
        return job.alone(fit_alone, learner, X, y, weight)
    check_linear(learner)
    learner._plan()
    X, y = learner._read(X, y, reset=True)
    refuse_non_finite(learner, X)
    weights = targets.sample_weights(weight, len(y))
    names = tuple(learner.feature_names_in_) if hasattr(learner, "feature_names_in_") else None
    parts = [deal(X, y, weights, names, i, count) for i in range(min(count, len(y)))]
    fitted = _fit_rows(job, learner, [_sends_rows(part) for part in parts])
    if fitted._needs_scaling:
        warn_unscaled(fitted, X, stacklevel=4)
    return fitted


def _sends_rows(shard: MemoryShard) -> Callable[[Client], Future]:
    return lambda client: client.scatter(shard, hash=False, timeout=_PATIENCE)


def deal(X: Matrix, y: NDArray, weight: NDArray | None, names: tuple[str, ...] | None, i: int, shards: int) -> MemoryShard:
    """Return shard i of so many: each gets one row in turn, so that sorted rows do no harm."""
    own = slice(i, None, shards)
    return MemoryShard(X[own], y[own], None if weight is None else weight[own], range(i, len(y), shards), names)


def _fit_collection(job: Job, estimator: Linear, data: Any, y: Any, weight: Any) -> Any:
    """The estimator fitted to a Dask collection, whose partitions are dealt to the shards."""
    learner: Any = clone(estimator)
    parts = dask_collections.partitions(data, y, weight, job.shards)
    count = len(parts) if job.shards is None else job.shards
    if count == 1:
        load = dask_collections.loads_of(job.client, parts, 1, dask_collections.load_rows, learner)[0](job.client)
        return job.client.submit(_fit_shard, learner, load, pure=False).result()
    check_linear(learner)
    learner._plan()
    return _fit_rows(job, learner, dask_collections.loads_of(job.client, parts, count, dask_collections.load_rows, learner))


def _fit_rows(job: Job, learner: Linear, loads: Sequence[Callable[[Client], Future]]) -> Any:
    """The learner fitted to shards of rows."""
    run = LinearRun(learner, job.dask_shards(loads), job.options, seed_of(learner), learner.order == "shuffle")
    summaries = run.agree()
    names = {summary.names for summary in summaries if summary.rows}
    if len(names) > 1:
        raise InvalidData("the partitions have columns of different names")
    finished = run.fit(summaries, labels_of_arrays, lambda _: learner._limits(learner._plan(), None))
    fitted: Any = run.learner
    if names and (own := names.pop()) is not None:
        fitted.feature_names_in_ = np.array(own, object)
    fitted.mixing_ = finished.report
    fitted._tell(finished.reason)
    return fitted


def _fit_row_files(job: Job, estimator: Linear, paths: Any, target: str | None, weight: object, stream: bool | None) -> Any:
    """The estimator fitted to files; its `max_iter` is the number of passes, if it is not the default."""
    if weight is not None:
        raise InvalidParameter("sample_weight", weight, "None with files, which hold the weights of their rows")
    passes = None if estimator.max_iter == type(estimator)().max_iter else estimator.max_iter
    options = Options(passes, estimator.order, seed_of(estimator), stream)
    reading = reading_for(files.shared_paths(paths), **({} if target is None else {"target": target}))
    model = files.train(
        paths, reading, estimator, options, client=job.client, shards=job.shards, mixing=job.options.mixing,
        checkpoint=job.options.checkpoint, resume=job.options.resume, watch=job.watch,
    )  # fmt: skip
    return model.learner


def fit_alone(learner: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit as usual: one shard is ordinary training, wherever it runs."""
    return learner.fit(X, y) if weight is None else learner.fit(X, y, sample_weight=weight)


def _fit_shard(learner: Any, shard: MemoryShard) -> Any:
    fitted = fit_alone(learner, shard.X, shard.y, shard.weight)
    if shard.names is not None:
        fitted.feature_names_in_ = np.array(shard.names, object)
    return fitted
