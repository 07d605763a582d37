"""From words to tags to trees, and what a parser learns from."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from rosenblatt.data import conllu
from rosenblatt.errors import InvalidData, UnsupportedOperation
from rosenblatt.modelfile import container
from rosenblatt.structured import SequenceTagger, TagAndParse, TransitionParser, jackknife
from rosenblatt.structured.pipeline import examples
from rosenblatt.structured.tags.sources import FeaturedSentences, TemplateSource
from rosenblatt.structured.tags.tagger import FAST
from rosenblatt.structured.transition.parser import TransitionTrainer

rng = np.random.default_rng(0)
NOUNS, VERBS, RIGHT = ["dog", "cat", "house", "walk"], ["sees", "walk", "likes"], ["DET", "NOUN", "VERB", "DET", "NOUN"]
HEADS = [(2, "det"), (3, "nsubj"), (0, "root"), (5, "det"), (3, "obj")]
X = [
    ["the", str(rng.choice(NOUNS)), str(rng.choice(VERBS)), "a", str(rng.choice(NOUNS))][: 3 + 2 * (i % 2)]
    for i in range(20)
]
y = [[(tag, *head) for tag, head in zip(RIGHT, HEADS, strict=True)][: len(words)] for words in X]
PIPELINE = TagAndParse(TransitionParser(fields=("form", "upos"), max_iter=3), SequenceTagger(max_iter=3), folds=4)


class Recalls:
    """A learner that knows what it has seen, and says so."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.seen = dict(zip(X, y, strict=True))
        return self

    def predict(self, X):
        return [self.seen.get(x, "unseen") for x in X]


def test_a_jackknife_never_asks_about_what_was_learned_from():
    numbers = list(range(11))
    assert jackknife(Recalls(), numbers, numbers, folds=3) == ["unseen"] * 11
    learner = Recalls()
    jackknife(learner, numbers, numbers, folds=3)
    assert not hasattr(learner, "seen")
    with pytest.raises(ValueError, match="from 2 to the number of examples, 11; got 12"):
        jackknife(learner, numbers, numbers, folds=12)


class Echo(TransitionParser):
    """A parser that remembers what it was given to learn from."""

    def fit(self, X, y, **more):
        self.given_ = X
        return super().fit(X, y, **more)


@pytest.mark.parametrize("folds", [0, 4])
def test_the_parser_learns_from_tags_of_taggers_that_had_not_seen_the_sentence(folds):
    words = [*X, ["the", "zebra", "likes"]]  # the jackknife cannot know that this "zebra" is an adjective
    answers = [*y, [("DET", 2, "det"), ("ADJ", 3, "nsubj"), ("VERB", 0, "root")]]
    tagger = SequenceTagger(max_iter=3)
    model = TagAndParse(Echo(fields=("form", "upos"), max_iter=1), tagger, folds=folds).fit(words, answers)
    assert (model.parser_.given_[-1][1] == ("zebra", "ADJ")) == (folds == 0)
    assert model.tag([["the", "zebra", "likes"]]) == [[("the", "DET"), ("zebra", "ADJ"), ("likes", "VERB")]]


def test_the_features_of_a_corpus_are_computed_once_for_all_folds_and_taggers(monkeypatch):
    calls = []
    compute = TemplateSource.features
    monkeypatch.setattr(TemplateSource, "features", lambda self, X: (calls.append(len(X)), compute(self, X))[1])
    answers = [[(tag, tag.lower(), head, label) for tag, head, label in sentence] for sentence in y]
    parser, tagger = TransitionParser(max_iter=1), SequenceTagger(max_iter=1)
    TagAndParse(parser, tagger, folds=5).fit(X, answers)
    assert calls == [len(X)]  # two taggers with five folds each, and two for good: twelve times before


