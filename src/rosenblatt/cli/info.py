"""`rosenblatt info`: what a model file holds; only its header is read, and nothing that learns is imported."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console, count_text, wrap
from rosenblatt.cli.errors import describe
from rosenblatt.errors import UnreadableModel

_MOST = 100  # characters of a value
_FEW = 12  # values of a list


def info(
    model: opts.Model,
    all: Annotated[bool, opts.option("--all", None, "Show everything that the file says about the model.")] = False,
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> None:
    """Show what a model file holds: learner, parameters, classes, columns, training, version and date."""
    from rosenblatt.modelfile import container

    console = Console(json, quiet)
    try:
        facts = container.facts(model)
        status = Path(model).stat()
        size = status.st_size
    except OSError as error:
        raise UnreadableModel(describe(error)[1]) from error
    saved = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rows = [("file", f"{model}, {size:,} bytes, saved {saved} by version {facts.get('version')}")]
    with container.decoding(model):
        rows += _flatten("", facts) if all else _header_summary(facts)
    width = max(len(name) for name, _ in rows)
    lines = [wrap(f"{name:<{width}}  ", value.split("\n"), width + 2) for name, value in rows]
    console.result({"file": model, "bytes": size, "saved": saved, **facts}, "\n".join(lines))


def _header_summary(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The entries that most people want to know. Those that a file lacks are not shown."""
    parts, training = _mapping(facts, "parts"), _mapping(facts, "training")
    learner = _mapping(parts, "learner") or facts
    rows = [("learner", str(learner.get("learner")))]
    if parameters := _mapping(learner, "parameters"):
        rows.append(("parameters", "\n".join(f"{name}={_value_text(value)}" for name, value in parameters.items())))
    if labels := _mapping(learner, "classes").get("values"):
        rows.append((f"{len(labels)} classes", _value_text(list(labels))))
    model = _mapping(learner, "model")
    if tags := model.get("tags"):
        rows.append((f"{len(tags)} tags", _value_text(list(tags))))
    if "column" in learner:
        rows.append(("column", f"{learner['column']}, which the tags were learned from and are written to"))
    if model.get("scheme"):
        rows.append(("scheme", str(model["scheme"])))
    if "features" in learner:
        rows.append(("features", _value_text(training.get("features", learner["features"]))))
    for name, part in parts.items():
        if name not in ("learner", "reading") and isinstance(part, Mapping):
            rows.append((name, str(part.get("learner"))))
    reading = _mapping(parts, "reading")
    columns = _mapping(_mapping(reading, "facts"), "schema").get("columns")
    if columns:
        rows.append(("columns", _value_text([f"{name} ({kind})" for name, kind in columns])))
    elif reading:
        rows.append(("file format", str(reading.get("format"))))
    if training.get("files"):
        rows.append(("trained on", _value_text([f"{name} ({size:,} bytes)" for name, size in training["files"]])))
        rows.append(("XXH64", str(training.get("xxh64"))))
    counts = _mapping(learner, "counts")
    if history := training.get("history"):
        passes = "1 pass" if len(history) == 1 else f"{len(history)} passes"
        in_passes = "n_mistakes_" in counts and learner.get("stop_reason") == "partial_fit"  # else it was fitted at once
        rows.append((passes, f"of {history[-1]['rows']:,} rows{_error_rates(history) if in_passes else ''}"))
    if training:
        rows.append(("stopped", _stop_reason(training)))
    elif counts:
        named = [f"{name.removeprefix('n_').removesuffix('_')} {value:,}" for name, value in counts.items()]
        rows.append(("counted", _value_text(named)))
        resumes = "; --resume continues there" if "interruption" in learner else ""
        rows.append(("stopped", f"{learner.get('stop_reason')}{resumes}"))
    if probabilities := _mapping(facts, "probabilities"):
        rows.append(("probabilities", f"{probabilities.get('method')}, of {probabilities.get('folds')} folds"))
    rows += _crossing_row(_mapping(_mapping(parts, "parser") or learner, "model"))
    rows += _pipeline_progress(facts)
    rows.append(("can learn on", "yes" if _can_learn(learner) else "no, saved for prediction only"))
    return rows


def _can_learn(learner: Mapping[str, Any]) -> bool:
    """Whether a file holds all that learning needs: that of the parser, where there are taggers and a parser."""
    return bool(
        learner.get("resume") or "progress" in learner or _mapping(_mapping(learner, "parts"), "parser").get("resume")
    )


def _pipeline_progress(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a training of taggers and parser was interrupted; nothing for one that was not."""
    if "progress" not in facts:
        return []
    stage = "while the parser was trained" if "parser" in _mapping(facts, "parts") else "while the taggers were trained"
    return [("stopped", f"interrupted {stage}; --resume continues there")]


def _crossing_row(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a parser counted of the gold trees that are not projective; nothing for other models."""
    trees = model.get("nonprojective", next(iter(model.get("set_apart", ())), None))
    if trees is None:
        return []
    text = f"in {count_text(trees, 'gold tree')}"
    return [("crossing arcs", f"{text}; {count_text(model['lifted'], 'word')} lifted" if "lifted" in model else text)]


def _error_rates(history: list[Any]) -> str:
    """The share of mistakes in each pass."""
    shares = [f"{entry['mistakes'] / max(entry['rows'], 1):.2%}" for entry in history[:_FEW]]
    return f"; mistakes {' '.join(shares)}{', …' if len(history) > _FEW else ''}"


def _stop_reason(training: Mapping[str, object]) -> str:
    reason = str(training.get("stopped"))
    if reason == "interrupted":
        reason += f" in pass {training.get('pass')} after {_value_text(training.get('row'))} of its rows"
    return reason


def _mapping(facts: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:_FEW])) + (", …" if len(value) > _FEW else "")
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _flatten(before: str, facts: Mapping[str, object]) -> list[tuple[str, str]]:
    """Nested entries as (name, value)."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, Mapping) and value:
            rows += _flatten(f"{before}{name} ", value)
        else:
            rows.append((f"{before}{name}", _value_text(value)))
    return rows
