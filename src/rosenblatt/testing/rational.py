"""Linear separability decided exactly, by the textbook's simplex method: a tableau of fractions and Bland's rule."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def separable(rows: Sequence[Sequence[float]]) -> bool:
    """Return whether some x has ⟨a, x⟩ > 0 for every row a: whether no weights λ ≥ 0 of sum 1 have Σ λ a = 0 (Gordan 1873).

    Phase one of the simplex method: one artificial variable for each equation, their sum driven down.
    """
    n, d = len(rows), len(rows[0])
    columns = [[*map(Fraction, row), Fraction(1)] for row in rows]
    tableau = [[columns[i][r] for i in range(n)] + [Fraction(r == d)] for r in range(d + 1)]
    cost = [-sum((tableau[r][i] for r in range(d + 1)), Fraction(0)) for i in range(n + 1)]
    basis: list[int] = [n + r for r in range(d + 1)]
    while True:
        enter = next((i for i in range(n) if cost[i] < 0), None)
        if enter is None:
            return cost[n] != 0
        able = [r for r in range(d + 1) if tableau[r][enter] > 0]
        leave = min(able, key=lambda r: (tableau[r][n] / tableau[r][enter], basis[r]))
        pivot = tableau[leave][enter]
        tableau[leave] = [value / pivot for value in tableau[leave]]
        for line in [*(tableau[r] for r in range(d + 1) if r != leave), cost]:
            factor = line[enter]
            if factor:
                line[:] = [value - factor * other for value, other in zip(line, tableau[leave], strict=True)]
        basis[leave] = enter
