"""A problem says which direction an example proposes: Δ, whose margin is w·Δ.

Two classes: Δ = y·x. Many classes, jointly: x at the label's column and −x at the best rival's. One-vs-rest and
one-vs-one: a direction for each column that the label has a say in. `confront` measures those margins, asks the rule for
each, and notes the moves; it changes no weight, so the online, batch and blocked loops all use it.

Ties go against the label. Among rivals with equal scores the lowest class number is the rival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import generic, jit
from rosenblatt.rules import SHORT, step

# Updates, in the order in which they were found: τ times the row is added to column `gains` and taken from column
# `loses` (−1: from none). `counter` is the weight vector, or the joint set of them, that counts it as its update; `clock`
# the number of examples seen before the one at which the weights changed. One array of records rather than six arrays:
# handing six to a function costs more than the rest of the function.
MOVE = np.dtype([(name, np.int64) for name in ("row", "gains", "loses", "counter", "clock")] + [("tau", np.float64)])


class Binary(NamedTuple):
    """Class 1 against class 0, one weight vector."""

    classes: int  # 2


class Joint(NamedTuple):
    """One argmax over all classes (Kesler's construction; the ultraconservative update of Crammer and Singer 2003 with
    the whole penalty on the best rival). Updates ≤ 2 max‖x‖²/γ² for a separator of Frobenius norm 1."""

    classes: int


class Spread(NamedTuple):
    """One argmax over all classes, with the step shared among all rivals that score too high, so that the new weights are
    the shortest: the τ_r ≤ [r = label] of sum 0 with the least Σ ‖w_r + τ_r x‖² (MIRA, Crammer and Singer 2003)."""

    classes: int


class OneVsRest(NamedTuple):
    """Each class against all others: as many two-class problems as classes, learned in one pass. The weight of a class
    counts where the class is the positive one, as in scikit-learn."""

    classes: int


class OneVsOne(NamedTuple):
    """Each class against each other. Column a·K + b holds the separator of a (positive) from b, and column b·K + a its
    negative: twice the memory, but the K − 1 vectors that a label has a say in then lie side by side."""

    classes: int


Problem = Binary | Joint | Spread | OneVsRest | OneVsOne
JOINT = (Joint, Spread)  # one decision among all classes
KINDS: dict[str, type] = {"binary": Binary, "joint": Joint, "spread": Spread, "ovr": OneVsRest, "ovo": OneVsOne}  # in files


def columns(problem: Problem) -> int:
    """How many weight vectors a problem has."""
    return {Binary: 1, OneVsOne: problem.classes**2}.get(type(problem), problem.classes)


def counters(problem: Problem) -> int:
    """How many of them, or of joint sets of them, count updates of their own."""
    return 1 if isinstance(problem, (Binary, *JOINT)) else columns(problem)


def moves_per_row(problem: Problem) -> int:
    """The most moves that one row can call for."""
    return 1 if isinstance(problem, Binary | Joint) else problem.classes


@generic
def faced(problem, label):
    """(first column, how many) whose scores an example with this label needs."""
    raise TypeError(f"{type(problem).__name__} is not a problem")


@faced.register
def _(problem: Binary, label):
    return 0, 1


@faced.register
def _(problem: Joint | Spread | OneVsRest, label):
    return 0, problem.classes


@faced.register
def _(problem: OneVsOne, label):
    return label * problem.classes, problem.classes


@jit
def note(moves, found, gains, loses, counter, tau):
    """Write one move at position `found`; the position after it."""
    moves[found]["gains"] = gains
    moves[found]["loses"] = loses
    moves[found]["counter"] = counter
    moves[found]["tau"] = tau
    return found + 1


@jit
def best_rival(scores, label, classes):
    """The class other than the label with the highest score; −1 when there is no other."""
    rival = -1
    for r in range(classes):
        if r != label and (rival < 0 or scores[r] > scores[rival]):
            rival = r
    return rival


@generic
def confront(problem, rule, scores, label, length, weight, tally, moves, found):
    """Note the moves that this example calls for, from position `found` on.

    `scores` are those of the columns that `faced` names, `tally` the updates made so far by each counter, `weight` the
    weight of the example and that of its class, which multiply the step. Answers (lowest margin met, whether the label is
    predicted without a tie, position after the last move).
    """
    raise TypeError(f"{type(problem).__name__} is not a problem")


@confront.register
def _(problem: Binary, rule, scores, label, length, weight, tally, moves, found):
    sign = 1.0 if label == 1 else -1.0
    m = sign * scores[0]
    tau = weight[0] * weight[1] * step(rule, m, length, tally[0] + 1, label == 1)
    if tau != 0.0:
        found = note(moves, found, 0, -1, 0, sign * tau)
    return m, m > 0.0, found


@confront.register
def _(problem: Joint, rule, scores, label, length, weight, tally, moves, found):
    rival = best_rival(scores, label, problem.classes)
    if rival < 0:
        return np.inf, True, found
    m = np.float64(scores[label]) - np.float64(scores[rival])
    tau = weight[0] * weight[1] * step(rule, m, 2.0 * length, tally[0] + 1, True)
    if tau != 0.0:
        found = note(moves, found, label, rival, 0, tau)
    return m, m > 0.0, found


@jit
def level(scores, label, classes, length, margin):
    """θ with Σ_r max(0, D_r − θ) = 1, where D_r = s_r/‖x‖², and for the label (s − β)/‖x‖² + 1; the terms are the shares of
    the rivals, and 1 less the label's own."""
    heights = np.empty(classes)
    for r in range(classes):
        heights[r] = np.float64(scores[r]) / length
    heights[label] += 1.0 - margin / length
    heights.sort()
    total, theta = 0.0, 0.0
    for j in range(1, classes + 1):
        total += heights[classes - j]
        if j == 1 or heights[classes - j] > (total - 1.0) / j:
            theta = (total - 1.0) / j
    return theta


