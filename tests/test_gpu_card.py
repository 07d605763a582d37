"""Learning on a real GPU: the model is the one that the CPU learns. Skipped where there is no GPU or no CuPy."""

import os
import signal
import threading
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from card_cases import ROUNDED, assert_same_mistakes, assert_same_model, cases, clouds, error_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from rosenblatt import PAUM, PassiveAggressiveClassifier, Perceptron, load, rules
from rosenblatt.errors import GpuUnavailable, InvalidData, InvalidDataType, NotEnoughGpuMemory, NumericOverflow
from rosenblatt.gpu.arrays import OnCard
from rosenblatt.gpu.card import find_card


def why_there_is_no_card():
    """Why this machine cannot run these tests; empty where it can."""
    try:
        import cupy

        return "" if cupy.cuda.runtime.getDeviceCount() else "there is no GPU"
    except ImportError:
        return "CuPy is not installed"
    except Exception as error:  # of the driver, whatever it is
        return f"the GPU cannot be used: {error}"


MISSING = why_there_is_no_card()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


def on_cupy(array):
    """An array of CuPy."""
    import cupy

    return cupy.asarray(array)


def on_torch(array):
    """A tensor of PyTorch on the GPU."""
    torch = pytest.importorskip("torch")
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


WRAPPERS = [pytest.param(on_cupy, id="cupy"), pytest.param(on_torch, id="torch")]


