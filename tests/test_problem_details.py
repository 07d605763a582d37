"""Errors as answers and numbers as text: every fact of an error arrives, no path of the server does."""

import inspect
import json
import math
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt import errors
from rosenblatt.errors import RosenblattError
from rosenblatt.serve.limits import STATUS, Limits
from rosenblatt.serve.metrics import Histogram, Metrics
from rosenblatt.serve.problem_details import from_error, problem
from rosenblatt.serve.wire import PROBLEM, PROBLEM_JSON, problem_kind

SECRET = "/srv/secret-folder"


def facts_of(response):
    assert response.media_type == PROBLEM_JSON
    facts = json.loads(response.body)
    assert facts["status"] == response.status_code
    return facts


@pytest.mark.parametrize(
    ("error", "status", "facts"),
    [
        (errors.LimitExceeded("rows", 12, 10, row=3), 413, {"limit": "rows", "value": 12, "most": 10, "row": 3}),
        (errors.LimitExceeded("features", 12, 10), 422, {"detail": "features must be at most 10; got 12"}),
        (errors.LimitExceeded("model_bytes", 12, 10), 507, {"limit": "model_bytes"}),
        (errors.LimitExceeded("queued_bytes", 12, 10), 503, {"limit": "queued_bytes"}),
        (errors.UnknownModel("mail"), 404, {"value": "mail", "detail": "there is no model 'mail'"}),
        (errors.UnknownEntry("the log has no entry 9"), 404, {"detail": "the log has no entry 9"}),
        (errors.Conflict("there is another"), 409, {}),
        (errors.LearningPaused("the disk is full"), 507, {}),
        (errors.DamagedLog("is cut off", path=f"{SECRET}/log", model="mail", entry=7), 500, {"model": "mail", "entry": 7}),
        (errors.DamagedTokens("is damaged", path=f"{SECRET}/tokens.json"), 503, {"detail": "is damaged"}),
        (errors.FolderInUse(SECRET), 503, {"hint": "stop that server first, or serve another folder"}),
        (errors.OutputError(f"there is no folder {SECRET}", f"{SECRET}/log", 28), 507,
         {"detail": "the server cannot write its files: No space left on device"}),
        (errors.OutputError(f"there is no folder {SECRET}", f"{SECRET}/log"), 507, {}),
        (errors.InvalidParameter("margin", -1, "a number ≥ 0"), 422,
         {"parameter": "margin", "value": -1, "allowed": "a number ≥ 0", "detail": "margin must be a number ≥ 0; got -1"}),
        (errors.UnknownParameter("AROW", "x", 3, settings={"r": 1.0}), 422,
         {"learner": "AROW", "parameter": "x", "settings": {"r": 1.0}}),
        (errors.IncompatibleParameters(("a", 1), ("b", [2]), "reason"), 422, {"other": "b", "other_value": "[2]"}),
        (errors.UnknownLabel("c", ["a", "b"], row=7), 422, {"label": "c", "row": 7}),
        (errors.FormatError("is no number", path=SECRET, line=3, column="x"), 400, {"line": 3, "column": "x"}),
        (errors.InvalidData("X has a NaN", row=0, hint="impute it"), 422, {"row": 0, "hint": "impute it"}),
        (errors.NumericOverflow("weights became infinite", row=2), 422, {"row": 2}),
        (errors.UnreadableModel("it is no model", path=SECRET), 422, {"detail": "it is no model"}),
        (errors.UnsupportedOperation("it only predicts"), 422, {}),
        (errors.MissingDependency("pyarrow", "tables", "tables"), 501, {"hint": "pip install 'rosenblatt[tables]'"}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)  # fmt: skip
def test_an_error_becomes_an_answer_with_its_facts(error, status, facts):
    got = from_error(error)
    found = facts_of(got)
    assert got.status_code == status
    assert facts.items() <= found.items()
    assert {"type", "title", "status", "detail"} <= found.keys()
    assert None not in found.values()
    assert SECRET not in got.body.decode()
    assert ("retry-after" in got.headers) == (status in (503, 507))


def test_every_type_of_error_has_a_kind_of_its_own():
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, RosenblattError)]
    assert len({problem_kind(kind) for kind in kinds}) == len(kinds) > 20
    assert problem_kind(errors.LimitExceeded) == "limit-exceeded"


