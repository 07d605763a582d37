"""Runs tests in forks of a process that has imported what takes long to import, but nothing of this library.

    NUMBA_DISABLE_JIT=1 python -m bench.mutants.runner     # in the private tree

Reads jobs as lines of JSON and answers each with a line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

MEMORY = 6 << 30  # bytes of data that tests of a mutant may hold
OUTPUT = 1 << 30  # bytes of a file that they may write
IMPORTS = [
    "hypothesis", "numba", "numpy", "pyarrow", "scipy.optimize", "scipy.sparse", "schemathesis.pytest.plugin",
    "sklearn.linear_model",
]  # fmt: skip
# Plugins are imported before pytest begins; and compiled kernels wrap integers around and divide by zero without a word.
NO_ERROR = "ignore:Module already imported so cannot be rewritten"
NO_ERRORS = "ignore:.* encountered in (scalar|cast):RuntimeWarning"
SLOWER = 5  # times that a test may take with a mutant,
LEAST_SECONDS = 4.0  # and so many seconds of the processor more
WAITING = 60.0  # seconds that a test may wait for something
FEW_EXAMPLES = 5  # of hypothesis, where only the functions that a test reaches are asked for


class Job(NamedTuple):
    """Tests to run."""

    tests: Mapping[str, Mapping[str, float] | None]  # seconds of each by its name, by file; None for all of a file
    cpu_seconds: float  # after so much work the tests count as timed out,
    wall_seconds: float  # or after so long
    part: str = ""  # of the names of the tests to run, as pytest's -k takes it
    reach: str | None = None  # a file for the functions that each test reaches; the first failure then ends nothing


class Outcome(NamedTuple):
    """What became of a job."""

    status: str  # "passed", "failed", "timed out" or "not run"
    test: str  # the one that failed, or that ran when time was up
    cpu_seconds: float
    output: str  # its end


class Runner:
    """A process that runs jobs, one after another.

    Parameters
    ----------
    tree : Path
        The private tree.
    compiled : bool
        Whether kernels are compiled; otherwise they run as plain Python.
    """

    def __init__(self, tree: Path, compiled: bool = False):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "0" if compiled else "1"}
        environment |= {
            "OMP_NUM_THREADS": "2",
            "PYTHONHASHSEED": "0",
            "ROSENBLATT_CACHE_DIR": str(tree.with_name("kernels")),
        }
        environment["PYTHONPATH"] = f"{tree / 'src'}{os.pathsep}{tree}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name], cwd=tree, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, job: Job) -> Outcome:
        """Run a job to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs tests has ended")
        return Outcome(*json.loads(answer))

    def close(self) -> None:
        """End the process."""
        with self._process:  # closes its streams, and waits
            pass


def run_in_fork(job: Job) -> Outcome:
    """Run the tests of a job in a fork of this process, within its limits."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    log, current, failed = folder / "log", folder / "current", folder / "failed"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            _limit(job)
            _redirect(log)
            os.environ["TMPDIR"] = str(folder)
            tempfile.tempdir = None
            code = _run_tests(job, folder)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    end = time.monotonic() + job.wall_seconds
    ended, usage, status = 0, None, 0
    while not ended and time.monotonic() < end:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        time.sleep(0 if ended else 0.02)
    with contextlib.suppress(ProcessLookupError):  # the child, if it is late, and processes that it has left
        os.killpg(child, signal.SIGKILL)
    if not ended:
        _, status, usage = os.wait4(child, 0)

    assert usage is not None
    late = not ended or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL))
    late = late or (folder / "late").exists()
    name = "timed out" if late else "passed" if status == 0 else "failed"
    if name == "failed" and not (failed.exists() or current.exists()):
        name = "not run"
    test = next((path.read_text() for path in (failed, current) if path.exists()), "") if name != "passed" else ""
    output = log.read_text(errors="replace")[-6000:]
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(name, test, usage.ru_utime + usage.ru_stime, output)


def _limit(job: Job) -> None:
    seconds = int(job.cpu_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _redirect(log: Path) -> None:
    """Send what the tests write to a file; they read nothing."""
    opened = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _run_tests(job: Job, folder: Path) -> int:
    from bench.mutants.reach import Recorder

    plugins: list[Any] = [_Chosen(job, folder)]
    arguments = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}", "--tb=short"]
    arguments += ["-W", NO_ERROR, "-k", job.part]
    if job.reach is None:
        seconds = max((each for tests in job.tests.values() for each in (tests or {}).values()), default=0.0)
        arguments += ["-x", f"--timeout={WAITING + 20 * seconds:.0f}"]
    else:
        plugins.append(Recorder(Path(job.reach)))
    return int(pytest.main([*arguments, *job.tests], plugins=plugins))


class _Chosen:
    """Keeps the tests of a job, in its order, and notes which one runs.

    Examples are drawn the same way for each mutant, and a failing one is not made smaller.
    """

    def __init__(self, job: Job, folder: Path):
        self.job, self.folder = job, folder

    def pytest_configure(self, config: Any) -> None:
        """Let hypothesis draw, and no more; and pass over what only plain Python warns of."""
        config.addinivalue_line("filterwarnings", NO_ERRORS)
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        profile = settings.get_profile("ours")
        count = profile.max_examples if self.job.reach is None else FEW_EXAMPLES
        settings.register_profile(
            "mutants", parent=profile, phases=phases, derandomize=True, database=None, max_examples=count
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Keep and order the tests of the job."""
        places = {
            f"{file}::{name}": place for file, names in self.job.tests.items() for place, name in enumerate(names or ())
        }
        whole = {file for file, names in self.job.tests.items() if names is None}
        kept = [item for item in items if item.nodeid in places or item.nodeid.partition("::")[0] in whole]
        files = list(self.job.tests)
        kept.sort(key=lambda item: (files.index(item.nodeid.partition("::")[0]), places.get(item.nodeid, 0)))
        items[:] = kept

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        """Let a test that takes much longer than it should fail."""
        file, _, name = item.nodeid.partition("::")
        signal.signal(signal.SIGVTALRM, _end_test)
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOWER * (self.job.tests[file] or {}).get(name, 0.0) + LEAST_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note the test that begins."""
        (self.folder / "current").write_text(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the test that failed."""
        if report.failed:
            (self.folder / "failed").write_text(report.nodeid)
        if report.failed and any(sign in str(report.longrepr) for sign in ("TookTooLong", "Failed: Timeout (>")):
            (self.folder / "late").touch()

    def pytest_collectreport(self, report: Any) -> None:
        """Note the file that cannot be imported."""
        if report.failed:
            (self.folder / "failed").write_text(report.nodeid)


class TookTooLong(BaseException):
    """A test takes much longer than without a mutant; nothing catches this as an error of the code."""


def _end_test(*_: object) -> None:
    raise TookTooLong


def main() -> None:
    """Answer jobs until there are no more."""
    import importlib

    for name in IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert "rosenblatt" not in sys.modules

    for line in sys.stdin:
        print(json.dumps(run_in_fork(Job(*json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
