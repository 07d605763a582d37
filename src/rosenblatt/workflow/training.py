"""Training from files is a sequence of steps: some rows, learned from once, in an order that the files, the seed and the
number of the pass determine. So it can stop after any step and go on later exactly there; and a file that is streamed gives
the model of one that is loaded and visited in its own order, because cutting a stream in any way gives the same model.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

from sklearn.base import clone, is_regressor

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Reading
from rosenblatt.data.svmlight import LabelError
from rosenblatt.estimators.linear import Perceptron
from rosenblatt.workflow.labels import Labels
from rosenblatt.workflow.model import FileModel, listed
from rosenblatt.workflow.run import Run, can_widen
from rosenblatt.workflow.sources import sizes, text_size
from rosenblatt.workflow.terms import DEFAULTS, Options, UnknownLabel, Watch, WrongUse


def train(
    paths: str | PathLike | Sequence[str | PathLike],
    reading: Reading,
    learner: Any = None,
    options: Options = DEFAULTS,
    watch: Watch = lambda step: None,
    resume: FileModel | None = None,
    start: FileModel | None = None,
) -> FileModel:
    """The model that a learner makes of files; by default an averaged perceptron's.

    `watch` is called after each step. Ctrl-C ends training after the step it comes in; the model then says so in
    `training["stopped"]`, and given as `resume`, with the same files and options, it goes on exactly there.

    A model given as `start` learns on from these files, which may be others than it knows; its reading and its learner are
    taken over, and changed.
    """
    files = listed(paths)
    stream = streams(files, reading, options)
    learner = Perceptron(keep="average") if learner is None else learner
    if resume is not None:
        _check_resumable(resume, files, stream, options)
        options = replace(options, passes=options.passes or resume.training["passes"])
    known = resume or start
    if known is not None:
        known.learner._resumable()
        reading, learner = known.reading, known.learner
    if stream:
        _check_streamable(files, reading, learner, options, resume)
        if reading.learns:
            reading = reading.learned(reading.batches(files, on_error=options.on_error))

    def attempt(reading: Reading, labels: Labels | None, rows: int | None = None) -> FileModel:
        run = Run(reading, _seeded(learner, options) if known is None else learner, options, watch, stream, files)
        run.prepare(labels, rows, known, resuming=resume is not None)
        with catching_interrupts() as interrupted:
            run.go(interrupted)
        return run.model()

    if options.classes is not None:
        return attempt(reading, Labels.spoken(options.classes))
    if stream and not rereadable(files):
        return attempt(reading, Labels(grow=True))
    try:
        return attempt(reading, None)  # the classes are those of the first batch
    except (UnknownLabel, LabelError):  # but for one that came later: begin again with all of them
        if start is not None or not rereadable(files):
            raise
        known = resume = None  # as the run that was interrupted would have done
        rows, distinct = reading.labels(files, on_error=options.on_error)
        return attempt(reading.told(distinct), Labels(distinct), rows)


def _seeded(learner: Any, options: Options) -> Any:
    """A learner like this one that has learned nothing."""
    fresh = clone(learner)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=options.seed)
    return fresh


def streams(files: Sequence[str], reading: Reading, options: Options) -> bool:
    """Whether files are read anew in each pass: as asked, or because they are larger than what may be loaded. A pipe is
    streamed, unless its columns must be seen before they can be learned from."""
    if options.stream is not None:
        return options.stream
    if not rereadable(files):
        return not reading.learns
    return sum(text_size(file) for file in files) > options.memory


def _check_streamable(
    files: Sequence[str], reading: Reading, learner: Any, options: Options, resume: FileModel | None
) -> None:
    if options.holdout:
        raise WrongUse("holdout needs the rows in memory: stream=False")
    if rereadable(files):
        return
    if (options.passes or 1) > 1 or resume is not None:
        raise WrongUse("a pipe can be read once only: make one pass, or give a file")
    if reading.learns:
        raise WrongUse("the columns must be seen before they can be learned from, and a pipe can be read once only: "
                       "stream=False loads it")  # fmt: skip
    if reading.features is None and not can_widen(learner):
        raise WrongUse(f"{type(learner).__name__} must know the number of features beforehand: stream=False loads the pipe")
    if options.classes is None and not is_regressor(learner):
        if "unknown_class" not in learner.get_params():
            raise WrongUse(f"{type(learner).__name__} must know the classes beforehand: give them, or stream=False")
        learner.set_params(unknown_class="grow")


def _check_resumable(model: FileModel, files: Sequence[str], stream: bool, options: Options) -> None:
    then: Mapping[str, Any] = model.training
    if then.get("stopped") != "interrupted":
        raise WrongUse(f"this model was not interrupted: it stopped because of {then.get('stopped')!r}")
    if [size for _, size in then["files"]] != [size for _, size in sizes(files)]:
        raise WrongUse(
            f"this model learned from {', '.join(f'{name} ({size} bytes)' for name, size in then['files'])}, and these are "
            "other files"
        )
    now: dict[str, Any] = {"seed": options.seed, "holdout": options.holdout, "streamed": stream}
    if not now["streamed"]:
        now["order"] = options.order
    for name, value in now.items():
        if then[name] != value:
            raise WrongUse(f"this model was begun with {name}={then[name]!r}; go on with the same, not with {value!r}")
    if options.passes is not None and options.passes < then["pass"]:
        raise WrongUse(f"this model was interrupted in pass {then['pass']}, and passes={options.passes} ends before it")


@contextmanager
def catching_interrupts() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C came, as a question; a second one is not waited for."""
    came = threading.Event()

    def note(number: int, frame: Any) -> None:
        if came.is_set():
            raise KeyboardInterrupt
        came.set()

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield came.is_set  # a background job ignores Ctrl-C, and goes on doing so
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGINT, before)
