"""The tagger against the naive learner, against the libraries it replaces, and against what people feed it."""

from __future__ import annotations

import ctypes
import gc
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from worked import tag_features

from rosenblatt import rules
from rosenblatt.modelfile import container
from rosenblatt.structured.tags import model as models
from rosenblatt.structured.tags.schemes import first_violation
from rosenblatt.structured.tags.tagger import SequenceTagger
from rosenblatt.testing.reference import perceptron
from rosenblatt.testing.structured import pa1, seqlearn_perceptron, structured_run

TAGS = "XYZ"
TEMPLATES = ("form[0]", "form[-1]", "form[0] form[1]")
HISTORY = (*TEMPLATES, "tag[-1] form[0]")
PLAIN = {"dropout": 0.0, "order": "cyclic", "scheme": None, "n_jobs": 1}


def toy(seed, sentences=6, longest=4):
    """Sentences over four words, whose tags depend on the word and on the one before; a tenth of the tags are wrong."""
    rng = np.random.default_rng(seed)
    X = [rng.choice(list("abcd"), rng.integers(1, longest + 1)).tolist() for _ in range(sentences)]
    y = [[TAGS[(ord(b) + (a == "a")) % 3] for a, b in pairwise(["", *x])] for x in X]
    return X, [[tag if rng.random() > 0.1 else "X" for tag in tags] for tags in y]


def reference(X, y, epochs, margin, rule, threshold, markov, history):
    """The naive run, with ties in the tagger's order: from the right, what is not gold's, then what was met first."""
    met = list(dict.fromkeys(tag for tags in y for tag in tags))
    golds = {}

    def candidates(key):
        x, gold = golds[key]
        paths = product(met, repeat=len(x))
        return sorted(paths, key=lambda z: [(a == b, met.index(a)) for a, b in zip(z[::-1], gold[::-1], strict=True)])

    for i, (x, tags) in enumerate(zip(X, y, strict=True)):
        golds[i] = (x, tuple(tags))
    examples = [(i, golds[i][1]) for i in golds]
    return structured_run(
        examples,
        candidates,
        lambda key, z: tag_features(golds[key][0], z, markov, history),
        rule,
        [range(len(X))] * epochs,
        margin=margin,
        threshold=threshold,
    )


def scores(tagger, x, number_of_tags):
    """The score of every sequence of tags."""
    return {tuple(tags): score for tags, score in tagger.predict_k_best([x], number_of_tags ** len(x))[0]}


@given(st.integers(0, 2**32), st.sampled_from([0, 2]), st.sampled_from([(1, False), (2, True)]))
@settings(deadline=None, max_examples=15)
def test_learning_is_that_of_the_naive_learner(seed, margin, kind):
    markov, history = kind
    X, y = toy(seed)
    tagger = SequenceTagger(HISTORY if history else TEMPLATES, markov=markov, margin=margin, max_iter=3, **PLAIN).fit(X, y)
    run = reference(X, y, tagger.n_iter_, margin, perceptron(), 0, markov, history)
    assert tagger.n_updates_ == run.updates
    tags = len(tagger.classes_)
    for weights, exact in ((run.w, True), (run.average, False)):
        tagger.set_params(keep="last" if exact else "average")
        for x in X:
            for z, score in scores(tagger, x, tags).items():
                expected = sum(weights.get(name, 0) * n for name, n in tag_features(x, z, markov, history).items())
                assert score == (expected if exact else pytest.approx(float(expected), abs=1e-4))


@pytest.mark.parametrize("seed", range(5))
def test_passive_aggressive_steps_know_the_length(seed):
    X, y = toy(seed)  # of given seeds: where two paths nearly tie, float32 and fractions may choose differently
    tagger = SequenceTagger(HISTORY, markov=2, margin=1, rule=rules.PA1(C=0.3), max_iter=2, keep="last", **PLAIN).fit(X, y)
    run = reference(X, y, tagger.n_iter_, 1, pa1(0.3), 1, 2, True)
    for x in X:
        for z, score in scores(tagger, x, len(tagger.classes_)).items():
            expected = sum(run.w.get(name, 0) * n for name, n in tag_features(x, z, 2, True).items())
            assert score == pytest.approx(float(expected), abs=1e-4)


