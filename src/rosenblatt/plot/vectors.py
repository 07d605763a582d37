"""Pictures of vectors in the plane: what an update does to the weights, how wide the margin is, how von Neumann's walk
finds a separator, and which rows the σ-perceptron answers for.

One unit is as long across as up, so that what is at right angles looks so.
"""

from __future__ import annotations

from math import atan2, degrees
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import COUNT, MatrixLike, Quantity, dense, numbers
from rosenblatt.feasibility.first_order import VonNeumann
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.feasibility.search import Budget
from rosenblatt.plot.canvas import BLUE, COLOURS, GREEN, GREY, MARKERS, SKY, VERMILION, Colour, new_axes
from rosenblatt.theory.geometry import gamma_affine, gamma_origin
from rosenblatt.theory.signed import two_valued

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIGMA = Quantity(0, open_low=True, high=1)
_SPACE = 0.15  # free on each side, in parts of the width


def update(w: ArrayLike, x: ArrayLike, y: float, ax: Axes | None = None) -> Axes:
    """Draw how an update of the perceptron turns the weights: w, y·x and w + y·x, with the lines at right angles to w.

    An update adds y·x, so it turns w towards y·x, by which the angle between the two gets smaller and the margin of the row
    larger, by ‖x‖². The half-plane that the new weights call positive is shaded. A row whose margin is above 0 is right: it
    is drawn without an update.

    Parameters
    ----------
    w : (2,) array
        The weights before the update; zero weights have no line.
    x : (2,) array
        The row, not all 0.
    y : {-1, 1}
        Its label.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> update(w=[1, 2], x=[3, -2], y=1).get_title()
    'The margin of x rises by ‖x‖² = 13, from −1 to 12'
    """
    before, row = _pair("w", w), _pair("x", x)
    if y not in (-1, 1):
        raise InvalidParameter("y", y, "-1 or 1")
    if not row.any():
        raise InvalidParameter("x", x, "a vector that is not zero")
    towards = float(y) * row
    margin = float(before @ towards)
    learned = margin <= 0
    after = before + towards if learned else before
    ax = ax or new_axes(figsize=(6, 6))
    frame = _square(np.array([np.zeros(2), before, row, towards, after]))
    _half_plane(ax, after, frame)
    if before.any():
        _normal_line(ax, before, frame, BLUE, "--", "the line of w")
        _vector(ax, before, BLUE, "w")
    _vector(ax, towards, VERMILION, "x" if y > 0 else "−x")
    if y < 0:
        ax.plot(*row, MARKERS[0], color=VERMILION, markersize=9, markeredgewidth=2)
        ax.annotate("x", _at(row), (7, 3), textcoords="offset points", color=VERMILION, fontsize=12)
    if learned and after.any():
        _normal_line(ax, after, frame, GREEN, "-", "the line of the new weights")
        _vector(ax, after, GREEN, "w + x" if y > 0 else "w − x")
        for end in (before, towards):  # the other two sides of the parallelogram
            ax.plot(*np.column_stack([end, after]), ":", color=GREY, linewidth=1.2, zorder=1)
        if before.any():
            _angle(ax, before, towards, 0.22 * (frame[1] - frame[0]), BLUE)
        _angle(ax, after, towards, 0.11 * (frame[1] - frame[0]), GREEN)
    elif before.any():
        _angle(ax, before, towards, 0.22 * (frame[1] - frame[0]), BLUE)
    ax.plot(0, 0, "o", color="black", markersize=4)
    old = _number(margin)
    rise = f"The margin of x rises by ‖x‖² = {_number(float(row @ row))}, from {old} to {_number(float(after @ towards))}"
    ax.set_title(rise if learned else f"The margin of x is {old}, above 0: no update")
    _equal(ax, frame)
    if before.any() or after.any():
        ax.legend(frameon=False, loc="best")
    return ax


