"""How good a model is: measured on files it has not seen, by cross-validation, or with a learning curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Batch, Reading
from rosenblatt.data.svmlight import LabelError
from rosenblatt.errors import IncompatibleParameters, InvalidData, InvalidParameter, UnsupportedOperation
from rosenblatt.estimators.interface import Learner, is_regressor
from rosenblatt.workflow.labels import Labels
from rosenblatt.workflow.model import Decision, FileModel, Paths, file_list
from rosenblatt.workflow.training import DEFAULTS, Options, Trainer, check_labels, check_numeric, check_task

_HALVINGS = 5  # from all rows down to those with which a learning curve begins


class ClassScore(NamedTuple):
    """Precision, recall and F1 of one class; `support` is the number of its rows. A share of no rows is 0."""

    label: Any
    precision: float
    recall: float
    f1: float
    support: int


class Report(NamedTuple):
    """The accuracy of predicted labels, and the scores of each class.

    Attributes
    ----------
    rows : int
        The number of rows.
    accuracy : float
        The share of rows that are predicted right.
    classes : list of ClassScore
        Precision, recall and F1 of each class.
    pairs : list of (int, int, int)
        (true class, predicted class, number of rows), by the numbers of the classes.
    unknown : int
        The number of rows with a label that the model does not know; they count as wrong.
    skipped : int
        The number of rows of the files that were left out.
    log_loss : float or None
        The mean of −ln p, where p is the probability of the true class; None for a model without probabilities.
    brier : float or None
        The Brier score: the mean of (1 − p)² for two classes, of the sum of (p − truth)² over all classes for many.
    """

    rows: int
    accuracy: float
    classes: list[ClassScore]
    pairs: list[tuple[int, int, int]]
    unknown: int
    skipped: int = 0
    log_loss: float | None = None
    brier: float | None = None

    @property
    def score(self) -> float:
        """The accuracy, as the score of a fold."""
        return self.accuracy

    @property
    def confusion(self) -> NDArray:
        """(classes, classes): the confusion matrix, true classes by predicted ones."""
        table = np.zeros((len(self.classes), len(self.classes)), np.int64)
        for truth, predicted, count in self.pairs:
            table[truth, predicted] = count
        return table

    def most_confused(self, count: int) -> list[tuple[int, Any, Any]]:
        """Return the most frequent errors.

        Parameters
        ----------
        count : int
            How many to return.

        Returns
        -------
        list of (rows, true label, predicted label)
        """
        wrong = sorted((pair for pair in self.pairs if pair[0] != pair[1]), key=lambda pair: (-pair[2], pair))
        return [
            (rows, self.classes[truth].label, self.classes[predicted].label) for truth, predicted, rows in wrong[:count]
        ]

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur."""
        present = [row.f1 for row in self.classes if row.support]
        return float(np.mean(present)) if present else 0.0


class RegressionReport(NamedTuple):
    """The errors of predicted numbers.

    Attributes
    ----------
    rows : int
        The number of rows.
    mean_squared_error, mean_absolute_error, r2 : float
        The errors, and R². `root_mean_squared_error` is the root of the first.
    skipped : int
        The number of rows of the files that were left out.
    """

    rows: int
    mean_squared_error: float
    mean_absolute_error: float
    r2: float
    skipped: int = 0

    @property
    def score(self) -> float:
        """R², as the score of a fold."""
        return self.r2

    @property
    def root_mean_squared_error(self) -> float:
        """RMSE: the root of the mean squared error, on the scale of the labels."""
        return math.sqrt(self.mean_squared_error)


