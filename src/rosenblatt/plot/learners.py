"""Plots of learning and of what was learned. Classes differ by marker as well as by colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.plot.canvas import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    SKY,
    STYLES,
    VERMILION,
    Colour,
    label_end,
    marker,
    new_axes,
    plain,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rosenblatt.engine.train import Epoch
    from rosenblatt.online.evaluation import Evaluation
    from rosenblatt.online.pricing import Sales

GRID = 400  # points a side on which regions are predicted


class Trained(Protocol):
    """What has a history of epochs."""

    history_: list[Epoch]
    stop_reason_: str


class SimulatedEpochs(Protocol):
    """The epochs of a training in shards, as `rosenblatt.cluster.simulate` returns them."""

    @property
    def shards(self) -> int:
        """The number of shards."""

    @property
    def epochs(self) -> Sequence[Any]:
        """What each epoch did."""


class Classifier(Protocol):
    """What predicts classes."""

    classes_: NDArray

    def predict(self, X: Any) -> NDArray:
        """Return the class of each row."""

    def decision_function(self, X: Any) -> NDArray:
        """Return the scores of each row."""


def history(clf: Trained, ax: Axes | None = None, bound: float | None = None) -> Axes:
    """Draw the mistakes of each epoch, the updates so far, and the bound that these cannot pass.

    The counts are on a logarithmic scale when the bound is more than ten times the updates.

    Parameters
    ----------
    clf : estimator
        One that `fit` has trained.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    bound : float, optional
        The most updates that there can be.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import Perceptron, plot
    >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-3.0, 0.0]], [1, 1, 0, 0])
    >>> ax = plot.history(model, bound=3)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['mistakes in the epoch', 'updates so far: 1', 'bound: 3']
    """
    if not clf.history_:
        raise InvalidData("history_ is empty; fit records epochs, partial_fit does not")
    ax = ax or new_axes()
    mistakes = [epoch.mistakes for epoch in clf.history_]
    updates = np.cumsum([epoch.updates for epoch in clf.history_])
    epochs = np.arange(1, len(mistakes) + 1)
    ax.stairs(mistakes, np.arange(len(mistakes) + 1) + 0.5, fill=True, color=SKY, label="mistakes in the epoch")
    label = f"updates so far: {updates[-1]:,}"
    ax.step(epochs, updates, where="mid", color=BLUE, linewidth=1.8, marker=marker(epochs), label=label)
    if bound is not None:
        ax.axhline(bound, color=VERMILION, linestyle="--", linewidth=1.5, label=f"bound: {bound:,.0f}")
        if bound > 10 * max(updates[-1], 1):
            ax.set_yscale("log")
            ax.set_ylim(bottom=0.7)
    ax.locator_params(axis="x", integer=True)
    ax.set(title=f"Mistakes and updates ({clf.stop_reason_})", xlabel="epoch", ylabel="count")
    ax.margins(x=0.02)
    ax.legend(frameon=False)
    return ax


def mixing(runs: Sequence[SimulatedEpochs], axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Draw accuracy and time of a training against the number of shards.

    The first panel has the accuracy after the first epoch, the last one and some in between. The second has the seconds of
    all epochs: the slowest shard, with what adding, sending and scheduling come to on top of it, and the line of a training
    that is S times as fast in S shards. A mark shows from where on more shards take longer.

    Parameters
    ----------
    runs : sequence of Simulated
        What `rosenblatt.cluster.simulate` returned.
    axes : two matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    two matplotlib Axes
        Those of the accuracy and those of the time.

    Examples
    --------
    >>> from rosenblatt import Perceptron, cluster, plot
    >>> X = [[i % 5, i % 7, i % 11] for i in range(1000)]
    >>> y = [2 * a + b > c for a, b, c in X]
    >>> accuracy, time = plot.mixing(cluster.simulate(Perceptron(), X, y, shards=(1, 4), epochs=3))
    >>> accuracy.lines[0].get_xdata().tolist(), accuracy.get_ylabel()
    ([1, 4], 'test rows predicted (%)')
    """
    if not runs:
        raise InvalidParameter("runs", runs, "one run or more, such as cluster.simulate(estimator, X, y)")
    runs = sorted(runs, key=lambda run: run.shards)
    accuracy, time = new_axes(1, 2, figsize=(10, 4)) if axes is None else axes
    shards, last = [run.shards for run in runs], max(len(run.epochs) for run in runs)
    shown = sorted({1, last, *(number for number in (2, 5, 10, 20, 50) if 2 * number <= last)})
    for k, number in enumerate(shown):
        reached = [100 * run.epochs[min(number, len(run.epochs)) - 1].accuracy for run in runs]
        colour = COLOURS[(1 + k) % len(COLOURS)]
        label = "after 1 epoch" if number == 1 else f"after {number} epochs"
        accuracy.plot(shards, reached, color=colour, linewidth=1.8, marker=MARKERS[1 + k % 7], markersize=4, label=label)
    accuracy.set(title="Accuracy", ylabel="test rows predicted (%)")
    learning = np.array([sum(epoch.learning for epoch in run.epochs) for run in runs])
    total = np.array([sum(epoch.seconds for epoch in run.epochs) for run in runs])
    time.fill_between(shards, learning, total, color=SKY, alpha=0.4, linewidth=0, label="adding, sending, scheduling")
    time.plot(shards, total, color=BLUE, linewidth=2.2, marker="o", markersize=4, label=f"{last} epochs")
    time.plot(shards, learning, color=GREEN, linewidth=1.5, label="the slowest shard")
    ideal = total[0] * shards[0] / np.array(shards)
    time.plot(shards, ideal, color=GREY, linewidth=1, linestyle="--", label="S times as fast")
    best = int(np.argmin(total))
    words = f"fastest: {shards[best]:,} shard{'s' * (shards[best] > 1)}"
    if best:
        words += f",\n{total[0] / total[best]:.3g} times as fast as {shards[0]:,}"
    time.plot(shards[best], total[best], "o", color=VERMILION, markersize=9, zorder=3, label=words)
    time.set(title="Time", ylabel="seconds", yscale="log")
    for ax in (accuracy, time):
        ax.set(xscale="log", xlabel="shards")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    return accuracy, time


