"""Read and write column files: a word a line, with a value for each column that was named; a blank line ends a sentence.

The lines are kept as they are, so that what was read is written back byte for byte, whatever is between the columns:
new values take the place of the old ones, and a new column goes to the end after the separator that the line has before its
last one. Two things are not sentences. A line that begins with -DOCSTART- (CoNLL-2003) begins a document, and further blank
lines separate nothing; both belong to the sentence that follows, as `before`. Blank lines after the last sentence are not
kept.

    from rosenblatt.data import columns

    for sentence in columns.read("train.txt.gz"):  # CoNLL-2000: form, pos, chunk
        sentence.forms, sentence.column("chunk")
    columns.read("eng.train", columns=("form", "pos", "chunk", "ner"))  # CoNLL-2003
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from rosenblatt.data import lines
from rosenblatt.data.lines import BOM, Block, Source, body, write
from rosenblatt.errors import FormatError, InvalidParameter

__all__ = ["ColumnsError", "Sentence", "parse", "read", "write"]

DOCUMENT = "-DOCSTART-"
FIELD = re.compile(r"[^ \t]+")  # a no-break space may be part of a word, where str.split() would split it


class ColumnsError(FormatError):
    """A file that does not have the columns that were named; `path`, `line` and `column` say where.

    Examples
    --------
    >>> try:
    ...     list(parse("Dogs NNS B-NP\\nbark VBP\\n"))
    ... except ColumnsError as error:
    ...     print(f"line {error.line}: {error.problem}")
    line 2: 2 columns where 3 were named (form, pos, chunk), separated by blanks: 'bark VBP'
    """


class Sentence(lines.BaseSentence):
    """A sentence as it stands in the file, with a name for each column.

    Sentences are made by `read` and `parse`, and never change.

    >>> [sentence] = parse("Dogs NNS B-NP\\nbark VBP B-VP\\n\\n")
    >>> sentence.forms, sentence.column("chunk")
    (['Dogs', 'bark'], ['B-NP', 'B-VP'])
    >>> sentence.tokens("form", "pos")
    [('Dogs', 'NNS'), ('bark', 'VBP')]
    >>> print(sentence.with_columns(guess=["B-NP", "O"]), end="")  # the file that conlleval reads
    Dogs NNS B-NP B-NP
    bark VBP B-VP O
    <BLANKLINE>
    """

    __slots__ = ("columns", "separator")

    def __init__(self, text: str, columns: tuple[str, ...], separator: str | None = None, before: str = ""):
        super().__init__(text, before)
        self.columns = columns
        self.separator = separator

    @property
    def starts_document(self) -> bool:
        """Whether a line -DOCSTART- goes before it."""
        return any(line.startswith(DOCUMENT) for line in self.before.removeprefix(BOM).split("\n"))

    def with_columns(self, **columns: Sequence[Any]) -> Sentence:
        """Return the same sentence with new values.

        Parameters
        ----------
        **columns : sequence of str or int
            The values of each column, one for each word; names that the file does not have are new columns, at the end.

        Returns
        -------
        Sentence
            The new sentence.
        """
        count = len(self)
        forbidden = (self.separator or " \t") + "\n\r"
        texts = {name: self._values(name, values, count, forbidden) for name, values in columns.items()}
        names = (*self.columns, *(name for name in columns if name not in self.columns))
        rows = zip(*(texts.get(name, [None] * count) for name in names), strict=True)
        text = [line if line.isspace() else _fill(line, next(rows), self.separator) for line in io.StringIO(self._text)]
        return Sentence("".join(text), names, self.separator, self.before)

    def _rows(self, last: int = -2) -> list[list[str]]:
        return [_fields(line, self.separator) for line in self._text.split("\n") if line and not line.isspace()]


def read(
    source: Source, columns: Sequence[str] = ("form", "pos", "chunk"), separator: str | None = None, on_error: str = "error"
) -> lines.Reader[Sentence]:
    """Read the sentences of a column file, one at a time.

    Parameters
    ----------
    source : str, path, FilePiece or file
        A path (compression is detected), a piece of a file, or a file opened to read, binary or text; `parse` takes the
        text itself.
    columns : sequence of str
        The names of all columns of the file, in order.
    separator : str, optional
        The character between columns; None is any run of blanks and tabs.
    on_error : {"error", "skip"}
        "skip" leaves out sentences with an error; the reader counts them in `skipped`, and `errors` says what was wrong
        with the first hundred.

    Returns
    -------
    Reader of Sentence
        An iterator over the sentences.

    Raises
    ------
    ColumnsError
        If a line does not have these columns; it names the file, the line, what was found and what is expected.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO("-DOCSTART- -X- O\\n\\nDogs NNS B-NP\\nbark VBP B-VP\\n\\nStop VB B-VP\\n")
    >>> [sentence.forms for sentence in read(file)]
    [['Dogs', 'bark'], ['Stop']]
    """
    if isinstance(columns, str) or len(set(columns)) != len(columns) or not columns:
        raise InvalidParameter("columns", columns, "distinct names, one for each column, as in ('form', 'pos', 'chunk')")
    if separator is not None and (len(separator) != 1 or separator in "\r\n"):
        raise InvalidParameter("separator", separator, "one character, such as '\\t', or None for runs of blanks and tabs")
    names = tuple(columns)
    waiting: list[str] = []  # documents that begin, and blank lines, before the next sentence

    def make(block: Block) -> Sentence | None:
        start = 0 if not block.empty else 1
        while start < len(block.lines) and block.lines[start].startswith(DOCUMENT):
            start += 1
        waiting.extend([block.mark, *block.lines[:start]])
        if start == len(block.lines) or block.lines[start].isspace():
            waiting.extend(block.lines[start:])
            return None
        for line, text in enumerate(block.lines[start:], block.first + start):
            if not text.isspace():
                _check_line(text, names, separator, block.file, line)
        sentence = Sentence("".join(block.lines[start:]), names, separator, "".join(waiting))
        waiting.clear()
        return sentence

    def rest() -> Sentence | None:
        text = "".join(waiting)
        return Sentence("", names, separator, text) if DOCUMENT in text else None

    return lines.Reader(source, make, ColumnsError, on_error, rest)


def parse(
    text: str | bytes,
    columns: Sequence[str] = ("form", "pos", "chunk"),
    separator: str | None = None,
    on_error: str = "error",
) -> lines.Reader[Sentence]:
    """Read the sentences of text in columns, one at a time.

    Parameters
    ----------
    text : str or bytes
        The text.
    columns, separator, on_error
        As in `read`.

    Returns
    -------
    Reader of Sentence
        An iterator over the sentences.

    Examples
    --------
    >>> [sentence] = parse("Ada NNP B-PER\\nspoke VBD O\\n", columns=("form", "pos", "ner"))
    >>> sentence.column("ner")
    ['B-PER', 'O']
    """
    return read(io.StringIO(text) if isinstance(text, str) else io.BytesIO(text), columns, separator, on_error)


def _check_line(text: str, names: tuple[str, ...], separator: str | None, file: str, line: int) -> None:
    """Raise ColumnsError where a line does not have one value for each name."""
    fields = _fields(text, separator)
    if len(fields) != len(names):
        between = "blanks" if separator is None else repr(separator)
        found = f"{len(fields)} column{'' if len(fields) == 1 else 's'} where {len(names)} were named ({', '.join(names)})"
        raise ColumnsError(f"{found}, separated by {between}: {body(text)[:60]!r}", path=file, line=line)
    if fields[0].startswith(DOCUMENT):
        problem = f"{DOCUMENT} inside a sentence; a blank line must go before it"
        raise ColumnsError(problem, path=file, line=line, column=names[0])
    if "" in fields:
        raise ColumnsError("the value is empty", path=file, line=line, column=names[fields.index("")])


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is not None:
        return body(line).split(separator)
    fields = body(line).strip(" \t").replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


def _fill(line: str, values: tuple[str | None, ...], separator: str | None) -> str:
    """Return the line with these values in place of its own, where they are not None; further ones go after the last."""
    if separator is None:
        spans = [found.span() for found in FIELD.finditer(body(line))]
    else:
        starts = list(accumulate((len(field) + 1 for field in body(line).split(separator)), initial=0))
        spans = [(start, after - 1) for start, after in pairwise(starts)]
    gap = line[spans[-2][1] : spans[-1][0]] if len(spans) > 1 else separator or " "
    pieces = []
    at = 0
    for (begin, end), value in zip(spans, values, strict=False):
        pieces += [line[at:begin], line[begin:end] if value is None else value]
        at = end
    pieces += [f"{gap}{value}" for value in values[len(spans) :]]
    return "".join([*pieces, line[at:]])
