"""A template says which attributes of which places are looked at together: `suffix3[0]`, or `form[-1] form[0]`. Templates
are data, a list of short texts that a person can read and edit; what each makes of an example is a 64-bit key.

A template's keys depend on its own text alone, so templates can be added, dropped and put in another order without changing
what the others mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.jit import jit

_TERM = re.compile(r"([^\s\[\]]+)\[([^\s\[\]]+)\]")


class Templates(NamedTuple):
    """Templates as the kernels take them. A term is a number: place · attributes + attribute."""

    seeds: NDArray  # (templates,) uint64
    starts: NDArray  # (templates + 1,) int32: where the terms of each begin
    terms: NDArray  # (terms,) int32


def terms(text: str) -> list[tuple[str, str]]:
    """The (attribute, place) pairs of a template's text."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"a template is a text such as 'suffix3[0]' or 'form[-1] form[0]'; got {text!r}")
    found = []
    for part in text.split():
        match = _TERM.fullmatch(part)
        if match is None:
            raise ValueError(f"template {text!r}: {part!r} is not of the form attribute[place], such as 'suffix3[0]'")
        found.append((match[1], match[2]))
    return found


def listed(texts: Sequence[str]) -> tuple[str, ...]:
    """The texts of templates; one text alone is no list of them."""
    if isinstance(texts, str):
        raise TypeError(f"templates must be a list of texts; got the single text {texts!r}")
    return tuple(texts)


def read(texts: Sequence[str], attributes: Sequence[str], places: Sequence[str]) -> Templates:
    """The templates that these texts describe."""
    texts = listed(texts)
    seeds, starts, numbers = [], [0], []
    seen: set[tuple] = set()
    for text in texts:
        found = terms(text)
        if tuple(found) in seen:
            raise ValueError(f"template {text!r} stands twice in the list")
        seen.add(tuple(found))
        for attribute, place in found:
            _allowed(text, "attribute", attribute, attributes)
            _allowed(text, "place", place, places)
            numbers.append(places.index(place) * len(attributes) + attributes.index(attribute))
        starts.append(len(numbers))
        seeds.append(int.from_bytes(blake2b(" ".join(text.split()).encode(), digest_size=8).digest(), "little"))
    return Templates(np.array(seeds, np.uint64), np.array(starts, np.int32), np.array(numbers, np.int32))


def _allowed(text: str, kind: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        close = get_close_matches(word, words, 1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"template {text!r}: no {kind} is called {word!r}{hint} There are {', '.join(words)}")


def attributes_used(texts: Sequence[str]) -> list[str]:
    """The attributes that these texts name, in order of first use."""
    return list(dict.fromkeys(attribute for text in texts for attribute, _ in terms(text)))


@jit
def keys(templates, values, out):
    """Write into out[t] the key of template t, from the values of all terms; 0, no feature, where one of them is 0."""
    seeds, starts, numbers = templates
    for t in range(seeds.size):
        h = seeds[t]
        for j in range(starts[t], starts[t + 1]):
            value = values[numbers[j]]
            if value == 0:
                h = np.uint64(0)
                break
            h = mix(h, value)
        out[t] = h
