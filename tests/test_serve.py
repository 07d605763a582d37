"""The learning server: what is acknowledged is on disk, the state is a function of the log, and every route does what it
says. Kills, torn files and malformed requests have tests of their own."""

import json
import re
import socket
import stat
import subprocess
import sys
import time
import uuid
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

import rosenblatt
from bench.server import Server
from rosenblatt import AROW, PassiveAggressiveRegressor, Perceptron
from rosenblatt.modelfile import container
from rosenblatt.online import OnlinePerceptron, hashing
from rosenblatt.rules import PA1
from rosenblatt.serve import Limits, replay
from rosenblatt.serve.history import MOST_WINDOWS, History
from rosenblatt.serve.learners import Specification, make_learner
from rosenblatt.serve.log import ModelRecord
from rosenblatt.serve.served_model import ServedModel
from rosenblatt.serve.snapshots import superfluous
from rosenblatt.serve.state import CREATE, LEARN, Entry, Lineage, apply, create, lineage, read_examples, write_specification
from rosenblatt.serve.text import TextFeatures


def model_bytes(model):
    parts = model.to_parts()
    return b"".join(bytes(block) for block in container.blocks(parts.facts, parts.arrays))


def run(*arguments):
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "rosenblatt", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "folder", "--max-rows", "50") as started:
        yield started


@pytest.fixture
def ask(server):
    with closing(server.connect(timeout=60)) as connection:
        yield lambda *request, **headers: connection.request(*request, **headers)


@pytest.fixture
def name(request):
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40] + f"-{uuid.uuid4().hex[:8]}"


def made(ask, name, **settings):
    answer = ask("PUT", f"/models/{name}", settings)
    assert answer.status == 201, answer.body
    return f"/models/{name}"


def drawn_examples(count, seed=0, classes="abc"):
    rng = np.random.default_rng(seed)
    return [
        {
            "x": {f"w{column}": float(rng.integers(-3, 4)) for column in rng.integers(0, 40, 6)},
            "y": str(rng.choice([*classes])),
        }
        for _ in range(count)
    ]


def local(examples, **parameters):
    model = OnlinePerceptron(**parameters)
    for example in examples:
        model.learn_one(example["x"], example["y"], example.get("w", 1.0))
    return model


# The shapes that users keep to


def test_create_learn_predict_describe(ask, name):
    path = made(ask, name, learner="OnlinePerceptron", parameters={})
    examples = [
        {"x": {"free": 1}, "y": "spam", "w": 1.0},
        {"x": {"noon": 1}, "y": "ham"},
        {"text": "free prize", "y": "spam"},
    ]
    learned = ask("POST", f"{path}/learn", {"examples": examples})
    assert learned.status == 200
    assert learned.json() == {"seq": 2, "learned": 3, "mistakes": 2, "wrong": 3}
    predicted = ask("POST", f"{path}/predict", {"examples": [{"x": {"free": 1}}], "explain": 2}).json()
    assert predicted["seq"] == 2
    [prediction] = predicted["predictions"]
    assert prediction["label"] == "spam"
    assert prediction["scores"]["spam"] == -prediction["scores"]["ham"] > 0
    assert prediction["intercept"] + sum(value for _, value in prediction["contributions"]) == prediction["scores"]["spam"]
    described = ask("GET", path).json()
    assert {key: described[key] for key in ("seen", "mistakes", "seq", "classes")} == {
        "seen": 3, "mistakes": 2, "seq": 2, "classes": ["spam", "ham"],
    }  # fmt: skip
    assert ask("GET", "/models").json()["models"]
    assert ask("PUT", path, {"learner": "OnlinePerceptron"}).status == 200
    assert ask("PUT", path, {"parameters": {"keep": "average"}}).status == 409
    assert ask("DELETE", path).status == 204
    assert ask("GET", path).status == 404


def test_the_state_after_every_entry_is_that_of_the_learner_after_it(ask, name):
    path = made(ask, name, parameters={"keep": "average", "rule": {"PA1": {"C": 0.5}}})
    examples = drawn_examples(60)
    for start in range(0, 60, 6):
        ask("POST", f"{path}/learn", {"examples": examples[start : start + 6]})
    for entry in (2, 5, 11):
        model = local(examples[: 6 * (entry - 1)], keep="average", rule=PA1(0.5))
        described = ask("GET", f"{path}?at={entry}").json()
        assert (described["seen"], described["mistakes"], described["seq"]) == (model.n_seen_, model.n_mistakes_, entry)
        answer = ask("POST", f"{path}/predict?at={entry}", {"examples": [{"x": examples[0]["x"]}]}).json()
        assert answer["predictions"][0]["scores"] == model.score_one(examples[0]["x"])
        assert ask("GET", f"{path}/file?at={entry}").body == model_bytes(model)
    assert ask("GET", f"{path}?at=12").status == ask("GET", f"{path}/file?at=12").status == 404
    assert ask("GET", f"{path}?at=0").status == 422


