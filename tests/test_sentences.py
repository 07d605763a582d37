"""A file of words is read as what it is, and what cannot be told from its first lines is refused."""

import pytest

from rosenblatt.data import sentences
from rosenblatt.errors import FormatError

TREEBANK = "# text = dogs bark\n1\tdogs\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tbark\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n"


def read(tmp_path, data, columns=None, name="file"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(sentences.read(path, columns))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (TREEBANK, None),
        (TREEBANK[19:], None),
        ("dogs bark\n\n cats  sleep\n", None),
        ("dogs X\nbark Y\n\n", ["form", "tag"]),
    ],
)
def test_a_byte_order_mark_and_the_ends_of_lines_change_nothing(tmp_path, text, columns, mark, end):
    found = read(tmp_path, mark + text.replace("\n", end), columns)
    assert found[0].forms == ["dogs", "bark"]
    assert [len(sentence) for sentence in found] == [2] * len(found)
    if columns is None and "\t" in text:
        assert "".join(map(str, found)) == mark + text.replace("\n", end)


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        ("# text = dogs bark\n# source = x\n", 1, "comments without words"),
        ("\ufeff# text = dogs bark\n\n", 1, "comments without words"),
        ("# a\n1 dogs _ NOUN _ _ 2 nsubj _ _\n", 2, "this line has blanks instead of tabs"),
        ("Dogs NNS B-NP\nbark VBP B-VP\n\n", 1, "this looks like 3 columns, a word a line with its tag"),
        ("\n\ufeffthe DET\ndog NOUN\n", 2, "this looks like 2 columns"),
        ("Dogs\tNNS\tB-NP\nbark\tVBP\tB-VP\n\n", 1, "this looks like 3 columns"),
        ("dogs bark\n".encode("utf-16"), 1, "this is UTF-16, not UTF-8"),
        (TREEBANK.encode("utf-16-be"), 1, "a NUL byte at character 1"),
        ("dogs\ndogs b\0rk\n", 2, "a NUL byte at character 7"),
        (TREEBANK.replace("bark\t", "b\0rk\t"), 3, "a NUL byte"),
        (b"dogs\n\xe9t\xe9\n", 2, "the byte 0xE9 at character 1 is not UTF-8"),
    ],
)
def test_what_is_not_what_it_looks_like_is_refused_with_its_line(tmp_path, data, line, problem):
    with pytest.raises(FormatError, match=problem) as caught:
        read(tmp_path, data)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "file"), line)


def test_columns_without_names_are_refused_with_names_to_give(tmp_path):
    with pytest.raises(FormatError) as caught:
        read(tmp_path, "Dogs NNS B-NP\nbark VBP B-VP\n")
    assert caught.value.settings == {"columns": ["form", "column2", "tag"]}


@pytest.mark.parametrize(
    "text", ["the dog\nthe cat\n", "visit NASA\nsee ESA\n", "IN THE\nDT NN\n", "to be or\nnot TO\n", "a O\n"]
)
def test_plain_text_is_not_taken_for_columns(tmp_path, text):
    assert [sentence.forms for sentence in read(tmp_path, text)] == [line.split() for line in text.splitlines()]


def test_conllu_is_not_read_as_columns_of_other_names(tmp_path):
    with pytest.raises(FormatError, match="line 2: this looks like CoNLL-U, whose columns have names"):
        read(tmp_path, TREEBANK, ["form", "tag"])


def test_a_word_that_cannot_be_one_is_refused_with_its_line(tmp_path):
    with pytest.raises(FormatError, match=r"form of word 2 is 'b\\rark'") as caught:
        read(tmp_path, "a dog\ndogs b\rark\n")
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "file"), 2)


def test_a_sentence_knows_its_file_and_line(tmp_path):
    for text, columns, where in [
        (TREEBANK * 2, None, [1, 5]),
        ("dogs\n\ncats\n", None, [1, 3]),
        ("dogs X\n\ncats Y\nx Y\n", ["form", "tag"], [1, 3]),
    ]:
        found = read(tmp_path, text, columns)
        assert [(sentence.path, sentence.line) for sentence in found] == [(str(tmp_path / "file"), line) for line in where]
