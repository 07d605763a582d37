"""Features have names. A table gives each name a slot in the arrays of weights, and compiled code reads a row, a
dictionary from names to values, through it.

An entry of the table is 16 bytes: the address of the name, and 31 bits of its hash beside the name's code. A code is twice
the slot, plus one where the feature counts with the opposite sign. Most names are found in the first entry looked at, by
their address; a dictionary from names to integers visits three places in memory and was measured at twice the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import prefetch
from rosenblatt.errors import InvalidData
from rosenblatt.online.objects import (
    append,
    as_number,
    equal,
    gil_jit,
    hash_of,
    inline_jit,
    next_item,
    prefetch_object,
    size_of,
)

LARGEST = np.finfo(np.float64).max
LARGEST_VALUE = 1e100  # of a feature, and of a step: no sum of their products, however long the stream, is infinite
LOW = 2**32 - 1


@inline_jit
def first_place(hash_, table):
    """(first place to look, mark to look for): whole numbers are their own hash, so the higher bits are mixed in."""
    bits = np.uint64(hash_)
    place = bits ^ (bits >> np.uint64(21)) ^ (bits >> np.uint64(42))
    return place & np.uint64(len(table) - 1), np.int64(bits >> np.uint64(33))


@inline_jit
def find_code(table, name, hash_):
    """The code of a name, given by its address and hash; −1 if it is not in the table."""
    place, mark = first_place(hash_, table)
    code = -1
    while table[place, 0] != 0:
        entry = table[place, 1]
        if table[place, 0] == name or (entry >> 32 == mark and equal(table[place, 0], name)):
            code = entry & LOW
            break
        place = (place + np.uint64(1)) & np.uint64(len(table) - 1)
    return code


@inline_jit
def insert(table, name, hash_, code):
    """Put a name that is not in the table into it; there is room."""
    place, mark = first_place(hash_, table)
    while table[place, 0] != 0:
        place = (place + np.uint64(1)) & np.uint64(len(table) - 1)
    table[place, 0] = name
    table[place, 1] = mark << 32 | code


@gil_jit
def add_intercept(total, w, scores):
    """The products with the intercept, the last weight; NaN if one is not finite."""
    if w.ndim == 1:
        total += w[-1]
        return total if abs(total) <= LARGEST else nan
    for k in range(scores.size):
        scores[k] += w[-1, k]
        if not abs(scores[k]) <= LARGEST:
            total = nan
    return total


@gil_jit
def measure(x, table, w, scores):
    """⟨x, w⟩ with the intercept, which is the last weight; names without a slot count nothing.

    Many weight vectors: their products go to `scores`, zero so far, and the answer is 0. NaN if a value is not a number, or
    too large, or a product is not finite. Memory is what this waits for, so it asks for a name two items before it looks at
    it, and for the entry of the table one item before.
    """
    total, position = 0.0, 0
    now, position, name, value = next_item(x, position)
    hash_ = hash_of(name) if now else 0
    next_, position, next_name, next_value = next_item(x, position)
    while now:
        later, position, later_name, later_value = next_item(x, position)
        prefetch_object(later_name)
        next_hash = hash_of(next_name) if next_ else 0
        prefetch(table, 2 * np.int64(first_place(next_hash, table)[0]))
        v = as_number(value)
        if not abs(v) <= LARGEST_VALUE:
            return nan
        code = find_code(table, name, hash_)
        if code >= 0:
            v = -v if code & 1 else v
            slot = np.uint64(code >> 1)
            if w.ndim == 1:
                total += v * w[slot]
            else:
                for k in range(scores.size):
                    scores[k] += v * w[slot, k]
        now, name, value, hash_ = next_, next_name, next_value, next_hash
        next_, next_name, next_value = later, later_name, later_value
    return add_intercept(total, w, scores)


@gil_jit
def measure_positions(x, slots, w, scores):
    """The same of an array of numbers, the first of which have the slots 0, 1, 2, …, as many as there are `slots`."""
    total = 0.0
    for j in range(x.size):
        if not abs(x[j]) <= LARGEST_VALUE:
            return nan
    for j in range(min(slots, x.size)):
        if w.ndim == 1:
            total += x[j] * w[j]
        else:
            for k in range(scores.size):
                scores[k] += x[j] * w[j, k]
    return add_intercept(total, w, scores)


@gil_jit
def shift(w, slot, gains, loses, by, late):
    """w[slot] += `by` in column `gains`, −= in column `loses` unless that is −1. Where `late` is not 0, the second half of
    the columns are the drifts of the first, and move by that."""
    if w.ndim == 1:
        w[slot] += by
    else:
        half = w.shape[1] // 2
        w[slot, gains] += by
        if late != 0.0:
            w[slot, gains + half] += late
        if loses >= 0:
            w[slot, loses] -= by
            if late != 0.0:
                w[slot, loses + half] -= late


@gil_jit
def push(x, table, known, w, gains, loses, tau, late, constant):
    """w += τ·(x, constant) for the names that have slots, as `shift` says; the drifts move by `late` instead of τ.

    A list at address `known` (0: none) holds the names in the table, in the order of their slots. Names that are not in the
    table, but for those of value zero, are then appended to it and get the next slots; table and weights have room.
    """
    position, slots = 0, size_of(known) if known else 0
    while True:
        more, position, name, value = next_item(x, position)
        if not more:
            break
        v, hash_ = as_number(value), hash_of(name)
        code = find_code(table, name, hash_)
        if code < 0 and known and v != 0.0:
            code = 2 * slots
            insert(table, name, hash_, code)
            append(known, name)
            slots += 1
        if code >= 0:
            v = -v if code & 1 else v
            shift(w, np.uint64(code >> 1), gains, loses, tau * v, late * v)
    shift(w, np.uint64(len(w) - 1), gains, loses, tau * constant * constant, late * constant * constant)


@gil_jit
def push_positions(x, w, gains, loses, tau, late, constant):
    """The same of an array of numbers, which have the slots 0, 1, 2, …"""
    for j in range(x.size):
        shift(w, np.uint64(j), gains, loses, tau * x[j], late * x[j])
    shift(w, np.uint64(len(w) - 1), gains, loses, tau * constant * constant, late * constant * constant)


@gil_jit
def unknown_names(x, table, result):
    """Append the names that are not in the table, but for those of value zero, to the list at address `result`."""
    position = 0
    while True:
        more, position, name, value = next_item(x, position)
        if not more:
            return
        if find_code(table, name, hash_of(name)) < 0 and as_number(value) != 0.0:
            append(result, name)


@gil_jit
def length(x):
    """‖x‖²; NaN if a value is no number, or too large."""
    total, position = 0.0, 0
    while True:
        more, position, _, value = next_item(x, position)
        if not more:
            return total
        v = as_number(value)
        total += v * v if abs(v) <= LARGEST_VALUE else nan


@gil_jit
def insert_all(table, names, codes):
    """Put names, given by their addresses, that are not in the table into it; there is room."""
    for j in range(names.size):
        insert(table, names[j], hash_of(names[j]), codes[j])


@gil_jit
def transfer(table, larger):
    """Put all names of a table into a larger one."""
    for place in range(len(table)):
        if table[place, 0] != 0:
            insert(larger, table[place, 0], hash_of(table[place, 0]), table[place, 1] & LOW)


@gil_jit
def codes_of(table, names):
    """The code of each name, given by its address; −1 for those that are not in the table."""
    codes = np.empty(names.size, np.int64)
    for j in range(names.size):
        codes[j] = find_code(table, names[j], hash_of(names[j]))
    return codes


class Names:
    """The names known so far, in the order in which they came, and the table in which rows look them up."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Remove all names."""
        self.known: list[Any] = []  # holds on to the names whose addresses are in the table
        self.table = np.zeros((16, 2), np.int64)

    def __len__(self) -> int:
        return len(self.known)

    def __getstate__(self) -> tuple[list[Any], list[int]]:
        codes = self.codes(self.known).tolist()  # addresses and hashes mean nothing to another process
        if -1 in codes:
            name = self.known[codes.index(-1)]
            raise InvalidData(f"the hash of the feature name {name!r} has changed since it was learned")
        return self.known, codes

    def __setstate__(self, state: tuple[list[Any], list[int]]) -> None:
        self.forget()
        self.add(*state)

    def codes(self, names: Iterable[Any]) -> NDArray:
        """Return the codes of names; −1 for those that are not known."""
        alive = list(names)  # as long as their addresses are in use
        return codes_of(self.table, addresses(alive))

    def unknown(self, x: dict) -> list[Any]:
        """Return the names in a row that are not known, but for those of value zero."""
        result: list[Any] = []
        unknown_names(id(x), self.table, id(result))
        return result

    def add(self, names: list[Any], codes: Iterable[int]) -> None:
        """Add names, each with its code."""
        self.make_room(len(names))
        self.known += names
        insert_all(self.table, addresses(names), np.fromiter(codes, np.int64, len(names)))

    def make_room(self, more: int) -> None:
        """Make the table large enough that at most half of it is in use after so many more names."""
        size = 2 * (len(self.known) + more)
        if size > len(self.table):
            larger = np.zeros((1 << (size - 1).bit_length(), 2), np.int64)
            transfer(self.table, larger)
            self.table = larger

    def keep(self, places: NDArray) -> None:
        """Remove all names but those at these places, whose slots are numbered anew from 0."""
        survivors = [self.known[place] for place in places]
        self.forget()
        self.add(survivors, range(0, 2 * len(survivors), 2))


def addresses(objects: list[Any]) -> NDArray:
    """Return the addresses of the objects in a list, which are valid as long as the list holds on to them."""
    return np.fromiter(map(id, objects), np.int64, len(objects))
