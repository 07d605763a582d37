"""How good a model is: counted on files it has not seen, in folds, or against how much it learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Batch, Reading
from rosenblatt.data.svmlight import LabelError
from rosenblatt.workflow.labels import Labels
from rosenblatt.workflow.model import FileModel, listed
from rosenblatt.workflow.run import Run, numbers_of
from rosenblatt.workflow.sources import Loaded
from rosenblatt.workflow.terms import DEFAULTS, Options

_FEWEST_FOLDS = 2
_FEWEST_CLASSES = 2
_HALVINGS = 5  # from all rows down to those with which a learning curve begins


class Row(NamedTuple):
    """How a class fared. Precision is the share of right answers among those that name it, recall among its rows; 0 where
    there are none."""

    label: Any
    precision: float
    recall: float
    f1: float
    support: int


class Report(NamedTuple):
    """How answers compare with what is right."""

    rows: int
    accuracy: float
    classes: list[Row]
    pairs: list[
        tuple[int, int, int]
    ]  # (class, what it was called, in how many rows), by their numbers, where there are any
    unknown: int  # rows with a label that the model does not know; they count as wrong
    skipped: int = 0  # rows of the files that were left out

    @property
    def confusion(self) -> NDArray:
        """(classes, classes): rows of the first that were called the second."""
        table = np.zeros((len(self.classes), len(self.classes)), np.int64)
        for right, said, count in self.pairs:
            table[right, said] = count
        return table

    def most_confused(self, count: int) -> list[tuple[int, Any, Any]]:
        """(rows, label, what it was called instead), the most first."""
        wrong = sorted((pair for pair in self.pairs if pair[0] != pair[1]), key=lambda pair: (-pair[2], pair))
        return [(rows, self.classes[right].label, self.classes[said].label) for right, said, rows in wrong[:count]]

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur."""
        present = [row.f1 for row in self.classes if row.support]
        return float(np.mean(present)) if present else 0.0


class Fit(NamedTuple):
    """How numbers compare with what is right."""

    rows: int
    mean_squared_error: float
    mean_absolute_error: float
    r2: float
    skipped: int = 0  # rows of the files that were left out


