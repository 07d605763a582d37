"""`rosenblatt info`: what a model file says about itself; only its header is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rosenblatt.cli.asked import Model
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, ending
from rosenblatt.cli.options import Json

_MOST = 60  # characters of a value


def info(model: Model, json: Json = False) -> int:
    """Show what a model file holds: learner, parameters, classes, columns, training, version and time."""
    from rosenblatt import store

    console = Console(json)
    with ending(Code.MODEL, OSError):
        facts = store.facts(model)
        size = Path(model).stat().st_size
    rows = [["file", f"{model} ({size:,} bytes)"], *_lines("", facts)]
    width = max(len(name) for name, _ in rows)
    console.result({"file": model, "bytes": size, **facts}, "\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    return int(Code.DONE)


def _lines(before: str, facts: Mapping[str, Any]) -> list[list[str]]:
    """Nested facts as lines of (name, value)."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, Mapping) and value:
            rows += _lines(f"{before}{name} ", value)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            rows.append([f"{before}{name}", text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"])
    return rows
