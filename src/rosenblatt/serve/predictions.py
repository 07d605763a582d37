"""Rows that were predicted are kept for labels that come later. The id of a prediction says where its row is.

They are in a database of their own, without the log's promise: what is answered has been handed to the system, so that it
survives the process, and reaches the disk a little later. If they cannot be written, predictions have no ids.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from rosenblatt.errors import UnknownEntry, shown
from rosenblatt.serve.log import now
from rosenblatt.serve.state import parse_json

PREDICTIONS = "predictions.sqlite"
_ID = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})\.([0-9]{1,7})")
_DAY = 86_400_000  # milliseconds

_TABLES = """
CREATE TABLE IF NOT EXISTS predictions (
    request INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT NOT NULL, model INTEGER NOT NULL, time INTEGER NOT NULL,
    body BLOB NOT NULL);
"""


class _Waiting(NamedTuple):
    model: int
    body: bytes
    done: asyncio.Future[int | None]


class PredictionStore:
    """The rows of predictions, written by a thread of its own.

    Parameters
    ----------
    folder : Path
        The folder of the server.
    days : float
        How long rows are kept.
    """

    def __init__(self, folder: Path, days: float):
        self._path, self._days = folder / PREDICTIONS, days
        if not self._path.exists():
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._word = token_hex(4)  # numbers may be given again after a power failure; the ids are others then
        self._reader = self._connect()
        self._waiting: deque[_Waiting] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="predictions", daemon=True)
        self._thread.start()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TABLES)
        return database

    async def store(self, model: int, body: bytes) -> int | None:
        """Store the examples of a request; return its number, or None if that cannot be done.

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
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(model, body, done))
        self._wake.set()
        return await done

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

    def row(self, model: int, prediction: object) -> dict[str, Any]:
        """Return the row of a prediction.

        Parameters
        ----------
        model : int
            The number of the model.
        prediction : object
            The id of the prediction.

        Returns
        -------
        example : dict
            With "x" or "text".

        Raises
        ------
        UnknownEntry
            If there is no such prediction of this model, or not any more.
        """
        parts = _ID.fullmatch(prediction) if isinstance(prediction, str) else None
        if parts is not None:
            word, request, place = parts[1], int(parts[2]), int(parts[3])
            found = self._reader.execute(
                "SELECT word, model, body FROM predictions WHERE request = ?", (request,)
            ).fetchone()
            if found is not None and found[:2] == (word, model):
                examples = parse_json(found[2])["examples"]
                if place < len(examples):
                    return {name: value for name, value in examples[place].items() if name in ("x", "text")}
        raise UnknownEntry(
            f"there is no prediction {shown(prediction)} of this model",
            hint=f"rows are kept for {self._days:g} days, and only if the request does not say store: false",
        )

    def tidy(self) -> None:
        """Remove rows that are too old, and let the disk have the others; in any thread."""
        with suppress(sqlite3.Error), closing(self._connect()) as database:
            oldest = now() - int(self._days * _DAY)
            first = database.execute("SELECT time FROM predictions ORDER BY request LIMIT 1").fetchone()
            if first is not None and first[0] < oldest:
                old = "SELECT request FROM predictions WHERE time < ? ORDER BY request LIMIT 1000"
                database.execute(f"DELETE FROM predictions WHERE request IN ({old})", (oldest,))
            database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Write what waits and stop."""
        self._stopping = True
        self._wake.set()
        self._thread.join()
        self._reader.close()

    # In its thread

    def _run(self) -> None:
        database = self._connect()
        database.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, so that no prediction waits for the disk
        while not self._stopping or self._waiting:
            self._wake.wait()
            self._wake.clear()
            group = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if group:
                self._deliver(group, self._write(database, group))
        database.close()

    def _write(self, database: sqlite3.Connection, group: Sequence[_Waiting]) -> list[int | None]:
        numbers: list[int | None] = []
        try:
            database.execute("BEGIN IMMEDIATE")
            for waiting in group:
                cursor = database.execute(
                    "INSERT INTO predictions (word, model, time, body) VALUES (?, ?, ?, ?)",
                    (self._word, waiting.model, now(), waiting.body),
                )
                numbers.append(cursor.lastrowid)
            database.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            return [None] * len(group)
        return numbers

    @staticmethod
    def _deliver(group: Sequence[_Waiting], numbers: Sequence[int | None]) -> None:
        def resolve() -> None:
            for waiting, number in zip(group, numbers, strict=True):
                if not waiting.done.done():
                    waiting.done.set_result(number)

        with suppress(RuntimeError):  # the loop has been closed
            group[0].done.get_loop().call_soon_threadsafe(resolve)
