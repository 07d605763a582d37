"""What an attacker with a token, or a client in a hurry, sends: the server lives, stays within its limits, and goes on."""

import json
import os
import socket
import threading
from contextlib import closing

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

from bench.server import Server


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
