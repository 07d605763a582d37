"""Pictures of functions of a margin: losses, steps of rules, and the lines below a convex function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidParameter
from rosenblatt.exact.reading import NUMBER, POSITIVE, floats
from rosenblatt.losses import hinge, log, perceptron, zero_one
from rosenblatt.plot.canvas import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    STYLES,
    VERMILION,
    Colour,
    halo,
    label_end,
    new_axes,
    spread,
)
from rosenblatt.plot.plane import number
from rosenblatt.rules import step

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def losses(ax: Axes | None = None) -> Axes:
    """Draw the perceptron, hinge, log and zero-one losses of a margin, each labelled where it ends.

    The log loss is divided by log 2, so that it too is 1 at 0 and lies above the zero-one loss. A dot says which value the
    zero-one loss has where it jumps: a margin of 0 is a mistake.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> ax = plot.losses()
    >>> [line.get_label() for line in ax.lines[:4]]
    ['zero-one', 'hinge', 'log / log 2', 'perceptron']
    """
    ax = ax or new_axes()
    z = np.linspace(-3, 3, 601)
    apart = np.where(z == 0, np.nan, z)  # a line is not drawn where it jumps
    lines: dict[str, tuple[NDArray, Callable, Colour, str, int]] = {
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


def steps(rules: Mapping[str, Any], length: float = 1.0, ax: Axes | None = None) -> Axes:
    """Draw how far rules step: τ against the margin m of a row, each rule labelled where its line begins.

    Parameters
    ----------
    rules : mapping of str to rule
        Rules of `rosenblatt.rules` by name.
    length : float, default=1.0
        ‖x‖² of the row.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt.rules import PA1, Perceptron
    >>> ax = steps({"perceptron": Perceptron(0.0, 1.0), "PA": PA1(float("inf"))}, length=2.0)
    >>> ax.get_title(), float(ax.lines[1].get_ydata()[0])  # (1 − m)/2 for m = −2
    ('The step τ of a row with ‖x‖² = 2', 1.5)
    """
    if not rules:
        raise InvalidParameter("rules", rules, "one rule or more, such as {'perceptron': rules.Perceptron(0.0, 1.0)}")
    POSITIVE.check("length", length)
    ax = ax or new_axes(figsize=(7.5, 5))
    margin = np.linspace(-2, 2, 801)
    found = np.array([[step(rule, float(m), float(length), 1, True) for m in margin] for rule in rules.values()])
    places = spread(found[:, 0], 0.06 * found.max())
    for k, (name, taus, height) in enumerate(zip(rules, found, places, strict=True)):
        jumps = np.flatnonzero(np.abs(np.diff(taus)) > 0.05 * np.ptp(taus)) + 1  # where a rule stops moving at once
        line, colour = np.insert([margin, taus], jumps, np.nan, axis=1), COLOURS[(k + 1) % len(COLOURS)]
        ax.plot(*line, STYLES[k % len(STYLES)], color=colour, linewidth=2.4, label=name)
        label_end(ax, name, (-2, height), colour, left=True)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_title(f"The step τ of a row with ‖x‖² = {number(length)}")
    ax.set_xlabel("margin m before the step", fontsize=12)
    ax.set_ylabel("τ", fontsize=12)
    ax.yaxis.tick_right()
    ax.yaxis.set_label_position("right")
    ax.set(xlim=(-2, 2), ylim=(-0.05, None))
    ax.spines[["top", "left"]].set_visible(False)
    return ax


def subgradient(
    x0: float = 0.0,
    slopes: Sequence[float] = (-1.0, -0.6, -0.25, 0.5),
    lines: Sequence[Sequence[float]] = ((-1.0, 0.0), (0.0, 0.0)),
    ax: Axes | None = None,
) -> Axes:
    """Draw the subgradients of a convex function f at x0: the slopes c with f(x) − f(x0) ≥ c(x − x0) for every x.

    f is the largest of some lines, by default the perceptron loss max(0, −x). The lines through (x0, f(x0)) that stay below
    f are those of subgradients; at a kink there are many. The line of a slope that is none is dashed, and what it has above
    f is shaded. The inequality is drawn for one x and one c.

    Parameters
    ----------
    x0 : float, default=0.0
        The place.
    slopes : sequence of float, default=(-1.0, -0.6, -0.25, 0.5)
        The values of c whose lines are drawn.
    lines : sequence of (slope, intercept), default=((-1.0, 0.0), (0.0, 0.0))
        The lines of which f is the largest.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> subgradient(0).get_title()
    'f(x) = max(−x, 0): every c from −1 to 0 is a subgradient at 0'
    >>> subgradient(2).get_title()
    'f(x) = max(−x, 0): 0 is the only subgradient at 2'
    """
    NUMBER.check("x0", x0)
    parts, tried = floats(lines), floats(slopes)
    if parts.ndim != 2 or parts.shape[1] != 2 or not len(parts) or not np.isfinite(parts).all():
        raise InvalidParameter("lines", lines, "pairs (slope, intercept) of finite numbers")
    if tried.ndim != 1 or not np.isfinite(tried).all():
        raise InvalidParameter("slopes", slopes, "finite numbers")

    def f(x: NDArray) -> NDArray:
        return (np.multiply.outer(x, parts[:, 0]) + parts[:, 1]).max(axis=-1)

    x0, height = float(x0), float(f(np.array(float(x0))))
    touching = parts[np.isclose(parts @ [x0, 1], height, rtol=1e-12, atol=1e-12), 0]
    least, most = float(touching.min()), float(touching.max())
    ax = ax or new_axes(figsize=(7.5, 5))
    x = x0 + np.linspace(-3, 3, 601)
    ax.plot(x, f(x), color=BLUE, linewidth=3.5, label="f", zorder=3)
    below, values = [c for c in tried if least <= c <= most], f(x)
    lowest, highest = min([values.min(), *(height - 3 * abs(c) for c in below)]), values.max()
    for c in tried:
        belongs = least <= c <= most
        tangent = height + c * (x - x0)
        colour, dashes = (GREEN, "-") if belongs else (VERMILION, "--")
        ax.plot(x, tangent, dashes, color=colour, linewidth=1.8, label=f"c = {number(float(c))}", zorder=2)
        words = f"c = {number(float(c))}" + ("" if belongs else ", above f")
        label_end(ax, words, (x[-1], np.clip(tangent[-1], lowest, highest)), colour)
        if not belongs:
            ax.fill_between(x, f(x), tangent, where=tangent > f(x), color=VERMILION, alpha=0.15, linewidth=0)
    if below:
        _draw_inequality(ax, x0, height, min(below, key=lambda c: abs(c - (least + most) / 2)), f)
    ax.plot(x0, height, "o", color="black", markersize=9, zorder=5)
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 12, "path_effects": halo()}
    ax.annotate("(x₀, f(x₀))", (x0, height), (12, 34), ha="center", **style)
    formula = "max(" + ", ".join(_line_text(slope, shift) for slope, shift in parts) + ")"
    said = f"every c from {number(least)} to {number(most)} is a" if least < most else f"{number(least)} is the only"
    ax.set_title(f"f(x) = {formula}: {said} subgradient at {number(x0)}")
    room = 0.08 * (highest - lowest) or 1.0
    ax.set(xlabel="x", ylabel="f(x)", xlim=(x[0], x[-1]), ylim=(lowest - room, highest + room))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _draw_inequality(ax: Axes, x0: float, height: float, c: float, f: Callable) -> None:
    """Draw f(x) − f(x₀) and c(x − x₀) as two uprights at one x, on the side where f is larger."""
    x = max((x0 - 1.8, x0 + 1.8), key=lambda x: float(f(np.array(x))))
    words_style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 12, "va": "center", "path_effects": halo()}
    ax.axhline(height, color=GREY, linewidth=1, linestyle=":")
    for shift, top, words, colour in (
        (-0.06, float(f(np.array(x))), "f(x) − f(x₀)", BLUE),
        (0.06, height + c * (x - x0), "c(x − x₀)", GREEN),
    ):
        style = {"arrowstyle": "<->", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x + shift, top), (x + shift, height), arrowprops=style, zorder=4)
        side = "right" if shift < 0 else "left"
        place = (x + shift, (top + height) / 2)
        away = (60 * shift, 0)
        ax.annotate(words, place, away, color=colour, ha=side, **words_style)


def _line_text(slope: float, shift: float) -> str:
    """Return ax + b without what is 0, and without a factor of 1."""
    factor = {1.0: "", -1.0: "−"}.get(slope, number(slope))
    if not slope:
        return number(shift)
    sign = f" {'+' if shift > 0 else '−'} {number(abs(shift))}" if shift else ""
    return f"{factor}x{sign}"
