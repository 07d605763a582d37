"""A model from files is a learner and the reading that makes its rows; it answers for files as it learned from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor

from rosenblatt.data.formats import READINGS
from rosenblatt.data.reading import Chunk, Reading
from rosenblatt.modelfile import container, registry
from rosenblatt.modelfile.saving import WRONG

_PARTS = ("learner", "reading")
_NO_FEATURES = ("target", "weight", "ignored")  # what a column can be beside something to learn from


class Answers(NamedTuple):
    """What a model says about some rows: labels or numbers, the scores of `decision_function`, and what was right."""

    labels: NDArray
    scores: NDArray | None
    truth: NDArray | None
    unknown: int  # non-zeros in columns that no row had while it learned; they count for nothing
    skipped: int = 0  # rows of the files left out so far


class FileModel:
    """A learner with the reading that makes rows for it, and the facts of its training.

    `train` makes it; `save` and `load` keep it in one file.
    """

    def __init__(self, reading: Reading, learner: Any, training: Mapping[str, Any] | None = None):
        self.reading = reading
        self.learner = learner
        self.training: dict[str, Any] = dict(training or {})

    def __repr__(self) -> str:
        return f"FileModel({self.reading!r}, {self.learner!r})"

    @property
    def classes_(self) -> NDArray:
        """The labels."""
        return self.learner.classes_

    def predict(self, paths: str | PathLike | Sequence[str | PathLike]) -> NDArray:
        """What each row of the files is."""
        found = [answers.labels for answers in self.answers(paths, labelled=False, scores=False)]
        return np.concatenate(found) if found else np.empty(0, self.classes_.dtype)

    def answers(
        self,
        paths: str | PathLike | Sequence[str | PathLike],
        labelled: bool = True,
        scores: bool = True,
        on_error: str = "error",
    ) -> Iterator[Answers]:
        """Answers batch by batch, in the order of the rows; with `labelled`, beside what is right."""
        batches = self.reading.batches(listed(paths), labelled=labelled, on_error=on_error)
        try:
            for batch in batches:
                yield self.answer(self.reading.chunk(batch), scores)._replace(skipped=batches.skipped)
        finally:
            batches.close()

    def answer(self, chunk: Chunk, scores: bool = True) -> Answers:
        """The answers for some rows."""
        X, unknown = fitted_to(chunk.X, self.learner.n_features_in_)
        if is_regressor(self.learner):
            return Answers(self.learner.predict(X), None, chunk.y, unknown)
        decision = self.learner.decision_function(X) if scores and hasattr(self.learner, "decision_function") else None
        return Answers(self.learner.predict(X), decision, chunk.y, unknown)

    def name(self, column: int) -> str:
        """What to call a column of X; words of the only column of a file need not say which it is."""
        name = self.reading.name(column)
        kinds: dict[str, str] = getattr(self.reading, "kinds", {})
        features = [column for column, kind in kinds.items() if kind not in _NO_FEATURES]
        return name.removeprefix(f"{features[0]}:") if len(features) == 1 and kinds[features[0]] == "text" else name

    def names(self) -> list[str]:
        """What each column is called."""
        return [self.name(column) for column in range(self.learner.n_features_in_)]

    # Files

    def save(self, path: str | PathLike, resume: bool = True) -> None:
        """Write the model into one file, which replaces an old one only when it is complete."""
        learner, learner_arrays = self.learner._written(resume)
        reading, reading_arrays = self.reading.written()
        facts = {
            "learner": type(self).__name__,
            "parts": {"learner": learner, "reading": {"format": self.reading.format, "facts": reading}},
            "training": self.training,
        }
        arrays = {f"learner/{name}": array for name, array in learner_arrays.items()}
        container.write(path, facts, arrays | {f"reading/{name}": array for name, array in reading_arrays.items()})

    @classmethod
    def load(cls, path: str | PathLike) -> FileModel:
        """The model that was saved in a file. Nothing in the file is run as code."""
        facts, arrays = container.read(path)
        if facts.get("learner") != cls.__name__:
            raise container.UnreadableModel(f"{path} holds a {facts.get('learner')}, not a model made from files")
        return cls._restored(facts, arrays, str(path))

    @classmethod
    def _restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray], source: str) -> FileModel:
        try:
            parts, training = facts["parts"], facts["training"]
            own: dict[str, dict[str, NDArray]] = {part: {} for part in _PARTS}
            for name, array in arrays.items():
                part, _, rest = name.partition("/")
                own[part][rest] = array
            module, name = READINGS[parts["reading"]["format"]]
            reading = getattr(import_module(module), name).restored(parts["reading"]["facts"], own["reading"])
            learner = registry.restored(parts["learner"], own["learner"], source)
            if not isinstance(training, dict):
                raise ValueError("the facts of its training are missing")
            if not hasattr(learner, "n_features_in_"):
                raise ValueError(f"a {type(learner).__name__} does not learn from rows")
            if reading.features not in (None, learner.n_features_in_):
                raise ValueError(f"there are {reading.features} columns, and its learner wants {learner.n_features_in_}")
        except container.UnreadableModel:
            raise
        except WRONG as error:
            raise container.UnreadableModel(f"{source} is damaged: {type(error).__name__}: {error}") from None
        return cls(reading, learner, training)


def listed(paths: str | PathLike | Sequence[str | PathLike]) -> list[str]:
    """The files that these paths name: globs and folders are expanded."""
    from rosenblatt.data import opening

    return opening.paths([paths] if isinstance(paths, str | PathLike) else paths)


def fitted_to(X: Any, features: int) -> tuple[Any, int]:
    """(X with this many columns, how many non-zeros it lost); columns that are missing are zero."""
    rows, width = X.shape
    if width == features:
        return X, 0
    if not sp.issparse(X):
        raise ValueError(f"the rows have {width} columns, the model {features}")
    if width < features:
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(rows, features), copy=False), 0
    narrow = X[:, :features]
    return narrow, int(X.nnz - narrow.nnz)
