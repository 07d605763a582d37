"""Every model can be saved in one file and loaded from it again: `to_parts` takes it apart, `from_parts` puts it together.

The file of a learner holds its parameters, what it has learned, and what it needs to go on as if it had never stopped.
Nothing in a file is run.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from inspect import signature
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from rosenblatt import rules
from rosenblatt.engine.train import Epoch
from rosenblatt.errors import DamagedModel, UnreadableModel, UnsupportedOperation
from rosenblatt.modelfile import container
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import (
    MOST,
    check_list,
    decode_labels,
    decode_number,
    decode_record,
    decode_row,
    encode_labels,
    encode_record,
    encode_value,
)

COUNTS = ("n_iter_", "n_mistakes_", "n_updates_", "n_seen_")


class SaveLoadMixin:
    """Methods `save` and `load` of what has `to_parts` and `from_parts`."""

    @abstractmethod
    def to_parts(self, resume: bool = True) -> Parts:
        """Return the model as facts and arrays.

        Parameters
        ----------
        resume : bool, default=True
            Whether to include all that learning needs to go on; else what predicts is enough.

        Returns
        -------
        parts : Parts
            Facts and arrays.
        """

    @classmethod
    @abstractmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Return the model that facts and arrays describe.

        Parameters
        ----------
        parts : Parts
            Facts and arrays, as `to_parts` returns them.

        Returns
        -------
        model
            The model.

        Raises
        ------
        DamagedModel
            If they do not describe a model.
        """

    def save(self, path: str | PathLike, resume: bool = True) -> None:
        """Save the model in one file, which replaces an old one only when it is complete.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        resume : bool, default=True
            Save all that learning needs to go on exactly where it stopped. With False the file need only predict, which
            makes those of linear learners smaller.

        Raises
        ------
        OutputError
            If the file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> from rosenblatt import Perceptron
        >>> model = Perceptron().fit([[2.0, 1.0], [-1.0, -2.0]], ["spam", "ham"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "spam.model")
        ...     model.save(path)
        ...     Perceptron.load(path).predict([[1.0, 1.0]]).tolist()
        ['spam']
        """
        parts = self.to_parts(resume)
        container.write(path, parts.facts, parts.arrays)

    @classmethod
    def load(cls, path: str | PathLike) -> Self:
        """Load a model that was saved. Nothing in the file is run as code.

        Parameters
        ----------
        path : str or path-like
            The file that `save` wrote.

        Returns
        -------
        model
            As it was when it was saved.

        Raises
        ------
        UnreadableModel
            If the file holds no such model, or is damaged.

        Examples
        --------
        >>> import os, tempfile
        >>> from rosenblatt import Perceptron
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "spam.model")
        ...     Perceptron().fit([[2.0, 1.0], [-1.0, -2.0]], ["spam", "ham"]).save(path)
        ...     model = Perceptron.load(path)
        >>> model.classes_.tolist(), model.n_updates_
        (['ham', 'spam'], 1)
        """
        with container.decoding(path):
            parts = Parts(*container.read(path))
            if parts.facts.get("learner") != cls.__name__:
                raise UnreadableModel(f"it holds a {parts.facts.get('learner')}, not a {cls.__name__}")
            return cls.from_parts(parts)


