"""What `rosenblatt.gpu` asks of CuPy, in numpy: arrays lie in the machine's memory, and kernels are only written down."""

import ctypes
import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np


class FakeArray(np.ndarray):
    """An array that pretends to lie on a card."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.array(self)

    def set(self, array, stream=None):
        self[...] = array


class Event:
    """An event that has always come."""

    def __init__(self, **options):
        pass

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass


class Stream(nullcontext):
    """A stream in which everything is done at once."""

    ptr = 0

    def __init__(self, **options):
        super().__init__()

    def wait_event(self, event):
        pass

    def record(self, event=None):
        return Event()

    def synchronize(self):
        pass


class Device(nullcontext):
    """An H200."""

    attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerBlockOptin": 232_448}
    compute_capability = "90"

    def __init__(self, number):
        super().__init__()

    def use(self):
        pass


class Launch(SimpleNamespace):
    """A kernel that was launched: its name, the parameters that it declares, grid, block, arguments and memory."""


def declared(source, name):
    """The types of the parameters of a kernel: pointer, int, int64 or double."""
    source = source.replace("\\\n", "\n")
    written = "NAME" if f"\nPACK({name}, " in source else name  # one macro writes the kernels of all types
    found = re.search(rf"__global__ void [^{{;]*?\b{written}\(([^{{]*?)\)\s*\{{", source)
    parameters = found[1].replace("const ", "").split(",")
    return ["pointer" if "*" in parameter else parameter.split()[0] for parameter in parameters]


def fake_cupy(launches):
    """A module that takes the place of CuPy, and notes all launches in a list."""

    class Function:
        max_dynamic_shared_size_bytes = 0
        kernel = SimpleNamespace(ptr=0)

        def __init__(self, source, name):
            self.source, self.name = source, name

        def __call__(self, grid, block, arguments, shared_mem=0):
            launches.append(Launch(
                name=self.name, declared=declared(self.source, self.name), grid=grid, block=block,
                arguments=arguments, shared_mem=shared_mem,
            ))  # fmt: skip

    class RawModule:
        def __init__(self, code, options, backend):
            self.code = code

        def get_function(self, name):
            return Function(self.code, name)

    def note_product(name):
        return lambda *arguments: launches.append(Launch(name=name, declared=None, arguments=arguments))

    def array(make):
        return lambda *arguments: make(*arguments).view(FakeArray)

    cublas = SimpleNamespace(
        CUBLAS_OP_N=0, CUBLAS_OP_T=1, CUBLAS_DEFAULT_MATH=0, CUBLAS_POINTER_MODE_HOST=0,
        setMathMode=lambda *arguments: None, setPointerMode=lambda *arguments: None,
        **{name: note_product(name) for name in ("sgemm", "dgemm", "sgemmStridedBatched", "dgemmStridedBatched")},
    )  # fmt: skip
    runtime = SimpleNamespace(
        CUDARuntimeError=RuntimeError,
        getDeviceCount=lambda: 1,
        memGetInfo=lambda: (1 << 36, 1 << 37),
        memcpyAsync=lambda to, source, size, kind, stream: ctypes.memmove(to, source, size),
    )
    cuda = SimpleNamespace(
        Device=Device, Stream=Stream, Event=Event, cublas=cublas, runtime=runtime,
        alloc_pinned_memory=lambda size: np.zeros(size, np.uint8).data, get_current_stream=Stream,
        device=SimpleNamespace(get_cublas_handle=lambda: 0),
        driver=SimpleNamespace(funcSetAttribute=lambda *arguments: None),
    )  # fmt: skip
    return SimpleNamespace(
        cuda=cuda, ndarray=FakeArray, RawModule=RawModule, __version__="of a test",
        empty=array(np.zeros), zeros=array(np.zeros), full=array(np.full), asarray=array(np.array),
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
    )  # fmt: skip
