"""Numbers in files are read as they are written."""

import gzip
import io
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.data import matrix, sentences
from rosenblatt.data.opening import FormatError

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "1, -0.5\n.5, 1/3\n",
        "1;-.5\n0.5;1/3",
        "# rows\na b\n1 -5e-1 # the first\n\n+.50\t1/3\n",
        "\ufeff1,-0.5,\r\n0.5,1/3\r\n",
    ],
    ids=["comma", "semicolon", "names and comments", "mark and CRLF"],
)
def test_numbers_are_the_ones_written(text, tmp_path):
    path = tmp_path / "A"
    path.write_text(text, encoding="utf-8", newline="")
    assert matrix.read(path) == [(1, -HALF), (HALF, Fraction(1, 3))]
    path.write_bytes(gzip.compress(text.encode()))
    assert matrix.read(path) == [(1, -HALF), (HALF, Fraction(1, 3))]


@given(st.lists(st.lists(st.decimals(-(10**30), 10**30, places=6), min_size=2, max_size=2), min_size=1, max_size=4))
def test_decimals_come_back_exactly(rows):
    text = "\n".join(",".join(map(str, row)) for row in rows)
    assert matrix.read(io.BytesIO(text.encode())) == [tuple(map(Fraction, row)) for row in rows]


def test_arrays_of_numpy_are_read_and_run_no_code(tmp_path):
    path = tmp_path / "A.npy"
    np.save(path, np.array([[0.1, 2.0]]))
    assert matrix.read(path) == [(Fraction(0.1), Fraction(2))]
    for wrong in (np.array([1.0]), np.array([[np.nan]]), np.array([[1j]]), np.array([[{}]], dtype=object)):
        np.save(path, wrong)
        with pytest.raises(FormatError):
            matrix.read(path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FormatError):
        matrix.read(path)


@pytest.mark.parametrize("text", ["", "1,2\n3", "1,x", "1,,2", "1/0", "1e9999", "nan", "1 inf", "\x00\xff\x00"])
def test_what_is_no_matrix_is_refused(text):
    with pytest.raises(FormatError):
        matrix.read(io.BytesIO(text.encode("latin-1")))


def test_programs_are_read_exactly():
    said = matrix.read_program(io.BytesIO(b'{"c": [0.1, "1/3"], "bounds": [[0, null], [null, 1e1]]}'))
    assert said == {"c": [Fraction(1, 10), Fraction(1, 3)], "bounds": [[0, None], [None, 10]]}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"c": 1, "d": 2}', '{"c": [true]}', '{"c": [NaN]}', '{"c": ["x"]}', '{"c": ["1/0"]}', "[" * 99999],
)
def test_what_is_no_program_is_refused(text):
    with pytest.raises(FormatError):
        matrix.read_program(io.BytesIO(text.encode()))


# Sentences

TREE = "# text = a b\n1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n2\tb\t_\tY\t_\t_\t_\t_\t_\t_\n\n"


def test_the_first_line_tells_what_a_file_is(tmp_path):
    assert [str(sentence) for sentence in sentences.read(io.BytesIO(TREE.encode()))] == [TREE]
    found = list(sentences.read(io.BytesIO("\n  a  b \n\nc\u00a0d\n".encode())))
    assert [sentence.forms for sentence in found] == [["a", "b"], ["c\u00a0d"]]
    assert [sentence.forms for sentence in sentences.read(io.BytesIO(b""))] == []
    (columns,) = sentences.read(io.BytesIO(b"a X\nb Y\n"), ["form", "tag"])
    assert columns.column("tag") == ["X", "Y"]
    path = tmp_path / "raw.gz"
    path.write_bytes(gzip.compress(b"a b\n"))
    assert next(sentences.read(path)).forms == ["a", "b"]


@pytest.mark.parametrize("content", [b"1\ta\t_\n\n", b"a \xff\n", gzip.compress(b"a b\n" * 100, mtime=0)[:-9]])
def test_a_broken_file_of_words_is_refused(content):
    with pytest.raises(FormatError):
        list(sentences.read(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b'{\n"c": [1, "\xff"]}', "line 2: the byte 0xFF is not UTF-8; convert the file to UTF-8"),
        ("a.json", b"[" * 100_000, "lists and objects are nested too deeply"),
        ("a.json", b'{"c": ["' + b"9" * 5000 + b'"]}', "a number has 5,000 characters; 4,000 are the most"),
        ("a.json", b'{"c": [' + b"9" * 5000 + b"]}", "a number has 5,000 characters; 4,000 are the most"),
        ("a.json", b'{"c": [1, "2', "line 1, column 11: the file is not JSON: Unterminated string"),
        ("a.json", b'{"c": ["1/0"]}', "1/0 divides by zero"),
        ("a.csv", b"1\n1/0\n", "line 2: 1/0 divides by zero"),
        ("a.csv", b"1\n" + b"9" * 5000, "line 2: a number has 5,000 characters; 4,000 are the most"),
        ("a.npy", b"\x93NUMPY\x01\0\x10\0nothing of numpy", "this is not an array of numbers that numpy saved"),
        ("a.npy", b"\x93NUMPY\x01\0\x08\0{'descr'", "this is not an array of numbers that numpy saved"),
        ("a.npy", b"\x93NUMPY\x01\0v\0%-118b" % f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**60},)}}".encode(),
         "this is not an array of numbers that numpy saved"),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_is_wrong_is_said_without_words_of_python(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        (matrix.read_program if name == "a.json" else matrix.read)(path)
    place, line = message.split(": ", 1) if message.startswith("line") else ("", message)
    assert str(caught.value).startswith(f"{path}, {place}: {line}" if place else f"{path}: {line}")
