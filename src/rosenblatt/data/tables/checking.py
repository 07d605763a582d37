"""Every value of a column is checked against the kind that the column is, and what is wrong is said in a sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rosenblatt.data.tables.values import as_numbers, as_text, as_truth, plain

_NO = {
    "number": "is no number; is it a column of categories? on_error='skip' leaves such rows out",
    "boolean": "is no truth value (true or false); on_error='skip' leaves such rows out",
    "weight": "is no weight, which is a number, 0 or more",
    "target": "is no number, as the labels of the first rows are; on_error='skip' leaves such rows out",
}
_MISSING = {
    "target": "the label is missing; on_error='skip' leaves such rows out",
    "weight": "the weight is missing; on_error='skip' leaves such rows out",
}
_FILL = "the value is missing; missing='fill' fills it in, on_error='skip' leaves the row out"


class Check(NamedTuple):
    """What a column must hold."""

    kind: str
    labels: str | None  # "number" or "text"
    fill: bool  # whether values may be missing
    trim: bool  # whether blanks around categories and labels are nothing, as in delimited text

    def __call__(self, column: Any) -> tuple[Any, dict[int, str]]:
        """The column as its kind wants it, and what is wrong with which rows: float64, NaN where nothing is, or text."""
        numeric = self.kind in ("number", "boolean", "weight") or (self.kind == "target" and self.labels == "number")
        values, bad, missing = (self._numbers if numeric else self._texts)(plain(column))
        if self.kind in _MISSING or not self.fill:
            bad |= dict.fromkeys(np.flatnonzero(missing).tolist(), _MISSING.get(self.kind, _FILL))
        return values, bad

    def _numbers(self, column: Any) -> tuple[Any, dict[int, str], Any]:
        numbers, bad, missing = (as_truth if self.kind == "boolean" else as_numbers)(column)
        if self.kind == "weight":
            bad |= {row: repr(float(numbers[row])) for row in np.flatnonzero(numbers < 0).tolist()}
        return pa.array(numbers), {row: f"{what} {_NO[self.kind]}" for row, what in bad.items()}, missing

    def _texts(self, column: Any) -> tuple[Any, dict[int, str], Any]:
        texts = as_text(column)
        if self.trim and self.kind != "text":
            texts = pc.utf8_trim_whitespace(texts)
        if self.kind == "target" or (self.trim and self.kind == "category"):
            texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
        missing = np.asarray(texts.is_null()) if texts.null_count else np.zeros(len(texts), bool)
        return texts, {}, missing


def misfit(kind: str, column: Any) -> str | None:
    """What a column holds that cannot be of a kind, by its type or by all of many values; None where it may be."""
    column = plain(column)
    if pa.types.is_nested(column.type):
        return f"values of type {column.type}"
    if kind in ("number", "boolean", "weight"):
        _, bad, missing = (as_truth if kind == "boolean" else as_numbers)(column)
        known = len(column) - int(np.count_nonzero(missing))
        if bad and len(bad) == known and (known >= 10 or not pa.types.is_large_string(column.type)):
            return f"{next(iter(bad.values()))} and the like"
    return None
