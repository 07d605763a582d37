"""Files are cut where records end: over all pieces, read in any way, there are exactly the rows of the files, and exactly
their errors, each with its line in the file."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import os
import pickle
import tempfile
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from xxhash import xxh64

from rosenblatt.data import columns, conllu, opening, sentences
from rosenblatt.data.formats import reading_for
from rosenblatt.data.opening import Input, files_or_pieces, first_line, parse_threads
from rosenblatt.data.parsing.parallel import ParallelReader
from rosenblatt.data.pieces import FilePiece, cut_files, cut_sentences
from rosenblatt.data.svmlight import Svmlight, SvmlightError
from rosenblatt.data.svmlight.parser import LabelError, SvmlightParser
from rosenblatt.data.tables import Table, TableError
from rosenblatt.data.tables.batches import EMPTY
from rosenblatt.data.tables.schema import ColumnError
from rosenblatt.data.vw import Vw, VwError
from rosenblatt.errors import (
    FormatError,
    InvalidData,
    InvalidParameter,
    MissingDependency,
    OutputError,
    RosenblattError,
    UnknownColumn,
    UnknownLabel,
    UnsupportedOperation,
)

SIZES = st.sampled_from([1, 2, 3, 7, 20, 64, 1000])


def written(name, content):
    """A file of this content, which is there until the tests end."""
    path = Path(tempfile.mkdtemp(dir=FOLDER.name)) / name
    path.write_bytes(content)
    return str(path)


FOLDER = tempfile.TemporaryDirectory()


def facts(error):
    return type(error), error.path, error.line, error.row, error.column, error.problem


class Found:
    """Rows and errors that were read, to be compared."""

    def __init__(self, reading, sources, **options):
        self.rows, self.errors, self.skipped = [], [], 0
        for part in sources:
            batches = reading.batches(part, on_error="skip", **options)
            for batch in batches:
                self.rows += self.comparable(batch)
            self.errors += [facts(error) for error in batches.errors]
            self.skipped += batches.skipped

    @staticmethod
    def comparable(batch):
        if hasattr(batch, "columns"):
            return batch.columns.to_pylist()
        X, weight = batch.X, np.ones(batch.rows) if batch.weight is None else batch.weight
        bounds = itertools.pairwise(X.indptr)
        rows = [(X.indices[begin:end].tolist(), X.data[begin:end].tolist()) for begin, end in bounds]
        return list(zip(rows, batch.y.tolist(), weight.tolist(), strict=True))

    def __eq__(self, other):
        return (self.rows, self.errors, self.skipped) == (other.rows, other.errors, other.skipped)

    def __repr__(self):
        return f"{self.rows}, {self.errors}, {self.skipped} skipped"


def read_whole(reading, paths, **options):
    """What files hold, and the error that ends them; no rows at all are no error here, as a piece may have none."""
    try:
        return Found(reading, [paths], **options), None
    except TableError as error:
        return Found(reading, []), error if error.problem != EMPTY else None


def check_cut(reading, paths, size, **options):
    """Cut files; each piece alone, all in one list, and neighbours in two lists must give what the files give."""
    pieces = cut_files(paths, reading, size)
    whole, problem = read_whole(reading, paths, **options)
    assert problem is None
    for path in paths:
        own = [piece for piece in pieces if piece.path == path]
        assert [piece.begin for piece in own] == [0, *(piece.end for piece in own[:-1])][: len(own)]
        assert sum(piece.end - piece.begin for piece in own) == os.path.getsize(path)
    if pieces:
        half = len(pieces) // 2
        for parts in ([[piece] for piece in pieces], [pieces], [pieces[:half], pieces[half:]]):
            assert Found(reading, [part for part in parts if part], **options) == whole
    return pieces


@st.composite
def lines_of(draw, line):
    """Lines in one text, with any ends, blank ones among them, a byte order mark, and no end of the last."""
    content = "".join(text + end for text, end in draw(st.lists(st.tuples(line, st.sampled_from(["\n", "\r\n", "\n\n"])))))
    if draw(st.booleans()):
        content = content.removesuffix("\n")
    return ("\ufeff" if draw(st.booleans()) else "").encode() + content.encode()


SVMLIGHT_LINE = st.one_of(
    st.builds("{} {}:{} 9:1".format, st.sampled_from(["1", "-1", "2"]), st.integers(1, 5), st.integers(-9, 9)),
    st.sampled_from(["", " ", "# a comment", "1 3:x", "nonsense", "1 2:1 # why", "1", "\x1f\x8b\x08 1:1", "\ufeff1 1:1"]),
)


@given(contents=st.lists(lines_of(SVMLIGHT_LINE), min_size=1, max_size=2), size=SIZES)
@example(contents=[b"1 1:1\n\x1f\x8b\x08 1:1\n1 2:1\n"], size=1)  # the second line begins as gzip does
def test_libsvm_text(contents, size):
    paths = [written("a.svm", content) for content in contents]
    with parse_threads(1):
        check_cut(Svmlight(text=False), paths, size)
    check_cut(Svmlight(text=True, hashing=4), paths, size)


VW_LINE = st.one_of(
    st.builds("{} |{} a:{} b".format, st.sampled_from(["1", "-1", "1 2"]), st.sampled_from(["", "n"]), st.integers(-9, 9)),
    st.sampled_from(["", " ", "no bar", "x |a b", "1 |a b:inf"]),
)


@given(content=lines_of(VW_LINE), size=SIZES)
def test_vowpal_wabbit_text(content, size):
    check_cut(Vw(bits=8), [written("a.vw", content)], size)


def fitted(suffix, content, **options):
    table = Table("y", text="t", min_count=1, missing="fill", **options)
    return table.fit(table.batches([written(f"a{suffix}", content)]))


HEADER = fitted(".csv", b"y,t\na,some words\nb,other words\n")
NO_HEADER = Table(0, text=1, min_count=1, missing="fill", header=False)
NO_HEADER = NO_HEADER.fit(NO_HEADER.batches([written("a.csv", b"a,some words\nb,other words\n")]))
TABS = fitted(".tsv", b"y\tt\na\tsome words\nb\tother words\n")
SINGLE = fitted(".csv", b"y;t\na;some words\nb;other words\n", quote="'", delimiter=";")
BITS = st.lists(
    st.sampled_from(
        ['"', ",", "\n", "\r\n", "\r", "a", "word", '""', '"a\nb"', "a,b\n", 'a,"b,\r\n"\n', "\t", "é", "\n\ufeff"]
    )
)


@pytest.mark.parametrize(("table", "suffix", "header"), [(HEADER, ".csv", "y,t\n"), (NO_HEADER, ".csv", "a,b\n")])
def test_delimited_text_whatever_is_quoted(table, suffix, header):
    @given(bits=BITS, size=SIZES, mark=st.booleans(), before=st.sampled_from(["", "\n", "\r\n\n"]))
    @example(bits=['a,5" pipe\nb,"x\ny"\n', 'a,"""\n'], size=1, mark=False, before="")
    def check(bits, size, mark, before):
        content = ("\ufeff" * mark + before + header + "".join(bits)).encode()
        path = written(f"b{suffix}", content)
        _, problem = read_whole(table, [path])
        if problem is None:
            check_cut(table, [path], size)
        else:
            with pytest.raises(TableError, match="not closed") as raised:
                cut_files(path, table, size)
            assert facts(raised.value) == facts(problem)

    check()


