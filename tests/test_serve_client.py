"""The client sends a request until it is answered, with one key, and learns what a model in this process would learn."""

import json
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rosenblatt
from rosenblatt import errors, rules
from rosenblatt.online import OnlinePerceptron
from rosenblatt.online.rows import numeric_row
from rosenblatt.serve import Client, replay
from rosenblatt.serve.json_rows import batches, label_json, row_json
from rosenblatt.workflow import Options, reading_for, train

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


def test_waits_double_and_the_server_may_say_how_long(monkeypatch):
    waits = []
    monkeypatch.setattr("rosenblatt.serve.connection.time.sleep", waits.append)
    busy = answer(503, {})
    with scripted(busy, busy, busy, answer(503, {}, Retry_After="7"), busy, answer(), backoff=1.0) as (client, _):
        client.model("m").learn_one({"a": 1}, "x")
    bounds = [(0.5, 1), (1, 2), (2, 4), (7, 7), (2.5, 5)]
    assert all(low <= wait <= high for wait, (low, high) in zip(waits, bounds, strict=True))


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
    assert caught.value.problem == f"{url} cannot be reached (2 attempts): Connection refused"


def test_what_cannot_be_sent_is_refused_before_it_is():
    with scripted(answer()) as (client, script):
        with pytest.raises(errors.InvalidParameter, match="leave out parameters, hashing"):
            client.create("m", parameters={"keep": "last"}, hashing=64, file="any.model")
        with pytest.raises(errors.InvalidParameter, match="got None: the row of this prediction was not stored"):
            client.model("m").learn_label(None, "x")
        assert not script.requests


def test_a_token_that_is_missing_is_an_argument_of_the_client():
    refused = problem(401, "unauthorized", "this server needs a token", hint="rosenblatt token add")
    with scripted(refused) as (client, _), pytest.raises(errors.ServerRefused) as caught:
        client.models()
    assert caught.value.hint == "pass token= to Client; rosenblatt token add"


def test_the_facts_of_a_refusal_are_attributes():
    refused = problem(422, "invalid-data", "no", entry=3, learned=7)
    with scripted(refused) as (client, _), pytest.raises(errors.InvalidData) as caught:
        client.models()
    assert (caught.value.entry, caught.value.learned) == (3, 7)


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


