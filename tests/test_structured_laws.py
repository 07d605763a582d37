"""The laws of structured learners, each held against every one of them."""

from __future__ import annotations

import copy
import os
import pickle
import signal

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from rosenblatt import rules
from rosenblatt.errors import InvalidData, UnsupportedOperation
from rosenblatt.modelfile import container
from rosenblatt.structured import GraphParser, SequenceTagger, TransitionParser

rng = np.random.default_rng(0)
LEXICON = {
    "DET": ["the", "a"],
    "NOUN": ["dog", "Cat", "house", "walk"],
    "VERB": ["sees", "walk", "likes"],
    "ADV": ["here", "not"],
}


def sentence() -> tuple[list[tuple[str, str]], list[tuple[int, str]]]:
    """A subject, a verb that is the root, perhaps an object and an adverb; "walk" is a noun or a verb."""
    tags, tree = ["DET", "NOUN", "VERB"], [(2, "det"), (3, "nsubj"), (0, "root")]
    if rng.random() < 0.7:
        tags, tree = [*tags, "DET", "NOUN"], [*tree, (5, "det"), (3, "obj")]
    if rng.random() < 0.5:
        tags, tree = [*tags, "ADV"], [*tree, (3, "advmod")]
    return [(str(rng.choice(LEXICON[tag])), tag) for tag in tags], tree


DATA = [sentence() for _ in range(30)]
PARSED = [words for words, _ in DATA], [tree for _, tree in DATA]
TAGGED = [[form for form, _ in words] for words, _ in DATA], [[tag for _, tag in words] for words, _ in DATA]
FIELDS = ("form", "upos")

LEARNERS = {
    "tagger": (SequenceTagger(max_iter=3), TAGGED),
    "greedy": (TransitionParser(fields=FIELDS, max_iter=3), PARSED),
    "beam": (TransitionParser(fields=FIELDS, beam=4, max_iter=3), PARSED),
    "eisner": (GraphParser(fields=FIELDS, max_iter=3), PARSED),
    "spanning": (GraphParser(fields=FIELDS, decoder="chu-liu-edmonds", max_iter=3), PARSED),
}


@pytest.fixture(params=LEARNERS)
def case(request):
    learner, (X, y) = LEARNERS[request.param]
    return clone(learner), X, y


def contents(learner, tmp_path, resume=True):
    """All that a model file says, but the history."""
    learner.save(tmp_path / "contents", resume=resume)
    facts, arrays = container.read(tmp_path / "contents")
    facts.pop("history")
    return facts, {name: array.tobytes() for name, array in arrays.items()}


def test_it_learns_what_can_be_learned(case):
    learner, X, y = case
    assert learner.set_params(max_iter=20).fit(X, y).score(X, y) > 0.97
    assert learner.n_iter_ == len(learner.history_)
    assert learner.n_seen_ == learner.n_iter_ * len(X)
    assert learner.n_updates_ <= learner.n_mistakes_ or learner.margin > 0 or learner.rule != "perceptron"


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(case, tmp_path):
    learner, X, y = case
    one, two = (contents(clone(learner).fit(X, y), tmp_path) for _ in range(2))
    other = contents(clone(learner).set_params(random_state=1).fit(X, y), tmp_path)
    assert one == two
    assert one[1] != other[1]


def test_any_chunking_of_a_stream_gives_the_same_model(case, tmp_path):
    learner, X, y = case
    whole = contents(clone(learner).partial_fit(X, y), tmp_path)
    for cut in (1, 7):
        parts = clone(learner)
        for i in range(0, len(X), cut):
            parts.partial_fit(X[i : i + cut], y[i : i + cut])
        assert contents(parts, tmp_path) == whole


def test_an_epoch_in_order_is_a_stream(case, tmp_path):
    learner, X, y = case
    _, fitted = contents(clone(learner).set_params(order="cyclic", max_iter=1).fit(X, y), tmp_path)
    _, streamed = contents(clone(learner).partial_fit(X, y), tmp_path)
    assert fitted == streamed


