"""The batches of tables: columns as the schema wants them, every value checked, so that nothing can go wrong when rows are
made of them. What is wrong is said with file, line and column, or the row is left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rosenblatt.data import opening
from rosenblatt.data.parsing.fingerprint import Fingerprint
from rosenblatt.data.tables.checking import Check, misfit
from rosenblatt.data.tables.delimited import Delimited
from rosenblatt.data.tables.files import Piece, Source, TableError
from rosenblatt.data.tables.schema import SAMPLE, Schema, decided
from rosenblatt.data.tables.sources import Asking, opened
from rosenblatt.data.tables.values import NUMBER, as_text, plain

MOST_ERRORS = 100  # that are remembered of the rows left out
MOST_BYTES = 1 << 26  # of the first rows, which are held while it is decided what they are
EMPTY = "there are no rows; is the file empty?"


@dataclass(frozen=True)
class Batch:
    """Some rows: the columns of the schema with their values checked, and the label and the weight where they are asked
    for."""

    columns: Any  # a table of Arrow: float64 for numbers (NaN is missing), large_string for the rest
    schema: Schema

    @property
    def rows(self) -> int:
        return self.columns.num_rows

    def take(self, rows: NDArray) -> Batch:
        """These rows, in this order."""
        return Batch(self.columns.take(pa.array(np.arange(self.rows)[rows])), self.schema)


class TableBatches:
    """An iterator over the batches of files, which holds one at a time. `schema` is known when the first one is there."""

    def __init__(
        self, paths: Sequence[str], asking: Asking, schema: Schema | None, labelled: bool, on_error: str, size: int
    ):
        self.schema = schema
        self.skipped = 0
        self.errors: list[TableError] = []
        self.taken = 0
        self.total = opening.size_of(paths)
        self._asking, self._labelled, self._skip, self._size = asking, labelled, on_error == "skip", size
        self._digest = Fingerprint()
        self._batches = self._all(paths)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Close what is open; there are no more batches."""
        self._batches.close()

    def digest(self) -> str:
        """XXH64, in hexadecimal, of all bytes read so far as they lie on the disk, file after file."""
        return self._digest.hexdigest()

    def _all(self, paths: Sequence[str]) -> Generator[Batch, None, None]:
        before = rows = 0
        for path in paths:
            with opening.Input(path, digest=self._digest) as stream:
                source = opened(path, stream, self._asking, self.schema, self._labelled, self._size)
                for piece in self._known(source):
                    self.taken = before + stream.taken
                    batch = self._checked(piece, source)
                    rows += batch.rows
                    if batch.rows:
                        yield batch
                while stream.read(1 << 20):
                    pass
                self.taken = before = before + stream.taken
        if not rows and not self.skipped:
            raise TableError(opening.name_of(paths[0]), None, EMPTY)

    def _known(self, source: Source) -> Iterator[Piece]:
        """The pieces of a source, after its columns were compared with the schema, or have made one."""
        rest = iter(source)
        first: list[Piece] = []
        rows = size = 0
        while rows < SAMPLE and size < MOST_BYTES and (piece := next(rest, None)) is not None:
            first.append(piece)
            rows += piece.columns.num_rows
            size += piece.columns.nbytes
        names = source.names or list(dict.fromkeys(name for piece in first for name in piece.columns.column_names if name))
        if names and any(piece.columns.num_rows for piece in first):
            sample = _stacked([_filled_up(piece.columns, names) for piece in first]).slice(0, SAMPLE)
            if self.schema is None:
                self.schema = self._decided(source, names, sample)
            self._compare(source, names, sample)
        return chain(first, rest)

    def _decided(self, source: Source, names: list[str], sample: Any) -> Schema:
        asking, file, notes = self._asking, source.stream.name, []
        header = source.header
        if isinstance(source, Delimited) and asking.header is None:
            notes = [
                f"the first line of {file} is {'the names of the columns' if header else 'a row, not names of columns'}"
            ]
        schema = decided(asking.choice, names, sample, source.form, header, file, notes)
        if notes and not header and (label := _lone(sample[schema.target])) is not None:
            doubt = f"{label!r} is the label of the first line only; if that line names the columns: --header, header=True"
            schema = replace(schema, notes=(schema.notes[0], doubt, *schema.notes[1:]))
        return schema

    def _compare(self, source: Source, names: list[str], sample: Any) -> None:
        """Raises TableError where the columns of a file are not those of the schema."""
        schema = self.schema
        assert schema is not None
        needed = schema.needed(self._labelled)
        wrong = [f"column {column.name} ({column.kind}) is missing" for column in needed if column.name not in names]
        wrong += [f"column {column.name} is there twice" for column in needed if names.count(column.name) > 1]
        for column in needed:
            if column.name in names and (found := misfit(column.kind, sample[column.name])) is not None:
                wrong.append(f"column {column.name} ({column.kind}) holds {found}")
        if wrong:
            others = [name for name in names if name not in {column.name for column in schema.columns}]
            rest = f"; the file has {', '.join(others)[:200]}" if others else ""
            raise TableError(source.stream.name, None, f"the columns do not fit: {'; '.join(wrong)}{rest}")

    def _checked(self, piece: Piece, source: Source) -> Batch:
        """The rows of a piece that can be read; the others are left out, or raise."""
        schema, file = self.schema, source.stream.name
        room = MOST_ERRORS - len(self.errors) if self._skip else 1
        wrong = [TableError(file, line, message) for line, message in piece.broken[: max(room, 1)]]
        if schema is None:
            raise wrong[0] if wrong else TableError(file, None, EMPTY)
        table = _filled_up(piece.columns, [column.name for column in schema.columns])
        bad: dict[int, tuple[str, str]] = {}
        columns = {}
        for name, kind in schema.needed(self._labelled):
            check = Check(kind, schema.labels, self._asking.missing == "fill", isinstance(source, Delimited))
            columns[name], found = check(table[name])
            for row, message in {**found, **piece.wrong.get(name, {})}.items():
                bad.setdefault(row, (name, message))
        for row in sorted(bad)[:room]:
            name, message = bad[row]
            wrong.append(TableError(file, piece.line(row), message, name, source.unit))
        wrong.sort(key=lambda error: error.line or 0)
        if wrong and not self._skip:
            raise wrong[0]
        self.skipped += len(piece.broken) + len(bad)
        self.errors += wrong[:room]
        cleaned = pa.table(columns)
        if bad:
            good = np.ones(cleaned.num_rows, bool)
            good[list(bad)] = False
            cleaned = cleaned.filter(pa.array(good))
        return Batch(cleaned, schema)


