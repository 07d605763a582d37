"""Read and write CoNLL-U. A sentence is the text of the file; its columns are split from it when they are read, and a new
value changes its own column and nothing else. So whatever was read is written back byte for byte.

The file is checked as it is read: ten columns, words numbered 1, 2, …, ranges and empty nodes where they belong, heads
that are words of the sentence. Whether the heads form a tree is for the parser to say, and which tags, features and
relations a language has is for its treebank.

    from rosenblatt.data import conllu

    for sentence in conllu.read("train.conllu.gz"):
        sentence.forms, sentence.column("upos"), sentence.tree()
    conllu.write("tagged.conllu", (s.with_columns(upos=tag(s.forms)) for s in conllu.read("raw.conllu")))

The format: https://universaldependencies.org/format.html
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rosenblatt.data import lines
from rosenblatt.data.lines import Block, Source, body, write
from rosenblatt.errors import FormatError, InvalidData, InvalidParameter

__all__ = ["COLUMNS", "ConlluError", "Sentence", "Word", "parse", "read", "write"]

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
SPACED = {"form", "lemma", "misc"}  # the columns that may hold a blank
RANGE = re.compile(r"([1-9][0-9]{0,17})-([1-9][0-9]{0,17})")
MISSING = "Is the blank line missing that ends the sentence before?"


class ConlluError(FormatError):
    """A file that is not CoNLL-U; `path`, `line` and `column`, a name of COLUMNS, say where.

    Examples
    --------
    >>> try:
    ...     list(parse("1\\tDogs\\t_\\tNOUN\\n"))
    ... except ConlluError as error:
    ...     print(f"line {error.line}: {error.problem}")
    line 1: 4 columns where there must be 10, separated by tabs; the line begins '1'
    """


class Word(NamedTuple):
    """The ten columns of a word, as text.

    Attributes
    ----------
    id, form, lemma, upos, xpos, feats, head, deprel, deps, misc : str
        The columns, with ``_`` for a missing value.

    Examples
    --------
    >>> sentence = Sentence.of(["Dogs", "bark"], upos=["NOUN", "VERB"], head=[2, 0], deprel=["nsubj", "root"])
    >>> dogs = sentence.words[0]
    >>> dogs.form, dogs.upos, dogs.head, dogs.deprel, dogs.lemma
    ('Dogs', 'NOUN', '2', 'nsubj', '_')
    """

    id: str
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: str
    deprel: str
    deps: str
    misc: str


class Sentence(lines.BaseSentence):
    """A sentence as it stands in the file: comments, words, multiword tokens, empty nodes and the blank line.

    The words are the basic ones, 1 to n; `lines` has everything. Sentences are made by `read`, `parse` and `Sentence.of`,
    which check them, and never change.

    >>> sentence = Sentence.of(["Dogs", "bark"], upos=["NOUN", "VERB"], head=[2, 0], deprel=["nsubj", "root"])
    >>> sentence.forms, sentence.column("upos"), sentence.tree()
    (['Dogs', 'bark'], ['NOUN', 'VERB'], [(2, 'nsubj'), (0, 'root')])
    >>> sentence.tokens("form", "upos")
    [('Dogs', 'NOUN'), ('bark', 'VERB')]
    >>> print(str(sentence.with_columns(misc=["_", "SpaceAfter=No"])).expandtabs(7))
    1      Dogs   _      NOUN   _      _      2      nsubj  _      _
    2      bark   _      VERB   _      _      0      root   _      SpaceAfter=No
    <BLANKLINE>
    <BLANKLINE>
    """

    __slots__ = ()
    columns = COLUMNS

    @classmethod
    def of(cls, forms: Sequence[str], comments: Iterable[str] = (), **columns: Sequence[Any]) -> Sentence:
        """Return a sentence of these words.

        Parameters
        ----------
        forms : sequence of str
            The words.
        comments : iterable of str
            Comments, with or without #.
        **columns : sequence of str or int
            Values of other columns, one for each word; the columns that are not given have `_`.

        Returns
        -------
        Sentence
            The sentence.
        """
        if not len(forms):
            raise InvalidData("a sentence of CoNLL-U has at least one word; got none")
        notes = [f"# {comment.removeprefix('#').strip()}\n" for comment in comments]
        if any("\n" in note[:-1] for note in notes):
            raise InvalidData("a comment is one line", hint="give several lines as several comments")
        rows = [str(number) + "\t_" * 9 + "\n" for number in range(1, len(forms) + 1)]
        return cls("".join([*notes, *rows, "\n"])).with_columns(form=forms, **columns)

    @property
    def comments(self) -> list[str]:
        """The comment lines, from # to the end of the line."""
        return [line for line in self._bodies() if line.startswith("#")]

    @property
    def words(self) -> list[Word]:
        return [Word._make(row) for row in self._rows()]

    @property
    def text(self) -> str:
        """The sentence as it was written: its comment `# text = …`, or else its tokens with the blanks between them."""
        for comment in self.comments:
            key, equals, value = comment[1:].partition("=")
            if equals and key.strip() == "text":
                return value.strip()
        return "".join(self._surface()).rstrip()

    def tree(self) -> list[tuple[int, str]]:
        """Return the head and the relation of each word; heads count words from 1, and 0 is the root.

        Returns
        -------
        list of (int, str)

        Raises
        ------
        InvalidData
            If a word has no head.
        """
        try:
            return [(int(row[6]), row[7]) for row in self._rows(7)]
        except ValueError:
            number = self.column("head").index("_") + 1
            path, line = self.place_of(number)
            problem = f"word {number} of {self!r} has no head (column 7 is _), so there is no tree"
            raise InvalidData(problem, path=path, line=line) from None

    def place_of(self, word: int) -> tuple[str | None, int | None]:
        """Return the file and the line that a word was read from.

        Parameters
        ----------
        word : int
            The number of the word, from 1.

        Returns
        -------
        path : str or None
            The file; None for a sentence that was not read from one.
        line : int or None
            The line, from 1.
        """
        if self.line is None:
            return self.path, None
        begins = [line.partition("\t")[0] for line in self._text.split("\n")]
        return self.path, self.line + (begins.index(str(word)) if str(word) in begins else 0)

    def with_columns(self, **columns: Sequence[Any]) -> Sentence:
        """Return the same sentence with new values in these columns; all else is as it was, to the byte.

        New heads leave the enhanced dependencies (deps) as they were; deps=["_"] * len(sentence) removes them.

        Parameters
        ----------
        **columns : sequence of str or int
            The values of each column, one for each word.

        Returns
        -------
        Sentence
            The new sentence.
        """
        count = len(self)
        new = {self._place(name): self._new(name, values, count) for name, values in columns.items()}
        number = 0
        text = []
        for line in self._text.split("\n"):
            if line[:1].isdigit():
                row = line.split("\t")
                if row[0].isdigit():
                    ending = "\r" if row[9].endswith("\r") else ""
                    for place, values in new.items():
                        row[place] = values[number] + ending if place == 9 else values[number]
                    line = "\t".join(row)
                    number += 1
            text.append(line)
        changed = Sentence("\n".join(text), self.before)
        changed.path, changed.line = self.path, self.line
        return changed

    def _new(self, name: str, values: Sequence[Any], count: int) -> list[str]:
        if name == "id":
            raise InvalidParameter("column", name, "one of the columns after id, which numbers the words")
        texts = self._values(name, values, count, "\t\n\r" if name in SPACED else " \t\n\r")
        if name == "head":
            heads = _heads(count)
            for number, head in enumerate(texts, 1):
                if head not in heads:
                    raise InvalidData(f"word {number}: {_head_problem(head, count)}", row=number - 1)
        return texts

    def _bodies(self) -> list[str]:
        """Return the lines without their ends."""
        bodies = self._text.split("\n")
        return [line.removesuffix("\r") for line in bodies] if "\r" in self._text else bodies

    def _rows(self, last: int = -2) -> list[list[str]]:
        rows = [line.split("\t", last + 1) for line in self._bodies() if line[:1].isdigit()]
        return [row for row in rows if row[0].isdigit()]

    def _surface(self) -> Iterator[str]:
        """Return the tokens, a multiword token instead of its words, each with the blank that follows it."""
        covered = 0
        for line in self._bodies():
            if line[:1].isdigit():
                row = line.split("\t")
                whole = RANGE.fullmatch(row[0])
                if whole or (row[0].isdigit() and int(row[0]) > covered):
                    covered = int(whole[2]) if whole else covered
                    yield row[1] if "SpaceAfter=No" in row[9].split("|") else row[1] + " "


