"""The contenders of `rosenblatt.cli.contenders`, and passive-aggressive ones."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn import linear_model

from bench.data import Missing
from rosenblatt.cli.contenders import Verdict, as_accurate, joined, ours, peer, same_weights

__all__ = [
    "Verdict",
    "as_accurate",
    "joined",
    "ours",
    "passive_aggressive",
    "peer",
    "peer_passive_aggressive",
    "same_weights",
]


def peer_passive_aggressive() -> Any:
    """scikit-learn's class, which 1.10 no longer has."""
    if not hasattr(linear_model, "PassiveAggressiveClassifier"):
        raise Missing("this scikit-learn has no PassiveAggressiveClassifier any more")
    return linear_model.PassiveAggressiveClassifier


def passive_aggressive(kind: Any, loss: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return kind(loss=loss, C=0.1, max_iter=5, tol=None, shuffle=False, fit_intercept=False)
