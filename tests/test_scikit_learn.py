"""The estimator is a scikit-learn classifier, and its weights are scikit-learn's where both run the same algorithm."""

import gc
import importlib
import inspect
import pickle
import pydoc
import re
from contextlib import suppress
from functools import partial
from typing import Literal, get_args, get_origin, get_type_hints

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from sklearn import linear_model
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import rosenblatt
from rosenblatt import Perceptron
from rosenblatt.engine.rows import as_rows
from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, UnknownParameter, UnsupportedOperation
from rosenblatt.estimators.parameters import WORDS, unknown_parameter
from rosenblatt.estimators.plan import Plan
from rosenblatt.testing.laws import data, unsorted_csr, with_int64_indices

WEIGHTS_ARE_RATES = (
    "a weight multiplies the rate of an update; two visits of a row are two chances of a mistake, which is another thing. "
    "scikit-learn declares the same for its own Perceptron."
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_RATES,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_RATES,
}


@parametrize_with_checks(
    [Perceptron(max_iter=20), Perceptron(multiclass="ovr", max_iter=20)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


ESTIMATORS = [
    kind
    for kind in map(partial(getattr, rosenblatt), rosenblatt.__all__)
    if isinstance(kind, type) and hasattr(kind, "fit")
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_is_in_the_signature_and_documented_once_with_its_default(kind):
    signature = inspect.signature(kind)
    defaults = {name: each.default for name, each in signature.parameters.items()}
    assert [name for name, each in signature.parameters.items() if each.kind is not each.KEYWORD_ONLY] in ([], ["kernel"])
    section = kind.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0] + "\n"
    shown = re.findall(r"^(\w+) : .+, default=(.+)\n    \S", section, flags=re.MULTILINE)
    assert [(name, str(default)) for name, default in defaults.items()] == [(name, text.strip('"')) for name, text in shown]
    assert all(re.fullmatch(r"\w+ : .+|    .+", line) for line in section.splitlines())
    assert kind().get_params() == defaults


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_class_shows_the_defaults_and_the_signature_the_words_that_are_allowed(kind):
    shown = pydoc.plain(pydoc.render_doc(kind))
    for name, each in inspect.signature(kind).parameters.items():
        assert getattr(kind, name) == each.default
        words = getattr(kind._allowed[name], "words", ())
        literals = [part for part in (each.annotation, *get_args(each.annotation)) if get_origin(part) is Literal]
        assert [get_args(part) for part in literals] == ([words] if words else [])
        assert not isinstance(each.annotation, str)
        assert not words or str not in (each.annotation, *get_args(each.annotation))
        assert f"\n |  {name} = {each.default!r}" in shown
    assert get_type_hints(kind.__init__).keys() >= inspect.signature(kind).parameters.keys()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_are_cloned_pickled_set_and_shown(kind):
    estimator = kind(verbose=3)
    for twin in (clone(estimator), pickle.loads(pickle.dumps(estimator)), eval(repr(estimator), {kind.__name__: kind})):
        assert type(twin) is kind
        assert twin.get_params() == estimator.get_params()
    assert repr(estimator) == f"{kind.__name__}(verbose=3)"
    assert estimator.set_params(verbose=0).verbose == 0
    assert estimator != kind()
    assert hash(estimator) != hash(kind())
    refusal = f"{kind.__name__} has no parameter 'verbosity'; did you mean 'verbose'"
    with pytest.raises(TypeError, match=refusal):
        kind(verbosity=1)
    with pytest.raises(ValueError, match=refusal):
        estimator.set_params(verbosity=1)
    assert estimator.get_params() == kind().get_params()


@pytest.mark.parametrize(
    ("kind", "word", "value", "settings"),
    [
        (Perceptron, "shuffle", False, {"order": "cyclic"}),
        (Perceptron, "average", True, {"keep": "average"}),
        (Perceptron, "loss", "hinge", {"margin": 1.0}),
        (Perceptron, "n_iter", 7, {"max_iter": 7}),
        (Perceptron, "batch_size", 32, {"batch": 32}),
        (Perceptron, "power_t", 0.5, {"learning_rate": "invsqrt"}),
        (Perceptron, "penalty", "l2", {"keep": "average"}),
        (Perceptron, "multi_class", "multinomial", {"multiclass": "joint"}),
        (rosenblatt.PassiveAggressiveClassifier, "order", "cyclic", {"shuffle": False}),
        (rosenblatt.PassiveAggressiveClassifier, "keep", "average", {"average": True}),
        (rosenblatt.PassiveAggressiveClassifier, "alpha", 1e-4, {"average": True}),
        (rosenblatt.PassiveAggressiveClassifier, "eta0", 1.0, {}),
        (rosenblatt.SigmaPerceptron, "shuffle", True, {}),
        (rosenblatt.Forgetron, "early_stopping", True, {}),
        (rosenblatt.ALMA, "C", 1.0, {}),
    ],
)
def test_words_of_scikit_learn_are_answered_with_ours(kind, word, value, settings):
    for refused in (lambda: kind(**{word: value}), lambda: kind().set_params(**{word: value})):
        with pytest.raises(UnknownParameter, match=f"{kind.__name__} has no parameter '{word}'; ") as error:
            refused()
        assert error.value.settings == settings
        assert error.value.hint or settings
        kind(**settings)  # the advice can be followed


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_word_of_scikit_learns_linear_learners_has_an_answer(kind):
    theirs = (linear_model.Perceptron, linear_model.SGDClassifier, linear_model.SGDRegressor, LinearSVC)
    known = kind().get_params()
    for word in {word for each in theirs for word in each().get_params()} - set(known):
        error = unknown_parameter(kind.__name__, word, "any", known)
        assert word in WORDS
        assert error.hint or error.settings


@pytest.mark.parametrize(
    ("name", "word", "ours"),
    [("learning_rate", "invscaling", "invsqrt"), ("multiclass", "multinomial", "joint"), ("order", "sequential", "cyclic")],
)
def test_values_of_scikit_learn_are_answered_with_ours(name, word, ours):
    X, y = blobs(2)
    with pytest.raises(InvalidParameter, match=f"{name} must be one of .*; got '{word}'; try {name}='{ours}'"):
        Perceptron(**{name: word}).fit(X, y)


def test_a_search_over_a_word_we_do_not_have_says_what_to_write():
    X, y = blobs(2)
    search = GridSearchCV(make_pipeline(StandardScaler(), Perceptron()), {"perceptron__shuffle": [True, False]}, cv=2)
    with pytest.raises(ValueError, match="Perceptron has no parameter 'shuffle'; try order='shuffle'"):
        search.fit(X, y)


def read_only(*arrays):
    copies = tuple(array.copy() for array in arrays)
    for array in copies:
        for part in (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,):
            part.flags.writeable = False
    return copies


def compiled():
    """How many kernels have been compiled, or loaded from the cache, for how many types of arguments."""
    # by type, not by isinstance, which asks a weak proxy of another test for an object that may be gone
    return sum(len(each.signatures) for each in gc.get_objects() if issubclass(type(each), Dispatcher))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_nothing_need_be_writable_and_nothing_is_compiled_for_it(kind, tmp_path):
    X, y = data(3)
    X = (X > 0) * 1.0  # as Winnow wants it
    estimator = kind(**{"max_iter": 3} if "max_iter" in kind().get_params() else {})
    if "eta0" in estimator.get_params() and "rate_" in kind.__doc__:
        estimator.set_params(eta0=0.01)
    weighted = "sample_weight" in inspect.signature(estimator.fit).parameters
    arrays = (X, y, np.ones(len(X))) if weighted else (X, y)

    def learn(method, *arrays):
        return method(*arrays[:2], **dict(zip(["sample_weight"], arrays[2:], strict=False)))

    learn(estimator.fit, *arrays).predict(X)
    if hasattr(estimator, "partial_fit"):
        learn(estimator.partial_fit, *arrays)
    joblib.dump(estimator, tmp_path / "model")
    before, bytes_before = compiled(), (tmp_path / "model").read_bytes()
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for each in (mapped, learn(clone(estimator).fit, *read_only(*arrays))):
        each.predict(*read_only(X))
        if hasattr(each, "partial_fit"):
            learn(each.partial_fit, *read_only(*arrays))
        if "warm_start" in each.get_params():
            learn(each.set_params(warm_start=True).fit, *read_only(*arrays))
    assert compiled() == before
    assert (tmp_path / "model").read_bytes() == bytes_before


@pytest.mark.parametrize("keep", ["average", "vote"])
def test_a_model_that_another_process_gets_read_only_goes_on(keep):
    X, y = data(3, features=60_000)  # weights of more than a megabyte are mapped into the memory of a worker
    each = OneVsRestClassifier(Perceptron(keep=keep), n_jobs=2).partial_fit(X, y, [0, 1, 2])
    alone = OneVsRestClassifier(Perceptron(keep=keep)).partial_fit(X, y, [0, 1, 2])
    for _ in range(2):
        each.partial_fit(X, y)
        alone.partial_fit(X, y)
    assert np.array_equal(each.decision_function(X), alone.decision_function(X))


def test_indices_of_64_bits_and_other_layouts_compile_nothing():
    X, y = data(3)
    usual = sp.csr_matrix(X)
    expected = Perceptron(max_iter=3).fit(usual, y)
    before = compiled()
    strange = {
        "int64": with_int64_indices(usual.copy()),
        "int64, unsorted": with_int64_indices(unsorted_csr(X)),
        "int8": usual.astype(np.int8),
        "COO": usual.tocoo(),
        "CSC": usual.tocsc(),
    }
    for name, matrix in strange.items():
        clf = Perceptron(max_iter=3).fit(matrix, y)
        assert np.array_equal(clf.coef_, expected.coef_), name
        assert np.array_equal(clf.predict(matrix), expected.predict(usual)), name
    assert compiled() == before
    flags = usual > 0
    assert np.array_equal(Perceptron(max_iter=3).fit(flags, y).coef_, Perceptron(max_iter=3).fit(flags.toarray(), y).coef_)


def test_an_index_too_large_for_32_bits_is_refused_and_not_cut_off():
    X = with_int64_indices(sp.csr_matrix(np.eye(3)))
    X.indices[1] = 2**32 + 1
    with pytest.raises(InvalidData, match="X has a column index 4294967297, but its columns are 0 to 2"):
        as_rows(X)


def test_columns_that_32_bits_cannot_count_keep_64():
    wide = sp.csr_matrix((np.ones(2), np.array([5, 2**40]), np.array([0, 1, 2])), shape=(2, 2**40 + 1))
    assert as_rows(wide).columns.dtype == np.uint64
    assert as_rows(sp.csr_matrix((2, 2**31))).columns.dtype == np.uint32


def blobs(classes, rows=300, features=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return rng.standard_normal((classes, features))[y] + rng.standard_normal((rows, features)), y


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("eta0", [1.0, 0.25])
def test_same_weights_as_scikit_learn_in_order(classes, eta0):
    X, y = blobs(classes)
    theirs = linear_model.Perceptron(max_iter=7, tol=None, shuffle=False, eta0=eta0).fit(X, y)
    ours = Perceptron(max_iter=7, tol=None, order="cyclic", keep="last", multiclass="ovr", eta0=eta0).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_)
    assert np.allclose(ours.intercept_, theirs.intercept_)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.n_iter_ == theirs.n_iter_


def test_same_weights_as_scikit_learn_on_sparse_rows_with_its_damped_intercept():
    X, y = blobs(2)
    theirs = linear_model.Perceptron(max_iter=5, tol=None, shuffle=False).fit(sp.csr_matrix(X), y)
    ours = Perceptron(max_iter=5, tol=None, order="cyclic", keep="last", intercept_scaling=0.1).fit(sp.csr_matrix(X), y)
    assert np.allclose(ours.coef_, theirs.coef_)
    assert np.allclose(ours.intercept_, theirs.intercept_)


@pytest.mark.parametrize("classes", [2, 4])
def test_same_average_as_scikit_learns_averaged_sgd(classes):
    X, y = blobs(classes)
    theirs = linear_model.SGDClassifier(
        loss="perceptron",
        learning_rate="constant",
        eta0=1.0,
        penalty=None,
        average=True,
        max_iter=4,
        tol=None,
        shuffle=False,
    ).fit(X, y)
    ours = Perceptron(keep="average", max_iter=4, tol=None, order="cyclic", multiclass="ovr").fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_)
    assert np.allclose(ours.intercept_, theirs.intercept_)


def test_same_weighted_updates_as_scikit_learn():
    X, y = blobs(2)
    weight = np.random.default_rng(1).uniform(0.1, 3, len(X))
    theirs = linear_model.Perceptron(max_iter=5, tol=None, shuffle=False, class_weight={0: 2.0, 1: 0.5})
    ours = Perceptron(max_iter=5, tol=None, order="cyclic", keep="last", class_weight={0: 2.0, 1: 0.5})
    assert np.allclose(ours.fit(X, y, sample_weight=weight).coef_, theirs.fit(X, y, sample_weight=weight).coef_)


def test_balanced_class_weights_are_scikit_learns():
    X, y = blobs(3)
    y[y == 1] = np.where(np.arange((y == 1).sum()) % 3, 0, 1)
    theirs = linear_model.Perceptron(max_iter=5, tol=None, shuffle=False, class_weight="balanced").fit(X, y)
    ours = Perceptron(max_iter=5, tol=None, order="cyclic", keep="last", class_weight="balanced", multiclass="ovr")
    ours.fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_)


