"""A file is opened in the light of what is known: what the user said about it, and, once something was learned, the columns
that it must have. Whether delimited text begins with a header is decided here, and which column is which.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, NamedTuple

from rosenblatt.data import opening
from rosenblatt.data.formats import START, TABLES, format_of_suffix
from rosenblatt.data.tables import files
from rosenblatt.data.tables.delimited import Delimited, first_records
from rosenblatt.data.tables.files import Form, Lines, Source, TableError
from rosenblatt.data.tables.json_lines import JsonLines
from rosenblatt.data.tables.schema import LABELS, Choice, Schema, is_number
from rosenblatt.data.tables.values import NUMBER


class Asking(NamedTuple):
    """What the user said about the files."""

    choice: Choice
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    missing: str = "error"


class Peeked:
    """A stream whose first bytes have been looked at: its `head`."""

    def __init__(self, stream: opening.Input):
        self.name = stream.name
        self._stream = stream
        self.head = self._ahead = stream.read(START)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        got = min(len(view), len(self._ahead))
        view[:got], self._ahead = self._ahead[:got], self._ahead[got:]
        return got + self._stream.readinto(view[got:])

    def read(self, size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: self.readinto(buffer)])


def opened(path: str, stream: opening.Input, asking: Asking, known: Schema | None, labelled: bool, size: int) -> Source:
    """The file as a source of rows, with names for its columns."""
    start = Peeked(stream)
    form = files.form_of(path, start.head, asking.format, asking.delimiter, asking.quote)
    nameless = format_of_suffix(path, TABLES) is None
    if known is not None and asking.format is None and asking.delimiter is None:
        alike = form.format in ("csv", "tsv", "lines") and known.form.format in ("csv", "tsv")
        if form.format == known.form.format or (nameless and alike):
            form = known.form  # with the delimiter and the quotes of the file learned from
    if form.format == "parquet":
        from rosenblatt.data.tables.columnar import parquet

        return parquet(start, form, path, size)
    if form.format == "arrow":
        from rosenblatt.data.tables.columnar import arrow

        return arrow(start, form, size)
    files.check_encoding(start.head, start.name)
    if form.format == "jsonl":
        return JsonLines(start, form, size)
    if known is None:
        return _undecided(start, form, asking, size)
    if nameless and not labelled and known.only_text is not None:
        names = _names(known, first_records(start.head, form, start.name), labelled)
        if names is None or known.only_text not in names:
            return Lines(start, form, size, known.only_text)
    source = Delimited(start, form, size)
    names = _names(known, source.head, labelled)
    if names is None:
        first = source.head[0]
        columns = ", ".join(f"{column.name} ({column.kind})" for column in known.columns)
        raise TableError(
            start.name,
            1,
            f"{len(first)} fields ({', '.join(first)[:80]}) where there must be {len(known.columns)}, without a "
            f"header: {columns}",
        )
    source.begin(names, known.header)
    return source


def _undecided(start: Peeked, form: Form, asking: Asking, size: int) -> Source:
    """Delimited text of which nothing is known."""
    if form.format == "lines" and start.head:
        raise TableError(
            start.name, None, "what format is this? Give format=, one of csv, tsv, jsonl, parquet and arrow, or delimiter="
        )
    source = Delimited(start, form, size)
    header = _has_header(source.head, asking.choice) if asking.header is None else asking.header
    first = source.head[0] if source.head else []
    source.begin(files.names_of(first) if header else [str(number) for number in range(len(first))], header)
    return source


def _names(known: Schema, head: list[list[str]], labelled: bool) -> list[str] | None:
    """What to call the columns of delimited text that begins with these records; None where they cannot be those known.
    Without a header they are told by how many there are: all, all but the label, or those that rows are made of."""
    if not head:
        return []
    first = head[0]
    if known.header:
        return files.names_of(first)
    every = [column.name for column in known.columns]
    ways = [every] if labelled else [every, [name for name in every if name != known.target], known.features]
    return next((names for names in ways if len(names) == len(first)), None)


def _has_header(head: list[list[str]], choice: Choice) -> bool:
    """Whether the first record of delimited text is names: if the user gives some, or if the label is called label or the
    like there and in no later record, or if it has no number where later ones do."""
    if any(not is_number(one) for one in choice.references):
        return True
    label = slice(None) if choice.target is None else slice(int(choice.target), int(choice.target) + 1 or None)
    for first, *later in zip_longest(*(record[label] for record in head)):
        if first is not None and first.lower() in LABELS and first not in later:
            return True
    numbers = [[NUMBER.fullmatch(field) is not None for field in record] for record in head]
    return bool(head) and not any(numbers[0]) and any(any(row) for row in numbers[1:])
