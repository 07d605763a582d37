"""The graph parser equals plain Python to the last bit, keeps Collins's bound, and answers with a tree whatever it is
given."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from rosenblatt.rules import PA1, Perceptron, step
from rosenblatt.structured.features.templates import attributes_used
from rosenblatt.structured.graph import arc_learning, arcs, chu_liu_edmonds, eisner
from rosenblatt.structured.graph.parser import GraphParser
from rosenblatt.structured.trees import is_tree
from rosenblatt.testing.structured import trees

FIELDS = ("form", "tag")
TEMPLATES = (
    "form[h]",
    "tag[m]",
    "tag[h] distance[m]",
    "form[h] form[m]",
    "suffix3[h] tag[m]",
    "tag[h] tag[m] distance[m]",
    "tag[h-1] tag[h] tag[m] tag[m+1]",
    "tag[h] tag[b] tag[m]",
    "tag[b]",
)
OF_PAIRS = ("tag[s] form[m]", "tag[s] tag[m] distance[s]", "tag[h] tag[s] tag[m]", "form[s] tag[m]")
WORDS = (("a", "D"), ("cats", "N"), ("sleeps", "V"), ("red", "A"), ("dogs", "N"))


# Plain Python: features are texts


def distance(x, y):
    far = abs(x - y)
    return far if far <= 4 else 5 if far < 10 else 10


def value(x, attribute, place, at):
    if at is None:
        return "first"
    word = at + int(place[1:] or 0)
    if word == 0 or not 0 < word <= len(x):
        return "root" if word == 0 else "outside"
    form, tag = x[word - 1]
    return {"form": form, "tag": tag, "suffix3": form[-3:] if len(form) >= 3 else ""}[attribute]


def named(x, text, h, m, third):
    """The name of a template's feature, or nothing where it is silent."""
    found = []
    for attribute, place in (term.rstrip("]").split("[") for term in text.split()):
        if attribute == "distance":
            found.append(str(distance(m, h if place == "m" else third if third is not None else h)))
        else:
            at = {"h": h, "m": m}.get(place[0], third)
            found.append(value(x, attribute, place, at))
    return [] if "" in found else [(text, m > h, *found)]


def arc_features(x, h, m):
    names = []
    for text in TEMPLATES:
        thirds = range(min(h, m) + 1, max(h, m)) if "[b" in text else [0]
        names += [name for b in thirds for name in named(x, text, h, m, b)]
    return Counter(names)


def pair_features(x, h, m, s):
    texts = [text for text in OF_PAIRS if s != h or "[h" in text]
    return Counter(name for text in texts for name in named(x, text, h, m, s if s != h else None))


def before(heads):
    """The modifier before each word, seen from its head; the head for a first one."""
    found = []
    for m, h in enumerate(heads, 1):
        inner = [s for s in range(min(h, m) + 1, max(h, m)) if heads[s - 1] == h]
        found.append((max(inner) if h < m else min(inner)) if inner else h)
    return found


def features(x, heads, siblings):
    total = Counter()
    for m, (h, s) in enumerate(zip(heads, before(heads), strict=True), 1):
        total += arc_features(x, h, m)
        if siblings:
            total += pair_features(x, h, m, s)
    return total


def matrices(x, w, siblings):
    size = len(x) + 1
    scores, pairs = np.zeros((size, size)), np.zeros((size, size, size))
    for h in range(size):
        for m in range(1, size):
            if m != h:
                scores[h, m] = sum(w[name] * count for name, count in arc_features(x, h, m).items())
                for s in range(h, m) if h < m else range(m + 1, h + 1):
                    pairs[h, m, s] = sum(w[name] * count for name, count in pair_features(x, h, m, s).items()) * siblings
    return scores, pairs


def find(decoder, scores, pairs):
    if decoder == "chu-liu-edmonds":
        return chu_liu_edmonds.best_tree(scores, True)
    return eisner.best_tree_with_siblings(scores, pairs, True)


