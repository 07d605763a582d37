"""Training from files: a stream gives the model of loaded rows, an interrupted run that of one that never stopped."""

import io
import os
import signal
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import rosenblatt
from rosenblatt import errors
from rosenblatt.data import svmlight
from rosenblatt.data.formats import detect_format
from rosenblatt.errors import ContinuousLabels, IncompatibleParameters
from rosenblatt.modelfile import container
from rosenblatt.testing import laws
from rosenblatt.workflow import (
    FileModel,
    Options,
    calibrate,
    cross_validated,
    evaluate,
    heaviest,
    learner_named,
    learning_curve,
    reading_for,
    reasons,
    train,
)
from rosenblatt.workflow.labels import Labels, refuse_continuous
from rosenblatt.workflow.learners import LEARNERS, parse_setting
from rosenblatt.workflow.probabilities import Sigmoids

LEARNT = ("Perceptron", "AROW", "KernelPerceptron")


@pytest.fixture
def data(tmp_path):
    """Three classes in a file that counts features from 1, as text; rows that come late have features that are new."""
    X, y = laws.data(3, rows=60, features=5)
    X[:20, 3:] = 0
    path = tmp_path / "rows.svm"
    svmlight.write(path, sp.csr_matrix(X), y, zero_based=False)
    return str(path), X, y


@pytest.fixture
def small_blocks(monkeypatch):
    """Batches of a few rows."""
    made = svmlight.chunks
    monkeypatch.setattr(svmlight.files, "chunks", lambda paths, **options: made(paths, size=256, **options))


def same(one, other, X):
    laws.assert_same_model(one.learner, other.learner, X, "the models")


def wide(X):
    """X as files have it: a column for index 0 too."""
    return np.hstack([np.zeros((len(X), 1)), X])


@pytest.mark.parametrize("name", LEARNT)
@pytest.mark.parametrize("passes", [1, 3])
def test_streaming_is_loading(data, small_blocks, name, passes):
    path, X, _ = data
    options = Options(passes=passes, order="cyclic")
    reading = reading_for([path])
    loaded = train(path, reading, learner_named(name), options)
    streamed = train(path, reading, learner_named(name), Options(passes=passes, stream=True))
    assert streamed.learner.n_features_in_ == loaded.learner.n_features_in_ == 6
    same(loaded, streamed, wide(X))
    assert loaded.training["xxh64"] == streamed.training["xxh64"]
    assert loaded.training["history"] == streamed.training["history"]


def test_loaded_in_order_is_partial_fit(data):
    path, X, y = data
    model = train(path, reading_for([path]), rosenblatt.Perceptron(keep="average"), Options(passes=2, order="cyclic"))
    by_hand = rosenblatt.Perceptron(keep="average")
    for _ in range(2):
        by_hand.partial_fit(sp.csr_matrix(wide(X)), y, classes=[0, 1, 2])
    laws.assert_same_model(by_hand, model.learner, wide(X), "training from a file")
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["Perceptron", "AROW", "RandomBudgetPerceptron"])
def test_interrupted_goes_on_exactly_there(data, small_blocks, tmp_path, stream, name):
    path, X, _ = data
    options = Options(passes=3, stream=stream)
    whole = train(path, reading_for([path]), learner_named(name), options)
    steps = []

    def interrupt(step):
        steps.append(step)
        if len(steps) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    model = train(path, reading_for([path]), learner_named(name), options, interrupt)
    assert model.training["stopped"] == "interrupted"
    rounds = 0
    while model.training["stopped"] == "interrupted":
        rounds += 1
        steps.clear()
        model.save(tmp_path / "half.model")
        resumed = rosenblatt.load(tmp_path / "half.model")
        model = train(path, resumed.reading, None, options, interrupt, resumed)
    assert rounds >= 2
    same(whole, model, wide(X))
    assert model.training["history"] == whole.training["history"]
    assert model.training["mistakes"] == whole.training["mistakes"]


def test_a_model_learns_on_from_other_files(data, tmp_path):
    path, X, _ = data
    lines = Path(path).read_text().splitlines(keepends=True)
    for name, part in (("one.svm", lines[:25]), ("two.svm", lines[25:])):
        (tmp_path / name).write_text("".join(part))
    once = Options(passes=1, order="cyclic")
    whole = train(path, reading_for([path]), rosenblatt.Perceptron(keep="average"), once)
    first = train(str(tmp_path / "one.svm"), reading_for([path]), rosenblatt.Perceptron(keep="average"), once)
    first.save(tmp_path / "one.model")
    both = train(str(tmp_path / "two.svm"), first.reading, None, once, start=rosenblatt.load(tmp_path / "one.model"))
    same(whole, both, wide(X))
    assert both.classes_.tolist() == [0, 1, 2]
    first.save(tmp_path / "small.model", resume=False)
    with pytest.raises(ValueError, match="saved for prediction only"):
        train(path, first.reading, None, once, start=rosenblatt.load(tmp_path / "small.model"))


