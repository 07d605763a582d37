"""Weights that predict, as small whole numbers: multiples of a unit, at most 32,767 of it. A feature that speaks for many
actions has a row with a number for each, which is added to the scores in a few instructions; one that speaks for few has
a short list. Sums of whole numbers do not depend on their order, and a file holds what memory holds.

A parser's features speak for 27 actions on average when they are met, though most that there are speak for one or two: so
few rows, 1 % of the features, save most of the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt._jit import jit, prefetch
from rosenblatt.structured import ledger as ledgers
from rosenblatt.structured.table import ABSENT, capacity_for, claim, find, request

_LARGEST = 32767
_LONG = 6  # actions from which on a row is faster than a list
_LANES = 16  # numbers that one instruction adds: rows are padded to a multiple
_SIZE_BITS = np.uint64(17)
_SIZE_MASK = np.uint64(2**17 - 1)
_ROW = _SIZE_MASK  # the size that marks a row


class Lists(NamedTuple):
    """What predicts, list after list, as it is written into a file."""

    keys: NDArray  # (features,) uint64
    sizes: NDArray  # (features,) uint16
    outcomes: NDArray  # (weights,) uint8, or uint16 where there are more than 256
    weights: NDArray  # (weights,) int16, not 0


def written(ledger: ledgers.Ledger, seen: int, average: bool, prune: float) -> tuple[Lists, float]:
    """The lists of a ledger, and their unit. Weights of at most `prune` times the mean size are dropped."""
    keys, sizes, outcomes, weights = ledgers.kept(ledger, seen, average, 0.0)
    size = np.abs(weights)
    unit = float(size.max(initial=0.0)) / _LARGEST or 1.0
    least = prune * float(size.mean(dtype=np.float64)) if len(size) else 0.0
    whole = np.rint(weights / np.float64(unit)).astype(np.int16)
    live = (size > least) & (whole != 0)
    counts = np.bincount(np.repeat(np.arange(len(keys)), sizes)[live], minlength=len(keys))
    some = counts > 0
    return Lists(keys[some], counts[some].astype(np.uint16), narrowed(outcomes[live]), whole[live]), unit


def narrowed(outcomes: NDArray) -> NDArray:
    """Outcomes as bytes, where that is enough."""
    return outcomes.astype(np.uint8 if outcomes.max(initial=0) < 256 else np.uint16)


def checked(lists: Lists, actions: int) -> Lists:
    """The lists, if they are what `written` gives for this many actions; what is in a file may not be."""
    kinds = [part.dtype.kind + str(part.ndim) for part in lists]
    if kinds != ["u1", "u1", "u1", "i1"] or lists.keys.dtype != np.uint64 or lists.weights.dtype != np.int16:
        raise ValueError(f"lists of weights have the types {', '.join(str(part.dtype) for part in lists)}")
    if len(lists.keys) != len(lists.sizes) or not lists.sizes.sum() == len(lists.outcomes) == len(lists.weights):
        raise ValueError(f"{len(lists.keys)} lists of weights do not add up to {len(lists.weights)} weights")
    if lists.outcomes.max(initial=0) >= actions or (lists.keys == 0).any():
        raise ValueError(f"a list of weights names an action that is none of {actions}, or no feature")
    return lists


class Sheet(NamedTuple):
    """The lists, ready to be looked up."""

    slots: NDArray  # a table from a feature's key to start << 17 | size of its list, or row << 17 | 2¹⁷ − 1
    outcomes: NDArray  # (places,) uint16
    weights: NDArray  # (places,) int16
    rows: NDArray  # (rows, actions, padded) int16


def bind(lists: Lists, actions: int) -> Sheet:
    """The sheet of these lists, for this many actions."""
    # Made by numpy, which asks for large pages: a probe of a large table then costs no walk through the page table.
    slots = np.zeros((int(capacity_for(len(lists.keys))), 2), np.uint64)
    return _bind(lists, actions, slots)


@jit
def _bind(lists, actions, slots):
    keys, sizes, outcomes, weights = lists
    padded = (actions + _LANES - 1) // _LANES * _LANES
    long = 0
    for i in range(keys.size):
        long += sizes[i] > _LONG
    rows = np.zeros((long, padded), np.int16)
    places, kept = np.empty(weights.size, np.uint16), np.empty(weights.size, np.int16)
    at, to, row = 0, 0, 0
    for i in range(keys.size):
        size = np.int64(sizes[i])
        slot = claim(slots, keys[i])
        if size > _LONG:
            slots[slot, 1] = np.uint64(row) << _SIZE_BITS | _ROW
            for j in range(size):
                rows[row, outcomes[at + j]] = weights[at + j]
            row += 1
        else:
            slots[slot, 1] = np.uint64(to) << _SIZE_BITS | np.uint64(size)
            for j in range(size):
                places[to + j], kept[to + j] = outcomes[at + j], weights[at + j]
            to += size
        at += size
    return Sheet(slots, places[:to].copy(), kept[:to].copy(), rows)


@jit
def add_up(sheet, keys, count, found, scores):
    """Write the scores of all actions, (padded,) int32: the sum over the keys. `found` is room for where they are."""
    slots, outcomes, weights, rows = sheet
    for i in range(count):
        request(slots, keys[i])
    some = 0
    for i in range(count):
        payload = find(slots, keys[i])
        if payload != ABSENT:
            found[some] = payload
            some += 1
            start = np.intp(payload >> _SIZE_BITS)
            if payload & _SIZE_MASK == _ROW:
                prefetch(rows, start * rows.shape[1])
            else:
                prefetch(outcomes, start)
                prefetch(weights, start)
    scores[:] = 0
    for i in range(some):
        start, size = np.int64(found[i] >> _SIZE_BITS), found[i] & _SIZE_MASK
        if size == _ROW:
            row = rows[start]
            for k in range(row.size):
                scores[k] += row[k]
        else:
            for at in range(start, start + np.int64(size)):
                scores[outcomes[at]] += weights[at]
