"""Data enters here, once. `as_rows` checks, casts and freezes it; past this border every array has one of the few types
the kernels are compiled for, and nothing writes to it.

A row is a pair (columns, values). The row of a dense array has `columns = None`, so one body serves both layouts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import date, time, timedelta
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rosenblatt.engine.jit import flat_slice, generic, jit, prefetch
from rosenblatt.errors import InvalidData, InvalidDataType, NumericOverflow, shown

_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)  # a datetime is a date


class Dense(NamedTuple):
    """Rows of a C-contiguous array."""

    values: NDArray  # (rows, columns)


class CSR(NamedTuple):
    """Rows of a compressed sparse matrix; the columns of each row are strictly increasing.

    The columns are unsigned so that compiled code need not ask whether an index counts from the end: that question
    halves the speed of a sparse dot product.
    """

    starts: NDArray  # (rows + 1,) int64
    columns: NDArray  # (non-zeros,) uint32; uint64 where there are more than 2³¹ columns
    values: NDArray  # (non-zeros,)


class DeviceRows(ABC):
    """Rows that lie on a device such as a GPU, which learns from them itself: no kernel of this package ever sees them.

    For estimators they are a matrix: they have a shape and a dtype, some of them can be selected, and they have a product
    with weights. `rosenblatt.gpu.arrays` has those of a GPU.
    """

    values: Any  # the array that holds them, of a type that the device knows
    shape: tuple[int, int]
    dtype: np.dtype  # of the weights that are learned from them, float32 or float64

    @abstractmethod
    def __getitem__(self, rows: NDArray | slice) -> DeviceRows:
        """The rows of these numbers, which are copied only when they are used."""

    @abstractmethod
    def pieces(self, vectors: int = 1) -> Iterator[DeviceRows]:
        """Yield the rows in parts so small that they, and their scores by so many weight vectors, take little memory."""

    @abstractmethod
    def all_finite(self) -> bool:
        """Return whether every value is a number."""

    @abstractmethod
    def largest(self) -> float:
        """Return the largest |value|; NaN if there is a NaN."""

    @abstractmethod
    def lengths(self, constant: float) -> NDArray:
        """Return ‖(row, constant)‖² of each row, in float64."""

    @abstractmethod
    def scores(self, coef: NDArray, intercept: NDArray) -> NDArray:
        """Return rows @ coef.T + intercept."""

    @abstractmethod
    def to_host(self) -> NDArray:
        """Return a copy in the memory of the machine."""


Rows = Dense | CSR | DeviceRows
Matrix: TypeAlias = NDArray | sp.csr_matrix | sp.csr_array  # rows of floats, as scikit-learn checks them
AnyMatrix: TypeAlias = Matrix | DeviceRows  # the same, wherever they are
MatrixLike: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray  # what users give: arrays, lists, tables, sparse matrices
HOST_DEVICES = (1, 3)  # of DLPack: the memory of the processor, plain or pinned
LEARN_ON_GPU = "Perceptron, PassiveAggressiveClassifier, PAUM and MIRA"
LONG_STREAM = 32 << 20  # bytes; prefetching changed the time of an epoch by +5 to +25 % below, by −5 to −30 % above
FEW_ROWS = 16  # up to so many, the columns of each row are collected; of more rows, the columns of the whole matrix


class Examples(NamedTuple):
    """What a learner is shown: rows, a class number for each, two weights for each, its own and its class's, and the value
    of the constant feature (0 for none) that carries the intercept as the last coordinate."""

    rows: Rows
    labels: NDArray  # (rows,) int64
    weight: NDArray | None  # (rows, 2) float64; None: all are 1
    constant: float
    lengths: NDArray | None = None  # (rows,) float64: ‖(row, constant)‖², for the rules that use it


@generic
def take(rows, i):
    """Row i as (columns, values)."""
    raise TypeError(f"rows must be Dense or CSR, not {type(rows).__name__}; as_rows makes one from a matrix")


@take.register
def _(rows: Dense, i):
    width = rows.values.shape[1]
    return None, flat_slice(rows.values, i * width, width)


@take.register
def _(rows: CSR, i):
    first = rows.starts[i]
    size = rows.starts[i + 1] - first
    return flat_slice(rows.columns, first, size), flat_slice(rows.values, first, size)


@generic
def fetch(rows, i):
    """Prefetch row i: ask the processor to load it into its cache."""
    raise TypeError(f"rows must be Dense or CSR, not {type(rows).__name__}; as_rows makes one from a matrix")


@fetch.register
def _(rows: Dense, i):
    width = rows.values.shape[1]
    for j in range(i * width, (i + 1) * width, 64 // rows.values.itemsize):
        prefetch(rows.values, j)


@fetch.register
def _(rows: CSR, i):
    # The first and the last cache line without a branch, those between only of long rows: branches on the length of rows
    # are mispredicted where lengths differ, which was measured at more than the time of a short row's sum.
    first, last = rows.starts[i], rows.starts[i + 1] - 1
    prefetch(rows.columns, first)
    prefetch(rows.values, first)
    prefetch(rows.columns, last)
    prefetch(rows.values, last)
    line = 64 // rows.values.itemsize
    if last - first > 2 * line:
        for j in range(first + line, last, line):
            prefetch(rows.values, j)
        for j in range(first + 16, last, 16):
            prefetch(rows.columns, j)


def count(rows: Rows) -> int:
    """How many rows there are."""
    if isinstance(rows, CSR):
        return len(rows.starts) - 1
    return len(rows.values) if isinstance(rows, Dense) else rows.shape[0]


def float_type(rows: Rows) -> np.dtype:
    """The type of the weights that are learned from rows."""
    return rows.dtype if isinstance(rows, DeviceRows) else rows.values.dtype


def scores(X: AnyMatrix, coef: NDArray, intercept: NDArray) -> NDArray:
    """X @ coef.T + intercept, computed where X is."""
    return X.scores(coef, intercept) if isinstance(X, DeviceRows) else X @ coef.T + intercept


def is_sparse(rows: Rows) -> bool:
    """Whether rows list the columns of their values."""
    return isinstance(rows, CSR)


def touched_columns(rows: Rows, order: NDArray, features: int) -> NDArray | slice:
    """Return an index of all features that learning from the rows of `order` can change, with repetitions; or of all
    features where that is as cheap. The constant feature is not among them."""
    if not isinstance(rows, CSR):
        return slice(None)
    if len(order) > FEW_ROWS:
        columns = rows.columns
    else:
        columns = np.concatenate([rows.columns[:0], *(rows.columns[span(rows, i)] for i in order)])
    return columns.view(f"i{columns.itemsize}") if 8 * columns.size < features else slice(None)


def span(rows: CSR, i: int) -> slice:
    """Return the slice of the columns and values that is row i."""
    return slice(rows.starts[i], rows.starts[i + 1])


def row_values(rows: Rows, i: int) -> NDArray:
    """Return the values of row i, in Python; kernels use `take`."""
    if isinstance(rows, DeviceRows):
        return rows[np.array([i])].to_host()[0]
    return rows.values[i] if isinstance(rows, Dense) else rows.values[span(rows, i)]


def largest_value(rows: Rows) -> float:
    """The largest |value|; NaN if there is a NaN."""
    if isinstance(rows, DeviceRows):
        return rows.largest()
    values = rows.values
    return float(max(values.max(), -values.min())) if values.size else 0.0


def row_bytes(rows: Rows) -> int:
    """The bytes of an average row."""
    if isinstance(rows, CSR):
        return (rows.columns.nbytes + rows.values.nbytes) // max(count(rows), 1)
    return rows.values.shape[1] * rows.values.itemsize


def prefetch_distance(rows: Rows, in_order: bool) -> int:
    """Return how many positions before its visit a row is prefetched: as many as 4 KB of rows, at most eight. 0 stands for
    no prefetching, if rows are visited in memory order and take less than LONG_STREAM: the processor does it by itself."""
    if in_order and rows.values.nbytes < LONG_STREAM:
        return 0
    return min(max(1, 4096 // max(row_bytes(rows), 1)), 8)


def numpy_array(values: Any, name: str) -> Any:
    """Values of another library's array (torch, JAX, anything with DLPack), which is named so, as numpy's, without a copy
    where that is possible; all other values are returned as they are.

    Raises InvalidDataType if they are not in the memory of the processor, or require gradients.
    """
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    array = _array_of(values, name)
    try:
        device = getattr(values, "__dlpack_device__", lambda: HOST_DEVICES)()[0]
        if device in HOST_DEVICES:
            refuse_gradients(values, name)
            return np.asarray(values) if hasattr(values, "__array__") else np.from_dlpack(values)
    except InvalidDataType:
        raise
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        advice = f"convert it to a dense {'array of float32 or float64' if name == 'X' else 'array'} on the CPU first"
        raise InvalidDataType(f"{array} that numpy cannot read: {error}", hint=advice) from error
    where = getattr(values, "device", int(device))
    raise InvalidDataType(
        f"{array} on the device {where}, but it is needed on the CPU",
        hint=f"copy it to the CPU first, with {name}.cpu() in torch, {name}.get() in CuPy or "
        f"numpy.asarray(jax.device_get({name})) in JAX; {LEARN_ON_GPU} learn from arrays on a CUDA device, device='auto'",
    )


def refuse_gradients(values: object, name: str) -> None:
    """Raise InvalidDataType if this array of another library, which is named so, requires gradients."""
    if getattr(values, "requires_grad", False):
        problem = f"{_array_of(values, name)} that requires gradients, which are not computed here"
        raise InvalidDataType(problem, hint=f"use {name}.detach()")


def _array_of(values: object, name: str) -> str:
    """The beginning of a sentence about an array: "X is an array of torch"."""
    return f"{name} is an array of {type(values).__module__.partition('.')[0]}"


def refuse_dates(X: Any, name: str = "X") -> None:
    """Raise InvalidDataType if X holds dates or durations: numpy would turn them into a count of days or nanoseconds,
    whichever unit they happen to have."""
    found = next(_dates(X), None)
    if found is not None:
        raise InvalidDataType(
            f"{name} must hold numbers; {found}",
            hint="convert dates and durations to numbers: days since a first day, the month, the day of the week",
        )


def _dates(X: Any) -> Iterator[str]:
    """What in a matrix, a table or a list of rows is a date or a duration, as "column 'born' is datetime64[ns]"."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        for column, dtype in zip(X.columns, X.dtypes, strict=True):
            kind = getattr(dtype, "kind", "")
            if kind in ("M", "m") or type(dtype).__name__ == "PeriodDtype" or getattr(dtype, "is_temporal", bool)():
                yield f"column {column!r} is {dtype}"
            elif kind == "O":
                yield from (f"column {column!r} has {text}" for text in _date_values(X[column]))
    elif (kind := getattr(getattr(X, "dtype", None), "kind", "")) in ("M", "m"):
        yield f"it is an array of {X.dtype}"
    elif kind == "O":
        yield from (f"it has {text}" for text in _date_values(np.ravel(X)))
    elif isinstance(X, list | tuple):
        rows = chain.from_iterable(row if isinstance(row, list | tuple) else [row] for row in X)
        yield from (f"it has {text}" for text in _date_values(rows))
        yield from chain.from_iterable(_dates(row) for row in X if isinstance(row, np.ndarray))


