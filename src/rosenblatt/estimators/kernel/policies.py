"""Policies of kernel learners on a budget: what to do with a row that is learned. Stop learning when there is no room,
forget the oldest row held, one at random or the safest, or learn only the projection of the new row onto those held.

Rows come in blocks, with their kernels computed beforehand; a row that is learned or forgotten is then only a number in
a list. To add a policy, write its NamedTuple and its body of `learn`, and say in `NEEDS` what it needs: "gram", the kernels
of the rows held with each other; "factor", their triangular factor; "chance", random numbers; "unit", that no K(x, x) is
above 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import generic, is_number, jit

DEPENDENT = 1e-10  # a share of ‖x‖²: a row this close to the span of those held is in it, as far as float64 can tell


class BlockState(NamedTuple):
    """One weight vector while it learns from a block. A candidate is a row held when the block began, or a row of the
    block: those held come first. `active` lists the candidates that are in the weights, oldest first."""

    gram: NDArray  # (held, held) kernels of the rows held; this and the last three are empty unless the policy needs them
    near: NDArray  # (block, held + block) kernels of the rows of the block with all candidates
    active: NDArray  # (held + block,) int64: the candidates in the weights, of which there are `size`
    coef: NDArray  # (held + block,) and how much of each, in the same order
    size: NDArray  # (1,) int64
    memory: NDArray  # (4,) what a policy remembers from block to block
    factor: NDArray  # (held + block,)², the lower triangular factor of the kernels of the active
    chance: NDArray  # (block,) random numbers in [0, 1)
    drawn: NDArray  # (1,) int64: how many of these were used


@generic
def learn(policy, state, x, sign, score, weight):
    """Learn that candidate x, of the block, is on the side `sign`, which the weights scored so, with a coefficient that
    the weight of the example multiplies; whether they changed."""
    raise TypeError(f"{type(policy).__name__} is not a policy")


@jit
def score_of(state, x):
    """The score of candidate x, of the block."""
    near, active, coef = state.near, state.active, state.coef
    row = x + near.shape[0] - near.shape[1]
    total = 0.0
    for p in range(state.size[0]):
        total += coef[p] * near[row, active[p]]
    return total


@jit
def pair(state, i, j):
    """The kernel of two candidates."""
    held = state.near.shape[1] - state.near.shape[0]
    if i >= held:
        return state.near[i - held, j]
    if j >= held:
        return state.near[j - held, i]
    return state.gram[i, j]


@jit
def value_at(state, i):
    """The score of any candidate."""
    total = 0.0
    for p in range(state.size[0]):
        total += state.coef[p] * pair(state, state.active[p], i)
    return total


@jit
def add(state, x, coef):
    """Take candidate x into the weights, as the youngest."""
    state.active[state.size[0]] = x
    state.coef[state.size[0]] = coef
    state.size[0] += 1


@jit
def drop(state, p):
    """Take the p-th oldest out of the weights."""
    for q in range(p + 1, state.size[0]):
        state.active[q - 1] = state.active[q]
        state.coef[q - 1] = state.coef[q]
    state.size[0] -= 1


class Stop(NamedTuple):
    """Learn until the budget is full, and then no more."""

    budget: int


@learn.register
def _(policy: Stop, state, x, sign, score, weight):
    if sign * score > 0.0 or state.size[0] >= policy.budget:
        return False
    add(state, x, weight * sign)
    return True


class ForgetRandom(NamedTuple):
    """Make room by dropping one of the rows held, drawn at random."""

    budget: int


@learn.register
def _(policy: ForgetRandom, state, x, sign, score, weight):
    if sign * score > 0.0:
        return False
    if state.size[0] >= policy.budget:
        drop(state, int(state.chance[state.drawn[0]] * state.size[0]))
        state.drawn[0] += 1
    add(state, x, weight * sign)
    return True


class ForgetSafest(NamedTuple):
    """Make room by dropping the row that would keep the widest margin without itself; of equals the oldest."""

    budget: int


@learn.register
def _(policy: ForgetSafest, state, x, sign, score, weight):
    if sign * score > 0.0:
        return False
    add(state, x, weight * sign)
    if state.size[0] > policy.budget:
        safest, widest = 0, -np.inf
        for p in range(state.size[0]):
            i, c = state.active[p], state.coef[p]
            margin = np.sign(c) * (value_at(state, i) - c * pair(state, i, i))
            if margin > widest:
                safest, widest = p, margin
        drop(state, safest)
    return True


class ForgetOldest(NamedTuple):
    """The Forgetron: shrink all coefficients by φ, then drop the oldest row.

    Dropping a row with coefficient λ and margin μ can cost Ψ = λ² + 2λ − 2λμ. Self-tuned, φ is as close to 1 as keeps the
    sum Q of these below 15/32 of the mistakes M. Otherwise φ = min(`shrink`, `longest`/‖f‖).
    `memory` is (Q, M, highest Q/M so far, ‖f‖²).
    """

    budget: int
    tuned: bool
    shrink: float
    longest: float


@learn.register
def _(policy: ForgetOldest, state, x, sign, score, weight):
    if sign * score > 0.0:
        return False
    memory, coef = state.memory, state.coef
    add(state, x, weight * sign)
    memory[1] += 1.0
    memory[3] += 2.0 * weight * sign * score + weight * weight * pair(state, x, x)
    if state.size[0] > policy.budget:
        oldest = state.active[0]
        delta = abs(coef[0])
        mu = np.sign(coef[0]) * value_at(state, oldest)
        if policy.tuned:
            # Q + (δφ)² + 2δφ(1 − φμ) ≤ 15M/32 as aφ² + bφ + c ≤ 0, where c < 0 < b: true for φ up to the first root
            a, b, c = delta * delta - 2.0 * delta * mu, 2.0 * delta, memory[0] - 15.0 / 32.0 * memory[1]
            phi = 1.0 if a + b + c <= 0.0 else -2.0 * c / (b + np.sqrt(b * b - 4.0 * a * c))
        else:
            phi = min(policy.shrink, policy.longest / np.sqrt(memory[3]))
        for p in range(state.size[0]):
            coef[p] *= phi
        lost = delta * phi
        memory[0] += lost * lost + 2.0 * lost * (1.0 - phi * mu)
        memory[3] = phi * phi * memory[3] - 2.0 * lost * phi * mu + lost * lost * pair(state, oldest, oldest)
        drop(state, 0)
    memory[2] = max(memory[2], memory[0] / memory[1])
    return True


class Project(NamedTuple):
    """The Projectron: if a row is within `eta` of the span of those held, or there is no room, learn its projection onto
    them, which needs no room. Its budget may be endless.

    With `aggressive` (Projectron++), a row that is right by less than 1 is learned too, in part, where the projection loses
    less than it gains. The kernels of the rows held are L·Lᵀ, and L grows by a line with every row: solving with it is far
    more accurate than the inverse that the paper keeps, and no slower.
    """

    budget: int
    eta: float
    aggressive: bool


@jit
def project(state, x, line, dual):
    """The squared distance of candidate x, of the block, from the span of the active. `line` becomes L⁻¹k and `dual`
    K⁻¹k, the coefficients of the projection; k are the kernels with the active."""
    factor, size = state.factor, state.size[0]
    rest = pair(state, x, x)
    for p in range(size):
        total = pair(state, x, state.active[p])
        for q in range(p):
            total -= factor[p, q] * line[q]
        line[p] = total / factor[p, p]
        rest -= line[p] * line[p]
    for p in range(size):
        dual[p] = line[p]
    for p in range(size - 1, -1, -1):
        dual[p] /= factor[p, p]
        for q in range(p):
            dual[q] -= factor[p, q] * dual[p]
    return rest if rest > DEPENDENT * pair(state, x, x) else 0.0


@learn.register
def _(policy: Project, state, x, sign, score, weight):
    margin, size = sign * score, state.size[0]
    if margin > 0.0 and (margin >= 1.0 or not policy.aggressive):
        return False
    line, dual = np.empty(size), np.empty(size)
    rest = project(state, x, line, dual)
    tau = 1.0
    if margin <= 0.0:
        if rest > policy.eta * policy.eta and size < policy.budget:
            for q in range(size):
                state.factor[size, q] = line[q]
            state.factor[size, size] = np.sqrt(rest)
            add(state, x, weight * sign)
            return True
    else:
        loss = np.sqrt(rest) / policy.eta if rest > 0.0 else 0.0
        gain, length = 1.0 - margin - loss, pair(state, x, x) - rest
        if gain <= 0.0 or length <= 0.0:
            return False
        tau = min(1.0, (1.0 - margin) / length, 2.0 * gain / length)
    for p in range(size):
        state.coef[p] += weight * sign * tau * dual[p]
    return size > 0


Policy = Stop | ForgetRandom | ForgetSafest | ForgetOldest | Project
POLICIES: dict[str, type] = {  # by their names in files
    "stop": Stop,
    "forget any": ForgetRandom,
    "forget safest": ForgetSafest,
    "forget oldest": ForgetOldest,
    "project": Project,
}
NEEDS: dict[type, tuple[str, ...]] = {
    Stop: (),
    ForgetRandom: ("chance",),
    ForgetSafest: ("gram",),
    ForgetOldest: ("gram", "unit"),
    Project: ("factor",),
}


@jit
def scan(policy, state, signs, weight, scores):
    """Learn from the rows of a block in turn; (row whose score or length is not a number or −1, updates)."""
    first = state.near.shape[1] - state.near.shape[0]
    updates = 0
    for j in range(signs.size):
        scores[j] = score_of(state, first + j)
        if not (is_number(scores[j]) and is_number(state.near[j, first + j])):
            return j, updates
        if weight[j] > 0.0:
            updates += learn(policy, state, first + j, signs[j], scores[j], weight[j])
    return -1, updates


@jit
def active_gram(state):
    """(active, active): the kernels of the rows in the weights."""
    size = state.size[0]
    gram = np.empty((size, size))
    for p in range(size):
        for q in range(size):
            gram[p, q] = pair(state, state.active[p], state.active[q])
    return gram
