"""Which tests reach a function: found once by running them, and again for each test file that has changed.

Tests run with kernels as plain Python (NUMBA_DISABLE_JIT=1): a mutant then needs nothing compiled, and calls inside kernels
are seen. Tests that fail so, or take too long, are not used.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import resource
import sys
import threading
import tomllib
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from bench.mutants.private_tree import PACKAGE, REPOSITORY
from bench.mutants.runner import Job, Runner

FOLDER = Path(__file__).parent
MODULE = "<module>"  # the name of what is outside of all functions
FILE_SECONDS = 60.0  # of the processor: tests of a file that are not done by then are not used
COMPILE_SECONDS = 60.0  # of the processor, for a test that compiles its kernels
DRAWN_FACTOR = 6  # by which a test that draws its examples takes longer with all of them


class Recorder:
    """Writes the functions that each test reaches, in its process and in those that it starts.

    Parameters
    ----------
    path : Path
        The file to write, of lines of JSON: test, outcome, seconds and functions, each a file and a line.
    """

    def __init__(self, path: Path):
        self.path, self.package = path, f"{os.sep}rosenblatt{os.sep}"
        self.seen: dict[int, CodeType] = {}
        self.begun = 0.0
        self.outcomes: dict[str, str] = {}
        self.drawn: set[str] = set()

    def pytest_configure(self, config: Any) -> None:
        """Watch calls in all threads."""
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        os.environ["MUTANTS_REACH"] = str(self.path)

    def trace(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note the code that is called; its lines are not traced."""
        self.seen[id(frame.f_code)] = frame.f_code

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin with no function."""
        self.seen = {}
        self.begun = seconds_used()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst outcome of a test's phases."""
        if report.outcome != "passed" or report.nodeid not in self.outcomes:
            self.outcomes[report.nodeid] = report.outcome

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Note which tests draw examples."""
        self.drawn = {each.nodeid for each in items if getattr(each.obj, "is_hypothesis_test", False)}

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Write what the test reached."""
        reached = {code_place(code) for code in list(self.seen.values())} - {None}
        outcome = self.outcomes.get(nodeid, "failed")
        seconds = (seconds_used() - self.begun) * (DRAWN_FACTOR if nodeid in self.drawn else 1)
        line = json.dumps([nodeid, outcome, round(seconds, 3), sorted(reached)])
        with open(self.path, "a") as file:
            file.write(line + "\n")
        sys.settrace(self.trace)  # whatever the test did


def seconds_used() -> float:
    """Return the processor's seconds of this process and of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def code_place(code: CodeType) -> tuple[str, int] | None:
    """Return the file in the package and the line of a function; None for other code."""
    _, found, file = code.co_filename.rpartition(f"src{os.sep}rosenblatt{os.sep}")
    return (file.replace(os.sep, "/"), code.co_firstlineno) if found else None


# In processes that tests start, which may be killed: each function is written when it is first called.
SITE = """
import os, sys
if path := os.environ.get("MUTANTS_REACH"):
    import json, threading
    seen, test = set(), os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    def trace(frame, event, argument):
        code = frame.f_code
        if id(code) not in seen:
            seen.add(id(code))
            file = code.co_filename.rpartition("src/rosenblatt/")
            if file[1]:
                os.write(output, (json.dumps([test, "child", 0.0, [[file[2], code.co_firstlineno]]]) + "\\n").encode())
    threading.settrace(trace)
    sys.settrace(trace)
