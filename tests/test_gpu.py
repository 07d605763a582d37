"""Learning on a GPU, with a card that numpy emulates. The CPU is the judge; tests/test_gpu_card.py asks a real card."""

import os
import pickle
import signal
import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from card_cases import ROUNDED, assert_same_mistakes, assert_same_model, cases, clouds, error_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import rosenblatt
from rosenblatt import MIRA, PAUM, PassiveAggressiveClassifier, Perceptron
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import OrderAhead, Visits
from rosenblatt.errors import (
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    MissingDependency,
    NumericOverflow,
    UnscaledColumns,
    UnsupportedOperation,
)
from rosenblatt.gpu import arrays, trainer
from rosenblatt.gpu.arrays import OnCard, cuda_device, to_host
from rosenblatt.gpu.card import card_number, find_card, use_card, weight_type
from rosenblatt.gpu.emulated import EmulatedCard, EmulatedRun


class WatchedCard(EmulatedCard):
    """An emulated card that counts the rows that come from it, and can be made to call something before an epoch."""

    copied_rows = 0

    def rows_to_host(self, values):
        self.copied_rows += values.shape[0]
        return super().rows_to_host(values)

    def before_epoch(self):
        pass

    def begin(self, task):
        run = WatchedRun(self, task)
        run.card = self
        return run


class WatchedRun(EmulatedRun):
    def epoch(self, order):
        self.card.before_epoch()
        return super().epoch(order)


