"""Pictures of training from files: mistakes pass by pass, and the score against how much was learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rosenblatt.plot.canvas import BLUE, VERMILION, axes, dot


def passes(history: Sequence[Mapping[str, Any]], ax: Any = None) -> Any:
    """The share of mistakes in each pass, and the error on rows held out where there were any; the Axes.

    `history` is that of a `FileModel`: `model.training["history"]`.
    """
    if not history:
        raise ValueError("the history has no pass; there is nothing to draw")
    ax = axes(ax)
    numbers = np.arange(1, len(history) + 1)
    shares = [100 * entry["mistakes"] / entry["rows"] for entry in history]
    ax.plot(numbers, shares, marker=dot(numbers), color=BLUE, label="mistakes while learning")
    if history[0]["error"] is not None:
        held = [100 * entry["error"] for entry in history]
        ax.plot(numbers, held, marker=dot(numbers), color=VERMILION, linestyle="--", label="error on rows held out")
    ax.set(xlabel="pass", ylabel="% of rows", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    return ax


def learning_curve(points: Sequence[tuple[int, float, float]], ax: Any = None) -> Any:
    """Scores against the number of rows learned from: (rows, on them, on others) at each point; the Axes."""
    if not points:
        raise ValueError("the curve has no point; there is nothing to draw")
    ax = axes(ax)
    rows, on_them, on_others = np.array(points, np.float64).T
    ax.plot(rows, 100 * on_them, marker="o", color=BLUE, linestyle="--", label="on the rows learned from")
    ax.plot(rows, 100 * on_others, marker="o", color=VERMILION, label="on others")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
    ax.set(xlabel="rows learned from", ylabel="% right")
    ax.legend(frameon=False)
    return ax