@given(bits=BITS, size=SIZES)
def test_tab_separated_text(bits, size):
    check_cut(TABS, [written("b.tsv", ("y\tt\n" + "".join(bits).replace(",", "\t")).encode())], size)


@given(rows=st.lists(st.tuples(st.sampled_from("ab"), st.text("x'\n; \r", max_size=6)), min_size=1), size=SIZES)
def test_every_field_in_other_quotes(rows, size):
    quoted = "".join(f"{label};'{text.replace(chr(39), chr(39) * 2)}'\n" for label, text in rows)
    path = written("b.csv", ("y;t\n" + quoted).encode())
    pieces = check_cut(SINGLE, [path], size)
    assert [row["t"] for piece in pieces for row in Found(SINGLE, [[piece]]).rows] == [text for _, text in rows]
    if size == 1:
        assert 1 < len(pieces) <= 1 + len(rows)


def test_columns_are_those_of_the_header_of_each_file(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("y,t\n" + "a,red words\n" * 5)
    other.write_text("t,more,y\n" + "blue words,1,b\n" * 5)
    pieces = check_cut(HEADER, [str(one), str(other)], 12)
    assert len(pieces) > 6
    assert Found(HEADER, [pieces[-2:]]).rows[0] == {"y": "b", "t": "blue words"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_piece_of_nothing_but_bad_rows(suffix, tmp_path):
    """The first thousand rows say what a column holds; behind them every bad row is an error of its own."""
    path = tmp_path / f"a{suffix}"
    lines = ["ab"[i % 2] + (f",{i}" if i < 1100 else ",word") for i in range(1200)]
    if suffix == ".csv":
        path.write_text("y,n\n" + "\n".join(lines))
    else:
        path.write_text("".join(f'{{"y": "{line[0]}", "n": {json.dumps(line[2:])}}}\n' for line in lines))
    table = Table("y", numeric="n")
    table = table.fit(table.batches([str(path)], on_error="skip"))
    pieces = check_cut(table, [str(path)], 400)
    with pytest.raises(TableError, match="'word'") as raised:
        list(table.batches(pieces[-1:]))
    assert raised.value.line > 1101


def test_a_piece_behind_the_first_needs_no_guess(tmp_path):
    """What decides on delimiter, header and columns stands at the beginning of the file."""
    path = tmp_path / "a.csv"
    path.write_text("y,n;t\n1,2;3\n" + "".join(f"{i % 2},{i};{i};x\n" if i > 30 else f"{i % 2},{i};x\n" for i in range(60)))
    table = Table("y", text="n;t")
    pieces = cut_files(str(path), table, 40)
    assert len(pieces) > 10
    whole = table.batches([str(path)], on_error="skip")
    expected = [row for batch in whole for row in batch.columns.to_pylist()]
    assert Found(table, [pieces]).rows == expected
    piece = table.batches([pieces[-1]], on_error="skip")
    rows = [row for batch in piece for row in batch.columns.to_pylist()]
    assert rows == expected[len(expected) - len(rows) :] != []
    assert [column.name for column in piece.schema.columns] == ["y", "n;t"]


OBJECTS = fitted(".jsonl", b'{"y": "a", "t": "some words"}\n{"y": "b", "t": "other words"}\n')
JSON_LINE = st.one_of(
    st.fixed_dictionaries({"y": st.sampled_from(["a", "b", None, 1]), "t": st.text(max_size=4)}).map(json.dumps),
    st.sampled_from(["", " ", "{}", "[", '["a"]', "nonsense", '{"y": "a", "more": [1]}', '\ufeff{"y": "a", "t": "x"}']),
)


@given(
    first=st.sampled_from(['{"y": "a", "t": "x"}\n', '{"y": "a", "t": "x", "z": [1]}\r\n']),
    rest=lines_of(JSON_LINE),
    size=SIZES,
)
def test_json_lines(first, rest, size):
    check_cut(OBJECTS, [written("b.jsonl", first.encode() + rest.removeprefix(b"\xef\xbb\xbf"))], size)


def test_a_key_that_only_some_objects_have(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"y": "a", "t": "x"}\n' + '{"y": "b"}\n' * 9)
    pieces = check_cut(OBJECTS, [str(path)], 30)
    assert len(pieces) > 3


@st.composite
def tables(draw):
    rows = draw(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(["x", "y z", None])), min_size=1))
    return pa.table({"y": pa.array([y for y, _ in rows], pa.string()), "t": pa.array([t for _, t in rows], pa.string())})


