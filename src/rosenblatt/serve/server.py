"""Open a folder and serve it, until the process is asked to stop: then finish what was accepted, and end."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvicorn
import uvloop

from rosenblatt.errors import DamagedLog, InvalidParameter, OutputError
from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.serve.app import HotRoutes, make_app
from rosenblatt.serve.guard import LOOPBACK_HOSTS, Guard
from rosenblatt.serve.heap import Heap
from rosenblatt.serve.jobs import Learned
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.log import Log, ModelRecord
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.predictions import PredictionStore
from rosenblatt.serve.protocol import with_limits
from rosenblatt.serve.served_model import ServedModel
from rosenblatt.serve.service import Service
from rosenblatt.serve.snapshots import remove_strangers
from rosenblatt.serve.state import Entry, Outcome
from rosenblatt.serve.tokens import Tokens
from rosenblatt.serve.writer import Writer

SWITCH_SECONDS = 0.0005  # after which one thread lets another one run: a prediction waits no longer for a learner
BACKLOG = 1024
MUCH_HELD = 128 << 20  # bytes of requests, after which memory is given back
LAST_PORT = 65_535
TIDY_SECONDS = 2.0


class Started(NamedTuple):
    """A server that has begun to listen."""

    url: str
    models: int
    examples: int
    tokens: bool  # whether requests need a token


def is_loopback(host: str) -> bool:
    """Return whether an address is that of this machine alone.

    Parameters
    ----------
    host : str
        A name or an address.

    Returns
    -------
    loopback : bool
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load_models(writer: Writer, note: Callable[[str], None]) -> None:
    """Bring every model of a log to its last state.

    Parameters
    ----------
    writer : Writer
        The writer, which has not been started.
    note : function from str
        Is called with what is worth knowing.
    """
    read, records = writer.log.read, writer.log.read.models()
    for record in records:
        writer.models[record.name] = _load(writer, record)
    known = [snapshot for record in records for snapshot in read.snapshots(record.id)]
    writer.log.begin_writing()
    remove_strangers(writer.log.folder, known)
    for problem in writer.states.problems:
        note(problem)


def _load(writer: Writer, record: ModelRecord) -> ServedModel:
    read = writer.log.read
    learned = 0

    def note(entry: Entry, outcome: Outcome) -> None:
        nonlocal learned
        learned += outcome.learned
        note_outcome(entry, outcome)

    def note_outcome(entry: Entry, outcome: Outcome) -> None:
        if entry.seq in unanswered:
            unanswered.remove(entry.seq)
            writer.outcomes[record.id, entry.seq] = Learned(entry.seq, *outcome).to_json()

    try:
        snapshots = sorted(snapshot.seq for snapshot in read.snapshots(record.id))
        unanswered = set(read.unanswered(record.id, max([read.base_seq(record.id), *snapshots])))
        state = writer.states.at(record.id, note=note)
        while unanswered:  # those that the model was set back over
            writer.states.at(record.id, max(unanswered), note_outcome)
    except DamagedLog:
        raise
    except Exception as error:
        problem = f"its entries cannot be applied: {type(error).__name__}: {error}"
        raise DamagedLog(problem, path=writer.log.path, model=record.name) from error
    _, chain, time = read.last(record.id)
    model = ServedModel(record, state, chain, time)
    model.snapshots = tuple(snapshots)
    model.snapshot_seq = max(snapshots, default=0)
    model.examples_since = learned
    model.bytes_since = read.size(record.id, model.snapshot_seq)
    model.archived = read.base_seq(record.id)
    model.log_bytes = read.size(record.id, model.archived)
    return model


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(guard: Guard) -> uvicorn.Server:
    """Return a server of what a guard stands before, with the guard's limits on connections; it leaves signals alone."""
    limits = guard.limits
    config = uvicorn.Config(
        guard, http=with_limits(limits), ws="none",
        lifespan="off", log_level="error", access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=int(limits.idle_seconds), timeout_graceful_shutdown=int(limits.stop_seconds), backlog=BACKLOG,
    )  # fmt: skip
    return _Uvicorn(config)


