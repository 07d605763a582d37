"""A model from files is a learner and the reading that makes its rows; it predicts for files as it learned from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor

from rosenblatt.data import opening
from rosenblatt.data.formats import READINGS, reading_class
from rosenblatt.data.reading import Chunk, Reading
from rosenblatt.errors import DamagedModel, InvalidData, InvalidParameterType
from rosenblatt.modelfile import registry
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import SaveLoadMixin

Paths = str | PathLike | Sequence[str | PathLike]  # files, folders or patterns
_NO_FEATURES = ("target", "weight", "ignored")  # what a column can be beside something to learn from


class Answers(NamedTuple):
    """Predictions for some rows: labels or numbers, the scores of `decision_function`, and the true labels."""

    labels: NDArray
    scores: NDArray | None
    truth: NDArray | None
    unknown: int  # non-zeros in columns that no row had in training; they are ignored
    skipped: int = 0  # rows of the files left out so far


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
    seconds : float, optional
        How long the training took; it is not saved, so that the same training gives the same file.
    """

    def __init__(
        self,
        reading: Reading,
        learner: Any,
        training: Mapping[str, object] | None = None,
        seconds: float | None = None,
    ):
        self.reading = reading
        self.learner = learner
        self.training: dict[str, Any] = dict(training or {})
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"FileModel({self.reading!r}, {self.learner!r})"

    @property
    def classes_(self) -> NDArray:
        """The classes, as their labels."""
        return self.learner.classes_

    def predict(self, paths: Paths) -> NDArray:
        """Predict the label, or the number, of each row of files.

        Parameters
        ----------
        paths : path or list of paths
            Files, folders or patterns; "-" is standard input.

        Returns
        -------
        array of shape (rows,)
            In the order of the rows.
        """
        found = [answers.labels for answers in self.answers(paths, labelled=False, scores=False)]
        if not found:
            return np.empty(0, np.float64 if is_regressor(self.learner) else self.classes_.dtype)
        return np.concatenate(found)

    def answers(
        self, paths: Paths, labelled: bool = True, scores: bool = True, on_error: str = "error"
    ) -> Iterator[Answers]:
        """Yield the predictions batch by batch, in the order of the rows.

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

        Yields
        ------
        Answers
            The predictions for some rows.
        """
        batches = self.reading.batches(file_list(paths), labelled=labelled, on_error=on_error)
        try:
            for batch in batches:
                yield self.answer(self.reading.chunk(batch), scores)._replace(skipped=batches.skipped)
        finally:
            batches.close()

    def answer(self, chunk: Chunk, scores: bool = True) -> Answers:
        """Return the predictions for some rows.

        Parameters
        ----------
        chunk : Chunk
            The rows.
        scores : bool, optional
            Compute the scores of `decision_function` too.

        Returns
        -------
        Answers
        """
        X, unknown = match_columns(chunk.X, self.learner.n_features_in_)
        if is_regressor(self.learner):
            return Answers(self.learner.predict(X), None, chunk.y, unknown)
        decision = self.learner.decision_function(X) if scores and hasattr(self.learner, "decision_function") else None
        return Answers(self.learner.predict(X), decision, chunk.y, unknown)

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
        """Return what goes before each name where the only column to learn from is text; else nothing."""
        kinds: dict[str, str] = getattr(self.reading, "kinds", {})
        features = [column for column, kind in kinds.items() if kind not in _NO_FEATURES]
        return f"{features[0]}:" if len(features) == 1 and kinds[features[0]] == "text" else ""

    # Files

    def to_parts(self, resume: bool = True) -> Parts:
        """Return the learner, the reading and the facts of the training, for a model file."""
        reading = self.reading.to_parts()
        members = Parts()
        members.put_parts("learner", self.learner.to_parts(resume))
        members.put_parts("reading", Parts({"format": self.reading.format, "facts": reading.facts}, reading.arrays))
        parts = Parts({"learner": type(self).__name__})
        parts.put_parts("parts", members, "")
        parts.facts["training"] = self.training
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> FileModel:
        """Return the model that `to_parts` described."""
        members, training = parts.parts("parts", ""), parts.mapping("training")
        stored = members.parts("reading")
        reading = reading_class(stored.text("format", READINGS)).from_parts(Parts(stored.mapping("facts"), stored.arrays))
        learner = registry.from_parts(members.parts("learner"))
        parts.check_all_taken()
        if not hasattr(learner, "n_features_in_"):
            raise DamagedModel(f"a {type(learner).__name__} does not learn from rows")
        if reading.features not in (None, learner.n_features_in_):
            raise DamagedModel(f"there are {reading.features} columns, and its learner wants {learner.n_features_in_}")
        return cls(reading, learner, training)


def file_list(paths: Paths) -> list[str]:
    """Return the files that paths name: folders and patterns are expanded."""
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
