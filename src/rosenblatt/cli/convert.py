"""`rosenblatt convert`: a model as ONNX or as text, data as LIBSVM text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from rosenblatt.cli.asked import Columns, SkipErrors
from rosenblatt.cli.console import Console, check_writable, writing
from rosenblatt.cli.errors import Code, Failure, ending
from rosenblatt.cli.grouped import given, grouped
from rosenblatt.cli.options import Json, Quiet

_TARGETS = {".onnx": "onnx", ".txt": "text", ".svm": "svmlight", ".libsvm": "svmlight", ".svmlight": "svmlight"}


@grouped
def convert(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A model file, or data that train reads.")],
    place: Annotated[str, typer.Argument(metavar="TO", help='The file to write; "-" is standard output, for text.')],
    columns: Columns,
    to: Annotated[
        str | None, typer.Option("--to", metavar="onnx|text|svmlight", help="As what; by default the suffix of TO tells.")
    ] = None,
    skip_errors: SkipErrors = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Write a linear model as ONNX (.onnx) or as text that people read (.txt), or data of any format as LIBSVM text (.svm).

    The columns of a table become numbered features, as train would see them; the labels are kept.
    """
    console = Console(json, quiet)
    kind = to or ("text" if place == "-" else _TARGETS.get(Path(place).suffix.lower()))
    if kind is None or kind not in _TARGETS.values():
        raise Failure(
            f"it is not clear what {place} is to be", Code.USAGE, "a name that ends with .onnx, .txt or .svm, or --to"
        )
    if kind == "svmlight":
        facts = _data(source, place, columns, skip_errors, console)
    else:
        if unused := [*given(columns), *["--skip-errors"] * skip_errors]:
            raise Failure(f"{', '.join(unused)}: this is about data, and {source} is to be a model", Code.USAGE)
        facts = _model(source, place, kind)
    if place != "-":
        console.result(
            {"from": source, "to": place, **facts}, f"{place}: " + ", ".join(f"{v} {k}" for k, v in facts.items())
        )
    return int(Code.DONE)


def _model(source: str, target: str, kind: str) -> dict[str, Any]:
    from rosenblatt.modelfile import export, registry
    from rosenblatt.workflow.model import FileModel

    check_writable(target, source)
    with ending(Code.MODEL, OSError):
        loaded = registry.load(source)
    learner, names = (loaded.learner, loaded.names()) if isinstance(loaded, FileModel) else (loaded, None)
    with ending(Code.MODEL, ValueError, TypeError):
        if kind == "onnx":
            content = export.to_onnx(learner, names=names).SerializeToString()
        else:
            content = export.to_text(learner, names=names).encode()
    with writing(target) as file:
        file.write(content)
    return {"bytes": len(content)}


def _data(source: str, target: str, columns: Columns, skip_errors: bool, console: Console) -> dict[str, Any]:
    """Features are counted from 1, as everybody counts them in LIBSVM text; those of LIBSVM text keep their numbers."""
    from rosenblatt.data import svmlight
    from rosenblatt.workflow.model import listed

    files = listed([source])
    check_writable(target, *files)
    policy = "skip" if skip_errors else "error"
    reading = columns.reading(files)
    batches = reading.batches(files, on_error=policy)
    parts: Iterable[Any] = batches
    if reading.learns and "-" in files:  # which can be read once only
        parts = list(batches)
        reading = reading.learned(parts)
    elif reading.learns:
        reading = reading.learned(reading.batches(files, on_error=policy))
    rows = weighed = 0
    with writing(target) as file:
        for batch in parts:
            chunk = reading.chunk(batch)
            svmlight.write(file, chunk.X, chunk.y, zero_based=reading.format == "svmlight")
            rows += chunk.rows
            weighed += 0 if chunk.weight is None else int((chunk.weight != 1).sum())
    if weighed:
        console.note(f"the weights of {weighed:,} examples are lost: LIBSVM text has none")
    return {"rows": rows} | ({"skipped": batches.skipped} if skip_errors else {})
