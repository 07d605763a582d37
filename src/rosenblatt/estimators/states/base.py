"""Learners that need more than a margin and a step keep a state for each weight vector: a scale, a norm, a second matrix.
Such a learner is a NamedTuple of arrays and two bodies, `score` and `learn`; many classes are learned one against the rest,
all in one pass.

By convention the arrays of a state have the weight vectors as their first axis and are float64, `tally` (vectors,) int64
counts the updates of each and `clock` (1,) int64 the examples seen. Learning from a row changes what belongs to its own
features only, unless `changes(rows, constant)` says otherwise.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine import problems
from rosenblatt.engine.jit import generic, is_number, jit
from rosenblatt.engine.loop import Progress, weight_of
from rosenblatt.engine.model import Init, problem_of
from rosenblatt.engine.problems import Binary, Problem, columns, decide
from rosenblatt.engine.rows import Examples, Matrix, MatrixLike, Rows, count, fetch, take, touched_columns
from rosenblatt.engine.train import NO_LIMIT, NumericFailure
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import backup, writable
from rosenblatt.errors import DamagedModel, InvalidData, UnsupportedOperation
from rosenblatt.estimators import parameters
from rosenblatt.estimators.base import DENSE_WEIGHTS, NotOffered
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.classifier import Classifier
from rosenblatt.estimators.parameters import SHARED
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import decode_parameter, encode_parameter
from rosenblatt.modelfile.values import encode_record

MODERATE = 1e30  # products of up to eight values between its inverse and this, and of their inverses, do not overflow


@generic
def score(state, vector, columns, values, constant):
    """The score that a weight vector gives the row (columns, values) with its constant feature."""
    raise TypeError(f"no score is defined for the state {type(state).__name__}")


@generic
def learn(state, vector, columns, values, constant, sign, score, weight):
    """Learn that the row, which the weight vector scored so, is on its side `sign`, with a step that the weight of the
    example multiplies; whether anything changed."""
    raise TypeError(f"{type(state).__name__} has no body of learn")


@jit
def epoch(state, examples, order, budget):
    """Visit the rows that `order` lists and learn from each, until `budget` updates have been made."""
    rows, labels, constant = examples.rows, examples.labels, examples.constant
    tally, clock = state.tally, state.clock
    vectors = tally.size
    scores = np.empty(vectors)
    mistakes, updates = 0, 0
    for t in range(order.size):
        if updates >= budget:
            return Progress(t, mistakes, updates, -1)
        i = order[t]
        fetch(rows, order[min(t + 2, order.size - 1)])
        row_columns, values = take(rows, i)
        own, of_class = weight_of(examples.weight, i)
        label = labels[i] if vectors > 1 else labels[i] - 1  # two classes: the one vector is that of class 1
        rival = 0.0 if vectors == 1 else -np.inf
        for k in range(vectors):
            scores[k] = score(state, k, row_columns, values, constant)
            if not is_number(scores[k]):
                return Progress(t, mistakes, updates, i)
            if k != label and vectors > 1:
                rival = max(rival, scores[k])
        right = scores[label] > rival if label >= 0 else scores[0] < 0.0
        mistakes += not right
        for k in range(vectors):
            weight = own * of_class if k == label or vectors == 1 else own
            sign = 1.0 if k == label else -1.0
            if weight > 0.0 and learn(state, k, row_columns, values, constant, sign, scores[k], weight):
                tally[k] += 1
                updates += 1
        clock[0] += 1
    return Progress(order.size, mistakes, updates, -1)


def zero_counts(vectors: int) -> tuple[NDArray, NDArray]:
    """Return the tally and the clock of a state that has learned nothing."""
    return np.zeros(vectors, np.int64), np.zeros(1, np.int64)


_LOGARITHMS = {"logs", "exponents"}  # which may be −∞
_BY_FEATURE = {"weights", "v", "theta", "linked", "mass", "squares", *_LOGARITHMS}  # on the last axis
_APPENDED = {"starts", "columns", "values", "members", "factor", "point"}  # what they held before an update stays


def everything_unless(bounded: bool, size: int, rows: Rows, constant: float) -> slice | None:
    """What to copy of a state of this size that a row may change everywhere: None if it is `bounded` and no row can make
    it overflow, as all values are moderate; else, or where that is no more work than to look at the values, everything."""
    if not bounded or size <= rows.values.size:
        return slice(None)
    sizes = np.abs(np.append(rows.values, constant))
    sizes = sizes[sizes > 0]
    moderate = sizes.min(initial=1.0) >= 1 / MODERATE and sizes.max(initial=1.0) <= MODERATE  # False for NaN
    return None if moderate else slice(None)


class StateModel:
    """What has been learned: a state, the problem it solves, and the weight vectors that it amounts to; with the
    parameters it was begun with."""

    def __init__(self, problem: Problem, state: Any, constant: float, begun: Mapping[str, object]):
        self.problem = problem
        self.state = state
        self.constant = constant
        self.begun = begun
        self.only_predicts = False  # whether it comes from a file that holds no more
        self._known: tuple[int, NDArray] | None = None

    @property
    def seen(self) -> int:
        """Examples visited."""
        return int(self.state.clock[0])

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""
        return int(self.state.tally.sum())

    def copy(self) -> StateModel:
        """The same, sharing nothing that learning changes."""
        parts = (part.copy() if isinstance(part, np.ndarray) else part for part in self.state)
        twin = copy.copy(self)
        twin.state = type(self.state)(*parts)
        return twin

    def backup(self, rows: Rows, weight: NDArray | None) -> Callable[[], None] | None:
        """Copy what learning from these rows, with these weights, changes in place; the function that is returned puts it
        back. None where that is not needed."""
        changes = getattr(self.state, "changes", None)
        columns = self._columns(rows, np.arange(count(rows))) if changes is None else changes(rows, self.constant)
        if columns is None and weight is not None and not (weight <= MODERATE).all():
            columns = slice(None)
        return None if columns is None else backup(self._places(columns).values())

    def finite(self, rows: Rows, order: NDArray) -> bool:
        """Whether every weight that learning from the rows of `order` can have changed is a finite number."""
        places = self._places(self._columns(rows, order))
        return all(bool(np.isfinite(array[at]).all()) for name, (array, at) in places.items() if name not in _LOGARITHMS)

    def _columns(self, rows: Rows, order: NDArray) -> NDArray | slice:
        width = next(array.shape[-1] for name, array in self.state._asdict().items() if name in _BY_FEATURE)
        columns = touched_columns(rows, order, width - 1)
        return columns if isinstance(columns, slice) else np.append(columns, width - 1)

    def _places(self, columns: NDArray | slice) -> dict[str, tuple[NDArray, Any]]:
        """Each array of the state that learning writes to, with an index of what it writes: all, or these features."""
        return {
            name: (array, (..., columns) if name in _BY_FEATURE else ...)
            for name, array in self.state._asdict().items()
            if isinstance(array, np.ndarray) and name not in _APPENDED
        }

    def prepare(self, rows: Rows) -> None:
        """Copy the arrays that must not be written to; a state serves rows of every layout."""
        parts = (writable(part) if isinstance(part, np.ndarray) else part for part in self.state)
        self.state = type(self.state)(*parts)

    def vectors(self) -> NDArray:
        """(vectors, features + 1): the weights that predict, the constant feature's last."""
        if self._known is None or self._known[0] != self.seen:
            state = self.state
            self._known = (self.seen, state.vectors() if hasattr(state, "vectors") else state.weights)
        return self._known[1]

    def coef_and_intercept(self) -> tuple[NDArray, NDArray]:
        """(coef, intercept) of these weights."""
        vectors = self.vectors()
        return vectors[:, :-1], vectors[:, -1] * self.constant

    def decision(self, X: Matrix) -> NDArray:
        """The decision values of rows: see `problems.decide`."""
        coef, intercept = self.coef_and_intercept()
        return decide(self.problem, X @ coef.T + intercept)


