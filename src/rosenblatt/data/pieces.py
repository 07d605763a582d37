"""Files are cut into pieces that end where records do, so that each piece can be read alone, by any process.

Over all pieces exactly the rows of the files are read, in order, each once. Readers take pieces in place of paths:

    reading = reading_for(files)
    pieces = cut_files(files, reading, size=1 << 26)
    for batch in reading.batches(pieces[:3]):
        ...
    for piece in cut_sentences(treebanks, size=1 << 24):
        for sentence in sentences.read(piece):
            ...

Only a few bytes at each cut are read. Delimited text is read once if it has quotes: what a line end means in the middle of
it, only the text before can say. A compressed file is one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from rosenblatt.data import opening
from rosenblatt.data.opening import FilePiece, Paths
from rosenblatt.data.reading import Reading
from rosenblatt.data.sentences import sentence_ends
from rosenblatt.errors import InvalidData, InvalidParameter

__all__ = ["FilePiece", "cut_files", "cut_sentences"]


def cut_files(paths: Paths, reading: Reading, size: int) -> list[FilePiece]:
    """Cut files of rows into pieces.

    Parameters
    ----------
    paths : str, path, or iterable of these
        The files: paths, URLs of fsspec, folders, patterns.
    reading : Reading
        How the files are read, fitted or not.
    size : int
        Bytes of a piece, about; a piece is longer where a record is, and the last one of a file is shorter. A piece of a
        Parquet or Arrow file has at least one row group or record batch.

    Returns
    -------
    list of FilePiece
        The pieces, in the order of the files; an empty file has none.

    Raises
    ------
    InvalidData
        If a file can be read only once, as a pipe.
    FormatError
        If a quote in delimited text is not closed, or the format of a table cannot be detected.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.data import svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.svm"
    ...     _ = path.write_text("+1 1:0.5\\n-1 2:0.25\\n+1 1:2\\n")
    ...     [(piece.begin, piece.end) for piece in cut_files(path, svmlight.Svmlight(), size=10)]
    [(0, 19), (19, 26)]
    """
    return _cut(paths, size, lambda path: reading.record_ends(path, size))


def cut_sentences(paths: Paths, size: int, columns: Sequence[str] | None = None) -> list[FilePiece]:
    """Cut files of sentences into pieces, which know their first line.

    Parameters
    ----------
    paths : str, path, or iterable of these
        The files, of CoNLL-U, of columns or of plain lines of words: paths, URLs of fsspec, folders, patterns.
    size : int
        Bytes of a piece, about; a piece is longer where a sentence is, and the last one of a file is shorter.
    columns : sequence of str, optional
        The names of the columns of column files, as for `sentences.read`.

    Returns
    -------
    list of FilePiece
        The pieces, in the order of the files; an empty file has none.

    Raises
    ------
    InvalidData
        If a file can be read only once, as a pipe.
    FormatError
        If a file looks like columns and these have no names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("Dogs NNS\\nbark VBP\\n\\nStop VB\\n\\n")
    ...     [(piece.begin, piece.end, piece.line) for piece in cut_sentences(path, 5, columns=("form", "pos"))]
    [(0, 19, 1), (19, 28, 4)]
    """
    pieces = []
    line = 1
    for piece in _cut(paths, size, lambda path: sentence_ends(path, size, columns)):
        line = line if piece.begin else 1
        pieces.append(piece._replace(line=line))
        line += opening.count_line_ends(piece)
    return pieces


def _cut(paths: Paths, size: int, record_ends: Callable[[str], list[int]]) -> list[FilePiece]:
    if size < 1:
        raise InvalidParameter("size", size, "a number of bytes, at least 1")
    return [piece for path in opening.paths(paths) for piece in _pieces_of(path, record_ends)]


def _pieces_of(path: str, record_ends: Callable[[str], list[int]]) -> Iterable[FilePiece]:
    if not opening.rereadable([path]):
        name = opening.name_of(path)
        raise InvalidData(
            "it cannot be cut into pieces: a pipe can be read only once, and by one process", path=name, hint="name a file"
        )
    version = opening.version_of(path)  # as it was before it was looked into
    ends = [opening.size_of_file(path)] if opening.is_compressed(path) else record_ends(path)
    return [FilePiece(path, begin, end, version=version) for begin, end in pairwise([0, *ends]) if begin < end]
