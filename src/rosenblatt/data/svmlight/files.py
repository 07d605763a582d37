"""How files of LIBSVM text are read, at once, in chunks or as a `Reading`, and written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

from rosenblatt.data import opening
from rosenblatt.data.opening import output
from rosenblatt.data.parsing.ahead import SIZE, Ahead
from rosenblatt.data.parsing.sparse import csr, stacked
from rosenblatt.data.reading import OfRows
from rosenblatt.data.svmlight.pieces import LabelError, Parser, Rows, SvmlightError, decoded, first_words, is_number

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Data(tuple):
    """X and y, to be unpacked, with what else is known of them.

    X, y         CSR and labels: float64 if all are numbers, else an array of objects, of text
    qid          the number of the query of each row if it was asked for, else None
    zero_based   whether the first column is the index 0 of the text, or 1
    skipped      how many lines were left out, with on_error="skip"
    errors       what was wrong with the first hundred of them
    """

    X: Any
    y: NDArray
    qid: NDArray[np.int64] | None
    zero_based: bool
    skipped: int
    errors: list[SvmlightError]

    def __new__(cls, X, y, qid, zero_based, skipped, errors):
        data = super().__new__(cls, (X, y))
        data.X, data.y, data.qid = X, y, qid
        data.zero_based, data.skipped, data.errors = zero_based, skipped, errors
        return data

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        base = "zero" if self.zero_based else "one"
        return (
            f"<{rows:,} rows, {columns:,} columns, {self.X.nnz:,} non-zeros, {base}-based, {self.skipped:,} lines skipped>"
        )


def read(
    paths: Paths,
    *,
    features: int | None = None,
    zero_based: bool | str = "auto",
    text: bool | None = None,
    dtype: Any = np.float64,
    on_error: str = "error",
    qid: bool = False,
) -> Data:
    """X and y of all rows of these files.

    paths        a file, or several, folders, patterns, "-"; compressed ones are known by what they hold
    features     the number of columns; without it, as many as the largest index asks for
    zero_based   whether the first column is the index 0 of the text; "auto": if an index 0 occurs in any of the files
    text         whether labels are words; None: if one of them is no number
    dtype        of X; numbers are read as float64 and then rounded to it
    on_error     "error", or "skip": lines that are wrong are left out and counted, and so are those whose label is a word
                 if the first label is a number
    qid          whether to keep the numbers of the queries

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
        raise ValueError(f"zero_based={zero_based!r}: it must be True, False or 'auto'")
    files = opening.paths(paths)
    parser = Parser(features, zero_based, text, qid=qid)
    try:
        held, batches = _held(files, parser, on_error)
    except LabelError:
        if text is not None or not opening.rereadable(files):
            raise
        held, batches = _held(files, replace(parser, text=True), on_error)
    if not held:
        raise SvmlightError(", ".join(files[:3]) + (", …" if len(files) > 3 else ""), None, "there are no rows to read")
    whole = joined(held)
    if zero_based == "auto":
        zero_based = whole.smallest == 0
        whole = whole if zero_based else _one_based(whole)
    X = _shaped(whole.X, features).astype(dtype, copy=False)
    return Data(X, whole.y, whole.qid, bool(zero_based), batches.skipped, batches.errors)


def _held(files: list[str], parser: Parser, on_error: str) -> tuple[list[Rows], Ahead[Rows]]:
    with Ahead(files, parser, SvmlightError, prepare=parser.words, on_error=on_error) as batches:
        return list(batches), batches


def chunks(
    paths: Paths,
    *,
    features: int | None = None,
    zero_based: bool = False,
    text: bool | None = None,
    labelled: bool = True,
    on_error: str = "error",
    qid: bool = False,
    size: int = SIZE,
    threads: int | None = None,
    digest: bool = False,
) -> Ahead[Rows]:
    """An iterator over the rows of these files, in order, in chunks of about `size` bytes of text.

    X has `features` columns, or, without a number, as many as the largest index of the chunk asks for. `zero_based` cannot
    be found out on the way: True takes the indices as they stand. `text` says whether labels are words; without it the
    label of the first row decides, and a word after a number is an error. With labelled=False lines need no label, nobody
    looks at those that are there, and y is None. `threads` are as many as there are cores, but eight at most. The iterator
    has `skipped`, `errors`, `taken`, `total`, `digest()` (if digest=True) and `close()`, as
    `rosenblatt.data.reading.Batches` says.
    """
    parser = Parser(features, zero_based, text, labelled, qid)
    return Ahead(
        opening.paths(paths),
        parser,
        SvmlightError,
        prepare=parser.words,
        on_error=on_error,
        size=size,
        threads=threads,
        digest=digest,
    )


