"""What the server needs of a learner: to check a row of JSON, to predict it, and to learn from it, one example at a time.

`OnlinePerceptron` takes named features as they are. A scikit-learn style estimator with `partial_fit` gets them hashed into
a fixed number of columns, or takes vectors. What can be wrong with an example whatever the weights are is found by
`read_row` and `check_label`, before the example is written to the log.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt import rules
from rosenblatt.errors import (
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    InvalidParameterType,
    LimitExceeded,
    NumericOverflow,
    RosenblattError,
    UnknownLabel,
    UnsupportedOperation,
    shown,
)
from rosenblatt.estimators.explanation import Explanation
from rosenblatt.estimators.interface import is_regressor
from rosenblatt.gpu.card import card_number
from rosenblatt.modelfile import container, registry
from rosenblatt.modelfile.parts import Parts
from rosenblatt.online import hashing
from rosenblatt.online.names import LARGEST_VALUE, length
from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.online.rows import numeric_row
from rosenblatt.online.weights import room_for
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.text import TextFeatures
from rosenblatt.workflow.model import FileModel

Label = str | int | float | bool
Row = dict[str, float] | list[float] | NDArray

DEFAULT_LEARNER = "OnlinePerceptron"
DEFAULT_BUCKETS = 1 << 18  # of estimators, where nothing else is said
COPIES = 3  # of a model: two that learn and predict in turns, and one that is saved, downloaded or looked at
NAME_BYTES = 80  # that a name takes besides its text: its entries in a table that is half empty, and a pointer
CODE_BYTES = 150  # that a name takes besides its text whose hash is remembered
REMEMBERED_BYTES = 64  # for each bucket, of names whose hash is remembered
LEAST_REMEMBERED = 1 << 20  # bytes
MOST_WHOLE = 1 << 63
ONE_PROCESS = {"n_jobs": None, "device": "auto", "verbose": 0, "callbacks": None}  # parameters that a request must not set


class Specification(NamedTuple):
    """What a model is made of, as the request that creates it says."""

    learner: str = DEFAULT_LEARNER
    parameters: Mapping[str, object] = {}
    hashing: int | None = None
    classes: tuple[Label, ...] | None = None
    text: TextFeatures = TextFeatures()
    file: bytes | None = None  # a model file to start from

    def to_json(self) -> dict[str, object]:
        """Return it as values of JSON, but for the content of a file."""
        return {
            "learner": self.learner,
            "parameters": dict(self.parameters),
            "hashing": self.hashing,
            "classes": None if self.classes is None else list(self.classes),
            "text": self.text._asdict(),
        }


def label_text(label: Label) -> str:
    """Return a label as the key of a JSON object: text as it is, else as JSON writes it.

    Parameters
    ----------
    label : str, int, float or bool
        The label.

    Returns
    -------
    text : str
    """
    return label if isinstance(label, str) else str(label).lower() if isinstance(label, bool) else str(label)


class NewNames(NamedTuple):
    """Names of features that a learner does not know yet."""

    number: int
    bytes: int  # of their texts


NOTHING_NEW = NewNames(0, 0)


class NameBytes:
    """The bytes of the texts of a list of names, to which names are added; each is measured once."""

    def __init__(self) -> None:
        self._measured: tuple[list[Any], int, int] = [], 0, 0  # the list, how many of it, their bytes

    def of(self, names: list[Any]) -> int:
        """Return the bytes of a list, which is the one of the last call with more names, or another one; in any thread."""
        known, measured, size = self._measured
        if names is not known or len(names) < measured:
            measured = size = 0
        count = len(names)
        if count > measured:
            size += sum(map(getsizeof, names[measured:count]))
        self._measured = names, count, size
        return size

    def __deepcopy__(self, memo: object) -> NameBytes:
        return NameBytes()  # of the list of another learner


class ServedLearner(ABC):
    """A learner behind the server.

    Parameters
    ----------
    text : TextFeatures
        How texts become features.
    """

    def __init__(self, text: TextFeatures):
        self.text = text

    @property
    def regression(self) -> bool:
        """Whether it predicts numbers. A prediction is then wrong if it was so far off that the weights had to change."""
        return False

    # Before an example is accepted

    def read_row(self, example: Mapping[str, object], limits: Limits) -> Row:
        """Return the row of an example of JSON, checked.

        Parameters
        ----------
        example : mapping
            With `x`, named features or a list of numbers, or `text`, or both.
        limits : Limits
            The most features that a row may have, and the most characters of a text.

        Returns
        -------
        row : dict or sequence of numbers

        Raises
        ------
        InvalidData
            If the row cannot be used.
        LimitExceeded
            If it is too large.
        """
        x, text = example.get("x"), example.get("text")
        if text is not None:
            if not isinstance(text, str):
                raise InvalidDataType(f'"text" must be a string; got {shown(text)}')
            if len(text) > limits.text_characters:
                raise LimitExceeded("text_characters", len(text), limits.text_characters)
            words = self.text.row(text)
            if x is None:
                x = words
            elif isinstance(x, dict):
                x = {**words, **x}
            else:
                raise InvalidData("an example with text may have named features beside it, not a list of numbers")
        elif x is None:
            raise InvalidData(
                'an example must have "x" or "text"', hint='as {"x": {"free": 1}}, {"x": [0.5, 2]} or {"text": "…"}'
            )
        if not isinstance(x, dict | list):
            raise InvalidDataType(f"x must be an object of named features or a list of numbers; got {shown(x)}")
        if len(x) > limits.features:
            raise LimitExceeded("features", len(x), limits.features)
        if isinstance(x, dict):
            return self.named_row(x if length(id(x)) >= 0.0 else numeric_row(x))
        return self.vector(_numbers(x))

    @abstractmethod
    def named_row(self, x: dict[str, float]) -> Row:
        """Return the row of checked named features, if this learner takes them."""

    @abstractmethod
    def vector(self, x: NDArray) -> Row:
        """Return the row of checked numbers, if this learner takes them."""

    def check_label(self, label: object, limits: Limits) -> Label:
        """Return the label of an example, if it can be one.

        Parameters
        ----------
        label : object
            A value of JSON.
        limits : Limits
            The most characters that it may have.

        Returns
        -------
        label : str, int, float or bool

        Raises
        ------
        InvalidData
            If it cannot be a label of this learner.
        """
        if isinstance(label, str):
            if len(label) > limits.label_characters:
                raise LimitExceeded("label_characters", len(label), limits.label_characters)
            return label
        if isinstance(label, int) and -MOST_WHOLE <= label < MOST_WHOLE:  # true and false too
            return label
        raise InvalidDataType(f"a label must be text, a whole number, true or false; got {shown(label)}")

    # Learning and predicting

    @abstractmethod
    def learn(self, row: Row, label: Label, weight: float) -> None:
        """Learn from one example; an error leaves the learner as it was."""

    @abstractmethod
    def predict(self, row: Row) -> Label | None:
        """Predict the label of a row; None before the first example."""

    @abstractmethod
    def scores(self, row: Row) -> dict[Label, float]:
        """Compute the score of each label for a row."""

    @abstractmethod
    def explain(self, row: Row, label: Label) -> Explanation:
        """Compute what each feature contributes to the score of a label."""

    @abstractmethod
    def weights(self, label: Label) -> tuple[dict[str | int, float], float]:
        """Return the weights of a label by name, without zeros, and its intercept."""

    # What it is

    @property
    @abstractmethod
    def model(self) -> Any:
        """The learner itself, which can be saved."""

    @property
    @abstractmethod
    def classes(self) -> list[Label]:
        """The labels, in the learner's order."""

    @property
    def seen(self) -> int:
        """How many examples it has learned from."""
        return int(getattr(self.model, "n_seen_", 0))

    @property
    def mistakes(self) -> int:
        """How many of them its last weights did not predict."""
        return int(getattr(self.model, "n_mistakes_", 0))

    @property
    def updates(self) -> int:
        """How often its weights changed."""
        return int(getattr(self.model, "n_updates_", 0))

    @property
    @abstractmethod
    def features(self) -> int:
        """How many features it has weights for."""

    @abstractmethod
    def size(self, new: NewNames = NOTHING_NEW, new_labels: int = 0) -> int:
        """Return the bytes of memory that it takes, or would take with more names of features and labels."""

    def new_names(self, rows: Iterable[Row]) -> NewNames:
        """Return the features of rows, each counted once, that it has no weights for and would make some."""
        return NOTHING_NEW

    def memory(self, new: NewNames = NOTHING_NEW, new_labels: int = 0) -> int:
        """Return the bytes that all copies of it take in a server, or would take."""
        return COPIES * self.size(new, new_labels)

    def copy(self) -> ServedLearner:
        """Return a learner that goes on independently from the same state."""
        return copy.deepcopy(self)

    def to_parts(self) -> Parts:
        """Return all that is needed to go on, for a model file; the arrays are copies."""
        parts = self.model.to_parts()
        return Parts(parts.facts, {name: np.array(array) for name, array in parts.arrays.items()})


