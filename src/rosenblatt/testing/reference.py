"""A reference implementation: the perceptron as a textbook writes it, in plain numpy, slow and easy to check.

It imports no kernel, so it can judge them. It keeps the weights after every example; averages, votes and pockets are
then what their definitions say, with nothing clever in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Demand(NamedTuple):
    """What an example asks of the weights: a margin, the columns its direction lies in with their signs, the column
    (or 0, for a joint decision) whose updates it counts among, and whether it stands on that column's positive side."""

    margin: float
    direction: dict[int, int]
    counter: int
    positive: bool = True


def perceptron(margin: float = 0.0, rate: Callable[[int], float] = lambda k: 1.0) -> Callable[..., float]:
    """Return the step of the perceptron: η_k if m ≤ δ. A step is a function of (m, ‖Δ‖², k, positive)."""
    return lambda m, length, k, positive: rate(k) if m <= margin else 0.0


def prediction_perceptron(zero_sign: int = 1) -> Callable[..., float]:
    """Return the step of the perceptron that compares labels: 1 if the predicted label, `zero_sign` at 0, is not y."""
    return lambda m, length, k, positive: float(m < 0 or (m == 0 and positive != (zero_sign > 0)))


PERCEPTRON = perceptron()


class Run(NamedTuple):
    """The result of learning: the weights (columns, features + 1) after each example seen, and the counts."""

    path: list[NDArray]
    start: NDArray
    mistakes: int
    updates: int
    right: list[bool]  # for each example seen, whether it was predicted before it was learned from

    @property
    def last(self) -> NDArray:
        return self.path[-1] if self.path else self.start

    @property
    def average(self) -> NDArray:
        return np.sum(self.path, axis=0) / len(self.path)


def padded(X: NDArray, constant: float) -> NDArray:
    """Return X with the constant feature as its last column."""
    X = np.asarray(X, dtype=float)
    return np.hstack([X, np.full((len(X), 1), float(constant))])


