"""Read sentences of any file of words: CoNLL-U, columns, or plain lines of words with blanks between them, which become
sentences of CoNLL-U. The first line that is neither blank nor a comment tells what a file is: with a tab it is CoNLL-U.

    from rosenblatt.data import sentences

    for sentence in sentences.read("raw.txt"):
        sentence.forms
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from rosenblatt.data import columns as column_files
from rosenblatt.data import conllu, lines
from rosenblatt.data.opening import Input, Source, name_of, text_lines, too_long
from rosenblatt.errors import FormatError


def read(source: Source, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Read the sentences of a file, one at a time.

    Parameters
    ----------
    source : str, path or binary file
        The file; "-" is standard input.
    columns : sequence of str, optional
        The names of the columns of a column file; without them the file is CoNLL-U or plain lines of words.

    Yields
    ------
    Sentence
        The sentences, those of plain lines as sentences of CoNLL-U.
    """
    with Input(source) as stream, io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="\n") as text:
        rest = text_lines(text, name_of(source), stream.max_line)
        if columns is not None:
            held: Any = _Peeked(name_of(source), (), rest)
            yield from column_files.read(held, columns)
            return
        begin, size = [], 0
        for line in rest:
            begin.append(line)
            size += len(line)
            if size > stream.max_line:
                raise too_long("what stands before the first word", size, stream.max_line, name_of(source), 1)
            if line.strip() and not line.startswith("#"):
                break
        file: Any = _Peeked(name_of(source), begin, rest)
        yield from conllu.read(file) if begin and "\t" in begin[-1] else _words(file)


class _Peeked:
    """A text whose first lines were looked at."""

    encoding = "utf-8"

    def __init__(self, name: str, begin: Iterable[str], rest: Iterable[str]):
        self.name, self._lines = name, chain(begin, rest)

    def __iter__(self) -> Iterator[str]:
        return self._lines


def _words(file: _Peeked) -> Iterator[conllu.Sentence]:
    for number, line in enumerate(file, 1):
        try:
            line.encode("utf-8")
        except UnicodeEncodeError:
            raise FormatError(
                "a line is not UTF-8", path=file.name, line=number, hint="convert the file to UTF-8"
            ) from None
        if words := column_files.FIELD.findall(lines.body(line.removeprefix(lines.BOM))):
            yield conllu.Sentence.of(words)
