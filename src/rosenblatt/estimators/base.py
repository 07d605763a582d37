"""What all estimators of this library have in common: epochs, counting, undoing an attempt that fails; and what all
classifiers have: reading labels and streams of them. What a learner is it says in three hooks: what it starts from, what
learns, and what predicts.
"""

from __future__ import annotations

import copy
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.model import Init
from rosenblatt.engine.problems import Binary, Joint, OneVsOne, OneVsRest, Problem, Spread, winner
from rosenblatt.engine.rows import (
    AnyMatrix,
    DeviceRows,
    Examples,
    MatrixLike,
    Rows,
    all_finite,
    as_rows,
    finite,
    numpy_array,
    refuse_dates,
    text_hint,
)
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
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import (
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    NumericOverflow,
    RosenblattError,
    UnknownLabel,
    UnsupportedOperation,
)
from rosenblatt.estimators import targets
from rosenblatt.estimators.callbacks import Hooks
from rosenblatt.estimators.interface import CallbackSupportMixin, ClassifierMixin, Learner, check_is_fitted
from rosenblatt.estimators.parameters import SHARED, Flag, NamedParameters, parameter, with_parameters
from rosenblatt.estimators.plan import PROBLEMS, Plan
from rosenblatt.estimators.progress import Bar, Units
from rosenblatt.estimators.scaling import warn_unscaled
from rosenblatt.modelfile.saving import EstimatorSaveLoadMixin

READ: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}


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


@contextmanager
def invalid_data(X: Any = None) -> Iterator[None]:
    """Turn what scikit-learn refuses into InvalidData, with the same message, and advice if it is about text in X."""
    try:
        yield
    except (RosenblattError, AttributeError):  # a NotFittedError is an AttributeError
        raise
    except TypeError as error:
        raise InvalidDataType(str(error), hint=text_hint(X)) from error
    except (ValueError, OverflowError) as error:
        raise InvalidData(str(error), hint=text_hint(X)) from error


def _needs_no_validation(X: Any) -> bool:
    """Return whether scikit-learn's `validate_data` would return X unchanged, apart from its check for NaN. It takes longer
    than a small fit, and is skipped then."""
    if type(X) not in (np.ndarray, sp.csr_array, sp.csr_matrix) or X.ndim != 2 or X.dtype not in READ["dtype"]:
        return False
    return min(X.shape) > 0 and (sp.issparse(X) or X.flags.c_contiguous)


def _has_expected_columns(estimator: Any, X: Any) -> bool:
    return estimator.n_features_in_ == X.shape[1] and not hasattr(estimator, "feature_names_in_")


def accept_unchecked(estimator: Any, X: Any, reset: bool) -> bool:
    """Return whether X can be used without `validate_data`: it needs none and has the columns that the estimator expects.
    If so, `n_features_in_` is set; with `reset` any number of columns will do."""
    if not _needs_no_validation(X) or not (reset or _has_expected_columns(estimator, X)):
        return False
    estimator.n_features_in_ = X.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)
    return True


def read_rows(estimator: Learner, X: Any, **options: object) -> Any:
    """X as an array or a CSR matrix of finite numbers, with the columns that the fitted estimator expects."""
    is_valid = _needs_no_validation(X) and _has_expected_columns(estimator, X)
    if is_valid and all_finite(X if type(X) is np.ndarray else X.data):
        return X
    refuse_dates(X)
    with invalid_data(X):
        from sklearn.utils.validation import validate_data

        return validate_data(estimator, numpy_array(X, "X"), reset=False, **(READ | options))


def read_examples(estimator: Learner, X: MatrixLike, y: ArrayLike, reset: bool, **options: object) -> tuple[Any, NDArray]:
    """(X, y) as arrays, or X as a CSR matrix; with `reset`, the estimator expects columns like these from now on."""
    from sklearn.utils.validation import validate_data

    refuse_dates(X)
    with invalid_data(X):
        return validate_data(estimator, numpy_array(X, "X"), numpy_array(y, "y"), reset=reset, **(READ | options))


def refuse_non_finite(estimator: Learner, X: AnyMatrix) -> None:
    """Raise InvalidData if X holds NaN or infinity."""
    from sklearn.utils import assert_all_finite

    if isinstance(X, DeviceRows):
        X = np.array([[X.largest()]], X.dtype)  # NaN or infinite if a value is
    with invalid_data():
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")


