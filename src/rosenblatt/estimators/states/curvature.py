"""A second-order learner remembers the squares of the rows it has learned from, M = aI + Σxxᵀ, and predicts with
w = M⁻¹Σyx, so that directions in which the data are long count for less. Learning one more row is then

    w += (y − ⟨w, x⟩)/(1 + xᵀM⁻¹x) · M⁻¹x,    M += xxᵀ,

a step of least squares, taken only where the margin y⟨w, x⟩ is too small. A row of weight c counts c times in both sums:

    w += c(y − ⟨w, x⟩)/(1 + c·xᵀM⁻¹x) · M⁻¹x,    M += c·xxᵀ.

`Inverse` and `Gram` are two ways of finding
M⁻¹x, one quadratic in the features and one in the updates; `Ratios` and `Variances` keep the diagonal of M alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import Progress, axpy, dot, place
from rosenblatt.engine.rows import CSR, Rows, count, touched_columns
from rosenblatt.errors import DamagedModel
from rosenblatt.estimators.states.base import StateModel, StateTrainer, learn, score, zero_counts


class Inverse(NamedTuple):
    """M⁻¹ of each weight vector."""

    weights: NDArray  # (vectors, features + 1)
    inverse: NDArray  # (vectors, features + 1, features + 1)
    ridge: float  # a
    margin: float  # a row of this margin or less is learned
    tally: NDArray
    clock: NDArray

    def changes(self, rows: Rows, constant: float) -> NDArray | slice:
        """All weights."""
        return slice(None)

    @classmethod
    def fresh(cls, vectors: int, features: int, ridge: float, margin: float, limit: int) -> Inverse:
        """M⁻¹ = I/a for each weight vector, if that fits into the limit."""
        size = features + 1
        needed = 8 * vectors * size * size
        if needed > limit:
            raise MemoryError(
                f"form='full' keeps a matrix of {size:,} × {size:,} numbers for each of {vectors} weight vectors: "
                f"{needed:,} bytes for {features:,} features, and max_bytes={limit:,}; use form='diagonal', whose memory "
                "grows with the features, or form='dual', whose memory grows with the updates, or raise max_bytes"
            )
        inverse = np.zeros((vectors, size, size))
        inverse[:, range(size), range(size)] = 1.0 / ridge
        return cls(np.zeros((vectors, size)), inverse, ridge, margin, *zero_counts(vectors))


class Gram(NamedTuple):
    """The rows S that were learned, as columns, and of each weight vector the Cholesky factor L of aI + SᵀS: with it
    M⁻¹x = (x − S(aI + SᵀS)⁻¹Sᵀx)/a.

    Rows are stored once for all weight vectors, without their zeros, and nothing that is stored ever changes.
    """

    weights: NDArray  # (vectors, features + 1)
    starts: NDArray  # (room for rows + 1,) int64
    columns: NDArray  # (room for values,) uint64
    values: NDArray  # (room for values,)
    stored: NDArray  # (rows stored, 1 + the clock when the last was) int64
    members: NDArray  # (vectors, room for updates) int64: the row of each update
    factor: NDArray  # (vectors, room for updates · (room for updates + 1) / 2): the rows of L one after the other
    point: NDArray  # (features + 1,): zero, but while a row is spread out in it
    ridge: float
    margin: float
    limit: int  # bytes
    tally: NDArray
    clock: NDArray

    def changes(self, rows: Rows, constant: float) -> NDArray | slice:
        """The features of these rows and of those stored."""
        stored = self.columns[: used(self).values].astype(np.int64)
        columns = touched_columns(rows, np.arange(count(rows)), self.point.size - 1)
        few = not isinstance(columns, slice) and 4 * (columns.size + stored.size) < self.point.size
        return np.concatenate([columns, stored, [self.point.size - 1]]) if few else slice(None)

    @classmethod
    def fresh(cls, vectors: int, features: int, ridge: float, margin: float, limit: int) -> Gram:
        """No rows yet, and no room for any."""
        whole, real = np.zeros(0, np.int64), np.zeros(0)
        return cls(
            weights=np.zeros((vectors, features + 1)),
            starts=np.zeros(1, np.int64),
            columns=whole.astype(np.uint64),
            values=real,
            stored=np.zeros(2, np.int64),
            members=np.tile(whole, (vectors, 1)),
            factor=np.tile(real, (vectors, 1)),
            point=np.zeros(features + 1),
            ridge=ridge,
            margin=margin,
            limit=limit,
            tally=np.zeros(vectors, np.int64),
            clock=np.zeros(1, np.int64),
        )

    # Files

    def compact(self) -> Gram:
        """The same without room that is free, and with zeros where it is free for some weight vectors only."""
        holds, (members, factor) = used(self), (self.members.copy(), self.factor.copy())
        for vector, updates in enumerate(self.tally.tolist()):
            members[vector, updates:] = 0
            factor[vector, updates * (updates + 1) // 2 :] = 0.0
        return self._replace(
            starts=self.starts[: holds.rows + 1],
            columns=self.columns[: holds.values],
            values=self.values[: holds.values],
            members=members[:, : holds.updates],
            factor=factor[:, : holds.updates * (holds.updates + 1) // 2],
        )

    def roomy(self, arrays: Mapping[str, NDArray]) -> Gram:
        """A fresh one with the room that these arrays have, if they have the same."""
        updates, rows, values = arrays["members"].shape[-1], arrays["starts"].size - 1, arrays["values"].size
        if arrays["factor"].shape[-1] != updates * (updates + 1) // 2 or rows < 0:
            raise DamagedModel(
                f"{updates} updates have a factor of {updates * (updates + 1) // 2} numbers, and rows have starts"
            )
        return _moved(self, Room(updates, rows, values))

    def check(self) -> None:
        """Raise a DamagedModel if some number is not that of a place which exists."""
        rows, updates = int(self.stored[0]), self.members.shape[1]
        inside = np.arange(updates) < self.tally[:, None]  # (vectors, updates): which of them are in use
        diagonal = np.cumsum(np.arange(1, updates + 1)) - 1
        fine = (
            rows == self.starts.size - 1 and self.starts[0] == 0 and (np.diff(self.starts) >= 0).all()
            and self.starts[-1] == self.values.size and (self.columns < self.point.size).all()
            and self.tally.max() == updates and not self.point.any() and self.stored[1] >= 0
            and (~inside | ((self.members >= 0) & (self.members < rows))).all()
            and (~inside | (self.factor[:, diagonal] > 0)).all()
        )  # fmt: skip
        if not fine:
            raise DamagedModel("the rows that were learned, their factor and their numbers do not match")


class Ratios(NamedTuple):
    """The diagonal of M: each weight is the ratio of Σyx to a + Σx² in its coordinate."""

    weights: NDArray  # (vectors, features + 1)
    squares: NDArray  # (vectors, features + 1)
    ridge: float
    margin: float
    tally: NDArray
    clock: NDArray


class Variances(NamedTuple):
    """The diagonal of M, taken for M itself in the step above: the reciprocals are AROW's variances, divided by r."""

    weights: NDArray  # (vectors, features + 1)
    squares: NDArray  # (vectors, features + 1)
    ridge: float
    margin: float
    tally: NDArray
    clock: NDArray


