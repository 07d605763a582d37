"""What a tired change of the server would break without a word: flushing, taking back, freeing and limiting."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvloop")

import bench.server
from bench.server import Server
from rosenblatt.serve.check import check_folder
from rosenblatt.serve.log import Log

QUEUED = 1 << 20  # bytes that may wait
MOST_CLASSES = 3

# A server with limits that the command line has no options for; what follows the folder is not read.
PROGRAM = f"""
import sys
from pathlib import Path
from rosenblatt.serve import Limits
from rosenblatt.serve.server import serve

limits = Limits(queued_bytes={QUEUED}, classes={MOST_CLASSES})
serve(Path(sys.argv[1]), port=0, limits=limits, started=lambda started: print(started.url, flush=True))
"""

# Counts how often the disk is waited for, before it is.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int flush(const char *function, int file) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    const char *counts = getenv("FLUSHES"), *ending = getenv("FLUSHED");
    size_t tail = ending ? strlen(ending) : 0;
    if (counts && length >= (ssize_t)tail && !memcmp(name + length - tail, ending, tail)) {
        int out = open(counts, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (write(out, "x", 1) != 1) abort();
        close(out);
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, function))(file);
}

int fsync(int file) { return flush("fsync", file); }
int fdatasync(int file) { return flush("fdatasync", file); }
"""


