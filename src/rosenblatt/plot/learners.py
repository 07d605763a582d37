"""Pictures of what was learned. Each takes a fitted classifier (`regret`: the runs of sellers), draws on the Axes given or
on new ones, and returns them. Classes differ by marker as well as by colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.losses import hinge, log, perceptron, zero_one
from rosenblatt.plot.canvas import BLUE, COLOURS, GREEN, GREY, MARKERS, SKY, STYLES, VERMILION, axes, dot

GRID = 400  # points a side on which regions are predicted
MOST_EDGES = 64  # between inputs and hidden units of a network


def history(clf: Any, ax: Any = None, bound: float | None = None) -> Any:
    """The mistakes of each epoch, the updates so far, and the `bound` that these cannot pass; the Axes.

    The counts are on a logarithmic scale when the bound is more than ten times the updates.
    """
    if not clf.history_:
        raise ValueError("there is no history to draw: it is fit that records epochs, and partial_fit has none")
    ax = axes(ax)
    mistakes = [epoch.mistakes for epoch in clf.history_]
    updates = np.cumsum([epoch.updates for epoch in clf.history_])
    epochs = np.arange(1, len(mistakes) + 1)
    ax.stairs(mistakes, np.arange(len(mistakes) + 1) + 0.5, fill=True, color=SKY, label="mistakes in the epoch")
    ax.step(epochs, updates, where="mid", color=BLUE, linewidth=1.8, marker=dot(epochs),
            label=f"updates so far: {updates[-1]:,}")  # fmt: skip
    if bound is not None:
        ax.axhline(bound, color=VERMILION, linestyle="--", linewidth=1.5, label=f"bound: {bound:,.0f}")
        if bound > 10 * max(updates[-1], 1):
            ax.set_yscale("log")
            ax.set_ylim(bottom=0.7)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(title=f"Mistakes and updates ({clf.stop_reason_})", xlabel="epoch", ylabel="count")
    ax.margins(x=0.02)
    ax.legend(frameon=False)
    return ax


def boundary(clf: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """The rows of X, which has two features, by class; the regions the classifier gives to each class, the lines between
    them, and a ring round each row that lies in the wrong one; the Axes."""
    points, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"a boundary is drawn in two dimensions; X must have two features, but its shape is {points.shape}"
        )
    ax = axes(ax)
    left, right, bottom, top = _frame(points)
    across, up = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    grid = _as_given(np.column_stack([across.ravel(), up.ravel()]), X)
    named = clf.predict(grid)[:, None] == clf.classes_
    ax.imshow(
        _pale(named.argmax(axis=1).reshape(across.shape)),
        origin="lower",
        extent=(left, right, bottom, top),
        aspect="auto",
        interpolation="nearest",
    )
    for lead in _leads(clf.decision_function(grid)):
        if lead.min() < 0 < lead.max():
            ax.contour(across, up, lead.reshape(across.shape), levels=[0], colors="black", linewidths=1.2)
    for k, name in enumerate(clf.classes_):
        chosen = points[y == name]
        ax.scatter(*chosen.T, s=36, marker=MARKERS[k % len(MARKERS)], color=COLOURS[k % len(COLOURS)], label=str(name))
    wrong = points[clf.predict(X) != y]
    if len(wrong):
        ax.scatter(*wrong.T, s=150, facecolors="none", edgecolors="black", label=f"misclassified: {len(wrong)}")
    names = getattr(clf, "feature_names_in_", ["feature 0", "feature 1"])
    ax.set(title=f"{len(wrong)} of {len(points)} misclassified", xlabel=names[0], ylabel=names[1])
    ax.legend(loc="best", framealpha=0.9)
    return ax


def _frame(points: NDArray) -> tuple[float, float, float, float]:
    """(left, right, bottom, top) with a twelfth of the width and of the height free on each side."""
    low, high = points.min(axis=0), points.max(axis=0)
    space = np.where(high > low, (high - low) / 12, 1.0)
    (left, bottom), (right, top) = low - space, high + space
    return left, right, bottom, top


def _as_given(grid: NDArray, X: Any) -> Any:
    """The grid as a table with the columns of X, where X is one: a classifier that knows names asks for them."""
    return type(X)(grid, columns=list(X.columns)) if hasattr(X, "columns") else grid


def _pale(number: NDArray) -> NDArray:
    """An image with a light shade of its class's colour at each point."""
    return 1 - 0.18 * (1 - COLOURS[number % len(COLOURS)])


