"""A server that is killed with SIGKILL at any moment has lost nothing that it acknowledged, learned nothing twice, and has
the model that its log says, to the byte.

    make kill-server                    # 200 times
    python -m bench.serve_kill --times 20

Clients learn (one example, a batch, JSON lines), predict and send the label later, create models and set them back, all at
once, until the server is killed; one kill in six hits it again while it starts, one end in ten is SIGTERM. A client whose
answer did not come sends the same request with the same key again after the restart. Before that, for each model,

- the exported log must have every acknowledged request at the `seq` of its answer, with the examples that were sent; no key
  may be in it twice, and nothing that no client sent;
- the model file that the server sends must have the bytes that come of learning the exported log from the start, by a plain
  loop over `OnlinePerceptron.learn_one`, which shares nothing with the server; and so must the file of an earlier state.

Every example has a feature of its own, so that no two are the same.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from bench.server import Answer, Connection, Server, check_folder
from rosenblatt.online import OnlinePerceptron

CLIENTS = 6
MODELS = 4  # at once
LONGEST_LOG = 1200  # entries; a model with more is deleted, so that replaying it does not take long
LONGEST_LOAD = 0.8  # seconds until a kill
MANY_LINES = 1000  # of JSON lines in one request
WORDS = [f"word={number}" for number in range(300)]
LABELS = ["ham", "spam", "é", 3, True]
CREATIONS: list[dict[str, Any]] = [
    {"learner": "OnlinePerceptron", "parameters": {}},
    {"learner": "OnlinePerceptron", "parameters": {"keep": "average"}},
    {"learner": "OnlinePerceptron", "parameters": {}, "hashing": 4096},
    {"learner": "OnlinePerceptron", "parameters": {"max_features": 200}},
]
Entry = dict[str, Any]
Row = dict[str, float]


class Wrong(Exception):
    """A promise that the server did not keep."""


# The model that a log says


def replay(log: list[Entry]) -> OnlinePerceptron:
    """Learn a log from the start, as its words say and without the server's code."""
    learned: list[list[Entry]] = [[]]  # the examples behind the state after each entry
    for number, entry in enumerate(log, 1):
        if entry["seq"] != number:
            raise Wrong(f"entry {number} of the log has the seq {entry['seq']}")
        if "set_back" in entry:
            learned.append(learned[entry["set_back"]["to"]])
        else:
            learned.append(learned[-1] + entry.get("learn", []))
    create = log[0]["create"]
    hashing = {"hashing": create["hashing"]} if create.get("hashing") else {}
    model = OnlinePerceptron(**(create["parameters"] | hashing))
    for example in learned[-1]:
        model.learn_one(example["x"], example["y"], example.get("w", 1.0))
    return model


def file_of(model: OnlinePerceptron) -> bytes:
    """Return the bytes of a model's file; none before the first example, when there is nothing to save."""
    if not model.n_seen_:
        return b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.read_bytes()


def facts_of(example: Entry) -> tuple[Any, ...]:
    """Return what two examples that are the same have in common: names in their order, values, label and weight."""
    return list(example["x"].items()), type(example["y"]), example["y"], float(example.get("w", 1.0))


def file_from(connection: Connection, path: str) -> bytes:
    """Return the bytes of a model's file that the server sends; none if it says that nothing has been learned."""
    answer = connection.request("GET", path)
    return b"" if answer.status in (404, 409, 422) else good(answer, path).body


def check_model(connection: Connection, name: str, draw: random.Random) -> list[Entry]:
    """Hold a model and one of its earlier states against its log, which is returned."""
    log = connection.ask("GET", f"/models/{name}/log").lines()
    if not log or "create" not in log[0]:
        raise Wrong(f"{name}: the log does not begin with a creation: {log[:1]}")
    model = replay(log)
    description = connection.ask("GET", f"/models/{name}").json()
    found = [description[key] for key in ("seq", "seen", "mistakes", "updates")]
    if found != [len(log), model.n_seen_, model.n_mistakes_, model.n_updates_]:
        raise Wrong(f"{name}: seq, seen, mistakes, updates are {found}, but the log says "
                    f"{[len(log), model.n_seen_, model.n_mistakes_, model.n_updates_]}")  # fmt: skip
    if file_from(connection, f"/models/{name}/file") != file_of(model):
        raise Wrong(f"{name}: the model file is not what comes of learning the log")
    at = draw.randint(1, len(log))
    if file_from(connection, f"/models/{name}/file?at={at}") != file_of(replay(log[:at])):
        raise Wrong(f"{name}: the model file at {at} of {len(log)} is not what comes of learning the log until there")
    return log


