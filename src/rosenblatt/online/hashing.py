"""A hash gives each name a bucket and a sign, the same in every process and on every machine, so that a model needs no
dictionary and has a size that is known beforehand (Weinberger et al. 2009). The signs make colliding features cancel rather
than add up on average.

32 bits: MurmurHash3, seed 0, of the name in UTF-8, as scikit-learn's FeatureHasher: the same buckets and signs. 64 bits:
BLAKE2b with a digest of eight bytes, little-endian. The bucket is the absolute value of the signed hash modulo the number
of buckets; a negative hash makes the sign negative.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from numbers import Integral

import numpy as np

from rosenblatt.errors import InvalidDataType


def hash32(text: bytes) -> int:
    """Compute the MurmurHash3 of 32 bits, signed."""
    from rosenblatt.data.vw.rows import murmur_of

    unsigned = int(murmur_of(np.frombuffer(text + bytes(8), np.uint8)))  # padded, as it reads eight bytes at a time
    return unsigned - (unsigned >> 31 << 32)


def hash64(text: bytes) -> int:
    """Compute the BLAKE2b hash of 64 bits, signed."""
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)


HASHES = {32: hash32, 64: hash64}


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
