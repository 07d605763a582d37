"""The decorators that compile functions with numba.

`jit` compiles a function; `exact` one whose sums and quotients must be computed as they are written; `inlined` a short one
of these; `noalias_jit` one whose array arguments do not overlap; `gil_jit` one that calls the Python interpreter, as in
`online/objects.py`. `generic` gives a function one body per type of its first argument, so that a rule or a layout is added
by writing a NamedTuple and a body, and no string or integer code decides inside a loop. `prefetch` asks the processor to
load memory into its cache, and `flat_slice` takes a part of an array without reference counting. With NUMBA_DISABLE_JIT=1
the same source runs as plain Python.

A kernel that Python calls is compiled together with every function that it calls, and cached on disk (`kernel_cache`). Most
of the time of compiling is numba's, for each statement, not the optimizer's. So a function that kernels call is compiled
once for each type and optimized only as a part of the kernel, and kernels are given their work arrays instead of making
them.
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
from rosenblatt.engine.kernel_cache import KernelCache, find_folder, source_hash

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
_SOURCE_HASHES: dict[Any, list[str]] = {}  # of bodies outside this package, by the type they are registered for


def jit(body: Callable) -> Any:
    """Compile a function when it is first called with arguments of new types, and cache it on disk."""
    return compile_and_cache(body, _OPTIONS)


def exact(body: Callable) -> Any:
    """Compile like `jit`, but as written: no quotient becomes a product with a reciprocal, whose last bit may differ."""
    return compile_and_cache(body, _OPTIONS | {"fastmath": False})


def inlined(body: Callable) -> Any:
    """Compile like `exact`, and inline into each caller: for a function so short that a call would cost more."""
    return compile_and_cache(body, _OPTIONS | {"fastmath": False, "forceinline": True})


def noalias_jit(body: Callable) -> Any:
    """Compile like `jit`, and let the compiler assume that array arguments do not overlap in memory (noalias)."""
    body.no_alias = True  # type: ignore[attr-defined]  # _CalleeCompiler reads it; mypy knows no attributes of functions
    return compile_and_cache(body, _OPTIONS)


def gil_jit(body: Callable) -> Any:
    """Compile like `exact`, for a function that holds Python's global interpreter lock (GIL) while it runs."""
    return compile_and_cache(body, _OPTIONS | {"fastmath": False, "nogil": False})


def compile_and_cache(body: Callable, options: dict) -> Any:
    """Compile a function with numba's options when it is first called with arguments of new types; cache it on disk."""
    compiled = njit(**options)(body)
    if isinstance(compiled, CPUDispatcher):
        del vars(compiled)["_cache"]
        compiled.__class__ = _Kernel
    return compiled


class _Kernel(CPUDispatcher):
    """A compiled function that Python can call. A kernel that calls it needs neither the code that unpacks Python objects
    nor a cached file of its own: it calls `callee`, the same function compiled as a part of the caller."""

    @cached_property
    def _cache(self) -> Any:
        """The cache on disk, which is opened when the kernel is first needed."""
        folder = find_folder().folder
        return NullCache() if folder is None else KernelCache(self.py_func, folder, _source_hashes)

    @cached_property
    def callee(self) -> Any:
        """The same function, compiled for other kernels to call."""
        options: Any = {name: self.targetoptions[name] for name in (*_OPTIONS, "forceinline") if name in self.targetoptions}
        return njit(pipeline_class=_CalleeCompiler, **options, **_NO_WRAPPER)(self.py_func)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of a call from another kernel. Literal types are dropped, so that a constant argument does not
        compile the function again."""
        kws = {name: types.unliteral(kind) for name, kind in kws.items()}
        return self.callee.get_call_template(tuple(map(types.unliteral, args)), kws)

    def get_overload(self, args: Any) -> Any:
        """Return what another kernel calls."""
        return self.callee.get_overload(args)


def _source_hashes(signature: Any) -> tuple:
    """Return the hashes of the source files outside this package that define rules or layouts in a signature."""
    found: list = []
    for kind in signature:
        found += _SOURCE_HASHES.get(getattr(kind, "instance_class", None), ())
        found += _source_hashes(getattr(kind, "types", ()))
    return tuple(found)


notice.watch_compiling(_Kernel)


class _CalleeCompiler(Compiler):
    """Compiles a function up to the point where the kernel that calls it can include it."""

    def compile_extra(self, func: Any) -> Any:
        """Compile the function into a library that is not optimized by itself."""
        self.state.library = _CalleeLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.flags.noalias = hasattr(func, "no_alias")
        return super().compile_extra(func)


class _CalleeLibrary(JITCodeLibrary):
    """The code of a callee before optimization: the kernel that includes it is optimized as a whole, once. Optimizing each
    callee too, and making machine code of it, was measured at a third of the time of compiling."""

    class _NoEnvironment:
        """Stands in for numba's environment of Python objects, which no callee uses."""

        @staticmethod
        def set_env(name: str, environment: Any) -> None:
            """Do nothing."""

    codegen = _NoEnvironment

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: Python cannot call a callee."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


_LARGEST = float_info.max


@jit
def is_number(x):
    """Return whether x is neither NaN nor infinite. `np.isfinite` is wrong in these kernels: it tests whether x − x is a
    number, and a compiler that may regroup sums simplifies that to 0 when it sees the sum that x is."""
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
        kernel = compile_and_cache(body, _OPTIONS | {"forceinline": True})
        for each in get_args(kind) or (kind,):
            kernels[each] = kernel
            if source := source_hash(body):
                _SOURCE_HASHES.setdefault(each, []).append(source)
            plain_register(each, body)
        return body

    if not config.DISABLE_JIT:
        dispatched.chooser = _Chooser(signature.__name__, kernels)  # numba's type does not keep it alive
        infer_global(dispatched, types.Dispatcher(dispatched.chooser))
    dispatched.register = register
    return dispatched


class _Chooser:
    """What compiled code calls for a generic function: it looks like a kernel, and passes each call on to the kernel that
    is registered for the type of the first argument."""

    is_compiling = False  # numba asks this about recursion; no generic function calls itself

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
            raise TypingError(
                f"{self.name} has no body for {args[0] if args else 'no argument'}; add one with @{self.name}.register"
            )
        return self.kernels[kind]


if config.DISABLE_JIT:

    def prefetch(array: Any, index: int) -> None:
        """Do nothing: plain Python has no use for a hint to the processor."""

    def flat_slice(array: Any, first: int, size: int) -> Any:
        """Return `size` elements from `first` on, counted in memory order."""
        return array.ravel(order="K")[first : first + size]

else:

    @intrinsic
    def prefetch(typingctx, array, index):
        """Ask the processor to load the cache line of an element, counted in memory order; never faults."""

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
    def flat_slice(typingctx, array, first, size):
        """Return `size` elements from `first` on, counted in memory order, as an array that holds no reference to its
        memory: counting references for each row was measured at more than the time of a short row."""
        if array.layout not in "CF":
            raise TypeError(f"flat_slice needs a contiguous array; got {array}")
        part = array.copy(ndim=1, layout="C")

        def emit(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
            view = context.make_array(part)(context, builder)
            start = builder.gep(data, [arguments[1]])
            populate_array(view, start, [arguments[2]], [itemsize], itemsize, meminfo=None)
            return view._getvalue()

        return part(array, types.intp, types.intp), emit
