"""Open files to read and to write. Compression (gzip, bzip2, xz, zstd) is detected by the first bytes, not by the name.

Everything that reads files begins here. `paths` turns what a user wrote (files, folders, patterns, URLs, "-") into the
files in order; `Input` is one of them, or a `FilePiece` of one, as a stream of bytes that knows its progress; `pieces` cuts
a stream at line ends into pieces that are held one at a time; `output` writes beside the old version of a file and takes
its place when complete.

    for path in paths(["part-*.svm.gz", "-"]):
        with Input(path) as stream:
            for buffer, begin, end in pieces(stream, 1 << 21):
                buffer[begin:end]  # whole lines
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data import remote
from rosenblatt.data.compression import DAMAGE, HEAD, KINDS, REQUEST, SUFFIXES
from rosenblatt.errors import FormatError, InvalidData, InvalidParameter
from rosenblatt.modelfile.atomic import atomic_write

BOM = b"\xef\xbb\xbf"
LF = ord("\n")
ROOM = 16  # bytes behind the end of a piece, so that eight can be read at once from any place in it
MOST_ERRORS = 100  # that readers remember of what they left out
MAX_LINE: ContextVar[int] = ContextVar("MAX_LINE", default=1 << 26)  # bytes that one line, field or sentence may have
PARSE_THREADS: ContextVar[int | None] = ContextVar("PARSE_THREADS", default=None)  # that a reader may start
MAX_COLUMNS = 1 << 20  # that a table may have
_PART = 1 << 20  # bytes that `read` makes room for at once, however many it is asked for
PAUSE = 10  # milliseconds without a byte after which a pipe has paused


class FilePiece(NamedTuple):
    """Whole records of a file, which readers take in place of its path; `pieces.cut_files` makes them.

    Attributes
    ----------
    path : str
        The file: a local path or a URL of fsspec.
    begin, end : int
        The records whose first byte is one of begin, …, end − 1: for text all bytes of the piece, for Parquet and Arrow
        the row groups and the record batches that begin there.
    line : int, optional
        The number of its first line, from 1; without it the lines before are counted when an error names a line.
    version : str, optional
        What `version_of` said of the file when it was cut; a file of which it says something else is not read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data import columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("Dogs NNS B-NP\\n\\nStop VB B-VP\\n\\n")
    ...     [sentence.forms for sentence in columns.read(FilePiece(str(path), 15, 29))]
    [['Stop']]
    """

    path: str
    begin: int
    end: int
    line: int | None = None
    version: str | None = None


Source = str | os.PathLike[str] | FilePiece | IO[bytes]
FileSource = str | FilePiece
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
FileSources = Paths | FilePiece | Iterable[FileSource]


class Digest(Protocol):
    """A hash of bytes, as those of hashlib."""

    def update(self, data: Any, /) -> None:
        """Add bytes."""


def paths(patterns: Paths) -> list[str]:
    """Return the files that paths, folders and patterns name, in order.

    Parameters
    ----------
    patterns : str, path, or iterable of these
        A folder gives its files sorted, without hidden ones; a name that is not a file gives the files that match it as a
        pattern, sorted; "-" is standard input and may occur once.

    Returns
    -------
    list of str
        The paths of the files.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none at all.
    IsADirectoryError
        If a folder matches a pattern; one that ends with ``**`` is meant to match folders, and gives the files in them.
    """
    found: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str | os.PathLike) else patterns:
        found += _files(os.fspath(pattern))
    _check_found(found)
    return found


def files_or_pieces(sources: FileSources) -> list[FileSource]:
    """Return the files that `paths` finds, with pieces of files as they are. Pieces that follow each other in a file are
    joined to one, so that they are read as the file is."""
    given = [sources] if isinstance(sources, str | os.PathLike | FilePiece) else sources
    found: list[FileSource] = []
    for source in given:
        if not isinstance(source, FilePiece):
            found += _files(os.fspath(source))
        elif found and isinstance(last := found[-1], FilePiece) and (last.path, last.end) == (source.path, source.begin):
            found[-1] = last._replace(end=source.end)
        else:
            found.append(source)
    _check_found(found)
    return found


def _check_found(found: Sequence[FileSource]) -> None:
    """Raise an error if there is no file, or if standard input is there twice."""
    if not found:
        raise FileNotFoundError("no file was given; name a file, a folder, a pattern, or - for standard input")
    if found.count("-") > 1:
        raise InvalidData("- stands for standard input, which can be read only once", hint="give - once")


def _files(path: str) -> list[str]:
    if path == "-":
        return [path]
    if remote.is_url(path):
        return remote.urls_of(path)
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            names = sorted(entry.path for entry in entries if entry.is_file() and not entry.name.startswith("."))
        if not names:
            raise FileNotFoundError(f"there are no files in the folder {path!r}; name one that has some, or a pattern")
        return names
    if os.path.lexists(path):
        return [path]
    if glob.has_magic(path):
        names = []
        for name in sorted(glob.glob(path, recursive=True)):
            if not os.path.isdir(name):
                names.append(name)
            elif os.path.basename(path) != "**":
                raise remote.matching_folder(path, name)
        if not names:
            raise FileNotFoundError(f"no file matches the pattern {path!r}; check it from the folder {os.getcwd()!r}")
        return names
    raise FileNotFoundError(f"there is no file {path!r}; check the name from the folder {os.getcwd()!r}")


def check_on_error(on_error: str) -> None:
    """Raise InvalidParameter if on_error is neither "error" nor "skip"."""
    if on_error not in ("error", "skip"):
        raise InvalidParameter("on_error", on_error, "'error' or 'skip'")


def rereadable(paths: Iterable[Source]) -> bool:
    """Return whether these files can be read more than once; standard input and named pipes cannot."""
    return all(map(_is_file, paths))


def _is_file(source: Source) -> bool:
    if isinstance(source, FilePiece):
        return True  # only files are cut
    if remote.is_url(source):
        return remote.is_file_url(str(source))
    return isinstance(source, str | os.PathLike) and source != "-" and os.path.isfile(source)


def size_of(paths: Sequence[Source]) -> int | None:
    """Return the size of these files and pieces in bytes; None where it is unknown, as of a pipe."""
    sizes = [_size_of_source(path) for path in paths] if rereadable(paths) else [None]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _size_of_source(source: Any) -> int | None:
    if isinstance(source, FilePiece):
        return source.end - source.begin
    return remote.size_of_url(source) if remote.is_url(source) else os.path.getsize(source)


def size_of_file(path: str) -> int:
    """Return the size of a file, or of what is behind a URL, in bytes; OSError where it is unknown."""
    size = _size_of_source(path)
    if size is None:
        raise OSError(f"the size of {path!r} is unknown, as its server does not tell it; copy the file first")
    return size


def version_of(path: str) -> str:
    """Return a text that becomes another one when a file changes: its size, and the time of its last change.

    Parameters
    ----------
    path : str
        A local path or a URL of fsspec.

    Returns
    -------
    str
    """
    if remote.is_url(path):
        return remote.version_of_url(path)
    found = os.stat(path)
    return f"{found.st_size} {found.st_mtime_ns}"


def check_version(piece: FilePiece) -> None:
    """Raise an error if a file is not the one that a piece was cut from any more.

    Parameters
    ----------
    piece : FilePiece
        The piece; one without a version may be of any.

    Raises
    ------
    InvalidData
        If the file has changed.
    """
    if piece.version is not None and version_of(piece.path) != piece.version:
        raise InvalidData(
            "the file has changed since it was cut into pieces",
            path=piece.path,
            hint="begin again, and leave files as they are while they are learned",
        )


class Input(io.BufferedIOBase):
    """A file to read, decompressed. Of a damaged file it gives what can be read, and then raises FormatError.

    Parameters
    ----------
    source : str, path, FilePiece or binary file
        What to read; "-" is standard input. A path may be a URL of fsspec.
    digest : bool or hash
        A hash that is updated with all bytes read, before decompression; True makes one of SHA-256.
    max_line : int, optional
        Bytes that a line, a field or a sentence may have; by default what `line_limit` says, or 64 MiB.
    live : bool
        Whether `pieces` are to end where a pipe pauses, so that each line can be answered before the next one is there.
    on_wait : callable, optional
        Called where a pipe has paused, before more is awaited.

    Attributes
    ----------
    name : str
        What messages call it.
    max_line : int
        Bytes that a line, a field or a sentence may have; readers refuse a longer one.
    bytes_read : int
        Bytes read so far, before decompression.
    total_bytes : int or None
        The size of the file or piece; None where it is unknown, as of a pipe.
    piece : FilePiece or None
        The piece, where it is not a whole file.
    starts_file : bool
        Whether its first byte is that of the file; false for a piece behind it.
    digest : hash or None
        The hash.
    paused : bool
        Whether the last `readinto_until_pause` ended where a pipe has paused.
    """

    name: str

    def __init__(
        self,
        source: Source,
        digest: bool | Digest = False,
        live: bool = False,
        on_wait: Callable[[], object] | None = None,
        max_line: int | None = None,
    ):
        self.name, self.live, self.paused = name_of(source), live, False
        self.max_line = MAX_LINE.get() if max_line is None else max_line
        try:
            self._raw = _Raw(source, digest, on_wait)
        except EOFError as reason:
            raise self._damage(str(reason)) from reason
        self._failure: FormatError | None = None
        self.piece = source if isinstance(source, FilePiece) else None
        self.starts_file = self.piece is None or self.piece.begin == 0
        suffix = Path(self.name).suffix
        kind = next((kind for kind in KINDS if kind.matches(self._raw.head)), None) if self.starts_file else None
        if kind is None and suffix in SUFFIXES and self._raw.head and self.starts_file and is_named(source):
            self._failure = self._damage(f"its name ends with {suffix}, and what it holds is not compressed")
        self._stream: Any = self._raw if kind is None else kind.reader(self._raw)
        self._most = REQUEST if kind else sys.maxsize
        self._ahead = b""
        self.total_bytes, self.digest = self._raw.total_bytes, self._raw.digest

    @property
    def bytes_read(self) -> int:
        return self._raw.bytes_read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, unless the file ends, and return the number of bytes put into it."""
        view = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(view) and (got := self._into(view[filled:], begun=filled > 0)):
            filled += got
        return filled

    def has_more(self) -> bool:
        """Return whether there are bytes, or the end is there, now or within a moment; false where a pipe has paused."""
        return bool(self._ahead) or self._stream is not self._raw or self._raw.has_more()

    def readinto_until_pause(self, buffer: Any) -> int:
        """Put bytes into the buffer until it is full, the file ends or a pipe pauses, and return their number."""
        view = memoryview(buffer).cast("B")
        self.paused = False
        filled = self._into(view)
        while 0 < filled < len(view):
            self.paused = not self.has_more()
            if self.paused or not (got := self._into(view[filled:], begun=True)):
                break
            filled += got
        return filled

    def readinto1(self, buffer: Any) -> int:
        """Put bytes into the buffer as soon as there are any, and return their number."""
        return self._into(memoryview(buffer).cast("B"))

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes, fewer at the end; without a size all that are left."""
        left = sys.maxsize if size is None or size < 0 else size
        parts = []
        while left > 0 and (part := self._bytes(self.readinto, min(left, _PART))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def peek(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end, which will be read again."""
        head = self.read(size)
        self._ahead = head + self._ahead
        return head

    def peek_line(self, size: int) -> bytes:
        """Return so many bytes, which will be read again; fewer at the end, and where a pipe pauses after a line."""
        buffer = bytearray(size)
        filled = 0
        while b"\n" not in buffer[:filled] and (got := self.readinto_until_pause(memoryview(buffer)[filled:])):
            filled += got
        head = bytes(buffer[:filled])
        self._ahead = head + self._ahead
        return head

    def read1(self, size: int = -1) -> bytes:
        """Return at most so many bytes, as soon as there are any."""
        return self._bytes(self.readinto1, REQUEST if size < 0 else size)

    def close(self) -> None:
        if not self.closed:
            super().close()
            try:
                if self._stream is not self._raw:
                    self._stream.close()
            finally:
                self._raw.close()

    def _bytes(self, into: Callable[[Any], int], size: int) -> bytes:
        buffer = bytearray(size)
        return bytes(memoryview(buffer)[: into(buffer)])

    def _into(self, view: memoryview, begun: bool = False) -> int:
        if self.closed:
            raise ValueError(f"{self.name} is closed")
        if self._ahead:
            got = min(len(view), len(self._ahead))
            view[:got], self._ahead = self._ahead[:got], self._ahead[got:]
            return got
        if self._failure is None:
            try:
                return self._stream.readinto1(view[: self._most])
            except DAMAGE as reason:
                if getattr(reason, "errno", None) is not None:
                    raise
                self._failure = self._damage(str(reason).partition(" (b'")[0])  # gzip shows the bytes it found
                self._failure.__cause__ = reason
        if begun:
            return 0
        raise self._failure

    def _damage(self, reason: str) -> FormatError:
        return FormatError(f"the file cannot be read from here on: {reason}", path=self.name)