def test_resuming_with_other_files_or_options_is_refused(data, tmp_path):
    path, _, _ = data
    options = Options(passes=3)
    finished = train(path, reading_for([path]), options=options)
    with pytest.raises(ValueError, match="not interrupted"):
        train(path, finished.reading, None, options, resume=finished)
    finished.training["stopped"] = "interrupted"
    with pytest.raises(ValueError, match="seed must be the same as before the interrupt, 0; got 1"):
        train(path, finished.reading, None, Options(passes=3, seed=1), resume=finished)
    other = tmp_path / "other.svm"
    other.write_text("1 1:1\n2 1:2\n")
    with pytest.raises(ValueError, match="other files"):
        train(str(other), finished.reading, None, options, resume=finished)


def test_a_model_predicts_after_loading_as_before(data, tmp_path):
    path, X, y = data
    model = train(path, reading_for([path]))
    model.save(tmp_path / "rows.model")
    again = rosenblatt.load(tmp_path / "rows.model")
    assert isinstance(again, FileModel)
    assert again.predict(path).tolist() == model.predict(path).tolist() == model.learner.predict(wide(X)).tolist()
    assert again.training == model.training
    report = evaluate(again, path)
    assert report.accuracy == np.mean(again.predict(path) == y)
    assert report.confusion.sum() == report.rows == 60
    with pytest.raises(container.UnreadableModel, match="not a Perceptron"):
        rosenblatt.Perceptron.load(tmp_path / "rows.model")


@pytest.mark.parametrize("paths", [[["a"]], None, 3, ["rows.svm", None], [b"rows.svm"], np.zeros((2, 2))])
def test_what_is_no_path_is_refused(data, paths):
    model = train(data[0], reading_for([data[0]]))
    with pytest.raises(errors.InvalidParameterType, match="paths must be a path or a list of paths"):
        model.predict(paths)


def test_columns_that_no_row_had_count_for_nothing(data, tmp_path):
    path, _, _ = data
    model = train(path, reading_for([path]))
    new = tmp_path / "new.svm"
    new.write_text("0 1:1 900:5\n0 1:1\n")
    (answers,) = model.answers(str(new))
    assert answers.unknown == 1
    assert answers.labels[0] == answers.labels[1]


