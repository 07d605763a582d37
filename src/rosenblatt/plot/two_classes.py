"""Pictures of rows of two classes in the plane, and of the lines between them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import NUMBER, POSITIVE, MatrixLike, Quantity
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.feasibility.search import plural
from rosenblatt.plot import plane
from rosenblatt.plot.canvas import BLUE, COLOURS, GREY, STYLES, VERMILION, halo, new_axes, plain
from rosenblatt.plot.plane import at, number, read_pair
from rosenblatt.theory import separation
from rosenblatt.theory.geometry import gamma_affine, gamma_origin, margins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DEAREST = 1e12  # C, times the square of the size of the rows, that floats can solve for
_MOST_STEPS = 1_000_000  # of the solver
_SIGMA = Quantity(0, open_low=True, high=1)


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
    >>> margin([[0, 0], [0, 1], [2, 0], [3, 2]], ["no", "no", "yes", "yes"]).get_title()
    'γ = 1, 2 support vectors'
    """
    points, signs, classes = plane.read_rows(X, y, "a margin is", one=not intercept)
    best = gamma_affine(points, y) if intercept else gamma_origin(points, y)
    w, gamma = best.w, best.lower
    ax = ax or new_axes(figsize=(6.5, 6))
    frame = plane.square(points if intercept else np.vstack([points, np.zeros(2)]))
    middle = plane.band(ax, w, best.b, gamma, frame)
    plane.scatter_classes(ax, points, signs, classes)
    support = points[list(best.rows)]
    plane.ring(ax, support, "support vector")
    for point, sign in zip(support, signs[list(best.rows)], strict=True):
        plane.dotted(ax, point, point - sign * gamma * w)
    plane.gauge(ax, middle, gamma * w, "γ")
    if not intercept:
        plane.origin(ax)
    ax.set_title(f"γ = {gamma:.4g}, {plural(len(support), 'support vector')}")
    plane.keep_angles(ax, frame)
    plane.legend_below(ax)
    return ax