@dataclass(frozen=True)
class Svmlight(OfRows):
    """The reading of LIBSVM text: its batches are rows already, and the columns are the indices as they stand in the text.

    text   whether labels are words; None: the first row decides. `labels` tells beforehand.
    """

    format: ClassVar[str] = "svmlight"
    text: bool | None = None

    def batches(
        self, paths: Sequence[str], *, labelled: bool = True, on_error: str = "error", digest: bool = True
    ) -> Ahead[Rows]:
        """The rows of these files, in order, in chunks."""
        return chunks(paths, zero_based=True, text=self.text, labelled=labelled, on_error=on_error, digest=digest)

    def labels(self, paths: Sequence[str], *, on_error: str = "error") -> tuple[int, NDArray]:
        """(how many rows there are, their distinct labels); to leave out lines that are skipped takes longer."""
        if on_error == "error":
            return labels(paths)
        rows, found = 0, set()
        for batch in self.batches(paths, on_error=on_error, digest=False):
            rows += batch.rows
            found |= set(() if batch.y is None else batch.y.tolist())
        kind: Any = object if any(isinstance(label, str) for label in found) else np.float64
        return rows, np.array(sorted(found), kind)

    def told(self, distinct: NDArray) -> Svmlight:
        """This reading for files with these labels."""
        return replace(self, text=distinct.dtype.kind == "O")

    def joined(self, batches: Sequence[Rows]) -> Rows:
        """All rows as one."""
        return joined(batches)

    @property
    def features(self) -> int | None:
        """None: the number of columns is known only when all are read."""
        return None

    def name(self, column: int) -> str:
        """The index in the text."""
        return str(column)

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The reading as facts and arrays."""
        return {"text": self.text}, {}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Svmlight:
        """The reading that these describe."""
        text = facts.get("text")
        if text not in (None, True, False) or set(facts) - {"text"} or arrays:
            raise ValueError(f"a reading of LIBSVM text has the fact text, true, false or null; got {dict(facts)!r}")
        return cls(text)


def labels(paths: Paths, *, size: int = SIZE) -> tuple[int, NDArray]:
    """How many rows these files have, and their distinct labels, sorted: float64 if all are numbers, else text.

    Only the first word of each line is looked at: lines that are wrong, or have no label, are counted too.
    """
    rows = 0
    distinct: set[bytes] = set()
    for found, count in Ahead(opening.paths(paths), first_words, SvmlightError, size=size):
        rows += count
        distinct.update(word for word in found if b":" not in word)
    if all(map(is_number, distinct)):
        return rows, np.unique(np.array([float(word) for word in distinct]))
    return rows, np.array(sorted(map(decoded, distinct)), object)


def write(
    target: Any,
    X: Any,
    y: Any = None,
    *,
    zero_based: bool = False,
    qid: Any = None,
) -> int:
    """The number of rows written to a path (compressed by its suffix) or to a file opened to write bytes.

    Every number has the fewest digits that are read back as the same double; stored zeros are kept. A path has either all
    rows or, after an error, what it had before. Rows without y get no label.
    """
    X = X.tocsr() if sp.issparse(X) else sp.csr_matrix(X)
    if not np.isfinite(X.data).all():
        raise ValueError("X has values that are infinite or no numbers, which LIBSVM text does not have; remove these rows")
    heads = [""] * X.shape[0] if y is None else [_label_text(label) for label in _one_each("y", y, X.shape[0])]
    if qid is not None:
        heads = [f"{head} qid:{int(query)}" for head, query in zip(heads, _one_each("qid", qid, X.shape[0]), strict=True)]
    with output(target) if isinstance(target, str | os.PathLike) else nullcontext(target) as file:
        for row, head in enumerate(heads):
            begin, end = X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end] + (not zero_based), X.data[begin:end]
            pairs = map("{}:{}".format, indices.tolist(), map(_shortest, values.tolist()))
            file.write((" ".join([head, *pairs] if head else pairs) + "\n").encode())
    return X.shape[0]


def _shortest(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _one_each(name: str, given: Any, rows: int) -> list:
    found = np.asarray(given).tolist()
    if len(found) != rows:
        raise ValueError(f"{name} has {len(found)} values, and X has {rows} rows; there must be one for each")
    return found


def _label_text(label: Any) -> str:
    text = label if isinstance(label, str) else _shortest(label)
    if not text or not set(text).isdisjoint(" \t\n\v\f\r#:") or not text.isprintable():
        raise ValueError(f"the label {label!r} cannot be written: a label is a number or one word without : and #")
    return text


def joined(batches: Sequence[Rows]) -> Rows:
    """All rows as one."""
    kinds = {None if batch.y is None else batch.y.dtype for batch in batches}
    if len(kinds) > 1:
        raise ValueError("some rows have labels and some have none, or words; they cannot be joined")
    X = stacked([batch.X for batch in batches])
    y = None if None in kinds else np.concatenate([batch.y for batch in batches if batch.y is not None])
    qid = [batch.qid for batch in batches if batch.qid is not None]
    smallest = min((batch.smallest for batch in batches if batch.smallest is not None), default=None)
    return Rows(X, y, None, np.concatenate(qid) if qid else None, smallest)


def _one_based(rows: Rows) -> Rows:
    X = rows.X
    np.subtract(X.indices, 1, out=X.indices)
    shifted = csr(X.data, X.indices, X.indptr, max(X.shape[1] - 1, 0))
    return Rows(shifted, rows.y, None, rows.qid, rows.smallest)


def _shaped(X: Any, features: int | None) -> Any:
    if features is None or X.shape[1] == features:
        return X
    if X.shape[1] > features:
        raise ValueError(
            f"the indices begin at 0 and go to {X.shape[1] - 1}, which is more than features={features} allows"
        )
    return csr(X.data, X.indices, X.indptr, features)
