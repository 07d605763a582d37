"""A file of rows is read in pieces of bounded size, each a table of Arrow that knows on which line its rows stand, whatever
the format: delimited text, JSON lines, Parquet, Arrow, or plain lines of text.

Fields of delimited text stay text here: what they mean is for the columns to say, so that one strange value does not change
how a whole file is read.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import SUFFIXES, FormatError, pieces

try:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.json
except ImportError as missing:  # pragma: no cover
    raise ModuleNotFoundError("tables need pyarrow, which is not installed: pip install 'rosenblatt[tables]'") from missing

from rosenblatt.data.tables.records import walked
from rosenblatt.data.tables.values import number_text

SIZE = 1 << 21  # bytes of a piece, about
HEAD = 50  # records of delimited text that are looked at to decide what the first one is
LONGEST = 1 << 26  # bytes that a quoted field may go on over line ends
FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow", "lines")
_BY_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip


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
        format = "csv" if delimiter is not None else suffix_of(path) or _guess(start)
    if format == "tsv":
        return Form(format, delimiter or "\t", quote)
    first = start.split(b"\n", 1)[0].decode("utf-8", "replace")
    found = next((one for one in ",;\t|" if one in first), ",")  # much that is called CSV has no commas
    return Form(format, delimiter or found, '"' if quote is None else quote)


def suffix_of(path: str) -> str | None:
    """The format that the suffix of a file names, under that of a compression; None if it names none."""
    name = Path(path)
    suffix = name.with_suffix("").suffix if name.suffix in SUFFIXES else name.suffix
    return _BY_SUFFIX.get(suffix.lower())


def _guess(start: bytes) -> str:
    first = start.split(b"\n", 1)[0].lstrip(b"\xef\xbb\xbf \t")
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if first.startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in first else "csv" if b"," in first or b";" in first else "lines"


def first_records(data: bytes, form: Form, file: str) -> list[list[str]]:
    """The first records of delimited text, cut into fields without the blanks around them."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    most = csv.field_size_limit(LONGEST)
    try:
        records: Iterable[list[str]] = (line.split(form.delimiter) for line in text.split("\n") if line)
        if form.quote:
            records = csv.reader(io.StringIO(text, newline="\n"), delimiter=form.delimiter, quotechar=form.quote)
        return [[field.strip() for field in record] for record in islice(filter(None, records), HEAD)]
    except csv.Error as reason:
        raise TableError(file, 1, f"this is no delimited text: {reason}") from None
    finally:
        csv.field_size_limit(most)


def whole_lines(stream: Any, size: int) -> Iterator[bytes]:
    """A stream in blocks of about this size, which end where lines do."""
    for buffer, begin, end in pieces(stream, size):
        yield buffer[begin:end].tobytes()


class Decoded(NamedTuple):
    """Text without the records that are not UTF-8, what is wrong with these, and the numbers of the lines that are left."""

    data: bytes
    broken: list[tuple[int, str]]
    lines: Sequence[int]


class Source:
    """A file of rows, which is read in pieces. `names` are its columns, known before the first piece is asked for."""

    unit = "line"

    def __init__(self, stream: Any, size: int):
        self.stream, self.size = stream, size
        self.names: list[str] = []

    def __iter__(self) -> Iterator[Piece]:
        raise NotImplementedError


