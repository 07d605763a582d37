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
    """Arc templates as the kernels take them: all sides, and which of them each template adds up."""

    sides: Templates
    head: NDArray  # (templates, 1) int32: templates that look at the head alone
    modifier: NDArray  # (templates, 1): the modifier alone
    pairs: NDArray  # (templates, 3): head, modifier, whether the distance counts
    between: NDArray  # (templates, 4): head, modifier, word between, distance
    couples: NDArray  # (templates, 3): modifier, sibling, distance
    triples: NDArray  # (templates, 4): head, modifier, sibling, distance


_KINDS = {"head": "h", "modifier": "m", "pairs": "hm", "between": "hmb", "couples": "ms", "triples": "hms"}


def parse_arc_templates(texts: Sequence[str], attributes: Sequence[str]) -> ArcTemplates:
    """The templates that these texts describe."""
    parse_templates(texts, [*attributes, DISTANCE], PLACES)  # refuses what cannot be
    sides: dict[str, int] = {}
    groups: dict[str, list] = {kind: [] for kind in _KINDS}
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
        for side in _KINDS[kind]:
            part = sorted(
                f"{attribute}[{place}]" for attribute, place in terms if place[0] == side and attribute != DISTANCE
            )
            row.append(sides.setdefault(" ".join(part) or side, len(sides)))
        groups[kind].append(row if len(row) == 1 else [*row, len(far)])
    indices = (
        np.array(rows, np.int32).reshape(-1, len(_KINDS[kind]) + (len(_KINDS[kind]) > 1)) for kind, rows in groups.items()
    )
    return ArcTemplates(_sides(list(sides), attributes), *indices)


def _kind(sides: set[str]) -> str:
    """The field of `ArcTemplates` that a template with these sides belongs to."""
    if "b" in sides:
        return "between"
    if "s" in sides:
        return "triples" if "h" in sides else "couples"
    return "pairs" if len(sides) == 2 else "head" if "h" in sides else "modifier"


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
    out = np.full((n + 1 + 2 * REACH, width), OUTSIDE)
    out[REACH] = ROOT
    out[REACH + 1 : REACH + 1 + n] = values
    return out.ravel()


@jit
def hash_sides(templates, words, width):
    """(n + 2, sides) uint64: each side of each word, of a sentence that `pad_sentence` has put in a row; 0 where it
    makes no feature. The last row stands for no sibling."""
    size = words.size // width - 2 * REACH
    out = np.empty((size + 1, templates.sides.seeds.size), np.uint64)
    for x in range(size):
        template_keys(templates.sides, words[x * width :], out[x])
    template_keys(templates.sides, np.full((1 + 2 * REACH) * width, FIRST), out[size])
    return out


@jit
def _sum(one, other, more):
    """The key of two sides and more; 0, no feature, where one of the two is 0."""
    return one + other + more if one != 0 and other != 0 else np.uint64(0)


@jit
def _far(counts, x, y):
    return FAR[NEAR[min(abs(x - y), 10)] * counts]


@jit
def arc_keys(templates, sides, h, m, out):
    """Write the keys of an arc's features into out, those of single words left out; how many there are."""
    count = 0
    pairs, between = templates.pairs, templates.between
    right = m > h
    for t in range(pairs.shape[0]):
        key = _sum(sides[h, pairs[t, 0]], sides[m, pairs[t, 1]], _far(pairs[t, 2], h, m))
        out[count] = directed_key(key, right)
        count += key != 0
    for t in range(between.shape[0]):
        key = _sum(sides[h, between[t, 0]], sides[m, between[t, 1]], _far(between[t, 3], h, m))
        for b in range(min(h, m) + 1, max(h, m)):
            more = _sum(key, sides[b, between[t, 2]], np.uint64(0))
            out[count] = directed_key(more, right)
            count += more != 0
    return count


@jit
def couple_keys(templates, sides, h, m, s, out):
    """The same for the features of a modifier m of h and the one before it, s, that do not look at h; s = h has none."""
    count, couples = 0, templates.couples
    for t in range(couples.shape[0] if s != h else 0):
        key = _sum(sides[m, couples[t, 0]], sides[s, couples[t, 1]], _far(couples[t, 2], s, m))
        out[count] = directed_key(key, m > h)
        count += key != 0
    return count


