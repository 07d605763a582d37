"""Two classes, and each class against the rest, on a card: every weight vector is learned by a cluster of thread blocks
(kernels/columns.cu), while other multiprocessors make the Gram matrices of the chunk after."""

from __future__ import annotations

import cupy
import numpy as np

from rosenblatt.gpu.chunks import Chunk, Chunks, EpochState
from rosenblatt.gpu.compiling import Kernel, compiled, int32
from rosenblatt.gpu.layouts import MULTIPLIERS, Layout, Shape, columns_constants, gram_constants, gram_numbers
from rosenblatt.gpu.sources import source_of


class Columns:
    """Learns weight vectors that do not depend on each other: one for two classes, or one for each class against the rest.

    Parameters
    ----------
    device : int
        The number of the card.
    shape : Shape
        How weight vectors are spread over thread blocks.
    layout : Layout
        How rows are packed.
    rule : type
        The rule, a NamedTuple class of rosenblatt.rules or of a user.
    vectors : int
        The number of weight vectors; 1 for two classes.
    weighted : bool
        Whether examples have weights.
    """

    def __init__(self, device: int, shape: Shape, layout: Layout, rule: type, vectors: int, weighted: bool):
        self.shape, self.layout, self.vectors, real = shape, layout, vectors, layout.real
        binary, cluster, grams = vectors == 1, shape.cluster, gram_constants(shape.block)
        module = compiled(device, source_of("columns", real, rule, columns_constants(shape, binary, weighted)))
        self.learn = Kernel(module, "learn_columns", shape.shared_bytes, cluster > 8)
        self.count = Kernel(module, "count_mistakes")
        self.gram = Kernel(compiled(device, source_of("gram", real, None, grams), contract=True), "gram")
        self.gram_threads = grams["THREADS"]
        self.processors = cupy.cuda.Device(device).attributes["MultiProcessorCount"]
        self.blocks = -(-vectors // shape.columns) * cluster
        self.busy = min(self.blocks, self.processors // 2)  # multiprocessors that learn
        self.grams: dict[int, cupy.ndarray] = {}
        self.visits = None if binary else cupy.empty(vectors * layout.chunk, real)
        self.stream = cupy.cuda.Stream(non_blocking=True, priority=-5)

    @staticmethod
    def bytes_needed(layout: Layout, vectors: int) -> int:
        """Return the bytes that it takes on the card, beyond those of chunks and weights."""
        grams = 3 * (layout.chunk // layout.block) * gram_numbers(layout.block)
        visits = vectors * layout.chunk if vectors > 1 else 0
        return (grams + visits) * np.dtype(layout.real).itemsize

    def prepare(self, chunks: Chunks, chunk: Chunk) -> None:
        """Start to compute the Gram matrices of a chunk, in the stream of the chunks."""
        layout, groups = self.layout, -(-chunk.rows // 128)
        if chunk.place not in self.grams:
            self.grams[chunk.place] = cupy.empty(layout.chunk // layout.block * gram_numbers(layout.block), layout.real)
        with chunks.stream:
            blocks = min(groups, 3 * (self.processors - self.busy))
            known = (chunk.packed, self.grams[chunk.place], np.int64(groups), int32(layout.slices), int32(layout.width))
            self.gram(blocks, self.gram_threads, *known)

    def visit(self, chunk: Chunk, clock: int, state: EpochState) -> None:
        """Start to learn from a chunk, in the current stream; weights, drift, tallies and counts change in place, on the
        card. `clock` is the number of examples that were visited before the epoch."""
        rows, threads = np.int64(chunk.rows), MULTIPLIERS + 32 * self.shape.columns
        known = (chunk.packed, self.grams[chunk.place], chunk.examples, rows, np.int64(chunk.position), np.int64(clock))
        changed = (state.weights, state.drift, state.tallies, self.visits, state.counts)
        self.learn(self.blocks, threads, *known, int32(self.vectors), state.rule, *changed)
        if self.visits is not None:
            self.count(-(-chunk.rows // 256), 256, self.visits, chunk.examples, rows, int32(self.vectors), state.counts)
