"""A CUDA device, by CuPy: the rows that live there, what estimators ask of them, and runs of learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.problems import Joint, columns
from rosenblatt.errors import GpuUnavailable, InvalidData, InvalidDataType, NotEnoughGpuMemory
from rosenblatt.gpu.card import CardFacts, CardTask, CardValues, DLPackArray, weight_type
from rosenblatt.gpu.chunks import Chunk, Chunks, CudaArray, EpochState
from rosenblatt.gpu.columns import Columns
from rosenblatt.gpu.compiling import NO_POSITION, Gemm, to_card
from rosenblatt.gpu.layouts import columns_layout, largest_cluster, panels_layout, shape_for
from rosenblatt.gpu.panels import Panels
from rosenblatt.gpu.sending import RowSender
from rosenblatt.gpu.translation import rule_values

_PIECE = 1 << 26  # values that are converted, searched or multiplied at once
_RESERVE = 1 << 28  # bytes that are left to the libraries
_FLOATS = ("float16", "float32", "float64")


class CudaCard:
    """A card, by CUDA: see `rosenblatt.gpu.card.Card` for what each method promises.

    Parameters
    ----------
    number : int
        Its number, from 0.

    Raises
    ------
    GpuUnavailable
        If there is no such card, or no driver.
    """

    def __init__(self, number: int):
        self.number, name = number, f"cuda:{number}"
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise GpuUnavailable(str(error), name) from error
        if number >= count:
            raise GpuUnavailable(f"this machine has {count} with CUDA, numbered from 0", name)
        self.device = cupy.cuda.Device(number)
        self.capability = divmod(int(self.device.compute_capability), 10)

    def describe(self) -> CardFacts:
        """Return what is known of the card."""
        with self.device:
            free, total = cupy.cuda.runtime.memGetInfo()
        name = cupy.cuda.runtime.getDeviceProperties(self.number)["name"].decode()
        version = cupy.cuda.runtime.driverGetVersion()
        driver = f"{version // 1000}.{version % 1000 // 10}"
        return CardFacts(name, total, free, "{}.{}".format(*self.capability), driver, f"CuPy {cupy.__version__}")

    def free_bytes(self) -> int:
        """Return how many bytes may be allocated: those that are free on the card, and those that CuPy's pool keeps."""
        with self.device:
            return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes() - _RESERVE

    def require(self, needed: int, what: str) -> None:
        """Raise NotEnoughGpuMemory unless so many bytes are free."""
        if needed > (free := max(self.free_bytes(), 0)):
            raise NotEnoughGpuMemory(needed, free, what)

    def adopt(self, X: DLPackArray) -> CudaArray:
        """Return the rows of an array on this card, without a copy where type and layout fit."""
        array, kind = self._as_cupy(X)
        if array.ndim != 2:
            raise InvalidData(f"X must have two axes, rows and features; it has {array.ndim}, with shape {array.shape}")
        with self.device:
            if array.dtype.kind in "biu" and kind != "bfloat16":
                self.require(8 * array.size, "the values of X in float64")
                array, kind = array.astype(np.float64), "float64"
            elif kind not in (*_FLOATS, "bfloat16"):
                raise InvalidDataType(f"X must hold numbers; it is an array of {kind}", hint="convert it to float32")
            in_rows = array.shape[1] < 2 or array.strides[1] == array.itemsize
            if not in_rows or (array.size and array.strides[0] < 0):
                self.require(array.nbytes, "the rows of X, which must be copied one behind the other,")
                array = cupy.ascontiguousarray(array)
        return CudaArray(array, kind)

    def _as_cupy(self, X: DLPackArray) -> tuple[cupy.ndarray, str]:
        """Return an array of any library as one of CuPy, and the name of its type; bfloat16 as its bits, in uint16."""
        try:
            with self.device:
                if str(getattr(X, "dtype", "")).endswith("bfloat16"):
                    return _bits(X), "bfloat16"
                array = X if isinstance(X, cupy.ndarray) else cupy.from_dlpack(X)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            library = type(X).__module__.partition(".")[0]
            raise InvalidDataType(f"CuPy cannot read this array of {library}: {error}") from error
        return array, array.dtype.name

    def place(self, X: NDArray) -> CardValues:
        """Return a copy of rows on the card, or the rows themselves if there is no room for one."""
        if X.nbytes + X.nbytes // 8 + (2 << 30) > self.free_bytes():
            return X
        with self.device:
            array, send = cupy.empty(X.shape, X.dtype), RowSender(self.number, X.shape[1], X.dtype)
            stream = cupy.cuda.get_current_stream()
            for event in send(X, slice(0, len(X)), array, stream.record()):
                event.synchronize()
        return CudaArray(array, X.dtype.name)

    def _pieces(self, values: CardValues) -> Iterator[cupy.ndarray]:
        """Yield the rows on the card, some at a time, in the type of their weights."""
        rows = max(1, _PIECE // max(values.shape[1], 1))
        for first in range(0, values.shape[0], rows):
            yield self._as_weights(values, slice(first, first + rows))

    def _as_weights(self, values: CardValues, chosen: slice) -> cupy.ndarray:
        real = weight_type(values)
        own = _check_values(values)
        if isinstance(own, np.ndarray):
            return to_card(own[chosen].astype(real, copy=False))
        part = own.array[chosen]
        if own.kind == "bfloat16":
            return (part.astype(np.uint32) << 16).view(np.float32)
        return part.astype(real, copy=False)

    def rows_to_host(self, values: CardValues) -> NDArray:
        """Return a copy of rows in the machine's memory, in the type of their weights."""
        with self.device:
            pieces = [piece.get() for piece in self._pieces(values)]
        return np.concatenate(pieces) if pieces else np.empty(values.shape, weight_type(values))

    def array_to_host(self, array: DLPackArray) -> NDArray:
        """Return a copy of an array in the machine's memory."""
        given, kind = self._as_cupy(array)
        with self.device:
            return (given.astype(np.uint32) << 16).view(np.float32).get() if kind == "bfloat16" else given.get()

    def all_finite(self, values: CardValues) -> bool:
        """Return whether every value is a number."""
        with self.device:
            return all(bool(cupy.isfinite(piece).all()) for piece in self._pieces(values))

    def largest(self, values: CardValues) -> float:
        """Return the largest |value|; NaN if there is a NaN."""
        with self.device:
            found = [float(cupy.abs(piece).max()) for piece in self._pieces(values) if piece.size]
        return float(np.max(found)) if found else 0.0

    def lengths(self, values: CardValues, constant: float) -> NDArray:
        """Return ‖(row, constant)‖² of each row, in float64."""
        with self.device:
            found = [cupy.square(piece.astype(np.float64)).sum(axis=1).get() for piece in self._pieces(values)]
        return np.concatenate([*found, np.empty(0)]) + constant * constant

    def select(self, values: CardValues, rows: NDArray | slice) -> CardValues:
        """Return the rows of these numbers in a copy, or those of a slice without one."""
        own = _check_values(values)
        if isinstance(own, np.ndarray):
            return own[rows]
        with self.device:
            if isinstance(rows, slice):
                return CudaArray(own.array[rows], own.kind)
            self.require(len(rows) * own.shape[1] * own.array.itemsize, "copies of some rows of X")
            return CudaArray(own.array[cupy.asarray(rows)], own.kind)

    def scores(self, values: CardValues, coef: NDArray, intercept: NDArray) -> NDArray:
        """Return values @ coef.T + intercept."""
        real = np.result_type(weight_type(values), coef)
        with self.device:
            w, constant, multiply = to_card(coef.astype(real)), to_card(np.asarray(intercept, real)), Gemm(real)
            found = []
            for piece in self._pieces(values):
                x = cupy.ascontiguousarray(piece.astype(real, copy=False))
                out = cupy.empty((len(x), len(w)), real)
                if out.size and x.shape[1]:
                    multiply(x.data.ptr, w.data.ptr, out.data.ptr, len(x), len(w), x.shape[1], len(w))
                else:
                    out[...] = 0
                found.append((out + constant).get())
        return np.concatenate(found) if found else np.empty((0, len(coef)), real)

    def begin(self, task: CardTask) -> CudaRun:
        """Begin a run of learning."""
        with self.device:
            return CudaRun(self, task)


def _check_values(values: CardValues) -> CudaArray | NDArray:
    """Return rows as they are; raise TypeError if they are on an emulated card, not on a CUDA device or in memory."""
    if not isinstance(values, CudaArray | np.ndarray):
        raise TypeError(f"these rows are not on a CUDA device: {type(values).__name__}")
    return values


def _bits(X: Any) -> cupy.ndarray:
    """Return the bits of an array of bfloat16 as uint16: older versions of CuPy do not have the type."""
    if type(X).__module__.partition(".")[0] == "torch":
        import torch

        return cupy.from_dlpack(X.detach().view(torch.int16)).view(np.uint16)
    array = X.view("uint16")
    return array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(array)


class CudaRun:
    """A run of learning on a card.

    Parameters
    ----------
    card : CudaCard
        The card.
    task : CardTask
        The rows, their labels, the weights to change, and the rule.
    """

    def __init__(self, card: CudaCard, task: CardTask):
        self.card, self.task = card, task
        values, features, vectors, rule = (
            _check_values(task.values),
            task.values.shape[1] + 1,
            columns(task.problem),
            type(task.rule),
        )
        self.real = weight_type(values)
        real, averaged, attributes = self.real.name, task.weights.drift is not None, card.device.attributes
        rows, joint = len(task.labels), isinstance(task.problem, Joint)
        shape = None
        if task.batch == 1 and not joint:
            shared_bytes = attributes["MaxSharedMemoryPerBlockOptin"]
            limits = (attributes["MultiProcessorCount"], shared_bytes, largest_cluster(card.capability, shared_bytes))
            shape = shape_for(vectors, features, real, averaged, *limits)
        if shape is not None:
            self.layout = columns_layout(shape, real, vectors, rows)
            needed = Columns.bytes_needed(self.layout, vectors)
        else:
            self.layout = panels_layout(real, features, task.batch, rows)
            needed = Panels.bytes_needed(self.layout, vectors, task.batch)
        needed += Chunks.bytes_needed(self.layout, values) + len(task.labels) * (4 if task.weight is None else 20)
        needed += vectors * (features + 64) * (self.real.itemsize + (8 if averaged else 0))
        card.require(needed, f"the work arrays for {vectors} weight vectors of {features} features")
        self.learner: Columns | Panels
        if shape is not None:
            self.learner = Columns(card.number, shape, self.layout, rule, vectors, task.weight is not None)
        else:
            self.learner = Panels(card.number, self.layout, rule, vectors, joint, task.batch, task.mean)
        self.chunks = Chunks(card.number, values, task.labels, task.weight, task.constant, self.layout)
        self.rule = to_card(rule_values(task.rule))

    def epoch(self, order: NDArray) -> Progress:
        """Learn from the rows that `order` lists. The weights of the task change at the end, after the last row."""
        host, width = self.task.weights, self.layout.slices * self.layout.width
        with self.card.device:
            drift = None if host.drift is None else self._upload(host.drift, width)
            counts = to_card(np.array([0, 0, NO_POSITION]))
            state = EpochState(self.rule, self._upload(host.w, width), drift, to_card(host.tally), counts)
            if len(order):
                self.learner.stream.wait_event(cupy.cuda.get_current_stream().record())
                try:
                    self._learn(order, int(host.clock[0]), state)
                finally:  # an interrupted run, too, must end before its memory is used again
                    self.chunks.stream.synchronize()
                    self.learner.stream.synchronize()
            mistakes, updates, broken = counts.get().tolist()
            if broken == NO_POSITION:
                self._download(state.weights, host.w)
                if drift is not None and host.drift is not None:
                    self._download(drift, host.drift)
                host.tally[:] = state.tallies.get()
                host.clock[0] += len(order)
        row = -1 if broken == NO_POSITION else int(order[broken])
        return Progress(len(order) if row < 0 else broken, mistakes, updates, row)

    def _learn(self, order: NDArray, clock: int, state: EpochState) -> None:
        learner = self.learner
        if isinstance(learner, Panels) and learner.batch > 1:
            self._learn_batches(learner, order, clock, state)
            return
        for chunk in self._chunks(order):
            with learner.stream:
                learner.visit(chunk, clock, state)

    def _chunks(self, order: NDArray) -> Iterator[Chunk]:
        """The chunks of some rows, for each of which the stream of the learner waits."""
        learner, chunks = self.learner, self.chunks
        for chunk in chunks(order, learner.busy):
            learner.prepare(chunks, chunk)
            chunks.ready[chunk.place].record(chunks.stream)
            learner.stream.wait_event(chunks.ready[chunk.place])
            yield chunk
            chunks.done[chunk.place].record(learner.stream)

    def _learn_batches(self, learner: Panels, order: NDArray, clock: int, state: EpochState) -> None:
        """Learn from batches. One that does not fit a panel leaves its weights in a copy until it ends; if it moves by the
        mean of its moves, a pass before counts them."""
        batch = learner.batch
        if batch <= learner.panel:
            for chunk in self._chunks(order):
                with learner.stream:
                    for first in range(0, chunk.rows, batch):
                        part = range(first, min(first + batch, chunk.rows))
                        last = clock + chunk.position + part.stop - 1
                        learner.visit_batch(chunk, part, last, state, state.weights, "both")
                        learner.end_batch(state)
            return
        with learner.stream:
            left = state.weights.copy()
        for begin in range(0, len(order), batch):
            rows = order[begin : begin + batch]
            last = clock + begin + len(rows) - 1
            for act in ("count", "move") if learner.mean else ("both",):
                for chunk in self._chunks(rows):
                    here = chunk._replace(position=begin + chunk.position)
                    with learner.stream:
                        learner.visit_batch(here, range(chunk.rows), last, state, left, act)
            with learner.stream:
                learner.end_batch(state)
                state.weights[...] = left

    def _upload(self, array: NDArray, width: int) -> cupy.ndarray:
        """Return weights (features + 1,) or (features + 1, vectors) on the card as (vectors, width), padded with zeros."""
        rows = np.atleast_2d(array.T)
        result = cupy.zeros((len(rows), width), array.dtype)
        result[:, : rows.shape[1]] = cupy.asarray(rows)
        return result

    def _download(self, array: cupy.ndarray, to: NDArray) -> None:
        """Copy weights from the card into the array that `_upload` read."""
        to[...] = array[:, : len(to)].get().T.reshape(to.shape)
