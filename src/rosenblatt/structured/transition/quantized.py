"""The weights of actions, and how a configuration is scored: by a `WeightTable` while learning, and when predicting by
weights that are small whole numbers, multiples of a unit and at most 32,767 of it. A feature with weights for
many actions has a row with a number for each, which is added to the scores in a few instructions; one with few has a
short list. Sums of whole numbers do not depend on their order, and a file holds what memory holds.

A parser's features have weights for 27 actions on average when they are met, though most that there are have one or two: so
few rows, 1 % of the features, save most of the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import capacity_for, request
from rosenblatt.engine.jit import generic, jit, prefetch
from rosenblatt.structured.features.weight_table import (
    WeightLists,
    WeightTable,
    add_row_scores,
    find_row,
    mean_weight,
    prefetch_row,
    row_keys,
)

_LARGEST = 32767
_LONG = 6  # actions from which on a row is faster than a list
_LANES = 16  # numbers that one instruction adds: rows are padded to a multiple
_LINE = 32  # of them share a cache line
_KEY_BITS, _SIZE_BITS = np.uint64(36), np.uint64(4)  # an entry: key << 36 | start << 4 | size, the key's highest bits
_START_MASK = np.uint64(2**32 - 1)
_ROW = np.uint64(15)  # the size that marks a row


def quantize(table: WeightTable, seen: int, average: bool, prune: float) -> tuple[WeightLists, float]:
    """Return the weights that predict as multiples of a unit, and the unit.

    Weights of at most `prune` times the mean size are dropped.
    """
    clock = float(max(seen, 1))
    largest, mean = _sizes(table, clock, average)
    unit = largest / _LARGEST if largest > 0.0 else 1.0
    return WeightLists(*_quantize(table, clock, average, prune * mean, unit)), unit


@jit
def _value(w, drift, at, clock, average):
    return mean_weight(w[at], drift[at], clock) if average else w[at]


@jit
def _sizes(table, clock, average):
    """(largest, mean) size of the weights that are not 0."""
    _, spans, _, w, drift, used = table
    largest, total, count = 0.0, 0.0, 0
    for row in range(used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            size = abs(np.float64(_value(w, drift, at, clock, average)))
            largest = max(largest, size)
            total += size
            count += size > 0.0
    return largest, total / max(count, 1)


@jit
def _quantize(table, clock, average, least, unit):
    # In passes over the table, which is large, rather than with arrays of its size.
    slots, spans, outcomes, w, drift, used = table
    sizes = np.zeros(used[0], np.uint16)
    features, total = 0, 0
    for row in range(used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            value = np.float64(_value(w, drift, at, clock, average))
            if abs(value) > least and np.rint(value / unit) != 0.0:
                sizes[row] += 1
                total += 1
        features += sizes[row] > 0
    keys, counts = np.empty(features, np.uint64), np.empty(features, np.int64)
    named, weights = np.empty(total, np.uint16), np.empty(total, np.int16)
    all_keys = row_keys(slots, used[0])
    feature, to = 0, 0
    for row in range(used[0]):
        if sizes[row] > 0:
            keys[feature], counts[feature] = all_keys[row], sizes[row]
            feature += 1
            for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
                value = np.float64(_value(w, drift, at, clock, average))
                if abs(value) > least and np.rint(value / unit) != 0.0:
                    named[to], weights[to] = outcomes[at], np.int16(np.rint(value / unit))
                    to += 1
    return keys, counts, named, weights


class QuantizedTable(NamedTuple):
    """The lists, ready to be looked up."""

    slots: NDArray  # (capacity,) uint64: 28 bits of a feature's key, 32 of where its list or row starts, 4 of the size
    outcomes: NDArray  # (places,) uint16
    weights: NDArray  # (places,) int16
    rows: NDArray  # (rows, actions, padded) int16


def index_quantized(lists: WeightLists, actions: int) -> QuantizedTable:
    """Make a hash table of these lists, for this many actions."""
    # Made by numpy, which asks for large pages: a probe of a large table then costs no walk through the page table.
    slots = np.zeros(int(capacity_for(len(lists.keys))), np.uint64)
    return _index_quantized(lists, actions, slots)


@jit
def _index_quantized(lists, actions, slots):
    keys, sizes, outcomes, weights = lists
    padded = (actions + _LANES - 1) // _LANES * _LANES
    long = 0
    for i in range(keys.size):
        long += sizes[i] > _LONG
    rows = np.zeros((long, padded), np.int16)
    places, kept = np.empty(weights.size, np.uint16), np.empty(weights.size, np.int16)
    mask = np.uint64(slots.size - 1)
    at, to, row = 0, 0, 0
    for i in range(keys.size):
        size = np.int64(sizes[i])
        if size > _LONG:
            entry = np.uint64(row) << _SIZE_BITS | _ROW
            for j in range(size):
                rows[row, outcomes[at + j]] = weights[at + j]
            row += 1
        else:
            entry = np.uint64(to) << _SIZE_BITS | np.uint64(size)
            for j in range(size):
                places[to + j], kept[to + j] = outcomes[at + j], weights[at + j]
            to += size
        at += size
        slot = keys[i] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = keys[i] >> _KEY_BITS << _KEY_BITS | entry
    return QuantizedTable(slots, places[:to].copy(), kept[:to].copy(), rows)


@jit
def _find(slots, key):
    """The entry of a feature; 0 for none. Of features that are not there, one in 2²⁸ is taken for another."""
    mask = np.uint64(slots.size - 1)
    slot = key & mask
    while slots[slot] != 0:
        if (slots[slot] ^ key) >> _KEY_BITS == 0:
            return slots[slot]
        slot = (slot + np.uint64(1)) & mask
    return np.uint64(0)


@jit
def _add_up(table, keys, count, found, scores):
    """Write the scores of all actions, (padded,) int32: the sum over the keys. `found` is room for where they are."""
    slots, outcomes, weights, rows = table
    mask, width = np.uint64(slots.size - 1), rows.shape[1]
    for i in range(count):
        prefetch(slots, np.intp(keys[i] & mask))
    some, others = 0, found.size  # rows from the front, lists from the end
    for i in range(count):
        entry = _find(slots, keys[i])
        if entry != 0:
            start = entry >> _SIZE_BITS & _START_MASK
            if entry & _ROW == _ROW:
                found[some] = start
                some += 1
                for k in range(0, width, _LINE):
                    prefetch(rows, np.intp(start) * width + k)
            else:
                others -= 1
                found[others] = entry
                prefetch(outcomes, np.intp(start))
                prefetch(weights, np.intp(start))
    for k in range(scores.size):
        scores[k] = 0
    for i in range(0, some - 3, 4):  # four at a time: a score is loaded and stored once for all of them
        a, b, c, d = found[i], found[i + 1], found[i + 2], found[i + 3]
        for k in range(width):
            four = np.int32(rows[a, k]) + np.int32(rows[b, k]) + np.int32(rows[c, k]) + np.int32(rows[d, k])
            scores[k] = np.int32(scores[k] + four)
    for i in range(some - some % 4, some):
        for k in range(width):
            scores[k] = np.int32(scores[k] + np.int32(rows[found[i], k]))
    for i in range(others, found.size):
        start = np.int64(found[i] >> _SIZE_BITS & _START_MASK)
        for at in range(start, start + np.int64(found[i] & _ROW)):
            scores[outcomes[at]] += weights[at]


@generic
def new_scores(weights, rows, actions):
    """(rows, actions) of scores, all 0; there may be more actions, which no weight is for."""
    raise TypeError(f"{type(weights).__name__} holds no weights of features")


@generic
def score_actions(weights, keys, count, found, scores):
    """Write the scores of all actions; `found` keeps where the weights of each key are."""
    raise TypeError(f"{type(weights).__name__} holds no weights of features")


@new_scores.register
def _(weights: WeightTable, rows, actions):
    return np.zeros((rows, actions))


@new_scores.register
def _(weights: QuantizedTable, rows, actions):
    return np.zeros((rows, max(weights.rows.shape[1], actions)), np.int32)


@score_actions.register
def _(weights: WeightTable, keys, count, found, scores):
    scores[:] = 0.0
    for i in range(count):
        request(weights.slots, keys[i])
    for i in range(count):
        found[i] = find_row(weights, keys[i])
        if found[i] >= 0:
            prefetch_row(weights, found[i])
    for i in range(count):
        if found[i] >= 0:
            add_row_scores(weights, found[i], scores)


@score_actions.register
def _(weights: QuantizedTable, keys, count, found, scores):
    _add_up(weights, keys, count, found, scores)
