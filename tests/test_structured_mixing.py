"""Taggers, parsers and the structured perceptron in shards: the mixture and the average are what their definitions say, and
an epoch of a shard is the same wherever and however often it is made."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from worked import tag_features

from rosenblatt import rules
from rosenblatt.engine.mixing import MixingTrainer, WeightChange, add_changes
from rosenblatt.engine.train import Limits, train
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import InvalidData, InvalidDataType
from rosenblatt.structured import GraphParser, SequenceTagger, StructuredPerceptron, TransitionParser
from rosenblatt.structured.shards import SentenceShard, common_model
from rosenblatt.structured.tags.schemes import first_violation
from rosenblatt.testing.structured import difference, dot

TAGS = "XYZ"
TEMPLATES = ("form[0]", "form[-1]", "form[0] form[1]")
HISTORY = (*TEMPLATES, "tag[-1] form[0]")
PLAIN = {"dropout": 0.0, "order": "cyclic", "scheme": None, "n_jobs": 1}


class ShardsHere:
    """Shards that learn in this process, one after the other: see `engine.mixing.Shards`."""

    def __init__(self, estimator, shards, seed=0):
        self.estimator, self.shards, self.seed = estimator, shards, seed

    def learn(self, model, number, order):
        done = [shard.learn(self.estimator, model, number, i, self.seed) for i, shard in enumerate(self.shards)]
        self.changes = [change for _, change in done]
        return [report for report, _ in done]

    def mix(self, shares):
        return add_changes([change.scaled(share) for change, share in zip(self.changes, shares, strict=True)])


def cut(X, y, sizes):
    """The parts of a corpus with these sizes, one after the other."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [(X[a:b], y[a:b]) for a, b in pairwise(ends)]


def mixing_trainer(estimator, parts, mixing="uniform", seed=0):
    shards = [SentenceShard(estimator, *part) for part in parts]
    model = common_model(estimator, [shard.names() for shard in shards])
    return MixingTrainer(model, ShardsHere(estimator, shards, seed), Visits(np.arange(0), "cyclic", None), mixing)


def fit(estimator, parts, mixing="uniform", seed=0):
    """The estimator, trained in shards."""
    fitted = clone(estimator)
    trainer = mixing_trainer(fitted, parts, mixing, seed)
    fitted.history_, fitted.stop_reason_ = train(trainer, Limits(fitted.max_iter))
    fitted._model, fitted.n_iter_ = trainer.model, len(fitted.history_)
    fitted.n_mistakes_ = fitted.n_updates_ = fitted.n_seen_ = 0
    return fitted


def toy(seed, sentences=8, longest=4):
    """Sentences over four words, whose tags depend on the word and on the one before; a tenth of the tags are wrong."""
    rng = np.random.default_rng(seed)
    X = [rng.choice(list("abcd"), rng.integers(1, longest + 1)).tolist() for _ in range(sentences)]
    y = [[TAGS[(ord(b) + (a == "a")) % 3] for a, b in pairwise(["", *x])] for x in X]
    return X, [[tag if rng.random() > 0.1 else "X" for tag in tags] for tags in y]


