"""Read sentences of any file of words: CoNLL-U, columns, or plain lines of words with blanks between them, which become
sentences of CoNLL-U. The first line that is neither blank nor a comment tells what a file is: with a tab it is CoNLL-U.

    from rosenblatt.data import sentences

    for sentence in sentences.read("raw.txt"):
        sentence.forms
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

from rosenblatt.data import columns as column_files
from rosenblatt.data import conllu, lines
from rosenblatt.data.cutting import block_ends, line_ends
from rosenblatt.data.opening import FilePiece, Input, Source, name_of, text_lines, too_long
from rosenblatt.errors import FormatError, InvalidData

_SAMPLE = 100  # lines that are looked at to tell columns from plain text
_NUMBER = re.compile(r"[0-9]+([.-][0-9]+)?")  # of a word of CoNLL-U, a range or an empty node
# What stands in the last column of a file in columns: tags of chunks, of Universal Dependencies and of the Penn Treebank.
_TAG = re.compile(
    r"[BIESLU]-\S+|O|ADJ|ADP|ADV|AUX|CCONJ|CONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X|"
    r"CC|CD|DT|EX|FW|IN|JJ[RS]?|LS|MD|NNP?S?|PDT|POS|PRP\$?|RB[RS]?|RP|TO|UH|VB[DGNPZ]?|WDT|WP\$?|WRB|[.,:$#]|``|''|-[LR]RB-"
)


def read(
    source: Source, columns: Sequence[str] | None = None, on_wait: Callable[[], object] | None = None
) -> Iterator[Any]:
    """Read the sentences of a file, one at a time.

    Parameters
    ----------
    source : str, path, FilePiece or binary file
        The file, or a piece of it; "-" is standard input.
    columns : sequence of str, optional
        The names of the columns of a column file; without them the file is CoNLL-U or plain lines of words.
    on_wait : callable, optional
        Called where a pipe has paused, before more of it is awaited.

    Yields
    ------
    Sentence
        The sentences, those of plain lines as sentences of CoNLL-U.

    Raises
    ------
    FormatError
        If the file is not what it looks like, or looks like columns without names.
    """
    name = name_of(source)
    begun = source.path if isinstance(source, FilePiece) else source  # the beginning of the file tells what a piece is
    with (
        Input(begun, on_wait=on_wait) as stream,
        io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="\n") as text,
    ):
        rest = text_lines(text, name, stream.max_line)
        begin = _beginning(stream, rest, name, 0 if columns is not None else _SAMPLE)
        if columns is not None:
            _refuse_conllu(begin, columns, name)
        read_one = _reader(begin, columns, name)
        if not isinstance(source, FilePiece):
            file: Any = _Peeked(name, begin, rest)
            yield from read_one(file)
            return
    yield from read_one(source)


def sentence_ends(path: str, size: int, columns: Sequence[str] | None = None) -> list[int]:
    """Return places where sentences end, at which a file can be cut.

    Parameters
    ----------
    path : str
        The file, which is not compressed.
    size : int
        How many bytes they are apart, about.
    columns : sequence of str, optional
        The names of the columns of a column file, as for `read`.

    Returns
    -------
    list of int
        The places, ascending; the last is the end of the file.
    """
    with Input(path) as stream, io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="\n") as text:
        rest = text_lines(text, path, stream.max_line)
        begin = _beginning(stream, rest, path, 0 if columns is not None else _SAMPLE)
    plain = columns is None and not _is_conllu(begin, path)
    return line_ends(path, size) if plain else block_ends(path, size, column_files.DOCUMENT)


def _beginning(stream: Input, rest: Iterator[str], name: str, sample: int) -> list[str]:
    """Return the lines up to the first that is neither blank nor a comment, and so many more."""
    begin: list[str] = []
    size = 0
    for line in rest:
        begin.append(line)
        size += len(line)
        if size > stream.max_line:
            raise too_long("what stands before the first word", size, stream.max_line, name, 1)
        if not _is_preamble(line):
            break
    for _ in range(sample):
        if not stream.has_more():  # a pipe that pauses gets its answer before more is awaited
            break
        begin += islice(rest, 1)
    return begin


def _reader(begin: Sequence[str], columns: Sequence[str] | None, name: str) -> Callable[[lines.Source], Iterator[Any]]:
    """Return what reads a file that begins with these lines."""
    if columns is not None:
        return partial(column_files.read, columns=columns)
    return conllu.read if _is_conllu(begin, name) else _words


def _refuse_conllu(begin: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Raise FormatError if a file whose columns were named otherwise is CoNLL-U."""
    fields = lines.body(begin[-1].removeprefix(lines.BOM)).split("\t") if begin else []
    if len(fields) == len(conllu.COLUMNS) != len(columns) and _NUMBER.fullmatch(fields[0]):
        raise FormatError(
            f"this looks like CoNLL-U, whose columns have names, and the names {', '.join(columns)} were given",
            path=name,
            line=len(begin),
            hint="give no names of columns",
        )


