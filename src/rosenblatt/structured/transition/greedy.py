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
from rosenblatt.structured.features.weight_table import add_row, reserve, update_row
from rosenblatt.structured.transition import transitions as system
from rosenblatt.structured.transition.quantized import new_scores, score_actions
from rosenblatt.structured.transition.state_features import extract_keys, load_sentence, new_workspace


class TransitionOptions(NamedTuple):
    """How a parser learns."""

    single_root: bool
    margin: float  # what a unit of cost adds to the score of a rival
    offset: float  # see base.offset
    explore: float  # how often the best action is taken rather than the best that costs nothing
    seed: np.uint64


@jit
def random_unit(seed, clock, turn):
    """A number from 0 to 1, the same whenever it is asked for with the same arguments."""
    h = mix(mix(seed, np.uint64(clock)), np.uint64(turn))
    return np.float64(h >> np.uint64(11)) * 2.0**-53


@jit
def best_action(scores, uses, cells, front, n, single_root):
    """The best action that may be taken; of equal ones, the first."""
    may_shift, may_left, may_right = system.legal_actions(cells, front, n, single_root)
    choice, top = -1, -np.inf
    if may_shift:
        choice, top = system.SHIFT, scores[system.SHIFT]
    for side in range(1, 3):
        if may_left if side == 1 else may_right:
            kind = system.arc_kind(cells, front, n, side)
            for label in range(uses.size):
                action = 2 * label + side
                if uses[label] & kind and scores[action] > top:
                    choice, top = action, scores[action]
    return choice


@jit
def confront(scores, uses, cells, front, heads, labels, options):
    """(best action of least cost, its best rival or −1, the rival's cost); of equal ones, the first."""
    n = heads.size
    costs = system.costs(cells, front, heads, options.single_root)
    may = system.legal_actions(cells, front, n, options.single_root)
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
            rival_score = scores[system.SHIFT] + options.margin * cost
    for side in range(1, 3):
        if may[side]:
            kind = system.arc_kind(cells, front, n, side)
            head, word = system.new_arc(cells, front, side)
            for label in range(uses.size):
                if uses[label] & kind:
                    action = 2 * label + side
                    extra = costs[side] - least + (heads[word] == head and labels[word] != label)
                    score = scores[action] + options.margin * extra
                    if extra == 0:
                        if score > right_score:
                            right, right_score = action, score
                    elif score > rival_score:
                        rival, rival_score, cost = action, score, extra
    return right, rival, cost


@jit
def learn_greedy(table, templates, corpus, order, rule, options, uses, clock, updates):
    """Visit the sentences of `order` once; (the table, which may have moved, wrong actions, updates so far)."""
    values, starts, gold_heads, gold_labels = corpus
    longest = 0
    for sentence in order:
        longest = max(longest, starts[sentence + 1] - starts[sentence])
    work = new_workspace(templates, longest, values.shape[1])
    cells = system.new_cells(4 * longest + 2)
    scores = new_scores(table, 1, 1 + 2 * uses.size)[0]
    found = np.empty(work.keys.size, np.int64)
    heads, usable = np.empty(longest, np.int64), np.empty_like(uses)
    keys, mistakes = work.keys, 0
    for sentence in order:
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        tree, labels = heads[:n], gold_labels[start : start + n]
        system.load_gold(gold_heads[start : start + n], labels, tree, uses, usable)
        load_sentence(work, values[start : start + n])
        used, front = system.begin(cells), 0
        for turn in range(2 * n):
            table = reserve(table, 2 * keys.size)
            count = extract_keys(work, templates, cells, front, n)
            score_actions(table, keys, count, found, scores)
            choice = best_action(scores, usable, cells, front, n, options.single_root)
            right, rival, cost = confront(scores, usable, cells, front, tree, labels, options)
            if rival >= 0:
                mistakes += scores[rival] >= scores[right]
                margin = scores[right] - scores[rival] - options.margin * cost + options.offset
                tau = step(rule, margin, 2.0 * count, updates + 1, True)
                if tau > 0.0:
                    updates += 1
                    for i in range(count):
                        row = found[i] if found[i] >= 0 else add_row(table, keys[i])
                        update_row(table, row, right, tau, clock)
                        update_row(table, row, rival, -tau, clock)
            if random_unit(options.seed, clock, turn) >= options.explore:
                choice = right
            front, used = system.act(cells, used, front, choice)
        clock += 1
    return table, mistakes, updates


@jit
def parse_greedy(weights, templates, corpus, uses, single_root):
    """Write the heads (0 for the root) and labels of every sentence of a corpus."""
    values, starts, heads, labels = corpus
    longest = 0
    for sentence in range(starts.size - 1):
        longest = max(longest, starts[sentence + 1] - starts[sentence])
    work = new_workspace(templates, longest, values.shape[1])
    cells = system.new_cells(4 * longest + 2)
    scores = new_scores(weights, 1, 1 + 2 * uses.size)[0]
    found = np.empty(work.keys.size, np.uint64)
    actions, usable = np.empty(2 * longest, np.int64), np.empty_like(uses)
    system.write_usable(uses, usable)
    for sentence in range(starts.size - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        load_sentence(work, values[start : start + n])
        used, front = system.begin(cells), 0
        for turn in range(2 * n):
            count = extract_keys(work, templates, cells, front, n)
            score_actions(weights, work.keys, count, found, scores)
            actions[turn] = best_action(scores, usable, cells, front, n, single_root)
            front, used = system.act(cells, used, front, actions[turn])
        system.write_arcs(actions[: 2 * n], heads[start : start + n], labels[start : start + n])