def passes(history: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Draw the share of mistakes in each pass over files, and the error on rows held out where there were any.

    Parameters
    ----------
    history : sequence of mappings
        That of a `FileModel`: `model.training["history"]`.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> ax = plot.passes([{"rows": 100, "mistakes": 20, "error": 0.15}, {"rows": 100, "mistakes": 8, "error": 0.1}])
    >>> ax.lines[0].get_ydata().tolist(), ax.lines[1].get_ydata().tolist()
    ([20.0, 8.0], [15.0, 10.0])
    """
    if not history:
        raise InvalidData("the history has no pass to draw")
    ax = ax or new_axes()
    numbers = np.arange(1, len(history) + 1)
    shares = [100 * entry["mistakes"] / entry["rows"] for entry in history]
    ax.plot(numbers, shares, marker=marker(numbers), color=BLUE, label="mistakes while learning")
    if history[0]["error"] is not None:
        errors = [100 * entry["error"] for entry in history]
        ax.plot(numbers, errors, "--", marker=marker(numbers), color=VERMILION, label="error on rows held out")
    ax.set(xlabel="pass", ylabel="% of rows", ylim=(0, None))
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False)
    return ax


def learning_curve(points: Sequence[Sequence[float]], ax: Axes | None = None) -> Axes:
    """Draw scores against the number of rows learned from.

    Parameters
    ----------
    points : sequence of (rows, score on them, score on others)
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> ax = plot.learning_curve([(100, 0.95, 0.8), (200, 0.93, 0.85), (400, 0.92, 0.88)])
    >>> ax.lines[1].get_ydata().tolist()
    [80.0, 85.0, 88.0]
    """
    if not points:
        raise InvalidData("the curve has no point to draw")
    ax = ax or new_axes()
    rows, on_them, on_others = np.array(points, np.float64).T
    ax.plot(rows, 100 * on_them, marker="o", color=BLUE, linestyle="--", label="on the rows learned from")
    ax.plot(rows, 100 * on_others, marker="o", color=VERMILION, label="on others")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
    ax.set(xlabel="rows learned from", ylabel="% right")
    ax.legend(frameon=False)
    return ax


def progress(runs: Mapping[str, Evaluation], ax: Axes | None = None) -> Axes:
    """Draw the share of mistakes of learners on a stream, in each stretch of it, each learner labelled where it ends.

    Parameters
    ----------
    runs : mapping of str to Evaluation
        What `online.progressive` returned, by name.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt.online import OnlinePerceptron, progressive
    >>> run = progressive(OnlinePerceptron(), [({"sun": 1}, "yes"), ({"rain": 1}, "no")] * 4, every=2)
    >>> ax = progress({"perceptron": run})
    >>> ax.lines[0].get_ydata().tolist(), ax.texts[0].get_text()
    ([100.0, 50.0, 0.0, 0.0], 'perceptron: 3 mistakes')
    """
    if not runs:
        raise InvalidParameter("runs", runs, "one run or more, such as {'perceptron': progressive(...)}")
    ax = ax or new_axes(figsize=(7.5, 5))
    shares = [100 * run.window_error for run in runs.values()]
    top = max(float(share.max()) for share in shares) or 1.0
    places = spread(np.array([share[-1] for share in shares]), 0.06 * top)
    for k, ((name, run), share, height) in enumerate(zip(runs.items(), shares, places, strict=True)):
        colour, words = COLOURS[(k + 1) % len(COLOURS)], f"{name}: {run.mistakes[-1]:,} mistakes"
        ax.plot(run.seen, share, STYLES[k % len(STYLES)], marker=marker(share), color=colour, linewidth=2)
        label_end(ax, words, (float(run.seen[-1]), height), colour)
    ax.set_xlabel("examples", fontsize=12)
    ax.set_ylabel("% wrong since the dot before", fontsize=12)
    ax.set_ylim(-0.03 * top, 1.05 * top)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def boundary(clf: Classifier, X: Any, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the rows of X by class, the regions that a classifier gives to each class, and the lines between them.

    A row that lies in the wrong region has a ring round it.

    Parameters
    ----------
    clf : classifier
        A fitted one.
    X : array-like or DataFrame of shape (rows, 2)
        The rows.
    y : array-like of shape (rows,)
        Their classes.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import Perceptron, plot
    >>> X, y = [[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-3.0, 0.0]], ["yes", "yes", "no", "no"]
    >>> ax = plot.boundary(Perceptron().fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['no', 'yes']
    """
    points, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidData(
            f"X must have two features, but its shape is {points.shape}; a boundary is drawn in two dimensions"
        )
    ax = ax or new_axes()
    left, right, bottom, top = _frame(points)
    across, up = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    grid: Any = np.column_stack([across.ravel(), up.ravel()])
    if hasattr(X, "columns"):  # a classifier that knows names asks for them
        grid = type(X)(grid, columns=list(X.columns))
    number = (clf.predict(grid)[:, None] == clf.classes_).argmax(axis=1).reshape(across.shape)
    shades = 1 - 0.18 * (1 - COLOURS[number % len(COLOURS)])
    ax.imshow(shades, origin="lower", extent=(left, right, bottom, top), aspect="auto", interpolation="nearest")
    for lead in _leads(clf.decision_function(grid)):
        if lead.min() < 0 < lead.max():
            ax.contour(across, up, lead.reshape(across.shape), levels=[0], colors="black", linewidths=1.2)
    for k, name in enumerate(clf.classes_):
        x, height = points[y == name].T
        ax.scatter(x, height, 36, color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], label=plain(name))
    wrong = points[clf.predict(X) != y]
    if len(wrong):
        x, height = wrong.T
        ax.scatter(x, height, 150, facecolors="none", edgecolors="black", label=f"misclassified: {len(wrong)}")
    names = getattr(clf, "feature_names_in_", ["feature 0", "feature 1"])
    ax.set(title=f"{len(wrong)} of {len(points)} misclassified", xlabel=plain(names[0]), ylabel=plain(names[1]))
    ax.legend(loc="best", framealpha=0.9)
    return ax


