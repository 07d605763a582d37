"""Tables of every format become the same rows, however they are cut, and what cannot be read is said or left out."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh64

from rosenblatt import Perceptron
from rosenblatt.data.tables import Table, TableError
from rosenblatt.data.tables.encoders import CategoryEncoder
from rosenblatt.data.tables.sources import form_of
from rosenblatt.data.tables.values import as_numbers, has_leading_zeros, numbers_of, with_leading_zeros
from rosenblatt.errors import UnsupportedOperation
from rosenblatt.modelfile.parts import Parts

ROWS = [
    {"label": "spam", "age": 3, "sure": True, "colour": "red", "note": 'free "prize" inside'},
    {"label": "ham", "age": 5.5, "sure": False, "colour": "blue", "note": "hello there,\nfriend"},
    {"label": "ham", "age": -1, "sure": True, "colour": "red", "note": "free hello"},
    {"label": "spam", "age": 8, "sure": False, "colour": "red", "note": "a free prize"},
]


def delimited(rows, delimiter=",", quoting=csv.QUOTE_MINIMAL):
    file = io.StringIO()
    writer = csv.DictWriter(file, ROWS[0], delimiter=delimiter, quoting=quoting, quotechar=None if quoting else '"')
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def parts_of(table):
    parts = table.to_parts()
    return parts.facts, parts.arrays


def write_table(path, rows):
    """The rows in a file of the format that its name asks for."""
    suffix = path.name.partition(".")[2]
    plain = [{**row, "note": row["note"].replace("\n", " ")} for row in rows]
    if suffix == "parquet":
        pa.parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
    elif suffix in ("arrow", "arrows"):
        table = pa.Table.from_pylist(rows)
        table = table.set_column(3, "colour", table["colour"].dictionary_encode())
        with (pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream)(path, table.schema) as file:
            file.write_table(table)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "tsv":
        path.write_text(delimited(plain, "\t", csv.QUOTE_NONE))
    else:
        content = delimited(rows).encode()
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    return str(path)


def rows_of(table, paths, **options):
    return table.chunk(table.concatenate(list(table.batches(paths, **options))))


def same(a, b):
    """Whether two chunks are the same, bit for bit."""
    parts = [(a.X.data, b.X.data), (a.X.indices, b.X.indices), (a.X.indptr, b.X.indptr)]
    return all(x.tobytes() == y.tobytes() for x, y in parts) and list(a.y) == list(b.y)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    path = write_table(tmp_path_factory.mktemp("table") / "a.csv", ROWS)
    table = Table(min_count=1)
    return table.fit(table.batches([path])), path


FORMATS = ["csv", "csv.gz", "tsv", "jsonl", "parquet", "arrow", "arrows"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_rows(suffix, tmp_path, learned):
    table, path = learned
    expected = rows_of(table, [path])
    other = write_table(tmp_path / f"b.{suffix}", ROWS)
    fresh = Table(min_count=1)
    fresh = fresh.fit(fresh.batches([other], size=30))
    assert fresh.kinds == table.kinds
    batches = fresh.batches([other, other], size=30)
    chunks = [fresh.chunk(batch) for batch in batches]
    assert [label for chunk in chunks for label in chunk.y] == 2 * list(expected.y)
    found = np.concatenate([chunk.X.toarray() for chunk in chunks])
    assert found.tolist() == [*expected.X.toarray().tolist(), *expected.X.toarray().tolist()]
    assert same(rows_of(table, [other]), expected)
    content = Path(other).read_bytes()
    assert batches.digest() == xxh64(2 * content).hexdigest()
    assert batches.bytes_read == batches.total_bytes == 2 * len(content)


def test_columns_have_names_and_values(learned):
    table, path = learned
    assert table.kinds == {"label": "target", "age": "number", "sure": "boolean", "colour": "category", "note": "text"}
    names = [table.name(column) for column in range(table.features)]
    assert names[:6] == ["age", "sure", "colour=red", "colour=blue", "note:free", "note:free prize"]
    chunk = rows_of(table, [path])
    ages = np.array([3, 5.5, -1, 8])
    X = chunk.X.toarray()
    np.testing.assert_allclose(X[:, 0], (ages - ages.mean()) / ages.std(), rtol=1e-14)
    assert X[:, 1:4].tolist() == [[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 0]]
    np.testing.assert_allclose(np.linalg.norm(X[:, 4:], axis=1), 1)
    with pytest.raises(IndexError, match="there is no column 99"):
        table.name(99)


FIELDS = st.text(st.sampled_from('ab ,"\n1'), max_size=5)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(st.sampled_from("xy"), FIELDS, st.integers(-5, 5)), min_size=1, max_size=8),
    size=st.integers(1, 60),
    bits=st.sampled_from([None, 6]),
)
def test_any_cut_gives_the_same_reading_and_the_same_rows(rows, size, bits):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("y", "t", "n"), *rows])
        options = {"text": "t", "numeric": "n", "min_count": 1, "hashing": bits, "characters": (1, 2)}
        whole, cut = Table("y", **options), Table("y", **options)
        whole = whole.fit(whole.batches([path]))
        cut = cut.fit(cut.batches([path], size=size))
        (facts, arrays), (others, more) = parts_of(whole), parts_of(cut)
        assert facts == others
        assert {name: array.tobytes() for name, array in arrays.items()} == {n: a.tobytes() for n, a in more.items()}
        assert same(rows_of(whole, [path]), rows_of(cut, [path], size=size))
        texts = [text for batch in cut.batches([path], size=size) for text in batch.columns["t"].to_pylist()]
        assert texts == [text for _, text, _ in rows]


@settings(deadline=None, max_examples=30)
@given(fields=st.lists(FIELDS, max_size=6), size=st.integers(1, 40))
def test_an_error_names_its_line_whatever_is_quoted_before_it(fields, size):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("y", "t", "n"), *(("a", f"{text}.", 1) for text in fields)])
            line = 1 + Path(path).read_text().count("\n") if not file.flush() else 0
            file.write("\na,b,c,d\nz,b,no\n")
        table = Table("y", text="t", numeric="n", header=True)
        batches = table.batches([path], on_error="skip", size=size)
        rows = sum(batch.rows for batch in batches)
        assert (rows, batches.skipped) == (len(fields), 2)
        assert [error.line for error in batches.errors] == [line + 1, line + 2]


def test_what_was_written_is_restored(learned):
    table, path = learned
    facts, arrays = parts_of(table)
    again = Table.from_parts(Parts(json.loads(json.dumps(facts)), dict(arrays)))
    assert same(rows_of(again, [path]), rows_of(table, [path]))
    assert again.to_parts().facts == facts
    assert again.notes == table.notes
    assert again.features == table.features


@pytest.mark.parametrize(("delimiter", "given"), [(":", ":"), (";", None), ("|", None)])
def test_a_delimiter_is_found_and_remembered(delimiter, given, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y;n\na;1\nb;2\n".replace(";", delimiter))
    table = Table(delimiter=given)
    again = Table.from_parts(table.fit(table.batches([path])).to_parts())
    assert rows_of(again, [path]).y.tolist() == ["a", "b"]


def broken(facts, *place):
    """Every way to put something strange into facts."""
    found = facts
    for key in place:
        found = found[key]
    for key in found if isinstance(found, dict) else range(len(found)):
        for strange in (None, -1, "strange", [], {}, 1e9, [[]], True):
            copy = json.loads(json.dumps(facts))
            inner = copy
            for step in place:
                inner = inner[step]
            if inner[key] != strange or type(inner[key]) is not type(strange):
                inner[key] = strange
                yield copy


def test_facts_that_cannot_be_are_refused_or_harmless(learned):
    table, _ = learned
    facts, arrays = parts_of(table)
    places = [(), ("schema",), ("schema", "form"), ("schema", "columns"), ("schema", "columns", 1), ("treatments",)]
    places += [("treatments", number) for number in range(len(facts["treatments"]))]
    refused = 0
    for damaged in (one for place in places for one in broken(facts, *place)):
        try:
            again = Table.from_parts(Parts(damaged, dict(arrays)))
        except (ValueError, TypeError, KeyError):
            refused += 1
            continue
        assert isinstance(again.features, int)
    assert refused > 300
    for name in arrays:
        with pytest.raises((ValueError, KeyError), match=r"."):
            Table.from_parts(Parts(facts, {key: array for key, array in arrays.items() if key != name}))
        with pytest.raises((ValueError, KeyError), match=r"."):
            Table.from_parts(Parts(facts, {**arrays, name: arrays[name][:-1]}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("label,age,sure,colour,note\nspam,x,true,red,a b\n", "line 2, column 'age': 'x' is not a number"),
        ("label,age,sure,colour,note\nspam,inf,true,red,a b\n", "line 2, column 'age': 'inf' is not a number"),
        ("label,age,sure,colour,note\n\nspam,1,maybe,red,a\n", "line 3, column 'sure': 'maybe' is not true or false"),
        ("label,age,sure,colour,note\nspam,,true,red,a b\n", "line 2, column 'age': the value is missing"),
        ("label,age,sure,colour,note\nspam,NA,true,red,a b\n", "line 2, column 'age': the value is missing"),
        ("label,age,sure,colour,note\nspam,1,true,,a b\n", "line 2, column 'colour': the value is missing"),
        ("label,age,sure,colour,note\nspam,1,true,red,\n", "line 2, column 'note': the value is missing"),
        ("label,age,sure,colour,note\n  ,1,true,red,a\n", "line 2, column 'label': the label is missing"),
        ("label,age,sure,colour,note\nspam,1,true,red\n", "line 2: 4 fields where there are 5 columns"),
        ("label,age,sure,colour\nspam,1,true,red\n", "do not fit: column note .text. is missing"),
        ("label,age,age,sure,colour,note\nspam,1,1,true,red,a\n", "column age is there twice"),
        ("label,sure,colour,note,years\n" + "a,true,red,b,3\n", r"column age \(number\) is missing; the file has years"),
        ("label,age,sure,colour,note\n" + 10 * "spam,x,true,red,a b\n", r"column age \(number\) holds 'x' and the like"),
        ("", "there are no rows"),
        ("label,age,sure,colour,note\n", "there are no rows"),
        ('label,age,sure,colour,note\nspam,1,true,red,"a b\n', "line 2: a quote that opens in this row is not closed"),
    ],
)
def test_what_cannot_be_read_is_said(content, message, tmp_path, learned):
    table, _ = learned
    path = tmp_path / "b.csv"
    path.write_text(content)
    with pytest.raises(TableError, match=message) as caught:
        list(table.batches([path]))
    assert str(path) in str(caught.value)


def test_bytes_that_are_not_utf8_are_said_with_their_line(tmp_path, learned):
    table, _ = learned
    path = tmp_path / "b.csv"
    path.write_bytes(b"label,age,sure,colour,note\nham,1,true,red,\xff\nham,1,true,red,x\nham,a,true,red,x\n")
    with pytest.raises(TableError, match="line 2: the byte 0xFF at byte 16 is not UTF-8"):
        list(table.batches([path]))
    batches = table.batches([path], on_error="skip")
    assert sum(batch.rows for batch in batches) == 1
    assert [error.line for error in batches.errors] == [2, 4]
    quoted = b'ham,1,true,red,"x\n\xff\ny"\nham,2,true,red,"ok\nno"\nham,"1\n\xff",true,red,x\nham,3,true,red,\n'
    path.write_bytes(b"label,age,sure,colour,note\n" + quoted)
    batches = table.batches([path], on_error="skip")
    assert [note for batch in batches for note in batch.columns["note"].to_pylist()] == ["ok\nno"]
    assert [error.line for error in batches.errors] == [3, 8, 9]


def test_json_lines_say_what_is_wrong_and_skip_it(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = ['{"y": 1, "t": "free prize"}', "oops", "", "[1]", '{"y": 2, "t": null}', '{"y": 2}', '{"y": 2, "t": 7}', "{"]
    path.write_text("\n".join([*lines, '{"y": "x", "t": "\\ud800"}', '{"y": 1, "t": "2020-01-01", "z": {"a": [1]}}']))
    table = Table(text="t", min_count=1)
    batches = table.batches([path], on_error="skip")
    assert [text for batch in batches for text in batch.columns["t"].to_pylist()] == ["free prize", "7", "2020-01-01"]
    assert [error.line for error in batches.errors] == [2, 4, 5, 6, 8, 9]
    assert batches.skipped == 6
    with pytest.raises(TableError, match=r"a.jsonl, line 2: this is not JSON"):
        list(table.batches([path]))


def test_rows_of_parquet_have_numbers_and_missing_values_are_filled_on_request(tmp_path):
    path = tmp_path / "a.parquet"
    values = [(1, 1.0, "a", "x y"), (2, None, None, None), (1, 3.0, "b", "x z")]
    rows = [dict(zip("ynct", row, strict=True)) for row in values]
    pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(TableError, match=r"a.parquet, row 2, column 'n': the value is missing; try missing='fill'"):
        list(Table(text="t").batches([path]))
    table = Table(text="t", missing="fill", tfidf=False, ngrams=(1, 1))
    table = table.fit(table.batches([path]))
    for each in (table, Table.from_parts(table.to_parts())):
        names = [each.name(column) for column in range(each.features)]
        assert names == ["n", "c=a", "c=(missing)", "c=b", "t:x"]
        chunk = rows_of(each, [path])
        assert chunk.X.toarray().tolist() == [[-1, 1, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 0, 1, 1]]
        assert chunk.y.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("content", "options", "names"),
    [
        ("spam\tfree\nham\thello\n", {"target": 0, "text": 1}, ["0", "1"]),
        ("kind\tnumber\nspam\t3\nham\t4\n", {"target": 0}, ["kind", "number"]),
        ("spam\t3\nham\t4\n", {"target": 0, "numeric": "1"}, ["0", "1"]),
        ("kind\twords\nspam\tfree\n", {"target": "kind", "text": "words"}, ["kind", "words"]),
        ("label\twords\nspam\tfree\n", {"text": 1}, ["label", "words"]),
        ("kind\twords\nspam\tfree\n", {"target": 0, "text": -1, "header": True}, ["kind", "words"]),
        ("label\twords\nspam\tfree\n", {"target": 0, "text": 1}, ["label", "words"]),
        ("\ufeffy\twords\nspam\tfree\n", {"text": "words"}, ["y", "words"]),
        ("\ty\twords\n0\tspam\tfree\n", {"text": "words"}, ["unnamed: 0", "y", "words"]),
    ],
)
def test_a_header_is_told_from_a_row(content, options, names, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(content)
    table = Table(**options, min_count=1)
    table = table.fit(table.batches([path]))
    assert list(table.kinds) == names
    assert "unnamed: 0" not in names or table.kinds["unnamed: 0"] == "ignored"


def test_what_columns_are_is_decided_and_stated(tmp_path):
    path = tmp_path / "a.csv"
    lines = [
        f"{i},{i % 2},{i / 7},key{i},{'red' if i % 3 else 'blue'},some words of {i},yes,,{i % 2 > 0},これは例{i}"
        for i in range(60)
    ]
    path.write_text("id,target,size,key,colour,note,constant,empty,odd,japanese\n" + "\n".join(lines))
    table = Table()
    table = table.fit(table.batches([path], size=100))
    assert table.kinds == {
        "id": "ignored", "target": "target", "size": "number", "key": "ignored", "colour": "category", "note": "text",
        "constant": "category", "empty": "ignored", "odd": "boolean", "japanese": "text",
    }  # fmt: skip
    assert table.notes[0] == f"the first line of {path} is the names of the columns"
    assert (
        "column key: ignored, as an identifier: 60 different values of 1.0 words on average in the first 60 rows"
        in table.notes
    )
    assert "2 columns are categories, as values come back: colour, constant" in table.notes
    assert len(table.notes) == 1 + 8
    with pytest.raises(ValueError, match="text='size' and numeric='size' cannot be used together"):
        list(Table(text="size", numeric="size").batches([path]))


def decided_on(tmp_path, content, name="a.csv", **options):
    path = tmp_path / name
    path.write_text(content)
    table = Table(**options)
    return table.fit(table.batches([path])), path


def test_dates_are_ignored_and_codes_are_categories(tmp_path):
    lines = [
        f"{i % 2},2024-01-{i + 1:02},2024-01-{i + 1:02} 10:0{i}:00,2024-01-01T0{i}:00Z,{i * 137:05}," for i in range(6)
    ]
    content = "y,day,time,zone,zip,n\n" + "\n".join(f"{line}{i}" for i, line in enumerate(lines)) + "\n0,,NA,,NA,3\n"
    table, _ = decided_on(tmp_path, content, missing="fill")
    ignored = dict.fromkeys(("day", "time", "zone"), "ignored")
    assert table.kinds == {"y": "target", **ignored, "zip": "category", "n": "number"}
    assert "3 columns are ignored, as dates are neither number nor text: day, time, zone" in table.notes
    assert any(note.startswith("column zip: category, as numbers do not begin with 0: ") for note in table.notes)
    assert "zip=00137" in [table.name(column) for column in range(table.features)]
    table, _ = decided_on(tmp_path, content, missing="fill", numeric="zip", categories=["day"])
    assert (table.kinds["zip"], table.kinds["day"]) == ("number", "category")
    table, _ = decided_on(tmp_path, "y,a,b\n1,0,007.5\n0,10,1\n")
    assert table.kinds == {"y": "target", "a": "number", "b": "number"}


def test_columns_alike_share_a_note(tmp_path):
    names = [f"c{i}" for i in range(57)]
    table, _ = decided_on(tmp_path, "y," + ",".join(names) + "\n" + "1" + ",2" * 57 + "\n")
    assert len(table.notes) == 3
    assert table.notes[-1].startswith("57 columns are numbers, as all of the first 1 rows say: c0, c1, c2, ")
    assert table.notes[-1].endswith(", c11, …")


def test_a_first_line_that_may_be_names_is_pointed_out(tmp_path):
    rows = "spam\tfree prize\nham\tsee you\n" * 2
    for first, doubted in (("kind\twords\n", True), ("spam\tno words\n", False), ("", False)):
        table, _ = decided_on(tmp_path, first + rows, "a.tsv", target=0, text=1)
        assert (
            "'kind' is the label of the first line only; if that line names the columns: --header, header=True"
            in table.notes
        ) == doubted
    table, _ = decided_on(tmp_path, "kind\twords\n" + rows, "a.tsv", target=0, text=1, header=False)
    assert table.notes == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["007", "7", "A1", "7"], ["007", "7", "A1", "7"]),
        (["007", "7", "12", "7"], ["007", "7", "12", "7"]),
        (["1", "+1", "1.0", "-2e0"], [1.0, 1.0, 1.0, -2.0]),
        (["0", "1", "10", "0"], [0.0, 1.0, 10.0, 0.0]),
    ],
)
def test_labels_stay_apart_as_they_stand(tmp_path, labels, expected):
    content = "label,n\n" + "".join(f"{label},{i}\n" for i, label in enumerate(labels))
    table, path = decided_on(tmp_path, content)
    assert rows_of(table, [path]).y.tolist() == expected
    assert table.labels([path])[1].tolist() == sorted(set(expected))
    again = Table.from_parts(table.to_parts())
    assert rows_of(again, [path], size=5).y.tolist() == expected


@pytest.mark.parametrize("content", ['[{"y": 1, "t": 2}]', '[\n  {"y": 1, "t": 2},\n  {"y": 0, "t": 3}\n]\n'])
@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_an_array_of_json_is_named(tmp_path, content, name):
    path = tmp_path / name
    path.write_text(content)
    for on_error in ("error", "skip"):
        with pytest.raises(TableError, match="line 1: this is a JSON array; give one object a line"):
            list(Table().batches([path], on_error=on_error))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("target", [None, 0, "größe"])
def test_another_encoding_is_said_whatever_is_asked(tmp_path, encoding, target):
    path = tmp_path / "a.csv"
    path.write_bytes("größe,n\nspam,1\nham,2\n".encode(encoding))
    message = "not UTF-8; convert the file"
    with pytest.raises(TableError, match=rf"a.csv, line 1: .*{message}"):
        list(Table(target).batches([path]))


def test_the_label_must_be_known(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("colour,size\nred,3\n")
    with pytest.raises(TableError, match=r"which column is the label\? The columns are colour, size; .* try target='size'"):
        list(Table().batches([path]))
    with pytest.raises(TableError, match=r"there is no column 'color'; the columns are colour, size"):
        list(Table("color").batches([path]))
    with pytest.raises(TableError, match=r"there is no column number 2; they go from 0 to 1"):
        list(Table(2).batches([path]))
    with pytest.raises(TableError, match=r"no column is left to learn from besides the label 'colour'"):
        list(Table("colour", ignore=["size"]).batches([path]))


def test_prediction_needs_no_label_and_no_weight(tmp_path):
    train, test = tmp_path / "a.csv", tmp_path / "b.csv"
    train.write_text("y,w,n,c\n1,2,3,red\n0,1,5,blue\n")
    test.write_text("extra,c,n\n,red,3\n,green,5\n")
    table = Table(weight="w")
    table = table.fit(table.batches([train]))
    chunk = rows_of(table, [train])
    assert (chunk.weight.tolist(), chunk.y.tolist()) == ([2, 1], [1, 0])
    chunk = rows_of(table, [test], labelled=False)
    assert chunk.y is None
    assert chunk.weight is None
    assert chunk.X.toarray().tolist() == [[-1, 1, 0], [1, 0, 0]]
    assert table.unseen == 1
    with pytest.raises(TableError, match=r"column y \(target\) is missing; column w \(weight\) is missing"):
        list(table.batches([test]))
    train.write_text("y,w,n,c\n1,-2,3,red\n")
    with pytest.raises(TableError, match=r"line 2, column 'w': -2.0 is not a weight"):
        list(table.batches([train]))


def test_a_table_without_a_target_has_no_labels_to_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,n\n1,3\n0,5\n")
    table = Table(scale="none")
    parts = table.fit(table.batches([path])).to_parts()
    schema = parts.facts["schema"] | {"columns": [["n", "number"]], "labels": None}
    bare = Table.from_parts(Parts(parts.facts | {"schema": schema}, parts.arrays))
    assert rows_of(bare, [path], labelled=False).X.toarray().tolist() == [[3.0], [5.0]]
    with pytest.raises(UnsupportedOperation, match="fitted without labels") as raised:
        bare.batches([path])
    assert raised.value.settings == {"labelled": False}


@pytest.mark.parametrize(
    ("train", "suffix", "typed", "texts"),
    [
        ("spam\tfree prize\nham\thello\n", "tsv", 'a "free, prize\nhello\n', ['a "free, prize', "hello"]),
        ("spam\tfree prize\nham\thello\n", "tsv", "ham\tfree prize\n", ["free prize"]),
        ("label,text\nspam,free prize\n", "csv", "free prize, inside\n\nhello\n", ["free prize, inside", "", "hello"]),
        ("label,text\nspam,free prize\n", "csv", 'text\n"free prize, inside"\n', ["free prize, inside"]),
        ('{"label": 1, "text": "free prize"}\n', "jsonl", "free prize\n", ["free prize"]),
        ('{"label": 1, "text": "free prize"}\n', "jsonl", '{"text": "free prize"}\n', ["free prize"]),
    ],
)
def test_a_line_of_text_is_a_row_where_text_is_all_there_is(train, suffix, typed, texts, tmp_path, monkeypatch):
    path = tmp_path / f"a.{suffix}"
    path.write_text(train)
    table = Table(*([0] if suffix == "tsv" else []), text=1 if suffix == "tsv" else "text", min_count=1)
    table = table.fit(table.batches([path]))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    [batch] = table.batches(["-"], labelled=False)
    assert next(iter(batch.columns.to_pydict().values())) == texts
    assert table.chunk(batch).rows == len(texts)


def test_columns_without_names_may_come_without_the_label(tmp_path):
    train, test = tmp_path / "a.csv", tmp_path / "b.csv"
    train.write_text("1,spam,red,7\n2,ham,blue,8\n")
    table = Table(1, categories=2, ignore=0)
    table = table.fit(table.batches([train]))
    expected = rows_of(table, [train]).X.toarray().tolist()
    for content in ("1,red,7\n2,blue,8\n", "red,7\nblue,8\n"):
        test.write_text(content)
        assert rows_of(table, [test], labelled=False).X.toarray().tolist() == expected
        with pytest.raises(TableError, match=r"fields .* where there must be 4, without a header"):
            list(table.batches([test]))


def test_a_constant_column_is_zero_and_numbers_may_stay_as_they_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,n,m\n0,0.1,3\n1,0.1,4\n0,0.1,0\n")
    table = Table()
    assert rows_of(table.fit(table.batches([path])), [path]).X.toarray()[:, 0].tolist() == [0, 0, 0]
    table = Table(scale="none", dtype="float32")
    chunk = rows_of(table.fit(table.batches([path])), [path])
    assert chunk.X.dtype == np.float32
    assert chunk.X.toarray().tolist() == np.array([[0.1, 3], [0.1, 4], [0.1, 0]], np.float32).tolist()


def test_too_many_categories_are_refused_and_hashed_on_request(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,c\n" + "".join(f"{i % 2},c{i}\n" for i in range(30)))
    with pytest.raises(ValueError, match=r"column 'c' has more than 20 categories; .* hashing=18"):
        Table(categories="c", one_hot_limit=20).fit(Table(categories="c").batches([path]))
    table = Table(categories="c", one_hot_limit=20, hashing=5)
    table = table.fit(table.batches([path]))
    X = rows_of(table, [path]).X
    assert X.shape == (30, 32)
    assert X.sum(axis=1).tolist() == [[1]] * 30
    assert table.name(7) == "c=bucket 7"
    assert same(rows_of(Table.from_parts(table.to_parts()), [path]), rows_of(table, [path]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "missing must be one of 'error', 'fill'; got 'drop'"),
        ({"scale": "log"}, "scale must be one of 'standard', 'none'; got 'log'"),
        ({"format": "xls"}, "format must be one of None, 'csv'"),
        ({"ngrams": (2, 1)}, r"ngrams must be \(low, high\) .*; got \(2, 1\)"),
        ({"ngrams": None}, "a text column would have no features"),
        ({"hashing": 40}, "hashing must be a number of bits from 1 to 30"),
        ({"min_count": 0}, "min_count must be a whole number"),
        ({"delimiter": "||"}, r"delimiter must be one ASCII character"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Table(**options)


def test_garbage_is_refused_in_every_format(tmp_path):
    garbage = np.random.default_rng(0).integers(0, 256, 2000, np.uint8).tobytes()
    for suffix in ("csv", "tsv", "jsonl", "parquet", "arrow", "arrows", "txt"):
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(garbage)
        with pytest.raises(TableError, match=str(path)):
            list(Table(0, text=1).batches([path]))
    whole = write_table(tmp_path / "b.csv.gz", ROWS)
    Path(whole).write_bytes(Path(whole).read_bytes()[:-20])
    with pytest.raises(ValueError, match="cannot be read from here on"):
        list(Table().batches([whole]))


def test_nothing_goes_without_learning():
    with pytest.raises(ValueError, match="has learned nothing yet"):
        Table().name(0)
    with pytest.raises(ValueError, match="no batches to learn from"):
        Table().fit([])
    assert Table().features is None


def test_words_speak_for_spam(tmp_path):
    path = tmp_path / "a.tsv"
    lines = [f"{'spam' if i % 3 else 'ham'}\t{'free prize' if i % 3 else 'see you'} at {i}" for i in range(60)]
    path.write_text("\n".join(lines))
    table = Table(0, text=1)
    table = table.fit(table.batches([path]))
    chunk = rows_of(table, [path])
    learner = Perceptron(max_iter=10).fit(chunk.X, chunk.y)
    assert learner.score(chunk.X, chunk.y) == 1
    assert table.name(int(np.argmax(learner.coef_[0]))) in ("1:free", "1:prize", "1:free prize", "1:prize at")


def test_without_pyarrow_the_message_says_what_to_install():
    code = "import sys; sys.modules['pyarrow'] = None; import rosenblatt.data.tables"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert "MissingDependency: tables need the package pyarrow" in done.stderr
    assert "pip install 'rosenblatt[tables]'" in done.stderr


WORDS = st.sampled_from(["a", "b c", "2020-01-01"])
JSON = st.none() | st.integers(-3, 3) | st.floats(-1, 1) | WORDS | st.booleans()


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(st.dictionaries(st.sampled_from("abc"), JSON), min_size=1, max_size=6), size=st.integers(1, 60))
def test_json_lines_may_hold_anything_and_any_cut_gives_the_same(rows, size):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.jsonl"
        lines = [json.dumps({"y": number % 2, "t": "some words", **row}) for number, row in enumerate(rows)]
        Path(path).write_text("\n".join(lines))
        whole, cut = Table(text="t", missing="fill", min_count=1), Table(text="t", missing="fill", min_count=1)
        first, second = whole.batches([path], on_error="skip"), cut.batches([path], on_error="skip", size=size)
        whole, cut = whole.fit(first), cut.fit(second)
        assert whole.kinds == cut.kinds
        assert first.skipped == second.skipped
        assert same(rows_of(whole, [path], on_error="skip"), rows_of(cut, [path], on_error="skip", size=size))


def test_a_hundred_errors_are_remembered_and_all_are_counted(tmp_path, learned):
    table, _ = learned
    path = tmp_path / "b.csv"
    path.write_text("label,age,sure,colour,note\n" + "ham,1,true,red,ok\nham,x,true,red,no\nham,1\n" * 120)
    batches = table.batches([path], on_error="skip", size=1000)
    assert sum(batch.rows for batch in batches) == 120
    assert batches.skipped == 240
    assert [error.line for error in batches.errors] == [line for line in range(2, 152) if line % 3 != 2]


def arrow_text(*values):
    """Bytes as a column that is said to be text."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_text_that_is_not_utf8_in_columns_is_said_or_skipped(suffix, tmp_path):
    path = str(tmp_path / f"a.{suffix}")
    columns = {"label": pa.array(["x", "y"] * 20), "t": arrow_text(b"b c", b"a\xe4").take(pa.array([0, 1] * 20))}
    content = pa.table(columns)
    if suffix == "parquet":
        pa.parquet.write_table(content, path)
    else:
        with pa.ipc.new_file(path, content.schema) as file:
            file.write_table(content)
    table = Table(text="t", lowercase=False, min_count=1)
    with pytest.raises(TableError, match=r"row 2, column 't': the byte 0xE4 at byte 2 is not UTF-8"):
        table.fit(table.batches([path], size=300))
    batches = table.batches([path], on_error="skip", size=300)
    assert sum(batch.rows for batch in batches) == batches.skipped == 20
    other = Table(ignore="t")
    with pytest.raises(TableError, match="no column is left"):  # and nothing is said about what is not used
        list(other.batches([path]))


