"""Which side of Gordan's alternative is true of a set of rows, and the proof: stages from the quickest to the surest, each
of which may only propose. A proposal is rounded, repaired and checked exactly before anyone sees it.

Positive factors change neither side, so the stages work on rows and columns scaled by powers of two; nothing is lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from math import gcd, inf
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact import rounding
from rosenblatt.exact.certificates import Combination, Interior, as_floats
from rosenblatt.exact.dyadic import cleared, products
from rosenblatt.exact.reading import Matrix, Quantity, dense
from rosenblatt.exact.solve import Late, alternative, independent_columns
from rosenblatt.feasibility import find_interior
from rosenblatt.feasibility.rows import row_lengths, scale_rows
from rosenblatt.theory.nearest import MOST, Cloud, in_fewer_dimensions, in_floats

_MOST_ENTRIES = 5_000_000  # of a table of Python's integers: some hundred megabytes, and seconds a pivot
_MOST_UPDATES = 10_000_000  # of the rescaled perceptron: some tens of seconds


class Proved(NamedTuple):
    """A certificate, checked, and the stage that found it."""

    certificate: Interior | Combination
    method: str


class Open(NamedTuple):
    """Nothing was proved; where the margin lies, as far as floats can tell, of the balanced rows scaled to length 1."""

    lower: float
    upper: float
    reason: str


class Search:
    """The rows as given, the same rows balanced for floats, the clock, and the best bracket so far."""

    def __init__(self, A: Matrix, max_seconds: float):
        self.A = A
        self.deadline = perf_counter() + max_seconds
        self.scaled, self.row_powers, self.powers = balance(A)
        self.lower, self.upper = -1.0, 1.0

    @property
    def seconds(self) -> float:
        return self.deadline - perf_counter()

    def bracket(self, S: Matrix, x: NDArray, weights_norm: float = 1.0) -> None:
        """Remember the better of the bounds of the margin: from below by x, from above by a combination of this norm."""
        length = np.linalg.norm(x)
        if length > 0:
            self.lower = max(self.lower, float((S @ x).min() / length))
        self.upper = min(self.upper, weights_norm)

    def separates(self, x: NDArray, method: str) -> Proved | None:
        """The point, if some rounding of it has positive products with all rows; x is for the balanced rows."""
        point = rounding.interior(self.A, x, self.powers)
        return None if point is None else Proved(point, method)

    def vanishes(self, rows: NDArray, weights: NDArray, method: str) -> Proved | None:
        """The combination of some of these rows, if there is one; the weights are those of the balanced rows, nearly."""
        found = rounding.combination(self.scaled, rows.tolist(), weights, self.deadline)
        if found is None:
            return None
        pairs = zip(found.rows, found.weights, strict=True)
        weights_of_A = cleared([Fraction(2) ** int(self.row_powers[i]) * weight for i, weight in pairs])
        common = gcd(*weights_of_A)
        exact = Combination(found.rows, tuple(value // common for value in weights_of_A))
        return Proved(exact, method) if exact.verify(self.A) else None


def balance(A: Matrix) -> tuple[Matrix, NDArray, NDArray]:
    """(S, p, q) with S = 2^p · A · 2^q: rows and columns whose largest entries are near 1, unless a number underflows."""
    rows, columns = np.zeros(A.shape[0], dtype=np.int64), np.zeros(A.shape[1], dtype=np.int64)
    S = A.copy()
    entries = S if isinstance(S, np.ndarray) else S.data
    for axis, powers in ((0, columns), (1, rows), (0, columns), (1, rows)):
        largest = dense(abs(S).max(axis=axis)).ravel()
        step = np.where(largest > 0, 1 - np.frexp(largest)[1], 0).astype(np.int64)
        powers += step
        if isinstance(S, np.ndarray):
            by = step if axis == 0 else step[:, None]
        else:
            by = step[S.indices] if axis == 0 else np.repeat(step, np.diff(S.indptr))
        np.ldexp(entries, by, out=entries)
    return S, rows, columns


def unit(S: Matrix) -> Matrix:
    """The rows scaled to length 1."""
    lengths = row_lengths(S)
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return scale_rows(S, inverse)


def decide(A: Matrix, *, method: str = "auto", max_seconds: float = 600.0, verbose: bool = False) -> Proved | Open:
    """Whether some x has positive products with all rows of A (float64, dense or CSR), with proof."""
    if method not in (*STAGES, "auto"):
        raise InvalidParameter("method", method, f"one of {', '.join(map(repr, ('auto', *STAGES)))}")
    Quantity(-inf, open_low=True, open_high=False, advice="use infinity for no limit").check("max_seconds", max_seconds)
    search = Search(A, max_seconds)
    for name in STAGES if method == "auto" else (method,):
        start = perf_counter()
        try:
            found = STAGES[name](search)
        except Late:
            found = None
        if verbose:
            word = "proved" if found is not None else "no proof"
            print(f"separability, {name}: {word} after {perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        if found is not None:
            return found
        if search.seconds < 0:
            return Open(search.lower, search.upper, f"{max_seconds:g} s were over")
    return Open(search.lower, search.upper, "no stage found a proof")


def look(search: Search) -> Proved | None:
    """A row that is zero, or two in opposite directions: these meet when products with a random point are sorted."""
    S = search.scaled
    for i in np.flatnonzero(dense(abs(S).max(axis=1)).ravel() == 0):
        if Combination((int(i),), (1,)).verify(search.A):
            return Proved(Combination((int(i),), (1,)), "look")
    p = unit(S) @ np.random.default_rng(0).normal(size=S.shape[1])
    order = np.argsort(np.abs(p), kind="stable")
    size, positive = np.abs(p)[order], p[order] > 0
    group = np.concatenate([[0], np.cumsum(np.diff(size) > 1e-9 * size[1:])])
    up, down = np.full(group[-1] + 1, -1), np.full(group[-1] + 1, -1)
    up[group[positive]], down[group[~positive]] = order[positive], order[~positive]
    for g in np.flatnonzero((up >= 0) & (down >= 0))[:100]:
        found = search.vanishes(np.array([up[g], down[g]]), np.ones(2), "look")
        if found is not None:
            return found
    return None


def perceptron(search: Search) -> Proved | None:
    """Rosenblatt's own: on unit rows, a block at a time, with what a mistake changes in the block put right by its Gram
    matrix. It goes on for as long as a few epochs halve the mistakes."""
    S, block = unit(search.scaled), 256
    n, d = S.shape
    x = np.zeros(d)
    history: list[int] = []
    while search.seconds > 0:
        mistakes = 0
        for start in range(0, n, block):
            part = S[start : start + block]
            margins = part @ x
            if margins.min() > 0:
                continue
            gram = dense(part @ part.T)
            counts, i = np.zeros(len(margins)), 0
            while (wrong := np.flatnonzero(margins[i:] <= 0)).size:
                i += int(wrong[0])
                counts[i] += 1
                margins += gram[i]
                i += 1
            mistakes += int(counts.sum())
            x = x + part.T @ counts
        if not mistakes:
            return search.separates(x, "perceptron")
        history.append(mistakes)
        if len(history) > 6 and mistakes > 0.5 * history[-6]:
            break
    if history:
        search.bracket(S, x, float(np.linalg.norm(x) / sum(history)))  # x is the sum of that many unit rows
    return None


def nearest(search: Search) -> Proved | None:
    """The point of the rows' hull that is nearest to the origin: it separates, or it is the origin."""
    S = unit(search.scaled)
    if min(S.shape) > MOST:
        return None
    with np.errstate(all="ignore"):
        found = in_floats(Cloud(in_fewer_dimensions(S), np.ones(S.shape[0]), free=False), search.deadline)
    weights = as_floats([Fraction(weight) for weight in found.weights])
    rows = np.array(found.rows)
    if found.w:
        x = S[rows].T @ weights
        search.bracket(S, x, float(np.linalg.norm(x) / weights.sum()))
        proved = search.separates(x, "nearest")
        if proved is not None:
            return proved
    lengths = row_lengths(search.scaled[rows])
    held = (weights > 0) & (lengths > 0)
    return search.vanishes(rows[held], weights[held] / lengths[held], "nearest") if held.any() else None


