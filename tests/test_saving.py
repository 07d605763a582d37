"""A file holds a learner as it is: it predicts the same, tells the same, and learns on as if it had never been written.
What a file cannot hold is refused."""

from __future__ import annotations

import random
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rosenblatt
from rosenblatt import (
    ALMA,
    AROW,
    MIRA,
    PAUM,
    ROMMA,
    BalancedWinnow,
    Ballseptron,
    BudgetPerceptron,
    DeltaRuleClassifier,
    DeltaRuleRegressor,
    Forgetron,
    KernelPerceptron,
    NormalisedWinnow,
    PassiveAggressiveClassifier,
    PassiveAggressiveRegressor,
    Perceptron,
    PNormPerceptron,
    Projectron,
    ProjectronPlusPlus,
    RandomBudgetPerceptron,
    SecondOrderPerceptron,
    SigmaPerceptron,
    Stoptron,
    Winnow1,
    Winnow2,
    rules,
    store,
)
from rosenblatt.errors import DamagedModel, UnsupportedOperation
from rosenblatt.modelfile import registry
from rosenblatt.modelfile.container import UnreadableModel
from rosenblatt.modelfile.values import decode_number, decode_row
from rosenblatt.online import OnlinePerceptron, OnlineToBatch
from rosenblatt.testing import laws

LEARNERS = {
    "last": Perceptron(max_iter=3),
    "average": Perceptron(keep="average", multiclass="ovr", max_iter=3, class_weight={0: 2.0, 1: 1.0, 2: 0.5}),
    "vote": Perceptron(keep="vote", max_iter=2),
    "pocket": Perceptron(keep="pocket", max_iter=3),
    "pairs": Perceptron(multiclass="ovo", keep="average", learning_rate="invsqrt", max_iter=2),
    "no intercept": Perceptron(fit_intercept=False, unknown_class="grow", max_iter=2),
    "PA": PassiveAggressiveClassifier(C=float("inf"), average=True, max_iter=2),
    "MIRA": MIRA(max_iter=2),
    "PAUM": PAUM(max_iter=2),
    "delta": DeltaRuleClassifier(eta0=1 / 128, keep="average", max_iter=2),
    "delta regressor": DeltaRuleRegressor(max_iter=2),
    "PA regressor": PassiveAggressiveRegressor(average=True, max_iter=2),
    "ALMA": ALMA(max_iter=2),
    "ROMMA": ROMMA(max_iter=2),
    "Ballseptron": Ballseptron(max_iter=2),
    "p-norm": PNormPerceptron(p="log", max_iter=2),
    "AROW": AROW(form="diagonal", max_iter=2),
    "AROW, auto": AROW(max_iter=2),
    "AROW, rows": AROW(form="dual", max_iter=2),
    "second order": SecondOrderPerceptron(max_iter=2),
    "second order, diagonal": SecondOrderPerceptron(form="diagonal", max_iter=2),
    "normalised Winnow": NormalisedWinnow(init=np.ones(10), max_iter=2),
    "normalised Winnow, plain": NormalisedWinnow(signed=False, fit_intercept=False, max_iter=2),
    "balanced Winnow": BalancedWinnow(max_iter=2),
    "Winnow1": Winnow1(max_iter=2),
    "Winnow2": Winnow2(max_iter=2),
    "kernel": KernelPerceptron(max_iter=2),
    "kernel, average": KernelPerceptron("poly", degree=2, keep="average", multiclass="joint", max_iter=2),
    "kernel, vote": KernelPerceptron("linear", keep="vote", fit_intercept=True, max_iter=2),
    "Stoptron": Stoptron(budget=5, max_iter=2),
    "random": RandomBudgetPerceptron(budget=5, max_iter=2),
    "safest": BudgetPerceptron(budget=5, max_iter=2),
    "Forgetron": Forgetron(budget=5, max_iter=2),
    "Projectron": Projectron(max_iter=2),
    "Projectron++": ProjectronPlusPlus(budget=5, max_iter=2),
    "sigma": SigmaPerceptron(sigma=0.3),
    "last of a pass": OnlineToBatch(how="last", rule=rules.PA1(1.0)),
    "best of a pass": OnlineToBatch(how="best-suffix"),
}
STRUCTURED = {"GraphParser", "SequenceTagger", "StructuredPerceptron", "TagAndParse", "TransitionParser"}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rows_for(learner, classes=3, rows=30):
    X, y = laws.data(classes, rows)
    return ((X > 0).astype(float), y) if isinstance(learner, Winnow1 | Winnow2) else (X, y)


