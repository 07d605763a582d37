"""What all classifiers have in common: labels and classes, streams of them, and predicting."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.model import Init
from rosenblatt.engine.problems import Binary, Joint, OneVsOne, OneVsRest, Problem, Spread, winner
from rosenblatt.engine.rows import AnyMatrix, Examples, MatrixLike, Rows, as_rows, numpy_array
from rosenblatt.engine.train import NumericFailure, RowTrainer, learn_once
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, UnknownLabel, UnsupportedOperation
from rosenblatt.estimators import targets
from rosenblatt.estimators.base import (
    PROBABILITIES,
    Estimator,
    NotOffered,
    ValidationData,
    Visit,
    all_or_nothing,
    unchanged_on_error,
)
from rosenblatt.estimators.inputs import accept_unchecked, invalid_data, read_examples, read_rows
from rosenblatt.estimators.interface import ClassifierMixin, check_is_fitted
from rosenblatt.estimators.plan import Plan
from rosenblatt.estimators.scaling import warn_unscaled


class LabelledRows(NamedTuple):
    """Rows of a stream and what is known of them."""

    X: AnyMatrix
    rows: Rows
    labels: NDArray  # (rows,) class numbers
    weight: NDArray | None  # (rows,)
    live: NDArray  # the rows that count


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
