"""Values of columns as numbers and as text, whatever type the file gave them: "3", 3 and 3.0 are one number, one category.

`Check` holds every value of a column to the kind of the column, and says what is wrong with which row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rosenblatt.data.parsing.decimals import NOT_FINITE
from rosenblatt.data.tables.arrow import EMPTY, NULL, Column, number_array, text_array, to_numpy

MISSING_WORDS = ("", "?", "na", "n/a", "nan", "none", "null")  # ways to write that a number is missing, in lower case
_NAN = re.compile(r"[+-]?nan(\(\w*\))?", re.IGNORECASE)  # as C and Arrow write it
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_AT_ONCE = 1 << 20  # values of several columns that are taken together


class Numbers(NamedTuple):
    """A column as numbers."""

    values: NDArray[np.float64]  # NaN where there is none
    bad: dict[int, str]  # the rows with something else, and what it is
    missing: NDArray[np.bool_]  # which rows have nothing


def plain(column: Column) -> Column:
    """Return the column without dictionaries, and text with 64-bit offsets."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = pa.types.is_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.large_string()) if text else column


def is_missing(text: str) -> bool:
    """Return whether this says that a number is missing."""
    return text.lower() in MISSING_WORDS or _NAN.fullmatch(text) is not None


def as_numbers(column: Column) -> Numbers:
    """Return the numbers of a plain column."""
    bad: dict[int, str] = {}
    if pa.types.is_large_string(column.type):
        try:
            values = column.cast(pa.float64())
        except pa.ArrowInvalid:
            values, bad = _one_by_one(column)
    elif pa.types.is_boolean(column.type):
        values = column.cast(pa.uint8()).cast(pa.float64())
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        values = column.cast(pa.float64(), safe=False)
    elif pa.types.is_null(column.type):
        values = pa.nulls(len(column), pa.float64())
    else:
        bad = dict.fromkeys(range(len(column)), str(column.type))
        return Numbers(np.full(len(column), np.nan), bad, np.zeros(len(column), bool))
    numbers = to_numpy(values) + 0.0  # no −0
    missing = np.isnan(numbers)
    if bad:
        missing[list(bad)] = False
    for row in np.flatnonzero(np.isinf(numbers)):
        bad[int(row)] = repr(str(column[int(row)].as_py()))
    return Numbers(numbers, bad, missing)


def numbers_of(columns: Sequence[Column]) -> list[Numbers]:
    """Return `as_numbers` of each plain column of a table. A call of Arrow costs more than the few values that a column of
    a wide table has, so columns of text are taken many at a time, and those halved in which something is not a number."""
    found: dict[int, Numbers] = {}
    for group, texts in _joined(columns):
        rows, waiting = len(texts) // len(group), [(0, len(group))]
        while waiting:
            begin, end = waiting.pop()
            some, middle = group[begin:end], (begin + end) // 2
            try:
                values = texts.slice(begin * rows, len(some) * rows).cast(pa.float64())
            except pa.ArrowInvalid:
                if len(some) == 1:
                    found[some[0]] = as_numbers(columns[some[0]])
                else:
                    waiting += [(begin, middle), (middle, end)]
                continue
            numbers = np.add(to_numpy(values), 0.0).reshape(len(some), -1)  # no −0
            missing, infinite = np.isnan(numbers), np.isinf(numbers).any(axis=1)
            for row, at in enumerate(some):
                found[at] = as_numbers(columns[at]) if infinite[row] else Numbers(numbers[row], {}, missing[row])
    return [found[at] if at in found else as_numbers(column) for at, column in enumerate(columns)]


