"""A search is all a problem has to be; what is learned from it equals the specification, within the bounds of theorems."""

import math
import pickle
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import product
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from rosenblatt import rules
from rosenblatt.estimators.plan import generator
from rosenblatt.modelfile import container
from rosenblatt.structured.search.named_weights import NamedModel, NamedWeights, direction, total
from rosenblatt.structured.search.perceptron import StructuredPerceptron
from rosenblatt.structured.search.protocol import count_differences, count_parts
from rosenblatt.testing import reference
from rosenblatt.testing.structured import difference, dot, pa1, sequences, structured_run, trees
from rosenblatt.theory import bounds

TAGS = "abc"


def tagging(x, path):
    """A toy grammar of chains: words with their tags, and tags with the tag before."""
    return Counter([*zip(x, path, strict=True), *zip(("<", *path), (*path, ">"), strict=True)])


def arcs(x, heads):
    """A toy grammar of trees: each word with its head, and with the side on which that stands."""
    places = [(head, word) for word, head in enumerate(heads, 1)]
    return Counter([*((("<", *x)[h], x[m - 1]) for h, m in places), *((x[m - 1], h < m) for h, m in places)])


class Exhaustive:
    """Looks at every path; among equals `decode` answers with the first, and offers nothing else."""

    def __init__(self, candidates, features):
        self.candidates = candidates
        self.of = features
        self.name = features.__name__

    def decode(self, x, w):
        return max(self.candidates(x), key=lambda path: w.score(self.of(x, path)))

    def features(self, x, path):
        return self.of(x, path)


class Rivals(Exhaustive):
    """Brings the best rival of gold, whoever is ahead."""

    def violation(self, x, gold, w, margin):
        rivals = [path for path in self.candidates(x) if path != gold]
        if not rivals:
            return None
        return gold, max(rivals, key=lambda path: w.score(self.of(x, path)) + margin * count_differences(gold, path))


def all_tags(x):
    return sequences(len(x), TAGS)


def all_trees(x):
    return trees(len(x))


CHAINS, TREES = Exhaustive(all_tags, tagging), Exhaustive(all_trees, arcs)


@st.composite
def sentences(draw):
    words = draw(st.lists(st.text("uvw", max_size=3), min_size=1, max_size=6).filter(any))
    return [tuple(x) for x in words], [tuple(draw(st.text(TAGS, min_size=len(x), max_size=len(x)))) for x in words]


def corpus(seed=0, size=12, longest=4):
    """Sentences that a planted grammar tags, mostly."""
    rng = np.random.default_rng(seed)
    X = [tuple(rng.choice(list("uvwxyz"), rng.integers(1, longest + 1)).tolist()) for _ in range(size)]
    own = {word: TAGS[rng.integers(3)] for word in "uvwxyz"}
    return X, [tuple(own[word] if rng.random() < 0.8 else TAGS[rng.integers(3)] for word in x) for x in X]


# What is learned

EXACT = [
    (rules.Perceptron(0.0, 1.0), reference.perceptron(), 0),
    (rules.Perceptron(1.0, 0.5), reference.perceptron(1, lambda k: 0.5), 1),
]
ROUNDED = [
    (rules.Diminishing(0.0, 1.0, 1.0), reference.perceptron(0, lambda k: Fraction(1, k)), 0),
    (rules.PA1(0.25), pa1(Fraction(1, 4)), 1),
    (rules.Mira(1.0), lambda m, length, k, positive: min(1, max(0, (1 - m) / length)), 1),
]


def learned(data, features, rule, margin, order):
    """(what the learner has learned, what the specification has), of three epochs at most."""
    X, y = data
    ours, step, threshold = rule
    search = Rivals(all_tags, lambda x, path: {name: float(value) for name, value in features(x, path).items()})
    fitted = StructuredPerceptron(search, rule=ours, margin=margin, order=order, max_iter=3, random_state=5).fit(X, y)
    rng = generator(5)
    epochs = [rng.permutation(len(X)) if order == "shuffle" else range(len(X)) for _ in range(fitted.n_iter_)]
    examples = list(zip(X, y, strict=True))
    assert fitted.n_seen_ == fitted.n_iter_ * len(X)
    return fitted, structured_run(examples, all_tags, features, step, epochs, Fraction(margin), threshold=threshold)


orders, costs = st.sampled_from(["cyclic", "shuffle"]), st.sampled_from([0.0, 0.5, 1.0])


