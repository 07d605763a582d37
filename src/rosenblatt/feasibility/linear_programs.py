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

from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from rosenblatt.exact.dyadic import dot
from rosenblatt.exact.elimination import echelon
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.feasibility.programs import Bounds, Infeasible, Optimal, Program, Solution, Unbounded, Vector, near_float
from rosenblatt.feasibility.search import Method, RandomState, check_limit
from rosenblatt.feasibility.systems import Systems, Unanswered, Work


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
    search = _ProgramSearch(program, Work(options, inf if rounds is None else rounds))
    try:
        search.run()
    except Unanswered as left:
        search.reason = str(left)
    return search.solution(getattr(method, "name", str(method)))


class _ProgramSearch:
    """A program, its systems, and what is known so far."""

    def __init__(self, program: Program, work: Work):
        m, p = len(program.inequalities), len(program.equations)
        rows = [(*(-value for value in row[:-1]), row[-1]) for row in (*program.inequalities, *program.equations)]
        self.program, self.work = program, work
        self.systems = Systems(rows, list(range(m, m + p)), list(range(m)), work)
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
        away = Systems(flat, list(systems.equations), list(systems.open), self.work, list(systems.tight))
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
        x = None if point is None else np.array([near_float(value) for value in point])
        fun = None if value is None else near_float(value)
        lower = -inf if self.lower is None else near_float(self.lower, -inf if status == "undecided" else None)
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
