"""A row is a dictionary from names to numbers, or a sequence of numbers, whose names are their positions. Anything else is
turned into one of these here, or refused."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.rows import as_rows, refuse_dates
from rosenblatt.errors import InvalidData, InvalidDataType, NumericOverflow, shown
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
    refuse_dates(x, "a row")
    try:
        row = np.asarray(x, np.float64)
    except (TypeError, ValueError):
        raise InvalidDataType(f"a row must be a dictionary or a sequence of numbers; got {shown(x)}") from None
    except OverflowError:
        raise NumericOverflow(_TOO_LARGE.format(f"the row is {shown(x)}"), hint="scale it down") from None
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
    each = items(table, "X", "rows")
    return table if isinstance(table, np.ndarray) else list(each)


def items(values: Any, name: str, kind: str) -> Iterator[Any]:
    """Return an iterator over the values of an argument; refuse one that has none."""
    try:
        return iter(values)
    except TypeError:
        raise InvalidDataType(f"{name} must be an iterable of {kind}; got {shown(values)}") from None


def numeric_row(x: Mapping[Hashable, Any]) -> dict[Any, float]:
    """Return the row with {"color": "red"} as {"color=red": 1.0}, if everything else is a finite number."""
    row: dict[Any, float] = {}
    for name, value in x.items():
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        try:
            value = float(value) if not isinstance(value, _NO_NUMBERS) else None
        except (TypeError, ValueError):
            value = None
        except OverflowError:
            raise NumericOverflow(_TOO_LARGE.format(f"{name!r} is {shown(value)}"), hint="scale it down") from None
        if value is None:
            raise InvalidDataType(
                f"the value of a feature must be a number, a truth value or text; {name!r} is {shown(x[name])}",
                hint=_UNKNOWN,
            )
        row[name] = row.get(name, 0.0) + value
        if not math.isfinite(value):
            raise InvalidData(f"the value of a feature must be finite; {name!r} is {x[name]!r}", hint=_UNKNOWN)
        if abs(row[name]) > LARGEST_VALUE:
            raise NumericOverflow(_TOO_LARGE.format(f"{name!r} is {row[name]:g}"), hint="scale it down")
    return row


_NO_NUMBERS = (bytes, bytearray, np.complexfloating, np.datetime64, np.timedelta64)  # float takes them all the same
_UNKNOWN = "leave out what is not known"
_TOO_LARGE = f"the value of a feature is too large: {{}}, and at most {LARGEST_VALUE:g} is allowed"


def read_weights(w: ArrayLike | None, count: int) -> list[float]:
    """Return the weights of so many examples as a list; one number is the weight of each."""
    try:
        each = np.asarray(1.0 if w is None else w, np.float64)
    except OverflowError:
        raise NumericOverflow(f"the weights of the examples are too large; got {shown(w)}") from None
    except (TypeError, ValueError) as error:
        kind = InvalidDataType if isinstance(error, TypeError) else InvalidData
        raise kind(f"the weights of the examples must be numbers; got {shown(w)}") from None
    if each.ndim > 1:
        raise InvalidData(f"the weights of the examples must have one axis; they have {each.ndim}, with shape {each.shape}")
    return [float(each)] * count if each.ndim == 0 else each.tolist()


def check_weight(w: float) -> bool:
    """Return whether the weight of an example is positive; raise InvalidData if it is negative or not finite."""
    try:
        good = w >= 0.0 and math.isfinite(w)
    except (TypeError, ValueError, OverflowError):
        raise InvalidDataType(f"the weight of an example must be a finite number; got {shown(w)}") from None
    if not good:
        raise InvalidData(f"the weight of an example must be finite and not negative; got {w!r}")
    return w > 0.0
