"""The same epoch by blocks, for dense rows and many weight vectors.

Weights change only on mistakes. So the scores of a whole block of rows are one matrix product, as long as what a mistake
inside the block changes is put right for the rows after it: a move τ at row i adds τ⟨x_i, x_j⟩ to the score of each later
row j, and these products are the block's Gram matrix. In exact arithmetic this is the sequential algorithm, whatever the
size of the blocks. The weights themselves are moved by the sequential code, in the sequential order: as long as rounding
in a score flips no decision, even their last bits are those of the row-at-a-time run.

Gram matrices do not depend on weights, so other threads prepare the blocks to come, and rows that are visited in the same
order again keep theirs. The scores of a block are computed in two halves, the second by another thread if one is free. Each
product is computed by one thread on arrays of the same shapes, so results are the same, bit for bit, whatever the number of
threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rosenblatt.engine.jit import flat_slice, is_number, jit
from rosenblatt.engine.loop import Pace, Progress, apply_moves, length_of, scratch_for, weight_of
from rosenblatt.engine.problems import JOINT, OneVsRest, Problem, confront
from rosenblatt.engine.rows import Dense, Examples, Rows
from rosenblatt.errors import InvalidParameter

BLOCK = 128  # rows: the Gram product costs BLOCK/2 multiplications a row and feature, the scores one a weight vector
PANEL = 8  # blocks, which one thread prepares at a time
FEWEST_COLUMNS = 24  # weight vectors; with fewer, row by row is as fast, and needs no second copy of the rows
FEWEST_FEATURES = 32


class Panel(NamedTuple):
    """Some blocks of rows, copied together in the order of their visit, and the Gram matrix of each."""

    examples: Examples
    grams: NDArray  # (blocks, BLOCK, BLOCK), the upper triangles used


def is_faster(rows: Rows, problem: Problem) -> bool:
    """Return whether blocks are the faster way to the same result."""
    return (
        isinstance(rows, Dense)
        and isinstance(problem, (*JOINT, OneVsRest))
        and problem.classes >= FEWEST_COLUMNS
        and rows.values.shape[1] >= FEWEST_FEATURES
    )


def epoch_in_blocks(
    examples: Examples,
    weights: Any,
    problem: Problem,
    rule: Any,
    pace: Pace,
    order: NDArray,
    pending: NDArray | None,
    threads: int,
    kept: list[Panel] | None = None,
) -> Progress:
    """Visit the rows that `order` lists and learn from each; what `loop.epoch` does with a batch of one.

    `kept` is a list that keeps the panels from one epoch to the next, for an order that does not change: the first epoch
    fills it. None where the order changes.
    """
    mistakes, updates, position = 0, 0, 0
    made: list[Panel] = []
    scores = np.empty((BLOCK, problem.classes), examples.rows.values.dtype)
    panel_pending = None if pending is None else np.zeros((min(len(order), PANEL * BLOCK), pending.shape[1]))
    scratch = scratch_for(weights.w, problem, pace.room, panel_pending)
    w = weights.w[:-1]
    # NaN and infinity are noticed by the scan, which names the row; numpy need not warn of them.
    with one_blas_thread, np.errstate(invalid="ignore", over="ignore"), ThreadPoolExecutor(max(threads - 1, 1)) as others:
        pool = others if threads > 1 else None
        for panel in kept or _panels(examples, order, pool, threads):
            if kept is not None:
                made.append(panel)
            for block, gram in enumerate(panel.grams):
                first = block * BLOCK
                x = panel.examples.rows.values[first : first + BLOCK]
                _multiply(x, w, scores, pool)
                done = scan(panel.examples, weights, problem, rule, scratch, first, scores[: len(x)], gram)
                mistakes += done.mistakes
                updates += done.updates
                if done.broken >= 0:
                    return Progress(position, mistakes, updates, order[position + done.broken])
            rows = order[position : position + len(panel.examples.labels)]
            if pending is not None and panel_pending is not None:
                if len(np.unique(rows)) == len(rows):
                    pending[rows] += panel_pending[: len(rows)]
                else:  # an order drawn at random has rows twice
                    np.add.at(pending, rows, panel_pending[: len(rows)])
                panel_pending[: len(rows)] = 0
            position += len(rows)
    if kept is not None:
        kept[:] = made
    return Progress(position, mistakes, updates, -1)


@jit
def scan(examples, weights, problem, rule, scratch, first, scores, gram):
    """Learn from the block of rows that starts at `first`. `scores` (rows, classes) lack the constant feature, which is
    added here."""
    moves = scratch.moves
    constant = scores.dtype.type(examples.constant)
    mistakes, updates = 0, 0
    for i in range(len(scores)):
        for k in range(scores.shape[1]):
            scores[i, k] += constant * weights.w[-1, k]
    for i in range(len(scores)):
        if not is_number(scores[i, 0]):
            return Progress(i, mistakes, updates, first + i)
        label = examples.labels[first + i]
        weight = weight_of(examples.weight, first + i)
        length = length_of(examples.lengths, first + i)
        _, right, found = confront(problem, rule, scores[i], label, length, weight, weights.tally, moves, 0)
        mistakes += not right
        if found > 0:
            for q in range(found):
                moves[q]["row"] = first + i
                moves[q]["clock"] = weights.clock[0]
            updates += apply_moves(examples, weights, flat_slice(moves, 0, found), scratch, False)
            for q in range(found):
                tau = scores.dtype.type(moves[q]["tau"])
                spread(scores, gram, i, moves[q]["gains"], tau, constant)
                if moves[q]["loses"] >= 0:
                    spread(scores, gram, i, moves[q]["loses"], -tau, constant)
        weights.clock[0] += 1
    return Progress(len(scores), mistakes, updates, -1)


@jit
def spread(scores, gram, i, column, tau, constant):
    """Give the rows after i the scores they have once τ times row i is in the column's weights."""
    for j in range(i + 1, len(scores)):
        scores[j, column] += tau * (gram[i, j] + constant * constant)


