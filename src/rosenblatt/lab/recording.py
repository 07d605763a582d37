"""A learner is shown the points row by row, and its state after each update is kept: the line where it has one, else its
scores on a grid of the plane.

The rows come in the order in which its own `fit` visits them, so that the last state is that of `fit`. What has no
`partial_fit` is seen after each epoch (the delta rule) or at the end (the σ-perceptron). The plain perceptron is run by
`theory.trace`, which measures its proof.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.blocks import one_blas_thread
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import InvalidData, InvalidParameter, LimitExceeded, NumericOverflow
from rosenblatt.estimators.plan import generator
from rosenblatt.lab.forms import learns_from_single_rows, make
from rosenblatt.theory import NotSeparable, Trace, trace

MOST_POINTS = 500
MOST_UPDATES = 10_000
MOST_EPOCHS = 10_000
MOST_SECONDS = 2.0  # for one run
LARGEST = 1e6  # coordinate of a point
GRID = 40  # scores in a row of the grid, and rows
MOST_GRIDS = 48  # that are kept; of a longer run every second, every fourth, …
CLASSES = np.array([-1, 1])
Box = tuple[float, float, float, float]  # from x, to x, from y, to y


class Job(NamedTuple):
    """What to run.

    Attributes
    ----------
    learner : str
        One of `rosenblatt.lab.LEARNERS`.
    settings : dict
        Values of its parameters; the others have the defaults of the form.
    order : str
        "cyclic", "shuffle" or "random".
    epochs, updates : int
        Where to stop.
    seed : int
        For orders that draw, and for learners that do.

    Examples
    --------
    >>> job = Job("PassiveAggressiveClassifier", {"C": 0.5}, order="shuffle", epochs=5)
    >>> job.learner, job.settings, job.updates
    ('PassiveAggressiveClassifier', {'C': 0.5}, 1000)
    """

    learner: str = "Perceptron"
    settings: dict[str, Any] = {}
    order: str = "cyclic"
    epochs: int = 20
    updates: int = 1000
    seed: int = 0


class Recording(NamedTuple):
    """A run: its states, k = 0 … t, and what was counted.

    Attributes
    ----------
    example : list of int or None
        The point of each of the t updates; None for a state that is not that of one point.
    mistakes : list of int
        Points that were predicted wrong before they were learned from, until state k.
    lines : (t + 1, 3) array or None
        a, b, c of the score a·x₁ + b·x₂ + c; None for a learner without a line.
    grids : dict of int to (GRID, GRID) array
        For a learner without a line, scores in the box by rows from below, for some k, the last among them.
    errors : list of int
        Points on the wrong side in state k; a score of 0 is that of the positive class.
    margin : float or None
        The distance of the nearest point from the last line, negative if one is on the wrong side; None without a line.
    stopped : str
        "converged" (an epoch changed nothing), "epochs", "updates", "time" or "done".
    unit : str
        What a step is: "update", "epoch" or "run".
    seen, epochs : int
        Points shown, epochs begun.
    proof : Trace or None
        The same run with its proof, of the plain perceptron.

    Examples
    --------
    >>> X, y = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-3.0, 0.0]]), np.array([1, 1, -1, -1])
    >>> run = record(X, y, Job("Perceptron"))
    >>> run.errors, run.stopped, run.lines.tolist()
    ([2, 0], 'converged', [[0.0, 0.0, 0.0], [2.0, 1.0, 1.0]])
    """

    example: list[int | None]
    mistakes: list[int]
    lines: NDArray | None
    grids: dict[int, NDArray]
    errors: list[int]
    margin: float | None
    stopped: str
    unit: str
    seen: int
    epochs: int
    proof: Trace | None

    @property
    def separates(self) -> bool:
        """Whether no point is on the wrong side in the end."""
        return self.errors[-1] == 0


def record(X: NDArray, y: NDArray, job: Job, box: Box = (-1.0, 1.0, -1.0, 1.0)) -> Recording:
    """Run a learner on points of a plane and keep its state after each update.

    Parameters
    ----------
    X : (points, 2) array
        The points.
    y : (points,) array of −1 and 1
        Their classes; both must occur.
    job : Job
        The learner, and where to stop.
    box : four numbers
        From x, to x, from y, to y: where learners without a line are asked for scores.

    Returns
    -------
    Recording
        The run.

    Raises
    ------
    LimitExceeded
        If there are more points, or more epochs or updates are asked for, than the lab takes.
    InvalidData, InvalidParameter
        For points and parameters that cannot be learned from; `NumericOverflow` if weights or scores became infinite.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-3.0, 0.0]]), np.array([1, 1, -1, -1])
    >>> run = record(X, y, Job("Perceptron"))
    >>> run.example, run.lines[-1].tolist(), run.separates, round(run.margin, 3)
    ([0], [2.0, 1.0, 1.0], True, 1.342)
    """
    X, y = check_points(X, y)
    for name, value, most in (("epochs", job.epochs, MOST_EPOCHS), ("updates", job.updates, MOST_UPDATES)):
        if type(value) is not int or value < 1:
            raise InvalidParameter(name, value, "a whole number ≥ 1")
        if value > most:
            raise LimitExceeded(name, value, most, hint="the lab is for short runs; rosenblatt trace does long ones")
    if type(job.seed) is not int or not 0 <= job.seed < 2**32:
        raise InvalidParameter("seed", job.seed, "a whole number from 0 to 2³² − 1")
    model = make(job.learner, job.settings, job.order, job.epochs, job.seed)
    states = _States(X, y, box)
    with one_blas_thread, warnings.catch_warnings():  # set once, and not again for each point
        warnings.simplefilter("ignore")  # that a run did not converge is shown
        proof = None
        if learns_from_single_rows(job.learner):
            copy.deepcopy(model).partial_fit(
                X, y, classes=CLASSES
            )  # checks parameters and points, and names those it refuses
            plain = job.learner == "Perceptron" and model.learning_rate == "constant" and model.keep == "last"
            if plain and job.order == "cyclic":
                proof, ended = _trace_epochs(X, y, job, model, states)
            else:
                ended = _show_rows(model, X, y, job, states)
                proof = _proof(X, y, job, model, states, ended) if plain else None
        elif "warm_start" in model.get_params(deep=False):
            ended = _show_epochs(model, X, y, job, states)
        else:
            states.add(model.fit(X, y), None)
            ended = _End("done", "run", model.n_updates_, 1)
        errors, margin = states.errors()
    lines, grids = np.array(states.lines) if states.lines else None, states.kept_grids()
    shown: list[Any] = [each for each in (lines, margin, *grids.values()) if each is not None]
    if not all(np.isfinite(each).all() for each in shown):
        raise NumericOverflow("the weights or scores overflowed", hint="take parameters that are nearer to the defaults")
    return Recording(states.example, states.mistakes, lines, grids, errors, margin, *ended, proof)


def check_points(X: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Return points as arrays of floats and of −1 and 1; refuse those that the lab does not take."""
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)
    check_count(len(X))
    if X.ndim != 2 or X.shape[1:] != (2,) or y.shape != X.shape[:1] or not np.isin(y, CLASSES).all():
        raise InvalidData("a point must be two numbers and a class, -1 or 1")
    if not (np.abs(X) <= LARGEST).all():  # which no NaN is
        raise InvalidData(f"coordinates must be numbers from {-LARGEST:g} to {LARGEST:g}", hint="scale the points down")
    if len(np.unique(y)) < 2:
        raise InvalidData("points must be of both classes", hint="add a point of the other class")
    return X, y.astype(np.int64)