def url_of(listener: socket.socket) -> str:
    """Return the address that a browser needs."""
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def serve(
    folder: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    accept_loss: bool = False,
    hosts: tuple[str, ...] = (),
    started: Callable[[Started], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> None:
    """Serve the models of a folder until SIGINT or SIGTERM.

    Parameters
    ----------
    folder : Path
        The folder; it is made if there is none.
    host : str, default="127.0.0.1"
        The address to listen at. One that other machines can reach needs tokens.
    port : int, default=8000
        The port; 0: one that is free.
    limits : Limits, optional
        What requests and models may take.
    accept_loss : bool, default=False
        Serve what is there even if the end of the log is missing.
    hosts : tuple of str
        Names that the Host header may have besides those of this machine.
    started : function from Started, optional
        Is called when the server listens.
    note : function from str, optional
        Is called with what is worth knowing.

    Raises
    ------
    FolderInUse
        If another server has the folder.
    DamagedLog
        If the log is damaged.
    InvalidParameter
        If there is no such port, or the address needs tokens and there are none.
    OutputError
        If it cannot listen there, or the folder cannot be made.

    Examples
    --------
    A server that other machines can reach needs tokens:

    >>> try:
    ...     serve(Path("models"), host="0.0.0.0")
    ... except InvalidParameter as error:
    ...     print(error.problem, error.hint, sep="\\n")
    host 0.0.0.0 can be reached by other machines, so the folder must have tokens, and it has none
    make one: rosenblatt token add models --scope administer
    """
    limits = limits or Limits()
    if folder.exists() and not folder.is_dir():
        raise OutputError("this is a file, not a folder", folder)
    endpoint = resolve_host(host, port)
    local, tokens = is_loopback(host), Tokens(folder)
    needed = tokens.needed()
    if not local and not needed:
        raise InvalidParameter(
            "host", host, None,
            f"host {host} can be reached by other machines, so the folder must have tokens, and it has none",
            hint=f"make one: rosenblatt token add {folder} --scope administer",
        )  # fmt: skip
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        listening(endpoint) as listener,  # first, so that no folder is made where it cannot listen
        Log(folder, accept_loss) as log,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        allowed = None if needed and not local else LOOPBACK_HOSTS | {host} | set(hosts)
        runner.run(_serve(log, listener, limits, tokens, allowed, started, note or (lambda text: None)))


async def _serve(
    log: Log,
    listener: socket.socket,
    limits: Limits,
    tokens: Tokens,
    hosts: frozenset[str] | None,
    started: Callable[[Started], None] | None,
    note: Callable[[str], None],
) -> None:
    loop, metrics = asyncio.get_running_loop(), Metrics()
    writer = Writer(log, limits, loop, metrics)
    try:
        load_models(writer, note)
        _warm_up()
    except BaseException:
        writer.states.close()
        raise
    store = PredictionStore(log.folder, limits, writer.disk)
    service = Service(log.folder, writer, store, limits, metrics)
    writer.start()
    heap = Heap()
    gc.freeze()  # modules, kernels and models as they are now are no garbage that is worth looking for
    guard = Guard(HotRoutes(make_app(service)), tokens, limits, hosts, metrics)
    server = make_server(guard)

    def stop() -> None:
        service.stop()
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    tidying = loop.create_task(_tidy(store, writer, guard, heap))
    try:
        if started is not None:
            examples = sum(model.published.learner.seen for model in service.models.values())
            started(Started(url_of(listener), len(service.models), examples, tokens.needed()))
        await server.serve(sockets=[listener])
    finally:
        tidying.cancel()
        writer.stop()
        await asyncio.to_thread(writer.join)
        store.close()


async def _tidy(store: PredictionStore, writer: Writer, guard: Guard, heap: Heap) -> None:
    """Look after the rows of predictions, and memory that is not needed any more, from time to time."""
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        await asyncio.to_thread(store.tidy, writer.needs_room)
        if guard.most_held_bytes > MUCH_HELD:
            guard.most_held_bytes = guard.held_bytes
            await asyncio.to_thread(heap.trim)


class Endpoint(NamedTuple):
    """Where to listen, and the address that it is."""

    host: str
    port: int
    family: socket.AddressFamily
    address: tuple[object, ...]

    def refusal(self, error: OSError) -> OutputError:
        """Return the error that says why it is not possible."""
        if error.errno == errno.EADDRINUSE:
            problem = f"port {self.port} of {self.host} is in use"
            return OutputError(problem, None, error.errno, hint="--port 0 takes any free port")
        return OutputError(f"cannot listen at {self.host}, port {self.port}: {error.strerror}", None, error.errno)


def resolve_host(host: str, port: int) -> Endpoint:
    """Return the address of a name."""
    if not 0 <= port <= LAST_PORT:
        raise InvalidParameter("port", port, f"a whole number from 0 to {LAST_PORT}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OutputError(f"cannot listen at {host}, port {port}: {error.strerror}", None, error.errno) from None
    except UnicodeError:
        raise OutputError(f"cannot listen at {host}: it is not a name of a machine", None) from None
    return Endpoint(host, port, family, address)


@contextmanager
def listening(endpoint: Endpoint) -> Iterator[socket.socket]:
    """Listen at an address, as long as the block runs."""
    listener = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(endpoint.address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise endpoint.refusal(error) from None
    try:
        yield listener
    finally:
        listener.close()


def _warm_up() -> None:
    """Load, or compile, the kernels of a learner, so that the first request need not wait for them."""
    model = OnlinePerceptron(keep="average")
    for label in ("a", "b", "a", "c", "b"):
        model.predict_one({"a": 1.0, label: 2.0})
        model.learn_one({"a": 1.0, label: 2.0}, label)