def learned(X, golds, decoder, siblings, margin, rule, threshold, epochs):
    """(w, sum of w after each sentence, updates, mistakes), with every tree scored by adding up its features' weights."""
    w, total, updates, mistakes = Counter(), Counter(), 0, 0
    for _ in range(epochs):
        for x, gold in zip(X, golds, strict=True):
            scores, pairs = matrices(x, w, siblings)
            every = [(sum(w[f] * n for f, n in features(x, z, siblings).items()), z) for z in possible(len(x), decoder)]
            gold_score = next(score for score, z in every if z == gold)
            mistakes += any(score >= gold_score for score, z in every if z != gold)
            cost = scores + margin + arc_learning.TIE
            for m, h in enumerate(gold, 1):
                cost[h, m] = scores[h, m]
            guess = tuple(find(decoder, cost, pairs).tolist())
            wrong = sum(a != b for a, b in zip(guess, gold, strict=True))
            score = {z: s for s, z in every}[guess]
            best = max(
                s + (margin + arc_learning.TIE) * sum(a != b for a, b in zip(z, gold, strict=True)) for s, z in every
            )
            assert score + (margin + arc_learning.TIE) * wrong == best
            if wrong:
                delta = features(x, gold, siblings)
                delta.subtract(features(x, guess, siblings))
                m = gold_score - score + (threshold - margin * wrong if margin else 0)
                tau = step(rule, m, sum(n * n for n in delta.values()), updates + 1, True)
                if tau:
                    updates += 1
                    for name, n in delta.items():
                        w[name] += tau * n
            for name, n in w.items():
                total[name] += n
    return w, total, updates, mistakes


def possible(n, decoder):
    return list(trees(n, projective=decoder == "eisner", single_root=True))


@st.composite
def treebanks(draw, decoder):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = [[WORDS[i] for i in rng.integers(len(WORDS), size=n)] for n in rng.integers(1, 5, size=draw(st.integers(1, 4)))]
    return X, [possible(len(x), decoder)[rng.integers(len(possible(len(x), decoder)))] for x in X]


def with_labels(golds):
    return [[(h, "up" if h > m else "down" if h else "root") for m, h in enumerate(gold, 1)] for gold in golds]


def parser(decoder="eisner", **parameters):
    siblings = decoder == "eisner"
    return GraphParser(
        fields=FIELDS,
        templates=TEMPLATES + (OF_PAIRS if siblings else ()),
        decoder=decoder,
        **{"candidates": None, "order": "cyclic", "max_iter": 3, "labelled": False} | parameters,
    )


@pytest.mark.parametrize("decoder", ["eisner", "chu-liu-edmonds"])
@settings(max_examples=12)
@given(data=st.data(), margin=st.sampled_from([0, 1, 3]))
def test_learning_equals_plain_python(decoder, data, margin):
    X, golds = data.draw(treebanks(decoder))
    siblings = decoder == "eisner"
    w, total, updates, mistakes = learned(X, golds, decoder, siblings, margin, Perceptron(0.0, 1.0), 0.0, 3)
    fitted = parser(decoder, margin=float(margin)).fit(X, with_labels(golds))
    epochs = len(fitted.history_)  # it stops when nothing moves any more
    assert (fitted.n_updates_, fitted.n_mistakes_) == (updates, mistakes)
    assert fitted.history_[-1].norm ** 2 == pytest.approx(sum(n * n for n in w.values()))
    model = fitted._model
    for x in X:
        scores, pairs = matrices(x, w, siblings)
        found = arc_learning.score_arcs(
            fitted._decoder(model), *model.learning[:2], model.fields.values([x])[0], 0, np.empty(0, np.int32)
        )
        real = ~np.eye(len(x) + 1, dtype=bool)
        real[:, 0] = False
        np.testing.assert_array_equal(found.scores[real], scores[real])
        if siblings:
            np.testing.assert_array_equal(found.siblings, pairs)
        if epochs == 3:
            scores, pairs = matrices(x, Counter({f: n / (3 * len(X)) for f, n in total.items()}), siblings)
            tree = [h for h, _ in fitted.predict([x])[0]]
            best = find(decoder, scores, pairs)
            assert of(tree, scores, pairs) == pytest.approx(of(best, scores, pairs), abs=1e-4)


