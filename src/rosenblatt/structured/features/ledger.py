"""The weights of features that speak for many outcomes, kept as short lists. A feature of a tagger or parser is seen with a
few outcomes only (4 % of a parser's weights are not zero), so it has a list of (outcome, weight), and no list at all before
its first update: memory is bounded by what has been learned, and a score touches only weights that are there.

A `Ledger` learns; a `Book` is what predicts, written from it once: its lists are contiguous, without zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, find, new_slots, resized
from rosenblatt.engine.jit import exact, jit, prefetch

OUTCOMES = 2**16  # as many as a list can name
_SIZE_BITS = np.uint64(17)
_SIZE_MASK = np.uint64(2**17 - 1)


class Ledger(NamedTuple):
    """The weights of (feature, outcome) and what their average needs, while they are learned."""

    slots: NDArray  # a table from a feature's key to its row
    spans: NDArray  # (rows, 3) int64: where the row's list starts, how long it is, how long it may become
    outcomes: NDArray  # (room,) uint16
    w: NDArray  # (room,) float32
    drift: NDArray  # (room,) float64
    used: NDArray  # (3,) int64: rows, places taken by lists, the longest list


def new_ledger() -> Ledger:
    """A ledger without a feature."""
    return Ledger(
        new_slots(16),
        np.zeros((8, 3), np.int64),
        np.zeros(16, np.uint16),
        np.zeros(16, np.float32),
        np.zeros(16),
        np.zeros(3, np.int64),
    )


def copied(ledger: Ledger) -> Ledger:
    """The same, sharing nothing."""
    return Ledger(*(part.copy() for part in ledger))


def bytes_of(ledger: Ledger) -> int:
    """The memory that has been used; what was only asked for is not touched, and costs none."""
    places, rows = int(ledger.used[1]), int(ledger.used[0])
    lists = sum(part.itemsize for part in (ledger.outcomes, ledger.w, ledger.drift)) * places
    return ledger.slots.nbytes + rows * ledger.spans.strides[0] + lists


@jit
def _longer(array, size):
    longer = np.empty(size, array.dtype)
    for i in range(array.size):  # a slice would do, and take seconds to compile
        longer[i] = array[i]
    return longer


@jit
def roomy(ledger, pushes):
    """The ledger, with room for this many more pushes, whatever they are.

    A list that is full moves to where it has twice the room. If it had s places and gets p pushes, it takes at most
    4(s + p) new ones; hence what is asked for here. What is not used is never touched, and costs no memory.
    """
    slots, spans, outcomes, w, drift, used = ledger
    rows = used[0] + pushes
    capacity = slots.shape[0]
    while 4 * rows >= 3 * capacity:
        capacity *= 2
    if capacity > slots.shape[0]:
        slots = resized(slots, capacity)
    if rows > spans.shape[0]:
        larger = np.empty((max(rows, spans.shape[0] * 5 // 4), 3), np.int64)
        for row in range(used[0]):
            larger[row, 0], larger[row, 1], larger[row, 2] = spans[row, 0], spans[row, 1], spans[row, 2]
        spans = larger
    needed = used[1] + 4 * (min(pushes * used[2], used[1]) + pushes)
    if needed > outcomes.size:
        size = max(needed, outcomes.size * 5 // 4)
        outcomes, w, drift = _longer(outcomes, size), _longer(w, size), _longer(drift, size)
    return Ledger(slots, spans, outcomes, w, drift, used)


@jit
def row_of(ledger, key):
    """The row of a feature, or −1 if it has no weights."""
    row = find(ledger.slots, key)
    return np.int64(row) if row != ABSENT else np.int64(-1)


@jit
def entered(ledger, key):
    """The row of a feature, which is entered if it is new; `roomy` must have made room."""
    slots, spans, used = ledger.slots, ledger.spans, ledger.used
    at = claim(slots, key)
    if slots[at, 1] == ABSENT:
        row = used[0]
        slots[at, 1] = np.uint64(row)
        spans[row, 0], spans[row, 1], spans[row, 2] = used[1], 0, 2
        used[1] += 2
        used[0] += 1
    return np.int64(slots[at, 1])


@jit
def push_row(ledger, row, outcome, tau, clock):
    """w[row, outcome] += tau and drift[row, outcome] += clock·tau; `roomy` must have made room."""
    _, spans, outcomes, w, drift, used = ledger
    start, size = spans[row, 0], spans[row, 1]
    for at in range(start, start + size):
        if outcomes[at] == outcome:
            w[at] += tau
            drift[at] += clock * tau
            return
    if size == spans[row, 2]:
        moved = used[1]
        for i in range(size):
            outcomes[moved + i], w[moved + i], drift[moved + i] = outcomes[start + i], w[start + i], drift[start + i]
        spans[row, 0], spans[row, 2] = moved, 2 * size
        used[1] += 2 * size
        start = moved
    outcomes[start + size], w[start + size], drift[start + size] = outcome, tau, clock * tau
    spans[row, 1] = size + 1
    used[2] = max(used[2], size + 1)


@jit
def push(ledger, key, outcome, tau, clock):
    """The same for a feature's key, which may be new."""
    push_row(ledger, entered(ledger, key), outcome, tau, clock)