def longest_row(X: AnyMatrix, rows: NDArray) -> int | None:
    """Of some rows of X the one with the largest value; None if there are none."""
    if len(rows) < 2:
        return int(rows[0]) if len(rows) else None
    if isinstance(X, DeviceRows):
        return int(rows[np.concatenate([abs(part.to_host()).max(axis=1) for part in X[rows].pieces()]).argmax()])
    return int(rows[abs(sp.csr_array(X[rows])).max(axis=1).toarray().argmax()])


class ValidationData(NamedTuple):
    """What a caller wants a run to be validated on, if anything, and the classes that there are."""

    X: MatrixLike | None
    y: ArrayLike | None
    classes: NDArray


class LabelledRows(NamedTuple):
    """Rows of a stream and what is known of them."""

    X: AnyMatrix
    rows: Rows
    labels: NDArray  # (rows,) class numbers
    weight: NDArray | None  # (rows,)
    live: NDArray  # the rows that count


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


class Classifier(ClassifierMixin, Estimator):
    """A classifier that learns from its mistakes, in epochs or from a stream.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    n_mistakes_, n_updates_, n_seen_ : int
        The numbers of examples predicted wrong before they were learned from, of changes of weight vectors, and of
        examples visited.
    n_iter_ : int
        The number of epochs.
    history_ : list of Epoch
        For each epoch: mistakes, updates, examples seen, norm of the weights, seconds.
    stop_reason_ : str
        converged, max_iter, training_error, callback, interrupted, or partial_fit for a model that has only streamed.
    """

    # What a learner is

    @abstractmethod
    def _make_trainer(self, plan: Plan, model: Any, X: Any, examples: Examples, visits: Visits) -> RowTrainer:
        """What learns from these examples into the model."""

    # Learning

    def _fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        init: Init | None = None,
        validation: tuple[MatrixLike | None, ArrayLike | None] = (None, None),
    ) -> Any:
        """Learn in epochs until one of the reasons to stop; an error leaves the estimator as it was."""
        with unchanged_on_error(self):
            plan = self._plan()
            X, y = self._read_to_learn(X, y, reset=True)
            weight = targets.sample_weights(sample_weight, len(y))
            live = targets.live_rows(weight, len(y))
            classes = targets.distinct(y if weight is None else y[live])
            if len(classes) < 2:
                raise InvalidData(f"y must name at least two classes; it has one class only: {classes[0].item()!r}")
            labels = targets.numbers(y, classes)
            by_class = self._class_weights(classes, labels, live)
            live = self._live(live, by_class, len(classes))
            rng = plan.rng()
            rows = as_rows(X)
            if self.order not in ("cyclic", "shuffle") or self.early_stopping or self.max_updates is not None:
                self._check_finite(X, rows)  # a run that visits every row notices by itself, without another pass
            if self.warm_start and self.__sklearn_is_fitted__() and not np.array_equal(classes, self.classes_):
                raise InvalidData(
                    f"warm_start=True goes on with the classes {self.classes_.tolist()}, but y has {classes.tolist()}"
                )
            new_model = partial(self._model_to_fit, plan, rows, X.shape[1], len(classes), init)
            model = new_model()
            live, error = self._validation(plan, model, X, labels, live, ValidationData(*validation, classes), rng)
            examples = Examples(rows, labels, targets.pair_weights(weight, by_class, len(y)), plan.constant)
            state = rng.bit_generator.state

            def begin(model: Any) -> RowTrainer:
                rng.bit_generator.state = state
                return self._make_trainer(plan, model, X, examples, plan.visits(live, rows, rng))

            learned = {"classes_": classes}
            reason = self._run(plan, model, begin(model), (X, y), error, learned, lambda: begin(new_model()))
            self.class_count_ = np.bincount(labels[live], minlength=len(classes))
            self.n_mistakes_ = sum(epoch.mistakes for epoch in self.history_)
        if self._needs_scaling:
            warn_unscaled(self, X, stacklevel=4)
        self._tell(reason)
        return self

    def _partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Learn from these rows, once, in the order given."""
        with all_or_nothing(self):
            plan = self._plan_to_stream()
            X, y = self._read_to_learn(X, y, reset=not self.__sklearn_is_fitted__())
            rows = as_rows(X)
            self._check_finite(X, rows)
            weight = targets.sample_weights(sample_weight, len(y))
            live = targets.live_rows(weight, len(y))
            known = self._known_classes(classes, y)
            labels = targets.numbers(y, known)
            stages = [(0, len(known))]
            strange = np.flatnonzero(labels[live] < 0)
            if len(strange):
                known, stages = self._stages(y[live], known, strange)
                labels = targets.numbers(y, known)
            self._learn_labelled(plan, LabelledRows(X, rows, labels, weight, live), known, stages)
        return self

    def _partial_fit_numbers(
        self, X: AnyMatrix, labels: NDArray, classes: int, weight: NDArray | None = None, order: NDArray | None = None
    ) -> Any:
        """The same for rows that need no checks: X is an array or a CSR matrix of finite floats, with sorted indices, and
        the labels are the numbers of this many classes. The rows of `order`, whose weights are not 0, are learned; by
        default all of them, as they come."""
        with all_or_nothing(self):
            X = self._to_device(X)
            self.n_features_in_ = X.shape[1]
            order = targets.live_rows(weight, len(labels)) if order is None else order
            data = LabelledRows(X, as_rows(X), labels, weight, order)
            self._learn_labelled(self._plan_to_stream(), data, np.arange(classes), [(0, classes)])
        return self

    def _one_by_one(self, X: AnyMatrix, labels: NDArray, classes: int) -> Callable[[int], None]:
        """Return a function that learns from one row of X, given its number, as `_partial_fit_numbers` does.

        It is many times as fast, because parameters and rows are checked once. After an error, do not use the learner."""
        self._partial_fit_numbers(X[:0], labels[:0], classes)
        plan, model, order = self._plan_to_stream(), self._model, np.arange(len(labels))
        examples = Examples(as_rows(X), labels, None, plan.constant)
        trainer = self._make_trainer(plan, model, X, examples, plan.visits_in_order(order))

        def learn(row: int) -> None:
            try:
                done = learn_once(trainer, order[row : row + 1])
            except NumericFailure as failure:
                raise self._not_finite(X, failure) from None
            self._remember(model, X, trainer)
            self.n_mistakes_ += done.mistakes
            self.n_updates_ += done.updates
            self.n_seen_ += 1

        return learn

    def _remember(self, model: Any, X: Any, learner: RowTrainer) -> None:
        """Take over what a learner has logged of rows of X, which predicts from now on; most log nothing."""

    def _learn_labelled(self, plan: Plan, data: LabelledRows, known: NDArray, stages: list[tuple[int, int]]) -> None:
        first = not self.__sklearn_is_fitted__()
        counts = np.zeros(len(known), np.int64)
        before = getattr(self, "class_count_", counts[:0])
        counts[: len(before)] = before
        by_class = self._class_weights(known, data.labels, data.live, counts)
        weight = targets.pair_weights(data.weight, by_class, len(data.labels))
        examples = Examples(data.rows, data.labels, weight, plan.constant)
        totals = (0, 0, 0) if first else (self.n_mistakes_, self.n_updates_, self.n_seen_)
        model, (mistakes, updates) = self._learn_stream(
            lambda: self._model_to_stream(plan, data.rows, data.X.shape[1], stages[0][1]),
            data.X,
            lambda model, visit: self._learn_stages(plan, model, data, examples, stages, visit),
        )
        self._set(model, known)
        self.class_count_ = counts
        if first:
            self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
        self.n_mistakes_, self.n_updates_, self.n_seen_ = np.add(totals, (mistakes, updates, len(data.live))).tolist()

    # Predicting

    predict_proba = NotOffered(PROBABILITIES)
    predict_log_proba = NotOffered(PROBABILITIES)

    def decision_function(self, X: MatrixLike) -> NDArray:
        """Compute the scores of rows.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.

        Returns
        -------
        array (rows,) or (rows, classes)
            One score for two classes, ≥ 0 for the second; else one for each class, of which the highest wins. With
            `keep="vote"` they are mean votes, with `multiclass="ovo"` the number of pairs won.

        Examples
        --------
        >>> from rosenblatt import Perceptron
        >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0]], ["spam", "spam", "ham"])
        >>> model.decision_function([[1.0, 1.0], [-2.0, 0.0]]).tolist()
        [4.0, -3.0]
        """
        check_is_fitted(self)
        return self._model.decision(self._read_to_predict(X))

    def predict(self, X: MatrixLike) -> NDArray:
        """Predict the class of each row.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.

        Returns
        -------
        array (rows,)
            The classes. A score of exactly 0 is the second of two classes; of equal scores the first class wins.

        Examples
        --------
        >>> from rosenblatt import Perceptron
        >>> model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0]], ["spam", "spam", "ham"])
        >>> model.predict([[1.0, 1.0], [-2.0, 0.0]]).tolist()
        ['spam', 'ham']
        """
        numbers = self._predict_numbers(X)
        return self.classes_[numbers]

    def _predict_numbers(self, X: MatrixLike) -> NDArray:
        """The number of the class that is predicted for each row."""
        return winner(self.decision_function(X))

    def _bound_for(self, classes: int | None, radius: float, bound: Callable[[float], float]) -> float:
        """The bound for so many classes, by default those of the last fit, where `bound(radius)` is that of two.

        Each class against the rest, and each pair of classes, is a problem of two. A joint decision is one with rows that
        are √2 times as long, x for the label and −x for the rival (Kesler: see `theory.bounds.multiclass`); if the step is
        shared among several rivals, no bound is known.
        """
        if classes is None:
            classes = len(self.classes_) if self.__sklearn_is_fitted__() else 2
        kind = self._problems[self.multiclass] if classes > 2 else Binary
        if kind is Spread:
            return math.inf
        count = {OneVsRest: classes, OneVsOne: classes * (classes - 1) // 2}.get(kind, 1)
        return count * bound(math.sqrt(2) * radius if kind is Joint else radius)

    # Where rows lie: learners that can use a GPU override these

    def _read_to_learn(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray]:
        """(X, y) as `_read` returns them, or X on the device that learns from it."""
        return self._read(X, y, reset)

    def _read_to_predict(self, X: Any) -> Any:
        """X as `read_rows` returns it, or on the device that it lies on."""
        return read_rows(self, X)

    def _to_device(self, X: AnyMatrix) -> AnyMatrix:
        """X on the device that learns from it."""
        return X

    def _winners(self, model: Any, X: AnyMatrix) -> NDArray:
        """The number of the class that a model predicts for each row."""
        return winner(model.decision(X))

    # Steps of learning

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray]:
        names_classes = targets.need_no_validation(y, X, "biuUf") and (y.dtype.kind != "f" or targets.are_whole_numbers(y))
        if names_classes and accept_unchecked(self, X, reset):
            return X, y
        return self._validate(X, y, reset)

    def _validate(self, X: Any, y: Any, reset: bool, **options: object) -> tuple[Any, NDArray]:
        y = numpy_array(y, "y")
        targets.refuse_several(y, type(self).__name__)
        targets.refuse_mixed(y)
        X, y = read_examples(self, X, y, reset, ensure_all_finite=False, **options)
        with invalid_data():
            return X, targets.checked_labels(y)

    def _class_weights(
        self, classes: NDArray, labels: NDArray, live: NDArray, counts: NDArray | None = None
    ) -> NDArray | None:
        """The weight of each row's class, None when all are 1; `counts`, of a stream, are brought up to date."""
        if self.class_weight == "balanced":
            if counts is None:
                return targets.balance(labels, live)
            return targets.running_balance(labels, live, counts)
        if counts is not None:
            counts += np.bincount(labels[live], minlength=len(classes))
        if self.class_weight is None:
            return None
        strange = [name for name in self.class_weight if name not in set(classes.tolist())]
        if strange and self.unknown_class != "grow":
            raise InvalidParameter(
                "class_weight", self.class_weight, f"a dictionary whose keys are among the classes {classes.tolist()}"
            )
        return targets.weights_of_classes(self.class_weight, classes)[labels]

    def _live(self, live: NDArray, by_class: NDArray | None, classes: int) -> NDArray:
        """The rows whose class has a weight; one-vs-rest also learns from the others, as what its classes are not."""
        if by_class is None or (self.multiclass == "ovr" and classes > 2):
            return live
        return live[by_class[live] > 0]

    def _known_classes(self, classes: ArrayLike | None, y: NDArray) -> NDArray:
        """The classes known before this call of `partial_fit`."""
        if self.__sklearn_is_fitted__():
            if classes is not None and not np.array_equal(np.unique(classes), np.sort(self.classes_)):
                first = f"the same as on the first call to partial_fit, {self.classes_.tolist()}"
                raise InvalidParameter("classes", np.unique(classes).tolist(), first)
            return self.classes_
        if classes is not None:
            return np.unique(classes)
        if self.unknown_class == "grow":
            return y[:0]
        raise InvalidData(
            "classes must be passed on the first call to partial_fit, as a list of every class there will be",
            settings=self._growing(),
        )

    def _growing(self) -> dict[str, Any]:
        """The advice to let classes arrive, of learners that can."""
        return {"unknown_class": "grow"} if "unknown_class" in self.get_params(deep=False) else {}

    def _stages(self, y: NDArray, known: NDArray, strange: NDArray) -> tuple[NDArray, list[tuple[int, int]]]:
        """(classes, [(position, how many of them are known from there on), ...]) where the labels at `strange` are new."""
        if self.unknown_class != "grow":
            raise UnknownLabel(
                y[strange[0]].item(),
                known.tolist(),
                hint="name it in `classes` on the first call to partial_fit",
                settings=self._growing(),
            )
        if len(known) and known.dtype.kind != y.dtype.kind and "U" in (known.dtype.kind, y.dtype.kind):
            raise InvalidDataType(
                f"the classes so far are {known.dtype} and those of y {y.dtype}", hint="use labels of one type"
            )
        new, first = targets.arrivals(y[strange])
        stages = [(int(strange[at]), len(known) + i) for i, at in enumerate(first, 1)]
        if stages[0][0] > 0:
            stages.insert(0, (0, len(known)))
        return (np.concatenate([known, new]) if len(known) else new), stages

    def _learn_stages(
        self, plan: Plan, model: Any, data: LabelledRows, examples: Examples, stages: list[tuple[int, int]], visit: Visit
    ) -> tuple[int, int]:
        """One pass in the order given, growing the model where a new class arrives; (mistakes, updates)."""
        mistakes, updates = 0, 0
        ends = [start for start, _ in stages[1:]] + [len(data.live)]
        for (start, classes), end in zip(stages, ends, strict=True):
            if classes > model.problem.classes:
                model.grow(plan.problem(classes))
                model.prepare(examples.rows)
            order = data.live[start:end]
            learner = self._make_trainer(plan, model, data.X, examples, plan.visits_in_order(order))
            done = visit(learner, order)
            self._store(model, data.X, learner)
            mistakes += done.mistakes
            updates += done.updates
        return mistakes, updates

    def _validation(
        self,
        plan: Plan,
        model: Any,
        X: Any,
        labels: NDArray,
        live: NDArray,
        data: ValidationData,
        rng: np.random.Generator,
    ) -> tuple[NDArray, Callable[[], float] | None]:
        """(rows to learn from, what tells the validation error), from rows given or held out."""
        X_val, y_val, classes = data
        if (X_val is None) != (y_val is None):
            raise InvalidData("X_val and y_val must be passed together, or neither of them")
        if X_val is not None and y_val is not None:
            if self.keep == "vote":
                raise UnsupportedOperation(
                    "keep='vote' cannot be validated on X_val: every epoch would count all votes again",
                    settings={"keep": "average"},
                )
            X_val = self._read_to_predict(X_val)
            y_val = self._validation_labels(y_val, X_val.shape[0], classes)
        elif self.early_stopping:
            live, held = plan.hold_out(live, labels[live], rng)
            X_val, y_val = X[held], labels[held]
        else:
            return live, None
        return live, lambda: float(np.mean(self._winners(model, X_val) != y_val))

    def _validation_labels(self, y: ArrayLike, rows: int, classes: NDArray) -> NDArray:
        """The class numbers of labels to validate with, one for each row."""
        y = np.asarray(numpy_array(y, "y_val"))
        if y.shape != (rows,):
            raise InvalidData(f"y_val must have one label for each of the {rows} rows of X_val; its shape is {y.shape}")
        numbers = targets.numbers(y, classes)
        if (numbers < 0).any():
            row = int(np.flatnonzero(numbers < 0)[0])
            raise UnknownLabel(y[row].item(), classes.tolist(), row=row, hint="y_val must have labels of y only")
        return numbers

    def _set(self, model: Any, classes: NDArray) -> None:
        self._model = model
        self.classes_ = classes

    def _possible_problems(self) -> list[Problem]:
        """The problems that a model of these classes may solve."""
        classes = len(self.classes_)
        if classes <= 2:
            return [Binary(2) if classes == 2 else Joint(classes)]
        return [kind(classes) for kind in self._problems.values()]
