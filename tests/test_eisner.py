"""Eisner's algorithm finds what looking at every projective tree finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.structured.graph import eisner
from rosenblatt.testing.structured import is_projective, is_tree, trees

MOST_WORDS = 5
TREES = {
    (n, single): list(trees(n, projective=True, single_root=single))
    for n in range(MOST_WORDS + 1)
    for single in (False, True)
}


def arcs_of(heads):
    return [(head, word) for word, head in enumerate(heads, 1)]


def pairs_of(heads):
    """(head, modifier, the modifier before it on the same side or the head) of every arc."""
    found = []
    for head in range(len(heads) + 1):
        left = [word for word in range(head - 1, 0, -1) if heads[word - 1] == head]
        right = [word for word in range(head + 1, len(heads) + 1) if heads[word - 1] == head]
        for side in (left, right):
            found += [(head, word, before) for before, word in zip([head, *side], side, strict=False)]
    return found


@st.composite
def sentences(draw, forbid=False):
    """(scores, siblings) of whole numbers, of which many are equal."""
    n = draw(st.integers(0, MOST_WORDS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.integers(0, 4))
    scores = rng.integers(-spread, spread + 1, (n + 1, n + 1)).astype(float)
    if forbid:
        scores[rng.random(scores.shape) < draw(st.sampled_from([0.1, 0.4]))] = -np.inf
    return scores, rng.integers(-spread, spread + 1, (n + 1, n + 1, n + 1)).astype(float)


def score(heads, scores, siblings=None):
    total = sum(scores[arc] for arc in arcs_of(heads))
    return total + (0 if siblings is None else sum(siblings[pair] for pair in pairs_of(heads)))


def test_the_trees_are_counted():
    assert [len(TREES[n, False]) for n in range(1, 6)] == [1, 3, 12, 55, 273]
    assert [len(TREES[n, True]) for n in range(1, 6)] == [1, 2, 7, 30, 143]


@given(sentences(forbid=True), st.booleans())
def test_no_projective_tree_is_better(sentence, single_root):
    scores, _ = sentence
    heads = eisner.best_tree(scores, single_root)
    allowed = TREES[len(heads), single_root]
    assert tuple(heads) in allowed
    assert score(heads, scores) == max(score(tree, scores) for tree in allowed)


@given(sentences(forbid=True), st.booleans())
def test_no_projective_tree_of_pairs_is_better(sentence, single_root):
    scores, siblings = sentence
    heads = eisner.best_tree_with_siblings(scores, siblings, single_root)
    allowed = TREES[len(heads), single_root]
    assert tuple(heads) in allowed
    assert score(heads, scores, siblings) == max(score(tree, scores, siblings) for tree in allowed)


@given(sentences(), st.booleans())
def test_pairs_that_say_nothing_change_no_score(sentence, single_root):
    scores, siblings = sentence
    heads = eisner.best_tree_with_siblings(scores, 0 * siblings, single_root)
    assert score(heads, scores) == score(eisner.best_tree(scores, single_root), scores)


@pytest.mark.parametrize("single_root", [False, True])
def test_every_projective_tree_can_win(single_root):
    """With 1 for the arcs of a tree and 0 for all others, that tree is the only best one."""
    for n in range(MOST_WORDS + 1):
        for tree in TREES[n, single_root]:
            scores = np.zeros((n + 1, n + 1))
            for arc in arcs_of(tree):
                scores[arc] = 1
            assert tuple(eisner.best_tree(scores, single_root)) == tree
            assert tuple(eisner.best_tree_with_siblings(scores, np.zeros((n + 1,) * 3), single_root)) == tree


def test_a_long_sentence_has_a_tree():
    scores = np.random.default_rng(0).normal(size=(151, 151))
    for single_root in (False, True):
        heads = eisner.best_tree(scores, single_root)
        assert is_tree(heads)
        assert is_projective(heads)
        assert not single_root or np.sum(heads == 0) == 1


def test_equal_scores_give_the_same_tree_each_time():
    answers = {tuple(eisner.best_tree(np.zeros((7, 7)), True)) for _ in range(3)}
    assert len(answers) == 1
