"""`rosenblatt convert`: a model as ONNX or as text, data as LIBSVM text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_writable, load_model, writing

_TARGETS = {".onnx": "onnx", ".txt": "text", ".svm": "svmlight", ".libsvm": "svmlight", ".svmlight": "svmlight"}


@opts.expand_groups
def convert(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A model file, or a data file in any format that train reads.")
    ],
    place: Annotated[str, typer.Argument(metavar="TO", help='File to write; "-" is standard output, for text.')],
    columns: opts.DataOptions,
    to: Annotated[
        opts.Text, opts.option("--to", "onnx|text|svmlight", "Format to write; by default from the suffix of TO.")
    ] = None,
    skip_errors: opts.SkipErrors = False,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> None:
    """Write a linear model as ONNX (.onnx) or as readable text (.txt), or data of any format as LIBSVM text (.svm).

    The columns of a table become numbered features, as train would see them; the labels are kept.
    """
    console = Console(json, quiet)
    kind = to or ("text" if place == "-" else _TARGETS.get(Path(place).suffix.lower()))
    if kind is None or kind not in _TARGETS.values():
        raise Failure(
            f"the format of {place} is not known", Code.USAGE, "a name that ends in .onnx, .txt or .svm, or --to FORMAT"
        )
    if kind == "svmlight":
        facts = _convert_data(source, place, columns, skip_errors, console)
    else:
        opts.refuse_options(context, (*columns._fields, "skip_errors"), f"it is about data, and {source} must be a model")
        facts = _convert_model(source, place, kind)
    if place != "-":
        console.result(
            {"from": source, "to": place, **facts}, f"{place}: " + ", ".join(f"{v} {k}" for k, v in facts.items())
        )


def _convert_model(source: str, target: str, kind: str) -> dict[str, Any]:
    from rosenblatt.modelfile import export
    from rosenblatt.workflow import FileModel

    check_writable(target, source)
    model = load_model(source)
    learner, names = (model.learner, model.names()) if isinstance(model, FileModel) else (model, None)
    if kind == "onnx":
        content = export.to_onnx(learner, names=names).SerializeToString()
    else:
        content = export.to_text(learner, names=names).encode()
    with writing(target) as file:
        file.write(content)
    return {"bytes": len(content)}


def _convert_data(
    source: str, target: str, columns: opts.DataOptions, skip_errors: bool, console: Console
) -> dict[str, Any]:
    """Features are counted from 1, as is usual in LIBSVM text; those of LIBSVM text keep their numbers."""
    from rosenblatt.data import svmlight
    from rosenblatt.workflow.model import file_list

    files = file_list([source])
    check_writable(target, *files)
    policy = "skip" if skip_errors else "error"
    reading = columns.make_reading(files)
    batches = reading.batches(files, on_error=policy)
    parts: Iterable[Any] = batches
    if reading.needs_fit and "-" in files:  # which can be read once only
        parts = list(batches)
        reading = reading.fit(parts)
    elif reading.needs_fit:
        reading = reading.fit(reading.batches(files, on_error=policy))
    rows = weights = 0
    with writing(target) as file:
        for batch in parts:
            chunk = reading.chunk(batch)
            svmlight.write(file, chunk.X, chunk.y, zero_based=reading.format == "svmlight")
            rows += chunk.rows
            weights += 0 if chunk.weight is None else int((chunk.weight != 1).sum())
    if weights:
        console.note(f"the weights of {weights:,} rows are lost: LIBSVM text has no weights")
    return {"rows": rows} | ({"skipped": batches.skipped} if skip_errors else {})