@pytest.mark.parametrize(("classes", "seed", "share"), [(2, 0, 0.1), (4, 7, 0.25)])
def test_held_out_rows_are_scikit_learns(classes, seed, share, monkeypatch):
    X, y = blobs(classes)
    visits, rows_to_learn = Plan.visits, []
    monkeypatch.setattr(Plan, "visits", lambda plan, live, *rest: rows_to_learn.append(live) or visits(plan, live, *rest))
    settings = {"early_stopping": True, "validation_fraction": share, "random_state": seed}
    Perceptron(**settings).fit(X, y)
    theirs, _ = next(StratifiedShuffleSplit(test_size=share, random_state=seed).split(X, y))
    assert np.array_equal(rows_to_learn[-1], np.sort(theirs))
    rosenblatt.PassiveAggressiveRegressor(**settings).fit(X, X[:, 0])
    theirs, _ = next(ShuffleSplit(test_size=share, random_state=seed).split(X))
    assert np.array_equal(rows_to_learn[-1], np.sort(theirs))
    # one epoch over these rows alone is what scikit-learn's own learner makes of all rows
    settings |= {"max_iter": 1, "tol": None}
    theirs = linear_model.Perceptron(shuffle=False, **settings).fit(X, y)
    ours = Perceptron(order="cyclic", keep="last", multiclass="ovr", **settings).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_)