class CudaArray:
    """An array of a library like CuPy, on the first card."""

    device = "cuda:0"
    requires_grad = False
    number = 0

    def __init__(self, array):
        self.array = np.asarray(array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return 2, self.number

    def __array__(self, *args, **options):
        raise TypeError("an array on a card is not converted implicitly")


class OnSecondCard(CudaArray):
    number = 1


@pytest.fixture(autouse=True)
def card():
    made = WatchedCard(block=4)
    before = use_card(0, made)
    yield made
    use_card(0, before)


# ── The same model ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(cases(), st.integers(1, 9))
def test_the_model_is_that_of_the_cpu_to_the_last_bit(case, block):
    use_card(0, EmulatedCard(block))
    X, y, learner, options = case
    theirs = clone(learner).fit(X, y, **options)
    ours = clone(learner).fit(CudaArray(X), y, **options)
    assert_same_model(ours, theirs)
    assert np.array_equal(ours.predict(CudaArray(X)), theirs.predict(X))
    assert np.array_equal(ours.decision_function(CudaArray(X)), theirs.decision_function(X))
    assert ours.score(CudaArray(X), CudaArray(y)) == theirs.score(X, y)
    again = clone(learner).set_params(device="cuda").fit(X, y, **options)
    assert_same_model(again, theirs)
    use_card(0, EmulatedCard(block, room=0))  # rows are streamed to it
    assert_same_model(clone(again).fit(X, y, **options), theirs)


@settings(max_examples=20)
@given(cases(), st.integers(1, 9), st.data())
def test_a_stream_may_be_cut_anywhere_and_change_the_device(case, block, data):
    use_card(0, EmulatedCard(block))
    X, y, learner, options = case
    learner = clone(learner).set_params(**{"batch": 1} if isinstance(learner, Perceptron) else {})
    classes, weight = np.unique(y), options.get("sample_weight", np.ones(len(y)))
    theirs = clone(learner).partial_fit(X, y, classes, weight)
    ours, start = clone(learner), 0
    while start < len(y):
        end = data.draw(st.integers(start + 1, len(y)))
        wrap = data.draw(st.sampled_from([CudaArray, np.asarray]))
        if weight[start:end].any():
            ours.partial_fit(wrap(X[start:end]), wrap(y[start:end]), classes, wrap(weight[start:end]))
        start = end
    assert_same_model(ours, theirs)


@settings(max_examples=15)
@given(cases(), st.integers(1, 5))
def test_classes_may_arrive(case, block):
    use_card(0, EmulatedCard(block))
    X, y, learner, _ = case
    learner.set_params(unknown_class="grow", class_weight=None)
    theirs = clone(learner).partial_fit(X[:5], y[:5]).partial_fit(X, y)
    ours = clone(learner).partial_fit(CudaArray(X[:5]), y[:5]).partial_fit(CudaArray(X), CudaArray(y))
    assert_same_model(ours, theirs)


@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
def test_classes_are_balanced_as_they_come(multiclass):
    X, y = clouds(4)
    learner = Perceptron(unknown_class="grow", class_weight="balanced", multiclass=multiclass)
    theirs = clone(learner).partial_fit(X[:7], y[:7]).partial_fit(X[7:], y[7:])
    ours = clone(learner).partial_fit(CudaArray(X[:7]), y[:7]).partial_fit(CudaArray(X[7:]), y[7:])
    assert_same_mistakes(ours, theirs, rtol=1e-9)
    learner.set_params(max_iter=3, tol=None)
    assert_same_mistakes(clone(learner).fit(CudaArray(X), y), clone(learner).fit(X, y), rtol=1e-9)


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
@pytest.mark.parametrize(("classes", "block"), [(2, 1), (2, 16), (5, 3), (5, 64)])
@pytest.mark.filterwarnings("ignore:learning_rate=")
def test_steps_that_round_make_the_same_mistakes(name, multiclass, classes, block):
    kind, params = ROUNDED[name]
    if kind is not MIRA:
        params = params | {"multiclass": multiclass}
    use_card(0, EmulatedCard(block))
    X, y = clouds(classes)
    learner = kind(max_iter=4, tol=None, **params)
    assert_same_mistakes(clone(learner).fit(CudaArray(X), y), learner.fit(X, y), rtol=1e-9)


@pytest.mark.parametrize("learner", [Perceptron(), PassiveAggressiveClassifier(average=True)])
@pytest.mark.parametrize("classes", [2, 3])
def test_float32_makes_the_same_mistakes_but_for_rounding(learner, classes):
    X, y = clouds(classes, dtype=np.float32)
    learner.set_params(max_iter=2, tol=None)
    ours, theirs = clone(learner).fit(CudaArray(X), y), clone(learner).fit(X, y)
    assert ours.coef_.dtype == np.float32
    assert_same_mistakes(ours, theirs, rtol=1e-4)


def test_float16_rows_have_float32_weights():
    X, y = clouds(3)
    X = np.round(X).astype(np.float16)
    theirs = Perceptron(max_iter=3, tol=None).fit(X.astype(np.float32), y)
    for ours in (
        Perceptron(max_iter=3, tol=None).fit(CudaArray(X), y),
        Perceptron(max_iter=3, tol=None, device="cuda").fit(X, y),
    ):
        assert_same_model(ours, theirs)
    assert np.array_equal(ours.predict(CudaArray(X)), theirs.predict(X.astype(np.float32)))


def test_whole_numbers_become_float64_as_on_the_cpu():
    X, y = clouds(3)
    X = np.round(X).astype(np.int32)
    ours = Perceptron().fit(CudaArray(X), y)
    assert_same_model(ours, Perceptron().fit(X, y))
    assert ours.coef_.dtype == np.float64


@pytest.mark.parametrize("turn", [lambda X: X[::2, ::2], lambda X: X.T.copy().T, lambda X: X[:, :1], lambda X: X[::-1]])
def test_arrays_in_any_order_of_memory_are_read(turn):
    X, y = clouds(2, rows=40)
    X = turn(np.round(X))
    assert_same_model(Perceptron().fit(CudaArray(X), y[: len(X)]), Perceptron().fit(X, y[: len(X)]))


# ── What comes beside the rows ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wrap", [CudaArray, np.asarray])
@pytest.mark.parametrize("params", [{}, {"multiclass": "ovr", "keep": "average"}, {"batch": 5}])
def test_validation_rows_on_either_side_stop_at_the_same_epoch(wrap, params):
    X, y = clouds(3)
    X, y = np.round(X), np.where(np.arange(len(y)) % 5, y, 0)  # which nothing separates
    learner = Perceptron(n_iter_no_change=2, **params)
    theirs = clone(learner).fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    ours = clone(learner).fit(CudaArray(X[:150]), y[:150], X_val=wrap(X[150:]), y_val=wrap(y[150:]))
    assert_same_model(ours, theirs)
    assert ours.stop_reason_ == "validation_error"
    held_out = clone(learner).set_params(early_stopping=True)
    assert_same_model(clone(held_out).fit(CudaArray(X), y), clone(held_out).fit(X, y))


def test_weights_to_start_from_may_be_on_the_card_too():
    X, y = clouds(3)
    X = np.round(X)
    coef, intercept = np.ones((3, X.shape[1])), np.arange(3.0)
    theirs = Perceptron(max_iter=2).fit(X, y, coef, intercept)
    ours = Perceptron(max_iter=2).fit(CudaArray(X), y, CudaArray(coef), CudaArray(intercept))
    assert_same_model(ours, theirs)
    for model, rows in ((ours, CudaArray(X)), (theirs, X)):
        model.set_params(warm_start=True).fit(rows, y)
    assert_same_model(ours, theirs)


def test_the_average_is_completed_after_a_run_without_mistakes():
    """`keep="auto"` counts further epochs in the average until it, too, is right on every row."""
    rng = np.random.default_rng(5)
    X = rng.integers(-9, 10, (60, 4)).astype(np.float64)
    y = (X @ [3, -2, 1, 0] + 1 > 0).astype(int)
    weight = np.ones(60)
    weight[::7] = 0
    ours = Perceptron().fit(CudaArray(X), y, sample_weight=CudaArray(weight))
    theirs = Perceptron().fit(X, y, sample_weight=weight)
    assert ours.stop_reason_ == "converged"
    assert_same_model(ours, theirs)


@pytest.mark.parametrize("order", ["random", "cyclic"])
def test_a_run_converges_only_when_no_row_is_left_to_learn(order):
    """Rows drawn with replacement may leave one out, so an epoch without updates is not yet the end."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [2.0, -1.0], [-5.0, 4.0]])
    y = np.array([1, 0, 0, 1, 0])
    for seed in range(20):
        learner = Perceptron(order=order, random_state=seed, tol=None, max_iter=40)
        assert_same_model(clone(learner).fit(CudaArray(X), y), clone(learner).fit(X, y))


@pytest.mark.parametrize("params", [{"weight_tol": 1.0}, {"max_seconds": 1e-9}, {"tol": 0.5, "n_iter_no_change": 1}])
def test_the_other_reasons_to_stop_hold(params):
    X, y = clouds(2)
    X = np.round(X)
    ours, theirs = Perceptron(**params).fit(CudaArray(X), y), Perceptron(**params).fit(X, y)
    assert ours.stop_reason_ == theirs.stop_reason_
    assert "max_seconds" in params or ours.n_iter_ == theirs.n_iter_


def test_a_model_is_the_same_wherever_it_learned(tmp_path):
    """It can be saved, loaded, pickled, explained and certified, and goes on learning on the CPU."""
    rng = np.random.default_rng(2)
    X = rng.integers(-9, 10, (50, 4)).astype(np.float64)
    y = np.where(X @ [2, -1, 1, 0] > 0, "yes", "no")
    ours, theirs = Perceptron().fit(CudaArray(X), y), Perceptron().fit(X, y)
    ours.save(tmp_path / "model", resume=True)
    for copy in (rosenblatt.load(tmp_path / "model"), pickle.loads(pickle.dumps(ours))):
        assert np.array_equal(copy.coef_, theirs.coef_)
        assert np.array_equal(copy.predict(CudaArray(X)), theirs.predict(X))
        assert_same_model(copy.partial_fit(X, y), clone(theirs).fit(X, y).partial_fit(X, y))
    assert str(ours.certify(CudaArray(X), y)) == str(theirs.certify(X, y))
    assert ours.explain(CudaArray(X[0])) == ours.explain(CudaArray(X[:1])) == theirs.explain(X[0])
    assert ours.get_params() == theirs.get_params()


def test_models_learn_on_the_cpu_what_they_began_on_a_card_in_another_precision():
    X, y = clouds(3, dtype=np.float32)
    X = np.round(X)
    ours = Perceptron().partial_fit(CudaArray(X), y, classes=[0, 1, 2]).partial_fit(CudaArray(X.astype(np.float64)), y)
    theirs = Perceptron().partial_fit(X, y, classes=[0, 1, 2]).partial_fit(X.astype(np.float64), y)
    assert_same_model(ours, theirs)
    with pytest.raises(UnsupportedOperation, match="weights of float64 cannot learn from rows of less precision on a GPU"):
        ours.partial_fit(CudaArray(X), y)
    assert_same_model(ours, theirs)


def test_pipelines_and_callables_pass_arrays_on():
    X, y = clouds(2)
    pipeline = make_pipeline(FunctionTransformer(), Perceptron()).fit(CudaArray(X), y)
    assert np.array_equal(pipeline.predict(CudaArray(X)), Perceptron().fit(X, y).predict(X))


# ── Where it learns ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_are_taken_without_a_copy_and_stay_on_the_card(card):
    X, y = clouds(3, rows=9000, features=3, dtype=np.float32)
    assert np.shares_memory(card.adopt(CudaArray(X)).values, X)
    model = Perceptron(max_iter=1, tol=None, early_stopping=True).fit(CudaArray(X), y)
    sample = card.copied_rows
    assert 0 < sample <= 2048  # for the warning about columns of different size
    model.partial_fit = model.set_params(early_stopping=False).partial_fit
    model.partial_fit(CudaArray(X), y)
    model.predict(CudaArray(X))
    model.decision_function(CudaArray(X))
    model.score(CudaArray(X), y)
    assert card.copied_rows == sample
    assert card.placed == 0


def test_device_cuda_sends_rows_or_streams_them(card, tmp_path):
    X, y = clouds(3)
    X = np.round(X)
    theirs = Perceptron(max_iter=3, tol=None).fit(X, y)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    learner = Perceptron(max_iter=3, tol=None, device="cuda:0")
    for rows in (X, X.tolist(), np.load(path, mmap_mode="r"), np.asfortranarray(X)):
        assert_same_model(clone(learner).fit(rows, y), theirs)
    assert card.placed == 4 * X.nbytes
    card.room = 100
    assert_same_model(clone(learner).fit(np.load(path, mmap_mode="r"), y), theirs)
    assert card.placed == 4 * X.nbytes
    chunks = clone(learner)
    for start in range(0, len(y), 50):
        chunks.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1, 2])
    assert_same_model(chunks, Perceptron(max_iter=3, tol=None).partial_fit(X, y, classes=[0, 1, 2]))
    numbers = clone(learner)._partial_fit_numbers(X, y, 3)
    assert np.array_equal(numbers.coef_, chunks.coef_)


def test_names_of_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y = clouds(2, features=3)
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = Perceptron(device="cuda").fit(table, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(CudaArray(X))


def test_device_cpu_refuses_arrays_on_a_card():
    X, y = clouds(2)
    model = Perceptron(device="cpu").fit(X, y)
    for call in (
        lambda: model.fit(CudaArray(X), y),
        lambda: model.partial_fit(CudaArray(X), y),
        lambda: model.predict(CudaArray(X)),
        lambda: model.fit(X, CudaArray(y)),
        lambda: model.fit(X, y, sample_weight=CudaArray(np.ones(len(y)))),
    ):
        with pytest.raises(
            InvalidDataType, match=r"on the device cuda:0, but it is needed on the CPU; .*\.get\(\) in CuPy"
        ):
            call()


def test_another_card_than_that_of_the_rows_is_refused():
    X, y = clouds(2)
    with pytest.raises(InvalidDataType, match=r"X is on cuda:0, but device='cuda:1'; copy X to cuda:1 first or|try device"):
        Perceptron(device="cuda:1").fit(CudaArray(X), y)
    second = EmulatedCard()
    before = use_card(1, second)
    try:
        assert_same_model(Perceptron(device="cuda").fit(OnSecondCard(X), OnSecondCard(y)), Perceptron().fit(X, y))
        assert_same_model(Perceptron(device="cuda:1").fit(X, y), Perceptron().fit(X, y))
        assert second.placed == X.nbytes
        model = Perceptron(device="cuda:1").fit(OnSecondCard(X), y)
        assert np.array_equal(model.predict(CudaArray(X)), model.predict(OnSecondCard(X)))  # where rows are
    finally:
        use_card(1, before)


@pytest.mark.parametrize("device", ["gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:0:1", 0, None, ["cuda"]])
def test_an_unknown_device_is_refused(device):
    with pytest.raises(InvalidParameter, match=r"device must be 'auto', 'cpu', 'cuda', or 'cuda:' .*; got"):
        Perceptron(device=device).fit(*clouds(2))


def test_cards_are_found_by_number(card):
    assert find_card("cuda") is find_card("cuda:0") is card
    assert [card_number(name) for name in ("auto", "cpu", "cuda", "cuda:3")] == [None, None, 0, 3]
    with pytest.raises(InvalidParameter, match="device must be"):
        find_card("cpu")


def test_arrays_on_cards_are_recognised():
    class Broken(CudaArray):
        def __dlpack_device__(self):
            raise BufferError("no device")

    class Shared(CudaArray):
        def __dlpack_device__(self):
            return 13, 2

    class Vulkan(CudaArray):
        def __dlpack_device__(self):
            return 7, 0

    X = np.ones((2, 2))
    found = [cuda_device(one) for one in (X, [1], sp.csr_array(X), CudaArray(X), Shared(X), Vulkan(X), Broken(X))]
    assert found == [None, None, None, "cuda:0", "cuda:2", None, None]
    assert to_host(X, "X") is X
    assert [weight_type(X.astype(kind)).name for kind in ("f2", "f4", "f8")] == ["float32", "float32", "float64"]


def test_an_array_that_requires_gradients_is_refused():
    class Tracked(CudaArray):
        requires_grad = True

    X, y = clouds(2)
    with pytest.raises(InvalidDataType, match=r"X is an array of \w+ that requires gradients, .*; use X\.detach\(\)"):
        Perceptron().fit(Tracked(X), y)
    with pytest.raises(InvalidDataType, match=r"y is an array of \w+ that requires gradients, .*; use y\.detach\(\)"):
        Perceptron().fit(X, Tracked(y))


@pytest.mark.parametrize(
    ("learner", "settings"),
    [
        (Perceptron(keep="vote"), {"keep": "average"}),
        (Perceptron(keep="pocket"), {"keep": "average"}),
        (Perceptron(order="most-violated"), {"order": "shuffle"}),
        (PAUM(order="most-violated-normalised"), {"order": "shuffle"}),
        (Perceptron(multiclass="ovo"), {"multiclass": "ovr"}),
        (PassiveAggressiveClassifier(multiclass="ovo"), {"multiclass": "ovr"}),
        (MIRA(), {"multiclass": "ovr"}),
        (Perceptron(max_updates=9), {"max_updates": None}),
    ],
)
def test_what_a_card_cannot_do_says_what_to_set_instead(learner, settings):
    X, y = clouds(3)
    with pytest.raises(UnsupportedOperation, match="learns on the CPU only, not on a GPU; try") as refused:
        learner.fit(CudaArray(X), y)
    assert refused.value.settings == settings
    with pytest.raises(UnsupportedOperation, match="not on a GPU"):
        clone(learner).set_params(device="cuda").fit(X, y)
    assert not learner.__sklearn_is_fitted__()
    learner.set_params(**settings).fit(CudaArray(X), y)


def test_two_classes_are_learned_with_any_multiclass():
    X, y = clouds(2)
    for learner in (Perceptron(multiclass="ovo"), MIRA()):
        assert_same_mistakes(clone(learner).fit(CudaArray(X), y), learner.fit(X, y), rtol=1e-9)


def test_predictions_of_pairs_are_computed_on_a_card_but_not_votes():
    X, y = clouds(4)
    pairs = Perceptron(multiclass="ovo").fit(X, y)
    assert np.array_equal(pairs.predict(CudaArray(X)), pairs.predict(X))
    with pytest.raises(UnsupportedOperation, match="keep='vote' cannot predict rows on a GPU; copy them to the CPU first"):
        Perceptron(keep="vote").fit(X, y).predict(CudaArray(X))


def test_sparse_rows_are_refused():
    X, y = clouds(2)
    for kind in (sp.csr_matrix, sp.coo_array):
        with pytest.raises(UnsupportedOperation, match=r"device='cuda' cannot learn from sparse rows; .* try device='cpu'"):
            Perceptron(device="cuda").fit(kind(X), y)
    with pytest.raises(UnsupportedOperation, match="cannot learn from sparse rows"):
        Perceptron(device="cuda")._partial_fit_numbers(sp.csr_array(X), y, 2)
    assert Perceptron(device="cuda").fit(X, y).predict(sp.csr_array(X)).shape == y.shape


@pytest.mark.parametrize("learner", [rosenblatt.AROW(), rosenblatt.KernelPerceptron(), rosenblatt.DeltaRuleClassifier()])
def test_learners_that_know_no_gpu_say_which_do(learner):
    X, y = clouds(2)
    with pytest.raises(
        InvalidDataType, match=r"on the device cuda:0, .*; Perceptron, .* learn from arrays on a CUDA device"
    ):
        learner.fit(CudaArray(X), y)
    with pytest.raises(TypeError, match=r"it learns on the CPU, and Perceptron, .* learn on a GPU too"):
        type(learner)(device="cuda")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    X, y = clouds(2)
    model = Perceptron().fit(CudaArray(X), y)
    use_card(0, None)
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "rosenblatt.gpu.cuda", raising=False)
    for call in (
        lambda: Perceptron().fit(CudaArray(X), y),
        lambda: Perceptron(device="cuda").fit(X, y),
        lambda: model.predict(CudaArray(X)),
        lambda: model.score(X, CudaArray(y)),
    ):
        with pytest.raises(MissingDependency, match=r"GPUs need the package cupy, .* pip install 'rosenblatt\[cuda\]'"):
            call()
    assert model.score(X, y) > 0.8  # what was learned there needs no card


def test_clusters_learn_on_the_processors_of_their_workers():
    pytest.importorskip("distributed")
    from rosenblatt.cluster.linear_run import check_linear

    check_linear(Perceptron())
    with pytest.raises(InvalidParameter, match="device must be one of 'auto', 'cpu' with shards; got 'cuda'"):
        check_linear(Perceptron(device="cuda"))


# ── Errors, which are those of the CPU ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("params", [{}, {"order": "random"}, {"early_stopping": True}, {"batch": 3}, {"multiclass": "ovr"}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinity_are_refused(value, params, dtype):
    X, y = clouds(3, rows=60, dtype=dtype)
    learner = Perceptron(**params)
    known = clone(learner).set_params(early_stopping=False).partial_fit(X, y, classes=[0, 1, 2])
    broken = X.copy()
    broken[7, 1] = value
    expected = error_of(lambda: clone(learner).fit(broken, y))
    assert expected[0] is InvalidData
    assert error_of(lambda: clone(learner).fit(CudaArray(broken), y)) == expected
    before = known.coef_.copy()
    for method in ("partial_fit", "predict", "decision_function"):
        rest = (y,) if method == "partial_fit" else ()
        ours, theirs = (error_of(partial(getattr(known, method), rows, *rest)) for rows in (CudaArray(broken), broken))
        assert ours == theirs
    assert np.array_equal(known.coef_, before)


@pytest.mark.parametrize("params", [{}, {"batch": 4}, {"order": "cyclic"}, {"multiclass": "ovr"}, {"batch": 60}])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("block", [1, 16])
@pytest.mark.parametrize("scale", [1e200, 1e307])
def test_overflow_raises_an_error_that_names_the_row(params, classes, block, scale):
    use_card(0, EmulatedCard(block))
    X, y = clouds(classes, rows=50)
    X[[31, 33]] = X[31] * scale
    y[[31, 33]] = [0, 1]  # one of them is learned from, and the next to come overflows
    learner = Perceptron(tol=None, max_iter=5, **params)
    expected = error_of(lambda: clone(learner).fit(X, y))
    assert expected[0] is NumericOverflow
    assert error_of(lambda: clone(learner).fit(CudaArray(X), y)) == expected
    model = clone(learner).partial_fit(X[:30], y[:30], classes=np.unique(y))
    theirs, before = pickle.loads(pickle.dumps(model)), model.weights_.copy()
    expected = error_of(lambda: theirs.partial_fit(np.vstack([X] * 3), np.tile(y, 3)))
    assert expected[0] is NumericOverflow
    assert error_of(lambda: model.partial_fit(CudaArray(np.vstack([X] * 3)), np.tile(y, 3))) == expected
    assert all(np.array_equal(now, then) for now, then in zip(model.weights_, before, strict=True))


def test_float32_sums_overflow_where_those_of_the_cpu_are_float64():
    X, y = clouds(2, rows=50, dtype=np.float32)
    X[31] *= np.float32(1e30)
    Perceptron(tol=None, max_iter=5).fit(X, y)
    with pytest.raises(NumericOverflow, match=r"at row 31: .* too large for float32; scale them down, or use float64"):
        Perceptron(tol=None, max_iter=5).fit(CudaArray(X), y)


def test_rows_that_are_too_long_are_named():
    X, y = clouds(2, rows=30)
    X[11] = 1e200
    learner = PassiveAggressiveClassifier()
    expected = error_of(lambda: learner.fit(X, y))
    assert expected[0] is NumericOverflow
    assert expected[2] == 11
    assert error_of(lambda: learner.fit(CudaArray(X), y)) == expected
    X[3, 0] = np.nan
    assert error_of(lambda: learner.fit(CudaArray(X), y))[0] is InvalidData


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((3, 2)), [0, 1]),
        (np.ones((0, 2)), []),
        (np.ones((3, 0)), [0, 1, 0]),
        (np.ones((3, 2)), [1, 1, 1]),
        (np.ones((3, 2)), [0.5, 1.5, 0.1]),
        (np.ones((3, 2)), [[0, 1], [1, 0], [1, 1]]),
        (np.ones((3, 2)), [np.nan, 1, 0]),
        (np.ones((3, 2)), ["a", "b", 3]),
    ],
)
def test_rows_and_labels_that_do_not_fit_are_refused_as_on_the_cpu(X, y):
    ours, theirs = (error_of(partial(Perceptron().fit, rows, y)) for rows in (CudaArray(X), X))
    assert ours == theirs


def test_rows_of_other_shapes_are_refused():
    X, y = clouds(2)
    model = Perceptron().fit(CudaArray(X), y)
    assert error_of(lambda: model.predict(CudaArray(X[:, :3]))) == error_of(lambda: model.predict(X[:, :3]))
    assert error_of(lambda: model.partial_fit(CudaArray(X[:, :3]), y)) == error_of(lambda: model.partial_fit(X[:, :3], y))
    assert error_of(lambda: model.predict(CudaArray(X[:0])))[0] is InvalidData
    with pytest.raises(InvalidData, match=r"X must have two axes, rows and features; it has 1"):
        Perceptron().fit(CudaArray(X[0]), y)
    with pytest.raises(InvalidDataType, match="X must hold numbers that a GPU can learn from; its type is complex128"):
        Perceptron().fit(CudaArray(X.astype(complex)), y)
    with pytest.raises(NotFittedError):
        Perceptron().predict(CudaArray(X))
    with pytest.raises(InvalidData, match=r"y_val must have one label for each of the 240 rows"):
        Perceptron().fit(CudaArray(X), y, X_val=CudaArray(X), y_val=CudaArray(y[:3]))


def test_columns_of_very_different_size_are_warned_of():
    X, y = clouds(2, rows=5000)
    X[:, 2] *= 1000
    with pytest.warns(UnscaledColumns, match="column 2") as ours:
        Perceptron(max_iter=1, tol=None).fit(CudaArray(X), y)
    with pytest.warns(UnscaledColumns) as theirs:
        Perceptron(max_iter=1, tol=None).fit(X, y)
    assert str(ours[0].message) == str(theirs[0].message)
    assert ours[0].filename == theirs[0].filename == __file__


# ── Interruptions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_finishes_the_epoch_and_keeps_the_model(card):
    X, y = clouds(2)
    y[::5] = 0  # nothing separates them
    epochs = []

    def interrupt():
        epochs.append(1)
        if len(epochs) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    card.before_epoch = interrupt
    model = Perceptron(tol=None, max_iter=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(CudaArray(X), y)
    assert (model.n_iter_, model.stop_reason_) == (3, "interrupted")
    epochs.clear()
    streamed = Perceptron().partial_fit(CudaArray(X), y, classes=[0, 1]).partial_fit(CudaArray(X), y)
    with pytest.raises(KeyboardInterrupt):
        streamed.partial_fit(CudaArray(X), y)
    card.before_epoch = lambda: None
    assert streamed.n_seen_ == 3 * len(y)


@pytest.mark.parametrize(
    "failure", [MemoryError("the card is full"), OSError("the card has fallen off"), KeyboardInterrupt()]
)
def test_an_epoch_that_fails_leaves_the_model_as_it_was(card, failure):
    X, y = clouds(2)
    model = Perceptron().partial_fit(CudaArray(X), y, classes=[0, 1])
    before = model.weights_.copy()

    def fail():
        raise failure

    card.before_epoch = fail
    for call in (lambda: model.partial_fit(CudaArray(X), y), lambda: model.fit(CudaArray(X), y)):
        with pytest.raises(type(failure)):
            call()
        assert all(np.array_equal(now, then) for now, then in zip(model.weights_, before, strict=True))


@pytest.mark.parametrize("order", ["shuffle", "random"])
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
def test_orders_that_are_drawn_ahead_are_those_of_the_cpu(monkeypatch, order, bits):
    monkeypatch.setattr(trainer, "MANY_ROWS", 1)
    X, y = clouds(3)
    X = np.round(X)
    here, there = (np.random.Generator(bits(3)) for _ in range(2))
    ours = Perceptron(order=order, max_iter=4, tol=None, random_state=there).fit(CudaArray(X), y)
    assert_same_model(ours, Perceptron(order=order, max_iter=4, tol=None, random_state=here).fit(X, y))
    assert there.random() == here.random()  # the source has gone as far
    X[[7, 9]] = X[7] * 1e300
    y[[7, 9]] = [0, 1]
    learner = Perceptron(order=order, max_iter=9, tol=None)
    assert error_of(lambda: learner.fit(CudaArray(X), y)) == error_of(lambda: learner.fit(X, y))


@pytest.mark.parametrize("order", ["shuffle", "random", "cyclic"])
def test_a_generator_that_others_draw_from_gives_the_same_orders(order):
    plain = Visits(np.arange(50), order, np.random.default_rng(4))
    ahead = plain._replace(rng=np.random.default_rng(4), ahead=OrderAhead())
    for epoch in range(6):
        assert np.array_equal(ahead.epoch(), plain.epoch())
        if epoch == 3:
            assert ahead.rng.random() == plain.rng.random()


# ── The parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_on_a_card_are_a_matrix(monkeypatch):
    monkeypatch.setattr(arrays, "MOST_NUMBERS", 12)
    X, _ = clouds(2, rows=11, features=3)
    rows = OnCard(find_card("cuda"), find_card("cuda").adopt(CudaArray(X)))
    some = rows[np.array([9, 2, 2, 0, 7])]
    assert (rows.shape, len(rows), some.shape, some[1:3].shape, rows[2:9][1:].shape) == (
        (11, 3),
        11,
        (5, 3),
        (2, 3),
        (6, 3),
    )
    coef, intercept = np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0])
    for part, numpy in ((rows, X), (some, X[[9, 2, 2, 0, 7]]), (some[1:3], X[[2, 2]]), (rows[:0], X[:0])):
        assert np.array_equal(part.to_host(), numpy)
        np.testing.assert_allclose(part.scores(coef, intercept), numpy @ coef.T + intercept)
        assert part.all_finite()
        np.testing.assert_allclose(part.lengths(2.0), (numpy**2).sum(axis=1) + 4)
        assert part.largest() == np.abs(numpy).max(initial=0.0)
        assert next(part.pieces()).shape[0] == min(len(numpy), 4 if part.chosen is not None else 12)


def test_scores_of_many_classes_are_copied_in_pieces(monkeypatch, card):
    X, y = clouds(5)
    model = Perceptron().fit(X, y)
    sizes = []
    scores = card.scores
    card.scores = lambda values, *weights: (sizes.append(values.shape[0]), scores(values, *weights))[1]
    monkeypatch.setattr(arrays, "MOST_NUMBERS", 60)
    assert np.array_equal(model.predict(CudaArray(X)), model.predict(X))
    assert sizes == [12] * (len(y) // 12)
    sizes.clear()
    some = OnCard(card, card.adopt(CudaArray(X)))[np.arange(0, len(y), 2)]  # of which each part is a copy
    assert np.array_equal(model.decision_function(some), model.decision_function(X[::2]))
    assert sizes == [10] * (len(y) // 20)


def test_a_limit_of_updates_is_refused(card):
    X, y = clouds(2)
    seen = []
    card.before_epoch = lambda: seen.append(1)
    learner = Perceptron(max_iter=1, tol=None)
    rows = OnCard(card, card.adopt(CudaArray(X)))
    plan = learner._plan()
    model = learner._model_to_fit(plan, rows, X.shape[1], 2, None)
    examples = rosenblatt.engine.rows.Examples(rows, y.astype(np.int64), None, 1.0)
    made = learner._make_trainer(plan, model, rows, examples, plan.visits(np.arange(len(y)), rows, plan.rng()))
    with pytest.raises(ValueError, match="no limit of updates"):
        made.epoch(np.arange(5), 3)
    assert made.epoch(np.arange(5), NO_LIMIT)[0].position == 5
    assert seen == [1]
    assert "emulated" in card.describe().name