def classification_report(classes: NDArray, truth: NDArray, predicted: NDArray) -> Report:
    """Compare predicted labels with the true ones."""
    labels = Labels.in_order(classes.tolist())
    right, said = labels.numbers(truth), labels.numbers(predicted)
    known = right >= 0
    size = len(labels)
    there, named = (np.bincount(part[known], minlength=size) for part in (right, said))
    hits = np.bincount(right[known & (right == said)], minlength=size)
    codes, counts = np.unique(right[known] * size + said[known], return_counts=True)
    pairs = [(code // size, code % size, count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)]
    scores = []
    for i, label in enumerate(classes.tolist()):
        precision, recall = hits[i] / max(named[i], 1), hits[i] / max(there[i], 1)
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        scores.append(ClassScore(label, float(precision), float(recall), float(f1), int(there[i])))
    accuracy = float(hits.sum() / max(len(right), 1))
    return Report(len(right), accuracy, scores, pairs, int(np.count_nonzero(~known)))


def regression_report(truth: NDArray, predicted: NDArray) -> RegressionReport:
    """Compare predicted numbers with the true ones."""
    error = predicted - truth
    variation = float(np.sum((truth - truth.mean()) ** 2)) if len(truth) else 0.0
    r2 = 1 - float(np.sum(error**2)) / variation if variation else float("nan")
    return RegressionReport(len(truth), float(np.mean(error**2)), float(np.mean(np.abs(error))), r2)


def compare(model: FileModel, truth: NDArray, predicted: NDArray) -> Report | RegressionReport:
    """Compare predictions of a model with the truth."""
    if is_regressor(model.learner):
        return regression_report(check_numeric(truth), predicted)
    return classification_report(model.classes_, truth, predicted)


def probability_scores(classes: NDArray, truth: NDArray, probabilities: NDArray) -> tuple[float, float] | None:
    """Return (log loss, Brier score) of probabilities (rows, classes), of rows whose class is known; None if none is."""
    numbers = Labels.in_order(classes.tolist()).numbers(truth)
    known = np.flatnonzero(numbers >= 0)
    if not len(known):
        return None
    p = probabilities[known]
    right = p[np.arange(len(known)), numbers[known]]
    squares = (1 - right) ** 2 if len(classes) == 2 else (p**2).sum(axis=1) - right**2 + (1 - right) ** 2
    return float(-np.log(np.maximum(right, np.finfo(float).tiny)).mean()), float(squares.mean())


def evaluate(
    model: FileModel,
    paths: Paths,
    on_error: str = "error",
    *,
    threshold: float | None = None,
    probabilities: bool = False,
) -> Report | RegressionReport:
    """Measure a model on labelled files.

    Parameters
    ----------
    model : FileModel
        The model.
    paths : path or list of paths
        Files with labels.
    on_error : {"error", "skip"}, optional
        "skip" leaves out rows that cannot be read.
    threshold : float, optional
        With two classes, predict the second if its score (with `probabilities`, its probability) is at least this.
    probabilities : bool, optional
        Predict the most probable class instead of the one with the best score.

    Returns
    -------
    Report or RegressionReport
        Accuracy, scores of each class and confusions, and log loss and Brier score of a model with probabilities; or the
        errors of a regressor.

    Raises
    ------
    InvalidData
        If the files have no labelled rows, or do not fit the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import reading_for, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\nspam 1:1\\nham 2:1 3:1\\n" * 5)
    ...     report = evaluate(train(path, reading_for([str(path)])), path)
    >>> report.rows, report.accuracy, report.confusion.tolist()
    (20, 1.0, [[10, 0], [0, 10]])
    """
    truth: list[NDArray] = []
    predicted: list[NDArray] = []
    chances: list[NDArray] = []
    decision = Decision(probabilities, threshold)
    model.check_decision(decision)
    if threshold is not None and len(model.classes_) > 2:
        raise UnsupportedOperation(f"a threshold is measured for two classes; the model has {len(model.classes_)}")
    stream = model.answers(paths, True, model.probabilities is not None, on_error, decision)
    for answers in stream:
        if model.probabilities is not None and answers.scores is not None:
            chances.append(model.probabilities.probabilities(answers.scores))
        truth.append(np.empty(0) if answers.truth is None else answers.truth)
        predicted.append(answers.labels)
    if not sum(map(len, truth)):
        raise InvalidData("there are no labelled rows to measure the model on", path=", ".join(file_list(paths)))
    if len({part.dtype.kind for part in truth}) > 1:  # some labels are numbers and some text
        truth = [part.astype(object) for part in truth]
    right = np.concatenate(truth)
    report = compare(model, right, np.concatenate(predicted))._replace(skipped=stream.skipped)
    if isinstance(report, Report) and chances:
        log_loss, brier = probability_scores(model.classes_, right, np.concatenate(chances)) or (None, None)
        report = report._replace(log_loss=log_loss, brier=brier)
    return report


class Folds(NamedTuple):
    """The result of cross-validation: the report of all rows, each predicted by the model that had not seen it, and the
    score of each fold (accuracy, or R² of numbers)."""

    overall: Report | RegressionReport
    scores: list[float]


def cross_validate(
    paths: Paths,
    reading: Reading,
    learner: Learner,
    folds: int,
    options: Options = DEFAULTS,
    watch: Callable[[int, Report | RegressionReport], object] = lambda fold, report: None,
) -> Folds:
    """Cross-validate a learner: measure it on each fold after training on the others.

    Whatever has to be learned about the columns is learned from the other folds too.

    Parameters
    ----------
    paths : path or list of paths
        Files with labels.
    reading : Reading
        How files become rows; see `reading_for`.
    learner : estimator
        The learner, which stays as it is.
    folds : int
        Number of folds; each has the same shares of the classes where these have enough rows.
    options : Options, optional
        Passes, order and random seed, as for `train`. The seed also decides which rows are in which fold.
    watch : callable, optional
        Called with the number of each fold and its report.

    Returns
    -------
    Folds
        The report of all rows, and the score of each fold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt import Perceptron
    >>> from rosenblatt.workflow import reading_for
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\nspam 1:1\\nham 2:1 3:1\\n" * 5)
    ...     found = cross_validate(path, reading_for([str(path)]), Perceptron(), folds=5)
    >>> found.scores, found.overall.accuracy
    ([1.0, 1.0, 1.0, 1.0, 1.0], 1.0)
    """
    rows = Rows.load(paths, reading, learner, options)
    total = len(rows.y)
    predicted = np.empty(total, np.float64 if rows.regression else object)
    scores = []
    for number, (rest, held) in enumerate(rows.split(folds), 1):
        report, predicted[held] = rows.score(rows.train(rest), held)
        scores.append(report.score)
        watch(number, report)
    if rows.regression:
        return Folds(regression_report(rows.y, predicted), scores)
    return Folds(classification_report(rows.labels.classes(), rows.y, predicted), scores)


class Point(NamedTuple):
    """A learning curve at one size: rows learned from, score on them, score on the rows held out."""

    rows: int
    training: float
    validation: float


def learning_curve(
    paths: Paths, reading: Reading, learner: Learner, options: Options = DEFAULTS, held: float = 0.2
) -> Iterator[Point]:
    """Compute a learning curve: scores against the number of rows learned from, which doubles from point to point.

    Parameters
    ----------
    paths : path or list of paths
        Files with labels.
    reading : Reading
        How files become rows; see `reading_for`.
    learner : estimator
        The learner, which stays as it is.
    options : Options, optional
        Passes, order and random seed, as for `train`.
    held : float, optional
        Share of the rows that is held out for measuring.

    Yields
    ------
    Point
        The number of rows, the score on them and the score on the rows held out; accuracy, or R² of numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt import Perceptron
    >>> from rosenblatt.workflow import reading_for
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\nspam 1:1\\nham 2:1 3:1\\n" * 20)
    ...     points = list(learning_curve(path, reading_for([str(path)]), Perceptron()))
    >>> [tuple(point) for point in points[-3:]]
    [(16, 1.0, 1.0), (32, 1.0, 1.0), (64, 1.0, 1.0)]
    """
    from sklearn.model_selection import train_test_split

    rows = Rows.load(paths, reading, learner, options)
    total, few = len(rows.y), round(held * len(rows.y))
    stratify = None
    if not rows.regression and np.bincount(rows.numbers).min() > 1 and few >= len(rows.labels) <= total - few:
        stratify = rows.numbers
    rest, out = train_test_split(np.arange(total), test_size=held, random_state=options.seed, stratify=stratify)
    for size in sorted({max(2, round(len(rest) / 2**k)) for k in range(_HALVINGS + 1)}):
        part = np.sort(rest[:size])
        if not rows.regression and len(np.unique(rows.numbers[part])) < 2:
            continue
        try:
            model = rows.train(part)
        except InvalidData:
            if len(part) == len(rest):
                raise
            continue  # too few rows to learn anything from: no word came twice
        yield Point(len(part), *(rows.score(model, some)[0].score for some in (part, np.sort(out))))


class Rows(NamedTuple):
    """All rows of some files in memory, with a learner that is trained on some of them and measured on others."""

    batch: Batch
    y: NDArray  # (rows,) labels
    labels: Labels  # all classes; none for a regressor
    numbers: NDArray  # (rows,) the class of each row; the labels themselves for a regressor
    reading: Reading
    learner: Any
    options: Options

    @classmethod
    def load(cls, paths: Paths, reading: Reading, learner: Any, options: Options) -> Rows:
        """Read files; InvalidData if their rows cannot be learned from."""
        if options.stream:
            raise InvalidParameter("stream", True, "False or None: cross-validation and learning curves load the rows")
        if options.holdout:
            reason = "cross-validation and learning curves hold out rows of their own"
            raise IncompatibleParameters(("holdout", options.holdout), ("folds", None), reason)
        files = file_list(paths)
        try:
            batches = _read_all(reading, files, options.on_error)
        except LabelError:
            if not rereadable(files):
                raise
            reading = reading.with_labels(reading.labels(files)[1])
            batches = _read_all(reading, files, options.on_error)
        check_task(learner, options)
        place = ", ".join(files)
        if not batches:
            raise InvalidData("there are no rows to learn from", path=place)
        batch = reading.concatenate(batches)
        y = (reading.fit([batch]) if reading.needs_fit else reading).chunk(batch).y
        if y is None:
            raise InvalidData("the rows have no labels", path=place)
        if is_regressor(learner):
            y = check_numeric(y)
            return cls(batch, y, Labels(), y, reading, learner, options)
        check_labels(y, learner, options, files)
        labels = Labels(np.unique(y))
        if len(labels) < 2:
            raise InvalidData("at least two classes are needed to learn from, and there is one only", path=place)
        return cls(batch, y, labels, labels.numbers(y), reading, learner, options)

    @property
    def regression(self) -> bool:
        return is_regressor(self.learner)

    def split(self, folds: int) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield (the other rows, the rows) of each fold; folds have the same shares of classes that have enough rows."""
        from sklearn.model_selection import KFold, StratifiedKFold

        total = len(self.y)
        if not 2 <= folds <= total:
            raise InvalidParameter("folds", folds, f"from 2 to the number of rows, {total}")
        stratified = not self.regression and np.bincount(self.numbers).min() >= folds  # every class can be in every fold
        splitter: Any = (StratifiedKFold if stratified else KFold)(folds, shuffle=True, random_state=self.options.seed)
        yield from splitter.split(np.zeros(total), self.numbers)

    def train(self, rows: NDArray) -> FileModel:
        """Train a model on some rows."""
        trainer = Trainer(self.reading, self.learner, self.options, classes=self.labels)
        trainer.use_batch(self.batch.take(rows))
        return trainer.run()

    def score(self, model: FileModel, rows: NDArray) -> tuple[Report | RegressionReport, NDArray]:
        """Return (the report of a model on some rows, its predictions)."""
        predicted = model.answer(model.reading.chunk(self.batch.take(rows)), scores=False).labels
        return compare(model, self.y[rows], predicted), predicted


def _read_all(reading: Reading, files: Sequence[str], on_error: str) -> list[Batch]:
    batches = reading.batches(files, on_error=on_error)
    try:
        return list(batches)
    finally:
        batches.close()
