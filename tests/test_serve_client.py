"""The client sends a request until it is answered, with one key, and learns what a model in this process would learn."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.sparse as sp

from rosenblatt import errors, rules
from rosenblatt.serve import Client
from rosenblatt.serve.json_rows import batches, label_json, row_json

ACKNOWLEDGED = {"seq": 2, "learned": 1, "mistakes": 0, "wrong": 1}


class Steps:
    """What a server does with the requests that come, one step each; the last step is repeated."""

    def __init__(self, *steps):
        self.steps, self.requests = list(steps), []

    def next(self):
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]


def answer(status=200, body=None, **headers):
    """A step that answers."""

    def step(handler):
        content = json.dumps(ACKNOWLEDGED if body is None else body).encode()
        handler.send_response(status)
        for name, value in {"Content-Length": len(content), **headers}.items():
            handler.send_header(name.replace("_", "-"), str(value))
        handler.end_headers()
        handler.wfile.write(content)

    return step


def problem(status, kind, detail, **facts):
    """A step that answers with problem details."""
    return answer(
        status, {"type": f"urn:rosenblatt:problem:{kind}", "title": "?", "status": status, "detail": detail, **facts}
    )


def drop(handler):
    """A step that closes the connection after the request was read."""
    handler.close_connection = True
    handler.wfile.close()


def cut_off(handler):
    """A step that sends half of an answer and closes the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"half")
    drop(handler)


def silent(handler):
    """A step that does not answer until the client has given up."""
    time.sleep(0.5)
    drop(handler)


@contextmanager
def scripted(*steps, **options):
    """A client of a server that does these steps."""
    script = Steps(*steps)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.requests.append(
                (self.command, self.path, self.headers.get("Idempotency-Key"), body, self.client_address[1])
            )
            script.next()(self)

        do_GET = do_POST = do_PUT = do_DELETE = respond  # noqa: N815  # http.server wants these names

        def log_message(self, *_):
            pass

        def finish(self):
            if not self.wfile.closed:
                super().finish()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}", **{"backoff": 0.001, "timeout": 10, **options}) as client:
            yield client, script
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("fault", [drop, cut_off, answer(503, {"detail": "busy"}), answer(503, {}, Retry_After="0")])
def test_a_request_to_learn_keeps_its_key_over_its_attempts(fault):
    with scripted(fault, fault, fault, answer()) as (client, script):
        done = client.model("m").learn_one({"a": 1}, "x")
        again = client.model("m").learn_one({"a": 1}, "x")
    assert done == again == (2, 1, 0, 1)
    keys = [key for _, _, key, _, _ in script.requests]
    assert len(keys) == 5
    assert len(set(keys[:4])) == 1
    assert keys[4] != keys[0]
    assert len({body for _, _, _, body, _ in script.requests}) == 1


def test_an_answer_that_does_not_come_in_time_is_asked_for_again_with_the_same_key():
    with scripted(silent, answer(), timeout=0.1) as (client, script):
        assert client.model("m").learn_one({"a": 1}, "x").learned == 1
    assert len(script.requests) == 2
    assert script.requests[0][2] == script.requests[1][2] is not None


def test_the_server_says_how_long_to_wait():
    with scripted(answer(503, {}, Retry_After="1"), answer()) as (client, _):
        begin = time.monotonic()
        client.model("m").learn_one({"a": 1}, "x")
        assert time.monotonic() - begin >= 1.0


def test_attempts_end_and_the_error_says_how_many_there_were():
    with scripted(drop, retries=2) as (client, script), pytest.raises(errors.ServerUnavailable) as caught:
        client.model("m").learn_one({"a": 1}, "x")
    assert len(script.requests) == 3 == caught.value.attempts
    assert caught.value.learned == 0
    stopping = answer(503, {"detail": "it is stopping"})
    with scripted(stopping, retries=1) as (client, _), pytest.raises(errors.ServerUnavailable, match="it is stopping"):
        client.models()


def test_nobody_there_is_an_error_that_names_the_address():
    with scripted(answer()) as (client, _):
        url = client._connection.url
    with pytest.raises(errors.ServerUnavailable, match=url) as caught:
        Client(url, retries=1, backoff=0.001).models()
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500, 507])
def test_what_is_refused_is_not_sent_again(status):
    with scripted(problem(status, "something", "no")) as (client, script), pytest.raises(errors.ServerRefused) as caught:
        client.model("m").learn_one({"a": 1}, "x")
    assert len(script.requests) == 1
    assert (caught.value.status, caught.value.kind, caught.value.problem) == (status, "something", "no")


