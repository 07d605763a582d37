"""A piece of LIBSVM text becomes rows, or says what is wrong with a line, and where, and what was expected there.

The compiled loop of `svmlight_rows` does the work. What it leaves open is settled here: room for the rows, numbers that
only `float` can round, labels that are words, rows whose indices are not sorted, and the message for a line that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import LF, FormatError, Piece
from rosenblatt.data.parsing.ahead import MOST_ERRORS, Parsed, Wrong, overflows, place_of, shown
from rosenblatt.data.parsing.decimals import DECIMAL, places, settle
from rosenblatt.data.parsing.eights import line_after, occurrences
from rosenblatt.data.parsing.label_words import words
from rosenblatt.data.parsing.sorting import put_in_order
from rosenblatt.data.parsing.sparse import NARROW, csr, infinite_rows
from rosenblatt.data.reading import Chunk
from rosenblatt.data.svmlight import rows as kernel
from rosenblatt.data.svmlight.rows import COUNT, LARGEST, PLACE, ROWS, SMALLEST, WHERE, WRONG, Room, Terms

LAST = np.iinfo(np.int64).max - 1  # the largest index: one column more can still be counted


class SvmlightError(FormatError):
    """A file that is not LIBSVM text: the message names file, line and column."""


class LabelError(SvmlightError):
    """A label that is no number, where the first one of the file is a number."""


@dataclass(frozen=True)
class Rows(Chunk):
    """Some rows of LIBSVM text; X is CSR with sorted indices, and y is None where rows need no label."""

    qid: NDArray[np.int64] | None = None  # 0 where a line has none
    smallest: int | None = None  # index in the text; None if there is no non-zero

    def take(self, rows: NDArray) -> Rows:
        """These rows, in this order."""
        chunk = super().take(rows)
        return Rows(chunk.X, chunk.y, None, None if self.qid is None else self.qid[rows], self.smallest)


@dataclass(frozen=True)
class Parser:
    """How pieces become rows: called in a thread for each piece."""

    features: int | None = None
    zero_based: bool | str = True  # "auto" takes the indices as they stand, and allows for one more
    text: bool | None = None  # whether labels are words; None: that of the first row decides
    labelled: bool = True  # whether rows must have a label; if not, nobody looks at those that have one
    qid: bool = False
    _decided: list[bool] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.features is not None and self.features < 1:
            raise ValueError(f"features={self.features}: there must be at least 1 column")

    def words(self, piece: Piece) -> bool:
        """Whether labels are words. Sees the pieces in order."""
        if not self.labelled:
            return True  # so that none is refused
        if self.text is not None:
            return self.text
        if not self._decided:
            first = min(line_after(piece.buffer, piece.begin), piece.end)
            rows = self(piece._replace(end=first), True, True).batch or self(piece, True, True).batch
            if rows is None or rows.y is None:
                return True  # all lines so far are wrong
            self._decided.append(not is_number(rows.y[0].encode()))
        return self._decided[0]

    def __call__(self, piece: Piece, skip: bool, words: bool) -> Parsed[Rows]:
        """The rows of a piece. A line that is wrong is left out, or ends it."""
        lowest = 0 if self.zero_based else 1
        highest = LAST if self.features is None else self.features - (self.zero_based is True)
        terms = Terms(lowest, highest, self.labelled, words)
        lines, colons = (occurrences(piece.buffer, piece.end, character) for character in b"\n:")
        for kind in (np.int32, np.int64):
            room = _room(lines + 1, colons, kind, self.qid)
            state = np.zeros(kernel.STATE, np.int64)
            state[PLACE], state[SMALLEST], state[LARGEST] = piece.begin, LAST, lowest - 1
            skipped, wrong = _filled(piece, room, terms, state, skip)
            if state[LARGEST] - lowest <= NARROW:
                break
        if state[ROWS] == 0:
            return Parsed(None, lines, skipped, wrong)
        fixed = self.features if self.zero_based != "auto" else None
        rows = _rows(piece, room, state, fixed or int(state[LARGEST]) - lowest + 1, words if self.labelled else None)
        if state[kernel.UNSORTED] and len(which := infinite_rows(rows.X)):
            wrong = sorted(wrong + overflows(piece, room.begins[which], SvmlightError))[:MOST_ERRORS]
            skipped += len(which)
            rows = _without(rows, which, fixed, lowest)
        return Parsed(rows if rows.rows and (skip or not wrong) else None, lines, skipped, wrong)


def _room(rows: int, count: int, kind: Any, qid: bool) -> Room:
    room = Room(
        np.empty(rows + 1, np.int64),
        np.empty(count, kind),
        np.empty(count),
        np.empty(rows),
        np.empty(rows, np.int64),
        np.empty(rows if qid else 0, np.int64),
    )
    room.indptr[0] = 0
    return room


def _filled(piece: Piece, room: Room, terms: Terms, state: NDArray[np.int64], skip: bool) -> tuple[int, list[Wrong]]:
    """How many lines were left out, and what is wrong with the first of them."""
    skipped = 0
    wrong: list[Wrong] = []
    while True:
        kernel.parse(piece.buffer, piece.end, room, terms, state)
        if state[WRONG] == 0:
            return skipped, wrong
        skipped += 1
        if len(wrong) < MOST_ERRORS:
            wrong.append(_complaint(piece, state, terms))
        if not skip:
            return skipped, wrong
        state[PLACE] = line_after(piece.buffer, state[PLACE])


def _rows(piece: Piece, room: Room, state: NDArray[np.int64], columns: int, words: bool | None) -> Rows:
    """The rows that were read; `words` says what labels are, None that there are none."""
    rows, count = int(state[ROWS]), int(state[COUNT])
    indptr, labels = room.indptr[: rows + 1], room.labels[:rows]
    if state[kernel.DOUBTS]:
        settle(piece.buffer, piece.end, room.values[:count])
    if state[kernel.UNSORTED]:
        count = put_in_order(indptr, room.indices, room.values)
    X = csr(room.values[:count], room.indices[:count], indptr, columns)
    y: NDArray | None = None
    if words:
        y = _words(piece, places(labels))
    elif words is not None:
        y = labels
        settle(piece.buffer, piece.end, y)
    qid = room.queries[:rows] if len(room.queries) else None
    return Rows(X, y, None, qid, int(state[SMALLEST]) if count else None)


def _without(rows: Rows, which: NDArray[np.int64], columns: int | None, lowest: int) -> Rows:
    """The other rows, as if these had not been there."""
    rows = rows.take(np.setdiff1d(np.arange(rows.rows), which))
    indices = rows.X.indices
    columns = columns or int(indices.max(initial=-1)) + 1
    smallest = int(indices.min()) + lowest if len(indices) else None
    return replace(rows, X=csr(rows.X.data, indices, rows.X.indptr, columns), smallest=smallest)


def _words(piece: Piece, places: NDArray[np.int64]) -> NDArray:
    distinct, codes = words(piece.buffer, places)
    return np.array([decoded(word) for word in distinct], object)[codes]


def first_words(piece: Piece, skip: bool, prepared: Any) -> Parsed[tuple[list[bytes], int]]:
    """The distinct first words of the lines of a piece, and how many lines have one."""
    lines = occurrences(piece.buffer, piece.end, LF)
    places = np.empty(lines + 1, np.int64)
    rows = kernel.heads(*piece, places)
    return Parsed((words(piece.buffer, places[:rows])[0], rows), lines, 0, [])


def is_number(word: bytes) -> bool:
    """Whether a word is a finite decimal number."""
    return DECIMAL.fullmatch(word) is not None and isfinite(float(word))


def decoded(word: bytes) -> str:
    """A label as text; bytes that are not UTF-8 are escaped."""
    return word.decode("utf-8", "backslashreplace")


def _complaint(piece: Piece, state: NDArray[np.int64], terms: Terms) -> Wrong:
    line, column = place_of(piece, int(state[WHERE]))
    found = shown(piece.buffer, int(state[WHERE]))
    index = found[1:].partition(":")[0]
    message = {
        kernel.LABEL: f"expected a label, a number or a word, found {found}; is this a file of text?",
        kernel.WORD: f"expected a number as the label, as the first one is, found {found}; with text=True labels are words",
        kernel.UNLABELLED: f"expected a label before the first index:value, found {found}",
        kernel.FEATURE: f"expected index:value, found {found}",
        kernel.COLON: f"expected index:value, found {found}",
        kernel.VALUE: f"expected a finite number as the value, found {found}",
        kernel.FINITE: f"expected a finite number as the value, found {found}, which is too large for a double",
        kernel.LARGE: f"expected an index up to {terms.highest}, found {index}",
        kernel.ZERO: f"expected an index from 1 on, found {index}; with zero_based=True indices begin at 0",
        kernel.QUERY: f"expected a whole number after qid:, found {found}",
    }[int(state[WRONG])]
    return Wrong(line, column, message, LabelError if state[WRONG] == kernel.WORD else SvmlightError)