def _is_preamble(line: str) -> bool:
    """Return whether a line is blank or a comment of CoNLL-U."""
    line = line.removeprefix(lines.BOM)
    return not line.strip() or line.startswith("#")


def _is_conllu(begin: Sequence[str], name: str) -> bool:
    """Return whether the first lines of a file are CoNLL-U; FormatError if they look like columns that have no names."""
    content = [line for line in begin if not _is_preamble(line)]
    if not content:
        return any(line.strip() for line in begin)  # comments only, which are no words
    first = lines.body(content[0].removeprefix(lines.BOM))
    fields = column_files.FIELD.findall(first)
    number = begin.index(content[0]) + 1
    wide = "\t" in first and 1 < len(first.split("\t")) < len(conllu.COLUMNS)
    if (wide and not _NUMBER.fullmatch(fields[0])) or _has_tags(begin):
        names = ["form", *(f"column{place}" for place in range(2, len(fields))), "tag"]
        raise FormatError(
            f"this looks like {len(fields)} columns, a word a line with its tag, and the columns have no names",
            path=name,
            line=number,
            settings={"columns": names},
        )
    blanks = len(fields) == len(conllu.COLUMNS) and _NUMBER.fullmatch(fields[0]) is not None
    return "\t" in first or blanks


def _has_tags(begin: Sequence[str]) -> bool:
    """Return whether lines that follow each other have equally many words, of which the last is a tag and the first not."""
    rows = [column_files.FIELD.findall(lines.body(line.removeprefix(lines.BOM))) for line in begin]
    words = [row for row in rows if row]
    if not any(one and other for one, other in pairwise(rows)):
        return False
    same = len({len(row) for row in words}) == 1 and 1 < len(words[0]) < len(conllu.COLUMNS)
    return same and all(_TAG.fullmatch(row[-1]) for row in words) and any(not _TAG.fullmatch(row[0]) for row in words)


class _Peeked:
    """A text whose first lines were looked at."""

    encoding = "utf-8"

    def __init__(self, name: str, begin: Iterable[str], rest: Iterable[str]):
        self.name, self._lines = name, chain(begin, rest)

    def __iter__(self) -> Iterator[str]:
        return self._lines


def _words(source: lines.Source) -> Iterator[conllu.Sentence]:
    name = name_of(source)
    with lines.open_lines(source) as stream:
        for number, line in enumerate(stream, lines.first_number(source)):
            lines.check_text([line], name, number, FormatError)
            if words := column_files.FIELD.findall(lines.body(line.removeprefix(lines.BOM))):
                try:
                    sentence = conllu.Sentence.of(words)
                except InvalidData as error:
                    raise FormatError(error.problem, path=name, line=number) from None
                sentence.path, sentence.line = name, number
                yield sentence
