"""Run the workloads one after the other: progress on stderr, the table on stdout, everything in a JSON file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.data import Missing
from bench.report import Result, line, save, table
from bench.workloads import WORKLOADS, Workload


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Fixed workloads, side by side with peers.")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the folder that contains mnist.npz and news20.svm.bz2")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", default=[""], help="workloads whose name contains one of these"
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="run each program N times; the best run counts")
    parser.add_argument("--json", type=Path, metavar="FILE", default=Path(__file__).parent / "results" / "latest.json")
    parser.add_argument("--full", action="store_true", help="run workloads that take more than five minutes, too")
    parser.add_argument("--list", action="store_true", help="list the names of the workloads and stop")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error(f"--repeat must be at least 1; got {options.repeat}")
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data must be a folder; got {options.data}")
    for part in options.only:
        if not any(part in workload.key for workload in WORKLOADS):
            parser.error(f"--only {part}: no workload has this in its name; --list shows the names")
    return options


def run(workload: Workload, folder: Path | None, repeat: int) -> Result:
    """Run a workload. An error is a failure that lets the next one run; so is an accuracy below its target."""
    try:
        result = workload.compare(folder, repeat, *workload.settings)
    except Missing as missing:
        result = Result(workload.key, None, None, None, None, str(missing))
    except Exception as error:
        result = Result(workload.key, None, None, None, False, f"{type(error).__name__}: {error}")
    if workload.target.unit == "accuracy" and not workload.target.met_by(result.value):
        result = result._replace(right=False)
    return result._replace(key=workload.key, target=workload.target)


def main() -> int:
    options = arguments()
    chosen = [
        workload
        for workload in WORKLOADS
        if any(part in workload.key for part in options.only) and (options.full or options.list or not workload.long)
    ]
    if options.list:
        print("\n".join(workload.key for workload in chosen))
        return 0
    results = []
    for workload in chosen:
        results.append(run(workload, options.data, options.repeat))
        print(line(results[-1]), file=sys.stderr, flush=True)
    print(table(results))
    save(results, options.json)
    return int(any(result.right is False for result in results))


if __name__ == "__main__":
    sys.exit(main())
