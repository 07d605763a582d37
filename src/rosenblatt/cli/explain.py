"""`rosenblatt explain`: the features with the largest weights for each class, and why a row got its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.files import load_model
from rosenblatt.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from rosenblatt.workflow import FileModel


def explain(
    context: typer.Context,
    model: opts.Model,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Files with a row to explain; without files, the model is explained."),
    ] = None,
    row: Annotated[int, opts.option("--row -r", "N", "Number of the row to explain, from 1.", min=1)] = 1,
    label: Annotated[opts.Text, opts.option("--label", "LABEL", "Label to explain; by default the predicted one.")] = None,
    top: Annotated[int, opts.option("--top", "N", "Number of features to show.", min=1)] = 20,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> None:
    """Show the features with the largest weights for each class; or, with data, what each feature adds to a row's score."""
    from rosenblatt.workflow import FileModel, top_features

    console = Console(json, quiet)
    if not data:
        opts.refuse_options(context, ("row",), "there are no files with rows; give DATA")
    trained = load_model(model, FileModel)
    if data:
        _explain_row(console, trained, data, row, label, top)
        return
    entries = top_features(trained, top)
    found = [entry for entry in entries if label in (None, entry.label)]
    if not found:
        raise InvalidParameter("label", label, f"one of {', '.join(entry.label for entry in entries)}")
    facts = {
        entry.label: {"intercept": entry.intercept, "weights": {weight.name: weight.value for weight in entry.weights}}
        for entry in found
    }
    blocks = [
        f"top features of {entry.label} (intercept {entry.intercept:.4g}):\n"
        + console.table(["feature", "weight"], [[weight.name, f"{weight.value:.4g}"] for weight in entry.weights])
        for entry in found
    ]
    console.result(facts, "\n\n".join(blocks))


def _explain_row(console: Console, model: FileModel, data: list[str], row: int, label: str | None, top: int) -> None:
    from rosenblatt.workflow import explain_row
    from rosenblatt.workflow.model import file_list

    batches = model.reading.batches(file_list(data), labelled=False)
    at = 0
    try:
        for batch in batches:
            if row <= at + batch.rows:
                break
            at += batch.rows
        else:
            raise InvalidData(f"there is no row {row}; there are {at} rows")
    finally:
        batches.close()
    found = explain_row(model, model.reading.chunk(batch), row - at - 1, label)
    facts = {
        "label": found.label, "score": found.score, "intercept": found.intercept, "runner_up": found.runner_up,
        "margin": found.margin, "features": {weight.name: weight.value for weight in found.features},
    }  # fmt: skip
    head = f"{found.label}: score {found.score:.4g}"
    if found.runner_up is not None:
        head += f", {abs(found.margin):.4g} {'more' if found.margin >= 0 else 'less'} than {found.runner_up}"
    shown = [[weight.name, f"{weight.value:+.4g}"] for weight in found.features[:top]]
    left = found.features[top:]
    if left:
        shown.append([f"({len(left):,} more features)", f"{sum(weight.value for weight in left):+.4g}"])
    shown.append(["(intercept)", f"{found.intercept:+.4g}"])
    console.result(facts, f"{head}\n\n{console.table(['feature', 'adds'], shown)}")