def test_setting_back_is_an_entry_and_the_log_gives_the_same_bytes(ask, name, tmp_path):
    path = made(ask, name)
    examples = drawn_examples(30)
    for start in (0, 10):
        ask("POST", f"{path}/learn", {"examples": examples[start : start + 10]})
    assert ask("POST", f"{path}/set-back", {"to": 2}).json() == {"seq": 4, "to": 2}
    assert ask("GET", path).json()["seen"] == 10
    ask("POST", f"{path}/learn", {"examples": examples[20:]})
    expected = model_bytes(local([*examples[:10], *examples[20:]]))
    log, file = ask("GET", f"{path}/log").body, ask("GET", f"{path}/file").body
    assert file == expected == model_bytes(replay(log.splitlines()))
    assert [sorted(json.loads(line).keys() - {"seq", "time"}) for line in log.splitlines()] == [
        ["create"], ["learn"], ["learn"], ["set_back"], ["learn"],
    ]  # fmt: skip
    assert ask("POST", f"{path}2/log", log, Content_Type="application/x-ndjson").json() == {"seq": 5, "entries": 5}
    assert ask("GET", f"{path}2/file").body == expected
    assert ask("GET", f"{path}2/history").json() == ask("GET", f"{path}/history").json()
    assert ask("POST", f"{path}/set-back", {"to": 3}).json() == {"seq": 6, "to": 3}  # what was set back is not lost
    assert ask("GET", f"{path}/file").body == model_bytes(local(examples[:20]))
    for wrong in ({"to": 7}, {"to": 0}):
        assert ask("POST", f"{path}/set-back", wrong).status == 404


# Late labels and requests that are sent again


def test_a_late_label_is_learned_with_the_row_that_was_predicted(ask, name):
    path, other = made(ask, name), made(ask, name + "-other")
    answer = ask("POST", f"{path}/predict", {"examples": [{"x": {"a": 1}}, {"x": {"b": 2}}, {"text": "c d"}]}).json()
    ids = [prediction["id"] for prediction in answer["predictions"]]
    assert len(set(ids)) == 3
    examples = [{"id": ids[1], "y": "yes"}, {"id": ids[0], "y": "no", "w": 2.0}, {"id": ids[2], "y": "yes"}]
    assert ask("POST", f"{path}/learn", {"examples": examples}).status == 200
    rows = [{"b": 2}, {"a": 1}, TextFeatures().row("c d")]
    model = local([{"x": row, **example} for row, example in zip(rows, examples, strict=True)])
    assert ask("GET", f"{path}/file").body == model_bytes(model)
    assert ask("POST", f"{path}/learn", {"examples": [{"id": ids[0], "y": "no"}]}).status == 409
    assert ask("POST", f"{other}/learn", {"examples": [{"id": ids[0], "y": "no"}]}).status == 404
    unstored = ask("POST", f"{path}/predict", {"examples": [{"x": {"a": 1}}], "store": False}).json()
    assert unstored["predictions"][0]["id"] is None
    new = ask("POST", f"{path}/predict", {"examples": [{"x": {"a": 1}}]}).json()["predictions"][0]["id"]
    twice = [{"id": new, "y": "no"}, {"id": new, "y": "yes"}]
    assert ask("POST", f"{path}/learn", {"examples": twice}).status == 409
    assert ask("GET", path).json()["seq"] == 2


def test_a_request_with_a_key_is_learned_once(ask, name):
    path = made(ask, name)
    body = {"examples": drawn_examples(5)}
    first = ask("POST", f"{path}/learn", body, Idempotency_Key="one")
    again = ask("POST", f"{path}/learn", body, Idempotency_Key="one")
    assert first.json() == again.json()
    assert ask("GET", path).json()["seen"] == 5
    other = ask("POST", f"{path}/learn", {"examples": drawn_examples(5, 1)}, Idempotency_Key="one")
    assert other.status == 422
    assert other.json()["parameter"] == "Idempotency-Key"
    lines = b"\n".join(json.dumps(example).encode() for example in drawn_examples(5, 2))
    bulk = [
        ask("POST", f"{path}/learn", lines, Content_Type="application/x-ndjson", Idempotency_Key="two").json()
        for _ in range(2)
    ]
    assert bulk[0] == bulk[1]
    assert ask("GET", path).json()["seen"] == 10


