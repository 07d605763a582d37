"""Tags such as B-NP stand for chunks, and a scheme defines which tag may follow which. A tagger that knows the scheme
forbids the rest, so that its answers always stand for chunks.

| scheme | begins | goes on | ends | alone | |
|---|---|---|---|---|---|
| bio | B | I | I | B | IOB2 |
| iob1 | I | I | I | I | B only where a chunk follows another of the same type |
| bilou | B | I | L | U | |
| iobes | B | I | E | S | |

In all of them O is outside of chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
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
    """Return the letter and the type of a tag.

    Parameters
    ----------
    tag : str
        A tag such as "B-NP" or "O".

    Returns
    -------
    letter, type : str
        ("B", "NP") and ("O", "").
    """
    letter, _, kind = tag.partition("-")
    return letter, kind


def fits(tag: object, scheme: str) -> bool:
    """Return whether a tag is one of a scheme's.

    Parameters
    ----------
    tag : object
        A tag.
    scheme : str
        One of `SCHEMES`.

    Returns
    -------
    bool
    """
    if not isinstance(tag, str):
        return False
    letter, kind = split(tag)
    return tag == OUT or (letter in {*SCHEMES[scheme], "B"} and kind != "")


def may_follow(scheme: str, before: str | None, after: str | None) -> bool:
    """Return whether a tag may stand after another.

    Parameters
    ----------
    scheme : str
        One of `SCHEMES`.
    before, after : str or None
        Two tags; None is the edge of the sentence.

    Returns
    -------
    bool
    """
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


def allowed_pairs(tags: Sequence[str], scheme: str) -> NDArray:
    """Return which of the tags may follow which.

    Parameters
    ----------
    tags : sequence of str
        K tags.
    scheme : str
        One of `SCHEMES`.

    Returns
    -------
    ndarray of bool, (K + 1, K + 1)
        [a, b]: whether tag b may stand after tag a; the last row and column stand for the edge of the sentence.
    """
    ends: list[str | None] = [*tags, None]
    return np.array([[may_follow(scheme, a, b) for b in ends] for a in ends])


def detect_scheme(sentences: Iterable[Sequence]) -> str | None:
    """Return the scheme that all these sentences obey.

    Parameters
    ----------
    sentences : iterable of sequences of str
        The tags of each sentence.

    Returns
    -------
    str or None
        One of `SCHEMES`; None if there is none.
    """
    return scheme_of_steps(tag_steps(sentences))


def tag_steps(sentences: Iterable[Sequence]) -> set[tuple]:
    """Return which tags follow which in these sentences; None stands for what is beyond a sentence.

    Parameters
    ----------
    sentences : iterable of sequences of str
        The tags of each sentence.

    Returns
    -------
    set of pairs
    """
    return {step for tags in sentences for step in zip([None, *tags], [*tags, None], strict=True)}


def scheme_of_steps(steps: Set[tuple]) -> str | None:
    """Return the scheme in which all these tags may follow each other.

    Parameters
    ----------
    steps : set of pairs
        As `tag_steps` returns them.

    Returns
    -------
    str or None
        One of `SCHEMES`; None if there is none.
    """
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
    """Return where a sentence first breaks a scheme.

    Parameters
    ----------
    tags : sequence of str
        The tags of a sentence.
    scheme : str
        One of `SCHEMES`.

    Returns
    -------
    int or None
        The place of the later of two tags that may not follow each other, which is the number of tags if the last of them
        may not end a sentence; None if all is well.
    """
    steps = zip([None, *tags], [*tags, None], strict=True)
    return next((i for i, (a, b) in enumerate(steps) if not may_follow(scheme, a, b)), None)


def convert_tags(tags: Sequence[str], scheme: str) -> list[str]:
    """Return the tags that stand for the same chunks in another scheme.

    Parameters
    ----------
    tags : sequence of str
        The tags of a sentence, in whatever scheme; they may even break it.
    scheme : str
        The scheme of the result, one of `SCHEMES`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> convert_tags(["I-NP", "I-NP", "O", "I-VP"], "bio")
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


repaired = convert_tags  # as it was called before
