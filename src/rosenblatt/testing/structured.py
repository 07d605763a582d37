"""A reference implementation of structured learning: every structure is enumerated, every score is a plain sum, and an
average is the mean of the weights after each example. Weights and features are dictionaries, numbers are what they are:
with integers or fractions all of it is exact. It imports no kernel, so it can judge them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# All structures of a size


def sequences(n: int, tags: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Return all sequences of n of these tags, in the order of `itertools.product`."""
    return product(tags, repeat=n)


def trees(n: int, projective: bool = False, single_root: bool = False) -> Iterator[tuple[int, ...]]:
    """Return all trees over the words 1..n, each as the heads of the words in order; the head of a root word is 0.

    (n+1)ⁿ⁻¹ of them: 1, 3, 16, 125, 1296; nⁿ⁻¹ with a single root: 1, 2, 9, 64, 625. Projective ones: 1, 3, 12, 55, 273,
    with a single root 1, 2, 7, 30, 143. No words have one tree, the empty one.
    """
    for heads in product(range(n + 1), repeat=n):
        if not is_tree(heads) or (projective and not is_projective(heads)):
            continue
        if not single_root or n == 0 or heads.count(0) == 1:
            yield heads


def is_tree(heads: Sequence[int]) -> bool:
    """Return whether every word reaches 0 by going from head to head."""
    return all(0 in _ancestors(heads, word) for word in range(1, len(heads) + 1))


def is_projective(heads: Sequence[int]) -> bool:
    """Return whether every word between a word and its head descends from that head. The root 0 is left of all words."""
    for word, head in enumerate(heads, 1):
        between = range(min(word, head) + 1, max(word, head))
        if not all(head in _ancestors(heads, inner) for inner in between):
            return False
    return True


def _ancestors(heads: Sequence[int], word: int) -> set[int]:
    """What is met on the way up from a word, until 0 or a place met before."""
    met: set[int] = set()
    while word > 0 and heads[word - 1] not in met:
        word = heads[word - 1]
        met.add(word)
    return met


# The best of them


def dot(w: Mapping[Hashable, Any], features: Mapping[Hashable, Any]) -> Any:
    """Return Σ w[name]·value; a name without a weight has weight 0."""
    return sum((w.get(name, 0) * value for name, value in features.items()), 0)


def k_best(candidates: Iterable[Any], score: Callable[[Any], Any], k: int = 1) -> list[Any]:
    """Return the k candidates with the highest scores, best first; among equals those that come first."""
    return sorted(candidates, key=score, reverse=True)[:k]


# Learning


def pa1(C: float) -> Callable[..., Any]:
    """Return the step of PA-I: min(C, (1 − m)/‖Δ‖²) where m < 1. A step is a function of (m, ‖Δ‖², k, positive), as in
    `reference.perceptron`."""
    return lambda m, length, k, positive: min(C, (1 - m) / length) if m < 1 and length > 0 else 0


def differing(gold: Sequence[Any], path: Sequence[Any]) -> int:
    """Return how many parts of two sequences of one length differ."""
    return sum(one != other for one, other in zip(gold, path, strict=True))


class StructuredRun(NamedTuple):
    """The result of learning: the weights at the end, the mean of the weights after each example seen, and the counts.

    A mistake is an example of which some wrong structure scored at least as high as gold, before it was learned from.
    """

    w: dict[Hashable, Any]
    average: dict[Hashable, Fraction]
    mistakes: int
    updates: int


def structured_run(
    examples: Sequence[tuple[Any, Any]],
    candidates: Callable[[Any], Iterable[Any]],
    features: Callable[[Any, Any], Mapping[Hashable, Any]],
    rule: Callable[..., Any],
    epochs: Iterable[Sequence[int]],
    margin: Any = 0,
    loss: Callable[[Any, Any], Any] = differing,
    threshold: Any = 0,
) -> StructuredRun:
    """Visit the examples (x, gold) that each epoch lists, and move by the rule's answer times Δ = φ(x, gold) − φ(x, rival).

    The rival is, of all candidates but gold, the first with the highest score + margin·loss(gold, rival): a tie goes
    against gold. The rule is asked about m = w·Δ; with a margin about m = w·Δ − margin·loss + threshold, so that what the
    rule wants of m by itself (0 for the perceptron, 1 for PA-I) gives way to margin·loss. An example without a rival is
    seen and teaches nothing.
    """
    w: dict[Hashable, Any] = {}
    total: dict[Hashable, Any] = {}
    mistakes, updates, seen = 0, 0, 0
    for epoch in epochs:
        for i in epoch:
            x, gold = examples[i]
            rivals = [z for z in candidates(x) if z != gold]
            scores = [dot(w, features(x, z)) for z in rivals]
            mistakes += any(score >= dot(w, features(x, gold)) for score in scores)
            if rivals:
                demands = [margin * loss(gold, z) for z in rivals]
                best = max(range(len(rivals)), key=lambda j: (scores[j] + demands[j], -j))
                delta = difference(features(x, gold), features(x, rivals[best]))
                m = dot(w, delta) if margin == 0 else dot(w, delta) - demands[best] + threshold
                tau = rule(m, sum(value * value for value in delta.values()), updates + 1, True)
                if tau:
                    updates += 1
                    for name, value in delta.items():
                        w[name] = w.get(name, 0) + tau * value
            seen += 1
            for name, value in w.items():
                total[name] = total.get(name, 0) + Fraction(value)
    average = {name: value / seen for name, value in total.items()}
    return StructuredRun(w, average, mistakes, updates)


