"""Whatever is a combination of many rows is one of few, with the same sum of weights: at most d + 1 (Carathéodory 1907).
Move the weight of one row after another to a basis, as a pivot of the simplex method does, until only the basis is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from rosenblatt.engine.jit import jit

RANK = 1e-9  # singular values below this part of the largest are zero
_LIGHT = 1e-3
_AGAIN = 64  # pivots after which the basis is inverted anew


def thinned(rows: NDArray, shares: NDArray) -> tuple[NDArray, NDArray]:
    """(numbers of some rows, new shares): affinely independent rows, so d + 1 at most.

    Σ shareᵢ and Σ shareᵢ·rowᵢ stay what they are. All shares are positive at first, and none is negative at the end.
    """
    lifted = np.column_stack([rows, np.ones(len(rows))])
    _, s, V = np.linalg.svd(lifted, full_matrices=False)
    lifted = np.ascontiguousarray(lifted @ V[s > RANK * s[0]].T)  # coordinates in the space they span
    rank = lifted.shape[1]
    heavy = np.maximum(shares, _LIGHT * shares.max())  # prefer heavy rows, but not to a basis that is nearly singular
    _, pivots = qr((lifted * heavy[:, None]).T, mode="r", pivoting=True)
    basis, others = pivots[:rank].astype(np.int64), pivots[rank:]
    others = others[np.argsort(shares[others], kind="stable")].astype(np.int64)
    weights, done = shares[basis], 0
    while True:
        inverse = np.linalg.inv(lifted[basis].T)
        done = pour(lifted, shares, others, basis, weights, inverse, done)
        if done == others.size:
            return basis, weights


@jit
def pour(lifted, shares, others, basis, weights, inverse, done):
    """Move the weights of further rows to the basis, row by row, for some pivots; the number of rows poured out by then."""
    rank = basis.size
    c = np.empty(rank)
    pivots = 0
    while done < others.size and pivots < _AGAIN:
        q = others[done]
        most, out = shares[q], -1  # of the row's weight that can go to the basis, and who stops it
        for i in range(rank):
            total = 0.0
            for j in range(rank):
                total += inverse[i, j] * lifted[q, j]
            c[i] = total
            if total < -1e-12 and weights[i] < -total * most:
                most, out = weights[i] / -total, i
        for i in range(rank):
            weights[i] = max(0.0, weights[i] + most * c[i])
        done += 1
        if out >= 0:
            weights[out] = shares[q] - most
            basis[out] = q
            pivots += 1
            for j in range(rank):
                inverse[out, j] /= c[out]
            for i in range(rank):
                if i != out:
                    for j in range(rank):
                        inverse[i, j] -= c[i] * inverse[out, j]
    return done
