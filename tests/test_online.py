"""The online perceptron is the perceptron, one example at a time; names, hashes and limits do what they say they do."""

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher

import rosenblatt
from rosenblatt import rules
from rosenblatt.errors import InvalidData, InvalidDataType, MissingDependency, NumericOverflow
from rosenblatt.online import OnlinePerceptron, as_river, hashing
from rosenblatt.online.names import Names
from rosenblatt.testing import laws

WORDS = ["free", "money", "noon", "you", "win", "at", "see"]
LABELS = ["spam", "ham", "news", "work"]
RULES = [
    rules.Diminishing(1.0, 2.0, 0.5),
    rules.Uneven(2.0, -0.5, 1.0),
    rules.PA1(0.5),
    rules.PA1(math.inf),
    rules.PA2(0.5),
    rules.Mira(0.0),
]


def named(row):
    """A row of numbers as a dictionary, without its zeros."""
    return {WORDS[j]: value for j, value in enumerate(row) if value}


def learned(model):
    """All that a model has learned."""
    return {
        "classes": model.classes_,
        "counts": (model.n_seen_, model.n_mistakes_, model.n_updates_),
        "weights": model.named_weights(),
        "intercepts": [model.intercept_of(label) for label in model.classes_],
    }


@st.composite
def streams(draw, classes=4, features=5, rows=25, low=-3, high=3):
    """Integer rows and labels, in no order."""
    n = draw(st.integers(0, rows))
    row = st.lists(st.integers(low, high), min_size=features, max_size=features)
    X = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float).reshape(n, features)
    return X, [LABELS[i] for i in draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))]


KINDS = st.fixed_dictionaries(
    {
        "keep": st.sampled_from(["last", "average"]),
        "fit_intercept": st.booleans(),
        "intercept_scaling": st.sampled_from([1.0, 3.0]),
    }
)


# The same perceptron


@given(streams(), KINDS, st.integers(0, 3), st.data())
def test_it_is_the_perceptron_that_streams_arrays(stream, kind, margin, data):
    X, y = stream
    weight = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(y), max_size=len(y))), dtype=float)
    if not weight.any():
        return
    coefs, intercepts, engine = streamed(X, y, weight, kind, margin=margin)
    model = OnlinePerceptron(rules.Perceptron(float(margin), 1.0), **kind)
    for x, label, w in zip(X, y, weight, strict=True):
        model.learn_one(named(x), label, w)
    assert model.classes_ == tuple(engine.classes_.tolist())
    assert (model.n_seen_, model.n_mistakes_, model.n_updates_) == (engine.n_seen_, engine.n_mistakes_, engine.n_updates_)
    for label, coef, intercept in zip(model.classes_, coefs, intercepts, strict=True):
        assert model.weights_of(label) == {WORDS[j]: value for j, value in enumerate(coef) if value}
        exact = kind["keep"] == "last" or kind["intercept_scaling"] == 1.0  # else they multiply and divide in another order
        assert model.intercept_of(label) == (intercept if exact else pytest.approx(intercept, abs=1e-12))
    decision = X @ coefs.T + intercepts
    scores = [list(model.score_one(named(x)).values()) for x in X]
    np.testing.assert_allclose(scores, decision, rtol=0, atol=1e-12)
    if kind["keep"] == "last":
        expected = decision[:, 1] >= 0 if len(coefs) == 2 else decision.argmax(axis=1)
        assert model.predict_many([named(x) for x in X]) == [model.classes_[int(number)] for number in expected]


def streamed(X, y, weight, kind, **params):
    """(coef, intercept) for each class that the classifier of arrays learns, and itself. It keeps the average in any case:
    that has the last weights too, and half as much to compile."""
    engine = rosenblatt.Perceptron(unknown_class="grow", **(kind | {"keep": "average"}), **params)
    engine.partial_fit(X, np.array(y), sample_weight=weight)
    last = kind["keep"] == "last"
    coef, intercept = (engine.last_coef_, engine.last_intercept_) if last else (engine.coef_, engine.intercept_)
    if len(engine.classes_) == 2:
        coef, intercept = np.vstack([-coef, coef]), np.append(-intercept, intercept)
    return coef, intercept, engine


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("keep", ["last", "average"])
def test_any_rule_is_a_plain_loop(rule, classes, keep):
    rng = np.random.default_rng(5)
    X, y, constant = rng.standard_normal((60, 4)), rng.integers(0, classes, 60).tolist(), 2.0
    w, total, known, updates = {}, {}, [], 0
    for x, label in zip(np.column_stack([X, np.full(len(X), constant)]), y, strict=True):
        if label not in known:
            known.append(label)
            w[label] = -w[known[0]] if len(known) == 2 else np.zeros(len(x))
            total[label] = np.zeros(len(x))
        if len(known) > 1:
            rival = max((other for other in known if other != label), key=lambda other: w[other] @ x)
            two = len(known) == 2
            m, size = (w[label] @ x, x @ x) if two else ((w[label] - w[rival]) @ x, 2 * x @ x)
            tau = rules.step(rule, m, size, updates + 1, not two or label == known[1])
            updates += tau != 0
            w[label], w[rival] = w[label] + tau * x, w[rival] - tau * x
        for other in known:
            total[other] = total[other] + w[other]
    model = OnlinePerceptron(rule, keep=keep, intercept_scaling=constant)
    model.learn_many(X, y)
    assert model.n_updates_ == updates
    assert model.classes_ == tuple(known)
    for label in known:
        kept = total[label] / len(y) if keep == "average" else w[label]
        mine = [model.weights_of(label).get(j, 0.0) for j in range(X.shape[1])]
        np.testing.assert_allclose([*mine, model.intercept_of(label)], [*kept[:-1], kept[-1] * constant], atol=1e-9)