def test_labels_may_be_text_and_numbers_have_many_spellings(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("+1 1:1\n1.0 1:2\n-1 2:1\n1e0 1:1\n")
    model = train(str(path), reading_for([str(path)]))
    assert model.classes_.tolist() == [-1, 1]
    assert model.classes_.dtype == np.int64
    path.write_text("spam 1:1\nham 2:1\nspam 1:2\n")
    assert train(str(path), reading_for([str(path)])).classes_.tolist() == ["ham", "spam"]


def test_weights_of_classes_name_labels(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("spam 1:1\nham 1:1\n" * 5)
    model = train(str(path), reading_for([str(path)]), learner_named("perceptron", {"class_weight": {"spam": 9, "ham": 1}}))
    assert model.learner.class_weight == {"spam": 9, "ham": 1}
    assert model.predict(str(path)).tolist() == ["spam"] * 10
    with pytest.raises(ValueError, match=r"class_weight must be .*ham, spam; got .*eggs"):
        train(str(path), reading_for([str(path)]), learner_named("perceptron", {"class_weight": {"eggs": 9}}))


def test_a_pipe_is_read_once(data, monkeypatch):
    path, X, _ = data
    from_file = train(path, reading_for([path]), rosenblatt.Perceptron(), Options(stream=True))

    def through_a_pipe(options):
        with open(path, "rb") as file:
            monkeypatch.setattr("sys.stdin", type("Pipe", (), {"buffer": file}))
            return train("-", reading_for(["-"], "svmlight"), rosenblatt.Perceptron(), options)

    same(from_file, through_a_pipe(Options(classes=["0", "1", "2"])), wide(X))
    grown = through_a_pipe(Options())
    assert sorted(grown.classes_.tolist()) == [0, 1, 2]
    with pytest.raises(ValueError, match="once only"):
        through_a_pipe(Options(passes=2))


def test_a_regressor_learns_numbers(tmp_path):
    path = tmp_path / "rows.svm"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    svmlight.write(path, sp.csr_matrix(X), X @ [1, -2, 0.5], zero_based=True)
    model = train(str(path), reading_for([str(path)]), learner_named("PassiveAggressiveRegressor"))
    assert evaluate(model, str(path)).r2 > 0.95
    folds = cross_validated(str(path), reading_for([str(path)]), learner_named("PassiveAggressiveRegressor"), 3)
    assert min(folds.scores) > 0.9
    path.write_text("a 1:1\nb 1:2\n")
    with pytest.raises(ValueError, match="learns numbers"):
        train(str(path), reading_for([str(path)]), learner_named("PassiveAggressiveRegressor"))


@pytest.mark.parametrize(("labels", "rows", "continuous"), [
    (np.linspace(0, 1, 6), 6, True), (np.linspace(0, 1, 30), 3000, True), (np.arange(30), 40, True),
    (np.array([0.5, 1.0]), 2, False), (np.array([0.5, 1.0, 1.5]), 30, False), (np.arange(5), 5, True),
    (np.arange(19), 30, False),
    (np.arange(1000), 5000, False), (np.array(["0.5", "0.7", "0.9"]), 3, False),
])  # fmt: skip
def test_labels_that_look_like_numbers_to_predict(labels, rows, continuous):
    with pytest.raises(ContinuousLabels, match=f"{len(labels)} different ones") if continuous else nullcontext():
        refuse_continuous(labels, rows)


@pytest.mark.parametrize("stream", [False, True])
def test_numbers_to_predict_are_no_classes_unless_the_options_say_so(stream, tmp_path):
    path = str(tmp_path / "rows.svm")
    X = np.random.default_rng(0).standard_normal((60, 3))
    svmlight.write(path, sp.csr_matrix(X), X @ [1, -2, 0.5], zero_based=True)
    reading = reading_for([path])
    with pytest.raises(ContinuousLabels, match="60 different ones in 60 rows") as error:
        train(path, reading, options=Options(stream=stream))
    assert error.value.path == path
    assert len(train(path, reading, options=Options(stream=stream, task="classification")).classes_) == 60
    model = train(path, reading, options=Options(stream=stream, passes=20, task="regression"))
    assert evaluate(model, path).root_mean_squared_error < 0.1
    with pytest.raises(ContinuousLabels):
        cross_validated(path, reading, learner_named("perceptron"), 3)
    with pytest.raises(IncompatibleParameters, match="Perceptron predicts classes"):
        train(path, reading, learner_named("perceptron"), Options(task="regression"))


def test_folds_and_curves(data):
    path, _, y = data
    reading = reading_for([path])
    folds = cross_validated(path, reading, learner_named("perceptron"), 4)
    assert len(folds.scores) == 4
    assert folds.overall.rows == len(y)
    assert np.mean(folds.scores) == pytest.approx(folds.overall.accuracy, abs=1e-9)
    points = list(learning_curve(path, reading, learner_named("perceptron")))
    assert [point.rows for point in points] == sorted(point.rows for point in points)
    assert points[-1].rows == 48
    with pytest.raises(ValueError, match="from 2 to the number of rows, 60"):
        cross_validated(path, reading, learner_named("perceptron"), 61)


@pytest.mark.parametrize(("share", "held"), [(0.25, 15), (0.03, 2), (0.01, 1)])
def test_rows_held_out_are_not_learned_from(data, share, held):
    """Of 60 rows there are 15, 1.8 and 0.6 to hold out, to the nearest whole number."""
    path, _, _ = data
    steps = []
    model = train(path, reading_for([path]), options=Options(passes=2, holdout=share), watch=steps.append)
    assert model.training["history"][0]["rows"] == 60 - held
    wrong = [held * step.error for step in steps if step.ends]
    assert len(wrong) == 2
    assert all(0 <= count <= held and count == pytest.approx(round(count)) for count in wrong)


def test_reasons_add_up(data):
    path, X, _ = data
    model = train(path, reading_for([path]))
    chunk = svmlight.Svmlight().chunk(next(iter(model.reading.batches([path]))))
    scores = model.learner.decision_function(wide(X))
    for row in (0, 7):
        for label in (None, "0", "1"):
            found = reasons(model, chunk, row, label)
            column = int(found.label)
            assert found.score == pytest.approx(scores[row, column])
            assert found.intercept + sum(weight.value for weight in found.features) == pytest.approx(found.score)
            assert found.margin == pytest.approx(scores[row, column] - max(np.delete(scores[row], column)))
    assert reasons(model, chunk, 0).label == str(model.predict(path)[0])
    assert [entry.label for entry in heaviest(model)] == ["0", "1", "2"]
    with pytest.raises(ValueError, match="one of 0, 1, 2"):
        reasons(model, chunk, 0, "9")


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_is_known_by_its_name(name):
    assert type(learner_named(name.lower())).__name__ == name


def test_what_is_asked_wrongly_is_said():
    with pytest.raises(ValueError, match=r"learner must be one of Perceptron, .*; got 'perzeptron'"):
        learner_named("perzeptron")
    with pytest.raises(ValueError, match=r"Perceptron has no parameter 'marign'; did you mean 'margin'\?"):
        learner_named("perceptron", {"marign": 1})
    with pytest.raises(ValueError, match="name=value"):
        parse_setting("margin")
    assert [parse_setting(text)[1] for text in ("a=1", "a=None", "a=true", "a=word", "a=[1,2]")] == [
        1,
        None,
        True,
        "word",
        [1, 2],
    ]
    for wrong in ({"passes": 0}, {"order": "random"}, {"holdout": 1.0}, {"seed": -1}):
        with pytest.raises(errors.InvalidParameter, match=f"{next(iter(wrong))} must be"):
            Options(**wrong)


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ("1 3:0.5 7:1", "svmlight"),
        ("1 | a b:2", "vw"),
        ('{"a": 1}', "jsonl"),
        ("a\tb", "tsv"),
        ("a,b", "csv"),
    ],
)
def test_the_first_line_tells_the_format(tmp_path, line, format):
    path = tmp_path / "data"
    path.write_text(f"{line}\n")
    assert detect_format(str(path)) == format


