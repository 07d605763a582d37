"""The labels of arcs, once the tree is found: a multiclass perceptron over the words around an arc and around its place in
the tree, seen from the modifier.

Places are m, the modifier; h, its head; g, the head of that; s, the modifier of h before m, seen from h, and y, the one
after it; l and r, the leftmost and the rightmost modifier of m; and the words next to h and m, such as h-1 or m+1. Of h
and m can also be asked `lefts` and `rights`, how many modifiers they have on that side, and of m `distance`, how far
away its head is and on which side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rosenblatt.engine.hashtable import ABSENT, find, request
from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidParameter
from rosenblatt.rules import step
from rosenblatt.structured.features.templates import Templates, parse_templates, parse_terms, template_keys
from rosenblatt.structured.features.weight_table import (
    add_list,
    add_row,
    add_row_scores,
    find_row,
    prefetch_list,
    reserve,
    update_row,
)
from rosenblatt.structured.features.words import OUTSIDE
from rosenblatt.structured.graph.arcs import NEAR, REACH, pad_sentence

PLACES = ("m-2", "m-1", "m", "m+1", "m+2", "h-1", "h", "h+1", "g", "s", "y", "l", "r")
STATE = ("distance", "lefts", "rights")
_M, _H = PLACES.index("m"), PLACES.index("h")
_MOST = 4  # modifiers that are counted


def parse_label_templates(texts: Sequence[str], attributes: Sequence[str]) -> Templates:
    """The templates that these texts describe."""
    for text in texts:
        for attribute, place in parse_terms(text):
            if attribute in STATE and place not in (("m",) if attribute == "distance" else ("h", "m")):
                places = "m" if attribute == "distance" else "h and m"
                raise InvalidParameter("label_templates", text, f"such that {attribute} is asked of {places} only")
    return parse_templates(texts, [*attributes, *STATE], PLACES)


@jit
def relatives(heads):
    """(n + 1, 6): of each word its leftmost and rightmost modifier (−1 for none), how many it has left and right of it, and
    the modifiers of its head before and after it, seen from the head (−1 for none)."""
    n = heads.size
    out = np.full((n + 1, 6), -1)
    out[:, 2:4] = 0
    for way in range(2):
        last = np.full(n + 1, -1)
        for i in range(n):
            m = i + 1 if way == 0 else n - i
            h = heads[m - 1]
            if (h < m) == (way == 0):
                out[h, 3 - way] += 1
                out[m, 4] = last[h]
                if last[h] >= 0:
                    out[last[h], 5] = m
                last[h] = m
            if way == 0:
                out[h, 1] = m
            else:
                out[h, 0] = m
    return out


@jit
def write_values(words, width, heads, kin, m, out):
    """Write into out all that templates may ask of the arc to m."""
    h = np.intp(heads[m - 1])
    place = np.full(len(PLACES), -1 - REACH)
    for offset in range(-2, 3):
        place[_M + offset] = m + offset
    for offset in range(-1, 2):
        place[_H + offset] = h + offset
    place[_H + 2] = heads[h - 1] if h > 0 else -1
    place[_H + 3], place[_H + 4], place[_H + 5], place[_H + 6] = kin[m, 4], kin[m, 5], kin[m, 0], kin[m, 1]
    size = width + len(STATE)
    for p in range(len(PLACES)):
        for a in range(width):
            out[p * size + a] = words[(place[p] + REACH) * width + a] if place[p] >= -REACH else OUTSIDE
    far = NEAR[min(abs(h - m), 10)]
    out[_M * size + width] = np.uint64(1 + far + (7 if h > m else 0))
    for p in (_M, _H):
        x = m if p == _M else h
        out[p * size + width + 1] = np.uint64(1 + min(kin[x, 2], _MOST))
        out[p * size + width + 2] = np.uint64(1 + min(kin[x, 3], _MOST))


@jit
def best_of(scores, gold):
    """The first of the highest scores, that of gold left out (−1 to leave out none)."""
    best = -1
    for label in range(scores.size):
        if label != gold and (best < 0 or scores[label] > scores[best]):
            best = label
    return best


@jit
def learn_labels(templates, table, rule, demand, labels, corpus, order, seen, updates):
    """Learn the labels of sentences in this order, on their gold trees; (table, updates). `demand` is what is added to a
    margin before the rule sees it."""
    values, starts, all_heads, numbers = corpus
    width = values.shape[1]
    arc_values = np.zeros(len(PLACES) * (width + len(STATE)), np.uint64)
    found, rows = np.empty(templates.seeds.size, np.uint64), np.empty(templates.seeds.size, np.int64)
    scores = np.empty(labels)
    for i in order:
        words, heads = pad_sentence(values[starts[i] : starts[i + 1]]), all_heads[starts[i] : starts[i + 1]]
        kin = relatives(heads)
        for m in range(1, heads.size + 1):
            write_values(words, width, heads, kin, m, arc_values)
            template_keys(templates, arc_values, found)
            scores[:] = 0.0
            count = 0
            for t in range(found.size):
                if found[t] != 0:
                    rows[t] = find_row(table, found[t])
                    count += 1
                    if rows[t] >= 0:
                        add_row_scores(table, rows[t], scores)
            right = numbers[starts[i] + m - 1]
            rival = best_of(scores, right)
            if rival < 0:
                continue
            tau = step(rule, scores[right] - scores[rival] + demand, 2.0 * count, updates + 1, True)
            if tau > 0:
                updates += 1
                table = reserve(table, 2 * found.size)
                for t in range(found.size):
                    if found[t] != 0:
                        row = add_row(table, found[t])
                        update_row(table, row, right, tau, np.float64(seen))
                        update_row(table, row, rival, -tau, np.float64(seen))
        seen += 1
    return table, updates


@jit
def assign_labels(templates, table, labels, corpus):
    """Write the labels of all sentences into the corpus."""
    values, starts, all_heads, numbers = corpus
    width = values.shape[1]
    arc_values = np.zeros(len(PLACES) * (width + len(STATE)), np.uint64)
    found = np.empty(templates.seeds.size, np.uint64)
    scores = np.empty(labels)
    for i in range(starts.size - 1):
        words, heads = pad_sentence(values[starts[i] : starts[i + 1]]), all_heads[starts[i] : starts[i + 1]]
        kin = relatives(heads)
        for m in range(1, heads.size + 1):
            write_values(words, width, heads, kin, m, arc_values)
            template_keys(templates, arc_values, found)
            for t in range(found.size):
                request(table.slots, found[t])
            count = 0
            for t in range(found.size):
                at = find(table.slots, found[t]) if found[t] != 0 else ABSENT
                if at != ABSENT:
                    prefetch_list(table, at)
                    found[count] = at
                    count += 1
            scores[:] = 0.0
            for t in range(count):
                add_list(table, found[t], scores)
            numbers[starts[i] + m - 1] = best_of(scores, -1)
