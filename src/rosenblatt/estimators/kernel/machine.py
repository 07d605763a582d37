"""The perceptron in the feature space of a kernel. Its weights are a sum over the rows it made mistakes on, so a score is a
sum of kernels with those rows, and nothing else of the space is ever needed.

It learns by the blocks of `blocks.py`. The scores of a block of rows are a matrix of kernels with the support times its
coefficients; what a mistake inside the block changes for the rows after it, the kernel matrix of the block tells. For the
scan the rows of the block are unit vectors, whose Gram matrix happens to be that kernel matrix: what it returns as their
weights are the new coefficients. In exact arithmetic this is the kernel perceptron, row by row, whatever the size of the
blocks. The kernel matrix of all rows is never made.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rosenblatt import rules
from rosenblatt.engine.blocks import available_threads, scan
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.model import move_bounds, problem_of
from rosenblatt.engine.problems import (
    JOINT,
    KINDS,
    MOVE,
    Joint,
    OneVsRest,
    Problem,
    columns,
    counters,
    decide,
    moves_per_row,
)
from rosenblatt.engine.rows import CSR, Examples, Rows, count, frozen
from rosenblatt.engine.train import NO_LIMIT, NumericFailure, Visits
from rosenblatt.engine.votes import AT_ONCE, poll
from rosenblatt.engine.weights import Weights
from rosenblatt.estimators.base import Classifier, read_rows
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.kernel.gram import (
    BLOCK,
    FEW,
    PIECE,
    Function,
    Gaussian,
    Given,
    Kernel,
    KernelFunction,
    Linear,
    Polynomial,
    kernel_of,
    matrix,
    put_kernel,
    put_tiles,
    refuse_non_positive,
    stacked,
    tiled,
    tiles_of,
    weighed,
    with_all,
    workers,
)
from rosenblatt.estimators.parameters import (
    ClassWeightParameters,
    EpochParameters,
    InterceptParameters,
    KeepParameters,
    Number,
    OneOf,
    OrderParameters,
    ThreadParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import encode_record

# The kernels that have a name, from the parameters of an estimator and its number of features.
KERNELS: dict[str, Callable[[Any, int], Kernel]] = {
    "linear": lambda params, features: Linear(),
    "poly": lambda params, features: Polynomial(int(params.degree), _gamma(params, features), float(params.coef0)),
    "rbf": lambda params, features: Gaussian(_gamma(params, features)),
    "precomputed": lambda params, features: Given(),
}


def _gamma(params: Any, features: int) -> float:
    return 1 / features if params.gamma is None else float(params.gamma)


class Machine:
    """What has been learned: the rows that mistakes were made on, and how much of each is in the weights.

    Coefficients are float64. A move made at some example is in the weights from then on, so the average of all weights has
    coef − drift/clock, and the votes of all weights follow from the moves: see `weights` and `dual`.
    """

    def __init__(self, problem: Problem, kernel: Kernel, constant: float, keep: str, features: int):
        self.problem = problem
        self.kernel = kernel
        self.constant = constant
        self.keep = keep
        self.features = features
        self.given = 0  # rows given so far, in all calls
        self.tiles: tuple[Any, ...] = ()  # what is kept of the rows of the support
        self.support = np.empty(0, np.int64)  # their numbers, counted through all calls
        self.coef = np.zeros((0, columns(problem)))  # (support, columns)
        self.drift = None if keep == "last" else self.coef.copy()
        self.moves = np.empty(0, MOVE)  # `row` counts in the support; only for votes
        self.tally = np.zeros(counters(problem), np.int64)
        self.clock = np.zeros(1, np.int64)
        self.only_predicts = False
        self.square = 0.0  # ‖w‖² of all weights
        self.widest = 0.0  # the largest K(x, x) met

    @property
    def seen(self) -> int:
        """Examples visited."""
        return int(self.clock[0])

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""
        return int(self.tally.sum())

    def to_parts(self) -> Parts:
        """Return all of it as parts."""
        parts = Parts({
            "problem": encode_record(self.problem, KINDS), "constant": self.constant, "keep": self.keep,
            "given": self.given, "square": self.square, "widest": self.widest,
        })  # fmt: skip
        put_kernel(parts, self.kernel)
        put_tiles(parts, self.tiles)
        parts.put("support", self.support)
        parts.put("coef", self.coef)
        if self.drift is not None:
            parts.put("drift", self.drift)
        if self.keep == "vote":
            parts.put_records("moves", self.moves)
        parts.put("tally", self.tally)
        parts.put("clock", self.clock)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts, expected: Collection[Problem], features: int) -> Machine:
        """Return the machine that parts describe, for one of the problems expected."""
        problem, kernel = problem_of(parts, expected), kernel_of(parts)
        keep = parts.text("keep", ("last", "average", "vote"))
        machine = cls(problem, kernel, parts.real("constant"), keep, features)
        machine.given, machine.square, machine.widest = parts.whole("given"), parts.real("square"), parts.real("widest")
        machine.tiles = tiles_of(parts, kernel, features)
        count = sum(tile.shape[0] for tile in machine.tiles)
        machine.support = parts.array("support", np.int64, (count,), 0, machine.given - 1)
        machine.coef = parts.array("coef", np.float64, (count, columns(problem)))
        machine.drift = None if keep == "last" else parts.array("drift", np.float64, machine.coef.shape)
        machine.tally, machine.clock = parts.counts("tally", counters(problem)), parts.counts("clock", 1)
        if keep == "vote":
            machine.moves = parts.records("moves", MOVE, move_bounds(problem, count, machine.seen))
        return machine

    def copy(self) -> Machine:
        """The same, sharing nothing that learning changes: tiles, numbers and moves are replaced, never written to."""
        twin = copy.copy(self)
        twin.coef, twin.tally, twin.clock = self.coef.copy(), self.tally.copy(), self.clock.copy()
        twin.drift = None if self.drift is None else self.drift.copy()
        return twin

    def prepare(self, rows: Rows) -> None:
        """Nothing: kernels between rows of every layout and precision can be computed."""

    def absorb(self, slots: NDArray, which: NDArray, kept: Any, taken: NDArray, clock: int) -> None:
        """Take in the moves of a block: `taken` (rows, columns) of the rows `which` of this call, of which `kept` is to be
        kept. `slots` tells for each row of this call its place in the support, or −1; it is brought up to date."""
        moved = np.flatnonzero(taken.any(axis=1))
        new = moved[slots[which[moved]] < 0]
        if len(new):
            slots[which[new]] = len(self.support) + np.arange(len(new))
            self.tiles = tiled(self.tiles, kept[new])
            self.support = np.concatenate([self.support, which[new] + self.given])
            more = np.zeros((len(new), taken.shape[1]))
            self.coef = np.concatenate([self.coef, more])
            self.drift = None if self.drift is None else np.concatenate([self.drift, more])
        places, clocks = slots[which[moved]], clock + moved
        self.coef[places] += taken[moved]
        if self.drift is not None:
            self.drift[places] += clocks[:, None] * taken[moved]
        if self.keep == "vote":
            self.moves = np.concatenate([self.moves, _moves(self.problem, places, clocks, taken[moved])])

    def average(self) -> NDArray:
        """(support, columns): the coefficients of the mean of the weights after every example seen."""
        if self.drift is None:
            raise AttributeError("keep='last' keeps no average; use keep='average' or keep='vote'")
        return self.coef - self.drift / max(self.seen, 1)

    def kept_coef(self) -> NDArray:
        """(support, columns): the coefficients that predict; with votes, the last."""
        return self.average() if self.keep == "average" else self.coef

    def vectors(self) -> Any:
        """What is kept of the support, in one piece."""
        kept: Any = self.tiles[0] if self.tiles else np.empty((0, self.features))
        for tile in self.tiles[1:]:
            kept = stacked(kept, tile)
        return kept

    def decision(self, X: Any, threads: int = 1) -> NDArray:
        """The decision values of rows: see `problems.decide`."""
        voting = self.keep == "vote"
        step = max(1, min(PIECE, AT_ONCE // max(len(self.support), 1))) if voting else PIECE
        pieces = [X[start : start + step] for start in range(0, X.shape[0], step)]
        with workers(self.kernel, threads if len(pieces) > 1 else 1) as each:
            scores = list(each(self._voted if voting else partial(self._scored, self.kept_coef()), pieces))
        return decide(self.problem, np.concatenate(scores))

    def _scored(self, coef: NDArray, rows: Any) -> NDArray:
        return weighed(self.kernel, rows, self.tiles, coef) + self.constant**2 * coef.sum(axis=0)

    def _voted(self, rows: Any) -> NDArray:
        inner = with_all(self.kernel, rows, self.tiles) + self.constant**2
        return poll(self.problem, inner, np.zeros((len(inner), columns(self.problem))), self.moves, self.seen)


def _moves(problem: Problem, places: NDArray, clocks: NDArray, taken: NDArray) -> NDArray:
    """The moves that put `taken` (rows, columns) into the weights, as records: one for each row and column, or where one
    decision is among all classes, one for each row and rival, whose loss is the label's gain."""
    joint = isinstance(problem, JOINT)
    i, column = np.nonzero(taken < 0 if joint else taken)
    moves = np.zeros(len(i), MOVE)
    moves["row"], moves["clock"], moves["tau"] = (
        places[i],
        clocks[i],
        np.abs(taken[i, column]) if joint else taken[i, column],
    )
    moves["gains"], moves["loses"] = (taken.argmax(axis=1)[i], column) if joint else (column, -1)
    return moves


