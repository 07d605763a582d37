"""Pieces of files are parsed ahead on all cores and handed over in the order of the files.

Each thread takes the next piece, one after the other, and then parses it while the others go on; a compiled parser lets go
of the interpreter meanwhile. A few pieces are under way at any time and no more, so that memory is bounded by them and
not by the files. What is wrong in a piece is said when its turn comes, with the number of the line in its file.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import LF, FormatError, Input, Piece, name_of, pieces, size_of
from rosenblatt.data.parsing.fingerprint import Fingerprint

SIZE = 1 << 21  # bytes of text in a piece: it and its rows stay in the cache of a core
MOST_THREADS = 8  # one thread alone decompresses or reads
MOST_ERRORS = 100  # that are remembered of the lines left out
SHOWN = 32  # characters of what is wrong in a message

_wrapping = partial(np.errstate, over="ignore")  # uncompiled, the parsers rely on 64 bits being all there are

Batch = TypeVar("Batch")


class Wrong(NamedTuple):
    """What is wrong with a line of a piece."""

    line: int  # of the piece, counted from 0
    column: int  # of the byte, counted from 1
    message: str
    error: type[FormatError]


class Parsed(NamedTuple, Generic[Batch]):
    """What a piece became."""

    batch: Batch | None  # None if there are no rows
    lines: int
    skipped: int  # lines left out
    wrong: list[Wrong]  # the first of them; or the one that ends it all


class Ahead(Generic[Batch]):
    """An iterator over the batches that `parse` makes of the pieces of files, in order.

    `prepare` sees the pieces in order, one at a time, and what it answers is given to `parse` with the piece and whether
    wrong lines are to be skipped; it must be quick.

    `skipped` says how many lines were left out with on_error="skip", and `errors` what was wrong with the first hundred;
    `taken` is the number of bytes read so far as they lie on the disk, which runs a little ahead, and `total` of all there
    are, None where nobody knows. `digest()` is their XXH64, if `digest` was asked for.
    """

    def __init__(
        self,
        paths: Sequence[Any],
        parse: Callable[[Piece, bool, Any], Parsed[Batch]],
        error: type[FormatError],
        *,
        prepare: Callable[[Piece], Any] = lambda piece: None,
        on_error: str = "error",
        size: int = SIZE,
        threads: int | None = None,
        digest: bool = False,
    ):
        if on_error not in ("error", "skip"):
            raise ValueError(f"on_error={on_error!r}: it must be 'error' or 'skip'")
        if size < 1:
            raise ValueError(f"size={size}: it is the number of bytes of text in a piece, at least 1")
        threads = min(cores(), MOST_THREADS) if threads is None else threads
        if threads < 1:
            raise ValueError(f"threads={threads}: there must be at least 1")
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.total = size_of(paths)
        self._prepare, self._parse, self._error, self._skip = prepare, parse, error, on_error == "skip"
        self._digest = Fingerprint() if digest else None
        self._before = 0  # bytes of the files that are finished
        self._input: Input | None = None
        self._spare: list[NDArray[np.uint8]] = []
        self._pieces = self._read(paths, size)
        self._lock = Lock()
        self._begun = 0  # pieces that were taken
        self._turn = 0  # the number of the piece to hand over next
        self._ready: dict[int, Any] = {}
        self._under_way: deque[Future] = deque()
        self._window = threads + 2
        self._source, self._line = (0, name_of(paths[0])), 1  # the file that has the turn: its number and its name
        self._reading = self._source  # and the one that is being read
        self._threads: ThreadPoolExecutor | None = ThreadPoolExecutor(threads, "rosenblatt-parse")
        try:
            self._input = self._opened(paths[0])  # so that a file that is not there is an error of this call
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while self._threads is not None:
            outcome = self._next()
            if outcome is None:
                break
            source, result = outcome
            if source != self._source:
                self._source, self._line = source, 1
            if isinstance(result, BaseException):
                self.close()
                raise self._located(result)
            self._note(result)
            if result.batch is not None:
                return result.batch
        self.close()
        raise StopIteration

    def __enter__(self) -> Ahead[Batch]:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open; there are no more batches."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
            self._under_way.clear()
            self._ready.clear()
            self._pieces.close()
            if self._input is not None:
                self._before += self._input.taken
                self._input.close()
                self._input = None

    @property
    def taken(self) -> int:
        current = self._input
        return self._before + (current.taken if current is not None else 0)

    def digest(self) -> str:
        """XXH64, in hexadecimal, of all bytes read so far as they lie on the disk, file after file."""
        if self._digest is None:
            raise ValueError("no digest was asked for; give digest=True")
        return self._digest.hexdigest()

    def _opened(self, path: Any) -> Input:
        return Input(path, digest=self._digest if self._digest is not None else False)

    def _read(self, paths: Sequence[Any], size: int):
        """(source, piece, what was prepared) of all files, for one thread at a time."""
        for number, path in enumerate(paths):
            self._reading = number, name_of(path)
            stream = self._input or self._opened(path)
            self._input = stream
            with stream:
                for piece in pieces(stream, size, self._spare):
                    with _wrapping():
                        prepared = self._prepare(piece)
                    yield self._reading, piece, prepared
            self._before, self._input = self._before + stream.taken, None

    def _take(self) -> tuple[int, tuple[int, str], Any, Any]:
        """The number of the next piece, its source, the piece and what was prepared; or, instead of the piece, the error
        that came of reading it, or None behind the last one."""
        with self._lock:
            number = self._begun
            self._begun += 1
            try:
                return number, *next(self._pieces, (self._reading, None, None))
            except Exception as failure:
                return number, self._reading, failure, None

    def _work(self, taken: tuple[int, tuple[int, str], Any, Any] | None = None) -> tuple[int, Any]:
        """The number of a piece, its source and what it became; None for what is behind the last one."""
        number, source, piece, prepared = taken or self._take()
        if not isinstance(piece, Piece):
            return number, None if piece is None else (source, piece)
        try:
            with _wrapping():
                return number, (source, self._parse(piece, self._skip, prepared))
        except Exception as failure:
            return number, (source, failure)
        finally:
            self._spare.append(piece.buffer)

    def _begin(self) -> Future:
        """A piece under way. What may have to be waited for, such as a pipe, is read here, where it can be interrupted."""
        assert self._threads is not None
        if self.total is None:
            return self._threads.submit(self._work, self._take())
        return self._threads.submit(self._work)

    def _next(self) -> Any:
        while self._turn not in self._ready:
            while len(self._under_way) < self._window:
                self._under_way.append(self._begin())
            number, outcome = self._under_way.popleft().result()
            self._ready[number] = outcome
        while self.total is not None and len(self._under_way) + len(self._ready) <= self._window:
            self._under_way.append(self._begin())
        outcome = self._ready.pop(self._turn)
        self._turn += 1
        return outcome

    def _note(self, result: Parsed) -> None:
        for wrong in result.wrong:
            reason = wrong.error(self._source[1], self._line + wrong.line, wrong.message, wrong.column)
            if not self._skip:
                self.close()
                raise reason
            if len(self.errors) < MOST_ERRORS:
                self.errors.append(reason)
        self.skipped += result.skipped
        self._line += result.lines

    def _located(self, failure: BaseException) -> BaseException:
        """A file that cannot be read further, with the line where it ends."""
        if isinstance(failure, FormatError) and failure.line is None:
            located = self._error(self._source[1], self._line, failure.reason)
            located.__cause__ = failure
            return located
        return failure


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def overflows(piece: Piece, begins: NDArray[np.int64], error: type[FormatError]) -> list[Wrong]:
    """What is wrong with the rows that begin at these places."""
    message = "expected finite numbers, and those of a feature that stands here more than once add up to infinity"
    return [Wrong(*place_of(piece, int(place)), message, error) for place in begins[:MOST_ERRORS]]


def shown(buffer: NDArray[np.uint8], place: int) -> str:
    """The word at a place, as a message shows it: what cannot be printed is escaped, and no more than a few characters."""
    text = bytes(buffer[place : place + 4 * SHOWN]).split(b"\n")[0]
    words = text.split(maxsplit=1)
    if not words or text[:1].isspace():
        return "the end of the line" if not words else "a blank"
    word = words[0].decode("utf-8", "backslashreplace")
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in word)
    return f"'{plain}'" if len(plain) <= SHOWN else f"'{plain[:SHOWN]}…'"


def place_of(piece: Piece, place: int) -> tuple[int, int]:
    """The line of the piece, counted from 0, and the column, counted from 1, of a place."""
    before = piece.buffer[piece.begin : place]
    ends = np.flatnonzero(before == LF)
    return len(ends), len(before) - (int(ends[-1]) + 1 if len(ends) else 0) + 1