def check_count(points: int) -> None:
    """Refuse more points than the lab takes."""
    if points > MOST_POINTS:
        hint = "take some of them; rosenblatt train learns from any number"
        raise LimitExceeded("points", points, MOST_POINTS, hint=hint)


class _End(NamedTuple):
    stopped: str
    unit: str
    seen: int
    epochs: int


def _line(model: Any) -> list[float] | None:
    """a, b and c of the line by which a learner predicts; None if it has a kernel, or lets all its lines vote."""
    if getattr(model, "coef_", None) is None or getattr(model, "keep", None) == "vote":
        return None
    return [*model.coef_[0].tolist(), float(model.intercept_[0])]


class _States:
    """The states of a run until now; the first is that of a learner which has learned nothing."""

    def __init__(self, X: NDArray, y: NDArray, box: Box):
        self.X, self.y = X, y
        x, height = np.linspace(box[0], box[1], GRID), np.linspace(box[2], box[3], GRID)
        self.plane = np.column_stack([np.tile(x, GRID), np.repeat(height, GRID)])
        self.example: list[int | None] = []
        self.mistakes = [0]
        self.lines: list[list[float]] = []
        self.grids: dict[int, NDArray] = {0: np.zeros((GRID, GRID))}
        self.stride = 1
        self.scores: list[NDArray] = []  # of the points, for a learner without a line

    def add(self, model: Any, example: int | None) -> None:
        """Keep the state of a learner after an update."""
        line = _line(model)
        self.example.append(example)
        self.mistakes.append(int(getattr(model, "n_mistakes_", 0)))
        if line is not None:
            if not self.lines:
                self.lines.append([0.0, 0.0, 0.0])
            self.lines.append(line)
            return
        self.scores.append(model.decision_function(self.X))
        step = len(self.example)
        if step % self.stride == 0:
            self.grids[step] = self._grid(model)
            if len(self.grids) > MOST_GRIDS:
                self.stride *= 2
                self.grids = {k: grid for k, grid in self.grids.items() if k % self.stride == 0}

    def add_trace(self, run: Trace) -> None:
        """Keep the states of a trace."""
        path = run.path
        intercept = path[:, 2] * run.rows.constant if run.rows.constant else np.zeros(len(path))
        self.lines = np.column_stack([path[:, :2], intercept]).tolist()
        self.example = run.example.tolist()
        self.mistakes = [0, *np.cumsum(run.margin <= 0).tolist()]

    def finish(self, model: Any) -> None:
        """Keep the last state, which may not be that after the last update: an average goes on with every row."""
        line = _line(model)
        if line is None:
            last = model.decision_function(self.X)
            if self.scores and not np.array_equal(last, self.scores[-1]):
                self.add(model, None)
            if self.example:
                self.grids[len(self.example)] = self._grid(model)
        elif self.lines and line != self.lines[-1]:
            self.add(model, None)

    def _grid(self, model: Any) -> NDArray:
        return model.decision_function(self.plane).reshape(GRID, GRID)

    def kept_grids(self) -> dict[int, NDArray]:
        """The grids of a learner without a line."""
        return {} if self.lines else self.grids

    def errors(self) -> tuple[list[int], float | None]:
        """(points on the wrong side in each state, the distance of the nearest point from the last line)."""
        if self.lines:
            lines = np.array(self.lines)
            scores = lines[:, :2] @ self.X.T + lines[:, 2:]
        else:
            scores = np.array([np.zeros(len(self.y)), *self.scores])
        wrong = np.where(scores >= 0, 1, -1) != self.y
        margin = None
        if self.lines and (length := float(np.linalg.norm(self.lines[-1][:2]))) > 0:
            margin = float((self.y * scores[-1]).min()) / length
        return np.count_nonzero(wrong, axis=1).tolist(), margin


