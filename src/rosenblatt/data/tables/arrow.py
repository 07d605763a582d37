"""Conversions between Arrow arrays and Python strings or numpy arrays. pyarrow's own conversions import pandas, where it
is installed, which takes longer than predicting a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import MissingDependency

try:
    import pyarrow as pa
except ImportError as missing:
    raise MissingDependency("pyarrow", "tables", "tables") from missing

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def text_array(texts: Sequence[str | None]) -> pa.Array:
    """Return an Arrow array of strings with 64-bit offsets (large_string); None becomes null."""
    encoded = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    present = np.array([text is not None for text in texts], bool)
    return pa.Array.from_buffers(
        pa.large_string(), len(encoded), [_validity(present), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def number_array(numbers: NDArray, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return an Arrow array of float64 or int64 numbers, with null where `missing` is true. NaN stays NaN."""
    kind = pa.float64() if numbers.dtype == np.float64 else pa.int64()
    valid = None if missing is None else _validity(~missing)
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(np.ascontiguousarray(numbers))])


def _validity(present: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


EMPTY, BLANK, NULL = text_array(["", " ", None])


def to_numpy(column: Column) -> NDArray:
    """Return a column of numbers or booleans as a numpy array; where it has nulls, as floats in which null is NaN."""
    chunks = [_values(chunk) for chunk in getattr(column, "chunks", [column])]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.empty(0, column.type.to_pandas_dtype()), *chunks])


def _values(array: Any) -> NDArray:
    valid, data = array.buffers()
    begin, end = array.offset, array.offset + len(array)
    if pa.types.is_boolean(array.type):
        values = _unpacked(data, begin, end)
    else:
        values = np.frombuffer(data or b"", array.type.to_pandas_dtype())[begin:end]
    if not array.null_count:
        return values
    return np.where(_unpacked(valid, begin, end), values, np.nan)


def _unpacked(bits: pa.Buffer, begin: int, end: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits or b"", np.uint8), count=end, bitorder="little")[begin:].view(bool)
