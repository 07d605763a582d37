"""Rows seen through a linear map that is changed as one goes, at length 1; what is found of them is said of those given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.feasibility.rows import dense_unit
from rosenblatt.feasibility.stages import Stage


@dataclass
class Mapped:
    """rowsᵢ = 2^shrinkᵢ · aᵢ B, of length 1, up to one factor for all rows."""

    rows: NDArray  # (rows, d), C order
    B: NDArray  # (d, d)
    shrink: NDArray  # (rows,): a logarithm, for the numbers themselves may be too small for floats
    unit: NDArray  # (rows, d): aᵢ/‖aᵢ‖
    lengths: NDArray  # (rows,): ‖aᵢ‖

    @staticmethod
    def of(A: Any, method: str) -> Mapped:
        unit, lengths = dense_unit(A, method)
        return Mapped(unit.copy(), np.eye(A.shape[1]), -np.log2(lengths), unit, lengths)

    def stretch(self, direction: NDArray, by: float) -> None:
        """Multiply rows and B from the right with I + by·u uᵀ, u of length 1.

        The rows are mapped and measured again, not computed from A and B: an error of rounding then stays small beside its
        row, however thin B has become.
        """
        self.rows += by * np.outer(self.rows @ direction, direction)
        now = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows))
        self.rows /= now[:, None]
        self.shrink -= np.log2(now)
        self.B += by * np.outer(self.B @ direction, direction)
        self.B *= 2.0 ** -math.frexp(np.abs(self.B).max())[1]

    def stage(self, w: NDArray, solved: bool, counts: NDArray, updates: int, rescalings: int) -> Stage:
        """What w and the counts of updates mean for the rows given."""
        added = np.flatnonzero(counts)
        weights = np.zeros(len(counts))
        weights[added] = counts[added] * np.exp2(self.shrink[added] - self.shrink[added].max())
        share = weights * self.lengths
        reach = float(np.linalg.norm(self.unit.T @ share) / share.sum())
        return Stage(self.B @ w, solved, weights, reach, updates, rescalings)