@given(table=tables(), group=st.integers(1, 5), size=st.sampled_from([1, 100, 400, 5000]), dictionary=st.booleans())
def test_parquet_by_row_groups(table, group, size, dictionary):
    path = written("a.parquet", b"")
    pa.parquet.write_table(table, path, row_group_size=group, use_dictionary=dictionary)
    pieces = check_cut(OBJECTS, [path], size)
    if size == 1:
        assert len(pieces) == -(-table.num_rows // group)


@given(
    table=tables(),
    batch=st.integers(1, 5),
    size=st.sampled_from([1, 100, 400, 5000]),
    kind=st.sampled_from(["file", "stream"]),
)
def test_arrow_by_record_batches(table, batch, size, kind):
    path = written("a.arrow", b"")
    with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(path, table.schema) as file:
        file.write_table(table, max_chunksize=batch)
    pieces = check_cut(OBJECTS, [path], size)
    if size == 1:
        assert len(pieces) == -(-table.num_rows // batch)


def test_dictionaries_of_arrow_go_with_every_piece(tmp_path):
    path = str(tmp_path / "a.arrow")
    table = pa.table({"y": pa.array(list("abab")).dictionary_encode(), "t": ["x", "y", "z", "w"]})
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table, max_chunksize=1)
    assert len(check_cut(OBJECTS, [path], 1)) == 4
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)
        file.write_table(table.set_column(0, "y", pa.array(list("baba")).dictionary_encode()))  # another dictionary
    assert len(check_cut(OBJECTS, [path], 1)) == 1


