"""One training in shards: shards are loaded, agree on what they must have in common, and make epochs until there is a
reason to stop. The loop is the ordinary one (`engine.train.train`); only its epochs are learned elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.cluster.checkpoint import MixingCheckpoint, check_data, load_checkpoint
from rosenblatt.cluster.report import MixingReport
from rosenblatt.cluster.sums import Sum
from rosenblatt.engine.mixing import MIXINGS, Mixable, MixingTrainer, Shards
from rosenblatt.engine.resuming import ResumedTrainer
from rosenblatt.engine.train import Epoch, Limits, NumericFailure, train
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import (
    ClusterUnavailable,
    IncompatibleParameters,
    InvalidParameter,
    NumericOverflow,
)
from rosenblatt.estimators.base import Estimator

_UNUSED = Visits(np.empty(0, np.int64), "cyclic", np.random.default_rng(0))  # shards have orders of their own


class RunOptions(NamedTuple):
    """How shards are mixed, and where the training is kept while it goes on."""

    mixing: str = "uniform"
    checkpoint: str | PathLike | None = None
    resume: bool = False

    def check(self) -> None:
        """Raise an error if the options do not suit each other."""
        if self.mixing not in MIXINGS:
            raise InvalidParameter("mixing", self.mixing, f"one of {', '.join(map(repr, MIXINGS))}")
        if self.resume and self.checkpoint is None:
            raise IncompatibleParameters(
                ("resume", True), ("checkpoint", None), "training resumes from the file that checkpoint names"
            )


class RunShards(Shards, Protocol):
    """What a run asks of its shards, beyond learning and mixing."""

    @property
    def sum(self) -> Sum | None:
        """What all shards came to in the last epoch."""

    def __len__(self) -> int: ...

    def summaries(self) -> list[Any]:
        """Return what each shard says of its examples."""

    def begin(self, setup: Any, mixing: str, seen: int = 0, mistakes: int = 0) -> None:
        """Begin a run with this setup, in which so many examples have been seen before."""

    def count_errors(self, w: NDArray) -> int:
        """Return how many rows of all shards the weights w do not predict."""


class Finished(NamedTuple):
    """How a training ended."""

    history: list[Epoch]
    reason: str
    report: MixingReport


def seed_of(learner: Estimator) -> int:
    """Return the random seed of the orders: `random_state` if it is a number, else one that is drawn now."""
    state = learner.random_state
    if isinstance(state, int | np.integer) and state >= 0:
        return int(state)
    return int(learner._plan().rng().integers(2**31))


class Run:
    """A training of one learner in shards, wherever they are."""

    def __init__(self, learner: Any, shards: RunShards, options: RunOptions, seed: int):
        options.check()
        self.learner, self.shards, self.options, self.seed = learner, shards, options, seed
        self.found: MixingCheckpoint | None = None
        if options.resume and options.checkpoint is not None:
            self.found = load_checkpoint(options.checkpoint, learner, len(shards), options.mixing, seed)
            self.learner = self.found.learner
        self.fingerprint = ""

    def agree(self) -> list[Any]:
        """Return what the shards say of their examples, after a check that they are those of the checkpoint."""
        summaries = self.shards.summaries()
        digest = xxh64()
        for summary in summaries:
            digest.update(f"{summary.rows} {summary.digest}\n".encode())
        self.fingerprint = digest.hexdigest()
        if self.found is not None and self.options.checkpoint is not None:
            check_data(self.found, self.fingerprint, self.options.checkpoint)
        return summaries

    def train(
        self,
        model: Mixable,
        setup: Any,
        limits: Limits,
        labels: NDArray | None = None,
        after: Callable[[MixingTrainer], None] = lambda trainer: None,
    ) -> Finished:
        """Make epochs until there is a reason to stop; `after` is called at the end of each."""
        record: Sequence[Epoch] = () if self.found is None else tuple(self.learner.history_)
        before = [] if self.found is None else self.found.report.epochs
        self.shards.begin(
            setup, self.options.mixing, sum(epoch.seen for epoch in record), sum(epoch.mistakes for epoch in record)
        )
        mixing = MixingTrainer(model, self.shards, _UNUSED, self.options.mixing, before)
        converged = bool(before) and all(shard.converged for shard in before[-1].shards)
        trainer = ResumedTrainer(mixing, record, converged)
        history: list[Epoch] = []

        def watch(epoch: Epoch) -> bool:
            history.append(epoch)
            if epoch.epoch > len(record):
                after(mixing)
                self._save(history, mixing, labels)
            return False

        try:
            done, reason = train(trainer, limits, None, watch)
        except NumericFailure:
            raise NumericOverflow("the weights are no longer finite numbers", hint="scale the rows down") from None
        except ClusterUnavailable as error:
            if self.options.checkpoint is not None and (history or record):
                epochs = max(len(history), len(record))
                hint = f"{self.options.checkpoint} has what was learned in {epochs} epochs; resume from it"
                raise ClusterUnavailable(error.problem, error.address, hint) from error
            raise
        done[: len(record)] = record
        return Finished(done, reason, MixingReport(len(self.shards), self.options.mixing, mixing.epochs))

    def _save(self, history: Sequence[Epoch], mixing: MixingTrainer, labels: NDArray | None) -> None:
        if self.options.checkpoint is None:
            return
        set_history(self.learner, list(history), "interrupted")
        report = MixingReport(len(self.shards), self.options.mixing, mixing.epochs)
        MixingCheckpoint(self.learner, report, self.seed, self.fingerprint, labels).save(self.options.checkpoint)


def set_history(learner: Any, history: list[Epoch], reason: str) -> None:
    """Set what was counted in the epochs, and why they ended."""
    learner.history_, learner.stop_reason_, learner.n_iter_ = history, reason, len(history)
    learner.n_mistakes_ = sum(epoch.mistakes for epoch in history)
    learner.n_updates_ = sum(epoch.updates for epoch in history)
    learner.n_seen_ = sum(epoch.seen for epoch in history)