def treebank(seed, sentences=10):
    """Sentences of words and tags with trees of any shape, projective or not."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(sentences):
        n = int(rng.integers(2, 7))
        root, order = int(rng.integers(1, n + 1)), rng.permutation(np.arange(1, n + 1)).tolist()
        order.remove(root)
        heads, tree = {root: 0}, [root]
        for word in order:
            heads[word] = int(rng.choice(tree))
            tree.append(word)
        X.append([(str(rng.choice(list("vwxyz"))), str(rng.choice(list("NVD")))) for _ in range(n)])
        y.append([(heads[word], str(rng.choice(list("abc")))) for word in range(1, n + 1)])
    return X, y


class Tagging:
    """All tags of each word in turn, in Python."""

    def __init__(self, tags):
        self.tags = tags

    def features(self, x, path):
        counts = {}
        for name in [*zip(x, path, strict=True), *pairwise(path)]:
            counts[name] = counts.get(name, 0) + 1
        return counts

    def decode(self, x, w):
        return max(product(self.tags, repeat=len(x)), key=lambda path: w.score(self.features(x, path)))


CHUNKS = [["B-N", "I-N", "O"], ["O", "B-V"], ["B-N", "O", "B-N", "I-N"], ["O"], ["B-V", "I-V"], ["B-N", "B-V", "O"]]


def chunked():
    return [[f"{tag}{i % 2}" for i, tag in enumerate(tags)] for tags in CHUNKS], CHUNKS


def rows_of_matrices():
    rng = np.random.default_rng(3)
    X, y = toy(3)
    return [sparse.csr_array(rng.integers(-2, 3, (len(x), 5)).astype(float)) for x in X], y


def attributes():
    X, y = toy(4)
    return [[{"form": word, "size": 0.5 + i} for i, word in enumerate(x)] for x in X], y


LEARNERS = {
    "tagger": (SequenceTagger(HISTORY, markov=2, margin=1, dropout=0.3, random_state=1, n_jobs=1), toy(1)),
    "steps of any length": (SequenceTagger(HISTORY, rule=rules.PA1(0.3), margin=1, order="cyclic", n_jobs=1), toy(2)),
    "scheme": (SequenceTagger(TEMPLATES, margin=2, random_state=2, n_jobs=1), chunked()),
    "beam of tags": (SequenceTagger(TEMPLATES, search="beam", beam=2, **PLAIN), toy(5)),
    "matrix": (SequenceTagger(dropout=0.2, random_state=3, n_jobs=1), rows_of_matrices()),
    "attributes": (SequenceTagger(None, random_state=4, n_jobs=1), attributes()),
    "graph": (GraphParser(fields=("form", "upos"), margin=1, candidates=3, random_state=5, n_jobs=1), treebank(1)),
    "unlabelled": (
        GraphParser(fields=("form", "upos"), decoder="chu-liu-edmonds", labelled=False, order="cyclic", n_jobs=1),
        treebank(2),
    ),
    "transitions": (
        TransitionParser(fields=("form", "upos"), margin=2, explore=0.5, random_state=6, n_jobs=1),
        treebank(3),
    ),
    "beam of transitions": (TransitionParser(4, fields=("form", "upos"), margin=2, order="cyclic", n_jobs=1), treebank(4)),
    "search": (StructuredPerceptron(Tagging(TAGS), random_state=7), tuple(map(list, toy(6, longest=3)))),
}
LEARNERS["search"] = (LEARNERS["search"][0], (LEARNERS["search"][1][0], [tuple(tags) for tags in LEARNERS["search"][1][1]]))
every_learner = pytest.mark.parametrize("name", LEARNERS)


def of_table(name, parts):
    """The (w, drift) of each weight of a table of lists."""
    arrays = parts.arrays
    keys = np.repeat(arrays["keys"], arrays["sizes"]).tolist()
    numbers = zip(keys, arrays["outcomes"].tolist(), arrays["w"].tolist(), arrays["drift"].tolist(), strict=True)
    return {(name, key, outcome): (w, drift) for key, outcome, w, drift in numbers}


def of_array(name, keys, w, drift):
    """The same of an array of weights, whose first axis has these keys."""
    return {
        (name, key, place): pair
        for i, key in enumerate(keys)
        for place, pair in enumerate(zip(w[i].ravel().tolist(), drift[i].ravel().tolist(), strict=True))
    }


def weights_of(model):
    """The (w, drift) of all weights of a model, by name."""
    if hasattr(model, "nodes"):
        used = int(model.nodes.counts[0])
        found = of_array("node", model.nodes.keys[:used].tolist(), model.nodes.w[:used], model.nodes.drift[:used])
        for name, steps in (("pair", model.pairs), ("triple", model.triples)):
            if steps is not None:
                found |= of_array(name, range(len(steps.w)), steps.w, steps.drift)
        found |= {} if model.table is None else of_table("edge", model.table.to_parts())
    elif hasattr(model, "learning"):
        found = of_table("label", model.learning.labels.to_parts())
        for name, scorer in zip(("pruner", "scorer"), model.learning[:2], strict=True):
            parts = scorer.weights.to_parts().arrays
            found |= of_array(name, parts["names"].tolist(), parts["w"], parts["drift"])
    elif hasattr(model, "table"):
        found = of_table("action", model.table.to_parts())
    else:
        found = {name: (w, model.drift.get(name, 0.0)) for name, w in model.w.items()}
    return found


def moved(model):
    """The same of weights that are not 0, or were not."""
    return {name: pair for name, pair in weights_of(model).items() if pair != (0.0, 0.0)}


def last_and_average(model):
    found = weights_of(model)
    average = {
        name: Fraction(w) - Fraction(drift) / max(model.seen, 1) for name, (w, drift) in found.items() if np.isfinite(w)
    }
    return {name: w for name, (w, _) in found.items() if np.isfinite(w)}, average


def close(found, expected, tolerance):
    for name in {*found, *expected}:
        assert float(found.get(name, 0)) == pytest.approx(float(expected.get(name, 0)), rel=tolerance, abs=tolerance), name


# The definition


@every_learner
@pytest.mark.parametrize("drawn", ["uniform", "drawn"])
def test_the_mixture_and_the_average_are_those_of_the_definition(name, drawn):
    """Every shard's epoch is made a visit at a time, and what it passes through is added up as it stands."""
    estimator, (X, y) = LEARNERS[name]
    shards = [SentenceShard(estimator, *part) for part in cut(X, y, [3, 0, 1, len(X) - 4])]
    model, rng = common_model(estimator, [shard.names() for shard in shards]), np.random.default_rng(8)
    total, seen = {}, 0
    for number in range(1, 4):
        shares = [0.25] * 4 if drawn == "uniform" else rng.dirichlet(np.ones(4)).tolist()
        mixture, changes = {}, []
        start, _ = last_and_average(model)
        for i, (shard, share) in enumerate(zip(shards, shares, strict=True)):
            report, change = shard.learn(estimator, model, number, i, 5)
            assert report.seen == shard.size
            assert report.nbytes == change.nbytes
            changes.append(change.scaled(share))
            visits = Visits(np.arange(shard.size), estimator.order, np.random.default_rng([5, number, i]))
            trainer = estimator._shard_trainer(model, shard._corpus, visits, i)
            here, mistakes, updates = start, 0, 0
            for visit in visits.epoch():
                done, _ = trainer.epoch(np.array([visit]))
                here = start | last_and_average(trainer.model)[0]
                mistakes, updates, seen = mistakes + done.mistakes, updates + done.updates, seen + 1
                for weight, value in here.items():
                    total[weight] = total.get(weight, 0) + Fraction(value)
            assert (mistakes, updates) == (report.mistakes, report.updates)
            for weight, value in here.items():
                mixture[weight] = mixture.get(weight, 0) + Fraction(share) * Fraction(value)
        model.add_change(add_changes(changes))
        last, average = last_and_average(model)
        assert model.seen == seen
        whole_steps = drawn == "uniform" and name not in ("steps of any length", "search")  # sums that float32 can hold
        close(last, mixture, 0 if whole_steps else 1e-6)
        close(average, {weight: value / seen for weight, value in total.items()}, 1e-12 if whole_steps else 1e-6)
    assert any(value != 0 for value in average.values())
    assert model.norm() == pytest.approx(np.sqrt(sum(w * w for place, w in last.items() if place[0] != "pruner")), rel=1e-5)