def test_what_was_acknowledged_is_there_after_a_crash_and_after_a_stop(tmp_path):
    examples = drawn_examples(40)
    with Server(tmp_path / "folder") as server:
        with closing(server.connect()) as connection:
            connection.ask("PUT", "/models/m", {})
            for start in range(0, 40, 4):
                body = {"examples": examples[start : start + 4]}
                answers = connection.ask("POST", "/models/m/learn", body, Idempotency_Key=f"k{start}").json()
            kept = connection.ask("POST", "/models/m/predict", {"examples": [{"x": {"late": 1}}]}).json()["predictions"][0]
        server.kill()
        with closing(server.start().connect()) as connection:
            assert connection.ask("GET", "/models/m/file").body == model_bytes(local(examples))
            body = {"examples": examples[36:]}
            assert connection.ask("POST", "/models/m/learn", body, Idempotency_Key="k36").json() == answers
            late = connection.ask("POST", "/models/m/learn", {"examples": [{"id": kept["id"], "y": "a"}]})
            assert late.json()["seq"] == 12
            history = connection.ask("GET", "/models/m/history?labels=true").body
        assert server.stop() == 0
        assert {path.name for path in (tmp_path / "folder").iterdir()} == {
            "acknowledged", "lock", "log.sqlite", "predictions.sqlite", "snapshots",
        }  # fmt: skip
        for path in (tmp_path / "folder").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        checked = run("serve", tmp_path / "folder", "--check", "--json")
        assert checked.returncode == 0, checked.stderr
        found = json.loads(checked.stdout)
        assert (found["entries"], found["examples"], found["problems"]) == (12, 41, [])
        assert found["snapshots"] >= 1
        with closing(server.start().connect()) as connection:
            expected = local([*examples, {"x": {"late": 1}, "y": "a"}])
            assert connection.ask("GET", "/models/m/file").body == model_bytes(expected)
            assert connection.ask("GET", "/models/m/history?labels=true").body == history


# Learners


@pytest.mark.parametrize(
    ("settings", "learner"),
    [
        ({"learner": "Perceptron", "parameters": {"keep": "last"}, "hashing": 64},
         lambda: Perceptron(keep="last", unknown_class="grow", random_state=0)),
        ({"learner": "AROW", "classes": ["a", "b", "c"], "hashing": 32}, lambda: AROW(random_state=0)),
    ],
)  # fmt: skip
def test_estimators_get_hashed_rows(ask, name, settings, learner):
    path = made(ask, name, **settings)
    examples = drawn_examples(30)
    ask("POST", f"{path}/learn", {"examples": examples})
    X = np.zeros((30, settings["hashing"]))
    for row, example in zip(X, examples, strict=True):
        for feature, value in example["x"].items():
            code = hashing.code(feature, settings["hashing"], 32)
            row[code >> 1] += -value if code & 1 else value
    model = learner()
    options = {"classes": settings["classes"]} if "classes" in settings else {}
    model.partial_fit(X, [example["y"] for example in examples], **options)
    described = ask("GET", path).json()
    assert (described["seen"], described["mistakes"]) == (30, model.n_mistakes_)
    answers = ask(
        "POST", f"{path}/predict", {"examples": [{"x": example["x"]} for example in examples], "explain": 3}
    ).json()
    assert [answer["label"] for answer in answers["predictions"]] == model.predict(X).tolist()
    scores = [[answer["scores"][label] for label in model.classes_] for answer in answers["predictions"]]
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-9)
    for answer in answers["predictions"]:
        assert len(answer["contributions"]) == 3
    assert model_bytes(replay(ask("GET", f"{path}/log").body.splitlines())) == ask("GET", f"{path}/file").body
    if "classes" in settings:
        refused = ask("POST", f"{path}/learn", {"examples": [{"x": {"w1": 1}, "y": "d"}]})
        assert refused.status == 422
        assert refused.json()["label"] == "d"


def test_regression_from_vectors(ask, name):
    path = made(ask, name, learner="PassiveAggressiveRegressor")
    examples = [{"x": [float(k), 1.0], "y": 2.0 * k} for k in range(20)]
    ask("POST", f"{path}/learn", {"examples": examples})
    model = PassiveAggressiveRegressor(random_state=0)
    model.partial_fit([example["x"] for example in examples], [example["y"] for example in examples])
    answer = ask("POST", f"{path}/predict", {"examples": [{"x": [3.0, 1.0]}]}).json()["predictions"][0]
    assert answer["label"] == model.predict([[3.0, 1.0]])[0]
    assert ask("POST", f"{path}/learn", {"examples": [{"x": [1.0], "y": 1}]}).status == 422
    assert ask("POST", f"{path}/learn", {"examples": [{"x": [1.0, 2.0], "y": "a"}]}).status == 422


