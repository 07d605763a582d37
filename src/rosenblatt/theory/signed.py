"""A labelled row proposes the direction a = y·(x, κ). Everything this package says of X and y, it says of these rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Signed(NamedTuple):
    """Rows times their label, with the constant feature last, if there is one. All numbers are the ones given: exact."""

    A: Any  # (rows, features + (κ ≠ 0)): float64, C order, or scipy's CSR
    y: NDArray  # (rows,): −1.0 or +1.0
    classes: NDArray  # the two labels; the second is the positive one
    constant: float  # κ, or 0 without an intercept

    @property
    def features(self) -> int:
        return self.A.shape[1] - (self.constant != 0)


def read(X: Any, y: Any, constant: float = 1.0) -> Signed:
    """The rows of X (array, DataFrame or sparse) with the sign of their label and the constant feature κ; 0 for none."""
    X = numbers(X)
    if not np.isfinite(constant):
        raise ValueError(f"the constant feature must be a finite number; got {constant!r}")
    signs, classes = two_valued(y, X.shape[0])
    if sp.issparse(X):
        A = sp.csr_array(sp.diags_array(signs) @ X)
        if constant:
            A = sp.csr_array(sp.hstack([A, sp.csr_array(signs[:, None] * constant)]))
        A.sort_indices()
        return Signed(A, signs, classes, float(constant))
    A = np.empty((X.shape[0], X.shape[1] + (constant != 0)))
    np.multiply(X, signs[:, None], out=A[:, : X.shape[1]])
    if constant:
        A[:, -1] = signs * constant
    return Signed(A, signs, classes, float(constant))


def numbers(X: Any) -> Any:
    """X as float64, dense or CSR without duplicates, each number exactly the one given; NaN and infinity are refused."""
    if sp.issparse(X):
        X = sp.csr_array(X, copy=False)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        values = _exactly(X.data)
        X = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and features; got {X.ndim}: try X.reshape(-1, 1) or [x]")
        X = values = _exactly(X)
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X must have at least one row and one feature; got {X.shape[0]} rows of {X.shape[1]}")
    if not np.isfinite(values).all():
        raise ValueError("X holds NaN or infinity; nothing can be said of rows that are no points")
    return X


def _exactly(values: NDArray) -> NDArray:
    if values.dtype.kind == "c":
        raise ValueError(f"X must hold real numbers; got {values.dtype}")
    try:
        floats = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"X must hold numbers; got {values.dtype}: {error}") from None
    # Whether a conversion was exact, Python's own comparison of an integer with a float knows; numpy's converts first.
    if values.dtype.kind in "iuO" or values.dtype.itemsize > 8:
        wide = np.abs(floats) >= 2.0**53 if values.dtype.kind in "iu" else np.ones(values.shape, dtype=bool)
        for given, got in zip(values[wide].tolist(), floats[wide].tolist(), strict=True):
            if given == given and given != got:
                raise ValueError(f"X holds {given!r}, which no float is equal to; scale the data, or round them first")
    return floats


def two_valued(y: Any, rows: int) -> tuple[NDArray, NDArray]:
    """(−1.0 or +1.0 for each label, the two labels in order)."""
    y = np.asarray(y)
    if y.shape != (rows,):
        raise ValueError(f"y must have one label for each of the {rows} rows; got the shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity; labels must be two values")
    classes = np.unique(y)
    if len(classes) != 2:
        some = ", ".join(map(repr, classes[:4].tolist())) + (", …" if len(classes) > 4 else "")
        raise ValueError(
            f"y must hold two labels; got {len(classes)}: {some}"
            + (". One class alone is separable by any constant; give −1 and +1" if len(classes) == 1 else "")
        )
    return np.where(y == classes[1], 1.0, -1.0), classes
