"""Load for a server: prepared requests over connections that are kept open, from a process of its own, so that making the
load costs little of what is measured.

A client sends its next request when the answer to the one before has come. With a rate it waits until the request is due,
and the time of an answer counts from then, not from the moment at which a busy client came round to sending it.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

import numpy as np

SILENCE = 60  # seconds after the end in which the last answers must come


class Load(NamedTuple):
    """Requests that some clients send over and over, each with the next one that no other has sent."""

    requests: list[bytes]
    clients: int
    rate: float | None = None  # requests a second of all clients together; None: as fast as answers come
    count: int | None = None  # stop after so many requests; None: after the time


class Measured(NamedTuple):
    """What came of a load."""

    seconds: float  # from the first request to the last answer
    statuses: Counter[int]
    latencies: list[float]  # seconds, of each answer
    first_error: str

    @property
    def good(self) -> int:
        """How many answers were good."""
        return sum(count for status, count in self.statuses.items() if 200 <= status < 300)

    def percentile(self, share: float) -> float:
        """Return the latency in milliseconds that this percentage of answers did not exceed."""
        return float(np.percentile(self.latencies, share)) * 1000


def request_bytes(method: str, path: str, body: Any = None, content_type: str = "application/json") -> bytes:
    """Return a request as the bytes to send."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: {content_type}\r\nContent-Length: {len(content)}\r\n" if body is not None else ""
    return head.encode() + b"\r\n" + content


class Client(asyncio.Protocol):
    """A connection that sends one request after another."""

    def __init__(self, take: Callable[[], bytes | None], pause: float | None, first: float, done: asyncio.Future):
        self.take, self.pause, self.due, self.done = take, pause, first, done
        self.buffer, self.missing = bytearray(), 0
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.first_error = ""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self.pause is None:
            self.send()
        else:
            asyncio.get_running_loop().call_at(self.due, self.send)

    def send(self) -> None:
        """Send the next request, or end."""
        content = self.take()
        if content is None:
            self.transport.close()
            return
        self.sent = time.monotonic() if self.pause is None else self.due
        self.transport.write(content)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.missing:
            if len(self.buffer) < self.missing:
                return
        else:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end]).lower()
            self.missing = end + 4 + int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.buffer) < self.missing:
                return
        now = time.monotonic()
        status = int(self.buffer[9:12])
        self.statuses[status] += 1
        self.latencies.append(now - self.sent)
        if status >= 300 and not self.first_error:
            self.first_error = bytes(self.buffer[:500]).decode(errors="replace")
        del self.buffer[: self.missing]
        self.missing = 0
        if self.pause is None:
            self.send()
        else:
            self.due = max(self.due + self.pause, now - 1)  # what was missed for more than a second is not caught up with
            if self.due <= now:
                self.send()
            else:
                asyncio.get_running_loop().call_at(self.due, self.send)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def send_all(port: int, loads: list[Load], seconds: float) -> list[Measured]:
    """Send the loads at the same time and return what came of each."""
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    end = began + seconds
    groups: list[list[Client]] = []
    for load in loads:
        source: Iterable[bytes] = cycle(load.requests)
        requests = iter(source if load.count is None else islice(source, load.count))

        def take(requests: Any = requests, limited: bool = load.count is not None) -> bytes | None:
            return None if not limited and time.monotonic() >= end else next(requests, None)

        pause = None if load.rate is None else load.clients / load.rate
        groups.append([])
        for number in range(load.clients):
            first = began if pause is None else began + pause * number / load.clients
            client = Client(take, pause, first, loop.create_future())
            await loop.create_connection(lambda client=client: client, "127.0.0.1", port)
            groups[-1].append(client)
    everybody = [client.done for group in groups for client in group]
    limit = None if any(load.count is not None for load in loads) else seconds + SILENCE
    await asyncio.wait_for(asyncio.gather(*everybody), limit)
    took = time.monotonic() - began
    return [
        Measured(
            took,
            sum((client.statuses for client in group), Counter()),
            [latency for client in group for latency in client.latencies],
            next((client.first_error for client in group if client.first_error), ""),
        )
        for group in groups
    ]


def work(pipe: Pipe, port: int, loads: list[Load], seconds: float) -> None:
    """Send the loads and return the measurements through the pipe."""
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    pipe.send(run(send_all(port, loads, seconds)))


class Sending:
    """Loads that a process of its own is sending."""

    def __init__(self, port: int, loads: list[Load], seconds: float):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(other, port, loads, seconds), daemon=True)
        self.process.start()
        other.close()

    def wait(self) -> list[Measured]:
        """Return what was measured, when all answers have come."""
        try:
            return self.pipe.recv()
        finally:
            self.process.join(SILENCE)


def send(port: int, loads: list[Load], seconds: float = 0) -> list[Measured]:
    """Send loads from a process of its own and return what came of each."""
    return Sending(port, loads, seconds).wait()
