"""Compiled code can call the interpreter about Python objects: the next item of a dictionary, the hash of a key, the number
that a value stands for.

An object is passed as its address, `id(object)`, by a caller that holds on to it and does not change it meanwhile. The
calls are functions of CPython's stable interface, found by name when the code is loaded, so compiled code that asks
them is cached like any other. It must hold the interpreter's lock, hence a decorator of its own. With NUMBA_DISABLE_JIT=1
the same questions are asked in Python.
"""

from __future__ import annotations

import ctypes
from functools import partial
from math import nan
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rosenblatt.engine.jit import config, kept

gil_jit = partial(kept, options={"error_model": "numpy"})
inline_jit = partial(kept, options={"error_model": "numpy", "inline": "always"})  # a lookup: calls were a fifth of its time

if config.DISABLE_JIT:

    def _at(address: int) -> Any:
        return ctypes.cast(int(address), ctypes.py_object).value

    def next_item(dictionary, position):
        """(whether there is one, the position after it, key, value): the item of a dictionary at a position, 0 first."""
        items = list(_at(dictionary).items())
        if position == len(items):
            return 0, position, 0, 0
        key, value = items[position]
        return 1, position + 1, id(key), id(value)

    def hash_of(key):
        """The 64 bits of the hash of an object; −1, in two's complement, if it has none."""
        try:
            return hash(_at(key)) % 2**64
        except Exception:
            return 2**64 - 1

    def equal(one, other):
        """Whether one object equals the other; comparing them may fail, and they are then not equal."""
        try:
            return one == other or bool(_at(one) == _at(other))
        except Exception:
            return False

    def as_number(value):
        """The number that a float, an int or a bool is; NaN for anything else, which might run code of its own."""
        item = _at(value)
        try:
            return float(item) if type(item) in (float, int, bool) or isinstance(item, float) else nan
        except OverflowError:
            return nan

    def append(items, item):
        """Put an object at the end of a list."""
        _at(items).append(_at(item))

    def size_of(items):
        """How long a list is."""
        return len(_at(items))

    def prefetch_object(item):
        """Ask the processor to bring an object near; it will be needed soon."""

else:
    OBJECT = ir.IntType(8).as_pointer()
    WORD, FLAG, REAL = ir.IntType(64), ir.IntType(32), ir.DoubleType()

    def _call(builder, name, answer, *arguments):
        """Call the interpreter's function of this name; words among the arguments are addresses of objects."""
        given = [builder.inttoptr(a, OBJECT) if a.type == WORD else a for a in arguments]
        signature = ir.FunctionType(answer, [a.type for a in given])
        return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), given)

    def _clear_error(builder):
        """Whether the last question raised an exception, which is forgotten."""
        failed = cgutils.is_not_null(builder, _call(builder, "PyErr_Occurred", OBJECT))
        with builder.if_then(failed, likely=False):
            _call(builder, "PyErr_Clear", ir.VoidType())
        return failed

    def _is_number(context, builder, item):
        """Whether an object is a float, of any subclass, or exactly an int or a bool: asking these for their number runs no
        code but the interpreter's own, which leaves the dictionary alone."""
        header = builder.inttoptr(item, OBJECT.as_pointer())
        kind = builder.load(builder.gep(header, [WORD(1)]))  # a type is the second word of an object
        python = context.get_python_api(builder)
        kinds = [builder.bitcast(python.get_c_object(f"Py{name}_Type"), OBJECT) for name in ("Float", "Long", "Bool")]
        exact = builder.icmp_unsigned("==", kind, kinds[0])
        for other in kinds[1:]:
            exact = builder.or_(exact, builder.icmp_unsigned("==", kind, other))
        plain = cgutils.alloca_once_value(builder, exact)
        with builder.if_then(builder.not_(exact), likely=False):
            derived = _call(builder, "PyType_IsSubtype", FLAG, kind, kinds[0])
            builder.store(builder.icmp_signed("!=", derived, FLAG(0)), plain)
        return builder.load(plain)

    @intrinsic
    def next_item(typingctx, dictionary, position):
        def emit(context, builder, signature, arguments):
            place = cgutils.alloca_once_value(builder, arguments[1])
            key, value = (cgutils.alloca_once_value(builder, OBJECT(None)) for _ in range(2))
            more = _call(builder, "PyDict_Next", FLAG, arguments[0], place, key, value)
            found = [builder.ptrtoint(builder.load(item), WORD) for item in (key, value)]
            return context.make_tuple(
                builder, signature.return_type, [builder.sext(more, WORD), builder.load(place), *found]
            )

        return types.UniTuple(types.int64, 4)(types.int64, types.int64), emit

    @intrinsic
    def hash_of(typingctx, key):
        def emit(context, builder, signature, arguments):
            found = _call(builder, "PyObject_Hash", WORD, arguments[0])
            with builder.if_then(builder.icmp_signed("==", found, WORD(-1)), likely=False):
                _clear_error(builder)
            return found

        return types.int64(types.int64), emit

    @intrinsic
    def equal(typingctx, one, other):
        def emit(context, builder, signature, arguments):
            found = _call(builder, "PyObject_RichCompareBool", FLAG, *arguments, FLAG(2))  # Py_EQ
            with builder.if_then(builder.icmp_signed("<", found, FLAG(0)), likely=False):
                _clear_error(builder)
            return builder.icmp_signed(">", found, FLAG(0))

        return types.boolean(types.int64, types.int64), emit

    @intrinsic
    def as_number(typingctx, value):
        def emit(context, builder, signature, arguments):
            answer = cgutils.alloca_once_value(builder, REAL(nan))
            with builder.if_then(_is_number(context, builder, arguments[0]), likely=True):
                found = _call(builder, "PyFloat_AsDouble", REAL, arguments[0])
                builder.store(found, answer)
                with builder.if_then(builder.fcmp_ordered("==", found, REAL(-1.0)), likely=False):
                    builder.store(builder.select(_clear_error(builder), REAL(nan), found), answer)
            return builder.load(answer)

        return types.float64(types.int64), emit

    @intrinsic
    def append(typingctx, items, item):
        def emit(context, builder, signature, arguments):
            _call(builder, "PyList_Append", FLAG, *arguments)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), emit

    @intrinsic
    def size_of(typingctx, items):
        def emit(context, builder, signature, arguments):
            return _call(builder, "PyList_Size", WORD, arguments[0])

        return types.int64(types.int64), emit

    @intrinsic
    def prefetch_object(typingctx, item):
        def emit(context, builder, signature, arguments):
            hint = ir.FunctionType(ir.VoidType(), [OBJECT, FLAG, FLAG, FLAG])
            address = builder.inttoptr(arguments[0], OBJECT)
            prefetch = cgutils.get_or_insert_function(builder.module, hint, "llvm.prefetch.p0i8")
            builder.call(prefetch, [address, FLAG(0), FLAG(3), FLAG(1)])  # a read, kept in every level, of data
            return context.get_dummy_value()

        return types.void(types.int64), emit
