"""The lab: what it records is what the learners do, its routes answer, and what is too much or malformed is refused."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worked import EIGHT, EIGHT_Y, SIX, SIX_Y

from bench.leavers import leave_lab
from rosenblatt.cli import main
from rosenblatt.errors import InvalidData, InvalidParameter, LimitExceeded, NumericOverflow, UnknownParameter
from rosenblatt.lab import LEARNERS, Job, forms, record, recording
from rosenblatt.lab.app import describe, make_app, parse_run, run_content
from rosenblatt.lab.points import parse_points, presets, read_points
from rosenblatt.lab.warming import Warming
from rosenblatt.theory import trace
from rosenblatt.workflow.learners import LEARNERS as ALL

SECONDS = 60  # for a command
UNIT = np.array([[0.0, 0], [0, 1], [1, 1], [1, 0], [1, 1], [0, 1]])  # which Winnow takes too
UNIT_Y = np.array([-1, -1, 1, 1, 1, -1])
CLOUD = np.random.default_rng(3).normal(size=(25, 2))
CLOUD_Y = np.where(CLOUD @ [1.0, 0.5] + 0.3 * np.sin(9 * CLOUD[:, 0]) > 0, 1, -1)


def points_for(learner):
    return (UNIT, UNIT_Y) if learner.startswith("Winnow") else (CLOUD, CLOUD_Y)


def state_of(model, X):
    """What a learner says of points: its line, or else its scores."""
    coef = getattr(model, "coef_", None)
    return model.decision_function(X) if coef is None else np.append(coef[0], model.intercept_)


# What is recorded is what the learner does


def test_every_classifier_of_the_family_is_in_the_lab():
    assert {*LEARNERS} == {name for name in ALL if not name.endswith("Regressor")}


@pytest.mark.parametrize("order", forms.ORDERS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_last_state_is_that_of_an_ordinary_fit(learner, order):
    if forms.orders(learner) and order not in forms.orders(learner):
        with pytest.raises(InvalidParameter, match="order must be one of"):
            record(*points_for(learner), Job(learner, order=order))
        return
    X, y = points_for(learner)
    job = Job(learner, {}, order, epochs=4, seed=5)
    run = record(X, y, job)
    model = forms.make(learner, {}, order, 4, 5).fit(X, y)
    if run.lines is not None:
        assert np.allclose(run.lines[-1], state_of(model, X), rtol=1e-12, atol=1e-14)
        assert len(run.lines) == len(run.example) + 1
    else:
        axis = np.linspace(-1, 1, recording.GRID)
        plane = np.column_stack([np.tile(axis, recording.GRID), np.repeat(axis, recording.GRID)])
        assert np.allclose(run.grids[len(run.example)].ravel(), model.decision_function(plane), rtol=1e-9, atol=1e-12)
    assert run.errors[-1] == np.count_nonzero(model.predict(X) != y)
    if run.unit == "update":
        assert (run.mistakes[-1], run.seen) == (model.n_mistakes_, model.n_seen_)
        assert len([row for row in run.example if row is not None]) == model.n_updates_


@pytest.mark.parametrize("keep", ["last", "average", "vote"])
@pytest.mark.parametrize("learner", ["Perceptron", "MIRA", "PAUM", "KernelPerceptron"])
def test_what_is_kept_is_what_is_seen(learner, keep):
    run = record(CLOUD, CLOUD_Y, Job(learner, {"keep": keep}, epochs=3))
    model = forms.make(learner, {"keep": keep}, "cyclic", 3, 0).fit(CLOUD, CLOUD_Y)
    assert run.errors[-1] == np.count_nonzero(model.predict(CLOUD) != CLOUD_Y)
    if run.lines is not None:
        assert np.allclose(run.lines[-1], state_of(model, CLOUD), rtol=1e-12)


ONE_BY_ONE = [name for name in LEARNERS if forms.learns_from_single_rows(name)]
KEEPING = [name for name in ONE_BY_ONE if "keep" in {field.name for field in forms.fields(name)}]


@pytest.mark.parametrize(
    ("learner", "chosen"),
    [(name, {}) for name in ONE_BY_ONE] + [(name, {"keep": keep}) for name in KEEPING for keep in ("average", "vote")],
)
def test_every_state_is_that_of_partial_fit_row_by_row(learner, chosen):
    X, y = points_for(learner)
    model = forms.make(learner, chosen, "cyclic", 2, 0)
    streamed = forms.make(learner, chosen, "cyclic", 2, 0)
    learn = model._one_by_one(X, (y > 0).astype(np.int64), 2)
    for i in 2 * [*range(len(y))]:
        learn(i)
        streamed.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1, 1])
        assert np.allclose(state_of(model, X), state_of(streamed, X), rtol=1e-9, atol=1e-12)
        assert np.allclose(model.decision_function(X), streamed.decision_function(X), rtol=1e-9, atol=1e-12)
        assert (model.n_mistakes_, model.n_updates_) == (streamed.n_mistakes_, streamed.n_updates_)


def test_a_row_that_overflows_is_named():
    X = np.array([[1.0, 2.0], [1e308, 1e308]])
    learn = forms.make("Perceptron", {"keep": "average"}, "cyclic", 2, 0)._one_by_one(X, np.array([0, 1]), 2)
    learn(0)
    with pytest.raises(NumericOverflow, match="overflowed at row 1"):
        learn(1)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.sampled_from([-1, 1])), min_size=2, max_size=9),
    st.sampled_from(forms.ORDERS),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
)
def test_the_proof_is_that_of_the_same_run(points, order, intercept, margin):
    table = np.array(points, dtype=float)
    X, y = table[:, :2], table[:, 2]
    if len(np.unique(y)) < 2:
        y[0] = -y[0]
    run = record(X, y, Job("Perceptron", {"fit_intercept": intercept, "margin": margin}, order, epochs=12))
    if run.proof is None:
        assert run.example == []
        return
    assert run.proof.example.tolist() == run.example
    last = run.proof.weights if intercept else np.append(run.proof.weights, 0)
    assert np.array_equal(run.lines[-1], last)
    path = run.proof.path
    assert np.array_equal(run.lines[:, : path.shape[1]], path)
    assert run.proof.converged or run.stopped == "epochs"
    assert run.proof.broken is None


def test_the_points_of_the_lecture_notes_take_the_updates_that_the_notes_count():
    six, eight, xor, hard = presets()[:4]
    assert np.array_equal(six.X, SIX)
    assert np.array_equal(six.y, SIX_Y)
    assert np.array_equal(eight.X, EIGHT)
    assert np.array_equal(eight.y, EIGHT_Y)
    run = record(six.X, six.y, Job(settings={"fit_intercept": six.intercept}))
    assert (len(run.example), run.lines[-1].tolist()) == (3, [3, 1, 0])
    assert run.proof.bound == trace(six.X, six.y, constant=0).bound == pytest.approx(5)
    run = record(hard.X, hard.y, Job(settings={"fit_intercept": False}))
    assert len(run.example) == (4**2 - 1) // 3
    run = record(xor.X, xor.y, Job())
    assert run.proof.repeat == (0, 4)
    assert not run.separates


def test_a_run_stops_where_it_is_told_to():
    xor = presets()[2]
    run = record(xor.X, xor.y, Job(epochs=3))
    assert (run.stopped, run.epochs, run.seen) == ("epochs", 3, 12)
    run = record(xor.X, xor.y, Job(updates=5))
    assert (run.stopped, len(run.example)) == ("updates", 5)
    assert record(SIX, SIX_Y, Job()).stopped == "converged"


def test_a_run_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(recording, "MOST_SECONDS", 0.0)
    run = record(CLOUD, CLOUD_Y, Job("MIRA"))
    assert (run.stopped, run.seen) == ("time", 1)
    assert record(CLOUD, CLOUD_Y, Job("DeltaRuleClassifier")).stopped == "time"


def test_of_a_long_run_some_grids_are_kept(monkeypatch):
    monkeypatch.setattr(recording, "MOST_GRIDS", 8)
    run = record(CLOUD, CLOUD_Y, Job("KernelPerceptron", {"gamma": 0.01}, epochs=6))
    assert len(run.example) > 20
    assert len(run.grids) <= 9
    assert len(run.example) in run.grids
    assert len(run.errors) == len(run.example) + 1


# What is refused


@pytest.mark.parametrize(
    ("job", "kind", "message"),
    [
        (Job("Oracle"), InvalidParameter, "learner must be one of Perceptron, .*; got 'Oracle'"),
        (Job("DeltaRuleRegressor"), InvalidParameter, "learner must be one of"),
        (Job(order="backwards"), InvalidParameter, "order must be one of cyclic, shuffle, random"),
        (Job(settings={"margin": -1}), InvalidParameter, "margin must be a number ≥ 0"),
        (Job(settings={"margin": [1]}), InvalidParameter, "margin must be a number ≥ 0"),
        (Job(settings={"device": "cuda"}), UnknownParameter, "device"),
        (Job(settings={"max_bytes": 1}), UnknownParameter, "max_bytes"),
        (Job(epochs=0), InvalidParameter, "epochs must be a whole number ≥ 1; got 0"),
        (Job(updates=10_001), LimitExceeded, "updates must be at most 10,000; got 10,001"),
        (Job(epochs=10**9), LimitExceeded, "epochs must be at most 10,000"),
        (Job(seed=-1), InvalidParameter, "seed must be a whole number"),
    ],
)
def test_jobs_that_cannot_be_done_are_refused(job, kind, message):
    with pytest.raises(kind, match=message):
        record(SIX, SIX_Y, job)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((501, 2)), np.ones(501), "points must be at most 500; got 501"),
        ([[0, 1], [1, 0]], [1, 1], "points must be of both classes"),
        ([[0, np.nan], [1, 0]], [1, -1], "coordinates must be numbers"),
        ([[0, 1e7], [1, 0]], [1, -1], "coordinates must be numbers from -1e"),
        ([[0, 1], [1, 0]], [1, 2], "a point must be two numbers and a class"),
        ([[0], [1]], [1, -1], "a point must be two numbers and a class"),
    ],
)
def test_points_that_cannot_be_learned_are_refused(X, y, message):
    with pytest.raises((LimitExceeded, InvalidData), match=message):
        record(X, y, Job())


def test_what_a_learner_refuses_it_says_itself():
    with pytest.raises(InvalidData, match="Winnow1 needs features that are 0 or 1; X has 2 at row 1, column 0"):
        record([[1, 0], [2, 1]], [1, -1], Job("Winnow1"))


# Forms


def test_a_form_has_what_the_learner_declares():
    found = {field.name: field for field in forms.fields("Perceptron")}
    assert list(found) == ["margin", "eta0", "learning_rate", "fit_intercept", "intercept_scaling", "keep"]
    assert (found["margin"].kind, found["margin"].default, found["margin"].low) == ("number", 0.0, 0)
    assert found["learning_rate"].words == ("constant", "invsqrt", "inverse")
    assert found["fit_intercept"].kind == "flag"
    assert (found["keep"].default, found["keep"].words) == ("last", ("last", "average", "vote"))
    assert "precomputed" not in {field.name: field for field in forms.fields("KernelPerceptron")}["kernel"].words


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_defaults_of_a_form_and_each_of_its_words_can_be_run(learner):
    X, y = points_for(learner)
    defaults = {field.name: field.default for field in forms.fields(learner)}
    words = [{field.name: word} for field in forms.fields(learner) for word in field.words]
    for settings_of_a_form in (defaults, *words):
        run = record(X, y, Job(learner, settings_of_a_form, epochs=1))
        assert run.seen == len(X) or (run.unit == "run" and run.seen > 0)
        assert len(run.errors) == len(run.example) + 1
        if run.lines is not None:
            *w, b = run.lines[-1]
            margins = y * (X @ w + b)  # on the line itself either class may be predicted
            assert np.count_nonzero(margins < 0) <= run.errors[-1] <= np.count_nonzero(margins <= 0)


def test_what_the_page_starts_from_is_json():
    content = json.loads(json.dumps(describe(presets()[0]), allow_nan=False))
    assert [learner["name"] for learner in content["learners"]] == list(LEARNERS)
    assert content["points"]["points"] == [[*map(int, point), int(sign)] for point, sign in zip(SIX, SIX_Y, strict=True)]
    assert len(content["presets"]) == 6


def test_a_run_is_json_with_its_proof():
    content = json.loads(json.dumps(run_content(record(SIX, SIX_Y, Job())), allow_nan=False))
    assert len(content["lines"]) == len(content["proof"]["norm"]) == len(content["example"]) + 1
    assert content["separates"] is True
    content = json.loads(json.dumps(run_content(record(UNIT, UNIT_Y, Job("KernelPerceptron"))), allow_nan=False))
    assert content["lines"] is None
    assert content["grids"]


@pytest.mark.parametrize(
    ("learner", "settings"), [("Perceptron", {"eta0": 1e300}), ("SigmaPerceptron", {"intercept_scaling": 1e-300})]
)
def test_a_run_that_overflows_is_refused(learner, settings):
    X, y = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), np.array([1, -1, 1, -1])
    with pytest.raises(NumericOverflow, match="overflow"):
        record(X, y, Job(learner, settings))


# Files


@pytest.mark.parametrize(
    ("text", "axes", "labels", "signs"),
    [
        ("x1,x2,label\n1,2,a\n3,4,b\n", ("x1", "x2"), ("a", "b"), [-1, 1]),
        ("label,up,right\n1,1,2\n-1,3,4\n", ("up", "right"), ("-1", "1"), [1, -1]),
        ("1;2;0\n3;4;1\n5;6;1\n", ("0", "1"), ("0", "1"), [-1, 1, 1]),
    ],
)
def test_points_are_read_from_a_table(text, axes, labels, signs):
    points = parse_points(text.encode())
    assert (points.axes, points.labels, points.y.tolist()) == (axes, labels, signs)
    assert points.X[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c,label\n1,2,3,0\n4,5,6,1\n", "two columns of numbers beside the label; it has a .number., b"),
        ("a,b,label\n1,x,0\n4,y,1\n", "two columns of numbers beside the label"),
        ("a,b\n1,2\n4,5\n", "it has fewer than three columns"),
        ("a,b,label\n1,2,0\n4,5,0\n", "the label must have two values; it has 1"),
        ("a,b,label\n1,2,0\n4,5,1\n6,7,2\n", "the label must have two values; it has 3"),
        ("a,b,label\n" + "1,2,0\n4,5,1\n" * 251, "points must be at most 500; got 502"),
        ("a,b,label\n1,2e6,0\n4,5,1\n", "coordinates must be numbers from -1e.06 to 1e.06"),
        ("a,b,label\n1,,0\n4,5,1\n", "line 2, column 'b': the value is missing"),
        ("", "there are no rows"),
    ],
)
def test_tables_of_anything_else_are_refused(text, message):
    with pytest.raises((InvalidData, LimitExceeded), match=message):
        parse_points(text.encode())


# Compiling


def test_a_learner_that_is_asked_for_is_compiled_once():
    compiled = []
    warming = Warming(["a", "b", "c"], compiled.append)
    warming.wait_for("b")
    warming.wait_for("b")
    warming.wait_for("no learner")
    assert compiled == ["b"]
    warming.start()
    warming._thread.join()
    assert compiled == ["b", "a", "c"]
    assert warming.state() == {"total": 3, "compiled": ["a", "b", "c"]}


def test_every_learner_is_warmed_by_a_run(monkeypatch):
    runs = {}
    monkeypatch.setattr(recording, "record", lambda X, y, job: runs.setdefault(job.learner, record(X, y, job)))
    for name in LEARNERS:
        recording.warm(name)
    assert [*runs] == [*LEARNERS]
    assert all(run.seen > 0 and len(run.errors) > 1 for run in runs.values())


# Requests


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[]", "must be a JSON object"),
        (b"{}", "points must be a list of triples"),
        (b'{"points": [[1, 2]]}', "points must be a list of triples"),
        (b'{"points": [[1, 2, true]]}', "points must be a list of triples"),
        (b'{"points": [], "box": [1, 0, 0, 1]}', "box must be four numbers"),
        (b'{"points": [], "box": [-Infinity, Infinity, 0, 1]}', "box must be four numbers"),
        (b'{"points": [], "box": [0, 1' + b"0" * 400 + b", 0, 1]}", "box must be four numbers"),
        (b'{"points": [], "seed": 1' + b"0" * 400 + b"}", "seed must be a value of type int"),
        (b'{"points": [], "learner": 3}', "learner must be a value of type str"),
        (b'{"points": [], "epochs": 2.5}', "epochs must be a value of type int"),
        (b'{"points": [], "path": "/"}', "request must be one of points, box, learner"),
    ],
)
def test_malformed_requests_are_refused(body, message):
    with pytest.raises((InvalidParameter, InvalidData), match=re.escape(message)):
        parse_run(body)


def test_a_coordinate_of_any_number_of_digits_is_refused_as_too_large():
    request = parse_run(b'{"points": [[1' + b"0" * 400 + b", 0, 1], [0, 0, -1]]}")
    with pytest.raises(InvalidData, match="coordinates must be numbers from"):
        record(**request)


class LabProcess:
    """`rosenblatt lab` in a process of its own."""

    def __init__(self, *options):
        command = [sys.executable, "-m", "rosenblatt", "lab", "--no-open", "--json", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=SECONDS)[1]
        self.url = json.loads(line)["url"]
        self.port = int(self.url.rpartition(":")[2])

    def ask(self, method, path, body=None, kind="application/json", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent["Content-Type"] = kind
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        is_json = "json" in answer.headers.get("Content-Type", "")
        return answer.status, json.loads(content) if is_json else content.decode(), dict(answer.headers)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SECONDS), self.process.stderr.read()


@contextmanager
def lab(*options):
    started = LabProcess(*options)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate(timeout=SECONDS)


@pytest.fixture(scope="module")
def server():
    with lab("--port", "0") as server:
        yield server


def as_points(X, y):
    return [[*point, int(sign)] for point, sign in zip(X.tolist(), y, strict=True)]


def test_the_server_answers_with_the_run_of_the_library(server):
    body = {"points": as_points(SIX, SIX_Y), "learner": "Perceptron", "settings": {"fit_intercept": False}}
    status, answer, headers = server.ask("POST", "/run", body)
    assert status == 200
    assert answer["lines"][-1] == [3, 1, 0]
    assert answer["proof"]["bound"] == pytest.approx(5)
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert headers["cache-control"] == "no-store"


def test_the_page_and_its_files_are_there(server):
    status, page, _ = server.ask("GET", "/")
    assert status == 200
    for name in re.findall(r'(?:src|href)="(page/.*?)"', page):
        assert server.ask("GET", f"/{name}")[0] == 200, name
    assert server.ask("GET", "/page/recording.py")[0] == 404
    assert server.ask("GET", "/page/..%2fapp.py")[0] == 404
    assert server.ask("GET", "/lab")[1]["limits"]["points"] == 500
    assert server.ask("GET", "/compiling")[1]["total"] == len(LEARNERS)


def test_a_table_is_read_by_the_server(server):
    status, answer, _ = server.ask("POST", "/points", b"a,b,label\n1,2,no\n3,4,yes\n", "text/csv")
    assert (status, answer["points"], answer["labels"]) == (200, [[1, 2, -1], [3, 4, 1]], ["no", "yes"])
    status, answer, _ = server.ask("POST", "/points", b"a,b,label\n1,2,no\n3,x,yes\n", "text/csv")
    assert status == 422
    assert "two columns of numbers" in answer["detail"]


def test_refusals_are_in_words(server):
    points = as_points(np.zeros((501, 2)), np.ones(501))
    status, answer, _ = server.ask("POST", "/run", {"points": points})
    assert (status, answer["detail"]) == (413, "points must be at most 500; got 501")
    status, answer, _ = server.ask("POST", "/run", {"points": as_points(SIX, SIX_Y), "updates": 20_000})
    assert (status, answer["detail"]) == (413, "updates must be at most 10,000; got 20,000")
    status, answer, _ = server.ask("POST", "/run", b" " * (2**20 + 1))
    assert status == 413
    assert "serve" not in answer.get("hint", "")
    assert server.ask("POST", "/run", b"{", "text/plain")[0] == 415
    assert server.ask("GET", "/run")[0] == 405
    assert server.ask("GET", "/models")[0] == 404


def test_other_names_and_other_pages_are_refused(server):
    body = {"points": as_points(SIX, SIX_Y)}
    assert server.ask("GET", "/", Host="evil.example")[0] == 421
    assert server.ask("POST", "/run", body, Origin="http://evil.example")[0] == 403
    assert server.ask("POST", "/run", body, Sec_Fetch_Site="cross-site")[0] == 403
    assert server.ask("POST", "/run", body, Origin=f"http://127.0.0.1:{server.port}")[0] == 200


# The command


def test_ctrl_c_ends_it_cleanly(tmp_path):
    (tmp_path / "points.csv").write_text("x1,x2,label\n1,2,a\n3,4,b\n")
    with lab("--port", "0", str(tmp_path / "points.csv")) as server:
        assert server.ask("GET", "/lab")[1]["points"]["points"] == [[1, 2, -1], [3, 4, 1]]
        assert server.stop() == (0, "")


def test_a_port_that_is_taken_is_said(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["lab", "--no-open", "--port", str(port)]) == 5
    assert f"port {port} of 127.0.0.1 is in use" in capsys.readouterr().err


def test_clients_that_leave_the_lab_at_any_byte(tmp_path):
    assert leave_lab(tmp_path, times=100, seed=1) == []


def test_without_a_port_the_next_one_is_taken():
    with lab() as one, lab() as other:
        assert one.port != other.port


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "host must be an address of this machine alone"),
        (["--port", "70000"], "port must be a whole number from 0 to 65535"),
        (["nowhere.csv"], "nowhere.csv"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(capsys, options, message):
    assert main(["lab", "--no-open", *options]) != 0
    assert message in capsys.readouterr().err


def test_the_command_advises_no_option_that_it_does_not_have(capsys, tmp_path):
    (tmp_path / "p.csv").write_text("x,y,label\n1,,n\n3,4,p\n")
    assert main(["lab", "--no-open", str(tmp_path / "p.csv")]) == 3
    assert capsys.readouterr().err.endswith("p.csv, line 2, column 'y': the value is missing\n")


def test_the_browser_is_opened_unless_told_otherwise(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(
        "rosenblatt.lab.server.serve_lab", lambda host, port, points, started: started("http://127.0.0.1:1")
    )
    assert main(["lab"]) == 0
    assert main(["lab", "--no-open"]) == 0
    assert opened == ["http://127.0.0.1:1"]


def test_of_a_large_table_only_the_beginning_is_read(monkeypatch):
    seen = []
    count = recording.check_count
    monkeypatch.setattr("rosenblatt.lab.points.check_count", lambda rows: (seen.append(rows), count(rows)))
    text = gzip.compress(b"x,y,label\n" + b"1,2,a\n" * 1_000_000)
    with pytest.raises(LimitExceeded, match="points must be at most 500"):
        parse_points(text)
    assert len(seen) == 1
    assert seen[0] < 600_000


def test_points_can_be_read_from_a_file_whose_name_is_not_utf_8(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text("x,y,label\n1,2,a\n3,4,b\n")
    app = make_app(Warming((), lambda name: None), read_points(path))
    answer = asyncio.run(get(app, "/lab"))
    assert json.loads(answer)["points"]["name"] == "\udcff.csv"


async def get(app, path):
    """The body of the answer to a request that no guard stands before."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], "root_path": ""}
    await app(scope, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


def test_points_can_be_read_from_a_path(tmp_path):
    (tmp_path / "p.tsv").write_text("x\ty\tlabel\n1\t2\tn\n3\t4\tp\n")
    assert read_points(tmp_path / "p.tsv").name == "p.tsv"