def whole_numbers(rows, features, classes, dtype=np.float32, seed=0):
    """Rows of small whole numbers, with labels of which four in five follow a plan."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (rows, features)).astype(dtype)
    y = (X @ rng.integers(-3, 4, (features, classes)).astype(dtype)).argmax(axis=1)
    y = np.where(rng.random(rows) < 0.2, rng.integers(0, classes, rows), y)
    y[: min(classes, rows)] = np.arange(min(classes, rows))
    return X, y


# ── The same bits on whole numbers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wrap", WRAPPERS)
@settings(max_examples=30)
@given(case=cases())
def test_the_model_is_that_of_the_cpu_to_the_last_bit(wrap, case):
    X, y, learner, options = case
    ours = clone(learner).fit(wrap(X), y, **options)
    theirs = clone(learner).fit(X, y, **options)
    assert_same_model(ours, theirs)
    assert np.array_equal(ours.predict(wrap(X)), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(wrap(X)), theirs.decision_function(X), rtol=1e-5, atol=1e-5)
    assert ours.score(wrap(X), wrap(y)) == theirs.score(X, y)


@settings(max_examples=20)
@given(case=cases(), data=st.data())
def test_a_stream_may_be_cut_anywhere_and_change_the_device(case, data):
    X, y, learner, _ = case
    learner = clone(learner).set_params(**{"batch": 1} if isinstance(learner, Perceptron) else {})
    theirs = clone(learner).partial_fit(X, y, np.unique(y))
    ours, start = clone(learner), 0
    while start < len(y):
        end = data.draw(st.integers(start + 1, len(y)))
        wrap = data.draw(st.sampled_from([on_cupy, np.asarray]))
        ours.partial_fit(wrap(X[start:end]), wrap(y[start:end]), np.unique(y))
        start = end
    assert_same_model(ours, theirs)


# Around the sizes of blocks (8 to 128 rows), panels (256), clusters (16 parts of a row), chunks (16,384 and 65,536 rows).
SIZES = [
    (2, 1), (3, 2), (127, 5), (128, 33), (129, 64), (255, 3), (257, 17), (1000, 100), (900, 784), (700, 1023), (700, 1024),
    (600, 1025), (300, 5000), (16_385, 7), (66_000, 9),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "features"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("params", [{"keep": "last"}, {"keep": "average", "order": "cyclic", "margin": 2.0}])
def test_two_classes_of_any_size(rows, features, dtype, params):
    X, y = whole_numbers(rows, features, 2, dtype)
    learner = Perceptron(max_iter=2, tol=None, **params)
    assert_same_model(clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y))


@pytest.mark.parametrize(("rows", "features"), [size for size in SIZES if size[0] > 100])
@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("keep", ["last", "average"])
def test_ten_classes_of_any_size(rows, features, multiclass, keep):
    X, y = whole_numbers(rows, features, 10)
    learner = Perceptron(max_iter=2, tol=None, multiclass=multiclass, keep=keep)
    assert_same_model(clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y))


@pytest.mark.parametrize("classes", [3, 17, 33, 100, 300, 1000])
@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_classes(classes, multiclass, dtype):
    X, y = whole_numbers(max(3 * classes, 500), 40, classes, dtype)
    learner = Perceptron(max_iter=2, tol=None, multiclass=multiclass)
    ours, theirs = clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y)
    assert_same_model(ours, theirs)
    assert np.array_equal(ours.predict(on_cupy(X)), theirs.predict(X))


@pytest.mark.parametrize("batch", [2, 3, 100, 128, 257, 5000, "full"])
@pytest.mark.parametrize("classes", [2, 6])
@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("keep", ["last", "average"])
def test_batches_of_any_size(batch, classes, multiclass, keep):
    X, y = whole_numbers(9001, 20, classes, np.float64)
    learner = Perceptron(max_iter=2, tol=None, multiclass=multiclass, batch=batch, keep=keep)
    assert_same_model(clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y))
    learner.set_params(reduction="mean", eta0=float(len(y)))
    ours, theirs = clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y)
    if batch == "full":  # the first mean, of all rows, is a whole number
        assert_same_mistakes(ours, theirs, rtol=1e-9)
    else:  # means round, and a margin of zero becomes one or the other
        assert abs(ours.n_mistakes_ - theirs.n_mistakes_) <= 0.01 * theirs.n_seen_


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("classes", [2, 5])
def test_half_precision_rows_have_float32_weights(kind, classes):
    torch = pytest.importorskip("torch")
    X, y = whole_numbers(1500, 50, classes)
    tensor = torch.from_numpy(X).cuda().to(getattr(torch, kind))
    learner = Perceptron(max_iter=2, tol=None)
    ours, theirs = clone(learner).fit(tensor, torch.from_numpy(y).cuda()), clone(learner).fit(X, y)
    assert_same_model(ours, theirs)
    assert np.array_equal(ours.predict(tensor), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(tensor), theirs.decision_function(X), rtol=1e-5, atol=1e-3)
    if kind == "float16":
        assert_same_model(clone(learner).fit(on_cupy(X.astype(np.float16)), y), theirs)
        assert_same_model(clone(learner).set_params(device="cuda").fit(X.astype(np.float16), y), theirs)


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize(
    "turn",
    [
        lambda X: X[::2],
        lambda X: X[:, 1::2],
        lambda X: X[3:, 2:5],
        lambda X: X.T,
        lambda X: X[:, :1],
        lambda X: X[:1].T,
    ],
)
def test_arrays_in_any_order_of_memory_are_read(wrap, turn):
    X, _ = whole_numbers(200, 200, 2)
    here, there = turn(X), turn(wrap(X))
    y = np.arange(len(here)) % 3 == 0
    assert_same_model(Perceptron(max_iter=3).fit(there, y), Perceptron(max_iter=3).fit(np.ascontiguousarray(here), y))


def test_backward_and_whole_number_arrays_are_read():
    X, y = whole_numbers(300, 10, 3, np.float64)
    assert_same_model(Perceptron().fit(on_cupy(X)[::-1, ::-1], y), Perceptron().fit(X[::-1, ::-1], y))
    assert_same_model(Perceptron().fit(on_cupy(X.astype(np.int8)), y), Perceptron().fit(X, y))
    assert_same_model(Perceptron().fit(on_cupy(X > 0), y), Perceptron().fit(X > 0, y))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
def test_weights_of_rows_and_classes(weighted, multiclass):
    X, y = whole_numbers(2000, 12, 4)
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(np.float64) if weighted else None
    learner = Perceptron(max_iter=3, tol=None, multiclass=multiclass, class_weight={0: 2.0, 1: 0.0, 3: 5.0})
    ours = clone(learner).fit(on_cupy(X), on_cupy(y), sample_weight=None if weight is None else on_cupy(weight))
    assert_same_model(ours, clone(learner).fit(X, y, sample_weight=weight))


@pytest.mark.parametrize("learner", [PAUM(positive_margin=5.0, negative_margin=-2.0), Perceptron(margin=7.0, eta0=2.0)])
@pytest.mark.parametrize("classes", [2, 20])
def test_other_rules_to_the_last_bit(learner, classes):
    X, y = whole_numbers(3000, 30, classes)
    learner = clone(learner).set_params(max_iter=2, tol=None)
    assert_same_model(clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y))


class Forgiving(NamedTuple):
    """A user's own rule: longer steps for larger mistakes, in whole numbers."""

    margin: float
    most: float
    uses_length = False

    @property
    def largest_step(self):
        return self.most


