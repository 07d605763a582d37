"""Features have names. A table gives each name a slot in the array of weights, and compiled code reads a row, a dictionary
from names to values, through it.

An entry of the table is 16 bytes: the address of the name, a short hash of 31 bits that says where to look first, and the
code. Because of the short hash, a table can grow without reading the names. A code is twice the slot, plus one where the
feature counts with the opposite sign. Most names are found in the first entry looked at, by their address; a dictionary
from names to integers visits three places in memory and was measured at twice the time.

Compiled code gets addresses, not arrays: integers as arguments take half the time of a call and a third of the time to
compile. A `Names` and a `NamedWeights` each have a `block`, an array of 64-bit words with the addresses of their arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import gil_jit
from rosenblatt.errors import InvalidData
from rosenblatt.online.objects import (
    append,
    as_number,
    call,
    equal,
    next_item,
    prefetch_object,
    put_real,
    put_word,
    real,
    short_hash_of,
    size_of,
    stack_memory,
    word,
)

LARGEST = np.finfo(np.float64).max
LARGEST_VALUE = 1e100  # of a feature, and of a step: no sum of their products, however long the stream, is infinite
LOW = 2**32 - 1

# The words of a block of names: address of the table, its number of entries minus one, how many names are positions, the
# number of buckets (0: names that are not in the table have no code), and the address of the function that computes a code
TABLE, MASK, POSITIONS, BUCKETS, HASH = range(5)
# The words of a block of weights: addresses of the block of names and of the array, its last row, its number of columns
NAMES, WEIGHTS, LAST, COLUMNS = range(4)
NAMED = -1  # the size of a row that is a dictionary
ARRAY_DATA = 2  # the word of a numpy array object that holds the address of its values

# The items of a row are looked up so many at a time. Most of the time is waiting for memory, so all names are prefetched
# before the first hash is read, and all entries of the table before the first is compared.
TOGETHER = 64
VALUES, CODES = 8 * TOGETHER, 16 * TOGETHER  # bytes from the start of the memory for items, which begins with the names


@gil_jit
def look_up(x, size, position, names, items):
    """Write names, values and codes of the next items of a row to the address `items`; return (how many, the position after
    them). There are −1 if a value is not a number, or too large.

    The code of a name that is not in the table is −1; but if its value is not zero, and compiled code can hash the name
    into a bucket, it is −2 − the code that follows from the hash.

    x is the address of the row: a dictionary, where `size` is NAMED; or an array of `size` numbers, which have the slots
    0, 1, 2, …; or, for a size of −2 − n, an array of n addresses of names, whose values count as 0.
    """
    count, table, mask = 0, word(names, TABLE), word(names, MASK)
    numbers, end = 0 if size == NAMED else word(x, ARRAY_DATA), size if size >= 0 else -2 - size
    while count < TOGETHER and (size == NAMED or position < end):
        if size >= 0:
            v = real(numbers, position)
            put_word(items + CODES, count, 2 * position if position < word(names, POSITIONS) else -1)
            position += 1
        else:
            if size == NAMED:
                more, position, name, value = next_item(x, position)
                if not more:
                    break
                v = as_number(value)
            else:
                name, v = word(numbers, position), 0.0
                position += 1
            prefetch_object(name)
            put_word(items, count, name)
        if not abs(v) <= LARGEST_VALUE:
            return -1, position
        put_real(items + VALUES, count, v)
        count += 1
    if size >= 0:
        return count, position
    for j in range(count):
        short_hash = short_hash_of(word(items, j))
        put_word(items + CODES, j, short_hash)
        prefetch_object(table + 16 * (short_hash & mask))
    for j in range(count):
        name, short_hash, code = word(items, j), word(items + CODES, j), -1
        place = short_hash & mask
        while word(table, 2 * place) != 0:
            known, entry = word(table, 2 * place), word(table, 2 * place + 1)
            if known == name or (entry >> 32 == short_hash and equal(known, name)):
                code = entry & LOW
                break
            place = (place + 1) & mask
        if code < 0 and word(names, BUCKETS) and real(items + VALUES, j) != 0.0:
            code = -2 - call(word(names, HASH), name, word(names, BUCKETS))
        put_word(items + CODES, j, code)
    return count, position


@gil_jit
def code_at(items, j):
    """Return the code of an item, whether its name is in the table or hashed; −1 if it has none."""
    code = word(items + CODES, j)
    return code if code >= -1 else -2 - code


@gil_jit
def insert(names, name, short_hash, code):
    """Put a name that is not in the table into it; the table must have room."""
    table, mask = word(names, TABLE), word(names, MASK)
    place = short_hash & mask
    while word(table, 2 * place) != 0:
        place = (place + 1) & mask
    put_word(table, 2 * place, name)
    put_word(table, 2 * place + 1, short_hash << 32 | code)


@gil_jit
def measure(x, size, weights, clock):
    """Return ⟨x, w⟩ for a single weight vector, plus the intercept, which is the last weight; names without a slot are left
    out.

    With a `clock` above 0, w is the average over so many examples, for which the drift is a column beside the weight. NaN
    if a value is not a number, or too large, or the result is not finite, or a name must be hashed that compiled code
    cannot hash.
    """
    w, columns, items = word(weights, WEIGHTS), word(weights, COLUMNS), stack_memory()
    names, total, drift, position = word(weights, NAMES), 0.0, 0.0, np.int64(0)
    while True:
        count, position = look_up(x, size, position, names, items)
        if count < 0:
            return nan
        for j in range(count):
            code, v = code_at(items, j), real(items + VALUES, j)
            if code < 0 and v != 0.0 and word(names, BUCKETS):
                return nan
            if code >= 0:
                v = -v if code & 1 else v
                total += v * real(w, columns * (code >> 1))
                if clock > 0:
                    drift += v * real(w, columns * (code >> 1) + 1)
        if count < TOGETHER:
            break
    total += real(w, columns * word(weights, LAST))
    if clock > 0:
        total -= (drift + real(w, columns * word(weights, LAST) + 1)) / clock
    return total if abs(total) <= LARGEST else nan


@gil_jit
def measure_all(x, size, weights, products):
    """Do the same for many weight vectors: add the products with them to the first row of `products` (1 or 2, vectors),
    which must be zero before, and those with their drifts to the second, if there is one. Return whether all values and
    results are valid: False where `measure` returns NaN."""
    w, columns, items = word(weights, WEIGHTS), word(weights, COLUMNS), stack_memory()
    names, position = word(weights, NAMES), np.int64(0)
    while True:
        count, position = look_up(x, size, position, names, items)
        if count < 0:
            return False
        for j in range(count):
            code, v = code_at(items, j), real(items + VALUES, j)
            if code < 0 and v != 0.0 and word(names, BUCKETS):
                return False
            if code >= 0:
                v = -v if code & 1 else v
                for half in range(len(products)):
                    at = columns * (code >> 1) + columns // 2 * half
                    for k in range(products.shape[1]):
                        products[half, k] += v * real(w, at + k)
        if count < TOGETHER:
            break
    fine = True
    for half in range(len(products)):
        at = columns * word(weights, LAST) + columns // 2 * half
        for k in range(products.shape[1]):
            products[half, k] += real(w, at + k)
            fine = fine and abs(products[half, k]) <= LARGEST
    return fine


@gil_jit
def shift(w, at, columns, gains, loses, by, late):
    """w[at] += `by` in column `gains`, −= in column `loses` unless that is −1. Where `late` is not 0, the second half of
    the columns are the drifts of the first, and move by that."""
    put_real(w, at + gains, real(w, at + gains) + by)
    if loses >= 0:
        put_real(w, at + loses, real(w, at + loses) - by)
    if late != 0.0:
        at += columns // 2
        put_real(w, at + gains, real(w, at + gains) + late)
        if loses >= 0:
            put_real(w, at + loses, real(w, at + loses) - late)


@gil_jit
def push(x, size, weights, known, gains, loses, tau, late, constant):
    """w += τ·(x, constant) for the names that have slots, in the columns that `shift` describes; the drifts move by `late`
    instead of τ.

    `known` is the address of the list of all names in the table, in the order of their slots; names that are not in the
    table, but for those of value zero, are then appended to it and get the next slots. Table and weights must have room for
    them. With 0 no names are added.
    """
    names, w, columns, items = word(weights, NAMES), word(weights, WEIGHTS), word(weights, COLUMNS), stack_memory()
    position, slots = np.int64(0), size_of(known) if known else 0
    while True:
        count, position = look_up(x, size, position, names, items)
        for j in range(count):
            code, v = code_at(items, j), real(items + VALUES, j)
            if code < 0 and known and v != 0.0:
                code = 2 * slots
                insert(names, word(items, j), short_hash_of(word(items, j)), code)
                append(known, word(items, j))
                slots += 1
            if code >= 0:
                v = -v if code & 1 else v
                shift(w, columns * (code >> 1), columns, gains, loses, tau * v, late * v)
        if count < TOGETHER:
            break
    shift(w, columns * word(weights, LAST), columns, gains, loses, tau * constant * constant, late * constant * constant)


@gil_jit
def unknown_names(x, names, result):
    """Append the names that are not in the table, but for those of value zero, to the list at address `result`."""
    position, items = np.int64(0), stack_memory()
    while True:
        count, position = look_up(x, np.int64(NAMED), position, names, items)
        for j in range(count):
            if word(items + CODES, j) < 0 and real(items + VALUES, j) != 0.0:
                append(result, word(items, j))
        if count < TOGETHER:
            return


@gil_jit
def remember(x, names, known):
    """Put the names of a row that are not in the table, but for those of value zero, into it and on the list at address
    `known`, each with the code that its hash says. The table must have room for them. Return False at the first that
    compiled code cannot hash."""
    position, items = np.int64(0), stack_memory()
    while True:
        count, position = look_up(x, np.int64(NAMED), position, names, items)
        for j in range(count):
            if word(items + CODES, j) < 0 and real(items + VALUES, j) != 0.0:
                if code_at(items, j) < 0:
                    return False
                insert(names, word(items, j), short_hash_of(word(items, j)), code_at(items, j))
                append(known, word(items, j))
        if count < TOGETHER:
            return True


@gil_jit
def length_in_buckets(x, names, work, size):
    """Return ‖x‖², where the values of names that share a bucket are added up first; NaN where `measure` returns it.

    `work` has two words in each of its rows, which must be zero before. The first `size` rows, a power of two that is at
    least twice the number of names, are a table: a bucket plus one, and the sum of its values. The others are a list: the
    place of an item in that table, and its value.
    """
    table, mask, items = work.ctypes.data, size - 1, stack_memory()
    position, end = np.int64(0), size
    while True:
        count, position = look_up(x, np.int64(NAMED), position, names, items)
        if count < 0:
            return nan
        for j in range(count):
            code, v = code_at(items, j), real(items + VALUES, j)
            if v == 0.0:
                continue
            if code < 0:
                return nan
            v = -v if code & 1 else v
            bucket, place = (code >> 1) + 1, (code >> 1) & mask
            while word(table, 2 * place) != 0 and word(table, 2 * place) != bucket:
                place = (place + 1) & mask
            put_word(table, 2 * place, bucket)
            put_real(table, 2 * place + 1, real(table, 2 * place + 1) + v)
            put_word(table, 2 * end, place)
            put_real(table, 2 * end + 1, v)
            end += 1
        if count < TOGETHER:
            break
    total = 0.0
    for row in range(size, end):
        total += real(table, 2 * row + 1) * real(table, 2 * word(table, 2 * row) + 1)
    return total


@gil_jit
def length(x):
    """Return ‖x‖²; NaN if a value is not a number, or too large."""
    total, position = 0.0, 0
    while True:
        more, position, _, value = next_item(x, position)
        if not more:
            return total
        v = as_number(value)
        total += v * v if abs(v) <= LARGEST_VALUE else nan


@gil_jit
def insert_all(names, added):
    """Put names that are not in the table into it, which must have room; `added` (names, 2) holds addresses and codes."""
    for j in range(len(added)):
        insert(names, added[j, 0], short_hash_of(added[j, 0]), added[j, 1])


@gil_jit
def transfer(table, names):
    """Put all names of a table into a larger one, which is empty."""
    for place in range(len(table)):
        if table[place, 0] != 0:
            insert(names, table[place, 0], table[place, 1] >> 32, table[place, 1] & LOW)


@gil_jit
def codes_of(group, count, names, codes):
    """Write the codes of `count` names to the address `codes`; −1 for those not in the table. `group` is the address of a
    numpy array with the addresses of the names."""
    position, items = np.int64(0), stack_memory()
    while position < count:
        start = position
        found, position = look_up(group, -2 - count, position, names, items)
        for j in range(found):
            put_word(codes, start + j, word(items + CODES, j))


class Names:
    """The names known so far, in the order in which they came, and the table in which rows look them up."""

    def __init__(self) -> None:
        self.__setstate__(([], [], 0))

    def forget(self) -> None:
        """Remove all names."""
        self._set_table(16)
        self.known: list[Any] = []  # holds on to the names whose addresses are in the table

    def _set_table(self, size: int, old: NDArray | None = None) -> None:
        """Make a table of this size with the entries of the old one."""
        table = np.zeros((size, 2), np.int64)
        block = self.block.copy()
        block[[TABLE, MASK]] = table.ctypes.data, size - 1
        if old is not None:
            transfer(old, block.ctypes.data)
        self.block[:] = block  # before the old table is freed
        self.table = table

    def set_positions(self, count: int) -> None:
        """Let the first names be the positions 0, 1, 2, … up to this number."""
        self.positions = count
        self.block[POSITIONS] = count

    def set_buckets(self, buckets: int, code: int) -> None:
        """Let names that are not known have a code too, that the compiled function at the address `code` computes from the
        name and the number of buckets; −1 if it cannot."""
        self.block[[BUCKETS, HASH]] = buckets, code

    def __len__(self) -> int:
        return len(self.known)

    def __getstate__(self) -> tuple[list[Any], list[int], int]:
        codes = self.codes(self.known).tolist()  # addresses and hashes mean nothing to another process
        if -1 in codes:
            name = self.known[codes.index(-1)]
            problem = f"the hash of the feature name {name!r} has changed since it was learned"
            raise InvalidData(problem, hint="use names that do not change, such as str, int or tuples of them")
        return self.known, codes, self.positions

    def __setstate__(self, state: tuple[list[Any], list[int], int]) -> None:
        known, codes, positions = state
        self.block = np.zeros(5, np.int64)
        self.address = self.block.ctypes.data
        self.set_positions(positions)
        self.forget()
        if known:
            self.add(known, codes)

    def codes(self, names: Iterable[Any]) -> NDArray:
        """Return the codes of names; −1 for those that are not known."""
        alive = list(names)  # as long as their addresses are in use
        group, codes = addresses(alive), np.empty(len(alive), np.int64)
        codes_of(id(group), len(group), self.address, codes.ctypes.data)
        return codes

    def unknown(self, x: dict) -> list[Any]:
        """Return the names in a row that are not known, but for those of value zero."""
        result: list[Any] = []
        unknown_names(id(x), self.address, id(result))
        return result

    def add(self, names: list[Any], codes: Iterable[int]) -> None:
        """Add names, each with its code."""
        self.make_room(len(names))
        self.known += names
        pairs = np.column_stack([addresses(names), np.fromiter(codes, np.int64, len(names))])
        insert_all(self.address, pairs)

    def make_room(self, more: int) -> None:
        """Make the table large enough that at most half of it is in use after so many more names."""
        size = 2 * (len(self.known) + more)
        if size > len(self.table):
            self._set_table(1 << (size - 1).bit_length(), self.table if self.known else None)

    def keep(self, places: NDArray) -> None:
        """Remove all names but those at these places, whose slots are numbered anew from 0."""
        survivors = [self.known[place] for place in places]
        self.forget()
        self.add(survivors, range(0, 2 * len(survivors), 2))


def addresses(objects: list[Any]) -> NDArray:
    """Return the addresses of the objects in a list, which are valid as long as the list holds on to them."""
    return np.fromiter(map(id, objects), np.int64, len(objects))