class Delimited(Source):
    """Delimited text. Whether its first record is a header is for whoever reads it to say: `begin`, after a look at
    `head`."""

    def __init__(self, stream: Any, form: Form, size: int):
        super().__init__(stream, size)
        self.form = form
        self._codes = ord(form.delimiter), ord(form.quote) if form.quote else -1
        self._records = self._cut()
        self._first = b""
        self.head: list[list[str]] = []
        for block in self._records:
            self._first += block
            self.head = first_records(self._first, form, stream.name)
            if len(self.head) == HEAD:
                break

    def begin(self, names: Sequence[str], header: bool) -> None:
        """Call the columns so; the first record is left out if it is a header."""
        self.names, self.header = list(names), header

    def __iter__(self) -> Iterator[Piece]:
        line, skip = 1, int(self.header)
        first, self._first = self._first, b""
        for data in (block for source in ([first] if first else [], self._records) for block in source):
            yield self._piece(data, line, skip)
            line += data.count(b"\n")
            skip = 0

    def _cut(self) -> Iterator[bytes]:
        """The file in blocks of whole records."""
        rest, line = b"", 1
        for block in whole_lines(self.stream, self.size):
            data = rest + block
            end = len(data)
            if self.form.quote and self.form.quote.encode() in data:
                end = self._walked(data)[0]
            rest = data[end:]
            if len(rest) > LONGEST:
                raise TableError(
                    self.stream.name,
                    line + data[:end].count(b"\n"),
                    f"a quoted field is longer than {LONGEST:,} bytes; is its second quote missing? "
                    "quote='' reads quotes as they stand",
                )
            line += data[:end].count(b"\n")
            if end:
                yield data[:end]
        if rest:
            ended = rest if rest.endswith(b"\n") else rest + b"\n"
            if self._walked(ended)[0] < len(ended):
                raise TableError(
                    self.stream.name,
                    line,
                    "a quote that opens in this row is not closed; quote='' reads quotes as they stand",
                )
            yield rest

    def _walked(self, data: bytes) -> tuple[int, NDArray[np.int64]]:
        return walked(np.frombuffer(data, np.uint8), *self._codes, data.count(b"\n"))

    def _piece(self, data: bytes, line: int, skip: int) -> Piece:
        data, broken, lines = _utf8(data, line, lambda data: self._walked(data)[1])
        wrong: list[Any] = []

        def leave_out(row: Any) -> str:
            wrong.append(row)
            return "skip"

        @cache
        def begins() -> NDArray[np.int64]:
            return self._walked(data)[1]

        def line_of(record: int) -> int:
            return lines[int(begins()[record])]

        if not data.strip():
            return Piece(pa.table({}), line_of, broken)
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names),
                pa.csv.ParseOptions(
                    delimiter=self.form.delimiter,
                    quote_char=self.form.quote or False,
                    newlines_in_values=bool(self.form.quote),
                    invalid_row_handler=leave_out,
                ),
                pa.csv.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(self.names, pa.large_string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as reason:
            raise TableError(self.stream.name, line, f"the text from here on cannot be cut into fields: {reason}") from None
        for row in wrong[:]:
            if row.number - 1 < skip:  # the header
                wrong.remove(row)
                skip = 0
        broken += [
            (
                line_of(row.number - 1),
                f"{row.actual_columns} fields where there are {len(self.names)} columns, separated by "
                f"{self.form.delimiter!r}: {row.text[:60]!r}",
            )
            for row in wrong
        ]
        left_out = np.array([row.number - 1 for row in wrong], np.int64)
        records = np.setdiff1d(np.arange(table.num_rows + len(left_out)), left_out)[skip:]
        return Piece(table.slice(skip), lambda row: line_of(int(records[row])), sorted(broken))


class JsonLines(Source):
    """JSON, an object a line. Its columns are the keys that occur in the pieces looked at first."""

    def __init__(self, stream: Any, size: int):
        super().__init__(stream, size)
        self.text: set[str] = set()  # columns known to hold text, even where it looks like a date

    def __iter__(self) -> Iterator[Piece]:
        line = 1
        for data in whole_lines(self.stream, self.size):
            yield self._piece(data, line)
            line += data.count(b"\n")

    def _piece(self, data: bytes, line: int) -> Piece:
        schema = pa.schema([(name, pa.string()) for name in sorted(self.text)])
        options = pa.json.ParseOptions(explicit_schema=schema, newlines_in_values=False)
        try:
            table = pa.json.read_json(
                pa.BufferReader(data), pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1), options
            )
            dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
            if not dates and table.num_rows == data.count(b"\n") + (not data.endswith(b"\n")):
                return Piece(table, lambda row: line + row)
            self.text.update(dates)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
        return self._one_by_one(data, line)

    def _one_by_one(self, data: bytes, line: int) -> Piece:
        """The same by Python's own reader, which says what is wrong with which line."""
        rows, lines, broken = [], [], []
        for number, text in enumerate(data.split(b"\n"), line):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
                json.dumps(row, ensure_ascii=False).encode()
            except (ValueError, RecursionError) as reason:
                broken.append((number, f"this is no JSON: {reason}"))
                continue
            if isinstance(row, dict):
                rows.append(row)
                lines.append(number)
            else:
                found = text[:60].decode("utf-8", "replace")
                broken.append((number, f"an object in braces is expected, one a line; found {found!r}"))
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: _column([row.get(name) for row in rows]) for name in names}
        table = pa.table(columns) if columns or not rows else pa.table({"": pa.nulls(len(rows))})  # {} is a row too
        return Piece(table, lambda row: lines[row], broken)