STOPPING = [kind for kind in ESTIMATORS if "early_stopping" in kind().get_params()]


@pytest.mark.parametrize("kind", STOPPING)
def test_early_stopping_is_refused_in_a_stream(kind):
    X, y = blobs(2)
    learner = kind(early_stopping=True)
    with pytest.raises(UnsupportedOperation, match="early_stopping=True cannot be used with partial_fit") as refused:
        learner.partial_fit(X, y, **{"classes": [0, 1]} if is_classifier(learner) else {})
    assert refused.value.settings == {"early_stopping": False}
    assert not hasattr(learner, "coef_")


def test_early_stopping_says_how_many_rows_it_needs():
    X, y = blobs(3)
    few = [*np.flatnonzero(y == 0)[:5], *np.flatnonzero(y == 1)[:5], *np.flatnonzero(y == 2)[:5]]
    words = r"holds out 2 of 15 rows and learns from 13, but needs at least 3 and 3 for 3 classes: at least 21 rows in all"
    with pytest.raises(InvalidData, match=words):
        Perceptron(early_stopping=True).fit(X[few], y[few])
    Perceptron(early_stopping=True).fit(X[:21], y[:21])
    once = np.where(np.arange(len(y)) == 4, 9, y)
    with pytest.raises(InvalidData, match=r"at least 2 rows of each class, .* y has 1 of 4 classes with a single row"):
        Perceptron(early_stopping=True).fit(X, once)
    with pytest.raises(InvalidData, match=r"holds out 1 of 1 rows .* at least 11 rows"):
        rosenblatt.PassiveAggressiveRegressor(early_stopping=True).fit(X[:1], y[:1])