def test_row_groups_without_columns_and_damaged_files_are_not_cut(tmp_path):
    path = tmp_path / "a.arrow"
    with pa.ipc.new_stream(str(path), pa.schema([("y", pa.string())])) as file:
        file.write_table(pa.table({"y": ["a", "b"]}), max_chunksize=1)
    content = path.read_bytes()
    for end in range(8, len(content), 11):
        path.write_bytes(content[:end])
        try:
            pieces = cut_files(str(path), OBJECTS, 1)
        except TableError:
            continue
        assert sum(piece.end - piece.begin for piece in pieces) == end


def sentences_of(read, sources):
    """What sentences say of themselves, and the errors of those left out. These leave the blank lines before them to the
    next sentence, where it is in the same piece; so blank lines count only if there is no error."""
    found, errors = [], []
    for source in sources:
        reader = read(source)
        found += [(str(sentence), sentence.before, sentence.path, sentence.line) for sentence in reader]
        errors += [facts(error) for error in getattr(reader, "errors", ())]
    if errors:
        found = [(text.removeprefix(before), before.split(), *place) for text, before, *place in found]
    return found, errors


def check_sentences(read, path, size, names=None):
    pieces = cut_sentences(path, size, names)
    assert [piece.line for piece in pieces] == [first_line(piece._replace(line=None)) for piece in pieces]
    whole = sentences_of(read, [path])
    assert sentences_of(read, pieces) == whole
    assert sentences_of(read, [piece._replace(line=None) for piece in pieces]) == whole
    return pieces


WORD = "1\tDogs\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
BLOCK = st.sampled_from(
    [
        WORD + "\n",
        "# a comment\n" + WORD + "2" + WORD[1:] + "\n",
        (WORD + "\n").replace("\n", "\r\n"),
        WORD + " \n",
        WORD + "\u2003\n",  # a blank line of another kind
        "\n",
        "# comments only\n\n",
        "7\tno\n\n",
        "\ufeff" + WORD + "\n",
        "\x00\n\n",
    ]
)


