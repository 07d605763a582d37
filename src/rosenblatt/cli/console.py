"""Results go to stdout, as text or as one JSON object; progress and notes go to stderr, unless --quiet is given.

On a terminal, headings are bold and progress is one line that is rewritten in place. Elsewhere all is plain text.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from numbers import Integral, Real
from typing import Any, TextIO

from rosenblatt.errors import UnscaledColumns

NUMBER = re.compile(r"([-−+]?[\d,]*\.?\d+(e[-+]?\d+)?( ?(%|×|s|ms|µs|MB|MB/s|/s))?)?")  # an empty cell hinders no column
_LIVE_INTERVAL = 0.1  # seconds between two updates of a line on a terminal
_LOG_INTERVAL = 30.0  # and between two lines elsewhere
_WIDTH = 100  # characters in a line where there is no terminal


class Console:
    """The output of a command."""

    def __init__(self, json: bool = False, quiet: bool = False):
        self.json, self.quiet = json, quiet
        if quiet:
            os.environ["ROSENBLATT_QUIET"] = "1"  # silences the notice about compiling, here and in child processes

    def result(self, facts: Mapping[str, object], text: str) -> None:
        """Print the result: the text, or the facts with --json."""
        print(as_json(facts, sys.stdout) if self.json else text)

    def note(self, text: str) -> None:
        """Print a note to stderr."""
        if not self.quiet:
            print(text, file=sys.stderr)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print the warnings of the library as notes while a block runs, each once."""
        shown = set()

        def show(message: Warning | str, *place: object, **more: object) -> None:
            text = str(message)
            if isinstance(message, UnscaledColumns):
                text = f"{message.problem}; try --learner AROW, which needs no scaling"
            if text not in shown:
                shown.add(text)
                self.note(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always", UnscaledColumns)
            warnings.showwarning = show
            yield

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
        """Return rows as aligned text for a result; columns of numbers are aligned right."""
        return table(headings, rows, has_style(sys.stdout))

    def progress(self, total: int | None = None, unit: str = "") -> closing[Progress]:
        """Show a progress line on stderr while a block runs."""
        return closing(Progress(None if self.quiet else sys.stderr, total, unit))

    def progressive(self) -> closing[Progressive]:
        """Show the table of progressive error on stderr: each row is for twice as many examples as the one before."""
        return closing(Progressive(None if self.quiet else sys.stderr))


def rows_left_out(count: int) -> str:
    """Return how many rows of the files were not used."""
    if count == 1:
        return "1 row that could not be read was left out"
    return f"{count:,} rows that could not be read were left out"


def as_json(facts: Mapping[str, object], stream: TextIO) -> str:
    """Return the facts as JSON in characters that the stream can encode."""
    return json.dumps(_plain(facts), ensure_ascii=not is_utf8(stream))


def is_utf8(stream: TextIO) -> bool:
    """Return whether a stream of text can encode every character."""
    return (getattr(stream, "encoding", None) or "utf-8").lower() in ("utf-8", "utf8")


class Progress:
    """A progress line."""

    def __init__(self, stream: TextIO | None, total: int | None, unit: str, clock: Callable[[], float] = time.monotonic):
        self.stream, self.total, self.unit, self.clock = stream, total, unit, clock
        self.live = stream is not None and stream.isatty()
        self.began = clock()
        self.shown = -math.inf if self.live else self.began

    def update(self, done: int, **fields: object) -> None:
        """Show how much is done in all, and the fields behind it, floats as percentages."""
        now = self.clock()
        if self.stream is None or now - self.shown < (_LIVE_INTERVAL if self.live else _LOG_INTERVAL):
            return
        self.shown = now
        line = self._line(done, now - self.began, fields)
        self.stream.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}" if self.live else line + "\n")
        self.stream.flush()

    def close(self) -> None:
        """Erase the line."""
        if self.stream is not None and self.live and self.shown > -math.inf:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _line(self, done: int, seconds: float, fields: Mapping[str, object]) -> str:
        parts = []
        if self.total:
            share = min(done / self.total, 1.0)
            filled = round(20 * share)
            parts.append(f"{'━' * filled}{'╌' * (20 - filled)} {share:4.0%}" if self.live else f"{share:4.0%}")
        parts.append(f"{done:,}{f' of {self.total:,}' if self.total else ''} {self.unit}".rstrip())
        if seconds > 0 and done:
            parts.append(f"{round_digits(done / seconds)}/s")
        for name, value in fields.items():
            parts.append(f"{name.replace('_', ' ')} {f'{value:.2%}' if isinstance(value, float) else _cell(value)}")
        return "  ".join(parts)