@given(streams(), KINDS, st.data())
def test_any_chunking_and_any_kind_of_row_give_the_same_model(stream, kind, data):
    X, y = stream
    frame = pd.DataFrame(X, columns=WORDS[: X.shape[1]])
    one = OnlinePerceptron(**kind)
    for x, label in zip(frame.to_dict("records"), y, strict=True):
        one.learn_one(x, label)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(y)), max_size=3)))
    many = OnlinePerceptron(**kind)
    for start, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
        many.learn_many(frame[start:end], pd.Series(y[start:end], dtype=object))
    assert learned(many) == learned(one)
    positions = OnlinePerceptron(**kind)
    for x, label in zip(X, y, strict=True):
        positions.learn_one(x, label)
    expected = learned(positions)
    for layout in (
        X,
        X.tolist(),
        sp.csr_matrix(X),
        laws.unsorted_csr(X),
        [dict(enumerate(x)) for x in X],
        X.astype(np.float32),
    ):
        model = OnlinePerceptron(**kind)
        model.learn_many(layout, np.array(y))
        assert learned(model) == expected
    for label, weights in expected["weights"].items():
        assert {WORDS[j]: weight for j, weight in weights.items()} == one.weights_of(label)
    for x, row in zip(X, frame.to_dict("records"), strict=True):
        assert positions.predict_one(x) == one.predict_one(row) == positions.predict_one(x.tolist())


def test_the_third_class_finds_the_one_vector_as_two():
    model = OnlinePerceptron(fit_intercept=False)
    for x, label in [({"a": 1}, "x"), ({"a": 1}, "y"), ({"a": 3}, "x")]:
        model.learn_one(x, label)
    assert model.named_weights() == {"x": {"a": 2.0}, "y": {"a": -2.0}}
    model.learn_one({"b": 1}, "z")
    assert model.named_weights() == {"x": {"a": 2.0, "b": -1.0}, "y": {"a": -2.0}, "z": {"b": 1.0}}
    assert model.score_one({"a": 1, "b": 2}) == {"x": 0.0, "y": -2.0, "z": 2.0}