def _multiply(x: NDArray, w: NDArray, scores: NDArray, pool: ThreadPoolExecutor | None) -> None:
    """scores = x @ w, in two halves; a thread of `pool` computes the second, if one is free."""
    half = BLOCK // 2
    rest = partial(np.matmul, x[half:], w, out=scores[half : len(x)])
    second = pool.submit(rest) if pool is not None and len(x) > half else None
    np.matmul(x[:half], w, out=scores[: min(half, len(x))])
    if second is None or second.cancel():
        rest()
    else:
        second.result()


def _panels(examples: Examples, order: NDArray, pool: ThreadPoolExecutor | None, threads: int) -> Iterator[Panel]:
    """Yield the rows in the order of their visit, panel by panel, prepared up to 2·(threads − 1) panels ahead."""
    starts = range(0, len(order), PANEL * BLOCK)
    pieces = (order[start : start + PANEL * BLOCK] for start in starts)
    if pool is None:
        for piece in pieces:
            yield _panel(examples, piece)
        return
    coming: deque = deque()
    for piece in pieces:
        coming.append(pool.submit(_panel, examples, piece))
        if len(coming) > 2 * (threads - 1):
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()


def panels_to_keep(rows: Rows, order: NDArray) -> list[Panel] | None:
    """Return an empty list in which to keep the panels of rows that every epoch visits in this order; None where the Gram
    matrices would take more than a quarter of the memory of the rows, or the order would need a copy of them."""
    in_order = len(order) > 0 and bool(np.array_equal(order, np.arange(order[0], order[0] + len(order))))
    return [] if isinstance(rows, Dense) and in_order and rows.values.shape[1] >= 4 * BLOCK else None


def _panel(examples: Examples, piece: NDArray) -> Panel:
    consecutive = piece[-1] - piece[0] == len(piece) - 1 and bool((np.diff(piece) == 1).all())
    chosen = slice(piece[0], piece[-1] + 1) if consecutive else piece
    x = examples.rows.values[chosen]
    x.flags.writeable = False
    grams = np.empty((-(-len(x) // BLOCK), BLOCK, BLOCK), x.dtype)
    for block, gram in enumerate(grams):
        part = x[block * BLOCK : (block + 1) * BLOCK]
        np.matmul(part, part.T, out=gram[: len(part), : len(part)])
    weight, lengths = (None if part is None else part[chosen] for part in (examples.weight, examples.lengths))
    return Panel(Examples(Dense(x), examples.labels[chosen], weight, examples.constant, lengths), grams)


def available_threads(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` asks for; None is every core this process may use, as −1 is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise InvalidParameter("n_jobs", n_jobs, "a number of threads, −1 or None for every core, and not 0")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


class BlasLimit:
    """As long as anybody is in its context, each matrix product is done by the thread that asks for it, on its own.

    Whoever comes first sets the limit, and whoever leaves last restores what the first found: if each restored what it had
    found itself, threads that overlap would leave the limit behind.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                with _in_control():
                    self._limit = _controller().limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                with _in_control():
                    self._limit.restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread set limits of OpenBLAS, and then any other: threadpoolctl 3.8 ignores, without a word, all threads
    but the first that ever set one and still lives."""
    for clear in _clear_control():
        clear(force=True)
    yield
    for clear in _clear_control():
        clear(force=True)


@cache
def _clear_control() -> set[Any]:
    libraries = _controller().lib_controllers
    return {library.clear_controlling_thread for library in libraries if hasattr(library, "clear_controlling_thread")}


one_blas_thread = BlasLimit()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
