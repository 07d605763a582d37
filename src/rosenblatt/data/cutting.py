"""Places where a file can be cut: records end there, and each place is found without reading what lies between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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


def block_ends(path: str, size: int, document: str) -> list[int]:
    """Return places in a file of sentences about `size` bytes apart, each behind the first blank line after a sentence; the
    last is the end of the file. Lines that begin a document, and further blank lines, go with the sentence behind them."""
    return _ends(path, size, partial(_after_block, document=document.encode()))


def _after_block(file: Any, place: int, document: bytes) -> int | None:
    """Return the first place from here on behind a sentence of which at least a line is seen; None if there is none."""
    at = _after_line(file, place)
    if at is None:
        return None
    file.seek(at)
    inside = False
    for line in _lines(file):
        at += len(line)
        blank = line.decode("utf-8", "surrogateescape").isspace()
        if blank and inside:
            return at
        inside = not blank and not line.startswith(document)
    return None


def _lines(file: Any) -> Iterator[bytes]:
    """Yield the lines of a file from where it is, with their ends."""
    rest = b""
    while data := file.read(_STEP):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def holds(path: str, byte: bytes) -> bool:
    """Return whether a byte occurs in a file."""
    buffer = bytearray(_BLOCK)
    with open_binary(path) as file:
        while got := file.readinto(buffer):
            if buffer.find(byte, 0, got) >= 0:
                return True
    return False
