"""What kernel learners on a budget have learned, and the loop by which all of them learn.

Many classes are learned one against the rest, and each weight vector holds rows of its own, so that the vectors learn
from a block of rows in parallel. The kernels of the block with the rows held, and among each other, are matrix products;
the rest is `policies.scan`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from functools import partial, reduce
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.model import problem_of
from rosenblatt.engine.problems import KINDS, Binary, Problem, columns
from rosenblatt.engine.rows import frozen
from rosenblatt.engine.train import NumericFailure
from rosenblatt.errors import DamagedModel, InvalidData
from rosenblatt.estimators.kernel.gram import (
    KERNEL_TYPES,
    GaussianKernel,
    Kernel,
    Matrix,
    PrecomputedKernel,
    append_tiles,
    kept_from_parts,
    kernel_from_parts,
    kernel_matrix,
    put_kept,
    stack,
    weighted_sums,
)
from rosenblatt.estimators.kernel.kernel_model import BlockTrainer, KernelModel
from rosenblatt.estimators.kernel.policies import NEEDS, POLICIES, BlockState, Policy, active_gram, scan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import check_whole, decode_record, encode_record

_REALS = ("coef", "scales", "gram", "factor", "memory")


class SupportSet(NamedTuple):
    """The rows that one weight vector holds between blocks, oldest first. Learning replaces it and writes to none of it."""

    kept: Matrix | None  # what is kept of the rows; None before the first
    numbers: NDArray  # (held,) their numbers, counted through all calls
    coef: NDArray  # (held,)
    scales: NDArray  # (held,) what kernels are divided by: √K(x, x), or 1
    gram: NDArray
    factor: NDArray
    memory: NDArray
    drawn: int  # random numbers used so far


class Block(NamedTuple):
    """Some rows in the order of their visit, and their kernels among each other."""

    which: NDArray
    rows: Matrix
    kept: Matrix
    labels: NDArray
    weight: NDArray | None  # (rows, 2): those of the examples and of their classes
    scales: NDArray
    gram: NDArray


class Support(NamedTuple):
    """All rows held by any weight vector, each once."""

    numbers: NDArray
    kept: Matrix
    coef: NDArray  # (rows, columns), those of the kernel as it is


class BudgetModel(KernelModel):
    """The rows that each weight vector holds, and their coefficients."""

    def __init__(self, problem: Problem, kernel: Kernel, policy: Policy, normalize: bool, features: int, seed: int):
        super().__init__(problem, kernel, features)
        self.policy = policy
        self.normalize = normalize
        self.seed = seed
        none, square = np.empty(0), np.empty((0, 0))
        empty = SupportSet(None, np.empty(0, np.int64), none, none, square, square, np.zeros(4), 0)
        self.held = [empty] * columns(problem)
        self.tally = np.zeros(columns(problem), np.int64)
        self.clock = 0
        self._merged: Support | None = None

    @property
    def seen(self) -> int:
        """Examples visited."""
        return self.clock

    def to_parts(self, resume: bool = True) -> Parts:
        """Return all of it as parts, whatever `resume` says: what predicts is nearly all there is."""
        parts = Parts({
            "problem": encode_record(self.problem, KINDS), "policy": encode_record(self.policy, POLICIES),
            "normalize": bool(self.normalize), "seed": self.seed, "given": self.n_rows, "clock": self.clock,
            "drawn": [held.drawn for held in self.held], "kernel": encode_record(self.kernel, KERNEL_TYPES),
        })  # fmt: skip
        parts.put("tally", self.tally)
        for vector, held in enumerate(self.held):
            if held.kept is not None:
                put_kept(parts, f"{vector}/rows", held.kept)
            for name in ("numbers", *_REALS):
                parts.put(f"{vector}/{name}", getattr(held, name))
        return parts

    @classmethod
    def from_parts(cls, parts: Parts, expected: Collection[Problem], features: int) -> BudgetModel:
        """Return what parts describe, for one of the problems expected."""
        problem, kernel = problem_of(parts, expected), kernel_from_parts(parts)
        policy = decode_record(parts.facts["policy"], POLICIES)
        if policy.budget < 1:
            raise DamagedModel(f"a budget must be at least 1; got {policy.budget}")
        made = cls(problem, kernel, policy, parts.flag("normalize"), features, parts.whole("seed"))
        made.n_rows, made.clock = parts.whole("given"), parts.whole("clock")
        made.tally = parts.counts("tally", columns(problem))
        drawn = parts.values("drawn", int, len(made.held))
        made.held = [made._held_from_parts(parts, vector, check_whole(n, "drawn")) for vector, n in enumerate(drawn)]
        return made

    def _held_from_parts(self, parts: Parts, vector: int, drawn: int) -> SupportSet:
        """What one weight vector holds, from parts."""
        numbers = parts.array(f"{vector}/numbers", np.int64, (None,), 0, self.n_rows - 1)
        count = len(numbers)
        square = {name: (count,) * 2 if name in self.needs else (0, 0) for name in ("gram", "factor")}
        shapes = {"coef": (count,), "scales": (count,), "memory": (4,), **square}
        reals = {name: parts.array(f"{vector}/{name}", np.float64, shapes[name]) for name in _REALS}
        if not ((reals["scales"] > 0).all() and (reals["factor"].diagonal() > 0).all()):
            raise DamagedModel("the divisor must be positive")
        there = f"{vector}/rows" in (*parts.facts, *parts.arrays)
        kept = kept_from_parts(parts, f"{vector}/rows", self.kernel, count, self.features) if there or count else None
        return SupportSet(kept=kept, numbers=numbers, drawn=drawn, **reals)

    @property
    def needs(self) -> tuple[str, ...]:
        """What the policy needs: see `policies`."""
        return NEEDS[type(self.policy)]

    def copy(self) -> BudgetModel:
        """The same, sharing nothing that learning changes."""
        twin = copy.copy(self)
        twin.held, twin.tally = list(self.held), self.tally.copy()
        return twin

    def learn(self, vector: int, block: Block) -> tuple[NDArray, int]:
        """(scores that the rows met, row whose score was not a number or −1), after this weight vector learned them."""
        held, rows, size = self.held[vector], len(block.which), len(self.held[vector].coef)
        near = np.empty((rows, size + rows))
        near[:, size:] = block.gram
        if size:
            near[:, :size] = kernel_matrix(self.kernel, block.rows, held.kept) / np.outer(block.scales, held.scales)
        factor, chance = np.empty((0, 0)), np.empty(0)
        if "factor" in self.needs:
            factor = np.zeros((size + rows,) * 2)
            factor[:size, :size] = held.factor
        if "chance" in self.needs:
            chance = self._random_numbers(vector, held.drawn, rows)
        active, coef = np.arange(size + rows), np.zeros(size + rows)
        coef[:size] = held.coef
        memory, drawn = held.memory.copy(), np.zeros(1, np.int64)
        state = BlockState(frozen(held.gram), near, active, coef, np.full(1, size), memory, factor, chance, drawn)
        binary = isinstance(self.problem, Binary)
        own = block.labels == (1 if binary else vector)
        weight = np.ones(rows)
        if block.weight is not None:
            weight = block.weight[:, 0] * np.where(own | binary, block.weight[:, 1], 1.0)
        scores = np.empty(rows)
        broken, updates = scan(self.policy, state, np.where(own, 1.0, -1.0), weight, scores)
        if broken < 0 and updates:
            self.tally[vector] += updates
            self.held[vector] = self._support_after(held, state, block)
        return scores, broken

    def _support_after(self, before: SupportSet, state: BlockState, block: Block) -> SupportSet:
        """The rows held after a block, of those held before it and those of the block."""
        size, known = int(state.size[0]), len(before.coef)
        active, rest = state.active[:size], before
        if not np.array_equal(active, np.arange(known)):
            all_kept = block.kept if before.kept is None else stack(before.kept, block.kept)
            numbers = np.concatenate([before.numbers, block.which + self.n_rows])
            scales = np.concatenate([before.scales, block.scales])
            gram = active_gram(state) if "gram" in self.needs else before.gram
            rest = before._replace(kept=all_kept[active], numbers=numbers[active], scales=scales[active], gram=gram)
        factor = state.factor[:size, :size].copy() if "factor" in self.needs else before.factor
        drawn = before.drawn + int(state.drawn[0])
        return rest._replace(coef=state.coef[:size].copy(), factor=factor, memory=state.memory, drawn=drawn)

    def _random_numbers(self, vector: int, drawn: int, count: int) -> NDArray:
        """The next numbers of a sequence that belongs to a weight vector, however the stream is cut."""
        source = np.random.PCG64([self.seed, vector])
        return np.random.Generator(source.advance(drawn)).random(count)

    def merged(self) -> Support:
        """All rows held, each once."""
        if self._merged is None:
            holding = [(column, held) for column, held in enumerate(self.held) if len(held.coef)]
            if not holding:
                return Support(np.empty(0, np.int64), np.empty((0, self.features)), np.zeros((0, len(self.held))))
            kept = reduce(stack, [held.kept for _, held in holding if held.kept is not None])
            numbers, first, place = np.unique(
                np.concatenate([held.numbers for _, held in holding]), return_index=True, return_inverse=True
            )
            coef = np.zeros((len(numbers), len(self.held)))
            columns = np.concatenate([np.full(len(held.coef), column) for column, held in holding])
            np.add.at(coef, (place, columns), np.concatenate([held.coef / held.scales for _, held in holding]))
            self._merged = Support(numbers, kept[first], coef)
        return self._merged

    @property
    def support(self) -> NDArray:
        """The numbers of the rows held."""
        return self.merged().numbers

    def support_vectors(self) -> Matrix:
        """What is kept of them."""
        return self.merged().kept

    def predicting_coef(self) -> NDArray:
        """(support, columns): the coefficients that predict, those of the kernel as it is."""
        return self.merged().coef

    def _score_function(self) -> Callable[[Matrix], NDArray]:
        _, kept, coef = self.merged()
        return partial(weighted_sums, self.kernel, tiles=append_tiles((), kept), coef=coef)

    def norm(self, X: Matrix) -> float:
        """The length of all weights in the feature space."""
        total = 0.0
        for held in self.held:
            if len(held.coef):
                rows = X[held.kept] if isinstance(self.kernel, PrecomputedKernel) else held.kept
                coef = held.coef / held.scales
                total += float(coef @ kernel_matrix(self.kernel, rows, held.kept) @ coef)
        return sqrt(max(total, 0.0))


class BudgetTrainer(BlockTrainer[BudgetModel]):
    """Learns by the policy of the model, all weight vectors in parallel."""

    def _learn_block(self, which: NDArray, each: Callable) -> int:
        model, block = self.model, self._read(which)
        vectors = range(len(model.held))
        answers = list((map if len(vectors) < 2 else each)(lambda vector: model.learn(vector, block), vectors))
        for _, broken in answers:
            if broken >= 0:
                raise NumericFailure(int(which[broken]))
        model.clock += len(which)
        model._merged = None
        return _mistakes(model.problem, np.column_stack([scores for scores, _ in answers]), block.labels)

    def _read(self, which: NDArray) -> Block:
        model = self.model
        rows, kept = self.X[which], model.kernel.keep(self.X, which)
        gram = kernel_matrix(model.kernel, rows, kept).astype(np.float64)
        lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
        divided = model.normalize and not isinstance(model.kernel, GaussianKernel)  # whose K(x, x) is 1, but for rounding
        scales = np.where(lengths > 0, lengths, 1.0) if divided else np.ones(len(which))
        if "unit" in model.needs and not model.normalize and lengths.max() > 1 + 1e-6:
            row = int(lengths.argmax())
            raise InvalidData(
                f"K(x, x) must be at most 1 for this learner; it is {lengths[row] ** 2:g} for row {which[row]}",
                hint="scale the kernel",
                settings={"normalize": True},
                row=int(which[row]),
            )
        weight = None if self.examples.weight is None else self.examples.weight[which]
        return Block(which, rows, kept, self.examples.labels[which], weight, scales, gram / np.outer(scales, scales))

    def size(self) -> float:
        """The norm of all weights."""
        return self.model.norm(self.X)

    def finite(self, order: NDArray) -> bool:
        """Whether every coefficient is a finite number."""
        return all(bool(np.isfinite(held.coef).all()) for held in self.model.held)


def _mistakes(problem: Problem, scores: NDArray, labels: NDArray) -> int:
    """How many rows were not predicted, ties included."""
    if isinstance(problem, Binary):
        return int(np.count_nonzero(np.where(labels == 1, scores[:, 0], -scores[:, 0]) <= 0))
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    rivals = scores.copy()
    rivals[rows, labels] = -np.inf
    return int(np.count_nonzero(own <= rivals.max(axis=1)))
