"""Iterative parameter mixing: every shard of the data makes one epoch from the common weights, the results are mixed, and
again (McDonald, Hall and Mann 2010).

From w each shard i comes to wᵢ, with kᵢ updates; the next common weights are Σ μᵢ wᵢ with μᵢ ≥ 0 and Σ μᵢ = 1. If a unit
vector separates the rows with margin γ, and none is longer than R, then Σ μᵢ kᵢ over all shards and epochs is at most
R²/γ², for any shards and any mixtures: ⟨w, u⟩ grows by at least γ Σ μᵢ kᵢ in an epoch, and since ‖·‖² is convex, ‖w‖²
grows by at most R² Σ μᵢ kᵢ. Mixed once, after separate runs, the weights need not separate anything.

Shares μ are equal ("uniform") or in proportion to the updates ("mistakes"). Either way a weight that one shard alone has
changed moves by that shard's share of a step, which holds back rare features. "changed" takes for each weight the mean over
the shards that have changed it: closer to one machine where features are rare, but no mixture in the sense of the theorem.
There are separable rows on which it goes round for ever: {(3, 1)} and {(1, 0), (−2, −1)}, signed, in two shards.

The average is the mean of the weights after every visit of every shard, each visit counted once whatever the mixture: with
one shard it is the ordinary average. Shard i has seen cᵢ examples at its end, those before the epoch included; δᵢ is what
it added to w and eᵢ what it added to the drift. The sum of the weights after its nᵢ visits is then nᵢw + cᵢδᵢ − eᵢ, and
with δ = Σ μᵢ δᵢ and c the examples seen by all

    w becomes w + δ    and    drift becomes drift + c·δ + Σ (eᵢ − cᵢδᵢ).

Both are sums over shards, zero where no shard changed a weight. So they travel as what changed, and can be added up by a
tree. The tree depends on the number of shards alone: the same shards give the same bits, wherever they were learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits

FAN_IN = 8  # changes that are added up at once
MIXINGS = ("uniform", "mistakes", "changed")


class Change(Protocol):
    """What an epoch of a shard changed in a model, or the sum of several such changes."""

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes to send it."""

    def scaled(self, share: float) -> Self:
        """Return the change of a shard that has this share in the mixture."""

    def plus(self, others: Sequence[Self]) -> Self:
        """Return the sum of this change and others, added in this order."""

    def counted(self) -> Self:
        """Return the change of a shard, with a count of one at each weight that it has changed."""

    def mean(self) -> Self:
        """Return a sum of counted changes with each weight divided by its count: the mean of the shards that changed it."""


class TableChange(NamedTuple):
    """What changed in a table of weights.

    The weights stand in a fixed order (`keys` is None: from the first one on), or by their keys.
    """

    keys: tuple[NDArray, ...] | None  # arrays of equal length, which together name a weight; ascending, each name once
    w: NDArray  # (n,) float64: δᵢ, or Σ μᵢ δᵢ
    passed: NDArray | None  # (n,) float64: Σ (eᵢ − cᵢδᵢ); None where no average is kept
    shards: NDArray | None = None  # (n,) float64: how many shards have changed each weight, where that is counted


class WeightChange(NamedTuple):
    """What changed in a model whose weights are in tables, and by how much its counts grew."""

    tables: Mapping[str, TableChange]
    counts: NDArray  # int64; examples seen are the first of them

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        arrays = [part for table in self.tables.values() for part in (*(table.keys or ()), *table[1:])]
        return sum(array.nbytes for array in arrays if array is not None) + self.counts.nbytes

    def scaled(self, share: float) -> WeightChange:
        """Return the change of a shard that has this share in the mixture."""
        if share == 1.0:
            return self
        return self._replace(tables={name: table._replace(w=share * table.w) for name, table in self.tables.items()})

    def plus(self, others: Sequence[WeightChange]) -> WeightChange:
        """Return the sum of this change and others, added in this order."""
        changes = (self, *others)
        names = dict.fromkeys(name for change in changes for name in change.tables)
        tables = {name: add_tables([change.tables[name] for change in changes if name in change.tables]) for name in names}
        return WeightChange(tables, np.sum([change.counts for change in changes], axis=0))

    def counted(self) -> WeightChange:
        """Return the change of a shard, with a count of one at each weight that it has changed."""
        return self._replace(
            tables={name: table._replace(shards=(table.w != 0).astype(np.float64)) for name, table in self.tables.items()}
        )

    def mean(self) -> WeightChange:
        """Return a sum of counted changes with each weight divided by its count."""
        return self._replace(
            tables={
                name: table._replace(
                    w=table.w / np.maximum(1.0 if table.shards is None else table.shards, 1.0), shards=None
                )
                for name, table in self.tables.items()
            }
        )