@given(sentences(), st.sampled_from(EXACT), costs, orders)
def test_equals_the_specification(data, rule, margin, order):
    fitted, run = learned(data, tagging, rule, margin, order)
    assert (fitted.n_mistakes_, fitted.n_updates_) == (run.mistakes, run.updates)
    close(fitted.weights_, run.average)
    close(fitted.set_params(keep="last").weights_, run.w, exact=True)


@given(sentences(), st.sampled_from(ROUNDED), costs, orders)
def test_equals_the_specification_but_for_rounding(data, rule, margin, order):
    # Features of odd sizes, so that no two rivals are equal but for rounding.
    fitted, run = learned(data, sized, rule, margin, order)
    assert (fitted.n_mistakes_, fitted.n_updates_) == (run.mistakes, run.updates)
    close(fitted.weights_, run.average)
    close(fitted.set_params(keep="last").weights_, run.w)


def sized(x, path):
    counts = tagging(x, path)
    return {name: value * Fraction(1 + crc32(repr(name).encode()) % 2**20, 2**20) for name, value in counts.items()}


def close(ours, theirs, exact=False):
    for name in {*ours, *theirs}:
        expected = float(theirs.get(name, 0))
        assert ours[name] == expected if exact else ours[name] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(sentences())
def test_a_search_that_only_decodes_is_collins_as_printed(data):
    X, y = data
    w, mistakes = {}, 0
    for x, gold in [*zip(X, y, strict=True)] * 2:
        guess = max(all_tags(x), key=lambda path: dot(w, tagging(x, path)))
        if guess == gold and not w:
            guess = max(all_tags(x), key=lambda path: -dot(tagging(x, gold), tagging(x, path)))
        if guess != gold:
            mistakes += 1
            for name, value in difference(tagging(x, gold), tagging(x, guess)).items():
                w[name] = w.get(name, 0) + value
    fitted = StructuredPerceptron(CHAINS, keep="last")
    for _ in range(2):
        fitted.partial_fit(X, y)
    assert fitted.n_mistakes_ == fitted.n_updates_ == mistakes
    close(fitted.weights_, w, exact=True)


def test_one_best_mira_asks_for_the_loss():
    # The guess at w = 0 is aaa, wrong in two parts and different in six features: τ = 2/6 closes the gap exactly.
    x, gold = ("u", "v", "w"), ("a", "b", "c")
    search = Exhaustive(all_tags, lambda x, path: Counter(zip(x, path, strict=True)))
    fitted = StructuredPerceptron(search, rule=rules.PA1(math.inf), margin=1.0, max_iter=1).fit([x], [gold])
    w = fitted.set_params(keep="last").weights_
    assert w == {("v", "b"): 0.5, ("v", "a"): -0.5, ("w", "c"): 0.5, ("w", "a"): -0.5}
    assert w.score(search.features(x, gold)) - w.score(search.features(x, "aaa")) == 2.0


# Where learning starts


class Flattering(Exhaustive):
    """Knows the answers, and prefers them wherever there is a tie."""

    def __init__(self, candidates, features, answers):
        super().__init__(candidates, features)
        self.answers = answers

    def decode(self, x, w):
        paths = list(self.candidates(x))
        best = max(w.score(self.of(x, path)) for path in paths)
        tied = [path for path in paths if w.score(self.of(x, path)) == best]
        return self.answers[x] if self.answers[x] in tied else tied[0]


@pytest.mark.parametrize("seed", range(3))
def test_learning_starts_though_ties_go_to_gold(seed):
    X, y = corpus(seed)
    fitted = StructuredPerceptron(Flattering(all_tags, tagging, dict(zip(X, y, strict=True))), max_iter=50).fit(X, y)
    assert fitted.n_updates_ > 0
    assert fitted.history_[0].mistakes > 0
    assert any(fitted.weights_.values())


def test_learning_starts_though_gold_is_what_decode_answers_first():
    # All tags are the first tag: at w = 0 a decoder that takes the first of equals is right about everything.
    X = [("u",), ("v", "u")]
    fitted = StructuredPerceptron(CHAINS).fit(X, [("a",), ("a", "a")])
    assert fitted.n_updates_ == 1
    assert fitted.predict([("u", "v", "v")]) == [("a", "a", "a")]


def test_says_when_nothing_can_be_learned():
    one_path = Exhaustive(lambda x: [("a",)], tagging)
    with pytest.warns(UserWarning, match="nothing was learned"):
        fitted = StructuredPerceptron(one_path).fit([("u",)], [("a",)])
    assert (fitted.n_updates_, fitted.n_mistakes_, fitted.stop_reason_) == (0, 0, "converged")
    assert fitted.predict([("u",)]) == [("a",)]


