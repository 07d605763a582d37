"""What learners of numbers have in common: reading targets, epochs, streams, predictions. Which rule turns an error into a
step a subclass says; the passive-aggressive one is here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.loop import Pace, Progress
from rosenblatt.engine.model import LinearModel, fresh
from rosenblatt.engine.problems import Binary, OneVsRest, Problem
from rosenblatt.engine.rows import Rows, as_rows, finite, frozen, prefetch_distance, refuse_dates, refuse_too_long
from rosenblatt.engine.train import NO_LIMIT, NumericFailure
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import Weights, norm
from rosenblatt.errors import DamagedModel, InvalidData
from rosenblatt.estimators import targets
from rosenblatt.estimators.base import (
    DENSE_WEIGHTS,
    Estimator,
    NotOffered,
    ShuffleAndAverage,
    all_or_nothing,
    unchanged_on_error,
)
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.inputs import accept_unchecked, invalid_data, read_examples, read_rows
from rosenblatt.estimators.interface import RegressorMixin, check_is_fitted
from rosenblatt.estimators.parameters import (
    EpochParameters,
    InterceptParameters,
    Number,
    OneOf,
    ValidationParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import Plan
from rosenblatt.estimators.regression.stability import Guard
from rosenblatt.estimators.regression.updates import Delta, Targets, Task, Tube, as_task, epoch
from rosenblatt.estimators.scaling import warn_unscaled
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.modelfile.parts import Parts


class RegressionTrainer:
    """What `train` works with: weights that learn from their errors.

    Where the rate may be too high for the rows there is a guard.
    """

    def __init__(self, task: Task, weights: Weights, rule: Delta | Tube, visits: Visits, guard: Guard | None = None):
        self.task = task
        self.weights = weights
        self.rule = rule
        self.visits = visits
        self.guard = guard

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return int(self.weights.clock[0])

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        batch = None if self.visits.batch == 1 else self.visits.batch
        ahead = prefetch_distance(self.task.rows, self.visits.order == "cyclic")
        pace = Pace(batch, self.visits.mean, NO_LIMIT, self.weights.tally.size, ahead)
        w, vectors = self.weights.w, self.weights.tally.size
        scores = np.empty(vectors, np.float64 if w.ndim == 1 else w.dtype)
        taus = np.empty((min(self.visits.batch, len(order)), vectors))
        done = epoch(self.task, self.weights, self.rule, pace, order, scores, taus)
        if self.guard is not None and done.loss is not None and (done.broken < 0 or finite(self.task.rows)):
            diverged = self.guard.judge(done.loss)
            if diverged is not None:
                raise diverged
        if done.broken >= 0:
            raise NumericFailure(int(done.broken))
        return done, done.updates == 0 and self.visits.order in ("cyclic", "shuffle")

    def size(self) -> float:
        """The norm of all weights."""
        return norm(self.weights.w)

    def weights_now(self) -> NDArray:
        """The weights, as they are changed in place."""
        return self.weights.w

    def backup(self, order: NDArray) -> Callable[[], None]:
        """Copy what learning from the rows of `order` changes."""
        return self.weights.backup(self.task.rows)

    def finite(self, order: NDArray) -> bool:
        """Whether everything that the rows of `order` can have changed is a finite number."""
        return self.weights.finite(self.task.rows, order)


class Regressor(RegressorMixin, Estimator):
    """A linear regressor: w += τx, with τ from a rule that sees the error and the length of x. Several targets, y (rows,
    targets), are learned in one pass over the data.

    Attributes
    ----------
    coef_, intercept_ : (features,) and (1,) arrays; (targets, features) and (targets,) for y (rows, targets)
        The weights that predict. They may be set; training then goes on as if they had been the weights from the beginning.
    t_ : int
        One more than the number of examples visited, as scikit-learn counts.
    n_updates_, n_seen_, n_iter_ : int
        The numbers of changes of weight vectors, of examples visited, and of epochs.
    weights_ : Weights
        What the kernels work on: last weights, drift, counts.
    """

    _has_classes = False

    @abstractmethod
    def _trainer(self, X: Any, task: Task, weights: Weights, visits: Visits) -> RegressionTrainer:
        """Return what learns this task into these weights."""

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Fit the model to data, in epochs until one of the reasons to stop.

        An error leaves the estimator as it was. Ctrl-C finishes the epoch, stores the model and then interrupts.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.
        y : (rows,) or (rows, targets) array-like
            The targets.
        coef_init, intercept_init : array-like, optional
            Where the weights start, in the shapes of `coef_` and `intercept_`. By default at zero.
        sample_weight : (rows,) array-like, optional
            Multiplies the steps of each row; rows of weight 0 are ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self):
            plan = self._plan()
            table, values = self._read(X, y, reset=True)
            self._check_targets(values, self.warm_start)
            rows = as_rows(table)
            self._check_finite(table, rows)
            rng = plan.rng()
            start = (plan, rows, table.shape[1], _outputs(values), (coef_init, intercept_init))
            model = self._model_to_fit(*start)
            task, live = self._task(plan, rows, values, sample_weight)
            live, error = self._validation(plan, model, table, values, live, rng)
            state = rng.bit_generator.state

            def begin(model: LinearModel) -> RegressionTrainer:
                rng.bit_generator.state = state
                return self._trainer(table, task, model.weights, plan.visits(live, rows, rng))

            data, learned = (table, values), {"_flat": values.ndim == 1}
            reason = self._run(plan, model, begin(model), data, error, learned, lambda: begin(self._model_to_fit(*start)))
        warn_unscaled(self, table, stacklevel=3)
        self._tell(reason)
        return self

    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from these rows, once, in the order given.

        Cutting a stream of rows into calls in any way gives the same model (with a `batch` of more than one row, the end of
        a call ends the batch). `order` and the reasons to stop do not apply. An error leaves the estimator as it was.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.
        y : (rows,) or (rows, targets) array-like
            The targets.
        sample_weight : (rows,) array-like, optional
            Multiplies the steps of each row; rows of weight 0 are ignored.

        Returns
        -------
        self : object
            The estimator.
        """
        first = not self.__sklearn_is_fitted__()
        with all_or_nothing(self):
            plan = self._plan_to_stream()
            table, values = self._read(X, y, reset=first)
            self._check_targets(values, not first)
            rows = as_rows(table)
            self._check_finite(table, rows)
            task, live = self._task(plan, rows, values, sample_weight)
            model, done = self._learn_stream(
                lambda: self._model_to_stream(plan, rows, table.shape[1], _outputs(values)),
                table,
                lambda model, visit: visit(self._trainer(table, task, model.weights, plan.visits_in_order(live)), live),
            )
            self._model, self._flat = model, values.ndim == 1
            if first:
                self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
                self.n_updates_, self.n_seen_ = 0, 0
            self.n_updates_ += done.updates
            self.n_seen_ += len(live)
        return self

    def predict(self, X: MatrixLike) -> NDArray:
        """Predict the target of each row.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.

        Returns
        -------
        y : (rows,) array, or (rows, targets) after learning from such a y

        Examples
        --------
        >>> from rosenblatt import DeltaRuleRegressor
        >>> model = DeltaRuleRegressor(tol=1e-12).fit([[0], [1], [2], [3]], [1, 3, 5, 7])
        >>> model.predict([[4], [10]]).round(3).tolist()
        [9.0, 21.0]
        """
        check_is_fitted(self)
        return self._reshape(_predict(self._model, read_rows(self, X)))

    @property
    def coef_(self) -> NDArray:
        return self._reshape(self._fitted().predicting_coef()[0].T).T

    @coef_.setter
    def coef_(self, coef: ArrayLike) -> None:
        self._set_weights(coef=coef)

    @property
    def intercept_(self) -> NDArray:
        return self._fitted().predicting_coef()[1]

    @intercept_.setter
    def intercept_(self, intercept: ArrayLike) -> None:
        self._set_weights(intercept=intercept)

    sparsify = NotOffered(DENSE_WEIGHTS)
    densify = NotOffered(DENSE_WEIGHTS)

    @property
    def weights_(self) -> Weights:
        model = self._fitted()
        if model.only_predicts:
            raise AttributeError("this model was saved for prediction only; save it with save(path, resume=True)")
        return model.weights

    # Steps of learning

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray]:
        if targets.need_no_validation(y, X, "f") and np.isfinite(y).all() and accept_unchecked(self, X, reset):
            return X, np.ascontiguousarray(y, dtype=np.float64)
        refuse_dates(y, "y")
        table, values = read_examples(self, X, y, reset, ensure_all_finite=False, multi_output=True, y_numeric=True)
        with invalid_data():
            return table, np.ascontiguousarray(values, dtype=np.float64)

    def _check_targets(self, y: NDArray, going_on: bool) -> None:
        """Refuse to go on with a model of other targets."""
        if going_on and self.__sklearn_is_fitted__() and (_outputs(y), y.ndim == 1) != (self._outputs, self._flat):
            before = "(rows,)" if self._flat else f"(rows, {self._outputs})"
            raise InvalidData(f"y must have the shape {before}, as when this model began to learn; it has {y.shape}")

    def _task(self, plan: Plan, rows: Rows, y: NDArray, sample_weight: ArrayLike | None) -> tuple[Task, NDArray]:
        """Return what is to be learned, and the rows that count."""
        weight = targets.sample_weights(sample_weight, len(y))
        goals = Targets(frozen(y.reshape(len(y), -1)))
        task = as_task(rows, goals, plan.constant, targets.pair_weights(weight, None, len(y)))
        live = targets.live_rows(weight, len(y))
        refuse_too_long(rows, task.gauge[:, 2], live)
        return task, live

    def _initial_model(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Any) -> LinearModel:
        return fresh(_problem(outputs), rows, features, plan.constant, self.keep, init or (None, None))

    _widens = True

    def _with_features(self, model: LinearModel, features: int) -> LinearModel:
        return model.with_features(features)

    def _model_to_parts(self, resume: bool) -> Parts:
        parts = self._model.to_parts(resume, lambda: None)
        parts.facts |= {"targets": self._outputs, "flat": self._flat}
        return parts

    def _model_from_parts(self, parts: Parts) -> LinearModel:
        outputs, self._flat = parts.whole("targets", 1), parts.flag("flat")
        if self._flat and outputs != 1:
            raise DamagedModel(f"y (rows,) has one target, not {outputs}")
        return LinearModel.from_parts(parts, self.n_features_in_, [_problem(outputs)], lambda: None)

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        return [("keep", self._model.keep, self.keep), *super()._unchangeable(plan)]

    def _validation(
        self, plan: Plan, model: LinearModel, X: Any, y: NDArray, live: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, Callable[[], float] | None]:
        """Return the rows to learn from, and a function that computes 1 − R² on those held out."""
        if not self.early_stopping:
            return live, None
        live, held = plan.hold_out(live, None, rng)
        X_val, y_val = X[held], y[held].reshape(len(held), -1)
        from sklearn.metrics import r2_score

        return live, lambda: 1.0 - float(r2_score(y_val, _predict(model, X_val)))

    @property
    def _outputs(self) -> int:
        return self._model.weights.tally.size

    def _reshape(self, values: NDArray) -> NDArray:
        """Return an array whose last axis is the targets, without that axis where y had none."""
        return values[:, 0] if self._flat else values


