"""One file a model: exact, replaced at once or not at all, and never believed before it is checked."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rosenblatt
from rosenblatt.errors import OutputError
from rosenblatt.modelfile import container
from rosenblatt.modelfile.atomic import atomic_write
from rosenblatt.modelfile.container import UnreadableModel
from rosenblatt.modelfile.parts import Parts

FACTS = {"learner": "Nobody", "parameters": {"margin": 0.5, "templates": ["form[0]"], "note": "γ 🙂"}}
ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "keys": np.array([1, 2**64 - 1], np.uint64),
    "none": np.zeros(0, np.int32),
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model"
    container.write(path, FACTS, ARRAYS)
    return path


def test_what_is_read_is_what_was_written(model):
    facts, arrays = container.read(model)
    assert facts == {"format": container.FORMAT, "version": rosenblatt.__version__, **FACTS}
    assert container.facts(model) == facts
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)


def test_arrays_of_any_order_are_written_by_value(tmp_path):
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    container.write(tmp_path / "m", {}, {"a": a, "b": a[:, ::2]})
    _, arrays = container.read(tmp_path / "m")
    assert arrays["a"].tolist() == a.tolist()
    assert arrays["b"].tolist() == a[:, ::2].tolist()


def test_a_file_cut_off_anywhere_is_refused(model):
    whole = model.read_bytes()
    for size in range(len(whole)):
        model.write_bytes(whole[:size])
        with pytest.raises(UnreadableModel):
            container.read(model)


@pytest.mark.parametrize("bits", [0x01, 0x20, 0x80, 0xFF])
def test_a_flipped_byte_is_refused(model, bits):
    whole = model.read_bytes()
    for at in range(len(whole)):
        with pytest.raises(UnreadableModel):
            container.read_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])


def test_a_file_of_before_without_sums_is_read(model):
    whole = model.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    table = json.loads(whole[8 : 8 + size])
    assert table["__metadata__"].pop("xxh64 of header")
    with pytest.raises(UnreadableModel, match="must have xxh64 of header"):
        container.read_bytes(with_header(table, whole[8 + size :]))
    assert table["__metadata__"].pop("xxh64 of data")
    facts, arrays = container.read_bytes(with_header(table, whole[8 + size :]))
    assert facts["learner"] == "Nobody"
    assert np.array_equal(arrays["weights"], ARRAYS["weights"])


def with_header(table, data):
    header = json.dumps(table).encode()
    return len(header).to_bytes(8, "little") + header + data


def test_the_names_of_facts_are_not_taken_for_arrays(tmp_path, monkeypatch):
    facts = {f"fact {number}": number for number in range(30)}
    for count in (2, 4):
        container.write(tmp_path / f"{count}", facts, {f"array {number}": np.zeros(1) for number in range(count)})
    monkeypatch.setattr(container, "_MOST_ARRAYS", 2)
    assert len(container.read(tmp_path / "2")[1]) == 2
    with pytest.raises(UnreadableModel, match="it has more than 2 arrays"):
        container.read(tmp_path / "4")


@pytest.mark.parametrize(
    "facts",
    [
        json.dumps({"format": 1, **{f"k{number}": 0 for number in range(1_100_000)}}),
        json.dumps({"format": 1, "many": [0] * 5_000_000}, separators=(",", ":")),
        '{"format": 1, "deep": ' + "[" * 2_000_000,
    ],
    ids=["keys", "values", "depth"],
)
def test_a_header_with_too_much_in_it_is_refused_before_it_is_parsed(facts):
    content = with_header({"__metadata__": {"rosenblatt": facts}}, b"")
    begin = time.process_time()
    with pytest.raises(UnreadableModel, match="more than"):
        container.read_bytes(content)
    assert time.process_time() - begin < 1


def test_a_table_of_two_million_arrays_is_refused_before_it_is_parsed():
    content = b'{"__metadata__":{"rosenblatt":"{}"}' + b"".join(b',"%d":0' % number for number in range(2_000_000)) + b"}"
    begin = time.process_time()
    with pytest.raises(UnreadableModel, match="more than"):
        container.read_bytes(len(content).to_bytes(8, "little") + content)
    assert time.process_time() - begin < 1


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused(tmp_path_factory, garbage):
    path = tmp_path_factory.mktemp("garbage") / "model"
    path.write_bytes(garbage)
    with pytest.raises(UnreadableModel):
        container.read(path)


def test_arrays_without_facts_are_no_model(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "other")
    with pytest.raises(UnreadableModel, match="without facts"):
        container.read(tmp_path / "other")


def test_a_format_of_the_future_is_refused_by_name(model):
    content = model.read_bytes()
    changed = content.replace(b'{\\"format\\": 1', b'{\\"format\\": 9')
    assert changed != content
    model.write_bytes(changed)
    with pytest.raises(UnreadableModel, match=r"has format 9, of version 0.1.0; .* reads format 1; upgrade it"):
        container.read(model)


def test_a_failing_write_leaves_the_old_file_and_nothing_else(model, monkeypatch):
    before = model.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        container.write(model, FACTS, {"a": np.zeros(100)})
    assert model.read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_facts_that_json_cannot_say_are_refused_before_anything_is_written(model):
    before = model.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        container.write(model, {"margin": float("nan")}, {})
    assert model.read_bytes() == before


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(OutputError, match="this is a folder, not a file; name a file in it") as caught:
        container.write(tmp_path, FACTS, ARRAYS)
    assert (caught.value.errno, caught.value.filename) == (errno.EISDIR, str(tmp_path))


def test_the_file_has_the_permissions_that_any_new_file_has(tmp_path, model):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(model.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    model.chmod(0o600)
    container.write(model, FACTS, ARRAYS)
    assert stat.S_IMODE(model.stat().st_mode) == 0o600


def test_the_header_is_plain_json(model):
    content = model.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert json.loads(header["__metadata__"]["rosenblatt"])["learner"] == "Nobody"


def test_the_format_is_that_of_safetensors(model, tmp_path):
    from safetensors.numpy import load_file, save_file

    theirs = load_file(model)
    for name, array in ARRAYS.items():
        assert np.array_equal(theirs[name], array)
        assert theirs[name].dtype == array.dtype
    save_file(ARRAYS, tmp_path / "theirs", {"rosenblatt": json.dumps({"format": 1, "learner": "Nobody"})})
    facts, arrays = container.read(tmp_path / "theirs")
    assert facts["learner"] == "Nobody"
    assert all(np.array_equal(arrays[name], array) for name, array in ARRAYS.items())


def test_arrays_of_every_type_come_back_and_can_be_changed(tmp_path):
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
    arrays = {kind: np.arange(5).astype(kind) for kind in kinds} | {"big": np.arange(3, dtype=">i4"), "one": np.array(7.0)}
    container.write(tmp_path / "m", {}, arrays)
    _, read = container.read(tmp_path / "m")
    for name, array in arrays.items():
        assert read[name].shape == array.shape
        assert read[name].tolist() == array.tolist()
        read[name][...] = 0
    with pytest.raises(TypeError, match="a file holds numbers and truth values"):
        container.write(tmp_path / "m", {}, {"a": np.array(["text"])})


def test_facts_alone_are_read_from_the_header_of_a_file_of_any_size(model):
    with model.open("r+b") as file:
        file.truncate(2**40)  # a hole, as long as nobody reads it
    with pytest.raises(UnreadableModel, match="but it holds"):
        container.facts(model)  # the arrays do not fill the file: told without reading them
    container.write(model, FACTS, {"a": np.zeros(1000)})
    assert container.facts(model)["learner"] == "Nobody"


def test_the_same_model_has_the_same_bytes(tmp_path):
    container.write(tmp_path / "one", FACTS, ARRAYS)
    container.write(tmp_path / "two", FACTS, dict(reversed(ARRAYS.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_model_is_read_from_a_pipe(model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(model.read_bytes()))
    writer.start()
    facts, arrays = container.read(pipe)
    writer.join()
    assert facts["learner"] == "Nobody"
    assert arrays.keys() == ARRAYS.keys()


# A file that is replaced at once or not at all


def test_of_two_that_save_to_one_path_one_wins_whole(tmp_path):
    path, errors = tmp_path / "model", []

    def save(number):
        for _ in range(20):
            container.write(path, {"number": number}, {"a": np.full(20_000, float(number))})

    def look():
        while any(thread.is_alive() for thread in writers):
            try:
                facts, arrays = container.read(path)
            except FileNotFoundError:
                continue
            if not (arrays["a"] == facts["number"]).all():
                errors.append(facts)

    writers = [threading.Thread(target=save, args=(number,)) for number in range(3)]
    for thread in writers:
        thread.start()
    look()
    assert not errors
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a limit on the size of files is set in a process of its own")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(model):
    before = model.read_bytes()
    code = (
        "import resource, signal, sys, numpy as np\n"
        "from rosenblatt.modelfile import container\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try: container.write(sys.argv[1], {}, {'a': np.zeros(100_000)})\n"
        "except OSError as error: print(type(error).__name__, error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["OutputError", str(errno.EFBIG)]
    assert model.read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_device_that_is_full_says_so():
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left"):
        container.write("/dev/full", FACTS, ARRAYS)


def test_an_interrupt_while_writing_leaves_the_old_file(model, monkeypatch):
    before = model.read_bytes()

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        container.write(model, {}, {})
    assert model.read_bytes() == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):  # pragma: no cover
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="model: cannot be written: Permission denied"):
        container.write(tmp_path / "model", FACTS, ARRAYS)


def test_what_cannot_be_written_is_told_by_the_name_that_was_given(tmp_path):
    path = tmp_path / ("m" * 300)
    with pytest.raises(OutputError, match="File name too long") as caught:
        container.write(path, FACTS, ARRAYS)
    assert (caught.value.errno, caught.value.filename) == (errno.ENAMETOOLONG, str(path))
    assert not list(tmp_path.iterdir())


def test_an_error_of_reading_stays_one_while_a_file_is_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"), atomic_write(tmp_path / "model") as file:
        file.write((tmp_path / "nothing").read_bytes())
    with pytest.raises(OSError, match="Not a gzipped file") as caught, atomic_write(tmp_path / "model") as file:
        file.write(gzip.decompress(b"no such thing"))
    assert not isinstance(caught.value, OutputError)
    assert not list(tmp_path.iterdir())


def test_a_pipe_that_nobody_reads_stays_a_broken_pipe(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with pytest.raises(BrokenPipeError), atomic_write(f"/dev/fd/{writing}") as file:
            file.write(bytes(2**20))
    finally:
        os.close(writing)


def test_no_folder_no_file(tmp_path):
    with pytest.raises(OutputError, match=r"there is no folder .*nowhere to write model into; make it first"):
        container.write(tmp_path / "nowhere" / "model", FACTS, ARRAYS)
    with pytest.raises(IsADirectoryError):
        container.read(tmp_path)


def test_a_long_name_and_a_link_are_files_too(tmp_path):
    long = tmp_path / ("m" * 250)
    container.write(long, FACTS, ARRAYS)
    (tmp_path / "link").symlink_to(long)
    container.write(tmp_path / "link", {"learner": "Somebody"}, {})
    assert container.facts(long)["learner"] == "Somebody"
    assert (tmp_path / "link").is_symlink()


def test_more_arrays_than_a_file_can_have_are_refused(tmp_path):
    with pytest.raises(ValueError, match="has 65,537 arrays"):
        container.write(tmp_path / "m", {}, dict.fromkeys(map(str, range(2**16 + 1)), np.zeros(0)))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no device that has no end")
def test_what_has_no_end_is_not_read_to_the_end(model, tmp_path):
    with pytest.raises(UnreadableModel, match="does not begin as one"):
        rosenblatt.load("/dev/zero")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for more in (b"\0", b""):
        content = (model.read_bytes() + b"\0")[: None if more else -2]
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        with pytest.raises(UnreadableModel, match=r"its arrays have 40 bytes, but it holds (more|39)"):
            container.read(pipe)
        writer.join()


def test_a_number_that_could_not_be_read_again_is_not_written(tmp_path):
    path = tmp_path / "m"
    for seed, fine in ((2**70, False), (2**32 - 1, True)):
        learner = rosenblatt.Perceptron(order="cyclic", max_iter=1).fit([[1.0], [-1.0]], [0, 1])
        learner.set_params(random_state=seed)
        if fine:
            learner.save(path)
            assert rosenblatt.load(path).random_state == seed
        else:
            with pytest.raises(ValueError, match="random_state=1180591620717411303424 cannot be"):
                learner.save(path)
            assert not path.exists()


def test_parts_within_parts_come_back_with_their_own_names():
    whole, inner, model = (
        Parts({"learner": "A"}),
        Parts({"x": 1}, {"w": np.zeros(2)}),
        Parts({"n": 2}, {"drift": np.ones(1)}),
    )
    whole.put_parts("inner", inner)
    whole.put_parts("model", model, prefix="")
    whole.put_parts("weights", Parts(arrays={"keys": np.arange(3)}), prefix="weights.")
    assert whole.facts == {"learner": "A", "inner": {"x": 1}, "model": {"n": 2}}
    assert sorted(whole.arrays) == ["drift", "inner/w", "weights.keys"]
    assert whole.parts("inner").arrays.keys() == {"w"}
    assert whole.parts("weights", "weights.").arrays.keys() == {"keys"}
    shared = whole.parts("model", prefix="")
    assert shared.whole("n") == 2
    assert shared.array("drift", np.float64, (1,)) == 1
    assert not whole.arrays


WRITER = """
import sys
import numpy as np
from rosenblatt.modelfile import container
number = 0
print("begin", flush=True)
while True:
    number += 1
    container.write(sys.argv[1], {"number": number}, {"w": np.full(1 << 18, number, np.int64)})
