"""What all estimators of this library have in common: epochs, counting, undoing an attempt that fails. What a learner is it
says in three hooks: what it starts from, what learns, and what predicts.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.model import Init
from rosenblatt.engine.rows import AnyMatrix, MatrixLike, Rows, finite
from rosenblatt.engine.train import (
    Epoch,
    EpochTrainer,
    Limits,
    NumericFailure,
    RowTrainer,
    failing_batch,
    failing_rows,
    interrupts_held,
    learn_once,
    train,
)
from rosenblatt.errors import InvalidParameter, NumericOverflow, UnsupportedOperation
from rosenblatt.estimators.callbacks import Hooks
from rosenblatt.estimators.inputs import invalid_data, longest_row, refuse_non_finite
from rosenblatt.estimators.interface import CallbackSupportMixin, Learner, check_is_fitted
from rosenblatt.estimators.parameters import SHARED, Flag, NamedParameters, parameter, with_parameters
from rosenblatt.estimators.plan import PROBLEMS, Plan
from rosenblatt.estimators.progress import Bar, Units
from rosenblatt.modelfile.saving import EstimatorSaveLoadMixin

Visit = Callable[[RowTrainer, NDArray], Progress]  # has a learner visit the rows of an order once


@contextmanager
def unchanged_on_error(estimator: Learner) -> Iterator[None]:
    """Take back every attribute that was set, but those by which callbacks are torn down afterwards."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        hooks = {name: value for name, value in estimator.__dict__.items() if "callback" in name}
        estimator.__dict__.clear()
        estimator.__dict__.update(before | hooks)
        raise


@contextmanager
def all_or_nothing(estimator: Learner) -> Iterator[None]:
    """The same, and Ctrl-C waits until all is done."""
    with interrupts_held() as interrupted, unchanged_on_error(estimator):
        yield
    if interrupted:
        raise KeyboardInterrupt


class ValidationData(NamedTuple):
    """What a caller wants a run to be validated on, if anything, and the classes that there are."""

    X: MatrixLike | None
    y: ArrayLike | None
    classes: NDArray


class NotOffered:
    """A scikit-learn method that learners here do not have; the AttributeError says what to use instead."""

    def __init__(self, hint: str):
        self.hint = hint

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}; {self.hint}")


PROBABILITIES = "sklearn.calibration.CalibratedClassifierCV turns scores into probabilities"
DENSE_WEIGHTS = "the weights are always dense; scipy.sparse.csr_matrix(model.coef_) is a sparse copy of them"