def _leads(decision: NDArray) -> list[NDArray]:
    """For each class, by how much it leads its best rival; it changes sign where the class's region ends."""
    if decision.ndim == 1:
        return [decision]
    return [decision[:, k] - np.delete(decision, k, axis=1).max(axis=1) for k in range(decision.shape[1])]


def losses(ax: Any = None) -> Any:
    """The perceptron, hinge, log and zero-one losses of a margin, each labelled where it ends; the Axes.

    The log loss is divided by log 2, so that it too is 1 at 0 and lies above the zero-one loss. A dot says which value the
    zero-one loss has where it jumps: a margin of 0 is a mistake.
    """
    ax = axes(ax)
    z = np.linspace(-3, 3, 601)
    apart = np.where(z == 0, np.nan, z)  # a line is not drawn where it jumps
    lines: dict[str, tuple[NDArray, Any, Any, str, int]] = {
        "zero-one": (apart, zero_one, GREY, "-", 4),
        "hinge": (z, hinge, BLUE, "-", 2),
        "log / log 2": (z, lambda z: log(z) / np.log(2), GREEN, "-.", 2),
        "perceptron": (z, perceptron, VERMILION, "--", 2),
    }
    for name, (at, loss, colour, dashes, width) in lines.items():
        ax.plot(at, loss(at), dashes, color=colour, linewidth=width, label=name)
        ax.annotate(name, (z[0], loss(z[0])), (-6, 0), textcoords="offset points", ha="right", va="center", color=colour)
    ax.plot(0, zero_one(0), "o", color=GREY, markersize=8)
    ax.plot(0, 0, "o", color=GREY, markersize=8, markerfacecolor="white")
    ax.spines[["left", "top"]].set_visible(False)
    ax.yaxis.tick_right()
    ax.yaxis.set_label_position("right")
    ax.set(title="Losses of a margin", xlabel="margin z = y·⟨w, x⟩", ylabel="loss", xlim=(-3, 3), ylim=(-0.1, 4.6))
    return ax


