"""The weights of named features: a slot for each, that it keeps until it is forgotten.

Without a limit every feature that takes part in an update gets a slot. With `limit`, the smallest make room for the new.
With `buckets`, a hash of the name says which slot, and names may share one.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from rosenblatt.engine.problems import Binary, Joint
from rosenblatt.engine.weights import Weights, with_more_classes
from rosenblatt.errors import DamagedModel, NumericOverflow
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import decode_name, encode_name
from rosenblatt.online import hashing
from rosenblatt.online.names import (
    LARGEST_VALUE,
    NAMED,
    NAMES,
    Names,
    length,
    length_in_buckets,
    measure,
    measure_all,
    push,
    remember,
)
from rosenblatt.online.objects import address_of, without_dispatch
from rosenblatt.online.rows import Row, RowLike, numeric_row, read_row

FEWEST = 64  # slots to begin with


class _Block(NamedTuple):
    """A block of weights with a table of names of its own, on which it holds."""

    names: Names
    words: NDArray
    address: int


def room_for(vectors: int, room: int) -> int:
    """Return for how many weight vectors there is room once there are so many, if there was room for `room` before: it is
    doubled when it is used up, so that new classes take time in proportion to the size of the weights."""
    room = 3 if room == 1 < vectors else room
    while room < vectors:
        room *= 2
    return room


class NamedWeights:
    """One weight vector for two classes, one a class for more; where an average is wanted, the drifts from which it follows
    are further columns beside them, so that a feature is looked up once for both."""

    measure: Any = None  # the compiled kernel; on the class, so that the memory of an instance does not include it

    def __init__(self, constant: float, average: bool, limit: int | None, buckets: int | None, bits: int):
        self.constant = constant
        self.average = average
        self.limit = limit
        self.buckets = buckets
        self.bits = bits
        self.names = Names()
        self._make_block()
        # (slots + 1, columns); the last row is the intercept, the constant times the weight of the constant. With an
        # average, the second half of the columns are the drifts. Columns without a vector, in either half, are zero.
        self.set_weights(np.zeros(((buckets or 0) + 1, 2 if average else 1)), 1)

    @property
    def last(self) -> NDArray:
        """The weights, (slots + 1, vectors)."""
        return self.w[:, : self.vectors]

    @property
    def drift(self) -> NDArray:
        """Their drifts, where an average is wanted."""
        half = self.w.shape[1] // 2
        return self.w[:, half : half + self.vectors]

    @property
    def room(self) -> int:
        """The number of weight vectors for which there is room."""
        return self.w.shape[1] // (2 if self.average else 1)

    def set_weights(self, w: NDArray, vectors: int) -> None:
        """Set the array of weights and the number of weight vectors in it."""
        w = np.require(w, np.float64, ["C", "W"])  # compiled code, which gets its address, relies on that
        self.block[1:] = w.ctypes.data, len(w) - 1, w.shape[1]  # before the old array is freed
        self.w, self.vectors = w, vectors
        self.usual = vectors == 1  # two classes

    def _make_block(self) -> None:
        """Make the block of words that tells compiled code the addresses of names and weights."""
        if self.buckets is not None:
            self.names.set_buckets(self.buckets, address_of(hashing.COMPILED[self.bits]))
        self.block = np.array([self.names.address, 0, 0, 0])
        self.address = self.block.ctypes.data
        if NamedWeights.measure is None:
            NamedWeights.measure = staticmethod(without_dispatch(measure, int64, int64, int64, int64))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("block", "address")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_block()
        self.set_weights(self.w, self.vectors)

    # Files

    def to_parts(self) -> Parts:
        """Return the names and their weights, without room that is free."""
        names = [encode_name(name) for name in self.names.known]
        parts = Parts({"positions": self.names.positions})
        parts.put_json("names", names)
        w = np.hstack([self.last, self.drift]) if self.average else self.last
        parts.put("weights", w if self.buckets is not None else np.concatenate([w[: len(names)], w[-1:]]))
        return parts

    def set_from_parts(self, parts: Parts, classes: int) -> None:
        """Set the names and weights to those that parts describe, for so many classes; there are none yet."""
        names = [decode_name(name) for name in parts.json_list("names")]
        most = self.buckets if self.limit is None else self.limit
        if len(set(names)) != len(names) or len(names) > (len(names) if most is None else most):
            raise DamagedModel(f"{len(names)} names must differ, and be at most {most}")
        positions = parts.whole("positions", 0, len(names))
        if names[:positions] != list(range(positions)):
            raise DamagedModel(f"the first {positions} names must be the positions 0, 1, 2, …")
        vectors = 1 if classes < 3 else classes
        columns = vectors * (1 + self.average)
        w = parts.array("weights", np.float64, ((len(names) if self.buckets is None else self.buckets) + 1, columns))
        self.set_weights(w, vectors)
        slots = range(0, 2 * len(names), 2)
        self.names.add(names, slots if self.buckets is None else map(self.code, names))
        self.names.set_positions(positions)

    # Scoring

    def score(self, x: Row) -> Any:
        """Return the score of a row by the last weights: a number for one weight vector, else an array. None if x is not a
        dictionary of numbers, none of them too large, nor an array of such numbers whose positions have the first slots."""
        if self.usual:
            named = isinstance(x, dict)  # the usual case by far, so without a further call
            value = self.measure(id(x), NAMED, self.address, 0) if named else self._measure(x, 0)
            if value != value and self.buckets is not None:
                value = self._measure(x, 0)
            return value if value == value else None
        products = self._products(x, 1)
        return None if products is None else products[0]

    def predict_score(self, x: RowLike, clock: int) -> Any:
        """Return the score of a row by the weights that predict: the last, or their average over so many examples."""
        if self.usual:
            clock = clock if self.average else 0
            value = self.measure(id(x), NAMED, self.address, clock) if isinstance(x, dict) else self._measure(x, clock)
            if value != value:
                value = self._measure(self.read_and_score(x)[0], clock)
            if value != value:
                raise _overflow()
            return value
        halves = 2 if self.average else 1
        products = self._products(x, halves)
        if products is None:
            products = self._products(self.read_and_score(x)[0], halves)
        if products is None:
            raise _overflow()
        return products[0] - products[1] / clock if self.average else products[0]

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

    def _products(self, x: RowLike, halves: int) -> NDArray | None:
        """Return the products of a row with the weights, (halves, vectors): of two halves, the second are those with their
        drifts. None if the row is not plain."""
        products = np.zeros((halves, self.vectors))
        if isinstance(x, dict):
            if measure_all(id(x), NAMED, self.address, products):
                return products
            own = self._own_block(x)
            if own is None:
                return None
            products[:] = 0.0
            return products if measure_all(id(x), NAMED, own.address, products) else None
        row = self._numbers(x)
        if row is None or not measure_all(id(row), len(row), self.address, products):
            return None
        return products

    def _measure(self, x: RowLike, clock: int) -> float:
        """Return what `measure` returns, for either kind of row; NaN for anything else."""
        if isinstance(x, dict):
            value = self.measure(id(x), NAMED, self.address, clock)
            if value != value and (own := self._own_block(x)) is not None:
                value = self.measure(id(x), NAMED, own.address, clock)
            return value
        row = self._numbers(x)
        return nan if row is None else self.measure(id(row), len(row), self.address, clock)

    def _numbers(self, x: RowLike) -> NDArray | None:
        """Return the row as a contiguous array that compiled code can read; None if it is not an array of float64, or its
        positions do not have the first slots."""
        if isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 1 and self._fits(len(x)):
            return np.ascontiguousarray(x)
        return None

    def read(self, x: RowLike) -> Any:
        """Return x as a dictionary; or as an array of numbers, where the first slots belong to its positions."""
        row = read_row(x)
        return row if isinstance(row, dict) or self._fits(len(row)) else dict(enumerate(row.tolist()))

    def check(self, row: Row) -> Any:
        """Return the row with text as one feature for each value; refuse values that are no numbers, or too large."""
        if isinstance(row, dict):
            # where the kernel for scores is compiled anyway, it saves compiling the one for lengths
            plain = self.score(row) is not None if self.usual and self.buckets is None else length(id(row)) >= 0.0
            return row if plain else numeric_row(row)
        if not (np.abs(row) <= LARGEST_VALUE).all():
            numeric_row(dict(enumerate(row.tolist())))
        return row

    def _fits(self, size: int) -> bool:
        """Whether the first slots belong to so many positions, or would if they had come."""
        in_order = self.buckets is None and self.limit is None
        return in_order and (size <= self.names.positions or len(self.names) == self.names.positions)

    def _own_block(self, row: dict) -> _Block | None:
        """Return a block with the names of a row alone, some of which compiled code cannot hash. None if names are not
        hashed, or the row is not plain."""
        if self.buckets is None or not length(id(row)) >= 0.0:
            return None
        names = [name for name, value in row.items() if value != 0]
        codes = self.names.codes(names).tolist()
        own = Names()
        own.add(names, [self.code(name) if code < 0 else code for name, code in zip(names, codes, strict=True)])
        block = self.block.copy()
        block[NAMES] = own.address
        return _Block(own, block, block.ctypes.data)

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
        size = 2 << len(row).bit_length()
        squared = length_in_buckets(id(row), self.names.address, np.zeros((size + len(row), 2), np.int64), size)
        if squared != squared and (own := self._own_block(row)) is not None:
            squared = length_in_buckets(id(row), own.names.address, np.zeros((size + len(row), 2), np.int64), size)
        return squared

    def code(self, name: Hashable) -> int:
        """Return twice the slot of a feature, plus one where it counts with the opposite sign; −1 if it has none."""
        return int(self.names.codes([name])[0]) if self.buckets is None else hashing.code(name, self.buckets, self.bits)

    def predicting(self, clock: int) -> NDArray:
        """Return the weights that predict, (slots + 1, vectors), after so many examples."""
        return self.last - self.drift / clock if self.average and clock else self.last

    # Changing

    def push(self, row: Row, gains: int, loses: int, tau: float, clock: int) -> None:
        """w += τ·(row, constant) for `gains`, −= for `loses` unless that is −1; after `clock` examples."""
        late = tau * clock if self.average else 0.0
        if not isinstance(row, dict):
            if len(row) > self.names.positions:
                self._add(list(range(self.names.positions, len(row))))
                self.names.set_positions(len(row))
            row = np.ascontiguousarray(row)
            push(id(row), len(row), self.address, 0, gains, loses, tau, late, self.constant)
            return
        known = 0
        if self.buckets is None and self.limit is None:
            self.names.make_room(len(row))
            self._reserve(len(self.names) + len(row))
            known = id(self.names.known)
        else:
            self._admit(row, clock)
        push(id(row), NAMED, self.address, known, gains, loses, tau, late, self.constant)

    def grow(self, classes: int) -> None:
        """Add the weights of a class; `classes` counts it."""
        if classes < 3:
            return
        w, room = self.w, room_for(classes, self.room)
        if classes == 3:
            now = Weights(self.last[:, 0], self.drift[:, 0] if self.average else None, *np.zeros((2, 1), np.int64))
            later = with_more_classes(now, Binary(2), Joint(3))
            w = later.w if later.drift is None else np.hstack([later.w, later.drift])
            if self.buckets is None:
                w[len(self.names) : -1] = 0.0  # rows without a feature: not −0, which a model that was loaded has not
        elif room > self.room:
            wider = np.zeros((len(w), w.shape[1] // self.room, room))
            wider[:, :, : self.room] = w.reshape(len(w), -1, self.room)
            w = wider.reshape(len(w), -1)
        self.set_weights(w, classes)

    def _admit(self, row: dict, clock: int) -> None:
        """Give slots to the features of a row where those are limited, as far as there are any; after `clock` examples."""
        if self.buckets is not None:
            if len(self.names) + len(row) > self.buckets and len(self.names) + len(self.names.unknown(row)) > self.buckets:
                self.names.forget()
            self.names.make_room(len(row))
            if not remember(id(row), self.names.address, id(self.names.known)):
                unknown = self.names.unknown(row)
                self.names.add(unknown, map(self.code, unknown))
        elif self.limit is not None:
            unknown = self.names.unknown(row)
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
        used = len(self.names)
        predicting = self.last[:used]
        if self.average and clock:  # clock times the average: equal where averages are, on integers
            predicting = clock * predicting - self.drift[:used]
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
