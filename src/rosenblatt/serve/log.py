"""The log of all models in one SQLite database: what is committed to it is on the disk, and it is only ever added to.

A request is acknowledged after the commit that has its entry; entries that arrive together share a commit. Every commit
has a number, and the file `acknowledged` has the number of the last one that anybody was told of. SQLite opens a log whose
end was cut off without a word, as if the last commits had never been; the number shows that they have. Each entry also has
a checksum that includes that of the entry before, so that no entry can change, vanish or move unnoticed.

    meta        format, and the number of commits
    models      a name for each model, and its last entry
    log         the entries: model, seq (1, 2, 3, …), time, kind, key, chain (checksum), payload (JSON)
    outcomes    what an entry did, to answer a request that is sent again; derived from the log
    labelled    predictions that have got their label
    snapshots   at which entries there are model files, with the history up to there
    bases       what stands for entries that were archived: the model after them, and the chain of the last
    archives    the files that have them
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from pydantic_core import to_json
from xxhash import xxh3_128_digest

from rosenblatt.errors import DamagedLog, OutputError, UnknownEntry, UnknownModel
from rosenblatt.serve.folder import (
    ACKNOWLEDGED,
    LOG,
    RESTORE,
    RESTORE_OR_ACCEPT,
    SNAPSHOTS,
    AcknowledgedCommits,
    FolderLock,
    check_files,
    connect,
    cut_wal,
    damage_named,
    flush_folder,
    give_back_pages,
)
from rosenblatt.serve.state import LEARN, SET_BACK, Entry, set_back_target

# Before its number, the name of a model whose entries are being removed, or have not all been written
DELETED, IMPORTED = "(deleted) ", "(imported) "
REMOVED_BYTES = 4 << 20  # of entries that are removed in one transaction
_ENTRY_TYPES = {(int, int, str, bytes, kind) for kind in (str, type(None))}  # of the fields of an entry
_PAGES_BEFORE_CHECKPOINT = 4_000  # of 4 KiB: what is written twice goes to the disk in larger pieces

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('format', 1), ('commits', 0);
CREATE TABLE models (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, created INTEGER NOT NULL, seq INTEGER, chain BLOB);
CREATE TABLE log (
    entry INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL,
    kind TEXT NOT NULL, key TEXT, digest BLOB, chain BLOB NOT NULL, payload BLOB NOT NULL);
CREATE UNIQUE INDEX log_by_seq ON log (model, seq);
CREATE INDEX log_by_set_back ON log (model, seq) WHERE kind = 'set_back';
CREATE UNIQUE INDEX log_by_key ON log (model, key) WHERE key IS NOT NULL;
CREATE TABLE outcomes (model INTEGER, seq INTEGER, outcome TEXT, PRIMARY KEY (model, seq)) WITHOUT ROWID;
CREATE TABLE labelled (prediction TEXT PRIMARY KEY, model INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE snapshots (
    model INTEGER, seq INTEGER, time INTEGER NOT NULL, digest TEXT NOT NULL, bytes INTEGER NOT NULL, history TEXT NOT NULL,
    PRIMARY KEY (model, seq)) WITHOUT ROWID;
"""


# For models of which entries were archived; an older log gets these tables when it is written to.
_ARCHIVE_TABLES = """
CREATE TABLE IF NOT EXISTS bases (
    model INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time INTEGER NOT NULL, chain BLOB NOT NULL, created BLOB NOT NULL,
    content BLOB NOT NULL, history TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS archives (
    model INTEGER, first INTEGER, last INTEGER NOT NULL, time INTEGER NOT NULL, file TEXT NOT NULL, digest TEXT NOT NULL,
    bytes INTEGER NOT NULL, PRIMARY KEY (model, first)) WITHOUT ROWID;
"""


class ModelRecord(NamedTuple):
    """A model in the log."""

    id: int
    name: str
    created: int  # milliseconds since 1970


class SnapshotRecord(NamedTuple):
    """A model file that was saved at an entry."""

    model: int
    seq: int
    time: int
    digest: str  # XXH64 of the file; empty where nothing had been learned yet
    bytes: int
    history: str  # JSON

    @property
    def file(self) -> str:
        """The name of the file in the folder of snapshots."""
        return f"{self.model}-{self.seq:012d}.model"


