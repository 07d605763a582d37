"""Labels become class numbers. A label that reads as a number is that number, so that +1, 1 and 1.0 are one class in every
file; classes are numbers if all labels are, and else text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Labels:
    """The classes known so far, each with its number. They are sorted, unless they may still `grow`; then they are numbered
    as they come."""

    def __init__(self, labels: Iterable[Any] = (), grow: bool = False):
        keys = list(dict.fromkeys(map(_key, labels)))
        self.keys: list[float | str] = keys if grow else _ordered(keys)
        self.grow = grow
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        numeric = bool(self.keys) and all(isinstance(key, float) for key in self.keys)
        self._sorted = np.array(self.keys) if numeric and self.keys == sorted(self.keys, key=float) else None

    def __len__(self) -> int:
        return len(self.keys)

    def numbers(self, y: NDArray) -> NDArray:
        """(rows,) int64: the class number of each label; −1 for one that is no class."""
        if len(y) == 0:
            return np.empty(0, np.int64)
        if y.dtype.kind == "f" and self._sorted is not None and not self.grow:
            at = np.minimum(np.searchsorted(self._sorted, y), len(self._sorted) - 1)
            return np.where(self._sorted[at] == y, at, -1)
        distinct, where = np.unique(y, return_inverse=True)
        if self.grow:
            first = np.full(len(distinct), len(y))
            np.minimum.at(first, where, np.arange(len(y)))
            for at in np.argsort(first):
                self._numbers.setdefault(_key(distinct[at]), len(self._numbers))
            self.keys = list(self._numbers)
        numbers = np.array([self._numbers.get(_key(label), -1) for label in distinct], np.int64)
        return numbers[where]

    def classes(self) -> NDArray:
        """The labels in the order of their numbers: int64 or float64 if all are numbers, else text."""
        if all(isinstance(key, float) for key in self.keys):
            numbers = np.array(self.keys, np.float64)
            whole = np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2**53)
            return numbers.astype(np.int64) if whole else numbers
        return np.array([spelled(key) for key in self.keys])


def spelled(label: Any) -> str:
    """A label as text: whole numbers without a point."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, float):
        whole = abs(label) < 2**53 and label == int(label)
        return str(int(label)) if whole else repr(float(label))
    return str(label)


def _key(label: Any) -> float | str:
    try:
        number = float(label)
    except (TypeError, ValueError):
        return str(label)
    return number + 0.0 if math.isfinite(number) else str(label)  # −0.0 is 0.0


def _ordered(keys: list[float | str]) -> list[float | str]:
    if all(isinstance(key, float) for key in keys):
        return sorted(keys, key=float)
    return sorted(keys, key=spelled)
