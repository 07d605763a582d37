"""The learners that are a margin and a step, as scikit-learn estimators: parameters, documentation, delegation. The
arithmetic is elsewhere; which step it is, a subclass says with a rule."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rosenblatt import rules
from rosenblatt.engine.model import Model, fresh, model_of, parts_of
from rosenblatt.engine.problems import Binary, OneVsOne, winner
from rosenblatt.engine.rows import Examples, Rows, lengths, refuse_too_long
from rosenblatt.engine.train import Log, Trainer, Visits
from rosenblatt.engine.weights import Weights
from rosenblatt.estimators import targets
from rosenblatt.estimators.base import Classifier, read_rows
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.parameters import Number, OneOf
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.theory.certification import Certified, Ran, certify
from rosenblatt.theory.conditions import RunConditions

_POWERS = {"invsqrt": 0.5, "inverse": 1.0}


class Explanation(NamedTuple):
    """Why a row gets its score: the score is the sum (`math.fsum`) of the intercept and the contributions."""

    label: Any  # the class that a positive contribution speaks for
    score: float
    intercept: float
    contributions: dict[Any, float]  # by feature name, or number; largest first, zero values left out


class Linear(Classifier):
    """A linear classifier: w += τΔ, with τ from a rule that sees the margin and the length of Δ."""

    @abstractmethod
    def _rule(self) -> Any:
        """The rule of an update, from `rosenblatt.rules`."""

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Any:
        """Learn from X (rows, features) and y (rows,) until one of the reasons to stop; the estimator itself.

        `coef_init` and `intercept_init`, of the shapes of `coef_` and `intercept_`, are where the weights start. Rows of
        weight 0 are not there. An error leaves the estimator as it was; Ctrl-C finishes the epoch, stores the model and
        then interrupts.
        """
        return self._fit(X, y, sample_weight, (coef_init, intercept_init), (X_val, y_val))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from these rows, once, in the order given; the estimator itself.

        Cutting a stream of rows into calls in any way gives the same model (with a `batch` of more than one row, the end
        of a call ends the batch). `classes` lists all classes on the first call, unless `unknown_class="grow"`. `order`
        and the reasons to stop do not apply.
        """
        if self.keep == "pocket":
            raise ValueError(
                "keep='pocket' and partial_fit do not go together: a pocket judges weights on all training rows, and a "
                "stream has no such set; use fit, or keep='average'"
            )
        return self._partial_fit(X, y, classes, sample_weight)

    def explain(self, x: Any, label: Any = None) -> Explanation:
        """What each feature of one row contributes to the score of `label`, by default of the label it is predicted.

        For two classes the score of the first is minus that of the second.
        """
        check_is_fitted(self)
        if self._model.votes is not None or isinstance(self._model.problem, OneVsOne):
            raise ValueError(
                f"keep={self.keep!r} with multiclass={self.multiclass!r} predicts by votes, which are no sum over "
                "features; explain needs keep='last', 'average' or 'pocket', and multiclass='joint' or 'ovr'"
            )
        if not (sp.issparse(x) or hasattr(x, "columns") or np.ndim(x) == 2):
            x = np.asarray(x)[None]
        x = read_rows(self, x)
        if x.shape[0] != 1:
            raise ValueError(f"explain takes one row; got {x.shape[0]}")
        if label is None:
            number = int(winner(self._model.decision(x))[0])
        else:
            number = int(targets.numbers(np.array([label]), self.classes_)[0])
        if number < 0:
            raise ValueError(f"label must be one of the classes {self.classes_.tolist()}; got {label!r}")
        coef, intercept = self._model.kept()
        binary = isinstance(self._model.problem, Binary)
        sign = -1.0 if binary and number == 0 else 1.0
        vector = 0 if binary else number
        row = sp.csr_array(x)
        names = getattr(self, "feature_names_in_", range(x.shape[1]))
        products = sign * row.data.astype(np.float64) * coef[vector, row.indices].astype(np.float64)
        ranked = np.argsort(-np.abs(products), kind="stable")
        contributions = {names[row.indices[j]]: float(products[j]) for j in ranked}
        constant = sign * float(intercept[vector])
        return Explanation(
            self.classes_[number].item(), math.fsum([constant, *contributions.values()]), constant, contributions
        )

    def mistake_bound(self, radius: float, margin: float) -> float:
        """The most wrong predictions that two classes can cause from weights of zero, if no row is longer than `radius` and
        some unit vector separates them with this `margin`, both measured with the constant feature.

        For the perceptron, with or without margins, it also bounds the updates; other rules go on to update for the sake of
        a margin. With `reduction="mean"` it bounds the updates only, each of which may answer for a batch of wrong
        predictions. Weights of examples do not enter. With `batch="full"` and summed moves there is no bound without the
        number of rows: infinity. `certify` measures radius and margin, and knows where the weights started.
        """
        if self.batch == "full" and self.reduction == "sum":
            return math.inf
        return self._rule().bound(radius, margin, 1 if self.reduction == "mean" else int(self.batch))

    def certify(self, X: Any, y: Any) -> Certified:
        """What a theorem says of the run that learned from these rows of two classes, and how much of its bound was used.

        It measures R and the widest margin γ, with the constant feature, and holds the updates since the last start of
        `fit` (or the first of `partial_fit`) against Novikoff's bound, for the weights that it started from. Where nothing
        separates the rows, a single pass is held against Freund and Schapire's. Rules that go on to update for the sake of
        a margin have a bound on wrong predictions. Where no theorem applies, it says why. That X and y are what was learned
        from cannot be checked, but more updates than the bound prove that they are not.

        >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
        >>> y = ["spam", "ham", "spam", "ham", "spam", "ham"]
        >>> print(Perceptron(order="cyclic").fit(X, y).certify(X, y))
        Separable, γ = 0.5774, R = 2.236: 4 updates, 26.7% of the 15 that the theorem of Novikoff allows.
        """
        check_is_fitted(self)
        self._whole()
        if len(self.classes_) != 2:
            raise ValueError(
                f"certify is about two classes, and there are {len(self.classes_)}; fit one of them against the rest, with "
                "y == label"
            )
        X, y = self._read(X, y, reset=False)
        numbers = targets.numbers(y, self.classes_)
        if (numbers < 0).any():
            raise ValueError(f"y has a label that is none of the classes {self.classes_.tolist()}: {y[numbers < 0][0]!r}")
        model, start = self._model, self._model.conditions.start
        there = slice(None) if model.constant else slice(-1)  # without an intercept the last weight is nobody's
        return certify(X, numbers, model.constant, Ran(
            conditions=model.conditions._replace(start=None if start is None else start[there].astype(np.float64)),
            last=model.weights.w[there].astype(np.float64),
            mistakes=self.n_mistakes_,
            updates=self.n_updates_,
            seen=self.n_seen_,
            converged=self.stop_reason_ == "converged",
        ))  # fmt: skip

    @property
    def coef_(self) -> NDArray:
        return self._fitted().kept()[0]

    @property
    def intercept_(self) -> NDArray:
        return self._fitted().kept()[1]

    @property
    def last_coef_(self) -> NDArray:
        return self._whole().last()[0]

    @property
    def last_intercept_(self) -> NDArray:
        return self._whole().last()[1]

    @property
    def weights_(self) -> Weights:
        return self._whole().weights

    @property
    def bounds_updates(self) -> bool:
        """Whether `mistake_bound` also bounds the updates."""
        return self._rule().bounds_updates

    def _whole(self) -> Model:
        """The model with all that learning left, of which a file need not hold more than what predicts."""
        model = self._fitted()
        if model.only_predicts:
            raise AttributeError("this model was saved for prediction only; save it with save(path, resume=True)")
        return model

    def _fresh(self, plan: Plan, rows: Rows, features: int, classes: int, init: Any) -> Model:
        return fresh(plan.problem(classes), rows, features, plan.constant, self.keep, init or (None, None))

    def _model_to_fit(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Any) -> Model:
        model = super()._model_to_fit(plan, rows, features, outputs, init)
        w = model.weights.w
        model.conditions = RunConditions(
            start=w.copy() if w.ndim == 1 and w.any() else None
        )  # theorems are about two classes
        return model

    def _learner(self, plan: Plan, model: Model, X: Any, examples: Examples, visits: Visits) -> Trainer:
        rule = self._rule()
        if rule.uses_length:
            squared = lengths(examples.rows, examples.constant)
            refuse_too_long(examples.rows, squared, visits.live)
            examples = examples._replace(lengths=squared)
        log = Log() if self.keep == "vote" else None

        def errors(w: NDArray) -> int:
            return model.errors(X[visits.live], examples.labels[visits.live], w)

        weighted = examples.weight is not None and bool((examples.weight[visits.live] != 1).any())
        batch, in_turn = 1 if visits.mean else visits.batch, visits.order in ("cyclic", "shuffle")
        model.conditions = model.conditions.further(rule, batch, in_turn, weighted)
        return Trainer(examples, model.weights, model.problem, rule, visits, log, model.pocket, model.bound, errors)

    def _keep(self, model: Model, X: Any, learner: Trainer) -> None:
        if learner.log is not None:
            model.remember(X, learner.log.moves())

    _widens = True

    def _widened(self, model: Model, features: int) -> Model:
        return model.widened(features)

    def _arrays(self, model: Model, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        parts = parts_of(model, resume, self._rule)
        return parts.facts, parts.arrays

    def _from_arrays(self, facts: Mapping[str, Any], arrays: dict[str, NDArray]) -> Model:
        return model_of(Parts(facts, arrays), self.n_features_in_, self._expected(), self._rule)

    def _fixed(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        problem = self._model.problem
        kinds = ("multiclass", type(problem), type(plan.problem(problem.classes)))
        return [("keep", self._model.keep, self.keep), *super()._fixed(plan), kinds]


class Perceptron(Linear):
    """Learns linear separators from its mistakes, exactly as the textbook does, at the speed of memory.

    On an example with margin m ≤ `margin`, w += eta0 · Δ, where Δ = y·x for two classes. If the rows, constant feature
    included, have norm ≤ R and some unit vector separates them with margin γ, then from w = 0 there are at most
    (R² + 2·margin/eta0)/γ² updates, in any order (Block 1962, Novikoff 1962).

    Parameters
    ----------
    margin : float, default=0
        Update whenever y·⟨w, x⟩ ≤ margin. With a margin the final separator is at least γδ/(R² + 2δ) wide, δ =
        margin/eta0: towards half the best as δ grows.
    eta0 : float, default=1
        The rate. From w = 0 without a margin it only scales the weights.
    learning_rate : {"constant", "invsqrt", "inverse"}, default="constant"
        eta0, eta0/√k or eta0/k at the k-th update. The last two void the mistake bound (1/√k keeps it up to a logarithm;
        1/k allows exp(πR/(√6γ)) updates) and say so in a warning.
    fit_intercept : bool, default=True
        Whether to learn an intercept, as the weight of a constant feature.
    intercept_scaling : float, default=1
        The size of that constant. R and γ are those of the data with it; about R is a good size for uncentred data.
        scikit-learn learns the intercept of sparse data with an effective 0.1.
    order : {"shuffle", "cyclic", "random", "most-violated", "most-violated-normalised"}, default="shuffle"
        How each epoch visits the rows: shuffled anew, in the order given, drawn with replacement, or always the row with
        the lowest margin (divided by its norm), which costs a pass over the data for each update.
    batch : int or "full", default=1
        How many rows are confronted with the same weights before these change. 1 is the online algorithm.
    reduction : {"sum", "mean"}, default="sum"
        Whether a batch moves by the sum or by the mean of its moves.
    keep : {"last", "average", "pocket", "vote"}, default="last"
        Which weights predict: the last; the mean of those after every example; the pocket, those with the longest run of
        right answers that also made the fewest errors on the training set; or the vote of them all, each with the
        examples it survived (Freund and Schapire 1999), which stores every mistake. `last_coef_` has the last weights in
        any case.
    multiclass : {"joint", "ovr", "ovo"}, default="joint"
        One argmax over all classes, each class against the rest, or each against each. All learn in one pass.
    max_iter : int, default=1000
        The most epochs.
    max_updates : int or None, default=None
        The most updates.
    max_seconds : float or None, default=None
        Stop at the end of the first epoch that ends later than this.
    tol : float or None, default=1e-3
        Stop when the share of mistakes in an epoch (or the validation error) has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row. None: never for this reason.
    weight_tol : float or None, default=None
        Stop when an epoch moves the weights by no more than this distance.
    n_iter_no_change : int, default=5
        Epochs to wait for a fall.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of the rows and judge by the error on these. Rows given to `fit` as `X_val, y_val`
        do the same without holding any out.
    validation_fraction : float, default=0.1
        The share of rows held out.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the rate for examples of a class. In `partial_fit`, "balanced" weighs by the classes seen so far.
    unknown_class : {"error", "grow"}, default="error"
        What `partial_fit` does with a class it was not told of: refuse, or add it, at the example that brings it.
    warm_start : bool, default=False
        Whether `fit` goes on from what was learned before.
    n_jobs : int or None, default=None
        Threads; None and −1 take every core. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=0
        The source of order and of held-out rows.
    verbose : int, default=0
        Whether to show a line for each epoch on stderr.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        The weights that predict. One vector for two classes, one a class, or one a pair a < b (positive for a).
    last_coef_, last_intercept_ : arrays of the same shapes
        The last weights, whichever are kept.
    classes_ : array
        The labels. In order of arrival with `unknown_class="grow"`, sorted otherwise.
    n_mistakes_, n_updates_, n_seen_ : int
        Examples not predicted before they were learned from (a tie is not a prediction; with "ovo", those that lost one
        of their pairs), changes of weight vectors, and examples visited.
    n_iter_ : int
        Epochs.
    history_ : list of Epoch
        For each epoch: mistakes, updates, examples seen, norm of the last weights, validation error, seconds.
    stop_reason_ : str
        converged, max_iter, max_updates, max_seconds, training_error, validation_error, weight_change, callback,
        interrupted, or partial_fit for a model that has only streamed.
    weights_ : Weights
        What the kernels work on: last weights, drift, counts.

    Notes
    -----
    A margin is no probability. `CalibratedClassifierCV(Perceptron(keep="average")).fit(X, y).predict_proba(X)`, from
    `sklearn.calibration`, makes probabilities of margins.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
    >>> y = ["spam", "ham", "spam", "ham", "spam", "ham"]
    >>> clf = Perceptron(order="cyclic").fit(X, y)
    >>> clf.coef_, clf.intercept_, clf.n_updates_, clf.stop_reason_
    (array([[ 0.,  2.,  0., -1.,  1.]]), array([0.]), 4, 'converged')
    >>> clf.predict([[0, 1, 0, 0, 0]]).tolist()
    ['spam']
    """

    _own = {
        "margin": Number(0),
        "eta0": Number(0, open_low=True),
        "learning_rate": OneOf(("constant", *_POWERS)),
    }

    def __init__(
        self,
        *,
        margin: float = 0.0,
        eta0: float = 1.0,
        learning_rate: str = "constant",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        order: str = "shuffle",
        batch: int | str = 1,
        reduction: str = "sum",
        keep: str = "last",
        multiclass: str = "joint",
        max_iter: int = 1000,
        max_updates: int | None = None,
        max_seconds: float | None = None,
        tol: float | None = 1e-3,
        weight_tol: float | None = None,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: Any = None,
        unknown_class: str = "error",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.margin = margin
        self.eta0 = eta0
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.order = order
        self.batch = batch
        self.reduction = reduction
        self.keep = keep
        self.multiclass = multiclass
        self.max_iter = max_iter
        self.max_updates = max_updates
        self.max_seconds = max_seconds
        self.tol = tol
        self.weight_tol = weight_tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.unknown_class = unknown_class
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self) -> rules.Perceptron | rules.Diminishing:
        margin, rate = float(self.margin), float(self.eta0)
        if self.learning_rate == "constant":
            return rules.Perceptron(margin, rate)
        return rules.Diminishing(margin, rate, _POWERS[self.learning_rate])

    def _plan(self) -> Plan:
        plan = super()._plan()
        if (rate := self.learning_rate) != "constant":
            price = "it holds up to a logarithm only" if rate == "invsqrt" else "exp(πR/(√6γ)) updates may be needed"
            warnings.warn(f"learning_rate={rate!r} gives up the mistake bound of the constant rate: {price}", stacklevel=5)
        return plan
