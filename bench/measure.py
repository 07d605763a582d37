"""Contenders take turns, so that a slow minute of the machine falls on all of them, and each is judged by its best turn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

PATIENCE = 60.0  # seconds; a contender that has used them up is excused after its second turn


class Turn(NamedTuple):
    cost: float
    result: Any = None


def clocked(work: Callable[[], Any]) -> Callable[[], Turn]:
    def turn() -> Turn:
        start = perf_counter()
        result = work()
        return Turn(perf_counter() - start, result)

    return turn


def in_new_process(question: str, argument: str) -> Callable[[], Turn]:
    """What `python -m bench.fresh question argument` measures, as a turn."""
    command = [sys.executable, "-m", "bench.fresh", question, argument]

    def turn() -> Turn:
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
        return Turn(float(done.stdout))

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
