"""A configuration's scores are sums over its features of the weights that each has for the actions: those of a ledger while
it is learned, those of a sheet when it predicts."""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.hashtable import request
from rosenblatt.engine.jit import generic
from rosenblatt.structured.features.ledger import Ledger, add_scores, request_row, row_of
from rosenblatt.structured.transition.sheet import Sheet, add_up


@generic
def room(weights, rows, actions):
    """(rows, actions) of scores, all 0; there may be more actions, which no weight is for."""
    raise TypeError(f"{type(weights).__name__} holds no weights of features")


@generic
def weigh(weights, keys, count, found, scores):
    """Write the scores of all actions; `found` keeps where the weights of each key are."""
    raise TypeError(f"{type(weights).__name__} holds no weights of features")


@room.register
def _(weights: Ledger, rows, actions):
    return np.zeros((rows, actions))


@room.register
def _(weights: Sheet, rows, actions):
    return np.zeros((rows, max(weights.rows.shape[1], actions)), np.int32)


@weigh.register
def _(weights: Ledger, keys, count, found, scores):
    scores[:] = 0.0
    for i in range(count):
        request(weights.slots, keys[i])
    for i in range(count):
        found[i] = row_of(weights, keys[i])
        if found[i] >= 0:
            request_row(weights, found[i])
    for i in range(count):
        if found[i] >= 0:
            add_scores(weights, found[i], scores)


@weigh.register
def _(weights: Sheet, keys, count, found, scores):
    add_up(weights, keys, count, found, scores)
