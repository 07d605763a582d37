"""How much room there is: what must stay free on the disk, and how much the folder may take."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from time import monotonic

from rosenblatt.errors import LearningPaused, LimitExceeded
from rosenblatt.serve.limits import Limits

_MEASURE_EVERY = 10.0  # seconds between two sums over all files


class DiskSpace:
    """The room for the log in a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    limits : Limits
        What must stay free, and how much the folder may take.
    """

    def __init__(self, folder: Path, limits: Limits):
        self._folder, self._limits = folder, limits
        self._used, self._measured = 0, -_MEASURE_EVERY
        self._reserved = 0  # bytes of files without a name
        self._lock = Lock()

    def check(self, more: int) -> None:
        """Raise an error if there is no room.

        Parameters
        ----------
        more : int
            Bytes that are to be written.

        Raises
        ------
        LearningPaused
            If less would stay free than must.
        LimitExceeded
            If the folder would take more than it may.
        """
        self.check_free(more)
        most = self._limits.disk_bytes
        if most is None:
            return
        with self._lock:
            used = self._used + self._reserved + 2 * more  # what is written is written twice, for a while
            if used > most or monotonic() - self._measured >= _MEASURE_EVERY:
                self._used, self._measured = used_bytes(self._folder), monotonic()
                used = self._used + self._reserved + 2 * more
            self._used += 2 * more
        if used > most:
            self.measure()
            raise LimitExceeded("disk_bytes", used, most, hint="delete a model, or archive a part of its log")

    def check_free(self, more: int) -> None:
        """Raise an error if less would stay free on the disk than must.

        Parameters
        ----------
        more : int
            Bytes that are to be written.

        Raises
        ------
        LearningPaused
            If less would stay free than must.
        """
        status = os.statvfs(self._folder)
        free = status.f_bavail * status.f_frsize - more
        if free < self._limits.disk_free_bytes:
            least = self._limits.disk_free_bytes
            problem = f"the disk would have {max(free, 0):,} bytes free, and {least:,} must stay free"
            raise LearningPaused(
                problem, hint="make room on the disk, or let less stay free: rosenblatt serve --min-free-disk MIB"
            )

    def reserve(self, more: int) -> None:
        """Take room for a file without a name; raise an error if there is none.

        Parameters
        ----------
        more : int
            Bytes that are to be written.
        """
        with self._lock:
            self._reserved += more
        try:
            self.check(0)
        except BaseException:
            self.release(more)
            raise

    def release(self, less: int) -> None:
        """Give back room that was reserved.

        Parameters
        ----------
        less : int
            Bytes.
        """
        with self._lock:
            self._reserved -= less

    def left(self) -> int:
        """Return how many bytes there is room for; below 0 where there is none."""
        status = os.statvfs(self._folder)
        left = status.f_bavail * status.f_frsize - self._limits.disk_free_bytes
        if self._limits.disk_bytes is not None:
            left = min(left, self._limits.disk_bytes - used_bytes(self._folder) - self._reserved)
        return left

    def measure(self) -> None:
        """Measure the folder again when it is checked next: something was removed."""
        self._measured = -_MEASURE_EVERY


def used_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder and in the folders in it.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    bytes : int
    """
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except FileNotFoundError:  # it was removed meanwhile
                continue
    return total
