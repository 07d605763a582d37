"""How rows are packed for the kernels of a card, and how weight vectors are spread over it. Plain arithmetic, without a
card."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

EXAMPLE_BYTES = 32  # of struct Example in kernels/prelude.cu
GROUP = 128  # rows: a chunk is filled up to a multiple of this with rows of zeros, for the kernel of Gram matrices
_CHUNK = 1 << 28  # bytes of packed rows

MULTIPLIERS = 256  # threads of a thread block that multiply; another 32 for each weight vector decide
_CLUSTERS = (16, 8, 4, 2, 1)  # thread blocks
_COLUMNS = (1, 2, 4, 8)  # weight vectors
_BLOCKS = (128, 64, 32, 16, 8)  # rows
_TILES = {128: (8, 160), 64: (8, 96), 32: (4, 160), 16: (4, 96), 8: (4, 64)}  # side of a tile of a Gram matrix, threads
_MOVE_BYTES = 16  # of struct Move in kernels/columns.cu
_STAGES = 3  # blocks of rows that a multiprocessor keeps
_MOST_VISITS = 1 << 27  # scores of a chunk that are kept to count mistakes

PANEL = 512  # rows that are scored with the same weights, and then put right by their Gram matrix
LONGEST_PANEL = 4096  # rows of a batch that are decided on at once
_FEWEST_WARPS = 8  # where scores stay in the card's memory


class Layout(NamedTuple):
    """How a chunk is packed."""

    real: str  # the type of weights and sums: float32 or float64
    block: int  # rows that lie together
    slices: int  # parts of a row, each of which lies with those of the other rows of its block
    width: int  # numbers in a slice, padding included
    chunk: int  # rows in a chunk

    @property
    def row_bytes(self) -> int:
        """The bytes of a packed row."""
        return self.slices * self.width * np.dtype(self.real).itemsize


def chunk_rows(rows: int, row_bytes: int, together: int) -> int:
    """Return how many rows are packed at a time: a multiple of `together`, and about _CHUNK bytes."""
    most = max(_CHUNK // max(row_bytes, 1), together)
    return -(-max(min(rows, most // together * together), 1) // together) * together


class Shape(NamedTuple):
    """How weight vectors are spread over a card."""

    cluster: int  # thread blocks that share them
    columns: int  # weight vectors of a cluster
    block: int  # rows that are scored at a time
    width: int  # features of a thread block
    shared_bytes: int


def largest_cluster(capability: tuple[int, int], shared_bytes: int) -> int:
    """The most thread blocks that form a cluster on a card of this compute capability: 8 on every card that has clusters,
    16 on those for data centres, whose multiprocessors have more memory."""
    if capability < (9, 0):
        return 1
    return 16 if shared_bytes > 200_000 else 8


def gram_numbers(block: int) -> int:
    """Return how many numbers are kept of the Gram matrix of a block: of each 32 rows, the columns from the
    first of them on (place_in_gram in kernels/prelude.cu)."""
    return block * block if block <= 32 else sum(32 * (block - first) for first in range(0, block, 32))


def _shapes(features: int, size: int, averaged: bool, clusters: tuple[int, ...], shared_bytes: int) -> Iterator[Shape]:
    """Yield all shapes that fit the shared memory of a multiprocessor."""
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
    vectors: int, features: int, real: str, averaged: bool, processors: int, shared_bytes: int, largest: int
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
        The multiprocessors of the card, and the shared memory that a thread block may have.
    largest : int
        The most thread blocks that form a cluster on the card; 1 if it has no clusters.

    Returns
    -------
    Shape or None
    """
    size = np.dtype(real).itemsize

    def cycles(shape: Shape) -> float:
        """Return the cycles that a row takes, about."""
        clusters = -(-vectors // shape.columns)
        at_once = processors if shape.cluster == 1 else max(processors // 16 * (16 // shape.cluster), 1)
        products = shape.columns * shape.block * shape.width * size / 16 / MULTIPLIERS
        copied = shape.block * shape.width * size / 40
        of_card = min(clusters, at_once) * shape.cluster * shape.block * shape.width * size / 2000
        step = max(1400 + (800 if shape.cluster > 1 else 0) + 10 * products, copied, of_card)
        return -(-clusters // at_once) * step / shape.block

    clusters = tuple(cluster for cluster in _CLUSTERS if cluster <= min(largest, processors))
    found = _shapes(features, size, averaged, clusters, shared_bytes)
    return min(found, key=cycles, default=None)


def columns_layout(shape: Shape, real: str, vectors: int, rows: int) -> Layout:
    """Return how rows are packed for a shape."""
    row_bytes = shape.cluster * shape.width * np.dtype(real).itemsize
    most = max(_MOST_VISITS // vectors // GROUP, 1) * GROUP
    chunk = min(chunk_rows(rows, row_bytes, GROUP), most)
    return Layout(real, shape.block, shape.cluster, shape.width, chunk)


def columns_constants(shape: Shape, binary: bool, weighted: bool) -> dict[str, int]:
    """What kernels/columns.cu is compiled for."""
    spread = {"CLUSTER": shape.cluster, "COLUMNS": shape.columns, "BLOCK": shape.block, "WIDTH": shape.width}
    return spread | {"MULTIPLIERS": MULTIPLIERS, "COPIERS": MULTIPLIERS, "BINARY": binary, "WEIGHTED": weighted}


def gram_constants(block: int) -> dict[str, int]:
    """What kernels/gram.cu is compiled for."""
    tile, threads = _TILES[block]
    return {"BLOCK": block, "TILE": tile, "THREADS": threads}


def rows_at_once(pitch: int, size: int, panel: int, limit: int) -> tuple[int, int]:
    """Return (how many rows have scores that fit shared memory twice, 0 if not even two do; bytes of shared memory)."""
    entries = 2 * panel * (32 if size == 8 else 16) + 8 * panel
    for rows in (16, 8, 4, 2):
        if (needed := entries + 2 * rows * (panel + pitch) * size) <= limit - 2048:
            return rows, needed
    return 0, entries + 2 * _FEWEST_WARPS * panel * size


def panel_rows(batch: int) -> int:
    """Return the most rows of a panel; for batches a power of two, because kernels are compiled for each size."""
    return PANEL if batch == 1 else min(1 << (batch - 1).bit_length(), LONGEST_PANEL)


def panels_layout(real: str, features: int, batch: int, rows: int) -> Layout:
    """Return how rows are packed for panels: a matrix of padded rows; a chunk has whole panels, or whole short batches."""
    units = 16 // np.dtype(real).itemsize
    width = -(-features // units) * units
    together = PANEL if batch == 1 else min(batch, LONGEST_PANEL)
    return Layout(real, 1, 1, width, chunk_rows(rows, width * np.dtype(real).itemsize, together))


def panels_constants(panel: int, warps: int) -> dict[str, int]:
    """What kernels/panels.cu is compiled for; `warps` as `rows_at_once` tells."""
    used = warps or _FEWEST_WARPS
    return {"PANEL": panel, "WARPS": used, "COPIERS": 32 * used, "STAGED": warps > 0}
