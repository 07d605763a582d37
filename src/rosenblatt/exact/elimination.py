"""Equations solved in fractions: which unknowns the others decide, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Row = Sequence[Fraction]


@dataclass(frozen=True)
class Solved:
    """E y = 0 in reduced echelon form: y_pivot = −Σ coefficient · y_free, for each line.

    `origin[r]` tells how line r is made of the equations given: line = Σ originₖ · equationₖ.
    """

    equations: int
    width: int
    pivots: tuple[int, ...]
    free: tuple[int, ...]
    lines: tuple[tuple[Fraction, ...], ...]  # each with 1 at its pivot and 0 at the others'
    origin: tuple[tuple[Fraction, ...], ...]

    def reduced(self, row: Row) -> list[Fraction]:
        """The row's coefficients of the free unknowns, once the equations have been put into it."""
        parts = [(row[p], line) for p, line in zip(self.pivots, self.lines, strict=True) if row[p]]
        return [row[j] - sum((value * line[j] for value, line in parts), Fraction(0)) for j in self.free]

    def completed(self, values: Sequence[Fraction]) -> list[Fraction]:
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


def solved(equations: Sequence[Row], width: int) -> Solved:
    """The equations Σ eⱼ yⱼ = 0 in `width` unknowns, solved by Gauss and Jordan; those that say nothing new are dropped."""
    lines: list[list[Fraction]] = []
    origin: list[list[Fraction]] = []
    pivots: list[int] = []
    for k, equation in enumerate(equations):
        line = list(equation)
        made = [Fraction(i == k) for i in range(len(equations))]
        for p, other, how in zip(pivots, lines, origin, strict=True):
            _subtract(line, line[p], other, made, how)
        pivot = next((j for j in range(width) if line[j]), None)
        if pivot is None:
            continue
        inverse = 1 / line[pivot]
        line, made = [value * inverse for value in line], [value * inverse for value in made]
        for other, how in zip(lines, origin, strict=True):
            _subtract(other, other[pivot], line, how, made)
        lines.append(line)
        origin.append(made)
        pivots.append(pivot)
    free = tuple(j for j in range(width) if j not in set(pivots))
    return Solved(len(equations), width, tuple(pivots), free, tuple(map(tuple, lines)), tuple(map(tuple, origin)))


def first_dependence(rows: Sequence[Row]) -> list[Fraction] | None:
    """Coefficients with which the first rows that depend on one another add up to zero, the last of them 1; None if all
    rows are independent."""
    basis: list[tuple[int, list[Fraction], list[Fraction]]] = []  # (a column, a row that is 1 there, what it is made of)
    for k, row in enumerate(rows):
        rest, origin = list(row), [Fraction(i == k) for i in range(len(rows))]
        for column, pivot, how in basis:
            _subtract(rest, rest[column], pivot, origin, how)
        at = next((j for j, value in enumerate(rest) if value), None)
        if at is None:
            return origin[: k + 1]
        basis.append((at, [value / rest[at] for value in rest], [value / rest[at] for value in origin]))
    return None


def _subtract(line: list[Fraction], factor: Fraction, other: Row, made: list[Fraction], how: Row) -> None:
    """line −= factor · other, and the same of how they were made."""
    if factor:
        line[:] = [a - factor * b if b else a for a, b in zip(line, other, strict=True)]
        made[:] = [a - factor * b if b else a for a, b in zip(made, how, strict=True)]
