"""Requests that are sent again after a kill are answered as they were the first time, and nobody waits for them.

    python -m bench.serve_retries              # 64 retries beside new learning, after 40,000 examples

A server has learned requests with keys, is killed, and has lost what their entries did, as a crash right after a commit
loses it. It starts again; while one client learns with the same model and another one with another model, the requests
are sent again. The longest that those two clients had to wait for an answer is printed, and must be under LONGEST_WAIT.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bench.server import Server

LONGEST_WAIT = 0.5  # seconds
ROWS, FEATURES, WORDS = 100, 30, 5_000  # of a request, of a row, and in all
MODELS = ("retried", "other")


class Waited(NamedTuple):
    """How long clients had to wait."""

    starting: float  # seconds until the server was ready again
    retries: float  # seconds for all retries
    learning: dict[str, float]  # the longest seconds of a client that learned meanwhile, by model
    learned: int  # requests of those clients


def request_body(draw: random.Random) -> bytes:
    """Return a request to learn with drawn rows."""
    rows = [{f"w{draw.randrange(WORDS)}": 1.0 for _ in range(FEATURES)} for _ in range(ROWS)]
    return json.dumps({"examples": [{"x": row, "y": draw.choice("abc")} for row in rows]}).encode()


def forget_outcomes(folder: Path) -> None:
    """Leave the log of a server that was killed without what its entries did."""
    with closing(sqlite3.connect(folder / "log.sqlite")) as database, database:
        database.execute("DELETE FROM outcomes")


def measure(folder: Path, requests: int, retries: int) -> Waited:
    """Kill a server that has learned requests, send some of them again, and measure who waits."""
    draw = random.Random(0)
    bodies = [request_body(draw) for _ in range(requests)]
    with Server(folder) as server:
        connection = server.connect()
        for model in MODELS:
            connection.ask("PUT", f"/models/{model}", {})
        path = f"/models/{MODELS[0]}/learn"
        first = [connection.ask("POST", path, body, Idempotency_Key=str(k)).json() for k, body in enumerate(bodies)]
        server.kill()
        forget_outcomes(folder)
        server.start()

        waits: dict[str, list[float]] = {model: [] for model in MODELS}
        stopped = threading.Event()

        def learn(model: str) -> None:
            with closing(server.connect()) as connection:
                while not stopped.is_set():
                    began = time.perf_counter()
                    connection.ask("POST", f"/models/{model}/learn", {"examples": [{"x": {"new": 1}, "y": "a"}]})
                    waits[model].append(time.perf_counter() - began)

        def retry(number: int) -> None:
            with closing(server.connect()) as connection:
                again = connection.ask("POST", path, bodies[number], Idempotency_Key=str(number)).json()
            assert again == first[number], f"request {number} was answered with {first[number]}, and now with {again}"

        with ThreadPoolExecutor(len(MODELS) + 8) as pool:
            learning = [pool.submit(learn, model) for model in MODELS]
            time.sleep(0.5)
            began = time.perf_counter()
            done = [pool.submit(retry, number) for number in range(requests - retries, requests)]
            try:
                for each in done:
                    each.result()
                seconds = time.perf_counter() - began
                time.sleep(0.2)
            finally:
                stopped.set()
            for each in learning:
                each.result()
        longest = {model: max(times) for model, times in waits.items()}
        return Waited(server.seconds, seconds, longest, sum(map(len, waits.values())))


def main() -> int:
    """Run it and return 0 if nobody waited too long."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--requests", type=int, default=400)
    options.add_argument("--retries", type=int, default=64)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="rosenblatt-retries-") as place:
        waited = measure(Path(place) / "folder", given.requests, given.retries)
    print(f"ready after {waited.starting:.2f} s; {given.retries} retries in {waited.retries:.2f} s")
    for model, seconds in waited.learning.items():
        print(f"longest wait of new learning, {model} model: {seconds:.3f} s")
    return int(max(waited.learning.values()) > LONGEST_WAIT)


if __name__ == "__main__":
    sys.exit(main())
