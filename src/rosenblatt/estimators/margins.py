"""More learners that are a margin and a step: passive-aggressive, MIRA, and the perceptron with uneven margins."""

from __future__ import annotations

import math
from typing import Any

from rosenblatt import rules
from rosenblatt.engine.problems import Spread
from rosenblatt.estimators.base import ScikitLearnsWords
from rosenblatt.estimators.linear import Linear
from rosenblatt.estimators.parameters import Flag, Number, OneOf
from rosenblatt.estimators.plan import PROBLEMS


class PassiveAggressiveClassifier(ScikitLearnsWords, Linear):
    """Moves just far enough to be right with a margin of 1: PA, PA-I and PA-II.

    Of all weights that give the example a margin of 1, the step takes the nearest: τ = ℓ/‖Δ‖² with ℓ = max(0, 1 − m). PA-I
    caps it, τ = min(C, ℓ/‖Δ‖²), PA-II damps it, τ = ℓ/(‖Δ‖² + 1/(2C)) (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer
    2006). If a unit vector separates rows of norm ≤ R with margin γ, there are at most max(R², 1/C)/γ² wrong predictions
    with PA-I and (R² + 1/(2C))/γ² with PA-II, in any order; updates go on after the last of them.

    The parameters are those of scikit-learn's class of this name, with the same meaning, and a few more. One thing differs
    on purpose: ‖Δ‖² includes the constant feature that carries the intercept, without which a step would overshoot the
    margin of 1 that it aims at. With `fit_intercept=False` the weights are scikit-learn's.

    Parameters
    ----------
    C : float, default=1.0
        The cap or the damping; `float("inf")` is PA, without either.
    fit_intercept : bool, default=True
        Whether to learn an intercept, as the weight of a constant feature.
    intercept_scaling : float, default=1.0
        The size of that constant.
    max_iter, tol, early_stopping, validation_fraction, n_iter_no_change
        When to stop, as in `Perceptron`.
    shuffle : bool, default=True
        Whether each epoch visits the rows in a new order.
    verbose : int, default=0
        Whether to show a line for each epoch on stderr.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        PA-I or PA-II.
    multiclass : {"ovr", "joint", "ovo"}, default="ovr"
        Each class against the rest, as scikit-learn does; one argmax over all classes, with Δ = x at the label and −x at
        the best rival; or each class against each.
    n_jobs, random_state, warm_start, class_weight, unknown_class
        As in `Perceptron`. A weight multiplies the step.
    average : bool, default=False
        Whether the mean of the weights after each example predicts, rather than the last.

    Examples
    --------
    >>> from rosenblatt import PassiveAggressiveClassifier
    >>> X, y = [[2, 0], [0, 1], [1, 2], [2, 1]], [1, 0, 0, 1]
    >>> clf = PassiveAggressiveClassifier(fit_intercept=False, shuffle=False).fit(X, y)
    >>> clf.predict([[3, 1]]).tolist(), clf.mistake_bound(radius=5.0, margin=1.0)
    ([1], 25.0)
    """

    _exact = False  # its steps are quotients
    _own = {"C": Number(0, open_low=True, closed_high=True), "loss": OneOf(("hinge", "squared_hinge")),
            "shuffle": Flag(), "average": Flag()}  # fmt: skip

    def __init__(
        self,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        verbose: int = 0,
        loss: str = "hinge",
        multiclass: str = "ovr",
        n_jobs: int | None = None,
        random_state: Any = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        unknown_class: str = "error",
        average: bool = False,
    ):
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.verbose = verbose
        self.loss = loss
        self.multiclass = multiclass
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.unknown_class = unknown_class
        self.average = average

    def _rule(self) -> rules.PA1 | rules.PA2:
        return rules.PA2(float(self.C)) if self.loss == "squared_hinge" else rules.PA1(float(self.C))