@pytest.mark.parametrize(
    ("kind", "type_", "facts"),
    [
        ("invalid-data", errors.InvalidData, {"row": 3, "hint": "leave it out"}),
        ("invalid-parameter", errors.InvalidParameter, {"parameter": "rate", "value": -1, "allowed": "a number > 0"}),
        ("unknown-label", errors.UnknownLabel, {"row": 1}),
        ("limit-exceeded", errors.LimitExceeded, {"parameter": "rows", "value": 9, "limit": "rows", "most": 5}),
        ("learning-paused", errors.LearningPaused, {}),
        ("unknown-model", errors.UnknownModel, {"value": "m"}),
    ],
)
def test_problem_details_become_the_errors_of_the_library(kind, type_, facts):
    with scripted(problem(422, kind, "it is wrong", **facts)) as (client, _), pytest.raises(type_) as caught:
        client.models()
    assert type(caught.value) is type_
    assert caught.value.problem == "it is wrong"
    assert {name: getattr(caught.value, name) for name in facts} == facts


def test_an_answer_without_problem_details_is_an_error_with_its_status():
    with scripted(answer(502, ["a proxy's own words"])) as (client, _), pytest.raises(errors.ServerRefused) as caught:
        client.models()
    assert caught.value.status == 502


def test_a_connection_is_used_again_and_each_thread_has_its_own():
    with scripted(answer(200, {"models": []})) as (client, script):
        client.models()
        client.models()
        other = threading.Thread(target=client.models)
        other.start()
        other.join(timeout=10)
        client.close()
        client.models()
    ports = [port for *_, port in script.requests]
    assert ports[0] == ports[1]
    assert len(set(ports)) == 3


def test_a_connection_that_the_server_has_closed_costs_no_wait():
    def last(handler):
        answer(200, {"models": []})(handler)
        handler.wfile.flush()
        drop(handler)

    with scripted(last, last, answer(200, {"models": []}), retries=0) as (client, script):
        for _ in range(3):
            client.models()
    assert len(script.requests) == 3


def test_a_deleted_model_is_deleted_if_the_first_answer_was_lost():
    gone = problem(404, "unknown-model", "there is no model 'm'")
    with scripted(drop, gone) as (client, _):
        client.delete("m")
    with scripted(gone) as (client, _):
        client.delete("m", missing_ok=True)
        with pytest.raises(errors.UnknownModel):
            client.delete("m")


def test_a_model_that_is_there_already_is_a_conflict_unless_the_answer_was_lost_or_it_may_be():
    with scripted(answer(200)) as (client, _):
        client.create("m", exist_ok=True)
        with pytest.raises(errors.Conflict):
            client.create("m")
    with scripted(drop, answer(200)) as (client, script):
        client.create("m", parameters={"rule": rules.PA1(0.5), "max_features": np.int64(9)})
    sent = json.loads(script.requests[-1][3])
    assert sent["parameters"] == {"rule": {"PA1": {"C": 0.5}}, "max_features": 9}


def test_setting_back_is_not_repeated_when_it_may_have_been_done():
    with scripted(answer(200, {"models": []}), drop, answer()) as (client, script):
        client.models()
        with pytest.raises(errors.ServerUnavailable, match="not known whether"):
            client.model("m").set_back(1)
    assert len(script.requests) == 2
    with scripted(answer(503, {}), answer(200, {"seq": 4, "to": 1})) as (client, script):
        assert client.model("m").set_back(1) == 4


def test_a_download_that_is_cut_off_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "m.model"
    file.write_bytes(b"before")
    with scripted(cut_off, retries=1) as (client, _), pytest.raises(errors.ServerUnavailable):
        client.model("m").save(file)
    assert file.read_bytes() == b"before"
    with scripted(cut_off, answer(200, "whole")) as (client, script):
        client.model("m").at(7).save(file)
    assert file.read_bytes() == b'"whole"'
    assert script.requests[-1][1] == "/models/m/file?at=7"


def test_many_examples_go_in_batches_and_an_error_counts_rows_from_the_first(monkeypatch):
    monkeypatch.setattr("rosenblatt.serve.client.BATCH_ROWS", 4)
    good = answer(200, {"seq": 2, "learned": 4, "mistakes": 1, "wrong": 2})
    with scripted(good, good, answer(200, {"seq": 4, "learned": 2, "mistakes": 0, "wrong": 0})) as (client, script):
        done = client.model("m").learn_many(np.eye(10), ["a", "b"] * 5, np.arange(10))
    assert done == (4, 10, 2, 4)
    sent = [json.loads(body)["examples"] for _, _, _, body, _ in script.requests]
    assert [len(batch) for batch in sent] == [4, 4, 2]
    assert sent[1][1] == {"x": np.eye(10)[5].tolist(), "y": "b", "w": 5.0}
    assert len({key for _, _, key, _, _ in script.requests}) == 3
    with (
        scripted(good, problem(422, "invalid-data", "no", row=2)) as (client, _),
        pytest.raises(errors.InvalidData) as caught,
    ):
        client.model("m").learn_many(np.eye(10), ["a", "b"] * 5)
    assert (caught.value.row, caught.value.learned) == (6, 4)
    refused = answer(
        200, {"seq": 3, "learned": 3, "mistakes": 0, "wrong": 0, "refused": [{"row": 1, "detail": "too long"}]}
    )
    with scripted(good, refused) as (client, _), pytest.raises(errors.InvalidData, match="too long") as caught:
        client.model("m").learn_many(np.eye(10), ["a", "b"] * 5)
    assert (caught.value.row, caught.value.learned) == (5, 7)


