"""What shards have learned, added up: one sum for all of them, in an order that depends on their number alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
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


class NewLabels(Exception):
    """Labels that the first rows did not have: training starts again with all of them."""

    def __init__(self, labels: Sequence[NDArray]):
        super().__init__("there are labels that the first rows did not have")
        self.labels = labels


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


def weigh(mixing: str, learned: Learned) -> Sum:
    """Return what one shard came to, with its weight; its share in the mixture is this, divided by the sum of all."""
    report, change, facts, class_count, new_labels = learned
    weight = float(report.updates) if mixing == "mistakes" else 1.0
    if change is not None:
        change = change.counted() if mixing == "changed" else change.scaled(weight)
    return Sum(change, weight, [report], facts, class_count, [] if new_labels is None else [new_labels])


def add_sums(sums: Sequence[Sum]) -> Sum:
    """Return the sum of what some shards came to, in this order."""
    first, *others = sums
    if not others:
        return first
    new_labels = [labels for one in sums for labels in one.new_labels]
    counts = [one.class_count for one in sums if one.class_count is not None]
    return Sum(
        change=None if new_labels else first.change.plus([one.change for one in others]),
        weight=sum(one.weight for one in sums),
        reports=[report for one in sums for report in one.reports],
        facts=reduce(ReadFacts.plus, (one.facts for one in sums)),
        class_count=np.sum(counts, axis=0) if counts else None,
        new_labels=new_labels,
    )


class ShardsHere:
    """All shards in this process, one after the other: see `engine.mixing.Shards`."""

    def __init__(self, shards: Sequence[Any], setup: Any, mixing: str = "uniform"):
        self.shards, self.setup, self.mixing = shards, setup, mixing
        self.sum: Sum | None = None

    def learn(self, model: Any, number: int, order: NDArray) -> list[ShardReport]:
        """Have each shard make the epoch with this number from the weights of the model."""
        sums = [weigh(self.mixing, shard.learn(self.setup, model, number, i)) for i, shard in enumerate(self.shards)]
        for level in tree(len(sums)):
            sums = [add_sums([sums[i] for i in group]) for group in level]
        self.sum = sums[0]
        return self.sum.reports

    def mix(self, shares: Sequence[float]) -> Any:
        """Return the change of the mixture."""
        assert self.sum is not None, "learn comes first"
        return self.sum.mixed(self.mixing)