@contextlib.contextmanager
def serving(folder, **environment):
    """A server with the limits above."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.server, "COMMAND", [sys.executable, "-c", PROGRAM])
        with Server(folder, environment=environment) as server:
            yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served") / "folder") as started:
        yield started


@pytest.fixture
def ask(server):
    with closing(server.connect()) as connection:
        yield connection.request


def examples(*labels, features=1):
    row = {f"feature {column}": 1.0 for column in range(features)}
    return {"examples": [{"x": row, "y": label} for label in labels]}


# What waits


@pytest.mark.parametrize("reason", ["a class too many", "another request of this key"])
def test_what_was_refused_waits_no_longer(ask, reason):
    """Requests are refused by the writer, and together are larger than all that may wait."""
    path = f"/models/refused-{len(reason)}"
    ask("PUT", path, {})
    assert ask("POST", f"{path}/learn", examples("a", "b", "c"), Idempotency_Key="used").status == 200
    refused = examples("d" if reason == "a class too many" else "a", features=2_000)
    key = {} if reason == "a class too many" else {"Idempotency_Key": "used"}
    often = 2 * QUEUED // len(json.dumps(refused))
    assert often > 40
    assert {ask("POST", f"{path}/learn", refused, **key).status for _ in range(often)} == {422}
    assert ask("POST", f"{path}/learn", examples("a", features=2_000)).json()["seq"] == 3
    too_large = ask("POST", f"{path}/learn", examples("a", features=100_000))
    assert (too_large.status, too_large.json()["limit"]) == (503, "queued_bytes")


# Classes


def test_a_class_too_many_is_refused_and_learning_goes_on(ask):
    ask("PUT", "/models/classes", {})
    path = "/models/classes/learn"
    assert ask("POST", path, examples("a", "b")).json()["seq"] == 2
    refused = ask("POST", path, examples("a", "c", "d"))  # one of the two has room
    assert refused.status == 422
    assert (refused.json()["limit"], refused.json()["value"]) == ("classes", MOST_CLASSES + 1)
    assert ask("GET", "/models/classes").json()["classes"] == ["a", "b"]
    assert ask("POST", path, examples("c", "a", "c")).json() == {"seq": 3, "learned": 3, "mistakes": 3, "wrong": 3}
    assert ask("POST", path, examples("d")).status == 422
    assert ask("POST", path, examples("c", "b", "a")).json()["seq"] == 4
    assert ask("GET", "/models/classes").json()["classes"] == ["a", "b", "c"]


def test_numbers_to_predict_are_no_classes(ask):
    ask("PUT", "/models/numbers", {"learner": "PassiveAggressiveRegressor"})
    rows = [{"x": [float(k), 1.0], "y": 2.5 * k} for k in range(3 * MOST_CLASSES)]
    assert ask("POST", "/models/numbers/learn", {"examples": rows}).json()["learned"] == 3 * MOST_CLASSES


# What is taken back, and what is on the disk


def test_an_entry_that_is_refused_while_it_is_written_leaves_no_gap(server, ask):
    """The database refuses the label of a prediction after the entry was added; nothing of the entry stays."""
    ask("PUT", "/models/m", {})
    assert ask("POST", "/models/m/learn", examples("a", "b")).json()["seq"] == 2
    predicted = ask("POST", "/models/m/predict", {"examples": [{"x": {"late": 1.0}}]}).json()["predictions"][0]
    late = {"examples": [{"id": predicted["id"], "y": "a"}]}
    with closing(sqlite3.connect(server.folder / "log.sqlite", timeout=30)) as database:
        database.execute("CREATE TRIGGER no BEFORE INSERT ON labelled BEGIN SELECT RAISE(ABORT, 'no'); END")
        assert ask("POST", "/models/m/learn", late).status == 409
        database.execute("DROP TRIGGER no")
    assert ask("POST", "/models/m/learn", examples("b", "a")).json()["seq"] == 3
    assert ask("POST", "/models/m/learn", late).json()["seq"] == 4
    assert [entry["seq"] for entry in ask("GET", "/models/m/log").lines()] == [1, 2, 3, 4]


def test_sqlite_waits_for_the_disk_in_every_commit(tmp_path):
    with Log(tmp_path / "folder") as log:
        log.begin_writing()
        with log.transaction() as database:
            assert database.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.fixture
def shim(tmp_path):
    """A library that counts what is flushed; it is loaded before all others."""
    if sys.platform != "linux" or (compiler := shutil.which("cc")) is None:
        pytest.skip("counting what is flushed needs Linux and a C compiler")
    source, library = tmp_path / "flushes.c", tmp_path / "flushes.so"
    source.write_text(SHIM)
    build = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    built = subprocess.run(build, capture_output=True, timeout=60)
    if built.returncode:
        pytest.skip(f"no library could be made: {built.stderr.decode()[-500:]}")
    counts, plain = tmp_path / "flushes", tmp_path / "plain"
    environment = {"LD_PRELOAD": str(library), "FLUSHES": str(counts)}
    program = f"import os; os.fdatasync(os.open({str(plain)!r}, os.O_CREAT | os.O_RDWR))"
    tried = os.environ | environment | {"FLUSHED": "plain"}
    subprocess.run([sys.executable, "-c", program], env=tried, check=True, timeout=60)
    if not counts.exists():
        pytest.skip("this Python calls the system in another way")
    counts.unlink()
    return environment


def test_an_answer_comes_after_the_log_is_on_the_disk(tmp_path, shim):
    with (
        serving(tmp_path / "folder", **shim, FLUSHED="log.sqlite-wal") as server,
        closing(server.connect()) as connection,
    ):
        connection.ask("PUT", "/models/m", {})
        for _ in range(10):
            before = os.path.getsize(shim["FLUSHES"])
            connection.ask("POST", "/models/m/learn", examples("a", "b"))
            assert os.path.getsize(shim["FLUSHES"]) > before


def test_a_commit_that_fails_leaves_no_gap(tmp_path):
    """The log may not grow for a while; what was refused then has no number, and the next entry follows the last."""
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("the limits of another process can be set on Linux only")
    with serving(tmp_path / "folder") as server, closing(server.connect()) as connection:
        connection.ask("PUT", "/models/m", {})
        connection.ask("PUT", "/models/beside", {})
        assert connection.ask("POST", "/models/m/learn", examples("a", "b")).json()["seq"] == 2
        size = (tmp_path / "folder" / "log.sqlite-wal").stat().st_size
        _, most = limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, most))
        for model in ("m", "m", "beside"):
            refused = connection.request("POST", f"/models/{model}/learn", examples("a", "b"))
            assert refused.status == 507
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        deadline = time.monotonic() + 30
        while connection.request("POST", "/models/beside/learn", examples("b")).status != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert connection.ask("POST", "/models/m/learn", examples("b", "a")).json()["seq"] == 3
        for model, last in (("m", 3), ("beside", 2)):
            log = connection.ask("GET", f"/models/{model}/log").lines()
            assert [entry["seq"] for entry in log] == list(range(1, last + 1))
            assert connection.ask("GET", f"/models/{model}").json()["seq"] == last
        assert server.stop() == 0
    assert check_folder(tmp_path / "folder").problems == ()
