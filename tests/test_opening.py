"""Files are opened by what they hold, whole or in blocks, and say where they are damaged."""

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import os
import shutil
import sys
import threading
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rosenblatt.data import columns, compression, conllu, matrix, opening, sentences
from rosenblatt.data.formats import reading_for
from rosenblatt.data.opening import FormatError, Input, output, paths, pieces
from rosenblatt.data.tables import Table


def zstd(data):
    return pytest.importorskip("pyarrow").Codec("zstd").compress(data, asbytes=True)


COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}
TEXT = b"".join(b"%d %d\n" % (i, i * i) for i in range(40_000))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_content_decides(tmp_path, suffix):
    pack = COMPRESS[suffix]
    path = tmp_path / "data"  # no suffix
    path.write_bytes(pack(TEXT[:1000]) + pack(TEXT[1000:]))  # two members
    with Input(path, digest=True) as stream:
        assert stream.readable()
        assert stream.total_bytes == path.stat().st_size
        assert stream.read(7) == TEXT[:7]
        assert 0 < len(stream.read1(50)) <= 50
        stream.read()
        assert stream.read(1) == b""
        assert stream.bytes_read == stream.total_bytes
        assert stream.digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert stream.closed
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)
    with Input(str(path)) as stream, io.TextIOWrapper(stream, encoding="ascii") as text:
        assert "".join(text) == TEXT.decode()
    assert Input(io.BytesIO(path.read_bytes())).read() == TEXT


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_is_written_is_read(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    with output(path) as file:
        file.write(TEXT)
    assert Input(path).read() == TEXT
    before = path.read_bytes()
    assert (before == TEXT) == (suffix == "")
    with contextlib.suppress(KeyError), output(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [suffix for suffix in COMPRESS if suffix])
def test_damage_is_said_after_what_was_there(tmp_path, suffix):
    path = tmp_path / "cut"
    whole = COMPRESS[suffix](TEXT)
    for damaged in (whole[: len(whole) // 2], whole + whole[: len(whole) // 3]):
        path.write_bytes(damaged)
        got = io.BytesIO()
        with Input(path) as stream, pytest.raises(FormatError, match="cut: the file cannot be read from here on") as raised:
            shutil.copyfileobj(stream, got)
        got = got.getvalue()
        assert (TEXT + TEXT).startswith(got)
        assert raised.value.path == str(path)
        assert raised.value.line is None
        assert raised.value.problem.startswith("the file cannot be read")
        if damaged.startswith(whole):
            assert len(got) >= len(TEXT) - compression.REQUEST
            with Input(path) as stream:
                filled = stream.readinto(bytearray(3 * len(TEXT)))
            assert filled >= len(TEXT) - compression.REQUEST, "a large request loses no more than a small one"
    named = tmp_path / f"plain{suffix}"
    named.write_bytes(b"plain text")
    with pytest.raises(FormatError, match=rf"its name ends with {suffix}, and what it holds is not compressed"):
        Input(named).read()
    named.write_bytes(b"")
    assert Input(named).read() == b""


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("behind", [b"x", b"\n1 1:1\n" * 20, bytes(4), bytes(300_000)])
def test_what_stands_behind_is_damage_but_for_padding(suffix, behind):
    whole = COMPRESS[suffix](TEXT)
    if behind.strip(b"\0") or suffix == ".bz2":
        with pytest.raises(FormatError, match="cannot be read from here on"):
            Input(io.BytesIO(whole + behind)).read()
    else:
        assert Input(io.BytesIO(whole + behind + (whole + behind if suffix == ".xz" else b""))).read() in (
            TEXT,
            TEXT + TEXT,
        )


def test_zstd_says_what_it_needs(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_bytes(zstd(b"1"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'rosenblatt\[tables\]'"):
        Input(path)


def test_a_pipe_and_standard_input(tmp_path, monkeypatch):
    reading, writing = os.pipe()

    def feed():
        with open(writing, "wb") as file:
            file.write(gzip.compress(TEXT))

    threading.Thread(target=feed).start()
    with open(reading, "rb") as pipe:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))
        with Input("-") as stream:
            assert stream.total_bytes is None
            assert stream.name == "<stdin>"
            assert b"".join(buffer[begin:end].tobytes() for buffer, begin, end in pieces(stream, 1000)) == TEXT
        assert not pipe.closed


def test_pyarrow_reads_an_input(tmp_path):
    csv = pytest.importorskip("pyarrow.csv")
    path = tmp_path / "table"
    path.write_bytes(gzip.compress(b"a,b\n" + TEXT.replace(b" ", b",")))
    with Input(path) as stream:
        assert csv.read_csv(stream)["b"].to_pylist() == [i * i for i in range(40_000)]


def test_paths_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", ".hidden", "c[1].csv", "c1.csv"):
        (tmp_path / name).write_text("x")
    (tmp_path / "inner").mkdir()
    assert paths("b.txt") == ["b.txt"]
    assert paths(["b.txt", "-", tmp_path / "a.txt"]) == ["b.txt", "-", str(tmp_path / "a.txt")]
    assert paths(["."]) == ["./a.txt", "./b.txt", "./c1.csv", "./c[1].csv"]
    assert paths(["*.txt"]) == ["a.txt", "b.txt"]
    assert paths(["c[1].csv"]) == ["c[1].csv"]  # it is there by this very name
    assert paths(["c[0-9].csv"]) == ["c1.csv"]
    for wrong, words in (("no.txt", "no file 'no.txt'"), ("*.no", "pattern '\\*.no'"), ("inner", "no files in the folder")):
        with pytest.raises(FileNotFoundError, match=words):
            paths([wrong])
    with pytest.raises(FileNotFoundError, match="no file was given"):
        paths([])
    (tmp_path / "c2.csv").mkdir()
    (tmp_path / "inner" / "d.txt").write_text("x")
    with pytest.raises(IsADirectoryError, match=r"the folder 'c2\.csv' matches the pattern 'c\*\.csv'"):
        paths(["c*.csv"])
    assert paths(["inner/**"]) == ["inner/d.txt"]
    assert paths(["**/*.txt"]) == ["a.txt", "b.txt", "inner/d.txt"]
    with pytest.raises(ValueError, match="once"):
        paths(["-", "a.txt", "-"])
    os.mkfifo("pipe")
    (tmp_path / "link").symlink_to("a.txt")
    for several, again in ((["a.txt", tmp_path / "link"], True), (["a.txt", "-"], False), (["pipe"], False)):
        assert opening.rereadable(several) == again
        assert opening.size_of(several) == (2 if again else None)
    (tmp_path / "-").write_text("x")
    assert not opening.rereadable(["-"])  # which is standard input all the same
    with pytest.raises(IsADirectoryError, match="'inner' is a folder"):
        Input("inner")
    with pytest.raises(FileNotFoundError):
        Input("no.txt")


@given(st.binary(max_size=60), st.lists(st.text(alphabet="ab\r\n", max_size=12)), st.integers(1, 40), st.booleans())
def test_pieces_are_the_file_cut_at_line_ends(start, parts, size, mark):
    data = start + "".join(parts).encode()
    assume(not any(kind.matches(data) for kind in compression.SUFFIXES.values()) and not data.startswith(b"\xef\xbb\xbf"))
    spare = []
    stream = Input(io.BytesIO((b"\xef\xbb\xbf" if mark else b"") + data))
    found = [buffer[begin:end].tobytes() for buffer, begin, end in pieces(stream, size)]
    assert b"".join(found) == data
    longest = max(map(len, data.split(b"\n"))) + 1
    for place, text in enumerate(found):
        assert text.endswith(b"\n") or place == len(found) - 1
        assert len(text) <= max(size, 2 * longest) + 3
    again = []
    for piece in opening.pieces(Input(io.BytesIO(data)), size, spare):
        again.append(piece.buffer[piece.begin : piece.end].tobytes())
        assert bytes(piece.buffer[piece.end - 1 : piece.end + 1]).count(b"\n") >= 1
        assert len(piece.buffer) >= piece.end + 9
        spare.append(piece.buffer)
    assert b"".join(again) == data
    assert len(spare) <= 1


def test_a_line_that_never_ends_is_refused():
    with pytest.raises(FormatError, match=r"a line is longer than the limit of 4K: [\d,]+ bytes so far"):
        list(pieces(Input(io.BytesIO(bytes(1 << 14)), max_line=1 << 12), 100))


def test_a_file_that_cannot_be_opened_keeps_its_number(tmp_path):
    path = tmp_path / "loop"
    path.symlink_to(path)
    with pytest.raises(OSError, match="loop") as raised:
        Input(path)
    assert raised.value.errno


LONG = b"x" * 3000
TOO_LONG = {  # the content of a file, with something longer than 2,000 bytes, and the line where that begins
    "a.csv": (b"label,t\na,1\nb," + LONG + b"\n", 3),
    "a.tsv": (b"label\tt\na\t1\nb\t" + LONG, 3),
    "quote.csv": (b'label,t\na,1\nb,"' + b"word\n" * 600, 3),
    "a.jsonl": (b'{"label":"a","t":1}\n{"label":"b","t":"' + LONG + b'"}\n', 2),
    "a.svm": (b"1 1:1\n-1 1:2\n-1 " + b" ".join(b"%d:1" % n for n in range(1, 600)) + b"\n", 3),
    "a.vw": (b"1 | a b\n-1 | " + b"ab " * 1000 + b"\n", 2),
    "a.conllu": (b"1\ta\t_\tN\t_\t_\t0\troot\t_\t_\n\n1\t" + LONG + b"\t_\tN\t_\t_\t0\troot\t_\t_\n\n", 3),
    "b.conllu": (b"1\ta\t_\tN\t_\t_\t0\troot\t_\t_\n\n" + b"1\ta\t_\tN\t_\t_\t0\troot\t_\t_\n" * 200, 3),
    "a.columns": (b"a N O\n\n" + LONG + b" N O\n\n", 3),
    "a.words": (b"a b\n" + LONG + b"\n", 2),
    "a.matrix": (b"1 2\n" + b"1 " * 1500 + b"\n", 2),
}
READ = {
    "svm": lambda path: list(reading_for([path]).batches([path])),
    "vw": lambda path: list(reading_for([path]).batches([path])),
    "conllu": lambda path: list(conllu.read(path)),
    "columns": lambda path: list(columns.read(path)),
    "words": lambda path: list(sentences.read(path)),
    "matrix": matrix.read,
}


def read_table(path):
    table = Table()
    list(table.batches([path]))


@pytest.mark.parametrize("compression", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("name", TOO_LONG)
def test_a_line_a_field_or_a_sentence_that_is_too_long_is_refused(name, compression, tmp_path):
    content, line = TOO_LONG[name]
    path = str(tmp_path / (name + compression))
    with opening.output(path) as file:
        file.write(content)
    read = READ.get(name.split(".")[1], read_table)
    with (
        opening.line_limit(2000),
        pytest.raises(FormatError, match="is longer than the limit of 2K") as caught,
    ):
        read(path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert caught.value.settings["max_line"]


def test_lines_as_long_as_the_limit_are_read_however_they_are_cut(tmp_path):
    path = tmp_path / "a.txt"
    for length in (99, 100, 101):
        path.write_bytes(b"ab\n" * 7 + b"x" * length + b"\nab\n")
        for size in (1, 50, 64, 1000):
            with opening.Input(path, max_line=100) as stream:
                if length > 100:
                    with pytest.raises(FormatError):
                        list(opening.pieces(stream, size))
                else:
                    read = b"".join(buffer[begin:end].tobytes() for buffer, begin, end in opening.pieces(stream, size))
                    assert read == path.read_bytes()


def test_a_table_of_too_many_columns_is_refused_before_it_is_cut(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"," * opening.MAX_COLUMNS + b"\n")
    (tmp_path / "a.jsonl").write_bytes(b"{" + b'"a":1,' * opening.MAX_COLUMNS + b'"b":1}\n')
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(FormatError, match=r"a table may have 1,048,576 columns"):
            read_table(str(tmp_path / name))


def test_reading_takes_memory_for_the_bytes_that_are_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab" * (1 << 20))
    for size in (1 << 28, 3 << 19, 5):
        tracemalloc.start()
        with opening.Input(path) as stream:
            assert stream.read(size) == path.read_bytes()[:size]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 24
