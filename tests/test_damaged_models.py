"""Whatever a file says, reading it ends in a model that works or in an UnreadableModel: a file that is cut off or changed
at any byte, and one that somebody made up. Nothing else happens, and nothing large is allocated.
"""

from __future__ import annotations

import copy
import json
import random
import re
import tracemalloc
import warnings
from contextlib import chdir, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import scipy.sparse as sp
import test_golden_models as golden
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt import (
    AROW,
    DeltaRuleRegressor,
    Forgetron,
    KernelPerceptron,
    NormalisedWinnow,
    Perceptron,
    RandomBudgetPerceptron,
    SigmaPerceptron,
    store,
)
from rosenblatt.data.tables import Table
from rosenblatt.errors import RosenblattError
from rosenblatt.modelfile import registry
from rosenblatt.modelfile.container import UnreadableModel
from rosenblatt.modelfile.parts import Parts
from rosenblatt.online import OnlinePerceptron, OnlineToBatch
from rosenblatt.testing import laws
from rosenblatt.workflow import FileModel, Options, train

LARGEST = 50 * 2**20  # bytes
X, Y = laws.data(3, 12, 2)
Z, LABELS = laws.data(2, 12, 2)


def online(**parameters):
    model = OnlinePerceptron(**parameters)
    for x, y in zip(X, Y, strict=True):
        model.learn_one({"a": x[0], ("b", 1): x[1]}, int(y))
    return model


ROWS = "label,colour,n,text\nham,red,1,see you\nspam,,5,a prize\nham,red,2,see me\n"


def from_files(**options):
    """A model of a table with numbers, categories and text."""
    with TemporaryDirectory() as place, chdir(place):
        Path("rows.csv").write_text(ROWS)
        reading = Table(text="text", missing="fill", min_count=1, ngrams=(1, 1), **options)
        return train("rows.csv", reading, options=Options(passes=1, order="cyclic"))