def test_features_of_some_sentences_are_those_of_these_sentences_alone():
    source = TemplateSource(FAST, ("form",))
    numbers = [7, 1, 12, 4]
    some, alone = FeaturedSentences(X).take(numbers).features(source), source.features([X[i] for i in numbers])
    assert some.types == alone.types
    for name in ("starts", "indptr"):
        assert getattr(some, name).tolist() == getattr(alone, name).tolist()
    assert some.keys[some.ids].tolist() == alone.keys[alone.ids].tolist()
    assert some.edge_keys[some.edges].tolist() == alone.edge_keys[alone.edges].tolist()
    again = FeaturedSentences(X).take([*numbers, 3]).take([0, 1, 2, 3]).features(source)
    assert again.ids.tolist() == some.ids.tolist()


def test_it_tags_and_parses_and_can_be_saved(tmp_path):
    model = clone(PIPELINE).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.predict([[], ["the"]])[0] == []
    model.save(tmp_path / "both")
    again = TagAndParse.load(tmp_path / "both")
    assert again.predict(X) == model.predict(X)
    assert again.get_params()["parser__fields"] == ("form", "upos")
    with pytest.raises(container.UnreadableModel, match="holds a TagAndParse, not a SequenceTagger"):
        SequenceTagger.load(tmp_path / "both")
    model.parser_.save(tmp_path / "parser")
    with pytest.raises(container.UnreadableModel, match="holds a TransitionParser, not a TagAndParse"):
        TagAndParse.load(tmp_path / "parser")
    facts, arrays = container.read(tmp_path / "both")
    reordered = {name: facts["parts"][name] for name in ("parser",)}
    for broken in ({}, reordered, {"upos": facts["parts"]["upos"]}, facts["parts"] | {"upos": {"learner": "os.system"}}):
        container.write(tmp_path / "broken", facts | {"parts": broken}, arrays)
        with pytest.raises(container.UnreadableModel):
            TagAndParse.load(tmp_path / "broken")


def contents(model, tmp_path):
    """All that the file of a pipeline says, but times."""
    model.save(tmp_path / "contents", resume=True)
    facts, arrays = container.read(tmp_path / "contents")
    for part in facts["parts"].values():
        part.pop("history")
    facts.pop("saved", None)
    return facts, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("stage", ["jackknife", "taggers", "parser"])
def test_a_training_that_was_interrupted_resumes_to_the_same_model(stage, tmp_path, monkeypatch):
    crossing = [(3, "nsubj"), (0, "root"), (2, "obj")]
    words = [*X, ["dog", "sees", "cat"]]
    answers = [*y, [(tag, *arc) for tag, arc in zip(["NOUN", "VERB", "NOUN"], crossing, strict=True)]]
    model = clone(PIPELINE)
    whole = clone(model).fit(words, answers)
    calls, fit, epoch = [], SequenceTagger.fit, TransitionTrainer.epoch

    def tagger_fit(self, *data, **more):
        calls.append(self)
        if len(calls) == {"jackknife": 3, "taggers": 5}.get(stage):  # four parts, and one tagger for good
            raise KeyboardInterrupt
        return fit(self, *data)

    def parser_epoch(self, *order):
        done = epoch(self, *order)
        if stage == "parser":
            os.kill(os.getpid(), signal.SIGINT)
        return done

    with monkeypatch.context() as patched:
        patched.setattr(SequenceTagger, "fit", tagger_fit)
        patched.setattr(TransitionTrainer, "epoch", parser_epoch)
        with pytest.raises(KeyboardInterrupt):
            model.fit(words, answers)
        model.save(tmp_path / "half", resume=True)
        half = TagAndParse.load(tmp_path / "half")
        if stage == "parser":
            assert half.parser_.n_iter_ == 1
            assert len(half.predict(X)) == len(X)
        else:
            with pytest.raises(UnsupportedOperation, match="interrupted while the taggers were trained"):
                half.predict(X)
            with pytest.raises(UnsupportedOperation, match="interrupted while the taggers were trained"):
                half.save(tmp_path / "small")
    with pytest.raises(InvalidData, match="not the examples that the interrupted training learned from"):
        half.resume(words[1:], answers[1:])
    calls.clear()
    with monkeypatch.context() as patched:
        patched.setattr(SequenceTagger, "fit", lambda self, *data: (calls.append(self), fit(self, *data))[1])
        assert half.resume(words, answers) is half
    assert len(calls) == {"jackknife": 3, "taggers": 1, "parser": 0}[stage]  # what was done is not done again
    assert contents(half, tmp_path) == contents(whole, tmp_path)
    assert half.parser_.n_lifted_ == 1
    with pytest.raises(UnsupportedOperation, match="this one was not interrupted"):
        half.resume(words, answers)


