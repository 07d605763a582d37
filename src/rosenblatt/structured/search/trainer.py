"""Each example is searched with the weights as they are, and the weights move along φ(right) − φ(wrong): one after the
other, or in shards at once.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rosenblatt import rules
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT, Visits
from rosenblatt.errors import NumericOverflow
from rosenblatt.structured.base import Rule, StructuredTrainer, rule_margin
from rosenblatt.structured.search.named_weights import Features, NamedModel, NamedWeights, direction, total
from rosenblatt.structured.search.protocol import Input, Path, Search, find_pair, path_loss

Example = tuple[Input, Path]


class SearchTrainer(StructuredTrainer):
    """What learns one example after the other."""

    model: NamedModel

    def __init__(
        self,
        search: Search,
        rule: Rule,
        margin: float,
        model: NamedModel,
        examples: Sequence[Example] | Mapping[int, Example],
        visits: Visits,
    ):
        super().__init__(model, visits)
        self.search, self.rule, self.margin, self.examples = search, rule, margin, examples

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these examples once; return what was done, and whether nothing is left to learn."""
        position, mistakes, before = 0, 0, self.model.updates
        for i in order.tolist():
            if self.model.updates - before >= budget:
                break
            try:
                mistakes += self._visit(*self.examples[i])
            except Exception as error:
                error.add_note(f"This was in example {i + 1} (counted from 1).")
                raise
            self.model.seen += 1
            position += 1
        updates = self.model.updates - before
        return Progress(position, mistakes, updates, -1), updates == 0

    def _visit(self, x: Input, gold: Path) -> bool:
        """Learn from one example; return whether it was mistaken before."""
        w = self.model.w
        pair = find_pair(self.search, x, gold, w, self.margin)
        if pair is None:
            return False
        right, wrong = pair
        delta = self._direction(x, *pair)
        lead, length = w.score(delta), total([value * value for value in delta.values()])
        if lead != lead or length != length:
            raise NumericOverflow("a feature is not a finite number, or the weights have become too large for one")
        mistake = self._is_mistake(x, gold, right, lead)
        m = lead
        if self.margin != 0:
            m = lead - self.margin * path_loss(self.search, right, wrong) + rule_margin(self.rule)
        tau = float(rules.step(self.rule, m, length, self.model.updates + 1, True)) if delta else 0.0
        if tau > 0.0:
            self.model.push(delta, tau)
        else:
            self.model.refused += 1
        return mistake

    def _direction(self, x: Input, right: Path, wrong: Path) -> Features:
        return direction(self.search.features(x, right), self.search.features(x, wrong))

    def _is_mistake(self, x: Input, gold: Path, right: Path, lead: float) -> bool:
        """Return whether gold is not what is predicted, or by a tie only. With a margin the pair need not tell, since gold
        may be ahead of a costly path and behind a cheap one; then a search without a margin does."""
        w = self.model.w
        if self.margin > 0 and not (lead <= 0.0 and right is gold):
            pair = find_pair(self.search, x, gold, w, 0.0)
            if pair is None:
                return False
            lead = w.score(self._direction(x, *pair))
        return lead <= 0.0 or path_loss(self.search, gold, self.search.decode(x, w)) > 0


class ShardTrainer(StructuredTrainer):
    """What learns in shards: each learns an epoch from the same weights, and the next epoch begins from their mean.

    Mixed after every epoch, the weights come to separate what can be separated (McDonald, Hall and Mann 2010); mixed once,
    after separate runs, they need not.
    """

    def __init__(self, trainer: SearchTrainer, shards: int, processes: int):
        super().__init__(trainer.model, trainer.visits)
        self.trainer, self.shards = trainer, shards
        self.processes = processes  # they change nothing but the time

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these examples once, in shards, and mix; return what was done, and whether nothing is left to learn."""
        shards = [self._shard(part) for part in np.array_split(order, self.shards) if len(part)]
        from joblib import Parallel, delayed

        done = Parallel(n_jobs=self.processes)(delayed(_learn)(shard) for shard in shards)
        self.model.mix([model for model, _ in done])
        mistakes, updates = sum(one.mistakes for _, one in done), sum(one.updates for _, one in done)
        return Progress(len(order), mistakes, updates, -1), updates == 0

    def _shard(self, part: NDArray) -> SearchTrainer:
        """Return what learns these examples, apart from the others."""
        shard = copy.copy(self.trainer)
        shard.model = self.trainer.model.branch()
        shard.examples = {i: self.trainer.examples[i] for i in part.tolist()}
        shard.visits = self.visits._replace(live=part)
        return shard


def _learn(trainer: SearchTrainer) -> tuple[NamedModel, Progress]:
    done, _ = trainer.epoch(trainer.visits.live)
    return trainer.model, done


def decode_all(search: Search, w: NamedWeights, X: Sequence[Input], processes: int) -> list[Path]:
    """Return the path of each input, found by so many processes."""
    chunks = np.array_split(np.arange(len(X)), max(1, min(processes, len(X))))
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=processes)(delayed(_decode)(search, w, [X[i] for i in chunk]) for chunk in chunks)
    return [path for paths in found for path in paths]


def _decode(search: Search, w: NamedWeights, X: Sequence[Input]) -> list[Path]:
    return [search.decode(x, w) for x in X]