@rules.step.register
def _(rule: Forgiving, m, length, k, positive):
    if m > rule.margin:
        return 0.0
    longer = 2.0 if m < -10.0 and positive else 1.0
    return min(rule.most, longer)


class OwnRule(Perceptron):
    def _rule(self):
        return Forgiving(1.0, 2.0)


@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("classes", [2, 5])
def test_a_rule_of_a_user_needs_no_second_version(multiclass, classes):
    X, y = whole_numbers(2000, 20, classes)
    learner = OwnRule(multiclass=multiclass, max_iter=2, tol=None)
    assert_same_model(clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y))


# ── Numbers that round ───────────────────────────────────────────────────────────────────────────────────────────────────


# Without a margin a step of MIRA ends at a margin of 0, which is its threshold: whether it moves again is up to rounding.
@pytest.mark.parametrize("name", [name for name in ROUNDED if name != "MIRA without a margin"])
@pytest.mark.parametrize("multiclass", ["ovr", "joint"])
@pytest.mark.parametrize("classes", [2, 7])
@pytest.mark.filterwarnings("ignore:learning_rate=")
def test_steps_that_round_make_the_same_mistakes(name, multiclass, classes):
    kind, params = ROUNDED[name]
    if not name.startswith("MIRA"):
        params = params | {"multiclass": multiclass}
    X, y = clouds(classes, rows=1500, features=40)
    learner = kind(max_iter=3, tol=None, **params)
    assert_same_mistakes(clone(learner).fit(on_cupy(X), y), learner.fit(X, y), rtol=1e-7)


@pytest.mark.parametrize("learner", [Perceptron(), PassiveAggressiveClassifier(average=True, C=0.1)])
@pytest.mark.parametrize("classes", [2, 7])
def test_float32_makes_the_mistakes_of_the_cpu_but_for_margins_within_rounding(learner, classes):
    X, y = clouds(classes, rows=20_000, features=100, dtype=np.float32)
    learner.set_params(max_iter=1, tol=None)
    ours, theirs = clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y)
    assert abs(ours.n_mistakes_ - theirs.n_mistakes_) <= 0.002 * len(y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


@pytest.mark.parametrize("params", [{}, {"multiclass": "ovr"}, {"batch": 50}, {"batch": 50, "reduction": "mean"}])
@pytest.mark.parametrize("classes", [2, 30])
def test_the_same_seed_gives_the_same_bytes(params, classes):
    X, y = clouds(classes, rows=10_000, features=70, dtype=np.float32)
    models = [Perceptron(max_iter=2, tol=None, **params).fit(on_cupy(X), y) for _ in range(3)]
    for model in models[1:]:
        assert model.weights_.w.tobytes() == models[0].weights_.w.tobytes()
        assert model.weights_.drift.tobytes() == models[0].weights_.drift.tobytes()
        assert model.n_mistakes_ == models[0].n_mistakes_


# ── Where rows lie ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("params", [{}, {"multiclass": "ovr", "order": "cyclic"}, {"batch": 1000}])
def test_rows_in_the_memory_of_the_machine_are_sent_or_streamed(dtype, params, monkeypatch, tmp_path):
    X, y = whole_numbers(40_000, 30, 4, dtype)
    theirs = Perceptron(max_iter=2, tol=None, **params).fit(X.astype(np.promote_types(dtype, np.float32)), y)
    learner = Perceptron(max_iter=2, tol=None, device="cuda", **params)
    assert_same_model(clone(learner).fit(X, y), theirs)
    np.save(tmp_path / "rows.npy", X)
    assert_same_model(clone(learner).fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), y), theirs)
    monkeypatch.setattr(type(find_card("cuda")), "place", lambda self, X: X)
    assert_same_model(clone(learner).fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), y), theirs)
    assert_same_model(clone(learner).set_params(max_iter=2).fit(X, y), theirs)


