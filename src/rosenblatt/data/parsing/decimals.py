"""A decimal number in text is the double nearest to it, a tie going to the even one: bit for bit what `float` says.

Three ways, each taken only where it is proved right. A number w·10^q with w ≤ 2^53 and |q| ≤ 22 is one product or quotient
of two doubles, which the processor rounds correctly (Clinger 1990). For other w of up to 19 digits, the upper 128 bits of
w·5^q decide (Lemire 2021, "Number parsing at a gigabyte per second"; that they always do is proved by Mushtak and Lemire
2023, "Fast number parsing without fallback"). Where a number is longer, its first 19 digits leave an interval; mostly both
ends are rounded to the same double. Where they are not, the number is doubtful, and `float` is asked.

>>> of(b"0.1"), of(b"-1e-7"), of(b"123456789012345678901234567890")
(0.1, -1e-07, 1.2345678901234568e+29)
"""

from __future__ import annotations

import re
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.parsing.swar import U, as_float, byte, digits, leading, product, start, value, word
from rosenblatt.engine.jit import exact, inlined

NONE, CERTAIN, DOUBTFUL = 0, 1, 2

LOWEST, HIGHEST = -342, 308  # powers of ten outside make 0 or infinity of any number of 19 digits
DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(r"[+-]?(nan(\(\w*\))?|inf(inity)?)", re.IGNORECASE)  # ways to write what no label is


def _fives() -> NDArray[np.uint64]:
    """(power, half): 5^q as 128 bits, the highest of them 1; the rest cut off, but for −27 ≤ q < 0 rounded up."""
    rows = []
    for q in range(LOWEST, HIGHEST + 1):
        five = 5 ** abs(q)
        length = five.bit_length()
        if q >= 0:
            bits = five << 128 - length if length <= 128 else five >> length - 128
        else:
            bits = (1 << length + 127) // five + (q >= -27)
        rows.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(rows, np.uint64)


FIVES = _fives()
TENS = 10.0 ** np.arange(23)  # exact doubles
WHOLE_TENS = 10 ** np.arange(20, dtype=np.uint64)
BLANK, LINE, POINT = U(ord(" ")), U(ord("\n")), U(ord("."))
EXACT = U(1 << 53)
LEFT = U(0x7FF8000000000000)  # a NaN; its lower bits are free for a place
PLACES = (1 << 48) - 1
INFINITE = U(0x7FF << 52)


@exact
def nearest(w, q):
    """Return the bits of the double nearest to w·10^q."""
    if w == U(0) or q < LOWEST:
        return U(0)
    if q > HIGHEST:
        return INFINITE
    zeros = leading(w)
    w = w << U(zeros)
    high, low = product(w, FIVES[q - LOWEST, 0])
    if (high & U(0x1FF)) == U(0x1FF):  # the lower half of 5^q may matter
        more, _ = product(w, FIVES[q - LOWEST, 1])
        low = low + more
        if low < more:
            high = high + U(1)
    upper = high >> U(63)
    mantissa = high >> (upper + U(9))
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - zeros + 1023
    if exponent <= 0:  # subnormal
        if exponent <= -63:
            return U(0)
        mantissa = mantissa >> U(1 - exponent)
        mantissa = (mantissa + (mantissa & U(1))) >> U(1)
        return mantissa  # what rounds up to 2^52 has the bits of the smallest normal number
    if low <= U(1) and -4 <= q <= 23 and (mantissa & U(3)) == U(1) and (mantissa << (upper + U(9))) == high:
        mantissa = mantissa - U(1)  # exactly between two doubles: to the even one
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa >= U(1 << 53):
        mantissa = U(1 << 52)
        exponent += 1
    if exponent >= 0x7FF:
        return INFINITE
    return (mantissa & U((1 << 52) - 1)) | (U(exponent) << U(52))


@inlined
def number(text, place):
    """Return the number that begins at a place: its value, where it ends, and NONE, CERTAIN or DOUBTFUL; a doubtful one
    is infinite if it may be, and else NaN."""
    eight = word(text, place)
    w = (eight & U(0xFF)) - U(48)
    c = (eight >> U(8)) & U(0xFF)
    if w < U(10):  # the short ways of most numbers: 1, 0.25 and 0.8414709848078965
        if (c == BLANK) | (c == LINE):
            return np.float64(np.int64(w)), place + 1, CERTAIN
        if c == POINT:
            eight = word(text, place + 2)
            count = digits(eight)
            if 0 < count < 8:
                c = (eight >> U(8 * count)) & U(0xFF)
                if (c == BLANK) | (c == LINE):
                    w = w * WHOLE_TENS[count] + value(eight, count)
                    return np.float64(np.int64(w)) / TENS[count], place + 2 + count, CERTAIN
            elif count == 8:
                w, after = more(text, place + 10, w * WHOLE_TENS[8] + value(eight, 8))
                count = after - place - 2
                c = U(byte(text, after))
                if count < 19 and ((c == BLANK) | (c == LINE)):
                    if w <= EXACT:
                        return np.float64(np.int64(w)) / TENS[count], after, CERTAIN
                    return as_float(nearest(w, -count)), after, CERTAIN
    return _general(text, place)


