"""`rosenblatt evaluate`: how good a model is, or how good one would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console, rows_left_out, table, width
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_plot, is_model, load_model, save_plot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rosenblatt.workflow.evaluation import Point, RegressionReport, Report

_MOST_CLASSES = 12  # for which the whole confusion matrix is shown
_MOST_JSON = 100  # and which JSON has


@opts.expand_groups
def evaluate(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] DATA", help="A model file and labelled data files; with --folds or --curve only data files."
        ),
    ],
    columns: opts.DataOptions,
    learning: opts.LearnerOptions,
    folds: Annotated[int | None, opts.option("--folds -k", "K", "Cross-validate with K folds.", min=2)] = None,
    curve: Annotated[
        bool, opts.option("--curve", None, "Learning curve: scores after training on 1/32, 1/16, … of the rows.")
    ] = False,
    at_least: Annotated[
        float | None, opts.option("--at-least", "SCORE", "Exit with code 1 if the accuracy (or R²) is lower than this.")
    ] = None,
    probabilities: opts.Probabilities = False,
    threshold: opts.Threshold = None,
    skip_errors: opts.SkipErrors = False,
    plot: opts.Plot = None,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Measure a model on labelled files: accuracy, precision and recall of each class, confusion matrix.

    With --folds or --curve no model is needed: models are trained with the options of train, and nothing is saved.
    """
    from rosenblatt.workflow import FileModel, Options, cross_validate, learning_curve
    from rosenblatt.workflow import evaluate as evaluate_model
    from rosenblatt.workflow.model import file_list

    console = Console(json, quiet)
    check_plot(plot)
    on_error = "skip" if skip_errors else "error"
    if folds is None and not curve:
        if len(paths) < 2:
            raise Failure(
                "a model and labelled files are needed", Code.USAGE, "evaluate MODEL DATA, or evaluate DATA --folds 10"
            )
        model = load_model(paths[0], FileModel)
        opts.refuse_options(
            context,
            (*columns.fixed_by(model.reading), *learning._fields),
            "without --folds or --curve nothing is trained, and the model reads the files as in training",
            "evaluate MODEL DATA without these options, or evaluate DATA --folds 10 with them",
        )
        model.reading = columns.with_target(model.reading)
        report = evaluate_model(model, paths[1:], on_error, threshold=threshold, probabilities=probabilities)
        return _report(console, report, at_least, plot)
    opts.refuse_options(context, ("probabilities", "threshold"), "it is for evaluate MODEL DATA")
    if curve:
        opts.refuse_options(context, ("folds", "at_least"), "it has no effect with --curve")
    files = file_list(paths)
    if (model := next(filter(is_model, files), None)) is not None:
        flag, example = ("--curve", "--curve") if curve else ("--folds", f"--folds {folds}")
        hint = f"evaluate DATA {example}, or evaluate MODEL DATA"
        raise Failure(f"{flag} takes data files only, and {model} is a model", Code.USAGE, hint)
    reading, learner = columns.make_reading(files), learning.make_learner()
    options = Options(passes=learning.passes, order=learning.order.value, seed=learning.seed, on_error=on_error,
                      task=learning.task and learning.task.value)  # fmt: skip
    if folds is None:
        with console.warnings_as_notes():
            return _show_curve(console, learning_curve(files, reading, learner, options), plot)
    with console.warnings_as_notes(), console.progress(total=folds, unit="folds") as progress:
        result = cross_validate(
            files, reading, learner, folds, options, lambda fold, report: progress.update(fold, score=report.score)
        )
    return _report(console, result.overall, at_least, plot, result.scores)


