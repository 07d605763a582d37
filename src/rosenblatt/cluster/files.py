"""Train on files with a cluster: workers read the pieces of the files themselves.

A piece ends where a record does, and the pieces are dealt to the shards in turn, so that every shard has some of each part
of the files. How the files are cut depends on the files and the number of shards alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from rosenblatt.cluster import tasks
from rosenblatt.cluster.connection import connect
from rosenblatt.cluster.dask_shards import DaskShards, Watch, run_on_worker
from rosenblatt.cluster.linear_run import Agreement, LinearRun, check_linear, labels_of_files, not_mixable
from rosenblatt.cluster.rows import StreamShard
from rosenblatt.cluster.run import Finished, RunOptions
from rosenblatt.data.opening import FilePiece, rereadable, size_of
from rosenblatt.data.pieces import cut_files
from rosenblatt.data.reading import Reading
from rosenblatt.engine.train import Limits
from rosenblatt.errors import IncompatibleParameters, InvalidData, InvalidParameter
from rosenblatt.estimators.interface import Learner
from rosenblatt.estimators.linear import Linear
from rosenblatt.estimators.plan import PATIENCE
from rosenblatt.workflow.learners import default_learner, make_learner
from rosenblatt.workflow.model import FileModel, Paths, file_list
from rosenblatt.workflow.training import (
    DEFAULTS,
    LOADED_PASSES,
    STREAMED_PASSES,
    Options,
    check_labels,
    copy_with_seed,
    file_sizes,
    uses_stream,
)
from rosenblatt.workflow.training import train as train_alone

SHARDS = 8  # by default, the least
_SHARD_BYTES = 1 << 27  # of files, by default, where that makes more shards
_PIECES = 4  # of a shard, where the files are large enough
_PIECE_BYTES = 1 << 26  # the most that a piece has
_MOST_PASSES = 1000


def train(
    paths: Paths,
    reading: Reading,
    learner: Learner | None = None,
    options: Options = DEFAULTS,
    *,
    client: Client | str | None = None,
    shards: int | None = None,
    mixing: str = "uniform",
    checkpoint: str | PathLike | None = None,
    resume: bool = False,
    watch: Watch = lambda progress: None,
) -> FileModel:
    """Train a linear model from files on a cluster, by iterative parameter mixing.

    The model depends on the files, the options and the number of shards; not on the number of workers, nor on which of them
    are lost on the way.

    Parameters
    ----------
    paths : path or list of paths
        Files, folders or patterns that all workers can read; with a URL (``s3://…``) they are read by fsspec.
    reading : Reading
        How files become rows; see `rosenblatt.workflow.reading_for`.
    learner : estimator, optional
        A perceptron or another learner that is a margin and a step; by default an averaged perceptron. It stays as it is.
    options : Options, optional
        Passes, order, random seed, streaming.
    client : distributed.Client, str, optional
        A client, the address of a scheduler, or "local" for worker processes on this machine; by default the current Dask
        client if there is one, else "local".
    shards : int, optional
        The number of shards; by default one for each 128 MiB of files, at least 8. One shard is ordinary training, by one
        worker.
    mixing : {"uniform", "mistakes", "changed"}
        How the weights of shards are mixed: with equal shares, in proportion to their updates, or each weight as the mean
        over the shards that have changed it.
    checkpoint : path, optional
        A file to which the training is saved after every epoch, atomically.
    resume : bool
        Continue from the checkpoint; files and options must be the same, but there may be more passes.
    watch : callable, optional
        Called with a `ShardProgress` whenever a shard is done.

    Returns
    -------
    FileModel
        The model; ``model.learner.mixing_`` is the report of the shards.

    Raises
    ------
    InvalidData
        If a row cannot be read: path and line say where.
    UnsupportedOperation
        If the learner cannot be mixed.
    ClusterUnavailable
        If the scheduler or all workers are gone; the hint names the checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from distributed import Client
    >>> from rosenblatt.workflow import reading_for
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client,
    ... ):
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\nspam 1:1\\nham 2:1 3:1\\n" * 50)
    ...     model = train(path, reading_for([str(path)]), client=client, shards=2)
    ...     model.predict(path)[:4].tolist(), model.learner.mixing_.shards
    (['spam', 'ham', 'spam', 'ham'], 2)
    """
    began = perf_counter()
    files = shared_paths(paths)
    learner = make_learner(*default_learner(options.task)) if learner is None else learner
    _check(files, learner, options)
    run_options = RunOptions(mixing, checkpoint, resume)
    run_options.check()
    stream = uses_stream(files, reading, options)
    with connect(client) as connection:
        work = FileWork(connection, files, reading, options, stream)
        if shards != 1:
            work.cut(shards)
        if len(work.shares) <= 1:  # one shard, or one piece, which cannot be cut
            return run_on_worker(connection, train_alone, files, reading, learner, options)
        fresh = copy_with_seed(learner, options.seed)
        return work.train(fresh, run_options, watch, began)


def _check(files: Sequence[str], learner: Learner, options: Options) -> None:
    """Refuse what training in shards cannot do."""
    if not rereadable(files):
        raise InvalidData("a pipe can be read only once, and by one process; a cluster needs files", hint="name a file")
    if not isinstance(learner, Linear):
        raise not_mixable(learner)
    check_linear(learner)
    if options.holdout:
        raise IncompatibleParameters(
            ("holdout", options.holdout), ("cluster", True), "no rows are held out of shards",
            hint="keep rows in a file of their own, and evaluate the model on it",
        )  # fmt: skip


def shared_paths(paths: Paths) -> list[str]:
    """Return the files that paths name, by absolute paths: workers need not run in the folder of this process."""
    return [path if "://" in path else os.path.abspath(path) for path in file_list(paths)]


def shards_of_bytes(size: int) -> int:
    """Return the number of shards for so many bytes of files."""
    return max(SHARDS, -(-size // _SHARD_BYTES))


def piece_size(size: int, shards: int) -> int:
    """Return the bytes of a piece, for so many bytes of files and so many shards."""
    return min(max(-(-size // (shards * _PIECES)), 1), _PIECE_BYTES)


def deal_pieces(pieces: Sequence[FilePiece], shards: int | None, wanted: int | None) -> list[tuple[FilePiece, ...]]:
    """Return the pieces of each shard, in turn; fewer shards where there are fewer pieces and no number was asked for."""
    if not pieces:
        raise InvalidData("there are no rows to learn from")
    if wanted is not None and wanted > len(pieces):
        names = ", ".join(sorted({piece.path for piece in pieces})[:3])
        raise InvalidParameter(
            "shards", wanted, f"at most {len(pieces)}: the files ({names}) cannot be cut into more pieces",
            hint="compressed files are read as a whole, and tables by their row groups",
        )  # fmt: skip
    count = min(shards or len(pieces), len(pieces))
    return [tuple(pieces[number::count]) for number in range(count)]


class FileWork:
    """Files on their way to a model."""

    def __init__(self, client: Client, files: list[str], reading: Reading, options: Options, stream: bool):
        self.client, self.files, self.reading, self.options, self.stream = client, files, reading, options, stream
        self.shares: list[tuple[FilePiece, ...]] = []

    def cut(self, shards: int | None) -> None:
        """Learn what the reading must know, and cut the files; a worker does both, for it can read them."""
        on_error = self.options.on_error
        if self.reading.needs_fit:
            self.reading = run_on_worker(self.client, _fit_reading, self.reading, self.files, on_error)
        size = size_of(self.files) or 0
        count = shards_of_bytes(size) if shards is None else shards
        pieces = run_on_worker(self.client, cut_files, self.files, self.reading, piece_size(size, count))
        self.shares = deal_pieces(pieces, count, shards)

    def train(self, learner: Linear, run_options: RunOptions, watch: Watch, began: float) -> FileModel:
        """Train and return the model."""
        shards = DaskShards(self.client, self._loads(), watch)
        run = LinearRun(learner, shards, run_options, self.options.seed, shuffle=self._shuffles())

        def renew(labels: NDArray) -> None:
            """Read labels as words, in all shards, where some are."""
            self.reading = self.reading.with_labels(labels.astype(object) if labels.dtype.kind in "UO" else labels)
            shards.replace(self._loads())

        summaries = run.agree()
        if len({summary.labels.dtype.kind for summary in summaries if summary.rows}) > 1:
            renew(labels_of_files([summary.labels for summary in summaries])[0])
            summaries = run.agree()
        labels = [summary.labels for summary in summaries if summary.rows]
        if labels:
            check_labels(np.concatenate(labels), learner, self.options, self.files)
        finished = run.fit(summaries, labels_of_files, self._limits, sum_class_counts=True, renew=renew)
        run.learner.mixing_ = finished.report
        return self._model(run, finished, began)

    def _shuffles(self) -> bool:
        return not self.stream and self.options.order == "shuffle"

    def _loads(self) -> list[Callable[[Client], Future]]:
        def make(pieces: tuple[FilePiece, ...]) -> Callable[[Client], Future]:
            shard = StreamShard(self.reading, pieces, self.options.on_error)
            function: Any = tasks.itself if self.stream else tasks.load_shard
            return lambda client: client.submit(function, shard, pure=False)

        return [make(pieces) for pieces in self.shares]

    def _limits(self, agreement: Agreement) -> Limits:
        """When to stop: after the passes asked for, or without an update."""
        default = STREAMED_PASSES
        if not self.stream:
            default = max(LOADED_PASSES, min(PATIENCE // max(agreement.examples, 1), _MOST_PASSES))
        return Limits(self.options.passes or default)

    def _model(self, run: LinearRun, finished: Finished, began: float) -> FileModel:
        """The model of a training that is over, with its facts as `workflow.train` writes them."""
        learner, facts = run.learner, run.facts
        width = max(facts.width, learner.n_features_in_) if self.reading.features is None else self.reading.features
        has_index_0 = facts.smallest == 0 if self.reading.format == "svmlight" and self.reading.features is None else None
        history = [
            {"rows": epoch.seen, "mistakes": epoch.mistakes, "updates": epoch.updates, "error": None}
            for epoch in finished.history
        ]
        labels = learner.classes_
        reading = self.reading.with_labels(labels.astype(np.float64 if labels.dtype.kind in "iuf" else object))
        training = {
            "files": file_sizes(self.files),
            "skipped": facts.skipped,
            "stopped": "passes" if finished.reason == "max_iter" else finished.reason,
            "streamed": self.stream,
            "passes": len(finished.history),
            "order": "shuffle" if self._shuffles() else "cyclic",
            "seed": self.options.seed,
            "holdout": 0.0,
            "pass": len(finished.history) + 1,
            "row": 0,
            "width": width,
            "features": width - int(width > 0 and has_index_0 is False),
            "mistakes": learner.n_mistakes_,
            "mistakes_in_pass": 0,
            "updates_in_pass": 0,
            "history": history,
            "cluster": {"shards": finished.report.shards, "mixing": finished.report.mixing},
        }
        return FileModel(reading, learner, training, seconds=round(perf_counter() - began, 3))


def _fit_reading(reading: Reading, files: Sequence[str], on_error: str) -> Reading:
    """Return the reading fitted to all files, on the worker that this runs on."""
    return reading.fit(reading.batches(files, on_error=on_error))