"""


@pytest.mark.parametrize("nameless", [True, False])
def test_a_process_that_is_killed_leaves_a_whole_model_and_nothing_beside_it(tmp_path, nameless, monkeypatch):
    path, draw = tmp_path / "model", random.Random(0)
    code = WRITER if nameless else f"import os\ndel os.O_TMPFILE\n{WRITER}"
    for _ in range(8):
        with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(draw.uniform(0.02, 0.2))
            process.kill()
        if path.exists():
            facts, arrays = container.read(path)
            assert (arrays["w"] == facts["number"]).all()
    container.write(path, {"number": 0}, {})
    assert os.listdir(tmp_path) == ["model"]


def test_what_a_living_process_writes_is_not_swept_away(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "model"
    with atomic_write(path) as file:
        file.write(b"first")
        with atomic_write(path) as other:
            other.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["model"]


def test_two_processes_that_save_one_model_leave_a_whole_one(tmp_path):
    path = tmp_path / "model"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for writer in writers:
            writer.stdout.readline()
        for _ in range(50):
            if path.exists():
                facts, arrays = container.read(path)
                assert (arrays["w"] == facts["number"]).all()
        assert all(writer.poll() is None for writer in writers)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate(timeout=60)


def test_links_that_lead_in_a_circle_cannot_be_written(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OutputError) as caught:
        container.write(tmp_path / "loop", {}, {})
    assert caught.value.errno == errno.ELOOP
