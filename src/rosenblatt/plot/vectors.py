"""Pictures of vectors in the plane: a projection, what the intercept does, what an update does to the weights, and how von
Neumann's walk finds a separator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import COUNT, MatrixLike, dense, floats, numbers
from rosenblatt.feasibility.first_order import VonNeumann
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.feasibility.search import Budget, plural
from rosenblatt.plot import plane
from rosenblatt.plot.canvas import BLUE, COLOURS, GREEN, GREY, MARKERS, STYLES, VERMILION, Colour, new_axes
from rosenblatt.plot.plane import at, number, read_pair
from rosenblatt.theory import geometry

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def projection(u: ArrayLike, v: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the projection p of u on v, the right angle at p, and the distance of u to the line of v.

    Parameters
    ----------
    u : (2,) array
        What is projected.
    v : (2,) array
        The vector that u is projected on, not all 0.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> projection(u=[1, 3], v=[4, 2]).get_title()
    'p = ⟨u, v⟩/⟨v, v⟩ · v = 10/20 · (4, 2) = (2, 1)'
    """
    point, onto = read_pair("u", u), read_pair("v", v, zero=False)
    shadow = geometry.projection(point, onto)
    rest = point - shadow
    ax = ax or new_axes(figsize=(6, 6))
    frame = plane.square(np.array([np.zeros(2), point, onto, shadow]))
    unit, along = plane.directions(onto)
    plane.line(ax, along, 0.0, frame, BLUE, "--")
    plane.arrow(ax, onto, BLUE)
    plane.vector(ax, point, VERMILION, "u")
    if shadow.any():
        plane.arrow(ax, shadow, GREEN)
    length, distance = np.hypot(*shadow), np.hypot(*rest)
    beside = -along if rest @ along > 0 else along
    _beside(ax, onto, 10 * beside, "v", BLUE, size=13)
    _beside(ax, shadow / 2, 10 * beside, f"p, ‖p‖ = {number(float(length))}", GREEN)
    if distance > 1e-9 * np.hypot(*point):
        plane.dotted(ax, shadow, point)
        plane.right_angle(ax, shadow, rest / distance, -unit if point @ onto >= 0 else unit, frame, GREY)
        _beside(ax, (shadow + point) / 2, 12 * unit, f"distance {number(float(distance))}", "black")
    plane.origin(ax)
    product, square = (number(float(onto @ other)) for other in (point, onto))
    ax.set_title(f"p = ⟨u, v⟩/⟨v, v⟩ · v = {product}/{square} · {_tuple(onto)} = {_tuple(shadow)}")
    plane.keep_angles(ax, frame)
    return ax


def intercept(w: ArrayLike, intercepts: Sequence[float] = (-4, 0, 4), ax: Axes | None = None) -> Axes:
    """Draw what the intercept does: the lines ⟨w, x⟩ + b = 0 of one w and several b.

    The lines are parallel, −b/‖w‖ from the origin in the direction of w. The side that w points to is the positive one, so
    a larger b moves the line towards the negative side and makes more of the plane positive.

    Parameters
    ----------
    w : (2,) array
        The weights, not all 0.
    intercepts : sequence of float, default=(-4, 0, 4)
        The values of b, each once.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> [text.get_text() for text in intercept([1, 2], [-5, 5]).get_legend().get_texts()]
    ['b = −5', 'b = 5']
    """
    normal, values = read_pair("w", w, zero=False), floats(intercepts)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or len(np.unique(values)) < len(values):
        raise InvalidParameter("intercepts", intercepts, "finite numbers, each once")
    values = np.sort(values)
    unit, along = plane.directions(normal)
    feet = np.outer(-values / np.hypot(*normal), unit)
    ax = ax or new_axes(figsize=(6.5, 6.5))
    shown = np.vstack([feet, normal, np.zeros(2)])
    centre = (shown.min(axis=0) + shown.max(axis=0)) / 2
    half = 1.7 * float(np.hypot(*(shown - centre).T).max())
    frame = (centre[0] - half, centre[0] + half, centre[1] - half, centre[1] + half)
    for k, (b, foot) in enumerate(zip(values, feet, strict=True)):
        colour = COLOURS[(k + 1) % len(COLOURS)]
        plane.line(ax, normal, float(b), frame, colour, STYLES[k % len(STYLES)], f"b = {number(float(b))}")
        for sign, way in (("+", unit), ("−", -unit)):
            _beside(ax, foot - 0.7 * half * along, 13 * way, sign, colour, size=17)
    plane.right_angle(ax, np.zeros(2), unit, along, frame, "black")
    plane.vector(ax, normal, "black", "w")
    plane.origin(ax)
    if len(values) > 1:
        tail, tip = feet[[0, -1]] + 0.55 * half * along
        plane.arrow(ax, tip, GREY, tail)
        _beside(ax, (feet[0] + feet[1]) / 2 + 0.55 * half * along, 10 * along, "larger b", "black")
    ax.set_title("⟨w, x⟩ + b = 0 is −b/‖w‖ from 0 along w:\na larger b moves it towards the negative side")
    plane.keep_angles(ax, frame)
    plane.legend_below(ax, 3)
    return ax