class _Raw(io.RawIOBase):
    """The bytes of a file before decompression, counted. The first ones are in `head`.

    Of a pipe at least `REQUEST` bytes are asked for at once, more than a reader of Python keeps to itself: what was not
    read is in the pipe, where it can be seen.
    """

    def __init__(self, source: Source, digest: bool | Digest, on_wait: Callable[[], object] | None = None):
        self.bytes_read = 0
        self.digest: Digest | None = (hashlib.sha256() if digest else None) if isinstance(digest, bool) else digest
        self._owned = is_named(source) and source != "-"
        self._file: Any = open_binary(source) if is_named(source) else source
        self.total_bytes = _size_of_source(source) if _is_beyond(source) else _size(self._file)
        file: Any = self._file
        self._take = file.readinto1 if hasattr(file, "readinto1") else file.readinto  # what is there, without waiting
        self._poll = _poll(file) if self.total_bytes is None else None
        self._on_wait = on_wait if self._poll is not None else None
        self._ended = False
        self._ahead = memoryview(b"")
        head = b""
        try:
            while not file.isatty() and len(head) < HEAD and b"\n" not in head and (more := self._read_ahead()):
                head += more  # no compressed file has a line end so early
        except EOFError:
            self.close()
            raise
        self.head = head[:HEAD]
        self._ahead = memoryview(head)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if not self._ahead and len(view) < REQUEST:
            self._ahead = self._read_ahead()
        if self._ahead:
            got = min(len(view), len(self._ahead))
            view[:got], self._ahead = self._ahead[:got], self._ahead[got:]
        else:
            got = self._read(view)
        self.bytes_read += got
        if self.digest is not None:
            self.digest.update(view[:got])
        return got

    readinto1 = readinto

    def has_more(self) -> bool:
        """Return whether there are bytes, or the end is there, now or within a moment."""
        return bool(self._ahead) or self._ended or self._poll is None or bool(self._poll.poll(PAUSE))

    def _read_ahead(self) -> memoryview:
        view = memoryview(bytearray(REQUEST))
        return view[: self._read(view)]

    def _read(self, view: memoryview) -> int:
        if self._ended:
            return 0
        if self._on_wait is not None and not self.has_more():
            self._on_wait()
        while (got := self._take(view)) is None:  # a pipe that does not block, and has nothing yet
            if self._poll is not None:
                self._poll.poll()
        self._ended = got == 0
        return got

    def close(self) -> None:
        super().close()
        if self._owned:
            self._file.close()


