"""Homogeneous systems in exact numbers: y for which some rows are zero and others positive, or multipliers that prove that
there is none. Rows that can never be positive become equations on the way (facial reduction; Borwein and Wolkowicz 1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import cleared
from rosenblatt.exact.elimination import echelon
from rosenblatt.feasibility.interior import find_interior
from rosenblatt.feasibility.programs import Vector
from rosenblatt.feasibility.search import plural


class Unanswered(Exception):
    """A homogeneous system was left undecided."""


class LeftOpen(Unanswered):
    """The perceptron did not decide it; another system might be decided."""


class _Tight(NamedTuple):
    """Rows that are zero wherever all rows are ≥ 0: Σ weightᵢ·rowᵢ + Σ of earlier such rows and of equations = 0, all these
    weights positive."""

    weights: dict[int, Fraction]
    others: dict[int, Fraction]  # multipliers of any sign, of rows that were equations before


@dataclass
class Work:
    """What may be done, and what was."""

    options: dict[str, Any]
    max_rounds: float
    n_updates: int = 0
    n_rescalings: int = 0
    n_rounds: int = 0

    def decide(self, matrix: list[list[int]]) -> Interior | Combination:
        if self.n_rounds >= self.max_rounds:
            raise Unanswered(f"{plural(self.n_rounds, 'system')} solved, which is max_rounds")
        answer = find_interior(np.array(matrix, dtype=object), **self.options)
        self.n_updates += answer.n_updates
        self.n_rescalings += answer.n_rescalings
        self.n_rounds += 1
        if answer.certificate is None:
            raise LeftOpen(f"a system was left open ({answer.reason}), its margin at most {answer.margin[1]:.2g}")
        return answer.certificate


@dataclass
class Systems:
    """Homogeneous systems over the same rows, of which some are equations."""

    rows: list[Vector]
    equations: list[int]  # rows that are zero
    open: list[int]  # rows that are to be positive
    work: Work
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