class NamedLearner(ServedLearner):
    """An `OnlinePerceptron`: features have names, and classes may appear at any time."""

    def __init__(self, model: OnlinePerceptron, text: TextFeatures):
        super().__init__(text)
        self._model = model
        self._name_bytes = NameBytes()

    def named_row(self, x: dict[str, float]) -> Row:
        return x

    def vector(self, x: NDArray) -> Row:
        return x

    def learn(self, row: Row, label: Label, weight: float) -> None:
        self._model.learn_one(row, label, weight)

    def predict(self, row: Row) -> Label | None:
        return self._model.predict_one(row)

    def scores(self, row: Row) -> dict[Label, float]:
        return self._model.score_one(row)

    def explain(self, row: Row, label: Label) -> Explanation:
        return self._model.explain_one(row, label)

    def weights(self, label: Label) -> tuple[dict[str | int, float], float]:
        return self._model.weights_of(label), self._model.intercept_of(label)

    @property
    def model(self) -> Any:
        return self._model

    @property
    def classes(self) -> list[Label]:
        return list(self._model.classes_)  # type: ignore[arg-type]  # labels of JSON, which check_label let through

    @property
    def features(self) -> int:
        return self._model.n_features_ if self._model.n_seen_ else 0

    def size(self, new: NewNames = NOTHING_NEW, new_labels: int = 0) -> int:
        model = self._model
        names = [] if model._weights is None else model._weights.names.known
        text = self._name_bytes.of(names) + new.bytes
        known, slots = len(names) + new.number, 0 if model._weights is None else len(model._weights.w)
        if model.hashing is not None:
            slots, known = model.hashing + 1, min(known, model.hashing)
        elif model.max_features is not None:
            slots, known = min(max(slots, known), model.max_features), min(known, model.max_features)
        elif known > slots:
            slots = 2 * known
        classes = len(model.classes_) + new_labels
        room = room_for(classes if classes > 2 else 1, 1 if model._weights is None else model._weights.room)
        columns = room * (2 if model.keep == "average" else 1)
        return 8 * slots * columns + NAME_BYTES * known + text

    def new_names(self, rows: Iterable[Row]) -> NewNames:
        weights = self._model._weights
        found: set[str | int] = set()
        for row in rows:
            if not isinstance(row, dict):
                known = 0 if weights is None else weights.names.positions
                found.update(range(known, len(row)))
            elif weights is None:
                found.update(row)
            else:
                codes = weights.names.codes(row).tolist()
                found.update(name for name, code in zip(row, codes, strict=True) if code < 0)
        return NewNames(len(found), sum(map(getsizeof, found)))


