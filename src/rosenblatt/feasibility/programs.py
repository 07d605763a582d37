"""A linear program in the form of scipy's `linprog`, as the exact numbers it is made of, and the three answers to it. Each
can be checked with the program alone, in fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.certificates import Certificate
from rosenblatt.exact.dyadic import about, dot
from rosenblatt.exact.reading import MatrixLike, dense

Vector = tuple[Fraction, ...]
Bounds: TypeAlias = Sequence[Any] | None  # (low, high) for all variables, or a pair for each; None for no bound


@dataclass(frozen=True)
class Program:
    """Minimise ⟨c, x⟩ with ⟨g, x⟩ ≤ h for every inequality and ⟨e, x⟩ = f for every equation."""

    c: Vector
    inequalities: tuple[Vector, ...]  # (g, h)
    equations: tuple[Vector, ...]  # (e, f)
    names: tuple[str, ...]  # of the inequalities: "A_ub[3]", "lower bound of x[0]"

    @staticmethod
    def of(
        c: ArrayLike,
        A_ub: MatrixLike | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: MatrixLike | None = None,
        b_eq: ArrayLike | None = None,
        bounds: Bounds = (0, None),
    ) -> Program:
        """Return the program of the arguments of scipy's `linprog`; variables are ≥ 0 unless `bounds` say otherwise."""
        cost = read_vector(c, "c")
        n = len(cost)
        upper = _rows(A_ub, b_ub, n, "A_ub", "b_ub")
        names = [f"A_ub[{i}]" for i in range(len(upper))]
        for j, (low, high) in enumerate(_bounds(bounds, n)):
            for value, sign, name in ((low, -1, "lower"), (high, 1, "upper")):
                if value is not None:
                    upper.append((*(Fraction(sign * (k == j)) for k in range(n)), sign * value))
                    names.append(f"{name} bound of x[{j}]")
        return Program(cost, tuple(upper), tuple(_rows(A_eq, b_eq, n, "A_eq", "b_eq")), tuple(names))

    def violation(self, x: Sequence[Fraction]) -> str | None:
        """None if x satisfies everything; otherwise what it does not."""
        if (wrong := inexact(x)) is not None:
            return wrong
        if len(x) != len(self.c):
            return f"the point has {len(x)} coordinates, the program {len(self.c)} variables"
        for name, row in zip(self.names, self.inequalities, strict=True):
            if (excess := dot(row[:-1], x) - row[-1]) > 0:
                return f"{name} is exceeded by {about(excess)}"
        for k, row in enumerate(self.equations):
            if difference := dot(row[:-1], x) - row[-1]:
                return f"A_eq[{k}] is missed by {about(difference)}"
        return None

    def combine(self, u: Sequence[Fraction], v: Sequence[Fraction]) -> Vector | str:
        """Σ uᵢ·(gᵢ, hᵢ) + Σ vₖ·(eₖ, fₖ), an inequality that every feasible x satisfies if u ≥ 0; or why not."""
        if (wrong := inexact(u) or inexact(v)) is not None:
            return wrong
        if (len(u), len(v)) != (len(self.inequalities), len(self.equations)):
            there = f"{len(self.inequalities)} inequalities and {len(self.equations)} equations"
            return f"{len(u)} and {len(v)} multipliers for {there}"
        if (negative := next((i for i, value in enumerate(u) if value < 0), None)) is not None:
            return f"the multiplier of {self.names[negative]} is negative"
        total = [Fraction(0)] * (len(self.c) + 1)
        for value, row in zip((*u, *v), (*self.inequalities, *self.equations), strict=True):
            if value:
                total = [a + value * b for a, b in zip(total, row, strict=True)]
        return tuple(total)


@dataclass(frozen=True)
class Optimal(Certificate):
    """A point that satisfies everything, and multipliers that prove that none is better: −c = Σ u g + Σ v e with u ≥ 0, so
    that ⟨c, x⟩ ≥ −Σ u h − Σ v f for every feasible x, which is what the point attains."""

    point: Vector
    u: Vector
    v: Vector
    value: Fraction

    def refutation(self, program: Program) -> str | None:
        """Return None if it is true of the program; otherwise a sentence that says why it is not."""
        if (wrong := program.violation(self.point)) is not None:
            return wrong
        if dot(program.c, self.point) != self.value:
            return f"the point's value is {about(dot(program.c, self.point))}"
        total = program.combine(self.u, self.v)
        if isinstance(total, str):
            return total
        if any(a != -b for a, b in zip(total[:-1], program.c, strict=True)):
            return "the multipliers do not add up to −c"
        return None if -total[-1] == self.value else f"the multipliers prove no more than {about(-total[-1])}"


@dataclass(frozen=True)
class Infeasible(Certificate):
    """Multipliers u ≥ 0 and v with Σ u g + Σ v e = 0 and Σ u h + Σ v f < 0: a sum of the constraints that says 0 < 0
    (Farkas 1902)."""

    u: Vector
    v: Vector

    def refutation(self, program: Program) -> str | None:
        """Return None if it is true of the program; otherwise a sentence that says why it is not."""
        return no_contradiction(program.combine(self.u, self.v))


@dataclass(frozen=True)
class Unbounded(Certificate):
    """A point that satisfies everything, and a direction in which one may go on for ever, getting better."""

    point: Vector
    ray: Vector

    def refutation(self, program: Program) -> str | None:
        """Return None if it is true of the program; otherwise a sentence that says why it is not."""
        if (wrong := program.violation(self.point)) is not None:
            return wrong
        if (wrong := inexact(self.ray)) is not None:
            return wrong
        if len(self.ray) != len(program.c) or dot(program.c, self.ray) >= 0:
            return "nothing improves along the ray"
        for name, row in zip(program.names, program.inequalities, strict=True):
            if dot(row[:-1], self.ray) > 0:
                return f"the ray leaves {name}"
        for k, row in enumerate(program.equations):
            if dot(row[:-1], self.ray):
                return f"the ray leaves A_eq[{k}]"
        return None