@given(
    blocks=st.lists(BLOCK),
    mark=st.booleans(),
    end=st.sampled_from(["", WORD, WORD.strip()]),
    size=SIZES,
    strict=st.booleans(),
)
@example(blocks=[WORD + "\n", "\ufeff" + WORD + "\n"], mark=True, end="", size=1, strict=True)
def test_conllu_by_sentences(blocks, mark, end, size, strict):
    path = written("a.conllu", ("\ufeff" * mark + WORD + "\n" + "".join(blocks) + end).encode())
    check_sentences(lambda source: conllu.read(source, strict=strict, on_error="skip"), path, size)


COLUMNS = ("form", "tag")
COLUMN_BLOCK = ["Dogs NNS\nbark VBP\n\n", "a DT\n\n", "-DOCSTART- x\n\n", "\n", "-DOCSTART- x\nno DT\n\n", "b IN\r\n\r\n"]


@given(blocks=st.lists(st.sampled_from([*COLUMN_BLOCK, "one\n\n"])), end=st.sampled_from(["", "a DT"]), size=SIZES)
def test_columns_by_sentences(blocks, end, size):
    """A document begins with the sentence behind its line, also where a piece does."""
    text = "".join(blocks) + end
    assume(not ("one" in text and "DOC" in text))  # a sentence left out leaves its document to the next one of its piece
    path = written("a.txt", text.encode())
    check_sentences(lambda source: columns.read(source, COLUMNS, on_error="skip"), path, size, COLUMNS)


@given(blocks=st.lists(st.sampled_from(COLUMN_BLOCK), min_size=1), size=SIZES)
def test_any_sentences_by_their_names(blocks, size):
    path = written("a.txt", "".join(blocks).encode())
    check_sentences(lambda source: sentences.read(source, COLUMNS), path, size, COLUMNS)
    path = written("a.conllu", ("# first\n" + (WORD + "\n") * len(blocks)).encode())
    check_sentences(sentences.read, path, size)


@given(lines=st.lists(st.sampled_from(["a b c", "", "Dogs NNS", "bark VBP", "1\t2", "# no comment"])), size=SIZES)
def test_plain_lines_are_plain_in_every_piece(lines, size):
    """Also in pieces that alone would look like columns or like CoNLL-U."""
    path = written("a.txt", ("Words as they are.\nAnd more\n" + "\n".join(lines)).encode())
    pieces = check_sentences(sentences.read, path, size)
    assert size > 2 or len(pieces) >= 2 + len([line for line in lines[:-1] if line])


def test_errors_in_pieces_of_sentences_name_their_line(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text((WORD + "\n") * 9 + "7\tno\n\n")
    pieces = cut_sentences(str(path), 40)
    assert len(pieces) == 4
    with pytest.raises(conllu.ConlluError, match="2 columns where there must be 10") as raised:
        list(sentences.read(pieces[-1]))
    assert (raised.value.path, raised.value.line) == (str(path), 19)
    columns_file = tmp_path / "a.txt"
    columns_file.write_text("Dogs NNS\nbark VBP\n\n" * 9)
    with pytest.raises(FormatError, match="the columns have no names"):
        cut_sentences(str(columns_file), 40)
    packed = tmp_path / "a.conllu.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert cut_sentences([str(packed), str(path)], 10**6) == [
        FilePiece(str(packed), 0, packed.stat().st_size, 1, opening.version_of(packed)),
        FilePiece(str(path), 0, path.stat().st_size, 1, opening.version_of(path)),
    ]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidData, match="read only once"):
        cut_sentences(str(tmp_path / "pipe"), 10)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_compressed_file_is_one_piece(pack, tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(pack(b"1 1:1\n-1 1:2\n" * 50))
    whole = FilePiece(str(path), 0, path.stat().st_size, version=opening.version_of(path))
    assert cut_files(str(path), Svmlight(), 10) == [whole]
    check_cut(Svmlight(text=False), [str(path)], 10)
    named = tmp_path / "plain.svm.gz"
    named.write_bytes(b"1 1:1\n" * 9)
    [piece] = cut_files(str(named), Svmlight(), 6)
    with pytest.raises(FormatError, match=r"ends with \.gz"):
        list(Svmlight().batches([piece]))


def test_what_cannot_be_cut_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", str(tmp_path / "pipe")):
        with pytest.raises(InvalidData, match=r"a pipe can be read only once, and by one process; name a file"):
            cut_files(path, Svmlight(), 10)
    with pytest.raises(InvalidParameter, match="size must be a number of bytes, at least 1; got 0"):
        cut_files(str(tmp_path / "pipe"), Svmlight(), 0)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        cut_files(str(tmp_path / "none"), Svmlight(), 1)
    (tmp_path / "empty.svm").write_bytes(b"")
    assert cut_files(str(tmp_path / "empty.svm"), Svmlight(), 1) == []


def test_a_file_that_became_shorter_is_an_error(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 10)
    pieces = [piece._replace(version=None) for piece in cut_files(str(path), Svmlight(), 30)]
    missing = "bytes are missing at its end; has the file changed since it was cut"
    for lines, found in ((7, ("18 " + missing, 8)), (5, ("30 " + missing, None)), (0, ("30 " + missing, None))):
        path.write_text("1 1:1\n" * lines)
        with pytest.raises(FormatError, match=found[0]) as raised:
            list(Svmlight().batches(pieces[1:]))
        assert (raised.value.path, raised.value.line) == (str(path), found[1])


def rewrite(path):
    """As many bytes, other ones."""
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))


