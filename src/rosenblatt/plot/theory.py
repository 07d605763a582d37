"""Pictures of theorems, from what `rosenblatt.theory` and `rosenblatt.counting` computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.counting.growth_rates import TERMS
from rosenblatt.errors import InvalidParameterType
from rosenblatt.feasibility.search import plural
from rosenblatt.plot.canvas import BLUE, GREEN, GREY, SKY, VERMILION, marker, new_axes
from rosenblatt.theory.runs import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rosenblatt.counting.laws import Growth
    from rosenblatt.theory.cycles import Cycle
    from rosenblatt.theory.hard import Smoothing


def proof(trace: Trace, ax: Axes | Iterable[Axes] | None = None) -> Axes:
    """Draw the proof of the mistake bound along a run.

    ‖w‖ is below a wall that rises like √k, ⟨w, u⟩ above one that rises like k, and beyond the place where they meet there
    is no update. A second panel has cos(w, u) and the floor under it, the one wall divided by the other, which is 1 where
    they meet. The scales are logarithmic when the bound is more than ten times the updates: the walls of a run from 0 are
    then lines of slope 1 and ½. A cross shows where a wall that claims too much is passed.

    Parameters
    ----------
    trace : Trace
        The run, as `rosenblatt.theory.trace` returned it.
    ax : matplotlib Axes or two of them, optional
        Where to draw, one for the walls only; new ones by default.

    Returns
    -------
    matplotlib Axes
        Those of the walls.

    Examples
    --------
    >>> from rosenblatt import plot
    >>> from rosenblatt.theory import trace
    >>> ax = plot.proof(trace([[2, 1], [1, 3], [-1, -2], [-3, 0]], [1, 1, -1, -1]))
    >>> [line.get_label() for line in ax.lines[:4]]
    ['‖w‖ ≤ √k R', '⟨w, u⟩ ≥ kγ', '‖w‖', '⟨w, u⟩']
    """
    if not isinstance(trace, Trace):
        raise InvalidParameterType("trace", trace, "a run that rosenblatt.theory.trace(X, y) returned")
    if ax is None:
        ax = new_axes(2, 1, height_ratios=(3, 1), sharex=True, figsize=(7.5, 6.5))
    ax, *second = list(ax) if isinstance(ax, Iterable) else [ax]
    meet = trace.bound if np.isfinite(trace.bound) else None
    far = meet is not None and meet > 10 * max(trace.updates, 1)
    end = 1.08 * max(trace.updates, meet or 0, 1)
    k = np.geomspace(0.8, 2 * end, 400) if far else np.linspace(0, end, 400)
    lower, upper = trace.walls(k)
    below, above = trace.wall_formulas
    ax.fill_between(k, lower, upper, where=upper >= lower, color=SKY, alpha=0.18, linewidth=0)
    ax.plot(k, upper, color=VERMILION, linewidth=2.2, label=f"‖w‖ ≤ {above}")
    ax.plot(k, lower, color=VERMILION, linewidth=2.2, linestyle="--", label=f"⟨w, u⟩ ≥ {below}")
    shown = slice(1 if far else 0, None)  # a logarithmic scale has no 0
    t, norm, progress = trace.k[shown], trace.norm[shown], trace.progress[shown]
    ax.plot(t, norm, color=BLUE, linewidth=3, marker=marker(trace.k), markersize=6, label="‖w‖")
    ax.plot(t, progress, color=GREEN, linewidth=2, marker=marker(trace.k), markersize=5, label="⟨w, u⟩")
    _label_lines(ax)
    if meet is not None:
        place = (meet, trace.walls(meet)[1])
        ax.plot(*place, "o", color=VERMILION, markersize=11)
        words = f"the walls meet:\nat most {int(meet * (1 + 1e-9)):,} updates"
        thread = {"arrowstyle": "-", "color": VERMILION, "shrinkB": 6}
        style: dict[str, Any] = {"color": VERMILION, "ha": "right", "va": "top", "fontsize": 14}
        ax.annotate(words, place, (0.98, 0.28), "data", "axes fraction", thread, **style)
    if trace.broken is not None:
        at = (trace.broken, trace.progress[trace.broken])
        ax.plot(*at, "X", color="black", markersize=10)
        words = f"a wall is passed at k = {trace.broken}"
        ax.annotate(words, at, (0, -12), textcoords="offset points", fontsize=12, ha="center", va="top")
    if far:
        ax.set(xscale="log", yscale="log")
    ending = "converged" if trace.converged else "not converged"
    ax.set_title(f"{plural(trace.updates, 'update')}, {ending}", fontsize=15)
    ax.set_ylabel("length", fontsize=13)
    ax.set_xlim(k[0], k[-1])
    ax.tick_params(labelsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    if second:
        _cosine(second[0], trace, k, np.divide(lower, upper, out=np.zeros(len(k)), where=upper > 0))
    (second or [ax])[-1].set_xlabel("updates k", fontsize=13)
    return ax


def _label_lines(ax: Axes) -> None:
    """Write the name of each wall beside it, outside, and those of ‖w‖ and ⟨w, u⟩ above the walls."""
    upper, lower = ((line, np.column_stack(line.get_data())) for line in ax.lines[:2])
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 14}
    for (wall, path), part, away, side, height in (
        (upper, 0.45, (-6, 5), "right", "bottom"),
        (lower, 0.55, (8, -4), "left", "top"),
    ):
        x, y = path[int(part * len(path))]
        ax.annotate(str(wall.get_label()), (x, y), away, color=VERMILION, ha=side, va=height, **style)
    ax.legend(handles=ax.lines[2:4], loc="upper left", labelcolor="linecolor", fontsize=14, frameon=False)


def _cosine(ax: Axes, trace: Trace, k: NDArray, floor: NDArray) -> None:
    """Draw cos(w, u) from the first update on, and what it is at least after k of them."""
    ax.plot(k, floor, color=VERMILION, linewidth=1.8, linestyle="--", label="lower wall / upper wall")
    ax.plot(trace.k, trace.cosine, color=BLUE, linewidth=1.8, marker=marker(trace.k), markersize=4, label="cos(w, u)")
    ax.axhline(1, color=GREY, linewidth=1)
    lowest = min(0.0, np.nanmin(trace.cosine, initial=0.0))
    ax.set(xlim=(k[0], k[-1]), ylim=(1.05 * lowest, 1.1), ylabel="cosine")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", ncols=2, edgecolor="none")


def lengths(norms: ArrayLike, cycle: Cycle | None = None, ax: Axes | None = None, bound: float | None = None) -> Axes:
    """Draw ‖w‖ at the end of each epoch.

    Parameters
    ----------
    norms : array-like
        The lengths, as `rosenblatt.theory.cycles.lengths` returns them.
    cycle : Cycle, optional
        Where the weights are again what they were, as `find_cycle` returns it.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    bound : float, optional
        What they cannot pass.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> from rosenblatt.theory import cycles
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [-1, 1, 1, -1]  # exclusive or
    >>> ax = plot.lengths(cycles.lengths(X, y, epochs=5), cycles.find_cycle(X, y))
    >>> ax.get_title()
    'Length of the weights: a period of 1 epochs'
    """
    ax = ax or new_axes()
    norms = np.asarray(norms, dtype=np.float64)
    epochs = np.arange(len(norms))
    few = len(norms) <= 200
    ax.plot(epochs, norms, "o-" if few else ".", color=BLUE, linewidth=1, markersize=4 if few else 2.5, label="‖w‖")
    title = "Length of the weights"
    if cycle is not None:
        visits = np.arange(cycle.preperiod, len(norms), cycle.period)
        for k, visit in enumerate(visits):
            ax.axvline(
                float(visit), color=GREY, linestyle=":", linewidth=1, zorder=0, label=None if k else "the same weights"
            )
        ax.plot(visits, norms[visits], "D", color=VERMILION, markersize=7, markerfacecolor="none")
        title += f": a period of {cycle.period} epochs"
        bound = cycle.largest if bound is None else bound
    if bound is not None:
        ax.axhline(bound, color=VERMILION, linestyle="--", linewidth=1.5, label=f"never more than {bound:.4g}")
    top = max(norms.max(), bound or 0.0)
    ax.set(title=title, xlabel="epoch", ylabel="‖w‖", ylim=(0, 1.15 * top or 1))
    ax.margins(x=0.02)
    ax.legend(frameon=False, loc="upper center", ncols=3)
    return ax


def smoothing(found: Smoothing, ax: Axes | None = None) -> Axes:
    """Draw the updates on noisy copies of the data against the noise, a dot for each copy, their medians joined.

    Copies that the run did not separate are crosses: they stand for more updates than were made. Noise of 0 is a line
    across.

    Parameters
    ----------
    found : Smoothing
        What `rosenblatt.theory.hard.smoothing` returned.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> from rosenblatt.theory import hard
    >>> X, y, *_ = hard.exponential(5)
    >>> ax = plot.smoothing(hard.smoothing(X, y, [0, 0.1, 0.5], constant=0, draws=3))
    >>> ax.get_title()
    'Noise makes hard data easy'
    """
    ax = ax or new_axes()
    noisy = found.sigma > 0
    sigma, updates, separated = found.sigma[noisy], found.updates[noisy], found.separated[noisy]
    across = np.broadcast_to(sigma[:, None], updates.shape)
    ax.plot(across[separated], updates[separated], "o", color=SKY, markersize=5, label="a noisy copy")
    if not separated.all():
        ax.plot(across[~separated], updates[~separated], "x", color=VERMILION, label="given up")
    ax.plot(sigma, np.median(updates, axis=1), "-", color=BLUE, linewidth=1.8, label="median")
    if not noisy.all():
        most = found.updates[~noisy].max()
        ax.axhline(most, color=VERMILION, linestyle="--", linewidth=1.5, label=f"without noise: {most:,}")
    ax.set(title="Noise makes hard data easy", xlabel="standard deviation of the noise", ylabel="updates")
    ax.set(xscale="log", yscale="log")
    ax.legend(frameon=False, loc="lower left")
    return ax


def growth(found: Growth, ax: Axes | None = None) -> Axes:
    """Draw counts (or bytes, of `found.memory`) on logarithmic axes, their formula, and each law through the last count.

    Parameters
    ----------
    found : Growth
        What `rosenblatt.counting.growth` returned.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import counting, plot
    >>> source = "def table(n):\\n    return [i * j for i in range(n) for j in range(n)]"
    >>> ax = plot.growth(counting.growth(source, range(1, 9)))
    >>> ax.get_title()
    'n²: 3n² + 4n + 3'
    """
    ax = ax or new_axes()
    from matplotlib.ticker import (
        LogLocator,
        NullFormatter,
        StrMethodFormatter,
    )  # after new_axes, which says if it is missing

    sizes, counts = np.array(found.sizes), np.array(found.counts, dtype=np.float64)
    ax.set(xscale="log", yscale="log", xlabel="n", ylabel=found.unit)
    bottom, top = max(counts.min(), 1) / 3, max(counts.max(), 1) * 2
    ax.set_ylim(bottom, top)
    smooth = np.geomspace(sizes[0], sizes[-1], 100)
    labelled: list[NDArray] = []  # where, in parts of the width and of the height
    for law, error in found.fits.items():
        if np.isnan(error):
            continue
        shape = np.array([float(TERMS[law](n)) for n in smooth])
        line = shape / shape[-1] * counts[-1]
        ax.plot(smooth, line, color="0.8", linewidth=1)
        across = np.log(smooth / sizes[0]) / np.log(sizes[-1] / sizes[0])
        places = np.column_stack([across, np.log(np.maximum(line, bottom) / bottom) / np.log(top / bottom)])
        inside = np.flatnonzero((line >= bottom) & (across < 0.98))
        free = [i for i in inside if not any(_near(places[i], other) for other in labelled)]
        if free:
            i, late = free[0], across[free[0]] > 0.85
            labelled.append(places[i])
            ax.annotate(law, (smooth[i], line[i]), (-3 if late else 3, 3), textcoords="offset points", color="0.5",
                        horizontalalignment="right" if late else "left")  # fmt: skip
    if found.formula:
        ax.plot(sizes, [float(found(n)) for n in found.sizes], color=VERMILION, linewidth=2)
    ax.plot(sizes, counts, "o", color=BLUE)
    ax.set_title(f"{found.law}: {found.formula}" if found.formula else found.law)
    for axis, span in ((ax.xaxis, sizes[-1] / sizes[0]), (ax.yaxis, top / bottom)):
        if span < 1e5:  # beyond, powers of ten are enough
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.set_minor_formatter(NullFormatter())
    return ax


def _near(one: NDArray, other: NDArray) -> bool:
    """Whether two labels would be drawn over one another."""
    return abs(one[0] - other[0]) < 0.08 and abs(one[1] - other[1]) < 0.05