class Estimator(EstimatorSaveLoadMixin, CallbackSupportMixin, NamedParameters):
    """The base of all estimators of this library, with the interface of scikit-learn.

    The class attributes are the values of those parameters that a learner does not offer; `_allowed` says what its
    parameters may be, as `with_parameters` finds out.
    """

    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    order: str = "shuffle"
    batch: int | str = 1
    reduction: str = "sum"
    keep: str = "last"
    multiclass: str = "ovr"
    max_iter: int = 1000
    max_updates: int | None = None
    max_seconds: float | None = None
    tol: float | None = 1e-3
    weight_tol: float | None = None
    n_iter_no_change: int = 5
    early_stopping: bool = False
    validation_fraction: float = 0.1
    class_weight: Any = None
    unknown_class: str = "error"
    warm_start: bool = False
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: Any = 0
    verbose: int = 0

    _model: Any  # what has been learned: a LinearModel, StateModel, …
    n_features_in_: int

    _allowed: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    _problems: ClassVar[Mapping[str, Any]] = PROBLEMS
    _exact: ClassVar[bool] = True  # whether integers give the same bits in every layout: see rosenblatt.testing.laws

    _widens: ClassVar[bool] = False  # whether `widen` lets it meet columns that it did not begin with

    # What a learner is

    @property
    def _needs_scaling(self) -> bool:
        """Whether it learns large columns faster than small ones, so that they should be scaled."""
        return True

    @abstractmethod
    def _initial_model(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Init | None) -> Any:
        """What has been learned before the first example; `outputs` counts the classes or the targets, and
        `init` is where `fit` was asked to start."""

    def _store(self, model: Any, X: Any, learner: Any) -> None:
        """Store in the model what a stretch of learning left in the learner."""

    def _settle(self, model: Any, X: Any, learner: Any) -> None:
        """Complete a model whose run ended with an epoch without mistakes."""

    # scikit-learn's questions

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_learned(self) -> None:
        check_is_fitted(self)

    def _fitted(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit or partial_fit first")
        return self._model

    # What scikit-learn's linear learners have

    @property
    def t_(self) -> int:
        """One more than the number of examples visited, as scikit-learn counts."""
        self._fitted()
        return self.n_seen_ + 1

    def _set_weights(self, coef: ArrayLike | None = None, intercept: ArrayLike | None = None) -> None:
        """Set the weights with which a linear model predicts; one that is not fitted starts from them."""
        with unchanged_on_error(self), invalid_data():
            if not self.__sklearn_is_fitted__():
                self._begin_with(np.asarray(coef, dtype=np.float64))
            self._model = self._model.with_weights(coef, intercept)

    def _begin_with(self, coef: NDArray) -> None:
        """Make a model for weights of this shape, for an estimator that is not fitted."""
        raise UnsupportedOperation(f"{type(self).__name__} cannot start from weights that are set", hint="call fit first")

    def _begun(self, features: int, **learned: object) -> None:
        """Set the attributes of a fitted estimator that has seen no rows yet, and those in `learned`."""
        self.n_features_in_ = features
        self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
        self.n_updates_, self.n_seen_ = 0, 0
        self.__dict__.update(learned)

    # Columns that come later

    def widen(self, features: int) -> Any:
        """Change the number of columns that a fitted estimator expects.

        What it has learned is what it would have learned if the new columns had been there from the start and had been
        zero. Fewer columns than before are allowed where those left out have never been learned from.

        Parameters
        ----------
        features : int
            The number of columns from now on.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        UnsupportedOperation
            If it cannot learn from other columns, or if its columns have names.
        InvalidData
            If columns that were learned from would be left out.
        """
        check_is_fitted(self)
        if isinstance(features, bool) or not isinstance(features, Integral) or features < 1:
            raise InvalidParameter("features", features, "a whole number ≥ 1")
        if hasattr(self, "feature_names_in_"):
            raise UnsupportedOperation(
                "this model was fitted with named columns, and new columns would have no names", hint="fit a new model"
            )
        self._model = self._with_features(self._model, int(features))
        self.n_features_in_ = int(features)
        return self

    def _with_features(self, model: Any, features: int) -> Any:
        """The model for rows of so many columns."""
        raise UnsupportedOperation(
            f"{type(self).__name__} cannot change its number of columns once it has learned: its algorithm depends on it",
            hint="fit a new model with all columns",
        )

    # Steps of learning

    def _plan(self) -> Plan:
        names = (*SHARED, *self._allowed)
        return Plan({name: getattr(self, name) for name in names}, self._allowed, self._problems)

    def _plan_to_stream(self) -> Plan:
        """The plan for `partial_fit`, which visits each row once and holds none out."""
        plan = self._plan()
        if self.early_stopping:
            raise UnsupportedOperation(
                "early_stopping=True cannot be used with partial_fit, which learns from every row once and has no epochs "
                "to stop",
                hint="use fit, or call score on rows of your own between the calls of partial_fit and stop calling it",
                settings={"early_stopping": False},
            )
        return plan

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        """(parameters, what they were when the model began, what they are now) of those that must not change."""
        return [("fit_intercept or intercept_scaling", self._model.constant, plan.constant)]

    def _check_unchanged(self, plan: Plan) -> None:
        """Refuse to go on with a model that was begun with other parameters than those of now."""
        for names, then, now in self._unchangeable(plan):
            if then is not now and not np.array_equal(then, now):
                raise UnsupportedOperation(
                    f"{names} has changed since this model began to learn", hint="fit a new one, or change it back"
                )

    def _model_to_fit(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Init | None) -> Any:
        if self.warm_start and self.__sklearn_is_fitted__():
            self._resumable()
            self._check_unchanged(plan)
            model = self._model.copy()
            model.prepare(rows)
            return model
        return self._initial_model(plan, rows, features, outputs, init)

    def _model_to_stream(self, plan: Plan, rows: Rows, features: int, outputs: int) -> Any:
        if not self.__sklearn_is_fitted__():
            return self._initial_model(plan, rows, features, outputs, None)
        self._resumable()
        self._check_unchanged(plan)
        model = copy.copy(self._model)  # shares the arrays of the old one, which `_stream` puts back after an error
        model.prepare(rows)
        return model

    def _run(
        self,
        plan: Plan,
        model: Any,
        learner: EpochTrainer,
        data: tuple[Any, Any],
        error: Callable[[], float] | None,
        learned: Mapping[str, object],
        replay: Callable[[], RowTrainer] | None = None,
    ) -> str:
        """Learn epoch by epoch and store what came of it, with the further attributes `learned`; why it stopped.

        `replay` makes a learner that would do the same once more, to find out which row it was that failed."""
        X, y = data
        seen, updates = model.seen, model.updates
        hooks = Hooks(self, X, y, self.max_iter, lambda: {"_model": model.copy(), **learned})
        try:
            history, reason = self._train(plan, learner, error, hooks)
        except NumericFailure as failure:
            if replay is not None:
                refuse_non_finite(self, X)
                failure.row = longest_row(X, failing_rows(replay(), failure.epochs))
            raise self._not_finite(X, failure) from None
        self._store(model, X, learner)
        self._model = model
        self.__dict__.update(learned)
        self.history_, self.stop_reason_, self.n_iter_ = history, reason, len(history)
        self.n_updates_ = model.updates - updates
        self.n_seen_ = model.seen - seen
        if not history[-1].mistakes:
            self._settle(model, X, learner)
        hooks.done()
        return reason

    def _train(
        self, plan: Plan, learner: EpochTrainer, error: Callable[[], float] | None, hooks: Hooks
    ) -> tuple[list[Epoch], str]:
        bar = Bar(self.max_iter, self._units()) if self.verbose else None
        recorded = getattr(learner, "recorded", 0)  # epochs of a training that resumes, which were shown before

        def watch(epoch: Epoch) -> bool:
            if epoch.epoch <= recorded:
                return False
            if bar is not None:
                bar(epoch)
            return hooks.epoch()

        watched = bar is not None or hooks.fit is not None or recorded > 0
        history, reason = train(learner, self._limits(plan, learner), error, watch if watched else None)
        if bar is not None:
            bar.done(reason)
        return history, reason

    def _units(self) -> Units:
        """What an epoch counts, for the line that shows it."""
        return Units()

    def _limits(self, plan: Plan, learner: EpochTrainer) -> Limits:
        """When to stop."""
        return plan.limits()

    def _tell(self, reason: str) -> None:
        """Raise KeyboardInterrupt if Ctrl-C ended `fit`, and warn if `max_iter` ended it before it converged."""
        if reason == "interrupted":
            raise KeyboardInterrupt
        last = self.history_[-1]
        if reason == "max_iter" and self.tol is not None and (last.mistakes or last.loss is not None):
            state = (
                f"{last.mistakes} of {last.seen} rows were predicted wrong"
                if last.loss is None
                else f"the mean loss was {last.loss:.3g}"
            )
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} epochs without converging; in the last "
                f"epoch {state}. Scale the columns (StandardScaler) or raise max_iter; if nothing separates the classes, "
                "tol=None runs max_iter epochs and does not warn",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _check_finite(self, X: AnyMatrix, rows: Rows) -> None:
        if not finite(rows):
            refuse_non_finite(self, X)

    def _not_finite(self, X: Any, failure: NumericFailure) -> Exception:
        """The error for a score or weight that is not finite although X is."""
        where = "" if failure.row is None else f" at row {failure.row}"
        return NumericOverflow(
            f"the weights or scores overflowed{where}: the values of X, or the weights of examples, are too large for "
            f"{X.dtype}",
            hint="scale them down" + (", or use float64" if X.dtype == np.float32 else ""),
            row=failure.row,
        )

    def _learn_stream(self, begin: Callable[[], Any], X: Any, learn: Callable[[Any, Visit], Any]) -> tuple[Any, Any]:
        """Learn from rows that come once, into the model that `begin` answers; the model, and what `learn` answers.

        `learn(model, visit)` has each stretch of rows visited by `visit(learner, order)`. An error leaves what was known
        before as it was; after an overflow all is repeated row by row, on a copy, to find the row.
        """
        undo: list[Callable[[], None]] = []
        failing: list[int] = []
        model = begin()

        def visit(learner: RowTrainer, order: NDArray) -> Progress:
            restore = learner.backup(order)
            if restore is not None:
                undo.append(restore)
            return learn_once(learner, order, check=restore is not None)

        def search(learner: RowTrainer, order: NDArray) -> Progress:
            failing.extend(failing_batch(learner, order).tolist())
            if failing:
                raise NumericFailure(None)
            return Progress(len(order), 0, 0, -1)

        try:
            return model, learn(model, visit)
        except BaseException as failure:
            for restore in reversed(undo):
                restore()
            if not isinstance(failure, NumericFailure):
                raise
            with suppress(NumericFailure):
                learn(begin().copy(), search)
            failure.row = longest_row(X, np.array(failing, np.int64))
            raise self._not_finite(X, failure) from None


@with_parameters
class ShuffleAndAverage(Estimator):
    """An estimator that takes `shuffle` and `average`, as scikit-learn's do, where others take `order` and `keep`.

    Parameters
    ----------
    shuffle
        Whether each epoch visits the rows in a new order.
    average
        Whether the mean of the weights after each example predicts, rather than the last.
    """

    shuffle: bool = parameter(True, Flag())
    average: bool = parameter(False, Flag())

    # What is a parameter elsewhere follows from another one here, and is not to be set: hence a property over an attribute.
    @property
    def order(self) -> str:  # type: ignore[override]
        """How each epoch visits the rows, in the word that other learners take."""
        return "shuffle" if np.all(self.shuffle) else "cyclic"

    @property
    def keep(self) -> str:  # type: ignore[override]
        """Which weights predict, in the word that other learners take."""
        return "average" if np.all(self.average) else "last"
