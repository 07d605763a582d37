"""A row is a dictionary from names to numbers, or a sequence of numbers, whose names are their positions. Anything else is
turned into one of these here, or refused."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.rows import as_rows
from rosenblatt.errors import InvalidData, InvalidDataType, NumericOverflow
from rosenblatt.online.names import LARGEST_VALUE

RowLike = Mapping[Any, Any] | ArrayLike
RowsLike = ArrayLike | Iterable[RowLike]  # or a sparse matrix, or a DataFrame
Row = dict[Hashable, Any] | NDArray


def read_row(x: RowLike) -> Any:
    """Return x as a dictionary, or as an array of float64 with one axis."""
    if isinstance(x, dict):
        return x
    if isinstance(x, Mapping):
        return dict(x)
    if hasattr(x, "to_dict"):
        return x.to_dict()
    try:
        row = np.asarray(x, np.float64)
    except (TypeError, ValueError):
        raise InvalidDataType(f"a row must be a dictionary or a sequence of numbers; got {x!r}") from None
    if row.ndim != 1:
        raise InvalidData(f"a row must have one axis; it has {row.ndim}, with shape {row.shape}")
    return row


def read_rows(X: RowsLike) -> Any:
    """Return the rows of an array, a sparse matrix, a DataFrame or an iterable of rows."""
    table: Any = X
    if sp.issparse(table):
        table = table.tocsr()
        as_rows(table)  # refuses a broken CSR matrix, on which scipy's methods crash
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        pairs = zip(table.indptr[:-1], table.indptr[1:], strict=True)
        return [dict(zip(table.indices[a:b].tolist(), table.data[a:b].tolist(), strict=True)) for a, b in pairs]
    if hasattr(table, "columns"):
        return table.to_dicts() if hasattr(table, "to_dicts") else table.to_dict("records")
    return table if isinstance(table, np.ndarray) else list(table)


def numeric_row(x: Mapping[Hashable, Any]) -> dict[Any, float]:
    """Return the row with {"color": "red"} as {"color=red": 1.0}, if everything else is a finite number."""
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
            raise InvalidDataType(
                f"the value of a feature must be a number, a truth value or text; {name!r} is {x[name]!r}", hint=_UNKNOWN
            )
        row[name] = row.get(name, 0.0) + value
        if not math.isfinite(value):
            raise InvalidData(f"the value of a feature must be finite; {name!r} is {x[name]!r}", hint=_UNKNOWN)
        if abs(row[name]) > LARGEST_VALUE:
            raise NumericOverflow(
                f"the value of a feature is too large: {name!r} is {row[name]:g}, and at most {LARGEST_VALUE:g} is allowed",
                hint="scale it down",
            )
    return row


_UNKNOWN = "leave out what is not known"


def check_weight(w: float) -> bool:
    """Return whether the weight of an example is positive; raise InvalidData if it is negative or not finite."""
    if not (w >= 0.0 and math.isfinite(w)):
        raise InvalidData(f"the weight of an example must be finite and not negative; got {w!r}")
    return w > 0.0
