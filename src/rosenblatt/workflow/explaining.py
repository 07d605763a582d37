"""Why a linear model says what it says: its heaviest weights, and what each feature of a row adds to a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.data.reading import Chunk
from rosenblatt.estimators.sigma import SigmaPerceptron
from rosenblatt.workflow.labels import spelled
from rosenblatt.workflow.model import FileModel, fitted_to


class Weight(NamedTuple):
    """A feature and its weight, or what it adds to a score."""

    name: str
    value: float


class Heaviest(NamedTuple):
    """The features that speak most for a label. Of two classes, the first is spoken for by negative weights."""

    label: str
    intercept: float
    weights: list[Weight]


class Reasons(NamedTuple):
    """Why one row got its label: the score is the intercept plus what the features add. For two classes the score of the
    first is minus that of the second."""

    label: str
    score: float
    intercept: float
    features: list[Weight]
    runner_up: str | None  # the best of the other labels, of more than two
    margin: float  # by how much the label won


def heaviest(model: FileModel, count: int = 20) -> list[Heaviest]:
    """For each label, the features with the largest positive weights, at most `count`."""
    coef, intercept = _linear(model)
    found = []
    for number, (vector, constant) in enumerate(_for_each_class(model, coef, intercept)):
        some = np.argsort(-vector, kind="stable")[:count]
        weights = [Weight(model.name(int(j)), float(vector[j])) for j in some if vector[j] > 0]
        found.append(Heaviest(_label(model, number), float(constant), weights))
    return found


def reasons(model: FileModel, chunk: Chunk, row: int, label: Any = None) -> Reasons:
    """What the features of a row add to the score of a label, by default of the one it gets; the largest first."""
    coef, intercept = _linear(model)
    x = sp.csr_matrix(fitted_to(chunk.X[[row]], model.learner.n_features_in_)[0]).astype(np.float64)
    vectors = _for_each_class(model, coef, intercept)
    scores = np.array([float((x @ vector)[0]) + constant for vector, constant in vectors])
    labels = [_label(model, number) for number in range(len(vectors))]
    if label is None:
        number = 0 if len(labels) == 1 else labels.index(spelled(model.learner.predict(x)[0]))
    elif spelled(label) in labels:
        number = labels.index(spelled(label))
    else:
        raise ValueError(f"label must be one of {', '.join(labels)}; got {label!r}")
    vector, constant = vectors[number]
    products = x.data * vector[x.indices]
    ranked = np.argsort(-np.abs(products), kind="stable")
    features = [Weight(model.name(int(x.indices[j])), float(products[j])) for j in ranked]
    others = [other for other in range(len(labels)) if other != number]
    rival = max(others, key=lambda other: scores[other], default=None)
    margin = float(scores[number] - (scores[rival] if rival is not None else 0.0))
    return Reasons(
        labels[number], float(scores[number]), float(constant), features, None if rival is None else labels[rival], margin
    )


def _label(model: FileModel, number: int) -> str:
    return spelled(model.classes_[number].item()) if hasattr(model.learner, "classes_") else "value"


def _linear(model: FileModel) -> tuple[NDArray, NDArray]:
    learner = model.learner
    coef = getattr(learner, "coef_", None)
    voted = getattr(learner, "keep", "") == "vote" or getattr(learner, "multiclass", "") == "ovo"
    if coef is None or voted or isinstance(learner, SigmaPerceptron):  # which predicts by cosines
        raise ValueError(
            f"{type(learner).__name__} does not predict by one sum over the features of a row"
            + (" (it votes)" if voted else "")
            + ", so there are no weights to show; use a linear learner that keeps the last weights or their average"
        )
    coef = np.atleast_2d(np.asarray(coef, np.float64))
    return coef, np.broadcast_to(np.asarray(learner.intercept_, np.float64), len(coef))


def _for_each_class(model: FileModel, coef: NDArray, intercept: NDArray) -> list[tuple[NDArray, float]]:
    """(weights, intercept) of each class; the first of two has those of the second, negated."""
    if len(coef) == 1 and hasattr(model.learner, "classes_"):
        return [(-coef[0], 0.0 - float(intercept[0])), (coef[0], float(intercept[0]))]
    return [(vector, float(constant)) for vector, constant in zip(coef, intercept, strict=True)]