class Exported:
    """An array of a library that has DLPack and nothing else."""

    requires_grad = False

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnGpu(Exported):
    device = "cuda:0"

    def __dlpack__(self, **options):
        raise AssertionError("nothing is copied from a GPU")

    def __dlpack_device__(self):
        return 2, 0


class Tracked(Exported):
    requires_grad = True


def test_arrays_of_other_libraries_are_read_through_dlpack():
    X, y = blobs(2)
    weight = np.linspace(0.5, 2, len(y))
    expected = Perceptron().fit(X, y, sample_weight=weight)
    ours = Perceptron().fit(Exported(X), Exported(y), sample_weight=Exported(weight))
    assert np.array_equal(ours.coef_, expected.coef_)
    assert np.array_equal(ours.predict(Exported(X)), expected.predict(X))
    assert np.array_equal(ours.partial_fit(Exported(X), Exported(y)).coef_, expected.partial_fit(X, y).coef_)
    regressor = rosenblatt.PassiveAggressiveRegressor()
    assert np.array_equal(regressor.fit(Exported(X), Exported(X[:, 0])).coef_, regressor.fit(X, X[:, 0]).coef_)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_arrays_that_cannot_be_read_say_what_to_do(name):
    X, y = blobs(2)
    arguments = {"X": X, "y": y, "sample_weight": np.ones(len(y))}
    for wrapper, message in (
        (OnGpu, rf"{name} is an array of \w+ on the device cuda:0, .* {name}\.cpu\(\)"),
        (Tracked, rf"{name} is an array of \w+ that requires gradients, .* use {name}\.detach\(\)"),
    ):
        with pytest.raises(InvalidDataType, match=message):
            Perceptron(device="cpu").fit(**arguments | {name: wrapper(arguments[name])})
    with pytest.raises(InvalidDataType, match=r"X is an array of \w+ on the device"):
        Perceptron(device="cpu").fit(X, y).predict(OnGpu(X))
    with pytest.raises(InvalidDataType, match=r"on the device cuda:0, .* Perceptron, .* learn from arrays on a CUDA"):
        rosenblatt.AROW().fit(OnGpu(X), y)