@exact
def _general(text, place):
    """Return the same for any number."""
    begin = place
    c = byte(text, place)
    negative = c == ord("-")
    if negative or c == ord("+"):
        place += 1
    begun = place
    eight = word(text, place)
    w = U(0)
    count = digits(eight)
    if 0 < count < 8:
        w = value(eight, count)
        place += count
    elif count == 8:
        w, place = more(text, place, w)
    whole = place - begun
    parts = 0
    if byte(text, place) == ord("."):
        place += 1
        eight = word(text, place)
        parts = digits(eight)
        if 0 < parts < 8:
            w = w * WHOLE_TENS[parts] + value(eight, parts)
            place += parts
        elif parts == 8:
            point = place
            w, place = more(text, place, w)
            parts = place - point
    if whole + parts == 0:
        return 0.0, begin, NONE
    power = 0
    if (byte(text, place) | 0x20) == ord("e"):
        after, power = _power(text, place + 1)
        if after < 0:
            return 0.0, begin, NONE
        place = after
    q = power - parts
    if whole + parts <= 19 and w <= EXACT and -22 <= q <= 22:
        x = np.float64(np.int64(w))
        x = x / TENS[-q] if q < 0 else x * TENS[q]
        return -x if negative else x, place, CERTAIN
    return _round(text, begun, place, w, whole + parts, q, negative)


@inlined
def left(place):
    """Return a NaN that carries the place of a number, or of a word, which is left for the caller."""
    return as_float(LEFT | U(place))


@exact
def more(text, place, w):
    """w with all the digits from a place on behind it (modulo 2^64), and where they end."""
    while True:
        eight = word(text, place)
        count = digits(eight)
        if count > 0:
            w = w * WHOLE_TENS[count] + value(eight, count)
        place += count
        if count < 8:
            return w, place


@exact
def _power(text, place):
    """Return where the power of ten that begins at a place ends, and the power; −1 where there is none."""
    c = byte(text, place)
    negative = c == ord("-")
    if negative or c == ord("+"):
        place += 1
    power = 0
    begin = place
    while True:
        c = byte(text, place) - 48
        if not 0 <= c <= 9:
            break
        if power < 100_000_000:  # enough for any text that fits into memory
            power = 10 * power + c
        place += 1
    return (place if place > begin else -1), (-power if negative else power)


@exact
def _round(text, begun, place, w, count, q, negative):
    """Return the same where one operation is not enough."""
    longer = False
    if count > 19:
        w, q, longer = _nineteen(text, begun, q)
    bits = nearest(w, q)
    if longer:
        above = nearest(w + U(1), q)
        if above != bits:
            return inf if above == INFINITE else nan, place, DOUBTFUL
    return as_float(bits | (U(1) << U(63) if negative else U(0))), place, CERTAIN


@exact
def _nineteen(text, place, q):
    """Return the first 19 digits that count, the power of ten behind them, and whether the rest is more than zeros."""
    w = U(0)
    seen = 0
    longer = False
    while True:
        c = byte(text, place)
        place += 1
        if c == ord("."):
            continue
        if not 48 <= c <= 57:
            return w, q, longer
        if seen == 19:
            q += 1
            longer = longer or c != 48
        elif seen > 0 or c != 48:
            w = w * U(10) + U(c - 48)
            seen += 1


@exact
def _number(data):
    return number(start(data), 0)


def places_of(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places that numbers left for the caller carry."""
    return numbers.view(np.int64) & PLACES


def resolve(buffer: NDArray[np.uint8], end: int, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Ask `float` for the numbers that were left, whose text ends before `end`; return which they are."""
    text = buffer.data
    which = np.flatnonzero(np.isnan(numbers))
    for k, place in zip(which, places_of(numbers[which]), strict=True):
        found = DECIMAL.match(text, int(place), end)
        assert found is not None
        numbers[k] = float(bytes(found.group()))
    return which


def of(text: bytes) -> float:
    """Return the number that the text is; ValueError where it is none. One too large for a double is infinite."""
    data = np.frombuffer(text + bytes(8), np.uint8)
    with np.errstate(over="ignore"):
        found, end, kind = _number(data)
    if kind == NONE or end != len(text):
        raise ValueError(f"{text!r} is not a decimal number")
    return float(text) if kind == DOUBTFUL else float(found)
