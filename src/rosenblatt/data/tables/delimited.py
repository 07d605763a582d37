"""Delimited text is cut between records, and each piece is cut into fields by Arrow.

A record ends with its line, unless a quoted field goes on in the next; so that a file can be cut between records, and each
record have a line, the quotes are followed from the beginning. A return that stands alone ends a line too, as it does for
Arrow. Fields stay text here: what they mean is for the columns to say, so that one strange value does not change how a
whole file is read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain, islice
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from rosenblatt.data.cutting import holds, line_ends
from rosenblatt.data.opening import BOM, MAX_COLUMNS, FilePiece, Input, size_of_file, too_long
from rosenblatt.data.tables.sources import SIZE, Form, Piece, Source, TableError, drop_invalid, whole_lines
from rosenblatt.engine.jit import jit

HEAD = 50  # records that are looked at to decide what the first one is
_ENOUGH = 1 << 24  # bytes of them, if there are fewer
_LINE_END, _RETURN = 10, 13


@jit
def scan_records(data, delimiter, quote, most):
    """Return where the last whole record ends, and the line on which each record begins, from 0, without blank lines. There
    are `most` line ends and returns. A quote opens a field at its beginning only, and two in one stand for one; −1 is no
    quote. A return between records that no line end follows becomes one, in the data."""
    lines = np.empty(most + 1, np.int64)
    records, line, begin, end = 0, 0, 0, 0
    quoted, fresh = False, True
    lines[0] = 0
    at = 0
    while at < data.size:
        byte = data[at]
        if byte == _RETURN and not quoted and (at + 1 == data.size or data[at + 1] != _LINE_END):
            byte = data[at] = _LINE_END
        if quoted:
            if byte == quote:
                if at + 1 < data.size and data[at + 1] == quote:
                    at += 1
                else:
                    quoted = False
            elif byte == _LINE_END:
                line += 1
        elif byte == _LINE_END:
            line += 1
            if at > begin + 1 or (at == begin + 1 and data[begin] != _RETURN):
                records += 1
            begin = end = at + 1
            lines[records] = line
            fresh = True
        elif fresh and byte == quote:
            quoted, fresh = True, False
        else:
            fresh = byte == delimiter
        at += 1
    return end, lines[: records + 1]


def first_records(data: bytes, form: Form, file: str) -> list[list[str]]:
    """Return the first records of delimited text, cut into fields without the blanks around them."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    most = csv.field_size_limit(len(text) + 1)
    try:
        columns = text.partition("\n")[0].count(form.delimiter) + 1
        if columns > MAX_COLUMNS:
            problem = f"the first line has {columns:,} fields; a table may have {MAX_COLUMNS:,} columns"
            raise TableError(problem, path=file, line=1, hint="rows of so many columns are better written as LIBSVM text")
        records: Iterable[list[str]] = (line.split(form.delimiter) for line in text.split("\n") if line)
        if form.quote:
            records = csv.reader(io.StringIO(text, newline="\n"), delimiter=form.delimiter, quotechar=form.quote)
        return [[field.strip() for field in record] for record in islice(filter(None, records), HEAD)]
    except csv.Error as reason:
        raise TableError(f"this is not delimited text: {reason}", path=file, line=1) from None
    finally:
        csv.field_size_limit(most)


