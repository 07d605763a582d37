"""A beam finds what its definition says, and every way to learn from it stays within the bound of exact search."""

import pickle
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from rosenblatt import rules
from rosenblatt.structured.search.beam_search import UPDATES, BeamSearch
from rosenblatt.structured.search.named_weights import NamedWeights
from rosenblatt.structured.search.perceptron import StructuredPerceptron
from rosenblatt.structured.search.protocol import count_differences
from rosenblatt.testing.structured import difference, dot
from rosenblatt.theory import bounds

TAGS = "ab"


class Chain:
    """Tags from left to right, each by its word and the tag before. Looking back is what a narrow beam cannot undo."""

    def start(self, x):
        return ()

    def moves(self, x, done):
        return [(tag, (*done, tag)) for tag in TAGS]

    def finished(self, x, done):
        return len(done) == len(x)

    def features(self, x, done, tag):
        return {(x[len(done)], tag): 1, ("after", *done[-1:], tag): 1}


class Pieces:
    """Cuts of a word into pieces of one to three letters: paths of different lengths."""

    def start(self, x):
        return 0

    def moves(self, x, at):
        return [(size, at + size) for size in (1, 2, 3) if at + size <= len(x)]

    def finished(self, x, at):
        return at == len(x)

    def features(self, x, at, size):
        return {x[at : at + size]: 1, size: 1}


def paths(steps, x):
    """All whole paths."""

    def longer(path, state):
        if steps.finished(x, state):
            yield path
            return
        for action, following in steps.moves(x, state):
            yield from longer((*path, action), following)

    return list(longer((), steps.start(x)))


@st.composite
def scored_chains(draw):
    """A word, a gold path for it, and integer weights that make ties likely."""
    x = tuple(draw(st.text("uv", max_size=4)))
    gold = tuple(draw(st.text(TAGS, min_size=len(x), max_size=len(x))))
    names = [*product("uv", TAGS), *(("after", *pair) for pair in product(["", *TAGS], TAGS))]
    weights = draw(st.lists(st.integers(-2, 2), min_size=len(names), max_size=len(names)))
    named = {tuple(part for part in name if part): float(weight) for name, weight in zip(names, weights, strict=True)}
    return x, gold, NamedWeights(named)


# Searching


@given(scored_chains())
def test_a_wide_beam_is_exact(drawn):
    x, gold, w = drawn
    search = BeamSearch(Chain(), width=32)
    scores = {path: w.score(search.features(x, path)) for path in paths(Chain(), x)}
    assert scores[search.decode(x, w)] == max(scores.values())
    best_rival = max((score for path, score in scores.items() if path != gold), default=-np.inf)
    pair = search.violation(x, gold, w)
    assert (pair is None) == (scores[gold] > best_rival)
    if pair is not None:
        right, wrong = pair
        assert gold[: len(right)] == right
        assert w.score(search.features(x, wrong)) >= w.score(search.features(x, right))


@given(scored_chains(), st.integers(1, 3), st.sampled_from(sorted(UPDATES)), st.sampled_from([0.0, 0.5]))
def test_equals_beam_search_by_its_definition(drawn, width, update, margin):
    x, gold, w = drawn
    search = BeamSearch(Chain(), width, update)
    beam, seen = [()], []
    for k in range(1, len(x) + 1):

        def height(prefix, k=k):
            return dot(w, search.features(x, prefix)) + margin * count_differences(gold[:k], prefix)

        longer = [(*prefix, tag) for prefix in beam for tag in TAGS]
        beam = sorted(longer, key=lambda prefix: (-height(prefix), prefix == gold[:k]))[:width]
        seen.append((height(beam[0]) - height(gold[:k]), k, beam[0], gold[:k] in beam))
    if not seen or seen[-1][2] == gold:
        assert search.violation(x, gold, w, margin) is None
        return
    lost = [moment for moment in seen if not moment[3]]
    chosen = {
        "standard": seen[-1],
        "early": (lost or seen[-1:])[0],
        "latest": [moment for moment in seen if moment[0] >= 0 and moment[2] != gold[: moment[1]]][-1],
        "max-violation": max(seen, key=lambda moment: moment[:2]),
    }[update]
    assert search.violation(x, gold, w, margin) == (gold[: chosen[1]], chosen[2])
    if update != "standard":
        assert chosen[0] >= 0


@given(st.text("uv", min_size=1, max_size=6), st.integers(1, 4), st.data())
def test_paths_of_different_lengths(x, width, data):
    steps = Pieces()
    all_paths = paths(steps, x)
    gold = data.draw(st.sampled_from(all_paths))
    names = sorted({name for path in all_paths for name in BeamSearch(steps).features(x, path)}, key=repr)
    w = NamedWeights({name: float(data.draw(st.integers(-2, 2))) for name in names})
    found = BeamSearch(steps, width).decode(x, w)
    assert found in all_paths
    assert BeamSearch(steps, 100).decode(x, w) in [
        path for path in all_paths if score(steps, x, path, w) == max(score(steps, x, other, w) for other in all_paths)
    ]
    for update in ("early", "latest", "max-violation"):
        pair = BeamSearch(steps, width, update).violation(x, gold, w, 0.5)
        if pair is not None:
            right, wrong = pair
            assert gold[: len(right)] == right
            assert score(steps, x, wrong, w) + 0.5 * count_differences(right, wrong) >= score(steps, x, right, w)


