"""The features of an arc are what its two ends, their neighbours, the words between them and the modifier before say together,
each apart for arcs to the left and to the right.

A template's terms belong to sides: those of the head, of the modifier, and of a third word, one between them or the sibling. A
side is hashed once for each word of the sentence, not once for each of n² arcs, and the key of a feature is the sum of its
sides. Hashes of 64 bits add up like the codes of Zobrist (1970): two different sums are equal by accident only. Templates
with one side alone are looked up once for each word.

Places are h, the head; m, the modifier; b, each word between them; s, the modifier of h before m, seen from h; and words next
to them, such as h-1 or m+2. `distance[m]` is the binned distance from h to m, `distance[s]` that from s to m.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt._jit import jit
from rosenblatt.structured import templates
from rosenblatt.structured.directed import both_weights, pointed, request, weight
from rosenblatt.structured.templates import Templates, keys
from rosenblatt.structured.words import OUTSIDE

REACH = 2  # how far from its place a template may look
SIDES = ("h", "m", "b", "s")
PLACES = tuple(side if offset == 0 else f"{side}{offset:+d}" for side in SIDES for offset in range(-REACH, REACH + 1))
DISTANCE = "distance"
ROOT = np.uint64(0x726F6F742E)  # every attribute of the root
FIRST = np.uint64(0x66697273742E)  # every attribute of the sibling of a first modifier

# Distances 1, 2, 3, 4, 5–9 and more, as keys to add; the first is that of a template that does not ask.
NEAR = np.array([0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 6])
FAR = np.array([0] + [0x9E3779B97F4A7C15 * (2 * i + 1) % 2**64 for i in range(1, 7)], np.uint64)


class Plan(NamedTuple):
    """Arc templates as the kernels take them: what the sides are, and which of them each template adds up."""

    head_sides: Templates
    modifier_sides: Templates
    between_sides: Templates
    sibling_sides: Templates
    head: NDArray  # (templates, 1) int32: templates that look at the head alone
    modifier: NDArray  # (templates, 1): the modifier alone
    pairs: NDArray  # (templates, 3): head, modifier, whether the distance counts
    between: NDArray  # (templates, 4): head, modifier, word between, distance
    couples: NDArray  # (templates, 3): modifier, sibling, distance
    triples: NDArray  # (templates, 4): head, modifier, sibling, distance


class Sides(NamedTuple):
    """The hashed sides of a sentence's words, by place and side; 0 where a side is silent."""

    head: NDArray  # (n + 1, sides) uint64
    modifier: NDArray
    between: NDArray
    sibling: NDArray  # (n + 2, sides): the last row is that of no sibling


def read(texts: Sequence[str], attributes: Sequence[str]) -> Plan:
    """The templates that these texts describe."""
    templates.read(texts, [*attributes, DISTANCE], PLACES)  # refuses what cannot be
    sides: dict[str, dict[str, int]] = {side: {} for side in SIDES}
    groups: dict[str, list] = {field: [] for field in Plan._fields[len(SIDES) :]}
    for text in texts:
        parts: dict[str, list[str]] = {}
        far = 0
        for attribute, place in templates.terms(text):
            if attribute == DISTANCE:
                far = 1
                parts.setdefault("m", [])
                if place != "m" and (place != "s" or "s" not in text):
                    raise ValueError(f"template {text!r}: there is distance[m], and distance[s]; not distance[{place}]")
                parts.setdefault(place[0] if place == "s" else "h", [])
            else:
                parts.setdefault(place[0], []).append(f"{attribute}[{place}]")
        if "b" in parts and "s" in parts:
            raise ValueError(f"template {text!r} looks at a word between and at the sibling; one of them is allowed")
        field, wanted = _kind(set(parts))
        row = [sides[side].setdefault(" ".join(sorted(parts.get(side, []))), len(sides[side])) for side in wanted]
        groups[field].append(row if len(wanted) == 1 else [*row, far])
    return Plan(
        *(_side(list(sides[side]), attributes, side) for side in SIDES),
        *(np.array(rows, np.int32).reshape(-1, _WIDTHS[field]) for field, rows in groups.items()),
    )


