"""Read LIBSVM text at once, in chunks or as a `Reading`, and write it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse as sp

from rosenblatt.data import opening
from rosenblatt.data.opening import FileSource, FileSources, output
from rosenblatt.data.parsing.line_parser import Data
from rosenblatt.data.parsing.parallel import SIZE, ParallelReader
from rosenblatt.data.reading import Chunk, RowReading, csr
from rosenblatt.data.svmlight.parser import LabelError, SvmlightError, SvmlightParser, decode, first_words, is_number
from rosenblatt.errors import DamagedModel, InvalidData, InvalidParameter
from rosenblatt.modelfile.parts import Parts

MOST_BITS = 30  # buckets are columns, counted with 32 bits


def read(
    paths: FileSources,
    *,
    features: int | None = None,
    zero_based: bool | str = "auto",
    text: bool | None = None,
    dtype: DTypeLike = np.float64,
    on_error: str = "error",
    qid: bool = False,
) -> Data:
    """Read X and y of all rows of these files.

    Parameters
    ----------
    paths : str, path, or iterable of these
        A file, or several, folders, patterns, "-"; compression is detected.
    features : int, optional
        The number of columns; without it, as many as the largest index needs.
    zero_based : bool or "auto"
        Whether the first column is the index 0 of the text; "auto": if an index 0 occurs in any of the files.
    text : bool, optional
        Whether labels are words; None: if one of them is not a number.
    dtype : dtype
        The type of X; numbers are read as float64 and then rounded to it.
    on_error : {"error", "skip"}
        Whether a line that is wrong is an error, or is left out and counted; so are lines whose label is a word if the
        first label is a number.
    qid : bool
        Whether to keep the numbers of the queries.

    Returns
    -------
    Data
        X and y, to be unpacked, with `qid`, `zero_based`, `skipped` and `errors`.

    Raises
    ------
    SvmlightError
        If a line is wrong, with `path`, `line` and `column`, or if there are no rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "two.svm"
    >>> _ = file.write_text("+1 1:0.5 3:2\\n-1 2:0.25 # the second row\\n")
    >>> X, y = read(file)
    >>> X.toarray(), y
    (array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]]), array([ 1., -1.]))
    >>> read(file)
    <2 rows, 3 columns, 3 non-zeros, one-based, 0 lines skipped>
    """
    if zero_based not in (True, False, "auto"):
        raise InvalidParameter("zero_based", zero_based, "True, False or 'auto'")
    files = opening.files_or_pieces(paths)
    parser = SvmlightParser(features, zero_based, text, qid=qid)
    try:
        whole, batches = parser.read_whole(files, on_error)
    except LabelError:
        if text is not None or not opening.rereadable(files):
            raise
        whole, batches = replace(parser, text=True).read_whole(files, on_error)
    if zero_based == "auto":
        zero_based = whole.smallest == 0
        whole = whole if zero_based else _one_based(whole)
    X = _widen(whole.X, features).astype(dtype, copy=False)
    return Data(replace(whole, X=X), batches, bool(zero_based))


def chunks(
    paths: FileSources,
    *,
    features: int | None = None,
    zero_based: bool = False,
    text: bool | None = None,
    labelled: bool = True,
    on_error: str = "error",
    qid: bool = False,
    hashing: int | None = None,
    texts: bool = False,
    size: int = SIZE,
    threads: int | None = None,
    digest: bool = False,
) -> ParallelReader[Chunk]:
    """Read the rows of these files in chunks, in memory that does not grow with the files.

    Parameters
    ----------
    paths : str, path, or iterable of these
        A file, or several, folders, patterns, "-"; compression is detected.
    features : int, optional
        The number of columns; without it, as many as the largest index of the chunk needs.
    zero_based : bool
        True takes the indices as they are; this cannot be detected on the way.
    text : bool, optional
        Whether labels are words; without it the label of the first row decides, and a word after a number is an error.
    labelled : bool
        False: lines need no label, those that are there are not looked at, and y is None. The rows of a pipe are handed
        over where it pauses, so that they can be answered before the next line is there.
    on_error : {"error", "skip"}
        Whether a line that is wrong is an error, or is left out and counted.
    qid : bool
        Whether to keep the numbers of the queries.
    hashing : int, optional
        Bits: indices are hashed to 2^bits columns, so that they may be arbitrarily large.
    texts : bool
        Whether to keep the lines as they stand in the files.
    size : int
        Bytes of text in a chunk, about.
    threads : int, optional
        Threads that parse; as many as there are cores, but eight at most.
    digest : bool
        Whether to compute a hash of the files, for `digest()`.

    Returns
    -------
    ParallelReader of Chunk
        An iterator with `skipped`, `errors`, `bytes_read`, `total_bytes`, `digest()` and `close()`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.svm"
    ...     _ = path.write_text("+1 1:0.5\\n-1 2:0.25\\n" * 100)
    ...     [chunk.X.shape for chunk in chunks(path, size=1000)]
    [(105, 2), (95, 2)]
    """
    parser = SvmlightParser(features, zero_based, text, labelled, qid, hashing, texts)
    return parser.read(paths, on_error, size, threads, digest, live=not labelled)


@dataclass(frozen=True)
class Svmlight(RowReading):
    """The reading of LIBSVM text: its batches are rows.

    The columns are the indices as they are in the text, or hashes of them.

    Parameters
    ----------
    text : bool, optional
        Whether labels are words; None: the first row decides.
    hashing : int, optional
        Bits: indices are hashed to 2^bits columns, so that they may be arbitrarily large.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.svm"
    ...     _ = path.write_text("ham 1:0.5\\nspam 2:0.25\\n")
    ...     reading = Svmlight()
    ...     rows, labels = reading.labels([str(path)])
    ...     [batch] = reading.batches([str(path)])
    >>> rows, labels.tolist(), batch.X.toarray().tolist()
    (2, ['ham', 'spam'], [[0.0, 0.5, 0.0], [0.0, 0.0, 0.25]])
    """

    format: ClassVar[str] = "svmlight"
    text: bool | None = None
    hashing: int | None = None

    def __post_init__(self) -> None:
        if self.hashing is not None and not 1 <= self.hashing <= MOST_BITS:
            raise InvalidParameter("hashing", self.hashing, f"a whole number from 1 to {MOST_BITS}")

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
        how: dict[str, Any] = {"labelled": labelled, "on_error": on_error, "digest": digest, "texts": texts}
        return chunks(paths, zero_based=True, text=self.text, hashing=self.hashing, **how)

    def labels(self, paths: Sequence[FileSource], *, on_error: str = "error") -> tuple[int, NDArray]:
        """Return the number of rows and the distinct labels. With on_error="skip" it takes longer.

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
        if on_error == "error":
            return labels(paths)
        rows, found = 0, set()
        for batch in self.batches(paths, on_error=on_error, digest=False):
            rows += batch.rows
            found |= set(() if batch.y is None else batch.y.tolist())
        kind: type = object if any(isinstance(label, str) for label in found) else np.float64
        return rows, np.array(sorted(found), kind)

    def with_labels(self, labels: NDArray) -> Svmlight:
        """Return this reading for files with these labels, numbers or words.

        Parameters
        ----------
        labels : array
            The distinct labels.

        Returns
        -------
        Svmlight
        """
        return replace(self, text=labels.dtype.kind == "O")

    @property
    def features(self) -> int | None:
        """2^bits where indices are hashed; else None: it is known only when all rows are read."""
        return None if self.hashing is None else 1 << self.hashing

    def name(self, column: int) -> str:
        """Return the name of a column: its index in the text, or the number of its bucket.

        Parameters
        ----------
        column : int
            The number of the column.

        Returns
        -------
        str
        """
        return str(column) if self.hashing is None else f"bucket {column}"

    def to_parts(self) -> Parts:
        """Return the reading as facts for a model file.

        Returns
        -------
        parts : Parts
            The facts.
        """
        return Parts({"text": self.text, **({} if self.hashing is None else {"hashing": self.hashing})})

    @classmethod
    def from_parts(cls, parts: Parts) -> Svmlight:
        """Return the reading that `to_parts` described.

        Parameters
        ----------
        parts : Parts
            The facts, as `to_parts` returns them.

        Returns
        -------
        reading : Svmlight
        """
        if set(parts.facts) - {"text", "hashing"} or parts.arrays:
            raise DamagedModel(f"the facts of LIBSVM text are text and hashing; got {parts.facts!r}")
        text = None if parts.facts.get("text") is None else parts.flag("text")
        return cls(text, parts.whole("hashing", 1, MOST_BITS) if "hashing" in parts.facts else None)