# What clients send


class Request(NamedTuple):
    """A request that changes something, and the entry of the log that it must become."""

    kind: str
    model: str
    method: str
    path: str
    body: Any
    key: str
    entry: Entry


class Acknowledged(NamedTuple):
    """A request and the seq of its answer."""

    request: Request
    seq: int


class World:
    """The models that there are, what was sent to each and what came back; clients share it."""

    def __init__(self, seed: int):
        self.seed, self.draw = seed, random.Random(seed)
        self.lock = threading.Lock()
        self.acknowledged: dict[str, list[Acknowledged]] = {}  # by model
        self.set_backs_without_answer: dict[str, list[int]] = {}  # where each was to lead
        self.predicted: dict[str, list[tuple[str, Row]]] = {}  # ids whose label has not been sent
        self.counts: Counter[str] = Counter()
        self.names = 0
        self.failure: Exception | None = None

    def add(self, request: Request, seq: int) -> None:
        """Note an acknowledged request."""
        with self.lock:
            if request.kind == "create":
                self.acknowledged.setdefault(request.model, [])
                self.set_backs_without_answer.setdefault(request.model, [])
                self.predicted.setdefault(request.model, [])
            self.acknowledged[request.model].append(Acknowledged(request, seq))
            self.counts[request.kind] += 1

    def remove(self, name: str) -> None:
        """Forget a model that was deleted."""
        del self.acknowledged[name], self.set_backs_without_answer[name], self.predicted[name]

    def new_model(self) -> Request:
        """Return the request that creates one more model."""
        with self.lock:
            self.names += 1
            name, create = f"m{self.names}", CREATIONS[self.names % len(CREATIONS)]
        return Request("create", name, "PUT", f"/models/{name}", create, "", {"create": create})


