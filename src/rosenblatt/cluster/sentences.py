"""Taggers, parsers and structured perceptrons in shards of sentences."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from distributed import Client, Future

from rosenblatt.cluster import collections as dask_collections
from rosenblatt.cluster.dask_shards import run_on_worker
from rosenblatt.cluster.files import deal_pieces, piece_size, shards_of_bytes, shared_paths
from rosenblatt.cluster.run import Run, seed_of, set_history
from rosenblatt.cluster.sums import Learned
from rosenblatt.data import sentences as sentence_files
from rosenblatt.data.opening import FilePiece, size_of
from rosenblatt.data.pieces import cut_sentences
from rosenblatt.errors import InvalidData, InvalidParameter, RosenblattError, UnsupportedOperation
from rosenblatt.estimators.interface import clone
from rosenblatt.structured.base import StructuredEstimator, StructuredModel, check_pair, fingerprint
from rosenblatt.structured.parser import DependencyParser
from rosenblatt.structured.shards import SentenceShard, common_model
from rosenblatt.structured.tags.tagger import SequenceTagger

if TYPE_CHECKING:
    from rosenblatt.cluster.fitting import Job

SHARDS = 8  # by default, of sentences in memory


class SentenceSummary(NamedTuple):
    """What a shard says of its sentences before training."""

    rows: int
    digest: str
    names: object  # what the common model must know


class SentenceSetup(NamedTuple):
    """What all shards of a run have in common."""

    estimator: StructuredEstimator
    seed: int


class LoadedSentences:
    """Sentences in the memory of a worker, encoded once."""

    def __init__(self, estimator: StructuredEstimator, X: Sequence, y: Sequence):
        self.shard = SentenceShard(estimator, X, y)
        self.digest = fingerprint(X, y)

    def summary(self) -> SentenceSummary:
        """Return what the sentences are."""
        return SentenceSummary(self.shard.size, self.digest, self.shard.names())

    def learn(self, setup: SentenceSetup, model: StructuredModel, number: int, shard: int) -> Learned:
        """Return what an epoch comes to, begun from the weights of a model that stays as it is."""
        return Learned(*self.shard.learn(setup.estimator, model, number, shard, setup.seed))


class Columns(NamedTuple):
    """Which columns of files are read: those of tokens and the one of the tags, or the tree."""

    fields: tuple[str, ...]
    tags: str | None  # None: heads and relations
    names: tuple[str, ...] | None = None  # of the columns of a file that is not CoNLL-U

    def read(self, source: Any) -> tuple[list, list]:
        """Return the sentences of a file or a piece of one, and their answers."""
        X: list[Any] = []
        y: list[Any] = []
        for sentence in sentence_files.read(source, self.names):
            wanted = self.fields if self.tags is None else (*self.fields, self.tags)
            if missing := [name for name in wanted if name not in sentence.columns]:
                raise InvalidData(
                    f"there is no column {missing[0]}; the columns are {', '.join(sentence.columns)}",
                    path=sentence.path,
                    line=sentence.line,
                )
            X.append(sentence.forms if len(self.fields) == 1 else sentence.tokens(*self.fields))
            y.append(sentence.tree() if self.tags is None else sentence.column(self.tags))
        return X, y


def fit_sentences(job: Job, estimator: StructuredEstimator, data: Any, y: Any, names: Sequence[str] | None = None) -> Any:
    """Return a structured learner fitted to sentences in memory, to a bag of pairs or to files."""
    from rosenblatt.cluster.fitting import fit_alone, is_paths

    learner: Any = clone(estimator)
    if estimator.early_stopping:
        raise UnsupportedOperation(
            "early_stopping=True cannot be used with shards, none of which sees all sentences",
            settings={"early_stopping": False},
        )
    loads: list[Callable[[Client], Future]]
    if is_paths(data):
        columns = columns_of(learner, y, names)
        if isinstance(learner, SequenceTagger):
            learner.column = columns.tags
        files = shared_paths(data)
        size = size_of(files) or 0
        count = shards_of_bytes(size) if job.shards is None else job.shards
        shares: list[tuple[FilePiece, ...]] = []
        if count > 1:
            pieces = run_on_worker(job.client, cut_sentences, files, piece_size(size, count), columns.names)
            shares = deal_pieces(pieces, count, job.shards)
        if len(shares) <= 1:  # one shard, or one piece, which cannot be cut
            return run_on_worker(job.client, _fit_sentence_files, learner, columns, files)
        loads = [_reads(learner, columns, own) for own in shares]
    elif dask_collections.is_collection(data):
        parts = dask_collections.partitions(data, None, None, job.shards)
        count = len(parts) if job.shards is None else job.shards
        if count == 1:
            load = dask_collections.loads_of(job.client, parts, 1, _pairs, learner)[0](job.client)
            return job.client.submit(_fit_pairs, learner, load, pure=False).result()
        loads = dask_collections.loads_of(job.client, parts, count, _load_pairs, learner)
    else:
        X, y = check_pair(data, y)
        if len(X) == 0:
            raise InvalidData(f"there is no {learner._part} to learn from")
        count = min(SHARDS if job.shards is None else job.shards, len(X))
        if count == 1:
            return job.alone(fit_alone, learner, X, y, None)
        loads = [_sends_sentences(learner, X[i::count], y[i::count]) for i in range(count)]
    return _run(job, learner, loads)


def _run(job: Job, learner: Any, loads: Sequence[Callable[[Client], Future]]) -> Any:
    """The learner fitted to shards of sentences."""
    seed = seed_of(learner)
    plan = learner._plan()
    run = Run(learner, job.dask_shards(loads), job.options, seed)
    summaries = run.agree()
    learner = run.learner
    if run.found is None:
        learner._model = common_model(learner, [summary.names for summary in summaries])
    bare = copy.copy(learner)
    bare.__dict__.pop("_model")
    bare.history_ = []
    finished = run.train(learner._model, SentenceSetup(bare, seed), learner._limits(plan, None))
    set_history(learner, finished.history, finished.reason)
    learner.mixing_ = finished.report
    if finished.reason == "interrupted":
        raise KeyboardInterrupt
    return learner


def columns_of(learner: StructuredEstimator, tags: object, names: Sequence[str] | None) -> Columns:
    """Return which columns of files a learner reads."""
    if isinstance(learner, SequenceTagger):
        if not isinstance(tags, str | None):
            raise InvalidParameter("y", tags, "the name of the column with the tags, such as 'upos'")
        column = tags or (names[-1] if names else "upos")
        return Columns(tuple(learner.fields), column, None if names is None else tuple(names))
    if isinstance(learner, DependencyParser):
        if tags is not None:
            raise InvalidParameter("y", tags, "None with files: a parser learns heads and relations")
        return Columns(tuple(learner.fields), None)
    raise UnsupportedOperation(
        f"{type(learner).__name__} cannot read files; it learns from examples in memory or from a bag of pairs"
    )


def _sends_sentences(learner: StructuredEstimator, X: Sequence, y: Sequence) -> Callable[[Client], Future]:
    """What sends sentences to a worker, which encodes them."""

    def send(client: Client) -> Future:
        return client.submit(LoadedSentences, learner, *client.scatter([X, y], hash=False), pure=False)

    return send


def _reads(learner: StructuredEstimator, columns: Columns, pieces: Sequence[FilePiece]) -> Callable[[Client], Future]:
    """What has a worker read pieces of files."""
    return lambda client: client.submit(_load_pieces, learner, columns, tuple(pieces), pure=False)


def _load_pieces(learner: StructuredEstimator, columns: Columns, pieces: Sequence[FilePiece]) -> LoadedSentences:
    X, y = _read_all(columns, pieces)
    try:
        return LoadedSentences(learner, X, y)
    except RosenblattError as error:
        if error.path is None:
            error.path = ", ".join(dict.fromkeys(piece.path for piece in pieces))
        raise


def _read_all(columns: Columns, sources: Sequence[Any]) -> tuple[list, list]:
    parts = [columns.read(source) for source in sources]
    return [x for X, _ in parts for x in X], [answer for _, y in parts for answer in y]


def _fit_sentence_files(learner: Any, columns: Columns, files: Sequence[str]) -> Any:
    return learner.fit(*_read_all(columns, files))


def _pairs(learner: StructuredEstimator, parts: Sequence[Any]) -> tuple[list, list]:
    pairs = [pair for part in parts for pair in part.X]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _load_pairs(learner: StructuredEstimator, parts: Sequence[Any]) -> LoadedSentences:
    return LoadedSentences(learner, *_pairs(learner, parts))


def _fit_pairs(learner: Any, pairs: tuple[list, list]) -> Any:
    return learner.fit(*pairs)
