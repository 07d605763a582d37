"""The scikit-learn estimators: parameters, documentation, delegation. The arithmetic is elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, validate_data

from rosenblatt import targets
from rosenblatt.callbacks import CallbackSupportMixin, Hooks, with_callbacks
from rosenblatt.model import Model, fresh
from rosenblatt.plan import Plan
from rosenblatt.problems import Binary, OneVsOne, winner
from rosenblatt.progress import Bar
from rosenblatt.rows import Examples, Rows, as_rows, finite
from rosenblatt.train import Broken, Epoch, Log, Trainer, train
from rosenblatt.weights import Weights

_READ: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}


class Explanation(NamedTuple):
    """Why a row gets its score: the score is the sum (`math.fsum`) of the intercept and the contributions."""

    label: Any  # the class that a positive contribution speaks for
    score: float
    intercept: float
    contributions: dict[Any, float]  # by feature name, or number; largest first, zero values left out


class Perceptron(ClassifierMixin, CallbackSupportMixin, BaseEstimator):
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
    ) -> Perceptron:
        """Learn from X (rows, features) and y (rows,) until one of the reasons to stop; the estimator itself.

        `coef_init` and `intercept_init`, of the shapes of `coef_` and `intercept_`, are where the weights start. Rows of
        weight 0 are not there. An error leaves the estimator as it was; Ctrl-C finishes the epoch, stores the model and
        then interrupts.
        """
        with self._unchanged_on_error():
            plan = self._checked()
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
            model = self._model_to_fit(plan, rows, X.shape[1], classes, (coef_init, intercept_init))
            live, error = self._validation(model, X, labels, live, (X_val, y_val, classes), rng)
            trainer = Trainer(
                plan.examples(rows, labels, targets.paired(weight, by_class, len(y))),
                model.weights,
                model.problem,
                plan.rule(),
                plan.visits(live, rows, rng),
                Log() if self.keep == "vote" else None,
                model.pocket,
                lambda w: model.errors(X[live], labels[live], w),
            )
            seen, updates = int(model.weights.clock[0]), int(model.weights.tally.sum())
            hooks = Hooks(self, X, y, self.max_iter, lambda: {"_model": model.copy(), "classes_": classes})
            history, reason = self._train(plan, trainer, X, error, hooks)
            if trainer.log is not None:
                model.remember(X, trainer.log.moves())
            self._set(model, classes)
            self.class_count_ = np.bincount(labels[live], minlength=len(classes))
            self.history_, self.stop_reason_, self.n_iter_ = history, reason, len(history)
            self.n_mistakes_ = sum(epoch.mistakes for epoch in history)
            self.n_updates_ = int(model.weights.tally.sum()) - updates
            self.n_seen_ = int(model.weights.clock[0]) - seen
            hooks.done()
        if reason == "interrupted":
            raise KeyboardInterrupt
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Perceptron:
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
        first = not self.__sklearn_is_fitted__()
        with self._unchanged_on_error():
            plan = self._checked()
            X, y = self._read(X, y, reset=first)
            rows = as_rows(X)
            self._check_finite(X, rows)
            weight = targets.sample_weights(sample_weight, len(y))
            live = targets.live_rows(weight, len(y))
            known, stages = self._stages(y[live], self._declared(classes, y))
            labels = targets.numbers(y, known)
            counts = np.zeros(len(known), np.int64)
            before = getattr(self, "class_count_", counts[:0])
            counts[: len(before)] = before
            by_class = self._class_weights(known, labels, live, counts)
            weight = targets.paired(weight, by_class, len(y))
            model = self._model_to_stream(plan, rows, X.shape[1], stages[0][1])
            totals = (0, 0, 0) if first else (self.n_mistakes_, self.n_updates_, self.n_seen_)
        mistakes, updates = self._learn(plan, model, X, plan.examples(rows, labels, weight), live, stages)
        self._set(model, known)
        self.class_count_ = counts
        if first:
            self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
        self.n_mistakes_, self.n_updates_, self.n_seen_ = np.add(totals, (mistakes, updates, len(live))).tolist()
        return self

    # Predicting

    def decision_function(self, X: Any) -> NDArray:
        """How each row scores: one value for two classes, ≥ 0 for the second; else one a class, the highest wins.

        With `keep="vote"` they are mean votes, with `multiclass="ovo"` the number of pairs won.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_READ)
        return self._model.decision(X)

    def predict(self, X: Any) -> NDArray:
        """The class of each row. A score of exactly 0 is the second of two classes; equal scores name the first class."""
        decision = self.decision_function(X)
        return self.classes_[winner(decision)]

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
        x = validate_data(self, x, reset=False, **_READ)
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
        """The most updates that two classes can cause from weights of zero, if no row is longer than `radius` and some
        unit vector separates them with this `margin`, both measured with the constant feature.

        Weights of examples do not enter. With `batch="full"` and summed moves there is no bound without the number of
        rows: infinity.
        """
        if self.batch == "full" and self.reduction == "sum":
            return math.inf
        return (
            Plan(self.get_params(deep=False))
            .rule()
            .bound(radius, margin, 1 if self.reduction == "mean" else int(self.batch))
        )

    @property
    def coef_(self) -> NDArray:
        return self._fitted().kept()[0]

    @property
    def intercept_(self) -> NDArray:
        return self._fitted().kept()[1]

    @property
    def last_coef_(self) -> NDArray:
        return self._fitted().last()[0]

    @property
    def last_intercept_(self) -> NDArray:
        return self._fitted().last()[1]

    @property
    def weights_(self) -> Weights:
        return self._fitted().weights

    # scikit-learn's questions

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fitted(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit or partial_fit first")
        return self._model

    def _checked(self) -> Plan:
        plan = Plan(self.get_params(deep=False))
        plan.check()
        return plan

    # Steps of learning

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray]:
        targets.refuse_mixed(y)
        X, y = validate_data(self, X, y, reset=reset, **(_READ | {"ensure_all_finite": False}))
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

    def _model_to_fit(self, plan: Plan, rows: Rows, features: int, classes: NDArray, init: tuple[Any, Any]) -> Model:
        if self.warm_start and self.__sklearn_is_fitted__():
            if not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start=True goes on with the classes {self.classes_.tolist()}, but y has {classes.tolist()}"
                )
            self._check_unchanged(plan)
            model = self._model.copy()
            model.suit(rows)
            return model
        return fresh(plan.problem(len(classes)), rows, features, plan.constant, self.keep, init)

    def _model_to_stream(self, plan: Plan, rows: Rows, features: int, classes: int) -> Model:
        if not self.__sklearn_is_fitted__():
            return fresh(plan.problem(classes), rows, features, plan.constant, self.keep)
        self._check_unchanged(plan)
        self._model.suit(rows)
        return self._model

    def _check_unchanged(self, plan: Plan) -> None:
        """Refuse to go on with a model that was begun with other parameters than those of now."""
        model = self._model
        for names, then, now in (
            ("keep", model.keep, self.keep),
            ("fit_intercept or intercept_scaling", model.constant, plan.constant),
            ("multiclass", type(model.problem), type(plan.problem(model.problem.classes))),
        ):
            if then != now:
                raise ValueError(f"{names} has changed since this model began to learn; fit a new one, or change it back")

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
            "classes must be passed on the first call to partial_fit, as a list of every class there will be; or set "
            "unknown_class='grow'"
        )

    def _stages(self, y: NDArray, known: NDArray) -> tuple[NDArray, list[tuple[int, int]]]:
        """(classes, [(position, how many of them are known from there on), ...])."""
        strange = np.flatnonzero(targets.numbers(y, known) < 0)
        if len(strange) == 0:
            return known, [(0, len(known))]
        if self.unknown_class != "grow":
            raise ValueError(
                f"y has a class {y[strange[0]].item()!r} that is none of {known.tolist()}; name it in `classes` on the "
                "first call, or set unknown_class='grow'"
            )
        if len(known) and known.dtype.kind != y.dtype.kind and "U" in (known.dtype.kind, y.dtype.kind):
            raise TypeError(f"the classes so far are {known.dtype}, those of y {y.dtype}; use labels of one type")
        new, first = targets.arrivals(y[strange])
        stages = [(int(strange[at]), len(known) + i) for i, at in enumerate(first, 1)]
        if stages[0][0] > 0:
            stages.insert(0, (0, len(known)))
        return (np.concatenate([known, new]) if len(known) else new), stages

    def _learn(
        self, plan: Plan, model: Model, X: Any, examples: Examples, live: NDArray, stages: list[tuple[int, int]]
    ) -> tuple[int, int]:
        """One pass in the order given, growing the model where a new class arrives; (mistakes, updates)."""
        mistakes, updates = 0, 0
        ends = [start for start, _ in stages[1:]] + [len(live)]
        for (start, classes), end in zip(stages, ends, strict=True):
            if classes > model.problem.classes:
                model.grow(plan.problem(classes))
                model.suit(examples.rows)
            order = live[start:end]
            log = Log() if self.keep == "vote" else None
            trainer = Trainer(examples, model.weights, model.problem, plan.rule(), plan.visits_in_order(order), log)
            try:
                done, _ = trainer.epoch(order)
            except Broken as broken:
                raise self._not_finite(X, broken) from None
            if log is not None:
                model.remember(X, log.moves())
            mistakes += done.mistakes
            updates += done.updates
        return mistakes, updates

    def _validation(
        self, model: Model, X: Any, labels: NDArray, live: NDArray, given: tuple[Any, Any, NDArray], rng: Any
    ) -> tuple[NDArray, Callable[[], float] | None]:
        """(rows to learn from, what tells the validation error), from rows given or held out."""
        X_val, y_val, classes = given
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: pass both, or neither")
        if X_val is not None:
            if self.keep == "vote":
                raise ValueError("keep='vote' and X_val do not go together: every epoch would count all votes anew")
            X_val = validate_data(self, X_val, reset=False, **_READ)
            y_val = targets.numbers(np.asarray(y_val), classes)
        elif self.early_stopping:
            train, held = train_test_split(
                live, test_size=self.validation_fraction, stratify=labels[live], random_state=int(rng.integers(2**31))
            )
            live, X_val, y_val = np.sort(train), X[held], labels[held]
        else:
            return live, None
        return live, lambda: float(np.mean(winner(model.decision(X_val)) != y_val))

    def _train(
        self, plan: Plan, trainer: Trainer, X: Any, error: Callable[[], float] | None, hooks: Hooks
    ) -> tuple[list[Epoch], str]:
        bar = Bar(self.max_iter) if self.verbose else None

        def watch(epoch: Epoch) -> bool:
            if bar is not None:
                bar(epoch)
            return hooks.epoch()

        try:
            history, reason = train(trainer, plan.limits(), error, watch)
        except Broken as broken:
            raise self._not_finite(X, broken) from None
        if bar is not None:
            bar.done(reason)
        return history, reason

    def _check_finite(self, X: Any, rows: Rows) -> None:
        if not finite(rows):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")

    def _not_finite(self, X: Any, broken: Broken) -> ValueError:
        """The error for a score that is no number: NaN or infinity in X, or else an overflow."""
        try:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        except ValueError as error:
            return error
        return ValueError(
            f"the weights or scores overflowed at row {broken.row}: the values of X are too large for {X.dtype}; "
            "scale them down, or use float64"
        )

    def _set(self, model: Model, classes: NDArray) -> None:
        self._model = model
        self.classes_ = classes

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Take back every attribute that was set, but those by which callbacks are torn down afterwards."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            hooks = {name: value for name, value in self.__dict__.items() if "callback" in name}
            self.__dict__.clear()
            self.__dict__.update(before | hooks)
            raise
