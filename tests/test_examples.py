"""The examples run. The long ones are run in part: what they are made of, and the rest by hand."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import rosenblatt

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", ["ridge.py", "pricing.py"])
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path / "picture.png")])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_a_linear_probe_learns_where_it_can_and_says_where(tmp_path, monkeypatch, capsys):
    main = runpy.run_path(str(EXAMPLES / "linear_probe.py"))["main"]
    monkeypatch.setattr(sys, "argv", ["linear_probe.py", "--rows", "2000", "--classes", "5", "--device", "cpu"])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "learning on cpu: as asked for"
    assert lines[1].startswith("1,600 × 512 embeddings, 5 classes, 5 epochs")
    assert float(re.search(r"rows: ([0-9.]+)%", lines[2])[1]) > 90
    X = np.random.default_rng(0).standard_normal((500, 8), dtype=np.float32)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0] > 0)
    files = [str(tmp_path / name) for name in ("X.npy", "y.npy")]
    monkeypatch.setattr(sys, "argv", ["linear_probe.py", *files, "--model", str(tmp_path / "probe")])
    main()
    assert rosenblatt.load(tmp_path / "probe").n_features_in_ == 8


def test_the_picture_of_the_family_has_every_classifier_of_the_library():
    family = runpy.run_path(str(EXAMPLES / "family.py"))
    drawn = {
        type(getattr(one, "steps", [(None, one)])[-1][1]) for one in {**family["linear"](), **family["curved"]()}.values()
    }
    classifiers = {getattr(rosenblatt, name) for name in rosenblatt.__all__}
    classifiers = {kind for kind in classifiers if hasattr(kind, "predict") and hasattr(kind, "decision_function")}
    assert drawn == classifiers
    X, y = family["crescents"]()
    learner = family["linear"]()["AROW"]
    seen, made = family["mistakes"](learner, X, y, pieces=7)
    assert seen[-1] == len(y)
    assert made[-1] == learner.n_mistakes_


def test_a_treebank_becomes_a_tagger_and_a_parser(tmp_path, capsys):
    sentence = "1\tdogs\t_\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
    bank = tmp_path / "bank.conllu"
    bank.write_text(sentence * 10, encoding="utf-8")
    main = runpy.run_path(str(EXAMPLES / "treebank.py"))["main"]
    main(str(bank), str(bank), "dogs bark", str(tmp_path / "tree.png"))
    said = capsys.readouterr().out
    assert "LAS 100.00" in said
    assert "nsubj" in said
    assert (tmp_path / "tree.png").stat().st_size > 3_000


def test_a_spam_filter_behind_a_server_that_is_killed_loses_nothing(capsys):
    pytest.importorskip("fastapi")
    pytest.importorskip("uvloop")
    runpy.run_path(str(EXAMPLES / "spam_server.py"))["main"]()
    said = capsys.readouterr().out
    assert "400 messages, 400 learned" in said
    assert "lost: 0; the replayed log gives the same bytes: True" in said


def test_a_worker_that_is_killed_leaves_the_model_as_it_is(tmp_path, capsys):
    pytest.importorskip("distributed")
    example = runpy.run_path(str(EXAMPLES / "cluster_training.py"))
    example["make_files"](tmp_path)
    example["main"](tmp_path, tmp_path)
    said = capsys.readouterr().out
    assert "epoch 5, 4 shards" in said
    assert "killed in epoch 3; the model has the same bytes: True" in said