@pytest.mark.parametrize("keep", ["last", "average"])
@pytest.mark.parametrize("params", [{}, {"hashing": 2**10}, {"max_features": 20}])
def test_many_new_classes_move_the_weights_few_times(tmp_path, keep, params):
    """Each third example brings a class; the others go back to an earlier one."""
    rng = np.random.default_rng(6)
    count, X = 700, rng.integers(-3, 4, (2100, 9)).astype(float)
    y = [i // 3 if i % 3 == 0 else int(rng.integers(i // 3 + 1)) for i in range(3 * count)]
    model, arrays = OnlinePerceptron(keep=keep, **params), []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        model.learn_one(dict(zip("abcdefghi", x.tolist(), strict=True)), label)
        if not arrays or model._weights.w is not arrays[-1]:
            arrays.append(model._weights.w)
        if i == 1000:
            model.save(tmp_path / "model")
            model = rosenblatt.load(tmp_path / "model")
    assert len(arrays) <= 4 + math.log2(count)
    coefs, _, engine = streamed(X, y, np.ones(len(y)), {"keep": keep})
    assert (model.n_mistakes_, model.n_updates_) == (engine.n_mistakes_, engine.n_updates_)
    for label, coef in zip(model.classes_, coefs, strict=True):
        assert model.weights_of(label) == {"abcdefghi"[j]: value for j, value in enumerate(coef.tolist()) if value}
    model.save(tmp_path / "model")
    assert rosenblatt.load(tmp_path / "model")._weights.room == count


def test_a_new_class_that_fails_leaves_the_room_for_the_next():
    model = OnlinePerceptron(keep="average")
    model.learn_many([{"a": float(i), "b": 1.0} for i in range(4)], LABELS)
    before = all_of(model)
    with pytest.raises(ValueError, match="too long"):
        model.learn_one({"a": 1.0}, "fifth", 1e200)
    assert all_of(model) == before
    model.learn_one({"a": 1.0}, "sixth")
    assert model.classes_ == (*LABELS, "sixth")
    assert not model._weights.w[:, 5:6].any()


@given(streams(classes=2))
def test_the_average_is_exact(stream):
    X, y = stream
    model, last = OnlinePerceptron(keep="average"), OnlinePerceptron()
    totals: dict[str, Fraction] = {}
    for x, label in zip(X, y, strict=True):
        for one in (model, last):
            one.learn_one(named(x), label)
        for name, weight in (last.weights_of(last.classes_[1]) if len(last.classes_) > 1 else {}).items():
            totals[name] = totals.get(name, Fraction(0)) + Fraction(weight)
    if len(model.classes_) > 1:
        mine = model.weights_of(model.classes_[1])
        for name, total in totals.items():
            assert mine.get(name, 0.0) == pytest.approx(float(total / len(y)), abs=1e-15, rel=1e-15)


def test_a_weight_of_zero_is_absence():
    model = OnlinePerceptron()
    model.learn_one({"a": math.nan}, "x", 0)
    assert model.classes_ == ()
    assert model.n_seen_ == 0
    assert model.predict_one({"a": 1}) is None
    model.learn_many([{"a": 1}, {"a": math.nan}, {"b": 1}], ["x", "new", "y"], [1, 0, 2])
    assert model.classes_ == ("x", "y")
    assert model.n_seen_ == 2
    assert model.weights_of("y") == {"b": 2.0}


def test_before_there_are_two_classes():
    model = OnlinePerceptron()
    assert model.predict_one({"a": 1}) is None
    assert model.score_one({"a": 1}) == {}
    assert model.named_weights() == {}
    assert (model.n_seen_, model.n_mistakes_, model.n_updates_, model.n_features_) == (0, 0, 0, 0)
    model.learn_one({"a": 1}, "x")
    assert model.predict_one({}) == "x"
    assert model.score_one({"a": 1}) == {"x": 0.0}
    assert model.weights_of("x") == {}
    assert (model.n_seen_, model.n_mistakes_, model.n_features_) == (1, 0, 0)


# Rows


@pytest.mark.parametrize("value", [1, True, np.float32(1), np.int8(1), np.bool_(True), Fraction(1)])
def test_values_are_whatever_is_a_number(value):
    model = OnlinePerceptron()
    model.learn_many([{"a": 2}, {"a": value}], ["x", "y"])
    assert model.weights_of("y") == {"a": 1.0}


def test_minus_one_is_a_number_too():
    """The interpreter says −1 where a value is no number, and asks to look twice."""
    model = OnlinePerceptron(fit_intercept=False)
    model.learn_many([{"a": -1.0}, {"a": -1, "b": -1.0}], ["x", "y"])
    assert model.weights_of("y") == {"a": -1.0, "b": -1.0}
    assert model.score_one({"a": -1})["y"] == 1.0


def test_text_is_one_feature_a_value():
    model = OnlinePerceptron()
    model.learn_one({"color": "red", "size": 2}, "x")
    model.learn_one({"color": "blue", "size": 1}, "y")
    assert model.weights_of("y") == {"color=blue": 1.0, "size": 1.0}
    assert model.score_one({"color": "blue"}) == model.score_one({"color=blue": 1})
    assert model.predict_one({"color": "blue"}) == "y"
    assert model.explain_one({"color": "blue", "size": 1}, "x").contributions == {"color=blue": -1.0, "size": -1.0}


@pytest.mark.parametrize("name", ["text", b"bytes", 7, -3, 2.5, None, ("pair", 1), frozenset("ab")])
def test_any_hashable_thing_names_a_feature(name):
    model = OnlinePerceptron()
    model.learn_many([{}, {name: 2.0}], [0, 1])
    assert model.weights_of(1) == {name: 2.0}
    assert model.score_one({copy.deepcopy(name): 1.0})[1] == 3.0


def test_names_that_are_equal_are_one_feature():
    model = OnlinePerceptron(fit_intercept=False)
    model.learn_many([{}, {1: 2.0, "ab": 1.0}], ["x", "y"])
    assert model.score_one({1.0: 1.0, "".join(["a", "b"]): 1.0}) == {"x": -3.0, "y": 3.0}
    assert model.score_one([0.0, 1.0]) == {"x": -2.0, "y": 2.0}  # position 1


def test_positions_may_come_at_any_time():
    """A row of numbers is {0: …, 1: …}, before, after and beside rows with names, however long it is."""
    rows = [[1.0, 2.0], {"b": 1.0}, [0.0, 1.0, 5.0], {1: 3.0, "b": 2.0}, np.array([1.0]), [2.0, 0.0, 1.0, 1.0]]
    model, expected = OnlinePerceptron(), OnlinePerceptron()
    for i, row in enumerate(rows * 2):
        model.learn_one(row, i % 3 == 0)
        expected.learn_one(row if isinstance(row, dict) else dict(enumerate(row)), i % 3 == 0)
        assert learned(model) == learned(expected)
        assert model.score_one(row) == expected.score_one(row)
    longer = OnlinePerceptron()
    longer.learn_many([[1.0], [2.0]], ["x", "y"])
    assert longer.score_one([1.0, 9.0]) == longer.score_one({0: 1.0})
    with pytest.raises(ValueError, match="finite"):
        longer.predict_one([1.0, math.inf])


def test_rows_of_other_kinds():
    model = OnlinePerceptron()
    model.learn_one(pd.Series({"a": 1.0, "b": 2.0}), "x")
    model.learn_one(pd.Series({"a": 1.0, "b": 0.0}), "y")
    assert model.weights_of("y") == {"a": 1.0}
    from collections import ChainMap, Counter, OrderedDict

    for row in (Counter("a"), OrderedDict(a=1), ChainMap({"a": 1}, {"a": 2})):
        assert model.score_one(row)["y"] == 2.0


@pytest.mark.parametrize("keep", ["last", "average"])
@pytest.mark.parametrize("classes", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ({"a": math.nan}, ValueError, "finite; 'a' is nan"),
        ({"a": 1, "b": -math.inf}, ValueError, "finite; 'b' is -inf"),
        ({"a": 10**400}, ValueError, "too large: 'a' is 1000"),
        ({"a": None}, TypeError, "number, a truth value or text; 'a' is None"),
        ({"a": b"red"}, TypeError, "'a' is b'red'"),
        ({"a": bytearray(b"1")}, TypeError, r"'a' is bytearray\(b'1'\)"),
        ({"a": [1]}, TypeError, r"'a' is \[1\]"),
        ({"a": 1j}, TypeError, "'a' is 1j"),
        ([1.0, math.nan], ValueError, "finite; 1 is nan"),
        (["red"], TypeError, "dictionary or a sequence of numbers"),
        ([[1.0]], ValueError, "one axis"),
        (3.0, ValueError, "one axis"),
    ],
)
def test_a_bad_row_changes_nothing(keep, classes, row, error, words):
    model = OnlinePerceptron(keep=keep)
    for i in range(max(classes, 1)):
        model.learn_one({"a": i + 1, "c": 1}, LABELS[i])
    before = learned(model)
    if classes:
        with pytest.raises(error, match=words):
            model.learn_one(row, LABELS[0])
        assert learned(model) == before
    with pytest.raises(error, match=words):
        model.learn_one(row, "new")
    with pytest.raises(error, match=words):
        model.learn_many([{"a": 1}, row], ["new", "newer"])
    assert learned(model) == before
    if classes > 1:
        with pytest.raises(error, match=words):
            model.predict_one(row)


def test_too_large_numbers_are_refused_before_anything_changes():
    model = OnlinePerceptron()
    model.learn_many([{"a": 1.0}, {"a": 1e90}], ["x", "y"])
    before = learned(model)
    for label in ("x", "new"):
        with pytest.raises(ValueError, match="too large"):
            model.learn_one({"a": 1e300}, label)
    assert learned(model) == before


@pytest.mark.parametrize(("label", "error"), [(None, ValueError), (math.nan, ValueError), ([], TypeError)])
def test_a_label_names_a_class(label, error):
    model = OnlinePerceptron()
    with pytest.raises(error):
        model.learn_one({"a": 1}, label)
    with pytest.raises(error):
        model.learn_many([{"a": 1}, {"b": 1}], ["x", label])
    assert model.classes_ == ()


