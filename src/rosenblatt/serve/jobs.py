"""What the writer can be asked to do: each job writes to the log, and takes effect after the commit."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rosenblatt.errors import Conflict, InvalidParameter, LimitExceeded, RosenblattError
from rosenblatt.serve.archive import check_archivable
from rosenblatt.serve.learners import Specification
from rosenblatt.serve.log import (
    ArchiveRecord,
    BaseRecord,
    LoggedAnswer,
    LogReader,
    SnapshotRecord,
    archived_error,
    first_chain,
)
from rosenblatt.serve.served_model import ServedModel
from rosenblatt.serve.snapshots import remove_files, superfluous
from rosenblatt.serve.state import LEARN, SET_BACK, Entry, Example, State

SNAPSHOT_EXAMPLES = 50_000  # learned since the last snapshot
LONGEST_SETTING = 100  # characters of a setting that a message shows

if TYPE_CHECKING:
    from rosenblatt.serve.writer import Writer


class Job(ABC):
    """A request that changes something: it is written to the log, and after the commit it takes effect."""

    size = 0  # bytes that wait
    needs_room = True  # on the disk

    done: asyncio.Future[object]

    def __init__(self) -> None:
        self.error: BaseException | None = None

    @property
    def room(self) -> int:
        """The bytes that it writes, about."""
        return self.size

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
    """Learn from examples. The answer is what was learned; or the number of the entry of the same request, if that was
    learned before and has to be applied again to know what it did.

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
        self.repeated = False  # whether it was learned before
        self._entry: Entry | None = None
        self._logged: LoggedAnswer | None = None  # of the same request, sent before

    def write(self, writer: Writer) -> ServedModel | None:
        model, read = self.model, writer.log.read
        writer.check_alive(model)
        if self.key is not None and (logged := read.answer(model.record.id, self.key)) is not None:
            if logged.digest not in (None, self.digest):  # entries of an imported log have none
                used = f"a new one: entry {logged.seq} was another request with it"
                raise InvalidParameter("Idempotency-Key", self.key, used)
            self._logged = logged
            return None
        writer.admit(model, self.examples, self.size)
        self._entry = writer.add(model, LEARN, self.payload, self.key, self.digest)
        if self.predictions:
            try:
                writer.log.add_labelled(self.predictions, model.record.id, self._entry.seq)
            except sqlite3.IntegrityError:
                self._check_labelled(read)
                raise
        return model

    def _check_labelled(self, read: LogReader) -> None:
        """Raise an error that names the first prediction which has its label already."""
        for prediction in self.predictions:
            if (entry := read.labelled(prediction)) is not None:
                raise Conflict(f"the prediction {prediction} got its label before, in entry {entry}", value=prediction)

    def apply(self, writer: Writer) -> object:
        if self._entry is None:
            assert self._logged is not None
            self.repeated = True
            place = self.model.record.id, self._logged.seq
            known = self._logged.outcome or writer.outcomes.get(place)
            try:
                return self._logged.seq if known is None else Learned.from_json(known)
            except (ValueError, TypeError):  # a damaged page, outside of what has checksums
                return self._logged.seq
        seq = self._entry.seq
        learned = Learned(seq, *self.model.learn(self.examples, seq, self._entry.time))
        if self.key is not None:
            writer.outcomes[self.model.record.id, seq] = learned.to_json()
        self.model.examples_since += learned.learned
        return learned


class OutcomesJob(Job):
    """Note what entries did, which was found by applying them again.

    Parameters
    ----------
    model : ServedModel
        Their model.
    outcomes : sequence of Learned
        What they did.
    """

    def __init__(self, model: ServedModel, outcomes: Sequence[Learned]):
        super().__init__()
        self.model, self.outcomes = model, outcomes

    def write(self, writer: Writer) -> ServedModel | None:
        number = self.model.record.id
        writer.log.add_outcomes((number, outcome.seq, outcome.to_json()) for outcome in self.outcomes)
        return None

    def apply(self, writer: Writer) -> object:
        return None


def model_exists(name: str, differences: Sequence[str] = ()) -> Conflict:
    """Return the error of a name that is taken, by a model that differs so."""
    problem = f"there is a model {name} already" + (f", and it differs: {'; '.join(differences)}" if differences else "")
    return Conflict(problem, value=name, hint="choose another name or delete it")


def differences(there: Specification, wanted: Specification) -> list[str]:
    """Return which settings of two specifications differ, in words."""
    old, new = there.to_json(), wanted.to_json()
    pairs = {name: (_short_json(old[name]), _short_json(new[name])) for name in old if old[name] != new[name]}
    found = [f"{name} is {value}, the request has {other}" for name, (value, other) in pairs.items()]
    return found + (["it started from another model file, or from none"] if there.file != wanted.file else [])


def _short_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SETTING else f"{text[:LONGEST_SETTING]}…"


class ImportedModel:
    """A model whose log is written part by part, and which has no name until all of it is there.

    Parameters
    ----------
    name : str
        The name that it is to get.
    """

    def __init__(self, name: str):
        self.number: int | None = None
        self.chain, self.size = first_chain(name), 0


class ImportJob(Job):
    """Write a part of an imported log; between two parts, other requests are served.

    Parameters
    ----------
    imported : ImportedModel
        Its model.
    entries : sequence of Entry
        The next entries.
    outcomes : sequence of Learned
        What entries that were written did whose requests had an idempotency key.
    """

    def __init__(self, imported: ImportedModel, entries: Sequence[Entry] = (), outcomes: Sequence[Learned] = ()):
        super().__init__()
        self.imported, self.entries, self.outcomes = imported, entries, outcomes

    @property
    def room(self) -> int:
        return sum(len(entry.payload) for entry in self.entries)

    def write(self, writer: Writer) -> ServedModel | None:
        imported, log = self.imported, writer.log
        if imported.number is None:
            imported.number = log.begin_import()
        for entry in self.entries:
            imported.chain = log.add(imported.number, entry, None, imported.chain)
            imported.size += len(entry.payload)
        number = imported.number
        log.add_outcomes((number, outcome.seq, outcome.to_json()) for outcome in self.outcomes)
        return None

    def apply(self, writer: Writer) -> object:
        return None


