"""Weights of features by name: dictionaries, for searches that are written in Python. A name is anything hashable, and one
that never took part in an update weighs 0.0 and takes no memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidDataType, UnsupportedOperation, shown
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured.base import StructuredModel

Features = Mapping[Hashable, float]
_NAME_BYTES = 48


class NamedWeights(dict):
    """The weight of each name, to be read: `w[name]` is 0.0 for a name without one.

    >>> w = NamedWeights({"a": 2.0, "b": -1.0})
    >>> w["a"], w["z"], w.score({"a": 3, "b": 1, "z": 7})
    (2.0, 0.0, 5.0)
    """

    __slots__ = ()

    def __missing__(self, name: Hashable) -> float:
        return 0.0

    def score(self, features: Features) -> float:
        """Return Σ w[name]·value, rounded once, so that the order of the features does not matter; NaN if it overflows."""
        weight = self.get
        return total([weight(name, 0.0) * value for name, value in features.items()])

    def copy(self) -> NamedWeights:
        """Return the same weights, sharing nothing."""
        return NamedWeights(self)

    def _refuse(self, *values: object, **names: object) -> NoReturn:
        raise UnsupportedOperation("the weights are for a search to read; they change only by learning")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict]]:
        return NamedWeights, (dict(self),)


_set: Callable[[dict, Hashable, float], None] = dict.__setitem__
_forget: Callable[[dict, Hashable], None] = dict.__delitem__


def total(values: Iterable[float]) -> float:
    """Return the sum, rounded once; NaN where it is no finite number."""
    try:
        found = math.fsum(values)
    except (OverflowError, ValueError):  # a partial sum that is too large, or ∞ − ∞
        return math.nan
    return found if math.isfinite(found) else math.nan


def sum_by_name(parts: Iterable[Features]) -> dict[Hashable, float]:
    """Return the sum of the numbers of each name, rounded once, in the order in which the names are met."""
    values: dict[Hashable, list[float]] = {}
    for part in parts:
        for name, value in part.items():
            values.setdefault(name, []).append(value)
    return {name: total(found) for name, found in values.items()}


def direction(right: Features, wrong: Features) -> dict[Hashable, float]:
    """Return φ(right) − φ(wrong), without what cancels."""
    delta = dict(right)
    for name, value in wrong.items():
        left = delta.get(name, 0.0) - value
        if left != 0.0:
            delta[name] = left
        else:
            delta.pop(name, None)
    return {name: value for name, value in delta.items() if value != 0.0}


class NamedChange(NamedTuple):
    """What an epoch of a shard changed in a model by name, or the sum of several such changes: see `engine.mixing`."""

    w: dict[Hashable, float]
    passed: dict[Hashable, float]  # of the same names
    counts: NDArray  # int64: examples seen, updates, refused pairs
    shards: dict[Hashable, float] | None = None  # how many shards have changed each weight, where that is counted

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes to send it: two numbers and a short name for each weight."""
        return _NAME_BYTES * len(self.w) + self.counts.nbytes

    def scaled(self, share: float) -> NamedChange:
        """Return the change of a shard that has this share in the mixture."""
        return self._replace(w={name: share * grown for name, grown in self.w.items()})

    def plus(self, others: Sequence[NamedChange]) -> NamedChange:
        """Return the sum of this change and others: the exact sum of each weight, rounded once."""
        changes = (self, *others)
        return NamedChange(
            sum_by_name([change.w for change in changes]),
            sum_by_name([change.passed for change in changes]),
            np.sum([change.counts for change in changes], axis=0),
            None if self.shards is None else sum_by_name([change.shards or {} for change in changes]),
        )

    def counted(self) -> NamedChange:
        """Return the change of a shard, with a count of one at each weight that it has changed."""
        return self._replace(shards={name: float(grown != 0.0) for name, grown in self.w.items()})

    def mean(self) -> NamedChange:
        """Return a sum of counted changes with each weight divided by its count."""
        counts = self.shards or {}
        return self._replace(w={name: grown / max(counts[name], 1.0) for name, grown in self.w.items()}, shards=None)