# With a real server


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    pytest.importorskip("fastapi")
    pytest.importorskip("uvloop")
    folder = tmp_path_factory.mktemp("served") / "models"
    command = [sys.executable, "-m", "rosenblatt", "serve", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        late = threading.Timer(120, process.kill)
        late.start()
        try:
            url = json.loads(process.stdout.readline())["url"]
            with Client(url) as client:
                yield client
        finally:
            late.cancel()
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture
def name():
    """A name that no other model has."""
    return f"m{uuid.uuid4().hex[:12]}"


ROWS = st.lists(
    st.tuples(
        st.dictionaries(
            st.sampled_from(["a", "b", "c", "é", "0"]), st.floats(-1e3, 1e3) | st.integers(-3, 3) | st.just("red")
        ),
        st.sampled_from(["x", "y", "z"]),
        st.sampled_from([1.0, 0.5, 0.0, 3.0]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=10)
@given(stream=ROWS, keep=st.sampled_from(["last", "average"]), many=st.booleans())
def test_a_model_on_a_server_is_the_model_in_this_process(served, stream, keep, many):
    remote = served.create(f"h{uuid.uuid4().hex[:12]}", parameters={"keep": keep})
    local = OnlinePerceptron(keep=keep)
    rows, labels, weights = zip(*stream, strict=True)
    if many:
        remote.learn_many(rows, labels, weights)
        local.learn_many(rows, labels, weights)
    else:
        for row, label, weight in stream:
            remote.learn_one(row, label, weight)
            local.learn_one(row, label, weight)
    described = remote.describe()
    assert (described["seen"], described["mistakes"], described["updates"]) == (
        local.n_seen_, local.n_mistakes_, local.n_updates_,
    )  # fmt: skip
    assert remote.classes_ == local.classes_
    assert remote.predict_many(rows) == local.predict_many(rows)
    assert remote.predict_one({}) == local.predict_one({})
    if local.n_seen_:
        assert [remote.score_one(row) for row in rows[:3]] == [local.score_one(row) for row in rows[:3]]
        assert remote.explain_one(numeric_row(rows[0])) == local.explain_one(numeric_row(rows[0]))
        for label in local.classes_:
            assert remote.weights_of(label) == local.weights_of(label)
            assert remote.intercept_of(label) == local.intercept_of(label)


def test_labels_and_features_of_all_kinds_come_back_as_they_were(served, name):
    X, y = np.array([[1.0, 0.25], [0.0, 2.0], [3.0, 0.1], [0.5, 0.5]]), np.array([1, 2, 1, 3])
    remote, local = served.create(name), OnlinePerceptron()
    for model in (remote, local):
        model.learn_many(X, y)
    assert remote.predict_many(X) == local.predict_many(X)
    assert remote.score_one(X[0]) == local.score_one(X[0])
    assert set(map(type, remote.score_one(X[0]))) == {int}
    remote, local = served.create(name + "t"), OnlinePerceptron()
    for model in (remote, local):
        model.learn_many([{"a": 1}, {"b": 1}, {"a": 2}], [True, False, True])
    assert remote.predict_one({"a": 1}) is local.predict_one({"a": 1})
    assert remote.score_one({"a": 1}) == local.score_one({"a": 1})
    assert all(type(label) is bool for label in remote.score_one({"a": 1}))


def test_late_labels_are_learned_with_the_row_that_was_predicted(served, name):
    remote, local = served.create(name), OnlinePerceptron()
    texts = ["win money now", "see you at noon", "money for you", "lunch at noon"]
    predictions = remote.predict_with_ids(texts)
    assert [found.label for found in predictions] == [None] * 4
    assert remote.learn_labels([found.id for found in predictions], ["spam", "ham"] * 2).learned == 4
    found = remote.predict_with_id({"money": 2.0})
    assert found.scores == remote.score_one({"money": 2.0})
    assert remote.learn_label(found.id, "spam", 0.5).learned == 1
    for text, label in zip(texts, ["spam", "ham"] * 2, strict=True):
        words = text.split()
        local.learn_one(dict.fromkeys([*words, *map(" ".join, pairwise(words))], 1), label)
    local.learn_one({"money": 2.0}, "spam", 0.5)
    assert remote.weights_of("spam") == local.weights_of("spam")
    with pytest.raises(errors.Conflict):
        remote.learn_label(found.id, "ham")
    with pytest.raises(errors.UnknownEntry):
        remote.learn_label("nothing", "ham")


def test_earlier_states_can_be_looked_at_and_returned_to(served, name, tmp_path):
    remote, local = served.create(name), OnlinePerceptron()
    stream = [({"a": 1, "b": k % 3}, "xy"[k % 2]) for k in range(6)]
    seqs = []
    for row, label in stream:
        seqs.append(remote.learn_one(row, label).seq)
    for row, label in stream[:3]:
        local.learn_one(row, label)
    then = remote.at(seqs[2])
    assert then.score_one({"a": 1}) == local.score_one({"a": 1})
    assert (then.n_seen_, then.n_mistakes_, then.n_updates_) == (local.n_seen_, local.n_mistakes_, local.n_updates_)
    then.save(tmp_path / "then.model")
    assert rosenblatt.load(tmp_path / "then.model").score_one({"a": 1}) == local.score_one({"a": 1})
    assert remote.set_back(seqs[2]) == seqs[-1] + 1
    assert remote.score_one({"a": 1}) == local.score_one({"a": 1})
    with pytest.raises(errors.UnknownEntry):
        remote.set_back(99)
    with pytest.raises(errors.UnknownEntry):
        remote.at(99).describe()


def test_the_log_gives_the_model_again_here_and_on_the_server(served, name, tmp_path):
    remote = served.create(name, parameters={"keep": "average", "rule": rules.PA1(0.5)})
    remote.learn_many([{"a": k / 3, "b": 1} for k in range(20)], ["x", "y", "z", "y"] * 5)
    remote.set_back(1)
    remote.learn_many([{"a": k / 7, "c": 1} for k in range(10)], ["x", "y"] * 5)
    for file in ("log.jsonl", "log.jsonl.gz"):
        remote.export_log(tmp_path / file)
    with open(tmp_path / "log.jsonl", "rb") as lines:
        replay(lines).save(tmp_path / "replayed.model")
    remote.save(tmp_path / "served.model")
    served.import_log(name + "i", tmp_path / "log.jsonl.gz").save(tmp_path / "imported.model")
    contents = {(tmp_path / f"{kind}.model").read_bytes() for kind in ("replayed", "served", "imported")}
    assert len(contents) == 1
    with pytest.raises(errors.Conflict):
        served.import_log(name + "i", tmp_path / "log.jsonl.gz")


def test_scores_that_overflow_are_null_and_explaining_them_is_refused(served, name):
    remote = served.create(name, "Perceptron", hashing=64, classes=["x", "y"])
    remote.learn_one({"a": 1e100, "b": 1e100}, "x", 1e150)
    row = {"a": 1e100, "b": -1e100}
    assert remote.score_one(row) == {"x": None, "y": None}
    assert remote.predict_one(row) in ("x", "y")
    with pytest.raises(errors.NumericOverflow):
        remote.explain_one(row)


def test_threads_share_a_client_and_nothing_is_lost_or_learned_twice(served, name):
    remote = served.create(name)
    done = []

    def work(number):
        for k in range(10):
            done.append(remote.learn_many([{f"t{number}": 1, "k": k}] * 2, ["x", "y"]))
            remote.predict_one({"k": k})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert remote.n_seen_ == sum(each.learned for each in done) == 120
    assert sorted(each.seq for each in done) == list(range(2, 62))


def test_history_counts_what_was_predicted_wrongly(served, name):
    remote, local = served.create(name), OnlinePerceptron()
    stream = [({"a": k % 5, "b": k % 3}, "xy"[k % 2]) for k in range(30)]
    wrong = 0
    for row, label in stream:
        wrong += local.predict_one(row) != label
        local.learn_one(row, label)
    done = remote.learn_many(*zip(*stream, strict=True))
    assert (done.learned, done.mistakes, done.wrong) == (30, local.n_mistakes_, wrong)
    history = remote.history(labels=True)
    assert sum(window["wrong"] for window in history["windows"]) == wrong == remote.describe()["wrong"]
    assert sum(window["labels"]["x"]["seen"] for window in history["windows"]) == 15


def test_what_the_server_refuses_is_an_error_of_the_library(served, name, monkeypatch):
    with pytest.raises(errors.UnknownModel):
        served.model(name).predict_one({"a": 1})
    with pytest.raises(errors.UnknownModel):
        served.delete(name)
    with pytest.raises(errors.InvalidParameter) as caught:
        served.create(name, parameters={"keep": "everything"})
    assert caught.value.parameter == "keep"
    with pytest.raises(errors.InvalidParameter):
        served.create(name, "NoSuchLearner")
    remote = served.create(name, parameters={"max_classes": 2})
    with pytest.raises(errors.Conflict):
        served.create(name, parameters={"max_classes": 3}, exist_ok=True)
    with pytest.raises(errors.UnsupportedOperation):
        remote.explain_one({"a": 1})
    monkeypatch.setattr("rosenblatt.serve.client.BATCH_ROWS", 2)
    with pytest.raises(errors.InvalidData) as caught:
        remote.learn_many([{"a": 1}, {"b": 1}, {"a": 1}, {"a": 1e200}], ["x", "y", "x", "y"])
    assert (caught.value.row, caught.value.learned, remote.n_seen_) == (3, 2, 2)
    with pytest.raises(errors.UnknownLabel):
        remote.weights_of("z")
    with pytest.raises(errors.UnknownLabel):
        remote.explain_one({"a": 1}, "z")
    served.delete(name)
    assert name not in [model["name"] for model in served.models()]


def test_the_other_of_two_classes_is_explained_and_of_three_is_not(served, name):
    remote, local = served.create(name), OnlinePerceptron()
    for model in (remote, local):
        model.learn_many([{"a": 1, "b": 2}, {"b": 1}, {"a": 3}], ["x", "y", "x"])
    for label in "xy":
        assert remote.explain_one({"a": 1, "b": 0.5}, label) == local.explain_one({"a": 1, "b": 0.5}, label)
    remote.learn_one({"c": 1}, "z")
    predicted = remote.predict_one({"a": 1})
    assert remote.explain_one({"a": 1}, predicted).label == predicted
    with pytest.raises(errors.UnsupportedOperation, match="more than two classes"):
        remote.explain_one({"a": 1}, next(label for label in "xyz" if label != predicted))


def test_models_from_files_start_and_go_on(served, name, tmp_path):
    local = OnlinePerceptron()
    local.learn_many([{"a": 1}, {"b": 1}], ["x", "y"])
    local.save(tmp_path / "online.model")
    remote = served.create(name, file=tmp_path / "online.model")
    for model in (remote, local):
        model.learn_one({"a": 2, "b": 1}, "y")
    assert remote.score_one({"a": 1}) == local.score_one({"a": 1})
    clf = rosenblatt.Perceptron().fit(np.eye(3), ["x", "y", "x"])
    clf.save(tmp_path / "clf.model")
    remote = served.create(name + "e", file=tmp_path / "clf.model")
    assert remote.predict_many(np.eye(3)) == clf.predict(np.eye(3)).tolist()
    remote.learn_many(np.ones((3, 3)), ["y", "x", "y"])
    clf.partial_fit(np.ones((3, 3)), ["y", "x", "y"])
    assert remote.score_one([1, 2, 3])["y"] == clf.decision_function([[1, 2, 3]])[0]


def test_a_model_that_was_trained_from_a_table_goes_on_from_rows_of_json(served, name, tmp_path):
    people = [
        {"label": "yes" if k % 3 else "no", "age": k, "note": ["free prize", "hello friend"][k % 2]} for k in range(12)
    ]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in people))
    file = str(tmp_path / "people.jsonl")
    model = train(file, reading_for([file], text="note", min_count=1), options=Options(passes=2))
    model.save(tmp_path / "people.model")
    remote = served.create(name, file=tmp_path / "people.model")
    rows = [{"age": row["age"], "note": row["note"]} for row in people]
    assert remote.predict_many(rows) == model.predict(file).tolist()
    acknowledged = remote.learn_many(rows, ["yes", "no", "maybe"] * 4)
    expected = train(file_of(tmp_path, rows, ["yes", "no", "maybe"] * 4), model.reading, options=ONCE, start=model)
    assert acknowledged.learned == 12
    remote.save(tmp_path / "after.model")
    after = rosenblatt.load(tmp_path / "after.model")
    assert after.learner.coef_.tolist() == expected.learner.coef_.tolist()
    assert remote.classes_ == tuple(expected.classes_.tolist()) == ("no", "yes", "maybe")
    with pytest.raises(errors.InvalidData) as caught:
        remote.learn_many([rows[0], {"age": None, "note": "hello"}], ["yes", "no"])
    assert caught.value.row == 1
    remote.export_log(tmp_path / "log.jsonl")
    with open(tmp_path / "log.jsonl", "rb") as lines:
        replay(lines).save(tmp_path / "replayed.model")
    assert (tmp_path / "replayed.model").read_bytes() == (tmp_path / "after.model").read_bytes()


ONCE = Options(passes=1, stream=True)


def file_of(folder, rows, labels):
    path = folder / "more.jsonl"
    path.write_text("".join(json.dumps({**row, "label": label}) + "\n" for row, label in zip(rows, labels, strict=True)))
    return str(path)