class Lines(Source):
    """Plain text, of which each line is the one field of a row."""

    def __init__(self, stream: Any, size: int, name: str):
        super().__init__(stream, size)
        self.names = [name]

    def __iter__(self) -> Iterator[Piece]:
        line = 1
        for block in whole_lines(self.stream, self.size):
            data, broken, lines = _utf8(block, line)
            texts = [text.removesuffix("\r") for text in data.decode().removesuffix("\n").split("\n")]
            yield Piece(pa.table({self.names[0]: pa.array(texts, pa.large_string())}), lines.__getitem__, broken)
            line += block.count(b"\n")


class Columnar(Source):
    """Parquet or Arrow: columns with types, in batches that are cut to size."""

    unit = "row"

    def __init__(self, stream: Any, size: int, names: list[str], batches: Iterator[Any]):
        super().__init__(stream, size)
        self.names = names
        self._batches = batches

    def __iter__(self) -> Iterator[Piece]:
        row = 1
        try:
            for batch in self._batches:
                count = max(1, batch.num_rows * self.size // max(batch.nbytes, 1))
                for begin in range(0, batch.num_rows, count):
                    part = pa.Table.from_batches([batch.slice(begin, count)])
                    yield Piece(part, range(row, row + part.num_rows).__getitem__)
                    row += part.num_rows
        except (pa.ArrowInvalid, OSError) as reason:
            raise TableError(
                self.stream.name, row, f"the file cannot be read from here on: {reason}", None, "row"
            ) from None


def parquet(stream: Any, path: str, size: int) -> Columnar:
    """The rows of a Parquet file, which must be one that can be read from its end."""
    from pyarrow.parquet import ParquetFile

    if path == "-":
        raise TableError(stream.name, None, "Parquet is read from its end, which standard input does not have; name a file")
    try:
        file = ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)  # so that no row group is held whole
    except (pa.ArrowInvalid, OSError) as reason:
        raise TableError(stream.name, None, f"the file cannot be read as Parquet: {reason}") from None
    meta = file.metadata
    bytes_a_row = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)) / max(meta.num_rows, 1)
    count = max(1, min(1 << 16, int(size / max(bytes_a_row, 1))))
    share = os.path.getsize(path) / max(meta.num_rows, 1)

    def batches() -> Iterator[Any]:
        with file:
            for batch in file.iter_batches(batch_size=count):
                stream.read(int(share * batch.num_rows))  # which says how far it is
                yield batch

    return Columnar(stream, size, list(file.schema_arrow.names), batches())


def arrow(stream: Any, size: int) -> Columnar:
    """The rows of an Arrow file, which begins with its name, or of a stream of Arrow, which does not."""
    if stream.head.startswith(b"ARROW1"):
        stream.read(8)  # what follows, up to the footer, is a stream
    try:
        reader = pa.ipc.open_stream(pa.PythonFile(_Readable(stream), mode="r"))
    except (pa.ArrowInvalid, OSError) as reason:
        raise TableError(stream.name, None, f"the file cannot be read as Arrow: {reason}") from None
    return Columnar(stream, size, list(reader.schema.names), iter(reader))


class _Readable(io.RawIOBase):
    """A stream as Arrow wants it."""

    def __init__(self, stream: Any):
        self.readinto = stream.readinto  # type: ignore[method-assign]

    def readable(self) -> bool:
        return True


def _utf8(data: bytes, line: int, begins: Callable[[bytes], Any] = lambda data: range(data.count(b"\n") + 1)) -> Decoded:
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


def _column(values: list[Any]) -> Any:
    """Values of JSON as a column: truth values where all are, numbers where all are, and else text."""
    types = {type(value) for value in values if value is not None}
    if types & {dict, list}:
        return pa.nulls(len(values), pa.list_(pa.null()))  # which no treatment takes
    if not types:
        return pa.nulls(len(values))
    if types <= {bool}:
        return pa.array(values, pa.bool_())
    if types <= {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pa.array(values, pa.int64())
    if types <= {int, float}:
        return pa.array([None if value is None else _float(value) for value in values], pa.float64())
    return pa.array([value if isinstance(value, str | None) else _json_text(value) for value in values], pa.string())


def _json_text(value: Any) -> str:
    return number_text(value) if type(value) is float else json.dumps(value, ensure_ascii=False)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
