"""What has been learned, and which of the weight vectors on the way predict."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.dual import Votes, no_votes
from rosenblatt.problems import Binary, OneVsOne, Problem, decide, visible, winner
from rosenblatt.rows import Rows, is_sparse
from rosenblatt.train import Pocket
from rosenblatt.weights import Weights, grown, hidden, suited, zeros


class Terms(NamedTuple):
    """Under which terms the updates that `n_updates_` counts were made, as far as theorems ask."""

    start: NDArray | None = None  # w before the first of them; None: zero
    rule: Any = None  # of rosenblatt.rules; None before the first
    batch: int = 1  # the most moves that were added up before the weights changed
    in_turn: bool = True  # whether no row came again before all others had
    weighted: bool = False  # whether rows had weights other than 1
    mixed: bool = False  # whether the rule changed on the way

    def further(self, rule: Any, batch: int, in_turn: bool, weighted: bool) -> Terms:
        """The terms after a stretch of learning under these."""
        mixed = self.mixed or (self.rule is not None and self.rule != rule)
        return Terms(self.start, rule, max(self.batch, batch), self.in_turn and in_turn, self.weighted or weighted, mixed)


class Model:
    """Weights, the problem they solve, and how they predict: the last, their average, a pocket, or all by vote."""

    def __init__(self, problem: Problem, weights: Weights, constant: float, keep: str):
        self.problem = problem
        self.weights = weights
        self.constant = constant
        self.keep = keep
        self.pocket = Pocket(weights.w) if keep == "pocket" else None
        self.votes: Votes | None = no_votes(weights.w) if keep == "vote" else None
        self.terms = Terms()
        self._known: tuple[int, NDArray, NDArray] | None = None

    @property
    def seen(self) -> int:
        """Examples visited."""
        return int(self.weights.clock[0])

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""
        return int(self.weights.tally.sum())

    def copy(self) -> Model:
        """The same model, sharing nothing that learning changes."""
        twin = copy.copy(self)
        twin.weights = self.weights.copy()
        twin.pocket = copy.deepcopy(self.pocket)
        return twin

    def suit(self, rows: Rows) -> None:
        """Give the weights the memory order and at least the precision that these rows want."""
        self.weights = suited(self.weights, np.result_type(rows.values, self.weights.w).type, is_sparse(rows))

    def kept(self) -> tuple[NDArray, NDArray]:
        """(coef, intercept) of the weights that predict, in their own precision; with votes, of the last."""
        if self.keep == "average":
            now = int(self.weights.clock[0])
            if self._known is None or self._known[0] != now:
                average = self.weights.average().astype(self.weights.w.dtype)
                self._known = (now, *shown(self.problem, average, self.constant))
            return self._known[1:]
        return shown(self.problem, self.weights.w if self.pocket is None else self.pocket.w, self.constant)

    def last(self) -> tuple[NDArray, NDArray]:
        """(coef, intercept) of the last weights."""
        return shown(self.problem, self.weights.w, self.constant)

    def decision(self, X: Any) -> NDArray:
        """The decision values of rows: see `problems.decide`."""
        if self.votes is not None:
            return decide(self.problem, visible(self.problem, self.votes.scores(X, self.problem, self.constant)))
        coef, intercept = self.kept()
        return decide(self.problem, X @ coef.T + intercept)

    def errors(self, X: Any, labels: NDArray, w: NDArray) -> int:
        """How many rows the weights w do not predict."""
        coef, intercept = shown(self.problem, w, self.constant)
        return int(np.count_nonzero(winner(decide(self.problem, X @ coef.T + intercept)) != labels))

    def grow(self, larger: Problem) -> None:
        """Go over to a problem with more classes; the weights of the new ones are zero."""
        if self.votes is not None:
            start = grown(self.weights._replace(w=self.votes.start, drift=None), self.problem, larger).w
            self.votes = self.votes.grown(start, self.problem, larger)
        self.weights = grown(self.weights, self.problem, larger)
        self.problem = larger
        self._known = None

    def remember(self, X: Any, moves: NDArray) -> None:
        """Keep the mistakes made on rows of X, which vote from now on."""
        if self.votes is not None:
            self.votes = self.votes.extended(X, moves, int(self.weights.clock[0]))


def fresh(
    problem: Problem, rows: Rows, features: int, constant: float, keep: str, init: tuple[Any, Any] = (None, None)
) -> Model:
    """A model that has seen nothing, with weights of zero or those that `init` (coef, intercept) shows."""
    weights = zeros(features, problem, rows.values.dtype.type, keep == "average", is_sparse(rows))
    if any(part is not None for part in init):
        weights.w[...] = _start(problem, features, constant, *init)
    return Model(problem, weights, constant, keep)


def _start(problem: Problem, features: int, constant: float, coef_init: Any, intercept_init: Any) -> NDArray:
    vectors = {Binary: 1, OneVsOne: problem.classes * (problem.classes - 1) // 2}.get(type(problem), problem.classes)
    coef = np.zeros((vectors, features)) if coef_init is None else np.asarray(coef_init, dtype=np.float64)
    intercept = np.zeros(vectors) if intercept_init is None else np.asarray(intercept_init, dtype=np.float64)
    if coef.size != vectors * features or intercept.size != vectors:
        raise ValueError(
            f"coef_init must have shape {(vectors, features)} and intercept_init {(vectors,)}; "
            f"got {coef.shape} and {intercept.shape}"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("coef_init and intercept_init must be finite")
    if intercept.any() and not constant:
        raise ValueError("intercept_init and fit_intercept=False do not go together: there is no intercept to start")
    return hidden(problem, coef.reshape(vectors, features), intercept.reshape(vectors), constant)


def shown(problem: Problem, w: NDArray, constant: float) -> tuple[NDArray, NDArray]:
    """(coef, intercept): a row for each weight vector that a user sees, and its effective intercept."""
    w = w[:, None] if w.ndim == 1 else visible(problem, w)
    return w[:-1].T, w[-1] * w.dtype.type(constant)