"""


class Test(NamedTuple):
    """A test that reaches some function."""

    file: str
    name: str
    seconds: float  # of the processor
    among: int  # so many tests of its file

    @property
    def path(self) -> str:
        """The path of the file in the repository."""
        return f"tests/{self.file}.py"

    @property
    def id(self) -> str:
        """The name that pytest gives the test."""
        return f"{self.path}::{self.name}"


class Reach:
    """The tests that reach each function, from files of JSON, one for each file of tests.

    Parameters
    ----------
    folder : Path
        The folder of the files.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, tuple[dict[str, Any], set[str]]] = {}
        with open(FOLDER / "tests.toml", "rb") as file:
            table = tomllib.load(file)
        self.skipped: dict[str, str] = table["skipped"]
        self.parts: dict[str, str] = table["parts"]
        self._nearest: dict[str, list[str]] = table["nearest"]
        self._compiled: dict[str, list[str]] = table["compiled"]

    def stale_files(self) -> list[str]:
        """Return the files of tests that have changed since they were run, or never were."""
        paths = sorted((REPOSITORY / "tests").glob("test_*.py"))
        return [path.stem for path in paths if path.stem not in self.skipped and self._is_stale(path)]

    def load(self) -> None:
        """Read what is known of all files of tests."""
        for path in sorted(self.folder.glob("*.json")):
            known = json.loads(path.read_text())
            if path.stem not in self.skipped:
                self._known[path.stem] = known["tests"], set(known["children"])

    def tests_of(self, file: str, function: str) -> list[Test]:
        """Return the tests that reach a function of a file; of code outside of functions, or if no test is known to reach
        the function, those that reach any function of the file.

        Where the function was called in a process that a test started, all tests of that file are among them: a fixture may
        have started it for all.
        """
        reached = self._tests(f"{file}::{function}") if function != MODULE else []
        return reached or self._tests(f"{file}::")

    def nearest(self, file: str) -> list[str]:
        """Return the files of tests to try first for a source, of the longest part of its name that `tests.toml` has."""
        parts = [part for part in self._nearest if file.startswith(part)]
        return self._nearest[max(parts, key=len)] if parts else []

    def compiled_tests_of(self, file: str) -> list[Test]:
        """Return the tests to run with compiled kernels, as `tests.toml` has them."""
        ids = [each.partition("::") for each in self._compiled.get(file, ())]
        return [Test(Path(path).stem, name, COMPILE_SECONDS, 1) for path, _, name in ids]

    def _tests(self, prefix: str) -> list[Test]:
        found = []
        for name, (tests, children) in self._known.items():
            in_child = any(_matches(each, prefix) for each in children)
            for test, (seconds, functions) in tests.items():
                if in_child or any(_matches(each, prefix) for each in functions):
                    found.append(Test(name, test, seconds, len(tests)))
        return found

    def update(self, name: str, tree: Path, runner: Runner) -> str:
        """Run a file of tests, note what its tests reach, and return how that ended."""
        reached = self.folder / f"{name}.lines"
        reached.unlink(missing_ok=True)
        site = tree / "src" / "sitecustomize.py"
        site.write_text(SITE)
        tests = {f"tests/{name}.py": None}
        part = self.parts.get(name, "")
        job = Job(tests, cpu_seconds=FILE_SECONDS, wall_seconds=6 * FILE_SECONDS, part=part, reach=str(reached))
        outcome = runner.run(job)
        site.unlink()

        found: dict[str, Any] = {}
        children: set[str] = set()
        numbers = FunctionNames(tree)
        for line in reached.read_text().splitlines() if reached.exists() else ():
            test, result, seconds, places = json.loads(line)
            names = sorted({numbers.find(file, line) for file, line in places})
            if result == "child":
                children.update(names)
            elif result == "passed":
                found[test.partition("::")[2]] = [seconds, names]

        known = {"hash": _hash(REPOSITORY / "tests" / f"{name}.py"), "tests": found, "children": sorted(children)}
        (self.folder / f"{name}.json").write_text(json.dumps(known))
        reached.unlink(missing_ok=True)
        return f"{len(found)} tests, {outcome.cpu_seconds:.0f} s, {outcome.status}"

    def _is_stale(self, path: Path) -> bool:
        known = self.folder / f"{path.stem}.json"
        return not known.exists() or json.loads(known.read_text())["hash"] != _hash(path)


class FunctionNames:
    """The names of functions by their lines: "engine/loop.py::Visits.run", with a number where there are several.

    Parameters
    ----------
    tree : Path
        The folder with the sources.
    """

    def __init__(self, tree: Path):
        self.tree = tree
        self._names: dict[str, dict[int, str]] = {}

    def find(self, file: str, line: int) -> str:
        """Return the name of the innermost function around a line."""
        if file not in self._names:
            self._names[file] = function_names(ast.parse((self.tree / PACKAGE / file).read_text(encoding="utf-8")))
        return f"{file}::{self._names[file].get(line, MODULE)}"


def function_names(tree: ast.Module) -> dict[int, str]:
    """Return the name of the innermost function around each line, its decorators included."""
    names: dict[int, str] = {}
    seen: Counter[str] = Counter()

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
                if not isinstance(child, ast.ClassDef):
                    seen[inner] += 1
                    inner += f"#{seen[inner]}" if seen[inner] > 1 else ""
                    first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                    names.update(dict.fromkeys(range(first, (child.end_lineno or first) + 1), inner))
            visit(child, inner)

    visit(tree, "")
    return names


def _matches(name: str, prefix: str) -> bool:
    """Return whether a name is that of a function, or of any function of a file if the prefix ends with ::."""
    return name.startswith(prefix) if prefix.endswith("::") else name == prefix


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