def test_collins_bound():
    """Every word has one tag, so u with 1/√V at (word, its tag) wins by at least δ = 1/√V, and updates ≤ R²/δ²."""
    rng = np.random.default_rng(0)
    X = [rng.choice(list("abcde"), 3).tolist() for _ in range(20)]
    y = [[TAGS[ord(word) % 3] for word in x] for x in X]
    R2 = max(
        sum((gold.get(name, 0) - other.get(name, 0)) ** 2 for name in {*gold, *other})
        for x, tags in zip(X, y, strict=True)
        for z in product(TAGS, repeat=3)
        for gold, other in [(tag_features(x, tags, 1, False), tag_features(x, z, 1, False))]
    )
    for seed in range(3):
        tagger = SequenceTagger(TEMPLATES, margin=0, dropout=0.0, max_iter=1000, random_state=seed).fit(X, y)
        assert tagger.stop_reason_ == "converged"
        assert tagger.score(X, y) == 1
        assert 1 <= tagger.n_updates_ <= R2 * 5


# Laws


@given(st.lists(st.integers(0, 12), max_size=3), st.sampled_from([0.0, 0.3]))
@settings(deadline=None, max_examples=10)
def test_a_stream_may_be_cut_anywhere(cuts, dropout):
    X, y = toy(3, sentences=12)
    settings = {"templates": HISTORY, "markov": 2, "dropout": dropout, "n_jobs": 1}
    whole, parts = SequenceTagger(**settings).partial_fit(X, y), SequenceTagger(**settings)
    for start, end in pairwise(sorted({0, 12, *cuts})):
        parts.partial_fit(X[start:end], y[start:end])
    assert whole.classes_.tolist() == parts.classes_.tolist()
    assert whole.predict_k_best(X, 5) == parts.predict_k_best(X, 5)
    assert (whole.n_seen_, whole.n_updates_, whole.n_mistakes_) == (parts.n_seen_, parts.n_updates_, parts.n_mistakes_)


def test_threads_do_not_change_the_answer(monkeypatch):
    X, y = toy(0, sentences=60)
    tagger = SequenceTagger(TEMPLATES, n_jobs=1).fit(X, y)
    alone = tagger.predict(X)
    monkeypatch.setattr(models, "BLOCK", 7)
    assert tagger.set_params(n_jobs=3).predict(X) == alone
    assert tagger.set_params(n_jobs=1).predict(X) == alone


@pytest.mark.parametrize(("templates", "markov"), [(TEMPLATES, 1), (HISTORY, 2)])
def test_a_file_predicts_and_goes_on_as_if_nothing_had_been(tmp_path, templates, markov):
    X, y = toy(1, sentences=12)
    settings = {"templates": templates, "markov": markov, "n_jobs": 1}
    tagger = SequenceTagger(**settings).partial_fit(X[:6], y[:6])
    tagger.save(tmp_path / "small")
    tagger.save(tmp_path / "whole", resume=True)
    small, whole = SequenceTagger.load(tmp_path / "small"), SequenceTagger.load(tmp_path / "whole")
    for loaded in (small, whole):
        assert loaded.predict_k_best(X, 4) == tagger.predict_k_best(X, 4)
        assert loaded.get_params()["templates"] == templates
        assert loaded.explain(X[0], 0) == tagger.explain(X[0], 0)
    small.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "small").read_bytes()
    with pytest.raises(ValueError, match="resume=True"):
        small.partial_fit(X[6:], y[6:])
    assert whole.partial_fit(X[6:], y[6:]).predict_k_best(X, 4) == tagger.partial_fit(X[6:], y[6:]).predict_k_best(X, 4)
    assert whole.classes_.tolist() == tagger.classes_.tolist()


def test_a_damaged_file_is_refused(tmp_path):
    X, y = toy(1)
    SequenceTagger(HISTORY, markov=2, n_jobs=1).partial_fit(X, y).save(tmp_path / "model", resume=True)
    facts, arrays = container.read(tmp_path / "model")
    damage = {
        "outcomes": lambda array: array + 100,
        "edge_outcomes": lambda array: array + 100,
        "ledger_outcomes": lambda array: array + 100,
        "sizes": lambda array: array + 1,
        "weights": lambda array: array[1:],
        "pairs": lambda array: array[1:],
        "triples_w": lambda array: array.astype(np.float64),
        "all_w": lambda array: array[:, 1:],
        "all_drift": lambda array: array[1:],
        "vocabulary_lengths": lambda array: array + 1,
    }
    for name, change in damage.items():
        container.write(tmp_path / "damaged", facts, arrays | {name: change(arrays[name])})
        with pytest.raises(container.UnreadableModel, match="damaged"):
            SequenceTagger.load(tmp_path / "damaged")


