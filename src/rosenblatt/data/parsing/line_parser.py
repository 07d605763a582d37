"""What formats of one example a line share: a compiled loop fills arrays with rows, and all else is done here.

The loop knows nothing of files and policies. It reads lines until they end or one is wrong, and leaves in `state` how far
it came; `LineParser` notes what is wrong and calls it again behind that line. What the loop cannot decide becomes a NaN
that carries the place of its text, to be replaced by the caller: a number that only `float` can round, and a label that is
a word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import LF, MOST_ERRORS, ROOM, FileSources, Piece, files_or_pieces, name_of
from rosenblatt.data.parsing.decimals import resolve
from rosenblatt.data.parsing.parallel import SIZE, ParallelReader, Parsed, Problem
from rosenblatt.data.parsing.sorting import put_in_order
from rosenblatt.data.parsing.swar import line_after, occurrences
from rosenblatt.data.reading import Chunk, RowTexts, concatenate, csr
from rosenblatt.errors import FormatError

SHOWN = 32  # characters of what is wrong in a message

# The positions in `state`, an array of integers. From OWN on they are for a format to use.
PLACE = 0  # of the next line
ROWS = 1  # so far
COUNT = 2  # of non-zeros so far
DOUBTS = 3  # how many values may be left for `float`
UNSORTED = 4  # whether some row may have indices that do not grow
WRONG = 5  # what is wrong with the line at PLACE, a code of the format; 0 if nothing is
WHERE = 6  # the place of what is wrong
OWN = 7
STATE = 9


class Room(NamedTuple):
    """The arrays that rows are written to."""

    indptr: NDArray[np.int64]  # (rows + 1,), the first is 0
    indices: NDArray  # (non-zeros,) int32 or int64
    values: NDArray[np.float64]  # (non-zeros,)
    labels: NDArray[np.float64]  # (rows,)
    begins: NDArray[np.int64]  # (rows,), the places where rows begin
    extra: NDArray  # (rows,), a number of each row that only this format has


class Data(tuple):
    """X and y, to be unpacked, with what else is known of them.

    Attributes
    ----------
    X : CSR matrix of shape (rows, columns)
        The rows.
    y : array of shape (rows,) or None
        The labels: float64 if all are numbers, else an array of objects, of text. None if a row has none.
    weight : array of shape (rows,) or None
        The importance of each row of Vowpal Wabbit text; None if all are 1.
    qid : array of shape (rows,) or None
        The query of each row of LIBSVM text, if it was asked for.
    zero_based : bool or None
        Whether the first column is the index 0 of LIBSVM text, or 1.
    skipped : int
        The number of lines left out, with on_error="skip".
    errors : list of FormatError
        What was wrong with the first hundred of them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data import svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.svm"
    ...     _ = path.write_text("+1 1:0.5\\n-1 2:x\\n")
    ...     data = svmlight.read(path, on_error="skip")
    >>> X, y = data
    >>> y.tolist(), data.skipped, data.errors[0].line
    ([1.0], 1, 2)
    """

    X: Any
    y: NDArray | None
    weight: NDArray[np.float64] | None
    qid: NDArray[np.int64] | None
    zero_based: bool | None
    skipped: int
    errors: list[FormatError]

    def __new__(cls, chunk: Chunk, batches: ParallelReader, zero_based: bool | None = None):
        data = super().__new__(cls, (chunk.X, chunk.y))
        data.X, data.y, data.weight, data.qid = chunk.X, chunk.y, chunk.weight, chunk.qid
        data.zero_based, data.skipped, data.errors = zero_based, batches.skipped, batches.errors
        return data

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        base = "" if self.zero_based is None else "zero-based, " if self.zero_based else "one-based, "
        return f"<{rows:,} rows, {columns:,} columns, {self.X.nnz:,} non-zeros, {base}{self.skipped:,} lines skipped>"


class LineParser(ABC):
    """Parses pieces of text, each in a thread. A format says what its compiled loop is, and what makes it special."""

    texts: bool  # whether to keep the lines of the rows
    error: ClassVar[type[FormatError]]
    loop: ClassVar[Any]  # the compiled function: (data, end, room, options, state)
    extra_type: ClassVar[type]
    index_types: ClassVar[tuple[type, ...]] = (np.int32,)  # tried in order until `fits`

    def prepare(self, piece: Piece) -> Any:
        """Look at a piece before it is parsed; pieces come in order. What it returns is given to `options`."""
        return None

    @abstractmethod
    def options(self, context: Any) -> Any:
        """Return what the loop must know, a NamedTuple."""

    @abstractmethod
    def separators(self) -> bytes:
        """Return the bytes of which there are at least as many as non-zeros."""

    @abstractmethod
    def start(self, state: NDArray[np.int64]) -> None:
        """Set the positions of `state` that the format has for itself."""

    @abstractmethod
    def columns(self, state: NDArray[np.int64]) -> int:
        """Return the number of columns."""

    @abstractmethod
    def chunk(self, piece: Piece, X: Any, room: Room, state: NDArray[np.int64], options: Any) -> Chunk:
        """Return the rows with their labels, where X is finished; labels and extra are those of these rows."""

    @abstractmethod
    def problem(self, code: int, found: str, options: Any) -> tuple[str, type[FormatError], Mapping[str, object] | None]:
        """Return what is wrong with a line where `found` is, the type of the error, and settings that would avoid it."""

    def fits(self, state: NDArray[np.int64]) -> bool:
        """Return whether the type of the indices was wide enough."""
        return True

    def column_numbers(self, indices: NDArray) -> NDArray:
        """Return the columns of indices: their own numbers, unless they are hashed."""
        return indices

    def bad_labels(self, chunk: Chunk) -> tuple[NDArray[np.int64], str]:
        """Return the rows whose labels cannot be used, and what is wrong with them."""
        return np.empty(0, np.int64), ""

    def resolve_values(self, piece: Piece, values: NDArray[np.float64]) -> None:
        """Replace values that only `float` can round."""
        resolve(piece.buffer, piece.end, values)

    def without(self, chunk: Chunk, rows: NDArray[np.int64]) -> Chunk:
        """Return the other rows, as if these had not been there."""
        return chunk.take(np.setdiff1d(np.arange(chunk.rows), rows))

    def __call__(self, piece: Piece, skip: bool, context: Any) -> Parsed[Chunk]:
        """Parse a piece. A line that is wrong is left out, or ends it."""
        options = self.options(context)
        lines = occurrences(piece.buffer, piece.end, LF)
        count = sum(occurrences(piece.buffer, piece.end, character) for character in self.separators())
        for index_type in self.index_types:
            room = self._new_room(lines + 1, count, index_type)
            state = np.zeros(STATE, np.int64)
            state[PLACE] = piece.begin
            self.start(state)
            skipped, problems = self._fill(piece, room, options, state, skip)
            if self.fits(state):
                break
        rows, count = int(state[ROWS]), int(state[COUNT])
        if rows == 0:
            return Parsed(None, lines, skipped, problems)
        if state[DOUBTS]:
            self.resolve_values(piece, room.values[:count])
        indptr = room.indptr[: rows + 1]
        indices = self.column_numbers(room.indices[:count])
        if state[UNSORTED]:
            count = put_in_order(indptr, indices, room.values)
        X = csr(room.values[:count], indices[:count], indptr, self.columns(state))
        used = room._replace(labels=room.labels[:rows], extra=room.extra[:rows])
        chunk = self.chunk(piece, X, used, state, options)
        if self.texts:
            chunk = replace(chunk, texts=RowTexts(_lines_at(piece, room.begins[:rows].tolist())))
        unusable = [self.bad_labels(chunk)]
        if state[UNSORTED]:
            text = "expected finite numbers; those of a feature that occurs here more than once add up to infinity"
            unusable.append((_infinite_rows(X), text))
        for wrong, text in unusable:
            places = room.begins[wrong][:MOST_ERRORS].tolist()
            problems += [Problem(*place_of(piece, place), text, self.error) for place in places]
        wrong = np.unique(np.concatenate([rows for rows, _ in unusable]))
        if len(wrong):
            problems = sorted(problems, key=lambda problem: problem[:2])[:MOST_ERRORS]
            skipped += len(wrong)
            chunk = self.without(chunk, wrong)
        return Parsed(chunk if chunk.rows and (skip or not problems) else None, lines, skipped, problems)

    def _new_room(self, rows: int, count: int, index_type: type) -> Room:
        indices: NDArray = np.empty(count, index_type)
        extra: NDArray = np.empty(rows, self.extra_type)
        begins = np.empty(rows, np.int64)
        return Room(np.zeros(rows + 1, np.int64), indices, np.empty(count), np.empty(rows), begins, extra)

    def _fill(self, piece: Piece, room: Room, options: Any, state: NDArray, skip: bool) -> tuple[int, list[Problem]]:
        """Return how many lines were left out, and what is wrong with the first of them."""
        skipped = 0
        problems: list[Problem] = []
        while True:
            self.loop(piece.buffer, piece.end, room, options, state)
            if state[WRONG] == 0:
                return skipped, problems
            skipped += 1
            if len(problems) < MOST_ERRORS:
                place = int(state[WHERE])
                text, error, settings = self.problem(int(state[WRONG]), word_shown(piece.buffer, place), options)
                problems.append(Problem(*place_of(piece, place), text, error, settings))
            if not skip:
                return skipped, problems
            state[PLACE] = line_after(piece.buffer, state[PLACE])

    def parse_line(self, line: bytes) -> Chunk:
        """Return the row of one line of text that is in memory, without its end."""
        piece = Piece(np.frombuffer(bytearray(line + b"\n" + bytes(ROOM)), np.uint8), 0, len(line) + 1)
        parsed = self(piece, False, self.prepare(piece))
        if parsed.batch is None or parsed.batch.rows != 1:
            problem = parsed.problems[0] if parsed.problems else None
            text = f"a row is one line; got {len(line)} bytes" if problem is None else problem.text
            raise self.error(text, settings=None if problem is None else problem.settings)
        return parsed.batch

    def read(
        self,
        paths: FileSources,
        on_error: str = "error",
        size: int = SIZE,
        threads: int | None = None,
        digest: bool = False,
        live: bool = False,
    ) -> ParallelReader[Chunk]:
        """Return an iterator over the rows of these files, in order."""
        how: dict[str, Any] = {"on_error": on_error, "size": size, "threads": threads, "digest": digest, "live": live}
        return ParallelReader(files_or_pieces(paths), self, self.error, prepare=self.prepare, **how)

    def read_whole(self, paths: FileSources, on_error: str) -> tuple[Chunk, ParallelReader[Chunk]]:
        """Return all rows of these files as one chunk, and the reader that read them."""
        files = files_or_pieces(paths)
        with self.read(files, on_error) as batches:
            chunks = list(batches)
        if not chunks:
            raise self.error(
                "there are no rows to read", path=", ".join(map(name_of, files[:3])) + (", …" if len(files) > 3 else "")
            )
        return concatenate(chunks), batches


def _lines_at(piece: Piece, begins: list[int]) -> list[bytes]:
    """Return the lines that begin at these places, without their ends."""
    data = piece.buffer[: piece.end + 1].tobytes()  # a line end is there at the latest
    return [data[begin : data.index(b"\n", begin)].removesuffix(b"\r") for begin in begins]


def _infinite_rows(X: Any) -> NDArray[np.int64]:
    """Return the rows with a value that is not finite."""
    which = np.flatnonzero(~np.isfinite(X.data))
    return np.unique(np.searchsorted(X.indptr, which, side="right") - 1)


def word_shown(buffer: NDArray[np.uint8], place: int) -> str:
    """Return the word at a place for a message: what cannot be printed is escaped, and it is cut where it is long."""
    text = bytes(buffer[place : place + 4 * SHOWN]).split(b"\n")[0]
    words = text.split(maxsplit=1)
    if not words or text[:1].isspace():
        return "the end of the line" if not words else "a blank"
    word = words[0].decode("utf-8", "backslashreplace")
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in word)
    return f"'{plain}'" if len(plain) <= SHOWN else f"'{plain[:SHOWN]}…'"


def place_of(piece: Piece, place: int) -> tuple[int, int]:
    """Return the line of the piece, from 0, and the column, from 1, of a place."""
    before = piece.buffer[piece.begin : place]
    ends = np.flatnonzero(before == LF)
    return len(ends), len(before) - (int(ends[-1]) + 1 if len(ends) else 0) + 1