def labels(paths: FileSources, *, size: int = SIZE) -> tuple[int, NDArray]:
    """Return the number of rows of these files and their distinct labels.

    Only the first word of each line is looked at: lines that are wrong, or have no label, are counted too.

    Parameters
    ----------
    paths : str, path, or iterable of these
        A file, or several, folders, patterns, "-".
    size : int
        Bytes of text that are parsed at a time, about.

    Returns
    -------
    rows : int
        The number of rows.
    labels : array
        The distinct labels, sorted: float64 if all are numbers, else an array of objects, of text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.svm"
    ...     _ = path.write_text("ham 1:0.5\\nspam 2:0.25\\nham 2:1\\n")
    ...     labels(path)
    (3, array(['ham', 'spam'], dtype=object))
    """
    rows = 0
    distinct: set[bytes] = set()
    for found, count in ParallelReader(opening.files_or_pieces(paths), first_words, SvmlightError, size=size):
        rows += count
        distinct.update(word for word in found if b":" not in word)
    if all(map(is_number, distinct)):
        return rows, np.unique(np.array([float(word) for word in distinct]))
    return rows, np.array(sorted(map(decode, distinct)), object)


def write(
    target: str | os.PathLike[str] | IO[bytes],
    X: Any,
    y: ArrayLike | None = None,
    *,
    zero_based: bool = False,
    qid: ArrayLike | None = None,
) -> int:
    """Write rows as LIBSVM text.

    Every number has the fewest digits that are read back as the same double; stored zeros are kept. A path has either all
    rows or, after an error, what it had before.

    Parameters
    ----------
    target : str, path or binary file
        Where to write; a path is compressed by its suffix.
    X : array or sparse matrix of shape (rows, columns)
        The rows.
    y : array of shape (rows,), optional
        The labels, numbers or words; without it rows get no label.
    zero_based : bool
        Whether the first column is written as the index 0, or 1.
    qid : array of shape (rows,), optional
        The number of the query of each row.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidData
        If X is not finite, lengths differ, or a label cannot be written as one word.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write(file, [[0.5, 0, 2], [0, 0.25, 0]], ["ham", "spam"])
    2
    >>> print(file.getvalue().decode(), end="")
    ham 1:0.5 3:2
    spam 2:0.25
    """
    X = X.tocsr() if sp.issparse(X) else sp.csr_matrix(X)
    if not np.isfinite(X.data).all():
        raise InvalidData("X has values that are infinite or NaN, which LIBSVM text cannot hold", hint="remove these rows")
    heads = [""] * X.shape[0] if y is None else [_label_text(label) for label in _one_per_row("y", y, X.shape[0])]
    if qid is not None:
        queries = _one_per_row("qid", qid, X.shape[0])
        heads = [f"{head} qid:{int(query)}" for head, query in zip(heads, queries, strict=True)]
    with output(target) if isinstance(target, str | os.PathLike) else nullcontext(target) as file:
        for row, head in enumerate(heads):
            begin, end = X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end] + (not zero_based), X.data[begin:end]
            pairs = map("{}:{}".format, indices.tolist(), map(_shortest, values.tolist()))
            file.write((" ".join([head, *pairs] if head else pairs) + "\n").encode())
    return X.shape[0]


def _shortest(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _one_per_row(name: str, values: ArrayLike, rows: int) -> list:
    found = np.asarray(values).tolist()
    if len(found) != rows:
        raise InvalidData(f"{name} has {len(found)} values, and X has {rows} rows; there must be one for each row")
    return found


def _label_text(label: str | float) -> str:
    text = label if isinstance(label, str) else _shortest(label)
    if not text or not set(text).isdisjoint(" \t\n\v\f\r#:") or not text.isprintable():
        raise InvalidData(f"the label {label!r} cannot be written: a label is a number or one word without : and #")
    return text


def _one_based(rows: Chunk) -> Chunk:
    X = rows.X
    np.subtract(X.indices, 1, out=X.indices)
    return replace(rows, X=csr(X.data, X.indices, X.indptr, max(X.shape[1] - 1, 0)))


def _widen(X: sp.csr_matrix, features: int | None) -> sp.csr_matrix:
    if features is None or X.shape[1] == features:
        return X
    if X.shape[1] > features:
        raise InvalidParameter("features", features, f"{X.shape[1]} or more, as indices go from 0 to {X.shape[1] - 1}")
    return csr(X.data, X.indices, X.indptr, features)
