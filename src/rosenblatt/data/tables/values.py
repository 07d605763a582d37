"""A value is a number or a text whatever type the file gave it: "3", 3 and 3.0 are one number, and one category."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NOTHING = ("", "?", "na", "n/a", "nan", "none", "null")  # ways to write that a number is missing, in lower case
_NAN = re.compile(r"[+-]?nan(\(\w*\))?", re.IGNORECASE)  # as C and Arrow write it
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def plain(column: Any) -> Any:
    """The column without dictionaries, and text with 64-bit offsets."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = pa.types.is_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.large_string()) if text else column


def is_nothing(text: str) -> bool:
    """Whether this says that a number is missing."""
    return text.lower() in NOTHING or _NAN.fullmatch(text) is not None


def as_numbers(column: Any) -> tuple[NDArray[np.float64], dict[int, str], NDArray[np.bool_]]:
    """The numbers of a plain column, NaN where there is none; the rows with something else and what it is; and which rows
    have nothing."""
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
        return (
            np.full(len(column), np.nan),
            dict.fromkeys(range(len(column)), str(column.type)),
            np.zeros(len(column), bool),
        )
    numbers = (values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()) + 0.0  # no −0
    missing = np.isnan(numbers)
    if bad:
        missing[list(bad)] = False
    for row in np.flatnonzero(np.isinf(numbers)):
        bad[int(row)] = repr(str(column[int(row)].as_py()))
    return numbers, bad, missing


def _one_by_one(column: Any) -> tuple[Any, dict[int, str]]:
    """The same for text of which not all is a number."""
    numbers: list[float | None] = []
    bad = {}
    for row, text in enumerate(column.to_pylist()):
        text = None if text is None else text.strip()
        if text is None or is_nothing(text):
            numbers.append(None)
        elif NUMBER.fullmatch(text):
            numbers.append(float(text))
        else:
            numbers.append(None)
            bad[row] = repr(text[:60])
    return pa.array(numbers, pa.float64()), bad


def given(column: Any) -> Any:
    """What stands in a column of text, without blanks around it and without ways to write that something is missing."""
    values = pc.utf8_trim_whitespace(column.drop_null())
    return values.filter(pc.invert(pc.is_in(pc.utf8_lower(values), pa.array(NOTHING, pa.large_string()))))


def has_leading_zeros(column: Any) -> bool:
    """Whether a plain column is text of whole numbers of which one begins with a 0 too many, as codes do: 02139."""
    if not pa.types.is_large_string(column.type):
        return False
    values = given(column)
    whole = pc.all(pc.match_substring_regex(values, r"^[+-]?\d+$")).as_py()
    return bool(whole and pc.any(pc.match_substring_regex(values, r"^0\d")).as_py())


def number_text(x: float) -> str:
    """A number as text, the shortest that gives it back; a whole one has no point."""
    return str(int(x)) if abs(x) < 2**63 and x == int(x) else repr(x)


def as_text(column: Any) -> Any:
    """The column as text, null where it has nothing. A whole number has no point, whatever its type."""
    column = plain(column)
    if pa.types.is_large_string(column.type):
        return column
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers, _, missing = as_numbers(column)
        texts = [number_text(x) for x in np.where(missing, 0.0, numbers).tolist()]
        return pa.array(texts, pa.large_string(), mask=missing)
    return column.cast(pa.large_string())


def as_truth(column: Any) -> tuple[NDArray[np.float64], dict[int, str], NDArray[np.bool_]]:
    """1 for true, 0 for false, as `as_numbers` answers; text says it in words, numbers as 1 and 0."""
    if not pa.types.is_large_string(column.type):
        numbers, bad, missing = as_numbers(column)
        known = np.isnan(numbers) | (numbers == 0) | (numbers == 1)
        return numbers, {**bad, **{int(row): repr(numbers[row]) for row in np.flatnonzero(~known)}}, missing
    words = {"true": 1.0, "1": 1.0, "yes": 1.0, "false": 0.0, "0": 0.0, "no": 0.0}
    texts = [None if text is None else text.strip() for text in column.to_pylist()]
    numbers = np.array([np.nan if text is None else words.get(text.lower(), np.nan) for text in texts], np.float64)
    missing = np.array([text is None or is_nothing(text) for text in texts], bool)
    bad = {row: repr(text) for row, text in enumerate(texts) if np.isnan(numbers[row]) and not missing[row]}
    return numbers, bad, missing
