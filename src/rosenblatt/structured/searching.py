"""Each example is searched with the weights as they are, and the weights move along φ(right) − φ(wrong): one after the
other, or in shards at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from rosenblatt import rules
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT, Visits
from rosenblatt.structured.base import threshold
from rosenblatt.structured.named import Features, NamedModel, NamedWeights, direction, total
from rosenblatt.structured.search import loss, proposed


class Searching(NamedTuple):
    """What learns one example after the other."""

    search: Any
    rule: Any  # of rosenblatt.rules
    margin: float
    model: NamedModel
    examples: Any  # by number: (x, gold)
    visits: Visits

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.model.seen

    def size(self) -> float:
        """The norm of the weights."""
        return self.model.norm()

    def weights_now(self) -> NDArray:
        """The weights as they are."""
        return np.fromiter(self.model.w.values(), np.float64)

    def finish(self) -> None:
        """Nothing is left to do."""

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these examples once; what was done, and whether nothing is left to learn."""
        position, mistakes, before = 0, 0, self.model.updates
        for i in order.tolist():
            if self.model.updates - before >= budget:
                break
            try:
                mistakes += self._visit(*self.examples[i])
            except Exception as error:
                error.add_note(f"This was in example {i} (counted from 0).")
                raise
            self.model.seen += 1
            position += 1
        updates = self.model.updates - before
        return Progress(position, mistakes, updates, -1), updates == 0

    def _visit(self, x: Any, gold: Any) -> bool:
        """Learn from one example; whether it was mistaken before."""
        w = self.model.w
        pair = proposed(self.search, x, gold, w, self.margin)
        if pair is None:
            return False
        right, wrong = pair
        delta = self._direction(x, *pair)
        lead, length = w.score(delta), total([value * value for value in delta.values()])
        if lead != lead or length != length:
            raise ValueError("a feature is not a finite number, or the weights have become too large for one")
        mistaken = self._mistaken(x, gold, right, lead)
        m = lead if self.margin == 0 else lead - self.margin * loss(self.search, right, wrong) + threshold(self.rule)
        tau = float(rules.step(self.rule, m, length, self.model.updates + 1, True)) if delta else 0.0
        if tau > 0.0:
            self.model.push(delta, tau)
        else:
            self.model.refused += 1
        return mistaken

    def _direction(self, x: Any, right: Any, wrong: Any) -> Features:
        return direction(self.search.features(x, right), self.search.features(x, wrong))

    def _mistaken(self, x: Any, gold: Any, right: Any, lead: float) -> bool:
        """Whether gold is not what is predicted, or by a tie only. With a margin the pair need not tell, since gold may be
        ahead of a costly path and behind a cheap one; then a search without a margin does."""
        w = self.model.w
        if self.margin > 0 and not (lead <= 0.0 and right is gold):
            pair = proposed(self.search, x, gold, w, 0.0)
            if pair is None:
                return False
            lead = w.score(self._direction(x, *pair))
        return lead <= 0.0 or loss(self.search, gold, self.search.decode(x, w)) > 0


class Mixing(NamedTuple):
    """What learns in shards: each learns an epoch from the same weights, and the next epoch begins from their mean.

    Mixed after every epoch, the weights come to separate what can be separated (McDonald, Hall and Mann 2010); mixed once,
    after separate runs, they need not.
    """

    learner: Searching
    shards: int
    processes: int  # they change nothing but the time

    @property
    def visits(self) -> Visits:
        """Which examples are visited, in which order."""
        return self.learner.visits

    @property
    def seen(self) -> int:
        """Examples visited so far, in all shards."""
        return self.learner.seen

    def size(self) -> float:
        """The norm of the mixed weights."""
        return self.learner.size()

    def weights_now(self) -> NDArray:
        """The mixed weights as they are."""
        return self.learner.weights_now()

    def finish(self) -> None:
        """Nothing is left to do."""

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these examples once, in shards, and mix; what was done, and whether nothing is left to learn."""
        parts = [part for part in np.array_split(order, self.shards) if len(part)]
        done = Parallel(n_jobs=self.processes)(delayed(_learned)(self._shard(part), part) for part in parts)
        self.learner.model.mix([model for model, _ in done])
        mistakes, updates = sum(one.mistakes for _, one in done), sum(one.updates for _, one in done)
        return Progress(len(order), mistakes, updates, -1), updates == 0

    def _shard(self, part: NDArray) -> Searching:
        """What learns these examples, apart from the others."""
        examples = {i: self.learner.examples[i] for i in part.tolist()}
        visits = self.visits._replace(live=part)
        return self.learner._replace(model=self.learner.model.branch(), examples=examples, visits=visits)


def _learned(learner: Searching, order: NDArray) -> tuple[NamedModel, Progress]:
    done, _ = learner.epoch(order)
    return learner.model, done


def decoded(search: Any, w: NamedWeights, X: list, processes: int) -> list:
    """The path of each input, found by so many processes."""
    chunks = np.array_split(np.arange(len(X)), max(1, min(processes, len(X))))
    found = Parallel(n_jobs=processes)(delayed(_paths)(search, w, [X[i] for i in chunk]) for chunk in chunks)
    return [path for paths in found for path in paths]


def _paths(search: Any, w: NamedWeights, X: list) -> list:
    return [search.decode(x, w) for x in X]