@cache
def fitted(name):
    learner = clone(LEARNERS[name])
    X, y = rows_for(learner)
    return learner.fit(X, y.astype(float) if hasattr(learner, "loss_bound") else y)


def same(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)
    return type(one) is type(other) and repr(one) == repr(other)  # repr, for NaN in a history


def without_times(value):
    """A history without the seconds that its epochs took, which no file holds."""
    timed = isinstance(value, list) and value and hasattr(value[0], "seconds")
    return [epoch._replace(seconds=None) for epoch in value] if timed else value


def assert_same(one, other, X):
    """Both have learned the same attributes, and answer alike to the last bit."""
    assert one.__dict__.keys() == other.__dict__.keys()
    for name in one.__dict__.keys() - {"_model", "_rows", "_known"}:
        assert same(without_times(getattr(one, name)), without_times(getattr(other, name))), name
    for name in ("coef_", "intercept_", "last_coef_", "average_dual_coef_", "dual_coef_", "covariance_", "p_", "radius_",
                 "damage_", "support_", "n_support_", "hypothesis_"):  # fmt: skip
        if hasattr(one, name):
            assert same(getattr(one, name), getattr(other, name)), name
    assert repr(one) == repr(other)
    for method in {"predict", "decision_function"} & set(dir(one)):
        assert same(getattr(one, method)(X), getattr(other, method)(X)), method


@pytest.mark.parametrize("name", LEARNERS)
def test_a_file_tells_everything(name, tmp_path):
    learner = fitted(name)
    X, _ = rows_for(learner)
    learner.save(tmp_path / "model")
    assert_same(learner, rosenblatt.load(tmp_path / "model"), X)
    assert_same(learner, type(learner).load(tmp_path / "model"), X)
    assert store.facts(tmp_path / "model")["learner"] == type(learner).__name__


@pytest.mark.parametrize("name", LEARNERS)
def test_what_need_only_predict_does(name, tmp_path):
    learner = fitted(name)
    X, y = rows_for(learner)
    learner.save(tmp_path / "whole")
    learner.save(tmp_path / "model", resume=False)
    loaded = rosenblatt.load(tmp_path / "model")
    assert same(loaded.predict(X), learner.predict(X))
    timeless = [epoch._replace(seconds=None) if hasattr(epoch, "seconds") else epoch for epoch in learner.history_]
    assert repr(loaded.history_) == repr(timeless)
    if store.facts(tmp_path / "model")["resume"]:
        return
    assert (tmp_path / "model").stat().st_size < (tmp_path / "whole").stat().st_size
    if hasattr(loaded, "partial_fit"):
        with pytest.raises(ValueError, match=r"saved for prediction only|keep='pocket'"):
            loaded.partial_fit(X, y)
    with pytest.raises(ValueError, match="saved for prediction only"):
        loaded.set_params(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="saved for prediction only"):
        loaded.save(tmp_path / "again")
    loaded.save(tmp_path / "again", resume=False)
    assert same(rosenblatt.load(tmp_path / "again").predict(X), learner.predict(X))
    for attribute in ("last_coef_", "weights_", "covariance_"):
        assert not hasattr(loaded, attribute)
    assert getattr(loaded, "p_", None) == getattr(learner, "p_", None)


