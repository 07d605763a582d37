"""Parquet and Arrow hold columns with types; they are read in batches, which are cut to size.

A batch is believed only after Arrow has checked it: offsets, lengths, UTF-8. What Arrow does before, while it takes a file
apart, it does on its own account: files of people you do not trust are better read as text.
"""

from __future__ import annotations

import io
import struct
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import ipc
from pyarrow.parquet import ParquetFile

from rosenblatt.data.opening import FilePiece, Input, check_version, open_binary, size_of_file
from rosenblatt.data.remote import is_url
from rosenblatt.data.tables.sources import Form, Piece, Source, TableError, not_utf8

DAMAGE = (pa.ArrowException, OSError, MemoryError, UnicodeError)  # what Arrow makes of a file that is none


class Columnar(Source):
    """Parquet or Arrow: columns with types, in batches that are cut to size."""

    has_lines = False

    def __init__(self, stream: Input, form: Form, size: int, names: list[str], batches: Iterator[Any]):
        super().__init__(stream, form, size)
        self.names = names
        self._batches = batches

    def __iter__(self) -> Iterator[Piece]:
        row = 1
        try:
            for batch in self._batches:
                batch, wrong = self._check(batch, row)
                count = max(1, batch.num_rows * self.size // max(batch.nbytes, 1))
                for begin in range(0, batch.num_rows, count):
                    part = pa.Table.from_batches([batch.slice(begin, count)])
                    here = {name: _within(rows, begin, part.num_rows) for name, rows in wrong.items()}
                    yield Piece(part, range(row, row + part.num_rows).__getitem__, (), here)
                    row += part.num_rows
        except DAMAGE as reason:
            raise self._damage(row, reason, None) from None

    def record_ends(self, size: int) -> list[int]:
        ends = [0]
        for begin in self.part_begins():
            if begin >= ends[-1] + size:
                ends.append(begin)
        return [*ends[1:], self.stream.total_bytes or 0]

    @abstractmethod
    def part_begins(self) -> list[int]:
        """Return where the row groups or record batches begin in the file, the first one as 0."""

    def _damage(self, row: int, reason: BaseException, name: str | None) -> TableError:
        problem = f"the file cannot be read from here on: {str(reason) or 'it asks for too much memory'}"
        return TableError(problem, path=self.stream.name, row=row - 1, column=name)

    def _check(self, batch: Any, row: int) -> tuple[Any, dict[str, dict[int, str]]]:
        """Return the batch with null where text is not UTF-8, and where that is; TableError where it is damaged."""
        columns, wrong = [], {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column, found = _valid(column)
            except DAMAGE as reason:
                raise self._damage(row, reason, name) from None
            columns.append(column)
            if found:
                wrong[name] = found
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names), wrong


def _valid(column: Any) -> tuple[Any, dict[int, str]]:
    """Return a column after it was checked, with null where bytes are not UTF-8, and what is wrong there."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_fixed_size_binary(column.type):
        column.validate(full=True)
        column = column.cast(pa.binary())
    if column.type not in _TEXT:
        column.validate(full=True)
        return column, {}
    raw = column.view(_TEXT[column.type])
    raw.validate(full=True)
    try:
        raw.cast(column.type if column.type != raw.type else pa.large_string())
        return column, {}
    except pa.ArrowInvalid:
        values = raw.to_pylist()
    wrong = {}
    for row, value in enumerate(values):
        try:
            (value or b"").decode()
        except UnicodeDecodeError as reason:
            wrong[row] = not_utf8(value, reason)
            values[row] = None
    return pa.array(values, raw.type).cast(column.type), wrong


_TEXT = {
    pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view(),
    pa.binary(): pa.binary(), pa.large_binary(): pa.large_binary(), pa.binary_view(): pa.binary_view(),
}  # fmt: skip


def _within(rows: dict[int, str], begin: int, count: int) -> dict[int, str]:
    return {row - begin: what for row, what in rows.items() if begin <= row < begin + count}


class Parquet(Columnar):
    """The rows of a Parquet file, or of the row groups that begin in a piece of it."""

    def __init__(self, stream: Input, form: Form, size: int, path: str):
        source: Any = open_binary(path) if is_url(path) else path
        try:
            self._file = ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)  # so that no row group is held whole
        except DAMAGE as reason:
            if source is not path:
                source.close()
            raise TableError(f"the file cannot be read as Parquet: {reason}", path=stream.name) from None
        super().__init__(stream, form, size, list(self._file.schema_arrow.names), self._read())
        self.resources.callback(self._file.close, force=True)

    def part_begins(self) -> list[int]:
        """A row group begins where its first column does. Where that makes no sense all are said to begin at 0."""
        meta = self._file.metadata
        if not meta.num_columns:
            return [0] * meta.num_row_groups
        pages = [_first_page(meta.row_group(group).column(0)) for group in range(meta.num_row_groups)]
        begins = [0, *pages[1:]][: len(pages)]
        end = self._file_size()
        return begins if all(one < other < end for one, other in pairwise(begins)) else [0] * len(begins)

    def count_before(self, piece: FilePiece) -> int:
        meta = self._file.metadata
        return sum(meta.row_group(group).num_rows for group in range(bisect_left(self.part_begins(), piece.begin)))

    def _file_size(self) -> int:
        piece = self.stream.piece
        return (self.stream.total_bytes or 0) if piece is None else max(piece.end, size_of_file(piece.path))

    def _read(self) -> Iterator[Any]:
        meta, piece = self._file.metadata, self.stream.piece
        groups = list(range(meta.num_row_groups))
        if piece is not None:
            begins = self.part_begins()
            groups = groups[bisect_left(begins, piece.begin) : bisect_left(begins, piece.end)]
        rows = sum(meta.row_group(group).num_rows for group in groups)
        memory = sum(meta.row_group(group).total_byte_size for group in groups) / max(rows, 1)  # that a row takes
        count = max(1, min(1 << 16, int(self.size / max(memory, 1))))
        share = (self.stream.total_bytes or 0) / max(rows, 1)
        for batch in self._file.iter_batches(batch_size=count, row_groups=groups):
            self.stream.read(int(share * batch.num_rows))  # which says how far it is
            yield batch
        if piece is not None:
            check_version(piece)


def _first_page(column: Any) -> int:
    """Return where a column of a row group begins, with its dictionary if it has one."""
    return min(place for place in (column.dictionary_page_offset, column.data_page_offset) if place is not None)


def open_parquet(stream: Input, form: Form, path: str, size: int) -> Columnar:
    """Return the rows of a Parquet file, which must be one that can be read from its end."""
    if path == "-":
        problem = "Parquet is read from its end, which standard input does not have"
        raise TableError(problem, path=stream.name, hint="name a file")
    return Parquet(stream, form, size, path)


class Message(NamedTuple):
    """A message of Arrow in a file: the schema, a dictionary, or a record batch."""

    begin: int
    kind: int


_RECORDS = 3  # the kind of a record batch
_MAGIC = b"ARROW1"


def messages(path: str) -> Iterator[Message]:
    """Yield the messages of an Arrow file or stream; their bodies are not read. What is no message ends it."""
    with open_binary(path) as file:
        place = 8 if file.read(len(_MAGIC)) == _MAGIC else 0
        while True:
            file.seek(place)
            try:
                mark, length = struct.unpack("<Ii", file.read(8))
                if mark != 0xFFFFFFFF or length <= 0:
                    return
                kind, body = _message_facts(file.read(length))
            except (struct.error, IndexError):
                return
            if body < 0:
                return
            yield Message(place, kind)
            place += 8 + length + body


def _message_facts(metadata: bytes) -> tuple[int, int]:
    """Return the kind of a message and the bytes of its body; the metadata is a table of FlatBuffers, whose fields 1 and 3
    these are."""
    (table,) = struct.unpack_from("<I", metadata, 0)
    places = table - struct.unpack_from("<i", metadata, table)[0]
    size, kind = struct.unpack_from("<H4xH", metadata, places)
    body = struct.unpack_from("<H", metadata, places + 10)[0] if size > 10 else 0
    return metadata[table + kind], struct.unpack_from("<q", metadata, table + body)[0] if body else 0


class Arrow(Columnar):
    """The rows of an Arrow file, which begins with its name, or of a stream of Arrow, which does not; or of the record
    batches in a piece of one."""

    def __init__(self, stream: Input, form: Form, size: int):
        streams = [stream] if stream.starts_file else [_schema(stream.name), stream]
        try:
            reader = ipc.open_stream(pa.PythonFile(_Readable(*streams), mode="r"))
        except DAMAGE as reason:
            raise TableError(f"the file cannot be read as Arrow: {reason}", path=stream.name) from None
        super().__init__(stream, form, size, list(reader.schema.names), iter(reader))

    def part_begins(self) -> list[int]:
        found = list(messages(self.stream.name))
        records = [at for at, message in enumerate(found) if message.kind == _RECORDS]
        if not records or any(message.kind != _RECORDS for message in found[records[0] :]):
            return [0]  # a dictionary that comes later belongs to all batches behind it
        return [0, *(found[at].begin for at in records[1:])]

    def count_before(self, piece: FilePiece) -> int:
        with Input(FilePiece(piece.path, 0, piece.begin)) as stream:
            return sum(batch.num_rows for batch in Arrow(stream, self.form, self.size)._batches)


def _schema(path: str) -> Input:
    """Return what stands in an Arrow file before its first record batch: the schema, and dictionaries."""
    begin = next((message.begin for message in messages(path) if message.kind == _RECORDS), None)
    if begin is None:
        raise TableError("there are no record batches; has the file changed since it was cut?", path=path)
    with Input(FilePiece(path, 0, begin)) as head:
        return Input(io.BytesIO(head.read()))


class _Readable(io.RawIOBase):
    """Streams, one behind the other, as Arrow wants them; the name that an Arrow file begins with is passed over."""

    def __init__(self, *streams: Input):
        self._streams = list(streams)
        if streams[0].peek(len(_MAGIC)) == _MAGIC:
            streams[0].read(8)  # what follows, up to the footer, is a stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not (got := self._streams[0].readinto(buffer)) and len(self._streams) > 1:
            self._streams.pop(0)
        return got
