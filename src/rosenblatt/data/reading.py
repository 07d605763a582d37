"""A reading turns files into rows, the same way in training and at prediction: it is saved with the model.

It gives batches of what the files contain, learns from them what it must know (a vocabulary, a mean), and turns each batch
into rows. Lines of LIBSVM text need nothing learned: their batches are rows already (`RowReading`). Tables with text have
batches of columns. Training need not know which it is:

    reading = reading.fit(reading.batches(paths))
    for batch in reading.batches(paths):
        chunk = reading.chunk(batch)  # chunk.X, chunk.y, chunk.weight
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

from rosenblatt.data.cutting import line_ends
from rosenblatt.data.opening import FileSource
from rosenblatt.errors import FormatError, InvalidData
from rosenblatt.modelfile.parts import Parts

NARROW = np.iinfo(np.int32).max


class RowTexts(NamedTuple):
    """Rows as they stand in a file, so that predictions can be written beside them."""

    lines: list[bytes]  # without line ends; a record of delimited text may have some inside
    format: str = "lines"  # "csv" and "tsv" are delimited text, "jsonl" objects, all else lines
    delimiter: str = "\t"
    quote: str | None = None
    names: tuple[str, ...] = ()  # of the columns of delimited text
    header: bytes | None = None  # the record that names them, if there is one

    def take(self, rows: Iterable[int]) -> RowTexts:
        """Return these rows, in this order."""
        return self._replace(lines=[self.lines[row] for row in rows])


@dataclass(frozen=True)
class Chunk:
    """Some rows of files.

    Attributes
    ----------
    X : CSR matrix or array of shape (rows, features)
        The rows.
    y : array of shape (rows,) or None
        Their labels: float64 where all are numbers, else an array of objects, of text; None where the file has none.
    weight : array of shape (rows,) or None
        Their weights; None where all are 1.
    qid : array of int64 of shape (rows,) or None
        The query of each row of LIBSVM text, 0 where a line has none; None where they were not asked for.
    smallest : int or None
        The smallest index in LIBSVM text; None if there is no non-zero.
    texts : RowTexts or None
        The rows as they stand in the file; None where they were not asked for.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data import svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.svm"
    ...     _ = path.write_text("+1 1:0.5\\n-1 2:0.25\\n")
    ...     [rows] = svmlight.chunks(path)
    >>> rows.X.shape, rows.y.tolist(), rows.rows
    ((2, 2), [1.0, -1.0], 2)
    """

    X: Any
    y: NDArray | None = None
    weight: NDArray | None = None
    qid: NDArray[np.int64] | None = None
    smallest: int | None = None
    texts: RowTexts | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.X.shape[0]

    def take(self, rows: NDArray) -> Chunk:
        """Return these rows, in this order.

        Parameters
        ----------
        rows : array of int
            The numbers of the rows.

        Returns
        -------
        chunk : Chunk
        """
        y, weight, qid = (None if array is None else array[rows] for array in (self.y, self.weight, self.qid))
        texts = None if self.texts is None else self.texts.take(np.arange(self.rows)[rows].tolist())
        return Chunk(self.X[rows], y, weight, qid, self.smallest, texts)


def csr(values: NDArray, indices: NDArray, indptr: NDArray, columns: int) -> sp.csr_matrix:
    """Return the matrix of these arrays without a copy. Indices are sorted; 32 bits hold positions where they suffice."""
    if len(values) <= NARROW and indices.dtype == np.int32:
        indptr = indptr.astype(np.int32)
    else:
        indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    X = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, columns))
    X.has_canonical_format = True
    return X


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """Return the rows of all chunks as one, as wide as the widest; y is None if one of them has no labels."""
    parts = [chunk.X for chunk in chunks]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    X = csr(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        max(part.shape[1] for part in parts),
    )
    y = [chunk.y for chunk in chunks if chunk.y is not None]
    if len({labels.dtype for labels in y}) > 1:
        raise InvalidData("rows with numbers as labels and rows with words as labels cannot be concatenated")
    weight = None
    if any(chunk.weight is not None for chunk in chunks):
        weight = np.concatenate([np.ones(chunk.rows) if chunk.weight is None else chunk.weight for chunk in chunks])
    qid = [chunk.qid for chunk in chunks if chunk.qid is not None]
    smallest = min((chunk.smallest for chunk in chunks if chunk.smallest is not None), default=None)
    whole = np.concatenate(y) if len(y) == len(chunks) else None
    return Chunk(X, whole, weight, np.concatenate(qid) if qid else None, smallest)


class Batch(Protocol):
    """Some of what the files contain, in order; a Chunk is one."""

    @property
    def rows(self) -> int:
        """The number of rows it becomes."""

    def take(self, rows: NDArray) -> Batch:
        """Return these rows, in this order."""


class Batches(Protocol):
    """An iterator over the batches of files, of bounded size, which tells its progress."""

    skipped: int  # rows left out for an error, with on_error="skip"
    errors: list[FormatError]  # what was wrong with the first hundred of them

    @property
    def bytes_read(self) -> int:
        """The bytes of the files read so far, before decompression."""

    @property
    def total_bytes(self) -> int | None:
        """The size of the files; None where it is unknown, as of a pipe."""

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...

    def close(self) -> None:
        """Close the files; there are no more batches."""

    def digest(self) -> str:
        """Return XXH64 (`xxhsum -H1`), in hexadecimal, of all bytes read so far before decompression, file after file."""


class RowReading:
    """Base of the readings whose batches are rows already."""

    @property
    def needs_fit(self) -> bool:
        """False: a row is made of one line and nothing else."""
        return False

    def fit(self, batches: Iterable[Chunk]) -> Self:
        """Return itself: there is nothing to learn.

        Parameters
        ----------
        batches : iterable
            The batches; they are not read.

        Returns
        -------
        self
        """
        return self

    def with_labels(self, labels: NDArray) -> Self:
        """Return itself: labels make no difference.

        Parameters
        ----------
        labels : array
            The distinct labels.

        Returns
        -------
        self
        """
        return self

    def record_ends(self, path: str, size: int) -> list[int]:
        """Return places where lines end, at which a file can be cut.

        Parameters
        ----------
        path : str
            The file, which is not compressed.
        size : int
            How many bytes they are apart, about.

        Returns
        -------
        list of int
            The places, ascending; the last is the end of the file.
        """
        return line_ends(path, size)

    def concatenate(self, batches: Sequence[Chunk]) -> Chunk:
        """Return all rows as one chunk.

        Parameters
        ----------
        batches : sequence of Chunk
            The batches.

        Returns
        -------
        chunk : Chunk
        """
        return concatenate(batches)

    def chunk(self, batch: Chunk) -> Chunk:
        """Return the rows as they are.

        Parameters
        ----------
        batch : Chunk
            The rows.

        Returns
        -------
        chunk : Chunk
        """
        return batch


class Reading(Protocol):
    """A way to read files as rows; it is saved with the model, so that prediction reads files as training did."""

    format: ClassVar[str]  # the name of the reading in a model file

    @property
    def needs_fit(self) -> bool:
        """Whether `fit` must see the data before rows can be made."""

    @property
    def features(self) -> int | None:
        """The number of columns of X; None where it is known only when all rows are read."""

    def batches(
        self, paths: Sequence[FileSource], *, labelled: bool = True, on_error: str = "error", texts: bool = False
    ) -> Batches:
        """Return an iterator over the batches of these files, in order.

        Parameters
        ----------
        paths : sequence of str or FilePiece
            The files, or pieces of them; "-" is standard input.
        labelled : bool
            Whether rows without a label are errors. If not, the rows are to be predicted: those of a pipe are handed over
            where it pauses, so that they can be answered before the next one is there.
        on_error : {"error", "skip"}
            Whether a row that cannot be read is an error or left out.
        texts : bool
            Whether to keep the rows as they stand in the files.

        Returns
        -------
        Batches
            An iterator over the batches.
        """

    def fit(self, batches: Iterable[Any]) -> Reading:
        """Return a copy of this reading fitted to these batches; itself where there is nothing to learn.

        Parameters
        ----------
        batches : iterable
            The batches to learn from.

        Returns
        -------
        Reading
        """

    def labels(self, paths: Sequence[FileSource], *, on_error: str = "error") -> tuple[int, NDArray]:
        """Return the number of rows and the distinct labels, in one pass over the files.

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

    def record_ends(self, path: str, size: int) -> list[int]:
        """Return places where records end, at which a file can be cut into pieces.

        Parameters
        ----------
        path : str
            The file, which is not compressed.
        size : int
            How many bytes they are apart, about.

        Returns
        -------
        list of int
            The places, ascending; the last is the end of the file.
        """

    def with_labels(self, labels: NDArray) -> Reading:
        """Return this reading for files with these labels, numbers or words.

        Parameters
        ----------
        labels : array
            The distinct labels.

        Returns
        -------
        Reading
        """

    def concatenate(self, batches: Sequence[Any]) -> Any:
        """Return all batches as one.

        Parameters
        ----------
        batches : sequence
            The batches.

        Returns
        -------
        batch
            All rows, as one batch.
        """

    def chunk(self, batch: Any) -> Chunk:
        """Return the rows of a batch.

        Parameters
        ----------
        batch
            One of `batches`.

        Returns
        -------
        Chunk
        """

    def name(self, column: int) -> str:
        """Return the name of a column of X.

        Parameters
        ----------
        column : int
            The number of the column.

        Returns
        -------
        str
        """

    def to_parts(self) -> Parts:
        """Return the reading as facts and arrays for a model file.

        Returns
        -------
        Parts
        """

    @classmethod
    def from_parts(cls, parts: Parts) -> Reading:
        """Return the reading that `to_parts` described.

        Parameters
        ----------
        parts : Parts
            The facts and arrays.

        Returns
        -------
        Reading

        Raises
        ------
        ValueError
            If the parts are not those of this reading.
        """
