"""Tags such as B-NP spell out chunks, and a scheme says which tag may follow which. A tagger that knows the scheme forbids
the rest, so that its answers always spell chunks.

| scheme | begins | goes on | ends | alone | |
|---|---|---|---|---|---|
| bio | B | I | I | B | IOB2 |
| iob1 | I | I | I | I | B only where a chunk follows another of the same type |
| bilou | B | I | L | U | |
| iobes | B | I | E | S | |

In all of them O is outside of chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.structured.evaluation import chunks

OUT = "O"


class Letters(NamedTuple):
    """How the tags of a chunk begin."""

    begin: str
    inside: str
    end: str
    alone: str


SCHEMES = {
    "bio": Letters("B", "I", "I", "B"),
    "iob1": Letters("I", "I", "I", "I"),
    "bilou": Letters("B", "I", "L", "U"),
    "iobes": Letters("B", "I", "E", "S"),
}


def split(tag: str) -> tuple[str, str]:
    """The letter and the type of a tag: ("B", "NP"), ("O", "")."""
    letter, _, kind = tag.partition("-")
    return letter, kind


def fits(tag: object, scheme: str) -> bool:
    """Whether a tag is one of the scheme's."""
    if not isinstance(tag, str):
        return False
    letter, kind = split(tag)
    return tag == OUT or (letter in {*SCHEMES[scheme], "B"} and kind != "")


def may_follow(scheme: str, before: str | None, after: str | None) -> bool:
    """Whether a tag may stand after another; None is the edge of the sentence."""
    a, kind_a = split(OUT if before is None else before)
    b, kind_b = split(OUT if after is None else after)
    same = kind_a == kind_b
    if scheme == "iob1":
        return b != "B" or (a != OUT and same)
    if scheme == "bio":
        return b != "I" or (a != OUT and same)
    letters = SCHEMES[scheme]
    if a in (letters.begin, letters.inside):  # the chunk is open
        return b in (letters.inside, letters.end) and same
    return b not in (letters.inside, letters.end)


def allowed(tags: Sequence[str], scheme: str) -> NDArray:
    """(K + 1, K + 1) bool: which of the tags, in their order, may follow which; the last stands for the edge."""
    ends: list[str | None] = [*tags, None]
    return np.array([[may_follow(scheme, a, b) for b in ends] for a in ends])


def detected(sentences: Iterable[Sequence]) -> str | None:
    """The scheme that all these sentences of tags obey, or None."""
    steps = {step for tags in sentences for step in zip([None, *tags], [*tags, None], strict=True)}
    names = {tag for _, tag in steps if tag is not None}
    for scheme, needed in (("bilou", "LU"), ("iobes", "ES"), ("bio", "B"), ("iob1", "I")):
        if (
            all(fits(tag, scheme) for tag in names)
            and any(split(tag)[0] in needed for tag in names)
            and all(may_follow(scheme, a, b) for a, b in steps)
        ):
            return scheme
    return None


def first_violation(tags: Sequence[str], scheme: str) -> int | None:
    """Where a sentence of tags first breaks the scheme: the place of the later tag, or their number if it is the end."""
    steps = zip([None, *tags], [*tags, None], strict=True)
    return next((i for i, (a, b) in enumerate(steps) if not may_follow(scheme, a, b)), None)


def repaired(tags: Sequence[str], scheme: str) -> list[str]:
    """The tags that spell the same chunks in the scheme, whatever scheme they were in.

    >>> repaired(["I-NP", "I-NP", "O", "I-VP"], "bio")
    ['B-NP', 'I-NP', 'O', 'B-VP']
    """
    letters = SCHEMES[scheme]
    result = [OUT] * len(tags)
    last_end, last_kind = -1, ""
    for kind, start, end in chunks(tags):
        again = scheme == "iob1" and start == last_end and kind == last_kind
        first = "B" if again else letters.begin
        if end - start == 1:
            result[start] = f"{'B' if again else letters.alone}-{kind}"
        else:
            middle = [letters.inside] * (end - start - 2)
            result[start:end] = [f"{letter}-{kind}" for letter in (first, *middle, letters.end)]
        last_end, last_kind = end, kind
    return result
