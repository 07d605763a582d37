"""A template says which attributes of which places are looked at together: `suffix3[0]`, or `form[-1] form[0]`. Templates
are data, a list of short texts that a person can read and edit; what each makes of an example is a 64-bit key.

A template's keys depend on its own text alone, so templates can be added, dropped and put in another order without changing
what the others mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidParameter, InvalidParameterType

_TERM = re.compile(r"([^\s\[\]]+)\[([^\s\[\]]+)\]")


class Templates(NamedTuple):
    """Templates as the kernels take them. A term is a number: place · attributes + attribute."""

    seeds: NDArray  # (templates,) uint64
    starts: NDArray  # (templates + 1,) int32: where the terms of each begin
    terms: NDArray  # (terms,) int32


def parse_terms(text: str) -> list[tuple[str, str]]:
    """Return the (attribute, place) pairs of a template's text."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter("templates", text, "texts such as 'suffix3[0]' or 'form[-1] form[0]'")
    found = []
    for part in text.split():
        match = _TERM.fullmatch(part)
        if match is None:
            raise InvalidParameter("templates", text, f"made of attribute[place], such as 'suffix3[0]'; {part!r} is not")
        found.append((match[1], match[2]))
    return found


def template_list(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of templates; one text alone is no list of them."""
    if not isinstance(texts, Iterable) or isinstance(texts, str):
        raise InvalidParameterType("templates", texts, "a list of texts")
    listed = tuple(texts)
    if not all(isinstance(text, str) for text in listed):
        raise InvalidParameterType("templates", texts, "a list of texts")
    return listed


def parse_templates(texts: Sequence[str], attributes: Sequence[str], places: Sequence[str]) -> Templates:
    """Return the templates that these texts describe, which may name these attributes and places."""
    seeds, starts, numbers = [], [0], []
    seen: set[tuple] = set()
    for text in template_list(texts):
        found = parse_terms(text)
        if tuple(found) in seen:
            raise InvalidParameter("templates", text, "different from each other", hint="this one is listed twice")
        seen.add(tuple(found))
        for attribute, place in found:
            _check_known(text, "attribute", attribute, attributes)
            _check_known(text, "place", place, places)
            numbers.append(places.index(place) * len(attributes) + attributes.index(attribute))
        starts.append(len(numbers))
        seeds.append(text_seed(" ".join(text.split())))
    return Templates(np.array(seeds, np.uint64), np.array(starts, np.int32), np.array(numbers, np.int32))


def text_seed(text: str) -> int:
    """Return the 64 bits that the keys of a template begin with."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _check_known(text: str, kind: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        close = get_close_matches(word, words, 1)
        hint = f"no {kind} is called {word!r}" + (f"; did you mean {close[0]!r}?" if close else "")
        raise InvalidParameter("templates", text, f"made of the {kind}s {', '.join(words)}", hint=hint)


def attributes_used(texts: Sequence[str]) -> list[str]:
    """Return the attributes that these texts name, in order of first use."""
    return list(dict.fromkeys(attribute for text in texts for attribute, _ in parse_terms(text)))


def expand_templates(short: str, fields: Sequence[str]) -> tuple[str, ...]:
    """Return the templates of a short text such as "h.w m.c~; h.p", for tokens of these fields.

    A term is place.attribute: w is the form, c the coarse tag (the first of the fields after the form), t the fine one
    (the last), p both tags in turn, and m each of the tags between them, if there are more than two; where tokens have no
    tags, shapes and suffixes of words stand in for them. "~" is the template itself and once more with the distance.
    """
    coarse, fine = (fields[1], fields[-1]) if len(fields) > 1 else ("shape", "suffix3")
    texts = []
    for text in short.replace("\n", ";").split(";"):
        for tag in fields[2:-1] if ".m" in text else (coarse, fine):
            names = {"w": "form", "c": coarse, "t": fine, "p": tag, "m": tag}
            terms = [term.rsplit(".", 1) for term in text.replace("~", "").split()]
            plain = " ".join(f"{names.get(attribute, attribute)}[{place}]" for place, attribute in terms)
            far = "distance[m]" if "s." not in text else "distance[s]"
            texts += [plain, f"{plain} {far}"] if "~" in text else [plain]
    return tuple(text for text in dict.fromkeys(texts) if text)


@jit
def template_keys(templates, values, out):
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
