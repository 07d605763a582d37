"""A full disk stops learning and nothing else; learning returns when there is room, and nothing acknowledged is lost."""

import os
import subprocess
import time

import pytest

pytest.importorskip("fastapi")

from bench.serve_kill import file_of, replay
from bench.server import Server

SIZE = 24 << 20  # bytes of the disk
ROW = {f"word={j}": 1.0 for j in range(400)}


@pytest.fixture
def disk(tmp_path):
    """A disk of its own, in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"a disk of its own needs root: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, timeout=30)


def fill(place):
    """Leave no room on the disk."""
    with open(place / "filler", "wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 16))
            except OSError:
                break
    with open(place / "filler", "ab", buffering=0) as file:
        while True:
            try:
                file.write(b"\0")
            except OSError:
                return


def batch(number):
    return {"examples": [{"x": {f"row={number}": 1.0} | ROW, "y": "ab"[number % 2]}] * 20}


@pytest.mark.parametrize("reserve", ["1", "0"])
def test_a_full_disk_stops_learning_and_nothing_else(disk, reserve):
    """With a reserve the server stops before the disk is full; without one, when writing fails."""
    folder = disk / "folder"
    folder.mkdir()
    with Server(folder, "--min-free-disk", reserve).start() as server:
        connection = server.connect()
        connection.ask("PUT", "/models/m", {"learner": "OnlinePerceptron", "parameters": {}})
        acknowledged = {}

        def learn(number):
            answer = connection.request("POST", "/models/m/learn", batch(number), Idempotency_Key=str(number))
            if answer.status == 200:
                acknowledged[answer.json()["seq"]] = number
            return answer

        for number in range(10):
            assert learn(number).status == 200
        fill(disk)
        answers = [learn(number) for number in range(100, 400)]
        assert answers[-1].status == 507
        assert answers[-1].json()["status"] == 507
        assert {answer.status for answer in answers} <= {200, 507}
        assert connection.request("GET", "/readyz").status == 503
        assert connection.request("GET", "/healthz").status == 200
        seq = max(acknowledged)
        predicted = connection.ask("POST", "/models/m/predict", {"examples": [{"x": ROW}]}).json()
        assert predicted["predictions"][0]["label"] in ("a", "b")
        assert predicted["seq"] == seq
        os.remove(disk / "filler")
        deadline = time.monotonic() + 30
        while learn(500).status != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert connection.request("GET", "/readyz").status == 200
        assert learn(399).status == 200  # with the key of one that was refused
        log = connection.ask("GET", "/models/m/log").lines()
        assert {entry["seq"]: int(entry["key"]) for entry in log[1:]} == acknowledged
        content = connection.ask("GET", "/models/m/file").body
        assert content == file_of(replay(log))
        server.kill()
        again = server.start().connect()
        assert again.ask("GET", "/models/m/file").body == content