def test_json_that_is_not_utf8_is_said_with_line_and_column_or_skipped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"label": "x", "t": "b c"}\n{"label": "y", "t": "a\xe4"}\n{"label": "y", "t": "d"}\n')
    table = Table(text="t", lowercase=False, min_count=1)
    with pytest.raises(TableError, match=r"line 2: column t: the byte 0xE4 at byte 23 is not UTF-8"):
        table.fit(table.batches([path]))
    batches = table.batches([path], on_error="skip")
    assert [batch.columns["t"].to_pylist() for batch in batches] == [["b c", "d"]]
    assert batches.skipped == 1


def test_a_damaged_arrow_file_is_refused_or_read(tmp_path):
    path = tmp_path / "a.arrow"
    whole = pa.table({"label": ["x", "y"] * 20, "c": [f"some words here {i}" for i in range(40)]})
    with pa.ipc.new_file(path, whole.schema) as file:
        file.write_table(whole)
    content, draw = path.read_bytes(), np.random.default_rng(1)
    table, outcomes = Table(text="c"), set()
    for _ in range(150):
        damaged = bytearray(content)
        for at in draw.integers(len(content), size=2):
            damaged[at] = draw.integers(256)
        path.write_bytes(damaged)
        try:
            table.fit(table.batches([path]))
            outcomes.add("read")
        except ValueError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_bytes_are_no_feature_unless_they_are_named(tmp_path):
    path = tmp_path / "a.parquet"
    bytes_of = {"large": pa.large_binary(), "fixed": pa.binary(2), "some": pa.binary()}
    columns = {name: pa.array([b"ab", b"\xffb"] * 20, kind) for name, kind in bytes_of.items()}
    columns["guid2"] = pa.array([bytes([i] * 16) for i in range(40)], pa.uuid())
    pa.parquet.write_table(pa.table({"label": ["x", "y"] * 20, "n": range(40), **columns}), path)
    table = Table()
    table = table.fit(table.batches([path]))
    assert {kind for name, kind in table.kinds.items() if name not in ("label", "n")} == {"ignored"}
    named = Table(text="fixed")
    with pytest.raises(TableError, match="row 2, column 'fixed': the byte 0xFF at byte 1"):
        list(named.batches([path]))


