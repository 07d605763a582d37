"""What was read is written byte for byte, and what is wrong in a file is said with its place."""

import bz2
import copy
import gzip
import io
import lzma
import os
import pickle
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.data import conllu
from rosenblatt.data.conllu import ConlluError, Sentence

quick = settings(deadline=None, max_examples=40)

EXAMPLE = """# newdoc id = d1
# sent_id = 1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tV\tMood=Ind|Number=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\t_\tCase=Acc\t1\tobj\t1:obj|3.1:nsubj\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t5:case\t_
3.1\tfui\tir\tVERB\t_\t_\t_\t_\t1:conj\t_
3.2\t_\t_\t_\t_\t_\t_\t_\t3.1:obj\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t5:det\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t1:obl:a\tSpaceAfter=No
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t1:punct\t_

"""


def word(number, head="_", form="a"):
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t_\t_\t_\n"


def lines(*rows):
    """A sentence of rows that have only an id, or an id and a head."""
    return "".join(word(*row) if isinstance(row, tuple) else word(row) for row in rows) + "\n"


# Whatever may stand in a column, blanks of other scripts and characters that other programs take for line ends included.
characters = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=" \ufeff") | st.sampled_from(
    "\x0b\x0c\x1c\x85\u2028\u00a0"
)
value = st.text(characters, min_size=1, max_size=4) | st.just("_")
spaced = st.builds(lambda left, right: f"{left} {right}", value, value) | value


@st.composite
def sentences(draw):
    """The lines of a valid sentence, without their ends."""
    count = draw(st.integers(1, 6))
    body = [draw(st.sampled_from(["#", "# text = a b", "#x\ty", "# émoji 🙂"])) for _ in range(draw(st.integers(0, 2)))]
    covered = 0

    def row(name, head):
        columns = [spaced, spaced, value, value, value]
        return "\t".join([name, *map(draw, columns), head, draw(value), draw(value), draw(spaced)])

    for number in range(count + 1):
        if number:
            if number > covered and draw(st.booleans()):
                covered = draw(st.integers(number, count))
                body.append(row(f"{number}-{covered}", "_"))
            body.append(row(str(number), draw(st.sampled_from(["_", *map(str, range(count + 1))]))))
        body += [row(f"{number}.{minor}", "_") for minor in range(1, 1 + draw(st.integers(0, 2)))]
    return body


@st.composite
def files(draw):
    """The text of a valid file: mixed line ends, with and without a byte order mark, with and without what ends it."""
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]]))
    text = draw(st.sampled_from(["", "\ufeff"]))
    for body in draw(st.lists(sentences(), min_size=1, max_size=3)):
        text += "".join(line + draw(st.sampled_from(ends)) for line in [*body, ""])
    for ending in ["\r\n", "\n"] * draw(st.integers(0, 2)):
        text = text.removesuffix(ending) if draw(st.booleans()) else text
    return text.removesuffix("\r")


@given(files())
@quick
def test_reading_and_writing_gives_back_every_byte(text):
    read = list(conllu.parse(text))
    assert "".join(map(str, read)) == text
    assert list(conllu.parse(text.encode())) == read
    target = io.BytesIO()
    assert conllu.write(target, read) == len(read)
    assert target.getvalue() == text.encode()
    again = [sentence.with_columns(**{name: sentence.column(name) for name in conllu.COLUMNS[1:]}) for sentence in read]
    assert again == read
    assert "".join(line for sentence in read for line in sentence.lines) == text


@given(files(), st.data())
@quick
def test_a_new_column_changes_nothing_else(text, data):
    name = data.draw(st.sampled_from(["upos", "misc", "form"]))
    for sentence in conllu.parse(text):
        new = data.draw(st.lists(value, min_size=len(sentence), max_size=len(sentence)))
        changed = sentence.with_columns(**{name: new})
        assert changed.column(name) == new
        assert changed.with_columns(**{name: sentence.column(name)}) == sentence
        for other in set(conllu.COLUMNS) - {name}:
            assert changed.column(other) == sentence.column(other)
        assert changed.comments == sentence.comments


@given(files(), files())
@quick
def test_files_in_a_row_are_one_file(first, second):
    """Also where the first has no blank line at its end, and the second a byte order mark."""
    both = [*conllu.parse(first), *conllu.parse(second)]
    target = io.StringIO()
    conllu.write(target, both)
    again = list(conllu.parse(target.getvalue()))
    assert [sentence.words for sentence in again] == [sentence.words for sentence in both]
    assert "\ufeff" not in target.getvalue()[1:]


