"""The result of `explain`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Explanation(NamedTuple):
    """The contributions of the features of a row to its score. The score is their sum (`math.fsum`) with the intercept.

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
    """

    label: Any
    score: float
    intercept: float
    contributions: dict[Any, float]