class Delimited(Source):
    """Delimited text. Whether its first record, in `head`, is a header must be said with `begin` before it is read.
    At least `enough` records are in the head, if there are so many. A piece of a file has no header but at its start."""

    def __init__(self, stream: Input, form: Form, size: int, enough: int = HEAD):
        super().__init__(stream, form, size)
        self._codes = ord(form.delimiter), ord(form.quote) if form.quote else -1
        self._records = self.record_blocks()
        self._first = b""
        self._header: bytes | None = None  # the record that names the columns
        self.head: list[list[str]] = []
        for block in self._records if enough else ():
            self._first += block
            self.head = first_records(self._first, form, stream.name)
            if len(self.head) >= enough or len(self._first) >= _ENOUGH:
                break

    def begin(self, names: Sequence[str], header: bool) -> None:
        """Name the columns; the first record is left out if it is a header."""
        self.names, self.header = list(names), header
        first = drop_invalid(self._first.split(b"\n", 1)[0], 1).broken if header and self.stream.starts_file else []
        if first:
            line, problem = first[0]
            raise TableError(problem, path=self.stream.name, line=line)

    def __iter__(self) -> Iterator[Piece]:
        line, skip = 1, int(self.header and self.stream.starts_file)
        for data in self._blocks():
            yield self._piece(data, line, skip)
            line += data.count(b"\n")
            skip = 0

    def record_ends(self, size: int) -> list[int]:
        """The first record, which may be a header, is not cut off alone: a piece at the start of a file has it."""
        path = self.stream.name
        with Input(path) as stream:
            mark = len(BOM) if stream.peek(len(BOM)) == BOM else 0
            source = Delimited(stream, self.form, max(1, min(size // 4, SIZE)), enough=1)
            first = mark + source._first_end()
            if self.form.quote and holds(path, self.form.quote.encode()):
                ends = list(accumulate(map(len, source._blocks()), initial=mark))[1:]
            else:
                ends = line_ends(path, size)
        total = size_of_file(path)
        chosen = [0]
        for end in ends:
            if end >= max(first, chosen[-1] + size) and end < total:
                chosen.append(end)
        return [*chosen[1:], total]

    def _first_end(self) -> int:
        """Return where the first record ends, or the next one begins, in what is there of the file."""
        _, lines, data = self._scan(self._first)
        if len(lines) < 2:
            return len(data)
        at = 0
        for _ in range(lines[1]):
            at = data.index(b"\n", at) + 1
        return at

    def _blocks(self) -> Iterator[bytes]:
        """Yield the whole file in blocks of whole records."""
        first, self._first = self._first, b""
        return chain([first] if first else [], self._records)

    def count_before(self, piece: FilePiece) -> int:
        with Input(FilePiece(piece.path, 0, piece.begin)) as stream:
            return sum(block.count(b"\n") for block in Delimited(stream, self.form, SIZE, enough=0).record_blocks())

    def record_blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the file, without a byte order mark, in blocks of whole records."""
        rest, line, waiting, size = b"", 1, list[bytes](), 0
        for block in chain(whole_lines(self.stream, self.size), [b""]):
            waiting.append(block)
            size += len(block)
            if block and size < len(rest) and not self.stream.paused:  # a long quoted field is scanned a few times
                continue
            data = b"".join([rest, *waiting])
            waiting, size, end = [], 0, len(data)
            if (self.form.quote and self.form.quote.encode() in data) or data.count(b"\r") != data.count(b"\r\n"):
                end, _, data = self._scan(data)
            rest = data[end:]
            line += data[:end].count(b"\n")
            if len(rest) > self.stream.max_line:
                long = too_long("a quoted field", len(rest), self.stream.max_line, self.stream.name)
                raise self._quote_error(f"{long.problem}; is its second quote missing?", line, long.settings)
            if end:
                yield data[:end]
        if rest:
            ended = rest if rest.endswith(b"\n") else rest + b"\n"
            if self._scan(ended)[0] < len(ended):
                raise self._quote_error("a quote that opens in this row is not closed", line)
            yield rest

    def _quote_error(self, problem: str, line: int, settings: Mapping[str, object] = MappingProxyType({})) -> TableError:
        return TableError(problem, path=self.stream.name, line=line, settings={"quote": "", **settings})

    def _scan(self, data: bytes) -> tuple[int, NDArray[np.int64], bytes]:
        """Return where the last record ends, the lines on which they begin, and the data with line ends for returns."""
        copy = np.frombuffer(bytearray(data), np.uint8)
        end, lines = scan_records(copy, *self._codes, data.count(b"\n") + data.count(b"\r"))
        return end, lines, copy.tobytes()

    def _piece(self, data: bytes, line: int, skip: int) -> Piece:
        data, broken, lines = drop_invalid(data, line, lambda data: self._scan(data)[1])
        wrong: list[Any] = []

        def leave_out(row: Any) -> str:
            wrong.append(row)
            return "skip"

        @cache
        def begins() -> NDArray[np.int64]:
            return self._scan(data)[1]

        def line_of(record: int) -> int:
            return lines[int(begins()[record])]

        if not data.strip(b"\r\n"):
            return Piece(pa.table({}), line_of, broken)
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(BOM + data if data.startswith(BOM) else data),  # Arrow passes over one
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
            problem = f"the text from here on cannot be cut into fields: {reason}"
            raise TableError(problem, path=self.stream.name, line=line) from None
        for row in wrong[:]:
            if row.number - 1 < skip:  # the header
                wrong.remove(row)
                skip = 0
        expected = f"fields where there are {len(self.names)} columns, separated by {self.form.delimiter!r}"
        broken += [(line_of(row.number - 1), f"{row.actual_columns} {expected}: {row.text[:60]!r}") for row in wrong]
        left_out = np.array([row.number - 1 for row in wrong], np.int64)
        records = np.setdiff1d(np.arange(table.num_rows + len(left_out)), left_out)
        if skip and len(records):
            self._header = self._texts(data, records[:1])[0]
        records = records[skip:]
        return Piece(
            table.slice(skip),
            lambda row: line_of(int(records[row])),
            sorted(broken),
            texts=lambda: self._texts(data, records),
            header=self._header,
        )

    def _texts(self, data: bytes, records: NDArray[np.int64]) -> list[bytes]:
        """Return these records of a piece as they stand in the file."""
        _, begins, data = self._scan(data if data.endswith((b"\n", b"\r")) else data + b"\n")
        lines = data.split(b"\n")
        return [b"\n".join(lines[begins[record] : begins[record + 1]]).rstrip(b"\r\n") for record in records]
