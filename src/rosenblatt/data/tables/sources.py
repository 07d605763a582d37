"""A source reads a file of rows in pieces of bounded size, each a table of Arrow that knows on which line its rows are,
whatever the format: delimited text, JSON lines, Parquet, Arrow, or plain lines of text.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from rosenblatt.data.cutting import line_ends
from rosenblatt.data.formats import DELIMITERS, START, TABLES, format_of_start, format_of_suffix
from rosenblatt.data.opening import FilePiece, Input, first_line, pieces
from rosenblatt.data.tables.arrow import pa, text_array
from rosenblatt.errors import FormatError

SIZE = 1 << 21  # bytes of a piece, about
_LINES = 20  # that are looked at to detect what separates fields
FORMATS = (*TABLES, "lines")  # plain lines of text can be predicted, where rows are made of one text


class TableError(FormatError):
    """A table that cannot be read; `path`, `line` and `column`, a name, say where.

    Where a format has no lines, `row` does, from 0.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data.tables import Table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.csv"
    ...     _ = path.write_text("label,age\\nham,20\\nspam,30,40\\n")
    ...     try:
    ...         list(Table().batches([str(path)]))
    ...     except TableError as error:
    ...         print(f"line {error.line}: {error.problem}")
    line 3: 3 fields where there are 2 columns, separated by ',': 'spam,30,40'
    """

    @property
    def place(self) -> str:
        """Where it is, as "mail.parquet, row 3, column 'age'"; rows are shown from 1."""
        if self.row is None:
            return super().place
        file = "" if self.path is None else f"{self.path}, "
        return f"{file}row {self.row + 1}" + ("" if self.column is None else f", column {self.column!r}")


class Piece(NamedTuple):
    """Some rows of a file."""

    columns: pa.Table
    line: Callable[[int], int]  # of a row, counted from 1
    broken: Sequence[tuple[int, str]] = ()  # lines that are no rows, and why
    wrong: Mapping[str, dict[int, str]] = {}  # values that cannot be used, by column and row, and why; they are null
    texts: Callable[[], list[bytes]] | None = None  # the rows as they stand in the file; None where they are not text
    header: bytes | None = None  # the record that names the columns


class Form(NamedTuple):
    """How a file of rows is laid out."""

    format: str  # one of FORMATS
    delimiter: str = ","
    quote: str | None = '"'


def detect_table_format(path: str, start: bytes, delimiter: str | None) -> str:
    """Return the format of a file that the user did not give: CSV where he gave a delimiter, or as its suffix says, or else
    as it begins."""
    if delimiter is not None:
        return "csv"
    return format_of_suffix(path, TABLES) or format_of_start(start, TABLES) or "lines"


def form_of(format: str, start: bytes, delimiter: str | None, quote: str | None) -> Form:
    """Return the form of a file of this format that begins with these bytes."""
    if format in ("parquet", "arrow", "jsonl"):
        return Form(format)
    if format == "tsv":
        return Form(format, delimiter or "\t", quote)
    quote = '"' if quote is None else quote
    return Form(format, delimiter or _delimiter(start, quote), quote)


def _delimiter(start: bytes, quote: str) -> str:
    """Return what separates fields: that of the usual characters which occurs in each of the first lines equally often,
    outside quotes; or else that which occurs in the first line. Much that is called CSV has no commas."""
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


def whole_lines(stream: Input, size: int) -> Iterator[bytes]:
    """Yield a stream in blocks of about this size, which end where lines do."""
    line = 1
    try:
        for buffer, begin, end in pieces(stream, size):
            data = buffer[begin:end].tobytes()
            yield data
            line += data.count(b"\n")
    except FormatError as error:
        if error.line is not None or isinstance(error, TableError):
            raise
        raise TableError(error.problem, path=stream.name, line=line, hint=error.hint, settings=error.settings) from error


class ValidText(NamedTuple):
    """Text without the records that are not UTF-8, what is wrong with these, and the numbers of the lines that are left."""

    data: bytes
    broken: list[tuple[int, str]]
    lines: Sequence[int]


def not_utf8(text: bytes, error: UnicodeDecodeError) -> str:
    """Return what is wrong with bytes that cannot be decoded."""
    return f"the byte 0x{text[error.start]:02X} at byte {error.start + 1} is not UTF-8"


def drop_invalid(
    data: bytes, line: int, begins: Callable[[bytes], Any] = lambda data: range(data.count(b"\n") + 1)
) -> ValidText:
    """Return the records that are UTF-8. `begins` says on which line each begins, from 0; without it, lines are records."""
    try:
        data.decode()
        return ValidText(data, [], range(line, sys.maxsize))
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
            broken.append((line + number, f"{not_utf8(texts[number], reason)}; convert the file to UTF-8"))
    return ValidText(b"\n".join(kept), broken, numbers)


def check_encoding(start: bytes, file: str) -> None:
    """Raise TableError where text begins as UTF-16 does: with its mark, or with a zero in every other byte."""
    marked = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if marked or (len(start) > 3 and not all((any(start[:64:2]), any(start[1:64:2])))):
        hint = "convert the file: iconv -f UTF-16 -t UTF-8"
        raise TableError("this is UTF-16, not UTF-8", path=file, line=1, hint=hint)


class Source(ABC):
    """A file of rows, which is read in pieces. `names` are its columns, known before the first piece is read."""

    has_lines = True  # whether places are lines, or rows

    def __init__(self, stream: Input, form: Form, size: int):
        self.stream, self.form, self.size = stream, form, size
        self.header = True  # whether the columns have names of their own
        self.names: list[str] = []
        self.resources = ExitStack()  # what was opened beside the stream
        self._before: int | None = None  # the lines, or rows, of the file before this piece of it

    @abstractmethod
    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces, in order."""

    def close(self) -> None:
        """Close what was opened beside the stream."""
        self.resources.close()

    def number_in_file(self, number: int) -> int:
        """Return the number in the file of a line of this source, or of a row where there are no lines, both from 1."""
        if self.stream.piece is None or self.stream.starts_file:
            return number
        if self._before is None:
            self._before = self.count_before(self.stream.piece)
        return self._before + number

    def record_ends(self, size: int) -> list[int]:
        """Return places about `size` bytes apart where records of the file end, at which it can be cut; here, lines."""
        return line_ends(self.stream.name, size)

    def count_before(self, piece: FilePiece) -> int:
        """Return the number of lines, or rows, of the file before this piece of it."""
        return first_line(piece) - 1


def _encode_all(texts: list[str]) -> list[bytes]:
    return [text.encode() for text in texts]


class Lines(Source):
    """Plain text, of which each line is the one field of a row."""

    def __init__(self, stream: Input, form: Form, size: int, name: str):
        super().__init__(stream, form, size)
        self.names = [name]

    def __iter__(self) -> Iterator[Piece]:
        line = 1
        for block in whole_lines(self.stream, self.size):
            data, broken, lines = drop_invalid(block, line)
            texts = [text.removesuffix("\r") for text in data.decode().removesuffix("\n").split("\n")] if data else []
            table = pa.table({self.names[0]: text_array(texts)})
            yield Piece(table, lines.__getitem__, broken, texts=partial(_encode_all, texts))
            line += block.count(b"\n")
