"""Pictures of threshold units: one that was learned, and networks of them. Edges of negative weights are dashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidData, InvalidParameter, UnknownLabel
from rosenblatt.exact.reading import COUNT
from rosenblatt.plot.canvas import BLUE, SKY, VERMILION, Colour, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rosenblatt.theory.network import Network

MOST_EDGES = 64  # between inputs and hidden units of a network
_PATCH = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}  # under words on a line


class LinearClassifier(Protocol):
    """What predicts with one weight vector, or with one a class."""

    @property
    def coef_(self) -> NDArray:
        """The weights: (1, features), or (classes, features)."""

    @property
    def intercept_(self) -> NDArray:
        """The intercepts."""

    @property
    def classes_(self) -> NDArray:
        """The classes."""


def neuron(
    clf: LinearClassifier,
    label: object = None,
    *,
    names: Sequence[str] | None = None,
    most: int = 8,
    ax: Axes | None = None,
) -> Axes:
    """Draw a fitted linear classifier as a neuron: inputs, weights, sum, threshold, answer.

    The inputs with the largest weights, whatever their sign, are drawn in the order of the features, with lines as thick as
    their weights are large. The constant input 1 has the intercept as its weight.

    Parameters
    ----------
    clf : estimator
        A fitted linear one, with `coef_`, `intercept_` and `classes_`.
    label : object, optional
        With more than two classes, the one whose neuron to draw: the first by default.
    names : sequence of str, optional
        The names of the features; by default those of the table that it was fitted on, or x1, x2, ...
    most : int, default=8
        The most inputs to draw, apart from the constant.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> clf = Perceptron().fit([[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "no", "no", "yes"])
    >>> ax = neuron(clf, names=["rain", "wind"])
    >>> [text.get_text() for text in ax.texts if text.get_text() in ("rain", "wind", "yes", "no")]
    ['rain', 'wind', 'yes', 'no']
    """
    COUNT.check("most", most)
    unit = _one_unit(clf, label)
    weights, bias, features = unit.weights, unit.bias, len(unit.weights)
    named = getattr(clf, "feature_names_in_", None) if names is None else names
    named = [f"x{i + 1}" for i in range(features)] if named is None else [str(name) for name in named]
    if len(named) != features:
        raise InvalidParameter("names", named, f"{features} names, one for each feature")
    largest = np.sort(np.argsort(-np.abs(weights), kind="stable")[:most])
    inputs = [(named[i], float(weights[i])) for i in largest]
    left_out = features - len(largest)
    rows = len(inputs) + 1 + (left_out > 0)
    ax = ax or new_axes(figsize=(8, max(3.0, 0.55 * rows)))
    top, thickest = _heights(rows), max(float(np.abs(weights).max(initial=0.0)), abs(bias)) or 1.0
    for (name, weight), y in zip([*inputs, ("1", bias)], [*top[: len(inputs)], top[-1]], strict=True):
        _edge(ax, (0.0, y), (1.2, 0.5), weight, 0.3, 0.6 + 3.4 * abs(weight) / thickest)
        _input(ax, y, name)
    if left_out:
        next_weight = float(np.sort(np.abs(weights))[::-1][most])
        _input(ax, top[-2], f"{left_out:,} more, of weight at most {next_weight:.3g}")
    for answer, y in zip(unit.answers, _heights(len(unit.answers)), strict=True):
        end = (1.9, 0.5 + 0.5 * (y - 0.5))
        ax.plot(*zip((1.2, 0.5), end, strict=True), color="black", linewidth=1.2, zorder=1)
        ax.text(1.62, 0.5 + 0.3 * (y - 0.5), answer.condition, ha="center", va="center", fontsize=9, zorder=2, bbox=_PATCH)
        ax.text(end[0] + 0.04, end[1], answer.text, ha="left", va="center", fontsize=11, parse_math=False)
    _node(ax, (1.2, 0.5), "Σ", 1 - 0.4 * (1 - SKY), 16)
    ax.set(title=type(clf).__name__, xlim=(-0.75, 2.75), ylim=(0, 1))
    ax.set_axis_off()
    return ax


class Answer(NamedTuple):
    """What a unit answers, and for which sums."""

    condition: str
    text: str


class Unit(NamedTuple):
    """A neuron: its weights, its intercept, and its answers."""

    weights: NDArray
    bias: float
    answers: list[Answer]


def _one_unit(clf: LinearClassifier, label: object) -> Unit:
    """Return the neuron of two classes, or that of one class among many, the score of which competes with the others."""
    if not hasattr(clf, "coef_"):
        raise InvalidParameter("clf", clf, "a fitted linear classifier, with coef_ and intercept_")
    coef, intercept, classes = np.atleast_2d(clf.coef_), np.ravel(clf.intercept_), list(clf.classes_)
    if len(coef) == 1:
        if label is not None:
            raise InvalidParameter("label", label, "None; two classes have one neuron")
        return Unit(coef[0], float(intercept[0]), [Answer("≥ 0", str(classes[1])), Answer("< 0", str(classes[0]))])
    if len(coef) != len(classes):
        raise InvalidData(f"{len(classes)} classes have {len(coef)} weight vectors; a neuron is drawn of one class")
    if label is not None and label not in classes:
        raise UnknownLabel(label, classes)
    k = 0 if label is None else classes.index(label)
    answer = Answer(f"highest of {len(classes)}", str(classes[k]))
    return Unit(coef[k], float(intercept[k]), [answer])


def network(net: Network, ax: Axes | None = None) -> Axes:
    """Draw the inputs, the hidden units and the output of a network.

    Each weight is on its edge, dashed where it is negative, and each threshold in its unit.

    Parameters
    ----------
    net : Network
        With at most 64 edges between inputs and hidden units.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import Network, plot
    >>> ax = plot.network(Network.from_table([0, 1, 1, 0]))  # exclusive or
    >>> [text.get_text() for text in ax.texts if text.get_text().startswith("x")]
    ['x1', 'x2']
    """
    units, inputs = net.weights.shape
    if units * inputs > MOST_EDGES:
        raise InvalidData(
            f"{units} hidden units with {inputs} inputs have {units * inputs} edges, of which at most {MOST_EDGES} can be "
            "told apart",
            hint="print(net) and net.describe() have no such limit",
        )
    if ax is None:
        ax = new_axes(figsize=(7.5, max(3.0, 0.8 * units, 0.17 * (inputs + 1) * units)))
    across, hidden, top = (0.0, 1.2, 2.0), _heights(units), _heights(inputs)
    for h, y in enumerate(hidden):
        for i, x in enumerate(top):
            _edge(ax, (across[0], x), (across[1], y), net.weights[h, i], 1 / (inputs + 1))
        _edge(ax, (across[1], y), (across[2], 0.5), net.output_weights[h], 0.45)
    for i, x in enumerate(top):
        _node(ax, (across[0], x), f"x{i + 1}", "white")
    for h, y in enumerate(hidden):
        _node(ax, (across[1], y), f"h{h + 1}\n≥ {net.thresholds[h]:g}", 1 - 0.4 * (1 - SKY))
    _node(ax, (across[2], 0.5), f"y\n≥ {net.output_threshold:g}", "white")
    ax.set(title=str(net).splitlines()[0], xlim=(-0.2, 2.2), ylim=(0, 1))
    ax.set_axis_off()
    return ax


def _heights(count: int) -> NDArray:
    """Return the heights of so many nodes, from the top down, with equal space for each."""
    return 1 - (np.arange(count) + 0.5) / max(count, 1)


def _edge(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], weight: float, at: float, width: float = 1.2
) -> None:
    """Draw a line, with the weight written at the fraction `at` of its way. With 1/(n + 1), the labels of all edges between
    n nodes and the next level are at different heights, equally far from each other."""
    if weight == 0:
        return
    colour, dashes = (BLUE, "-") if weight > 0 else (VERMILION, "--")
    ax.plot(*zip(start, end, strict=True), dashes, color=colour, linewidth=width, zorder=1)
    x, y = np.add(start, at * np.subtract(end, start))
    text = f"{weight:+.4g}".replace("-", "−")
    ax.text(x, y, text, color=colour, ha="center", va="center", fontsize=8, zorder=2, bbox=_PATCH)


def _node(ax: Axes, place: tuple[float, float], text: str, colour: Colour, size: float = 9) -> None:
    box = {"boxstyle": "circle,pad=0.35", "facecolor": colour, "edgecolor": "black"}
    ax.text(*place, text.replace("-", "−"), ha="center", va="center", fontsize=size, zorder=3, bbox=box)


def _input(ax: Axes, y: float, name: str) -> None:
    ax.text(-0.03, y, name, ha="right", va="center", fontsize=10, parse_math=False)
