"""Attributes of words as hashes, against what they are in letters; templates and the keys they make."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.structured.features import templates, words
from rosenblatt.structured.features.words import (
    ATTRIBUTES,
    NotText,
    Words,
    attribute_text,
    texts_from_parts,
    texts_to_parts,
    word_attributes,
)

WORDS = st.lists(st.text(max_size=12), max_size=8)


@settings(deadline=None, max_examples=60)
@given(WORDS)
def test_two_words_share_a_hash_just_when_they_share_the_text_of_the_attribute(tokens):
    hashes = word_attributes(tokens, ATTRIBUTES)
    for j, name in enumerate(ATTRIBUTES):
        letters = [attribute_text(token, name) for token in tokens]
        whole = name in ("form", "lower", "shape", "longshape", "length")  # an empty one is one too
        for i in range(len(tokens)):
            assert (hashes[i, j] == 0) == (letters[i] == "" and not whole)
            for k in range(i):
                assert (hashes[i, j] == hashes[k, j]) == (letters[i] == letters[k])


@pytest.mark.parametrize(
    ("word", "shape", "longshape"),
    [("U.S.", "X.X.", "X.X."), ("1990s", "dx", "ddddx"), ("McDonald", "XxXx", "XxXxxxxx"), ("東京-2", "o-d", "oo-d")],
)
def test_shapes(word, shape, longshape):
    assert (attribute_text(word, "shape"), attribute_text(word, "longshape")) == (shape, longshape)


@settings(deadline=None, max_examples=40)
@given(WORDS, WORDS)
def test_types_are_numbered_once_and_unknown_ones_for_one_answer_only(known, asked):
    table = Words(("form", "suffix2"))
    assert [table.types[i] for i in table.learn(known)] == known
    before = table.types
    ids, extra = table.numbers(asked)
    assert table.types == before == list(dict.fromkeys(known))
    everything = np.concatenate([table.table, extra])
    assert (everything[ids] == word_attributes(asked, table.attributes)).all()
    assert (table.hashes(asked) == everything[ids]).all()
    assert texts_from_parts(texts_to_parts(table.types)) == before


def test_odd_texts_are_words_too():
    tokens = ["", "\ud800", "a\x00b", "🙂", "İstanbul", "שלום", "x" * 10_000, "\n"]
    assert len(np.unique(word_attributes(tokens, ("form",)))) == len(tokens)
    assert texts_from_parts(texts_to_parts(tokens)) == tokens


@pytest.mark.parametrize("strange", [None, 3, ["a"], {"a": 1}, b"a"])
def test_what_is_no_text_is_refused_with_its_place(strange):
    with pytest.raises(NotText, match="must be text") as refused:
        Words(("form",)).numbers(["a", "b", strange])
    assert refused.value.position == 2


def test_hashes_are_the_same_in_every_process():
    """Model files rely on it: these numbers must never change."""
    assert word_attributes(["The"], ("form", "lower", "suffix2", "shape")).tolist() == [
        [10746590339435644989, 6946836025385949095, 1498916913280254374, 5278851322313691101]
    ]
    read = templates.parse_templates(["lower[0] shape[-1]"], ("lower", "shape"), ("-1", "0"))
    out = np.zeros(1, np.uint64)
    templates.template_keys(read, np.arange(1, 5, dtype=np.uint64), out)
    assert out.tolist() == [5299239339081721042]


def test_a_file_of_words_that_does_not_add_up_is_refused():
    parts = texts_to_parts(["ab", "c"])
    parts.arrays["bytes"] = parts.arrays["bytes"][:2]
    with pytest.raises(ValueError, match="add up to 3, but there are 2 bytes"):
        texts_from_parts(parts)


PLACES = ("-1", "0", "1")


def key_of(texts, values, attributes=("form", "tag")):
    read = templates.parse_templates(texts, attributes, PLACES)
    out = np.zeros(len(texts), np.uint64)
    templates.template_keys(read, np.asarray(values, np.uint64), out)
    return out.tolist()


def test_a_key_depends_on_its_template_and_on_what_it_looks_at_only():
    values = [1, 2, 3, 4, 5, 6]
    alone = key_of(["form[0] tag[1]"], values)
    assert key_of(["tag[0]", "form[0] tag[1]"], values)[1:] == alone
    assert key_of(["  form[0]   tag[1] "], values) == alone
    assert key_of(["form[0] tag[1]"], [9, 9, 3, 9, 9, 6]) == alone
    assert key_of(["form[0] tag[1]"], [1, 2, 7, 4, 5, 6]) != alone
    assert key_of(["form[0] tag[1]", "form[0] tag[1] tag[0]", "tag[1] form[0]"], values).count(alone[0]) == 1


def test_a_value_of_nothing_silences_a_template():
    assert key_of(["form[0] tag[1]", "tag[1]"], [1, 2, 0, 4, 5, 6])[0] == 0
    assert key_of(["form[0] tag[1]", "tag[1]"], [1, 2, 0, 4, 5, 6])[1] != 0


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["form[0]", "fom[0]"], "no attribute is called 'fom'; did you mean 'form'"),
        (["form[2]"], "no place is called '2'"),
        (["form 0"], "made of attribute\\[place\\], such as 'suffix3\\[0\\]'; 'form' is not"),
        ([""], "got ''"),
        ([3], r"got \[3\]"),
        (["form[0]", "form[0]"], "listed twice"),
    ],
)
def test_templates_that_mean_nothing_are_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        templates.parse_templates(texts, ("form", "tag"), PLACES)


def test_one_text_is_no_list_of_templates():
    with pytest.raises(TypeError, match="list of texts"):
        templates.parse_templates("form[0]", ("form",), PLACES)


def test_words_can_be_pickled():
    table = Words(("form", "lower"), ["a", "B"])
    again = pickle.loads(pickle.dumps(table))
    assert again.types == table.types
    assert (again.table == table.table).all()
    assert words.OUTSIDE != 0
