"""Pictures of answers that have parts: a dependency tree, a table of confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from rosenblatt.plot.canvas import BLUE, GREY, VERMILION, axes, pyplot
from rosenblatt.structured import trees

Arc = tuple[int, str | None]  # (head, label); None where there is none


def _levels(arcs: Sequence[tuple[int, int]]) -> list[int]:
    """How high each arc is drawn: above every arc that lies within it, and arcs that share a word side by side."""
    order = sorted(range(len(arcs)), key=lambda i: abs(arcs[i][0] - arcs[i][1]))
    levels = [0] * len(arcs)
    for place, i in enumerate(order):
        low, high = sorted(arcs[i])
        under = [levels[j] for j in order[:place] if low < max(arcs[j]) and min(arcs[j]) < high]
        levels[i] = 1 + max(under, default=0)
    return levels


def tree(
    words: Sequence[str | Sequence[str]],
    arcs: Sequence[tuple[int, str] | int],
    gold: Sequence[tuple[int, str] | int] | None = None,
    ax: Any = None,
) -> Any:
    """A dependency tree above its words; the Axes.

    `words` are texts, or tuples (form, tag, ...) written below one another; `arcs` are (head, label) or bare heads, counted
    from 1, 0 for the root; heads that are no tree are refused. Where `gold` is given, what differs from it has another
    colour, and the right head is shown in grey. A bare head is not asked for its label.
    """
    guesses, answers = _tree("arcs", arcs, len(words)), None if gold is None else _tree("gold", gold, len(words))
    columns = [[word] if isinstance(word, str) else list(word) for word in words]
    widths = [max(len(str(line)) for line in column) * 0.11 + 0.35 for column in columns]
    centres = np.cumsum(widths) - np.array(widths) / 2 if widths else np.zeros(0)
    drawn = [(head, i, label, _colour(i - 1, guesses, answers)) for i, (head, label) in enumerate(guesses, 1)]
    missing = [(head, i, label, GREY) for i, (head, label) in enumerate(answers or (), 1) if head != guesses[i - 1][0]]
    every = drawn + missing
    levels = _levels([(head, word) for head, word, _, _ in every if head != 0])
    top = max(levels, default=0) + 1.4
    if ax is None:
        size = (max(3.0, sum(widths)), 0.42 * top + 0.3 * _lines(columns) + 0.3)
        ax = pyplot().subplots(figsize=size, layout="constrained")[1]
    heights = iter(levels)
    for head, word, label, colour in every:
        style = "--" if colour is GREY else "-"
        right = centres[word - 1]
        if head == 0:
            ax.annotate("", (right, 0.05), (right, top), arrowprops=_arrow(colour, style))
            ax.text(right + 0.05, top - 0.25, label or "", fontsize=8, color=colour, va="center", parse_math=False)
            continue
        height = next(heights)
        inward = 0.16 * np.sign(centres[head - 1] - right)
        left, right = centres[head - 1] - inward * 0.6, right + inward * 0.4
        bend = min(0.25, abs(left - right) / 3) * np.sign(right - left)
        shoulder = height - 0.25
        rise = (left, left, left + bend, right - bend, right, right), (0.05, shoulder, height, height, shoulder, 0.3)
        ax.plot(*rise, color=colour, linestyle=style, linewidth=1.2, solid_joinstyle="round")
        ax.annotate("", (right, 0.05), (right, 0.35), arrowprops=_arrow(colour, "-"))
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        ax.text(
            (left + right) / 2,
            height,
            label or "",
            fontsize=8,
            color=colour,
            ha="center",
            va="center",
            bbox=box,
            parse_math=False,
        )
    for column, centre in zip(columns, centres, strict=True):
        for line, part in enumerate(column):
            ax.text(centre, -0.25 - 0.6 * line, part, ha="center", va="top", color="black" if line == 0 else GREY,
                    fontsize=10 if line == 0 else 8, parse_math=False)  # fmt: skip
    ax.set(xlim=(0, max(sum(widths), 0.1)), ylim=(-0.6 * _lines(columns) - 0.4, top + 0.1))
    ax.axis("off")
    return ax


def _arrow(colour: Any, style: str) -> dict[str, Any]:
    return {"arrowstyle": "-|>", "color": colour, "linestyle": style, "shrinkA": 0, "shrinkB": 0}


def _lines(columns: Sequence[Sequence[str]]) -> int:
    return max(map(len, columns), default=1)


def _tree(name: str, arcs: Sequence[Any], words: int) -> list[Arc]:
    """The head and label of each word; a ValueError that tells where the heads are no tree."""
    if len(arcs) != words:
        raise ValueError(f"there are {words} words and {len(arcs)} {name}; each word needs one")
    pairs = [(index(head), label) for head, label in (arc if isinstance(arc, Sequence) else (arc, None) for arc in arcs)]
    try:
        trees.check(np.array([head for head, _ in pairs], np.int64), 0)
    except ValueError as error:
        raise ValueError(f"{name}: {str(error).removeprefix('sentence 0: ')}") from None
    return pairs


def _colour(i: int, arcs: Sequence[Arc], gold: Sequence[Arc] | None) -> Any:
    if gold is None:
        return BLUE
    (head, label), (right, wanted) = arcs[i], gold[i]
    return BLUE if head == right and (label == wanted or label is None or wanted is None) else VERMILION


def confusions(table: Mapping[tuple[str, str], int], most: int = 12, ax: Any = None) -> Any:
    """The labels most often confused, as a table of counts: gold in rows, guesses in columns; the Axes.

    `table` maps (gold, guess) to how often it came, as `rosenblatt.structured.evaluation` gives it.
    """
    if not table:
        raise ValueError("the table of confusions is empty; there is nothing to draw")
    wrong: dict[str, int] = {}
    for (gold, guess), count in table.items():
        for label in (gold, guess):
            wrong[label] = wrong.get(label, 0) + (count if gold != guess else 0)
    labels = sorted(wrong, key=lambda label: (-wrong[label], label))[:most]
    counts = np.array([[table.get((gold, guess), 0) for guess in labels] for gold in labels])
    ax = axes(ax)
    off = counts * (1 - np.eye(len(labels), dtype=int))
    ax.imshow(off, cmap="Oranges", vmin=0, vmax=max(2 * int(off.max(initial=0)), 1))  # pale enough to read
    for i in range(len(labels)):
        for j in range(len(labels)):
            if counts[i, j]:
                ax.text(j, i, f"{counts[i, j]}", ha="center", va="center", fontsize=7, color=GREY if i == j else "black")
    ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=8, parse_math=False)
    ax.set_yticks(range(len(labels)), labels, fontsize=8, parse_math=False)
    ax.set(xlabel="guess", ylabel="gold")
    return ax