def _problem(outputs: int) -> Problem:
    """One target has the one weight vector of two classes, several have one each, as classes against the rest have: ±1 is a
    target too."""
    return Binary(2) if outputs == 1 else OneVsRest(outputs)


def _outputs(y: NDArray) -> int:
    return 1 if y.ndim == 1 else y.shape[1]


def _predict(model: LinearModel, X: Any) -> NDArray:
    coef, intercept = model.predicting_coef()
    return X @ coef.T + intercept


@with_parameters
class PassiveAggressiveRegressor(ShuffleAndAverage, Regressor, InterceptParameters, EpochParameters, ValidationParameters):
    """Passive-aggressive regressor (PA, PA-I, PA-II): moves just far enough to be within ε of the target.

    Of all weights that predict the example up to ε, the step takes the nearest: τ = ±ℓ/‖x‖² with ℓ = max(0, |e| − ε) and
    e = t − ⟨w, x⟩. PA-I caps it, τ = ±min(C, ℓ/‖x‖²), PA-II damps it, τ = ±ℓ/(‖x‖² + 1/(2C)) (Crammer, Dekel, Keshet,
    Shalev-Shwartz and Singer 2006). On rows of norm ≤ R, in any order: if some u predicts all targets up to ε, PA loses at
    most Σ ℓ² ≤ R²‖u‖²; PA-II at most (R² + 1/(2C))(‖u‖² + 2C Σ ℓ(u)²) against every u.

    The parameters are those of scikit-learn's class of this name, with the same meaning. One thing differs on purpose: ‖x‖²
    includes the constant feature that carries the intercept, without which a step would overshoot the tube that it aims at.
    With `fit_intercept=False` the weights are scikit-learn's.

    Parameters
    ----------
    C
        The cap or the damping; `float("inf")` is PA, without either.
    tol
        Stop when the mean loss of an epoch (or the validation error, 1 − R²) has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row. None: do not stop for this reason.
    early_stopping
        Hold out `validation_fraction` of the rows and judge by R² on these.
    loss
        PA-I or PA-II.
    epsilon
        Errors up to this do not change the weights.

    Attributes
    ----------
    history_ : list of Epoch
        For each epoch: mean loss ℓ of the rows when they were visited, updates, examples seen, norm of the last weights,
        validation error, seconds.
    stop_reason_ : str
        converged (an epoch without an update), max_iter, training_error, validation_error, callback, interrupted, or
        partial_fit for a model that has only streamed.

    Examples
    --------
    >>> from rosenblatt import PassiveAggressiveRegressor
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 1]], [2, -1, 1, 3]
    >>> reg = PassiveAggressiveRegressor(C=float("inf"), epsilon=0.01, tol=None).fit(X, y)
    >>> reg.stop_reason_, reg.predict([[3, 2]]).round(1).tolist()
    ('converged', [4.0])
    """

    C: float = parameter(1.0, Number(0, open_low=True, closed_high=True))
    loss: str = parameter("epsilon_insensitive", OneOf(("epsilon_insensitive", "squared_epsilon_insensitive")))
    epsilon: float = parameter(0.1, Number(0))

    def loss_bound(self, radius: float, norm: float, losses: float = 0.0) -> float:
        """Return a bound on Σ ℓ², the sum of squared losses, from weights of zero.

        Parameters
        ----------
        radius : float
            The length of the longest row. All is measured with the constant feature.
        norm : float
            The length of a weight vector u to compare with.
        losses : float, default=0.0
            Σ ℓ² of u.

        Returns
        -------
        bound : float
            Infinity where no bound is known: PA-I with a finite C, and PA against a u with losses.
        """
        return self._rule().bound(radius, norm, losses)

    def _rule(self) -> Tube:
        capped = self.loss == "epsilon_insensitive"
        return Tube(float(self.epsilon), float(self.C) if capped else np.inf, 0.0 if capped else 0.5 / float(self.C))

    def _trainer(self, X: Any, task: Task, weights: Weights, visits: Visits) -> RegressionTrainer:
        return RegressionTrainer(task, weights, self._rule(), visits)