class BaseRecord(NamedTuple):
    """What the log keeps of a model in place of entries that were archived."""

    model: int
    seq: int  # the last of them
    time: int  # when they were archived
    chain: bytes  # of the last of them
    created: bytes  # the payload of the first entry
    content: bytes  # the model file after the last; empty where nothing had been learned
    history: str  # JSON
    digest: bytes = b""  # of all this

    def with_digest(self) -> BaseRecord:
        """Return it with its digest."""
        head = json.dumps([self.model, self.seq, self.time, self.history]).encode()
        parts = [xxh3_128_digest(part) for part in (head, self.chain, self.created, self.content)]
        return self._replace(digest=xxh3_128_digest(b"".join(parts)))


class ArchiveRecord(NamedTuple):
    """A file with entries that were archived."""

    model: int
    first: int
    last: int
    time: int
    file: str  # its name
    digest: str  # XXH64 of its lines
    bytes: int  # of its lines


class LoggedAnswer(NamedTuple):
    """The entry that a request with the same key made before."""

    seq: int
    digest: bytes | None  # of the request; None in an imported log
    outcome: str | None  # JSON


def archived_error(archived: int, entry: int) -> UnknownEntry:
    """Return the error that an entry was archived, with all up to another one."""
    return UnknownEntry(
        f"the entries 1 to {archived} of this model were archived, and with them what is needed for entry {entry}",
        value=entry,
        hint=f"the log begins with entry {archived + 1}",
    )


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def first_chain(name: str) -> bytes:
    """Compute what stands before the chain of a model's first entry, so that its name cannot change unnoticed either.

    Parameters
    ----------
    name : str
        The name of the model.

    Returns
    -------
    chain : bytes
    """
    return xxh3_128_digest(name.encode("utf-8", "surrogatepass"))


def chain_of(before: bytes, model: int, entry: Entry) -> bytes:
    """Compute the checksum of an entry and of all entries of its model before it.

    Parameters
    ----------
    before : bytes
        That of the entry before.
    model : int
        The number of the model.
    entry : Entry
        The entry.

    Returns
    -------
    chain : bytes
        16 bytes, XXH3.
    """
    head = json.dumps([model, entry.seq, entry.time, entry.kind, entry.key]).encode()
    return xxh3_128_digest(before + xxh3_128_digest(head) + xxh3_128_digest(entry.payload))


