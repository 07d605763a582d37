"""A request is sent until it is answered, and done once. What is lost on the way is sent again, with the same
Idempotency-Key; the waits between attempts double, and part of each is random, so that many clients of a server that
comes back do not return together.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rosenblatt import errors
from rosenblatt.errors import InvalidParameter, RosenblattError, ServerRefused, ServerUnavailable
from rosenblatt.serve.wire import JSON, PROBLEM, problem_kind

LONGEST_BACKOFF = 5.0  # seconds between two attempts,
LONGEST_RETRY_AFTER = 60.0  # and where the server says how long
_STALE_AFTER = 60.0  # seconds; a server closes connections that are idle for longer, so a new one is opened
_FACTS = ("hint", "settings", "parameter", "value", "allowed", "line", "column", "row")


class Request(NamedTuple):
    """What is asked of a server."""

    method: str
    path: str  # with the query
    body: bytes | None = None
    content_type: str = JSON
    key: str | None = None  # the Idempotency-Key
    once: bool = False  # not to be sent again where it may have been done
    seconds: float = 0.0  # that the answer may take, where it is more than the timeout of the client


class ServerAnswer(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    lost: bool  # whether an earlier attempt was sent and not answered, so that it may have been done before


class ServerConnection:
    """Connections to a server, one for each thread, which stay open from one request to the next.

    Parameters
    ----------
    url : str
        Where the server is: "http://localhost:8000". A path is put before those of the requests.
    token : str or None
        The token that goes with each request.
    timeout : float
        Seconds without an answer after which an attempt is given up.
    retries : int
        How often a request is sent again.
    backoff : float
        Seconds before it is sent again for the first time; the next waits are twice as long each.
    """

    def __init__(self, url: str, token: str | None, timeout: float, retries: int, backoff: float):
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or port == -1
            or parts.username is not None
            or parts.query
            or parts.fragment
        ):
            raise InvalidParameter("url", url, "the address of a server, such as 'http://localhost:8000'")
        if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
            raise InvalidParameter(
                "token", f"{len(token)} characters", "printable ASCII characters without a blank, or None"
            )
        if not timeout > 0:
            raise InvalidParameter("timeout", timeout, "a number of seconds above 0")
        if retries < 0:
            raise InvalidParameter("retries", retries, "a whole number ≥ 0")
        if not backoff >= 0:
            raise InvalidParameter("backoff", backoff, "a number of seconds ≥ 0")
        self.url = url.rstrip("/")
        self._https, self._host, self._port, self._prefix = (
            parts.scheme == "https",
            parts.hostname,
            port,
            parts.path.rstrip("/"),
        )
        self._headers = {"Accept-Encoding": "identity"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        self._timeout, self._retries, self._backoff = timeout, retries, backoff
        self._own = threading.local()
        self._opened: weakref.WeakSet[_ThreadConnection] = weakref.WeakSet()

    def send(self, request: Request, receive: Callable[[http.client.HTTPResponse], bytes] | None = None) -> ServerAnswer:
        """Send a request until it is answered, and return the answer.

        Parameters
        ----------
        request : Request
            What is asked.
        receive : callable, optional
            Reads the body of an answer that is not an error; by default it is returned. It is called again where the
            connection was lost in between.

        Returns
        -------
        answer : ServerAnswer

        Raises
        ------
        ServerUnavailable
            There was no answer, or the server is busy or stopping, at every attempt.
        RosenblattError
            The server refused the request; the type says why.
        """
        lost = False
        problem, wait, reached = "", 0.0, True
        for attempt in range(self._retries + 1):
            if attempt:
                longest = min(self._backoff * 2 ** (attempt - 1), LONGEST_BACKOFF)
                time.sleep(max(wait, random.uniform(longest / 2, longest)))
            sent = reused = False
            try:
                connection, reused = self._connect(fresh=request.once)
                sent = True
                try:
                    response, body = self._exchange(connection, request, receive)
                except (ConnectionError, http.client.HTTPException):
                    if not reused:
                        raise
                    self._disconnect()  # it was open for a while, and the server may have closed it
                    lost = True
                    connection, reused = self._connect(fresh=True)
                    response, body = self._exchange(connection, request, receive)
            except RosenblattError:
                self._disconnect()
                raise
            except ssl.SSLCertVerificationError as error:
                self._disconnect()
                raise ServerUnavailable(
                    f"{self.url} cannot be trusted: {error.verify_message}", self.url, attempt + 1
                ) from error
            except (OSError, http.client.HTTPException) as error:
                self._disconnect()
                problem, wait, reached = _reason(error, sent), 0.0, sent
                if sent and request.once:
                    raise ServerUnavailable(
                        f"{self.url} did not answer ({problem}), so that it is not known whether {request.method} "
                        f"{request.path} was done",
                        self.url,
                        attempt + 1,
                        hint="look at the model before it is sent again",
                    ) from error
                lost |= sent
                continue
            except BaseException:
                self._disconnect()  # Ctrl-C in the middle of an answer, the rest of which nobody wants
                raise
            if response.status != 503:
                gone = lost and request.method == "DELETE" and response.status == 404  # an attempt before this one did it
                if response.status >= 300 and not gone:
                    raise error_of(response.status, body)
                return ServerAnswer(response.status, body, lost)
            problem, wait = _problem_of(body).get("detail") or "it answers 503", _retry_after(response)
            reached = True
        attempts = self._retries + 1
        counted = f"{attempts} attempt{'s' if attempts > 1 else ''}"
        failed = f"did not do what was asked in {counted}; the last failed because" if reached else ""
        raise ServerUnavailable(
            f"{self.url} {failed or f'cannot be reached ({counted}):'} {problem}",
            self.url,
            attempts,
            hint="start the server, or wait and try again",
        )

    def close(self) -> None:
        """Close the connections of all threads; a later request opens another one."""
        for connection in list(self._opened):
            connection.close()

    def _exchange(
        self,
        connection: _ThreadConnection,
        request: Request,
        receive: Callable[[http.client.HTTPResponse], bytes] | None,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request over a connection and return the response with its body."""
        if connection.http.sock is not None:
            connection.http.sock.settimeout(max(self._timeout, request.seconds))
        headers = dict(self._headers)
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        with suppress(BrokenPipeError, ConnectionResetError):  # a server may refuse a body before it has read all of it
            connection.http.request(request.method, self._prefix + request.path, request.body, headers)
        response = connection.http.getresponse()
        body = receive(response) if receive is not None and response.status < 300 else response.read()
        connection.used = time.monotonic()
        return response, body

    def _connect(self, fresh: bool) -> tuple[_ThreadConnection, bool]:
        """Return the open connection of this thread, and whether it was open before."""
        mine: _ThreadConnection | None = getattr(self._own, "connection", None)
        if mine is None or mine.process != os.getpid():  # after a fork it is the connection of the parent process
            kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
            mine = self._own.connection = _ThreadConnection(kind(self._host, self._port, timeout=self._timeout))
            self._opened.add(mine)
        if mine.http.sock is not None:
            if not fresh and time.monotonic() - mine.used < _STALE_AFTER:
                return mine, True
            mine.close()
        mine.http.connect()
        mine.used = time.monotonic()
        return mine, False

    def _disconnect(self) -> None:
        mine: _ThreadConnection | None = getattr(self._own, "connection", None)
        if mine is not None:
            mine.close()


