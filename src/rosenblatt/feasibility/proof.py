"""From weights with which the rows nearly add up to zero to a few rows that do: move the weight of one row after another to
a basis, keeping the sums, until d + 1 rows are left (Carathéodory 1907); drop those of little weight until the others
depend on one another; solve for the weights exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import qr

from rosenblatt.exact.certificates import Combination
from rosenblatt.exact.rounding import combination

_RANK = 1e-9  # singular values below this part of the largest are zero
_AGAIN = 64  # pivots after which the basis is inverted anew
_DENSE = 1 << 24  # entries of the rows with weights, at most


def prove(A: Any, weights: NDArray, given: Any = None) -> Combination | None:
    """A combination of rows of A, exactly zero, near to these weights; None if there is none near.

    Where the rows `given` are integers that floats cannot hold, A is near to them, and the combination is theirs.
    """
    given = A if given is None else given
    held = np.flatnonzero(weights > 0)
    if held.size * A.shape[1] > _DENSE:
        return None
    part = A[held]
    part = part.toarray() if sp.issparse(part) else np.asarray(part)
    lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
    unit, shares = part / lengths[:, None], weights[held] * lengths
    kept, shares = thinned(unit, shares / shares.sum())
    order = np.argsort(-shares, kind="stable")
    for k in range(len(order), 1, -1):
        chosen = kept[order[:k]]
        s = np.linalg.svd(unit[chosen], compute_uv=False)
        if k > A.shape[1] or s[-1] < _RANK * s[0]:
            found = combination(given, held[chosen].tolist(), shares[order[:k]] / lengths[chosen])
            if found is not None:
                return found
    return None


def thinned(rows: NDArray, shares: NDArray) -> tuple[NDArray, NDArray]:
    """(some rows' numbers, their shares): affinely independent rows, so at most d + 1, with the same Σ shareᵢ and Σ shareᵢ·rowᵢ."""
    lifted = np.column_stack([rows, np.ones(len(rows))])
    _, s, V = np.linalg.svd(lifted, full_matrices=False)
    lifted = lifted @ V[s > _RANK * s[0]].T  # coordinates in the space they span
    rank = lifted.shape[1]
    _, _, pivots = qr((lifted * shares[:, None]).T, mode="economic", pivoting=True)
    basis, others = pivots[:rank].copy(), pivots[rank:]
    weights, pivoted = shares[basis].copy(), 0
    inverse = np.linalg.inv(lifted[basis].T)
    for q in others[np.argsort(shares[others], kind="stable")]:
        c = inverse @ lifted[q]
        falls = np.flatnonzero(c < -1e-12)
        steps = weights[falls] / -c[falls]
        if not falls.size or steps.min() >= shares[q]:  # the row's whole weight goes to the basis
            weights += shares[q] * c
            continue
        out = falls[steps.argmin()]
        weights += steps.min() * c
        weights[out] = shares[q] - steps.min()
        basis[out], pivoted = q, pivoted + 1
        if pivoted % _AGAIN:
            row = inverse[out] / c[out]
            inverse -= np.outer(c, row)
            inverse[out] = row
        else:
            inverse = np.linalg.inv(lifted[basis].T)
        np.maximum(weights, 0.0, out=weights)
    return basis, weights