def test_paths_of_the_same_features_are_mistaken_but_teach_nothing():
    blind = Exhaustive(all_tags, lambda x, path: {"length": len(path)})
    with pytest.warns(UserWarning, match="of the same features"):
        fitted = StructuredPerceptron(blind).fit([("u", "v")], [("b", "b")])
    assert (fitted.n_mistakes_, fitted.n_updates_, fitted.n_refused_) == (1, 0, 1)


def test_refuses_what_is_no_violation():
    class Careless(Exhaustive):
        """Sometimes answers with the worst path."""

        def decode(self, x, w):
            choose = min if x[0] == "v" else max
            return choose(self.candidates(x), key=lambda path: w.score(self.of(x, path)))

    X, y = [("u",), ("v", "u")], [("a",), ("a", "a")]
    fitted = StructuredPerceptron(Careless(all_tags, tagging), order="cyclic", max_iter=4).fit(X, y)
    assert fitted.n_updates_ == 1  # of the first example; the second is answered wrongly, but gold is ahead already
    assert fitted.n_refused_ == 2
    assert fitted.n_mistakes_ == 3
    assert fitted.stop_reason_ == "converged"


# What theorems allow


def margins(search, X, y):
    """(differences φ(gold) − φ(rival) as rows, the example of each)."""
    deltas = [
        (i, difference(search.of(x, gold), search.of(x, path)))
        for i, (x, gold) in enumerate(zip(X, y, strict=True))
        for path in search.candidates(x)
        if path != gold
    ]
    names = sorted({name for _, delta in deltas for name in delta}, key=repr)
    return np.array([[delta.get(name, 0) for name in names] for _, delta in deltas], float), [i for i, _ in deltas]


def separator(rows):
    """The vector that a linear program finds, of length 1, and its margin: a certificate, whatever the program is worth."""
    n, d = rows.shape
    found = linprog(
        [*[0.0] * d, -1.0], A_ub=np.hstack([-rows, np.ones((n, 1))]), b_ub=np.zeros(n), bounds=[(-1, 1)] * d + [(None, 1)]
    )
    u = found.x[:d] / max(np.linalg.norm(found.x[:d]), 1e-300)
    return u, float((rows @ u).min())


def toy_grammar(search, seed):
    """Inputs, and the paths that integer weights score higher than all others."""
    rng = np.random.default_rng(seed)
    letters = "uvw" if search is CHAINS else "uvwxyz"
    planted, X, y = {}, [], []
    for _ in range(40):
        x = tuple(rng.choice(list(letters), rng.integers(1, 4)).tolist())
        paths = list(search.candidates(x))
        for name in sorted({name for path in paths for name in search.of(x, path)} - set(planted), key=repr):
            planted[name] = int(rng.integers(-4, 5))
        scores = [dot(planted, search.of(x, path)) for path in paths]
        if scores.count(max(scores)) == 1 and len(X) < 8:
            X.append(x)
            y.append(paths[scores.index(max(scores))])
    return X, y


toys = pytest.mark.parametrize(
    ("search", "seed"), list(product([CHAINS, TREES], range(4))), ids=lambda value: getattr(value, "name", value)
)


@toys
def test_collins_bound(search, seed):
    X, y = toy_grammar(search, seed)
    rows, _ = margins(search, X, y)
    _, gamma = separator(rows)
    radius = float(np.linalg.norm(rows, axis=1).max())
    assert gamma > 0
    for rule in ("perceptron", rules.Perceptron(2.0, 1.0), rules.PA1(1.0), rules.Mira(1.0)):
        for kind in (Exhaustive, Rivals):
            fitted = StructuredPerceptron(kind(search.candidates, search.of), rule=rule)
            bound = fitted.mistake_bound(radius, gamma)
            fitted.set_params(max_iter=int(bound) + 2 if fitted.bounds_updates else 30).fit(X, y)
            assert fitted.n_mistakes_ <= bound
            if fitted.bounds_updates:
                assert fitted.n_updates_ <= bound
                assert fitted.stop_reason_ == "converged"
                assert fitted.set_params(keep="last").predict(X) == y
    plain = StructuredPerceptron(search)
    assert plain.mistake_bound(radius, gamma) == pytest.approx(bounds.collins(radius, gamma))


