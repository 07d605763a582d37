"""Turns in this process, as `rosenblatt.cli.timing` takes them, and in a new one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rosenblatt.cli.timing import Turn, alternate, clocked

__all__ = ["Turn", "alternate", "clocked", "in_new_process"]


def in_new_process(question: str, argument: str) -> Callable[[], Turn]:
    """What `python -m bench.fresh question argument` measures, as a turn."""
    command = [sys.executable, "-m", "bench.fresh", question, argument]

    def turn() -> Turn:
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
        return Turn(float(done.stdout))

    return turn