def test_every_learner_is_in_the_table_and_can_be_loaded():
    ours = {type(learner).__name__ for learner in LEARNERS.values()} | {"OnlinePerceptron"}
    others = {"FileModel", "MixingCheckpoint"}  # which are tested with the trainings that make them
    assert set(registry.LEARNERS) - others == ours | STRUCTURED
    for name in registry.LEARNERS:
        assert registry.learner_class(name).__name__ == name
    for name, home in registry.PUBLIC.items():
        assert getattr(rosenblatt, name) is getattr(__import__(home, fromlist=[name]), name)


def test_sparse_rows_and_single_precision_are_kept(tmp_path):
    X, y = laws.data(2, 30)
    for form in (sp.csr_matrix, sp.csr_array):
        for learner in (KernelPerceptron("linear", max_iter=2), Perceptron(keep="vote", max_iter=2)):
            rows = form(X.astype(np.float32))
            learner.fit(rows, y).save(tmp_path / "model")
            loaded = rosenblatt.load(tmp_path / "model")
            assert_same(learner, loaded, rows)
            kept = [model.support_vectors() if hasattr(model, "support_vectors") else model.votes.rows
                    for model in (learner._model, loaded._model)]  # fmt: skip
            assert type(kept[0]) is type(kept[1])
            assert kept[1].dtype == np.float32


def test_layouts_that_change_on_the_way_are_kept(tmp_path):
    X, y = laws.data(2, 40)
    learner = KernelPerceptron("linear").partial_fit(X[:20], y[:20], classes=[0, 1])
    learner.partial_fit(sp.csr_array(X[20:].astype(np.float32)), y[20:])
    learner.save(tmp_path / "model")
    loaded = rosenblatt.load(tmp_path / "model")
    for model in (learner, loaded):
        model.partial_fit(X, y)
    assert_same(learner, loaded, X)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ham", "spam", "größer 🙂"]),
        np.array(["ham", "spam", "eggs"], dtype="U12"),
        np.array([b"ham", b"spam", b"\xff"]),
        np.array(["ham", "spam", "eggs"], dtype=object),
        np.array([-(2**62), 0, 2**62]),
        np.array([1, 2, 3], np.uint8),
        np.array([0.5, 1.5, 2.5], np.float32),
    ],
    ids=lambda names: names.dtype.str,
)
def test_labels_keep_their_type(names, tmp_path):
    X, y = laws.data(3, 20)
    clf = Perceptron(max_iter=1).fit(X, names[y] if names.dtype.kind != "f" else names[y].round())
    clf.save(tmp_path / "model")
    loaded = rosenblatt.load(tmp_path / "model")
    assert loaded.classes_.dtype == clf.classes_.dtype
    assert loaded.predict(X).tolist() == clf.predict(X).tolist()


def test_labels_may_be_truth_values_and_classes_may_come_later(tmp_path):
    X, y = laws.data(2, 20)
    Perceptron(max_iter=1).fit(X, y == 1).save(tmp_path / "model")
    assert rosenblatt.load(tmp_path / "model").predict(X).dtype == bool
    one = Perceptron(unknown_class="grow").partial_fit(X[:3], ["a"] * 3)
    for labels in (["b", "a", "b"], ["c", "b", "d"]):
        one.save(tmp_path / "model")
        loaded = rosenblatt.load(tmp_path / "model")
        assert_same(one, loaded, X)
        one.partial_fit(X[3:6], labels)
        assert_same(one, loaded.partial_fit(X[3:6], labels), X)


def test_names_of_columns_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = laws.data(2, 20)
    table = pd.DataFrame(X, columns=["a", "b", "ä", "🙂"])
    Perceptron(max_iter=1).fit(table, y).save(tmp_path / "model")
    loaded = rosenblatt.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "ä", "🙂"]
    loaded.partial_fit(table, y)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table[["b", "a", "ä", "🙂"]])
    with pytest.raises(ValueError, match="named columns"):
        loaded.widen(5)