def test_every_limit_on_an_amount_has_a_status():
    assert STATUS.keys() == {name for name in Limits._fields if not name.endswith(("_seconds", "_days"))}


def deep(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [math.nan, -math.inf, 10**5000, 2**64, "x" * 10**6, "\ud800\0\n", b"\xff", deep(100_000), {"a": deep(100_000)},
              {i: i for i in range(10**4)}, object()],
    ids=range(11),
)  # fmt: skip
def test_any_value_becomes_short_json(value):
    response = problem(422, "invalid-data", "Title", "x" * 10**6, value=value)
    assert len(response.body) < 5_000
    json.loads(response.body.decode("utf-8"), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner:
       st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_facts_do_not_replace_members_and_are_json(value):
    facts = facts_of(problem(409, "conflict", "Title", "detail", value=value, type=value, status_code=value))
    assert (facts["type"], facts["status"]) == (f"{PROBLEM}conflict", 409)
    if isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 2**63):
        assert facts["value"] == (value if not isinstance(value, str) or len(value) <= 1000 else facts["value"])


# Metrics


def samples(text):
    """The numbers in Prometheus' text format by name and labels; the format itself is checked."""
    found, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            if word == "TYPE":
                kinds[name] = rest
        else:
            name, _, value = line.rpartition(" ")
            base = name.partition("{")[0]
            assert any(base in (known, f"{known}_bucket", f"{known}_sum", f"{known}_count") for known in kinds)
            assert name not in found
            found[name] = float(value)
    assert set(kinds.values()) == {"counter", "gauge", "histogram"}
    assert text.endswith("\n")
    return found


def test_numbers_by_label():
    metrics = Metrics()
    metrics.examples_learned.add(5, "mail")
    metrics.examples_learned.add(2, "mail")
    metrics.examples_learned.add(1, 'a"b\\c\nd')
    metrics.model_bytes.set(1e6, "mail")
    metrics.model_bytes.set(2e6, "mail")
    metrics.log_bytes.set(0.5)
    found = samples(metrics.render())
    assert found['rosenblatt_examples_learned_total{model="mail"}'] == 7
    assert found[r'rosenblatt_examples_learned_total{model="a\"b\\c\nd"}'] == 1
    assert found['rosenblatt_model_bytes{model="mail"}'] == 2e6
    assert found["rosenblatt_log_bytes"] == 0.5
    metrics.requests.add(1, "/", "200")
    metrics.remove_model("mail")
    found = samples(metrics.render())
    assert not [name for name in found if "mail" in name]
    assert found['rosenblatt_requests_total{route="/",status="200"}'] == 1


@settings(deadline=None)
@given(st.lists(st.floats(0, 20)))
def test_a_histogram_counts_values_up_to_each_bound(values):
    histogram = Histogram("seconds", "Seconds.", ("route",), (0.5, 1, 10))
    for value in values:
        histogram.observe(value, "/")
    lines = [line.rpartition(" ")[::2] for line in histogram.lines() if not line.startswith("#")]
    found = {name: float(value) for name, value in lines}
    bounds = {"0.5": 0.5, "1": 1, "10": 10, "+Inf": math.inf} if values else {}
    for text, bound in bounds.items():
        count = sum(value <= bound for value in values)
        assert found[f'rosenblatt_seconds_bucket{{route="/",le="{text}"}}'] == count
    if values:
        assert found['rosenblatt_seconds_count{route="/"}'] == len(values)
        assert found['rosenblatt_seconds_sum{route="/"}'] == pytest.approx(math.fsum(values))
    assert len(found) == (6 if values else 0)


def test_threads_lose_no_count():
    metrics = Metrics()

    def count():
        for _ in range(5_000):
            metrics.commits.add()
            metrics.commit_seconds.observe(0.001)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = samples(metrics.render())
    assert found["rosenblatt_commits_total"] == found["rosenblatt_commit_seconds_count"] == 20_000