def test_a_model_file_is_a_start(ask, name, tmp_path):
    begun = local(drawn_examples(10))
    begun.save(tmp_path / "begun.model")
    content = (tmp_path / "begun.model").read_bytes()
    answer = ask("PUT", f"/models/{name}", content, Content_Type="application/octet-stream")
    assert answer.status == 201
    assert answer.json()["seen"] == 10
    ask("POST", f"/models/{name}/learn", {"examples": drawn_examples(10, 1)})
    for example in drawn_examples(10, 1):
        begun.learn_one(example["x"], example["y"])
    assert ask("GET", f"/models/{name}/file").body == model_bytes(begun)
    refused = ask("PUT", f"/models/{name}-2", content[:-1], Content_Type="application/octet-stream")
    assert refused.status == 422
    assert "damaged" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"learner": "Perceptrn"}, "learner"),
        ({"learner": "GraphParser"}, "learner"),
        ({"learner": "DeltaRuleClassifier"}, "learner"),
        ({"learner": "AROW"}, "classes"),
        ({"parameters": {"keep": "best"}}, "keep"),
        ({"parameters": {"kep": "last"}}, "kep"),
        ({"parameters": {"rule": {"PA9": {}}}}, "rule"),
        ({"parameters": {"rule": {"PA1": {"D": 1}}}}, "rule"),
        ({"learner": "Perceptron", "parameters": {"n_jobs": 4}}, "n_jobs"),
        ({"hashing": 1}, "hashing"),
        ({"classes": ["a", "a"]}, "classes"),
        ({"text": {"words": 9}}, "words"),
        ({"text": {"word": 1}}, "word"),
        ({"lerner": "AROW"}, "lerner"),
    ],
)
def test_a_model_that_cannot_be_made_is_refused_with_the_parameter(ask, settings, parameter):
    refused = ask("PUT", "/models/refused", settings)
    assert refused.status == 422
    assert refused.json()["parameter"] == parameter
    assert refused.json()["type"].startswith("urn:rosenblatt:problem:")
    assert ask("GET", "/models/refused").status == 404


def test_a_model_that_would_be_too_large_is_refused_before_it_is_made(ask):
    refused = ask("PUT", "/models/large", {"hashing": 2**31})
    assert (refused.status, refused.json()["limit"]) == (507, "model_bytes")


# Refusals leave no trace


@pytest.mark.parametrize(
    ("example", "detail"),
    [
        ({"x": {"a": None}, "y": "b"}, "'a' is None"),
        ({"x": {"a": [1]}, "y": "b"}, "'a' is [1]"),
        ({"x": {"a": 1e200}, "y": "b"}, "too large"),
        ({"x": ["a"], "y": "b"}, "position 0"),
        ({"x": 3, "y": "b"}, "named features"),
        ({"x": {"a": 1}}, "label"),
        ({"x": {"a": 1}, "y": None}, "label must be"),
        ({"x": {"a": 1}, "y": 1.5}, "label must be"),
        ({"x": {"a": 1}, "y": "b", "w": -1}, "not negative"),
        ({"x": {"a": 1}, "y": "b", "w": True}, "w must be a number"),
        ({"x": {"a": 1}, "y": "b", "z": 1}, "'z'"),
        ({"y": "b"}, "x"),
        ({"text": 5, "y": "b"}, '"text" must be a string; got 5'),
        ({"x": [1], "text": "a", "y": "b"}, "list of numbers"),
        ([], "object"),
    ],
)
def test_an_example_that_cannot_be_used_is_refused_with_its_row(ask, example, detail, server):
    ask("PUT", "/models/kept", {})
    before = ask("GET", "/models/kept").json()
    refused = ask("POST", "/models/kept/learn", {"examples": [{"x": {"a": 1}, "y": "b"}, example]})
    assert (refused.status, refused.json()["row"]) == (422, 1)
    assert detail in refused.json()["detail"]
    assert refused.headers["content-type"] == "application/problem+json"
    assert ask("GET", "/models/kept").json() == before


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"examples": []}', b'{"examples": [{"x": {"a": NaN}, "y": 1}]}', b"\xff"]
)
def test_a_body_that_is_not_examples_is_refused(ask, name, body):
    path = made(ask, name)
    assert ask("POST", f"{path}/learn", body, Content_Type="application/json").status in (400, 422)
    assert ask("GET", path).json()["seq"] == 1


