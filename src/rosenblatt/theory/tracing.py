"""A run of the perceptron with its proof beside it.

Each update adds at least ηγ to ⟨w, u⟩ and at most η²R² + 2ηδ to ‖w‖². So ⟨w, u⟩ is above a wall that rises like k, ‖w‖
below one that rises like √k, and ⟨w, u⟩ ≤ ‖w‖: between the walls there is room for finitely many updates.
`rosenblatt.plot.proof` draws it, and `Trace.to_html` makes it a page to step through.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidParameter, NumericOverflow
from rosenblatt.exact.reading import COUNT, POSITIVE, Matrix, MatrixLike
from rosenblatt.feasibility.rows import dense_row, row_lengths
from rosenblatt.theory import bounds, run_page
from rosenblatt.theory.cycles import DELTA
from rosenblatt.theory.geometry import NotSeparable, gamma_seen
from rosenblatt.theory.signed import RandomSeed, Signed, read

ORDERS = ("cyclic", "shuffle", "random", "most-violated", "most-violated-normalised")
_ROUNDING = 1e-9  # what floats may be wrong by, in parts of the wall

_LARGEST = 1e150  # length of a row, whose square, times a rate, float64 can hold


class Repeat(NamedTuple):
    """The weights came back, and the rows that follow are the same: the run goes round for ever.

    Attributes
    ----------
    first : int
        The number of updates after which the cycle is entered.
    length : int
        The number of updates of one round.
    """

    first: int
    length: int


@dataclass(frozen=True, eq=False)
class Trace:
    """A run of the perceptron with the quantities of its convergence proof.

    They are arrays over k = 0 … t, the state after k updates, and what each of the t updates did.

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
    rows : Signed
        The rows times their label, with the constant feature: `rows.A`, `rows.y`, `rows.classes`, `rows.constant`.
    start : array
        w₀, with the coordinates of u.
    order : str or tuple of int
        The order in which rows were visited.

    Examples
    --------
    >>> run = trace([[2, 1], [1, 3], [-1, -2], [-3, 0]], [1, 1, -1, -1])
    >>> run.updates, run.example.tolist(), round(run.bound, 2), run.converged
    (1, [0], 2.44, True)
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
    rows: Signed
    start: NDArray
    order: str | tuple[int, ...]

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
        return self.progress[0] + k * (self.rate * self.gamma), np.sqrt(self.norm[0] ** 2 + k * self._growth)

    @property
    def _growth(self) -> float:
        """What an update adds to ‖w‖² at most."""
        return self.rate * (self.rate * self.radius**2 + 2 * self.delta)

    @property
    def wall_formulas(self) -> tuple[str, str]:
        """The formulas of the lower and of the upper wall, without what this run does not need."""
        rate = "" if self.rate == 1 else "η"
        step = ("R²" if not rate else "η²R²") + (f" + 2{rate}δ" if self.delta else "")
        if self.norm[0] > 0:
            return f"⟨w₀, u⟩ + k{rate}γ", f"√(‖w₀‖² + k({step}))"
        return f"k{rate}γ", f"√(k({step}))" if self.delta else f"√k {rate}R"

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

    @property
    def repeat(self) -> Repeat | None:
        """The cycle that the run entered; None if it entered none, or if the order of its rows is drawn by chance.

        Weights that are the same to the last bit, before the same row, are followed by the same updates.
        """
        if self.converged:
            return None
        if self.order in ("most-violated", "most-violated-normalised"):
            before = [0] * (self.updates + 1)  # the weights alone decide which row is next
        else:
            visits = range(len(self.rows.y)) if self.order == "cyclic" else self.order
            if isinstance(visits, str) or len(visits) > len(self.rows.y):
                return None
            before = [visits[-1], *self.example.tolist()]  # and here, the row visited before
        seen: dict[tuple[bytes, int], int] = {}
        for k, (w, row) in enumerate(zip(self._states(), before, strict=True)):
            state = hashlib.blake2b(w.tobytes(), digest_size=16).digest(), row
            if state in seen:
                return Repeat(seen[state], k - seen[state])
            seen[state] = k
        return None

    def _states(self) -> Iterator[NDArray]:
        """The weights after 0, 1, … updates."""
        w = self.start + 0.0  # no −0, which is 0 in other bits
        yield w
        for i in self.example.tolist():
            w = w + self.rate * dense_row(self.rows.A, i)
            yield w

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        names: Sequence[str] | None = None,
        axes: Sequence[int | str] | None = None,
        title: str = "The perceptron, update by update",
    ) -> None:
        """Save the run as a page to step through: rows, line and weights, and the two walls of the proof closing in.

        It is one file that loads nothing from elsewhere. Arrow keys go one update forward and back, Space plays and
        pauses, Home and End go to the start and to the end, and `run.html#step=17` opens the page after 17 updates.
        Where the weights come back to where they were (see `repeat`), it shows the cycle.

        Rows of two features are drawn in their plane. Of more, two can be chosen; the line is then the one that the
        hyperplane cuts out of the plane through the row that is shown.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        names : sequence of str, optional
            A name for each column of X; x₁, x₂, … by default.
        axes : two columns, optional
            The columns to draw, by number from 0 or by name. By default both if there are two, else none.
        title : str, optional
            The heading of the page.

        Raises
        ------
        InvalidParameter
            If there are not as many names as columns, or the axes are not two of them.
        OutputError
            If the file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> run = trace([[2, 1], [1, 3], [-1, -2], [-3, 0]], [1, 1, -1, -1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run.to_html(os.path.join(folder, "run.html"))
        ...     os.path.getsize(os.path.join(folder, "run.html")) < 50_000
        True
        """
        names = run_page.column_names(self.rows, names)
        plane = run_page.plane_axes(self.rows, names, axes)
        columns, rows = run_page.page_rows(self.rows, self.example, names, plane)
        run_page.write_page(path, title, {
            **rows,
            "features": self.rows.features,
            "rows": len(self.rows.y),
            "classes": [f"{c:g}" if isinstance(c, float) else str(c) for c in self.rows.classes.tolist()],
            "start": self.start[columns].tolist(),
            "separator": self.separator[columns].tolist(),
            "example": self.example.tolist(),
            "margin": run_page.short(self.margin),
            "progress": run_page.short(self.progress),
            "norm": run_page.short(self.norm),
            "lower": [float(self.progress[0]), self.rate * self.gamma],  # at k = 0, and what each update adds
            "upper": [float(self.norm[0] ** 2), self._growth],  # the same of its square
            "formulas": self.wall_formulas,
            "gamma": self.gamma, "radius": self.radius, "delta": self.delta, "rate": self.rate,
            "bound": self.bound if math.isfinite(self.bound) else None,
            "converged": self.converged, "broken": self.broken, "repeat": self.repeat,
        })  # fmt: skip

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
    rows = read(X, y, constant)
    A = rows.A
    norms = row_lengths(A)
    radius = float(norms.max())
    if not np.isfinite(radius) or radius > _LARGEST:
        row = int(np.argmax(norms))
        raise NumericOverflow(f"the squared length of row {row} of X overflows", row=row, hint="scale X down")
    u, measured = _widest_separator(X, y, constant) if separator is None else _margin_of(A, separator)
    claimed = measured if gamma is None else float(gamma)
    w = np.zeros(A.shape[1]) if start is None else _vector("start", start, A.shape[1])
    begin, first = (float(np.linalg.norm(w)), float(w @ u)), w
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
                 claimed, radius, float(delta), float(rate), bound, converged, rows, first,
                 order if isinstance(order, str) else tuple(int(i) for i in order))  # fmt: skip


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
