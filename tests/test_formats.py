"""The one detector of formats: by the suffix of a file, or by how its text begins."""

import json

import numpy as np
import pytest

from rosenblatt.data.formats import FORMATS, READINGS, detect_format, reading_for
from rosenblatt.errors import FormatError, IncompatibleParameters, InvalidData, InvalidParameter
from rosenblatt.modelfile.parts import Parts

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")

TABLES = {
    "semicolons": "label;age;colour\nyes;3;red\nno;5;blue\n",
    "bars": "label|age|colour\nyes|3|red\nno|5|blue\n",
    "bars without a header": "3|red|yes\n5|blue|no\n",
    "padded bars": "label | age | colour\nyes | 3 | red\nno | 5 | blue\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_semicolons_and_bars_separate_tables_in_a_text_file(tmp_path, text):
    path = tmp_path / "table.txt"
    path.write_text(text)
    assert detect_format(path) == "csv"
    target = 2 if "without" in text or text[0] == "3" else "label"
    reading = reading_for([str(path)], target=target)
    reading = reading.fit(reading.batches([str(path)]))
    assert set(reading.kinds.values()) == {"target", "number", "category"}


@pytest.mark.parametrize(
    "line", ["1 |words free offer", "-1 0.5 'tag|words free", "1 2 tag|a b |c d", "|words free", "'x |a b:2", "1 | a b"]
)
def test_bars_after_a_label_are_lines_of_vowpal_wabbit(tmp_path, line):
    path = tmp_path / "lines.txt"
    path.write_text(f"{line}\n" * 3)
    assert detect_format(path) == "vw"


def test_the_reading_of_a_table_detects_what_the_detector_does(tmp_path):
    from rosenblatt.data.tables import Table

    for number, text in enumerate([*TABLES.values(), '\ufeff{"label": 1, "x": 2}\n', "label\tx\n1\t2\n2\t3\n"]):
        path = tmp_path / f"{number}.txt"
        path.write_text(text)
        table = Table(target=2 if text[0] == "3" else None)
        batches = table.batches([str(path)])
        next(batches)
        assert batches.schema.form.format == detect_format(path)


@pytest.mark.parametrize("compression", ["uncompressed", "stream"])
def test_arrow_is_recorded_as_arrow(tmp_path, compression):
    table = pa.table({"label": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    path = tmp_path / "rows.bin"
    if compression == "stream":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    else:
        feather.write_feather(table, str(path), compression="uncompressed")
    assert detect_format(path) == "arrow"
    reading = reading_for([str(path)])
    reading = reading.fit(reading.batches([str(path)]))
    facts = reading.to_parts().facts
    assert facts["schema"]["form"][0] == "arrow"


def test_what_has_no_format_is_refused_with_the_setting_that_helps(tmp_path):
    path = tmp_path / "words"
    path.write_text("just some words\n")
    with pytest.raises(FormatError) as caught:
        detect_format(path)
    assert caught.value.path == str(path)
    assert caught.value.settings == {"format": "csv"}
    with pytest.raises(FormatError) as caught:
        detect_format("-")
    assert caught.value.settings == {"format": "csv"}
    with pytest.raises(InvalidParameter, match="one of svmlight") as wrong:
        reading_for([str(path)], "excel")
    assert wrong.value.parameter == "format"
    with pytest.raises(IncompatibleParameters):
        reading_for([str(path)], "svmlight", target="label")


def test_every_format_has_a_reading(tmp_path):
    for format in FORMATS:
        assert reading_for(["-"], format).format == (format if format in READINGS else "table")


def test_a_restored_table_reads_what_it_was_told_to_read(tmp_path):
    """The name of the file says tabs; the user said commas."""
    from rosenblatt.data.tables import Table

    path = tmp_path / "rows.tsv"
    path.write_text("label,x\na,1\nb,2\na,3\n")
    table = Table(format="csv", delimiter=",")
    table = table.fit(table.batches([str(path)]))
    parts = table.to_parts()
    again = Table.from_parts(Parts(json.loads(json.dumps(parts.facts)), parts.arrays))
    found = again.chunk(next(again.batches([str(path)])))
    assert np.array_equal(found.X.toarray(), table.chunk(next(table.batches([str(path)]))).X.toarray())


def failure(content, tmp_path, name="a.csv", **options):
    """The error of reading a table of this text."""
    from rosenblatt.data.tables import Table

    path = tmp_path / name
    path.write_text(content)
    table = Table(**options)
    with pytest.raises((FormatError, InvalidData)) as caught:
        table.fit(table.batches([str(path)]))
    return caught.value


def test_an_error_of_a_table_carries_its_place_and_the_settings_that_avoid_it(tmp_path):
    error = failure("label,age\na,1\nb,\n", tmp_path)
    assert (error.path, error.line, error.column) == (str(tmp_path / "a.csv"), 3, "age")
    assert error.settings == {"missing": "fill", "on_error": "skip"}
    error = failure("label,age\na,1\nb,old\n", tmp_path, numeric="age")
    assert (error.line, error.column, error.settings) == (3, "age", {"on_error": "skip"})
    assert failure("colour,size\nred,1\nblue,2\n", tmp_path).settings == {"target": "size"}
    assert failure("label,id\na,1\nb,2\n", tmp_path).settings == {"text": "id", "categories": "id", "numeric": "id"}
    assert failure("just words\n", tmp_path, "a.txt").settings == {"format": "csv"}
    assert failure('label,text\na,"open\n', tmp_path).settings == {"quote": ""}
    colours = "label,c\n" + "".join(f"a,v{i}\n" for i in range(30))
    error = failure(colours, tmp_path, categories="c", one_hot_limit=20)
    assert (error.column, error.settings) == ("c", {"hashing": 18, "one_hot_limit": 200})
    assert failure("label,x\na,1e308\nb,-1e308\n", tmp_path).settings == {"scale": "none"}
    assert failure("label,t\na,one\nb,two\n", tmp_path, text="t").settings == {"min_count": 1}


def test_a_row_of_a_format_without_lines_is_a_field(tmp_path):
    from rosenblatt.data.tables import Table

    path = tmp_path / "a.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"label": ["a", "b"], "n": [1.0, None]}), path)
    with pytest.raises(FormatError, match=r"a.parquet, row 2, column 'n'") as caught:
        list(Table().batches([str(path)]))
    assert (caught.value.line, caught.value.row, caught.value.column) == (None, 1, "n")


def test_the_errors_of_all_formats_are_format_errors():
    from rosenblatt.data import columns, conllu, opening, svmlight, tables, vw

    kinds = [conllu.ConlluError, columns.ColumnsError, svmlight.SvmlightError, vw.VwError, tables.TableError]
    assert all(issubclass(kind, FormatError) for kind in (*kinds, svmlight.LabelError))
    assert opening.FormatError is FormatError


@pytest.mark.parametrize("format", [None, "csv"])
def test_the_delimiter_learned_from_is_not_guessed_again(tmp_path, format):
    from rosenblatt.data.tables import Table

    path, new = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("label;t,u\na;x y\nb;x y\na;x z\n")
    new.write_text("label;t,u\na;x, y\n")  # as many commas as semicolons in each line
    table = Table(text="t,u", format=format)
    table = table.fit(table.batches([str(path)]))
    for one in (table, Table.from_parts(table.to_parts())):
        assert next(one.batches([str(new)])).columns["t,u"].to_pylist() == ["x, y"]