def test_refusals_say_what_is_wrong_and_what_to_do(ask, name):
    path = made(ask, name)

    def refusal(*request, **headers):
        answered = ask(*request, **headers)
        assert answered.status >= 400
        return answered.json()["detail"], answered.json().get("hint", "")

    assert refusal("PUT", path, {"lerner": "AROW"})[0].startswith(
        "the body has an unknown member 'lerner'; allowed are learner,"
    )
    detail, hint = refusal("PUT", path, {"hashing": 1024})
    assert detail == f"there is a model {name} already, and it differs: hashing is null, the request has 1024"
    assert hint == "choose another name or delete it"
    log = ask("GET", f"{path}/log").body
    imported = refusal("POST", f"{path}/log", log, Content_Type="application/x-ndjson")
    assert imported == (f"there is a model {name} already", "choose another name or delete it")
    assert "lists those there are" in refusal("GET", "/models/no-such-model")[1]
    detail, hint = refusal("POST", f"{path}/learn", {"x": {"a": 1}, "y": "b"})
    assert detail == "unknown member 'x' in the body; it may have examples"
    assert hint == 'send {"examples": [{"x": …, "y": …}]}'
    assert refusal("POST", f"{path}/learn", {"examples": [{"x": {}, "label": "b"}]})[1] == 'the label is "y"'
    assert "no classes yet" in refusal("GET", f"{path}/weights?label=a")[0]
    assert refusal("GET", "/nothing")[0] == "there is no route GET /nothing; GET /openapi.json lists them"
    form = refusal("POST", f"{path}/learn", b"a=1", Content_Type="application/x-www-form-urlencoded")
    assert form[1] == "send the header Content-Type: application/json"
    learners = refusal("PUT", "/models/unmade", {"learner": "Perceptrn"})[0]
    assert "OnlinePerceptron, " in learners
    assert "DeltaRule" not in learners
    vectors = made(ask, f"{name}-vectors", learner="Perceptron")
    assert '"hashing": 262144' in refusal("POST", f"{vectors}/learn", {"examples": [{"x": {"a": 1}, "y": "b"}]})[1]


def test_the_entry_of_an_imported_log_that_cannot_be_applied_is_a_fact(ask, name):
    lines = [b'{"seq":1,"time":1,"create":{}}', b'{"seq":2,"time":2,"learn":[{"x":{"a":null},"y":"b"}]}']
    refused = ask("POST", f"/models/{name}/log", b"\n".join(lines), Content_Type="application/x-ndjson")
    assert (refused.status, refused.json()["entry"], refused.json()["row"]) == (422, 2, 0)


def test_requests_have_limits(ask, name):
    path = made(ask, name)
    many = ask("POST", f"{path}/learn", {"examples": [{"x": {"a": 1}, "y": "b"}] * 51})
    assert (many.status, many.json()["limit"]) == (413, "rows")
    assert "rosenblatt serve --max-rows N" in many.json()["hint"]
    wide = {str(column): 1 for column in range(Limits().features + 1)}
    assert ask("POST", f"{path}/predict", {"examples": [{"x": wide}]}).json()["limit"] == "features"
    label = ask("POST", f"{path}/learn", {"examples": [{"x": {"a": 1}, "y": "b" * 1001}]})
    assert (label.status, label.json()["limit"]) == (422, "label_characters")
    assert ask("GET", path).json()["seq"] == 1


def test_a_model_over_its_memory_refuses_and_the_others_learn_on(tmp_path):
    with (
        Server(tmp_path / "folder", "--max-model-memory", "1", "--max-models", "2") as server,
        closing(server.connect()) as connection,
    ):
        for name in ("large", "small"):
            connection.ask("PUT", f"/models/{name}", {})
        assert connection.request("PUT", "/models/third", {}).status == 507
        status, number = 200, 0
        while status == 200 and number < 100:
            examples = [{"x": {f"{number} {k} {j}": 1 for j in range(20)}, "y": "ab"[k % 2]} for k in range(100)]
            answer = connection.request("POST", "/models/large/learn", {"examples": examples})
            status, number = answer.status, number + 1
        assert (status, answer.json()["limit"]) == (507, "model_bytes")
        assert connection.ask("GET", "/models/large").json()["memory_bytes"] <= 2**20
        assert connection.ask("POST", "/models/small/learn", {"examples": drawn_examples(3)}).json()["learned"] == 3
        assert connection.ask("POST", "/models/large/predict", {"examples": [{"x": {"0 0 0": 1}}]}).json()["seq"] == number


def test_without_room_on_the_disk_it_predicts_and_does_not_learn(tmp_path):
    with Server(tmp_path / "folder") as server, closing(server.connect()) as connection:
        connection.ask("PUT", "/models/m", {})
        connection.ask("POST", "/models/m/learn", {"examples": drawn_examples(5)})
        server.stop()
    with Server(tmp_path / "folder", "--min-free-disk", str(2**39)) as server, closing(server.connect()) as connection:
        refused = connection.request("POST", "/models/m/learn", {"examples": drawn_examples(5)})
        assert refused.status == 507
        assert "must stay free" in refused.json()["detail"]
        assert connection.ask("POST", "/models/m/predict", {"examples": [{"x": {"w1": 1}}]}).json()["seq"] == 2
        assert connection.request("GET", "/readyz").status == 503
        assert connection.request("GET", "/healthz").status == 200
        assert connection.request("DELETE", "/models/m").status == 204  # which makes room


