"""Training from files is a sequence of steps: some rows, learned from once, in an order that the files, the random seed and
the number of the pass determine. So it can stop after any step and resume later exactly there; and a file that is streamed
gives the model of one that is loaded and visited in its own order: cutting a stream in any way gives the same model.

`train`, cross-validation and learning curves all prepare a `Trainer`, which makes the learner (with its random seed), the
reading, the classes and the weights of the classes from the options; no other code does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.data import opening
from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Batch, Chunk, Reading, RowReading
from rosenblatt.data.svmlight import LabelError
from rosenblatt.engine.train import interrupts_held
from rosenblatt.errors import (
    ContinuousLabels,
    DamagedModel,
    IncompatibleParameters,
    InvalidData,
    InvalidParameter,
    NumericOverflow,
    UnknownLabel,
    UnsupportedOperation,
)
from rosenblatt.estimators.interface import Learner, clone, is_regressor
from rosenblatt.estimators.linear import Linear
from rosenblatt.estimators.plan import PATIENCE
from rosenblatt.estimators.scaling import warn_unscaled
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import Facts, check_list, check_mapping, check_whole
from rosenblatt.workflow.devices import rows_to_device, uses_card
from rosenblatt.workflow.labels import Labels, label_text, refuse_continuous
from rosenblatt.workflow.learners import TASKS, default_learner, make_learner
from rosenblatt.workflow.model import FileModel, Paths, file_list, match_columns

LOADED_PASSES, STREAMED_PASSES = 10, 1
_MOST_PASSES = 1000  # over few rows, by default
_COMPRESSED = {".gz": 5, ".bz2": 6, ".xz": 7, ".zst": 5}  # how much text a byte stands for, as a rule
_STEPS = 64  # in which a pass over loaded rows is cut, at least
_STEP_ROWS = (1 << 10, 1 << 16)  # the least rows of such a step, but in the first pass, and the most
_GROWTH = 1.5
_READ_SIZE = 1 << 20  # bytes
_WEIGHT = 16  # bytes that a learner holds for a weight: itself, and what averages it or says how sure it is


@dataclass(frozen=True)
class Options:
    """Options of training: passes, order, random seed, streaming, holdout.

    Parameters
    ----------
    passes : int, optional
        The largest number of passes (epochs) over the data. By default 10 for loaded rows, 1 for streamed ones; over fewer
        than 5,000 loaded rows as many as visit 50,000, at most 1,000. A pass without an update is the last.
    order : {"shuffle", "cyclic"}
        "shuffle" visits loaded rows in a new random order in each pass, "cyclic" in the order of the files. A stream is
        always visited in the order of the files.
    seed : int
        Random seed of the order, and of a learner that has a `random_state`.
    stream : bool, optional
        Read the files again in each pass instead of loading them. By default they are streamed if they hold more than
        `memory` bytes of text, or come from a pipe.
    memory : int
        Bytes of text above which files are streamed.
    holdout : float
        Share of the loaded rows that is not learned from; the error on them is measured after each pass.
    classes : sequence of str, optional
        The labels, for a pipe, which cannot be read twice.
    on_error : {"error", "skip"}
        "skip" leaves out rows that cannot be read.
    task : {"classification", "regression"}, optional
        What the labels are: names of classes or numbers to predict. By default the learner decides, and a classifier
        refuses labels that look like numbers to predict.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import reading_for
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\n" * 5)
    ...     model = train(path, reading_for([str(path)]), options=Options(passes=3, order="cyclic"))
    ...     len(model.training["history"]), model.training["mistakes"]
    (2, 2)
    """

    passes: int | None = None
    order: str = "shuffle"
    seed: int = 0
    stream: bool | None = None
    memory: int = 1 << 31
    holdout: float = 0.0
    classes: Sequence[str] | None = None
    on_error: str = "error"
    task: str | None = None

    def __post_init__(self) -> None:
        if self.passes is not None and self.passes < 1:
            raise InvalidParameter("passes", self.passes, "a whole number ≥ 1")
        if self.order not in ("shuffle", "cyclic"):
            raise InvalidParameter("order", self.order, "'shuffle' or 'cyclic'")
        if not 0 <= self.holdout < 1:
            raise InvalidParameter("holdout", self.holdout, "a share of the rows, at least 0 and below 1")
        if not 0 <= self.seed < 2**32:
            raise InvalidParameter("seed", self.seed, f"a whole number from 0 to {2**32 - 1}")
        if self.task not in (None, *TASKS):
            raise InvalidParameter("task", self.task, "'classification' or 'regression'")


DEFAULTS = Options()


class Step(NamedTuple):
    """How far training is, after some rows."""

    number: int  # of the pass, from 1
    passes: int
    rows: int  # visited in this pass
    of: int | None  # rows in a pass, if that is known
    seen: int  # rows visited in all passes
    mistakes: int  # of them, wrong when they were predicted
    seconds: float
    ends: bool  # whether the pass ends here
    error: float | None  # on the rows held out, at the end of a pass


Callback = Callable[[Step], object]


class _NewLabel(Exception):
    """A label that the first rows of a stream did not have: training starts again with all labels."""


# Rows, pass by pass


class LoadedRows(NamedTuple):
    """Rows in memory, visited in a new order in each pass."""

    chunk: Chunk
    live: NDArray  # the rows to learn from
    order: str
    seed: int

    @property
    def rows(self) -> int:
        return len(self.live)

    def order_of(self, number: int) -> NDArray:
        """Return the rows in the order in which the pass with this number visits them."""
        mixed = self.order == "shuffle"
        return np.random.default_rng([self.seed, number]).permutation(self.live) if mixed else self.live

    def steps(self, number: int, start: int) -> Generator[tuple[Chunk, int]]:
        """Yield (rows, how many of the pass are done after them), of the pass with this number, from row `start` on."""
        order = self.order_of(number)
        size = min(max(-(-len(order) // _STEPS), 1 if number == 1 else _STEP_ROWS[0]), _STEP_ROWS[1])
        for at in range(start, len(order), size):
            part = order[at : at + size]
            yield self.chunk.take(part), at + len(part)


class StreamedRows:
    """Rows that are read again in each pass. `digest` is the XXH64 of the first `digested` bytes of the files."""

    def __init__(self, reading: Reading, paths: Sequence[str], rows: int | None, on_error: str):
        self.reading, self.paths, self.rows, self.on_error = reading, paths, rows, on_error
        self.skipped, self.digest, self.digested = 0, "", 0
        self._whole: tuple[str, int] | None = None  # digest and bytes of the last pass that read all

    def steps(self, number: int, start: int) -> Generator[tuple[Chunk, int]]:
        """Yield rows as `LoadedRows.steps` does."""
        batches = self.reading.batches(self.paths, on_error=self.on_error)
        at = 0
        try:
            for batch in batches:
                at += batch.rows
                if at <= start or batch.rows == 0:  # steps end where batches do
                    continue
                yield self.reading.chunk(batch), at
            self.skipped = batches.skipped
        finally:
            batches.close()
            if batches.bytes_read >= self.digested:
                self.digest, self.digested = batches.digest(), batches.bytes_read
        self.rows = at
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        """Raise an error if the files, all of which were read, are not those of the pass before."""
        if self._whole not in (None, (self.digest, self.digested)):
            raise InvalidData(
                f"{', '.join(self.paths)}: the content has changed since the pass before",
                hint="begin again, and leave files as they are while they are learned",
            )
        self._whole = self.digest, self.digested


def fingerprint(files: Sequence[str], size: int) -> str:
    """Return the XXH64 of the first `size` bytes of some files, one after the other."""
    digest = xxh64()
    for file in files:
        with opening.open_binary(file) as stream:
            while size and (data := stream.read(min(size, _READ_SIZE))):
                digest.update(data)
                size -= len(data)
    return digest.hexdigest()


def place_of_row(files: Sequence[str], reading: Reading, row: int) -> tuple[str | None, int | None]:
    """Return the file and the line of a row of text, counted from 0 over all files; None where that cannot be told: a pipe,
    a table with quotes, over whose lines a row may go on, or one without lines."""
    form = getattr(getattr(reading, "schema", None), "form", None)
    if (
        not rereadable(files)
        or reading.format == "npy"
        or (form is not None and form.format not in ("csv", "tsv", "jsonl"))
    ):
        return None, None
    for file in files:
        with opening.Input(file) as stream:
            header = form is not None and form.format != "jsonl" and reading.schema.header  # type: ignore[attr-defined]
            line = 0
            for piece in opening.pieces(stream, _READ_SIZE):
                for text in piece.buffer[piece.begin : piece.end].tobytes().splitlines():
                    line += 1
                    if form is not None and form.format != "jsonl" and form.quote and form.quote.encode() in text:
                        return None, None
                    if not text.strip() or (form is None and text.startswith(b"#")):
                        continue
                    if header:
                        header = False
                    elif row == 0:
                        return file, line
                    else:
                        row -= 1
    return None, None


def file_sizes(files: Sequence[str]) -> list[list[Any]]:
    """Return [[name, bytes], …]; the bytes of a pipe are −1."""
    return [[file, -1 if (size := opening.size_of([file])) is None else size] for file in files]


def learned_files(training: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the names and sizes of the files that a model learned from, as `file_sizes` had them."""
    pairs = check_list(training.get("files"), "files")
    if not all(isinstance(pair, list) and list(map(type, pair)) == [str, int] for pair in pairs):
        raise DamagedModel(f"files must be a list of names with their sizes; it is {str(pairs)[:80]}")
    return [(name, size) for name, size in pairs]


