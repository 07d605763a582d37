"""What has been learned, and which of the weight vectors on the way predict."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rosenblatt import rules
from rosenblatt.conditions import RunConditions
from rosenblatt.engine import problems
from rosenblatt.engine.mixing import WeightChange, table_change
from rosenblatt.engine.problems import JOINT, MOVE, Binary, OneVsOne, Problem, columns, counters, decide, visible, winner
from rosenblatt.engine.rows import AnyMatrix, DeviceRows, Matrix, Rows, float_type, is_sparse, scores
from rosenblatt.engine.train import Pocket
from rosenblatt.engine.votes import Votes, no_votes
from rosenblatt.engine.weights import (
    WeightBound,
    Weights,
    in_layout_of,
    norm,
    weights_of,
    with_features,
    with_more_classes,
    zeros,
)
from rosenblatt.errors import DamagedModel, InvalidData, UnsupportedOperation
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import MOST, decode_record, encode_record, encode_value

AVERAGES = ("auto", "average")  # what may be kept of the weights that predicts by their average
Init: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]  # coef and intercept to start from


class LinearModel:
    """Weights, the problem they solve, and how they predict: the last, their average, a pocket, or all by vote. "auto" is
    the average too, which `extend_average` completes."""

    def __init__(self, problem: Problem, weights: Weights, constant: float, keep: str):
        self.problem = problem
        self.weights = weights
        self.constant = constant
        self.keep = keep
        self.pocket = Pocket(weights.w) if keep == "pocket" else None
        self.votes: Votes | None = no_votes(weights.w) if keep == "vote" else None
        self.conditions = RunConditions()
        self.bound = WeightBound()
        self.only_predicts = False  # whether it comes from a file that holds no more
        self.add_pending: Callable[[], None] = nothing_pending  # completes the drift during a run
        self._known: tuple[int, NDArray, NDArray] | None = None

    @property
    def seen(self) -> int:
        """Examples visited."""
        return int(self.weights.clock[0])

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""
        return int(self.weights.tally.sum())

    def copy(self) -> LinearModel:
        """The same model, sharing nothing that learning changes."""
        self.add_pending()
        twin = copy.copy(self)
        twin.add_pending = nothing_pending
        twin.weights = self.weights.copy()
        twin.pocket = copy.deepcopy(self.pocket)
        return twin

    def prepare(self, rows: Rows) -> None:
        """Give the weights the memory order and at least the precision that these rows want."""
        self.weights = in_layout_of(self.weights, np.result_type(float_type(rows), self.weights.w).type, is_sparse(rows))

    def predicting_coef(self) -> tuple[NDArray, NDArray]:
        """(coef, intercept) of the weights that predict, in their own precision; with votes, of the last."""
        if self.keep in AVERAGES:
            now = int(self.weights.clock[0])
            if self._known is None or self._known[0] != now:
                self._known = (now, *coef_and_intercept(self.problem, self.predicting(), self.constant))
            return self._known[1:]
        return coef_and_intercept(self.problem, self.predicting(), self.constant)

    def predicting(self) -> NDArray:
        """The weights that predict, as the kernels have them; with votes, the last."""
        if self.keep in AVERAGES:
            self.add_pending()
            return self.weights.average().astype(self.weights.w.dtype)
        return self.weights.w if self.pocket is None else self.pocket.w

    def last(self) -> tuple[NDArray, NDArray]:
        """(coef, intercept) of the last weights."""
        return coef_and_intercept(self.problem, self.weights.w, self.constant)

    def decision(self, X: AnyMatrix) -> NDArray:
        """The decision values of rows: see `problems.decide`."""
        if self.votes is not None:
            if isinstance(X, DeviceRows):
                raise UnsupportedOperation("keep='vote' cannot predict rows on a GPU", hint="copy them to the CPU first")
            return decide(self.problem, visible(self.problem, self.votes.scores(X, self.problem, self.constant)))
        coef, intercept = self.predicting_coef()
        return decide(self.problem, scores(X, coef, intercept))

    def winners(self, X: AnyMatrix) -> NDArray:
        """The number of the class that is predicted for each row."""
        return self._winners(X, self.decision)

    def _winners(self, X: AnyMatrix, decision: Callable[[AnyMatrix], NDArray]) -> NDArray:
        """The classes that decision values name; those of rows on a device come from it stretch by stretch."""
        if not isinstance(X, DeviceRows):
            return winner(decision(X))
        return np.concatenate([winner(decision(part)) for part in X.pieces(columns(self.problem))])

    def errors(self, X: AnyMatrix, labels: NDArray, w: NDArray) -> int:
        """How many rows the weights w do not predict."""
        coef, intercept = coef_and_intercept(self.problem, w, self.constant)
        predicted = self._winners(X, lambda part: decide(self.problem, scores(part, coef, intercept)))
        return int(np.count_nonzero(predicted != labels))

    def extend_average(self, rows: int, errors: Callable[[NDArray], int]) -> None:
        """Count 1, 2, 4, … further epochs of so many rows in the average, in which the weights do not change, until it
        makes no more errors on these rows than the last weights do. `errors(w)` counts those of weights. Once the weights
        have converged, a longer run has this average."""
        least = None
        while (wrong := errors(self.predicting())) and self.seen + rows < MOST:
            least = errors(self.weights.w) if least is None else least
            if wrong <= least:
                break
            self.weights.clock[0] += rows
            rows *= 2
        self._known = None

    def grow(self, larger: Problem) -> None:
        """Go over to a problem with more classes; the weights of the new ones are zero."""
        if self.votes is not None:
            start = with_more_classes(self.weights._replace(w=self.votes.start, drift=None), self.problem, larger).w
            self.votes = self.votes.with_more_classes(start, self.problem, larger)
        self.weights = with_more_classes(self.weights, self.problem, larger)
        self.problem = larger
        self._known = None

    def with_features(self, features: int) -> LinearModel:
        """The same model for rows of so many features; the weights of new ones are zero, as if they had never come."""
        twin = self.copy()
        drift = None if self.weights.drift is None else with_features(self.weights.drift, features, "a part in the average")
        twin.weights = twin.weights._replace(w=with_features(self.weights.w, features), drift=drift)
        if twin.pocket is not None:
            twin.pocket.w = with_features(twin.pocket.w, features)
        twin.votes = None if self.votes is None else self.votes.with_features(features)
        start = self.conditions.start
        twin.conditions = self.conditions._replace(start=None if start is None else with_features(start, features))
        twin._known = None
        return twin

    def with_weights(self, coef: ArrayLike | None, intercept: ArrayLike | None) -> LinearModel:
        """The same model with these weights; None keeps those that predict now. It is as if they had been the weights from
        the beginning: they replace the average so far, the pocket weights and the votes."""
        known, constant = self.predicting_coef()
        names = ("coef_", "intercept_")
        init = (known if coef is None else coef, constant if intercept is None else intercept)
        twin = copy.copy(self)
        w = np.empty_like(self.weights.w)
        w[...] = _start(self.problem, len(w) - 1, self.constant, *init, names=names)
        drift = None if self.weights.drift is None else np.zeros_like(self.weights.drift)
        twin.weights = Weights(w, drift, self.weights.tally.copy(), self.weights.clock.copy())
        twin.pocket = None if self.pocket is None else Pocket(w)
        twin.votes = None if self.votes is None else no_votes(w)._replace(clock=max(self.seen, 1))
        twin.conditions = self.conditions._replace(start=None, mixed=True)
        twin.bound, twin._known = WeightBound(), None
        return twin

    # Mixing: see `engine.mixing`

    @property
    def nbytes(self) -> int:
        """The bytes of the weights and of what their average needs."""
        return self.weights.w.nbytes + (0 if self.weights.drift is None else self.weights.drift.nbytes)

    def norm(self) -> float:
        """Return the norm of all weights."""
        return norm(self.weights.w)

    def weights_now(self) -> NDArray:
        """Return the last weights, as they are changed in place."""
        return self.weights.w

    def change_since(self, start: LinearModel) -> WeightChange:
        """Return what has changed since this model was a copy of another one; features may have come since then."""
        self.add_pending()
        weights, before = self.weights, start.weights
        counts = np.concatenate([weights.clock - before.clock, weights.tally - before.tally])
        w = _growth(weights.w, before.w)
        drift = None
        if weights.drift is not None and before.drift is not None:
            drift = _growth(weights.drift, before.drift)
        return WeightChange({"weights": table_change(w, drift, int(weights.clock[0]))}, counts)

    def add_change(self, change: WeightChange) -> None:
        """Go over to the mixture of which this is the change; features that are new in it become known."""
        table, counts = change.tables["weights"], change.counts
        vectors = 1 if self.weights.w.ndim == 1 else self.weights.w.shape[1]
        end = len(table.w) if table.keys is None else int(table.keys[0].max(initial=-1)) + 1
        if (features := -(-end // vectors) - 1) > len(self.weights.w) - 1:
            self.weights = self.with_features(features).weights
        w, drift, tally, clock = self.weights = self.weights.copy()
        clock += counts[0]
        tally += counts[1:]
        added, passed = table.w, table.passed
        at: Any = ...
        if table.keys is None:
            added = _constant_last(added, w.shape)
            passed = None if passed is None else _constant_last(passed, w.shape)
        else:
            rows, columns = np.divmod(table.keys[0], vectors)
            at = (rows - 1,) if w.ndim == 1 else (rows - 1, columns)  # row 0 of a change is the constant's, the last here
        then = w[at].astype(np.float64)
        w[at] = then + added
        if drift is not None and passed is not None:
            drift[at] += clock[0] * (w[at] - then) + passed
        self.bound, self._known = WeightBound(), None

    def remember(self, X: Matrix, moves: NDArray) -> None:
        """Keep the mistakes made on rows of X, which vote from now on."""
        if self.votes is not None:
            self.votes = self.votes.with_moves(X, moves, int(self.weights.clock[0]))

    # Files

    def to_parts(self, resume: bool, own_rule: Callable[[], tuple | None]) -> Parts:
        """Return the model as parts; without `resume`, the weights that predict and no more. `own_rule` returns the rule
        that the parameters of the learner ask for, which need not be one that a file can name."""
        parts = Parts({
            "problem": encode_record(self.problem, problems.KINDS), "constant": self.constant, "keep": self.keep,
        })  # fmt: skip
        whole = resume or self.votes is not None
        _put_weights(parts, "weights", self.weights.w if whole else self.predicting())
        parts.put("tally", self.weights.tally)
        parts.put("clock", self.weights.clock)
        if self.votes is not None:
            parts.put_rows("votes/rows", self.votes.rows)
            parts.put_records("votes/moves", self.votes.moves)
            _put_weights(parts, "votes/start", self.votes.start)
        if not resume:
            return parts
        if self.weights.drift is not None:
            _put_weights(parts, "drift", self.weights.drift)
        if self.pocket is not None:
            _put_weights(parts, "pocket", self.pocket.w)
            parts.put("pocket/run", self.pocket.run)
            parts.facts["pocket/fewest"] = self.pocket.fewest
        conditions, rule = self.conditions, self.conditions.rule
        if conditions.start is not None:
            parts.put("terms/start", conditions.start)
        parts.facts["terms"] = {
            "rule": None if rule is None else "own" if rule == own_rule() else encode_record(rule, rules.KINDS),
            "batch": conditions.batch,
            "in_turn": conditions.in_turn,
            "weighted": conditions.weighted,
            "mixed": conditions.mixed,
        }
        if conditions.weighted_updates is not None:
            parts.facts["terms"]["weighted_updates"] = encode_value(conditions.weighted_updates)
        return parts

    @classmethod
    def from_parts(
        cls, parts: Parts, features: int, expected: Collection[Problem], own_rule: Callable[[], tuple | None]
    ) -> LinearModel:
        """Return the model that parts describe, for rows of so many features and for one of the problems expected."""
        problem = problem_of(parts, expected)
        resume = "terms" in parts.facts
        keep = parts.text("keep", ("auto", "last", "average", "pocket", "vote"))
        shape = (features + 1,) if isinstance(problem, Binary) else (features + 1, columns(problem))
        w = _weights(parts, "weights", shape)
        clock = parts.counts("clock", 1)
        drift = _weights(parts, "drift", shape, np.float64) if keep in AVERAGES and resume else None
        weights = Weights(w, drift, parts.counts("tally", counters(problem)), clock)
        model = cls(problem, weights, parts.real("constant"), keep if resume or keep == "vote" else "last")
        model.only_predicts = not resume
        if model.votes is not None:
            rows = parts.rows("votes/rows", None, features)
            moves = parts.records("votes/moves", MOVE, move_bounds(problem, rows.shape[0], int(clock[0])))
            model.votes = Votes(rows, moves, _weights(parts, "votes/start", shape, w.dtype), int(clock[0]))
        if not resume:
            return model
        if model.pocket is not None:
            model.pocket.w = _weights(parts, "pocket", shape, w.dtype)
            model.pocket.run = parts.counts("pocket/run", 2)
            fewest = parts.facts["pocket/fewest"]
            model.pocket.fewest = None if fewest is None else parts.whole("pocket/fewest")
        model.conditions = _conditions(parts, w, own_rule)
        return model


def _growth(now: NDArray, before: NDArray) -> NDArray:
    """What was added to weights, in float64, with the constant's first: so that new features come at the end."""
    grown = np.zeros(now.shape)
    grown[0] = now[-1].astype(np.float64) - before[-1]
    grown[1:] = now[:-1]
    grown[1 : len(before)] -= before[:-1]
    return grown.ravel()