def is_named(source: Source) -> TypeGuard[str | os.PathLike[str] | FilePiece]:
    """Return whether a source is a path or a piece of a file, and not an open file."""
    return isinstance(source, str | os.PathLike | FilePiece)


def _is_beyond(source: Source) -> bool:
    """Return whether the size of a source is not that of an open local file."""
    return isinstance(source, FilePiece) or remote.is_url(source)


def open_binary(source: str | os.PathLike[str] | FilePiece) -> Any:
    """Open a file to read its bytes as they are, without a buffer; "-" is standard input."""
    if isinstance(source, FilePiece):
        return _ByteRange(source)
    if source == "-":
        return sys.stdin.buffer
    if remote.is_url(source):
        return remote.open_url(str(source))
    try:
        return open(source, "rb", buffering=0)
    except IsADirectoryError:
        raise IsADirectoryError(f"{os.fspath(source)!r} is a folder, not a file; name a file in it") from None


class _ByteRange(io.RawIOBase):
    """The bytes of a piece of a file, of which nothing else is read. The file is looked at before and after."""

    def __init__(self, piece: FilePiece):
        check_version(piece)
        self._piece, self._left = piece, piece.end - piece.begin
        self._file = open_binary(piece.path)
        self._file.seek(piece.begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: self._left]
        got = self._file.readinto(view)
        if not got and len(view):
            raise EOFError(f"{self._left:,} bytes are missing at its end; has the file changed since it was cut?")
        self._left -= got
        if got and not self._left:
            check_version(self._piece)
        return got

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()