def width(multiclass: str, classes: int) -> int:
    """Return the number of weight vectors."""
    return {"binary": 1, "joint": classes, "ovr": classes, "ovo": classes * (classes - 1) // 2}[multiclass]


def demands(multiclass: str, classes: int, label: int, scores: NDArray) -> list[Demand]:
    """Return the margins that an example of this label must have, one for each direction in which it moves weights."""
    if multiclass == "binary":
        sign = 1 if label == 1 else -1
        return [Demand(sign * scores[0], {0: sign}, 0, sign > 0)]
    if multiclass == "joint":
        rivals = [r for r in range(classes) if r != label]
        if not rivals:
            return []
        rival = max(rivals, key=lambda r: (scores[r], -r))
        return [Demand(scores[label] - scores[rival], {label: 1, rival: -1}, 0)]
    if multiclass == "ovr":
        signs = [1 if r == label else -1 for r in range(classes)]
        return [Demand(sign * scores[r], {r: sign}, r, sign > 0) for r, sign in enumerate(signs)]
    found = []
    for p, pair in enumerate(combinations(range(classes), 2)):
        if label in pair:
            sign = 1 if label == pair[0] else -1
            found.append(Demand(sign * scores[p], {p: sign}, p, sign > 0))
    return found


def predicted(multiclass: str, classes: int, label: int, scores: NDArray) -> bool:
    """Return whether the label is predicted, and not by a tie."""
    if multiclass == "ovr":
        return all(scores[label] > scores[r] for r in range(classes) if r != label)
    return all(demand.margin > 0 for demand in demands(multiclass, classes, label, scores))


def learn(
    X: NDArray,
    labels: Sequence[int],
    classes: int,
    epochs: Iterable[Sequence[int]],
    *,
    multiclass: str = "joint",
    step: Callable[..., float] = PERCEPTRON,
    constant: float = 1.0,
    start: NDArray | None = None,
    weight: NDArray | None = None,
    class_weight: Sequence[float] | None = None,
    batch: int = 1,
    mean: bool = False,
    counts: dict[int, int] | None = None,
) -> Run:
    """Visit the rows that each epoch lists, in batches, and move the weights by the step times the direction.

    Parameters
    ----------
    X : (rows, features) array
        The rows.
    labels : sequence of int
        Their class numbers.
    classes : int
        How many classes there are.
    epochs : iterable of sequences of int
        The rows that each epoch visits, by number.
    multiclass : {"binary", "joint", "ovr", "ovo"}, default="joint"
        How classes are told apart.
    step : callable, default=perceptron()
        The rule: a function of (margin, ‖Δ‖², number of the update, positive) that returns the step.
    constant : float, default=1
        The constant feature; 0 for no intercept.
    start : (columns, features + 1) array, optional
        The weights before the first example; zero by default.
    weight : (rows,) array, optional
        The weights of the examples.
    class_weight : sequence of float, optional
        The weights of the classes. With one-vs-rest that of a class counts where the class is the
        positive one.
    batch : int, default=1
        How many rows are visited before the weights change.
    mean : bool, default=False
        Whether a batch moves by the mean of its steps rather than their sum.
    counts : dict, optional
        The updates made before, by the column that counts them; it is brought up to date.

    Returns
    -------
    Run
        The weights after each example, and the counts.
    """
    X = padded(X, constant)
    w = np.zeros((width(multiclass, classes), X.shape[1])) if start is None else np.array(start, dtype=float)
    begin = w.copy()
    path: list[NDArray] = []
    right: list[bool] = []
    counts = {} if counts is None else counts
    before = sum(counts.values())
    mistakes = 0
    for epoch in epochs:
        for first in range(0, len(epoch), batch):
            rows = epoch[first : first + batch]
            steps: list[tuple[int, Demand, float]] = []
            for i in rows:
                scores = w @ X[i]
                right.append(predicted(multiclass, classes, labels[i], scores))
                mistakes += not right[-1]
                for demand in demands(multiclass, classes, labels[i], scores):
                    length = len(demand.direction) * X[i] @ X[i]
                    k = counts.get(demand.counter, 0) + 1
                    eta = step(demand.margin, length, k, demand.positive)
                    eta *= 1.0 if weight is None else weight[i]
                    if class_weight is not None and (multiclass != "ovr" or demand.positive):
                        eta *= class_weight[labels[i]]
                    if eta:
                        steps.append((i, demand, eta))
            new = w.copy()
            for i, demand, eta in steps:
                if mean:
                    eta /= sum(other.counter == demand.counter for _, other, _ in steps)
                for column, sign in demand.direction.items():
                    new[column] += eta * sign * X[i]
            for counter in {demand.counter for _, demand, _ in steps}:
                counts[counter] = counts.get(counter, 0) + 1
            path += [w] * (len(rows) - 1) + [new]
            w = new
    return Run(path, begin, mistakes, sum(counts.values()) - before, right)


def learn_growing(
    X: NDArray,
    labels: Sequence[int],
    *,
    multiclass: str = "joint",
    step: Callable[..., float] = PERCEPTRON,
    constant: float = 1.0,
) -> Run:
    """Learn from a stream whose classes become known, and are numbered, when they first come.

    One class asks for nothing. Two are told apart by one vector, positive for class 1; the third
    makes of it a vector for class 1 and its opposite for class 0, or for the pair of 0 against 1. A
    new class begins with weights of zero, and the others keep theirs, with the numbers of their
    updates.

    Parameters
    ----------
    X, multiclass, step, constant
        As in `learn`.
    labels : sequence of int
        The class numbers: each is at most one more than those before it.

    Returns
    -------
    Run
        As if all classes had been known from the beginning: the weights after each example are
        those of the last problem.
    """
    classes, counts = 1, {}  # type: int, dict[int, int]
    w = np.zeros((1, X.shape[1] + 1))
    path: list[NDArray] = []
    right: list[bool] = []
    mistakes, updates = 0, 0
    for i, label in enumerate(labels):
        if label == classes:
            places = new_places(multiclass, classes)
            classes += 1
            columns = width(_told_apart(multiclass, classes), classes)
            w, path = _moved(w, places, columns), [_moved(old, places, columns) for old in path]
            if _told_apart(multiclass, classes) != "joint":  # whose one counter stays
                counts = {new: counts[old] for new, old, _ in places if old in counts}
        run = learn(
            X, labels, classes, [[i]], multiclass=_told_apart(multiclass, classes), step=step,
            constant=constant, start=w, counts=counts,
        )  # fmt: skip
        w = run.last
        path.append(w)
        right += run.right
        mistakes, updates = mistakes + run.mistakes, updates + run.updates
    return Run(path, np.zeros_like(w), mistakes, updates, right)


def new_places(multiclass: str, classes: int) -> list[tuple[int, int, int]]:
    """Return (new column, old column, sign) of each weight vector when one more class comes."""
    if classes == 1:
        return []
    if classes == 2:
        return [(0, 0, -1)] if multiclass == "ovo" else [(0, 0, -1), (1, 0, 1)]
    if multiclass != "ovo":
        return [(k, k, 1) for k in range(classes)]
    larger = list(combinations(range(classes + 1), 2))
    return [(larger.index(pair), p, 1) for p, pair in enumerate(combinations(range(classes), 2))]


def _told_apart(multiclass: str, classes: int) -> str:
    """The problem of so many classes: one cannot be told apart, and two need one vector."""
    return {1: "joint", 2: "binary"}.get(classes, multiclass)


def _moved(w: NDArray, places: list[tuple[int, int, int]], columns: int) -> NDArray:
    """The weight vectors at their new places, zeros at the others."""
    moved = np.zeros((columns, w.shape[1]))
    for new, old, sign in places:
        moved[new] = sign * w[old]
    return moved


class MixedRun(NamedTuple):
    """The result of learning in shards: the weights after each visit of each shard, those after each mixture, and for each
    epoch the updates and mistakes of the shards and their shares in the mixture."""

    path: list[NDArray]
    mixed: list[NDArray]
    updates: list[list[int]]
    mistakes: list[list[int]]
    shares: list[list[float]]

    @property
    def last(self) -> NDArray:
        return self.mixed[-1]

    @property
    def total(self) -> NDArray:
        """The sum of the weights after every visit of every shard."""
        return np.sum(self.path, axis=0)

    @property
    def weighted_updates(self) -> float:
        """Σ Σ μk: the updates of all shards in all epochs, each weighted by the share of its shard in the mixture."""
        return sum(float(np.dot(mu, k)) for mu, k in zip(self.shares, self.updates, strict=True))


def learn_in_shards(
    X: NDArray,
    labels: Sequence[int],
    classes: int,
    epochs: Iterable[Sequence[Sequence[int]]],
    shares: Callable[[list[int]], Sequence[float]] = lambda updates: [1 / len(updates)] * len(updates),
    *,
    multiclass: str = "joint",
    step: Callable[..., float] = PERCEPTRON,
    constant: float = 1.0,
    changed: bool = False,
) -> MixedRun:
    """Have each shard make one epoch from the common weights, mix what they come to, and again (McDonald, Hall and Mann
    2010).

    The steps must not depend on the number of the update: each shard counts from 1 in each epoch.

    Parameters
    ----------
    X, labels, classes, multiclass, step, constant
        As in `learn`.
    epochs : iterable of sequences of sequences of int
        For each epoch the rows that each shard visits, by number.
    shares : callable, optional
        The mixture of an epoch, from the updates that each shard made in it; by default all shards have the same share.
    changed : bool, default=False
        Whether each weight becomes the mean over the shards that have changed it instead, or stays if none has.

    Returns
    -------
    MixedRun
        The weights after each visit and after each mixture, and the counts.
    """
    w = np.zeros((width(multiclass, classes), X.shape[1] + 1))
    found = MixedRun([], [], [], [], [])
    for parts in epochs:
        runs = [
            learn(X, labels, classes, [part], multiclass=multiclass, step=step, constant=constant, start=w)
            for part in parts
        ]
        updates = [run.updates for run in runs]
        mixture = list(shares(updates))
        if changed:
            w = mean_of_changed(w, [run.last for run in runs])
        else:
            w = np.sum([share * run.last for share, run in zip(mixture, runs, strict=True)], axis=0)
        found.path.extend(weights for run in runs for weights in run.path)
        found.mixed.append(w)
        found.updates.append(updates)
        found.mistakes.append([run.mistakes for run in runs])
        found.shares.append(mixture)
    return found


def mean_of_changed(before: NDArray, after: Sequence[NDArray]) -> NDArray:
    """Return, weight by weight, the mean of those that are no longer what they were; what all agree on stays."""
    mixed = before.copy()
    for place in np.ndindex(before.shape):
        if changed := [w[place] for w in after if w[place] != before[place]]:
            mixed[place] = sum(changed) / len(changed)
    return mixed


def learn_worst_first(
    X: NDArray,
    labels: Sequence[int],
    classes: int,
    looks: int,
    *,
    multiclass: str = "binary",
    margin: float = 0.0,
    constant: float = 1.0,
    normalised: bool = False,
) -> Run:
    """Learn, at most `looks` times, from the row whose lowest margin is lowest (divided by its norm if `normalised`)."""
    order: list[int] = []
    run = learn(X, labels, classes, [order], multiclass=multiclass, step=perceptron(margin), constant=constant)
    for _ in range(looks):
        worst = []
        for i, x in enumerate(padded(X, constant)):
            lowest = min(demand.margin for demand in demands(multiclass, classes, labels[i], run.last @ x))
            if lowest <= margin:
                worst.append((lowest / np.linalg.norm(x) if normalised else lowest, i))
        if not worst:
            break
        order.append(min(worst)[1])
        run = learn(X, labels, classes, [order], multiclass=multiclass, step=perceptron(margin), constant=constant)
    return run


def vote(run: Run, x: NDArray, constant: float = 1.0) -> float:
    """Return the mean, over the examples seen, of the sign that the weights after each give x; zero counts as positive."""
    point = np.append(x, constant)
    return float(np.mean([1.0 if w[0] @ point >= 0 else -1.0 for w in run.path]))


def pocket(run: Run, errors: Callable[[NDArray], int]) -> NDArray:
    """Return, of the weights with the longest run of right answers so far, the last that also made fewer errors than the
    one pocketed before (Gallant 1990, with ratchet)."""
    best, fewest, longest, length = run.start, errors(run.start), 0, 0
    path = [run.start, *run.path]
    for seen, ok in enumerate([*run.right, False]):
        if ok:
            length += 1
            continue
        if length > longest and errors(path[seen]) < fewest:
            best, fewest, longest = path[seen], errors(path[seen]), length
        length = 0
    return best
