"""Weights as the sum of the mistakes that made them. A list of the mistakes, each with the moment at which it was
made, has every weight vector of the run: its score of a row is a prefix of one running sum over the mistakes.

The voted perceptron (Freund and Schapire 1999) lets each of them vote with as many votes as examples it survived.
Expected error on a further example ≤ 2/(n + 1) · E[min over unit u, γ > 0 of ((R + D)/γ)²], D the hinge losses at γ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.problems import JOINT, MOVE, Binary, Problem, columns
from rosenblatt.engine.rows import Matrix, frozen
from rosenblatt.engine.weights import places, with_features
from rosenblatt.errors import InvalidData

AT_ONCE = 2**22  # inner products computed at a time


class Votes(NamedTuple):
    """The mistakes of a run: the rows they were made on, the moves they caused, and the weights before them all."""

    rows: Matrix  # (mistaken rows, features), an array or a CSR matrix
    moves: NDArray  # MOVE records; `row` counts in `rows`
    start: NDArray  # the first weights, as `Weights.w`
    clock: int  # examples seen

    def with_moves(self, X: Matrix, moves: NDArray, clock: int) -> Votes:
        """With the moves of one more stretch of learning, made on rows of X."""
        mistaken, places = np.unique(moves["row"], return_inverse=True)
        moves = moves.copy()
        moves["row"] = places + self.rows.shape[0]
        rows = stack_rows(self.rows, X[mistaken]) if self.rows.shape[0] else X[mistaken]
        return Votes(rows, np.concatenate([self.moves, moves]), self.start, clock)

    def with_more_classes(self, start: NDArray, problem: Problem, larger: Problem) -> Votes:
        """The same votes in a problem with more classes, whose first weights are `start`."""
        moves = self.moves.copy()
        where = places(problem, larger)
        if isinstance(problem, Binary):
            moves["gains"], moves["loses"] = where[1], where[0]
        else:
            for field in ("gains", "loses"):
                moves[field] = np.where(moves[field] >= 0, where[moves[field]], -1)
        return self._replace(moves=moves, start=start)

    def with_features(self, features: int) -> Votes:
        """The same votes for rows of so many features."""
        return self._replace(rows=resize_columns(self.rows, features), start=with_features(self.start, features))

    def scores(self, X: Matrix, problem: Problem, constant: float) -> NDArray:
        """For each row of X, the mean vote of the weights after each example seen: of their signs, −1 to 1, or with one
        joint decision the share of them that name each class."""
        first, offset = _columns_of(self.start, constant)
        result = np.empty((X.shape[0], columns(problem)))
        step = max(1, AT_ONCE // max(self.rows.shape[0], 1))
        for begin in range(0, X.shape[0], step):
            part = X[begin : begin + step]
            inner = products(part, self.rows) + constant * constant
            before = part @ first + offset
            result[begin : begin + step] = poll(problem, inner, before, self.moves, self.clock)
        return result


def stack_rows(rows: Matrix, more: Matrix) -> Matrix:
    """Rows and more rows; CSR if either is."""
    mixed = sp.issparse(rows) or sp.issparse(more)
    return sp.vstack([rows, more]).tocsr() if mixed else np.vstack([rows, more])


def resize_columns(rows: Any, features: int) -> Matrix:
    """The same rows with so many columns: new ones of zeros, or without those at the end, if they are zero."""
    count, known = rows.shape
    if features >= known:
        if sp.issparse(rows):
            return type(rows)((rows.data, rows.indices, rows.indptr), shape=(count, features))
        return np.hstack([rows, np.zeros((count, features - known), rows.dtype)])
    rest = rows[:, features:]
    if (rest.count_nonzero() if sp.issparse(rest) else np.count_nonzero(rest)) > 0:
        raise InvalidData(f"{features} columns are too few: rows that are kept have values in the columns after them")
    return rows[:, :features] if sp.issparse(rows) else np.ascontiguousarray(rows[:, :features])


def products(X: Matrix, rows: Matrix) -> NDArray:
    """The inner products of the rows of X with `rows`, in float64."""
    inner = X @ rows.T
    return np.asarray(inner.toarray() if sp.issparse(inner) else inner, dtype=np.float64)


def no_votes(start: NDArray) -> Votes:
    """The votes of a learner with these weights that has seen nothing."""
    return Votes(np.empty((0, len(start) - 1)), np.empty(0, MOVE), start.copy(order="K"), 0)


def _columns_of(w: NDArray, constant: float) -> tuple[NDArray, NDArray]:
    w = w[:, None] if w.ndim == 1 else w
    return w[:-1], w[-1] * constant


def poll(problem: Problem, inner: NDArray, before: NDArray, moves: NDArray, clock: int) -> NDArray:
    """(rows, columns): the mean vote of the weights after each of the `clock` examples seen, from the products of the
    rows with the mistaken rows (rows, mistakes) and the scores of the first weights (rows, columns)."""
    count = count_winners if isinstance(problem, JOINT) else count_signs
    votes = np.empty(before.shape)
    scores = np.array(before, dtype=np.float64, order="C")
    count(np.ascontiguousarray(inner, dtype=np.float64), scores, frozen(moves), clock, votes)
    votes /= max(clock, 1)
    return votes


@jit
def count_signs(inner, scores, moves, clock, votes):
    """votes[q, k] = Σ over examples seen of the sign (0 counts as +1) of column k's score of row q at that time.

    `inner` is (rows, mistakes), `scores` (rows, columns) those of the first weights. A column's votes are counted when
    it changes, for all the examples since it last did.
    """
    since = np.zeros(scores.shape[1], np.int64)
    for q in range(len(scores)):
        since[:] = 0
        votes[q] = 0.0
        for m in range(moves.size):
            value = moves[m]["tau"] * inner[q, moves[m]["row"]]
            for column, sign in ((moves[m]["gains"], 1.0), (moves[m]["loses"], -1.0)):
                if column >= 0:
                    lasted = moves[m]["clock"] - since[column]
                    votes[q, column] += lasted if scores[q, column] >= 0.0 else -lasted
                    since[column] = moves[m]["clock"]
                    scores[q, column] += sign * value
        for k in range(scores.shape[1]):
            lasted = clock - since[k]
            votes[q, k] += lasted if scores[q, k] >= 0.0 else -lasted


@jit
def count_winners(inner, scores, moves, clock, votes):
    """votes[q, k] = the number of examples seen after which the weights named class k for row q."""
    for q in range(len(scores)):
        votes[q] = 0.0
        since = 0
        for m in range(moves.size):
            if moves[m]["clock"] > since:
                votes[q, np.argmax(scores[q])] += moves[m]["clock"] - since
                since = moves[m]["clock"]
            value = moves[m]["tau"] * inner[q, moves[m]["row"]]
            scores[q, moves[m]["gains"]] += value
            scores[q, moves[m]["loses"]] -= value
        votes[q, np.argmax(scores[q])] += clock - since
