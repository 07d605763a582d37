"""Clients leave at any byte of a request or of its answer, and the server neither dies nor keeps anything of theirs.

    make fuzz-server                                       # with the other attacks
    python -m bench.leavers --times 2000 --seed 1
    python -m bench.leavers --lab                          # the lab's server

A client sends some bytes of a good request, or all of it and reads some bytes of the answer, and leaves: it closes the
connection, resets it, or says that it sends no more. The routes are those of /openapi.json, so that a new one is covered
by itself, and the files of the page; one model has a log of so many entries that its export takes long. Meanwhile others
learn and predict as they should. Afterwards

- the process is alive, and wrote no traceback;
- it has no more open files and threads than before;
- what was acknowledged is in the log, and the model is what its log says;
- `rosenblatt serve --check` is content.

The lab's server has no document and keeps nothing: its routes are those of its guard, and the last two do not apply.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.fuzz import GOLDEN
from bench.serve_kill import file_of, replay
from bench.server import Connection, Lab, Server, check_folder
from rosenblatt.lab.app import RULES

LISTENING = 0.3  # seconds for more of an answer that does not end
LONG_ANSWER = 1 << 16  # bytes
HANG = 30.0  # seconds for an answer, or for a close after the client said that it sends no more
QUIET = 0.3  # seconds without a change of the open sockets
SETTLING = 30.0  # seconds until a server must have let go of all that it held for clients that left
THREADS, BURST = 6, 10  # clients at once, and visits of one route before the next one
LONGEST_PAUSE = 0.02  # seconds before a client leaves
READERS = 2  # threads of the server that open the log for a request
MOST_SHOWN = 20  # failures
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing drops what is unsent and resets the connection
WAYS = ("close", "reset", "half-close")
LONG, TAUGHT, STEADY, SCRATCH = "long", "taught", "steady", "scratch"
LONG_LOG, LONG_ROW = 40, 100_000  # entries, and numbers in each: SQLite reads one for a while
OWN_MODELS = {  # what a route changes is a model that no check looks at
    ("GET", "/models/{name}/log"): LONG,
    ("PUT", "/models/{name}"): SCRATCH,
    ("DELETE", "/models/{name}"): SCRATCH,
    ("POST", "/models/{name}/log"): SCRATCH,
}
TEXTS = {"model": TAUGHT, "label": "spam"}  # values of parameters that are text
JSON_LINES = "application/x-ndjson"


class Route(NamedTuple):
    """A route, and how a good request for it is drawn: its head and its body."""

    label: str
    draw: Callable[[random.Random], tuple[bytes, bytes]]
    ends: bool = True  # whether its answer does


class Departure(NamedTuple):
    """Where a client leaves, and how."""

    part: str  # "head", "body" or "answer"
    bytes: int  # of that part, sent or read before
    way: str
    pause: float  # seconds


class Visit(NamedTuple):
    """What came of a request whose client leaves."""

    left: bool  # before the answer was complete
    status: int | None
    received: int  # bytes of the answer
    hung: bool


# Requests


def request(method: str, path: str, body: bytes | None = None, content_type: str = "") -> tuple[bytes, bytes]:
    """Return the head and the body of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if body is not None:
        lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode(), body or b""


def routes_of(document: dict[str, Any]) -> list[Route]:
    """Return the routes of an OpenAPI document."""
    found = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            found.append(_route(method.upper(), path, operation, document))
    return found


def page_routes(package: str) -> list[Route]:
    """Return the routes of the page of a package."""
    names = [file.name for file in files(package).joinpath("page").iterdir()]
    return [
        Route("GET /", lambda draw: request("GET", "/")),
        Route("GET /page/{file}", lambda draw: request("GET", f"/page/{draw.choice(sorted(names))}")),
    ]


def lab_routes() -> list[Route]:
    """Return the routes of the lab; points that no line separates take a run as long as it may be."""
    few = [[0, 0, -1], [0, 1, -1], [1, 1, 1], [1, 0, 1]]
    many = [[number % 37 / 37, number % 23 / 23, 1 if number % 3 else -1] for number in range(500)]
    long = {"points": many, "epochs": 10_000, "updates": 10_000}
    table = b"x,y,label\n" + b"".join(b"%d,%d,%d\n" % (x, y, sign) for x, y, sign in few * 100)
    bodies = {
        "/run": lambda draw: json.dumps(long if draw.random() < 0.02 else {"points": few}).encode(),
        "/points": lambda draw: table,
    }

    def make(method: str, path: str, content_type: str) -> Route:
        return Route(f"{method} {path}", lambda draw: request(method, path, bodies[path](draw), content_type))

    found = page_routes("rosenblatt.lab")
    for path, methods in RULES.items():
        for method, rule in methods.items():
            kinds = [kind.decode() for kind in rule.limits]
            if kinds:
                found.append(make(method, path, kinds[0]))
            elif path not in ("/", "/page/{name}"):
                found.append(Route(f"{method} {path}", lambda draw, path=path: request("GET", path)))
    return found