class LearnerSaveLoadMixin(SaveLoadMixin):
    """The file of a learner with parameters; what it has learned it says in two hooks."""

    _always_resumes: ClassVar[bool] = False  # whether a file that predicts has all that learning needs

    @abstractmethod
    def _learned_to_parts(self, resume: bool) -> Parts:
        """Return all that has been learned; without `resume`, what predicts is enough."""

    @abstractmethod
    def _learned_from_parts(self, parts: Parts, resume: bool) -> None:
        """Set what has been learned to what these parts say."""

    @abstractmethod
    def _check_learned(self) -> None:
        """Raise an error if nothing has been learned yet."""

    def to_parts(self, resume: bool = True) -> Parts:
        self._check_learned()
        resume = resume or self._always_resumes
        if resume:
            self._resumable()
        learner: Any = self
        parameters = {name: encode_parameter(name, value) for name, value in learner.get_params(deep=False).items()}
        learned = self._learned_to_parts(resume)
        facts = {"learner": type(self).__name__, "parameters": parameters, "resume": resume}
        return Parts({**facts, "arrays": sorted(learned.arrays), **learned.facts}, learned.arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        expected = parts.values("arrays", str)
        if sorted(parts.arrays) != expected:
            raise DamagedModel(f"it should have the arrays {str(expected)[:200]}; it has {str(sorted(parts.arrays))[:200]}")
        learner = decode_learner(cls, parts)
        learner._learned_from_parts(parts, parts.flag("resume"))
        return learner

    def _resumable(self) -> Any:
        """Return the model, if it can go on learning; one loaded from a file that holds only what predicts cannot."""
        model = getattr(self, "_model", None)
        if getattr(model, "only_predicts", False):
            raise UnsupportedOperation(
                "this model was saved for prediction only and cannot be trained further",
                hint="it must be saved with all that training needs",
                settings={"resume": True},
            )
        return model


class EstimatorSaveLoadMixin(LearnerSaveLoadMixin):
    """The file of an estimator whose `_model` has been learned in epochs or from a stream."""

    _has_classes: ClassVar[bool] = True  # whether it predicts one of some classes

    def _model_to_parts(self, resume: bool) -> Parts:
        """Return the model as parts; with `resume`, all that learning needs to go on."""
        learner: Any = self
        return learner._model.to_parts(resume)

    @abstractmethod
    def _model_from_parts(self, parts: Parts) -> Any:
        """Return the model that these parts describe; its arrays are taken out of them."""

    def _learned_to_parts(self, resume: bool) -> Parts:
        learner: Any = self
        parts = Parts({
            "features": int(learner.n_features_in_),
            "classes": encode_labels(learner.classes_) if hasattr(self, "classes_") else None,
            **self._history_to_facts(),
        })  # fmt: skip
        parts.put_parts("model", self._model_to_parts(resume), prefix="")
        put_feature_names(parts, learner)
        if hasattr(self, "class_count_"):
            parts.put("class_count", learner.class_count_)
        return parts

    def _learned_from_parts(self, parts: Parts, resume: bool) -> None:
        learner: Any = self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a parameter costs was said when it was set
            learner._plan()
        learner.n_features_in_ = parts.whole("features", 1, 1 << 40)
        set_feature_names(parts, learner)
        if (parts.facts["classes"] is not None) != self._has_classes:
            raise DamagedModel(f"classes must be {'labels' if self._has_classes else 'null'} of a {type(self).__name__}")
        if self._has_classes:
            learner.classes_ = decode_labels(parts.facts["classes"])
            learner.class_count_ = parts.counts("class_count", len(learner.classes_))
        model = learner._model = self._model_from_parts(parts.parts("model", prefix=""))
        parts.check_all_taken()
        if model.only_predicts == resume:
            raise DamagedModel(f"resume is {str(resume).lower()}, and its content is not that of such a file")
        self._set_history(parts, set(COUNTS) if hasattr(self, "classes_") else set(COUNTS) - {"n_mistakes_"})

    def _history_to_facts(self) -> dict[str, Any]:
        """Return what was counted on the way, and how it ended."""
        learner: Any = self
        return {
            "counts": {name: int(getattr(self, name)) for name in COUNTS if hasattr(self, name)},
            "history": [[encode_value(value) for value in epoch._replace(seconds=None)] for epoch in learner.history_],
            "stop_reason": str(learner.stop_reason_),
        }

    def _set_history(self, parts: Parts, names: set[str]) -> None:
        """Set what was counted on the way, which must have these names, and how it ended."""
        counts = parts.parts("counts")
        if set(counts.facts) != names:
            raise DamagedModel(f"counts must have {', '.join(sorted(names))}; it has {', '.join(counts.facts)}")
        self.__dict__.update({name: counts.whole(name) for name in names})
        self.history_ = [decode_row(values, Epoch) for values in parts.values("history", list)]
        self.stop_reason_ = parts.text("stop_reason")


def put_feature_names(parts: Parts, estimator: Any) -> None:
    """Store the names of the columns, where there are."""
    if hasattr(estimator, "feature_names_in_"):
        parts.put_json("feature_names", estimator.feature_names_in_.tolist())


def set_feature_names(parts: Parts, estimator: Any) -> None:
    """Give an estimator the names of the columns, where there are."""
    if "feature_names" in parts.arrays:
        names = parts.json_list("feature_names", estimator.n_features_in_)
        if not all(isinstance(name, str) for name in names):
            raise DamagedModel("feature_names must be texts")
        estimator.feature_names_in_ = np.array(names, dtype=object)


# Parameters


def encode_parameter(name: str, value: object) -> Any:
    """Encode the value of a parameter: a number, text, None, a rule, or lists, tuples, dictionaries and arrays of these."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -2 * MOST <= value < 2 * MOST:
        raise UnsupportedOperation(f"{name}={value} cannot be saved in a file; whole numbers of 64 bits can")
    if value is None or isinstance(value, str | bool | int | float):
        return encode_value(value)
    if isinstance(value, tuple) and type(value) in rules.KINDS.values():
        return {"rule": encode_record(value, rules.KINDS)}
    if type(value) is tuple:
        return [encode_parameter(name, part) for part in value]
    if isinstance(value, list):
        return {"list": [encode_parameter(name, part) for part in value]}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.float64:
        return {"numbers": [encode_value(number) for number in value.tolist()]}
    if isinstance(value, Mapping):
        return {"dictionary": [[encode_parameter(name, key), encode_parameter(name, part)] for key, part in value.items()]}
    if name == "random_state":
        return None
    if callable(value):
        raise UnsupportedOperation(
            f"{name}={value!r} is a function, and a file holds no code", hint="use one that has a name, or pickle the model"
        )
    raise UnsupportedOperation(f"{name}={value!r} cannot be saved in a file; numbers, text, lists and rules can")


def decode_learner(kind: Any, parts: Parts) -> Any:
    """Return a learner of this class with the parameters that parts hold."""
    parameters = {name: decode_parameter(value, name) for name, value in parts.mapping("parameters").items()}
    if unknown := set(parameters) - set(signature(kind).parameters):
        raise DamagedModel(f"{kind.__name__} has no parameter {sorted(unknown)[0]!r:.40}")
    return kind(**parameters)


def decode_parameter(value: object, name: str) -> Any:
    """Return the value of the parameter with this name that was encoded."""
    if isinstance(value, list):
        return tuple(decode_parameter(part, name) for part in value)
    if not isinstance(value, dict):
        if isinstance(value, int) and not -2 * MOST <= value < 2 * MOST:
            raise DamagedModel(f"{name} is {value}, which is larger than a parameter can be")
        return value
    if len(value) != 1:
        raise DamagedModel(f"{name} must be a value with one kind; it is {str(value)[:80]}")
    ((kind, content),) = value.items()
    if kind == "float":
        return decode_number(value)
    if kind == "rule":
        return decode_record(content, rules.KINDS)
    if kind == "list":
        return [decode_parameter(part, name) for part in check_list(content, name)]
    if kind == "numbers":
        return np.array([decode_number(number) for number in check_list(content, name)], dtype=np.float64)
    if kind == "dictionary":
        pairs = [check_list(pair, name) for pair in check_list(content, name)]
        if not all(len(pair) == 2 and not isinstance(pair[0], dict | list) for pair in pairs):
            raise DamagedModel(f"{name} must be a list of keys with their values; it is {str(content)[:80]}")
        return {key: decode_parameter(part, name) for key, part in pairs}
    raise DamagedModel(f"{name} has a value of the unknown kind {kind!r:.40}")