class _Update(NamedTuple):
    """A mistake on x and what the perceptron makes of it."""

    w: NDArray
    x: NDArray
    y: float

    @property
    def towards(self) -> NDArray:
        return self.y * self.x

    @property
    def margin(self) -> float:
        return float(self.w @ self.towards)

    @property
    def after(self) -> NDArray:
        return self.w + self.towards if self.margin <= 0 else self.w

    @property
    def frame(self) -> plane.Frame:
        return plane.square(np.array([np.zeros(2), self.w, self.x, self.towards, self.after]))

    @property
    def names(self) -> tuple[str, str]:
        """What y·x and w + y·x are called."""
        return ("x", "w + x") if self.y > 0 else ("−x", "w − x")

    def draw_old(self, ax: Axes) -> None:
        plane.weight_arrow(ax, self.w, self.frame, BLUE, "--", ("w", "the line of w"))

    def draw_new(self, ax: Axes) -> None:
        plane.weight_arrow(ax, self.after, self.frame, GREEN, "-", (self.names[1], "the line of the new weights"))

    def draw_point(self, ax: Axes) -> None:
        ax.plot(*self.x, MARKERS[int(self.y > 0)], color=VERMILION, markersize=10, markeredgewidth=2.5, zorder=5)
        ax.annotate("x", at(self.x), (8, 4), textcoords="offset points", color=VERMILION, fontsize=13)


