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
from rosenblatt.online.objects import append, approach, equal, following, hash_of, inlined, locked, number, size_of

LARGEST = np.finfo(np.float64).max
LARGEST_VALUE = 1e100  # of a feature, and of a step: no sum of their products, however long the stream, is infinite
LOW = 2**32 - 1


@inlined
def spread(hashed, table):
    """(first place to look, mark to look for): whole numbers are their own hash, so the higher bits are mixed in."""
    bits = np.uint64(hashed)
    place = bits ^ (bits >> np.uint64(21)) ^ (bits >> np.uint64(42))
    return place & np.uint64(len(table) - 1), np.int64(bits >> np.uint64(33))


@inlined
def find(table, name, hashed):
    """The code of a name, given by its address and hash; −1 if it is not in the table."""
    place, mark = spread(hashed, table)
    code = -1
    while table[place, 0] != 0:
        entry = table[place, 1]
        if table[place, 0] == name or (entry >> 32 == mark and equal(table[place, 0], name)):
            code = entry & LOW
            break
        place = (place + np.uint64(1)) & np.uint64(len(table) - 1)
    return code


@inlined
def enter(table, name, hashed, code):
    """Put a name that is not in the table into it; there is room."""
    place, mark = spread(hashed, table)
    while table[place, 0] != 0:
        place = (place + np.uint64(1)) & np.uint64(len(table) - 1)
    table[place, 0] = name
    table[place, 1] = mark << 32 | code


@locked
def finished(total, w, scores):
    """The products with the intercept, the last weight; NaN if one is not finite."""
    if w.ndim == 1:
        total += w[-1]
        return total if abs(total) <= LARGEST else nan
    for k in range(scores.size):
        scores[k] += w[-1, k]
        if not abs(scores[k]) <= LARGEST:
            total = nan
    return total


@locked
def measure(x, table, w, scores):
    """⟨x, w⟩ with the intercept, which is the last weight; names without a slot count nothing.

    Many weight vectors: their products go to `scores`, zero so far, and the answer is 0. NaN if a value is not a number, or
    too large, or a product is not finite. Memory is what this waits for, so it asks for a name two items before it looks at
    it, and for the entry of the table one item before.
    """
    total, position = 0.0, 0
    now, position, name, value = following(x, position)
    hashed = hash_of(name) if now else 0
    next_, position, next_name, next_value = following(x, position)
    while now:
        later, position, later_name, later_value = following(x, position)
        approach(later_name)
        next_hashed = hash_of(next_name) if next_ else 0
        prefetch(table, 2 * np.int64(spread(next_hashed, table)[0]))
        v = number(value)
        if not abs(v) <= LARGEST_VALUE:
            return nan
        code = find(table, name, hashed)
        if code >= 0:
            v = -v if code & 1 else v
            slot = np.uint64(code >> 1)
            if w.ndim == 1:
                total += v * w[slot]
            else:
                for k in range(scores.size):
                    scores[k] += v * w[slot, k]
        now, name, value, hashed = next_, next_name, next_value, next_hashed
        next_, next_name, next_value = later, later_name, later_value
    return finished(total, w, scores)


@locked
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
    return finished(total, w, scores)


@locked
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


@locked
def push(x, table, known, w, gains, loses, tau, late, constant):
    """w += τ·(x, constant) for the names that have slots, as `shift` says; the drifts move by `late` instead of τ.

    A list at address `known` (0: none) holds the names in the table, in the order of their slots. Names that are not in the
    table, but for those of value zero, are then appended to it and get the next slots; table and weights have room.
    """
    position, slots = 0, size_of(known) if known else 0
    while True:
        more, position, name, value = following(x, position)
        if not more:
            break
        v, hashed = number(value), hash_of(name)
        code = find(table, name, hashed)
        if code < 0 and known and v != 0.0:
            code = 2 * slots
            enter(table, name, hashed, code)
            append(known, name)
            slots += 1
        if code >= 0:
            v = -v if code & 1 else v
            shift(w, np.uint64(code >> 1), gains, loses, tau * v, late * v)
    shift(w, np.uint64(len(w) - 1), gains, loses, tau * constant * constant, late * constant * constant)


