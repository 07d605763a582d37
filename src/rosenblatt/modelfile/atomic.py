"""A file is replaced at once or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_SHOWN = 32  # letters of the name that a file has while it is written; a name may be too long to be made longer


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends, and vanishes if an error ends it.

    It lies beside the old one until then, and reaches the disk before it replaces it; of several that replace one path at
    the same time, the last one to end stays, whole. A link is followed, permissions are kept, and what is not a plain file
    (a pipe, /dev/stdout) is written to directly.
    """
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {place.parent} to write {place.name} into; make it first")
    if place.exists() and not place.is_file():
        with open(place, "wb") as file:
            yield file
        return
    beside = place.with_name(f".{place.name[:_SHOWN]}.{secrets.token_hex(6)}")
    try:
        with _named(path, beside), open(beside, "xb") as file:
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
    _settle(place.parent)


@contextmanager
def _named(path: str | os.PathLike[str], beside: Path) -> Iterator[None]:
    """Errors about the file beside are told as those of the path that it stands for."""
    try:
        yield
    except OSError as error:
        if error.filename != str(beside):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def _settle(folder: Path) -> None:
    """Let the disk know the new name too, where a folder can be told."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
