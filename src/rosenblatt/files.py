"""A file is replaced at once or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends, and vanishes if an error ends it.

    It lies beside the old one until then, and reaches the disk before it replaces it. A link is followed, permissions are
    kept, and what is not a plain file (a pipe, /dev/stdout) is written to directly.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        with open(place, "wb") as file:
            yield file
        return
    beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if place.exists():
            shutil.copymode(place, beside)
        os.replace(beside, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