_WIDTHS = {"head": 1, "modifier": 1, "pairs": 3, "between": 4, "couples": 3, "triples": 4}


def _kind(sides: set[str]) -> tuple[str, str]:
    """The field of a plan that a template with these sides belongs to, and the sides it adds up."""
    if "b" in sides:
        return "between", "hmb"
    if "s" in sides:
        return ("triples", "hms") if "h" in sides else ("couples", "ms")
    return ("pairs", "hm") if len(sides) == 2 else ("head", "h") if "h" in sides else ("modifier", "m")


def _side(texts: list[str], attributes: Sequence[str], side: str) -> Templates:
    found = templates.read([text for text in texts if text], attributes, [place for place in PLACES if place[0] == side])
    if "" not in texts:
        return found
    at = texts.index("")  # the side that looks at nothing, and so is always the same
    return Templates(np.insert(found.seeds, at, ROOT + np.uint64(ord(side))), np.insert(found.starts, at, found.starts[at]), found.terms)


@jit
def padded(values):
    """The words of a sentence with the root before them and what is outside on both sides, in a row."""
    n, width = values.shape
    out = np.full((n + 1 + 2 * REACH, width), OUTSIDE)
    out[REACH] = ROOT
    out[REACH + 1 : REACH + 1 + n] = values
    return out.ravel()


@jit
def hashed(plan, words, width):
    """The sides of a sentence whose words `padded` has put in a row."""
    size = words.size // width - 2 * REACH
    head = np.empty((size, plan.head_sides.seeds.size), np.uint64)
    modifier = np.empty((size, plan.modifier_sides.seeds.size), np.uint64)
    between = np.empty((size, plan.between_sides.seeds.size), np.uint64)
    sibling = np.empty((size + 1, plan.sibling_sides.seeds.size), np.uint64)
    for x in range(size):
        here = words[x * width :]
        keys(plan.head_sides, here, head[x])
        keys(plan.modifier_sides, here, modifier[x])
        keys(plan.between_sides, here, between[x])
        keys(plan.sibling_sides, here, sibling[x])
    keys(plan.sibling_sides, np.full((1 + 2 * REACH) * width, FIRST), sibling[size])
    return Sides(head, modifier, between, sibling)


@jit
def _sum(one, other, more):
    """The key of two sides and more; 0, no feature, where one of the two is silent."""
    return one + other + more if one != 0 and other != 0 else np.uint64(0)


@jit
def _far(asked, x, y):
    return FAR[NEAR[min(abs(x - y), 10)] * asked]


@jit
def arc_keys(plan, sides, h, m, out):
    """Write the keys of an arc's features into out, those of single words left out; how many there are."""
    count = 0
    heads, modifiers, betweens, pairs, between = sides.head, sides.modifier, sides.between, plan.pairs, plan.between
    right = m > h
    for t in range(pairs.shape[0]):
        key = _sum(heads[h, pairs[t, 0]], modifiers[m, pairs[t, 1]], _far(pairs[t, 2], h, m))
        out[count] = pointed(key, right)
        count += key != 0
    for t in range(between.shape[0]):
        key = _sum(heads[h, between[t, 0]], modifiers[m, between[t, 1]], _far(between[t, 3], h, m))
        for b in range(min(h, m) + 1, max(h, m)):
            more = _sum(key, betweens[b, between[t, 2]], np.uint64(0))
            out[count] = pointed(more, right)
            count += more != 0
    return count


@jit
def sibling_keys(plan, sides, h, m, s, out):
    """The same for the features of a modifier m of h after its modifier s; s = h for none."""
    count = 0
    heads, modifiers, siblings, couples, triples = sides.head, sides.modifier, sides.sibling, plan.couples, plan.triples
    right = m > h
    place = s
    if s == h:
        place = siblings.shape[0] - 1
    else:
        for t in range(couples.shape[0]):
            key = _sum(modifiers[m, couples[t, 0]], siblings[s, couples[t, 1]], _far(couples[t, 2], s, m))
            out[count] = pointed(key, right)
            count += key != 0
    for t in range(triples.shape[0]):
        key = _sum(heads[h, triples[t, 0]], modifiers[m, triples[t, 1]], _far(triples[t, 3], s, m))
        key = _sum(key, siblings[place, triples[t, 2]], np.uint64(0))
        out[count] = pointed(key, right)
        count += key != 0
    return count