MODELS = {
    "linear": lambda: Perceptron(keep="average", order="cyclic", max_iter=1).fit(X, Y),
    "vote": lambda: Perceptron(keep="vote", order="cyclic", max_iter=1).fit(sp.csr_array(Z), LABELS),
    "pocket": lambda: Perceptron(keep="pocket", order="cyclic", max_iter=1).fit(Z, np.array(["no", "yes"])[LABELS]),
    "predicts": lambda: Perceptron(keep="average", order="cyclic", max_iter=1).fit(Z, LABELS),
    "regressor": lambda: DeltaRuleRegressor(max_iter=1).fit(Z, LABELS),
    "variances": lambda: AROW(form="diagonal", max_iter=1).fit(Z, LABELS),
    "rows": lambda: AROW(form="dual", max_iter=1).fit(Z[:6], LABELS[:6]),
    "simplex": lambda: NormalisedWinnow(max_iter=1).fit(Z, LABELS),
    "kernel": lambda: KernelPerceptron("linear", keep="vote", order="cyclic", max_iter=1).fit(sp.csr_matrix(Z), LABELS),
    "budget": lambda: Forgetron(budget=2, order="cyclic", max_iter=1).fit(Z, LABELS),
    "chance": lambda: RandomBudgetPerceptron(budget=2, order="cyclic", max_iter=1).fit(Z, LABELS),
    "pass": lambda: OnlineToBatch(how="best-suffix").fit(Z, LABELS),
    "sigma": lambda: SigmaPerceptron(sigma=0.5).fit(Z, LABELS),
    "online": lambda: online(keep="average"),
    "hashed": lambda: online(hashing=4),
    "files": lambda: from_files(hashing=None, characters=(3, 3)),
    "buckets": lambda: from_files(hashing=4),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module", autouse=True)
def steady():
    """What is allocated once for all is not counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODELS:
            use(decoded(*store.read_bytes(content(name))))


def decoded(facts, arrays):
    """The model that facts and arrays describe."""
    with store.decoding("the file"):
        return registry.from_parts(Parts(facts, dict(arrays)))


@cache
def content(name):
    """The bytes of a file."""
    with TemporaryDirectory() as place:
        MODELS[name]().save(Path(place) / "model", **({"resume": False} if name == "predicts" else {}))
        return (Path(place) / "model").read_bytes()


def use(model):
    """Ask for answers, and let it learn on; what a model with strange parameters refuses, it refuses."""
    with suppress(ValueError, MemoryError, OverflowError):
        if isinstance(model, FileModel):
            use_reading(model)
            return
        if isinstance(model, OnlinePerceptron):
            model.predict_one({"a": 1.0, "c": 2})
            model.learn_one({"a": 1.0, "c": 2}, "new")
            return
        model.predict(Z if model.n_features_in_ == 2 else np.zeros((3, model.n_features_in_)))
        if hasattr(model, "partial_fit") and model.n_features_in_ == 2:
            model.partial_fit(Z, model.classes_[LABELS] if hasattr(model, "classes_") else LABELS)


@cache
def question():
    """A file to ask about, which is there as long as the tests run."""
    place = TemporaryDirectory()
    path = Path(place.name) / "rows.csv"
    path.write_text(ROWS)
    return place, path


def use_reading(model):
    """Ask a model made from files about rows, and what its columns are called."""
    model.predict(question()[1])
    model.names()


def tried(data):
    """Whether a file of this content can be read; if so, the model works."""
    try:
        model = decoded(*store.read_bytes(data))
    except UnreadableModel:
        return False
    use(model)
    return True


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_cut_off_anywhere_is_refused(name):
    whole = content(name)
    for size in range(len(whole)):
        with pytest.raises(UnreadableModel):
            store.read_bytes(whole[:size])
    assert tried(whole)


EVERYWHERE = ("linear", "rows", "budget", "online", "files")  # a file of each kind; of the others every fourth byte


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_any_byte_changed_is_refused(name):
    whole, draw = content(name), random.Random(name)
    for at in range(len(whole)):
        with pytest.raises(UnreadableModel) as caught:
            store.read_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :])
        check_message(caught.value)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_before_with_any_byte_changed_is_refused_or_works(name):
    table, rest = parts(content(name))
    whole, draw = with_header(json.dumps(table).encode(), rest), random.Random(name)
    assert tried(whole)
    works = set()
    for at in range(0, len(whole), 1 if name in EVERYWHERE else 4):
        flipped = bytes([whole[at] ^ (1 << draw.randrange(8))])
        works.add(tried(whole[:at] + draw.choice([flipped, flipped, b"\xff", b"9", b"-"]) + whole[at + 1 :]))
    assert works == {False, True}  # it has no checksums: a weight may be any number


STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([2**31, 2**47, 2**62, 2**63, 2**64, -(2**63), 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["dense", "csr", "csr array", "own", "ovo", "Perceptron", "U999999", "T", "O", "\ud800"]),
    st.sampled_from([[], {}, [[]], [1, 2, 3], {"float": "inf"}, {"float": "nan"}, {"kind": "ovr", "classes": 10**9},
                     {"rule": {"kind": "PA1", "C": "x"}}, {"numbers": [1, "a"]}, {"dictionary": [[[1], 2]]}, {"list": 3}]),
)  # fmt: skip


def places(value, path=()):
    """The path to every value within a value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(value, path, new):
    """The value with what is at a path replaced, or left out where the new value is `...`."""
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def opened(name):
    """(facts, arrays) of a model."""
    return store.read_bytes(content(name))


@settings(max_examples=250)
@given(st.data(), st.sampled_from(list(MODELS)))
def test_facts_that_somebody_made_up_are_refused_or_work(data, name):
    facts, arrays = opened(name)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([path for path in places(facts) if path]))
        facts = changed(facts, path, data.draw(STRANGE | st.just(...)))
    tracemalloc.start()
    try:
        model = decoded(facts, arrays)
    except UnreadableModel:
        model = None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < LARGEST
    if model is not None and getattr(model, "n_features_in_", 2) == 2:
        use(model)


PYTHON = re.compile(
    r"[A-Z]\w+Error|unexpected keyword|NoneType|index out of|positional arg|object (is|has)|not iterable|unpack|<class"
)  # words of Python that a message about a file must not have


def check_message(error):
    assert not PYTHON.search(str(error)), str(error)


@pytest.mark.parametrize("name", sorted(golden.ANSWERS))
def test_a_header_with_any_field_changed_is_refused_with_facts_or_works(name):
    facts, arrays = store.read(golden.GOLDEN / f"{name}.model")
    draw = random.Random(name)
    paths = [path for path in places(facts) if path]
    others = [..., None, True, "x", -1, 2**61, 1e300, [], {}, [1, 2], ["a", None], {"float": "nan"}, {"a": 1}, "\ud800"]
    for path in draw.sample(paths, min(40, len(paths))):
        for new in draw.sample(others, 5):
            try:
                model = decoded(changed(facts, path, new), {key: array.copy() for key, array in arrays.items()})
            except UnreadableModel as error:
                check_message(error)
                continue
            with suppress(RosenblattError):
                golden.make.answers(model)


