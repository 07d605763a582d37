"""`rosenblatt predict`: a label for each row, as fast as rows are read."""

from __future__ import annotations

import json as _json
import sys
from typing import TYPE_CHECKING, Annotated

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console, is_utf8
from rosenblatt.cli.files import check_writable, load_model, writing

if TYPE_CHECKING:
    from rosenblatt.workflow import FileModel
    from rosenblatt.workflow.model import Answers


def predict(
    model: opts.Model,
    data: opts.Files,
    output: opts.Output = None,
    scores: Annotated[bool, opts.option("--scores", None, "Print the score behind each label, after a tab.")] = False,
    json: Annotated[bool, opts.option("--json", None, "Print each row as a JSON object: label, scores.")] = False,
    skip_errors: opts.SkipErrors = False,
    max_line: opts.MaxLine = "64M",
    quiet: opts.Quiet = False,
) -> None:
    """Predict the label of each row with a trained model: one label a line, in the order of the rows.

    Rows are read as in training; labels in the data are ignored. For two classes the score is that of the second class:
    it is predicted at 0 and above.
    """
    from rosenblatt.workflow import FileModel
    from rosenblatt.workflow.model import file_list

    console = Console(json, quiet)
    files = file_list(data)
    check_writable(output, model, *files)
    trained = load_model(model, FileModel)
    ascii_only = output in (None, "-") and not is_utf8(sys.stdout)
    unknown = rows = skipped = 0
    on_error = "skip" if skip_errors else "error"
    with writing(output) as out, console.progress(unit="rows") as progress:
        for answers in trained.answers(files, labelled=False, scores=scores or json, on_error=on_error):
            out.write("".join(f"{line}\n" for line in _lines(trained, answers, json, ascii_only)).encode())
            rows += len(answers.labels)
            unknown += answers.unknown
            skipped = answers.skipped
            progress.update(rows)
    if skipped:
        console.note(f"{skipped:,} rows that could not be read were left out")
    if unknown:
        console.note(f"{unknown:,} values were in columns that no row had in training; they were ignored")


def _lines(model: FileModel, answers: Answers, json: bool, ascii_only: bool) -> list[str]:
    """The predictions, a line each."""
    from rosenblatt.workflow.labels import label_text

    labels = [label_text(label) for label in answers.labels.tolist()]
    if answers.scores is None:
        return [_json.dumps({"label": label}, ensure_ascii=ascii_only) for label in labels] if json else labels
    table = answers.scores.tolist()
    two = answers.scores.ndim == 1
    if not json:
        best = table if two else map(max, table)
        return [f"{label}\t{score!r}" for label, score in zip(labels, best, strict=True)]
    classes = [label_text(label) for label in model.classes_]
    by_class = table if two else [dict(zip(classes, row, strict=True)) for row in table]
    return [
        _json.dumps({"label": label, "score": score}, ensure_ascii=ascii_only)
        for label, score in zip(labels, by_class, strict=True)
    ]
