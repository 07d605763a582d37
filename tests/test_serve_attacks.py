"""What an attacker with a token, or a client in a hurry, sends: the server lives, stays within its limits, and goes on."""

import asyncio
import gc
import itertools
import json
import os
import random
import socket
import sqlite3
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

from bench.server import Server
from rosenblatt import PassiveAggressiveRegressor, Perceptron
from rosenblatt.errors import FormatError, InvalidData, LearningPaused, LimitExceeded, RosenblattError
from rosenblatt.serve.answers import PIECE_BYTES, UnsentAnswers
from rosenblatt.serve.check import check_folder
from rosenblatt.serve.disk import DiskSpace
from rosenblatt.serve.folder import cut_wal
from rosenblatt.serve.guard import Guard
from rosenblatt.serve.guard import _Request as guard_request
from rosenblatt.serve.history import History, WrongExample
from rosenblatt.serve.learners import COPIES, LEAST_REMEMBERED, EstimatorLearner, make_learner
from rosenblatt.serve.learning import checked_examples, put_stored_rows
from rosenblatt.serve.limits import Limits, parsed_bytes
from rosenblatt.serve.log import Log, LogReader, ModelRecord, first_chain
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.predictions import PredictionStore
from rosenblatt.serve.served_model import ServedModel
from rosenblatt.serve.server import load_models
from rosenblatt.serve.service import parse_lines
from rosenblatt.serve.spool import SpooledFile
from rosenblatt.serve.state import (
    CREATE,
    LEARN,
    Entry,
    Example,
    State,
    create,
    entry_from_line,
    read_specification,
    write_specification,
)
from rosenblatt.serve.text import TextFeatures
from rosenblatt.serve.writer import Writer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("attacked") / "folder") as started:
        yield started


