"""`rosenblatt predict`: an answer for each row, as fast as it is read."""

from __future__ import annotations

import json as _json
import sys
from typing import Annotated, Any

import typer

from rosenblatt.cli.asked import Files, Model, SkipErrors
from rosenblatt.cli.console import Console, check_writable, speaks_utf8, writing
from rosenblatt.cli.errors import Code
from rosenblatt.cli.loaded import fitting, loaded
from rosenblatt.cli.options import Output, Quiet


def predict(
    model: Model,
    data: Files,
    output: Output = None,
    scores: Annotated[bool, typer.Option("--scores", help="Behind each label, its score; tabs between them.")] = False,
    json: Annotated[bool, typer.Option("--json", help="A JSON object for each row: label, and score by class.")] = False,
    skip_errors: SkipErrors = False,
    quiet: Quiet = False,
) -> int:
    """Print what each row is: a label a line, in the order of the rows.

    Rows are read as the model learned to read them; a label in the data is not looked at. For two classes the score is
    that of the second: 0 and above predict it.
    """
    from rosenblatt.workflow.model import listed

    console = Console(json, quiet)
    files = listed(data)
    check_writable(output, model, *files)
    known = loaded(model)
    policy = "skip" if skip_errors else "error"
    letters = output not in (None, "-") or speaks_utf8(sys.stdout)
    unknown = rows = skipped = 0
    with fitting(), writing(output) as out, console.progress(unit="rows") as progress:
        for answers in known.answers(files, labelled=False, scores=scores or json, on_error=policy):
            out.write(_lines(known, answers, json, letters).encode())
            rows += len(answers.labels)
            unknown += answers.unknown
            skipped = getattr(answers, "skipped", 0)
            progress.update(rows)
    if skipped:
        console.note(f"{skipped:,} rows that could not be read were left out")
    if unknown:
        console.note(f"{unknown:,} values were in columns that no row had in training; they count for nothing")
    return int(Code.DONE)


def _lines(model: Any, answers: Any, json: bool, letters: bool) -> str:
    """The answers, a line each; as JSON, with letters that are not ASCII where there may be some."""
    from rosenblatt.workflow.labels import spelled

    labels = [spelled(label) for label in answers.labels.tolist()]
    if not labels:
        return ""
    if answers.scores is None:
        said = [_json.dumps({"label": label}, ensure_ascii=not letters) for label in labels] if json else labels
        return "".join(f"{line}\n" for line in said)
    classes = [spelled(label) for label in model.classes_]
    table = answers.scores.tolist()
    if json:
        two = answers.scores.ndim == 1
        return "".join(
            _json.dumps(
                {"label": label, "score": score if two else dict(zip(classes, score, strict=True))},
                ensure_ascii=not letters,
            )
            + "\n"
            for label, score in zip(labels, table, strict=True)
        )
    if answers.scores.ndim == 1:
        return "".join(f"{label}\t{score!r}\n" for label, score in zip(labels, table, strict=True))
    return "".join(f"{label}\t{max(score)!r}\n" for label, score in zip(labels, table, strict=True))
