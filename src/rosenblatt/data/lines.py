"""Files of sentences are blocks of lines, each ended by a blank line; a line ends with LF and nothing else ends it.

Everything that CoNLL-U and column files share is here: compression is detected (`opening`), blocks are read one at a time
with the number of their first line, errors name file, line and column, and a file is written beside its old version and
takes its place only when it is complete.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from numbers import Integral
from typing import IO, Any, Generic, NamedTuple, TypeVar

from rosenblatt.data.compression import DAMAGE
from rosenblatt.data.opening import (
    MAX_LINE,
    MOST_ERRORS,
    FilePiece,
    Input,
    check_on_error,
    first_line,
    name_of,
    output,
    text_lines,
    too_long,
)
from rosenblatt.errors import FormatError, InvalidData, InvalidDataType, InvalidParameter

BOM = "\ufeff"
_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")  # the byte order marks of UTF-16, read as UTF-8

Source = str | os.PathLike[str] | FilePiece | IO[str] | IO[bytes]
Kind = TypeVar("Kind", bound="BaseSentence")


class Block(NamedTuple):
    """The lines of one sentence as they stand in the file, each with its end, the blank line included."""

    file: str
    first: int  # the number of the first line
    lines: list[str]
    mark: str  # the byte order mark, if it stands before the first line

    @property
    def empty(self) -> bool:
        """Whether there is nothing but a blank line."""
        return len(self.lines) == 1 and self.lines[0].isspace()


class BaseSentence(ABC):
    """A sentence as it stands in the file. Its columns are split from the text when they are read, which costs less than
    keeping them. Sentences never change."""

    __slots__ = ("_text", "before", "line", "path")
    columns: tuple[str, ...]

    def __init__(self, text: str, before: str = ""):
        self._text = text
        self.before = before  # what stands before it and belongs to no sentence, such as a byte order mark
        self.path: str | None = None  # the file it was read from,
        self.line: int | None = None  # and the number of its first line there, comments included

    def __str__(self) -> str:
        """Return the text in the file, with what stands before the sentence and the blank line after it."""
        return self.before + self._text

    def __repr__(self) -> str:
        text = self.text
        return f"<Sentence of {len(self)} words: {text if len(text) <= 60 else text[:59] + '…'}>"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (str(self), self.columns) == (str(other), other.columns)

    def __hash__(self) -> int:
        return hash(str(self))

    def __len__(self) -> int:
        return len(self._rows())

    @property
    def lines(self) -> list[str]:
        """All lines with their ends. str.splitlines would also end one at a form feed, at U+0085 and at U+2028."""
        return list(io.StringIO(str(self)))

    @property
    def forms(self) -> list[str]:
        return self.column("form")

    @property
    def text(self) -> str:
        """The words with blanks between them."""
        return " ".join(row[0] for row in self._rows())

    def column(self, name: str) -> list[str]:
        """Return one column of the words, as text.

        Parameters
        ----------
        name : str
            The name of the column.

        Returns
        -------
        list of str
        """
        place = self._place(name)
        return [row[place] for row in self._rows(place)]

    def tokens(self, *names: str) -> list[tuple[str, ...]]:
        """Return the values of these columns for each word, as tuples; tokens("form", "upos") is what a parser reads.

        Parameters
        ----------
        *names : str
            The names of the columns; all columns by default.

        Returns
        -------
        list of tuple of str
        """
        places = [self._place(name) for name in names or self.columns]
        return [tuple([row[place] for place in places]) for row in self._rows(max(places))]

    @abstractmethod
    def _rows(self, last: int = -2) -> list[list[str]]:
        """Return the columns of each word, up to the `last` at least."""

    def _place(self, name: str) -> int:
        if name not in self.columns:
            raise InvalidParameter("column", name, f"one of {', '.join(self.columns)}")
        return self.columns.index(name)

    def _values(self, name: str, values: Sequence[Any], count: int, forbidden: str) -> list[str]:
        """New values of a column, one for each of `count` words, as text without any of the forbidden characters."""
        strange = next((value for value in values if not isinstance(value, str | Integral)), "")
        if strange != "":
            raise InvalidDataType(f"the values of {name} must be text or whole numbers; got {strange!r}")
        texts = [str(value) for value in values]
        if isinstance(values, str) or len(texts) != count:
            raise InvalidData(f"{name} needs a value for each of the {count} words; got {len(texts)}")
        for text in set(texts):
            if not text or not set(text).isdisjoint(forbidden):
                word, none_of = texts.index(text) + 1, ", ".join(map(repr, forbidden))
                raise InvalidData(f"{name} of word {word} is {text!r}; it must be text without {none_of}", row=word - 1)
        return texts


class Reader(Generic[Kind]):
    """An iterator over the sentences of a source, which holds one at a time and closes at the end the file it opened.

    `make` turns a block into a sentence, or raises `error`; None passes over the block, and `rest` is called at the end for
    what is left. A file that cannot be decompressed is an error also with on_error="skip".

    Attributes
    ----------
    skipped : int
        The number of sentences left out for an error, with on_error="skip".
    errors : list of FormatError
        What was wrong with the first hundred of them.
    file : str
        The name of the file.
    """

    def __init__(
        self,
        source: Source,
        make: Callable[[Block], Kind | None],
        error: type[FormatError],
        on_error: str = "error",
        rest: Callable[[], Kind | None] = lambda: None,
    ):
        check_on_error(on_error)
        if isinstance(source, bytes) or (isinstance(source, str) and "\n" in source):
            raise InvalidParameter("source", source[:40], "a path or an open file", hint="to read text, use parse")
        self.skipped = 0
        self.errors: list[FormatError] = []
        self.file = name_of(source)
        piece = source if isinstance(source, FilePiece) else FilePiece(self.file, 0, 0, line=1)
        self._sentences = self._read(open_lines(source), piece, make, rest, error, on_error == "skip")
        next(self._sentences)  # so that a file that is not there is an error of this call, not of the first sentence

    def __iter__(self) -> Iterator[Kind]:
        return self

    def __next__(self) -> Kind:
        return next(self._sentences)

    def close(self) -> None:
        """Close the file before its end; there are no more sentences."""
        self._sentences.close()

    def _read(self, lines, piece, make, rest, error, skip):
        with lines as stream:
            yield
            for block in _blocks(stream, piece, error):
                try:
                    check_text(block.lines, block.file, block.first, error)
                    sentence = make(block)
                except error as reason:
                    if not skip:
                        raise
                    self.skipped += 1
                    if len(self.errors) < MOST_ERRORS:
                        self.errors.append(reason)
                    continue
                if sentence is not None:
                    sentence.path, sentence.line = block.file, block.first
                    yield sentence
            if (sentence := rest()) is not None:
                yield sentence


def write(target: Source, sentences: Iterable[BaseSentence]) -> int:
    """Write sentences.

    Sentences as they were read give the bytes they were read from. A path has either all of them or, after an error, what
    it had before. Where the last sentence of a file without a final blank line goes before another, it gets the blank line;
    a byte order mark stays at the beginning of a file only.

    Parameters
    ----------
    target : str, path or file
        Where to write: a path, compressed by its suffix, or a file opened to write, binary or text.
    sentences : iterable of sentences
        The sentences.

    Returns
    -------
    int
        The number of sentences.

    Examples
    --------
    >>> import io
    >>> from rosenblatt.data import columns
    >>> file = io.StringIO()
    >>> write(file, columns.parse("Dogs NNS B-NP\\nbark VBP B-VP\\n\\nStop VB B-VP\\n\\n"))
    2
    >>> file.getvalue()
    'Dogs NNS B-NP\\nbark VBP B-VP\\n\\nStop VB B-VP\\n\\n'
    """
    with _open_to_write(target) as put:
        writer = SentenceWriter(put)
        for sentence in sentences:
            writer.write(sentence)
    return writer.count


class SentenceWriter:
    """Writes sentences one at a time, as `write` does; `count` is their number.

    Parameters
    ----------
    put : callable
        Takes the text of each sentence.
    """

    def __init__(self, put: Callable[[str], object]):
        self.put, self.count = put, 0
        self._previous = ""

    def write(self, sentence: BaseSentence) -> None:
        """Write one sentence.

        Parameters
        ----------
        sentence : sentence
            The sentence.
        """
        if not isinstance(sentence, BaseSentence):
            raise InvalidDataType(f"only sentences can be written; got {sentence!r}")
        text = str(sentence)
        self.put(_missing_end(self._previous) + text.removeprefix(BOM) if self.count else text)
        self._previous = text
        self.count += 1


def _missing_end(text: str) -> str:
    """Return what a text lacks of ending with a blank line."""
    *_, line, rest = ("\n" + text).rsplit("\n", 2)
    return ending_of(text) * ((rest != "") + (line.strip() != "" or rest != "")) if text else ""


def ending_of(text: str) -> str:
    """Return how the lines of a text end: as the first does, and with LF if there is none."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def body(line: str) -> str:
    """Return the line without its end."""
    return line.removesuffix("\n").removesuffix("\r")


