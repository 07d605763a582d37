"""Errors carry their facts as fields, survive the way between processes, and are of the types that callers expect."""

import importlib
import pickle

import pytest

import rosenblatt
from rosenblatt.errors import (
    Conflict,
    DamagedLog,
    FolderInUse,
    FormatError,
    GpuUnavailable,
    IncompatibleParameters,
    InvalidData,
    InvalidParameter,
    InvalidParameterType,
    LearningPaused,
    LimitExceeded,
    MissingDependency,
    NotEnoughGpuMemory,
    OutputError,
    RosenblattError,
    UnknownEntry,
    UnknownLabel,
    UnknownModel,
    UnreadableModel,
    UnsupportedOperation,
)

ERRORS = [
    (InvalidParameter("margin", -1, "a number ≥ 0"), ValueError, "margin must be a number ≥ 0; got -1"),
    (InvalidParameterType("rule", 3, "a rule"), TypeError, "rule must be a rule; got 3"),
    (
        IncompatibleParameters(("stream", True), ("holdout", 0.1), "a stream is not kept in memory"),
        ValueError,
        "stream=True and holdout=0.1 cannot be used together: a stream is not kept in memory",
    ),
    (
        FormatError("'x' is not a number", path="a.csv", line=3, column="age", settings={"missing": "fill"}),
        ValueError,
        "a.csv, line 3, column 'age': 'x' is not a number; try missing='fill'",
    ),
    (InvalidData("X has a NaN", row=7, hint="impute it"), ValueError, "X has a NaN; impute it"),
    (UnknownLabel("c", ["a", "b"]), ValueError, "the label 'c' is not one of the known classes: 'a', 'b'"),
    (UnsupportedOperation("this model only predicts"), TypeError, "this model only predicts"),
    (UnreadableModel("it is damaged", path="m"), ValueError, "m: it is damaged"),
    (OutputError("is a folder", "m", 21), OSError, "m: is a folder"),
    (
        MissingDependency("matplotlib", "plot", "pictures"),
        ImportError,
        "pictures need the package matplotlib, which is not installed; pip install 'rosenblatt[plot]'",
    ),
    (LimitExceeded("rows", 12_000, 10_000, row=3), ValueError, "rows must be at most 10,000; got 12,000"),
    (
        UnknownModel("mail"),
        LookupError,
        "there is no model 'mail'; create it with PUT /models/NAME; GET /models lists those there are",
    ),
    (UnknownEntry("the log has no entry 9"), LookupError, "the log has no entry 9"),
    (Conflict("the prediction has its label"), ValueError, "the prediction has its label"),
    (
        DamagedLog("the checksum is wrong", path="log", model="mail", entry=7, byte=4096),
        ValueError,
        "log: model 'mail', entry 7, byte 4,096: the checksum is wrong",
    ),
    (LearningPaused("the disk is full"), RuntimeError, "the disk is full"),
    (
        FolderInUse("mail"),
        RuntimeError,
        "mail: another server uses this folder; stop that server first, or serve another folder",
    ),
    (
        GpuUnavailable("no driver of NVIDIA answers", "cuda", hint="install it"),
        OSError,
        "the GPU cuda cannot be used: no driver of NVIDIA answers; install it; try device='cpu'",
    ),
    (
        NotEnoughGpuMemory(3 << 20, 1 << 19, "the Gram matrices"),
        MemoryError,
        "the Gram matrices need 3.0 MiB on the GPU, where 512.0 KiB are free: 2.5 MiB are missing; delete arrays on it, "
        "end other programs that use it, or give rows of fewer bytes (float32, float16); try device='cpu'",
    ),
]


@pytest.mark.parametrize(("error", "kind", "message"), ERRORS, ids=[type(error[0]).__name__ for error in ERRORS])
def test_an_error_says_its_facts_and_keeps_them_between_processes(error, kind, message):
    assert isinstance(error, kind)
    assert isinstance(error, RosenblattError)
    assert str(error) == message
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), message, error.__dict__)
    assert getattr(again, "errno", None) == getattr(error, "errno", None)


def test_long_values_are_shortened():
    assert len(str(InvalidParameter("classes", list(range(10_000)), "distinct"))) < 300
    assert str(InvalidParameter("margin", 10**5000, "a number ≥ 0")) == "margin must be a number ≥ 0; got a very large int"


@pytest.mark.parametrize("old", ["export", "kernel", "kernel.machine", "network", "sigma", "store", "structured.beams"])
def test_modules_that_moved_are_found_under_their_old_name(old):
    module = importlib.import_module(f"rosenblatt.{old}")
    assert module is importlib.import_module(module.__spec__.name)
    assert not module.__spec__.name.endswith(f"rosenblatt.{old}")


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        rosenblatt.nonsense  # noqa: B018
