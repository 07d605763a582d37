"""A model from files is a learner and the reading that makes its rows; it predicts for files as it learned from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.data import opening
from rosenblatt.data.formats import READINGS, reading_class
from rosenblatt.data.reading import Batches, Chunk, Reading, RowTexts
from rosenblatt.errors import DamagedModel, InvalidData, InvalidParameter, InvalidParameterType, UnsupportedOperation
from rosenblatt.estimators.interface import is_regressor
from rosenblatt.modelfile import registry
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import SaveLoadMixin
from rosenblatt.workflow.probabilities import Sigmoids

Paths = str | PathLike | Sequence[str | PathLike]  # files, folders or patterns
_NO_FEATURES = ("target", "weight", "ignored")  # what a column can be beside something to learn from


class Answers(NamedTuple):
    """Predictions for some rows: labels or numbers, the scores of `decision_function`, and the true labels."""

    labels: NDArray
    scores: NDArray | None
    truth: NDArray | None
    unknown: int  # non-zeros in columns that no row had in training; they are ignored
    probabilities: NDArray | None = None  # (rows, classes)
    texts: RowTexts | None = None  # the rows as they stand in the files


class Decision(NamedTuple):
    """How scores become labels: the best one wins, unless these say otherwise."""

    probabilities: bool = False  # the most probable class wins
    threshold: float | None = None  # with two classes the second wins at or above it; with more none wins below it


SCORES = Decision()


class AnswerStream:
    """An iterator over the predictions for files; it closes them at the end, or where an error ends it."""

    def __init__(self, batches: Batches, answer: Callable[[Any], Answers]):
        self._batches, self._answer = batches, answer

    @property
    def skipped(self) -> int:
        """The number of rows left out so far; at the end, of all files."""
        return self._batches.skipped

    def __iter__(self) -> Iterator[Answers]:
        return self

    def __next__(self) -> Answers:
        try:
            batch = next(self._batches)
            return self._answer(batch)._replace(texts=batch.texts)
        except BaseException:
            self._batches.close()
            raise


class FileModel(SaveLoadMixin):
    """A model trained from files: a learner, the reading that makes rows for it, and the facts of its training.

    `train` makes it; `save` and `load` keep it in one file.

    Parameters
    ----------
    reading : Reading
        How files become rows.
    learner : estimator
        The learner, which has learned.
    training : mapping, optional
        Facts about the training: files, passes, mistakes, why it stopped.
    probabilities : Sigmoids, optional
        The sigmoids that turn scores into probabilities; see `calibrate`.
    seconds : float, optional
        How long the training took; it is not saved, so that the same training gives the same file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import reading_for, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.csv"
    ...     _ = path.write_text("label,text\\n" + "spam,win money now\\nham,see you soon\\n" * 5)
    ...     train(path, reading_for([str(path)], target="label", text=["text"])).save(Path(folder) / "mail.model")
    ...     model = FileModel.load(Path(folder) / "mail.model")
    ...     model.predict(path)[:2].tolist()
    ['spam', 'ham']
    """

    def __init__(
        self,
        reading: Reading,
        learner: Any,
        training: Mapping[str, object] | None = None,
        probabilities: Sigmoids | None = None,
        seconds: float | None = None,
    ):
        self.reading = reading
        self.learner = learner
        self.training: dict[str, Any] = dict(training or {})
        self.probabilities = probabilities
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"FileModel({self.reading!r}, {self.learner!r})"

    @property
    def classes_(self) -> NDArray:
        """The classes, as their labels."""
        return self.learner.classes_

    @property
    def features(self) -> int:
        """The number of features: LIBSVM text without the index 0 has one less than columns."""
        return self.training.get("features", self.learner.n_features_in_)

    def predict(self, paths: Paths, *, threshold: float | None = None, probabilities: bool = False) -> NDArray:
        """Predict the label, or the number, of each row of files.

        Parameters
        ----------
        paths : path or list of paths
            Files, folders or patterns; "-" is standard input.
        threshold : float, optional
            With two classes, predict the second if its score is at least this; with more, predict None if the best score
            is lower. With `probabilities`, this is compared with probabilities instead of scores.
        probabilities : bool, optional
            Predict the most probable class instead of the one with the best score.

        Returns
        -------
        array of shape (rows,)
            In the order of the rows.
        """
        decision = Decision(probabilities, threshold)
        found = [answers.labels for answers in self.answers(paths, False, False, decision=decision)]
        if not found:
            return np.empty(0, np.float64 if is_regressor(self.learner) else self.classes_.dtype)
        return np.concatenate(found)

    def predict_probabilities(self, paths: Paths) -> NDArray:
        """Predict the probability of each class; `calibrate` must have fitted probabilities to the model.

        Parameters
        ----------
        paths : path or list of paths
            Files, folders or patterns; "-" is standard input.

        Returns
        -------
        array of shape (rows, classes)
            In the order of the rows and of `classes_`; each row adds up to one.
        """
        found = [answers.probabilities for answers in self.answers(paths, False, False, decision=Decision(True))]
        return np.concatenate([np.empty((0, len(self.classes_))), *(part for part in found if part is not None)])

    def check_decision(self, decision: Decision) -> None:
        """Raise an error if this model cannot make such decisions.

        Parameters
        ----------
        decision : Decision
            Whether probabilities decide, and the threshold.
        """
        probabilities, threshold = decision
        if probabilities and self.probabilities is None:
            raise UnsupportedOperation(
                "this model has no probabilities; they are fitted when it is trained", settings={"probabilities": True}
            )
        if threshold is None:
            return
        if is_regressor(self.learner) or not hasattr(self.learner, "decision_function"):
            raise UnsupportedOperation(f"{type(self.learner).__name__} has no scores to compare with a threshold")
        if not (0 <= threshold <= 1 if probabilities else np.isfinite(threshold)):
            allowed = "a probability, from 0 to 1" if probabilities else "a finite number"
            raise InvalidParameter("threshold", threshold, allowed)

    def answers(
        self,
        paths: Paths,
        labelled: bool = True,
        scores: bool = True,
        on_error: str = "error",
        decision: Decision = SCORES,
        texts: bool = False,
    ) -> AnswerStream:
        """Return an iterator over the predictions, batch by batch, in the order of the rows.

        Parameters
        ----------
        paths : path or list of paths
            Files, folders or patterns; "-" is standard input.
        labelled : bool, optional
            Read the true labels too, and refuse rows without one.
        scores : bool, optional
            Compute the scores of `decision_function` too.
        on_error : {"error", "skip"}, optional
            "skip" leaves out rows that cannot be read.
        decision : Decision, optional
            How scores become labels.
        texts : bool, optional
            Keep the rows as they stand in the files.

        Returns
        -------
        AnswerStream
            An iterator over `Answers`, which counts the rows left out in `skipped`.
        """
        self.check_decision(decision)
        batches = self.reading.batches(file_list(paths), labelled=labelled, on_error=on_error, texts=texts)
        return AnswerStream(batches, lambda batch: self.answer(self.reading.chunk(batch), scores, decision))

    def answer(self, chunk: Chunk, scores: bool = True, decision: Decision = SCORES) -> Answers:
        """Return the predictions for some rows.

        Parameters
        ----------
        chunk : Chunk
            The rows.
        scores : bool, optional
            Compute the scores of `decision_function` too.
        decision : Decision, optional
            How scores become labels.

        Returns
        -------
        Answers
        """
        X, unknown = match_columns(chunk.X, self.learner.n_features_in_)
        if is_regressor(self.learner):
            return Answers(self.learner.predict(X), None, chunk.y, unknown)
        found = probabilities = None
        if (scores or decision != SCORES) and hasattr(self.learner, "decision_function"):
            found = self.learner.decision_function(X)
        if decision.probabilities and self.probabilities is not None and found is not None:
            probabilities = self.probabilities.probabilities(found)
        if found is None or decision == SCORES:
            labels = self.learner.predict(X)
        else:
            labels = self._decide(found, probabilities, decision.threshold)
        return Answers(labels, found, chunk.y, unknown, probabilities=probabilities)

    def _decide(self, scores: NDArray, probabilities: NDArray | None, threshold: float | None) -> NDArray:
        """The labels by probabilities where there are some, else by scores; None where none reaches the threshold."""
        if len(self.classes_) == 2:
            second = scores if probabilities is None else probabilities[:, 1]
            return self.classes_[(second >= (0.5 if threshold is None else threshold)).astype(int)]
        table = scores if probabilities is None else probabilities
        labels = self.classes_[table.argmax(axis=1)]
        if threshold is not None:
            labels = labels.astype(object)
            labels[table.max(axis=1) < threshold] = None
        return labels

    def name(self, column: int) -> str:
        """Return the name of a column of X; the words of the only text column of a file are named without the column.

        Parameters
        ----------
        column : int
            The number of the column.

        Returns
        -------
        str
        """
        return self.reading.name(column).removeprefix(self._only_text)

    def names(self) -> list[str]:
        """Return the names of all columns of X.

        Returns
        -------
        list of str
        """
        return [self.name(column) for column in range(self.learner.n_features_in_)]

    @cached_property
    def _only_text(self) -> str:
        """Return the prefix of feature names if the only feature column is text; else an empty string."""
        kinds: dict[str, str] = getattr(self.reading, "kinds", {})
        features = [column for column, kind in kinds.items() if kind not in _NO_FEATURES]
        return f"{features[0]}:" if len(features) == 1 and kinds[features[0]] == "text" else ""

    # Files

    def to_parts(self, resume: bool = True) -> Parts:
        """Return the learner, the reading and the facts of the training, for a model file.

        Parameters
        ----------
        resume : bool, default=True
            Whether to include all that learning needs to go on; else what predicts is enough.

        Returns
        -------
        parts : Parts
            Facts and arrays.
        """
        reading = self.reading.to_parts()
        members = Parts()
        members.put_parts("learner", self.learner.to_parts(resume))
        members.put_parts("reading", Parts({"format": self.reading.format, "facts": reading.facts}, reading.arrays))
        parts = Parts({"learner": type(self).__name__})
        parts.put_parts("parts", members, "")
        parts.facts["training"] = self.training
        if self.probabilities is not None:
            parts.facts["probabilities"] = self.probabilities.to_facts()
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> FileModel:
        """Return the model that `to_parts` described.

        Parameters
        ----------
        parts : Parts
            Facts and arrays, as `to_parts` returns them.

        Returns
        -------
        model : FileModel
            The model.
        """
        members, training = parts.parts("parts", ""), parts.mapping("training")
        stored = members.parts("reading")
        reading = reading_class(stored.text("format", READINGS)).from_parts(Parts(stored.mapping("facts"), stored.arrays))
        learner = registry.from_parts(members.parts("learner"))
        parts.check_all_taken()
        if not hasattr(learner, "n_features_in_"):
            raise DamagedModel(f"a {type(learner).__name__} does not learn from rows")
        if reading.features not in (None, learner.n_features_in_):
            raise DamagedModel(f"there are {reading.features} columns, and its learner wants {learner.n_features_in_}")
        probabilities = parts.facts.get("probabilities")
        if probabilities is not None:
            if not hasattr(learner, "classes_"):
                raise DamagedModel(f"it has probabilities of classes, and a {type(learner).__name__} has none")
            probabilities = Sigmoids.from_facts(probabilities, len(learner.classes_))
        return cls(reading, learner, training, probabilities)


def file_list(paths: Paths) -> list[str]:
    """Return the files that paths name: folders and patterns are expanded."""
    if hasattr(paths, "shape"):
        allowed = "a path or a list of paths; for rows in memory there are estimators, such as rosenblatt.Perceptron"
        raise InvalidParameterType("paths", paths, allowed, f"paths must be {allowed}; got a {type(paths).__name__}")
    several = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, str | PathLike) else [paths]
    if not all(isinstance(path, str | PathLike) for path in several):
        raise InvalidParameterType("paths", paths, "a path or a list of paths")
    return opening.paths(several)


def match_columns(X: Any, features: int) -> tuple[Any, int]:
    """Return (X with this many columns, how many non-zeros it lost); columns that are missing are zero."""
    rows, width = X.shape
    if width == features:
        return X, 0
    if not sp.issparse(X):
        raise InvalidData(f"the rows have {width} columns, and the model has {features}")
    if width < features:
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(rows, features), copy=False), 0
    narrow = X[:, :features]
    return narrow, int(X.nnz - narrow.nnz)
