"""From weights with which the rows nearly add up to zero to a few rows that do: thin them out until at most one dependence
is left, and solve for it exactly.

Whatever is a combination of many rows is one of few, with the same sum of weights: at most d + 1 (Carathéodory 1907).
Move the weight of one row after another to a basis, as a pivot of the simplex method does, until only the basis is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from rosenblatt.engine.jit import jit
from rosenblatt.exact.certificates import Combination
from rosenblatt.exact.reading import Matrix, dense
from rosenblatt.exact.rounding import combination

RANK = 1e-9  # singular values below this part of the largest are zero
_LIGHT = 1e-3
_AGAIN = 64  # pivots after which the basis is inverted anew
_WORK = 1 << 31  # multiplications to factor the rows with weights, at most: a few seconds


def thin(rows: NDArray, shares: NDArray) -> tuple[NDArray, NDArray]:
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


def prove(A: Matrix, weights: NDArray, exact: Matrix | None = None) -> Combination | None:
    """A combination of rows of A, exactly zero, near to these weights; None if there is none near.

    Where the `exact` rows are integers that floats cannot hold, A is near to them, and the combination is theirs.
    """
    held = np.flatnonzero(weights > 0)
    if held.size * A.shape[1] * min(held.size, A.shape[1]) > _WORK:
        return None
    part = dense(A[held])
    lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
    unit, shares = part / lengths[:, None], weights[held] * lengths
    kept, shares = thin(unit, shares / shares.sum())
    order = np.argsort(kept)
    kept, shares = kept[order], shares[order]
    if not _depend(unit[kept]):
        return None
    return combination(A if exact is None else exact, held[kept].tolist(), shares / lengths[kept])


def _depend(rows: NDArray) -> bool:
    """Whether the rows depend on one another, with weights that are not clearly of both signs.

    Affinely independent rows have one dependence at most; rows that have no part in it have the weight 0 there.
    """
    U, s, _ = np.linalg.svd(rows, full_matrices=True)
    k, d = rows.shape
    if k <= d and s[-1] > RANK * s[0]:
        return False
    dependence = U[:, -1] * (1 if U[:, -1].sum() > 0 else -1)
    return bool(dependence.min() > -1e-6)
