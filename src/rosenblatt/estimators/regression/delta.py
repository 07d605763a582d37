"""The delta rule, w += η(t − ⟨w, x⟩)x, as a regressor and, with targets ±1, as a classifier (Adaline). It moves on every
example, by what is missing, and ends at least squares where the perceptron ends at a separator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.model import LinearModel
from rosenblatt.engine.problems import Binary, OneVsRest
from rosenblatt.engine.rows import Examples, as_rows, lengths, numpy_array, refuse_dates, refuse_too_long
from rosenblatt.engine.train import Epoch, Limits
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import Weights
from rosenblatt.errors import InvalidParameter, NumericOverflow
from rosenblatt.estimators import targets
from rosenblatt.estimators.base import Estimator
from rosenblatt.estimators.callbacks import Hooks
from rosenblatt.estimators.inputs import READ, invalid_data
from rosenblatt.estimators.interface import available_if
from rosenblatt.estimators.linear import Linear
from rosenblatt.estimators.parameters import (
    BatchParameters,
    ClassWeightParameters,
    Flag,
    KeepParameters,
    LinearParameters,
    Number,
    OneOf,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import Plan
from rosenblatt.estimators.regression.regressor import RegressionTrainer, Regressor
from rosenblatt.estimators.regression.stability import Guard, Stability, Steps, longest, stability
from rosenblatt.estimators.regression.updates import Delta, Sides, Task, as_task
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.modelfile.parts import Parts


def _rate_is_known(estimator: Any) -> bool:
    """Whether the rate of a stream is known before the stream is."""
    bounded = estimator.normalised and (estimator.batch != "full" or estimator.reduction == "mean")
    if estimator.eta0 != "auto" or bounded:
        return True
    raise AttributeError(
        "partial_fit cannot be used with eta0='auto': the longest row of a stream is not known in advance. Set eta0 to a "
        "number, such as the rate_ of a fit or an eighth of stable_rate(X) for some rows, or set normalised=True"
    )


@with_parameters
class DeltaRule(Estimator, LinearParameters, BatchParameters, KeepParameters):
    """What regressor and classifier share: the rate, whether it is stable on the rows, and when to stop.

    Parameters
    ----------
    eta0
        The learning rate. "auto" finds one in `fit`: 1/(4·max‖x‖²) for single rows, half of `stable_rate(X)` for full
        batches, the smaller of both for batches in between; with `normalised=True` at most ¼. `partial_fit` alone takes
        "auto" only with `normalised=True`.
    normalised
        Whether to divide the step by epsilon + ‖x‖², so that the rate, which must be less than 2, no longer depends on the
        scale of the data: NLMS.
    epsilon
        Keeps the steps of very short rows short, where steps are normalised.
    keep
        Which weights predict: the last, or the mean of those after every example.
    tol
        Stop when the mean loss of an epoch has not fallen by more than `tol` for `n_iter_no_change` epochs in a row. The
        unit is the loss of the best constant, so `tol` is a difference of R². None: do not stop for this reason.

    Attributes
    ----------
    rate_ : float
        The rate that was used.
    """

    eta0: float | str = parameter("auto", Number(0, open_low=True, words=("auto",)))
    normalised: bool = parameter(False, Flag())
    epsilon: float = parameter(0.0, Number(0))
    keep: str = parameter("last", OneOf(("last", "average")))
    tol: float | None = parameter(1e-4)

    _exact = False

    def stable_rate(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the rate below which learning from X, in batches as this estimator takes them, is stable.

        With `batch="full"` no higher rate is: 2/λ_max(XᵀX), or 2n/λ_max(XᵀX) for the mean of n rows. Otherwise every rate
        below it is, whatever the order of the rows, and higher ones may be: 2/max‖x‖² for `batch=1`. Rows count with the
        constant feature, and times the root of their weight; with `normalised=True` divided by √(epsilon + ‖x‖²).

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.
        sample_weight : (rows,) array-like, optional
            The weights of the rows.

        Returns
        -------
        rate : float
        """
        from sklearn.utils import check_array

        plan = self._plan()
        refuse_dates(X)
        with invalid_data():
            table = check_array(numpy_array(X, "X"), **READ)
        weight = targets.sample_weights(sample_weight, table.shape[0])
        live = targets.live_rows(weight, table.shape[0])
        rows = as_rows(table)
        squared = lengths(rows, plan.constant)
        stakes = np.ones(table.shape[0]) if weight is None else weight
        visits = plan.visits(live, rows, np.random.default_rng(0))
        return stability(table, plan.constant, squared, self._stakes(stakes, squared), _steps(visits)).limit

    def _plan(self) -> Plan:
        plan = super()._plan()
        if self.normalised and self.eta0 != "auto" and float(self.eta0) >= 2:
            reason = "a normalised step of 1 leaves the row no error, one of 2 an error as large as it was"
            raise InvalidParameter("eta0", self.eta0, "less than 2 with normalised=True", hint=reason)
        return plan

    def _rule(self) -> Delta:
        return Delta(self.rate_, float(self.epsilon), 1.0) if self.normalised else Delta(self.rate_, 1.0, 0.0)

    def _stakes(self, stakes: NDArray, squared: NDArray) -> NDArray:
        """Return the stakes of rows of these squared lengths, divided by what a normalised step is divided by."""
        return stakes / np.maximum(self.epsilon + squared, np.finfo(np.float64).tiny) if self.normalised else stakes

    def _trainer(self, X: Any, task: Task, weights: Weights, visits: Visits) -> RegressionTrainer:
        """Return what learns this task into these weights, at a rate that is found here unless it is given."""
        own, by_class, long = task.gauge.T
        one = weights.tally.size == 1
        stakes = self._stakes(own * (by_class if one else np.maximum(by_class, 1.0)), long)
        present = np.zeros_like(stakes)
        present[visits.live] = stakes[visits.live]

        @cache
        def stable() -> Stability:
            found = stability(X, task.constant, long, present, _steps(visits))
            # Of many classes each has weights of its own, and these stakes are the largest of them.
            return found._replace(exact=found.exact and (one or bool((by_class == 1).all())))

        if "rate_" not in self.__dict__:
            self.rate_ = stable().advised if self.eta0 == "auto" else float(self.eta0)
        overshoot = self.rate_ * longest(long, present) * (1 if visits.mean else visits.batch)
        guard = Guard(self.rate_, stable, self._words(task)) if overshoot >= 2 else None
        return RegressionTrainer(task, weights, self._rule(), visits, guard)

    def _words(self, task: Task) -> tuple[str, str]:
        """How rows are taken together, and what counts as a row."""
        together = f"batch={self.batch!r}" + (f" and reduction={self.reduction!r}" if self.batch != 1 else "")
        parts = ["with its constant feature"] if task.constant else []
        parts += ["times the root of its weight"] if (task.gauge[:, :2] != 1).any() else []
        parts += ["divided by √(epsilon + ‖x‖²)"] if self.normalised else []
        return together, " ".join(["x a row of X", ", ".join(parts)]).strip()

    def _train(  # type: ignore[override]  # its own trainer
        self, plan: Plan, learner: RegressionTrainer, error: Callable[[], float] | None, hooks: Hooks
    ) -> tuple[list[Epoch], str]:
        if learner.guard is not None:
            nothing = _mean_square(learner.task, learner.visits.live, False) / 2
            learner.guard.expect(nothing, _steps(learner.visits).full)
        return super()._train(plan, learner, error, hooks)

    def _limits(self, plan: Plan, learner: RegressionTrainer) -> Limits:  # type: ignore[override]  # its own trainer
        limits = plan.limits()
        if limits.tol is None:
            return limits
        return limits._replace(tol=limits.tol * _mean_square(learner.task, learner.visits.live, plan.constant != 0) / 2)

    def _above(self) -> Any:
        """The kind of learner that the delta rule is mixed with, which has the model."""
        return super()

    def _model_to_parts(self, resume: bool) -> Parts:
        parts = self._above()._model_to_parts(resume)
        parts.facts["rate"] = self.rate_
        return parts

    def _model_from_parts(self, parts: Parts) -> LinearModel:
        self.rate_ = parts.real("rate")
        return self._above()._model_from_parts(parts)

    def _model_to_fit(self, *start: Any) -> LinearModel:
        self.__dict__.pop("rate_", None)
        return super()._model_to_fit(*start)

    def _model_to_stream(self, *start: Any) -> LinearModel:
        if self.eta0 != "auto":
            self.rate_ = float(self.eta0)
        else:  # normalised rows are no longer than 1, whatever comes
            self.rate_ = 0.25 if self.reduction == "mean" else min(0.25, 1 / int(self.batch))
        return super()._model_to_stream(*start)