@pytest.fixture
def ask(server):
    with closing(server.connect(timeout=60)) as connection:
        yield lambda *request, **headers: connection.request(*request, **headers)


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_clients_that_leave_an_export_do_not_end_the_server(server, ask):
    ask("PUT", "/models/exported", {})
    for start in range(8):
        rows = [{"x": {f"f{start}-{k}-{j}": 1 for j in range(40)}, "y": "ab"[k % 2]} for k in range(500)]
        assert ask("POST", "/models/exported/learn", {"examples": rows}).status == 200
    before = open_files(server)

    def leave(times):
        for number in range(times):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(b"GET /models/exported/log HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if number % 3:
                    client.recv(1 << number % 17)

    threads = [threading.Thread(target=leave, args=(150,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = ask("GET", "/models/exported/log").body.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 10))
    assert open_files(server) <= before + 4


def json_lines(examples):
    return b"\n".join(json.dumps(example).encode() for example in examples)


NDJSON = {"Content_Type": "application/x-ndjson"}


def test_json_lines_are_one_entry_learned_whole_or_not_at_all(ask):
    ask("PUT", "/models/lines", {"parameters": {"max_classes": 2}})
    rows = [{"x": {f"f{k}": 1}, "y": "ab"[k % 2]} for k in range(2_500)]
    learned = ask("POST", "/models/lines/learn", json_lines(rows), **NDJSON)
    assert learned.json()["seq"] == 2
    assert learned.json()["learned"] == 2_500
    broken = [*rows[:1_500], {"x": {"f": "1e999"}, "y": ["no label"]}, *rows]
    refused = ask("POST", "/models/lines/learn", json_lines(broken), **NDJSON)
    assert (refused.status, refused.json()["row"]) == (422, 1_500)
    assert ask("GET", "/models/lines").json()["seen"] == 2_500


def test_keys_of_json_and_of_json_lines_are_one_space(ask):
    ask("PUT", "/models/keys", {})
    rows = [{"x": {"a": 1}, "y": "p"}, {"x": {"b": 1}, "y": "q"}]
    first = ask("POST", "/models/keys/learn", json_lines(rows), Idempotency_Key="Z", **NDJSON)
    again = ask("POST", "/models/keys/learn", json_lines(rows), Idempotency_Key="Z", **NDJSON)
    assert first.json() == again.json()
    for part in ("Z#0", "Z#1"):
        other = ask("POST", "/models/keys/learn", {"examples": rows}, Idempotency_Key=part)
        assert other.json()["learned"] == 2
    taken = ask("POST", "/models/keys/learn", {"examples": rows}, Idempotency_Key="Z")
    assert (taken.status, taken.json()["parameter"]) == (422, "Idempotency-Key")
    assert ask("GET", "/models/keys").json()["seen"] == 6


def test_a_stored_request_is_parsed_once_for_all_of_its_labels(tmp_path, monkeypatch):
    from rosenblatt.serve import predictions

    parsed = []
    monkeypatch.setattr(predictions, "parse_json", lambda body: parsed.append(len(body)) or json.loads(body))
    store = PredictionStore(tmp_path, Limits(), DiskSpace(tmp_path, Limits()))
    request = store.store(7, json.dumps({"examples": [{"x": {"a": k}, "w": 2} for k in range(9)]}).encode())
    ids = store.ids(request, 9)
    rows = store.rows(7, ids[0].removesuffix(".0"))
    assert [rows[id]["x"] for id in ids] == [{"a": k} for k in range(9)]
    assert len(rows) == 9
    assert len(parsed) == 1
    assert store.rows(8, ids[0].removesuffix(".0")) == {}
    store.close()


def test_labels_for_predictions_are_learned_as_the_rows_themselves(ask):
    for name in ("late", "sent"):
        ask("PUT", f"/models/{name}", {})
    rows = [{"x": {f"f{k % 7}": 1.5, f"g{k}": k}} for k in range(40)]
    ids = [
        one["id"]
        for start in (0, 25)
        for one in ask("POST", "/models/late/predict", {"examples": rows[start : start + 25]}).json()["predictions"]
    ]
    order = [*range(30, 40), *range(30)]  # rows of two requests, mixed
    late = [{"id": ids[k], "y": "ab"[k % 2]} for k in order]
    unknown = ask("POST", "/models/late/learn", {"examples": [*late[:3], {"id": "00000000-1.0", "y": "a"}]})
    assert (unknown.status, unknown.json()["row"]) == (404, 3)
    assert ask("POST", "/models/late/learn", {"examples": late}).json()["learned"] == 40
    ask("POST", "/models/sent/learn", {"examples": [{**rows[k], "y": "ab"[k % 2]} for k in order]})
    assert ask("GET", "/models/late/file").body == ask("GET", "/models/sent/file").body
    again = ask("POST", "/models/late/learn", {"examples": late[:1]})
    assert again.status == 409


# Retries after a kill


@pytest.fixture
def own(tmp_path):
    with Server(tmp_path / "folder") as started:
        yield started


def learn_with_key(connection, model, key):
    rows = [{"x": {f"{key}-{k}": 1, f"f{k}": 2}, "y": "ab"[k % 2]} for k in range(20)]
    return connection.request("POST", f"/models/{model}/learn", {"examples": rows}, Idempotency_Key=key)


def kill_and_forget_outcomes(server):
    """Kill a server and leave its log as a crash right after the commit leaves it."""
    server.kill()
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database, database:
        database.execute("DELETE FROM outcomes")


def outcomes_of(server):
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database:
        return dict(database.execute("SELECT seq, outcome FROM outcomes").fetchall())


def test_requests_that_are_sent_again_after_a_kill_are_answered_as_before(own):
    connection = own.connect()
    connection.ask("PUT", "/models/m", {})
    first = [learn_with_key(connection, "m", f"k{number}").json() for number in range(12)]
    connection.ask("POST", "/models/m/set-back", {"to": 4})
    back = [learn_with_key(connection, "m", f"l{number}").json() for number in range(3)]
    kill_and_forget_outcomes(own)

    # Examples since the last snapshot are counted across kills, or a server that is killed again and again makes none.
    with Log(own.folder) as log:
        writer = Writer(log, Limits(), None, Metrics())
        load_models(writer, print)
        assert writer.models["m"].examples_since in (60, 120)  # since the snapshot that going back makes, or the start
        assert len(writer.outcomes) >= 3
        writer.states.close()

    own.start()
    connection = own.connect()
    assert [learn_with_key(connection, "m", f"k{number}").json() for number in range(12)] == first
    assert [learn_with_key(connection, "m", f"l{number}").json() for number in range(3)] == back
    assert connection.ask("GET", "/models/m").json()["seen"] == (3 + 3) * 20
    own.stop()  # with a snapshot after the last entry
    assert len(outcomes_of(own)) == 15

    # What the log lacks is found once, and kept; what cannot be read counts as lacking.
    kill_and_forget_outcomes(own)
    with closing(sqlite3.connect(own.folder / "log.sqlite")) as database, database:
        database.execute("INSERT INTO outcomes VALUES (1, 2, '[1, 2')")
    own.start()
    connection = own.connect()
    assert learn_with_key(connection, "m", "k0").json() == first[0]
    assert learn_with_key(connection, "m", "k4").json() == first[4]
    assert learn_with_key(connection, "m", "new").status == 200
    assert outcomes_of(own).keys() >= {2, 3, 4, 5, 6}
    assert outcomes_of(own)[2] != "[1, 2"


def test_an_imported_log_knows_what_its_entries_did(server, ask):
    connection = server.connect()
    connection.ask("PUT", "/models/keyed", {})
    first = [learn_with_key(connection, "keyed", f"k{number}").json() for number in range(6)]
    exported = connection.ask("GET", "/models/keyed/log").body
    connection.ask("POST", "/models/keyed-copy/log", exported, **NDJSON)
    with closing(sqlite3.connect(server.folder / "log.sqlite")) as database:
        query = "SELECT count(*) FROM outcomes JOIN models ON model = id WHERE name = 'keyed-copy'"
        assert database.execute(query).fetchone() == (6,)
    assert [learn_with_key(connection, "keyed-copy", f"k{number}").json() for number in range(6)] == first


# Damage


def test_a_damaged_page_anywhere_is_a_damaged_log_and_no_bug(tmp_path):
    with Server(tmp_path / "folder") as server:
        connection = server.connect()
        for name in ("a", "b"):
            connection.ask("PUT", f"/models/{name}", {})
            for number in range(40):
                learn_with_key(connection, name, f"k{number}")
            rows = [{"x": {"a": 1}}] * 100
            ids = [
                one["id"]
                for one in connection.ask("POST", f"/models/{name}/predict", {"examples": rows}).json()["predictions"]
            ]
            connection.ask("POST", f"/models/{name}/learn", {"examples": [{"id": id, "y": "a"} for id in ids]})
            connection.ask("POST", f"/models/{name}/set-back", {"to": 20})
        server.stop()
    file = tmp_path / "folder" / "log.sqlite"
    whole, size, draw = file.read_bytes(), 4096, random.Random(0)
    refused = 0
    for start in range(0, len(whole), size):
        page = bytearray(whole[start : start + size])
        for place in draw.sample(range(100 if start == 0 else 0, size), 40):
            page[place] ^= 1 << draw.randrange(8)
        file.write_bytes(whole[:start] + page + whole[start + size :])
        with suppress(RosenblattError):
            check_folder(tmp_path / "folder")
        try:
            with Log(tmp_path / "folder") as log:
                writer = Writer(log, Limits(), None, Metrics())
                with closing(writer.states):
                    load_models(writer, str)
        except RosenblattError:
            refused += 1
    assert refused > 10


def test_a_damaged_store_of_predictions_is_begun_anew(tmp_path):
    (tmp_path / "predictions.sqlite").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)
    store = PredictionStore(tmp_path, Limits(), DiskSpace(tmp_path, Limits()))
    number = store.store(1, b'{"examples": [{"x": {}}]}')
    assert store.rows(1, store.ids(number, 1)[0].removesuffix(".0")) != {}
    store.close()
    assert (tmp_path / "predictions.sqlite.damaged").exists()


# Limits of memory


def learner_of(settings, limits=None):
    return make_learner(read_specification(settings), limits or Limits())


def test_names_are_counted_by_their_bytes():
    learner = learner_of({})
    short, long = {f"s{k}": 1.0 for k in range(100)}, {f"{k}".ljust(10_000, "é"): 1.0 for k in range(100)}
    assert learner.new_names([short, short, long]) == (200, sum(map(sys.getsizeof, [*short, *long])))
    before = learner.size()
    for row, label in ((short, "a"), (short, "b"), (long, "a"), (long, "b")):
        learner.learn(row, label, 1.0)
    assert learner.size() - before > 100 * 10_000
    assert learner.new_names([short, long, {"new": 1.0}]) == (1, sys.getsizeof("new"))
    assert learner.copy().size() == learner.size()


def test_names_that_are_forgotten_are_counted_no_more():
    learner = learner_of({"parameters": {"max_features": 10}})
    for start in range(0, 100, 5):
        learner.learn({f"{k}".ljust(1_000, "x"): 1.0 for k in range(start, start + 5)}, "ab"[start % 2], 1.0)
    assert 10_000 < learner.size() < 20_000


def test_hashes_are_remembered_within_a_limit_and_shared():
    learner = EstimatorLearner(Perceptron(), 64, None, TextFeatures())
    copy = learner.copy()
    for start in range(100):
        columns = learner._columns({f"{start}-{k}".ljust(1_000, "x"): 1.0 for k in range(100)})
        assert learner._codes.bytes <= LEAST_REMEMBERED
        assert max(columns) < 64
    assert copy._codes is learner._codes
    assert learner.memory() == COPIES * learner.size() + learner._codes.bytes > LEAST_REMEMBERED / 4
    long = {"x" * LEAST_REMEMBERED: 1.0}  # too long to be remembered
    assert learner._columns(long) == copy._columns(long)
    assert learner._codes.by_name.keys().isdisjoint(long)


def test_what_a_commit_has_admitted_counts_for_what_comes_after(tmp_path):
    """Sixteen requests that each fit into the memory of a model by themselves, sent so that they share commits."""
    with Server(tmp_path / "folder", "--max-model-memory", "1") as server:
        server.connect().ask("PUT", "/models/m", {})
        bodies = [
            {"examples": [{"x": {f"{number}-{k}": 1 for k in range(800)}, "y": "ab"[number % 2]}]} for number in range(16)
        ]
        with ThreadPoolExecutor(16) as pool:
            answers = [*pool.map(lambda body: server.connect().request("POST", "/models/m/learn", body).status, bodies)]
        described = server.connect().ask("GET", "/models/m").json()
    assert set(answers) == {200, 507}
    assert described["memory_bytes"] <= 1 << 20


def test_admission_counts_each_new_name_and_label_once(tmp_path):
    log = Log(tmp_path / "folder")
    writer = Writer(log, Limits(model_bytes=400_000, classes=3), None, Metrics())
    state = create(Entry(1, 0, CREATE, write_specification(read_specification({}))))
    model = ServedModel(ModelRecord(1, "m", 0), state, b"", 0)
    same = [Example({f"f{k}": 1.0 for k in range(300)}, "a", 1.0, {})]
    for _ in range(50):  # the same names again and again take no more memory
        writer.admit(model, same, 4_000)
    other = [Example({f"g{k}": 1.0 for k in range(300)}, "b", 1.0, {})]
    writer.admit(model, other, 4_000)
    with pytest.raises(LimitExceeded, match="model_bytes"):
        writer.admit(model, [Example({f"h{k}": 1.0 for k in range(1_000)}, "a", 1.0, {})], 12_000)
    writer.admit(model, [Example({"f1": 1.0}, "c", 1.0, {})], 20)
    with pytest.raises(LimitExceeded, match="classes"):
        writer.admit(model, [Example({"f1": 1.0}, "d", 1.0, {})], 20)
    writer.admit(model, [Example({"f1": 1.0}, "c", 1.0, {})], 20)
    writer.states.close()
    log.close()


def test_numbers_to_predict_take_no_memory_as_labels_do(tmp_path):
    learner = EstimatorLearner(PassiveAggressiveRegressor(), 2**18, None, TextFeatures())
    specification = read_specification({"learner": "PassiveAggressiveRegressor", "hashing": 2**18})
    model = ServedModel(ModelRecord(1, "m", 0), State(specification, learner, History(), 1), b"", 0)
    with Log(tmp_path / "folder") as log:
        writer = Writer(log, Limits(), None, Metrics())
        writer.admit(model, [Example({"a": 1.0}, k + 0.5, 1.0, {}) for k in range(2_000)], 40_000)
        assert len(model.admitted.rows) == 2_000
        assert model.admitted.labels == set()
        writer.states.close()


def test_an_answer_that_is_too_large_is_refused(server):
    with closing(server.connect()) as connection:
        connection.ask("PUT", "/models/many", {"hashing": 64})
        labels = [f"{k:04}".ljust(900, "x") for k in range(500)]
        connection.ask("POST", "/models/many/learn", {"examples": [{"x": {"a": k}, "y": y} for k, y in enumerate(labels)]})
        rows = [{"x": {"a": 1}}] * 200
        refused = connection.request("POST", "/models/many/predict", {"examples": rows})
        assert (refused.status, refused.json()["limit"]) == (413, "answer_bytes")
        refused = connection.request("POST", "/models/many/predict", json_lines(rows), **NDJSON)
        assert (refused.status, refused.json()["limit"]) == (413, "answer_bytes")
        few = connection.ask("POST", "/models/many/predict", {"examples": rows, "top": 1}).json()
        assert [len(one["scores"]) for one in few["predictions"]] == [1] * 200


def test_answers_that_nobody_takes_are_counted_and_given_back():
    held = UnsentAnswers(Limits(answer_bytes=1_000, unsent_bytes=2_000))
    first, second = held.begin(), held.begin()
    first.add(b"x" * 900)
    second.add(b"x" * 900)
    with pytest.raises(LimitExceeded, match="answer_bytes"):
        first.add(b"x" * 101)
    with held.begin() as third, pytest.raises(LimitExceeded, match="unsent_bytes"):
        third.add(b"x" * 300)
    assert held.bytes == 1_800
    with pytest.raises(ZeroDivisionError), second:
        raise ZeroDivisionError
    assert held.bytes == 900

    async def gone(message):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(first.response("text/plain")({}, None, gone))
    assert held.bytes == 0


@given(st.lists(st.integers(0, 300_000), max_size=8))
def test_a_large_answer_is_sent_in_pieces_that_are_its_parts(sizes):
    held = UnsentAnswers(Limits())
    answer = held.begin()
    sent = []
    for number, size in enumerate(sizes):
        answer.add(bytes([number]) * size)

    async def send(message):
        sent.append(message)

    asyncio.run(answer.response("text/plain")({}, None, send))
    bodies = [message["body"] for message in sent[1:]]
    assert b"".join(bodies) == b"".join(bytes([number]) * size for number, size in enumerate(sizes))
    assert int(dict(sent[0]["headers"])[b"content-length"]) == sum(sizes)
    assert all(len(body) <= 3 * PIECE_BYTES for body in bodies)
    assert [message["more_body"] for message in sent[1:]] == [True] * (len(bodies) - 1) + [False] * bool(bodies)


def test_large_bodies_count_by_what_they_are_parsed_to(tmp_path):
    limits = Limits(queued_bytes=1 << 20)
    guard = Guard(None, None, limits)
    lists = b"[" + b"[]," * 9_999 + b"[]]"
    assert parsed_bytes(lists) > 500_000

    def request_of(guard):
        return guard_request(guard, {"method": "POST"}, None, None)

    first, second = request_of(guard), request_of(guard)
    first._hold_values(lists)
    assert guard.held_bytes == len(lists) + parsed_bytes(lists)
    small = request_of(Guard(None, None, limits))
    small._hold_values(b"[]" * 4_000)  # so little that an upper limit will do
    assert small.guard.held_bytes == 37 * 8_000
    with pytest.raises(LimitExceeded, match="queued_bytes"):
        second._hold_values(lists)
    guard.held_bytes -= first.held
    second._hold_values(b"[" + b"[]," * 99_999 + b"[]]")  # alone
    with pytest.raises(LimitExceeded, match="parsed_bytes"):
        request_of(Guard(None, None, Limits(parsed_bytes=500_000)))._hold_values(lists)


def test_a_kept_example_is_not_long():
    history = History()
    for x in ({"n" * 60_000: 1}, {"n": "v" * 60_000}, {f"f{k}": 1 for k in range(2_001)}, [1.0] * 2_001):
        history.keep(WrongExample(1, 0, 0, "a", "b", {"x": x}))
    history.keep(WrongExample(1, 0, 0, "a", "b", {"x": {"n" * 900: "v"}}))
    assert [len(one.example) for one in history.view().last_wrong] == [1, 0, 0, 0, 0]


def test_an_import_stays_within_the_memory_of_a_model(server, tmp_path):
    with Server(tmp_path / "folder", "--max-model-memory", "1", "--max-body", "1") as small:
        connection = small.connect()
        lines = [b'{"seq":1,"time":0,"create":{}}']
        for number in range(2, 60):
            rows = [{"x": {f"{number}-{k}": 1 for k in range(500)}, "y": "ab"[number % 2]}]
            lines.append(json.dumps({"seq": number, "time": 0, "learn": rows}).encode())
        refused = connection.request("POST", "/models/m/log", b"\n".join(lines), **NDJSON)
        assert (refused.status, refused.json()["limit"]) == (507, "model_bytes")
        assert refused.json()["entry"] < 40
        bad = b'{"seq":2,"time":0,"learn":[{"x":{"a":1},"y":"p"},{"x":{"a":1},"y":"q"},{"x":{"a":1}}]}'
        refused = connection.request("POST", "/models/m/log", lines[0] + b"\n" + bad, **NDJSON)
        assert (refused.status, refused.json()["entry"], refused.json()["row"]) == (422, 2, 2)
        long = json.dumps({"seq": 2, "time": 0, "learn": [{"text": "x" * 4_000_000, "y": "a"}]}).encode()
        refused = connection.request("POST", "/models/m/log", lines[0] + b"\n" + long, **NDJSON)
        assert (refused.status, refused.json()["line"]) == (413, 2)
    with closing(server.connect()) as connection:
        many = lines[0] + b'\n{"seq":2,"time":0,"learn":[' + b'{"x":{"a":1},"y":"p"},' * 800_000 + b'{"x":{},"y":"q"}]}'
        refused = connection.request("POST", "/models/imported/log", many, **NDJSON)
        assert (refused.status, refused.json()["limit"], refused.json()["line"]) == (413, "parsed_bytes", 2)


# Limits of the disk


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_stored_predictions_keep_to_their_part_of_the_disk_and_the_oldest_go_first(tmp_path):
    limits = Limits(disk_bytes=8 << 20)
    store = PredictionStore(tmp_path, limits, DiskSpace(tmp_path, limits))
    body = json.dumps({"examples": [{"text": "x" * 100_000}]}).encode()
    numbers = []
    for _ in range(12):
        numbers += [number for number in (store.store(1, body) for _ in range(20)) if number is not None]
        assert folder_bytes(tmp_path) <= limits.disk_bytes // 4 * 1.3
        store.tidy()
    assert len(numbers) > 30  # room is made again and again
    kept = [bool(store.rows(1, store.ids(number, 1)[0].removesuffix(".0"))) for number in numbers]
    assert any(kept)
    assert kept == sorted(kept)  # those that are left are the newest
    for _ in range(8):
        store.tidy(needs_room=True)
    assert folder_bytes(tmp_path) < 1 << 20
    store.close()


def test_predictions_are_not_stored_where_the_disk_must_stay_free(tmp_path):
    limits = Limits(disk_free_bytes=1 << 60)
    store = PredictionStore(tmp_path, limits, DiskSpace(tmp_path, limits))
    assert store.store(1, b"{}") is None
    store.close()


def test_predictions_of_an_earlier_version_give_their_room_back_too(tmp_path):
    with closing(sqlite3.connect(tmp_path / "predictions.sqlite")) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(
            "CREATE TABLE predictions (request INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT NOT NULL, "
            "model INTEGER NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL)"
        )
        database.executemany(
            "INSERT INTO predictions (word, model, time, body) VALUES ('abcdef01', 1, ?, ?)", [(2**45, b"x" * 50_000)] * 40
        )
    limits = Limits()
    store = PredictionStore(tmp_path, limits, DiskSpace(tmp_path, limits))
    before = folder_bytes(tmp_path)
    for _ in range(8):
        store.tidy(needs_room=True)
    assert folder_bytes(tmp_path) < before / 10
    store.close()


def test_deleting_a_model_makes_room_to_learn_again(tmp_path):
    with Server(tmp_path / "folder", "--max-disk", "8", "--min-free-disk", "0") as server:
        connection = server.connect()
        for name in ("large", "small"):
            connection.ask("PUT", f"/models/{name}", {"hashing": 64})
        body = {"examples": [{"text": "win " * 50_000, "y": "a"}, {"text": "see " * 50_000, "y": "b"}]}
        statuses = [connection.request("POST", "/models/large/learn", body).status for _ in range(40)]
        assert statuses[0] == 200
        assert statuses[-1] == 507
        assert connection.request("POST", "/models/small/predict", body | {"examples": [{"text": "win"}]}).status == 200
        assert folder_bytes(server.folder) <= 1.3 * (8 << 20)
        connection.ask("DELETE", "/models/large")
        deadline = time.monotonic() + 60
        while (learned := connection.request("POST", "/models/small/learn", body).status) != 200:
            assert learned == 507
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert folder_bytes(server.folder) < 4 << 20


# Imports


def test_an_import_that_a_kill_ends_leaves_nothing(tmp_path):
    entry = Entry(1, 0, CREATE, write_specification(read_specification({})))
    with Log(tmp_path / "folder") as log:
        log.begin_writing()
        with log.transaction():
            number = log.begin_import()
            log.add(number, entry, None, first_chain("m"))
        assert log.read.models() == []
    assert check_folder(tmp_path / "folder").models == 0
    with Log(tmp_path / "folder") as log:
        log.begin_writing()
        while log.purge():
            pass
        assert list(log.read._numbers_in_log()) == []
        with log.transaction():
            log.add_model("m")


def test_an_import_of_several_parts_is_one_model_and_a_refused_one_is_gone(server):
    connection = server.connect()
    connection.ask("PUT", "/models/parts", {})
    rows = [
        {"text": " ".join(f"w{k % 977}" for k in range(start, start + 9_000)), "y": "ab"[start % 2]} for start in range(60)
    ]
    for start in range(0, 60, 4):
        connection.ask("POST", "/models/parts/learn", {"examples": rows[start : start + 4]}, Idempotency_Key=f"k{start}")
    exported = connection.ask("GET", "/models/parts/log").body
    assert len(exported) > 2 << 20
    assert connection.ask("POST", "/models/parts-copy/log", exported, **NDJSON).json() == {"seq": 16, "entries": 16}
    assert connection.ask("GET", "/models/parts-copy/log").body == exported
    assert connection.ask("GET", "/models/parts-copy/file").body == connection.ask("GET", "/models/parts/file").body
    assert connection.request("POST", "/models/parts-copy/log", exported, **NDJSON).status == 409


def test_a_refusal_keeps_nothing_of_the_request_in_memory(tmp_path):
    """An error holds the frames that it went through, and these the request: a cycle, if the request holds the error."""

    class Body:
        size = room = 1 << 20
        needs_room = True
        error = None

    with Log(tmp_path / "folder") as log:
        writer = Writer(log, Limits(disk_free_bytes=1 << 60), None, Metrics())
        body = Body()
        writer._refuse_without_room([body])
        assert isinstance(body.error, LearningPaused)
        freed = weakref.ref(body)
        gc.disable()
        try:
            del body
            assert freed() is None
        finally:
            gc.enable()
        writer.states.close()


def test_large_bodies_leave_room_for_small_ones():
    guard = Guard(None, None, Limits(queued_bytes=8 << 20))

    def hold(body):
        guard_request(guard, {"method": "POST"}, None, None)._hold_values(body)

    hold(b"x" * (2 << 20))  # each counts as the body, and as the text that it is parsed to
    with pytest.raises(LimitExceeded, match="queued_bytes"):
        hold(b"x" * (3 << 19) + b"x")
    hold(b"x" * (3 << 19))
    for _ in range(3):
        hold(b"x" * (1 << 17))
    assert guard.held_bytes == (7 << 20) + 3 * (1 << 18)


def test_a_log_that_is_read_while_it_grows_is_not_taken_for_damaged(tmp_path):
    with Log(tmp_path / "folder") as log:
        log.begin_writing()
        with log.transaction():
            number, chain = log.add_model("m").id, first_chain("m")
            chain = log.add(number, Entry(1, 0, CREATE, b"{}"), None, chain)
            log.set_last(number, 1, chain)
        stopped = threading.Event()

        def grow(chain):
            for seq in itertools.count(2):
                with log.transaction():
                    chain = log.add(number, Entry(seq, seq, LEARN, b"{}"), None, chain)
                    log.set_last(number, seq, chain)
                if stopped.is_set():
                    return

        thread = threading.Thread(target=grow, args=(chain,))
        thread.start()
        try:
            for _ in range(500):
                with LogReader(log.path) as read:
                    last = read.last(number)[0]
                    assert sum(1 for _ in read.entries(number, max(1, last - 3))) == min(last, 4)
        finally:
            stopped.set()
            thread.join()


def test_cutting_a_write_ahead_log_waits_for_no_reader(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x", isolation_level=None, timeout=1_000)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (a)")
        with closing(sqlite3.connect(tmp_path / "x", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM t").fetchall()
            database.execute("INSERT INTO t VALUES (1)")
            assert not cut_wal(database)  # or it would wait for 1,000 seconds
        assert database.execute("PRAGMA busy_timeout").fetchone() == (1_000_000,)
        assert cut_wal(database)
    assert not (tmp_path / "x-wal").exists() or not (tmp_path / "x-wal").stat().st_size


def test_rows_that_ids_stand_for_and_features_of_texts_count_too(tmp_path):
    limits = Limits(parsed_bytes=100_000)
    store = PredictionStore(tmp_path, limits, DiskSpace(tmp_path, limits))
    rows = [{"x": {f"f{k}": 1 for k in range(100)}}] * 10
    ids = store.ids(store.store(1, json.dumps({"examples": rows}).encode()), 10)
    model = ServedModel(
        ModelRecord(1, "m", 0), create(Entry(1, 0, CREATE, write_specification(read_specification({})))), b"", 0
    )
    service = SimpleNamespace(store=store, limits=limits)
    few, many = ([{"id": id, "y": "a"} for id in ids[:count]] for count in (5, 10))
    assert asyncio.run(put_stored_rows(service, model, few))
    with pytest.raises(LimitExceeded, match="parsed_bytes"):
        asyncio.run(put_stored_rows(service, model, many))
    texts = [{"text": " ".join(f"w{k}" for k in range(200)), "y": "a"}] * 2  # 399 features each
    with pytest.raises(LimitExceeded, match="parsed_bytes") as refusal:
        asyncio.run(checked_examples(service, model, texts))
    assert refusal.value.row == 2
    assert len(asyncio.run(checked_examples(service, model, texts[:1]))) == 1
    store.close()


@pytest.mark.parametrize("time", [-1, 10**17, 10**30])
def test_an_entry_that_was_written_at_no_time_is_refused(time):
    with pytest.raises(FormatError, match="until the year 9999"):
        entry_from_line(f'{{"seq":1,"time":{time},"create":{{}}}}'.encode(), 1)


def test_lines_are_found_as_split_finds_them():
    body = b'\n\n {"a": 1} \r\n[]\n  \n2'
    found = asyncio.run(parse_lines(body, 10))
    assert [value for _, value in found] == [{"a": 1}, [], 2]
    with pytest.raises(FormatError) as refusal:
        asyncio.run(parse_lines(body + b"\nno", 10))
    assert refusal.value.line == 7
    with pytest.raises(InvalidData):
        asyncio.run(parse_lines(b"\n \n", 10))


def test_room_that_was_taken_for_a_temporary_file_is_given_back(tmp_path, monkeypatch):
    limits = Limits(disk_bytes=1 << 20)
    disk = DiskSpace(tmp_path, limits)
    file = SpooledFile(tmp_path, disk)
    file.write([b"x" * 300_000])
    with pytest.raises(LimitExceeded):
        file.write([b"x" * 900_000])

    async def gone(message):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(file.response("text/plain")({}, None, gone))
    assert disk._reserved == 0
    again, sent = SpooledFile(tmp_path, disk), []
    again.write([b"x" * 300_000, b"y" * 300_000])

    async def send(message):
        sent.append(message.get("body", b""))

    asyncio.run(again.response("text/plain")({}, None, send))
    assert b"".join(sent) == b"x" * 300_000 + b"y" * 300_000
    assert disk._reserved == 0
