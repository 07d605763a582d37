"""`rosenblatt explain`: what speaks for each class, and why a row got its label."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rosenblatt.cli.asked import Model
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure, ending
from rosenblatt.cli.loaded import fitting, loaded
from rosenblatt.cli.options import Json, Quiet


def explain(
    model: Model,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Files with the row to explain; without any, the model is explained."),
    ] = None,
    row: Annotated[int, typer.Option("--row", "-r", min=1, metavar="N", help="Which row of the files, from 1.")] = 1,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="LABEL", help="Why this label (or why not); by default the predicted one."),
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="How many features to show.")] = 20,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Show the features that speak most for each class; or, with data, what each feature of a row adds to its score."""
    from rosenblatt.workflow import heaviest

    console = Console(json, quiet)
    known = loaded(model)
    if data:
        with fitting():
            return _row(console, known, data, row, label, top)
    found = [entry for entry in heaviest(known, top) if label in (None, entry.label)]
    if not found:
        raise Failure(f"there is no class {label!r}; there are {', '.join(map(str, known.classes_))}", Code.USAGE)
    facts = {
        entry.label: {"intercept": entry.intercept, "weights": {weight.name: weight.value for weight in entry.weights}}
        for entry in found
    }
    blocks = [
        f"speaks for {entry.label} (intercept {entry.intercept:.4g}):\n"
        + console.table(["feature", "weight"], [[weight.name, f"{weight.value:.4g}"] for weight in entry.weights])
        for entry in found
    ]
    console.result(facts, "\n\n".join(blocks))
    return int(Code.DONE)


def _row(console: Console, model: Any, data: list[str], row: int, label: str | None, top: int) -> int:
    from rosenblatt.workflow import reasons
    from rosenblatt.workflow.model import listed

    batches = model.reading.batches(listed(data), labelled=False)
    at = 0
    try:
        for batch in batches:
            if row <= at + batch.rows:
                break
            at += batch.rows
        else:
            raise Failure(f"there is no row {row}; there are {at}", Code.INPUT)
    finally:
        batches.close()
    chunk = model.reading.chunk(batch)
    with ending(Code.USAGE, ValueError):
        found = reasons(model, chunk, row - at - 1, label)
    facts = {
        "label": found.label, "score": found.score, "intercept": found.intercept, "runner_up": found.runner_up,
        "margin": found.margin, "features": {weight.name: weight.value for weight in found.features},
    }  # fmt: skip
    head = f"{found.label}: score {found.score:.4g}"
    if found.runner_up is not None:
        head += f", {found.margin:.4g} {'more' if found.margin >= 0 else 'less'} than {found.runner_up}"
    shown = [[weight.name, f"{weight.value:+.4g}"] for weight in found.features[:top]]
    left = found.features[top:]
    if left:
        shown.append([f"({len(left):,} more features)", f"{sum(weight.value for weight in left):+.4g}"])
    shown.append(["(intercept)", f"{found.intercept:+.4g}"])
    console.result(facts, f"{head}\n\n{console.table(['feature', 'adds'], shown)}")
    return int(Code.DONE)
