"""Measure something in a new process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rosenblatt.cli.workloads import Measurement


def in_new_process(question: str, argument: str) -> Callable[[], Measurement]:
    """Return a function that runs `python -m bench.new_process question argument` and returns the number it prints."""
    command = [sys.executable, "-m", "bench.new_process", question, argument]

    def run() -> Measurement:
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
        return Measurement(float(done.stdout))

    return run
