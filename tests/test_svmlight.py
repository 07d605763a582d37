"""LIBSVM text becomes rows: those that scikit-learn reads, in any spelling, any blocks and any number of threads."""

import gzip
import io
import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file
from xxhash import xxh64

from rosenblatt.data import svmlight, vw
from rosenblatt.data.opening import Piece
from rosenblatt.data.parsing.line_parser import COUNT, ROWS, Room
from rosenblatt.data.parsing.parallel import ParallelReader
from rosenblatt.data.svmlight import LabelError, Svmlight, SvmlightError
from rosenblatt.data.svmlight import rows as kernel
from rosenblatt.data.svmlight.parser import SvmlightParser
from rosenblatt.modelfile.parts import Parts

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**20), 10**20).map(float),
    st.decimals(-1000, 1000, places=4).map(float),
)


@st.composite
def rows(draw, least=0):
    """(label, {index: value}) of some rows."""
    row = st.tuples(
        numbers, st.dictionaries(st.integers(least, least + draw(st.sampled_from([5, 10**6, 2**40]))), numbers, max_size=6)
    )
    return draw(st.lists(row, min_size=1, max_size=8))


def spelled(x, chance):
    """A number as somebody may write it; always the same double."""
    plain = repr(x)
    forms = [plain, f"{x:.17g}", f"{x:.25e}", plain.upper()]
    if not plain.startswith("-"):
        forms.append("+" + plain)
    if plain.startswith("0."):
        forms.append(plain[1:])
    if plain.endswith(".0"):
        forms += [plain[:-1], plain[:-2]]
    return chance.choice(forms)


def text_of(data, chance):
    """The rows in odd spellings."""
    lines = []
    for label, row in data:
        words = [spelled(label, chance)]
        pairs = [f"{index}:{spelled(value, chance)}" for index, value in row.items()]
        chance.shuffle(pairs)
        line = chance.choice(["", " ", "\t"]) + chance.choice([" ", "  ", "\t", " \t"]).join(words + pairs)
        lines.append(line + chance.choice(["", " ", "\t ", " # a: b 3:4", "#"]))
        lines += chance.choice([[], [], ["", "  ", "# nothing: 1:2"]])
    return chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])


def same(X, y, data, least):
    columns = max((max(row) for _, row in data if row), default=least - 1) + 1 - least
    assert X.shape == (len(data), columns)
    assert X.has_sorted_indices
    assert y.tobytes() == np.array([label for label, _ in data]).tobytes()
    for number, (_, row) in enumerate(data):
        part = slice(X.indptr[number], X.indptr[number + 1])
        assert (X.indices[part] + least).tolist() == sorted(row)
        assert X.data[part].tobytes() == np.array([row[index] for index in sorted(row)], float).tobytes()