def test_torch_tensors_are_taken_on_the_cpu():
    torch = pytest.importorskip("torch")
    X, y = blobs(2)
    expected = Perceptron().fit(X, y)
    tensors = torch.tensor(X), torch.tensor(y)
    ours = Perceptron().fit(*tensors)
    assert np.array_equal(ours.coef_, expected.coef_)
    assert np.array_equal(ours.predict(tensors[0]), expected.predict(X))
    assert Perceptron().fit(tensors[0].float(), tensors[1]).coef_.dtype == np.float32
    with pytest.raises(InvalidDataType, match=r"X is an array of torch that requires gradients, .* X\.detach\(\)"):
        Perceptron().fit(tensors[0].requires_grad_(), tensors[1])
    with pytest.raises(InvalidDataType, match="convert it to a dense array of float32"):
        Perceptron().fit(tensors[0].detach().bfloat16(), tensors[1])


def test_arrays_of_the_array_api_are_taken():
    xp = pytest.importorskip("array_api_strict")
    X, y = blobs(2)
    ours = Perceptron().fit(xp.asarray(X), xp.asarray(y))
    assert np.array_equal(ours.coef_, Perceptron().fit(X, y).coef_)
    assert np.array_equal(ours.predict(xp.asarray(X)), ours.predict(X))


def test_tables_give_the_columns_their_names():
    X, y = blobs(2)
    names = list("abcde")
    text = np.where(y, "yes", "no")
    expected = Perceptron().fit(X, text)
    frame = pd.DataFrame(X, columns=names)
    tables = [(frame, pd.Series(text)), (frame.convert_dtypes(), pd.Series(text).astype("category"))]
    tables.append((pa.table(frame), pa.array(text.tolist())))
    with suppress(ImportError):
        polars = importlib.import_module("polars")
        tables.append((polars.DataFrame(dict(zip(names, X.T, strict=True))), polars.Series(text.tolist())))
    for table, labels in tables:
        clf = Perceptron().fit(table, labels)
        assert clf.feature_names_in_.tolist() == names
        assert np.array_equal(clf.coef_, expected.coef_)
        assert clf.predict(table).tolist() == expected.predict(X).tolist()


