"""The second-order perceptron and AROW are one learner: a step of least squares on each row whose margin is at most 0, or
below 1. What they remember of the rows, and in how much memory, is `curvature`'s business.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.rows import Examples, Matrix, lengths, refuse_too_long
from rosenblatt.engine.visits import Visits
from rosenblatt.estimators.parameters import Number, OneOf, StateParameters, parameter, with_parameters
from rosenblatt.estimators.plan import Plan
from rosenblatt.estimators.states.base import Stateful, StateModel, StateTrainer
from rosenblatt.estimators.states.curvature import Gram, GramTrainer, Inverse, Ratios, Variances, diagonal
from rosenblatt.modelfile.parts import Parts
from rosenblatt.theory import bounds

_BELOW_ONE = math.nextafter(1.0, 0.0)
# "auto" takes the full form for so many features, if it takes no more than so many bytes (800 classes of 100 features). An
# update then costs a few µs a weight vector; with more features it was measured to gain nothing:
# docs/learners/second_order.md.
MOST_FEATURES, MOST_BYTES = 100, 2**26


def spectral_bound(X: ArrayLike, y: ArrayLike, u: ArrayLike, a: float, near: int = 0) -> float:
    """Compute the most mistakes that a second-order learner can have made on the rows of its updates, whatever u is.

    With hinge losses g = max(0, 1 − y⟨u, x⟩) and the eigenvalues λ of XᵀX,

        mistakes ≤ Σg − near + √(a‖u‖² + ‖Xu‖²) · √(Σ ln(1 + λ/a) + near),

    the theorem of Cesa-Bianchi, Conconi and Gentile (2005) and that of Crammer, Kulesza and Dredze (2009), a = r, with its
    proof at `theory.bounds.spectral`.

    Parameters
    ----------
    X : array (updates, features)
        The rows of all its updates, with the constant feature where there is one.
    y : array (updates,)
        Their sides, −1 or +1.
    u : array (features,)
        Any vector.
    a : float
        That of M = aI before the first update.
    near : int, default=0
        How many of the updates were no mistakes: none for the second-order perceptron; for AROW, those of margin in (0, 1).

    Returns
    -------
    float
        The bound.
    """
    X, y, u = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), np.asarray(u, dtype=np.float64)
    if not len(X):
        return 0.0
    scores = X @ u
    spread = np.linalg.svd(X, compute_uv=False) ** 2
    losses = np.maximum(0.0, 1.0 - y * scores).sum()
    return bounds.spectral(spread, a, float(np.linalg.norm(u)), scores @ scores, losses, near)


class SecondOrder(Stateful):
    """What the two learners share: the forms of M, and how much memory it may take.

    Attributes
    ----------
    form_ : str
        The form that the model has: "full", "dual" or "diagonal".
    """

    _margin: ClassVar[float]  # a row of this margin or less is learned
    _forms: ClassVar[dict[str, Any]]

    form: str
    max_bytes: int

    @property
    def _needs_scaling(self) -> bool:
        return False  # M grows with the squares of a column

    @abstractmethod
    def _ridge(self) -> float:
        """a, of M = aI before the first update."""

    @property
    def form_(self) -> str:
        return str(self._fitted().begun["form"])

    def _form(self, vectors: int, features: int) -> str:
        """The form of a new model: "auto" is full where features are few."""
        if self.form != "auto":
            return self.form
        few = features <= MOST_FEATURES and 8 * vectors * (features + 1) ** 2 <= min(MOST_BYTES, self.max_bytes)
        return "full" if few else "diagonal"

    def _initial_model(self, *start: Any) -> StateModel:
        model = super()._initial_model(*start)
        vectors, width = model.vectors().shape
        model.begun = {**model.begun, "form": self._form(vectors, width - 1)}
        return model

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        # "auto" goes on with the form that it took, which may be named too.
        known = super()._unchangeable(plan)
        return [part for part in known if part[0] != "form" or self.form != "auto"]

    def _state(self, vectors: int, features: int) -> Any:
        kind, ridge = self._forms[self._form(vectors, features)], self._ridge()
        if kind in (Ratios, Variances):
            return diagonal(kind, vectors, features, ridge, self._margin)
        return kind.fresh(vectors, features, ridge, self._margin, int(self.max_bytes))

    def _make_trainer(self, plan: Plan, model: StateModel, X: Matrix, examples: Examples, visits: Visits) -> StateTrainer:
        # A row whose length overflows would teach nothing.
        refuse_too_long(examples.rows, lengths(examples.rows, examples.constant), visits.live)
        if not isinstance(model.state, Gram):
            return StateTrainer(model, examples, visits)
        model.state = model.state._replace(limit=int(self.max_bytes))
        return GramTrainer(model, examples, visits)

    def _by_columns(self, model: StateModel) -> bool:
        return isinstance(model.state, Ratios | Variances) or super()._by_columns(model)

    def _compact(self, state: Any) -> Any:
        return state.compact() if isinstance(state, Gram) else state

    def _made_room(self, state: Any, parts: Parts) -> Any:
        return state.roomy(parts.arrays) if isinstance(state, Gram) else state

    def _state_from(self, parts: Parts, begun: Mapping[str, object], vectors: int) -> Any:
        state = super()._state_from(parts, begun, vectors)
        if isinstance(state, Gram):
            state.check()
        return state

    def _harmless(self, held: int) -> dict[str, Any]:
        return {"max_bytes": max(held, 1)}

    _adjustable = ("max_bytes",)


@with_parameters
class SecondOrderPerceptron(SecondOrder, StateParameters):
    """The second-order perceptron, which corrects for the shape of the data (Cesa-Bianchi, Conconi and Gentile 2005).

    On a mistake, y⟨w, x⟩ ≤ 0, it adds yx to v and xxᵀ to M = aI; it predicts with w = M⁻¹v. (The paper's score,
    vᵀ(M + xxᵀ)⁻¹x, is ⟨w, x⟩/(1 + xᵀM⁻¹x): the same sign.) If u separates the rows with margin γ, ‖u‖ = 1, and λ are the
    eigenvalues of Σxxᵀ over the mistakes, then from the start, in any order,

        mistakes ≤ (1/γ) √((a + Σ⟨u, x⟩²) · Σ ln(1 + λ/a)),

    and `spectral_bound` says what hinge losses add on data that nothing separates. That is less than the perceptron's R²/γ²
    where few eigenvalues are large and u lies where they are small.

    Parameters
    ----------
    a
        How much M weighs before the first mistake, on the scale of ‖x‖². As a → ∞ this becomes the perceptron, and its
        mistakes are the same. a = 0, with a pseudo-inverse, is not offered; with an a many orders of magnitude below
        ‖x‖², as many digits are lost.
    form
        "full" keeps M⁻¹: O(features²) time a mistake, and memory for each weight vector. "dual" keeps the mistaken rows
        and a factor of their inner products instead: time and memory grow with the square of the mistakes, so it pays
        where mistakes are far fewer than features; the result is the same up to rounding. "diagonal" keeps only the
        diagonal of M, w = v/(a + Σx²) in each coordinate: O(values of the row), and no theorem. In all forms a row that
        is right costs as much as in the perceptron. "auto" is "full" for up to 100 features and
        64 MiB, and else "diagonal"; `form_` says which it is.
    max_bytes
        The most memory for what "full" and "dual" keep besides weights. "full" refuses before it begins; "dual", which
        grows, when it is full, and then leaves the estimator as it was. While "dual" grows it holds the old and the new
        for a moment.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        w = M⁻¹v. One vector for two classes, otherwise one for each class, learned against the rest with its own M and
        compared by ⟨w, x⟩.

    Examples
    --------
    >>> from rosenblatt import SecondOrderPerceptron
    >>> X, y = [[10 * k, (-1) ** k] for k in range(8)], ["even", "odd"] * 4
    >>> clf = SecondOrderPerceptron(order="cyclic").fit(X, y)
    >>> clf.n_mistakes_, clf.stop_reason_, clf.predict([[85, -1]]).tolist()
    (3, 'converged', ['odd'])
    >>> from rosenblatt import Perceptron
    >>> Perceptron(order="cyclic", tol=None).fit(X, y).n_mistakes_
    675
    """

    a: float = parameter(1.0, Number(0, open_low=True))
    form: str = parameter("full", OneOf(("full", "diagonal", "dual", "auto")))
    max_bytes: int = parameter(2**32, Number(0, open_low=True, whole=True))

    _margin = 0.0
    _forms = {"full": Inverse, "diagonal": Ratios, "dual": Gram}

    def mistake_bound(self, radius: float, margin: float, features: int | None = None, classes: int | None = None) -> float:
        """Compute the most mistakes that rows can cause from the start, if they can be separated.

        Radius and margin are those of the rows with the constant feature. The bound is near R²/γ² for large a. For small a
        it is above R²/γ², since it knows nothing of the spectrum, as `spectral_bound` does. For form="diagonal" there is
        none.

        Parameters
        ----------
        radius : float
            The length of the longest row.
        margin : float
            The margin of a unit vector that separates two classes, or the least margin of
            those that separate each class from the rest.
        features : int, optional
            The number of features, with the constant one; by default that of the last fit, and before it unknown.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        form = self.form_ if self.form == "auto" and self.__sklearn_is_fitted__() else self.form
        if form == "diagonal":
            return math.inf
        if features is None:
            features = self.n_features_in_ + bool(self.fit_intercept) if self.__sklearn_is_fitted__() else None
        return self._bound_for(classes, radius, lambda radius: bounds.second_order(radius, margin, self.a, features))

    def _ridge(self) -> float:
        return float(self.a)


