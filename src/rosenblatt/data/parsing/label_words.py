"""Labels that are words: each distinct one is decoded once, however many rows have it.

A table of their hashes finds for each row the first row with the same bytes; nothing rests on the hashes being distinct.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.parsing.eights import U, byte, ends, start
from rosenblatt.engine.jit import exact


@exact
def _codes(data, places, slots, codes, firsts):
    """The number of distinct words at the places; codes (places,) says which each is, firsts where one stands first."""
    text = start(data)
    distinct = 0
    mask = len(slots) - 1
    for row in range(len(places)):
        place = places[row]
        hashed = U(0xCBF29CE484222325)  # FNV-1a
        while not ends(byte(text, place)):
            hashed = (hashed ^ U(byte(text, place))) * U(0x100000001B3)
            place += 1
        length = place - places[row]
        slot = np.int64((hashed ^ (hashed >> U(32))) & U(mask))
        while slots[slot] >= 0:
            known = firsts[slots[slot]]
            same = ends(byte(text, known + length))
            for k in range(length):
                if byte(text, known + k) != byte(text, places[row] + k):
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = distinct
            firsts[distinct] = places[row]
            distinct += 1
        codes[row] = slots[slot]
    return distinct


def words(buffer: NDArray[np.uint8], places: NDArray[np.int64]) -> tuple[list[bytes], NDArray[np.int64]]:
    """The distinct words that begin at these places, and which of them stands at each place."""
    slots = np.full(1 << int(2 * len(places) + 1).bit_length(), -1, np.int64)
    codes, firsts = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    distinct = _codes(buffer, places, slots, codes, firsts)
    return [word_at(buffer, int(first)) for first in firsts[:distinct]], codes


def word_at(buffer: NDArray[np.uint8], place: int) -> bytes:
    """The word that begins at a place."""
    length = 64
    while True:
        text = bytes(buffer[place : place + length])
        end = next((k for k, c in enumerate(text) if c in b" \t\n\v\f\r#"), None)
        if end is not None:
            return text[:end]
        length *= 2
