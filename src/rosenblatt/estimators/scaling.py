"""A learner that adds multiples of rows to its weights learns a column as fast as the square of its values. Where one
column is a hundred times as large as the others, it drowns them.

A column is large by the mean of its |values| over all rows, small by the root mean square of those that are not zero, and
what is compared is the largest column and the first quartile of them all. So no rare word, rare pixel, outlier or
standardised column of zeros and ones is taken for a small or a large one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rosenblatt.engine.rows import AnyMatrix, DeviceRows
from rosenblatt.errors import UnscaledColumns

# A perceptron with one column of noise among ten that tell the class: 96 % right where it is as large as they are, 95 % and
# 90 % (averaged, last weights) where it is 30 times as large, 91 % and 76 % at 100, 69 % and 58 % at 300. Digits, MNIST and
# texts as counts are at 1 to 14, raw spambase, wine and breast cancer at 320 and more.
UNEVEN = 50
UNEVEN_SPARSE = 1000  # of texts as counts: where they have thousands of words, "the" comes hundreds of times
_SPARSE = 0.05  # the share of values that are not zero, below which rows are like texts
_MOST_ROWS = 2048  # looked at, evenly spaced: a look costs less than a hundredth of a fit
_MOST_VALUES = 1 << 16


class Unevenness(NamedTuple):
    """How different the sizes of the columns of X are."""

    ratio: float  # of the largest column to the first quartile
    column: int  # the largest


def unevenness(X: AnyMatrix) -> Unevenness | None:
    """Return how much larger one column is than a quarter of the columns, None where that is no harm to a perceptron."""
    rows, features = X.shape
    table: Any = X
    a_row = table.nnz / rows if sp.issparse(X) else features
    step = -(-rows // max(min(_MOST_ROWS, int(_MOST_VALUES / max(a_row, 1))), 1))
    if isinstance(X, DeviceRows):
        return unevenness(X[np.arange(0, rows, step)].to_host())
    if sp.issparse(X):
        part: Any = X[::step]
        sizes, columns = np.abs(part.data).astype(np.float64), part.indices
        if sizes.size == 0 or sizes.min() == sizes.max():
            return None  # zeros and ones
        limit = UNEVEN if sizes.size > _SPARSE * part.shape[0] * features else UNEVEN_SPARSE
        if sizes.max() < limit * sizes.min(initial=np.inf, where=sizes > 0):
            return None  # the sizes of the columns lie between these two
        if features > 4 * sizes.size:
            names, columns = np.unique(columns, return_inverse=True)
        else:
            names = np.arange(features)
        present = np.bincount(columns, sizes > 0, len(names))
        with np.errstate(over="ignore"):
            total, squares = (np.bincount(columns, values, len(names)) for values in (sizes, sizes * sizes))
    else:
        part, limit, names = X[::step], UNEVEN, np.arange(features)
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->j", part, part, dtype=np.float64)
            if squares.max() < UNEVEN**2 * squares.min():
                return None  # no ratio is larger than that of the root mean squares
            part = np.abs(part)
            total = part.sum(axis=0, dtype=np.float64)
        present = np.count_nonzero(part, axis=0)
    there = present > 0
    if there.sum() < 2:
        return None
    small = np.sqrt(squares[there] / present[there])
    low = np.partition(small, (len(small) - 1) // 4)[(len(small) - 1) // 4]
    largest = int(np.argmax(total))
    with np.errstate(invalid="ignore", over="ignore"):  # sums that have overflowed have no ratio
        ratio = total[largest] / part.shape[0] / low
    return Unevenness(float(ratio), int(names[largest])) if limit <= ratio < np.inf else None


def warn_unscaled(estimator: Any, X: AnyMatrix, stacklevel: int, name: Callable[[int], str] | None = None) -> None:
    """Warn with `UnscaledColumns` if the columns of X are too different in size for this estimator; `name` says what a
    column is called, where the estimator does not know."""
    found = unevenness(X)
    if found is None:
        return
    names = getattr(estimator, "feature_names_in_", range(X.shape[1]))
    column = names[found.column] if name is None else name(found.column)
    scaler = "MaxAbsScaler" if sp.issparse(X) else "StandardScaler"
    warnings.warn(UnscaledColumns(found.ratio, column, type(estimator).__name__, scaler), stacklevel=stacklevel + 1)