def _read_update(w: ArrayLike, x: ArrayLike, y: float) -> _Update:
    before, row = read_pair("w", w), read_pair("x", x, zero=False)
    if y not in (-1, 1):
        raise InvalidParameter("y", y, "-1 or 1")
    return _Update(before, row, float(y))


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
    >>> update(w=[1, 2], x=[3, -2], y=1).get_title()
    'The margin of x rises by ‖x‖² = 13, from −1 to 12'
    """
    move = _read_update(w, x, y)
    before, towards, after = move.w, move.towards, move.after
    learned = move.margin <= 0
    ax = ax or new_axes(figsize=(6, 6))
    width = move.frame[1] - move.frame[0]
    plane.half_plane(ax, after, move.frame)
    move.draw_old(ax)
    plane.vector(ax, towards, VERMILION, move.names[0])
    if y < 0:
        move.draw_point(ax)
    if learned and after.any():
        move.draw_new(ax)
        for end in (before, towards):  # the other two sides of the parallelogram
            plane.dotted(ax, end, after)
    if before.any():
        plane.angle(ax, before, towards, 0.22 * width, BLUE)
    if learned and after.any():
        plane.angle(ax, after, towards, 0.11 * width, GREEN)
    plane.origin(ax)
    old = number(move.margin)
    rise = (
        f"The margin of x rises by ‖x‖² = {number(float(move.x @ move.x))}, from {old} to {number(float(after @ towards))}"
    )
    ax.set_title(rise if learned else f"The margin of x is {old}, above 0: no update")
    plane.keep_angles(ax, move.frame)
    if before.any() or after.any():
        ax.legend(frameon=False, loc="best")
    return ax


def update_steps(w: ArrayLike, x: ArrayLike, y: float, axes: Sequence[Axes] | None = None) -> NDArray:
    """Draw an update of the perceptron in six steps: from the line of w and a row on its wrong side to the new line.

    The steps are those of a blackboard: the line of w, the row x, x as a vector, y·x put at the tip of w, the new weights,
    and their line. The half-plane that is called positive is shaded in the first, the second and the last.

    Parameters
    ----------
    w : (2,) array
        The weights before the update; zero weights have no line.
    x : (2,) array
        A row, not all 0, whose margin y·⟨w, x⟩ is at most 0.
    y : {-1, 1}
        Its label.
    axes : six matplotlib Axes, optional
        Where to draw; new ones by default, in two rows of three.

    Returns
    -------
    (6,) array of matplotlib Axes

    Examples
    --------
    >>> for ax in update_steps(w=[1, 3], x=[3, -2], y=1):
    ...     print(ax.get_title())
    1. w and its line
    2. x is positive, its margin −3
    3. x as a vector
    4. x at the tip of w
    5. the new weights w + x
    6. their line: x has margin 10
    """
    move = _read_update(w, x, y)
    if move.margin > 0:
        allowed = f"a row with y·⟨w, x⟩ ≤ 0; this one has {number(move.margin)} and makes no update"
        raise InvalidParameter("x", x, allowed)
    panels = np.ravel(new_axes(2, 3, figsize=(11, 7.6)) if axes is None else np.asarray(axes))
    if len(panels) != 6:
        raise InvalidParameter("axes", f"{len(panels)} Axes", "six of them, one for each step")
    towards, after = move.towards, move.after
    shift, total = move.names
    titles = (
        "w and its line",
        f"x is {'positive' if y > 0 else 'negative'}, its margin {number(move.margin)}",
        "x as a vector" if y > 0 else "−x as a vector",
        f"{shift} at the tip of w",
        f"the new weights {total}",
        f"their line: x has margin {number(float(after @ towards))}",
    )
    for k, (ax, title) in enumerate(zip(panels, titles, strict=True), 1):
        if k in (1, 2, 6):
            plane.half_plane(ax, move.w if k < 6 else after, move.frame)
        if k <= 4:
            move.draw_old(ax)
        if k in (2, 6) or (k == 3 and y < 0):
            move.draw_point(ax)
        if k == 3:
            plane.vector(ax, towards, VERMILION, shift)
        if k == 4:
            plane.arrow(ax, after, VERMILION, move.w)
            _beside(ax, move.w + towards / 2, 13 * plane.directions(towards)[1], shift, VERMILION, size=13)
        if k == 5:
            plane.dotted(ax, np.zeros(2), move.w, BLUE)
            plane.dotted(ax, move.w, after, VERMILION)
        if k in (4, 5):
            plane.vector(ax, after, GREEN, total if after.any() else "")
        if k == 6:
            move.draw_new(ax)
        plane.origin(ax)
        plane.keep_angles(ax, move.frame)
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{k}. {title}", fontsize=14)
    return panels


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
    plane.fill_hull(ax, unit, BLUE, "hull of the unit rows")
    across, up = unit.T
    ax.scatter(across, up, 45, color=BLUE, zorder=3, label="unit row")
    ax.plot(*path.T, "o-", color=VERMILION, linewidth=1.3, markersize=3.5, zorder=5, label="p, step by step")
    frame = (-1.25, 1.25, -1.25, 1.25)
    if solved:
        plane.weight_arrow(ax, path[-1], frame, GREEN, "-", ("", "the line of p"))
        ax.annotate("p", at(path[-1] / 2), (0, -14), textcoords="offset points", color=GREEN, fontsize=12, ha="center")
    plane.origin(ax)
    ending = "p separates the rows" if solved else "p does not separate the rows"
    ax.set_title(f"After {plural(len(path), 'step')} {ending}: ‖p‖ = {np.hypot(*path[-1]):.4g}")
    plane.keep_angles(ax, frame)
    plane.legend_below(ax, 2)
    return ax


def _walk(A: NDArray, steps: int, away: bool) -> tuple[NDArray, bool]:
    """Return the points of the walk, (steps, 2), and whether the last of them separates the rows."""
    path: list[NDArray] = []
    for stage in VonNeumann(away=away).search(A, Budget(updates=steps), np.random.default_rng(0)):
        path.append(stage.x)
        if stage.solved:
            return np.array(path), True
    return np.array(path), False


def _beside(ax: Axes, place: NDArray, offset: NDArray, words: str, colour: Colour, size: int = 12) -> None:
    """Write words beside a place, so many points away, on the side that they are moved to."""
    side = "left" if offset[0] > 4 else "right" if offset[0] < -4 else "center"
    height = "bottom" if offset[1] > 4 else "top" if offset[1] < -4 else "center"
    away = at(offset)
    ax.annotate(words, at(place), away, textcoords="offset points", color=colour, fontsize=size, ha=side, va=height)


def _tuple(vector: NDArray) -> str:
    return f"({number(float(vector[0]))}, {number(float(vector[1]))})"
