"""The parser of LIBSVM text: labels that are words, indices of 64 bits, and the messages for a line that is wrong.

A label that is a word is decoded once, however many rows have it: a table of hashes finds for each row the first row with
the same bytes; nothing rests on the hashes being distinct. The words nan and inf are refused as labels: they are what other
programs write for a label that is missing, or for a number that overflowed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import LF, Piece
from rosenblatt.data.parsing.decimals import DECIMAL, NOT_FINITE, places_of, resolve
from rosenblatt.data.parsing.line_parser import UNSORTED, LineParser, Room
from rosenblatt.data.parsing.parallel import Parsed
from rosenblatt.data.parsing.swar import U, byte, ends, line_after, occurrences, start
from rosenblatt.data.reading import NARROW, Chunk, csr
from rosenblatt.data.svmlight import rows as kernel
from rosenblatt.data.svmlight.rows import LARGEST, SMALLEST, LineOptions
from rosenblatt.engine.jit import exact
from rosenblatt.errors import FormatError, InvalidParameter

LAST = np.iinfo(np.int64).max - 1  # the largest index: one column more can still be counted


class SvmlightError(FormatError):
    """A file that is not LIBSVM text; `path`, `line` and `column` say where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data import svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.svm"
    ...     _ = path.write_text("+1 1:0.5\\n-1 2:x\\n")
    ...     try:
    ...         svmlight.read(path)
    ...     except SvmlightError as error:
    ...         print(f"line {error.line}, column {error.column}: {error.problem}")
    line 2, column 6: expected a finite number as the value, found 'x'
    """


class LabelError(SvmlightError):
    """A label that is not a number, where the first one of the file is a number.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data import svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.svm"
    ...     _ = path.write_text("+1 1:0.5\\nspam 2:1\\n")
    ...     try:
    ...         svmlight.read(path, text=False)
    ...     except LabelError as error:
    ...         print(f"line {error.line}: {error.problem}")
    line 2: expected a number as the label, as the first one is, found 'spam'
    """


@dataclass(frozen=True)
class SvmlightParser(LineParser):
    """How pieces of LIBSVM text become rows."""

    error: ClassVar[type[FormatError]] = SvmlightError
    loop = staticmethod(kernel.parse)
    extra_type: ClassVar[type] = np.int64
    index_types: ClassVar[tuple[type, ...]] = (np.int32, np.int64)
    features: int | None = None
    zero_based: bool | str = True  # "auto" takes the indices as they stand, and allows for one more
    text: bool | None = None  # whether labels are words; None: that of the first row decides
    labelled: bool = True  # whether rows must have a label; if not, labels are not looked at
    qid: bool = False
    bits: int | None = None  # hashes indices to 2^bits columns
    texts: bool = False
    _decision: list[bool] = field(default_factory=list, repr=False)  # whether labels are words, once a row was seen

    def __post_init__(self) -> None:
        if self.features is not None and self.features < 1:
            raise InvalidParameter("features", self.features, "1 or more")

    @property
    def lowest(self) -> int:
        """The index of the first column."""
        return 0 if self.zero_based else 1

    @property
    def fixed_columns(self) -> int | None:
        if self.bits is not None:
            return 1 << self.bits
        return self.features if self.zero_based != "auto" else None

    def prepare(self, piece: Piece) -> bool:
        """Return whether labels are words."""
        if not self.labelled:
            return True  # so that none is refused
        if self.text is not None:
            return self.text
        if not self._decision:
            first = min(line_after(piece.buffer, piece.begin), piece.end)
            rows = self(piece._replace(end=first), True, True).batch or self(piece, True, True).batch
            if rows is None or rows.y is None:
                return True  # all lines so far are wrong
            self._decision.append(not is_number(rows.y[0].encode()))
        return self._decision[0]

    def options(self, context: bool) -> LineOptions:
        highest = LAST if self.features is None else self.features - (self.zero_based is True)
        return LineOptions(self.lowest, highest, self.labelled, context)

    def separators(self) -> bytes:
        return b":"

    def start(self, state: NDArray[np.int64]) -> None:
        state[SMALLEST], state[LARGEST] = LAST, self.lowest - 1
        state[UNSORTED] = self.bits is not None

    def fits(self, state: NDArray[np.int64]) -> bool:
        return state[LARGEST] - self.lowest <= NARROW

    def column_numbers(self, indices: NDArray) -> NDArray:
        return indices if self.bits is None else hash_indices(indices, self.bits)

    def bad_labels(self, chunk: Chunk) -> tuple[NDArray[np.int64], str]:
        if chunk.y is None or chunk.y.dtype.kind != "O":
            return super().bad_labels(chunk)
        words, which = np.unique(chunk.y, return_inverse=True)
        bad = np.array([NOT_FINITE.fullmatch(word) is not None for word in words])
        rows = np.flatnonzero(bad[which])
        found = chunk.y[rows[0]] if len(rows) else ""
        return rows, f"expected a label, a finite number or a word, found {found!r}"

    def columns(self, state: NDArray[np.int64]) -> int:
        return self.fixed_columns or int(state[LARGEST]) - self.lowest + 1

    def chunk(self, piece: Piece, X: Any, room: Room, state: NDArray[np.int64], options: LineOptions) -> Chunk:
        y: NDArray | None = None
        if self.labelled:
            y = room.labels
            if options.words:
                words, codes = distinct_words(piece.buffer, places_of(y))
                y = np.array([decode(word) for word in words], object)[codes]
            else:
                resolve(piece.buffer, piece.end, y)
        smallest = int(state[SMALLEST]) if X.nnz and self.bits is None else None
        return Chunk(X, y, None, room.extra if self.qid else None, smallest)

    def without(self, chunk: Chunk, rows: NDArray[np.int64]) -> Chunk:
        chunk = super().without(chunk, rows)
        X = chunk.X
        columns = self.fixed_columns or int(X.indices.max(initial=-1)) + 1
        smallest = int(X.indices.min()) + self.lowest if len(X.indices) and self.bits is None else None
        return replace(chunk, X=csr(X.data, X.indices, X.indptr, columns), smallest=smallest)

    def problem(self, code: int, found: str, options: LineOptions) -> Any:
        index = found[1:].partition(":")[0]
        text = {
            kernel.LABEL: f"expected a label, a number or a word, found {found}; is this a text file?",
            kernel.WORD: f"expected a number as the label, as the first one is, found {found}",
            kernel.UNLABELLED: f"expected a label before the first index:value, found {found}",
            kernel.FEATURE: f"expected index:value, found {found}",
            kernel.COLON: f"expected index:value, found {found}",
            kernel.VALUE: f"expected a finite number as the value, found {found}",
            kernel.FINITE: f"expected a finite number as the value, found {found}, which is too large for a double",
            kernel.LARGE: f"expected an index up to {options.highest}, found {index}",
            kernel.ZERO: f"expected an index from 1 on, found {index}",
            kernel.QUERY: f"expected a whole number after qid:, found {found}",
        }[code]
        settings = {kernel.WORD: {"text": True}, kernel.ZERO: {"zero_based": True}}.get(code)
        return text, LabelError if code == kernel.WORD else SvmlightError, settings


def first_words(piece: Piece, skip: bool, context: None) -> Parsed[tuple[list[bytes], int]]:
    """Return the distinct first words of the lines of a piece, and how many lines have one."""
    lines = occurrences(piece.buffer, piece.end, LF)
    places = np.empty(lines + 1, np.int64)
    rows = kernel.heads(*piece, places)
    return Parsed((distinct_words(piece.buffer, places[:rows])[0], rows), lines, 0, [])


def is_number(word: bytes) -> bool:
    """Return whether a word is a finite decimal number."""
    return DECIMAL.fullmatch(word) is not None and isfinite(float(word))


def hash_indices(indices: NDArray, bits: int) -> NDArray[np.int32]:
    """Return the bucket of each index, one of 2^bits: the highest bits of the finalizer of MurmurHash3 of 64 bits."""
    mixed = indices.astype(np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(33)
    return (mixed >> np.uint64(64 - bits)).astype(np.int32)


def decode(word: bytes) -> str:
    """Return a label as text; bytes that are not UTF-8 are escaped."""
    return word.decode("utf-8", "backslashreplace")


@exact
def _codes(data, places, slots, codes, firsts):
    """Return the number of distinct words at the places; codes (places,) says which each is, firsts where it is first."""
    text = start(data)
    distinct = 0
    mask = len(slots) - 1
    for row in range(len(places)):
        place = places[row]
        hashed = U(0xCBF29CE484222325)  # FNV-1a
        while not ends(byte(text, place)):
            hashed = (hashed ^ U(byte(text, place))) * U(0x100000001B3)
            place += 1
        length = place - places[row]
        slot = np.int64((hashed ^ (hashed >> U(32))) & U(mask))
        while slots[slot] >= 0:
            known = firsts[slots[slot]]
            same = ends(byte(text, known + length))
            for k in range(length):
                if byte(text, known + k) != byte(text, places[row] + k):
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = distinct
            firsts[distinct] = places[row]
            distinct += 1
        codes[row] = slots[slot]
    return distinct


def distinct_words(buffer: NDArray[np.uint8], places: NDArray[np.int64]) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the distinct words that begin at these places, and which of them is at each place."""
    slots = np.full(1 << int(2 * len(places) + 1).bit_length(), -1, np.int64)
    codes, firsts = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    distinct = _codes(buffer, places, slots, codes, firsts)
    return [_word_at(buffer, int(first)) for first in firsts[:distinct]], codes


def _word_at(buffer: NDArray[np.uint8], place: int) -> bytes:
    """Return the word that begins at a place."""
    length = 64
    while True:
        text = bytes(buffer[place : place + length])
        end = next((k for k, c in enumerate(text) if c in b" \t\n\v\f\r#"), None)
        if end is not None:
            return text[:end]
        length *= 2
