"""Perceptrons on rows that are mapped as one goes, so that a margin that is exponentially small does not stay so.

*Rescaling*. When the perceptron has added one row often and has not got far, no solution can lean on that row: shrink its
direction.

Peña and Soheili (2016), deterministic. Let the rows be of length 1 and αᵢ the updates of row i, so that w = Σ αᵢaᵢ. For a
solution z of length 1 all ⟨aᵢ, z⟩ are positive, so α_j⟨a_j, z⟩ ≤ ⟨w, z⟩ ≤ ‖w‖. Once 6√d·‖w‖ ≤ α_j for some j, every such z
has ⟨a_j, z⟩ ≤ 1/(6√d): all are close to the plane of a_j. Map the rows by I − ½a_j a_jᵀ, and the perceptron starts anew. As
‖w‖² ≤ t after t updates, a climb ends after 36n²d updates at the latest, for n rows, and in practice far sooner.

Where there are many rows, each of them is added seldom. But w, with the same sum of weights, is also a combination of d + 1
of the rows at most (Carathéodory), and the argument holds for the weights of these: one is large enough as soon as
6√d(d + 1)·‖w‖ ≤ t, hence after 36d(d + 1)² updates at the latest, however many rows there are.

The map doubles the part of each solution along a_j and leaves the rest: it doubles volumes, and lengthens a solution of
length 1 to √(1 + 1/(12d)) at most. So the solutions inside the unit ball gain a factor 2·e^(−1/24) or more in volume. At
margin γ they hold a ball of radius γ/(1 + γ), at most the unit ball in the end: at most d·log(1 + 1/γ)/(log 2 − 1/24)
rescalings. In all O(d⁴ log 1/γ) updates, where the paper has O(d⁵ log 1/γ) and the perceptron 1/γ². More than 57·d
rescalings mean a margin below 2⁻⁵³, which floats can hardly tell from none.

A combination of the mapped rows that is zero is one of the rows given, since the maps are invertible: the weights only
change by the rows' lengths.

*Dunagan and Vempala*. If the perceptron does not find a solution soon, a random vector, corrected on the rows it is far
wrong on, soon points roughly towards one: stretch space along it, and the set of solutions grows wider.

Dunagan and Vempala (2008), for rows of length 1 in d dimensions, σ = 1/(32d):

1. the perceptron, from 0, for at most 16d² updates;
2. x at random; while some row has cos(a, x) < −σ, project it out, x ← x − ⟨a, x⟩a; if that takes more than ln d/σ² updates,
   or x vanishes, draw anew. A draw is good with probability ≥ 1/8: see the σ-perceptron;
3. rows ← rows(I + x xᵀ), x of length 1; begin anew.

A good x makes the width of the solutions larger by a factor 1 + 1/(3d). In all O(n d⁴ log d log 1/τ) operations with high
probability, n rows, τ the width at the start. While draws fail, the perceptron is given longer each time, so that where
there is no solution it comes to weights that prove it. After 47 failures, which has a probability (7/8)⁴⁷ < 0.002 if there
are solutions, the search ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.exact.reading import Matrix
from rosenblatt.feasibility.perceptron import ORDERS, Climb, Enough, check_order, in_turn
from rosenblatt.feasibility.proof import thin
from rosenblatt.feasibility.rows import dense_unit_rows
from rosenblatt.feasibility.search import Budget, Method, Stage

_WIDTH = math.ceil(53 * math.log(2) / (math.log(2) - 1 / 24))  # rescalings for each dimension at a margin of 2⁻⁵³
_DRAWS = 47
_PATIENCE = 6  # how often the updates allowed to the perceptron are doubled while draws fail


@dataclass
class MappedRows:
    """rowsᵢ = 2^shrinkᵢ · aᵢ B, of length 1, up to one factor for all rows; what is found of them is said of the aᵢ."""

    rows: NDArray  # (rows, d), C order
    B: NDArray  # (d, d)
    shrink: NDArray  # (rows,): a logarithm, for the numbers themselves may be too small for floats
    unit: NDArray  # (rows, d): aᵢ/‖aᵢ‖
    lengths: NDArray  # (rows,): ‖aᵢ‖

    @staticmethod
    def of(A: Matrix, method: str) -> MappedRows:
        unit, lengths = dense_unit_rows(A, method)
        return MappedRows(unit.copy(), np.eye(A.shape[1]), -np.log2(lengths), unit, lengths)

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

    def climb(
        self, order: Callable[..., Climb], w: NDArray, counts: NDArray, enough: Enough, before: int, rescalings: int
    ) -> Generator[Stage, None, int]:
        """Stages of a climb from w = 0, with ever larger margins while they are solved; the updates in all, with those
        `before`."""
        done, delta, solved = Climb(0, 0, 0), 0.0, True
        while solved:
            done = order(self.rows, w, counts, delta, done, enough)
            solved = done.clean == len(self.rows)
            yield self.stage(w, solved, counts, before + done.updates, rescalings)
            delta, done = 10 * delta or 1.0, done._replace(clean=0)
        return before + done.updates

    def stage(self, w: NDArray, solved: bool, counts: NDArray, updates: int, rescalings: int) -> Stage:
        """What w and the counts of updates mean for the rows given."""
        added = np.flatnonzero(counts)
        weights = np.zeros(len(counts))
        weights[added] = counts[added] * np.exp2(self.shrink[added] - self.shrink[added].max())
        share = weights * self.lengths
        reach = float(np.linalg.norm(self.unit.T @ share) / share.sum())
        return Stage(self.B @ w, solved, weights, reach, updates, rescalings)


@dataclass(frozen=True)
class Rescaling(Method):
    """The perceptron on rows that are rescaled as soon as the counts of its updates allow it.

    Parameters
    ----------
    order : "cyclic" or "most-violated"
        Whether the perceptron takes the rows in turn, or always one whose product is least: fewer updates, more work each.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.feasibility import Plain, find_interior
    >>> A = np.eye(8) - np.tril(np.ones((8, 8)), -1)
    >>> plain, rescaling = find_interior(A, Plain()), find_interior(A, Rescaling(order="most-violated"))
    >>> plain.n_updates, rescaling.n_updates < 5_000, rescaling.verify(A)
    (21845, True, True)
    """

    order: str = "cyclic"
    name = "rescaling"
    updates = 100_000_000

    def __post_init__(self) -> None:
        check_order(self.order)

    def search(self, A: Matrix, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        mapped = MappedRows.of(A, self.name)
        n, d = A.shape
        limit = self.updates if budget.updates is None else budget.updates
        rescalings = _WIDTH * d if budget.rescalings is None else budget.rescalings
        updates, ratio = 0, 6 * math.sqrt(d)
        for r in range(rescalings + 1):
            w, counts = np.zeros(d), np.zeros(n, dtype=np.int64)
            enough = Enough(limit - updates, ratio, ratio * (d + 1))
            updates = yield from mapped.climb(ORDERS[self.order][0], w, counts, enough, updates, r)
            if updates >= limit:
                return "max_updates"
            mapped.stretch(mapped.rows[_heaviest(mapped.rows, counts, w, ratio)].copy(), -0.5)
        return "max_rescalings"


def _heaviest(rows: NDArray, counts: NDArray, w: NDArray, ratio: float) -> int:
    """The row of the largest count; if that is not large enough, of the largest weight when few rows make up w."""
    row = int(counts.argmax())
    if counts[row] >= ratio * np.linalg.norm(w):
        return row
    held = np.flatnonzero(counts)
    few, weights = thin(rows[held], counts[held].astype(np.float64))
    return int(held[few[weights.argmax()]])


@jit
def improve(rows, x, sigma, limit):
    """Project rows that x, of length 1, is far wrong on out of it, until there is none; the updates, or −1 where there are
    more than `limit` or x vanishes."""
    n, d = rows.shape
    position, clean, updates = 0, 0, 0
    while clean < n:
        product = 0.0
        for j in range(d):
            product += rows[position, j] * x[j]
        clean += 1
        if product < -sigma:
            square = 0.0
            for j in range(d):
                x[j] -= product * rows[position, j]
                square += x[j] * x[j]
            updates += 1
            clean = 0
            if updates > limit or square < 1e-24:
                return -updates
            x /= math.sqrt(square)  # the length does not matter to cosines
        position = position + 1 if position + 1 < n else 0
    return updates


@dataclass(frozen=True)
class DunaganVempala(Method):
    """The randomised rescaled perceptron of Dunagan and Vempala, as a method of `find_interior`.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.feasibility import find_interior
    >>> A = np.eye(4) - np.tril(np.ones((4, 4)), -1)
    >>> found = find_interior(A, DunaganVempala(), random_state=0)
    >>> found.exists, found.verify(A)
    (True, True)
    """

    name = "dunagan-vempala"
    updates = 10_000_000

    def search(self, A: Matrix, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        mapped = MappedRows.of(A, self.name)
        n, d = A.shape
        sigma = 1 / (32 * d)
        limit = self.updates if budget.updates is None else budget.updates
        longest = math.floor(math.log(d) / sigma**2)
        updates, r, failed = 0, 0, 0
        while True:
            w, counts = np.zeros(d), np.zeros(n, dtype=np.int64)
            enough = Enough(min(16 * d * d * 2 ** min(failed, _PATIENCE), limit - updates))
            updates = yield from mapped.climb(in_turn, w, counts, enough, updates, r)
            if updates >= limit or r == budget.rescalings or failed == _DRAWS:
                return "max_updates" if updates >= limit else "no_improvement" if failed == _DRAWS else "max_rescalings"
            x = rng.standard_normal((d,))
            x /= np.linalg.norm(x)
            spent = improve(mapped.rows, x, sigma, min(longest, limit - updates - 1))
            updates += abs(spent)
            if updates >= limit:
                yield mapped.stage(w, False, counts, updates, r)
                return "max_updates"
            if spent < 0:
                failed += 1
                continue
            yield mapped.stage(x, bool((mapped.rows @ x).min() > 0), counts, updates, r)
            mapped.stretch(x, 1.0)
            r, failed = r + 1, 0
