"""Each example is searched with the weights as they are, and the weights move along φ(right) − φ(wrong): one after the
other, or in shards at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rosenblatt import rules
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.mixing import ShardReport
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import NumericOverflow
from rosenblatt.structured.base import Rule, StructuredTrainer, rule_margin
from rosenblatt.structured.search.named_weights import Features, NamedChange, NamedModel, NamedWeights, direction, total
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


def learn_examples(
    search: Search, rule: Rule, margin: float, model: NamedModel, examples: Mapping[int, Example]
) -> tuple[ShardReport, NamedChange]:
    """Learn some examples, by their numbers and in this order, into a branch of a model; return what was done and what has
    changed."""
    started = perf_counter()
    visits = Visits(np.fromiter(examples, np.int64, len(examples)), "cyclic", np.random.default_rng(0))
    trainer = SearchTrainer(search, rule, margin, model.branch(), examples, visits)
    done, converged = trainer.epoch(visits.epoch())
    change = trainer.model.change_since(model)
    seconds = perf_counter() - started
    return ShardReport(len(examples), done.mistakes, done.updates, seconds, change.nbytes, converged), change


def decode_all(search: Search, w: NamedWeights, X: Sequence[Input], processes: int) -> list[Path]:
    """Return the path of each input, found by so many processes."""
    chunks = np.array_split(np.arange(len(X)), max(1, min(processes, len(X))))
    from joblib import Parallel, delayed

    found = Parallel(n_jobs=processes)(delayed(_decode)(search, w, [X[i] for i in chunk]) for chunk in chunks)
    return [path for paths in found for path in paths]


def _decode(search: Search, w: NamedWeights, X: Sequence[Input]) -> list[Path]:
    return [search.decode(x, w) for x in X]