def _steps(visits: Visits) -> Steps:
    return Steps(len(visits.live), visits.batch, visits.mean, visits.order == "random")


def _mean_square(task: Task, live: NDArray, about_mean: bool) -> float:
    """Compute the mean square of the targets, or their variance."""
    if isinstance(task.goals, Sides):
        return 1.0
    values, weight = task.goals.values[live], task.gauge[live, 0]
    with np.errstate(over="ignore"):
        centre = np.average(values, axis=0, weights=weight) if about_mean else 0.0
        square = float(np.average((values - centre) ** 2, axis=0, weights=weight).mean())
    if not np.isfinite(square):
        raise NumericOverflow("the mean square of y overflows", hint="scale y down")
    return square


@with_parameters
class DeltaRuleRegressor(DeltaRule, Regressor):
    """The delta rule of Widrow and Hoff (LMS), and its normalised form (NLMS), as a linear regressor.

    w += η(t − ⟨w, x⟩)x, a step down the gradient of (t − ⟨w, x⟩)²/2 (Widrow and Hoff 1960). Full batches approach least
    squares if and only if η < 2/λ_max(XᵀX). Single rows are stable at every η < 2/max‖x‖²; their last weights go on
    moving about least squares, by less the smaller η is, and the average of all weights approaches it (`keep="average"`;
    at η = 1/(4·max‖x‖²) on independent rows the excess loss is at most 2(σ√d + √(max‖x‖²)‖w*‖)²/n: Bach and Moulines 2013).
    A rate that is too high raises `Diverged` when its effect shows; the error names a rate that works.

    For least squares itself, all at once, use `sklearn.linear_model.LinearRegression`, and with a penalty `Ridge`; this is
    for streams, for more rows than fit into memory, and for teaching.

    Attributes
    ----------
    history_ : list of Epoch
        For each epoch: mean of (t − ⟨w, x⟩)²/2 of the rows when they were visited, updates, examples seen, norm of the last
        weights, seconds.
    stop_reason_ : str
        converged (an epoch without an error), max_iter, training_error, callback, interrupted, or partial_fit for a model
        that has only streamed.

    Examples
    --------
    >>> from rosenblatt import DeltaRuleRegressor
    >>> X, y = [[0], [1], [2], [3]], [1, 3, 5, 7]
    >>> reg = DeltaRuleRegressor(tol=1e-12).fit(X, y)
    >>> reg.coef_.round(3), reg.intercept_.round(3)
    (array([2.]), array([1.]))
    >>> DeltaRuleRegressor(eta0=0.2, batch="full").fit(X, y)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    rosenblatt.estimators.regression.stability.Diverged: the delta rule diverges with eta0=0.2: ...
    """

    partial_fit = available_if(_rate_is_known)(Regressor.partial_fit)


