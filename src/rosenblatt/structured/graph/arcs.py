"""The features of an arc are what its two ends, their neighbours, the words between them and the modifier before say
together, each apart for arcs to the left and to the right.

A template's terms belong to sides: those of the head, of the modifier, and of a third word, one between them or the
sibling. A side is hashed once for each word of the sentence, not once for each of n² arcs, and the key of a feature is
the sum of its sides. Hashes of 64 bits add up like the codes of Zobrist (1970): two different sums are equal by accident
only. Templates with one side alone are looked up once for each word.

Places are h, the head; m, the modifier; b, each word between them; s, the modifier of h before m, seen from h; and words
next to them, such as h-1 or m+2. `distance[m]` is the binned distance from h to m, `distance[s]` that from s to m.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidParameter
from rosenblatt.structured.features.templates import Templates, parse_templates, parse_terms, template_keys
from rosenblatt.structured.features.words import OUTSIDE
from rosenblatt.structured.graph.arc_weights import add_both_weights, directed_key, prefetch_weights, weight

REACH = 2  # how far from its place a template may look
SIDES = ("h", "m", "b", "s")
PLACES = tuple(side if offset == 0 else f"{side}{offset:+d}" for side in SIDES for offset in range(-REACH, REACH + 1))
DISTANCE = "distance"
ROOT = np.uint64(0x726F6F742E)  # every attribute of the root
FIRST = np.uint64(0x66697273742E)  # every attribute of the sibling of a first modifier

# Distances 1, 2, 3, 4, 5–9 and more, as keys to add; the first is that of a template that does not ask.
NEAR = np.array([0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 6])
FAR = np.array([0] + [0x9E3779B97F4A7C15 * (2 * i + 1) % 2**64 for i in range(1, 7)], np.uint64)


class ArcTemplates(NamedTuple):
    """Arc templates as the kernels take them: what is hashed, and in which columns each template finds its sides.

    The hashes of a sentence are a matrix with a row for each word and a column for each side of each template. Templates of
    one kind come after those of another; within a kind come all first sides, then all second ones. The keys of an arc are
    thus sums of contiguous parts of rows."""

    sides: Templates
    columns: NDArray  # (columns,) int32: the side that each column shows
    starts: NDArray  # (kinds,) int64: the first column of each kind
    counts: NDArray  # (kinds,) int64: how many templates it has
    far: NDArray  # (columns,) uint64: all ones at the first side of a template that counts the distance, else 0


_KINDS = ("h", "m", "hm", "hmb", "ms", "hms")  # the sides that templates look at together
HEAD, MODIFIER, PAIRS, BETWEEN, COUPLES, TRIPLES = range(len(_KINDS))


def parse_arc_templates(texts: Sequence[str], attributes: Sequence[str]) -> ArcTemplates:
    """The templates that these texts describe."""
    parse_templates(texts, [*attributes, DISTANCE], PLACES)  # refuses what cannot be
    sides: dict[str, int] = {}
    groups: dict[str, list] = {kind: [] for kind in _KINDS}  # a template's sides, and whether the distance counts
    for text in texts:
        terms = parse_terms(text)
        used = {place[0] for _, place in terms}
        far = [place for attribute, place in terms if attribute == DISTANCE]
        if far not in ([], ["m"]) and (far != ["s"] or used == {"s"}):
            allowed = "such that distance[m] goes with any template, distance[s] with one that looks at s and m"
            raise InvalidParameter("templates", text, allowed)
        if used >= {"b", "s"}:
            raise InvalidParameter(
                "templates", text, "such that they look at a word between or at the sibling, not at both"
            )
        kind = _kind(used | ({"h", "m"} if far == ["m"] else set()))
        row = []
        for side in kind:
            part = sorted(
                f"{attribute}[{place}]" for attribute, place in terms if place[0] == side and attribute != DISTANCE
            )
            row.append(sides.setdefault(" ".join(part) or side, len(sides)))
        groups[kind].append([*row, len(far)])
    tables = [np.array(rows, np.int32).reshape(-1, len(kind) + 1) for kind, rows in groups.items()]
    counts = np.array([len(table) for table in tables])
    sizes = np.array([table[:, :-1].size for table in tables])
    columns = np.concatenate([table[:, :-1].T.ravel() for table in tables])
    starts = np.cumsum(sizes) - sizes
    masks = np.zeros(columns.size, np.uint64)
    for start, table in zip(starts, tables, strict=True):
        masks[start : start + len(table)][table[:, -1] > 0] = ~np.uint64(0)
    return ArcTemplates(_sides(list(sides), attributes), columns, starts, counts, masks)


def _kind(sides: set[str]) -> str:
    """The kind of a template with these sides."""
    if "b" in sides:
        return "hmb"
    if "s" in sides:
        return "hms" if "h" in sides else "ms"
    return "hm" if len(sides) == 2 else min(sides)


def _sides(texts: list[str], attributes: Sequence[str]) -> Templates:
    """The sides as templates that look from their own word; one that looks at nothing has its letter for a text."""
    found = [parse_templates([] if text in SIDES else [text], attributes, PLACES) for text in texts]
    seeds = [
        part.seeds[0] if part.seeds.size else ROOT + np.uint64(ord(text)) for text, part in zip(texts, found, strict=True)
    ]
    starts = np.cumsum([0] + [part.terms.size for part in found])
    terms = np.concatenate([np.empty(0, np.int32), *(part.terms for part in found)]) % ((2 * REACH + 1) * len(attributes))
    return Templates(np.array(seeds, np.uint64), starts.astype(np.int32), terms.astype(np.int32))


@jit
def pad_sentence(values):
    """The words of a sentence with the root before them and what is outside on both sides, in a row."""
    n, width = values.shape
    out = np.full((n + 1 + 2 * REACH) * width, OUTSIDE)
    for a in range(width):  # loops, since assigning to a slice would compile numba's checks of shapes too
        out[REACH * width + a] = ROOT
        for i in range(n):
            out[(REACH + 1 + i) * width + a] = values[i, a]
    return out


@jit
def hash_sides(templates, words, width):
    """(n + 2, columns) uint64: the sides of each word, of a sentence that `pad_sentence` has put in a row; 0 where one
    makes no feature. The last row stands for no sibling."""
    columns = templates.columns
    size = words.size // width - 2 * REACH
    out = np.empty((size + 1, columns.size), np.uint64)
    found = np.empty(templates.sides.seeds.size, np.uint64)
    no_word = np.full((1 + 2 * REACH) * width, FIRST)
    for x in range(size + 1):
        template_keys(templates.sides, words[x * width :] if x < size else no_word, found)
        for column in range(columns.size):
            out[x, column] = found[columns[column]]
    return out


@jit
def _far(x, y):
    return FAR[NEAR[min(abs(x - y), 10)]]


@jit
def _without_zeros(keys, count):
    """Remove the keys that are 0, which stand for no feature, from the first `count` keys; return how many are left."""
    left = 0
    for j in range(count):
        keys[left] = keys[j]
        left += keys[j] != 0
    return left


@jit
def arc_keys(templates, sides, h, m, out):
    """Write the keys of an arc's features into out, those of single words left out; how many there are."""
    count, start, far = templates.counts[PAIRS], templates.starts[PAIRS], templates.far
    right, distance, zeros = m > h, _far(h, m), 0
    for t in range(count):
        one, other = sides[h, start + t], sides[m, start + count + t]
        key = one + other + (distance & far[start + t])
        out[t] = directed_key(key, right) if one != 0 and other != 0 else np.uint64(0)
        zeros += out[t] == 0
    if zeros > 0:
        count = _without_zeros(out, count)
    more, start = templates.counts[BETWEEN], templates.starts[BETWEEN]
    for t in range(more):
        one, other = sides[h, start + t], sides[m, start + more + t]
        if one != 0 and other != 0:
            key = one + other + (distance & far[start + t])
            for b in range(min(h, m) + 1, max(h, m)):
                third = sides[b, start + 2 * more + t]
                out[count] = directed_key(key + third, right)
                count += third != 0
    return count


