"""Files that earlier versions wrote load for ever, answer as they did, and go on learning."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import rosenblatt
from rosenblatt.workflow import Options, train

GOLDEN = Path(__file__).parent / "golden"
SCRIPT = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
make = importlib.util.module_from_spec(SCRIPT)
SCRIPT.loader.exec_module(make)
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_golden_file_answers_as_it_did(name):
    model = rosenblatt.load(GOLDEN / f"{name}.model")
    found = json.loads(json.dumps(make.answers(model)))
    told = ANSWERS[name]
    if isinstance(told, dict):
        assert found.keys() == told.keys()
        if "decision_function" in told:
            assert found["predict"] == told["predict"]
        for method in found.keys() - {"predict"} or {"predict"}:
            assert np.allclose(found[method], told[method], rtol=1e-12, atol=1e-12)  # another BLAS may round otherwise
    else:
        assert found == told


def test_every_golden_file_is_small_and_listed():
    files = {path.stem: path for path in GOLDEN.glob("*.model")}
    assert files.keys() == ANSWERS.keys()
    assert all(path.stat().st_size < 6200 for path in files.values())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_learning_twice_gives_the_same_bytes(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in "12":
            make.learned(name).save(tmp_path / number, resume=True)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    loaded = rosenblatt.load(tmp_path / "1")
    loaded.save(tmp_path / "3", resume=True)
    assert (tmp_path / "3").read_bytes() == (tmp_path / "1").read_bytes()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_golden_file_goes_on_learning(name, tmp_path):
    model = rosenblatt.load(GOLDEN / f"{name}.model")
    if name in make.STREAMS:
        model.learn_one(make.named([1.0, 2.0, 3.0]), 40)
        assert model.classes_ == (10, 30, 20, 40)
    elif name in make.FILES:
        _, file, content = make.FILES[name]
        (tmp_path / file).write_text(content)
        seen = model.learner.n_seen_
        on = train(tmp_path / file, model.reading, options=Options(passes=1, order="cyclic"), start=model)
        assert on.learner.n_seen_ == seen + content.count("\n") - content.startswith("label")
    elif hasattr(model, "partial_fit") and name != "pocket":
        _, X, y = make.MODELS[name]
        seen = model.n_seen_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X, y)
        assert model.n_seen_ == seen + len(X)


def test_what_is_there_is_never_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS))
    make.main()
    assert [path.name for path in tmp_path.iterdir()] == ["answers.json"]
    (tmp_path / "answers.json").write_text(json.dumps({name: ANSWERS[name] for name in ANSWERS if name != "vote"}))
    (tmp_path / "vote.model").write_bytes(b"old")
    with pytest.raises(FileExistsError, match="not written twice"):
        make.main()
    assert (tmp_path / "vote.model").read_bytes() == b"old"
