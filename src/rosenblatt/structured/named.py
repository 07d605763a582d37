"""Weights of features by name: dictionaries, for searches that are written in Python. A name is anything hashable, and one
that never took part in an update weighs 0.0 and takes no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

Features = Mapping[Hashable, float]


class NamedWeights(dict):
    """The weight of each name, to be read: `w[name]` answers 0.0 for a name without one.

    >>> w = NamedWeights({"a": 2.0, "b": -1.0})
    >>> w["a"], w["z"], w.score({"a": 3, "b": 1, "z": 7})
    (2.0, 0.0, 5.0)
    """

    __slots__ = ()

    def __missing__(self, name: Hashable) -> float:
        return 0.0

    def score(self, features: Features) -> float:
        """Σ w[name]·value, rounded once, so that the order of the features does not matter; NaN if it overflows."""
        weight = self.get
        return total([weight(name, 0.0) * value for name, value in features.items()])

    def copy(self) -> NamedWeights:
        """The same weights, sharing nothing."""
        return NamedWeights(self)

    def _refuse(self, *values: Any, **names: Any) -> NoReturn:
        raise TypeError("the weights are for a search to read; they change only by learning")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict]]:
        return NamedWeights, (dict(self),)


_set: Callable[[dict, Hashable, float], None] = dict.__setitem__
_forget: Callable[[dict, Hashable], None] = dict.__delitem__


def total(values: Iterable[float]) -> float:
    """The sum, rounded once; NaN where it is no finite number."""
    try:
        found = math.fsum(values)
    except (OverflowError, ValueError):  # a partial sum that is too large, or ∞ − ∞
        return math.nan
    return found if math.isfinite(found) else math.nan


def direction(right: Features, wrong: Features) -> dict[Hashable, float]:
    """φ(right) − φ(wrong), without what cancels."""
    delta = dict(right)
    for name, value in wrong.items():
        left = delta.get(name, 0.0) - value
        if left != 0.0:
            delta[name] = left
        else:
            delta.pop(name, None)
    return {name: value for name, value in delta.items() if value != 0.0}


class NamedModel:
    """What has been learned by name: the last weights, the drift from which their average follows, and the counts."""

    only_predicts = False

    def __init__(self) -> None:
        self.w = NamedWeights()
        self.drift: dict[Hashable, float] = {}  # of the same names; the average is w − drift/seen
        self.seen = 0  # examples visited
        self.updates = 0
        self.refused = 0  # pairs of paths that were brought but not learned from
        self._undo: list[tuple[Hashable, float | None, float | None]] | None = None
        self._kept: tuple[int, NamedWeights] | None = None  # (seen, the average then)

    def push(self, delta: Features, tau: float) -> None:
        """w += τΔ, an update made after `seen` examples."""
        w, drift, late = self.w, self.drift, tau * self.seen
        for name, value in delta.items():
            if self._undo is not None:
                self._undo.append((name, w.get(name), drift.get(name)))
            _set(w, name, w.get(name, 0.0) + tau * value)
            drift[name] = drift.get(name, 0.0) + late * value
        self.updates += 1

    def kept(self, keep: str) -> NamedWeights:
        """The weights that predict: the last, or the mean of those after every example seen."""
        if keep == "last" or self.seen == 0:
            return self.w
        if self._kept is None or self._kept[0] != self.seen:
            drift = self.drift
            average = {name: weight - drift[name] / self.seen for name, weight in self.w.items()}
            self._kept = self.seen, NamedWeights(average)
        return self._kept[1]

    def norm(self) -> float:
        """The Euclidean norm of the last weights."""
        return math.sqrt(total([weight * weight for weight in self.w.values()]))

    def copy(self) -> NamedModel:
        """The same, sharing nothing."""
        twin = NamedModel()
        twin.w, twin.drift = self.w.copy(), self.drift.copy()
        twin.seen, twin.updates, twin.refused = self.seen, self.updates, self.refused
        return twin

    def branch(self) -> NamedModel:
        """A model that begins with these weights and a clock of its own; its drift names what it has changed."""
        twin = NamedModel()
        twin.w, twin.updates = self.w.copy(), self.updates
        return twin

    def mix(self, branches: Sequence[NamedModel]) -> None:
        """Go over to the mean of the weights of branches that learned side by side.

        What a branch has seen counts in the average as if it had come here. A branch that ended at w' after n examples,
        with a drift d, passed through weights of sum n·w' − d, so that here the drift grows by n·(w − w') + d.
        """
        changed = dict.fromkeys(name for branch in branches for name in branch.drift)
        for name in changed:
            was, drift = self.w[name], self.drift.get(name, 0.0)
            now = was + total([branch.w[name] - was for branch in branches]) / len(branches)
            passed = [branch.seen * (now - branch.w[name]) + branch.drift.get(name, 0.0) for branch in branches]
            _set(self.w, name, now)
            self.drift[name] = drift + self.seen * (now - was) + total(passed)
        self.seen += sum(branch.seen for branch in branches)
        self.updates += sum(branch.updates - self.updates for branch in branches)
        self.refused += sum(branch.refused for branch in branches)

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        """Take back, weight by weight, what was learned before an error."""
        counts = self.seen, self.updates, self.refused
        undo = self._undo = []
        try:
            yield
        except BaseException:
            for name, weight, drift in reversed(undo):
                if weight is None or drift is None:
                    _forget(self.w, name)
                    _forget(self.drift, name)
                else:
                    _set(self.w, name, weight)
                    _set(self.drift, name, drift)
            self.seen, self.updates, self.refused = counts
            self._kept = None
            raise
        finally:
            self._undo = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": None, "_undo": None}
