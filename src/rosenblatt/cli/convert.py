"""`rosenblatt convert`: a model as ONNX or as text, data as LIBSVM text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rosenblatt.cli.asked import Columns, SkipErrors
from rosenblatt.cli.console import Console, check_writable, writing
from rosenblatt.cli.errors import Code, Failure, ending
from rosenblatt.cli.grouped import grouped
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
    check_writable(place)
    facts = _data(source, place, columns, skip_errors) if kind == "svmlight" else _model(source, place, kind)
    if place != "-":
        console.result(
            {"from": source, "to": place, **facts}, f"{place}: " + ", ".join(f"{v} {k}" for k, v in facts.items())
        )
    return int(Code.DONE)


def _model(source: str, target: str, kind: str) -> dict[str, Any]:
    from rosenblatt import export, loading
    from rosenblatt.workflow.model import FileModel

    with ending(Code.MODEL, OSError):
        loaded = loading.load(source)
    learner, names = (loaded.learner, loaded.names()) if isinstance(loaded, FileModel) else (loaded, None)
    with ending(Code.MODEL, ValueError, TypeError):
        if kind == "onnx":
            content = export.to_onnx(learner, names=names).SerializeToString()
        else:
            content = export.to_text(learner, names=names).encode()
    with writing(target) as file:
        file.write(content)
    return {"bytes": len(content)}


def _data(source: str, target: str, columns: Columns, skip_errors: bool) -> dict[str, Any]:
    from rosenblatt.data import svmlight
    from rosenblatt.workflow.model import listed

    files = listed([source])
    policy = "skip" if skip_errors else "error"
    reading = columns.reading(files)
    if reading.learns:
        reading = reading.learned(reading.batches(files, on_error=policy))
    batches = reading.batches(files, on_error=policy)
    rows = 0
    with writing(target) as file:
        for batch in batches:
            chunk = reading.chunk(batch)
            svmlight.write(file, chunk.X, chunk.y, zero_based=True)
            rows += chunk.rows
    return {"rows": rows} | ({"skipped": batches.skipped} if skip_errors else {})