@jit
def triple_keys(templates, sides, h, m, s, out):
    """The same for those that do; s = h for none before m."""
    count, triples = 0, templates.triples
    place = s if s != h else sides.shape[0] - 1
    for t in range(triples.shape[0]):
        key = _sum(sides[h, triples[t, 0]], sides[m, triples[t, 1]], _far(triples[t, 3], s, m))
        key = _sum(key, sides[place, triples[t, 2]], np.uint64(0))
        out[count] = directed_key(key, m > h)
        count += key != 0
    return count


@jit
def word_keys(templates, sides, h, m, out, count):
    """The same for the features that look at one word of the arc alone, from `count` on."""
    right = m > h
    for t in range(templates.head.shape[0]):
        out[count] = directed_key(sides[h, templates.head[t, 0]], right)
        count += sides[h, templates.head[t, 0]] != 0
    for t in range(templates.modifier.shape[0]):
        out[count] = directed_key(sides[m, templates.modifier[t, 0]], right)
        count += sides[m, templates.modifier[t, 0]] != 0
    return count


@jit
def most_keys(templates, n):
    """As many features as an arc, or a modifier and its sibling, can have in a sentence of n words."""
    words = templates.head.shape[0] + templates.modifier.shape[0]
    return (
        words
        + templates.pairs.shape[0]
        + templates.between.shape[0] * n
        + templates.couples.shape[0]
        + templates.triples.shape[0]
        + 1
    )


@jit
def add_arcs(templates, sides, table, arcs, scores):
    """scores[h, m] += the weights of all features of the arc, for each of the (h, m) in `arcs`."""
    slots, w = table.slots, table.w
    size = scores.shape[0]
    by_head, by_modifier = np.zeros((size, 2)), np.zeros((size, 2))
    _add_words(templates.head, sides, slots, w, by_head)
    _add_words(templates.modifier, sides, slots, w, by_modifier)
    found = np.empty((2, most_keys(templates, size)), np.uint64)
    before, last_h, last_m = 0, 0, 0
    for i in range(arcs.shape[0] + 1):  # ask for the features of this arc, then add up those of the one before
        count, h, m = 0, 0, 0
        if i < arcs.shape[0]:
            h, m = arcs[i, 0], arcs[i, 1]
            count = arc_keys(templates, sides, h, m, found[i & 1])
            for j in range(count):
                prefetch_weights(slots, found[i & 1, j])
        if i > 0:
            total = by_head[last_h, np.intp(last_m > last_h)] + by_modifier[last_m, np.intp(last_m > last_h)]
            scores[last_h, last_m] += total + _weights(slots, w, found[1 - (i & 1)], before)
        before, last_h, last_m = count, h, m


@jit
def _add_words(chosen, sides, slots, w, out):
    for x in range(out.shape[0]):
        for t in range(chosen.shape[0]):
            prefetch_weights(slots, sides[x, chosen[t, 0]])
        for t in range(chosen.shape[0]):
            if sides[x, chosen[t, 0]] != 0:
                add_both_weights(slots, w, sides[x, chosen[t, 0]], out[x])


@jit
def add_siblings(templates, sides, table, scores, siblings):
    """siblings[h, m, s] += the weights of all features of the modifier m of h after its modifier s; s = h for none.

    Where scores[h, m] or scores[h, s] is −∞ there is no such pair, and nothing is added."""
    slots, w = table.slots, table.w
    size = scores.shape[0]
    known = np.full((size, size), np.nan)  # the scores of m and s without h, once they are computed
    found = np.empty((2, most_keys(templates, 0)), np.uint64)
    before, last_h, last_m, last_s, turn = 0, 0, 0, 0, 0
    for h in range(size):
        for m in range(1, size):
            if m == h or scores[h, m] == -np.inf:
                continue
            for s in range(h if h < m else m + 1, m if h < m else h + 1):
                if s != h and scores[h, s] == -np.inf:
                    continue
                if s != h and known[m, s] != known[m, s]:
                    known[m, s] = _weights(slots, w, found[turn], couple_keys(templates, sides, h, m, s, found[turn]))
                siblings[h, m, s] = known[m, s] if s != h else 0.0
                count = triple_keys(templates, sides, h, m, s, found[turn])
                for j in range(count):
                    prefetch_weights(slots, found[turn, j])
                turn = 1 - turn
                if before > 0:
                    siblings[last_h, last_m, last_s] += _weights(slots, w, found[turn], before)
                before, last_h, last_m, last_s = count, h, m, s
    if before > 0:
        siblings[last_h, last_m, last_s] += _weights(slots, w, found[1 - turn], before)


@jit
def _weights(slots, w, keys, count):
    total = 0.0
    for j in range(count):
        total += weight(slots, w, keys[j])
    return total
