"""Every learner can be written into one file and read from it again: its parameters, what it has learned, and what it needs
to go on as if it had never stopped. What a learner has learned it says itself, in two hooks; nothing in a file is run.
"""

from __future__ import annotations

import re
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rosenblatt import rules
from rosenblatt.engine.train import Epoch
from rosenblatt.modelfile import container
from rosenblatt.modelfile.container import UnreadableModel
from rosenblatt.modelfile.parts import MOST, Parts, put_record, real, record

COUNTS = ("n_iter_", "n_mistakes_", "n_updates_", "n_seen_")
# What a file that says something else than it should makes those raise who read it.
WRONG = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class Saved:
    """A learner that can be saved in a file and loaded from one."""

    _always_resumes: ClassVar[bool] = False  # whether a file that predicts has all that learning needs

    # What a learner is

    @abstractmethod
    def _parts(self, resume: bool) -> Parts:
        """All that has been learned; without `resume`, what predicts is enough."""

    @abstractmethod
    def _put_together(self, parts: Parts, resume: bool) -> None:
        """Have learned what these parts say."""

    def _check_learned(self) -> None:
        """Raise an error if nothing has been learned yet."""
        check_is_fitted(self)

    # Files

    def save(self, path: str | PathLike, resume: bool = True) -> None:
        """Write the learner into one file, which replaces an old one only when it is complete.

        It holds all that learning needs to go on exactly where it stopped. With `resume=False` it need only predict, which
        makes the files of linear learners smaller.
        """
        container.write(path, *self._written(resume))

    @classmethod
    def load(cls, path: str | PathLike) -> Any:
        """The learner that was saved in a file. Nothing in the file is run as code."""
        facts, arrays = container.read(path)
        return cls._restored(facts, arrays, str(path))

    def _written(self, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The learner as facts and arrays."""
        self._check_learned()
        resume = resume or self._always_resumes
        if resume:
            self._resumable()
        learner: Any = self
        parts = self._parts(resume)
        facts = {
            "learner": type(self).__name__,
            "parameters": {name: plainly(name, value) for name, value in learner.get_params(deep=False).items()},
            "resume": resume,
            "arrays": sorted(parts.arrays),
        }
        return facts | parts.facts, parts.arrays

    @classmethod
    def _restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray], source: str) -> Any:
        """The learner that these facts and arrays describe."""
        if facts.get("learner") != cls.__name__:
            raise UnreadableModel(f"{source} holds a {facts.get('learner')}, not a {cls.__name__}")
        try:
            if sorted(arrays) != facts["arrays"]:
                raise ValueError(f"it should have the arrays {facts['arrays']}; it has {sorted(arrays)}")
            parts = Parts(facts, dict(arrays))
            estimator = cls(**{name: back(value) for name, value in facts["parameters"].items()})
            estimator._put_together(parts, parts.flag("resume"))
        except WRONG as error:
            raise UnreadableModel(f"{source} is damaged: {type(error).__name__}: {error}") from None
        return estimator

    def _resumable(self) -> Any:
        """The model, if it can go on learning; one loaded from a file that holds only what predicts cannot."""
        model = getattr(self, "_model", None)
        if getattr(model, "only_predicts", False):
            raise ValueError(
                "this model was saved for prediction only and cannot go on learning; save it with save(path, resume=True)"
            )
        return model


class SavedEstimator(Saved):
    """A learner whose `_model` holds what it has learned, in epochs or from a stream. A kind of model is taken apart and
    put together by `_arrays` and `_from_arrays`."""

    @abstractmethod
    def _arrays(self, model: Any, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The model as facts (values of JSON) and arrays; with `resume`, all that learning needs to go on."""

    @abstractmethod
    def _from_arrays(self, facts: Mapping[str, Any], arrays: dict[str, NDArray]) -> Any:
        """The model that these facts and arrays describe; the arrays that belong to it are taken out of them."""

    def _parts(self, resume: bool) -> Parts:
        learner: Any = self
        facts, arrays = self._arrays(learner._model, resume)
        parts = Parts(
            {
                "features": int(learner.n_features_in_),
                "classes": put_labels(learner.classes_) if hasattr(self, "classes_") else None,
                "counts": {name: int(getattr(self, name)) for name in COUNTS if hasattr(self, name)},
                "history": [[fact(value) for value in epoch] for epoch in learner.history_],
                "stop_reason": str(learner.stop_reason_),
                "model": facts,
            },
            arrays,
        )
        put_names(parts, learner)
        if hasattr(self, "class_count_"):
            parts.put("class_count", learner.class_count_)
        return parts

    def _put_together(self, parts: Parts, resume: bool) -> None:
        learner: Any = self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a parameter costs was said when it was set
            learner._plan()
        learner.n_features_in_ = parts.whole("features", 1, 1 << 40)
        take_names(parts, learner)
        if parts.facts["classes"] is not None:
            learner.classes_ = labels(parts.facts["classes"])
            learner.class_count_ = parts.counts("class_count", len(learner.classes_))
        model = learner._model = self._from_arrays(parts.facts["model"], parts.arrays)
        if parts.arrays:
            raise ValueError(f"it has arrays that nobody knows: {', '.join(sorted(parts.arrays))}")
        if model.only_predicts == resume:
            raise ValueError(
                f"it says that it {'can' if resume else 'cannot'} go on learning, but what it holds is otherwise"
            )
        self._recall(parts, set(COUNTS) if hasattr(self, "classes_") else set(COUNTS) - {"n_mistakes_"})

    def _recall(self, parts: Parts, counted: set[str]) -> None:
        """Know again what was counted on the way, and how it ended."""
        counts = Parts(parts.facts["counts"])
        if set(counts.facts) != counted:
            raise ValueError(f"it must count {', '.join(sorted(counted))}; it counts {', '.join(counts.facts)}")
        self.__dict__.update({name: counts.whole(name) for name in counted})
        self.history_ = [epoch(values, Epoch) for values in parts.facts["history"]]
        self.stop_reason_ = parts.text("stop_reason")


def put_names(parts: Parts, estimator: Any) -> None:
    """Put the names of the columns, where there are."""
    if hasattr(estimator, "feature_names_in_"):
        parts.put_texts("feature_names", estimator.feature_names_in_.tolist())


def take_names(parts: Parts, estimator: Any) -> None:
    """Know the names of the columns, where there are."""
    if "feature_names" in parts.arrays:
        names = parts.texts("feature_names", estimator.n_features_in_)
        if not all(isinstance(name, str) for name in names):
            raise TypeError("the names of features must be text")
        estimator.feature_names_in_ = np.array(names, dtype=object)


# Labels

_TYPES = re.compile(r"[?]|[iuf][1248]|U[0-9]{1,6}|S[0-9]{1,6}|O|T")
_WIDEST = 1 << 22  # bytes of labels that are text of a fixed width


def put_labels(classes: NDArray) -> dict[str, Any]:
    """An array of labels as a fact, with their type."""
    kind = classes.dtype.kind
    values = [value.decode("latin-1") if isinstance(value, bytes) else value for value in classes.tolist()]
    if not all(isinstance(value, str | bool | int | float) for value in values):
        strange = next(value for value in values if not isinstance(value, str | bool | int | float))
        raise TypeError(f"the label {strange!r} cannot be written into a file; text, numbers and truth values can")
    width = classes.dtype.itemsize
    code = {"b": "?", "O": "O", "T": "T", "U": f"U{width // 4}"}.get(kind, f"{kind}{width}")
    if not _TYPES.fullmatch(code):
        raise TypeError(f"labels of the type {classes.dtype} cannot be written into a file")
    return {"type": code, "values": [fact(value) for value in values]}


def labels(told: Any) -> NDArray:
    """The array of labels, each other than the others, that a fact describes."""
    code, values = told["type"], told["values"]
    if not isinstance(code, str) or not _TYPES.fullmatch(code) or not isinstance(values, list) or not values:
        raise ValueError(f"{code!r:.40} is no type of labels")
    kind = {"?": bool, "U": str, "S": str, "T": str, "O": str | bool | int | float}.get(code[0], int | float)
    values = [real(value) if isinstance(value, dict) else value for value in values]
    mixed = len({isinstance(value, str) for value in values}) > 1
    if mixed or not all(isinstance(value, kind) and (code[0] in "?O" or not isinstance(value, bool)) for value in values):
        raise TypeError(f"labels of the type {code} cannot be {str(values)[:80]}")
    dtype: Any = np.dtypes.StringDType() if code == "T" else np.dtype(code)
    if dtype.itemsize * len(values) > max(_WIDEST, 8 * sum(len(str(value)) for value in values)):
        raise ValueError(f"labels of the type {code} are far wider than they need be")
    if code[0] == "S":
        values = [value.encode("latin-1") for value in values]
    made: NDArray = np.array(values, dtype=dtype)
    if made.ndim != 1 or made.tolist() != values or len(set(values)) != len(values):
        raise ValueError(f"these are no labels of the type {code}, each another: {str(values)[:80]}")
    return made


# Parameters


def fact(value: Any) -> Any:
    """A number, text, truth value or None as a value of JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    return value


def plainly(name: str, value: Any) -> Any:
    """A parameter as a value of JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -2 * MOST <= value < 2 * MOST:
        raise ValueError(f"{name}={value} cannot be written into a file; whole numbers of 64 bits can")
    if value is None or isinstance(value, str | bool | int | float):
        return fact(value)
    if isinstance(value, tuple) and type(value) in rules.KINDS.values():
        return {"rule": put_record(value, rules.KINDS)}
    if type(value) is tuple:
        return [plainly(name, part) for part in value]
    if isinstance(value, list):
        return {"list": [plainly(name, part) for part in value]}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.float64:
        return {"numbers": [fact(number) for number in value.tolist()]}
    if isinstance(value, Mapping):
        return {"dictionary": [[plainly(name, key), plainly(name, part)] for key, part in value.items()]}
    if name == "random_state":
        return None
    if callable(value):
        raise TypeError(f"{name}={value!r} is a function, and a file holds no code; use one that has a name, or pickle")
    raise TypeError(f"{name}={value!r} cannot be written into a file; numbers, text, lists and rules can")


def back(value: Any) -> Any:
    """The parameter that was written."""
    if isinstance(value, list):
        return tuple(map(back, value))
    if not isinstance(value, dict):
        if isinstance(value, int) and not -2 * MOST <= value < 2 * MOST:
            raise ValueError(f"{value} is larger than a parameter can be")
        return value
    if len(value) != 1:
        raise ValueError(f"{str(value)[:80]} is no parameter")
    ((kind, held),) = value.items()
    if kind == "float":
        return real(value)
    if kind == "rule":
        return record(held, rules.KINDS)
    if kind == "list":
        return list(map(back, held))
    if kind == "numbers":
        return np.array([real(number) for number in held], dtype=np.float64)
    if kind == "dictionary":
        return {back(key): back(part) for key, part in held}
    raise ValueError(f"there is no parameter of the kind {kind!r:.40}")


def epoch(values: Any, kind: Any) -> Any:
    """A record of a history: numbers, words and None."""
    if not isinstance(values, list) or len(values) > len(kind._fields) or any(isinstance(part, list) for part in values):
        raise ValueError(f"{str(values)[:80]} is no record of {', '.join(kind._fields)}")
    return kind(*(_float(value) if isinstance(value, dict) else value for value in values))


def _float(value: Mapping[str, Any]) -> float:
    if list(value) != ["float"] or value["float"] not in ("inf", "-inf", "nan"):
        raise ValueError(f"{str(value)[:80]} is no number")
    return float(value["float"])
