"""A file is replaced at once or not at all."""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from rosenblatt.errors import OutputError

_NAME_LENGTH = 32  # letters of the name that a file has while it is written; a name may be too long to be made longer


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of `path` when the block ends, and vanishes if an error ends it.

    It lies beside the old one until then, and reaches the disk before it replaces it; of several that replace one path at
    the same time, the last one to end stays, whole. A link is followed, permissions are kept, and what is not a plain file
    (a pipe, /dev/stdout) is written to directly. What keeps the file from being written is an `OutputError`, but for a pipe
    without a reader; other errors of the block stay as they are.
    """
    check_writable(path)
    if os.path.exists(path) and not os.path.isfile(path):  # the path as it is: the pipe behind /dev/stdout has no other
        with _open(path, path, "w") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    beside = place.with_name(f".{place.name[:_NAME_LENGTH]}.{secrets.token_hex(6)}")
    try:
        with _open(path, beside, "x") as file:
            yield file
            file.flush()
            with _output_errors(path):
                os.fsync(file.fileno())
        with _output_errors(path):
            if place.exists():
                shutil.copymode(place, beside)
            os.replace(beside, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    _sync_folder(place.parent)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OutputError if a file cannot be written there, as far as that can be known before."""
    if os.path.isdir(path):
        raise OutputError("this is a folder, not a file", path, errno.EISDIR, hint="name a file in it")
    folder, name = os.path.split(os.path.realpath(path))
    if not os.path.exists(path) and not os.path.isdir(folder):
        raise OutputError(f"there is no folder {folder} to write {name} into", path, errno.ENOENT, hint="make it first")
    if not os.path.exists(path) and not os.access(folder, os.W_OK):
        raise OutputError("cannot be written: Permission denied", path, errno.EACCES)


class _OutputFile(io.FileIO):
    """A file whose errors in writing name the path that it stands for."""

    path: str | os.PathLike[str]

    def write(self, data: Any) -> int:
        with _output_errors(self.path):
            return super().write(data)


def _open(path: str | os.PathLike[str], place: str | os.PathLike[str], mode: str) -> io.BufferedWriter:
    with _output_errors(path):
        file = _OutputFile(place, mode)
    file.path = path
    return io.BufferedWriter(file)


@contextmanager
def _output_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", path, error.errno) from error


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk too, where a folder can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
