"""Data to measure with, drawn from a fixed seed.

Drawn values are multiples of 1/8. Weights are then multiples of 1/8 too, their products and sums are exact in float32,
and two learners that do the same thing end with the same weights, whatever the order of their sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Data(NamedTuple):
    name: str
    X: Any
    y: NDArray


def on_grid(values: NDArray) -> NDArray:
    return np.round(values * 8).astype(np.float32) / 8


def taught(X: Any, classes: int, rng: np.random.Generator) -> NDArray:
    """Labels of a random linear teacher whose scores are blurred, so that no learner is right on all of them."""
    scores = X @ rng.standard_normal((X.shape[1], 1 if classes == 2 else classes), dtype=np.float32)
    scores += 0.3 * scores.std(axis=0) * rng.standard_normal(scores.shape, dtype=np.float32)
    return (scores[:, 0] > 0).astype(int) if classes == 2 else scores.argmax(axis=1)


def dense(rows: int, features: int) -> Data:
    rng = np.random.default_rng(0)
    X = on_grid(rng.standard_normal((rows, features), dtype=np.float32))
    return Data(f"dense {rows:,} × {features:,}", X, taught(X, 2, rng))


def text(name: str, shape: tuple[int, int], words: int, classes: int) -> Data:
    """Rows of `words` distinct words, drawn by Zipf's law with exponent 1.1, that lie anywhere in the vocabulary."""
    rng = np.random.default_rng(0)
    rows, vocabulary = shape
    # The law's distribution function, inverted. Of three times the words needed, more than half are distinct; the first
    # of these in the order drawn are kept.
    ranks = ((1 - rng.random((rows, 3 * words)) * (1 - vocabulary**-0.1)) ** -10).astype(np.int32) - 1
    turns = np.argsort(ranks, axis=1, kind="stable")
    ranks = np.take_along_axis(ranks, turns, axis=1)
    turns[:, 1:][ranks[:, 1:] == ranks[:, :-1]] = 3 * words
    chosen = np.argpartition(turns, words, axis=1)[:, :words]
    columns = rng.permutation(vocabulary).astype(np.int32)[np.take_along_axis(ranks, chosen, axis=1)]
    columns.sort(axis=1)
    starts = np.arange(0, columns.size + 1, words, dtype=np.int32)
    X = sp.csr_array((on_grid(rng.uniform(1 / 8, 1, columns.size)), columns.ravel(), starts), shape=shape)
    return Data(name, X, taught(X, classes, rng))
