"""What leaves the library says the same: onnxruntime answers as we do, and text has every weight to the last digit."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt import (
    AROW,
    DeltaRuleRegressor,
    KernelPerceptron,
    PassiveAggressiveClassifier,
    PassiveAggressiveRegressor,
    Perceptron,
    SigmaPerceptron,
    Winnow2,
)
from rosenblatt.modelfile.export import to_onnx, to_text
from rosenblatt.online import OnlinePerceptron, OnlineToBatch
from rosenblatt.testing import laws


def answered(model, X):
    """What onnxruntime makes of an ONNX model."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": X})


@settings(max_examples=25)
@given(
    st.integers(0, 2**32), st.sampled_from(["joint", "ovr"]), st.integers(2, 4), st.sampled_from([np.float32, np.float64])
)
def test_onnxruntime_answers_as_we_do(seed, multiclass, classes, single):
    pytest.importorskip("onnx")
    dtype = np.float32 if single else np.float64
    draw = np.random.default_rng(seed)
    X = draw.integers(-3, 4, (16, 3)).astype(np.float64)
    y = np.array(["a", "bö", "c", "d"])[np.append(np.arange(classes), draw.integers(0, classes, 16 - classes))]
    clf = Perceptron(multiclass=multiclass, max_iter=2).fit(X, y)
    rows = draw.integers(-3, 4, (50, 3)).astype(dtype)
    rows[0] = 0
    labels, scores = answered(to_onnx(clf, dtype=dtype), rows)
    assert scores.dtype == dtype
    assert np.array_equal(scores, clf.decision_function(rows))
    assert labels.tolist() == clf.predict(rows).tolist()


@pytest.mark.parametrize("classes", [2, 3])
def test_ties_fall_as_they_do_here(classes):
    pytest.importorskip("onnx")
    X, y = laws.data(classes, 20)
    clf = Perceptron(fit_intercept=False).fit(X, y + 5)
    nothing = np.zeros((1, 4))
    labels, scores = answered(to_onnx(clf), nothing)
    assert not scores.any()
    assert labels.tolist() == clf.predict(nothing).tolist() == [6 if classes == 2 else 5]


@pytest.mark.parametrize(
    "labels", [np.array([False, True]), np.array([1.0, 2.0]), np.array([3, 4], np.int8), np.array(["a", "b"], object)],
    ids=lambda labels: labels.dtype.str,
)  # fmt: skip
def test_labels_of_every_kind_go_along(labels):
    pytest.importorskip("onnx")
    X, y = laws.data(2, 20)
    clf = Perceptron(max_iter=1).fit(X, labels[y])
    found, _ = answered(to_onnx(clf), X)
    assert found.tolist() == clf.predict(X).tolist()


def test_other_linear_learners_go_along_too(tmp_path):
    onnx = pytest.importorskip("onnx")
    X, y = laws.data(3, 30)
    for clf in (AROW(max_iter=2), PassiveAggressiveClassifier(average=True, max_iter=2), OnlineToBatch(how="average")):
        labels, scores = answered(to_onnx(clf.fit(X, y)), X)
        assert labels.tolist() == clf.predict(X).tolist()
        assert np.allclose(scores, clf.decision_function(X))
    bits = (X > 0).astype(float)
    clf = Winnow2(max_iter=2).fit(bits, y > 0)
    assert answered(to_onnx(clf), bits)[0].tolist() == clf.predict(bits).tolist()
    for targets in (y.astype(float), np.column_stack([y, -y]).astype(float)):
        for regressor in (PassiveAggressiveRegressor(max_iter=2), DeltaRuleRegressor(max_iter=2)):
            (values,) = answered(to_onnx(regressor.fit(X, targets), tmp_path / "m.onnx"), X)
            assert values.shape == targets.shape
            assert np.allclose(values, regressor.predict(X))
    assert onnx.load(tmp_path / "m.onnx").producer_name == "rosenblatt"
    narrow = to_onnx(Perceptron().fit(X, y), names=list("abcd"), dtype=np.float32)
    assert answered(narrow, X.astype(np.float32))[1].dtype == np.float32
    assert json.loads(narrow.metadata_props[0].value) == list("abcd")


