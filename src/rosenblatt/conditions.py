"""What theorems ask about a run: how it started, by which rule, and in which order the rows came."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray


class RunConditions(NamedTuple):
    """The conditions under which the updates counted by `n_updates_` were made."""

    start: NDArray | None = None  # w before the first of them; None: zero
    rule: Any = None  # of rosenblatt.rules; None before the first
    batch: int = 1  # the most moves that were added up before the weights changed
    in_turn: bool = True  # whether no row came again before all others had
    weighted: bool = False  # whether rows had weights other than 1
    mixed: bool = False  # whether the rule changed on the way, or the weights by other means
    weighted_updates: float | None = None  # Σ μk of a run in shards, each update weighted by its shard's share

    def further(self, rule: Any, batch: int, in_turn: bool, weighted: bool) -> RunConditions:
        """The conditions after a stretch of learning under these."""
        mixed = self.mixed or self.weighted_updates is not None or (self.rule is not None and self.rule != rule)
        return RunConditions(
            self.start, rule, max(self.batch, batch), self.in_turn and in_turn, self.weighted or weighted, mixed
        )
