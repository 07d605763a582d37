"""Whatever a client sends, the server answers or closes the connection within ten seconds; it never answers 500, it learns
nothing from what it refuses, and its memory stays bounded.

    make fuzz-server                                  # 100,000 requests, and 10,000 whose clients leave
    python -m bench.serve_fuzz --times 2000 --seed 1

Nine in ten requests are bytes over a socket: valid requests changed at random, bodies with values of other types and with
numbers, names and nesting that no parser likes, heads that are not HTTP, lengths and chunks that lie, paths that try to
leave, requests that stop in the middle. The others are made by schemathesis from /openapi.json, valid and invalid ones;
each operation must be answered well at least once, or its schema says too little. A request that goes wrong is kept.
Before these come clients that leave (`bench.leavers`), one for every ten of them, and then some that leave the lab.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import select
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.fuzz import GOLDEN, change, change_model, change_value
from bench.leavers import leave_lab, leave_server
from bench.serve_kill import file_of
from bench.server import Server
from rosenblatt.serve import replay

HANG = 10.0  # seconds for an answer or a close
PATIENCE = 0.3  # seconds for an answer to what may not be a whole request, before the client says that no more comes
BLOCK = 500  # requests between two looks at the server
THREADS = 12
MEMORY = 600 << 20  # bytes that the server may have more than at the start
ALLOWED = {503, 507}  # above 499
MODEL, OTHER, SCRATCH = "steady", "neighbour", "scratch"
CREATE = {"learner": "OnlinePerceptron", "parameters": {}}
LEARN = {"examples": [{"x": {"a": 1}, "y": "p"}, {"x": {"b": 1}, "y": "q"}]}
BODIES: list[tuple[str, str, Any]] = [
    ("POST", f"/models/{MODEL}/learn", {"examples": [{"x": {"a": 1, "b": 2.5}, "y": "p",
    "w": 1.0}, {"x": {"c": 1}, "y": "q"}]}),
    ("POST", f"/models/{MODEL}/learn", {"examples": [{"x": [1, 2, 3], "y": 1}, {"x": {"color": "red"}, "y": True}]}),
    ("POST", f"/models/{MODEL}/learn", {"examples": [{"id": "ID", "y": "p"}]}),
    ("POST", f"/models/{SCRATCH}/learn", {"examples": [{"text": "win a prize", "y": "p"}]}),
    ("POST", f"/models/{MODEL}/predict", {"examples": [{"x": {"a": 1}}], "top": 2, "explain": 3, "store": True}),
    ("POST", f"/models/{MODEL}/predict", {"examples": [{"x": [1.5, 2]}, {"text": "see you"}], "store": False}),
    ("POST", f"/models/{SCRATCH}/set-back", {"to": 1}),
    ("PUT", f"/models/{SCRATCH}", {"learner": "OnlinePerceptron", "parameters": {"keep": "average"}, "hashing": 64,
                                   "classes": None, "text": None}),
    ("PUT", f"/models/{SCRATCH}", {"learner": "Perceptron", "parameters": {"rule": "perceptron"}, "hashing": 64,
                                   "classes": ["p", "q"]}),
]  # fmt: skip
LOG = b'{"seq":1,"time":1,"create":{"learner":"OnlinePerceptron","parameters":{}}}\n' \
      b'{"seq":2,"time":2,"key":"k","learn":[{"x":{"a":1},"y":"p"},{"x":{"b":1},"y":"q"}]}\n' \
      b'{"seq":3,"time":3,"set_back":{"to":1}}\n'  # fmt: skip
NDJSON = b'{"x":{"a":1},"y":"p"}\n{"x":{"b":1},"y":"q","w":2}\n'
VALUES = [
    "NaN", "-Infinity", "1e999", "-1e999", "1e-400", "9" * 400, "9" * 1_000_000, "-" + "9" * 5000, "0." + "1" * 100_000,
    "[" * 100_000, "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000, '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"',
    '"' + "x" * 300_000 + '"', '""', "null", "true", "false", "[]", "{}", "0", "-0.0", "1.5", "18446744073709551616",
    '{"__proto__": 1}', '{"a": 1, "a": 2}', '[[1]]', '{"": 1}', '"\\u202e"', '{"a": null}', '{"a": {"b": 1}}', '"1"',
    "01",
    "+1", ".5", "0x10", "'a'", "1e5", "-1", "[1,]", '"\x01"', '{"a" 1}', "// x", "nul", "\ufeff1", "1 1",
    '["a", 1, true, null, 1.0]',
]  # fmt: skip
HEADS = [
    b"\r\n\r\n", b"\0" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n",
    b"GET  /  HTTP/1.1\r\nHost: localhost\r\n\r\n", b"G\xffT / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://elsewhere/models HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\nHost: localhost\n\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 20_000 + b"\r\n", b"A" * 300_000,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xff\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YTpi\r\nCookie: " + b"a=b; " * 1000 + b"\r\n\r\n",
    b"GET /models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nHTTP2-Settings: AAA\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip;q=x\r\nRange: bytes=-1,5-,a\r\nIf-None-Match: \"\r\n\r\n",
]  # fmt: skip
LENGTHS = [
    b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: 99999999999999999999999",
    b"Content-Length: 10000000000",
    b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 0", b"Content-Length: +7", b"Content-Length: 0x10",
    b"Content-Length:", b"Content-Length: 7, 7", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Transfer-Encoding:\x0bchunked", b"X-Nothing: 1",
    b"Expect: 100-continue\r\nContent-Length: 4", b"Expect: 200-never\r\nContent-Length: 4", b"Content-Encoding: gzip",
]  # fmt: skip
CHUNKS = [
    b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\nx", b"fffffffffffffffff\r\nx", b"-1\r\nx\r\n",
    b"5\r\nhelloXX0\r\n\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n", b"5;ext=" + b"a" * 100_000 + b"\r\nhello\r\n0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n",
    b"\r\n", b"zz\r\n",
    b"1\r\n{\r\n" * 3000 + b"0\r\n\r\n", b"5\nhello\n0\n\n", b"2\r\n{}\r\n0\r\n" + b"T: x\r\n" * 20_000 + b"\r\n",
]  # fmt: skip
NAMES = [
    "..", ".", "../..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%2f..%2fetc%2fpasswd", "%00", "a%00b", "%ff",
    "%c0%ae",
    "a" * 65, "a" * 5000, "-a", "_", "a b", "a%20b", "é", "%", "%zz", "CON", "a/b", "a\\b", ";", "a;b=c", "*", "{name}",
    "%7Bname%7D",
    "'; DROP TABLE log;--", '"', "<script>", "~root", "$HOME", "`id`", "tokens.json", "log.sqlite", OTHER, MODEL, SCRATCH,
]  # fmt: skip
ROUTES = [
    ("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/learn"), ("POST", "/predict"), ("GET", "/history"), ("GET",
    "/weights"),
    ("POST", "/set-back"), ("GET", "/file"), ("GET", "/log"), ("POST", "/log"), ("PATCH", "/learn"), ("GET", "/learn"),
    ("HEAD", ""), ("POST", "/elsewhere"), ("GET", "/"), ("GET", "//"), ("DELETE", "/log"), ("OPTIONS", "/learn"),
]  # fmt: skip
QUERIES = [
    "", "?", "?at=1", "?at=0", "?at=-1", "?at=99999999999999999999", "?at=1e3", "?at=", "?at=1&at=2", "?at=%00", "?at=a",
    "?at=1.0",
    "?at=9223372036854775808", "?top=0", "?top=-1", "?top=1000000000", "?top=x", "?top=" + "9" * 5000, "?label=p",
    "?label=%ff",
    "?label=", "?label=zzz", "?labels=true", "?labels=maybe", "?from=2&to=1", "?from=-1", "?from=1&to=99999999999999999999",
    "?to=x", "?model=%00", "?" + "a=b&" * 5000, "?%", "?a[]=1", "?at=" + quote("१"), "?at=1_0", "?at=+1", "?at= 1",
]  # fmt: skip
TYPES = [
    "application/json", "application/x-ndjson", "application/octet-stream", "text/plain",
    "application/json; charset=utf-16",
    "application/json;", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "", "APPLICATION/JSON",
    "*/*",
    "application/problem+json", "a" * 5000, "application/json, application/x-ndjson",
]  # fmt: skip


class Case(NamedTuple):
    """Bytes to send over a new connection."""

    kind: str
    content: bytes
    whole: bool = True  # whether they certainly are whole requests, whose answers can be waited for


class Outcome(NamedTuple):
    """What came back."""

    answers: list[tuple[int, bytes]]  # status and body of each
    seconds: float
    problem: str = ""
    unsure: bool = False  # whether the client closed the connection before an answer came


# Requests


def head(method: str, path: str, *lines: bytes) -> bytes:
    """Return the head of a request."""
    first = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode(errors="surrogatepass")
    return first + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def request(method: str, path: str, body: bytes, content_type: str = "application/json", *lines: bytes) -> bytes:
    """Return a request with a body."""
    fields = (b"Content-Type: " + content_type.encode(), b"Content-Length: %d" % len(body))
    return head(method, path, *fields, *lines) + body


def in_chunks(method: str, path: str, body: bytes, draw: random.Random) -> bytes:
    """Return a request whose body comes in chunks."""
    parts = b""
    while body:
        size = draw.choice((1, 2, 10, 1000))
        parts += b"%x\r\n%b\r\n" % (len(body[:size]), body[:size])
        body = body[size:]
    return head(method, path, b"Content-Type: application/json", b"Transfer-Encoding: chunked") + parts + b"0\r\n\r\n"


def body_text(body: Any, draw: random.Random) -> str:
    """Return a body as JSON, with one of its values replaced by a text that may not be JSON."""
    marked = {"body": copy.deepcopy(body)}
    inner, key = marked, "body"
    while inner[key] and isinstance(inner[key], dict | list) and draw.random() < 0.85:
        inner = inner[key]
        key = draw.choice(list(inner)) if isinstance(inner, dict) else draw.randrange(len(inner))
    if draw.random() < 0.2 and isinstance(inner, dict) and inner is not marked:
        inner["@@"] = inner.pop(key)
        name = draw.choice(["x" * 100_000, "\\ud800", "\\u0000", "", "id", "x", "y", "w", "text", "examples", "\x01"])
        return json.dumps(marked["body"]).replace("@@", name)
    inner[key] = "@@"
    return json.dumps(marked["body"]).replace('"@@"', draw.choice(VALUES))


def make(number: int, seed: int, id: str) -> Case:
    """Return the request of a number; `id` is that of a prediction of another model."""
    draw = random.Random(f"{seed} {number}")
    method, path, body = draw.choice(BODIES)
    body = json.loads(json.dumps(body).replace("ID", id))
    kind = draw.choice((
        "values", "values", "values", "texts", "texts", "bytes", "bytes", "heads", "lengths", "chunks", "paths", "paths",
        "cut", "types", "lines", "log", "pipelined", "model", "valid",
    ))  # fmt: skip
    if kind == "values":
        whole = {"body": body}
        for _ in range(draw.randint(1, 3)):
            with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
                change_value(whole, draw)
        content = json.dumps(whole.get("body")).encode()
        if draw.random() < 0.2:
            return Case(kind, in_chunks(method, path, content, draw))
        return Case(kind, request(method, path, content))
    if kind == "texts":
        return Case(kind, request(method, path, body_text(body, draw).encode(errors="surrogatepass")))
    if kind == "bytes":
        return Case(kind, change(request(method, path, json.dumps(body).encode()), draw), whole=False)
    if kind == "heads":
        return Case(kind, draw.choice(HEADS) if draw.random() < 0.7 else change(draw.choice(HEADS), draw), whole=False)
    if kind in ("lengths", "chunks"):
        lie = draw.choice(LENGTHS) if kind == "lengths" else b"Transfer-Encoding: chunked"
        content = json.dumps(body).encode() if kind == "lengths" and draw.random() < 0.7 else draw.choice(CHUNKS)
        return Case(kind, head(method, path, b"Content-Type: application/json", lie) + content, whole=False)
    if kind == "paths":
        method, rest = draw.choice(ROUTES)
        name = draw.choice(NAMES)
        if (method in ("DELETE", "PUT") and name == MODEL) or (method != "GET" and name == OTHER):
            name = SCRATCH
        path = draw.choice(("/models/", "/models/", "/models/", "/page/", "/", "/events/", "//models/")) + name + rest
        path += draw.choice(QUERIES)
        if not path.isascii() or " " in path:
            return Case(kind, head(method, path), whole=False)
        bodies = {"": CREATE, "/learn": BODIES[0][2], "/predict": BODIES[4][2], "/set-back": {"to": 1}}
        content = json.dumps(bodies.get(rest, {})).encode()
        return Case(kind, head(method, path) if method in ("GET", "HEAD", "DELETE") else request(method, path, content))
    if kind == "cut":
        content = request(method, path, json.dumps(body).encode())
        return Case(kind, content[: draw.randrange(len(content))], whole=False)
    if kind == "types":
        return Case(kind, request(method, path, json.dumps(body).encode(), draw.choice(TYPES)), whole=False)
    if kind == "lines":
        path = draw.choice((f"/models/{MODEL}/learn", f"/models/{MODEL}/predict"))
        return Case(kind, request("POST", path, change(NDJSON * draw.randint(1, 3), draw), "application/x-ndjson"))
    if kind == "log":
        content = change(LOG, draw)
        if draw.random() < 0.5:
            entries = [json.loads(line) for line in LOG.splitlines()]
            whole = {"log": entries}
            for _ in range(draw.randint(1, 2)):
                change_value(entries[draw.randrange(len(entries))], draw)
            content = b"".join(json.dumps(entry).encode() + b"\n" for entry in whole["log"])
        return Case(kind, request("POST", f"/models/{SCRATCH}/log", content, "application/x-ndjson"))
    if kind == "pipelined":
        first = request(*BODIES[draw.randrange(2)][:2], json.dumps(body).encode()).replace(b"Connection: close\r\n", b"")
        return Case(kind, first * draw.randint(1, 3) + draw.choice(HEADS), whole=False)
    if kind == "model":
        golden = draw.choice(sorted(GOLDEN.glob("*.model"))).read_bytes()
        content = change_model(golden, draw) if draw.random() < 0.6 else change(golden, draw)
        return Case(kind, request("PUT", f"/models/{SCRATCH}", content, "application/octet-stream"))
    key = b"Idempotency-Key: " + draw.choice([b"a", b"b", b"k" * 5000, b"\xff", b"", b"\xc3\xa9", str(number).encode()])
    return Case(kind, request(method, path, json.dumps(body).encode(), "application/json", key), whole=False)


# Sending them


def split_answers(received: bytes, closed: bool) -> tuple[list[tuple[int, bytes]], bool]:
    """Return the answers in what was received, and whether the last of them is complete."""
    answers: list[tuple[int, bytes]] = []
    while received:
        top, end, rest = received.partition(b"\r\n\r\n")
        if not end or not top.startswith(b"HTTP/1.") or not top[9:12].isdigit():
            return answers, False
        status, fields = int(top[9:12]), top.lower()
        if status < 200:
            received = rest
            continue
        if b"transfer-encoding: chunked" in fields:
            body = b""
            while True:
                size, end, rest = rest.partition(b"\r\n")
                if not end or len(rest) < int(size, 16) + 2:
                    return answers, False
                body, rest, size = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :], size
                if int(size, 16) == 0:
                    break
            answers.append((status, body))
            received = rest
        elif b"content-length:" in fields:
            length = int(fields.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(rest) < length and not closed:
                return answers, False
            answers.append((status, rest[:length]))
            received = rest[length:]
        else:
            answers.append((status, rest))
            return answers, closed or status in (204, 304)
    return answers, True


def send(port: int, case: Case) -> Outcome:
    """Send the bytes and return what came back until the answer was complete or the server closed the connection."""
    began = time.monotonic()
    received, left, closed, ended, sent_at = b"", memoryview(case.content), False, False, began
    with socket.create_connection(("127.0.0.1", port), timeout=HANG) as connection:
        connection.setblocking(False)
        while time.monotonic() - began < HANG and not closed:
            readable, writable, _ = select.select([connection], [connection] if left else [], [], 0.05)
            try:
                if readable:
                    data = connection.recv(1 << 16)
                    received, closed = received + data, not data
                if left and writable:
                    left = left[connection.send(left) :]
                    sent_at = time.monotonic()
            except (ConnectionResetError, BrokenPipeError):
                closed = True
            answers, complete = split_answers(received, closed)
            if answers and complete and not left and case.whole:
                break
            waited = time.monotonic() - sent_at
            if not left and not ended and not case.whole and waited > PATIENCE:
                if answers and complete and waited < 2 * PATIENCE:
                    break
                ended = True
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
    answers, _ = split_answers(received, closed)
    seconds = time.monotonic() - began
    hung = not closed and seconds >= HANG and b"text/event-stream" not in received
    bad = next((status for status, _ in answers if status >= 500 and status not in ALLOWED), None)
    problem = "no answer and no close" if hung else f"answered {bad}" if bad is not None else ""
    return Outcome(answers, seconds, problem, unsure=ended and not answers)


class Report:
    """What came of all requests."""

    def __init__(self, seed: int, folder: Path):
        self.seed, self.folder, self.lock = seed, folder, threading.Lock()
        self.kinds: dict[str, Counter[str]] = {}
        self.slowest = (0.0, "")
        self.failures: list[str] = []
        self.learned: set[int] = set()  # the seq of each answer to a learn request
        self.unsure = 0
        self.read = 0  # bytes of the server's output

    def add(self, number: int, case: Case, outcome: Outcome) -> None:
        """Count a request, and keep it if something went wrong."""
        with self.lock:
            words = {f"{status // 100}xx" for status, _ in outcome.answers} or {"closed"}
            for word in words:
                self.kinds.setdefault(case.kind, Counter())[word] += 1
            self.slowest = max(self.slowest, (outcome.seconds, f"request {number}, {case.kind}"))
            self.unsure += case.content.count(b"/learn HTTP") if case.kind == "pipelined" else outcome.unsure
            for status, body in outcome.answers:
                if status == 200 and b'"learned"' in body and f"/{MODEL}/learn".encode() in case.content:
                    self.learned.add(json.loads(body)["seq"])
            if outcome.problem:
                self.fail(number, case, outcome.problem)

    def fail(self, number: int, case: Case | None, problem: str) -> None:
        """Note that something went wrong."""
        kept = ""
        if case is not None:
            path = self.folder / f"request-{number}"
            path.write_bytes(case.content)
            kept = f", kept as {path}"
        self.failures.append(f"seed {self.seed}, request {number}{kept}: {problem}")
        print(self.failures[-1], flush=True)

    def look_for_tracebacks(self, output: bytes) -> None:
        """Note what the server has written of errors that it did not expect since this was last called."""
        new, self.read = output[self.read :], len(output)
        for text in new.decode(errors="replace").split("Traceback")[1:]:
            self.fail(-1, None, f"the server wrote a traceback: {text[:3000]}")

    def show(self) -> None:
        """Print it."""
        words = ("2xx", "3xx", "4xx", "5xx", "closed")
        print(f"{'':12}" + "".join(f"{word:>9}" for word in words))
        for kind, counts in [*sorted(self.kinds.items()), ("all", sum(self.kinds.values(), Counter()))]:
            print(f"{kind:12}" + "".join(f"{counts[word]:>9,}" for word in words))
        print(f"seed {self.seed}: slowest {self.slowest[0]:.2f} s ({self.slowest[1]}); {len(self.failures)} failures")


def prepare(server: Server) -> str:
    """Create the models and return the id of a prediction of another one; compile what other learners need."""
    connection = server.connect(timeout=600)
    learners = [({"learner": "Perceptron", "hashing": 64}, "application/json")]
    learners += [(path.read_bytes(), "application/octet-stream") for path in sorted(GOLDEN.glob("*.model"))]
    for body, content_type in learners:
        if connection.request("PUT", f"/models/{SCRATCH}", body, Content_Type=content_type).status < 300:
            connection.request("POST", f"/models/{SCRATCH}/learn", LEARN)
            connection.request("POST", f"/models/{SCRATCH}/predict", LEARN)
            connection.ask("DELETE", f"/models/{SCRATCH}")
    for name in (MODEL, OTHER):
        connection.ask("PUT", f"/models/{name}", CREATE)
        connection.ask("POST", f"/models/{name}/learn", LEARN)
    answer = connection.ask("POST", f"/models/{OTHER}/predict", {"examples": [{"x": {"a": 1}}]})
    return answer.json()["predictions"][0]["id"]


def fuzz_bytes(server: Server, report: Report, numbers: range) -> None:
    """Send the requests of these numbers, and look at the server after each block of them."""
    connection = server.connect()
    id = prepare(server)
    memory = server.resident_bytes()
    neighbour = connection.ask("GET", f"/models/{OTHER}/file").body
    for block in range(numbers.start, numbers.stop, BLOCK):
        before = connection.ask("GET", f"/models/{MODEL}").json()["seq"]
        report.learned.clear()
        report.unsure = 0
        waiting = iter(range(block, min(block + BLOCK, numbers.stop)))

        def work(waiting: Any = waiting) -> None:
            for number in waiting:  # of which each thread takes the next
                case = make(number, report.seed, id)
                report.add(number, case, send(server.port, case))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.process is not None
        if server.process.poll() is not None:
            report.fail(block, None, f"the server ended with {server.process.returncode}: {server.said()[-2000:]!r}")
            return
        after = connection.ask("GET", f"/models/{MODEL}").json()["seq"]
        learned = len([seq for seq in report.learned if seq > before])
        if not learned <= after - before <= learned + report.unsure:
            report.fail(block, None, f"{learned} learn requests were answered with 200, but seq rose by {after - before}")
        report.look_for_tracebacks(server.said())
        if (more := server.resident_bytes() - memory) > MEMORY:
            report.fail(block, None, f"the server has {more >> 20} MiB more than at the start")
        with contextlib.suppress(OSError):
            connection.request("DELETE", f"/models/{SCRATCH}")
        print(f"{block + BLOCK} requests, {more >> 20} MiB more memory, seq {after}", flush=True)
    log = connection.ask("GET", f"/models/{MODEL}/log").body
    if connection.ask("GET", f"/models/{MODEL}/file").body != file_of(replay(log.splitlines())):
        report.fail(numbers.stop, None, "the model is not what its log says")
    if connection.ask("GET", f"/models/{OTHER}/file").body != neighbour:
        report.fail(numbers.stop, None, "the neighbour has learned")


# schemathesis


def ask_operation(url: str, report: Report, operation: Any, strategy: Any, times: int) -> Counter[int]:
    """Send requests of an operation and return the statuses of the answers."""
    import hypothesis
    import requests

    counts: Counter[int] = Counter()

    @hypothesis.settings(
        max_examples=times, deadline=None, database=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.seed(report.seed)
    @hypothesis.given(case=strategy)
    def ask(case: Any) -> None:
        try:
            answer = case.call(base_url=url, timeout=HANG)
        except requests.Timeout:
            report.fail(-1, None, f"{operation.label}: no answer within {HANG} s: {case.as_curl_command()[:1000]}")
            return
        status, kind = answer.status_code, answer.headers.get("content-type", [""])[0]
        counts[status] += 1
        if status >= 500 and status not in ALLOWED:
            report.fail(-1, None, f"{operation.label}: answered {status}: {case.as_curl_command()[:1000]}")
        if status >= 400 and case.method != "HEAD" and kind != "application/problem+json":
            report.fail(-1, None, f"{operation.label}: {status} as {kind!r}: {case.as_curl_command()[:1000]}")

    with contextlib.suppress(hypothesis.errors.Unsatisfiable):  # an operation without anything that could be invalid
        ask()
    return counts


def fuzz_schema(server: Server, report: Report, times: int) -> dict[str, Counter[int]]:
    """Send valid and invalid requests that schemathesis makes from /openapi.json; return the statuses of each operation."""
    import schemathesis
    from schemathesis import GenerationMode

    @schemathesis.serializer("application/x-ndjson")
    def lines(context: Any, value: Any) -> bytes:
        return value if isinstance(value, bytes) else str(value).encode(errors="replace")

    url = f"http://127.0.0.1:{server.port}"
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    operations = [operation for operation in operations if operation.path != "/events"]  # its answer does not end
    each = max(times // (2 * len(operations)), 2)
    statuses: dict[str, Counter[int]] = {}
    connection = server.connect()
    for operation in operations:
        counts = statuses[operation.label] = Counter()
        named = any(one.name == "name" for one in operation.path_parameters)
        path = {"path_parameters": {"name": SCRATCH}} if named else {}
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if not (operation.method.upper() == "POST" and operation.path.endswith("/log")):  # which makes it itself
                connection.request("PUT", f"/models/{SCRATCH}", CREATE)
                connection.request("POST", f"/models/{SCRATCH}/learn", LEARN)
            else:
                connection.request("DELETE", f"/models/{SCRATCH}")
            counts.update(ask_operation(url, report, operation, operation.as_strategy(mode, **path), each))
        for strategy in operation.get_strategies_from_examples(**path):
            counts.update(ask_operation(url, report, operation, strategy, 1))
    for label, counts in statuses.items():
        if not any(status < 300 for status in counts):
            report.fail(-1, None, f"{label}: no request was answered well: {dict(counts)}; does its schema say enough?")
    report.look_for_tracebacks(server.said())
    return statuses


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--only", type=int, default=None, metavar="NUMBER", help="send the request of this number alone")
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    place = Path(tempfile.mkdtemp(prefix="rosenblatt-fuzz-server-"))
    (place / "folder").mkdir()
    report = Report(seed, place)
    print(f"seed {seed}, folder {place}", flush=True)
    if given.only is None:
        (place / "left").mkdir()
        left = leave_server(place / "left", given.times // 10, seed, show=True)
        left += leave_lab(place, given.times // 30, seed, show=True)
        for problem in left:
            report.fail(-1, None, problem)
    with Server(place / "folder").start() as server:
        if given.only is not None:
            case = make(given.only, seed, prepare(server))
            print(case.kind, case.content[:2000], send(server.port, case), server.said().decode(), sep="\n")
            return 0
        fuzz_bytes(server, report, range(given.times * 9 // 10))
        for label, counts in fuzz_schema(server, report, given.times // 10).items():
            print(f"{label:40}", dict(sorted(counts.items())))
        if server.stop():
            report.fail(-1, None, f"the server did not end well: {server.said()[-2000:]!r}")
    report.show()
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
