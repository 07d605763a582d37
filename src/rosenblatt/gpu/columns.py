"""Two classes, and each class against the rest, on a card: every weight vector is learned by a cluster of thread blocks
(kernels/columns.cu), while other multiprocessors make the Gram matrices of the chunk after."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import cupy
import numpy as np

from rosenblatt.gpu.chunks import EXAMPLE_BYTES, Chunk, Chunks, Layout, chunk_rows
from rosenblatt.gpu.compiling import Kernel, compiled, int32, source_of

MULTIPLIERS = 256  # threads of a thread block that multiply; another 32 for each weight vector decide
_CLUSTERS = (16, 8, 4, 2, 1)  # thread blocks
_COLUMNS = (1, 2, 4, 8)  # weight vectors
_BLOCKS = (128, 64, 32, 16, 8)  # rows
_TILES = {128: (8, 160), 64: (8, 96), 32: (4, 160), 16: (4, 96), 8: (4, 64)}  # side of a tile of a Gram matrix, threads
_MOVE_BYTES = 16
_STAGES = 3  # blocks of rows that a multiprocessor keeps
_GROUP = 128  # rows, of which the kernel of Gram matrices takes whole blocks
_MOST_VISITS = 1 << 27  # scores of a chunk that are kept to count mistakes


class Shape(NamedTuple):
    """How weight vectors are spread over a card."""

    cluster: int  # thread blocks that share them
    columns: int  # weight vectors of a cluster
    block: int  # rows that are scored at a time
    width: int  # features of a thread block
    shared_bytes: int


def gram_numbers(block: int) -> int:
    """What is kept of the Gram matrix of a block: of each 32 rows the columns from their first on (kernels/prelude.cu)."""
    return block * block if block <= 32 else sum(32 * (block - first) for first in range(0, block, 32))


def _shapes(features: int, size: int, averaged: bool, clusters: tuple[int, ...], shared_bytes: int) -> Iterator[Shape]:
    """All shapes whose parts fit the memory of a multiprocessor."""
    units = 16 // size
    for cluster, many, block in product(clusters, _COLUMNS, _BLOCKS):
        parts = -(-features // (cluster * units))
        width = (parts + 1 - parts % 2) * units  # an odd number of vectors of 16 bytes, so that rows start in all banks
        numbers = _STAGES * block * width + 2 * gram_numbers(block) + many * (width + MULTIPLIERS)
        numbers += 2 * cluster * many * block if cluster > 1 else 0
        needed = (
            numbers * size
            + block * (2 * EXAMPLE_BYTES + many * _MOVE_BYTES)
            + (8 * many * (width + block) if averaged else 0)
        )
        if needed <= shared_bytes - 1024:
            yield Shape(cluster, many, block, width, needed)


def shape_for(
    vectors: int, features: int, real: str, averaged: bool, processors: int, shared_bytes: int, has_clusters: bool
) -> Shape | None:
    """Choose how so many weight vectors are spread over a card; None if no cluster can hold one.

    The fastest by the cycles that steps were measured to take on an H200: a step costs its barriers and what is sent, the
    products of each thread, and a wait for rows if more are copied than the memory delivers.

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
    has_clusters : bool
        Whether the card has clusters.

    Returns
    -------
    Shape or None
    """
    size = np.dtype(real).itemsize

    def cycles(shape: Shape) -> float:
        """Of a row."""
        clusters = -(-vectors // shape.columns)
        at_once = processors if shape.cluster == 1 else processors // 16 * (16 // shape.cluster)
        products = shape.columns * shape.block * shape.width * size / 16 / MULTIPLIERS
        copied = shape.block * shape.width * size / 40
        of_card = min(clusters, at_once) * shape.cluster * shape.block * shape.width * size / 2000
        step = max(1400 + (800 if shape.cluster > 1 else 0) + 10 * products, copied, of_card)
        return -(-clusters // at_once) * step / shape.block

    found = _shapes(features, size, averaged, _CLUSTERS if has_clusters else (1,), shared_bytes)
    return min(found, key=cycles, default=None)


def columns_layout(shape: Shape, real: str, vectors: int, rows: int) -> Layout:
    """How rows are packed for a shape."""
    row_bytes = shape.cluster * shape.width * np.dtype(real).itemsize
    most = max(_MOST_VISITS // vectors // _GROUP, 1) * _GROUP
    chunk = min(chunk_rows(rows, row_bytes, _GROUP), most)
    return Layout(real, shape.block, shape.cluster, shape.width, chunk)


class Columns:
    """Learns weight vectors that do not depend on each other.

    Parameters
    ----------
    device : int
        The number of the card.
    shape : Shape
        How a weight vector is spread.
    layout : Layout
        How rows are packed.
    rule : type
        The rule.
    vectors : int
        The weight vectors; 1 for two classes.
    weighted : bool
        Whether examples have weights.
    """

    def __init__(self, device: int, shape: Shape, layout: Layout, rule: type, vectors: int, weighted: bool):
        self.shape, self.layout, self.vectors, real = shape, layout, vectors, layout.real
        binary, cluster, block = vectors == 1, shape.cluster, shape.block
        constants = {"CLUSTER": cluster, "COLUMNS": shape.columns, "BLOCK": block, "WIDTH": shape.width}
        constants |= {"MULTIPLIERS": MULTIPLIERS, "COPIERS": MULTIPLIERS, "BINARY": binary, "WEIGHTED": weighted}
        module = compiled(device, source_of("columns", real, rule, **constants))
        self.learn = Kernel(module, "learn_columns", shape.shared_bytes, cluster > 8)
        self.count = Kernel(module, "count_mistakes")
        tile, self.gram_threads = _TILES[block]
        grams = source_of("gram", real, BLOCK=block, TILE=tile, THREADS=self.gram_threads)
        self.gram = Kernel(compiled(device, grams, contract=True), "gram")
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
        """Make the Gram matrices of a chunk, in the stream of the chunks."""
        layout, groups = self.layout, -(-chunk.rows // 128)
        if chunk.place not in self.grams:
            self.grams[chunk.place] = cupy.empty(layout.chunk // layout.block * gram_numbers(layout.block), layout.real)
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
        threads = MULTIPLIERS + 32 * self.shape.columns
        self.learn(self.blocks, threads, *known, int32(self.vectors), *state)
        if self.visits is not None:
            self.count(-(-chunk.rows // 256), 256, self.visits, chunk.examples, rows, int32(self.vectors), counts)
