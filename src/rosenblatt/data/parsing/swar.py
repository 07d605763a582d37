"""Read text eight bytes at a time (SWAR): one load, a few operations on all eight bytes at once, no branch per character.

A word is eight bytes of the text as an unsigned number, the first byte lowest. Whoever calls these functions sees to it
that eight bytes can be read from any place they name: an array made by `opening.pieces` has so much room behind its end.
The compiled functions take the address of the text rather than its array, whose references would be counted in the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rosenblatt.engine.jit import config, exact, inlined

U = np.uint64
ZEROS = U(0x3030303030303030)  # "00000000"
ABOVE_NINE = U(0x7676767676767676)  # added to a byte, sets its highest bit if it is above 9
HIGH = U(0x8080808080808080)
ONES = U(0x0101010101010101)
SEVEN = U(0x7F7F7F7F7F7F7F7F)
EVEN = U(0x00FF00FF00FF00FF)


if config.DISABLE_JIT:

    def start(data: Any) -> Any:
        """Return the text that an array of bytes holds, for the functions below."""
        return data

    def byte(text: Any, place: int) -> int:
        """Return the byte at a place."""
        return int(text[place])

    def word(text: Any, place: int) -> np.uint64:
        """Return the eight bytes from a place on."""
        found = text[place : place + 8].tobytes()
        return U(int.from_bytes(found, "little"))

    def trailing(bits: np.uint64) -> int:
        """Return the number of zero bits below the lowest one; 64 if there is none."""
        number = int(bits)
        return (number & -number).bit_length() - 1 if number else 64

    def leading(bits: np.uint64) -> int:
        """Return the number of zero bits above the highest one."""
        return 64 - int(bits).bit_length()

    def product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
        """Return the upper and the lower half of a product, of 64 bits each."""
        whole = int(a) * int(b)
        return U(whole >> 64), U(whole & 0xFFFFFFFFFFFFFFFF)

    def as_float(bits: np.uint64) -> float:
        """Return the double that these bits are."""
        return float(np.uint64(bits).view(np.float64))

else:

    @intrinsic
    def start(typingctx, data):
        """Return the text that an array of bytes holds, for the functions below."""

        def emit(context, builder, signature, arguments):
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            return builder.ptrtoint(array.data, ir.IntType(64))

        return types.int64(data), emit

    def _loaded(builder, arguments, bits):
        kind = ir.IntType(bits)
        return builder.load(builder.inttoptr(builder.add(*arguments), kind.as_pointer()), align=1)

    @intrinsic
    def byte(typingctx, text, place):
        """Return the byte at a place."""

        def emit(context, builder, signature, arguments):
            return builder.zext(_loaded(builder, arguments, 8), ir.IntType(64))

        return types.int64(types.int64, types.int64), emit

    @intrinsic
    def word(typingctx, text, place):
        """Return the eight bytes from a place on."""

        def emit(context, builder, signature, arguments):
            return _loaded(builder, arguments, 64)

        return types.uint64(types.int64, types.int64), emit

    @intrinsic
    def trailing(typingctx, bits):
        """Return the number of zero bits below the lowest one; 64 if there is none."""

        def emit(context, builder, signature, arguments):
            return builder.cttz(arguments[0], cgutils.false_bit)

        return types.int64(types.uint64), emit

    @intrinsic
    def leading(typingctx, bits):
        """Return the number of zero bits above the highest one."""

        def emit(context, builder, signature, arguments):
            return builder.ctlz(arguments[0], cgutils.false_bit)

        return types.int64(types.uint64), emit

    @intrinsic
    def product(typingctx, a, b):
        """Return the upper and the lower half of a product, of 64 bits each."""

        def emit(context, builder, signature, arguments):
            wide = ir.IntType(128)
            whole = builder.mul(*(builder.zext(number, wide) for number in arguments))
            halves = [builder.trunc(part, ir.IntType(64)) for part in (builder.lshr(whole, wide(64)), whole)]
            return context.make_tuple(builder, signature.return_type, halves)

        return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), emit

    @intrinsic
    def as_float(typingctx, bits):
        """Return the double that these bits are."""

        def emit(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], ir.DoubleType())

        return types.float64(types.uint64), emit


@inlined
def digits(eight):
    """Return how many digits the word begins with."""
    t = eight ^ ZEROS
    return trailing(((t + ABOVE_NINE) | t) & HIGH) >> 3


@inlined
def value(eight, count):
    """Return the number that its first `count` digits write, 1 to 8."""
    t = (eight ^ ZEROS) << U(64 - 8 * count)
    t = (t * U(2561)) >> U(8)  # pairs: 10·a + b in each second byte
    t = ((t & U(0x00FF00FF00FF00FF)) * U(6553601)) >> U(16)
    return ((t & U(0x0000FFFF0000FFFF)) * U(42949672960001)) >> U(32)


@inlined
def first(eight, character):
    """Return where the first such byte stands in the word; 8 if there is none."""
    t = eight ^ (ONES * U(character))
    return trailing((t - ONES) & ~t & HIGH) >> 3


@inlined
def blank(c):
    """Return whether the byte separates words, as a line feed does too."""
    return c == 32 or 9 <= c <= 13


@inlined
def ends(c):
    """Return whether a word ends before this byte: a blank, or # that begins a comment."""
    return c == 32 or 9 <= c <= 13 or c == 35


@exact
def line_end(text, place):
    """Return the place of the next line feed."""
    while True:
        found = first(word(text, place), 10)
        place += found
        if found < 8:
            return place


@exact
def line_after(data, place):
    """Return the place behind the next line feed."""
    return line_end(start(data), place) + 1


@exact
def occurrences(data, end, character):
    """Return how often a byte stands in data[:end]: eight counters in a word, added up before the first can overflow."""
    count = 0
    whole = end >> 3
    words = data[: 8 * whole].view(np.uint64)
    sought = ONES * U(character)
    begin = 0
    while begin < whole:
        stop = min(begin + 255, whole)
        counters = U(0)
        for k in range(begin, stop):
            t = words[np.uint64(k)] ^ sought
            counters += ~(((t & SEVEN) + SEVEN) | t | SEVEN) >> U(7)  # 1 in each byte that is zero
        pairs = (counters & EVEN) + ((counters >> U(8)) & EVEN)
        count += np.int64((pairs * U(0x0001000100010001)) >> U(48))
        begin = stop
    for place in range(8 * whole, end):
        count += data[np.uint64(place)] == character
    return count
