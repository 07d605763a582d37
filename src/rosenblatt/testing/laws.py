"""Checks of laws that every learner must obey, as functions that raise an AssertionError where one is broken.

    from rosenblatt.testing import laws
    laws.check(MyLearner())

runs all of them; `LAWS` lists them for `pytest.mark.parametrize`. An estimator is an unfitted scikit-learn classifier; laws
about `partial_fit` and `sample_weight` skip those that have neither. The data are small integers, so "the same" means
the same to the last bit. Only a learner that says `_exact = False`, because it takes roots, powers or quotients, may round
its weights otherwise where its sums have another order: on other layouts and on permuted features.
"""

from __future__ import annotations

import pickle
import re
import tempfile
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

__all__ = [
    "LAWS",
    "an_error_changes_nothing",
    "any_chunking_is_the_same",
    "check",
    "layouts_agree",
    "mistakes_obey_the_bound",
    "names_do_not_matter",
    "prediction_is_pure",
    "saved_goes_on_as_if_never_stopped",
    "seed_fixes_every_byte",
    "weight_zero_is_absence",
]


def check(estimator: BaseEstimator) -> None:
    """Check that an estimator obeys all laws.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If a law is broken; the message names the first one that is.
    """
    for law in LAWS:
        try:
            law(clone(estimator))
        except AssertionError as error:
            raise AssertionError(f"{type(estimator).__name__} breaks the law {law.__name__!r}: {error}") from error


