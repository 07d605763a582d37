"""The searches that a structured perceptron can learn from: see `rosenblatt.structured.search`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rosenblatt.structured.search.named_weights import Features, NamedWeights

Input = Any  # whatever the search reads
Path = Any  # whatever the search answers with


@runtime_checkable
class Search(Protocol):
    """What a problem must offer: see `rosenblatt.structured.search` for what it may offer besides."""

    def decode(self, x: Input, w: NamedWeights) -> Path:
        """Return the path of highest score."""

    def features(self, x: Input, path: Path) -> Features:
        """Return what the score of a path is a weighted sum of."""


def path_loss(search: Search, gold: Path, path: Path) -> float:
    """Return how wrong a path is; 0 if it is right."""
    own = getattr(search, "loss", None)
    return count_differences(gold, path) if own is None else own(gold, path)


def count_differences(gold: Path, path: Path) -> int:
    """Return how many parts of two sequences differ, with those of the longer one that the other lacks.

    What is no sequence, such as a string, has one part.

    >>> one, other = ["a", "b", "c"], ("a", "x")
    >>> count_differences(one, other), count_differences("abc", "abd"), count_differences([(1, "x")], [[1, "x"]])
    (2, 1, 0)
    """
    if _has_parts(gold) and _has_parts(path):
        shared = sum(count_differences(one, other) > 0 for one, other in zip(gold, path, strict=False))
        return shared + abs(len(gold) - len(path))
    return 0 if not (_has_parts(gold) or _has_parts(path)) and bool(gold == path) else 1


def count_parts(gold: Path) -> int:
    """Return how many parts a path has."""
    return len(gold) if _has_parts(gold) else 1


def _has_parts(path: Path) -> bool:
    if isinstance(path, np.ndarray):
        return path.ndim > 0
    return isinstance(path, Sequence) and not isinstance(path, str | bytes)


def find_pair(search: Search, x: Input, gold: Path, w: NamedWeights, margin: float) -> tuple[Path, Path] | None:
    """Return the two paths to learn from, right and wrong, or None.

    At w = 0 all paths tie, and a `decode` that happens to answer with gold, or that always prefers it, would never let
    learning start. So while no weight has moved, gold gets no benefit of the tie: `decode` is asked again, with the
    weights −φ(x, gold), for the path least like gold.
    """
    own = getattr(search, "violation", None)
    if own is not None:
        return own(x, gold, w, margin)
    guess = search.decode(x, w)
    if not path_loss(search, gold, guess) and not w:
        against = NamedWeights({name: -value for name, value in search.features(x, gold).items()})
        guess = search.decode(x, against)
    return (gold, guess) if path_loss(search, gold, guess) else None
