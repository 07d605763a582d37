"""Rows that were predicted are kept for labels that come later. The id of a prediction says where its row is.

They are in a database of their own, without the log's promise: what is answered has been handed to the system, so that it
survives the process, and reaches the disk a little later. If they cannot be written, predictions have no ids.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from rosenblatt.errors import FormatError, UnknownEntry, shown
from rosenblatt.serve.disk import DiskSpace
from rosenblatt.serve.folder import cut_wal, give_back_pages
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.log import now
from rosenblatt.serve.state import parse_json

PREDICTIONS = "predictions.sqlite"
_REQUEST = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})")  # of an id: what stands before the dot
_DAY = 86_400_000  # milliseconds
SHARE = 4  # of the room that the folder may take: rows of predictions may take one part of so many
INCREMENTAL = 2  # SQLite's number for giving pages back to the disk some at a time
BUSY_SECONDS = 0.02  # that a prediction waits for its row to be stored, before it is answered without an id
REMOVED_BYTES = 8 << 20  # in one transaction, so that predictions need not wait for it
LARGE_WAL = 4 << 20  # bytes of SQLite's write-ahead log, which is then cut
ROW_BYTES = 100  # of a row besides its body

_TABLES = """
CREATE TABLE IF NOT EXISTS predictions (
    request INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT NOT NULL, model INTEGER NOT NULL, time INTEGER NOT NULL,
    body BLOB NOT NULL);
