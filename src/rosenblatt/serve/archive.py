"""Archiving moves the older entries of a log to a compressed file; the log keeps the state after them.

The file has the lines that an export would have, compressed. The log notes its checksum, the chain of its last entry, on
which that of the next one is built, and the model file and the history as they were then. So a start works as before, and
so does looking at a state from there on. For a state before it one needs the file: its lines and then the rest of the log
are a whole log again.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from xxhash import xxh64

from rosenblatt.errors import Conflict, DamagedLog, InvalidData, InvalidParameter
from rosenblatt.modelfile import container
from rosenblatt.serve.folder import flush_folder
from rosenblatt.serve.log import ArchiveRecord, BaseRecord, LogReader, ModelRecord, now
from rosenblatt.serve.state import Entry, State, entry_from_line, entry_to_line, lineage, run_entries, set_back_target

FOLDER = "archive"  # in the folder of the server
BLOCK_BYTES = 1 << 20  # bytes that are compressed at once


def archive_path(folder: Path, record: ArchiveRecord) -> Path:
    """Return where the file of an archive is, unless somebody has taken it away."""
    return folder / FOLDER / record.file


def parse_date(text: object) -> int:
    """Return a date, or a date and time, of ISO 8601 in milliseconds since 1970; without a zone it is UTC.

    Parameters
    ----------
    text : object
        The value of "before" in a request.

    Returns
    -------
    milliseconds : int

    Raises
    ------
    InvalidParameter
        If it is neither.
    """
    try:
        moment = datetime.fromisoformat(text)  # type: ignore[arg-type]  # a TypeError is answered in the next lines
    except (TypeError, ValueError):
        raise InvalidParameter("before", text, 'a date such as "2026-10-31", or a date and time of ISO 8601') from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def check_archivable(read: LogReader, model: int, last: int) -> int:
    """Return the first entry of an archive that ends with an entry.

    Parameters
    ----------
    read : LogReader
        The log.
    model : int
        The number of the model.
    last : int
        The last entry to archive.

    Returns
    -------
    first : int

    Raises
    ------
    InvalidParameter
        If there is no such entry, or it is archived already, or the newest.
    Conflict
        If a later entry sets the model back to a state that would be archived.
    """
    newest, first = read.last(model)[0], read.base_seq(model) + 1
    if first >= newest:
        raise Conflict(f"there is nothing to archive: the log has only its newest entry, {newest}")
    if not first <= last < newest:
        raise InvalidParameter("to", last, f"an entry from {first} to {newest - 1}; the newest one stays")
    for seq, target in sorted(read.set_backs(model).items()):
        if seq > last > target:
            raise Conflict(
                f"entry {seq} sets the model back to entry {target}, which would be archived",
                hint=f"archive to entry {seq}, or to {target} at most",
            )
    return first


def write_archive(folder: Path, read: LogReader, model: ModelRecord, first: int, last: int) -> ArchiveRecord:
    """Write entries to a file, which is on the disk afterwards.

    Parameters
    ----------
    folder : Path
        The folder of the server.
    read : LogReader
        Its log.
    model : ModelRecord
        The model.
    first, last : int
        The entries.

    Returns
    -------
    record : ArchiveRecord
        What the log is to note of it.
    """
    name = f"{model.name}-{model.id}-{first:09d}-{last:09d}.jsonl.gz"
    place = folder / FOLDER
    place.mkdir(mode=0o700, exist_ok=True)
    part = place / f"{name}.part"
    digest, lines = xxh64(), 0
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                for block in _blocks(read, model.id, first, last):
                    digest.update(block)
                    packed.write(block)
                    lines += len(block)
            file.flush()
            os.fsync(file.fileno())
        part.rename(place / name)
        flush_folder(place)
    finally:
        part.unlink(missing_ok=True)
    return ArchiveRecord(model.id, first, last, now(), name, digest.hexdigest(), lines)


def _blocks(read: LogReader, model: int, first: int, last: int) -> Iterator[bytes]:
    """Yield the lines of entries, many at a time."""
    block: list[bytes] = []
    size = 0
    for entry in read.entries(model, first, last):
        block.append(entry_to_line(entry) + b"\n")
        size += len(block[-1])
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)


def base_of(read: LogReader, model: int, state: State) -> BaseRecord:
    """Return what the log keeps in place of the entries up to a state.

    Parameters
    ----------
    read : LogReader
        The log.
    model : int
        The number of the model.
    state : State
        The state after the last entry that is archived.

    Returns
    -------
    record : BaseRecord
    """
    content = b""
    if state.learner.seen:
        parts = state.learner.model.to_parts()
        content = b"".join(bytes(block) for block in container.blocks(parts.facts, parts.arrays))
    history = json.dumps(state.history.to_json())
    return BaseRecord(
        model, state.seq, now(), read.chain(model, state.seq), read.created(model), content, history
    ).with_digest()


def archived_entries(path: Path, record: ArchiveRecord) -> Iterator[Entry]:
    """Yield the entries of an archive, which must be as they were written.

    Parameters
    ----------
    path : Path
        The file.
    record : ArchiveRecord
        What the log says of it.

    Yields
    ------
    entry : Entry

    Raises
    ------
    DamagedLog
        If the file has changed.
    """
    digest, expected = xxh64(), record.first
    try:
        with closing(gzip.open(path, "rb")) as file:
            lines: IO[bytes] = file  # type: ignore[assignment]  # which mypy takes for text
            for line in lines:
                digest.update(line)
                entry = entry_from_line(line.rstrip(b"\n"), expected)
                if entry.seq != expected:
                    raise InvalidData(f"entry {expected} is missing")
                yield entry
                expected += 1
    except (OSError, EOFError, InvalidData, zlib.error) as error:
        raise DamagedLog(f"the archive cannot be read: {error}", path=path) from None
    if digest.hexdigest() != record.digest or expected != record.last + 1:
        raise DamagedLog("the archive has changed since it was written", path=path)


def replay_archives(folder: Path, records: list[ArchiveRecord]) -> State | None:
    """Return the state after the entries of archives that begin with the first; None if a file is not there.

    Parameters
    ----------
    folder : Path
        The folder of the server.
    records : list of ArchiveRecord
        The archives of a model in order.

    Returns
    -------
    state : State or None

    Raises
    ------
    DamagedLog
        If a file has changed.
    """
    paths = [archive_path(folder, record) for record in records]
    here = [path.exists() for path in paths]
    for path, record, exists in zip(paths, records, here, strict=True):
        for _ in archived_entries(path, record) if exists else ():
            pass
    if not records or records[0].first != 1 or not all(here):
        return None

    def entries() -> Iterator[Entry]:
        for path, record in zip(paths, records, strict=True):
            yield from archived_entries(path, record)

    set_backs = {entry.seq: set_back_target(entry) for entry in entries() if entry.kind == "set_back"}
    last = records[-1].last
    parts = lineage(last, set_backs).ranges
    wanted = (entry for part in parts if part for entry in entries() if entry.seq in part)
    return run_entries(wanted)._replace(seq=last)