def test_nothing_is_sent_if_one_example_cannot_be():
    with scripted(answer()) as (client, script):
        model = client.model("m")
        for rows, labels, weights, row in [
            ([{"a": 1}, {"a": float("nan")}], ["x", "y"], None, 1),
            ([{"a": 1}, {("a", 1): 1}], ["x", "y"], None, 1),
            ([{"a": 1}, {"a": 1}], ["x", None], None, 1),
            ([{"a": 1}, {"a": 1}], ["x", "y"], [1, -1], 1),
            ([{"a": 1}, {5: 1, "5": 2}], ["x", "y"], None, 1),
            ([{"a": b"bytes"}, {"a": 1}], ["x", "y"], None, 0),
            (["\ud800"], ["x"], None, 0),
        ]:
            with pytest.raises(errors.InvalidData) as caught:
                model.learn_many(rows, labels, weights)
            assert caught.value.row == row
        with pytest.raises(errors.InvalidData, match="2 rows"):
            model.learn_many(np.eye(2), ["x"])
    assert not script.requests


def test_batches_are_bounded_by_rows_and_by_bytes():
    lines = [b"x" * size for size in (1, 1, 1, 50, 1, 1)]
    assert [len(batch) for batch in batches(lines, 2, 1000)] == [2, 2, 2]
    assert [len(batch) for batch in batches(lines, 100, 10)] == [3, 1, 2]
    assert list(batches([], 2, 10)) == []


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"a": np.float64(0.1), "b": np.float32(0.5), "c": True, "d": np.int64(3), "e": "red"}, None),
        ({3: 1, np.int32(4): 0.1 + 0.2}, '{"3":1,"4":0.30000000000000004}'),
        ([1, 2.5], "[1.0,2.5]"),
        (np.array([1, 2]), "[1.0,2.0]"),
    ],
)
def test_a_row_is_sent_with_the_digits_of_its_doubles(row, text):
    key, found = row_json(row)
    assert key == "x"
    assert text is None or found == text
    if text is None:
        assert json.loads(found) == {"a": 0.1, "b": 0.5, "c": True, "d": 3, "e": "red"}


def test_labels_are_sent_as_what_they_are():
    assert [label_json(one) for one in ["spam", 1, True, 2.0, np.int8(3), np.str_("x"), 0.5]] == [
        '"spam"', "1", "true", "2", "3", '"x"', "0.5",
    ]  # fmt: skip
    for wrong in (None, ("a",), float("inf")):
        with pytest.raises(errors.InvalidData):
            label_json(wrong)


def test_tables_of_all_kinds_are_sent_row_by_row():
    pandas = pytest.importorskip("pandas")
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    with scripted(answer(200, {"seq": 1, "predictions": [{"label": "a"}, {"label": "b"}]})) as (client, script):
        for table in (X, sp.csr_matrix(X), pandas.DataFrame(X, columns=["u", "v"]), ["win money", "see you"]):
            assert client.model("m").predict_many(table) == ["a", "b"]
    sent = [json.loads(body)["examples"] for _, _, _, body, _ in script.requests]
    assert sent[0] == [{"x": [1.0, 0.0]}, {"x": [0.0, 2.0]}]
    assert sent[1] == [{"x": {"0": 1.0}}, {"x": {"1": 2.0}}]
    assert sent[2] == [{"x": {"u": 1.0, "v": 0.0}}, {"x": {"u": 0.0, "v": 2.0}}]
    assert sent[3] == [{"text": "win money"}, {"text": "see you"}]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("url", "ftp://host"), ("url", "localhost:8000"), ("url", "http://u:p@host"), ("url", "http://host:port"),
        ("token", "a\nb"), ("token", ""), ("timeout", 0), ("retries", -1), ("backoff", -1),
    ],
)  # fmt: skip
def test_parameters_are_checked_and_a_token_is_never_shown(parameter, value):
    with pytest.raises(errors.InvalidParameter) as caught:
        Client(**{"url": "http://localhost", parameter: value})
    assert caught.value.parameter == parameter
    assert "secret" not in repr(Client("http://localhost", "secret"))


@pytest.mark.parametrize("name", ["", "../m", "a/b", "a" * 65, ".m", "m?", 7])
def test_a_name_that_no_model_can_have_is_refused_before_anything_is_sent(name):
    with pytest.raises(errors.InvalidParameter):
        Client("http://localhost").model(name)
