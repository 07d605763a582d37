"""The perceptron sees its sum of mistakes θ through a link: w = ∇½‖θ‖_p². With p = 2 the link is the identity; the larger p
is, the more weight goes to the largest coordinates of θ, and the less it costs that there are many others.

Weights change only on mistakes, so the link is applied there and kept: a look at a row costs one product a value, whatever
p is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import dot, place
from rosenblatt.engine.rows import Rows
from rosenblatt.estimators.parameters import Number, StateParameters, parameter, with_parameters
from rosenblatt.estimators.states.base import MODERATE, Stateful, everything_unless, learn, score, zero_counts
from rosenblatt.theory import bounds

EXTREME = 1e100  # a power past this, or below its inverse, is measured in another unit


class PNorm(NamedTuple):
    """Sums of mistakes θ and what the link makes of them: w = stretch · linked, linked = sign(θ)(|θ|/unit)^(p − 1).

    `unit`, near the largest |θ|, keeps high powers within the range of numbers. For p = 2 it is 1, and w is θ exactly.
    """

    p: float
    margin: float
    theta: NDArray  # (vectors, features + 1)
    linked: NDArray  # (vectors, features + 1)
    unit: NDArray  # (vectors,)
    power: NDArray  # (vectors,): (‖θ‖_p/unit)^p
    peak: NDArray  # (vectors,): the highest power since it was last measured
    stretch: NDArray  # (vectors,): unit · power^(−(p − 2)/p)
    tally: NDArray  # (vectors,) int64: updates
    clock: NDArray  # (1,) int64: examples seen

    def changes(self, rows: Rows, constant: float) -> slice | None:
        """All weights, since they are measured in another unit now and then; none if ‖θ‖_p and the rows are moderate."""
        bounded = float((self.unit * self.power ** (1 / self.p)).max()) <= MODERATE
        return everything_unless(bounded, self.theta.size, rows, constant)

    def vectors(self) -> NDArray:
        """The weights w."""
        return self.linked * self.stretch[:, None]


@score.register
def _(state: PNorm, vector, columns, values, constant):
    linked = state.linked[vector]
    return state.stretch[vector] * (dot(columns, values, linked) + constant * linked[-1])


@learn.register
def _(state: PNorm, vector, columns, values, constant, sign, score, weight):
    if sign * score > state.margin:
        return False
    add(state, vector, columns, values, constant, weight * sign)
    return True


@jit
def add(state, vector, columns, values, constant, step):
    """θ += step · (row, constant), with all that follows from it.

    The power is brought up to date as long as it can be trusted: not where it is what is left of a much larger one.
    Measured anew after as many updates as there are weights, it costs one weight an update.
    """
    p, unit, theta, linked = state.p, state.unit[vector], state.theta[vector], state.linked[vector]
    power = state.power[vector]
    for j in range(values.size):
        power += shift(theta, linked, place(columns, j), step * values[j], unit, p)
    power += shift(theta, linked, theta.size - 1, step * constant, unit, p)
    state.power[vector] = power
    state.peak[vector] = max(state.peak[vector], power)
    due = (state.tally[vector] + 1) % theta.size == 0 or power < 1e-6 * state.peak[vector]
    if due or not 1.0 / EXTREME < power < EXTREME:
        measure(state, vector)
    power = state.power[vector]
    state.stretch[vector] = state.unit[vector] * power ** (2.0 / p - 1.0) if power > 0.0 else state.unit[vector]


@jit
def shift(theta, linked, feature, step, unit, p):
    """θ_feature += step; by how much the power has grown."""
    if step == 0.0:
        return 0.0
    before = abs(theta[feature]) / unit * abs(linked[feature])
    theta[feature] += step
    size = abs(theta[feature]) / unit
    raised = size ** (p - 1.0)
    linked[feature] = raised if theta[feature] >= 0.0 else -raised
    return size * raised - before


@jit
def measure(state, vector):
    """Choose the unit by the largest |θ|, and compute the linked weights and the power from θ."""
    p, theta, linked = state.p, state.theta[vector], state.linked[vector]
    largest = 0.0
    for j in range(theta.size):
        largest = max(largest, abs(theta[j]))
    unit = largest if p > 2.0 and largest > 0.0 else 1.0
    power = 0.0
    for j in range(theta.size):
        size = abs(theta[j]) / unit
        raised = size ** (p - 1.0)
        linked[j] = raised if theta[j] >= 0.0 else -raised
        power += size * raised
    state.unit[vector], state.power[vector], state.peak[vector] = unit, power, power


@with_parameters
class PNormPerceptron(Stateful, StateParameters):
    """The p-norm perceptron: a linear classifier for data in which few of many features are relevant.

    Mistakes add up in θ += y·x, and predict through w = ∇½‖θ‖_p², that is w_i = sign(θ_i)|θ_i|^(p − 1)/‖θ‖_p^(p − 2). With
    1/p + 1/q = 1: if ‖x‖_p ≤ X for all rows, constant feature included, and some u of ‖u‖_q = 1 separates them with margin
    γ, there are at most ((p − 1)X² + 2·margin)/γ² updates from w = 0, in any order (Grove, Littlestone and Schuurmans,
    General convergence results for linear discriminant updates, Machine Learning 2001; Gentile, The robustness of the
    p-norm algorithms, Machine Learning 2003).

    p = 2 is the perceptron. With p = 2·ln d, d the number of features, X ≤ √e·max|x_ij| and ‖u‖_q ≤ ‖u‖₁, so that some u of
    ‖u‖₁ = 1 and margin γ allows at most e(2·ln d − 1)·max|x_ij|²/γ² updates. That grows with the logarithm of the number of
    features, as Winnow's bound does, and neither the signs of the weights nor a good rate need be known.

    Parameters
    ----------
    p
        The norm, at least 2; "log": 2·ln of the number of features, the constant one included, but at least 2.
    margin
        Update whenever y·⟨w, x⟩ ≤ margin.

    Attributes
    ----------
    p_ : float
        The p of the norm.

    Examples
    --------
    Three features of a thousand matter:

    >>> import numpy as np
    >>> from rosenblatt import PNormPerceptron
    >>> X = np.random.default_rng(0).choice([-1, 1], (400, 1000))
    >>> y = X[:, :3].sum(axis=1) > 0
    >>> few, many = PNormPerceptron(p="log", tol=None).fit(X, y), PNormPerceptron(p=2, tol=None).fit(X, y)
    >>> few.n_updates_ < many.n_updates_ / 2
    True
    >>> sorted(np.argsort(-np.abs(few.coef_[0]))[:3].tolist())
    [0, 1, 2]
    """

    p: float | str = parameter(2.0, Number(2, words=("log",)))
    margin: float = parameter(0.0, Number(0))

    def mistake_bound(self, radius: float, margin: float, classes: int | None = None) -> float:
        """Compute the most updates that rows can cause from weights of zero, if they can be separated.

        Radius and margin are those of the rows with the constant feature. The radius is at most the Euclidean one, but a u
        of Euclidean length 1 may be longer in the q-norm. There is no bound while p = "log" waits for the number of
        features.

        Parameters
        ----------
        radius : float
            The largest ‖x‖_p.
        margin : float
            The margin of a u with ‖u‖_q = 1, 1/p + 1/q = 1, that separates two classes, or the least margin of
            those that separate each class from the rest.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        if not self.__sklearn_is_fitted__() and isinstance(self.p, str):
            return math.inf
        p = self.p_ if isinstance(self.p, str) else float(self.p)
        return self._bound_for(classes, radius, lambda radius: bounds.p_norm(radius, margin, p, delta=self.margin))

    @property
    def p_(self) -> float:
        state = self._fitted().state
        return state.p if isinstance(state, PNorm) else self._state(1, self.n_features_in_).p

    def _state(self, vectors: int, features: int) -> PNorm:
        p = max(2.0, 2 * math.log(features + bool(self.fit_intercept))) if isinstance(self.p, str) else float(self.p)
        shape = (vectors, features + 1)
        theta, unit, none = np.zeros(shape), np.ones(vectors), np.zeros(vectors)
        arrays = (theta, theta.copy(), unit, none, none.copy(), unit.copy())
        return PNorm(p, float(self.margin), *arrays, *zero_counts(vectors))
