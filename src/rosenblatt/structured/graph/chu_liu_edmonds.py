"""The best tree, projective or not, takes the best head of every word; where that makes a cycle, the cycle becomes one word
whose heads are scored by what they gain over breaking into it (Chu and Liu 1965; Edmonds 1967). Following heads until
they meet the tree or a cycle, and merging whole rows of scores, takes O(n²) in all (Tarjan 1977, with the expansion of
Camerini, Fratta and Maffioli 1979).

Scores are those of `eisner`: (n+1, n+1), scores[h, m], −∞ forbids. The proof asks of scores only that they can be added,
subtracted and compared, so they are pairs here: first minus the count of arcs from the root (where one is asked for) and
of forbidden arcs, in whole numbers, and then the score. Hence no large constant stands for "only one root" or for −∞,
and no sum meets ∞ − ∞. If every tree asked for has a forbidden arc, the answer is one with the fewest of them.
"""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.jit import jit


@jit
def best_tree(scores, single_root):
    """The (n,) heads of a tree of highest score; with `single_root`, of those in which the root has one modifier.

    Among equal scores the head that comes first wins."""
    size = scores.shape[0]
    # By row of a word or of a cycle (it takes the row of a member), and head: the pair, and the word that the arc goes to.
    rank, value, enters = _pairs(scores, single_root)
    nodes = 2 * size  # words, then cycles in the order they were found
    row = np.arange(nodes)
    above = np.zeros(nodes, np.int64)  # the cycle that a node is part of, 0 for none
    head, modifier = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)  # the best arc into a node
    owner = np.arange(nodes)  # union–find: which node a word is in now
    on_path, settled = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    settled[0] = True
    path = np.empty(nodes, np.int64)
    cycles = size
    for start in range(1, size):
        node = _find(owner, start)
        if settled[node]:
            continue
        path[0], length = node, 1
        on_path[node] = True
        while True:
            x = _best_head(rank[row[node]], value[row[node]], owner, node)
            head[node], modifier[node] = x, enters[row[node], x]
            origin = _find(owner, x)
            if settled[origin]:
                break
            if not on_path[origin]:
                path[length] = origin
                length += 1
                on_path[origin] = True
                node = origin
                continue
            cycle, into = cycles, row[node]
            cycles += 1
            row[cycle] = into
            while not on_path[cycle]:
                length -= 1
                member = path[length]
                above[member] = owner[member] = cycle
                _absorb(rank, value, enters, into, row[member], head[member])
                on_path[member] = False
                on_path[cycle] = member == origin
            path[length] = node = cycle
            length += 1
        for k in range(length):
            settled[path[k]], on_path[path[k]] = True, False
    return _expanded(above, head, modifier, size, cycles)


@jit
def _pairs(scores, single_root):
    """(ranks, values, words): [m, h] is the pair of the arc from h to m, and m."""
    size = scores.shape[0]
    rank, value = np.zeros((size, size), np.int64), np.zeros((size, size), scores.dtype)
    enters = np.empty((size, size), np.int32)
    for m in range(size):
        for h in range(size):
            enters[m, h] = m
            if scores[h, m] == -np.inf:
                rank[m, h] = -1
            else:
                value[m, h] = scores[h, m]
        if single_root:
            rank[m, 0] -= size  # more than all forbidden arcs together
    return rank, value, enters


@jit
def _find(owner, x):
    while owner[x] != x:
        owner[x] = owner[owner[x]]
        x = owner[x]
    return x


@jit
def _best_head(rank, value, owner, node):
    """The first of the best heads outside the node."""
    best = -1
    for x in range(rank.shape[0]):
        better = best < 0 or rank[x] > rank[best] or (rank[x] == rank[best] and value[x] > value[best])
        if better and _find(owner, x) != node:
            best = x
    return best


@jit
def _absorb(rank, value, enters, into, member, x):
    """Let arcs into a member of a cycle count as arcs into the cycle, less the arc from x whose place they take."""
    lost_rank, lost_value = rank[member, x], value[member, x]
    for h in range(rank.shape[0]):
        r, v = rank[member, h] - lost_rank, value[member, h] - lost_value
        if member == into or r > rank[into, h] or (r == rank[into, h] and v > value[into, h]):
            rank[into, h], value[into, h], enters[into, h] = r, v, enters[member, h]


@jit
def _expanded(above, head, modifier, size, cycles):
    """The heads of words: the arc into a cycle breaks it at the word it goes to, and so on inwards; all else holds."""
    heads = np.zeros(size - 1, np.int32)
    entered = np.zeros(cycles, np.bool_)
    for node in range(cycles - 1, 0, -1):  # a cycle comes after its members
        if entered[node]:
            continue
        word = modifier[node]
        heads[word - 1] = head[node]
        while word != node:
            entered[word] = True
            word = above[word]
    return heads