STRANGE = ["true", "1", "2.5", "NaN", "null", "9007199254740993", "1" + 25 * "0", "-0.0", '"x"', '{"a": 1}', "[1]", "1e30"]


@pytest.mark.parametrize("kind", ["numeric", "categories", "text", "none"])
@settings(deadline=None, max_examples=25)
@given(values=st.lists(st.sampled_from(STRANGE), min_size=1, max_size=6), size=st.integers(1, 80))
def test_a_value_of_json_is_the_same_whatever_stands_beside_it(kind, values, size):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.jsonl"
        steady = ["1.5", "2"] * 6 if kind == "numeric" else ['"a b"', '"c"'] * 6
        lines = [f'{{"label": "{"ab"[n % 2]}", "n": {n}, "c": {value}}}' for n, value in enumerate(steady + values)]
        Path(path).write_text("\n".join(lines))
        options = {"missing": "fill", "min_count": 1} | ({} if kind == "none" else {kind: "c"})
        found = []
        for cut in (1 << 20, size):
            table = Table("label", **options)
            batches = table.batches([path], on_error="skip", size=cut)
            table = table.fit(batches)
            again = list(table.batches([path], on_error="skip", size=cut))
            column = [value for batch in again for value in batch.columns["c"].to_pylist()]
            found.append((table.kinds, batches.skipped, list(map(str, batches.errors)), list(map(str, column))))
        assert found[0] == found[1]


