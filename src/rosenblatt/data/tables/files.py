"""A file of rows is read in pieces of bounded size, each a table of Arrow that knows on which line its rows stand, whatever
the format: delimited text, JSON lines, Parquet, Arrow, or plain lines of text.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rosenblatt.data.formats import DELIMITERS, START, TABLES, format_of_start, format_of_suffix
from rosenblatt.data.opening import FormatError, pieces

try:
    import pyarrow as pa
except ImportError as missing:
    raise ModuleNotFoundError("tables need pyarrow, which is not installed: pip install 'rosenblatt[tables]'") from missing

SIZE = 1 << 21  # bytes of a piece, about
_LINES = 20  # that are looked at to tell what separates fields
FORMATS = (*TABLES, "lines")


class TableError(FormatError):
    """A row that cannot be read, with the place: file, line (or row, where a format has no lines) and the name of the
    column."""

    def __init__(self, file: str, line: int | None, message: str, name: str | None = None, unit: str = "line"):
        super().__init__(file, line, message, None, name)
        where = ("" if line is None else f", {unit} {line}") + ("" if name is None else f", column {name}")
        self.args = (f"{file}{where}: {message}",)


class Piece(NamedTuple):
    """Some rows of a file as they stand there."""

    columns: Any  # a table of Arrow
    line: Callable[[int], int]  # of a row, counted from 1
    broken: Sequence[tuple[int, str]] = ()  # lines that are no rows, and why
    wrong: Mapping[str, dict[int, str]] = {}  # values that cannot be used, by column and row, and why; they are null


class Form(NamedTuple):
    """How a file of rows is laid out."""

    format: str  # one of FORMATS
    delimiter: str = ","
    quote: str | None = '"'


def names_of(header: Sequence[str]) -> list[str]:
    """The names of columns; one without gets the name that pandas gives it."""
    return [name or f"unnamed: {number}" for number, name in enumerate(header)]


def form_of(path: str, start: bytes, format: str | None, delimiter: str | None, quote: str | None) -> Form:
    """The form of a file: as it was asked for, or as its suffix says, or else as it begins."""
    if format is None:
        detected = format_of_suffix(path, TABLES) or format_of_start(start, TABLES) or "lines"
        format = "csv" if delimiter is not None else detected
    if format in ("parquet", "arrow", "jsonl"):
        return Form(format)
    if format == "tsv":
        return Form(format, delimiter or "\t", quote)
    quote = '"' if quote is None else quote
    return Form(format, delimiter or _delimiter(start, quote), quote)


def _delimiter(start: bytes, quote: str) -> str:
    """What separates fields: that of the usual characters which stands in each of the first lines equally often, outside
    quotes; or else that which stands in the first line. Much that is called CSV has no commas."""
    text = start.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if quote:
        mark = re.escape(quote)
        text = re.sub(f"(?:(?<=[,;\t|\n])|^){mark}(?:[^{mark}]|{mark}{mark})*{mark}", "", text)
    lines = text.split("\n")
    if len(lines) > 1 and len(start) >= START:
        lines.pop()  # which is cut off
    lines = [line for line in lines if line][:_LINES]
    candidates = [one for one in DELIMITERS if lines and one in lines[0]]
    steady = [one for one in candidates if len({line.count(one) for line in lines}) == 1]
    return next(iter(steady + candidates), ",")


def whole_lines(stream: Any, size: int) -> Iterator[bytes]:
    """A stream in blocks of about this size, which end where lines do."""
    for buffer, begin, end in pieces(stream, size):
        yield buffer[begin:end].tobytes()


class Decoded(NamedTuple):
    """Text without the records that are not UTF-8, what is wrong with these, and the numbers of the lines that are left."""

    data: bytes
    broken: list[tuple[int, str]]
    lines: Sequence[int]


def decoded(data: bytes, line: int, begins: Callable[[bytes], Any] = lambda data: range(data.count(b"\n") + 1)) -> Decoded:
    """The records that are UTF-8. `begins` says on which line each begins, from 0; without it, lines are records."""
    try:
        data.decode()
        return Decoded(data, [], range(line, sys.maxsize))
    except UnicodeDecodeError:
        texts = data.split(b"\n")
    records = [*begins(data), len(texts)]
    kept: list[bytes] = []
    numbers: list[int] = []
    broken: list[tuple[int, str]] = []
    for begin, end in pairwise(records):
        try:
            for number in range(begin, end):
                texts[number].decode()
            kept += texts[begin:end]
            numbers += range(line + begin, line + end)
        except UnicodeDecodeError as reason:
            what = f"the byte 0x{texts[number][reason.start]:02X} at byte {reason.start + 1} is not UTF-8"
            broken.append((line + number, f"{what}; convert the file to UTF-8"))
    return Decoded(b"\n".join(kept), broken, numbers)


def check_encoding(start: bytes, file: str) -> None:
    """Raises TableError where text begins as UTF-16 does: with its mark, or with a zero in every other byte."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        len(start) > 3 and not all((any(start[:64:2]), any(start[1:64:2])))
    ):
        raise TableError(file, 1, "this is UTF-16, not UTF-8; convert the file: iconv -f UTF-16 -t UTF-8")


class Source(ABC):
    """A file of rows, which is read in pieces. `names` are its columns, known before the first piece is asked for."""

    unit = "line"

    def __init__(self, stream: Any, form: Form, size: int):
        self.stream, self.form, self.size = stream, form, size
        self.header = True  # whether the columns have names of their own
        self.names: list[str] = []

    @abstractmethod
    def __iter__(self) -> Iterator[Piece]:
        """The pieces, in order."""


class Lines(Source):
    """Plain text, of which each line is the one field of a row."""

    def __init__(self, stream: Any, form: Form, size: int, name: str):
        super().__init__(stream, form, size)
        self.names = [name]

    def __iter__(self) -> Iterator[Piece]:
        line = 1
        for block in whole_lines(self.stream, self.size):
            data, broken, lines = decoded(block, line)
            texts = [text.removesuffix("\r") for text in data.decode().removesuffix("\n").split("\n")] if data else []
            yield Piece(pa.table({self.names[0]: pa.array(texts, pa.large_string())}), lines.__getitem__, broken)
            line += block.count(b"\n")
