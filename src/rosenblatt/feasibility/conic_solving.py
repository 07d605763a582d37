"""A conic program is a chain of homogeneous systems of finitely many half-spaces, each decided by a perceptron.

With y = (x, τ), a vector λ of the dual of a cone {y: M y in K} is a half-space ⟨Mᵀλ, y⟩ ≥ 0 that contains it: a cut. Some
cuts are a system of rows, as that of a linear program is. If a point satisfies all of them, the cones are asked; one that
it is outside of names another cut, and the point is not met again. If none does, some rows add up to zero, and their
weights with their λ are one multiplier for each cone: a proof, whatever other cuts there may be.

The value is then bracketed. For a value v between what is proved and what is attained, is there a point with ⟨c, x⟩ < v?
One is a better point; none proves that the least value is not below v. A point that is outside is also drawn back to the
cone, towards a point inside: where the way enters the cone there is a feasible point, and a cut that touches the cone there
(Veinott 1967).
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.exact.dyadic import dot
from rosenblatt.exact.reading import POSITIVE
from rosenblatt.feasibility.cones import Cone
from rosenblatt.feasibility.conic_programs import (
    Bracket,
    ConicInfeasible,
    ConicProgram,
    ConicSolution,
    ConicUnbounded,
    Multipliers,
    Part,
)
from rosenblatt.feasibility.programs import near_float
from rosenblatt.feasibility.search import Method, RandomState, check_limit
from rosenblatt.feasibility.self_dual import Vector
from rosenblatt.feasibility.systems import LeftOpen, Systems, Unanswered, Work

_STEPS = 24  # bits of the way to the boundary
_OTHERS = tuple(Fraction(k, 16) for k in (3, 13, 5, 11, 7))  # shares of the bracket, if a system is left open at its half
_STALLED = 3  # points outside in a row, before a value nearer to what is proved is asked for


def solve_conic(
    c: ArrayLike,
    cone: Cone,
    *,
    tolerance: float = 1e-6,
    method: str | Method = "rescaling",
    max_updates: int | None = None,
    max_rescalings: int | None = None,
    max_rounds: int | None = 1000,
    random_state: RandomState = 0,
) -> ConicSolution:
    """Minimise ⟨c, x⟩ over all x with (x, 1) in a closed cone: a bracket of the least value, with its proof.

    Parameters
    ----------
    c : (n,) array
        The objective: floats, integers or fractions.
    cone : Polyhedral, SecondOrder, Semidefinite, or an Intersection of them
        In n + 1 dimensions, the last of which is the constant 1, and with its boundary: `Polyhedral` with the rows (g, h)
        says ⟨g, x⟩ + h ≥ 0. An equation is a row and its opposite.
    tolerance : float, default=1e-6
        How wide the bracket of an optimal value v may be, times max(1, |v|).
    method, max_updates, max_rescalings, random_state
        As in `find_interior`, for each of the systems solved.
    max_rounds : int or None, default=1000
        How many systems to solve at most; None for any number.

    Returns
    -------
    ConicSolution
        The status, the bracket, the point that attains its upper end, and a certificate that proves it.

    Raises
    ------
    InvalidData, InvalidParameter
        If the cone is none of these or has another dimension, the method is unknown, or a limit is not a number.

    Examples
    --------
    The point of the unit ball that is farthest down along (3, 4):

    >>> import numpy as np
    >>> from rosenblatt.feasibility import SecondOrder, solve_conic
    >>> ball = SecondOrder(P=np.eye(3)[:2], c=[0, 0, 1])  # ‖x‖ ≤ 1
    >>> answer = solve_conic([3, 4], ball)
    >>> answer.status, answer.lower <= -5 <= answer.upper, answer.verify([3, 4], ball)
    ('optimal', True, True)
    >>> answer.x.round(2).tolist()
    [-0.6, -0.8]
    """
    program = ConicProgram.of(c, cone)
    rounds = check_limit(max_rounds, "max_rounds", 0)
    width = Fraction(POSITIVE.check("tolerance", tolerance))
    options = {"method": method, "max_updates": max_updates, "max_rescalings": max_rescalings, "random_state": random_state}
    search = _ConicSearch(program, Work(options, inf if rounds is None else rounds), width)
    try:
        search.run()
    except Unanswered as left:
        search.reason = str(left)
    return search.solution(getattr(method, "name", str(method)))


class _ConicSearch:
    """A program, the cuts so far, and what is known."""

    def __init__(self, program: ConicProgram, work: Work, tolerance: Fraction):
        self.program, self.work, self.tolerance = program, work, tolerance
        self.tau = (*([Fraction(0)] * len(program.c)), Fraction(1))
        self.cuts: dict[tuple[int, Vector], int] = {}  # the part and the vector of its dual, and the row that they are
        self.systems = Systems([], [], [], work)
        self.inside: Vector | None = None  # a feasible point to draw others to
        self.point: Vector | None = None  # the best
        self.upper: Fraction | None = None
        self.multipliers: Multipliers | None = None
        self.lower: Fraction | None = None
        self.certificate: ConicInfeasible | ConicUnbounded | None = None
        self.reason = ""
        self.floats = [np.array([[float(value) for value in row] for row in part.M]) for part in program.parts]
        for number, part in enumerate(program.parts):
            for multiplier in part.cone.corners():
                self.add(number, part, multiplier)

    def run(self) -> None:
        self.find_point()
        if self.certificate is None:
            self.find_bound()
        others = list(_OTHERS)
        share = Fraction(1, 2)
        while self.certificate is None and not self.close():
            try:
                self.halve(share)
                others, share = list(_OTHERS), Fraction(1, 2)
            except LeftOpen:
                if not others:
                    raise
                share = others.pop()

    def find_point(self) -> None:
        """A feasible point, or a proof that there is none."""
        while True:
            y, found = self.systems.relax(self.tau)
            if y is None:
                self.certificate = ConicInfeasible(self.gather(self.systems.positive(found), found[-1]))
                return
            x = tuple(value / y[-1] for value in y)
            if self.program.violation(x) is None:
                self.inside = x
                self.improve(x)
                return
            self.cut(x)

    def find_bound(self) -> None:
        """Multipliers that prove some lower bound, or a direction to go on in for ever."""
        downwards = tuple(-value for value in self.program.c)
        while True:
            # Directions are y with τ = 0: the same rows without their last column.
            systems = self.systems
            flat = [row[:-1] for row in systems.rows]
            away = Systems(flat, list(systems.equations), list(systems.open), self.work, list(systems.tight))
            ray, found = away.relax(downwards)
            if ray is None:
                self.raise_to(self.gather(away.positive(found), found[-1]))
                return
            if self.program.violation((*ray, Fraction(0))) is None:
                assert self.point is not None
                self.certificate = ConicUnbounded(self.point, ray)
                return
            self.cut((*ray, Fraction(0)))

    def halve(self, share: Fraction) -> None:
        """Raise the lower end of the bracket or lower the upper one, to this share of the way between them or beyond it."""
        assert self.lower is not None
        assert self.upper is not None
        for stalled in range(1, 1000):
            value = _between(self.lower + share * (self.upper - self.lower), self.lower, self.upper)
            y, found = self.systems.strict([self.tau, (*(-a for a in self.program.c), value)])
            if y is None:
                if -2 not in found:
                    self.systems.tighten(found)
                    continue
                self.raise_to(self.gather(self.systems.positive(found), found[-2]))
                return
            x = tuple(a / y[-1] for a in y)
            if self.program.violation(x) is None:
                self.improve(x)
                return
            self.draw_back(x)
            if self.close() or self.upper <= value:
                return
            self.cut(x)
            if stalled % _STALLED == 0:
                share = max(share / 2, Fraction(1, 16))

    def close(self) -> bool:
        """Whether the bracket is narrow enough."""
        if self.lower is None or self.upper is None:
            return False
        return self.upper - self.lower <= self.tolerance * max(Fraction(1), abs(self.upper))

    def add(self, number: int, part: Part, multiplier: Vector) -> None:
        """Make a row of the cut, if it is new."""
        if (number, multiplier) not in self.cuts:
            row = self.cuts[number, multiplier] = len(self.systems.rows)
            self.systems.rows.append(part.image(multiplier))
            self.systems.open.append(row)

    def cut(self, y: Vector) -> None:
        """Cuts that the point, which is outside, is on the wrong side of; at least one of those that there are is."""
        self.separate(_floats(y), y)
        if all(dot(self.systems.rows[row], y) >= 0 for row in self.cuts.values()):
            raise Unanswered("a point is outside of the cone by less than floats can tell")

    def separate(self, at: NDArray, y: Vector) -> None:
        """Cuts that are nearly the deepest at one point, and that another, which is outside, is on the wrong side of."""
        for number, part in enumerate(self.program.parts):
            for multiplier in part.cone.multipliers(self.floats[number] @ at):
                if dot(part.image(multiplier), y) < 0:
                    self.add(number, part, multiplier)

    def draw_back(self, y: Vector) -> None:
        """On the way to the point that is inside: a feasible point, and cuts that touch the cone there."""
        assert self.inside is not None
        start, end = _floats(self.inside), _floats(y)
        steps, low, high = 2**_STEPS, 0, 2**_STEPS
        while high - low > 1:
            middle = (low + high) // 2
            at = start + middle / steps * (end - start)
            if all(part.cone.depth(M @ at) >= 0 for part, M in zip(self.program.parts, self.floats, strict=True)):
                low = middle
            else:
                high = middle
        self.separate(start + high / steps * (end - start), y)
        for back in (0, 1, 4, 16, 256):
            share = Fraction(max(low - back, 0), steps)
            x = tuple(a + share * (b - a) for a, b in zip(self.inside, y, strict=True))
            if self.program.violation(x) is None:
                self.improve(x)
                return

    def improve(self, x: Vector) -> None:
        """Keep the feasible point if it is better."""
        value = dot(self.program.c, x[:-1])
        if self.upper is None or value < self.upper:
            self.point, self.upper = x[:-1], value

    def raise_to(self, multipliers: Multipliers) -> None:
        """Keep the lower bound that these prove, if it is better."""
        total = self.program.combine(multipliers)
        assert not isinstance(total, str)
        if self.lower is None or -total[-1] > self.lower:
            self.multipliers, self.lower = multipliers, -total[-1]

    def gather(self, weights: dict[int, Fraction], unit: Fraction) -> Multipliers:
        """For each cone the sum of its multipliers, with the weights of their rows divided by the unit."""
        totals = [[Fraction(0)] * len(part.M) for part in self.program.parts]
        for (number, multiplier), row in self.cuts.items():
            if weight := weights.get(row, Fraction(0)) / unit:
                totals[number] = [a + weight * b for a, b in zip(totals[number], multiplier, strict=True)]
        return tuple(map(tuple, totals))

    def solution(self, method: str) -> ConicSolution:
        kinds = {ConicInfeasible: "infeasible", ConicUnbounded: "unbounded"}
        certificate: Bracket | ConicInfeasible | ConicUnbounded | None = self.certificate
        status = "undecided" if certificate is None else kinds[type(certificate)]
        if certificate is None and self.point is not None and self.multipliers is not None:
            assert self.upper is not None
            assert self.lower is not None
            certificate = Bracket(self.point, self.upper, self.multipliers, self.lower)
            status = "optimal" if self.close() else status
        shown = self.point if status in ("optimal", "undecided") else None
        x = None if shown is None else _floats(shown)
        lower, upper = -inf if self.lower is None else near_float(self.lower, -inf), inf
        if status == "infeasible":
            lower = inf
        elif status == "unbounded":
            upper = -inf
        elif self.upper is not None:
            upper = near_float(self.upper, inf)
        work = (self.work.n_updates, self.work.n_rescalings, self.work.n_rounds, len(self.cuts))
        return ConicSolution(status, x, lower, upper, certificate, method, *work, self.reason)


def _floats(y: Vector) -> NDArray:
    return np.array([float(value) for value in y])


def _between(value: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """A number of few digits near the value, which is a sixteenth of the way from either end at least."""
    unit = Fraction(2) ** ((high - low).numerator.bit_length() - (high - low).denominator.bit_length() - 6)
    return round(value / unit) * unit