def _report(
    console: Console,
    report: Report | RegressionReport,
    at_least: float | None,
    plot: str | None,
    scores: list[float] | None = None,
) -> int:
    from rosenblatt.workflow.evaluation import RegressionReport

    if isinstance(report, RegressionReport):
        if plot:
            raise Failure("--plot shows the confusion matrix of classes, and a regressor has none", Code.USAGE)
        facts: dict[str, Any] = report._asdict() | {"root_mean_squared_error": report.root_mean_squared_error}
        lines = [
            f"R² {report.r2:.4f}  mean absolute error (MAE) {report.mean_absolute_error:.4g}  "
            f"root mean squared error (RMSE) {report.root_mean_squared_error:.4g}  rows {report.rows:,}"
        ]
    else:
        facts, lines = _describe_classes(console, report)
    facts["skipped"] = report.skipped
    if report.skipped:
        console.note(rows_left_out(report.skipped))
    if scores is not None:
        import numpy as np

        facts |= {"folds": scores, "mean": float(np.mean(scores)), "deviation": float(np.std(scores, ddof=1))}
        lines.insert(1, f"{len(scores)} folds: mean {facts['mean']:.4f}, standard deviation {facts['deviation']:.4f}")
    console.result(facts, "\n".join(lines))
    if plot and not isinstance(report, RegressionReport):
        from rosenblatt.plot import confusions

        names = _class_names(report)
        save_plot(confusions({(names[truth], names[guess]): rows for truth, guess, rows in report.pairs}), plot)
    if at_least is not None and not report.score >= at_least:
        console.note(f"the score {report.score:.4f} is less than {at_least}")
        return Code.NO
    return Code.DONE


def _class_names(report: Report) -> list[str]:
    from rosenblatt.workflow.labels import label_text

    return [label_text(row.label) for row in report.classes]


def _describe_classes(console: Console, report: Report) -> tuple[dict[str, Any], list[str]]:
    """(facts, lines) of a classifier."""
    from rosenblatt.workflow.labels import label_text

    names = _class_names(report)
    rows = list(zip(names, report.classes, strict=True))
    confused = [[label_text(truth), label_text(guess), rows] for rows, truth, guess in report.most_confused(_MOST_JSON)]
    facts = {
        "rows": report.rows, "accuracy": report.accuracy, "macro_f1": report.macro_f1, "unknown_labels": report.unknown,
        "classes": {name: {"precision": row.precision, "recall": row.recall, "f1": row.f1, "support": row.support}
                    for name, row in rows},
        **({} if report.log_loss is None else {"log_loss": report.log_loss, "brier": report.brier}),
        **({"confusion": report.confusion} if len(names) <= _MOST_JSON else {}),
        "confused": confused,
    }  # fmt: skip
    wrong = report.rows - round(report.accuracy * report.rows)
    lines = [
        f"accuracy {report.accuracy:.2%}  ({wrong:,} of {report.rows:,} rows wrong)  macro F1 {report.macro_f1:.4f}",
        *([] if report.log_loss is None else [f"log loss {report.log_loss:.4f}  Brier score {report.brier:.4f}"]),
        "",
        console.table(
            ["class", "precision", "recall", "F1", "rows"],
            [[name, f"{row.precision:.4f}", f"{row.recall:.4f}", f"{row.f1:.4f}", row.support] for name, row in rows],
        ),
    ]
    if (matrix := _confusion_matrix(console, names, report)) is not None:
        lines += ["", matrix]
    elif wrong:
        lines += ["", console.table(["true", "predicted", "rows"], confused[:_MOST_CLASSES])]
    if report.unknown:
        lines.append(f"{report.unknown:,} rows have labels that the model does not know; they count as wrong")
    return facts, lines


def _confusion_matrix(console: Console, names: list[str], report: Report) -> str | None:
    """The confusion matrix, if it fits the width of the terminal."""
    if len(names) > _MOST_CLASSES:
        return None
    rows = [[name, *counts] for name, counts in zip(names, report.confusion.tolist(), strict=True)]
    headings = ["true \\ predicted", *names]
    wide = max(map(len, table(headings, rows).splitlines())) > width()
    return None if wide else console.table(headings, rows)


def _show_curve(console: Console, points: Iterable[Point], plot: str | None) -> int:
    found = []
    with console.progress(unit="rows") as progress:
        for point in points:
            found.append(point)
            progress.update(point.rows)
    rows = [[point.rows, f"{point.training:.4f}", f"{point.validation:.4f}"] for point in found]
    facts = {"curve": [point._asdict() for point in found]}
    console.result(facts, console.table(["rows", "training score", "validation score"], rows))
    if plot:
        from rosenblatt.plot import learning_curve

        save_plot(learning_curve([(point.rows, point.training, point.validation) for point in found]), plot)
    return Code.DONE