def _frame(points: NDArray) -> tuple[float, float, float, float]:
    """Return (left, right, bottom, top) with a twelfth of the width and of the height free on each side."""
    low, high = points.min(axis=0), points.max(axis=0)
    space = np.where(high > low, (high - low) / 12, 1.0)
    (left, bottom), (right, top) = low - space, high + space
    return left, right, bottom, top


def _leads(decision: NDArray) -> list[NDArray]:
    """Return by how much each class leads its best rival, which changes sign where the class's region ends."""
    if decision.ndim == 1:
        return [decision]
    return [decision[:, k] - np.delete(decision, k, axis=1).max(axis=1) for k in range(decision.shape[1])]


def regret(runs: Mapping[str, Sales | Sequence[Sales]], ax: Axes | None = None) -> Axes:
    """Draw the regret of pricers against the number of rounds.

    The rounds are on a logarithmic scale: a regret that grows as the logarithm is a straight line, and one that grows with
    the rounds leaves the frame, which is four times as high as the least regret at the end, where the numbers are from.

    Parameters
    ----------
    runs : mapping of str to Sales or to a sequence of Sales
        What `online.pricing.simulate` returned, by name. A pricer that is told its horizon has a sequence of runs, one for
        each horizon, and is drawn through their ends.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from rosenblatt import plot
    >>> from rosenblatt.online.pricing import EllipsoidPricer, market, simulate
    >>> place = market(2, 500)
    >>> ax = plot.regret({"ellipsoid": simulate(EllipsoidPricer(2, horizon=500), place.contexts, place.theta)})
    >>> ax.get_xlabel(), ax.get_xscale(), ax.get_ylabel()
    ('rounds', 'log', 'regret')
    """
    if not runs:
        raise InvalidParameter("runs", runs, "one run or more, such as {'ellipsoid': simulate(...)}")
    ax = ax or new_axes()
    curves = {name: _regret_curve(run) for name, run in runs.items()}
    low, high = (limit(0.0, *(limit(total) for _, total in curves.values())) for limit in (min, max))
    least = min((total[-1] for _, total in curves.values() if total[-1] > 0), default=1.0)
    top = min(4 * least, 1.05 * high or 1.0)
    most = max(rounds[-1] for rounds, _ in curves.values())
    ax.set(xscale="log", xlim=(max(1, most / 1e4), 1.1 * most), ylim=(low, top), xlabel="rounds", ylabel="regret")
    leaving = {}
    for k, (name, (rounds, total)) in enumerate(curves.items()):
        colour, words = COLOURS[k % len(COLOURS)], f"{plain(name)}: {total[-1]:,.0f}"
        ends = "" if hasattr(runs[name], "regret") else "o"
        ax.plot(rounds, total, STYLES[k % len(STYLES)], color=colour, linewidth=1.8, marker=ends)
        if total[-1] > top:
            leaving[words] = (rounds[np.argmax(total > top)], colour)
        else:
            ax.annotate(words, (rounds[-1], total[-1]), (-4, 7), textcoords="offset points", color=colour, ha="right")
    _labels_above(ax, leaving, top)
    ax.set_title(f"Regret of {most:,} rounds", loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _regret_curve(run: Any) -> tuple[NDArray, NDArray]:
    """Return (rounds, regret): of one run after each round; of a list of runs at the end of each."""
    if hasattr(run, "regret"):
        return np.arange(1, len(run.price) + 1), run.cumulative_regret
    ends = sorted((len(sales.price), sales.regret.sum()) for sales in run)
    return np.array([rounds for rounds, _ in ends]), np.array([total for _, total in ends])


def _labels_above(ax: Axes, places: dict[str, tuple[float, Colour]], top: float) -> None:
    """Write words above the frame, slanted, each at its place on the horizontal axis or as near to it as leaves room."""
    across = ax.transAxes.inverted()
    right = 0.0
    for words, (place, colour) in sorted(places.items(), key=lambda item: item[1][0]):
        left = across.transform(ax.transData.transform((place, top)))[0]
        right = max(left, right)
        line = {"arrowstyle": "-", "color": colour, "shrinkA": 0, "shrinkB": 0}
        slant: dict[str, Any] = {"rotation": 35, "rotation_mode": "anchor"}
        ax.annotate(words, (left, 1), (right, 1.06), "axes fraction", color=colour, arrowprops=line, **slant)
        right += 0.06