class BlockTrainer(NamedTuple):
    """What `train` works with: a machine that learns from rows of X."""

    machine: Machine
    rule: Any  # of rosenblatt.rules
    X: Any
    examples: Examples
    visits: Visits
    slots: NDArray  # (rows of X,): their places in the support, −1 for those that are not in it

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.machine.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        mistakes, updates = 0, 0
        try:
            with workers(self.machine.kernel, self.visits.threads if len(order) > FEW else 1) as each:
                for start in range(0, len(order), BLOCK):
                    done = self._block(order[start : start + BLOCK], each)
                    mistakes += done.mistakes
                    updates += done.updates
        except MemoryError:
            raise MemoryError(
                f"no room for a support of more than {len(self.machine.support)} rows; Forgetron, Projectron and the other "
                "learners on a budget keep as many as they are told to"
            ) from None
        return Progress(len(order), mistakes, updates, -1), updates == 0

    def _block(self, which: NDArray, each: Callable) -> Progress:
        machine, kernel, given = self.machine, self.machine.kernel, self.examples
        rows, kept = self.X[which], kernel.keep(self.X, which)
        scores = weighed(kernel, rows, machine.tiles, machine.coef, each)
        gram = matrix(kernel, rows, kept).astype(np.float64, copy=False)
        lengths = gram.diagonal() + machine.constant**2
        # Weights and lengths are given even where all are 1 or nobody asks: one compiled scan then serves all.
        weight = np.ones((len(which), 2)) if given.weight is None else given.weight[which]
        examples = Examples(_units(len(which)), given.labels[which], weight, machine.constant, lengths)
        w = np.zeros((len(which) + 1, scores.shape[1]))
        w[-1] = machine.constant * machine.coef.sum(axis=0)
        weights, clock = Weights(w, None, machine.tally, machine.clock), machine.seen
        done = scan(examples, weights, machine.problem, self.rule, moves_per_row(machine.problem), 0, scores, gram)
        if done.broken >= 0:
            raise NumericFailure(int(which[done.broken]))
        taken = w[:-1]
        machine.square += float((taken * (2 * scores + taken * lengths[:, None])).sum())  # ‖w + τx‖² − ‖w‖², move by move
        machine.widest = max(machine.widest, float(lengths.max()))
        machine.absorb(self.slots, which, kept, taken, clock)
        return done

    def size(self) -> float:
        """The norm of all weights; an error if it shows that the kernel is not positive."""
        machine = self.machine
        if machine.square < -1e-3 * machine.widest * float((machine.coef**2).sum()):
            raise ValueError(
                f"the weights have the squared norm {machine.square:.3g}, so the kernel is not positive: it is no inner "
                "product, and the mistake bound does not hold; use a positive kernel, such as 'rbf'"
            )
        return float(np.sqrt(max(machine.square, 0.0)))

    def weights_now(self) -> NDArray:
        """The coefficients."""
        return self.machine.coef

    def backup(self, order: NDArray) -> Callable[[], None]:
        """Nothing: a stream is learned into a copy of the model, since kernels may fail at any time."""
        return lambda: None

    def finite(self, order: NDArray) -> bool:
        """Whether every coefficient is a finite number."""
        return bool(np.isfinite(self.machine.coef).all())


