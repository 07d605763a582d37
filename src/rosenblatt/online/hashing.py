"""A hash gives each name a bucket and a sign, the same in every process and on every machine, so that a model needs no
dictionary and has a size that is known beforehand (Weinberger et al. 2009). The signs make colliding features cancel rather
than add up on average.

32 bits: MurmurHash3, seed 0, of the name in UTF-8, as scikit-learn's FeatureHasher: the same buckets and signs. 64 bits:
BLAKE2b with a digest of eight bytes, little-endian. The bucket is the absolute value of the signed hash modulo the number
of buckets; a negative hash makes the sign negative.
"""

from __future__ import annotations

from hashlib import blake2b
from numbers import Integral
from typing import Any

from sklearn.utils import murmurhash3_32


def hash32(text: bytes) -> int:
    """MurmurHash3 of 32 bits, signed."""
    return int(murmurhash3_32(text, seed=0))


def hash64(text: bytes) -> int:
    """BLAKE2b of 64 bits, signed."""
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)


HASHES = {32: hash32, 64: hash64}


def written(name: Any) -> bytes:
    """A name as bytes that do not depend on the process."""
    if isinstance(name, str):
        return name.encode()
    if isinstance(name, bytes):
        return name
    if isinstance(name, Integral):
        return b"%d" % int(name)
    if isinstance(name, tuple):
        return b"\0".join(map(written, name))
    raise TypeError(
        f"hashing needs names that are written alike in every process: text, bytes, whole numbers or tuples of these; "
        f"got {name!r}, a {type(name).__name__}"
    )


def code(name: Any, buckets: int, bits: int) -> int:
    """Twice the bucket of a name, plus one where its sign is negative."""
    hashed = HASHES[bits](written(name))
    return abs(hashed) % buckets * 2 + (hashed < 0)
