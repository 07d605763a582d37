"""Eight bytes at a time are the same as one at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.data.parsing.swar import occurrences


@given(st.lists(st.sampled_from(list(b"\n:; \x00\x8a\xba\xff\x0b")), max_size=60), st.integers(1, 99), st.integers(0, 7))
def test_a_byte_is_counted(few, times, cut):
    text = bytes(few) * times
    end = max(len(text) - cut, 0)
    data = np.frombuffer(text + bytes(16), np.uint8).copy()
    for character in b"\n:\xff\x00":
        assert occurrences(data, end, character) == text[:end].count(character)


def test_no_counter_overflows():
    data = np.full(8 * 1000 + 3, ord(":"), np.uint8)
    assert occurrences(data, len(data), ord(":")) == len(data)
    assert occurrences(data, len(data), ord("\n")) == 0