@jit
def word_keys(plan, sides, h, m, out, count):
    """The same for the features that look at one word of the arc alone, from `count` on."""
    right = m > h
    for t in range(plan.head.shape[0]):
        out[count] = pointed(sides.head[h, plan.head[t, 0]], right)
        count += sides.head[h, plan.head[t, 0]] != 0
    for t in range(plan.modifier.shape[0]):
        out[count] = pointed(sides.modifier[m, plan.modifier[t, 0]], right)
        count += sides.modifier[m, plan.modifier[t, 0]] != 0
    return count


@jit
def most_keys(plan, n):
    """As many features as an arc, or a modifier and its sibling, can have in a sentence of n words."""
    words = plan.head.shape[0] + plan.modifier.shape[0]
    return words + plan.pairs.shape[0] + plan.between.shape[0] * n + plan.couples.shape[0] + plan.triples.shape[0] + 1


@jit
def add_arcs(plan, sides, table, arcs, scores):
    """scores[h, m] += the weights of all features of the arc, for each of the (h, m) in `arcs`."""
    slots, w = table.slots, table.w
    size = scores.shape[0]
    by_head, by_modifier = np.zeros((size, 2)), np.zeros((size, 2))
    _add_words(plan.head, sides.head, slots, w, by_head)
    _add_words(plan.modifier, sides.modifier, slots, w, by_modifier)
    found = np.empty((2, most_keys(plan, size)), np.uint64)
    before, last_h, last_m = 0, 0, 0
    for i in range(arcs.shape[0] + 1):  # ask for the features of this arc, then add up those of the one before
        count, h, m = 0, 0, 0
        if i < arcs.shape[0]:
            h, m = arcs[i, 0], arcs[i, 1]
            count = arc_keys(plan, sides, h, m, found[i & 1])
            for j in range(count):
                request(slots, found[i & 1, j])
        if i > 0:
            total = by_head[last_h, np.intp(last_m > last_h)] + by_modifier[last_m, np.intp(last_m > last_h)]
            for j in range(before):
                total += weight(slots, w, found[1 - (i & 1), j])
            scores[last_h, last_m] += total
        before, last_h, last_m = count, h, m


@jit
def _add_words(chosen, sides, slots, w, out):
    for x in range(sides.shape[0]):
        for t in range(chosen.shape[0]):
            request(slots, sides[x, chosen[t, 0]])
        for t in range(chosen.shape[0]):
            if sides[x, chosen[t, 0]] != 0:
                both_weights(slots, w, sides[x, chosen[t, 0]], out[x])


@jit
def add_siblings(plan, sides, table, scores, siblings):
    """siblings[h, m, s] += the weights of all features of the modifier m of h after its modifier s; s = h for none.

    Where scores[h, m] or scores[h, s] is −∞ there is no such pair, and nothing is added."""
    slots, w = table.slots, table.w
    size = scores.shape[0]
    found = np.empty((2, most_keys(plan, 0)), np.uint64)
    before, last_h, last_m, last_s, turn = 0, 0, 0, 0, 0
    for h in range(size):
        for m in range(1, size):
            if m == h or scores[h, m] == -np.inf:
                continue
            for s in range(h if h < m else m + 1, m if h < m else h + 1):
                if s != h and scores[h, s] == -np.inf:
                    continue
                count = sibling_keys(plan, sides, h, m, s, found[turn])
                for j in range(count):
                    request(slots, found[turn, j])
                turn = 1 - turn
                for j in range(before):
                    siblings[last_h, last_m, last_s] += weight(slots, w, found[turn, j])
                before, last_h, last_m, last_s = count, h, m, s
    for j in range(before):
        siblings[last_h, last_m, last_s] += weight(slots, w, found[1 - turn, j])
