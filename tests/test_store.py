"""One file a model: exact, replaced at once or not at all, and never believed before it is checked."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rosenblatt
from rosenblatt import store
from rosenblatt.store import UnreadableModel

FACTS = {"learner": "Nobody", "parameters": {"margin": 0.5, "templates": ["form[0]"], "note": "γ 🙂"}}
ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "keys": np.array([1, 2**64 - 1], np.uint64),
    "none": np.zeros(0, np.int32),
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model"
    store.write(path, FACTS, ARRAYS)
    return path


def test_what_is_read_is_what_was_written(model):
    facts, arrays = store.read(model)
    assert facts == {"format": store.FORMAT, "version": rosenblatt.__version__, "saved": facts["saved"], **FACTS}
    assert abs(datetime.now(UTC) - datetime.fromisoformat(facts["saved"])) < timedelta(minutes=1)
    assert store.facts(model) == facts
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


def test_arrays_of_any_order_are_written_by_value(tmp_path):
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    store.write(tmp_path / "m", {}, {"a": a, "b": a[:, ::2]})
    _, arrays = store.read(tmp_path / "m")
    assert arrays["a"].tolist() == a.tolist()
    assert arrays["b"].tolist() == a[:, ::2].tolist()


def test_a_file_cut_off_anywhere_is_refused(model):
    whole = model.read_bytes()
    for size in range(len(whole)):
        model.write_bytes(whole[:size])
        with pytest.raises(UnreadableModel):
            store.read(model)


def test_a_flipped_byte_is_refused_or_read_but_never_worse(model):
    whole = model.read_bytes()
    for at in range(len(whole)):
        model.write_bytes(whole[:at] + bytes([whole[at] ^ 0x24]) + whole[at + 1 :])
        try:
            facts, arrays = store.read(model)
        except UnreadableModel:
            continue
        assert isinstance(facts, dict)
        assert all(isinstance(array, np.ndarray) for array in arrays.values())


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused(tmp_path_factory, garbage):
    path = tmp_path_factory.mktemp("garbage") / "model"
    path.write_bytes(garbage)
    with pytest.raises(UnreadableModel):
        store.read(path)


def test_arrays_without_facts_are_no_model(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "other")
    with pytest.raises(UnreadableModel, match="no facts"):
        store.read(tmp_path / "other")


def test_a_format_of_the_future_is_refused_by_name(model):
    content = model.read_bytes()
    changed = content.replace(b'{\\"format\\": 1', b'{\\"format\\": 9')
    assert changed != content
    model.write_bytes(changed)
    with pytest.raises(UnreadableModel, match=r"has format 9, of version 0.1.0; .* reads format 1: upgrade it"):
        store.read(model)


def test_a_failing_write_leaves_the_old_file_and_nothing_else(model, monkeypatch):
    before = model.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.write(model, FACTS, {"a": np.zeros(100)})
    assert model.read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_facts_that_json_cannot_say_are_refused_before_anything_is_written(model):
    before = model.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        store.write(model, {"margin": float("nan")}, {})
    assert model.read_bytes() == before


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        store.write(tmp_path, FACTS, ARRAYS)


def test_the_file_has_the_permissions_that_any_new_file_has(tmp_path, model):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(model.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    model.chmod(0o600)
    store.write(model, FACTS, ARRAYS)
    assert stat.S_IMODE(model.stat().st_mode) == 0o600


def test_the_header_is_plain_json(model):
    content = model.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert json.loads(header["__metadata__"]["rosenblatt"])["learner"] == "Nobody"
