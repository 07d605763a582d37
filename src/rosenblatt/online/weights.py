"""The weights of named features: a slot for each, that it keeps until it is forgotten.

Without a limit every feature that takes part in an update gets a slot. With `limit`, the smallest make room for the new.
With `buckets`, a hash of the name says which slot, and names may share one.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.problems import Binary, Joint
from rosenblatt.engine.weights import Weights, grown
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
from rosenblatt.online.reading import clarified, row_of

FEWEST = 64  # slots to begin with
OVERFLOW = "the score of a row overflowed: its values, or the weights, are too large; scale them down"


class NamedWeights:
    """One weight vector for two classes, one a class for more; where an average is wanted, the drifts from which it follows
    are further columns beside them, so that a feature is looked up once for both. A single weight and its drift are also
    read as one complex number: both products are then one sum."""

    def __init__(self, constant: float, averaged: bool, limit: int | None, buckets: int | None, bits: int):
        self.constant = constant
        self.averaged = averaged
        self.limit = limit
        self.buckets = buckets
        self.bits = bits
        self.names = Names()
        slots = buckets or 0
        # (slots + 1,) or (slots + 1, columns); the last is the intercept, the constant times the weight of the constant
        self.hold(np.zeros((slots + 1, 2) if averaged else slots + 1), 1)
        self.positions = 0  # the first slots belong to the names 0, 1, 2, … up to here

    def hold(self, w: NDArray, vectors: int) -> None:
        """Have these weights, of so many weight vectors."""
        self.w, self.vectors = w, vectors
        self.usual = self.buckets is None and vectors == 1  # one weight vector, and a slot for each name
        self.one = w.view(np.complex128)[:, 0] if self.usual and self.averaged else w

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "one"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.hold(self.w, self.vectors)

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
            raise ValueError(f"{len(names)} names must differ, and be at most {most}")
        self.positions = parts.whole("positions", 0, len(names))
        if names[: self.positions] != list(range(self.positions)):
            raise ValueError(f"the first {self.positions} names must be the positions 0, 1, 2, …")
        vectors = 1 if classes < 3 else classes
        columns = vectors * (1 + self.averaged)
        w = parts.array("weights", np.float64, ((len(names) if self.buckets is None else self.buckets) + 1, columns))
        self.hold(w if self.averaged or vectors > 1 else w[:, 0], vectors)
        slots = range(0, 2 * len(names), 2)
        self.names.enter(names, slots if self.buckets is None else map(self.code, names))

    # Scoring

    def score(self, x: Any) -> Any:
        """The score of a row by the last weights: a number for one weight vector, else an array. None if x is neither a
        dictionary of finite numbers nor an array of them whose positions have the first slots."""
        if self.usual:
            named = isinstance(x, dict)  # the usual case by far, so without a further call
            value = measure(id(x), self.names.table, self.one, None) if named else self._measured(x, self.one, None)
            return value.real if value == value else None
        products = np.zeros(self.vectors)
        if self._measured(x, self._columns(), products) != 0.0:
            return None
        return products if self.vectors > 1 else float(products[0])

    def kept(self, x: Any, clock: int) -> Any:
        """The score of a row by the weights that predict: the last, or their average over so many examples."""
        if not self.usual:
            return self._kept_by_columns(x, clock)
        named = isinstance(x, dict)
        value = measure(id(x), self.names.table, self.one, None) if named else self._measured(x, self.one, None)
        if value != value:
            value = self._measured(self.clear(x)[0], self.one, None)
        if value != value:
            raise ValueError(OVERFLOW)
        return value.real - value.imag / clock if self.averaged else value

    def _kept_by_columns(self, x: Any, clock: int) -> Any:
        columns = 2 * self.vectors if self.averaged else self.vectors
        products = np.zeros(columns)
        if self._measured(x, self._columns(), products) != 0.0:
            products[:] = 0.0
            if self._measured(self.clear(x)[0], self._columns(), products) != 0.0:
                raise ValueError(OVERFLOW)
        value = products[: self.vectors]
        if self.averaged:
            value = value - products[self.vectors :] / clock
        return value if self.vectors > 1 else float(value[0])

    def clear(self, x: Any) -> tuple[Any, Any]:
        """(the row that x means, its score by the last weights)."""
        row = self.read(x)
        value = self.score(row)
        if value is None:
            row = self.checked(row)
            value = self.score(row)
        if value is None:
            raise ValueError(OVERFLOW)
        return row, value

    def _measured(self, x: Any, w: NDArray, products: NDArray | None) -> Any:
        """What `measure` answers, of either kind of row; NaN for anything else."""
        if isinstance(x, dict):
            value = measure(id(x), self.names.table, w, products)
            if self.buckets is not None and products is not None and value == 0.0:
                products += self._of_strangers(x, w[:, : len(products)])
            return value
        if isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 1 and self._fits(len(x)):
            return measure_positions(np.ascontiguousarray(x), self.positions, w, products)
        return nan

    def read(self, x: Any) -> Any:
        """x as a dictionary; or as an array of numbers, where the first slots belong to its positions."""
        row = row_of(x)
        return row if isinstance(row, dict) or self._fits(len(row)) else dict(enumerate(row.tolist()))

    def checked(self, row: Any) -> Any:
        """The row with text as one feature a value, if all else is a finite number."""
        if isinstance(row, dict):
            return row if length(id(row)) >= 0.0 else clarified(row)
        if not (np.abs(row) <= LARGEST_VALUE).all():
            clarified(dict(enumerate(row.tolist())))
        return row

    def _fits(self, size: int) -> bool:
        """Whether the first slots belong to so many positions, or would if they had come."""
        in_order = self.buckets is None and self.limit is None
        return in_order and (size <= self.positions or len(self.names) == self.positions)

    def _columns(self) -> NDArray:
        """The weights as an array of two axes."""
        return self.w if self.w.ndim == 2 else self.w[:, None]

    def _of_strangers(self, row: dict, w: NDArray) -> Any:
        """What the features whose names are not remembered add to the products of a row."""
        total: Any = 0.0
        for name in self.names.strangers(row):
            code = self.code(name)
            total = total + (-float(row[name]) if code & 1 else float(row[name])) * w[code >> 1]
        return total

    def length(self, row: Any) -> float:
        """‖(row, constant)‖²."""
        if not isinstance(row, dict):
            squared = float(row.dot(row))
        elif self.buckets is None:
            squared = length(id(row))
        else:
            squared = self._length_in_buckets(row)
        return squared + self.constant**2

    def _length_in_buckets(self, row: dict) -> float:
        """‖row‖², the values of names that share a bucket added up first."""
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

    def code(self, name: Any) -> int:
        """Twice the slot of a feature, plus one where it counts with the opposite sign; −1 if it has none."""
        return int(self.names.codes([name])[0]) if self.buckets is None else hashing.code(name, self.buckets, self.bits)

    def kept_weights(self, clock: int) -> NDArray:
        """(slots + 1, vectors): the weights that predict, after so many examples."""
        w = self._columns()
        return w[:, : self.vectors] - w[:, self.vectors :] / clock if self.averaged and clock else w[:, : self.vectors]

    # Changing

    def push(self, row: Any, gains: int, loses: int, tau: float, clock: int) -> None:
        """w += τ·(row, constant) for `gains`, −= for `loses` unless that is −1; after `clock` examples."""
        late = tau * clock if self.averaged else 0.0
        if not isinstance(row, dict):
            if len(row) > self.positions:
                self._enter(list(range(self.positions, len(row))))
                self.positions = len(row)
            push_positions(np.ascontiguousarray(row), self.w, gains, loses, tau, late, self.constant)
            return
        known = 0
        if self.buckets is None and self.limit is None:
            self.names.make_room(len(row))
            self._reserve(len(self.names) + len(row))
            known = id(self.names.known)
        else:
            self.admit(row, clock)
        push(id(row), self.names.table, known, self.w, gains, loses, tau, late, self.constant)

    def grow(self, classes: int) -> None:
        """Have weights for so many classes, one more than before."""
        if classes < 3:
            return
        w = self._columns()
        last, drift = w[:, : self.vectors], w[:, self.vectors :] if self.averaged else None
        if classes == 3:
            last, drift = last[:, 0], None if drift is None else drift[:, 0]
        now = Weights(last, drift, np.zeros(1, np.int64), np.zeros(1, np.int64))
        later = grown(now, Binary(2) if classes == 3 else Joint(classes - 1), Joint(classes))
        columns = later.w if later.drift is None else np.hstack([later.w, later.drift])
        self.hold(np.ascontiguousarray(columns), classes)

    def admit(self, row: dict, clock: int) -> None:
        """Give the features of a row slots where those are limited, as far as there are; after `clock` examples."""
        strangers = self.names.strangers(row)
        if self.buckets is not None:
            if len(self.names) + len(strangers) > self.buckets:
                self.names.forget()
                strangers = self.names.strangers(row)
            self.names.enter(strangers, map(self.code, strangers))
        elif self.limit is not None:
            if len(self.names) + len(strangers) > self.limit:
                self._forget(row, len(self.names) + len(strangers) - self.limit, clock)
                del strangers[self.limit - len(self.names) :]
            self._enter(strangers)

    def _enter(self, names: list[Any]) -> None:
        """Give new names the next slots."""
        first, last = len(self.names), len(self.names) + len(names)
        self.names.enter(names, range(2 * first, 2 * last, 2))
        self._reserve(last)

    def _reserve(self, needed: int) -> None:
        """Have at least so many slots."""
        slots = len(self.w) - 1
        if needed > slots:
            more = max(needed, 2 * slots, FEWEST)
            larger = np.zeros(((more if self.limit is None else min(more, self.limit)) + 1, *self.w.shape[1:]))
            larger[:slots], larger[-1] = self.w[:-1], self.w[-1]
            self.hold(larger, self.vectors)

    def _forget(self, row: dict, needed: int, clock: int) -> None:
        """Take their slots from the features with the smallest weights, but from none that is in the row; the others move
        up, so that slots stay in the order in which features came."""
        assert self.limit is not None
        held, w = len(self.names), self._columns()
        kept = w[:held, : self.vectors]
        if self.averaged and clock:
            kept = clock * kept - w[:held, self.vectors :]  # clock times the average: equal where averages are, on integers
        size = np.abs(kept).max(axis=1)
        codes = self.names.codes(row)
        present = codes[codes >= 0] >> 1
        size[present] = np.inf
        count = min(max(needed, self.limit // 10), held - len(present))
        places = np.sort(np.argsort(size, kind="stable")[count:])
        self.w[: len(places)] = self.w[places]
        self.w[len(places) : -1] = 0.0
        self.names.keep(places)
