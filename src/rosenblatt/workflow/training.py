"""Training from files is a sequence of steps: some rows, learned from once, in an order that the files, the seed and the
number of the pass determine. So it can stop after any step and go on later exactly there; and a file that is streamed gives
the model of one that is loaded and visited in its own order, because cutting a stream in any way gives the same model.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from os import PathLike
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Chunk, OfRows, Reading
from rosenblatt.data.svmlight import LabelError
from rosenblatt.linear import Linear, Perceptron
from rosenblatt.workflow.labels import Labels, spelled
from rosenblatt.workflow.model import FileModel, fitted_to, listed
from rosenblatt.workflow.sources import Loaded, Streamed, memory_there_is, sizes, text_size

LOADED_PASSES, STREAMED_PASSES = 10, 1
_GROWTH = 1.5


@dataclass(frozen=True)
class Options:
    """How to go about it.

    passes    over the data; by default 10 where they are loaded, 1 where they are streamed
    order     "shuffle" visits loaded rows in a new order each pass, "cyclic" as they stand; a stream comes as it stands
    seed      of the order, and of a learner that takes chances
    stream    read the files anew in each pass instead of loading them; None: if they hold more than `memory` bytes of text,
              or come from a pipe
    memory    see there
    holdout   the share of loaded rows that is not learned from, but judged after each pass
    classes   the labels there are, for a pipe, which cannot be read twice
    on_error  "skip" leaves out rows that cannot be read
    """

    passes: int | None = None
    order: str = "shuffle"
    seed: int = 0
    stream: bool | None = None
    memory: int = 1 << 31
    holdout: float = 0.0
    classes: Sequence[str] | None = None
    on_error: str = "error"

    def __post_init__(self) -> None:
        if self.passes is not None and self.passes < 1:
            raise ValueError(f"passes={self.passes}: there must be at least one")
        if self.order not in ("shuffle", "cyclic"):
            raise ValueError(f"order={self.order!r}: it must be 'shuffle' or 'cyclic'")
        if not 0 <= self.holdout < 1:
            raise ValueError(f"holdout={self.holdout}: it must be a share of the rows, at least 0 and below 1")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed}: it must be a whole number from 0 to {2**32 - 1}")


DEFAULTS = Options()


class Step(NamedTuple):
    """How far training has come, after some rows."""

    number: int  # of the pass, from 1
    passes: int
    rows: int  # visited in this pass
    of: int | None  # how many a pass has, if anybody knows
    seen: int  # rows visited in all passes
    mistakes: int  # of them, wrong when they came
    seconds: float
    ends: bool  # whether the pass ends here
    error: float | None  # on the rows held out, at the end of a pass


Watch = Callable[[Step], Any]


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


class WrongUse(ValueError):
    """Something that was asked for and cannot be: not for what is in the files, but for how it was asked."""


class UnknownLabel(ValueError):
    """A row with a label that is none of the classes."""


class Run:
    """One training under way."""

    def __init__(self, reading: Reading, learner: Any, options: Options, watch: Watch, stream: bool, files: Sequence[str]):
        self.reading, self.learner, self.options, self.watch = reading, learner, options, watch
        self.stream, self.files = stream, files
        self.passes = options.passes or (STREAMED_PASSES if stream else LOADED_PASSES)
        self.number, self.row = 1, 0  # the pass under way, and how many of its rows are done
        self.mistakes_before = self.mistakes_in_pass = self.updates_in_pass = 0
        self.width = 0  # the most columns a row had
        self.stopped = ""
        self.held: Chunk | None = None
        self.history: list[dict[str, Any]] = []
        self.labels = Labels()
        self.told = False
        self.class_weight: Any = None
        self.source: Any = None
        self.facts: dict[str, Any] = {}
        self.started = perf_counter()

    # Getting ready

    def prepare(
        self, labels: Labels | None, rows: int | None, known: FileModel | None = None, resuming: bool = False
    ) -> None:
        """Find the rows; `labels` are the classes and `rows` the number of rows, where they are known beforehand. A model
        that is `known` learns on, and exactly where it stopped if it is `resuming`."""
        self.labels = Labels() if labels is None else labels
        self.told = labels is not None or known is not None  # whether there can be no other classes
        if self.stream:
            self.source = Streamed(self.reading, self.files, rows, self.options.on_error)
            if self.reading.features is None and known is None and not can_widen(self.learner):
                self.width = max((chunk.X.shape[1] for chunk, _ in self.source.steps(0, 0)), default=0)
        else:
            self.take_rows(self._load())
        if known is not None:
            self._take_over(known.learner)
        if known is not None and resuming:
            self._take_up(known.training)
        if self.told:
            self._check_classes()

    def _check_classes(self) -> None:
        if is_regressor(self.learner):
            return
        if self.labels.grow:
            if isinstance(self.learner.get_params().get("class_weight"), Mapping):
                raise WrongUse("weights of classes need the classes, which a pipe does not tell beforehand: give classes")
            return
        if len(self.labels) < 2:
            what = f"one class only: {spelled(self.labels.keys[0])}" if len(self.labels) else "no labelled rows"
            raise ValueError(f"{', '.join(self.files)}: at least two classes are needed to learn from, and there is {what}")
        self._weigh_classes()

    def take_rows(self, rows: Loaded) -> None:
        """Learn from these."""
        self.source, self.width = rows, rows.chunk.X.shape[1]
        if not self.told and not is_regressor(self.learner):
            self.labels = Labels([] if rows.chunk.y is None else np.unique(rows.chunk.y))
        self.told = True

    def _weigh_classes(self) -> None:
        """Weights of classes, which name labels, are to name the numbers that the learner sees meanwhile."""
        self.class_weight = self.learner.get_params().get("class_weight")
        if isinstance(self.class_weight, Mapping):
            named = list(self.class_weight)
            numbers = [self.labels.number(label) for label in named]
            if min(numbers, default=0) < 0:
                strange = named[numbers.index(-1)]
                raise UnknownLabel(f"class_weight names {strange!r}, which is none of the classes "
                                 f"{', '.join(map(spelled, self.labels.keys))}")  # fmt: skip
            self.learner.set_params(class_weight=dict(zip(numbers, self.class_weight.values(), strict=True)))

    def _load(self) -> Loaded:
        batches = self.reading.batches(self.files, on_error=self.options.on_error)
        try:
            raw = list(batches)
            self.facts = {"xxh64": batches.digest(), "skipped": batches.skipped}
        finally:
            batches.close()
        if not raw or not sum(batch.rows for batch in raw):
            raise ValueError(f"{', '.join(self.files)}: there are no rows to learn from")
        whole = self.reading.joined(raw)
        del raw
        if self.reading.learns:
            self.reading = self.reading.learned([whole])
        chunk = self.reading.chunk(whole)
        live = np.arange(chunk.rows)
        if self.options.holdout:
            mixed = np.random.default_rng([self.options.seed, 0]).permutation(chunk.rows)
            held = round(chunk.rows * self.options.holdout)
            live, self.held = np.sort(mixed[held:]), chunk.take(np.sort(mixed[:held]))
        return Loaded(chunk, live, self.options.order, self.options.seed)

    def _take_over(self, learner: Any) -> None:
        """Learn on with a learner that has learned before; what it calls classes are numbers meanwhile."""
        self.width = max(self.width, learner.n_features_in_)
        if not is_regressor(learner):
            self.labels = Labels.in_order(learner.classes_.tolist())
            self.labels.grow = getattr(learner, "unknown_class", "error") == "grow"
            learner.classes_ = np.arange(len(self.labels))

    def _take_up(self, then: Mapping[str, Any]) -> None:
        """Go on where a training stopped."""
        self.number, self.row = int(then["pass"]), int(then["row"])
        self.mistakes_in_pass, self.updates_in_pass = int(then["mistakes_in_pass"]), int(then["updates_in_pass"])
        self.mistakes_before = int(then["mistakes"]) - self.mistakes_in_pass
        self.history = list(then["history"])
        self.width = int(then["width"]) if self.stream else self.width
        self.started -= float(then["seconds"])
        if self.facts.get("xxh64", then["xxh64"]) != then["xxh64"]:
            raise WrongUse(f"{', '.join(self.files)}: the files have changed since this model learned from them")

    # Learning

    def go(self, interrupted: Callable[[], bool]) -> None:
        """Make all passes, or as many as there is need of."""
        if not hasattr(self.learner, "partial_fit"):
            self._fit_at_once()
            return
        weighs = "sample_weight" in signature(self.learner.partial_fit).parameters
        while self.number <= self.passes:
            for chunk, row in self.source.steps(self.number, self.row):
                self._learn(chunk, weighs)
                self.row = row
                if interrupted():
                    self.stopped = "interrupted"
                    return
                if row != self.source.rows:
                    self.watch(self._step(ends=False))
            self._end_pass()
            if self.stopped:
                return
        self.stopped = "passes"

    def _learn(self, chunk: Chunk, weighs: bool) -> None:
        if chunk.weight is not None and (chunk.weight == 0).any():  # a row of weight 0 is not there
            chunk = chunk.take(np.flatnonzero(chunk.weight))
            if not chunk.rows:
                return
        X = self._as_wide_as_the_model(chunk.X)
        before = self.counts()
        extra: dict[str, Any] = {}
        if chunk.weight is not None:
            if not weighs:
                raise ValueError(f"the files have weights of examples, and {type(self.learner).__name__} takes none")
            extra["sample_weight"] = chunk.weight
        if is_regressor(self.learner):
            self.learner.partial_fit(X, numbers_of(chunk.y), **extra)
        else:
            numbers = self._class_numbers(chunk.y)
            begun = hasattr(self.learner, "classes_")
            if not self.labels.grow and not begun:
                extra["classes"] = np.arange(len(self.labels))
            if begun and not extra and not self.labels.grow and self._made_by_us():
                self.learner._partial_fit_numbers(X, numbers, len(self.labels))
            else:
                self.learner.partial_fit(X, numbers, **extra)
        mistakes, updates = self.counts()
        self.mistakes_in_pass += mistakes - before[0]
        self.updates_in_pass += updates - before[1]

    def _made_by_us(self) -> bool:
        """Whether a linear learner need not look at rows again that a reader of ours has looked at."""
        return isinstance(self.reading, OfRows) and isinstance(self.learner, Linear)

    def _class_numbers(self, y: NDArray | None) -> NDArray:
        if y is None:
            raise ValueError("the rows have no labels to learn")
        if not self.told and not len(self.labels):
            self.labels = Labels(np.unique(y))
            if len(self.labels) < 2:
                raise UnknownLabel("the first rows have one class only")
            self._check_classes()
        numbers = self.labels.numbers(y)
        if (numbers < 0).any():
            strange = spelled(y[numbers < 0][0])
            raise UnknownLabel(f"the label {strange!r} is none of {', '.join(map(spelled, self.labels.keys))}")
        return numbers

    def _as_wide_as_the_model(self, X: Any) -> Any:
        self.width = max(self.width, X.shape[1])
        fresh = not hasattr(self.learner, "n_features_in_")
        now = self.width if fresh else self.learner.n_features_in_
        if self.width > now or fresh:
            self._check_width(self.width)
        if self.width > now:
            now = max(self.width, int(_GROWTH * now))
            self.learner.widen(now)
        return fitted_to(X, now)[0]

    def _check_width(self, features: int) -> None:
        """Refuse weights for so many columns that they could not be kept."""
        vectors = 1 if len(self.labels) <= 2 else len(self.labels)
        needed, there = 8 * features * vectors, memory_there_is()
        if needed > there:
            raise WrongUse(
                f"there are {features:,} columns (the largest index is {features - 1:,}); their weights for "
                f"{max(len(self.labels), 2)} classes need {needed / 2**30:,.0f} GiB, and there are {there / 2**30:.0f}: "
                "number the features from 0 or 1 on, or hash them"
            )

    def counts(self) -> tuple[int, int]:
        """(mistakes, updates) so far."""
        return getattr(self.learner, "n_mistakes_", 0), getattr(self.learner, "n_updates_", 0)

    def _end_pass(self) -> None:
        if self.row == 0:
            raise ValueError("there are no rows to learn from")
        error = None
        if self.held is not None and self.held.rows:
            truth = self.held.y
            found = self.learner.predict(fitted_to(self.held.X, self.learner.n_features_in_)[0])
            if is_regressor(self.learner):
                error = float(np.mean((found - numbers_of(truth)) ** 2))
            elif truth is not None:
                error = float(np.mean(found != self.labels.numbers(truth)))
        self.watch(self._step(ends=True, error=error))
        self.history.append({
            "rows": self.row, "mistakes": self.mistakes_in_pass, "updates": self.updates_in_pass, "error": error,
        })  # fmt: skip
        if self.updates_in_pass == 0:
            self.stopped = "converged"
        self.mistakes_before += self.mistakes_in_pass
        self.mistakes_in_pass = self.updates_in_pass = self.row = 0
        self.number += 1

    def _fit_at_once(self) -> None:
        """Learn with `fit`, for learners that cannot stop in between."""
        if self.stream:
            raise ValueError(f"{type(self.learner).__name__} must see all rows at once and cannot stream")
        if self.options.passes and "max_iter" in self.learner.get_params():
            self.learner.set_params(max_iter=self.options.passes)
        chunk = self.source.chunk.take(self.source.live)
        if chunk.weight is not None:
            raise ValueError(f"the files have weights of examples, and {type(self.learner).__name__} takes none")
        self.learner.fit(chunk.X, numbers_of(chunk.y) if is_regressor(self.learner) else self.labels.numbers(chunk.y))
        self.row = chunk.rows
        self.mistakes_in_pass, self.updates_in_pass = self.counts()
        self._end_pass()
        self.stopped = getattr(self.learner, "stop_reason_", "fitted")

    def _step(self, ends: bool, error: float | None = None) -> Step:
        done = sum(entry["rows"] for entry in self.history)
        return Step(
            self.number, self.passes, self.row, self.row if ends else self.source.rows, done + self.row,
            self.mistakes_before + self.mistakes_in_pass, perf_counter() - self.started, ends, error,
        )  # fmt: skip

    # Afterwards

    def model(self) -> FileModel:
        """What has been learned."""
        if not hasattr(self.learner, "n_features_in_"):
            raise KeyboardInterrupt  # before the first step was done
        if self.learner.n_features_in_ > self.width and self.stopped != "interrupted":
            self.learner.widen(self.width)
        if self.class_weight is not None:
            self.learner.set_params(class_weight=self.class_weight)
        if not is_regressor(self.learner):
            self.learner.classes_ = self.labels.classes()[np.asarray(self.learner.classes_, np.int64)]
        if isinstance(self.source, Streamed):
            self.facts = {"xxh64": self.source.digest, "skipped": self.source.skipped}
        reading = self.reading
        if not is_regressor(self.learner):
            reading = reading.told(np.array(self.labels.keys, np.float64 if self.labels.numeric else object))
        return FileModel(
            reading,
            self.learner,
            {
                "files": sizes(self.files),
                **self.facts,
                "stopped": self.stopped,
                "streamed": self.stream,
                "passes": self.passes,
                "order": "cyclic" if self.stream else self.options.order,
                "seed": self.options.seed,
                "holdout": self.options.holdout,
                "pass": self.number,
                "row": self.row,
                "width": self.width,
                "mistakes": self.mistakes_before + self.mistakes_in_pass,
                "mistakes_in_pass": self.mistakes_in_pass,
                "updates_in_pass": self.updates_in_pass,
                "history": self.history,
                "seconds": round(perf_counter() - self.started, 3),
            },
        )


def can_widen(learner: Any) -> bool:
    """Whether a learner can meet columns that it did not know of."""
    return getattr(learner, "_widens", False)


def streams(files: Sequence[str], reading: Reading, options: Options) -> bool:
    """Whether files are read anew in each pass: as asked, or because they are larger than what may be loaded. A pipe is
    streamed, unless its columns must be seen before they can be learned from."""
    if options.stream is not None:
        return options.stream
    if not rereadable(files):
        return not reading.learns
    return sum(text_size(file) for file in files) > options.memory


def numbers_of(y: NDArray | None) -> NDArray:
    """Labels that must be numbers."""
    if y is None or y.dtype.kind not in "fiu":
        raise ValueError(f"a regressor learns numbers, and there are labels such as {'none' if y is None else y[0]!r}")
    return y.astype(np.float64)


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

    if threading.current_thread() is not threading.main_thread():
        yield came.is_set
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGINT, before)
