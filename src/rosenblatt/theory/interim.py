"""The widest margin through the origin, by the nearest point of the rows' hull; until `geometry` has it certified."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls

from rosenblatt.theory.signed import read


class Bracket(NamedTuple):
    """low ≤ γ ≤ high; `separator` is a unit vector of margin `low`, or zero where the hull contains the origin."""

    separator: NDArray
    low: float
    high: float


def widest(X: Any, y: Any, constant: float) -> Bracket:
    """A unit vector whose least product with the rows y·(x, κ) is within rounding the largest there is."""
    A = read(X, y, constant).A
    rows = A.toarray() if sp.issparse(A) else A
    radius = float(np.linalg.norm(rows, axis=1).max())
    if radius == 0:
        return Bracket(np.zeros(rows.shape[1]), 0.0, 0.0)
    # The weights of min ‖Aᵀλ‖² + (1 − Σλ)², λ ≥ 0, divided by their sum, are those of the hull's nearest point.
    system = np.vstack([rows.T / radius, np.ones(len(rows))])
    weights, _ = nnls(system, np.append(np.zeros(rows.shape[1]), 1.0), maxiter=100 * len(rows))
    point = rows.T @ (weights / weights.sum())
    length = float(np.linalg.norm(point))
    if length <= 1e-9 * radius:
        return Bracket(np.zeros(rows.shape[1]), 0.0, 0.0)
    unit = point / length
    return Bracket(unit, float((rows @ unit).min()), length)
