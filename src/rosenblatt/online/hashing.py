"""A hash gives each name a bucket and a sign, the same in every process and on every machine, so that a model needs no
dictionary and has a size that is known beforehand (Weinberger et al. 2009). The signs make colliding features cancel rather
than add up on average.

32 bits: MurmurHash3, seed 0, of the name in UTF-8, as scikit-learn's FeatureHasher: the same buckets and signs. 64 bits:
BLAKE2b with a digest of eight bytes, little-endian. The bucket is the absolute value of the signed hash modulo the number
of buckets; a negative hash makes the sign negative.

Compiled code hashes the names that are a str, an int or a bytes where it meets them; `code` hashes the others.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from numbers import Integral

import numpy as np

from rosenblatt.engine.jit import config, gil_jit, inlined
from rosenblatt.engine.murmur import U, add_block, finish
from rosenblatt.errors import InvalidDataType
from rosenblatt.online.objects import (
    BYTES,
    SIZE,
    put_word,
    release,
    stack_memory,
    text_of,
    word,
)

# Of BLAKE2b: the bytes of a block, the first words of the state, and the order in which ten rounds take the words
BLOCK = 128
_START, _I1, _I2, _I3, _I4, _I5, _I6, _I7 = (
    U(number)
    for number in (
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    )
)  # fmt: skip
_ORDER = np.array([
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3,
    11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4,
    7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8,
    9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13,
    2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9,
    12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11,
    13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10,
    6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5,
    10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0,
], np.int64)  # fmt: skip


@gil_jit
def murmur32(text, size):
    """Return the MurmurHash3 of 32 bits, signed, of `size` bytes from the address `text` on, a multiple of eight: words are
    read only where one of their bytes is among these, so that none is beyond the memory of the object."""
    h = U(0)
    for j in range(size >> 2):
        h = add_block(h, U(word(text, j >> 1) >> 32 * (j & 1) & 0xFFFFFFFF))
    rest = U(0)
    if size & 3:
        rest = U(word(text, size >> 3) >> 8 * (size & 4) & (1 << 8 * (size & 3)) - 1)
    unsigned = np.int64(finish(h, rest, size))
    return unsigned - (unsigned >> 31 << 32)


@inlined
def _rotate(x, by):
    return (x >> U(by)) | (x << U(64 - by))


@inlined
def _mix(a, b, c, d, x, y):
    a = a + b + x
    d = _rotate(d ^ a, 32)
    c = c + d
    b = _rotate(b ^ c, 24)
    a = a + b + y
    d = _rotate(d ^ a, 16)
    c = c + d
    return a, _rotate(b ^ c, 63), c, d


@gil_jit
def blake64(text, size):
    """Return the BLAKE2b of 64 bits, signed, of at most BLOCK bytes from the address `text` on, a multiple of eight (RFC
    7693): twelve rounds of mixing the words of the one block into a state of 16 words."""
    m = stack_memory()
    for j in range(16):
        left = size - 8 * j
        mask = 0 if left <= 0 else -1 if left >= 8 else (1 << 8 * left) - 1
        put_word(m, j, word(text, j) & mask if mask else 0)
    v0, v1, v2, v3, v4, v5, v6, v7 = _START ^ U(0x01010008), _I1, _I2, _I3, _I4, _I5, _I6, _I7
    v8, v9, v10, v11, v12, v13, v14, v15 = _START, _I1, _I2, _I3, _I4 ^ U(size), _I5, ~_I6, _I7
    for r in range(12):
        at = 16 * (r % 10)
        v0, v4, v8, v12 = _mix(v0, v4, v8, v12, _chosen(m, at), _chosen(m, at + 1))
        v1, v5, v9, v13 = _mix(v1, v5, v9, v13, _chosen(m, at + 2), _chosen(m, at + 3))
        v2, v6, v10, v14 = _mix(v2, v6, v10, v14, _chosen(m, at + 4), _chosen(m, at + 5))
        v3, v7, v11, v15 = _mix(v3, v7, v11, v15, _chosen(m, at + 6), _chosen(m, at + 7))
        v0, v5, v10, v15 = _mix(v0, v5, v10, v15, _chosen(m, at + 8), _chosen(m, at + 9))
        v1, v6, v11, v12 = _mix(v1, v6, v11, v12, _chosen(m, at + 10), _chosen(m, at + 11))
        v2, v7, v8, v13 = _mix(v2, v7, v8, v13, _chosen(m, at + 12), _chosen(m, at + 13))
        v3, v4, v9, v14 = _mix(v3, v4, v9, v14, _chosen(m, at + 14), _chosen(m, at + 15))
    return np.int64(_START ^ U(0x01010008) ^ v0 ^ v8)


@inlined
def _chosen(m, at):
    return U(word(m, _ORDER[at]))


@gil_jit
def murmur_code(name, buckets):
    """Return what `code` returns for the hash of 32 bits; −1 for a name that only `code` can hash."""
    text, owner, made = text_of(name)
    if text == 0:
        return -1
    signed = murmur32(text, word(owner, SIZE))
    release(made)
    return abs(signed) % buckets * 2 + (signed < 0)


@gil_jit
def blake_code(name, buckets):
    """Do the same for the hash of 64 bits."""
    text, owner, made = text_of(name)
    if text == 0:
        return -1
    result, size = -1, word(owner, SIZE)
    if size <= BLOCK:
        signed = blake64(text, size)
        result = np.int64(U(-signed if signed < 0 else signed) % U(buckets)) * 2 + (signed < 0)
    release(made)
    return result


def hash32(text: bytes) -> int:
    """Compute the MurmurHash3 of 32 bits, signed."""
    return int(murmur32(id(text) + BYTES, len(text)))


def hash64(text: bytes) -> int:
    """Compute the BLAKE2b hash of 64 bits, signed."""
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)


def _no_code(name: int, buckets: int) -> int:
    return -1


HASHES = {32: hash32, 64: hash64}
# The functions that compute codes in compiled code. In plain Python, unsigned numbers that overflow are errors.
COMPILED = {32: murmur_code, 64: _no_code if config.DISABLE_JIT else blake_code}


def name_bytes(name: Hashable) -> bytes:
    """Return a name as bytes that do not depend on the process."""
    if isinstance(name, str):
        return name.encode()
    if isinstance(name, bytes):
        return name
    if isinstance(name, Integral):
        return b"%d" % int(name)
    if isinstance(name, tuple):
        return b"\0".join(map(name_bytes, name))
    raise InvalidDataType(
        f"with hashing, the name of a feature must be text, bytes, a whole number or a tuple of these; got {name!r}, a "
        f"{type(name).__name__}"
    )


def code(name: Hashable, buckets: int, bits: int) -> int:
    """Return twice the bucket of a name, plus one where its sign is negative."""
    signed = HASHES[bits](name_bytes(name))
    return abs(signed) % buckets * 2 + (signed < 0)
