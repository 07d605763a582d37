"""Where the rows of a training come from, pass by pass: from memory, in a new order each time, or from the files again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Chunk, Reading

_COMPRESSED = {".gz": 5, ".bz2": 6, ".xz": 7, ".zst": 5}  # how much text a byte stands for, as a rule
_STEPS = 64  # in which a pass over loaded rows is cut, at least
_MOST_ROWS = 1 << 16  # of a step


class Source(Protocol):
    """The rows that a run learns from, pass by pass."""

    rows: int | None

    def steps(self, number: int, start: int) -> Iterator[tuple[Chunk, int]]:
        """(rows, how many of the pass are done after them), of the pass with this number, from row `start` on."""


class Loaded(NamedTuple):
    """Rows in memory."""

    chunk: Chunk
    live: NDArray  # the rows to learn from
    order: str
    seed: int

    @property
    def rows(self) -> int:
        """How many a pass visits."""
        return len(self.live)

    def steps(self, number: int, start: int) -> Iterator[tuple[Chunk, int]]:
        """See `Source`."""
        order = self.live
        if self.order == "shuffle":
            order = np.random.default_rng([self.seed, number]).permutation(order)
        size = max(1, min(-(-len(order) // _STEPS), _MOST_ROWS))
        for at in range(start, len(order), size):
            part = order[at : at + size]
            yield self.chunk.take(part), at + len(part)


class Streamed:
    """Rows that are read anew in each pass."""

    def __init__(self, reading: Reading, paths: Sequence[str], rows: int | None, on_error: str):
        self.reading, self.paths, self.rows, self.on_error = reading, paths, rows, on_error
        self.skipped, self.digest = 0, ""

    def steps(self, number: int, start: int) -> Iterator[tuple[Chunk, int]]:
        """See `Source`."""
        batches = self.reading.batches(self.paths, on_error=self.on_error)
        at = 0
        try:
            for batch in batches:
                at += batch.rows
                if at <= start or batch.rows == 0:  # steps end where batches do
                    continue
                yield self.reading.chunk(batch), at
            self.digest, self.skipped = batches.digest(), batches.skipped
        finally:
            batches.close()
        self.rows = at


def text_size(file: str) -> int:
    """How many bytes of text a file holds; about, if it is compressed."""
    path = Path(file)
    return path.stat().st_size * _COMPRESSED.get(path.suffix, 1)


def sizes(files: Sequence[str]) -> list[list[Any]]:
    """[[name, bytes], …]; the bytes of a pipe are −1."""
    return [[file, Path(file).stat().st_size if rereadable([file]) else -1] for file in files]


def memory_there_is() -> int:
    """The bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return 1 << 36