def test_a_saved_model_answers_as_before(case, tmp_path):
    learner, X, y = case
    learner.fit(X, y)
    for resume in (False, True):
        learner.save(tmp_path / "model", resume=resume)
        again = type(learner).load(tmp_path / "model")
        assert again.predict(X) == learner.predict(X)
        assert again.get_params().keys() == learner.get_params().keys()
        assert again.history_ == [epoch._replace(seconds=None) for epoch in learner.history_]  # files keep no times
        assert (again.n_seen_, again.n_updates_) == (learner.n_seen_, learner.n_updates_)


def test_saving_loading_and_going_on_equals_never_having_stopped(case, tmp_path):
    learner, X, y = case
    straight = clone(learner).partial_fit(X[:10], y[:10])
    straight.save(tmp_path / "model", resume=True)
    straight.partial_fit(X[10:], y[10:])
    resumed = type(learner).load(tmp_path / "model").partial_fit(X[10:], y[10:])
    assert contents(resumed, tmp_path) == contents(straight, tmp_path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # joblib leaves the file open
def test_a_model_that_joblib_maps_read_only_goes_on_in_a_copy(case, tmp_path):
    learner, X, y = case
    through = learner.fit(X[:20], y[:20])
    joblib.dump(through, tmp_path / "pickle")
    file = (tmp_path / "pickle").read_bytes()
    mapped = joblib.load(tmp_path / "pickle", mmap_mode="r")
    assert mapped.predict(X) == through.predict(X)
    mapped.partial_fit(X[20:], y[20:])
    assert contents(mapped, tmp_path) == contents(through.partial_fit(X[20:], y[20:]), tmp_path)
    assert (tmp_path / "pickle").read_bytes() == file


def test_a_model_saved_for_prediction_is_smaller_and_says_that_it_cannot_go_on(case, tmp_path):
    learner, X, y = case
    learner.fit(X, y)
    learner.save(tmp_path / "small")
    learner.save(tmp_path / "large", resume=True)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "large").stat().st_size
    with pytest.raises(ValueError, match="resume=True"):
        type(learner).load(tmp_path / "small").partial_fit(X, y)