@toys
def test_bound_with_a_margin_for_each_wrong_part(search, seed):
    X, y = toy_grammar(search, seed)
    rows, _ = margins(search, X, y)
    _, gamma = separator(rows)
    radius = float(np.linalg.norm(rows, axis=1).max())
    fitted = StructuredPerceptron(Rivals(search.candidates, search.of), margin=0.5)
    bound = fitted.mistake_bound(radius, gamma, largest_loss=max(map(len, X)))
    fitted.set_params(max_iter=int(bound) + 2).fit(X, y)
    assert fitted.n_mistakes_ <= fitted.n_updates_ <= bound
    assert fitted.stop_reason_ == "converged"
    w = fitted.set_params(keep="last").weights_
    for x, gold in zip(X, y, strict=True):
        for path in search.candidates(x):
            ahead = w.score(difference(search.of(x, gold), search.of(x, path)))
            assert path == gold or ahead > 0.5 * count_differences(gold, path)
    assert fitted.mistake_bound(radius, gamma) == math.inf
    assert clone(fitted).set_params(rule=rules.PA1(1.0)).mistake_bound(radius, gamma, 3) == math.inf


@pytest.mark.parametrize("seed", range(5))
def test_bound_of_one_pass_over_what_no_weights_separate(seed):
    X, y = corpus(seed, size=10, longest=3)
    rows, owners = margins(CHAINS, X, y)
    rng = np.random.default_rng(seed)
    radius = float(np.linalg.norm(rows, axis=1).max())
    fitted = StructuredPerceptron(CHAINS, max_iter=1).fit(X, y)
    separating = separator(rows)[0]
    for u in [separating, *rng.normal(size=(20, rows.shape[1])), rows.sum(axis=0)]:
        scores = rows @ (u / np.linalg.norm(u))
        worst = [min(scores[j] for j in range(len(rows)) if owners[j] == i) for i in range(len(X))]
        for gamma in (0.1, 1.0, 3.0):
            assert fitted.n_updates_ <= bounds.collins(radius, gamma, bounds.shortfall(worst, gamma))


# In shards


def mixed(search, X, y, epochs, shards):
    """Iterative parameter mixing by its definition: (weights, mean of all weights passed through, mistakes)."""
    w, passed, mistakes = {}, [], 0
    for order in epochs:
        ends = []
        for part in np.array_split(order, shards):
            own = {name: Fraction(value) for name, value in w.items()}
            for i in part:
                rivals = [path for path in search.candidates(X[i]) if path != y[i]]
                best = max(rivals, key=lambda path: dot(own, search.of(X[i], path)))
                delta = difference(search.of(X[i], y[i]), search.of(X[i], best))
                if dot(own, delta) <= 0:
                    mistakes += 1
                    for name, value in delta.items():
                        own[name] = own.get(name, 0) + value
                passed.append(dict(own))
            ends.append(own)
        names = {name for end in ends for name in end}
        w = {name: sum(end.get(name, 0) for end in ends) / Fraction(len(ends)) for name in names}
    names = {name for one in passed for name in one}
    return w, {name: sum(one.get(name, 0) for one in passed) / len(passed) for name in names}, mistakes


@pytest.mark.parametrize("shards", [2, 4])
def test_shards_are_mixed_after_every_epoch(shards):
    X, y = corpus(size=8, longest=3)
    search = Rivals(all_tags, tagging)
    fitted = StructuredPerceptron(search, shards=shards, order="cyclic", max_iter=3).fit(X, y)
    w, average, mistakes = mixed(search, X, y, [range(8)] * 3, shards)
    assert fitted.n_mistakes_ == fitted.n_updates_ == mistakes
    assert fitted.n_seen_ == 24
    close(fitted.weights_, average)
    close(fitted.set_params(keep="last").weights_, w)


@toys
def test_bound_of_shards(search, seed):
    X, y = toy_grammar(search, seed)
    rows, _ = margins(search, X, y)
    _, gamma = separator(rows)
    radius = float(np.linalg.norm(rows, axis=1).max())
    fitted = StructuredPerceptron(Rivals(search.candidates, search.of), shards=3, max_iter=10_000, keep="last").fit(X, y)
    assert fitted.n_updates_ <= fitted.mistake_bound(radius, gamma)
    assert fitted.mistake_bound(radius, gamma) == pytest.approx(bounds.parameter_mixing(radius, gamma, 3))
    assert fitted.stop_reason_ == "converged"
    assert fitted.predict(X) == y
    assert clone(fitted).set_params(rule=rules.PA1(1.0)).mistake_bound(radius, gamma) == math.inf


def test_processes_change_nothing():
    X, y = corpus(size=10, longest=3)
    one, two = (StructuredPerceptron(CHAINS, shards=3, n_jobs=jobs, max_iter=2).fit(X, y) for jobs in (1, 2))
    assert state(one) == state(two)
    assert one.history_[0].mistakes == two.history_[0].mistakes
    assert two.predict(X) == one.predict(X)
    assert two.predict([]) == []


