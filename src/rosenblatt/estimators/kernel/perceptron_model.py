"""The perceptron in the feature space of a kernel. Its weights are a sum over the rows it made mistakes on, so a score is a
sum of kernels with those rows, and nothing else of the space is ever needed.

It learns by the blocks of `engine.blocks`. The scores of a block of rows are a matrix of kernels with the support times its
coefficients; what a mistake inside the block changes for the rows after it, the kernel matrix of the block tells. For the
scan the rows of the block are unit vectors, whose Gram matrix happens to be that kernel matrix: what it returns as their
weights are the new coefficients. In exact arithmetic this is the kernel perceptron, row by row, whatever the size of the
blocks. The kernel matrix of all rows is never made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.blocks import scan
from rosenblatt.engine.loop import Progress, scratch_for
from rosenblatt.engine.model import move_bounds, problem_of
from rosenblatt.engine.problems import JOINT, KINDS, MOVE, Problem, columns, counters, moves_per_row
from rosenblatt.engine.rows import CSR, Examples, frozen
from rosenblatt.engine.train import NO_LIMIT, NumericFailure
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.votes import AT_ONCE, poll
from rosenblatt.engine.weights import Weights
from rosenblatt.errors import InvalidData
from rosenblatt.estimators.kernel.gram import (
    KERNEL_TYPES,
    Kernel,
    Matrix,
    append_tiles,
    kernel_from_parts,
    kernel_matrix,
    kernels_with_tiles,
    put_tiles,
    stack,
    tiles_from_parts,
    weighted_sums,
)
from rosenblatt.estimators.kernel.kernel_model import PIECE, BlockTrainer, KernelModel
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import encode_record


class KernelPerceptronModel(KernelModel):
    """The rows that mistakes were made on, and how much of each is in the weights.

    Coefficients are float64. A move made at some example is in the weights from then on, so the average of all weights has
    coef − drift/clock, and the votes of all weights follow from the moves: see `weights` and `dual`.
    """

    def __init__(self, problem: Problem, kernel: Kernel, constant: float, keep: str, features: int):
        super().__init__(problem, kernel, features)
        self.constant = constant
        self.keep = keep
        self.tiles: tuple[Matrix, ...] = ()  # what is kept of the rows of the support
        self.support = np.empty(0, np.int64)  # their numbers, counted through all calls
        self.coef = np.zeros((0, columns(problem)))  # (support, columns)
        self.drift = None if keep == "last" else self.coef.copy()
        self.moves = np.empty(0, MOVE)  # `row` counts in the support; only for votes
        self.tally = np.zeros(counters(problem), np.int64)
        self.clock = np.zeros(1, np.int64)
        self.square = 0.0  # ‖w‖² of all weights
        self.widest = 0.0  # the largest K(x, x) met

    @property
    def seen(self) -> int:
        """Examples visited."""
        return int(self.clock[0])

    def to_parts(self, resume: bool = True) -> Parts:
        """Return all of it as parts, whatever `resume` says: what predicts is nearly all there is."""
        parts = Parts({
            "problem": encode_record(self.problem, KINDS), "constant": self.constant, "keep": self.keep,
            "given": self.n_rows, "square": self.square, "widest": self.widest,
            "kernel": encode_record(self.kernel, KERNEL_TYPES),
        })  # fmt: skip
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
    def from_parts(cls, parts: Parts, expected: Collection[Problem], features: int) -> KernelPerceptronModel:
        """Return the model that parts describe, for one of the problems expected."""
        problem, kernel = problem_of(parts, expected), kernel_from_parts(parts)
        keep = parts.text("keep", ("last", "average", "vote"))
        model = cls(problem, kernel, parts.real("constant"), keep, features)
        model.n_rows, model.square, model.widest = parts.whole("given"), parts.real("square"), parts.real("widest")
        model.tiles = tiles_from_parts(parts, kernel, features)
        count = sum(tile.shape[0] for tile in model.tiles)
        model.support = parts.array("support", np.int64, (count,), 0, model.n_rows - 1)
        model.coef = parts.array("coef", np.float64, (count, columns(problem)))
        model.drift = None if keep == "last" else parts.array("drift", np.float64, model.coef.shape)
        model.tally, model.clock = parts.counts("tally", counters(problem)), parts.counts("clock", 1)
        if keep == "vote":
            model.moves = parts.records("moves", MOVE, move_bounds(problem, count, model.seen))
        return model

    def copy(self) -> KernelPerceptronModel:
        """The same, sharing nothing that learning changes: tiles, numbers and moves are replaced, never written to."""
        twin = copy.copy(self)
        twin.coef, twin.tally, twin.clock = self.coef.copy(), self.tally.copy(), self.clock.copy()
        twin.drift = None if self.drift is None else self.drift.copy()
        return twin

    def add(self, slots: NDArray, which: NDArray, kept: Matrix, steps: NDArray, clock: int) -> None:
        """Add the `steps` (rows, columns) of a block, made on the rows `which` of this call, of which `kept` is to be kept.
        `slots` tells for each row of this call its place in the support, or −1; it is brought up to date."""
        moved = np.flatnonzero(steps.any(axis=1))
        new = moved[slots[which[moved]] < 0]
        if len(new):
            slots[which[new]] = len(self.support) + np.arange(len(new))
            self.tiles = append_tiles(self.tiles, kept[new])
            self.support = np.concatenate([self.support, which[new] + self.n_rows])
            more = np.zeros((len(new), steps.shape[1]))
            self.coef = np.concatenate([self.coef, more])
            self.drift = None if self.drift is None else np.concatenate([self.drift, more])
        places, clocks = slots[which[moved]], clock + moved
        self.coef[places] += steps[moved]
        if self.drift is not None:
            self.drift[places] += clocks[:, None] * steps[moved]
        if self.keep == "vote":
            self.moves = np.concatenate([self.moves, _moves(self.problem, places, clocks, steps[moved])])

    def average(self) -> NDArray:
        """(support, columns): the coefficients of the mean of the weights after every example seen."""
        if self.drift is None:
            raise AttributeError("keep='last' keeps no average; use keep='average' or keep='vote'")
        return self.coef - self.drift / max(self.seen, 1)

    def predicting_coef(self) -> NDArray:
        """(support, columns): the coefficients that predict; with votes, the last."""
        return self.average() if self.keep == "average" else self.coef

    def support_vectors(self) -> Matrix:
        """What is kept of the support, in one piece."""
        return reduce(stack, self.tiles) if self.tiles else np.empty((0, self.features))

    def _rows_at_once(self) -> int:
        return max(1, min(PIECE, AT_ONCE // max(len(self.support), 1))) if self.keep == "vote" else PIECE

    def _score_function(self) -> Callable[[Matrix], NDArray]:
        return self._vote if self.keep == "vote" else partial(self._scores, self.predicting_coef())

    def _scores(self, coef: NDArray, rows: Matrix) -> NDArray:
        return weighted_sums(self.kernel, rows, self.tiles, coef) + self.constant * self.constant * coef.sum(axis=0)

    def _vote(self, rows: Matrix) -> NDArray:
        inner = kernels_with_tiles(self.kernel, rows, self.tiles) + self.constant * self.constant
        return poll(self.problem, inner, np.zeros((len(inner), columns(self.problem))), self.moves, self.seen)


def _moves(problem: Problem, places: NDArray, clocks: NDArray, steps: NDArray) -> NDArray:
    """The moves that put `steps` (rows, columns) into the weights, as records: one for each row and column, or where one
    decision is among all classes, one for each row and rival, whose loss is the label's gain."""
    joint = isinstance(problem, JOINT)
    i, column = np.nonzero(steps < 0 if joint else steps)
    moves = np.zeros(len(i), MOVE)
    moves["row"], moves["clock"] = places[i], clocks[i]
    moves["tau"] = np.abs(steps[i, column]) if joint else steps[i, column]
    moves["gains"], moves["loses"] = (steps.argmax(axis=1)[i], column) if joint else (column, -1)
    return moves


