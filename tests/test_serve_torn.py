"""A log of which anything is cut off, changed or gone opens with every acknowledged example, or is refused with the place.
It is never shorter, and a refusal changes nothing."""

import os
import random
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("fastapi")

from bench.server import Server
from rosenblatt.errors import DamagedLog
from rosenblatt.serve.check import check_folder
from rosenblatt.serve.log import Log

LAST = 4096  # bytes of a file that are cut off, one after the other
FLIPS = 1000
VOLATILE = {"lock", "log.sqlite-shm"}  # which hold nothing
MEMORY = Path("/dev/shm")  # where a commit takes no time


class Folder(NamedTuple):
    """A folder of a server that has ended: its files, and what was acknowledged."""

    files: dict[str, bytes]
    entries: dict[str, list]

    def changed(self, changes: dict[str, bytes | None]) -> dict[str, bytes]:
        """Return the files with some of them changed, and without those that are None."""
        return {name: content for name, content in (self.files | changes).items() if content is not None}

    def write(self, place: Path, changes: dict[str, bytes | None] | None = None) -> Path:
        """Make the folder again, with some files changed; what is there already is not written again."""
        wanted, there = self.changed(changes or {}), files_of(place)
        for name in there.keys() - wanted.keys():
            (place / name).unlink()
        for name, content in wanted.items():
            if there.get(name) != content:
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)
        return place


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def open_and_read(folder):
    """Open the log as the server does, and read all that it has."""
    with Log(folder) as log:
        return {model.name: list(log.read.entries(model.id)) for model in log.read.models()}


def trial(folder, place, **changes):
    """Open a changed folder; return the error that refused it, or None if nothing is missing."""
    folder.write(place, changes)
    try:
        found = open_and_read(place)
    except DamagedLog as refusal:
        error = refusal
    else:
        assert found == folder.entries
        return None
    assert error.path is not None
    assert error.problem
    left, before = files_of(place), folder.changed(changes)
    assert all(
        left[name] == before.get(name, b"") for name in left if name not in VOLATILE
    )  # SQLite may make an empty file
    assert before.keys() <= left.keys()
    return error


def teach(connection, first, last):
    """Learn, predict, label and set back, each an entry of its own."""
    for number in range(first, last):
        name = f"m{number % 2}"
        examples = [{"x": {f"word={number * j % 37}": 1.0 for j in range(1, 6)}, "y": "ab"[number % 3 % 2]}] * (
            1 + number % 3
        )
        connection.ask("POST", f"/models/{name}/learn", {"examples": examples}, Idempotency_Key=f"key-{number}")
        if number % 5 == 0:
            found = connection.ask("POST", f"/models/{name}/predict", {"examples": [{"x": {"word=1": 1.0}}]}).json()
            late = {"examples": [{"id": found["predictions"][0]["id"], "y": "é"}]}
            connection.ask("POST", f"/models/{name}/learn", late)
    connection.ask("POST", "/models/m0/set-back", {"to": 3})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of a server that was stopped, and of the same one started again and killed."""
    found = {}
    folder = tmp_path_factory.mktemp("served") / "folder"
    folder.mkdir()
    for number, end in enumerate(("stopped", "killed")):
        with Server(folder).start() as server:
            connection = server.connect()
            for name in ("m0", "m1"):
                connection.ask("PUT", f"/models/{name}", {"learner": "OnlinePerceptron", "parameters": {}})
            teach(connection, *((0, 6), (6, 9))[number])
            lines = {name: connection.ask("GET", f"/models/{name}/log").lines() for name in ("m0", "m1")}
            if end == "stopped":
                assert server.stop() == 0
            else:
                server.kill()
        files = files_of(folder)
        copy = Folder(files, {}).write(tmp_path_factory.mktemp("copy") / "folder")
        entries = open_and_read(copy)
        assert {name: [entry.seq for entry in each] for name, each in entries.items()} == {
            name: [line["seq"] for line in each] for name, each in lines.items()
        }
        assert [entry.key for entry in entries["m1"]] == [line.get("key") for line in lines["m1"]]
        found[end] = Folder(files, entries)
    assert "log.sqlite-wal" not in found["stopped"].files
    assert len(found["killed"].files["log.sqlite-wal"]) > LAST
    return found


@pytest.fixture
def place(tmp_path):
    """A folder for trials, in memory where the system has one there."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path / "trial"
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder) / "trial"


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_folder_opens_as_it_is(folders, place, end):
    assert trial(folders[end], place) is None


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_log_cut_at_any_of_its_last_bytes(folders, place, end):
    content = folders[end].files["log.sqlite"]
    errors = [trial(folders[end], place, **{"log.sqlite": content[:-cut]}) for cut in range(1, min(LAST, len(content)) + 1)]
    if end == "stopped":
        assert all(error is not None and error.byte is not None for error in errors)
    for page in range(0, len(content), LAST):
        if trial(folders[end], place, **{"log.sqlite": content[:page]}) is not None:
            with pytest.raises(DamagedLog):  # nor does it open the second time
                open_and_read(place)


