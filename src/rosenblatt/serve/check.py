"""Verify a folder: the files, every entry's checksum, and that the log, applied from its first entry on, gives every
snapshot byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh64

from rosenblatt.errors import DamagedLog, RosenblattError
from rosenblatt.modelfile import container
from rosenblatt.serve.archive import replay_archives
from rosenblatt.serve.folder import LOG, FolderLock, check_files, require_log
from rosenblatt.serve.log import LogReader, ModelRecord, SnapshotRecord
from rosenblatt.serve.snapshots import States
from rosenblatt.serve.state import State, apply, create, lineage


class Checked(NamedTuple):
    """What a check found."""

    models: int
    entries: int
    examples: int
    snapshots: int
    problems: tuple[str, ...]


def check_folder(folder: Path, progress: Callable[[str], None] | None = None) -> Checked:
    """Verify the log, the snapshots and the replay of a folder that no server uses; nothing is changed.

    Parameters
    ----------
    folder : Path
        The folder.
    progress : function from str, optional
        Is called with what is being checked.

    Returns
    -------
    found : Checked

    Raises
    ------
    FolderInUse
        If a server uses it.
    DamagedLog
        If the files are not whole.
    """
    require_log(folder)
    tell = progress or (lambda text: None)
    copy = f"back it up and check the copy: rosenblatt backup {folder} COPY; rosenblatt serve COPY --check"
    with closing(FolderLock(folder, copy)):
        check_files(folder)
        with LogReader(folder / LOG) as read:
            tell("the database")
            problems = [f"{LOG}: {text}" for text in read.integrity()]
            entries = examples = snapshots = 0
            records = read.models()
            for record in records:
                tell(f"model {record.name}")
                try:
                    state, compared, wrong = _replay(folder, read, record)
                except RosenblattError as error:
                    named = isinstance(error, DamagedLog) and error.model is not None
                    problems.append(str(error) if named else f"model {record.name}: {error}")
                    continue
                entries += read.last(record.id)[0]
                examples += state.learner.seen
                snapshots += compared
                problems += wrong
    return Checked(len(records), entries, examples, snapshots, tuple(problems))


def _replay(folder: Path, read: LogReader, record: ModelRecord) -> tuple[State, int, list[str]]:
    """Return the last state of a model, how many snapshots were compared, and what is wrong with them."""
    states = States(folder, read, use_snapshots=False)
    snapshots = {snapshot.seq: snapshot for snapshot in read.snapshots(record.id)}
    problems: list[str] = []
    for _ in read.entries(record.id):  # also those that the model was set back over
        pass
    state = states.base(record.id)
    problems += _check_archives(folder, read, record, state)
    known = [] if state is None else [state.seq]
    left = set(snapshots)
    for part in lineage(read.last(record.id)[0], read.set_backs(record.id), known).ranges:
        for entry in read.entries(record.id, part[0], part[-1]) if part else ():
            state = create(entry) if state is None else apply(state, entry)[0]
            if entry.seq in left:
                left.remove(entry.seq)
                problems += _compare(states, state, snapshots[entry.seq])
    assert state is not None
    for seq in left:
        problems += _compare(states, states.at(record.id, seq), snapshots[seq])
    return state, len(snapshots), [f"model {record.name}: {problem}" for problem in problems]


def _check_archives(folder: Path, read: LogReader, record: ModelRecord, base: State | None) -> list[str]:
    """Return what is wrong with the archives of a model that are in the folder; others may be kept elsewhere."""
    if base is None:
        return []
    try:
        replayed = replay_archives(folder, read.archives(record.id))
    except DamagedLog as error:
        return [str(error)]
    if replayed is None:
        return []
    same = digest_of(replayed) == digest_of(base)
    same = same and json.dumps(replayed.history.to_json()) == json.dumps(base.history.to_json())
    return [] if same else [f"replaying the archives up to entry {base.seq} gives another model, or another history"]


def _compare(states: States, state: State, snapshot: SnapshotRecord) -> list[str]:
    """Return what is wrong with a snapshot of a state."""
    if digest_of(state) != snapshot.digest:
        return [f"snapshot {snapshot.file}: replaying the log gives another model"]
    try:
        if json.loads(json.dumps(state.history.to_json())) != json.loads(snapshot.history):
            return [f"snapshot {snapshot.file}: replaying the log gives another history"]
        states.load(snapshot)
    except (RosenblattError, OSError, ValueError) as error:  # the last of a history that is no JSON
        return [f"snapshot {snapshot.file}: {error}"]
    return []


def digest_of(state: State) -> str:
    """Return the XXH64 of the model file of a state; empty where nothing has been learned.

    Parameters
    ----------
    state : State

    Returns
    -------
    digest : str
    """
    if not state.learner.seen:
        return ""
    parts, digest = state.learner.model.to_parts(), xxh64()
    for block in container.blocks(parts.facts, parts.arrays):
        digest.update(block)
    return digest.hexdigest()
