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

from rosenblatt.errors import UnknownEntry, shown
from rosenblatt.serve.log import now
from rosenblatt.serve.state import parse_json

PREDICTIONS = "predictions.sqlite"
_REQUEST = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})")  # of an id: what stands before the dot
_DAY = 86_400_000  # milliseconds

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
    days : float
        How long rows are kept.
    """

    def __init__(self, folder: Path, days: float):
        self._path, self._days = folder / PREDICTIONS, days
        if not self._path.exists():
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._word = token_hex(4)  # numbers may be given again after a power failure; the ids are others then
        self._database = self._connect()
        self._database.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, so that no prediction waits for the disk

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(_TABLES)
        return database

    def store(self, model: int, body: bytes) -> int | None:
        """Store the examples of a request; return its number, or None if that cannot be done.

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
        found = self._database.execute(
            "SELECT body FROM predictions WHERE request = ? AND word = ? AND model = ?", (number, word, model)
        ).fetchone()
        if found is None:
            return {}
        return {f"{request}.{place}": example for place, example in enumerate(parse_json(found[0])["examples"])}

    def no_such_prediction(self, prediction: object) -> UnknownEntry:
        """Return the error that a prediction is not there."""
        return UnknownEntry(
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
        """Close the database."""
        self._database.close()