def _date_values(values: Any) -> Iterator[str]:
    return (shown(value) for value in values if isinstance(value, _DATES))


def as_rows(X: MatrixLike | DeviceRows, dtype: DTypeLike | None = None) -> Rows:
    """X, a matrix with two axes, as Dense or CSR rows, without a copy where type and layout already fit.

    float32 and float64 stay as they are; all else becomes float64 (float16: float32), or `dtype` where it is given.
    Indices of any integer type are accepted and checked. Columns become uint32 (64-bit ones in a copy of half the size),
    unless there are more than 2³¹ of them: another type would have every kernel compiled again. Row starts are int64, so
    the number of values has no limit. Unsorted and repeated indices are put in order and added up, in a copy. NaN and
    infinity are not looked for here: `finite` does that, and the kernels notice them too. Rows on a device stay there.
    """
    if sp.issparse(X):
        return _csr(X, dtype)
    if isinstance(X, DeviceRows):
        return X
    refuse_dates(X)
    X = np.asarray(numpy_array(X, "X"))
    if X.ndim != 2:
        raise InvalidData(f"X must have two axes, rows and features; it has {X.ndim}, with shape {X.shape}")
    return Dense(frozen(np.ascontiguousarray(X, dtype=dtype or _float_type(X.dtype))))


