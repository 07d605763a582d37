"""The result of a workload, the target it should reach, and the table and the JSON file of all results."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import rosenblatt

FORMATS = {
    "": "{:.3f}",
    "s": "{:.3f} s",
    "µs": "{:.2f} µs",
    "MB": "{:.0f} MB",
    "MB/s": "{:,.0f} MB/s",
    "×": "{:.2f}×",
    "%": "{:+.1f} %",
    "points": "{:+.1f} points",
    "accuracy": "{:.4f}",
    "tokens/s": "{:,.0f} tokens/s",
    "examples/s": "{:,.0f} examples/s",
    "ms": "{:.2f} ms",
}
HEADINGS = ("workload", "ours (s)", "peer (s)", "ratio", "at least", "aim", "note")


class Target(NamedTuple):
    """The least value that is good enough, and the one aimed at; with "≤" the most."""

    least: float | None = None
    aim: float | str | None = None
    unit: str = "×"
    sign: str = "≥"

    def met_by(self, value: float | None) -> bool:
        if self.least is None or value is None:
            return True
        return value >= self.least if self.sign == "≥" else value <= self.least

    def cell(self, bound: float | str | None) -> str:
        return f"{self.sign} {bound:g}" if isinstance(bound, int | float) else bound or ""


class Result(NamedTuple):
    """What a workload measured; `right` is False where a check of the answers failed, None where nothing was measured."""

    name: str
    ours: float | None
    peer: float | None
    value: float | None
    right: bool | None
    note: str
    unit: str = ""  # of ours and peer: seconds, if nothing is said
    key: str = ""
    target: Target = Target()


def format_number(number: float | None, unit: str) -> str:
    return "" if number is None else FORMATS[unit].format(number)


def line(result: Result) -> str:
    target, value = result.target, format_number(result.value, result.target.unit)
    if result.right is None:
        value = "skipped"
    elif not result.right:
        value = f"**FAILED** {value}"
    elif not target.met_by(result.value):
        value = f"**{value}** missed"
    times = (format_number(number, result.unit) for number in (result.ours, result.peer))
    cells = (result.name, *times, value, target.cell(target.least), target.cell(target.aim), result.note)
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def table(results: list[Result]) -> str:
    return "\n".join([f"| {' | '.join(HEADINGS)} |", "|---|--:|--:|--:|--:|--:|---|", *map(line, results)])


def processor() -> str:
    file = Path("/proc/cpuinfo")
    names = [text for text in file.read_text().splitlines() if text.startswith("model name")] if file.exists() else []
    return names[0].split(":")[1].strip() if names else platform.processor()


def machine() -> dict[str, str | int | None]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "rosenblatt": rosenblatt.__version__,
        **{package: version(package) for package in ("numpy", "scipy", "numba", "scikit-learn")},
    }


def save(results: list[Result], file: Path) -> None:
    rows = [result._asdict() | {"target": result.target._asdict()} for result in results]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1, ensure_ascii=False) + "\n")