def diagonal(kind: type[Ratios] | type[Variances], vectors: int, features: int, ridge: float, margin: float) -> Any:
    """The state of one of these kinds with the diagonal of M = aI."""
    shape = (vectors, features + 1)
    return kind(np.zeros(shape), np.full(shape, ridge), ridge, margin, *zero_counts(vectors))


@score.register
def _(state: Inverse | Gram | Ratios | Variances, vector, columns, values, constant):
    w = state.weights[vector]
    return dot(columns, values, w) + constant * w[-1]


# What is costly to compile sees a row in one layout only: spread out, or as it was stored.


@learn.register
def _(state: Inverse, vector, columns, values, constant, sign, score, weight):
    if sign * score > state.margin:
        return False
    point = np.zeros(state.weights.shape[1])
    axpy(columns, values, constant, point, 0, 1.0)
    square(point, sign - score, weight, state.weights[vector], state.inverse[vector])
    return True


@jit
def square(point, lack, weight, w, inverse):
    """Learn a row whose score lacks so much of ±1, by the formula of Sherman and Morrison."""
    size = w.size
    solution = np.zeros(size)  # M⁻¹x, from rows of M⁻¹: it is symmetric
    for i in range(size):
        if point[i] != 0.0:
            row = inverse[i]
            for j in range(size):
                solution[j] += point[i] * row[j]
    quadratic = 0.0
    for i in range(size):
        quadratic += point[i] * solution[i]
    tau = weight / (1.0 + weight * max(quadratic, 0.0))
    for i in range(size):
        step = tau * solution[i]
        row = inverse[i]
        if step != 0.0:
            for j in range(size):
                row[j] -= step * solution[j]
        w[i] += lack * step