def _csr(X: Any, dtype: DTypeLike | None) -> CSR:
    X = X.tocsr()
    if X.ndim != 2:
        raise InvalidData(f"X must have two axes, rows and features; it has {X.ndim}, with shape {X.shape}")
    starts = X.indptr.astype(np.int64, copy=False)
    columns = _short_indices(X.indices, X.shape[1])
    if len(starts) != X.shape[0] + 1 or starts[0] != 0 or starts[-1] > len(columns) or len(columns) != len(X.data):
        raise InvalidData(
            f"X is not a valid CSR matrix: {X.shape[0]} rows with {len(starts)} row starts from {starts[0]} to "
            f"{starts[-1]}, {len(columns)} column indices and {len(X.data)} values"
        )
    if (backward := np.flatnonzero(starts[1:] < starts[:-1])).size:
        raise InvalidData(
            f"X is not a valid CSR matrix: the start of row {backward[0] + 1} is before that of row {backward[0]}"
        )
    if columns.size and columns.view(f"u{columns.itemsize}").max() >= X.shape[1]:  # a negative one is then very large
        _refuse_outside(columns.min(), columns.max(), X.shape[1])
    if not _rows_increase(starts, columns):
        X = sp.csr_matrix((X.data.copy(), columns.copy(), X.indptr.copy()), shape=X.shape)
        X.sum_duplicates()
        starts, columns = X.indptr.astype(np.int64, copy=False), _short_indices(X.indices, X.shape[1])
    values = X.data.astype(dtype or _float_type(X.data.dtype), copy=False)
    return CSR(frozen(starts), frozen(columns.view(f"u{columns.itemsize}")), frozen(values))