def test_pairs_of_siblings_are_learned_where_the_head_was_right_and_the_word_between_was_not():
    """The same sentence with two trees: in both the last word hangs on the second, but only in one beside the third."""
    X, golds = [list(WORDS[:4])] * 2, [(2, 0, 2, 2), (2, 0, 4, 2)]
    w, _, updates, mistakes = learned(X, golds, "eisner", True, 0, Perceptron(0.0, 1.0), 0.0, 3)
    fitted = parser(margin=0.0).fit(X, with_labels(golds))
    assert (fitted.n_updates_, fitted.n_mistakes_) == (updates, mistakes)
    assert fitted.history_[-1].norm ** 2 == pytest.approx(sum(n * n for n in w.values()))


def of(heads, scores, pairs):
    return sum(scores[h, m] + pairs[h, m, s] for m, (h, s) in enumerate(zip(heads, before(heads), strict=True), 1))


@settings(max_examples=8)
@given(data=st.data())
def test_a_rule_that_asks_for_the_length_gets_the_true_one(data):
    X, golds = (part[:1] for part in data.draw(treebanks("eisner")))  # after one step, rounding may decide between equals
    w, _, updates, _ = learned(X, golds, "eisner", True, 2, PA1(5.0), 1.0, 1)
    fitted = parser(margin=2.0, rule=PA1(5.0), max_iter=1).fit(X, with_labels(golds))
    assert fitted.n_updates_ == updates
    assert fitted.history_[-1].norm == pytest.approx(np.sqrt(sum(n * n for n in w.values())), abs=1e-5)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), candidates=st.sampled_from([None, 2]))
def test_collinss_bound(seed, candidates):
    """Trees that planted weights u tell apart by δ: at most R²/δ² updates, whatever the sieve lets through."""
    rng = np.random.default_rng(seed)
    u: dict = {}
    X, golds, gaps, radius = [], [], [], 0
    for n in rng.integers(2, 5, size=5):
        x = [WORDS[i] for i in rng.integers(len(WORDS), size=n)]
        known = {z: features(x, z, True) for z in possible(n, "eisner")}
        for names in known.values():
            for name in names:
                u.setdefault(name, int(rng.integers(-3, 4)))
        X.append(x)
        golds.append(known)
    kept = []
    for x, known in zip(X, golds, strict=True):
        ranked = sorted(known, key=lambda z: sum(u[f] * n for f, n in known[z].items()), reverse=True)
        best, second = (sum(u[f] * n for f, n in known[z].items()) for z in ranked[:2])
        if best > second:
            kept.append((x, ranked[0]))
            gaps.append(best - second)
            for z in ranked[1:]:
                delta = Counter(known[ranked[0]])
                delta.subtract(known[z])
                radius = max(radius, sum(n * n for n in delta.values()))
    if not kept:
        return
    fitted = parser(margin=0.0, max_iter=500, candidates=candidates).fit(
        [x for x, _ in kept], with_labels(z for _, z in kept)
    )
    delta = min(gaps) / np.sqrt(sum(n * n for n in u.values()))
    assert 0 < fitted.n_updates_ <= radius / delta**2
    assert fitted.stop_reason_ == "converged"
    if candidates is None:
        found = fitted.set_params(keep="last").predict([x for x, _ in kept])
        assert [tuple(h for h, _ in tree) for tree in found] == [z for _, z in kept]


# What a parser is for


X = [
    [("the", "D"), ("cat", "N"), ("sleeps", "V")],
    [("dogs", "N"), ("chase", "V"), ("the", "D"), ("red", "A"), ("cat", "N")],
    [("sleep", "V")],
    [],
    [("a", "D"), ("dog", "N"), ("barks", "V"), ("loudly", "R")],
]
Y = [
    [(2, "det"), (3, "nsubj"), (0, "root")],
    [(2, "nsubj"), (0, "root"), (5, "det"), (5, "amod"), (2, "obj")],
    [(0, "root")],
    [],
    [(2, "det"), (3, "nsubj"), (0, "root"), (3, "advmod")],
]