def test_a_list_in_a_column_of_json_breaks_its_own_line_only(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"label": "x", "n": 1, "more": [1]}, {"label": "y", "n": {"a": 1}}, {"label": "y", "n": 3, "more": {"b": 2}}]
    path.write_text("\n".join(map(json.dumps, rows)))
    table = Table()
    with pytest.raises(TableError, match="line 2, column 'n': a list or an object is neither a number nor text"):
        table.fit(table.batches([path]))
    batches = table.batches([path], on_error="skip")
    assert [value for batch in batches for value in batch.columns["n"].to_pylist()] == [1, 3]
    assert batches.schema.of_kind("ignored") == ["more"]


def test_a_first_record_of_any_length_is_read(tmp_path):
    path = tmp_path / "a.csv"
    names = [f"gene_{i:0220d}" for i in range(300)]  # 68 kB
    rows = [["x" if r % 2 else "y", *(str(i * r % 7) for i in range(300))] for r in range(3)]
    path.write_text("\n".join(",".join(row) for row in [["label", *names], *rows]))
    table = Table(missing="fill")
    table = table.fit(table.batches([path]))
    assert rows_of(table, [path]).X.shape == (3, 300)


def test_a_return_that_stands_alone_ends_a_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'label,a,b\rx,1,foo\ry,2,"b\rc"\r\nx,q,z\n\r\ny,3,z\rx,4')
    table = Table(numeric="a", categories="b")
    for size in (1, 1 << 20):
        batches = table.batches([path], on_error="skip", size=size)
        found = [value for batch in batches for value in batch.columns["b"].to_pylist()]
        assert found == ["foo", "b\rc", "z"]
        assert [error.line for error in batches.errors] == [4, 7]


