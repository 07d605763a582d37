"""A labelled row proposes the direction a = y·(x, κ). Everything this package says of X and y, it says of these rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.exact.reading import numbers


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


def two_valued(y: Any, rows: int) -> tuple[NDArray, NDArray]:
    """(−1.0 or +1.0 for each label, the two labels in order)."""
    y = np.asarray(y)
    if y.shape != (rows,):
        raise ValueError(f"y must have one label for each of the {rows} rows; got the shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity; labels must be two values")
    try:
        classes = np.unique(y)
    except TypeError:  # labels without an order, so without a second one
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(f"y must hold labels of one type; got {', '.join(kinds)}") from None
    if len(classes) != 2:
        some = ", ".join(map(repr, classes[:4].tolist())) + (", …" if len(classes) > 4 else "")
        raise ValueError(
            f"y must hold two labels; got {len(classes)}: {some}"
            + (". One class alone is separable by any constant; give −1 and +1" if len(classes) == 1 else "")
        )
    return np.where(y == classes[1], 1.0, -1.0), classes