def test_what_is_no_plane_is_refused():
    pytest.importorskip("onnx")
    X, y = laws.data(3, 30)
    for learner, why in [
        (Perceptron(multiclass="ovo"), "a plane for each pair of classes"),
        (Perceptron(keep="vote"), "by the vote of all weights"),
        (OnlineToBatch(how="vote"), "by the vote of all weights"),
        (KernelPerceptron("linear"), "not sums over columns"),
        (SigmaPerceptron(sigma=0.9), "cosines"),
    ]:
        for export in (to_onnx, to_text):
            with pytest.raises(TypeError, match=why):
                export(learner.fit(X, y))
    with pytest.raises(TypeError, match="ONNX needs numbered columns"):
        to_onnx(OnlinePerceptron())
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        to_onnx(Perceptron().fit(X, y), dtype=np.int32)
    with pytest.raises(ValueError, match="names must be 4 names, one for each column"):
        to_text(Perceptron().fit(X, y), names=["a", "b"])
    with pytest.raises(ValueError, match="classes must be 3 names, one for each class"):
        to_text(Perceptron().fit(X, y), classes=["a"])


def test_text_has_every_weight_to_the_last_digit(tmp_path):
    X, y = laws.data(3, 30)
    clf = Perceptron(keep="average", max_iter=3).fit(X, y)
    text = to_text(clf, names=["a", "b", "c", "d d"], classes=["x", "y", "z"], path=tmp_path / "text")
    assert (tmp_path / "text").read_text(encoding="utf-8") == text
    blocks = text.split("\n\n")
    assert blocks[0].startswith("Perceptron(keep='average', max_iter=3)\nrosenblatt ")
    for block, label, row, intercept in zip(blocks[1:], "xyz", clf.coef_, clf.intercept_, strict=True):
        lines = block.strip().split("\n")
        assert lines[0] == f"for {label}"
        told = {name: float(value) for value, name in re.findall(r"^  (\S+)  (.*)$", block, flags=re.MULTILINE)}
        assert told.pop("(intercept)") == intercept
        assert told == {name: weight for name, weight in zip(["a", "b", "c", "d d"], row.tolist(), strict=True) if weight}
        sizes = [abs(value) for value in told.values()]
        assert sizes == sorted(sizes, reverse=True)


def test_text_of_other_models():
    X, y = laws.data(2, 30)
    text = to_text(DeltaRuleRegressor(max_iter=1).fit(X, y))
    assert "which is the answer" in text
    assert "column 3" in text
    sparse = np.hstack([X, np.zeros((30, 5))])
    assert "5 weights are zero" in to_text(DeltaRuleRegressor(max_iter=1).fit(sparse, y))
    model = OnlinePerceptron()
    for words, label in [("win money", "spam"), ("see you", "ham"), ("win you", "spam")]:
        model.learn_one(dict.fromkeys(words.split(), 1), label)
    lines = to_text(model).splitlines()
    assert "spam if it is below 0, else ham" in lines
    assert "  1.0  see" in lines


def test_text_has_every_weight_whatever_columns_are_called():
    X = np.array([[1, 0, 2.0, 1], [0, 1, 2, -1], [2, 0, 0, 3]])
    clf = Perceptron(order="cyclic", fit_intercept=False).fit(X, ["a\nb", "c", "a\nb"])
    lines = to_text(clf, names=["same", "same", "x\ny", ""]).splitlines()
    assert lines[3] == "'a\\nb' if it is below 0, else c"
    assert sum(line.endswith("  same") for line in lines) == np.count_nonzero(clf.coef_[0, :2]) == 2
    assert {line.split()[-1] for line in lines[6:]} <= {"same", "'x\\ny'", "''", "(intercept)", "zero"}
    model = OnlinePerceptron()
    model.learn_one({1: 1.0, "1": 2.0, ("a", 1): 3.0}, "no")
    model.learn_one({1: 1.0, "1": 2.0, ("a", 1): 3.0}, "yes")
    shown = [line.split(maxsplit=1)[1] for line in to_text(model).splitlines()[6:]]
    assert sorted(shown) == ["('a', 1)", "(intercept)", "1", "1"]


def test_a_model_of_one_class_is_no_plane():
    clf = Perceptron(unknown_class="grow").partial_fit([[1.0, 2.0]], ["only"])
    model = OnlinePerceptron()
    model.learn_one({"a": 1.0}, "only")
    for export, learner in ((to_text, clf), (to_onnx, clf), (to_text, model)):
        with pytest.raises(TypeError, match=r"must have seen at least two classes; it has seen \['only'\]"):
            export(learner)