@pytest.mark.parametrize("name", ["tagger", "graph", "transitions", "search"])
def test_each_weight_can_be_the_mean_of_the_shards_that_changed_it(name):
    estimator, (X, y) = LEARNERS[name]
    shards = [SentenceShard(estimator, *part) for part in cut(X, y, [3, 1, len(X) - 4])]
    model = common_model(estimator, [shard.names() for shard in shards])
    for number in (1, 2):
        start, ends, changes = last_and_average(model)[0], [], []
        for i, shard in enumerate(shards):
            changes.append(shard.learn(estimator, model, number, i, 0)[1].counted())
            visits = Visits(np.arange(shard.size), estimator.order, np.random.default_rng([0, number, i]))
            trainer = estimator._shard_trainer(model, shard._corpus, visits, i)
            trainer.epoch(visits.epoch())
            ends.append(start | last_and_average(trainer.model)[0])
        model.add_change(add_changes(changes).mean())
        expected = {}
        for weight in {weight for end in ends for weight in end}:
            steps = [Fraction(end.get(weight, 0)) - Fraction(start.get(weight, 0)) for end in ends]
            changed = sum(step != 0 for step in steps)
            expected[weight] = Fraction(start.get(weight, 0)) + sum(steps) / max(changed, 1)
        close(last_and_average(model)[0], expected, 1e-6)
        assert any(changed != 0 for changed in expected.values())


