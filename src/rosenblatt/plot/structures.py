"""Pictures of answers that have parts: a dependency tree, a table of confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidData
from rosenblatt.plot.canvas import BLUE, GREY, VERMILION, Colour, new_axes
from rosenblatt.structured import trees

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Head = tuple[int, str | None]  # (head, label); None where there is none
Heads = Sequence[tuple[int, str] | int] | NDArray


class Arc(NamedTuple):
    """An arc to a word from its head, both counted from 1."""

    head: int
    word: int
    label: str | None
    colour: Colour


def tree(words: Sequence[str | Sequence[str]], arcs: Heads, gold: Heads | None = None, ax: Axes | None = None) -> Axes:
    """Draw a dependency tree above its words.

    Parameters
    ----------
    words : sequence of str or of tuples
        Texts, or tuples (form, tag, ...) written below one another.
    arcs : sequence of (head, label) or of heads
        For each word, counted from 1, 0 for the root. Heads that are not a tree are an error.
    gold : sequence of (head, label) or of heads, optional
        What is right. What differs from it has another colour, and the right head is shown in grey. A bare head is not
        asked for its label.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> words = [("Dogs", "NOUN"), ("chase", "VERB"), ("cats", "NOUN")]
    >>> ax = plot.tree(words, [(2, "nsubj"), (0, "root"), (2, "obj")])
    >>> [text.get_text() for text in ax.texts if text.get_text()]
    ['nsubj', 'root', 'obj', 'Dogs', 'NOUN', 'chase', 'VERB', 'cats', 'NOUN']
    """
    guesses, answers = _heads("arcs", arcs, len(words)), None if gold is None else _heads("gold", gold, len(words))
    columns = [[word] if isinstance(word, str) else list(word) for word in words]
    lines = max(map(len, columns), default=1)
    widths = [max(len(str(line)) for line in column) * 0.11 + 0.35 for column in columns]
    centres = np.cumsum(widths) - np.array(widths) / 2
    every = [Arc(head, i, label, _colour(i - 1, guesses, answers)) for i, (head, label) in enumerate(guesses, 1)]
    every += [Arc(head, i, label, GREY) for i, (head, label) in enumerate(answers or (), 1) if head != guesses[i - 1][0]]
    levels = _levels([arc for arc in every if arc.head != 0])
    top = max(levels, default=0) + 1.4
    ax = ax or new_axes(figsize=(max(3.0, sum(widths)), 0.42 * top + 0.3 * lines + 0.3))
    heights = iter(levels)
    for arc in every:
        if arc.head == 0:
            _draw_root(ax, arc, centres[arc.word - 1], top)
        else:
            _draw_arc(ax, arc, centres, next(heights))
    for column, centre in zip(columns, centres, strict=True):
        for line, part in enumerate(column):
            colour, size = ("black", 10) if line == 0 else (GREY, 8)
            _text(ax, centre, -0.25 - 0.6 * line, part, color=colour, fontsize=size, ha="center", va="top")
    ax.set(xlim=(0, max(sum(widths), 0.1)), ylim=(-0.6 * lines - 0.4, top + 0.1))
    ax.axis("off")
    return ax


def _heads(name: str, arcs: Heads, words: int) -> list[Head]:
    """Return the head and label of each word, if the heads are a tree."""
    if len(arcs) != words:
        raise InvalidData(f"there are {words} words and {len(arcs)} {name}; each word needs one")
    pairs = [(index(head), label) for head, label in (arc if isinstance(arc, Sequence) else (arc, None) for arc in arcs)]
    if problem := trees.why_no_tree(np.array([head for head, _ in pairs], np.int64)):
        raise InvalidData(f"{name}: {problem}")
    return pairs


def _colour(i: int, heads: Sequence[Head], gold: Sequence[Head] | None) -> Colour:
    if gold is None:
        return BLUE
    (head, label), (right, wanted) = heads[i], gold[i]
    return BLUE if head == right and (label == wanted or label is None or wanted is None) else VERMILION


def _levels(arcs: Sequence[Arc]) -> list[int]:
    """Return how high each arc is drawn: above every arc that lies within it, and arcs that share a word side by side."""
    ends = [sorted((arc.head, arc.word)) for arc in arcs]
    order = sorted(range(len(arcs)), key=lambda i: ends[i][1] - ends[i][0])
    levels = [0] * len(arcs)
    for place, i in enumerate(order):
        under = [levels[j] for j in order[:place] if ends[i][0] < ends[j][1] and ends[j][0] < ends[i][1]]
        levels[i] = 1 + max(under, default=0)
    return levels


def _draw_root(ax: Axes, arc: Arc, centre: float, top: float) -> None:
    ax.annotate("", (centre, 0.05), (centre, top), arrowprops=_arrow(arc.colour, _dashes(arc)))
    _text(ax, centre + 0.05, top - 0.25, arc.label or "", color=arc.colour, fontsize=8, va="center")


def _draw_arc(ax: Axes, arc: Arc, centres: NDArray, height: int) -> None:
    inward = 0.16 * np.sign(centres[arc.head - 1] - centres[arc.word - 1])
    left, right = centres[arc.head - 1] - inward * 0.6, centres[arc.word - 1] + inward * 0.4
    bend = min(0.25, abs(left - right) / 3) * np.sign(right - left)
    shoulder = height - 0.25
    rise = (left, left, left + bend, right - bend, right, right), (0.05, shoulder, height, height, shoulder, 0.3)
    ax.plot(*rise, color=arc.colour, linestyle=_dashes(arc), linewidth=1.2, solid_joinstyle="round")
    ax.annotate("", (right, 0.05), (right, 0.35), arrowprops=_arrow(arc.colour, "-"))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    middle = (left + right) / 2
    _text(ax, middle, height, arc.label or "", color=arc.colour, fontsize=8, ha="center", va="center", bbox=box)


def _dashes(arc: Arc) -> str:
    return "--" if arc.colour is GREY else "-"


def _arrow(colour: Colour, style: str) -> dict[str, Any]:
    return {"arrowstyle": "-|>", "color": colour, "linestyle": style, "shrinkA": 0, "shrinkB": 0}


def _text(ax: Axes, x: float, y: float, text: str, **style: Any) -> None:
    ax.text(x, y, text, parse_math=False, **style)


def confusions(table: Mapping[tuple[str, str], int], most: int = 12, ax: Axes | None = None) -> Axes:
    """Draw the labels most often confused, as a table of counts with gold labels in rows and guesses in columns.

    Parameters
    ----------
    table : mapping of (gold, guess) to int
        How often each pair came, as `rosenblatt.structured.evaluation` returns it.
    most : int, default=12
        The most labels to show.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> ax = plot.confusions({("NOUN", "NOUN"): 90, ("NOUN", "VERB"): 7, ("VERB", "VERB"): 50, ("VERB", "NOUN"): 3})
    >>> [text.get_text() for text in ax.texts]
    ['90', '7', '3', '50']
    """
    if not table:
        raise InvalidData("the table of confusions is empty")
    wrong: dict[str, int] = {}
    for (gold, guess), count in table.items():
        for label in (gold, guess):
            wrong[label] = wrong.get(label, 0) + (count if gold != guess else 0)
    labels = sorted(wrong, key=lambda label: (-wrong[label], label))[:most]
    counts = np.array([[table.get((gold, guess), 0) for guess in labels] for gold in labels])
    ax = ax or new_axes()
    off = counts * (1 - np.eye(len(labels), dtype=int))
    ax.imshow(off, cmap="Oranges", vmin=0, vmax=max(2 * int(off.max(initial=0)), 1))  # pale enough to read
    for i, j in np.argwhere(counts):
        ax.text(j, i, f"{counts[i, j]}", ha="center", va="center", fontsize=7, color=GREY if i == j else "black")
    ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=8, parse_math=False)
    ax.set_yticks(range(len(labels)), labels, fontsize=8, parse_math=False)
    ax.set(xlabel="guess", ylabel="gold")
    return ax
