"""Run the workloads one after the other: progress on stderr, the table on stdout, everything in a JSON file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.data import Missing
from bench.report import Result, line, save, table
from bench.rows import ROWS, Row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Fixed workloads, side by side with peers.")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where mnist.npz and news20.svm.bz2 are")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[""], help="rows whose name contains one of these")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns of each contender; the best counts")
    parser.add_argument("--json", type=Path, metavar="FILE", default=Path(__file__).parent / "results" / "latest.json")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    given = parser.parse_args()
    if given.repeat < 1:
        parser.error(f"--repeat must be at least 1; got {given.repeat}")
    if given.data is not None and not given.data.is_dir():
        parser.error(f"--data must be a folder; got {given.data}")
    for part in given.only:
        if not any(part in row.key for row in ROWS):
            parser.error(f"--only {part}: no row has this in its name; --list shows the names")
    return given


def outcome(row: Row, folder: Path | None, repeat: int) -> Result:
    """What the row measured. An error is a failure that lets the next row run; so is an accuracy below its target."""
    try:
        result = row.compare(folder, repeat, *row.settings)
    except Missing as missing:
        result = Result(row.key, None, None, None, None, str(missing))
    except Exception as error:
        result = Result(row.key, None, None, None, False, f"{type(error).__name__}: {error}")
    if row.target.unit == "accuracy" and not row.target.met_by(result.value):
        result = result._replace(right=False)
    return result._replace(key=row.key, target=row.target)


def main() -> int:
    given = arguments()
    chosen = [row for row in ROWS if any(part in row.key for part in given.only)]
    if given.list:
        print("\n".join(row.key for row in chosen))
        return 0
    results = []
    for row in chosen:
        results.append(outcome(row, given.data, given.repeat))
        print(line(results[-1]), file=sys.stderr, flush=True)
    print(table(results))
    save(results, given.json)
    return int(any(result.right is False for result in results))


if __name__ == "__main__":
    sys.exit(main())
