"""An error and a step: e = t − ⟨w, x⟩, the rule answers τ = reach(e, ‖x‖²), and w += τx.

A class is a target too, +1 for its own rows and −1 for all others; so the delta rule classifies with the same loop with
which it regresses. Several targets are several weight vectors, learned in one pass. To add a rule, write its NamedTuple,
its reach and its loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import generic, is_number, jit, prefetch
from rosenblatt.engine.loop import Progress, axpy, end_of_batch, measure, place
from rosenblatt.engine.rows import Rows, fetch, lengths, take


@generic
def reach(rule, e, length):
    """τ, of the sign of the error e: how far to move along a row of this squared length."""
    raise TypeError(f"no reach is defined for the rule {type(rule).__name__}")


@generic
def loss(rule, e):
    """What an error costs."""
    raise TypeError(f"no loss is defined for the rule {type(rule).__name__}")


class Delta(NamedTuple):
    """The delta rule: τ = ηe/(ε + s‖x‖²), a step down the gradient of e²/2. Moves unless the error is 0; a row of length 0
    moves nothing.

    ε = 1, s = 0 is LMS (Widrow and Hoff 1960). s = 1 is NLMS, whose rate does not depend on the scale of the rows (Nagumo
    and Noda 1967); there η = 1, ε = 0 leaves the row without an error (Kaczmarz 1937).
    """

    rate: float  # η > 0
    epsilon: float  # ε ≥ 0
    share: float  # s: 0 or 1


@reach.register
def _(rule: Delta, e, length):
    return rule.rate / (rule.epsilon + rule.share * length) * e if length > 0.0 else 0.0


@loss.register
def _(rule: Delta, e):
    return 0.5 * e * e


# A step that ends at the edge of its tube is short of it by a few bits, for rounding; that is no reason to move again.
SHORT = 1e-12


class Tube(NamedTuple):
    """Passive-aggressive: nothing while |e| ≤ ε, else towards the edge of that tube: τ = ±min(C, ℓ/(‖x‖² + κ)) with
    ℓ = |e| − ε (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006). A row of length 0 rests.

    C = ∞, κ = 0 is PA, which ends at the edge; a finite C is PA-I, κ = 1/(2C) with no cap PA-II.
    """

    epsilon: float  # ε ≥ 0
    cap: float  # C > 0, ∞ allowed
    damping: float  # κ ≥ 0

    def bound(self, radius: float, norm: float, losses: float = 0.0) -> float:
        """The most that Σ ℓ² can come to from w = 0, on rows of norm ≤ R, if some u of this norm has Σ ℓ(u)² = `losses`.

        (R² + κ)(‖u‖² + Σ ℓ(u)²/κ), which for κ = 0 asks for a u without losses; with a cap none is known.
        """
        if self.cap < np.inf or (self.damping == 0 and losses > 0):
            return np.inf
        from rosenblatt.theory import bounds

        return bounds.pa2(radius, norm, 0.5 / self.damping, losses) if self.damping else bounds.pa(radius, norm)


@reach.register
def _(rule: Tube, e, length):
    beyond = abs(e) - rule.epsilon
    if beyond <= SHORT * abs(e) or length == 0.0:
        return 0.0
    tau = min(rule.cap, beyond / (length + rule.damping))
    return tau if e > 0.0 else -tau


@loss.register
def _(rule: Tube, e):
    return max(abs(e) - rule.epsilon, 0.0)


class Targets(NamedTuple):
    """Numbers to be met."""

    values: NDArray  # (rows, targets) float64


class Sides(NamedTuple):
    """Classes to be told apart: of the weight vector k, the target of a row is +1 if k is its class, and −1 if not.

    Two classes have one vector, that of the second; the first is then class −1.
    """

    classes: NDArray  # (rows,) int64


@generic
def target_of(goals, i, k):
    """(target of row i for weight vector k, whether it is one of two sides and k's own)."""
    raise TypeError(f"{type(goals).__name__} are no targets")


@target_of.register
def _(goals: Targets, i, k):
    return goals.values[i, k], False


@target_of.register
def _(goals: Sides, i, k):
    own = goals.classes[i] == k
    return (1.0 if own else -1.0), own


@generic
def is_mistake(goals, i, scores):
    """Whether these scores fail to predict row i; a tie is not a prediction. Numbers are not missed but for a loss."""
    raise TypeError(f"{type(goals).__name__} are no targets")


@is_mistake.register
def _(goals: Targets, i, scores):
    return False


@is_mistake.register
def _(goals: Sides, i, scores):
    own = goals.classes[i]
    if scores.size == 1:
        return scores[0] <= 0.0 if own == 0 else scores[0] >= 0.0
    rivals = 0
    for k in range(scores.size):
        rivals += scores[k] >= scores[own]
    return rivals > 1  # itself, and another


class Task(NamedTuple):
    """What is to be learned: rows, what is asked of each, and the value of the constant feature (0 for none) that carries
    the intercept as the last coordinate.

    The gauge of a row is its weight, that of its class, and ‖(row, constant)‖²: side by side, since rows are visited in any
    order and each place in memory costs a wait.
    """

    rows: Rows
    goals: Targets | Sides
    constant: float
    gauge: NDArray  # (rows, 3) float64


def as_task(rows: Rows, goals: Targets | Sides, constant: float, weight: NDArray | None) -> Task:
    """The task with these weights (rows, 2), None for all 1."""
    one = np.ones((len(goals[0]), 2))
    return Task(rows, goals, constant, np.column_stack([one if weight is None else weight, lengths(rows, constant)]))


@jit
def move(columns, values, constant, w, drift, column, tau, clock):
    """w[:, column] += τ · (row, constant), and the same on the drift, where one is kept, times the clock."""
    axpy(columns, values, constant, w, column, tau)
    if drift is not None:
        axpy(columns, values, constant, drift, column, tau * clock)


@jit
def push(columns, values, constant, w, drift, taus, s, clock):
    """w[:, k] += taus[s, k] · (row, constant) for every weight vector k, and the same on the drift, times the clock.

    Sparse rows keep the weights of one feature in one run, so the vectors are the inner loop there.
    """
    if w.ndim == 1:
        if taus[s, 0] != 0.0:
            move(columns, values, constant, w, drift, 0, taus[s, 0], clock)
    elif columns is None:
        for k in range(taus.shape[1]):
            if taus[s, k] != 0.0:
                move(columns, values, constant, w, drift, k, taus[s, k], clock)
    else:
        for j in range(values.size):
            f = place(columns, j)
            for k in range(taus.shape[1]):
                w[f, k] += w.dtype.type(taus[s, k]) * values[j]
                if drift is not None:
                    drift[f, k] += taus[s, k] * clock * values[j]
        for k in range(taus.shape[1]):
            w[-1, k] += w.dtype.type(taus[s, k]) * w.dtype.type(constant)
            if drift is not None:
                drift[-1, k] += taus[s, k] * clock * constant


@jit
def epoch(task, weights, rule, pace, order, scores, taus):
    """Visit the rows that `order` lists and learn from them, batch by batch. Stops at a row whose error is no number,
    before learning from it. `scores` (weight vectors,) and `taus` (rows of a batch, weight vectors) are work arrays."""
    rows, goals, constant, gauge = task.rows, task.goals, task.constant, task.gauge
    w, drift, tally, seen = weights.w, weights.drift, weights.tally, weights.clock
    vectors = tally.size
    total, stakes, mistakes, updates, t = 0.0, 0.0, 0, 0, 0
    while t < order.size:
        end = end_of_batch(pace.batch, t, order.size)
        share = 1.0 / (end - t) if pace.mean else 1.0
        clock = seen[0] + (end - t) - 1
        for s in range(t, end):
            i = order[s]
            if pace.ahead > 0 and s + pace.ahead < order.size:
                fetch(rows, order[s + pace.ahead])
                prefetch(gauge, 3 * order[s + pace.ahead])
            columns, values = take(rows, i)
            measure(columns, values, constant, w, 0, scores)
            mistakes += is_mistake(goals, i, scores)
            for k in range(vectors):
                target, own = target_of(goals, i, k)
                e = target - np.float64(scores[k])
                if not is_number(e):
                    return Progress(s, mistakes, updates, i, np.inf)
                stake = gauge[i, 0] * gauge[i, 1] if own or vectors == 1 else gauge[i, 0]
                total += stake * loss(rule, e)
                stakes += stake
                taus[s - t, k] = share * stake * reach(rule, e, gauge[i, 2])
        for s in range(t, end):
            columns, values = take(rows, order[s])
            if w.ndim == 1:  # what push would do, without the call: it was measured at a third of an epoch
                if taus[s - t, 0] != 0.0:
                    move(columns, values, constant, w, drift, 0, taus[s - t, 0], clock)
            else:
                push(columns, values, constant, w, drift, taus, s - t, clock)
        for k in range(vectors):
            moved = 0
            for s in range(end - t):
                moved |= taus[s, k] != 0.0
            tally[k] += moved
            updates += moved
        seen[0] += end - t
        t = end
    return Progress(t, mistakes, updates, -1, total / stakes if stakes > 0.0 else 0.0)