class DiscardImportJob(Job):
    """Remove what was written of an imported log.

    Parameters
    ----------
    imported : ImportedModel
        Its model.
    """

    needs_room = False

    def __init__(self, imported: ImportedModel):
        super().__init__()
        self.imported = imported

    def write(self, writer: Writer) -> ServedModel | None:
        if self.imported.number is not None:
            writer.log.remove_model(self.imported.number)
        return None

    def apply(self, writer: Writer) -> object:
        writer.purging = True
        return None


class CreateJob(Job):
    """Create a model.

    Parameters
    ----------
    name : str
        Its name.
    state : State
        Its state.
    time : int
        When its last entry was written.
    source : Entry or ImportedModel
        The entry that creates it, or the log that was imported, of which all parts were written.
    """

    def __init__(self, name: str, state: State, time: int, source: Entry | ImportedModel):
        super().__init__()
        self.name, self.state, self.time, self.source = name, state, time, source
        self._model: ServedModel | None = None
        self._created = False

    @property
    def room(self) -> int:
        return 0 if isinstance(self.source, ImportedModel) else len(self.source.payload)

    def write(self, writer: Writer) -> ServedModel | None:
        there = writer.models.get(self.name)
        if there is not None:
            if isinstance(self.source, ImportedModel):
                raise model_exists(self.name)
            if there.specification != self.state.specification:
                raise model_exists(self.name, differences(there.specification, self.state.specification))
            self._model = there
            return None
        if len(writer.models) >= writer.limits.models:
            raise LimitExceeded("models", len(writer.models) + 1, writer.limits.models)
        if isinstance(self.source, ImportedModel):
            assert self.source.number is not None
            record = writer.log.name_import(self.source.number, self.name)
            chain, size = self.source.chain, self.source.size
        else:
            record, size = writer.log.add_model(self.name), len(self.source.payload)
            chain = writer.log.add(record.id, self.source, None, first_chain(self.name))
        self._model = ServedModel(record, self.state, chain, self.time)
        self._model.log_bytes = self._model.bytes_since = size
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

    needs_room = False

    def __init__(self, model: ServedModel):
        super().__init__()
        self.model = model
        self._snapshots: list[SnapshotRecord] = []

    def write(self, writer: Writer) -> ServedModel | None:
        writer.check_present(self.model)
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
    state : State
        That state, which nobody else uses.
    """

    def __init__(self, model: ServedModel, to: int, state: State):
        super().__init__()
        self.model, self.to, self.state = model, to, state
        self._seq = 0

    def write(self, writer: Writer) -> ServedModel | None:
        writer.check_alive(self.model)
        archived = writer.log.read.base_seq(self.model.record.id)
        if self.to < archived:  # since the state was looked for
            raise archived_error(archived, self.to)
        self._seq = writer.add(self.model, SET_BACK, json.dumps({"to": self.to}).encode()).seq
        return self.model

    def apply(self, writer: Writer) -> object:
        model = self.model
        model.install(self.state)
        model.examples_since += SNAPSHOT_EXAMPLES  # so that a start need not find that state again
        return self._seq


class ArchiveJob(ModelJob):
    """Note that entries were archived.

    Parameters
    ----------
    model : ServedModel
        The model.
    archive : ArchiveRecord
        The file that has them.
    base : BaseRecord
        What stands for them in the log.
    log_bytes : int
        The bytes that they had in the log.
    """

    needs_room = False  # it makes some

    def __init__(self, model: ServedModel, archive: ArchiveRecord, base: BaseRecord, log_bytes: int):
        # made in another thread than the loop's, which gives it its future when it is handed over
        self.model, self.archive, self.base, self.error = model, archive, base, None
        self.log_bytes, self.is_committed = log_bytes, False
        self._removed: list[SnapshotRecord] = []

    def write(self, writer: Writer) -> ServedModel | None:
        writer.check_alive(self.model)
        read, number = writer.log.read, self.model.record.id
        if check_archivable(read, number, self.archive.last) != self.archive.first:
            raise Conflict("entries of this model were archived meanwhile")
        self._removed = [record for record in read.snapshots(number) if record.seq <= self.base.seq]
        writer.log.add_archive(self.archive, self.base)
        self.model.snapshots = tuple(seq for seq in self.model.snapshots if seq > self.base.seq)
        return None

    def apply(self, writer: Writer) -> object:
        self.is_committed = True
        self.model.archived = self.base.seq
        self.model.log_bytes -= self.log_bytes
        writer.purging = True
        remove_files(writer.log.folder, self._removed)
        return None


class SnapshotJob(ModelJob):
    """Note a snapshot whose file has been written.

    Parameters
    ----------
    model : ServedModel
        The model.
    record : SnapshotRecord
        What was saved.
    """

    needs_room = False

    def __init__(self, model: ServedModel, record: SnapshotRecord):  # made by no request, so without a future
        self.model, self.record, self.error = model, record, None
        self._removed: list[SnapshotRecord] = []

    def write(self, writer: Writer) -> ServedModel | None:
        if writer.models.get(self.model.name) is not self.model:
            self._removed = [self.record]
            return None
        if self.record.seq <= writer.log.read.base_seq(self.model.record.id):
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
