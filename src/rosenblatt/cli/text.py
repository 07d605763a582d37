"""What taggers and parsers share on the command line: MODEL comes first; --train trains it, --test measures it, and files
are annotated with it, as a stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_replaceable, check_writable, writing
from rosenblatt.errors import InvalidData

if TYPE_CHECKING:
    from rosenblatt.data.conllu import Sentence

BATCH = 1000  # sentences that are annotated together

Model = Annotated[str, typer.Argument(metavar="MODEL", help="The model file: written with --train, else read.")]
Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILES", help="Files to annotate: CoNLL-U, columns, or lines of words; - is standard input."),
]
Train = Annotated[list[str] | None, typer.Option("--train", metavar="FILE", help="Train MODEL on this file; repeatable.")]
Dev = Annotated[
    list[str] | None,
    typer.Option(
        "--dev", metavar="FILE", help="Validation file: its error is shown after each epoch of --train; repeatable."
    ),
]
Test = Annotated[
    list[str] | None, typer.Option("--test", metavar="FILE", help="Measure the accuracy of MODEL on this file; repeatable.")
]
Epochs = Annotated[
    int, typer.Option("--epochs", "--passes", min=1, metavar="N", help="Number of epochs (passes over the training data).")
]
Resume = Annotated[bool, opts.option("--resume", None, "Resume the training of MODEL where Ctrl-C interrupted it.")]
From = Annotated[opts.Text, opts.option("--from", "MODEL", "Start training from the weights of this model (warm start).")]


class Trainable(Protocol):
    """A tagger, a parser, or both."""

    def fit(self, X: list, y: list, X_val: list | None = None, y_val: list | None = None) -> object: ...

    def save(self, path: str, resume: bool = False) -> None: ...


def check_arguments(context: typer.Context, training: tuple[str, ...]) -> None:
    """Refuse what makes no sense or has no effect, before any work; `training` are the options of --train."""
    from rosenblatt.data import opening

    values = context.params
    files, train, dev, test = (list(values[name] or []) for name in ("files", "train", "dev", "test"))
    if not (files or train or test):
        raise Failure(
            "there is nothing to do", Code.USAGE, "files to annotate, --train FILE to train, or --test FILE to measure"
        )
    if not train:
        opts.refuse_options(context, ("dev", *training), "it has no effect without --train")
    if not (train or test):
        opts.refuse_options(context, ("json",), "it has no effect without --train or --test: FILES keep their format")
    if values.get("resume") and values.get("start"):
        raise Failure("--resume and --from cannot be used together: one continues an interrupted training, the other "
                      "starts a new one", Code.USAGE)  # fmt: skip
    if not files:
        opts.refuse_options(context, ("output", "plot"), "there are no FILES to annotate")
    inputs = opening.paths([*files, *train, *test, *dev])
    check_writable(values["output"], values["model"], *inputs)
    if train:
        check_replaceable(values["model"], "another name for MODEL")
        check_writable(values["model"], *inputs)


class Place(NamedTuple):
    """Where a sentence begins."""

    path: str | None
    line: int | None


@contextmanager
def placed(places: Sequence[Place]) -> Iterator[None]:
    """Give an error about a sentence its place in the files."""
    try:
        yield
    except InvalidData as error:
        if error.row is not None and error.path is None and error.row < len(places):
            error.path, error.line = places[error.row]
        raise


def read_sentences(files: Iterable[str], columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the sentences of files to learn from or to compare with; an error if there are none."""
    empty = True
    for sentence in _read_any(files, columns):
        empty = False
        yield sentence
    if empty:
        raise InvalidData("there are no sentences; is the file empty?", path=", ".join(files))


def _read_any(
    files: Iterable[str], columns: Sequence[str] | None, on_wait: Callable[[], object] | None = None
) -> Iterator[Any]:
    """Yield the sentences of files; `on_wait` is called where a pipe has paused, before more of it is awaited."""
    from rosenblatt.data import opening, sentences

    for path in opening.paths(list(files)):
        yield from sentences.read(path, columns, on_wait)


def fit_and_save(
    learner: Trainable,
    path: str,
    X: list,
    y: list,
    X_val: list | None = None,
    y_val: list | None = None,
    fit: Callable[..., object] | None = None,
) -> bool:
    """Train and save; return False if Ctrl-C interrupted it. What was learned until then is saved.

    `fit` is how a learner that can resume is trained: its own `fit`, or `resume`.
    """
    from rosenblatt.engine.train import interrupts_held

    try:
        (fit or learner.fit)(X, y, X_val, y_val)
    except KeyboardInterrupt:
        from sklearn.exceptions import NotFittedError

        try:
            with interrupts_held():  # a second Ctrl-C lets the file be finished
                learner.save(path, resume=fit is not None)
        except NotFittedError:
            print("interrupted before anything was learned", file=sys.stderr)
            return False
        advice = "" if fit is None else "; the same command with --resume continues exactly there"
        print(f"interrupted\n{path} has what was learned so far{advice}", file=sys.stderr)
        return False
    with interrupts_held():  # what took minutes to train is saved in a second
        learner.save(path)
    return True


def annotate(
    files: Sequence[str],
    columns: Sequence[str] | None,
    predict: Callable[[list[Sentence]], Iterable[Sentence]],
    output: str | None,
    console: Console,
) -> None:
    """Write each sentence of the files as `predict` returns it; where a pipe pauses, all that were read are written."""
    from rosenblatt.data.lines import SentenceWriter

    held: list[Sentence] = []
    words = 0

    def answer() -> None:
        nonlocal words
        for sentence in predict(held) if held else ():
            writer.write(sentence)
        file.flush()
        words += sum(map(len, held))
        held.clear()
        progress.update(words, sentences=writer.count)

    with console.progress(unit="words") as progress, writing(output) as file:
        writer = SentenceWriter(lambda text: file.write(text.encode()))
        for sentence in _read_any(files, columns, answer):
            held.append(sentence)
            if len(held) == BATCH:
                answer()
        answer()
    if output not in (None, "-"):
        console.note(f"{writer.count:,} sentences, {words:,} words written to {output}")
