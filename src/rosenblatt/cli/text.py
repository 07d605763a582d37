"""What taggers and parsers share on the command line: MODEL comes first; --train makes it, --test measures it, and files
are annotated with it, in a stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from rosenblatt.cli.console import Console, check_replaceable, check_writable, writing
from rosenblatt.cli.errors import Code, Failure, ending

BATCH = 1000  # sentences that are annotated together

Model = Annotated[str, typer.Argument(metavar="MODEL", help="The model: read, or with --train written.")]
Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILES", help="What to annotate: CoNLL-U, columns, or lines of words; - is standard input."),
]
Train = Annotated[list[str] | None, typer.Option("--train", metavar="FILE", help="Learn MODEL from this file; repeatable.")]
Dev = Annotated[list[str] | None, typer.Option("--dev", metavar="FILE", help="Judge by this file after each epoch.")]
Test = Annotated[list[str] | None, typer.Option("--test", metavar="FILE", help="Measure MODEL on this file; repeatable.")]
Epochs = Annotated[
    int, typer.Option("--epochs", "--passes", min=1, metavar="N", help="How often to go through the training data.")
]


def prepared(model: str, files: Sequence[str] | None, train: Any, test: Any, dev: Any, output: str | None) -> None:
    """Refuse what makes no sense, before any work."""
    from rosenblatt.data import opening

    if not (files or train or test):
        raise Failure(
            "there is nothing to do: name files to annotate, --train FILE to learn, or --test FILE to measure", Code.USAGE
        )
    if dev and not train:
        raise Failure("--dev judges while --train learns; --test measures a model that is there", Code.USAGE)
    given = opening.paths([*(files or []), *(train or []), *(test or []), *(dev or [])])
    check_writable(output, model, *given)
    if train:
        check_replaceable(model, "another name for MODEL")
        check_writable(model, *given)


def loaded(path: str, kinds: Sequence[type]) -> Any:
    """The model in a file, if it is of one of these kinds."""
    from rosenblatt.modelfile.registry import load

    with ending(Code.MODEL, OSError):
        model = load(path)
    if not isinstance(model, tuple(kinds)):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise Failure(f"{path} holds a {type(model).__name__}; this needs {names}", Code.MODEL)
    return model


def sentences(files: Iterable[str], columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The sentences of these files, one at a time."""
    from rosenblatt.data import opening
    from rosenblatt.data import sentences as read

    for path in opening.paths(list(files)):
        yield from read.read(path, columns)


def learned(fit: Callable[[], Any], save: Callable[[], Any], path: str, console: Console) -> bool:
    """Fit and save; whether it was not interrupted. What Ctrl-C left is saved where there is something."""
    try:
        fit()
    except KeyboardInterrupt:
        from sklearn.exceptions import NotFittedError

        try:
            with ending(Code.OUTPUT, OSError):
                save()
        except NotFittedError:
            print("interrupted before anything was learned", file=sys.stderr)
        else:
            print(f"interrupted; {path} has what was learned until then", file=sys.stderr)
        return False
    with ending(Code.OUTPUT, OSError):
        save()
    return True


def annotated(
    files: Sequence[str],
    columns: Sequence[str] | None,
    answer: Callable[[list[Any]], Iterable[Any]],
    output: str | None,
    console: Console,
) -> None:
    """Write each sentence of the files as `answer` gives it back."""
    from rosenblatt.data.lines import write

    done = words = 0
    stream = sentences(files, columns)
    typed = "-" in files and sys.stdin.isatty()  # whoever types wants an answer to each line

    def answers() -> Iterator[Any]:
        nonlocal done, words
        while some := list(islice(stream, 1 if typed else BATCH)):
            yield from answer(some)
            done += len(some)
            words += sum(map(len, some))
            if typed:
                file.flush()
            else:
                progress.update(words, sentences=done)

    with console.progress(unit="words") as progress, writing(output) as file:
        write(file, answers())
    if output not in (None, "-"):
        console.note(f"{done:,} sentences, {words:,} words in {output}")
