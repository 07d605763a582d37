"""A state is found from the nearest snapshot before it: a model file, and the entries of the log since.

Snapshots save time and hold nothing that the log does not. One that is damaged is left out and an older one is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from xxhash import xxh64_hexdigest

from rosenblatt.errors import DamagedLog, UnknownEntry, UnreadableModel
from rosenblatt.modelfile import container, registry
from rosenblatt.modelfile.parts import Parts
from rosenblatt.serve.folder import SNAPSHOTS
from rosenblatt.serve.history import History
from rosenblatt.serve.learners import ServedLearner, Specification, make_learner, serve_model
from rosenblatt.serve.log import LogReader, SnapshotRecord, archived_error, now
from rosenblatt.serve.state import (
    NO_LIMITS,
    Entry,
    Note,
    Outcome,
    State,
    lineage,
    parse_json,
    read_specification,
    run_entries,
)

NEWEST = 3  # snapshots that are kept in any case


class States:
    """The states of the models in a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    read : LogReader
        Its log.
    use_snapshots : bool, default=True
        False: apply all entries from the first on.
    """

    def __init__(self, folder: Path, read: LogReader, use_snapshots: bool = True):
        self._folder, self._read, self._use_snapshots = folder / SNAPSHOTS, read, use_snapshots
        self.problems: list[str] = []  # with snapshots that were left out

    def close(self) -> None:
        """Close the log."""
        self._read.close()

    def at(self, model: int, seq: int | None = None, note: Note | None = None) -> State:
        """Return a model after an entry.

        Parameters
        ----------
        model : int
            The number of the model.
        seq : int, optional
            The entry; None: the last.
        note : function from Entry and Outcome, optional
            Is called with what each entry did that had to be applied.

        Returns
        -------
        state : State

        Raises
        ------
        UnknownEntry
            If there is no such entry.
        DamagedLog
            If one of the entries up to there is damaged.
        """
        last = self._read.last(model)[0]
        seq = last if seq is None else seq
        if not 1 <= seq <= last:
            raise UnknownEntry(f"there is no entry {seq} of this model; it has entries 1 to {last}", value=seq)
        return self._run(model, seq, self._read.snapshots(model) if self._use_snapshots else [], note)

    def _run(self, model: int, seq: int, snapshots: Iterable[SnapshotRecord], note: Note | None) -> State:
        """Return a model after an entry, from the nearest of some snapshots that can be read."""
        set_backs, base = self._read.set_backs(model), self._read.base_seq(model)
        records = {record.seq: record for record in snapshots}
        while True:
            path = lineage(seq, set_backs, {base, *records} if base else records)
            if path.snapshot == base:
                state: State | None = self.base(model)
            elif path.snapshot is not None:
                state = self._try(records.pop(path.snapshot))
            elif base:
                raise archived_error(base, seq)
            else:
                state = None
            if state is not None or path.snapshot is None:
                rest = (entry for part in path.ranges if part for entry in self._read.entries(model, part[0], part[-1]))
                return run_entries(rest, state, note)._replace(seq=seq)

    def outcomes(self, model: int, seq: int) -> dict[int, Outcome]:
        """Return what an entry with examples did, and what those did that have to be applied before it.

        Parameters
        ----------
        model : int
            The number of the model.
        seq : int
            The entry.

        Returns
        -------
        outcomes : dict
            By entry; those whose requests had an idempotency key.
        """
        found: dict[int, Outcome] = {}

        def note(entry: Entry, outcome: Outcome) -> None:
            if entry.key is not None:
                found[entry.seq] = outcome

        records = [record for record in self._read.snapshots(model) if record.seq < seq]
        self._run(model, seq, records, note)
        return found

    def _try(self, record: SnapshotRecord) -> State | None:
        """Return the state of a snapshot; None, and a note, if it cannot be read."""
        try:
            return self.load(record)
        except (UnreadableModel, DamagedLog, OSError, ValueError, LookupError, TypeError) as error:
            self.problems.append(f"snapshot {record.file} is left out: {error}")
            return None

    def specification(self, model: int) -> Specification:
        """Return what a model was made of."""
        return read_specification(parse_json(self._read.created(model), "the entry"))

    def base(self, model: int) -> State | None:
        """Return a model after its last entry that was archived; None if none was."""
        record = self._read.base(model)
        if record is None:
            return None
        specification = read_specification(parse_json(record.created, "the entry"))
        history = History.from_json(json.loads(record.history))
        if not record.content:
            return State(specification, make_learner(specification, NO_LIMITS), history, record.seq)
        return State(specification, self._learner(record.content, specification, "the model"), history, record.seq)

    def load(self, record: SnapshotRecord) -> State:
        """Return the state of a snapshot.

        Parameters
        ----------
        record : SnapshotRecord
            What the log says of it.

        Returns
        -------
        state : State

        Raises
        ------
        UnreadableModel
            If its file is damaged; OSError if it is missing.
        """
        specification = self.specification(record.model)
        history = History.from_json(json.loads(record.history))
        if not record.digest:
            return State(specification, make_learner(specification, NO_LIMITS), history, record.seq)
        path = self._folder / record.file
        content = path.read_bytes()
        if xxh64_hexdigest(content) != record.digest:
            raise UnreadableModel("the file has changed since it was saved", path=path)
        return State(specification, self._learner(content, specification, record.file), history, record.seq)

    def _learner(self, content: bytes, specification: Specification, name: str) -> ServedLearner:
        """Return the learner of a model file."""
        facts, arrays = container.read_bytes(content, name)
        with container.decoding(name):
            model = registry.from_parts(Parts(facts, arrays))
        return serve_model(model, specification)


def save_snapshot(folder: Path, model: int, seq: int, parts: Parts | None, history: str) -> SnapshotRecord:
    """Write the file of a snapshot; it counts when the log has its record.

    Parameters
    ----------
    folder : Path
        The folder of the server.
    model, seq : int
        The model, and the last entry that it has learned.
    parts : Parts or None
        The model; None if it has learned nothing yet.
    history : str
        Its history as JSON.

    Returns
    -------
    record : SnapshotRecord

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    record = SnapshotRecord(model, seq, now(), "", 0, history)
    if parts is None:
        return record
    path = folder / SNAPSHOTS / record.file
    container.write(path, parts.facts, parts.arrays)
    path.chmod(0o600)
    content = path.read_bytes()
    return record._replace(digest=xxh64_hexdigest(content), bytes=len(content))


def superfluous(seqs: Iterable[int]) -> list[int]:
    """Return those snapshots that are not needed: of all but the newest ones, one is kept for each power of two.

    Parameters
    ----------
    seqs : iterable of int
        The entries at which there are snapshots.

    Returns
    -------
    seqs : list of int
    """
    ranked = sorted(seqs, reverse=True)
    kept: set[int] = set()
    removed = []
    for seq in ranked[NEWEST:]:
        age = (ranked[0] - seq).bit_length()
        if age in kept:
            removed.append(seq)
        kept.add(age)
    return removed


def remove_files(folder: Path, records: Iterable[SnapshotRecord]) -> None:
    """Remove the files of snapshots that the log does not have any more."""
    for record in records:
        (folder / SNAPSHOTS / record.file).unlink(missing_ok=True)


def remove_strangers(folder: Path, known: Iterable[SnapshotRecord]) -> None:
    """Remove files of snapshots that the log does not know: a process was killed before it could say so."""
    names = {record.file for record in known}
    for path in (folder / SNAPSHOTS).iterdir():
        if path.name not in names:
            path.unlink(missing_ok=True)
