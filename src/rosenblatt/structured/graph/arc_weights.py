"""Two weights for a feature of an arc, one for arcs to the left and one for arcs to the right, in the slot of its key: one
visit to memory answers. A feature that no update has touched has no slot, so memory is bounded by what has been learned.

The last bit of a key is the direction; the rest names the feature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import capacity_for
from rosenblatt.engine.jit import exact, jit, prefetch
from rosenblatt.engine.mixing import TableChange
from rosenblatt.errors import DamagedModel
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured.features.weight_table import mix_weight

_EMPTY = np.uint64(0)
_ONE = np.uint64(1)
_NAME = ~_ONE


class ArcWeights(NamedTuple):
    """The weights of features, and what their average needs."""

    slots: NDArray  # (capacity, 2) uint64, a power of two of them: the name, and the bits of its two weights
    w: NDArray  # (capacity, 4) float32, the same memory: [:, 2] are the weights to the left, [:, 3] those to the right
    drift: NDArray  # (capacity, 2) float64; (0, 2) where nothing is learned
    used: NDArray  # (1,) int64: slots taken

    def copy(self) -> ArcWeights:
        """Return weights that share nothing with these."""
        slots = self.slots.copy()
        return ArcWeights(slots, slots.view(np.float32), self.drift.copy(), self.used.copy())

    def branch(self) -> ArcWeights:
        """Return a copy for a shard to learn into, whose drift is its own."""
        slots = self.slots.copy()
        return ArcWeights(slots, slots.view(np.float32), np.zeros(self.drift.shape), self.used.copy())

    def change_since(self, start: ArcWeights, clock: int) -> TableChange:
        """Return what has changed since these weights were branched off; `clock` counts the examples seen."""
        names = np.sort(_changed_names(self, start))
        *keys, w, passed = _list_changes(self, start, names, float(clock))
        return TableChange(tuple(keys), w, passed)

    def with_change(self, change: TableChange, clock: int) -> ArcWeights:
        """Return the mixture of which this is the change, after `clock` examples; these weights may be changed in place."""
        names, sides = change.keys or ()
        table = _reserve(self, len(names))
        _mix(table, names, sides, change.w, change.passed, float(clock))
        return table

    def freeze(self, clock: int, average: bool, prune: float = 0.0) -> ArcWeights:
        """Return what predicts: the average over `clock` examples, or the last weights; |w| ≤ prune counts as 0."""
        names, weights, drifts = _flatten(self)
        if average:
            weights = (weights - drifts / max(clock, 1)).astype(np.float32)
        weights[abs(weights) <= prune] = 0
        live = weights.any(axis=1)
        return _rebuild(names[live], weights[live], drifts[:0], False)

    def to_learning(self) -> ArcWeights:
        """Return weights that learn on from these, with no average yet."""
        names, weights, drifts = _flatten(self)
        return _rebuild(names, weights, np.zeros_like(drifts), True)

    def to_parts(self) -> Parts:
        """Return the arrays for a file: the same for the same weights, however much room is reserved."""
        names, weights, drifts = _flatten(self)
        return Parts(arrays={"names": names, "w": weights} | ({"drift": drifts} if self.drift.size else {}))

    @classmethod
    def from_parts(cls, parts: Parts) -> ArcWeights:
        """Return the weights that were saved, after a check that they can be some: compiled code checks no index."""
        names = parts.array("names", np.uint64, (None,))
        weights, learns = parts.array("w", np.float32, (len(names), 2)), "drift" in parts.arrays
        drifts = parts.array("drift", np.float64, (len(names), 2)) if learns else np.zeros((len(names), 2))
        if (names == 0).any() or (names & _ONE).any() or len(np.unique(names)) < len(names):
            raise DamagedModel("two features have the same name, or one has none")
        return _rebuild(names.copy(), weights.copy(), drifts.copy(), learns)


def new_arc_weights(capacity, learns):
    """Return an empty table, half of whose slots may be filled. When Python calls this, numpy asks the system for huge
    pages of memory, which make lookups in a table of 134 MB a little faster."""
    slots = np.zeros((capacity, 2), np.uint64)
    return ArcWeights(slots, slots.view(np.float32), np.zeros((capacity if learns else 0, 2)), np.zeros(1, np.int64))


_new_in_kernels = jit(new_arc_weights)


@jit
def directed_key(key, right):
    """The key of a feature in one direction."""
    return (key & _NAME) | np.uint64(right)


@jit
def prefetch_weights(slots, key):
    """Ask the processor for the weights of a feature, which will be needed soon."""
    prefetch(slots, np.intp(key & _NAME & np.uint64(2 * slots.shape[0] - 1)))


@jit
def weight(slots, w, key):
    """The weight of a feature in the direction of its key; 0 if it has none."""
    mask = np.uint64(slots.shape[0] - 1)
    name = key & _NAME
    at = (key >> _ONE) & mask
    while slots[at, 0] != name and slots[at, 0] != _EMPTY:
        at = (at + _ONE) & mask
    return np.float64(w[at, np.uint64(2) + (key & _ONE)])  # those of an empty slot are 0


@jit
def add_both_weights(slots, w, key, out):
    """out[direction] += the weight of a feature in that direction."""
    out[0] += weight(slots, w, directed_key(key, False))
    out[1] += weight(slots, w, directed_key(key, True))


@jit
def _claim(slots, used, name):
    mask = np.uint64(slots.shape[0] - 1)
    at = (name >> _ONE) & mask
    while slots[at, 0] != _EMPTY and slots[at, 0] != name:
        at = (at + _ONE) & mask
    used[0] += slots[at, 0] == _EMPTY
    slots[at, 0] = name
    return at


@jit
def update_weights(table, keys, count, tau, clock):
    """w += tau and drift += clock·tau for the first keys; the table, which may be a larger one now."""
    table = _reserve(table, count)
    slots, w, drift, used = table
    for j in range(count):
        at = _claim(slots, used, keys[j] & _NAME)
        w[at, np.uint64(2) + (keys[j] & _ONE)] += np.float32(tau)
        drift[at, keys[j] & _ONE] += clock * tau
    return table


@jit
def _reserve(table, features):
    """The same weights, with room for this many more features."""
    slots, _, drift, used = table
    if 2 * (used[0] + features) < slots.shape[0]:
        return table
    larger = _new_in_kernels(capacity_for(used[0] + features), True)
    for at in range(slots.shape[0]):
        if slots[at, 0] != _EMPTY:
            to = _claim(larger.slots, larger.used, slots[at, 0])
            larger.slots[to, 1] = slots[at, 1]
            larger.drift[to, 0], larger.drift[to, 1] = drift[at, 0], drift[at, 1]
    return larger


# Mixing: see `engine.mixing`


@jit
def _slot_of(slots, name):
    """The slot of a name, or an empty one, whose weights are 0."""
    mask = np.uint64(slots.shape[0] - 1)
    at = (name >> _ONE) & mask
    while slots[at, 0] != _EMPTY and slots[at, 0] != name:
        at = (at + _ONE) & mask
    return at


@jit
def _changed_names(table, start):
    """The names of features whose weights differ, or did so."""
    slots, w, drift, used = table
    names = np.empty(used[0], np.uint64)
    to = 0
    for at in range(slots.shape[0]):
        if slots[at, 0] != _EMPTY:
            was = _slot_of(start.slots, slots[at, 0])
            for side in range(2):
                if w[at, 2 + side] != start.w[was, 2 + side] or drift[at, side] != 0.0:
                    names[to] = slots[at, 0]
                    to += 1
                    break
    return names[:to].copy()


@exact
def _list_changes(table, start, names, clock):
    """(names, sides, growth of w, drift − clock · growth of w) of the weights of these names that differ, or did so."""
    room = 2 * names.size
    found, sides, grown, passed = np.empty(room, np.uint64), np.empty(room, np.uint32), np.empty(room), np.empty(room)
    to = 0
    for name in names:
        at, was = _slot_of(table.slots, name), _slot_of(start.slots, name)
        for side in range(2):
            step = np.float64(table.w[at, 2 + side]) - np.float64(start.w[was, 2 + side])
            if step != 0.0 or table.drift[at, side] != 0.0:
                found[to], sides[to], grown[to], passed[to] = name, side, step, table.drift[at, side] - clock * step
                to += 1
    return found[:to].copy(), sides[:to].copy(), grown[:to].copy(), passed[:to].copy()


@exact
def _mix(table, names, sides, grown, passed, clock):
    """Mix the growth of weights into a table that has room for it."""
    weights = table.w[:, 2:]
    for i in range(names.size):
        at = _claim(table.slots, table.used, names[i])
        mix_weight(weights, table.drift, (at, sides[i]), grown[i], passed[i], clock)


@jit
def arc_squared_norm(table):
    """The sum of the squares of all weights."""
    w, total = table.w, 0.0
    for at in range(w.shape[0]):
        total += np.float64(w[at, 2]) * w[at, 2] + np.float64(w[at, 3]) * w[at, 3]
    return total


def _flatten(table: ArcWeights) -> tuple[NDArray, NDArray, NDArray]:
    """(names, (names, 2) weights, (names, 2) drifts), in the order of the names."""
    found = _list(table)
    order = np.argsort(found[0])
    return found[0][order], found[1][order], found[2][order]


@jit
def _list(table):
    """Return the same in the order of the slots."""
    slots, w, drift, used = table
    names, weights, drifts = np.empty(used[0], np.uint64), np.empty((used[0], 2), np.float32), np.zeros((used[0], 2))
    to = 0
    for at in range(slots.shape[0]):
        if slots[at, 0] != _EMPTY:
            names[to] = slots[at, 0]
            for side in range(2):
                weights[to, side] = w[at, 2 + side]
                if drift.size > 0:
                    drifts[to, side] = drift[at, side]
            to += 1
    return names, weights, drifts


def _rebuild(names: NDArray, weights: NDArray, drifts: NDArray, learns: bool) -> ArcWeights:
    table = new_arc_weights(int(capacity_for(names.size)), learns)
    _fill(table, names, weights, drifts)
    return table


@jit
def _fill(table, names, weights, drifts):
    """Put the weights of these features into a table that has room for them."""
    slots, w, drift, used = table
    for i in range(names.size):
        at = _claim(slots, used, names[i])
        for side in range(2):
            w[at, 2 + side] = weights[i, side]
            if drift.size > 0:
                drift[at, side] = drifts[i, side]
