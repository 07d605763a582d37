"""What texts become, against plain Python."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.data.tables import vocabulary
from rosenblatt.data.tables.encoders import TextEncoder
from rosenblatt.engine.hashtable import new_slots
from rosenblatt.errors import DamagedModel
from rosenblatt.modelfile.parts import Parts

TEXTS = st.lists(st.text(st.sampled_from("abc1_ .'-éßक्षि語のカー𠀀\u0301\u2028😀"), max_size=12), min_size=1, max_size=6)


def table(texts):
    return pa.table({"text": pa.array(texts, pa.large_string())})


def cut(text):
    """The words of a text, letter by letter."""
    letters = [letter if unicodedata.category(letter)[0] in "LNM" or letter == "_" else " " for letter in text]
    return "".join(f" {letter} " if letter in "語の𠀀" else letter for letter in letters).split()


def runs(text, low, high, characters):
    """Its runs of symbols, in the order in which they begin, a shorter one first."""
    segments = [[*f" {word} "] for word in text.split()] if characters else [cut(text)]
    for segment in segments:
        for begin in range(len(segment)):
            for length in range(1, min(high, len(segment) - begin) + 1):
                if length >= low:
                    yield ("" if characters else " ").join(segment[begin : begin + length])


def taught(treatment, *batches):
    for batch in batches:
        treatment.see(table(batch))
    treatment.finish()
    return treatment


@pytest.mark.parametrize("characters", [False, True])
@settings(deadline=None, max_examples=40)
@given(texts=TEXTS, low=st.integers(1, 2), more=st.integers(0, 2), least=st.integers(1, 2), at=st.integers(0, 6))
def test_counts_are_those_of_plain_python(characters, texts, low, more, least, at):
    high = low + more
    found = [list(runs(text, low, high, characters)) for text in texts]
    frequency = Counter(run for text in found for run in set(text))
    names = [run for run in dict.fromkeys(run for text in found for run in text) if frequency[run] >= least]
    treatment = TextEncoder("text", low, high, characters, min_count=least, tfidf=False, lowercase=False)
    taught(treatment, texts[:at], texts[at:])
    assert [treatment.name(column) for column in range(treatment.width)] == [
        f'text:"{name}"' if characters else f"text:{name}" for name in names
    ]
    expected = [[Counter(text)[name] for name in names] for text in found]
    assert treatment.rows(table(texts)).toarray().tolist() == expected


@settings(deadline=None, max_examples=20, derandomize=True)
@given(texts=TEXTS, bits=st.sampled_from([3, 20]))
def test_buckets_hold_what_the_vocabulary_would(texts, bits):
    named = taught(TextEncoder("text", 1, 2, min_count=1, tfidf=False), texts).rows(table(texts))
    hashed = taught(TextEncoder("text", 1, 2, bits=bits, min_count=1, tfidf=False), texts).rows(table(texts))
    assert hashed.sum(axis=1).tolist() == named.sum(axis=1).tolist()
    if bits == 20:  # where no two of these few share one
        assert (hashed @ hashed.T).toarray().tolist() == (named @ named.T).toarray().tolist()


def test_a_text_weighs_its_words_by_how_rare_they_are_and_has_length_one():
    texts = ["free prize free", "free hello", "hello hello hello", ""]
    rows = taught(TextEncoder("text", 1, 1, min_count=1), texts).rows(table([*texts, "prize nobody free free"])).toarray()
    weight = {run: (1 + math.log(5 / (1 + d))) ** 2 for run, d in (("free", 2), ("prize", 1), ("hello", 2))}
    first = np.array([(1 + math.log(2)) * weight["free"], weight["prize"], 0.0])
    np.testing.assert_allclose(rows[0], first / np.linalg.norm(first), rtol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 1, 0, 1], rtol=1e-15)
    np.testing.assert_array_equal(rows[4], rows[0])


def test_case_is_dropped_or_kept():
    texts = ["Straße ÉTÉ", "straße été", "STRASSE"]
    lower, kept = (taught(TextEncoder("text", 1, 1, min_count=1, lowercase=lower), texts) for lower in (True, False))
    assert [lower.name(column) for column in range(lower.width)] == ["text:straße", "text:été", "text:strasse"]
    assert kept.width == 5


def test_words_nobody_knows_are_counted_and_break_runs():
    text = taught(TextEncoder("text", 1, 2, min_count=1, tfidf=False), ["a b", "b c"])
    row = text.rows(table(["a x b c y"])).toarray()[0]
    assert [text.name(column) for column in np.flatnonzero(row)] == ["text:a", "text:b", "text:b c", "text:c"]
    assert text.unseen == 2


def test_a_vocabulary_grows_as_it_must():
    texts = [" ".join(f"word{i}" for i in range(3000)), "x" * 40_000, *(f"word{i} y" for i in range(2990, 3005))]
    whole, parts = (
        taught(TextEncoder("text", 1, 2, min_count=1), *batches) for batches in ([texts], [[text] for text in texts])
    )
    assert whole.width == 3000 + 2999 + 1 + 15 + 5 + 1
    for name, array in whole.to_parts().arrays.items():
        np.testing.assert_array_equal(array, parts.to_parts().arrays[name])
    assert whole.name(1) == "text:word0 word1"
    assert (whole.rows(table(texts)) != parts.rows(table(texts))).nnz == 0


def test_two_words_of_one_hash_are_two_words():
    slots, letters, offsets = new_slots(16), np.frombuffer(b"redblue", np.uint8), np.array([0, 3, 7])
    key = np.uint64(5)
    first = vocabulary.find_slot(slots, letters, offsets, key, letters, 0, 3)
    slots[first] = key, 0
    second = vocabulary.find_slot(slots, letters, offsets, key, letters, 3, 7)
    assert (first, second) == (5, 6)
    slots[second] = key, 1
    assert vocabulary.find_slot(slots, letters, offsets, key, np.frombuffer(b"a blue one", np.uint8), 2, 6) == second
    assert vocabulary.find_slot(slots, letters, offsets, key, np.frombuffer(b"reda", np.uint8), 0, 3) == first


@pytest.mark.parametrize("bits", [None, 4])
def test_what_was_written_is_restored_bit_for_bit(bits):
    texts = ["free prize inside", "hello été", "free hello"]
    text = taught(TextEncoder("text", 2, 3, characters=True, bits=bits, min_count=2), texts)
    facts, arrays = vars(text.to_parts()).values()
    again = TextEncoder.from_parts(Parts(facts, dict(arrays)))
    assert [again.name(i) for i in range(again.width)] == [text.name(i) for i in range(text.width)]
    rows, expected = again.rows(table(["hello inside"])), text.rows(table(["hello inside"]))
    assert rows.data.tobytes() == expected.data.tobytes()
    assert rows.indices.tolist() == expected.indices.tolist()


DAMAGE = {
    "prefix": [[-1, -1, 5], [-1, -2, 0], [-1, 1, 0], [-1, 0, 1]],
    "symbol": [[0, 1, 2], [0, -1, 1], [0, 1, 0]],
    "offsets": [[0, 1, 3], [1, 1, 2], [0, 2, 2], [0, 5, 2], []],
    "letters": [[0xC3, 0x28], [0xC3, 0xA9], [97, 97]],
    "frequency": [[1, 1], [0, 1, 1], [1, 1, 9]],
}


@pytest.mark.parametrize(("name", "values"), [(name, values) for name, some in DAMAGE.items() for values in some])
def test_a_vocabulary_that_cannot_be_is_refused(name, values):
    facts, arrays = vars(taught(TextEncoder("text", 1, 2, min_count=1), ["a b"]).to_parts()).values()
    assert {key: array.tolist() for key, array in arrays.items()} == {
        "prefix": [-1, 0, -1], "symbol": [0, 1, 1], "offsets": [0, 1, 2], "letters": [97, 98], "frequency": [1, 1, 1],
    }  # fmt: skip
    with pytest.raises(DamagedModel, match=r"vocabulary|string|array symbol|decode"):
        TextEncoder.from_parts(Parts(facts, {**arrays, name: np.array(values, arrays[name].dtype)}))
    with pytest.raises(DamagedModel, match=name):
        TextEncoder.from_parts(Parts(facts, {**arrays, name: arrays[name].astype(np.float32)}))
    with pytest.raises(DamagedModel, match=name):
        TextEncoder.from_parts(Parts(facts, {key: array for key, array in arrays.items() if key != name}))


@pytest.mark.parametrize(
    "change",
    [{"texts": -1}, {"texts": "3"}, {"low": 0}, {"high": 99}, {"bits": 64}, {"column": 3}, {"tfidf": 1}, {"min_count": 0}],
)
def test_facts_that_cannot_be_are_refused(change):
    facts, arrays = vars(taught(TextEncoder("text", 1, 2, min_count=1), ["a b"]).to_parts()).values()
    with pytest.raises((ValueError, TypeError), match=next(iter(change))):
        TextEncoder.from_parts(Parts({**facts, **change}, dict(arrays)))


def test_buckets_that_nothing_fell_into_count_as_nothing():
    text = taught(TextEncoder("text", 1, 1, bits=16, min_count=2), ["free prize", "free"])
    rows = text.rows(table(["free prize nobody knows"]))
    assert rows.nnz == 1
    assert rows.data.tolist() == [1]


def test_any_bytes_are_cut_within_their_bounds():
    draw = np.random.default_rng(0)
    for _ in range(300):
        data = draw.choice(np.frombuffer(b"a \xc3\xa4\xe4\xba\xf0\xff\x80", np.uint8), 12)
        offsets = np.array([0, *np.sort(draw.integers(0, 13, 3)), 12])
        for spans, pointers in (
            vocabulary.find_words(data, offsets, vocabulary.character_kinds(False)),
            vocabulary.find_characters(data, offsets),
        ):
            for text in range(4):
                inside = spans[pointers[text] : pointers[text + 1]]
                assert np.all((offsets[text] <= inside[:, 0]) & (inside[:, 1] <= offsets[text + 1]))