def _show_rows(model: Any, X: NDArray, y: NDArray, job: Job, states: _States) -> _End:
    """Show the learner one row at a time, epoch by epoch, until one of them changes nothing."""
    visits, numbers = Visits(np.arange(len(y)), job.order, generator(job.seed)), (y > 0).astype(np.int64)
    begun, seen, updates, epochs = time.perf_counter(), 0, 0, 0
    learn = model._one_by_one(X, numbers, 2)
    reason = "epochs"
    while epochs < job.epochs:
        epochs += 1
        before = updates
        for i in visits.epoch().tolist():
            learn(i)
            seen += 1
            if model.n_updates_ > updates:
                updates = model.n_updates_
                states.add(model, i)
                if len(states.example) == 1:
                    begun = time.perf_counter()  # until now it may have compiled
                if len(states.example) >= job.updates:
                    reason = "updates"
                    break
            if time.perf_counter() - begun > MOST_SECONDS:
                reason = "time"
                break
        else:
            if updates > before or (job.order == "random" and _would_learn(model, X, numbers)):
                continue
            reason = "converged"
        break
    states.finish(model)
    return _End(reason, "update", seen, epochs)


def _would_learn(model: Any, X: NDArray, numbers: NDArray) -> bool:
    """Whether some row would change the learner: an epoch that is drawn row by row leaves rows out."""
    return copy.deepcopy(model)._partial_fit_numbers(X, numbers, 2).n_updates_ > model.n_updates_