class Client:
    """Sends one request after another; after a kill the one whose answer did not come again."""

    def __init__(self, world: World, number: int):
        self.world, self.draw, self.number, self.count = world, random.Random(f"{world.seed} {number}"), number, 0
        self.unanswered: Request | None = None

    def run(self, connection: Connection, stopped: threading.Event) -> None:
        """Send requests until the server is gone."""
        try:
            while self.unanswered is not None or not stopped.is_set():
                self.unanswered = self.unanswered or self.next_request(connection)
                if self.unanswered is not None:
                    self.send(connection, self.unanswered)
                    self.unanswered = None
        except (OSError, http.client.HTTPException):
            request = self.unanswered
            if request is not None and request.kind == "set back":  # which has no key: nobody knows whether it was done
                self.world.set_backs_without_answer[request.model].append(request.body["to"])
                self.unanswered = None
        except Exception as error:
            self.world.failure = self.world.failure or error
        finally:
            connection.close()

    def send(self, connection: Connection, request: Request) -> None:
        """Send a request and note its answer; while the server stops it may say so."""
        headers = {"Idempotency_Key": request.key} if request.key else {}
        if request.kind == "learn lines":
            headers["Content_Type"] = "application/x-ndjson"
        answer = connection.request(request.method, request.path, request.body, **headers)
        if answer.status == 503:
            raise ConnectionError("the server stops")
        self.world.add(request, good(answer, request.path).json()["seq"])

    def row(self) -> Row:
        """Return a row with a feature that no other row has."""
        self.count += 1
        names = self.draw.sample(WORDS, self.draw.randint(1, 12))
        return {f"row={self.number}-{self.count}": 1.0} | {name: self.value() for name in names}

    def value(self) -> float:
        """Return the value of a feature: a round one, or one that has all its digits."""
        return self.draw.choice((1, 0.5, -2, 2**53 + 1, 1e-3, self.draw.gauss(0, 1), self.draw.gauss(0, 1) * 1e-20))

    def label(self, row: Row) -> Any:
        """Return a label that depends on the row, mostly."""
        return LABELS[(len(row) // 3 + (self.draw.random() < 0.1)) % len(LABELS)]

    def example(self) -> Entry:
        """Return an example, some with a weight."""
        row = self.row()
        weight = {"w": self.draw.choice((0.5, 2.0))} if self.draw.random() < 0.1 else {}
        return {"x": row, "y": self.label(row)} | weight

    def learn(self, kind: str, model: str, body: list[Entry], logged: list[Entry]) -> Request:
        """Return a request that learns."""
        key = f"key-{self.number}-{self.count}"
        return Request(kind, model, "POST", f"/models/{model}/learn", {"examples": body}, key, {"learn": logged})

    def next_request(self, connection: Connection) -> Request | None:
        """Choose what to send. A prediction changes nothing and is made here; its label is sent some other time."""
        with self.world.lock:
            models = sorted(self.world.acknowledged)
        if len(models) < MODELS and (not models or self.draw.random() < 0.05):
            return self.world.new_model()
        model, kind = self.draw.choice(models), self.draw.random()
        if kind < 0.4:
            examples = [self.example()]
            return self.learn("learn one", model, examples, examples)
        if kind < 0.57:
            examples = [self.example() for _ in range(self.draw.randint(2, 60))]
            return self.learn("learn many", model, examples, examples)
        if kind < 0.6:
            few = [self.example() for _ in range(self.draw.randint(2, 60))]
            examples = few * (MANY_LINES // len(few) + 1) if self.draw.random() < 0.1 else few
            request = self.learn("learn lines", model, examples, examples)
            return request._replace(body=b"".join(json.dumps(example).encode() + b"\n" for example in examples))
        if kind < 0.8:
            rows = [self.row() for _ in range(self.draw.randint(1, 4))]
            body = {"examples": [{"x": row} for row in rows]}
            path = f"/models/{model}/predict"
            answer = connection.request("POST", path, body)
            if answer.status == 503:
                raise ConnectionError("the server stops")
            found = good(answer, path).json()["predictions"]
            with self.world.lock:
                self.world.predicted[model] += [(one["id"], row) for one, row in zip(found, rows, strict=True)]
                self.world.counts["predict"] += 1
            return None
        if kind < 0.97:
            with self.world.lock:
                waiting = self.world.predicted[model]
                taken = [waiting.pop(self.draw.randrange(len(waiting))) for _ in range(min(len(waiting), 3))]
            labels = [self.label(row) for _, row in taken]
            self.count += 1
            return None if not taken else self.learn(
                "late label", model,
                [{"id": id, "y": y} for (id, _), y in zip(taken, labels, strict=True)],
                [{"x": row, "y": y} for (_, row), y in zip(taken, labels, strict=True)],
            )  # fmt: skip
        with self.world.lock:
            to = self.draw.randint(1, max(one.seq for one in self.world.acknowledged[model]))
        path = f"/models/{model}/set-back"
        return Request("set back", model, "POST", path, {"to": to}, "", {"set_back": {"to": to}})


def good(answer: Answer, path: str) -> Answer:
    """Return an answer that must be good."""
    if answer.status not in (200, 201):
        raise Wrong(f"{path}: {answer.status} {answer.body[:500]!r}")
    return answer


# What must be true after a restart


def check_log(world: World, name: str, log: list[Entry], unanswered: list[Request]) -> None:
    """Hold the log of a model against what clients sent and what was acknowledged."""
    unknown = {entry["seq"]: entry for entry in log}
    for request, seq in world.acknowledged.get(name, []):
        if seq > len(log):
            raise Wrong(f"{name}: the log ends at {len(log)} and has not what was acknowledged as {seq}: {request}")
        check_entry(name, log[seq - 1], request)
        unknown.pop(seq, None)
    keys = [entry["key"] for entry in log if "key" in entry]
    if len(set(keys)) < len(keys):
        raise Wrong(f"{name}: keys are in the log twice: {[key for key, n in Counter(keys).items() if n > 1]}")
    waiting = {request.key: request for request in unanswered if request.model == name}
    unsure = list(world.set_backs_without_answer.get(name, []))
    for seq, entry in unknown.items():
        if "set_back" in entry and entry["set_back"]["to"] in unsure:
            unsure.remove(entry["set_back"]["to"])
        elif "set_back" not in entry and entry.get("key", "") in waiting:
            check_entry(name, entry, waiting.pop(entry.get("key", "")))
        else:
            raise Wrong(f"{name}: nobody sent entry {seq} of the log: {str(entry)[:300]}")


def check_entry(name: str, entry: Entry, request: Request) -> None:
    """Hold an entry of the log against the request that it comes from."""
    same = request.entry.keys() <= entry.keys() and entry.get("key", "") == request.key
    if same and "learn" in entry:
        same = [*map(facts_of, entry["learn"])] == [*map(facts_of, request.entry["learn"])]
    elif same and "set_back" in entry:
        same = entry["set_back"]["to"] == request.entry["set_back"]["to"]
    elif same:
        same = all(entry["create"].get(key) == value for key, value in request.entry["create"].items())
    if not same:
        raise Wrong(f"{name}: entry {entry['seq']} of the log is {str(entry)[:500]}, but {str(request)[:500]} was sent")


def check_all(world: World, server: Server, unanswered: list[Request]) -> int:
    """Check every model and return how many entries their logs have; delete those with long logs."""
    connection = server.connect()
    names = {one["name"] for one in connection.ask("GET", "/models").json()["models"]}
    creating = {request.model for request in unanswered if request.kind == "create"}
    if not world.acknowledged.keys() <= names <= world.acknowledged.keys() | creating:
        raise Wrong(f"there are the models {sorted(names)}, but {sorted(world.acknowledged)} were acknowledged")
    busy = {request.model for request in unanswered}
    entries = 0
    for name in sorted(names):
        log = check_model(connection, name, world.draw)
        check_log(world, name, log, unanswered)
        entries += len(log)
        if len(log) > LONGEST_LOG and name not in busy:
            connection.ask("DELETE", f"/models/{name}")
            world.remove(name)
    connection.close()
    return entries


def load(server: Server, clients: list[Client], seconds: float, end: str) -> None:
    """Let the clients work for so long, then end the server under them; "pause" ends the clients and not the server."""
    stopped = threading.Event()
    threads = [threading.Thread(target=one.run, args=(server.connect(), stopped), daemon=True) for one in clients]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    if end == "SIGKILL":
        server.kill()
    elif end == "SIGTERM" and (code := server.stop()):
        raise Wrong(f"SIGTERM under load: exit code {code}: {server.said()[-1000:]!r}")
    stopped.set()
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            raise Wrong("a client waits for an answer for more than a minute")


def kill_many(folder: Path, times: int, seed: int, options: tuple[str, ...] = (), check_every: int = 20) -> World:
    """Kill a server so many times and check it after each; raise Wrong if it broke a promise."""
    world = World(seed)
    clients = [Client(world, number) for number in range(CLIENTS)]
    server = Server(folder, *options).start()
    try:
        for number in range(1, times + 1):
            end = "SIGTERM" if world.draw.random() < 0.1 else "SIGKILL"
            load(server, clients, world.draw.uniform(0, LONGEST_LOAD), end)
            if world.failure is not None:
                raise world.failure
            world.counts[end] += 1
            if world.draw.random() < 1 / 6:
                server.launch()
                time.sleep(world.draw.uniform(0.2, 1.2) * server.seconds)
                server.kill()
                world.counts["SIGKILL while it started"] += 1
            if number % check_every == 0 or number == times:
                check_offline(folder)
            server.start()
            world.counts["milliseconds of starting"] += round(server.seconds * 1000)
            check_all(world, server, [one.unanswered for one in clients if one.unanswered is not None])
        load(server, clients, 0.3, "pause")
        if world.failure is not None:
            raise world.failure
        world.counts["entries"] = check_all(world, server, [])
        server.stop()
    finally:
        server.kill()
    return world


def check_offline(folder: Path) -> None:
    """Let `rosenblatt serve --check` look at a folder that no server uses."""
    done: subprocess.CompletedProcess[bytes] = check_folder(folder)
    if done.returncode != 0:
        raise Wrong(f"--check is not content: exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]!r}")


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=200)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    place = Path(tempfile.mkdtemp(prefix="rosenblatt-kill-"))
    folder = place / "folder"
    folder.mkdir()
    print(f"seed {seed}, folder {folder}", flush=True)
    began = time.monotonic()
    world = kill_many(folder, given.times, seed)
    print(f"seed {seed}: {given.times} times in {time.monotonic() - began:.0f} s; nothing acknowledged was lost or learned "
          f"twice, and every model was what its log says")  # fmt: skip
    print(", ".join(f"{what}: {count:,}" for what, count in sorted(world.counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
