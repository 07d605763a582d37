"""The learning server under load: examples that it has acknowledged, so that they are on disk; predictions beside them; its
start after a crash; its memory. Server and load share the machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Missing
from bench.online import Stream, mails
from bench.report import Result
from bench.server import Server
from bench.server_load import Load, Measured, Sending, request_bytes, send

BATCH, BATCH_CLIENTS, SINGLE_CLIENTS, PREDICT_CLIENTS = 500, 4, 64, 4
PREDICTIONS = 200.0  # a second, while learning goes on
WARM_UP, SECONDS = 2.0, 8.0  # of load before, and while, something is measured
HASHING = 2**20
ROWS, VOCABULARY = 20_000, 20_000  # of the rows that bench.online learns beside River


def needed(*packages: str) -> None:
    """Raise Missing if a package is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise Missing(f"{package} is not installed: pip install 'rosenblatt[serve]'")


@cache
def rows() -> Stream:
    """Return the rows of the workload online-river."""
    return mails(ROWS, VOCABULARY)


def examples(stream: Stream) -> list[dict[str, Any]]:
    """Return rows as the server takes them."""
    return [{"x": x, "y": y} for x, y in stream]


@cache
def batches() -> list[bytes]:
    """Return requests of 500 rows each."""
    every = examples(rows())
    parts = [every[i : i + BATCH] for i in range(0, len(every), BATCH)]
    return [request_bytes("POST", "/models/m/learn", {"examples": part}) for part in parts]


@cache
def singles() -> list[bytes]:
    """Return requests of one row each."""
    return [request_bytes("POST", "/models/m/learn", {"examples": [one]}) for one in examples(rows())]


@cache
def predictions() -> list[bytes]:
    """Return requests for the prediction of one row each."""
    return [request_bytes("POST", "/models/m/predict", {"examples": [{"x": x}]}) for x, _ in rows()]


@contextmanager
def served(hashing: int | None, *options: str) -> Iterator[Server]:
    """Start a server on an empty folder, with one model that has learned nothing."""
    needed("fastapi", "uvicorn", "httptools", "uvloop")
    with tempfile.TemporaryDirectory(prefix="rosenblatt-bench-") as place:
        folder = Path(place) / "folder"
        folder.mkdir()
        with Server(folder, *options).start() as server:
            create(server, hashing)
            yield server


def create(server: Server, hashing: int | None) -> None:
    """Create the model m."""
    server.connect().ask("PUT", "/models/m", {"learner": "OnlinePerceptron", "parameters": {}, "hashing": hashing})


def seen(server: Server) -> int:
    """Return how many examples the model has learned."""
    return server.connect().ask("GET", "/models/m").json()["seen"]


def problem_of(measured: Measured, rows_each: int, learned: int) -> str:
    """Return what is wrong with a load of learn requests, or nothing."""
    if measured.good != measured.statuses.total() or not measured.good:
        return f"answers {dict(measured.statuses)}, the first bad one {measured.first_error[:300]!r}"
    if measured.good * rows_each != learned:
        return f"{measured.good * rows_each} examples were acknowledged, but {learned} learned"
    return ""


def learning(name: str, hashing: int | None, load: Load, rows_each: int, repeat: int) -> Result:
    """Measure the examples a second that a server acknowledged, in the best of several runs."""
    best, note = 0.0, ""
    with served(hashing) as server:
        send(server.port, [load], WARM_UP)
        for _ in range(min(repeat, 3)):
            before = seen(server)
            (measured,) = send(server.port, [load], SECONDS)
            if problem := problem_of(measured, rows_each, seen(server) - before):
                return Result(name, None, None, None, False, problem)
            speed = measured.good * rows_each / measured.seconds
            if speed > best:
                best = speed
                note = f"an answer takes {measured.percentile(50):.1f} ms, p99 {measured.percentile(99):.1f} ms"
    return Result(name, None, None, best, True, note)


def in_batches(folder: Path | None, repeat: int, hashing: int | None = None) -> Result:
    """Acknowledged examples a second, 500 a request."""
    name = f"server: rows of 60 named features, {BATCH} a request, {BATCH_CLIENTS} clients, acknowledged"
    name += "" if hashing is None else f", hashing={hashing}"
    return learning(name, hashing, Load(batches(), BATCH_CLIENTS), BATCH, repeat)


