"""What a parser sees of a configuration: values of 64 bits at the places that templates name, and the keys that come of
them.

A place is a word near the top of the stack (s0, s1, s2) or from the front on (b0 … b3), or one of its outermost children:
s0l is the leftmost child of s0, s0l2 the next, s0r and s0r2 the rightmost. Of a word, templates ask what its token is; of
a child, also the label of its arc; of s0, s1 and b0, how many children they have on each side and with which labels; of
s0 and s1, how far away the next word to the right is (b0 and s0). A word that is not there is OUTSIDE; a child that is
not there has no values, and templates that name it make no feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidParameter
from rosenblatt.structured.features.templates import parse_templates, parse_terms, text_seed
from rosenblatt.structured.features.words import OUTSIDE
from rosenblatt.structured.transition import transitions as system

WORDS = ("s0", "s1", "s2", "b0", "b1", "b2", "b3")
CHILDREN = ("s0l", "s0l2", "s0r", "s0r2", "s1l", "s1l2", "s1r", "s1r2", "b0l", "b0l2")
PLACES = WORDS + CHILDREN
STATE = ("label", "distance", "lefts", "rights", "leftlabels", "rightlabels")  # what is asked of a place beside its word
PLACES_OF_STATE = {  # of which places
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


class StateTemplates(NamedTuple):
    """The templates, as a forest of their beginnings: each is hashed once, from its parent and one more value."""

    places: NDArray  # (word values,) int32: the place of each value that is an attribute of a word
    attributes: NDArray  # (word values,) int32: which attribute
    state: NDArray  # (state values,) int32: place · STATE + which; they follow the word values
    parents: NDArray  # (beginnings,) int32: −1 for none
    values: NDArray  # (beginnings,) int32: the value added last
    seeds: NDArray  # (beginnings,) uint64: a hash of the text up to there
    leaves: NDArray  # (templates,) int32: the beginning that is the whole, part by part
    parts: NDArray  # (parts + 1,) int32: where the parts begin; see `_part`


def parse_state_templates(texts: Sequence[str], attributes: Sequence[str]) -> StateTemplates:
    """Return the templates that these texts describe, on words with these attributes."""
    parse_templates(texts, (*attributes, *STATE), PLACES)  # refuses what is not well formed
    split = [parse_terms(text) for text in texts]
    for text, terms in zip(texts, split, strict=True):
        for attribute, place in terms:
            if place not in (places := PLACES_OF_STATE.get(attribute, PLACES)):
                allowed = f"such that {attribute} is asked of {', '.join(places)}, and not of {place!r}"
                raise InvalidParameter("templates", text, allowed)
    every = sorted({term for terms in split for term in terms}, key=lambda term: term[0] in STATE)
    of_words = [(attribute, place) for attribute, place in every if attribute not in STATE]
    number = {term: i for i, term in enumerate(every)}
    beginnings: dict[tuple, tuple[int, int, int]] = {}
    for terms in split:
        for size in range(1, len(terms) + 1):
            begin = tuple(terms[:size])
            if begin not in beginnings:
                parent = list(beginnings).index(begin[:-1]) if size > 1 else -1
                seed = text_seed(" ".join(f"{attribute}[{place}]" for attribute, place in begin))
                beginnings[begin] = parent, number[begin[-1]], seed
    order = {begin: i for i, begin in enumerate(beginnings)}
    split.sort(key=_part)
    parents, values, seeds = zip(*beginnings.values(), strict=True) if beginnings else ((), (), ())
    return StateTemplates(
        np.array([PLACES.index(place) for _, place in of_words], np.int32),
        np.array([list(attributes).index(attribute) for attribute, _ in of_words], np.int32),
        np.array([PLACES.index(p) * _STATE + STATE.index(a) for a, p in every[len(of_words) :]], np.int32),
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


class Workspace(NamedTuple):
    """Room to work on one sentence at a time."""

    words: NDArray  # (longest + 3, attributes) uint64: the words, the root, a word that is not there, a child that is not
    spots: NDArray  # (places,) int64: which row of `words` stands at each place
    state: NDArray  # (places · STATE,) uint64
    values: NDArray  # (values,) uint64
    hashes: NDArray  # (beginnings,) uint64
    keys: NDArray  # (templates,) uint64: of the templates that make a feature, one after the other
    bounds: NDArray  # (parts + 1,) int64: where the keys of each part begin


@jit
def new_workspace(templates, longest, attributes):
    """A workspace for sentences of up to this many words."""
    return Workspace(
        np.zeros((longest + 3, attributes), np.uint64),
        np.zeros(len(PLACES), np.int64),
        np.zeros(len(PLACES) * _STATE, np.uint64),
        np.zeros(templates.places.size + templates.state.size, np.uint64),
        np.zeros(templates.parents.size, np.uint64),
        np.zeros(templates.leaves.size, np.uint64),
        np.zeros(templates.parts.size, np.int64),
    )


@jit
def load_sentence(work, tokens):
    """Write a sentence into the workspace: (n, attributes) uint64."""
    words, n = work.words, tokens.shape[0]
    for column in range(tokens.shape[1]):
        for word in range(n):
            words[word, column] = tokens[word, column]
        words[n, column], words[n + 1, column], words[n + 2, column] = _ROOT, OUTSIDE, 0


@jit
def _number(x):
    """A small number as a value; never 0."""
    return mix(np.uint64(x), OUTSIDE)


@jit
def _write_child(work, place, word, label, none):
    work.spots[place] = word if word >= 0 else none
    work.state[place * _STATE] = _number(label) if word >= 0 else np.uint64(0)


@jit
def _write_word(work, cells, cell, place, beyond):
    """Write what is asked of a word on the stack; `beyond` is the next word to its right."""
    word, state, at = cells[cell, system.WORD], work.state, place * _STATE
    work.spots[place] = word
    state[at + 1] = _number(_DISTANCES[min(beyond - word, 11)])
    state[at + 2] = _number(cells[cell, system.LEFTS])
    state[at + 3] = _number(cells[cell, system.RIGHTS])
    state[at + 4] = _number(cells[cell, system.LEFT_SET])
    state[at + 5] = _number(cells[cell, system.RIGHT_SET])


@jit
def _write_children(work, cells, cell, place, none):
    _write_child(work, place, cells[cell, system.LEFT], cells[cell, system.LEFT_LABEL], none)
    _write_child(work, place + 1, cells[cell, system.LEFT2], cells[cell, system.LEFT2_LABEL], none)
    _write_child(work, place + 2, cells[cell, system.RIGHT], cells[cell, system.RIGHT_LABEL], none)
    _write_child(work, place + 3, cells[cell, system.RIGHT2], cells[cell, system.RIGHT2_LABEL], none)


@jit
def _write_missing(work, place, children, outside, none):
    """Write that there is no word at a place on the stack, and hence no child of it."""
    work.spots[place] = outside
    for at in range(place * _STATE, (place + 1) * _STATE):
        work.state[at] = 0
    for child in range(children, children + 4):
        work.spots[child] = none
        work.state[child * _STATE] = 0


@jit
def extract_keys(work, templates, cells, front, n):
    """Write the keys of a configuration in a sentence of n words; how many there are."""
    words, spots, state, values, hashes, keys, bounds = work
    outside, none = n + 1, n + 2
    b = cells[front, system.WORD]
    for ahead in range(4):
        spots[_B0 + ahead] = min(b + ahead, outside)
    state[_B0 * _STATE + 2] = _number(cells[front, system.LEFTS])
    state[_B0 * _STATE + 4] = _number(cells[front, system.LEFT_SET])
    _write_child(work, 15, cells[front, system.LEFT], cells[front, system.LEFT_LABEL], none)
    _write_child(work, 16, cells[front, system.LEFT2], cells[front, system.LEFT2_LABEL], none)
    top = cells[front, system.BELOW]
    second = cells[top, system.BELOW] if top >= 0 else -1
    third = cells[second, system.BELOW] if second >= 0 else -1
    if top >= 0:
        _write_word(work, cells, top, _S0, b)
        _write_children(work, cells, top, 7, none)
    else:
        _write_missing(work, _S0, 7, outside, none)
    if second >= 0:
        _write_word(work, cells, second, _S1, spots[_S0])
        _write_children(work, cells, second, 11, none)
    else:
        _write_missing(work, _S1, 11, outside, none)
    spots[_S2] = cells[third, system.WORD] if third >= 0 else outside
    places, attributes, states, parents, adds, seeds, leaves, parts = templates
    for i in range(places.size):
        values[i] = words[spots[places[i]], attributes[i]]
    for i in range(states.size):
        values[places.size + i] = state[states[i]]
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
