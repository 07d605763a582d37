"""A labelled row proposes the direction a = y·(x, κ). Everything this package says of X and y, it says of these rows."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import NUMBER, Matrix, MatrixLike, as_array, floats, numbers

RandomSeed: TypeAlias = int | np.random.Generator | None  # what `numpy.random.default_rng` takes


class Signed(NamedTuple):
    """Rows times their label, with the constant feature last, if there is one. All numbers are the ones given: exact."""

    A: Matrix  # (rows, features + (κ ≠ 0)): float64, C order, or scipy's CSR
    y: NDArray  # (rows,): −1.0 or +1.0
    classes: NDArray  # the two labels, of which the second is the positive one; or the one label there is
    constant: float  # κ, or 0 without an intercept

    @property
    def features(self) -> int:
        return self.A.shape[1] - (self.constant != 0)


def read(X: MatrixLike, y: ArrayLike, constant: float = 1.0) -> Signed:
    """The rows of X (array, DataFrame or sparse) with the sign of their label and the constant feature κ; 0 for none."""
    X = numbers(X)
    constant = NUMBER.check("constant", constant)
    signs, classes = two_valued(y, X.shape[0], one=not constant)
    A = sp.csr_array(sp.diags_array(signs) @ X) if sp.issparse(X) else X * signs[:, None]
    A = with_column(A, signs * constant) if constant else A
    if not isinstance(A, np.ndarray):
        A.sort_indices()
    return Signed(A, signs, classes, constant)


def with_column(A: Matrix, last: NDArray) -> Matrix:
    """The matrix with one more column, the last."""
    return np.column_stack([A, last]) if isinstance(A, np.ndarray) else sp.csr_array(sp.hstack([A, last[:, None]]))


def two_valued(y: ArrayLike, rows: int, *, one: bool = False) -> tuple[NDArray, NDArray]:
    """(−1.0 or +1.0 for each label, the two labels in order).

    With `one`, for hyperplanes through the origin, there may be one class alone: numbers up to 0 are then the negative
    label, and all others the positive one.
    """
    y = as_array(y, "y")
    if y.shape != (rows,):
        raise InvalidData(f"y must have one label for each of the {rows} rows; got the shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidData("y holds NaN or infinity; labels must be two values")
    try:
        classes = np.unique(y)
    except TypeError:  # labels without an order, so without a second one
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise InvalidData(f"y must hold labels of one type; got {', '.join(kinds)}") from None
    if one and len(classes) == 1:
        return np.full(rows, -1.0 if y.dtype.kind in "biuf" and classes[0] <= 0 else 1.0), classes
    if len(classes) != 2:
        some = ", ".join(map(repr, classes[:4].tolist())) + (", …" if len(classes) > 4 else "")
        alone = "with an intercept, a plane far enough away has one class alone on either side"
        more = "keep the rows of two labels, or ask for one label against the rest"
        hint = alone if len(classes) == 1 else more if len(classes) > 2 else None
        raise InvalidData(f"y must hold two labels; got {len(classes)}: {some}", hint=hint)
    return np.where(y == classes[1], 1.0, -1.0), classes


def read_weights(name: str, values: ArrayLike, size: int) -> NDArray:
    """The values as a vector with a coordinate for each column of the rows."""
    vector = floats(values)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        allowed = f"{size} finite numbers, one a feature and, if there is one, the last for the constant one"
        raise InvalidParameter(name, values, allowed)
    return vector + 0.0  # no −0, which is 0 in other bits