def test_more_shards_than_examples():
    X, y = corpus(size=3)
    many, three = (StructuredPerceptron(CHAINS, shards=shards).fit(X, y) for shards in (7, 3))
    assert state(many) == state(three)


def test_an_error_in_a_shard_names_the_example():
    X, y = corpus(size=6)
    with pytest.raises(ZeroDivisionError) as raised:
        StructuredPerceptron(Breaks(all_tags, tagging), shards=2).fit([*X, ("!",)], [*y, ("a",)])
    assert any("example 7" in note for note in raised.value.__notes__)


def test_what_shards_cannot_do_is_refused():
    X, y = corpus()
    with pytest.raises(ValueError, match="partial_fit learns a stream in its order and takes no shards; got shards=2"):
        StructuredPerceptron(CHAINS, shards=2).partial_fit(X, y)
    with pytest.raises(ValueError, match="shards=2 and max_updates=3 cannot be used together"):
        StructuredPerceptron(CHAINS, shards=2, max_updates=3).fit(X, y)
    with pytest.raises(ValueError, match="shards must be a whole number"):
        StructuredPerceptron(CHAINS, shards=0).fit(X, y)


# Laws


def state(fitted):
    model = fitted._model
    return dict(model.w), model.drift, model.seen, model.updates, model.refused


@pytest.mark.parametrize("cuts", [[1, 2, 3], [7], list(range(1, 12))])
def test_any_chunking_is_the_same(cuts):
    X, y = corpus()
    for kind in (CHAINS, Rivals(all_tags, tagging)):
        whole, cut = StructuredPerceptron(kind, margin=0.5).partial_fit(X, y), StructuredPerceptron(kind, margin=0.5)
        for begin, end in zip([0, *cuts], [*cuts, len(X)], strict=True):
            cut.partial_fit(X[begin:end], y[begin:end])
        assert state(whole) == state(cut)
        counts = ("n_mistakes_", "n_updates_", "n_seen_", "n_refused_")
        assert [getattr(whole, name) for name in counts] == [getattr(cut, name) for name in counts]
        assert (cut.stop_reason_, cut.history_) == ("partial_fit", [])


def test_seed_fixes_every_byte():
    X, y = corpus()
    one, two, other = (StructuredPerceptron(CHAINS, random_state=seed).fit(X, y) for seed in (3, 3, 4))
    assert pickle.dumps(one._model) == pickle.dumps(two._model)
    assert state(one) != state(other)


@given(sentences(), st.randoms())
def test_order_of_features_does_not_matter(data, random):
    class Scrambled(Exhaustive):
        def features(self, x, path):
            items = [(name, value / 3) for name, value in tagging(x, path).items()]
            random.shuffle(items)
            return dict(items)

        def decode(self, x, w):
            return max(self.candidates(x), key=lambda path: w.score(self.features(x, path)))

    X, y = data
    one, two = (StructuredPerceptron(Scrambled(all_tags, tagging)).partial_fit(X, y) for _ in range(2))
    assert state(one) == state(two)


def test_any_container_will_do():
    X, y = corpus()
    expected = state(StructuredPerceptron(CHAINS).fit(X, y))
    held = np.empty(len(X), object)
    held[:] = X
    for inputs, golds in [
        (tuple(X), tuple(y)),
        (iter(X), iter(y)),
        (held, [list(path) for path in y]),
        (held, [np.array(path) for path in y]),
        (pd.Series(X, index=range(20, 8, -1)), pd.Series(y, index=range(12))),
    ]:
        fitted = StructuredPerceptron(CHAINS).fit(inputs, golds)
        assert state(fitted) == expected
        assert fitted.predict(held) == fitted.predict(pd.Series(X, index=range(20, 8, -1))) == fitted.predict(iter(X))


def test_prediction_is_pure():
    X, y = corpus()
    fitted = StructuredPerceptron(CHAINS).fit(X, y)
    before = pickle.dumps(fitted)
    first = fitted.predict(X)
    assert first == fitted.predict(X) == [fitted.predict([x])[0] for x in X]
    fitted.score(X, y)
    fitted.explain(X[0])
    assert pickle.dumps(fitted) == before
    assert fitted.predict([]) == []


class Breaks(Exhaustive):
    """A search that fails on one word, or finds features that are no numbers."""

    value = 1.0

    def features(self, x, path):
        if "!" in x:
            raise ZeroDivisionError("no such word")
        return {**tagging(x, path), ("odd", *path): self.value if "?" in x else 1.0}