def test_floats_stream_as_they_load(tmp_path, small_blocks):
    rng = np.random.default_rng(0)
    X = sp.random(150, 40, 0.2, "csr", random_state=0)
    y = np.asarray(X @ rng.standard_normal(40) > 0.1).astype(int)
    path = tmp_path / "rows.svm"
    svmlight.write(path, X, y)
    for learner in (learner_named("pa"), learner_named("PassiveAggressiveRegressor")):
        loaded = train(str(path), reading_for([str(path)]), learner, Options(passes=2, order="cyclic"))
        streamed = train(str(path), reading_for([str(path)]), learner, Options(passes=2, stream=True))
        assert np.array_equal(loaded.learner.coef_, streamed.learner.coef_)


def test_text_labels_stay_apart_and_numbers_are_values():
    labels = Labels(np.array(["007", "7", "A1", "7.0"], object))
    assert labels.classes().tolist() == ["007", "7", "7.0", "A1"]
    assert labels.numbers(np.array(["7", "x"], object)).tolist() == [1, -1]
    assert Labels.from_text(["10", "-1"]).classes().tolist() == [-1, 10]
    assert Labels.from_text(["10", "no"]).classes().tolist() == ["10", "no"]
    assert Labels.from_text(["10", "-1"]).number("+10") == 1


def test_rows_of_weight_zero_are_not_there(tmp_path):
    path, without = tmp_path / "rows.vw", tmp_path / "without.vw"
    lines = ["1 | a b", "-1 | c", "1 2 | b", "-1 | c d"] * 10
    without.write_text("\n".join(lines))
    path.write_text("\n".join(f"{line}\n1 0 | c" for line in lines) + "\n-1 0 | a" * 90)
    for options in (Options(passes=2, order="cyclic"), Options(passes=2, stream=True)):
        one, other = (train(str(file), reading_for([str(file)]), options=options) for file in (path, without))
        assert np.array_equal(one.learner.coef_, other.learner.coef_)


