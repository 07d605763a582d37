"""`rosenblatt evaluate`: how good a model is, or how good one would be."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rosenblatt.cli import pictures
from rosenblatt.cli.asked import Columns, Learning, SkipErrors
from rosenblatt.cli.console import Console, table, width
from rosenblatt.cli.errors import Code, Failure, ending
from rosenblatt.cli.grouped import given, grouped
from rosenblatt.cli.loaded import fitting, loaded
from rosenblatt.cli.options import Json, Plot, Quiet

_MOST_CONFUSED = 12  # classes for which the whole matrix is shown
_MOST_TABLED = 100  # and of which JSON has it


@grouped
def evaluate(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="[MODEL] DATA", help="A model and labelled files; without a model, --folds or --curve."),
    ],
    columns: Columns,
    learning: Learning,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds", "-k", min=2, metavar="K", help="Cross-validate: train on all parts but one, judge on that."
        ),
    ] = None,
    curve: Annotated[
        bool,
        typer.Option("--curve", help="Learning curve: train on 1/32, 1/16, … of the rows, judge on a fifth kept aside."),
    ] = False,
    at_least: Annotated[
        float | None, typer.Option("--at-least", metavar="SHARE", help="Exit with 1 if the accuracy is lower.")
    ] = None,
    skip_errors: SkipErrors = False,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Measure a model on labelled files: accuracy, precision and recall of each class, who is taken for whom.

    With --folds or --curve no model is needed: models are trained here, with the options of train, and nothing is saved.
    """
    from rosenblatt.workflow import judging
    from rosenblatt.workflow.model import listed
    from rosenblatt.workflow.terms import Options

    console = Console(json, quiet)
    pictures.prepared(plot)
    policy = "skip" if skip_errors else "error"
    if folds is None and not curve:
        if len(paths) < 2:
            raise Failure(
                "a model and labelled files are needed", Code.USAGE, "evaluate MODEL DATA, or evaluate DATA --folds 10"
            )
        if unused := [*given(columns), *given(learning)]:
            raise Failure(
                f"{', '.join(unused)}: a model reads as it learned to read, and learns nothing here",
                Code.USAGE,
                "evaluate MODEL DATA; or with --folds or --curve, and no model",
            )
        model = loaded(paths[0])
        with fitting():
            found = judging.evaluate(model, paths[1:], policy)
        return _reported(console, found, at_least, plot)
    if curve and (folds is not None or at_least is not None):
        unused = ["--folds"] * (folds is not None) + ["--at-least"] * (at_least is not None)
        raise Failure(f"--curve does not go together with {', '.join(unused)}", Code.USAGE)
    files = listed(paths)
    reading, learner = columns.reading(files), learning.made()
    with ending(Code.USAGE, ValueError):
        options = Options(
            passes=learning.passes, order=learning.order.value, seed=learning.seed, stream=False, on_error=policy
        )
    if curve:
        return _curve(console, judging.learning_curve(files, reading, learner, options), plot)
    with console.progress(total=folds, unit="folds") as progress:
        parts = judging.cross_validated(
            files, reading, learner, folds or 2, options, lambda fold, seen: progress.update(fold)
        )
    return _reported(console, parts.overall, at_least, plot, parts.scores)


def _reported(
    console: Console, found: Any, at_least: float | None, plot: str | None, scores: list[float] | None = None
) -> int:
    from rosenblatt.workflow.judging import Fit
    from rosenblatt.workflow.labels import spelled

    facts: dict[str, Any]
    if isinstance(found, Fit):
        facts, score = found._asdict(), found.r2
        lines = [
            f"R² {found.r2:.4f}  mean squared error {found.mean_squared_error:.4g}  "
            f"mean absolute error {found.mean_absolute_error:.4g}  rows {found.rows:,}"
        ]
    else:
        score = found.accuracy
        names = [spelled(row.label) for row in found.classes]
        facts = {
            "rows": found.rows, "accuracy": found.accuracy, "macro_f1": found.macro_f1, "unknown_labels": found.unknown,
            "classes": {name: {"precision": row.precision, "recall": row.recall, "f1": row.f1, "support": row.support}
                        for name, row in zip(names, found.classes, strict=True)},
            **({"confusion": found.confusion} if len(names) <= _MOST_TABLED else {}),
            "confused": [[spelled(right), spelled(said), rows] for rows, right, said in found.most_confused(_MOST_TABLED)],
        }  # fmt: skip
        wrong = found.rows - round(found.accuracy * found.rows)
        lines = [
            f"accuracy {found.accuracy:.2%}  ({wrong:,} of {found.rows:,} rows wrong)  macro F1 {found.macro_f1:.4f}",
            "",
        ]
        lines.append(console.table(
            ["class", "precision", "recall", "F1", "rows"],
            [[name, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", row.support]
             for name, row in zip(names, found.classes, strict=True)],
        ))  # fmt: skip
        if (matrix := _matrix(console, names, found)) is not None:
            lines += ["", matrix]
        elif wrong:
            worst = [[spelled(right), spelled(said), rows] for rows, right, said in found.most_confused(_MOST_CONFUSED)]
            lines += ["", console.table(["is", "called", "rows"], worst)]
        if found.unknown:
            lines.append(f"{found.unknown:,} rows have labels that the model does not know; they count as wrong")
    facts["skipped"] = skipped = found.skipped
    if skipped:
        console.note(f"{skipped:,} rows that could not be read were left out")
    if scores is not None:
        import numpy as np

        facts |= {"folds": scores, "mean": float(np.mean(scores)), "deviation": float(np.std(scores, ddof=1))}
        lines.insert(1, f"{len(scores)} folds: mean {facts['mean']:.4f}, standard deviation {facts['deviation']:.4f}")
    console.result(facts, "\n".join(lines))
    if plot:
        _draw_confusion(plot, found)
    if at_least is not None and not score >= at_least:
        console.note(f"{score:.4f} is less than {at_least}")
        return int(Code.NO)
    return int(Code.DONE)


def _matrix(console: Console, names: list[str], found: Any) -> str | None:
    """Who is called what, if it fits the width."""
    if len(names) > _MOST_CONFUSED:
        return None
    rows = [[name, *counts] for name, counts in zip(names, found.confusion.tolist(), strict=True)]
    headings = ["is \\ called", *names]
    wide = max(map(len, table(headings, rows).splitlines())) > width()
    return None if wide else console.table(headings, rows)


def _curve(console: Console, points: Any, plot: str | None) -> int:
    found = []
    with console.progress(unit="rows") as progress:
        for point in points:
            found.append(point)
            progress.update(point.rows)
    rows = [[point.rows, f"{point.training:.4f}", f"{point.validation:.4f}"] for point in found]
    facts = {"curve": [point._asdict() for point in found]}
    console.result(facts, console.table(["rows", "on them", "on others"], rows))
    if plot:
        from rosenblatt.plot import learning_curve

        pictures.saved(learning_curve([tuple(point) for point in found]), plot)
    return int(Code.DONE)


def _draw_confusion(path: str, found: Any) -> None:
    from rosenblatt.plot import confusions
    from rosenblatt.workflow.labels import spelled

    if not hasattr(found, "pairs"):
        raise Failure("there is no picture of how a regressor does", Code.USAGE, "leave --plot out")
    names = [spelled(row.label) for row in found.classes]
    pictures.saved(confusions({(names[right], names[said]): rows for right, said, rows in found.pairs}), path)