class WeightState(NamedTuple):
    """The state of a learner that only predicts: its weights."""

    weights: NDArray  # (vectors, features + 1)
    tally: NDArray
    clock: NDArray

    @classmethod
    def fresh(cls, vectors: int, features: int) -> WeightState:
        """Weights of zero."""
        return cls(np.zeros((vectors, features + 1)), *zero_counts(vectors))


class StateTrainer(NamedTuple):
    """What `train` works with: a state that learns."""

    model: StateModel
    examples: Examples
    visits: Visits

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        done = self._visit(self.model, order, budget)
        return done, done.updates == 0 and self._none_left()

    def _visit(self, model: StateModel, order: NDArray, budget: int) -> Progress:
        done = epoch(model.state, self.examples, order, budget)
        if done.broken >= 0:
            raise NumericFailure(int(done.broken))
        return done

    def _none_left(self) -> bool:
        """Whether no row would be learned from; an epoch that did not learn tells, unless it may have missed rows."""
        return self.visits.order != "random" or self._visit(self.model.copy(), self.visits.live, 1).updates == 0

    def size(self) -> float:
        """The norm of all weights."""
        return float(np.linalg.norm(self.model.vectors()))

    def backup(self, order: NDArray) -> Callable[[], None] | None:
        """Copy what learning from the rows of `order` changes; None if no number can overflow."""
        return self.model.backup(self.examples.rows, self.examples.weight)

    def finite(self, order: NDArray) -> bool:
        """Whether everything that the rows of `order` can have changed is a finite number."""
        return self.model.finite(self.examples.rows, order)

    def weights_now(self) -> NDArray:
        """The weights that predict."""
        return self.model.vectors()