@with_parameters
class DeltaRuleClassifier(DeltaRule, Linear, ClassWeightParameters):
    """Adaline: a linear classifier that learns targets of ±1 by the delta rule (Widrow and Hoff 1960).

    For two classes w += η(y − ⟨w, x⟩)x with y = ±1, on every example, right or wrong; many classes are learned one against
    the rest, all in one pass. It minimises the squared error, so unlike the perceptron it settles on data that cannot be
    separated, and unlike the perceptron it may fail to separate data that can: examples far on the right side pull, too,
    because their score is not 1. No bound on its mistakes is known.

    Parameters
    ----------
    tol
        Stop when the mean loss of an epoch, in units of that of weights of zero, has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row. None: do not stop for this reason.
    class_weight
        Multiplies the steps for examples of a class. In `partial_fit`, "balanced" weighs by the classes seen so far.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        The weights that predict. One vector for two classes, else one a class.
    history_ : list of Epoch
        For each epoch: mean of (y − ⟨w, x⟩)²/2 of the rows when they were visited, mistakes, updates, examples seen, norm
        of the last weights, seconds.

    Examples
    --------
    >>> from rosenblatt import DeltaRuleClassifier
    >>> X, y = [[1, 1], [2, 0], [-1, 0], [0, -2]], ["up", "up", "down", "down"]
    >>> clf = DeltaRuleClassifier(batch="full", tol=1e-9).fit(X, y)
    >>> clf.predict([[3, 3], [-1, -1]]).tolist(), clf.decision_function([[1, 1]]).round(2).tolist()
    (['up', 'down'], [0.86])
    """

    _mixes = False

    _problems = {"ovr": OneVsRest}

    partial_fit = available_if(_rate_is_known)(Linear.partial_fit)

    def mistake_bound(self, radius: float, margin: float, classes: int | None = None) -> float:
        """Return infinity: the delta rule may settle on weights that do not separate examples which could be separated.

        Parameters
        ----------
        radius, margin, classes
            Ignored.

        Returns
        -------
        bound : float
        """
        return np.inf

    # Of Linear this one has the weights and their views, but not the rule: it learns as a regressor does.
    def _make_trainer(  # type: ignore[override]  # its own trainer
        self, plan: Plan, model: LinearModel, X: Any, examples: Examples, visits: Visits
    ) -> RegressionTrainer:
        self._check_finite(X, examples.rows)
        goals = Sides(examples.labels - 1 if isinstance(model.problem, Binary) else examples.labels)
        task = as_task(examples.rows, goals, examples.constant, examples.weight)
        refuse_too_long(task.rows, task.gauge[:, 2], visits.live)
        return self._trainer(X, task, model.weights, visits)

    def _store(self, model: LinearModel, X: Any, learner: Any) -> None:
        """Do nothing: no votes are kept."""