@pytest.fixture(scope="module")
def fitted():
    return GraphParser(fields=FIELDS).fit(X, Y)


def test_it_learns_what_it_saw(fitted):
    assert fitted.predict(X) == Y
    assert fitted.score(X, Y) == 1
    assert fitted.predict([]) == []


def test_learning_starts_from_ties():
    """At w = 0 every tree is as good as gold; that counts against gold, whatever the decoder would have chosen."""
    for decoder in ("eisner", "chu-liu-edmonds"):
        for gold in possible(3, decoder):
            one = parser(decoder, margin=0.0, max_iter=1).fit([X[0]], with_labels([gold]))
            assert (one.n_mistakes_, one.n_updates_) == (1, 1)


def test_a_stream_may_be_cut_anywhere():
    whole = GraphParser(fields=FIELDS).partial_fit(X * 2, Y * 2)
    cut = GraphParser(fields=FIELDS)
    for x, y in zip(X * 2, Y * 2, strict=True):
        cut.partial_fit([x], [y])
    assert (cut.n_seen_, cut.n_updates_, cut.n_mistakes_) == (whole.n_seen_, whole.n_updates_, whole.n_mistakes_)
    for one, other in zip(whole._model.learning[:2], cut._model.learning[:2], strict=True):
        for a, b in zip(as_sorted(one.weights), as_sorted(other.weights), strict=True):
            np.testing.assert_array_equal(a, b)
    assert whole.predict(X) == cut.predict(X)


def as_sorted(table):
    live = np.flatnonzero(table.slots[:, 0])
    live = live[np.argsort(table.slots[live, 0])]
    return table.slots[live], table.drift[live]


@pytest.mark.parametrize("resume", [False, True])
def test_a_model_comes_back_from_its_file(fitted, tmp_path, resume):
    path = tmp_path / "parser.model"
    fitted.save(path, resume=resume)
    back = GraphParser.load(path)
    assert back.predict(X) == fitted.predict(X)
    assert back.get_params() == fitted.get_params()
    if resume:
        again = clone(fitted).fit(X, Y)
        assert (
            back.partial_fit(X, Y).n_updates_ - fitted.n_updates_ == again.partial_fit(X, Y).n_updates_ - fitted.n_updates_
        )
        assert back.predict(X) == again.predict(X)
    else:
        with pytest.raises(ValueError, match="prediction only"):
            back.partial_fit(X, Y)


def test_threads_do_not_change_the_answers(fitted):
    many = X * 40
    assert clone(fitted).set_params(n_jobs=2).fit(X, Y).predict(many) == fitted.predict(many)


def test_scikit_learn_can_cut_and_fit_it():
    assert cross_val_score(GraphParser(fields=FIELDS, max_iter=2), X[:3] * 2, Y[:3] * 2, cv=2).shape == (2,)


def test_validation_is_counted():
    watched = GraphParser(fields=FIELDS, max_iter=2).fit(X, Y, [X[0]], [[(2, "never seen"), (3, "nsubj"), (0, "root")]])
    assert watched.history_[-1].validation_error == pytest.approx(1 / 3)


@pytest.mark.parametrize("single_root", [False, True])
def test_a_long_sentence_is_parsed_in_pieces(fitted, single_root):
    words = [X[1][i % 5] for i in range(503)]
    parser = clone(fitted).set_params(max_length=100, single_root=single_root).fit(X, Y)
    heads = [h for h, _ in parser.predict([words])[0]]
    assert is_tree(heads, single_root)
    first = [h for h, _ in parser.predict([words[:100]])[0]]
    assert heads[:100] == first
    gold = [(i, "dep" if i else "root") for i in range(503)]
    assert clone(parser).fit([words, *X], [gold, *Y]).n_too_long_ == 1


@settings(max_examples=20)
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=2)), max_size=12))
def test_any_text_has_a_tree(sentence):
    parser = GraphParser(fields=FIELDS, max_iter=1, candidates=2).fit(X, Y)
    for decoder in ("eisner", "chu-liu-edmonds"):
        heads = [h for h, _ in predict_with(parser, decoder, [sentence, [("😀" * 10_000, "שלום")]])[0]]
        assert len(heads) == len(sentence)
        assert is_tree(heads, True)


