"""From weights with which the rows nearly add up to zero to a few rows that do: thin them out until at most one dependence
is left, and solve for it exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.exact.certificates import Combination
from rosenblatt.exact.rounding import combination
from rosenblatt.feasibility.thinning import RANK, thinned

_WORK = 1 << 31  # multiplications to factor the rows with weights, at most: a few seconds


def prove(A: Any, weights: NDArray, given: Any = None) -> Combination | None:
    """A combination of rows of A, exactly zero, near to these weights; None if there is none near.

    Where the rows `given` are integers that floats cannot hold, A is near to them, and the combination is theirs.
    """
    given = A if given is None else given
    held = np.flatnonzero(weights > 0)
    if held.size * A.shape[1] * min(held.size, A.shape[1]) > _WORK:
        return None
    part = A[held]
    part = part.toarray() if sp.issparse(part) else np.asarray(part)
    lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
    unit, shares = part / lengths[:, None], weights[held] * lengths
    kept, shares = thinned(unit, shares / shares.sum())
    order = np.argsort(kept)
    kept, shares = kept[order], shares[order]
    if not _depend(unit[kept]):
        return None
    return combination(given, held[kept].tolist(), shares / lengths[kept])


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