@jit
def request_row(ledger, row):
    """Ask the processor for the list of a row, which will be needed soon."""
    start = ledger.spans[row, 0]
    prefetch(ledger.outcomes, start)
    prefetch(ledger.w, start)


@jit
def add_scores(ledger, row, scores):
    """scores[outcome] += w for each outcome in the row's list."""
    spans, outcomes, w = ledger.spans, ledger.outcomes, ledger.w
    start = spans[row, 0]
    for at in range(start, start + spans[row, 1]):
        scores[outcomes[at]] += w[at]


@jit
def weight(ledger, row, outcome):
    """The weight of an outcome in a row's list; 0 if it is not there."""
    spans, outcomes, w = ledger.spans, ledger.outcomes, ledger.w
    start = spans[row, 0]
    for at in range(start, start + spans[row, 1]):
        if outcomes[at] == outcome:
            return w[at]
    return np.float32(0.0)


@jit
def squared_norm(ledger):
    """The sum of the squares of all weights."""
    spans, w = ledger.spans, ledger.w
    total = 0.0
    for row in range(ledger.used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            total += np.float64(w[at]) * w[at]
    return total


@exact
def mean_weight(w, drift, clock):
    """The average of a weight over `clock` examples: 0 exactly where it is 0."""
    return np.float32(w - drift / clock)


@jit
def keys_of(slots, rows):
    """The keys of a table whose payloads are rows, by row."""
    keys = np.zeros(rows, np.uint64)
    for at in range(slots.shape[0]):
        if slots[at, 0] != 0:
            keys[np.int64(slots[at, 1])] = slots[at, 0]
    return keys


@jit
def _laid_out(ledger):
    """The lists one after the other, without the room between them: (keys, sizes, outcomes, w, drift)."""
    slots, spans, outcomes, w, drift, used = ledger
    keys = keys_of(slots, used[0])
    sizes = spans[: used[0], 1].copy()
    total = sizes.sum()
    parts = np.empty(total, np.uint16), np.empty(total, np.float32), np.empty(total)
    to = 0
    for row in range(used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            parts[0][to], parts[1][to], parts[2][to] = outcomes[at], w[at], drift[at]
            to += 1
    return keys, sizes, *parts


@jit
def _taken_up(keys, sizes, outcomes, w, drift):
    slots = new_slots(capacity_for(keys.size))
    spans = np.empty((max(keys.size, 8), 3), np.int64)
    start, longest = 0, 0
    for row in range(keys.size):
        slots[claim(slots, keys[row]), 1] = np.uint64(row)
        spans[row, 0], spans[row, 1], spans[row, 2] = start, sizes[row], sizes[row]
        start += sizes[row]
        longest = max(longest, sizes[row])
    return Ledger(slots, spans, outcomes, w, drift, np.array([keys.size, start, longest]))


_PARTS = {"keys": np.uint64, "sizes": np.int64, "outcomes": np.uint16, "w": np.float32, "drift": np.float64}


def written(ledger: Ledger) -> dict[str, NDArray]:
    """The ledger as arrays for a file: the same for the same weights, however room was made for them."""
    return dict(zip(_PARTS, _laid_out(ledger), strict=True))


def taken_up(arrays: Mapping[str, NDArray]) -> Ledger:
    """The ledger that was written, after a check that it can be one."""
    parts = {name: of_kind(arrays[name], name, kind) for name, kind in _PARTS.items()}
    check_lists(parts["keys"], parts["sizes"], parts["outcomes"], parts["w"])
    if len(parts["drift"]) != len(parts["w"]):
        raise ValueError(f"there are {len(parts['w'])} weights, but {len(parts['drift'])} drifts")
    return _taken_up(*(part.copy() for part in parts.values()))


def of_kind(array: NDArray, name: str, kind: Any) -> NDArray:
    """The array, if it is a row of numbers of this kind."""
    if array.dtype != kind or array.ndim != 1:
        raise ValueError(f"{name} must be a row of {np.dtype(kind)}; it is {array.dtype} of shape {array.shape}")
    return array


def check_lists(keys: NDArray, sizes: NDArray, outcomes: NDArray, weights: NDArray) -> None:
    """Refuse lists that do not fit together: they come from a file, and compiled code believes what it is given."""
    if any(part.ndim != 1 for part in (keys, sizes, outcomes, weights)):
        raise ValueError("a list has one dimension")
    if len(keys) != len(sizes) or len(outcomes) != len(weights):
        raise ValueError(f"{len(keys)} keys with {len(sizes)} lists, {len(outcomes)} outcomes with {len(weights)} weights")
    if len(sizes) and (sizes.min() < 1 or sizes.max() > OUTCOMES or (keys == 0).any() or len(np.unique(keys)) < len(keys)):
        raise ValueError("a feature has no list, or a list no feature of its own")
    if int(sizes.sum()) != len(weights):
        raise ValueError(f"the lists have {int(sizes.sum())} entries, but there are {len(weights)} weights")


class Book(NamedTuple):
    """Weights that predict: the list of each feature that has one, without zeros."""

    slots: NDArray  # a table from a feature's key to start << 17 | size of its list
    outcomes: NDArray  # (weights,) uint16
    weights: NDArray  # (weights,) float32


@jit
def _kept(ledger, clock, average, prune):
    """The weights that predict, list after list: (keys, sizes, outcomes, weights)."""
    slots, spans, outcomes, w, drift, used = ledger
    keys = keys_of(slots, used[0])
    sizes = np.zeros(used[0], np.int64)
    kept_outcomes, kept = np.empty(used[1], np.uint16), np.empty(used[1], np.float32)
    to = 0
    for row in range(used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            value = mean_weight(w[at], drift[at], clock) if average else w[at]
            if abs(value) > prune:
                kept_outcomes[to], kept[to] = outcomes[at], value
                sizes[row] += 1
                to += 1
    live = sizes > 0
    return keys[live], sizes[live], kept_outcomes[:to].copy(), kept[:to].copy()


def kept(ledger: Ledger, clock: int, average: bool, prune: float = 0.0) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """(keys, sizes, outcomes, weights) of the features that predict, list after list; |w| ≤ prune are dropped."""
    return _kept(ledger, float(max(clock, 1)), average, prune)


@jit
def bound(keys, sizes, outcomes, weights):
    """These lists as a book."""
    slots = new_slots(capacity_for(keys.size))
    start = np.uint64(0)
    for i in range(keys.size):
        slots[claim(slots, keys[i]), 1] = start << _SIZE_BITS | np.uint64(sizes[i])
        start += np.uint64(sizes[i])
    return Book(slots, outcomes, weights)


def freeze(ledger: Ledger, clock: int, average: bool, prune: float = 0.0) -> Book:
    """The book of a ledger: the average of its weights over `clock` examples, or the last ones."""
    return bound(*kept(ledger, clock, average, prune))


@jit
def request_list(book, found):
    """Ask the processor for the list that `find` found in a book, which will be needed soon."""
    at = np.intp(found >> _SIZE_BITS)
    prefetch(book.outcomes, at)
    prefetch(book.weights, at)


@jit
def add_list(book, found, scores):
    """scores[outcome] += weight for the list that `find` found in a book."""
    outcomes, weights = book.outcomes, book.weights
    start = found >> _SIZE_BITS
    for at in range(start, start + (found & _SIZE_MASK)):
        scores[outcomes[at]] += weights[at]


@jit
def add_book(book, key, scores):
    """scores[outcome] += weight for what the book says of a feature."""
    found = find(book.slots, key)
    if found != ABSENT:
        add_list(book, found, scores)
