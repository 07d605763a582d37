"""Compressed files (gzip, bzip2, xz, zstd): the first bytes that tell them, and how they are read and written."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rosenblatt.errors import MissingDependency

_XZ_MEMORY = 1 << 28  # bytes that the dictionary of an xz file may need; xz -9 makes files that need a quarter of it
REQUEST = 1 << 17  # bytes asked of a decompressor at once, and so the most that an error may swallow
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)  # but an OSError with a number is the machine's trouble


class Compression(NamedTuple):
    """A compression: the first bytes of its files, and how they are read and written."""

    signatures: tuple[bytes, ...]
    offset: int  # of the signature in the file
    reader: Callable[[Any], Any]
    writer: Callable[[Any], Any]

    def matches(self, head: bytes) -> bool:
        return head[self.offset :].startswith(self.signatures)


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependency("pyarrow", "tables", "files compressed with zstd") from None
    return pyarrow


class _Members(io.RawIOBase):
    """What was compressed in one or several parts, one behind the other. Anything else behind them is damage, which
    Python's own readers pass over; zeros behind xz are not, which they refuse."""

    def __init__(self, raw: Any, begin: Callable[[], Any], padding: bytes = b""):
        self._raw, self._begin, self._padding = raw, begin, padding
        self._part = begin()

    def readable(self) -> bool:
        return True

    def readinto1(self, view: Any) -> int:
        got = b""
        while not got:
            if self._part.eof:
                data = self._part.unused_data
                while not (data := data.lstrip(self._padding) if self._padding else data):
                    data = self._raw.read(REQUEST)
                    if not data:
                        return 0
                self._part = self._begin()
            else:
                data = self._raw.read(REQUEST) if self._part.needs_input else b""
                if self._part.needs_input and not data:
                    raise EOFError("the compressed data are truncated")
            got = self._part.decompress(data, len(view))
        view[: len(got)] = got
        return len(got)


class _Zstd(io.RawIOBase):
    """What pyarrow decompresses, as a stream of Python."""

    def __init__(self, raw: Any):
        arrow = _arrow()
        self._stream = arrow.CompressedInputStream(arrow.PythonFile(raw, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto1(self, view: Any) -> int:
        got = self._stream.read(len(view))
        view[: len(got)] = got
        return len(got)


class _Unclosed(io.RawIOBase):
    """A file to write that pyarrow cannot close."""

    def __init__(self, file: Any):
        self.write = file.write  # type: ignore[method-assign]  # nothing between the two

    def writable(self) -> bool:
        return True


def _zstd_writer(file: Any) -> Any:
    arrow = _arrow()
    return arrow.CompressedOutputStream(arrow.PythonFile(_Unclosed(file), mode="w"), "zstd")


SUFFIXES = {
    ".gz": Compression(
        (b"\x1f\x8b\x08",),
        0,
        lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
        lambda file: gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0),  # the same bytes every time
    ),
    ".bz2": Compression(
        (b"1AY&SY", b"\x17rE8P\x90"), 4, partial(_Members, begin=bz2.BZ2Decompressor), partial(bz2.BZ2File, mode="wb")
    ),
    ".xz": Compression(
        (b"\xfd7zXZ\x00",),
        0,
        partial(_Members, begin=partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY), padding=b"\0"),
        partial(lzma.LZMAFile, mode="wb"),
    ),
    ".zst": Compression((b"\x28\xb5\x2f\xfd",), 0, _Zstd, _zstd_writer),
}
KINDS = tuple(SUFFIXES.values())
HEAD = 10  # bytes, which is all that tells them apart