def highs(search: Search) -> Proved | None:
    """Maximise t with ⟨a, x⟩ ≥ t and |xⱼ| ≤ 1 over some rows, add those that are violated, and so on. The prices of an end
    with t = 0 are a combination."""
    S = search.scaled
    n, d = S.shape
    few = 4 * (d + 1)
    x = np.asarray(S.sum(axis=0)).ravel()
    rows = np.argsort(S @ x, kind="stable")[: min(n, few)]
    while search.seconds > 0:
        part = S[rows]
        ones = np.ones((len(rows), 1))
        constraints = sp.hstack([-part, ones], format="csr") if sp.issparse(S) else np.hstack([-part, ones])
        answer = linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=constraints,
            b_ub=np.zeros(len(rows)),
            bounds=[(-1, 1)] * d + [(None, None)],
            method="highs",
            options={"time_limit": max(1.0, search.seconds)},
        )
        if answer.x is None:
            return None
        x, t = answer.x[:d], answer.x[d]
        if t > 1e-9:
            values = S @ x
            low = np.flatnonzero(values <= t * 1e-3)
            if np.isin(low, rows).all():  # none, or more than its tolerance lets it see
                return search.separates(x, "highs")
            new = low[np.argsort(values[low], kind="stable")[:few]]
            rows = np.union1d(rows[values[rows] <= 2 * t] if len(rows) > 20 * few else rows, new)
            continue
        weights = -answer.ineqlin.marginals
        held = weights > 1e-11
        return search.vanishes(rows[held], weights[held], "highs")
    return None