class Log:
    """The log of a folder, opened by the one process that writes to it.

    Parameters
    ----------
    folder : Path
        The folder; it is made if there is none.
    accept_loss : bool, default=False
        Open what is there even if acknowledged commits are missing.

    Raises
    ------
    FolderInUse
        If another process has it open.
    DamagedLog
        If something that was acknowledged is missing.
    """

    def __init__(self, folder: Path, accept_loss: bool = False):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / SNAPSHOTS).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise OutputError(f"the folder cannot be made: {error.strerror}", folder, error.errno) from None
        self.folder, self.path = folder, folder / LOG
        self._lock = FolderLock(folder)
        self._acknowledged: AcknowledgedCommits | None = None
        self.failure: str | None = None  # why nothing can be written any more
        try:
            acknowledged = folder / ACKNOWLEDGED
            if not self.path.exists() and (not acknowledged.exists() or AcknowledgedCommits.read(acknowledged) == 0):
                self._make()
            elif not accept_loss:
                check_files(folder, RESTORE_OR_ACCEPT)
            elif not self.path.exists():
                raise DamagedLog("the file is missing", path=self.path, hint=RESTORE)
            self.read = LogReader(self.path)
        except BaseException:
            self._lock.close()
            raise

    def begin_writing(self) -> None:
        """Open the log to write to it; before that, nothing in the folder is changed."""
        with damage_named(self.path):
            database = connect(self.path)
            database.execute("PRAGMA synchronous = FULL")
            database.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
            database.executescript(f"BEGIN;{_ARCHIVE_TABLES}COMMIT;")
            ended = "UPDATE models SET name = ? || id WHERE name = ? || id"  # by the end of the process
            database.execute(ended, (DELETED, IMPORTED))
            commits = database.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()
        if commits is None:
            raise DamagedLog("it does not say how many commits it has", path=self.path, hint=RESTORE)
        self.commits: int = commits[0]
        self.read.close()
        self._database, self.read = database, LogReader(self.path, database)
        self._acknowledged = AcknowledgedCommits(self.folder / ACKNOWLEDGED)
        self._acknowledged.reset(self.commits)

    def _make(self) -> None:
        """Make an empty log. It gets its name last, so that one whose making was interrupted is not there."""
        new = self.path.with_suffix(".new")
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # SQLite's other files follow its mode
        with closing(connect(new)) as database:
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.executescript(f"BEGIN;{_TABLES}COMMIT;")
        with closing(AcknowledgedCommits(self.folder / ACKNOWLEDGED)) as file:
            file.reset(0)
            file.flush()
        os.rename(new, self.path)
        flush_folder(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the log; if it was written to, SQLite writes all of it into one file."""
        self.read.close()
        if self._acknowledged is not None:
            self._acknowledged.flush()
            self._acknowledged.close()
        self._lock.close()

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit what the block writes: all of it when it ends, or nothing if an error ends it."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
            self._database.execute("UPDATE meta SET value = value + 1 WHERE name = 'commits'")
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self.commits += 1
        assert self._acknowledged is not None
        try:
            self._acknowledged.write(self.commits)
        except OSError as error:  # what was committed is committed; but the next loss would not be noticed
            self.failure = f"the file {ACKNOWLEDGED} cannot be written: {error.strerror}"

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what the block writes, within a transaction, if an error ends it."""
        self._database.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # a full disk may have ended it
                self._database.execute("ROLLBACK TO part")
                self._database.execute("RELEASE part")
            raise
        self._database.execute("RELEASE part")

    def add_model(self, name: str) -> ModelRecord:
        """Add a model, within a transaction."""
        time = now()
        cursor = self._database.execute("INSERT INTO models (name, created) VALUES (?, ?)", (name, time))
        assert cursor.lastrowid is not None
        return ModelRecord(cursor.lastrowid, name, time)

    def begin_import(self) -> int:
        """Add a model without a name, whose entries follow, within a transaction; return its number."""
        cursor = self._database.execute("INSERT INTO models (name, created) VALUES (?, ?)", (IMPORTED, now()))
        self._database.execute("UPDATE models SET name = ? || id WHERE id = ?", (IMPORTED, cursor.lastrowid))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def name_import(self, model: int, name: str) -> ModelRecord:
        """Give a model its name, after its last entry, within a transaction."""
        self._database.execute("UPDATE models SET name = ? WHERE id = ?", (name, model))
        return ModelRecord(*self.read.find(model))

    def add(self, model: int, entry: Entry, digest: bytes | None, before: bytes) -> bytes:
        """Add an entry, within a transaction.

        Parameters
        ----------
        model : int
            The number of its model.
        entry : Entry
            The entry.
        digest : bytes or None
            A checksum of the request, where it has a key.
        before : bytes
            The chain of the entry before.

        Returns
        -------
        chain : bytes
            The chain of this entry.
        """
        chain = chain_of(before, model, entry)
        self._database.execute(
            "INSERT INTO log (model, seq, time, kind, key, digest, chain, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (model, entry.seq, entry.time, entry.kind, entry.key, digest, chain, entry.payload),
        )
        return chain

    def set_last(self, model: int, seq: int, chain: bytes) -> None:
        """Note the last entry of a model, within a transaction: where an index is damaged, it may not be found."""
        self._database.execute("UPDATE models SET seq = ?, chain = ? WHERE id = ?", (seq, chain, model))

    def add_outcomes(self, outcomes: Iterable[tuple[int, int, str]]) -> None:
        """Add what entries did, (model, seq, JSON) each, within a transaction."""
        self._database.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)", outcomes)

    def add_labelled(self, predictions: Iterable[str], model: int, seq: int) -> None:
        """Note that predictions have got their label, within a transaction; IntegrityError if one had it already."""
        ordered = to_json(sorted(predictions)).decode()  # as in the table: a fifth of the time
        self._database.execute("INSERT INTO labelled SELECT value, ?, ? FROM json_each(?)", (model, seq, ordered))

    def add_snapshot(self, snapshot: SnapshotRecord) -> None:
        """Note that there is a snapshot, within a transaction."""
        self._database.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", snapshot)

    def add_archive(self, archive: ArchiveRecord, base: BaseRecord) -> None:
        """Note that entries were archived, within a transaction; `purge` removes them."""
        self._database.execute("INSERT INTO archives VALUES (?, ?, ?, ?, ?, ?, ?)", archive)
        self._database.execute("INSERT OR REPLACE INTO bases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", base)
        self._database.execute("DELETE FROM snapshots WHERE model = ? AND seq <= ?", (base.model, base.seq))

    def remove_snapshots(self, model: int, seqs: Iterable[int]) -> None:
        """Forget snapshots, within a transaction."""
        pairs = [(model, seq) for seq in seqs]
        self._database.executemany("DELETE FROM snapshots WHERE model = ? AND seq = ?", pairs)

    def remove_model(self, model: int) -> None:
        """Let a model have a name that none can have, within a transaction; `purge` removes its entries."""
        self._database.execute("UPDATE models SET name = ? || id WHERE id = ?", (DELETED, model))

    def purge(self) -> bool:
        """Remove some of the entries that were archived, or whose models were deleted; return whether there may be more."""
        gone = self._database.execute("SELECT id FROM models WHERE name = ? || id LIMIT 1", (DELETED,)).fetchone()
        if gone is not None:
            if not self._remove("SELECT entry, length(payload) FROM log WHERE model = ? LIMIT 1000", *gone):
                with self.transaction() as database:
                    for table in ("outcomes", "labelled", "snapshots", "archives", "bases"):
                        database.execute(f"DELETE FROM {table} WHERE model = ?", gone)
                    database.execute("DELETE FROM models WHERE id = ?", gone)
            return True
        archived = "SELECT entry, length(payload) FROM log JOIN bases USING (model) WHERE log.seq <= bases.seq LIMIT 1000"
        if not self._remove(archived):
            return self._give_back_pages()
        with self.transaction() as database:
            for archived_to in database.execute("SELECT model, seq FROM bases").fetchall():
                database.execute("DELETE FROM outcomes WHERE model = ? AND seq <= ?", archived_to)
        return True

    def _remove(self, query: str, *values: object) -> bool:
        """Remove the first entries that a query finds, with their bytes; return whether there are any.

        They are few in one transaction: its pages go to the write-ahead log first, and learning waits for it.
        """
        entries: list[tuple[int]] = []
        size = 0
        for entry, length in self._database.execute(query, values).fetchall():
            entries.append((entry,))
            size += length
            if size > REMOVED_BYTES:
                break
        if entries:
            with self.transaction() as database:
                database.executemany("DELETE FROM log WHERE entry = ?", entries)
        return bool(entries)

    def _give_back_pages(self, most: int = 1_000) -> bool:
        """Give some pages that are not used any more back to the disk; return whether there may be more."""
        free = self._database.execute("PRAGMA freelist_count").fetchone()[0]
        if not free:
            return False
        give_back_pages(self._database, most)
        left = self._database.execute("PRAGMA freelist_count").fetchone()[0]
        if left < free and left:
            return True
        return not cut_wal(self._database)

    def disk_bytes(self) -> int:
        """Return the bytes of the log on the disk, with what SQLite has not put into its place yet."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def flush(self) -> None:
        """Wait until the disk has the number of the last acknowledged commit."""
        assert self._acknowledged is not None
        self._acknowledged.flush()


class LogReader:
    """Reads a log, also while another connection writes to it.

    Parameters
    ----------
    path : Path
        The file of the log.
    database : sqlite3.Connection, optional
        A connection to it; by default a new one, which only reads.
    """

    def __init__(self, path: Path, database: sqlite3.Connection | None = None):
        self.path = path
        with damage_named(path):
            self._database = connect(path, read_only=True) if database is None else database

    def __enter__(self) -> Self:
        """Read the log as it is at one moment, as long as the block runs."""
        self._database.execute("BEGIN")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def models(self) -> list[ModelRecord]:
        """Return the models."""
        with damage_named(self.path):
            rows = self._database.execute("SELECT id, name, created FROM models ORDER BY id").fetchall()
        for number, name, created in rows:
            if type(name) is not str or type(created) is not int:
                raise self._damage("it has no name", number)
        for number in self._numbers_in_log():
            if number not in {row[0] for row in rows}:
                problem = "it has entries, and is not in the list of models"
                raise self._damage(problem, number)
        return [ModelRecord(*row) for row in rows if row[1] not in (f"{DELETED}{row[0]}", f"{IMPORTED}{row[0]}")]

    def find(self, model: int) -> tuple[int, str, int]:
        """Return the number, the name and the time of a model."""
        return self._one("SELECT id, name, created FROM models WHERE id = ?", model)

    def _damage(self, problem: str, model: int, entry: int | None = None) -> DamagedLog:
        """Return an error that names the model, by its number if its name cannot be read."""
        name: object = None
        with suppress(sqlite3.Error, UnicodeDecodeError):
            found = self._database.execute("SELECT name FROM models WHERE id = ?", (model,)).fetchone()
            name = found[0] if found else None
        known = name if isinstance(name, str) else str(model)
        return DamagedLog(problem, path=self.path, model=known, entry=entry, hint=RESTORE)

    def _numbers_in_log(self) -> Iterator[int]:
        """Yield the numbers of the models that have entries, each by one step of the index."""
        number = -1
        with damage_named(self.path):
            while True:
                query = "SELECT min(model) FROM log WHERE model > ?"
                found = self._database.execute(query, (number,)).fetchone()[0]
                if found is None:
                    return
                number = found
                yield number

    def last(self, model: int) -> tuple[int, bytes, int]:
        """Return seq, chain and time of the last entry of a model."""
        # One statement, so that no commit can come between what the log has and what is noted of it.
        both = self._one(
            "SELECT log.seq, log.chain, log.time, models.seq, models.chain "
            "FROM models LEFT JOIN log ON log.model = models.id "
            "WHERE models.id = ? ORDER BY log.seq DESC LIMIT 1",
            model,
        )
        if both is None or both[0] is None or both[:2] != both[3:]:
            seq = None if both is None or type(both[3]) is not int else both[3]
            problem = "its last entry is not there, or has changed"
            raise self._damage(problem, model, seq)
        return both[:3]

    def chain(self, model: int, seq: int) -> bytes:
        """Return the chain of an entry; before the first, what stands for the name of the model."""
        if seq == 0:
            found = self._one("SELECT name FROM models WHERE id = ?", model)
            if found is None or found[0] == f"{DELETED}{model}":
                raise UnknownModel(str(model))  # it was deleted meanwhile
            return first_chain(found[0])
        row = self._one("SELECT chain FROM log WHERE model = ? AND seq = ?", model, seq)
        if row is None:
            row = (
                self._one("SELECT chain FROM bases WHERE model = ? AND seq = ?", model, seq)
                if self.base_seq(model)
                else None
            )
        if row is None:
            raise self._damage("the entry is missing", model, seq)
        return row[0]

    def base_seq(self, model: int) -> int:
        """Return the last entry of a model that was archived; 0 if none was."""
        if self._one("SELECT 1 FROM sqlite_master WHERE name = 'bases'") is None:
            return 0
        found = self._one("SELECT seq FROM bases WHERE model = ?", model)
        if found is not None and type(found[0]) is not int:
            raise self._damage("what the log says of its archives is not a number", model)
        return 0 if found is None else found[0]

    def base(self, model: int) -> BaseRecord | None:
        """Return what the log keeps in place of the entries of a model that were archived; None if none were."""
        if not self.base_seq(model):
            return None
        fields = self._one("SELECT * FROM bases WHERE model = ?", model)
        try:
            record = BaseRecord(*fields)
            whole = record.with_digest() == record
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise self._damage("the state after its archived entries has changed", model)
        return record

    def archives(self, model: int) -> list[ArchiveRecord]:
        """Return the archives of a model, the first one first."""
        if not self.base_seq(model):
            return []
        with damage_named(self.path):
            rows = self._database.execute("SELECT * FROM archives WHERE model = ? ORDER BY first", (model,)).fetchall()
        records = [ArchiveRecord(*row) for row in rows]
        for record in records:
            if [type(field) for field in record] != [int, int, int, int, str, str, int]:
                raise self._damage("what the log says of an archive cannot be read", model)
        adjoin = [(record.last, following.first) for record, following in pairwise(records)]
        if not records or records[-1].last != self.base_seq(model) or any(last + 1 != first for last, first in adjoin):
            raise self._damage("what the log says of its archives is not complete", model)
        return records

    def created(self, model: int) -> bytes:
        """Return the payload of the entry that created a model, also where it was archived."""
        base = self.base(model)
        return next(iter(self.entries(model, 1, 1))).payload if base is None else base.created

    def last_before(self, model: int, time: int) -> int:
        """Return the last entry of a model that was written before a time, in milliseconds since 1970; 0 if none was."""
        found = self._one("SELECT max(seq) FROM log WHERE model = ? AND time < ?", model, time)
        return found[0] or 0

    def entries(self, model: int, first: int | None = None, last: int | None = None) -> Iterator[Entry]:
        """Yield entries of a model in order, each checked against its checksum.

        Parameters
        ----------
        model : int
            The number of the model.
        first, last : int
            The first and the last seq; None: all that there are, after those that were archived.

        Yields
        ------
        entry : Entry

        Raises
        ------
        DamagedLog
            At an entry that is missing or has changed.
        UnknownEntry
            If the first was archived.
        """
        archived = self.base_seq(model)
        first = archived + 1 if first is None else first
        if first <= archived:
            raise archived_error(archived, first)
        with damage_named(self.path):
            chain = self.chain(model, first - 1)
            end = self.last(model)[0] if last is None else last
            rows = self._database.execute(
                "SELECT seq, time, kind, payload, key, chain FROM log WHERE model = ? AND seq BETWEEN ? AND ? ORDER BY seq",
                (model, first, end),
            )
            expected = first
            for *fields, stored in rows:
                if tuple(map(type, fields)) not in _ENTRY_TYPES:
                    raise self._damage("it is not an entry", model, expected)
                entry = Entry(*fields)
                chain = chain_of(chain, model, entry) if entry.seq == expected else b""
                if chain != stored:
                    problem = "an entry is missing" if entry.seq != expected else "its checksum is wrong: it has changed"
                    raise self._damage(problem, model, expected)
                yield entry
                expected += 1
            if expected != end + 1:
                raise self._damage("the entry is missing", model, expected)

    def _one(self, query: str, *values: object) -> Any:
        """Return the first row of a query, or None."""
        with damage_named(self.path):
            return self._database.execute(query, values).fetchone()

    def set_backs(self, model: int) -> dict[int, int]:
        """Return the entries that set a model back, each with the entry whose state it is set back to."""
        query = "SELECT seq FROM log WHERE model = ? AND kind = ? AND seq > ?"
        with damage_named(self.path):
            seqs = [seq for (seq,) in self._database.execute(query, (model, SET_BACK, self.base_seq(model)))]
        return {seq: set_back_target(next(self.entries(model, seq, seq))) for seq in seqs}

    def snapshots(self, model: int) -> list[SnapshotRecord]:
        """Return the snapshots of a model, the newest first."""
        query = "SELECT model, seq, time, digest, bytes, history FROM snapshots WHERE model = ? ORDER BY seq DESC"
        with damage_named(self.path):
            return [SnapshotRecord(*row) for row in self._database.execute(query, (model,))]

    def answer(self, model: int, key: str) -> LoggedAnswer | None:
        """Return the entry that a request with this key made, if there is one."""
        query = "SELECT log.seq, digest, outcome FROM log LEFT JOIN outcomes USING (model, seq) WHERE model = ? AND key = ?"
        row = self._one(query, model, key)
        return None if row is None else LoggedAnswer(*row)

    def unanswered(self, model: int, after: int) -> list[int]:
        """Return the entries after one whose requests had a key, and of which the log does not say what they did."""
        query = (
            "SELECT log.seq FROM log LEFT JOIN outcomes USING (model, seq) "
            "WHERE model = ? AND log.seq > ? AND kind = ? AND key IS NOT NULL AND outcome IS NULL ORDER BY log.seq"
        )
        with damage_named(self.path):
            return [seq for (seq,) in self._database.execute(query, (model, after, LEARN))]

    def labelled(self, prediction: str) -> int | None:
        """Return the entry that gave a prediction its label, if there is one."""
        row = self._one("SELECT seq FROM labelled WHERE prediction = ?", prediction)
        return None if row is None else row[0]

    def size(self, model: int, after: int = 0) -> int:
        """Return the bytes of all payloads of a model after an entry."""
        query = "SELECT coalesce(sum(length(payload)), 0) FROM log WHERE model = ? AND seq > ?"
        return self._one(query, model, after)[0]

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file; an empty list if nothing."""
        with damage_named(self.path):
            found = [row[0] for row in self._database.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def backup(self, target: Path) -> None:
        """Copy the log as it is at one moment, while it is written to.

        Parameters
        ----------
        target : Path
            The file to make.
        """
        with closing(sqlite3.connect(target)) as copy:
            self._database.backup(copy)  # in one step: one of several would begin again whenever the log is written to
