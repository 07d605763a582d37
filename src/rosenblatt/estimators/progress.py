"""A line on stderr that follows the training; on a terminal it is rewritten in place."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from rosenblatt.engine.train import Epoch


class Bar:
    """Shows each epoch it is called with; `done` ends the line."""

    def __init__(self, epochs: int, stream: TextIO | None = None):
        self.epochs = epochs
        self.stream = stream or sys.stderr
        self.rewriting = self.stream.isatty()

    def __call__(self, epoch: Epoch) -> None:
        """Show one epoch."""
        line = describe(epoch)
        if self.rewriting:
            filled = round(20 * epoch.epoch / self.epochs)
            whole = f"[{'#' * filled}{'.' * (20 - filled)}] {line}"
            self.stream.write("\r\x1b[K" + whole[: shutil.get_terminal_size().columns - 1])  # one that wraps would stay
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def done(self, reason: str) -> None:
        """Say why the training stopped."""
        self.stream.write(("\n" if self.rewriting else "") + f"stopped: {reason}\n")
        self.stream.flush()


def describe(epoch: Epoch) -> str:
    """One epoch as a line."""
    mistakes = f"mistakes {epoch.mistakes:,} of {epoch.seen:,} ({epoch.mistakes / max(epoch.seen, 1):.2%})"
    parts = [
        f"epoch {epoch.epoch}",
        mistakes if epoch.loss is None else f"loss {epoch.loss:.4g}",
        f"updates {epoch.updates:,}",
        f"|w| {epoch.norm:.4g}",
    ]
    if epoch.validation_error is not None:
        parts.append(f"validation error {epoch.validation_error:.2%}")
    return "  ".join([*parts, f"{epoch.seconds:.2f} s"])
