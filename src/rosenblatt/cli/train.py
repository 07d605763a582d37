"""`rosenblatt train`: from files to a model file, in one command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.cluster import check_files, checkpoint_of, forget, refuse_cluster_options, train_rows
from rosenblatt.cli.console import Console, Progress, Progressive, round_digits, rows_left_out, wrap
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_plot, check_replaceable, check_writable, load_model, save_plot

if TYPE_CHECKING:
    from rosenblatt.data.reading import Reading
    from rosenblatt.workflow import FileModel
    from rosenblatt.workflow.training import Step

_TOP_FEATURES = 8
_PATIENCE = 3.0  # seconds until a note says what takes so long
_SHOWN_CLASSES = 8
_LONGEST_NAME = 80  # letters of a feature that are shown


@opts.expand_groups
def train(
    context: typer.Context,
    data: opts.Files,
    columns: opts.DataOptions,
    learning: opts.LearnerOptions,
    parallel: opts.ClusterOptions,
    model: Annotated[opts.Text, opts.option("--model -m", "FILE", "Model file to write; by default DATA.model.")] = None,
    stream: Annotated[
        bool | None,
        opts.option(
            "--stream/--load",
            None,
            "Read the files again in each epoch, or load them into memory; by default large files are streamed.",
        ),
    ] = None,
    memory: Annotated[
        float, opts.option("--memory", "GIB", "Size of the files above which they are streamed instead of loaded.", min=0)
    ] = 2.0,
    holdout: Annotated[
        float,
        opts.option(
            "--holdout",
            "SHARE",
            "Train/test split: share of the rows to test on after each epoch, such as 0.2.",
            min=0,
            max=0.99,
        ),
    ] = 0.0,
    classes: Annotated[
        opts.Text, opts.option("--classes", "A,B,…", "All class labels; for standard input, which cannot be read twice.")
    ] = None,
    skip_errors: opts.SkipErrors = False,
    probabilities: Annotated[
        bool,
        opts.option(
            "--probabilities", None, "Also fit class probabilities (calibration on 5 folds; takes about 5 times as long)."
        ),
    ] = False,
    resume: Annotated[
        bool, opts.option("--resume", None, "Resume a training that Ctrl-C interrupted, exactly where it stopped.")
    ] = False,
    start: Annotated[
        opts.Text, opts.option("--from", "MODEL", "Continue training this model on more data (warm start).")
    ] = None,
    small: Annotated[
        bool, opts.option("--small", None, "Save a smaller model file, which can predict but not be trained further.")
    ] = False,
    top: Annotated[
        int, opts.option("--top", "N", "Number of features with the largest weights to show for each class.", min=0)
    ] = _TOP_FEATURES,
    plot: opts.Plot = None,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Train a classifier or regressor on files and save the model.

    Each row is predicted before it is learned from, and the mistakes are shown as training goes on. Ctrl-C saves the
    model as it is; the same command with --resume continues exactly there.
    """
    from rosenblatt.workflow import FileModel, Options, calibrate
    from rosenblatt.workflow import train as train_model
    from rosenblatt.workflow.calibration import check_calibration, check_new
    from rosenblatt.workflow.devices import check_device
    from rosenblatt.workflow.model import file_list
    from rosenblatt.workflow.training import uses_stream

    console = Console(json, quiet)
    files = file_list(data)
    place = model or _model_name(files)
    check_writable(place, *files)
    if not resume:
        check_replaceable(place, "another model file, with --model FILE")
    check_plot(plot)
    if resume and start:
        raise Failure("--resume and --from cannot be used together: one continues an interrupted training, the other "
                      "starts a new one", Code.USAGE)  # fmt: skip
    if parallel.cluster:
        _check_cluster(context, files, probabilities, holdout, start)
        opts.refuse_options(context, ("device",), "the workers of a cluster learn on their CPUs", "train without --cluster")
    else:
        refuse_cluster_options(context)
    if classes and "-" not in files:
        raise Failure("--classes is for standard input only: files are read again if a new label comes late", Code.USAGE)
    if start and probabilities:
        raise Failure("--from and --probabilities cannot be used together: probabilities are fitted to rows that the model "
                      "did not learn from, and it has learned from all rows of MODEL", Code.USAGE,
                      "train a new model on all rows with --probabilities")  # fmt: skip
    if stream is not None:
        opts.refuse_options(context, ("memory",), "--stream or --load decides already")
    before: FileModel | None = None
    if (resume and not parallel.cluster) or start:
        before = load_model(start or place, FileModel)
        before.reading = columns.with_target(before.reading)
    if start and before is not None:
        opts.refuse_options(context, ("classes",), f"{start} has its classes, and learns new ones as they come")
        fixed = tuple(name for name in learning._fields if name not in ("passes", "order", "seed", "device"))
        reason = f"{start} keeps its columns and its learner"
        hint = "train --from without these options, or train a new model"
        opts.refuse_options(context, (*columns.fixed_by(before.reading), *fixed), reason, hint)
    if before is not None and resume:
        _check_same(context, before, columns, learning)
    if before is not None and learning.device is not None:
        before.learner.set_params(device=learning.device)
        check_device(learning.device)
    options = Options(
        passes=learning.passes, order=learning.order.value, seed=learning.seed, stream=stream, memory=int(memory * 2**30),
        holdout=holdout, classes=classes.split(",") if classes else None, on_error="skip" if skip_errors else "error",
        task=learning.task and learning.task.value,
    )  # fmt: skip
    if before is None:
        reading, learner = columns.make_reading(files), learning.make_learner()
        notes = _column_notes(reading, files, options.on_error)
    else:
        reading, learner, notes = before.reading, before.learner, list(getattr(before.reading, "notes", []))
    if probabilities:
        if before is not None:
            check_new(before)
        check_calibration(learner, files, uses_stream(files, reading, options))
    if start and before is not None and before.probabilities is not None:
        notes.append(f"the probabilities of {start} are dropped: they do not fit a model that has learned more")
    for note in notes:
        console.note(note)
    if parallel.cluster:
        with console.warnings_as_notes(), _explain_wait(console) as begun:
            trained = train_rows(parallel, files, reading, learner, options, place, resume, console, begun)
        if trained.training["stopped"] == "interrupted":
            print(f"interrupted\n{checkpoint_of(place)} has what was learned so far; the same command with --resume "
                  "continues exactly there", file=sys.stderr)  # fmt: skip
            return Code.INTERRUPTED
        trained.save(place, resume=not small)
        forget(checkpoint_of(place))
        return _finish(console, trained, place, plot, top)
    with (
        console.warnings_as_notes(), console.progressive() as table, console.progress(unit="rows") as line,
        _explain_wait(console) as begun,
    ):  # fmt: skip
        watch = _Watch(table if _counts_mistakes(learner) else None, line, console, begun)
        trained = train_model(files, reading, learner, options, watch, **{"resume" if resume else "start": before})
    if probabilities and trained.training["stopped"] != "interrupted":
        console.note("fitting probabilities: training on 5 folds")
        trained = calibrate(trained, files, reading if before is None else before.reading, on_error=options.on_error)
    for note in getattr(trained.reading, "notes", []):
        if note not in notes:
            console.note(note)
    training = trained.training
    trained.save(place, resume=not small or training["stopped"] == "interrupted")
    if training["stopped"] == "interrupted":
        print(f"\ninterrupted in pass {training['pass']} after {training['row']:,} of its rows\n"
              f"{place} has what was learned so far; the same command with --resume continues exactly there",
              file=sys.stderr)  # fmt: skip
        return Code.INTERRUPTED
    return _finish(console, trained, place, plot, top)