def _constant_last(flat: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Numbers for weights of this shape, of which those of the constant come first and those of the last features may be
    missing."""
    whole = np.zeros(shape)
    whole.reshape(-1)[: len(flat)] = flat
    return np.roll(whole, -1, axis=0)


def nothing_pending() -> None:
    """Do nothing: the drift is complete, as no run of learning is going on."""


def problem_of(parts: Parts, expected: Collection[Problem]) -> Any:
    """The problem that a model solves, if it is one of those expected."""
    problem = decode_record(parts.facts["problem"], problems.KINDS)
    if not any(type(problem) is type(one) and problem == one for one in expected):
        raise DamagedModel(f"the problem must be one of {', '.join(map(str, expected))}; it is {problem}")
    return problem


def move_bounds(problem: Problem, rows: int, clock: int) -> dict[str, tuple[int, int]]:
    """From where to where the numbers of moves made on so many rows, before so many examples, can go."""
    column = (0 if isinstance(problem, JOINT) else -1, columns(problem) - 1)
    counter = (0, counters(problem) - 1)
    return {"row": (0, rows - 1), "gains": column, "loses": column, "counter": counter, "clock": (0, clock)}


def _conditions(parts: Parts, w: NDArray, own_rule: Callable[[], tuple | None]) -> RunConditions:
    start = parts.array("terms/start", w.dtype, w.shape) if "terms/start" in parts.arrays else None
    terms = Parts(parts.mapping("terms"))
    rule = terms.facts["rule"]
    rule = own_rule() if rule == "own" else None if rule is None else decode_record(rule, rules.KINDS)
    flags = {name: terms.flag(name) for name in ("in_turn", "weighted", "mixed")}
    weighted_updates = terms.real("weighted_updates") if "weighted_updates" in terms.facts else None
    return RunConditions(start, rule, terms.whole("batch", 1, 2 * MOST - 1), **flags, weighted_updates=weighted_updates)


def _put_weights(parts: Parts, name: str, w: NDArray) -> None:
    """Store weights with the order that they have in memory: sums in another order might round otherwise."""
    turned = w.ndim > 1 and w.flags.f_contiguous and not w.flags.c_contiguous
    parts.facts[f"{name}/turned"] = turned
    parts.put(name, w.T if turned else w)


def _weights(parts: Parts, name: str, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> NDArray:
    turned = parts.flag(f"{name}/turned")
    w = parts.floats(name, shape[::-1] if turned else shape, dtype)
    return w.T if turned else w


def fresh(
    problem: Problem, rows: Rows, features: int, constant: float, keep: str, init: Init = (None, None)
) -> LinearModel:
    """A model that has seen nothing, with weights of zero or those that `init` (coef, intercept) shows."""
    weights = zeros(features, problem, float_type(rows).type, keep in AVERAGES, is_sparse(rows))
    if any(part is not None for part in init):
        weights.w[...] = _start(problem, features, constant, *init)
    return LinearModel(problem, weights, constant, keep)


def _start(
    problem: Problem,
    features: int,
    constant: float,
    coef_init: ArrayLike | None,
    intercept_init: ArrayLike | None,
    names: tuple[str, str] = ("coef_init", "intercept_init"),
) -> NDArray:
    """The weights with this coef and intercept, which go by these names."""
    vectors = {Binary: 1, OneVsOne: problem.classes * (problem.classes - 1) // 2}.get(type(problem), problem.classes)
    coef = np.zeros((vectors, features)) if coef_init is None else np.asarray(coef_init, dtype=np.float64)
    intercept = np.zeros(vectors) if intercept_init is None else np.asarray(intercept_init, dtype=np.float64)
    if coef.size != vectors * features or intercept.size != vectors:
        raise InvalidData(
            f"{names[0]} must have shape {(vectors, features)} and {names[1]} {(vectors,)}; "
            f"got {coef.shape} and {intercept.shape}"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise InvalidData(f"{names[0]} and {names[1]} must be finite")
    if intercept.any() and not constant:
        raise InvalidData(f"{names[1]} cannot be used with fit_intercept=False: there is no intercept to start")
    return weights_of(problem, coef.reshape(vectors, features), intercept.reshape(vectors), constant)


def coef_and_intercept(problem: Problem, w: NDArray, constant: float) -> tuple[NDArray, NDArray]:
    """(coef, intercept): a row for each weight vector that a user sees, and its effective intercept."""
    w = w[:, None] if w.ndim == 1 else visible(problem, w)
    return w[:-1].T, w[-1] * w.dtype.type(constant)
