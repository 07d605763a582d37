"""A search finds the path of highest score, and that is all a structured learner asks of a problem.

A search offers `decode(x, w)`, the path of the input x that the weights w score highest, and `features(x, path)`, a
mapping from names to numbers; the score of a path is Σ w[name]·number, which is `w.score(features(x, path))`. A path is
right if its loss is 0: `loss(gold, path)` where the search offers one, else the number of parts that differ. The two
paths to learn from are gold and what `decode` answers, unless the search offers `violation(x, gold, w, margin)`, which
names them, right and wrong, or answers None where gold has won, with score(gold) > score(path) + margin·loss(gold, path)
for every other path. They may be prefixes of paths, if `features` tells the features of prefixes too; inexact search
needs that (`beams`). A tie is no win for gold in `violation`; `decode` is not told gold, and breaks ties as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rosenblatt.structured.named import Features, NamedWeights


@runtime_checkable
class Search(Protocol):
    """What a problem must offer: see the head of this file for what it may offer besides."""

    def decode(self, x: Any, w: NamedWeights) -> Any:
        """The path of highest score."""

    def features(self, x: Any, path: Any) -> Features:
        """What the score of a path is a weighted sum of."""


def loss(search: Any, gold: Any, path: Any) -> float:
    """How wrong a path is; 0 if it is right."""
    own = getattr(search, "loss", None)
    return differing(gold, path) if own is None else own(gold, path)


def differing(gold: Any, path: Any) -> int:
    """How many parts of two sequences differ, with those of the longer one that the other lacks. What is no sequence,
    such as a string, has one part.

    >>> differing(["a", "b", "c"], ("a", "x")), differing("abc", "abd"), differing([(1, "x")], [[1, "x"]])
    (2, 1, 0)
    """
    if not (_parted(gold) and _parted(path)):
        return 0 if _equal(gold, path) else 1
    shared = sum(differing(one, other) > 0 for one, other in zip(gold, path, strict=False))
    return shared + abs(len(gold) - len(path))


def parts(gold: Any) -> int:
    """How many parts a path has."""
    return len(gold) if _parted(gold) else 1


def _parted(path: Any) -> bool:
    if isinstance(path, np.ndarray):
        return path.ndim > 0
    return isinstance(path, Sequence) and not isinstance(path, str | bytes)


def _equal(gold: Any, path: Any) -> bool:
    return False if _parted(gold) or _parted(path) else bool(gold == path)


def proposed(search: Any, x: Any, gold: Any, w: NamedWeights, margin: float) -> tuple[Any, Any] | None:
    """The two paths to learn from, right and wrong, or None.

    At w = 0 all paths tie, and a `decode` that happens to answer with gold, or that always prefers it, would never let
    learning start. So while no weight has moved, gold gets no benefit of the tie: `decode` is asked again, with the
    weights −φ(x, gold), for the path least like gold.
    """
    own = getattr(search, "violation", None)
    if own is not None:
        return own(x, gold, w, margin)
    guess = search.decode(x, w)
    if not loss(search, gold, guess) and not w:
        against = NamedWeights({name: -value for name, value in search.features(x, gold).items()})
        guess = search.decode(x, against)
    return (gold, guess) if loss(search, gold, guess) else None
