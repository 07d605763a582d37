"""Places where a file can be cut: records end there, and each place is found without reading what lies between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rosenblatt.data.opening import LF, open_binary, size_of_file

_BLOCK = 1 << 20  # bytes that are read at once where all of a file is read
_STEP = 1 << 14  # bytes that are read at once to find the end of a record


def line_ends(path: str, size: int) -> list[int]:
    """Return places in a file about `size` bytes apart, each behind a line end; the last is the end of the file."""
    return _ends(path, size, _after_line)


def _ends(path: str, size: int, find: Callable[[Any, int], int | None]) -> list[int]:
    """Return the end of a file and, before it, the first place that `find` gives from `size` bytes behind each other on."""
    total = size_of_file(path)
    ends = []
    with open_binary(path) as file:
        place = 0
        while total - place > size and (found := find(file, place + size)) is not None and found < total:
            ends.append(found)
            place = found
    return [*ends, total]


def _after_line(file: Any, place: int) -> int | None:
    """Return the first place from here on where a line begins; None if there is none."""
    file.seek(place - 1)
    at = place - 1
    while data := file.read(_STEP):
        if (found := data.find(LF)) >= 0:
            return at + found + 1
        at += len(data)
    return None


def holds(path: str, byte: bytes) -> bool:
    """Return whether a byte occurs in a file."""
    buffer = bytearray(_BLOCK)
    with open_binary(path) as file:
        while got := file.readinto(buffer):
            if buffer.find(byte, 0, got) >= 0:
                return True
    return False
