"""Files behind URLs are read as local ones are, whole and in pieces, and only the bytes that are needed."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from rosenblatt.data import conllu, opening, sentences
from rosenblatt.data.formats import detect_format, reading_for
from rosenblatt.data.opening import Input
from rosenblatt.data.pieces import cut_files, cut_sentences
from rosenblatt.data.svmlight import Svmlight
from rosenblatt.errors import InvalidData, InvalidParameter, MissingDependency, UnsupportedOperation
from rosenblatt.workflow import train

fsspec = pytest.importorskip("fsspec")

ROWS = [(f"{'ab'[i % 2]}", i, f"some words of row {i}") for i in range(40)]
WORD = "1\tDogs\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def table(rows=ROWS):
    return pa.table({"y": [y for y, _, _ in rows], "n": [n for _, n, _ in rows], "t": [t for _, _, t in rows]})


def in_parquet():
    sink = io.BytesIO()
    pa.parquet.write_table(table(), sink, row_group_size=7)
    return sink.getvalue()


def in_arrow():
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table().schema) as file:
        file.write_table(table(), max_chunksize=7)
    return sink.getvalue()


CONTENTS = {
    "a.svm": "".join(f"{1 - 2 * (n % 2)} {n + 1}:1 50:{n}\n" for _, n, _ in ROWS).encode(),
    "a.vw": "".join(f"{1 - 2 * (n % 2)} | a:{n} b\n" for _, n, _ in ROWS).encode(),
    "a.csv": ("y,n,t\n" + "".join(f'{y},{n},"{t}\n, more"\n' for y, n, t in ROWS)).encode(),
    "a.tsv": ("y\tn\tt\n" + "".join(f"{y}\t{n}\t{t}\n" for y, n, t in ROWS)).encode(),
    "a.jsonl": "".join(f'{{"y": "{y}", "n": {n}, "t": "{t}"}}\n' for y, n, t in ROWS).encode(),
    "a.parquet": in_parquet(),
    "a.arrow": in_arrow(),
    "a.svm.gz": gzip.compress(b"1 1:1\n-1 2:1\n" * 9),
}


class CountingFile(io.RawIOBase):
    """A file that says how many bytes of it were read."""

    read_in_all = 0

    def __init__(self, content):
        self._file = io.BytesIO(content)

    def readable(self):
        return True

    def seek(self, place, whence=0):
        return self._file.seek(place, whence)

    def readinto(self, buffer):
        got = self._file.readinto(buffer)
        CountingFile.read_in_all += got
        return got


class OneFile(fsspec.AbstractFileSystem):
    """A server with one file, whose size it may not tell."""

    protocol = "counted"
    content, size = b"", None

    def info(self, path, **_):
        return {"name": path, "size": self.size, "type": "file"}

    def _open(self, path, mode="rb", **_):
        return CountingFile(self.content)


@pytest.fixture
def one_file(monkeypatch):
    line = b"1 " + b" ".join(b"%d:1" % i for i in range(1, 100)) + b"\n"
    fsspec.register_implementation("counted", OneFile, clobber=True)
    monkeypatch.setattr(OneFile, "content", line * (4_000_000 // len(line)))
    monkeypatch.setattr(CountingFile, "read_in_all", 0)
    return line


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    for name, content in CONTENTS.items():
        system.pipe(f"/folder/{name}", content)
    yield "memory://folder"
    system.rm("/folder", recursive=True)


@pytest.fixture(params=["memory", "file"])
def folder(request, tmp_path):
    """A folder of files behind a URL, and the same as local files."""
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    if request.param == "file":
        return f"file://{tmp_path}", tmp_path
    return request.getfixturevalue("memory"), tmp_path


def rows_of(reading, sources):
    chunks = [reading.chunk(batch) for part in sources for batch in reading.batches(part)]
    return [
        (row.indices.tolist(), row.data.tolist(), y) for chunk in chunks for row, y in zip(chunk.X, chunk.y, strict=True)
    ]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_url_is_read_as_a_file_is(name, folder):
    base, local = folder
    url, path = f"{base}/{name}", str(local / name)
    assert opening.paths([url]) == [url]
    assert opening.rereadable([url])
    assert opening.size_of([url]) == len(CONTENTS[name])
    assert detect_format(url) == detect_format(path)
    with Input(url) as stream:
        assert stream.total_bytes == len(CONTENTS[name])
    options = {"target": "y", "text": "t", "min_count": 1} if "svm" not in name and "vw" not in name else {}
    reading = reading_for([url], **options)
    reading = reading.fit(reading.batches([url]))
    expected = rows_of(reading, [[path]])
    assert len(expected) in (18, 40)
    assert rows_of(reading, [[url]]) == expected
    pieces = cut_files(url, reading, 60)
    assert len(pieces) > 5 or name.endswith(".gz")
    assert rows_of(reading, [[piece] for piece in pieces]) == expected
    assert rows_of(reading, [pieces[: len(pieces) // 2], pieces[len(pieces) // 2 :]][pieces[1:] == [] :]) == expected


def test_folders_and_patterns_of_urls(folder):
    base, local = folder
    (local / ".hidden").write_text("x")
    found = opening.paths([base])
    assert [url.rpartition("/")[2] for url in found] == sorted(CONTENTS)
    assert all(url.startswith(base.partition("://")[0] + "://") for url in found)
    assert [url.rpartition("/")[2] for url in opening.paths(f"{base}/a.[ct]sv")] == ["a.csv", "a.tsv"]
    assert rows_of(Svmlight(), [opening.paths(f"{base}/*.svm")]) == rows_of(Svmlight(), [[str(local / "a.svm")]])
    with pytest.raises(FileNotFoundError, match="no file matches the pattern"):
        opening.paths(f"{base}/*.none")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        opening.paths(f"{base}/none")
    assert not opening.rereadable([f"{base}/none"])
    assert not opening.rereadable([base])


def test_a_folder_that_matches_a_pattern_of_urls_is_named(memory):
    fsspec.filesystem("memory").pipe("/folder/b.svm/part", b"1 1:1\n")
    with pytest.raises(IsADirectoryError, match=r"the folder 'memory:///?folder/b\.svm' matches the pattern"):
        opening.paths(f"{memory}/*.svm")


def test_a_file_behind_a_url_that_has_changed_is_not_read(memory):
    url = f"{memory}/a.svm"
    pieces = cut_files(url, Svmlight(), 60)
    assert sum(batch.rows for batch in Svmlight().batches(pieces)) == 40
    fsspec.filesystem("memory").pipe("/folder/a.svm", CONTENTS["a.svm"].replace(b"50", b"40"))
    with pytest.raises(InvalidData, match="the file has changed since it was cut") as raised:
        list(Svmlight().batches(pieces[2:]))
    assert raised.value.path == url


def test_sentences_behind_a_url(memory):
    system = fsspec.filesystem("memory")
    system.pipe("/folder/a.conllu", (WORD * 30).encode())
    url = f"{memory}/a.conllu"
    pieces = cut_sentences(url, 100)
    assert len(pieces) > 4
    for read in (sentences.read, conllu.read):
        found = [(str(one), one.path, one.line) for piece in pieces for one in read(piece)]
        assert found == [(WORD, url, 1 + 2 * number) for number in range(30)]


def test_errors_name_the_url_and_its_line(memory):
    fsspec.filesystem("memory").pipe("/folder/bad.svm", b"1 1:1\n" * 20 + b"1 1:x\n")
    url = f"{memory}/bad.svm"
    with pytest.raises(InvalidData) as raised:
        list(Svmlight().batches(cut_files(url, Svmlight(), 30)[-1:]))
    assert (raised.value.path, raised.value.line) == (url, 21)


def test_a_model_is_learned_from_a_url(folder):
    base, local = folder
    url = f"{base}/a.svm"
    remote, model = train([url], Svmlight()), train([str(local / "a.svm")], Svmlight())
    assert remote.learner.coef_.tobytes() == model.learner.coef_.tobytes()
    assert remote.training["files"] == [[url, len(CONTENTS["a.svm"])]]


def test_only_the_bytes_of_a_piece_are_read(one_file, monkeypatch):
    """A file of 4 MB is cut, and a tenth of it read."""
    monkeypatch.setattr(OneFile, "size", len(OneFile.content))
    pieces = cut_files("counted://a.svm", Svmlight(), 400_000)
    assert len(pieces) == 10
    assert CountingFile.read_in_all < 400_000
    rows = sum(batch.rows for batch in Svmlight().batches([pieces[4]]))
    assert rows == (pieces[4].end - pieces[4].begin) // len(one_file)
    assert CountingFile.read_in_all < 1_000_000


def test_a_file_of_unknown_size_is_read_and_not_cut(one_file):
    assert opening.size_of(["counted://a.svm"]) is None
    batches = Svmlight().batches(["counted://a.svm"])
    assert batches.total_bytes is None
    assert sum(batch.rows for batch in batches) == len(OneFile.content) // len(one_file)
    with pytest.raises(OSError, match=r"the size of 'counted://a\.svm' is unknown"):
        cut_files("counted://a.svm", Svmlight(), 1000)


def test_urls_that_cannot_be_opened_say_why(monkeypatch):
    with pytest.raises(
        InvalidParameter, match="path must be a local path or a URL of a protocol that fsspec knows; got 'no://a'"
    ):
        opening.paths("no://a")
    fsspec.register_implementation("needy", "no_such_package.Needy", clobber=True, errtxt="Install no_such_package")
    with pytest.raises(UnsupportedOperation, match="needy://a: the URL cannot be opened: Install no_such_package"):
        opening.paths("needy://a")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingDependency, match="URLs need the package fsspec, which is not installed") as raised:
        opening.paths("memory://folder/a.svm")
    assert raised.value.hint == "pip install 'rosenblatt[cluster]'"


def test_local_paths_do_not_import_fsspec(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(CONTENTS["a.svm"])
    (tmp_path / "a.conllu").write_text(WORD)
    program = f"""
import sys
from rosenblatt.data import sentences
from rosenblatt.data.pieces import cut_files, cut_sentences
from rosenblatt.data.svmlight import Svmlight
assert sum(batch.rows for piece in cut_files({str(path)!r}, Svmlight(), 100) for batch in Svmlight().batches([piece])) == 40
assert len(list(sentences.read(cut_sentences({str(tmp_path / "a.conllu")!r}, 100)[0]))) == 1
assert not [name for name in sys.modules if name.startswith("fsspec")]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