class _ThreadConnection:
    """The connection of one thread of one process; it is closed when the thread ends."""

    def __init__(self, connection: http.client.HTTPConnection):
        self.http, self.process, self.used = connection, os.getpid(), 0.0

    def close(self) -> None:
        self.http.close()

    __del__ = close


def error_of(status: int, body: bytes) -> RosenblattError:
    """Return the error that problem details (RFC 9457) describe, as the type that the library raises for it."""
    problem = _problem_of(body)
    kind = str(problem.get("type", "")).removeprefix(PROBLEM)
    detail = str(problem.get("detail") or problem.get("title") or f"the server answered {status} without a reason")
    facts = {name: problem[name] for name in _FACTS if problem.get(name) is not None}
    if not isinstance(facts.get("row", 0), int):
        del facts["row"]
    cls = _error_types().get(kind)
    if status == 401:
        facts["hint"] = "; ".join(["pass token= to Client", *([str(facts["hint"])] if "hint" in facts else [])])
    if cls is None:
        return ServerRefused(detail, status, kind, **facts)
    error = cls.__new__(cls, detail)
    RosenblattError.__init__(error, detail, **facts)
    known = {"type", "title", "status", "detail", "instance", *_FACTS}
    for name, value in problem.items():  # what a type has beside the facts that all have
        if name not in known and name.isidentifier() and not name.startswith("_") and getattr(error, name, None) is None:
            setattr(error, name, value)
    return error


def _error_types() -> dict[str, type[RosenblattError]]:
    """Return the types of errors by what problem details call them: InvalidData is "invalid-data"."""
    found = {}
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, RosenblattError) and not issubclass(value, OSError):
            found[problem_kind(value)] = value
    return found


def _problem_of(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _retry_after(response: http.client.HTTPResponse) -> float:
    """Return how many seconds a server wants to be left alone; 0 where it does not say."""
    text = (response.getheader("Retry-After") or "").strip()
    return min(float(text), LONGEST_RETRY_AFTER) if text.isascii() and text.isdigit() else 0.0


def _reason(error: Exception, connected: bool) -> str:
    """Return why there was no answer."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the connection failed: {words}" if connected else words
