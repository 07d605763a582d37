"""How files of Vowpal Wabbit text are read, at once, in chunks or as a `Reading`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data import opening
from rosenblatt.data.opening import FormatError, Piece
from rosenblatt.data.parsing.ahead import MOST_ERRORS, SIZE, Ahead, Parsed, Wrong, overflows, place_of, shown
from rosenblatt.data.parsing.decimals import places, settle
from rosenblatt.data.parsing.eights import line_after, occurrences
from rosenblatt.data.parsing.sorting import put_in_order
from rosenblatt.data.parsing.sparse import csr, infinite_rows, stacked
from rosenblatt.data.reading import Chunk, OfRows
from rosenblatt.data.vw import rows as kernel
from rosenblatt.data.vw.rows import COUNT, PLACE, ROWS, WHERE, WRONG, Room, Terms

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

MOST_BITS = 30  # buckets are columns, counted with 32 bits
SCALE = re.compile(rb"[^ \t|:\r\n]*:([^ \t|\r\n]+)")


class VwError(FormatError):
    """A file that is not Vowpal Wabbit text of the simple kind: the message names file, line and column."""


class Data(tuple):
    """X and y, to be unpacked, with what else is known of them.

    X, y      CSR with 2^bits columns, and labels, float64; y is None if a row has none
    weight    the importance of each row, or None if all are 1
    skipped   how many lines were left out, with on_error="skip"
    errors    what was wrong with the first hundred of them
    """

    X: Any
    y: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    skipped: int
    errors: list[FormatError]

    def __new__(cls, chunk: Chunk, skipped: int, errors: list[FormatError]):
        data = super().__new__(cls, (chunk.X, chunk.y))
        data.X, data.y, data.weight = chunk.X, chunk.y, chunk.weight
        data.skipped, data.errors = skipped, errors
        return data

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"<{rows:,} rows, {columns:,} columns, {self.X.nnz:,} non-zeros, {self.skipped:,} lines skipped>"


def read(paths: Paths, *, bits: int = 18, hashing: str = "strings", labelled: bool = True, on_error: str = "error") -> Data:
    """X and y of all rows of these files.

    paths      a file, or several, folders, patterns, "-"; compressed ones are known by what they hold
    bits       the number of columns is 2^bits, VW's -b
    hashing    "strings": a name of digits is its number; "all": every name is hashed; VW's --hash
    labelled   whether each line must have a label
    on_error   "error", or "skip": lines that are wrong are left out and counted

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "two.vw"
    >>> _ = file.write_text("1 |words free:2 offer\\n-1 0.5 |words see you\\n")
    >>> X, y = read(file)
    >>> X.indices, X.data, y
    (array([ 32648, 139369,  78316, 158565], dtype=int32), array([2., 1., 1., 1.]), array([ 1., -1.]))
    >>> read(file).weight
    array([1. , 0.5])
    """
    files = opening.paths(paths)
    with chunks(files, bits=bits, hashing=hashing, labelled=labelled, on_error=on_error) as batches:
        held = list(batches)
    if not held:
        raise VwError(", ".join(files[:3]) + (", …" if len(files) > 3 else ""), None, "there are no rows to read")
    return Data(joined(held), batches.skipped, batches.errors)


def chunks(
    paths: Paths,
    *,
    bits: int = 18,
    hashing: str = "strings",
    labelled: bool = True,
    on_error: str = "error",
    size: int = SIZE,
    threads: int | None = None,
    digest: bool = False,
) -> Ahead[Chunk]:
    """An iterator over the rows of these files, in order, in chunks of about `size` bytes of text.

    `weight` of a chunk is None if all its rows count one; y is None if a row has no label. The iterator has `skipped`,
    `errors`, `taken`, `total`, `digest()` and `close()`, as `rosenblatt.data.reading.Batches` says.
    """
    parser = Vw(bits, hashing)._parser(labelled)
    files = opening.paths(paths)
    return Ahead(files, parser, VwError, on_error=on_error, size=size, threads=threads, digest=digest)


@dataclass(frozen=True)
class Vw(OfRows):
    """The reading of Vowpal Wabbit text: its batches are rows already, of 2^bits columns."""

    format: ClassVar[str] = "vw"
    bits: int = 18
    hashing: str = "strings"

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MOST_BITS:
            raise ValueError(f"bits={self.bits}: there are 2^bits columns, for 1 to {MOST_BITS} bits")
        if self.hashing not in ("strings", "all"):
            raise ValueError(f"hashing={self.hashing!r}: it must be 'strings' or 'all', as --hash of VW")

    def batches(
        self, paths: Sequence[str], *, labelled: bool = True, on_error: str = "error", digest: bool = True
    ) -> Ahead[Chunk]:
        """The rows of these files, in order, in chunks."""
        return chunks(paths, bits=self.bits, hashing=self.hashing, labelled=labelled, on_error=on_error, digest=digest)

    def labels(self, paths: Sequence[str], *, on_error: str = "error") -> tuple[int, NDArray]:
        """(how many rows there are, their distinct labels)."""
        return labels(paths, on_error=on_error)

    def told(self, distinct: NDArray) -> Vw:
        """Itself: labels are always numbers."""
        return self

    def joined(self, batches: Sequence[Chunk]) -> Chunk:
        """All rows as one."""
        return joined(batches)

    @property
    def features(self) -> int:
        """2^bits."""
        return 1 << self.bits

    def name(self, column: int) -> str:
        """The bucket, for names are not remembered."""
        return f"bucket {column}"

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The reading as facts and arrays."""
        return {"bits": self.bits, "hashing": self.hashing}, {}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Vw:
        """The reading that these describe."""
        if set(facts) != {"bits", "hashing"} or type(facts["bits"]) is not int or arrays:
            raise ValueError(f"a reading of VW text has the facts bits, a whole number, and hashing; got {dict(facts)!r}")
        return cls(facts["bits"], facts["hashing"])

    def _parser(self, labelled: bool) -> _Parser:
        return _Parser(Terms(np.uint64(self.features - 1), labelled, self.hashing == "strings", True))


