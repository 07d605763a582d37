"""Equations solved in fractions: which unknowns the others decide, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Row = Sequence[Fraction]


@dataclass(frozen=True)
class Echelon:
    """E y = 0 in reduced echelon form: y_pivot = −Σ coefficient · y_free, for each line.

    `origin[r]` tells how line r is made of the equations given: line = Σ originₖ · equationₖ.
    """

    equations: int
    width: int
    pivots: tuple[int, ...]
    free: tuple[int, ...]
    lines: tuple[Row, ...]  # each with 1 at its pivot and 0 at the others'
    origin: tuple[Row, ...]
    dependence: Row | None  # with which the first equations that depend on one another add up to zero, the last of them 1

    def restrict(self, row: Row) -> list[Fraction]:
        """The row's coefficients of the free unknowns, once the equations have been put into it."""
        parts = [(row[p], line) for p, line in zip(self.pivots, self.lines, strict=True) if row[p]]
        return [row[j] - sum((value * line[j] for value, line in parts), Fraction(0)) for j in self.free]

    def complete(self, values: Row) -> list[Fraction]:
        """All unknowns, from the free ones."""
        y = [Fraction(0)] * self.width
        for j, value in zip(self.free, values, strict=True):
            y[j] = Fraction(value)
        for p, line in zip(self.pivots, self.lines, strict=True):
            y[p] = -sum((line[j] * y[j] for j in self.free if line[j]), Fraction(0))
        return y

    def multipliers(self, row: Row) -> list[Fraction]:
        """ν with row = Σ νₖ · equationₖ, for a row that the equations make zero."""
        nu = [Fraction(0)] * self.equations
        for p, origin in zip(self.pivots, self.origin, strict=True):
            if row[p]:
                nu = [a + row[p] * b for a, b in zip(nu, origin, strict=True)]
        return nu


def echelon(equations: Sequence[Row], width: int) -> Echelon:
    """The equations Σ eⱼ yⱼ = 0 in `width` unknowns, solved by Gauss and Jordan; those that say nothing new are dropped."""
    lines: list[list[Fraction]] = []  # behind each, what it is made of
    pivots: list[int] = []
    dependence = None
    for k, equation in enumerate(equations):
        line = [*equation, *(Fraction(i == k) for i in range(len(equations)))]
        for p, other in zip(pivots, lines, strict=True):
            line = _minus(line, line[p], other)
        pivot = next((j for j in range(width) if line[j]), None)
        if pivot is None:
            dependence = dependence or tuple(line[width : width + k + 1])
            continue
        inverse = 1 / line[pivot]
        line = [value * inverse for value in line]
        lines = [*(_minus(other, other[pivot], line) for other in lines), line]
        pivots.append(pivot)
    free = tuple(j for j in range(width) if j not in set(pivots))
    solved, origin = tuple(tuple(line[:width]) for line in lines), tuple(tuple(line[width:]) for line in lines)
    return Echelon(len(equations), width, tuple(pivots), free, solved, origin, dependence)


def _minus(line: list[Fraction], factor: Fraction, other: list[Fraction]) -> list[Fraction]:
    return [a - factor * b if b else a for a, b in zip(line, other, strict=True)] if factor else line