@learn.register
def _(state: Gram, vector, columns, values, constant, sign, score, weight):
    if sign * score > state.margin:
        return False
    if state.stored[1] != state.clock[0] + 1:
        store(state, columns, values, constant)
    extend(state, vector, sign - score, state.ridge / weight)
    return True


@jit
def store(state, columns, values, constant):
    """Keep this row, without its zeros."""
    starts, stored, all_columns, all_values = state.starts, state.stored, state.columns, state.values
    end = starts[stored[0]]
    for j in range(values.size):
        if values[j] != 0:
            all_columns[end], all_values[end] = place(columns, j), values[j]
            end += 1
    if constant != 0.0:
        all_columns[end], all_values[end] = state.point.size - 1, constant
        end += 1
    stored[0] += 1
    stored[1] = state.clock[0] + 1
    starts[stored[0]] = end


@jit
def extend(state, vector, lack, ridge):
    """Learn the row stored last, whose score lacks so much of ±1: one more row of L, and two triangular systems. `ridge`
    is a/c for a row of weight c, since (aI + SCSᵀ)⁻¹ = (I − S(aC⁻¹ + SᵀS)⁻¹Sᵀ)/a."""
    starts, columns, values, point = state.starts, state.columns, state.values, state.point
    w, members, factor = state.weights[vector], state.members[vector], state.factor[vector]
    count = state.tally[vector]
    members[count] = state.stored[0] - 1
    new = factor[count * (count + 1) // 2 :]
    rest = ridge
    for j in range(starts[members[count]], starts[members[count] + 1]):
        point[columns[j]] = values[j]
        rest += values[j] * values[j]
    for i in range(count):  # L·new = Sᵀx
        known = factor[i * (i + 1) // 2 :]
        total = 0.0
        for j in range(starts[members[i]], starts[members[i] + 1]):
            total += values[j] * point[columns[j]]
        for j in range(i):
            total -= known[j] * new[j]
        new[i] = total / known[i]
        rest -= new[i] * new[i]
    rest = max(rest, ridge)  # (a/c)(1 + c·xᵀM⁻¹x): less only by rounding
    new[count] = np.sqrt(rest)
    tau = lack / rest
    for j in range(starts[members[count]], starts[members[count] + 1]):
        point[columns[j]] = 0.0
        w[columns[j]] += tau * values[j]
    share = new[:count].copy()
    for i in range(count - 1, -1, -1):  # Lᵀ·share = new
        known = factor[i * (i + 1) // 2 :]
        share[i] /= known[i]
        for j in range(i):
            share[j] -= known[j] * share[i]
        for j in range(starts[members[i]], starts[members[i] + 1]):
            w[columns[j]] -= tau * share[i] * values[j]


@learn.register
def _(state: Ratios, vector, columns, values, constant, sign, score, weight):
    if sign * score > state.margin:
        return False
    w, squares = state.weights[vector], state.squares[vector]
    for j in range(values.size):
        f, x = place(columns, j), np.float64(values[j])
        squares[f] += weight * x * x
        w[f] += weight * x * (sign - w[f] * x) / squares[f]  # (Σyx + yx) / (a + Σx² + x²)
    squares[-1] += weight * constant * constant
    w[-1] += weight * constant * (sign - w[-1] * constant) / squares[-1]
    return True


@learn.register
def _(state: Variances, vector, columns, values, constant, sign, score, weight):
    if sign * score > state.margin:
        return False
    w, squares = state.weights[vector], state.squares[vector]
    total = 1.0 + weight * (constant * constant / squares[-1])
    for j in range(values.size):
        total += weight * (np.float64(values[j]) * np.float64(values[j]) / squares[place(columns, j)])
    tau = weight * (sign - score) / total
    for j in range(values.size):
        f, x = place(columns, j), np.float64(values[j])
        w[f] += tau * x / squares[f]
        squares[f] += weight * x * x
    w[-1] += tau * constant / squares[-1]
    squares[-1] += weight * constant * constant
    return True


class Room(NamedTuple):
    """How much a Gram holds, or could hold."""

    updates: int  # of each weight vector
    rows: int
    values: int

    def bytes(self, vectors: int) -> int:
        """What that takes."""
        return 8 * (vectors * self.updates * (self.updates + 3) // 2 + self.rows + 2 * self.values)

    def and_more(self, share: float, least: Room) -> Room:
        """This and a share of it, and at least so much, on top."""
        return Room(*(have + max(int(share * have), more) for have, more in zip(self, least, strict=True)))

    def has(self, other: Room) -> bool:
        """Whether the other is no larger in any way."""
        return all(mine >= theirs for mine, theirs in zip(self, other, strict=True))


def used(state: Gram) -> Room:
    """What is in use."""
    rows = int(state.stored[0])
    return Room(int(state.tally.max()), rows, int(state.starts[rows]))


def room(state: Gram) -> Room:
    """What is in use or free."""
    return Room(state.members.shape[1], state.starts.size - 1, state.values.size)


def enlarged(state: Gram, row: int) -> Gram:
    """The same with room for half as much again, if the limit allows it, and in any case for one row of so many values."""
    holds, vectors = used(state), len(state.weights)
    if room(state).has(holds.and_more(0.25, Room(16, 16, max(16, row)))):
        return state
    for share, rows in ((0.5, 64), (0.1, 8), (0.02, 1)):
        larger = holds.and_more(share, Room(rows, rows, rows * row))
        if larger.bytes(vectors) <= state.limit and larger.has(room(state)):
            return _moved(state, larger)
    if room(state).has(holds.and_more(0, Room(1, 1, row))):
        return state
    raise MemoryError(
        f"form='dual' keeps {holds.rows:,} rows and a triangle of {holds.updates:,} × {holds.updates:,} numbers for each "
        f"of {vectors} weight vectors: {holds.bytes(vectors):,} bytes, with no room for more in "
        f"max_bytes={state.limit:,}; raise max_bytes, learn from fewer rows, or use form='diagonal', or form='full' if "
        "features are few"
    )


def _moved(state: Gram, to: Room) -> Gram:
    def longer(array: NDArray, size: int) -> NDArray:
        result = np.empty((*array.shape[:-1], size), array.dtype)
        result[..., : array.shape[-1]] = array
        return result

    return state._replace(
        starts=longer(state.starts, to.rows + 1),
        columns=longer(state.columns, to.values),
        values=longer(state.values, to.values),
        members=longer(state.members, to.updates),
        factor=longer(state.factor, to.updates * (to.updates + 1) // 2),
    )


def values_of(rows: Rows, order: NDArray) -> NDArray:
    """How many values each of these rows may have, the constant included."""
    if isinstance(rows, CSR):
        return rows.starts[order + 1] - rows.starts[order] + 1
    return np.full(len(order), rows.values.shape[1] + 1)


class GramTrainer(StateTrainer):
    """A trainer of a state with a Gram matrix, which goes on only while there is room for every row to be a mistake."""

    def _visit(self, model: StateModel, order: NDArray, budget: int) -> Progress:
        ends = np.cumsum(values_of(self.examples.rows, order))
        position, mistakes, updates = 0, 0, 0
        while position < len(order) and updates < budget:
            before = int(ends[position - 1]) if position else 0
            state = model.state = enlarged(model.state, int(ends[position]) - before)
            free = Room(*np.subtract(room(state), used(state)))
            fitting = int(np.searchsorted(ends, before + free.values, side="right"))
            stop = min(position + free.updates, position + free.rows, fitting)
            done = super()._visit(model, order[position:stop], budget - updates)
            position, mistakes, updates = position + done.position, mistakes + done.mistakes, updates + done.updates
        return Progress(position, mistakes, updates, -1)