def one_a_request(folder: Path | None, repeat: int) -> Result:
    """Acknowledged examples a second, one a request."""
    name = f"server: the same rows, one a request, {SINGLE_CLIENTS} clients, acknowledged"
    return learning(name, None, Load(singles(), SINGLE_CLIENTS), 1, repeat)


def predict_latency(folder: Path | None, repeat: int, kind: str) -> Result:
    """The 99th percentile of the time of a prediction while the server learns at half of the rate it can."""
    requests, each, clients = (batches(), BATCH, BATCH_CLIENTS) if kind == "batches" else (singles(), 1, SINGLE_CLIENTS)
    with served(None) as server:
        send(server.port, [Load(requests, clients)], WARM_UP)
        (full,) = send(server.port, [Load(requests, clients)], SECONDS)
        rate = full.good / full.seconds / 2
        (alone,) = send(server.port, [Load(predictions(), PREDICT_CLIENTS, PREDICTIONS)], SECONDS)
        before = seen(server)
        learning = Sending(server.port, [Load(requests, clients, rate)], 2 * SECONDS + WARM_UP)
        time.sleep(WARM_UP)
        (beside,) = send(server.port, [Load(predictions(), PREDICT_CLIENTS, PREDICTIONS)], 2 * SECONDS)
        (half,) = learning.wait()
        problem = problem_of(half, each, seen(server) - before)
        problem = problem or ("" if beside.good == beside.statuses.total() else f"predictions answered {beside.statuses}")
    learned = half.good * each / half.seconds
    name = f"server: predict one row while it learns {'requests of 500' if kind == 'batches' else 'one a request'}, p99"
    note = (
        f"p50 {beside.percentile(50):.2f} ms, slowest {max(beside.latencies) * 1000:.1f} ms of {beside.good:,}; without "
        f"learning p50 {alone.percentile(50):.2f}, p99 {alone.percentile(99):.2f}; {learned:,.0f} examples/s beside it"
    )
    return Result(name, None, None, beside.percentile(99), not problem, problem or note)


# Vowpal Wabbit


def vw_lines(stream: Stream) -> list[bytes]:
    """Return rows as lines of Vowpal Wabbit's text."""
    return [f"{1 if y else -1} | {' '.join(name.replace('=', '_') for name in x)}\n".encode() for x, y in stream]


DAEMON = (
    "import sys; from vowpalwabbit import Workspace; "
    "Workspace(f'--daemon --foreground --no_stdin --num_children 1 --port 0 --port_file {sys.argv[1]} "
    "--loss_function hinge -b 18 --quiet').run_parser()"
)