class Progressive:
    """The share of mistakes made so far and since the row before, at 1, 2, 4, 8, … examples, as they were met."""

    HEADINGS = ("error", "since last", "examples", "mistakes", "rate/s")
    WIDTHS = (8, 12, 13, 12, 12)

    def __init__(self, stream: TextIO | None, first: int = 1, clock: Callable[[], float] = time.monotonic):
        self.stream, self.first, self.clock = stream, first, clock
        self.began = clock()
        self.begin()

    def begin(self) -> None:
        """Start counting again."""
        self.next = self.first
        self.examples = self.mistakes = 0  # of the last row
        self.latest = (0, 0)

    def update(self, examples: int, mistakes: int) -> None:
        """Take the numbers of examples and mistakes so far."""
        self.latest = (examples, mistakes)
        if examples >= self.next:
            self._row()
            while self.next <= examples:
                self.next *= 2

    def close(self) -> None:
        """Show what came after the last row."""
        if self.latest[0] > self.examples:
            self._row()

    def _row(self) -> None:
        if self.stream is None:
            return
        if not self.examples:
            headings = "".join(f"{name:>{width}}" for name, width in zip(self.HEADINGS, self.WIDTHS, strict=True))
            self.stream.write(_bold(headings, has_style(self.stream)) + "\n")
        examples, mistakes = self.latest
        seconds = self.clock() - self.began
        cells = (
            f"{mistakes / examples:.4f}",
            f"{(mistakes - self.mistakes) / (examples - self.examples):.4f}",
            f"{examples:,}",
            f"{mistakes:,}",
            round_digits(examples / seconds) if seconds > 0 else "",
        )
        self.stream.write("".join(f"{cell:>{width}}" for cell, width in zip(cells, self.WIDTHS, strict=True)) + "\n")
        self.stream.flush()
        self.examples, self.mistakes = examples, mistakes


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], bold: bool = False) -> str:
    """Return rows as aligned text, two blanks between columns; a column of numbers is aligned right, with its heading."""
    texts = [[_cell(cell) for cell in row] for row in rows]
    numbers = [all(NUMBER.fullmatch(row[j]) for row in texts) for j in range(len(headings))]
    right = [number and heading != "id" for number, heading in zip(numbers, headings, strict=True)]  # an id is text
    widths = [max([len(heading), *(len(row[j]) for row in texts)]) for j, heading in enumerate(headings)]

    def line(cells: Sequence[str]) -> str:
        sides = zip(cells, widths, right, strict=True)
        return "  ".join(f"{cell:>{width}}" if is_right else f"{cell:<{width}}" for cell, width, is_right in sides).rstrip()

    return "\n".join([_bold(line(headings), bold), *map(line, texts)])


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: 1 word, 2,000 words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def round_digits(number: float) -> str:
    """Return a speed or a size in three digits: 812,000 or 4.27."""
    if number < 1 or not math.isfinite(number):
        return f"{number:.2g}"
    places = max(0, 2 - math.floor(math.log10(number)))
    return f"{round(number, 2 - math.floor(math.log10(number))):,.{places}f}"


def width() -> int:
    """Return the width of the terminal, or the usual one where there is none."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH


def wrap(head: str, parts: Sequence[str], indent: int = 2) -> str:
    """Return the parts after the head, commas between them, in lines as wide as the terminal; no part is broken."""
    lines, room = [head], width()
    for number, part in enumerate(parts, 1):
        word = part + ("," if number < len(parts) else "")
        if number > 1 and len(lines[-1]) + 1 + len(word) > room:
            lines.append(" " * indent + word)
        else:
            lines[-1] += word if number == 1 else f" {word}"
    return "\n".join(lines)


def has_style(stream: TextIO) -> bool:
    """Return whether a stream shows bold text: a terminal does, unless NO_COLOR is set."""
    return stream.isatty() and "NO_COLOR" not in os.environ


def _bold(text: str, bold: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if bold else text


def _cell(value: object) -> str:
    """A cell: whole numbers with separators, others in four digits, text as it is."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, Integral) else f"{value:.4g}" if isinstance(value, Real) else str(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it: arrays are lists, and what is no number is null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):  # numpy's, without importing it
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)
