"""A schema says what each column of a table is: numbers, truth values, categories, text, the label, the weight, or ignored.
What the user did not say is inferred from the first rows, and every decision can be read in `notes`.

Files that come later must have the columns that rows are made of; others may come and go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rosenblatt.data.tables.arrow import text_array, to_numpy
from rosenblatt.data.tables.sources import FORMATS, Form, TableError
from rosenblatt.data.tables.values import (
    Column,
    Numbers,
    as_numbers,
    as_text,
    has_leading_zeros,
    numbers_of,
    plain,
    present_values,
    with_leading_zeros,
)
from rosenblatt.errors import DamagedModel, IncompatibleParameters, UnknownColumn
from rosenblatt.modelfile.parts import Parts

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

_KIND_OF = {
    "target": "target", "weight": "weight", "text": "text", "categories": "category", "numeric": "number",
    "ignore": "ignored",
}  # fmt: skip

Reference = str | int


class ColumnChoice(NamedTuple):
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

    def kinds(self, names: Sequence[str], file: str) -> dict[str, str]:
        """Return the kind of each column that was given."""
        parameters: dict[str, str] = {}
        known = frozenset(names)
        for parameter, references in self._asdict().items():
            for reference in references if isinstance(references, tuple) else (references,):
                name = None if reference is None else _name(reference, names, known, file)
                if name is not None and parameters.setdefault(name, parameter) != parameter:
                    raise IncompatibleParameters((parameters[name], name), (parameter, name), "a column is one of them")
        return {name: _KIND_OF[parameter] for name, parameter in parameters.items()}


def is_number(reference: Reference) -> bool:
    """Return whether a column is meant by its number; −1 is the last."""
    return isinstance(reference, int) or reference.removeprefix("-").isdecimal()


def _name(reference: Reference, names: Sequence[str], known: frozenset[str], file: str) -> str:
    """Return the name of the column that is meant; `known` are the names as a set."""
    if isinstance(reference, str) and reference in known:
        return reference
    if is_number(reference):
        if -len(names) <= int(reference) < len(names):
            return names[int(reference)]
        problem = f"there is no column number {reference}; they go from 0 to {len(names) - 1}: {_names_in_short(names)}"
        raise ColumnError(problem, path=file)
    problem = f"there is no column {reference!r}; the columns are {_names_in_short(names)}"
    raise ColumnError(problem, path=file, hint=_column_hint(str(reference), names))


def _column_hint(reference: str, names: Sequence[str]) -> str | None:
    """What may have been meant by a name that no column has: another case or spelling, or several columns at once."""
    parts = [part.strip() for part in reference.split(",")]
    if len(parts) > 1 and set(parts) <= set(names):
        return "one name at a time: as a list in Python, the option once for each on the command line"
    by_lower = {name.lower().strip(): name for name in names}
    near = get_close_matches(reference.lower().strip(), by_lower, 1)
    return f"did you mean {by_lower[near[0]]!r}?" if near else None


def _names_in_short(names: Sequence[str]) -> str:
    some = [*names[:12], "…", *names[-3:]]
    return ", ".join(names) if len(names) <= len(some) else f"{', '.join(some)} ({len(names)} in all)"


class ColumnError(TableError, UnknownColumn):
    """A column that was named and is not in the table, or that has to be named."""


class ColumnKind(NamedTuple):
    """A column of the file and what it is."""

    name: str
    kind: str  # one of KINDS


@dataclass(frozen=True)
class Schema:
    """The columns of a file in order, and how the file is laid out."""

    form: Form
    header: bool  # whether columns have names of their own, and not numbers
    columns: tuple[ColumnKind, ...]
    labels: str | None  # "number" or "text"; None without a target
    notes: tuple[str, ...] = ()

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the columns of these kinds."""
        return [column.name for column in self.columns if column.kind in kinds]

    @property
    def target(self) -> str | None:
        return next(iter(self.of_kind("target")), None)

    @property
    def weight(self) -> str | None:
        return next(iter(self.of_kind("weight")), None)

    @property
    def features(self) -> list[str]:
        return self.of_kind(*FEATURES)

    def required(self, labelled: bool) -> list[ColumnKind]:
        """Return the columns that a file must have."""
        kinds = (*FEATURES, "target", "weight") if labelled else FEATURES
        return [column for column in self.columns if column.kind in kinds]

    @property
    def only_text(self) -> str | None:
        """The one column that rows are made of, if it is text."""
        return self.features[0] if len(self.features) == 1 and self.of_kind("text") else None

    def to_parts(self) -> Parts:
        """Return the schema as facts for a model file."""
        columns = [list(column) for column in self.columns]
        facts = {"form": list(self.form), "header": self.header, "columns": columns, "labels": self.labels}
        return Parts({**facts, "notes": list(self.notes)})

    @classmethod
    def from_parts(cls, parts: Parts) -> Schema:
        """Return the schema that `to_parts` described; raise DamagedModel if it is invalid."""
        form, columns = parts.facts["form"], parts.values("columns", list)
        if not (isinstance(form, list) and len(form) == 3 and form[0] in list(FORMATS) and is_character(form[1])):
            raise DamagedModel(f"a table has the form {form!r}")
        if form[2] is not None and form[2] != "" and not is_character(form[2]):
            raise DamagedModel(f"a table has the form {form!r}")
        if not all(len(one) == 2 and isinstance(one[0], str) and one[1] in list(KINDS) for one in columns):
            raise DamagedModel("a table has columns without a name or a kind")
        found = tuple(ColumnKind(*one) for one in columns)
        if len({column.name for column in found}) != len(found):
            raise DamagedModel("a table has a column twice")
        labels = None if parts.facts["labels"] is None else parts.text("labels", ("number", "text"))
        schema = cls(Form(*form), parts.flag("header"), found, labels, tuple(parts.values("notes", str)))
        if len(schema.of_kind("target")) != (labels is not None) or len(schema.of_kind("weight")) > 1:
            raise DamagedModel("a table must have one target and at most one weight")
        if not schema.features:
            raise DamagedModel("a table has no columns to learn from")
        return schema


