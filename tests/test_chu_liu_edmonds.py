"""The algorithm of Chu, Liu and Edmonds finds what looking at every tree finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.structured.graph import chu_liu_edmonds, eisner
from rosenblatt.testing.structured import is_tree, trees

MOST_WORDS = 5
TREES = {(n, single): list(trees(n, single_root=single)) for n in range(MOST_WORDS + 1) for single in (False, True)}


@st.composite
def sentences(draw, forbid=0.0, most=MOST_WORDS):
    n = draw(st.integers(0, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.integers(0, 5))
    scores = rng.integers(-spread, spread + 1, (n + 1, n + 1)).astype(float)
    scores[rng.random(scores.shape) < forbid] = -np.inf
    return scores


def score(heads, scores):
    return sum(scores[head, word] for word, head in enumerate(heads, 1))


def forbidden(heads, scores):
    return sum(scores[head, word] == -np.inf for word, head in enumerate(heads, 1))


def test_the_trees_are_counted():
    assert [len(TREES[n, False]) for n in range(1, 6)] == [1, 3, 16, 125, 1296]
    assert [len(TREES[n, True]) for n in range(1, 6)] == [1, 2, 9, 64, 625]


@given(sentences(), st.booleans())
def test_no_tree_is_better(scores, single_root):
    heads = chu_liu_edmonds.best_tree(scores, single_root)
    allowed = TREES[len(heads), single_root]
    assert tuple(heads) in allowed
    assert score(heads, scores) == max(score(tree, scores) for tree in allowed)


@given(sentences(forbid=0.4), st.booleans())
def test_as_few_forbidden_arcs_as_can_be(scores, single_root):
    heads = chu_liu_edmonds.best_tree(scores, single_root)
    allowed = TREES[len(heads), single_root]
    assert tuple(heads) in allowed
    fewest = min(forbidden(tree, scores) for tree in allowed)
    assert forbidden(heads, scores) == fewest
    if fewest == 0:
        assert score(heads, scores) == max(score(tree, scores) for tree in allowed)


@pytest.mark.parametrize("single_root", [False, True])
def test_every_tree_can_win(single_root):
    for n in range(MOST_WORDS):
        for tree in TREES[n, single_root]:
            scores = np.zeros((n + 1, n + 1))
            for word, head in enumerate(tree, 1):
                scores[head, word] = 1
            assert tuple(chu_liu_edmonds.best_tree(scores, single_root)) == tree


@pytest.mark.parametrize("size", [1e-3, 1e12])
def test_one_root_is_not_a_matter_of_size(size):
    """Arcs from the root that are better than all others together do not make a second root."""
    scores = np.full((5, 5), -size)
    scores[0] = 1e3 * size
    heads = chu_liu_edmonds.best_tree(scores, True)
    assert is_tree(heads)
    assert np.sum(heads == 0) == 1


@given(st.integers(0, 2**32), st.booleans())
def test_a_projective_tree_is_no_better(seed, single_root):
    scores = np.random.default_rng(seed).integers(-50, 50, (13, 13)).astype(float)
    any_tree, projective = chu_liu_edmonds.best_tree(scores, single_root), eisner.best_tree(scores, single_root)
    assert is_tree(any_tree)
    assert not single_root or np.sum(any_tree == 0) == 1
    assert score(any_tree, scores) >= score(projective, scores)


def test_a_cycle_of_cycles_is_undone():
    """A chain of cycles, each within the next: every word likes the next best, the last the first."""
    n = 40
    scores = np.full((n + 1, n + 1), -1000.0)
    for word in range(1, n + 1):
        scores[word % n + 1, word] = 10.0 * word
        scores[0, word] = -word
    heads = chu_liu_edmonds.best_tree(scores, True)
    assert is_tree(heads)
    assert score(heads, scores) == max(
        10 * n * (n + 1) / 2 - 11 * word for word in range(1, n + 1)
    )  # the cycle without one arc, which comes from the root instead
