"""A table from 64-bit keys to 64-bit payloads, probed in place. A key and its payload share a cache line, so that a
question costs one visit to memory, and `request` asks for it ahead of time.

A key is a hash of a feature's name. Among ten million features two share a key with probability 3·10⁻⁶ (n²/2⁶⁵), so a key
is as good as a name. The key 0 stands for no feature, and marks an empty slot.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from rosenblatt.engine.jit import jit, prefetch

ABSENT = np.uint64(2**64 - 1)
_EMPTY = np.uint64(0)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴/φ, as in Fibonacci hashing
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)  # a multiplier of SplitMix64 (Steele, Lea and Flood 2014)
_HALF = np.uint64(32)
_STEP = np.uint64(1)


@jit
def mix(h, x):
    """A hash of h and x, in this order; never 0."""
    h = (h ^ x) * _ODD
    h = (h ^ (h >> _HALF)) * _SPREAD
    h ^= h >> _HALF
    return h if h != _EMPTY else _STEP


@register_jitable
def new_slots(capacity):
    """(capacity, 2) uint64, empty: the keys, and their payloads. The capacity must be a power of two."""
    return np.zeros((capacity, 2), np.uint64)


@jit
def request(slots, key):
    """Ask the processor for the slot of a key, which will be needed soon."""
    prefetch(slots, np.intp((key & np.uint64(slots.shape[0] - 1)) << _STEP))


@jit
def find(slots, key):
    """The payload of a key; ABSENT if it has none."""
    mask = np.uint64(slots.shape[0] - 1)
    at = key & mask
    while slots[at, 0] != _EMPTY:
        if slots[at, 0] == key:
            return slots[at, 1]
        at = (at + _STEP) & mask
    return ABSENT


@jit
def claim(slots, key):
    """The slot of a key, which is entered with payload ABSENT if it is new. A slot must be free."""
    mask = np.uint64(slots.shape[0] - 1)
    at = key & mask
    while slots[at, 0] != _EMPTY:
        if slots[at, 0] == key:
            return at
        at = (at + _STEP) & mask
    slots[at, 0] = key
    slots[at, 1] = ABSENT
    return at


@jit
def resized(slots, capacity):
    """The same keys and payloads in a table of another capacity."""
    larger = new_slots(capacity)
    for at in range(slots.shape[0]):
        if slots[at, 0] != _EMPTY:
            larger[claim(larger, slots[at, 0]), 1] = slots[at, 1]
    return larger


@register_jitable
def capacity_for(keys):
    """The smallest capacity of which this many keys fill less than half."""
    capacity = 16
    while capacity < 2 * keys + 2:
        capacity *= 2
    return capacity
