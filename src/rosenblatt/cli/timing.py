"""Contenders take turns, so that a slow minute of the machine falls on all of them, and each is judged by its best turn."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

PATIENCE = 60.0  # seconds; a contender that has used them up is excused after its second turn


class Turn(NamedTuple):
    """What it cost, and what came of it."""

    cost: float
    result: Any = None


def clocked(work: Callable[[], Any]) -> Callable[[], Turn]:
    """The work as a turn that takes its time."""

    def turn() -> Turn:
        start = perf_counter()
        result = work()
        return Turn(perf_counter() - start, result)

    return turn


def alternate(*contenders: Callable[[], Turn], repeat: int, warm: int) -> list[Turn]:
    """The best turn of each contender; the first `warm` of them have a turn before that does not count."""
    for contender in contenders[:warm]:
        contender()
    turns: list[list[Turn]] = [[] for _ in contenders]
    for _ in range(repeat):
        for contender, past in zip(contenders, turns, strict=True):
            if len(past) < 2 or sum(turn.cost for turn in past) < PATIENCE:
                past.append(contender())
    return [min(past, key=lambda turn: turn.cost) for past in turns]