def written(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("svm") / "a.svm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@given(rows(least=1), st.randoms(use_true_random=False))
def test_any_spelling_reads_the_same(tmp_path_factory, data, chance):
    path = written(tmp_path_factory, text_of(data, chance))
    read = svmlight.read(path)
    assert not read.zero_based
    X, y = read
    same(X, y, data, 1)
    assert X.indices.dtype == (np.int32 if X.shape[1] < 2**31 else np.int64)
    X, y = svmlight.read(path, zero_based=True)
    same(X, y, data, 0)


@given(rows(), st.randoms(use_true_random=False), st.integers(1, 200), st.sampled_from([1, 3]))
def test_any_blocks_and_threads_give_the_same(tmp_path_factory, data, chance, size, threads):
    path = written(tmp_path_factory, text_of(data, chance))
    batches = svmlight.chunks(path, zero_based=True, size=size, threads=threads, digest=True)
    whole = Svmlight().concatenate(list(batches))
    same(whole.X, whole.y, data, 0)
    assert batches.bytes_read == batches.total_bytes == path.stat().st_size
    assert batches.digest() == xxh64(path.read_bytes()).hexdigest()


@given(rows(), st.booleans(), st.booleans())
def test_what_is_written_is_read(data, zero_based, queries):
    columns = max((max(row) for _, row in data if row), default=0) + 1
    X = sp.csr_matrix(
        (
            np.array([row[index] for _, row in data for index in sorted(row)], float),
            np.array([index for _, row in data for index in sorted(row)], np.int64),
            np.cumsum([0, *(len(row) for _, row in data)]),
        ),
        shape=(len(data), columns),
    )
    y = np.array([label for label, _ in data])
    file = io.BytesIO()
    qid = np.arange(len(data)) if queries else None
    assert svmlight.write(file, X, y, zero_based=zero_based, qid=qid) == len(data)
    chunk = svmlight.Svmlight().concatenate(
        list(_chunks(file.getvalue(), zero_based=zero_based, features=columns, qid=True))
    )
    assert chunk.X.shape == X.shape
    assert chunk.X.data.tobytes() == X.data.tobytes()
    assert (chunk.X.indices == X.indices).all()
    assert (chunk.X.indptr == X.indptr).all()
    assert chunk.y.tobytes() == y.tobytes()
    assert chunk.qid.tolist() == (qid.tolist() if queries else [0] * len(data))


def _chunks(content, **options):
    """The chunks of a file that is only in memory."""
    on_error = options.pop("on_error", "error")
    size = options.pop("size", 1 << 20)
    parser = SvmlightParser(**options)
    return ParallelReader(
        [io.BytesIO(content)], parser, SvmlightError, prepare=parser.prepare, on_error=on_error, size=size, threads=2
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_scikit_learn_reads_the_same(tmp_path, pack):
    rng = np.random.default_rng(0)
    X = sp.random(
        300, 50, 0.2, "csr", random_state=0, data_rvs=lambda n: rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)
    )
    X.data[::3] = np.round(X.data[::3], 3)
    y = rng.choice([-1.0, 1.0], 300)
    path = tmp_path / "a.svm"
    for zero_based in (True, False):
        file = io.BytesIO()
        svmlight.write(file, X, y, zero_based=zero_based, qid=np.arange(300) // 7)
        path.write_bytes(file.getvalue())
        Z, z, q = load_svmlight_file(str(path), query_id=True)
        path.write_bytes(pack(file.getvalue()))
        read = svmlight.read(path, qid=True)
        assert read.zero_based == zero_based
        assert (read.X != Z).nnz == 0
        assert read.X.shape == Z.shape
        assert (read.X.data == Z.data).all()
        assert (read.y == z).all()
        assert (read.qid == q).all()
    assert svmlight.read([path, path], dtype=np.float32).X.shape == (600, Z.shape[1])
    assert svmlight.read(path, features=99, dtype=np.float32).X.dtype == np.float32


def test_labels_may_be_words(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("spam 1:1\n7 2:1\n1,3 1:2\nspam\nham#\n" * 50)
    y = svmlight.read(path).y
    assert y.dtype == object
    assert y.tolist() == ["spam", "7", "1,3", "spam", "ham"] * 50
    assert svmlight.labels(path)[0] == 250
    assert svmlight.labels(path)[1].tolist() == ["1,3", "7", "ham", "spam"]
    assert svmlight.labels(path, size=5)[1].tolist() == ["1,3", "7", "ham", "spam"]
    path.write_text("1 1:1\n+1.0 1:1\n-1\nspam 2:1\n1e400 2:2\n")
    assert svmlight.read(path).y.tolist() == ["1", "+1.0", "-1", "spam", "1e400"]  # the first is a number, and yet
    with pytest.raises(
        LabelError, match="line 4, column 1: expected a number as the label, as the first one is, found 'spam'"
    ):
        list(svmlight.chunks(path))
    assert [chunk.y.tolist() for chunk in svmlight.chunks(path, text=True)] == [["1", "+1.0", "-1", "spam", "1e400"]]
    with pytest.raises(LabelError, match="line 4, column 1"):
        svmlight.read(path, text=False)
    batches = svmlight.chunks(path, on_error="skip")
    assert [chunk.y.tolist() for chunk in batches] == [[1.0, 1.0, -1.0]]
    assert batches.skipped == 2
    path.write_text("1 1:1\n+1.0 1:1\n-1\n# 4\n9007199254740993.00000000000000000001")
    rows, distinct = svmlight.labels(path)
    assert (rows, distinct.tolist()) == (4, [-1.0, 1.0, 9007199254740994.0])
    assert svmlight.read(path).y.tolist() == [1.0, 1.0, -1.0, 9007199254740994.0]


@pytest.mark.parametrize("label", ["nan", "NaN", "-inf", "Infinity"])
def test_nan_and_infinity_are_no_labels(tmp_path, label):
    path = tmp_path / "a.svm"
    path.write_text(f"spam 1:1\nham 1:1\n{label} 2:1\nnancy 1:1\n")
    with pytest.raises(
        SvmlightError, match=f"line 3, column 1: expected a label, a finite number or a word, found '{label}'"
    ):
        svmlight.read(path)
    found = svmlight.read(path, on_error="skip")
    assert (found.y.tolist(), found.skipped) == (["spam", "ham", "nancy"], 1)
    path.write_text(f"1 1:1\n-1 1:1\n{label} 2:1\n")
    with pytest.raises(SvmlightError, match="line 3, column 1: expected a label"):
        svmlight.read(path)
    [chunk] = svmlight.chunks(path, labelled=False)
    assert chunk.rows == 3


def test_hashed_indices_may_be_as_large_as_they_like(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 3:2 9000000000000:3\n-1 0:1 1:1 1:1\n")
    reading = Svmlight(hashing=12)
    [chunk] = reading.batches([str(path)])
    assert chunk.X.shape == (2, 4096) == (2, reading.features)
    assert chunk.X.data.tolist().count(3.0) == 1
    assert sorted(chunk.X[0].data) == [1, 2, 3]
    assert set(chunk.X[0].indices) & set(chunk.X[1].indices) == {chunk.X[0].indices[chunk.X[0].data.argmin()]}
    assert Svmlight.from_parts(reading.to_parts()) == reading
    assert reading.name(17) == "bucket 17"
    [crowded] = Svmlight(hashing=1).batches([str(path)])
    assert crowded.X.sum(axis=1).ravel().tolist() == [[6.0, 3.0]]
    with pytest.raises(ValueError, match="hashing must be a whole number from 1 to 30; got 31"):
        Svmlight(hashing=31)


def test_lines_without_a_label(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("3:1 4:2\n\n5:1\n")
    [chunk] = svmlight.chunks(path, labelled=False, zero_based=True)
    assert chunk.y is None
    assert chunk.X.indices.tolist() == [3, 4, 5]
    with pytest.raises(SvmlightError, match="line 1, column 1: expected a label before the first index:value, found '3:1'"):
        svmlight.read(path)
    path.write_text("word 3:1 4:2\n5:1\n")
    [chunk] = Svmlight().batches([str(path)], labelled=False)
    assert chunk.y is None
    assert svmlight.labels(path)[0] == 2


@pytest.mark.parametrize("text", [None, False, True])
def test_nobody_looks_at_labels_that_are_not_needed(tmp_path, text):
    path = tmp_path / "a.svm"
    path.write_text("1 3:1\nspam 4:1\n5:1\n1e400 6:1\n")
    for size in (1, 1 << 20):
        chunks = list(svmlight.chunks(path, labelled=False, text=text, size=size))
        assert [index for chunk in chunks for index in chunk.X.indices] == [2, 3, 4, 5]
        assert [chunk.y for chunk in chunks] == [None] * len(chunks)
    assert Svmlight().concatenate(chunks).rows == 4


@pytest.mark.parametrize("wrong", ["nan 1:1 9:1", "ham 1:1e308 9:1 1:1e308"])
@pytest.mark.parametrize("zero_based", [False, True])
def test_a_row_that_is_left_out_leaves_no_columns_behind(tmp_path, wrong, zero_based):
    """Neither the smallest nor the largest index is that of a row whose label or sum is not finite."""
    path = tmp_path / "a.svm"
    path.write_text(f"ham 3:1 2:1\n{wrong}\nspam 4:1\n")
    batches = svmlight.chunks(path, zero_based=zero_based, on_error="skip")
    [chunk] = batches
    assert batches.skipped == 1
    assert chunk.smallest == 2
    assert chunk.X.shape == (2, 5 if zero_based else 4)
    assert (chunk.X.indices + (not zero_based)).tolist() == [2, 3, 4]


@pytest.mark.parametrize("wrong", ["3:1 4:1", "spam 1:x", "\x01 1:1"])
def test_the_first_row_that_is_kept_says_what_labels_are(tmp_path, wrong):
    path = tmp_path / "a.svm"
    for labels, expected in (("1 -1", [1.0, -1.0]), ("ham 2", ["ham", "2"])):
        path.write_text("".join(f"{line}\n" for label in labels.split() for line in (wrong, f"{label} 1:1", wrong)))
        for size in (1, 1 << 20):
            chunks = svmlight.chunks(path, on_error="skip", size=size)
            assert [label for chunk in chunks for label in chunk.y.tolist()] == expected
        data = svmlight.read(path, on_error="skip")
        assert data.y.tolist() == expected
        assert data.skipped == 4
        assert Svmlight().labels([str(path)], on_error="skip")[1].tolist() == sorted(expected)


def test_a_named_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []

    def read():
        with pytest.raises(LabelError, match=r"line 2, column 1.* text=True"):
            svmlight.read(path)
        found.append("said")

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    path.write_text("1 1:1\nspam 2:1\n")
    thread.join(20)
    assert found == ["said"]


def test_unsorted_indices_are_sorted_and_repeated_ones_added_up(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 3:1 2:5 3:0.5\n2 1:1 2:2\n")
    X, _ = svmlight.read(path)
    assert X.toarray().tolist() == [[0, 5, 1.5], [1, 2, 0]]
    assert X.nnz == 4
    assert X.has_canonical_format


@pytest.mark.parametrize(("read", "row"), [(svmlight.read, "{0} {1}"), (vw.read, "{0} | {1}")])
def test_repeated_indices_that_add_up_to_infinity_are_refused(tmp_path, read, row):
    path = tmp_path / "a"
    pairs = ["7:1", "1:1e308 7:1 1:1e308", "7:1e308 1:1e308", "0:-1e308 9:1 0:-1e308", "1::"]
    path.write_text("".join(row.format(k % 2, pair) + "\n" for k, pair in enumerate(pairs)))
    with pytest.raises(ValueError, match=r"line 2, column 1: expected finite numbers; .* add up to infinity"):
        read(path)
    data = read(path, on_error="skip")
    assert [error.line for error in data.errors] == [2, 4, 5]
    assert data.skipped == 3
    assert data.y.tolist() == [0, 0]
    assert sorted(data.X.data) == [1, 1e308, 1e308]
    assert read is vw.read or data.X.shape == (2, 7)


WRONG = {
    "1 2:3 4": (7, "expected index:value, found '4'"),
    "1 a:3": (3, "expected index:value, found 'a:3'"),
    "1 -3:4": (3, "expected index:value, found '-3:4'"),
    "1 2.5:4": (3, "expected index:value, found '2.5:4'"),
    "1 2:": (5, "expected a finite number as the value, found the end of the line"),
    "1 2: 3": (5, "expected a finite number as the value, found a blank"),
    "1 2:3x": (5, "found '3x'"),
    "1 2:nan": (5, "found 'nan'"),
    "1 2:-inf": (5, "found '-inf'"),
    "1 2:1_0": (5, "found '1_0'"),
    "1 2:1e999": (5, "found '1e999', which is too large for a double"),
    "1 2:3:4": (5, "found '3:4'"),
    "1 99999999999999999999:4": (3, "expected an index up to 9223372036854775806, found 99999999999999999999"),
    "1 0:4": (3, "expected an index from 1 on, found 0; try zero_based=True"),
    "1 qid:x 2:3": (3, "expected a whole number after qid:, found 'qid:x'"),
    "3:4 1:2": (1, "expected a label before the first index:value, found '3:4'"),
    "1 2:3 \x00\x01\x02": (7, r"found '\x00\x01\x02'"),
    "\x7fELF\x02": (1, r"expected a label, a number or a word, found '\x7fELF\x02'; is this a text file?"),
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path, line):
    column, message = WRONG[line]
    path = tmp_path / "a.svm"
    path.write_text("# head\n1 1:1 2:1\n" + line + "\n1 3:1\n" + line)
    for size in (1, 1 << 20):
        with pytest.raises(SvmlightError) as raised:
            list(svmlight.chunks(path, size=size))
        error = raised.value
        assert (error.path, error.line, error.column) == (str(path), 3, column)
        assert message in str(error)
        assert str(error).startswith(f"{path}, line 3, column {column}: ")
        assert str(error).isprintable()
    data = svmlight.read(path, zero_based=False, on_error="skip")
    assert data.X.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert data.skipped == 2
    assert [error.line for error in data.errors] == [3, 5]


@given(st.binary(max_size=200), st.integers(1, 50))
@settings(max_examples=80)
def test_garbage_gives_rows_or_a_clean_error(garbage, size):
    text = b"1 2:3\n" + garbage
    skipping = _chunks(text, on_error="skip", size=size)
    kept = sum(chunk.rows for chunk in skipping)
    with_words = garbage.replace(b"\v", b" ").replace(b"\f", b" ").replace(b"\r", b" ").split(b"\n")
    lines = sum(line.split(b"#")[0].strip() != b"" for line in with_words)
    assert kept + skipping.skipped == lines + 1
    if skipping.skipped:
        with pytest.raises(SvmlightError) as raised:
            list(_chunks(text, size=size))
        assert str(raised.value) == str(skipping.errors[0])
        assert len(str(raised.value)) < 250
        assert str(raised.value).isprintable()
    else:
        assert all(np.isfinite(chunk.X.data).all() for chunk in _chunks(text, size=size))


@given(rows(least=1), st.randoms(use_true_random=False), st.integers(0, 10**6), st.integers(0, 255))
def test_a_flipped_byte_changes_one_line_at_most(tmp_path_factory, data, chance, place, byte):
    good = [text_of([row], chance).split("\n")[0].split("#")[0].rstrip() for row in data]
    victim = place % len(good)
    line = bytearray(good[victim].encode())
    line[place % len(line)] = byte
    if byte in b"\n#":
        return
    text = b"\n".join(bytes(line) if k == victim else one.encode() for k, one in enumerate(good))
    batches = _chunks(text, on_error="skip", text=False)
    read = Svmlight().concatenate(list(batches)) if len(data) > 1 else None
    assert batches.skipped <= 1
    if read is not None:
        labels = [label for k, (label, _) in enumerate(data) if k != victim]
        if batches.skipped:
            assert read.y.tobytes() == np.array(labels).tobytes()


STRANGE = st.text(" \t\r\n\v\f|:#'0123456789.eE+-abq", max_size=80)


@given(st.lists(STRANGE, max_size=3), st.sampled_from(" \t\r\v\f"), st.integers(0, 30))
@settings(max_examples=200)
def test_there_is_room_for_all_that_is_written(lines, separator, features):
    """The compiled loop would write behind the end: it gets more room here than was made, and must not need it."""
    text = "\n".join([f"1 {separator.join(['2:3'] * features)}", *lines, *(f"1 2:{line}" for line in lines)]).encode()
    compiled = kernel.parse

    def parse(data, end, room, terms, state):
        wide = Room(*(np.concatenate([array, np.zeros(len(text), array.dtype)]) for array in room))
        compiled(data, end, wide, terms, state)
        for array, wider in zip(room, wide, strict=True):
            array[:] = wider[: len(array)]
        assert state[COUNT] <= len(room.indices)
        assert state[ROWS] < len(room.indptr)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SvmlightParser, "loop", staticmethod(parse))
        piece = Piece(np.frombuffer(text + b"\n" + bytes(16), np.uint8), 0, len(text) + 1)
        assert SvmlightParser(zero_based=True, qid=True)(piece, True, False).batch.X.nnz >= min(features, 1)


def test_columns_beyond_the_number_given(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 3:1\n1 4:1\n")
    assert svmlight.read(path, features=4).X.shape == (2, 4)
    with pytest.raises(SvmlightError, match="line 2, column 3: expected an index up to 3, found 4"):
        svmlight.read(path, features=3)
    path.write_text("1 0:1\n1 4:1\n")
    with pytest.raises(ValueError, match="features must be 5 or more, as indices go from 0 to 4; got 4"):
        svmlight.read(path, features=4)
    with pytest.raises(ValueError, match="features must be 1 or more; got 0"):
        svmlight.read(path, features=0)


def test_the_largest_indices(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(f"1 {2**31 - 1}:1\n1 {2**31}:2\n1 {2**63 - 2}:3\n1 {2**31 + 1}:4\n")
    X, _ = svmlight.read(path)
    assert X.shape[1] == 2**63 - 2
    assert X.indices.tolist() == [2**31 - 2, 2**31 - 1, 2**63 - 3, 2**31]


def test_an_empty_file_and_other_troubles(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("# nothing\n\n")
    with pytest.raises(SvmlightError, match=r"a.svm: there are no rows to read"):
        svmlight.read(path)
    assert list(svmlight.chunks(path)) == []
    path.write_text("1\n-1\n")
    assert svmlight.read(path).X.shape == (2, 0)
    assert svmlight.read(path, features=5).X.shape == (2, 5)
    with pytest.raises(ValueError, match="on_error must be"):
        svmlight.read(path, on_error="no")
    with pytest.raises(ValueError, match="zero_based must be"):
        svmlight.read(path, zero_based=3)
    with pytest.raises(FileNotFoundError):
        svmlight.chunks(tmp_path / "no.svm")
    path.write_bytes(gzip.compress(b"1 2:3\n" * 200_000)[:-30])
    with pytest.raises(SvmlightError, match=r"line 19\d{4}: the file cannot be read from here on"):
        svmlight.read(path, on_error="skip")


def test_batches_can_be_left_and_read_again(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.svm", "b.svm")]
    for number, path in enumerate(paths):
        with open(path, "w") as file:
            file.writelines(f"{number} {k + 1}:1\n" for k in range(1000))
    batches = svmlight.chunks(paths, size=100)
    assert next(batches).rows > 0
    batches.close()
    assert list(batches) == []
    with svmlight.chunks(paths, size=100) as batches:
        assert sum(chunk.rows for chunk in batches) == 2000
    assert batches.total_bytes == batches.bytes_read
    chunk = next(svmlight.chunks(paths))
    assert chunk.take(np.array([5, 3])).X.indices.tolist() == [5, 3]
    with pytest.raises(ValueError, match="no digest is computed"):
        batches.digest()


def test_standard_input_and_files_together(tmp_path, monkeypatch):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 3)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"2 5:1\n" * 4))))
    with svmlight.chunks([path, "-", path], size=7) as batches:
        assert batches.total_bytes is None
        assert np.concatenate([chunk.y for chunk in batches]).tolist() == [1] * 3 + [2] * 4 + [1] * 3
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"2 5:1\n2 x\n")))
    with pytest.raises(SvmlightError, match=r"^<stdin>, line 2, column 3: "):
        svmlight.read("-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"2 5:1\nspam\n")))
    with pytest.raises(LabelError, match="text=True"):  # it cannot be read again
        svmlight.read("-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"2 5:1\nspam\n")))
    assert svmlight.read("-", text=True).y.tolist() == ["2", "spam"]


def test_a_line_number_counts_in_its_own_file(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n" * 10)
    (tmp_path / "b.svm").write_text("1 1:1\n" * 3 + "1 x\n")
    for size in (1, 1 << 20):
        with pytest.raises(SvmlightError, match=r"b.svm, line 4, column 3"):
            list(svmlight.chunks(tmp_path, size=size))
        skipping = svmlight.chunks([tmp_path / "b.svm"] * 2, size=size, on_error="skip")
        assert sum(chunk.rows for chunk in skipping) == 6
        assert [error.line for error in skipping.errors] == [4, 4]


def test_the_reading_is_kept_with_a_model():
    reading = Svmlight(text=True)
    assert Svmlight.from_parts(reading.to_parts()) == reading
    assert reading.name(17) == "17"
    assert reading.features is None
    assert reading.fit([]) is reading
    for wrong in ({"text": "yes"}, {"text": None, "more": 1}):
        with pytest.raises((ValueError, TypeError), match=r"LIBSVM|true or false"):
            Svmlight.from_parts(Parts(wrong))


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("as it was")
    for label in ("two words", "a:b", "", "a#"):
        with pytest.raises(ValueError, match="cannot be written"):
            svmlight.write(path, np.eye(1), [label])
    with pytest.raises(ValueError, match="infinite or NaN"):
        svmlight.write(path, [[np.nan]], [1])
    with pytest.raises(ValueError, match="y has 2 values, and X has 1 rows"):
        svmlight.write(path, np.eye(1), [1, 2])
    assert path.read_text() == "as it was"
    svmlight.write(path, np.eye(2), ["spam", "ham"])
    assert path.read_text() == "spam 1:1\nham 2:1\n"
    svmlight.write(path, np.eye(2) * 0.1)
    assert path.read_text() == "1:0.1\n2:0.1\n"
