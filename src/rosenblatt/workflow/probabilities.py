"""A sigmoid for each class turns its score into a probability; a model file keeps two numbers for each (Platt 1999)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import DamagedModel
from rosenblatt.modelfile.parts import Parts


class Sigmoids(NamedTuple):
    """The probability of a class is 1/(1 + exp(−slope·score − intercept)). Of two classes it is that of the second; those
    of many are divided by their sum."""

    slopes: list[float]  # one for two classes, else one for each
    intercepts: list[float]
    folds: int
    rows: int

    def probabilities(self, scores: NDArray) -> NDArray[np.float64]:
        """Return the probabilities (rows, classes) for scores (rows,) of two classes or (rows, classes) of many.

        Parameters
        ----------
        scores : array
            What `decision_function` returns.

        Returns
        -------
        array of shape (rows, classes)
            Each row adds up to one.
        """
        from scipy.special import expit

        each = expit(np.asarray(self.slopes) * scores.reshape(len(scores), -1) + np.asarray(self.intercepts))
        if len(self.slopes) == 1:
            return np.hstack([1 - each, each])
        each[each.sum(axis=1) == 0] = 1.0
        return each / each.sum(axis=1, keepdims=True)

    def to_facts(self) -> dict[str, Any]:
        """Return it as facts for a model file."""
        return {"method": "sigmoid", **self._asdict()}

    @classmethod
    def from_facts(cls, facts: Any, classes: int) -> Sigmoids:
        """Return what `to_facts` described, for this number of classes; raise DamagedModel if it is invalid."""
        parts = Parts(facts)
        parts.text("method", ["sigmoid"])
        count = 1 if classes == 2 else classes
        slopes, intercepts = (parts.values(name, float, count) for name in ("slopes", "intercepts"))
        if not np.isfinite([slopes, intercepts]).all():
            raise DamagedModel("the sigmoids of its probabilities are not finite")
        return cls(slopes, intercepts, parts.whole("folds", 2), parts.whole("rows", 1))
