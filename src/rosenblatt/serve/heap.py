"""Memory that was freed goes back to the system. glibc keeps it by default, in the hope that as much is needed again: after
a large request for ever. With another C library nothing is done."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # what mallopt can set
LARGE_BLOCK = 8 << 20  # bytes: larger ones go back at once
MUCH_FREE = 64 << 20  # bytes at the end of the heap; with less, each batch would get its pages from the system again
MOST_ARENAS = 4  # of memory, which threads share


class Heap:
    """The memory of this process."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)
        mallopt = getattr(library, "mallopt", None)
        if mallopt is not None:
            mallopt(_MMAP_THRESHOLD, LARGE_BLOCK)
            mallopt(_TRIM_THRESHOLD, MUCH_FREE)
            mallopt(_ARENA_MAX, MOST_ARENAS)

    def trim(self) -> None:
        """Give pages that are not used back to the system."""
        if self._trim is not None:
            self._trim(0)