@pytest.mark.parametrize("column", ["upos", 3])
def test_a_tagger_keeps_the_column_that_it_predicts(column, tmp_path):
    X, y = toy(1)
    tagger = SequenceTagger(TEMPLATES, max_iter=1, n_jobs=1).fit(X, y)
    tagger.save(tmp_path / "without")
    assert "column" not in container.read(tmp_path / "without")[0]
    assert SequenceTagger.load(tmp_path / "without").column is None
    tagger.column = column
    for resume in (False, True):
        tagger.save(tmp_path / "with", resume=resume)
        assert SequenceTagger.load(tmp_path / "with").column == column
    facts, arrays = container.read(tmp_path / "with")
    container.write(tmp_path / "damaged", facts | {"column": [column]}, arrays)
    with pytest.raises(container.UnreadableModel, match="name or the number of a column"):
        SequenceTagger.load(tmp_path / "damaged")


@pytest.mark.parametrize("number", [255, 256, 1000])
def test_there_may_be_many_tags(number, tmp_path):
    X = [[f"w{i}", f"w{i + 1}"] for i in range(0, number - 1, 2)] + [[f"w{number - 1}"]]
    y = [[word.replace("w", "t") for word in words] for words in X]
    tagger = SequenceTagger(HISTORY, max_iter=2, margin=1, dropout=0).fit(X, y)
    assert len(tagger.classes_) == number
    for resume in (False, True):
        tagger.save(tmp_path / "many", resume=resume)
        assert SequenceTagger.load(tmp_path / "many").predict(X) == y


def test_a_stream_may_come_to_have_many_tags():
    X = [[f"w{i}", "x"] for i in range(257)]
    y = [[f"t{i}", f"t{i // 2}"] for i in range(257)]
    cut, whole = SequenceTagger(HISTORY), SequenceTagger(HISTORY).partial_fit(X, y)
    for some in (slice(0, 100), slice(100, 255), slice(255, 257)):
        cut.partial_fit(X[some], y[some])
    parts, others = (tagger._model.table.to_parts().arrays for tagger in (cut, whole))
    assert all(np.array_equal(parts[name], others[name]) for name in others)
    assert cut.predict(X) == whole.predict(X)


