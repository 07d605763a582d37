"""Decoders called by hand: what brute force finds, and a refusal of what is no table of scores."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.structured import decoders
from rosenblatt.structured.decoders import chu_liu_edmonds, eisner, viterbi, viterbi_chart
from rosenblatt.testing.structured import k_best, sequences, trees

INF, NAN = np.inf, np.nan
FEW = settings(deadline=None, max_examples=80)
TREES = {
    (n, projective, single): list(trees(n, projective=projective, single_root=single))
    for n in range(5)
    for projective in (False, True)
    for single in (False, True)
}
JOHN_SAW_MARY = [[NAN, 9, 10, 9], [NAN, NAN, 20, 3], [NAN, 30, NAN, 30], [NAN, 11, 0, NAN]]  # McDonald et al. 2005


def drawn(draw, rng, *shape):
    """Whole numbers, many of them equal, of which some may be forbidden."""
    spread = draw(st.integers(0, 3))
    table = rng.integers(-spread, spread + 1, shape).astype(float)
    table[rng.random(shape) < draw(st.sampled_from([0.0, 0.2, 0.5]))] = -INF
    return table


# Paths


@st.composite
def lattices(draw):
    n, tags = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shapes = {"transitions": (tags, tags), "start": (tags,), "end": (tags,), "triples": (tags, tags, tags)}
    parts = {name: drawn(draw, rng, *shape) for name, shape in shapes.items() if draw(st.booleans())}
    return drawn(draw, rng, n, tags), parts


def path_score(path, emissions, transitions=None, start=None, end=None, triples=None):
    total = sum(emissions[i][tag] for i, tag in enumerate(path))
    total += 0 if start is None or not path else start[path[0]]
    total += 0 if end is None or not path else end[path[-1]]
    total += 0 if transitions is None else sum(transitions[a][b] for a, b in itertools.pairwise(path))
    steps = zip(path, path[1:], path[2:], strict=False)
    return total + (0 if triples is None else sum(triples[a][b][c] for a, b, c in steps))


@given(lattices(), st.integers(1, 100))
@FEW
def test_the_best_paths_are_those_of_brute_force(lattice, k):
    emissions, parts = lattice
    every = sorted(sequences(len(emissions), range(emissions.shape[1])), key=lambda path: path[::-1])

    def score(path):
        return path_score(path, emissions, **parts)

    expected = [(list(path), score(path)) for path in k_best(every, score, k) if score(path) > -INF]
    if not expected:
        with pytest.raises(ValueError, match="score of −inf; forbid less"):
            viterbi(emissions, **parts, k=k)
    elif k == 1:
        assert viterbi(emissions, **parts) == expected[0]
    else:
        assert viterbi(emissions, **parts, k=k) == expected


@given(lattices())
@FEW
def test_the_chart_holds_the_best_prefix_of_each_tag(lattice):
    emissions, parts = lattice
    parts.pop("end", None)
    chart = viterbi_chart(emissions, **parts)
    for i, row in enumerate(chart):
        for tag, value in enumerate(row):
            prefixes = [(*path, tag) for path in sequences(i, range(len(row)))]
            assert value == max(path_score(path, emissions, **parts) for path in prefixes)
    if chart[-1].max() > -INF:
        assert viterbi(emissions, **parts).score == chart[-1].max()


def test_scores_are_not_rounded_to_single_precision():
    assert viterbi([[2**24, 2**24 + 1]]) == ([1], 2**24 + 1)


def test_paths_and_scores_are_plain_numbers_and_the_tables_stay_as_they_were():
    emissions, transitions = np.array([[1, 4], [3, 1]]), np.eye(2, dtype=np.float32)
    best = viterbi(emissions, transitions)
    assert best == decoders.BestPath([1, 0], 7.0)
    assert {type(tag) for tag in best.path} == {int}
    assert type(best.score) is float
    scores = np.array(JOHN_SAW_MARY)
    eisner(scores)
    assert np.isnan(scores[:, 0]).all()


def test_an_empty_sentence_has_one_path():
    nothing = np.empty((0, 2))
    assert viterbi(nothing, start=[1, 1], end=[1, 1]) == ([], 0.0)
    assert viterbi(nothing, k=2) == [([], 0.0)]
    assert viterbi_chart(nothing).shape == (0, 2)


TWO = [[0, 1], [1, 0]]
WRONG = {
    "a vector": ({"emissions": [1, 2]}, r"emissions must have the shape \(n, K\).*; it has \(2,\)"),
    "no tags": ({"emissions": np.empty((2, 0))}, r"emissions must have the shape \(n, K\).*; it has \(2, 0\)"),
    "ragged": ({"emissions": [[1, 2], [3]]}, "emissions must be a table; its rows differ in length"),
    "texts": ({"emissions": [["1", "2"]]}, "emissions must be whole numbers or floats; it has the type <U1"),
    "complex": ({"emissions": [[1j]]}, "has the type complex128"),
    "nan": ({"emissions": [[0, 1], [2, NAN]]}, r"emissions\[1, 1\] is nan; a score is a number"),
    "infinite": ({"emissions": [[INF, 1]]}, r"emissions\[0, 0\] is inf; .* or −inf, which forbids"),
    "too large": ({"emissions": [[1e301, 1]]}, r"is 1e\+301; a score is a number up to 1e\+300 in size"),
    "too low": ({"emissions": [[-1e301, 1]]}, r"is -1e\+301; a score is a number up to 1e\+300 in size"),
    "transitions": (
        {"emissions": TWO, "transitions": [0, 1]},
        r"transitions must have the shape \(2, 2\).*; it has \(2,\)",
    ),
    "nan transitions": ({"emissions": TWO, "transitions": [[0, 1], [NAN, 1]]}, r"transitions\[1, 0\] is nan"),
    "start": ({"emissions": TWO, "start": [0]}, r"start must have the shape \(2,\).*; it has \(1,\)"),
    "triples": ({"emissions": TWO, "triples": TWO}, r"triples must have the shape \(2, 2, 2\).*; it has \(2, 2\)"),
}
WRONG_ENDS = {
    "end": ({"end": [0, 1, 2]}, r"end must have the shape \(2,\).*; it has \(3,\)"),
    "nan end": ({"end": [0, NAN]}, r"end\[1\] is nan"),
    "k = 0": ({"k": 0}, "k must be a whole number ≥ 1; got 0"),
    "k = 1.5": ({"k": 1.5}, "k must be a whole number ≥ 1; got 1.5"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_lattice_is_refused(given, message):
    for decoder in (viterbi, viterbi_chart):
        with pytest.raises(ValueError, match=message):
            decoder(**given)


@pytest.mark.parametrize(("given", "message"), WRONG_ENDS.values(), ids=WRONG_ENDS)
def test_what_only_paths_have_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        viterbi(TWO, **given)


# Trees


@st.composite
def sentences(draw):
    n = draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores, siblings = drawn(draw, rng, n + 1, n + 1), drawn(draw, rng, n + 1, n + 1, n + 1)
    scores[:, 0] = draw(st.sampled_from([0.0, NAN, INF, -INF]))
    np.fill_diagonal(scores, draw(st.sampled_from([0.0, NAN, INF, -INF])))
    return scores, siblings


def tree_score(heads, scores, siblings=None):
    total = sum(scores[head][word] for word, head in enumerate(heads, 1))
    if siblings is not None:
        for h in range(len(heads) + 1):
            of_h = [word for word, head in enumerate(heads, 1) if head == h]
            for side in ([h, *(m for m in of_h if m > h)], [h, *(m for m in reversed(of_h) if m < h)]):
                total += sum(siblings[h][m][s] for s, m in itertools.pairwise(side))
    return total


def agrees(decode, scores, allowed, siblings=None):
    """Whether a decoder's tree is one of the allowed ones with the highest score, and says so."""
    best = max(tree_score(heads, scores, siblings) for heads in allowed)
    if best == -INF:
        with pytest.raises(ValueError, match=r"tree over . words has a score of −inf; forbid less"):
            decode()
        return True
    heads, score = decode()
    return tuple(heads) in allowed and score == best == tree_score(heads, scores, siblings)


