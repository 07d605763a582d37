"""The batches of tables: columns as the schema wants them, every value checked, so that nothing can go wrong when rows are
made of them. What is wrong is said with file, line and column, or the row is left out and counted.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rosenblatt.data import opening
from rosenblatt.data.tables import files
from rosenblatt.data.tables.files import Delimited, Form, JsonLines, Lines, Piece, Source, TableError
from rosenblatt.data.tables.schema import LABELS, SAMPLE, Choice, Schema, decided, is_number
from rosenblatt.data.tables.values import as_numbers, as_text, as_truth, plain

MOST_ERRORS = 100  # that are remembered of the rows left out
EMPTY = "there are no rows; is the file empty?"


class Asking(NamedTuple):
    """What the user said about the files."""

    choice: Choice
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    missing: str = "error"


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
        self.total = _total(paths)
        self._asking, self._labelled, self._skip, self._size = asking, labelled, on_error == "skip", size
        self._digest = hashlib.sha256()
        self._stream: opening.Input | None = None
        self._batches = self._all(paths)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Close what is open; there are no more batches."""
        self._batches.close()

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of all bytes read so far as they lie on the disk, file after file."""
        return self._digest.hexdigest()

    def _all(self, paths: Sequence[str]) -> Generator[Batch, None, None]:
        before = rows = 0
        for path in paths:
            with opening.Input(path, digest=True) as stream:
                stream._raw.digest = self._digest
                source = self._opened(path, stream)
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

    def _opened(self, path: str, stream: opening.Input) -> Source:
        """The file as a source of rows, with names for its columns."""
        asking, known = self._asking, self.schema
        start = _Peeked(stream)
        form = files.form_of(path, start.head, asking.format, asking.delimiter, asking.quote)
        if known is not None and asking.format is None and form.format in ("csv", "tsv", "lines"):
            text = known.form.format in ("csv", "tsv")
            if text and files.suffix_of(path) is None:  # what has no name is laid out as the file learned from
                form = known.form
        if form.format == "parquet":
            return files.parquet(start, path, self._size)
        if form.format == "arrow":
            return files.arrow(start, self._size)
        if form.format == "jsonl":
            return JsonLines(start, self._size)
        if form.format == "lines" and known is None:
            raise TableError(
                stream.name,
                None,
                "what format is this? Say format=, one of csv, tsv, jsonl, parquet and arrow, or delimiter=",
            )
        return self._delimited(start, form) if form.format != "lines" else self._lines(start)

    def _lines(self, stream: Any) -> Source:
        schema = self.schema
        if schema is None or schema.only_text is None or self._labelled:
            raise TableError(
                stream.name, None, "plain lines can be read for a model that has one column of text and nothing else"
            )
        return Lines(stream, self._size, schema.only_text)

    def _delimited(self, start: _Peeked, form: Form) -> Source:
        schema = self.schema
        first = files.first_records(start.head, form, start.name)[:1]
        names = self._names(first[0]) if schema is not None and first else []
        if schema is not None and names is None and schema.only_text is not None and not self._labelled:
            return self._lines(start)
        if schema is not None and names is None:
            raise TableError(
                start.name,
                1,
                f"{len(first[0])} fields ({', '.join(first[0])[:80]}) where the model has {len(schema.columns)}, without a "
                f"header: {', '.join(f'{column.name} ({column.kind})' for column in schema.columns)}",
            )
        source = Delimited(start, form, self._size)
        if schema is not None:
            source.begin(names or [], schema.header)
            return source
        header = self._asking.header
        if header is None:
            header = _has_header(source.head, self._asking.choice)
        first = source.head[:1] or [[]]
        source.begin(first[0] if header else [str(number) for number in range(len(first[0]))], header)
        return source

    def _names(self, first: list[str]) -> list[str] | None:
        """What to call the columns of delimited text that has a schema; None where they are not its columns."""
        schema = self.schema
        assert schema is not None
        if schema.header:
            plain_lines = schema.only_text is not None and not self._labelled and schema.only_text not in first
            return None if plain_lines else first
        every = [column.name for column in schema.columns]
        forms = [every]
        if not self._labelled and schema.only_text is None:
            forms += [[name for name in every if name != schema.target], schema.features]
        return next((names for names in forms if len(names) == len(first)), None)

    def _known(self, source: Source) -> Iterator[Piece]:
        """The pieces of a source, after its columns were compared with the schema, or have made one."""
        rest = iter(source)
        first: list[Piece] = []
        while sum(piece.columns.num_rows for piece in first) < SAMPLE and (piece := next(rest, None)) is not None:
            first.append(piece)
        names = source.names or list(dict.fromkeys(name for piece in first for name in piece.columns.column_names if name))
        if names and any(piece.columns.num_rows for piece in first):
            tables = [_filled_up(piece.columns, names) for piece in first]
            sample = pa.concat_tables(_alike(tables)).slice(0, SAMPLE)
            if self.schema is None:
                self.schema = self._decided(source, names, sample)
            self._compare(source, names, sample)
        return chain(first, rest)

    def _decided(self, source: Source, names: list[str], sample: Any) -> Schema:
        asking, file, notes = self._asking, source.stream.name, []
        form = Form("jsonl" if isinstance(source, JsonLines) else "parquet")
        header = True
        if isinstance(source, Delimited):
            form, header = source.form, source.header
            if asking.header is None:
                notes = [
                    f"the first line of {file} is {'the names of the columns' if header else 'a row, not names of columns'}"
                ]
        return decided(asking.choice, names, sample, form, header, file, notes)

    def _compare(self, source: Source, names: list[str], sample: Any) -> None:
        """Raises TableError where the columns of a file are not those of the schema."""
        schema = self.schema
        assert schema is not None
        needed = [column for column in schema.columns if column.name in schema.features]
        if self._labelled:
            needed += [column for column in schema.columns if column.kind in ("target", "weight")]
        wrong = [f"column {column.name} ({column.kind}) is missing" for column in needed if column.name not in names]
        if names.count("") < len(names):
            twice = [column.name for column in needed if names.count(column.name) > 1]
            wrong += [f"column {name} is there twice" for name in dict.fromkeys(twice)]
        if not isinstance(source, Delimited | Lines):
            for column in needed:
                if column.name in names and not _fits(column.kind, sample[column.name].type):
                    wrong.append(
                        f"column {column.name} must hold a {column.kind} and has the type {sample[column.name].type}"
                    )
        if wrong:
            others = [name for name in names if name not in {column.name for column in schema.columns}]
            rest = f"; the file has {', '.join(others)[:200]}" if others else ""
            raise TableError(source.stream.name, None, f"these are not the columns of the model: {'; '.join(wrong)}{rest}")

    def _checked(self, piece: Piece, source: Source) -> Batch:
        """The rows of a piece that can be read; the others are left out, or raise."""
        schema, file = self.schema, source.stream.name
        wrong = [TableError(file, line, message) for line, message in piece.broken]
        if schema is None:
            raise wrong[0] if wrong else TableError(file, None, EMPTY)
        table = _filled_up(piece.columns, [column.name for column in schema.columns])
        wanted = [column for column in schema.columns if column.name in schema.features]
        if self._labelled:
            wanted += [column for column in schema.columns if column.kind in ("target", "weight")]
        bad: dict[int, tuple[str, str]] = {}
        columns = {}
        for name, kind in wanted:
            columns[name], found = self._values(table[name], kind, isinstance(source, Delimited))
            for row, message in found.items():
                bad.setdefault(row, (name, message))
        places = {row: piece.line(row) for row in bad} if self._skip else {row: piece.line(row) for row in sorted(bad)[:1]}
        wrong += [TableError(file, line, bad[row][1], bad[row][0], source.unit) for row, line in places.items()]
        wrong.sort(key=lambda error: error.line or 0)
        if wrong and not self._skip:
            raise wrong[0]
        self.skipped += len(wrong)
        self.errors += wrong[: MOST_ERRORS - len(self.errors)]
        cleaned = pa.table(columns)
        if bad:
            cleaned = cleaned.filter(pa.array([row not in bad for row in range(cleaned.num_rows)]))
        return Batch(cleaned, schema)

    def _values(self, column: Any, kind: str, trim: bool) -> tuple[Any, dict[int, str]]:
        """A column as its kind wants it, and what is wrong with some of its rows."""
        schema = self.schema
        assert schema is not None
        column = plain(column)
        if kind in ("number", "boolean", "weight") or (kind == "target" and schema.labels == "number"):
            numbers, bad, missing = (as_truth if kind == "boolean" else as_numbers)(column)
            bad = {row: f"{what} is no {_NOUN[kind]}{_ADVICE[kind]}" for row, what in bad.items()}
            if kind == "weight":
                bad |= {int(row): f"{numbers[row]} is no weight, which is 0 or more" for row in np.flatnonzero(numbers < 0)}
            if kind in ("target", "weight") or self._asking.missing == "error":
                bad |= {int(row): _MISSING[kind] for row in np.flatnonzero(missing)}
            return pa.array(numbers), bad
        texts = as_text(column)
        if trim and kind in ("category", "target"):
            texts = pc.utf8_trim_whitespace(texts)
        bad = {}
        if kind == "target" or self._asking.missing == "error":
            bad = (
                {int(row): _MISSING[kind] for row in np.flatnonzero(texts.is_null().to_numpy())} if texts.null_count else {}
            )
        return texts, bad


_NOUN = {"number": "number", "boolean": "truth value (true or false)", "weight": "weight", "target": "number"}
_ADVICE = {
    "number": "; is it a column of categories? on_error='skip' leaves such rows out",
    "boolean": "",
    "weight": "",
    "target": ", as the labels of the first rows are",
}
_MISSING = dict.fromkeys(
    ("number", "boolean", "category", "text"),
    "the value is missing; missing='fill' fills it in, on_error='skip' leaves the row out",
) | {"target": "the label is missing; on_error='skip' leaves such rows out", "weight": "the weight is missing"}


class _Peeked:
    """A stream whose first bytes have been looked at."""

    def __init__(self, stream: opening.Input):
        self.name = stream.name
        self._stream = stream
        self.head = self._ahead = stream.read(1 << 16)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        got = min(len(view), len(self._ahead))
        view[:got], self._ahead = self._ahead[:got], self._ahead[got:]
        return got + self._stream.readinto(view[got:])

    def read(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])


def _total(paths: Sequence[str]) -> int | None:
    try:
        return sum(os.stat(path).st_size for path in paths) if "-" not in paths else None
    except OSError:
        return None


def _has_header(head: list[list[str]], choice: Choice) -> bool:
    """Whether the first record of delimited text is names: if the user gives some, or if it has no number where later ones
    do, or if a label is asked for by its name."""
    if any(not is_number(one) for one in choice.references):
        return True
    if choice.target is None and any(field.lower() in LABELS for row in head[:1] for field in row):
        return True
    numbers = [[not as_numbers(pa.array([field], pa.large_string()))[1] and field != "" for field in row] for row in head]
    return bool(head) and not any(numbers[0]) and any(any(row) for row in numbers[1:])


def _filled_up(table: Any, names: Sequence[str]) -> Any:
    """The table with these columns, of nothing where it has none."""
    have = Counter(table.column_names)
    return pa.table({name: table[name] if have[name] == 1 else pa.nulls(table.num_rows) for name in dict.fromkeys(names)})


def _alike(tables: list[Any]) -> list[Any]:
    """The tables with the same type in each column: what all can be, or text."""
    if len(tables) < 2:
        return tables
    columns = {}
    for name in tables[0].column_names:
        parts = [plain(table[name]) for table in tables]
        types = {part.type for part in parts if not pa.types.is_null(part.type)}
        if len(types) > 1:
            numeric = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
            parts = [part.cast(pa.float64(), safe=False) if numeric else as_text(part) for part in parts]
        columns[name] = parts
    return [pa.table({name: parts[i] for name, parts in columns.items()}) for i in range(len(tables))]


def _fits(kind: str, type_: Any) -> bool:
    """Whether values of a type of Arrow can be of a kind; text that spells numbers is told apart row by row."""
    if pa.types.is_null(type_):
        return True
    if kind in ("number", "weight"):
        return (
            pa.types.is_integer(type_)
            or pa.types.is_floating(type_)
            or pa.types.is_decimal(type_)
            or pa.types.is_boolean(type_)
        )
    if kind in ("text", "category"):
        return not pa.types.is_nested(type_) and (kind == "category" or not pa.types.is_floating(type_))
    return not pa.types.is_nested(type_)