@given(st.binary(max_size=60) | files().map(str.encode), st.data(), st.booleans())
@quick
def test_a_broken_file_raises_nothing_but_its_error(file, data, strict):
    broken = bytearray(file)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(broken)))
        broken[place : place + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"\t", b"\n", b"\xff", b"9", b"\r", b"#", b" "])
        )
    reader = conllu.parse(bytes(broken), strict=strict, on_error="skip")
    kept = list(reader)
    assert reader.skipped == len(reader.errors)
    for error in reader.errors:
        assert 1 <= error.line <= broken.count(b"\n") + 1
        assert str(error).startswith(f"<text>, line {error.line}")
    if reader.errors:
        with pytest.raises(ConlluError) as raised:
            list(conllu.parse(bytes(broken), strict=strict))
        assert str(raised.value) == str(reader.errors[0])
    elif strict:
        assert "".join(map(str, kept)).encode() == bytes(broken)
    for sentence in kept:
        assert len(sentence.words) == len(sentence)
        assert isinstance(sentence.text, str)


def test_what_a_sentence_says():
    [sentence] = conllu.parse(EXAMPLE)
    assert len(sentence) == 6
    assert sentence.forms == ["Vamos", "nos", "a", "el", "mar", "."]
    assert sentence.column("id") == list("123456")
    assert sentence.column("deps")[1] == "1:obj|3.1:nsubj"
    assert sentence.tokens("form", "upos")[2:4] == [("a", "ADP"), ("el", "DET")]
    assert sentence.tokens()[5] == sentence.words[5] == ("6", ".", ".", "PUNCT", "_", "_", "1", "punct", "1:punct", "_")
    assert sentence.words[4].misc == "SpaceAfter=No"
    assert sentence.tree() == [(0, "root"), (1, "obj"), (5, "case"), (5, "det"), (1, "obl"), (1, "punct")]
    assert sentence.comments[1] == "# sent_id = 1"
    assert sentence.text == "Vámonos al mar."
    assert repr(sentence) == "<Sentence of 6 words: Vámonos al mar.>"
    assert sentence != EXAMPLE
    assert {sentence, *conllu.parse(EXAMPLE)} == {sentence}
    assert pickle.loads(pickle.dumps(sentence)) == copy.deepcopy(sentence) == sentence


def test_text_without_its_comment_is_put_together_from_the_tokens():
    [sentence] = conllu.parse("".join(line for line in io.StringIO(EXAMPLE) if not line.startswith("#")))
    assert sentence.text == "Vámonos al mar."


def test_columns_of_a_tagger_and_parser_are_written_into_the_rest():
    [sentence] = conllu.parse(EXAMPLE.replace("\n", "\r\n"))
    heads = [0, 1, 4, 5, 1, 5]
    changed = sentence.with_columns(upos=list("ABCDEF"), head=heads, deprel=list("uvwxyz"), misc=list("123456"))
    assert changed.tree() == list(zip(heads, "uvwxyz", strict=True))
    assert [len(row.split("\t")) for row in changed.lines] == [len(row.split("\t")) for row in sentence.lines]
    assert all(line.endswith("\r\n") and line.count("\r") == 1 for line in changed.lines)
    assert sentence.column("upos")[0] == "VERB"  # the old one is as it was


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"upos": ["A"]}, "upos needs a value for each of the 6 words; got 1"),
        ({"upos": "ABCDEF"}, "upos needs a value for each"),
        ({"upos": ["A", "", "C", "D", "E", "F"]}, "upos of word 2 is ''"),
        ({"upos": ["A", "B", "C\t", "D", "E", "F"]}, "upos of word 3 is 'C.t'"),
        ({"upos": ["A", "B", "C", "D D", "E", "F"]}, "upos of word 4 is 'D D'"),
        ({"head": [0, 1, 7, 1, 1, 1]}, r"word 3: the head is '7'; it must be 0 .the root., .* 1 to 6"),
        ({"head": [0, 1, -1, 1, 1, 1]}, "word 3: the head is '-1'"),
        ({"id": list("123456")}, "column must be one of the columns after id"),
        ({"pos": list("123456")}, "column must be one of id, form, lemma"),
    ],
)
def test_values_that_cannot_stand_in_a_column(columns, message):
    [sentence] = conllu.parse(EXAMPLE)
    with pytest.raises(ValueError, match=message):
        sentence.with_columns(**columns)


