"""One thread writes the log and teaches the models. Requests that wait together share a commit, and are answered after it.

Each model has two learners. One is published: predictions read it, and nobody changes it. The other takes the new entries,
and is published in its place when they are committed and learned; then the first takes the same entries, and is ready for
the next ones. So a prediction never waits for learning, and never sees half of a request.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import monotonic, perf_counter

from rosenblatt.errors import Conflict, DamagedLog, LearningPaused, LimitExceeded, RosenblattError, UnknownModel
from rosenblatt.modelfile.parts import Parts
from rosenblatt.serve.disk import DiskSpace
from rosenblatt.serve.jobs import SNAPSHOT_EXAMPLES, DeleteJob, Job, ModelJob, SnapshotJob
from rosenblatt.serve.learners import Label, NewNames
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.log import Log, LogReader, now
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.problem_details import forget_frames
from rosenblatt.serve.served_model import Admitted, Published, ServedModel
from rosenblatt.serve.snapshots import States, save_snapshot
from rosenblatt.serve.state import Entry, Example

MOST_TOGETHER = 1_000  # requests in a commit
MOST_BYTES_TOGETHER = 16 << 20
SNAPSHOT_BYTES = 128 << 20  # of the log since the last snapshot
TIDY_SECONDS = 2.0  # between two looks at work that can wait, however much there is to learn
WAIT = 0.05  # seconds between two looks at work that can wait


_logger = logging.getLogger(__name__)


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
        self.disk = DiskSpace(log.folder, limits)
        self.paused: str | None = None  # why nothing can be learned
        self.needs_room = False  # whether that is because there is no room
        self._loop = loop
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._saving: set[int] = set()
        self._saver = ThreadPoolExecutor(1, "snapshots")
        self._broken: str | None = None
        self._stopping = False
        self._tidied, self._flushed = monotonic(), -1
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
        job.done = self._loop.create_future()
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

    def check_present(self, model: ServedModel) -> None:
        """Raise an error if a model is not there any more."""
        if self.models.get(model.name) is not model:
            raise UnknownModel(model.name)

    def check_alive(self, model: ServedModel) -> None:
        """Raise an error if a model is not there any more, or cannot learn."""
        self.check_present(model)
        if model.failure is not None:
            raise LearningPaused(f"the model {model.name} cannot learn: {model.failure}", hint="restart the server")

    def admit(self, model: ServedModel, examples: Sequence[Example], size: int) -> None:
        """Raise an error if a model would take too much memory, or have too many classes. What this commit has admitted
        already counts; `size` is the bytes of the examples as JSON."""
        learner, limits, admitted = model.newest, self.limits, model.admitted
        classes = learner.classes
        labels: set[Label] = set()
        if not learner.regression:
            labels = {example.label for example in examples}.difference(classes) | admitted.labels
        if labels and len(classes) + len(labels) > limits.classes:
            raise LimitExceeded("classes", len(classes) + len(labels), limits.classes)

        # As if no name were known, and as long as they can be; only if that is too much, those that are new are looked for.
        rows = [example.row for example in examples]
        before, count = admitted.most_names, sum(map(len, rows))
        most = NewNames(before.number + count, before.bytes + learner.text.most_name_bytes(size, count))
        if learner.memory(most, len(labels)) > limits.model_bytes:
            memory = learner.memory(learner.new_names([*admitted.rows, *rows]), len(labels))
            if memory > limits.model_bytes:
                raise LimitExceeded("model_bytes", memory, limits.model_bytes)
        admitted.rows += rows
        admitted.labels, admitted.most_names = labels, most

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
        self._save_due([*self.models.values()])  # or a server that is killed again and again never would
        while True:
            jobs = self._take()
            if jobs:
                try:
                    self._round(jobs)
                except Exception as error:  # a bug; what was committed is in the log, and a start will apply it
                    _logger.error("the writer stops because of a bug", exc_info=error)
                    self._broken = f"{type(error).__name__}: {error}"
                    self._deliver([(job, None, error) for job in jobs], [])
            for model in [*self.models.values()]:
                if self._queue.empty():
                    model.catch_up()
            if self._stopping and self._queue.empty():
                break
            if not jobs or monotonic() - self._tidied > TIDY_SECONDS:
                self._idle()
        self._saver.shutdown()
        for model in self.models.values():
            if model.seq != model.snapshot_seq and model.failure is None:
                self._save_now(model)
        self._idle()
        self.states.close()

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
            self._refuse_without_room(jobs)
            with self._commit():
                for job in jobs:
                    changed |= {} if job.error else self._write(job)
                for model in changed:
                    self.log.set_last(model.record.id, model.seq, model.chain)
        except (sqlite3.Error, OSError, RosenblattError) as error:
            self.models = models
            for model, mark in marks:
                model.go_back(mark)
            refusal = self._refusal(error)
            forget_frames(refusal)
            self._deliver([(job, None, refusal) for job in jobs], [])
            return
        finally:
            for model, _ in marks:
                model.admitted = Admitted()
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
                    self._fail(job, error)
                    forget_frames(error)
                    job.error = error
            answers.append((job, answer, job.error))
        self._deliver(answers, [(model, model.publishable()) for model in changed if model.failure is None])
        self._save_due(changed)

    def _refuse_without_room(self, jobs: Sequence[Job]) -> None:
        """Refuse the jobs that need room if there is none; a model can be deleted all the same."""
        try:
            self.disk.check(sum(job.room for job in jobs))
            self.paused, self.needs_room = None, False
        except RosenblattError as error:
            forget_frames(error)
            self.paused, self.needs_room = error.problem, True
            for job in jobs:
                job.error = error if job.needs_room else None

    def _write(self, job: Job) -> dict[ServedModel, None]:
        """Write a job to the log, or nothing of it; return the model that changes, if any."""
        mark = job.model.mark() if isinstance(job, ModelJob) else None
        try:
            with self.log.savepoint():
                changed = job.write(self)
        except Exception as error:
            own = isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)  # the latter where a value is too large
            if isinstance(error, sqlite3.Error | DamagedLog) and not own:
                raise  # of the disk, not of this job
            contradiction = Conflict(f"the request contradicts what is in the log: {error}")
            job.error = contradiction if own else error
            forget_frames(job.error)
            if isinstance(job, ModelJob) and mark is not None:
                job.model.go_back(mark)
            return {}
        return {} if changed is None else {changed: None}

    def _refusal(self, error: sqlite3.Error | OSError | RosenblattError) -> RosenblattError:
        """Return what to answer where nothing could be committed."""
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0)
            if code == sqlite3.SQLITE_IOERR_FSYNC or code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self._broken = f"the log cannot be written any more: {error}"
            hint = "make room on the disk" if code & 0xFF == sqlite3.SQLITE_FULL else None
            error = LearningPaused(f"the log cannot be written now: {error}", hint=hint)
        elif isinstance(error, DamagedLog):
            self._broken = f"the log is damaged: {error.problem}"
            error = LearningPaused(self._broken, hint=error.hint)
        elif isinstance(error, OSError) and not isinstance(error, RosenblattError):
            hint = "make room on the disk" if error.errno == errno.ENOSPC else None
            error = LearningPaused(f"the log cannot be written now: {error.strerror or error}", hint=hint)
        self.paused = error.problem
        return error

    def _fail(self, job: Job, error: Exception) -> None:
        """Let a model whose entry could not be applied learn no more; it goes on predicting."""
        _logger.error("an entry could not be applied because of a bug", exc_info=error)
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
        self._tidied = monotonic()
        with suppress(sqlite3.Error, OSError, RosenblattError):
            if self.outcomes:
                with self._commit():
                    pass
            if self.purging:
                self.purging = self.log.purge()
                self.disk.measure()
            if self.paused and not self._broken:  # is there room again?
                self.disk.check(0)
                with self._commit():
                    self.paused, self.needs_room = None, False
            if self._flushed != self.log.commits:
                self._flushed = self.log.commits
                self.log.flush()

    # Snapshots

    def _save_due(self, models: Iterable[ServedModel]) -> None:
        """Begin to save a snapshot of those models that have learned much since the last one."""
        for model in models:
            if model.examples_since >= SNAPSHOT_EXAMPLES or model.bytes_since >= SNAPSHOT_BYTES:
                self._save(model)

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