def report(classes: NDArray, truth: NDArray, found: NDArray) -> Report:
    """The comparison of labels."""
    labels = Labels.in_order(classes.tolist())
    right, said = labels.numbers(truth), labels.numbers(found)
    known = right >= 0
    size = len(labels)
    there, named = (np.bincount(part[known], minlength=size) for part in (right, said))
    hits = np.bincount(right[known & (right == said)], minlength=size)
    codes, counts = np.unique(right[known] * size + said[known], return_counts=True)
    pairs = [(code // size, code % size, count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)]
    rows = []
    for i, label in enumerate(classes.tolist()):
        precision, recall = hits[i] / max(named[i], 1), hits[i] / max(there[i], 1)
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        rows.append(Row(label, float(precision), float(recall), float(f1), int(there[i])))
    accuracy = float(hits.sum() / max(len(right), 1))
    return Report(len(right), accuracy, rows, pairs, int(np.count_nonzero(~known)))


def fit_of(truth: NDArray, found: NDArray) -> Fit:
    """The comparison of numbers."""
    error = found - truth
    spread = float(np.sum((truth - truth.mean()) ** 2)) if len(truth) else 0.0
    r2 = 1 - float(np.sum(error**2)) / spread if spread else float("nan")
    return Fit(len(truth), float(np.mean(error**2)), float(np.mean(np.abs(error))), r2)


def compared(model: FileModel, truth: NDArray, found: NDArray) -> Report | Fit:
    """The comparison that suits the model."""
    if is_regressor(model.learner):
        return fit_of(numbers_of(truth), found)
    return report(model.classes_, truth, found)


def evaluate(model: FileModel, paths: str | PathLike | Sequence[str | PathLike], on_error: str = "error") -> Report | Fit:
    """How the model answers for the labelled rows of files."""
    truth: list[NDArray] = []
    found: list[NDArray] = []
    skipped = 0
    for answers in model.answers(paths, labelled=True, scores=False, on_error=on_error):
        truth.append(np.empty(0) if answers.truth is None else answers.truth)
        found.append(answers.labels)
        skipped = answers.skipped
    if not sum(map(len, truth)):
        raise ValueError("there are no labelled rows to judge by")
    return compared(model, _one_kind(truth), np.concatenate(found))._replace(skipped=skipped)


class Folds(NamedTuple):
    """What came of cross-validation: the report of all rows, each answered for by the model that had not seen it, and the
    score of each fold (accuracy, or R² of numbers)."""

    overall: Report | Fit
    scores: list[float]


def cross_validated(
    paths: str | PathLike | Sequence[str | PathLike],
    reading: Reading,
    learner: Any,
    folds: int,
    options: Options = DEFAULTS,
    watch: Callable[[int, Report | Fit], Any] = lambda fold, report: None,
) -> Folds:
    """A learner judged on each of `folds` parts of the files by what it makes of the others. Whatever has to be learned
    about the columns is learned from the other parts too."""
    whole, y = loaded(paths, reading, learner, options)
    regression = is_regressor(learner)
    numbers = y if regression else Labels(np.unique(y)).numbers(y)
    if folds < _FEWEST_FOLDS or folds > len(y):
        raise ValueError(f"folds={folds}: with {len(y)} rows there can be 2 to {len(y)}")
    if not regression and np.bincount(numbers).min() < folds:
        splitter: Any = KFold(folds, shuffle=True, random_state=options.seed)  # a class too rare to be in every fold
    else:
        splitter = (KFold if regression else StratifiedKFold)(folds, shuffle=True, random_state=options.seed)
    found: Any = None
    scores = []
    for number, (learned, held) in enumerate(splitter.split(np.zeros(len(y)), numbers), 1):
        model = made(whole.take(learned), reading, learner, options)
        part = whole.take(held)
        answers = model.answer(model.reading.chunk(part), scores=False).labels
        if found is None:
            found = np.empty(len(y), answers.dtype if regression else object)
        found[held] = answers
        seen = compared(model, y[held], answers)
        scores.append(seen.r2 if isinstance(seen, Fit) else seen.accuracy)
        watch(number, seen)
    overall = fit_of(y, found) if regression else report(Labels(np.unique(y)).classes(), y, found)
    return Folds(overall, scores)


class Point(NamedTuple):
    """A learning curve at one size: rows learned from, score on them, score on the rows held out."""

    rows: int
    training: float
    validation: float


def learning_curve(
    paths: str | PathLike | Sequence[str | PathLike],
    reading: Reading,
    learner: Any,
    options: Options = DEFAULTS,
    held: float = 0.2,
) -> Iterator[Point]:
    """The score against how much was learned from, doubling up to all rows but the share `held` out."""
    whole, y = loaded(paths, reading, learner, options)
    regression = is_regressor(learner)
    numbers = None if regression else Labels(np.unique(y)).numbers(y)
    few = round(held * len(y))
    spread = numbers is not None and np.bincount(numbers).min() > 1 and few >= numbers.max() + 1 <= len(y) - few
    stratify = numbers if spread else None
    rest, out = train_test_split(np.arange(len(y)), test_size=held, random_state=options.seed, stratify=stratify)
    sizes = sorted({max(2, round(len(rest) / 2**k)) for k in range(_HALVINGS + 1)})
    for size in sizes:
        part = np.sort(rest[:size])
        if numbers is not None and len(np.unique(numbers[part])) < 2:
            continue
        try:
            model = made(whole.take(part), reading, learner, options)
        except ValueError:
            if len(part) == len(rest):
                raise
            continue  # too few rows to learn anything from: no word came twice
        scores = []
        for rows in (part, np.sort(out)):
            seen = compared(model, y[rows], model.answer(model.reading.chunk(whole.take(rows)), scores=False).labels)
            scores.append(seen.r2 if isinstance(seen, Fit) else seen.accuracy)
        yield Point(len(part), *scores)


def loaded(
    paths: str | PathLike | Sequence[str | PathLike], reading: Reading, learner: Any, options: Options
) -> tuple[Batch, NDArray]:
    """(what stands in the files, the labels)."""
    files = listed(paths)
    try:
        raw = _gathered(reading, files, options.on_error)
    except LabelError:
        if not rereadable(files):
            raise
        reading = reading.told(reading.labels(files)[1])
        raw = _gathered(reading, files, options.on_error)
    if not raw:
        raise ValueError("there are no rows to judge by")
    whole = reading.joined(raw)
    y = (reading.learned([whole]) if reading.learns else reading).chunk(whole).y
    if y is None:
        raise ValueError("the rows have no labels to judge by")
    if not is_regressor(learner) and len(np.unique(y)) < _FEWEST_CLASSES:
        raise ValueError(f"{', '.join(files)}: at least two classes are needed to learn from, and there is one only")
    return whole, numbers_of(y) if is_regressor(learner) else y


def _gathered(reading: Reading, files: Sequence[str], on_error: str) -> list[Any]:
    batches = reading.batches(files, on_error=on_error)
    try:
        return list(batches)
    finally:
        batches.close()


def made(batch: Batch, reading: Reading, learner: Any, options: Options) -> FileModel:
    """The model made of one batch."""
    reading = reading.learned([batch]) if reading.learns else reading
    chunk = reading.chunk(batch)
    run = Run(reading, clone(learner), options, lambda step: None, False, [])
    run.take_rows(Loaded(chunk, np.arange(chunk.rows), options.order, options.seed))
    run.go(lambda: False)
    return run.model()


def _one_kind(parts: list[NDArray]) -> NDArray:
    """All labels in one array; as objects, if some are numbers and some text."""
    if len({part.dtype.kind for part in parts}) > 1:
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)
