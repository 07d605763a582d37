"""If the perceptron does not find a solution soon, a random vector, corrected on the rows it is far wrong on, soon points
roughly towards one: stretch space along it, and the set of solutions grows wider.

Dunagan and Vempala (2008), for rows of length 1 in d dimensions, σ = 1/(32d):

1. the perceptron, from 0, for at most 16d² updates;
2. x at random; while some row has cos(a, x) < −σ, project it out, x ← x − ⟨a, x⟩a; if that takes more than ln d/σ² updates,
   or x vanishes, draw anew. A draw is good with probability ≥ 1/8: see the σ-perceptron;
3. rows ← rows(I + x xᵀ), x of length 1; begin anew.

A good x makes the width of the solutions larger by a factor 1 + 1/(3d). In all O(n d⁴ log d log 1/τ) operations with high
probability, n rows, τ the width at the start. While draws fail, the perceptron is given longer each time, so that where
there is no solution it comes to weights that prove it. After 47 failures, which has a probability (7/8)⁴⁷ < 0.002 if there
are solutions, the search ends.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rosenblatt.engine.jit import jit
from rosenblatt.feasibility.climbing import Climb, Enough, in_turn
from rosenblatt.feasibility.mapped import Mapped
from rosenblatt.feasibility.stages import Budget, Stage

_DRAWS = 47
_PATIENCE = 6  # how often the updates allowed to the perceptron are doubled while draws fail


@jit
def improve(rows, x, sigma, limit):
    """Project rows that x, of length 1, is far wrong on out of it, until there is none; the updates, or −1 where there are
    more than `limit` or x vanishes."""
    n, d = rows.shape
    position, clean, updates = 0, 0, 0
    while clean < n:
        product = 0.0
        for j in range(d):
            product += rows[position, j] * x[j]
        clean += 1
        if product < -sigma:
            square = 0.0
            for j in range(d):
                x[j] -= product * rows[position, j]
                square += x[j] * x[j]
            updates += 1
            clean = 0
            if updates > limit or square < 1e-24:
                return -updates
            x /= math.sqrt(square)  # the length does not matter to cosines
        position = position + 1 if position + 1 < n else 0
    return updates


@dataclass(frozen=True)
class DunaganVempala:
    """The randomised rescaled perceptron."""

    name = "dunagan-vempala"
    updates = 10_000_000

    def search(self, A: Any, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        mapped = Mapped.of(A, self.name)
        n, d = A.shape
        sigma = 1 / (32 * d)
        limit = self.updates if budget.updates is None else budget.updates
        longest = math.floor(math.log(d) / sigma**2)
        updates, r, failed = 0, 0, 0
        while True:
            w, counts, done, delta, solved = np.zeros(d), np.zeros(n, dtype=np.int64), Climb(0, 0, 0), 0.0, True
            before, enough = updates, Enough(min(16 * d * d * 2 ** min(failed, _PATIENCE), limit - updates))
            while solved:
                done = in_turn(mapped.rows, w, counts, delta, done, enough)
                updates, solved = before + done.updates, done.clean == n
                yield mapped.stage(w, solved, counts, updates, r)
                delta, done = 10 * delta or 1.0, done._replace(clean=0)
            if updates >= limit or r == budget.rescalings or failed == _DRAWS:
                return "max_updates" if updates >= limit else "no_improvement" if failed == _DRAWS else "max_rescalings"
            x = rng.standard_normal(d)
            x /= np.linalg.norm(x)
            spent = improve(mapped.rows, x, sigma, min(longest, limit - updates - 1))
            updates += abs(spent)
            if updates >= limit:
                yield mapped.stage(w, False, counts, updates, r)
                return "max_updates"
            if spent < 0:
                failed += 1
                continue
            yield mapped.stage(x, bool((mapped.rows @ x).min() > 0), counts, updates, r)
            mapped.stretch(x, 1.0)
            r, failed = r + 1, 0