def score(steps, x, path, w):
    return w.score(BeamSearch(steps).features(x, path))


def test_features_add_up_over_steps():
    assert BeamSearch(Pieces()).features("uvu", (1, 1, 1)) == {"u": 2, "v": 1, 1: 3}
    assert BeamSearch(Pieces()).features("uvu", (1,)) == {"u": 1, 1: 1}
    assert BeamSearch(Pieces()).features("", ()) == {}


def test_ties_go_against_gold():
    for width in (1, 2, 8):
        for gold in (("a", "a"), ("b", "b"), ("a", "b")):
            pair = BeamSearch(Chain(), width).violation(("u", "v"), gold, NamedWeights())
            assert pair is not None
            assert pair[1] != pair[0]


# Learning


def prefix_rows(X, y):
    """φ(gold prefix) − φ(other prefix) for all prefixes of as many actions, as rows."""
    search, deltas = BeamSearch(Chain()), []
    for x, gold in zip(X, y, strict=True):
        for k in range(1, len(x) + 1):
            others = [prefix for prefix in product(TAGS, repeat=k) if prefix != gold[:k]]
            right = search.features(x, gold[:k])
            deltas += [difference(right, search.features(x, prefix)) for prefix in others]
    names = sorted({name for delta in deltas for name in delta})
    return np.array([[delta.get(name, 0) for name in names] for delta in deltas], float)


def margin_of(rows):
    """The margin of some vector of length 1: the linear program's, which need not be the best."""
    n, d = rows.shape
    found = linprog(
        [*[0.0] * d, -1.0], A_ub=np.hstack([-rows, np.ones((n, 1))]), b_ub=np.zeros(n), bounds=[(-1, 1)] * d + [(None, 1)]
    )
    length = np.linalg.norm(found.x[:d])
    return float((rows @ found.x[:d]).min() / length) if length else 0.0


def separable_prefixes(seed):
    """Words, and the tags that a rule reads off each word and the tag before: every prefix is separable."""
    rng = np.random.default_rng(seed)
    chosen = {(word, before): TAGS[rng.integers(2)] for word in "uvw" for before in ("", *TAGS)}
    X, y = [], []
    for _ in range(200):
        x = tuple(rng.choice(list("uvw"), rng.integers(1, 5)).tolist())
        tags = []
        for word in x:
            tags.append(chosen[word, tags[-1] if tags else ""])
        rows = prefix_rows([*X, x], [*y, tuple(tags)])
        if len(X) < 10 and x not in X and margin_of(rows) > 1e-3:
            X.append(x)
            y.append(tuple(tags))
    return X, y


@pytest.mark.parametrize("seed", range(4))
def test_every_update_stays_within_the_bound(seed):
    X, y = separable_prefixes(seed)
    rows = prefix_rows(X, y)
    gamma, radius = margin_of(rows), float(np.linalg.norm(rows, axis=1).max())
    assert len(X) >= 5
    for update, width in product(UPDATES, (1, 2, 8)):
        fitted = StructuredPerceptron(BeamSearch(Chain(), width, update), max_iter=10_000).fit(X, y)
        assert fitted.n_updates_ <= fitted.mistake_bound(radius, gamma)
        assert fitted.mistake_bound(radius, gamma) == pytest.approx(bounds.collins(radius, gamma))
        assert fitted.stop_reason_ == "converged"
        if update != "standard":  # which may have nothing sound to learn from, and then says so
            assert fitted.n_refused_ == 0
            assert fitted.set_params(keep="last").predict(X) == y


class Garden:
    """A garden path: the second step rewards what the first must not yet know."""

    def start(self, x):
        return ()

    def moves(self, x, done):
        return [(tag, (*done, tag)) for tag in TAGS]

    def finished(self, x, done):
        return len(done) == 2

    def features(self, x, done, tag):
        return {("first", tag): 1} if not done else {("both", *done, tag): 1}


def test_standard_update_would_take_from_gold_what_it_is_right_about():
    # Gold ba scores 3 and aa 2, but a beam of 1 goes for a at once.
    w = NamedWeights({("first", "a"): 2.0, ("both", "b", "a"): 3.0})
    x, gold = "x", ("b", "a")
    found = {update: BeamSearch(Garden(), 1, update).violation(x, gold, w) for update in UPDATES}
    assert BeamSearch(Garden(), 1).decode(x, w) == ("a", "a")
    assert BeamSearch(Garden(), 4).decode(x, w) == gold
    assert found["standard"] == (gold, ("a", "a"))  # though gold is ahead
    assert found["early"] == found["latest"] == found["max-violation"] == (("b",), ("a",))