def replace(path):
    """Another file of this name, with as many bytes."""
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes().replace(b"1", b"2"))
    other.rename(path)


@pytest.mark.parametrize("change", [rewrite, replace, lambda path: path.write_bytes(path.read_bytes() * 2)])
@pytest.mark.parametrize("name", ["a.svm", "a.parquet"])
def test_a_file_that_has_changed_since_it_was_cut_is_not_read(name, change, tmp_path):
    path = tmp_path / name
    if name == "a.svm":
        path.write_text("1 1:1\n-1 1:1\n" * 10)
        reading = Svmlight()
    else:
        pa.parquet.write_table(pa.table({"y": ["1", "2"] * 10, "n": [1.0] * 20}), path, row_group_size=5)
        reading = reading_for([str(path)], target="y")
    pieces = cut_files(str(path), reading, 30)
    assert sum(batch.rows for batch in reading.batches(pieces)) == 20
    os.utime(path, ns=(0, path.stat().st_mtime_ns))  # when it was read does not matter
    assert sum(batch.rows for batch in reading.batches(pieces[:1])) > 0
    change(path)
    for some, on_error in ((pieces, "error"), (pieces[1:2], "error"), (pieces[-1:], "skip")):
        with pytest.raises(InvalidData, match="the file has changed since it was cut into pieces; begin again") as raised:
            list(reading.batches(some, on_error=on_error))
        assert raised.value.path == str(path)


def test_a_file_that_changes_while_a_piece_is_read_is_noticed_at_its_end(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 10)
    piece = cut_files(str(path), Svmlight(), 30)[0]
    with opening.open_binary(piece) as file:
        assert file.read(piece.end - 1) == b"1 1:1\n" * 4 + b"1 1:1"
        rewrite(path)
        with pytest.raises(InvalidData, match="the file has changed"):
            file.read(1)


def test_a_piece_is_read_without_what_is_around_it(tmp_path):
    """Only the bytes of the piece count, and hash to what the whole file does."""
    path = tmp_path / "a.svm"
    content = b"".join(b"1 %d:1\n" % i for i in range(1, 400))
    path.write_bytes(content)
    pieces = cut_files(str(path), Svmlight(), 500)
    batches = Svmlight().batches(pieces[2:4])
    expected = content[pieces[2].begin : pieces[3].end]
    assert batches.total_bytes == len(expected) < len(content) / 2
    assert sum(batch.rows for batch in batches) == expected.count(b"\n")
    assert (batches.bytes_read, batches.digest()) == (len(expected), xxh64(expected).hexdigest())
    assert sum(Svmlight().labels([piece])[0] for piece in pieces) == 399


