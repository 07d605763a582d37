"""`rosenblatt predict`: an answer for each row, as fast as it is read."""

from __future__ import annotations

import json as _json
from typing import Annotated, Any

import typer

from rosenblatt.cli.asked import Files, Model, SkipErrors
from rosenblatt.cli.console import Console, writing
from rosenblatt.cli.errors import Code, ending
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
    from rosenblatt import loading
    from rosenblatt.workflow.model import FileModel, listed

    console = Console(json, quiet)
    files = listed(data)
    with ending(Code.MODEL, OSError):
        loaded = loading.load(model)
    if not isinstance(loaded, FileModel):
        raise refused(loaded, model)
    unknown = rows = 0
    with writing(output) as out, console.progress(unit="rows") as progress:
        for answers in loaded.answers(
            files, labelled=False, scores=scores or json, on_error="skip" if skip_errors else "error"
        ):
            out.write(_lines(loaded, answers, scores, json).encode())
            rows += len(answers.labels)
            unknown += answers.unknown
            progress.update(rows)
    if unknown:
        console.note(f"{unknown:,} values were in columns that no row had in training; they count for nothing")
    return int(Code.DONE)


def refused(loaded: Any, path: str) -> Exception:
    """What to say to a model that does not read files of rows."""
    from rosenblatt.cli.errors import Failure

    kind = type(loaded).__name__
    hint = (
        "rosenblatt tag"
        if "Tag" in kind
        else "rosenblatt parse"
        if "Pars" in kind
        else f"rosenblatt.load({path!r}) in Python"
    )
    return Failure(f"{path} holds a {kind}, which was not trained from files of rows", Code.MODEL, hint)


def _lines(model: Any, answers: Any, scores: bool, json: bool) -> str:
    from rosenblatt.workflow.labels import spelled

    labels = [spelled(label) for label in answers.labels.tolist()]
    if not labels:
        return ""
    if answers.scores is None:
        return "".join(f"{_json.dumps({'label': label}, ensure_ascii=False) if json else label}\n" for label in labels)
    classes = [spelled(label) for label in model.classes_]
    table = answers.scores.tolist()
    if json:
        two = answers.scores.ndim == 1
        return "".join(
            _json.dumps(
                {"label": label, "score": score if two else dict(zip(classes, score, strict=True))}, ensure_ascii=False
            )
            + "\n"
            for label, score in zip(labels, table, strict=True)
        )
    if answers.scores.ndim == 1:
        return "".join(f"{label}\t{score!r}\n" for label, score in zip(labels, table, strict=True))
    return "".join(f"{label}\t{max(score)!r}\n" for label, score in zip(labels, table, strict=True))
