"""Arrays become a CSR matrix without a copy of them, and matrices one below the other become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

NARROW = np.iinfo(np.int32).max


def csr(values: NDArray, indices: NDArray, indptr: NDArray, columns: int) -> Any:
    """The matrix of these arrays, whose indices are sorted; 32 bits for places where they are enough."""
    if len(values) <= NARROW and indices.dtype == np.int32:
        indptr = indptr.astype(np.int32)
    else:
        indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    X = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, columns))
    X.has_canonical_format = True
    return X


def infinite_rows(X: Any) -> NDArray[np.int64]:
    """The rows with a value that is not finite."""
    which = np.flatnonzero(~np.isfinite(X.data))
    return np.unique(np.searchsorted(X.indptr, which, side="right") - 1)


def stacked(parts: Sequence[Any]) -> Any:
    """The rows of all parts, as wide as the widest."""
    columns = max(part.shape[1] for part in parts)
    values = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return csr(values, indices, indptr, columns)