def read(source: Source, strict: bool = True, on_error: str = "error") -> lines.Reader[Sentence]:
    """Read the sentences of a CoNLL-U file, one at a time.

    Parameters
    ----------
    source : str, path, FilePiece or file
        A path (compression is detected), a piece of a file, or a file opened to read, binary or text; text opened without
        newline="" has lost its CRLF before it comes here. `parse` takes the text itself.
    strict : bool
        False lets pass what can be understood though it is not CoNLL-U: several blank lines in a row, or blanks in them;
        comments among the words or without words; values that are empty or hold a blank where none may be.
    on_error : {"error", "skip"}
        "skip" leaves out sentences with an error; the reader counts them in `skipped`, and `errors` says what was wrong
        with the first hundred.

    Returns
    -------
    Reader of Sentence
        An iterator over the sentences.

    Raises
    ------
    ConlluError
        If a sentence is wrong; it names the file, the line, the column, what was found and what is expected.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO("1 Dogs _ NOUN _ _ 2 nsubj _ _\\n2 bark _ VERB _ _ 0 root _ _\\n\\n".replace(" ", "\\t"))
    >>> for sentence in read(file):
    ...     print(sentence.forms, sentence.tree())
    ['Dogs', 'bark'] [(2, 'nsubj'), (0, 'root')]
    """
    waiting: list[str] = []  # blank lines before the next sentence, if they are let pass

    def make(block: Block) -> Sentence | None:
        if not strict and block.empty:
            waiting.extend([block.mark, *block.lines])
            return None
        _check_sentence(block, strict)
        sentence = Sentence("".join(block.lines), "".join([*waiting, block.mark]))
        waiting.clear()
        return sentence

    return lines.Reader(source, make, ConlluError, on_error)