@contextmanager
def _open_to_write(target: Source) -> Iterator[Callable[[str], Any]]:
    if not isinstance(target, str | os.PathLike):
        file: Any = target
        yield file.write if _is_text(file) else lambda text: file.write(text.encode("utf-8"))
        return
    with output(target) as stream:
        yield lambda text: stream.write(text.encode("utf-8"))


def first_number(source: Source) -> int:
    """Return the number in the file of the first line of a source, which may be a piece."""
    return first_line(source) if isinstance(source, FilePiece) else 1


@contextmanager
def open_lines(source: Source) -> Iterator[Iterable[str]]:
    """Yield the lines of a source with their ends. A byte that is not UTF-8 is a lone surrogate, so that it has a line."""
    if not isinstance(source, str | os.PathLike | FilePiece):
        file: Any = source  # of text or of bytes, as only the file itself can say
        if _is_text(file):
            yield file
            return
        wrapped = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="\n")
        try:
            yield text_lines(wrapped, name_of(source), MAX_LINE.get())
        finally:
            wrapped.detach()  # whoever opened the file closes it
        return
    with io.TextIOWrapper(Input(source), encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        yield text_lines(lines, name_of(source), MAX_LINE.get(), first_number(source))


def _is_text(file: Any) -> bool:
    return hasattr(file, "encoding")


def _blocks(lines: Iterable[str], piece: FilePiece, error: type[FormatError]) -> Iterator[Block]:
    """Yield the blocks of lines that are those of this piece of a file."""
    held: list[str] = []
    file, first, mark, size, most = piece.path, first_line(piece), "", 0, MAX_LINE.get()
    try:
        stream = iter(lines)
        start = next(stream, "")
        if start.startswith(BOM) and piece.begin == 0:
            start, mark = start[1:], BOM
        for line in chain([start] if start else [], stream):
            held.append(line)
            size += len(line)
            if line.isspace():
                yield Block(file, first, held, mark)
                first, mark, size = first + len(held), "", 0
                held = []
            elif size > most:
                raise too_long(f"the sentence of {len(held):,} lines that begins here", size, most, file, first)
    except FormatError as reason:
        line_number = reason.line or first + len(held)
        raise error(reason.problem, path=file, line=line_number, hint=reason.hint, settings=reason.settings) from reason
    except (*DAMAGE, UnicodeDecodeError) as reason:
        if getattr(reason, "errno", None) is not None:
            raise
        problem = f"the file cannot be read from here on: {reason}"
        raise error(problem, path=file, line=first + len(held)) from reason
    if held:
        yield Block(file, first, held, mark)


def check_text(block: Sequence[str], file: str, first: int, error: type[FormatError]) -> None:
    """Raise an error, with the line, where lines are not UTF-8 or hold a NUL, which no text has."""
    text = "".join(block)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        pass
    else:
        if "\0" not in text:
            return
    for number, line in enumerate(block, first):
        if number == 1 and line.startswith(_UTF_16):
            raise error("this is UTF-16, not UTF-8", path=file, line=1, hint="convert the file: iconv -f UTF-16 -t UTF-8")
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as reason:
            code = ord(line[reason.start])
            what = f"the byte 0x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"the lone surrogate U+{code:04X}"
            problem = f"{what} at character {reason.start + 1} is not UTF-8"
            raise error(problem, path=file, line=number, hint="convert the file to UTF-8") from None
        if "\0" in line:
            problem = f"a NUL byte at character {line.index(chr(0)) + 1}: this is not UTF-8 text"
            raise error(problem, path=file, line=number, hint="convert the file to UTF-8")