@pytest.mark.parametrize(
    ("bad", "value", "error"),
    [("!", 1.0, ZeroDivisionError), ("?", math.nan, ValueError), ("?", math.inf, ValueError), ("?", "x", TypeError)],
)
def test_an_error_leaves_the_estimator_as_it_was(bad, value, error):
    X, y = corpus()
    search = Breaks(all_tags, tagging)
    search.value = value
    fitted = StructuredPerceptron(search).partial_fit(X[:6], y[:6])
    before, attributes = state(fitted), {name: value for name, value in vars(fitted).items() if name != "_model"}
    saved = pickle.dumps(fitted._model)
    for learn in (fitted.partial_fit, fitted.fit, fitted.set_params(warm_start=True).fit):
        with pytest.raises(error) as raised:
            learn([*X[6:], (bad,)], [*y[6:], ("c",)])
        assert any("example 7" in note for note in raised.value.__notes__)
        assert state(fitted) == before
        assert pickle.dumps(fitted._model) == saved
        assert {name: value for name, value in vars(fitted).items() if name not in ("_model", "warm_start")} == {
            name: value for name, value in attributes.items() if name != "warm_start"
        }
    fresh = StructuredPerceptron(search)
    with pytest.raises(error):
        fresh.partial_fit([(bad,)], [("c",)])
    assert not hasattr(fresh, "_model")


def test_weights_that_overflow_are_told():
    search = Exhaustive(all_tags, lambda x, path: {("odd", *path): 1e200})
    with pytest.raises(ValueError, match="not a finite number"):
        StructuredPerceptron(search).fit([("u",)], [("b",)])
    search = Exhaustive(all_tags, lambda x, path: {("odd", *path): 1e150})
    with pytest.raises(ValueError, match="too large"):
        StructuredPerceptron(search, rule=rules.Perceptron(0.0, 1e10)).fit([("u",)], [("b",)])


def test_going_on_equals_never_having_stopped(tmp_path):
    X, y = corpus()
    through = StructuredPerceptron(CHAINS, margin=0.5, rule=rules.PA1(0.3)).partial_fit(X[:6], y[:6])
    pickled = pickle.loads(pickle.dumps(through))
    through.save(tmp_path / "model", resume=True)
    loaded = StructuredPerceptron.load(tmp_path / "model", CHAINS)
    assert loaded.get_params() | {"search": CHAINS} == through.get_params()
    for twin in (pickled, loaded):
        assert state(twin.partial_fit(X[6:], y[6:])) == state(
            clone(through).partial_fit(X[:6], y[:6]).partial_fit(X[6:], y[6:])
        )
    assert state(through.partial_fit(X[6:], y[6:])) == state(loaded)
    assert (loaded.n_mistakes_, loaded.n_seen_) == (through.n_mistakes_, 12)


def test_a_file_holds_what_predicts(tmp_path):
    X, y = corpus()
    fitted = StructuredPerceptron(CHAINS).fit(X, y)
    fitted.save(tmp_path / "model")
    loaded = StructuredPerceptron.load(tmp_path / "model", CHAINS)
    assert loaded.weights_ == fitted.weights_
    assert loaded.predict(X) == fitted.predict(X)
    assert (loaded.history_, loaded.n_refused_) == ([epoch._replace(seconds=None) for epoch in fitted.history_], 0)
    with pytest.raises(ValueError, match="prediction only"):
        loaded.partial_fit(X, y)
    with pytest.raises(TypeError, match="search must be an object"):
        StructuredPerceptron.load(tmp_path / "model")
    odd = StructuredPerceptron(Exhaustive(all_tags, lambda x, path: {frozenset(path): 1})).fit([("u",)], [("b",)])
    with pytest.raises(TypeError, match="cannot be saved"):
        odd.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    (tmp_path / "model").write_bytes(b"nothing")
    with pytest.raises(container.UnreadableModel):
        StructuredPerceptron.load(tmp_path / "model", CHAINS)


def test_manners_of_scikit_learn():
    X, y = corpus(size=20)
    learner = StructuredPerceptron(CHAINS, max_iter=3)
    assert clone(learner).get_params()["max_iter"] == 3
    scores = cross_val_score(learner, X, y, cv=4)
    assert scores.shape == (4,)
    assert 0.3 < scores.mean() <= 1.0
    grid = GridSearchCV(learner, {"keep": ["average", "last"], "rule": ["perceptron", rules.PA1(0.1)]}, cv=2).fit(X, y)
    assert grid.best_score_ >= 0.3
    assert len(grid.predict(X[:2])) == 2
    with pytest.raises(AttributeError, match="not fitted"):
        _ = learner.weights_


# Stopping