@contextmanager
def vw_daemon() -> Iterator[int]:
    """Start Vowpal Wabbit's daemon, which its Python package contains, and yield its port."""
    needed("vowpalwabbit")
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "port"
        process = subprocess.Popen(
            [sys.executable, "-c", DAEMON, str(file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it starts a process of its own, which ends with it
        )
        try:
            deadline = time.monotonic() + 60
            while not (file.exists() and file.read_text().strip()):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise Missing("Vowpal Wabbit's daemon did not start")
                time.sleep(0.01)
            yield int(file.read_text())
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def vw_seconds(port: int, lines: list[bytes]) -> float:
    """Return the seconds until the daemon has answered every line of a connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        began = time.monotonic()
        writer = threading.Thread(target=connection.sendall, args=(b"".join(lines),), daemon=True)
        writer.start()
        answers = 0
        while answers < len(lines):
            received = connection.recv(1 << 16)
            if not received:
                raise ConnectionError(f"the daemon answered {answers} of {len(lines)} lines")
            answers += received.count(b"\n")
        writer.join(60)
        return time.monotonic() - began


def against_vw_daemon(folder: Path | None, repeat: int) -> Result:
    """The daemon's time / ours, for the same rows: it takes one connection at a time and keeps nothing on disk."""
    lines = vw_lines(rows())
    with vw_daemon() as port:
        vw_seconds(port, lines[:1000])
        theirs = min(vw_seconds(port, lines) for _ in range(min(repeat, 3)))
    with served(None) as server:
        send(server.port, [Load(batches(), BATCH_CLIENTS)], WARM_UP)
        ours, problem = np.inf, ""
        for _ in range(min(repeat, 3)):
            before = seen(server)
            (measured,) = send(server.port, [Load(batches(), BATCH_CLIENTS, count=len(batches()))])
            problem = problem or problem_of(measured, BATCH, seen(server) - before)
            ours = min(ours, measured.seconds)
    name = f"server: {len(lines):,} rows, {BATCH} a request, on disk, against Vowpal Wabbit's daemon on its text, in memory"
    note = f"{len(lines) / ours:,.0f} and {len(lines) / theirs:,.0f} examples/s; the daemon promises nothing"
    return Result(name, ours, theirs, theirs / ours, not problem, problem or note)


# Start and memory


def forget_pages(folder: Path) -> None:
    """Let the system drop what it holds of the files in memory, so that they are read from disk again."""
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def starting(folder: Path | None, repeat: int, requests: int = 2_000) -> Result:
    """Seconds from the start of the process until it is ready; the slowest of four ways."""
    count = requests * BATCH
    times: dict[str, list[float]] = {}
    with served(HASHING) as server:
        (measured,) = send(server.port, [Load(batches(), BATCH_CLIENTS, count=requests)])
        problem = problem_of(measured, BATCH, seen(server))
        expected = server.connect().ask("GET", "/models/m/file").body
        for end in ("SIGKILL", "SIGTERM"):
            for cache in ("warm", "cold"):
                for _ in range(min(repeat, 3)):
                    if end == "SIGKILL":
                        send(server.port, [Load(batches(), BATCH_CLIENTS, count=7)])  # so that there is something to replay
                        expected = server.connect().ask("GET", "/models/m/file").body
                        server.kill()
                    else:
                        server.stop()
                    if cache == "cold":
                        forget_pages(server.folder)
                    server.start()
                    times.setdefault(f"after {end}, files {cache}", []).append(server.seconds)
                    if server.connect().ask("GET", "/models/m/file").body != expected:
                        problem = problem or f"another model after {end}"
        size = sum(path.stat().st_size for path in server.folder.rglob("*") if path.is_file())
    middle = {way: float(np.median(seconds)) for way, seconds in times.items()}
    name = f"server: start with {count:,} logged examples of 60 named features, the slowest way"
    note = "; ".join(f"{way} {seconds:.2f} s" for way, seconds in middle.items()) + f"; folder {size / 1e6:,.0f} MB"
    return Result(name, None, None, max(middle.values()), not problem, problem or note)


@cache
def rare_batches() -> list[bytes]:
    """Return requests of 500 rows of 10 names, half of which no other row has: more names in all than there are buckets."""
    rng = np.random.default_rng(0)
    requests = []
    for first in range(0, 5 * HASHING // 4, 5 * BATCH):
        labels, frequent = rng.random(BATCH) < 0.5, rng.integers(VOCABULARY, size=(BATCH, 5))
        names = [
            [*(f"word={j}" for j in frequent[i]), *(f"rare={first + 5 * i + j}" for j in range(5))] for i in range(BATCH)
        ]
        body = [{"x": dict.fromkeys(row, 1), "y": bool(label)} for row, label in zip(names, labels, strict=True)]
        requests.append(request_bytes("POST", "/models/m/learn", json.dumps({"examples": body}).encode()))
    return requests


def memory(folder: Path | None, repeat: int, millions: tuple[float, ...] = (0.5, 1)) -> Result:
    """The memory at the end / that at the first mark."""
    found: list[float] = []
    problem, done = "", 0
    with served(HASHING) as server:
        for mark in millions:
            count = round(mark * 1e6) // BATCH - done
            (measured,) = send(server.port, [Load(rare_batches(), BATCH_CLIENTS, count=count)])
            done += count
            problem = problem or problem_of(measured, BATCH, seen(server) - (done - count) * BATCH)
            found.append(server.resident_bytes() / 1e6)
    name = f"server: memory after {millions[-1]:g} million examples / after {millions[0]:g}, hashing={HASHING}"
    note = ", ".join(f"{mark:g} million: {size:.0f} MB" for mark, size in zip(millions, found, strict=True))
    return Result(name, found[-1], found[0], found[-1] / found[0], not problem, problem or note, unit="MB")