def table_change(w: NDArray, drift: NDArray | None, clock: int) -> TableChange:
    """Return the change by which weights grew by w and their drift by `drift`, after `clock` examples; by keys, which are
    places in these arrays, where that is shorter."""
    passed = None if drift is None else drift - clock * w
    changed = np.flatnonzero(w if passed is None else (w != 0) | (passed != 0))
    numbers = 1 if passed is None else 2
    if (numbers + 1) * len(changed) >= numbers * len(w):
        return TableChange(None, w, passed)
    return TableChange((changed,), w[changed], None if passed is None else passed[changed])


def add_tables(tables: Sequence[TableChange]) -> TableChange:
    """Return the sum of changes of the same table, added in this order."""
    if len(tables) == 1:
        return tables[0]
    if any(table.keys is None for table in tables):
        return _add_in_place(tables)
    keys = [np.concatenate(parts) for parts in zip(*(table.keys or () for table in tables), strict=True)]
    order = np.lexsort(keys[::-1])  # stable: what has the same name stays in the order of the tables
    keys = [part[order] for part in keys]
    first = np.flatnonzero(np.r_[True, np.any([part[1:] != part[:-1] for part in keys], axis=0)]) if len(order) else order

    def sums(parts: Sequence[NDArray]) -> NDArray:
        return np.add.reduceat(np.concatenate(parts)[order], first) if len(order) else np.empty(0)

    passed = [table.passed for table in tables if table.passed is not None]
    shards = [table.shards for table in tables if table.shards is not None]
    return TableChange(
        tuple(part[first] for part in keys), sums([table.w for table in tables]),
        sums(passed) if passed else None, sums(shards) if shards else None,
    )  # fmt: skip


def _add_in_place(tables: Sequence[TableChange]) -> TableChange:
    """The sum of changes of which one at least has all weights; a table may have grown at its end."""
    ends = [len(table.w) if table.keys is None else int(table.keys[0].max(initial=-1)) + 1 for table in tables]
    whole: list[NDArray | None] = []
    for name in ("w", "passed", "shards"):
        parts = [getattr(table, name) for table in tables]
        total = None if parts[0] is None else np.zeros(max(ends))
        whole.append(total)
        for table, part in zip(tables, parts, strict=True):
            if total is not None:
                total[slice(len(part)) if table.keys is None else table.keys[0]] += part
    w, passed, shards = whole
    return TableChange(None, np.zeros(0) if w is None else w, passed, shards)


def tree(changes: int, fan_in: int = FAN_IN) -> list[list[range]]:
    """Return the groups in which so many changes are added up, level by level, until one is left."""
    levels: list[list[range]] = []
    while changes > 1:
        levels.append([range(at, min(at + fan_in, changes)) for at in range(0, changes, fan_in)])
        changes = len(levels[-1])
    return levels


def add_changes(changes: Sequence[Change]) -> Any:
    """Return the sum of changes, added up by the tree."""
    parts: list[Any] = list(changes)
    for level in tree(len(parts)):
        parts = [parts[group[0]].plus([parts[i] for i in group[1:]]) for group in level]
    return parts[0]


class Mixable(Protocol):
    """A model that can be mixed."""

    @property
    def seen(self) -> int:
        """Examples visited."""

    def copy(self) -> Self:
        """Return the same model, sharing nothing that learning changes."""

    def change_since(self, start: Self) -> Any:
        """Return what has changed since the model was a copy of this one."""

    def add_change(self, change: Any) -> None:
        """Go over to the mixture of which this is the change."""

    def norm(self) -> float:
        """Return the norm of all weights."""

    def weights_now(self) -> NDArray:
        """Return the weights as they are."""


class ShardReport(NamedTuple):
    """What one shard did in an epoch.

    Attributes
    ----------
    seen : int
        The number of examples visited.
    mistakes : int
        The number of examples predicted wrong when they were visited.
    updates : int
        The number of changes of weight vectors.
    seconds : float
        The time that it took.
    nbytes : int
        About how many bytes the change of the weights has.
    converged : bool
        Whether nothing is left to learn in this shard.
    """

    seen: int
    mistakes: int
    updates: int
    seconds: float
    nbytes: int
    converged: bool


