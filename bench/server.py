"""`rosenblatt serve` as a process of its own, and the plainest way to talk to it: what a stranger sees."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = [sys.executable, "-m", "rosenblatt", "serve"]
START = 120  # seconds until a server must be ready, cold kernels included
ANSWER = 60  # seconds until an answer must have come
ADDRESS = re.compile(rb"http://([\w.\[\]:]+):(\d+)")


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    def lines(self) -> list[Any]:
        """Return the body as lines of JSON."""
        return [json.loads(line) for line in self.body.splitlines() if line]


class Refused(Exception):
    """An answer whose status is not what was expected."""


class ServerEnded(Exception):
    """The server ended, or was not ready in time."""


class Connection:
    """A connection that is kept open, and opened again when the server has closed it."""

    def __init__(self, port: int, token: str | None = None, timeout: float = ANSWER):
        self.token = token
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request and return the answer; a body that is not bytes goes as JSON.

        Underscores in the names of headers stand for hyphens.
        """
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self.http.request(method, path, body, sent)
            answer = self.http.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        except AttributeError as error:  # what http.client makes of an answer that ends while its socket is closed
            self.http.close()
            raise http.client.IncompleteRead(b"") from error
        except BaseException:
            self.http.close()
            raise

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request whose answer must be good."""
        answer = self.request(method, path, body, **headers)
        if answer.status >= 300:
            raise Refused(f"{method} {path}: {answer.status} {answer.body[:500]!r}")
        return answer

    def close(self) -> None:
        """Close it."""
        self.http.close()


class Server:
    """`rosenblatt serve FOLDER` in a new process, on a port that the system chooses."""

    ready = "/readyz"  # what is answered as soon as it is ready

    def __init__(self, folder: Path, *options: str, environment: dict[str, str] | None = None):
        self.folder, self.options = folder, options
        self.environment = os.environ | {"PYTHONUNBUFFERED": "1"} | (environment or {})
        self.process: subprocess.Popen[bytes] | None = None
        self.output = folder.parent / f"{folder.name}.output"
        self.connections: list[Connection] = []
        self.port = 0
        self.seconds = 0.0  # from the start of the process to its being ready

    def command(self) -> list[str]:
        """Return the command that starts it."""
        return [*COMMAND, str(self.folder)]

    def launch(self) -> None:
        """Start the process without waiting for it."""
        command = [*self.command(), "--port", "0", *self.options]
        with open(self.output, "ab") as output:
            self.offset = output.seek(0, os.SEEK_END)
            self.began = time.monotonic()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.environment
            )

    def wait_until_ready(self, within: float = START) -> None:
        """Wait until it says so."""
        assert self.process is not None
        deadline = self.began + within
        self.port = 0
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise ServerEnded(f"exit code {self.process.returncode}: {self.said()[-2000:]!r}")
            if not self.port and (found := ADDRESS.search(self.said())):
                self.port = int(found[2])
            if self.port:
                failures = contextlib.suppress(OSError, http.client.HTTPException)
                with failures, contextlib.closing(Connection(self.port)) as connection:
                    if connection.request("GET", self.ready).status == 200:
                        self.seconds = time.monotonic() - self.began
                        return
            time.sleep(0.005)
        self.kill()
        raise ServerEnded(f"not ready after {within} s: {self.said()[-2000:]!r}")

    def start(self, within: float = START) -> Server:
        """Start the process and wait until it is ready."""
        self.launch()
        self.wait_until_ready(within)
        return self

    def said(self) -> bytes:
        """Return what this process has written to its standard output and error."""
        with open(self.output, "rb") as output:
            output.seek(self.offset)
            return output.read()

    def connect(self, **options: Any) -> Connection:
        """Return a new connection, which is closed when the server ends."""
        self.connections.append(Connection(self.port, **options))
        return self.connections[-1]

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._end(signal.SIGKILL, 30)

    def stop(self, within: float = 60) -> int:
        """End it with SIGTERM and return its exit code."""
        return self._end(signal.SIGTERM, within)

    def _end(self, number: int, within: float) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            code = process.wait(within)
            while self.connections:
                self.connections.pop().close()
            return code
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise ServerEnded(
                f"signal {number} did not end the server within {within} s: {self.said()[-2000:]!r}"
            ) from None

    def resident_bytes(self) -> int:
        """Return the memory that the process has now."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) << 10

    def __enter__(self) -> Server:
        return self if self.process else self.start()

    def __exit__(self, *error: object) -> None:
        self.kill()


class Lab(Server):
    """`rosenblatt lab` in a new process; the folder is only where its output is kept beside."""

    ready = "/lab"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "rosenblatt", "lab", "--no-open"]


def check_folder(folder: Path, within: float = 300) -> subprocess.CompletedProcess[bytes]:
    """Run `rosenblatt serve FOLDER --check`."""
    return subprocess.run([*COMMAND, str(folder), "--check"], capture_output=True, timeout=within)
