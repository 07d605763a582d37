"""The weights of features for many outcomes (tags, labels, actions), kept as short lists. A feature of a
tagger or parser is seen with a few outcomes only (4 % of a parser's weights are not zero), so it has a list of (outcome,
weight), and no list at all before its first update: memory is bounded by what has been learned, and a score touches only
weights that are there.

A `WeightTable` learns. A `FrozenTable` predicts: it is made from the table once, and its lists, `WeightLists`, are
contiguous and without zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, find, new_slots, resized
from rosenblatt.engine.jit import exact, inlined, jit, prefetch
from rosenblatt.engine.mixing import TableChange
from rosenblatt.errors import DamagedModel
from rosenblatt.modelfile.parts import Parts

OUTCOMES = 2**16  # as many as 16 bits name
_SIZE_BITS = np.uint64(30)
_SIZE_MASK = np.uint64(2**30 - 1)


class WeightTable(NamedTuple):
    """The weights of (feature, outcome) and what their average needs, while they are learned."""

    slots: NDArray  # a hash table from a feature's key to its row
    spans: NDArray  # (rows, 3) int64: where the row's list starts, how long it is, how long it may become
    outcomes: NDArray  # (room,) uint16, or uint32 where there are more than 65,536
    w: NDArray  # (room,) float32
    drift: NDArray  # (room,) float64
    used: NDArray  # (3,) int64: rows, places taken by lists, the longest list

    def copy(self) -> WeightTable:
        """Return a table that shares nothing with this one, without the room that is only reserved."""
        rows, places, _ = self.used.tolist()
        outcomes, w, drift = (part[:places].copy() for part in (self.outcomes, self.w, self.drift))
        return WeightTable(self.slots.copy(), self.spans[:rows].copy(), outcomes, w, drift, self.used.copy())

    def branch(self) -> WeightTable:
        """Return a copy for a shard to learn into, whose drift is its own."""
        rows, places, _ = self.used.tolist()
        lists = (self.outcomes[:places].copy(), self.w[:places].copy(), np.zeros(places))
        return WeightTable(self.slots.copy(), self.spans[:rows].copy(), *lists, self.used.copy())

    def branch_of(self, keys: NDArray) -> WeightTable:
        """Return the same with the weights of these features only, which are different from each other."""
        rows = find_rows(self.slots, keys)
        sizes, outcomes, w = _take_lists(self, rows[rows >= 0])
        return _rebuild(keys[rows >= 0], sizes, outcomes, w, np.zeros(len(w)))

    def change_since(self, start: WeightTable, clock: int) -> TableChange:
        """Return what has changed since this table was branched off; `clock` counts the examples seen. Lists only grow at
        their ends, so that the two agree in the order of outcomes."""
        keys = row_keys(self.slots, self.used[0])
        before = find_rows(start.slots, keys)
        changed = _count_changes(self, start, before)
        rows = np.flatnonzero(changed)
        rows = rows[np.argsort(keys[rows])]
        *names, w, passed = _list_changes(self, start, before, keys, rows, int(changed.sum()), float(clock))
        return TableChange(tuple(names), w, passed)

    def with_change(self, change: TableChange, clock: int) -> WeightTable:
        """Return the mixture of which this is the change, after `clock` examples; this table may be changed in place."""
        keys, outcomes = change.keys or ()
        table = reserve(self, len(keys))
        _mix_lists(table, keys, outcomes, change.w, change.passed, float(clock))
        return table

    @property
    def nbytes(self) -> int:
        """The memory that is used; what is only reserved has not been touched, and costs none."""
        rows, places, _ = self.used.tolist()
        lists = sum(part.itemsize for part in (self.outcomes, self.w, self.drift)) * places
        return self.slots.nbytes + rows * self.spans.strides[0] + lists

    def to_parts(self) -> Parts:
        """Return the arrays for a file: the same for the same weights, however much room is reserved."""
        return Parts(arrays=dict(zip(_ARRAYS, _flatten(self), strict=True)))

    @classmethod
    def from_parts(cls, parts: Parts, outcomes: int) -> WeightTable:
        """Return the table that was saved, after a check that its lists name only so many outcomes."""
        types: dict[str, DTypeLike] = {**_ARRAYS, "outcomes": outcome_type(outcomes)}
        keys, sizes, named, w, drift = (parts.array(name, dtype, (None,)) for name, dtype in types.items())
        check_lists(WeightLists(keys, sizes, named, w), outcomes)
        if len(drift) != len(w):
            raise DamagedModel(f"there are {len(w)} weights, but {len(drift)} drifts")
        return _rebuild(*(part.copy() for part in (keys, sizes, named, w, drift)))


_ARRAYS = {"keys": np.uint64, "sizes": np.int64, "outcomes": np.uint16, "w": np.float32, "drift": np.float64}


def outcome_type(outcomes: int) -> type[np.unsignedinteger]:
    """Return the type of numbers for so many outcomes: the smaller it is, the more of a list fits a line of the cache."""
    return np.uint16 if outcomes <= OUTCOMES else np.uint32


def new_weight_table(outcomes: int = 1) -> WeightTable:
    """Return a table without a feature, for so many outcomes."""
    return WeightTable(
        new_slots(16),
        np.zeros((8, 3), np.int64),
        np.zeros(16, outcome_type(outcomes)),
        np.zeros(16, np.float32),
        np.zeros(16),
        np.zeros(3, np.int64),
    )


@jit
def _longer(array, size):
    longer = np.empty(size, array.dtype)
    for i in range(array.size):  # a slice would do, and take seconds to compile
        longer[i] = array[i]
    return longer


@jit
def reserve(table, pushes):
    """The table, with room for this many more pushes, whatever they are.

    A list that is full moves to where it has twice the room. If it had s places and gets p pushes, it takes at most
    4(s + p) new ones; hence what is asked for here. What is not used is never touched, and costs no memory.
    """
    slots, spans, outcomes, w, drift, used = table
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
    return WeightTable(slots, spans, outcomes, w, drift, used)


@jit
def find_row(table, key):
    """The row of a feature, or −1 if it has no weights."""
    row = find(table.slots, key)
    return np.int64(row) if row != ABSENT else np.int64(-1)


@jit
def add_row(table, key):
    """The row of a feature, which gets one if it is new; `reserve` must have made room."""
    slots, spans, used = table.slots, table.spans, table.used
    at = claim(slots, key)
    if slots[at, 1] == ABSENT:
        row = used[0]
        slots[at, 1] = np.uint64(row)
        spans[row, 0], spans[row, 1], spans[row, 2] = used[1], 0, 2
        used[1] += 2
        used[0] += 1
    return np.int64(slots[at, 1])


@jit
def update_row(table, row, outcome, tau, clock):
    """w[row, outcome] += tau and drift[row, outcome] += clock·tau; `reserve` must have made room."""
    _, spans, outcomes, w, drift, used = table
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
def update(table, key, outcome, tau, clock):
    """The same for a feature's key, which may be new."""
    update_row(table, add_row(table, key), outcome, tau, clock)


