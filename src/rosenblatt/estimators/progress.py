"""A line on stderr that follows the training; on a terminal it is rewritten in place."""

from __future__ import annotations

import shutil
import sys
from typing import NamedTuple, TextIO

from rosenblatt.engine.train import Epoch


class StatusLine:
    """A line that is written anew for each message, or on a terminal rewritten in place."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream or sys.stderr
        self.rewriting = self.stream.isatty()

    def show(self, line: str) -> None:
        """Show a line instead of the last."""
        width = shutil.get_terminal_size().columns - 1  # a line that wraps would stay
        self._write("\r\x1b[K" + line[:width] if self.rewriting else line + "\n")

    def end(self, message: str = "") -> None:
        """End the line, with a message after it."""
        self._write("\n" * self.rewriting + message)

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


class Units(NamedTuple):
    """What an epoch counts."""

    seen: str = ""  # the examples, such as "sentences"
    mistakes: str = ""  # where a mistake is not an example that was wrong, but a part of one


class Bar(StatusLine):
    """Shows each epoch it is called with; `done` ends the line."""

    def __init__(self, epochs: int, units: Units | None = None, stream: TextIO | None = None):
        super().__init__(stream)
        self.epochs, self.units = epochs, units or Units()

    def __call__(self, epoch: Epoch) -> None:
        """Show one epoch."""
        filled = round(20 * epoch.epoch / self.epochs)
        self.show((f"[{'#' * filled}{'.' * (20 - filled)}] " if self.rewriting else "") + describe(epoch, self.units))

    def done(self, reason: str) -> None:
        """Say why the training stopped."""
        self.end(f"stopped: {reason}\n")


def describe(epoch: Epoch, units: Units) -> str:
    """One epoch as a line."""
    seen = f"{epoch.seen:,} {units.seen}".rstrip()
    mistakes = f"mistakes {epoch.mistakes:,} of {seen} ({epoch.mistakes / max(epoch.seen, 1):.2%})"
    if units.mistakes:  # several in an example, so that they are no share of the examples
        mistakes = f"mistakes {epoch.mistakes:,} {units.mistakes} in {seen}"
    parts = [
        f"epoch {epoch.epoch}",
        mistakes if epoch.loss is None else f"loss {epoch.loss:.4g}",
        f"updates {epoch.updates:,}",
        f"|w| {epoch.norm:.4g}",
    ]
    if epoch.validation_error is not None:
        parts.append(f"validation error {epoch.validation_error:.2%}")
    return "  ".join([*parts, f"{epoch.seconds:.2f} s"])
