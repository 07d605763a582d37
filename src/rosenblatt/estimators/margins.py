"""More learners that are a margin and a step: passive-aggressive, MIRA, and the perceptron with uneven margins."""

from __future__ import annotations

import math

from rosenblatt import rules
from rosenblatt.engine.problems import Spread
from rosenblatt.estimators.base import ShuffleAndAverage
from rosenblatt.estimators.linear import Linear
from rosenblatt.estimators.parameters import (
    ClassificationParameters,
    EpochParameters,
    InterceptParameters,
    MarginParameters,
    Number,
    OneOf,
    ValidationParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import PROBLEMS


@with_parameters
class PassiveAggressiveClassifier(
    ShuffleAndAverage, Linear, InterceptParameters, EpochParameters, ValidationParameters, ClassificationParameters
):
    """Passive-aggressive classifier (PA, PA-I, PA-II): moves just far enough to be right with a margin of 1.

    Of all weights that give the example a margin of 1, the step takes the nearest: τ = ℓ/‖Δ‖² with ℓ = max(0, 1 − m). PA-I
    caps it, τ = min(C, ℓ/‖Δ‖²), PA-II damps it, τ = ℓ/(‖Δ‖² + 1/(2C)) (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer
    2006). If a unit vector separates rows of norm ≤ R with margin γ, there are at most max(R², 1/C)/γ² wrong predictions
    with PA-I and (R² + 1/(2C))/γ² with PA-II, in any order; updates go on after the last of them.

    The parameters are those of scikit-learn's class of this name, with the same meaning, and a few more. One thing differs
    on purpose: ‖Δ‖² includes the constant feature that carries the intercept, without which a step would overshoot the
    margin of 1 that it aims at. With `fit_intercept=False` the weights are scikit-learn's.

    Parameters
    ----------
    C
        The cap or the damping; `float("inf")` is PA, without either.
    loss
        PA-I or PA-II.
    multiclass
        Each class against the rest, as scikit-learn does; one argmax over all classes, with Δ = x at the label and −x at
        the best rival; or each class against each.

    Examples
    --------
    >>> from rosenblatt import PassiveAggressiveClassifier
    >>> X, y = [[2, 0], [0, 1], [1, 2], [2, 1]], [1, 0, 0, 1]
    >>> clf = PassiveAggressiveClassifier(fit_intercept=False, shuffle=False).fit(X, y)
    >>> clf.predict([[3, 1]]).tolist(), clf.mistake_bound(radius=5.0, margin=1.0)
    ([1], 25.0)
    """

    C: float = parameter(1.0, Number(0, open_low=True, closed_high=True))
    loss: str = parameter("hinge", OneOf(("hinge", "squared_hinge")))
    multiclass: str = parameter("ovr", OneOf(("ovr", "joint", "ovo")))

    _exact = False  # its steps are quotients

    def _rule(self) -> rules.PA1 | rules.PA2:
        return rules.PA2(float(self.C)) if self.loss == "squared_hinge" else rules.PA1(float(self.C))


@with_parameters
class MIRA(Linear, MarginParameters):
    """The margin-infused relaxed algorithm: a linear classifier that takes the step which leaves the weights shortest.

    Two classes: τ = (β − m)/‖x‖², cut off at 0 and 1. Many classes, jointly: shares τ_r ≤ [r = label] of sum 0 with the
    least Σ ‖w_r + τ_r x‖², so that every rival that scores too high gives way at once; sorting the scores finds them, in
    O(k log k) (Crammer and Singer 2003). With β > 0 and a unit separator of margin γ, two classes cause at most
    max(R², β)/γ² wrong predictions. With β = 0, the first form, all steps together are at most R/γ long; weights of zero,
    which no others are shorter than, are left by a step of 1.

    Parameters
    ----------
    margin
        β: the margin that a step aims at. Of two classes, β = 1 is PA-I with C = 1. With β = 0 a step ends on the plane
        itself, where rounding decides the prediction.
    multiclass
        All rivals at once as above; or two classes at a time.

    Examples
    --------
    >>> from rosenblatt import MIRA
    >>> X, y = [[2, 0], [0, 2], [-1, -1]], ["east", "north", "south-west"]
    >>> clf = MIRA(fit_intercept=False, order="cyclic").fit(X, y)
    >>> clf.predict([[3, 1], [0, 1], [-2, -1]]).tolist()
    ['east', 'north', 'south-west']
    """

    margin: float = parameter(1.0, Number(0))

    _exact = False
    _problems = {**PROBLEMS, "joint": Spread}

    def _rule(self) -> rules.Mira:
        return rules.Mira(float(self.margin))


@with_parameters
class PAUM(Linear, MarginParameters):
    """The perceptron with uneven margins: one for the positive class, another for the rest.

    Moves by eta0 whenever y·⟨w, x⟩ ≤ `positive_margin` for an example of the positive class, ≤ `negative_margin` for any
    other (Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola 2002): where positive examples are few, a larger margin gives
    them more room. At most (R² + 2·max(margins, 0)/eta0)/γ² updates. With equal margins it is `Perceptron(margin=…)`.

    Parameters
    ----------
    positive_margin
        τ₊, of the class that a weight vector is for: the second of two, or each of many.
    negative_margin
        τ₋, of the others; negative: forgive them a little.
    eta0
        The rate.
    multiclass
        Each class against the rest, or each against each (then the class named first is the positive one).

    Examples
    --------
    >>> from rosenblatt import PAUM
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [9.0]], [0, 0, 0, 0, 1]
    >>> settings = {"order": "cyclic", "keep": "last", "tol": None}
    >>> even, uneven = (PAUM(positive_margin=tau, **settings).fit(X, y) for tau in (0, 50))
    >>> [round(float(-clf.intercept_[0] / clf.coef_[0, 0]), 2) for clf in (even, uneven)]  # where the classes part
    [6.0, 4.25]
    """

    positive_margin: float = parameter(1.0, Number(-math.inf))
    negative_margin: float = parameter(0.0, Number(-math.inf))
    eta0: float = parameter(1.0, Number(0, open_low=True))
    multiclass: str = parameter("ovr", OneOf(("ovr", "ovo")))

    def _rule(self) -> rules.Uneven:
        return rules.Uneven(float(self.positive_margin), float(self.negative_margin), float(self.eta0))