def is_character(value: object) -> TypeGuard[str]:
    """Return whether a value is one ASCII character that can separate or quote fields."""
    return isinstance(value, str) and len(value) == 1 and value not in "\r\n" and ord(value) < 128


def infer_schema(
    choice: ColumnChoice,
    names: Sequence[str],
    sample: pa.Table,
    form: Form,
    header: bool,
    file: str,
    notes: Sequence[str] = (),
) -> Schema:
    """Return the schema of a file with these columns, of which `sample` has the first rows."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise TableError(f"two columns are called {twice!r}", path=file, hint="give each a name of its own")
    kinds = choice.kinds(names, file)
    reasons = list(notes)
    if choice.target is None:
        target = next((name for label in LABELS for name in names if name.lower() == label and name not in kinds), None)
        if target is None:
            none = f"none is called {', '.join(LABELS[:-1])} or {LABELS[-1]}"
            raise ColumnError(
                f"which column is the label? The columns are {_names_in_short(names)}; {none}",
                path=file,
                hint="name it, or give its number from 0",
                settings={"target": names[-1]},
            )
        kinds[target] = "target"
        reasons.append(f"column {target}: the label, by its name")
    alike: dict[tuple[str, str], list[str]] = {}
    figures = {}
    unknown = [name for name in names if name not in kinds]
    columns = [plain(sample[name]) for name in unknown]
    zeros = with_leading_zeros(columns)
    for at, (name, column, numbers) in enumerate(zip(unknown, columns, numbers_of(columns), strict=True)):
        kinds[name], why, figures[name] = _kind(name, column, numbers, at in zeros)
        alike.setdefault((kinds[name], why), []).append(name)
    for (kind, why), some in alike.items():
        if len(some) == 1:
            reasons.append(f"column {some[0]}: {kind}, {why}{figures[some[0]]}")
        else:
            reasons.append(
                f"{len(some)} columns are {_SEVERAL[kind]}, {why}: {', '.join(some[:MOST_NAMES])}"
                f"{', …' if len(some) > MOST_NAMES else ''}"
            )
    kept = tuple(ColumnKind(name, kinds[name]) for name in names)
    target = next(column.name for column in kept if column.kind == "target")
    labels = _labels(plain(sample[target]))
    schema = Schema(form, header, kept, labels, tuple(reasons))
    if not schema.features:
        others = [name for name in names if name != target]
        raise TableError(
            f"no column is left to learn from besides the label {target!r}: {'; '.join(reasons)}",
            path=file,
            hint="say which column is text, categories or numbers",
            settings={parameter: others[0] for parameter in ("text", "categories", "numeric") if others},
        )
    return schema


def _labels(column: Column) -> str:
    """Return whether labels are numbers or text: "7", "007" and "A1" are three labels, and so "007" alone is no number."""
    _, bad, missing = as_numbers(column)
    text = bad or pa.types.is_boolean(column.type) or missing.all() or has_leading_zeros(column)
    return "text" if text else "number"


def _kind(name: str, column: Column, numbers: Numbers, zeros: bool) -> tuple[str, str, str]:
    """Return what a plain column seems to be, why, and the figures that say so; `zeros` says whether it holds codes that
    begin with 0."""
    if _IDENTIFIERS.fullmatch(name):
        return "ignored", "as an identifier, by its name", ""
    if pa.types.is_boolean(column.type):
        return "boolean", "as its type says", ""
    if any(test(column.type) for test in _NEITHER):
        return "ignored", f"as {column.type} is neither number nor text", ""
    _, bad, missing = numbers
    rows = len(column)
    if missing.all():
        return "ignored", f"as the first {rows} rows have no value", ""
    zeros = zeros and not bad
    if not bad and not zeros:
        return "number", f"as all of the first {rows} rows say", ""
    values = pc.utf8_trim_whitespace(as_text(column).drop_null())
    distinct = len(pc.unique(values))
    if pc.all(pc.is_in(pc.utf8_lower(values), text_array(["true", "false"]))).as_py():
        return "boolean", f"as all of the first {rows} rows say", ""
    if pc.all(pc.match_substring_regex(present_values(values), _DATE)).as_py():
        return "ignored", "as dates are neither number nor text", ""
    words = 1 + np.mean(to_numpy(pc.count_substring_regex(values, _BETWEEN)))
    figures = f": {distinct} different values of {words:.1f} words on average in the first {rows} rows"
    if words >= 2 and (distinct > rows / 2 or (distinct > 5 * _FEW and words >= 3)):
        return "text", "as its words say more than its values", figures
    if distinct <= max(_FEW, len(values) / 2):
        if zeros:
            return "category", "as numbers do not begin with 0", figures
        several = "; as text, its words would be learned from" if words >= 3 else ""
        return "category", f"as values come back{several}", figures
    return "ignored", "as an identifier", figures
