"""Rows on their way to the kernels: chunk by chunk in the order of their visit, each packed (kernels/pack.cu) into one of a
few places, while the kernels learn from the chunk before. Rows in the machine's memory are sent to the card first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from rosenblatt.gpu.compiling import Kernel, compiled, int32, to_card
from rosenblatt.gpu.layouts import EXAMPLE_BYTES, GROUP, Layout
from rosenblatt.gpu.sending import RowSender, pinned
from rosenblatt.gpu.sources import source_of

_PLACES = 3  # one chunk is learned from while another is packed and a third is copied


class CudaArray(NamedTuple):
    """Rows in the memory of a card, the values of a row one behind the other."""

    array: cupy.ndarray  # (rows, features); of bfloat16 the bits, as uint16
    kind: str  # float16, bfloat16, float32 or float64

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        return self.array.shape


class EpochState(NamedTuple):
    """What an epoch changes on the card, and the rule that it follows."""

    rule: cupy.ndarray  # its fields, as float64
    weights: cupy.ndarray  # (vectors, slices · width)
    drift: cupy.ndarray | None  # of the same shape, in float64
    tallies: cupy.ndarray  # (counters,) int64
    counts: cupy.ndarray  # (3,) int64: struct Counts in kernels/prelude.cu


class Chunk(NamedTuple):
    """Packed rows. They are there once the event `Chunks.ready[place]` has happened on the card."""

    packed: cupy.ndarray  # (rows of a chunk · slices · width,)
    examples: cupy.ndarray  # (rows of a chunk · EXAMPLE_BYTES,) uint8
    place: int  # 0, 1 or 2: which of the buffers it is in
    position: int  # of the first row, in the order of the epoch
    rows: int


class Chunks:
    """Packs the rows of a task, chunk by chunk, in the order of an epoch.

    Parameters
    ----------
    device : int
        The number of the card.
    values : CudaArray or array
        The rows, on the card or in the machine's memory.
    labels : array (rows,) of int64
        Their class numbers.
    weight : array (rows, 2) or None
        The weights of each example and of its class; None: all are 1.
    constant : float
        The constant feature.
    layout : Layout
        How they are packed.
    """

    def __init__(
        self,
        device: int,
        values: CudaArray | NDArray,
        labels: NDArray,
        weight: NDArray | None,
        constant: float,
        layout: Layout,
    ):
        self.layout, self.values, self.constant = layout, values, constant
        self.kind = values.kind if isinstance(values, CudaArray) else values.dtype.name
        self.labels = to_card(labels.astype(np.int32))
        self.weight = None if weight is None else to_card(weight)
        self.pack = Kernel(compiled(device, source_of("pack", layout.real), contract=True), f"pack_{self.kind}")
        self.processors = cupy.cuda.Device(device).attributes["MultiProcessorCount"]
        self.stream = cupy.cuda.Stream(non_blocking=True)
        rows, features = -(-layout.chunk // GROUP) * GROUP, values.shape[1]
        self.packed = [cupy.empty(rows * layout.slices * layout.width, layout.real) for _ in range(_PLACES)]
        self.examples = [cupy.empty(rows * EXAMPLE_BYTES, np.uint8) for _ in range(_PLACES)]
        self.orders = [cupy.empty(rows, np.int64) for _ in range(_PLACES)]
        self.order_buffers = [pinned((rows,), np.dtype(np.int64)) for _ in range(_PLACES)]
        self.copied = [cupy.cuda.Event(disable_timing=True) for _ in range(_PLACES)]  # order_buffers may be written again
        self.ready = [cupy.cuda.Event(disable_timing=True) for _ in range(_PLACES)]
        self.done = [cupy.cuda.Event(disable_timing=True) for _ in range(_PLACES)]  # the kernels are through with a place
        self.staged: list[cupy.ndarray] = []
        if isinstance(values, np.ndarray):
            self.staged = [cupy.empty((rows, features), values.dtype) for _ in range(_PLACES)]
            self.unpacked = [cupy.cuda.Event(disable_timing=True) for _ in range(_PLACES)]  # new rows may be sent
            self.send = RowSender(device, features, values.dtype)

    @staticmethod
    def bytes_needed(layout: Layout, values: CudaArray | NDArray) -> int:
        """Return the bytes that chunks of this layout take on the card."""
        streamed = 0 if isinstance(values, CudaArray) else values.shape[1] * values.itemsize
        of_example = EXAMPLE_BYTES + 8
        return _PLACES * (layout.chunk + GROUP) * (layout.row_bytes + of_example + streamed)

    def __call__(self, order: NDArray, spare: int) -> Iterator[Chunk]:
        """Yield the chunks of an epoch. Packing is only started, in `stream`: the caller records `ready[place]` there, when
        it has added work of its own, and waits for it before it uses a chunk; it records `done[place]` after its last use.
        `spare` multiprocessors are left to other kernels."""
        self.stream.wait_event(cupy.cuda.get_current_stream().record())  # X may still be being computed in that stream
        for number, position in enumerate(range(0, len(order), self.layout.chunk)):
            place, piece = number % _PLACES, order[position : position + self.layout.chunk]
            self.copied[place].synchronize()
            self.stream.wait_event(self.done[place])
            with self.stream:
                self._pack(place, piece, spare)
            yield Chunk(self.packed[place], self.examples[place], place, position, len(piece))

    def _pack(self, place: int, piece: NDArray, spare: int) -> None:
        layout, rows = self.layout, len(piece)
        consecutive = bool(piece[-1] - piece[0] == rows - 1 and (np.diff(piece) == 1).all())
        first = int(piece[0]) if consecutive else 0
        order = None
        if not consecutive:
            self.order_buffers[place][:rows] = piece
            order = self.orders[place]
            order[:rows].set(self.order_buffers[place][:rows], self.stream)
        if isinstance(self.values, CudaArray):
            values = self.values.array[first:] if consecutive else self.values.array
            stride = values.strides[0] // values.itemsize
        else:
            chosen = slice(first, first + rows) if consecutive else piece
            for event in self.send(self.values, chosen, self.staged[place][:rows], self.unpacked[place]):
                self.stream.wait_event(event)
            values, stride = self.staged[place], self.values.shape[1]
        self.copied[place].record(self.stream)
        padded = -(-rows // GROUP) * GROUP
        labels = self.labels[first:] if consecutive else self.labels
        weight = None if self.weight is None else self.weight[first:] if consecutive else self.weight
        self.pack(
            8 * max(self.processors - spare, 1), 256, values, np.int64(stride), int32(self.values.shape[1]),
            np.float64(self.constant), order, int32(bool(self.staged)), labels, weight, np.int64(rows), np.int64(padded),
            int32(layout.block), int32(layout.slices), int32(layout.width), self.packed[place], self.examples[place],
        )  # fmt: skip
        if self.staged:
            self.unpacked[place].record(self.stream)