def test_a_sentence_of_words():
    sentence = Sentence.of(["New York", "🙂"], ["sent_id = 7", "# text = New York🙂"], upos=["PROPN", "SYM"])
    assert list(conllu.parse(str(sentence))) == [sentence]
    assert sentence.comments == ["# sent_id = 7", "# text = New York🙂"]
    assert sentence.tokens("form", "upos", "head") == [("New York", "PROPN", "_"), ("🙂", "SYM", "_")]
    with pytest.raises(ValueError, match="word 1 of <Sentence of 2 words: New York🙂> has no head"):
        sentence.tree()
    with pytest.raises(ValueError, match="at least one word"):
        Sentence.of([])
    with pytest.raises(ValueError, match="one line"):
        Sentence.of(["a"], ["b\n1"])


def test_a_sentence_knows_the_line_of_its_words(tmp_path):
    path = tmp_path / "two.conllu"
    path.write_text("# c\n" + lines((1, 0), (2, 1)) + "# d\n1-2\tab" + "\t_" * 8 + "\n" + lines((1, 0), (2, "_")))
    first, second = conllu.read(path)
    assert [first.place_of(2), second.place_of(1)] == [(str(path), 3), (str(path), 7)]
    assert second.with_columns(upos=["X", "Y"]).place_of(2) == (str(path), 8)
    with pytest.raises(ValueError, match=r"word 2 of .* has no head") as caught:
        second.tree()
    assert (caught.value.path, caught.value.line) == (str(path), 8)
    assert Sentence.of(["a"]).place_of(1) == (None, None)


# Every error: the text, the line, the column and what the message says.
ERRORS = {
    "nine columns": ("1\ta\t_\t_\t_\t_\t0\troot\t_\n\n", 1, None, "9 columns where there must be 10, separated by tabs"),
    "blanks": ("# c\n1 a _ _ _ _ 0 root _ _\n\n", 2, None, "1 column where .* this line has blanks instead of tabs"),
    "id": (lines((1, 0), (3, 1)), 2, 1, "'3' is out of order; here must be word 2, a range .* or the empty node 1.1"),
    "leading zero": (lines("01"), 1, 1, "'01' is out of order"),
    "no number": (lines("x"), 1, 1, "'x' is out of order"),
    "other digits": (lines("１"), 1, 1, "'１' is out of order"),
    "no blank line": (lines(1, 2, 1), 3, 1, "Is the blank line missing that ends the sentence before"),
    "comment inside": (lines(1)[:-1] + "# text = b\n" + lines(1), 2, None, "a comment between words.* missing"),
    "head": (lines((1, "x")), 1, 7, "the head is 'x'; it must be 0 .the root., the number of a word, 1 to 1, or _"),
    "head beyond": (lines(1, (2, 0), (3, 4)), 3, 7, "the head is '4'"),
    "head below": (lines((1, -1)), 1, 7, "the head is '-1'"),
    "head 01": (lines((1, "01")), 1, 7, "the head is '01'"),
    "head of an empty node": (lines((1, "1.1"), "1.1"), 1, 7, "the head is '1.1'"),
    "huge range": (lines("1-" + "9" * 5000, 1), 1, 1, "'1-9.* is out of order"),
    "huge head": (lines((1, "9" * 5000)), 1, 7, "the head is '9"),
    "range backwards": (lines("2-1", 1, 2), 1, 1, "the range '2-1' is out of place; here it must begin with word 1"),
    "range late": (lines(1, "1-2", 2), 2, 1, "the range '1-2' is out of place; here it must begin with word 2"),
    "range beyond": (lines("1-3", 1, 2), 1, 1, "the range ends with word 3, but the last word is 2"),
    "range twice": (lines("1-2", "1-2", 1, 2), 2, 1, "the range '1-2' begins before the .* has ended, with word 2"),
    "range overlaps": (lines("1-2", 1, "2-3", 2, 3), 3, 1, "begins before the range before it has ended"),
    "range before an empty node": (lines(1, "2-3", "1.1", 2, 3), 3, 1, "'1.1' is out of order"),
    "empty node": (lines(1, "1.2"), 2, 1, "'1.2' is out of order; .* the empty node 1.1"),
    "empty node early": (lines("1.1", 1), 1, 1, "'1.1' is out of order; .* the empty node 0.1"),
    "empty value": (lines(1).replace("\ta\t", "\t\t"), 1, 2, "the value is empty; write _ for a missing value"),
    "empty misc": (lines(1).replace("_\n", "\n"), 1, 10, "the value is empty"),
    "blank in a tag": ("1\ta\t_\tNO UN\t_\t_\t0\troot\t_\t_\n\n", 1, 4, "'NO UN' contains a space; only form, lemma"),
    "two blank lines": (lines(1) + "\n" + lines(1), 3, None, "a blank line where a sentence must begin"),
    "blank line first": ("\n" + lines(1), 1, None, "a blank line where a sentence must begin"),
    "blank line with blanks": (lines(1).removesuffix("\n") + " \t\n", 2, None, r"line .* holds ' \\t'; it must be"),
    "tabs alone": (lines(1).removesuffix("\n") + "\t" * 9 + "\n", 2, None, "the blank line .* must be empty"),
    "no words": ("# text = a\n\n", 1, None, "comments without words"),
    "surrogate": (lines((1, 0, "a\ud800")), 1, None, r"the lone surrogate U\+D800 at character 4 is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message"), ERRORS.values(), ids=list(ERRORS))
