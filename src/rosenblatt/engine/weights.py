"""What a linear learner has learned: its weights, the drift from which their average follows, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import sum_of_squares
from rosenblatt.engine.problems import JOINT, Binary, OneVsOne, Problem, columns, counters, pairs
from rosenblatt.engine.rows import Rows, count, touched_columns
from rosenblatt.errors import InvalidData


class Weights(NamedTuple):
    """Weight vectors, changed in place by the kernels.

    The average of the weights after each example seen is w − drift/clock: a move τΔ made when c examples had been seen
    is missing from c of the clock weight vectors that the average is over, hence c·τΔ too much (Daumé's lazy sum).

    Attributes
    ----------
    w : (features + 1,) or (features + 1, columns) array
        The weights, one vector for two classes; the last coordinate is that of the constant feature.
    drift : array of the same shape or None
        What the average needs, in float64; None if no average is kept.
    tally : (counters,) int64 array
        The number of updates of each counter.
    clock : (1,) int64 array
        The number of examples seen.

    Examples
    --------
    >>> weights = Weights(np.zeros(3), np.zeros(3), np.zeros(1, np.int64), np.zeros(1, np.int64))
    >>> weights.w[:] += [2.0, 1.0, 1.0]  # the update at the first example, when none had been seen
    >>> weights.clock[0] = 4
    >>> weights.average().tolist()
    [2.0, 1.0, 1.0]
    """

    w: NDArray
    drift: NDArray | None
    tally: NDArray
    clock: NDArray

    def average(self) -> NDArray:
        """Return the mean of the weights after every example seen, in float64.

        Returns
        -------
        array
        """
        if self.drift is None:
            raise ValueError("these weights keep no drift, so their average is not known")
        return self.w - self.drift / self.clock[0] if self.clock[0] else self.w.astype(np.float64)

    def backup(self, rows: Rows) -> Callable[[], None]:
        """Copy what learning from these rows can change, to put it back after an error.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        restore : function
            What puts it back.
        """
        places: list[tuple[NDArray, Any]] = [(self.tally, ...), (self.clock, ...)]
        for array in (self.w, self.drift):
            if array is not None:
                places += [(array, touched_columns(rows, np.arange(count(rows)), len(self.w) - 1)), (array, -1)]
        return backup(places)

    def finite(self, rows: Rows, order: NDArray) -> bool:
        """Return whether every weight that learning from some rows can have changed is a finite number.

        Parameters
        ----------
        rows : Rows
            The rows.
        order : array of int
            The numbers of those that were learned from.

        Returns
        -------
        bool
        """
        touched = touched_columns(rows, order, len(self.w) - 1)
        arrays = [array for array in (self.w, self.drift) if array is not None]
        return all(bool(np.isfinite(part).all()) for array in arrays for part in (_at(array, touched), array[-1]))

    def copy(self) -> Weights:
        """Return the same weights, sharing nothing.

        Returns
        -------
        Weights
        """
        drift = None if self.drift is None else self.drift.copy(order="K")
        return Weights(self.w.copy(order="K"), drift, self.tally.copy(), self.clock.copy())


def zeros(features: int, problem: Problem, dtype: type, averaged: bool, sparse: bool) -> Weights:
    """Weights of zero, in the memory order that rows of this layout want."""
    shape: tuple[int, ...] = (features + 1,) if isinstance(problem, Binary) else (features + 1, columns(problem))
    order: Literal["C", "F"] = "C" if sparse else "F"
    return Weights(
        np.zeros(shape, dtype, order),
        np.zeros(shape, np.float64, order) if averaged else None,
        np.zeros(counters(problem), np.int64),
        np.zeros(1, np.int64),
    )


def in_layout_of(weights: Weights, dtype: type, sparse: bool) -> Weights:
    """The same weights in the memory order and with the precision that these rows want, and such that learning can write
    to them; a copy only where they differ."""
    order: Literal["C", "F"] = "C" if sparse else "F"
    w = np.require(weights.w, dtype, [order, "W"])
    drift = None if weights.drift is None else np.require(weights.drift, None, [order, "W"])
    return Weights(w, drift, writable(weights.tally), writable(weights.clock))


def writable(array: NDArray) -> NDArray:
    """The array, or a copy of one that must not be written to: joblib gives the arrays of a model that it maps into
    memory or passes to another process as read-only views of a file."""
    return np.require(array, None, ["W"])


def has_read_only(values: Iterable[object]) -> bool:
    """Whether one of these values, or of those in a tuple among them, is an array that must not be written to."""
    return any(
        not value.flags.writeable if isinstance(value, np.ndarray) else isinstance(value, tuple) and has_read_only(value)
        for value in values
    )


def with_more_classes(weights: Weights, problem: Problem, larger: Problem) -> Weights:
    """The weights of the same classes in a problem with more of them; those of the new classes are zero.

    The one vector of two classes becomes +w for class 1 and −w for class 0: what Kesler's construction would have learned.
    """
    dtype, sparse = weights.w.dtype.type, weights.w.flags.c_contiguous and weights.w.ndim > 1
    new = zeros(len(weights.w) - 1, larger, dtype, weights.drift is not None, sparse)
    new.clock[:] = weights.clock
    if problem.classes == 1:
        return new
    for old, fresh in ((weights.w, new.w), (weights.drift, new.drift)):
        if old is not None and fresh is not None:
            fresh[:, places(problem, larger)] = np.column_stack([-old, old]) if old.ndim == 1 else old
    if isinstance(larger, JOINT):
        new.tally[:] = weights.tally
    elif isinstance(problem, Binary):
        new.tally[places(problem, larger)] = weights.tally[0]
    else:
        new.tally[places(problem, larger)] = weights.tally
    return new


def with_features(w: NDArray, features: int, what: str = "weights") -> NDArray:
    """The same weights, or others whose last row is the constant's, for so many features: those of new features are zero,
    and those that are dropped must be."""
    known = len(w) - 1
    if features < known and (used := np.flatnonzero(w[features:known].reshape(known - features, -1).any(axis=1))).size:
        column = features + int(used[0])
        raise InvalidData(f"{features} columns are too few: column {column} has been learned from, and has {what}")
    wider = np.zeros((features + 1, *w.shape[1:]), w.dtype, "F" if w.flags.f_contiguous else "C")
    wider[: min(known, features)] = w[: min(known, features)]
    wider[-1] = w[-1]
    return wider


def places(problem: Problem, larger: Problem) -> NDArray:
    """The columns of a larger problem that hold the weight vectors of a smaller one, two classes counting as two."""
    if not isinstance(larger, OneVsOne):
        return np.arange(2 if isinstance(problem, Binary) else columns(problem))
    if isinstance(problem, Binary):
        return np.array([1, larger.classes])  # 0 against 1, 1 against 0
    a, b = np.divmod(np.arange(columns(problem)), problem.classes)
    return a * larger.classes + b


def weights_of(problem: Problem, coef: NDArray, intercept: NDArray, constant: float) -> NDArray:
    """The weights that a user sees as this coef (vectors, features) and intercept (vectors,)."""
    w = np.vstack([coef.T, intercept / constant if constant else np.zeros_like(intercept)])
    if isinstance(problem, Binary):
        return w[:, 0]
    if isinstance(problem, OneVsOne):
        a, b = pairs(problem.classes)
        both = np.zeros((len(w), columns(problem)), w.dtype)
        both[:, a * problem.classes + b] = w
        both[:, b * problem.classes + a] = -w
        return both
    return w


def norm(w: NDArray, squares: float | None = None) -> float:
    """Return the Euclidean norm of all weights; infinite or NaN if and only if one of them is, or if it is too large
    itself. `squares` is the sum of their squares, where it is known."""
    squares = sum_of_squares(w.ravel(order="K")) if squares is None else squares
    largest = 1.0 if np.isfinite(squares) else float(np.abs(w).max())  # of large weights, the squares may overflow
    if np.isfinite(squares) or not np.isfinite(largest):
        return float(np.sqrt(squares))
    return largest * float(np.linalg.norm(w / largest))


def _at(array: NDArray, index: Any) -> NDArray:
    """array[index], at a fifth of the time where the index lists rows."""
    return array.take(index, axis=0) if isinstance(index, np.ndarray) else array[index]


class WeightBound:
    """An upper bound of all |weights| of a stream, so that most calls need not look at the weights to know that no sum can
    overflow: max |w| and |drift|/clock after `seen` examples, and the length of all steps since then."""

    def __init__(self) -> None:
        self.seen, self.value = -1, np.inf

    def raise_by(self, weights: Weights, seen: int, by: float) -> bool:
        """Add what the next examples, up to the number `seen`, can add at most; whether all stays far from overflow."""
        now = int(weights.clock[0])
        if self.seen != now:
            drift = 0.0 if weights.drift is None else float(np.abs(weights.drift).max()) / max(now, 1)
            self.value = max(float(np.abs(weights.w).max()), drift)
        self.seen, self.value = seen, self.value + by
        return self.value <= HALFWAY[weights.w.dtype]


HALFWAY = {np.dtype(np.float32): 1e14, np.dtype(np.float64): 1e100}  # a million products of two such numbers are finite


def backup(places: Iterable[tuple[NDArray, Any]]) -> Callable[[], None]:
    """Copy these places, each an array and an index into it; the function that is returned puts the copies back."""
    copies = [(array, index, np.array(_at(array, index))) for array, index in places]

    def restore() -> None:
        for array, index, values in copies:
            array[index] = values

    return restore
