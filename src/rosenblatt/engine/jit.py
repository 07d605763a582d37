"""Ways of compiling.

`jit` compiles a body, `exact` one whose sums and quotients must stay as they are written, `inlined` a short one of these,
`apart` one whose arrays do not overlap, `gil_jit` one that asks the interpreter itself, as `online/objects.py` says.
`generic` gives a function one body per type of its first argument, so that a rule or a layout is added by writing a
NamedTuple and a body, and no string or integer code decides inside a loop. `prefetch` asks the processor for memory it will
need soon, `stretch` is a part of an array at no cost. With NUMBA_DISABLE_JIT=1 the same source runs as plain Python.

A kernel that Python calls is compiled with all that it calls, and kept on disk (`kernel_cache`). What compiling costs is
the time that numba takes for each statement, not the optimizer's: so what kernels call is compiled once for each type, goes
to the optimizer as a part of them only, and kernels are given the arrays that they need to work in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, singledispatch
from sys import float_info
from typing import Any, get_args

from llvmlite import ir
from numba import config as _config
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import infer_global
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from rosenblatt.engine import notice
from rosenblatt.engine.kernel_cache import KernelCache, find_folder, stamp

config: Any = _config

# Sums may be regrouped (that is what lets them be vectorised), but NaN and infinity keep their meaning: full fastmath
# would let the compiler assume that neither occurs, and the kernels rely on seeing them.
_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "nsz", "arcp", "contract"},
    "no_cfunc_wrapper": True,  # nothing here is called through a C pointer
}
_NO_WRAPPER: Any = {"no_cpython_wrapper": True}
_STAMPS: dict[Any, list[str]] = {}  # of the bodies that are not of this package, by the type they are registered for


def jit(body: Callable) -> Any:
    """The body, compiled when it is first called with arguments of a type, and kept on disk."""
    return kept(body, _OPTIONS)


def exact(body: Callable) -> Any:
    """The same, computed as it is written: no quotient becomes a product with a reciprocal, which may be a bit off."""
    return kept(body, _OPTIONS | {"fastmath": False})


def inlined(body: Callable) -> Any:
    """The same as `exact`, and part of each loop that calls it: for a body so short that a call would cost more."""
    return kept(body, _OPTIONS | {"fastmath": False, "forceinline": True})


def apart(body: Callable) -> Any:
    """The same as `jit`, for arguments that lie apart in memory: what is written to one array is read from no other."""
    body.lies_apart = True  # type: ignore[attr-defined]  # for _PartCompiler
    return kept(body, _OPTIONS)


def gil_jit(body: Callable) -> Any:
    """The same as `exact`, holding the interpreter's lock."""
    return kept(body, _OPTIONS | {"fastmath": False, "nogil": False})


def kept(body: Callable, options: dict) -> Any:
    """The body, compiled with options of numba when it is first called with arguments of a type, and kept on disk."""
    compiled = njit(**options)(body)
    if isinstance(compiled, CPUDispatcher):
        del vars(compiled)["_cache"]
        compiled.__class__ = _Kernel
    return compiled


class _Kernel(CPUDispatcher):
    """A kernel for Python to call. Another kernel that calls it does not need the code that takes Python's objects apart,
    nor machine code and a file of its own: it compiles the body once more, as a part of itself."""

    @cached_property
    def _cache(self) -> Any:
        """What is on disk, which is looked for when the kernel is first needed."""
        folder = find_folder().folder
        return NullCache() if folder is None else KernelCache(self.py_func, folder, _stamps)

    @cached_property
    def part(self) -> Any:
        """The body, for other kernels to call."""
        options: Any = {name: self.targetoptions[name] for name in (*_OPTIONS, "forceinline") if name in self.targetoptions}
        return njit(pipeline_class=_PartCompiler, **options, **_NO_WRAPPER)(self.py_func)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call from another kernel; a constant is a number like any other, and compiles no more."""
        kws = {name: types.unliteral(kind) for name, kind in kws.items()}
        return self.part.get_call_template(tuple(map(types.unliteral, args)), kws)

    def get_overload(self, args: Any) -> Any:
        """Return what another kernel calls."""
        return self.part.get_overload(args)


def _stamps(signature: Any) -> tuple:
    """The stamps of the bodies of rules and layouts that are not of this package, by the types in a signature."""
    found: list = []
    for kind in signature:
        found += _STAMPS.get(getattr(kind, "instance_class", None), ())
        found += _stamps(getattr(kind, "types", ()))
    return tuple(found)


notice.follow(_Kernel)


class _PartCompiler(Compiler):
    """Compiles a body up to the point where the kernel that calls it can include it."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a body."""
        self.state.library = _PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.flags.noalias = hasattr(func, "lies_apart")
        return super().compile_extra(func)


