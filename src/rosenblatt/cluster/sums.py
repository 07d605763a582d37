"""What shards have learned, added up: one sum for all of them, in an order that depends on their number alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.mixing import ShardReport, tree


class ReadFacts(NamedTuple):
    """What a shard found out about the files while it read them."""

    width: int = 0  # the most columns that a row had
    smallest: int | None = None  # the smallest index in LIBSVM text
    skipped: int = 0  # rows left out for an error

    def plus(self, other: ReadFacts) -> ReadFacts:
        """Return the facts of both."""
        smallest = min((part for part in (self.smallest, other.smallest) if part is not None), default=None)
        return ReadFacts(max(self.width, other.width), smallest, self.skipped + other.skipped)


NO_FACTS = ReadFacts()


class Learned(NamedTuple):
    """What an epoch of a shard came to; it stays with the worker until it is added up."""

    report: ShardReport
    change: Any  # of engine.mixing.Change
    facts: ReadFacts = NO_FACTS
    class_count: NDArray | None = None  # (classes,) int64: the rows of each class that were visited
    new_labels: NDArray | None = None  # all labels of the shard, if one was not expected; then nothing was learned


class Sum(NamedTuple):
    """What some shards came to: their changes, each multiplied by its weight, added up."""

    change: Any  # None where a shard has new labels
    weight: float  # the sum of the weights of the shards
    reports: list[ShardReport]
    facts: ReadFacts
    class_count: NDArray | None
    new_labels: list[NDArray]

    def mixed(self, mixing: str) -> Any:
        """Return the change of the mixture: the shares of all shards add up to one, in all or at each weight."""
        if mixing == "changed":
            return self.change.mean()
        return self.change.scaled(1 / self.weight) if self.weight else self.change


def mixing_weight(mixing: str, report: ShardReport) -> float:
    """Return the weight of a shard in the mixture; its share is this divided by the sum of all weights."""
    return float(report.updates) if mixing == "mistakes" else 1.0


def add_shards(mixing: str, learned: Sequence[Learned]) -> Sum:
    """Return the sum of what shards came to, in this order."""
    weights = [mixing_weight(mixing, one.report) for one in learned]
    new_labels = [one.new_labels for one in learned if one.new_labels is not None]
    change = None
    if not new_labels:
        changes = [one.change.scaled(weight) for one, weight in zip(learned, weights, strict=True)]
        first, *others = [one.counted() for one in changes] if mixing == "changed" else changes
        change = first.plus(others) if others else first
    facts = NO_FACTS
    for one in learned:
        facts = facts.plus(one.facts)
    counts = [one.class_count for one in learned if one.class_count is not None]
    reports = [one.report for one in learned]
    return Sum(change, sum(weights), reports, facts, np.sum(counts, axis=0) if counts else None, new_labels)


def add_sums(sums: Sequence[Sum]) -> Sum:
    """Return the sum of sums, in this order."""
    first, *others = sums
    if not others:
        return first
    new_labels = [labels for one in sums for labels in one.new_labels]
    change = None if new_labels else first.change.plus([one.change for one in others])
    facts = first.facts
    for one in others:
        facts = facts.plus(one.facts)
    counts = [one.class_count for one in sums if one.class_count is not None]
    reports = [report for one in sums for report in one.reports]
    weight = sum(one.weight for one in sums)
    return Sum(change, weight, reports, facts, np.sum(counts, axis=0) if counts else None, new_labels)


class ShardsHere:
    """All shards in this process, one after the other: see `engine.mixing.Shards`."""

    def __init__(self, shards: Sequence[Any], setup: Any, mixing: str = "uniform"):
        self.shards, self.setup, self.mixing = shards, setup, mixing
        self.sum: Sum | None = None

    def learn(self, model: Any, number: int, order: NDArray) -> list[ShardReport]:
        """Have each shard make the epoch with this number from the weights of the model."""
        parts: list[Any] = [shard.learn(self.setup, model, number, i) for i, shard in enumerate(self.shards)]
        levels = tree(len(parts))
        sums = [add_shards(self.mixing, [parts[i] for i in group]) for group in (levels[0] if levels else [range(1)])]
        for level in levels[1:]:
            sums = [add_sums([sums[i] for i in group]) for group in level]
        self.sum = sums[0]
        return self.sum.reports

    def mix(self, shares: Sequence[float]) -> Any:
        """Return the change of the mixture."""
        assert self.sum is not None, "learn comes first"
        return self.sum.mixed(self.mixing)
