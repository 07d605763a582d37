"""A row is a dictionary from names to numbers, or a sequence of numbers, whose names are their positions. What else comes
is turned into one of these here, or refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from rosenblatt.errors import InvalidData, NumericOverflow
from rosenblatt.online.names import LARGEST_VALUE


def row_of(x: Any) -> Any:
    """x as a dictionary, or as an array of float64 with one axis."""
    if isinstance(x, dict):
        return x
    if isinstance(x, Mapping):
        return dict(x)
    if hasattr(x, "to_dict"):
        return x.to_dict()
    try:
        row = np.asarray(x, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"a row must be a dictionary or a sequence of numbers; got {x!r}") from None
    if row.ndim != 1:
        raise ValueError(f"a row must have one axis; it has {row.ndim}, with shape {row.shape}")
    return row


def rows_of(X: Any) -> Any:
    """The rows of an array, a sparse matrix, a DataFrame or an iterable of rows."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        pairs = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in pairs]
    if hasattr(X, "columns"):
        return X.to_dicts() if hasattr(X, "to_dicts") else X.to_dict("records")
    return X if isinstance(X, np.ndarray) else list(X)


def clarified(x: dict) -> dict:
    """The row with text as one feature a value, {"color": "red"} as {"color=red": 1.0}, if all else is a finite number."""
    row: dict[Any, float] = {}
    for name, value in x.items():
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        try:
            value = float(value) if not isinstance(value, bytes | bytearray | np.complexfloating) else None
        except (TypeError, ValueError):
            value = None
        except OverflowError:
            value = math.inf
        if value is None:
            raise TypeError(
                f"the value of a feature must be a number, a truth value or text; {name!r} is {x[name]!r}; leave out what "
                "is not known"
            )
        row[name] = row.get(name, 0.0) + value
        if not math.isfinite(value):
            raise InvalidData(
                f"the value of a feature must be finite; {name!r} is {x[name]!r}", hint="leave out what is not known"
            )
        if abs(row[name]) > LARGEST_VALUE:
            raise NumericOverflow(
                f"the value of a feature is too large: {name!r} is {row[name]:g}, and at most {LARGEST_VALUE:g} is allowed",
                hint="scale it down",
            )
    return row


def weighs(w: Any) -> bool:
    """Whether an example of weight w is there: a weight is finite and not negative, and 0 means that it is not."""
    if not (w >= 0.0 and math.isfinite(w)):
        raise ValueError(f"the weight of an example must be finite and not negative; got {w!r}")
    return w > 0.0
