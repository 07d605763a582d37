"""Standard output writes all that it is given, or raises. Results of every command go through it.

Python's own stdout does not always: unbuffered (PYTHONUNBUFFERED, python -u), it silently drops what does not fit on a full
disk, and it gives up when a non-blocking pipe is full. Standard error writes what it can: an error there does not keep a
command from writing its result.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

from rosenblatt.errors import OutputError

NAME = "<stdout>"


class StandardOutput(io.RawIOBase):
    """A file that writes to a descriptor; None if that is closed. The first error is raised, unless `lossy` says to ignore
    errors, and nothing is written after it."""

    def __init__(self, descriptor: int | None, lossy: bool = False):
        self._descriptor, self._lossy = descriptor, lossy
        self._failed = False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._descriptor is not None and os.isatty(self._descriptor)

    def fileno(self) -> int:
        return super().fileno() if self._descriptor is None else self._descriptor

    def write(self, data: Any) -> int:
        """Write all bytes, in as many attempts as it takes, and return their number."""
        view = memoryview(data).cast("B")
        done = len(view) if self._failed else 0
        while done < len(view):
            try:
                done += self._write_some(view[done:])
            except BlockingIOError:
                select.select([], [self.fileno()], [])
            except OSError as error:
                self._failed = True
                if self._lossy:
                    break
                if isinstance(error, BrokenPipeError):
                    raise
                raise OutputError(f"cannot be written: {error.strerror}", NAME, error.errno) from error
        return len(view)

    def _write_some(self, view: memoryview) -> int:
        if self._descriptor is None:
            raise OSError(errno.EBADF, "it is closed")
        return os.write(self._descriptor, view)


def open_stdout() -> TextIO:
    """Return a stdout like that of the process (encoding, buffering), which writes all or raises."""
    given = sys.stdout
    if given is None:  # it was closed, as by >&-
        closed: Any = StandardOutput(None)  # a raw file that writes all will do, though its type says otherwise
        return io.TextIOWrapper(closed, "utf-8", write_through=True)
    raw: Any = StandardOutput(given.fileno())
    unbuffered = isinstance(given.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        given.encoding,
        given.errors,
        line_buffering=raw.isatty(),
        write_through=unbuffered,
    )


def open_stderr() -> TextIO:
    """Return a stderr like that of the process, which drops what cannot be written."""
    given = sys.stderr
    raw = StandardOutput(None if given is None else given.fileno(), lossy=True)
    encoding = "utf-8" if given is None else given.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=True)
