"""Matrices that numpy saved are rows, with their labels in a column or in a file beside them."""

import gzip
import json
import os
import signal

import numpy as np
import pytest
from xxhash import xxh64

from rosenblatt import Perceptron, load
from rosenblatt.cli import main
from rosenblatt.data import npy
from rosenblatt.data.formats import detect_format, reading_for
from rosenblatt.data.npy import Npy, find_labels
from rosenblatt.errors import FormatError, InvalidData, InvalidParameter, UnknownColumn, UnsupportedOperation
from rosenblatt.gpu.card import use_card
from rosenblatt.gpu.emulated import EmulatedCard
from rosenblatt.modelfile.parts import Parts
from rosenblatt.workflow import Options, evaluate, train

ROWS = 300


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (ROWS, 6)).astype(np.float32)
    return X, (X @ [1, -2, 1, 0, 3, 1] + rng.integers(-2, 3, ROWS) > 0).astype(int)


@pytest.fixture
def saved(data, tmp_path):
    """X.npy and y.npy."""
    np.save(tmp_path / "X.npy", data[0])
    np.save(tmp_path / "y.npy", data[1])
    return tmp_path / "X.npy"


def read(*paths, reading=None, **how):
    reading = Npy() if reading is None else reading
    return reading.concatenate(list(reading.batches([str(path) for path in paths], **how)))


@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f4", "<f8", ">f8", "<i8", "<i2", "|u1", "|b1"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1, 40, 1 << 26])
def test_rows_of_every_type_and_order_are_read(data, tmp_path, monkeypatch, kind, order, size):
    monkeypatch.setattr(npy, "BATCH", size)
    X = np.asarray(np.abs(data[0][:20]) if kind[1] in "ub" else data[0][:20], kind, order=order)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "a.labels.npy", data[1][:20])
    chunk = read(tmp_path / "a.npy")
    np.testing.assert_array_equal(chunk.X, X)
    np.testing.assert_array_equal(chunk.y, data[1][:20])
    assert chunk.X.dtype == (np.float32 if kind in ("<f2", "<f4", ">f4") else np.float64)
    assert chunk.X.flags.c_contiguous


def test_labels_are_found_by_name(data, tmp_path):
    for matrix, labels in (("X.npy", "y.npy"), ("x_train.npy", "y_train.npy"), ("mail.npy", "mail.labels.npy")):
        np.save(tmp_path / matrix, data[0])
        np.save(tmp_path / labels, data[1])
        assert find_labels(str(tmp_path / matrix)) == str(tmp_path / labels)
    np.save(tmp_path / "other.npy", data[0])
    with pytest.raises(UnknownColumn, match=r"there is no file other\.labels\.npy beside it.*try target='labels.npy'"):
        read(tmp_path / "other.npy")


def test_labels_are_a_column_or_another_file(data, tmp_path):
    X, y = data
    np.save(tmp_path / "both.npy", np.column_stack([X[:, :2], y, X[:, 2:]]))
    np.save(tmp_path / "part.npy", X[:100])
    np.save(tmp_path / "rest.npy", X[100:])
    np.save(tmp_path / "words.npy", np.where(y, "spam", "ham"))
    column = reading_for([str(tmp_path / "both.npy")], target=2)
    chunk = read(tmp_path / "both.npy", reading=column)
    np.testing.assert_array_equal(chunk.X, X)
    np.testing.assert_array_equal(chunk.y, y)
    assert [column.name(j) for j in range(4)] == ["0", "1", "3", "4"]
    chunk = read(tmp_path / "part.npy", tmp_path / "rest.npy", reading=Npy(str(tmp_path / "words.npy")))
    np.testing.assert_array_equal(chunk.X, X)
    assert chunk.y.tolist() == np.where(y, "spam", "ham").tolist()
    with pytest.raises(InvalidParameter, match=r"target must be a column of .*both\.npy, from 0 to 6; got 7"):
        read(tmp_path / "both.npy", reading=Npy(7))


@pytest.mark.parametrize("rows", [299, 301])
def test_as_many_labels_as_rows_are_needed(data, tmp_path, rows):
    np.save(tmp_path / "X.npy", data[0])
    np.save(tmp_path / "y.npy", np.resize(data[1], rows))
    with pytest.raises(FormatError, match=f"the matrix has 300 rows, and .*y.npy has {rows} labels"):
        read(tmp_path / "X.npy")
    with pytest.raises(FormatError, match=f"there are {rows} labels, and the matrices have 300 rows"):
        read(tmp_path / "X.npy", reading=Npy(str(tmp_path / "y.npy")))


def test_the_bytes_that_are_read_are_counted_and_hashed(saved, monkeypatch):
    monkeypatch.setattr(npy, "BATCH", 1000)
    batches = Npy().batches([str(saved)])
    assert sum(batch.rows for batch in batches) == ROWS
    assert batches.bytes_read == batches.total_bytes == saved.stat().st_size
    assert batches.digest() == xxh64(saved.read_bytes()).hexdigest()