def separability(X: MatrixLike, y: ArrayLike, *, intercept: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the widest band between two classes or, where no line separates them, the proof: a point of both hulls.

    The proof is that of `theory.separability`: a mean of rows of one class that is also a mean of rows of the other, so
    that no line has the two classes on its two sides. These rows have rings and their shares of the means. Where the line
    has to go through the origin, the rows y·x are drawn, and the proof is that 0 is a mean of them.

    Parameters
    ----------
    X : (rows, 2) array
        The rows.
    y : (rows,) array
        Two labels, of which the second is the positive one.
    intercept : bool, default=True
        Whether the line may miss the origin.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> separability(square, [0, 0, 0, 1]).get_title()
    'separable: γ = 0.3536'
    >>> separability(square, [0, 1, 1, 0]).get_title()
    'not separable: both hulls contain (0.5, 0.5)'
    """
    points, signs, classes = plane.read_rows(X, y, "a proof is", one=not intercept)
    proof = separation.separability(points, y, intercept=intercept)
    if isinstance(proof, separation.Undecided):
        raise InvalidParameter("X", X, f"rows of which it can be decided whether a line separates them; they are {proof}")
    if isinstance(proof, separation.Separable):
        ax = margin(points, y, intercept=intercept, ax=ax)
        ax.set_title(f"separable: {ax.get_title().partition(',')[0]}")
        return ax
    ax = ax or new_axes(figsize=(6.5, 6))
    shown = points if intercept else signs[:, None] * points
    rows = list(proof.rows)
    weights = np.array(proof.combination, dtype=object)
    halves = [signs[rows] < 0, signs[rows] > 0] if intercept else [np.full(len(rows), True)]
    whole = sum(weights[halves[0]])  # of both classes, as the certificate has it
    common = np.array([sum(weights[halves[0]] * shown[rows][halves[0], k]) / whole for k in (0, 1)], dtype=np.float64)
    for sign, colour in ((-1, VERMILION), (1, BLUE)) if intercept else ((0, GREY),):
        plane.fill_hull(ax, shown[signs == sign] if sign else shown, colour)
    plane.scatter_classes(ax, shown, signs, classes)
    plane.ring(ax, shown[rows], "share of the common point" if intercept else "share of 0")
    for row, weight in zip(rows, weights, strict=True):
        plane.dotted(ax, shown[row], common)
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 12, "path_effects": halo()}
        ax.annotate(_share(weight, whole), at(shown[row]), (11, 8), **style)
    ax.plot(*common, "*", color="black", markersize=16, zorder=6)
    where = f"both hulls contain ({number(common[0])}, {number(common[1])})" if intercept else "0 is a mean of the rows y·x"
    ax.set_title(f"not separable: {where}")
    plane.keep_angles(ax, plane.square(shown if intercept else np.vstack([shown, np.zeros(2)])))
    plane.legend_below(ax)
    return ax


def _share(weight: int, whole: int) -> str:
    """Return a share as a fraction if it is a short one, otherwise as a decimal."""
    share = Fraction(weight, whole)
    return str(share) if share.denominator < 100 else f"{float(share):.2g}"


def separators(X: MatrixLike, y: ArrayLike, lines: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Draw several lines between the same rows, each with its margin, the distance to the row that is worst off.

    A line that has rows on the wrong side says how many.

    Parameters
    ----------
    X : (rows, 2) array
        The rows.
    y : (rows,) array
        Two labels, of which the second is the positive one.
    lines : mapping of str to (w, b) or to a fitted linear classifier
        The lines ⟨w, x⟩ + b = 0 by name.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = separators([[0, 0], [2, 0]], [-1, 1], {"middle": ([1, 0], -1), "tilted": ([1, 1], -1)})
    >>> [text.get_text() for text in ax.get_legend().get_texts()[2:]]
    ['middle: margin 1', 'tilted: margin 0.707']
    """
    points, signs, classes = plane.read_rows(X, y, "separators are", one=True)
    if not lines:
        raise InvalidParameter("lines", lines, "one line or more, such as {'mine': ([1, 2], -1)}")
    ax = ax or new_axes(figsize=(6.5, 7))
    frame = plane.square(points)
    plane.scatter_classes(ax, points, signs, classes)
    palette = ["black", *COLOURS[2:]]  # the first two colours are those of the classes
    for k, (name, given) in enumerate(lines.items()):
        w, b = _line_of(name, given)
        distances = margins(points, signs, w, b)
        wrong = int((distances <= 0).sum())
        words = f"{plain(name)}: {wrong} misclassified" if wrong else f"{plain(name)}: margin {distances.min():.3g}"
        plane.line(ax, w, b, frame, palette[k % len(palette)], STYLES[k % len(STYLES)], words)
    plane.keep_angles(ax, frame)
    plane.legend_below(ax, 2)
    return ax


def _line_of(name: str, given: Any) -> tuple[NDArray, float]:
    """Return (w, b) of a pair or of a fitted classifier."""
    if hasattr(given, "coef_"):
        w, b = np.ravel(given.coef_), np.ravel(given.intercept_)[0]
    elif isinstance(given, tuple | list) and len(given) == 2:
        w, b = given
    else:
        raise InvalidParameter(f"lines[{name!r}]", given, "(w, b), or a fitted linear classifier of two classes")
    NUMBER.check(f"lines[{name!r}][1]", b)
    return read_pair(f"lines[{name!r}]", w, zero=False), float(b)


def soft_margin(X: MatrixLike, y: ArrayLike, C: float = 1.0, ax: Axes | None = None) -> Axes:
    """Draw the band of the soft-margin support vector machine, and the slack ξ of each row that is not beyond its edge.

    It minimises ½‖w‖² + C·Σξ with y(⟨w, x⟩ + b) ≥ 1 − ξ and ξ ≥ 0. The edges of the band are 1/‖w‖ from the line, and a row
    that is short of its edge is so by ξ/‖w‖, which is drawn. Beyond ξ = 1 it is on the wrong side of the line. A large C
    makes slack dear and the band narrow; as C grows on separable rows, it becomes that of `margin`.

    Parameters
    ----------
    X : (rows, 2) array
        The rows.
    y : (rows,) array
        Two labels, of which the second is the positive one.
    C : float, default=1.0
        The price of slack.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidData
        If the best w is 0, as for the four rows of XOR: it has no band.

    Examples
    --------
    >>> soft_margin([[0, 0], [2, 0], [3, 0], [5, 0]], [-1, 1, -1, 1], C=0.25).get_title()
    'C = 0.25: 1/‖w‖ = 2.5, slack Σξ = 2.4'
    """
    points, signs, classes = plane.read_rows(X, y, "a band is")
    POSITIVE.check("C", C)
    w, b, slack = _soft_margin(points, signs, C)
    length = float(np.hypot(*w))
    ax = ax or new_axes(figsize=(6.5, 6))
    frame = plane.square(points)
    unit = w / length
    middle = plane.band(ax, unit, b / length, 1 / length, frame)
    plane.scatter_classes(ax, points, signs, classes)
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 11, "va": "center", "path_effects": halo()}
    taken = [points]
    for point, sign, xi in zip(points, signs, slack, strict=True):
        if xi:
            edge = point + sign * xi / length * unit
            ax.plot(*np.column_stack([point, edge]), color=COLOURS[int(sign > 0)], linewidth=1.8, zorder=2)
            style["ha"], away = ("right", -9) if sign * unit[0] > 0 else ("left", 9)  # the side on which no slack is drawn
            words = point + np.array([away / 60 * (frame[1] - frame[0]), 0])  # about where they end
            taken += [np.linspace(point, edge, 20), np.linspace(point, words, 5)]
            ax.annotate(f"ξ = {xi:.2g}", at(point), (away, -4 * sign * unit[1]), **style)
    plane.ring(ax, points[signs * (points @ w + b) < 1 + 1e-4], "support vector")
    plane.gauge(ax, _free_foot(middle, unit, 1 / length, np.vstack(taken), frame), unit / length, "1/‖w‖")
    ax.set_title(f"C = {C:g}: 1/‖w‖ = {number(1 / length)}, slack Σξ = {number(float(slack.sum()))}")
    plane.keep_angles(ax, frame)
    plane.legend_below(ax)
    return ax