@dataclass(frozen=True)
class Solution:
    """The answer of `solve_lp`.

    Attributes
    ----------
    status : "optimal", "infeasible", "unbounded" or "undecided"
    x : array or None
        The optimal point, or the best feasible one known; `certificate.point` has it exactly.
    fun : float or None
        Its value.
    lower : float
        No feasible point has a smaller value, by exact multipliers; −∞ if nothing is known.
    certificate : Optimal, Infeasible, Unbounded or None
    method : str
        The method that found the points and the multipliers; all were checked exactly.
    n_updates, n_rescalings, n_rounds : int
        Its work in all, and the homogeneous systems it was given.
    reason : str
        Why it is undecided, if it is.
    """

    status: str
    x: NDArray | None
    fun: float | None
    lower: float
    certificate: Optimal | Infeasible | Unbounded | None
    method: str
    n_updates: int
    n_rescalings: int
    n_rounds: int
    reason: str = ""

    def verify(self, *program: Any, **named: Any) -> bool:
        """Return whether the certificate is true of a program, in exact arithmetic.

        Parameters
        ----------
        *program, **named
            The program: c, A_ub, b_ub, A_eq, b_eq and bounds, as `solve_lp` takes them.
        """
        return isinstance(self.certificate, Certificate) and self.certificate.verify(Program.of(*program, **named))

    @property
    def success(self) -> bool:
        """Whether there is an optimal point; scipy's word for it."""
        return self.status == "optimal"

    @property
    def message(self) -> str:
        """The answer in a sentence; scipy's word for it."""
        return str(self)

    def __str__(self) -> str:
        work = f"{self.method}, {self.n_rounds} systems, {self.n_updates:,} updates, {self.n_rescalings:,} rescalings"
        if self.status == "optimal":
            return f"optimal: {self.fun:.10g}, proved exactly ({work})"
        if self.status == "undecided":
            known = "no feasible point is known" if self.fun is None else f"within [{self.lower:.10g}, {self.fun:.10g}]"
            return f"undecided, {known}: {self.reason} ({work})"
        return f"{self.status}, proved exactly ({work})"


def no_contradiction(total: Vector | str) -> str | None:
    """None if a sum of constraints says 0 < 0; otherwise why it does not, or what was wrong with its multipliers."""
    if isinstance(total, str):
        return total
    if any(total[:-1]):
        return "the multipliers do not add up to zero"
    return None if total[-1] < 0 else "the sum of the constraints is not a contradiction"


def inexact(values: object) -> str | None:
    """None for a tuple of integers and fractions; otherwise why nothing can be proved with it."""
    if isinstance(values, tuple) and all(isinstance(value, int | Fraction) for value in values):
        return None
    return f"a proof is made of tuples of integers and fractions, not of {values!r}"


def near_float(value: Fraction, side: float | None = None) -> float:
    """The nearest float, infinity where none is near; with the side −∞ the nearest that is not above, with ∞ not below."""
    try:
        near = float(value)
    except OverflowError:
        near = inf if value > 0 else -inf
    if side is not None and (near > value if side < 0 else near < value):
        return nextafter(near, side)
    return near


def _number(value: Any, name: str) -> Fraction:
    try:
        return Fraction(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidData(f"{name} must hold finite numbers; got {value!r}") from None


def read_vector(values: ArrayLike, name: str) -> Vector:
    values = np.asarray(values, dtype=object)
    if max(values.shape, default=1) != values.size or not values.size:  # a column, a row and one number are vectors too
        raise InvalidData(f"{name} must be a vector of at least one number; got the shape {values.shape}")
    return tuple(_number(value, name) for value in values.flat)


def _rows(A: MatrixLike | None, b: ArrayLike | None, n: int, name: str, side: str) -> list[Vector]:
    if A is None and b is None:
        return []
    if A is None or b is None:
        raise InvalidData(f"{name} and {side} must be passed together; one of them is missing")
    matrix = dense(A) if sp.issparse(A) else np.asarray(A, dtype=object)
    right = read_vector(b, side) if np.size(b) else ()
    if matrix.shape != (len(right), n):
        raise InvalidData(
            f"{name} must have {len(right)} rows, as {side}, and {n} columns, as c; got the shape {matrix.shape}"
        )
    return [(*(_number(value, name) for value in row), h) for row, h in zip(matrix.tolist(), right, strict=True)]


def _bounds(bounds: Bounds, n: int) -> list[tuple[Fraction | None, Fraction | None]]:
    try:
        pairs: list[Any] = [(0, None)] if bounds is None else [*bounds] or [(0, None)]
        if len(pairs) == 2 and all(np.ndim(value) == 0 for value in pairs):
            pairs = [pairs]
        pairs = [(low, high) for low, high in (pairs * n if len(pairs) == 1 else pairs)]
    except (TypeError, ValueError):
        pairs = []
    if len(pairs) != n:
        raise InvalidParameter("bounds", bounds, f"one pair (low, high), or one for each of the {n} variables")
    return [(_bound(low, -1), _bound(high, 1)) for low, high in pairs]


def _bound(value: Any, sign: int) -> Fraction | None:
    """None for a bound that is none: None, −∞ below, +∞ above."""
    return None if value is None or value == sign * np.inf else _number(value, "bounds")