@jit
def prefetch_row(table, row):
    """Ask the processor for the list of a row, which will be needed soon."""
    start = table.spans[row, 0]
    prefetch(table.outcomes, start)
    prefetch(table.w, start)


@jit
def add_row_scores(table, row, scores):
    """scores[outcome] += w for each outcome in the row's list."""
    spans, outcomes, w = table.spans, table.outcomes, table.w
    start = spans[row, 0]
    for at in range(start, start + spans[row, 1]):
        scores[outcomes[at]] += w[at]


@jit
def squared_norm(table):
    """The sum of the squares of all weights."""
    spans, w = table.spans, table.w
    total = 0.0
    for row in range(table.used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            total += np.float64(w[at]) * w[at]
    return total


@exact
def mean_weight(w, drift, clock):
    """The average of a weight over `clock` examples: 0 exactly where it is 0."""
    return np.float32(w - drift / clock)


@jit
def row_keys(slots, rows):
    """The keys of a table whose payloads are rows, by row."""
    keys = np.zeros(rows, np.uint64)
    for at in range(slots.shape[0]):
        if slots[at, 0] != 0:
            keys[np.int64(slots[at, 1])] = slots[at, 0]
    return keys


@jit
def find_rows(slots, keys):
    """The row of each key, −1 where it has none."""
    rows = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        found = find(slots, keys[i])
        rows[i] = np.int32(found) if found != ABSENT else np.int32(-1)
    return rows


@jit
def _flatten(table):
    """The lists one after the other, without the room between them: (keys, sizes, outcomes, w, drift)."""
    slots, spans, outcomes, w, drift, used = table
    keys = row_keys(slots, used[0])
    sizes = spans[: used[0], 1].copy()
    total = sizes.sum()
    parts = np.empty(total, outcomes.dtype), np.empty(total, np.float32), np.empty(total)
    to = 0
    for row in range(used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            parts[0][to], parts[1][to], parts[2][to] = outcomes[at], w[at], drift[at]
            to += 1
    return keys, sizes, *parts


@jit
def _rebuild(keys, sizes, outcomes, w, drift):
    slots = new_slots(capacity_for(keys.size))
    spans = np.empty((max(keys.size, 8), 3), np.int64)
    start, longest = 0, 0
    for row in range(keys.size):
        slots[claim(slots, keys[row]), 1] = np.uint64(row)
        spans[row, 0], spans[row, 1], spans[row, 2] = start, sizes[row], sizes[row]
        start += sizes[row]
        longest = max(longest, sizes[row])
    return WeightTable(slots, spans, outcomes, w, drift, np.array([keys.size, start, longest]))


# Mixing: see `engine.mixing`


@jit
def _take_lists(table, rows):
    """The lists of these rows, one after the other: (sizes, outcomes, w)."""
    spans, outcomes, w = table.spans, table.outcomes, table.w
    sizes = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        sizes[i] = spans[rows[i], 1]
    total = sizes.sum()
    parts = np.empty(total, outcomes.dtype), np.empty(total, np.float32)
    to = 0
    for i in range(rows.size):
        first = spans[rows[i], 0]
        for at in range(first, first + sizes[i]):
            parts[0][to], parts[1][to] = outcomes[at], w[at]
            to += 1
    return sizes, *parts


@jit
def _count_changes(table, start, before):
    """How many weights of each row differ from those of the row `before`, or from 0 where there was none, or did so."""
    counts = np.zeros(before.size, np.int64)
    for row in range(before.size):
        first, size = table.spans[row, 0], table.spans[row, 1]
        known, origin = (start.spans[before[row], 1], start.spans[before[row], 0]) if before[row] >= 0 else (0, 0)
        for i in range(size):
            was = start.w[origin + i] if i < known else np.float32(0.0)
            counts[row] += table.w[first + i] != was or table.drift[first + i] != 0.0
    return counts


@exact
def _list_changes(table, start, before, keys, rows, total, clock):
    """(keys, outcomes, growth of w, drift − clock · growth of w) of what differs in these rows, in their order, and in each
    row in the order of outcomes."""
    names, outcomes = np.empty(total, np.uint64), np.empty(total, np.uint32)
    grown, passed = np.empty(total), np.empty(total)
    end = 0
    for row in rows:
        begin, first, size = end, table.spans[row, 0], table.spans[row, 1]
        known, origin = (start.spans[before[row], 1], start.spans[before[row], 0]) if before[row] >= 0 else (0, 0)
        for i in range(size):
            w, drift = np.float64(table.w[first + i]), table.drift[first + i]
            if i < known:
                w -= np.float64(start.w[origin + i])
            if w != 0.0 or drift != 0.0:
                outcome, at = np.uint32(table.outcomes[first + i]), end
                while at > begin and outcomes[at - 1] > outcome:
                    outcomes[at], grown[at], passed[at] = outcomes[at - 1], grown[at - 1], passed[at - 1]
                    at -= 1
                names[end], outcomes[at], grown[at], passed[at] = keys[row], outcome, w, drift - clock * w
                end += 1
    return names, outcomes, grown, passed


@inlined
def mix_weight(w, drift, at, grown, passed, clock):
    """w[at] += grown, rounded once, and what the average needs: the step that was made, not the one that was asked for."""
    was = np.float64(w[at])
    w[at] = np.float32(was + grown)
    drift[at] += clock * (np.float64(w[at]) - was) + passed


@exact
def _mix_lists(table, keys, outcomes, grown, passed, clock):
    """Mix the growth of weights into a table that has room for it; features that are new come in the order of keys."""
    row = 0
    for i in range(keys.size):
        if i == 0 or keys[i] != keys[i - 1]:
            row = add_row(table, keys[i])
        update_row(table, row, outcomes[i], 0.0, 0.0)  # a weight of 0, if it is new
        at = table.spans[row, 0]
        while table.outcomes[at] != outcomes[i]:
            at += 1
        mix_weight(table.w, table.drift, at, grown[i], passed[i], clock)


class WeightLists(NamedTuple):
    """The weights that predict, list after list."""

    keys: NDArray  # (features,) uint64
    sizes: NDArray  # (features,) int64
    outcomes: NDArray  # (weights,) uint16 or uint32
    weights: NDArray  # (weights,) float32, or whole multiples of a unit

    def to_table(self) -> WeightTable:
        """Return a table that learns on from these weights, with no average yet."""
        return _rebuild(*(part.copy() for part in self), np.zeros(len(self.weights)))

    def to_parts(self, sizes: DTypeLike = np.int64, outcomes: DTypeLike | None = None) -> Parts:
        """Return the arrays for a file, the sizes and the outcomes in these types."""
        named = self.outcomes if outcomes is None else self.outcomes.astype(outcomes)
        arrays = [self.keys, self.sizes.astype(sizes), named, self.weights]
        return Parts(arrays=dict(zip(self._fields, arrays, strict=True)))

    @classmethod
    def from_parts(cls, parts: Parts, outcomes: int, dtype: DTypeLike = np.float32) -> WeightLists:
        """Return the lists that were saved, after a check that they name only so many outcomes."""
        sizes, named = parts.arrays.pop("sizes"), parts.arrays.pop("outcomes")
        if sizes.dtype.kind not in "iu" or named.dtype.kind != "u":
            raise DamagedModel(f"sizes and outcomes must be whole numbers; they are {sizes.dtype} and {named.dtype}")
        keys, weights = parts.array("keys", np.uint64, (None,)), parts.array("weights", dtype, (None,))
        lists = cls(keys.copy(), sizes.astype(np.int64), named.astype(outcome_type(outcomes)), weights.copy())
        check_lists(lists, outcomes)
        return lists


def check_lists(lists: WeightLists, outcomes: int) -> None:
    """Raise an error if lists of a file do not fit together: compiled code checks no index."""
    keys, sizes, named, weights = lists
    if any(part.ndim != 1 for part in lists):
        raise DamagedModel("a list has one dimension")
    if len(keys) != len(sizes) or len(named) != len(weights):
        raise DamagedModel(f"{len(keys)} keys with {len(sizes)} lists, {len(named)} outcomes with {len(weights)} weights")
    if len(sizes) and (sizes.min() < 1 or sizes.max() > outcomes or (keys == 0).any() or len(np.unique(keys)) < len(keys)):
        raise DamagedModel("a feature has no list, or a list no feature of its own")
    if int(sizes.sum()) != len(weights):
        raise DamagedModel(f"the lists have {int(sizes.sum())} entries, but there are {len(weights)} weights")
    if len(named) and named.max() >= outcomes:
        raise DamagedModel(f"a weight is for outcome {named.max()}, but there are {outcomes}")


class FrozenTable(NamedTuple):
    """Weights that predict: the list of each feature that has one, without zeros."""

    slots: NDArray  # a table from a feature's key to start << 30 | size of its list
    outcomes: NDArray  # (weights,) uint16 or uint32
    weights: NDArray  # (weights,) float32


@jit
def _freeze_lists(table, clock, average, prune):
    slots, spans, outcomes, w, drift, used = table
    keys = row_keys(slots, used[0])
    sizes = np.zeros(used[0], np.int64)
    kept_outcomes, kept = np.empty(used[1], outcomes.dtype), np.empty(used[1], np.float32)
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


def freeze_lists(table: WeightTable, clock: int, average: bool, prune: float = 0.0) -> WeightLists:
    """Return the weights that predict: averages over `clock` examples or the last ones, without those of |w| ≤ prune."""
    return WeightLists(*_freeze_lists(table, float(max(clock, 1)), average, prune))


@jit
def index_lists(keys, sizes, outcomes, weights):
    """Make a hash table of these lists."""
    slots = new_slots(capacity_for(keys.size))
    start = np.uint64(0)
    for i in range(keys.size):
        slots[claim(slots, keys[i]), 1] = start << _SIZE_BITS | np.uint64(sizes[i])
        start += np.uint64(sizes[i])
    return FrozenTable(slots, outcomes, weights)


@jit
def prefetch_list(table, found):
    """Ask the processor for the list that `find` found in a table, which will be needed soon."""
    at = np.intp(found >> _SIZE_BITS)
    prefetch(table.outcomes, at)
    prefetch(table.weights, at)


@jit
def add_list(table, found, scores):
    """scores[outcome] += weight for the list that `find` found in a table."""
    outcomes, weights = table.outcomes, table.weights
    start = found >> _SIZE_BITS
    for at in range(start, start + (found & _SIZE_MASK)):
        scores[outcomes[at]] += weights[at]


@jit
def add_feature_scores(table, key, scores):
    """scores[outcome] += weight for the list of a feature, if it has one."""
    found = find(table.slots, key)
    if found != ABSENT:
        add_list(table, found, scores)
