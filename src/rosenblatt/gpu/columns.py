"""Two classes, and each class against the rest, on a card: every weight vector is learned by a cluster of thread blocks
(kernels/columns.cu), while other multiprocessors make the Gram matrices of the chunk after."""

from __future__ import annotations

from typing import NamedTuple

import cupy
import numpy as np

from rosenblatt.gpu.chunks import EXAMPLE_BYTES, Chunk, Chunks, Layout
from rosenblatt.gpu.compiling import Kernel, compiled, int32, source_of

THREADS = 256
CHUNK = 1 << 16  # rows; a chunk of 1,024 features takes a fifth of a gigabyte
_CLUSTERS = (16, 8, 4, 2, 1)  # thread blocks
_BLOCKS = (128, 64, 32, 16, 8)  # rows
_TILES = {128: (8, 160), 64: (8, 96), 32: (4, 160), 16: (4, 96), 8: (4, 64)}  # side of a thread's tile of a Gram matrix, threads
_MOVE_BYTES = 16


class Shape(NamedTuple):
    """How a weight vector is spread over a card."""

    cluster: int
    block: int
    width: int
    shared_bytes: int


def _gram_numbers(block: int) -> int:
    """What a multiprocessor keeps of a Gram matrix: of each 32 rows the columns from their first on."""
    return block * block if block <= 32 else sum(32 * (block - first) for first in range(0, block, 32))


def shape_for(
    vectors: int, features: int, real: str, averaged: bool, processors: int, shared_bytes: int, clusters: bool
) -> Shape | None:
    """Choose the shape for so many weight vectors of so many features, the constant included; None if no cluster can hold them.

    As many multiprocessors as there are work on each weight vector, up to 16; fewer if there are many vectors. Blocks are as
    large as the memory of a multiprocessor allows: each costs a barrier.

    Parameters
    ----------
    vectors, features : int
        The weight vectors, and their features with the constant.
    real : str
        The type of the weights.
    averaged : bool
        Whether an average is kept.
    processors, shared_bytes : int
        The multiprocessors of the card, and the memory that a thread block may ask for.
    clusters : bool
        Whether the card has clusters.

    Returns
    -------
    Shape or None
    """
    size = np.dtype(real).itemsize
    units = 16 // size
    usual = next(c for c in _CLUSTERS if c == 1 or (clusters and vectors * c <= processors))
    for cluster in [usual, *(c for c in reversed(_CLUSTERS) if clusters and c > usual)]:
        parts = -(-features // (cluster * units))
        width = (parts + 1 - parts % 2) * units  # an odd number of vectors of 16 bytes, so that rows start in all banks
        for block in _BLOCKS:
            numbers = 3 * block * width + 2 * _gram_numbers(block) + width + THREADS
            numbers += 2 * cluster * block if cluster > 1 else 0
            needed = numbers * size + block * (2 * EXAMPLE_BYTES + _MOVE_BYTES) + (8 * width if averaged else 0)
            if needed <= shared_bytes - 1024:
                return Shape(cluster, block, width, needed)
    return None


class Columns:
    """Learns weight vectors that do not depend on each other.

    Parameters
    ----------
    device : int
        The number of the card.
    shape : Shape
        How a weight vector is spread.
    real : str
        The type of the weights.
    rule : type
        The rule.
    vectors : int
        The weight vectors; 1 for two classes.
    chunk : int
        Rows that are prepared at a time.
    """

    def __init__(self, device: int, shape: Shape, real: str, rule: type, vectors: int, chunk: int):
        self.shape, self.vectors = shape, vectors
        self.layout = Layout(real, shape.block, shape.cluster, shape.width, chunk)
        binary, cluster, block = int(vectors == 1), shape.cluster, shape.block
        source = source_of("columns", real, rule, CLUSTER=cluster, BLOCK=block, THREADS=THREADS, BINARY=binary)
        module = compiled(device, source)
        self.learn = Kernel(module, "learn_columns", shape.shared_bytes, cluster > 8)
        self.count = Kernel(module, "count_mistakes")
        tile, self.gram_threads = _TILES[block]
        grams = source_of("gram", real, BLOCK=block, TILE=tile, THREADS=self.gram_threads)
        self.gram = Kernel(compiled(device, grams, contract=True), "gram")
        self.processors = cupy.cuda.Device(device).attributes["MultiProcessorCount"]
        self.busy = min(vectors * cluster, self.processors // 2)  # multiprocessors that learn
        self.grams: dict[int, cupy.ndarray] = {}
        self.visits = None if binary else cupy.empty(vectors * chunk, real)
        self.stream = cupy.cuda.Stream(non_blocking=True, priority=-5)

    @staticmethod
    def bytes_needed(shape: Shape, real: str, vectors: int, chunk: int) -> int:
        """Return the bytes that it takes on the card, beyond those of chunks and weights."""
        return (3 * chunk * shape.block + (vectors * chunk if vectors > 1 else 0)) * np.dtype(real).itemsize

    def prepare(self, chunks: Chunks, chunk: Chunk) -> None:
        """Make the Gram matrices of a chunk, in the stream of the chunks."""
        layout, groups = self.layout, -(-chunk.rows // 128)
        if chunk.place not in self.grams:
            self.grams[chunk.place] = cupy.empty(layout.chunk * layout.block, layout.real)
        with chunks.stream:
            blocks = min(groups, 3 * (self.processors - self.busy))
            known = (chunk.packed, self.grams[chunk.place], np.int64(groups), int32(layout.slices), int32(layout.width))
            self.gram(blocks, self.gram_threads, *known)

    def visit(
        self,
        chunk: Chunk,
        clock: int,
        rule: cupy.ndarray,
        weights: cupy.ndarray,
        drift: cupy.ndarray | None,
        tallies: cupy.ndarray,
        counts: cupy.ndarray,
    ) -> None:
        """Learn from a chunk, in the current stream."""
        rows = np.int64(chunk.rows)
        known = (chunk.packed, self.grams[chunk.place], chunk.examples, rows, np.int64(chunk.position), np.int64(clock))
        state = (rule, weights, drift, tallies, self.visits, counts)
        self.learn(self.vectors * self.shape.cluster, THREADS, *known, int32(self.shape.width), *state)
        if self.visits is not None:
            self.count(-(-chunk.rows // 256), 256, self.visits, chunk.examples, rows, int32(self.vectors), counts)
