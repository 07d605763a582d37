"""Rows and labels as estimators take them: scikit-learn checks them, except where nothing can be wrong, and what it refuses
is an error of this library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.rows import AnyMatrix, DeviceRows, MatrixLike, all_finite, numpy_array, refuse_dates
from rosenblatt.errors import InvalidData, InvalidDataType, RosenblattError
from rosenblatt.estimators.interface import Learner

READ: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}


@contextmanager
def invalid_data(X: Any = None) -> Iterator[None]:
    """Turn what scikit-learn refuses into InvalidData, with the same message, and advice if it is about text in X."""
    try:
        yield
    except (RosenblattError, AttributeError):  # a NotFittedError is an AttributeError
        raise
    except TypeError as error:
        raise InvalidDataType(str(error), hint=text_hint(X)) from error
    except (ValueError, OverflowError) as error:
        raise InvalidData(str(error), hint=text_hint(X)) from error


def _needs_no_validation(X: Any) -> bool:
    """Return whether scikit-learn's `validate_data` would return X unchanged, apart from its check for NaN. It takes longer
    than a small fit, and is skipped then."""
    if type(X) not in (np.ndarray, sp.csr_array, sp.csr_matrix) or X.ndim != 2 or X.dtype not in READ["dtype"]:
        return False
    return min(X.shape) > 0 and (sp.issparse(X) or X.flags.c_contiguous)


def _has_expected_columns(estimator: Any, X: Any) -> bool:
    return estimator.n_features_in_ == X.shape[1] and not hasattr(estimator, "feature_names_in_")


def accept_unchecked(estimator: Any, X: Any, reset: bool) -> bool:
    """Return whether X can be used without `validate_data`: it needs none and has the columns that the estimator expects.
    If so, `n_features_in_` is set; with `reset` any number of columns will do."""
    if not _needs_no_validation(X) or not (reset or _has_expected_columns(estimator, X)):
        return False
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)
    return True


def read_rows(estimator: Learner, X: Any, **options: object) -> Any:
    """X as an array or a CSR matrix of finite numbers, with the columns that the fitted estimator expects."""
    is_valid = _needs_no_validation(X) and _has_expected_columns(estimator, X)
    if is_valid and all_finite(X if type(X) is np.ndarray else X.data):
        return X
    refuse_dates(X)
    with invalid_data(X):
        from sklearn.utils.validation import validate_data

        return validate_data(estimator, numpy_array(X, "X"), reset=False, **(READ | options))


def read_examples(estimator: Learner, X: MatrixLike, y: ArrayLike, reset: bool, **options: object) -> tuple[Any, NDArray]:
    """(X, y) as arrays, or X as a CSR matrix; with `reset`, the estimator expects columns like these from now on."""
    from sklearn.utils.validation import validate_data

    refuse_dates(X)
    with invalid_data(X):
        return validate_data(estimator, numpy_array(X, "X"), numpy_array(y, "y"), reset=reset, **(READ | options))


def refuse_non_finite(estimator: Learner, X: AnyMatrix) -> None:
    """Raise InvalidData if X holds NaN or infinity."""
    from sklearn.utils import assert_all_finite

    if isinstance(X, DeviceRows):
        X = np.array([[X.largest()]], X.dtype)  # NaN or infinite if a value is
    with invalid_data():
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")


def longest_row(X: AnyMatrix, rows: NDArray) -> int | None:
    """Of some rows of X the one with the largest value; None if there are none."""
    if len(rows) < 2:
        return int(rows[0]) if len(rows) else None
    if isinstance(X, DeviceRows):
        return int(rows[np.concatenate([abs(part.to_host()).max(axis=1) for part in X[rows].pieces()]).argmax()])
    return int(rows[abs(sp.csr_array(X[rows])).max(axis=1).toarray().argmax()])


def text_hint(X: Any) -> str | None:
    """Return what to do about text in X, with the column where that is known; None if there is no text."""
    where = _text_place(X)
    if where is None:
        return None
    encoders = "scikit-learn's OneHotEncoder for categories, TfidfVectorizer for words"
    return f"{where} text; make numbers of it with {encoders}, or train on the file with rosenblatt.workflow.train"


def _text_place(X: Any) -> str | None:
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return next((f"column {name!r} holds" for name in X.columns if _is_text(X[name])), None)
    return "X holds" if (isinstance(X, np.ndarray | list | tuple) or hasattr(X, "to_numpy")) and _is_text(X) else None


def _is_text(values: Any) -> bool:
    """Return whether some values are text that is no number."""
    if getattr(getattr(values, "dtype", None), "kind", "O") in "biufc":
        return False  # without making objects of a large matrix
    try:
        found = np.ravel(np.asarray(values, dtype=object))
    except ValueError:  # rows of arrays whose shapes differ
        return False
    try:
        np.array([value for value in found if isinstance(value, str)], dtype=object).astype(np.float64)
    except ValueError:
        return True
    return False
