"""Matrices that numpy saved (.npy): a row of the matrix is a row, and the labels are a column of it or a file beside it.

The labels of X.npy are in y.npy, those of X_train.npy in y_train.npy, those of mail.npy in mail.labels.npy: one number or
text for each row. A file of another name can be given, or the number of a column. Rows are read some at a time, so that a
matrix may be larger than the memory; one in Fortran order is read at once.

    reading = Npy()
    for chunk in reading.batches(["X_train.npy"]):
        chunk.X, chunk.y
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import ClassVar

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.data.opening import MAX_COLUMNS, MOST_ERRORS, FilePiece, FileSource, Input, check_on_error, name_of, size_of
from rosenblatt.data.reading import Chunk, RowReading
from rosenblatt.errors import DamagedModel, FormatError, InvalidParameter, UnknownColumn, UnsupportedOperation
from rosenblatt.modelfile.parts import Parts

BATCH = 1 << 26  # bytes of a matrix that are read at a time
# What numpy raises for a header that is not its own.
_NO_HEADER = (ArithmeticError, EOFError, KeyError, MemoryError, SyntaxError, TokenError, TypeError, ValueError)


@dataclass(frozen=True)
class Npy(RowReading):
    """How to read .npy matrices as rows: where the labels are, and how many features there are.

    Parameters
    ----------
    target : int or str, optional
        The labels: the number of a column, from 0, or the path of a .npy file with one for each row of all matrices. By
        default they are in a file beside each matrix (see `find_labels`).
    width : int, optional
        The number of features; `fit` finds it.
    """

    format: ClassVar[str] = "npy"

    target: int | str | None = None
    width: int | None = None

    @property
    def needs_fit(self) -> bool:
        """Whether the number of features is still to be found."""
        return self.width is None

    @property
    def features(self) -> int | None:
        """The number of features, once it is known."""
        return self.width

    def fit(self, batches: Iterable[Chunk]) -> Npy:
        """Return this reading with the number of features, which the first rows tell.

        Parameters
        ----------
        batches : iterable of Chunk
            The batches, of which one is read.

        Returns
        -------
        Npy
        """
        first = next(iter(batches), None)
        if isinstance(batches, NpyBatches):
            batches.close()
        return self if first is None else replace(self, width=first.X.shape[1])

    def batches(
        self, paths: Sequence[FileSource], *, labelled: bool = True, on_error: str = "error", texts: bool = False
    ) -> NpyBatches:
        """Return an iterator over the rows of these files, in order.

        Parameters
        ----------
        paths : sequence of str
            The files; "-" is standard input.
        labelled : bool
            Whether to read the labels too.
        on_error : {"error", "skip"}
            Whether a row with NaN or infinity is an error or left out.
        texts : bool
            Whether to keep the rows as they stand in the files, which a matrix cannot: it must be false.

        Returns
        -------
        NpyBatches
        """
        if texts:
            raise UnsupportedOperation("the rows of a .npy file are not text, and cannot be written beside predictions")
        return NpyBatches(self, paths, labelled, on_error)

    def labels(self, paths: Sequence[FileSource], *, on_error: str = "error") -> tuple[int, NDArray]:
        """Return the number of rows and the distinct labels, in one pass over the files.

        Parameters
        ----------
        paths : sequence of str
            The files.
        on_error : {"error", "skip"}
            Whether a row with NaN or infinity is an error or left out.

        Returns
        -------
        rows : int
            The number of rows.
        labels : array
            The distinct labels, sorted.
        """
        if on_error == "error" and not isinstance(self.target, int):  # the matrices need not be read
            files = [find_labels(str(path)) for path in paths] if self.target is None else [self.target]
            found = [read_labels(file) for file in files]
        else:
            batches = self.batches(paths, on_error=on_error)
            found = [batch.y for batch in batches if batch.y is not None]
        labels = np.concatenate(found) if found else np.empty(0)
        return len(labels), np.unique(labels)

    def with_labels(self, labels: NDArray) -> Npy:
        """Return this reading for other files: the file that had the labels of these is forgotten.

        Parameters
        ----------
        labels : array
            The distinct labels; they make no difference.

        Returns
        -------
        Npy
        """
        return replace(self, target=None) if isinstance(self.target, str) else self

    def with_target(self, target: int | str | None) -> Npy:
        """Return this reading with the labels elsewhere.

        Parameters
        ----------
        target : int, str or None
            The number of a column, the path of a .npy file, or None for the files beside the matrices.

        Returns
        -------
        Npy
        """
        return replace(self, target=target)

    def record_ends(self, path: str, size: int) -> list[int]:
        """Refuse to cut a file: its labels are in another.

        Parameters
        ----------
        path : str
            The file.
        size : int
            How many bytes apart the cuts would be.

        Returns
        -------
        list of int
            Never.
        """
        raise UnsupportedOperation(
            "a .npy file cannot be cut into pieces for a cluster", path=path, hint="convert it to Parquet, or train here"
        )

    def concatenate(self, batches: Sequence[Chunk]) -> Chunk:
        """Return all rows as one chunk.

        Parameters
        ----------
        batches : sequence of Chunk
            The batches.

        Returns
        -------
        Chunk
        """
        if len(batches) == 1:
            return batches[0]
        X = np.concatenate([batch.X for batch in batches])
        labels = [batch.y for batch in batches if batch.y is not None]
        return Chunk(X, np.concatenate(labels) if len(labels) == len(batches) else None)

    def name(self, column: int) -> str:
        """Return the name of a column of X: its number in the file.

        Parameters
        ----------
        column : int
            The number of the column among the features.

        Returns
        -------
        str
        """
        return str(column + (isinstance(self.target, int) and column >= self.target))

    def to_parts(self) -> Parts:
        """Return the reading as facts for a model file.

        Returns
        -------
        Parts
        """
        target = {"target": self.target} if isinstance(self.target, int) else {}
        return Parts(target | ({} if self.width is None else {"width": self.width}))

    @classmethod
    def from_parts(cls, parts: Parts) -> Npy:
        """Return the reading that `to_parts` described.

        Parameters
        ----------
        parts : Parts
            The facts.

        Returns
        -------
        Npy
        """
        if set(parts.facts) - {"target", "width"} or parts.arrays:
            raise DamagedModel(f"the facts of .npy files are target and width; got {parts.facts!r}")
        known = {name: parts.whole(name, 0, MAX_COLUMNS) for name in ("target", "width") if name in parts.facts}
        return cls(known.get("target"), known.get("width"))


def find_labels(path: str) -> str:
    """Return the file that has the labels of a matrix, by its name.

    Parameters
    ----------
    path : str
        The matrix: X.npy has its labels in y.npy, X_train.npy in y_train.npy, mail.npy in mail.labels.npy.

    Returns
    -------
    str

    Raises
    ------
    UnknownColumn
        If there is no such file.
    """
    place = Path(path)
    names = [place.with_name(f"{place.name.removesuffix('.npy')}.labels.npy")]
    if place.name[:1] in ("X", "x"):
        names.insert(0, place.with_name(f"y{place.name[1:]}"))
    found = next(filter(os.path.exists, names), None)
    if found is None:
        raise UnknownColumn(
            f"its labels are missing: there is no file {' or '.join(name.name for name in names)} beside it",
            path=path,
            hint="save one label for each row there, or name another .npy file that has them, or a column by its number",
            settings={"target": "labels.npy"},
        )
    return str(found)


class NpyBatches:
    """An iterator over the rows of .npy files; see `Batches`. Bytes are hashed as they are read: those of the matrices, not
    those of files with labels.

    Parameters
    ----------
    reading : Npy
        Where the labels are, and how many features there are.
    paths : sequence of str
        The files.
    labelled : bool
        Whether to read the labels.
    on_error : {"error", "skip"}
        What to do with a row that has NaN or infinity.
    """

    def __init__(self, reading: Npy, paths: Sequence[FileSource], labelled: bool, on_error: str):
        check_on_error(on_error)
        if any(isinstance(path, FilePiece) for path in paths):
            raise UnsupportedOperation("a .npy file cannot be read in pieces", hint="give whole files")
        self.reading, self.labelled, self.on_error = reading, labelled, on_error
        self.paths = [str(path) for path in paths]
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.total_bytes = size_of(self.paths)
        self._hash, self._done = xxh64(), 0  # the bytes of files that have been closed
        self._stream: Input | None = None
        self._chunks = self._read()

    @property
    def bytes_read(self) -> int:
        """The bytes of the matrices read so far."""
        return self._done + (0 if self._stream is None else self._stream.bytes_read)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        return next(self._chunks)

    def close(self) -> None:
        """Close the files; there are no more batches."""
        self._chunks.close()

    def digest(self) -> str:
        """Return the XXH64 of the bytes read so far."""
        return self._hash.hexdigest()

    def _read(self) -> Generator[Chunk]:
        """Yield the rows of all files."""
        target = self.reading.target
        given = read_labels(target) if self.labelled and isinstance(target, str) else None
        used = 0  # of the labels that were given
        for path in self.paths:
            source = find_labels(path) if self.labelled and target is None else None
            labels = given if source is None else read_labels(source)
            start = used if source is None else 0
            with Input(path, self._hash) as stream:
                self._stream = stream
                rows, matrix = read_matrix(stream, path)
                if source is not None and labels is not None and len(labels) != rows:
                    raise FormatError(f"the matrix has {rows:,} rows, and {source} has {len(labels):,} labels", path=path)
                for first, X in matrix:
                    part = None if labels is None else labels[start + first : start + first + len(X)]
                    if part is not None and len(part) < len(X):
                        break  # the labels that were given are too few
                    yield self._chunk(X, part, path, first)
            self._done, self._stream = self._done + stream.bytes_read, None
            used += rows
        if given is not None and used != len(given):
            raise FormatError(f"there are {len(given):,} labels, and the matrices have {used:,} rows", path=str(target))

    def _chunk(self, X: NDArray, labels: NDArray | None, path: str, first: int) -> Chunk:
        """Rows with their labels, without those that have NaN or infinity."""
        target, width = self.reading.target, self.reading.width
        if isinstance(target, int) and (self.labelled or width is None or X.shape[1] == width + 1):
            if target >= X.shape[1]:
                raise InvalidParameter("target", target, f"a column of {path}, from 0 to {X.shape[1] - 1}")
            labels, X = X[:, target].astype(np.float64), np.delete(X, target, axis=1)
        if width is not None and X.shape[1] != width:
            raise FormatError(f"the matrix has {X.shape[1]:,} columns to learn from, and {width:,} are expected", path=path)
        fine = np.isfinite(X).all(axis=1)
        if labels is not None and labels.dtype.kind == "f":
            fine &= np.isfinite(labels)
        if fine.all():
            return Chunk(X, labels)
        bad = np.flatnonzero(~fine)
        for row in bad[: MOST_ERRORS - len(self.errors)].tolist():
            error = FormatError(f"row {first + row:,} has NaN or infinity, or such a label", path=path, row=first + row)
            if self.on_error == "error":
                raise error
            self.errors.append(error)
        self.skipped += len(bad)
        return Chunk(X[fine], None if labels is None else labels[fine])


def read_header(stream: Input, path: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return the shape, whether it is in Fortran order, and the type of the array that follows in a stream.

    Parameters
    ----------
    stream : Input
        The file, at its beginning.
    path : str
        Its name, for errors.

    Returns
    -------
    shape : tuple of int
    fortran : bool
    dtype : dtype

    Raises
    ------
    FormatError
        If it is not an array that numpy saved.
    """
    try:
        version = npy_format.read_magic(stream)
        read = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}[version]
        shape, fortran, dtype = read(stream)
    except _NO_HEADER:
        problem = "this is not an array that numpy saved, or a damaged one"
        raise FormatError(problem, path=name_of(path), hint="save it again with numpy.save") from None
    return shape, fortran, dtype