@jit
def couple_keys(templates, sides, h, m, s, out):
    """The same for the features of a modifier m of h and the one before it, s, that do not look at h; s = h has none."""
    if s == h:
        return 0
    couples, start, left = templates.counts[COUPLES], templates.starts[COUPLES], 0
    distance = _far(s, m)
    for t in range(couples):
        one, other = sides[m, start + t], sides[s, start + couples + t]
        out[left] = directed_key(one + other + (distance & templates.far[start + t]), m > h)
        left += one != 0 and other != 0
    return left


@jit
def triple_keys(templates, sides, h, m, s, out):
    """The same for those that do; s = h for none before m."""
    triples, start, left = templates.counts[TRIPLES], templates.starts[TRIPLES], 0
    place = s if s != h else sides.shape[0] - 1
    distance = _far(s, m)
    for t in range(triples):
        one, other = sides[h, start + t], sides[m, start + triples + t]
        third = sides[place, start + 2 * triples + t]
        out[left] = directed_key(one + other + third + (distance & templates.far[start + t]), m > h)
        left += one != 0 and other != 0 and third != 0
    return left


@jit
def word_keys(templates, sides, h, m, out, count):
    """The same for the features that look at one word of the arc alone, from `count` on."""
    for kind in (HEAD, MODIFIER):
        x, start = h if kind == HEAD else m, templates.starts[kind]
        for t in range(templates.counts[kind]):
            out[count] = directed_key(sides[x, start + t], m > h)
            count += sides[x, start + t] != 0
    return count


