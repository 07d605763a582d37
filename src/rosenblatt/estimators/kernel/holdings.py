"""What kernel learners on a budget have learned, and the one loop that all of them learn by.

Many classes are learned one against the rest, and each weight vector holds rows of its own, so that the vectors learn
from a block of rows in parallel. The kernels of the block with the rows held, and among each other, are matrix products;
the rest is `policies.scan`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.model import problem_of
from rosenblatt.engine.problems import KINDS, Binary, Problem, columns, decide
from rosenblatt.engine.rows import Examples, Rows
from rosenblatt.engine.train import NO_LIMIT, NumericFailure, Visits
from rosenblatt.estimators.kernel.gram import (
    BLOCK,
    FEW,
    PIECE,
    Gaussian,
    Given,
    Kernel,
    kept_of,
    kernel_of,
    matrix,
    put_kept,
    put_kernel,
    stacked,
    tiled,
    weighed,
    workers,
)
from rosenblatt.estimators.kernel.policies import POLICIES, Slate, regrouped, scan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import check_whole, decode_record, encode_record

_REALS = ("coef", "scales", "gram", "factor", "memory")


class Held(NamedTuple):
    """What one weight vector holds between blocks, oldest first. Learning replaces it and writes to nothing in it."""

    kept: Any  # what is kept of the rows; None before the first
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
    rows: Any
    kept: Any
    labels: NDArray
    scales: NDArray
    gram: NDArray


class Holdings:
    """What has been learned: the rows that each weight vector holds, and their coefficients."""

    def __init__(self, problem: Problem, kernel: Kernel, policy: Any, normalize: bool, features: int, seed: int):
        self.problem = problem
        self.kernel = kernel
        self.policy = policy
        self.normalize = normalize
        self.features = features
        self.seed = seed
        self.given = 0  # rows given so far, in all calls
        none, square = np.empty(0), np.empty((0, 0))
        empty = Held(None, np.empty(0, np.int64), none, none, square, square, np.zeros(4), 0)
        self.held = [empty] * columns(problem)
        self.tally = np.zeros(columns(problem), np.int64)
        self.clock = 0
        self.only_predicts = False
        self._known: tuple[NDArray, Any, NDArray] | None = None

    @property
    def seen(self) -> int:
        """Examples visited."""
        return self.clock

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""
        return int(self.tally.sum())

    def to_parts(self) -> Parts:
        """Return all of it as parts."""
        parts = Parts({
            "problem": encode_record(self.problem, KINDS), "policy": encode_record(self.policy, POLICIES),
            "normalize": bool(self.normalize), "seed": self.seed, "given": self.given, "clock": self.clock,
            "drawn": [held.drawn for held in self.held],
        })  # fmt: skip
        put_kernel(parts, self.kernel)
        parts.put("tally", self.tally)
        for vector, held in enumerate(self.held):
            if held.kept is not None:
                put_kept(parts, f"{vector}/rows", held.kept)
            for name in ("numbers", *_REALS):
                parts.put(f"{vector}/{name}", getattr(held, name))
        return parts

    @classmethod
    def from_parts(cls, parts: Parts, expected: Collection[Problem], features: int) -> Holdings:
        """Return what parts describe, for one of the problems expected."""
        problem, kernel = problem_of(parts, expected), kernel_of(parts)
        policy = decode_record(parts.facts["policy"], POLICIES)
        if policy.budget < 1:
            raise ValueError(f"a budget must be at least 1; got {policy.budget}")
        made = cls(problem, kernel, policy, parts.flag("normalize"), features, parts.whole("seed"))
        made.given, made.clock = parts.whole("given"), parts.whole("clock")
        made.tally = parts.counts("tally", columns(problem))
        drawn = parts.values("drawn", int, len(made.held))
        made.held = [made._held_from_parts(parts, vector, check_whole(n, "drawn")) for vector, n in enumerate(drawn)]
        return made

    def _held_from_parts(self, parts: Parts, vector: int, drawn: int) -> Held:
        """What one weight vector holds, from parts."""
        numbers = parts.array(f"{vector}/numbers", np.int64, (None,), 0, self.given - 1)
        count = len(numbers)
        square = {name: (count,) * 2 if name in self.policy.needs else (0, 0) for name in ("gram", "factor")}
        shapes = {"coef": (count,), "scales": (count,), "memory": (4,), **square}
        reals = {name: parts.array(f"{vector}/{name}", np.float64, shapes[name]) for name in _REALS}
        if not ((reals["scales"] > 0).all() and (reals["factor"].diagonal() > 0).all()):
            raise ValueError("what is divided by must be positive")
        there = f"{vector}/rows" in (*parts.facts, *parts.arrays)
        kept = kept_of(parts, f"{vector}/rows", self.kernel, count, self.features) if there or count else None
        return Held(kept=kept, numbers=numbers, drawn=drawn, **reals)

    def copy(self) -> Holdings:
        """The same, sharing nothing that learning changes."""
        twin = copy.copy(self)
        twin.held, twin.tally = list(self.held), self.tally.copy()
        return twin

    def prepare(self, rows: Rows) -> None:
        """Nothing: kernels between rows of every layout and precision can be computed."""

    def learn(self, vector: int, block: Block) -> tuple[NDArray, int]:
        """(scores that the rows met, row whose score was not a number or −1), after this weight vector learned them."""
        held, rows, size = self.held[vector], len(block.which), len(self.held[vector].coef)
        near = np.empty((rows, size + rows))
        near[:, size:] = block.gram
        if size:
            near[:, :size] = matrix(self.kernel, block.rows, held.kept) / np.outer(block.scales, held.scales)
        factor, chance = held.factor, np.empty(0)
        if "factor" in self.policy.needs:
            factor = np.zeros((size + rows,) * 2)
            factor[:size, :size] = held.factor
        if "chance" in self.policy.needs:
            chance = self._chance(vector, held.drawn, rows)
        active, coef = np.arange(size + rows), np.zeros(size + rows)
        coef[:size] = held.coef
        memory, drawn = held.memory.copy(), np.zeros(1, np.int64)
        slate = Slate(held.gram, near, active, coef, np.full(1, size), memory, factor, chance, drawn)
        signs = np.where(block.labels == (1 if isinstance(self.problem, Binary) else vector), 1.0, -1.0)
        scores = np.empty(rows)
        broken, updates = scan(self.policy, slate, signs, scores)
        if broken < 0 and updates:
            self.tally[vector] += updates
            self.held[vector] = self._held(held, slate, block)
        return scores, broken

    def _held(self, before: Held, slate: Slate, block: Block) -> Held:
        size, known = int(slate.size[0]), len(before.coef)
        active, rest = slate.active[:size], before
        if not np.array_equal(active, np.arange(known)):
            all_kept = block.kept if before.kept is None else stacked(before.kept, block.kept)
            numbers = np.concatenate([before.numbers, block.which + self.given])
            scales = np.concatenate([before.scales, block.scales])
            gram = regrouped(slate) if "gram" in self.policy.needs else before.gram
            rest = before._replace(kept=all_kept[active], numbers=numbers[active], scales=scales[active], gram=gram)
        factor = slate.factor[:size, :size].copy() if "factor" in self.policy.needs else before.factor
        drawn = before.drawn + int(slate.drawn[0])
        return rest._replace(coef=slate.coef[:size].copy(), factor=factor, memory=slate.memory, drawn=drawn)

    def _chance(self, vector: int, drawn: int, wanted: int) -> NDArray:
        """The next numbers of a sequence that belongs to a weight vector, however the stream is cut."""
        source = np.random.PCG64([self.seed, vector])
        return np.random.Generator(source.advance(drawn)).random(wanted)

    def shown(self) -> tuple[NDArray, Any, NDArray]:
        """(numbers, what is kept, coefficients (rows, columns)): all rows held, each once."""
        if self._known is None:
            holding = [(column, held) for column, held in enumerate(self.held) if len(held.coef)]
            if not holding:
                return np.empty(0, np.int64), np.empty((0, self.features)), np.zeros((0, len(self.held)))
            kept = holding[0][1].kept
            for _, held in holding[1:]:
                kept = stacked(kept, held.kept)
            numbers, first, place = np.unique(
                np.concatenate([held.numbers for _, held in holding]), return_index=True, return_inverse=True
            )
            coef = np.zeros((len(numbers), len(self.held)))
            columns = np.concatenate([np.full(len(held.coef), column) for column, held in holding])
            np.add.at(coef, (place, columns), np.concatenate([held.coef / held.scales for _, held in holding]))
            self._known = numbers, kept[first], coef
        return self._known

    @property
    def support(self) -> NDArray:
        """The numbers of the rows held."""
        return self.shown()[0]

    def vectors(self) -> Any:
        """What is kept of them."""
        return self.shown()[1]

    def kept_coef(self) -> NDArray:
        """(support, columns): the coefficients that predict, those of the kernel as it is."""
        return self.shown()[2]

    def decision(self, X: Any, threads: int = 1) -> NDArray:
        """The decision values of rows: see `problems.decide`."""
        _, kept, coef = self.shown()
        tiles = tiled((), kept)
        pieces = [X[start : start + PIECE] for start in range(0, X.shape[0], PIECE)]
        with workers(self.kernel, threads if len(pieces) > 1 else 1) as each:
            scores = list(each(lambda rows: weighed(self.kernel, rows, tiles, coef), pieces))
        return decide(self.problem, np.concatenate(scores))

    def norm(self, X: Any) -> float:
        """The length of all weights in the feature space."""
        total = 0.0
        for held in self.held:
            if len(held.coef):
                rows = X[held.kept] if isinstance(self.kernel, Given) else held.kept
                coef = held.coef / held.scales
                total += float(coef @ matrix(self.kernel, rows, held.kept) @ coef)
        return sqrt(max(total, 0.0))


class Steward(NamedTuple):
    """What `train` works with: holdings that learn from rows of X."""

    model: Holdings
    X: Any
    examples: Examples
    visits: Visits

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        mistakes, before = 0, self.model.updates
        with workers(self.model.kernel, self.visits.threads if len(order) > FEW else 1) as each:
            for start in range(0, len(order), BLOCK):
                mistakes += self._block(order[start : start + BLOCK], each)
        updates = self.model.updates - before
        return Progress(len(order), mistakes, updates, -1), updates == 0

    def _block(self, which: NDArray, each: Callable) -> int:
        """The mistakes made on the rows of a block."""
        model, block = self.model, self._read(which)
        vectors = range(len(model.held))
        answers = list((map if len(vectors) < 2 else each)(lambda vector: model.learn(vector, block), vectors))
        for _, broken in answers:
            if broken >= 0:
                raise NumericFailure(int(which[broken]))
        model.clock += len(which)
        model._known = None
        return _mistakes(model.problem, np.column_stack([scores for scores, _ in answers]), block.labels)

    def _read(self, which: NDArray) -> Block:
        model = self.model
        rows, kept = self.X[which], model.kernel.keep(self.X, which)
        gram = matrix(model.kernel, rows, kept).astype(np.float64)
        lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
        divided = model.normalize and not isinstance(model.kernel, Gaussian)  # whose K(x, x) is 1, but for rounding
        scales = np.where(lengths > 0, lengths, 1.0) if divided else np.ones(len(which))
        if "unit" in model.policy.needs and not model.normalize and lengths.max() > 1 + 1e-6:
            row = int(lengths.argmax())
            raise ValueError(
                f"K(x, x) is {lengths[row] ** 2:g} for row {which[row]}, and this learner needs kernels of at most 1; set "
                "normalize=True, or scale the kernel"
            )
        return Block(which, rows, kept, self.examples.labels[which], scales, gram / np.outer(scales, scales))

    def size(self) -> float:
        """The norm of all weights."""
        return self.model.norm(self.X)

    def weights_now(self) -> NDArray:
        """The coefficients."""
        return self.model.kept_coef()

    def backup(self, order: NDArray) -> Callable[[], None]:
        """Nothing: a stream is learned into a copy of the model, since kernels may fail at any time."""
        return lambda: None

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