@pytest.mark.parametrize("wrong", [[[np.nan, 1.0]], [[1.0, np.inf]], [[1.0]], np.empty((0, 2))])
def test_an_array_is_refused_in_the_same_words_whether_or_not_scikit_learn_reads_it(wrong):
    model = Perceptron().fit(np.eye(2), np.array([0, 1]))
    messages = []
    for X in (np.array(wrong), np.asfortranarray(np.repeat(wrong, 2, axis=0))):
        with pytest.raises(InvalidData) as refused:
            model.predict(X)
        messages.append(re.sub(r"shape=\(\d", "shape=(n", str(refused.value)))
    assert messages[0] == messages[1]


def test_an_array_as_it_is_and_a_list_give_the_same_model():
    X, y = np.array([[1.0, 2.0], [0.5, -1.0], [-1.0, 0.25]]), np.array([1, 0, 1])
    with_names = Perceptron().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    models = [Perceptron().fit(X.tolist(), y.tolist()), Perceptron().fit(X, y), with_names.fit(X, y)]
    assert len({model.coef_.tobytes() for model in models}) == 1
    assert not hasattr(with_names, "feature_names_in_")
    assert models[0].predict(X.tolist()).tolist() == models[1].predict(X).tolist()
    with pytest.raises(InvalidData, match="2 features"):
        models[1].partial_fit(np.ones((1, 3)), y[:1])


def test_t_counts_as_scikit_learns():
    X, y = blobs(3)
    theirs = linear_model.Perceptron(max_iter=4, tol=None, shuffle=False).fit(X, y)
    ours = Perceptron(max_iter=4, tol=None, order="cyclic", multiclass="ovr").fit(X, y)
    assert ours.t_ == theirs.t_ == 1201
    assert ours.partial_fit(X, y).t_ == theirs.partial_fit(X, y).t_ == 1501
    assert ours.fit(X, y).t_ == theirs.fit(X, y).t_ == 1201
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = Perceptron().t_


@pytest.mark.parametrize(
    ("keep", "multiclass"),
    [("last", "ovo"), ("last", "joint"), ("average", "joint"), ("vote", "joint"), ("pocket", "joint")],
)
def test_weights_that_are_set_predict_and_are_learned_from(keep, multiclass):
    X, y = blobs(3)
    source = Perceptron(keep="last", multiclass=multiclass, max_iter=2, random_state=5).fit(X, y)
    clf = Perceptron(keep=keep, multiclass=multiclass, max_iter=3, tol=None, order="cyclic").fit(X[:200], y[:200])
    seen = clf.t_
    clf.coef_, clf.intercept_ = source.coef_, source.intercept_
    assert np.array_equal(clf.coef_, source.coef_)
    assert np.array_equal(clf.intercept_, source.intercept_)
    assert np.array_equal(clf.predict(X), source.predict(X))
    assert clf.t_ == seen
    if keep == "last":
        assert np.array_equal(clf.partial_fit(X, y).coef_, source.partial_fit(X, y).coef_)
    if keep == "average":  # as if the weights had been these for all examples seen
        before, last = clf.coef_.copy(), source.partial_fit(X[:1], y[:1]).coef_
        assert np.allclose(clf.partial_fit(X[:1], y[:1]).coef_, (before * (seen - 1) + last) / seen)


