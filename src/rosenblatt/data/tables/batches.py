"""The batches of tables: columns as the schema wants them, every value checked, so that nothing can go wrong when rows are
made of them. What is wrong is an error with file, line and column, or the row is left out and counted.

A file is opened with what is known: what the user said about it, and, once a table is fitted, the columns it must have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.data import opening
from rosenblatt.data.formats import START, TABLES, format_of_suffix
from rosenblatt.data.opening import MOST_ERRORS, FilePiece, FileSource
from rosenblatt.data.reading import RowTexts
from rosenblatt.data.tables.arrow import Column, number_array
from rosenblatt.data.tables.delimited import Delimited, first_records
from rosenblatt.data.tables.json_lines import JsonLines, object_columns
from rosenblatt.data.tables.schema import KINDS, LABELS, SAMPLE, ColumnChoice, ColumnKind, Schema, infer_schema, is_number
from rosenblatt.data.tables.sources import (
    Form,
    Lines,
    Piece,
    Source,
    TableError,
    check_encoding,
    detect_table_format,
    form_of,
)
from rosenblatt.data.tables.values import NUMBER, Check, Fault, as_text, check_columns, mismatches, plain
from rosenblatt.errors import FormatError

MOST_BYTES = 1 << 26  # of the first rows, which are held while it is decided what they are
EMPTY = "there are no rows; is the file empty?"


class TableOptions(NamedTuple):
    """What the user said about the files."""

    choice: ColumnChoice
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    missing: str = "error"


class _Place(NamedTuple):
    """Where rows come from."""

    file: str | None  # None for rows of no file
    has_lines: bool  # whether places are lines, or rows
    trim: bool = False  # whether blanks around categories and labels are dropped, as in delimited text
    number_in_file: Callable[[int], int] = int  # of a line or row of what was read, which may be a piece of the file


def open_source(
    path: str, stream: opening.Input, options: TableOptions, known: Schema | None, labelled: bool, size: int
) -> Source:
    """Return the file, or a piece of it, as a source of rows, with names for its columns. How a piece is laid out, the
    beginning of the file tells."""
    with nullcontext(stream) if stream.piece is None else opening.Input(path) as beginning:
        head = beginning.peek_line(START) if beginning.live else beginning.peek(START)
        form = _form(path, head, options, known)
        if form.format in ("parquet", "arrow"):
            from rosenblatt.data.tables.columnar import Arrow, open_parquet

            return Arrow(stream, form, size) if form.format == "arrow" else open_parquet(stream, form, path, size)
        check_encoding(head, stream.name)
        if form.format == "jsonl":
            return JsonLines(stream, form, size)
        block = size if beginning is stream else START
        if known is None:
            source = _open_unknown(beginning, form, options, block)
        else:
            source = _open_known(beginning, head, form, known, labelled, block)
    return source if beginning is stream else _open_piece(stream, source, size)


def _form(path: str, head: bytes, options: TableOptions, known: Schema | None) -> Form:
    """Return how a file is laid out that begins with these bytes."""
    format = options.format or detect_table_format(path, head, options.delimiter)
    if known is not None and options.delimiter is None:
        nameless = options.format is None and format_of_suffix(path, TABLES) is None
        alike = format in ("csv", "tsv", "lines") and known.form.format in ("csv", "tsv")
        if format == known.form.format or (nameless and alike):
            return known.form  # with the delimiter and the quotes of the file learned from
    return form_of(format, head, options.delimiter, options.quote)


def _open_known(stream: opening.Input, head: bytes, form: Form, known: Schema, labelled: bool, size: int) -> Source:
    """Return delimited text of which the columns are known; or plain lines, where rows are made of one text."""
    if format_of_suffix(stream.name, TABLES) is None and not labelled and known.only_text is not None:
        names = _names(known, first_records(head, form, stream.name), labelled)
        if names is None or known.only_text not in names:
            return Lines(stream, form, size, known.only_text)
    source = Delimited(stream, form, size, enough=1)
    names = _names(known, source.head, labelled)
    if names is None:
        first = source.head[0]
        found = f"{len(first)} fields ({', '.join(first)[:80]}) where there must be {len(known.columns)}, without a header"
        columns = ", ".join(f"{column.name} ({column.kind})" for column in known.columns)
        raise TableError(f"{found}: {columns}", path=stream.name, line=1)
    source.begin(names, known.header)
    return source


def _open_piece(stream: opening.Input, whole: Source, size: int) -> Source:
    """Return a piece of a file of delimited text, or of plain lines, that is laid out as the whole is."""
    if isinstance(whole, Lines):
        return Lines(stream, whole.form, size, whole.names[0])
    source = Delimited(stream, whole.form, size, enough=0)
    source.begin(whole.names, whole.header)
    return source


def _open_unknown(stream: opening.Input, form: Form, options: TableOptions, size: int) -> Source:
    """Return delimited text of which nothing is known."""
    if form.format == "lines" and stream.peek(1):
        hint = f"the formats are {', '.join(TABLES)}; or give the delimiter"
        raise TableError("the format cannot be detected", path=stream.name, hint=hint, settings={"format": "csv"})
    source = Delimited(stream, form, size)
    header = _has_header(source.head, options.choice) if options.header is None else options.header
    first = source.head[0] if source.head else []
    source.begin(_header_names(first) if header else [str(number) for number in range(len(first))], header)
    return source


def _header_names(header: Sequence[str]) -> list[str]:
    """Return the names of columns; one without gets the name that pandas gives it."""
    return [name or f"unnamed: {number}" for number, name in enumerate(header)]


def _names(known: Schema, head: list[list[str]], labelled: bool) -> list[str] | None:
    """Return the names of the columns of delimited text that begins with these records; None where they cannot be those
    known. Without a header their number decides: all, all but the label, or those that rows are made of."""
    if not head:
        return []
    first = head[0]
    if known.header:
        return _header_names(first)
    every = [column.name for column in known.columns]
    ways = [every] if labelled else [every, [name for name in every if name != known.target], known.features]
    return next((names for names in ways if len(names) == len(first)), None)


def _has_header(head: list[list[str]], choice: ColumnChoice) -> bool:
    """Return whether the first record of delimited text is names: if the user gives some, or if the label is called label
    or the like there and in no later record, or if it has no number where later ones do."""
    if any(not is_number(one) for one in choice.references):
        return True
    label = slice(None) if choice.target is None else slice(int(choice.target), int(choice.target) + 1 or None)
    for first, *later in zip_longest(*(record[label] for record in head)):
        if first is not None and first.lower() in LABELS and first not in later:
            return True
    numbers = [[NUMBER.fullmatch(field) is not None for field in record] for record in head]
    return bool(head) and not any(numbers[0]) and any(any(row) for row in numbers[1:])


@dataclass(frozen=True)
class TableBatch:
    """Some rows: the columns of the schema with their values checked, and label and weight where they are wanted."""

    columns: pa.Table  # float64 for numbers (NaN is missing), large_string for the rest
    schema: Schema
    texts: RowTexts | None = None  # the rows as they stand in the file, where that was asked for

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.columns.num_rows

    def take(self, rows: NDArray) -> TableBatch:
        """Return these rows, in this order."""
        chosen = np.arange(self.rows)[rows]
        texts = None if self.texts is None else self.texts.take(chosen.tolist())
        return TableBatch(self.columns.take(number_array(chosen)), self.schema, texts)


class TableBatches:
    """An iterator over the batches of files, which holds one at a time. `schema` is known when the first one is there."""

    def __init__(
        self,
        paths: Sequence[FileSource],
        options: TableOptions,
        schema: Schema | None,
        labelled: bool,
        on_error: str,
        size: int,
        texts: bool = False,
    ):
        opening.check_on_error(on_error)
        self.schema = schema
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.bytes_read = 0
        self.total_bytes = opening.size_of(paths)
        self._options, self._labelled, self._skip, self._size = options, labelled, on_error == "skip", size
        self._digest = xxh64()
        self._texts = texts
        self._batches = self._read(paths)

    def __iter__(self) -> Iterator[TableBatch]:
        return self

    def __next__(self) -> TableBatch:
        return next(self._batches)

    def close(self) -> None:
        """Close the files; there are no more batches."""
        self._batches.close()

    def of_objects(self, rows: Sequence[Mapping[str, object]]) -> TableBatch:
        """Return objects of JSON as a batch, as if they stood in a file of JSON lines among others with all columns."""
        columns, wrong = object_columns(rows)
        return self._checked(Piece(columns, lambda row: row + 1, (), wrong), _Place(None, has_lines=False))

    def digest(self) -> str:
        """Return XXH64, in hexadecimal, of all bytes read so far before decompression, file after file."""
        return self._digest.hexdigest()

    def _read(self, paths: Sequence[FileSource]) -> Generator[TableBatch, None, None]:
        before = rows = 0
        for path in paths:
            live = self.schema is not None and not self._labelled
            with opening.Input(path, digest=self._digest, live=live) as stream:
                name = path.path if isinstance(path, FilePiece) else path
                source = open_source(name, stream, self._options, self.schema, self._labelled, self._size)
                try:
                    for piece in self._located_pieces(source):
                        self.bytes_read = before + stream.bytes_read
                        batch = self._check(piece, source)
                        rows += batch.rows
                        if batch.rows:
                            yield batch
                    while stream.read(1 << 20):
                        pass
                finally:
                    source.close()
                    self.bytes_read = before = before + stream.bytes_read
        if not rows and not self.skipped and not any(isinstance(path, FilePiece) for path in paths):
            raise TableError(EMPTY, path=opening.name_of(paths[0]))

    def _located_pieces(self, source: Source) -> Iterator[Piece]:
        """Yield the pieces of a source; its errors name lines and rows of the file."""
        try:
            yield from self._pieces(source)
        except TableError as error:
            if error.line is not None:
                error.line = source.number_in_file(error.line)
            if error.row is not None:
                error.row = source.number_in_file(error.row + 1) - 1
            raise

    def _pieces(self, source: Source) -> Iterator[Piece]:
        """Return the pieces of a source, after its columns were compared with the schema, or have made one."""
        rest = iter(source)
        first: list[Piece] = []
        rows = size = 0
        while rows < SAMPLE and size < MOST_BYTES and (piece := next(rest, None)) is not None:
            first.append(piece)
            rows += piece.columns.num_rows
            size += piece.columns.nbytes
            if rows and source.stream.paused:
                break
        names = source.names or list(dict.fromkeys(name for piece in first for name in piece.columns.column_names if name))
        if names and any(piece.columns.num_rows for piece in first):
            sample = _concatenate([_with_columns(piece.columns, names) for piece in first]).slice(0, SAMPLE)
            if self.schema is None:
                self.schema = self._infer(source, names, sample)
                chosen = self._options.choice.kinds(names, source.stream.name)  # the sample has said what the others are
                required = [column for column in self.schema.required(self._labelled) if column.name in chosen]
            else:
                required = self.schema.required(self._labelled)
            self._compare(source, names, required, sample)
        return chain(first, rest)

    def _infer(self, source: Source, names: list[str], sample: pa.Table) -> Schema:
        choice, file, notes = self._options.choice, source.stream.name, []
        if isinstance(source, Delimited) and self._options.header is None:
            what = "the names of the columns" if source.header else "a row, not names of columns"
            notes = [f"the first line of {file} is {what}"]
        schema = infer_schema(choice, names, sample, source.form, source.header, file, notes)
        if notes and not source.header and (label := _unique_first_label(sample[schema.target])) is not None:
            doubt = f"{label!r} is the label of the first line only; if that line names the columns: --header, header=True"
            schema = replace(schema, notes=(schema.notes[0], doubt, *schema.notes[1:]))
        return schema

    def _compare(self, source: Source, names: list[str], required: list[ColumnKind], sample: pa.Table) -> None:
        """Raise TableError where the columns of a file are not those that the schema requires. Of a piece of a file its
        values do not tell: they are checked row by row."""
        schema, counts = self.schema, Counter(names)
        assert schema is not None
        missing = [column for column in required if not counts[column.name]]
        partial = source.stream.piece is not None
        if (source.stream.paused or partial) and not source.names:  # later objects of JSON may have keys that these lack
            missing = []
        wrong = [f"column {column.name} ({column.kind}) is missing" for column in missing]
        wrong += [f"column {column.name} is there twice" for column in required if counts[column.name] > 1]
        present = [column for column in required if counts[column.name] and not partial]
        found = mismatches([column.kind for column in present], [sample[column.name] for column in present])
        wrong += [f"column {present[at].name} ({present[at].kind}) holds {what}" for at, what in found.items()]
        if wrong:
            known = {column.name for column in schema.columns}
            others = [name for name in names if name not in known]
            rest = f"; the file has {', '.join(others)[:200]}" if others else ""
            raise TableError(f"the columns do not fit: {'; '.join(wrong)}{rest}", path=source.stream.name)

    def _check(self, piece: Piece, source: Source) -> TableBatch:
        """Return the rows of a piece of a file that can be read; the others are left out, or raise."""
        place = _Place(source.stream.name, source.has_lines, isinstance(source, Delimited), source.number_in_file)
        return self._checked(piece, place, self._keep_texts(piece, source))

    def _checked(self, piece: Piece, place: _Place, texts: RowTexts | None = None) -> TableBatch:
        schema, file = self.schema, place.file
        room = MOST_ERRORS - len(self.errors) if self._skip else 1
        skip = {"on_error": "skip"}
        errors = [
            TableError(problem, path=file, line=place.number_in_file(line), settings=skip)
            for line, problem in piece.broken[: max(room, 1)]
        ]
        if schema is None:
            raise errors[0] if errors else TableError(EMPTY, path=file)
        table = _with_columns(piece.columns, [column.name for column in schema.columns])
        bad: dict[int, tuple[str, Fault]] = {}
        columns = {}
        required = schema.required(self._labelled)
        fill = self._options.missing == "fill"
        check = {kind: Check(kind, schema.labels, fill, place.trim) for kind in KINDS}
        checked = check_columns([check[column.kind] for column in required], [table[column.name] for column in required])
        for (name, _), (values, faults) in zip(required, checked, strict=True):
            columns[name] = values
            faults |= {row: Fault(problem, skip) for row, problem in piece.wrong.get(name, {}).items()}
            for row, fault in faults.items():
                bad.setdefault(row, (name, fault))
        for row in sorted(bad)[:room]:
            name, (problem, settings, hint) = bad[row]
            number = place.number_in_file(piece.line(row))
            line, at = (number, None) if place.has_lines else (None, number - 1)
            errors.append(TableError(problem, path=file, line=line, row=at, column=name, hint=hint, settings=settings))
        errors.sort(key=lambda error: error.line or error.row or 0)
        if errors and not self._skip:
            raise errors[0]
        self.skipped += len(piece.broken) + len(bad)
        self.errors += errors[:room]
        batch = TableBatch(pa.table(columns), schema, texts)
        return batch.take(np.setdiff1d(np.arange(batch.rows), list(bad))) if bad else batch

    def _keep_texts(self, piece: Piece, source: Source) -> RowTexts | None:
        if not self._texts:
            return None
        if piece.texts is None:
            problem = f"the rows of {source.form.format} are not text that predictions can be written beside"
            raise TableError(problem, path=source.stream.name, hint="convert the file to CSV or JSON lines")
        kind = "lines" if isinstance(source, Lines) else source.form.format
        return RowTexts(piece.texts(), kind, source.form.delimiter, source.form.quote, tuple(source.names), piece.header)


def _unique_first_label(labels: Column) -> str | None:
    """Return the first of these labels if it is a word that does not come again, as all the others do."""
    first, *others = as_text(labels).to_pylist()
    counts = Counter(others)
    lone = first is not None and first not in counts and len(counts) > 0 and min(counts.values()) > 1
    return first if lone and NUMBER.fullmatch(first.strip()) is None else None


def _with_columns(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the table with these columns, null where it has none."""
    if table.column_names == list(names) and len(set(names)) == len(names):
        return table
    have = Counter(table.column_names)
    return pa.table({name: table[name] if have[name] == 1 else pa.nulls(table.num_rows) for name in dict.fromkeys(names)})


def _concatenate(tables: list[pa.Table]) -> pa.Table:
    """Return tables with the same columns as one."""
    if len(tables) == 1:
        return tables[0]
    return pa.table({name: _one_column([plain(table[name]) for table in tables]) for name in tables[0].column_names})


def _one_column(parts: list[Column]) -> Column:
    """Return parts of a column as one, of numbers where all are, and else of text; nested ones are all null."""
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
