"""One action at a time, the best one; and learning from where one's own actions lead.

In every configuration the dynamic oracle tells what each action costs (`transitions.costs`, and one more for a gold arc
with a wrong label). The rule sees the best action that costs nothing against the best of score + margin · cost among the
others. Then mostly (`explore`) the best action is taken, right or wrong, so that the parser learns to make the best of
its own errors (Goldberg and Nivre 2012, 2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.jit import jit
from rosenblatt.rules import step
from rosenblatt.structured.features.ledger import entered, push_row, roomy
from rosenblatt.structured.transition import transitions as system
from rosenblatt.structured.transition.outlook import lay, look, new_desk
from rosenblatt.structured.transition.weighing import room, weigh


class Manner(NamedTuple):
    """How a parser learns."""

    single_root: bool
    margin: float  # what a unit of cost adds to the score of a rival
    offset: float  # see base.offset
    explore: float  # how often the best action is taken rather than the best that costs nothing
    seed: np.uint64


@jit
def chance(seed, clock, turn):
    """A number from 0 to 1, the same whenever it is asked for with the same arguments."""
    h = mix(mix(seed, np.uint64(clock)), np.uint64(turn))
    return np.float64(h >> np.uint64(11)) * 2.0**-53


@jit
def best(scores, uses, cells, front, n, single_root):
    """The best action that may be taken; of equal ones, the first."""
    may_shift, may_left, may_right = system.allowed(cells, front, n, single_root)
    choice, top = -1, -np.inf
    if may_shift:
        choice, top = system.SHIFT, scores[system.SHIFT]
    for side in range(1, 3):
        if may_left if side == 1 else may_right:
            kind = system.kind(cells, front, n, side)
            for label in range(uses.size):
                action = 2 * label + side
                if uses[label] & kind and scores[action] > top:
                    choice, top = action, scores[action]
    return choice


@jit
def confront(scores, uses, cells, front, heads, labels, manner):
    """(best action of least cost, its best rival or −1, the rival's cost); of equal ones, the first."""
    n = heads.size
    costs = system.costs(cells, front, heads, manner.single_root)
    may = system.allowed(cells, front, n, manner.single_root)
    least = n + 1
    for side in range(3):
        if may[side]:
            least = min(least, costs[side])
    right, rival, cost = -1, -1, 0
    right_score, rival_score = -np.inf, -np.inf
    if may[0]:
        if costs[0] == least:
            right, right_score = system.SHIFT, scores[system.SHIFT]
        else:
            rival, cost = system.SHIFT, costs[0] - least
            rival_score = scores[system.SHIFT] + manner.margin * cost
    for side in range(1, 3):
        if may[side]:
            kind = system.kind(cells, front, n, side)
            head, word = system.arc(cells, front, side)
            for label in range(uses.size):
                if uses[label] & kind:
                    action = 2 * label + side
                    extra = costs[side] - least + (heads[word] == head and labels[word] != label)
                    score = scores[action] + manner.margin * extra
                    if extra == 0:
                        if score > right_score:
                            right, right_score = action, score
                    elif score > rival_score:
                        rival, rival_score, cost = action, score, extra
    return right, rival, cost


@jit
def learn(ledger, outlook, corpus, order, rule, manner, uses, clock, updates):
    """Visit the sentences of `order` once; (the ledger, which may have moved, wrong actions, updates so far)."""
    values, starts, gold_heads, gold_labels = corpus
    longest = 0
    for sentence in order:
        longest = max(longest, starts[sentence + 1] - starts[sentence])
    desk = new_desk(outlook, longest, values.shape[1])
    cells = system.new_cells(4 * longest + 2)
    scores = room(ledger, 1, 1 + 2 * uses.size)[0]
    found = np.empty(desk.keys.size, np.int64)
    heads, usable = np.empty(longest, np.int64), np.empty_like(uses)
    keys, mistakes = desk.keys, 0
    for sentence in order:
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        tree, labels = heads[:n], gold_labels[start : start + n]
        system.take_gold(gold_heads[start : start + n], labels, tree, uses, usable)
        lay(desk, values[start : start + n])
        used, front = system.begin(cells), 0
        for turn in range(2 * n):
            ledger = roomy(ledger, 2 * keys.size)
            count = look(desk, outlook, cells, front, n)
            weigh(ledger, keys, count, found, scores)
            choice = best(scores, usable, cells, front, n, manner.single_root)
            right, rival, cost = confront(scores, usable, cells, front, tree, labels, manner)
            if rival >= 0:
                mistakes += scores[rival] >= scores[right]
                margin = scores[right] - scores[rival] - manner.margin * cost + manner.offset
                tau = step(rule, margin, 2.0 * count, updates + 1, True)
                if tau > 0.0:
                    updates += 1
                    for i in range(count):
                        row = found[i] if found[i] >= 0 else entered(ledger, keys[i])
                        push_row(ledger, row, right, tau, clock)
                        push_row(ledger, row, rival, -tau, clock)
            if chance(manner.seed, clock, turn) >= manner.explore:
                choice = right
            front, used = system.act(cells, used, front, choice)
        clock += 1
    return ledger, mistakes, updates


@jit
def parse(weights, outlook, corpus, uses, single_root):
    """Write the heads (0 for the root) and labels of every sentence of a corpus."""
    values, starts, heads, labels = corpus
    longest = 0
    for sentence in range(starts.size - 1):
        longest = max(longest, starts[sentence + 1] - starts[sentence])
    desk = new_desk(outlook, longest, values.shape[1])
    cells = system.new_cells(4 * longest + 2)
    scores = room(weights, 1, 1 + 2 * uses.size)[0]
    found = np.empty(desk.keys.size, np.uint64)
    actions, usable = np.empty(2 * longest, np.int64), np.empty_like(uses)
    system.open_up(uses, usable)
    for sentence in range(starts.size - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        lay(desk, values[start : start + n])
        used, front = system.begin(cells), 0
        for turn in range(2 * n):
            count = look(desk, outlook, cells, front, n)
            weigh(weights, desk.keys, count, found, scores)
            actions[turn] = best(scores, usable, cells, front, n, single_root)
            front, used = system.act(cells, used, front, actions[turn])
        system.arcs(actions[: 2 * n], heads[start : start + n], labels[start : start + n])