@given(sentences(), st.booleans())
@FEW
def test_the_best_tree_is_that_of_brute_force(sentence, single_root):
    scores, siblings = sentence
    n = len(scores) - 1
    every, projective = TREES[n, False, single_root], TREES[n, True, single_root]
    assert agrees(lambda: chu_liu_edmonds(scores, single_root=single_root), scores, every)
    assert agrees(lambda: eisner(scores, single_root=single_root), scores, projective)
    both = {"siblings": siblings, "single_root": single_root}
    assert agrees(lambda: eisner(scores, **both), scores, projective, siblings)


@pytest.mark.parametrize("decode", [eisner, chu_liu_edmonds])
def test_john_saw_mary(decode):
    best = decode(JOHN_SAW_MARY)
    assert best == decoders.BestTree([2, 0, 2], 70.0)
    assert {type(head) for head in best.heads} == {int}
    assert type(best.score) is float
    assert decode([[0]]) == ([], 0.0)


@pytest.mark.parametrize("decode", [eisner, chu_liu_edmonds])
def test_one_root_costs_what_two_would_win(decode):
    scores = [[0, 5, 5], [0, 0, 1], [0, 2, 0]]
    assert decode(scores) == ([2, 0], 7.0)
    assert decode(scores, single_root=False) == ([0, 0], 10.0)


def test_only_what_can_be_a_pair_of_siblings_is_looked_at():
    siblings = np.full((4, 4, 4), NAN)
    for h, m in ((h, m) for h in range(4) for m in range(1, 4) if h != m):
        siblings[h, m, [h, *range(min(h, m) + 1, max(h, m))]] = 0
    assert eisner(JOHN_SAW_MARY, siblings=siblings) == ([2, 0, 2], 70.0)
    siblings[2, 3, 2] = NAN
    with pytest.raises(ValueError, match=r"siblings\[2, 3, 2\] is nan"):
        eisner(JOHN_SAW_MARY, siblings=siblings)
    with pytest.raises(ValueError, match=r"siblings must have the shape \(4, 4, 4\).*; it has \(2, 2\)"):
        eisner(JOHN_SAW_MARY, siblings=TWO)


NO_TREE = {
    "a number": (3, r"scores must have the shape \(n\+1, n\+1\).*; it has \(\)"),
    "not square": ([[0, 1]], r"scores must have the shape \(n\+1, n\+1\).*; it has \(1, 2\)"),
    "empty": (np.empty((0, 0)), r"scores must have the shape .*; it has \(0, 0\)"),
    "ragged": ([[1, 2], [3]], "scores must be a table"),
    "none": (None, "has the type object"),
    "nan": ([[0, NAN], [0, 0]], r"scores\[0, 1\] is nan; a score is a number"),
    "infinite": ([[0, INF], [0, 0]], r"scores\[0, 1\] is inf"),
    "forbidden": ([[0, -INF], [0, 0]], "tree over 1 words has a score of −inf; forbid less"),
}


@pytest.mark.parametrize("decode", [eisner, chu_liu_edmonds])
@pytest.mark.parametrize(("scores", "message"), NO_TREE.values(), ids=NO_TREE)
def test_what_has_no_tree_is_refused(decode, scores, message):
    with pytest.raises(ValueError, match=message):
        decode(scores)
