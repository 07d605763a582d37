"""A run of the perceptron with its proof beside it.

Each update adds at least ηγ to ⟨w, u⟩ and at most η²R² + 2ηδ to ‖w‖². So ⟨w, u⟩ is above a wall that rises like k, ‖w‖
below one that rises like √k, and ⟨w, u⟩ ≤ ‖w‖: between the walls there is room for finitely many updates.
`rosenblatt.plot.proof` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidParameter, NumericOverflow
from rosenblatt.exact.reading import COUNT, POSITIVE, Matrix, MatrixLike
from rosenblatt.feasibility.rows import dense_row, row_lengths
from rosenblatt.theory import bounds
from rosenblatt.theory.cycles import DELTA
from rosenblatt.theory.geometry import NotSeparable, gamma_seen
from rosenblatt.theory.signed import RandomSeed, read

ORDERS = ("cyclic", "shuffle", "random", "most-violated", "most-violated-normalised")
_ROUNDING = 1e-9  # what floats may be wrong by, in parts of the wall

_LARGEST = 1e150  # length of a row, whose square, times a rate, float64 can hold


@dataclass(frozen=True, eq=False)
class Trace:
    """A run of the perceptron with the quantities of its convergence proof: arrays over k = 0 … t, the state after k
    updates, and what each of the t updates did.

    Attributes
    ----------
    example : (t,) array
        The row of each update.
    margin : (t,) array
        Its margin ⟨w, a⟩ ≤ δ before the update.
    progress : (t + 1,) array
        ⟨w, u⟩.
    norm : (t + 1,) array
        ‖w‖.
    cosine : (t + 1,) array
        ⟨w, u⟩/‖w‖; NaN while w = 0.
    weights : array
        The last w; the weight of the constant feature, if there is one, comes last.
    separator : array
        u, of length 1, with the same coordinates.
    gamma : float
        The margin of u that the lower bound assumes.
    radius, delta, rate : float
        R, δ and η.
    bound : float
        The largest number of updates that the theorem allows, where lower and upper bound meet; infinity if they do
        not.
    converged : bool
        Whether no row was left to learn from.
    """

    example: NDArray
    margin: NDArray
    progress: NDArray
    norm: NDArray
    cosine: NDArray
    weights: NDArray
    separator: NDArray
    gamma: float
    radius: float
    delta: float
    rate: float
    bound: float
    converged: bool

    def walls(self, k: float | NDArray) -> tuple[Any, Any]:
        """Return the bounds of the proof after k updates: ⟨w, u⟩ ≥ ⟨w₀, u⟩ + kηγ, and ‖w‖ ≤ √(‖w₀‖² + k(η²R² + 2ηδ)).

        The notes of IIIT-H SMAI print ‖w‖² ≤ kR² for the weights after k + 1 updates, which the first update refutes
        (k = 0); those of CMU 10-607 print ‖x‖² = R² for ≤ R².

        Parameters
        ----------
        k : float or array
            The number of updates.

        Returns
        -------
        lower, upper : float or array
            The lower bound of ⟨w, u⟩ and the upper bound of ‖w‖.
        """
        growth = self.rate * (self.rate * self.radius**2 + 2 * self.delta)
        return self.progress[0] + k * (self.rate * self.gamma), np.sqrt(self.norm[0] ** 2 + k * growth)

    @property
    def k(self) -> NDArray:
        """0 … t."""
        return np.arange(len(self.norm))

    @property
    def lower(self) -> NDArray:
        """(t + 1,): the wall below ⟨w, u⟩."""
        return self.walls(self.k)[0]

    @property
    def upper(self) -> NDArray:
        """(t + 1,): the wall above ‖w‖."""
        return self.walls(self.k)[1]

    @property
    def updates(self) -> int:
        """t."""
        return len(self.example)

    @property
    def used(self) -> float:
        """The share of the bound that the run took."""
        return self.updates / self.bound if self.bound else 0.0

    @property
    def broken(self) -> int | None:
        """The first k at which a wall was passed; None for a true γ, and for every run that keeps the theorem's conditions.

        ⟨w, u⟩ falls through the lower wall if γ was claimed larger than the margin of u is.
        """
        slack = _ROUNDING * np.maximum(self.upper, np.abs(self.lower))
        passed = (self.progress < self.lower - slack) | (self.norm > self.upper + slack)
        return int(passed.argmax()) if passed.any() else None

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return f"{self.updates:,} updates, {end}; at most {self.bound:,.6g} by R = {self.radius:.4g}, γ = {self.gamma:.4g}"


def trace(
    X: MatrixLike,
    y: ArrayLike,
    *,
    constant: float = 1.0,
    delta: float = 0.0,
    rate: float = 1.0,
    order: str | Sequence[int] = "cyclic",
    separator: ArrayLike | None = None,
    gamma: float | None = None,
    start: ArrayLike | None = None,
    max_updates: int = 100_000,
    random_state: RandomSeed = 0,
) -> Trace:
    """Run the perceptron on two classes until no row is left to learn from, and measure the proof at every update.

    The potential of the notes of Georgia Tech CS 4540, cos(w, u), "starts at 0" there; at w = 0 it is 0/0 and has no value,
    so `cosine` begins with the first update.

    Parameters
    ----------
    X : (rows, features) array, table or scipy sparse matrix
    y : (rows,) array
        Two labels, of which the second is the positive one; without a constant feature also one.
    constant : float
        κ, the constant feature that the intercept is the weight of; 0 for none. R and γ are measured with it.
    delta, rate : float
        δ and η: w += η·a whenever ⟨w, a⟩ ≤ δ, a = y·(x, κ).
    order : a word, or a sequence of row numbers
        As in `Perceptron`: "cyclic", "shuffle", "random", "most-violated", "most-violated-normalised". A sequence of row
        numbers is repeated until the weights rest on all rows.
    separator : array or None
        u, of any length above 0, with the weight of the constant feature last, if there is one. None: the widest one.
        On rows that nothing separates it must be given.
    gamma : float or None
        The margin that the lower wall claims. None: that of u, which makes the wall true. On rows that nothing separates
        no wall that rises is: claim one and see where it breaks.
    start : array or None
        w₀, with the coordinates of u. None: 0.
    max_updates : int
        Where to stop on rows that take longer, or for ever.
    random_state : int or Generator
        For the orders that draw.

    Returns
    -------
    Trace
        The run, with what the proof speaks of at each update.

    Raises
    ------
    NotSeparable
        If nothing separates the classes and no separator is given.
    InvalidData, InvalidParameter
        For what cannot be learned from, and for options that there are not.

    Examples
    --------
    >>> from rosenblatt.theory.tracing import trace
    >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
    >>> run = trace(X, ["spam", "ham", "spam", "ham", "spam", "ham"])
    >>> run.updates, round(run.bound, 6), run.converged, run.broken
    (4, 15.0, True, None)
    >>> for wall in (run.lower, run.norm, run.upper):
    ...     print(wall.round(2))
    [0.   0.58 1.15 1.73 2.31]
    [0.   2.24 2.   2.65 2.45]
    [0.   2.24 3.16 3.87 4.47]
    """
    DELTA.check("delta", delta)
    POSITIVE.check("rate", rate)
    COUNT.check("max_updates", max_updates)
    A = read(X, y, constant).A
    norms = row_lengths(A)
    radius = float(norms.max())
    if not np.isfinite(radius) or radius > _LARGEST:
        row = int(np.argmax(norms))
        raise NumericOverflow(f"the squared length of row {row} of X overflows", row=row, hint="scale X down")
    u, measured = _widest_separator(X, y, constant) if separator is None else _margin_of(A, separator)
    claimed = measured if gamma is None else float(gamma)
    w = np.zeros(A.shape[1]) if start is None else _vector("start", start, A.shape[1])
    begin = (float(np.linalg.norm(w)), float(w @ u))
    example, margin, converged = list[int](), list[float](), False
    norm, progress = [begin[0]], [begin[1]]
    epoch = _epochs(order, norms, delta, np.random.default_rng(random_state))
    while not converged:  # visit the rows that each epoch names
        scores = A @ w
        visits, at, converged = epoch(scores), 0, bool((scores > delta).all())
        while (wrong := scores[visits[at:]] <= delta).any() and len(example) < max_updates:
            at += int(wrong.argmax())
            i = int(visits[at])
            example.append(i)
            margin.append(float(scores[i]))
            w = w + rate * dense_row(A, i)
            norm.append(float(np.linalg.norm(w)))
            progress.append(float(w @ u))
            scores, at = A @ w, at + 1
        if wrong.any():
            break
    bound = math.inf
    if claimed > 0:
        bound = bounds.novikoff(radius, claimed, delta=delta, rate=rate, start=begin[0], along=begin[1])
    cosine = np.divide(progress, norm, out=np.full(len(norm), np.nan), where=np.array(norm) > 0)
    return Trace(np.array(example, dtype=np.int64), np.array(margin), np.array(progress), np.array(norm), cosine, w, u,
                 claimed, radius, float(delta), float(rate), bound, converged)  # fmt: skip


def _epochs(
    order: str | Sequence[int], norms: NDArray, delta: float, rng: np.random.Generator
) -> Callable[[NDArray], NDArray]:
    """What names the rows of the next epoch, from the margins of all."""
    count = len(norms)
    divisors = np.maximum(norms, np.finfo(float).tiny)
    words: dict[str, Callable[[NDArray], NDArray]] = {
        "cyclic": lambda scores: np.arange(count),
        "shuffle": lambda scores: rng.permutation(count),
        "random": lambda scores: rng.integers(count, size=count),
        "most-violated": lambda scores: np.array([scores.argmin()]),
        "most-violated-normalised": lambda scores: np.array(
            [np.where(scores <= delta, scores / divisors, np.inf).argmin()]
        ),
    }
    if isinstance(order, str) and order in words:
        return words[order]
    rows = np.asarray(order)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < count)).all():
        raise InvalidParameter("order", order, f"one of {', '.join(ORDERS)}, or numbers of rows from 0 to {count - 1}")
    if len(set(rows.tolist())) < count:
        hint = "rows that are wrong might never be visited"
        raise InvalidParameter("order", order, "a sequence that names every row at least once", hint=hint)
    return lambda scores: rows


def _widest_separator(X: MatrixLike, y: ArrayLike, constant: float) -> tuple[NDArray, float]:
    """(the unit vector of widest margin, its margin)."""
    try:
        found = gamma_seen(X, y, constant)
    except NotSeparable as none:
        hint = "pass separator=u to trace with any vector u"
        raise NotSeparable(none.problem, none.certificate, hint=hint) from none
    return found.separator, found.lower


def _margin_of(A: Matrix, separator: ArrayLike) -> tuple[NDArray, float]:
    """(the separator, of length 1, its margin)."""
    u = _vector("separator", separator, A.shape[1])
    length = float(np.linalg.norm(u))
    if length == 0:
        raise InvalidParameter("separator", separator, "a vector that is not zero")
    return u / length, float((A @ (u / length)).min())


def _vector(name: str, values: ArrayLike, size: int) -> NDArray:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        allowed = f"{size} finite numbers, one a feature and, if there is one, the last for the constant one"
        raise InvalidParameter(name, values, allowed)
    return vector
