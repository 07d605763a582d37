"""What a shard's epoch changes in the weights of (feature, tag), and how such changes come into a model: see
`engine.mixing`. Rows are found by the keys of their features, so that a shard needs a copy of those rows only that its
sentences can reach.
"""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.hashtable import ABSENT, find
from rosenblatt.engine.jit import exact, jit
from rosenblatt.structured.features.weight_table import mix_weight


@jit
def take_rows(w, rows, to):
    """Copy these rows into the first rows of other weights."""
    for i in range(rows.size):
        for tag in range(w.shape[1]):
            to[i, tag] = w[rows[i], tag]


@jit
def count_row_changes(w, drift, start, before):
    """How many weights of each row differ from those of the row `before`, or from 0 where there was none, or did so."""
    counts = np.zeros(before.size, np.int64)
    for row in range(before.size):
        origin = before[row]
        for tag in range(w.shape[1]):
            was = start[origin, tag] if origin >= 0 else np.float32(0.0)
            counts[row] += w[row, tag] != was or drift[row, tag] != 0.0
    return counts


@exact
def list_row_changes(keys, w, drift, start, before, rows, total, clock):
    """(keys, tags, growth of w, drift − clock · growth of w) of what differs in these rows, in their order."""
    names, tags, grown, passed = np.empty(total, np.uint64), np.empty(total, np.uint32), np.empty(total), np.empty(total)
    to = 0
    for row in rows:
        origin = before[row]
        for tag in range(w.shape[1]):
            step, drifted = np.float64(w[row, tag]), drift[row, tag]
            if origin >= 0:
                step -= np.float64(start[origin, tag])
            if step != 0.0 or drifted != 0.0:
                names[to], tags[to], grown[to], passed[to] = keys[row], tag, step, drifted - clock * step
                to += 1
    return names, tags, grown, passed


@jit
def number_rows(slots, keys, used):
    """(the row of each key, rows used then): equal keys stand together, and those that are new get the next rows."""
    rows = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        if i > 0 and keys[i] == keys[i - 1]:
            rows[i] = rows[i - 1]
            continue
        found = find(slots, keys[i])
        if found != ABSENT:
            rows[i] = np.int64(found)
        else:
            rows[i] = used
            used += 1
    return rows, used


@exact
def mix_rows(all_keys, w, drift, used, keys, tags, rows, grown, passed, clock):
    """Mix the growth of weights into these rows, of which those from `used` on are new."""
    for i in range(keys.size):
        row = rows[i]
        if row >= used:
            used += 1
            all_keys[row] = keys[i]
            for tag in range(w.shape[1]):
                w[row, tag], drift[row, tag] = 0.0, 0.0
        mix_weight(w, drift, (row, tags[i]), grown[i], passed[i], clock)
