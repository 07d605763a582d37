"""A file is replaced at once or not at all, and a process that is killed while it writes leaves nothing behind.

Where the system has them (Linux), the new content goes into a file without a name, which vanishes with the process. It gets
a name beside the old file only when it is complete, and takes its place in the next call. Who is killed between the two
leaves that name; so does any process where files without a name do not exist. The next one that replaces the same file
removes such names: each carries a lock as long as its writer lives, and those without one are stale.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from rosenblatt.errors import OutputError

try:
    import fcntl
except ImportError:  # not on Windows, where what a killed process wrote stays
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

_NAME_LENGTH = 32  # letters of the name that a file has while it is written; a name may be too long to be made longer
_DESCRIPTORS = "/proc/self/fd"
_NO_NAMELESS = {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL}  # a file system without files without a name


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of `path` when the block ends, and vanishes if an error ends it.

    It reaches the disk before it replaces the old one; of several that replace one path at the same time, the last one to
    end stays, whole. A link is followed, permissions are kept, and what is not a plain file (a pipe, /dev/stdout) is
    written to directly. What keeps the file from being written is an `OutputError`, but for a pipe without a reader; other
    errors of the block stay as they are.
    """
    check_writable(path)
    if os.path.exists(path) and not os.path.isfile(path):  # the path as it is: the pipe behind /dev/stdout has no other
        with _output_errors(path):
            opened = _OutputFile(path, "w")
        with _buffered(path, opened) as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    remove_stale(place)
    beside = place.with_name(f"{_beginning(place)}{secrets.token_hex(6)}")
    try:
        with _output_errors(path):
            opened, nameless = _open_beside(beside)
        with _buffered(path, opened) as file:
            yield file
            file.flush()
            with _output_errors(path):
                os.fsync(file.fileno())
                if place.exists() and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), place.stat().st_mode & 0o7777)
                if nameless:
                    _give_name(file.fileno(), beside)
                os.replace(beside, place)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    _sync_folder(place.parent)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OutputError if a file cannot be written there, as far as that can be known before."""
    with _output_errors(path):
        if os.path.islink(path):
            with suppress(FileNotFoundError):
                os.stat(path)  # symbolic links that form a loop are an error
    if os.path.isdir(path):
        raise OutputError("this is a folder, not a file", path, errno.EISDIR, hint="name a file in it")
    folder, name = os.path.split(os.path.realpath(path))
    if not os.path.exists(path) and not os.path.isdir(folder):
        raise OutputError(f"there is no folder {folder} to write {name} into", path, errno.ENOENT, hint="make it first")
    if not os.path.exists(path) and not os.access(folder, os.W_OK):
        raise OutputError("cannot be written: Permission denied", path, errno.EACCES)


def remove_stale(place: Path) -> None:
    """Remove what processes that were killed while they replaced this file have left beside it."""
    stale = re.compile(re.escape(_beginning(place)) + "[0-9a-f]{12}")
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if stale.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "rb") as file:
                    _lock(file.fileno())  # BlockingIOError as long as its writer lives
                    os.unlink(entry.path)


def _beginning(place: Path) -> str:
    return f".{place.name[:_NAME_LENGTH]}."


def _lock(descriptor: int) -> None:
    if fcntl is None:
        raise BlockingIOError
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open_beside(beside: Path) -> tuple[_OutputFile, bool]:
    """Return a new file, and whether it has no name yet; else it is called `beside`."""
    nameless = hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS)
    if nameless:
        try:
            descriptor = os.open(beside.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
        except OSError as reason:
            if reason.errno not in _NO_NAMELESS:
                raise
            nameless = False
    if not nameless:
        descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    with suppress(OSError):  # a file system without locks
        _lock(descriptor)
    if not nameless and os.fstat(descriptor).st_nlink == 0:  # removed as stale before it was locked
        os.close(descriptor)
        return _open_beside(beside)
    return _OutputFile(descriptor, "w"), nameless


def _give_name(descriptor: int, beside: Path) -> None:
    folder = os.open(_DESCRIPTORS, os.O_RDONLY)
    try:  # the folder is given because os.link follows the link to the file only then
        os.link(str(descriptor), beside, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


class _OutputFile(io.FileIO):
    """A file whose errors in writing name the path that it stands for."""

    path: str | os.PathLike[str]

    def write(self, data: Any) -> int:
        with _output_errors(self.path):
            return super().write(data)


def _buffered(path: str | os.PathLike[str], file: _OutputFile) -> io.BufferedWriter:
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
