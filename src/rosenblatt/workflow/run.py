"""A training under way: it finds its rows and its classes, learns step by step, and knows at each of them how to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from rosenblatt.data.reading import Chunk, OfRows, Reading
from rosenblatt.estimators.linear import Linear
from rosenblatt.workflow.labels import Labels, spelled
from rosenblatt.workflow.model import FileModel, fitted_to
from rosenblatt.workflow.sources import Loaded, Streamed, memory_there_is, sizes
from rosenblatt.workflow.terms import Options, Step, UnknownLabel, Watch, WrongUse

LOADED_PASSES, STREAMED_PASSES = 10, 1
_GROWTH = 1.5


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


def numbers_of(y: NDArray | None) -> NDArray:
    """Labels that must be numbers."""
    if y is None or y.dtype.kind not in "fiu":
        raise ValueError(f"a regressor learns numbers, and there are labels such as {'none' if y is None else y[0]!r}")
    return y.astype(np.float64)
