"""Functions with which compiled code reads Python objects: the next item of a dictionary, the hash of a key, the text of a
name, the number in a value. Others read and write memory at an address.

An object is passed as its address, `id(object)`, by a caller that keeps a reference to it and does not change it meanwhile.
Most of these call CPython's C API (the stable ABI), whose functions are found by name when the code is loaded, so compiled
code that calls them is cached like any other. The hash and the text of a str and the number in a float are read where
CPython stores them, without a call. The caller must hold the global interpreter lock: `gil_jit` compiles it so. With
NUMBA_DISABLE_JIT=1 the same functions are written in Python.
"""

from __future__ import annotations

import ctypes
import sys
from math import nan
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rosenblatt.engine.jit import config

STACK_WORDS = 192  # 64-bit words of memory that `stack_memory` gives
_GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio: Knuth's multiplicative hashing


def _word(item: object, index: int) -> int:
    return ctypes.c_int64.from_address(id(item) + 8 * index).value


class _Derived(str):
    """Text whose characters are not in the object itself, as in any subclass of str."""


def _ascii_bits() -> int:
    """Return the two bits of the fifth word of a str that say that it is ASCII and that the object itself has the
    characters; −1, which no str has, if they are not where CPython 3.11 to 3.15 have them."""
    texts = "".join(["ab", "cdefg"]), "".join(["\xe4b", "cdefg"]), _Derived("abcdefg")
    for compact in (1 << 5, 1 << 19):
        bits = compact | compact << 1
        if [_word(text, 4) & bits for text in texts] == [bits, compact, compact << 1]:
            return bits
    return -1