@pytest.mark.parametrize(("scale", "filled"), [("none", [15, 0.5]), ("standard", [0, 0.5])])
def test_the_mean_is_filled_in(scale, filled, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,a,f\nx,10,true\ny,20,false\nx,,\n")
    table = Table(missing="fill", scale=scale)
    table = table.fit(table.batches([path]))
    assert rows_of(table, [path]).X.toarray()[2].tolist() == filled
    again = Table.from_parts(table.to_parts())
    assert rows_of(again, [path]).X.toarray()[2].tolist() == filled


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("ham;Hello, you\nspam;Free prize\nham;no\n", ";"),
        ('a|"b,c;d"|e\n"f,\n,"|g|h\n', "|"),
        ("a,b;c\nd,e;f\n", ","),
        ("a;b, c\nd;e", ";"),
        ("one\ntwo\n", ","),
        ("a;b\nc,d;e;f\n", ";"),
    ],
)
def test_the_delimiter_is_that_which_stands_in_every_line(content, delimiter):
    assert form_of("csv", content.encode(), None, None).delimiter == delimiter


def test_a_label_that_comes_again_is_no_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,some words\nn,other words\ny,more of them\nn,at the end\n")
    table = Table(0, text=1, min_count=1)
    table = table.fit(table.batches([path]))
    assert rows_of(table, [path]).y.tolist() == ["y", "n", "y", "n"]
    path.write_text("y,text\nn,other words\nx,more of them\nn,at the end\n")
    assert [column.name for column in next(Table(0, text=1).batches([path])).schema.columns] == ["y", "text"]