class RememberedCodes:
    """The codes of names, twice the column plus one for the opposite sign: a function of the name, so that all copies of a
    learner, and all threads, can share them. When they take too much memory, all are forgotten.

    Parameters
    ----------
    most : int
        The bytes that they may take.
    """

    def __init__(self, most: int):
        self.most, self.bytes = most, 0
        self.by_name: dict[str, int] = {}

    def add(self, name: str, code: int) -> None:
        """Remember a code."""
        size = CODE_BYTES + getsizeof(name)
        if self.bytes + size > self.most:
            self.by_name, self.bytes = {}, 0
        if size <= self.most:
            self.by_name[name] = code
            self.bytes += size

    def __deepcopy__(self, memo: object) -> RememberedCodes:
        return self


class EstimatorLearner(ServedLearner):
    """An estimator with `partial_fit`, which gets rows of a fixed number of columns.

    Parameters
    ----------
    model : estimator
        The learner.
    buckets : int or None
        How many columns named features are hashed into; None: rows are lists of numbers.
    classes : tuple, optional
        All classes, which learners that cannot learn new ones must know.
    text : TextFeatures
        How texts become features.
    """

    def __init__(self, model: Any, buckets: int | None, classes: tuple[Label, ...] | None, text: TextFeatures):
        super().__init__(text)
        if card_number(getattr(model, "device", "cpu")) is not None:
            model.set_params(device="cpu")  # a model that learned on a GPU: here rows come one by one
        self._model, self.buckets, self._classes = model, buckets, classes
        self._codes = RememberedCodes(max(LEAST_REMEMBERED, REMEMBERED_BYTES * (buckets or 0)))
        self._grows = getattr(model, "unknown_class", None) == "grow"

    @property
    def regression(self) -> bool:
        return is_regressor(self._model)

    def named_row(self, x: dict[str, float]) -> Row:
        if self.buckets is None:
            return self._by_column(x)
        return x

    def _by_column(self, x: dict[str, float]) -> Row:
        """Return the vector of features that are named as the columns of a model from a file, or numbered."""
        names = getattr(self._model, "feature_names_in_", None)
        width = getattr(self._model, "n_features_in_", None)
        if width is None:
            raise InvalidDataType(
                "this model takes lists of numbers, not named features",
                hint=f'create a model with "hashing": {DEFAULT_BUCKETS} to use names or text',
            )
        places = {str(name): place for place, name in enumerate(range(width) if names is None else names)}
        vector = np.zeros(width)
        for name, value in x.items():
            if name not in places:
                raise InvalidData(f"this model has no feature {shown(name)}; it has {width}")
            vector[places[name]] = value
        return vector

    def vector(self, x: NDArray) -> Row:
        if self.buckets is not None:
            return {str(place): value for place, value in enumerate(x.tolist())}
        width = getattr(self._model, "n_features_in_", len(x))
        if len(x) != width:
            raise InvalidData(f"a row must have {width} numbers, as those before; got {len(x)}")
        if not width:
            raise InvalidData("a row must have at least one number; got none")
        return x

    def check_label(self, label: object, limits: Limits) -> Label:
        if self.regression:
            if isinstance(label, bool) or not isinstance(label, int | float) or not abs(label) <= LARGEST_VALUE:
                raise InvalidDataType(f"y must be a number of at most {LARGEST_VALUE:g}; got {shown(label)}")
            return float(label)
        label = super().check_label(label, limits)
        known = self.classes or list(self._classes or ())
        if known and not self._grows and label not in known:
            raise UnknownLabel(label, known)
        if known and isinstance(label, str) != isinstance(known[0], str):
            raise InvalidDataType(f"labels must be of one type; {shown(label)} is not as {shown(known[0])}")
        return label

    def _matrix(self, row: Row) -> Any:
        """Return a row as a matrix with one row."""
        if not isinstance(row, dict):
            return np.asarray(row, np.float64)[None]
        columns = self._columns(row)
        indices = np.fromiter(sorted(columns), np.int32, len(columns))
        values = np.array([columns[column] for column in indices.tolist()], np.float64)
        return sp.csr_matrix((values, indices, np.array([0, len(indices)], np.int32)), shape=(1, self.buckets))

    def _columns(self, row: dict[str, float]) -> dict[int, float]:
        assert self.buckets is not None
        columns: dict[int, float] = {}
        for name, value in row.items():
            code = self._code(name)
            columns[code >> 1] = columns.get(code >> 1, 0.0) + (-value if code & 1 else value)
        return columns

    def _code(self, name: str) -> int:
        code = self._codes.by_name.get(name)
        if code is None:
            assert self.buckets is not None
            code = hashing.code(name, self.buckets, 32)
            self._codes.add(name, code)
        return code

    def learn(self, row: Row, label: Label, weight: float) -> None:
        options: dict[str, Any] = {}
        if not hasattr(self._model, "classes_") and not self.regression and self._classes is not None:
            options["classes"] = np.array(self._classes)
        if weight != 1.0:
            options["sample_weight"] = np.array([weight])
        self._model.partial_fit(self._matrix(row), np.array([label]), **options)

    @property
    def _fitted(self) -> bool:
        return bool(hasattr(self._model, "n_features_in_"))

    def predict(self, row: Row) -> Label | None:
        if not self._fitted:
            return None
        label = self._model.predict(self._matrix(row))[0]
        return label.item() if isinstance(label, np.generic) else label

    def scores(self, row: Row) -> dict[Label, float]:
        if not self._fitted or self.regression or not hasattr(self._model, "decision_function"):
            return {}
        found = np.ravel(self._model.decision_function(self._matrix(row))).tolist()
        classes = self.classes
        if len(classes) == 1:
            return {classes[0]: 0.0}
        return dict(zip(classes, [-found[0], found[0]] if len(classes) == 2 else found, strict=True))

    def _column(self, label: Label) -> tuple[NDArray, float]:
        """Return the weights and the intercept of a label."""
        if not hasattr(self._model, "coef_"):
            raise UnsupportedOperation(f"{type(self._model).__name__} has no weights of features")
        coef, intercept = np.atleast_2d(self._model.coef_), np.ravel(self._model.intercept_)
        if self.regression:
            return coef[0], float(intercept[0])
        if label not in self.classes:
            raise UnknownLabel(label, self.classes)
        number = self.classes.index(label)
        if len(coef) == 1:
            sign = 1.0 if number else -1.0
            return sign * coef[0], sign * float(intercept[0])
        return coef[number], float(intercept[number])

    def explain(self, row: Row, label: Label) -> Explanation:
        column, intercept = self._column(label)
        products: dict[str | int, float]
        if isinstance(row, dict):
            codes = [(name, value, self._code(name)) for name, value in row.items()]
            products = {name: float(column[code >> 1]) * (-value if code & 1 else value) for name, value, code in codes}
        else:
            products = {place: float(column[place]) * float(value) for place, value in enumerate(row) if value}
        ranked = dict(sorted(products.items(), key=lambda item: -abs(item[1])))
        try:
            score = math.fsum([intercept, *ranked.values()])
        except (ValueError, OverflowError):  # infinite contributions of both signs, or a sum that is
            raise NumericOverflow("the contributions to the score are too large to add up") from None
        return Explanation(label, score, intercept, ranked)

    def weights(self, label: Label) -> tuple[dict[str | int, float], float]:
        column, intercept = self._column(label)
        found: dict[str | int, float] = {}
        places = np.flatnonzero(column).tolist()
        names: dict[int, tuple[str, int]] = {
            code >> 1: (name, code & 1) for name, code in self._codes.by_name.copy().items()
        }
        for place in places:
            name, minus = names.get(place, (place if self.buckets is None else f"bucket {place}", 0))
            found[name] = -float(column[place]) if minus else float(column[place])
        return found, intercept

    @property
    def model(self) -> Any:
        return self._model

    @property
    def classes(self) -> list[Label]:
        return self._model.classes_.tolist() if self._fitted and hasattr(self._model, "classes_") else []

    @property
    def features(self) -> int:
        return int(getattr(self._model, "n_features_in_", 0))

    def memory(self, new: NewNames = NOTHING_NEW, new_labels: int = 0) -> int:
        return super().memory(new, new_labels) + self._codes.bytes

    def size(self, new: NewNames = NOTHING_NEW, new_labels: int = 0) -> int:
        classes = max(len(self.classes) + new_labels, len(self._classes or ()))
        columns = classes if classes > 2 else 1
        now = _array_bytes(self._model)
        if not self._fitted:
            return 32 * columns * (self.buckets or 0)  # weights, what their average needs, and a state as large
        return now * columns // max(len(self.classes) if len(self.classes) > 2 else 1, 1) if new_labels else now