class Stateful(Classifier):
    """A linear classifier with a state for each weight vector; which state, a subclass says.

    The state's `vectors()`, or else its `weights`, are the weights that predict, (vectors, features + 1) with the constant
    feature's last. They are
    held to `rosenblatt.testing.laws` up to rounding, unless a subclass says `_exact = True`.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        The weights. One vector for two classes, else one for each class, learned against the rest.
    """

    _exact: ClassVar[bool] = False
    _endless: ClassVar[tuple[str, ...]] = ()  # the arrays of a state that may hold −∞
    _adjustable: ClassVar[tuple[str, ...]] = ()  # parameters of its own that may change while it learns

    @abstractmethod
    def _state(self, vectors: int, features: int) -> Any:
        """The state before the first example: `vectors` weight vectors for rows of this many features, without the
        constant one."""

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from rows in epochs, until one of the reasons to stop.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.
        y : array (rows,)
            Their labels.
        sample_weight : array (rows,), optional
            What the step of each row is multiplied by. Rows of weight 0 are left out.

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
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Learn from these rows, once, in the order given.

        Cutting a stream of rows into calls in any way gives the same model. `order` and the reasons to stop do not apply.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.
        y : array (rows,)
            Their labels.
        classes : array, optional
            All classes that there will be; needed on the first call.
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
        """
        return self._partial_fit(X, y, classes, sample_weight)

    @property
    def coef_(self) -> NDArray:
        return self._fitted().coef_and_intercept()[0]

    @coef_.setter
    def coef_(self, coef: ArrayLike) -> None:
        self._refuse_to_set("coef_")

    @property
    def intercept_(self) -> NDArray:
        return self._fitted().coef_and_intercept()[1]

    @intercept_.setter
    def intercept_(self, intercept: ArrayLike) -> None:
        self._refuse_to_set("intercept_")

    def _refuse_to_set(self, name: str) -> NoReturn:
        raise UnsupportedOperation(
            f"{name} of {type(self).__name__} cannot be set: its weights are computed from other stored values",
            hint="Perceptron, PassiveAggressiveClassifier and MIRA have weights that can be set",
        )

    sparsify = NotOffered(DENSE_WEIGHTS)
    densify = NotOffered(DENSE_WEIGHTS)

    def _initial_model(self, plan: Plan, rows: Rows, features: int, classes: int, init: Init | None) -> StateModel:
        problem = plan.problem(classes)
        vectors = 1 if isinstance(problem, Binary) else columns(problem)
        return StateModel(problem, self._state(vectors, features), plan.constant, self._own_values())

    def _make_trainer(self, plan: Plan, model: StateModel, X: Matrix, examples: Examples, visits: Visits) -> StateTrainer:
        return StateTrainer(model, examples, visits)

    # Columns that come later

    def _by_columns(self, model: StateModel) -> bool:
        """Whether what is known of a column depends neither on the others nor on how many there are."""
        return isinstance(model.state, WeightState)

    def _with_features(self, model: StateModel, features: int) -> StateModel:
        if not self._by_columns(model):
            return super()._with_features(model, features)
        vectors, both = len(model.state.tally), min(features, self.n_features_in_)
        twin = type(self)(**self.get_params(deep=False) | model.begun)
        begin: Callable = WeightState.fresh if isinstance(model.state, WeightState) else twin._state
        blank, fresh = begin(vectors, self.n_features_in_), begin(vectors, features)
        for old, unseen, new in zip(model.state, blank, fresh, strict=True):
            if isinstance(new, np.ndarray) and new.shape == old.shape:
                new[...] = old
            elif isinstance(new, np.ndarray):
                if not np.array_equal(old[:, both:-1], unseen[:, both:-1]):
                    raise InvalidData(f"{features} columns are too few: those after them have been learned from")
                new[:, :both], new[:, -1] = old[:, :both], old[:, -1]
        wider = model.copy()
        wider.state, wider._known = fresh, None
        return wider

    # Files

    def _model_to_parts(self, resume: bool) -> Parts:
        model: StateModel = self._model
        begun = {name: encode_parameter(name, value) for name, value in model.begun.items()}
        parts = Parts({"problem": encode_record(model.problem, problems.KINDS), "constant": model.constant, "begun": begun})
        state = self._compact(model.state) if resume else WeightState(model.vectors(), model.state.tally, model.state.clock)
        for name, value in state._asdict().items():
            if isinstance(value, np.ndarray):
                parts.put(name, value, name in self._endless)
        return parts

    def _model_from_parts(self, parts: Parts) -> StateModel:
        problem = problem_of(parts, self._possible_problems())
        begun = {name: decode_parameter(value, name) for name, value in parts.mapping("begun").items()}
        if set(begun) != set(self._own_values()):
            raise DamagedModel(f"begun must have {', '.join(self._own_values())}; it has {', '.join(begun)}")
        parameters.check(begun, {name: self._allowed[name] for name in begun})
        state = self._state_from(parts, begun, 1 if isinstance(problem, Binary) else columns(problem))
        model = StateModel(problem, state, parts.real("constant"), begun)
        model.only_predicts = isinstance(state, WeightState)
        return model

    def _state_from(self, parts: Parts, begun: Mapping[str, object], vectors: int) -> Any:
        """The state that arrays describe: a fresh one, of the parameters that the model began with, says what they must
        be. No array of it that has the features on an axis may be larger than all that there is."""
        width, held = self.n_features_in_ + 1, sum(array.nbytes for array in parts.arrays.values())
        if 8 * vectors * width > held:
            raise DamagedModel(f"{vectors} weight vectors of {width} weights need more than its {held} bytes")
        counts = {"tally": parts.counts("tally", vectors), "clock": parts.counts("clock", 1)}
        if set(parts.arrays) == {"weights"}:
            return WeightState(parts.array("weights", np.float64, (vectors, width)), **counts)
        params = self.get_params(deep=False) | begun | self._harmless(held)
        if "fit_intercept" in params:
            params["fit_intercept"] = parts.real("constant") != 0
        twin = type(self)(**params)
        state = self._made_room(twin._state(vectors, self.n_features_in_), parts)
        for name, value in state._asdict().items():
            if isinstance(value, np.ndarray) and name not in counts:
                counts[name] = parts.array(name, value.dtype, value.shape, minus_infinity=name in self._endless)
        return state._replace(**counts)

    def _compact(self, state: Any) -> Any:
        """The state without what it does not use."""
        return state

    def _made_room(self, state: Any, parts: Parts) -> Any:
        """A fresh state that has as much room as the one in these parts."""
        return state

    def _harmless(self, held: int) -> dict[str, Any]:
        """Parameters with which a fresh state takes no more memory than a file has bytes."""
        return {}

    def _own_values(self) -> dict[str, Any]:
        """The parameters that only this learner has, which must not change while it learns."""
        shared = (*SHARED, *self._adjustable)
        return {name: getattr(self, name) for name in self._allowed if name not in shared}

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        then, now = self._model.begun, self._own_values()
        return [*super()._unchangeable(plan), *((name, then[name], now[name]) for name in now)]