def machine_memory() -> int:
    """Return the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return 1 << 36


# One training


class Trainer:
    """One training under way.

    Parameters
    ----------
    reading : Reading
        How files become rows.
    learner : estimator
        What learns; it is copied, and gets the random seed of the options.
    options : Options
        How to train.
    callback : callable
        Called with a `Step` after each step.
    model : FileModel, optional
        A model to continue from, which stays as it is; then the learner is a copy of its learner.
    classes : Labels, optional
        Classes of the data, of which the rows to learn from are a part that may lack some.
    """

    def __init__(
        self,
        reading: Reading,
        learner: Any,
        options: Options = DEFAULTS,
        callback: Callback = lambda step: None,
        model: FileModel | None = None,
        classes: Labels | None = None,
    ):
        check_task(learner, options)
        self.reading, self.options, self.callback, self.classes = reading, options, callback, classes
        self.start = model
        self.learner = copy_with_seed(learner, options.seed) if model is None else deepcopy(model.learner)
        self.stream = False
        self.files: Sequence[str] = []
        self.passes = options.passes or LOADED_PASSES
        self.number, self.row = 1, 0  # the pass under way, and how many of its rows are done
        self.mistakes_before = self.mistakes_in_pass = self.updates_in_pass = 0
        self.width = 0  # the most columns a row had
        self.has_zero = False  # whether a row of LIBSVM text had the index 0
        if model is not None and "width" in model.training:
            self.has_zero = model.training.get("features", model.training["width"]) == model.training["width"]
        self.stopped = ""
        self.held: Chunk | None = None
        self.history: list[dict[str, Any]] = []
        self.labels: Labels | None = None if options.classes is None else Labels.from_text(options.classes)
        self.all_labels = True  # whether a label that is not among them is an error, or starts training again
        self.class_weight: Any = None
        self.unknown_class: str | None = None  # what it is outside of this training, in which new classes may arrive
        self.continued = False  # whether what was learned before is of other rows, which are not known
        if model is not None:  # of a training that was interrupted, or one that goes on
            self.unknown_class = model.training.get("unknown_class")
            self.continued = model.training.get("stopped") != "interrupted" or bool(model.training.get("continued"))
        self.source: LoadedRows | StreamedRows
        self.facts: dict[str, Any] = {}
        self.started = perf_counter()

    # Preparation: the rows, the classes and their weights

    def use_files(self, files: Sequence[str], stream: bool, labels: Labels | None = None, rows: int | None = None) -> None:
        """Learn from files; `labels` are the classes and `rows` the number of rows, where these are known. With labels that
        `grow`, a class may arrive at any time."""
        self.files, self.stream = files, stream
        self.passes = self.options.passes or STREAMED_PASSES
        self.labels = self.labels if labels is None else labels
        if not stream:
            self._load()
        else:
            self.all_labels = self.labels is not None or self.start is not None
            self.source = StreamedRows(self.reading, files, rows, self.options.on_error)
            if self.reading.features is None and self.start is None and not can_widen(self.learner):
                self.width = max((chunk.X.shape[1] for chunk, _ in self.source.steps(0, 0)), default=0)
        if self.labels is not None and self.labels.grow and "unknown_class" in self.learner.get_params():
            if self.start is not None:
                self.unknown_class = self.learner.unknown_class
            self.learner.set_params(unknown_class="grow")
        if self.start is not None:
            self._continue_learner()
        if self.labels is not None:
            self._prepare_classes()

    def use_batch(self, batch: Batch) -> None:
        """Learn from rows in memory."""
        self._use_rows(batch)
        self._prepare_classes()

    def resume(self, training: Mapping[str, Any]) -> None:
        """Go on exactly where an interrupted training stopped."""
        self.all_labels = not self.stream or self.options.classes is not None
        facts = Parts(training)
        self.number, self.row = facts.whole("pass", 1), facts.whole("row")
        self.mistakes_in_pass, self.updates_in_pass = facts.whole("mistakes_in_pass"), facts.whole("updates_in_pass")
        self.mistakes_before = facts.whole("mistakes", self.mistakes_in_pass) - self.mistakes_in_pass
        self.history = [dict(check_mapping(entry, "history")) for entry in check_list(facts.facts["history"], "history")]
        self.width = facts.whole("width", 0, 1 << 40) if self.stream else self.width

    def _load(self) -> None:
        batches = self.reading.batches(self.files, on_error=self.options.on_error)
        try:
            raw = list(batches)
            self.facts = {"xxh64": batches.digest(), "skipped": batches.skipped}
        finally:
            batches.close()
        if not raw or not sum(batch.rows for batch in raw):
            raise InvalidData("there are no rows to learn from", path=", ".join(self.files))
        self._use_rows(self.reading.concatenate(raw))

    def _use_rows(self, batch: Batch) -> None:
        if self.reading.needs_fit:
            self.reading = self.reading.fit([batch])
        chunk = self.reading.chunk(batch)
        live = np.arange(chunk.rows)
        if self.options.holdout:
            mixed = np.random.default_rng([self.options.seed, 0]).permutation(chunk.rows)
            held = round(chunk.rows * self.options.holdout)
            live, self.held = np.sort(mixed[held:]), chunk.take(np.sort(mixed[:held]))
        self.source, self.width = LoadedRows(chunk, live, self.options.order, self.options.seed), chunk.X.shape[1]
        self.passes = self.options.passes or max(LOADED_PASSES, min(PATIENCE // max(len(live), 1), _MOST_PASSES))
        self._check_rows(chunk)
        if self.labels is None:
            self.labels = Labels([] if chunk.y is None or is_regressor(self.learner) else np.unique(chunk.y))

    def _check_rows(self, chunk: Chunk) -> None:
        """Refuse labels of the first rows that look like numbers to predict, and warn of unscaled columns."""
        if self.start is not None:
            return
        if self.classes is None:  # else all labels have been checked already
            check_labels(chunk.y, self.learner, self.options, self.files)
        if getattr(self.learner, "_needs_scaling", False) and hasattr(self.learner, "partial_fit"):  # `fit` warns by itself
            warn_unscaled(self.learner, chunk.X, stacklevel=2, name=self.reading.name)

    def _continue_learner(self) -> None:
        """Learn on with a learner that has learned before; its classes are numbers meanwhile."""
        self.width = max(self.width, self.learner.n_features_in_)
        self.labels = Labels()
        if not is_regressor(self.learner):
            self.labels = Labels.in_order(self.learner.classes_.tolist())
            self.labels.grow = getattr(self.learner, "unknown_class", "error") == "grow"
            self.learner.classes_ = np.arange(len(self.labels))
            if self.labels.grow and not self.stream and isinstance(self.source, LoadedRows):
                self._class_numbers(self.source.chunk.y)  # new classes are numbered as they come in the files

    def _prepare_classes(self) -> None:
        """Check that there are at least two classes, and name them in `class_weight` by their numbers."""
        if is_regressor(self.learner) or self.labels is None:
            return
        weights = self.learner.get_params().get("class_weight")
        if self.labels.grow and self.start is None:
            if isinstance(weights, Mapping):
                raise UnsupportedOperation(
                    "class_weight needs the classes before the first row, and a pipe can be read only once",
                    settings={"classes": [label_text(label) for label in weights]},
                )
            return
        if len(self.labels) < 2 and not self.labels.grow:
            if not self.all_labels:
                raise _NewLabel
            found = f"one class only: {label_text(self.labels.keys[0])}" if len(self.labels) else "no labelled rows"
            raise InvalidData(
                f"at least two classes are needed to learn from, and there is {found}", path=", ".join(self.files) or None
            )
        if isinstance(weights, Mapping):
            self.class_weight = weights
            self.learner.set_params(class_weight=self._numbered_weights(weights, self.labels))

    def _numbered_weights(self, weights: Mapping[object, float], labels: Labels) -> dict[int, Any]:
        numbered = {}
        for label, weight in weights.items():
            number = labels.number(label)
            if number >= 0:
                numbered[number] = weight
            elif self.classes is None or self.classes.number(label) < 0:
                if not self.all_labels:
                    raise _NewLabel
                classes = ", ".join(map(label_text, (self.classes or labels).keys))
                raise InvalidParameter("class_weight", dict(weights), f"a dictionary whose keys are classes: {classes}")
        return numbered

    # Learning

    def run(self, interrupted: Sequence[int] = ()) -> FileModel:
        """Make all passes, or as many as are needed, and return the model."""
        if hasattr(self.learner, "partial_fit"):
            self._place_rows()
            self._make_passes(interrupted)
            if self.stopped in ("converged", "passes") and not self.history[-1]["mistakes"]:
                self._settle()
        else:
            self._fit_at_once()
        return self._model()

    def _place_rows(self) -> None:
        """Copy loaded rows to the GPU that learns from them, once for all passes."""
        if isinstance(self.source, LoadedRows) and uses_card(self.learner):
            X = rows_to_device(self._widen(self.source.chunk.X), self.learner, self.files)
            self.source = self.source._replace(chunk=replace(self.source.chunk, X=X))

    def _make_passes(self, interrupted: Sequence[int]) -> None:
        takes_weights = "sample_weight" in signature(self.learner.partial_fit).parameters
        while self.number <= self.passes:
            with closing(self.source.steps(self.number, self.row)) as steps:
                for chunk, row in steps:
                    self._learn(chunk, takes_weights)
                    self.row = row
                    if interrupted:
                        self.stopped = "interrupted"
                        return
                    if row != self.source.rows:
                        self.callback(self._step(ends=False))
            self._end_pass()
            if self.stopped:
                return
        self.stopped = "passes"

    def _learn(self, chunk: Chunk, takes_weights: bool) -> None:
        try:
            self._learn_rows(chunk, takes_weights)
        except NumericOverflow as error:
            rows = chunk.rows if chunk.weight is None else int(np.count_nonzero(chunk.weight))
            if error.row is None or rows < chunk.rows or not self.files:
                raise
            row = self.row + error.row
            if isinstance(self.source, LoadedRows):
                row = int(self.source.order_of(self.number)[row])
            path, line = place_of_row(self.files, self.reading, row)
            raise NumericOverflow(
                "weights or scores overflowed when this row was learned: its numbers, or those before it, are too large",
                path=path or ", ".join(self.files), line=line, row=row, hint="scale them down",
            ) from error  # fmt: skip

    def _learn_rows(self, chunk: Chunk, takes_weights: bool) -> None:
        if chunk.weight is not None and (chunk.weight == 0).any():  # a row of weight 0 is not there
            chunk = chunk.take(np.flatnonzero(chunk.weight))
            if not chunk.rows:
                return
        if self.stream and self.number == 1 and self.row == 0:
            self._check_rows(chunk)
        X = self._widen(chunk.X)
        if self.stream:
            X = rows_to_device(X, self.learner, self.files)
        self.has_zero |= chunk.smallest == 0
        before = self._counts()
        extra: dict[str, Any] = {}
        if chunk.weight is not None:
            if not takes_weights:
                raise self._no_weights()
            extra["sample_weight"] = chunk.weight
        if is_regressor(self.learner):
            self.learner.partial_fit(X, check_numeric(chunk.y), **extra)
        else:
            labels, numbers = self._class_numbers(chunk.y)
            begun = hasattr(self.learner, "classes_")
            if not labels.grow and not begun:
                extra["classes"] = np.arange(len(labels))
            # A linear learner need not check rows again that one of our readers has made.
            made_by_us = isinstance(self.reading, RowReading) and isinstance(self.learner, Linear)
            if begun and not extra and made_by_us and np.array_equal(self.learner.classes_, np.arange(len(labels))):
                self.learner._partial_fit_numbers(X, numbers, len(labels))
            else:
                self.learner.partial_fit(X, numbers, **extra)
        mistakes, updates = self._counts()
        self.mistakes_in_pass += mistakes - before[0]
        self.updates_in_pass += updates - before[1]

    def _no_weights(self) -> UnsupportedOperation:
        return UnsupportedOperation(f"the files have weights of examples, and {type(self.learner).__name__} takes none")

    def _class_numbers(self, y: NDArray | None) -> tuple[Labels, NDArray]:
        if y is None:
            raise InvalidData("the rows have no labels to learn")
        if self.labels is None:  # the first rows of a stream
            self.labels = Labels(np.unique(y))
            self._prepare_classes()
        numbers = self.labels.numbers(y)
        if (numbers < 0).any():
            if not self.all_labels:
                raise _NewLabel
            hint = f"{type(self.learner).__name__} cannot learn new classes; train a new model on all rows"
            known = list(map(label_text, self.labels.keys))
            raise UnknownLabel(label_text(y[numbers < 0][0]), known, hint=None if self.start is None else hint)
        return self.labels, numbers

    def _widen(self, X: Any) -> Any:
        """Make rows and learner equally wide."""
        self.width = max(self.width, X.shape[1])
        fresh = not hasattr(self.learner, "n_features_in_")
        now = self.width if fresh else self.learner.n_features_in_
        if self.width > now or fresh:
            self._check_memory(self.width)
        if self.width > now:
            now = max(self.width, int(_GROWTH * now))
            self.learner.widen(now)
        return match_columns(X, now)[0]

    def _check_memory(self, features: int) -> None:
        """Refuse weights for so many columns that the machine cannot hold them."""
        classes = 0 if self.labels is None else len(self.labels)
        needed, there = _WEIGHT * features * (1 if classes <= 2 else classes), machine_memory()
        if needed > there:
            raise InvalidData(
                f"there are {features:,} columns (the largest index is {features - 1:,}); their weights for "
                f"{max(classes, 2)} classes need {needed / 2**30:,.0f} GiB of memory, and there are {there / 2**30:.0f}",
                hint="number the features from 0 or 1 on, or hash them",
                settings={"hashing": 20},
            )

    def _counts(self) -> tuple[int, int]:
        """(mistakes, updates) so far."""
        return getattr(self.learner, "n_mistakes_", 0), getattr(self.learner, "n_updates_", 0)

    def _end_pass(self) -> None:
        if self.row == 0:
            raise InvalidData("there are no rows to learn from", path=", ".join(self.files) or None)
        if not hasattr(self.learner, "n_features_in_"):
            raise InvalidData("every row has weight 0: there is nothing to learn from", path=", ".join(self.files) or None)
        error = None
        if self.held is not None and self.held.rows:
            truth = self.held.y
            found = self.learner.predict(match_columns(self.held.X, self.learner.n_features_in_)[0])
            if is_regressor(self.learner):
                error = float(np.mean((found - check_numeric(truth)) ** 2))
            elif truth is not None and self.labels is not None:
                error = float(np.mean(found != self.labels.numbers(truth)))
        self.callback(self._step(ends=True, error=error))
        self.history.append({
            "rows": self.row, "mistakes": self.mistakes_in_pass, "updates": self.updates_in_pass, "error": error,
        })  # fmt: skip
        if self.updates_in_pass == 0:
            self.stopped = "converged"
        self.mistakes_before += self.mistakes_in_pass
        self.mistakes_in_pass = self.updates_in_pass = self.row = 0
        self.number += 1

    def _settle(self) -> None:
        """Complete a linear model that made no mistake in its last pass, where the rows are at hand."""
        if isinstance(self.learner, Linear) and isinstance(self.source, LoadedRows):
            chunk = self.source.chunk.take(self.source.live)
            if chunk.weight is not None:
                chunk = chunk.take(np.flatnonzero(chunk.weight))
            self.learner._extend_average(self._widen(chunk.X), self._class_numbers(chunk.y)[1])

    def _fit_at_once(self) -> None:
        """Learn with `fit`, for learners that cannot stop in between."""
        source = self.source
        if not isinstance(source, LoadedRows) or self.labels is None:
            raise UnsupportedOperation(
                f"{type(self.learner).__name__} must see all rows at once and cannot stream", settings={"stream": False}
            )
        if self.options.passes and "max_iter" in self.learner.get_params():
            self.learner.set_params(max_iter=self.options.passes)
        chunk = source.chunk.take(source.live)
        extra: dict[str, Any] = {}
        if chunk.weight is not None:
            if "sample_weight" not in signature(self.learner.fit).parameters:
                raise self._no_weights()
            extra["sample_weight"] = chunk.weight
        y = check_numeric(chunk.y) if is_regressor(self.learner) else self._class_numbers(chunk.y)[1]
        self.learner.fit(chunk.X, y, **extra)
        self.row = chunk.rows
        self.has_zero |= chunk.smallest == 0
        self.mistakes_in_pass, self.updates_in_pass = self._counts()
        self._end_pass()
        self.stopped = getattr(self.learner, "stop_reason_", "fitted")

    def _step(self, ends: bool, error: float | None = None) -> Step:
        done = sum(entry["rows"] for entry in self.history)
        return Step(
            self.number, self.passes, self.row, self.row if ends else self.source.rows, done + self.row,
            self.mistakes_before + self.mistakes_in_pass, perf_counter() - self.started, ends, error,
        )  # fmt: skip

    def _model(self) -> FileModel:
        """Return what has been learned, with the labels as they were in the files."""
        learner, labels, reading = self.learner, self.labels, self.reading
        if not hasattr(learner, "n_features_in_"):
            raise KeyboardInterrupt  # before the first step was done
        if learner.n_features_in_ > self.width and self.stopped != "interrupted":
            learner.widen(self.width)
        if self.class_weight is not None:
            learner.set_params(class_weight=self.class_weight)
        if self.unknown_class is not None:
            if self.stopped == "interrupted":
                self.facts["unknown_class"] = self.unknown_class
            else:
                learner.set_params(unknown_class=self.unknown_class)
        if not is_regressor(learner) and labels is not None:
            learner.classes_ = labels.classes()[np.asarray(learner.classes_, np.int64)]
            reading = reading.with_labels(np.array(labels.keys, np.float64 if labels.numeric else object))
        has_index_0 = self.has_zero if reading.format == "svmlight" and reading.features is None else None
        if isinstance(self.source, StreamedRows):
            self.facts |= {"xxh64": self.source.digest, "skipped": self.source.skipped}
            if self.stopped == "interrupted":
                self.facts["xxh64_bytes"] = self.source.digested
        return FileModel(
            reading,
            learner,
            {
                "files": file_sizes(self.files),
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
                "features": self.width - int(self.width > 0 and has_index_0 is False),
                "mistakes": self.mistakes_before + self.mistakes_in_pass,
                "mistakes_in_pass": self.mistakes_in_pass,
                "updates_in_pass": self.updates_in_pass,
                "history": self.history,
                **({"continued": True} if self.continued else {}),
            },
            seconds=round(perf_counter() - self.started, 3),
        )


def copy_with_seed(learner: Learner, seed: int) -> Any:
    """Return a copy of a learner that has learned nothing, with this random seed."""
    fresh: Any = clone(learner)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=seed)
    return fresh


def can_widen(learner: Learner) -> bool:
    """Return whether a learner can go on with columns that it did not know of."""
    return getattr(learner, "_widens", False)


def check_numeric(y: NDArray | None) -> NDArray:
    """Return labels as float64; InvalidData if some are not numbers."""
    if y is None or y.dtype.kind not in "fiu":
        found = "there are none" if y is None else f"there are labels such as {y[0]!r}"
        raise InvalidData(f"a regressor learns numbers, and {found}")
    return y.astype(np.float64)


def check_task(learner: Learner, options: Options) -> None:
    """Refuse a learner that cannot do the task that the options name."""
    if options.task is not None and (options.task == "regression") != is_regressor(learner):
        raise IncompatibleParameters(
            ("task", options.task),
            ("learner", type(learner).__name__),
            f"{type(learner).__name__} predicts {'numbers' if is_regressor(learner) else 'classes'}",
        )


def check_labels(y: NDArray | None, learner: Learner, options: Options, files: Sequence[str]) -> None:
    """Refuse labels that look like numbers to predict where a classifier is to learn them, unless the options insist."""
    if y is None or is_regressor(learner) or options.task is not None:
        return
    try:
        refuse_continuous(np.unique(y), len(y))
    except ContinuousLabels as error:
        error.path = ", ".join(files) or None
        raise


# Training from files


def train(
    paths: Paths,
    reading: Reading,
    learner: Learner | None = None,
    options: Options = DEFAULTS,
    watch: Callback = lambda step: None,
    resume: FileModel | None = None,
    start: FileModel | None = None,
) -> FileModel:
    """Train a model from files.

    Ctrl-C ends training after the step under way; the model then says so in ``training["stopped"]``.

    Parameters
    ----------
    paths : path or list of paths
        Files, folders or patterns; "-" is standard input.
    reading : Reading
        How files become rows; see `reading_for`.
    learner : estimator, optional
        The learner, which stays as it is; by default an averaged perceptron, or for the task "regression" the averaged
        `DeltaRuleRegressor(normalised=True)`.
    options : Options, optional
        Passes, order, random seed, streaming, holdout.
    watch : callable, optional
        Called with a `Step` after each step.
    resume : FileModel, optional
        An interrupted model, which goes on exactly where it stopped; files and options must be the same.
    start : FileModel, optional
        A model that is trained further on these files (warm start); its reading and learner are used. Labels and LIBSVM
        indices that are new to it are learned; a learner that cannot learn new classes refuses them.

    Returns
    -------
    FileModel
        A new model; those given as `resume` or `start` stay as they are.

    Raises
    ------
    InvalidData
        If there are no rows, fewer than two classes, or a label that is not known.
    InvalidParameter, UnsupportedOperation
        If the options do not suit each other, the files or the learner.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import reading_for
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.csv"
    ...     _ = path.write_text("label,age,colour\\n" + "yes,30,red\\nno,50,blue\\n" * 5)
    ...     model = train(path, reading_for([str(path)], target="label"))
    ...     model.predict(path)[:2].tolist()
    ['yes', 'no']
    """
    files = file_list(paths)
    stream = uses_stream(files, reading, options)
    learner = make_learner(*default_learner(options.task)) if learner is None else learner
    if getattr(learner, "early_stopping", False) and hasattr(learner, "partial_fit"):
        raise UnsupportedOperation(
            "early_stopping=True cannot be used in training from files, whose passes end by the mistakes made in them",
            hint="measure the error on rows held out after each pass, and set the number of passes",
            settings={"holdout": options.holdout or 0.1},
        )
    if resume is not None:
        _check_resumable(resume, files, stream, options)
        options = replace(options, passes=options.passes or resume.training["passes"])
    model = resume or start
    if model is not None:
        model.learner._resumable()
        reading, learner = model.reading, model.learner
    if stream:
        _check_streamable(files, reading, learner, options, resume, start)
        if reading.needs_fit:
            reading = reading.fit(reading.batches(files, on_error=options.on_error))

    def attempt(
        model: FileModel | None, reading: Reading, labels: Labels | None = None, rows: int | None = None
    ) -> FileModel:
        trainer = Trainer(reading, learner, options, watch, model)
        trainer.use_files(files, stream, labels, rows)
        if resume is not None and model is resume:
            _check_content(resume, files, trainer.facts.get("xxh64"))
            trainer.resume(resume.training)
        with interrupts_held() as interrupted:
            return trainer.run(interrupted)

    if start is not None or (options.classes is None and stream and not rereadable(files)):
        return attempt(model, reading, Labels(grow=True))
    try:
        return attempt(model, reading)  # the classes are those of the first batch
    except (_NewLabel, LabelError):  # but for one that came later: start again with all of them
        if start is not None or options.classes is not None or not rereadable(files):
            raise
        rows, distinct = reading.labels(files, on_error=options.on_error)
        return attempt(None, reading.with_labels(distinct), Labels(distinct), rows)


def uses_stream(files: Sequence[str], reading: Reading, options: Options) -> bool:
    """Return whether files are read again in each pass: by option, or because they are larger than what may be loaded. A
    pipe is streamed, unless its columns must be seen before they can be learned from."""
    if options.stream is not None:
        return options.stream
    if not rereadable(files):
        return not reading.needs_fit
    text = sum(opening.size_of_file(file) * _COMPRESSED.get(Path(file).suffix, 1) for file in files)  # about
    return text > options.memory


def _check_streamable(
    files: Sequence[str], reading: Reading, learner: Any, options: Options, resume: object, start: object
) -> None:
    name = type(learner).__name__
    load: dict[str, object] = {"stream": False}
    if options.holdout:
        raise IncompatibleParameters(
            ("holdout", options.holdout), ("stream", True), "rows are held out of those in memory", settings=load
        )
    if rereadable(files):
        return
    if (options.passes or 1) > 1:
        raise InvalidParameter("passes", options.passes, "1 for a pipe, which can be read once only", hint="give a file")
    if resume is not None:
        raise UnsupportedOperation("a pipe can be read only once, so training from it cannot resume", hint="give a file")
    if reading.needs_fit:
        raise UnsupportedOperation(
            "the columns must be seen before they can be learned from, and a pipe can be read only once", settings=load
        )
    if start is not None:  # which knows classes and columns
        return
    if reading.features is None and not can_widen(learner):
        raise UnsupportedOperation(f"{name} must know the number of features before the first row", settings=load)
    if options.classes is None and not is_regressor(learner) and "unknown_class" not in learner.get_params():
        raise UnsupportedOperation(
            f"{name} must know the classes before the first row of a pipe", settings={"classes": ["A", "B"], **load}
        )


def _check_resumable(model: FileModel, files: Sequence[str], stream: bool, options: Options) -> None:
    then = Facts(model.training)
    if then.get("stopped") != "interrupted":
        raise UnsupportedOperation(
            f"only an interrupted training can resume; this one was not interrupted but ended with {then.get('stopped')!r}",
            hint="to train a finished model further, start from it: start=model, or --from MODEL on the command line",
        )
    before, now = learned_files(then), file_sizes(files)
    if len(before) != len(now):
        raise InvalidData(
            f"this model learned from {', '.join(name for name, _ in before)}; these are other files: {', '.join(files)}"
        )
    for (name, size), (path, bytes_now) in zip(before, now, strict=True):
        if size != bytes_now:
            raise InvalidData(
                f"{name} had {size} bytes when training was interrupted, and these are other files: "
                f"{path} has {bytes_now} bytes"
            )
    same = {"seed": options.seed, "holdout": options.holdout, "stream": stream} | (
        {} if stream else {"order": options.order}
    )
    for name, value in same.items():
        begun = then["streamed" if name == "stream" else name]
        if begun != value:
            raise InvalidParameter(name, value, f"the same as before the interrupt, {begun!r}")
    if options.passes is not None and options.passes < then["pass"]:
        raise InvalidParameter("passes", options.passes, f"at least {then['pass']}: the model was interrupted in that pass")


def _check_content(model: FileModel, files: Sequence[str], digest: str | None) -> None:
    """Refuse files whose content is not what it was; `digest` is the XXH64 of all bytes, where they are in memory."""
    then = model.training.get("xxh64")
    size = model.training.get("xxh64_bytes", sum(size for _, size in learned_files(model.training)))
    size = check_whole(size, "xxh64_bytes")
    now = digest or (fingerprint(files, size) if then else then)
    if then != now:
        raise InvalidData(
            f"{', '.join(files)}: the content has changed since training was interrupted: the XXH64 of the first {size:,} "
            f"bytes was {then}, and is {now} now",
            hint="train a new model",
        )
