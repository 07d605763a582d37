"""A model that was trained from files, served: a row of JSON becomes what the model's reading makes of that row in a file.

A row of a table is an object of values by column, as in a file of JSON lines; text alone is enough where the only column to
learn from is text. A row of LIBSVM text is an object from index to value. A row of Vowpal Wabbit text is an object from the
name of a feature, or namespace^name, to its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from rosenblatt.data.reading import Chunk, Reading
from rosenblatt.data.svmlight import Svmlight
from rosenblatt.data.svmlight.parser import SvmlightParser
from rosenblatt.data.vw import Vw
from rosenblatt.errors import (
    FormatError,
    InvalidData,
    InvalidDataType,
    LimitExceeded,
    UnsupportedOperation,
    shown,
)
from rosenblatt.estimators.explanation import Explanation
from rosenblatt.modelfile.parts import Parts
from rosenblatt.serve.learners import NOTHING_NEW, EstimatorLearner, Label, NewNames
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.text import TextFeatures
from rosenblatt.workflow.explanation import explain_row, is_explainable
from rosenblatt.workflow.labels import label_text
from rosenblatt.workflow.model import FileModel, match_columns
from rosenblatt.workflow.training import can_widen

_GROWTH = 1.5  # of the columns, when an index comes that is too large for them
_APART = set(" \t\r\n\v\f|:")  # what ends the name of a feature in Vowpal Wabbit text


def rows_of(reading: Reading, examples: list[Mapping[str, object]]) -> Chunk:
    """Return the rows of examples of JSON, without labels, as the reading makes them of a file.

    Parameters
    ----------
    reading : Reading
        The reading of the model.
    examples : list of mapping
        Each with `x`, an object, or with `text`.

    Returns
    -------
    chunk : Chunk
        A row for each example.

    Raises
    ------
    InvalidData
        If a row cannot be used, with `row`.
    """
    objects: list[dict[str, object]] = []
    for row, example in enumerate(examples):
        try:
            objects.append(_object_of(reading, example))
        except InvalidData as error:
            error.row = row
            raise
    if isinstance(reading, Svmlight):
        parser = SvmlightParser(labelled=False, bits=reading.hashing)
        return reading.concatenate([parser.parse_line(_svmlight_line(x)) for x in objects])
    if isinstance(reading, Vw):
        return reading.concatenate([reading.parser(False).parse_line(_vw_line(x)) for x in objects])
    try:
        return reading.chunk(reading.batch_of_objects(objects))  # type: ignore[attr-defined]  # the third reading is Table
    except UnicodeEncodeError:
        raise InvalidData("text holds half of a surrogate pair, which is not a character") from None


class EncodedRow:
    """A row as the reading of a model has made it; its length is the number of its non-zeros.

    Parameters
    ----------
    matrix : CSR matrix of shape (1, columns)
        The row.
    """

    def __init__(self, matrix: csr_matrix):
        self.matrix = matrix

    def __len__(self) -> int:
        return int(self.matrix.nnz)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])


def serve_file_model(model: FileModel) -> FileLearner:
    """Return a model from files as a learner that the server can use, after a trial with a copy of it.

    Parameters
    ----------
    model : FileModel
        The model; it stays as it is.

    Returns
    -------
    learner : FileLearner

    Raises
    ------
    UnsupportedOperation
        If its learner cannot learn one example at a time.
    """
    learner = FileLearner(model)
    nothing = EncodedRow(csr_matrix((1, learner.features), dtype=np.float64))
    learner.copy().learn(nothing, (learner.classes or [0.0])[0], 1.0)
    return learner


class FileLearner(EstimatorLearner):
    """A `FileModel`, which goes on learning as `rosenblatt train --from` does.

    Parameters
    ----------
    model : FileModel
        The model; it stays as it is.

    Raises
    ------
    UnsupportedOperation
        If its learner cannot learn one example at a time.
    """

    def __init__(self, model: FileModel):
        learner = model.learner
        if not hasattr(learner, "partial_fit"):
            raise UnsupportedOperation(
                f"{type(learner).__name__} must see all rows at once and cannot learn one example at a time",
                hint="train a model with another learner",
            )
        learner._resumable()
        learner = deepcopy(learner)
        if "unknown_class" in learner.get_params():
            learner.set_params(unknown_class="grow")
        super().__init__(learner, None, None, TextFeatures())
        self.file_model = FileModel(model.reading, learner, model.training, model.probabilities)
        self._takes_weights = "sample_weight" in signature(learner.partial_fit).parameters

    # Before an example is accepted

    def read_row(self, example: Mapping[str, object], limits: Limits) -> Any:
        x, text = example.get("x"), example.get("text")
        if isinstance(text, str) and len(text) > limits.text_characters:
            raise LimitExceeded("text_characters", len(text), limits.text_characters)
        if isinstance(x, dict) and len(x) > limits.features:
            raise LimitExceeded("features", len(x), limits.features)
        try:
            row = EncodedRow(rows_of(self.file_model.reading, [example]).X)
        except FormatError as error:  # which advises options of reading files, and there is no file
            where = "" if error.column is None else f"column {error.column!r}: "
            raise InvalidData(where + error.problem, column=error.column) from error
        except InvalidData as error:
            error.row = None  # this is one example; which of the request it is, the caller knows
            raise
        if row.width > self.features and can_widen(self._model):
            needed = self.memory(NewNames(row.width - self.features, 0))
            if needed > limits.model_bytes:
                raise LimitExceeded("model_bytes", needed, limits.model_bytes)
        return row

    def check_label(self, label: object, limits: Limits) -> Label:
        if self.regression:
            return super().check_label(label, limits)
        if isinstance(label, bool) and isinstance(self.classes[0], str):
            label = str(label).lower()  # as JSON has it in a file
        if isinstance(label, float) and label in self.classes:
            return label
        return super().check_label(label, limits)

    # Learning and predicting

    def learn(self, row: Any, label: Label, weight: float) -> None:
        if weight == 0.0:
            return
        extra = {}
        if weight != 1.0:
            if not self._takes_weights:
                raise UnsupportedOperation(f"{type(self._model).__name__} takes no weights of examples")
            extra["sample_weight"] = np.array([weight])
        if row.width > self.features and can_widen(self._model):
            self._model.widen(max(row.width, int(_GROWTH * self.features)))
            self._note_width(row.width)
        self._model.partial_fit(self._matrix(row), np.array([label]), **extra)

    def _matrix(self, row: Any) -> Any:
        return match_columns(row.matrix, self.features)[0]

    def explain(self, row: Any, label: Label) -> Explanation:
        _, score, intercept, features, _, _ = explain_row(self.file_model, Chunk(row.matrix), 0, label_text(label))
        return Explanation(label, score, intercept, dict(features))

    def weights(self, label: Label) -> tuple[dict[str | int, float], float]:
        if not is_explainable(self._model):
            raise UnsupportedOperation(f"{type(self._model).__name__} has no weights of features")
        column, intercept = self._column(label)
        places = np.flatnonzero(column).tolist()
        return {self.file_model.name(place): float(column[place]) for place in places}, intercept

    # What it is

    @property
    def model(self) -> FileModel:
        return self.file_model

    @property
    def seen(self) -> int:
        return int(getattr(self._model, "n_seen_", 0))

    @property
    def mistakes(self) -> int:
        return int(getattr(self._model, "n_mistakes_", 0))

    @property
    def updates(self) -> int:
        return int(getattr(self._model, "n_updates_", 0))

    def size(self, new: NewNames = NOTHING_NEW, new_labels: int = 0) -> int:
        size, features = super().size(new, new_labels), max(self.features, 1)
        return size if not new.number else size * max(features + new.number, int(_GROWTH * features)) // features

    def new_names(self, rows: Any) -> NewNames:
        """Return the columns that these rows have more than the model."""
        if not can_widen(self._model):
            return NOTHING_NEW
        return NewNames(max((max(row.width - self.features, 0) for row in rows), default=0), 0)

    def copy(self) -> FileLearner:
        return FileLearner(self.file_model)

    def to_parts(self) -> Parts:
        parts = self.file_model.to_parts()
        return Parts(parts.facts, {name: np.array(array) for name, array in parts.arrays.items()})

    def _note_width(self, width: int) -> None:
        """Keep the number of features in the facts of the training, as training from files does."""
        training = self.file_model.training
        before = training.get("width", width)
        without_zero = before - training.get("features", before)  # 1 where LIBSVM text has no index 0
        training |= {"width": max(width, before), "features": max(width, before) - without_zero}


def _object_of(reading: Reading, example: Mapping[str, object]) -> dict[str, object]:
    """Return the values of an example by name, of which its row is made."""
    x, text = example.get("x"), example.get("text")
    if text is not None:
        if not isinstance(text, str):
            raise InvalidDataType(f'"text" must be a string; got {shown(text)}')
        schema = getattr(reading, "schema", None)
        if schema is None or schema.only_text is None:
            raise InvalidData("this model does not learn from text alone", hint='give {"x": {…}} with its columns')
        if x is not None:
            raise InvalidData("this model learns from text alone; an example has either text or x")
        return {schema.only_text: text}
    if x is None:
        raise InvalidData('an example must have "x" or "text"')
    if not isinstance(x, dict):
        raise InvalidDataType(f"x must be an object of values by name; got {shown(x)}")
    return x


def _number_text(name: str, value: object) -> str:
    if not isinstance(value, int | float):
        raise InvalidDataType(f"the value of a feature must be a number; {shown(name)} is {shown(value)}")
    return repr(value + 0)  # a truth value is 1 or 0


def _svmlight_line(x: Mapping[str, object]) -> bytes:
    """Return a row as a line of LIBSVM text; the label is not looked at."""
    pairs = []
    for name, value in x.items():
        if not (name.isascii() and name.isdigit()):
            raise InvalidData(f"this model has numbers from 0 on as names of features; got {shown(name)}")
        pairs.append(f"{name}:{_number_text(name, value)}")
    return " ".join(["0", *pairs]).encode()


def _vw_line(x: Mapping[str, object]) -> bytes:
    """Return a row as a line of Vowpal Wabbit text; a feature may be called namespace^name, and have text as its value."""
    spaces: dict[str, list[str]] = {}
    for whole, value in x.items():
        space, _, name = whole.rpartition("^")
        texts = [whole, value] if isinstance(value, str) else [whole]
        if not name or not all(texts) or any(not _APART.isdisjoint(text) for text in texts):
            raise InvalidData(
                f"a feature must not be empty or hold blanks, | and :; got {shown(whole)} with {shown(value)}"
            )
        spaces.setdefault(space, []).append(f"{name}:{value if isinstance(value, str) else _number_text(whole, value)}")
    try:
        return "".join(f"|{space} {' '.join(features)} " for space, features in spaces.items()).encode() or b"|"
    except UnicodeEncodeError:
        raise InvalidData("the name of a feature holds half of a surrogate pair, which is not a character") from None
