"""What an attacker with a token, or a client in a hurry, sends: the server lives, stays within its limits, and goes on."""

import json
import os
import socket
import sqlite3
import threading
from contextlib import closing

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

from bench.server import Server
from rosenblatt.serve.disk import DiskSpace
from rosenblatt.serve.limits import Limits


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
    store = predictions.PredictionStore(tmp_path, Limits(), DiskSpace(tmp_path, Limits()))
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


def test_what_entries_did_is_known_after_a_kill_without_applying_them_again(own):
    connection = own.connect()
    connection.ask("PUT", "/models/m", {})
    first = [learn_with_key(connection, "m", f"k{number}").json() for number in range(12)]
    connection.ask("POST", "/models/m/set-back", {"to": 4})
    back = [learn_with_key(connection, "m", f"l{number}").json() for number in range(3)]
    kill_and_forget_outcomes(own)
    own.start()
    connection = own.connect()
    again = [learn_with_key(connection, "m", f"k{number}").json() for number in range(12)]
    assert again == first
    assert [learn_with_key(connection, "m", f"l{number}").json() for number in range(3)] == back
    assert connection.ask("GET", "/models/m").json()["seen"] == (3 + 3) * 20
    own.stop()
    with closing(sqlite3.connect(own.folder / "log.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM outcomes").fetchone() == (15,)


def test_an_outcome_that_a_log_lacks_is_found_once_and_kept(own):
    connection = own.connect()
    connection.ask("PUT", "/models/m", {})
    first = [learn_with_key(connection, "m", f"k{number}").json() for number in range(6)]
    own.stop()  # with a snapshot after the last entry
    kill_and_forget_outcomes(own)
    own.start()
    connection = own.connect()
    assert learn_with_key(connection, "m", "k4").json() == first[4]
    with closing(sqlite3.connect(own.folder / "log.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM outcomes").fetchone() == (5,)
    assert [learn_with_key(connection, "m", f"k{number}").json() for number in range(6)] == first


def test_an_imported_log_knows_what_its_entries_did(ask, own):
    connection = own.connect()
    connection.ask("PUT", "/models/m", {})
    first = [learn_with_key(connection, "m", f"k{number}").json() for number in range(6)]
    exported = connection.ask("GET", "/models/m/log").body
    connection.ask("POST", "/models/copy/log", exported, **NDJSON)
    with closing(sqlite3.connect(own.folder / "log.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM outcomes WHERE model = 2").fetchone() == (6,)
    assert [learn_with_key(connection, "copy", f"k{number}").json() for number in range(6)] == first


def test_examples_since_the_last_snapshot_are_counted_across_kills(tmp_path):
    import rosenblatt.serve.server as serving
    from rosenblatt.serve.log import Log
    from rosenblatt.serve.metrics import Metrics
    from rosenblatt.serve.writer import Writer

    with Server(tmp_path / "folder") as server:
        connection = server.connect()
        connection.ask("PUT", "/models/m", {})
        for number in range(5):
            learn_with_key(connection, "m", f"k{number}")
        server.kill()
    with Log(tmp_path / "folder") as log:
        writer = Writer(log, Limits(), None, Metrics())
        serving.load_models(writer, print)
        assert writer.models["m"].examples_since == 100
        writer.states.close()