def test_labels_come_back_as_plain_objects():
    model = OnlinePerceptron()
    model.learn_many(np.eye(2), np.array([3, 5]))
    assert type(model.predict_one([1, 0])) is int
    model = OnlinePerceptron()
    model.learn_one({"a": 1}, np.bool_(True))
    model.learn_one({"b": 1}, False)
    assert model.classes_ == (True, False)
    assert type(model.classes_[0]) is bool


@pytest.mark.parametrize("w", [-1.0, math.nan, math.inf])
def test_a_weight_is_finite_and_not_negative(w):
    with pytest.raises(ValueError, match="weight of an example must be finite and not negative"):
        OnlinePerceptron().learn_one({"a": 1}, "x", w)
    with pytest.raises(ValueError, match="weight of an example must be finite and not negative"):
        OnlinePerceptron().learn_many([{"a": 1}], ["x"], w)


def test_as_many_rows_as_labels():
    with pytest.raises(ValueError, match="X has 1 rows, but y has 2 labels and w 2 weights"):
        OnlinePerceptron().learn_many([{"a": 1}], ["x", "y"])
    with pytest.raises(ValueError, match="X has 1 rows, but y has 1 labels and w 3 weights"):
        OnlinePerceptron().learn_many([{"a": 1}], ["x"], [1, 2, 3])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"rule": "perzeptron"}, "rule must be 'perceptron' or a rule, .*; got 'perzeptron'"),
        ({"rule": (0.0, 1.0)}, r"got \(0.0, 1.0\)"),
        ({"keep": "vote"}, "keep must be one of 'last', 'average'; got 'vote'"),
        ({"intercept_scaling": 0}, "intercept_scaling must be a number > 0 and < 1e[+]50; got 0"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
        ({"hashing": 1}, "hashing must be a whole number ≥ 2"),
        ({"hash_bits": 16}, "hash_bits must be 32 or 64; got 16"),
        ({"max_features": 0}, "max_features must be a whole number ≥ 1"),
        ({"max_classes": 1}, "max_classes must be a whole number ≥ 2"),
        ({"max_features": 5, "hashing": 8}, "hashing=8 and max_features=5 cannot be used together"),
    ],
)
def test_parameters_are_checked_at_the_first_example(params, words):
    with pytest.raises(ValueError, match=words):
        OnlinePerceptron(**params).learn_one({"a": 1}, "x")


def test_max_classes_refuses_one_more():
    model = OnlinePerceptron(max_classes=2)
    model.learn_many([{"a": 1}, {"b": 1}], ["x", "y"])
    before = learned(model)
    with pytest.raises(ValueError, match=r"'z' would be one class more than max_classes=2; the classes are \['x', 'y'\]"):
        model.learn_one({"c": 1}, "z")
    with pytest.raises(ValueError, match="max_classes=2"):
        model.learn_many([{"c": 1}, {"c": 1}], ["x", "z"])
    assert learned(model) == before


def test_the_label_that_is_one_too_many_is_named_with_its_row():
    model = OnlinePerceptron(max_classes=2)
    model.learn_one({"a": 1}, "x")
    before = learned(model)
    with pytest.raises(InvalidData, match=r"the label 'z' would be .*; the classes are \['x', 'y'\]") as caught:
        model.learn_many([{"a": 1}, {"b": 2}, {"c": 1}, {"c": 1}], ["x", "y", "z", "u"])
    assert caught.value.row == 2
    assert learned(model) == before


