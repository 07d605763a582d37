"""The trainer on a GPU. Between two epochs it is like any other: the weights are in the machine's memory then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.problems import Problem
from rosenblatt.engine.rows import Examples, float_type
from rosenblatt.engine.train import NO_LIMIT, NumericFailure, learn_once, stays_finite
from rosenblatt.engine.visits import OrderAhead, Visits
from rosenblatt.engine.weights import WeightBound, Weights, norm
from rosenblatt.errors import UnsupportedOperation
from rosenblatt.gpu.arrays import OnCard
from rosenblatt.gpu.card import CardRun, CardTask

MANY_ROWS = 100_000  # from which on the next order is drawn ahead; to shuffle fewer takes a millisecond or two


class CardTrainer(NamedTuple):
    """Everything one run of learning on a card works with: see `begin_on_card`."""

    examples: Examples  # whose rows are OnCard
    weights: Weights
    problem: Problem
    rule: Any  # of rosenblatt.rules
    visits: Visits
    bound: WeightBound
    run: CardRun | None  # None where there is one class only, and nothing to decide

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
        known = (self.examples, self.weights, self.problem, self.rule, self.bound)
        return None if stays_finite(*known, len(order)) else self.weights.backup(self.examples.rows)

    def finite(self, order: NDArray) -> bool:
        """Whether everything that the rows of `order` can have changed is a finite number."""
        return self.weights.finite(self.examples.rows, order)

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; return what was done, and whether nothing is left to learn. No card stops at a
        number of updates in the middle of an epoch, so the `budget` must be unlimited."""
        if budget != NO_LIMIT:
            raise ValueError("an epoch on a card has no limit of updates")
        if self.run is None:
            self.weights.clock[0] += len(order)
            return Progress(len(order), 0, 0, -1), True
        done = self.run.epoch(order)
        if done.broken >= 0:
            raise NumericFailure(int(done.broken))
        return done, done.updates == 0 and self._none_violated(self.run)

    def _none_violated(self, run: CardRun) -> bool:
        """Return whether no row calls for a move, after an epoch in which none did. In a random order that epoch may have
        left out rows; then all rows are visited, and what that changes is undone."""
        if self.visits.order in ("cyclic", "shuffle"):
            return True
        restore = self.weights.backup(self.examples.rows)
        updates = run.epoch(self.visits.live).updates
        restore()
        return updates == 0

    def skip_to_failure(self, order: NDArray) -> NDArray:
        """Learn from the rows of `order` up to the batch in which a number overflows; return the rows of that batch, which
        were not learned from, or none. By bisection: a call for each row would take as long as a call for thousands."""
        batch, start = self.visits.batch, 0
        size = batch << max(-(-len(order) // batch) - 1, 0).bit_length()
        while start < len(order):
            part = order[start : start + size]
            restore = self.weights.backup(self.examples.rows)
            try:
                learn_once(self, part)
            except NumericFailure:
                restore()
                if size == batch:
                    return part
                size //= 2
            else:
                start += size
        return order[:0]


def _begin(trainer: CardTrainer) -> CardRun:
    examples, visits, rows = trainer.examples, trainer.visits, trainer.examples.rows
    assert isinstance(rows, OnCard)
    return rows.card.begin(
        CardTask(
            rows.selected(),
            examples.labels,
            examples.weight,
            examples.constant,
            trainer.weights,
            trainer.problem,
            trainer.rule,
            visits.batch,
            visits.mean,
        )
    )


def begin_on_card(
    examples: Examples, weights: Weights, problem: Problem, rule: Any, visits: Visits, bound: WeightBound
) -> CardTrainer:
    """Return a trainer for examples whose rows are on a card."""
    if weights.w.dtype != float_type(examples.rows):
        raise UnsupportedOperation(
            f"a model with weights of {weights.w.dtype} cannot learn from rows of less precision on a GPU",
            hint=f"convert X to {weights.w.dtype}",
        )
    if visits.order != "cyclic" and len(visits.live) >= MANY_ROWS:
        visits = visits._replace(ahead=OrderAhead())
    trainer = CardTrainer(examples, weights, problem, rule, visits, bound, None)
    return trainer if problem.classes < 2 else trainer._replace(run=_begin(trainer))
