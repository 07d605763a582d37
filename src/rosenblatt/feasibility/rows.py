"""The rows of a matrix, dense or CSR: their lengths, and the rows rescaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

NOTHING = 1e-15  # a length that is what rounding leaves of zero
LARGEST = 1 << 25  # entries of the dense arrays of a method that rescales: 256 MiB


def row_lengths(A: Any) -> NDArray:
    """‖aᵢ‖ for each row, which is first brought to a size that has a square."""
    if sp.issparse(A):
        largest = abs(A).max(axis=1).toarray().ravel()
        scale = np.where(largest > 0, largest, 1.0)
        unit = A.data / np.repeat(scale, np.diff(A.indptr))
        squares = sp.csr_array((unit * unit, A.indices, A.indptr), shape=A.shape).sum(axis=1)
        return scale * np.sqrt(squares)
    norms = np.empty(len(A))
    step = max(1, (1 << 20) // A.shape[1])
    for start in range(0, len(A), step):
        part = A[start : start + step]
        largest = np.abs(part).max(axis=1)
        scale = np.where(largest > 0, largest, 1.0)
        unit = part / scale[:, None]
        norms[start : start + step] = scale * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    return norms


def scaled(A: Any, factors: NDArray) -> Any:
    """Each row times its factor."""
    if sp.issparse(A):
        return sp.csr_array(sp.diags_array(factors) @ A)
    return A * factors[:, None]


def dense_row(A: Any, i: int) -> NDArray:
    return A[[i]].toarray()[0] if sp.issparse(A) else A[i].copy()


def dense_unit(A: Any, method: str) -> tuple[NDArray, NDArray]:
    """(the rows at length 1, dense; their lengths); a ValueError where that would be too large."""
    n, d = A.shape
    if (n + d) * d > LARGEST:
        raise ValueError(
            f"method {method!r} works with dense arrays of rows × columns and columns × columns; for A of shape {A.shape} "
            f"they hold {(n + d) * d:,} numbers, and {LARGEST:,} are allowed; "
            "use 'perceptron', 'von-neumann' or 'smooth', which only multiply with A"
        )
    lengths = row_lengths(A)
    unit = scaled(A, 1 / lengths)
    return np.ascontiguousarray(unit.toarray() if sp.issparse(unit) else unit), lengths