@pytest.mark.parametrize("name", sorted(golden.ANSWERS))
def test_a_fact_or_an_array_that_is_missing_is_named(name):
    facts, arrays = store.read(golden.GOLDEN / f"{name}.model")
    for array in arrays:
        with pytest.raises(UnreadableModel, match="array") as caught:
            decoded(facts, {key: value for key, value in arrays.items() if key != array})
        check_message(caught.value)
    for fact in set(facts) - {"version", "saved", "column"}:
        if fact == "format":
            continue
        with pytest.raises(UnreadableModel) as caught:
            decoded({key: value for key, value in facts.items() if key != fact}, dict(arrays))
        assert fact in str(caught.value) or fact in ("learner", "model", "counts", "parts")
        check_message(caught.value)


ARRAYS = {
    "other type": lambda a: a.astype(np.float32 if a.dtype != np.float32 else np.float64),
    "whole": lambda a: a.astype(np.int64) + 7,
    "longer": lambda a: np.concatenate([a, a]),
    "shorter": lambda a: a[:-1],
    "none": lambda a: a[:0],
    "flat": lambda a: a.reshape(-1),
    "turned": lambda a: np.ascontiguousarray(a.T),
    "more axes": lambda a: a[None],
    "high": lambda a: np.full_like(a, np.iinfo(a.dtype).max if a.dtype.kind in "iu" else 1e38),
    "low": lambda a: np.full_like(a, np.iinfo(a.dtype).min if a.dtype.kind in "iu" else -1e38),
    "below": lambda a: np.full_like(a, -1) if a.dtype.kind in "if" else a[::-1].copy(),
    "no number": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a[::-1].copy(),
    "zero": np.zeros_like,
}


@pytest.mark.parametrize("name", MODELS)
def test_arrays_that_somebody_made_up_are_refused_or_work(name):
    facts, arrays = opened(name)
    for array in arrays:
        for change in ARRAYS.values():
            other = arrays | {array: change(arrays[array])}
            try:
                model = decoded(facts, {key: value.copy() for key, value in other.items()})
            except UnreadableModel:
                continue
            use(model)
        for missing in ({key: value for key, value in arrays.items() if key != array}, arrays | {"more": np.zeros(1)}):
            with pytest.raises(UnreadableModel):
                decoded(facts, missing)


# The header of the format itself


def parts(data):
    """(the table of arrays, without sums of its content, and the data)."""
    size = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + size])
    table["__metadata__"] = {"rosenblatt": table["__metadata__"]["rosenblatt"]}
    return table, data[8 + size :]


def with_header(header, rest):
    return len(header).to_bytes(8, "little") + header + rest


@settings(max_examples=120)
@given(st.data(), st.sampled_from(list(MODELS)))
def test_tables_that_somebody_made_up_are_refused_or_work(data, name):
    table, rest = parts(content(name))
    path = data.draw(st.sampled_from([path for path in places(table) if path and path[0] != "__metadata__"]))
    table = changed(table, path, data.draw(STRANGE | st.just(...)))
    tracemalloc.start()
    try:
        tried(with_header(json.dumps(table).encode("utf-8", "surrogatepass"), rest))
        assert tracemalloc.get_traced_memory()[1] < LARGEST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":' * 100_000,
        b'{"__metadata__":{"rosenblatt":"' + b"[" * 100_000 + b'"}}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":1}"},"__metadata__":{}}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":1,\\"format\\":1}"}}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":NaN}"}}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":1e999}"}}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":' + b"9" * 5000 + b'}"}}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":1.0,\\"a\\":' + b"[" * 60 + b"]" * 60 + b'}"}}',
        b'{"__metadata__":{"rosenblatt":5}}',
        b'{"__metadata__":[]}',
        b'{"__metadata__":{"rosenblatt":"{\\"format\\":true}"}}',
        b"{\xff\xfe}",
        b"{}",
    ],
    ids=lambda header: header[:40].decode("latin-1"),
)
def test_headers_that_are_none_are_refused(header):
    with pytest.raises(UnreadableModel):
        store.read_bytes(with_header(header, b""))


def test_sizes_are_checked_before_anything_is_allocated(tmp_path):
    for shape in ([2**40], [2**62, 4], [2**32, 2**32], [0, 2**62, 2**62], [-1, -8]):
        entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 8]}
        table = {"__metadata__": {"rosenblatt": '{"format": 1}'}, "a": entry}
        with pytest.raises(UnreadableModel):
            store.read_bytes(with_header(json.dumps(table).encode(), bytes(8)))
    (tmp_path / "m").write_bytes((2**60).to_bytes(8, "little") + b"{" + bytes(100))
    with pytest.raises(UnreadableModel, match="does not begin as one"):
        store.read(tmp_path / "m")
