"""Mistakes are planted in the sources, one at a time, and some test must fail for each.

    make mutants                                      # the table of mistakes, and 300 drawn from ten rooms
    make mutants ARGS="--seed 1 --count 50 --only engine"
    make mutants ARGS="--again"                       # survivors once more, after their tests were sharpened

First the files of tests that have changed are run once, to learn which functions each test reaches: half an hour for all.
Each mutant then meets tests that reach its function: those of the file named like its source first, quick ones before slow
ones, up to a budget of the processor's time. A test that does not end is a test that fails. A survivor is printed; it needs
a sharper test, or a line in equivalent.toml that says why none can fail. Results are kept in bench/results/, so that a run
that was cut off goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.mutants.choice import ROOMS, draw, equivalent_mutants, named_mutants
from bench.mutants.operators import Mutant
from bench.mutants.private_tree import REPOSITORY, PrivateTree
from bench.mutants.reach import Reach, Test
from bench.mutants.runner import Job, Runner

RESULTS = REPOSITORY / "bench" / "results" / "mutants"
MIRROR_SHARE = 0.6  # of the budget, for the first file of tests
ALIVE = "survived", "not run"
MOST_FILES = 10  # of tests, for a mutant: each must be imported


class Result(NamedTuple):
    """What became of a mutant."""

    key: str
    room: str
    file: str
    line: int
    operator: str
    old: str
    new: str
    status: str  # "caught", "timed out", "survived" or "not run"
    test: str
    tests: int  # that it met
    cpu_seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutants, print what became of them, and return 1 if one survived that nothing explains."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="mutants drawn, as many from each room")
    parser.add_argument("--only", nargs="+", metavar="ROOM", default=[*ROOMS, "named"], help="; ".join([*ROOMS, "named"]))
    parser.add_argument("--again", action="store_true", help="try survivors without a reason again")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of the processor for the tests of a mutant")
    parser.add_argument("--known", action="store_true", help="do not look for tests that have changed")
    options = parser.parse_args(arguments)

    results, reasons = _load(RESULTS / "results.jsonl"), equivalent_mutants()
    chosen = _chosen(options.only, options.seed, options.count)
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        tree = PrivateTree(Path(temporary) / "tree")
        runner = Runner(tree.folder)
        reach = Reach(RESULTS / "reach")
        for name in () if options.known else reach.stale_files():
            print(f"{name}: {reach.update(name, tree.folder, runner)}", flush=True)
        reach.load()
        trials = Trials(tree, runner, reach, options.budget)

        for room, mutant in chosen:
            known = results.get(mutant.key)
            is_open = known is not None and known.status in ALIVE and (mutant.file, mutant.old, mutant.new) not in reasons
            if known is None or (options.again and is_open):
                results[mutant.key] = result = trials.run(mutant, room)
                with open(RESULTS / "results.jsonl", "a") as file:
                    file.write(json.dumps(result._asdict()) + "\n")
                print(_line(result), flush=True)
        runner.close()

    return _report([results[mutant.key] for _, mutant in chosen])


def _chosen(rooms: Sequence[str], seed: int, count: int) -> list[tuple[str, Mutant]]:
    """Return mutants with their rooms, one of each room in turn, those of the table first."""
    drawn = {room: list(draw(room, seed, -(-count // len(ROOMS)))) for room in ROOMS if room in rooms}
    table = [("named", mutant) for mutant in named_mutants()] if "named" in rooms else []
    longest = max(map(len, drawn.values()), default=0)
    return table + [(room, found[i]) for i in range(longest) for room, found in drawn.items() if i < len(found)]


def _load(path: Path) -> dict[str, Result]:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    return {result.key: result for result in (Result(**json.loads(line)) for line in lines)}


class Trials:
    """Runs the tests that concern a mutant.

    Parameters
    ----------
    tree : PrivateTree
        Where the mutant is planted.
    runner : Runner
        What runs tests there.
    reach : Reach
        Which tests reach it.
    budget : float
        Seconds of the processor for the tests of a mutant.
    """

    def __init__(self, tree: PrivateTree, runner: Runner, reach: Reach, budget: float):
        self.tree, self.runner, self.reach, self.budget = tree, runner, reach, budget
        self._fit: dict[Test, bool] = {}  # of tests that have failed: whether they pass without a mutant

    def run(self, mutant: Mutant, room: str) -> Result:
        """Run tests until one fails that passes without the mutant."""
        tests = self.reach.tests_of(mutant.file, mutant.function)
        used, status, last = 0.0, "", ""
        while not status:
            batches = self._batches([test for test in tests if self._fit.get(test, True)], mutant.file)
            status = "survived"
            for batch in batches:
                with self.tree.mutated(mutant.file, mutant.text):
                    outcome = self.runner.run(_job(batch))
                used += outcome.cpu_seconds
                if outcome.status != "passed":
                    is_fit = all(self._passes_alone(test) for test in batch if test.id == outcome.test)
                    status = {"failed": "caught"}.get(outcome.status, outcome.status) if is_fit else ""
                    last = outcome.test
                    break
        if status == "survived" and (compiled := self.reach.compiled_tests_of(mutant.file)):
            status, last, seconds = self._run_compiled(mutant, compiled)
            batches, used = [*batches, compiled], used + seconds
        place = (mutant.key, room, mutant.file, mutant.line, mutant.operator, mutant.old, mutant.new)
        return Result(*place, status, last if status != "survived" else "", sum(map(len, batches)), round(used, 1))

    def _batches(self, tests: Sequence[Test], source: str) -> list[list[Test]]:
        """Return at most two batches of tests: the docstring of the source and the tests of one file, then others."""
        module = ".".join(["rosenblatt", *source.removesuffix(".py").split("/")])
        docstring = [test for test in tests if test.name == f"test_docstrings_run[{module}]"]
        by_file: dict[str, list[Test]] = defaultdict(list)
        for test in tests:
            if test not in docstring:
                by_file[test.file].append(test)

        words = {word for part in source.removesuffix(".py").split("/") for word in part.split("_")}
        stem = set(Path(source).stem.split("_"))
        nearest = self.reach.nearest(source)

        def closeness(file: str) -> tuple[float, ...]:
            own = set(file.removeprefix("test_").split("_"))
            share = len(by_file[file]) / by_file[file][0].among
            return -len(own & stem), file not in nearest, -len(own & words) / len(own), -share

        batches = [docstring, []]
        left = self.budget
        for place, file in enumerate(sorted(by_file, key=closeness)[:MOST_FILES]):
            most = MIRROR_SHARE * self.budget if place == 0 else left / 3
            for test in sorted(by_file[file], key=lambda test: test.seconds):
                if test.seconds > most:
                    break
                batches[min(place, 1)].append(test)
                most -= test.seconds
                left -= test.seconds
        return [batch for batch in batches if batch]

    def _run_compiled(self, mutant: Mutant, tests: Sequence[Test]) -> tuple[str, str, float]:
        """Run tests with compiled kernels; return what became of the mutant, the test that failed, and seconds."""
        runner = Runner(self.tree.folder, compiled=True)
        try:
            with self.tree.mutated(mutant.file, mutant.text):
                outcome = runner.run(_job(tests))
        finally:
            runner.close()
        status = {"passed": "survived", "failed": "caught"}.get(outcome.status, outcome.status)
        return status, outcome.test, outcome.cpu_seconds

    def _passes_alone(self, test: Test) -> bool:
        """Return whether a test passes on the sources as they are; all of its draws, and as plain Python."""
        if test not in self._fit:
            self._fit[test] = self.runner.run(_job([test])).status == "passed"
        return self._fit[test]


def _job(tests: Sequence[Test]) -> Job:
    names: dict[str, dict[str, float]] = defaultdict(dict)
    for test in tests:
        names[test.path][test.name] = test.seconds
    seconds = sum(test.seconds for test in tests)
    return Job(names, cpu_seconds=3 * seconds + 30, wall_seconds=20 * seconds + 240)


def _line(result: Result) -> str:
    what = f"{result.file}:{result.line} {result.operator}: {result.old}  →  {result.new}"
    if result.status in ALIVE:
        return f"{result.status.upper()} {result.tests} tests  {what}"
    return f"{result.status} by {result.test.removeprefix('tests/') or '?'}  {what}"


def _report(results: Sequence[Result]) -> int:
    """Print a table by rooms and the survivors; return 1 if one has no reason."""
    reasons = equivalent_mutants()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    bare = []
    for result in results:
        reason = reasons.get((result.file, result.old, result.new))
        status = "survived" if result.status in ALIVE else result.status
        status = "explained" if status == "survived" and reason else status
        counts[result.room][status] += 1
        if status == "survived":
            bare.append(result)

    columns = "caught", "timed out", "explained", "survived"
    print(f"\n{'room':12}", *(f"{name:>10}" for name in columns))
    total: Counter[str] = Counter()
    for room, count in counts.items():
        total += count
        print(f"{room:12}", *(f"{count[name]:10}" for name in columns))
    print(f"{'all':12}", *(f"{total[name]:10}" for name in columns))

    for result in bare:
        print(f"\n{_line(result)}")
    return int(bool(bare))


if __name__ == "__main__":
    sys.exit(main())