def test_a_file_that_changes_between_two_passes_is_noticed(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n2 2:1\n" * 60)
    seen = []

    def change(step):
        if not seen:
            path.write_text("2 1:1\n1 2:1\n" * 60)
        seen.append(step)

    with pytest.raises(errors.InvalidData, match=r"rows\.svm: the content has changed since the pass before; begin again"):
        train(str(path), reading_for([str(path)]), None, Options(passes=3, stream=True), change)


def test_a_label_that_comes_after_an_interrupt_begins_again_too(tmp_path, small_blocks):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n2 2:1\n" * 60 + "3 3:1\n" * 20)
    options = Options(passes=2, stream=True)
    whole = train(str(path), reading_for([str(path)]), options=options)
    half = train(str(path), reading_for([str(path)]), None, options, lambda step: os.kill(os.getpid(), signal.SIGINT))
    assert half.classes_.tolist() == [1, 2]
    resumed = train(str(path), half.reading, None, options, resume=half)
    assert resumed.classes_.tolist() == [1, 2, 3]
    assert np.array_equal(resumed.learner.coef_, whole.learner.coef_)


def test_a_training_that_was_started_with_sigint_ignored_goes_on_ignoring_it(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n2 2:1\n" * 3)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        model = train(str(path), reading_for([str(path)]), watch=lambda step: os.kill(os.getpid(), signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.training["stopped"] != "interrupted"


def test_resuming_keeps_passes_and_columns(tmp_path, small_blocks):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n2 2:1 9:1\n" * 60 + "1 29:1 30:1\n2 2:3\n" * 20)
    half = train(
        str(path), reading_for([str(path)]), None, Options(passes=7, stream=True),
        lambda step: os.kill(os.getpid(), signal.SIGINT) if step.seen > 120 else None,
    )  # fmt: skip
    half.save(tmp_path / "half.model")
    half.training["pass"] = 3
    with pytest.raises(ValueError, match="passes must be at least 3"):
        train(str(path), half.reading, None, Options(passes=2, stream=True), resume=half)
    half = FileModel.load(tmp_path / "half.model")
    model = train(str(path), half.reading, None, Options(stream=True), resume=half)
    assert model.learner.n_features_in_ == 31
    assert model.training["passes"] == 7


def test_weights_that_no_machine_can_keep_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 9000000000000:1\n2 1:1\n")
    for stream in (False, True):
        with pytest.raises(ValueError, match="largest index is 9,000,000,000,000"):
            train(str(path), reading_for([str(path)]), options=Options(stream=stream))


def test_a_pipe_with_a_name_is_read_once(data, tmp_path):
    path, X, _ = data
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=lambda: pipe.write_bytes(Path(path).read_bytes()))
    feeder.start()
    model = train(
        str(pipe), reading_for([str(pipe)], "svmlight"), rosenblatt.Perceptron(), Options(classes=["0", "1", "2"])
    )
    feeder.join()
    same(train(path, reading_for([path]), rosenblatt.Perceptron(), Options(stream=True)), model, wide(X))
    bare = tmp_path / "pipe"
    os.mkfifo(bare)
    with pytest.raises(ValueError, match="no name that tells it"):
        reading_for([str(bare)])


def test_labels_grow_in_the_order_of_arrival():
    labels = Labels(grow=True)
    assert labels.numbers(np.array(["b", "a", "b"], object)).tolist() == [0, 1, 0]
    assert labels.numbers(np.array([3.0, 1.0])).tolist() == [2, 3]
    assert labels.classes().tolist() == ["b", "a", "3", "1"]
    assert Labels([2.0, -1.0, 10.0]).classes().tolist() == [-1, 2, 10]


def test_one_class_is_not_enough(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n1 2:1\n")
    for stream in (False, True):
        with pytest.raises(ValueError, match="one class only: 1"):
            train(str(path), reading_for([str(path)]), options=Options(stream=stream))


def test_a_line_that_is_skipped_brings_no_class(tmp_path, small_blocks):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n1 2:1\n" * 40 + "what is this\n-3 x\n" + "2 3:1\n1 1:1\n" * 10)
    for stream in (False, True):
        model = train(str(path), reading_for([str(path)]), options=Options(stream=stream, on_error="skip"))
        assert model.classes_.tolist() == [1, 2]
        assert model.training["skipped"] == 2


# One door to training: folds and curves prepare a learner as `train` does


@pytest.fixture
def mail(tmp_path):
    """Two classes with names, of which no hyperplane tells the rows apart."""
    path = tmp_path / "mail.svm"
    path.write_text("spam 1:1\nham 1:1\n" * 6)
    return str(path)


def test_folds_and_curves_take_class_weights_by_name(mail):
    learner = learner_named("perceptron", {"class_weight": {"spam": 9, "ham": 1}})
    folds = cross_validated(mail, reading_for([mail]), learner, 3)
    assert folds.overall.confusion.tolist() == [[0, 6], [0, 6]]  # all are called spam, which weighs more
    assert list(learning_curve(mail, reading_for([mail]), learner))
    assert learner.class_weight == {"spam": 9, "ham": 1}
    with pytest.raises(ValueError, match="class_weight"):
        cross_validated(mail, reading_for([mail]), learner_named("perceptron", {"class_weight": {"eggs": 9}}), 3)


def test_the_seed_reaches_the_learners_of_folds(data, monkeypatch):
    path, _, _ = data
    seeds = []
    whole = rosenblatt.RandomBudgetPerceptron.partial_fit

    def noting(self, *arguments, **options):
        seeds.append(self.random_state)
        return whole(self, *arguments, **options)

    monkeypatch.setattr(rosenblatt.RandomBudgetPerceptron, "partial_fit", noting)
    learner = learner_named("RandomBudgetPerceptron", {"budget": 5})
    cross_validated(path, reading_for([path]), learner, 2, Options(seed=7, passes=1))
    list(learning_curve(path, reading_for([path]), learner, Options(seed=7, passes=1)))
    assert set(seeds) == {7}


@pytest.mark.parametrize("options", [Options(), Options(stream=True), Options(holdout=0.5)])
def test_weights_that_are_all_zero_are_refused(tmp_path, options):
    path = tmp_path / "rows.vw"
    path.write_text("1 0 | a\n-1 0 | b\n" * 4)
    with pytest.raises(errors.InvalidData, match="weight 0"):
        train(str(path), reading_for([str(path)]), options=options)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["perceptron", "arow"])
def test_learning_on_leaves_the_model_as_it_was(tmp_path, stream, name):
    path, other = str(tmp_path / "rows.svm"), tmp_path / "other.svm"
    Path(path).write_text("a 1:1\nb 2:1\nc 3:1\n" * 5)
    model = train(path, reading_for([path]), learner_named(name, {"class_weight": {"a": 2}} if name != "arow" else {}))
    before, weights = model.learner.get_params(), model.learner.coef_.copy()
    other.write_text(f"a 1:1\nb 2:1\nd {3 if name == 'arow' else 4}:1\n" * 5)  # AROW cannot learn new columns either
    if name == "arow":
        with pytest.raises(errors.UnknownLabel, match=r"'d'.*AROW cannot learn new classes"):
            train(str(other), model.reading, None, Options(stream=stream), start=model)
    else:
        more = train(str(other), model.reading, None, Options(stream=stream, passes=5), start=model)
        assert more.classes_.tolist() == ["a", "b", "c", "d"]
        assert more.learner.get_params() == before
        assert more.predict(str(other)).tolist() == ["a", "b", "d"] * 5
        assert more.features == 4
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.learner.get_params() == before
    assert np.array_equal(model.learner.coef_, weights)
    assert model.predict(path).tolist() == ["a", "b", "c"] * 5


@pytest.mark.parametrize("file", ["other.svm", "other.csv"])
def test_learning_on_from_a_pipe_is_learning_on_from_a_file(tmp_path, monkeypatch, file):
    """To the byte: the learner is saved as the same facts and arrays; files and times are the only difference."""
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("a 1:1\nb 2:1\na 1:2\n" * 5)
    Path("other.svm").write_text("a 1:1\nc 3:1 7:1\nb 2:1\nd 9:1\nc 3:2\n" * 5)
    Path("rows.csv").write_text("label,x\na,1\nb,2\n" * 1 + "a,1\nb,2\n" * 4)
    Path("other.csv").write_text("label,x\nc,5\na,1\nd,7\n")
    rows = file.replace("other", "rows")
    model = train(rows, reading_for([rows]))
    saved = []
    for options in (Options(stream=True), Options(stream=False, order="cyclic", passes=1), None):
        if options is None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(file).read_bytes())))
        paths = file if options is not None else "-"
        more = train(paths, model.reading, None, options or Options(), start=model)
        assert sorted(more.classes_.tolist()) == ["a", "b", "c", "d"]
        saved.append(more.learner.to_parts(resume=True))
    for parts in saved[1:]:
        assert parts.facts == saved[0].facts
        assert {name: array.tobytes() for name, array in parts.arrays.items()} == {
            name: array.tobytes() for name, array in saved[0].arrays.items()
        }


