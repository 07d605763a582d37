"""What is a tree, and what is said of what is none: against walking from every word to the root."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rosenblatt.structured import trees
from rosenblatt.structured.features.fields import Fields
from rosenblatt.structured.parser import first_invalid_tree


def reaches_root(heads: tuple[int, ...]) -> bool:
    for word in range(1, len(heads) + 1):
        at, steps = word, 0
        while at != 0 and steps <= len(heads):
            at, steps = heads[at - 1], steps + 1
        if at != 0:
            return False
    return True


def crosses(heads: tuple[int, ...]) -> bool:
    arcs = [tuple(sorted((head, word))) for word, head in enumerate(heads, 1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


@pytest.mark.parametrize(
    ("n", "all_of_them", "one_root", "flat", "flat_one_root"),
    [(0, 1, 1, 1, 1), (1, 1, 1, 1, 1), (2, 3, 2, 3, 2), (3, 16, 9, 12, 7), (4, 125, 64, 55, 30)],
)
def test_the_trees_of_n_words_are_as_many_as_cayley_counted(n, all_of_them, one_root, flat, flat_one_root):
    counted = [0, 0, 0, 0]
    for heads in product(range(n + 1), repeat=n):
        array = np.array(heads, np.int64)
        assert trees.is_tree(array) == reaches_root(heads)
        assert (first_invalid_tree(array, np.array([0, n]), False) == -1) == reaches_root(heads)
        if reaches_root(heads):
            projective, single = trees.is_projective(array), trees.is_tree(array, single_root=True)
            assert projective == (not crosses(heads))
            assert (first_invalid_tree(array, np.array([0, n]), True) == -1) == single
            counted = np.add(counted, [1, single, projective, projective and single])
    assert list(counted) == [all_of_them, one_root, flat, flat_one_root]


def test_a_circle_is_shown():
    with pytest.raises(ValueError, match="sentence 4: the heads are not a tree; they form a cycle 2 → 4 → 2"):
        trees.check(np.array([0, 4, 1, 2]), 3)
    with pytest.raises(ValueError, match="cycle 1 → 1"):
        trees.check(np.array([1]), 0)


@pytest.mark.parametrize("head", [-1, 3])
def test_a_head_that_is_no_word_is_named(head):
    with pytest.raises(ValueError, match=f"sentence 1: word 1 has head {head}, but there are 2 words"):
        trees.check(np.array([head, 0]), 0)


def test_long_chains_are_trees():
    assert trees.is_tree(np.arange(5000))


FIELDS = Fields(("form", "upos"), ("lower", "suffix2", "upos"))


def test_tokens_become_rows_of_hashes():
    values, starts = FIELDS.values([[("The", "DET"), ("cat", "NOUN")], [], [("the", "DET")]])
    assert starts.tolist() == [0, 2, 2, 3]
    assert (values[0] == values[2]).all()
    assert values.shape == (3, 3)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([[("a", "X")], ["the"]], "sentence 2, word 1: a token must be \\(form, upos\\); got 'the'"),
        ([[("a", "X"), ("a", "b", "c")]], "sentence 1, word 2: a token must be"),
        ([[], [("a", None)]], "sentence 2, word 1: the upos must be text; got None"),
        ([[(3, "X")]], "sentence 1, word 1: the form must be text; got 3"),
        ([["ab"]], "got 'ab'"),
        ([[{"form": "a", "upos": "X"}]], "a token must be"),
        ([[{"a", "X"}]], "a token must be"),
        (["ab"], "sentence 1 must be a list of tokens; got 'ab'"),
        ([("the", "DET"), ("dog", "NOUN")], "a token must be \\(form, upos\\); got 'the'; a sentence is a list of tokens"),
    ],
)
def test_tokens_of_another_make_are_refused_with_their_place(sentences, message):
    with pytest.raises((TypeError, ValueError), match=message):
        FIELDS.values(sentences)