def _finish(console: Console, trained: FileModel, place: str, plot: str | None, top: int) -> Code:
    """Show what was learned."""
    if plot:
        from rosenblatt.plot import passes

        save_plot(passes(trained.training["history"]), plot)
    console.result(*_summary(trained, place, top))
    return Code.DONE


def _check_cluster(
    context: typer.Context, files: list[str], probabilities: bool, holdout: float, start: str | None
) -> None:
    """Refuse what training on a cluster cannot do."""
    check_files(files)
    for is_set, name, instead in (
        (probabilities, "--probabilities", "train without --cluster"),
        (holdout, "--holdout", "keep rows in a file of their own, and measure the model on it with rosenblatt evaluate"),
        (start, "--from", "train a new model on all files"),
    ):
        if is_set:
            raise Failure(f"{name} and --cluster cannot be used together", Code.USAGE, instead)


def _check_same(
    context: typer.Context, before: FileModel, columns: opts.DataOptions, learning: opts.LearnerOptions
) -> None:
    """Refuse to resume with another learner or other columns than those of the model."""
    learner, wanted = before.learner, learning.make_learner()
    names = [setting.partition("=")[0] for setting in learning.set or []]
    if type(wanted) is type(learner):
        for name in names:
            if getattr(wanted, name) != getattr(learner, name):
                raise Failure(f"--set {name}={getattr(wanted, name)}: the model has {getattr(learner, name)}", Code.USAGE)
    elif opts.options_in_use(context, "learner"):
        raise Failure(f"--learner {learning.learner}: the model is a {type(learner).__name__}", Code.USAGE)
    elif names:
        raise Failure(f"--set {names[0]}: give --learner too, as in the command that was interrupted", Code.USAGE)
    kinds = dict(getattr(before.reading, "kinds", {}))
    if columns.target in kinds and kinds[columns.target] != "target":
        raise Failure(f"--target {columns.target}: the model learned this column as {kinds[columns.target]}", Code.USAGE)


def _column_notes(reading: Reading, files: list[str], on_error: str) -> list[str]:
    """What was decided about the columns of files, before training; standard input is not read so early."""
    if not hasattr(reading, "notes") or "-" in files:
        return []
    batches: Any = reading.batches(files, on_error=on_error)
    try:
        next(iter(batches), None)
        return list(getattr(batches.schema, "notes", ()))
    finally:
        batches.close()


