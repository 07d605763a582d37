"""What a client sends takes no more memory than the limits allow, and others go on predicting."""

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

from bench import serve_limits
from bench.serve_limits import ATTACKS, MIB, Attack, perform, predict


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(serve_limits, "TOKENS_READ", 0.0)
    monkeypatch.setattr(serve_limits, "SETTLING", 0.3)
    monkeypatch.setattr(serve_limits, "CEILING", 1500)


def test_answers_of_gigabytes_are_refused(tmp_path):
    [attack] = [one for one in ATTACKS if one.name == "many_scores"]
    result = perform(attack, tmp_path)
    assert result.problems == []
    assert result.predictor.done > 0
    assert result.statuses[200] == 2  # the labels were learned, and afterwards another model learns
    assert result.statuses.keys() <= {200, 201, 413, 503}


def test_an_attack_that_a_server_does_not_withstand_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(serve_limits, "UNDER_WAY", 1)

    def send_blanks(target):
        target.send(predict(b" " * (16 * MIB) + b"{}", "steady"))

    attack = Attack("tiny", "", send_blanks, models=0, disk=1, scope=None, memory=64)
    result = perform(attack, tmp_path)
    assert result.limit == 1
    assert result.peak >= 16
    assert result.statuses[422] == 1
    assert any(problem.startswith("memory: ") for problem in result.problems)
    assert "FALLS" in next(result.rows)
