"""The usual ways to get the perceptron wrong, each as a small change to the right one, so that it can be made on purpose.

The right one: the weights start at 0, every epoch visits the rows in their order, and wherever the margin ⟨w, y·(x, 1)⟩ is
not above 0, y·(x, 1) is added to w. The intercept is the last weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.testing.reference import padded


class Path(NamedTuple):
    """The weights after each visit, beginning with those before the first, and what each update did."""

    weights: list[NDArray]
    rows: list[int]  # for each update, its row
    changes: list[NDArray]  # and the weights after it
    epoch: int  # visits in an epoch


Report = Callable[[Path], NDArray]


def last_weights(path: Path) -> NDArray:
    """Return the weights after the last visit."""
    return path.weights[-1]


def mean_weights(path: Path) -> NDArray:
    """Return the mean of the weights after each visit."""
    return np.mean(path.weights[1:] or path.weights, axis=0)


class Variant(NamedTuple):
    """A perceptron that may be wrong: if ⟨w, tested[i]⟩ is below limits[i], or equal to it where ties[i] is true, it adds
    moves[i] to w."""

    tested: NDArray  # (rows, features + 1)
    moves: NDArray  # (rows, features + 1)
    limits: NDArray  # (rows,)
    ties: NDArray  # (rows,) of bool
    start: NDArray  # (features + 1,)
    order: NDArray  # the rows that an epoch visits
    epochs: int
    result: Report = last_weights  # which weights are returned
    swapped: bool = False  # whether each row is visited in all epochs before the next one is
    whole_epochs: bool = False  # whether the margins of an epoch are those of the weights at its beginning
    stops_early: bool = False  # whether an epoch without an update is the last
    first_row: int = 0  # the number of the first row in reports
    positions: NDArray | None = None  # where in a report each weight is; None: where it should be
    hidden: bool = False  # whether the intercept is left out of reports
    threshold: bool = False  # whether reports have the threshold of ⟨w, x⟩ instead, the negative of the intercept

    @property
    def visits(self) -> NDArray:
        """The rows of all epochs, one after the other."""
        return np.repeat(self.order, self.epochs) if self.swapped else np.tile(self.order, self.epochs)

    def report(self, weights: NDArray) -> NDArray:
        """Return weights as this perceptron shows them."""
        if self.threshold:
            weights = weights * np.append(np.ones(weights.shape[-1] - 1), -1.0)
        shown = weights if self.positions is None else weights[..., self.positions]
        return np.concatenate([shown[..., :-1], 0 * shown[..., -1:]], axis=-1) if self.hidden else shown


def right_variant(X: NDArray, signs: NDArray, epochs: int, *, intercept: bool, average: bool) -> Variant:
    """Return the perceptron without a mistake."""
    rows = signs[:, None] * padded(X, 1.0 if intercept else 0.0)
    n, size = rows.shape
    result = mean_weights if average else last_weights
    return Variant(rows, rows, np.zeros(n), np.ones(n, dtype=bool), np.zeros(size), np.arange(n), epochs, result)


def run(variant: Variant) -> Path:
    """Visit the rows, and keep the weights after each visit and after each update that changes them."""
    w = seen = variant.start
    path = Path([w], [], [], len(variant.order))
    for visit, i in enumerate(variant.visits, start=1):
        margin = seen @ variant.tested[i]
        wrong = margin < variant.limits[i] or (margin == variant.limits[i] and variant.ties[i])
        if wrong and variant.moves[i].any():
            w = w + variant.moves[i]
            path.rows.append(int(i))
            path.changes.append(w)
        path.weights.append(w)
        ends = visit % path.epoch == 0
        if ends and variant.stops_early and w is path.weights[-1 - path.epoch]:
            break
        if ends or not variant.whole_epochs:
            seen = w
    return path


class Mistake(NamedTuple):
    """One way to get the perceptron wrong.

    Attributes
    ----------
    kind : str
        "tie", "intercept", "labels", "update", "order", "epochs", "start", "rate", "average" or "report".
    sentence : str
        What is wrong, in plain words.

    Examples
    --------
    >>> from rosenblatt.testing import compare
    >>> found = compare(lambda X, y, epochs: (0 * X[0], 0.0), [[1.0], [-1.0]], [1, -1])  # it learns nothing
    >>> [mistake.kind for mistake in found.explanations[0]]
    ['tie']
    """

    kind: str
    sentence: str


Change = Callable[[Variant], Variant]


def mistakes(right: Variant, signs: NDArray, *, intercept: bool, average: bool) -> Iterator[tuple[Mistake, Change]]:
    """Yield every known mistake with the change that makes it. Of several that explain a result, the first is named first.

    Changes can be made one after the other: each changes its own part of a variant.
    """
    yield from _of_ties(signs)
    if intercept:
        yield from _of_intercepts()
    yield from _of_labels(signs)
    yield from _of_updates(signs)
    yield from _of_visits(right)
    yield from _of_averages() if average else _of_results()


def _of_ties(signs: NDArray) -> Iterator[tuple[Mistake, Change]]:
    without = "the margin 0 must be a mistake for both classes: y·(⟨w, x⟩ + b) <= 0"
    for sign, word, guess in ((-1, "negative", "−1"), (1, "positive", "+1")):
        sentence = f"a score of exactly 0 is predicted as {guess}, so at 0 no {word} row is learned from; {without}."
        yield Mistake("tie", sentence), _with_ties(signs != sign)
    sentence = "the test is m < 0 instead of m <= 0. From zero weights every margin is 0, so nothing is ever learned."
    yield Mistake("tie", sentence), _with_ties(np.zeros(len(signs), dtype=bool))


def _with_ties(count: NDArray) -> Change:
    return lambda v: v._replace(ties=v.ties & count)


def _of_intercepts() -> Iterator[tuple[Mistake, Change]]:
    def last(rows: NDArray, values: NDArray | float) -> NDArray:
        rows = rows.copy()
        rows[:, -1] = values
        return rows

    sentence = "the intercept is forgotten or never learned: it stays 0, and the line goes through the origin."
    yield Mistake("intercept", sentence), lambda v: v._replace(tested=last(v.tested, 0), moves=last(v.moves, 0))
    sentence = "the intercept is learned, but it is not part of the margin that is tested."
    yield Mistake("intercept", sentence), lambda v: v._replace(tested=last(v.tested, 0))
    sentence = "the intercept grows by 1 at every update; it must grow by y."
    yield Mistake("intercept", sentence), lambda v: v._replace(moves=last(v.moves, 1))
    sentence = "the intercept shrinks where it should grow: the update must add y to it, not subtract y."
    yield Mistake("intercept", sentence), lambda v: v._replace(moves=last(v.moves, -v.moves[:, -1]))
    sentence = "the intercept is learned, but it is missing from the weights that are shown."
    yield Mistake("report", sentence), lambda v: v._replace(hidden=True)

    sentence = "the intercept has the other sign: it is the threshold of ⟨w, x⟩; the intercept that is added is expected."
    yield Mistake("report", sentence), lambda v: v._replace(threshold=True)

    def intercept_first(v: Variant) -> Variant:
        return v._replace(positions=np.roll(np.arange(v.tested.shape[1]), 1))

    yield Mistake("report", "the intercept is the first of the weights; it is expected last."), intercept_first


def _of_labels(signs: NDArray) -> Iterator[tuple[Mistake, Change]]:
    positive = signs > 0
    sentence = "the labels are used as 0 and 1 where the update needs −1 and +1: rows of the class 0 change nothing."
    yield Mistake("labels", sentence), lambda v: v._replace(moves=v.moves * positive[:, None])
    sentence = (
        "predictions of 0 or 1 are compared with labels of −1 or +1, so a negative row is learned from at every visit."
    )
    yield Mistake("labels", sentence), lambda v: v._replace(limits=np.where(positive, v.limits, np.inf))
    sentence = "the two labels are swapped: all weights have the wrong sign."
    yield Mistake("labels", sentence), lambda v: v._replace(tested=-v.tested, moves=-v.moves)


def _of_updates(signs: NDArray) -> Iterator[tuple[Mistake, Change]]:
    sentence = "the update adds x without its label: w += y·x, not w += x."
    yield Mistake("update", sentence), lambda v: v._replace(moves=signs[:, None] * v.moves)
    sentence = "the update subtracts y·x; it must add it."
    yield Mistake("update", sentence), lambda v: v._replace(moves=-v.moves)
    sentence = "rows with margins above 0, up to 1, are learned from too: that is the perceptron with a margin of 1."
    yield Mistake("update", sentence), lambda v: v._replace(limits=v.limits + 1)
    sentence = "every row is learned from at every visit, whatever its margin."
    yield Mistake("update", sentence), lambda v: v._replace(limits=np.full(len(signs), np.inf))
    sentence = (
        "the margins are those of the weights at the beginning of the epoch: w must change before the next row is tested."
    )
    yield Mistake("update", sentence), lambda v: v._replace(whole_epochs=True)
    sentence = "the weights start at 1; they must start at 0."
    yield Mistake("start", sentence), lambda v: v._replace(start=np.ones(len(v.start)))
    sentence = "the weights of the features start at 1; they must start at 0."
    yield Mistake("start", sentence), lambda v: v._replace(start=np.append(np.ones(len(v.start) - 1), 0.0))


def _of_visits(right: Variant) -> Iterator[tuple[Mistake, Change]]:
    last, epochs = len(right.order) - 1, right.epochs
    sentence = "every epoch visits the rows from the last to the first."
    yield Mistake("order", sentence), lambda v: v._replace(order=v.order[::-1])
    sentence = "the two loops are swapped: each row is visited in all epochs before the next row is."
    yield Mistake("order", sentence), lambda v: v._replace(swapped=True)
    yield Mistake("order", "the first row is left out."), lambda v: v._replace(order=v.order[v.order != 0])
    yield Mistake("order", "the last row is left out."), lambda v: v._replace(order=v.order[v.order != last])
    counts = {1: "one epoch is made", epochs - 1: "one epoch too few is made", epochs + 1: "one epoch too many is made"}
    for count, words in counts.items():
        if 0 < count != epochs:
            yield Mistake("epochs", f"{words}: {count} instead of {epochs}."), _with_epochs(count)
    yield Mistake("report", "the rows are counted from 1; they are expected from 0."), lambda v: v._replace(first_row=1)


def _with_epochs(count: int) -> Change:
    return lambda v: v._replace(epochs=count)


def _of_averages() -> Iterator[tuple[Mistake, Change]]:
    def means(choose: Callable[[Path], list[NDArray]]) -> Change:
        return lambda v: v._replace(result=lambda path: np.mean(choose(path) or path.weights[:1], axis=0))

    sentence = "the last weights are returned, not the average."
    yield Mistake("average", sentence), lambda v: v._replace(result=last_weights)
    sentence = (
        "the average is off by one: it is of the weights before each visit, so w₀ is in it and the last weights are not."
    )
    yield Mistake("average", sentence), means(lambda path: path.weights[:-1])
    sentence = (
        "the average is off by one: the weights before the first visit are in it, and it is divided by one visit more."
    )
    yield Mistake("average", sentence), means(lambda path: path.weights)
    sentence = "the average is off by one: the sum of the weights is divided by one visit too few."
    yield Mistake("average", sentence), _divided_by_one_too_few
    sentence = "only the weights after updates are averaged: those that survive a visit must be counted again."
    yield Mistake("average", sentence), means(lambda path: path.changes)
    sentence = "only the weights at the end of each epoch are averaged: every visit counts."
    yield Mistake("average", sentence), means(lambda path: path.weights[path.epoch :: path.epoch or 1])
    sentence = "only the weights of the last epoch are averaged."
    yield Mistake("average", sentence), means(lambda path: path.weights[-path.epoch :])
    sentence = "the sum of the weights is returned: it must be divided by the number of visits."
    yield Mistake("average", sentence), lambda v: v._replace(result=lambda path: np.sum(path.weights[1:], axis=0))
    sentence = "training stops after an epoch without a mistake, so the last weights count less often than in all epochs."
    yield Mistake("average", sentence), lambda v: v._replace(stops_early=True)


def _divided_by_one_too_few(v: Variant) -> Variant:
    return v._replace(result=lambda path: np.sum(path.weights[1:], axis=0) / max(len(path.weights) - 2, 1))


def _of_results() -> Iterator[tuple[Mistake, Change]]:
    sentence = "the average of the weights is returned, not the last weights."
    yield Mistake("average", sentence), lambda v: v._replace(result=mean_weights)