"""


class PredictionStore:
    """The rows of predictions. `store` and `rows` are called in one thread, `tidy` in any.

    Parameters
    ----------
    folder : Path
        The folder of the server.
    limits : Limits
        How long rows are kept, and how much room the folder may take, of which they get a quarter.
    disk : DiskSpace
        How much of it is left.
    """

    def __init__(self, folder: Path, limits: Limits, disk: DiskSpace):
        self._path, self._days, self._disk = folder / PREDICTIONS, limits.prediction_days, disk
        self._wal = folder / f"{PREDICTIONS}-wal"
        self._most = None if limits.disk_bytes is None else limits.disk_bytes // SHARE
        if not self._path.exists():
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._word = token_hex(4)  # numbers may be given again after a power failure; the ids are others then
        try:
            self._connect().close()
        except sqlite3.DatabaseError:  # a damaged file, which promised nothing: begin anew
            self._path.replace(folder / f"{PREDICTIONS}.damaged")
            self._wal.unlink(missing_ok=True)
            (folder / f"{PREDICTIONS}-shm").unlink(missing_ok=True)
        with closing(self._connect()) as database:
            if database.execute("PRAGMA auto_vacuum").fetchone()[0] != INCREMENTAL:  # made by an earlier version
                with suppress(sqlite3.Error):
                    database.execute("VACUUM")
        self._database = self._connect(BUSY_SECONDS)
        self._database.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, so that no prediction waits for the disk
        self._left = 0  # bytes that may be stored until `tidy` looks again
        self.tidy()

    def _connect(self, timeout: float = 10.0) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=timeout, isolation_level=None, check_same_thread=False)
        database.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TABLES)
        return database

    def _size(self) -> int:
        """Return the bytes of the database on the disk."""
        return sum(file.stat().st_size for file in (self._path, self._wal) if file.exists())

    def store(self, model: int, body: bytes) -> int | None:
        """Store the examples of a request; return its number, or None if that cannot be done, or there is no room.

        It takes less time than handing them to another thread, since nothing waits for the disk.

        Parameters
        ----------
        model : int
            The number of the model.
        body : bytes
            The body of the request, JSON.

        Returns
        -------
        request : int or None
        """
        if 2 * len(body) > self._left:  # it is written twice
            return None
        self._left -= 2 * len(body) + ROW_BYTES
        try:
            return self._database.execute(
                "INSERT INTO predictions (word, model, time, body) VALUES (?, ?, ?, ?)", (self._word, model, now(), body)
            ).lastrowid
        except sqlite3.Error:
            return None

    def ids(self, request: int | None, count: int) -> list[str | None]:
        """Return the ids of the predictions of a request.

        Parameters
        ----------
        request : int or None
            Its number.
        count : int
            How many predictions it has.

        Returns
        -------
        ids : list of str
            None each where there is no number.
        """
        return [None] * count if request is None else [f"{self._word}-{request}.{place}" for place in range(count)]

    def rows(self, model: int, request: str) -> dict[str, dict[str, Any]]:
        """Return the examples of a request to predict by the ids of their predictions.

        Parameters
        ----------
        model : int
            The number of the model.
        request : str
            The id of one of the predictions, without the dot and the place.

        Returns
        -------
        rows : dict
            Empty if they are not there, or not any more, or of another model.
        """
        parts = _REQUEST.fullmatch(request)
        if parts is None:
            return {}
        word, number = parts[1], int(parts[2])
        query = "SELECT body FROM predictions WHERE request = ? AND word = ? AND model = ?"
        try:
            found = self._database.execute(query, (number, word, model)).fetchone()
            examples = [] if found is None else parse_json(found[0])["examples"]
        except (sqlite3.Error, FormatError):  # a damaged file: its rows are gone
            return {}
        return {f"{request}.{place}": example for place, example in enumerate(examples)}

    def no_such_prediction(self, prediction: object) -> UnknownEntry:
        """Return the error that a prediction is not there."""
        return UnknownEntry(
            f"there is no prediction {shown(prediction)} of this model",
            hint=f"rows are kept for {self._days:g} days, and only if the request does not say store: false",
        )

    def tidy(self, needs_room: bool = False) -> None:
        """Remove rows that are too old, and the oldest ones where all take more room than they may; let the disk have the
        others. In any thread.

        Parameters
        ----------
        needs_room : bool, default=False
            Remove the older half of the rows, because learning needs the room.
        """
        with suppress(sqlite3.Error, OSError), closing(self._connect()) as database:
            last = now() - int(self._days * _DAY)
            while self._remove(database, "time < ?", last, REMOVED_BYTES):
                pass
            self._shorten(database, needs_room)

            too_much = self._too_much(needs_room)
            while too_much > 0 and (removed := self._remove(database, "? >= 0", 0, min(too_much, REMOVED_BYTES))):
                too_much -= removed
            if database.execute("PRAGMA freelist_count").fetchone()[0]:
                give_back_pages(database)
                self._shorten(database, needs_room)
            self._left = 0 if needs_room else self._room(self._size())

    def _shorten(self, database: sqlite3.Connection, needs_room: bool) -> None:
        """Bring the write-ahead log to the disk, and cut it where it is large or room is needed."""
        database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        large = 0 if needs_room else LARGE_WAL if self._most is None else min(LARGE_WAL, self._most // 8)
        if self._wal.exists() and self._wal.stat().st_size > large:
            cut_wal(database)  # soon done, since little is left to copy

    def _too_much(self, needs_room: bool) -> int:
        """Return how many bytes to remove: where there is little room, enough that it is not needed again soon."""
        size = self._size()
        if needs_room:
            return size // 2 + 1
        left = self._room(size)
        if self._most is None:
            return max(-left, 0)
        return size - self._most // 2 if left < self._most // 4 else 0

    def _room(self, size: int) -> int:
        """Return how many bytes may still be stored, beside those that are; below 0 if these are too many."""
        left = self._disk.left()
        return left if self._most is None else min(left, self._most - size)

    def _remove(self, database: sqlite3.Connection, condition: str, value: int, most: int) -> int:
        """Remove the oldest rows for which a condition on one value holds, until so many bytes; return how many it were."""
        oldest = f"SELECT request, length(body) FROM predictions WHERE {condition} ORDER BY request LIMIT 1000"
        removed, last = 0, None
        for request, size in database.execute(oldest, (value,)):
            removed, last = removed + size + ROW_BYTES, request
            if removed >= most:
                break
        if last is not None:
            database.execute(f"DELETE FROM predictions WHERE request <= ? AND {condition}", (last, value))
        return removed

    def close(self) -> None:
        """Close the database."""
        self._database.close()
