"""What all estimators of this library have in common: epochs, counting, undoing an attempt that fails; and what all
classifiers have: reading labels and streams of them. What a learner is it says in three hooks: what it starts from, what
learns, and what predicts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, validate_data

from rosenblatt.engine.problems import Binary, Joint, Problem, winner
from rosenblatt.engine.rows import Examples, Rows, as_rows, finite
from rosenblatt.engine.train import Broken, Epoch, Learner, Limits, Visits, train
from rosenblatt.errors import NumericOverflow
from rosenblatt.estimators import targets
from rosenblatt.estimators.callbacks import CallbackSupportMixin, Hooks
from rosenblatt.estimators.parameters import SHARED, Flag, parameter, with_parameters
from rosenblatt.estimators.plan import PROBLEMS, Plan
from rosenblatt.estimators.progress import Bar
from rosenblatt.modelfile.saving import EstimatorSaveLoadMixin

READ: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Take back every attribute that was set, but those by which callbacks are torn down afterwards."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        hooks = {name: value for name, value in estimator.__dict__.items() if "callback" in name}
        estimator.__dict__.clear()
        estimator.__dict__.update(before | hooks)
        raise


class Learned(Protocol):
    """What has been learned: the problem it solves, its counts, and how it predicts."""

    problem: Problem

    @property
    def seen(self) -> int:
        """Examples visited."""

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""

    def copy(self) -> Any:
        """The same, sharing nothing that learning changes."""

    def suit(self, rows: Rows) -> None:
        """Get ready to learn from these rows."""

    def grow(self, larger: Problem) -> None:
        """Go over to a problem with more classes."""

    def decision(self, X: Any) -> NDArray:
        """The decision values of rows: see `problems.decide`."""


class Estimator(EstimatorSaveLoadMixin, CallbackSupportMixin, BaseEstimator):
    """A learner with the manners of scikit-learn.

    The class attributes are the values of those parameters that a learner does not offer; `_own` says what its
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
    random_state: Any = 0
    verbose: int = 0

    _model: Any  # what has been learned, as `Learned`
    n_features_in_: int

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    _problems: ClassVar[Mapping[str, Any]] = PROBLEMS
    _exact: ClassVar[bool] = True  # whether integers give the same bits in every layout: see rosenblatt.testing.laws

    _widens: ClassVar[bool] = False  # whether `widen` lets it meet columns that it did not begin with

    # What a learner is

    @abstractmethod
    def _fresh(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Any) -> Any:
        """What has been learned before the first example, as `Learned`; `outputs` counts the classes or the targets, and
        `init` is where `fit` was asked to start."""

    def _keep(self, model: Any, X: Any, learner: Any) -> None:
        """Store in the model what a stretch of learning left in the learner."""

    # scikit-learn's questions

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fitted(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit or partial_fit first")
        return self._model

    # Columns that come later

    def widen(self, features: int) -> Any:
        """Expect rows of so many columns from now on; the estimator itself. What it knows is what it would know if the new
        columns had been there from the start and had been zero. Fewer columns than before are allowed where those left out
        have never been learned from."""
        check_is_fitted(self)
        if isinstance(features, bool) or not isinstance(features, Integral) or features < 1:
            raise ValueError(f"features must be a number of columns, at least 1; got {features!r}")
        if hasattr(self, "feature_names_in_"):
            raise ValueError("this model learned from columns with names, and further ones would have none; fit it anew")
        self._model = self._widened(self._model, int(features))
        self.n_features_in_ = int(features)
        return self

    def _widened(self, model: Any, features: int) -> Any:
        """The model for rows of so many columns."""
        raise TypeError(
            f"{type(self).__name__} cannot take other columns than it began with: how it learns depends on how many there "
            "are; fit it with all of them"
        )

    # Steps of learning

    def _plan(self) -> Plan:
        names = (*SHARED, *self._own)
        return Plan({name: getattr(self, name) for name in names}, self._own, self._problems)

    def _fixed(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        """(parameters, what they were when the model began, what they are now) of those that must not change."""
        return [("fit_intercept or intercept_scaling", self._model.constant, plan.constant)]

    def _check_unchanged(self, plan: Plan) -> None:
        """Refuse to go on with a model that was begun with other parameters than those of now."""
        for names, then, now in self._fixed(plan):
            if not np.array_equal(then, now):
                raise ValueError(f"{names} has changed since this model began to learn; fit a new one, or change it back")

    def _model_to_fit(self, plan: Plan, rows: Rows, features: int, outputs: int, init: Any) -> Any:
        if self.warm_start and self.__sklearn_is_fitted__():
            self._resumable()
            self._check_unchanged(plan)
            model = self._model.copy()
            model.suit(rows)
            return model
        return self._fresh(plan, rows, features, outputs, init)

    def _model_to_stream(self, plan: Plan, rows: Rows, features: int, outputs: int) -> Any:
        if not self.__sklearn_is_fitted__():
            return self._fresh(plan, rows, features, outputs, None)
        self._resumable()
        self._check_unchanged(plan)
        self._model.suit(rows)
        return self._model

    def _run(
        self,
        plan: Plan,
        model: Any,
        learner: Learner,
        data: tuple[Any, Any],
        error: Callable[[], float] | None,
        learned: Mapping[str, Any],
    ) -> str:
        """Learn epoch by epoch and store what came of it, with the further attributes `learned`; why it stopped."""
        X, y = data
        seen, updates = model.seen, model.updates
        hooks = Hooks(self, X, y, self.max_iter, lambda: {"_model": model.copy(), **learned})
        history, reason = self._train(plan, learner, X, error, hooks)
        self._keep(model, X, learner)
        self._model = model
        self.__dict__.update(learned)
        self.history_, self.stop_reason_, self.n_iter_ = history, reason, len(history)
        self.n_updates_ = model.updates - updates
        self.n_seen_ = model.seen - seen
        hooks.done()
        return reason

    def _train(
        self, plan: Plan, learner: Learner, X: Any, error: Callable[[], float] | None, hooks: Hooks
    ) -> tuple[list[Epoch], str]:
        bar = Bar(self.max_iter) if self.verbose else None

        def watch(epoch: Epoch) -> bool:
            if bar is not None:
                bar(epoch)
            return hooks.epoch()

        try:
            history, reason = train(learner, self._limits(plan, learner), error, watch)
        except Broken as broken:
            raise self._not_finite(X, broken) from None
        if bar is not None:
            bar.done(reason)
        return history, reason

    def _limits(self, plan: Plan, learner: Any) -> Limits:
        """When to stop."""
        return plan.limits()

    def _check_finite(self, X: Any, rows: Rows) -> None:
        if not finite(rows):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")

    def _not_finite(self, X: Any, broken: Broken) -> ValueError:
        """The error for a score that is no number: NaN or infinity in X, or else an overflow."""
        try:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        except ValueError as error:
            return error
        wider = ", or use float64" if X.dtype == np.float32 else ""
        return NumericOverflow(
            f"the weights or scores overflowed at row {broken.row}: the values of X, or the weights of examples, are too "
            f"large for {X.dtype}",
            hint=f"scale them down{wider}",
            row=broken.row,
        )


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
        return "shuffle" if self.shuffle else "cyclic"

    @property
    def keep(self) -> str:  # type: ignore[override]
        """Which weights predict, in the word that other learners take."""
        return "average" if self.average else "last"


class Classifier(ClassifierMixin, Estimator):
    """A classifier that learns from its mistakes, in epochs or from a stream."""

    # What a learner is

    @abstractmethod
    def _learner(self, plan: Plan, model: Any, X: Any, examples: Examples, visits: Visits) -> Learner:
        """What learns from these examples into the model."""

    # Learning

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, init: Any = None, validation: tuple[Any, Any] = (None, None)
    ) -> Any:
        """Learn in epochs until one of the reasons to stop; an error leaves the estimator as it was."""
        with unchanged_on_error(self):
            plan = self._plan()
            X, y = self._read(X, y, reset=True)
            weight = targets.sample_weights(sample_weight, len(y))
            live = targets.live_rows(weight, len(y))
            classes = targets.distinct(y if weight is None else y[live])
            if len(classes) < 2:
                raise ValueError(f"y must name at least two classes; it has one class only: {classes[0].item()!r}")
            labels = targets.numbers(y, classes)
            by_class = self._class_weights(classes, labels, live)
            live = self._live(live, by_class, len(classes))
            rng = plan.rng()
            rows = as_rows(X)
            if self.order not in ("cyclic", "shuffle") or self.early_stopping or self.max_updates is not None:
                self._check_finite(X, rows)  # a run that visits every row notices by itself, without another pass
            if self.warm_start and self.__sklearn_is_fitted__() and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start=True goes on with the classes {self.classes_.tolist()}, but y has {classes.tolist()}"
                )
            model = self._model_to_fit(plan, rows, X.shape[1], len(classes), init)
            live, error = self._validation(model, X, labels, live, (*validation, classes), rng)
            examples = Examples(rows, labels, targets.paired(weight, by_class, len(y)), plan.constant)
            learner = self._learner(plan, model, X, examples, plan.visits(live, rows, rng))
            reason = self._run(plan, model, learner, (X, y), error, {"classes_": classes})
            self.class_count_ = np.bincount(labels[live], minlength=len(classes))
            self.n_mistakes_ = sum(epoch.mistakes for epoch in self.history_)
        if reason == "interrupted":
            raise KeyboardInterrupt
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from these rows, once, in the order given."""
        first = not self.__sklearn_is_fitted__()
        with unchanged_on_error(self):
            plan = self._plan()
            X, y = self._read(X, y, reset=first)
            rows = as_rows(X)
            self._check_finite(X, rows)
            weight = targets.sample_weights(sample_weight, len(y))
            live = targets.live_rows(weight, len(y))
            known, stages = self._stages(y[live], self._declared(classes, y))
            self._stream(plan, X, rows, (targets.numbers(y, known), weight, live), known, stages)
        return self

    def _partial_fit_numbers(self, X: Any, labels: NDArray, classes: int) -> Any:
        """The same for rows that need no looking at, because whoever made them has seen to it: X is CSR of finite float64
        with sorted indices, and the labels are the numbers of this many classes."""
        with unchanged_on_error(self):
            self.n_features_in_ = X.shape[1]
            live = np.arange(len(labels))
            self._stream(self._plan(), X, as_rows(X), (labels, None, live), np.arange(classes), [(0, classes)])
        return self

    def _stream(self, plan: Plan, X: Any, rows: Rows, told: tuple, known: NDArray, stages: list[tuple[int, int]]) -> None:
        """Learn from rows with what is `told` of them: class numbers, weights or None, and which of them count."""
        first = not self.__sklearn_is_fitted__()
        labels, weight, live = told
        counts = np.zeros(len(known), np.int64)
        before = getattr(self, "class_count_", counts[:0])
        counts[: len(before)] = before
        by_class = self._class_weights(known, labels, live, counts)
        examples = Examples(rows, labels, targets.paired(weight, by_class, len(labels)), plan.constant)
        model = self._model_to_stream(plan, rows, X.shape[1], stages[0][1])
        totals = (0, 0, 0) if first else (self.n_mistakes_, self.n_updates_, self.n_seen_)
        mistakes, updates = self._learn(plan, model, X, examples, live, stages)
        self._set(model, known)
        self.class_count_ = counts
        if first:
            self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
        self.n_mistakes_, self.n_updates_, self.n_seen_ = np.add(totals, (mistakes, updates, len(live))).tolist()

    # Predicting

    def decision_function(self, X: Any) -> NDArray:
        """How each row scores: one value for two classes, ≥ 0 for the second; else one a class, the highest wins.

        With `keep="vote"` they are mean votes, with `multiclass="ovo"` the number of pairs won.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **READ)
        return self._model.decision(X)

    def predict(self, X: Any) -> NDArray:
        """The class of each row. A score of exactly 0 is the second of two classes; equal scores name the first class."""
        decision = self.decision_function(X)
        return self.classes_[winner(decision)]

    # Steps of learning

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray]:
        targets.refuse_mixed(y)
        X, y = validate_data(self, X, y, reset=reset, **(READ | {"ensure_all_finite": False}))
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
            raise ValueError(f"class_weight names {strange[0]!r}, which is none of the classes {classes.tolist()}")
        return targets.weights_of_classes(self.class_weight, classes)[labels]

    def _live(self, live: NDArray, by_class: NDArray | None, classes: int) -> NDArray:
        """The rows whose class has a weight; one-vs-rest also learns from the others, as what its classes are not."""
        if by_class is None or (self.multiclass == "ovr" and classes > 2):
            return live
        return live[by_class[live] > 0]

    def _declared(self, classes: Any, y: NDArray) -> NDArray:
        """The classes known before this call of `partial_fit`."""
        if self.__sklearn_is_fitted__():
            if classes is not None and not np.array_equal(np.unique(classes), np.sort(self.classes_)):
                raise ValueError(
                    f"classes={np.unique(classes).tolist()} is not the same as on the first call to partial_fit: "
                    f"{self.classes_.tolist()}"
                )
            return self.classes_
        if classes is not None:
            return np.unique(classes)
        if self.unknown_class == "grow":
            return y[:0]
        raise ValueError(
            "classes must be passed on the first call to partial_fit, as a list of every class there will be"
            + self._growing()
        )

    def _growing(self) -> str:
        """The advice to let classes arrive, of learners that can."""
        return "; or set unknown_class='grow'" if "unknown_class" in self.get_params(deep=False) else ""

    def _stages(self, y: NDArray, known: NDArray) -> tuple[NDArray, list[tuple[int, int]]]:
        """(classes, [(position, how many of them are known from there on), ...])."""
        strange = np.flatnonzero(targets.numbers(y, known) < 0)
        if len(strange) == 0:
            return known, [(0, len(known))]
        if self.unknown_class != "grow":
            raise ValueError(
                f"y has a class {y[strange[0]].item()!r} that is none of {known.tolist()}; name it in `classes` on the "
                f"first call{self._growing()}"
            )
        if len(known) and known.dtype.kind != y.dtype.kind and "U" in (known.dtype.kind, y.dtype.kind):
            raise TypeError(f"the classes so far are {known.dtype}, those of y {y.dtype}; use labels of one type")
        new, first = targets.arrivals(y[strange])
        stages = [(int(strange[at]), len(known) + i) for i, at in enumerate(first, 1)]
        if stages[0][0] > 0:
            stages.insert(0, (0, len(known)))
        return (np.concatenate([known, new]) if len(known) else new), stages

    def _learn(
        self, plan: Plan, model: Any, X: Any, examples: Examples, live: NDArray, stages: list[tuple[int, int]]
    ) -> tuple[int, int]:
        """One pass in the order given, growing the model where a new class arrives; (mistakes, updates)."""
        mistakes, updates = 0, 0
        ends = [start for start, _ in stages[1:]] + [len(live)]
        for (start, classes), end in zip(stages, ends, strict=True):
            if classes > model.problem.classes:
                model.grow(plan.problem(classes))
                model.suit(examples.rows)
            order = live[start:end]
            learner = self._learner(plan, model, X, examples, plan.visits_in_order(order))
            try:
                done, _ = learner.epoch(order)
            except Broken as broken:
                raise self._not_finite(X, broken) from None
            self._keep(model, X, learner)
            mistakes += done.mistakes
            updates += done.updates
        return mistakes, updates

    def _validation(
        self, model: Any, X: Any, labels: NDArray, live: NDArray, given: tuple[Any, Any, NDArray], rng: Any
    ) -> tuple[NDArray, Callable[[], float] | None]:
        """(rows to learn from, what tells the validation error), from rows given or held out."""
        X_val, y_val, classes = given
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: pass both, or neither")
        if X_val is not None:
            if self.keep == "vote":
                raise ValueError("keep='vote' and X_val do not go together: every epoch would count all votes anew")
            X_val = validate_data(self, X_val, reset=False, **READ)
            y_val = targets.numbers(np.asarray(y_val), classes)
        elif self.early_stopping:
            train, held = train_test_split(
                live, test_size=self.validation_fraction, stratify=labels[live], random_state=int(rng.integers(2**31))
            )
            live, X_val, y_val = np.sort(train), X[held], labels[held]
        else:
            return live, None
        return live, lambda: float(np.mean(winner(model.decision(X_val)) != y_val))

    def _set(self, model: Any, classes: NDArray) -> None:
        self._model = model
        self.classes_ = classes

    def _expected(self) -> list[Problem]:
        """The problems that a model of these classes may solve."""
        classes = len(self.classes_)
        if classes <= 2:
            return [Binary(2) if classes == 2 else Joint(classes)]
        return [kind(classes) for kind in self._problems.values()]
