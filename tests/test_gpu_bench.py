"""The rows of the GPU bench measure what they say, here on an emulated card, and are skipped with a word without a GPU."""

import sys

import numpy as np
import pytest

from bench import gpu
from bench.data import Missing
from rosenblatt.gpu.card import use_card
from rosenblatt.gpu.emulated import EmulatedArray, EmulatedCard


class NumpyCard(EmulatedCard):
    """An emulated card whose arrays are those of numpy."""

    def adopt(self, X):
        return EmulatedArray(X)


@pytest.fixture
def emulated(monkeypatch):
    card = NumpyCard(block=32)
    before = use_card(0, card)
    monkeypatch.setattr(gpu, "needed", lambda: card)
    monkeypatch.setattr(gpu, "array_library", lambda: np)
    monkeypatch.setattr(gpu, "copy_to_host", lambda array, to: to.__setitem__(slice(None), array))
    monkeypatch.setattr(gpu, "bus_speed", lambda: 1e9)
    monkeypatch.setattr(gpu, "PIECE", 300)
    gpu.on_gpu.cache_clear()
    yield card
    gpu.on_gpu.cache_clear()
    use_card(0, before)


@pytest.mark.parametrize("row", gpu.ROWS, ids=[row[0] for row in gpu.ROWS])
def test_a_row_is_measured_and_its_answers_are_right(emulated, row):
    key, compare, (size, *others), _ = row
    small = size._replace(rows=min(size.rows, 1_000), features=16, classes=min(size.classes, 5))
    result = compare(None, 1, small, *others)
    assert result.right is True, result
    assert result.ours > 0
    assert result.value is not None
    assert "mistakes" in result.note or key.startswith(("gpu-scikit-learn", "gpu-crossover"))


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_data_make_about_the_mistakes_that_they_promise(emulated, share):
    """The share depends on the rows for each feature; with as many as in the bench it is that of the bench."""
    size = gpu.Size(2_048 * 16, 16, 2, share)
    data = gpu.in_memory(size)
    assert np.array_equal(data.X * 8, np.rint(data.X * 8))
    run = gpu.cpu_epoch(data, gpu.problem_of(size, joint=False), threads=1)
    assert run.progress.mistakes / size.rows == pytest.approx(share, rel=0.25)


def test_a_wrong_answer_is_seen(emulated, monkeypatch):
    honest = gpu.cpu_epoch

    def other_weights(*known):
        run = honest(*known)
        run.weights.w[0] += 1
        return run

    monkeypatch.setattr(gpu, "cpu_epoch", other_weights)
    assert gpu.against_cpu(None, 1, gpu.Size(500, 8, 2)).right is False


def test_without_a_gpu_rows_are_skipped_and_say_why(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    with pytest.raises(Missing, match="CuPy is not installed"):
        gpu.needed()
    monkeypatch.setattr(sys, "argv", ["bench.gpu", "--only", "streaming"])
    assert gpu.main() == 0
    assert "| skipped |" in capsys.readouterr().out
