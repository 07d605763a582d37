"""The learners that are a margin and a step, as scikit-learn estimators: parameters, documentation, delegation. The
arithmetic is elsewhere; which step it is, a subclass says with a rule."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt import rules
from rosenblatt.conditions import RunConditions
from rosenblatt.engine.blocks import panels_to_keep
from rosenblatt.engine.model import Init, LinearModel, fresh, nothing_pending
from rosenblatt.engine.problems import Binary, OneVsOne, winner
from rosenblatt.engine.rows import (
    AnyMatrix,
    Dense,
    DeviceRows,
    Examples,
    MatrixLike,
    Rows,
    lengths,
    numpy_array,
    refuse_too_long,
)
from rosenblatt.engine.train import NO_LIMIT, Limits, Log, RowTrainer, Trainer, pending_for
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import Weights
from rosenblatt.errors import InvalidData, InvalidParameter, UnknownLabel, UnsupportedOperation
from rosenblatt.estimators import targets
from rosenblatt.estimators.base import DENSE_WEIGHTS, NotOffered
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.device_classifier import DeviceClassifier
from rosenblatt.estimators.explanation import Explanation
from rosenblatt.estimators.inputs import read_rows
from rosenblatt.estimators.interface import check_is_fitted
from rosenblatt.estimators.parameters import Number, OneOf, SharedParameters, parameter, with_parameters
from rosenblatt.estimators.plan import PATIENCE, Plan
from rosenblatt.gpu.trainer import CardTrainer, begin_on_card
from rosenblatt.modelfile.parts import Parts

if TYPE_CHECKING:
    from rosenblatt.theory.certification import Certified

LinearTrainer: TypeAlias = Trainer | CardTrainer  # on the CPU, on a GPU

_POWERS = {"invsqrt": 0.5, "inverse": 1.0}


class Linear(DeviceClassifier):
    """A linear classifier: w += τΔ, with τ from a rule that sees the margin and the length of Δ.

    Parameters
    ----------
    tol
        Stop when the share of mistakes in an epoch (or the validation error) has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row and, without validation, for 50,000 visited rows: a small set is visited until
        it is learned, or `max_iter` times. None: do not stop for this reason, and do not warn at `max_iter`.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        The weights that predict. One vector for two classes, one a class, or one a pair a < b (positive for a). They may be
        set; training then goes on as if they had been the weights from the beginning. A model that has learned nothing
        begins with them if `classes_` is set first.
    t_ : int
        One more than the number of examples visited, as scikit-learn counts.
    last_coef_, last_intercept_ : arrays of the same shapes
        The last weights, whichever are kept.
    weights_ : Weights
        What the kernels work on: last weights, drift, counts.
    """

    @abstractmethod
    def _rule(self) -> Any:
        """The rule of an update, from `rosenblatt.rules`."""

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        X_val: MatrixLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Any:
        """Learn from rows in epochs, until one of the reasons to stop.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.
        y : array (rows,)
            Their labels.
        coef_init, intercept_init : array, optional
            Where the weights start, in the shapes of `coef_` and `intercept_`; by default at zero.
        sample_weight : array (rows,), optional
            What the step of each row is multiplied by. Rows of weight 0 are left out.
        X_val, y_val : optional
            Rows and labels on which each epoch is judged, instead of its mistakes, to decide when to stop.

        Returns
        -------
        self : object
            The estimator. An error leaves it as it was; Ctrl-C finishes the epoch, stores the model and then interrupts.

        Raises
        ------
        InvalidData
            If rows, labels or weights cannot be used; `NumericOverflow` says which row was too large.
        InvalidParameter
            If a parameter has a value that is not allowed.

        Examples
        --------
        >>> from rosenblatt import Perceptron
        >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0]], ["spam", "spam", "ham"])
        >>> model.coef_.tolist(), model.intercept_.tolist(), model.stop_reason_
        ([[2.0, 1.0]], [1.0], 'converged')
        """
        weight = self._to_host(sample_weight, "sample_weight")
        init = (self._to_host(coef_init, "coef_init"), self._to_host(intercept_init, "intercept_init"))
        return self._fit(X, y, weight, init, (X_val, self._to_host(y_val, "y_val")))

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Learn from these rows, once, in the order given.

        Cutting a stream of rows into calls in any way gives the same model (with a `batch` of more than one row, the end
        of a call ends the batch). `order` and the reasons to stop do not apply.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.
        y : array (rows,)
            Their labels.
        classes : array, optional
            All classes that there will be; needed on the first call, unless `unknown_class="grow"`.
        sample_weight : array (rows,), optional
            What the step of each row is multiplied by. Rows of weight 0 are left out.

        Returns
        -------
        self : object
            The estimator. An error leaves it as it was; Ctrl-C waits until all rows are learned.

        Raises
        ------
        InvalidData
            If rows, labels or weights cannot be used; `UnknownLabel` for a class that was not declared, `NumericOverflow`
            if numbers became too large, with the row at which they did.
        UnsupportedOperation
            If parameters have changed since the model began to learn.

        Examples
        --------
        >>> from rosenblatt import Perceptron
        >>> model = Perceptron()
        >>> for X, y in [([[2.0, 1.0], [-1.0, -2.0]], ["spam", "ham"]), ([[1.0, 3.0]], ["spam"])]:
        ...     model = model.partial_fit(X, y, classes=["ham", "spam"])
        >>> model.predict([[1.0, 1.0]]).tolist()
        ['spam']
        """
        if self.keep == "pocket":
            raise UnsupportedOperation(
                "keep='pocket' cannot be used with partial_fit: a pocket judges weights on all training rows, and a stream "
                "has no such set",
                hint="use fit, or another keep",
                settings={"keep": "average"},
            )
        return self._partial_fit(X, y, classes, self._to_host(sample_weight, "sample_weight"))

    def explain(self, x: MatrixLike, label: object = None) -> Explanation:
        """Compute what each feature of a row contributes to the score of a class.

        Parameters
        ----------
        x : array (features,), or a matrix with one row
            The row.
        label : object, optional
            The class, by default the one that is predicted. For two classes the score of the first is minus that of the
            second.

        Returns
        -------
        Explanation
            The score, the intercept and the contributions, whose sum it is.

        Raises
        ------
        UnsupportedOperation
            If the model predicts by votes.

        Examples
        --------
        >>> from rosenblatt import Perceptron
        >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0]], ["spam", "spam", "ham"])
        >>> explanation = model.explain([0.5, 1.0])
        >>> explanation.label, explanation.score, explanation.contributions
        ('spam', 3.0, {0: 1.0, 1: 1.0})
        """
        check_is_fitted(self)
        if self._model.votes is not None or isinstance(self._model.problem, OneVsOne):
            raise UnsupportedOperation(
                f"keep={self.keep!r} with multiclass={self.multiclass!r} predicts by votes, not by a sum over features",
                hint="explain needs keep='last', 'average' or 'pocket', and multiclass='joint' or 'ovr'",
            )
        x = numpy_array(self._to_host(x, "x"), "x")
        if not (sp.issparse(x) or hasattr(x, "columns") or np.ndim(x) == 2):
            x = np.asarray(x)[None]
        x = read_rows(self, x)
        if x.shape[0] != 1:
            raise InvalidData(f"explain takes one row; got {x.shape[0]}")
        if label is None:
            number = int(winner(self._model.decision(x))[0])
        else:
            number = int(targets.numbers(np.array([label]), self.classes_)[0])
        if number < 0:
            raise InvalidParameter("label", label, f"one of the classes {self.classes_.tolist()}")
        coef, intercept = self._model.predicting_coef()
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

    def mistake_bound(self, radius: float, margin: float, classes: int | None = None) -> float:
        """Compute the most wrong predictions that rows can cause from weights of zero, if they can be separated.

        Radius and margin are those of the rows with the constant feature. For the perceptron, with or without margins, it
        also bounds the updates; other rules go on to update for the sake of a margin. With `reduction="mean"` it bounds the
        updates only, each of which may answer for a batch of wrong predictions. Weights of examples do not enter. With
        `batch="full"` and summed moves there is no bound without the number of rows: infinity. `certify` measures radius
        and margin, and knows where the weights started.

        Parameters
        ----------
        radius : float
            The length of the longest row.
        margin : float
            The margin of a unit vector that separates two classes; of more, the least margin of the unit vectors that
            separate each class from the rest (`multiclass="ovr"`) or each pair ("ovo"), or with "joint" the least lead of
            a row's class over the others, by weight vectors of Frobenius norm 1.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        if self.batch == "full" and self.reduction == "sum":
            return math.inf
        batch = 1 if self.reduction == "mean" else int(self.batch)
        return self._bound_for(classes, radius, lambda radius: self._rule().bound(radius, margin, batch))

    def certify(self, X: MatrixLike, y: ArrayLike) -> Certified:
        """Hold the mistakes of a run on rows of two classes against the bound of a theorem.

        It measures R and the widest margin γ, with the constant feature, and holds the updates since the last start of
        `fit` (or the first of `partial_fit`) against Novikoff's bound, for the weights that it started from. Where nothing
        separates the rows, a single pass is held against Freund and Schapire's. Rules that go on to update for the sake of
        a margin have a bound on wrong predictions. Where no theorem applies, it says why. That X and y are what was learned
        from cannot be checked, but more updates than the bound prove that they are not.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows that were learned from.
        y : array (rows,)
            Their labels.

        Returns
        -------
        Certified
            The theorem, its bound, and what of it was used.

        Examples
        --------
        >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
        >>> y = ["spam", "ham", "spam", "ham", "spam", "ham"]
        >>> print(Perceptron(order="cyclic").fit(X, y).certify(X, y))
        Separable, γ = 0.5774, R = 2.236: 4 updates, 26.7% of the 15 that the theorem of Novikoff allows.
        """
        from rosenblatt.theory.certification import Ran, certify

        check_is_fitted(self)
        self._whole()
        if len(self.classes_) != 2:
            raise UnsupportedOperation(
                f"certify needs a model of two classes; this one has {len(self.classes_)}",
                hint="fit one of them against the rest, with y == label",
            )
        X, y = self._read(self._to_host(X, "X"), self._to_host(y, "y"), reset=False)
        numbers = targets.numbers(y, self.classes_)
        if (numbers < 0).any():
            row = int(np.flatnonzero(numbers < 0)[0])
            raise UnknownLabel(y[row].item(), self.classes_.tolist(), row=row)
        model, start = self._model, self._model.conditions.start
        there = slice(None) if model.constant else slice(-1)  # without an intercept the last weight is not used
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
        return self._fitted().predicting_coef()[0]

    @coef_.setter
    def coef_(self, coef: ArrayLike) -> None:
        self._set_weights(coef=coef)

    @property
    def intercept_(self) -> NDArray:
        return self._fitted().predicting_coef()[1]

    @intercept_.setter
    def intercept_(self, intercept: ArrayLike) -> None:
        self._set_weights(intercept=intercept)

    def _begin_with(self, coef: NDArray) -> None:
        if coef.ndim != 2 or not hasattr(self, "classes_"):
            raise UnsupportedOperation(
                f"this {type(self).__name__} is not fitted and has no classes_ for these weights",
                hint="set classes_, then coef_ with two axes, then intercept_; or call fit first",
            )
        classes = np.unique(np.asarray(self.classes_))
        rows = Dense(np.empty((0, coef.shape[1])))
        self._model = self._initial_model(self._plan(), rows, coef.shape[1], len(classes), None)
        self._begun(coef.shape[1], classes_=classes, class_count_=np.zeros(len(classes), np.int64), n_mistakes_=0)

    sparsify = NotOffered(DENSE_WEIGHTS)
    densify = NotOffered(DENSE_WEIGHTS)

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

    def _whole(self) -> LinearModel:
        """The model with all that learning left, of which a file need not hold more than what predicts."""
        model = self._fitted()
        if model.only_predicts:
            raise AttributeError("this model was saved for prediction only; save it with save(path, resume=True)")
        return model

    def _initial_model(self, plan: Plan, rows: Rows, features: int, classes: int, init: Init | None) -> LinearModel:
        return fresh(plan.problem(classes), rows, features, plan.constant, self.keep, init or (None, None))

    def _model_to_fit(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Init | None) -> LinearModel:
        model = super()._model_to_fit(plan, rows, features, outputs, init)
        w = model.weights.w
        start = w.copy() if w.ndim == 1 and w.any() else None  # theorems are about two classes
        model.conditions = RunConditions(start=start)
        return model

    def _make_trainer(
        self, plan: Plan, model: LinearModel, X: AnyMatrix, examples: Examples, visits: Visits
    ) -> LinearTrainer:
        rule = self._rule()
        if rule.uses_length:
            squared = lengths(examples.rows, examples.constant)
            refuse_too_long(examples.rows, squared, visits.live)
            examples = examples._replace(lengths=squared)
        weighted = examples.weight is not None and bool((examples.weight[visits.live] != 1).any())
        batch, in_turn = 1 if visits.mean else visits.batch, visits.order in ("cyclic", "shuffle")
        model.conditions = model.conditions.further(rule, batch, in_turn, weighted)
        if isinstance(X, DeviceRows):
            self._refuse_on_card(model.problem, visits)
            return begin_on_card(examples, model.weights, model.problem, rule, visits, model.bound)
        log = Log() if self.keep == "vote" else None

        def errors(w: NDArray) -> int:
            return model.errors(X[visits.live], examples.labels[visits.live], w)

        pending = pending_for(examples.rows, model.weights, model.problem)
        panels = panels_to_keep(examples.rows, visits.live) if visits.order == "cyclic" else None
        known = (examples, model.weights, model.problem, rule, visits, log, model.pocket, model.bound, errors)
        trainer = Trainer(*known, pending, panels)
        model.add_pending = trainer.add_pending
        return trainer

    def _store(self, model: LinearModel, X: Any, learner: LinearTrainer) -> None:
        if isinstance(learner, CardTrainer):
            return  # all is in the weights after each epoch
        learner.add_pending()
        model.add_pending = nothing_pending
        self._remember(model, X, learner)

    def _remember(self, model: LinearModel, X: Any, learner: RowTrainer) -> None:
        if isinstance(learner, Trainer) and learner.log is not None:
            model.remember(X, learner.log.take())

    def _settle(self, model: LinearModel, X: AnyMatrix, learner: LinearTrainer) -> None:
        if self.keep == "auto":
            live, labels = learner.visits.live, learner.examples.labels
            self._extend_average(*((X, labels) if len(live) == len(labels) else (X[live], labels[live])))

    def _extend_average(self, X: AnyMatrix, labels: NDArray) -> None:
        """Complete the average of a run that ended without mistakes on these rows; labels are numbers of classes."""
        if self.keep == "auto":
            self._model.extend_average(X.shape[0], partial(self._model.errors, X, labels))

    _widens = True
    _mixes: ClassVar[bool] = True  # whether models of several shards can be mixed: see `engine.mixing`

    def _with_features(self, model: LinearModel, features: int) -> LinearModel:
        return model.with_features(features)

    def _limits(self, plan: Plan, learner: Any) -> Limits:
        limits = plan.limits()
        if isinstance(learner, CardTrainer) and limits.updates != NO_LIMIT:
            raise self._not_on_card("max_updates", None)
        return limits._replace(visits=PATIENCE)

    def _model_to_parts(self, resume: bool) -> Parts:
        return self._model.to_parts(resume, self._rule)

    def _model_from_parts(self, parts: Parts) -> LinearModel:
        return LinearModel.from_parts(parts, self.n_features_in_, self._possible_problems(), self._rule)

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        problem = self._model.problem
        kinds = ("multiclass", type(problem), type(plan.problem(problem.classes)))
        return [("keep", self._model.keep, self.keep), *super()._unchangeable(plan), kinds]


@with_parameters
class Perceptron(Linear, SharedParameters):
    """The perceptron: a linear classifier that learns from its mistakes.

    On an example with margin m ≤ `margin`, w += eta0 · Δ, where Δ = y·x for two classes. If the rows, constant feature
    included, have norm ≤ R and some unit vector separates them with margin γ, then from w = 0 there are at most
    (R² + 2·margin/eta0)/γ² updates, in any order (Block 1962, Novikoff 1962).

    Parameters
    ----------
    margin
        Update whenever y·⟨w, x⟩ ≤ margin. With a margin the final separator is at least γδ/(R² + 2δ) wide, δ =
        margin/eta0: towards half the best as δ grows.
    eta0
        The rate. From w = 0 without a margin it only scales the weights.
    learning_rate
        eta0, eta0/√k or eta0/k at the k-th update. The last two void the mistake bound (1/√k keeps it up to a logarithm;
        1/k allows exp(πR/(√6γ)) updates) and say so in a warning.
    intercept_scaling
        The value of the constant feature. R and γ are those of the data with it; about R is a good size for uncentred data.
        scikit-learn learns the intercept of sparse data with an effective 0.1.

    Attributes
    ----------
    classes_ : array
        The labels. In order of arrival with `unknown_class="grow"`, sorted otherwise.
    n_mistakes_, n_updates_, n_seen_ : int
        Examples not predicted before they were learned from (a tie is not a prediction; with "ovo", those that lost one
        of their pairs), changes of weight vectors, and examples visited.
    history_ : list of Epoch
        For each epoch: mistakes, updates, examples seen, norm of the last weights, validation error, seconds.
    stop_reason_ : str
        converged, max_iter, max_updates, max_seconds, training_error, validation_error, weight_change, callback,
        interrupted, or partial_fit for a model that has only streamed.

    Notes
    -----
    A margin is not a probability. `CalibratedClassifierCV(Perceptron()).fit(X, y).predict_proba(X)`, from
    `sklearn.calibration`, makes probabilities of margins.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
    >>> y = ["spam", "ham", "spam", "ham", "spam", "ham"]
    >>> clf = Perceptron(order="cyclic").fit(X, y)
    >>> clf.score(X, y), clf.n_updates_, clf.stop_reason_
    (1.0, 4, 'converged')
    >>> clf.last_coef_, clf.last_intercept_
    (array([[ 0.,  2.,  0., -1.,  1.]]), array([0.]))
    >>> clf.predict([[0, 1, 0, 0, 0]]).tolist()
    ['spam']
    """

    margin: float = parameter(0.0, Number(0))
    eta0: float = parameter(1.0, Number(0, open_low=True))
    learning_rate: str = parameter("constant", OneOf(("constant", *_POWERS)))

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
