"""What pictures of the plane share: arrows, lines at right angles to the weights, bands, hulls, rows of two classes.

One unit is as long across as up, so that what is at right angles looks so.
"""

from __future__ import annotations

from math import atan2, degrees
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import MatrixLike, dense, floats, numbers
from rosenblatt.plot.canvas import COLOURS, GREEN, GREY, MARKERS, SKY, Colour, halo, plain
from rosenblatt.theory.signed import two_valued

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Frame: TypeAlias = tuple[float, float, float, float]  # left, right, bottom, top

_SPACE = 0.15  # free on each side, in parts of the width


def read_pair(name: str, values: ArrayLike, *, zero: bool = True) -> NDArray:
    """Return the two numbers; all 0 only where `zero` allows it."""
    vector = floats(values)
    if vector.shape != (2,) or not np.isfinite(vector).all():
        raise InvalidParameter(name, values, "two finite numbers; the picture is of the plane")
    if not zero and not vector.any():
        raise InvalidParameter(name, values, "a vector that is not zero")
    return vector


def read_rows(X: MatrixLike, y: ArrayLike, what: str, *, one: bool = False) -> tuple[NDArray, NDArray, NDArray]:
    """Return rows of two features, their signs and the labels; with `one` there may be one label alone."""
    points = dense(numbers(X))
    if points.shape[1] != 2:
        raise InvalidData(f"X must have two features, but its shape is {points.shape}; {what} drawn in two dimensions")
    return points, *two_valued(y, len(points), one=one)


