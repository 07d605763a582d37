"""A matrix is the numbers it was given, each of them: what floats cannot hold is refused, not rounded. A parameter is a
number of its range, or it is refused by name."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter, InvalidParameterType

Matrix: TypeAlias = NDArray | sp.csr_array  # rows of floats, dense in C order or CSR, or of Python's integers
MatrixLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix  # what users give: arrays, lists, tables, sparse matrices


class Quantity(NamedTuple):
    """The numbers that a parameter may be."""

    low: float = 0.0
    open_low: bool = False
    high: float = inf
    open_high: bool = True
    whole: bool = False
    advice: str | None = None

    @property
    def allowed(self) -> str:
        """The numbers in words: "a number > 0 and finite"."""
        low = f" {'>' if self.open_low else '≥'} {self.low:g}" if self.low > -inf else ""
        high = f" {'<' if self.open_high else '≤'} {self.high:g}" if self.high < inf else ""
        finite = " and finite" if self.high == inf and self.open_high and not self.whole else ""
        return f"a {'whole ' * self.whole}number{low}{' and' if low and high else ''}{high}{finite}"

    def check(self, name: str, value: object) -> float:
        """The value as a float, if it is one of these numbers."""
        try:
            number = float(value)  # type: ignore[arg-type]  # that is the question
        except (TypeError, ValueError):
            is_interval = hasattr(value, "lower") and not isinstance(value, str | bytes)
            hint = "take its `lower`" if is_interval else self.advice
            raise InvalidParameterType(name, value, "a number", hint=hint) from None
        above = number > self.low or (number == self.low and not self.open_low)
        below = number < self.high or (number == self.high and not self.open_high)
        if above and below and (not self.whole or number.is_integer()):
            return number
        raise InvalidParameter(name, value, self.allowed, hint=self.advice)


NUMBER = Quantity(-inf, open_low=True)
NOT_NEGATIVE = Quantity()
POSITIVE = Quantity(open_low=True)
COUNT = Quantity(1, whole=True)


def dense(A: Matrix) -> NDArray:
    """The matrix as an array."""
    return A if isinstance(A, np.ndarray) else A.toarray()


def check_csr(A: sp.csr_array, name: str) -> None:
    """Raise InvalidData for a broken CSR matrix, on which scipy's methods crash."""
    try:
        A.check_format(full_check=True)
    except ValueError as error:
        raise InvalidData(f"{name} is not a valid CSR matrix: {error}") from None


def numbers(X: MatrixLike, name: str = "X", *, integers: bool = False) -> Any:
    """X as float64, dense in C order or CSR without duplicates, each number exactly the one given; NaN and infinity are
    refused. With `integers`, a dense array of Python's integers that floats cannot hold stays as it is."""
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        raise InvalidData(f"{name} must not have masked entries; fill them in, or remove their rows")
    A: Any = X if sp.issparse(X) else as_array(X, name)
    if sp.issparse(A) and A.ndim == 2:
        A = sp.csr_array(A, copy=False)
    if A.ndim != 2:
        raise InvalidData(
            f"{name} must have two dimensions, rows and columns; got {A.ndim}", hint="try reshape(-1, 1), or [x]"
        )
    if sp.issparse(A):
        check_csr(A, name)
        if not A.has_canonical_format:
            A = A.copy()
            A.sum_duplicates()
        values = _exactly(A.data, name)
        A = sp.csr_array((values, A.indices, A.indptr), shape=A.shape)
    else:
        if integers and A.dtype == object and all(type(value) is int for value in A.flat) and not _held(A):
            return A
        A = values = np.ascontiguousarray(_exactly(A, name))
    if A.shape[0] == 0 or A.shape[1] == 0:
        raise InvalidData(f"{name} must have at least one row and one column; got {A.shape[0]} rows of {A.shape[1]}")
    if not np.isfinite(values).all():
        raise InvalidData(f"{name} must hold finite numbers; it has NaN or infinity")
    return A


def floats(values: ArrayLike) -> NDArray:
    """The values as an array of floats; NaN alone, of no dimension, for what are not numbers in rows of one length."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def as_array(values: ArrayLike, name: str) -> NDArray:
    """The values as an array of whatever they are; lists of different lengths are none."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidData(f"{name} must be a table or a list of single values; it has lists of different lengths") from None


def _held(X: NDArray) -> bool:
    """Whether each integer is a float as it is."""
    return all(abs(value) <= 2**53 for value in X.flat)


def _exactly(values: NDArray, name: str) -> NDArray:
    if values.dtype.kind not in "biufO":
        raise InvalidData(f"{name} must hold {'real ' * (values.dtype.kind == 'c')}numbers; got {values.dtype}")
    if values.dtype == object and (odd := [v for v in values.flat if v is None or isinstance(v, (str, bytes))]):
        raise InvalidData(f"{name} must hold numbers; got {odd[0]!r}")
    try:
        floats = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidData(f"{name} must hold numbers; got {values.dtype}: {error}") from None
    # Whether a conversion was exact, Python's own comparison of an integer with a float knows; numpy's converts first.
    if values.dtype.kind in "iuO" or values.dtype.itemsize > 8:
        wide = np.abs(floats) >= 2.0**53 if values.dtype.kind in "iu" else np.ones(values.shape, dtype=bool)
        for value, near in zip(values[wide].tolist(), floats[wide].tolist(), strict=True):
            if value == value and value != near:
                hint = "scale the data, or round them first"
                raise InvalidData(f"{name} holds {value!r}, which float64 cannot represent exactly", hint=hint)
    return floats