def _joined(columns: Sequence[Column]) -> Iterator[tuple[list[int], pa.Array]]:
    """Yield the columns of text, some at a time: their places, and their values one column after the other."""
    texts = [at for at, column in enumerate(columns) if len(column) and pa.types.is_large_string(column.type)]
    step = max(1, _AT_ONCE // len(columns[texts[0]])) if texts else 1
    for begin in range(0, len(texts), step):
        group = texts[begin : begin + step]
        yield group, pa.concat_arrays([chunk for at in group for chunk in getattr(columns[at], "chunks", [columns[at]])])


def _one_by_one(column: Column) -> tuple[pa.Array, dict[int, str]]:
    """Do the same for text of which not all is a number."""
    numbers: list[float] = []
    bad = {}
    for row, text in enumerate(column.to_pylist()):
        text = None if text is None else text.strip()
        if text is None or is_missing(text):
            numbers.append(np.nan)
        elif NUMBER.fullmatch(text):
            numbers.append(float(text))
        else:
            numbers.append(np.nan)
            bad[row] = repr(text[:60])
    return number_array(np.array(numbers, np.float64)), bad


def present_values(column: Column) -> Column:
    """Return what is in a column of text, without blanks around it and without ways to write that something is missing."""
    values = pc.utf8_trim_whitespace(column.drop_null())
    return values.filter(pc.invert(pc.is_in(pc.utf8_lower(values), text_array(MISSING_WORDS))))


def has_leading_zeros(column: Column) -> bool:
    """Return whether a plain column is text of whole numbers of which one begins with a 0 too many, as codes do: 02139."""
    if not pa.types.is_large_string(column.type):
        return False
    values = present_values(column)
    whole = pc.all(pc.match_substring_regex(values, r"^[+-]?\d+$")).as_py()
    return bool(whole and pc.any(pc.match_substring_regex(values, r"^0\d")).as_py())


def with_leading_zeros(columns: Sequence[Column]) -> set[int]:
    """Return the places of those plain columns of a table that `has_leading_zeros` is true of."""
    found: set[int] = set()
    for group, texts in _joined(columns):
        zeros = pc.match_substring_regex(pc.utf8_trim_whitespace(texts), r"^0\d")
        rows = np.flatnonzero(to_numpy(zeros) == 1)  # not NaN, which is null
        places = np.unique(rows // len(columns[group[0]])).tolist()
        found.update(group[place] for place in places if has_leading_zeros(columns[group[place]]))
    return found


def number_text(x: float) -> str:
    """Return a number as text, the shortest that is read back as the same; a whole one has no point."""
    return str(int(x)) if abs(x) < 2**63 and x == int(x) else repr(x)


def as_text(column: Column) -> Column:
    """Return the column as text, null where it has nothing. A whole number has no point, whatever its type."""
    column = plain(column)
    if pa.types.is_large_string(column.type):
        return column
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        return text_array([None if np.isnan(x) else number_text(x) for x in as_numbers(column).values.tolist()])
    return column.cast(pa.large_string())


def as_booleans(column: Column) -> Numbers:
    """Return 1 for true and 0 for false; text says it in words, numbers as 1 and 0."""
    if not pa.types.is_large_string(column.type):
        numbers, bad, missing = as_numbers(column)
        known = np.isnan(numbers) | (numbers == 0) | (numbers == 1)
        return Numbers(
            numbers, {**bad, **{int(row): number_text(float(numbers[row])) for row in np.flatnonzero(~known)}}, missing
        )
    words = {"true": 1.0, "1": 1.0, "yes": 1.0, "false": 0.0, "0": 0.0, "no": 0.0}
    texts = [None if text is None else text.strip() for text in column.to_pylist()]
    numbers = np.array([np.nan if text is None else words.get(text.lower(), np.nan) for text in texts], np.float64)
    missing = np.array([text is None or is_missing(text) for text in texts], bool)
    bad = {row: repr(text) for row, text in enumerate(texts) if np.isnan(numbers[row]) and not missing[row]}
    return Numbers(numbers, bad, missing)


class Fault(NamedTuple):
    """What is wrong with a value, and the settings of which each avoids the error."""

    problem: str
    settings: Mapping[str, object]
    hint: str | None = None


_SKIP = {"on_error": "skip"}
_NOT = {
    "number": "is not a number",
    "boolean": "is not true or false",
    "weight": "is not a weight, a number ≥ 0",
    "target": "is not a number, as the labels of the first rows are",
}
_MISSING = {"target": Fault("the label is missing", _SKIP), "weight": Fault("the weight is missing", _SKIP)}
_NO_LABEL = Fault(
    "nan and inf are not allowed as labels", _SKIP, "they stand for numbers that are missing or too large; rename them"
)
_MISSING_VALUE = Fault("the value is missing", {"missing": "fill", **_SKIP})


_DECIMAL_COMMA = re.compile(r"'\s*[-+]?\d+,\d+\s*'")


class Check(NamedTuple):
    """What a column must contain."""

    kind: str
    labels: str | None  # "number" or "text"
    fill: bool  # whether values may be missing
    trim: bool  # whether blanks around categories and labels are dropped, as in delimited text

    @property
    def numeric(self) -> bool:
        """Whether the column is one of numbers."""
        return self.kind in ("number", "weight") or (self.kind == "target" and self.labels == "number")

    def __call__(self, column: Column, known: Numbers | None) -> tuple[Column, dict[int, Fault]]:
        """Return a plain column as its kind wants it, float64 with NaN where nothing is, or text; and what is wrong.
        `known` is its numbers, where it is numeric."""
        bad: dict[int, str] = {}
        if known is not None or self.kind == "boolean":
            numbers, bad, missing = known or as_booleans(column)
            if self.kind == "weight":
                bad |= {row: repr(float(numbers[row])) for row in np.flatnonzero(numbers < 0).tolist()}
            column = number_array(numbers)
        else:
            column, missing = self._texts(column)
        odd = self._odd_labels(column)
        if not bad and not odd and not missing.any():
            return column, {}
        faults = {row: Fault(f"{what} {_NOT[self.kind]}", _SKIP, self._hint(what)) for row, what in bad.items()}
        faults |= dict.fromkeys(odd, _NO_LABEL)
        if self.kind in _MISSING or not self.fill:
            faults |= dict.fromkeys(np.flatnonzero(missing).tolist(), _MISSING.get(self.kind, _MISSING_VALUE))
        return column, faults

    def _hint(self, what: str) -> str | None:
        """What may be wrong with a value that is no number; `what` is its repr."""
        if self.kind != "number":
            return None
        comma = _DECIMAL_COMMA.fullmatch(what)
        return "write numbers with a decimal point" if comma else "is it a column of categories?"

    def _odd_labels(self, column: Column) -> list[int]:
        """Return the rows whose label is text for a number that is not finite."""
        if self.kind != "target" or not pa.types.is_large_string(column.type):
            return []
        words = [word for word in pc.unique(column).to_pylist() if word is not None and NOT_FINITE.fullmatch(word)]
        return np.flatnonzero(to_numpy(pc.is_in(column, text_array(words)))).tolist() if words else []

    def _texts(self, column: Column) -> tuple[Column, NDArray[np.bool_]]:
        texts = as_text(column)
        if self.trim and self.kind != "text":
            texts = pc.utf8_trim_whitespace(texts)
        if self.kind == "target" or (self.trim and self.kind == "category"):
            texts = pc.if_else(pc.equal(texts, EMPTY), NULL, texts)
        return texts, to_numpy(texts.is_null()) if texts.null_count else np.zeros(len(texts), bool)


def check_columns(checks: Sequence[Check], columns: Sequence[Column]) -> list[tuple[Column, dict[int, Fault]]]:
    """Return what each check makes of its column, and what is wrong with which rows of it."""
    columns = [plain(column) for column in columns]
    numeric = [at for at, check in enumerate(checks) if check.numeric]
    numbers = dict(zip(numeric, numbers_of([columns[at] for at in numeric]), strict=True))
    return [check(column, numbers.get(at)) for at, (check, column) in enumerate(zip(checks, columns, strict=True))]


def mismatches(kinds: Sequence[str], columns: Sequence[Column]) -> dict[int, str]:
    """Return which columns cannot be of their kind, by their type or by all of many values, and what they hold."""
    columns = [plain(column) for column in columns]
    nested = {at: f"values of type {column.type}" for at, column in enumerate(columns) if pa.types.is_nested(column.type)}
    numeric = [at for at, kind in enumerate(kinds) if kind in ("number", "weight") and at not in nested]
    numbers = dict(zip(numeric, numbers_of([columns[at] for at in numeric]), strict=True))
    numbers |= {at: as_booleans(columns[at]) for at, kind in enumerate(kinds) if kind == "boolean" and at not in nested}
    wrong = dict(nested)
    for at, (_, bad, missing) in numbers.items():
        present = len(columns[at]) - int(np.count_nonzero(missing)) if bad else 0
        if bad and len(bad) == present and (present >= 10 or not pa.types.is_large_string(columns[at].type)):
            wrong[at] = f"{next(iter(bad.values()))} and the like"
    return dict(sorted(wrong.items()))
