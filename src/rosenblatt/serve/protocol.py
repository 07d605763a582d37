"""A connection has a deadline for whatever its client has to do next: send the head, send the body, read the answer.

Connections have no timers for this. Each notes when something last moved, and one timer of the server looks at all of them
again and again, as long as there are any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from rosenblatt.errors import LimitExceeded
from rosenblatt.serve.guard import SECURITY_HEADERS
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.problem_details import from_error, problem

if TYPE_CHECKING:
    from starlette.responses import Response
    from uvicorn._types import ASGISendEvent
    from uvicorn.config import Config
    from uvicorn.server import ServerState

_TICK = 0.001  # seconds: the clock of uvloop counts whole milliseconds, and no client is cut before its time
_LEAST_READ = 2**14  # bytes of an answer that a client has to read in `send_seconds`, or
_LEAST_SHARE = 20  # … one part of so many of what waits for it, if that is more
_LEAST_RATE = 2**16  # bytes a second that give a body more time than `whole_body_seconds`
_DROPPED_BODIES = 4  # times `body_bytes` that may come after a refusal: a client reads that when it has sent all
_HEAD, _BODY, _NOTHING = "head", "body", "nothing"  # what a client still has to send


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's connection, with limits: clients that are slow, or send too much in the head, are cut.

    `with_limits` makes the class that uvicorn takes. The server has to run without websockets (`ws="none"`).
    """

    limits: Limits
    sweeper: Sweeper

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.timeout_keep_alive = self.limits.idle_seconds  # type: ignore[assignment]  # any number of seconds will do
        self.awaited = _HEAD
        self.began = self.moved = self.loop.time()  # when the first byte of it came, and when the last one until now
        self.received = 0  # bytes that came for it
        self.bodiless = 0  # bytes since the last one of a body: sizes of chunks and what follows the last chunk
        self.dropped = 0  # bytes of a body that came after the answer
        self.shared = False  # whether the head began together with the end of the request before
        self.refusal: Response | None = None  # of a head that is too large
        self.unread_since: float | None = None  # since when the client reads no answer
        self.unread = 0  # bytes that it had not read then

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Note a new client; one too many is sent away."""
        super().connection_made(transport)
        self.sweeper.start(self)
        if len(self.connections) > self.limits.connections:
            error = LimitExceeded("connections", len(self.connections), self.limits.connections, hint="try again later")
            self.close_with(from_error(error))

    def data_received(self, data: bytes) -> None:
        """Parse what the client sent."""
        self.moved = self.loop.time()
        if self.awaited is _NOTHING:
            self._await(_HEAD)
        self.received += len(data)
        self.bodiless += len(data)
        super().data_received(data)
        size = self.received if self.awaited is _HEAD else self.bodiless if self.awaited is _BODY else 0
        if size > self.limits.head_bytes and not self.transport.is_closing():
            self.close_with(self._too_large_head(size))

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.shared = self.awaited is _NOTHING
        if self.shared:
            self._await(_HEAD)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; those that follow a body in chunks (trailers) are not."""
        if self.awaited is _HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer a request, unless its head is too large."""
        if self.shared or self.received > self.limits.head_bytes:  # which is not the size of the head alone
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self.limits.head_bytes:
                self.refusal = self._too_large_head(size)
                raise ValueError  # ends the parser, and uvicorn calls send_400_response
        super().on_headers_complete()
        self.cycle.__class__ = _Answer
        if self.scope["http_version"] == "1.0":
            self.cycle.waiting_for_100_continue = False
            self.cycle.__class__ = _UnchunkedAnswer
        self._await(_BODY)

    def on_body(self, body: bytes) -> None:
        """Hand on a piece of a body; what comes after the answer is dropped, within a limit."""
        self.bodiless = 0
        super().on_body(body)
        if self.cycle.response_complete:
            self.dropped += len(body)
            if self.dropped > _DROPPED_BODIES * self.limits.body_bytes:
                self.transport.abort()

    def on_message_complete(self) -> None:
        """Note that the whole request is here."""
        super().on_message_complete()
        self._await(_NOTHING)

    def pause_writing(self) -> None:
        """Note that the client does not read the answer as fast as it is written."""
        super().pause_writing()
        self.unread_since, self.unread = self.loop.time(), self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """Note that the client has read most of what was written."""
        super().resume_writing()
        self.unread_since = None

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, and close the connection."""
        detail = "the request is not HTTP that this server understands"
        self.close_with(self.refusal or problem(400, "malformed", "The request is malformed", detail))

    def close_with(self, response: Response) -> None:
        """Answer what the client sends now, unless that has an answer, and close the connection."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and self.awaited is _HEAD:
            cycle.keep_alive = False  # the requests before this one are answered first, this one not at all
            self.flow.pause_reading()
            return
        if self.awaited is _HEAD or not cycle.response_started:
            head = [STATUS_LINE[response.status_code], b"connection: close\r\n"]
            for name, value in [*self.server_state.default_headers, *response.raw_headers, *SECURITY_HEADERS]:
                head += [name, b": ", value, b"\r\n"]
            self.transport.write(b"".join([*head, b"\r\n", response.body]))
        if self.awaited is _BODY and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    def check_deadlines(self, now: float) -> None:
        """Close the connection if its client takes too long."""
        if self.unread_since is None and self.transport.is_closing():
            self.unread_since, self.unread = now, self.transport.get_write_buffer_size()
        if self.unread_since is not None:
            if now - self.unread_since > self.limits.send_seconds:
                left = self.transport.get_write_buffer_size()
                if self.unread - left < max(_LEAST_READ, self.unread // _LEAST_SHARE):
                    self.transport.abort()
                self.unread_since, self.unread = now, left
        elif self.awaited is _HEAD:
            if self.cycle is not None and not self.cycle.response_complete:
                self.began = now  # it waits for an answer, and has begun to send the next request
            elif now - self.began > self.limits.header_seconds:
                if self.received:
                    self.close_with(self._too_slow("head", self.limits.header_seconds))
                else:
                    self.transport.close()  # a browser opens connections that it may not need
        elif self.awaited is _BODY:
            if self.flow.read_paused:
                self.began += now - self.moved  # it cannot send now
                self.moved = now
            elif now - self.moved > self.limits.body_seconds:
                self.close_with(self._too_slow("body", self.limits.body_seconds))
            elif now - self.began > self.limits.whole_body_seconds + self.received / _LEAST_RATE:
                self.close_with(self._too_slow("body", self.limits.whole_body_seconds))

    def _await(self, part: str) -> None:
        self.awaited, self.began = part, self.moved
        self.received = self.bodiless = self.dropped = 0

    def _too_slow(self, part: str, seconds: float) -> Response:
        detail = f"the {part} of the request did not come within {seconds:g} seconds"
        return problem(408, "too-slow", "The client was too slow", detail)

    def _too_large_head(self, size: int) -> Response:
        error = LimitExceeded("head_bytes", size, self.limits.head_bytes, hint="send less in headers and in the URL")
        return from_error(error)


class Sweeper:
    """The one timer that checks the deadlines of all connections; there is none while there are no connections.

    Parameters
    ----------
    interval : float
        Seconds between two checks.
    """

    def __init__(self, interval: float):
        self.interval = interval
        self.timer: asyncio.TimerHandle | None = None

    def start(self, connection: LimitedProtocol) -> None:
        """Check this connection from now on, with all others of its server."""
        if self.timer is None:
            self.timer = connection.loop.call_later(self.interval, self._sweep, connection)

    def _sweep(self, some: LimitedProtocol) -> None:
        now, self.timer = some.loop.time() - _TICK, None
        for connection in list(some.connections):
            if isinstance(connection, LimitedProtocol):
                connection.check_deadlines(now)
        if some.connections:
            self.start(some)


def with_limits(limits: Limits) -> type[LimitedProtocol]:
    """Return the class of the connections of a server with these limits, as `uvicorn.Config(http=…)` takes it.

    Parameters
    ----------
    limits : Limits
        The limits of the server.

    Returns
    -------
    type of LimitedProtocol
        The class.
    """
    shortest = min(limits.header_seconds, limits.body_seconds, limits.whole_body_seconds, limits.send_seconds)
    facts: Mapping[str, object] = {"limits": limits, "sweeper": Sweeper(min(1.0, shortest / 4))}
    return type("LimitedProtocol", (LimitedProtocol,), dict(facts))


class _Answer(RequestResponseCycle):
    """An answer that nobody waits for any more, because the client has gone, is not sent."""

    async def send(self, message: ASGISendEvent) -> None:
        if self.transport.is_closing():
            self.disconnected = True
        await super().send(message)


class _UnchunkedAnswer(_Answer):
    """The answer to a client that speaks HTTP/1.0: it knows no chunks, so an answer of unknown size ends with the
    connection."""

    has_length = True

    async def send(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start":
            self.has_length = any(name.lower() == b"content-length" for name, _ in message.get("headers", []))
            if not self.has_length:
                self.chunked_encoding = False
        elif message["type"] == "http.response.body" and not self.has_length:
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)
