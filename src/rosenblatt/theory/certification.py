"""A run that is over, held against its theorem: how many updates were made, how many there could have been, and why that
number, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from rosenblatt.conditions import RunConditions
from rosenblatt.exact.reading import Matrix, MatrixLike
from rosenblatt.theory import bounds
from rosenblatt.theory.geometry import Margin, NotSeparable, TooLarge, gamma_seen, radius
from rosenblatt.theory.signed import read

_ROUNDING = 1 + 1e-9  # the bound is computed with floats


class Ran(NamedTuple):
    """A run that is over: its conditions, its last weights, its counts, and whether nothing was left to learn."""

    conditions: RunConditions
    last: NDArray
    mistakes: int
    updates: int
    seen: int
    converged: bool


@dataclass(frozen=True)
class Certified:
    """A run beside the bound that a theorem gives it. `str` of it is a sentence."""

    n_mistakes: int
    n_updates: int
    counted: str  # what the bound is about: "updates", or "wrong predictions" of rules that update on right ones too
    radius: float  # R, the constant feature included, as in γ
    margin: tuple[float, float]  # (low, high): low ≤ γ ≤ high; (0, 0) if nothing separates the rows
    theorem: str  # "Novikoff", "Freund and Schapire", another rule's; "" where none applies
    bound: float  # ∞ where none applies
    reason: str  # why none applies; "" where one does
    converged: bool  # whether the run ended because nothing was left to learn
    weighted_updates: float | None = None  # of a run in shards: each update weighted by its shard's share in the mixture

    @property
    def separable(self) -> bool | None:
        """Whether some weights separate the rows; None if it could not be told."""
        low, high = self.margin
        return True if low > 0 else False if high <= 0 else None

    @property
    def count(self) -> float:
        """The updates, weighted where shards were mixed, or the wrong predictions, whichever the bound is about."""
        if self.weighted_updates is not None:
            return self.weighted_updates
        return self.n_updates if self.counted == "updates" else self.n_mistakes

    @property
    def used(self) -> float:
        """The share of the bound that was used; 0 without a bound."""
        return self.count / self.bound if self.bound else 0.0

    @property
    def holds(self) -> bool:
        """Whether the count is within the bound. If it is not, the rows are others than those learned from."""
        return self.count <= self.bound * _ROUNDING

    def __str__(self) -> str:
        low, high = self.margin
        rows = {
            True: f"Separable, γ = {low:.4g}, R = {self.radius:.4g}",
            False: "Nothing separates these rows",
            None: f"Whether the rows are separable is undecided, γ < {high:.2g}",
        }[self.separable]
        made = f"{rows}: {self.count:,} {self.counted}"
        if self.weighted_updates is not None:
            made = f"{rows}: {self.count:,.1f} updates, weighted by the mixture of shards"
        if not self.theorem:
            return f"{made}, and no bound applies: {self.reason}."
        most = f"{math.floor(self.bound * _ROUNDING):,}" if self.bound < 1e9 else f"{self.bound:.3g}"
        allowed = f"the {most} that the theorem of {self.theorem} allows"
        if not self.holds:
            return f"{made}, more than {allowed}: these are not the rows that were learned from."
        return f"{made}, {self.used:.1%} of {allowed}."


_AUTHORS = {
    "Perceptron": "Novikoff",
    "Uneven": "Novikoff",
    "Diminishing": "Novikoff, with diminishing rates,",
    "PA1": "Crammer et al. on PA-I",
    "PA2": "Crammer et al. on PA-II",
    "Mira": "Crammer et al. on PA-I",
}


def certify(X: MatrixLike, y: ArrayLike, constant: float, ran: Ran) -> Certified:
    """The run, on rows a = y·(x, κ), beside its bound."""
    A = read(X, y, constant).A
    longest = radius(X, constant)
    found, between = _bracket_margin(X, y, constant, longest)
    counted = "updates" if getattr(ran.conditions.rule, "bounds_updates", False) else "wrong predictions"
    try:
        theorem, bound = _promise(A, ran, longest, found, between)
        reason = ""
    except NoBound as none:
        theorem, bound, reason = "", math.inf, str(none)
    weighted = ran.conditions.weighted_updates
    return Certified(
        ran.mistakes, ran.updates, counted, longest, between, theorem, bound, reason, ran.converged, weighted
    )  # fmt: skip


def _bracket_margin(
    X: MatrixLike, y: ArrayLike, constant: float, longest: float
) -> tuple[Margin | None, tuple[float, float]]:
    """(the widest margin, its bracket); (None, (0, 0)) if nothing separates the rows, (None, (0, R)) if unknown."""
    try:
        found = gamma_seen(X, y, constant)
    except NotSeparable as none:
        return None, (0.0, 0.0 if none.certificate is not None else longest)
    except TooLarge:
        return None, (0.0, longest)
    return found, (found.lower, found.upper)


class NoBound(Exception):
    """No theorem applies; the message says why."""


def _promise(A: Matrix, ran: Ran, radius: float, found: Margin | None, between: tuple[float, float]) -> tuple[str, float]:
    """(theorem, bound), if there is one."""
    conditions, rule = ran.conditions, ran.conditions.rule
    name, plain = type(rule).__name__, getattr(rule, "plain", None)
    known = {} if plain is None else {"delta": plain.margin, "rate": plain.rate}
    if not hasattr(rule, "bound"):
        raise NoBound("none is known for this learner")
    if conditions.mixed:
        raise NoBound(
            "the parameters of the rule changed during training, coef_ or intercept_ was set, or shards were mixed with "
            "mixing='changed'"
        )
    if conditions.weighted:
        raise NoBound("rows had different weights (sample_weight or class_weight)")
    if conditions.weighted_updates is not None:
        if found is None or conditions.start is not None or name != "Perceptron" or conditions.batch > 1:
            raise NoBound(
                "shards were mixed, and the theorem of McDonald, Hall and Mann is about separable rows and the perceptron, "
                "row by row, from weights of zero"
            )
        return "McDonald, Hall and Mann", rule.bound(radius, found.lower)
    if found is not None and conditions.start is None:
        bound = rule.bound(radius, found.lower, min(conditions.batch, A.shape[0]))
        if bound == math.inf:
            raise NoBound(f"none is known for {name} as it was set")
        return _AUTHORS.get(name, name), bound
    if found is not None:
        if plain is None or conditions.start is None:
            raise NoBound(f"the bound of {name} holds for initial weights of zero, and these were not zero")
        begin = {"start": float(np.linalg.norm(conditions.start)), "along": float(conditions.start @ found.separator)}
        widened = math.sqrt(min(conditions.batch, A.shape[0])) * radius
        return "Novikoff", bounds.novikoff(widened, found.lower, **known, **begin)
    if between[1] > 0:
        raise NoBound("the margin could not be determined")
    if not conditions.in_turn or ran.seen > A.shape[0]:
        raise NoBound("the theorem of Freund and Schapire is about one pass, max_iter=1, in which no row comes twice")
    if plain is None or conditions.start is not None or conditions.batch > 1:
        raise NoBound("the theorem of Freund and Schapire is about the perceptron, from weights of zero, row by row")
    u = _least(A, radius, ran.last, **known)
    return "Freund and Schapire", bounds.least_freund_schapire(radius, A @ u, **known).bound


def _least(A: Matrix, radius: float, hint: NDArray, delta: float, rate: float) -> NDArray:
    """A unit vector for which Freund and Schapire's bound is nearly as small as can be.

    With v = u/γ its root is √(R² + 2δ/η)·‖v‖ + ‖max(0, 1 − Av)‖, which is convex. Every v gives a bound: where the search
    for the least ends does not affect correctness.
    """
    length = math.sqrt(radius**2 + 2 * delta / rate)

    def root(v: NDArray) -> tuple[float, NDArray]:
        short = np.maximum(0.0, 1.0 - A @ v)
        size, lack = float(np.linalg.norm(v)), float(np.linalg.norm(short))
        slope = length * v / size if size else np.zeros_like(v)
        return length * size + lack, slope - (A.T @ short / lack if lack else 0.0)

    ends = [hint, np.asarray(A.mean(axis=0)).ravel()]
    ends += [minimize(root, v / scale, jac=True, method="L-BFGS-B").x for v in ends if (scale := float((A @ v).max())) > 0]
    units = [v / size for v in ends if (size := float(np.linalg.norm(v))) > 0]
    units.append(np.eye(1, A.shape[1])[0])
    return min(units, key=lambda u: bounds.least_freund_schapire(radius, A @ u, delta=delta, rate=rate).bound)
