"""Training from files on a GPU, which is emulated here, gives the model of the CPU; what is missing is said."""

import json
import sys

import numpy as np
import pytest

from rosenblatt import Perceptron, load
from rosenblatt.cli import doctor, main
from rosenblatt.errors import GpuUnavailable, MissingDependency, UnsupportedOperation
from rosenblatt.gpu.card import find_card, use_card
from rosenblatt.gpu.emulated import EmulatedCard
from rosenblatt.workflow import Options, evaluate, make_learner, reading_for, train

ROWS = 400


@pytest.fixture
def card():
    """An emulated card, as cuda:0."""
    emulated = EmulatedCard(block=32)
    before = use_card(0, emulated)
    yield emulated
    use_card(0, before)


@pytest.fixture
def table(tmp_path):
    """A table of whole numbers, so that the weights are the same to the last bit."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (ROWS, 5))
    y = np.digitize(X @ [1, -2, 1, 0, 3] + rng.integers(-2, 3, ROWS), [-4, 4])
    lines = [",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,b,c,d,e,label", *lines, ""]), encoding="utf-8")
    return path


def weights(path):
    learner = load(path).learner
    return learner.coef_, learner.intercept_, learner.n_mistakes_, learner.n_updates_


@pytest.mark.parametrize("extra", [[], ["--stream"], ["--holdout", "0.25"], ["--order", "cyclic", "--learner", "pa"]])
def test_a_table_is_learned_as_on_the_cpu(card, table, tmp_path, extra):
    common = ["train", str(table), "--target", "label", "--scale", "none", "--passes", "3", "--quiet", *extra]
    assert main([*common, "--model", str(tmp_path / "cpu")]) == 0
    assert main([*common, "--model", str(tmp_path / "cuda"), "--device", "cuda"]) == 0
    assert card.placed >= 8 * 5 * ROWS * 0.75
    for here, there in zip(weights(tmp_path / "cpu"), weights(tmp_path / "cuda"), strict=True):
        if "pa" in extra:
            np.testing.assert_allclose(there, here, rtol=1e-9)
        else:
            np.testing.assert_array_equal(there, here)


def test_loaded_rows_are_sent_once(card, table):
    model = train(str(table), reading_for([str(table)], target="label"), Perceptron(device="cuda"), Options(passes=4))
    assert card.placed == 8 * 5 * ROWS
    assert evaluate(model, str(table)).accuracy > 0.6


def test_a_model_goes_on_where_the_option_says(card, table, tmp_path, capsys):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert main(["train", str(table), "--target", "label", "--model", first, "--quiet", "--device", "cuda"]) == 0
    use_card(0, None)  # the card is gone
    assert main(["train", str(table), "--from", first, "--model", second, "--quiet"]) == 2
    assert "try: " in capsys.readouterr().err
    assert main(["train", str(table), "--from", first, "--model", second, "--quiet", "--device", "cpu"]) == 0
    assert load(second).learner.device == "cpu"
    assert main(["predict", first, str(table), "--quiet"]) == 0  # a prediction needs no card


def test_sparse_rows_are_refused(card, tmp_path):
    path = tmp_path / "mail.tsv"
    lines = [
        f"{label}\tword{number} word{number + 1} word{number * 7} again" for number in range(50) for label in ("a", "b")
    ]
    path.write_text("\n".join(lines))
    reading = reading_for([str(path)], target=0, text=[1])
    with pytest.raises(UnsupportedOperation, match=r"mail\.tsv: a GPU learns from dense rows.*try device='cpu'"):
        train(str(path), reading, make_learner("perceptron", {"device": "cuda"}))


def test_rows_of_libsvm_text_that_are_dense_are_learned_from(card, tmp_path):
    path = tmp_path / "dense.svm"
    path.write_text("1 1:2 2:1\n-1 1:-1 2:3\n1 1:3\n-1 2:4 3:1\n")
    common = ["train", str(path), "--passes", "5", "--quiet"]
    assert main([*common, "--model", str(tmp_path / "cpu")]) == 0
    assert main([*common, "--model", str(tmp_path / "cuda"), "--device", "cuda:0"]) == 0
    np.testing.assert_array_equal(weights(tmp_path / "cuda")[0], weights(tmp_path / "cpu")[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device", "gpu"], "--device must be 'auto', 'cpu', 'cuda'"),
        (["--device", "cuda", "--learner", "arow"], "AROW has no parameter 'device'"),
        (["--device", "cuda", "--cluster", "local"], "--device: the workers of a cluster learn on their CPUs"),
    ],
)
def test_impossible_options_are_refused_before_files_are_read(table, tmp_path, capsys, options, words):
    assert main(["train", str(table), "--target", "label", "--model", str(tmp_path / "m"), *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_without_cupy_the_error_says_what_to_install(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "rosenblatt.gpu.cuda", raising=False)
    before = use_card(0, None)
    try:
        with pytest.raises(MissingDependency, match=r"GPUs need the package cupy.*pip install 'rosenblatt\[cuda\]'"):
            find_card("cuda")
        assert main(["train", str(table), "--target", "label", "--device", "cuda"]) == 2
        assert capsys.readouterr().err == (
            "error: GPUs need the package cupy, which is not installed\ntry: pip install 'rosenblatt[cuda]'\n"
        )
    finally:
        use_card(0, before)


def report(capsys):
    """What doctor says of GPUs: as facts, and as lines."""
    assert main(["doctor", "--json", "--quiet"]) == 0
    facts = json.loads(capsys.readouterr().out)["gpu"]
    return facts, doctor._gpu_rows(facts)


def test_doctor_shows_the_card(card, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: name == "cupy")
    second = GpuUnavailable("this machine has 1 GPU with CUDA", "cuda:1")
    monkeypatch.setattr("rosenblatt.gpu.card._CARDS", CardsBut({0: card}, second))
    facts, rows = report(capsys)
    assert facts["problem"] is None
    assert [gpu["device"] for gpu in facts["found"]] == ["cuda:0"]
    assert rows[0][0] == "GPU"
    assert rows[0][1].startswith("cuda:0: emulated card, 0.0 GiB (0.0 free), compute capability 0.0")


class CardsBut(dict):
    """These cards; any other number raises the error."""

    def __init__(self, cards, error):
        super().__init__(cards)
        self.error = error

    def __contains__(self, number):
        return True

    def __missing__(self, number):
        raise self.error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (GpuUnavailable("no driver", "cuda:0"), "not available: the GPU cuda:0 cannot be used: no driver"),
        (ImportError("libcuda.so.1:\n cannot open"), "not available: ImportError: libcuda.so.1: cannot open"),
    ],
)
def test_doctor_says_why_no_gpu_can_be_used(capsys, monkeypatch, error, line):
    monkeypatch.setattr(doctor, "find_spec", lambda name: name == "cupy")
    monkeypatch.setattr("rosenblatt.gpu.card._CARDS", CardsBut({}, error))
    facts, rows = report(capsys)
    assert not facts["found"]
    assert rows == [("GPU", line)]


def test_doctor_does_not_import_cupy_where_it_is_not_installed(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    _, rows = report(capsys)
    assert rows == [("GPU", "not available: CuPy is not installed; pip install 'rosenblatt[cuda]'")]
    assert "cupy" not in sys.modules
