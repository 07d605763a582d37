"""A conic program, as the exact numbers it is made of, and the answers to it. Each can be checked with the program alone,
in fractions.

Minimise ⟨c, x⟩ with M(x, 1) in K, where K is a product of cones that are their own duals. A multiplier λ in K with
Mᵀλ = (c, −v) proves that no x has a value below v, for ⟨c, x⟩ − v = ⟨Mᵀλ, (x, 1)⟩ = ⟨λ, M(x, 1)⟩ ≥ 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.certificates import Certificate
from rosenblatt.exact.dyadic import about, dot, fractions
from rosenblatt.feasibility.cones import Cone, Intersection, Polyhedral, SecondOrder, Semidefinite
from rosenblatt.feasibility.programs import inexact, no_contradiction, read_vector
from rosenblatt.feasibility.search import plural
from rosenblatt.feasibility.self_dual import Lorentz, Orthant, PositiveSemidefinite, SelfDual, Vector

Multipliers = tuple[Vector, ...]  # one vector for each part of the program


class Part(NamedTuple):
    """M(x, 1) belongs to the cone."""

    name: str  # "Polyhedral", or "1, SecondOrder" for the second cone of an intersection
    M: tuple[Vector, ...]
    cone: SelfDual

    def slack(self, y: Sequence[Fraction]) -> Vector:
        """M y."""
        return tuple(dot(row, y) for row in self.M)

    def image(self, multiplier: Vector) -> Vector:
        """Mᵀλ, whose product with every y inside is ≥ 0."""
        total = [Fraction(0)] * len(self.M[0])
        for value, row in zip(multiplier, self.M, strict=True):
            if value:
                total = [a + value * b for a, b in zip(total, row, strict=True)]
        return tuple(total)


@dataclass(frozen=True)
class ConicProgram:
    """Minimise ⟨c, x⟩ with M(x, 1) in a cone, for every part."""

    c: Vector
    parts: tuple[Part, ...]

    @staticmethod
    def of(c: ArrayLike, cone: Cone) -> ConicProgram:
        """Return the program: minimise ⟨c, x⟩ with (x, 1) in the cone, its boundary included."""
        cost, parts = read_vector(c, "c"), tuple(_parts(cone))
        if cone.dimension != len(cost) + 1:
            raise InvalidData(
                f"the cone must have {len(cost) + 1} dimensions, one more than c has numbers; got {cone.dimension}",
                hint="its last coordinate is the constant 1",
            )
        return ConicProgram(cost, parts)

    def violation(self, y: Sequence[Fraction]) -> str | None:
        """None if y, which is (x, 1) or (direction, 0), is in every cone; otherwise what is wrong."""
        if (wrong := inexact(tuple(y))) is not None:
            return wrong
        if len(y) != len(self.c) + 1:
            return f"the point has {len(y) - 1} coordinates, the program {len(self.c)} variables"
        outside = next((part.name for part in self.parts if not part.cone.contains(part.slack(y))), None)
        return None if outside is None else f"the point is outside of the cone {outside}"

    def combine(self, multipliers: Multipliers) -> Vector | str:
        """Σ Mᵀλ, whose product with (x, 1) is ≥ 0 for every feasible x; or what is wrong with the multipliers."""
        if not isinstance(multipliers, tuple) or len(multipliers) != len(self.parts):
            return f"there must be a multiplier for each of the {len(self.parts)} cones"
        total = [Fraction(0)] * (len(self.c) + 1)
        for part, multiplier in zip(self.parts, multipliers, strict=True):
            if (wrong := inexact(multiplier)) is not None:
                return wrong
            if len(multiplier) != len(part.M):
                return f"the multiplier of {part.name} has {len(multiplier)} numbers, not {len(part.M)}"
            if not part.cone.contains(multiplier):
                return f"the multiplier of {part.name} is outside of its dual cone"
            total = [a + b for a, b in zip(total, part.image(multiplier), strict=True)]
        return tuple(total)


@dataclass(frozen=True)
class Bracket(Certificate):
    """The optimal value is between `lower` and `upper`: a feasible point attains the one, and multipliers prove the other.

    Attributes
    ----------
    point : tuple of Fraction
        It satisfies everything.
    upper : Fraction
        Its value.
    multipliers : tuple of tuples of Fraction
        For each cone a vector λ of its dual, with Σ Mᵀλ = (c, −lower).
    lower : Fraction
        No feasible point has a smaller value.
    """

    point: Vector
    upper: Fraction
    multipliers: Multipliers
    lower: Fraction

    def refutation(self, program: ConicProgram) -> str | None:
        """Return None if it is true of the program; otherwise a sentence that says why it is not."""
        if (wrong := program.violation((*self.point, Fraction(1)))) is not None:
            return wrong
        if dot(program.c, self.point) != self.upper:
            return f"the point's value is {about(dot(program.c, self.point))}"
        total = program.combine(self.multipliers)
        if isinstance(total, str):
            return total
        if total[:-1] != program.c:
            return "the multipliers do not add up to c"
        return None if -total[-1] == self.lower else f"the multipliers prove the bound {about(-total[-1])}"


@dataclass(frozen=True)
class ConicInfeasible(Certificate):
    """Multipliers with Σ Mᵀλ = (0, −1): every feasible x would have ⟨(0, −1), (x, 1)⟩ ≥ 0.

    Attributes
    ----------
    multipliers : tuple of tuples of Fraction
        For each cone a vector of its dual.
    """

    multipliers: Multipliers

    def refutation(self, program: ConicProgram) -> str | None:
        """Return None if it is true of the program; otherwise a sentence that says why it is not."""
        return no_contradiction(program.combine(self.multipliers))


@dataclass(frozen=True)
class ConicUnbounded(Certificate):
    """A feasible point, and a direction in which one may go on for ever, getting better.

    Attributes
    ----------
    point, ray : tuple of Fraction
    """

    point: Vector
    ray: Vector

    def refutation(self, program: ConicProgram) -> str | None:
        """Return None if it is true of the program; otherwise a sentence that says why it is not."""
        for y in ((*self.point, Fraction(1)), (*self.ray, Fraction(0))):
            if (wrong := program.violation(y)) is not None:
                return wrong
        return None if dot(program.c, self.ray) < 0 else "nothing improves along the ray"


@dataclass(frozen=True)
class ConicSolution:
    """The answer of `solve_conic`.

    Attributes
    ----------
    status : "optimal", "infeasible", "unbounded" or "undecided"
        "optimal" if `upper` − `lower` is within the tolerance.
    x : array or None
        The best feasible point known; `certificate.point` has it exactly.
    lower, upper : float
        The optimal value is between them, both included: `upper` is attained by x, `lower` is proved by multipliers. −∞ and
        ∞ where nothing is known; rounded outwards.
    certificate : Bracket, ConicInfeasible, ConicUnbounded or None
        The proof; of an undecided program, of what is known of its value, if both sides are.
    method : str
        The method that found the points and the multipliers; all were checked exactly.
    n_updates, n_rescalings, n_rounds, n_cuts : int
        Its work in all, the homogeneous systems it was given, and the half-spaces they were made of at the end.
    reason : str
        Why it is undecided, if it is.

    Examples
    --------
    >>> from rosenblatt.feasibility import Polyhedral, solve_conic
    >>> cone = Polyhedral([[1, 0, -1], [0, 1, -2]])  # x₁ ≥ 1 and x₂ ≥ 2
    >>> answer = solve_conic([1, 1], cone)
    >>> answer.status, answer.lower <= 3 <= answer.upper, answer.verify([1, 1], cone)
    ('optimal', True, True)
    """

    status: str
    x: NDArray | None
    lower: float
    upper: float
    certificate: Bracket | ConicInfeasible | ConicUnbounded | None
    method: str
    n_updates: int
    n_rescalings: int
    n_rounds: int
    n_cuts: int
    reason: str = ""

    def verify(self, c: ArrayLike, cone: Cone) -> bool:
        """Return whether there is a certificate, and it is true of the program, in exact arithmetic.

        Parameters
        ----------
        c : array of numbers
            The objective.
        cone : Cone
            The cone, as `solve_conic` takes it.

        Returns
        -------
        bool
        """
        return self.certificate is not None and self.certificate.verify(ConicProgram.of(c, cone))

    def __str__(self) -> str:
        counts = {"system": self.n_rounds, "cut": self.n_cuts, "update": self.n_updates}
        work = ", ".join([self.method, *(plural(number, noun) for noun, number in counts.items())])
        bracket = f"[{self.lower:.10g}, {self.upper:.10g}]"
        if self.status == "optimal":
            return f"optimal: the least value is in {bracket}, proved exactly ({work})"
        if self.status == "undecided":
            return f"undecided, the least value is in {bracket}: {self.reason} ({work})"
        return f"{self.status}, proved exactly ({work})"


def _parts(cone: object, name: str = "") -> list[Part]:
    label = f"{name}{', ' * bool(name)}{type(cone).__name__}"
    if isinstance(cone, Intersection):
        return [part for i, one in enumerate(cone.cones) for part in _parts(one, f"{name}{'.' * bool(name)}{i}")]
    if isinstance(cone, Polyhedral):
        return [Part(label, _exact(cone.A), Orthant(len(cone.A)))]
    if isinstance(cone, SecondOrder):
        return [Part(label, _exact(np.vstack([cone.c, cone.P])), Lorentz(len(cone.P) + 1))]
    if isinstance(cone, Semidefinite):
        k = cone.F.shape[1]
        return [Part(label, _exact(cone.F.reshape(len(cone.F), -1).T), PositiveSemidefinite(k))]
    raise InvalidParameter("cone", cone, "a Polyhedral, SecondOrder or Semidefinite cone, or an Intersection of them")


def _exact(rows: NDArray) -> tuple[Vector, ...]:
    return tuple(tuple(fractions(row)) for row in rows)