def test_scikit_learn_selects_taggers():
    X, y = toy(2, sentences=30)
    tagger = SequenceTagger(TEMPLATES, max_iter=2, n_jobs=1)
    assert clone(tagger).get_params() == tagger.get_params()
    assert cross_val_score(tagger, X, y, cv=3).mean() > 0.5
    search = GridSearchCV(tagger, {"margin": [0.0, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["margin"] in (0.0, 1.0)
    assert search.predict(X[:2]) == search.best_estimator_.predict(X[:2])


def test_an_error_leaves_the_tagger_as_it_was():
    X, y = toy(0)
    tagger = SequenceTagger(TEMPLATES, n_jobs=1).fit(X, y)
    before = tagger.predict_k_best(X, 3)
    for strange in ([["a", None]], [["a"], ["a", "b"]]):
        with pytest.raises((TypeError, ValueError), match="sentence"):
            tagger.fit(strange, [["X", "Y"]] * len(strange))
        with pytest.raises((TypeError, ValueError), match="sentence"):
            tagger.partial_fit(strange, [["X", "Y"]] * len(strange))
    assert tagger.predict_k_best(X, 3) == before


@pytest.mark.parametrize("change", [{"templates": HISTORY}, {"markov": 2}, {"fields": ("form", "pos")}, {"scheme": "bio"}])
def test_a_model_goes_on_as_it_began(change):
    tagger = SequenceTagger(TEMPLATES, n_jobs=1).partial_fit([["a"]], [["O"]])
    with pytest.raises((TypeError, ValueError), match="has changed since"):
        tagger.set_params(**change).partial_fit([["a"]], [["O"]])
    assert tagger.set_params(templates=TEMPLATES, markov=1, fields=("form",), scheme=None).predict([["a"]]) == [["O"]]


def test_warm_start_goes_on_and_validation_stops():
    X, y = toy(0, sentences=30)
    tagger = SequenceTagger(TEMPLATES, max_iter=1, warm_start=True, n_jobs=1).fit(X, y)
    seen = tagger._model.seen
    assert tagger.fit(X, y)._model.seen == 2 * seen
    tagger = SequenceTagger(TEMPLATES, early_stopping=True, tol=0.0, n_iter_no_change=1, max_iter=50, n_jobs=1).fit(X, y)
    assert tagger.stop_reason_ in ("validation_error", "converged", "max_iter")
    assert all(0 <= epoch.validation_error <= 1 for epoch in tagger.history_)


@pytest.mark.parametrize("markov", [1, 2])
def test_training_may_start_from_the_weights_of_a_model_that_only_predicts(markov, tmp_path):
    X, y = toy(0, 20)
    before = SequenceTagger(HISTORY, markov=markov, max_iter=3).fit(X, y)
    before.save(tmp_path / "small")
    start = SequenceTagger.load(tmp_path / "small")
    after = clone(start).fit(X, y, start=start)
    assert (after.n_seen_, after.n_updates_) == (60, sum(epoch.updates for epoch in after.history_))
    assert after.history_[0].mistakes < before.history_[0].mistakes
    assert start.predict(X) == before.predict(X)
    new = clone(start).set_params(max_iter=10).fit([["e", "a"], ["f", "e"]], [["NEW", "Y"], ["X", "NEW"]], start=start)
    assert new.classes_.tolist() == [*before.classes_, "NEW"]
    assert new.predict([["e", "a"]]) == [["NEW", "Y"]]
    nothing = clone(start).set_params(max_iter=1, margin=0, dropout=0).fit([[]], [[]], start=start)
    assert nothing.predict(X) == before.predict(X)
    assert (nothing.transitions_ == start.transitions_).all()
    with pytest.raises(ValueError, match="markov has changed"):
        clone(start).set_params(markov=3 - markov).fit(X, y, start=start)
    with pytest.raises(TypeError, match="start must be a trained SequenceTagger or None"):
        clone(start).fit(X, y, start="small")


def test_the_average_beats_the_last():
    X, y = toy(5, sentences=400)
    Z, truth = toy(6, sentences=300)
    tagger = SequenceTagger(TEMPLATES, margin=0, dropout=0.0, max_iter=5, n_jobs=1).fit(X, y)
    average = tagger.score(Z, truth)
    assert average > tagger.set_params(keep="last").score(Z, truth)


# Searches


@pytest.mark.parametrize("search", ["beam", "greedy"])
def test_a_beam_learns_with_the_search_it_tags_with(search):
    X, y = toy(4, sentences=60)
    tagger = SequenceTagger(HISTORY, markov=2, search=search, beam=2, n_jobs=1).fit(X, y)
    assert tagger.score(X, y) > 0.85
    assert tagger.predict([[], ["a"]])[0] == []


def test_a_wide_beam_learns_what_viterbi_learns_from_a_first_sentence():
    X, y = [["a", "b", "c"]], [["X", "Y", "Z"]]
    wide = SequenceTagger(HISTORY, markov=2, search="beam", beam=50, margin=0, max_iter=1, **PLAIN).fit(X, y)
    assert wide.n_updates_ == 1
    assert wide.predict(X) == y


# Schemes

CHUNKS = (
    [["a", "b", "c"], ["c", "a"], ["b", "b", "a"]],
    [["B-P", "I-P", "O"], ["O", "B-Q"], ["B-Q", "I-Q", "B-P"]],
)


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=4), st.sampled_from([None, "beam"]))
@settings(deadline=None, max_examples=25)
def test_answers_never_break_the_scheme(X, search):
    tagger = SequenceTagger(TEMPLATES, max_iter=1, search=search or "viterbi", beam=1, n_jobs=1).fit(*CHUNKS)
    assert tagger._model.scheme == "bio"
    assert all(first_violation(tags, "bio") is None for tags in tagger.predict(X))


def test_gold_that_breaks_the_scheme_is_refused_by_number():
    with pytest.raises(ValueError, match=r"sentence 2: 'I-P' may not follow 'O'.*convert_tags"):
        SequenceTagger(scheme="bio").fit([["a"], ["b", "c"]], [["B-P"], ["O", "I-P"]])
    with pytest.raises(ValueError, match="sentence 1, word 1: 'NOUN' is not a tag of the scheme 'bio'"):
        SequenceTagger(scheme="bio").fit([["a"]], [["NOUN"]])
    assert SequenceTagger(TEMPLATES, n_jobs=1).fit([["a"], ["b", "c"]], [["B-P"], ["O", "I-P"]])._model.scheme is None


def test_a_sentence_without_a_legal_answer_is_named():
    tagger = SequenceTagger(TEMPLATES, scheme="bilou", n_jobs=1).fit([["a", "b"]], [["B-P", "L-P"]])
    with pytest.raises(ValueError, match="sentence 2: no sequence of 1 of the tags"):
        tagger.predict([["a", "b"], ["a"]])


def test_an_error_of_validation_is_not_taken_for_one_of_training():
    X, y = [["a", "b"]], [["B-P", "E-P"]]
    tagger = SequenceTagger(scheme="iobes")
    with pytest.raises(ValueError, match="validation: sentence 2: no sequence of 1 of the tags") as caught:
        tagger.fit(X, y, [*X, ["a"]], [*y, ["S-P"]])
    assert caught.value.row is None


def test_new_tags_of_a_stream_obey_the_scheme_too():
    tagger = SequenceTagger(TEMPLATES, scheme="bio", n_jobs=1)
    for x, tags in zip(*CHUNKS, strict=True):
        tagger.partial_fit([x], [tags])
    assert all(first_violation(tags, "bio") is None for tags in tagger.predict([list("abcdabcd"), ["b"]]))


# What people feed it

STRANGE = [
    [],
    ["x"],
    [""],
    ["🙂", "👩‍👩‍👧"],
    ["שלום", "עולם"],
    ["漢字", "かな", "ไทย"],
    ["\ud800", "a\x00b"],
    ["w" * 10_000, "ǅ"],
    ["word"] * 5000,
]


def test_strange_words_are_tagged():
    tags = [["N"] * len(x) for x in STRANGE]
    tagger = SequenceTagger.accurate(max_iter=1, n_jobs=1).fit(STRANGE, tags)
    assert tagger.predict(STRANGE) == tags  # there is one tag only
    X, y = toy(0)
    tagger = SequenceTagger.accurate(max_iter=1, n_jobs=1).fit(X, y)
    assert [len(answer) for answer in tagger.predict(STRANGE)] == [len(x) for x in STRANGE]
    assert tagger.predict([]) == []


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([["a"], ["b", None]], [["X"], ["X", "Y"]], TypeError, "sentence 2, word 2: a token must be text.*None"),
        ([["a"], ["b", 3]], [["X"], ["X", "Y"]], TypeError, "sentence 2, word 2"),
        ([["a"], [("b", "c")]], [["X"], ["X"]], TypeError, "sentence 2, word 1.*`fields`"),
        ([["a"], [{"b": 1}]], [["X"], ["X"]], TypeError, "sentence 2, word 1.*templates=None"),
        ([["a"], ["b"]], [["X"], ["X", "Y"]], ValueError, "sentence 2 has 1 tokens, but 2 tags"),
        ([["a"], ["b"]], [["X"], [None]], TypeError, "sentence 2, word 1: a tag must be"),
        ([["a"], "text"], [["X"], ["X"] * 4], TypeError, "sentence 2 must be a list of tokens"),
        ([["a"], 7], [["X"], ["X"]], TypeError, "sentence 2 must be a list of tokens"),
        ([["a"], ["b"]], [["X"]], ValueError, "the numbers must be equal"),
        ([], [], ValueError, "no sentence to learn from"),
    ],
)
def test_nonsense_is_refused_by_sentence(X, y, error, message):
    with pytest.raises(error, match=message):
        SequenceTagger(TEMPLATES).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"templates": ["form[0"]}, "made of attribute"),
        ({"templates": ["fomr[0]"]}, "did you mean 'form'"),
        ({"templates": ["form[9]"]}, "no place"),
        ({"templates": ["tag[-1]"]}, "markov=2"),
        ({"templates": ["tag[-2] form[0]"]}, "they name tag"),
        ({"fields": "form"}, "fields must be"),
        ({"markov": 3}, "markov must be"),
        ({"scheme": "BIO"}, "scheme must be one of"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"keep": "vote"}, "keep must be"),
    ],
)
def test_parameters_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger(**changes).fit([["a"]], [["X"]])


