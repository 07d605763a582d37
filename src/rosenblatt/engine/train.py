"""Passes over examples until there is a reason to stop. Between two epochs Python may judge, log, validate and stop;
inside one there is only the kernel. Where nothing is to be done between epochs, one call of a kernel makes several. Nothing
here knows a layout or scikit-learn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine import blocks, loop
from rosenblatt.engine.loop import Pace, Progress, Scratch, scratch_for
from rosenblatt.engine.problems import MOVE, Problem, columns, moves_per_row
from rosenblatt.engine.rows import Examples, Rows, count, largest_value, prefetch_distance
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import HALFWAY, WeightBound, Weights, norm

NO_LIMIT = np.iinfo(np.int64).max
MOST_PENDING = 1 << 23  # numbers, 64 MiB: the largest `pending` with many weight vectors; with one, any size is allowed
MOST_LOGGED = 4096  # moves that a kernel logs before Python takes them over, unless one batch may have more
FEW_VISITS = 200_000  # between two looks at the limits: from a few milliseconds to some ten, as long as rows are
FEW_EPOCHS = 32  # at first; then no more than were made before, for orders are drawn in advance and training may end


class NumericFailure(ArithmeticError):
    """A score or a weight is not a finite number: the data hold NaN or infinity, or the sums overflowed.

    `row` is the row at which it was noticed, None where it is one of several; `epochs` counts those that went well before.
    """

    def __init__(self, row: int | None, epochs: int = 0):
        super().__init__(f"a score or a weight is not a finite number, at row {row}")
        self.row, self.epochs = row, epochs


class Limits(NamedTuple):
    """When to stop, apart from convergence."""

    epochs: int
    updates: int = NO_LIMIT
    seconds: float = np.inf
    tol: float | None = None  # an error (or loss) must fall by more than this to count as falling
    patience: int = 5  # epochs without a fall before stopping
    visits: int = 0  # and examples visited in them, while there are mistakes
    weight_change: float | None = None

    def limits_epochs_only(self) -> bool:
        """Return whether neither updates nor time are limited."""
        return self.updates == NO_LIMIT and self.seconds == np.inf

    def epochs_in_one_call(self, made: int, waited: int, idle: int, rows: int) -> int:
        """Return how many epochs can be made before the limits must be checked again.

        `made` epochs are done, `waited` epochs and `idle` visits have passed since the error fell, and an epoch has `rows`
        visits. As long as there are mistakes, no error that these epochs can have would stop training earlier.
        """
        most = min(self.epochs - made, max(FEW_VISITS // max(rows, 1), 1), max(made, FEW_EPOCHS))
        if self.tol is None:
            return most
        return min(most, max(self.patience - waited, -(-(self.visits - idle) // max(rows, 1)), 1))


class Epoch(NamedTuple):
    """The record of one epoch of training, an entry of `history_`.

    Attributes
    ----------
    epoch : int
        The number of the epoch, from 1.
    mistakes : int
        The number of rows predicted wrong when they were visited.
    updates : int
        The number of changes of weight vectors.
    seen : int
        The number of examples visited in the epoch.
    norm : float
        The norm of all weights at the end of the epoch.
    validation_error : float or None
        The error on the validation rows, where there are any.
    seconds : float or None
        The time that the epoch took; None where the model was loaded from a file, which holds no times.
    loss : float or None
        The mean loss of the rows when they were visited, for learners that have one.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0]], [1, 1, 0])
    >>> for epoch in model.history_:
    ...     print(epoch.epoch, epoch.mistakes, epoch.updates, epoch.seen)
    1 1 1 3
    2 0 0 3
    """

    epoch: int
    mistakes: int
    updates: int
    seen: int
    norm: float
    validation_error: float | None
    seconds: float | None
    loss: float | None = None


class Log:
    """Every move of a run, in order: with its rows, all that a voted or a kernel prediction needs."""

    def __init__(self) -> None:
        self.full: list[NDArray] = []

    def add(self, moves: NDArray) -> None:
        """Keep these moves."""
        self.full.append(moves.copy())

    def take(self) -> NDArray:
        """The moves since the last time that they were taken, which are forgotten here."""
        moves = np.concatenate([np.empty(0, MOVE), *self.full])
        self.full.clear()
        return moves


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


class EpochTrainer(Protocol):
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


class RowTrainer(EpochTrainer, Protocol):
    """A learner of rows that come once: it can tell whether its weights are still finite, and undo what it did."""

    def backup(self, order: NDArray) -> Callable[[], None] | None:
        """Copy what learning from the rows of `order` changes in place; the function that is returned puts it back. None
        where that is not needed, because no number can overflow."""

    def finite(self, order: NDArray) -> bool:
        """Whether everything that the rows of `order` can have changed is a finite number."""


class FinishedEpoch(NamedTuple):
    """What one epoch did, and where it left the weights."""

    done: Progress
    converged: bool
    size: float  # the norm of all weights
    seen: int  # examples visited in it


def pending_for(rows: Rows, weights: Weights, problem: Problem) -> NDArray | None:
    """Return zeros for the sums that are not yet in the drift (`pending`, see `loop`). None where no average is kept, or
    where these would be more than MOST_PENDING numbers: then moves are added to the drift at once."""
    vectors = columns(problem)
    if weights.drift is None or (vectors > 1 and count(rows) * vectors > MOST_PENDING):
        return None
    return np.zeros((count(rows), vectors))


def stays_finite(
    examples: Examples, weights: Weights, problem: Problem, rule: Any, bound: WeightBound, visits: int
) -> bool:
    """Return whether rows, and the longest steps along so many of them, are too small for an overflow; the bound of the
    weights is raised by these steps."""
    largest, weight = max(largest_value(examples.rows), examples.constant), examples.weight
    step = getattr(rule, "largest_step", np.inf) * (1.0 if weight is None else float(weight.prod(axis=1).max()))
    if not largest <= HALFWAY[weights.w.dtype]:
        return False
    return bound.raise_by(weights, int(weights.clock[0]) + visits, largest * step * visits * moves_per_row(problem))


class Trainer(NamedTuple):
    """Everything one run of learning works with. With a `pending`, the drift is incomplete until `add_pending` runs."""

    examples: Examples
    weights: Weights
    problem: Problem
    rule: Any  # of rosenblatt.rules
    visits: Visits
    log: Log | None = None
    pocket: Pocket | None = None
    bound: WeightBound | None = None
    errors: Callable[[NDArray], int] = lambda w: 0  # on all examples; a pocket asks
    pending: NDArray | None = None
    panels: list[blocks.Panel] | None = None  # kept for rows that are visited in the same order again

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

    def backup(self, order: NDArray) -> Callable[[], None] | None:
        """Copy what learning from the rows of `order` changes; None if no number can overflow."""
        return None if self._stays_finite(order) else self.weights.backup(self.examples.rows)

    def _stays_finite(self, order: NDArray) -> bool:
        if self.log is not None or self.bound is None:
            return False
        return stays_finite(self.examples, self.weights, self.problem, self.rule, self.bound, len(order))

    def finite(self, order: NDArray) -> bool:
        """Whether everything that the rows of `order` can have changed is a finite number."""
        self.add_pending()
        return self.weights.finite(self.examples.rows, order)

    def add_pending(self) -> None:
        """Add what is pending to the drift, so that the average is that of the weights after every example seen."""
        if self.pending is not None:
            loop.add_pending(self.examples, self.weights.drift, self.visits.live, self.pending)

    def epochs(self, most: int) -> list[FinishedEpoch]:
        """Learn for up to `most` epochs in one call of a kernel: with few rows, Python takes longer between two epochs than
        an epoch does. It ends early after an epoch without mistakes or updates."""
        rng, shuffled = self.visits.rng, self.visits.order == "shuffle"
        state: Any = rng.bit_generator.state if shuffled else None
        orders = [self.visits.epoch() for _ in range(most if shuffled else 1)]
        squares = np.empty(most)
        counts = self._visit(orders, most, squares)
        if shuffled and len(counts) < most:
            rng.bit_generator.state = state
            for _ in counts:  # as if no more orders had been drawn than were used
                self.visits.epoch()
        rows = len(orders[0])
        return [
            FinishedEpoch(Progress(rows, mistakes, updates, -1), updates == 0, norm(self.weights.w, square), rows)
            for (mistakes, updates), square in zip(counts, squares[: len(counts)].tolist(), strict=True)
        ]

    def _visit(self, orders: list[NDArray], epochs: int, squares: NDArray) -> list[tuple[int, int]]:
        """(mistakes, updates) of up to so many epochs in these orders, in turns; `squares` as the kernel takes them."""
        counts = np.empty((epochs, 2), np.int64)
        table = orders[0][None] if len(orders) == 1 else np.stack(orders)
        scratch = self._scratch(min(self.visits.batch, table.shape[1]) * moves_per_row(self.problem))
        known = (self.examples, self._weights(), self.problem, self.rule, self._pace(NO_LIMIT), table, scratch)
        made, broken = loop.epochs(*known, (counts, squares))
        if broken >= 0:
            raise NumericFailure(int(broken), made - 1)
        return list(map(tuple, counts[:made].tolist()))

    def can_run_epochs(self) -> bool:
        """Return whether `epochs` does the same as repeated calls of `epoch`."""
        return self.visits.order in ("cyclic", "shuffle") and self._is_plain() and not self._in_blocks(NO_LIMIT)

    def _is_plain(self) -> bool:
        """Whether rows are visited in an order, and nothing is kept but the weights."""
        return self.visits.order != "most-violated" and self.log is None and self.pocket is None

    def _weights(self) -> Weights:
        """Return the weights for the kernels: without the drift, where moves are kept in `pending` instead."""
        return self.weights if self.pending is None else self.weights._replace(drift=None)

    def _scratch(self, most_moves: int) -> Scratch:
        return scratch_for(self.weights.w, self.problem, most_moves, self.pending)

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        if self._in_blocks(budget):
            known = (self.examples, self._weights(), self.problem, self.rule, self._pace(budget), order)
            done = blocks.epoch_in_blocks(*known, self.pending, self.visits.threads, self.panels)
            _check(done)
            return done, done.updates == 0
        if budget == NO_LIMIT and self._is_plain():
            [(mistakes, updates)] = self._visit([order], 1, np.empty(0))
            return Progress(len(order), mistakes, updates, -1), updates == 0 and self._none_violated()
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
        most_moves = min(self.visits.batch, len(order)) * pace.room
        used = None if self.log is None else np.zeros(1, np.int64)
        scratch = self._scratch(most_moves if used is None else max(most_moves, MOST_LOGGED))
        known = (self.examples, self._weights(), self.problem, self.rule, pace, order, position, scratch, used)
        if self.visits.order == "most-violated":
            done = loop.worst_first(*known, self.visits.scales)
        else:
            done = loop.epoch(*known, None if self.pocket is None else self.pocket.run)
        if self.log is not None and used is not None:
            self.log.add(scratch.moves[: used[0]])
        return done

    def _none_violated(self) -> bool:
        """Whether no row calls for a move; an epoch without one tells, unless it may have missed rows."""
        if self.visits.order in ("cyclic", "shuffle"):
            return True
        scratch = self._scratch(moves_per_row(self.problem))
        known = (self.examples, self._weights(), self.problem, self.rule, self.visits.live, scratch)
        return loop.most_violated(*known, self.visits.scales)[0] < 0

    def _pace(self, budget: int) -> Pace:
        batch = None if self.visits.batch == 1 else self.visits.batch
        ahead = prefetch_distance(self.examples.rows, self.visits.order == "cyclic")
        return Pace(batch, self.visits.mean, budget, moves_per_row(self.problem), ahead)

    def _in_blocks(self, budget: int) -> bool:
        plain = self._is_plain() and self.visits.batch == 1 and budget == NO_LIMIT
        return plain and blocks.is_faster(self.examples.rows, self.problem)


def _judge_pocket(learner: EpochTrainer) -> None:
    """Judge the last weights, where there is a pocket."""
    if isinstance(learner, Trainer) and learner.pocket is not None:
        learner.pocket.judge(learner.weights.w, learner.errors)


def _check(done: Progress) -> None:
    if done.broken >= 0:
        raise NumericFailure(int(done.broken))


def learn_once(learner: RowTrainer, order: NDArray, check: bool = True) -> Progress:
    """Visit the rows of `order` once; a NumericFailure if a score is not a finite number or, where it is to be checked, a
    weight is none afterwards."""
    done, _ = learner.epoch(order)
    if check and done.updates and not learner.finite(order):
        raise NumericFailure(int(order[0]) if len(order) == 1 else None)
    return done


@runtime_checkable
class SkipsToFailure(Protocol):
    """A trainer for which a call costs more than many rows do, so that it looks for a failing batch by itself."""

    def skip_to_failure(self, order: NDArray) -> NDArray:
        """Learn from the rows of `order` up to the batch that fails; the rows of that batch, not learned from, or none."""


def failing_rows(learner: RowTrainer, epochs: int) -> NDArray:
    """Repeat a run that fails in the epoch after so many; the row at which it does, or the rows of the batch. None of them
    where that cannot be told."""
    for _ in range(epochs):
        learner.epoch(learner.visits.epoch())
    order = learner.visits.epoch()
    return failing_batch(learner, order) if learner.visits.order != "most-violated" else order[:0]


def failing_batch(learner: RowTrainer, order: NDArray) -> NDArray:
    """Visit the rows of `order`, a batch at a time; the row that fails, or the rows of its batch, or none."""
    if isinstance(learner, SkipsToFailure):
        order = learner.skip_to_failure(order)
    for start in range(0, len(order), learner.visits.batch):
        rows = order[start : start + learner.visits.batch]
        try:
            learn_once(learner, rows)
        except NumericFailure as failure:
            return rows if failure.row is None else np.array([failure.row])
    return order[:0]


def train(
    learner: EpochTrainer,
    limits: Limits,
    error: Callable[[], float] | None = None,
    watch: Callable[[Epoch], bool] | None = None,
) -> tuple[list[Epoch], str]:
    """Learn epoch by epoch; the record of each, and the word for why it stopped.

    `error` tells the validation error of the weights as they are; `watch` sees each epoch and may ask to stop. The words:
    converged, max_iter, max_updates, max_seconds, training_error, weight_change, validation_error, callback, interrupted.
    """
    history: list[Epoch] = []
    begin, updates = perf_counter(), 0
    best, waited, idle = np.inf, 0, 0  # the least error, epochs and visits since it fell
    before = learner.weights_now().copy(order="K") if limits.weight_change is not None else None
    unobserved = error is None and watch is None and before is None
    with interrupts_held() as interrupted:
        while True:
            started = perf_counter()
            try:
                if unobserved and isinstance(learner, Trainer) and learner.can_run_epochs() and limits.limits_epochs_only():
                    rows = len(learner.visits.live)
                    finished = learner.epochs(limits.epochs_in_one_call(len(history), waited, idle, rows))
                else:
                    budget = NO_LIMIT if limits.updates == NO_LIMIT else limits.updates - updates
                    finished = [_one_epoch(learner, budget)]
            except NumericFailure as failure:
                failure.epochs += len(history)
                raise
            if last := finished[-1].converged or len(history) + len(finished) >= limits.epochs:
                _judge_pocket(learner)
            if not np.isfinite(finished[-1].size):
                raise NumericFailure(None, len(history) + len(finished) - 1)
            invalid = None if error is None else error()
            seconds = (perf_counter() - started) / len(finished)
            for done, _, size, seen in finished:  # only after the last of them can there be a reason to stop
                updates += done.updates
                history.append(
                    Epoch(len(history) + 1, done.mistakes, done.updates, seen, size, invalid, seconds, done.loss)
                )
                value = done.mistakes / max(seen, 1) if done.loss is None else done.loss
                value = value if invalid is None else invalid
                falling = limits.tol is None or value < best - limits.tol
                waited, idle = (0, 0) if falling else (waited + 1, idle + seen)
                enough = limits.visits if invalid is None and done.loss is None and done.mistakes else 0
                best = min(best, value)
            stop = watch is not None and watch(history[-1])
            moved = np.inf
            if before is not None:
                moved, before = norm(learner.weights_now() - before), learner.weights_now().copy(order="K")
            reasons = {
                "interrupted": bool(interrupted),  # first, for whoever pressed Ctrl-C must hear of it
                "converged": finished[-1].converged,
                "max_updates": updates >= limits.updates,
                "training_error" if invalid is None else "validation_error": waited >= limits.patience and idle >= enough,
                "weight_change": limits.weight_change is not None and moved <= limits.weight_change,
                "max_seconds": perf_counter() - begin >= limits.seconds,
                "callback": stop,
                "max_iter": len(history) >= limits.epochs,
            }
            reason = next((word for word, holds in reasons.items() if holds), None)
            if reason is not None:
                if not last:
                    _judge_pocket(learner)
                return history, reason


def _one_epoch(learner: EpochTrainer, budget: int) -> FinishedEpoch:
    seen = learner.seen
    done, converged = learner.epoch(learner.visits.epoch(), budget)
    return FinishedEpoch(done, converged, learner.size(), learner.seen - seen)


@contextmanager
def interrupts_held() -> Iterator[list]:
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
