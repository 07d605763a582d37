"""Rows on their way from the machine's memory to a card: each of several threads copies its part of them into two small
buffers in turns, from which the card copies by itself. The buffers are pinned, which means that the machine does not move
them in its memory; and they are small, so that they stay in the processor's cache: threads filled large ones with 20 GB/s,
small ones with 57, which is as much as the bus of an H200 carries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cupy
import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.blocks import available_threads

_THREADS = 12  # at most
_BUFFER = 4 << 20  # bytes
_HOST_TO_DEVICE = 1  # cudaMemcpyKind


def pinned(shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    """An array in pinned memory."""
    size = int(np.prod(shape))
    memory = cupy.cuda.alloc_pinned_memory(max(size * dtype.itemsize, 1))
    return np.frombuffer(memory, dtype, size).reshape(shape)


class RowSender:
    """Copies rows from the machine's memory to a card, with several threads.

    Parameters
    ----------
    device : int
        The number of the card.
    features : int
        The number of values in a row.
    dtype : numpy.dtype
        Their type.
    """

    def __init__(self, device: int, features: int, dtype: np.dtype):
        self.device, self.count = device, min(available_threads(None), _THREADS)
        self.rows = max(_BUFFER // max(features * dtype.itemsize, 1), 1)  # in a buffer
        self.buffers = [[pinned((self.rows, features), dtype) for _ in range(2)] for _ in range(self.count)]
        self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(self.count)]
        self.free = [[cupy.cuda.Event(block=True, disable_timing=True) for _ in range(2)] for _ in range(self.count)]
        use = cupy.cuda.Device(device).use  # a thread begins with the first device
        self.threads = ThreadPoolExecutor(self.count, "rosenblatt-gpu-copy", use)

    def __call__(self, values: NDArray, chosen: NDArray | slice, to: cupy.ndarray, after: cupy.cuda.Event) -> list:
        """Start to copy the rows `chosen` of `values` into an array on the card, after the event `after`; return the events
        that are complete when the rows are there."""
        cuts = np.linspace(0, len(to), self.count + 1).astype(int).tolist()

        def send(thread: int) -> cupy.cuda.Event:
            stream, end = self.streams[thread], cuts[thread + 1]
            stream.wait_event(after)
            for turn, first in enumerate(range(cuts[thread], end, self.rows)):
                rows, free = min(self.rows, end - first), self.free[thread][turn % 2]
                buffer = self.buffers[thread][turn % 2][:rows]
                free.synchronize()
                if isinstance(chosen, slice):
                    buffer[:] = values[chosen.start + first : chosen.start + first + rows]
                else:
                    np.take(values, chosen[first : first + rows], axis=0, out=buffer, mode="clip")
                there = to.data.ptr + first * to.shape[1] * to.itemsize
                cupy.cuda.runtime.memcpyAsync(there, buffer.ctypes.data, buffer.nbytes, _HOST_TO_DEVICE, stream.ptr)
                free.record(stream)
            return stream.record()

        return list(self.threads.map(send, range(self.count)))