def is_compressed(path: str) -> bool:
    """Return whether the first bytes of a file, or its name, say that it is compressed."""
    with open_binary(path) as file:
        head = file.read(HEAD)
    return any(kind.matches(head) for kind in KINDS) or (bool(head) and Path(path).suffix in SUFFIXES)


def first_line(piece: FilePiece) -> int:
    """Return the number of the first line of a piece, from 1; where it is not known, the line ends before are counted."""
    return 1 + count_line_ends(FilePiece(piece.path, 0, piece.begin)) if piece.line is None else piece.line


def count_line_ends(piece: FilePiece) -> int:
    """Return the number of line ends in a piece of a file."""
    count = 0
    buffer = memoryview(bytearray(_PART))
    with open_binary(piece) as file:
        while got := file.readinto(buffer):
            count += int(np.count_nonzero(np.frombuffer(buffer[:got], np.uint8) == LF))
    return count


def _poll(file: Any) -> Any:
    """Return a poll object that tells whether a pipe has data to read; None for bytes in memory."""
    try:
        poll = select.poll()
        poll.register(file.fileno(), select.POLLIN)
    except (OSError, AttributeError):  # bytes in memory; or a system without poll
        return None
    return poll


def _size(file: Any) -> int | None:
    try:
        found = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def name_of(source: Any) -> str:
    """Return what messages call a source: its path, or the name that an open file has."""
    if isinstance(source, FilePiece):
        return source.path
    if source == "-":
        return "<stdin>"
    name = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    return os.fspath(name) if isinstance(name, str | os.PathLike) else "<text>"


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a binary file to write, compressed by the suffix of its path; it takes its place there when the block ends
    without an error."""
    with atomic_write(path) as place:
        kind = SUFFIXES.get(Path(path).suffix)
        with io.BufferedWriter(kind.writer(place)) if kind else nullcontext(place) as stream:
            yield stream


class Piece(NamedTuple):
    """Whole lines: buffer[begin:end]. A line feed stands at buffer[end] if not before it; eight more bytes can be read."""

    buffer: NDArray[np.uint8]
    begin: int
    end: int


class ByteStream(Protocol):
    """A stream of bytes with a name."""

    name: str
    max_line: int
    live: bool
    starts_file: bool

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer, unless the stream ends, and return the number of bytes put into it."""

    def readinto_until_pause(self, buffer: Any, /) -> int:
        """Do the same, but end where the stream pauses."""