def test_torch_tensors_of_the_cpu_are_sent_too():
    torch = pytest.importorskip("torch")
    X, y = whole_numbers(500, 10, 3)
    theirs = Perceptron().fit(X, y)
    assert_same_model(Perceptron(device="cuda").fit(torch.from_numpy(X), torch.from_numpy(y)), theirs)
    assert_same_model(Perceptron(device="cuda:0").fit(torch.from_numpy(X).pin_memory(), y), theirs)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_rows_are_taken_without_a_copy_and_not_written_to(wrap):
    X, y = whole_numbers(1000, 10, 2)
    there = wrap(X)
    card = find_card("cuda")
    pointer = there.data_ptr() if hasattr(there, "data_ptr") else there.data.ptr
    assert card.adopt(there).array.data.ptr == pointer
    model = Perceptron(max_iter=2).fit(there, y)
    model.predict(there)
    assert np.array_equal(card.array_to_host(there), X)


def test_arrays_that_are_still_being_computed_are_waited_for():
    import cupy

    X, y = whole_numbers(100_000, 64, 2)
    theirs = Perceptron(max_iter=1, tol=None).fit(X, y)
    source = cupy.asarray(X)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(30):
            late = source * 2  # keeps the stream busy
        late = late / 2
        ours = Perceptron(max_iter=1, tol=None).fit(late, y)
    assert_same_model(ours, theirs)
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X).cuda()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        for _ in range(30):
            late = tensor * 2
        late = late / 2
        ours = Perceptron(max_iter=1, tol=None).fit(late, y)
    assert_same_model(ours, theirs)


def test_arrays_of_several_libraries_may_be_mixed():
    X, y = whole_numbers(800, 10, 3)
    theirs = Perceptron(n_iter_no_change=2).fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    for rows, labels, held in ((on_cupy, np.asarray, on_torch), (on_torch, on_cupy, np.asarray)):
        ours = Perceptron(n_iter_no_change=2).fit(
            rows(X[:600]), labels(y[:600]), X_val=held(X[600:]), y_val=labels(y[600:])
        )
        assert_same_model(ours, theirs)


def test_a_tensor_that_requires_gradients_is_refused():
    X, y = whole_numbers(50, 3, 2)
    with pytest.raises(InvalidDataType, match=r"X is an array of torch that requires gradients, .*; use X\.detach\(\)"):
        Perceptron().fit(on_torch(X).requires_grad_(), y)


def test_a_card_that_is_not_there_is_named():
    X, y = whole_numbers(50, 3, 2)
    with pytest.raises(GpuUnavailable, match=r"cuda:99 .*device='cpu'"):
        Perceptron(device="cuda:99").fit(X, y)


def test_a_card_describes_itself():
    facts = find_card("cuda").describe()
    assert facts.name
    assert 0 < facts.free_bytes <= facts.total_bytes
    assert float(facts.capability) >= 5
    assert facts.library.startswith("CuPy ")


# ── All that surrounds a run ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "params",
    [
        {"early_stopping": True},
        {"early_stopping": True, "multiclass": "ovr", "keep": "average"},
        {"order": "random", "max_iter": 5},
        {"weight_tol": 50.0},
        {"fit_intercept": False},
        {"intercept_scaling": 4.0},
    ],
)
def test_settings_of_a_run(params):
    X, y = whole_numbers(3000, 15, 3)
    learner = Perceptron(**{"max_iter": 20} | params)
    assert_same_model(clone(learner).fit(on_cupy(X), y), clone(learner).fit(X, y))