def test_every_error_names_its_place(text, line, column, message):
    good = lines((1, 0), (2, 1))
    with pytest.raises(ConlluError, match=message) as raised:
        list(conllu.parse(text))
    name = None if column is None else conllu.COLUMNS[column - 1]
    assert (raised.value.line, raised.value.column) == (line, name)
    place = "" if column is None else f", column {name!r}"
    with pytest.raises(ConlluError, match=f"^<text>, line {line + 3}{place}: "):
        list(conllu.parse(good + text))
    reader = conllu.parse(good + text + ("" if text.endswith("\n\n") else "\n") + good, on_error="skip")
    kept = list(reader)
    assert kept[0] == kept[-1] == next(conllu.parse(good))
    assert reader.skipped == len(reader.errors) >= 1
    assert reader.errors[0].line == line + 3


def test_bytes_that_are_not_utf8(tmp_path):
    path = tmp_path / "latin.conllu"
    path.write_bytes(lines(1).encode() + "# text = Vámonos\n".encode("latin-1") + lines(1).encode())
    with pytest.raises(
        ConlluError, match=r"latin.conllu, line 3: the byte 0xE1 at character 11 is not UTF-8; convert"
    ) as raised:
        list(conllu.read(path))
    assert raised.value.path == str(path)
    reader = conllu.read(path, on_error="skip")
    assert len(list(reader)) == reader.skipped == 1
    wide = tmp_path / "wide.conllu"
    wide.write_text(lines(1), encoding="utf-16")
    with pytest.raises(ConlluError, match="line 1: this is UTF-16, not UTF-8; convert the file"):
        list(conllu.read(wide))
    with open(path, encoding="utf-8") as file, pytest.raises(ConlluError, match="cannot be read from here on: 'utf-8'"):
        list(conllu.read(file))


