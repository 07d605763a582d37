"""An emulated card: the block algorithm of the kernels in numpy, on the CPU, to test what uses a card where there is none.
It is slow, and made to be read.

An epoch goes over panels of rows. The scores of a panel are one product, rows by weights, and its Gram matrix says how much
a move at one row changes the scores of the rows after it; the weights change once, at the end of the panel. Sums are in the
type of the weights, as on a card; only the drift is summed in float64.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.problems import MOVE, columns, confront, moves_per_row
from rosenblatt.engine.weights import Weights
from rosenblatt.errors import InvalidData, InvalidDataType
from rosenblatt.gpu.card import CardFacts, CardTask, CardValues, DLPackArray, weight_type

PLAIN = 1  # the device type of DLPack for the memory of the processor


class EmulatedArray(NamedTuple):
    """Rows in the memory of an emulated card."""

    values: NDArray  # (rows, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return self.values.shape[0], self.values.shape[1]

    @property
    def kind(self) -> str:
        """The type of the values."""
        return self.values.dtype.name


class EmulatedCard:
    """A card whose memory is the machine's, for tests. `block` is the number of rows in a panel; `room` the bytes that
    `place` may use for rows, None for any number; `placed` counts the bytes that were sent to the card."""

    def __init__(self, block: int = 128, room: int | None = None):
        self.block, self.room, self.placed = block, room, 0

    def describe(self) -> CardFacts:
        """Return what is known of the card."""
        room = 0 if self.room is None else self.room
        return CardFacts("emulated card", room, room, "0.0", "0.0", f"numpy {np.__version__}")

    def adopt(self, X: DLPackArray) -> EmulatedArray:
        """Return the rows of an array that lies on this card."""
        values = _as_numpy(X)
        if values.ndim != 2:
            raise InvalidData(f"X must have two axes, rows and features; it has {values.ndim}, with shape {values.shape}")
        if values.dtype.kind not in "fiub":
            raise InvalidDataType(f"X must hold numbers that a GPU can learn from; its type is {values.dtype}")
        return EmulatedArray(np.ascontiguousarray(values, values.dtype if values.dtype.kind == "f" else np.float64))

    def place(self, X: NDArray) -> CardValues:
        """Return a copy on the card, or X itself if there is no room for it."""
        if self.room is not None and X.nbytes > self.room:
            return X
        self.placed += X.nbytes
        return EmulatedArray(np.array(X, order="C"))

    def rows_to_host(self, values: CardValues) -> NDArray:
        """Return a copy of rows in the memory of the machine."""
        return _values(values).astype(weight_type(values))

    def array_to_host(self, array: DLPackArray) -> NDArray:
        """Return a copy of any array on this card in the memory of the machine."""
        return _as_numpy(array).copy()

    def all_finite(self, values: CardValues) -> bool:
        """Return whether every value is a number."""
        return bool(np.isfinite(_values(values)).all())

    def largest(self, values: CardValues) -> float:
        """Return the largest |value|."""
        return float(np.abs(_values(values)).max(initial=0.0))

    def lengths(self, values: CardValues, constant: float) -> NDArray:
        """Return ‖(row, constant)‖² of each row."""
        with np.errstate(over="ignore"):
            return np.square(_values(values), dtype=np.float64).sum(axis=1) + constant * constant

    def select(self, values: CardValues, rows: NDArray | slice) -> CardValues:
        """Return these rows."""
        chosen = _values(values)[rows]
        return chosen if isinstance(values, np.ndarray) else EmulatedArray(chosen)

    def scores(self, values: CardValues, coef: NDArray, intercept: NDArray) -> NDArray:
        """Return values @ coef.T + intercept."""
        with np.errstate(over="ignore", invalid="ignore"):
            return _values(values).astype(weight_type(values)) @ coef.T + intercept

    def begin(self, task: CardTask) -> EmulatedRun:
        """Begin a run of learning."""
        return EmulatedRun(self, task)


def _as_numpy(array: DLPackArray) -> NDArray:
    """Return an array that claims to be on the card as an array of numpy."""
    return np.from_dlpack(_AsIfPlain(array))


def _values(values: CardValues) -> NDArray:
    assert isinstance(values, EmulatedArray | np.ndarray)
    return values.values if isinstance(values, EmulatedArray) else values


class _AsIfPlain:
    """An array of an emulated card, which in truth lies in the memory of the processor."""

    def __init__(self, array: DLPackArray):
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return PLAIN, 0


class EmulatedRun:
    """A run of learning on an emulated card."""

    def __init__(self, card: EmulatedCard, task: CardTask):
        self.task = task
        self.values = _values(task.values)
        self.lengths = card.lengths(task.values, task.constant)
        # A batch that is longer than a block is a panel of its own; others do not straddle two panels.
        self.panel = max(card.block // task.batch * task.batch, task.batch)

    @np.errstate(over="ignore", invalid="ignore")  # a score that is no number is noticed by its row
    def epoch(self, order: NDArray) -> Progress:
        """Learn from the rows of `order`."""
        mistakes, updates, weights = 0, 0, self.task.weights.copy()
        for start in range(0, len(order), self.panel):
            panel = _Panel(self, weights, order[start : start + self.panel])
            done = panel.scan()
            mistakes += done.mistakes
            updates += done.updates
            if done.broken >= 0:
                return Progress(start + done.position, mistakes, updates, done.broken)
            panel.push()
        for ours, new in zip(self.task.weights, weights, strict=True):
            if ours is not None:
                ours[...] = new
        return Progress(len(order), mistakes, updates, -1)


class _Panel:
    """Some rows of an epoch, with all that is computed of them at once. Arrays with an axis for weight vectors have one
    column for two classes too."""

    def __init__(self, run: EmulatedRun, weights: Weights, rows: NDArray):
        self.run, self.task, self.rows = run, run.task._replace(weights=weights), rows
        w, constant = self.task.weights.w, self.task.weights.w.dtype.type(run.task.constant)
        self.x = np.column_stack([run.values[rows].astype(w.dtype), np.full(len(rows), constant)])
        self.scores = self.x @ w.reshape(len(w), -1)  # (rows, vectors)
        self.gram = self.x @ self.x.T
        self.steps = np.zeros(self.scores.shape, w.dtype)  # Σ τ of each row, by weight vector
        self.due = np.zeros(self.scores.shape)  # Σ clock·τ

    def scan(self) -> Progress:
        """Find the moves of all rows, batch by batch, as if each batch met the weights that those before it have moved."""
        mistakes, updates, size, task = 0, 0, len(self.rows), self.task
        for start in range(0, size, task.batch):
            end = min(start + task.batch, size)
            moves: list[np.void] = []
            for i in range(start, end):
                if not np.isfinite(self.scores[i, 0]):
                    return Progress(i, mistakes, updates, int(self.rows[i]))
                right, found = self._confront(i)
                mistakes += not right
                moves += found
            share = Counter(int(move["counter"]) for move in moves)
            for move in moves:
                tau = move["tau"] / (share[int(move["counter"])] if task.mean else 1)
                self._note(move["row"], move["gains"], tau, end)
                if move["loses"] >= 0:
                    self._note(move["row"], move["loses"], -tau, end)
            for counter in share:
                task.weights.tally[counter] += 1
            updates += len(share)
            task.weights.clock[0] += end - start
        return Progress(size, mistakes, updates, -1)

    def _confront(self, i: int) -> tuple[bool, list[np.void]]:
        """Whether the label of the panel's row i is predicted, and the moves that it calls for."""
        task, row = self.task, self.rows[i]
        weight = (1.0, 1.0) if task.weight is None else tuple(task.weight[row])
        moves = np.zeros(moves_per_row(task.problem), MOVE)
        scores = self.scores[i] if columns(task.problem) > 1 else self.scores[i].astype(np.float64)
        known = (scores, int(task.labels[row]), self.run.lengths[row], weight, task.weights.tally, moves, 0)
        _, right, found = confront(task.problem, task.rule, *known)
        moves["row"] = i
        return right, list(moves[:found])

    def _note(self, i: int, vector: int, tau: float, end: int) -> None:
        """Move a weight vector by τ times row i, for the rows from `end` on."""
        step = self.steps.dtype.type(tau)
        clock = self.task.weights.clock[0] + end - 1 - i // self.task.batch * self.task.batch
        self.steps[i, vector] += step
        self.due[i, vector] += clock * tau
        self.scores[end:, vector] += step * self.gram[i, end:]

    def push(self) -> None:
        """Move the weights, and their drift."""
        w, drift = self.task.weights.w, self.task.weights.drift
        w += (self.x.T @ self.steps).reshape(w.shape)
        if drift is not None:
            drift += (self.x.T.astype(np.float64) @ self.due).reshape(drift.shape)
