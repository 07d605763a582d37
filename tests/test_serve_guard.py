"""What the guard and the connections refuse, over real sockets: nothing that is refused reaches the application."""

import asyncio
import http.client
import io
import json
import re
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.errors import Conflict
from rosenblatt.serve.guard import LOOPBACK_HOSTS, RULES, SECURITY_HEADERS, Guard, route_pattern
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.protocol import with_limits
from rosenblatt.serve.tokens import SCOPES, Tokens, add_token, parse_expiry, remove_token

PATIENCE = 20  # seconds that a test waits for a socket; none waits so long where all is well
HASTY = Limits(header_seconds=0.4, body_seconds=0.4, whole_body_seconds=1.2, send_seconds=0.4)
JSON = {"Content-Type": "application/json"}
LEARN = "/models/mail/learn"


class Application:
    """An application that remembers what reached it, and says how large the body was and in how many pieces it came."""

    def __init__(self):
        self.reached = []
        self.open = 0
        self.released = False

    async def __call__(self, scope, receive, send):
        self.open += 1
        try:
            await self.answer(scope, receive, send)
        finally:
            self.open -= 1

    async def answer(self, scope, receive, send):
        path = scope["path"]
        self.reached.append((scope["method"], path))
        if path == "/models/bug":
            raise KeyError("an unforeseen error")
        if path == "/models/conflict":
            raise Conflict("there is another model of this name", hint="use another name")
        if path == "/models/slow":
            await asyncio.sleep(0.1)
        while path in ("/models/held", "/models/held/log") and not self.released:
            await asyncio.sleep(0.01)
        if path == "/events":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
            gone = asyncio.create_task(disconnected(receive))
            while not gone.done():
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                await asyncio.sleep(0)
            return
        if path == "/metrics":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
            for piece in (b"one ", b"two ", b"three"):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if scope["query_string"] == b"broken":
                raise KeyError("an unforeseen error")
            await send({"type": "http.response.body", "body": b""})
            return
        size, pieces, more = 0, 0, scope["method"] != "GET" and path != "/models/early"
        while more:
            message = await receive()
            size, pieces, more = size + len(message["body"]), pieces + 1, message["more_body"]
        content = json.dumps({"size": size, "pieces": pieces}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


async def disconnected(receive):
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Served(NamedTuple):
    """A server that runs in a thread."""

    app: Application
    guard: Guard
    protocol: type
    connections: set
    address: tuple
    folder: object


@contextmanager
def serving(folder, limits):
    """Serve the application behind the guard until the block ends."""
    app = Application()
    guard = Guard(app, Tokens(folder), limits, LOOPBACK_HOSTS, Metrics())
    protocol = with_limits(limits)
    config = uvicorn.Config(
        guard, http=protocol, ws="none", lifespan="off", log_config=None, log_level="critical", server_header=False,
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        yield Served(app, guard, protocol, server.server_state.connections, listener.getsockname(), folder)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server without tokens, for all tests that leave it as it was."""
    with serving(tmp_path_factory.mktemp("folder"), Limits()) as served:
        yield served


@pytest.fixture
def served(shared):
    """The server without tokens, to which nothing has come yet."""
    return untouched(shared)


def untouched(served):
    """A server that has no connections, and has forgotten what reached it."""
    until(lambda: not served.connections and not served.app.open)
    served.app.reached.clear()
    served.app.released = False
    return served


def until(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)


class Answer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: dict
    body: bytes

    @property
    def kind(self):
        """The end of the type of problem details."""
        assert self.headers["content-type"] == "application/problem+json"
        facts = json.loads(self.body)
        assert facts["status"] == self.status
        assert facts["title"]
        assert facts["detail"]
        return facts["type"].removeprefix("urn:rosenblatt:problem:")


def ask(served, method="GET", path="/models", body=None, headers=(), connection=None):
    """Send a request with the standard library's client and return the answer."""
    if connection is None:
        with closing(http.client.HTTPConnection(*served.address, timeout=PATIENCE)) as own:
            return ask(served, method, path, body, headers, own)
    connection.request(method, path, body, dict(headers))
    return read_answer(connection.getresponse())


def read_answer(response):
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def connect(served):
    return socket.create_connection(served.address, timeout=PATIENCE)


def rest(client):
    """Everything that the server sends until it closes the connection."""
    received = bytearray()
    try:
        while piece := client.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return bytes(received)


def first_answer(client):
    """The first answer on a connection, which stays open."""
    with closing(http.client.HTTPResponse(client)) as response:
        response.begin()
        return read_answer(response)


def drip(client, pieces, pause):
    """Send pieces with pauses between them; return whether the server closed the connection before all were sent."""
    with suppress(ConnectionResetError, BrokenPipeError):
        for piece in pieces:
            client.sendall(piece)
            time.sleep(pause)
        return False
    return True


def exchange(served, content):
    """Send bytes, and return all that comes until the server closes the connection."""
    with connect(served) as client:
        client.sendall(content)
        return rest(client)


class Received(io.BytesIO):
    """What a connection received, as the standard library's client reads it: each answer closes its file."""

    def makefile(self, mode):
        return self

    def close(self):
        pass


def answers(received):
    """The answers in what a connection received."""
    file, found = Received(received), []
    while file.tell() < len(received):
        response = http.client.HTTPResponse(file)
        response.begin()
        found.append(read_answer(response))
    return found


def request_bytes(method="POST", path=LEARN, headers=(), body=b"", version="1.1"):
    """A request as it goes over the wire, with the headers of a JSON body unless others are given."""
    fields = {"Host": "localhost", "Content-Type": "application/json", **({"Content-Length": len(body)} if body else {})}
    fields |= dict(headers)
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/{version}", *lines, "", ""]).encode("latin-1") + body


# Answers


def test_every_answer_has_the_security_headers(served):
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    got = [
        ask(served),
        ask(served, "HEAD"),
        ask(served, "POST", LEARN, b"{}", JSON),
        ask(served, "POST", LEARN, b"{}"),
        ask(served, path="/models/bug"),
        ask(served, path="/nowhere"),
        *answers(exchange(served, b"nonsense\r\n\r\n")),
    ]
    assert [answer.status for answer in got] == [200, 200, 200, 415, 500, 200, 400]
    for answer in got:
        assert answer.headers["content-security-policy"] == policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert not {name for name in answer.headers if name.startswith("access-control-")}
    assert {answer.headers.get("cache-control") for answer in got[:-1]} == {"no-store"}


def test_errors_of_the_application_become_problem_details(served):
    conflict = ask(served, path="/models/conflict")
    assert (conflict.status, conflict.kind) == (409, "conflict")
    assert json.loads(conflict.body)["hint"] == "use another name"
    bug = ask(served, path="/models/bug")
    assert (bug.status, bug.kind) == (500, "internal-error")
    assert "unforeseen" not in bug.body.decode()


def test_an_answer_that_fails_halfway_ends_with_the_connection(served):
    with pytest.raises(http.client.IncompleteRead):
        ask(served, path="/metrics?broken")


def test_requests_are_counted_by_route_and_status(served):
    ask(served, "POST", LEARN, b"{}", JSON)
    ask(served, "POST", "/models/other/learn", b"{}")
    ask(served, path="/models/x/y/z")
    text = served.guard.metrics.render()
    assert re.search(r'^rosenblatt_requests_total{route="/models/{name}/learn",status="200"} [1-9]', text, re.MULTILINE)
    assert re.search(r'^rosenblatt_requests_total{route="/models/{name}/learn",status="415"} [1-9]', text, re.MULTILINE)
    assert re.search(r'^rosenblatt_requests_total{route="other",status="200"} [1-9]', text, re.MULTILINE)
    assert re.search(r'^rosenblatt_request_seconds_count{route="other"} [1-9]', text, re.MULTILINE)


# Hosts and origins


@pytest.mark.parametrize("host", ["localhost", "LocalHost:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_loopback_has_these_names(served, host):
    assert ask(served, headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "localhost:x", "", "::1"])
def test_other_names_are_refused(served, host):
    answer = ask(served, headers={"Host": host})
    assert (answer.status, answer.kind) == (421, "wrong-host")
    assert not served.app.reached


def test_the_host_is_there_once(served):
    for head in (b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nhost: localhost\r\n\r\n"):
        with connect(served) as client:
            client.sendall(head)
            answer = first_answer(client)
        assert (answer.status, answer.kind) == (400, "malformed")
    assert not served.app.reached
    assert answers(exchange(served, b"GET / HTTP/1.0\r\n\r\n"))[0].status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://localhost:8000"}, 200),
        ({"Origin": "https://LOCALHOST:8000", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://localhost:8000", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}, 403),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/models"), ("POST", LEARN), ("OPTIONS", "/new")])
def test_pages_of_other_origins_are_refused(served, method, path, headers, status):
    answer = ask(served, method, path, headers={"Host": "localhost:8000", **headers})
    assert answer.status == status
    assert bool(served.app.reached) == (status == 200)
    if status == 403:
        assert answer.kind == "cross-site"


def test_a_link_elsewhere_may_lead_to_the_page(served):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(served, path="/", headers=link).status == 200
    assert ask(served, "POST", "/", headers=link).status == 403
    assert ask(served, path="/", headers={**link, "Origin": "http://evil.example"}).status == 403
    assert ask(served, path="/page/page.js", headers={"Sec-Fetch-Site": "cross-site"}).status == 403


# Tokens


def ask_directly(guard, method="GET", path="/models", headers=()):
    """The status and the headers that a request gets from the guard, without a server."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message):
        sent.append(message)

    fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in (("Host", "localhost"), *headers)]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": fields, "http_version": "1.1"}
    asyncio.run(guard(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"])


ROUTES = [(method, route) for route, methods in RULES.items() for method in methods]


@pytest.mark.parametrize(("method", "route"), [*ROUTES, ("HEAD", "/models"), ("PATCH", "/new"), ("GET", "/new")])
def test_each_route_needs_its_scope(method, route, tmp_path):
    texts = {scope: add_token(tmp_path, [scope]).text for scope in SCOPES}
    path = route.replace("{name}", "mail")
    app = Application()
    if path in ("/events", "/metrics"):
        app.answer = quiet_answer(app)
    guard = Guard(app, Tokens(tmp_path), Limits())
    needs = RULES.get(route, {}).get("GET" if method == "HEAD" else method)
    needs = "administer" if needs is None else needs.scope
    status, headers = ask_directly(guard, method, path)
    assert status == (200 if needs is None else 401)
    assert (b"www-authenticate" in headers) == (status == 401)
    for scope, text in texts.items():
        status, _ = ask_directly(guard, method, path, [("Authorization", f"Bearer {text}")])
        assert status == (200 if needs in (None, scope) or scope == "administer" else 403)
    open_for = {None: 4, "predict": 2, "learn": 2, "administer": 1}
    assert len(app.reached) == open_for[needs]


def quiet_answer(app):
    """An answer that ends, for routes whose answer would not."""

    async def answer(scope, receive, send):
        app.reached.append((scope["method"], scope["path"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return answer


def test_every_route_of_the_server_is_in_the_table():
    from rosenblatt.serve.app import ROUTERS

    declared = [route for router in ROUTERS for route in router.routes]
    routes = {(re.sub(r"{\w+}", "{name}", route.path), method) for route in declared for method in route.methods}
    known = {(route, method) for route, methods in RULES.items() for method in methods}
    assert routes == known - {("/openapi.json", "GET")}  # FastAPI adds this one


@pytest.mark.parametrize(
    "path",
    ["/models/", "/models//learn", "/models/mail/learn/", "/models/mail/learn\n", "/Models", "//models",
     "/models/a/b/learn", "/healthz/", "/healthz\n", "/page/", "/page/a/b", "", "healthz"],
)  # fmt: skip
def test_what_only_looks_like_a_route_is_none(path):
    assert route_pattern(path) == "other"


def test_a_path_matches_one_route():
    assert route_pattern("/models/mail/learn") == "/models/{name}/learn"
    assert route_pattern("/models/learn") == "/models/{name}"
    assert route_pattern("/page/page.js") == "/page/{name}"


def test_tokens_take_effect_while_the_server_runs(tmp_path):
    with serving(tmp_path, Limits()) as served:
        assert ask(served).status == 200
        text, token = add_token(tmp_path, ["predict"], name="dashboard")
        refused = ask(served)
        assert refused.kind == "unauthorized"
        assert "rosenblatt token add FOLDER --scope predict" in json.loads(refused.body)["hint"]
        refused = ask(served, headers={"Authorization": text})
        assert json.loads(refused.body)["detail"] == "the header must be Authorization: Bearer TOKEN"
        bearer = {"Authorization": f"bearer {text}"}
        assert ask(served, headers=bearer).status == 200
        refused = ask(served, "POST", LEARN, b"{}", {**JSON, **bearer})
        assert (refused.status, refused.kind, json.loads(refused.body)["scope"]) == (403, "forbidden", "learn")
        remove_token(tmp_path, token.id)
        assert ask(served, headers=bearer).status == 401
        assert ask(served, path="/healthz").status == 200
        (tmp_path / "tokens.json").unlink()
        assert ask(served, headers=bearer).status == 401
        assert ask(served).status == 401


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 1, "tokens": [{}]}', b"\xff", None])
def test_a_damaged_list_of_tokens_lets_nobody_in(content, tmp_path):
    guard = Guard(Application(), Tokens(tmp_path), Limits())
    text = add_token(tmp_path, ["administer"]).text
    bearer = [("Authorization", f"Bearer {text}")]
    assert ask_directly(guard, headers=bearer)[0] == 200
    kept = (tmp_path / "tokens.json").read_bytes()
    if content is None:
        (tmp_path / "tokens.json").unlink()
        (tmp_path / "tokens.json").mkdir()
    else:
        (tmp_path / "tokens.json").write_bytes(content)
    for headers in (bearer, [], [("Authorization", "Bearer rb_00000000_x")]):
        assert ask_directly(guard, headers=headers)[0] == 503
    assert ask_directly(guard, path="/")[0] == 200
    if content is None:
        (tmp_path / "tokens.json").rmdir()
    (tmp_path / "tokens.json").write_bytes(kept)
    assert ask_directly(guard, headers=bearer)[0] == 200


def test_a_token_that_has_expired_is_refused(tmp_path, monkeypatch):
    text = add_token(tmp_path, ["predict"], parse_expiry("12h")).text
    guard = Guard(Application(), Tokens(tmp_path), Limits())
    bearer = [("Authorization", f"Bearer {text}")]
    assert ask_directly(guard, headers=bearer)[0] == 200
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 12 * 3600 + 1)
    assert ask_directly(guard, headers=bearer)[0] == 401


HEADER_NAMES = ["Host", "Origin", "Sec-Fetch-Site", "Authorization", "Content-Type", "Content-Length", "Transfer-Encoding",
                "Content-Encoding", "Expect", "Cookie", "X"]  # fmt: skip
HEADER_VALUES = st.one_of(
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=30),
    st.sampled_from(
        ["localhost", "null", "same-origin", "Bearer ", "Bearer rb_", "Basic x", "chunked", "0", "application/json"]
    ),
)


@pytest.fixture(scope="module")
def closed_guard(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    add_token(folder, SCOPES)
    return Guard(Application(), Tokens(folder), Limits(), LOOPBACK_HOSTS)


@settings(max_examples=150, deadline=None)
@given(
    headers=st.lists(st.tuples(st.sampled_from(HEADER_NAMES), HEADER_VALUES), max_size=6),
    path=st.one_of(
        st.sampled_from([LEARN, "/models", "/metrics"]), st.text(max_size=20).map(lambda text: f"/models/{text}")
    ),
    method=st.sampled_from(["GET", "POST", "PUT", "OPTIONS", "QUERY"]),
)
def test_no_header_opens_what_needs_a_token(closed_guard, headers, path, method):
    headers = [(name, "12" if name == "Content-Length" else value) for name, value in headers]  # the parser sees to it
    status, answer = ask_directly(closed_guard, method, path, headers)
    assert status in (400, 401, 403, 421)
    assert not closed_guard.app.reached
    assert set(SECURITY_HEADERS) <= set(answer.items())


# Bodies


@pytest.mark.parametrize(
    ("method", "path", "content_type", "status"),
    [
        ("POST", LEARN, "application/json", 200),
        ("POST", LEARN, "Application/JSON; charset=UTF-8", 200),
        ("POST", LEARN, 'application/json;charset="utf-8"', 200),
        ("POST", LEARN, "application/x-ndjson", 200),
        ("PUT", "/models/mail", "application/octet-stream", 200),
        ("PUT", "/models/mail", "application/json", 200),
        ("POST", "/models/mail/log", "application/x-ndjson", 200),
        ("POST", LEARN, None, 415),
        ("POST", LEARN, "", 415),
        ("POST", LEARN, "text/plain", 415),
        ("POST", LEARN, "application/x-www-form-urlencoded", 415),
        ("POST", LEARN, "multipart/form-data; boundary=x", 415),
        ("POST", LEARN, "application/jsonx", 415),
        ("POST", LEARN, "application/json; charset=latin-1", 415),
        ("POST", LEARN, "application/octet-stream", 415),
        ("PUT", "/models/mail", "application/x-ndjson", 415),
        ("POST", "/models/mail/log", "application/json", 415),
        ("POST", "/models/mail/set-back", "application/x-ndjson", 415),
        ("GET", "/models", "text/plain", 415),
        ("GET", "/healthz", "application/json", 415),  # nobody without a token keeps bytes in memory
        ("DELETE", "/models/mail", "application/json", 415),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_route_reads_its_content_types(served, method, path, content_type, status, chunked):
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = ask(served, method, path, iter([b"{", b"}"]) if chunked else b"{}", headers)
    assert answer.status == status
    assert bool(served.app.reached) == (status == 200)
    if status == 415:
        assert answer.kind == "unsupported-media-type"
        assert ("application/" if method in ("POST", "PUT") else "takes no body") in json.loads(answer.body)["detail"]


def test_compressed_bodies_are_refused(served):
    assert ask(served, "POST", LEARN, b"{}", {**JSON, "Content-Encoding": "gzip"}).status == 415
    assert ask(served, "POST", LEARN, b"{}", {**JSON, "Content-Encoding": "identity"}).status == 200
    coded = request_bytes(headers={"Transfer-Encoding": "gzip, chunked", "Content-Length": None, "Connection": "close"})
    (answer,) = answers(exchange(served, coded + b"0\r\n\r\n"))
    assert answer.status == 400
    assert len(served.app.reached) == 1


def test_a_request_without_a_body_needs_no_content_type(served):
    assert ask(served, "POST", "/models/mail/set-back").status == 200
    assert ask(served, "DELETE", "/models/mail").status == 200


@pytest.mark.parametrize("size", [0, 1, 65536, 70_000, 1_000_000])
def test_the_application_gets_the_body_whole(served, size):
    body = b"x" * size
    for content in (body, iter([body[:1000], body[1000:]]) if size > 1000 else body):
        answer = ask(served, "POST", LEARN, content, JSON)
        assert json.loads(answer.body) == {"size": size, "pieces": 1}
    assert json.loads(ask(served, "POST", LEARN, iter([b"ab", b"c"]), JSON).body) == {"size": 3, "pieces": 1}
    until(lambda: served.guard.held_bytes == 0)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """A server that takes little."""
    limits = Limits(body_bytes=1000, import_bytes=200_000, head_bytes=2000, queued_bytes=1500, connections=8)
    with serving(tmp_path_factory.mktemp("narrow"), limits) as served:
        yield served


@pytest.fixture
def small(narrow):
    return untouched(narrow)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused(small, chunked):
    connection = http.client.HTTPConnection(*small.address, timeout=PATIENCE)
    answer = ask(small, "POST", LEARN, iter([b"x" * 600] * 2) if chunked else b"x" * 1200, JSON, connection)
    assert (answer.status, answer.kind) == (413, "limit-exceeded")
    assert json.loads(answer.body)["limit"] == "body_bytes"
    assert not small.app.reached
    answer = ask(small, "POST", LEARN, b"x" * 1000, JSON, connection)  # the rest was dropped; the connection is still good
    assert (answer.status, json.loads(answer.body)["size"]) == (200, 1000)
    connection.close()
    until(lambda: small.guard.held_bytes == 0)


def test_a_large_body_is_refused_before_it_comes(small):
    with connect(small) as client:
        client.sendall(request_bytes(headers={"Content-Length": 10**15}))
        assert first_answer(client).status == 413
        assert drip(client, [b"x" * 10_000] * 1000, 0.001)  # it is cut when it comes in spite of that
    assert not small.app.reached


def test_what_is_imported_comes_in_pieces_and_has_its_own_limit(small):
    ndjson = {"Content-Type": "application/x-ndjson"}
    got = json.loads(ask(small, "POST", "/models/mail/log", b"x" * 150_000, ndjson).body)
    assert got["size"] == 150_000
    assert got["pieces"] > 1
    for body in (b"x" * 200_001, iter([b"x" * 1000] * 201)):
        assert ask(small, "POST", "/models/mail/log", body, ndjson).status == 413


def test_bodies_in_memory_have_a_limit_together(small):
    with connect(small) as first:
        first.sendall(request_bytes(headers={"Content-Length": 1000}, body=b"x" * 900))
        until(lambda: small.guard.held_bytes == 900)
        answer = ask(small, "POST", LEARN, b"x" * 1000, JSON)
        assert (answer.status, answer.kind, answer.headers["retry-after"]) == (503, "limit-exceeded", "1")
    until(lambda: small.guard.held_bytes == 0)
    assert ask(small, "POST", LEARN, b"x" * 1000, JSON).status == 200


@pytest.mark.parametrize(
    "headers",
    [{"X": "x" * 2000}, {f"X{i}": "x" * 30 for i in range(60)}, {"Cookie": "x" * 300_000}],
    ids=["long", "many", "huge"],
)
def test_a_head_over_the_limit_is_refused(small, headers):
    (answer,) = answers(exchange(small, request_bytes("GET", "/", headers)))
    assert (answer.status, answer.kind) == (431, "limit-exceeded")
    (answer,) = answers(exchange(small, request_bytes("GET", "/" + "x" * 2000)))
    assert answer.status == 431
    assert not small.app.reached
    assert ask(small, path="/?" + "x" * 1500).status == 200


def test_a_head_without_end_is_refused(small):
    with connect(small) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1900)
        time.sleep(0.05)
        client.sendall(b"x" * 1900)
        assert b"HTTP/1.1 431 " in rest(client)


def test_a_long_head_behind_another_request_is_refused(small):
    long = request_bytes("GET", "/", {"X": "x" * 2000})
    first, *others = answers(exchange(small, request_bytes("GET", "/") + long))
    assert first.status == 200
    assert [answer.status for answer in others] in ([], [431])
    assert small.app.reached == [("GET", "/")]


def test_what_follows_the_last_chunk_is_no_header_and_has_a_limit(small):
    head = request_bytes(headers={"Transfer-Encoding": "chunked", "Connection": "close"}) + b"2\r\n{}\r\n0\r\n"
    (answer,) = answers(exchange(small, head + b"Host: evil.example\r\nX: y\r\n\r\n"))
    assert answer.status == 200
    for start in (head + b"X: ", head[:-3] + b"1;"):  # a trailer and an extension of a chunk without end
        with connect(small) as client:
            assert drip(client, [start, *[b"x" * 500] * 1000], 0.01)
    assert len(small.app.reached) == 1


def test_connections_over_the_limit_are_sent_away(small):
    held = [connect(small) for _ in range(8)]
    try:
        until(lambda: len(small.connections) == 8)
        (answer,) = answers(exchange(small, b""))
        assert (answer.status, json.loads(answer.body)["limit"]) == (503, "connections")
    finally:
        for client in held:
            client.close()
    until(lambda: not small.connections)
    assert ask(small).status == 200


# Slow clients


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """A server that does not wait long."""
    with serving(tmp_path_factory.mktemp("impatient"), HASTY) as served:
        yield served


@pytest.fixture
def hasty(impatient):
    return untouched(impatient)


def test_a_head_that_is_too_slow_is_cut(hasty):
    began = time.monotonic()  # the server counts from the connection on
    with connect(hasty) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: local")
        (answer,) = answers(rest(client))
    assert (answer.status, answer.kind) == (408, "too-slow")
    assert time.monotonic() - began >= HASTY.header_seconds
    assert not hasty.app.reached


def test_a_head_that_drips_is_cut(hasty):
    head = b"\r\n" * 10 + b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 10_000
    with connect(hasty) as client:
        assert drip(client, [bytes([byte]) for byte in head], 0.02)
    assert not hasty.app.reached


def test_a_silent_connection_is_closed_without_a_word(hasty):
    with connect(hasty) as client:
        assert rest(client) == b""


def test_an_idle_connection_is_closed(tmp_path):
    with serving(tmp_path, Limits(idle_seconds=0.2)) as served, connect(served) as client:
        client.sendall(request_bytes("GET", "/"))
        assert [answer.status for answer in answers(rest(client))] == [200]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_stops_is_cut(hasty, chunked):
    headers = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": 100}
    with connect(hasty) as client:
        client.sendall(request_bytes(headers=headers) + (b"5\r\n{" if chunked else b"{"))
        (answer,) = answers(rest(client))
    assert (answer.status, answer.kind) == (408, "too-slow")
    assert not hasty.app.reached
    until(lambda: hasty.guard.held_bytes == 0)


def test_a_body_that_drips_is_cut(hasty):
    with connect(hasty) as client:
        client.sendall(request_bytes(headers={"Content-Length": 10_000}))
        assert drip(client, [b"x"] * 10_000, 0.05)
    assert not hasty.app.reached


def test_a_client_that_does_not_read_is_cut(hasty):
    with connect(hasty) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(request_bytes("GET", "/events"))
        until(lambda: hasty.app.open)
        until(lambda: not hasty.connections)
    until(lambda: not hasty.app.open)


def test_an_answer_that_nobody_takes_does_not_hold_the_connection(hasty):
    with connect(hasty) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection = the_connection(hasty)
        run_in_loop(connection, lambda: (connection.transport.write(b"x" * 50_000_000), connection.transport.close()))
        until(lambda: not hasty.connections)


def test_not_even_a_little_that_nobody_takes_holds_the_connection(hasty):
    with connect(hasty) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(request_bytes("GET", "/models/held"))
        connection = the_connection(hasty)
        until(lambda: hasty.app.open)
        while not connection.transport.get_write_buffer_size():  # less than what pauses the application
            run_in_loop(connection, lambda: connection.transport.write(b"x" * 30_000))
            run_in_loop(connection, lambda: None)
        run_in_loop(connection, connection.transport.close)
        assert connection.unread_since is None
        until(lambda: not hasty.connections)
        hasty.app.released = True


def the_connection(served):
    """The server's side of the only connection."""
    until(lambda: len(served.connections) == 1)
    return next(iter(served.connections))


def run_in_loop(connection, function):
    """Run a function in the thread of the server."""
    done = threading.Event()
    connection.loop.call_soon_threadsafe(lambda: (function(), done.set()))
    assert done.wait(PATIENCE)


def is_cut_at(connection, moment):
    """Whether the deadlines cut a connection if it is this late; the clock of the server need not be waited for."""
    run_in_loop(connection, lambda: connection.check_deadlines(moment))
    return connection.transport.is_closing()


def test_a_head_is_cut_after_header_seconds(served):
    with connect(served) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        connection = the_connection(served)
        until(lambda: connection.received)
        limit = connection.began + connection.limits.header_seconds
        assert not is_cut_at(connection, limit - 1)
        client.sendall(b"Host: ")
        until(lambda: connection.received > 16)  # more bytes give no more time
        assert not is_cut_at(connection, limit - 1)
        assert is_cut_at(connection, limit + 1)


def test_a_body_that_moves_is_not_cut(served):
    with connect(served) as client:
        client.sendall(request_bytes(headers={"Content-Length": 10**7, "Connection": "close"}))
        connection = the_connection(served)
        until(lambda: connection.awaited == "body")
        began, limits = connection.began, connection.limits
        assert not is_cut_at(connection, connection.moved + limits.body_seconds - 1)
        client.sendall(b"x" * 2**20)
        until(lambda: connection.received == 2**20)
        assert not is_cut_at(connection, connection.moved + limits.body_seconds - 1)
        connection.moved += 1000  # as if the body had moved for so long
        assert not is_cut_at(connection, began + limits.whole_body_seconds + 16 - 1)  # 1 MiB at 64 KiB a second
        assert is_cut_at(connection, began + limits.whole_body_seconds + 16 + 1)
        assert [answer.status for answer in answers(rest(client))] == [408]
    assert not served.app.reached


def test_who_waits_for_an_answer_is_not_cut(served):
    with connect(served) as client:
        client.sendall(request_bytes("GET", "/models/held") + b"GET / HT")
        connection = the_connection(served)
        until(lambda: served.app.open and connection.awaited == "head")
        assert not is_cut_at(connection, connection.moved + 10_000)
        connection.began = connection.loop.time()
        served.app.released = True
        client.sendall(b"TP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert [answer.status for answer in answers(rest(client))] == [200, 200]


def test_who_cannot_send_because_nobody_reads_is_not_cut(served):
    headers = {"Content-Type": "application/x-ndjson", "Content-Length": 10**6, "Connection": "close"}
    with connect(served) as client:
        client.sendall(request_bytes(path="/models/held/log", headers=headers) + b"x" * 500_000)
        connection = the_connection(served)
        until(lambda: connection.flow is not None and connection.flow.read_paused)
        assert not is_cut_at(connection, connection.moved + 10_000)
        connection.began = connection.moved = connection.loop.time()
        served.app.released = True
        client.sendall(b"x" * 500_000)
        (answer,) = answers(rest(client))
    assert json.loads(answer.body)["size"] == 10**6


def test_a_client_that_reads_slowly_is_not_cut(served):
    with connect(served) as client:
        connection = the_connection(served)
        run_in_loop(connection, lambda: connection.transport.write(b"x" * 50_000_000))
        until(lambda: connection.unread_since is not None)
        for _ in range(3):
            since, left = connection.unread_since, connection.unread
            assert not is_cut_at(connection, since + connection.limits.send_seconds - 1)
            while connection.transport.get_write_buffer_size() > left - 100_000:
                client.recv(2**20)
            assert not is_cut_at(connection, since + connection.limits.send_seconds + 1)
            assert connection.unread < left
        until(lambda: is_cut_at(connection, connection.unread_since + connection.limits.send_seconds + 1))


def test_no_timer_is_left_when_the_last_client_has_gone(served):
    for _ in range(2):
        with connect(served):
            until(lambda: served.connections and served.protocol.sweeper.timer is not None)
        until(lambda: not served.connections)
        until(lambda: served.protocol.sweeper.timer is None)


# HTTP


def test_a_client_may_wait_before_it_sends_the_body(served):
    head = request_bytes(headers={"Content-Length": 2, "Expect": "100-continue", "Connection": "close"})
    with connect(served) as client:
        client.sendall(head)
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        (answer,) = answers(rest(client))
    assert answer.status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Content-Length": 10**9}, 413), ({"Content-Type": "text/plain"}, 415), ({"Host": "evil.example"}, 421)],
)
def test_who_waits_with_a_body_that_is_refused_is_told_so(served, headers, status):
    received = exchange(served, request_bytes(headers={"Content-Length": 2, "Expect": "100-continue", **headers}))
    (answer,) = answers(received)  # and the connection is closed: nobody knows whether the body would have come
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert not served.app.reached


def test_requests_in_a_row_are_answered_in_a_row(served):
    paths = ["/models/slow", "/models/a/learn", "/healthz", "/models/b/learn"]
    bodies = [b"", b"{}", b"", b"x" * 100_000]
    row = [
        request_bytes("POST" if body else "GET", path, {"Connection": "close"} if path == paths[-1] else {}, body)
        for path, body in zip(paths, bodies, strict=True)
    ]
    got = answers(exchange(served, b"".join(row)))
    assert [json.loads(answer.body)["size"] for answer in got] == [0, 2, 0, 100_000]
    assert [path for _, path in served.app.reached] == paths


def test_a_refused_body_in_a_row_is_skipped(served):
    row = request_bytes(headers={"Content-Type": "text/plain"}, body=b"POST / HTTP/1.1\r\n\r\n" * 100)
    row += request_bytes("GET", "/healthz", {"Connection": "close"})
    assert [answer.status for answer in answers(exchange(served, row))] == [415, 200]
    assert served.app.reached == [("GET", "/healthz")]


def test_nonsense_behind_a_request_does_not_keep_its_answer(served):
    got = answers(exchange(served, request_bytes("GET", "/models/slow") + b"nonsense\r\n\r\n"))
    assert [(answer.status, answer.headers["connection"]) for answer in got] == [(200, "close")]
    assert served.app.reached == [("GET", "/models/slow")]


def test_http_1_0(served):
    received = exchange(served, request_bytes("GET", "/metrics", version="1.0"))
    head, _, body = received.partition(b"\r\n\r\n")
    assert (b"transfer-encoding" in head.lower(), body) == (False, b"one two three")
    received = exchange(served, request_bytes(body=b"{}", version="1.0", headers={"Expect": "100-continue"}))
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.endswith(b'{"size": 2, "pieces": 1}')
    head, _, body = exchange(served, request_bytes("HEAD", "/metrics", version="1.0")).partition(b"\r\n\r\n")
    assert (head.split()[1], body) == (b"200", b"")
    received = exchange(served, request_bytes("GET", "/metrics", {"Connection": "close"}))
    assert b"transfer-encoding: chunked" in received.lower()


def test_head_is_get_without_the_body(served):
    for path in ("/models", "/metrics", "/events"):
        got, answer = (None if path == "/events" else ask(served, "GET", path)), ask(served, "HEAD", path)
        assert (answer.status, answer.body) == (200, b"")
        assert got is None or answer.headers.get("content-length") == got.headers.get("content-length")
    until(lambda: not served.app.open)
    assert {method for method, _ in served.app.reached} == {"GET"}
    refused = exchange(served, request_bytes("HEAD", "/", {"Host": "evil.example", "Connection": "close"}))
    assert refused.startswith(b"HTTP/1.1 421 ")
    assert refused.endswith(b"\r\n\r\n")


def test_a_method_that_a_route_does_not_have_is_refused_with_those_it_has(served):
    for method in ("POST", "OPTIONS", "PATCH"):
        answer = ask(served, method, "/models/mail", b"{}")
        assert (answer.status, answer.kind, answer.headers["allow"]) == (
            405,
            "method-not-allowed",
            "GET, PUT, DELETE, HEAD",
        )
    assert ask(served, "HEAD", LEARN).headers["allow"] == "POST"
    assert not served.app.reached


def test_no_other_protocol_is_spoken(served):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x" * 22 + "==",
               "Sec-WebSocket-Version": 13}  # fmt: skip
    with connect(served) as client:
        client.sendall(request_bytes("GET", "/models", upgrade))
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
    with connect(served) as client:
        client.sendall(request_bytes(headers={"Connection": "Upgrade", "Upgrade": "h2c"}, body=b"{}"))
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")


MALFORMED = [
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\nX\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: local\0host\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
]


@pytest.mark.parametrize("content", MALFORMED)
def test_malformed_requests_are_refused(served, content):
    (answer,) = answers(exchange(served, content))
    assert (answer.status, answer.kind) == (400, "malformed")
    assert not served.app.reached


@settings(max_examples=40, deadline=None)
@given(content=st.one_of(st.binary(max_size=300), st.sampled_from(MALFORMED).flatmap(
    lambda text: st.integers(0, len(text) - 1).map(lambda place: text[:place] + b"\xff" + text[place:])
)))  # fmt: skip
def test_nothing_that_is_sent_stops_the_server(shared, content):
    with connect(shared) as client:
        client.sendall(content + b"\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        for answer in answers(rest(client)):
            assert answer.status < 500
    assert ask(shared, path="/healthz").status == 200