def test_a_run_that_converges_completes_its_average():
    rng = np.random.default_rng(5)
    X = rng.integers(-9, 10, (2000, 4)).astype(np.float32)
    y = (X @ [3, -2, 1, 0] + 1 > 0).astype(int)
    ours, theirs = Perceptron(max_iter=5000).fit(on_cupy(X), y), Perceptron(max_iter=5000).fit(X, y)
    assert ours.stop_reason_ == "converged"
    assert_same_model(ours, theirs)
    assert ours.score(on_cupy(X), y) == 1.0


def test_weights_to_start_from_and_warm_starts():
    X, y = whole_numbers(1000, 8, 3)
    coef, intercept = np.ones((3, 8), np.float32), np.arange(3, dtype=np.float32)
    ours = Perceptron(max_iter=2).fit(on_cupy(X), y, on_cupy(coef), on_cupy(intercept))
    theirs = Perceptron(max_iter=2).fit(X, y, coef, intercept)
    assert_same_model(ours, theirs)
    for model, rows in ((ours, on_cupy(X)), (theirs, X)):
        model.set_params(warm_start=True).fit(rows, y)
    assert_same_model(ours, theirs)


def test_classes_may_arrive():
    X, y = whole_numbers(600, 8, 5)
    ours, theirs = Perceptron(unknown_class="grow"), Perceptron(unknown_class="grow")
    for start in range(0, 600, 100):
        ours.partial_fit(on_cupy(X[start : start + 100]), y[start : start + 100])
        theirs.partial_fit(X[start : start + 100], y[start : start + 100])
    assert_same_model(ours, theirs)


