"""A schema says what each column of a table is: numbers, truth values, categories, text, the label, the weight, or nothing
that is learned from. What the user did not say is decided from the first rows, and every decision can be read in `notes`.

Files that come later must have the columns that rows are made of; others may come and go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rosenblatt.data.tables.files import FORMATS, Form, TableError
from rosenblatt.data.tables.values import as_numbers, as_text, given, has_leading_zeros, plain

SAMPLE = 1000  # rows that are looked at
FEATURES = ("number", "boolean", "category", "text")
KINDS = (*FEATURES, "target", "weight", "ignored")
LABELS = ("label", "target", "class", "y")
_IDENTIFIERS = re.compile(r"(.*[_\- ])?(id|uuid|guid)|index|row_?id|unnamed: \d+", re.IGNORECASE)
_BETWEEN = r"\s+|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]{2}"  # what tells words, about
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?)?$"  # of ISO 8601
_SEVERAL = {"number": "numbers", "boolean": "truth values", "category": "categories", "text": "text", "ignored": "ignored"}
MOST_NAMES = 12  # of columns in a note
_NEITHER = (
    pa.types.is_temporal, pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)  # fmt: skip
_FEW = 20  # different strings that are never too many for categories

Reference = str | int


class Choice(NamedTuple):
    """What the user said about columns, each by its name or by its number, from 0 or, backwards, from −1."""

    target: Reference | None = None
    weight: Reference | None = None
    text: tuple[Reference, ...] = ()
    categories: tuple[Reference, ...] = ()
    numeric: tuple[Reference, ...] = ()
    ignore: tuple[Reference, ...] = ()

    @property
    def references(self) -> list[Reference]:
        """All that were given."""
        single = [one for one in (self.target, self.weight) if one is not None]
        return [*single, *self.text, *self.categories, *self.numeric, *self.ignore]

    def resolved(self, names: Sequence[str], file: str) -> dict[str, str]:
        """The kind of each column that was given."""
        kinds: dict[str, str] = {}
        given = {"text": self.text, "category": self.categories, "number": self.numeric, "ignored": self.ignore}
        for kind, references in given.items():
            for reference in references:
                _put(kinds, _name(reference, names, file), kind)
        for kind, single in (("target", self.target), ("weight", self.weight)):
            if single is not None:
                _put(kinds, _name(single, names, file), kind)
        return kinds


def is_number(reference: Reference) -> bool:
    """Whether a column is meant by its number; −1 is the last."""
    return isinstance(reference, int) or reference.removeprefix("-").isdecimal()


def _put(kinds: dict[str, str], name: str, kind: str) -> None:
    if kinds.get(name, kind) != kind:
        raise ValueError(f"column {name!r} is given as {kinds[name]} and as {kind}; it can be one of them")
    kinds[name] = kind


def _name(reference: Reference, names: Sequence[str], file: str) -> str:
    """The name of the column that is meant."""
    if isinstance(reference, str) and reference in names:
        return reference
    if is_number(reference):
        if -len(names) <= int(reference) < len(names):
            return names[int(reference)]
        raise TableError(
            file, None, f"there is no column number {reference}; they go from 0 to {len(names) - 1}: {_list(names)}"
        )
    raise TableError(file, None, f"there is no column {reference!r}; the columns are {_list(names)}")


def _list(names: Sequence[str]) -> str:
    some = [*names[:12], "…", *names[-3:]]
    return ", ".join(names) if len(names) <= len(some) else f"{', '.join(some)} ({len(names)} in all)"


class Column(NamedTuple):
    """A column of the file and what it is."""

    name: str
    kind: str  # one of KINDS


@dataclass(frozen=True)
class Schema:
    """The columns of a file in order, and how the file is laid out."""

    form: Form
    header: bool  # whether columns have names of their own, and not numbers
    columns: tuple[Column, ...]
    labels: str | None  # "number" or "text"; None without a target
    notes: tuple[str, ...] = ()

    def named(self, *kinds: str) -> list[str]:
        """The columns of these kinds."""
        return [column.name for column in self.columns if column.kind in kinds]

    @property
    def target(self) -> str | None:
        return next(iter(self.named("target")), None)

    @property
    def weight(self) -> str | None:
        return next(iter(self.named("weight")), None)

    @property
    def features(self) -> list[str]:
        return self.named(*FEATURES)

    def needed(self, labelled: bool) -> list[Column]:
        """The columns that a file must have."""
        kinds = (*FEATURES, "target", "weight") if labelled else FEATURES
        return [column for column in self.columns if column.kind in kinds]

    @property
    def only_text(self) -> str | None:
        """The one column that rows are made of, if it is text."""
        return self.features[0] if len(self.features) == 1 and self.named("text") else None

    def written(self) -> dict[str, Any]:
        columns = [list(column) for column in self.columns]
        facts = {"form": list(self.form), "header": self.header, "columns": columns, "labels": self.labels}
        return {**facts, "notes": list(self.notes)}

    @classmethod
    def restored(cls, facts: Mapping[str, Any]) -> Schema:
        """The schema that was written so; ValueError where none can have been."""
        form, header, columns, labels = (facts.get(key) for key in ("form", "header", "columns", "labels"))
        notes = facts.get("notes")
        if not (isinstance(form, list) and len(form) == 3 and form[0] in FORMATS and _character(form[1])):
            raise ValueError(f"a table has the form {form!r}")
        if form[2] is not None and form[2] != "" and not _character(form[2]):
            raise ValueError(f"a table has the form {form!r}")
        if not isinstance(columns, list) or not all(
            isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and one[1] in KINDS for one in columns
        ):
            raise ValueError("a table has columns without a name or a kind")
        found = tuple(Column(*one) for one in columns)
        names = [column.name for column in found]
        if len(set(names)) != len(names) or type(header) is not bool or labels not in (None, "number", "text"):
            raise ValueError("a table has a column twice, or labels of no kind")
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise ValueError("the notes on a table are not text")
        schema = cls(Form(*form), header, found, labels, tuple(notes))
        if len(schema.named("target")) != (labels is not None) or len(schema.named("weight")) > 1 or not schema.features:
            raise ValueError("a table has no columns to learn from, or not one target")
        return schema


def _character(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in "\r\n" and ord(value) < 128


def decided(
    choice: Choice, names: Sequence[str], sample: Any, form: Form, header: bool, file: str, notes: Sequence[str] = ()
) -> Schema:
    """The schema of a file with these columns, of which `sample` has the first rows."""
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(file, None, f"two columns are called {twice!r}; give each a name of its own")
    kinds = choice.resolved(names, file)
    said = list(notes)
    if choice.target is None:
        target = next((name for label in LABELS for name in names if name.lower() == label and name not in kinds), None)
        if target is None:
            raise TableError(
                file,
                None,
                f"which column is the label? None is called {', '.join(LABELS[:-1])} or {LABELS[-1]}; the columns are "
                f"{_list(names)}: give target=, a name or a number from 0",
            )
        kinds[target] = "target"
        said.append(f"column {target}: the label, by its name")
    alike: dict[tuple[str, str], list[str]] = {}
    figures = {}
    for name in names:
        if name not in kinds:
            kinds[name], why, figures[name] = _kind(name, sample[name])
            alike.setdefault((kinds[name], why), []).append(name)
    for (kind, why), some in alike.items():
        if len(some) == 1:
            said.append(f"column {some[0]}: {kind}, {why}{figures[some[0]]}")
        else:
            said.append(
                f"{len(some)} columns are {_SEVERAL[kind]}, {why}: {', '.join(some[:MOST_NAMES])}"
                f"{', …' if len(some) > MOST_NAMES else ''}"
            )
    columns = tuple(Column(name, kinds[name]) for name in names)
    target = next(column.name for column in columns if column.kind == "target")
    labels = _labels(plain(sample[target]))
    schema = Schema(form, header, columns, labels, tuple(said))
    if not schema.features:
        raise TableError(
            file,
            None,
            f"no column is left to learn from besides the label {target!r}: {'; '.join(said)}. Name one: text=, "
            "categories= or numeric=",
        )
    return schema


def _labels(column: Any) -> str:
    """Whether labels are numbers or text: "7", "007" and "A1" are three labels, and so "007" alone is no number."""
    _, bad, missing = as_numbers(column)
    text = bad or pa.types.is_boolean(column.type) or missing.all() or has_leading_zeros(column)
    return "text" if text else "number"


def _kind(name: str, column: Any) -> tuple[str, str, str]:
    """What a column seems to be, why, and the figures that say so."""
    column = plain(column)
    if _IDENTIFIERS.fullmatch(name):
        return "ignored", "as an identifier, by its name", ""
    if pa.types.is_boolean(column.type):
        return "boolean", "as its type says", ""
    if any(test(column.type) for test in _NEITHER):
        return "ignored", f"as {column.type} is neither number nor text", ""
    _, bad, missing = as_numbers(column)
    rows = len(column)
    if missing.all():
        return "ignored", f"as the first {rows} rows have no value", ""
    zeros = not bad and has_leading_zeros(column)
    if not bad and not zeros:
        return "number", f"as all of the first {rows} rows say", ""
    values = pc.utf8_trim_whitespace(as_text(column).drop_null())
    distinct = len(pc.unique(values))
    if pc.all(pc.is_in(pc.utf8_lower(values), pa.array(["true", "false"], pa.large_string()))).as_py():
        return "boolean", f"as all of the first {rows} rows say", ""
    if pc.all(pc.match_substring_regex(given(values), _DATE)).as_py():
        return "ignored", "as dates are neither number nor text", ""
    words = 1 + np.mean(pc.count_substring_regex(values, _BETWEEN).to_numpy())
    figures = f": {distinct} different values of {words:.1f} words on average in the first {rows} rows"
    if words >= 2 and (distinct > rows / 2 or (distinct > 5 * _FEW and words >= 3)):
        return "text", "as its words say more than its values", figures
    if distinct <= max(_FEW, len(values) / 2):
        return "category", "as numbers do not begin with 0" if zeros else "as values come back", figures
    return "ignored", "as an identifier", figures