@pytest.mark.parametrize("end", ["killed"])
def test_a_write_ahead_log_cut_at_any_of_its_last_bytes(folders, place, end):
    content = folders[end].files["log.sqlite-wal"]
    frames = range(32, len(content), 24 + LAST)
    cuts = [*range(len(content) - LAST, len(content)), *frames, *(frame - 1 for frame in frames), *range(33)]
    errors = [trial(folders[end], place, **{"log.sqlite-wal": content[:cut]}) for cut in cuts]
    assert all(error is not None for error in errors[-33:])
    assert trial(folders[end], place, **{"log.sqlite-wal": None}) is not None


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_the_number_of_acknowledged_commits_cut_or_gone(folders, place, end):
    content = folders[end].files["acknowledged"]
    for cut in range(len(content)):
        assert trial(folders[end], place, acknowledged=content[:cut]) is not None
    assert "--accept-loss" in trial(folders[end], place, acknowledged=None).hint
    with pytest.raises(DamagedLog, match=r"restore a backup$"):  # a check cannot accept anything
        check_folder(place)
    assert trial(folders[end], place, acknowledged=bytes(len(content))) is not None
    assert trial(folders[end], place, acknowledged=content + b"x") is not None


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_the_log_gone(folders, place, end):
    gone = {name: None for name in folders[end].files if name.startswith("log.sqlite")}
    assert trial(folders[end], place, **gone).hint == "restore a backup"
    with pytest.raises(DamagedLog, match=r"the file is missing; restore a backup$"):
        Log(place, accept_loss=True)
    assert trial(folders[end], place, **{"log.sqlite": None}) is not None
    assert trial(folders[end], place, **{"log.sqlite": b""}) is not None


def test_a_log_of_an_earlier_time_is_not_taken_for_the_newest(folders, place):
    """As a backup of one file alone would be."""
    early, late = folders["stopped"], folders["killed"]
    assert trial(late, place, **{"log.sqlite": early.files["log.sqlite"], "log.sqlite-wal": None}) is not None


@pytest.mark.parametrize(
    ("end", "file"), [("stopped", "log.sqlite"), ("killed", "log.sqlite"), ("killed", "log.sqlite-wal")]
)
def test_bits_flipped_anywhere(folders, place, end, file):
    content = folders[end].files[file]
    used = [at for at, byte in enumerate(content) if byte]
    draw = random.Random(f"{end} {file}")
    refused = 0
    for _ in range(FLIPS):
        at = draw.choice(used)
        flipped = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
        refused += trial(folders[end], place, **{file: flipped}) is not None
    assert refused > (0 if (end, file) == ("killed", "log.sqlite") else FLIPS // 4)  # there the other file has its pages


def test_an_entry_that_has_changed_is_named_with_its_model(folders, tmp_path):
    folder = folders["stopped"].write(tmp_path / "folder")
    with closing(sqlite3.connect(folder / "log.sqlite")) as database, database:
        database.execute(
            "UPDATE log SET time = time + 1 WHERE seq = 2 AND model = (SELECT id FROM models WHERE name = 'm1')"
        )
    with pytest.raises(DamagedLog) as refusal:
        open_and_read(folder)
    assert (refusal.value.model, refusal.value.entry, refusal.value.hint) == ("m1", 2, "restore a backup")
    assert refusal.value.problem.startswith("model 'm1', entry 2: ")


def test_bits_flipped_in_the_heads_of_pages(folders, place):
    """Where one bit hides a whole page: how many rows it has, and where they are."""
    content = folders["stopped"].files["log.sqlite"]
    for page in range(LAST, len(content), LAST):
        for at in range(page, page + 16):
            for bit in range(8):
                flipped = content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]
                trial(folders["stopped"], place, **{"log.sqlite": flipped})


def test_snapshots_that_are_damaged_or_gone_change_nothing(folders, tmp_path):
    folder = folders["stopped"]
    names = [name for name in folder.files if name.startswith("snapshots/")]
    assert names
    whole = states(folder.write(tmp_path / "whole"))
    damages = [lambda c: None, lambda c: b"", lambda c: c[:-1], lambda c: c[:50] + b"\xff" + c[51:]]
    for number in range(2):
        changed = {name: damages[2 * number + place % 2](folder.files[name]) for place, name in enumerate(names)}
        assert states(folder.write(tmp_path / str(number), changed)) == whole


def states(folder):
    """Serve a folder and return its models as files, and what it says of them."""
    with Server(folder).start() as server:
        connection = server.connect()
        described = connection.ask("GET", "/models").json()["models"]
        for each in described:
            del each["snapshots"], each["memory_bytes"]  # which has room to grow if it has learned since the start
        return described, [connection.ask("GET", f"/models/{name}/file").body for name in ("m0", "m1")]


def test_a_damaged_log_is_refused_by_the_command_with_the_place(folders, tmp_path):
    content = folders["stopped"].files["log.sqlite"]
    folder = folders["stopped"].write(tmp_path / "folder", {"log.sqlite": content[:-10]})
    before = files_of(folder)
    server = Server(folder)
    server.launch()
    try:
        assert server.process.wait(60) != 0
    finally:
        server.kill()
    text = server.said().decode()
    assert "log.sqlite" in text
    assert f"{len(content) - 10:,}" in text
    assert "Traceback" not in text
    assert {name: files_of(folder)[name] for name in before} == before