def test_tokens_of_several_fields():
    X = [[("the", "D"), ("dog", "N")], [("runs", "V"), ("fast", "A")]]
    y = [["B-NP", "I-NP"], ["B-VP", "O"]]
    templates = ["form[0]", "pos[0]", "pos[-1] pos[0]"]
    tagger = SequenceTagger(templates, fields=("form", "pos"), n_jobs=1).fit(X, y)
    assert tagger.predict(X) == y
    assert tagger.predict([[["a", "D"], ["cat", "N"]]]) == [["B-NP", "I-NP"]]  # lists will do for tuples
    assert any(name.startswith("pos[0]=") for name, _ in tagger.weights("B-NP"))
    with pytest.raises(TypeError, match=r"sentence 1, word 1: a token must be a tuple of texts \(form, pos\)"):
        tagger.predict([["the"]])


def test_explanations_add_up():
    X, y = toy(2, sentences=20)
    for templates, markov in ((TEMPLATES, 1), (HISTORY, 2)):
        tagger = SequenceTagger(templates, markov=markov, n_jobs=1).fit(X, y)
        for x in X[:5]:
            every = scores(tagger, x, len(tagger.classes_))
            path = tagger.predict([x])[0]
            for i, tag in enumerate(path):
                why = tagger.explain(x, i)
                others = [every[(*path[:i], other, *path[i + 1 :])] for other in tagger.classes_ if other != tag]
                assert why.tag == tag
                assert why.margin == pytest.approx(every[tuple(path)] - max(others), abs=1e-3)
                assert sum(r.weight - r.rival for r in why.reasons) == pytest.approx(why.margin, abs=1e-3)
    names = [name for name, _ in tagger.weights("X", 100)]
    assert {"form[0]=a", "form[-1]=∅"} <= set(names)
    shown = {name.removeprefix("form[0]=") for name in names if name.startswith("form[0]=")}
    assert shown <= {token for x in X for token in x}, "every word is shown by itself"
    assert tagger.transitions_.shape == (len(tagger.classes_) + 1,) * 2
    assert tagger.memory_ > 0
    with pytest.raises(ValueError, match="the label 'Q' is not one of the known classes"):
        tagger.weights("Q")
    with pytest.raises(IndexError, match="none at position 9"):
        tagger.explain(["a"], 9)


