"""Read Vowpal Wabbit text at once, in chunks or as a `Reading`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import FileSource, FileSources, Piece
from rosenblatt.data.parsing.decimals import places_of, resolve
from rosenblatt.data.parsing.line_parser import UNSORTED, Data, LineParser, Room
from rosenblatt.data.parsing.parallel import SIZE, ParallelReader
from rosenblatt.data.reading import Chunk, RowReading
from rosenblatt.data.vw import rows as kernel
from rosenblatt.data.vw.rows import BARE, SEPARATORS, WEIGHTED, LineOptions
from rosenblatt.errors import DamagedModel, FormatError, InvalidParameter
from rosenblatt.modelfile.parts import Parts

MOST_BITS = 30  # buckets are columns, counted with 32 bits
SCALE = re.compile(rb"[^ \t|:\r\n]*:([^ \t|\r\n]+)")


class VwError(FormatError):
    """A file that is not Vowpal Wabbit text of the simple kind; `path`, `line` and `column` say where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.vw"
    ...     _ = path.write_text("1 |words free:2\\nspam |words see\\n")
    ...     try:
    ...         read(path)
    ...     except VwError as error:
    ...         print(f"line {error.line}, column {error.column}: {error.problem}")
    line 2, column 1: expected a finite number as label, importance or base, found 'spam'
    """


def read(
    paths: FileSources, *, bits: int = 18, hashing: str = "strings", labelled: bool = True, on_error: str = "error"
) -> Data:
    """Read X and y of all rows of these files.

    Parameters
    ----------
    paths : str, path, or iterable of these
        A file, or several, folders, patterns, "-"; compression is detected.
    bits : int
        X has 2^bits columns; VW's -b.
    hashing : {"strings", "all"}
        "strings": a name of digits is its number; "all": every name is hashed; VW's --hash.
    labelled : bool
        Whether each line must have a label.
    on_error : {"error", "skip"}
        Whether a line that is wrong is an error, or is left out and counted.

    Returns
    -------
    Data
        X and y, to be unpacked, with `weight`, `skipped` and `errors`.

    Raises
    ------
    VwError
        If a line is wrong, with `path`, `line` and `column`, or if there are no rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "two.vw"
    >>> _ = file.write_text("1 |words free:2 offer\\n-1 0.5 |words see you\\n")
    >>> X, y = read(file)
    >>> X.indices, X.data, y
    (array([ 32648, 139369,  78316, 158565], dtype=int32), array([2., 1., 1., 1.]), array([ 1., -1.]))
    >>> read(file).weight
    array([1. , 0.5])
    """
    return Data(*Vw(bits, hashing).parser(labelled).read_whole(paths, on_error))


def chunks(
    paths: FileSources,
    *,
    bits: int = 18,
    hashing: str = "strings",
    labelled: bool = True,
    on_error: str = "error",
    size: int = SIZE,
    threads: int | None = None,
    digest: bool = False,
) -> ParallelReader[Chunk]:
    """Read the rows of these files in chunks, in memory that does not grow with the files.

    Parameters
    ----------
    paths, bits, hashing, labelled, on_error
        As of `read`.
    size : int
        Bytes of text in a chunk, about.
    threads : int, optional
        Threads that parse; as many as there are cores, but eight at most.
    digest : bool
        Whether to compute a hash of the files, for `digest()`.

    Returns
    -------
    ParallelReader of Chunk
        An iterator with `skipped`, `errors`, `bytes_read`, `total_bytes`, `digest()` and `close()`. `weight` of a chunk is
        None if all its rows count one; y is None if a row has no label.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.vw"
    ...     _ = path.write_text("1 |words free:2 offer\\n-1 0.5 |words see you\\n")
    ...     [(chunk.X.shape, chunk.y.tolist(), chunk.weight.tolist()) for chunk in chunks(path, bits=10)]
    [((2, 1024), [1.0, -1.0], [1.0, 0.5])]
    """
    return Vw(bits, hashing).parser(labelled).read(paths, on_error, size, threads, digest, live=not labelled)


@dataclass(frozen=True)
class Vw(RowReading):
    """The reading of Vowpal Wabbit text: its batches are rows, of 2^bits columns.

    Parameters
    ----------
    bits : int
        The number of bits of a bucket.
    hashing : {"strings", "all"}
        "strings": a name of digits is its number; "all": every name is hashed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.vw"
    ...     _ = path.write_text("1 |words free:2 offer\\n-1 |words see you\\n")
    ...     [batch] = Vw(bits=10).batches([str(path)])
    >>> batch.X.shape, batch.y.tolist(), batch.X.indices.tolist()
    ((2, 1024), [1.0, -1.0], [105, 904, 492, 869])
    """

    format: ClassVar[str] = "vw"
    bits: int = 18
    hashing: str = "strings"

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MOST_BITS:
            raise InvalidParameter("bits", self.bits, f"a whole number from 1 to {MOST_BITS}")
        if self.hashing not in ("strings", "all"):
            raise InvalidParameter("hashing", self.hashing, "'strings' or 'all', as --hash of VW")

    def batches(
        self,
        paths: Sequence[FileSource],
        *,
        labelled: bool = True,
        on_error: str = "error",
        texts: bool = False,
        digest: bool = True,
    ) -> ParallelReader[Chunk]:
        """Return an iterator over the rows of these files, in order, in chunks.

        Parameters
        ----------
        paths : sequence of str or FilePiece
            The files, or pieces of them; "-" is standard input.
        labelled : bool
            Whether rows without a label are errors.
        on_error : {"error", "skip"}
            Whether a row that cannot be read is an error or left out.
        texts : bool
            Whether to keep the lines as they stand in the files.
        digest : bool
            Whether to compute a hash of the files.

        Returns
        -------
        ParallelReader of Chunk
        """
        parser = replace(self.parser(labelled), texts=texts)
        return parser.read(paths, on_error, digest=digest, live=not labelled)

    def labels(self, paths: Sequence[FileSource], *, on_error: str = "error") -> tuple[int, NDArray]:
        """Return the number of rows and the distinct labels.

        Parameters
        ----------
        paths : sequence of str or FilePiece
            The files, or pieces of them; "-" is standard input.
        on_error : {"error", "skip"}
            Whether a row that cannot be read is an error or left out.

        Returns
        -------
        rows : int
            The number of rows.
        labels : array
            The distinct labels.
        """
        return labels(paths, on_error=on_error)

    @property
    def features(self) -> int:
        """2^bits."""
        return 1 << self.bits

    def name(self, column: int) -> str:
        """Return the name of a column: the number of its bucket, since names are hashed.

        Parameters
        ----------
        column : int
            The number of the column.

        Returns
        -------
        str
        """
        return f"bucket {column}"

    def to_parts(self) -> Parts:
        """Return the reading as facts for a model file.

        Returns
        -------
        parts : Parts
            The facts.
        """
        return Parts({"bits": self.bits, "hashing": self.hashing})

    @classmethod
    def from_parts(cls, parts: Parts) -> Vw:
        """Return the reading that `to_parts` described.

        Parameters
        ----------
        parts : Parts
            The facts, as `to_parts` returns them.

        Returns
        -------
        reading : Vw
        """
        if set(parts.facts) != {"bits", "hashing"} or parts.arrays:
            raise DamagedModel(f"the facts of VW text are bits and hashing; got {parts.facts!r}")
        return cls(parts.whole("bits", 1, MOST_BITS), parts.text("hashing"))

    def parser(self, labelled: bool) -> VwParser:
        """Return the parser of lines.

        Parameters
        ----------
        labelled : bool
            Whether a line without a label is an error.

        Returns
        -------
        parser : VwParser
        """
        return VwParser(LineOptions(np.uint64(self.features - 1), labelled, self.hashing == "strings", True))


def labels(paths: FileSources, *, on_error: str = "error", size: int = SIZE) -> tuple[int, NDArray[np.float64]]:
    """Return the number of rows of these files and their distinct labels.

    Nothing behind the first bar is looked at.

    Parameters
    ----------
    paths : str, path, or iterable of these
        A file, or several, folders, patterns, "-".
    on_error : {"error", "skip"}
        Whether a line that is wrong is an error, or is left out.
    size : int
        Bytes of text that are parsed at a time, about.

    Returns
    -------
    rows : int
        The number of rows.
    labels : array of float64
        The distinct labels, sorted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.vw"
    ...     _ = path.write_text("1 |words free\\n-1 |words see\\n1 |words offer\\n")
    ...     labels(path)
    (3, array([-1.,  1.]))
    """
    rows, distinct = 0, np.empty(0)
    parser = VwParser(LineOptions(np.uint64(0), True, True, False))
    with parser.read(paths, on_error, size) as batches:
        for batch in batches:
            assert batch.y is not None
            rows += batch.rows
            distinct = np.union1d(distinct, batch.y)
    return rows, distinct


@dataclass(frozen=True)
class VwParser(LineParser):
    """How pieces of Vowpal Wabbit text become rows."""

    error: ClassVar[type[FormatError]] = VwError
    loop = staticmethod(kernel.parse)
    extra_type: ClassVar[type] = np.float64
    line_options: LineOptions
    texts: bool = False

    def options(self, context: None) -> LineOptions:
        return self.line_options

    def separators(self) -> bytes:
        return SEPARATORS if self.line_options.features else b""

    def start(self, state: NDArray[np.int64]) -> None:
        state[UNSORTED] = 1  # as hashes are

    def columns(self, state: NDArray[np.int64]) -> int:
        return int(self.line_options.mask) + 1

    def resolve_values(self, piece: Piece, values: NDArray[np.float64]) -> None:
        """Replace values that only `float` can round, each multiplied by the value of its namespace."""
        places = places_of(values)
        for k in resolve(piece.buffer, piece.end, values):
            text = bytes(piece.buffer[piece.begin : int(places[k])])
            found = SCALE.match(text, text.rfind(b"|") + 1)
            values[k] *= float(found.group(1)) if found else 1.0

    def chunk(self, piece: Piece, X: Any, room: Room, state: NDArray[np.int64], options: LineOptions) -> Chunk:
        resolve(piece.buffer, piece.end, room.labels)
        resolve(piece.buffer, piece.end, room.extra)
        return Chunk(X, None if state[BARE] else room.labels, room.extra if state[WEIGHTED] else None)

    def problem(self, code: int, found: str, options: LineOptions) -> Any:
        text = {
            kernel.BAR: f"expected | before the features, found none in the line that begins with {found}",
            kernel.LABEL: f"expected a finite number as label, importance or base, found {found}",
            kernel.STRUCTURED: f"expected one number as the label, found {found}: labels of contextual bandits and of "
            "examples of several lines cannot be read",
            kernel.LONG: f"expected at most label, importance and base before the tag, found {found} too",
            kernel.UNLABELLED: f"expected a label before {found}",
            kernel.TOUCHING: f"expected a label, found {found}, which is a tag as it touches |; put a blank between them",
            kernel.NAMESPACE: f"expected the name of a namespace or a blank after |, found {found}",
            kernel.SCALE: f"expected a finite number of at most 19 digits as the value of the namespace, found {found}",
            kernel.VALUE: f"expected a finite number, or a word unlike one, as the value, found {found}",
            kernel.FINITE: f"expected a finite number as the value, found {found}, which is too large for a double",
        }[code]
        return text, VwError, None