def labels(paths: Paths, *, on_error: str = "error", size: int = SIZE) -> tuple[int, NDArray[np.float64]]:
    """How many rows these files have, and their distinct labels, sorted. Nothing behind the first bar is looked at."""
    rows, distinct = 0, np.empty(0)
    parser = _Parser(Terms(np.uint64(0), True, True, False))
    with Ahead(opening.paths(paths), parser, VwError, on_error=on_error, size=size) as batches:
        for batch in batches:
            assert batch.y is not None
            rows += batch.rows
            distinct = np.union1d(distinct, batch.y)
    return rows, distinct


def joined(batches: Sequence[Chunk]) -> Chunk:
    """All rows as one."""
    X = stacked([batch.X for batch in batches])
    y = [batch.y for batch in batches if batch.y is not None]
    weight = None
    if any(batch.weight is not None for batch in batches):
        weight = np.concatenate([np.ones(batch.rows) if batch.weight is None else batch.weight for batch in batches])
    return Chunk(X, np.concatenate(y) if len(y) == len(batches) else None, weight)


@dataclass(frozen=True)
class _Parser:
    """A piece of text becomes rows, in a thread of its own."""

    terms: Terms

    def __call__(self, piece: Piece, skip: bool, _: Any) -> Parsed[Chunk]:
        lines, *apart = (occurrences(piece.buffer, piece.end, character) for character in b"\n" + kernel.SEPARATORS)
        rows, count = lines + 1, sum(apart) if self.terms.features else 0
        room = Room(
            np.empty(rows + 1, np.int64),
            np.empty(count, np.int32),
            np.empty(count),
            np.empty(rows),
            np.empty(rows),
            np.empty(rows, np.int64),
        )
        room.indptr[0] = 0
        state = np.zeros(kernel.STATE, np.int64)
        state[PLACE] = piece.begin
        skipped = 0
        wrong: list[Wrong] = []
        while True:
            kernel.parse(piece.buffer, piece.end, room, self.terms, state)
            if state[WRONG] == 0:
                break
            skipped += 1
            if len(wrong) < MOST_ERRORS:
                wrong.append(_complaint(piece, state))
            if not skip:
                break
            state[PLACE] = line_after(piece.buffer, state[PLACE])
        if state[ROWS] == 0:
            return Parsed(None, lines, skipped, wrong)
        chunk = _chunk(piece, room, state, int(self.terms.mask) + 1)
        if len(which := infinite_rows(chunk.X)):
            wrong = sorted(wrong + overflows(piece, room.begins[which], VwError))[:MOST_ERRORS]
            skipped += len(which)
            chunk = chunk.take(np.setdiff1d(np.arange(chunk.rows), which))
        return Parsed(chunk if chunk.rows and (skip or not wrong) else None, lines, skipped, wrong)


def _chunk(piece: Piece, room: Room, state: NDArray[np.int64], columns: int) -> Chunk:
    buffer, _, end = piece
    rows, count = int(state[ROWS]), int(state[COUNT])
    labels, weights, values = room.labels[:rows], room.weights[:rows], room.values[:count]
    settle(buffer, end, labels)
    settle(buffer, end, weights)
    if state[kernel.DOUBTS]:
        where = places(values)
        for k in settle(buffer, end, values):
            values[k] *= _scale(buffer, piece.begin, int(where[k]))
    indptr = room.indptr[: rows + 1]
    count = put_in_order(indptr, room.indices, room.values)
    X = csr(room.values[:count], room.indices[:count], indptr, columns)
    return Chunk(X, None if state[kernel.BARE] else labels, weights if state[kernel.WEIGHTED] else None)


def _scale(buffer: NDArray[np.uint8], begin: int, place: int) -> float:
    """The value of the namespace in which a place is."""
    text = bytes(buffer[begin:place])
    found = SCALE.match(text, text.rfind(b"|") + 1)
    return float(found.group(1)) if found else 1.0


def _complaint(piece: Piece, state: NDArray[np.int64]) -> Wrong:
    line, column = place_of(piece, int(state[WHERE]))
    found = shown(piece.buffer, int(state[WHERE]))
    message = {
        kernel.BAR: f"expected | before the features, found none in the line that begins with {found}",
        kernel.LABEL: f"expected a finite number as label, importance or base, found {found}",
        kernel.STRUCTURED: f"expected one number as the label, found {found}: labels of contextual bandits and of "
        "examples of several lines cannot be read",
        kernel.LONG: f"expected at most label, importance and base before the tag, found {found} too",
        kernel.UNLABELLED: f"expected a label before {found}",
        kernel.TOUCHING: f"expected a label, found {found}, which is a tag because it touches |; put a blank between them",
        kernel.NAMESPACE: f"expected the name of a namespace or a blank after |, found {found}",
        kernel.SCALE: f"expected a finite number of at most 19 digits as the value of the namespace, found {found}",
        kernel.VALUE: f"expected a finite number, or a word unlike one, as the value, found {found}",
        kernel.FINITE: f"expected a finite number as the value, found {found}, which is too large for a double",
    }[int(state[WRONG])]
    return Wrong(line, column, message, VwError)
