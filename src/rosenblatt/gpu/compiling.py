"""The kernels in kernels/*.cu, compiled for a rule, a type of weights and a layout when they are first needed. CuPy keeps
what was compiled on disk, so that this takes a second once."""

from __future__ import annotations

from functools import cache

import cupy
import numpy as np
from numpy.typing import DTypeLike, NDArray

_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14  # CUfunction_attribute: clusters of more than 8 thread blocks
NO_POSITION = np.iinfo(np.int64).max


@cache
def compiled(device: int, source: str, contract: bool = False) -> cupy.RawModule:
    """Return a source compiled for a device; with `contract`, a product and a sum may become one `fma`, rounded once."""
    options = ("--std=c++17",) if contract else ("--std=c++17", "--fmad=false")
    with cupy.cuda.Device(device):
        return cupy.RawModule(code=source, options=options, backend="nvrtc")


class Kernel:
    """A kernel of a compiled source, which is called to launch it.

    Parameters
    ----------
    module : cupy.RawModule
        The compiled source.
    name : str
        The name of the kernel.
    shared_bytes : int
        The dynamic shared memory of each thread block.
    large_clusters : bool
        Whether it runs in clusters of more than 8 thread blocks.
    """

    def __init__(self, module: cupy.RawModule, name: str, shared_bytes: int = 0, large_clusters: bool = False):
        self.function = module.get_function(name)
        self.shared_bytes = shared_bytes
        if shared_bytes:
            self.function.max_dynamic_shared_size_bytes = shared_bytes
        if large_clusters:
            cupy.cuda.driver.funcSetAttribute(self.function.kernel.ptr, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)

    def __call__(self, blocks: int, threads: int, *arguments: object) -> None:
        """Launch it in the current stream; arguments are arrays (None: a null pointer) and numbers of numpy's types."""
        plain = tuple(np.uintp(0) if argument is None else argument for argument in arguments)
        self.function((blocks,), (threads,), plain, shared_mem=self.shared_bytes)


class Gemm:
    """Matrix products of float32 or float64 with all their digits: TF32 is off, even where CuPy is told to use it.

    Parameters
    ----------
    real : str
        "float32" or "float64".
    """

    def __init__(self, real: DTypeLike):
        blas, letter = cupy.cuda.cublas, "s" if np.dtype(real) == np.float32 else "d"
        self.handle = _handle()
        self._one, self._zero = np.ones(1, real), np.zeros(1, real)
        self._gemm, self._batched = getattr(blas, f"{letter}gemm"), getattr(blas, f"{letter}gemmStridedBatched")

    def __call__(self, a: int, b: int, out: int, rows: int, vectors: int, width: int, pitch: int) -> None:
        """out (rows, pitch), of which `vectors` columns are written, = a (rows, width) @ b (vectors, width).T; pointers to
        C-contiguous matrices."""
        blas = cupy.cuda.cublas
        self._gemm(
            self.handle, blas.CUBLAS_OP_T, blas.CUBLAS_OP_N, vectors, rows, width, self._one.ctypes.data, b, width, a,
            width, self._zero.ctypes.data, out, pitch,
        )  # fmt: skip

    def grams(self, a: int, out: int, count: int, rows: int, width: int) -> None:
        """out[i] = a[i] @ a[i].T for so many matrices (rows, width)."""
        blas = cupy.cuda.cublas
        self._batched(
            self.handle, blas.CUBLAS_OP_T, blas.CUBLAS_OP_N, rows, rows, width, self._one.ctypes.data, a, width,
            rows * width, a, width, rows * width, self._zero.ctypes.data, out, rows, rows * rows, count,
        )  # fmt: skip


def _handle() -> int:
    """The handle of cuBLAS for the current device, in the mode in which sums of float32 have all their digits."""
    handle = cupy.cuda.device.get_cublas_handle()
    cupy.cuda.cublas.setMathMode(handle, cupy.cuda.cublas.CUBLAS_DEFAULT_MATH)
    cupy.cuda.cublas.setPointerMode(handle, cupy.cuda.cublas.CUBLAS_POINTER_MODE_HOST)
    return handle


def address(array: cupy.ndarray, index: int) -> np.uintp:
    """Return a pointer to an element of an array, for a kernel; to make a view of the array takes ten times as long."""
    return np.uintp(array.data.ptr + index * array.itemsize)


def int32(value: int) -> np.int32:
    """Return an argument for a parameter of type int in a kernel."""
    return np.int32(value)


def to_card(array: NDArray) -> cupy.ndarray:
    """Return a copy of an array in the memory of the current card."""
    return cupy.asarray(np.ascontiguousarray(array))