def _rows_increase(starts: NDArray, columns: NDArray) -> bool:
    """Return whether the columns of each row strictly increase, that is, whether they fall or repeat only from one row to
    the next. scipy's own flag (`has_canonical_format`) may be out of date, and is not used."""
    before, falls = columns[:-1], 0
    for at in range(0, len(before), 1 << 18):  # as many as fit the processor's cache
        falls += int(np.count_nonzero(columns[1:][at : at + (1 << 18)] <= before[at : at + (1 << 18)]))
    firsts = starts[:-1][(starts[:-1] < starts[1:]) & (starts[:-1] > 0)]
    return bool(falls == np.count_nonzero(columns[firsts] <= columns[firsts - 1]))


def _short_indices(columns: NDArray, width: int) -> NDArray:
    """Column indices as int32, if those of so many columns fit in it, else as int64."""
    if columns.dtype == np.int32:
        return columns
    if width > 2**31:
        return columns.astype(np.int64, copy=False)
    if columns.size:
        _refuse_outside(columns.min(), columns.max(), width)  # before what does not fit turns into another index
    return columns.astype(np.int32)


def _refuse_outside(lowest: int, highest: int, width: int) -> None:
    """An error if a column index is not one of so many columns."""
    if lowest < 0 or highest >= width:
        raise InvalidData(f"X has a column index {lowest if lowest < 0 else highest}, but its columns are 0 to {width - 1}")


def finite(rows: Rows) -> bool:
    """Whether every value is a number: no NaN, no infinity."""
    return rows.all_finite() if isinstance(rows, DeviceRows) else all_finite(rows.values)


def all_finite(values: NDArray) -> bool:
    """Return whether every value is a number: no NaN, no infinity. If their sum is finite, they are; if not, each value is
    checked, because the sum of finite ones may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    return bool(np.isfinite(total) or np.isfinite(values).all())


def lengths(rows: Rows, constant: float) -> NDArray:
    """‖(row, constant)‖² of each row, in float64."""
    if isinstance(rows, DeviceRows):
        return rows.lengths(constant)
    result = np.empty(count(rows))
    _squared(rows, constant, result)
    return result


def refuse_too_long(rows: Rows, squared: NDArray, live: NDArray) -> None:
    """An error if the squared length of one of the live rows overflows although its values are finite."""
    too_long = live[np.isinf(squared[live])].tolist()
    if too_long and isinstance(rows, DeviceRows) and not finite(rows):
        return  # the run will notice; to ask a device for row after row takes long
    for i in too_long:
        if np.isfinite(row_values(rows, i)).all():
            raise NumericOverflow(f"the squared length of row {i} of X overflows", hint="scale X down", row=i)


@jit
def _squared(rows, constant, result):
    for i in range(result.size):
        _, values = take(rows, i)
        total = constant * constant
        for j in range(values.size):
            total += np.float64(values[j]) * np.float64(values[j])
        result[i] = total


def frozen(array: NDArray) -> NDArray:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def _float_type(dtype: np.dtype) -> type:
    if dtype in (np.float32, np.float16):
        return np.float32
    if dtype.kind == "c":
        raise InvalidData(f"X must hold real numbers; complex data ({dtype}) is not supported")
    return np.float64
