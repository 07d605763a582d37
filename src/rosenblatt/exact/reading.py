"""A matrix is the numbers it was given, each of them: what floats cannot hold is refused, not rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def numbers(X: Any, name: str = "X", *, integers: bool = False) -> Any:
    """X as float64, dense in C order or CSR without duplicates, each number exactly the one given; NaN and infinity are
    refused. With `integers`, a dense array of Python's integers that floats cannot hold stays as it is."""
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        raise ValueError(f"{name} has masked entries; nothing can be said of numbers that are missing")
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, rows and columns; got {X.ndim}")
        X = sp.csr_array(X, copy=False)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        values = _exactly(X.data, name)
        X = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, rows and columns; got {X.ndim}: try reshape(-1, 1), or [x]")
        if integers and X.dtype == object and all(type(value) is int for value in X.flat) and not _held(X):
            return X
        X = values = np.ascontiguousarray(_exactly(X, name))
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"{name} must have at least one row and one column; got {X.shape[0]} rows of {X.shape[1]}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinity; nothing can be said of rows that are no points")
    return X


def _held(X: NDArray) -> bool:
    """Whether each integer is a float as it is."""
    return all(abs(value) <= 2**53 for value in X.flat)


def _exactly(values: NDArray, name: str) -> NDArray:
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold {'real ' * (values.dtype.kind == 'c')}numbers; got {values.dtype}")
    if values.dtype == object and (odd := [v for v in values.flat if v is None or isinstance(v, (str, bytes))]):
        raise ValueError(f"{name} must hold numbers; got {odd[0]!r}")
    try:
        floats = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers; got {values.dtype}: {error}") from None
    # Whether a conversion was exact, Python's own comparison of an integer with a float knows; numpy's converts first.
    if values.dtype.kind in "iuO" or values.dtype.itemsize > 8:
        wide = np.abs(floats) >= 2.0**53 if values.dtype.kind in "iu" else np.ones(values.shape, dtype=bool)
        for given, got in zip(values[wide].tolist(), floats[wide].tolist(), strict=True):
            if given == given and given != got:
                raise ValueError(f"{name} holds {given!r}, which no float is equal to; scale the data, or round them first")
    return floats
