"""Parquet and Arrow hold columns with types; they are read in batches, which are cut to size.

A batch is believed only after Arrow has checked it: offsets, lengths, UTF-8. What Arrow does before, while it takes a file
apart, it does on its own account: files of people you do not trust are better read as text.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import ipc
from pyarrow.parquet import ParquetFile

from rosenblatt.data.opening import Input
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


def open_parquet(stream: Input, form: Form, path: str, size: int) -> Columnar:
    """Return the rows of a Parquet file, which must be one that can be read from its end."""
    if path == "-":
        problem = "Parquet is read from its end, which standard input does not have"
        raise TableError(problem, path=stream.name, hint="name a file")
    try:
        file = ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)  # so that no row group is held whole
    except DAMAGE as reason:
        raise TableError(f"the file cannot be read as Parquet: {reason}", path=stream.name) from None
    meta = file.metadata
    bytes_a_row = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)) / max(meta.num_rows, 1)
    count = max(1, min(1 << 16, int(size / max(bytes_a_row, 1))))
    share = os.path.getsize(path) / max(meta.num_rows, 1)

    def batches() -> Iterator[Any]:
        with file:
            for batch in file.iter_batches(batch_size=count):
                stream.read(int(share * batch.num_rows))  # which says how far it is
                yield batch

    return Columnar(stream, form, size, list(file.schema_arrow.names), batches())


def open_arrow(stream: Input, form: Form, size: int) -> Columnar:
    """Return the rows of an Arrow file, which begins with its name, or of a stream of Arrow, which does not."""
    if stream.peek(6) == b"ARROW1":
        stream.read(8)  # what follows, up to the footer, is a stream
    try:
        reader = ipc.open_stream(pa.PythonFile(_Readable(stream), mode="r"))
    except DAMAGE as reason:
        raise TableError(f"the file cannot be read as Arrow: {reason}", path=stream.name) from None
    return Columnar(stream, form, size, list(reader.schema.names), iter(reader))


class _Readable(io.RawIOBase):
    """A stream as Arrow wants it."""

    def __init__(self, stream: Input):
        self.readinto = stream.readinto  # type: ignore[method-assign]  # nothing between the two

    def readable(self) -> bool:
        return True
