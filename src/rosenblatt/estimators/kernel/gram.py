"""A kernel K(x, z) is the inner product of two rows after a map that is never computed; that of (1 + x·z)² has all products
of up to two features. Learners ask for matrices of kernels: between some rows and the rows they have kept.

What is kept of a row is the row itself, or its number where the user gives the kernel matrix instead of rows. Rows are
arrays or CSR matrices. Every matrix product is done by one thread on shapes that do not depend on how many threads there
are, so neither do the bytes of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.engine.blocks import one_blas_thread
from rosenblatt.errors import DamagedModel, InvalidData, InvalidParameter
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import decode_record

SAMPLE = 100  # rows whose kernel matrix is looked at before a kernel that we did not write is believed
FEW = 32  # rows for which starting threads takes longer than computing
TILE = 512  # kept rows multiplied at a time: with a block of 256 rows the product stays in a cache of 1 MB


Matrix: TypeAlias = NDArray | sp.csr_matrix | sp.csr_array  # rows; or what is kept of them, which may be their numbers
KernelFunction = Callable[[Matrix, Matrix], NDArray]  # of two sets of rows, to the matrix of their kernels


class Kernel(Protocol):
    """A kernel function of two rows."""

    def keep(self, X: Matrix, which: NDArray) -> Matrix:
        """What has to be kept of these rows of X."""

    def between(self, rows: Matrix, kept: Matrix) -> NDArray:
        """(rows, kept) array of kernels."""


class LinearKernel(NamedTuple):
    """x·z"""

    def keep(self, X: Matrix, which: NDArray) -> Matrix:
        return X[which]

    def between(self, rows: Matrix, kept: Matrix) -> NDArray:
        return products(rows, kept)


class PolynomialKernel(NamedTuple):
    """(γ x·z + c)ᵈ, which is positive for γ > 0, c ≥ 0 and whole d ≥ 1."""

    degree: int
    gamma: float
    coef0: float

    def keep(self, X: Matrix, which: NDArray) -> Matrix:
        return X[which]

    def between(self, rows: Matrix, kept: Matrix) -> NDArray:
        result = products(rows, kept)
        result *= result.dtype.type(self.gamma)
        result += result.dtype.type(self.coef0)
        return power(result, self.degree)


class GaussianKernel(NamedTuple):
    """exp(−γ‖x − z‖²). Distances are float64 whatever the rows are: as a difference of squares they would lose most of the
    digits that float32 has, where rows are far from the origin."""

    gamma: float

    def keep(self, X: Matrix, which: NDArray) -> Matrix:
        return X[which]

    def between(self, rows: Matrix, kept: Matrix) -> NDArray:
        rows, kept = rows.astype(np.float64, copy=False), kept.astype(np.float64, copy=False)
        result = products(rows, kept)
        result *= 2
        result -= squared_lengths(rows)[:, None]
        result -= squared_lengths(kept)
        np.minimum(result, 0, out=result)
        result *= self.gamma
        return np.exp(result, out=result)


class FunctionKernel(NamedTuple):
    """The values of a function of the user."""

    function: KernelFunction

    def keep(self, X: Matrix, which: NDArray) -> Matrix:
        return X[which]

    def between(self, rows: Matrix, kept: Matrix) -> NDArray:
        result = np.asarray(as_array(self.function(rows, kept)))
        if result.shape != (rows.shape[0], kept.shape[0]):
            shape = f"an array of shape {(rows.shape[0], kept.shape[0])} for these rows, and not {result.shape}"
            raise InvalidParameter("kernel", self.function, f"a function that returns {shape}")
        return np.ascontiguousarray(result, dtype=np.float32 if result.dtype == np.float32 else np.float64)


class PrecomputedKernel(NamedTuple):
    """The kernels of a row with all training rows are the values of the row; the numbers of rows are kept."""

    def keep(self, X: Matrix, which: NDArray) -> Matrix:
        return np.array(which)

    def between(self, rows: Matrix, kept: Matrix) -> NDArray:
        return np.ascontiguousarray(as_array(rows[:, kept]))


# Files

KERNEL_TYPES: dict[str, type] = {
    "linear": LinearKernel,
    "poly": PolynomialKernel,
    "rbf": GaussianKernel,
    "precomputed": PrecomputedKernel,
}


def kernel_from_parts(parts: Parts) -> Any:
    """Return the kernel that was stored as the fact `kernel`."""
    kernel = decode_record(parts.facts["kernel"], KERNEL_TYPES)
    if not np.isfinite(kernel).all() or getattr(kernel, "degree", 1) < 1:
        raise DamagedModel(f"{kernel} is not a kernel")
    return kernel


def put_kept(parts: Parts, name: str, kept: Matrix) -> None:
    """Store what is kept of some rows: rows, or their numbers."""
    if isinstance(kept, np.ndarray) and kept.ndim == 1:
        parts.put(name, kept)
    else:
        parts.put_rows(name, kept)


def kept_from_parts(parts: Parts, name: str, kernel: Kernel, count: int | None, features: int) -> Matrix:
    """Return what was stored, of so many rows (None: any number)."""
    if isinstance(kernel, PrecomputedKernel):
        return parts.array(name, np.int64, (count,), 0, features - 1)
    return parts.rows(name, count, features)


def put_tiles(parts: Parts, tiles: Sequence[Matrix]) -> None:
    """Store tiles, those of one layout and precision that follow each other in one piece."""
    begin = 0
    for _, run in groupby(tiles, key=lambda tile: (type(tile), tile.dtype, tile.ndim)):
        piece = list(run)
        put_kept(parts, f"rows/{begin}", reduce(stack, piece))
        begin += len(piece)
    parts.facts["tiles"] = len(tiles)


def tiles_from_parts(parts: Parts, kernel: Kernel, features: int) -> tuple[Matrix, ...]:
    """Return the tiles that were stored."""
    count = parts.whole("tiles", 0, len(parts.arrays) * 2**40)
    tiles: tuple[Matrix, ...] = ()
    while len(tiles) < count:
        piece = append_tiles((), kept_from_parts(parts, f"rows/{len(tiles)}", kernel, None, features))
        if not piece:
            raise DamagedModel("a piece of rows is empty")
        tiles += piece
    return tiles


def as_array(matrix: Matrix) -> NDArray:
    """Return a matrix as a dense array."""
    dense: Any = matrix.toarray() if sp.issparse(matrix) else matrix  # type: ignore[union-attr]  # scipy is untyped
    return dense


def products(rows: Matrix, kept: Matrix) -> NDArray:
    """(rows, kept) inner products, in the precision of the rows."""
    return np.ascontiguousarray(as_array(rows @ kept.T))


def squared_lengths(rows: Matrix) -> NDArray:
    """‖row‖² of each row."""
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()  # type: ignore[union-attr]  # scipy is untyped
    return np.einsum("ij,ij->i", rows, rows)


def power(array: NDArray, degree: int) -> NDArray:
    """array ** degree for a whole degree ≥ 1, by squaring and multiplying in place: several times faster than `pow`."""
    result: NDArray | None = None
    while degree > 1:
        if degree % 2:
            result = array.copy() if result is None else np.multiply(result, array, out=result)
        array *= array
        degree //= 2
    return array if result is None else np.multiply(result, array, out=result)


def kernel_matrix(kernel: Kernel, rows: Matrix, kept: Matrix) -> NDArray:
    """(rows, kept) array of kernels. No warning where they overflow: whoever uses them notices, and names the row."""
    with np.errstate(over="ignore", invalid="ignore"):
        return kernel.between(rows, kept)


def stack(first: Matrix, more: Matrix) -> Matrix:
    """Return one set of kept rows followed by another, in the layout of the first."""
    return sp.vstack([first, more]).tocsr() if sp.issparse(first) else np.concatenate([as_array(first), as_array(more)])


def append_tiles(tiles: Sequence[Matrix], more: Matrix) -> tuple[Matrix, ...]:
    """Return tiles of TILE kept rows, the last with fewer, followed by more rows in tiles."""
    if tiles and tiles[-1].shape[0] < TILE:
        tiles, more = tiles[:-1], stack(tiles[-1], more)
    return (*tiles, *(more[start : start + TILE] for start in range(0, more.shape[0], TILE)))


def kernels_with_tiles(kernel: Kernel, rows: Matrix, tiles: Sequence[Matrix]) -> NDArray:
    """(rows, kept) float64: the kernels with all kept rows."""
    return np.hstack([np.empty((rows.shape[0], 0)), *(kernel_matrix(kernel, rows, tile) for tile in tiles)])


def weighted_sums(kernel: Kernel, rows: Matrix, tiles: Sequence[Matrix], coef: NDArray, each: Callable = map) -> NDArray:
    """(rows, columns) float64: Σ over the kept rows z of K(row, z) times their row of `coef` (kept, columns).

    `each` maps a function over the tiles; their sums are added in the order of the tiles.
    """

    def part(tile: Matrix, share: NDArray) -> NDArray:
        kernels = kernel_matrix(kernel, rows, tile)
        return kernels @ share.astype(kernels.dtype, copy=False)

    total = np.zeros((rows.shape[0], coef.shape[1]))
    starts = accumulate((tile.shape[0] for tile in tiles), initial=0)
    shares = [coef[start:end] for start, end in pairwise(starts)]
    for sums in (map if len(tiles) < 2 else each)(part, tiles, shares):
        total += sums
    return total


@contextmanager
def workers(kernel: Kernel, threads: int) -> Iterator[Callable]:
    """Provide a `map` that uses this many threads; a function of the user is called by the calling thread only."""
    if isinstance(kernel, FunctionKernel):
        yield map
        return
    with one_blas_thread:
        if threads < 2:
            yield map
            return
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map


def check_positive(kernel: Kernel, X: Matrix, which: NDArray) -> None:
    """Raise InvalidData if the kernels among some of these rows of X are not those of an inner product.

    Only kernels from outside are checked. Passing is no proof: no finite sample is.
    """
    if not isinstance(kernel, FunctionKernel | PrecomputedKernel) or len(which) == 0:
        return
    which = which[np.unique(np.linspace(0, len(which) - 1, SAMPLE).astype(np.int64))]
    gram = kernel_matrix(kernel, X[which], kernel.keep(X, which))
    tolerance = float(np.sqrt(np.finfo(gram.dtype).eps) * np.abs(gram).max())
    if not np.isfinite(tolerance):
        row, other = which[np.argwhere(~np.isfinite(gram))[0]]
        raise InvalidData(f"the kernel of rows {row} and {other} is not a finite number", row=int(row))
    uneven = np.abs(gram - gram.T)
    if uneven.max() > tolerance:
        i, j = np.unravel_index(uneven.argmax(), uneven.shape)
        raise InvalidData(
            f"a kernel must be symmetric, but K is {gram[i, j]:g} for rows {which[i]}, {which[j]} and {gram[j, i]:g} for "
            f"rows {which[j]}, {which[i]}",
            row=int(which[i]),
        )
    lowest = float(np.linalg.eigvalsh(gram.astype(np.float64))[0])
    if lowest < -tolerance * len(which):
        raise InvalidData(
            f"a kernel must be positive, but the kernel matrix of {len(which)} rows has the eigenvalue {lowest:.3g}, so K "
            "is not an inner product and the mistake bound does not hold",
            hint="use a positive kernel, such as 'rbf'",
        )