class MIRA(Linear):
    """Moves by the step that leaves the weights shortest: the margin-infused relaxed algorithm.

    Two classes: τ = (β − m)/‖x‖², cut off at 0 and 1. Many classes, jointly: shares τ_r ≤ [r = label] of sum 0 with the
    least Σ ‖w_r + τ_r x‖², so that every rival that scores too high gives way at once; sorting the scores finds them, in
    O(k log k) (Crammer and Singer 2003). With β > 0 and a unit separator of margin γ, two classes cause at most
    max(R², β)/γ² wrong predictions. With β = 0, the first form, all steps together are at most R/γ long; weights of zero,
    which no others are shorter than, are left by a step of 1.

    Parameters
    ----------
    margin : float, default=1
        β: the margin that a step aims at. Of two classes, β = 1 is PA-I with C = 1. With β = 0 a step ends on the plane
        itself, where rounding decides the prediction.
    fit_intercept, intercept_scaling, order, keep, max_iter, tol, n_iter_no_change
        As in `Perceptron`.
    multiclass : {"joint", "ovr", "ovo"}, default="joint"
        All rivals at once as above; or two classes at a time.
    class_weight, unknown_class, warm_start, n_jobs, random_state, verbose
        As in `Perceptron`. A weight multiplies the step.

    Examples
    --------
    >>> from rosenblatt import MIRA
    >>> X, y = [[2, 0], [0, 2], [-1, -1]], ["east", "north", "south-west"]
    >>> clf = MIRA(fit_intercept=False, order="cyclic").fit(X, y)
    >>> clf.predict([[3, 1], [0, 1], [-2, -1]]).tolist()
    ['east', 'north', 'south-west']
    """

    _exact = False
    _own = {"margin": Number(0)}
    _problems = {**PROBLEMS, "joint": Spread}

    def __init__(
        self,
        *,
        margin: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        order: str = "shuffle",
        keep: str = "last",
        multiclass: str = "joint",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        unknown_class: str = "error",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.order = order
        self.keep = keep
        self.multiclass = multiclass
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.unknown_class = unknown_class
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self) -> rules.Mira:
        return rules.Mira(float(self.margin))


class PAUM(Linear):
    """The perceptron with uneven margins: one for the positive class, another for the rest.

    Moves by eta0 whenever y·⟨w, x⟩ ≤ `positive_margin` for an example of the positive class, ≤ `negative_margin` for any
    other (Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola 2002): where positive examples are few, a larger margin gives
    them more room. At most (R² + 2·max(margins, 0)/eta0)/γ² updates. With equal margins it is `Perceptron(margin=…)`.

    Parameters
    ----------
    positive_margin : float, default=1.0
        τ₊, of the class that a weight vector is for: the second of two, or each of many.
    negative_margin : float, default=0.0
        τ₋, of the others; negative: forgive them a little.
    eta0 : float, default=1
        The rate.
    multiclass : {"ovr", "ovo"}, default="ovr"
        Each class against the rest, or each against each (then the class named first is the positive one).
    fit_intercept, intercept_scaling, order, keep, max_iter, tol, n_iter_no_change
        As in `Perceptron`.
    class_weight, unknown_class, warm_start, n_jobs, random_state, verbose
        As in `Perceptron`.

    Examples
    --------
    >>> from rosenblatt import PAUM
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [9.0]], [0, 0, 0, 0, 1]
    >>> even, uneven = (PAUM(positive_margin=tau, order="cyclic", tol=None).fit(X, y) for tau in (0, 50))
    >>> [round(float(-clf.intercept_[0] / clf.coef_[0, 0]), 2) for clf in (even, uneven)]  # where the classes part
    [6.0, 4.25]
    """

    _own = {"positive_margin": Number(-math.inf), "negative_margin": Number(-math.inf), "eta0": Number(0, open_low=True),
            "multiclass": OneOf(("ovr", "ovo"))}  # fmt: skip

    def __init__(
        self,
        *,
        positive_margin: float = 1.0,
        negative_margin: float = 0.0,
        eta0: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        order: str = "shuffle",
        keep: str = "last",
        multiclass: str = "ovr",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        unknown_class: str = "error",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.positive_margin = positive_margin
        self.negative_margin = negative_margin
        self.eta0 = eta0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.order = order
        self.keep = keep
        self.multiclass = multiclass
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.unknown_class = unknown_class
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self) -> rules.Uneven:
        return rules.Uneven(float(self.positive_margin), float(self.negative_margin), float(self.eta0))
