"""Labels become class numbers. Where all labels are numbers, a label is its value, and +1, 1 and 1.0 are one class; where
some are text, each is its text, and 7 and 007 are two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.parsing.decimals import DECIMAL
from rosenblatt.errors import ContinuousLabels

Key = float | str
_SOME, _MANY = 5, 20  # the fewest distinct numbers that look like targets: if each row has its own, and else


class Labels:
    """The classes known so far, each with its number. They are sorted, unless they may still `grow`; then they are numbered
    as they come."""

    def __init__(self, labels: Iterable[object] = (), grow: bool = False):
        self.grow = grow
        self._enter([_value(label) for label in labels])
        if not grow:
            self._enter(sorted(self.keys, key=float if self.numeric else str))

    @classmethod
    def in_order(cls, labels: Iterable[object]) -> Labels:
        """These classes, numbered as they stand."""
        known = cls(labels, grow=True)
        known.grow = False
        return known

    @classmethod
    def from_text(cls, texts: Iterable[str]) -> Labels:
        """Return the classes that these texts name: numbers, if all of them are."""
        texts = list(texts)
        numbers = all(DECIMAL.fullmatch(text.encode()) for text in texts)
        return cls(map(float, texts) if numbers else texts)

    def __len__(self) -> int:
        return len(self.keys)

    def numbers(self, y: NDArray) -> NDArray:
        """(rows,) int64: the class number of each label; −1 for one that is not a class."""
        if len(y) == 0:
            return np.empty(0, np.int64)
        if y.dtype.kind == "f" and self._sorted is not None and not self.grow:
            at = np.minimum(np.searchsorted(self._sorted, y), len(self._sorted) - 1)
            return np.where(self._sorted[at] == y, at, -1)
        distinct, where = np.unique(y, return_inverse=True)
        if self.grow:
            first = np.full(len(distinct), len(y))
            np.minimum.at(first, where, np.arange(len(y)))
            self._enter([*self.keys, *(_value(distinct[at]) for at in np.argsort(first))])
        numbers = np.array([self.number(label) for label in distinct], np.int64)
        return numbers[where]

    def number(self, label: object) -> int:
        """The number of a label, which may be text; −1 for one that is not a class."""
        value = _value(label)
        if isinstance(value, str) and self.numeric:
            value = float(value) if DECIMAL.fullmatch(value.encode()) else value
        return self._numbers.get(value if self.numeric else label_text(value), -1)

    def classes(self) -> NDArray:
        """The labels in the order of their numbers: int64 or float64 if all are numbers, else text."""
        if not self.numeric:
            return np.array(self.keys)
        numbers = np.array(self.keys, np.float64)
        whole = np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2**53)
        return numbers.astype(np.int64) if whole else numbers

    def _enter(self, values: list[Key]) -> None:
        self.numeric = all(isinstance(value, float) for value in values)
        self.keys: list[Any] = list(dict.fromkeys(values if self.numeric else map(label_text, values)))
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        rising = bool(self.keys) and self.numeric and self.keys == sorted(self.keys)
        self._sorted = np.array(self.keys) if rising else None


def refuse_continuous(labels: NDArray, rows: int) -> None:
    """Raise ContinuousLabels if these different labels of so many rows look like numbers to predict: there are many of
    them and they have fractions, or most rows or all have a number of their own."""
    if labels.dtype.kind not in "iuf" or len(labels) < 3:
        return
    fractions = bool((labels != np.rint(labels)).any())
    most = 2 * len(labels) > rows
    unique = len(labels) == rows and rows >= _SOME
    if unique or (fractions and most) or (len(labels) >= _MANY and (fractions or most)):
        raise ContinuousLabels(labels.tolist(), rows)


def label_text(label: object) -> str:
    """Return a label as text: whole numbers without a decimal point."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, float):
        whole = abs(label) < 2**53 and label == int(label)
        return str(int(label)) if whole else repr(label)
    return str(label)


def _value(label: object) -> Key:
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, bool) or not isinstance(label, int | float):
        return str(label)
    return float(label) + 0.0  # −0.0 is 0.0
