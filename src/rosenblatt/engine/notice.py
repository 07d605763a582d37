"""Prints a line to the terminal while kernels are compiled for longer than a second. ROSENBLATT_QUIET=1 silences it."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from contextlib import suppress
from threading import Timer
from time import monotonic
from typing import Any

from numba.core import event, types

from rosenblatt.engine.kernel_cache import find_folder

_WAIT = 1.0  # seconds of compiling for one subject, added up, after which the line is printed
_SUBJECTS = {
    "structured.tags": "the tagger",
    "structured.graph": "the graph parser",
    "structured.transition": "the transition parser",
    "structured": "tagging and parsing",
    "online": "learning one by one",
    "data": "reading files",
    "feasibility": "proofs",
    "estimators.kernel": "kernel learners",
}


def watch_compiling(kind: type) -> None:
    """Print the line whenever kernels of this type are compiled for long."""
    event.register("numba:compile", Notice(kind))


class Notice(event.Listener):
    """Listens to numba's compile events, at the start and the end of each kernel. Loading one from disk is no such event.

    Parameters
    ----------
    kind : type
        The type of the kernels that Python calls. Functions that they call are compiled with them and not mentioned.
    wait : float
        After how many seconds the line is printed.
    """

    def __init__(self, kind: type, wait: float = _WAIT):
        self.kind, self.wait = kind, wait
        self.seconds: dict[str, float] = defaultdict(float)  # of compiling so far, by subject
        self.timer: Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start the timer that prints the line."""
        if not isinstance(event.data["dispatcher"], self.kind) or not _is_wanted():
            return
        what = subject(event.data["dispatcher"].__module__, event.data["args"])
        if self.seconds[what] < self.wait:
            self.began, self.what = monotonic(), what
            self.timer = Timer(self.wait - self.seconds[what], self._say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Stop the timer and add up the time."""
        if self.timer is not None and isinstance(event.data["dispatcher"], self.kind):
            self.timer.cancel()
            self.timer = None
            self.seconds[self.what] += monotonic() - self.began

    def _say(self) -> None:
        often = "in each process, as they cannot be cached" if find_folder().folder is None else "once per machine"
        with suppress(OSError, ValueError):  # stderr may be closed
            sys.stderr.write(f"\r\x1b[Kcompiling kernels for {self.what}, {often}…\n")  # after clearing a progress line
            sys.stderr.flush()


def _is_wanted() -> bool:
    return not os.environ.get("ROSENBLATT_QUIET") and sys.stderr is not None and sys.stderr.isatty()


def subject(module: str, arguments: tuple) -> str:
    """Return what a kernel of a module is for: a part of the library, or a kind of matrix."""
    name = module.removeprefix("rosenblatt.")
    part = next((words for prefix, words in _SUBJECTS.items() if name.startswith(prefix)), None)
    return part or " ".join(_matrix(arguments)) or "linear models"


def _matrix(arguments: tuple) -> list[str]:
    """Return the layout of the rows among the types of arguments, and the type of their values; empty without rows."""
    for kind in arguments:
        name = getattr(getattr(kind, "instance_class", None), "__name__", "")
        if name in ("Dense", "CSR"):
            numbers = (each.dtype for each in kind.types if isinstance(each, types.Array))
            return [name if name == "CSR" else "dense", *(str(each) for each in numbers if isinstance(each, types.Float))][
                :2
            ]
        if found := _matrix(getattr(kind, "types", ())):
            return found
    return []