def test_parameters_keep_their_type(tmp_path):
    X, y = laws.data(2, 20)
    clf = Perceptron(
        class_weight={0: 2, 1: 0.5}, batch=np.int64(1), tol=None, random_state=np.random.default_rng(0), max_iter=1
    )
    clf.fit(X, y).save(tmp_path / "model")
    loaded = rosenblatt.load(tmp_path / "model")
    assert loaded.class_weight == {0: 2, 1: 0.5}
    assert [type(key) for key in loaded.class_weight] == [int, int]
    assert loaded.random_state is None  # a file holds no generator
    assert loaded.get_params() == clf.get_params() | {"random_state": None, "batch": 1}


def test_a_model_that_began_with_other_parameters_says_so_as_before(tmp_path):
    X, y = laws.data(2, 20)
    for learner, later in [
        (Perceptron(), {"multiclass": "ovr", "fit_intercept": False}),
        (AROW(r=2.0), {"r": 3.0}),
        (NormalisedWinnow(), {"init": np.ones(3)}),
        (Forgetron(budget=4, max_iter=1), {"budget": 7}),
        (KernelPerceptron(gamma=0.5), {"gamma": 0.25}),
    ]:
        learner.fit(X, y).set_params(**later).save(tmp_path / "model")
        loaded = rosenblatt.load(tmp_path / "model")
        assert same(loaded.predict(X), learner.predict(X))
        for model in (learner, loaded):
            if "init" not in later:
                with pytest.raises(ValueError, match="has changed since this model began to learn"):
                    model.partial_fit(X, y)


# One row at a time


def stream(count, seed, classes, hashing):
    draw = random.Random(seed)
    names = [*"abcdefghij", "ä🙂", ("pair", 1), b"bytes", 7, *(() if hashing else (2.5, None))]
    labels = ["one", "two", ("three", 3), 4][:classes]
    return [({name: draw.randint(-3, 3) for name in draw.sample(names, 5)}, draw.choice(labels)) for _ in range(count)]


ONLINE = {
    "last": {},
    "average": {"keep": "average"},
    "rule": {"rule": rules.PA1(float("inf"))},
    "hashing": {"hashing": 8, "keep": "average"},
    "long hash": {"hashing": 16, "hash_bits": 64},
    "forgetful": {"max_features": 6, "keep": "average"},
}