def exactly(search: Search) -> Proved | None:
    """The simplex method in integers, on some rows, adding those that its point does not satisfy."""
    n, d = search.A.shape
    rows = np.arange(min(n, 4 * (d + 1)))
    while search.seconds > 0:
        part = dense(search.A[rows])
        columns = independent_columns(part) if len(rows) < d else np.arange(d)
        if len(columns) * (len(rows) + len(columns)) > _MOST_ENTRIES:
            return None
        found = alternative(part[:, columns], search.seconds / 2)  # some for what follows
        if isinstance(found, Combination) and not found.verify(part):  # of too few columns: the prime was unlucky
            columns = np.arange(d)
            found = alternative(part, search.seconds / 2)
        if found is None:
            return None
        if isinstance(found, Combination):
            return Proved(Combination(tuple(int(rows[i]) for i in found.rows), found.weights), "simplex")
        x = [Fraction(0)] * d
        for j, value in zip(columns, found.x, strict=True):
            x[j] = value
        found = Interior(tuple(x))
        values, _ = products(search.A, cleared(found.x))
        low = [i for i in range(n) if values[i] <= 0]
        if not low:
            return Proved(found, "simplex")
        low.sort(key=values.__getitem__)
        rows = np.union1d(rows, low[: 4 * (d + 1)])
    return None


def rescaling(search: Search) -> Proved | None:
    """The rescaled perceptron, to which an exponentially small margin is no obstacle."""
    try:
        found = find_interior(search.scaled, "rescaling", max_updates=_MOST_UPDATES).certificate
    except InvalidData:  # too large to rescale, or out of the range of floats
        return None
    if isinstance(found, Interior):
        return search.separates(as_floats(found.x), "rescaling")
    if isinstance(found, Combination):
        return search.vanishes(np.array(found.rows), as_floats([Fraction(v) for v in found.weights]), "rescaling")
    return None


STAGES: dict[str, Callable[[Search], Proved | None]] = {
    "look": look,
    "perceptron": perceptron,
    "nearest": nearest,
    "highs": highs,
    "simplex": exactly,
    "rescaling": rescaling,
}