def predict_with(parser, decoder, X):
    if decoder == parser.decoder:
        return parser.predict(X)
    other = GraphParser(**parser.get_params() | {"decoder": decoder})
    other._model = parser._model
    with pytest.warns(UserWarning, match="learned with decoder='eisner'"):
        return other.predict(X)


def test_gold_that_is_not_projective_is_learned_from_and_counted():
    gold = [(3, "a"), (0, "root"), (2, "b"), (1, "c")]  # 1 hangs on 3, 4 on 1: 2 is crossed
    sentence = X[4]
    projective = GraphParser(fields=FIELDS, max_iter=20).fit([sentence], [gold])
    assert projective.n_nonprojective_ == 1
    assert is_tree([h for h, _ in projective.predict([sentence])[0]], True)
    any_tree = GraphParser(fields=FIELDS, decoder="chu-liu-edmonds", max_iter=20).fit([sentence], [gold])
    assert any_tree.predict([sentence]) == [gold]


def test_what_is_no_tree_is_refused_by_its_number(fitted):
    cases = {
        "sentence 2.*cycle": [Y[0], [(2, "a"), (1, "b"), (1, "c"), (1, "d"), (1, "e")]],
        "sentence 2.*head 9": [Y[0], [(9, "a"), *Y[1][1:]]],
        "sentence 1 has 3 words": [Y[0][:2], Y[1]],
        "sentence 2 has more than one word with head 0": [Y[0], [(0, "root"), *Y[1][1:]]],
    }
    for message, trees_given in cases.items():
        before = fitted.predict(X)
        with pytest.raises(ValueError, match=message):
            fitted.fit(X[:2], trees_given)
        assert fitted.predict(X) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"decoder": "eisener"}, "decoder must be one of"),
        ({"decoder": "chu-liu-edmonds", "siblings": True}, "NP-hard"),
        ({"siblings": False, "templates": ("tag[s] tag[m]",)}, "look at no sibling"),
        ({"templates": ("tag[q]",)}, "no place is called 'q'"),
        ({"templates": ("lemma[h]",)}, "got 'lemma'"),
        ({"templates": ("tag[b] tag[s]",)}, "not at both"),
        ({"templates": ("tag[h] distance[h]",)}, r"distance\[m\] goes with"),
        ({"label_templates": ("lefts[g]",)}, "is asked of h and m only"),
        ({"candidates": 0}, "candidates must be"),
        ({"siblings": "yes"}, "siblings must be"),
    ],
)
def test_what_cannot_be_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GraphParser(fields=FIELDS, **parameters).fit(X, Y)


def test_what_has_changed_since_is_refused(fitted):
    other = GraphParser(**fitted.get_params() | {"candidates": None})
    other.__dict__.update({name: value for name, value in fitted.__dict__.items() if name not in other.get_params()})
    with pytest.raises(ValueError, match="has changed since this model began"):
        other.partial_fit(X, Y)


def test_all_fields_are_looked_at():
    fields = ("form", "upos", "xpos", "feats")
    assert set(fields) <= set(attributes_used(GraphParser(fields=fields)._every_template()))


def test_templates_may_come_in_any_order():
    forwards = parser(labelled=True).fit(X, Y)
    backwards = parser(labelled=True)
    backwards.templates = backwards.templates[::-1]
    assert backwards.fit(X, Y).predict(X) == forwards.predict(X)
    assert backwards.history_[-1].norm == forwards.history_[-1].norm


def test_without_tags_the_shape_and_the_end_of_words_stand_in():
    bare = [[word for word, _ in sentence] for sentence in X]
    assert GraphParser(fields=("form",)).fit(bare, Y).predict(bare) == Y


def test_distances_are_binned_as_said():
    bins = [int(arcs.NEAR[min(far, 10)]) for far in (1, 2, 3, 4, 5, 9, 10, 99)]
    assert bins == [1, 2, 3, 4, 5, 5, 6, 6]