def test_reasons_to_stop(capsys):
    X, y = corpus(size=20)
    y[0] = (*y[0][:-1], "a" if y[0][-1] != "a" else "b")
    X, y = [*X, X[0]], [*y, corpus(size=20)[1][0]]  # one sentence, two readings: there is always an update
    always = {"max_iter": 200, "random_state": 1}
    reasons = {
        "max_iter": {"max_iter": 3},
        "max_updates": {"max_updates": 4},
        "max_seconds": {"max_seconds": 1e-9},
        "training_error": {"tol": 0.5, "n_iter_no_change": 2},
        "validation_error": {"early_stopping": True, "tol": 0.5, "n_iter_no_change": 2, "validation_fraction": 0.3},
    }
    for reason, params in reasons.items():
        fitted = StructuredPerceptron(CHAINS, **always | params).fit(X, y)
        assert fitted.stop_reason_ == reason
        assert len(fitted.history_) == fitted.n_iter_
    assert fitted.n_seen_ == fitted.n_iter_ * 15  # six of the 21 are held out
    assert all(epoch.validation_error is not None for epoch in fitted.history_)
    assert StructuredPerceptron(CHAINS, max_updates=4).fit(X, y).n_updates_ == 4
    assert capsys.readouterr().err == ""
    StructuredPerceptron(CHAINS, max_iter=2, verbose=1).fit(X, y)
    assert capsys.readouterr().err.count("epoch") == 2


def test_validation_data_are_judged_by_the_weights_that_predict():
    X, y = corpus(size=20)
    fitted = StructuredPerceptron(CHAINS, max_iter=4).fit(X[:12], y[:12], X_val=X[12:], y_val=y[12:])
    assert fitted.history_[-1].validation_error == pytest.approx(1 - fitted.score(X[12:], y[12:]))
    assert fitted.history_[-1].norm == pytest.approx(math.sqrt(sum(v * v for v in fitted._model.w.values())))
    with pytest.raises(ValueError, match="must be passed together"):
        fitted.fit(X, y, X_val=X)


def test_a_callback_is_told_of_every_epoch_and_may_stop():
    pytest.importorskip("sklearn.callback")
    X, y = corpus()
    watcher = Watcher()
    fitted = StructuredPerceptron(CHAINS).set_callbacks(watcher).fit(X, y)
    assert (watcher.epochs, fitted.n_iter_, fitted.stop_reason_) == (2, 2, "callback")
    assert watcher.last == fitted.score(X, y)


class Watcher:
    """A callback that asks to stop after the second epoch."""

    epochs, last = 0, None

    def setup(self, estimator, context):
        """Nothing to get ready."""

    def teardown(self, estimator, context):
        """Nothing to clear away."""

    def on_fit_task_begin(self, estimator, context):
        """Nothing to note."""

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        if context.task_name != "epoch":
            return False
        self.epochs += 1
        self.last = fitted_estimator.score(X, y)
        return self.epochs == 2


def test_warm_start_goes_on():
    X, y = corpus()
    fitted = StructuredPerceptron(CHAINS, order="cyclic", max_iter=1, warm_start=True).fit(X, y).fit(X, y)
    assert state(fitted) == state(StructuredPerceptron(CHAINS).partial_fit(X, y).partial_fit(X, y))
    assert fitted.n_seen_ == len(X)


# Reading what was learned


def test_explanations_add_up():
    X, y = corpus()
    fitted = StructuredPerceptron(CHAINS).fit(X, y)
    x = ("u", "v")
    why = fitted.explain(x)
    assert why.label == fitted.predict([x])[0]
    assert why.score == pytest.approx(sum(why.contributions.values()))
    assert list(map(abs, why.contributions.values())) == sorted(map(abs, why.contributions.values()), reverse=True)
    other = ("c", "c") if why.label != ("c", "c") else ("a", "a")
    ahead = fitted.explain(x, against=other)
    assert ahead.score == pytest.approx(why.score - fitted.explain(x, other).score)
    assert ahead.score >= 0


def test_weights_are_for_reading():
    w = NamedWeights({"a": 1.0})
    assert (w["a"], w["b"], len(w)) == (1.0, 0.0, 1)
    assert w.score(Counter("aab")) == 2.0
    assert w.score({}) == 0.0
    assert math.isnan(w.score({"a": math.inf}))
    assert math.isnan(NamedWeights({"a": 1e300, "b": 1e300}).score({"a": 1e10, "b": -1e10}))
    for change in (
        lambda: w.update(b=2.0),
        lambda: w.__setitem__("b", 2.0),
        lambda: w.pop("a"),
        lambda: w.clear(),
        lambda: w.setdefault("b", 1.0),
        lambda: w.__delitem__("a"),
        lambda: w.popitem(),
        lambda: w.__ior__({"b": 2.0}),
    ):
        with pytest.raises(TypeError, match="change only by learning"):
            change()
    assert isinstance(pickle.loads(pickle.dumps(w)), NamedWeights)
    assert type(w.copy()) is NamedWeights
    assert w.copy() == w == {"a": 1.0}