# Drop-ins


def attributes(x):
    """What TEMPLATES see, as python-crfsuite's users write it."""
    words = ["", *x, ""]
    return [
        {"form": words[i], "before": words[i - 1], "after": {words[i]: words[i + 1]}, "long": len(words[i]) > 1}
        for i in range(1, len(x) + 1)
    ]


def test_given_attributes_learn_as_templates_do():
    X, y = toy(1, sentences=15)
    templated = SequenceTagger(TEMPLATES, max_iter=2, **PLAIN).fit(X, y)
    given = SequenceTagger(None, max_iter=2, **PLAIN).fit([attributes(x) for x in X], y)
    lists = [[[f"0{w}", f"-{v}", f"+{w} {u}"] for v, w, u in zip(["", *x], x, [*x[1:], ""], strict=False)] for x in X]
    listed = SequenceTagger(None, max_iter=2, **PLAIN).fit(lists, y)
    assert given.predict_k_best([attributes(x) for x in X], 3) == templated.predict_k_best(X, 3)
    assert listed.predict_k_best(lists, 3) == templated.predict_k_best(X, 3)
    assert "form:a" in [name for name, _ in given.weights("X", 100)]
    why = given.explain(attributes(X[0]), 0)
    assert sum(r.weight - r.rival for r in why.reasons) == pytest.approx(why.margin, abs=1e-3)
    with pytest.raises(TypeError, match="sentence 1, word 1: with templates=None a token is a list"):
        given.predict([["a"]])
    with pytest.raises(ValueError, match="sentence 1, word 1: the value of an attribute must be a finite number"):
        given.predict([[{"a": np.nan}]])