def square(points: NDArray) -> Frame:
    """Return the frame of a square round the points, with some space on each side."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = (0.5 + _SPACE) * (float((high - low).max()) or 1.0)
    (x, y) = (low + high) / 2
    return x - half, x + half, y - half, y + half


def keep_angles(ax: Axes, frame: Frame) -> None:
    """Show this frame, with a unit as long across as up."""
    ax.set(xlim=frame[:2], ylim=frame[2:], aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)


def directions(w: NDArray) -> tuple[NDArray, NDArray]:
    """Return the unit vector of w, and the one a quarter turn to its left, along the lines that w is normal to."""
    unit = w / np.hypot(*w)
    return unit, np.array([-unit[1], unit[0]])


def scatter_classes(ax: Axes, points: NDArray, signs: NDArray, classes: NDArray) -> None:
    """Draw the rows, each class with its colour and its marker."""
    for sign, marker in zip((-1, 1), MARKERS, strict=False):
        if (signs == sign).any():
            name = str(classes[min(int(sign > 0), len(classes) - 1)])
            across, up = points[signs == sign].T
            colour = COLOURS[int(sign > 0)]
            ax.scatter(across, up, 45, color=colour, marker=marker, label=plain(name.replace("-", "−")), zorder=3)


def ring(ax: Axes, points: NDArray, name: str) -> None:
    """Draw a ring round each of these rows."""
    if len(points):
        across, up = points.T
        ax.scatter(across, up, 190, facecolors="none", edgecolors="black", linewidths=1.4, zorder=3, label=name)


def arrow(ax: Axes, tip: NDArray, colour: Colour, tail: NDArray | None = None, *, thin: bool = False) -> None:
    """Draw an arrow from the tail, by default the origin, to the tip."""
    width, head = (1.4, 13) if thin else (2.4, 18)
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": head}
    ax.annotate("", at(tip), at(np.zeros(2) if tail is None else tail), arrowprops=style, zorder=4)


def vector(ax: Axes, tip: NDArray, colour: Colour, name: str) -> None:
    """Draw an arrow from the origin, with its name beyond the tip; nothing for zero."""
    if not tip.any():
        return
    arrow(ax, tip, colour)
    unit, _ = directions(tip)
    side = "left" if unit[0] > 0.5 else "right" if unit[0] < -0.5 else "center"
    height = "bottom" if unit[1] > 0.5 else "top" if unit[1] < -0.5 else "center"
    beyond = at(5 * unit)
    ax.annotate(name, at(tip), beyond, textcoords="offset points", color=colour, fontsize=13, ha=side, va=height)


def line(ax: Axes, w: NDArray, b: float, frame: Frame, colour: Colour, dashes: str = "-", name: str | None = None) -> None:
    """Draw the line ⟨w, x⟩ + b = 0 across the frame."""
    unit, along = directions(w)
    foot = -b * unit / np.hypot(*w)  # the point of the line nearest to the origin
    centre = np.array([frame[0] + frame[1], frame[2] + frame[3]]) / 2
    middle = foot + (centre @ along) * along
    far = 3 * (frame[1] - frame[0])
    ax.plot(*(middle[:, None] + np.outer(along, [-far, far])), dashes, color=colour, linewidth=1.8, label=name, zorder=2)


def weight_arrow(ax: Axes, w: NDArray, frame: Frame, colour: Colour, dashes: str, labels: tuple[str, str]) -> None:
    """Draw w and the line through the origin that it is at right angles to, with the right angle; nothing for zero."""
    if w.any():
        line(ax, w, 0.0, frame, colour, dashes, labels[1])
        right_angle(ax, np.zeros(2), *directions(w), frame, colour)
        vector(ax, w, colour, labels[0])


def right_angle(ax: Axes, corner: NDArray, one: NDArray, other: NDArray, frame: Frame, colour: Colour) -> None:
    """Draw the mark of a right angle at a corner, between two unit vectors."""
    side = 0.035 * (frame[1] - frame[0])
    path = corner + side * np.array([other, one + other, one])
    ax.plot(*path.T, color=colour, linewidth=1.2, zorder=2)


def half_plane(ax: Axes, w: NDArray, frame: Frame) -> None:
    """Shade where ⟨w, x⟩ > 0."""
    if w.any():
        unit, along = directions(w)
        far = 3 * (frame[1] - frame[0])
        ax.fill(*(far * np.array([-along, along, along + unit, unit - along])).T, color=GREEN, alpha=0.1, linewidth=0)


def angle(ax: Axes, u: NDArray, v: NDArray, radius: float, colour: Colour) -> None:
    """Draw the arc from u to v, the shorter way, with its degrees in the middle."""
    start = atan2(u[1], u[0])
    turn = atan2(u[0] * v[1] - u[1] * v[0], u @ v)
    arc = start + turn * np.linspace(0, 1, 60)
    ax.plot(radius * np.cos(arc), radius * np.sin(arc), color=colour, linewidth=1.5, zorder=3)
    place = radius * np.cos(arc[30]), radius * np.sin(arc[30])
    out = 14 * np.cos(arc[30]), 14 * np.sin(arc[30])
    text = f"{degrees(abs(turn)):.0f}°"
    ax.annotate(text, place, out, textcoords="offset points", color=colour, ha="center", va="center", fontsize=11)


def band(ax: Axes, w: NDArray, b: float, width: float, frame: Frame) -> NDArray:
    """Shade what is within `width` of the line ⟨w, x⟩ + b = 0, for a unit vector w; return the middle of the line."""
    _, along = directions(w)
    centre = np.array([frame[0] + frame[1], frame[2] + frame[3]]) / 2
    middle = -b * w + (centre @ along) * along
    ends = 3 * (frame[1] - frame[0]) * np.array([-along, along])
    for shift, dashes, thickness in ((0, "-", 2.0), (width, "--", 1.2), (-width, "--", 1.2)):
        ax.plot(*(middle + shift * w + ends).T, dashes, color="black", linewidth=thickness, zorder=1)
    corners = np.vstack([middle + width * w + ends, middle - width * w + ends[::-1]])
    ax.fill(*corners.T, color=SKY, alpha=0.25, linewidth=0, zorder=0)
    return middle


def gauge(ax: Axes, foot: NDArray, across: NDArray, name: str) -> None:
    """Draw a width as a double arrow from the line to the edge of the band, with its name beside it."""
    style = {"arrowstyle": "<->", "color": "black", "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", at(foot + across), at(foot), arrowprops=style, zorder=4)
    _, left = directions(across)
    place = at(foot + across / 2)
    side: dict[str, Any] = {"ha": "center", "va": "center"}
    if len(name) > 1 and abs(left[0]) > 0.5:
        side["ha"] = "left" if left[0] > 0 else "right"
    ax.annotate(name, place, at(9 * left), textcoords="offset points", fontsize=13, path_effects=halo(), **side)


def fill_hull(ax: Axes, points: NDArray, colour: Colour, name: str | None = None) -> None:
    """Shade the hull of the points, which may be a segment or a point."""
    corners = hull_corners(points)
    ax.fill(*corners.T, color=colour, alpha=0.15, linewidth=0, zorder=0, label=name)
    ax.plot(*np.vstack([corners, corners[:1]]).T, color=colour, linewidth=1.4, zorder=1)


def hull_corners(points: NDArray) -> NDArray:
    """Return the corners of the hull of the points, against the clock (Andrew 1979)."""
    ordered = np.unique(points, axis=0)
    half: list[list[NDArray]] = []
    for way in (ordered, ordered[::-1]):
        chain: list[NDArray] = []
        for point in way:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        half.append(chain[:-1])
    return np.array(half[0] + half[1] or ordered)


def _turn(a: NDArray, b: NDArray, c: NDArray) -> float:
    """Return what is positive if the way from a by b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def legend_below(ax: Axes, columns: int = 4) -> None:
    """Show the legend below the Axes, where it covers no row."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=columns, frameon=False, fontsize=11)


def origin(ax: Axes) -> None:
    """Draw the origin."""
    ax.plot(0, 0, "o", color="black", markersize=5, zorder=5)


def dotted(ax: Axes, start: NDArray, end: NDArray, colour: Colour = GREY) -> None:
    """Draw a dotted segment."""
    ax.plot(*np.column_stack([start, end]), ":", color=colour, linewidth=1.6, zorder=2)


def at(vector: NDArray) -> tuple[float, float]:
    """Return the vector as matplotlib takes a place."""
    return float(vector[0]), float(vector[1])


def number(value: float) -> str:
    """Return the number with up to four digits and a minus sign that is as wide as a plus."""
    return f"{value:.4g}".replace("-", "−")