# The characters of a str with these bits are TEXT bytes from its address on, those of a bytes BYTES. The third word of both
# is their number.
ASCII, TEXT, BYTES, SIZE = _ascii_bits(), (40 if sys.version_info >= (3, 12) else 48), 32, 2
_letters = int.from_bytes(b"abcdefg\0", "little")
_array = np.zeros(1)
if (
    (_word("a", 1), _word("a", 3), _word(2.5, 2), _word(_array, 2))
    != (id(str), hash("a"), np.float64(2.5).view(np.int64), _array.ctypes.data)
    or (_word("abcdefg", TEXT // 8), _word("abcdefg", SIZE)) != (_letters, 7)
    or (_word(b"abcdefg", BYTES // 8), _word(b"abcdefg", SIZE)) != (_letters, 7)
):
    raise ImportError(
        "rosenblatt.online needs CPython with the global interpreter lock (GIL), whose objects it reads in memory; "
        f"this is {sys.implementation.name} {sys.version}"
    )


def without_dispatch(function: Any, *kinds: Any) -> Any:
    """Compile a function for arguments of these types and return its entry point, which does not check the types of its
    arguments when it is called: the check takes as long as passing them."""
    if config.DISABLE_JIT:
        return function
    function.compile(kinds)
    return function.overloads[kinds].entry_point


def address_of(function: Any) -> int:
    """Compile a function of two integers and return the address for `call`: a kernel that calls it so does not contain it
    and is compiled in less time."""
    if config.DISABLE_JIT:
        return id(function)
    kinds = types.int64, types.int64
    function.compile(kinds)
    compiled = function.overloads[kinds]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


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

    def call(function, one, other):
        """Call the function at an address with two integers; it returns an integer and raises nothing."""
        return _at(function)(one, other)

    def append(items, item):
        """Put an object at the end of a list."""
        _at(items).append(_at(item))

    def size_of(items):
        """Return the length of a list."""
        return len(_at(items))

    def prefetch_object(item):
        """Ask the processor to load an object into its cache. In plain Python, do nothing."""

    def word(address, index):
        """Return the integer at an index of an array of 64-bit words."""
        return ctypes.c_int64.from_address(int(address + 8 * index)).value

    def put_word(address, index, value):
        """Write an integer to an index of an array of 64-bit words."""
        ctypes.c_int64.from_address(int(address + 8 * index)).value = value

    def real(address, index):
        """Return the number at an index of an array of float64."""
        return ctypes.c_double.from_address(int(address + 8 * index)).value

    def put_real(address, index, value):
        """Write a number to an index of an array of float64."""
        ctypes.c_double.from_address(int(address + 8 * index)).value = value

    def short_hash_of(name):
        """Return 31 bits of the hash of an object, multiplied; those of −1 if it has no hash."""
        try:
            hash_ = hash(_at(name))
        except Exception:
            hash_ = -1
        return hash_ * _GOLDEN % 2**64 >> 33

    def text_of(name):
        """(the address of the UTF-8 text of a str, an int or a bytes, the address of the object that holds it, that object
        if it was made for this and must be released, else 0); zeros if the name is of another type or cannot be encoded."""
        item = _at(name)
        try:
            text = item if type(item) is bytes else str(item).encode() if type(item) in (str, int) else None
        except ValueError:
            text = None
        if text is None:
            return 0, 0, 0
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
        return id(text) + BYTES, id(text), id(text)

    def release(item):
        """Drop the reference to an object, unless its address is 0."""
        if item:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(_at(item)))

    _memory = ctypes.create_string_buffer(8 * STACK_WORDS)

    def stack_memory():
        """Return the address of memory for STACK_WORDS words, which is valid until the calling function returns."""
        return ctypes.addressof(_memory)

else:
    OBJECT = ir.IntType(8).as_pointer()
    WORD, FLAG, REAL = ir.IntType(64), ir.IntType(32), ir.DoubleType()

    def _call(builder, name, answer, *arguments):
        """Call the interpreter's function of this name; words among the arguments are addresses of objects."""
        given = [builder.inttoptr(a, OBJECT) if a.type == WORD else a for a in arguments]
        signature = ir.FunctionType(answer, [a.type for a in given])
        return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), given)

    def _place(builder, address, index, kind):
        """Return a pointer to an element of an array of words or reals."""
        return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])

    def _load(builder, address, index, kind):
        return builder.load(_place(builder, address, index, kind))

    def _clear_error(builder):
        """Return whether the last call raised an exception, and clear it."""
        failed = cgutils.is_not_null(builder, _call(builder, "PyErr_Occurred", OBJECT))
        with builder.if_then(failed, likely=False):
            _call(builder, "PyErr_Clear", ir.VoidType())
        return failed

    def _kind(builder, item):
        """The type of an object: its second word."""
        return builder.load(builder.gep(builder.inttoptr(item, OBJECT.as_pointer()), [WORD(1)]))

    def _is_kind(context, builder, kind, name):
        """Whether a type is the interpreter's own of this name."""
        known = context.get_python_api(builder).get_c_object(f"Py{name}_Type")
        return builder.icmp_unsigned("==", kind, builder.bitcast(known, OBJECT))

    def _is_number(context, builder, item):
        """Whether an object is a float, of any subclass, or exactly an int or a bool: asking these for their number runs no
        code but the interpreter's own, which leaves the dictionary alone."""
        kind = _kind(builder, item)
        exact = builder.or_(*(_is_kind(context, builder, kind, name) for name in ("Long", "Bool")))
        plain = cgutils.alloca_once_value(builder, exact)
        with builder.if_then(builder.not_(exact), likely=False):
            float_type = builder.bitcast(context.get_python_api(builder).get_c_object("PyFloat_Type"), OBJECT)
            derived = _call(builder, "PyType_IsSubtype", FLAG, kind, float_type)
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
    def short_hash_of(typingctx, name):
        def emit(context, builder, signature, arguments):
            answer = cgutils.alloca_once_value(builder, WORD(-1))
            with builder.if_then(_is_kind(context, builder, _kind(builder, arguments[0]), "Unicode"), likely=True):
                builder.store(_load(builder, arguments[0], WORD(3), WORD), answer)  # −1 until it is first asked for
            with builder.if_then(builder.icmp_signed("==", builder.load(answer), WORD(-1)), likely=False):
                found = _call(builder, "PyObject_Hash", WORD, arguments[0])
                builder.store(found, answer)
                with builder.if_then(builder.icmp_signed("==", found, WORD(-1)), likely=False):
                    _clear_error(builder)
            return builder.lshr(builder.mul(builder.load(answer), WORD(_GOLDEN)), WORD(33))

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
            plain = _is_kind(context, builder, _kind(builder, arguments[0]), "Float")
            with builder.if_else(plain, likely=True) as (read, ask):
                with read:
                    builder.store(_load(builder, arguments[0], WORD(2), REAL), answer)
                with ask, builder.if_then(_is_number(context, builder, arguments[0]), likely=True):
                    found = _call(builder, "PyFloat_AsDouble", REAL, arguments[0])
                    builder.store(found, answer)
                    with builder.if_then(builder.fcmp_ordered("==", found, REAL(-1.0)), likely=False):
                        builder.store(builder.select(_clear_error(builder), REAL(nan), found), answer)
            return builder.load(answer)

        return types.float64(types.int64), emit

    @intrinsic
    def text_of(typingctx, name):
        def emit(context, builder, signature, arguments):
            name = arguments[0]
            text, owner, made = (cgutils.alloca_once_value(builder, WORD(0)) for _ in range(3))

            def found(item, offset):
                builder.store(item, owner)
                builder.store(builder.add(item, WORD(offset)), text)

            def convert(function, offset):
                item = builder.ptrtoint(_call(builder, function, OBJECT, name), WORD)
                with builder.if_else(builder.icmp_signed("!=", item, WORD(0)), likely=True) as (done, failed):
                    with done:
                        found(item, offset)
                        builder.store(item, made)
                    with failed:
                        _call(builder, "PyErr_Clear", ir.VoidType())

            kind = _kind(builder, name)
            with builder.if_then(_is_kind(context, builder, kind, "Unicode"), likely=True):
                state = builder.and_(_load(builder, name, WORD(4), WORD), WORD(ASCII))
                with builder.if_else(builder.icmp_signed("==", state, WORD(ASCII)), likely=True) as (plain, other):
                    with plain:
                        found(name, TEXT)
                    with other:
                        convert("PyUnicode_AsUTF8String", BYTES)
            with builder.if_then(_is_kind(context, builder, kind, "Bytes"), likely=False):
                found(name, BYTES)
            with builder.if_then(_is_kind(context, builder, kind, "Long"), likely=False):
                convert("PyObject_Str", TEXT)
            parts = [builder.load(part) for part in (text, owner, made)]
            return context.make_tuple(builder, signature.return_type, parts)

        return types.UniTuple(types.int64, 3)(types.int64), emit

    @intrinsic
    def release(typingctx, item):
        def emit(context, builder, signature, arguments):
            with builder.if_then(builder.icmp_signed("!=", arguments[0], WORD(0)), likely=False):
                _call(builder, "Py_DecRef", ir.VoidType(), arguments[0])
            return context.get_dummy_value()

        return types.void(types.int64), emit

    @intrinsic
    def call(typingctx, function, one, other):
        kinds = types.int64, types.int64

        def emit(context, builder, signature, arguments):
            convention = context.call_conv
            signature_ = convention.get_function_type(types.int64, kinds)
            callee = builder.inttoptr(arguments[0], signature_.as_pointer())
            return convention.call_function(builder, callee, types.int64, kinds, arguments[1:])[1]

        return types.int64(types.int64, *kinds), emit

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

    @intrinsic
    def word(typingctx, address, index):
        def emit(context, builder, signature, arguments):
            return _load(builder, *arguments, WORD)

        return types.int64(types.int64, types.int64), emit

    @intrinsic
    def real(typingctx, address, index):
        def emit(context, builder, signature, arguments):
            return _load(builder, *arguments, REAL)

        return types.float64(types.int64, types.int64), emit

    @intrinsic
    def put_word(typingctx, address, index, value):
        def emit(context, builder, signature, arguments):
            builder.store(arguments[2], _place(builder, *arguments[:2], WORD))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), emit

    @intrinsic
    def put_real(typingctx, address, index, value):
        def emit(context, builder, signature, arguments):
            builder.store(arguments[2], _place(builder, *arguments[:2], REAL))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.float64), emit

    @intrinsic
    def stack_memory(typingctx):
        def emit(context, builder, signature, arguments):
            return builder.ptrtoint(cgutils.alloca_once(builder, ir.ArrayType(WORD, STACK_WORDS)), WORD)

        return types.int64(), emit
