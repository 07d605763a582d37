"""Parse the pieces of files on all cores and return them in the order of the files.

Each thread takes the next piece, one after the other, and then parses it while the others go on; a compiled parser releases
the interpreter meanwhile. A few pieces are under way at any time and no more, so that memory is bounded by them and not by
the files. What is wrong in a piece is raised when its turn comes, with the number of the line in its file. With one thread,
the one that asks for the rows parses them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.data.opening import (
    MAX_LINE,
    MOST_ERRORS,
    PARSE_THREADS,
    FilePiece,
    Input,
    Piece,
    Source,
    check_on_error,
    first_line,
    name_of,
    pieces,
    size_of,
)
from rosenblatt.errors import FormatError, InvalidParameter, UnsupportedOperation

SIZE = 1 << 21  # bytes of text in a piece: it and its rows stay in the cache of a core
MOST_THREADS = 8  # one thread alone decompresses or reads

_ignore_overflow = partial(np.errstate, over="ignore")  # uncompiled, the parsers rely on 64 bits being all there are

Batch = TypeVar("Batch")


class Problem(NamedTuple):
    """What is wrong with a line of a piece."""

    line: int  # of the piece, from 0
    column: int  # of the byte, from 1
    text: str
    error: type[FormatError]
    settings: Mapping[str, object] | None = None


class Parsed(NamedTuple, Generic[Batch]):
    """The result of parsing a piece."""

    batch: Batch | None  # None if there are no rows
    lines: int
    skipped: int  # lines left out
    problems: list[Problem]  # with the first of them; or the one that ends it all


class Task(NamedTuple):
    """A piece to parse, with its number and that of its file, the name of the file, and what was prepared."""

    number: int
    source: tuple[int, str]
    piece: Piece | Exception | None  # or the error that came of reading it, or None behind the last one
    context: Any = None


class ParallelReader(Generic[Batch]):
    """An iterator over the batches that `parse` makes of the pieces of files, in order.

    `prepare` sees the pieces in order, one at a time, and what it returns is given to `parse` with the piece and whether
    wrong lines are to be skipped; it must be quick. With `live`, what a pipe gave before it paused is handed over before
    more of it is awaited.

    Attributes
    ----------
    skipped : int
        The number of lines left out, with on_error="skip".
    errors : list of FormatError
        What was wrong with the first hundred of them.
    bytes_read : int
        Bytes read so far, before decompression, which is a little ahead of the batches.
    total_bytes : int or None
        The size of all files; None where it is unknown, as of a pipe.
    """

    def __init__(
        self,
        paths: Sequence[Source],
        parse: Callable[[Piece, bool, Any], Parsed[Batch]],
        error: type[FormatError],
        *,
        prepare: Callable[[Piece], Any] = lambda piece: None,
        on_error: str = "error",
        size: int = SIZE,
        threads: int | None = None,
        digest: bool = False,
        live: bool = False,
    ):
        check_on_error(on_error)
        threads = min(cores(), MOST_THREADS) if threads is None else threads
        for name, value in (("size", size), ("threads", threads)):
            if value < 1:
                raise InvalidParameter(name, value, "1 or more")
        threads = min(threads, PARSE_THREADS.get() or threads)
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.total_bytes = size_of(paths)
        self._prepare, self._parse, self._error, self._skip = prepare, parse, error, on_error == "skip"
        self._digest = xxh64() if digest else None
        self._max_line = MAX_LINE.get()  # threads that open files have contexts of their own
        self._live = live
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
        self._first_lines: dict[int, FilePiece | int] = {
            number: path for number, path in enumerate(paths) if isinstance(path, FilePiece)
        }
        self._reading = self._source  # and the one that is being read
        self._closed = False
        self._threads = ThreadPoolExecutor(threads, "rosenblatt-parse") if threads > 1 else None
        try:
            self._input = self._open(paths[0])  # so that a file that is not there is an error of this call
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while not self._closed:
            outcome = self._next()
            if outcome is None:
                break
            source, result = outcome
            if source != self._source:
                self._source, self._line = source, 1
            if isinstance(result, BaseException):
                self.close()
                raise self._locate(result)
            self._note(result)
            if result.batch is not None:
                return result.batch
        self.close()
        raise StopIteration

    def __enter__(self) -> ParallelReader[Batch]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; there are no more batches."""
        if not self._closed:
            self._closed = True
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)
            self._under_way.clear()
            self._ready.clear()
            self._pieces.close()
            if self._input is not None:
                self._before += self._input.bytes_read
                self._input.close()
                self._input = None

    @property
    def bytes_read(self) -> int:
        current = self._input
        return self._before + (current.bytes_read if current is not None else 0)

    def digest(self) -> str:
        """Return XXH64, in hexadecimal, of all bytes read so far before decompression, file after file."""
        if self._digest is None:
            raise UnsupportedOperation("no digest is computed", settings={"digest": True})
        return self._digest.hexdigest()

    def _open(self, path: Source) -> Input:
        digest = self._digest if self._digest is not None else False
        return Input(path, digest=digest, live=self._live, max_line=self._max_line)

    def _read(self, paths: Sequence[Source], size: int) -> Generator[tuple[Piece, Any], None, None]:
        """Yield the pieces of all files and what was prepared for them, for one thread at a time."""
        for number, path in enumerate(paths):
            self._reading = number, name_of(path)
            stream = self._input or self._open(path)
            self._input = stream
            with stream:
                for piece in pieces(stream, size, self._spare):
                    with _ignore_overflow():
                        context = self._prepare(piece)
                    yield piece, context
            self._before, self._input = self._before + stream.bytes_read, None

    def _take(self) -> Task:
        with self._lock:
            number = self._begun
            self._begun += 1
            try:
                piece, context = next(self._pieces, (None, None))
                return Task(number, self._reading, piece, context)
            except Exception as failure:
                return Task(number, self._reading, failure)

    def _work(self, task: Task | None = None) -> tuple[int, Any]:
        """Return the number of a piece, and its source and what it became; None for what is behind the last one."""
        number, source, piece, context = task or self._take()
        if not isinstance(piece, Piece):
            return number, None if piece is None else (source, piece)
        try:
            with _ignore_overflow():
                return number, (source, self._parse(piece, self._skip, context))
        except Exception as failure:
            return number, (source, failure)
        finally:
            self._spare.append(piece.buffer)

    def _begin(self) -> Future:
        """Begin a piece. What may have to be waited for, such as a pipe, is read here, where it can be interrupted."""
        assert self._threads is not None
        if self.total_bytes is None:
            return self._threads.submit(self._work, self._take())
        return self._threads.submit(self._work)

    def _next(self) -> Any:
        if self._threads is None:
            return self._work()[1]
        while self._turn not in self._ready:
            while len(self._under_way) < self._window and not (self._under_way and self._has_paused()):
                self._under_way.append(self._begin())
            number, outcome = self._under_way.popleft().result()
            self._ready[number] = outcome
        while self.total_bytes is not None and len(self._under_way) + len(self._ready) <= self._window:
            self._under_way.append(self._begin())
        outcome = self._ready.pop(self._turn)
        self._turn += 1
        return outcome

    def _has_paused(self) -> bool:
        return self._input is not None and self._input.paused

    def _note(self, result: Parsed) -> None:
        for line, column, text, error, settings in result.problems:
            reason = error(text, path=self._source[1], line=self._line_in_file(line), column=column, settings=settings)
            if not self._skip:
                self.close()
                raise reason
            if len(self.errors) < MOST_ERRORS:
                self.errors.append(reason)
        self.skipped += result.skipped
        self._line += result.lines

    def _line_in_file(self, line: int = 0) -> int:
        """Return the number in the file of a line of the piece that has the turn; the lines before are counted once."""
        number = self._source[0]
        first = self._first_lines.get(number, 1)
        if isinstance(first, FilePiece):
            first = self._first_lines[number] = first_line(first)
        return first - 1 + self._line + line

    def _locate(self, failure: BaseException) -> BaseException:
        """Return the error of a file that cannot be read further with the line where it ends."""
        if isinstance(failure, FormatError) and failure.line is None:
            place: Any = {"path": self._source[1], "line": self._line_in_file()}
            located = self._error(failure.problem, **place, hint=failure.hint, settings=failure.settings)
            located.__cause__ = failure
            return located
        return failure


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