def parse(text: str | bytes, strict: bool = True, on_error: str = "error") -> lines.Reader[Sentence]:
    """Read the sentences of CoNLL-U text, one at a time.

    Parameters
    ----------
    text : str or bytes
        The text.
    strict, on_error
        As in `read`.

    Returns
    -------
    Reader of Sentence
        An iterator over the sentences.

    Examples
    --------
    >>> [sentence] = parse("# text = Stop\\n1\\tStop\\tstop\\tVERB\\t_\\t_\\t0\\troot\\t_\\t_\\n\\n")
    >>> sentence.column("lemma"), sentence.column("head")
    (['stop'], ['0'])
    """
    return read(io.StringIO(text) if isinstance(text, str) else io.BytesIO(text), strict, on_error)


# A line that is not a comment: its number in the file and its columns.
Row = tuple[int, list[str]]


def _check_sentence(block: Block, strict: bool) -> None:
    """Raises ConlluError where the block is no sentence."""
    words = _check_ids(_split(block, strict), block.file)
    heads = _heads(len(words))
    for line, fields in words:
        if fields[6] not in heads:
            raise _wrong(block.file, line, 6, _head_problem(fields[6], len(words)))


def _split(block: Block, strict: bool) -> list[Row]:
    """Return the rows of ten columns among the lines of the block."""
    file = block.file
    *content, last = block.lines
    if not last.isspace():
        content.append(last)
    elif strict and (block.empty or last not in ("\n", "\r\n")):
        raise ConlluError(_blank_problem(last), path=file, line=block.first + len(content))
    rows: list[Row] = []
    for line, text in enumerate(content, block.first):
        if text[0] == "#":
            if strict and rows:
                raise ConlluError(f"a comment between words; comments come before words. {MISSING}", path=file, line=line)
            continue
        fields = text.rstrip("\r\n").split("\t")
        if len(fields) != 10:
            raise ConlluError(_columns_problem(fields), path=file, line=line)
        if strict and ("" in fields or " " in text):
            _check_values(file, line, fields)
        rows.append((line, fields))
    if strict and not rows:
        raise ConlluError("comments without words; a sentence has at least one word", path=file, line=block.first)
    return rows


