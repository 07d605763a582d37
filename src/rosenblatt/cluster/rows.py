"""Shards of rows: what a worker has of the data, and one epoch of a linear learner on it.

An epoch of a shard is a function of the common model, the rows, the number of the epoch and the number of the shard, and of
nothing else. So it can be repeated anywhere, and gives the same bits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.cluster.sums import NO_FACTS, Learned, ReadFacts
from rosenblatt.data.opening import parse_threads
from rosenblatt.data.pieces import FilePiece
from rosenblatt.data.reading import Batch, Chunk, Reading
from rosenblatt.data.svmlight import LabelError
from rosenblatt.engine.mixing import ShardReport, WeightChange
from rosenblatt.engine.model import LinearModel
from rosenblatt.engine.rows import Examples, Matrix, Rows, as_rows, is_sparse
from rosenblatt.engine.train import NumericFailure, learn_once
from rosenblatt.engine.weights import Weights
from rosenblatt.errors import InvalidData, NumericOverflow
from rosenblatt.estimators import targets
from rosenblatt.estimators.linear import Linear
from rosenblatt.workflow.model import match_columns

_GROWTH = 1.5  # of the weights, where a row has more columns than there are


class RowSummary(NamedTuple):
    """What a shard says of its rows before training, so that all shards can agree on classes and columns."""

    rows: int  # that count: those of weight 0 do not
    features: int
    dtype: np.dtype
    sparse: bool
    labels: NDArray  # (classes,) the different labels of the rows that count
    counts: NDArray  # (classes,) int64: the rows of each
    digest: str  # XXH64 of the rows and labels, to recognise the same data
    names: tuple[str, ...] | None = None  # of the columns, where they have names
    weighted: bool = False  # whether rows have weights other than 1
    whole: bool = True  # whether all rows were read, or only the first ones of a stream


class RowSetup(NamedTuple):
    """What all shards of a run have in common."""

    learner: Linear  # with the classes 0, 1, …; its weights are sent apart
    number: Callable[[NDArray], NDArray]  # the class number of each label, −1 for one that is not known
    seed: int
    shuffle: bool

    def begin(self, model: LinearModel) -> Linear:
        """Return a learner that goes on from a model, and leaves the model as it is."""
        learner = copy.copy(self.learner)
        learner._model = model.copy()
        learner.n_features_in_ = len(model.weights.w) - 1
        learner.n_mistakes_ = learner.n_updates_ = learner.n_seen_ = 0
        learner.class_count_ = np.zeros_like(learner.class_count_)
        return learner

    def end(self, learner: Linear, model: LinearModel, began: float, facts: ReadFacts) -> Learned:
        """Return what a learner did since it began from a model."""
        change: WeightChange = learner._model.change_since(model)
        done = learner.n_seen_, learner.n_mistakes_, learner.n_updates_
        report = ShardReport(*done, perf_counter() - began, change.nbytes, learner.n_updates_ == 0)
        return Learned(report, change, facts, learner.class_count_)


class PreparedRows(NamedTuple):
    """The rows of a shard as a learner takes them."""

    X: Matrix
    examples: Examples
    class_count: NDArray  # (classes,) int64


class MemoryShard:
    """Rows in the memory of a worker, visited in a new order in each epoch.

    Parameters
    ----------
    X : array or CSR matrix
        The rows.
    y : array
        Their labels.
    weight : array, optional
        Their weights; rows of weight 0 are left out.
    place : range, optional
        Which rows of the data these are, for messages.
    names : tuple of str, optional
        The names of the columns.
    facts : ReadFacts
        What was learned about files when they were read.
    """

    def __init__(
        self,
        X: Matrix,
        y: NDArray,
        weight: NDArray | None = None,
        place: range | None = None,
        names: tuple[str, ...] | None = None,
        facts: ReadFacts = NO_FACTS,
    ):
        self.X, self.y, self.weight, self.place, self.names, self.facts = X, y, weight, place, names, facts
        self.live = targets.live_rows(weight, len(y))
        self._prepared: tuple[RowSetup, PreparedRows] | None = None  # for the setup of the run

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_prepared": None}

    def summary(self) -> RowSummary:
        """Return what the rows are."""
        labels, counts = np.unique(self.y[self.live], return_counts=True)
        rows: Rows = as_rows(self.X)
        kind = (self.X.shape[1], rows.values.dtype, is_sparse(rows))
        weighted = self.weight is not None and bool((self.weight[self.live] != 1).any())
        digest = digest_of(self.X, self.y, self.weight)
        return RowSummary(len(self.live), *kind, labels, counts, digest, self.names, weighted)

    def learn(self, setup: RowSetup, model: LinearModel, number: int, shard: int) -> Learned:
        """Return what the epoch with this number comes to, begun from the weights of a model that stays as it is."""
        began = perf_counter()
        learner, order = setup.begin(model), self.live
        if setup.shuffle:
            order = np.random.default_rng([setup.seed, number, shard]).permutation(order)
        if len(order):
            try:
                self._learn(setup, learner, order)
            except NumericFailure:
                raise self._locate(setup, model, order, shard) from None
        return setup.end(learner, model, began, self.facts)

    def _learn(self, setup: RowSetup, learner: Linear, order: NDArray) -> None:
        """Visit the rows of an order once. The learner is a copy, so that nothing need be kept to undo an error."""
        if self._prepared is None or self._prepared[0] is not setup:
            self._prepared = setup, self._prepare(setup, learner)
        prepared = self._prepared[1]
        plan = learner._plan_to_stream()
        learner._model.prepare(prepared.examples.rows)
        trainer = learner._make_trainer(
            plan, learner._model, prepared.X, prepared.examples, plan.visits_in_order(order)
        )  # fmt: skip
        done = learn_once(trainer, order)
        learner._store(learner._model, prepared.X, trainer)
        learner.n_mistakes_, learner.n_updates_, learner.n_seen_ = done.mistakes, done.updates, len(order)
        learner.class_count_ = prepared.class_count

    def _prepare(self, setup: RowSetup, learner: Linear) -> PreparedRows:
        """The rows as the learner takes them; the same in all epochs."""
        X, labels = self._examples(setup, learner.n_features_in_)
        by_class = learner._class_weights(learner.classes_, labels, self.live)
        weight = targets.pair_weights(self.weight, by_class, len(labels))
        examples = Examples(as_rows(X), labels, weight, learner._plan_to_stream().constant)
        return PreparedRows(X, examples, np.bincount(labels[self.live], minlength=len(learner.classes_)))

    def errors(self, setup: RowSetup, w: NDArray) -> int:
        """Return how many rows the weights w do not predict."""
        plan, none = setup.learner._plan(), np.zeros(0, np.int64)
        model = LinearModel(plan.problem(len(setup.learner.classes_)), Weights(w, None, none, none), plan.constant, "last")
        X, labels = self._examples(setup, len(w) - 1)
        return model.errors(X[self.live], labels[self.live], w)

    def _examples(self, setup: RowSetup, features: int) -> tuple[Matrix, NDArray]:
        """The rows with so many columns, and the class number of each."""
        numbers = setup.number(self.y)
        if (numbers[self.live] < 0).any():
            raise InvalidData(f"the label {self.y[self.live][numbers[self.live] < 0][0]!r} is not one of the classes")
        return match_columns(self.X, features)[0], numbers

    def _locate(self, setup: RowSetup, model: LinearModel, order: NDArray, shard: int) -> NumericOverflow:
        """The error of an epoch that failed, which is repeated row by row to find the row."""
        learner = setup.begin(model)
        row = None
        try:
            learner._partial_fit_numbers(
                *self._examples(setup, learner.n_features_in_), len(learner.classes_), self.weight, order
            )
        except NumericOverflow as error:
            row = None if error.row is None or self.place is None else self.place[error.row]
        where = f"row {row}" if row is not None else f"a row of shard {shard}"
        return NumericOverflow(
            f"weights or scores overflowed when {where} was learned: its numbers, or those before it, are too large",
            hint="scale them down",
            row=row,
        )


class StreamShard(NamedTuple):
    """Pieces of files that are read again in each epoch, in the order of the files."""

    reading: Reading
    pieces: tuple[FilePiece, ...]
    on_error: str = "error"

    def summary(self) -> RowSummary:
        """Return what the first rows are."""
        try:
            return self._first_rows()
        except LabelError:  # the first label is a number, and another one is not
            return self._with_all_labels().summary()

    def _first_rows(self) -> RowSummary:
        for chunk in self._chunks(_Notes()):
            labels, counts = np.unique(_labels(chunk), return_counts=True)
            kind = (chunk.X.shape[1], chunk.X.dtype, not isinstance(chunk.X, np.ndarray))
            digest, weighted = digest_of(chunk.X, _labels(chunk), chunk.weight), chunk.weight is not None
            return RowSummary(chunk.rows, *kind, labels, counts, digest, weighted=weighted, whole=False)
        return RowSummary(0, 0, np.dtype(np.float64), True, np.empty(0), np.empty(0, np.int64), "", whole=False)

    def load(self) -> MemoryShard:
        """Return the rows of all pieces in memory."""
        notes = _Notes()
        try:
            raw = list(self._batches(notes))
        except LabelError:  # the first labels are numbers, and one that came later is not
            return self._with_all_labels().load()
        if not raw:
            return MemoryShard(sp.csr_matrix((0, 0)), np.empty(0))
        chunk = self.reading.chunk(self.reading.concatenate(raw))
        facts = ReadFacts(chunk.X.shape[1], chunk.smallest, notes.skipped)
        return MemoryShard(chunk.X, _labels(chunk), chunk.weight, facts=facts)

    def learn(self, setup: RowSetup, model: LinearModel, number: int, shard: int) -> Learned:
        """Return what an epoch comes to, begun from the weights of a model that stays as it is."""
        began = perf_counter()
        learner, notes = setup.begin(model), _Notes()
        try:
            is_known = self._learn(setup, learner, notes)
        except LabelError:
            is_known = False
        if not is_known:
            labels = self.reading.labels(self.pieces, on_error=self.on_error)[1]
            return Learned(ShardReport(0, 0, 0, 0.0, 0, False), None, new_labels=labels)
        if learner.n_features_in_ > (needed := max(notes.width, len(model.weights.w) - 1)):
            learner.widen(needed)
        return setup.end(learner, model, began, ReadFacts(notes.width, notes.smallest, notes.skipped))

    def _learn(self, setup: RowSetup, learner: Linear, notes: _Notes) -> bool:
        """Learn all rows; whether all labels were known."""
        classes = len(learner.classes_)
        for chunk in self._chunks(notes):
            numbers = setup.number(_labels(chunk))
            live = targets.live_rows(chunk.weight, chunk.rows)
            if (numbers[live] < 0).any():
                return False
            if notes.width > learner.n_features_in_:
                learner.widen(max(notes.width, int(_GROWTH * learner.n_features_in_)))
            X = match_columns(chunk.X, learner.n_features_in_)[0]
            if len(live):
                learner._partial_fit_numbers(X, numbers, classes, chunk.weight, live)
        return True

    def _with_all_labels(self) -> StreamShard:
        return self._replace(reading=self.reading.with_labels(self.reading.labels(self.pieces, on_error=self.on_error)[1]))

    def _chunks(self, notes: _Notes) -> Iterator[Chunk]:
        """Yield the rows, as many at a time as a batch has."""
        for batch in self._batches(notes):
            chunk = self.reading.chunk(batch)
            notes.see(chunk)
            if chunk.rows:
                yield chunk

    def _batches(self, notes: _Notes) -> Iterator[Batch]:
        """Yield batches, parsed by the thread of the task: a worker has as many tasks as it has threads."""
        with parse_threads(1):
            batches = self.reading.batches(self.pieces, on_error=self.on_error)
        try:
            yield from batches
        finally:
            notes.skipped = batches.skipped
            batches.close()


def digest_of(X: Matrix, y: NDArray, weight: NDArray | None) -> str:
    """Return the XXH64 of rows, labels and weights."""
    digest = xxh64()
    values = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    for array in (*values, y, weight):
        if array is not None:
            whole = np.ascontiguousarray(array)
            digest.update(repr(whole.tolist()).encode() if whole.dtype.hasobject else whole.view(np.uint8).data)
    return digest.hexdigest()


class _Notes:
    """What is noticed while files are read."""

    def __init__(self) -> None:
        self.smallest: int | None = None
        self.skipped = self.width = 0

    def see(self, chunk: Chunk) -> None:
        """Note the columns of some rows."""
        self.width = max(self.width, chunk.X.shape[1])
        if chunk.smallest is not None:
            self.smallest = chunk.smallest if self.smallest is None else min(self.smallest, chunk.smallest)


def _labels(chunk: Chunk) -> NDArray:
    if chunk.y is None:
        raise InvalidData("the rows have no labels to learn")
    return chunk.y
