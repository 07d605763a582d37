"""Columns, whatever separates them, are read, replaced and written back byte for byte."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.data import columns
from rosenblatt.data.columns import ColumnsError

quick = settings(deadline=None, max_examples=40)

CONLL_2000 = "Confidence NN B-NP\nin IN B-PP\nthe DT B-NP\npound NN I-NP\n\nChancellor NNP O\n\n"
CONLL_2003 = (
    "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\n\n"
    "-DOCSTART- -X- -X- O\n\nUK NNP B-NP B-LOC\n"
)
NAMES = ("form", "pos", "chunk", "ner")

# A blank of another script and what other programs take for a line end are parts of words.
characters = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=" |\ufeff") | st.sampled_from(
    "\x0b\x85\u2028\u00a0"
)
value = st.text(characters, min_size=1, max_size=4).filter(lambda text: not text.isspace() and not text.startswith("-"))


@st.composite
def files(draw, separator):
    """(text, sentences as tuples) of a file in two columns."""
    gap = st.just(separator) if separator else st.sampled_from([" ", "\t", "  ", " \t "])
    margin = st.just("") if separator else st.sampled_from(["", "", " ", "\t"])
    end = st.sampled_from(draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]])))
    sentences = draw(st.lists(st.lists(st.tuples(value, value), min_size=1, max_size=4), min_size=1, max_size=4))
    text = draw(st.sampled_from(["", "\ufeff"]))
    for number, sentence in enumerate(sentences):
        text += "".join(
            draw(st.lists(st.sampled_from(["\n", "\r\n", " \n", "-DOCSTART- x\n", "-DOCSTART- -X- O\n\n"]), max_size=2))
        )
        for left, right in sentence:
            text += draw(margin) + left + draw(gap) + right + draw(margin) + draw(end)
        if number + 1 < len(sentences) or draw(st.booleans()):
            text += draw(end)
    return text, sentences


@pytest.mark.parametrize("separator", [None, "\t", "|"])
@given(st.data())
@quick
def test_reading_and_writing_gives_back_every_byte(separator, data):
    text, sentences = data.draw(files(separator))
    names = ("form", "tag")
    read = list(columns.parse(text, names, separator))
    assert [sentence.tokens() for sentence in read] == sentences
    assert "".join(map(str, read)) == text
    target = io.BytesIO()
    assert columns.write(target, read) == len(sentences)
    assert target.getvalue() == text.encode()
    assert [sentence.with_columns(tag=sentence.column("tag")) for sentence in read] == read
    for sentence in read:
        new = [f"x{number}" for number in range(len(sentence))]
        changed = sentence.with_columns(tag=new, guess=new[::-1])
        assert changed.columns == ("form", "tag", "guess")
        assert changed.tokens("form", "tag", "guess") == list(zip(sentence.forms, new, new[::-1], strict=True))
        [again] = columns.parse(str(changed), changed.columns, separator)
        assert again == changed
        assert changed.before == sentence.before


@given(
    st.binary(max_size=60) | files(None).map(lambda file: file[0].encode()), st.sampled_from([None, " ", "\t"]), st.data()
)
@quick
def test_a_broken_file_raises_nothing_but_its_error(file, separator, data):
    broken = bytearray(file)
    place = data.draw(st.integers(0, len(broken)))
    broken[place : place + 1] = data.draw(
        st.sampled_from([b"", b"\t", b"\n", b"\xff", b" ", b"\r", b"\r\r", b"\n\x0b\n", b"-DOCSTART-"])
    )
    reader = columns.parse(bytes(broken), ("a", "b"), separator, on_error="skip")
    kept = list(reader)
    for sentence in kept:
        assert all(len(row) == 2 and all(row) for row in sentence.tokens())
        assert sentence.with_columns(new=["x"] * len(sentence)).tokens("a", "b") == sentence.tokens()
    assert reader.skipped == len(reader.errors)
    if reader.errors:
        with pytest.raises(ColumnsError, match=f"^<text>, line {reader.errors[0].line}"):
            list(columns.parse(bytes(broken), ("a", "b"), separator))
    else:
        assert (
            "".join(map(str, kept)).encode().rstrip() == bytes(broken).removeprefix("\ufeff".encode() * (not kept)).rstrip()
        )


def test_conll_2000():
    first, second = columns.parse(CONLL_2000)
    assert first.forms == ["Confidence", "in", "the", "pound"]
    assert first.column("chunk") == ["B-NP", "B-PP", "B-NP", "I-NP"]
    assert first.tokens("form", "pos")[1] == ("in", "IN")
    assert (len(first), len(second)) == (4, 1)
    assert [len(sentence) for sentence in columns.parse("a b c\n\u3000\nd e f\n")] == [1, 1]
    assert repr(first) == "<Sentence of 4 words: Confidence in the pound>"
    assert first != second
    assert not first.starts_document
    assert str(second.with_columns(guess=["B-NP"])) == "Chancellor NNP O B-NP\n\n"
    with pytest.raises(ValueError, match="column must be one of form, pos, chunk; got 'ner'"):
        first.column("ner")


def test_conll_2003_and_its_documents():
    read = list(columns.parse(CONLL_2003, NAMES))
    assert [sentence.column("ner") for sentence in read] == [["B-ORG", "O"], ["B-PER"], ["B-LOC"]]
    assert [sentence.starts_document for sentence in read] == [True, False, True]
    assert "".join(map(str, read)) == CONLL_2003
    *_, empty = columns.parse(CONLL_2003 + "\n-DOCSTART- -X- -X- O\n\n", NAMES)
    assert (len(empty), empty.starts_document) == (0, True)  # a document without a sentence is not lost
    assert [len(sentence) for sentence in columns.parse(CONLL_2000 + "\n\n")] == [4, 1]  # but blank lines at the end are


@pytest.mark.parametrize(
    ("text", "separator", "message"),
    [
        ("a b c\nd e\n", None, r"line 2: 2 columns where 3 were named .form, pos, chunk., separated by blanks: 'd e'"),
        ("a b c d\n", None, "line 1: 4 columns where 3 were named"),
        ("a b c\n", "\t", r"line 1: 1 column where 3 were named .* separated by '.t': 'a b c'"),
        ("a\t\tc\n", "\t", r"line 1, column 'pos': the value is empty"),
        ("a b c\n-DOCSTART- x y\n", None, r"line 2, column 'form': -DOCSTART- inside a sentence; a blank line must"),
        ("a b \udce4\n", None, "line 1: the byte 0xE4 at character 5 is not UTF-8"),
    ],
)
def test_every_error_names_its_place(text, separator, message):
    with pytest.raises(ColumnsError, match=f"^<text>, {message}"):
        list(columns.parse(text, separator=separator))
    reader = columns.parse(CONLL_2000 + text, separator=separator, on_error="skip")
    assert len(list(reader)) == 2 * (separator is None)
    assert reader.skipped == 1 + 2 * (separator is not None)


@pytest.mark.parametrize("names", ["form", (), ("form", "form")])
def test_columns_need_names(names):
    with pytest.raises(ValueError, match="columns must be distinct names"):
        columns.parse(CONLL_2000, names)


@pytest.mark.parametrize("separator", ["", "\n", "||"])
def test_what_separates_columns(separator):
    with pytest.raises(ValueError, match="separator must be"):
        columns.parse(CONLL_2000, separator=separator)


def test_values_that_cannot_stand_in_a_column():
    first, _ = columns.parse(CONLL_2000)
    with pytest.raises(ValueError, match="pos needs a value for each of the 4 words; got 2"):
        first.with_columns(pos=["A", "B"])
    with pytest.raises(ValueError, match="pos of word 2 is 'a b'"):
        first.with_columns(pos=["A", "a b", "C", "D"])
    [tabbed] = columns.parse("a b\tc\n", ("form", "tag"), "\t")
    assert str(tabbed.with_columns(form=["x y"])) == "x y\tc\n"
    [alone] = columns.parse("a\n", ["form"])
    assert str(alone.with_columns(tag=["T"])) == "a T\n"


def test_files(tmp_path):
    path = tmp_path / "a.txt.gz"
    assert columns.write(path, columns.parse(CONLL_2000)) == 2
    assert "".join(map(str, columns.read(path))) == CONLL_2000
    target = io.StringIO()
    columns.write(
        target, [*columns.parse("a b c"), *columns.parse("\ufeff-DOCSTART-\nd e f\r\n"), *columns.parse("g h i\n")]
    )
    assert target.getvalue() == "a b c\n\n-DOCSTART-\nd e f\r\n\ng h i\n"