@pytest.mark.parametrize("beside", ["2", "1 ", "x"])
@pytest.mark.parametrize("nothing", ["-nan", "+NaN", "nan(1)"])
def test_every_way_to_write_nan_is_a_missing_value(nothing, beside):
    _, bad, missing = as_numbers(pa.array([nothing, beside], pa.large_string()))
    assert missing.tolist() == [True, False]
    assert list(bad) == ([1] if beside == "x" else [])


def test_names_of_many_categories_are_found_at_once():
    count = 100_000
    treatment = CategoryEncoder("c", count)
    treatment.see(pa.table({"c": pa.array(map(str, range(count)), pa.large_string())}))
    begin = time.process_time()
    assert [treatment.name(column) for column in range(0, count, 10)] == [f"c={n}" for n in range(0, count, 10)]
    assert time.process_time() - begin < 2  # in the square of them it would take ten


def test_numbers_of_many_columns_are_those_of_each():
    texts = ["1,-0, 2 ", "x,3,na", "007,1,2", "inf,1,2", ",1,nan", "00.5,1,2"]
    columns = [
        *(pa.array(text.split(","), pa.large_string()) for text in texts),
        pa.array([1, None, 3]),
        pa.array([True] * 3),
    ]
    for found, column in zip(numbers_of(columns), columns, strict=True):
        alone = as_numbers(column)
        assert np.array_equal(found.values, alone.values, equal_nan=True)
        assert (found.bad, found.missing.tolist()) == (alone.bad, alone.missing.tolist())
    assert with_leading_zeros(columns) == {at for at, column in enumerate(columns) if has_leading_zeros(column)} == {2}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_wide_tables_take_time_in_proportion_to_their_columns(suffix, tmp_path):
    def seconds(columns):
        path = tmp_path / f"{columns}.{suffix}"
        names = ["label", *(f"c{number}" for number in range(columns))]
        rows = [[mark, *range(row, columns + row)] for row, mark in enumerate("abab")]
        if suffix == "jsonl":
            path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
        else:
            path.write_text("".join(",".join(map(str, row)) + "\n" for row in [names, *rows]))
        begin = time.process_time()
        table = Table()
        table = table.fit(table.batches([path]))
        assert rows_of(table, [path]).X.shape == (4, columns)
        assert table.name(columns - 1) == names[-1]
        return time.process_time() - begin

    seconds(10)
    small, large = (min(seconds(columns) for _ in range(3)) for columns in (1_000, 8_000))
    assert large < 24 * small  # in proportion it would be 8 times as long, in the square 64 times


def test_a_name_that_no_column_has_is_compared_with_those_there_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Colour,size,kind\nred,3,a\nblue,4,b\n")
    for asked, hint in (("colour", "did you mean 'Colour'?"), ("sise", "did you mean 'size'?"), ("zzz", None)):
        with pytest.raises(TableError) as caught:
            list(Table(asked).batches([path]))
        assert caught.value.hint == hint
    with pytest.raises(TableError, match="one name at a time"):
        list(Table("kind", ignore=["Colour,size"]).batches([path]))


def test_a_decimal_comma_is_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('label,age\nspam,"12,5"\nham,3\n')
    with pytest.raises(TableError, match=r"'12,5' is not a number; write numbers with a decimal point"):
        list(Table(numeric=["age"]).batches([path]))


def test_categories_of_several_words_are_said_to_be_so(tmp_path):
    table, _ = decided_on(tmp_path, "label,note\n" + "spam,win a prize now\nham,see you at noon\n" * 60)
    assert any(
        note.startswith("column note: category, as values come back; as text, its words would be learned from: ")
        for note in table.notes
    )
