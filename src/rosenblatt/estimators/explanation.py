"""The result of `explain`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Explanation(NamedTuple):
    """The contributions of the features of a row to its score.

    The score is their sum (`math.fsum`) with the intercept.

    Attributes
    ----------
    label : object
        The class whose score is explained; a positive contribution raises it.
    score : float
        The score of the row.
    intercept : float
        The intercept of the class.
    contributions : dict
        The contribution of each feature, by its name or number, largest first; features of value zero are left out.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0]], ["spam", "spam", "ham"])
    >>> explanation = model.explain([0.5, 1.0])
    >>> explanation.label, explanation.score, explanation.intercept, explanation.contributions
    ('spam', 3.0, 1.0, {0: 1.0, 1: 1.0})
    """

    label: Any
    score: float
    intercept: float
    contributions: dict[Any, float]
