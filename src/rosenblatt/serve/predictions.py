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


class PredictionId(NamedTuple):
    """The id of a prediction, which says where its row is."""

    word: str  # of the process that gave it
    request: int
    place: int  # in the request
    text: str

    @classmethod
    def parse(cls, value: object) -> PredictionId:
        """Return the id that a text is; one that no prediction has, if it is none.

        Parameters
        ----------
        value : object
            A value of JSON.

        Returns
        -------
        id : PredictionId
        """
        parts = _ID.fullmatch(value) if isinstance(value, str) else None
        if parts is None:
            return cls("", -1, 0, shown(value))
        return cls(parts[1], int(parts[2]), int(parts[3]), shown(value))


class StoredExamples(NamedTuple):
    """The examples of a request to predict."""

    word: str
    examples: list[dict[str, Any]]
    days: float  # that they are kept

    def row(self, prediction: PredictionId) -> dict[str, Any]:
        """Return the row of a prediction.

        Parameters
        ----------
        prediction : PredictionId
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
        if prediction.word != self.word or prediction.place >= len(self.examples):
            raise UnknownEntry(
                f"there is no prediction {prediction.text} of this model",
                hint=f"rows are kept for {self.days:g} days, and only if the request does not say store: false",
            )
        example = self.examples[prediction.place]
        return {name: example[name] for name in ("x", "text") if name in example}


class PredictionStore:
    """The rows of predictions. `store` and `examples` are called in one thread, `tidy` in any.

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

    def examples(self, model: int, request: int) -> StoredExamples:
        """Return the examples that a request to predict has stored; none if it is not there, or not any more.

        Parameters
        ----------
        model : int
            The number of the model.
        request : int
            The number of the request.

        Returns
        -------
        examples : StoredExamples
        """
        found = self._database.execute(
            "SELECT word, body FROM predictions WHERE request = ? AND model = ?", (request, model)
        ).fetchone()
        if found is None:
            return StoredExamples("", [], self._days)
        return StoredExamples(found[0], parse_json(found[1])["examples"], self._days)

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
