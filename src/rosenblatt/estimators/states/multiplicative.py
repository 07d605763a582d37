"""A multiplicative learner multiplies each weight by a power of its feature, where an additive one would add. What it keeps
is the exponents, which only ever add up and cannot overflow; the weights beside them are brought up to date where an
exponent has changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import dot, place
from rosenblatt.engine.rows import Rows
from rosenblatt.estimators.states.base import MODERATE, everything_unless, learn, score, zero_counts

TINY = np.finfo(np.float64).tiny
LARGEST = 600.0  # no mass is more than exp of this, for one such mass makes the total huge
HUGE = 1e200  # a total beyond this is divided out
SHRUNK = 1e-3  # a total that has fallen so far below its peak has lost as many digits


class Simplex(NamedTuple):
    """Weights that are not negative and sum up to 1: of the features, and in a second part, where there is one, of their
    negatives. The constant feature is the last of each part.

    The weights are mass/total. Only the masses of a row's own features change when it is learned, and the total with
    them; all are divided by it now and then, so learning costs the values of a row and not the number of features.
    """

    logs: NDArray  # (vectors, parts, features + 1)
    mass: NDArray  # (vectors, parts, features + 1): exp(logs − shift)
    total: NDArray  # (vectors, 4): the sum of the masses; since it was last divided out, its peak and updates; the shift
    largest: NDArray  # (vectors,): the largest |value| learned from
    rate: float  # η
    relative: bool  # whether η is divided by the largest value
    margin: float  # δ
    tally: NDArray
    clock: NDArray

    def changes(self, rows: Rows, constant: float) -> slice | None:
        """All weights, since they are divided by their sum now and then; none if the rate and the rows are moderate."""
        return everything_unless(self.rate <= MODERATE, self.mass.size, rows, constant)

    def vectors(self) -> NDArray:
        mass = self.mass[:, 0] - self.mass[:, 1] if self.mass.shape[1] == 2 else self.mass[:, 0]
        return mass / self.total[:, :1]


class Balanced(NamedTuple):
    """Two weights for each feature, w⁺ = αᵉ and w⁻ = α⁻ᵉ, which count as their difference."""

    exponents: NDArray  # (vectors, features + 1)
    weights: NDArray  # (vectors, features + 1)
    base: float  # α
    tally: NDArray
    clock: NDArray


class Threshold(NamedTuple):
    """Weights αᵉ that are held against a threshold, which is the negative weight of a constant feature of 1."""

    exponents: NDArray  # (vectors, features + 1)
    weights: NDArray  # (vectors, features + 1)
    base: float  # α
    demotion: float  # a feature's exponent falls by so many times its value; infinity eliminates it
    tally: NDArray
    clock: NDArray


def simplex(vectors: int, start: NDArray, rate: float, relative: bool, margin: float) -> Simplex:
    """Each weight vector proportional to `start` (parts, features + 1).

    From weights of 1 the logarithms of a feature and of its negative are opposite to the last bit, so ties stay ties.
    """
    with np.errstate(divide="ignore"):
        logs = np.tile(np.log(start), (vectors, 1, 1))
    total = np.tile([start.sum(), start.sum(), 0.0, 0.0], (vectors, 1))
    mass = np.tile(start, (vectors, 1, 1))
    return Simplex(logs, mass, total, np.zeros(vectors), rate, relative, margin, *zero_counts(vectors))


def balanced(vectors: int, features: int, base: float) -> Balanced:
    """w⁺ = w⁻ = 1."""
    shape = (vectors, features + 1)
    return Balanced(np.zeros(shape), np.zeros(shape), base, *zero_counts(vectors))


def threshold(vectors: int, features: int, base: float, theta: float, demotion: float) -> Threshold:
    """Weights of 1 against θ."""
    shape = (vectors, features + 1)
    weights = np.ones(shape)
    weights[:, -1] = -theta
    return Threshold(np.zeros(shape), weights, base, demotion, *zero_counts(vectors))


@score.register
def _(state: Simplex, vector, columns, values, constant):
    mass = state.mass[vector]
    result = 0.0
    for part in range(len(mass)):
        weighed = dot(columns, values, mass[part]) + constant * mass[part, -1]
        result += weighed if part == 0 else -weighed
    return result / state.total[vector, 0]


@learn.register
def _(state: Simplex, vector, columns, values, constant, sign, score, weight):
    if sign * score > state.margin:
        return False
    largest = max(state.largest[vector], abs(constant))
    for j in range(values.size):
        largest = max(largest, abs(np.float64(values[j])))
    state.largest[vector] = largest
    step = weight * sign * state.rate / (max(largest, TINY) if state.relative else 1.0)
    change, shift = 0.0, state.total[vector, 3]
    for part in range(state.logs.shape[1]):
        logs, mass = state.logs[vector, part], state.mass[vector, part]
        for j in range(values.size):
            change += raise_log(logs, mass, place(columns, j), step * values[j], shift)
        change += raise_log(logs, mass, logs.size - 1, step * constant, shift)
        step = -step
    weigh(state.logs[vector], state.mass[vector], state.total[vector], change)
    return True


@jit
def raise_log(logs, mass, f, by, shift):
    """Raise one logarithm, and its mass with it; the change of the mass."""
    before = mass[f]
    logs[f] += by
    mass[f] = np.exp(min(logs[f] - shift, LARGEST))
    return mass[f] - before


@jit
def weigh(logs, mass, total, change):
    """Bring the total up to date; divide it out of all masses before it can overflow or has lost too many digits, and
    after as many updates as there are masses, so that nothing is spent on that in the long run."""
    total[0] += change
    total[1] = max(total[1], total[0])
    total[2] += 1.0
    if total[2] < mass.size and SHRUNK * total[1] < total[0] < HUGE:
        return
    peak, whole = logs.max(), 0.0
    for part in range(len(logs)):
        for f in range(logs.shape[1]):
            whole += np.exp(logs[part, f] - peak)
    shift = peak + np.log(whole)
    whole = 0.0
    for part in range(len(logs)):
        for f in range(logs.shape[1]):
            mass[part, f] = np.exp(logs[part, f] - shift)
            whole += mass[part, f]
    total[0], total[1], total[2], total[3] = whole, whole, 0.0, shift


@score.register
def _(state: Balanced, vector, columns, values, constant):
    w = state.weights[vector]
    return dot(columns, values, w) + constant * w[-1]


@learn.register
def _(state: Balanced, vector, columns, values, constant, sign, score, weight):
    if sign * score > 0.0:
        return False
    exponents, w, base = state.exponents[vector], state.weights[vector], state.base
    step = weight * sign
    for j in range(values.size):
        f = place(columns, j)
        exponents[f] += step * values[j]
        w[f] = base ** exponents[f] - base ** -exponents[f]
    exponents[-1] += step * constant
    w[-1] = base ** exponents[-1] - base ** -exponents[-1]
    return True


@score.register
def _(state: Threshold, vector, columns, values, constant):
    w = state.weights[vector]
    over = dot(columns, values, w) + constant * w[-1]
    return TINY if over == 0.0 else over  # at the threshold exactly the answer is yes, for the bounds' sake


@learn.register
def _(state: Threshold, vector, columns, values, constant, sign, score, weight):
    if sign * score > 0.0:
        return False
    exponents, w, base = state.exponents[vector], state.weights[vector], state.base
    step = weight if sign > 0.0 else -weight * state.demotion
    for j in range(values.size):
        f = place(columns, j)
        if values[j] != 0:
            exponents[f] += step * values[j]
            w[f] = base ** exponents[f]
    return True


@jit
def outside(flat, between):
    """The position of the first number that is not 0 or 1, nor between them where that is allowed; −1 if there is none.
    NaN is passed over, for others to find."""
    for j in range(flat.size):
        value = flat[j]
        if value < 0.0 or value > 1.0 or (not between and 0.0 < value < 1.0):
            return j
    return -1