def naive_mixing(parts, epochs, margin, features):
    """(weights, mean of all weights passed through, updates) of taggers in shards: every sequence of tags is tried. Ties
    are in the tagger's order: from the right, what is not gold's, then what was met first."""
    met = list(dict.fromkeys(tag for _, y in parts for tags in y for tag in tags))
    w, total, seen, updates = {}, {}, 0, 0
    for _ in range(epochs):
        ends = []
        for X, y in parts:
            own = dict(w)
            for x, gold in zip(X, map(tuple, y), strict=True):
                rivals = [z for z in product(met, repeat=len(x)) if z != gold]
                rivals.sort(
                    key=lambda z, gold=gold: [(a == b, met.index(a)) for a, b in zip(z[::-1], gold[::-1], strict=True)]
                )
                costs = [margin * sum(a != b for a, b in zip(gold, z, strict=True)) for z in rivals]
                values = [dot(own, features(x, z)) + cost for z, cost in zip(rivals, costs, strict=True)]
                best = max(range(len(rivals)), key=values.__getitem__)
                delta = difference(features(x, gold), features(x, rivals[best]))
                if dot(own, delta) <= costs[best]:
                    updates += 1
                    for name, value in delta.items():
                        own[name] = own.get(name, Fraction(0)) + value
                seen += 1
                for name, value in own.items():
                    total[name] = total.get(name, 0) + value
            ends.append(own)
        w = {name: sum(end.get(name, 0) for end in ends) / len(ends) for name in {name for end in ends for name in end}}
    return w, {name: value / seen for name, value in total.items()}, updates


@given(st.integers(0, 2**32), st.sampled_from([0, 2]), st.sampled_from([(1, False), (2, True)]), st.sampled_from([2, 4]))
@settings(deadline=None, max_examples=10)
def test_a_tagger_learns_in_shards_what_the_naive_learner_does(seed, margin, kind, shards):
    markov, history = kind
    X, y = toy(seed)
    parts = cut(X, y, [8 // shards] * shards)
    templates = HISTORY if history else TEMPLATES
    tagger = fit(SequenceTagger(templates, markov=markov, margin=margin, max_iter=3, **PLAIN), parts)

    def features(x, z):
        return tag_features(x, z, markov, history)

    w, average, updates = naive_mixing(parts, len(tagger.history_), margin, features)
    assert tagger._model.updates == updates
    for weights, exact in ((w, True), (average, False)):
        tagger.set_params(keep="last" if exact else "average")
        for x in X:
            for z, score in tagger.predict_k_best([x], 3 ** len(x))[0]:
                expected = dot(weights, features(x, z))
                assert score == (expected if exact else pytest.approx(float(expected), abs=1e-4))


@every_learner
def test_one_shard_is_ordinary_training(name):
    estimator, (X, y) = LEARNERS[name]
    estimator = clone(estimator).set_params(order="cyclic", max_iter=3)
    one, whole = fit(estimator, [(X, y)]), clone(estimator).fit(X, y)
    assert [epoch.mistakes for epoch in one.history_] == [epoch.mistakes for epoch in whole.history_]
    assert (one._model.seen, one._model.updates) == (whole._model.seen, whole._model.updates)
    if name == "steps of any length":  # whose sums are rounded
        for found, expected in zip(last_and_average(one._model), last_and_average(whole._model), strict=True):
            close(found, expected, 1e-9)
    else:
        assert moved(one._model) == moved(whole._model)
    assert one.predict(X) == whole.predict(X)


# The same everywhere


def same_change(one, other):
    assert (one.counts == other.counts).all()
    if not isinstance(one, WeightChange):
        assert (one.w, one.passed) == (other.w, other.passed)
        return
    assert one.tables.keys() == other.tables.keys()
    for name, table in one.tables.items():
        arrays = ((*(each.keys or ()), each.w, each.passed) for each in (table, other.tables[name]))
        for a, b in zip(*arrays, strict=True):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)


@every_learner
def test_an_epoch_of_a_shard_may_be_made_anywhere_and_again(name):
    estimator, (X, y) = LEARNERS[name]
    trainer = mixing_trainer(estimator, cut(X, y, [4, len(X) - 4]))
    trainer.epoch(np.arange(0))
    model, shard = trainer.model, trainer.shards.shards[1]
    before = weights_of(model), model.seen, model.updates, vars(model).get("vocabulary", {}).copy()
    report, change = shard.learn(estimator, model, 2, 1, 0)
    assert (weights_of(model), model.seen, model.updates, vars(model).get("vocabulary", {})) == before
    elsewhere = pickle.loads(pickle.dumps((shard, estimator, model)))
    again, same = elsewhere[0].learn(elsewhere[1], elsewhere[2], 2, 1, 0)
    assert again._replace(seconds=0.0) == report._replace(seconds=0.0)
    same_change(same, change)
    same_change(pickle.loads(pickle.dumps(change)), change)
    rebuilt = SentenceShard(estimator, X[4:], y[4:])
    same_change(rebuilt.learn(estimator, model, 2, 1, 0)[1], change)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "search"])
