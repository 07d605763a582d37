"""Vowpal Wabbit text becomes the rows that VW makes of it, in any blocks."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from rosenblatt.data import vw
from rosenblatt.data.opening import Piece
from rosenblatt.data.parsing.line_parser import Room
from rosenblatt.data.parsing.parallel import ParallelReader
from rosenblatt.data.reading import concatenate
from rosenblatt.data.vw import Vw, VwError
from rosenblatt.modelfile.parts import Parts


def murmur(text, seed):
    return murmurhash3_32(text, seed=seed & 0xFFFFFFFF, positive=True)


def hashed(name, seed):
    return int(name) + seed if name.isdigit() and name.isascii() else murmur(name.encode(), seed)


def chunks_of(text, bits=18, hashing="strings", labelled=True, on_error="error", size=1 << 20, threads=2):
    parser = Vw(bits, hashing).parser(labelled)
    return ParallelReader([io.BytesIO(text.encode())], parser, VwError, on_error=on_error, size=size, threads=threads)


def one(text, **options):
    return concatenate(list(chunks_of(text, **options)))


names = st.text("abcé019_=.'-", min_size=1, max_size=9)
values = st.one_of(st.none(), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))
spaces = st.lists(
    st.tuples(st.one_of(st.just(""), names), values, st.lists(st.tuples(names, values), max_size=5)), max_size=3
)
examples = st.lists(st.tuples(values, values, spaces), min_size=1, max_size=6)


def with_value(name, value):
    return name if value is None else f"{name}:{value!r}"


def text_of(data, chance):
    lines = []
    for label, weight, parts in data:
        head = [] if label is None else [repr(label)] + ([] if weight is None else [repr(weight)])
        tag = chance.choice(["", "", "tag", "'tag", "'tag "])
        line = " ".join(head) + (" " if head else "") + tag + ("" if parts else "|")
        for name, value, features in parts:
            line += "|" + (with_value(name, value) if name else "")
            line += "".join(chance.choice([" ", "  ", "\t"]) + with_value(*feature) for feature in features)
            line += chance.choice(["", " "])
        lines += [line, *chance.choice([[], [""]])]
    return chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["", "\n"])


def expected(parts, bits=18):
    """{bucket: value} of the namespaces of an example."""
    found = {}
    for name, scale, features in parts:
        seed = hashed(name, 0) if name else 0
        scale = 1.0 if scale is None or not name else scale
        for feature, value in features:
            bucket = hashed(feature, seed) & ((1 << bits) - 1)
            x = (1.0 if value is None else value) * scale
            if x:
                found[bucket] = found.get(bucket, 0.0) + x
    return found


@given(examples, st.randoms(use_true_random=False), st.integers(1, 100), st.sampled_from([4, 18]))
def test_rows_are_labels_weights_and_hashed_features(data, chance, size, bits):
    chunk = one(text_of(data, chance), bits=bits, labelled=False, size=size)
    assert chunk.X.shape == (len(data), 1 << bits)
    for number, (_, _, parts) in enumerate(data):
        row = chunk.X[number]
        found = expected(parts, bits)
        assert row.indices.tolist() == sorted(found)
        np.testing.assert_allclose(row.data, [found[bucket] for bucket in sorted(found)], rtol=1e-12, atol=1e-9)
    if all(label is not None for label, _, _ in data):
        assert chunk.y.tolist() == [label for label, _, _ in data]
    else:
        assert chunk.y is None
    weights = [None if label is None else weight for label, weight, _ in data]
    if any(weight is not None for weight in weights):
        assert chunk.weight.tolist() == [1.0 if weight is None else weight for weight in weights]
    else:
        assert chunk.weight is None


def test_rows_without_an_importance_have_no_weights():
    assert one("1 | a\n-1 'tag| b\n").weight is None
    assert one("1 | a\n1 2 | b:nan\n", on_error="skip").weight is None  # of a line that is left out
    assert one("1 1 | a\n-1 | b\n").weight.tolist() == [1.0, 1.0]
    assert one("-1 | b\n1 2 0.5 | a\n").weight.tolist() == [1.0, 2.0]


LINES = [
    "1 2.0 0.5 'tag|a b:2 c |d:0.5 e:3 17 17:2",
    "1 |a b",
    "|a b",
    "1|a b",
    "-1 abc| b",
    "1 | b c:0 :3 :4",
    "1 |ab :3 x :4",
    "1 |a b:foo b 12:foo b:foo1 b:-foo b:+foo b:.x b:email b:E-x b:e5x b:+ b:in b:None",
    "1\t2 |a b",
    "1 |12 5 x5 5x 007 99999999999999999999999",
    "1 |a  b\t c\r",
    "1 |a b|c d",
    "1 |a:2 b c:0.5",
    "1 |a é ünïcödé:2",
    "1 |a x:1e3 y:-2.5E-1 z:+3 w:.5 v:5.",
    "1 || a",
    "1  2  | a",
    "1 |a 'q x=y",
    "1 |namespace_with_a_long_name a ab abc abcd abcde abcdef abcdefg abcdefgh abcdefghi",
]


@pytest.mark.parametrize("hashing", ["strings", "all"])
def test_vw_puts_features_in_the_same_buckets(hashing):
    pylibvw = pytest.importorskip("vowpalwabbit")
    theirs = pylibvw.Workspace(f"--quiet --noconstant -b 20 --no_stdin --hash {hashing}")
    for line in LINES:
        example = theirs.parse(line)
        found = {}
        for bucket, x in example.iter_features():
            bucket &= (1 << 20) - 1  # VW does it when it looks for the weight
            found[bucket] = found.get(bucket, 0) + x
        chunk = one(line, bits=20, hashing=hashing, labelled=False)
        assert chunk.X.indices.tolist() == sorted(found), line
        np.testing.assert_allclose(chunk.X.data, [found[bucket] for bucket in sorted(found)], rtol=1e-6)
        label = example.get_simplelabel_label()
        assert (chunk.y is None) if label > 1e38 else chunk.y.tolist() == [label]
        weight = example.get_simplelabel_weight()
        assert (chunk.weight is None and weight == 1) or chunk.weight.tolist() == [weight]
        theirs.finish_example(example)
    theirs.finish()


WRONG = {
    "1": (1, "expected | before the features, found none in the line that begins with '1'"),
    "spam | a": (1, "expected a finite number as label, importance or base, found 'spam'"),
    "nan | a": (1, "expected a finite number as label"),
    "1 x | a": (3, "found 'x'"),
    "1 2 3 4 | a": (7, "expected at most label, importance and base before the tag, found '4' too"),
    "1:2:0.5 | a": (1, "labels of contextual bandits and of examples of several lines cannot be read"),
    "shared | a": (1, "cannot be read"),
    "| a": (1, "expected a label before '|'"),
    "1|a": (1, "found '1|a', which is a tag as it touches |; put a blank between them"),
    "1 |:2 a": (4, "expected the name of a namespace or a blank after |, found ':2'"),
    "1 |a:x b": (6, "expected a finite number of at most 19 digits as the value of the namespace, found 'x'"),
    "1 |a b:nan": (8, "expected a finite number, or a word unlike one, as the value, found 'nan'"),
    "1 |a b:-Infinity": (8, "found '-Infinity'"),
    "1 |a b:nancy": (8, "found 'nancy'"),  # a number that is not finite, and then "cy", to VW
    "1 |a b:1x": (8, "found '1x'"),
    "1 |a b:-e5": (8, "found '-e5'"),  # 0 to VW
    "1 |a b:.": (8, "found '.'"),
    "1 |a b:1e999": (8, "found '1e999', which is too large for a double"),
    "1 |a b:1:2": (8, "found '1:2'"),
    "1 |a b: c": (8, "found a blank"),
    "1 |a :word": (7, "found 'word'"),
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path, line):
    column, message = WRONG[line]
    path = tmp_path / "a.vw"
    path.write_text("1 | x\n\n" + line + "\n-1 | y\n")
    for size in (1, 1 << 20):
        with pytest.raises(VwError) as raised:
            list(vw.chunks(path, size=size))
        assert (raised.value.path, raised.value.line, raised.value.column) == (str(path), 3, column)
        assert message in str(raised.value)
    data = vw.read(path, on_error="skip")
    assert data.y.tolist() == [1, -1]
    assert data.skipped == len(data.errors) == 1


def test_numbers_are_those_of_float():
    long = "9007199254740993.00000000000000000001"
    chunk = one(f"{long} {long} | a:{long} |n:0.5 b:{long} c:1e-3 | d:0.1234567890123456789012345")
    assert chunk.y.tolist() == chunk.weight.tolist() == [float(long)]
    assert sorted(chunk.X.data) == sorted([float(long), 0.5 * float(long), 0.5 * 1e-3, 0.12345678901234568])


@given(st.binary(max_size=120), st.integers(1, 50))
def test_garbage_gives_rows_or_a_clean_error(garbage, size):
    text = "1 | a\n" + garbage.decode("latin-1")
    skipping = chunks_of(text, on_error="skip", size=size)
    kept = sum(chunk.rows for chunk in skipping)
    assert kept + skipping.skipped == sum(line.strip(" \t\r") != "" for line in text.split("\n"))
    if skipping.skipped:
        with pytest.raises(VwError) as raised:
            list(chunks_of(text, size=size))
        assert str(raised.value) == str(skipping.errors[0])
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < 250


def test_the_reading_is_kept_with_a_model(tmp_path):
    assert Vw() == Vw(bits=18, hashing="strings"), "as VW without -b and --hash"
    reading = Vw(bits=5, hashing="all")
    assert Vw.from_parts(reading.to_parts()) == reading
    assert reading.features == 32
    assert reading.name(3) == "bucket 3"
    assert reading.fit([]) is reading
    for wrong in ({}, {"bits": 5.0, "hashing": "all"}, {"bits": 99, "hashing": "all"}, {"bits": 5, "hashing": "none"}):
        with pytest.raises(ValueError, match=r"bits|hashing"):
            Vw.from_parts(Parts(wrong))
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n" * 100 + "1 2 | a\n")
    batches = reading.batches([str(path)])
    whole = reading.chunk(reading.concatenate(list(batches)))
    assert whole.weight.tolist() == [1.0] * 100 + [2.0]
    assert len(batches.digest()) == 16
    rows, distinct = reading.labels([str(path)])
    assert (rows, distinct.tolist()) == (101, [1.0])
    assert reading.with_labels(distinct) is reading
    assert not reading.needs_fit
    path.write_text("3 | a\n-1 2 'tag|\nx | y\n")
    assert vw.labels(path, on_error="skip", size=7)[1].tolist() == [-1.0, 3.0]
    with pytest.raises(VwError, match="line 3, column 1"):
        vw.labels(path)
    path.write_text("\n\n")
    with pytest.raises(VwError, match=r"a.vw: there are no rows to read"):
        vw.read(path)


STRANGE = st.text(" \t\r\n\v\f|:#'0123456789.eE+-abq", max_size=80)


@given(st.lists(STRANGE, max_size=3), st.sampled_from(" \t\r\v\f"), st.integers(0, 30))
@settings(max_examples=200)
def test_there_is_room_for_all_that_is_written(lines, separator, features):
    """The compiled loop would write behind the end: it gets more room here than was made, and must not need it."""
    text = "\n".join([f"1 |a {separator.join('bc' * features)}", *lines, *(f"1 |{line}" for line in lines)]).encode()
    compiled = vw.files.kernel.parse

    def parse(data, end, room, terms, state):
        wide = Room(*(np.concatenate([array, np.zeros(len(text), array.dtype)]) for array in room))
        compiled(data, end, wide, terms, state)
        for array, wider in zip(room, wide, strict=True):
            array[:] = wider[: len(array)]
        assert state[vw.rows.COUNT] <= len(room.indices)
        assert state[vw.rows.ROWS] < len(room.indptr)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vw.files.VwParser, "loop", staticmethod(parse))
        parsed = Vw().parser(False)(Piece(np.frombuffer(text + b"\n" + bytes(16), np.uint8), 0, len(text) + 1), True, None)
    assert parsed.skipped + parsed.batch.rows == sum(line.strip(" \t\r") != "" for line in text.decode().split("\n"))