def margin(X: MatrixLike, y: ArrayLike, *, intercept: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the widest band between two classes of points: its middle line, γ to both sides, and the rows that hold it.

    The rows that hold it, the support vectors, are those of the proof that no wider band exists. They have rings.

    Parameters
    ----------
    X : (rows, 2) array
        The rows.
    y : (rows,) array
        Two labels, of which the second is the positive one.
    intercept : bool, default=True
        Whether the line may miss the origin: γ is that of `theory.gamma_affine`, else that of `theory.gamma_origin`.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    NotSeparable
        If no line separates the classes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> margin([[0, 0], [0, 1], [2, 0], [3, 2]], ["no", "no", "yes", "yes"]).get_title()
    'γ = 1, 2 support vectors'
    """
    points = dense(numbers(X))
    if points.shape[1] != 2:
        raise InvalidData(f"X must have two features, but its shape is {points.shape}; a margin is drawn in two dimensions")
    signs, classes = two_valued(y, len(points), one=not intercept)
    best = gamma_affine(points, y) if intercept else gamma_origin(points, y)
    w, b, gamma = best.w, best.b, best.lower
    ax = ax or new_axes(figsize=(6.5, 6))
    frame = _square(points if intercept else np.vstack([points, np.zeros(2)]))
    foot = -b * w  # the point of the line nearest to the origin
    along = np.array([-w[1], w[0]])
    middle = foot + (points.mean(axis=0) @ along) * along
    ends = 3 * (frame[1] - frame[0]) * np.array([-along, along])
    for shift, dashes, width in ((0, "-", 2.0), (gamma, "--", 1.2), (-gamma, "--", 1.2)):
        ax.plot(*(middle + shift * w + ends).T, dashes, color="black", linewidth=width, zorder=1)
    corners = np.vstack([middle + gamma * w + ends, middle - gamma * w + ends[::-1]])
    ax.fill(*corners.T, color=SKY, alpha=0.25, linewidth=0, zorder=0)
    _scatter_classes(ax, points, signs, classes)
    support = points[list(best.rows)]
    across, up = support.T
    ax.scatter(across, up, 190, facecolors="none", edgecolors="black", linewidths=1.4, zorder=3, label="support vector")
    for point, sign in zip(support, signs[list(best.rows)], strict=True):
        ax.plot(*np.column_stack([point, point - sign * gamma * w]), ":", color=GREY, linewidth=1.5, zorder=2)
    _gauge(ax, middle, gamma * w)
    if not intercept:
        ax.plot(0, 0, "o", color="black", markersize=5)
    ax.set_title(f"γ = {gamma:.4g}, {len(support)} support vectors")
    _equal(ax, frame)
    ax.legend(loc="best", framealpha=0.9)
    return ax


def hull(A: MatrixLike, *, steps: int = 20, away: bool = False, ax: Axes | None = None) -> Axes:
    """Draw von Neumann's walk in the hull of the unit rows, from the first of them towards the point nearest to 0.

    Each step goes from p towards the row whose product with p is least, as far as p grows shorter. It ends where p has a
    positive product with every row: p separates them. If 0 lies in the hull, nothing does, and the walk goes on towards 0.

    Parameters
    ----------
    A : (rows, 2) array
        The rows, none of them 0; of labelled data y·x.
    steps : int, default=20
        The most steps to draw.
    away : bool, default=False
        Whether to step away from rows too, as `find_interior(A, "von-neumann")` does.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> hull([[1, 0], [0, 1]]).get_title()
    'After 2 steps p separates the rows: ‖p‖ = 0.7071'
    """
    COUNT.check("steps", steps)
    rows = dense(numbers(A, "A"))
    if rows.shape[1] != 2 or not rows.any(axis=1).all():
        raise InvalidData(f"A must have two columns and no row of zeros; its shape is {rows.shape}")
    unit = rows / row_lengths(rows)[:, None]
    path, solved = _walk(rows, steps, away)
    ax = ax or new_axes(figsize=(6.5, 6.5))
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=0.8, zorder=1)
    corners = unit[np.argsort(np.arctan2(unit[:, 1], unit[:, 0]))]  # on a circle every point is a corner
    ax.fill(*corners.T, facecolor=SKY, alpha=0.25, edgecolor=BLUE, linewidth=1, zorder=0, label="hull of the unit rows")
    across, up = unit.T
    ax.scatter(across, up, 45, color=BLUE, zorder=3, label="unit row")
    ax.plot(*path.T, "o-", color=VERMILION, linewidth=1.3, markersize=3.5, zorder=5, label="p, step by step")
    frame = (-1.25, 1.25, -1.25, 1.25)
    if solved:
        _normal_line(ax, path[-1], frame, GREEN, "-", "the line of p")
        _vector(ax, path[-1], GREEN, "")
        ax.annotate("p", _at(path[-1] / 2), (0, -14), textcoords="offset points", color=GREEN, fontsize=12, ha="center")
    ax.plot(0, 0, "o", color="black", markersize=5, zorder=5)
    ending = "p separates the rows" if solved else "p does not separate the rows"
    ax.set_title(f"After {len(path)} step{'s' * (len(path) > 1)} {ending}: ‖p‖ = {np.hypot(*path[-1]):.4g}")
    _equal(ax, frame)
    ax.legend(loc="best", framealpha=0.9)
    return ax


def _walk(A: NDArray, steps: int, away: bool) -> tuple[NDArray, bool]:
    """Return the points of the walk, (steps, 2), and whether the last of them separates the rows."""
    path: list[NDArray] = []
    for stage in VonNeumann(away=away).search(A, Budget(updates=steps), np.random.default_rng(0)):
        path.append(stage.x)
        if stage.solved:
            return np.array(path), True
    return np.array(path), False


def cone(w: ArrayLike, X: MatrixLike, y: ArrayLike, *, sigma: float = 0.1, ax: Axes | None = None) -> Axes:
    """Draw the cone round the line of w in which the σ-perceptron answers for no row: that of the x with |cos(w, x)| < σ.

    Rows outside the cone are far. A far row on the wrong side has a ring: the σ-perceptron learns until there is none.

    Parameters
    ----------
    w : (2,) array
        The weights, not all 0.
    X : (rows, 2) array
        The rows.
    y : (rows,) array
        Two labels, of which the second is the positive one.
    sigma : float, default=0.1
        σ, between 0 and 1: the sine of the angle between the line and the edge of the cone.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> cone([0, 1], [[3, 1], [0, 2], [1, -2]], [-1, 1, 1], sigma=0.5).get_title()
    'σ = 0.5: 1 of 3 rows near the line, 1 far mistake'
    """
    weights, points = _pair("w", w), dense(numbers(X))
    _SIGMA.check("sigma", sigma)
    if not weights.any():
        raise InvalidParameter("w", w, "a vector that is not zero")
    if points.shape[1] != 2:
        raise InvalidData(f"X must have two features, but its shape is {points.shape}; a cone is drawn in two dimensions")
    signs, classes = two_valued(y, len(points), one=True)
    unit, size = weights / np.hypot(*weights), row_lengths(points)
    cosine = np.divide(points @ unit, size, out=np.zeros(len(points)), where=size > 0)
    near = np.abs(cosine) < sigma
    wrong = ~near & (signs * cosine < 0)
    ax = ax or new_axes(figsize=(6.5, 6.5))
    frame = _square(np.vstack([points, np.zeros(2)]))
    along, far = np.array([-unit[1], unit[0]]), 3 * (frame[1] - frame[0])
    tilt = sigma / np.sqrt(1 - sigma**2)
    for number, side in enumerate((along, -along)):
        edges = far * np.array([np.zeros(2), side + tilt * unit, side - tilt * unit])
        name = None if number else "|cos(w, x)| < σ"
        ax.fill(*edges.T, color=GREY, alpha=0.2, linewidth=0, zorder=0, label=name)
    _normal_line(ax, weights, frame, "black", "-", "the line of w")
    _vector(ax, unit * 0.3 * (frame[1] - frame[0]), "black", "w")
    _scatter_classes(ax, points, signs, classes)
    if wrong.any():
        across, up = points[wrong].T
        ax.scatter(across, up, 190, facecolors="none", edgecolors="black", linewidths=1.4, zorder=3, label="far mistake")
    mistakes = "1 far mistake" if wrong.sum() == 1 else f"{wrong.sum()} far mistakes"
    ax.set_title(f"σ = {sigma:g}: {near.sum()} of {len(points)} rows near the line, {mistakes}")
    _equal(ax, frame)
    ax.legend(loc="best", framealpha=0.9)
    return ax


def _scatter_classes(ax: Axes, points: NDArray, signs: NDArray, classes: NDArray) -> None:
    """Draw the rows, each class with its colour and its marker."""
    for sign, marker in zip((-1, 1), MARKERS, strict=False):
        if (signs == sign).any():
            name = str(classes[min(int(sign > 0), len(classes) - 1)])
            across, up = points[signs == sign].T
            colour = COLOURS[int(sign > 0)]
            ax.scatter(across, up, 45, color=colour, marker=marker, label=name.replace("-", "−"), zorder=3)


def _pair(name: str, values: ArrayLike) -> NDArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (2,) or not np.isfinite(vector).all():
        raise InvalidParameter(name, values, "two finite numbers; the picture is of the plane")
    return vector


def _square(points: NDArray) -> tuple[float, float, float, float]:
    """Return (left, right, bottom, top) of a square round the points, with some space on each side."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = (0.5 + _SPACE) * (float((high - low).max()) or 1.0)
    (x, y) = (low + high) / 2
    return x - half, x + half, y - half, y + half


def _equal(ax: Axes, frame: tuple[float, float, float, float]) -> None:
    ax.set(xlim=frame[:2], ylim=frame[2:], aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)


def _vector(ax: Axes, tip: NDArray, colour: Colour, name: str) -> None:
    """Draw an arrow from the origin, with its name beyond the tip."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.4, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 18}
    ax.annotate("", _at(tip), (0, 0), arrowprops=style, zorder=4)
    unit = tip / np.hypot(*tip)
    side = "left" if unit[0] > 0.5 else "right" if unit[0] < -0.5 else "center"
    height = "bottom" if unit[1] > 0.5 else "top" if unit[1] < -0.5 else "center"
    ax.annotate(name, _at(tip), _at(5 * unit), textcoords="offset points", color=colour, fontsize=12, ha=side, va=height)


def _normal_line(ax: Axes, w: NDArray, frame: tuple[float, ...], colour: Colour, dashes: str, name: str) -> None:
    """Draw the line through the origin that w is at right angles to, and the right angle."""
    unit = w / np.hypot(*w)
    along = np.array([-unit[1], unit[0]])
    far = 3 * (frame[1] - frame[0])
    ax.plot(*np.outer(along, [-far, far]), dashes, color=colour, linewidth=1.8, label=name, zorder=2)
    side = 0.03 * (frame[1] - frame[0])
    ax.plot(*np.column_stack([side * along, side * (along + unit), side * unit]), color=colour, linewidth=1, zorder=2)


def _half_plane(ax: Axes, w: NDArray, frame: tuple[float, ...]) -> None:
    """Shade where ⟨w, x⟩ > 0."""
    if w.any():
        unit = w / np.hypot(*w)
        along = np.array([-unit[1], unit[0]])
        far = 3 * (frame[1] - frame[0])
        ax.fill(*(far * np.array([-along, along, along + unit, unit - along])).T, color=GREEN, alpha=0.08, linewidth=0)


def _angle(ax: Axes, u: NDArray, v: NDArray, radius: float, colour: Colour) -> None:
    """Draw the arc from u to v, the shorter way, with its degrees in the middle."""
    start = atan2(u[1], u[0])
    turn = atan2(u[0] * v[1] - u[1] * v[0], u @ v)
    arc = start + turn * np.linspace(0, 1, 60)
    ax.plot(radius * np.cos(arc), radius * np.sin(arc), color=colour, linewidth=1.5, zorder=3)
    place = radius * np.cos(arc[30]), radius * np.sin(arc[30])
    out = 13 * np.cos(arc[30]), 13 * np.sin(arc[30])
    text = f"{degrees(abs(turn)):.0f}°"
    ax.annotate(text, place, out, textcoords="offset points", color=colour, ha="center", va="center", fontsize=10)


def _gauge(ax: Axes, foot: NDArray, across: NDArray) -> None:
    """Draw γ as a double arrow from the line to the edge of the band."""
    style = {"arrowstyle": "<->", "color": "black", "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", _at(foot + across), _at(foot), arrowprops=style, zorder=4)
    unit = across / np.hypot(*across)
    beside = (-9 * unit[1], 9 * unit[0])
    ax.annotate("γ", _at(foot + across / 2), beside, textcoords="offset points", fontsize=13, ha="center", va="center")


def _at(vector: NDArray) -> tuple[float, float]:
    return float(vector[0]), float(vector[1])


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")
