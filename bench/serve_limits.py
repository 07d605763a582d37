"""Whatever clients send, the server's memory and its folder stay within their limits, and it goes on predicting.

    make limits-server                               # every attack, each on a server of its own
    python -m bench.serve_limits --only long_names   # one of them; --list names all

A server starts with small limits. While one attack after the other is made, each on a new server, its resident memory
(VmHWM and VmRSS of /proc/PID/status) and the size of its folder are watched, and a client that has nothing to do with the
attack predicts all the time with another model. The memory of the idle server, after its first predictions, is subtracted.

The limit of memory is what the models that are attacked may take (`--max-model-memory`), and what requests and answers
that are under way may take (`queued_bytes` of `rosenblatt.serve.limits`, once for each); what is kept after an attack
must not be more than the models, and 64 MiB for the allocator. The limit of the folder is `--max-disk`. All may be exceeded
by a factor of 1.3. An answer of 500, a prediction without a good answer, and a server that does not learn afterwards are
failures too.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.server import Connection, Server
from rosenblatt.serve.limits import Limits

MIB = 1 << 20
MODEL_MEMORY = 64  # MiB
CLASSES_MEMORY = 512  # MiB, where a model is to have 2,000 classes
SMALL_DISK, LARGE_DISK = 60, 4000  # MiB
UNDER_WAY = 2 * Limits().queued_bytes // MIB
FACTOR = 1.3
CEILING = 4096  # MiB, at which a server is killed, so that this machine goes on
HANG = 30.0  # seconds for a prediction
PATIENCE = 300.0  # seconds for an answer to an attack
TOKENS_READ = 2.0  # seconds until the server must know a new token
SETTLING = 20.0  # seconds after an attack until memory must have been given back
ALLOCATOR = 64  # MiB that may stay with the process, beside the models
ROOM_AGAIN = 60.0  # seconds after a model was deleted until learning must go on
STEADY, TARGET = "steady", "target"
JSON, JSON_LINES, MODEL_FILE = "application/json", "application/x-ndjson", "application/octet-stream"
BODY = 31 * MIB  # bytes, a little less than a body may have
ONE = {"examples": [{"x": {"a": 1}, "y": "p"}, {"x": {"b": 1}, "y": "q"}]}


class Reply(NamedTuple):
    """An answer, of which only the beginning is kept."""

    status: int
    size: int
    start: bytes

    def json(self) -> Any:
        """Return the body as JSON, if all of it was kept."""
        return json.loads(self.start)


class Request(NamedTuple):
    """What a client sends."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    key: str | None = None


def learn(examples: Any, name: str = TARGET, key: str | None = None) -> Request:
    """Return a request to learn from examples; bytes go as they are."""
    body = examples if isinstance(examples, bytes) else json.dumps({"examples": examples}).encode()
    return Request("POST", f"/models/{name}/learn", body, key=key)


def predict(examples: Any, name: str = TARGET, **options: Any) -> Request:
    """Return a request to predict examples; bytes go as they are."""
    body = examples if isinstance(examples, bytes) else json.dumps({"examples": examples, **options}).encode()
    return Request("POST", f"/models/{name}/predict", body)


class Target:
    """The server that is attacked.

    Parameters
    ----------
    server : Server
        The server.
    """

    def __init__(self, server: Server):
        self.server, self.port = server, server.port
        self.token: str | None = None
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []
        self._lock = threading.Lock()

    def send(self, request: Request) -> Reply:
        """Send a request and read the whole answer; 0 is the status where there is none."""
        headers = {"Content-Type": request.content_type} if request.body is not None else {}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        reply = Reply(0, 0, b"")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request(request.method, request.path, request.body, headers)
            answer = connection.getresponse()
            start = answer.read(4 * MIB)
            size = len(start) + sum(map(len, iter(lambda: answer.read(MIB), b"")))
            reply = Reply(answer.status, size, start)
        with self._lock:
            self.statuses[reply.status] += 1
            if reply.status == 500:
                self.problems.append(f"500 for {request.method} {request.path}: {reply.start[:300]!r}")
        return reply

    def must(self, request: Request) -> Reply:
        """Send a request whose answer must be good."""
        reply = self.send(request)
        if not 200 <= reply.status < 300:
            self.problems.append(f"{request.method} {request.path}: {reply.status} {reply.start[:300]!r}")
        return reply

    def create(self, name: str = TARGET, **settings: Any) -> None:
        """Create a model."""
        self.must(Request("PUT", f"/models/{name}", json.dumps(settings).encode()))

    def together(self, requests: Iterable[Request], clients: int = 8) -> None:
        """Send requests, so many at once."""
        waiting, lock = iter(requests), threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    request = next(waiting, None)
                if request is None:
                    return
                self.send(request)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