def test_a_model_can_begin_with_weights_that_are_set(tmp_path):
    X, y = blobs(3)
    source = Perceptron(multiclass="ovr", keep="last").fit(X, y)
    clf = Perceptron(multiclass="ovr", keep="last", warm_start=True)
    clf.classes_ = np.array([0, 1, 2])
    clf.coef_ = source.coef_
    clf.intercept_ = source.intercept_
    assert np.array_equal(clf.predict(X), source.predict(X))
    assert (clf.t_, clf.n_features_in_, clf.stop_reason_) == (1, 5, "partial_fit")
    clf.save(tmp_path / "model")
    assert np.array_equal(rosenblatt.load(tmp_path / "model").predict(X), source.predict(X))
    assert np.array_equal(clone(clf).set_params(warm_start=False).fit(X, y).coef_, source.coef_)
    assert np.array_equal(clf.partial_fit(X, y).coef_, source.partial_fit(X, y).coef_)
    numbers = rosenblatt.PassiveAggressiveRegressor().fit(X, X[:, 0])
    numbers.coef_, numbers.intercept_ = np.arange(5.0), 7.0
    assert np.allclose(numbers.predict(X), X @ np.arange(5.0) + 7)
    assert np.allclose(numbers.partial_fit(X[:1], X[:1] @ np.arange(5.0) + 7).coef_, np.arange(5.0))


def test_weights_that_cannot_be_set_are_refused_and_change_nothing():
    X, y = blobs(3)
    clf = Perceptron(fit_intercept=False, keep="last").fit(X, y)
    before = pickle.dumps(clf)
    for name, value, message in (
        ("coef_", np.zeros((2, 5)), r"coef_ must have shape \(3, 5\)"),
        ("coef_", np.full((3, 5), np.nan), "coef_ and intercept_ must be finite"),
        ("coef_", "abc", "could not convert"),
        ("intercept_", [1.0, 2.0, 3.0], "intercept_ cannot be used with fit_intercept=False"),
    ):
        with pytest.raises(InvalidData, match=message):
            setattr(clf, name, value)
    assert pickle.dumps(clf) == before
    with pytest.raises(UnsupportedOperation, match="set classes_, then coef_"):
        Perceptron().coef_ = np.zeros((1, 5))
    with pytest.raises(UnsupportedOperation, match="coef_ of ALMA cannot be set"):
        rosenblatt.ALMA().coef_ = np.zeros((1, 5))


def test_what_is_not_offered_says_what_is():
    clf = Perceptron()
    for name in ("predict_proba", "predict_log_proba", "sparsify", "densify"):
        assert not hasattr(clf, name)
    with pytest.raises(
        AttributeError, match=r"Perceptron has no predict_proba; sklearn\.calibration\.CalibratedClassifierCV"
    ):
        clf.predict_proba([[0]])
    with pytest.raises(AttributeError, match="Perceptron has no sparsify; the weights are always dense"):
        clf.sparsify()


def test_grid_search_pipeline_and_calibration():
    X, y = blobs(3)
    search = GridSearchCV(make_pipeline(StandardScaler(), Perceptron()), {"perceptron__keep": ["last", "average"]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.5
    probabilities = CalibratedClassifierCV(Perceptron(keep="average"), cv=3).fit(X, y).predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert not hasattr(Perceptron(), "predict_proba")


def test_callbacks_see_every_epoch_and_may_stop():
    pytest.importorskip("sklearn.callback")

    class Watcher:
        def __init__(self, stop_after):
            self.epochs, self.scores, self.log, self.stop_after = 0, [], [], stop_after

        def setup(self, estimator, context):
            self.log.append("setup")

        def teardown(self, estimator, context):
            self.log.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
            if context.task_name != "epoch":
                return False
            self.epochs += 1
            self.scores.append(fitted_estimator.score(X, y))
            return self.epochs == self.stop_after

    X, y = blobs(2)
    watcher = Watcher(stop_after=4)
    clf = Perceptron(max_iter=10, tol=None).set_callbacks(watcher).fit(X, y)
    assert (watcher.epochs, clf.n_iter_, clf.stop_reason_) == (4, 4, "callback")
    assert watcher.log == ["setup", "teardown"]
    assert watcher.scores[-1] == clf.score(X, y)


def test_scikit_learns_progress_bar_shows_a_fit(capfd):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y = blobs(2)
    clf = Perceptron(max_iter=3, tol=None).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert clf.n_iter_ == 3
    assert np.array_equal(clf.coef_, Perceptron(max_iter=3, tol=None).fit(X, y).coef_)
    assert "Perceptron" in capfd.readouterr().out
