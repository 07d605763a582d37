"""A server that is killed under load has all that it acknowledged, once, and the models that its log says."""

import json

import pytest

pytest.importorskip("fastapi")

from bench import serve_kill, serve_retries
from bench.serve_kill import Request, World, Wrong, check_entry, check_log, file_of, kill_many, replay
from bench.server import Server
from rosenblatt import serve
from rosenblatt.online import OnlinePerceptron

TIMES = 20


def test_a_server_killed_at_random_moments_has_lost_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(serve_kill, "LONGEST_LOG", 250)
    monkeypatch.setattr(serve_kill, "LONGEST_LOAD", 0.4)
    folder = tmp_path / "folder"
    folder.mkdir()
    counts = kill_many(folder, TIMES, seed=1, check_every=TIMES).counts
    assert counts["SIGKILL"] + counts["SIGTERM"] == TIMES
    assert (
        min(
            counts[kind]
            for kind in ("create", "learn one", "learn many", "learn lines", "late label", "predict", "set back")
        )
        > 0
    )


def test_two_servers_on_one_folder_are_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Server(folder).start() as first:
        second = Server(folder)
        second.launch()
        try:
            assert second.process.wait(60) != 0
            assert b"Traceback" not in second.said()
            assert first.connect().ask("GET", "/readyz").status == 200
        finally:
            second.kill()


# What the check itself sees

EXAMPLES = [{"x": {"a": 1.0}, "y": "p"}, {"x": {"b": 1.0}, "y": "q"}, {"x": {"a": 0.5, "b": 2}, "y": "p", "w": 2.0}]


def logged(*entries):
    create = {"create": {"learner": "OnlinePerceptron", "parameters": {}}}
    return [{"seq": seq, "time": seq, **entry} for seq, entry in enumerate((create, *entries), 1)]


def learned(number, key):
    examples = [EXAMPLES[number]]
    return Request("learn one", "m", "POST", "/models/m/learn", {"examples": examples}, key, {"learn": examples})


def test_a_replay_follows_the_words_of_the_log():
    log = logged({"learn": EXAMPLES[:2]}, {"learn": EXAMPLES[2:]}, {"set_back": {"to": 2}}, {"learn": EXAMPLES[:1]})
    expected = OnlinePerceptron()
    for example in (*EXAMPLES[:2], EXAMPLES[0]):
        expected.learn_one(example["x"], example["y"])
    assert file_of(replay(log)) == file_of(expected)
    with pytest.raises(Wrong, match="seq"):
        replay(log[:2] + log[3:])


@pytest.mark.timeout(120)
def test_set_backs_after_set_backs_are_replayed_once():
    """If each set-back replayed those before it, a log of two hundred would not end."""
    log = logged({"learn": EXAMPLES}, *({"set_back": {"to": seq}} for seq in range(2, 202)), {"learn": EXAMPLES[:1]})
    assert file_of(serve.replay(json.dumps(entry) for entry in log)) == file_of(replay(log))


def test_the_check_sees_what_is_lost_doubled_invented_or_changed():
    world = World(0)
    world.acknowledged["m"], world.set_backs_without_answer["m"] = [], []
    world.add(learned(0, "first"), 2)
    world.add(learned(1, "second"), 3)
    first, second = {"key": "first", "learn": EXAMPLES[:1]}, {"key": "second", "learn": EXAMPLES[1:2]}
    log = logged(first, second)
    create = Request("create", "m", "PUT", "/models/m", log[0]["create"], "", {"create": log[0]["create"]})
    world.add(create, 1)
    check_log(world, "m", log, [])
    check_log(world, "m", logged(first, second, {"key": "third", "learn": EXAMPLES[2:]}), [learned(2, "third")])
    for wrong in (
        logged(first),
        logged(second, first),
        logged(first, second, second),
        logged(first, second, {"learn": EXAMPLES[:1]}),
        logged(first, second, {"set_back": {"to": 1}}),
        logged(first, second | {"learn": [EXAMPLES[1] | {"x": {"b": 1.5}}]}),
    ):
        with pytest.raises(Wrong):
            check_log(world, "m", wrong, [])
    with pytest.raises(Wrong):
        check_entry("m", log[1] | {"learn": [EXAMPLES[0] | {"y": True}]}, learned(0, "first"))


def test_retries_after_a_kill_are_answered_as_before(tmp_path):
    waited = serve_retries.measure(tmp_path / "folder", requests=20, retries=15)
    assert waited.learned > 0
