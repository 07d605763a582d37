"""`rosenblatt info`: what a model file says about itself; only its header is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rosenblatt.cli.asked import Model
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, ending
from rosenblatt.cli.options import Json, Quiet

_MOST = 100  # characters of a value
_FEW = 12  # values of a list


def info(
    model: Model,
    all: Annotated[bool, typer.Option("--all", help="Every fact in the file, not only the chief ones.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Show what a model file holds: learner, parameters, classes, columns, training, version and time."""
    from rosenblatt.modelfile import container

    console = Console(json, quiet)
    with ending(Code.MODEL, OSError):
        facts = container.facts(model)
        size = Path(model).stat().st_size
    rows = [("file", f"{model}, {size:,} bytes, saved {facts.get('saved')} by version {facts.get('version')}")]
    try:
        rows += _lines("", facts) if all else _chief(facts)
    except (TypeError, ValueError, LookupError, AttributeError) as error:  # what is there is not what should be
        raise container.UnreadableModel(f"{model} is damaged: {type(error).__name__}: {error}") from None
    width = max(len(name) for name, _ in rows)
    console.result({"file": model, "bytes": size, **facts}, "\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    return int(Code.DONE)


def _chief(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What most people want to know. A file may say less than it should: what is not there is not shown."""
    parts, training = _mapping(facts, "parts"), _mapping(facts, "training")
    learner = _mapping(parts, "learner") or facts
    rows = [("learner", str(learner.get("learner"))), ("parameters", _own_parameters(learner))]
    if labels := _mapping(learner, "classes").get("values"):
        rows.append((f"{len(labels)} classes", _text(list(labels))))
    if "features" in learner:
        rows.append(("features", _text(learner["features"])))
    for name, part in parts.items():
        if name not in ("learner", "reading") and isinstance(part, Mapping):
            rows.append((name, str(part.get("learner"))))
    reading = _mapping(parts, "reading")
    columns = _mapping(_mapping(reading, "facts"), "schema").get("columns")
    if columns:
        rows.append(("columns", _text([f"{name} ({kind})" for name, kind in columns])))
    elif reading:
        rows.append(("reads", str(reading.get("format"))))
    if training.get("files"):
        rows.append(("learned from", _text([f"{name} ({size:,} bytes)" for name, size in training["files"]])))
        rows.append(("XXH64", str(training.get("xxh64"))))
    if history := training.get("history"):
        passes = "1 pass" if len(history) == 1 else f"{len(history)} passes"
        rows.append((passes, f"of {history[-1]['rows']:,} rows{_rates(learner, history)}"))
    if training:
        rows.append(("stopped", _stopped(training)))
    elif counts := _mapping(learner, "counts"):
        rows.append(("counted", _text([f"{_counted(name)} {value:,}" for name, value in counts.items()])))
        rows.append(("stopped", str(learner.get("stop_reason"))))
    rows.append(("can learn on", "yes" if learner.get("resume") else "no, saved for prediction only"))
    return rows


def _rates(learner: Mapping[str, Any], history: list[Any]) -> str:
    """The shares of mistakes of the passes; a regressor makes none, and of one that is fitted at once nobody knows."""
    from rosenblatt.cli.summary import makes_mistakes
    from rosenblatt.modelfile import registry

    try:
        shown = makes_mistakes(registry.kind(str(learner.get("learner")))())
    except (LookupError, TypeError):
        shown = True
    shares = [f"{entry['mistakes'] / max(entry['rows'], 1):.2%}" for entry in history[:_FEW]]
    return f"; mistakes {' '.join(shares)}{', …' if len(history) > _FEW else ''}" if shown else ""


def _stopped(training: Mapping[str, Any]) -> str:
    why = str(training.get("stopped"))
    if why == "interrupted":
        why += f" in pass {training.get('pass')} after {_text(training.get('row'))} of its rows"
    return f"{why}, after {training.get('seconds')} s"


def _counted(name: str) -> str:
    return name.removeprefix("n_").removesuffix("_")


def _own_parameters(learner: Mapping[str, Any]) -> str:
    """The parameters that are not what they are by default."""
    from rosenblatt.modelfile import registry

    given = _mapping(learner, "parameters")
    name = learner.get("learner")
    try:
        usual = registry.kind(str(name))().get_params(deep=False)
    except (LookupError, TypeError):  # a learner of somebody else's, or one that has no defaults
        usual = {}
    other = [f"{key}={value}" for key, value in given.items() if key not in usual or usual[key] != value]
    return _text(other) if other else "as they are by default"


def _mapping(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:_FEW])) + (", …" if len(value) > _FEW else "")
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _lines(before: str, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Nested facts as lines of (name, value)."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, Mapping) and value:
            rows += _lines(f"{before}{name} ", value)
        else:
            rows.append((f"{before}{name}", _text(value)))
    return rows
