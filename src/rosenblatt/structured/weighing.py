"""A configuration's scores are sums over its features of the weights that each has for the actions."""

from __future__ import annotations

from rosenblatt._jit import generic, jit
from rosenblatt.structured.ledger import Book, Ledger, add_list, add_scores, request_list, request_row, row_of
from rosenblatt.structured.table import ABSENT, find, request


@generic
def weigh(weights, keys, count, found, scores):
    """Write the scores of all actions; `found` keeps where the weights of each key are, −1 for nowhere."""
    raise TypeError(f"{type(weights).__name__} holds no weights of features")


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
def _(weights: Book, keys, count, found, scores):
    scores[:] = 0.0
    for i in range(count):
        request(weights.slots, keys[i])
    live = 0
    for i in range(count):
        payload = find(weights.slots, keys[i])
        if payload != ABSENT:
            request_list(weights, payload)
            found[live] = payload
            live += 1
    for i in range(live):
        add_list(weights, found[i], scores)
