"""A run of the perceptron as a noun: which rows it learned from, and what its proof speaks of after each update.

Each update adds at least ηγ to ⟨w, u⟩ and at most η²R² + 2ηδ to ‖w‖². So ⟨w, u⟩ is above a wall that rises like k, ‖w‖
below one that rises like √k, and ⟨w, u⟩ ≤ ‖w‖: between the walls there is room for finitely many updates.
`rosenblatt.plot.proof` draws it, and `Trace.to_html` makes it a page to step through.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.feasibility.rows import dense_row
from rosenblatt.feasibility.search import plural
from rosenblatt.theory import run_page
from rosenblatt.theory.signed import Signed

_ROUNDING = 1e-9  # what floats may be wrong by, in parts of the wall


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
        Whether no row was left to learn from. By prediction, rows may then be left whose score is exactly 0.
    rows : Signed
        The rows times their label, with the constant feature: `rows.A`, `rows.y`, `rows.classes`, `rows.constant`.
    start : array
        w₀, with the coordinates of u.
    order : str or tuple of int
        The order in which rows were visited.
    mistake : str
        What was learned from: "margin" for rows with ⟨w, a⟩ ≤ δ, "prediction" for those whose predicted label is wrong.
    zero_sign : int
        By prediction, the label that a score of exactly 0 is predicted as.

    Examples
    --------
    >>> from rosenblatt.theory import trace
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
    mistake: str = "margin"
    zero_sign: int = 1

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

    @cached_property
    def path(self) -> NDArray:
        """(t + 1, d): the weights after 0, 1, …, t updates, to the last bit.

        They are added up from the rows when first asked for, and kept: 8·(t + 1)·d bytes.
        """
        path = np.empty((self.updates + 1, len(self.start)))
        for k, w in enumerate(self._states()):
            path[k] = w
        return path

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
        """The weights after 0, 1, … updates, one at a time: a run need not be kept whole to find its cycle."""
        w = self.start
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
        >>> from rosenblatt.theory import trace
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
            "zeroSign": self.zero_sign if self.mistake == "prediction" else None,
            "converged": self.converged, "broken": self.broken, "repeat": self.repeat,
        })  # fmt: skip

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        by = " by prediction" if self.mistake == "prediction" else ""
        allowed = f"at most {self.bound:,.6g} by R = {self.radius:.4g}, γ = {self.gamma:.4g}"
        return f"{plural(self.updates, 'update')}{by}, {end}; {allowed}"
