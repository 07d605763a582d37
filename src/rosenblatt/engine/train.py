"""Passes over examples until there is a reason to stop. Between two epochs Python may judge, log, validate and stop;
inside one there is only the kernel. Nothing here knows a layout or scikit-learn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine import blocks, loop
from rosenblatt.engine.loop import Pace, Progress
from rosenblatt.engine.problems import MOVE, Problem, moves_per_row
from rosenblatt.engine.rows import Examples, ahead
from rosenblatt.engine.weights import Weights, norm

NO_LIMIT = np.iinfo(np.int64).max


class Broken(ArithmeticError):
    """A score came out as no number: the row holds NaN or infinity, or the sums overflowed."""

    def __init__(self, row: int):
        super().__init__(f"the score of row {row} is not a finite number")
        self.row = row


class Visits(NamedTuple):
    """Which rows are visited, in which order, how many before the weights change, and by how many threads."""

    live: NDArray  # (rows that count,) int64
    order: str  # cyclic, shuffle, random, most-violated
    rng: np.random.Generator
    batch: int = 1
    mean: bool = False
    scales: NDArray | None = None  # what most-violated divides margins by
    threads: int = 1

    def epoch(self) -> NDArray:
        """The rows of the next epoch."""
        if self.order == "shuffle":
            return self.rng.permutation(self.live)
        if self.order == "random":
            return self.rng.choice(self.live, len(self.live))
        return self.live


class Limits(NamedTuple):
    """When to stop, apart from convergence."""

    epochs: int
    updates: int = NO_LIMIT
    seconds: float = np.inf
    tol: float | None = None  # an error (or loss) must fall by more than this to count as falling
    patience: int = 5  # epochs without a fall before stopping
    weight_change: float | None = None


class Epoch(NamedTuple):
    """What one epoch did."""

    epoch: int
    mistakes: int
    updates: int
    seen: int
    norm: float
    validation_error: float | None
    seconds: float
    loss: float | None = None  # the mean loss of the rows when they were visited, of learners that have one


class Log:
    """Every move of a run, in order: with its rows, all that a voted or a kernel prediction needs."""

    def __init__(self) -> None:
        self.full: list[NDArray] = []

    def room(self, at_least: int) -> tuple[NDArray, NDArray]:
        """Empty space for moves, and a count of those in it, as the kernels take them."""
        return np.empty(max(at_least, 4096), MOVE), np.zeros(1, np.int64)

    def add(self, space: tuple[NDArray, NDArray]) -> None:
        """Keep what a kernel wrote into a space."""
        moves, used = space
        self.full.append(moves[: used[0]].copy())

    def moves(self) -> NDArray:
        """All moves so far."""
        return np.concatenate([np.empty(0, MOVE), *self.full])


class Pocket:
    """The best weights so far that no later ones have beaten: Gallant's pocket, with the ratchet.

    Weights are judged when their run of right answers ends and was the longest so far; they replace the pocketed ones
    if they make fewer errors on all examples.
    """

    def __init__(self, w: NDArray):
        self.w = w.copy(order="K")
        self.fewest: int | None = None  # errors of the pocketed weights, once counted
        self.run = np.zeros(2, np.int64)  # (current run of right answers, run of the pocketed weights)

    def judge(self, w: NDArray, errors: Callable[[NDArray], int]) -> None:
        """Swap if these weights have earned it; the current run is over."""
        if self.fewest is None:
            self.fewest = errors(self.w)
        if self.run[0] > self.run[1] and (count := errors(w)) < self.fewest:
            self.w, self.fewest, self.run[1] = w.copy(order="K"), count, self.run[0]
        self.run[0] = 0


class Learner(Protocol):
    """What `train` works with: it visits rows, and can tell how far it has come."""

    @property
    def visits(self) -> Visits: ...

    @property
    def seen(self) -> int:
        """Examples visited so far, in all runs."""

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""

    def size(self) -> float:
        """The norm of all weights."""

    def weights_now(self) -> NDArray:
        """The weights, as an array that goes on changing."""

    def finish(self) -> None:
        """Called when the last epoch is over."""


class Trainer(NamedTuple):
    """Everything one run of learning works with."""

    examples: Examples
    weights: Weights
    problem: Problem
    rule: Any  # of rosenblatt.rules
    visits: Visits
    log: Log | None = None
    pocket: Pocket | None = None
    errors: Callable[[NDArray], int] = lambda w: 0  # on all examples; a pocket asks

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return int(self.weights.clock[0])

    def size(self) -> float:
        """The norm of all weights."""
        return norm(self.weights.w)

    def weights_now(self) -> NDArray:
        """The weights, as they are changed in place."""
        return self.weights.w

    def finish(self) -> None:
        """Judge the last weights, where there is a pocket."""
        if self.pocket is not None:
            self.pocket.judge(self.weights.w, self.errors)

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        if self._in_blocks(budget):
            done = blocks.epoch(
                self.examples, self.weights, self.problem, self.rule, self._pace(budget), order, self.visits.threads
            )
            _check(done)
            return done, done.updates == 0
        position, mistakes, updates = 0, 0, 0
        while position < len(order) and updates < budget:
            done = self._stretch(order, position, self._pace(budget - updates))
            _check(done)
            mistakes += done.mistakes
            updates += done.updates
            if done.position < 0:
                return Progress(position, mistakes, updates, -1), True
            position = done.position
            if self.pocket is not None and position < len(order):
                self.pocket.judge(self.weights.w, self.errors)
        return Progress(position, mistakes, updates, -1), updates == 0 and self._none_violated()

    def _stretch(self, order: NDArray, position: int, pace: Pace) -> Progress:
        space = None
        if self.log is not None:
            space = self.log.room(min(self.visits.batch, len(order)) * pace.room)
        known = (self.examples, self.weights, self.problem, self.rule, pace, order, position, space)
        if self.visits.order == "most-violated":
            done = loop.worst_first(*known, self.visits.scales)
        else:
            done = loop.epoch(*known, None if self.pocket is None else self.pocket.run)
        if self.log is not None and space is not None:
            self.log.add(space)
        return done

    def _none_violated(self) -> bool:
        """Whether no row calls for a move; an epoch without one tells, unless it may have missed rows."""
        if self.visits.order in ("cyclic", "shuffle"):
            return True
        known = (self.examples, self.weights, self.problem, self.rule, moves_per_row(self.problem), self.visits.live)
        return loop.most_violated(*known, self.visits.scales)[0] < 0

    def _pace(self, budget: int) -> Pace:
        batch = None if self.visits.batch == 1 else self.visits.batch
        return Pace(batch, self.visits.mean, budget, moves_per_row(self.problem), ahead(self.examples.rows))

    def _in_blocks(self, budget: int) -> bool:
        plain = self.visits.order != "most-violated" and self.visits.batch == 1 and budget == NO_LIMIT
        plain = plain and self.log is None and self.pocket is None
        return plain and blocks.pays(self.examples.rows, self.problem)


def _check(done: Progress) -> None:
    if done.broken >= 0:
        raise Broken(int(done.broken))


def train(
    learner: Learner,
    limits: Limits,
    error: Callable[[], float] | None = None,
    watch: Callable[[Epoch], bool] = lambda epoch: False,
) -> tuple[list[Epoch], str]:
    """Learn epoch by epoch; the record of each, and the word for why it stopped.

    `error` tells the validation error of the weights as they are; `watch` sees each epoch and may ask to stop. The words:
    converged, max_iter, max_updates, max_seconds, training_error, weight_change, validation_error, callback, interrupted.
    """
    history: list[Epoch] = []
    begin, updates = perf_counter(), 0
    best, waited = np.inf, 0
    before = learner.weights_now().copy(order="K") if limits.weight_change is not None else None
    with _interrupts_held() as interrupted:
        for number in range(1, limits.epochs + 1):
            started, seen = perf_counter(), learner.seen
            done, converged = learner.epoch(learner.visits.epoch(), limits.updates - updates)
            if converged or number == limits.epochs:
                learner.finish()
            updates += done.updates
            size = learner.size()
            if not np.isfinite(size):
                raise Broken(int(learner.visits.live[0]))
            seen = learner.seen - seen
            invalid = None if error is None else error()
            seconds = perf_counter() - started
            history.append(Epoch(number, done.mistakes, done.updates, seen, size, invalid, seconds, done.loss))
            asked = watch(history[-1])
            if converged:
                return history, "converged"
            if updates >= limits.updates:
                return history, "max_updates"
            judged = done.mistakes / max(seen, 1) if done.loss is None else done.loss
            judged = judged if invalid is None else invalid
            waited = waited + 1 if limits.tol is not None and judged > best - limits.tol else 0
            best = min(best, judged)
            if waited >= limits.patience:
                return history, "training_error" if invalid is None else "validation_error"
            if before is not None and limits.weight_change is not None:
                if norm(learner.weights_now() - before) <= limits.weight_change:
                    return history, "weight_change"
                before = learner.weights_now().copy(order="K")
            if perf_counter() - begin >= limits.seconds:
                return history, "max_seconds"
            if asked:
                return history, "callback"
            if interrupted:
                return history, "interrupted"
    return history, "max_iter"


@contextmanager
def _interrupts_held() -> Iterator[list]:
    """While this lasts, the first Ctrl-C is noted in the list and a second one interrupts as usual."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # somebody else's handler knows better
        yield noted
        return

    def note(number: int, frame: object) -> None:
        noted.append(number)
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, usual)
