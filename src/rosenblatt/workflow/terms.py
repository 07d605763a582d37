"""The terms of a training: what was asked for, how far it is, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Options:
    """How to go about it.

    passes    over the data; by default 10 where they are loaded, 1 where they are streamed
    order     "shuffle" visits loaded rows in a new order each pass, "cyclic" as they stand; a stream comes as it stands
    seed      of the order, and of a learner that takes chances
    stream    read the files anew in each pass instead of loading them; None: if they hold more than `memory` bytes of text,
              or come from a pipe
    memory    see there
    holdout   the share of loaded rows that is not learned from, but judged after each pass
    classes   the labels there are, for a pipe, which cannot be read twice
    on_error  "skip" leaves out rows that cannot be read
    """

    passes: int | None = None
    order: str = "shuffle"
    seed: int = 0
    stream: bool | None = None
    memory: int = 1 << 31
    holdout: float = 0.0
    classes: Sequence[str] | None = None
    on_error: str = "error"

    def __post_init__(self) -> None:
        if self.passes is not None and self.passes < 1:
            raise ValueError(f"passes={self.passes}: there must be at least one")
        if self.order not in ("shuffle", "cyclic"):
            raise ValueError(f"order={self.order!r}: it must be 'shuffle' or 'cyclic'")
        if not 0 <= self.holdout < 1:
            raise ValueError(f"holdout={self.holdout}: it must be a share of the rows, at least 0 and below 1")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed}: it must be a whole number from 0 to {2**32 - 1}")


DEFAULTS = Options()


class Step(NamedTuple):
    """How far training has come, after some rows."""

    number: int  # of the pass, from 1
    passes: int
    rows: int  # visited in this pass
    of: int | None  # how many a pass has, if anybody knows
    seen: int  # rows visited in all passes
    mistakes: int  # of them, wrong when they came
    seconds: float
    ends: bool  # whether the pass ends here
    error: float | None  # on the rows held out, at the end of a pass


Watch = Callable[[Step], Any]


class WrongUse(ValueError):
    """Something that was asked for and cannot be: not for what is in the files, but for how it was asked."""


class UnknownLabel(ValueError):
    """A row with a label that is none of the classes."""
