"""Why a linear model predicts what it predicts: its largest weights, and what each feature of a row adds to a score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.data.reading import Chunk
from rosenblatt.errors import InvalidParameter, UnsupportedOperation
from rosenblatt.workflow.labels import label_text
from rosenblatt.workflow.model import FileModel, match_columns


class Weight(NamedTuple):
    """A feature and its weight, or what it adds to a score."""

    name: str
    value: float


class TopFeatures(NamedTuple):
    """The features with the largest weights for a label. The first of two classes has those of the second, negated.

    Attributes
    ----------
    label : str
        The label.
    intercept : float
        Its intercept.
    weights : list of Weight
        The features and their weights, largest first.
    """

    label: str
    intercept: float
    weights: list[Weight]


class RowExplanation(NamedTuple):
    """What each feature of a row adds to the score of its label: the score is the intercept plus what the features add. For
    two classes the score of the first is minus that of the second.

    Attributes
    ----------
    label : str
        The label that is explained.
    score, intercept : float
        Its score and its intercept.
    features : list of Weight
        What each feature adds.
    runner_up : str or None
        The best of the other labels, if there are more than two.
    margin : float
        The score less that of the best other label.
    """

    label: str
    score: float
    intercept: float
    features: list[Weight]
    runner_up: str | None
    margin: float


class _Vector(NamedTuple):
    """The weights of one class."""

    label: str
    weights: NDArray
    intercept: float


def top_features(model: FileModel, count: int = 20) -> list[TopFeatures]:
    """Return the features with the largest weights for each label.

    Parameters
    ----------
    model : FileModel
        A model whose learner is linear.
    count : int, optional
        How many features of each label, at most; only positive weights are among them.

    Returns
    -------
    list of TopFeatures
        In the order of the classes.

    Raises
    ------
    UnsupportedOperation
        If the learner does not predict by one weighted sum for each class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import reading_for, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.csv"
    ...     _ = path.write_text("label,text\\n" + "spam,win money now\\nham,see you now\\n" * 5)
    ...     model = train(path, reading_for([str(path)], target="label", text=["text"]))
    >>> [(found.label, [weight.name for weight in found.weights]) for found in top_features(model, 2)]
    [('ham', ['see', 'see you']), ('spam', ['win', 'win money'])]
    """
    found = []
    for label, vector, intercept in _vectors(model):
        largest = np.argsort(-vector, kind="stable")[:count]
        weights = [Weight(model.name(int(j)), float(vector[j])) for j in largest if vector[j] > 0]
        found.append(TopFeatures(label, intercept, weights))
    return found


def explain_row(model: FileModel, chunk: Chunk, row: int, label: object = None) -> RowExplanation:
    """Return what the features of a row add to the score of a label.

    Parameters
    ----------
    model : FileModel
        A model whose learner is linear.
    chunk : Chunk
        Some rows, as the reading of the model makes them.
    row : int
        Which of them, from 0.
    label : optional
        The label; by default the one that the model predicts.

    Returns
    -------
    RowExplanation
        The features with the largest effect come first.

    Raises
    ------
    InvalidParameter
        If the label is not one of the classes.
    UnsupportedOperation
        If the learner does not predict by one weighted sum for each class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rosenblatt.workflow import reading_for, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.svm"
    ...     _ = path.write_text("spam 1:1 2:1\\nham 3:1\\nspam 1:1\\nham 2:1 3:1\\n" * 5)
    ...     model = train(path, reading_for([str(path)]))
    ...     [chunk] = model.reading.batches([str(path)])
    >>> found = explain_row(model, chunk, row=0)
    >>> found.label, [weight.name for weight in found.features], found.margin > 0
    ('spam', ['1', '2'], True)
    """
    vectors = _vectors(model)
    x = sp.csr_matrix(match_columns(chunk.X[[row]], model.learner.n_features_in_)[0]).astype(np.float64)
    scores = [float((x @ vector.weights)[0]) + vector.intercept for vector in vectors]
    labels = [vector.label for vector in vectors]
    if label is None:
        number = 0 if len(labels) == 1 else labels.index(label_text(model.learner.predict(x)[0]))
    elif label_text(label) in labels:
        number = labels.index(label_text(label))
    else:
        raise InvalidParameter("label", label, f"one of {', '.join(labels)}")
    _, weights, intercept = vectors[number]
    products = x.data * weights[x.indices]
    ranked = np.argsort(-np.abs(products), kind="stable")
    features = [Weight(model.name(int(x.indices[j])), float(products[j])) for j in ranked]
    others = [other for other in range(len(labels)) if other != number]
    rival = max(others, key=lambda other: scores[other], default=None)
    runner_up, best = (None, 0.0) if rival is None else (labels[rival], scores[rival])
    return RowExplanation(labels[number], scores[number], intercept, features, runner_up, scores[number] - best)


def is_explainable(learner: object) -> bool:
    """Return whether a learner predicts by one weighted sum for each class: not by votes, nor by cosines."""
    votes = getattr(learner, "keep", "") == "vote" or getattr(learner, "multiclass", "") == "ovo"
    return hasattr(learner, "coef_") and not votes and not hasattr(learner, "vouches")


def _vectors(model: FileModel) -> list[_Vector]:
    """The weights of each class; the first of two has those of the second, negated."""
    learner = model.learner
    if not is_explainable(learner):
        raise UnsupportedOperation(
            f"{type(learner).__name__} does not predict by one weighted sum for each class, and has no weights to show",
            hint="train a linear learner that keeps the last weights or their average",
        )
    coef = np.atleast_2d(np.asarray(learner.coef_, np.float64))
    intercepts = np.broadcast_to(np.asarray(learner.intercept_, np.float64), len(coef)).tolist()
    labels = [label_text(label) for label in model.classes_.tolist()] if hasattr(learner, "classes_") else ["value"]
    if len(coef) == 1 and len(labels) == 2:
        return [_Vector(labels[0], -coef[0], 0.0 - intercepts[0]), _Vector(labels[1], coef[0], intercepts[0])]
    return [_Vector(*parts) for parts in zip(labels, coef, intercepts, strict=True)]