class KernelPerceptronTrainer(BlockTrainer[KernelPerceptronModel]):
    """Learns by a rule of `rosenblatt.rules`."""

    def __init__(self, model: KernelPerceptronModel, rule: Any, X: Matrix, examples: Examples, visits: Visits):
        super().__init__(model, X, examples, visits)
        self.rule = rule
        self.slots = np.full(X.shape[0], -1)  # the places of rows in the support, −1 for those that are not in it

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        try:
            return super().epoch(order, budget)
        except MemoryError:
            raise MemoryError(
                f"out of memory with {len(self.model.support)} support rows; Forgetron, Projectron and the other "
                "learners on a budget keep at most `budget` rows"
            ) from None

    def _learn_block(self, which: NDArray, each: Callable) -> int:
        model, kernel, examples = self.model, self.model.kernel, self.examples
        rows, kept = self.X[which], kernel.keep(self.X, which)
        scores = weighted_sums(kernel, rows, model.tiles, model.coef, each)
        gram = kernel_matrix(kernel, rows, kept).astype(np.float64, copy=False)
        lengths = gram.diagonal() + model.constant * model.constant
        # Weights and lengths are given even where all are 1 or nobody asks: one compiled scan then serves all.
        weight = np.ones((len(which), 2)) if examples.weight is None else examples.weight[which]
        block = Examples(_units(len(which)), examples.labels[which], weight, model.constant, lengths)
        w = np.zeros((len(which) + 1, scores.shape[1]))
        w[-1] = model.constant * model.coef.sum(axis=0)
        weights, clock = Weights(w, None, model.tally, model.clock), model.seen
        scratch = scratch_for(w, model.problem, moves_per_row(model.problem), None)
        done = scan(block, weights, model.problem, self.rule, scratch, 0, scores, gram)
        if done.broken >= 0:
            raise NumericFailure(int(which[done.broken]))
        steps = w[:-1]
        model.square += float((steps * (2 * scores + steps * lengths[:, None])).sum())  # ‖w + τx‖² − ‖w‖², move by move
        model.widest = max(model.widest, float(lengths.max()))
        model.add(self.slots, which, kept, steps, clock)
        return done.mistakes

    def size(self) -> float:
        """The norm of all weights; an error if it shows that the kernel is not positive."""
        model = self.model
        if model.square < -1e-3 * model.widest * float((model.coef**2).sum()):
            raise InvalidData(
                f"the kernel is not positive: the weights have the squared norm {model.square:.3g}, so it is no inner "
                "product, and the mistake bound does not hold",
                hint="use a positive kernel, such as 'rbf'",
            )
        return float(np.sqrt(max(model.square, 0.0)))

    def weights_now(self) -> NDArray:
        """The coefficients of the last weights."""
        return self.model.coef


def _units(rows: int) -> CSR:
    """The unit vectors of a space with this many dimensions."""
    starts = np.arange(rows + 1, dtype=np.int64)
    return CSR(frozen(starts), frozen(starts[:-1].astype(np.uint32)), frozen(np.ones(rows)))