def _show_epochs(model: Any, X: NDArray, y: NDArray, job: Job, states: _States) -> _End:
    """Show the learner all rows, epoch by epoch, until one of them changes nothing."""
    model.set_params(max_iter=1, warm_start=True, random_state=generator(job.seed))
    begun = math.inf
    for epoch in range(1, min(job.epochs, job.updates) + 1):
        states.add(model.fit(X, y), None)
        begun = min(begun, time.perf_counter())  # until then it may have compiled
        if len(states.lines) > 2 and states.lines[-1] == states.lines[-2]:
            return _End("converged", "epoch", epoch * len(y), epoch)
        if time.perf_counter() - begun > MOST_SECONDS:
            return _End("time", "epoch", epoch * len(y), epoch)
    return _End("epochs" if job.epochs <= job.updates else "updates", "epoch", epoch * len(y), epoch)


def _trace_epochs(X: NDArray, y: NDArray, job: Job, model: Any, states: _States) -> tuple[Trace, _End]:
    """Trace the plain perceptron over the rows in turn, in so many epochs; the run with its proof, and how it ended."""
    proof = _trace(X, y, model, "cyclic", job.updates)
    epoch = 1 + np.cumsum(np.diff(proof.example, prepend=-1) <= 0)  # of each update; a row comes once in each
    within = int(np.count_nonzero(epoch <= job.epochs))
    if within < proof.updates:
        proof = _trace(X, y, model, "cyclic", within)
    last, count = int(epoch[within - 1]), len(y)
    states.add_trace(proof)
    if within == job.updates:
        return proof, _End("updates", "update", (last - 1) * count + int(proof.example[-1]) + 1, last)
    if last == job.epochs:
        return proof, _End("epochs", "update", last * count, last)
    return proof, _End("converged", "update", (last + 1) * count, last + 1)


def _proof(X: NDArray, y: NDArray, job: Job, model: Any, states: _States, ended: _End) -> Trace | None:
    """The run of the plain perceptron that was recorded, with its proof; None if rounding made it another run."""
    visits = Visits(np.arange(len(y)), job.order, generator(job.seed))
    order = np.concatenate([visits.epoch() for _ in range(ended.epochs)] + [np.arange(len(y))]).tolist()
    proof = _trace(X, y, model, order, len(states.example))
    return proof if proof.example.tolist() == states.example else None


def _trace(X: NDArray, y: NDArray, model: Any, order: str | list[int], updates: int) -> Trace:
    """The trace of a perceptron with the parameters of this one."""
    constant = float(model.intercept_scaling) if model.fit_intercept else 0.0
    run = partial(
        trace, X, y, constant=constant, delta=float(model.margin), rate=float(model.eta0), order=order, max_updates=updates
    )
    try:
        return run()
    except NotSeparable:
        return run(separator=np.eye(1, 2 + (constant != 0))[0])  # any vector; none has a margin above 0


def warm(name: str) -> None:
    """Compile what a learner needs, or load it from the cache."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([-1, 1, -1])
    record(X, y, Job(name, epochs=2))