def matrix(X):
    """One column a word, one a word before."""
    flat = [(a, b) for x in X for a, b in pairwise(["", *x])]
    return np.array([[b == word for word in "abcd"] + [a == word for word in "abcd"] for a, b in flat], float)


def test_rows_of_a_matrix_with_lengths(tmp_path):
    X, y = toy(1, sentences=15)
    lengths, flat = [len(x) for x in X], [tag for tags in y for tag in tags]
    dense = SequenceTagger(None, max_iter=3, n_jobs=1).fit(matrix(X), flat, lengths=lengths)
    csr = SequenceTagger(None, max_iter=3, n_jobs=1).fit(sparse.csr_matrix(matrix(X)), np.array(flat), lengths=lengths)
    found = dense.predict(matrix(X), lengths)
    assert isinstance(found, np.ndarray)
    assert (found == csr.predict(sparse.csr_array(matrix(X)), lengths)).all()
    assert dense.score(matrix(X), flat, lengths) == np.mean(found == np.array(flat)) > 0.7
    dense.save(tmp_path / "model")
    assert (SequenceTagger.load(tmp_path / "model").predict(matrix(X), lengths) == found).all()
    first = sparse.csr_array(matrix(X))[:2]
    why = dense.explain(first, 1)
    assert sum(r.weight - r.rival for r in why.reasons) == pytest.approx(why.margin, abs=1e-3)
    assert dense.weights("X", 1)[0][0] in [str(j) for j in range(8)]
    streamed = SequenceTagger(None, n_jobs=1).partial_fit(matrix(X), flat, lengths)
    assert len(streamed.predict(matrix(X), lengths)) == len(flat)
    with pytest.raises(ValueError, match="the lengths add up to 3"):
        dense.predict(matrix(X), [3])
    with pytest.raises(TypeError, match="it cannot tag tokens with given attributes"):
        dense.predict([[["a"]]])


def test_beside_seqlearns_perceptron():
    """On data that both learn, the same tags; they differ in what the documentation says: ties, rates, averages."""
    rng = np.random.default_rng(0)
    X = [rng.choice(list("abcd"), 5).tolist() for _ in range(40)]
    y = [[TAGS[(ord(b) + (a == "a")) % 3] for a, b in pairwise(["", *x])] for x in X]
    lengths, flat = [5] * 40, [tag for tags in y for tag in tags]
    theirs = seqlearn_perceptron(matrix(X), flat, lengths, max_iter=10, random_state=0)
    ours = SequenceTagger(None, margin=0, dropout=0.0, n_jobs=1).fit(matrix(X), flat, lengths=lengths)
    assert (ours.predict(matrix(X), lengths) == theirs.predict(matrix(X), lengths)).all()


# CRFsuite's averaged perceptron, by its definition: what differs from ours is stated in docs/text/tagger.md


def crfsuite_orders(n, epochs, seed):
    """The orders in which CRFsuite visits n sentences: it swaps each with one that the C library's rand() names."""
    library = ctypes.CDLL(None)
    library.srand(seed)
    order, orders = list(range(n)), []
    for _ in range(epochs):
        for i in range(n):
            j = library.rand() % n
            order[i], order[j] = order[j], order[i]
        orders.append(list(order))
    library.srand(seed)
    return orders


def crfsuite_naive(X, y, orders):
    """Ties go to the tags met first, a move at the t-th visit is kept by 1 − t/(visits + 1), no tag starts or ends."""
    met = list(dict.fromkeys(tag for tags in y for tag in tags))
    w, drift, clock = {}, {}, 1

    def see(x, z):
        return [(name, tag) for names, tag in zip(x, z, strict=True) for name in names] + list(pairwise(z))

    for i in (i for order in orders for i in order):
        paths = sorted(product(met, repeat=len(X[i])), key=lambda z: [met.index(tag) for tag in z[::-1]])
        guess = max(paths, key=lambda z: sum(w.get(part, 0) for part in see(X[i], z)))
        if list(guess) != y[i]:
            for sign, path in ((1, y[i]), (-1, guess)):
                for part in see(X[i], path):
                    w[part] = w.get(part, 0) + sign
                    drift[part] = drift.get(part, 0) + sign * clock
        clock += 1
    return {part: w[part] - drift[part] / clock for part in w}