# What is shown


def test_history_counts_by_window_and_by_label(ask, name):
    path = made(ask, name)
    examples = drawn_examples(45)
    learned = ask("POST", f"{path}/learn", {"examples": examples}).json()
    history = ask("GET", f"{path}/history?labels=true").json()
    for count, total in (("seen", 45), ("wrong", learned["wrong"]), ("mistakes", learned["mistakes"])):
        assert sum(window[count] for window in history["windows"]) == total
        assert sum(label[count] for window in history["windows"] for label in window["labels"].values()) == total
    model, wrong = OnlinePerceptron(), []
    for row, example in enumerate(examples):
        predicted = model.predict_one(example["x"])
        if predicted != example["y"]:
            wrong.append({"seq": 2, "row": row, "label": example["y"], "predicted": predicted, "x": example["x"]})
        model.learn_one(example["x"], example["y"])
    assert [{key: each[key] for key in wrong[0]} for each in history["last_wrong"]] == wrong[::-1][:20]
    assert len(wrong) == learned["wrong"]


def test_weights_are_the_heaviest_of_each_label(ask, name):
    path = made(ask, name)
    examples = drawn_examples(30)
    ask("POST", f"{path}/learn", {"examples": examples})
    model = local(examples)
    answer = ask("GET", f"{path}/weights?top=5").json()
    for label in model.classes_:
        weights = dict(answer["weights"][label])
        assert len(weights) == 5
        assert weights.items() <= model.weights_of(label).items()
        assert min(map(abs, weights.values())) >= sorted(map(abs, model.weights_of(label).values()))[-5]
        assert answer["intercepts"][label] == model.intercept_of(label)
    assert list(ask("GET", f"{path}/weights?label=a").json()["weights"]) == ["a"]
    assert ask("GET", f"{path}/weights?label=z").status == 422


