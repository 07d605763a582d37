"""Pictures of weights: how they change from update to update, and how sure a learner is of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import floats
from rosenblatt.feasibility.search import plural
from rosenblatt.plot import plane
from rosenblatt.plot.canvas import BLUE, COLOURS, GREY, STYLES, label_end, new_axes, spread
from rosenblatt.plot.plane import number, read_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def weights(path: ArrayLike, names: Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Draw each weight from update to update, as steps, with its name where it ends.

    The weights that have a name are in colour, the others grey.

    Parameters
    ----------
    path : (updates + 1, features) array
        The weights before the first update and after each one.
    names : sequence of str, default=()
        The names of the first features, or of all.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = weights([[1, 1, 1], [2, 1, 2], [4, 1, 0]], names=["rain"])
    >>> ax.get_title(), [text.get_text() for text in ax.texts]
    ('3 weights, 2 updates', ['rain: 4'])
    """
    values = floats(path)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise InvalidData("path must be finite weights, a row for each update, and all rows of one length")
    if len(names) > values.shape[1]:
        raise InvalidParameter("names", names, f"up to {values.shape[1]} names, as many as there are features")
    ax = ax or new_axes(figsize=(7.5, 5))
    updates = np.arange(len(values))
    for k in reversed(range(values.shape[1])):  # those with names are drawn last, above the others
        named = k < len(names)
        colour, dashes = (COLOURS[k % len(COLOURS)], STYLES[k % len(STYLES)]) if named else (GREY, "-")
        width, alpha = (2.4, 1.0) if named else (0.8, 0.45)
        ax.step(updates, values[:, k], dashes, where="post", color=colour, linewidth=width, alpha=alpha)
    last = values[-1, : len(names)]
    places = spread(last, 0.055 * (float(values.max() - values.min()) or 1.0))
    for k, (name, weight, height) in enumerate(zip(names, last, places, strict=True)):
        words, colour = f"{name}: {number(weight)}", COLOURS[k % len(COLOURS)]
        label_end(ax, words, (len(values) - 1, height), colour)
    ax.set_title(f"{plural(values.shape[1], 'weight')}, {plural(len(values) - 1, 'update')}")
    ax.set_xlabel("updates", fontsize=12)
    ax.set_ylabel("weight", fontsize=12)
    ax.set_xlim(0, max(updates[-1], 1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def confidence(w: ArrayLike, covariance: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw two weights as a second-order learner has them: their mean, and the ellipses of one and two deviations.

    The ellipse is {v : (v − w)ᵀ Σ⁻¹ (v − w) = 1}, and the same with 4. It is narrow in directions of which the learner has
    seen much, in which it hardly moves any more.

    Parameters
    ----------
    w : (2,) array
        The mean weights.
    covariance : (2,) or (2, 2) array
        Their variances, or Σ.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> confidence([1, 2], [0.25, 0.01]).get_title()
    'standard deviations from 0.1 to 0.5'
    """
    mean, sigma = read_pair("w", w), floats(covariance)
    sigma = np.diag(sigma) if sigma.ndim == 1 else sigma
    if sigma.shape != (2, 2) or not np.isfinite(sigma).all() or not np.allclose(sigma, sigma.T):
        raise InvalidParameter("covariance", covariance, "two variances, or a symmetric matrix of two rows")
    variances, axes = np.linalg.eigh(sigma)
    if variances[0] <= 0:
        raise InvalidParameter("covariance", covariance, "a matrix with positive eigenvalues")
    deviations = np.sqrt(variances)
    ax = ax or new_axes(figsize=(6, 6))
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.array([np.cos(turn), np.sin(turn)])
    edge = mean
    for size, dashes, name in ((1, "-", "one deviation"), (2, "--", "two deviations")):
        edge = mean[:, None] + size * axes @ (deviations[:, None] * circle)
        ax.plot(*edge, dashes, color=BLUE, linewidth=1.8, label=name)
        ax.fill(*edge, color=BLUE, alpha=0.12, linewidth=0)
    plane.vector(ax, mean, "black", "w")
    plane.origin(ax)
    ax.set_title(f"standard deviations from {number(deviations[0])} to {number(deviations[1])}")
    ax.set(xlabel="weight of feature 0", ylabel="weight of feature 1")
    plane.keep_angles(ax, plane.square(np.vstack([edge.T, mean, np.zeros(2)])))
    ax.legend(frameon=False, loc="best")
    return ax