def test_weights_are_named_once_and_in_order(name):
    estimator, (X, y) = LEARNERS[name]
    trainer = mixing_trainer(estimator, cut(X, y, [4, len(X) - 4]))
    trainer.epoch(np.arange(0))
    changes = trainer.shards.changes
    for change in (*changes, trainer.shards.mix([0.5, 0.5])):
        for table in change.tables.values():
            if table.keys is not None:
                names = list(zip(*(part.tolist() for part in table.keys), strict=True))
                assert names == sorted(set(names))
                assert ((table.w != 0) | (table.passed != 0)).all() or all(change is not one for one in changes)


def test_new_rows_come_in_the_order_of_their_keys():
    estimator, (X, y) = LEARNERS["tagger"]
    trainer = mixing_trainer(estimator, cut(X, y, [4, 4]))
    known = 0
    for _ in range(2):
        trainer.epoch(np.arange(0))
        used = int(trainer.model.nodes.counts[0])
        new = trainer.model.nodes.keys[known:used].tolist()
        assert new == sorted(set(new))
        known = used
    keys = trainer.model.table.to_parts().arrays["keys"].tolist()
    assert len(keys) == len(set(keys)) > 0


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "search"])
def test_going_on_from_a_file_is_as_if_never_stopped(name, tmp_path):
    estimator, (X, y) = LEARNERS[name]
    parts, files = cut(X, y, [4, len(X) - 4]), []
    for stops in ((), (1, 2)):
        fitted = fit(clone(estimator).set_params(max_iter=1), parts)
        shards, model = [SentenceShard(fitted, *part) for part in parts], fitted._model
        here = ShardsHere(fitted, shards)
        for number in (2, 3):
            if number - 1 in stops:
                fitted._model = model
                fitted.save(tmp_path / "checkpoint", resume=True)
                model = type(fitted).load(tmp_path / "checkpoint")._model
            here.learn(model, number, np.arange(0))
            model.add_change(here.mix([0.75, 0.25]))
        fitted._model = model
        for resume in (True, False):
            fitted.save(tmp_path / "model", resume=resume)
            files.append((tmp_path / "model").read_bytes())
    assert files[:2] == files[2:]


@pytest.mark.parametrize("kind", ["dropout", "exploration"])
def test_shards_of_the_same_sentences_draw_otherwise(kind):
    estimator, (X, y) = LEARNERS["tagger" if kind == "dropout" else "transitions"]
    drawn = {"dropout": 0.5} if kind == "dropout" else {"explore": 0.5}
    fixed = {"dropout": 0.0} if kind == "dropout" else {"explore": 1.0}
    for settings_, same in ((drawn, False), (fixed, True)):
        learner = clone(estimator).set_params(order="cyclic", **settings_)
        shard = SentenceShard(learner, X, y)
        model = common_model(learner, [shard.names()] * 2)
        one, other = (shard.learn(learner, model, 1, i, 0)[1] for i in (0, 1))
        table = "nodes" if kind == "dropout" else "actions"
        assert np.array_equal(one.tables[table].w, other.tables[table].w) is same