def _route(method: str, path: str, operation: dict[str, Any], document: dict[str, Any]) -> Route:
    bodies = operation.get("requestBody", {}).get("content", {})
    queries = [one for one in operation.get("parameters", []) if one["in"] == "query"]

    def draw_request(draw: random.Random) -> tuple[bytes, bytes]:
        name = OWN_MODELS.get((method, path), TAUGHT)
        name = f"{SCRATCH}-{draw.randrange(3)}" if name == SCRATCH else name
        asked = [f"{one['name']}={_value(one, draw)}" for one in queries if draw.random() < 0.3]
        target = path.replace("{name}", name) + ("?" + "&".join(asked) if asked else "")
        if not bodies:
            return request(method, target)
        content_type = draw.choice(sorted(bodies))
        return request(method, target, _body(bodies, content_type, document, draw), content_type)

    answers = operation["responses"].get("200", {}).get("content", {})
    return Route(f"{method} {path}", draw_request, ends="text/event-stream" not in answers)


def _value(parameter: dict[str, Any], draw: random.Random) -> str:
    """Return a value of a parameter, as a part of a URL."""
    schema = parameter["schema"]
    kind = next((one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"), {})
    if kind.get("type") == "integer":
        return str(draw.randint(kind.get("minimum", 0), kind.get("minimum", 0) + 5))
    return draw.choice(("true", "false")) if kind.get("type") == "boolean" else quote(TEXTS.get(parameter["name"], "a"))


def _body(bodies: dict[str, Any], content_type: str, document: dict[str, Any], draw: random.Random) -> bytes:
    """Return a body that the document allows; one of examples has few of them, or many."""
    shape = bodies[content_type]
    if content_type == "application/octet-stream":
        return draw.choice(sorted(GOLDEN.glob("online*.model"))).read_bytes()
    if "example" in shape:
        return shape["example"].encode()
    value = _example(bodies["application/json"]["schema"], document)
    if isinstance(value, dict) and "examples" in value:
        value = value | {"examples": value["examples"] * draw.choice((1, 10, 1000))}
        if content_type == JSON_LINES:
            return b"".join(json.dumps(one).encode() + b"\n" for one in value["examples"])
    return json.dumps(value).encode()


def _example(schema: dict[str, Any], document: dict[str, Any]) -> Any:
    """Return the example of a schema, or one that its types allow."""
    if "$ref" in schema:
        return _example(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if schema.get("examples"):
        return schema["examples"][0]
    if schema.get("type") == "object":
        needed = schema.get("required", [])
        return {name: _example(part, document) for name, part in schema["properties"].items() if name in needed}
    return {"integer": schema.get("minimum", 1), "boolean": True, "array": []}.get(schema.get("type", ""), "a")


# Leaving


def visit(port: int, head: bytes, body: bytes, departure: Departure | None, ends: bool = True) -> Visit:
    """Send a request and leave; without a departure, wait for the answer and close.

    For more of an answer that does not end, nobody waits long.
    """
    content, wanted = head + body, 1 << 40
    if departure is not None and departure.part != "answer":
        content = content[: departure.bytes + len(head) * (departure.part == "body")]
        wanted = 0
    elif departure is not None:
        wanted = departure.bytes
    with socket.create_connection(("127.0.0.1", port), timeout=HANG) as connection:
        answer = _Answer(head.startswith(b"HEAD"))
        hung = False
        try:
            connection.sendall(content)
            connection.settimeout(HANG if ends else LISTENING)
            while answer.size < wanted and not answer.complete:
                data = connection.recv(min(1 << 16, wanted - answer.size))
                if not data:
                    break
                answer.add(data)
        except TimeoutError:
            hung = ends
        except ConnectionError:
            pass  # the server may close what it has refused
        if departure is not None:
            time.sleep(departure.pause)
            hung |= not _leave(connection, departure.way)
        return Visit(departure is not None and not answer.complete, answer.status, answer.size, hung)


def _leave(connection: socket.socket, way: str) -> bool:
    """Leave; return whether the server closed the connection, where the client waits for it."""
    if way == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    if way != "half-close":
        return True
    connection.settimeout(HANG)
    ends = time.monotonic() + HANG
    try:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            if time.monotonic() > ends:
                return False
    except TimeoutError:
        return False
    except OSError:  # the server has closed it before
        pass
    return True


class _Answer:
    """How much of an answer has come."""

    def __init__(self, headless: bool):
        self.size, self.status, self.complete = 0, None, False
        self._start, self._length, self._last = b"", None, b""

    def add(self, data: bytes) -> None:
        """Take what has come."""
        self.size += len(data)
        self._last = (self._last + data)[-5:]
        if self._length is None:
            self._start += data
            head, end, _ = self._start.partition(b"\r\n\r\n")
            if not end:
                return
            self.status = int(head[9:12])
            fields = head.lower()
            if b"content-length:" in fields:
                self._length = len(head) + 4 + int(fields.partition(b"content-length:")[2].partition(b"\r\n")[0])
            else:
                self._length = len(head) + 4 if self.status in (204, 304) else -1
        if self._length >= 0:
            self.complete = self.size >= self._length
        else:
            self.complete = self._last == b"0\r\n\r\n"


# Those who stay


class Client(threading.Thread):
    """Learns and predicts one example after another, each with a feature of its own, and keeps what was acknowledged."""

    def __init__(self, port: int, number: int, pause: float = 0.005):
        super().__init__(daemon=True)
        self.connection, self.number, self.pause = Connection(port, timeout=HANG), number, pause
        self.acknowledged: list[tuple[int, str]] = []
        self.predictions, self.slowest = 0, 0.0
        self.stopped, self.problem = threading.Event(), ""

    def run(self) -> None:
        """Go on until it is told to stop, or something goes wrong."""
        try:
            for place in count():
                if self.stopped.wait(self.pause):
                    break
                began = time.monotonic()
                self._learn(f"client-{self.number}-{place}", place)
                self.slowest = max(self.slowest, time.monotonic() - began)
        except Exception as error:
            self.problem = f"client {self.number}, which stays: {type(error).__name__}: {error}"
        finally:
            self.connection.close()

    def _learn(self, feature: str, place: int) -> None:
        row = {feature: 1, "common": place % 7}
        learned = self.connection.ask(
            "POST", f"/models/{STEADY}/learn", {"examples": [{"x": row, "y": "spam" if place % 3 else "ham"}]}
        )
        self.acknowledged.append((learned.json()["seq"], feature))
        predicted = self.connection.ask("POST", f"/models/{STEADY}/predict", {"examples": [{"x": row}]}).json()
        if predicted["seq"] < self.acknowledged[-1][0]:
            raise AssertionError(f"{feature} was acknowledged as {self.acknowledged[-1]}, but predicted at {predicted}")
        self.predictions += 1


def check_kept(server: Server, clients: Iterable[Client]) -> list[str]:
    """Return what is wrong with the model that clients which stay have taught."""
    connection = server.connect()
    log = connection.ask("GET", f"/models/{STEADY}/log").lines()
    problems = []
    for client in clients:
        for seq, feature in client.acknowledged:
            if seq > len(log) or feature not in log[seq - 1]["learn"][0]["x"]:
                problems.append(f"{feature} was acknowledged as entry {seq}, which the log has not")
    if len(log) != 1 + sum(len(client.acknowledged) for client in clients):
        problems.append(f"the log has {len(log)} entries, more than was acknowledged")
    if connection.ask("GET", f"/models/{STEADY}/file").body != file_of(replay(log)):
        problems.append("the model is not what its log says")
    return problems


# What a process holds


class Held(NamedTuple):
    """What a process has open."""

    files: Counter[str]
    threads: int

    def more_than(self, before: Held) -> str:
        """Return what it has more than before, in words; nothing if it has not."""
        more = self.files - before.files
        files = [f"{number} of {name}" for name, number in more.items() if number > _kept_by_sqlite(name)]
        threads = [f"{self.threads - before.threads} threads"] if self.threads > before.threads else []
        return ", ".join(files + threads)


def _kept_by_sqlite(name: str) -> int:
    """Return how many files of this name SQLite may keep for later connections.

    Closing a file drops all locks that the process has on it, so SQLite keeps it until no connection has one. There are
    as many as were open at once: one for each thread that reads.
    """
    return READERS if name.endswith(".sqlite") else 0


def held_by(process: int) -> Held:
    """Return the files and threads that a process has open."""
    found: Counter[str] = Counter()
    for file in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[os.readlink(file).partition(":[")[0]] += 1
    return Held(found, len(list(Path(f"/proc/{process}/task").iterdir())))


def left_open(process: int, before: Held) -> str:
    """Return what a process still has open, after a time to settle, that it had not before."""
    ends = time.monotonic() + SETTLING
    while (more := held_by(process).more_than(before)) and time.monotonic() < ends:
        time.sleep(0.1)
    return more


# The attack


class Attack:
    """Visits of clients that leave, and what came of them.

    Parameters
    ----------
    server : Server
        The server.
    routes : list of Route
        What they ask for.
    seed : int
        Of what is drawn.
    """

    def __init__(self, server: Server, routes: list[Route], seed: int):
        self.server, self.routes, self.seed = server, routes, seed
        self.lock = threading.Lock()
        self.longest = dict.fromkeys(routes, 1)  # bytes of an answer, as far as is known
        self.parts: dict[str, Counter[str]] = {route.label: Counter() for route in routes}
        self.statuses: Counter[int | None] = Counter()
        self.left = 0
        self.failures: list[str] = []

    def ask_all(self) -> None:
        """Ask for everything once, some at a time, so that whatever the server makes on demand is there."""
        draw = random.Random(self.seed)
        for route in self.routes:
            several = [route.draw(draw) for _ in range(THREADS)]  # of which some ask for the whole answer
            threads = [threading.Thread(target=self._ask, args=(route, *one)) for one in several]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _ask(self, route: Route, head: bytes, body: bytes) -> None:
        self.longest[route] = max(self.longest[route], visit(self.server.port, head, body, None, route.ends).received)

    def run(self, times: int) -> None:
        """Let so many clients leave."""
        numbers = count()
        threads = [threading.Thread(target=self._work, args=(numbers, times), daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, numbers: Iterable[int], times: int) -> None:
        for number in numbers:  # of which each thread takes the next
            if self.left >= times or self.failures or number > 5 * times:
                return
            try:
                self._visit(number)
            except OSError as error:
                with self.lock:
                    self.failures.append(f"seed {self.seed}, visit {number}: {error}; {self.end()}")

    def _visit(self, number: int) -> None:
        draw = random.Random(f"{self.seed} {number}")
        route = self._route(number // BURST)
        head, body = route.draw(draw)
        departure = self._departure(route, head, body, draw)
        found = visit(self.server.port, head, body, departure, route.ends)
        with self.lock:
            self.longest[route] = max(self.longest[route], found.received)
            self.parts[route.label][departure.part if found.left else "whole"] += 1
            self.statuses[found.status] += 1
            self.left += found.left
            if found.hung:
                self.failures.append(f"seed {self.seed}, visit {number}: no end within {HANG} s: {route.label} {departure}")
            elif found.status is not None and found.status >= 500:
                self.failures.append(f"seed {self.seed}, visit {number}: {found.status}: {route.label}")

    def _route(self, burst: int) -> Route:
        """Return the route that clients leave together; every third one has a long answer."""
        routes = self.routes
        if burst % 3 == 0:
            routes = [route for route in self.routes if self.longest[route] > LONG_ANSWER] or routes
        return routes[burst // 3 % len(routes)] if burst % 3 == 0 else routes[(burst - burst // 3 - 1) % len(routes)]

    def _departure(self, route: Route, head: bytes, body: bytes, draw: random.Random) -> Departure:
        part = draw.choice(("head", "body", "answer", "answer") if body else ("head", "answer", "answer", "answer"))
        most = {"head": len(head), "body": len(body), "answer": self.longest[route]}[part]
        at = draw.choice((0, draw.randrange(most), int(most ** draw.random()) - 1))
        return Departure(part, at, draw.choice(WAYS), draw.choice((0.0, 0.0, draw.uniform(0, LONGEST_PAUSE))))

    def end(self) -> str:
        """Return how the process is."""
        assert self.server.process is not None
        with contextlib.suppress(Exception):
            self.server.process.wait(1)
        code = self.server.process.poll()
        return "it is alive" if code is None else f"the server ended with {code}"

    def show(self) -> None:
        """Print where clients left."""
        words = ("head", "body", "answer", "whole")
        print(f"{'left in the':32}" + "".join(f"{word:>9}" for word in words))
        for label, counts in [*self.parts.items(), ("all", sum(self.parts.values(), Counter()))]:
            print(f"{label:32}" + "".join(f"{counts[word]:>9,}" for word in words))
        statuses = ", ".join(f"{status or 'no answer'}: {n:,}" for status, n in sorted(self.statuses.items(), key=str))
        print(f"{self.left:,} left; {statuses}")


def long_log(entries: int, numbers: int) -> bytes:
    """Return an exported log of so many entries, each with a row of so many numbers."""
    lines: list[dict[str, Any]] = [{"seq": 1, "time": 1, "create": {"learner": "OnlinePerceptron", "parameters": {}}}]
    for seq in range(2, entries + 1):
        row = [(seq + place) % 3 for place in range(numbers)]
        lines.append({"seq": seq, "time": seq, "learn": [{"x": row, "y": "spam" if seq % 3 else "ham"}]})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def leave_server(folder: Path, times: int, seed: int, entries: int = LONG_LOG, show: bool = False) -> list[str]:
    """Let clients leave a server in a folder; return what went wrong."""
    with Server(folder).start() as server:
        connection = server.connect(timeout=600)
        connection.ask("POST", f"/models/{LONG}/log", long_log(entries, LONG_ROW), Content_Type=JSON_LINES)
        connection.ask("POST", f"/models/{TAUGHT}/log", long_log(20, 10), Content_Type=JSON_LINES)
        connection.ask("PUT", f"/models/{STEADY}", {})
        routes = routes_of(connection.ask("GET", "/openapi.json").json())
        connection.close()
        attack = Attack(server, routes + page_routes("rosenblatt.serve"), seed)

        clients = [Client(server.port, number) for number in range(2)]
        problems = leave(attack, times, clients, show)
        if server.process is not None and server.process.poll() is None:
            problems += check_kept(server, clients)
            if code := server.stop():
                problems.append(f"it stopped with exit code {code}")
    checked = check_folder(folder)
    if checked.returncode:
        problems.append(f"--check: {checked.stdout.decode()}{checked.stderr.decode()}")
    return problems


def leave_lab(place: Path, times: int, seed: int, show: bool = False) -> list[str]:
    """Let clients leave a lab; return what went wrong."""
    with Lab(place / "lab").start() as server:
        routes = lab_routes()
        problems = leave(Attack(server, routes, seed), times, [], show)
        if server.process is not None and server.process.poll() is None:
            head, body = next(route for route in routes if route.label == "POST /run").draw(random.Random(0))
            if (found := visit(server.port, head, body, None)).status != 200:
                problems.append(f"a run was answered with {found}")
            if code := server.stop():
                problems.append(f"it stopped with exit code {code}")
    return problems


def leave(attack: Attack, times: int, clients: list[Client], show: bool) -> list[str]:
    """Let so many clients leave while others stay; return what is wrong with the process afterwards."""
    server, process = attack.server, attack.server.process
    assert process is not None
    attack.ask_all()
    before = _settled(process.pid)
    for client in clients:
        client.start()
    attack.run(times)
    for client in clients:
        client.stopped.set()
    for client in clients:
        client.join(2 * HANG)
    if show:
        attack.show()
    if show and clients:
        kept, slowest = sum(len(client.acknowledged) for client in clients), max(client.slowest for client in clients)
        print(f"meanwhile {kept:,} examples were learned and predicted, the slowest pair in {slowest:.2f} s")

    problems = attack.failures[:MOST_SHOWN] + [client.problem for client in clients if client.problem]
    if process.poll() is not None:
        return [*problems, f"the server ended with {process.returncode}: {server.said()[-2000:].decode()}"]
    if attack.left < times:
        problems.append(f"{attack.left} of {times} left")
    if more := left_open(process.pid, before):
        problems.append(f"still open: {more}")
    if b"Traceback" in server.said():
        problems.append(f"the server wrote a traceback: {server.said()[-3000:].decode()}")
    return problems


def _settled(process: int) -> Held:
    """Return what a process has open as soon as it has had as many sockets for a while."""
    held, since = held_by(process), time.monotonic()
    ends = since + SETTLING
    while time.monotonic() - since < QUIET and time.monotonic() < ends:
        time.sleep(0.05)
        before, held = held, held_by(process)
        if held.files["socket"] != before.files["socket"]:
            since = time.monotonic()
    return held


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--lab", action="store_true", help="leave the lab")
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="rosenblatt-leavers-")) / "folder"
    folder.mkdir()
    print(f"seed {seed}, folder {folder}", flush=True)
    began = time.monotonic()
    attack = leave_lab if given.lab else leave_server
    problems = attack(folder, given.times, seed, show=True)
    for problem in problems:
        print(problem)
    print(f"seed {seed}: {time.monotonic() - began:.0f} s, {len(problems)} failures")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