Run = Callable[[Target], None]


class Attack(NamedTuple):
    """An attack, and what may be used while it is made."""

    name: str
    words: str
    run: Run
    models: int  # that it may fill with what it sends
    disk: int  # MiB that the folder may take
    scope: str | None  # of the token that all clients have, if there are tokens
    memory: int  # MiB that a model may take


ATTACKS: list[Attack] = []


def attack(
    models: int = 1, disk: int = LARGE_DISK, scope: str | None = None, memory: int = MODEL_MEMORY
) -> Callable[[Run], Run]:
    """Note a function as an attack."""

    def note(function: Run) -> Run:
        words = (function.__doc__ or "").rstrip(".")
        ATTACKS.append(Attack(function.__name__, words, function, models, disk, scope, memory))
        return function

    return note


# On the memory of models


@attack()
def long_names(target: Target) -> None:
    """Forty names of features of 31 MB each are learned."""
    target.create()
    for number in range(40):
        target.send(learn([{"x": {f"{number}-" + "n" * BODY: 1}, "y": "pq"[number % 2]}]))


@attack(models=2)
def one_commit(target: Target) -> None:
    """Labels times names: forty parts of a request of JSON lines, and forty requests, each of which would fit alone."""

    def part(number: int) -> list[dict[str, Any]]:
        names = dict.fromkeys((f"{number}-{place}" for place in range(8000)), 1)
        labels = [{"x": {"a": 1}, "y": f"{number}-{label}"} for label in range(120)]
        return [{"x": names, "y": "p"}, *labels, *[{"x": {"a": 1}, "y": "p"}] * 879]

    target.create()
    target.create("busy")
    row = {f"name-{place}": 1 for place in range(500)}
    target.must(learn([{"x": row, "y": "0"}, {"x": {"a": 1}, "y": "p"}], "busy"))
    target.must(learn([{"x": {"a": 1}, "y": "p"}]))
    slow = learn([{"x": row, "y": f"{n % 20}"} for n in range(2000)], "busy")  # while it is learned, others wait
    lines = b"".join(json.dumps(example).encode() + b"\n" for number in range(40) for example in part(number))
    requests = [learn(part(number)) for number in range(40, 80)]
    whole = Request("POST", f"/models/{TARGET}/learn", lines, JSON_LINES)
    target.together([slow, slow, whole, slow, slow, *requests], clients=45)


@attack()
def one_request(target: Target) -> None:
    """Labels times names: 5,000 new labels, then 100,000 new names, in one request each, and twenty times both."""
    target.create()
    labels = [{"x": {"a": 1}, "y": f"label-{place}"} for place in range(5000)]
    target.send(learn(labels))
    for number in range(20):
        names = {f"{number}-{place}": 1 for place in range(100_000)}
        target.send(learn([{"x": names, "y": "label-0"}, *labels[:5]]))


@attack()
def long_labels(target: Target) -> None:
    """9,000 labels of 1,000 characters, all wrong, and the lists of them asked for."""
    target.create()
    for start in range(0, 9000, 1000):
        target.send(learn([{"x": {"a": 1}, "y": f"{start + place}-".ljust(1000, "l")} for place in range(1000)]))
    paths = ("/models", f"/models/{TARGET}", f"/models/{TARGET}/history?labels=true", f"/models/{TARGET}/weights?top=10000")
    target.together([Request("GET", path) for path in paths] * 8)