def test_directions_and_sums():
    assert direction({"a": 1, "b": 2, "z": 0}, {"b": 2, "c": 1, "y": 0}) == {"a": 1, "c": -1}
    assert direction({}, {"a": 2}) == {"a": -2}
    assert total([1e100, 1.0, -1e100]) == 1.0
    assert math.isnan(total([math.inf, -math.inf]))
    assert math.isnan(total([math.inf]))


def test_an_average_is_the_mean_of_all_weights():
    model, path = NamedModel(), []
    for tau in (1.0, 0.0, 2.0, 0.0, 0.5):
        if tau:
            model.push({"a": 1, "b": -tau}, tau)
        model.seen += 1
        path.append(dict(model.w))
    for name in "ab":
        assert model.freeze(True)[name] == pytest.approx(sum(w.get(name, 0) for w in path) / 5)
    assert model.freeze(False) == path[-1]


@pytest.mark.parametrize(
    ("gold", "path", "wrong"),
    [
        ("ab", "ab", 0), ("ab", "ac", 1), (["a", "b"], ("a", "b"), 0), (["a"], ("a", "b", "c"), 2), ([], (), 0), (7, 7, 0),
        (7, 8, 1), ({"a"}, {"a"}, 0), ([(1, "x"), (2, "y")], [[1, "x"], [2, "z"]], 1), (np.array([1, 2]), [1, 3], 1),
        (np.array([[1, 2], [3, 4]]), [(1, 2), (3, 5)], 1), ("a", ["a"], 1), (None, None, 0),
    ],
)  # fmt: skip
def test_how_many_parts_differ(gold, path, wrong):
    assert count_differences(gold, path) == count_differences(path, gold) == wrong


def test_how_many_parts_there_are():
    assert [count_parts(gold) for gold in ("abc", [1, 2], (), np.arange(4), {1, 2})] == [1, 2, 0, 4, 1]


def test_a_loss_of_its_own_is_what_is_right_and_what_is_scored():
    class Counted(Rivals):
        def loss(self, gold, path):
            return sum(gold) != sum(path)

    pairs = Counted(lambda x: product(range(3), repeat=2), lambda x, path: Counter([(x, "sum", sum(path)), (x, *path)]))
    fitted = StructuredPerceptron(Exhaustive(pairs.candidates, pairs.of)).fit(["u"], [(1, 1)])
    assert fitted.score(["u"], [(2, 0)]) < 1.0
    fitted.search = pairs
    assert fitted.score(["u"], [(2, 0)]) == 1.0


# Errors


@pytest.mark.parametrize("search", [None, "viterbi", Exhaustive, object(), partial(max)])
def test_what_is_no_search_is_refused(search):
    with pytest.raises(TypeError, match=r"methods decode\(x, w\) and features\(x, path\)"):
        StructuredPerceptron(search).fit([("u",)], [("a",)])


def test_what_does_not_fit_together_is_refused():
    learner = StructuredPerceptron(CHAINS)
    with pytest.raises(ValueError, match="X has 2 examples, y has 1"):
        learner.fit([("u",), ("v",)], [("a",)])
    with pytest.raises(ValueError, match="no example to learn from"):
        learner.fit([], [])
    with pytest.raises(TypeError, match="list of examples; got str"):
        learner.fit("uv", ["a", "b"])
    for params in ({"margin": -1}, {"keep": "vote"}, {"order": "random"}, {"rule": "mira"}, {"max_updates": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(params))} must be"):
            StructuredPerceptron(CHAINS, **params).fit([("u",)], [("a",)])
    odd = Exhaustive(all_tags, tagging)
    odd.violation = 3
    with pytest.raises(TypeError, match="violation must be a method; got"):
        StructuredPerceptron(odd).fit([("u",)], [("a",)])


def test_fractions_are_numbers():
    search = Exhaustive(all_tags, lambda x, path: {(word, tag): Fraction(1, 2) for word, tag in zip(x, path, strict=True)})
    fitted = StructuredPerceptron(search, keep="last").fit([("u", "v")], [("a", "b")])
    assert fitted.weights_ == {("v", "b"): 0.5, ("v", "a"): -0.5}
