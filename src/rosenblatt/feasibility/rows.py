"""The rows of a matrix, dense or CSR: their lengths, and the rows rescaled."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.errors import InvalidData
from rosenblatt.exact.reading import Matrix, dense

NOTHING = 1e-15  # a length that is what rounding leaves of zero
LARGEST = 1 << 25  # entries of the dense arrays of a method that rescales: 256 MiB


def row_lengths(A: Matrix) -> NDArray:
    """‖aᵢ‖ for each row, which is first brought to a size that has a square."""
    if not isinstance(A, np.ndarray):
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


def scale_rows(A: Matrix, factors: NDArray) -> Matrix:
    """Each row times its factor."""
    if sp.issparse(A):
        return sp.csr_array(sp.diags_array(factors) @ A)
    return A * factors[:, None]


def dense_row(A: Matrix, i: int) -> NDArray:
    """A copy of one row."""
    return dense(A[[i]])[0]


def dense_unit_rows(A: Matrix, method: str) -> tuple[NDArray, NDArray]:
    """(the rows at length 1, dense; their lengths)."""
    n, d = A.shape
    if (n + d) * d > LARGEST:
        raise InvalidData(
            f"A of shape {A.shape} is too large for the method {method!r}: its dense arrays of rows × columns and columns "
            f"× columns would hold {(n + d) * d:,} numbers, and {LARGEST:,} are allowed",
            hint="'perceptron', 'von-neumann' and 'smooth' only multiply with A",
        )
    lengths = row_lengths(A)
    return np.ascontiguousarray(dense(scale_rows(A, 1 / lengths))), lengths
