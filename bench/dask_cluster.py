"""A Dask cluster as processes of their own, each of which can be killed, and training on it in another process.

python -m bench.dask_cluster ADDRESS MODEL FILES --shards 8 --passes 3
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

START = 120  # seconds until a process must be ready, cold kernels included
FOLDER = Path(__file__).parents[1]


class ProcessEnded(Exception):
    """A process ended, or was not ready in time."""


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has had so far."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) << 10


class DaskCluster:
    """`dask scheduler` and so many `dask worker` of one thread each, without nannies: what is killed stays dead."""

    def __init__(self, folder: Path, workers: int, memory_limit: str = "4GB"):
        self.folder, self.count, self.memory_limit = folder, workers, memory_limit
        self.port = free_port()
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.started = 0  # workers so far, for the names of their folders

    @property
    def address(self) -> str:
        """The address of the scheduler, which stays the same if it is started again."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> DaskCluster:
        """Start the scheduler and all workers, and wait until they are ready."""
        ready = self.folder / "scheduler.json"
        ready.unlink(missing_ok=True)
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--scheduler-file", str(ready)]
        self.scheduler = self._launch("scheduler", options)
        self._wait(self.scheduler, lambda: ready.exists() and ready.stat().st_size > 0)
        for _ in range(self.count):
            self.start_worker()
        self.wait_for_workers(self.count)
        return self

    def start_worker(self) -> None:
        """Start one more worker, without waiting for it."""
        self.started += 1
        place = self.folder / f"worker-{self.started}"
        options = [self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", self.memory_limit]
        self.workers.append(self._launch("worker", [*options, "--local-directory", str(place), "--death-timeout", "60"]))

    def wait_for_workers(self, count: int) -> None:
        """Wait until so many workers are at the scheduler."""
        from distributed import Client

        with Client(self.address, timeout=START, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=START)

    def kill_worker(self, number: int) -> None:
        """Kill a worker with SIGKILL."""
        worker = self.workers.pop(number)
        worker.kill()
        worker.wait(30)

    def kill_scheduler(self) -> None:
        """Kill the scheduler with SIGKILL."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait(30)

    def stop(self) -> None:
        """End all processes."""
        for process in (*self.workers, *([self.scheduler] if self.scheduler else [])):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(30)
        self.workers, self.scheduler = [], None

    def unfinished(self) -> str:
        """Return the tasks that the scheduler has not finished, and what they wait for."""
        from distributed import Client

        with Client(self.address, timeout=START, set_as_default=False) as client:
            return "\n".join(client.run_on_scheduler(_unfinished))

    def said(self) -> str:
        """Return the end of what all processes have written."""
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in self.folder.glob("*.output")
        )

    def _launch(self, name: str, options: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", name, *options]
        with open(self.folder / f"{name}.output", "ab") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=FOLDER)

    def _wait(self, process: subprocess.Popen[bytes], ready: Any) -> None:
        deadline = time.monotonic() + START
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProcessEnded(f"exit code {process.returncode}: {self.said()}")
            time.sleep(0.01)

    def __enter__(self) -> DaskCluster:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def _unfinished(dask_scheduler: Any) -> list[str]:
    """One line for each task that is not finished; run by the scheduler, which names its parameter."""
    lines = [f"workers {sorted(dask_scheduler.workers)}"]
    for task in dask_scheduler.tasks.values():
        if task.state != "memory" or not task.who_has:
            waits = {other.key: other.state for other in task.dependencies if other.state != "memory" or not other.who_has}
            lines.append(f"{task.key} {task.state} on {task.processing_on} waits for {waits}")
    return lines


class Training(NamedTuple):
    """What is trained: files, and how."""

    files: tuple[str, ...]
    shards: int = 8
    mixing: str = "uniform"
    passes: int = 3
    stream: bool = False


class Trained(NamedTuple):
    """How a training in another process ended."""

    seconds: float
    peak: int  # bytes of its memory, at most
    error: str  # the name of its exception, or nothing
    message: str


class TrainingProcess:
    """A training on a cluster in a process of its own."""

    def __init__(self, address: str, training: Training, model: Path, checkpoint: Path | None = None, resume: bool = False):
        self.model = model
        command = [sys.executable, "-X", "faulthandler", "-m", "bench.dask_cluster", address, str(model), *training.files]
        command += ["--shards", str(training.shards), "--mixing", training.mixing, "--passes", str(training.passes)]
        command += ["--stream"] if training.stream else []
        command += [] if checkpoint is None else ["--checkpoint", str(checkpoint)]
        command += ["--resume"] if resume else []
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=FOLDER
        )
        self._next()  # training begins

    def _next(self) -> dict[str, Any]:
        output: IO[str] | None = self.process.stdout
        line = output.readline() if output is not None else ""
        if not line:
            raise ProcessEnded(f"a training ended without a word: {self.process.communicate(timeout=30)[1][-3000:]}")
        return json.loads(line)

    def wait(self, within: float, state: Callable[[], str] = lambda: "") -> Trained:
        """Wait until it has ended; if that takes too long, `state` says more about it."""
        try:
            output, errors = self.process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            now = state()
            self.process.send_signal(signal.SIGABRT)  # it says where it is
            where = self.process.communicate()[1].partition("Extension modules")[0][-3000:]
            raise ProcessEnded(f"training takes more than {within:.0f} s: {where}\n{now}") from None
        if not output:
            raise ProcessEnded(f"a training ended with the exit code {self.process.returncode}: {errors[-3000:]}")
        return Trained(**json.loads(output.splitlines()[-1]))


def main() -> int:
    """Train on a cluster, save the model, and print how long it took."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("address")
    options.add_argument("model", type=Path)
    options.add_argument("files", nargs="+")
    options.add_argument("--shards", type=int, default=8)
    options.add_argument("--mixing", default="uniform")
    options.add_argument("--passes", type=int, default=3)
    options.add_argument("--stream", action="store_true")
    options.add_argument("--checkpoint", type=Path)
    options.add_argument("--resume", action="store_true")
    given = options.parse_args()

    from rosenblatt.cluster import train
    from rosenblatt.errors import RosenblattError
    from rosenblatt.workflow import Options, learner_named, reading_for

    print(json.dumps({"began": True}), flush=True)
    began, error, message = time.monotonic(), "", ""
    try:
        model = train(
            given.files, reading_for(given.files), learner_named("perceptron", {}),
            Options(passes=given.passes, stream=given.stream), client=given.address, shards=given.shards,
            mixing=given.mixing, checkpoint=given.checkpoint, resume=given.resume,
        )  # fmt: skip
        model.save(given.model)
    except RosenblattError as failure:
        error, message = type(failure).__name__, str(failure)
    seconds = time.monotonic() - began
    print(json.dumps({"seconds": seconds, "peak": peak_bytes(os.getpid()), "error": error, "message": message}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