@attack(models=3)
def huge_buckets(target: Target) -> None:
    """Learners that hash names into up to 2^31 buckets, with many classes, as many as are allowed."""
    learners = ("OnlinePerceptron", "Perceptron", "AROW", "SecondOrderPerceptron")
    for number, (learner, bits) in enumerate(itertools.product(learners, (31, 27, 24, 20))):
        name = f"{TARGET}-{number}"
        settings = {"learner": learner, "hashing": 1 << bits, "classes": [f"c{place}" for place in range(50)]}
        for body in (settings, {name: value for name, value in settings.items() if name != "classes"}):
            if target.send(Request("PUT", f"/models/{name}", json.dumps(body).encode())).status < 300:
                target.send(learn([{"x": {"a": 1}, "y": f"c{place}"} for place in range(50)], name))
        target.send(Request("DELETE", f"/models/{name}"))


@attack()
def long_history(target: Target) -> None:
    """Wrong examples with 2,000 names of 7,000 characters each, which a history would keep."""
    target.create()
    for number in range(40):
        row = {f"{number}-{place}-".ljust(7000, "h"): "text" * 100 for place in range(2000)}
        target.send(learn([{"x": row, "y": f"label-{number}"}]))
        target.send(Request("GET", f"/models/{TARGET}/history"))


@attack()
def many_states(target: Target) -> None:
    """A model of almost its limit, earlier states of which are asked for and set back to, many at once."""
    target.create()
    for number in range(20):
        target.send(learn([{"x": {f"{number}-{place}": 1 for place in range(20_000)}, "y": "pqr"[number % 3]}]))
    kinds = ("", "/file", "/weights", "/history")
    target.together(
        (Request("GET", f"/models/{TARGET}{kind}?at={at}") for at in range(2, 20) for kind in kinds), clients=16
    )
    for at in range(2, 20):
        target.send(Request("POST", f"/models/{TARGET}/set-back", json.dumps({"to": at}).encode()))


@attack(models=20)
def many_models(target: Target) -> None:
    """Model files of up to 30 MB are uploaded as twenty models, and each learns."""
    target.create()
    for number in range(5):
        target.send(learn([{"x": {f"{number}-{place}": 1 for place in range(40_000)}, "y": "pqr"[number % 3]}]))
    with closing(Connection(target.port, timeout=PATIENCE)) as connection:
        content = connection.request("GET", f"/models/{TARGET}/file").body
    target.together((Request("PUT", f"/models/{TARGET}-{n}", content, MODEL_FILE) for n in range(20)), clients=8)
    target.together(learn([{"x": {"a": 1}, "y": "s"}], f"{TARGET}-{n}") for n in range(20))


# On the memory of requests and answers


def _many_classes(target: Target, classes: int) -> None:
    target.create()
    target.must(learn([{"x": {"a": 1, "b": 1}, "y": f"label-{place}"} for place in range(classes)]))


@attack(memory=CLASSES_MEMORY)
def many_scores(target: Target) -> None:
    """1.4 MB of lines to predict, with the scores of 2,000 classes each."""
    _many_classes(target, 2000)
    for _ in range(2):
        target.send(Request("POST", f"/models/{TARGET}/predict", b'{"x":{"a":1}}\n' * 100_000, JSON_LINES))


@attack(memory=CLASSES_MEMORY)
def many_scores_together(target: Target) -> None:
    """16 clients at once ask for 500 × 2,000 scores, 37 MB of JSON each."""
    _many_classes(target, 2000)
    target.together([predict([{"x": {"a": 1}}] * 500)] * 32, clients=16)


@attack()
def many_contributions(target: Target) -> None:
    """Rows of 100,000 features are explained, sixteen in a request, and eight requests at once."""
    target.create()
    row = {f"feature-{place}": 1 for place in range(100_000)}
    target.send(learn([{"x": row, "y": "p"}, {"x": {"b": 1}, "y": "q"}]))
    target.together([predict([{"x": row}] * 12, explain=100_000)] * 8)


