"""One thread writes the log and teaches the models. Requests that wait together share a commit, and are answered after it.

Each model has two learners. One is published: predictions read it, and nobody changes it. The other takes the new entries,
and is published in its place when they are committed and learned; then the first takes the same entries, and is ready for
the next ones. So a prediction never waits for learning, and never sees half of a request.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import NamedTuple

from rosenblatt.errors import Conflict, LearningPaused, LimitExceeded, RosenblattError, UnknownEntry, UnknownModel
from rosenblatt.modelfile.parts import Parts
from rosenblatt.serve.disk import DiskSpace
from rosenblatt.serve.history import HistoryView
from rosenblatt.serve.learners import ServedLearner, Specification
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.log import Log, LoggedAnswer, LogReader, ModelRecord, SnapshotRecord, first_chain, now
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.snapshots import States, remove_files, save_snapshot, superfluous
from rosenblatt.serve.state import CREATE, LEARN, SET_BACK, Entry, Example, Outcome, State, learn, learn_again

MOST_TOGETHER = 1_000  # requests in a commit
MOST_BYTES_TOGETHER = 16 << 20
SNAPSHOT_EXAMPLES = 50_000  # learned since the last snapshot
SNAPSHOT_BYTES = 128 << 20  # of the log since the last snapshot
WAIT = 0.05  # seconds between two looks at work that can wait


class Published(NamedTuple):
    """What is served of a model: it does not change any more."""

    learner: ServedLearner
    history: HistoryView
    seq: int
    changed: int  # milliseconds since 1970


class ServedModel:
    """A model of the server.

    Parameters
    ----------
    record : ModelRecord
        Its name and number.
    state : State
        Its state.
    chain : bytes
        The checksum of its last entry.
    changed : int
        When that was written.
    """

    def __init__(self, record: ModelRecord, state: State, chain: bytes, changed: int):
        self.record = record
        self.specification: Specification = state.specification
        self.snapshots: tuple[int, ...] = ()
        self.log_bytes = 0
        self.failure: str | None = None  # an error that is a bug; the model predicts, and learns no more
        # what follows belongs to the thread of the writer
        self.seq, self.chain, self.time = state.seq, chain, changed
        self.examples_since, self.bytes_since, self.snapshot_seq = 0, 0, 0
        self._pins: Counter[int] = Counter()
        self._free = threading.Event()  # the loop has published what it was told to
        self.install(state)
        self.published = self.publishable()
        self._free.set()

    @property
    def name(self) -> str:
        """The name."""
        return self.record.name

    # In the thread of the loop

    def publish(self, published: Published) -> None:
        """Serve another state from now on."""
        self.published = published
        self._free.set()

    def pin(self, learner: ServedLearner, by: int) -> None:
        """Say that a prediction that takes several steps of the loop has begun to use a learner (1), or has ended (−1)."""
        self._pins[id(learner)] += by

    # In the thread of the writer

    def mark(self) -> tuple[int, bytes, int, int, int]:
        """Return what a commit that fails must leave as it was."""
        return self.seq, self.chain, self.time, self.log_bytes, self.bytes_since

    def go_back(self, mark: tuple[int, bytes, int, int, int]) -> None:
        """Return to what `mark` returned."""
        self.seq, self.chain, self.time, self.log_bytes, self.bytes_since = mark

    def install(self, state: State) -> None:
        """Go on from a state, with two learners of its own."""
        self._front, self._back = state.learner, state.learner.copy()
        self.history = state.history
        self._missed: list[tuple[Sequence[Example], Outcome]] = []
        self._new: list[tuple[Sequence[Example], Outcome]] = []

    def learn(self, examples: Sequence[Example], seq: int, time: int) -> Outcome:
        """Learn from the examples of an entry with the learner that is not published."""
        self.catch_up()
        outcome = learn(self._back, examples, self.history, seq, time)
        self._new.append((examples, outcome))
        return outcome

    def catch_up(self) -> None:
        """Let the learner that is not published have all that the other one has."""
        if not self._missed:
            return
        while not self._free.wait(1.0) or self._pins[id(self._back)]:
            threading.Event().wait(0.001)
        for examples, outcome in self._missed:
            learn_again(self._back, examples, outcome)
        self._missed = []

    def publishable(self) -> Published:
        """Return the newest state, to be published; if there are new examples, the learners change places."""
        if self._new:
            self._front, self._back = self._back, self._front
            self._missed, self._new = self._new, []
        self._free.clear()
        return Published(self._front, self.history.view(), self.seq, self.time)

    @property
    def newest(self) -> ServedLearner:
        """The learner that has all entries."""
        return self._back if self._new else self._front


class Job(ABC):
    """A request that changes something: it is written to the log, and after the commit it takes effect."""

    size = 0  # bytes that wait

    def __init__(self) -> None:
        self.done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None

    @abstractmethod
    def write(self, writer: Writer) -> ServedModel | None:
        """Write to the log, within a transaction, or raise before anything is written; return the model that changes."""

    @abstractmethod
    def apply(self, writer: Writer) -> object:
        """Take effect after the commit; return the answer."""


class ModelJob(Job):
    """A job about a model that is there."""

    model: ServedModel


class Learned(NamedTuple):
    """The answer to a request to learn."""

    seq: int
    learned: int
    mistakes: int
    wrong: int
    refused: tuple[tuple[int, RosenblattError], ...] = ()

    def to_json(self) -> str:
        """Return it as JSON, to answer the request again; reasons are texts."""
        refused = [[place, error.problem] for place, error in self.refused]
        return json.dumps([self.seq, self.learned, self.mistakes, self.wrong, refused])

    @classmethod
    def from_json(cls, text: str) -> Learned:
        """Return the answer that `to_json` described."""
        seq, learned, mistakes, wrong, refused = json.loads(text)
        return cls(
            seq, learned, mistakes, wrong, tuple((place, RosenblattError(problem, row=place)) for place, problem in refused)
        )


class LearnJob(ModelJob):
    """Learn from examples.

    Parameters
    ----------
    model : ServedModel
        The model.
    examples : sequence of Example
        The examples, checked.
    payload : bytes
        The same as JSON.
    key : str, optional
        The idempotency key of the request.
    digest : bytes, optional
        A checksum of the request, if it has a key.
    predictions : sequence of str
        The ids of the predictions that get their label.
    """

    def __init__(
        self,
        model: ServedModel,
        examples: Sequence[Example],
        payload: bytes,
        key: str | None = None,
        digest: bytes | None = None,
        predictions: Sequence[str] = (),
    ):
        super().__init__()
        self.model, self.examples, self.payload, self.key, self.digest = model, examples, payload, key, digest
        self.predictions = predictions
        self.size = len(payload)
        self._entry: Entry | None = None
        self._logged: LoggedAnswer | None = None  # of the same request, sent before

    def write(self, writer: Writer) -> ServedModel | None:
        model, read = self.model, writer.log.read
        writer.check_alive(model)
        if self.key is not None and (logged := read.answer(model.record.id, self.key)) is not None:
            if logged.digest != self.digest:
                raise Conflict(
                    f"the Idempotency-Key was used for another request, entry {logged.seq}",
                    value=self.key,
                    hint="use a new key",
                )
            self._logged = logged
            return None
        writer.check_room(model, self.examples)
        for prediction in self.predictions:
            if (labelled := read.labelled(prediction)) is not None:
                raise Conflict(f"the prediction {prediction} got its label before, in entry {labelled}", value=prediction)
        self._entry = writer.add(model, LEARN, self.payload, self.key, self.digest)
        writer.log.add_labelled(self.predictions, model.record.id, self._entry.seq)
        return model

    def apply(self, writer: Writer) -> object:
        if self._entry is None:
            assert self._logged is not None
            place = self.model.record.id, self._logged.seq
            return Learned.from_json(self._logged.outcome or writer.outcomes[place])
        seq = self._entry.seq
        learned = Learned(seq, *self.model.learn(self.examples, seq, self._entry.time))
        if self.key is not None:
            writer.outcomes[self.model.record.id, seq] = learned.to_json()
        self.model.examples_since += learned.learned
        return learned


class CreateJob(Job):
    """Create a model, or several entries of one at once.

    Parameters
    ----------
    name : str
        Its name.
    state : State
        Its state after the entries.
    entries : sequence of Entry
        The entries, the first of which creates it.
    exist_ok : bool
        Whether a model of this name that was made of the same is an answer too.
    """

    def __init__(self, name: str, state: State, entries: Sequence[Entry], exist_ok: bool = True):
        super().__init__()
        self.name, self.state, self.entries, self.exist_ok = name, state, entries, exist_ok
        self.size = sum(len(entry.payload) for entry in entries)
        self._model: ServedModel | None = None
        self._created = False

    def write(self, writer: Writer) -> ServedModel | None:
        there = writer.models.get(self.name)
        if there is not None:
            if not self.exist_ok or there.specification != self.state.specification:
                raise Conflict(f"there is a model {self.name} already, which was made of something else", value=self.name)
            self._model = there
            return None
        if len(writer.models) >= writer.limits.models:
            raise LimitExceeded("models", len(writer.models) + 1, writer.limits.models)
        record = writer.log.add_model(self.name)
        chain = first_chain(self.name)
        for entry in self.entries:
            chain = writer.log.add(record.id, entry, None, chain)
        self._model = ServedModel(record, self.state, chain, self.entries[-1].time)
        self._model.log_bytes = self.size
        self._created = True
        writer.models[self.name] = self._model
        return self._model

    def apply(self, writer: Writer) -> object:
        assert self._model is not None
        return self._model, self._created


class DeleteJob(ModelJob):
    """Delete a model.

    Parameters
    ----------
    model : ServedModel
        The model.
    """

    def __init__(self, model: ServedModel):
        super().__init__()
        self.model = model
        self._snapshots: list[SnapshotRecord] = []

    def write(self, writer: Writer) -> ServedModel | None:
        writer.check_alive(self.model)
        self._snapshots = writer.log.read.snapshots(self.model.record.id)
        writer.log.remove_model(self.model.record.id)
        del writer.models[self.model.name]
        return None

    def apply(self, writer: Writer) -> object:
        remove_files(writer.log.folder, self._snapshots)
        writer.purging = True
        return None


class SetBackJob(ModelJob):
    """Set a model back to an earlier state.

    Parameters
    ----------
    model : ServedModel
        The model.
    to : int
        The entry after which it had that state.
    """

    def __init__(self, model: ServedModel, to: int):
        super().__init__()
        self.model, self.to = model, to
        self._seq = 0

    def write(self, writer: Writer) -> ServedModel | None:
        writer.check_alive(self.model)
        if not 1 <= self.to <= self.model.seq:
            raise UnknownEntry(
                f"there is no entry {self.to} of this model; it has entries 1 to {self.model.seq}", value=self.to
            )
        self._seq = writer.add(self.model, SET_BACK, json.dumps({"to": self.to}).encode()).seq
        return self.model

    def apply(self, writer: Writer) -> object:
        model = self.model
        model.install(writer.states.at(model.record.id, self.to))
        model.examples_since += SNAPSHOT_EXAMPLES  # so that a start need not find that state again
        return self._seq


class SnapshotJob(ModelJob):
    """Note a snapshot whose file has been written.

    Parameters
    ----------
    model : ServedModel
        The model.
    record : SnapshotRecord
        What was saved.
    """

    def __init__(self, model: ServedModel, record: SnapshotRecord):  # made by no request, so without a future
        self.model, self.record, self.error = model, record, None
        self._removed: list[SnapshotRecord] = []

    def write(self, writer: Writer) -> ServedModel | None:
        if writer.models.get(self.model.name) is not self.model:
            self._removed = [self.record]
            return None
        known = writer.log.read.snapshots(self.model.record.id)
        gone = superfluous([self.record.seq, *(record.seq for record in known)])
        writer.log.add_snapshot(self.record)
        writer.log.remove_snapshots(self.model.record.id, gone)
        self._removed = [record for record in known if record.seq in gone]
        kept = {self.record.seq, *(record.seq for record in known)} - set(gone)
        self.model.snapshots = tuple(sorted(kept))
        return None

    def apply(self, writer: Writer) -> object:
        remove_files(writer.log.folder, self._removed)
        return None


class Writer:
    """The thread that writes.

    Parameters
    ----------
    log : Log
        The log, which nobody else writes to.
    limits : Limits
        What a model may take.
    loop : asyncio.AbstractEventLoop
        Where requests are answered.
    metrics : Metrics
        Where commits are counted.
    """

    def __init__(self, log: Log, limits: Limits, loop: asyncio.AbstractEventLoop, metrics: Metrics):
        self.log, self.limits, self.states = log, limits, States(log.folder, LogReader(log.path))
        self.models: dict[str, ServedModel] = {}  # by name
        self.outcomes: dict[tuple[int, int], str] = {}  # of entries with a key, until they are in the log
        self.purging = True
        self.queued_bytes = 0
        # called in the loop when a model has changed, or, with True, was deleted
        self.changed: Callable[[ServedModel, bool], None] | None = None
        self._metrics = metrics
        self._disk = DiskSpace(log.folder, limits)
        self.paused: str | None = None  # why nothing can be learned
        self._loop = loop
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._saving: set[int] = set()
        self._saver = ThreadPoolExecutor(1, "snapshots")
        self._broken: str | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    # In the thread of the loop

    def start(self) -> None:
        """Begin to take jobs."""
        self._thread.start()

    async def do(self, job: Job) -> object:
        """Hand a job over and return its answer, after what it writes is on the disk.

        Parameters
        ----------
        job : Job
            The job.

        Returns
        -------
        answer : object
            What the job's `apply` returns.

        Raises
        ------
        RosenblattError
            If it is refused.
        """
        if self._stopping:
            raise LearningPaused("the server is about to stop", status=503)
        if self.queued_bytes + job.size > self.limits.queued_bytes:
            raise LimitExceeded("queued_bytes", self.queued_bytes + job.size, self.limits.queued_bytes)
        self.queued_bytes += job.size
        self._queue.put(job)
        try:
            return await asyncio.shield(job.done)
        finally:
            self.queued_bytes -= job.size

    def stop(self) -> None:
        """Finish what was accepted, save a snapshot of every model that has changed, and end."""
        self._stopping = True
        self._queue.put(None)

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    # For jobs, in the thread of the writer

    def check_alive(self, model: ServedModel) -> None:
        """Raise an error if a model is not there any more, or cannot learn."""
        if self.models.get(model.name) is not model:
            raise UnknownModel(model.name)
        if model.failure is not None:
            raise LearningPaused(f"the model {model.name} cannot learn: {model.failure}", hint="restart the server")

    def check_room(self, model: ServedModel, examples: Sequence[Example]) -> None:
        """Raise an error if a model would take more memory, or have more classes, than it may."""
        learner, limits = model.newest, self.limits
        labels = {example.label for example in examples}.difference(learner.classes)
        classes = len(learner.classes) + len(labels)
        if labels and classes > limits.classes and not isinstance(next(iter(labels)), float):
            raise LimitExceeded("classes", classes, limits.classes)
        most = limits.model_bytes
        names = sum(len(example.row) for example in examples)
        if 2 * learner.size(len(labels), names) > most:  # as if no name were known; if that is too much, they are counted
            size = 2 * learner.size(len(labels), learner.new_names(example.row for example in examples))
            if size > most:
                raise LimitExceeded("model_bytes", size, most)

    def add(
        self, model: ServedModel, kind: str, payload: bytes, key: str | None = None, digest: bytes | None = None
    ) -> Entry:
        """Write the next entry of a model."""
        entry = Entry(model.seq + 1, max(now(), model.time), kind, payload, key)
        model.chain = self.log.add(model.record.id, entry, digest, model.chain)
        model.seq, model.time = entry.seq, entry.time
        model.log_bytes += len(payload)
        model.bytes_since += len(payload)
        return entry

    # The thread

    def _run(self) -> None:
        while True:
            jobs = self._take()
            if jobs:
                self._round(jobs)
            for model in [*self.models.values()]:
                if self._queue.empty():
                    model.catch_up()
            if self._stopping and self._queue.empty():
                break
            if not jobs:
                self._idle()
        self._saver.shutdown()
        for model in self.models.values():
            if model.seq != model.snapshot_seq and model.failure is None:
                self._save_now(model)
        self._idle()

    def _take(self) -> list[Job]:
        """Return the jobs that wait; wait for one, but not for ever."""
        jobs: list[Job] = []
        size = 0
        try:
            job = self._queue.get(timeout=WAIT if self.purging or self.outcomes else 1.0)
            while True:
                if job is not None:
                    jobs.append(job)
                    size += job.size
                if len(jobs) >= MOST_TOGETHER or size >= MOST_BYTES_TOGETHER:
                    break
                job = self._queue.get_nowait()
        except queue.Empty:
            pass
        return jobs

    def _round(self, jobs: list[Job]) -> None:
        """Commit jobs together, let them take effect, and answer them."""
        began = perf_counter()
        models, marks = dict(self.models), [(model, model.mark()) for model in self.models.values()]
        changed: dict[ServedModel, None] = {}
        try:
            if self._broken or self.log.failure:
                raise LearningPaused(
                    self._broken or self.log.failure or "", hint="look at the disk, then restart the server"
                )
            self._disk.check(sum(job.size for job in jobs))
            with self._commit():
                for job in jobs:
                    changed |= self._write(job)
            self.paused = None
        except (sqlite3.Error, OSError, RosenblattError) as error:
            self.models = models
            for model, mark in marks:
                model.go_back(mark)
            refusal = self._refusal(error)
            self._deliver([(job, None, refusal) for job in jobs], [])
            return
        self._metrics.commits.add()
        self._metrics.commit_seconds.observe(perf_counter() - began)
        self._metrics.commit_requests.observe(len(jobs))
        answers: list[tuple[Job, object, BaseException | None]] = []
        for job in jobs:
            answer: object = None
            if job.error is None:
                try:
                    answer = job.apply(self)
                except Exception as error:
                    job.error = error
                    self._fail(job, error)
            answers.append((job, answer, job.error))
        self._deliver(answers, [(model, model.publishable()) for model in changed if model.failure is None])
        for model in changed:
            if model.examples_since >= SNAPSHOT_EXAMPLES or model.bytes_since >= SNAPSHOT_BYTES:
                self._save(model)

    def _write(self, job: Job) -> dict[ServedModel, None]:
        """Write a job to the log, or nothing of it; return the model that changes, if any."""
        mark = job.model.mark() if isinstance(job, ModelJob) else None
        with self.log.savepoint():
            try:
                changed = job.write(self)
                return {} if changed is None else {changed: None}
            except (RosenblattError, sqlite3.IntegrityError) as error:
                contradiction = Conflict(f"the request contradicts what is in the log: {error}")
                job.error = error if isinstance(error, RosenblattError) else contradiction
                if isinstance(job, ModelJob) and mark is not None:
                    job.model.go_back(mark)
                raise
        return {}

    def _refusal(self, error: Exception) -> RosenblattError:
        """Return what to answer where nothing could be committed."""
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0)
            if code == sqlite3.SQLITE_IOERR_FSYNC or code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self._broken = f"the log cannot be written any more: {error}"
            error = LearningPaused(f"the log cannot be written now: {error}", hint="make room on the disk")
        elif not isinstance(error, RosenblattError):
            error = LearningPaused(f"the log cannot be written now: {error.strerror or error}")  # type: ignore[attr-defined]  # an OSError
        self.paused = error.problem
        return error

    def _fail(self, job: Job, error: Exception) -> None:
        """Let a model whose entry could not be applied learn no more; it goes on predicting."""
        if isinstance(job, ModelJob):
            job.model.failure = f"{type(error).__name__}: {error}"

    def _deliver(
        self,
        answers: Sequence[tuple[Job, object, BaseException | None]],
        published: Sequence[tuple[ServedModel, Published]],
    ) -> None:
        """Publish models and answer requests, in the thread of the loop."""

        def deliver() -> None:
            for model, state in published:
                model.publish(state)
                if self.changed is not None:
                    self.changed(model, False)
            for job, answer, error in answers:
                if isinstance(job, DeleteJob) and error is None and self.changed is not None:
                    self.changed(job.model, True)
                done = getattr(job, "done", None)
                if done is not None and not done.done():
                    if error is None:
                        done.set_result(answer)
                    else:
                        done.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(deliver)
        except RuntimeError:  # the loop has ended, and with it who could read
            for model, state in published:
                model.publish(state)

    @contextmanager
    def _commit(self) -> Iterator[None]:
        """Commit what the block writes, and with it what entries did that were committed before."""
        with self.log.transaction():
            self.log.add_outcomes((model, seq, text) for (model, seq), text in self.outcomes.items())
            yield
        self.outcomes.clear()

    def _idle(self) -> None:
        """Do what can wait."""
        with suppress(sqlite3.Error, OSError, RosenblattError):
            if self.outcomes:
                with self._commit():
                    pass
            if self.purging:
                self.purging = self.log.purge()
            self.log.flush()

    # Snapshots

    def _save(self, model: ServedModel) -> None:
        """Begin to save a snapshot in another thread."""
        if model.record.id in self._saving:
            return
        self._saving.add(model.record.id)
        parts, history, seq = self._parts(model)

        def save() -> None:
            began = perf_counter()
            try:
                with suppress(RosenblattError, OSError):  # a full disk; the next one may work
                    self._queue.put(
                        SnapshotJob(model, save_snapshot(self.log.folder, model.record.id, seq, parts, history))
                    )
                    self._metrics.snapshot_seconds.observe(perf_counter() - began)
            finally:
                self._saving.discard(model.record.id)

        self._saver.submit(save)

    def _save_now(self, model: ServedModel) -> None:
        """Save a snapshot and note it, at the end."""
        parts, history, seq = self._parts(model)
        with suppress(sqlite3.Error, RosenblattError, OSError):
            job = SnapshotJob(model, save_snapshot(self.log.folder, model.record.id, seq, parts, history))
            with self._commit():
                job.write(self)
            job.apply(self)

    def _parts(self, model: ServedModel) -> tuple[Parts | None, str, int]:
        """Return what a snapshot has of a model: the learner if it has learned something, the history and the entry."""
        model.examples_since = model.bytes_since = 0
        model.snapshot_seq = model.seq
        learner = model.newest
        parts = learner.to_parts() if learner.seen else None
        return parts, json.dumps(model.history.to_json()), model.seq


def first_entry(payload: bytes) -> Entry:
    """Return the entry that creates a model."""
    return Entry(1, now(), CREATE, payload)
