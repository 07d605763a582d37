"""Two learners with the same task, and what must be true of their answers before their times mean anything."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import Perceptron as Peer

from rosenblatt.estimators.linear import Perceptron


class Verdict(NamedTuple):
    right: bool
    note: str


def ours(X: Any, order: str = "cyclic", keep: str = "last", epochs: int = 5) -> Perceptron:
    intercept = not sp.issparse(X)
    return Perceptron(max_iter=epochs, tol=None, order=order, keep=keep, multiclass="ovr", fit_intercept=intercept)


def peer(X: Any, order: str = "cyclic") -> Peer:
    """scikit-learn's perceptron, without the intercept of sparse data, which it learns a hundred times slower."""
    intercept = not sp.issparse(X)
    return Peer(max_iter=5, tol=None, shuffle=order == "shuffle", n_jobs=2, fit_intercept=intercept)


def answers(X: Any, weights: NDArray) -> NDArray:
    """The number of the class each row is given by weights (vectors, features + 1), the intercept last."""
    scores = X @ weights[:, :-1].T + weights[:, -1]
    return scores[:, 0] >= 0 if len(weights) == 1 else scores.argmax(axis=1)


def joined(coef: NDArray, intercept: NDArray) -> NDArray:
    return np.column_stack([coef, np.broadcast_to(intercept, len(coef))])


def same_weights(X: Any, a: NDArray, b: NDArray) -> Verdict:
    """Equal up to rounding; or, as a rounded score near zero may fall on either side, nearly always the same answer."""
    gap, scale = np.abs(a - b).max(), np.abs(b).max()
    share = np.mean(answers(X, a) == answers(X, b))
    note = f"weights differ by at most {gap:.2g} (largest {scale:.3g}), {share:.2%} of answers equal"
    return Verdict(bool(gap <= 1e-5 * scale or share >= 0.999), note)


def as_accurate(X: Any, y: NDArray, a: Any, b: Any) -> Verdict:
    """Two shuffles never give equal weights, so accuracies on the training rows stand in for them."""
    mine, theirs = a.score(X, y), b.score(X, y)
    return Verdict(mine >= theirs - 0.01, f"other shuffle, training accuracy {mine:.4f}, peer {theirs:.4f}")