def test_epochs_and_shards_have_orders_of_their_own():
    estimator, (X, y) = LEARNERS["search"]
    shard = SentenceShard(estimator, X, y)
    model = common_model(estimator, [shard.names()])
    orders = set()
    for number, i, seed in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, 0)):
        change = shard.learn(estimator, model, number, i, seed)[1]
        orders.add(tuple(change.passed.values()))
    assert len(orders) >= 3


# What all shards must agree on


@every_learner
def test_the_common_model_knows_what_an_ordinary_one_knows(name):
    estimator, (X, y) = LEARNERS[name]
    estimator = clone(estimator).set_params(max_iter=1)
    mixed, whole = fit(estimator, cut(X, y, [4, 0, len(X) - 4])), clone(estimator).fit(X, y)
    for known in ("classes_", "vocabulary_", "labels_", "n_nonprojective_", "n_lifted_", "n_too_long_"):
        if hasattr(type(estimator), known):
            assert np.array_equal(getattr(mixed, known), getattr(whole, known)), known
    if hasattr(whole._model, "fields"):
        assert mixed._model.fields.types() == whole._model.fields.types()
    if hasattr(whole._model, "uses"):
        assert (mixed._model.uses == whole._model.uses).all()
    assert getattr(mixed._model, "seed", 0) == getattr(whole._model, "seed", 0)
    assert getattr(mixed._model, "scheme", None) == getattr(whole._model, "scheme", None)
    assert mixed._model.trained_with == whole._model.trained_with


def test_a_scheme_is_what_all_shards_obey():
    X, y = chunked()
    tagger = SequenceTagger(TEMPLATES, margin=2, max_iter=4, n_jobs=1)
    mixed = fit(tagger, cut(X, y, [2, 1, 1, 2]))  # the third has only O, which tells no scheme
    model = mixed._model
    assert model.scheme == "bio"
    number_of = {tag: number for number, tag in enumerate(model.tags)}
    assert model.pairs.w[number_of["O"], number_of["I-N"]] == -np.inf
    assert not np.isnan(model.pairs.w).any()
    assert np.isfinite(model.pairs.drift).all()
    assert all(first_violation(tags, "bio") is None for tags in mixed.predict([["O0", "I-N1", "I-V0"] * 3]))
    other = [([["I-N0", "I-N1"]], [["I-N", "I-N"]])]  # IOB1 by itself; with the others it is no scheme at all
    assert fit(tagger, cut(X, y, [3, 3]) + other)._model.scheme is None
    assert fit(tagger, other)._model.scheme == "iob1"
    with pytest.raises(InvalidData, match="sentence 1: 'I-N' may not follow the start in the scheme 'bio'"):
        SentenceShard(clone(tagger).set_params(scheme="bio"), *other[0])


def test_shards_of_different_kinds_are_refused():
    tagger = SequenceTagger(TEMPLATES, n_jobs=1)
    shards = [SentenceShard(tagger, X[:2], y[:2]) for X, y in (toy(1), rows_of_matrices())]
    with pytest.raises(InvalidDataType, match=r"in some shards .* words, by templates and in others of rows of a matrix"):
        common_model(tagger, [shard.names() for shard in shards])


def test_labels_of_all_shards_together_may_be_too_many(monkeypatch):
    parser = GraphParser(fields=("form", "upos"))
    parts = [([[("w", "N"), ("v", "V")]], [[(2, label), (0, "root")]]) for label in "ab"]
    shards = [SentenceShard(parser, *part) for part in parts]
    assert list(common_model(parser, [shard.names() for shard in shards]).labels) == ["a", "root", "b"]
    monkeypatch.setattr(GraphParser, "_most_labels", 2)
    with pytest.raises(InvalidData, match="there are 3 labels; at most 2 are supported"):
        common_model(parser, [shard.names() for shard in shards])


@every_learner
def test_shards_learn(name):
    estimator, (X, y) = LEARNERS[name]
    mixed = fit(clone(estimator).set_params(max_iter=60), cut(X, y, [3, 3, len(X) - 6]), "mistakes")
    assert mixed.history_[-1].mistakes < mixed.history_[0].mistakes
    assert mixed.score(X, y) > 0.6