def _labels_above(ax: Any, places: dict[str, tuple[float, Any]], top: float) -> None:
    """Write words above the frame, slanted, each at its place on the horizontal axis or as near to it as leaves room."""
    across = ax.transAxes.inverted()
    right = 0.0
    for words, (place, colour) in sorted(places.items(), key=lambda item: item[1][0]):
        left = across.transform(ax.transData.transform((place, top)))[0]
        right = max(left, right)
        ax.annotate(words, (left, 1), (right, 1.06), "axes fraction", color=colour, rotation=35, rotation_mode="anchor",
                    arrowprops={"arrowstyle": "-", "color": colour, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        right += 0.06


def network(net: Any, ax: Any = None) -> Any:
    """The inputs, the hidden units and the output of a `Network`, with each weight on its edge, dashed where it is
    negative, and each threshold in its unit; the Axes."""
    units, inputs = net.weights.shape
    if units * inputs > MOST_EDGES:
        raise ValueError(
            f"{units} hidden units with {inputs} inputs have {units * inputs} edges, of which at most {MOST_EDGES} can be "
            "told apart; print(net) and net.describe() have no such limit"
        )
    mine, ax = ax is None, axes(ax)
    if mine:
        ax.figure.set_size_inches(7.5, max(3.0, 0.8 * units, 0.17 * (inputs + 1) * units))
    across, hidden, top = (0.0, 1.2, 2.0), _slots(units), _slots(inputs)
    for h, y in enumerate(hidden):
        for i, x in enumerate(top):
            _edge(ax, (across[0], x), (across[1], y), net.weights[h, i], 1 / (inputs + 1))
        _edge(ax, (across[1], y), (across[2], 0.5), net.output_weights[h], 0.45)
    for i, x in enumerate(top):
        _node(ax, (across[0], x), f"x{i + 1}", "white")
    for h, y in enumerate(hidden):
        _node(ax, (across[1], y), f"h{h + 1}\n≥ {_signed(net.thresholds[h])}", 1 - 0.4 * (1 - SKY))
    _node(ax, (across[2], 0.5), f"y\n≥ {_signed(net.output_threshold)}", "white")
    ax.set(title=str(net).splitlines()[0], xlim=(-0.2, 2.2), ylim=(0, 1))
    ax.set_axis_off()
    return ax


def _slots(count: int) -> NDArray:
    """Heights of so many nodes, from the top down, with equal space for each."""
    return 1 - (np.arange(count) + 0.5) / max(count, 1)


def _edge(ax: Any, start: tuple[float, float], end: tuple[float, float], weight: float, at: float) -> None:
    """A line, with the weight written at the fraction `at` of its way. With 1/(n + 1), the labels of all edges between n
    nodes and the next level are at different heights, equally far from each other."""
    if weight == 0:
        return
    colour, dashes = (BLUE, "-") if weight > 0 else (VERMILION, "--")
    ax.plot(*zip(start, end, strict=True), dashes, color=colour, linewidth=1.2, zorder=1)
    place = np.add(start, at * np.subtract(end, start))
    ax.text(*place, f"{weight:+g}".replace("-", "−"), color=colour, ha="center", va="center", fontsize=8, zorder=2,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"})  # fmt: skip


def _node(ax: Any, place: tuple[float, float], text: str, colour: Any) -> None:
    ax.text(*place, text, ha="center", va="center", fontsize=9, zorder=3,
            bbox={"boxstyle": "circle,pad=0.35", "facecolor": colour, "edgecolor": "black"})  # fmt: skip


def _signed(number: float) -> str:
    return f"{number:g}".replace("-", "−")


def regret(runs: Mapping[str, Any], ax: Any = None) -> Any:
    """The regret of pricers against the number of rounds, which is on a logarithmic scale: a regret that grows as the
    logarithm is a straight line, and one that grows with the rounds leaves the frame; the Axes.

    `runs` names what `online.pricing.simulate` answered. A pricer that is told its horizon has a list of answers, one for
    each horizon, and is drawn through their ends. The frame is four times as high as the least regret at the end, where
    the numbers are from.
    """
    if not runs:
        raise ValueError("there are no runs to draw; name at least one, such as {'ellipsoid': simulate(...)}")
    ax = axes(ax)
    curves = {name: _growth(run) for name, run in runs.items()}
    low, high = (limit(0.0, *(limit(total) for _, total in curves.values())) for limit in (min, max))
    least = min((total[-1] for _, total in curves.values() if total[-1] > 0), default=1.0)
    top = min(4 * least, 1.05 * high or 1.0)
    most = max(rounds[-1] for rounds, _ in curves.values())
    ax.set(xscale="log", xlim=(max(1, most / 1e4), 1.1 * most), ylim=(low, top), xlabel="rounds", ylabel="regret")
    leaving = {}
    for k, (name, (rounds, total)) in enumerate(curves.items()):
        colour, words = COLOURS[k % len(COLOURS)], f"{name}: {total[-1]:,.0f}"
        ax.plot(rounds, total, color=colour, linewidth=1.8, linestyle=STYLES[k % len(STYLES)],
                marker="" if hasattr(runs[name], "regret") else "o")  # fmt: skip
        if total[-1] > top:
            leaving[words] = (rounds[np.argmax(total > top)], colour)
        else:
            ax.annotate(words, (rounds[-1], total[-1]), (-4, 7), textcoords="offset points", color=colour, ha="right")
    _labels_above(ax, leaving, top)
    ax.set_title(f"Regret of {most:,} rounds", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _growth(run: Any) -> tuple[NDArray, NDArray]:
    """(rounds, regret): of one run after each round; of a list of runs at the end of each."""
    if hasattr(run, "regret"):
        return np.arange(1, len(run.price) + 1), run.cumulative_regret
    ends = sorted((len(sales.price), sales.regret.sum()) for sales in run)
    return np.array([rounds for rounds, _ in ends]), np.array([total for _, total in ends])
