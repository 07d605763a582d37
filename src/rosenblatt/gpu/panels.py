"""One decision among all classes, batches, and weight vectors that no cluster can hold, on a card: the scores of a panel of
rows are a matrix product, a kernel decides on moves in the order of the rows (kernels/panels.cu), another makes them."""

from __future__ import annotations

import cupy
import numpy as np

from rosenblatt.gpu.chunks import Chunk, Chunks, EpochState
from rosenblatt.gpu.compiling import Gemm, Kernel, address, compiled, int32
from rosenblatt.gpu.layouts import EXAMPLE_BYTES, PANEL, Layout, panel_rows, panels_constants, rows_at_once
from rosenblatt.gpu.sources import source_of


class Panels:
    """Learns from panels of rows: jointly, in batches, or weight vectors that are too long for `Columns`.

    Parameters
    ----------
    device : int
        The number of the card.
    layout : Layout
        How rows are packed.
    rule : type
        The rule, a NamedTuple class of rosenblatt.rules or of a user.
    vectors : int
        The number of weight vectors.
    joint : bool
        Whether one decision is made among them all.
    batch : int
        The number of rows that are predicted with the same weights; 1: online, row by row.
    mean : bool
        Whether a batch moves by the mean of its moves.
    """

    def __init__(self, device: int, layout: Layout, rule: type, vectors: int, joint: bool, batch: int, mean: bool):
        self.vectors, self.joint, self.batch, self.mean = vectors, joint, batch, mean
        self.panel = panel_rows(batch)
        self.layout, real = layout, layout.real
        units = 16 // np.dtype(real).itemsize
        self.pitch = -(-vectors // units) * units  # of the scores of a row
        limit = cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]
        self.warps, shared_bytes = rows_at_once(self.pitch, np.dtype(real).itemsize, self.panel, limit)
        constants = panels_constants(self.panel, self.warps)
        self.threads = constants["COPIERS"]
        module = compiled(device, source_of("panels", real, rule, constants))
        names = ("decide_columns", "decide_batch", "count_moves", "end_batch", "count_wrong")
        self.kernels = {name: Kernel(module, name) for name in names}
        if joint and batch == 1:
            self.kernels["decide_jointly"] = Kernel(module, "decide_jointly", shared_bytes)
        self.apply = Kernel(module, "apply_moves", 12 * self.panel)
        self.multiply = Gemm(real)
        self.scores = cupy.full(self.panel * self.pitch, -np.inf, real)
        self.tau = cupy.zeros(vectors * self.panel)
        self.last = cupy.full(vectors, -1, np.int32)  # entries of decide_jointly
        self.moves = cupy.zeros(vectors)  # of each counter in a batch
        self.grams: dict[int, cupy.ndarray] = {}
        self.stream = cupy.cuda.Stream(non_blocking=True, priority=-5)
        self.busy = 1

    @staticmethod
    def bytes_needed(layout: Layout, vectors: int, batch: int) -> int:
        """Return the bytes that it takes on the card, beyond those of chunks and weights."""
        panel = panel_rows(batch)
        grams = 3 * layout.chunk * PANEL if batch == 1 else 0
        twice = 2 * vectors * layout.width if batch > panel else 0
        return (grams + panel * (vectors + 4) + twice) * np.dtype(layout.real).itemsize + 8 * vectors * (panel + 1)

    def prepare(self, chunks: Chunks, chunk: Chunk) -> None:
        """Start to compute the Gram matrices of a chunk, in the stream of the chunks; batches need none."""
        if self.batch > 1:
            return
        if chunk.place not in self.grams:
            self.grams[chunk.place] = cupy.empty(self.layout.chunk * PANEL, self.layout.real)
        with chunks.stream:
            panels = -(-chunk.rows // PANEL)  # the rows after the last are of an earlier chunk, and are not used
            self.multiply.grams(chunk.packed.data.ptr, self.grams[chunk.place].data.ptr, panels, PANEL, self.layout.width)

    def visit(self, chunk: Chunk, clock: int, state: EpochState) -> None:
        """Start to learn from a chunk row by row, in the current stream; weights, drift, tallies and counts change in
        place, on the card. `clock` is the number of examples that were visited before the epoch."""
        width = self.layout.width
        for first in range(0, chunk.rows, PANEL):
            rows = min(PANEL, chunk.rows - first)
            x, examples = address(chunk.packed, first * width), address(chunk.examples, first * EXAMPLE_BYTES)
            gram = address(self.grams[chunk.place], first * PANEL)
            self._score(x, state.weights, rows)
            position = np.int64(chunk.position + first)
            shape = (int32(rows), int32(self.vectors), int32(self.pitch))
            known = (self.scores, gram, examples, *shape, position, state.rule, self.tau, state.tallies)
            if self.joint:
                self.kernels["decide_jointly"](1, self.threads, *known, self.last, state.counts)
            else:
                self.kernels["decide_columns"](self.vectors, 32, *known, state.counts)
                self._count_wrong(examples, rows, position, state.counts)
            self._move(x, rows, state.weights, state.drift, clock + int(position), each=True)

    def _score(self, x: np.uintp, weights: cupy.ndarray, rows: int) -> None:
        width = self.layout.width
        self.multiply(int(x), weights.data.ptr, self.scores.data.ptr, rows, self.vectors, width, self.pitch)

    def _count_wrong(self, examples: np.uintp, rows: int, position: np.int64, counts: cupy.ndarray) -> None:
        known = (self.scores, examples, int32(rows), int32(self.vectors), int32(self.pitch), position, counts)
        self.kernels["count_wrong"](-(-rows // 8), 256, *known)

    def _move(
        self, x: np.uintp, rows: int, weights: cupy.ndarray, drift: cupy.ndarray | None, clock: int, each: bool
    ) -> None:
        """Make the moves that were decided on; with `each` the clock goes on with each row, else all have the same."""
        moves = self.moves if self.mean and not each else None
        known = (x, self.tau, int32(rows), int32(self.layout.width), weights, drift, moves)
        self.apply(self.vectors, 256, *known, int32(self.joint), np.int64(clock), int32(each))

    def visit_batch(self, chunk: Chunk, part: range, clock: int, state: EpochState, left: cupy.ndarray, act: str) -> None:
        """Learn from a part of a chunk that belongs to one batch. It meets the weights of the state and changes those that
        it has `left`; `act` is "count" (moves and mistakes), "move", or "both"."""
        for first in range(part.start, part.stop, self.panel):
            rows = min(self.panel, part.stop - first)
            x = address(chunk.packed, first * self.layout.width)
            examples = address(chunk.examples, first * EXAMPLE_BYTES)
            self._score(x, state.weights, rows)
            if act != "move":
                self._count_wrong(examples, rows, np.int64(chunk.position + first), state.counts)
            columns, pitch, joint = int32(self.vectors), int32(self.pitch), int32(self.joint)
            decided = (columns, pitch, joint, state.rule, self.tau, state.tallies)
            self.kernels["decide_batch"](-(-rows // 8), 256, self.scores, examples, int32(rows), *decided)
            if act != "move":
                counters = 1 if self.joint else self.vectors
                self.kernels["count_moves"](counters, 256, self.tau, examples, int32(rows), joint, self.moves)
            if act != "count":
                self._move(x, rows, left, state.drift, clock, each=False)
            else:
                self.tau.fill(0)

    def end_batch(self, state: EpochState) -> None:
        """Count a batch as one update of each counter that moved in it."""
        counters = 1 if self.joint else self.vectors
        known = (int32(counters), state.tallies, self.moves, state.counts)
        self.kernels["end_batch"](-(-counters // 256), 256, *known)
