"""A decimal number is the double that `float` makes of it, bit for bit."""

import struct
from fractions import Fraction
from math import inf, isfinite, nextafter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rosenblatt.data.parsing import decimals
from rosenblatt.data.parsing.decimals import CERTAIN, DOUBTFUL, FIVES, LOWEST, NONE, of


def bits(x):
    return struct.pack("<d", x)


def agrees(text):
    assert bits(of(text.encode())) == bits(float(text)), text


signs = st.sampled_from(["", "-", "+"])
figures = st.text("0123456789", max_size=25)
powers = st.one_of(st.just(""), st.builds("{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 400)))


@given(signs, figures, st.sampled_from(["", "."]), figures, powers)
@example("", "9007199254740993", "", "", "")  # between two doubles
@example("", "9007199254740993", ".", "0" * 30 + "1", "")
@example("", "9007199254740992", ".", "9" * 30, "")
@example("-", "0", "", "", "e400")
@example("", "1", "", "", "e400")
@example("", "1", "", "", "e-400")
@example("", "0", ".", "0" * 400 + "7", "e401")
@example("", "1" + "0" * 300, "", "", "")
@example("", "1" + "0" * 400, "", "", "")
@example("", "2", ".", "2250738585072011", "e-308")  # the largest subnormal number and its neighbours
@example("", "2", ".", "22507385850720113605740979670913197593481954635164564", "e-308")
@example("", "2", ".", "4703282292062327208299439643411068618252990130716238221279284125", "e-324")  # half the least one
@example("", "2", ".", "4703282292062328", "e-324")
@example("", "1", ".", "7976931348623157", "e308")
@example("", "1", ".", "7976931348623158", "e308")
@example("", "1", ".", "797693134862315807", "e308")
@example("", "1", ".", "7976931348623158079372897140530341507993413271003782693617377898", "e308")
@example("", "1", ".", "79769313486231580793728971405303415079934132710037826936173778980444968292764750", "e308")
def test_any_text(sign, whole, point, parts, power):
    text = sign + whole + point + parts + power
    if whole or parts:
        agrees(text)
    else:
        with pytest.raises(ValueError, match="is not a decimal number"):
            of(text.encode())


@given(st.integers(0, 2**64 - 1))
def test_every_double_comes_back(word):
    x = struct.unpack("<d", struct.pack("<Q", word))[0]
    if isfinite(x):
        assert bits(of(repr(x).encode())) == bits(x)
        for places in (15, 18, 21, 30):
            agrees(f"{x:.{places}e}")


@given(st.floats(0, allow_infinity=False), st.sampled_from([-1, 0, 1]), st.integers(0, 3))
def test_halfway_between_two_doubles(x, aside, zeros):
    above = nextafter(x, inf)
    if isfinite(above):
        middle = (Fraction(x) + Fraction(above)) / 2
        power = middle.denominator.bit_length() - 1  # the denominator is a power of two: so many decimal places are exact
        number = middle.numerator * 5**power * 1000 + aside
        agrees(f"{number}{'0' * zeros}e{-power - 3 - zeros}")


def test_what_is_no_number():
    for text in (
        b"",
        b"-",
        b".",
        b"e5",
        b"1e",
        b"1e+",
        b"1_0",
        b"nan",
        b"inf",
        b"0x1",
        b"1.2.3",
        b" 1",
        b"1 ",
        "١".encode(),
    ):
        with pytest.raises(ValueError, match="is not a decimal number"):
            of(text)


def test_doubt_is_rare_and_said():
    def kind(text):
        with np.errstate(over="ignore"):
            return decimals._number(np.frombuffer(text + bytes(8), np.uint8))

    assert kind(b"9007199254740993.00000000000000000001")[2] == DOUBTFUL
    assert np.isnan(kind(b"9007199254740993.00000000000000000001")[0])
    assert kind(b"1.7976931348623158079372897e308")[::2] == (inf, DOUBTFUL)
    assert kind(b"0.1234567890123456789012345 ") == (0.12345678901234568, 27, CERTAIN)
    assert kind(b"x")[2] == NONE


def test_the_table_is_the_powers_of_five():
    for q in (-342, -300, -28, -27, -1, 0, 1, 27, 55, 56, 308):
        high, low = map(int, FIVES[q - LOWEST])
        exact = Fraction(5) ** q
        scale = Fraction(2) ** (127 - (exact.numerator.bit_length() - exact.denominator.bit_length()))
        scaled = exact * scale
        while scaled < 2**127:
            scaled *= 2
        while scaled >= 2**128:
            scaled /= 2
        cut = scaled.numerator // scaled.denominator
        assert (high << 64 | low) == cut + (-27 <= q < 0)
