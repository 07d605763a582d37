"""How kernels are launched, with a CuPy that only writes launches down: every kernel gets what it declares, every row is
packed once, and batches are those of the order. What the kernels compute is for a card to show."""

import importlib
import sys

import numpy as np
import pytest
from fake_cupy import fake_cupy
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt import rules
from rosenblatt.engine.problems import Binary, Joint, OneVsRest
from rosenblatt.engine.weights import zeros
from rosenblatt.errors import NotEnoughGpuMemory
from rosenblatt.gpu.card import CardTask
from rosenblatt.gpu.layouts import LONGEST_PANEL

KINDS = {np.int32: "int", np.int64: "int64", np.float64: "double", np.uintp: "pointer"}
MODULES = ("cuda", "columns", "panels", "chunks", "sending", "compiling")


@pytest.fixture(scope="module")
def launches():
    return []


@pytest.fixture(scope="module")
def card(launches):
    """A card of a CuPy that computes nothing."""
    names = [f"rosenblatt.gpu.{name}" for name in MODULES]
    before = {name: sys.modules.pop(name, None) for name in ("cupy", *names)}
    sys.modules["cupy"] = fake_cupy(launches)
    try:
        yield importlib.import_module("rosenblatt.gpu.cuda").CudaCard(0)
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def kind_of(argument):
    return KINDS.get(type(argument), "pointer" if hasattr(argument, "data") else type(argument).__name__)


def run_of(card, X, problem, rule, averaged=False, weighted=False, batch=1, mean=False, streamed=False):
    """A run over rows, which are on the card or streamed to it."""
    classes = problem.classes
    labels = np.arange(len(X)) % classes
    weights = zeros(X.shape[1], problem, np.promote_types(X.dtype, np.float32).type, averaged, False)
    weight = np.ones((len(X), 2)) if weighted else None
    values = X if streamed else card.place(X)
    return card.begin(CardTask(values, labels, weight, 1.0, weights, problem, rule, batch, mean))


def check(launches):
    """Every kernel was launched with the arguments that it declares, and asked for memory that there is."""
    assert launches
    for launch in launches:
        if launch.declared is not None:
            assert [kind_of(argument) for argument in launch.arguments] == launch.declared, launch.name
            assert launch.shared_mem <= 232_448
            assert 1 <= launch.block[0] <= 1024
            assert launch.grid[0] >= 1


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 3000),
    features=st.integers(1, 300),
    problem=st.sampled_from([Binary(2), OneVsRest(5), OneVsRest(150), Joint(3), Joint(1500)]),
    rule=st.sampled_from([rules.Perceptron(0.0, 1.0), rules.PA1(1.0), rules.Mira(1.0)]),
    real=st.sampled_from([np.float16, np.float32, np.float64]),
    batch=st.sampled_from([1, 1, 7, 100, 5000]),
    flags=st.lists(st.booleans(), min_size=4, max_size=4),
    seed=st.integers(0, 100),
)
def test_kernels_get_what_they_declare(card, launches, rows, features, problem, rule, real, batch, flags, seed):
    averaged, weighted, mean, streamed = flags
    launches.clear()
    run = run_of(card, np.zeros((rows, features), real), problem, rule, averaged, weighted, batch, mean, streamed)
    done = run.epoch(np.random.default_rng(seed).permutation(rows))
    check(launches)
    assert (done.position, done.broken) == (rows, -1)
    assert run.task.weights.clock[0] == rows
    packed = [launch.arguments for launch in launches if launch.name.startswith("pack_")]
    again = 2 if mean and batch > LONGEST_PANEL else 1  # the moves of such a batch are counted before it moves
    assert sum(int(arguments[8]) for arguments in packed) == again * rows


@pytest.mark.parametrize("batch", [7, 100, 5000])
def test_batches_end_where_they_should(card, launches, batch):
    launches.clear()
    run_of(card, np.zeros((12_345, 4), np.float32), Joint(3), rules.PA1(1.0), batch=batch).epoch(np.arange(12_345))
    assert sum(launch.name == "end_batch" for launch in launches) == -(-12_345 // batch)
    applied = [launch.arguments for launch in launches if launch.name == "apply_moves"]
    assert sum(int(arguments[2]) for arguments in applied) == 12_345
    ends = sorted({int(arguments[8]) for arguments in applied})  # the clock of each batch: that of its last row
    assert ends == [min(end, 12_345) - 1 for end in range(batch, 12_345 + batch, batch)]


@pytest.mark.parametrize("chosen", [slice(0, 500), np.random.default_rng(0).permutation(500)], ids=["in order", "shuffled"])
@pytest.mark.parametrize("columns", [1, 70, 3000])
def test_rows_are_sent_as_they_are(card, chosen, columns):
    sending = sys.modules["rosenblatt.gpu.sending"]
    X = np.random.default_rng(1).standard_normal((500, columns))
    there = sys.modules["cupy"].empty((500, columns), X.dtype)
    sending.RowSender(0, columns, X.dtype)(X, chosen, there, sys.modules["cupy"].cuda.Event())
    assert np.array_equal(there, X[chosen])


def test_memory_is_asked_for_before_it_is_taken(card, launches, monkeypatch):
    launches.clear()
    monkeypatch.setattr(type(card), "free_bytes", lambda self: 1000)
    with pytest.raises(NotEnoughGpuMemory, match="are missing"):
        run_of(card, np.zeros((50, 4), np.float32), Binary(2), rules.PA1(1.0), streamed=True)
    assert not launches