@pytest.mark.parametrize("classes", [1, 2, 3, 4])
@pytest.mark.parametrize("form", ONLINE)
def test_a_stream_goes_on_as_if_never_stopped(form, classes, tmp_path):
    hashing = "hashing" in ONLINE[form]
    seen = stream(20, 1, classes, hashing)
    model = OnlinePerceptron(**ONLINE[form])
    for x, y in seen:
        model.learn_one(x, y)
    model.save(tmp_path / "model")
    loaded = rosenblatt.load(tmp_path / "model")
    assert repr(loaded) == repr(model)
    for x, y in [*seen, *stream(30, 2, 4, hashing)]:
        assert loaded.score_one(x) == model.score_one(x)
        assert loaded.predict_one(x) == model.predict_one(x)
        model.learn_one(x, y)
        loaded.learn_one(x, y)
    for name in ("classes_", "n_seen_", "n_mistakes_", "n_updates_", "n_features_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.named_weights() == model.named_weights()


def test_a_stream_whose_first_example_failed_is_saved_only_after_it_has_learned(tmp_path):
    model = OnlinePerceptron()
    with pytest.raises(ValueError, match="nan"):
        model.learn_one({"a": float("nan")}, "one")
    with pytest.raises(UnsupportedOperation, match="not seen an example yet"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    model.learn_one({"a": 1.0}, "one")
    model.save(tmp_path / "model")
    assert rosenblatt.load(tmp_path / "model").predict_one({"a": 1.0}) == "one"


def test_positions_are_names_too(tmp_path):
    X, y = laws.data(3, 30)
    model = OnlinePerceptron()
    model.learn_many(X[:, :2], y)
    model.save(tmp_path / "model")
    loaded = OnlinePerceptron.load(tmp_path / "model")
    for one in (model, loaded):
        one.learn_many(X, y)
    assert loaded.named_weights() == model.named_weights()


# What is refused


def test_refusals(tmp_path):
    X, y = laws.data(2, 20)
    path = tmp_path / "model"
    with pytest.raises(NotFittedError):
        Perceptron().save(path)
    with pytest.raises(ValueError, match="not seen an example"):
        OnlinePerceptron().save(path)
    with pytest.raises(TypeError, match="is a function, and a file holds no code"):
        KernelPerceptron(lambda a, b: a @ b.T).fit(X, y).save(path)
    model = OnlinePerceptron()
    model.learn_one({frozenset([1]): 1.0}, "a")
    model.learn_one({frozenset([1]): 1.0}, "b")
    with pytest.raises(TypeError, match=r"frozenset.* cannot be saved in a file; names and labels of text"):
        model.save(path)
    clf = Perceptron().fit(X, y)
    clf.weights_.w[0] = np.inf
    with pytest.raises(ValueError, match="infinite or NaN"):
        clf.save(path)
    assert not list(tmp_path.iterdir())
    Perceptron().fit(X, y).save(path)
    with pytest.raises(UnreadableModel, match="holds a Perceptron, not a MIRA"):
        MIRA.load(path)
    facts, arrays = store.read(path)
    store.write(path, facts | {"learner": "os.system"}, arrays)
    with pytest.raises(UnreadableModel, match=r"holds a 'os.system', which is not a learner of rosenblatt"):
        rosenblatt.load(path)
    with pytest.raises(FileNotFoundError):
        rosenblatt.load(tmp_path / "nowhere")


def test_a_learner_of_ones_own_is_saved_and_loaded_by_itself(tmp_path):
    X, y = laws.data(2, 20)
    Mine().fit(X, y).save(tmp_path / "model")
    loaded = Mine.load(tmp_path / "model")
    assert loaded._model.conditions.rule == rules.Perceptron(0.0, 3.0)
    with pytest.raises(UnreadableModel, match="for a class of your own, call its load"):
        rosenblatt.load(tmp_path / "model")


class Mine(Perceptron):
    def __init__(self):
        super().__init__(max_iter=2)

    def _rule(self):
        return rules.Perceptron(0.0, 3.0)


# More columns


@st.composite
def growing_streams(draw):
    """(X, y, [(rows, columns), ...]): integer rows whose last columns are zero until they are known."""
    rows, columns = draw(st.integers(4, 16)), draw(st.integers(2, 5))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    X, y = numbers.integers(-3, 4, (rows, columns)).astype(float), numbers.integers(0, draw(st.integers(2, 3)), rows)
    cuts = sorted(draw(st.lists(st.integers(1, rows - 1), min_size=1, max_size=3, unique=True)))
    widths = sorted(draw(st.lists(st.integers(1, columns), min_size=len(cuts), max_size=len(cuts))))
    steps, begin = [], 0
    for end, width in [*zip(cuts, widths, strict=True), (rows, columns)]:
        X[begin:end, width:] = 0
        steps.append((slice(begin, end), width))
        begin = end
    return X, y, steps


@settings(max_examples=25)
@given(growing_streams(), st.sampled_from(["last", "average", "vote"]), st.sampled_from(["joint", "ovr"]), st.booleans())
def test_columns_that_come_later_are_as_if_they_had_been_there(grown, keep, multiclass, sparse):
    X, y, steps = grown
    X = sp.csr_array(X) if sparse else X
    learner = Perceptron(keep=keep, multiclass=multiclass)
    whole = clone(learner).partial_fit(X, y, classes=[0, 1, 2])
    parts = clone(learner).partial_fit(X[steps[0][0], : steps[0][1]], y[steps[0][0]], classes=[0, 1, 2])
    for rows, width in steps[1:]:
        assert parts.widen(width) is parts
        parts.partial_fit(X[rows, :width], y[rows])
    assert_same(whole, parts, X)
    assert parts.n_features_in_ == X.shape[1]


BY_COLUMNS = ["pocket", "PA", "MIRA", "delta", "delta regressor", "PA regressor", "best of a pass", "AROW",
              "second order, diagonal", "balanced Winnow"]  # fmt: skip


@pytest.mark.parametrize("name", BY_COLUMNS)
def test_widening_changes_no_prediction_and_can_be_undone(name, tmp_path):
    learner = fitted(name)
    X, y = rows_for(learner)
    learner.save(tmp_path / "model")
    narrow, wide = (rosenblatt.load(tmp_path / "model") for _ in range(2))
    padded = np.hstack([X, np.zeros((len(X), 3))])
    wide.widen(7)
    assert wide.coef_.shape[-1] == 7
    assert not wide.coef_[..., 4:].any()
    assert np.allclose(wide.predict(padded), learner.predict(X))
    if hasattr(wide, "partial_fit") and name != "pocket":
        narrow.partial_fit(X, y)
        wide.partial_fit(padded, y)
        assert np.allclose(narrow.coef_, wide.coef_[..., :4], rtol=0, atol=1e-12)
    assert_same(narrow, wide.widen(4), X) if name == "pocket" else wide.widen(4)
    with pytest.raises(ValueError, match="1 columns are too few"):
        wide.widen(1)
    assert wide.n_features_in_ == 4


def test_what_only_predicts_can_be_widened(tmp_path):
    for name in ("average", "ALMA"):
        learner = fitted(name)
        X, _ = rows_for(learner)
        learner.save(tmp_path / "model", resume=False)
        wide = rosenblatt.load(tmp_path / "model").widen(6)
        assert same(wide.predict(np.hstack([X, np.ones((len(X), 2))])), learner.predict(X))


@pytest.mark.parametrize("name", ["ALMA", "p-norm", "normalised Winnow", "Winnow1", "kernel", "Forgetron", "second order"])
def test_learners_to_whom_the_number_of_columns_matters_refuse(name):
    with pytest.raises(TypeError, match="cannot change its number of columns"):
        fitted(name).widen(9)


def test_a_number_of_columns_is_asked_for():
    for strange in (0, 2.5, True, None):
        with pytest.raises(ValueError, match="features must be a whole number ≥ 1"):
            fitted("last").widen(strange)
    with pytest.raises(NotFittedError):
        Perceptron().widen(3)


def test_a_norm_that_depends_on_the_columns_is_the_one_it_began_with(tmp_path):
    X, y = laws.data(2, 20, 9)
    clf = PNormPerceptron(p="log", max_iter=1).fit(X, y).set_params(fit_intercept=False)
    clf.save(tmp_path / "model")
    assert rosenblatt.load(tmp_path / "model").p_ == clf.p_


class Record(NamedTuple):
    """A row of a history."""

    score: float
    note: str | None = None


def test_a_record_holds_what_its_fields_may():
    assert decode_row([1.5], Record) == Record(1.5)
    assert decode_row([2, "so"], Record) == Record(2, "so")
    for wrong in ([[1.5]], ["1.5"], [None], [1.5, ["so"]]):
        with pytest.raises(DamagedModel, match=r"(score|note) of a record must be a number; it is"):
            decode_row(wrong, Record)
    with pytest.raises(DamagedModel, match="a number is needed, not 'one'"):
        decode_number("one")
    for wrong in ([], [1.5, None, 2], 1.5):
        with pytest.raises(DamagedModel, match="is not a record of score, note"):
            decode_row(wrong, Record)
