"""A model from files, served: a row of JSON is the row that a file would have given, and learning goes on as from files."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rosenblatt
from rosenblatt import errors
from rosenblatt.data.tables import Table, TableError
from rosenblatt.modelfile import registry
from rosenblatt.serve.file_models import FileLearner, rows_of, serve_file_model
from rosenblatt.serve.limits import Limits
from rosenblatt.workflow import FileModel, Options, learner_named, reading_for, train

LIMITS = Limits()
PEOPLE = [
    {"label": "spam", "age": 3, "sure": True, "colour": "red", "note": "free prize inside"},
    {"label": "ham", "age": 5.5, "sure": False, "colour": "blue", "note": "hello there friend"},
    {"label": "ham", "age": -1, "sure": True, "colour": "red", "note": "free hello"},
    {"label": "spam", "age": 8, "sure": False, "colour": "red", "note": "a free prize"},
    {"label": "ham", "age": None, "sure": True, "colour": "green", "note": "hello friend"},
    {"label": "spam", "age": 1e-3, "sure": False, "colour": None, "note": "prize prize prize there"},
] * 3
LIBSVM = ["1 1:0.5 3:2", "-1 2:1 3:1", "1 1:3 2:0.25", "-1 3:0.1", "1 2:7", "-1 1:1e-5"]
VW = ["1 |a free:2 offer |b x:0.5", "-1 |a see you", "1 | free money:0.1", "-1 |b x:3 y |a see", "1 |a colour:red"]
OPTIONS = Options(passes=2, order="cyclic")


def json_lines(folder, rows, name="rows.jsonl"):
    file = folder / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def lines(folder, texts, name):
    file = folder / name
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(file)


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def trained(path, learner="AveragedPerceptron", **options):
    kind = learner_named("Perceptron", {"keep": "average"}) if learner == "AveragedPerceptron" else learner
    return train(path, reading_for([path], **options), kind, OPTIONS)


def weights(model):
    learner = model.learner
    return [learner.coef_.tolist(), learner.intercept_.tolist(), learner.classes_.tolist(), learner.n_mistakes_]


@pytest.fixture
def people(tmp_path):
    return trained(json_lines(tmp_path, PEOPLE), text="note", missing="fill", min_count=1)


def test_a_row_of_json_is_predicted_as_the_same_row_of_a_file(people, tmp_path):
    rows = [without(row, "label") for row in PEOPLE] + [{"age": 2, "sure": 1, "colour": "pink", "note": ""}]
    file = json_lines(tmp_path, rows, "new.jsonl")
    learner = FileLearner(people)
    found = [learner.read_row({"x": row}, LIMITS) for row in rows]
    (answers,) = people.answers(file, labelled=False)
    assert [learner.predict(row) for row in found] == people.predict(file).tolist() == answers.labels.tolist()
    assert [learner.scores(row)["spam"] for row in found] == answers.scores.tolist()
    assert (rows_of(people.reading, [{"x": row} for row in rows]).X != people.reading.chunk(batch(people, file)).X).nnz == 0


def same(one, other):
    return len(one) == len(other) and (one.matrix != other.matrix).nnz == 0


def batch(model, file):
    return model.reading.concatenate(list(model.reading.batches([file], labelled=False)))


def test_a_column_that_is_not_there_is_missing(people, tmp_path):
    learner = FileLearner(people)
    whole = learner.read_row({"x": {"age": None, "sure": None, "colour": None, "note": None}}, LIMITS)
    assert same(learner.read_row({"x": {}}, LIMITS), whole)
    strict = FileLearner(trained(json_lines(tmp_path, PEOPLE[:4], "whole.jsonl"), text="note", min_count=1))
    with pytest.raises(errors.InvalidData, match="column 'colour': the value is missing") as caught:
        strict.read_row({"x": {"age": 3, "sure": True, "note": "hello"}}, LIMITS)
    assert (type(caught.value), caught.value.column, caught.value.row) == (errors.InvalidData, "colour", None)


def test_text_alone_is_enough_where_the_only_column_is_text(tmp_path):
    file = json_lines(tmp_path, [without(row, "age", "sure", "colour") for row in PEOPLE])
    model = trained(file, text="note", min_count=1)
    learner = FileLearner(model)
    rows = [learner.read_row({"text": row["note"]}, LIMITS) for row in PEOPLE]
    assert [learner.predict(row) for row in rows] == model.predict(file).tolist()
    assert same(rows[0], learner.read_row({"x": {"note": PEOPLE[0]["note"]}}, LIMITS))
    assert "free prize" in learner.explain(rows[0], "spam").contributions
    assert learner.weights("spam")[0]["prize"] > 0


@pytest.mark.parametrize("hashing", [None, 5])
def test_rows_of_libsvm_text_are_objects_from_index_to_value(tmp_path, hashing):
    file = lines(tmp_path, LIBSVM, "rows.svm")
    model = trained(file, **({} if hashing is None else {"hashing": hashing}))
    learner = FileLearner(model)
    rows = [{pair.split(":")[0]: float(pair.split(":")[1]) for pair in line.split()[1:]} for line in LIBSVM]
    found = [learner.read_row({"x": row}, LIMITS) for row in rows]
    (answers,) = model.answers(file)
    assert [learner.scores(row)[1] for row in found] == answers.scores.tolist()
    assert learner.scores(learner.read_row({"x": {}}, LIMITS))[1] == model.learner.intercept_[0]
    for wrong in ({"free": 1}, {"-1": 1}, {"1": "red"}, {"1": None}, {"1": 1e400}):
        with pytest.raises(errors.InvalidData):
            learner.read_row({"x": wrong}, LIMITS)


def test_rows_of_vowpal_wabbit_text_are_named_features(tmp_path):
    file = lines(tmp_path, VW, "rows.vw")
    model = trained(file, bits=8)
    learner = FileLearner(model)
    rows = [
        {"a^free": 2, "a^offer": 1, "b^x": 0.5}, {"a^see": 1, "a^you": True}, {"free": 1, "money": 0.1},
        {"b^x": 3, "b^y": 1.0, "a^see": 1}, {"a^colour": "red"},
    ]  # fmt: skip
    (answers,) = model.answers(file)
    assert [learner.scores(learner.read_row({"x": row}, LIMITS))[1] for row in rows] == answers.scores.tolist()
    assert learner.read_row({"x": {}}, LIMITS).width == 256
    for wrong in ({"a b": 1}, {"a|b": 1}, {"a:b": 1}, {"": 1}, {"a^": 1}, {"a": "b c"}, {"a": None}, {"\ud800": 1}):
        with pytest.raises(errors.InvalidData):
            learner.read_row({"x": wrong}, LIMITS)


@pytest.mark.parametrize("name", ["people", "libsvm"])
def test_learning_goes_on_as_training_from_a_file_does(people, tmp_path, name):
    if name == "people":
        more = [{**row, "label": label} for row, label in zip(PEOPLE[:6], ["ham", "new", "spam"] * 2, strict=True)]
        model, file = people, json_lines(tmp_path, more, "more.jsonl")
        examples = [({"x": without(row, "label")}, row["label"]) for row in more]
    else:
        model = trained(lines(tmp_path, LIBSVM, "rows.svm"))
        file = lines(tmp_path, ["3 1:1 9:2", "1 2:1 30:0.5", "-1 9:1", "3 30:1", "-1 1:2"], "more.svm")
        examples = [({"x": {"1": 1, "9": 2}}, 3), ({"x": {"2": 1, "30": 0.5}}, 1), ({"x": {"9": 1}}, -1)]
        examples += [({"x": {"30": 1}}, 3), ({"x": {"1": 2}}, -1)]
    before = weights(model)
    learner = FileLearner(model)
    other = learner.copy()
    for example, label in examples:
        learner.learn(learner.read_row(example, LIMITS), learner.check_label(label, LIMITS), 1.0)
    expected = train(file, model.reading, options=Options(passes=1, stream=True), start=model)
    wide = expected.learner.coef_.shape[1]
    served = weights(learner.model)
    served[0] = learner.model.learner.coef_[:, :wide].tolist()
    assert not learner.model.learner.coef_[:, wide:].any()
    assert served == weights(expected)
    assert learner.model.features == expected.features
    assert weights(model) == weights(other.model) == before
    assert learner.classes == expected.classes_.tolist()


def test_a_saved_state_goes_on_as_the_one_that_was_saved(people):
    learner = FileLearner(people)
    examples = [(learner.read_row({"x": without(row, "label")}, LIMITS), row["label"]) for row in PEOPLE[::-1]]
    for row, label in examples[:7]:
        learner.learn(row, "new" if label == "ham" else label, 0.5)
    again = serve_file_model(registry.from_parts(learner.to_parts()))
    for row, label in examples[7:]:
        learner.learn(row, label, 1.0)
        again.learn(row, label, 1.0)
    assert weights(learner.model) == weights(again.model)
    one, other = learner.to_parts(), again.to_parts()
    assert one.facts == other.facts
    assert all(np.array_equal(array, other.arrays[name]) for name, array in one.arrays.items())


def test_an_explanation_adds_up_and_names_columns(people):
    learner = FileLearner(people)
    row = learner.read_row({"x": without(PEOPLE[0], "label")}, LIMITS)
    found = learner.explain(row, "ham")
    assert math.isclose(found.score, learner.scores(row)["ham"], rel_tol=1e-12)
    assert math.isclose(math.fsum([found.intercept, *found.contributions.values()]), found.score, rel_tol=1e-12)
    assert {"age", "colour=red", "prize"} <= {name.removeprefix("note:") for name in found.contributions}


def test_what_a_model_from_files_does_not_take_is_refused(people, tmp_path):
    learner = FileLearner(people)
    for example in ({}, {"x": [1, 2]}, {"text": "free"}, {"text": 5}, {"x": {"age": [1]}}, {"x": {"age": "old"}}, {"x": 5}):
        with pytest.raises(errors.InvalidData):
            learner.read_row(example, LIMITS)
    with pytest.raises(errors.InvalidData, match="surrogate"):
        learner.read_row({"x": {"note": "\ud800"}}, LIMITS)
    with pytest.raises(errors.LimitExceeded):
        learner.read_row({"x": {"age": 1, "sure": True}}, LIMITS._replace(features=1))
    fixed = FileLearner(trained(lines(tmp_path, LIBSVM, "rows.svm"), learner_named("SecondOrderPerceptron", {})))
    with pytest.raises(errors.UnknownLabel):
        fixed.check_label(7, LIMITS)
    wide = FileLearner(trained(lines(tmp_path, LIBSVM, "rows.svm")))
    with pytest.raises(errors.LimitExceeded):
        wide.read_row({"x": {"1000000000": 1}}, LIMITS)


@pytest.mark.parametrize(("name", "parameters"), [("KernelPerceptron", {}), ("AROW", {}), ("Perceptron", {"keep": "last"})])
def test_learners_of_all_kinds_can_be_served(tmp_path, name, parameters):
    model = trained(lines(tmp_path, LIBSVM, "rows.svm"), learner_named(name, parameters))
    learner = serve_file_model(model)
    row = learner.read_row({"x": {"1": 0.5}}, LIMITS)
    learner.learn(row, -1, 1.0)
    assert learner.seen == model.learner.n_seen_ + 1
    assert set(learner.scores(row)) == {-1, 1}


def test_a_learner_that_needs_all_rows_at_once_is_refused(tmp_path):
    model = FileModel(trained(lines(tmp_path, LIBSVM, "rows.svm")).reading, fitted_pocket())
    with pytest.raises(errors.UnsupportedOperation, match="pocket"):
        serve_file_model(model)


def fitted_pocket():
    return rosenblatt.Perceptron(keep="pocket").fit(np.eye(4), [-1, 1, 1, -1])


def test_labels_are_those_of_the_model(tmp_path):
    rows = [{"label": label, "a": number} for number, label in enumerate([True, False, True, False])]
    model = FileLearner(trained(json_lines(tmp_path, rows)))
    assert model.classes == ["false", "true"]
    assert model.check_label(True, LIMITS) == "true"
    numbers = FileLearner(trained(lines(tmp_path, ["0.5 1:1", "1.5 2:1", "0.5 1:2"], "rows.svm")))
    assert numbers.check_label(0.5, LIMITS) == 0.5
    with pytest.raises(errors.InvalidData):
        numbers.check_label("spam", LIMITS)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["red", "blue", " ", "", "nan", "3", "true", "free prize", "2024-01-01", "1e400", "ß"]),
    st.lists(st.integers(), max_size=1),
)  # fmt: skip
ROW = st.dictionaries(st.sampled_from(["age", "sure", "colour", "note", "other"]), VALUES)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    file = json_lines(folder, PEOPLE)
    table = Table(text="note", missing="fill", min_count=1)
    return table.fit(table.batches([file])), folder


@given(rows=st.lists(ROW, min_size=1, max_size=3))
def test_objects_are_what_a_file_of_json_lines_with_them_is(table, rows):
    fitted, folder = table
    file = json_lines(folder, [*PEOPLE, *rows], "drawn.jsonl")
    batches = fitted.batches([file], labelled=False, on_error="skip")
    expected = fitted.chunk(fitted.concatenate(list(batches))).X[len(PEOPLE) :]
    if batches.errors:
        with pytest.raises(TableError) as caught:
            fitted.batch_of_objects(rows)
        first = batches.errors[0]
        assert caught.value.row == first.line - 1 - len(PEOPLE)  # the words may differ: a column is text if one value is
        assert caught.value.column == first.column
    else:
        assert (expected != fitted.chunk(fitted.batch_of_objects(rows)).X).nnz == 0