def test_a_damaged_model_is_refused(case, tmp_path):
    learner, X, y = case
    path = tmp_path / "model"
    learner.fit(X[:3], y[:3]).save(path)
    whole = path.read_bytes()
    for cut in (0, 7, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(container.UnreadableModel):
            type(learner).load(path)
    facts, arrays = container.read_bytes(whole)
    for name in arrays:
        container.write(path, facts, {key: value for key, value in arrays.items() if key != name})
        with pytest.raises(container.UnreadableModel):
            type(learner).load(path)
    container.write(path, facts | {"learner": "Other"}, arrays)
    with pytest.raises(container.UnreadableModel, match="holds a Other"):
        type(learner).load(path)


def test_threads_do_not_change_answers(case):
    learner, X, y = case
    learner.fit(X, y)
    one = clone(learner).set_params(n_jobs=1).fit(X, y).predict(X)
    assert clone(learner).set_params(n_jobs=2).fit(X, y).predict(X) == one
    assert learner.predict(X) == one


def test_prediction_changes_nothing_and_does_not_depend_on_company(case, tmp_path):
    learner, X, y = case
    learner.fit(X, y)
    before = contents(learner, tmp_path)
    answers = learner.predict(X)
    assert [learner.predict([x])[0] for x in X] == answers
    assert learner.predict(X[::-1]) == answers[::-1]
    assert contents(learner, tmp_path) == before


def test_input_is_left_alone(case):
    learner, X, y = case
    before = copy.deepcopy((X, y))
    learner.fit(X, y)
    learner.predict(X)
    assert (X, y) == before


def test_empty_and_single_sentences_have_answers(case):
    learner, X, y = case
    learner.fit([[], *X], [[], *y])
    answers = learner.predict([[], X[0][:1], []])
    assert answers[0] == answers[2] == []
    assert len(answers[1]) == 1
    assert learner.predict([]) == []


def test_a_refused_call_leaves_the_learner_as_it_was(case, tmp_path):
    learner, X, y = case
    learner.fit(X, y)
    before = contents(learner, tmp_path)
    for bad in ([*y[:-1], y[-1][:-1]], [*y[:-1], None], y[:-1]):
        for method in (learner.fit, learner.partial_fit):
            with pytest.raises((ValueError, TypeError)):
                method(X, bad)
    with pytest.raises((ValueError, TypeError), match="sentence 30"):
        learner.fit(X, [*y[:-1], y[-1][:-1]])
    with pytest.raises((ValueError, TypeError)):
        learner.predict([[3]])
    assert contents(learner, tmp_path) == before


def test_a_stream_that_overflows_leaves_the_learner_as_it_was(case, tmp_path):
    learner, X, y = case
    learner.partial_fit(X[:9], y[:9])
    before, answers = contents(learner, tmp_path), learner.predict(X)
    learner.set_params(rule=rules.Perceptron(0.0, 1e39))  # more than a float32 can hold
    with pytest.raises(ValueError, match="no longer finite"):
        learner.partial_fit(X[9:], y[9:])
    learner.set_params(rule="perceptron")
    assert contents(learner, tmp_path) == before
    assert learner.predict(X) == answers


def test_sentences_that_are_refused_leave_no_words_behind(case, tmp_path):
    learner, X, y = case
    learner.fit(X, y)
    before = contents(learner, tmp_path)
    parser = learner.__class__ is not SequenceTagger
    strange, bad = [("zebra", "NOUN"), ("yawns", "VERB")], [(0, "root"), (0, "root")] if parser else ["NOUN"]
    for method in (learner.partial_fit, learner.set_params(warm_start=True).fit):
        with pytest.raises(ValueError, match="sentence 1"):
            method([strange if parser else ["zebra", "yawns"]], [bad])
    assert contents(learner.set_params(warm_start=False), tmp_path) == before


def test_an_unfitted_learner_says_so(case, tmp_path):
    learner, X, y = case
    for call in (lambda: learner.predict(X), lambda: learner.score(X, y), lambda: learner.save(tmp_path / "x")):
        with pytest.raises(NotFittedError):
            call()


def test_average_and_last_weights_differ(case):
    learner, X, y = case
    for keep in ("average", "last"):
        assert clone(learner).set_params(keep=keep).fit(X, y).score(X, y) > 0.6
    with pytest.raises(ValueError, match="keep must be one of 'average', 'last'"):
        learner.set_params(keep="vote").fit(X, y)


def test_passive_aggressive_steps_will_do_too(case, tmp_path):
    learner, X, y = case
    rule = rules.PA1(C=0.5)
    learner.set_params(rule=rule, max_iter=10).fit(X, y)
    assert learner.score(X, y) > 0.8
    learner.save(tmp_path / "model")
    assert type(learner).load(tmp_path / "model").rule == rule


def test_scikit_learn_can_validate_search_copy_and_pickle(case):
    learner, X, y = case
    assert np.isfinite(cross_val_score(learner, X, y, cv=3)).all()
    found = GridSearchCV(learner, {"margin": [0.0, 1.0]}, cv=2).fit(X, y)
    assert found.best_params_["margin"] in (0.0, 1.0)
    for again in (pickle.loads(pickle.dumps(found.best_estimator_)), copy.deepcopy(found.best_estimator_)):
        assert again.predict(X) == found.predict(X)


def test_validation_stops_and_is_recorded(case):
    learner, X, y = case
    learner.set_params(max_iter=40, tol=1e-6, n_iter_no_change=2)
    learner.fit(X[:20], y[:20], X_val=X[20:], y_val=y[20:])
    assert all(epoch.validation_error is not None for epoch in learner.history_)
    assert learner.n_iter_ < 40
    held = clone(learner).set_params(early_stopping=True, validation_fraction=0.3).fit(X, y)
    assert held.history_[0].seen == 21


def test_early_stopping_stops_without_a_tol(case):
    learner, X, y = case
    learner.set_params(max_iter=60, early_stopping=True, n_iter_no_change=2).fit(X, y)
    assert learner.tol is None
    assert learner.n_iter_ < 60


def test_early_stopping_is_refused_in_a_stream(case):
    learner, X, y = case
    with pytest.raises(UnsupportedOperation, match="early_stopping=True cannot be used with partial_fit"):
        learner.set_params(early_stopping=True).partial_fit(X, y)


def test_a_small_model_has_no_other_weights_than_it_was_saved_with(case, tmp_path):
    learner, X, y = case
    learner.fit(X, y).save(tmp_path / "small")
    again = type(learner).load(tmp_path / "small").set_params(keep="last")
    with pytest.raises(ValueError, match="with keep='average', and has no weights for keep='last'"):
        again.predict(X)


@pytest.mark.parametrize(("name", "other"), [("greedy", {"beam": 2}), ("eisner", {"decoder": "chu-liu-edmonds"}),
                                             ("tagger", {"search": "greedy"})])  # fmt: skip
def test_another_search_than_the_one_learned_with_is_warned_of(name, other, tmp_path):
    learner, (X, y) = LEARNERS[name]
    learner = clone(learner).fit(X[:5], y[:5])
    learner.save(tmp_path / "model")
    for one in (learner, type(learner).load(tmp_path / "model")):
        with pytest.warns(UserWarning, match="expect worse answers"):
            one.set_params(**other).predict(X[:2])


@pytest.mark.parametrize("name", ["greedy", "eisner"])
def test_trees_may_be_lists_and_score_as_what_they_are(name):
    learner, (X, y) = LEARNERS[name]
    learner = clone(learner).fit(X, y)
    assert learner.score(X, [[list(part) for part in tree] for tree in y]) == learner.score(X, y)
    assert sorted(learner.labels_) == ["advmod", "det", "nsubj", "obj", "root"]
    for bad in ("2", 2.0, True, None):
        with pytest.raises(ValueError, match="sentence 1, word 1: the head must be a whole number"):
            learner.score(X, [[(bad, "det"), *y[0][1:]], *y[1:]])
    heads = [[head for head, _ in tree] for tree in y]
    with pytest.raises(ValueError, match="a tree is a list of \\(head, label\\); got 2"):
        learner.fit(X, heads)
    bare = clone(learner).set_params(labelled=False, max_iter=10).fit(X, heads)
    assert bare.score(X, heads) == bare.score(X, y) > 0.9


def test_sentences_of_a_file_are_not_taken_for_what_is_in_them(case):
    from rosenblatt.data.conllu import Sentence

    learner, _, y = case
    with pytest.raises(TypeError, match="X holds Sentence objects of a file"):
        learner.fit([Sentence.of(["a"])], y[:1])


def test_warm_start_goes_on(case, tmp_path):
    learner, X, y = case
    learner.set_params(order="cyclic", max_iter=1)
    two = clone(learner).set_params(warm_start=True).fit(X, y).fit(X, y)
    streamed = clone(learner).partial_fit(X, y).partial_fit(X, y)
    assert contents(two, tmp_path)[1] == contents(streamed, tmp_path)[1]


def test_memory_is_bounded_by_the_features_seen_and_reported(case):
    learner, X, y = case
    one = clone(learner).fit(X[:1], y[:1]).memory_
    few, more = (clone(learner).set_params(max_iter=epochs).fit(X, y).memory_ for epochs in (2, 20))
    assert 0 < one < few <= more < 40 * few


def test_progress_is_shown_on_stderr(case, capsys):
    learner, X, y = case
    learner.set_params(verbose=1, max_iter=2).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "epoch 1" in shown.err


def interrupt_after(epochs, monkeypatch):
    """Press Ctrl-C at the end of an epoch of the next training."""

    class Keyboard:
        def __init__(self, most, units):
            pass

        def __call__(self, epoch):
            if epoch.epoch == epochs:
                os.kill(os.getpid(), signal.SIGINT)

        def done(self, reason):
            pass

    monkeypatch.setattr("rosenblatt.estimators.base.Bar", Keyboard)


@pytest.mark.parametrize("validation", [{}, {"early_stopping": True, "n_iter_no_change": 3}])
def test_a_training_that_was_interrupted_resumes_to_the_same_model(case, validation, tmp_path, monkeypatch):
    learner, X, y = case
    learner.set_params(max_iter=6, verbose=1, **validation)
    interrupt_after(0, monkeypatch)
    whole = clone(learner).fit(X, y)
    interrupt_after(2, monkeypatch)
    half = clone(learner)
    with pytest.raises(KeyboardInterrupt):
        half.fit(X, y)
    assert (half.stop_reason_, half.n_iter_) == ("interrupted", 2)
    half.save(tmp_path / "half", resume=True)
    resumed = type(learner).load(tmp_path / "half")
    assert resumed.resume(X, y) is resumed
    assert contents(resumed, tmp_path) == contents(whole, tmp_path)
    assert [epoch[:-2] for epoch in resumed.history_] == [epoch[:-2] for epoch in whole.history_]
    assert (resumed.n_seen_, resumed.n_updates_, resumed.n_mistakes_) == (
        whole.n_seen_,
        whole.n_updates_,
        whole.n_mistakes_,
    )


def test_only_an_interrupted_training_resumes_and_only_on_the_same_data(case, monkeypatch):
    learner, X, y = case
    with pytest.raises(NotFittedError):
        learner.resume(X, y)
    interrupt_after(1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        learner.set_params(verbose=1).fit(X, y)
    with pytest.raises(InvalidData, match="not the examples that the interrupted training learned from"):
        learner.resume(X[1:], y[1:])
    with pytest.raises(UnsupportedOperation, match="its random order is not known"):
        copy.copy(learner).set_params(random_state=None).resume(X, y)
    learner.resume(X, y)
    with pytest.raises(UnsupportedOperation, match="was not interrupted, but ended: "):
        learner.resume(X, y)


def test_the_progress_line_says_what_is_counted(case, capsys):
    learner, X, y = case
    learner.set_params(max_iter=1, verbose=1).fit(X, y)
    line, epoch = capsys.readouterr().err.splitlines()[0], learner.history_[0]
    if learner.get_params().get("beam") == 1:  # a sentence has as many mistakes as wrong actions
        assert line.startswith(f"epoch 1  mistakes {epoch.mistakes} actions in 30 sentences  updates")
    else:
        share = f"({epoch.mistakes / 30:.2%})"
        assert line.startswith(f"epoch 1  mistakes {epoch.mistakes} of 30 sentences {share}  updates")


@pytest.mark.parametrize("name", ["greedy", "beam", "eisner", "spanning"])
def test_a_parser_may_start_from_the_weights_of_one_that_only_predicts(name, tmp_path):
    learner, (X, y) = LEARNERS[name]
    before = clone(learner).set_params(max_iter=6).fit(X, y)
    before.save(tmp_path / "small")
    start = type(learner).load(tmp_path / "small")
    after = clone(learner).set_params(max_iter=2).fit(X, y, start=start)
    assert after.history_[0].mistakes < before.history_[0].mistakes
    assert after.n_seen_ == after.n_iter_ * len(X)
    assert start.predict(X) == before.predict(X)
    words, tree = [("zebra", "NOUN"), ("yawns", "VERB")], [(2, "agent"), (0, "root")]
    new = clone(learner).set_params(max_iter=20).fit([words], [tree], start=start)
    assert new.labels_ == [*before.labels_, "agent"]
    assert new.predict([words]) == [tree]
    nothing = clone(learner).set_params(max_iter=1).fit([[]], [[]], start=start)
    assert nothing.predict(X) == before.predict(X)
    with pytest.raises(ValueError, match="fields has changed"):
        clone(learner).set_params(fields=("form", "xpos")).fit(X, y, start=start)
    with pytest.raises(TypeError, match=r"start must be a trained .* or None; got 'str'"):
        clone(learner).fit(X, y, start="small")