def test_standard_update_may_be_left_with_nothing_sound_to_learn_from():
    X, y = [("v", "v", "v")], [("b", "a", "a")]
    standard = StructuredPerceptron(BeamSearch(Chain(), 1, "standard"), max_iter=100).fit(X, y)
    assert (standard.stop_reason_, standard.history_[-1].mistakes, standard.n_refused_) == ("converged", 1, 1)
    for update in ("early", "latest", "max-violation"):
        sound = StructuredPerceptron(BeamSearch(Chain(), 1, update), max_iter=100).fit(X, y)
        assert (sound.stop_reason_, sound.history_[-1].mistakes, sound.n_refused_) == ("converged", 0, 0)


def test_refused_updates_are_counted_and_end_the_run():
    search = BeamSearch(Garden(), 1, "standard")
    learner = StructuredPerceptron(search, keep="last").partial_fit(["x"], [("b", "a")])
    learner._model.w = NamedWeights({("first", "a"): 2.0, ("both", "b", "a"): 3.0})
    learner._model.drift = dict.fromkeys(learner._model.w, 0.0)
    before = dict(learner.weights_)
    learner.set_params(warm_start=True).fit(["x"], [("b", "a")])
    assert dict(learner.weights_) == before
    assert (learner.n_mistakes_, learner.n_updates_, learner.n_refused_) == (1, 0, 1)
    assert learner.stop_reason_ == "converged"
    learner.search.update = "max-violation"
    learner.set_params(max_iter=20).fit(["x"], [("b", "a")])
    assert learner.predict(["x"]) == [("b", "a")]


@pytest.mark.parametrize("update", sorted(UPDATES))
def test_learning_starts_from_nothing(update):
    for gold in product(TAGS, repeat=3):
        fitted = StructuredPerceptron(BeamSearch(Chain(), 2, update), max_iter=100).fit([("u", "v", "w")], [gold])
        assert fitted.n_updates_ > 0
        assert fitted.set_params(keep="last").predict([("u", "v", "w")]) == [gold]


def test_a_margin_separates_more():
    X, y = separable_prefixes(0)
    rows = prefix_rows(X, y)
    radius, gamma = float(np.linalg.norm(rows, axis=1).max()), margin_of(rows)
    learner = StructuredPerceptron(BeamSearch(Chain(), 4), margin=1.0, max_iter=10_000, keep="last").fit(X, y)
    assert learner.stop_reason_ == "converged"
    assert learner.n_updates_ <= learner.mistake_bound(radius, gamma, max(map(len, X)))
    assert learner.n_mistakes_ <= learner.n_updates_
    for x, gold in zip(X, y, strict=True):
        assert learner.search.violation(x, gold, learner.weights_, 1.0) is None
    mira = StructuredPerceptron(BeamSearch(Chain(), 4), rule=rules.PA1(0.5), margin=1.0, max_iter=50).fit(X, y)
    assert mira.score(X, y) == 1.0


def test_works_in_a_grid_and_through_a_pickle():
    X, y = separable_prefixes(1)
    learner = StructuredPerceptron(BeamSearch(Chain()))
    grid = GridSearchCV(learner, {"search__width": [1, 4], "search__update": ["early", "max-violation"]}, cv=2).fit(X, y)
    assert grid.best_params_["search__width"] in (1, 4)
    assert clone(learner).search.width == 8
    fitted = learner.fit(X, y)
    assert pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)


def test_cutting_into_pieces_is_learned():
    words = {"unfold": (2, 3, 1), "undo": (2, 2), "redo": (2, 2), "refold": (2, 3, 1)}
    fitted = StructuredPerceptron(BeamSearch(Pieces(), 3), max_iter=100, keep="last").fit(list(words), list(words.values()))
    assert fitted.stop_reason_ == "converged"
    assert fitted.predict(list(words)) == list(words.values())


# Errors


def test_errors_name_what_is_wrong():
    search = BeamSearch(Chain())
    w = NamedWeights()
    with pytest.raises(ValueError, match="action 1, 'z', is not among the moves"):
        search.violation(("u", "v"), ("a", "z"), w)
    with pytest.raises(ValueError, match="of 1 actions ends before it is finished"):
        search.violation(("u", "v"), ("a",), w)
    with pytest.raises(ValueError, match="finished after 1 of its 2 actions"):
        search.violation(("u",), ("a", "b"), w)
    with pytest.raises(TypeError, match="tuple or a list of actions; got 'ab'"):
        search.violation(("u", "v"), "ab", w)
    for params in ({"width": 0}, {"update": "late"}):
        with pytest.raises(ValueError, match=f"{next(iter(params))} must be"):
            StructuredPerceptron(BeamSearch(Chain(), **params)).fit([("u",)], [("a",)])

    class Closed(Chain):
        def moves(self, x, done):
            return [] if done else super().moves(x, done)

    with pytest.raises(ValueError, match="neither finished nor have moves"):
        BeamSearch(Closed()).decode(("u", "v"), w)


def test_gold_may_be_a_list():
    fitted = StructuredPerceptron(BeamSearch(Chain())).fit([("u", "v")], [["b", "a"]])
    assert fitted.score([("u", "v")], [["b", "a"]]) == 1.0
    assert Counter(fitted.predict([("u", "v")])[0]) == Counter("ab")