def make_learner(specification: Specification, limits: Limits) -> ServedLearner:
    """Return the learner that a specification describes.

    Parameters
    ----------
    specification : Specification
        The class of the learner, its parameters, and what it starts from.
    limits : Limits
        The most memory that a model may take.

    Returns
    -------
    learner : ServedLearner

    Raises
    ------
    InvalidParameter
        If there is no such learner, or a parameter is not allowed.
    UnreadableModel
        If the file that it starts from is not a model.
    LimitExceeded
        If it would take too much memory.
    """
    if specification.file is not None:
        learner = _from_file(specification)
    elif specification.learner == DEFAULT_LEARNER:
        parameters = {name: _parameter(name, value) for name, value in specification.parameters.items()}
        if specification.hashing is not None:
            parameters["hashing"] = specification.hashing
        model = OnlinePerceptron(**parameters)
        learner = NamedLearner(model, specification.text)
        if specification.classes is not None:
            raise InvalidParameter("classes", list(specification.classes), "left out: OnlinePerceptron learns new classes")
    else:
        learner = _estimator(specification)
    if learner.memory() > limits.model_bytes:
        raise LimitExceeded("model_bytes", learner.memory(), limits.model_bytes)
    if specification.file is None:
        _try_out(learner.copy(), specification)
    return learner