class NamedModel(StructuredModel):
    """What has been learned by name: the last weights, the drift from which their average follows, and the counts."""

    def __init__(self) -> None:
        self.w = NamedWeights()
        self.drift: dict[Hashable, float] = {}  # of the same names; the average is w − drift/seen
        self.seen = 0  # examples visited
        self.updates = 0
        self.refused = 0  # pairs of paths that were brought but not learned from
        self._undo: list[tuple[Hashable, float | None, float | None]] | None = None
        self._frozen = None

    def push(self, delta: Features, tau: float) -> None:
        """w += τΔ, an update made after `seen` examples."""
        w, drift, late = self.w, self.drift, tau * self.seen
        for name, value in delta.items():
            if self._undo is not None:
                self._undo.append((name, w.get(name), drift.get(name)))
            _set(w, name, w.get(name, 0.0) + tau * value)
            drift[name] = drift.get(name, 0.0) + late * value
        self.updates += 1

    def freeze(self, average: bool, prune: float = 0.0) -> NamedWeights:
        """Return the weights that predict: the last, or the mean of those after every example seen."""
        if not average or self.seen == 0:
            self._frozen = (average, self.seen), self.w
        elif self._frozen is None or self._frozen[0] != (average, self.seen):
            drift = self.drift
            mean = {name: weight - drift[name] / self.seen for name, weight in self.w.items()}
            self._frozen = (average, self.seen), NamedWeights(mean)
        return self._frozen[1]

    def norm(self) -> float:
        """Return the Euclidean norm of the last weights."""
        return math.sqrt(total([weight * weight for weight in self.w.values()]))

    def weights_now(self) -> NDArray:
        """Return the last weights."""
        return np.fromiter(self.w.values(), np.float64)

    def copy(self) -> NamedModel:
        """Return the same model, sharing nothing."""
        twin = NamedModel()
        twin.w, twin.drift = self.w.copy(), self.drift.copy()
        twin.seen, twin.updates, twin.refused = self.seen, self.updates, self.refused
        return twin

    # Mixing: see `engine.mixing`

    def branch(self) -> NamedModel:
        """Return a copy for a shard to learn into, whose drift is its own and names what it has changed."""
        twin = NamedModel()
        twin.w = self.w.copy()
        twin.seen, twin.updates, twin.refused = self.seen, self.updates, self.refused
        return twin

    def change_since(self, start: NamedModel) -> NamedChange:
        """Return what has changed since this model was branched off."""
        grown = {name: self.w[name] - start.w[name] for name in self.drift}
        passed = {name: drift - self.seen * grown[name] for name, drift in self.drift.items()}
        return NamedChange(grown, passed, self._counts() - start._counts())

    def add_change(self, change: NamedChange) -> None:
        """Go over to the mixture of which this is the change; names that are new come in the order of the shards."""
        self._frozen = None
        self.seen, self.updates, self.refused = (self._counts() + change.counts).tolist()
        for name, grown in change.w.items():
            was = self.w[name]
            now = was + grown
            _set(self.w, name, now)
            self.drift[name] = self.drift.get(name, 0.0) + (self.seen * (now - was) + change.passed[name])

    def _counts(self) -> NDArray:
        return np.array([self.seen, self.updates, self.refused])

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
            self._frozen = None
            raise
        finally:
            self._undo = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_frozen": None, "_undo": None}

    # Files

    def to_parts(self, resume: bool) -> Parts:
        """Return the model for a file, after `freeze`; without `resume` only the weights that predict."""
        w = self.w if resume or self._frozen is None else self._frozen[1]
        names = json.dumps([_encode_name(name) for name in w], ensure_ascii=True, allow_nan=False).encode()
        parts = Parts({"seen": self.seen, "updates": self.updates, "refused": self.refused})
        parts.put("names", np.frombuffer(names, np.uint8))
        parts.put("w", np.fromiter(w.values(), np.float64, len(w)))
        if resume:
            parts.put("drift", np.fromiter((self.drift[name] for name in w), np.float64, len(w)))
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> NamedModel:
        """Return the model that was saved."""
        model = cls()
        names = [_decode_name(name) for name in parts.json_list("names")]
        w = parts.array("w", np.float64, (len(names),))
        drift = parts.array("drift", np.float64, w.shape) if "drift" in parts.arrays else np.zeros(len(names))
        model.w = NamedWeights(zip(names, w.tolist(), strict=True))
        model.drift = dict(zip(names, drift.tolist(), strict=True))
        model.seen, model.updates, model.refused = (parts.whole(name) for name in ("seen", "updates", "refused"))
        return model


def _encode_name(name: object) -> Any:
    """Return a feature's name as a value of JSON: text and numbers as they are, a tuple as a list."""
    if type(name) is tuple:
        return [_encode_name(part) for part in name]
    if type(name) in (str, int, float, bool, type(None)):
        return name
    raise InvalidDataType(
        f"the feature name {shown(name)} cannot be saved in a file", hint="use text, numbers, None and tuples of them"
    )


def _decode_name(value: Any) -> Hashable:
    return tuple(map(_decode_name, value)) if isinstance(value, list) else value
