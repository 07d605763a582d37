"""A linear program is a chain of homogeneous systems, each of which a perceptron decides and exact arithmetic proves.

With y = (x, τ), a constraint ⟨g, x⟩ ≤ h is the row (−g, h), and asking for positive products with all rows is asking for a
feasible x = y/τ with nothing tight. Where there is none, some rows add up to zero. If that of τ > 0 is among them, they
contradict one another, and the weights are Farkas's multipliers. If not, every feasible point has these rows tight: they
become equations, and there is one dimension less (facial reduction; Borwein and Wolkowicz 1981).

Then the objective. From a feasible point one slides down to a vertex, of value v, and asks for a feasible point with
⟨c, x⟩ < v, by one more row, (−c, v). A solution is a better point to slide from. No solution is weights once more: the
multipliers that prove v optimal. Each round leaves a vertex for good, so the rounds end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import cleared, dot
from rosenblatt.exact.elimination import echelon
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.feasibility.interior import find_interior
from rosenblatt.feasibility.programs import Bounds, Infeasible, Optimal, Program, Solution, Unbounded, Vector
from rosenblatt.feasibility.search import Method, RandomState, check_limit, plural


class _Unanswered(Exception):
    """A homogeneous system was left undecided."""


class _Tight(NamedTuple):
    """Rows that are zero wherever all rows are ≥ 0: Σ weightᵢ·rowᵢ + Σ of earlier such rows and of equations = 0, all these
    weights positive."""

    weights: dict[int, Fraction]
    others: dict[int, Fraction]  # multipliers of any sign, of rows that were equations before


@dataclass
class _Work:
    """What may be done, and what was."""

    options: dict[str, Any]
    max_rounds: float
    n_updates: int = 0
    n_rescalings: int = 0
    n_rounds: int = 0

    def decide(self, matrix: list[list[int]]) -> Interior | Combination:
        if self.n_rounds >= self.max_rounds:
            raise _Unanswered(f"{plural(self.n_rounds, 'system')} solved, which is max_rounds")
        answer = find_interior(np.array(matrix, dtype=object), **self.options)
        self.n_updates += answer.n_updates
        self.n_rescalings += answer.n_rescalings
        self.n_rounds += 1
        if answer.certificate is None:
            raise _Unanswered(f"a system was left open ({answer.reason}), its margin at most {answer.margin[1]:.2g}")
        return answer.certificate


@dataclass
class _Systems:
    """Homogeneous systems over the same rows, of which some are equations."""

    rows: list[Vector]
    equations: list[int]  # rows that are zero
    open: list[int]  # rows that are to be positive
    work: _Work
    tight: list[_Tight] = field(default_factory=list)

    def strict(self, extra: Sequence[Vector]) -> tuple[Vector | None, dict[int, Fraction]]:
        """(y with all open and extra rows positive, {}) or (None, multipliers that make them zero).

        The extra rows are numbered −1, −2, …; the multipliers of open and extra rows are ≥ 0, those of equations any.
        """
        width = len(extra[0])
        system = echelon([self.rows[k] for k in self.equations], width)
        numbers = [*self.open, *(-1 - k for k in range(len(extra)))]
        rows = [*(self.rows[i] for i in self.open), *extra]
        matrix = [system.restrict(row) for row in rows]
        found: Interior | Combination = Combination((len(rows) - 1,), (1,))
        if system.free:  # otherwise y = 0 is the only solution of the equations
            found = self.work.decide([cleared(row) for row in matrix])
        if isinstance(found, Interior):
            return tuple(system.complete(found.x)), {}
        multipliers: dict[int, Fraction] = {}
        total = [Fraction(0)] * width
        for position, weight in zip(found.rows, found.weights, strict=True):
            # The weights belong to integer rows; a row of fractions had been multiplied to become one.
            pairs = zip(cleared(matrix[position]), matrix[position], strict=True)
            multiplier = weight * next((Fraction(a) / b for a, b in pairs if b), Fraction(1))
            multipliers[numbers[position]] = multiplier
            total = [a + multiplier * b for a, b in zip(total, rows[position], strict=True)]
        rest = system.multipliers([-value for value in total])
        return None, multipliers | {k: nu for k, nu in zip(self.equations, rest, strict=True) if nu}

    def relax(self, row: Vector) -> tuple[Vector | None, dict[int, Fraction]]:
        """The same for one more row, which has to be positive, while open rows that cannot be become equations."""
        while True:
            y, multipliers = self.strict([row])
            if y is not None or -1 in multipliers:
                return y, multipliers
            self.tighten(multipliers)

    def tighten(self, multipliers: dict[int, Fraction]) -> None:
        """The open rows among these are zero wherever all rows are ≥ 0: they become equations."""
        weights = {i: value for i, value in multipliers.items() if i in set(self.open)}
        others = {i: value for i, value in multipliers.items() if i not in weights}
        self.tight.append(_Tight(weights, others))
        self.equations += sorted(weights)
        self.open = [i for i in self.open if i not in weights]

    def positive(self, multipliers: dict[int, Fraction]) -> dict[int, Fraction]:
        """The same sum with multipliers ≥ 0 for every row that was once open: a row that is tight came with a sum that is
        zero and has a positive weight for it; enough of that is added."""
        result = dict(multipliers)
        for tight in reversed(self.tight):
            amount = max((-result.get(i, Fraction(0)) / w for i, w in tight.weights.items()), default=Fraction(0))
            if amount > 0:
                for i, value in (*tight.weights.items(), *tight.others.items()):
                    result[i] = result.get(i, Fraction(0)) + amount * value
        return result


def solve_lp(
    c: ArrayLike,
    A_ub: MatrixLike | None = None,
    b_ub: ArrayLike | None = None,
    A_eq: MatrixLike | None = None,
    b_eq: ArrayLike | None = None,
    bounds: Bounds = (0, None),
    *,
    method: str | Method = "rescaling",
    max_updates: int | None = None,
    max_rescalings: int | None = None,
    max_rounds: int | None = 1000,
    random_state: RandomState = 0,
) -> Solution:
    """Solve a linear program, with a proof of the answer: minimise ⟨c, x⟩ with A_ub x ≤ b_ub, A_eq x = b_eq and the bounds.

    Parameters
    ----------
    c, A_ub, b_ub, A_eq, b_eq, bounds
        As in `scipy.optimize.linprog`: floats, integers or fractions, x ≥ 0 unless `bounds` say otherwise. The answer is
        that of the numbers as given, with no tolerance.
    method, max_updates, max_rescalings, random_state
        As in `find_interior`, for each of the systems solved.
    max_rounds : int or None, default=1000
        How many systems to solve at most; None for any number.

    Returns
    -------
    Solution
        The status, the point, and a certificate that proves it.

    Raises
    ------
    InvalidData, InvalidParameter
        If the arguments are not a linear program, the method is unknown, or a limit is not a number.

    Examples
    --------
    >>> from rosenblatt.feasibility import solve_lp
    >>> answer = solve_lp([-1, -1], A_ub=[[1, 2], [3, 1]], b_ub=[4, 6])
    >>> answer.status, answer.certificate.point, answer.certificate.value
    ('optimal', (Fraction(8, 5), Fraction(6, 5)), Fraction(-14, 5))
    >>> solve_lp([1, 0], A_ub=[[1, 1]], b_ub=[-1]).status  # x₁ + x₂ ≤ −1 with both ≥ 0
    'infeasible'
    """
    program = Program.of(c, A_ub, b_ub, A_eq, b_eq, bounds)
    rounds = check_limit(max_rounds, "max_rounds", 0)
    options = {"method": method, "max_updates": max_updates, "max_rescalings": max_rescalings, "random_state": random_state}
    search = _ProgramSearch(program, _Work(options, inf if rounds is None else rounds))
    try:
        search.run()
    except _Unanswered as left:
        search.reason = str(left)
    return search.solution(getattr(method, "name", str(method)))


class _ProgramSearch:
    """A program, its systems, and what is known so far."""

    def __init__(self, program: Program, work: _Work):
        m, p = len(program.inequalities), len(program.equations)
        rows = [(*(-value for value in row[:-1]), row[-1]) for row in (*program.inequalities, *program.equations)]
        self.program, self.work = program, work
        self.systems = _Systems(rows, list(range(m, m + p)), list(range(m)), work)
        self.tau = (*([Fraction(0)] * len(program.c)), Fraction(1))
        self.point: Vector | None = None
        self.lower: Fraction | None = None
        self.certificate: Optimal | Infeasible | Unbounded | None = None
        self.reason = ""

    def run(self) -> None:
        c, systems = self.program.c, self.systems
        # A feasible point, with nothing tight that need not be; if there is none, Farkas's multipliers.
        y, multipliers = systems.relax(self.tau)
        if y is None:
            self.certificate = Infeasible(*self.split(systems.positive(multipliers), multipliers[-1]))
            return
        self.point = tuple(a / y[-1] for a in y[:-1])
        # Multipliers that prove some lower bound; otherwise there is a direction to go on in for ever.
        flat = [row[:-1] for row in systems.rows]
        away = _Systems(flat, list(systems.equations), list(systems.open), self.work, list(systems.tight))
        ray, multipliers = away.relax(tuple(-a for a in c))
        if ray is not None:
            self.certificate = Unbounded(self.point, ray)
            return
        total = self.program.combine(*self.split(away.positive(multipliers), multipliers[-1]))
        assert not isinstance(total, str)
        self.lower = -total[-1]
        self.point = descend(self.program, self.point)
        while True:
            value = dot(c, self.point)
            y, multipliers = systems.strict([self.tau, (*(-a for a in c), value)])
            if y is None:
                u, v = self.split(systems.positive(multipliers), multipliers[-2])
                self.certificate = Optimal(self.point, u, v, value)
                return
            self.point = descend(self.program, tuple(a / y[-1] for a in y[:-1]))

    def split(self, multipliers: dict[int, Fraction], unit: Fraction) -> tuple[Vector, Vector]:
        """(u, v): the multipliers of inequalities and of equations, divided by the unit."""
        m, p = len(self.program.inequalities), len(self.program.equations)
        values = [multipliers.get(i, Fraction(0)) / unit for i in range(m + p)]
        return tuple(values[:m]), tuple(values[m:])

    def solution(self, method: str) -> Solution:
        kinds = {Optimal: "optimal", Infeasible: "infeasible", Unbounded: "unbounded"}
        status = "undecided" if self.certificate is None else kinds[type(self.certificate)]
        point = self.point if status in ("optimal", "undecided") else None
        value = None if point is None else dot(self.program.c, point)
        if isinstance(self.certificate, Optimal):
            self.lower = self.certificate.value
        x = None if point is None else np.array([_near(value) for value in point])
        fun = None if value is None else _near(value)
        lower = -inf if self.lower is None else _near(self.lower, below=status == "undecided")
        work = (self.work.n_updates, self.work.n_rescalings, self.work.n_rounds)
        return Solution(status, x, fun, lower, self.certificate, method, *work, self.reason)


def descend(program: Program, x: Vector) -> Vector:
    """From a feasible x to a point of a smallest face that is not worse: a vertex, if there are any.

    What is tight stays so; one goes down along what is left, or anywhere where all is level, until something else is tight.
    """
    c = program.c
    while True:
        slack = [row[-1] - dot(row[:-1], x) for row in program.inequalities]
        tight = [row[:-1] for row, s in zip(program.inequalities, slack, strict=True) if not s]
        kernel = echelon([*tight, *(row[:-1] for row in program.equations)], len(c))
        if not kernel.free:
            return x
        slope = kernel.restrict(c)
        level = not any(slope)
        first = [Fraction(j == 0) for j in range(len(slope))]
        directions = [first, [-value for value in first]] if level else [[-value for value in slope]]
        for direction in map(kernel.complete, directions):
            falls = [dot(row[:-1], direction) for row in program.inequalities]
            steps = [s / fall for s, fall in zip(slack, falls, strict=True) if s and fall > 0]
            if steps:
                x = tuple(a + min(steps) * b for a, b in zip(x, direction, strict=True))
                break
        else:
            return x


def _near(value: Fraction, below: bool = False) -> float:
    """The nearest float, infinity where none is near; or the nearest that is not above."""
    try:
        near = float(value)
    except OverflowError:
        near = inf if value > 0 else -inf
    return nextafter(near, -inf) if below and near > value else near
