"""The one detector of formats: by the suffix of a file, or by how its text begins."""

import json

import numpy as np
import pytest

from rosenblatt.data.formats import FORMATS, detect_format, reading_for
from rosenblatt.errors import FormatError, IncompatibleParameters, InvalidParameter
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
        assert reading_for(["-"], format).format == (format if format in ("svmlight", "vw") else "table")


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
