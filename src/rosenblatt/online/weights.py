"""The weights of named features: a slot for each, that it keeps until it is forgotten.

Without a limit every feature that takes part in an update gets a slot. With `limit`, the smallest make room for the new.
With `buckets`, a hash of the name says which slot, and names may share one.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.problems import Binary, Joint
from rosenblatt.engine.weights import Weights, with_more_classes, writable
from rosenblatt.errors import DamagedModel, NumericOverflow
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import decode_name, encode_name
from rosenblatt.online import hashing
from rosenblatt.online.names import (
    LARGEST_VALUE,
    Names,
    length,
    measure,
    measure_positions,
    push,
    push_positions,
)
from rosenblatt.online.rows import Row, RowLike, numeric_row, read_row

FEWEST = 64  # slots to begin with


class NamedWeights:
    """One weight vector for two classes, one a class for more; where an average is wanted, the drifts from which it follows
    are further columns beside them, so that a feature is looked up once for both. A single weight and its drift are also
    read as one complex number: both products are then one sum."""

    def __init__(self, constant: float, average: bool, limit: int | None, buckets: int | None, bits: int):
        self.constant = constant
        self.average = average
        self.limit = limit
        self.buckets = buckets
        self.bits = bits
        self.names = Names()
        slots = buckets or 0
        # (slots + 1,) or (slots + 1, columns); the last is the intercept, the constant times the weight of the constant
        self.set_weights(np.zeros((slots + 1, 2) if average else slots + 1), 1)
        self.positions = 0  # the first slots belong to the names 0, 1, 2, … up to here

    def set_weights(self, w: NDArray, vectors: int) -> None:
        """Set the array of weights and the number of weight vectors in it."""
        self.w, self.vectors = w, vectors
        self.usual = self.buckets is None and vectors == 1  # one weight vector, and a slot for each name
        self.one = w.view(np.complex128)[:, 0] if self.usual and self.average else w

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "one"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.set_weights(writable(self.w), self.vectors)

    # Files

    def to_parts(self) -> Parts:
        """Return the names and their weights, without room that is free."""
        names = [encode_name(name) for name in self.names.known]
        w = self._columns()
        parts = Parts({"positions": self.positions})
        parts.put_json("names", names)
        parts.put("weights", w if self.buckets is not None else np.concatenate([w[: len(names)], w[-1:]]))
        return parts

    def set_from_parts(self, parts: Parts, classes: int) -> None:
        """Set the names and weights to those that parts describe, for so many classes; there are none yet."""
        names = [decode_name(name) for name in parts.json_list("names")]
        most = self.buckets if self.limit is None else self.limit
        if len(set(names)) != len(names) or len(names) > (len(names) if most is None else most):
            raise DamagedModel(f"{len(names)} names must differ, and be at most {most}")
        self.positions = parts.whole("positions", 0, len(names))
        if names[: self.positions] != list(range(self.positions)):
            raise DamagedModel(f"the first {self.positions} names must be the positions 0, 1, 2, …")
        vectors = 1 if classes < 3 else classes
        columns = vectors * (1 + self.average)
        w = parts.array("weights", np.float64, ((len(names) if self.buckets is None else self.buckets) + 1, columns))
        self.set_weights(w if self.average or vectors > 1 else w[:, 0], vectors)
        slots = range(0, 2 * len(names), 2)
        self.names.add(names, slots if self.buckets is None else map(self.code, names))

    # Scoring

    def score(self, x: Row) -> Any:
        """Return the score of a row by the last weights, a number for one weight vector, else an array. None if x is no
        dictionary of numbers that are not too large, and no array of them whose positions have the first slots."""
        if self.usual:
            named = isinstance(x, dict)  # the usual case by far, so without a further call
            value = measure(id(x), self.names.table, self.one, None) if named else self._measure(x, self.one, None)
            return value.real if value == value else None
        products = self._products(x, self.vectors)
        return products if products is None or self.vectors > 1 else float(products[0])

    def predict_score(self, x: RowLike, clock: int) -> Any:
        """Return the score of a row by the weights that predict: the last, or their average over so many examples."""
        if self.usual:
            named = isinstance(x, dict)
            value = measure(id(x), self.names.table, self.one, None) if named else self._measure(x, self.one, None)
            if value != value:
                value = self._measure(self.read_and_score(x)[0], self.one, None)
            return value.real - value.imag / clock if self.average else value
        columns = 2 * self.vectors if self.average else self.vectors
        products = self._products(x, columns)
        if products is None:
            products = self._products(self.read_and_score(x)[0], columns)
        if products is None:
            raise _overflow()
        value = products[: self.vectors]
        if self.average:
            value = value - products[self.vectors :] / clock
        return value if self.vectors > 1 else float(value[0])

    def read_and_score(self, x: RowLike) -> tuple[Any, Any]:
        """Return the row that x stands for, and its score by the last weights."""
        row = self.read(x)
        value = self.score(row)
        if value is None:
            row = self.check(row)
            value = self.score(row)
        if value is None:
            raise _overflow()
        return row, value

    def _products(self, x: RowLike, columns: int) -> NDArray | None:
        """Return the products of a row with the first columns of the weights; None if it is not plain."""
        products = np.zeros(columns)
        return products if self._measure(x, self._columns(), products) == 0.0 else None

    def _measure(self, x: RowLike, w: NDArray, products: NDArray | None) -> Any:
        """Return what `measure` returns, for either kind of row; NaN for anything else."""
        if isinstance(x, dict):
            value = measure(id(x), self.names.table, w, products)
            if self.buckets is not None and products is not None and value == 0.0:
                products += self._unknown_products(x, w[:, : len(products)])
            return value
        if isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 1 and self._fits(len(x)):
            return measure_positions(np.ascontiguousarray(x), self.positions, w, products)
        return nan

    def read(self, x: RowLike) -> Any:
        """Return x as a dictionary; or as an array of numbers, where the first slots belong to its positions."""
        row = read_row(x)
        return row if isinstance(row, dict) or self._fits(len(row)) else dict(enumerate(row.tolist()))

    def check(self, row: Row) -> Any:
        """Return the row with text as one feature for each value; refuse values that are no numbers, or too large."""
        if isinstance(row, dict):
            return row if length(id(row)) >= 0.0 else numeric_row(row)
        if not (np.abs(row) <= LARGEST_VALUE).all():
            numeric_row(dict(enumerate(row.tolist())))
        return row

    def _fits(self, size: int) -> bool:
        """Whether the first slots belong to so many positions, or would if they had come."""
        in_order = self.buckets is None and self.limit is None
        return in_order and (size <= self.positions or len(self.names) == self.positions)

    def _columns(self) -> NDArray:
        """The weights as an array of two axes."""
        return self.w if self.w.ndim == 2 else self.w[:, None]

    def _unknown_products(self, row: dict, w: NDArray) -> Any:
        """Return what the features whose names are not remembered add to the products of a row."""
        total: Any = 0.0
        for name in self.names.unknown(row):
            code = self.code(name)
            total = total + (-float(row[name]) if code & 1 else float(row[name])) * w[code >> 1]
        return total

    def length(self, row: Row) -> float:
        """Compute ‖(row, constant)‖²."""
        if not isinstance(row, dict):
            squared = float(row.dot(row))
        elif self.buckets is None:
            squared = length(id(row))
        else:
            squared = self._length_in_buckets(row)
        return squared + self.constant * self.constant

    def _length_in_buckets(self, row: dict) -> float:
        """Compute ‖row‖², where the values of names that share a bucket are added up first."""
        sums: dict[int, float] = {}
        signed = []
        for (name, value), known in zip(row.items(), self.names.codes(row).tolist(), strict=True):
            code = known if known >= 0 else self.code(name)
            signed.append((code >> 1, -float(value) if code & 1 else float(value)))
            sums[code >> 1] = sums.get(code >> 1, 0.0) + signed[-1][1]
        total = 0.0
        for bucket, value in signed:
            total += value * sums[bucket]
        return total

    def code(self, name: Hashable) -> int:
        """Return twice the slot of a feature, plus one where it counts with the opposite sign; −1 if it has none."""
        return int(self.names.codes([name])[0]) if self.buckets is None else hashing.code(name, self.buckets, self.bits)

    def predicting(self, clock: int) -> NDArray:
        """Return the weights that predict, (slots + 1, vectors), after so many examples."""
        w = self._columns()
        return w[:, : self.vectors] - w[:, self.vectors :] / clock if self.average and clock else w[:, : self.vectors]

    # Changing

    def push(self, row: Row, gains: int, loses: int, tau: float, clock: int) -> None:
        """w += τ·(row, constant) for `gains`, −= for `loses` unless that is −1; after `clock` examples."""
        late = tau * clock if self.average else 0.0
        if not isinstance(row, dict):
            if len(row) > self.positions:
                self._add(list(range(self.positions, len(row))))
                self.positions = len(row)
            push_positions(np.ascontiguousarray(row), self.w, gains, loses, tau, late, self.constant)
            return
        known = 0
        if self.buckets is None and self.limit is None:
            self.names.make_room(len(row))
            self._reserve(len(self.names) + len(row))
            known = id(self.names.known)
        else:
            self._admit(row, clock)
        push(id(row), self.names.table, known, self.w, gains, loses, tau, late, self.constant)

    def grow(self, classes: int) -> None:
        """Add the weights of a class; `classes` counts it."""
        if classes < 3:
            return
        w = self._columns()
        last, drift = w[:, : self.vectors], w[:, self.vectors :] if self.average else None
        if classes == 3:
            last, drift = last[:, 0], None if drift is None else drift[:, 0]
        now = Weights(last, drift, np.zeros(1, np.int64), np.zeros(1, np.int64))
        later = with_more_classes(now, Binary(2) if classes == 3 else Joint(classes - 1), Joint(classes))
        columns = later.w if later.drift is None else np.hstack([later.w, later.drift])
        self.set_weights(np.ascontiguousarray(columns), classes)

    def _admit(self, row: dict, clock: int) -> None:
        """Give slots to the features of a row where those are limited, as far as there are any; after `clock` examples."""
        unknown = self.names.unknown(row)
        if self.buckets is not None:
            if len(self.names) + len(unknown) > self.buckets:
                self.names.forget()
                unknown = self.names.unknown(row)
            self.names.add(unknown, map(self.code, unknown))
        elif self.limit is not None:
            if len(self.names) + len(unknown) > self.limit:
                self._forget(row, len(self.names) + len(unknown) - self.limit, clock)
                del unknown[self.limit - len(self.names) :]
            self._add(unknown)

    def _add(self, names: list[Any]) -> None:
        """Give new names the next slots."""
        first, last = len(self.names), len(self.names) + len(names)
        self.names.add(names, range(2 * first, 2 * last, 2))
        self._reserve(last)

    def _reserve(self, least: int) -> None:
        """Make room for at least so many slots."""
        slots = len(self.w) - 1
        if least > slots:
            more = max(least, 2 * slots, FEWEST)
            larger = np.zeros(((more if self.limit is None else min(more, self.limit)) + 1, *self.w.shape[1:]))
            larger[:slots], larger[-1] = self.w[:-1], self.w[-1]
            self.set_weights(larger, self.vectors)

    def _forget(self, row: dict, least: int, clock: int) -> None:
        """Drop at least so many features with the smallest weights, but none that is in the row; the others move up, so
        that slots stay in the order in which features came."""
        assert self.limit is not None
        used, w = len(self.names), self._columns()
        predicting = w[:used, : self.vectors]
        if self.average and clock:  # clock times the average: equal where averages are, on integers
            predicting = clock * predicting - w[:used, self.vectors :]
        size = np.abs(predicting).max(axis=1)
        codes = self.names.codes(row)
        present = codes[codes >= 0] >> 1
        size[present] = np.inf
        count = min(max(least, self.limit // 10), used - len(present))
        places = np.sort(np.argsort(size, kind="stable")[count:])
        self.w[: len(places)] = self.w[places]
        self.w[len(places) : -1] = 0.0
        self.names.keep(places)


def _overflow() -> NumericOverflow:
    return NumericOverflow("the score of a row overflows: its values, or the weights, are too large", hint="scale X down")
