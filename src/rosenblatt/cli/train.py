"""`rosenblatt train`: from files to a model file, in one command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Annotated, Any

import typer

from rosenblatt.cli import pictures
from rosenblatt.cli.asked import Columns, Files, Learning, SkipErrors
from rosenblatt.cli.console import Console, check_replaceable, check_writable
from rosenblatt.cli.errors import Code, Failure, ending
from rosenblatt.cli.grouped import given, grouped
from rosenblatt.cli.options import Json, Plot, Quiet
from rosenblatt.cli.summary import makes_mistakes, numbers_as_labels, summary

_TOLD_WORDS = 8
_PATIENCE = 3.0  # seconds


@grouped
def train(
    data: Files,
    columns: Columns,
    learning: Learning,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="FILE", help="Where to save the model; default: DATA's name with .model, here."
        ),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--load", help="Read the files anew in each pass, or load them; by default their size tells."
        ),
    ] = None,
    memory: Annotated[
        float, typer.Option("--memory", metavar="GIB", min=0, help="Files with more text than this are streamed.")
    ] = 2.0,
    holdout: Annotated[
        float, typer.Option("--holdout", metavar="SHARE", min=0, max=0.99, help="Rows to judge by after each pass.")
    ] = 0.0,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="A,B,…", help="The labels there are, for a pipe, which cannot be read twice."),
    ] = None,
    skip_errors: SkipErrors = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on exactly where Ctrl-C stopped the model.")] = False,
    start: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="Learn on with this model, read as it reads.")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="Save what predicts and no more; it cannot learn on.")] = False,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, help="How many features that speak for a class to show.")
    ] = _TOLD_WORDS,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Learn from files and save a model.

    Mistakes are shown as they are made: each row is predicted before it is learned from. Ctrl-C saves what is learned so
    far; the same command with --resume goes on exactly there.
    """
    from rosenblatt.workflow import FileModel, Options
    from rosenblatt.workflow import train as learn
    from rosenblatt.workflow.model import listed

    console = Console(json, quiet)
    files = listed(data)
    place = model or _place(files)
    check_writable(place, *files)
    check_replaceable(place, "another name, with --model FILE")
    pictures.prepared(plot)
    if resume and start:
        raise Failure("--resume goes on with an interrupted training, --from begins another; give one", Code.USAGE)
    if classes and "-" not in files:
        raise Failure("--classes is for a pipe; files are read once more where a label comes late", Code.USAGE)
    if start and (unused := [*given(columns), *given(learning, "passes", "order", "seed")]):
        raise Failure(f"{', '.join(unused)}: {start} goes on reading and learning as it began", Code.USAGE)
    before = None
    if resume or start:
        with ending(Code.MODEL, OSError):
            before = FileModel.load(start or place)
    if resume and before is not None:
        _check_same(before, columns, learning)
    reading = before.reading if before is not None else columns.reading(files)
    learner = None if before is not None else learning.made()
    with ending(Code.USAGE, ValueError):
        options = Options(
            passes=learning.passes, order=learning.order.value, seed=learning.seed, stream=stream,
            memory=int(memory * 2**30), holdout=holdout, classes=classes.split(",") if classes else None,
            on_error="skip" if skip_errors else "error",
        )  # fmt: skip
    notes = _noted(reading, files, options.on_error) if before is None else getattr(reading, "notes", [])
    for note in notes:
        console.note(note)
    with console.progressive() as table, console.progress(unit="rows") as line, _patience(console) as begun:
        counted = makes_mistakes(learner if before is None else before.learner)
        watched = _Watched(table if counted else None, line, console, begun)
        trained = learn(files, reading, learner, options, watched, **{"resume" if resume else "start": before})
    for note in getattr(trained.reading, "notes", []):
        if note not in notes:
            console.note(note)
    with ending(Code.OUTPUT, OSError):
        trained.save(place, resume=not small or trained.training["stopped"] == "interrupted")
    if plot:
        from rosenblatt.plot import passes

        pictures.saved(passes(trained.training["history"]), plot)
    if trained.training["stopped"] == "interrupted":
        print(f"\ninterrupted in pass {trained.training['pass']} after {trained.training['row']:,} of its rows\n"
              f"{place} has what was learned so far; the same command with --resume goes on exactly there",
              file=sys.stderr)  # fmt: skip
        return int(Code.INTERRUPTED)
    if (many := numbers_as_labels(trained)) and not start:
        console.note(f"{many:,} different labels that are numbers; to predict numbers: --learner DeltaRuleRegressor")
    facts, text = summary(trained, place, top)
    console.result(facts, text)
    return int(Code.DONE)


def _check_same(before: Any, columns: Columns, learning: Learning) -> None:
    """The same command is repeated to go on; what it says about learner and columns must be what the model has."""
    learner, said = before.learner, learning.made()
    names = [setting.partition("=")[0] for setting in learning.set or []]
    if given(learning, "set", "passes", "order", "seed") and type(said) is not type(learner):
        raise Failure(f"--learner {learning.learner}: the model is a {type(learner).__name__}", Code.USAGE)
    if type(said) is type(learner):
        for name in names:
            if getattr(said, name) != getattr(learner, name):
                raise Failure(f"--set {name}={getattr(said, name)}: the model has {getattr(learner, name)}", Code.USAGE)
    elif names:
        raise Failure(f"--set {names[0]}: say --learner too, as the command did that was interrupted", Code.USAGE)
    kinds = dict(getattr(before.reading, "kinds", {}))
    if columns.target in kinds and kinds[columns.target] != "target":
        raise Failure(f"--target {columns.target}: the model learned this column as {kinds[columns.target]}", Code.USAGE)


def _noted(reading: Any, files: list[str], policy: str) -> list[str]:
    """What is decided about the columns of files, before anything is learned; of a pipe nobody knows so early."""
    if not hasattr(reading, "notes") or "-" in files:
        return []
    batches = reading.batches(files, on_error=policy)
    try:
        next(iter(batches), None)
        return list(getattr(batches.schema, "notes", ()))
    finally:
        batches.close()


@contextmanager
def _patience(console: Console) -> Iterator[Callable[[], None]]:
    """Somebody who waits at a terminal is told what for; what is given is to be called when there is something to see."""
    said = "reading, and compiling what is used for the first time; compiled code is kept for the next time"
    timer = Timer(_PATIENCE, console.note, [said])
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()


class _Watched:
    """Shows each step in the table of progressive error, or in one line, and the error on rows held out."""

    def __init__(self, table: Any, line: Any, console: Console, begun: Callable[[], None]):
        self.table, self.line, self.console, self.begun, self.seen = table, line, console, begun, 0

    def __call__(self, step: Any) -> None:
        self.begun()
        if step.seen < self.seen:
            self.console.note(
                "a label came that the first rows did not have: once more from the beginning, with all labels"
            )
            if self.table is not None:
                self.table.begin()
        self.seen = step.seen
        if self.table is not None:
            self.table.update(step.seen, step.mistakes)
        else:
            self.line.update(step.seen, passes=step.number)
        if step.error is not None:
            self.console.note(f"pass {step.number}: error on the rows held out {step.error:.4f}")


def _place(files: list[str]) -> str:
    """The model of DATA.svm.gz is DATA.model, in the folder that we are in."""
    if files[0] == "-":
        raise Failure("a model from a pipe needs a name", Code.USAGE, "--model FILE")
    name = Path(files[0]).name
    while Path(name).suffix.lower() in {".gz", ".bz2", ".xz", ".zst"}:
        name = Path(name).stem
    return f"{Path(name).stem}.model"