def difference(plus: Mapping[Hashable, Any], minus: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Return the features of the first less those of the second, without those that are 0."""
    both = {name: plus.get(name, 0) - minus.get(name, 0) for name in [*plus, *minus]}
    return {name: value for name, value in both.items() if value != 0}


# Another library's learner, by its definition


class Seqlearn(NamedTuple):
    """The weights that seqlearn's `StructuredPerceptron` learns, under its names."""

    coef: NDArray  # (classes, features)
    intercept_init: NDArray  # (classes,)
    intercept_trans: NDArray  # (classes, classes): from, to
    intercept_final: NDArray  # (classes,)
    classes: NDArray

    def predict(self, X: NDArray, lengths: Sequence[int]) -> NDArray:
        """Return the label of each row of sequences of these lengths, one after the other."""
        scores, ends = np.asarray(X, float) @ self.coef.T, np.cumsum(lengths)
        chains = (self.intercept_init, self.intercept_trans, self.intercept_final)
        paths = [_best_chain(scores[end - n : end], *chains) for n, end in zip(lengths, ends, strict=True)]
        return self.classes[np.concatenate([np.empty(0, np.int64), *paths])]


def seqlearn_perceptron(
    X: NDArray,
    y: Sequence[Any],
    lengths: Sequence[int],
    lr_exponent: float = 0.1,
    max_iter: int = 10,
    random_state: int | None = None,
) -> Seqlearn:
    """Return what seqlearn's `StructuredPerceptron` (Buitinck 2013) learns from the rows X of sequences of these lengths.

    Three things are its own. A sequence is learned from where the path of the Viterbi algorithm is not the gold one, so a
    tie is no mistake where the path that is lowest from the right is gold. All moves of epoch e have length e^−lr_exponent.
    And the clock of its average ticks once an epoch, from 1: a move of epoch e is kept by 1 − e/(epochs + 1), where
    Collins's average keeps it by the share of examples still to come. A sequence has at least one row.
    """
    X = np.asarray(X, float)
    classes, labels = np.unique(y, return_inverse=True)
    one_hot = np.eye(len(classes))
    ends = np.cumsum(lengths).tolist()
    n = len(classes)
    w = [np.zeros((n, X.shape[1])), np.zeros(n), np.zeros((n, n)), np.zeros(n)]
    kept = [block.copy() for block in w]
    order = np.arange(len(lengths))
    rng = np.random.RandomState(random_state)
    for epoch in range(1, max_iter + 1):
        rng.shuffle(order)  # what was shuffled before
        for i in order.tolist():
            rows = slice(ends[i] - lengths[i], ends[i])
            gold = labels[rows]
            path = _best_chain(X[rows] @ w[0].T, *w[1:])
            if np.array_equal(gold, path):
                continue
            for block, average, right, wrong in zip(
                w, kept, _counts(X[rows], one_hot[gold]), _counts(X[rows], one_hot[path]), strict=True
            ):
                move = epoch**-lr_exponent * (right - wrong)
                block += move
                average += (1 - epoch / (max_iter + 1)) * move
    coef, init, trans, final = kept
    return Seqlearn(coef, init, trans, final, classes)


def _counts(X: NDArray, chosen: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """What a path, its labels one-hot in rows, adds up to in each block of weights."""
    return chosen.T @ X, chosen[0], chosen[:-1].T @ chosen[1:], chosen[-1]


def _best_chain(scores: NDArray, init: NDArray, trans: NDArray, final: NDArray) -> NDArray:
    """The path of highest score by the Viterbi algorithm; among equals the one that is lowest from the right."""
    best, came_from = scores[0] + init, []
    for row in scores[1:]:
        through = best[:, None] + trans + row
        came_from.append(through.argmax(axis=0))
        best = through.max(axis=0)
    path = [int((best + final).argmax())]
    for back in reversed(came_from):
        path.append(int(back[path[-1]]))
    return np.array(path[::-1])