@jit
def most_keys(templates, n):
    """As many features as an arc, or a modifier and its sibling, can have in a sentence of n words."""
    return templates.columns.size + templates.counts[BETWEEN] * n + 1


@jit
def add_arcs(templates, sides, table, arcs, scores):
    """scores[h, m] += the weights of all features of the arc, for each of the (h, m) in `arcs`."""
    slots, w = table.slots, table.w
    size = scores.shape[0]
    by_head, by_modifier = np.zeros((size, 2)), np.zeros((size, 2))
    _add_words(templates, HEAD, sides, table, by_head)
    _add_words(templates, MODIFIER, sides, table, by_modifier)
    found = np.empty((2, most_keys(templates, size)), np.uint64)
    before, last_h, last_m = 0, 0, 0
    for i in range(arcs.shape[0] + 1):  # ask for the features of this arc, then add up those of the one before
        count, h, m = 0, 0, 0
        if i < arcs.shape[0]:
            h, m = np.intp(arcs[i, 0]), np.intp(arcs[i, 1])
            count = arc_keys(templates, sides, h, m, found[i & 1])
            for j in range(count):
                prefetch_weights(slots, found[i & 1, j])
        if i > 0:
            total = by_head[last_h, np.intp(last_m > last_h)] + by_modifier[last_m, np.intp(last_m > last_h)]
            scores[last_h, last_m] += total + _weights(slots, w, found[1 - (i & 1)], 0, before)
        before, last_h, last_m = count, h, m


@jit
def _add_words(templates, kind, sides, table, out):
    start, end = templates.starts[kind], templates.starts[kind] + templates.counts[kind]
    for x in range(out.shape[0]):
        for t in range(start, end):
            prefetch_weights(table.slots, sides[x, t])
        for t in range(start, end):
            if sides[x, t] != 0:
                add_both_weights(table.slots, table.w, sides[x, t], out[x])


@jit
def add_siblings(templates, sides, table, scores, siblings):
    """siblings[h, m, s] += the weights of all features of the modifier m of h after its modifier s; s = h for none.

    Where scores[h, m] or scores[h, s] is −∞ there is no such pair, and nothing is added."""
    slots, w = table.slots, table.w
    size = scores.shape[0]
    needed, known = np.zeros((size, size), np.bool_), np.zeros((size, size))  # of m and s without h, computed once
    found = np.empty((2, most_keys(templates, 0)), np.uint64)
    pairs = _sibling_pairs(scores)
    last_couples, last_count, last_h, last_m, last_s = 0, 0, 0, 0, 0
    for i in range(pairs.shape[0] + 1):  # prefetch the weights of this pair, then add up those of the last
        couples, count, h, m, s = 0, 0, 0, 0, 0
        if i < pairs.shape[0]:
            keys = found[i & 1]
            h, m, s = np.intp(pairs[i, 0]), np.intp(pairs[i, 1]), np.intp(pairs[i, 2])
            if s != h and not needed[m, s]:
                needed[m, s] = True
                couples = couple_keys(templates, sides, h, m, s, keys)
            count = couples + triple_keys(templates, sides, h, m, s, keys[couples:])
            for j in range(count):
                prefetch_weights(slots, keys[j])
        if i > 0:
            keys = found[1 - (i & 1)]
            if last_couples > 0:
                known[last_m, last_s] = _weights(slots, w, keys, 0, last_couples)
            total = _weights(slots, w, keys, last_couples, last_count)
            siblings[last_h, last_m, last_s] = (known[last_m, last_s] if last_s != last_h else 0.0) + total
        last_couples, last_count, last_h, last_m, last_s = couples, count, h, m, s


@jit
def _sibling_pairs(scores):
    """(pairs, 3) int32: head, modifier, and the modifier before it or the head, of all that have scores."""
    size = scores.shape[0]
    pairs = np.empty((0, 3), np.int32)
    for fill in range(2):  # count them, then write them down
        to = 0
        for h in range(size):
            for m in range(1, size):
                if m == h or scores[h, m] == -np.inf:
                    continue
                for s in range(h if h < m else m + 1, m if h < m else h + 1):
                    if s == h or scores[h, s] > -np.inf:
                        if fill:
                            pairs[to, 0], pairs[to, 1], pairs[to, 2] = h, m, s
                        to += 1
        if not fill:
            pairs = np.empty((to, 3), np.int32)
    return pairs


@jit
def _weights(slots, w, keys, first, end):
    total = 0.0
    for j in range(first, end):
        total += weight(slots, w, keys[j])
    return total