def _try_out(learner: ServedLearner, specification: Specification) -> None:
    """Learn opposite labels of one row, so that parameters which only a step uses are refused before there is a log."""
    labels: tuple[Label, ...] = (1.0, -1.0) if is_regressor(learner.model) else specification.classes or ("a", "b")
    row: Row = {"a": 1.0} if not isinstance(learner, EstimatorLearner) or learner.buckets else np.ones(1)
    try:
        for label in (labels[0], labels[-1]) * 2:
            learner.predict(row)
            learner.learn(row, label, 1.0)
    except RosenblattError:
        raise
    except Exception as error:
        allowed = f"values that {specification.learner} can compute with ({type(error).__name__}: {error})"
        raise InvalidParameter("parameters", dict(specification.parameters), allowed) from error


def _estimator(specification: Specification) -> EstimatorLearner:
    name = specification.learner
    if name not in registry.PUBLIC or name not in registry.LEARNERS:
        public = [known for known in registry.LEARNERS if known in registry.PUBLIC]
        allowed = [known for known in public if hasattr(registry.learner_class(known)(), "partial_fit")]
        raise InvalidParameter("learner", name, f"one of {', '.join([DEFAULT_LEARNER, *allowed])}")
    kind = registry.learner_class(name)
    parameters = {key: _parameter(key, value) for key, value in specification.parameters.items()}
    for key in ONE_PROCESS:
        if parameters.get(key, ONE_PROCESS[key]) != ONE_PROCESS[key]:
            raise InvalidParameter(key, parameters[key], "left out: the server decides it")
    model = kind(**parameters)
    known = model.get_params(deep=False)
    if "random_state" in known and known["random_state"] is None:
        model.set_params(random_state=0)  # or replaying the log would give another model
    if "unknown_class" in known and specification.classes is None:
        model.set_params(unknown_class="grow")
    if not hasattr(model, "partial_fit"):
        raise InvalidParameter(
            "learner", name, "a learner that learns one example at a time", hint="it needs all rows at once"
        )
    if specification.classes is None and not is_regressor(model) and "unknown_class" not in known:
        raise InvalidParameter("classes", None, f"a list of all classes: {name} cannot learn new ones")
    return EstimatorLearner(model, specification.hashing, specification.classes, specification.text)


