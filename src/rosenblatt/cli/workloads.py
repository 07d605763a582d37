"""Measure two programs fairly beside each other: the same data, runs in turns, and equal results before times count.

Generated values are multiples of 1/8. Weights are then multiples of 1/8 too, their products and sums are exact in float32,
and two learners that do the same thing end with the same weights, whatever the order of their sums.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import Perceptron as PeerPerceptron

from rosenblatt.estimators.linear import Perceptron

Matrix: TypeAlias = NDArray | sp.csr_array | sp.csr_matrix
MAX_SECONDS = 60.0  # a program that has used these up is not run a third time

# Time


class Measurement(NamedTuple):
    """What a run cost, in seconds unless said otherwise, and its result."""

    cost: float
    result: Any = None


def timed(work: Callable[[], Any]) -> Callable[[], Measurement]:
    """Return a function that runs the work and measures its seconds."""

    def run() -> Measurement:
        start = perf_counter()
        result = work()
        return Measurement(perf_counter() - start, result)

    return run


def measure_in_turns(*programs: Callable[[], Measurement], repeat: int, warm_up: int) -> list[Measurement]:
    """Return the cheapest of `repeat` runs of each program; the first `warm_up` programs run once before that.

    The programs take turns, so that a slow minute of the machine falls on all of them.
    """
    for program in programs[:warm_up]:
        program()
    runs: list[list[Measurement]] = [[] for _ in programs]
    for _ in range(repeat):
        for program, done in zip(programs, runs, strict=True):
            if len(done) < 2 or sum(run.cost for run in done) < MAX_SECONDS:
                done.append(program())
    return [min(done, key=lambda run: run.cost) for done in runs]


# Data


class Dataset(NamedTuple):
    """Rows, their labels, and what to call them."""

    name: str
    X: Matrix
    y: NDArray


def round_to_eighths(values: NDArray) -> NDArray:
    """Round to multiples of 1/8, as float32."""
    return np.round(values * 8).astype(np.float32) / 8


def noisy_linear_labels(X: Matrix, classes: int, rng: np.random.Generator) -> NDArray:
    """Return labels by a random linear function plus noise, so that no linear learner is right on all of them."""
    scores = X @ rng.standard_normal((X.shape[1], 1 if classes == 2 else classes), dtype=np.float32)
    scores += 0.3 * scores.std(axis=0) * rng.standard_normal(scores.shape, dtype=np.float32)
    return (scores[:, 0] > 0).astype(int) if classes == 2 else scores.argmax(axis=1)


def dense_dataset(rows: int, features: int) -> Dataset:
    """Generate dense rows of two classes."""
    rng = np.random.default_rng(0)
    X = round_to_eighths(rng.standard_normal((rows, features), dtype=np.float32))
    return Dataset(f"dense {rows:,} × {features:,}", X, noisy_linear_labels(X, 2, rng))


def text_dataset(name: str, shape: tuple[int, int], words: int, classes: int) -> Dataset:
    """Generate sparse rows like those of texts: `words` distinct columns each, by Zipf's law with exponent 1.1."""
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
    X = sp.csr_array((round_to_eighths(rng.uniform(1 / 8, 1, columns.size)), columns.ravel(), starts), shape=shape)
    return Dataset(name, X, noisy_linear_labels(X, classes, rng))


# Learners, and what must be true of their results before their times mean anything


def our_perceptron(X: Matrix, order: str = "cyclic", keep: str = "last", epochs: int = 5) -> Perceptron:
    """Return our perceptron, with the settings of the peer's."""
    intercept = not sp.issparse(X)
    return Perceptron(max_iter=epochs, tol=None, order=order, keep=keep, multiclass="ovr", fit_intercept=intercept)


def peer_perceptron(X: Matrix, order: str = "cyclic") -> PeerPerceptron:
    """Return scikit-learn's perceptron, without the intercept of sparse data, which it learns a hundred times slower."""
    intercept = not sp.issparse(X)
    return PeerPerceptron(max_iter=5, tol=None, shuffle=order == "shuffle", n_jobs=2, fit_intercept=intercept)


class Comparison(NamedTuple):
    """Whether two results are equal, as far as they should be, and how far they are."""

    equal: bool
    note: str


def with_intercept(coef: NDArray, intercept: NDArray | float) -> NDArray:
    """Return (vectors, features + 1) weights, the intercept last."""
    return np.column_stack([coef, np.broadcast_to(intercept, len(coef))])


def compare_weights(X: Matrix, ours: NDArray, peer: NDArray) -> Comparison:
    """Compare weights (vectors, features + 1): equal up to rounding; or, as a rounded score near zero may fall on either
    side, nearly always the same prediction."""
    gap, scale = np.abs(ours - peer).max(), np.abs(peer).max()
    share = np.mean(_predict(X, ours) == _predict(X, peer))
    note = f"weights differ by at most {gap:.2g} (largest {scale:.3g}), {share:.2%} of answers equal"
    return Comparison(bool(gap <= 1e-5 * scale or share >= 0.999), note)


def compare_accuracy(X: Matrix, y: NDArray, ours: Any, peer: Any) -> Comparison:
    """Compare accuracies on the training rows: two shuffles never give equal weights."""
    mine, theirs = ours.score(X, y), peer.score(X, y)
    return Comparison(bool(mine >= theirs - 0.01), f"other shuffle, training accuracy {mine:.4f}, peer {theirs:.4f}")


def _predict(X: Matrix, weights: NDArray) -> NDArray:
    """The number of the class that weights give each row."""
    scores = X @ weights[:, :-1].T + weights[:, -1]
    return scores[:, 0] >= 0 if len(weights) == 1 else scores.argmax(axis=1)