def _units(rows: int) -> CSR:
    """The unit vectors of a space with this many dimensions."""
    starts = np.arange(rows + 1, dtype=np.int64)
    return CSR(frozen(starts), frozen(starts[:-1].astype(np.uint32)), frozen(np.ones(rows)))


class KernelName(NamedTuple):
    """The name of a kernel, or a function that computes one."""

    @property
    def type_name(self) -> str:
        return "{" + ", ".join(f'"{word}"' for word in KERNELS) + "} or function"

    def refusal(self, value: Any) -> str | None:
        if callable(value) or (isinstance(value, str) and value in KERNELS):
            return None
        return ", ".join(repr(word) for word in KERNELS) + " or a function of two sets of rows"


def takes_rows(estimator: Any) -> bool:
    """True for what can learn from a stream; an AttributeError otherwise."""
    if estimator.kernel == "precomputed":
        raise AttributeError(
            "partial_fit is for rows: with kernel='precomputed' a later call could not tell its kernels with earlier rows; "
            "use fit, or another kernel"
        )
    return True


@dataclass(eq=False, repr=False, match_args=False)
class KernelClassifier(Classifier, OrderParameters, EpochParameters, ThreadParameters):
    """A classifier whose weights are a sum over rows, in the feature space of a kernel.

    Parameters
    ----------
    kernel
        "linear" is x·z, "poly" (gamma·x·z + coef0)**degree, "rbf" exp(−gamma‖x − z‖²), and "precomputed" stands for the
        values in X. A function `kernel(X, Z)` returns an array with a row for each row of X and a column for each row of
        Z. A function or a matrix that is not symmetric, or whose matrix of kernels of up to 100 rows has a negative
        eigenvalue, is refused.
    degree
        That of "poly".
    gamma
        That of "rbf" and "poly". None: 1/features, which suits standardised features; otherwise 1/(features · variance) is
        a good start.
    coef0
        That of "poly"; with 1 all products of up to `degree` features take part.
    order
        How each epoch visits the rows: shuffled anew, or in the order given.
    """

    kernel: str | KernelFunction = parameter("rbf", KernelName())
    _: KW_ONLY
    degree: int = parameter(3, Number(1, whole=True))
    gamma: float | None = parameter(None, Number(0, open_low=True, optional=True))
    coef0: float = parameter(1.0, Number(0))
    order: str = parameter("shuffle", OneOf(("shuffle", "cyclic")))

    fit_intercept = False
    _problems = {"joint": Joint, "ovr": OneVsRest}

    def decision_function(self, X: Any) -> NDArray:
        """How each row scores: one value for two classes, ≥ 0 for the second; else one a class, the highest wins.

        X has rows, or with `kernel="precomputed"` the kernels of rows with all training rows.
        """
        check_is_fitted(self)
        return self._model.decision(read_rows(self, X), available_threads(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def support_(self) -> NDArray:
        return self._fitted().support

    @property
    def support_vectors_(self) -> Any:
        model = self._fitted()
        if isinstance(model.kernel, Given):
            raise AttributeError("with kernel='precomputed' there are no rows to show; support_ has their numbers")
        return model.vectors()

    @property
    def dual_coef_(self) -> NDArray:
        return self._fitted().kept_coef().T

    def _kernel(self, features: int) -> Kernel:
        return Function(self.kernel) if callable(self.kernel) else KERNELS[self.kernel](self, features)

    def _kernel_for(self, rows: Rows, features: int) -> Kernel:
        """The kernel of a new model, for rows of this many features."""
        self._check_finite(rows.values, rows)
        if self.kernel == "precomputed" and count(rows) != features:
            raise ValueError(
                f"kernel='precomputed' learns from the square matrix of the kernels of all rows with all rows; "
                f"got one of shape {(count(rows), features)}"
            )
        return self._kernel(features)

    def _model_to_stream(self, plan: Plan, rows: Rows, features: int, classes: int) -> Any:
        return super()._model_to_stream(plan, rows, features, classes).copy()

    def _look_at(self, model: Any, X: Any, rows: Rows, live: NDArray) -> None:
        """Refuse rows and kernels that cannot be learned from, before anything is allocated."""
        if X.shape[1] != model.features:
            raise ValueError(f"X has {X.shape[1]} features, but this model began to learn with {model.features}")
        self._check_finite(X, rows)
        refuse_non_positive(model.kernel, X, live)

    def _with_features(self, model: Any, features: int) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot take other columns than it began with: it keeps whole rows, and its kernel "
            "compares them with all of their columns; fit it with all of them"
        )

    _always_resumes = True  # what predicts is nearly all there is

    def _model_to_parts(self, resume: bool) -> Parts:
        return self._model.to_parts()

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        then, now = self._model.kernel, self._kernel(self._model.features)
        return [("kernel, degree, gamma or coef0", True, type(then) is type(now) and then == now)]


class KernelMachine(KernelClassifier):
    """w += τΔ in the feature space of a kernel, with τ from a rule that sees the margin and the length of Δ."""

    @abstractmethod
    def _rule(self) -> Any:
        """The rule of an update, from `rosenblatt.rules`."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from X (rows, features) and y (rows,) until one of the reasons to stop; the estimator itself.

        With `kernel="precomputed"` X is the matrix of the kernels of all rows with all rows. Rows of weight 0 are not
        there. An error leaves the estimator as it was; Ctrl-C finishes the epoch, stores the model and then interrupts.
        """
        return self._fit(X, y, sample_weight)

    @available_if(takes_rows)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from these rows, once, in the order given; the estimator itself.

        Cutting a stream of rows into calls in any way gives the same model. `classes` lists all classes on the first
        call. `order` and the reasons to stop do not apply. An error leaves the estimator as it was.
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def mistake_bound(self, radius: float, margin: float, classes: int | None = None) -> float:
        """Compute the most updates that rows can cause from weights of zero, if they can be separated.

        Radius and margin are measured in the feature space; `radius_` is the radius of the rows met.

        Parameters
        ----------
        radius : float
            The length of the longest row.
        margin : float
            The margin of a unit vector that separates two classes; of more, the least margin of the unit vectors that
            separate each class from the rest (`multiclass="ovr"`) or each pair ("ovo"), or with "joint" the least lead of
            a row's class over the others, by weight vectors of Frobenius norm 1.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        return self._bound_for(classes, radius, lambda radius: self._rule().bound(radius, margin))

    @property
    def last_dual_coef_(self) -> NDArray:
        return self._fitted().coef.T

    @property
    def average_dual_coef_(self) -> NDArray:
        return self._fitted().average().T

    @property
    def intercept_(self) -> NDArray:
        model = self._fitted()
        return model.constant**2 * model.kept_coef().sum(axis=0)

    @property
    def radius_(self) -> float:
        return float(np.sqrt(self._fitted().widest))

    def _initial_model(self, plan: Plan, rows: Rows, features: int, classes: int, init: Any) -> Machine:
        return Machine(plan.problem(classes), self._kernel_for(rows, features), plan.constant, self.keep, features)

    def _model_from_parts(self, parts: Parts) -> Machine:
        return Machine.from_parts(parts, self._possible_problems(), self.n_features_in_)

    def _make_trainer(self, plan: Plan, model: Machine, X: Any, examples: Examples, visits: Visits) -> BlockTrainer:
        self._look_at(model, X, examples.rows, visits.live)
        return BlockTrainer(model, self._rule(), X, examples, visits, np.full(X.shape[0], -1))

    def _store(self, model: Machine, X: Any, learner: BlockTrainer) -> None:
        model.given += X.shape[0]

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        model = self._model
        return [
            *super()._unchangeable(plan),
            ("keep", model.keep, self.keep),
            ("fit_intercept or intercept_scaling", model.constant, plan.constant),
            ("multiclass", type(model.problem), type(plan.problem(model.problem.classes))),
        ]


@with_parameters
class KernelPerceptron(KernelMachine, InterceptParameters, KeepParameters, ClassWeightParameters):
    """Learns separators in the feature space of a kernel from its mistakes, as the textbook does, but by matrix products.

    On a row with margin m = y·Σ αⱼ K(xⱼ, x) ≤ `margin`, the row joins the sum with α = y (Aizerman, Braverman and Rozonoer
    1964). If K(x, x) ≤ R² and some unit vector of the feature space separates the rows with margin γ, there are at most
    (R² + 2·margin)/γ² updates, in any order. `keep="vote"` is the voted perceptron of Freund and Schapire (1999).

    Memory is that of the rows that caused updates and one coefficient for each of them and each weight vector; with votes
    also 48 bytes an update. The kernel matrix of all rows is never made. The learners of `kernel.budget` keep no
    more rows than they are told to.

    Parameters
    ----------
    margin
        Update whenever the margin is at most this.
    fit_intercept
        Whether to learn an intercept: K(x, z) + intercept_scaling² takes the place of K. "rbf" and "poly" rarely need one.
    intercept_scaling
        The size of that constant feature.
    keep
        Which weights predict: the last, the mean of those after every example, or all of them by vote, each with as many
        votes as examples it survived.
    multiclass
        Each class against the rest, or one argmax over all classes. All learn in one pass.

    Attributes
    ----------
    support_ : (support,) array
        The numbers of the rows that caused updates, each once, in the order of their first; counted through all calls.
    support_vectors_ : (support, features) array or CSR matrix
        These rows; not for "precomputed".
    dual_coef_ : (vectors, support) array
        How much of each is in each weight vector that predicts (with votes, in the last). One vector for two classes, else
        one a class.
    last_dual_coef_, average_dual_coef_ : (vectors, support) arrays
        Those of the last weights, and of the mean of all; the mean is not known with `keep="last"`.
    intercept_ : (vectors,) array
        Added to every score; zero without `fit_intercept`.
    radius_ : float
        The length in the feature space of the longest row met, √max K(x, x), constant feature included.
    classes_, n_mistakes_, n_updates_, n_seen_, n_iter_, history_, stop_reason_
        As those of `Perceptron`.

    Examples
    --------
    >>> from rosenblatt import KernelPerceptron
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["same", "differ", "differ", "same"]
    >>> clf = KernelPerceptron(kernel="poly", degree=2, gamma=1, order="cyclic").fit(X, y)
    >>> clf.predict(X).tolist(), clf.stop_reason_
    (['same', 'differ', 'differ', 'same'], 'converged')
    >>> clf.support_, clf.dual_coef_, clf.n_updates_
    (array([0, 1, 2, 3]), array([[ 7., -5., -5.,  4.]]), 21)
    """

    margin: float = parameter(0.0, Number(0))
    fit_intercept: bool = parameter(False)
    keep: str = parameter("last", OneOf(("last", "average", "vote")))
    multiclass: str = parameter("ovr", OneOf(("ovr", "joint")))

    def _rule(self) -> rules.Perceptron:
        return rules.Perceptron(float(self.margin), 1.0)