def _from_file(specification: Specification) -> ServedLearner:
    assert specification.file is not None
    facts, arrays = container.read_bytes(specification.file, "the model file")
    with container.decoding("the model file"):
        model = registry.from_parts(Parts(facts, arrays))
    return serve_model(model, specification)


def serve_model(model: Any, specification: Specification) -> ServedLearner:
    """Return the served learner around a model that was loaded.

    Parameters
    ----------
    model : object
        What `rosenblatt.load` returns.
    specification : Specification
        Whether its features are hashed, and how texts become features.

    Returns
    -------
    learner : ServedLearner

    Raises
    ------
    UnsupportedOperation
        If a model of this kind does not learn one example at a time.
    """
    if isinstance(model, OnlinePerceptron):
        return NamedLearner(model, specification.text)
    if isinstance(model, FileModel):
        from rosenblatt.serve.file_models import serve_file_model  # which is built on this module

        return serve_file_model(model)
    if hasattr(model, "partial_fit") and hasattr(model, "n_features_in_"):
        model._resumable()
        return EstimatorLearner(model, specification.hashing, specification.classes, specification.text)
    raise UnsupportedOperation(
        f"a {type(model).__name__} cannot be served; an OnlinePerceptron, estimators with partial_fit, and models "
        "that were trained from files can"
    )


