"""The best few configurations side by side, each judged by all actions that led to it.

Learning compares the gold sequence of actions with the best other one, up to the step at which that one is furthest ahead
(maximum violation: Huang, Fayong and Guo 2012), or at which gold has fallen off the beam (early update: Collins and Roark
2004). Every move is along a pair in which the wrong one scored at least as high, cost included: a move that is no
violation is refused by the rule. Without that, inexact search would lose the perceptron's bound.

An arc that is lost, or has a wrong label, adds `margin` to the score of the configuration at the step where it is lost,
as the dynamic oracle tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, mix, new_slots
from rosenblatt.engine.jit import jit
from rosenblatt.rules import step
from rosenblatt.structured.features.weight_table import reserve, update
from rosenblatt.structured.transition import transitions as system
from rosenblatt.structured.transition.quantized import new_scores, score_actions
from rosenblatt.structured.transition.state_features import extract_keys, load_sentence, new_workspace


class Beam(NamedTuple):
    """The configurations of each step of one sentence, best first."""

    fronts: NDArray  # (steps + 1, width + 1) int64: their cells; the last column is for gold, where it has fallen off
    parents: NDArray  # (steps + 1, width) int64: which configuration of the step before each came from
    actions: NDArray  # (steps + 1, width) int64: by which action
    totals: NDArray  # (2, width): the scores of this step and the next, costs included
    scores: NDArray  # (width + 1, actions): the scores of all actions in each configuration
    shares: NDArray  # ((width + 1) · parts, actions): what each part of the templates adds to them
    alike: NDArray  # (width + 1, parts) int64: the first configuration of the step in which the part looks the same
    marks: NDArray  # (width + 1, parts) uint64: what it looks like


@jit
def new_beam(weights, width, longest, actions, parts):
    """A beam for sentences of up to this many words."""
    return Beam(
        np.zeros((2 * longest + 1, width + 1), np.int64),
        np.zeros((2 * longest + 1, width), np.int64),
        np.zeros((2 * longest + 1, width), np.int64),
        np.zeros((2, width)),
        new_scores(weights, width + 1, actions),
        new_scores(weights, (width + 1) * parts, actions),
        np.zeros((width + 1, parts), np.int64),
        np.zeros((width + 1, parts), np.uint64),
    )


@jit
def _score_all(weights, beam, work, templates, cells, fronts, size, n, found):
    """Write the scores of all actions in each configuration. Where a part of two looks alike, it is weighed once."""
    scores, shares, alike, marks, keys, bounds = beam.scores, beam.shares, beam.alike, beam.marks, work.keys, work.bounds
    parts = alike.shape[1]
    for i in range(size):
        extract_keys(work, templates, cells, fronts[i], n)
        for part in range(parts):
            mark = np.uint64(0)
            for k in range(bounds[part], bounds[part + 1]):
                mark += keys[k]
            marks[i, part], alike[i, part] = mark, i
            for j in range(i):
                if marks[j, part] == mark:
                    alike[i, part] = alike[j, part]
                    break
            share = shares[alike[i, part] * parts + part]
            if alike[i, part] == i:
                start = bounds[part]
                score_actions(weights, keys[start:], bounds[part + 1] - start, found, share)
            for k in range(share.size):
                scores[i, k] = share[k] if part == 0 else scores[i, k] + share[k]


@jit
def _offer(totals, parents, actions, size, total, parent, action):
    """Put a configuration where it belongs among the best so far, if it does; how many there are. Equals stay in order."""
    width = totals.size
    if size == width and total <= totals[width - 1]:
        return size
    at = min(size, width - 1)
    while at > 0 and totals[at - 1] < total:
        totals[at], parents[at], actions[at] = totals[at - 1], parents[at - 1], actions[at - 1]
        at -= 1
    totals[at], parents[at], actions[at] = total, parent, action
    return min(size + 1, width)


@jit
def _select(beam, turn, size, uses, cells, n, single_root, margin, heads, labels):
    """Choose the best configurations of the next step; how many. Without a gold tree, nothing costs anything."""
    before, after = beam.totals[turn & 1], beam.totals[(turn + 1) & 1]
    parents, actions = beam.parents[turn + 1], beam.actions[turn + 1]
    chosen = 0
    for i in range(size):
        front, scores = beam.fronts[turn, i], beam.scores[i]
        may = system.legal_actions(cells, front, n, single_root)
        shift, left, right = 0, 0, 0
        if heads is not None:
            shift, left, right = system.costs(cells, front, heads, single_root)
        if may[0]:
            total = before[i] + scores[system.SHIFT] + margin * shift
            chosen = _offer(after, parents, actions, chosen, total, i, system.SHIFT)
        for side in range(1, 3):
            if may[side]:
                kind = system.arc_kind(cells, front, n, side)
                base = before[i] + margin * (left if side == 1 else right)
                gold = -1
                if heads is not None:
                    head, word = system.new_arc(cells, front, side)
                    if heads[word] == head:
                        gold = labels[word]
                for label in range(uses.size):
                    if uses[label] & kind:
                        total = base + scores[2 * label + side]
                        if gold >= 0 and label != gold:
                            total += margin
                        if chosen < after.size or total > after[after.size - 1]:
                            chosen = _offer(after, parents, actions, chosen, total, i, 2 * label + side)
    return chosen


@jit
def _advance(beam, turn, size, cells, used):
    """Write the configurations that were chosen; the number of cells used now."""
    for i in range(size):
        front = beam.fronts[turn, beam.parents[turn + 1, i]]
        beam.fronts[turn + 1, i], used = system.act(cells, used, front, beam.actions[turn + 1, i])
    return used


@jit
def _trace(beam, turn, at, fronts, actions):
    """Write the configurations and the actions that led to a configuration."""
    for t in range(turn, 0, -1):
        actions[t - 1] = beam.actions[t, at]
        at = beam.parents[t, at]
        fronts[t - 1] = beam.fronts[t - 1, at]


@jit
def parse_beam(weights, templates, corpus, uses, single_root, width):
    """Write the heads (0 for the root) and labels of every sentence of a corpus."""
    values, starts, heads, labels = corpus
    longest = 0
    for sentence in range(starts.size - 1):
        longest = max(longest, starts[sentence + 1] - starts[sentence])
    work = new_workspace(templates, longest, values.shape[1])
    cells = system.new_cells(4 * longest * width + 1)
    beam = new_beam(weights, width, longest, 1 + 2 * uses.size, templates.parts.size - 1)
    found = np.empty(work.keys.size, np.uint64)
    fronts, actions = np.empty(2 * longest, np.int64), np.empty(2 * longest, np.int64)
    usable = np.empty_like(uses)
    system.write_usable(uses, usable)
    for sentence in range(starts.size - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        load_sentence(work, values[start : start + n])
        used, size = system.begin(cells), 1
        beam.totals[0, 0] = 0.0
        for turn in range(2 * n):
            _score_all(weights, beam, work, templates, cells, beam.fronts[turn], size, n, found)
            size = _select(beam, turn, size, usable, cells, n, single_root, 0.0, None, None)
            used = _advance(beam, turn, size, cells, used)
        _trace(beam, 2 * n, 0, fronts, actions)
        system.write_arcs(actions[: 2 * n], heads[start : start + n], labels[start : start + n])


class Difference(NamedTuple):
    """Δ = φ(gold) − φ(rival): each feature of each action that the two do not share equally."""

    slots: NDArray  # a table from (feature, action) to its place
    keys: NDArray  # (places,) uint64: the feature
    actions: NDArray  # (places,) int64
    counts: NDArray  # (places,)
    used: NDArray  # (1,) int64


@jit
def _add(difference, keys, count, action, sign):
    slots, features, actions, counts, used = difference
    for i in range(count):
        at = claim(slots, mix(keys[i], np.uint64(action)))
        if slots[at, 1] == ABSENT:
            place = used[0]
            slots[at, 1] = np.uint64(place)
            features[place], actions[place], counts[place] = keys[i], action, 0.0
            used[0] += 1
        counts[np.int64(slots[at, 1])] += sign


@jit
def _loss(cells, fronts, actions, turn, heads, labels, single_root):
    """What these actions cost: gold arcs that they lose, and wrong labels."""
    total = 0
    for t in range(turn):
        side = 0 if actions[t] == system.SHIFT else 2 - (actions[t] & 1)
        total += system.costs(cells, fronts[t], heads, single_root)[side]
        if side > 0:
            head, word = system.new_arc(cells, fronts[t], side)
            total += heads[word] == head and labels[word] != (actions[t] - 1) >> 1
    return total


@jit
def _difference(work, templates, cells, n, golds, gold_actions, fronts, actions, turn):
    """The difference between the gold sequence and another one, where they part."""
    apart = 0
    for t in range(turn):
        apart += fronts[t] != golds[t] or actions[t] != gold_actions[t]
    most = 2 * apart * work.keys.size
    difference = Difference(
        new_slots(capacity_for(most)),
        np.empty(most, np.uint64),
        np.empty(most, np.int64),
        np.empty(most),
        np.zeros(1, np.int64),
    )
    for t in range(turn):
        if fronts[t] != golds[t] or actions[t] != gold_actions[t]:
            _add(difference, work.keys, extract_keys(work, templates, cells, golds[t], n), gold_actions[t], 1.0)
            _add(difference, work.keys, extract_keys(work, templates, cells, fronts[t], n), actions[t], -1.0)
    return difference


@jit
def _tau(rule, m, length, k):
    return step(rule, m, length, k, True)


@jit
def learn_beam(table, templates, corpus, order, rule, options, uses, clock, updates, width, early):
    """Visit the sentences of `order` once; (the table, which may have moved, sentences in which a rival scored at least as
    high as gold, updates so far)."""
    values, starts, gold_heads, gold_labels = corpus
    longest = 0
    for sentence in order:
        longest = max(longest, starts[sentence + 1] - starts[sentence])
    work = new_workspace(templates, longest, values.shape[1])
    cells = system.new_cells(4 * longest * (width + 1) + 1)
    beam = new_beam(table, width, longest, 1 + 2 * uses.size, templates.parts.size - 1)
    found = np.empty(work.keys.size, np.int64)
    golds, gold_actions = np.zeros(2 * longest + 1, np.int64), np.zeros(2 * longest, np.int64)
    path, actions = np.empty(2 * longest, np.int64), np.empty(2 * longest, np.int64)
    heads, usable, mistakes = np.empty(longest, np.int64), np.empty_like(uses), 0
    for sentence in order:
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        tree, labels = heads[:n], gold_labels[start : start + n]
        system.load_gold(gold_heads[start : start + n], labels, tree, uses, usable)
        load_sentence(work, values[start : start + n])
        used, size = system.begin(cells), 1
        beam.totals[0, 0] = 0.0
        gold, gold_total = 0, 0.0  # where gold is in the beam, −1 if it has fallen off
        ahead, worst, rival = -np.inf, 0, 0  # by how much the rival is ahead at the worst step
        for turn in range(2 * n):
            fronts = beam.fronts[turn]
            fronts[size] = golds[turn]
            _score_all(table, beam, work, templates, cells, fronts, size + (gold < 0), n, found)
            right = system.gold_action(cells, golds[turn], tree, labels, options.single_root)
            gold_total += beam.scores[gold if gold >= 0 else size, right]
            gold_actions[turn] = right
            size = _select(beam, turn, size, usable, cells, n, options.single_root, options.margin, tree, labels)
            used = _advance(beam, turn, size, cells, used)
            was, gold = gold, -1
            for i in range(size):
                if was >= 0 and beam.parents[turn + 1, i] == was and beam.actions[turn + 1, i] == right:
                    gold = i
            if gold >= 0:
                golds[turn + 1] = beam.fronts[turn + 1, gold]
            else:
                golds[turn + 1], used = system.act(cells, used, golds[turn], right)
            other = 1 if gold == 0 else 0
            last = turn == 2 * n - 1
            if other < size:
                lead = beam.totals[(turn + 1) & 1, other] - gold_total
                if lead > ahead if not early else (gold < 0 or last):
                    ahead, worst, rival = lead, turn + 1, other
            if early and gold < 0:
                break
        if worst > 0 and _tau(rule, options.offset - ahead, 1.0, updates + 1) > 0.0:
            _trace(beam, worst, rival, path, actions)
            loss = _loss(cells, path, actions, worst, tree, labels, options.single_root)
            mistakes += ahead - options.margin * loss >= 0.0
            difference = _difference(work, templates, cells, n, golds, gold_actions, path, actions, worst)
            length = 0.0
            for i in range(difference.used[0]):
                length += difference.counts[i] ** 2
            tau = _tau(rule, options.offset - ahead, length, updates + 1)
            if tau > 0.0 and length > 0.0:
                updates += 1
                table = reserve(table, difference.used[0])
                for i in range(difference.used[0]):
                    if difference.counts[i] != 0.0:
                        update(table, difference.keys[i], difference.actions[i], tau * difference.counts[i], clock)
        clock += 1
    return table, mistakes, updates