def test_learning_on_resumes_where_it_was_interrupted(tmp_path, small_blocks):
    path, other = str(tmp_path / "rows.svm"), str(tmp_path / "other.svm")
    Path(path).write_text("a 1:1\nb 2:1\n" * 5)
    Path(other).write_text("a 1:1\nb 2:1\n" * 50 + "c 3:1\nb 3:2\n" * 50)
    model = train(path, reading_for([path]))
    options = Options(stream=True, passes=2)
    whole = train(other, model.reading, None, options, start=model)
    half = train(other, model.reading, None, options, lambda step: os.kill(os.getpid(), signal.SIGINT), start=model)
    assert half.training["stopped"] == "interrupted"
    assert half.classes_.tolist() == ["a", "b"]
    half.save(tmp_path / "half.model")
    resumed = train(other, model.reading, None, options, resume=FileModel.load(tmp_path / "half.model"))
    assert resumed.classes_.tolist() == ["a", "b", "c"]
    assert resumed.learner.get_params() == model.learner.get_params()
    same(whole, resumed, np.eye(4))


def test_a_regressor_predicts_an_empty_file(tmp_path):
    path, empty = tmp_path / "rows.svm", tmp_path / "empty.svm"
    path.write_text("1.5 1:1\n2.5 1:2\n")
    empty.write_text("")
    model = train(str(path), reading_for([str(path)]), learner_named("PassiveAggressiveRegressor"))
    assert model.predict(str(empty)).tolist() == []
    assert model.predict(str(empty)).dtype == np.float64