class MixedEpoch(NamedTuple):
    """What the shards did in an epoch, and how they were mixed.

    Attributes
    ----------
    shares : list of float
        The share μ of each shard in the mixture; their sum is 1.
    shards : list of ShardReport
        What each shard did.
    """

    shares: list[float]
    shards: list[ShardReport]

    @property
    def weighted_updates(self) -> float:
        """Σ μᵢ kᵢ: the updates of the shards, weighted by the mixture, which the theorem bounds."""
        return float(sum(share * shard.updates for share, shard in zip(self.shares, self.shards, strict=True)))


class Shards(Protocol):
    """What learns in shards, wherever they are."""

    def learn(self, model: Any, number: int, order: NDArray) -> list[ShardReport]:
        """Have each shard make the epoch with this number from the weights of the model, and keep what changed. Shards of
        rows that are here visit those of `order`; others have an order of their own."""

    def mix(self, shares: Sequence[float]) -> Any:
        """Return the sum of what changed, each shard's weights multiplied by its share."""


def mixing_shares(mixing: str, reports: Sequence[ShardReport]) -> list[float]:
    """Return the share of each shard: equal ones, or in proportion to the updates; equal too where there are none."""
    updates = [report.updates for report in reports]
    if mixing != "mistakes" or not any(updates):
        return [1 / len(reports)] * len(reports)
    return [count / sum(updates) for count in updates]


class MixingTrainer:
    """A trainer whose epochs are learned in shards and mixed: see `engine.train.EpochTrainer`."""

    def __init__(
        self,
        model: Mixable,
        shards: Shards,
        visits: Visits,
        mixing: str = "uniform",
        epochs_before: Sequence[MixedEpoch] = (),
    ):
        if mixing == "changed" and isinstance(shards, LocalShards):
            raise ValueError("LocalShards are mixed by shares, and mixing='changed' has none")
        self.model, self.shards, self.visits, self.mixing = model, shards, visits, mixing
        self.epochs = list(epochs_before)

    @property
    def seen(self) -> int:
        """Examples visited so far, by all shards."""
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Have every shard make an epoch, and mix; return what was done, and whether nothing is left to learn."""
        reports = self.shards.learn(self.model, len(self.epochs) + 1, order)
        shares = mixing_shares(self.mixing, reports)
        self.model.add_change(self.shards.mix(shares))
        self.epochs.append(MixedEpoch(shares, reports))
        mistakes, updates = sum(report.mistakes for report in reports), sum(report.updates for report in reports)
        visited = sum(report.seen for report in reports)
        return Progress(visited, mistakes, updates, -1), all(report.converged for report in reports)

    def size(self) -> float:
        """Return the norm of all weights."""
        return self.model.norm()

    def weights_now(self) -> NDArray:
        """Return the weights as they are."""
        return self.model.weights_now()


class LocalShards:
    """Shards of rows that are in this process: `learn_part(model, part)` learns a part of the rows from the weights of the
    model, which stays as it is, and returns what was done and what changed. A part is what `take` makes of the numbers of
    its rows; by default these. With more than one process they are learned side by side, and only parts are sent."""

    def __init__(
        self,
        learn_part: Callable[[Any, Any], tuple[ShardReport, Any]],
        shards: int,
        processes: int = 1,
        take: Callable[[NDArray], Any] = lambda rows: rows,
    ):
        self.learn_part, self.count, self.processes, self.take = learn_part, shards, processes, take
        self.changes: list[Any] = []

    def learn(self, model: Any, number: int, order: NDArray) -> list[ShardReport]:
        """Cut the order into as many parts as there are shards, and learn each from the weights of the model."""
        parts = [self.take(part) for part in np.array_split(order, self.count) if len(part)]
        done = list(self._run(model, parts))
        self.changes = [change for _, change in done]
        return [report for report, _ in done]

    def _run(self, model: Any, parts: Sequence) -> Iterator[tuple[ShardReport, Any]]:
        if self.processes == 1:
            return (self.learn_part(model, part) for part in parts)
        from joblib import Parallel, delayed

        return iter(Parallel(n_jobs=self.processes)(delayed(self.learn_part)(model, part) for part in parts))

    def mix(self, shares: Sequence[float]) -> Any:
        """Return the sum of what changed, each shard's weights multiplied by its share."""
        return add_changes([change.scaled(share) for change, share in zip(self.changes, shares, strict=True)])