@attack()
def values_of_json(target: Target) -> None:
    """Bodies of 31 MB that are many times as much when they are parsed, eight at once."""
    target.create()
    texts = (
        b'{"examples":[' + b"{}," * (BODY // 3) + b"{}]}",
        b'{"examples":[{"x":[' + b"1," * (BODY // 2 - 50) + b'1],"y":"p"}]}',
        b'{"examples":[' + b"[]," * (BODY // 3) + b"[]]}",
        b'{"examples":' + b"[" * BODY,
        b'{"examples":[{"x":{' + b",".join(b'"%x":1' % place for place in range(2_500_000)) + b'},"y":"p"}]}',
        b'{"examples":[{"x":{"a":1.' + b"1" * (BODY - 100) + b'},"y":"p"}]}',
        b'{"examples":[{"x":{"a":"' + b"t" * (BODY - 100) + b'"},"y":"p"}]}',
        b'{"examples":[{"x":{"a":1},"y":"' + b"\\u00e9" * (BODY // 6 - 50) + b'"}]}',
    )
    target.together((kind(text) for text in texts for kind in (learn, predict)), clients=8)


@attack()
def giant_lines(target: Target) -> None:
    """JSON lines of 31 MB, one line or a million, eight at once."""
    target.create()
    bodies = (
        b'{"x":{"' + b"n" * BODY + b'":1},"y":"p"}\n',
        b'{"x":{"a":1},"y":"p"}\n' * (BODY // 22),
        b"{}\n" * (BODY // 3),
        b"\n" * BODY,
    )
    requests = [Request("POST", f"/models/{TARGET}/{route}", body, JSON_LINES)
                for body in bodies for route in ("learn", "predict")]  # fmt: skip
    target.together(requests)


@attack()
def long_texts(target: Target) -> None:
    """Texts of a million characters, whose runs of five words are features, ten in a request."""
    target.create(text={"words": 5})
    for number in range(6):
        words = (f"{(number * 333_333 + place) % 1_000_000:x}" for place in range(180_000))
        text = " ".join(words)[:1_000_000]
        target.send(learn([{"text": text, "y": f"label-{number}"}] * 10))
        target.send(predict([{"text": text}] * 10))


@attack()
def many_keys(target: Target) -> None:
    """20,000 idempotency keys of 200 characters, each with an example that is wrong."""
    target.create()
    target.together(
        (learn([{"x": {"a": 1}, "y": "pq"[n % 2]}], key=f"{n}-".ljust(200, "k")) for n in range(20_000)), clients=32
    )


@attack()
def many_weights(target: Target) -> None:
    """The weights of a hundred labels, as dictionaries of names, eight times at once."""
    target.create()
    names = {f"name-{place}": 1 for place in range(12_000)}
    for start in range(0, 100, 10):
        target.send(learn([{"x": names, "y": f"label-{start + place}"} for place in range(10)]))
    target.together([Request("GET", f"/models/{TARGET}/weights?top=10000")] * 16)


@attack()
def deaf_listeners(target: Target) -> None:
    """Forty listeners to events read nothing while the models change."""
    target.create()
    _hold(target, 40, b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", lambda: target.together(
        [learn([{"x": {"a": 1}, "y": f"label-{n % 500}"}]) for n in range(5000)]))  # fmt: skip


@attack()
def deaf_readers(target: Target) -> None:
    """Sixty clients ask for a file of 15 MB and for 20 MB of predictions, and read nothing."""
    target.create()
    for number in range(12):
        row = {f"{number}-{place}": 1 for place in range(20_000)}
        target.send(learn([{"x": row, "y": f"label-{number % 6}"}]))
    body = b'{"x":{"a":1}}\n' * 90_000
    head = f"POST /models/{TARGET}/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON_LINES}\r\n"
    asked = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    file = f"GET /models/{TARGET}/file HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    _hold(target, 30, file, lambda: _hold(target, 30, asked, lambda: time.sleep(5)))


@attack()
def unfinished_bodies(target: Target) -> None:
    """300 clients send 2 MB of a body of 31 MB each, and no more."""
    target.create()
    head = f"POST /models/{TARGET}/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\n"
    sent = f"{head}Content-Length: {BODY}\r\n\r\n".encode() + b" " * (2 * MIB)
    _hold(target, 300, sent, lambda: time.sleep(3))


def _hold(target: Target, clients: int, sent: bytes, meanwhile: Callable[[], object]) -> None:
    """Let clients send something and read nothing, as long as something else takes."""
    held = []
    for _ in range(clients):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(5)
        with suppress(OSError):
            connection.connect(("127.0.0.1", target.port))
            connection.sendall(sent)
        held.append(connection)
    meanwhile()
    for connection in held:
        connection.close()


@attack(models=3)
def imported_lines(target: Target) -> None:
    """Logs of 200 MB are imported: one entry of that size, one of many rows, and many entries, two at once."""
    create = b'{"seq":1,"time":1,"create":{"learner":"OnlinePerceptron","parameters":{}}}\n'
    row = b'{"x":{"a":1},"y":"p"}'
    logs = (
        create + b'{"seq":2,"time":2,"learn":[{"x":{"' + b"n" * (200 * MIB) + b'":1},"y":"p"}]}\n',
        create + b'{"seq":2,"time":2,"learn":[' + (row + b",") * (60 * MIB // 22) + row + b"]}\n",
        create + b'{"seq":2,"time":2,"learn":[' + b"{}," * (60 * MIB // 3) + row + b"]}\n",
    )
    requests = [Request("POST", f"/models/import-{n}/log", log, JSON_LINES) for n, log in enumerate(logs)]
    target.together(requests, clients=2)


# On the disk


@attack(disk=SMALL_DISK, scope="predict")
def stored_predictions(target: Target) -> None:
    """300 MB of rows are predicted and stored, by a client that may predict only."""
    for number in range(100):
        target.send(predict([{"x": {f"{number}-" + "n" * 1000: 1}} for _ in range(3000)], STEADY))


@attack(disk=SMALL_DISK)
def learned_rows(target: Target) -> None:
    """Rows are learned past the limit of the disk; then the model is deleted, and learning has to go on."""
    target.create()
    rows = [{"x": {f"name-{place}": 1 for place in range(1000)}, "y": "pq"[n % 2]} for n in range(200)]
    replies = [target.send(learn(rows)).status for _ in range(30)]
    if 507 not in replies:
        target.problems.append(f"nothing was answered with 507, but {Counter(replies)}")
    before = folder_bytes(target.server)
    target.must(Request("DELETE", f"/models/{TARGET}"))
    began = time.monotonic()
    while target.send(learn(ONE["examples"], STEADY)).status != 200:
        if time.monotonic() - began > ROOM_AGAIN:
            target.problems.append(f"no learning {ROOM_AGAIN:g} s after a model was deleted")
            break
        time.sleep(0.5)
    took = time.monotonic() - began
    while folder_bytes(target.server) > before / 2 and time.monotonic() - began < ROOM_AGAIN:
        time.sleep(0.5)
    after = folder_bytes(target.server)
    print(f"    learning went on after {took:.1f} s; the folder went from {before >> 20} to {after >> 20} MiB")
    if after > before / 2:
        target.problems.append(f"the folder had {before >> 20} MiB before a model was deleted, and {after >> 20} after it")
    target.create()
    target.must(learn(rows))


@attack(disk=SMALL_DISK)
def refused_requests(target: Target) -> None:
    """Requests that are refused, for one reason after the other, each with rows that take 8 MB of memory."""
    target.create()
    rows: list[dict[str, Any]] = [{"x": {f"name-{place}": 1 for place in range(1000)}, "y": "p"} for _ in range(200)]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    requests = (
        learn([*rows, {"x": {"a": 1}, "y": None}]),
        learn([*rows, {"id": "00000000-1.0", "y": "p"}]),
        predict([*[{"x": row["x"]} for row in rows], {"x": {"a": None}}]),
        predict([{"x": row["x"]} for row in rows], at=-1),
        Request("POST", f"/models/{TARGET}/learn", lines + b"{}\n", JSON_LINES),
        learn(rows, "nowhere"),
        learn(rows, key="k" * 300),
    )
    for request in requests:
        for _ in range(60):
            target.send(request)
    for _ in range(160):  # until the folder is full, and then for that reason
        target.send(learn(rows))


@attack(disk=SMALL_DISK)
def full_folder(target: Target) -> None:
    """Imports, uploads, set-backs, keys and new models, when the folder is almost full and when it is full."""
    target.create()
    rows = [{"x": {f"name-{place}": 1 for place in range(1000)}, "y": "pq"[n % 2]} for n in range(100)]
    target.send(learn(rows))
    with closing(Connection(target.port, timeout=PATIENCE)) as connection:
        log = connection.request("GET", f"/models/{TARGET}/log").body
        file = connection.request("GET", f"/models/{TARGET}/file").body
    create, entry = log.splitlines()[:2]
    long = b"\n".join([create, *(entry.replace(b'"seq":2', b'"seq":%d' % seq) for seq in range(2, 40))]) + b"\n"
    for number in range(60):
        target.send(learn(rows[:50], key=f"{number}"))
        target.send(Request("PUT", f"/models/file-{number}", file, MODEL_FILE))
        target.send(Request("POST", f"/models/{TARGET}/set-back", b'{"to":2}'))
    target.together((Request("POST", f"/models/log-{n}/log", long, JSON_LINES) for n in range(8)), clients=4)


# What is watched


def status_of(server: Server, field: str) -> int:
    """Return a field of /proc/PID/status in MiB."""
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.partition(f"{field}:")[2].split()[0]) >> 10


def folder_bytes(server: Server) -> int:
    """Return the bytes of all files of a server's folder, with those that it has open and that have no name any more."""
    assert server.process is not None
    total = 0
    for path in server.folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    for file in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            name = str(file.readlink())
            if name.startswith(str(server.folder)) and name.endswith("(deleted)"):
                total += file.stat().st_size
    return total


class Watch(threading.Thread):
    """Looks at memory and folder of a server, and kills it at the ceiling."""

    def __init__(self, server: Server):
        super().__init__(daemon=True)
        self.server, self.stopped = server, threading.Event()
        assert server.process is not None
        Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # VmHWM begins anew
        self.baseline = status_of(server, "VmRSS")
        self.memory = self.disk = 0  # MiB, the most
        self.killed = False

    def run(self) -> None:
        """Look until it is stopped, or the server is gone."""
        for look in itertools.count():
            with suppress(OSError, IndexError):  # a process that has ended has no memory
                self.memory = max(self.memory, status_of(self.server, "VmHWM") - self.baseline)
                if look % 10 == 0:
                    self.disk = max(self.disk, folder_bytes(self.server) >> 20)
            if self.memory > CEILING and not self.killed:
                self.killed = True
                assert self.server.process is not None
                self.server.process.kill()
            if self.stopped.wait(0.02):
                return


class Predictor(threading.Thread):
    """Predicts with a model that is not attacked, all the time."""

    def __init__(self, port: int, token: str | None):
        super().__init__(daemon=True)
        self.port, self.token, self.stopped = port, token, threading.Event()
        self.done, self.slowest = 0, 0.0
        self.failures: Counter[str] = Counter()

    def run(self) -> None:
        """Predict until it is stopped."""
        body = {"examples": [{"x": {"a": 1}}], "store": False}
        with closing(Connection(self.port, self.token, timeout=HANG)) as connection:
            while not self.stopped.wait(0.02):
                began = time.monotonic()
                try:
                    status = connection.request("POST", f"/models/{STEADY}/predict", body).status
                    self.failures.update([str(status)] if status != 200 else [])
                except (OSError, http.client.HTTPException) as error:
                    self.failures[type(error).__name__] += 1
                self.done += 1
                self.slowest = max(self.slowest, time.monotonic() - began)


class Result(NamedTuple):
    """What came of an attack."""

    attack: Attack
    limit: int  # MiB
    peak: int
    kept: int  # MiB of memory after it
    disk: int
    predictor: Predictor
    statuses: Counter[int]
    problems: list[str]

    @property
    def rows(self) -> Iterator[str]:
        """The lines of the table: memory, and the folder where it has a small limit."""
        done, failed, slowest = self.predictor.done, self.predictor.failures.total(), self.predictor.slowest
        verdict = "holds" if not self.problems else "FALLS"
        end = f" {done:>9,} {failed:>6,} {slowest:>7.2f}  {verdict}"
        yield (f"{self.attack.name:22} memory {self.limit:>6,} {self.peak:>6,} {self.peak / self.limit:>6.2f} "
               f"{self.kept:>6,}{end}")  # fmt: skip
        if self.attack.disk == SMALL_DISK:
            yield f"{'':22} folder {SMALL_DISK:>6,} {self.disk:>6,} {self.disk / SMALL_DISK:>6.2f}"


HEAD = (f"{'attack':22} {'what':6} {'limit':>6} {'peak':>6} {'ratio':>6} {'kept':>6} "
        f"{'predicted':>9} {'failed':>6} {'slowest':>7}  verdict")  # fmt: skip


def add_token(folder: Path, scope: str) -> str:
    """Add a token to a folder and return it."""
    command = [sys.executable, "-m", "rosenblatt", "token", "add", str(folder), "--scope", scope, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)["token"]


def settle(server: Server, baseline: int, most: int) -> int:
    """Return the MiB that a server holds above the baseline when they are no more than `most`, or when its time is over."""
    ends = time.monotonic() + SETTLING
    while True:
        try:
            kept = status_of(server, "VmRSS") - baseline
        except (OSError, IndexError):  # it has ended
            return 0
        if kept <= most or time.monotonic() > ends:
            return kept
        time.sleep(0.2)


def perform(attack: Attack, place: Path) -> Result:
    """Make an attack on a server of its own; return what came of it."""
    folder = place / attack.name
    folder.mkdir()
    options = ("--max-model-memory", str(attack.memory), "--max-disk", str(attack.disk), "--min-free-disk", "0")
    with Server(folder, *options).start() as server:
        target = Target(server)
        target.create(STEADY)
        target.must(learn(ONE["examples"], STEADY))
        for _ in range(20):
            target.must(predict([{"x": {"a": 1}}], STEADY))
        if attack.scope is not None:
            target.token = add_token(folder, attack.scope)
        time.sleep(TOKENS_READ)
        target.statuses.clear()
        watch, predictor = Watch(server), Predictor(server.port, target.token)
        watch.start()
        predictor.start()
        attack.run(target)
        kept = settle(server, watch.baseline, int(FACTOR * (attack.models * attack.memory + ALLOCATOR)))
        predictor.stopped.set()
        predictor.join(2 * HANG)
        watch.stopped.set()
        watch.join()

        # What has to be true.
        problems = target.problems[:5]
        limit = attack.models * attack.memory + UNDER_WAY
        assert server.process is not None
        if watch.killed:
            problems.insert(0, f"the server was killed when it had {CEILING:,} MiB")
        elif server.process.poll() is not None:
            problems.insert(0, f"the server ended with {server.process.returncode}: {server.said()[-1000:].decode()}")
        else:
            if attack.disk == LARGE_DISK:
                target.must(learn(ONE["examples"], STEADY))
                problems = target.problems[:5]
        if kept > FACTOR * (attack.models * attack.memory + ALLOCATOR):
            problems.append(f"memory: {kept:,} MiB are still held {SETTLING:g} s after the attack")
        if watch.memory > FACTOR * limit:
            problems.append(f"memory: {watch.memory:,} MiB, {watch.memory / limit:.2f} of the limit")
        if watch.disk > FACTOR * attack.disk:
            problems.append(f"folder: {watch.disk:,} MiB, {watch.disk / attack.disk:.2f} of the limit")
        if predictor.failures:
            problems.append(f"predictions failed: {dict(predictor.failures)}")
        if b"Traceback" in server.said():
            problems.append(f"a traceback: {server.said()[-1500:].decode()}")
    return Result(attack, limit, watch.memory, kept, watch.disk, predictor, target.statuses, problems)


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--only", action="append", default=[], metavar="NAME", help="make this attack; repeatable")
    options.add_argument("--list", action="store_true", help="name the attacks")
    given = options.parse_args()
    if given.list:
        for one in ATTACKS:
            print(f"{one.name:22} {one.words}")
        return 0
    place = Path(tempfile.mkdtemp(prefix="rosenblatt-limits-"))
    results = []
    for one in ATTACKS:
        if given.only and one.name not in given.only:
            continue
        print(f"{one.name}: {one.words}", flush=True)
        began = time.monotonic()
        results.append(perform(one, place))
        statuses = ", ".join(f"{n:,} × {status or 'no answer'}" for status, n in sorted(results[-1].statuses.items()))
        print(f"    {time.monotonic() - began:.0f} s; {statuses}", *results[-1].problems, sep="\n    ", flush=True)
    print(f"\nMiB; memory is above that of the idle server; its limit is {MODEL_MEMORY} for each model attacked "
          f"({CLASSES_MEMORY} for those with many scores) and {UNDER_WAY} for requests and answers\n{HEAD}")  # fmt: skip
    for result in results:
        print(*result.rows, sep="\n")
    return 1 if any(result.problems for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