@locked
def push_positions(x, w, gains, loses, tau, late, constant):
    """The same of an array of numbers, which have the slots 0, 1, 2, …"""
    for j in range(x.size):
        shift(w, np.uint64(j), gains, loses, tau * x[j], late * x[j])
    shift(w, np.uint64(len(w) - 1), gains, loses, tau * constant * constant, late * constant * constant)


@locked
def strangers(x, table, found):
    """Append the names that are not in the table, but for those of value zero, to the list at address `found`."""
    position = 0
    while True:
        more, position, name, value = following(x, position)
        if not more:
            return
        if find(table, name, hash_of(name)) < 0 and number(value) != 0.0:
            append(found, name)


@locked
def length(x):
    """‖x‖²; NaN if a value is no number, or too large."""
    total, position = 0.0, 0
    while True:
        more, position, _, value = following(x, position)
        if not more:
            return total
        v = number(value)
        total += v * v if abs(v) <= LARGEST_VALUE else nan


@locked
def enter_all(table, names, codes):
    """Put names, given by their addresses, that are not in the table into it; there is room."""
    for j in range(names.size):
        enter(table, names[j], hash_of(names[j]), codes[j])


@locked
def transfer(table, larger):
    """Put all names of a table into a larger one."""
    for place in range(len(table)):
        if table[place, 0] != 0:
            enter(larger, table[place, 0], hash_of(table[place, 0]), table[place, 1] & LOW)


@locked
def codes_of(table, names):
    """The code of each name, given by its address; −1 for those that are not in the table."""
    codes = np.empty(names.size, np.int64)
    for j in range(names.size):
        codes[j] = find(table, names[j], hash_of(names[j]))
    return codes


class Names:
    """The names known so far, in the order in which they came, and the table in which rows look them up."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Know no names."""
        self.known: list[Any] = []  # holds on to the names whose addresses are in the table
        self.table = np.zeros((16, 2), np.int64)

    def __len__(self) -> int:
        return len(self.known)

    def __getstate__(self) -> tuple[list[Any], list[int]]:
        codes = self.codes(self.known).tolist()  # addresses and hashes mean nothing to another process
        if -1 in codes:
            raise ValueError(f"the hash of the name {self.known[codes.index(-1)]!r} has changed since it was learned")
        return self.known, codes

    def __setstate__(self, state: tuple[list[Any], list[int]]) -> None:
        self.forget()
        self.enter(*state)

    def codes(self, names: Iterable[Any]) -> NDArray:
        """The codes of names; −1 for those that are not known."""
        held = list(names)
        return codes_of(self.table, addresses(held))

    def strangers(self, x: dict) -> list[Any]:
        """The names in a row that are not known, but for those of value zero."""
        found: list[Any] = []
        strangers(id(x), self.table, id(found))
        return found

    def enter(self, names: list[Any], codes: Iterable[int]) -> None:
        """Get to know names, each with its code."""
        self.make_room(len(names))
        self.known += names
        enter_all(self.table, addresses(names), np.fromiter(codes, np.int64, len(names)))

    def make_room(self, more: int) -> None:
        """At most half of the table is in use when so many more names have come."""
        needed = 2 * (len(self.known) + more)
        if needed > len(self.table):
            larger = np.zeros((1 << (needed - 1).bit_length(), 2), np.int64)
            transfer(self.table, larger)
            self.table = larger

    def keep(self, places: NDArray) -> None:
        """Forget all but those at these places, and number the slots of these anew from 0."""
        survivors = [self.known[place] for place in places]
        self.forget()
        self.enter(survivors, range(0, 2 * len(survivors), 2))


def addresses(things: list[Any]) -> NDArray:
    """Where the things in a list are; they stay there as long as the list holds on to them."""
    return np.fromiter(map(id, things), np.int64, len(things))
