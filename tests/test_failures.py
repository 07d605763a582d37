"""What goes wrong with files is said in a line, has its exit code, and harms nothing that was there before."""

import errno
import gzip
import json
import os
import struct

import numpy as np
import pytest
from test_cli import ran

import rosenblatt
from rosenblatt.cli.errors import Code
from rosenblatt.modelfile import container

ROWS = "+1 1:1\n-1 2:1\n+1 1:2\n-1 2:2\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with rows and a model of them, which we are in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.svm").write_text(ROWS)
    assert ran("train rows.svm -q").code == 0
    return tmp_path


def failed(command, code, *words):
    """The command ends with this code and one line that has these words."""
    got = ran(command)
    assert got.code == code, got
    assert got.stdout == ""
    assert got.stderr.startswith("error: ")
    assert got.stderr.count("\n") <= 2
    assert all(word in got.stderr for word in words), got.stderr
    assert "Traceback" not in got.stderr
    assert "bug" not in got.stderr


def test_a_full_disk_leaves_the_old_model(here, monkeypatch):
    before = (here / "rows.model").read_bytes()

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    failed("train rows.svm -q --passes 1", Code.OUTPUT, "the disk is full")
    failed("predict rows.model rows.svm -q -o answers.txt", Code.OUTPUT, "the disk is full")
    monkeypatch.undo()
    assert (here / "rows.model").read_bytes() == before
    assert sorted(path.name for path in here.iterdir()) == ["rows.model", "rows.svm"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(here):
    (here / "rows.svm").chmod(0)
    failed("train rows.svm", Code.INPUT, "permission denied")


def test_a_folder_is_not_a_file(here):
    (here / "empty").mkdir()
    failed("train empty", Code.INPUT, "no files in the folder")
    failed("train rows.svm -m empty", Code.OUTPUT, "is a folder")
    failed("predict empty rows.svm", Code.MODEL, "folder")
    failed("predict rows.model rows.svm -o empty", Code.OUTPUT, "folder")
    failed("train rows.svm -m absent/rows.model", Code.OUTPUT, "there is no folder")


@pytest.mark.parametrize("name", ["empty.svm", "empty.csv", "empty.tsv", "empty.jsonl", "empty.parquet", "empty.vw"])
def test_an_empty_file(here, name):
    (here / name).write_bytes(b"")
    failed(f"train {name} -m new.model", Code.INPUT, name)
    assert not (here / "new.model").exists()


@pytest.mark.parametrize("suffix", ["svm", "csv", "tsv", "jsonl", "parquet", "arrow", "vw", "svm.gz", "csv.zst"])
def test_garbage(here, suffix):
    (here / f"garbage.{suffix}").write_bytes(np.random.default_rng(0).bytes(5000))
    got = ran(f"train garbage.{suffix} -m new.model --target 0" if "svm" not in suffix and "vw" not in suffix
              else f"train garbage.{suffix} -m new.model")  # fmt: skip
    assert got.code == Code.INPUT, got
    assert len(got.stderr) < 600, got
    assert got.stderr.isprintable() or got.stderr.replace("\n", "").isprintable()
    assert not (here / "new.model").exists()


def test_a_truncated_gzip_is_refused_as_a_whole(here):
    rng = np.random.default_rng(0)
    text = "".join(f"{i % 2} 1:{x:.6f} 2:{y:.6f}\n" for i, (x, y) in enumerate(rng.random((3000, 2))))
    whole = gzip.compress(text.encode())
    (here / "cut.svm.gz").write_bytes(whole[: len(whole) // 2])
    before = (here / "rows.model").read_bytes()
    for how in ("--load", "--stream"):
        failed(f"train cut.svm.gz -m rows.model {how} -q", Code.INPUT, "cut.svm.gz", "cannot be read from here on")
    failed("predict rows.model cut.svm.gz -o answers.txt", Code.INPUT, "cannot be read from here on")
    assert (here / "rows.model").read_bytes() == before
    assert not (here / "answers.txt").exists()


def header(content):
    """The facts in a model file, and what surrounds them."""
    size = struct.unpack("<Q", content[:8])[0]
    table = json.loads(content[8 : 8 + size])
    return table, content[8 + size :]


def test_a_model_of_another_version(here):
    table, rest = header((here / "rows.model").read_bytes())
    told = json.loads(table["__metadata__"]["rosenblatt"])
    table["__metadata__"]["rosenblatt"] = json.dumps(told | {"format": 99, "version": "9.9.9"})
    head = json.dumps(table).encode()
    (here / "new.model").write_bytes(struct.pack("<Q", len(head)) + head + rest)
    for command in ("predict new.model rows.svm", "info new.model", "explain new.model", "evaluate new.model rows.svm"):
        failed(command, Code.MODEL, "99")


def test_a_damaged_model_and_a_model_of_another_kind(here):
    content = (here / "rows.model").read_bytes()
    (here / "cut.model").write_bytes(content[:-9])
    failed("predict cut.model rows.svm", Code.MODEL, "cut.model")
    rosenblatt.Perceptron().fit([[0, 1], [1, 0]], [0, 1]).save(here / "bare.model")
    failed("predict bare.model rows.svm", Code.MODEL, "it holds a Perceptron, and this command needs a FileModel")
    failed("convert rows.svm rows.onnx", Code.MODEL, "rows.svm")


def test_a_model_is_not_replaced_by_one_that_failed(here):
    before = (here / "rows.model").read_bytes()
    (here / "bad.svm").write_text(ROWS + "+1 1:x\n")
    failed("train bad.svm -m rows.model", Code.INPUT, "bad.svm, line 5, column 6")
    assert (here / "rows.model").read_bytes() == before


def test_a_file_of_which_a_byte_has_changed_is_no_model(here):
    """Every seventh byte; `test_damaged_models` changes each one of each kind of model, in memory."""
    content, path = (here / "rows.model").read_bytes(), here / "changed.model"
    assert len(content) > 1_000
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with pytest.raises(container.UnreadableModel) as caught:
            rosenblatt.load(path)
        assert caught.value.path == str(path)
    path.write_bytes(content)
    assert rosenblatt.load(path).predict(str(here / "rows.svm")).tolist() == [1, -1, 1, -1]
