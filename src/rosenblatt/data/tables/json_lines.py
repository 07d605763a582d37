"""JSON lines are read by Arrow, a piece at a time. A piece that Arrow refuses, or reads with dates or blank lines, is read
object by object: so what is wrong is said of one line, and a column is the same however the file is cut."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json

from rosenblatt.data.tables.files import Piece, Source, TableError, whole_lines
from rosenblatt.data.tables.values import number_text


class JsonLines(Source):
    """JSON, an object a line. Its columns are the keys that occur in the pieces looked at first."""

    def __init__(self, stream: Any, size: int):
        super().__init__(stream, size)
        self.text: set[str] = set()  # columns known to hold text, even where it looks like a date

    def __iter__(self) -> Iterator[Piece]:
        line = 1
        for data in whole_lines(self.stream, self.size):
            if line == 1 and data.lstrip().startswith(b"["):
                raise TableError(
                    self.stream.name,
                    1,
                    "this is a JSON array; give one object a line, without brackets and "
                    "commas around them, as jq -c '.[]' writes it",
                )
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
