"""Parquet and Arrow hold columns with types; they are read in batches, which are cut to size."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import ipc
from pyarrow.parquet import ParquetFile

from rosenblatt.data.tables.files import Piece, Source, TableError


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
        reader = ipc.open_stream(pa.PythonFile(_Readable(stream), mode="r"))
    except (pa.ArrowInvalid, OSError) as reason:
        raise TableError(stream.name, None, f"the file cannot be read as Arrow: {reason}") from None
    return Columnar(stream, size, list(reader.schema.names), iter(reader))


class _Readable(io.RawIOBase):
    """A stream as Arrow wants it."""

    def __init__(self, stream: Any):
        self.readinto = stream.readinto  # type: ignore[method-assign]

    def readable(self) -> bool:
        return True
