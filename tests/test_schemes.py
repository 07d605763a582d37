"""Schemes against the sequences that spelling out chunks can make: these and no others are allowed."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.structured.evaluation import chunks
from rosenblatt.structured.tags.schemes import SCHEMES, allowed_pairs, convert_tags, detect_scheme, first_violation, fits

LETTERS = {scheme: sorted({*letters, "B"} if scheme != "iob1" else {"B", "I"}) for scheme, letters in SCHEMES.items()}


def segmentations(n):
    """All ways to cut n tokens into chunks of type X and Y and tokens outside: lists of (start, end, type)."""
    if n == 0:
        yield []
        return
    for rest in segmentations(n - 1):
        yield rest
    for size in range(1, n + 1):
        for rest in segmentations(n - size):
            for kind in "XY":
                yield [*rest, (n - size, n, kind)]


def spelled(n, segments, scheme):
    """The tags of chunks, by the table of the schemes."""
    begin, inside, end, alone = SCHEMES[scheme]
    tags = ["O"] * n
    for start, stop, kind in segments:
        follows = any(other[1] == start and other[2] == kind for other in segments)
        for i in range(start, stop):
            letter = alone if stop - start == 1 else begin if i == start else end if i == stop - 1 else inside
            if scheme == "iob1" and follows and i == start:
                letter = "B"
            tags[i] = f"{letter}-{kind}"
    return tuple(tags)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_scheme_allows_what_spells_chunks_and_nothing_else(scheme, n):
    right = {spelled(n, segments, scheme) for segments in segmentations(n)}
    tags = ["O", *(f"{letter}-{kind}" for letter in LETTERS[scheme] for kind in "XY")]
    table = allowed_pairs(tags, scheme)
    assert all(fits(tag, scheme) for tag in tags)
    for sequence in product(range(len(tags)), repeat=n):
        steps = zip([len(tags), *sequence], [*sequence, len(tags)], strict=True)
        legal = all(table[a, b] for a, b in steps)
        named = tuple(tags[number] for number in sequence)
        assert legal == (named in right), named
        assert legal == (first_violation(named, scheme) is None)


@given(st.lists(st.sampled_from(["O"] + [f"{a}-{b}" for a in "BILUES" for b in "XY"]), max_size=6))
def test_repaired_tags_are_legal_and_spell_the_same_chunks(tags):
    for scheme in SCHEMES:
        better = convert_tags(tags, scheme)
        assert first_violation(better, scheme) is None
        assert all(fits(tag, scheme) for tag in better)
        assert chunks(better) == chunks(tags)
        assert convert_tags(better, scheme) == better


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_is_found_from_what_it_spells(scheme):
    assert detect_scheme(spelled(3, segments, scheme) for segments in segmentations(3)) == scheme


@pytest.mark.parametrize(
    "tags", [["NOUN", "VERB"], ["O", "O"], ["B-X", "I-Y"], ["O", "L-X"], ["B-X", "B"], ["I-", "O"], [1, 2], []]
)
def test_what_obeys_no_scheme_has_none(tags):
    assert detect_scheme([tags]) is None


def test_where_tags_break_a_scheme():
    assert first_violation(["O", "I-X"], "bio") == 1
    assert first_violation(["B-X"], "bilou") == 1  # the end comes too soon
    assert first_violation([], "bilou") is None