@contextmanager
def _explain_wait(console: Console) -> Iterator[Callable[[], None]]:
    """Say on a terminal why nothing is shown for a while; the function is to be called when there is something to show."""
    text = "reading the files and compiling code that is used for the first time; compiled code is cached"
    timer = Timer(_PATIENCE, console.note, [text])
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()


class _Watch:
    """Shows each step in the table of progressive error, or in one line, and the error on rows held out."""

    def __init__(self, table: Progressive | None, line: Progress, console: Console, begun: Callable[[], None]):
        self.table, self.line, self.console, self.begun, self.seen = table, line, console, begun, 0

    def __call__(self, step: Step) -> None:
        self.begun()
        if step.seen < self.seen:
            self.console.note("there is a label that the first rows did not have: training starts again with all labels")
            if self.table is not None:
                self.table.begin()
        self.seen = step.seen
        if self.table is not None:
            self.table.update(step.seen, step.mistakes)
        else:
            self.line.update(step.seen, passes=step.number)
        if step.error is not None:
            self.console.note(f"pass {step.number}: error on the rows held out {step.error:.4f}")


def _model_name(files: list[str]) -> str:
    """The model of DATA.svm.gz is DATA.model, in the current folder."""
    if files[0] == "-":
        raise Failure("a model from standard input needs a file name", Code.USAGE, "--model FILE")
    name = Path(files[0]).name
    while Path(name).suffix.lower() in {".gz", ".bz2", ".xz", ".zst"}:
        name = Path(name).stem
    return f"{Path(name).stem}.model"


# The result


def _summary(model: FileModel, place: str, top: int) -> tuple[dict[str, Any], str]:
    """(facts, text): what was learned, from how much, how well, and the `top` features of each class."""
    from rosenblatt.workflow import top_features
    from rosenblatt.workflow.explanation import is_explainable
    from rosenblatt.workflow.labels import label_text

    training, learner, seconds = model.training, model.learner, model.seconds or 0.0
    history = training["history"]
    labels = [label_text(label) for label in getattr(learner, "classes_", [])]
    rows, passes = history[-1]["rows"], len(history)
    features: list[Any] = []
    if top and is_explainable(learner) and model.reading.format == "table":  # others have no names for features
        features = [entry for entry in top_features(model, top) if entry.weights]
    facts = {
        "model": place, "learner": type(learner).__name__, "classes": labels, "features": model.features,
        "rows": rows, "passes": passes, "stopped": training["stopped"], "skipped": training.get("skipped", 0),
        "history": history, "seconds": seconds,
        **({"cluster": training["cluster"]} if "cluster" in training else {}),
        **({} if model.probabilities is None else {"probabilities": model.probabilities.to_facts()}),
        "top_features": {entry.label: {weight.name: weight.value for weight in entry.weights} for entry in features},
    }  # fmt: skip
    if not labels:
        facts["history"] = [{key: value for key, value in entry.items() if key != "mistakes"} for entry in history]
    head = f"{place}: {type(learner).__name__}, {model.features:,} features"
    if labels:
        names = labels[:_SHOWN_CLASSES] + ["…"] * (len(labels) > _SHOWN_CLASSES)
        head = wrap(f"{head}, {len(labels)} classes: ", names)
    lines = [
        head,
        f"{rows:,} rows, {passes} {'pass' if passes == 1 else 'passes'}, {seconds:.1f} s "
        f"({round_digits(rows * passes / max(seconds, 1e-9))} rows/s)",
    ]
    if _counts_mistakes(learner):
        first, last = history[0], history[-1]
        shares = f"mistakes: {first['mistakes'] / rows:.2%} in the first pass"
        lines.append(shares + (f", {last['mistakes'] / rows:.2%} in the last" if passes > 1 else ""))
    if history[-1]["error"] is not None:
        lines.append(f"error on the rows held out: {history[-1]['error']:.4f}")
    if training["stopped"] == "converged":
        lines.append("converged: no update in the last pass")
    if (cluster := training.get("cluster")) is not None:
        lines.append(f"learned in {cluster['shards']} shards, mixing={cluster['mixing']}")
    if model.probabilities is not None:
        lines.append(f"probabilities: fitted to {model.probabilities.rows:,} rows held out in turn")
    if training.get("skipped"):
        lines.append(rows_left_out(training["skipped"]))
    lines += [
        wrap(f"top features of {entry.label}: ", [f"{_short(weight.name)} {weight.value:.3g}" for weight in entry.weights])
        for entry in features[:_SHOWN_CLASSES]
    ]
    if len(features) > _SHOWN_CLASSES:
        lines.append(f"({len(features) - _SHOWN_CLASSES:,} more classes)")
    return facts, "\n".join(lines)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _counts_mistakes(learner: object) -> bool:
    """Whether each row is predicted before it is learned from, and is right or wrong."""
    from rosenblatt.estimators.interface import is_regressor

    return hasattr(learner, "partial_fit") and not is_regressor(learner)
