"""What a kernel learner on a budget does with a row: stop learning when there is no room, forget the oldest row it holds,
one at random or the safest, or learn only the projection of the new row onto those it holds.

Rows come in blocks, with their kernels computed beforehand; a row that is learned or forgotten is then only a number in
a list. To add a policy, write its NamedTuple and its body of `learn`, and say what it `needs`: "gram", the kernels of the
rows held with each other; "factor", their triangular factor; "chance", random numbers; "unit", that no K(x, x) is above 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import generic, is_number, jit

DEPENDENT = 1e-10  # a share of ‖x‖²: a row this close to the span of those held is in it, as far as float64 can tell


class Slate(NamedTuple):
    """One weight vector while it learns from a block. A candidate is a row held when the block began, or a row of the
    block: those held come first. The slate lists the candidates that are in the weights, oldest first."""

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
def learn(policy, slate, x, sign, score):
    """Learn that candidate x, of the block, is on the side `sign`, which the weights scored so; whether they changed."""
    raise TypeError(f"{type(policy).__name__} is not a policy")


@jit
def score_of(slate, x):
    """The score of candidate x, of the block."""
    near, active, coef = slate.near, slate.active, slate.coef
    row = x + near.shape[0] - near.shape[1]
    total = 0.0
    for p in range(slate.size[0]):
        total += coef[p] * near[row, active[p]]
    return total


@jit
def pair(slate, i, j):
    """The kernel of two candidates."""
    held = slate.near.shape[1] - slate.near.shape[0]
    if i >= held:
        return slate.near[i - held, j]
    if j >= held:
        return slate.near[j - held, i]
    return slate.gram[i, j]


@jit
def value_at(slate, i):
    """The score of any candidate."""
    total = 0.0
    for p in range(slate.size[0]):
        total += slate.coef[p] * pair(slate, slate.active[p], i)
    return total


@jit
def add(slate, x, coef):
    """Take candidate x into the weights, as the youngest."""
    slate.active[slate.size[0]] = x
    slate.coef[slate.size[0]] = coef
    slate.size[0] += 1


@jit
def drop(slate, p):
    """Take the p-th oldest out of the weights."""
    for q in range(p + 1, slate.size[0]):
        slate.active[q - 1] = slate.active[q]
        slate.coef[q - 1] = slate.coef[q]
    slate.size[0] -= 1


class Stop(NamedTuple):
    """Learn until the budget is full, and then no more."""

    budget: int

    @property
    def needs(self) -> tuple[str, ...]:
        return ()


@learn.register
def _(policy: Stop, slate, x, sign, score):
    if sign * score > 0.0 or slate.size[0] >= policy.budget:
        return False
    add(slate, x, sign)
    return True


class ForgetAny(NamedTuple):
    """Make room by dropping one of the rows held, drawn at random."""

    budget: int

    @property
    def needs(self) -> tuple[str, ...]:
        return ("chance",)


@learn.register
def _(policy: ForgetAny, slate, x, sign, score):
    if sign * score > 0.0:
        return False
    if slate.size[0] >= policy.budget:
        drop(slate, int(slate.chance[slate.drawn[0]] * slate.size[0]))
        slate.drawn[0] += 1
    add(slate, x, sign)
    return True


class ForgetSafest(NamedTuple):
    """Make room by dropping the row that would keep the widest margin without itself; of equals the oldest."""

    budget: int

    @property
    def needs(self) -> tuple[str, ...]:
        return ("gram",)


@learn.register
def _(policy: ForgetSafest, slate, x, sign, score):
    if sign * score > 0.0:
        return False
    add(slate, x, sign)
    if slate.size[0] > policy.budget:
        safest, widest = 0, -np.inf
        for p in range(slate.size[0]):
            i, c = slate.active[p], slate.coef[p]
            margin = np.sign(c) * (value_at(slate, i) - c * pair(slate, i, i))
            if margin > widest:
                safest, widest = p, margin
        drop(slate, safest)
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

    @property
    def needs(self) -> tuple[str, ...]:
        return ("gram", "unit")


@learn.register
def _(policy: ForgetOldest, slate, x, sign, score):
    if sign * score > 0.0:
        return False
    memory, coef = slate.memory, slate.coef
    add(slate, x, sign)
    memory[1] += 1.0
    memory[3] += 2.0 * sign * score + pair(slate, x, x)
    if slate.size[0] > policy.budget:
        oldest = slate.active[0]
        delta = abs(coef[0])
        mu = np.sign(coef[0]) * value_at(slate, oldest)
        if policy.tuned:
            # Q + (δφ)² + 2δφ(1 − φμ) ≤ 15M/32 as aφ² + bφ + c ≤ 0, where c < 0 < b: true for φ up to the first root
            a, b, c = delta * delta - 2.0 * delta * mu, 2.0 * delta, memory[0] - 15.0 / 32.0 * memory[1]
            phi = 1.0 if a + b + c <= 0.0 else -2.0 * c / (b + np.sqrt(b * b - 4.0 * a * c))
        else:
            phi = min(policy.shrink, policy.longest / np.sqrt(memory[3]))
        for p in range(slate.size[0]):
            coef[p] *= phi
        lost = delta * phi
        memory[0] += lost * lost + 2.0 * lost * (1.0 - phi * mu)
        memory[3] = phi * phi * memory[3] - 2.0 * lost * phi * mu + lost * lost * pair(slate, oldest, oldest)
        drop(slate, 0)
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

    @property
    def needs(self) -> tuple[str, ...]:
        return ("factor",)


@jit
def project(slate, x, line, dual):
    """The squared distance of candidate x, of the block, from the span of the active. `line` becomes L⁻¹k and `dual`
    K⁻¹k, the coefficients of the projection; k are the kernels with the active."""
    factor, size = slate.factor, slate.size[0]
    rest = pair(slate, x, x)
    for p in range(size):
        total = pair(slate, x, slate.active[p])
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
    return rest if rest > DEPENDENT * pair(slate, x, x) else 0.0


@learn.register
def _(policy: Project, slate, x, sign, score):
    margin, size = sign * score, slate.size[0]
    if margin > 0.0 and (margin >= 1.0 or not policy.aggressive):
        return False
    line, dual = np.empty(size), np.empty(size)
    rest = project(slate, x, line, dual)
    tau = 1.0
    if margin <= 0.0:
        if rest > policy.eta * policy.eta and size < policy.budget:
            for q in range(size):
                slate.factor[size, q] = line[q]
            slate.factor[size, size] = np.sqrt(rest)
            add(slate, x, sign)
            return True
    else:
        loss = np.sqrt(rest) / policy.eta if rest > 0.0 else 0.0
        gain, length = 1.0 - margin - loss, pair(slate, x, x) - rest
        if gain <= 0.0 or length <= 0.0:
            return False
        tau = min(1.0, (1.0 - margin) / length, 2.0 * gain / length)
    for p in range(size):
        slate.coef[p] += sign * tau * dual[p]
    return size > 0


POLICIES: dict[str, type] = {  # in files
    "stop": Stop,
    "forget any": ForgetAny,
    "forget safest": ForgetSafest,
    "forget oldest": ForgetOldest,
    "project": Project,
}


@jit
def scan(policy, slate, signs, scores):
    """Learn from the rows of a block in turn; (row whose score or length is not a number or −1, updates)."""
    first = slate.near.shape[1] - slate.near.shape[0]
    updates = 0
    for j in range(signs.size):
        scores[j] = score_of(slate, first + j)
        if not (is_number(scores[j]) and is_number(slate.near[j, first + j])):
            return j, updates
        updates += learn(policy, slate, first + j, signs[j], scores[j])
    return -1, updates


@jit
def regrouped(slate):
    """(active, active): the kernels of the rows in the weights."""
    size = slate.size[0]
    gram = np.empty((size, size))
    for p in range(size):
        for q in range(size):
            gram[p, q] = pair(slate, slate.active[p], slate.active[q])
    return gram
