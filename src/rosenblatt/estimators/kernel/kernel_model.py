"""What the models and trainers of all kernel learners share: rows are predicted in pieces and learned in blocks, whose
kernels with the rows kept are matrix products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.problems import Problem, decide
from rosenblatt.engine.rows import Examples, Rows
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits
from rosenblatt.estimators.kernel.gram import FEW, Kernel, Matrix, workers

BLOCK = 256  # rows learned at a time: the kernels inside a block cost as much as those with BLOCK kept rows
PIECE = 512  # rows predicted at a time


class KernelModel:
    """Rows and their coefficients in the feature space of a kernel; which rows, a subclass says."""

    tally: NDArray  # updates of each weight vector

    def __init__(self, problem: Problem, kernel: Kernel, features: int):
        self.problem = problem
        self.kernel = kernel
        self.features = features
        self.n_rows = 0  # rows of all calls before this one, by which rows are numbered
        self.only_predicts = False

    @property
    @abstractmethod
    def seen(self) -> int:
        """Examples visited."""

    @property
    def updates(self) -> int:
        """Changes of weight vectors."""
        return int(self.tally.sum())

    def prepare(self, rows: Rows) -> None:
        """Nothing: kernels between rows of every layout and precision can be computed."""

    @abstractmethod
    def predicting_coef(self) -> NDArray:
        """(support, columns): the coefficients that predict."""

    @abstractmethod
    def _score_function(self) -> Callable[[Matrix], NDArray]:
        """Return what computes the scores (rows, columns) of rows."""

    def _rows_at_once(self) -> int:
        return PIECE

    def decision(self, X: Matrix, threads: int = 1) -> NDArray:
        """The decision values of rows: see `problems.decide`."""
        step = self._rows_at_once()
        pieces = [X[start : start + step] for start in range(0, X.shape[0], step)]
        with workers(self.kernel, threads if len(pieces) > 1 else 1) as each:
            scores = list(each(self._score_function(), pieces))
        return decide(self.problem, np.concatenate(scores))


M = TypeVar("M", bound=KernelModel)


class BlockTrainer(Generic[M]):
    """Learns from the rows of X into a model, block by block."""

    def __init__(self, model: M, X: Matrix, examples: Examples, visits: Visits):
        self.model, self.X, self.examples, self.visits = model, X, examples, visits

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the rows of `order` once; what was done, and whether nothing is left to learn."""
        mistakes, before = 0, self.model.updates
        with workers(self.model.kernel, self.visits.threads if len(order) > FEW else 1) as each:
            for start in range(0, len(order), BLOCK):
                mistakes += self._learn_block(order[start : start + BLOCK], each)
        updates = self.model.updates - before
        return Progress(len(order), mistakes, updates, -1), updates == 0

    @abstractmethod
    def _learn_block(self, which: NDArray, each: Callable) -> int:
        """Learn from these rows of X; return the number of mistakes made on them."""

    @abstractmethod
    def size(self) -> float:
        """The norm of all weights."""

    def weights_now(self) -> NDArray:
        """The coefficients that predict."""
        return self.model.predicting_coef()

    def backup(self, order: NDArray) -> Callable[[], None]:
        """Nothing: a stream is learned into a copy of the model, since kernels may fail at any time."""
        return lambda: None

    def finite(self, order: NDArray) -> bool:
        """Whether every coefficient is a finite number."""
        return bool(np.isfinite(self.weights_now()).all())
