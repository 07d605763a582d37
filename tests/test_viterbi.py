"""Decoders against all sequences: the same scores, the same paths, the same ties, on integers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.structured.tags.viterbi import best, best_of_beam, greatest_violation, k_best, search_beam

NONE = -np.inf


ALL = st.tuples(st.booleans(), st.booleans())
TWO = st.sampled_from([(False, False), (True, True)])  # each kind has to be compiled


@st.composite
def lattices(draw, kinds):
    """(emissions, pairs, triples, local) of small integers, some pairs forbidden; (second order, with local)."""
    n, tags = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def some(*shape):
        return rng.integers(-2, 3, shape).astype(np.float32)

    pairs, local = some(tags + 1, tags + 1), some(n, tags + 1, tags + 1)
    if draw(st.booleans()):
        forbidden = rng.random(pairs.shape) < 0.2
        pairs[forbidden] = local[:, forbidden] = NONE
    second, placed = draw(kinds)
    return some(n, tags), pairs, some(tags + 1, tags + 1, tags + 1) if second else None, local if placed else None


def score(lattice, path, whole=True):
    """The sum of all that a path passes; of a prefix without what comes after."""
    emissions, pairs, triples, local = lattice
    edge = emissions.shape[1]
    around = [edge, edge, *path, edge][: None if whole else len(path) + 2]
    total = sum(emissions[i, tag] for i, tag in enumerate(path))
    for i, (a, b, c) in enumerate(zip(around, around[1:], around[2:], strict=False)):
        total += pairs[b, c] if local is None or i == len(path) else local[i, b, c]
        total += 0 if triples is None else triples[a, b, c]
    return total


def all_paths(lattice):
    """All paths that are allowed, those that a tie prefers first: lowest from the right."""
    n, tags = lattice[0].shape
    paths = product(range(tags), repeat=n)
    return sorted((path for path in paths if score(lattice, path) > NONE), key=lambda path: path[::-1])


def against(gold):
    """The order of ties with gold: from the right, what is not gold's, then what is lowest."""
    return lambda path: [(tag == right, tag) for tag, right in zip(path[::-1], gold[::-1], strict=True)]


@given(lattices(ALL), st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_the_best_path_is_the_best_of_all(lattice, seed):
    n, tags = lattice[0].shape
    gold = np.random.default_rng(seed).integers(0, tags, n).astype(np.int32)
    for right in (None, gold):
        path = np.empty(n, np.int32)
        found = best(*lattice, right, path)
        paths = all_paths(lattice)
        if not paths:
            assert found == NONE
            continue
        paths = paths if right is None else sorted(paths, key=against(gold.tolist()))
        expected = max(paths, key=lambda path: score(lattice, path))  # the first of equals
        if n > 0:
            assert tuple(path) == expected
            assert found == score(lattice, expected)


@given(lattices(TWO), st.integers(1, 6))
@settings(deadline=None, max_examples=100)
def test_the_k_best_are_the_best_of_all_in_order(lattice, k):
    scores, paths = k_best(*lattice, k)
    expected = sorted(all_paths(lattice), key=lambda path: -score(lattice, path))[:k]
    assert [tuple(path) for path in paths] == expected
    assert scores.tolist() == [score(lattice, path) for path in expected]


@given(lattices(TWO))
@settings(deadline=None, max_examples=100)
def test_a_beam_with_room_for_every_state_is_exact(lattice):
    n, tags = lattice[0].shape
    path, exact = np.empty(n, np.int32), np.empty(n, np.int32)
    found = best_of_beam(*lattice, tags * (tags + 1), path)
    if n > 0:
        assert found == best(*lattice, None, exact)
        assert found == NONE or found == score(lattice, path.tolist())


def naive_beam(lattice, width, gold):
    """At each place the hypotheses, best first: (score, tags, whether it has left gold, the hypothesis it goes on from)."""
    n, tags = lattice[0].shape
    before, found = [(0.0, (), False, 0)], []
    for i in range(n):
        futures = {}
        for h, (_, path, left, _) in enumerate(before):
            for tag in range(tags):
                longer = (*path, tag)
                value = score(lattice, longer, whole=False)
                if value > NONE:
                    away = gold is not None and (left or tag != gold[i])
                    future = longer[-1:] if lattice[2] is None else longer[-2:]
                    order = (-value, not (gold is not None and left), h)
                    futures.setdefault(future, []).append((order, (value, longer, away, h)))
        survivors = [min(equal)[1] for equal in futures.values()]
        survivors.sort(key=lambda one: (-one[0], not one[2], one[3], one[1][-1]))
        before = survivors[:width]
        found.append(before)
    return found


@given(lattices(TWO), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 2**32)))
@settings(deadline=None, max_examples=150)
def test_a_narrow_beam_keeps_the_best_hypotheses_and_of_equals_the_first(lattice, width, seed):
    """The first of equals: one that has left gold, then the one from the better hypothesis, then the lower tag."""
    n, tags = lattice[0].shape
    gold = None if seed is None else np.random.default_rng(seed).integers(0, tags, n).astype(np.int32)
    beam = search_beam(*lattice, width, gold)
    for i, expected in enumerate(naive_beam(lattice, width, gold)):
        scores, paths, away, origins = zip(*expected, strict=True) if expected else ((), (), (), ())
        size = beam.size[i]
        assert beam.score[i, :size].tolist() == list(scores)
        assert beam.tag[i, :size].tolist() == [path[-1] for path in paths]
        assert beam.left[i, :size].tolist() == list(away)
        assert beam.back[i, :size].tolist() == list(origins)


@given(lattices(TWO), st.integers(1, 12), st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_an_update_of_a_beam_is_a_violation(lattice, width, seed):
    n, tags = lattice[0].shape
    gold = np.random.default_rng(seed).integers(0, tags, n).astype(np.int32)
    if score(lattice, gold) == NONE:
        return
    path = np.empty(n, np.int32)
    length = greatest_violation(*lattice, width, gold, path)
    if length > 0:
        guess, right, whole = path[:length].tolist(), gold[:length].tolist(), length == n
        assert guess != right
        assert score(lattice, guess, whole) >= score(lattice, right, whole)
    elif width >= tags * (tags + 1):  # nothing was pruned: gold is the one best path
        assert n == 0 or all(
            score(lattice, path) < score(lattice, gold) for path in all_paths(lattice) if path != tuple(gold)
        )


@pytest.mark.parametrize("second", [False, True])
def test_learning_starts_from_zero(second):
    """Where every path is a best one, the guess is wrong everywhere."""
    triples = np.zeros((4, 4, 4), np.float32) if second else None
    gold, path = np.array([0, 2, 1, 0], np.int32), np.empty(4, np.int32)
    best(np.zeros((4, 3), np.float32), np.zeros((4, 4), np.float32), triples, None, gold, path)
    assert (path != gold).all()


def test_a_long_sentence_has_the_path_that_was_planted():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 5, 5000).astype(np.int32)
    emissions = rng.random((5000, 5)).astype(np.float32)
    emissions[np.arange(5000), gold] += 3
    triples = rng.random((6, 6, 6)).astype(np.float32)
    path = np.empty(5000, np.int32)
    for threes in (None, triples):
        best(emissions, np.zeros((6, 6), np.float32), threes, None, None, path)
        assert (path == gold).mean() > 0.99