def test_beside_crfsuite(tmp_path):
    crfsuite = pytest.importorskip("pycrfsuite")
    X, y = toy(1, sentences=15)
    X = [[[f"w={w}", f"v={v}"] for v, w in pairwise(["", *x])] for x in X]
    trainer = crfsuite.Trainer(algorithm="ap", verbose=False)
    for x, tags in zip(X, y, strict=True):
        trainer.append(x, tags)
    both = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({"max_iterations": 4, "epsilon": 0, **both})
    orders = crfsuite_orders(len(X), 4, seed=7)
    trainer.train(str(tmp_path / "crf"))
    theirs = crfsuite.Tagger()
    theirs.open(str(tmp_path / "crf"))
    info = theirs.info()
    naive = crfsuite_naive(X, y, orders)
    for part, weight in {**info.state_features, **info.transitions}.items():
        assert weight == pytest.approx(naive.get(part, 0), abs=1e-5)
    ours = SequenceTagger(None, margin=0, dropout=0.0, scheme=None, max_iter=4, n_jobs=1).fit(X, y)
    agreed = [a == b for x, tags in zip(X, ours.predict(X), strict=True) for a, b in zip(theirs.tag(x), tags, strict=True)]
    assert np.mean(agreed) > 0.8
    theirs.close()
    gc.collect()


@pytest.mark.parametrize("search", ["viterbi", "beam"])
def test_a_stream_does_not_know_the_tags_to_come(search):
    X, y = [["a"], ["b"], ["a", "c"], ["c"]], [["X"], ["Y"], ["X", "Z"], ["Z"]]
    one = SequenceTagger(["form[0]"], dropout=0.0, search=search)
    whole, parts = clone(one).partial_fit(X, y), clone(one)
    for words, tags in zip(X, y, strict=True):
        parts.partial_fit([words], [tags])
    assert whole.n_updates_ == parts.n_updates_
    assert whole.weights("Z") == parts.weights("Z")
    streamed = SequenceTagger().partial_fit([["a", "b"]], [["B-X", "I-X"]])
    assert streamed.partial_fit([["c"]], [["NOUN"]]).classes_.tolist() == ["B-X", "I-X", "NOUN"]


def test_what_a_damaged_file_says_is_not_believed(tmp_path):
    tagger = SequenceTagger(max_iter=2).fit([["the", "dog"], ["dog"]], [["D", "N"], ["N"]])
    tagger.save(tmp_path / "m", resume=True)
    facts, arrays = container.read(tmp_path / "m")
    for name, change in {
        "weights": lambda a: np.where(a > 0, np.inf, a).astype(a.dtype),
        "pairs": lambda a: a * np.float32(np.nan),
        "vocabulary_lengths": lambda a: np.zeros_like(a),
        "all_drift": lambda a: a + np.inf,
    }.items():
        container.write(tmp_path / "broken", facts, arrays | {name: change(arrays[name])})
        with pytest.raises(container.UnreadableModel):
            SequenceTagger.load(tmp_path / "broken")
    twice = {"vocabulary_bytes": np.frombuffer(b"dogdog", np.uint8), "vocabulary_lengths": np.array([3, 3], np.int32)}
    container.write(tmp_path / "broken", facts, arrays | twice)
    with pytest.raises(container.UnreadableModel, match="a word stands twice"):
        SequenceTagger.load(tmp_path / "broken")
    for change in ({"counts": {}}, {"model": facts["model"] | {"seen": 10**30}}):
        container.write(tmp_path / "broken", facts | change, arrays)
        with pytest.raises(container.UnreadableModel):
            SequenceTagger.load(tmp_path / "broken")


def test_no_path_is_no_explanation_and_no_weights_are_no_answer():
    tagger = SequenceTagger(scheme="bilou").fit([["a", "b"]], [["B-X", "L-X"]])
    with pytest.raises(ValueError, match="no sequence of 1 tags is allowed"):
        tagger.explain(["a"], 0)
    with pytest.raises(ValueError, match="n must be at least 1"):
        tagger.weights("B-X", 0)
    with pytest.raises(TypeError, match="cut it into tokens"):
        tagger.explain("a b", 0)
    with pytest.raises(ValueError, match="beam must be a whole number ≥ 1 and ≤ 4096"):
        SequenceTagger(search="beam", beam=10**9).fit([["a"]], [["X"]])