def data(classes: int = 3, rows: int = 40, features: int = 4, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Generate integer rows of a few overlapping classes, in random order.

    Parameters
    ----------
    classes, rows, features : int
        How many of each; every class occurs.
    seed : int, default=0
        The random seed.

    Returns
    -------
    X, y : (rows, features) float64 array and (rows,) array of class numbers
    """
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(rows) % classes)
    centres = rng.integers(-3, 4, (classes, features))
    return (centres[labels] + rng.integers(-2, 3, (rows, features))).astype(np.float64), labels


def any_chunking_is_the_same(estimator: BaseEstimator) -> None:
    """Check that cutting a stream into calls of `partial_fit` in any way gives the same model.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    if not hasattr(estimator, "partial_fit"):
        return
    for classes in (2, 3):
        X, y = data(classes)
        whole = clone(estimator).partial_fit(X, y, classes=np.unique(y))
        for cuts in ([1, 2, 3], [13], [20, 21, 39], list(range(1, len(X)))):
            parts = clone(estimator)
            for X_part, y_part in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
                parts.partial_fit(X_part, y_part, classes=np.unique(y))
            assert_same_model(whole, parts, X, f"partial_fit cut at {cuts[:5]}")


def weight_zero_is_absence(estimator: BaseEstimator) -> None:
    """Check that a row of weight 0 changes nothing, wherever it stands.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    if "sample_weight" not in signature(estimator.fit).parameters:
        return
    for classes in (2, 3):
        X, y = data(classes)
        weight = np.ones(len(X))
        weight[::3] = 0
        X_odd = X.copy()
        X_odd[::3] += 50
        there = clone(estimator).fit(X_odd, y, sample_weight=weight)
        assert_same_model(clone(estimator).fit(X[weight > 0], y[weight > 0]), there, X, "fit with rows of weight 0")


def saved_goes_on_as_if_never_stopped(estimator: BaseEstimator) -> None:
    """Check that a model that is pickled, or saved in a file, and then loaded learns on as one that never stopped, even if
    joblib loads its arrays as read-only views of the file. Learners without a method `save` are pickled only.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    if not hasattr(estimator, "partial_fit"):
        return
    for classes in (2, 3):
        X, y = data(classes)
        through = clone(estimator).partial_fit(X[:20], y[:20], classes=np.unique(y))
        with tempfile.TemporaryDirectory() as folder:
            joblib.dump(through, Path(folder) / "pickle")
            mapped = joblib.load(Path(folder) / "pickle", mmap_mode="r")
            loaded = {"pickle": pickle.loads(pickle.dumps(through)), "joblib.dump, mmap_mode='r'": mapped}
            if hasattr(through, "save"):
                through.save(Path(folder) / "model")
                loaded["save"] = type(through).load(Path(folder) / "model")
                assert_same_model(through, loaded["save"], X, "save, load")
            through.partial_fit(X[20:], y[20:])
            for how, model in loaded.items():
                assert_same_model(through, model.partial_fit(X[20:], y[20:]), X, f"{how}, load, partial_fit")


def layouts_agree(estimator: BaseEstimator) -> None:
    """Check that dense and sparse, 32 and 64 bits, C and Fortran order, read-only and memory-mapped rows give the same
    model, and that none of them is written to.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    for classes in (2, 3):
        X, y = data(classes)
        expected = clone(estimator).fit(X, y)
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "X.npy", X)
            layouts: dict[str, Any] = {
                "int64": X.astype(np.int64),
                "Fortran order": np.asfortranarray(X),
                "strided": np.repeat(X, 2, axis=1)[:, ::2],
                "a list": X.tolist(),
                "memory-mapped": np.load(Path(folder) / "X.npy", mmap_mode="r"),
                "CSR": sp.csr_matrix(X),
                "CSR array": sp.csr_array(X),
                "CSC": sp.csc_matrix(X),
                "CSR unsorted, with repeats": unsorted_csr(X),
                "CSR with int64 indices": with_int64_indices(sp.csr_matrix(X)),
                "CSR read-only": read_only_csr(sp.csr_matrix(X)),
                "float16": X.astype(np.float16),
                "the other byte order": X.astype(X.dtype.newbyteorder()),
            }
            if classes == 3:  # a type that compiled code is compiled for anew, hence once
                layouts["float32"] = X.astype(np.float32)
            for name, layout in layouts.items():
                before = pickle.dumps(layout)
                tolerance = 1e-5 if name == "float32" else rounding(estimator)
                counts = name != "float32" or rounding(estimator) == 0  # half the digits may decide otherwise
                assert_same_model(expected, clone(estimator).fit(layout, y), X, f"X as {name}", tolerance, counts)
                assert pickle.dumps(layout) == before, f"fit wrote to X as {name}"
        fixed = X.copy(), y.copy()
        for array in fixed:
            array.flags.writeable = False
        assert_same_model(expected, clone(estimator).fit(*fixed), X, "X and y read-only")


def seed_fixes_every_byte(estimator: BaseEstimator) -> None:
    """Check that the same seed gives the same bytes, whatever the number of threads.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    X, y = data()
    one = clone(estimator).fit(X, y)
    assert_same_model(one, clone(estimator).fit(X, y), X, "fit twice")
    if "n_jobs" in estimator.get_params():
        for threads in (1, 2, 5):
            assert_same_model(one, clone(estimator).set_params(n_jobs=threads).fit(X, y), X, f"n_jobs={threads}")


def names_do_not_matter(estimator: BaseEstimator) -> None:
    """Check that permuting the features permutes the weights, and renaming the classes renames the predictions.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    for classes in (2, 3):
        X, y = data(classes)
        expected = clone(estimator).fit(X, y)
        order = np.roll(np.arange(X.shape[1]), 1)
        permuted = clone(estimator).fit(X[:, order], y)
        if hasattr(expected, "coef_"):
            assert agree(expected.coef_[:, order], permuted.coef_, rounding(estimator)), "weights of permuted features"
        assert np.array_equal(permuted.predict(X[:, order]), expected.predict(X)), "predictions of permuted features"
        for names in (np.array(["a", "b", "c"]), np.array([-5, 0, 7]), np.array([0.0, 1.0, 2.0])):
            renamed = clone(estimator).fit(X, names[y])
            assert np.array_equal(renamed.predict(X), names[expected.predict(X)]), f"classes renamed to {names}"


def prediction_is_pure(estimator: BaseEstimator) -> None:
    """Check that predicting changes neither the model nor later predictions, and that rows are predicted alone as among
    others.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    X, y = data()
    fitted = clone(estimator).fit(X, y)
    before = {name: np.copy(value) for name, value in model_arrays(fitted).items()}
    first = fitted.predict(X)
    alone = np.concatenate([fitted.predict(row[None]) for row in X])
    assert np.array_equal(first, fitted.predict(X)), "a second prediction differs"
    assert np.array_equal(first, alone), "rows predicted one by one differ"
    for name, value in model_arrays(fitted).items():
        assert np.array_equal(before[name], value), f"predict changed {name}"


def an_error_changes_nothing(estimator: BaseEstimator) -> None:
    """Check that a `fit` or `partial_fit` that raises an error leaves the learner as it was, to the last bit: weights,
    counts, classes and all that its file would hold. One that has learned nothing yet is still not fitted.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    for classes in (2, 3):
        X, y = data(classes)
        for method in (name for name in ("partial_fit", "fit") if hasattr(estimator, name)):
            for what, (X_bad, y_bad) in invalid_data(X, y).items():
                fitted, new = clone(estimator).fit(X, y), clone(estimator)
                before, attributes = contents(fitted), sorted(vars(new))
                known = {"classes": np.unique(y)} if "classes" in signature(getattr(new, method)).parameters else {}
                for learner, arguments in ((fitted, {}), (new, known)):
                    try:
                        getattr(learner, method)(X_bad, y_bad, **arguments)
                    except Exception:
                        where = f"{method} failed for {what} and"
                        if learner is fitted:
                            assert contents(fitted) == before, f"{where} changed the model"
                        else:
                            assert sorted(vars(new)) == attributes, f"{where} left attributes of a model"


def invalid_data(X: NDArray, y: NDArray) -> dict[str, tuple[NDArray, NDArray]]:
    """Return data that begin like X and y and cannot all be learned from, by the name of what is wrong with them."""
    huge = np.vstack([X, 1e308 * np.sign(X[:6] + 0.5)])
    strange = np.append(y[:-1], 99)
    return {
        "NaN": (np.vstack([X, np.full((1, X.shape[1]), np.nan)]), np.append(y, 0)),
        "numbers that overflow": (huge, np.append(y, 1 - y[:6] % 2)),
        "numbers that overflow, with a new class": (huge, np.append(strange, 1 - y[:6] % 2)),
        "a new class": (X, strange),
        "too few labels": (X, y[:-1]),
        "too many columns": (np.hstack([X, X]), y),
    }


def contents(fitted: BaseEstimator) -> bytes:
    """Return the content of a model as bytes: its file without the date, or if it has no method `save`, its attributes."""
    if not hasattr(fitted, "save"):
        return pickle.dumps(vars(fitted))
    counts = pickle.dumps([getattr(fitted, name, None) for name in ("class_count_", "history_", "n_iter_", "stop_reason_")])
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        return re.sub(rb"\d{4}-\d\d-\d\dT[\d:]{8}Z", b"", (Path(folder) / "model").read_bytes()) + counts


def mistakes_obey_the_bound(estimator: BaseEstimator) -> None:
    """Check that on data that a known vector separates, a learner makes no more mistakes than its bound, in epochs without
    end; one whose bound is also one of the updates stops by itself, without a mistake left.

    Any separator is a certificate: the bound holds with its margin. Only for learners that have `max_iter` and `tol` and
    whose `mistake_bound(radius, margin)` is finite. `bounds_updates` (taken for true if absent) says which kind it is.
    Radius and margin are Euclidean; of a learner with `p_`, the radius is in that p-norm and the margin that of a
    separator of length 1 in the dual norm.

    Parameters
    ----------
    estimator : classifier of scikit-learn's kind
        An unfitted estimator; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If the law is broken.
    """
    params = estimator.get_params()
    if not hasattr(estimator, "mistake_bound") or not {"max_iter", "tol"} <= set(params):
        return
    for seed in range(5):
        rng = np.random.default_rng(seed)
        separator = np.append(rng.integers(-3, 4, 3), 1.0)
        X = rng.integers(-5, 6, (60, 3)).astype(np.float64)
        constant = params.get("intercept_scaling", 1.0) if params.get("fit_intercept", False) else 0.0
        padded = np.hstack([X, np.full((len(X), 1), constant)])
        scores = padded @ separator
        X, padded, scores = X[scores != 0], padded[scores != 0], scores[scores != 0]
        known = clone(estimator).set_params(max_iter=1).fit(X, scores > 0)  # a norm may depend on the number of features
        p = getattr(known, "p_", 2.0)
        margin = float(np.abs(scores).min() / np.linalg.norm(separator, 1 / (1 - 1 / p)))
        radius = float(np.linalg.norm(padded, p, axis=1).max())
        bound = known.mistake_bound(radius, margin)
        if not np.isfinite(bound):
            return
        ends = getattr(estimator, "bounds_updates", True)
        fitted = clone(estimator).set_params(max_iter=int(bound) + 2 if ends else 50, tol=None).fit(X, scores > 0)
        assert fitted.n_mistakes_ <= bound, f"{fitted.n_mistakes_} mistakes, but the bound is {bound}"
        if not ends:
            continue
        assert fitted.n_updates_ <= bound, f"{fitted.n_updates_} updates, but the bound is {bound}"
        assert fitted.stop_reason_ == "converged", f"stopped for {fitted.stop_reason_} within the bound"


LAWS: tuple[Callable[[BaseEstimator], None], ...] = (
    any_chunking_is_the_same,
    weight_zero_is_absence,
    saved_goes_on_as_if_never_stopped,
    layouts_agree,
    seed_fixes_every_byte,
    names_do_not_matter,
    prediction_is_pure,
    an_error_changes_nothing,
    mistakes_obey_the_bound,
)


def model_arrays(fitted: BaseEstimator) -> dict[str, NDArray]:
    """Return the arrays and counts of a fitted model, by name."""
    names = ("coef_", "intercept_", "last_coef_", "last_intercept_", "classes_", "n_mistakes_", "n_updates_", "n_seen_")
    return {name: np.asarray(getattr(fitted, name)) for name in names if hasattr(fitted, name)}


def rounding(estimator: BaseEstimator) -> float:
    """Return how far weights may differ, relative to the largest, if the sums behind them had another order."""
    return 0.0 if getattr(estimator, "_exact", True) else 1e-9


def agree(value: NDArray, other: NDArray, tolerance: float) -> bool:
    """Return whether two arrays are the same; with a tolerance, floats up to this share of the largest."""
    if tolerance == 0 or value.dtype.kind != "f":
        return np.array_equal(value, other)
    return np.allclose(value, other, rtol=0, atol=tolerance * np.abs(value).max(initial=0))


def assert_same_model(
    one: BaseEstimator, other: BaseEstimator, X: NDArray, what: str, tolerance: float = 0.0, counts: bool = True
) -> None:
    """Assert that both models have the same arrays and counts and predict the same; with a tolerance, weights up to it."""
    for name, value in model_arrays(one).items():
        if value.ndim == 0 and not counts:
            continue
        theirs = model_arrays(other)[name]
        assert agree(value, theirs, tolerance), f"{what}: {name} is {theirs}, not {value}"
    assert np.array_equal(one.predict(X), other.predict(X)), f"{what}: the predictions differ"


def with_int64_indices(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Give a CSR matrix int64 indices, in place; return it."""
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def read_only_csr(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """The same matrix, none of whose arrays may be written to."""
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def unsorted_csr(X: NDArray) -> sp.csr_matrix:
    """Return X as CSR with each value split in two and the indices of each row reversed."""
    rows, columns = X.shape
    indices = np.tile(np.repeat(np.arange(columns)[::-1], 2), rows)
    values = np.repeat(X[:, ::-1], 2, axis=1) * np.tile([3.0, -2.0], columns)
    return sp.csr_matrix((values.ravel(), indices, np.arange(rows + 1) * 2 * columns), shape=X.shape)