@confront.register
def _(problem: Spread, rule, scores, label, length, weight, tally, moves, found):
    rival = best_rival(scores, label, problem.classes)
    if rival < 0:
        return np.inf, True, found
    m = np.float64(scores[label]) - np.float64(scores[rival])
    if m <= rule.margin and length > 0.0:
        share = weight[0] * weight[1]
        if tally[0] == 0 and m == 0.0 and rule.margin == 0.0:
            found = note(moves, found, label, rival, 0, share)  # weights of zero are the shortest: begin
        else:
            theta = level(scores, label, problem.classes, length, rule.margin)
            for r in range(problem.classes):
                tau = np.float64(scores[r]) / length - theta
                if r != label and tau > SHORT:
                    found = note(moves, found, label, r, 0, share * tau)
    return m, m > 0.0, found


@confront.register
def _(problem: OneVsRest, rule, scores, label, length, weight, tally, moves, found):
    lowest, strongest = np.inf, -np.inf
    for r in range(problem.classes):
        score = np.float64(scores[r])
        sign = 1.0 if r == label else -1.0
        m = sign * score
        lowest = min(lowest, m)
        if r != label:
            strongest = max(strongest, score)
        share = weight[0] * weight[1] if r == label else weight[0]
        tau = share * step(rule, m, length, tally[r] + 1, r == label)
        if tau != 0.0:
            found = note(moves, found, r, -1, r, sign * tau)
    return lowest, scores[label] > strongest, found


@confront.register
def _(problem: OneVsOne, rule, scores, label, length, weight, tally, moves, found):
    lowest = np.inf
    for r in range(problem.classes):
        if r != label:
            m = np.float64(scores[r])
            lowest = min(lowest, m)
            here, there = label * problem.classes + r, r * problem.classes + label
            counter = min(here, there)
            tau = weight[0] * weight[1] * step(rule, m, length, tally[counter] + 1, label < r)
            if tau != 0.0:
                found = note(moves, found, here, there, counter, tau)
    return lowest, lowest > 0.0, found


def pairs(classes: int) -> tuple[NDArray, NDArray]:
    """The pairs (a, b) of classes with a < b, in lexicographic order, as two index arrays."""
    return np.triu_indices(classes, 1)


def visible(problem: Problem, columns: NDArray) -> NDArray:
    """Of an array whose last axis is the weight vectors, those that a user sees: one a pair a < b, positive for a; one a
    class; or the one of two classes."""
    if isinstance(problem, OneVsOne):
        a, b = pairs(problem.classes)
        return columns[..., a * problem.classes + b]
    return columns


def decide(problem: Problem, scores: NDArray) -> NDArray:
    """The decision values of rows, from the scores of their visible weight vectors.

    Two classes: one value a row, ≥ 0 for class 1. Otherwise one value a class, the highest wins; one-vs-one gives votes,
    moved by less than half a vote according to the summed margins, so that margins decide between equal votes only.
    """
    if problem.classes == 2:
        return scores[:, 0]
    return _votes(problem.classes, scores) if isinstance(problem, OneVsOne) else scores


def _votes(classes: int, scores: NDArray) -> NDArray:
    votes = np.zeros((len(scores), classes))
    margins = np.zeros((len(scores), classes))
    for p, (a, b) in enumerate(zip(*pairs(classes), strict=True)):
        wins = scores[:, p] >= 0
        votes[:, a] += wins
        votes[:, b] += ~wins
        margins[:, a] += scores[:, p]
        margins[:, b] -= scores[:, p]
    return votes + margins / (3 * (np.abs(margins) + 1))


def winner(decision: NDArray) -> NDArray:
    """The class number that each decision names; a decision of exactly zero between two classes names class 1."""
    return (decision >= 0).astype(np.int64) if decision.ndim == 1 else decision.argmax(axis=1)
