"""A training that was interrupted goes on: the epochs that are done are read from their record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT, Epoch, EpochTrainer
from rosenblatt.engine.visits import Visits


class ResumedTrainer:
    """A trainer whose first epochs are read from a record, and not learned again.

    The loop that trains sees all epochs, so that orders of visit and reasons to stop are those of a training that was never
    interrupted.
    """

    def __init__(self, trainer: EpochTrainer, record: Sequence[Epoch] = (), converged: bool = False):
        self.trainer, self.record = trainer, record
        self.converged = converged  # after the last epoch
        self.epochs = 0  # so far, those of the record included

    @property
    def recorded(self) -> int:
        """The number of epochs that are not learned again."""
        return len(self.record)

    @property
    def visits(self) -> Visits:
        """Which examples are visited, and in which order."""
        return self.trainer.visits

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.trainer.seen - sum(epoch.seen for epoch in self.record[self.epochs :])

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these examples once, or read from the record what came of it."""
        self.epochs += 1
        if self.epochs > self.recorded:
            done, self.converged = self.trainer.epoch(order, budget)
            return done, self.converged
        epoch = self.record[self.epochs - 1]
        return Progress(
            epoch.seen, epoch.mistakes, epoch.updates, -1, epoch.loss
        ), self.converged and self.epochs == self.recorded

    def size(self) -> float:
        """Return the norm of the weights."""
        return self.trainer.size() if self.epochs > self.recorded else self.record[self.epochs - 1].norm

    def validation_error(self, compute: Callable[[], float]) -> float:
        """Return the validation error after the last epoch."""
        known = self.record[self.epochs - 1].validation_error if self.epochs <= self.recorded else None
        return compute() if known is None else known

    def weights_now(self) -> NDArray:
        """Return the weights as they are."""
        return self.trainer.weights_now()