def _lone(labels: Any) -> str | None:
    """The first of these labels if it is a word that does not come again, as all the others do."""
    first, *others = as_text(labels).to_pylist()
    counts = Counter(others)
    lone = first is not None and first not in counts and len(counts) > 0 and min(counts.values()) > 1
    return first if lone and NUMBER.fullmatch(first.strip()) is None else None


def _filled_up(table: Any, names: Sequence[str]) -> Any:
    """The table with these columns, of nothing where it has none."""
    have = Counter(table.column_names)
    return pa.table({name: table[name] if have[name] == 1 else pa.nulls(table.num_rows) for name in dict.fromkeys(names)})


def _stacked(tables: list[Any]) -> Any:
    """Tables with the same columns as one."""
    return pa.table({name: _joined([plain(table[name]) for table in tables]) for name in tables[0].column_names})


def _joined(parts: list[Any]) -> Any:
    """Parts of a column as one, of numbers where all are, and else of text; nested ones have nothing to say."""
    types = {part.type for part in parts if not pa.types.is_null(part.type)}
    rows = sum(map(len, parts))
    if any(map(pa.types.is_nested, types)):
        return pa.nulls(rows, pa.list_(pa.null()))
    if len(types) > 1:
        numeric = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
        parts = [part.cast(pa.float64(), safe=False) if numeric else as_text(part) for part in parts]
        types = {part.type for part in parts}
    kind = next(iter(types), pa.null())
    parts = [pa.nulls(len(part), kind) if pa.types.is_null(part.type) else part for part in parts]
    return pa.chunked_array([chunk for part in parts for chunk in getattr(part, "chunks", [part])], kind)