def _check_ids(rows: list[Row], file: str) -> list[Row]:
    """Return the rows of the words, numbered 1, 2, …; ranges stand before their first word and empty nodes after a word."""
    words: list[Row] = []
    minor = 0  # of the last empty node since the last word
    covered, cover = 0, 0  # the last word of the last range, and the line of that range
    for line, fields in rows:
        name = fields[0]
        count = len(words)
        if name == str(count + 1):
            words.append((line, fields))
            minor = 0
        elif found := RANGE.fullmatch(name):
            begin, end = int(found[1]), int(found[2])
            if not covered <= count < begin <= end or begin != count + 1:
                raise _wrong(file, line, 0, _range_problem(name, count, covered))
            covered, cover = end, line
        elif name == f"{count}.{minor + 1}" and not cover == line - 1 > 0:
            minor += 1
        else:
            raise _wrong(file, line, 0, _id_problem(name, count, minor))
    if covered > len(words):
        raise _wrong(file, cover, 0, f"the range ends with word {covered}, but the last word is {len(words)}")
    return words


def _check_values(file: str, line: int, fields: list[str]) -> None:
    for place, value in enumerate(fields):
        if not value:
            raise _wrong(file, line, place, "the value is empty; write _ for a missing value")
        if " " in value and COLUMNS[place] not in SPACED:
            raise _wrong(file, line, place, f"{value!r} contains a space; only form, lemma and misc may contain one")


def _wrong(file: str, line: int, place: int, message: str) -> ConlluError:
    return ConlluError(message, path=file, line=line, column=COLUMNS[place])


def _heads(count: int) -> set[str]:
    return {"_", *map(str, range(count + 1))}


def _head_problem(head: str, count: int) -> str:
    return f"the head is {head!r}; it must be 0 (the root), the number of a word, 1 to {count}, or _ where there is no tree"


def _columns_problem(fields: list[str]) -> str:
    found = f"{len(fields)} column{'' if len(fields) == 1 else 's'} where there must be 10, separated by tabs"
    if len(fields) == 1 and len(fields[0].split()) >= 10:
        return f"{found}; this line has blanks instead of tabs"
    return f"{found}; the line begins {fields[0][:40]!r}"


def _blank_problem(last: str) -> str:
    if body(last):
        return f"the blank line that ends a sentence holds {body(last)!r}; it must be empty"
    return "a blank line where a sentence must begin; one blank line ends a sentence, and no second one follows"


def _range_problem(name: str, count: int, covered: int) -> str:
    if covered > count:
        return f"the range {name!r} begins before the range before it has ended, with word {covered}"
    return f"the range {name!r} is out of place; here it must begin with word {count + 1}, and end with it or a later one"


def _id_problem(name: str, count: int, minor: int) -> str:
    hint = f". {MISSING}" if name == "1" else ""
    return (
        f"{name!r} is out of order; here must be word {count + 1}, a range that begins with it, or the empty node "
        f"{count}.{minor + 1}{hint}"
    )
