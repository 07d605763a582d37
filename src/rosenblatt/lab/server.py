"""Listen on this machine and serve the lab, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import uvloop

from rosenblatt.errors import InvalidParameter, OutputError
from rosenblatt.lab.app import RULES, make_app
from rosenblatt.lab.forms import LEARNERS
from rosenblatt.lab.points import Points
from rosenblatt.lab.recording import warm
from rosenblatt.lab.warming import Warming
from rosenblatt.serve.guard import LOOPBACK_HOSTS, Guard
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.server import is_loopback, listening, make_server, resolve_host, url_of

PORT = 8100  # where the lab is, unless that port is taken
_PORTS = 20  # that are tried
LIMITS = Limits(body_bytes=2**20, import_bytes=2**20, connections=100, stop_seconds=3.0)


def serve_lab(
    host: str = "127.0.0.1",
    port: int | None = None,
    points: Points | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve the lab until SIGINT or SIGTERM.

    Parameters
    ----------
    host : str, default="127.0.0.1"
        The address to listen at, one of this machine alone: the lab asks nobody who they are.
    port : int, optional
        The port; 0 is any that is free, and None the first that is free from `PORT` on.
    points : Points, optional
        The points that the page begins with.
    started : function from str, optional
        Is called with the address when the lab listens.

    Raises
    ------
    InvalidParameter
        If other machines can reach the address, or there is no such port.
    OutputError
        If it cannot listen there.
    """
    if not is_loopback(host):
        hint = "ssh -L 8100:127.0.0.1:8100 MACHINE, on another machine, brings the lab there"
        raise InvalidParameter("host", host, "an address of this machine alone: 127.0.0.1, ::1 or localhost", hint=hint)
    with (
        _listening(host, port) as listener,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(listener, frozenset(LOOPBACK_HOSTS | {host}), points, started))


@contextmanager
def _listening(host: str, port: int | None) -> Iterator[socket.socket]:
    """Listen at a port, or at the first that is free."""
    with ExitStack() as stack:
        for tried in range(PORT, PORT + _PORTS) if port is None else ():
            try:
                listener = stack.enter_context(listening(resolve_host(host, tried)))
            except OutputError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            yield listener
            return
        yield stack.enter_context(listening(resolve_host(host, port or 0)))


async def _serve(
    listener: socket.socket, hosts: frozenset[str], points: Points | None, started: Callable[[str], None] | None
) -> None:
    warming = Warming(LEARNERS, warm)
    server = make_server(Guard(make_app(warming, points), None, LIMITS, hosts, rules=RULES))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda: setattr(server, "should_exit", True))
    warming.start()
    try:
        if started is not None:
            started(url_of(listener))
        await server.serve(sockets=[listener])
    finally:
        await asyncio.to_thread(warming.stop)