def test_a_model_is_an_ordinary_one(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.integers(-9, 10, (50, 4)).astype(np.float64)
    y = np.where(X @ [2, -1, 1, 0] > 0, "yes", "no")
    ours, theirs = Perceptron().fit(on_cupy(X), y), Perceptron().fit(X, y)
    ours.save(tmp_path / "model", resume=True)
    assert_same_model(load(tmp_path / "model").partial_fit(X, y), clone(theirs).fit(X, y).partial_fit(X, y))
    assert str(ours.certify(on_cupy(X), y)) == str(theirs.certify(X, y))
    assert ours.explain(on_cupy(X[0])) == theirs.explain(X[0])


def test_rows_on_a_card_are_a_matrix():
    X, _ = clouds(2, rows=500, features=7)
    card = find_card("cuda")
    rows, chosen = OnCard(card, card.adopt(on_cupy(X))), np.array([9, 2, 2, 0, 499])
    coef, intercept = np.random.default_rng(0).standard_normal((3, 7)), np.arange(3.0)
    for part, there in ((rows, X), (rows[chosen], X[chosen]), (rows[10:20], X[10:20]), (rows[:0], X[:0])):
        assert np.array_equal(part.to_host(), there)
        np.testing.assert_allclose(part.scores(coef, intercept), there @ coef.T + intercept, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(part.lengths(2.0), (there**2).sum(axis=1) + 4, rtol=1e-12)
        assert part.largest() == np.abs(there).max(initial=0.0)
        assert part.all_finite()
    for value in (np.nan, np.inf):
        X[33, 3] = value
        broken = OnCard(card, card.adopt(on_cupy(X)))
        assert not broken.all_finite()
        assert not np.isfinite(broken.largest())


# ── Errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "params", [{}, {"order": "random"}, {"batch": 30}, {"multiclass": "ovr"}, {"early_stopping": True}]
)
@pytest.mark.parametrize("classes", [2, 4])
def test_nan_and_infinity_are_refused_as_on_the_cpu(value, params, classes):
    X, y = clouds(classes, rows=700)
    learner = Perceptron(**params)
    known = Perceptron().fit(X, y)
    X[301, 2] = value
    for call in (clone(learner).fit, clone(learner).set_params(early_stopping=False, unknown_class="grow").partial_fit):
        assert error_of(partial(call, on_cupy(X), y)) == error_of(partial(call, X, y))
    assert error_of(lambda: known.predict(on_cupy(X))) == error_of(lambda: known.predict(X))


@pytest.mark.parametrize("params", [{}, {"batch": 100}, {"multiclass": "ovr"}])
@pytest.mark.parametrize("classes", [2, 4])
def test_overflow_raises_an_error_that_names_the_row(params, classes):
    X, y = clouds(classes, rows=900)
    X[[431, 433]] = X[431] * 1e200
    y[[431, 433]] = [0, 1]
    learner = Perceptron(tol=None, max_iter=5, **params)
    kind, _, row = error_of(lambda: clone(learner).fit(on_cupy(X), y))
    assert kind is NumericOverflow
    assert row in (431, 433)
    model = clone(learner).partial_fit(on_cupy(X[:400]), y[:400], classes=np.unique(y))
    before = model.weights_.copy()
    kind, _, row = error_of(lambda: model.partial_fit(on_cupy(np.vstack([X, X])), np.tile(y, 2)))
    assert kind is NumericOverflow
    assert row % 900 in (431, 433)
    assert all(np.array_equal(now, then) for now, then in zip(model.weights_, before, strict=True))


def test_rows_that_are_too_long_are_named():
    X, y = clouds(2, rows=300)
    X[211] = 1e200
    learner = PassiveAggressiveClassifier()
    assert error_of(lambda: learner.fit(on_cupy(X), y)) == error_of(lambda: learner.fit(X, y))


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_rows_of_wrong_shapes_and_types_are_refused(wrap):
    X, y = whole_numbers(60, 3, 2)
    model = Perceptron().fit(wrap(X), y)
    assert error_of(lambda: model.predict(wrap(X[:, :2]))) == error_of(lambda: model.predict(X[:, :2]))
    assert error_of(lambda: Perceptron().fit(wrap(X[:0]), y[:0])) == error_of(lambda: Perceptron().fit(X[:0], y[:0]))
    assert error_of(lambda: Perceptron().fit(wrap(X), y[:-1])) == error_of(lambda: Perceptron().fit(X, y[:-1]))
    with pytest.raises(InvalidData, match="X must have two axes, rows and features; it has 1"):
        Perceptron().fit(wrap(X[0]), y)
    with pytest.raises(InvalidDataType):
        Perceptron().fit(wrap(X.astype(np.complex64)), y)


def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    X, y = whole_numbers(2000, 100, 3)
    model = Perceptron().fit(X, y)
    before = model.coef_.copy()
    there = on_cupy(X)
    monkeypatch.setattr(type(find_card("cuda")), "free_bytes", lambda self: 1000)
    with pytest.raises(NotEnoughGpuMemory, match="are missing") as refused:
        model.fit(there, y)
    assert refused.value.free <= 1000 < refused.value.needed
    assert np.array_equal(model.coef_, before)


def test_many_runs_take_no_memory_for_good():
    import cupy

    X, y = whole_numbers(50_000, 100, 3)
    there = on_cupy(X)
    taken = []
    for _ in range(6):
        Perceptron(max_iter=1, tol=None).fit(there, y).predict(there)
        taken.append(cupy.get_default_memory_pool().used_bytes())
    assert taken[-1] <= taken[1] + (1 << 20)


def test_ctrl_c_ends_a_run_after_its_epoch():
    X, y = clouds(2, rows=20_000, features=50, dtype=np.float32)
    y[::5] = 0  # nothing separates them
    model = Perceptron(tol=None, max_iter=100_000)
    there = on_cupy(X)
    Perceptron(tol=None, max_iter=1).fit(there, y)  # compiles
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(there, y)
    timer.join()
    assert model.stop_reason_ == "interrupted"
    assert 1 <= model.n_iter_ < 100_000
    assert model.predict(there).shape == (20_000,)
