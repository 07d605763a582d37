"""A ledger as plain lists, for files: what it says, whatever room it takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rosenblatt._jit import jit
from rosenblatt.structured.ledger import Ledger, new_ledger, roomy
from rosenblatt.structured.table import claim


@jit
def listed(ledger):
    """(keys, sizes, outcomes, w, drift), feature after feature in the order of their first update."""
    slots, spans, outcomes, w, drift, used = ledger
    keys, sizes = np.zeros(used[0], np.uint64), np.zeros(used[0], np.int32)
    for at in range(slots.shape[0]):
        if slots[at, 0] != 0:
            keys[np.int64(slots[at, 1])] = slots[at, 0]
    total = 0
    for row in range(used[0]):
        sizes[row] = spans[row, 1]
        total += spans[row, 1]
    named, weights, drifts = np.empty(total, np.uint16), np.empty(total, np.float32), np.empty(total)
    to = 0
    for row in range(used[0]):
        for at in range(spans[row, 0], spans[row, 0] + spans[row, 1]):
            named[to], weights[to], drifts[to] = outcomes[at], w[at], drift[at]
            to += 1
    return keys, sizes, named, weights, drifts


def relisted(keys: NDArray, sizes: NDArray, outcomes: NDArray, w: NDArray, drift: NDArray) -> Ledger:
    """The ledger that was listed."""
    if not len(keys) == len(sizes) or not sizes.sum() == len(outcomes) == len(w) == len(drift) or (sizes < 1).any():
        raise ValueError(f"{len(keys)} lists of weights do not add up to {len(w)} weights")
    if (keys == 0).any() or len(np.unique(keys)) < len(keys):
        raise ValueError("a feature has two lists of weights, or a list has no feature")
    parts = (keys.astype(np.uint64), sizes.astype(np.int64), outcomes.astype(np.uint16))
    return _relisted(new_ledger(), *parts, w.astype(np.float32), drift.astype(np.float64))


@jit
def _relisted(ledger, keys, sizes, outcomes, w, drift):
    ledger = roomy(ledger, max(keys.size, w.size) + 1)
    slots, spans, named, weights, drifts, used = ledger
    at = 0
    for row in range(keys.size):
        slots[claim(slots, keys[row]), 1] = np.uint64(row)
        spans[row, 0], spans[row, 1], spans[row, 2] = at, sizes[row], sizes[row]
        for _ in range(sizes[row]):
            named[at], weights[at], drifts[at] = outcomes[at], w[at], drift[at]
            at += 1
        used[2] = max(used[2], sizes[row])
    used[0], used[1] = keys.size, at
    return ledger