def pieces(stream: ByteStream, size: int, spare: list[NDArray[np.uint8]] | None = None) -> Iterator[Piece]:
    """Cut a stream into pieces of about `size` bytes, larger only for a longer line; a byte order mark is dropped. One that
    is `live` is also cut where it pauses.

    Each piece has an array of its own; one that is no longer needed, put into `spare`, is used again.
    """
    spare = [] if spare is None else spare
    size = min(size, stream.max_line)
    rest = np.empty(0, np.uint8)  # the beginning of a line that goes on
    mark = len(BOM) if stream.starts_file else 0
    ended = False
    fill = stream.readinto_until_pause if stream.live else stream.readinto
    while not ended:
        buffer = _room(spare, size, rest)
        filled, end = len(rest), -1
        while end < 0 and not ended:
            if filled == len(buffer) - ROOM:
                buffer = _widen(buffer, filled)
            got = fill(buffer[filled : len(buffer) - ROOM])
            end = _last_line_end(buffer, filled, filled + got)
            filled += got
            ended = got == 0  # a buffer that is not full may be the last before an error
            if end < 0 and filled > stream.max_line:
                raise too_long("a line", filled, stream.max_line, stream.name)
        if (
            end >= 0 and (first := _first_line_end(buffer, len(rest), end)) > stream.max_line
        ):  # others are no longer than size
            raise too_long("a line", first, stream.max_line, stream.name)
        end = filled if ended else end + 1
        begin = mark if mark and bytes(buffer[:mark]) == BOM else 0
        mark = 0
        rest = buffer[end:filled].copy()
        if end > begin:
            if buffer[end - 1] != LF:
                buffer[end] = LF
            yield Piece(buffer, begin, end)