def _parameter(name: str, value: object) -> Any:
    """Return the value of a parameter that JSON describes: a rule is {"PA1": {"C": 0.1}}."""
    if name == "rule" and isinstance(value, dict):
        if len(value) != 1 or next(iter(value)) not in rules.KINDS or not isinstance(next(iter(value.values())), dict):
            raise InvalidParameter(
                name, value, f'"perceptron" or one of {", ".join(rules.KINDS)}, as {{"PA1": {{"C": 0.1}}}}'
            )
        ((kind, fields),) = value.items()
        for field, number in fields.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= LARGEST_VALUE:
                raise InvalidParameterType(name, value, f"a rule whose {field} is a number of at most {LARGEST_VALUE:g}")
        try:
            return rules.KINDS[kind](**fields)
        except TypeError:
            names = ", ".join(rules.KINDS[kind]._fields)  # type: ignore[attr-defined]  # a NamedTuple
            raise InvalidParameterType(name, value, f"{kind} with {names}") from None
    if isinstance(value, list | dict) and len(str(value)) > 10_000:
        raise InvalidParameter(name, value, "shorter")
    return value


def _numbers(x: list[object]) -> NDArray:
    """Return a list of JSON as an array, if all of it are numbers that are not too large."""
    for place, value in enumerate(x):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidDataType(f"a list of numbers has {shown(value)} at position {place}")
        if not abs(value) <= LARGEST_VALUE:
            raise InvalidData(f"a number may be at most {LARGEST_VALUE:g}; {shown(value)} is at position {place}")
    return np.array(x, np.float64)


def _array_bytes(value: object, depth: int = 4) -> int:
    """Return the bytes of all arrays in an object, its attributes and their parts."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if sp.issparse(value):
        return value.data.nbytes + value.indices.nbytes + value.indptr.nbytes  # type: ignore[attr-defined]  # CSR
    if depth == 0:
        return 0
    if isinstance(value, list | tuple):
        return sum(_array_bytes(part, depth - 1) for part in value)
    if isinstance(value, dict):
        return sum(_array_bytes(part, depth - 1) for part in value.values())
    return sum(_array_bytes(part, depth - 1) for part in getattr(value, "__dict__", {}).values())