def test_neighbours_are_joined_and_paths_stay(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 10)
    pieces = cut_files(str(path), Svmlight(), 12)
    version = opening.version_of(path)
    assert files_or_pieces(pieces) == [FilePiece(str(path), 0, 60, version=version)]
    assert files_or_pieces([pieces[0], pieces[2], pieces[3], str(path)]) == [
        pieces[0],
        FilePiece(str(path), pieces[2].begin, pieces[3].end, version=version),
        str(path),
    ]
    assert files_or_pieces(pieces[1]) == [pieces[1]]
    with pytest.raises(FileNotFoundError, match="no file was given"):
        files_or_pieces([])


def test_lines_before_a_piece_are_counted_only_for_an_error(tmp_path, monkeypatch):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 9 + "1 1:bad\n")
    pieces = cut_files(str(path), Svmlight(), 12)
    counted = []
    monkeypatch.setattr(
        "rosenblatt.data.parsing.parallel.first_line", lambda piece: counted.append(piece) or first_line(piece)
    )
    list(Svmlight().batches([pieces[1], pieces[3]]))
    assert not counted
    with pytest.raises(SvmlightError) as raised:
        list(Svmlight().batches(pieces[-1:]))
    assert raised.value.line == 10
    assert counted == pieces[-1:]
    assert first_line(pieces[1]._replace(line=70)) == 70


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_limited(threads, tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 3000)
    parser = SvmlightParser()
    seen = set()

    def parse(piece, skip, context):
        seen.add(threading.current_thread().name)
        return parser(piece, skip, context)

    with parse_threads(threads):
        batches = ParallelReader([str(path)], parse, SvmlightError, prepare=parser.prepare, size=500, threads=5)
    rows = sum(batch.rows for batch in batches)  # also behind the block
    assert rows == 6000
    assert len(seen) <= threads
    assert (threading.current_thread().name in seen) == (threads == 1)
    assert opening.PARSE_THREADS.get() is None
    with pytest.raises(InvalidParameter, match="at least 1"), parse_threads(0):
        pass


ERRORS = [FormatError, SvmlightError, LabelError, VwError, TableError, ColumnError, UnknownColumn]
ERRORS += [conllu.ConlluError, columns.ColumnsError, InvalidData]


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_of_readers_go_from_one_process_to_another(kind):
    made = {"path": "a.svm", "line": 3, "column": "age", "hint": "look", "settings": {"missing": "fill"}}
    error = kind("it is wrong", **made, row=None if kind is not TableError else 7)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert isinstance(again, RosenblattError)
    assert {name: getattr(again, name) for name in made} == made
    assert (again.row, again.problem) == (error.row, "it is wrong")


@pytest.mark.parametrize(
    "error",
    [
        MissingDependency("fsspec", "cluster", "URLs"),
        OutputError("it is full", "a.model", 28, hint="make room"),
        InvalidParameter("size", 0, "at least 1", hint="say how many bytes"),
        UnsupportedOperation("it cannot be opened", path="s3://a"),
        UnknownLabel("c", ["a", "b"], path="a.svm", line=3),
    ],
)
def test_other_errors_keep_their_facts_too(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    for name in ("name", "errno", "filename"):
        assert getattr(again, name, None) == getattr(error, name, None)


def test_pieces_are_pickled_and_readings_for_them_found(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,t\n" + "a,words\n" * 30)
    reading = reading_for([str(path)], text="t", target="y")
    pieces = pickle.loads(pickle.dumps(cut_files(str(path), reading, 50)))
    assert len(pieces) > 3
    assert isinstance(pieces[1], FilePiece)
    with Input(pieces[1]) as stream:
        assert stream.read() == path.read_bytes()[pieces[1].begin : pieces[1].end]
        assert (stream.piece, stream.starts_file, stream.name) == (pieces[1], False, str(path))
