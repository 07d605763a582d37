"""What a parser sees of a configuration: values of 64 bits at the places that templates name, and the keys that come of
them.

A place is a word near the top of the stack (s0, s1, s2) or from the front on (b0 … b3), or one of its outermost children:
s0l is the leftmost child of s0, s0l2 the next, s0r and s0r2 the rightmost. Of a word, templates ask what its token is; of
a child, also the label of its arc; of s0, s1 and b0, how many children they have on each side and with which labels; of
s0 and s1, how far away the next word to the right is (b0 and s0). A word that is not there is OUTSIDE; a child that is
not there says nothing, and neither do the templates that ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.jit import jit
from rosenblatt.structured.features import templates
from rosenblatt.structured.features.words import OUTSIDE
from rosenblatt.structured.transition import transitions as system

WORDS = ("s0", "s1", "s2", "b0", "b1", "b2", "b3")
CHILDREN = ("s0l", "s0l2", "s0r", "s0r2", "s1l", "s1l2", "s1r", "s1r2", "b0l", "b0l2")
PLACES = WORDS + CHILDREN
STATE = ("label", "distance", "lefts", "rights", "leftlabels", "rightlabels")  # what is asked of a place beside its word
ASKED = {  # of which places
    "label": CHILDREN,
    "distance": ("s0", "s1"),
    "lefts": ("s0", "s1", "b0"),
    "rights": ("s0", "s1"),
    "leftlabels": ("s0", "s1", "b0"),
    "rightlabels": ("s0", "s1"),
}
_S0, _S1, _S2, _B0 = 0, 1, 2, 3
_ROOT = np.uint64(0x726F6F742E)
_STATE = len(STATE)
_PARTS = 4
_DISTANCES = np.array([0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7])  # by distance up to 11, and 7 beyond


class Outlook(NamedTuple):
    """The templates, as a forest of their beginnings: each is hashed once, from its parent and one more value."""

    places: NDArray  # (word values,) int32: the place of each value that is an attribute of a word
    attributes: NDArray  # (word values,) int32: which attribute
    state: NDArray  # (state values,) int32: place · STATE + which; they follow the word values
    parents: NDArray  # (beginnings,) int32: −1 for none
    values: NDArray  # (beginnings,) int32: the value added last
    seeds: NDArray  # (beginnings,) uint64: a hash of the text up to there
    leaves: NDArray  # (templates,) int32: the beginning that is the whole, part by part
    parts: NDArray  # (parts + 1,) int32: where the parts begin; see `_part`


def read(texts: Sequence[str], attributes: Sequence[str]) -> Outlook:
    """The outlook that these templates ask for, on words with these attributes."""
    templates.read(texts, (*attributes, *STATE), PLACES)  # refuses what is not well formed
    split = [templates.terms(text) for text in texts]
    for text, terms in zip(texts, split, strict=True):
        for attribute, place in terms:
            if place not in ASKED.get(attribute, PLACES):
                raise ValueError(
                    f"template {text!r}: {attribute} is asked of {', '.join(ASKED[attribute])}, and not of {place!r}"
                )
    asked = sorted({term for terms in split for term in terms}, key=lambda term: term[0] in STATE)
    of_words = [(attribute, place) for attribute, place in asked if attribute not in STATE]
    number = {term: i for i, term in enumerate(asked)}
    beginnings: dict[tuple, tuple[int, int, int]] = {}
    for terms in split:
        for size in range(1, len(terms) + 1):
            begin = tuple(terms[:size])
            if begin not in beginnings:
                parent = list(beginnings).index(begin[:-1]) if size > 1 else -1
                beginnings[begin] = parent, number[begin[-1]], _seed(begin)
    order = {begin: i for i, begin in enumerate(beginnings)}
    split.sort(key=_part)
    parents, values, seeds = zip(*beginnings.values(), strict=True) if beginnings else ((), (), ())
    return Outlook(
        np.array([PLACES.index(place) for _, place in of_words], np.int32),
        np.array([list(attributes).index(attribute) for attribute, _ in of_words], np.int32),
        np.array([PLACES.index(p) * _STATE + STATE.index(a) for a, p in asked[len(of_words) :]], np.int32),
        np.array(parents, np.int32),
        np.array(values, np.int32),
        np.array(seeds, np.uint64),
        np.array([order[tuple(terms)] for terms in split], np.int32),
        np.searchsorted([_part(terms) for terms in split], range(_PARTS + 1)).astype(np.int32),
    )


def _part(terms: Sequence[tuple[str, str]]) -> int:
    """What a template depends on: 0 on the words to come, 1 on these and s0, 2 on s0 and s1, 3 on more. Configurations of a
    beam often have the first ones in common."""
    seen = {place if attribute != "distance" else f"distance of {place}" for attribute, place in terms}
    if any(attribute in STATE and attribute != "distance" for attribute, _ in terms) or seen & set(CHILDREN):
        return 3
    ahead = {"b0", "b1", "b2", "b3"}
    if seen <= ahead:
        return 0
    if seen <= ahead | {"s0", "distance of s0"}:
        return 1
    return 2 if seen <= {"s0", "s1", "distance of s1"} else 3


def _seed(terms: Sequence[tuple[str, str]]) -> int:
    text = " ".join(f"{attribute}[{place}]" for attribute, place in terms)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class Desk(NamedTuple):
    """Room to work on one sentence at a time."""

    words: NDArray  # (longest + 3, attributes) uint64: the words, the root, a word that is not there, a child that is not
    spots: NDArray  # (places,) int64: which row of `words` stands at each place
    state: NDArray  # (places · STATE,) uint64
    values: NDArray  # (values,) uint64
    hashes: NDArray  # (beginnings,) uint64
    keys: NDArray  # (templates,) uint64: those that speak, one after the other
    bounds: NDArray  # (parts + 1,) int64: where the keys of each part begin


@jit
def new_desk(outlook, longest, attributes):
    """A desk for sentences of up to this many words."""
    return Desk(
        np.zeros((longest + 3, attributes), np.uint64),
        np.zeros(len(PLACES), np.int64),
        np.zeros(len(PLACES) * _STATE, np.uint64),
        np.zeros(outlook.places.size + outlook.state.size, np.uint64),
        np.zeros(outlook.parents.size, np.uint64),
        np.zeros(outlook.leaves.size, np.uint64),
        np.zeros(outlook.parts.size, np.int64),
    )


@jit
def lay(desk, tokens):
    """Put a sentence on the desk: (n, attributes) uint64."""
    words, n = desk.words, tokens.shape[0]
    for column in range(tokens.shape[1]):
        for word in range(n):
            words[word, column] = tokens[word, column]
        words[n, column], words[n + 1, column], words[n + 2, column] = _ROOT, OUTSIDE, 0


@jit
def _number(x):
    """A small number as a value; never 0."""
    return mix(np.uint64(x), OUTSIDE)


@jit
def _child(desk, place, word, label, none):
    desk.spots[place] = word if word >= 0 else none
    desk.state[place * _STATE] = _number(label) if word >= 0 else np.uint64(0)


@jit
def _above(desk, cells, cell, place, beyond):
    """Write what is asked of a word on the stack; `beyond` is the next word to its right."""
    word, state, at = cells[cell, system.WORD], desk.state, place * _STATE
    desk.spots[place] = word
    state[at + 1] = _number(_DISTANCES[min(beyond - word, 11)])
    state[at + 2] = _number(cells[cell, system.LEFTS])
    state[at + 3] = _number(cells[cell, system.RIGHTS])
    state[at + 4] = _number(cells[cell, system.LEFT_SET])
    state[at + 5] = _number(cells[cell, system.RIGHT_SET])


@jit
def _children(desk, cells, cell, place, none):
    _child(desk, place, cells[cell, system.LEFT], cells[cell, system.LEFT_LABEL], none)
    _child(desk, place + 1, cells[cell, system.LEFT2], cells[cell, system.LEFT2_LABEL], none)
    _child(desk, place + 2, cells[cell, system.RIGHT], cells[cell, system.RIGHT_LABEL], none)
    _child(desk, place + 3, cells[cell, system.RIGHT2], cells[cell, system.RIGHT2_LABEL], none)


@jit
def _nothing(desk, place, children, outside, none):
    """Write that there is no word at a place on the stack, and hence no child of it."""
    desk.spots[place] = outside
    for asked in range(place * _STATE, (place + 1) * _STATE):
        desk.state[asked] = 0
    for child in range(children, children + 4):
        desk.spots[child] = none
        desk.state[child * _STATE] = 0


@jit
def look(desk, outlook, cells, front, n):
    """Write the keys of a configuration in a sentence of n words; how many speak."""
    words, spots, state, values, hashes, keys, bounds = desk
    outside, none = n + 1, n + 2
    b = cells[front, system.WORD]
    for ahead in range(4):
        spots[_B0 + ahead] = min(b + ahead, outside)
    state[_B0 * _STATE + 2] = _number(cells[front, system.LEFTS])
    state[_B0 * _STATE + 4] = _number(cells[front, system.LEFT_SET])
    _child(desk, 15, cells[front, system.LEFT], cells[front, system.LEFT_LABEL], none)
    _child(desk, 16, cells[front, system.LEFT2], cells[front, system.LEFT2_LABEL], none)
    top = cells[front, system.BELOW]
    second = cells[top, system.BELOW] if top >= 0 else -1
    third = cells[second, system.BELOW] if second >= 0 else -1
    if top >= 0:
        _above(desk, cells, top, _S0, b)
        _children(desk, cells, top, 7, none)
    else:
        _nothing(desk, _S0, 7, outside, none)
    if second >= 0:
        _above(desk, cells, second, _S1, spots[_S0])
        _children(desk, cells, second, 11, none)
    else:
        _nothing(desk, _S1, 11, outside, none)
    spots[_S2] = cells[third, system.WORD] if third >= 0 else outside
    places, attributes, asked, parents, adds, seeds, leaves, parts = outlook
    for i in range(places.size):
        values[i] = words[spots[places[i]], attributes[i]]
    for i in range(asked.size):
        values[places.size + i] = state[asked[i]]
    for i in range(parents.size):
        value, h = values[adds[i]], seeds[i]
        if parents[i] >= 0:
            above = hashes[parents[i]]
            h ^= above
            if above == 0:
                value = np.uint64(0)
        hashes[i] = mix(h, value) if value != 0 else np.uint64(0)
    count = 0
    for part in range(parts.size - 1):
        for i in range(parts[part], parts[part + 1]):
            key = hashes[leaves[i]]
            if key != 0:
                keys[count] = key
                count += 1
        bounds[part + 1] = count
    return count