def _free_foot(middle: NDArray, unit: NDArray, width: float, taken: NDArray, frame: plane.Frame) -> NDArray:
    """Return the place on the line at which a gauge of this width and its name are farthest from what is drawn."""
    (_, along), size = plane.directions(unit), frame[1] - frame[0]
    upright = np.linspace(0, width, 9)[:, None] * unit
    reach = np.linspace(-0.07, 0.07, 5) + (0.07 * np.sign(along[0]) if abs(along[0]) > 0.5 else 0)
    name = width / 2 * unit + 0.04 * size * along + reach[:, None] * np.array([size, 0])
    feet = middle + np.linspace(-1, 1, 81)[:, None] * size * along
    covered = feet[:, None] + np.vstack([upright, name])
    low, high = np.array(frame[::2]) + 0.01 * size, np.array(frame[1::2]) - 0.01 * size
    inside = ((covered > low) & (covered < high)).all(axis=(1, 2))
    if not inside.any():
        return middle
    apart = np.linalg.norm(covered[inside][:, :, None] - taken, axis=-1).min(axis=(1, 2))
    return feet[inside][apart.argmax()]


def _soft_margin(points: NDArray, signs: NDArray, C: float) -> tuple[NDArray, float, NDArray]:
    """Return the least ½‖w‖² + C·Σξ as w, b and the slacks.

    The points are scaled to a distance of at most 1 from their mean. The multipliers prove how near the least it is.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    centre = points.mean(axis=0)
    size = float(row_lengths(points - centre).max()) or 1.0
    unit, price = (points - centre) / size, C * size * size
    if not 0 < price <= _DEAREST:
        raise InvalidData(f"C = {C:g} is too large or too small for rows that are {size:g} from their mean", hint="scale X")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the proof says how far it came
        solved = SVC(kernel="linear", C=price, tol=1e-8, max_iter=_MOST_STEPS).fit(unit, signs)
    if np.hypot(*solved.coef_[0]) < 1e-6:
        raise InvalidData(
            f"½‖w‖² + C·Σξ is least at w = 0 for these rows and C = {C:g}, which has no line and no band",
            hint="separability(X, y) draws how the classes lie",
        )
    padded, multipliers = np.column_stack([unit, np.ones(len(unit))]), np.zeros(len(unit))
    multipliers[solved.support_] = solved.dual_coef_[0]
    found = [np.append(solved.coef_, solved.intercept_), _polished(padded, signs, price, multipliers)]
    slacks = [np.maximum(0, 1 - signs * (padded @ each)) for each in found]
    values = [each[:2] @ each[:2] / 2 + price * slack.sum() for each, slack in zip(found, slacks, strict=True)]
    best, proved = int(np.argmin(values)), np.abs(multipliers).sum() - ((multipliers @ unit) ** 2).sum() / 2
    if values[best] - proved > 1e-4 * values[best]:
        raise InvalidData(
            f"½‖w‖² + C·Σξ could not be minimised within 0.01 % for C = {C:g}", hint="take a smaller C, or scale X down"
        )
    (*v, shift), slack = found[best], slacks[best]
    slack[slack < 1e-4] = 0  # what the solver leaves
    return np.array(v) / size, shift - float(np.array(v) @ centre) / size, slack


def _polished(padded: NDArray, signs: NDArray, price: float, multipliers: NDArray) -> NDArray:
    """Return (w, b) computed again in 64 bits from the rows that the solver found on the edge of the band or short of it.

    Rows on the edge, whose multipliers are below the price, have y(⟨w, x⟩ + b) = 1, and (w, 0) is the sum of all rows
    times their multipliers.
    """
    short = np.abs(multipliers) >= (1 - 1e-9) * price
    edge = (multipliers != 0) & ~short
    rows = padded[edge]
    system = np.block([[np.diag([1.0, 1.0, 0.0]), -rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    known = np.append(price * signs[short] @ padded[short], signs[edge])
    return np.linalg.lstsq(system, known)[0][:3]


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
    >>> cone([0, 1], [[3, 1], [0, 2], [1, -2]], [-1, 1, 1], sigma=0.5).get_title()
    'σ = 0.5: 1 of 3 rows near the line, 1 far mistake'
    """
    weights = read_pair("w", w, zero=False)
    points, signs, classes = plane.read_rows(X, y, "a cone is", one=True)
    _SIGMA.check("sigma", sigma)
    (unit, along), size = plane.directions(weights), row_lengths(points)
    cosine = np.divide(points @ unit, size, out=np.zeros(len(points)), where=size > 0)
    near = np.abs(cosine) < sigma
    wrong = ~near & (signs * cosine < 0)
    ax = ax or new_axes(figsize=(6.5, 6.5))
    frame = plane.square(np.vstack([points, np.zeros(2)]))
    tilt, far = sigma / np.sqrt(1 - sigma**2), 3 * (frame[1] - frame[0])
    for side, name in ((along, "|cos(w, x)| < σ"), (-along, None)):
        edges = far * np.array([np.zeros(2), side + tilt * unit, side - tilt * unit])
        ax.fill(*edges.T, color=GREY, alpha=0.2, linewidth=0, zorder=0, label=name)
    plane.weight_arrow(ax, unit * 0.3 * (frame[1] - frame[0]), frame, "black", "-", ("w", "the line of w"))
    plane.scatter_classes(ax, points, signs, classes)
    plane.ring(ax, points[wrong], "far mistake")
    mistakes = plural(int(wrong.sum()), "far mistake")
    ax.set_title(f"σ = {sigma:g}: {near.sum()} of {len(points)} rows near the line, {mistakes}")
    plane.keep_angles(ax, frame)
    plane.legend_below(ax)
    return ax