@pytest.mark.parametrize(
    ("learn", "error", "words"),
    [
        (lambda model: model.learn_many([{"a": 1}], ["x"], w=["q"]), InvalidData, "weights .* must be numbers"),
        (lambda model: model.learn_many([{"a": 1}], ["x"], w=[{}]), InvalidDataType, "weights .* must be numbers"),
        (lambda model: model.learn_many([{"a": 1}], ["x"], w=[10**400]), NumericOverflow, "weights .* too large"),
        (lambda model: model.learn_many([{"a": 1}], ["x"], w=[[1.0]]), InvalidData, "one axis"),
        (lambda model: model.learn_one({"a": 1}, "x", w="q"), InvalidDataType, "weight of an example must be .*'q'"),
        (lambda model: model.learn_one({"a": 1.0}, ["l"]), InvalidDataType, r"label must be hashable; got \['l'\]"),
        (lambda model: model.learn_many([{"a": 1.0}], [["l"]]), InvalidDataType, r"label must be hashable; got \['l'\]"),
        (lambda model: model.learn_many(None, None), InvalidDataType, "X must be .*; got None"),
        (lambda model: model.learn_many([{"a": 1}], None), InvalidDataType, "y must be .*; got None"),
        (lambda model: model.learn_many([{"a": 1}], np.array("x")), InvalidDataType, "y must be "),
        (lambda model: model.learn_one({"a": 10**400}, "x"), NumericOverflow, "'a' is 10{199}…, and at most 1e.100"),
        (lambda model: model.learn_one([10**400], "x"), NumericOverflow, "10{198}…, and at most 1e.100"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_our_words(learn, error, words):
    model = OnlinePerceptron()
    for label in "xy":
        model.learn_one({"a": 1, "b": 2}, label)
    before = learned(model)
    with pytest.raises(error, match=words):
        learn(model)
    assert learned(model) == before


# Hashing


@given(streams(), KINDS, st.integers(2, 9))
def test_32_bits_hash_as_feature_hasher_does(stream, kind, buckets):
    X, y = stream
    if not y:
        return
    rows = [named(x) for x in X]
    hashed = FeatureHasher(buckets).transform(rows).toarray()
    coefs, intercepts, engine = streamed(hashed, y, np.ones(len(y)), kind)
    model = OnlinePerceptron(hashing=buckets, **kind)
    model.learn_many(rows, y)
    assert (model.n_mistakes_, model.n_updates_) == (engine.n_mistakes_, engine.n_updates_)
    assert model.n_features_ <= max(buckets, X.shape[1])
    scores = [list(model.score_one(x).values()) for x in rows]
    np.testing.assert_allclose(scores, hashed @ coefs.T + intercepts, rtol=0, atol=1e-12)


def test_hashes_are_what_the_documentation_says():
    assert [hashing.hash32(text) for text in (b"", b"word=free")] == [0, 1300179046]
    assert [hashing.hash64(text) for text in (b"", b"word=free")] == [-5426141060434712860, 5938709816472683010]
    assert hashing.name_bytes(("a", 1)) == b"a\x001"
    assert hashing.name_bytes(np.int64(3)) == b"3"
    model = OnlinePerceptron(hashing=8)
    model.learn_one({"a": 1}, "x")
    with pytest.raises(TypeError, match=r"the name of a feature must be text.*got 2.5, a float"):
        model.learn_one({2.5: 1}, "y")


class Word(str):
    """Text, but not exactly a str."""


PLAIN_NAMES = st.one_of(st.text(max_size=50), st.text("abc", max_size=150), st.integers(), st.binary(max_size=140))
NAMES = st.one_of(PLAIN_NAMES, st.booleans(), st.tuples(PLAIN_NAMES, PLAIN_NAMES), st.builds(Word, st.text(max_size=9)))


@given(NAMES, st.integers(2, 2**31))
def test_compiled_code_hashes_as_python_does(name, buckets):
    for bits in (32, 64):
        found = hashing.COMPILED[bits](id(name), buckets)
        if found == -1:
            assert not isinstance(name, (int, bytes)) or type(name) is bool or len(hashing.name_bytes(name)) > hashing.BLOCK
        else:
            assert found == hashing.code(name, buckets, bits)
    if type(name) is str:
        assert hashing.COMPILED[32](id(name), buckets) >= 0
        assert (hashing.COMPILED[64](id(name), buckets) >= 0) == (len(name.encode()) <= hashing.BLOCK)


def test_a_name_that_has_no_utf8_is_refused():
    model = OnlinePerceptron(hashing=8)
    model.learn_many([{"a": 1}, {"b": 1}], ["x", "y"])
    assert hashing.COMPILED[32](id("\ud800"), 8) == -1
    with pytest.raises(UnicodeEncodeError):
        model.predict_one({"\ud800": 1.0})


def hashed_rows(count, seed):
    """Rows of real numbers, with names of every kind; so many that not all are remembered."""
    rng = np.random.default_rng(seed)
    names = [
        *(f"w{i}" for i in range(30)),
        *(f"ö{i}" for i in range(5)),
        ("pair", 1),
        b"bytes",
        7,
        -8,
        True,
        Word("x"),
        "l" * 200,
    ]
    for _ in range(count):
        chosen = rng.choice(len(names), 6, replace=False)
        yield {names[j]: float(rng.standard_normal()) for j in chosen} | {"zero": 0.0}, int(rng.integers(3))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("keep", ["last", "average"])
def test_a_hashed_score_is_the_sum_in_the_order_of_the_row(bits, classes, keep):
    """To the last bit, whichever names are remembered."""
    model = OnlinePerceptron(hashing=16, hash_bits=bits, keep=keep)
    for row, label in hashed_rows(100, 1):
        model.learn_one(row, label % classes)
    w, vectors = model._weights.w, model._weights.vectors
    for row, _ in hashed_rows(30, 2):
        total = np.zeros(w.shape[1])  # for two or three classes, without room for more
        for name, value in row.items():
            code = hashing.code(name, 16, bits)
            total += (-value if code & 1 else value) * w[code >> 1]
        total += w[-1]
        score = total[:vectors] - total[vectors:] / model.n_seen_ if keep == "average" else total
        assert [model.score_one(row)[label] for label in model.classes_[-vectors:]] == score.tolist()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("params", [{"keep": "average"}, {"rule": rules.PA1(1.0)}])
def test_predictions_and_files_in_between_leave_no_trace_in_a_hashed_model(tmp_path, bits, params):
    one, other = (OnlinePerceptron(hashing=16, hash_bits=bits, **params) for _ in range(2))
    for i, (row, label) in enumerate(hashed_rows(120, 3)):
        one.learn_one(row, label)
        other.learn_one(row, label)
        for unseen, _ in hashed_rows(i % 3, 4 + i):
            other.predict_one(unseen)
        if i % 25 == 24:
            other.save(tmp_path / "middle")
            other = rosenblatt.load(tmp_path / "middle")
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("bits", [32, 64])
def test_hashed_weights_keep_their_names(bits):
    """As long as names are remembered, each tells what a row of it alone is scored."""
    model = OnlinePerceptron(hashing=2**12, hash_bits=bits, fit_intercept=False)
    rng = np.random.default_rng(0)
    for _ in range(200):
        words = rng.choice(300, 8, replace=False)
        model.learn_one({f"w{j}": 1.0 for j in words}, bool(words.sum() > 1200))
    weights = model.weights_of(True)
    assert weights
    assert all(isinstance(name, str) for name in weights)
    assert all(model.score_one({name: 1.0})[True] == weight for name, weight in weights.items())
    assert model._weights.w.shape == (2**12 + 1, 1)


def test_names_beyond_the_bound_go_by_their_bucket():
    model = OnlinePerceptron(hashing=4, fit_intercept=False)
    for i in range(40):
        model.learn_one({f"w{i}": 1.0, f"v{i}": 2.0}, i % 2)
        assert model.n_features_ <= 4
    weights = model.weights_of(1)
    nameless = {name: weight for name, weight in weights.items() if isinstance(name, int)}
    assert nameless
    for bucket, weight in nameless.items():
        assert model._weights.w[bucket] == weight


def test_hashed_lengths_count_what_shares_a_bucket_together():
    model = OnlinePerceptron(rules.PA1(math.inf), hashing=2, fit_intercept=False)
    row = {f"w{i}": float(i + 1) for i in range(6)}
    hashed = FeatureHasher(2).transform([row]).toarray()[0]
    model.learn_one({}, "x")
    model.learn_one(row, "y")
    np.testing.assert_allclose(model._weights.w[:2, 0], hashed / (hashed @ hashed))
    assert model.score_one(row)["y"] == pytest.approx(1.0)


# The limit


class Forgetful:
    """The documented policy, in plain Python: two classes, no intercept."""

    def __init__(self, limit, averaged):
        self.limit, self.averaged, self.w, self.total, self.seen = limit, averaged, {}, {}, 0

    def learn(self, x, sign):
        if sign * sum(self.w.get(name, 0.0) * value for name, value in x.items()) <= 0:
            self.make_room(x)
            for name, value in x.items():
                if name in self.w:
                    self.w[name] += sign * value
        self.seen += 1
        for name, weight in self.w.items():
            self.total[name] = self.total.get(name, 0.0) + weight

    def kept(self):
        return {name: self.total.get(name, 0.0) / max(self.seen, 1) for name in self.w} if self.averaged else self.w

    def make_room(self, x):
        new = [name for name in x if name not in self.w]
        if (needed := len(self.w) + len(new) - self.limit) > 0:
            kept = self.total if self.averaged and self.seen else self.w
            others = sorted((name for name in self.w if name not in x), key=lambda name: abs(kept[name]))
            for name in others[: max(needed, self.limit // 10)]:
                del self.w[name]
                self.total.pop(name, None)
        for name in new[: self.limit - len(self.w)]:
            self.w[name] = 0.0


@given(streams(classes=2, features=7, rows=40, low=-2, high=2), st.integers(1, 6), st.sampled_from(["last", "average"]))
def test_the_limit_is_never_exceeded_and_the_smallest_go_first(stream, limit, keep):
    X, y = stream
    model = OnlinePerceptron(max_features=limit, keep=keep, fit_intercept=False)
    expected = Forgetful(limit, keep == "average")
    for x, label in zip(X, y, strict=True):
        model.learn_one(named(x), label)
        if len(model.classes_) == 2:
            expected.learn(named(x), 1 if label == model.classes_[1] else -1)
        else:
            expected.seen += 1
        assert model.n_features_ <= limit
        assert len(model._weights.w) <= limit + 1
        if len(model.classes_) == 2:
            found = model.weights_of(model.classes_[1])
            assert model._weights.names.known == list(expected.w)
            assert found == pytest.approx({name: weight for name, weight in expected.kept().items() if weight}, abs=1e-12)


@pytest.mark.parametrize(
    ("keep", "kept"), [("last", {"a": 3.0, "c": -3.0, "d": 1.0}), ("average", {"a": 12 / 5, "b": -6 / 5, "d": 1 / 5})]
)
def test_what_is_forgotten_is_small_in_the_weights_that_predict(keep, kept):
    """After four rows the weights are a = 3, b = −2 and c = −3; over these rows they add up to 9, −4 and −3."""
    model = OnlinePerceptron(max_features=3, keep=keep, fit_intercept=False)
    for x, label in [({"a": 1}, "no"), ({"a": 3}, "yes"), ({"b": 2}, "no"), ({"c": 3}, "no"), ({"d": 1}, "yes")]:
        model.learn_one(x, label)
    assert model.weights_of("yes") == pytest.approx(kept, rel=1e-15)


@pytest.mark.parametrize("keep", ["last", "average"])
@pytest.mark.parametrize("classes", [2, 3, 5, 12, 13])
def test_memory_is_what_the_documentation_says(keep, classes):
    limit, rng = 100, np.random.default_rng(0)
    model = OnlinePerceptron(max_features=limit, keep=keep)
    for i in range(600):
        model.learn_one({f"w{j}": 1.0 for j in rng.integers(0, 2000, 12)}, i % classes)
        assert model.n_features_ <= limit
    weights = model._weights
    vectors = {2: 1, 3: 3, 5: 6, 12: 12, 13: 24}[classes]
    assert weights.w.nbytes == 8 * (limit + 1) * vectors * (2 if keep == "average" else 1)
    assert weights.names.table.nbytes <= 64 * limit
    assert len(weights.names.known) == model.n_features_ > limit * 0.8


def test_a_limit_that_is_never_reached_changes_nothing():
    rng = np.random.default_rng(1)
    free, limited = OnlinePerceptron(), OnlinePerceptron(max_features=50)
    for _ in range(300):
        x = {f"w{j}": 1.0 for j in rng.integers(0, 50, 6)}
        label = int(rng.integers(3))
        for model in (free, limited):
            model.learn_one(x, label)
    assert learned(free) == learned(limited)


@pytest.mark.parametrize("size", [63, 64, 65, 129])
def test_long_rows_are_learned_from_as_partial_fit_does(size):
    rng = np.random.default_rng(size)
    X, y = rng.integers(-3, 4, (50, size)).astype(float), rng.integers(0, 2, 50)
    expected = rosenblatt.Perceptron(keep="last", unknown_class="grow").partial_fit(X, y)
    for rows in (X, [dict(enumerate(row)) for row in X.tolist()]):
        model = OnlinePerceptron()
        model.learn_many(rows, y.tolist())
        assert model.weights_of(model.classes_[1]) == {j: w for j, w in enumerate(expected.coef_[0].tolist()) if w}
        assert model.predict_many(rows) == expected.predict(X).tolist()


# Names


class Clumsy:
    """A name whose hash is that of many others."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number % 3

    def __eq__(self, other):
        return isinstance(other, Clumsy) and self.number == other.number


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(-40, 40), st.builds(Clumsy, st.integers(0, 30))), max_size=60))
def test_the_table_is_a_dictionary(things):
    names, expected = Names(), {}
    for thing in things:
        row = {thing: 1.0, "zero": 0.0}
        assert names.unknown(row) == ([] if thing in expected else [thing])
        names.add(names.unknown(row), [2 * len(names)][: thing not in expected])
        expected.setdefault(thing, 2 * len(expected))
    assert names.known == list(expected)
    assert names.codes(things).tolist() == [expected[thing] for thing in things]
    assert names.codes([object(), "not there"]).tolist() == [-1, -1]
    if len(expected) > 2:
        names.keep(np.array([0, 2]))
        assert names.known == [*expected][:3:2]
        assert names.codes(names.known).tolist() == [0, 2]


def test_a_name_that_cannot_be_compared_is_another_name():
    class Sour(Clumsy):
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise RuntimeError("no")

    names, one = Names(), Sour(0)
    names.add([one], [0])
    assert names.codes([one]).tolist() == [0]
    assert names.codes([Clumsy(1)]).tolist() == [-1]


@pytest.mark.parametrize("params", [{}, {"hashing": 64}])
@pytest.mark.parametrize("name", ["".join(["na", "me"]), "".join(["n", "ä", "me"]), 10**30, bytes([5, 6]), ("pair", "a")])
def test_reading_a_row_holds_on_to_nothing(params, name):
    model = OnlinePerceptron(**params)
    value = float("2.5")
    row = {name: value}
    model.learn_many([{}, {"other": 1.0}], ["x", "y"])
    before = sys.getrefcount(name), sys.getrefcount(value), sys.getrefcount(row)
    for _ in range(100):
        model.predict_one(row)
    assert (sys.getrefcount(name), sys.getrefcount(value), sys.getrefcount(row)) == before
    model.learn_one({name: 1.0}, "x")
    before = sys.getrefcount(name), sys.getrefcount(value), sys.getrefcount(row)
    for _ in range(100):
        model.predict_one(row)
        model.learn_one(row, "x")
    assert (sys.getrefcount(name), sys.getrefcount(value), sys.getrefcount(row)) == before


def test_known_names_live_as_long_as_the_model():
    model = OnlinePerceptron()
    model.learn_one({}, "x")
    model.learn_one({"".join(["long", "-", str(i)]): 1.0 for i in range(200)}, "y")
    gc.collect()
    assert model.score_one({f"long-{i}": 1.0 for i in range(200)})["y"] == 201.0


# Copies


@pytest.mark.parametrize(
    "params", [{}, {"keep": "average"}, {"hashing": 16}, {"max_features": 4}, {"rule": rules.PA1(1.0)}]
)
@pytest.mark.parametrize(
    "way", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, lambda m: m.clone(include_attributes=True)]
)
def test_a_copy_goes_on_as_if_never_stopped(params, way):
    rng = np.random.default_rng(2)
    stream = [({f"w{j}": 1.0 for j in rng.integers(0, 9, 3)}, int(rng.integers(3))) for _ in range(60)]
    model = OnlinePerceptron(**params)
    for x, y in stream[:30]:
        model.learn_one(x, y)
    before = learned(model)
    twin = way(model)
    for x, y in stream[30:]:
        twin.learn_one(x, y)
    assert learned(model) == before
    for x, y in stream[30:]:
        model.learn_one(x, y)
    assert learned(twin) == learned(model)
    assert [twin.predict_one(x) for x, _ in stream] == [model.predict_one(x) for x, _ in stream]


def test_clones_and_parameters():
    model = OnlinePerceptron(rules.Perceptron(1.0, 0.5), keep="average")
    model.learn_many([{"a": 1}, {"b": 1}], ["x", "y"])
    for twin in (clone(model), model.clone()):
        assert twin.n_seen_ == 0
        assert twin.get_params() == model.get_params()
    assert model.clone({"keep": "last"}).keep == "last"
    with pytest.raises(ValueError, match="cannot be used together"):
        model.clone({"keep": "last"}, include_attributes=True)
    assert repr(OnlinePerceptron(keep="average")) == "OnlinePerceptron(keep='average')"
    assert OnlinePerceptron().set_params(keep="average").keep == "average"
    with pytest.raises(ValueError, match="begun to learn"):
        model.set_params(keep="last")


@pytest.mark.parametrize("params", [{}, {"keep": "average"}, {"hashing": 64}])
@pytest.mark.parametrize("classes", [2, 4])
def test_an_explanation_adds_up_to_the_score(params, classes):
    rng = np.random.default_rng(3)
    model = OnlinePerceptron(**params)
    for i in range(80):
        model.learn_one({f"w{j}": float(rng.integers(1, 4)) for j in rng.integers(0, 12, 4)}, LABELS[i % classes])
    row = {"w1": 2.0, "w5": np.bool_(True), "unknown": 3.0, "w2": 0.0}
    for label in (None, *model.classes_):
        found = model.explain_one(row, label)
        assert found.score == pytest.approx(model.score_one(row)[found.label])
        assert found.intercept == model.intercept_of(found.label)
        sizes = [abs(value) for value in found.contributions.values()]
        assert sizes == sorted(sizes, reverse=True)
        assert "w2" not in found.contributions
    assert model.explain_one(row).label == model.predict_one(row)
    with pytest.raises(ValueError, match="is not one of the known classes"):
        model.explain_one(row, "other")


def test_without_compiled_code_the_result_is_the_same():
    script = """
import numpy as np
from rosenblatt.online import OnlinePerceptron
rng = np.random.default_rng(4)
for params in ({}, {"keep": "average"}, {"hashing": 16}, {"max_features": 5}):
    model = OnlinePerceptron(**params)
    for i in range(40):
        model.learn_one({f"w{j}": float(rng.integers(-2, 3)) for j in rng.integers(0, 12, 4)} | {"c": "red"}, i % 3)
    print(model.named_weights(), model.n_mistakes_, model.predict_one({"w1": 1}))
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"NUMBA_DISABLE_JIT": flag},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for flag in ("0", "1")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0]) > 200


# River


@pytest.mark.parametrize("params", [{}, {"keep": "average"}, {"hashing": 2**8}, {"max_features": 50}])
def test_river_checks_it(params):
    checks = pytest.importorskip("river.checks")
    checks.check_estimator(as_river(OnlinePerceptron(**params)))


def test_without_river_the_message_says_what_to_install(monkeypatch):
    from rosenblatt.online import river

    monkeypatch.setitem(sys.modules, "river.base", None)
    with pytest.raises(MissingDependency, match=r"pip install 'rosenblatt\[river\]'"):
        river._river_perceptron.__wrapped__()


def test_in_a_river_pipeline():
    pytest.importorskip("river")
    from river import datasets, evaluate, metrics, preprocessing

    model = preprocessing.StandardScaler() | as_river(OnlinePerceptron(keep="average"))
    found = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert found.get() > 0.85
    assert type(pickle.loads(pickle.dumps(model["RiverPerceptron"]))) is type(model["RiverPerceptron"])


def test_as_river_goes_on_from_what_was_learned():
    pytest.importorskip("river")
    model = OnlinePerceptron()
    model.learn_many([{"a": 1.0}, {"b": 1.0}], ["x", "y"])
    twin = as_river(model)
    assert learned(twin) == learned(model)
    assert twin.predict_many(pd.DataFrame({"b": [1.0, 0.0]}, index=[5, 6])).index.tolist() == [5, 6]
    twin.learn_one({"a": 5.0}, "y")
    assert model.n_seen_ == 2


class Meddler:
    """A value that empties the row it stands in when it is asked for its number."""

    def __init__(self, row):
        self.row = row

    def __float__(self):
        self.row.clear()
        return 1.0


class Fickle:
    """A name whose hash may change."""

    code = 1

    def __hash__(self):
        return self.code


def test_values_and_names_that_misbehave_are_refused_and_crash_nothing():
    model = OnlinePerceptron()
    model.learn_one({"a": 1}, "x")
    model.learn_one({"b": 1}, "y")
    for work in (model.predict_one, lambda row: model.learn_one(row, "x")):
        row = {}
        row.update({f"k{i}": Meddler(row) for i in range(50)})
        with pytest.raises(RuntimeError, match="changed size"):
            work(row)
    name = Fickle()
    model.learn_one({name: 1.0}, "x")
    name.code = 2**40 + 7
    with pytest.raises(ValueError, match="has changed since it was learned"):
        pickle.dumps(model)


def test_a_step_that_would_make_weights_infinite_is_refused():
    model = OnlinePerceptron()
    model.learn_one({"a": 1}, "x")
    model.learn_one({"a": 1}, "y")
    before = model.named_weights()
    with pytest.raises(ValueError, match="too long"):
        model.learn_one({"a": 1e90}, "x", w=1e200)
    assert model.named_weights() == before


FAILING = {
    "NaN": ({"a": math.nan, "z": 1.0}, 1.0),
    "too large a value": ({"z": 1e200}, 1.0),
    "too large a position": ([0.0, 1e200], 1.0),
    "a negative weight": ({"z": 1.0}, -1.0),
    "too long a step": ({"z": 1.0}, 1e200),
}


def all_of(model):
    """What a model has learned, as it is in memory."""
    weights = model._weights
    counts = (model.n_seen_, model.n_mistakes_, model.n_updates_)
    if not model.classes_:
        return counts
    names = weights.names.known, weights.names.codes(weights.names.known).tolist(), weights.names.positions
    shape = weights.vectors, *weights.w.shape
    return (model.classes_, dict(model._numbers), counts, copy.deepcopy(names), shape, weights.w.tobytes())


@pytest.mark.parametrize("example", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("classes", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "params", [{}, {"keep": "average"}, {"rule": rules.PA1(math.inf), "hashing": 4}, {"max_features": 2}]
)
def test_an_example_that_fails_changes_nothing(params, classes, example):
    model = OnlinePerceptron(**params)
    for i in range(classes):
        model.learn_one({"a": i + 1, "b": 1, f"c{i}": 1}, LABELS[i])
    before = all_of(model)
    row, weight = example
    if classes < 2 and weight == 1e200:
        weight = math.inf  # nothing is moved yet
    for label in ("new", LABELS[0])[: 1 + (classes > 0)]:
        with pytest.raises(ValueError, match=r"finite|too large|too long"):
            model.learn_one(row, label, weight)
        assert all_of(model) == before


def test_a_short_row_that_makes_the_step_too_long_brings_no_names():
    model = OnlinePerceptron(rules.PA1(math.inf), hashing=8, fit_intercept=False)
    model.learn_many([{"a": 1.0}, {"a": -1.0}], ["x", "y"])
    before = all_of(model)
    for label in ("x", "new"):
        with pytest.raises(ValueError, match="too long"):
            model.learn_one({"z": 1e-60}, label)
        assert all_of(model) == before


def test_no_weight_becomes_infinite():
    with pytest.raises(ValueError, match="intercept_scaling"):
        OnlinePerceptron(intercept_scaling=1e200).learn_one({"a": 1}, "x")
    for keep in ("last", "average"):
        model = OnlinePerceptron(keep=keep)
        for i in range(20):
            model.learn_one({"a": 9e99, "b": -9e99}, "xy"[i % 2], 9e99)
        assert np.isfinite(model._weights.w).all()
        assert model.predict_one({"a": 9e99}) in ("x", "y")


@pytest.mark.parametrize("example", FAILING.values(), ids=FAILING)
def test_a_model_whose_first_example_failed_is_not_saved(tmp_path, example):
    model = OnlinePerceptron()
    row, weight = example
    with pytest.raises(ValueError, match=r"finite|too large"):
        model.learn_one(row, "x", math.inf if weight == 1e200 else weight)
    model.learn_one({"a": 1}, "x", 0.0)
    with pytest.raises(ValueError, match="not seen an example"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    model.learn_one({"a": 1}, "x")
    model.save(tmp_path / "model")
    assert learned(rosenblatt.load(tmp_path / "model")) == learned(model)


def test_rows_before_one_that_fails_are_learned_and_counted():
    model, twin = OnlinePerceptron(), OnlinePerceptron()
    rows, labels = [{"a": 1}, {"b": 1}, {"c": 1}, {"d": 1}], ["x", "y", "z", "x"]
    with pytest.raises(ValueError, match="too long"):
        model.learn_many(rows, labels, [1, 1, 1e200, 1])
    twin.learn_many(rows[:2], labels[:2])
    assert all_of(model) == all_of(twin)


def test_a_first_example_that_fails_leaves_the_parameters_free():
    model = OnlinePerceptron()
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": float("nan")}, "x")
    model.set_params(keep="average").learn_one({"a": 1}, "x")
    assert model.keep == "average"
