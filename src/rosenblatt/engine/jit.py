"""Ways of compiling; code that asks the interpreter itself has one more, in `online/objects.py`.

`jit` compiles a body, `exact` one whose sums and quotients must stay as they are written, `inlined` a short one of these.
`generic` gives a function one body per type of its first argument, so that a rule or a layout is added by writing a
NamedTuple and a body, and no string or integer code decides inside a loop. `prefetch` asks the processor for memory it will
need soon. With NUMBA_DISABLE_JIT=1 the same source runs as plain Python.
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
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload

from rosenblatt.engine import notice
from rosenblatt.engine.kernel_cache import KernelCache, place, stamp

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
        folder = place().folder
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

    def get_overload(self, signature: Any) -> Any:
        """Return what another kernel calls."""
        return self.part.get_overload(signature)


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
    bodies: dict[type, Callable] = {}
    plain_register = dispatched.register

    def register(body: Callable) -> Callable:
        annotation = next(iter(body.__annotations__.values()))
        kind = eval(annotation, body.__globals__) if isinstance(annotation, str) else annotation
        for each in get_args(kind) or (kind,):
            bodies[each] = body
            if kept := stamp(body):
                _STAMPS.setdefault(each, []).append(kept)
            plain_register(each, body)
        return body

    if not config.DISABLE_JIT:

        @overload(dispatched, strict=False, inline="always", jit_options=_OPTIONS)
        def choose(first: Any, *others: Any) -> Callable | None:
            return bodies.get(getattr(first, "instance_class", type(None)))

    dispatched.register = register
    return dispatched


if config.DISABLE_JIT:

    def prefetch(array: Any, index: int) -> None:
        """Do nothing: plain Python has no use for a hint to the processor."""

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