def test_rows_with_nan_are_errors_or_left_out(data, tmp_path):
    X, y = data
    X[7, 1], X[299, 0] = np.nan, np.inf
    labels = y.astype(float)
    labels[11] = np.nan
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", labels)
    with pytest.raises(FormatError, match=r"X\.npy: row 7 has NaN or infinity") as caught:
        read(tmp_path / "X.npy")
    assert caught.value.row == 7
    batches = Npy().batches([str(tmp_path / "X.npy")], on_error="skip")
    assert [batch.rows for batch in batches] == [ROWS - 3]
    assert (batches.skipped, [error.row for error in batches.errors]) == (3, [7, 11, 299])
    rows, found = Npy().labels([str(tmp_path / "X.npy")], on_error="skip")
    assert (rows, found.tolist()) == (ROWS - 3, [0.0, 1.0])


def test_distinct_labels_are_known_without_the_matrix(saved):
    saved.write_bytes(b"nothing")
    assert Npy().labels([str(saved)])[1].tolist() == [0.0, 1.0]


def header(shape, kind="<f4", fortran=False, version=1):
    text = repr({"descr": kind, "fortran_order": fortran, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"not an array", "this is not an array that numpy saved"),
        (b"\x93NUMPY\x09\x00", "this is not an array that numpy saved"),
        (header((3, 2)) + bytes(20), "the file ends before the last of its 3 rows"),
        (header((3, 2), fortran=True) + bytes(20), "the file ends before the last of its 3 rows"),
        (header((10**12, 2**20)) + bytes(20), "the file ends before the last of its 1,000,000,000,000 rows"),
        (header((10**12, 2**20), fortran=True) + bytes(20), "the file ends before the last of its"),
        (header((3, 2)) + bytes(28), "the file goes on after the last of its 3 rows"),
        (header((3, 10**12)), "at most 1,048,576 columns"),
        (header((-3, 2)), "must be a matrix of numbers"),
        (header((6,)) + bytes(24), "must be a matrix of numbers"),
        (header((3, 2), "<U2") + bytes(48), "must be a matrix of numbers"),
        (header((3, 2), "<c8") + bytes(48), "must be a matrix of numbers"),
        (header((3, 2), "|O") + bytes(48), "must be a matrix of numbers"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path, content, problem):
    (tmp_path / "X.npy").write_bytes(content)
    with pytest.raises(FormatError, match=problem):
        read(tmp_path / "X.npy", labelled=False)


def test_what_are_no_labels_is_refused(data, tmp_path):
    np.save(tmp_path / "X.npy", data[0])
    for labels in (data[0], np.array(1.0), np.array([b"a"] * ROWS), np.array([1 + 1j] * ROWS)):
        np.save(tmp_path / "y.npy", labels)
        with pytest.raises(FormatError, match="labels must be numbers or text, one for each row"):
            read(tmp_path / "X.npy")
    (tmp_path / "y.npy").write_bytes(header((ROWS,)) + bytes(20))
    with pytest.raises(FormatError, match="the file ends before the last of its 300 labels"):
        read(tmp_path / "X.npy")


def test_a_matrix_is_not_text_and_not_cut(saved):
    with pytest.raises(UnsupportedOperation, match="cannot be written beside predictions"):
        Npy().batches([str(saved)], texts=True)
    with pytest.raises(UnsupportedOperation, match="cannot be cut into pieces"):
        Npy().record_ends(str(saved), 100)


def test_a_reading_is_saved_without_the_file_of_its_labels():
    for reading in (Npy(), Npy(3), Npy(None, 6), Npy(0, 6)):
        assert Npy.from_parts(reading.to_parts()) == reading
    assert Npy("y.npy", 6).with_labels(np.array([0.0])) == Npy(None, 6)
    assert Npy.from_parts(Npy("y.npy").to_parts()) == Npy()
    with pytest.raises(ValueError, match="the facts of"):
        Npy.from_parts(Parts({"file": "y.npy"}))


def test_formats_are_detected(saved, tmp_path):
    plain = tmp_path / "without-suffix"
    plain.write_bytes(saved.read_bytes())
    (tmp_path / "X.npy.gz").write_bytes(gzip.compress(saved.read_bytes()))
    assert [detect_format(path) for path in (saved, plain, tmp_path / "X.npy.gz")] == ["npy"] * 3
    np.testing.assert_array_equal(read(tmp_path / "X.npy.gz", labelled=False).X, read(saved).X)


def test_training_gives_the_weights_of_fit(saved, data):
    for stream in (False, True):
        model = train(str(saved), reading_for([str(saved)]), Perceptron(keep="last"), Options(3, "cyclic", stream=stream))
        expected = Perceptron(keep="last", order="cyclic", max_iter=3, tol=None).fit(*data)
        np.testing.assert_array_equal(model.learner.coef_, expected.coef_)
        assert model.learner.coef_.dtype == np.float32


@pytest.mark.parametrize("stream", [False, True])
def test_an_interrupted_training_goes_on_exactly_there(saved, tmp_path, monkeypatch, stream):
    monkeypatch.setattr(npy, "BATCH", 1000)
    options, reading = Options(passes=2, stream=stream), reading_for([str(saved)])
    whole = train(str(saved), reading, None, options)

    def interrupt(step):
        if step.seen >= 200:
            os.kill(os.getpid(), signal.SIGINT)

    train(str(saved), reading, None, options, interrupt).save(tmp_path / "model")
    half = load(tmp_path / "model")
    assert half.training["stopped"] == "interrupted"
    rest = train(str(saved), half.reading, None, options, resume=half)
    np.testing.assert_array_equal(rest.learner.coef_, whole.learner.coef_)
    np.save(saved, np.load(saved)[::-1])
    with pytest.raises(InvalidData, match="the content has changed since training was interrupted"):
        train(str(saved), half.reading, None, options, resume=half)


def test_a_class_that_comes_late_in_a_stream_is_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "BATCH", 1000)
    X = np.random.default_rng(0).standard_normal((ROWS, 6))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.arange(ROWS) // 100)
    model = train(str(tmp_path / "X.npy"), reading_for([str(tmp_path / "X.npy")]), None, Options(stream=True))
    assert model.classes_.tolist() == [0, 1, 2]