def test_not_strict_lets_pass_what_can_be_understood():
    text = (
        "\ufeff\n \n# a\n"
        + lines(1, 2)
        + "\n\n# b\n"
        + word(1)
        + "# c\n"
        + word(2).replace("a", "")
        + " \n# d\n\n"
        + lines((1, 1))
    )
    read = list(conllu.parse(text, strict=False))
    assert [len(sentence) for sentence in read] == [2, 2, 0, 1]
    assert "".join(map(str, read)) == text
    assert read[1].comments == ["# b", "# c"]
    assert read[0].before == "\ufeff\n \n"
    assert [len(sentence) for sentence in conllu.parse(lines(1) + "\n\n", strict=False)] == [1]
    for name in ("nine columns", "id", "head", "range beyond", "empty node", "surrogate"):
        with pytest.raises(ConlluError):
            list(conllu.parse(ERRORS[name][0], strict=False))


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_files_are_compressed_by_their_suffix(tmp_path, suffix):
    path = tmp_path / f"a.conllu{suffix}"
    read = list(conllu.parse(EXAMPLE * 3))
    assert conllu.write(path, read) == 3
    content = path.read_bytes()
    decompress = {"": bytes, ".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}[suffix]
    assert decompress(content).decode() == EXAMPLE * 3
    assert list(conllu.read(path)) == list(conllu.read(str(path))) == read
    with open(path, "rb") as file:
        if not suffix:
            assert list(conllu.read(file)) == read
            assert not file.closed
    conllu.write(path, read)
    assert path.read_bytes() == content
    if suffix:
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(ConlluError, match=r"a.conllu.*, line \d+: the file cannot be read from here on: "):
            list(conllu.read(path, on_error="skip"))
        path.write_bytes(b"# no compressed data, which every format notices by its first bytes")
        with pytest.raises(ConlluError, match="line 1: the file cannot be read from here on: "):
            list(conllu.read(path))


def test_a_path_has_all_or_what_it_had(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("as it was")
    path.chmod(0o640)

    def fails():
        yield from conllu.parse(EXAMPLE)
        raise KeyError("no more")

    with pytest.raises(KeyError):
        conllu.write(path, fails())
    assert path.read_text() == "as it was"
    assert os.listdir(tmp_path) == ["a.conllu"]
    link = tmp_path / "link.conllu"
    link.symlink_to(path)
    conllu.write(link, conllu.parse(EXAMPLE))
    assert path.read_text(encoding="utf-8") == EXAMPLE
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    conllu.write(path, (sentence.with_columns(xpos=sentence.column("upos")) for sentence in conllu.read(path)))
    assert next(conllu.read(path)).column("xpos")[4] == "NOUN"  # a file can be read while its successor is written
    assert sorted(os.listdir(tmp_path)) == ["a.conllu", "link.conllu"]


def test_text_files_and_pipes(tmp_path):
    path = tmp_path / "a.conllu"
    with open(path, "w", encoding="utf-8", newline="") as file:
        conllu.write(file, conllu.parse(EXAMPLE.replace("\n", "\r\n")))
    with open(path, encoding="utf-8", newline="") as file:
        assert "".join(map(str, conllu.read(file))) == EXAMPLE.replace("\n", "\r\n")
    with pytest.raises(FileNotFoundError):
        conllu.read(tmp_path / "missing.conllu")
    for text in (EXAMPLE, EXAMPLE.encode()):
        with pytest.raises(ValueError, match=r"source must be a path .*; to read text, use parse"):
            conllu.read(text)
    with pytest.raises(ValueError, match="on_error must be 'error' or 'skip'; got 'ignore'"):
        conllu.read(path, on_error="ignore")


def test_a_sentence_comes_as_soon_as_its_blank_line():
    """So that two programs can talk through a pipe, and memory is that of one sentence."""
    taken = []

    class File(io.StringIO):
        def __next__(self):
            line = super().__next__()
            taken.append(line)
            return line

    reader = conllu.read(File(EXAMPLE + EXAMPLE))
    assert len(next(reader)) == 6
    assert len(taken) == EXAMPLE.count("\n")
    reader.close()
    assert list(reader) == []


def test_only_so_many_errors_are_kept():
    reader = conllu.parse(lines("x") * 150, on_error="skip")
    assert list(reader) == []
    assert (reader.skipped, len(reader.errors)) == (150, 100)


def test_nothing_is_no_sentence():
    assert list(conllu.parse("")) == list(conllu.parse(b"")) == list(conllu.parse("\ufeff")) == []
    target = io.BytesIO()
    assert conllu.write(target, []) == 0
    assert target.getvalue() == b""


def test_a_long_sentence():
    text = lines(*((number, number - 1, "x" * (10_000 if number == 7 else 1)) for number in range(1, 5001)))
    [sentence] = conllu.parse(text)
    assert str(sentence) == text
    assert sentence.tree()[-1] == (4999, "_")


@pytest.mark.parametrize("strange", [None, b"a", 1.5])
def test_only_text_and_whole_numbers_become_columns(strange):
    with pytest.raises(TypeError, match="must be text or whole numbers"):
        Sentence.of(["a", strange])


@pytest.mark.parametrize("strange", ["text", [None]])
def test_only_sentences_are_written(strange, tmp_path):
    with pytest.raises(TypeError, match="only sentences can be written"):
        conllu.write(tmp_path / "out", strange)
    assert not (tmp_path / "out").exists()
