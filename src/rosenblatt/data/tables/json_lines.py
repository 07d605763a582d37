"""JSON lines are read by Arrow, a piece at a time. A piece that Arrow refuses, or in which it sees dates, blank lines or
numbers that float64 may have rounded, is read object by object: so what is wrong is said of one line, and a value is the
same whatever stands beside it and however the file is cut. NaN is a missing value, true is not a number, whole numbers keep
their digits, and lists and objects are values of no column that is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from rosenblatt.data.json_text import what_is_wrong
from rosenblatt.data.opening import BOM, MAX_COLUMNS, Input
from rosenblatt.data.tables.sources import Form, Piece, Source, TableError, not_utf8, whole_lines
from rosenblatt.data.tables.values import number_text

EXACT = 2**53  # below it float64 has every whole number
_NESTED = "a list or an object is neither a number nor text"


class JsonLines(Source):
    """JSON, an object a line. Its columns are the keys that occur in the pieces looked at first."""

    def __init__(self, stream: Input, form: Form, size: int):
        super().__init__(stream, form, size)
        self.text: set[str] = set()  # columns known to hold text, even where it looks like a date

    def __iter__(self) -> Iterator[Piece]:
        line = 1
        for data in whole_lines(self.stream, self.size):
            if line == 1 and self.stream.starts_file and data.lstrip().startswith(b"["):
                hint = "give one object a line, without brackets and commas around them, as jq -c '.[]' writes it"
                raise TableError("this is a JSON array", path=self.stream.name, line=1, hint=hint)
            piece = self._piece(data, line)
            yield piece._replace(texts=partial(_object_texts, data, line, piece))
            line += data.count(b"\n")

    def _piece(self, data: bytes, line: int) -> Piece:
        if data.count(b":") + data.count(b",") > MAX_COLUMNS:
            for number, text in enumerate(data.split(b"\n"), line):
                keys, values = text.count(b'":'), text.count(b",")
                if keys > MAX_COLUMNS or values > 4 * MAX_COLUMNS:
                    problem = f"the object has about {max(keys, values):,} values; a table may have {MAX_COLUMNS:,} columns"
                    raise TableError(problem, path=self.stream.name, line=number)
        schema = pa.schema([(name, pa.string()) for name in sorted(self.text)])
        options = pa.json.ParseOptions(explicit_schema=schema, newlines_in_values=False)
        try:
            data.decode()
            if data.startswith(BOM):  # which Arrow passes over: that of the file was dropped before
                return self._one_by_one(data, line)
            table = pa.json.read_json(
                pa.BufferReader(data), pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1), options
            )
            dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
            whole = table.num_rows == data.count(b"\n") + (not data.endswith(b"\n"))
            if whole and table.num_columns and not dates and not any(map(_may_be_rounded, table.columns)):
                found = {name: _usable(table[name]) for name in table.column_names}
                wrong = {name: nested for name, (_, nested) in found.items() if nested}
                return Piece(
                    pa.table({name: column for name, (column, _) in found.items()}), lambda row: line + row, (), wrong
                )
            self.text.update(dates)
        except (UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
        return self._one_by_one(data, line)

    def _one_by_one(self, data: bytes, line: int) -> Piece:
        """Return the same by Python's own reader, which says what is wrong with which line."""
        rows, lines, broken = [], [], []
        for number, text in enumerate(data.split(b"\n"), line):
            if not text.strip():
                continue
            try:
                row = json.loads(text.decode("utf-8-sig" if number == 1 and self.stream.starts_file else "utf-8"))
                json.dumps(row, ensure_ascii=False).encode()
            except UnicodeDecodeError as reason:
                broken.append((number, _encoding_problem(text, reason)))
                continue
            except UnicodeEncodeError:
                broken.append((number, "text holds half of a surrogate pair, which is not a character"))
                continue
            except json.JSONDecodeError as reason:
                broken.append((number, f"this is not JSON: {what_is_wrong(reason)} at character {reason.pos + 1}"))
                continue
            except (ValueError, RecursionError) as reason:
                deep = "lists and objects are nested too deeply"
                broken.append((number, deep if isinstance(reason, RecursionError) else "a number has thousands of digits"))
                continue
            if isinstance(row, dict):
                rows.append(row)
                lines.append(number)
            else:
                found = text[:60].decode("utf-8", "replace")
                broken.append((number, f"an object in braces is expected, one a line; found {found!r}"))
        table, wrong = object_columns(rows)
        return Piece(table, lambda row: lines[row], broken, wrong)


def object_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[pa.Table, dict[str, dict[int, str]]]:
    """Return objects of JSON as columns, and what is wrong with which values, by column and row; these are null."""
    columns, wrong = {}, {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        nested = {at: _NESTED for at, value in enumerate(values) if isinstance(value, dict | list)}
        columns[name] = _column([None if at in nested else value for at, value in enumerate(values)])
        if nested:
            wrong[name] = nested
    return pa.table(columns) if columns or not rows else pa.table({"": pa.nulls(len(rows))}), wrong  # {} is a row too


def _object_texts(data: bytes, first: int, piece: Piece) -> list[bytes]:
    """Return the lines of the objects of a piece, which begins with this line of the file."""
    lines = data.split(b"\n")
    return [lines[piece.line(row) - first].strip() for row in range(piece.columns.num_rows)]


def _may_be_rounded(column: Any) -> bool:
    """Return whether numbers of a column may not be those of the file: whole ones beside others, or NaN."""
    return pa.types.is_floating(column.type) and not np.all(np.abs(column.drop_null().to_numpy()) < EXACT)


def _usable(column: Any) -> tuple[Any, dict[int, str]]:
    """Return a column as Arrow has it, truth values as text; and what is wrong with which rows."""
    if pa.types.is_nested(column.type):
        return pa.nulls(len(column)), dict.fromkeys(np.flatnonzero(column.is_valid()).tolist(), _NESTED)
    return column.cast(pa.string()) if pa.types.is_boolean(column.type) else column, {}


def _column(values: list[Any]) -> Any:
    """Values of JSON as a column: numbers where all are and float64 has them all, and else text."""
    values = [None if value != value else value for value in values]  # NaN is not itself
    types = {type(value) for value in values if value is not None}
    if not types:
        return pa.nulls(len(values))
    if types <= {int, float} and all(value is None or abs(value) < EXACT for value in values):
        return pa.array(values, pa.float64())
    return pa.array([value if isinstance(value, str | None) else _json_text(value) for value in values], pa.string())


def _json_text(value: Any) -> str:
    return number_text(value) if type(value) is float else json.dumps(value)


def _encoding_problem(text: bytes, reason: UnicodeDecodeError) -> str:
    """Return what is wrong with a line that is not UTF-8, and in which column if that is known."""
    message = f"{not_utf8(text, reason)}; convert the file to UTF-8"
    try:
        row = json.loads(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return message
    for name, value in row.items() if isinstance(row, dict) else ():
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return f"column {name.encode(errors='replace').decode()}: {message}"
    return message