def _room(spare: list[NDArray[np.uint8]], size: int, rest: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An array that begins with the rest and has room for more."""
    needed = max(size, 2 * len(rest)) + ROOM
    buffer = spare.pop() if spare else np.empty(needed, np.uint8)
    if not needed <= len(buffer) <= 2 * needed:
        buffer = np.empty(needed, np.uint8)
    buffer[: len(rest)] = rest
    return buffer


def too_long(what: str, size: int, most: int, name: str, line: int | None = None) -> FormatError:
    """Return the error for a line, a field or a sentence that exceeds the limit, of which `size` bytes have been read."""
    return FormatError(
        f"{what} is longer than the limit of {size_text(most)}: {size:,} bytes so far",
        path=name,
        line=line,
        hint="is this the right format?",
        settings={"max_line": size_text(4 * size)},
    )


def size_text(size: int) -> str:
    """Return a number of bytes as people write it, rounded up: 64M."""
    for unit, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{-(-size // unit)}{letter}"
    return str(size)


@contextmanager
def line_limit(max_line: int) -> Iterator[None]:
    """Set the longest line, field or sentence that files opened in this block may have, instead of 64 MiB.

    Parameters
    ----------
    max_line : int
        The number of bytes.
    """
    if max_line < 1:
        raise InvalidParameter("max_line", max_line, "a number of bytes, at least 1")
    token = MAX_LINE.set(max_line)
    try:
        yield
    finally:
        MAX_LINE.reset(token)


@contextmanager
def parse_threads(most: int) -> Iterator[None]:
    """Limit the threads that parse each of the files opened in this block.

    Parameters
    ----------
    most : int
        The number of threads; with 1 a file is parsed by the thread that asks for its rows.
    """
    if most < 1:
        raise InvalidParameter("most", most, "a number of threads, at least 1")
    token = PARSE_THREADS.set(most)
    try:
        yield
    finally:
        PARSE_THREADS.reset(token)


def text_lines(text: io.TextIOBase, name: str, most: int, first: int = 1) -> Iterator[str]:
    """Yield the lines of a text, which are numbered from `first`, with their ends; raise FormatError if one is too long."""
    for number, line in enumerate(iter(partial(text.readline, most + 1), ""), first):
        if len(line) > most:
            raise too_long("a line", len(line), most, name, number)
        yield line


def _widen(buffer: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    wider = np.empty(2 * size + ROOM, np.uint8)
    wider[:size] = buffer[:size]
    return wider


def _first_line_end(buffer: NDArray[np.uint8], begin: int, end: int) -> int:
    """Return where the first line end in buffer[begin:end + 1] is; there is one at the end."""
    step = 1 << 12
    while (found := bytes(buffer[begin : begin + step]).find(b"\n")) < 0:
        begin, step = begin + step, 2 * step
    return min(begin + found, end)


def _last_line_end(buffer: NDArray[np.uint8], begin: int, end: int) -> int:
    """Return where the last line end in buffer[begin:end] is; −1 if there is none."""
    step = 1 << 12
    while end > begin:
        first = max(begin, end - step)
        found = bytes(buffer[first:end]).rfind(b"\n")
        if found >= 0:
            return first + found
        end, step = first, 2 * step
    return -1
