"""Winnow and its relatives multiply weights instead of adding to them: their mistakes grow with the logarithm of the number
of features, where the perceptron's may grow with the number, if few features matter.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_X_y

from rosenblatt.engine.rows import MatrixLike, as_rows, frozen, numpy_array, refuse_dates
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.estimators.inputs import invalid_data
from rosenblatt.estimators.parameters import (
    Anything,
    ClassWeightParameters,
    EpochParameters,
    Flag,
    Number,
    OrderParameters,
    StateParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.states import multiplicative
from rosenblatt.estimators.states.base import Stateful, StateModel
from rosenblatt.estimators.states.multiplicative import outside
from rosenblatt.theory import bounds

_DEFAULT_RATE = 0.1  # over the largest value


class Conditions(NamedTuple):
    """What the theorem of normalised Winnow asks of data and parameters, and what it then promises."""

    hold: bool  # margin > δ and rate < 2(margin − δ)/radius²
    margin: float  # γ: the most that weights on the simplex give to every row; ≤ 0 if they separate nothing
    radius: float  # R: the largest |value|
    rate: float  # η
    bound: float  # the most updates; infinity unless the conditions hold
    separator: NDArray  # the weights on the simplex that have that margin


@with_parameters
class NormalisedWinnow(Stateful, StateParameters):
    """Winnow with normalised weights: a linear classifier that multiplies its weights, which sum up to 1.

    The weights are not negative: w ∝ w ⊙ exp(ηyx) whenever y⟨w, x⟩ ≤ δ. It is the exponentiated gradient, and the form of
    Winnow in the notes of Waterloo CS489/698, whose theorem lacks two conditions. Let R be the largest |value| and γ the
    margin of some u on the simplex. If **δ < γ and η < 2(γ − δ)/R²**, then from w₀, in any order,

        updates ≤ KL(u‖w₀) / (η(γ − δ) − η²R²/2),

    which for uniform w₀ and η = (γ − δ)/R² is at most 2R² ln d/(γ − δ)². *Proof.* An update lowers KL(u‖w) by
    η y⟨u, x⟩ − ln Σ w exp(ηyx) ≥ ηγ − ηδ − η²R²/2 (Hoeffding's lemma). ∎ With a larger η it may run in a circle for ever:
    rows (1, −0.9) and (−0.9, 1), w₀ = (0.9, 0.1), η = 5. γ is not known in advance; `conditions` computes it, and `fit`
    warns where no γ ≤ R would do.

    Parameters
    ----------
    eta0
        η. None takes 0.1 over the largest value met so far, which leaves the scale of the data out of it and keeps the
        bound with the η of the largest value of all: it holds if γ − δ > 0.05 R.
    margin
        δ: update whenever y⟨w, x⟩ ≤ margin.
    signed
        Whether to learn weights of either sign, by giving each row its negative as further features: w = w⁺ − w⁻, with
        Σ(w⁺ + w⁻) = 1. Then γ is the margin of any u with Σ|u| ≤ 1. False: weights on the simplex as such.
    init
        w₀, of each weight vector: positive numbers for the features and, last, the constant feature; with `signed` once
        more for their negatives. They are divided by their sum. None: all equal.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        w. One vector for two classes, otherwise one for each class, learned against the rest.
    p_ : float
        Infinity: the norm in which `mistake_bound` measures rows.

    Notes
    -----
    Weights are kept as logarithms. An update costs the values of the row; only now and then are all weights divided by
    their sum.

    Examples
    --------
    >>> from rosenblatt import NormalisedWinnow
    >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
    >>> y = ["spam", "ham", "spam", "ham", "spam", "ham"]
    >>> clf = NormalisedWinnow(order="cyclic").fit(X, y)
    >>> clf.n_updates_ <= clf.conditions(X, y).bound, clf.stop_reason_, clf.predict([[0, 1, 0, 0, 0]]).tolist()
    (True, 'converged', ['spam'])
    """

    eta0: float | None = parameter(None, Number(0, open_low=True, optional=True))
    margin: float = parameter(0.0, Number(0))
    signed: bool = parameter(True, Flag())
    init: ArrayLike | None = parameter(None, Anything("array or None"))

    _endless = ("logs",)
    _adjustable = ("init",)

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        super().fit(X, y, sample_weight)
        self._warn()
        return self

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        super().partial_fit(X, y, classes, sample_weight)
        self._warn()
        return self

    fit.__doc__ = Stateful.fit.__doc__
    partial_fit.__doc__ = Stateful.partial_fit.__doc__

    @property
    def p_(self) -> float:
        self._fitted()
        return math.inf

    def mistake_bound(self, radius: float, margin: float, features: int | None = None, classes: int | None = None) -> float:
        """Compute the most updates that rows can cause, if they can be separated and the conditions hold.

        Radius and margin are those of the rows with the constant feature.

        Parameters
        ----------
        radius : float
            The largest |value|.
        margin : float
            The margin of a u of the kind that is learned that separates two classes, or the least margin of
            those that separate each class from the rest.
        features : int, optional
            The number of features, with the constant one; by default that of the last fit.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        features = _dimensions(self, features)
        start = self._start(features - bool(self.fit_intercept))
        farthest = math.log(start.sum() / start[start > 0].min())  # the most that KL(u‖w₀) can be

        def bound(radius: float) -> float:
            return bounds.exponentiated(farthest, radius, margin, self._rate(radius), self.margin)

        return self._bound_for(classes, radius, bound)

    def conditions(self, X: MatrixLike, y: ArrayLike) -> Conditions:
        """Check the conditions of the theorem on rows of two classes, and compute the bound that follows.

        It solves a linear program with as many variables as there are weights: for small data.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.
        y : array (rows,)
            Their labels.

        Returns
        -------
        Conditions
            Whether they hold, and all that enters them.

        Raises
        ------
        InvalidData
            If y does not have two classes.
        """
        constant = self._plan().constant
        refuse_dates(X)
        with invalid_data():
            X, y = check_X_y(numpy_array(X, "X"), numpy_array(y, "y"), accept_sparse="csr", dtype=np.float64)
        classes = np.unique(y)
        if len(classes) != 2:
            raise InvalidData(f"conditions needs two classes; y has {len(classes)}", hint="pass y == label for one of them")
        rows = sp.csr_array(X)
        if constant:
            rows = sp.hstack([rows, np.full((rows.shape[0], 1), constant)])
        if self.signed:
            rows = sp.hstack([rows, -rows])
        rows = sp.diags_array(np.where(y == classes[1], 1.0, -1.0)) @ rows
        start = self._start(X.shape[1])[:, : None if constant else -1].ravel()
        u = _widest(rows.tocsr())
        margin, radius = float((rows @ u).min()), float(np.abs(rows.data).max(initial=0.0))
        used = u > 0
        distance = float(u[used] @ np.log(u[used] / start[used] * start.sum()))
        rate = self._rate(radius)
        bound = bounds.exponentiated(distance, radius, margin, rate, self.margin) if margin > 0 else math.inf
        return Conditions(math.isfinite(bound), margin, radius, rate, bound, u)

    def _start(self, features: int) -> NDArray:
        """w₀ (parts, features + 1), not yet divided by its sum; no weight on a constant feature that is not there."""
        parts, width = 1 + bool(self.signed), features + bool(self.fit_intercept)
        init = np.ones(parts * width) if self.init is None else np.asarray(self.init, dtype=np.float64)
        if init.shape != (parts * width,) or not (np.isfinite(init).all() and (init > 0).all()):
            further = f"{', the constant one' if self.fit_intercept else ''}{' and their negatives' if self.signed else ''}"
            raise InvalidParameter("init", self.init, f"{parts * width} positive numbers, for {features} features{further}")
        start = np.zeros((parts, features + 1))
        start[:, :width] = init.reshape(parts, width)
        return start

    def _rate(self, radius: float) -> float:
        return _DEFAULT_RATE / max(radius, multiplicative.TINY) if self.eta0 is None else float(self.eta0)

    def _state(self, vectors: int, features: int) -> Any:
        relative = self.eta0 is None
        return multiplicative.simplex(vectors, self._start(features), self._rate(1.0), relative, float(self.margin))

    def _harmless(self, held: int) -> dict[str, Any]:
        return {"init": None}  # which may have been set to something else since

    def _warn(self) -> None:
        radius = float(self._model.state.largest.max())
        if radius == 0:
            return
        rate, margin = self._rate(radius), float(self.margin)
        if rate >= 2 * (radius - margin) / radius / radius:  # the square might overflow
            warnings.warn(
                f"eta0={self.eta0!r} and margin={self.margin!r} break the conditions of convergence: eta0 must be below "
                f"2(γ − margin)/{radius:g}², and no weights have a margin γ above the largest value {radius:g}; learning "
                "may never converge. Lower them, or leave eta0=None; conditions(X, y) computes γ",
                ConvergenceWarning,
                stacklevel=3,
            )


@with_parameters
class BalancedWinnow(Stateful, StateParameters):
    """Balanced Winnow: a linear classifier that multiplies its weights, which are of either sign (Littlestone 1989).

    The weights are w⁺ − w⁻, both 1 at first. On a mistake, y⟨w⁺ − w⁻, x⟩ ≤ 0, w⁺ is multiplied by αʸˣ and w⁻ by α⁻ʸˣ,
    feature by feature.

    Divided by its sum it is `NormalisedWinnow` with `signed`, margin 0 and η = ln α, and makes the same mistakes between
    two classes. So with the largest |value| R, d features and a u, Σ|u| ≤ 1, of margin γ > R² ln α/2,

        mistakes ≤ ln(2d) / (γ ln α − (R ln α)²/2).

    It needs no sum of all weights, but its weights can overflow, and then say so, where those on the simplex cannot.

    Parameters
    ----------
    alpha
        α > 1. The larger the values and the smaller the margin, the nearer to 1 it must be.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        w⁺ − w⁻. One vector for two classes, otherwise one for each class, learned against the rest.
    p_ : float
        Infinity: the norm in which `mistake_bound` measures rows.

    Examples
    --------
    >>> from rosenblatt import BalancedWinnow
    >>> clf = BalancedWinnow(alpha=2, order="cyclic", fit_intercept=False).fit([[1, 0], [1, 1], [0, 1]], [1, 1, 0])
    >>> clf.coef_, clf.stop_reason_
    (array([[ 3.75, -1.5 ]]), 'converged')
    """

    alpha: float = parameter(1.1, Number(1, open_low=True))

    @property
    def p_(self) -> float:
        self._fitted()
        return math.inf

    def mistake_bound(self, radius: float, margin: float, features: int | None = None, classes: int | None = None) -> float:
        """Compute the most mistakes that rows can cause, if they can be separated.

        Radius and margin are those of the rows with the constant feature.

        Parameters
        ----------
        radius : float
            The largest |value|.
        margin : float
            The margin of a u with Σ|u| ≤ 1 that separates two classes, or the least margin of
            those that separate each class from the rest.
        features : int, optional
            The number of features, with the constant one; by default that of the last fit.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        features = _dimensions(self, features)
        return self._bound_for(classes, radius, lambda radius: bounds.balanced_winnow(radius, margin, features, self.alpha))

    def _by_columns(self, model: StateModel) -> bool:
        return True

    def _state(self, vectors: int, features: int) -> Any:
        return multiplicative.balanced(vectors, features, float(self.alpha))


@with_parameters
class Littlestone(Stateful, OrderParameters, EpochParameters, ClassWeightParameters):
    """What Winnow1 and Winnow2 share: weights of 1 that are held against a threshold, and features from 0 to 1.

    Parameters
    ----------
    alpha
        α > 1, the factor by which a weight rises or falls.
    theta
        θ > 0, the threshold. None: the number of features. The bound asks for θ ≥ 1/α.
    """

    alpha: float = parameter(2.0, Number(1, open_low=True))
    theta: float | None = parameter(None, Number(0, open_low=True, optional=True))

    _between: ClassVar[bool]  # whether features may lie between 0 and 1
    _demotion: ClassVar[float]
    _advice: ClassVar[str]
    _endless = ("exponents",)

    def _read(self, X: MatrixLike, y: ArrayLike, reset: bool) -> tuple[Any, NDArray]:
        X, y = super()._read(X, y, reset)
        as_rows(X)  # refuses a broken CSR matrix, on which scipy's methods crash
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        flat = frozen(X.data if sp.issparse(X) else X.reshape(-1))
        if (at := outside(flat, self._between)) >= 0:
            row, column = divmod(at, X.shape[1])
            if sp.issparse(X):
                row, column = np.searchsorted(X.indptr, at, side="right") - 1, X.indices[at]
            raise InvalidData(
                f"{type(self).__name__} needs features that are 0 {'to' if self._between else 'or'} 1; X has {flat[at]:g} "
                f"at row {row}, column {column}",
                hint=f"{self._advice}, or use BalancedWinnow or NormalisedWinnow, which take any numbers",
                row=int(row),
            )
        return X, y

    def _state(self, vectors: int, features: int) -> Any:
        return multiplicative.threshold(vectors, features, float(self.alpha), self._threshold(features), self._demotion)

    def _threshold(self, features: int) -> float:
        return float(features if self.theta is None else self.theta)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # what falls as a feature rises cannot be learned
        return tags


@with_parameters
class Winnow1(Littlestone):
    """Winnow1: learns a disjunction of few among many 0/1 features and eliminates irrelevant ones (Littlestone 1988).

    All weights are 1 at first. The second class is predicted where ⟨w, x⟩ ≥ θ. A row of the second class that is missed
    multiplies the weights of its features by α; one of the first class that is hit sets them to 0. If the classes are
    apart by "one of these k features is 1", then in any order

        mistakes ≤ αk(log_α θ + 1) + n/θ,

    which for α = 2 and θ = n is 2k(1 + log₂ n) + 1: a thousand irrelevant features cost no more than a few mistakes each
    relevant one. Noise can eliminate a relevant feature for good; `Winnow2` forgives.

    At the threshold exactly the answer is the second class, in learning too: a row of that class is then right, where
    learners without a threshold would call it a tie and learn from it. Littlestone's bounds rest on that.

    Attributes
    ----------
    coef_ : (vectors, features) array
        w ≥ 0. One vector for two classes, otherwise one for each class, learned against the rest.
    intercept_ : (vectors,) array
        −θ, which is not learned.

    Examples
    --------
    >>> from rosenblatt import Winnow1
    >>> X = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    >>> clf = Winnow1(order="cyclic").fit(X, ["yes", "no", "yes", "yes", "no"])
    >>> clf.coef_, clf.intercept_, clf.n_mistakes_, clf.disjunction_bound(relevant=2, features=4)
    (array([[4., 0., 4., 0.]]), array([-4.]), 5, 13.0)
    """

    _between = False
    _demotion = math.inf
    _advice = "encode them with sklearn.preprocessing.OneHotEncoder or Binarizer, use Winnow2 for values between"

    def disjunction_bound(self, relevant: int, features: int) -> float:
        """Compute the most mistakes on two classes of 0/1 rows that a disjunction of features tells apart.

        Parameters
        ----------
        relevant : int
            How many features the disjunction has.
        features : int
            How many features there are.

        Returns
        -------
        float
            The bound.
        """
        return bounds.winnow1(features, relevant, self.alpha, self.theta)


@with_parameters
class Winnow2(Littlestone):
    """Winnow2: learns a threshold on a weighted sum of few among many features from 0 to 1 (Littlestone 1988).

    All weights are 1 at first. The second class is predicted where ⟨w, x⟩ ≥ θ. A row of the second class that is missed
    multiplies each weight by αˣ; one of the first class that is hit divides it by αˣ. If some μ ≥ 0 has ⟨μ, x⟩ ≥ 1 on the
    second class and ⟨μ, x⟩ ≤ 1 − gap on the first, features are 0 or 1, and α(1 − gap) < 1, then in any order

        p ≤ ((log_α θ + 1) Σμ + (1 − gap) c) / (1 − α(1 − gap)),  mistakes ≤ (1 + α) p + c,  c = αn/((α − 1)θ).

    A disjunction of k features is μ = 1 on these and gap = 1; for α = 2 and θ = n that is 3k(1 + log₂ n) + 2. For smaller
    gaps Littlestone takes α = 1 + gap/2 and bounds the same by (8/gap²)(n/θ) + (5/gap + 14 ln θ/gap²) Σμ.

    At the threshold exactly the answer is the second class, in learning too: a row of that class is then right, where
    learners without a threshold would call it a tie and learn from it. Littlestone's bounds rest on that.

    Attributes
    ----------
    coef_ : (vectors, features) array
        w > 0. One vector for two classes, otherwise one for each class, learned against the rest.
    intercept_ : (vectors,) array
        −θ, which is not learned.

    Notes
    -----
    Only what rises with a feature can be learned. For "x is missing" give it 1 − x as a further feature.

    Examples
    --------
    >>> from rosenblatt import Winnow2
    >>> X = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
    >>> clf = Winnow2(order="cyclic").fit(X, ["yes", "no", "yes", "yes", "no"])
    >>> clf.coef_, clf.intercept_, clf.n_mistakes_, clf.disjunction_bound(relevant=2, features=4)
    (array([[4., 1., 4., 1.]]), array([-4.]), 5, 20.0)
    """

    _between = True
    _demotion = 1.0
    _advice = "scale them with sklearn.preprocessing.MinMaxScaler or MaxAbsScaler"

    def disjunction_bound(self, relevant: int, features: int) -> float:
        """Compute the most mistakes on two classes of 0/1 rows that a disjunction of features tells apart.

        Parameters
        ----------
        relevant : int
            How many features the disjunction has.
        features : int
            How many features there are.

        Returns
        -------
        float
            The bound.
        """
        return self.threshold_bound(relevant, 1.0, features)

    def threshold_bound(self, total: float, gap: float, features: int) -> float:
        """Compute the most mistakes on two classes of 0/1 rows with ⟨μ, x⟩ ≥ 1 on the second and ≤ 1 − gap on the first.

        Parameters
        ----------
        total : float
            The sum of μ ≥ 0.
        gap : float
            The gap between the classes.
        features : int
            How many features there are.

        Returns
        -------
        float
            The bound; infinity unless α(1 − gap) < 1.
        """
        return bounds.winnow2(features, total, gap, self.alpha, self.theta)


def _dimensions(estimator: Any, features: int | None) -> int:
    """The number of features, the constant one included, as given or as fitted."""
    if features is not None:
        return features
    if not estimator.__sklearn_is_fitted__():
        raise InvalidParameter("features", None, "the number of features before the first fit", hint="pass it, or fit")
    return estimator.n_features_in_ + bool(estimator.fit_intercept)


def _widest(rows: Any) -> NDArray:
    """The u ≥ 0, Σu = 1, with the largest least ⟨u, row⟩."""
    count, size = rows.shape
    margins = sp.hstack([-rows, np.ones((count, 1))])  # t − ⟨u, row⟩ ≤ 0
    whole = sp.csr_array(np.append(np.ones(size), 0.0)[None])
    answer = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=margins,
        b_ub=np.zeros(count),
        A_eq=whole,
        b_eq=[1.0],
        bounds=[(0, None)] * size + [(None, None)],
        method="highs",
    )
    if answer.x is None:
        raise ArithmeticError(f"the linear program for the margin was not solved: {answer.message}")
    u = np.maximum(answer.x[:-1], 0.0)
    return u / u.sum()
