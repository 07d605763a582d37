"""How well a model does: every example is predicted before it is learned, and what was wrong is counted, in all and in
windows of equally many examples.

A history has at most 400 windows. When there are more, two neighbours become one and windows are twice as long from then
on, so that the memory does not grow with the stream. It depends on the examples and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rosenblatt.serve.learners import Label, label_text

MOST_WINDOWS = 400
FIRST_LENGTH = 8  # examples in a window, to begin with
MOST_LABELS = 50  # counted one by one in a window
OTHER_LABELS = "(other labels)"
MOST_EXAMPLES = 20  # predicted wrongly, that are kept to be looked at
LONGEST_EXAMPLE = 2_000  # characters of a text, or features of a row, that is kept
LONGEST_NAMES = 50_000  # characters of the names of its features, and of values that are text

Counts = tuple[int, int, int]  # seen, mistakes, wrong


class Window(NamedTuple):
    """What happened in some examples that came one after the other."""

    from_seq: int  # the entries of the log with the first and with the last of them
    seq: int
    time: int  # of the last entry, milliseconds since 1970
    seen: int
    mistakes: int  # counted by the learner: its last weights did not predict the label
    wrong: int  # the model as it is served predicted another label
    labels: dict[str, Counts]

    def merged(self, later: Window) -> Window:
        """Return this window and the one after it as one."""
        labels = dict(self.labels)
        for label, counts in later.labels.items():
            _add(labels, label, counts)
        seen, mistakes, wrong = (one + other for one, other in zip(self[3:6], later[3:6], strict=True))
        return Window(self.from_seq, later.seq, later.time, seen, mistakes, wrong, labels)


class WrongExample(NamedTuple):
    """An example that was predicted wrongly before it was learned."""

    seq: int
    row: int  # its place in the request, from 0
    time: int
    label: Label
    predicted: Label | None
    example: Mapping[str, object]  # "x" or "text", where it is not too long


class HistoryView(NamedTuple):
    """A history at one moment, which does not change any more."""

    wrong: int
    windows: tuple[Window, ...]  # the last one may not be complete
    last_wrong: tuple[WrongExample, ...]  # the newest first


class History:
    """The counts of a model, example by example."""

    def __init__(self) -> None:
        self.wrong = 0
        self._length = FIRST_LENGTH
        self._windows: tuple[Window, ...] = ()
        self._open: list[int] | None = None  # from_seq, seq, time, seen, mistakes, wrong
        self._labels: dict[str, Counts] = {}
        self._last_wrong: tuple[WrongExample, ...] = ()

    def add(self, seq: int, time: int, label: Label, mistakes: int, wrong: bool) -> None:
        """Count an example.

        Parameters
        ----------
        seq, time : int
            The entry of the log that has it, and when that was written.
        label : str, int, float or bool
            Its label.
        mistakes : int
            By how much the learner's count of mistakes grew.
        wrong : bool
            Whether the model predicted another label.
        """
        now = self._open
        if now is None:
            now = self._open = [seq, seq, time, 0, 0, 0]
        now[1], now[2] = seq, time
        now[3] += 1
        now[4] += mistakes
        now[5] += wrong
        self.wrong += wrong
        _add(self._labels, label if type(label) is str else label_text(label), (1, mistakes, int(wrong)))
        if now[3] >= self._length:
            self._close()

    def keep(self, example: WrongExample) -> None:
        """Keep an example that was predicted wrongly, to be looked at."""
        shown = example.example
        text, x = shown.get("text"), shown.get("x")
        if (isinstance(text, str) and len(text) > LONGEST_EXAMPLE) or _is_long(x):
            shown = {}
        self._last_wrong = (example._replace(example=shown), *self._last_wrong[: MOST_EXAMPLES - 1])

    def _close(self) -> None:
        """End the window, and halve their number if there are too many."""
        windows = [*self.view().windows]
        self._open, self._labels = None, {}
        if len(windows) >= MOST_WINDOWS:
            windows = [one.merged(other) for one, other in zip(windows[::2], windows[1::2], strict=True)]
            self._length *= 2
        self._windows = tuple(windows)

    def view(self) -> HistoryView:
        """Return the counts so far.

        Returns
        -------
        view : HistoryView
        """
        last = () if self._open is None else (Window._make([*self._open, dict(self._labels)]),)
        return HistoryView(self.wrong, self._windows + last, self._last_wrong)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as values of JSON.

        Returns
        -------
        values : dict
        """
        return {
            "wrong": self.wrong,
            "length": self._length,
            "windows": self._windows,
            "open": self._open,
            "labels": self._labels,
            "last_wrong": self._last_wrong,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> History:
        """Return the history that `to_json` described.

        Parameters
        ----------
        values : mapping
            Values of JSON.

        Returns
        -------
        history : History
        """
        self = cls()
        self.wrong, self._length, self._open = values["wrong"], values["length"], values["open"]
        self._windows = tuple(Window._make([*window[:6], _counts(window[6])]) for window in values["windows"])
        self._labels = _counts(values["labels"])
        self._last_wrong = tuple(WrongExample(*example) for example in values["last_wrong"])
        return self


def _is_long(x: object) -> bool:
    """Return whether the features of an example are too many, or their names too long, to be kept."""
    if not isinstance(x, dict | list) or len(x) > LONGEST_EXAMPLE:
        return isinstance(x, dict | list)
    if isinstance(x, list):
        return False
    texts = sum(len(value) for value in x.values() if type(value) is str)
    return sum(map(len, x)) + texts > LONGEST_NAMES


def _counts(values: Mapping[str, Any]) -> dict[str, Counts]:
    return {label: (counts[0], counts[1], counts[2]) for label, counts in values.items()}


def _add(labels: dict[str, Counts], label: str, counts: Counts) -> None:
    before = labels.get(label)
    if before is None:
        if len(labels) >= MOST_LABELS:
            label = OTHER_LABELS
        before = labels.get(label, (0, 0, 0))
    labels[label] = (before[0] + counts[0], before[1] + counts[1], before[2] + counts[2])
