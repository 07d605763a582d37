"""Entries that are archived leave the log; the model, what comes after them, and what an archive proves, stay."""

import gzip
import sqlite3
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from xxhash import xxh64

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

from bench.server import Server
from rosenblatt.errors import Conflict, DamagedLog, InvalidParameter, UnknownEntry
from rosenblatt.serve import Client, replay
from rosenblatt.serve.archive import archived_entries, parse_date
from rosenblatt.serve.backup import back_up
from rosenblatt.serve.check import check_folder
from rosenblatt.serve.log import ArchiveRecord, BaseRecord, Log
from rosenblatt.serve.snapshots import States
from rosenblatt.serve.state import LEARN, Entry, entry_to_line


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for all tests, which use a model each; one that stops it starts it again."""
    with Server(tmp_path_factory.mktemp("archived") / "folder") as started:
        yield started


@pytest.fixture
def model(server):
    with Client(f"http://127.0.0.1:{server.port}") as client:
        model = client.create(f"mails-{uuid.uuid4().hex}")
        for number in range(20):
            model.learn_one({f"f{number % 7}": 1.0, "x": number}, "ab"[number % 3 % 2])
        yield model


def client_of(server):
    return Client(f"http://127.0.0.1:{server.port}")


def number_of(server, model):
    """The number of a model in the log."""
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database:
        return database.execute("SELECT id FROM models WHERE name = ?", (model.name,)).fetchone()[0]


def file_of(model, tmp_path):
    model.save(tmp_path / "now.model")
    return (tmp_path / "now.model").read_bytes()


def wait_until_purged(server, number, entries):
    deadline = time.monotonic() + 30
    while True:
        with closing(sqlite3.connect(server.folder / "log.sqlite")) as database:
            if database.execute("SELECT count(*) FROM log WHERE model = ?", (number,)).fetchone()[0] == entries:
                return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def lines_of(folder, archive):
    with gzip.open(folder / "archive" / archive["file"], "rb") as file:
        return file.readlines()


def test_an_archive_and_the_rest_of_the_log_are_the_whole_log(server, model, tmp_path):
    model.export_log(tmp_path / "whole.jsonl")
    before = file_of(model, tmp_path)
    first, second = model.archive(to=8), model.archive(to=15)
    assert [(one["first"], one["last"]) for one in (first, second)] == [(1, 8), (9, 15)]
    wait_until_purged(server, number_of(server, model), 6)
    assert file_of(model, tmp_path) == before
    with pytest.raises(UnknownEntry, match="begins with entry 16"):
        model.export_log(tmp_path / "rest.jsonl")
    model.export_log(tmp_path / "rest.jsonl", first=16)
    rest = (tmp_path / "rest.jsonl").read_bytes().splitlines(keepends=True)
    lines = [*lines_of(server.folder, first), *lines_of(server.folder, second), *rest]
    assert b"".join(lines) == (tmp_path / "whole.jsonl").read_bytes()
    assert replay(lines).n_seen_ == 20


def test_after_an_archive_the_server_starts_learns_and_shows_states_as_before(server, model, tmp_path):
    whole = [model.at(seq).n_mistakes_ for seq in range(12, 22)]
    model.archive(to=12)
    wait_until_purged(server, number_of(server, model), 9)
    assert [model.at(seq).n_mistakes_ for seq in range(12, 22)] == whole
    with pytest.raises(UnknownEntry, match="archived"):
        model.at(11).describe()
    server.kill()
    server.start()
    with client_of(server) as client:
        again = client.model(model.name)
        assert [again.at(seq).n_mistakes_ for seq in range(12, 22)] == whole
        assert again.describe()["archived"] == 12
        again.learn_one({"x": 1.0}, "a")
        assert again.set_back(12) == 23
        assert again.n_seen_ == 11
        expected = file_of(again, tmp_path)
    server.stop()
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database, database:
        database.execute("DELETE FROM snapshots")
    assert check_folder(server.folder).problems == ()
    server.start()
    with client_of(server) as client:
        assert file_of(client.model(model.name), tmp_path) == expected
        assert client.model(model.name).describe()["seq"] == 23


def test_a_backup_without_the_archives_is_a_whole_model(server, model, tmp_path):
    model.archive(to=19)
    back_up(server.folder, tmp_path / "copy")
    assert check_folder(tmp_path / "copy").problems == ()
    with Log(tmp_path / "copy") as copy:
        state = States(tmp_path / "copy", copy.read).at(number_of(server, model))
    assert state.learner.seen == model.n_seen_ == 20


def test_what_cannot_be_archived_is_refused(model):
    with pytest.raises(InvalidParameter, match="from 1 to 20"):
        model.archive(to=21)
    with pytest.raises(InvalidParameter, match="but not both"):
        model.archive()
    with pytest.raises(InvalidParameter, match="ISO 8601"):
        model.archive(before="yesterday")
    with pytest.raises(InvalidParameter, match="before must be a date after entry 1"):
        model.archive(before="2001-01-01")
    seq = model.set_back(6)
    with pytest.raises(Conflict, match="sets the model back to entry 6") as refusal:
        model.archive(to=7)
    assert str(seq) in refusal.value.hint
    model.learn_one({"x": 1.0}, "b")
    assert model.archive(to=6)["last"] == 6
    with pytest.raises(InvalidParameter, match="from 7 to"):
        model.archive(to=6)
    assert model.archive(to=seq)["first"] == 7


def test_everything_before_a_date_is_archived_but_the_newest_entry(model):
    assert model.archive(before="2999-01-01T00:00:00+02:00")["last"] == 20
    with pytest.raises(Conflict, match="nothing to archive"):
        model.archive(before="2999-01-01")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1970-01-02", 86_400_000), ("1970-01-01T00:00:01.5Z", 1_500), ("1970-01-01T02:00:00+02:00", 0)],
)
def test_dates_without_a_zone_are_utc(text, milliseconds):
    assert parse_date(text) == milliseconds


def test_a_changed_archive_or_state_is_noticed(server, model):
    first, second = model.archive(to=9), model.archive(to=14)
    number = number_of(server, model)
    server.stop()
    assert check_folder(server.folder).problems == ()
    path = server.folder / "archive" / second["file"]
    lines = lines_of(server.folder, second)
    with gzip.open(path, "wb") as file:
        file.writelines([lines[0].replace(b'"x":', b'"y":'), *lines[1:]])
    [problem] = check_folder(server.folder).problems
    assert second["file"] in problem
    path.unlink()  # kept elsewhere: only what is here can be checked
    assert check_folder(server.folder).problems == ()
    (server.folder / "archive" / first["file"]).write_bytes(b"no gzip")
    assert len(check_folder(server.folder).problems) == 1
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database, database:
        content = database.execute("SELECT content FROM bases WHERE model = ?", (number,)).fetchone()[0]
        changed = content[:-1] + bytes([content[-1] ^ 1])
        database.execute("UPDATE bases SET content = ? WHERE model = ?", (changed, number))
    with Log(server.folder) as log, pytest.raises(DamagedLog, match="archived"):
        log.read.base(number)
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database, database:
        database.execute("UPDATE bases SET content = ? WHERE model = ?", (content, number))
    (server.folder / "archive" / first["file"]).unlink()
    server.start()


def test_archives_replay_to_the_state_that_the_log_keeps(server, model):
    model.set_back(5)
    for number in range(3):
        model.learn_one({"z": float(number + 1)}, "ab"[number % 2])
    model.archive(to=3)
    model.archive(to=23)
    number = number_of(server, model)
    server.stop()
    assert check_folder(server.folder).problems == ()
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database, database:
        row = database.execute("SELECT * FROM bases WHERE model = ?", (number,)).fetchone()
        changed = BaseRecord(*row)._replace(history=row[6].replace('"wrong": ', '"wrong": 1'))
        database.execute("REPLACE INTO bases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", changed.with_digest())
    assert any("gives another model" in problem for problem in check_folder(server.folder).problems)
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database, database:
        database.execute("REPLACE INTO bases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    server.start()


def test_a_deleted_model_leaves_nothing_of_its_archive_in_the_log(server, model):
    model.archive(to=10)
    number = number_of(server, model)
    with client_of(server) as client:
        client.delete(model.name)
        wait_until_purged(server, number, 0)
        deadline = time.monotonic() + 30
        query = "SELECT (SELECT count(*) FROM bases WHERE model = ?), (SELECT count(*) FROM archives WHERE model = ?)"
        while True:
            with closing(sqlite3.connect(server.folder / "log.sqlite")) as database:
                if database.execute(query, (number, number)).fetchone() == (0, 0):
                    break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.create(model.name).learn_one({"a": 1.0}, "a")
        assert client.model(model.name).describe()["archived"] == 0


def test_archives_and_going_back_at_once_leave_a_log_that_is_whole(server):
    """Of two equal archives one is made, and going back to a state that it archives is refused, or comes before it."""
    for start in range(3):
        with client_of(server) as client:
            model = client.create(f"contended-{start}")
            for number in range(12):
                model.learn_one({"x": number}, "ab"[number % 2])

        def ask(number, name=model.name):
            with client_of(server) as client:
                try:
                    return client.model(name).archive(to=8) if number < 2 else client.model(name).set_back(5)
                except (InvalidParameter, Conflict, UnknownEntry) as refusal:
                    return refusal

        with ThreadPoolExecutor(3) as pool:
            answers = [*pool.map(ask, range(3))]
        archives = [answer for answer in answers[:2] if isinstance(answer, dict)]
        assert len(archives) == (0 if isinstance(answers[0], Conflict) else 1)
        assert all((server.folder / "archive" / archive["file"]).exists() for archive in archives)
    server.stop()
    assert check_folder(server.folder).problems == ()
    server.start()


def test_every_damaged_byte_of_an_archive_is_a_damaged_log(tmp_path):
    entries = [Entry(seq, seq, LEARN, b'{"examples":[{"x":{"a":1},"y":"p"}]}') for seq in range(1, 4)]
    lines = b"".join(entry_to_line(entry) + b"\n" for entry in entries)
    path = tmp_path / "archive.gz"
    record = ArchiveRecord(1, 1, 3, 0, path.name, xxh64(lines).hexdigest(), len(lines))
    packed = gzip.compress(lines, mtime=0)
    path.write_bytes(packed)
    assert [entry.seq for entry in archived_entries(path, record)] == [1, 2, 3]
    refused = 0
    for place in range(len(packed)):
        path.write_bytes(packed[:place] + bytes([packed[place] ^ 0x55]) + packed[place + 1 :])
        try:
            found = [*archived_entries(path, record)]
        except DamagedLog:
            refused += 1
        else:  # a byte of the header that says nothing of the content
            assert [entry.payload for entry in found] == [entry.payload for entry in entries]
    assert refused > len(packed) - 10
