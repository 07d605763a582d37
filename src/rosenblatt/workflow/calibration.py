"""Fit probabilities to a model: sigmoids of scores, fitted to rows that were not learned from.

`calibrate` trains on all folds but one, scores the rows of that one, and so comes to a score of each row by a model that
had not seen it; scikit-learn's `CalibratedClassifierCV` fits the sigmoids to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Reading
from rosenblatt.errors import InvalidData, UnsupportedOperation
from rosenblatt.estimators.interface import ClassifierMixin, Learner, is_regressor
from rosenblatt.workflow.evaluation import Rows
from rosenblatt.workflow.labels import Labels
from rosenblatt.workflow.model import FileModel, Paths, file_list
from rosenblatt.workflow.probabilities import Sigmoids
from rosenblatt.workflow.training import Options

FOLDS = 5


def check_calibration(learner: Any, files: Sequence[str], stream: bool) -> None:
    """Raise UnsupportedOperation where probabilities cannot be fitted: before training, which takes long."""
    if is_regressor(learner) or not hasattr(learner, "decision_function"):
        raise UnsupportedOperation(
            f"{type(learner).__name__} has no scores of classes from which probabilities could be made"
        )
    if not rereadable(files):
        raise UnsupportedOperation(
            "probabilities are fitted by training on parts of the rows again, and a pipe can be read only once",
            hint="give a file",
        )
    if stream:
        raise UnsupportedOperation(
            "probabilities are fitted by training on parts of the rows, which must be in memory", settings={"stream": False}
        )


def check_new(model: FileModel) -> None:
    """Raise UnsupportedOperation for a model that has learned from rows that cannot be held out any more."""
    if model.training.get("continued"):
        raise UnsupportedOperation(
            "probabilities are fitted to rows that were not learned from, and this model continued from another one",
            hint="train a new model on all rows",
        )


def calibrate(model: FileModel, paths: Paths, reading: Reading, folds: int = FOLDS, on_error: str = "error") -> FileModel:
    """Fit probabilities to a model that was trained from files; training is repeated once for each fold.

    Parameters
    ----------
    model : FileModel
        The model.
    paths : path or list of paths
        The files it was trained on.
    reading : Reading
        The reading that was given to `train`, which has learned nothing from the rows.
    folds : int, optional
        The number of folds; fewer where there are fewer rows.
    on_error : {"error", "skip"}, optional
        "skip" leaves out rows that cannot be read.

    Returns
    -------
    FileModel
        The same model with `probabilities`; `model` itself stays as it is.

    Raises
    ------
    UnsupportedOperation
        If the learner has no scores, or the rows cannot be loaded again.
    InvalidData
        If there are too few rows to hold some out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import evaluate, reading_for, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\nspam 1:1\\nham 2:1 3:1\\n" * 10)
    ...     reading = reading_for([str(path)])
    ...     model = calibrate(train(path, reading), path, reading)
    ...     report = evaluate(model, path)
    >>> report.accuracy, report.log_loss < 0.5
    (1.0, True)
    """
    then = model.training
    check_new(model)
    check_calibration(model.learner, file_list(paths), bool(then.get("streamed")))
    options = Options(passes=then["passes"], order=then["order"], seed=then["seed"], on_error=on_error)
    rows = Rows.load(paths, reading, model.learner, options)
    labels = Labels.in_order(model.classes_.tolist())
    scores = np.empty((len(rows.y), len(labels)))
    weight = np.ones(len(rows.y))
    for rest, held in rows.split(min(folds, len(rows.y))):
        try:
            part = rows.train(rest)
        except InvalidData as error:
            problem = f"there are too few rows to hold some out and fit probabilities to them: {error.problem}"
            raise InvalidData(problem, hint="train without probabilities") from error
        chunk = part.reading.chunk(rows.batch.take(held))
        found = part.answer(chunk).scores
        assert found is not None
        found = np.column_stack([-found, found]) if found.ndim == 1 else found
        scores[held] = found.min(axis=1, keepdims=True)  # of a class that none of the other rows has
        scores[np.ix_(held, labels.numbers(np.asarray(part.classes_.tolist(), rows.y.dtype)))] = found
        if chunk.weight is not None:
            weight[held] = chunk.weight
    return FileModel(model.reading, model.learner, then, _fit(scores, labels.numbers(rows.y), weight, folds), model.seconds)


class _Scores(ClassifierMixin, Learner):
    """A classifier that has nothing to learn: its decision is the row itself, (rows, classes)."""

    def fit(self, X: NDArray, y: NDArray, sample_weight: NDArray | None = None) -> _Scores:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: NDArray) -> NDArray:
        return X[:, 1] if X.shape[1] == 2 else X

    def predict(self, X: NDArray) -> NDArray:
        return self.classes_[X.argmax(axis=1)]


def _fit(scores: NDArray, numbers: NDArray, weight: NDArray, folds: int) -> Sigmoids:
    from sklearn.calibration import CalibratedClassifierCV  # which takes a while to import

    everything = np.arange(len(numbers))  # one fold, as none of the scores is of a row that was learned from
    fitted = CalibratedClassifierCV(_Scores(), method="sigmoid", cv=[(everything, everything)], ensemble=False)
    fitted.fit(scores, numbers, sample_weight=weight)
    each = fitted.calibrated_classifiers_[0].calibrators
    return Sigmoids([-float(one.a_) for one in each], [-float(one.b_) for one in each], folds, len(numbers))