@with_parameters
class AROW(SecondOrder, StateParameters):
    """Adaptive regularisation of weights: learns weights and how far each can be trusted (Crammer, Kulesza, Dredze 2009).

    It learns from each example of margin below 1. The weights have a mean w = 0 and a covariance Σ = I. If the hinge loss
    ℓ = max(0, 1 − y⟨w, x⟩) is positive, then with β = 1/(xᵀΣx + r)

        w += ℓβ·yΣx,    Σ −= β·Σx(Σx)ᵀ.

    Words that come often are soon trusted and change little; rare ones keep learning fast. With form "full" or "dual" and
    a = r it is the second-order perceptron with another test: Σ = rM⁻¹. Among U updates of margin in (0, 1) and M mistakes,
    in one pass or many, for every vector u and its hinge losses g on the updates,

        M ≤ Σg − U + √(r‖u‖² + Σ⟨u, x⟩²) · √(ln det(I + Σxxᵀ/r) + U).

    It is a bound after the fact, `spectral_bound(X, y, u, r, near=U)`, and needs no separability. Learning does not end
    by itself even where it makes no more mistakes, since margins near 1 from below; `tol` ends it.

    Parameters
    ----------
    r
        How much one example counts against all before it: the larger, the slower w and Σ change. On the scale of ‖x‖².
    form
        "auto" is "full" for up to 100 features and 64 MiB, and else "diagonal"; `form_` says which it
        is, and the first call of `partial_fit` decides for all. "diagonal" keeps one variance a weight: O(values of the
        row), and no theorem. Of the two ways to do so it takes the one that adds x²/r to the reciprocal of each variance
        (the diagonal Gaussian nearest to the updated one, by Kullback–Leibler divergence); the other drops what is off the
        diagonal of the updated Σ. "full" keeps Σ, and "dual" the rows it comes from, at the costs that
        `SecondOrderPerceptron` names; more rows are learned here than there.
    max_bytes
        The most memory for what "full" and "dual" keep besides weights.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        The mean weights. One vector for two classes, otherwise one for each class, learned against the rest.
    covariance_ : (vectors, features + 1) or (vectors, features + 1, features + 1) array
        The variances, or Σ, the constant feature's last. form="dual" has none at hand.

    Examples
    --------
    >>> from rosenblatt import AROW
    >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
    >>> y = ["spam", "ham", "spam", "ham", "spam", "ham"]
    >>> clf = AROW(order="cyclic").fit(X, y)
    >>> clf.predict([[0, 1, 0, 0, 0]]).tolist(), clf.stop_reason_
    (['spam'], 'training_error')
    """

    r: float = parameter(1.0, Number(0, open_low=True))
    form: str = parameter("auto", OneOf(("auto", "diagonal", "full", "dual")))
    max_bytes: int = parameter(2**32, Number(0, open_low=True, whole=True))

    _margin = _BELOW_ONE
    _forms = {"full": Inverse, "diagonal": Variances, "dual": Gram}

    @property
    def covariance_(self) -> NDArray:
        state = self._fitted().state
        if isinstance(state, Inverse):
            return state.ridge * state.inverse
        if isinstance(state, Variances):
            return state.ridge / state.squares
        if isinstance(state, Gram):
            raise AttributeError("form='dual' keeps no covariance; fit with form='full' or 'diagonal' to see it")
        raise AttributeError("this model was saved for prediction only; save it with save(path, resume=True)")

    def _ridge(self) -> float:
        return float(self.r)