def test_events_tell_of_models_and_of_what_changes(server, ask, name):
    path = made(ask, name)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stream:
        stream.sendall(f"GET /events?model={name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        received = b""
        while b'"seen":0' not in received:
            received += stream.recv(65536)
        ask("POST", f"{path}/learn", {"examples": drawn_examples(7)})
        while b'"seen":7' not in received:
            received += stream.recv(65536)
        ask("DELETE", path)
        while b"event: deleted" not in received:
            received += stream.recv(65536)
    assert b"content-type: text/event-stream" in received.lower()


def test_lines_are_learned_and_predicted(ask, name):
    path = made(ask, name)
    examples = drawn_examples(40)
    lines = b"\n".join(json.dumps(example).encode() for example in examples) + b"\n\n"
    learned = ask("POST", f"{path}/learn", lines, Content_Type="application/x-ndjson").json()
    assert learned["learned"] == 40
    model = local(examples)
    assert ask("GET", f"{path}/file").body == model_bytes(model)
    rows = b"\n".join(json.dumps({"x": example["x"]}).encode() for example in examples)
    answers = ask("POST", f"{path}/predict", rows, Content_Type="application/x-ndjson").lines()
    assert [answer["label"] for answer in answers] == [model.predict_one(example["x"]) for example in examples]
    late = ask("POST", f"{path}/learn", {"examples": [{"id": answers[7]["id"], "y": "a"}]})
    assert late.status == 200
    broken = ask("POST", f"{path}/learn", lines + b"{", Content_Type="application/x-ndjson")
    assert (broken.status, broken.json()["line"]) == (400, 42)


def test_the_document_describes_every_route(ask):
    document = ask("GET", "/openapi.json").json()
    assert set(document["paths"]["/models/{name}"]) == {"get", "put", "delete"}
    text = json.dumps(document)
    for reference in {part.partition('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}:
        assert reference in document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert {"4XX", "5XX"} <= operation["responses"].keys()
    assert "rosenblatt_commits_total" in ask("GET", "/metrics").body.decode()


# Servers and folders


def test_two_servers_cannot_have_one_folder(server):
    second = run("serve", server.folder, "--port", "0")
    assert second.returncode == 3
    assert "another server uses this folder" in second.stderr
    checked = run("serve", server.folder, "--check")
    assert checked.returncode == 3
    assert f"rosenblatt backup {server.folder} COPY" in checked.stderr


def test_an_address_that_others_can_reach_needs_tokens(tmp_path):
    refused = run("serve", tmp_path / "folder", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "host 0.0.0.0 can be reached by other machines" in refused.stderr
    assert "rosenblatt token add" in refused.stderr
    assert not (tmp_path / "folder" / "log.sqlite").exists()
    unknown = run("serve", tmp_path / "folder", "--host", "no-such-host.invalid", "--port", "0")
    assert unknown.returncode == 5
    assert "cannot listen at no-such-host.invalid" in unknown.stderr
    no_port = run("serve", tmp_path / "folder", "--port", "99999")
    assert (no_port.returncode, no_port.stderr) == (2, "error: port must be a whole number from 0 to 65535; got 99999\n")


def test_a_port_that_is_taken_is_named(server, tmp_path):
    refused = run("serve", tmp_path / "folder", "--port", server.port)
    assert refused.returncode == 5
    assert refused.stderr == f"error: port {server.port} of 127.0.0.1 is in use\ntry: --port 0 takes any free port\n"
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("command", [["serve", "--check"], ["backup", "COPY"]])
def test_what_is_not_the_folder_of_a_server_is_named(command, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    words = {"missing": "there is no such folder", "empty": "it has no log.sqlite", "file": "this is a file, not a folder"}
    for name, expected in words.items():
        refused = run(command[0], tmp_path / name, *(tmp_path / "copy" if word == "COPY" else word for word in command[1:]))
        assert refused.returncode == 3
        assert expected in refused.stderr
    assert "this is a file, not a folder" in run("serve", tmp_path / "file", "--port", "0").stderr


def test_a_backup_of_a_running_server_is_a_folder_to_serve(server, ask, name, tmp_path):
    path = made(ask, name)
    ask("POST", f"{path}/learn", {"examples": drawn_examples(20)})
    file = ask("GET", f"{path}/file").body
    copied = run("backup", server.folder, tmp_path / "copy")
    assert copied.returncode == 0, copied.stderr
    ask("POST", f"{path}/learn", {"examples": drawn_examples(20, 1)})
    assert run("serve", tmp_path / "copy", "--check").returncode == 0
    with Server(tmp_path / "copy") as second, closing(second.connect()) as connection:
        assert connection.ask("GET", f"{path}/file").body == file
    again = run("backup", server.folder, tmp_path / "copy")
    assert again.returncode == 5
    assert run("backup", tmp_path, tmp_path / "other").returncode == 3


def test_a_stop_finishes_what_was_accepted(tmp_path):
    with Server(tmp_path / "folder") as server:
        with closing(server.connect()) as connection:
            connection.ask("PUT", "/models/m", {})
        body = json.dumps({"examples": drawn_examples(50)}).encode()
        head = "POST /models/m/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        connections = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(20)]
        for each in connections:
            each.sendall(head.encode() + body)
        time.sleep(0.05)
        assert server.stop() == 0
        accepted = 0
        for each in connections:
            with each:
                answer = each.recv(65536)
                accepted += answer.startswith(b"HTTP/1.1 200")
        with closing(server.start().connect()) as connection:
            assert connection.ask("GET", "/models/m").json()["seq"] == 1 + accepted


# Parts


@given(
    st.lists(st.integers(1, 6), max_size=12),
    st.sampled_from([{}, {"keep": "average"}, {"hashing": 16}, {"max_features": 5}]),
)
@settings(max_examples=25)
def test_both_learners_of_a_model_are_the_one_learner(sizes, parameters):
    specification = Specification(parameters=parameters)
    state = create(Entry(1, 0, CREATE, write_specification(specification)))
    served = ServedModel(ModelRecord(1, "m", 0), state, b"", 0)
    examples, start = drawn_examples(100, len(sizes)), 0
    for seq, size in enumerate(sizes, 2):
        part = examples[start : start + size]
        served.learn(read_examples(served.published.learner, part, Limits()), seq, 0)
        served.publish(served.publishable())
        start += size
        assert served.published.learner.seen == start
        assert model_bytes(served.published.learner.model) == model_bytes(local(examples[:start], **parameters))
    served.catch_up()


def test_windows_halve_when_there_are_many_and_count_the_same():
    history, rng = History(), np.random.default_rng(0)
    for number in range(20_000):
        history.add(number // 10, number, "abc"[number % 3], int(rng.random() < 0.3), bool(rng.random() < 0.2))
        if number % 997 == 0:
            kept = json.loads(json.dumps(history.to_json()))
            assert History.from_json(kept).view() == history.view()
    view = history.view()
    assert MOST_WINDOWS // 2 <= len(view.windows) <= MOST_WINDOWS + 1
    assert sum(window.seen for window in view.windows) == 20_000
    assert sum(window.wrong for window in view.windows) == view.wrong
    assert len({window.seen for window in view.windows[:-1]}) == 1
    assert all(one.seq <= other.from_seq for one, other in zip(view.windows, view.windows[1:], strict=False))


@given(st.sets(st.integers(1, 10**6), max_size=300))
def test_snapshots_thin_out_and_the_newest_stay(seqs):
    kept, arrived = set(), []
    for seq in sorted(seqs):
        kept.add(seq)
        kept -= set(superfluous(kept))
        arrived.append(seq)
        assert set(arrived[-3:]) <= kept
        assert len(kept) <= 3 + 21


@given(st.text(max_size=30), st.integers(1, 4))
def test_words_of_a_text_are_features(text, words):
    row = TextFeatures(words).row(text)
    assert set(row.values()) <= {1.0}
    assert all(len(name.split(" ")) <= words for name in row)
    assert set(TextFeatures(1).row(text)) <= set(row)


def test_rules_and_files_of_other_kinds_are_refused(tmp_path):
    Perceptron().fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "small.model", resume=False)
    with pytest.raises(rosenblatt.errors.RosenblattError, match="prediction only"):
        make_learner(Specification(file=(tmp_path / "small.model").read_bytes()), Limits())


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.sets(st.integers(1, 41)), st.data())
def test_the_lineage_of_a_state_is_what_replaying_step_by_step_learns(draws, snapshots, data):
    """Entry n sets back to a drawn entry where the draw is an earlier one, and learns otherwise."""
    set_backs = {seq: draw for seq, draw in enumerate(draws, 2) if 1 <= draw < seq}
    learned = {1: [1]}  # the entries that each state has learned from, by definition
    for seq in range(2, len(draws) + 2):
        learned[seq] = learned[set_backs[seq]] if seq in set_backs else [*learned[seq - 1], seq]
    seq = data.draw(st.integers(1, len(draws) + 1))
    path = lineage(seq, set_backs, snapshots)
    before = [] if path.snapshot is None else learned[path.snapshot]
    assert [*before, *(entry for part in path.ranges for entry in part)] == learned[seq]
    assert path.snapshot is None or path.snapshot in snapshots
    if seq in snapshots:
        assert path == Lineage(seq, [range(seq + 1, seq + 1)])


def test_an_entry_cannot_set_back_to_itself():
    with pytest.raises(rosenblatt.errors.InvalidData, match="not before it"):
        lineage(5, {3: 3})


def test_a_hundred_set_backs_are_as_good_as_one(ask, name):
    path = made(ask, name)
    ask("POST", f"{path}/learn", {"examples": drawn_examples(5)})
    file = ask("GET", f"{path}/file").body
    for seq in range(2, 102):
        assert ask("POST", f"{path}/set-back", {"to": seq}).json()["seq"] == seq + 1
    log = ask("GET", f"{path}/log").body
    assert model_bytes(replay(log.splitlines())) == ask("GET", f"{path}/file").body == file
    assert ask("POST", f"{path}-again/log", log, Content_Type="application/x-ndjson").status == 201


@pytest.mark.parametrize("bad", [{"x": "text", "y": "b"}, {"x": {"a": 1}}, {"x": {"a": 1}, "y": None}])
def test_an_imported_log_has_no_entry_that_cannot_be_learned_even_if_it_was_set_back_over(ask, name, bad):
    entries = [{"create": {}}, {"learn": [{"x": {"a": 1}, "y": "b"}, bad]}, {"set_back": {"to": 1}}]
    log = b"\n".join(json.dumps({"seq": seq, "time": 0, **entry}).encode() for seq, entry in enumerate(entries, 1))
    refused = ask("POST", f"/models/{name}/log", log, Content_Type="application/x-ndjson")
    assert (refused.status, refused.json()["entry"], refused.json()["row"]) == (422, 2, 1)
    assert ask("GET", f"/models/{name}").status == 404
    twice = b"\n".join(json.dumps({"seq": seq, "time": 0, "create": {}}).encode() for seq in (1, 2))
    assert ask("POST", f"/models/{name}/log", twice, Content_Type="application/x-ndjson").status == 400


def test_replaying_leaves_out_what_cannot_be_read():
    state = create(Entry(1, 0, CREATE, write_specification(Specification())))
    raw = [{"x": "text", "y": "b"}, {"x": {"a": 1}, "y": "b"}, {"x": {"a": 1}}]
    state, outcome = apply(state, Entry(2, 0, LEARN, json.dumps({"examples": raw}).encode()))
    assert (outcome.learned, [place for place, _ in outcome.refused]) == (1, [0, 2])
    assert state.learner.seen == 1