def read_matrix(stream: Input, path: str) -> tuple[int, Iterator[tuple[int, NDArray]]]:
    """Return the number of rows of a matrix, and an iterator over (number of the first row, some rows).

    Rows are float32 or float64 in native byte order: float16 becomes float32, integers and booleans float64.

    Parameters
    ----------
    stream : Input
        The file, at its beginning.
    path : str
        Its name, for errors.

    Returns
    -------
    rows : int
    matrix : iterator
    """
    shape, fortran, dtype = read_header(stream, path)
    if len(shape) != 2 or dtype.kind not in "biuf" or dtype.itemsize > 8 or not 0 < shape[1] <= MAX_COLUMNS or shape[0] < 0:
        raise FormatError(
            f"the array must be a matrix of numbers with a row for each example and at most {MAX_COLUMNS:,} columns; "
            f"it is {dtype} of shape {shape}",
            path=name_of(path),
        )
    rows, columns = shape
    width = columns * dtype.itemsize  # bytes of a row
    size = rows if fortran else max(BATCH // width, 1)
    learned = np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)

    def matrix() -> Iterator[tuple[int, NDArray]]:
        for first in range(0, rows, max(size, 1)):
            count = min(size, rows - first)
            content = stream.read(count * width) if fortran else _read_at_most(stream, count * width)
            if len(content) < count * width:
                raise FormatError(f"the file ends before the last of its {rows:,} rows", path=name_of(path))
            part = np.frombuffer(content, dtype).reshape((count, columns), order="F" if fortran else "C")
            yield first, np.ascontiguousarray(part, learned)
        if stream.read(1):
            raise FormatError(f"the file goes on after the last of its {rows:,} rows", path=name_of(path))

    return rows, matrix()


def _read_at_most(stream: Input, size: int) -> memoryview:
    """Return so many bytes, fewer at the end of the file. They are read into place: `read`, which takes no more memory than
    there are bytes, is for sizes that a damaged header may have made up."""
    content = memoryview(bytearray(size))
    return content[: stream.readinto(content)]


def read_labels(path: str) -> NDArray:
    """Return the labels of a .npy file: numbers as float64, texts as an array of objects of type str.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    array of shape (rows,)

    Raises
    ------
    FormatError
        If it is not an array of numbers or text with one axis.
    """
    with Input(path) as stream:
        shape, _, dtype = read_header(stream, path)
        count = int(np.prod(shape))
        if dtype.kind not in "biufU" or count != max(shape, default=0):
            problem = f"labels must be numbers or text, one for each row; this is {dtype} of shape {shape}"
            raise FormatError(problem, path=name_of(path))
        content = stream.read(count * dtype.itemsize)
    if len(content) < count * dtype.itemsize:
        raise FormatError(f"the file ends before the last of its {count:,} labels", path=name_of(path))
    return np.frombuffer(content, dtype, count).astype(object if dtype.kind == "U" else np.float64)