@pytest.mark.parametrize("passes_before", [0, 1])
def test_resuming_a_stream_whose_content_changed_is_refused(data, small_blocks, passes_before):
    path, _, _ = data
    options = Options(passes=3, stream=True)
    half = train(path, reading_for([path]), None, options,
                 lambda step: os.kill(os.getpid(), signal.SIGINT) if step.number > passes_before else None)  # fmt: skip
    assert half.training["stopped"] == "interrupted"
    text = Path(path).read_text()
    Path(path).write_text(text.replace(" 1:", " 2:", 1))
    with pytest.raises(ValueError, match=r"rows\.svm.* content"):
        train(path, half.reading, None, options, resume=half)
    Path(path).write_text(text + "1 1:1\n")
    with pytest.raises(ValueError, match=f"rows.svm.* {len(text)} bytes.* {len(text) + 6} bytes"):
        train(path, half.reading, None, options, resume=half)
    Path(path).write_text(text)
    assert train(path, half.reading, None, options, resume=half).training["stopped"] in ("passes", "converged")


# Probabilities


@pytest.fixture
def noisy(tmp_path):
    """Two classes that overlap: the second has the probability 1/(1 + exp(−2x))."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 1)) * 2
    y = (rng.random(1200) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
    paths = [str(tmp_path / name) for name in ("train.svm", "test.svm")]
    for path, rows in zip(paths, (slice(0, 800), slice(800, None)), strict=True):
        svmlight.write(path, sp.csr_matrix(x[rows]), y[rows])
    return (*paths, x[800:, 0])


def test_probabilities_are_those_of_the_data(noisy, tmp_path):
    path, test, x = noisy
    model = train(path, reading_for([path]), options=Options(passes=3))
    fitted = calibrate(model, path, reading_for([path]))
    assert model.probabilities is None
    assert fitted.learner is model.learner
    p = fitted.predict_probabilities(test)
    assert p.shape == (400, 2)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.abs(p[:, 1] - 1 / (1 + np.exp(-2 * x))).mean() < 0.05
    report = evaluate(fitted, test)
    raw = 1 / (1 + np.exp(-np.concatenate([answers.scores for answers in model.answers(test)])))
    truth = svmlight.read(test).y
    assert report.brier == pytest.approx(np.mean((p[:, 1] - truth) ** 2))
    assert report.brier < np.mean((raw - truth) ** 2)
    assert report.log_loss == pytest.approx(-np.mean(np.log(np.where(truth == 1, p[:, 1], p[:, 0]))))
    assert evaluate(model, test).log_loss is None
    fitted.save(tmp_path / "fitted.model")
    loaded = FileModel.load(tmp_path / "fitted.model")
    assert np.array_equal(loaded.predict_probabilities(test), p)
    assert np.array_equal(loaded.predict(test, threshold=0.9, probabilities=True), (p[:, 1] >= 0.9).astype(int))
    assert np.array_equal(loaded.predict(test, probabilities=True), (p[:, 1] >= 0.5).astype(int))
    with pytest.raises(errors.UnsupportedOperation, match="no probabilities"):
        model.predict_probabilities(test)
    again = train(path, model.reading, None, Options(passes=1), start=loaded)
    assert again.probabilities is None
    with pytest.raises(errors.UnsupportedOperation, match="continued from another one"):
        calibrate(again, path, reading_for([path]))


def test_a_regressor_with_probabilities_is_a_damaged_model(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1.5 1:1\n2.5 1:2\n")
    model = train(str(path), reading_for([str(path)]), learner_named("PassiveAggressiveRegressor"))
    model.probabilities = Sigmoids([1.0], [0.0], 5, 2)
    model.save(tmp_path / "odd.model")
    with pytest.raises(errors.UnreadableModel, match="probabilities of classes"):
        FileModel.load(tmp_path / "odd.model")


def test_a_class_of_one_row_has_a_probability_too(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("a 1:1\nb 2:1\n" * 10 + "c 3:1\n")
    model = calibrate(train(str(path), reading_for([str(path)])), str(path), reading_for([str(path)]))
    p = model.predict_probabilities(str(path))
    assert p.shape == (21, 3)
    assert np.allclose(p.sum(axis=1), 1)
    assert model.classes_[p[:20].argmax(axis=1)].tolist() == ["a", "b"] * 10
    report = evaluate(model, str(path))
    truth = np.eye(3)[model.classes_.searchsorted(svmlight.read(path).y.astype(str))]
    assert report.brier == pytest.approx(((p - truth) ** 2).sum(axis=1).mean())
    path.write_text("a 1:1\nb 2:1\n")
    with pytest.raises(errors.InvalidData, match="too few rows to hold some out"):
        calibrate(train(str(path), reading_for([str(path)])), str(path), reading_for([str(path)]))


def test_rows_of_weight_zero_do_not_count_for_probabilities(tmp_path, monkeypatch):
    """Beside each row stands one of the other class without weight, in the same fold."""
    rows, files = 40, (tmp_path / "rows.vw", tmp_path / "both.vw")

    def folds_in_order(self, folds):
        fold = np.arange(len(self.y)) // (len(self.y) // rows) % folds
        return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(folds)]

    monkeypatch.setattr("rosenblatt.workflow.evaluation.Rows.split", folds_in_order)
    labels = [(-1) ** k for k in range(rows)]
    features = [f"| x:{(-1) ** (k + (k % 7 == 0))}" for k in range(rows)]
    lines = [f"{label} {row}\n" for label, row in zip(labels, features, strict=True)]
    others = [f"{-label} 0 {row}\n" for label, row in zip(labels, features, strict=True)]
    files[0].write_text("".join(lines))
    files[1].write_text("".join(other + line for other, line in zip(others, lines, strict=True)))
    found = []
    for file in map(str, files):
        reading = reading_for([file], bits=4)
        model = train(file, reading, options=Options(order="cyclic"))
        found.append(calibrate(model, file, reading).probabilities)
    assert found[0].slopes[0] > 0
    assert found[1].slopes == pytest.approx(found[0].slopes, rel=1e-3)  # the solver ends near the best sigmoid
    assert found[1].intercepts == pytest.approx(found[0].intercepts, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    "facts",
    [[], {"method": "magic"}, {"slopes": [1.0, 2.0]}, {"slopes": ["1"]}, {"intercepts": [float("inf")]}, {"folds": 0}],
)
def test_probabilities_of_a_damaged_file_are_refused(facts):
    whole = {"method": "sigmoid", "slopes": [1.0], "intercepts": [0.0], "folds": 5, "rows": 9}
    assert Sigmoids.from_facts(whole, 2).to_facts() == whole
    with pytest.raises((ValueError, TypeError)):
        Sigmoids.from_facts(facts if facts == [] else whole | facts, 2)


def test_weights_and_what_averages_them_must_fit_into_the_memory_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("rosenblatt.workflow.training.machine_memory", lambda: 1_000_000)
    path = tmp_path / "rows.svm"
    path.write_text("1 50000:1\n-1 1:1\n")
    assert train(path, svmlight.Svmlight()).learner.n_features_in_ == 50_001
    path.write_text("1 100000:1\n-1 1:1\n")
    with pytest.raises(errors.InvalidData, match="there are 100,001 columns"):
        train(path, svmlight.Svmlight())


def test_one_path_is_enough_and_rows_in_memory_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,label\n1,a\n9,b\n2,a\n8,b\n")
    model = train(path, reading_for(path, target="label"))
    with pytest.raises(errors.InvalidParameterType, match=r"rows in memory .* got a ndarray"):
        model.predict(np.array([[1.0], [2.0]]))


def test_a_learner_that_is_misspelt_is_named():
    with pytest.raises(errors.InvalidParameter) as caught:
        learner_named("arrow")
    assert caught.value.hint == "did you mean 'AROW'?"
