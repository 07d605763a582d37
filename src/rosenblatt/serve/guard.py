"""The guard stands before the application and lets through what may come in: the right host and origin, a token with the
scope that the route needs, a content type that the route reads, a body that is not too large.

It reads a body once and hands it on whole. Time is not its business: `protocol` cuts clients that are slow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from rosenblatt.errors import LimitExceeded, RosenblattError, shown
from rosenblatt.serve import wire
from rosenblatt.serve.limits import Limits, parsed_bytes
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.problem_details import from_error, problem
from rosenblatt.serve.tokens import TokenList, Tokens

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
JSON, NDJSON, FILE = wire.JSON.encode(), wire.JSON_LINES.encode(), wire.MODEL_FILE.encode()
SECURITY_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_SMALL_BODY = 1 << 12  # bytes: the values of what is smaller are not worth counting
_MOST_VALUES = 36  # bytes that the values of a byte of JSON take, at most about
_MODEST_BODY = 1 << 18  # bytes: for what is smaller …
_MODEST_SHARE = 8  # … one part of so many of `queued_bytes` is kept, so that large bodies cannot take all of it
_NO_STORE = (b"cache-control", b"no-store")
_CLOSE = (b"connection", b"close")
_ONCE = frozenset({b"host", b"origin", b"authorization", b"content-type", b"content-encoding", b"sec-fetch-site"})
_logger = logging.getLogger(__name__)


class Rule(NamedTuple):
    """What a route needs and reads.

    Parameters
    ----------
    scope : str or None
        The scope that a token must have; None is no token at all.
    limits : mapping of bytes to str
        The content types that a body may have, and the limit on the size of each; none where there is no body. What
        `body_bytes` limits is handed on whole, everything else piece by piece as it comes.
    """

    scope: str | None
    limits: Mapping[bytes, str] = {JSON: "body_bytes"}


_OPEN, _PREDICT, _ADMINISTER = Rule(None, {}), Rule("predict", {}), Rule("administer")
_EXAMPLES = {JSON: "body_bytes", NDJSON: "body_bytes"}
# Model names and names of files of the page are written as {name}. HEAD needs what GET needs; what is not here needs
# "administer".
Rules = Mapping[str, Mapping[str, Rule]]
RULES: Rules = {
    "/": {"GET": _OPEN},
    "/page/{name}": {"GET": _OPEN},
    "/healthz": {"GET": _OPEN},
    "/readyz": {"GET": _OPEN},
    "/openapi.json": {"GET": _OPEN},
    "/metrics": {"GET": _PREDICT},
    "/events": {"GET": _PREDICT},
    "/models": {"GET": _PREDICT},
    "/models/{name}": {
        "GET": _PREDICT,
        "PUT": Rule("administer", {JSON: "body_bytes", FILE: "model_bytes"}),
        "DELETE": Rule("administer", {}),
    },
    "/models/{name}/learn": {"POST": Rule("learn", _EXAMPLES)},
    "/models/{name}/predict": {"POST": Rule("predict", _EXAMPLES)},
    "/models/{name}/history": {"GET": _PREDICT},
    "/models/{name}/weights": {"GET": _PREDICT},
    "/models/{name}/set-back": {"POST": _ADMINISTER},
    "/models/{name}/archive": {"POST": _ADMINISTER},
    "/models/{name}/file": {"GET": _ADMINISTER},
    "/models/{name}/log": {"GET": _ADMINISTER, "POST": Rule("administer", {NDJSON: "import_bytes"})},
}
_OTHER = "other"  # the route of all paths that are not in the table


class RefusedRequest(Exception):
    """A request that the guard answers itself."""

    def __init__(self, response: Response):
        super().__init__(response.status_code)
        self.response = response


class Guard:
    """An ASGI application that checks each request before another application gets it.

    Parameters
    ----------
    app : ASGI application
        The application behind the guard.
    tokens : Tokens or None
        The tokens of the folder; None for a server that needs none.
    limits : Limits
        The limits of the server.
    hosts : collection of str, optional
        The names that the Host header may have, without a port: `LOOPBACK_HOSTS` where the server listens on loopback, so
        that no page can reach it under a name of its own (DNS rebinding). None allows every name.
    metrics : Metrics, optional
        Where requests are counted.
    rules : mapping, optional
        What each route needs and reads, by its path and method.
    """

    def __init__(
        self,
        app: App,
        tokens: Tokens | None,
        limits: Limits,
        hosts: Collection[str] | None = None,
        metrics: Metrics | None = None,
        rules: Rules = RULES,
    ):
        self.app, self.tokens, self.limits, self.rules = app, tokens, limits, rules
        self.hosts = None if hosts is None else frozenset(name.lower().encode("latin-1") for name in hosts)
        self.metrics = Metrics() if metrics is None else metrics
        self.held_bytes = 0  # of all requests that have no answer yet: the bodies, and about what they are parsed to
        self.most_held_bytes = 0  # since somebody set it back

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await _Request(self, scope, receive, send).answer()
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)

    def check_head(self, method: str, rule: Rule, headers: dict[bytes, bytes]) -> None:
        """Refuse a request whose host, origin or token is not right."""
        host = headers.get(b"host")
        if self.hosts is not None and host is not None and host_name(host) not in self.hosts:  # browsers send one
            allowed = ", ".join(sorted(name.decode("latin-1") for name in self.hosts))
            detail = f"the Host header must be {allowed}, with any port; got {_shown(host)}"
            raise RefusedRequest(problem(421, "wrong-host", "The server does not have this name", detail))
        if b"origin" in headers or b"sec-fetch-site" in headers:
            self._check_origin(method, rule, headers)
        if rule.scope is None or self.tokens is None:
            return
        if (known := self.tokens.current()) is not None:
            _check_token(known, rule.scope, headers.get(b"authorization"))

    def check_body(self, rule: Rule, headers: dict[bytes, bytes]) -> str | None:
        """Refuse a body of the wrong type or size, as far as the head says; return its limit, None if there is no body."""
        length, coding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
        if coding is None and (length is None or length == b"0"):
            return None
        content_type = headers.get(b"content-type", b"")
        limit = rule.limits.get(content_type) or rule.limits.get(media_type(content_type))
        if limit is None:
            allowed = " or ".join(kind.decode() for kind in rule.limits)
            needed = f"the Content-Type of this request must be {allowed}, in UTF-8" if allowed else "this takes no body"
            detail = f"{needed}; got {_shown(content_type)}"
            first = next(iter(rule.limits), None)
            hint = "send no body" if first is None else f"send the header Content-Type: {first.decode()}"
            title = "The content type is not supported"
            raise RefusedRequest(problem(415, "unsupported-media-type", title, detail, hint=hint))
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            detail = f"bodies must not be compressed; got Content-Encoding {_shown(headers[b'content-encoding'])}"
            raise RefusedRequest(problem(415, "unsupported-media-type", "The content type is not supported", detail))
        if coding is not None and coding.lower() != b"chunked":
            detail = f"the Transfer-Encoding must be chunked; got {_shown(coding)}"
            raise RefusedRequest(problem(400, "malformed", "The request is malformed", detail))
        if length is not None:
            self.check_size(limit, int(length))
        return limit

    def check_size(self, limit: str, size: int) -> None:
        """Refuse a body of this size if it is larger than the limit of this name."""
        most: int = getattr(self.limits, limit)
        if size > most:
            raise LimitExceeded(limit, size, most, hint="send less in one request")

    def _check_origin(self, method: str, rule: Rule, headers: dict[bytes, bytes]) -> None:
        """Refuse what a page of another origin sends; a link from there to a page of this server is allowed."""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if origin is None or origin.partition(b"://")[2].lower() == headers.get(b"host", b"").lower() != b"":
            if site is None or site in (b"same-origin", b"none"):
                return
            is_link = method in ("GET", "HEAD") and headers.get(b"sec-fetch-mode") == b"navigate"
            if origin is None and is_link and rule.scope is None:
                return
        detail = f"requests from pages of another origin are refused; this is {_shown(headers.get(b'host'))}, that was "
        detail += _shown(origin) if origin is not None else f"{_shown(site)} by Sec-Fetch-Site"
        raise RefusedRequest(problem(403, "cross-site", "The request comes from another site", detail))


class _Request:
    """A request on its way through the guard."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send):
        self.guard, self.scope = guard, scope
        self._receive, self._send = receive, send
        self.status = 0  # of the answer, once it has begun
        self.complete = False  # whether the whole answer was sent
        self.size = 0  # bytes of the body that were received
        self.held = 0  # … and that are in memory here
        self.limit = ""  # on the size of the body
        self.message: Message | None = None  # with the whole body, until the application takes it
        self.expects = False  # whether the client waits for "100 Continue" before it sends the body

    async def answer(self) -> None:
        """Check the request, then let the application answer it, or refuse it."""
        began = time.perf_counter()
        route = route_pattern(self.scope["path"], self.guard.rules)
        try:
            receive = await self._admit(route)
            if receive is not None:
                is_head = self.scope["method"] == "HEAD"  # to the application it is GET; the server keeps the body back
                await self.guard.app({**self.scope, "method": "GET"} if is_head else self.scope, receive, self.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            response = self._response_for(error)
            if not self.status:
                await response(self.scope, self._receive, self.send)
            elif not self.complete:
                raise  # and the connection is closed, so that the client sees that something is missing
        finally:
            guard = self.guard
            guard.held_bytes -= self.held
            guard.metrics.requests.add(1, route, str(self.status) if self.status else "disconnected")
            guard.metrics.request_seconds.observe(time.perf_counter() - began, route)

    async def _admit(self, route: str) -> Receive | None:
        """Refuse the request, or return where the application gets the body; None if the client has gone."""
        guard, scope = self.guard, self.scope
        method, fields = scope["method"], scope["headers"]
        headers = dict(fields)
        if len(headers) != len(fields):
            names = [name for name, _ in fields]
            if twice := [name for name in _ONCE if names.count(name) > 1]:
                detail = f"the header {twice[0].decode()} must not occur more than once"
                raise RefusedRequest(problem(400, "malformed", "The request is malformed", detail))
        if b"host" not in headers and scope["http_version"] != "1.0":
            raise RefusedRequest(problem(400, "malformed", "The request is malformed", "the header host is missing"))
        self.expects = b"expect" in headers
        methods = guard.rules.get(route, {})
        rule = methods.get("GET" if method == "HEAD" else method, _ADMINISTER)
        guard.check_head(method, rule, headers)
        if methods and method not in methods and not (method == "HEAD" and "GET" in methods):
            raise RefusedRequest(_method_not_allowed(method, methods))
        limit = guard.check_body(rule, headers)
        if limit is None:
            return self._receive
        self.limit = limit
        if limit != "body_bytes":
            return self.receive_piece
        return self.receive_whole if await self._collect() else None

    async def _collect(self) -> bool:
        """Receive the whole body; return whether the client stayed until the end."""
        guard = self.guard
        message = await self.receive_piece()
        body = bytearray() if message.get("more_body", False) else None
        while True:
            if message["type"] == "http.disconnect":
                return False
            guard.held_bytes += self.size - self.held
            self.held = self.size
            guard.most_held_bytes = max(guard.most_held_bytes, guard.held_bytes)
            most = guard.limits.queued_bytes
            if self.size > _MODEST_BODY:
                most -= most // _MODEST_SHARE
            if guard.held_bytes > max(most, self.held):  # one that is alone may be as large as a body may be
                raise LimitExceeded("queued_bytes", guard.held_bytes, most, hint="try again later")
            if body is None:  # the common case: all came at once
                self.message = message
                self._hold_values(message.get("body", b""))
                return True
            body += message.get("body", b"")
            if not message.get("more_body", False):
                whole = bytes(body)
                self.message = {"type": "http.request", "body": whole, "more_body": False}
                self._hold_values(whole)
                return True
            message = await self.receive_piece()

    def _hold_values(self, body: bytes) -> None:
        """Count what a body takes when it is parsed too; one that is alone may take as much as it does."""
        if len(body) < _SMALL_BODY:
            return
        guard, most = self.guard, self.guard.limits.queued_bytes
        others, values = guard.held_bytes - self.held, _MOST_VALUES * len(body)
        if others + values > most // 2 or values > guard.limits.parsed_bytes:  # only then it is worth looking closer
            values = parsed_bytes(body)
        if values > guard.limits.parsed_bytes:
            raise LimitExceeded("parsed_bytes", values, guard.limits.parsed_bytes, hint="send less in one request")
        size = len(body) + values
        if len(body) > _MODEST_BODY:
            most -= most // _MODEST_SHARE
        if others and others + size > most:
            raise LimitExceeded("queued_bytes", others + size, most, hint="try again later")
        guard.held_bytes += size - self.held
        guard.most_held_bytes = max(guard.most_held_bytes, guard.held_bytes)
        self.held = size

    async def receive_piece(self) -> Message:
        """Return the next message of the server; a body that is too large is refused."""
        self.expects = False
        message = await self._receive()
        self.size += len(message.get("body", b""))
        self.guard.check_size(self.limit, self.size)
        return message

    async def receive_whole(self) -> Message:
        """Return the whole body in the first message, then what the server says."""
        message, self.message = self.message, None
        return await self._receive() if message is None else message

    async def send(self, message: Message) -> None:
        """Send a message of the answer, with the security headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append(_NO_STORE)
            if self.expects:  # nobody knows whether the body comes, so no other request can follow
                headers.append(_CLOSE)
            message["headers"] = headers + SECURITY_HEADERS
            await self._send(message)
            if self.scope["method"] == "HEAD":  # an answer without end ends here too
                self.complete = True
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        elif self.scope["method"] != "HEAD":
            self.complete = not message.get("more_body", False)
            await self._send(message)

    def _response_for(self, error: Exception) -> Response:
        if isinstance(error, RefusedRequest):
            return error.response
        if isinstance(error, RosenblattError):
            return from_error(error)
        _logger.error("%s %r could not be answered", self.scope["method"], self.scope["path"], exc_info=error)
        detail = "the server could not answer because of a bug in it; its log says more"
        return problem(500, "internal-error", "Internal error", detail)


def _check_token(known: TokenList, scope: str, authorization: bytes | None) -> None:
    """Refuse a request without a token that is valid and has the scope."""
    title, hint = "A valid token is needed", f"rosenblatt token add FOLDER --scope {scope} makes one"
    if authorization is None:
        detail = "this server needs a token: send the header Authorization: Bearer TOKEN"
        raise RefusedRequest(problem(401, "unauthorized", title, detail, hint=hint))
    scheme, _, text = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        detail = "the header must be Authorization: Bearer TOKEN"
        raise RefusedRequest(problem(401, "unauthorized", title, detail, hint=hint))
    token = known.find(text.strip())
    if token is None:
        detail = "the token is not one of this server's, or was removed"
        raise RefusedRequest(problem(401, "unauthorized", title, detail, hint=hint))
    if token.has_expired():
        raise RefusedRequest(problem(401, "unauthorized", title, f"the token {token.id} has expired", hint=hint))
    if not token.allows(scope):
        detail = f"the token {token.id} allows {', '.join(token.scopes)}; this request needs {scope}"
        raise RefusedRequest(problem(403, "forbidden", "The token does not allow this", detail, scope=scope, hint=hint))


def _method_not_allowed(method: str, methods: Collection[str]) -> Response:
    allowed = ", ".join([*methods, *(["HEAD"] if "GET" in methods else [])])
    detail = f"the method must be {allowed}; got {shown(method)}"
    response = problem(405, "method-not-allowed", "The method is not allowed here", detail, allowed=allowed)
    response.headers["Allow"] = allowed
    return response


def route_pattern(path: str, rules: Rules = RULES) -> str:
    """Return the route of a path as the rules write it; "other" if there is none."""
    if path in rules:
        return path
    parts = path.split("/", 4)
    if len(parts) > 2 and parts[2]:
        parts[2] = "{name}"
        pattern = "/".join(parts)
        if pattern in rules:
            return pattern
    return _OTHER


def host_name(host: bytes) -> bytes:
    """Return the name in a Host header: in small letters, without the port."""
    name, colon, port = host.rpartition(b":")
    return (name if colon and port.isdigit() else host).lower()


def media_type(content_type: bytes) -> bytes:
    """Return the type in a Content-Type header in small letters; nothing if its charset is not UTF-8."""
    kind, *parameters = content_type.lower().split(b";")
    for parameter in parameters:
        name, _, value = parameter.strip().partition(b"=")
        if name == b"charset" and value.strip(b'"') not in (b"utf-8", b"utf8"):
            return b""
    return kind.strip()


def _shown(value: bytes | None) -> str:
    return "nothing" if not value else shown(value.decode("latin-1"))