def test_a_pipeline_may_start_from_another_and_resume(tmp_path, monkeypatch):
    clone(PIPELINE).fit(X, y).save(tmp_path / "small")
    start = TagAndParse.load(tmp_path / "small")
    words, answers = [["a", "zebra"]] * 4, [[("DET", 2, "det"), ("ZOO", 0, "root")]] * 4
    whole = clone(PIPELINE).fit(words, answers, start=start)
    assert whole.predict([["the", "zebra"]]) == [[("DET", 2, "det"), ("ZOO", 0, "root")]]
    assert {"nsubj", "obj"} < set(whole.parser_.labels_)
    calls, fit = [], SequenceTagger.fit

    def third(self, *data, **more):
        calls.append(self)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(self, *data, **more)

    half = clone(PIPELINE)
    with monkeypatch.context() as patched:
        patched.setattr(SequenceTagger, "fit", third)
        with pytest.raises(KeyboardInterrupt):
            half.fit(words, answers, start=start)
    half.save(tmp_path / "half", resume=True)
    assert contents(TagAndParse.load(tmp_path / "half").resume(words, answers), tmp_path) == contents(whole, tmp_path)
    with pytest.raises(TypeError, match="start must be a trained TagAndParse or None; got 'TransitionParser'"):
        clone(PIPELINE).fit(X, y, start=start.parser_)


def test_an_interrupt_before_the_first_tagger_leaves_the_pipeline_as_it_was(monkeypatch):
    def nothing(self, *data):
        raise KeyboardInterrupt

    monkeypatch.setattr(SequenceTagger, "fit", nothing)
    model = clone(PIPELINE)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.save("nowhere", resume=True)


def test_scikit_learn_can_validate_it():
    assert np.isfinite(cross_val_score(PIPELINE, X, y, cv=2)).all()
    assert clone(PIPELINE).set_params(parser__max_iter=2, taggers__markov=2).taggers.markov == 2


def test_files_are_annotated_in_a_stream():
    rows = [["1-2", "thedog", *"________"], ["1", "the", *"________"], ["2", "dog", *"_______", "x=y"]]
    text = "# note = kept\n" + "".join("\t".join(row) + "\n" for row in rows) + "\n"
    model = clone(PIPELINE).fit(X, y)
    done = list(model.annotate(conllu.parse(text * 3), batch=2))
    assert len(done) == 3
    assert done[0].column("upos") == ["DET", "NOUN"]
    assert done[0].comments == ["# note = kept"]
    assert "1-2\tthedog" in str(done[0])
    assert done[0].words[1].misc == "x=y"
    assert [head for head, _ in done[0].tree()].count(0) == 1
    gold = "1\tthe\t_\tDET\tDT\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    assert examples(conllu.parse(gold)) == ([["the", "dog"]], [[("DET", "DT", 2, "det"), ("NOUN", "NN", 0, "root")]])


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(TypeError, match="parser must be a GraphParser or a TransitionParser; got 'SequenceTagger'"):
        TagAndParse(SequenceTagger(), TransitionParser()).fit(X, y)
    with pytest.raises(TypeError, match=r"conllu\.read"):
        examples("bank.conllu")
    with pytest.raises(NotFittedError):
        clone(PIPELINE).predict(X)
    with pytest.raises(ValueError, match="taggers must be given for the tags that the parser reads: upos; got"):
        TagAndParse(TransitionParser(fields=("form", "upos")), {"xpos": SequenceTagger()}).fit(X, y)
    with pytest.raises(ValueError, match="sentence 1, word 1: an answer must be 1 tags, a head and a label"):
        clone(PIPELINE).fit(X, [[word[1:] for word in sentence] for sentence in y])