class _PartLibrary(JITCodeLibrary):
    """The code of a part, as it was written: the kernel that includes it optimizes the whole, once. Doing so for each part
    too, and making machine code of it, was measured at a third of the time of compiling."""

    class _NoEnvironment:
        """The place of Python's objects, which no part has."""

        @staticmethod
        def set_env(name: str, environment: Any) -> None:
            """Do nothing."""

    codegen = _NoEnvironment

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: Python cannot call a part."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


_LARGEST = float_info.max


@jit
def is_number(x):
    """Whether x is neither NaN nor infinite. In compiled code `np.isfinite` will not do: it asks whether x − x is a number,
    and where sums may be regrouped a − a + b − b is 0 whatever a and b are, as soon as the compiler sees the sum in x."""
    return abs(x) <= _LARGEST


def generic(signature: Callable) -> Any:
    """Turn `signature` into a function whose body is chosen by the type of its first argument.

    Bodies are added with `@name.register`, each with its first argument annotated by a NamedTuple class, or several. Inside
    compiled code the choice is made while compiling and costs nothing; in plain Python it is `functools.singledispatch`.
    """
    dispatched: Any = singledispatch(signature)
    kernels: dict[type, Any] = {}
    plain_register = dispatched.register

    def register(body: Callable) -> Callable:
        annotation = next(iter(body.__annotations__.values()))
        kind = eval(annotation, body.__globals__) if isinstance(annotation, str) else annotation
        kernel = kept(body, _OPTIONS | {"forceinline": True})
        for each in get_args(kind) or (kind,):
            kernels[each] = kernel
            if source := stamp(body):
                _STAMPS.setdefault(each, []).append(source)
            plain_register(each, body)
        return body

    if not config.DISABLE_JIT:
        dispatched.chooser = _Chooser(signature.__name__, kernels)  # numba's type does not keep it alive
        infer_global(dispatched, types.Dispatcher(dispatched.chooser))
    dispatched.register = register
    return dispatched


class _Chooser:
    """What compiled code calls for a generic function: it looks like a kernel, and passes each call on to the kernel that
    the type of the first argument has."""

    is_compiling = False  # itself: no generic function calls itself

    def __init__(self, name: str, kernels: dict[type, Any]):
        self.name, self.kernels = name, kernels

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call."""
        return self._kernel(args).get_call_template(args, kws)

    def get_overload(self, args: Any) -> Any:
        """Return what is called."""
        return self._kernel(args).get_overload(args)

    def _kernel(self, args: Any) -> Any:
        kind = getattr(args[0], "instance_class", None) if args else None
        if kind not in self.kernels:
            raise TypingError(f"{self.name} has no body for {args[0] if args else 'no argument'}")
        return self.kernels[kind]


if config.DISABLE_JIT:

    def prefetch(array: Any, index: int) -> None:
        """Do nothing: plain Python has no use for a hint to the processor."""

    def stretch(array: Any, first: int, size: int) -> Any:
        """Return `size` elements from `first` on, counted in the order of memory."""
        return array.ravel(order="K")[first : first + size]

else:

    @intrinsic
    def prefetch(typingctx, array, index):
        """Ask for the cache line of an element, counted in the order of memory; never faults."""

        def emit(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
            flag = ir.IntType(32)
            hint = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag]),
                "llvm.prefetch.p0i8",
            )
            builder.call(hint, [address, flag(0), flag(3), flag(1)])  # a read, kept in every level, of data
            return context.get_dummy_value()

        return types.void(array, types.intp), emit

    @intrinsic
    def stretch(typingctx, array, first, size):
        """Return `size` elements from `first` on, counted in the order of memory, as an array that does not keep its own
        memory alive: counting who does, for each row, was measured at more than the time of a short row."""
        if array.layout not in "CF":
            raise TypeError(f"stretch takes arrays in one piece, not {array}")
        part = array.copy(ndim=1, layout="C")

        def emit(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
            view = context.make_array(part)(context, builder)
            start = builder.gep(data, [arguments[1]])
            populate_array(view, start, [arguments[2]], [itemsize], itemsize, meminfo=None)
            return view._getvalue()

        return part(array, types.intp, types.intp), emit
