"""The steps of MurmurHash3 with 32 bits, on unsigned numbers of 64 bits: one for each block of four bytes, and the last.
Whoever hashes reads the bytes."""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.jit import inlined

U = np.uint64
LOW = U(0xFFFFFFFF)


@inlined
def _scramble(k):
    k = (k * U(0xCC9E2D51)) & LOW
    k = ((k << U(15)) | (k >> U(17))) & LOW
    return (k * U(0x1B873593)) & LOW


@inlined
def add_block(h, k):
    """Return the hash after four more bytes, the first of them lowest in k."""
    h ^= _scramble(k)
    h = ((h << U(13)) | (h >> U(19))) & LOW
    return (h * U(5) + U(0xE6546B64)) & LOW


@inlined
def finish(h, rest, size):
    """Return the hash of `size` bytes, after its blocks, from the up to three bytes that are no block; 0 if there are
    none."""
    h ^= _scramble(rest)
    h ^= U(size)
    h ^= h >> U(16)
    h = (h * U(0x85EBCA6B)) & LOW
    h ^= h >> U(13)
    h = (h * U(0xC2B2AE35)) & LOW
    return h ^ (h >> U(16))