def test_the_command_line_trains_predicts_and_evaluates(saved, data, tmp_path, capsys):
    model = str(tmp_path / "model")
    assert main(["train", str(saved), "--model", model, "--quiet"]) == 0
    np.save(tmp_path / "test.npy", data[0][:50])
    capsys.readouterr()
    assert main(["predict", model, str(tmp_path / "test.npy"), "--quiet"]) == 0
    assert capsys.readouterr().out.split() == load(model).learner.predict(data[0][:50]).astype(int).astype(str).tolist()
    assert main(["evaluate", model, str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9
    assert main(["evaluate", model, str(tmp_path / "test.npy")]) == 2
    assert "try: save one label for each row there" in capsys.readouterr().err
    np.save(tmp_path / "test.npy", data[0][:, :5])
    assert main(["predict", model, str(tmp_path / "test.npy"), "--quiet"]) == 3
    assert "the matrix has 5 columns to learn from, and 6 are expected" in capsys.readouterr().err


def test_a_model_keeps_no_file_of_labels(data, tmp_path, capsys):
    X, y = data
    np.save(tmp_path / "train.npy", X[:200])
    np.save(tmp_path / "train-y.npy", y[:200])
    np.save(tmp_path / "test.npy", X[200:])
    np.save(tmp_path / "test-y.npy", y[200:])
    train_file, train_y, test_file, test_y, model = (
        str(tmp_path / name) for name in ("train.npy", "train-y.npy", "test.npy", "test-y.npy", "model")
    )
    assert main(["train", train_file, "--target", train_y, "--model", model, "--quiet"]) == 0
    assert load(model).reading.target is None
    capsys.readouterr()
    assert main(["evaluate", model, test_file, "--target", test_y, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 100
    assert main(["train", test_file, "--from", model, "--model", model, "--target", test_y, "--quiet"]) == 0
    assert main(["train", test_file, "--from", model, "--model", model, "--text", "1"]) == 2
    assert "--text: " in capsys.readouterr().err


def test_a_label_column_may_be_there_or_not_when_it_is_predicted(data, tmp_path, capsys):
    X, y = data
    np.save(tmp_path / "both.npy", np.column_stack([X, y]))
    np.save(tmp_path / "alone.npy", X)
    model = str(tmp_path / "model")
    assert main(["train", str(tmp_path / "both.npy"), "--target", "6", "--model", model, "--quiet"]) == 0
    capsys.readouterr()
    said = []
    for name in ("both.npy", "alone.npy"):
        assert main(["predict", model, str(tmp_path / name), "--quiet"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert evaluate(load(model), str(tmp_path / "both.npy")).accuracy > 0.9


def test_options_of_tables_are_refused(saved, capsys):
    assert main(["train", str(saved), "--text", "1"]) == 2
    assert "--text 1 and --format npy cannot be used together" in capsys.readouterr().err


def test_a_matrix_is_learned_from_on_a_gpu(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "BATCH", 1000)
    before = use_card(0, EmulatedCard(block=32))
    try:
        for number, extra in enumerate(([], ["--stream", "--passes", "2"])):
            places = [str(tmp_path / f"{device}{number}") for device in ("cpu", "cuda")]
            for place, device in zip(places, ("cpu", "cuda"), strict=True):
                assert main(["train", str(saved), "--model", place, "--quiet", "--device", device, *extra]) == 0
            cpu, cuda = (load(place).learner for place in places)
            np.testing.assert_array_equal(cuda.coef_, cpu.coef_)
            assert (cuda.n_mistakes_, cuda.n_seen_) == (cpu.n_mistakes_, cpu.n_seen_)
    finally:
        use_card(0, before)
