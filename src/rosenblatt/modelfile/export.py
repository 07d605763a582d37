"""Linear models for other programs: ONNX that onnxruntime computes just as we do, ties included, or text that people read.

A linear model is a few planes, an intercept and a weight for each feature.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rosenblatt.engine.problems import OneVsOne
from rosenblatt.errors import InvalidParameter, MissingDependency, UnsupportedOperation
from rosenblatt.estimators.interface import Learner, check_is_fitted, is_regressor
from rosenblatt.modelfile.atomic import atomic_write
from rosenblatt.modelfile.container import VERSION
from rosenblatt.online.perceptron import OnlinePerceptron

__all__ = ["to_onnx", "to_text"]

_OPSET = 13  # of ONNX: from 2020, and all that this needs
_IR_VERSION = 8


class Planes(NamedTuple):
    """The score of a row is its products with the planes and their intercepts. One plane decides between two classes (≥ 0
    is the second), several are one for each class (the highest wins, the first among equals) or target."""

    coef: NDArray  # (planes, features)
    intercept: NDArray  # (planes,)
    classes: NDArray | None  # None: scores are the answers
    flat: bool  # whether answers to rows are numbers, not lists of them


def planes_of(estimator: Any) -> Planes:
    """Return the planes of a linear model; UnsupportedOperation if its predictions are not those of one for each class."""
    name = type(estimator).__name__
    if isinstance(estimator, OnlinePerceptron):
        raise UnsupportedOperation(f"ONNX needs numbered columns; the features of {name} have names", hint="use to_text")
    check_is_fitted(estimator)
    if reason := _why_not_planes(estimator):
        raise UnsupportedOperation(
            f"{name} cannot be exported: {reason}", hint="a linear model that predicts with coef_ can be exported"
        )
    coef, intercept = np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
    if is_regressor(estimator):
        return Planes(coef, intercept, None, estimator.coef_.ndim == 1)
    _check_several(name, estimator.classes_.tolist())
    return Planes(coef, intercept, estimator.classes_, len(coef) == 1)


def _check_several(name: str, labels: Sequence) -> None:
    if len(labels) < 2:
        raise UnsupportedOperation(f"{name} must have seen at least two classes; it has seen {list(labels)}")


def _why_not_planes(estimator: Any) -> str:
    """Return why the predictions of an estimator are not those of its planes; empty if they are."""
    model = getattr(estimator, "_model", None)
    if not hasattr(estimator, "coef_"):
        return "its scores are not sums over columns"
    if hasattr(estimator, "vouches"):
        return "its scores are cosines, divided by the length of each row"
    if getattr(model, "votes", None) is not None and getattr(estimator, "how", "vote") == "vote":
        return "it predicts by the vote of all weights, to which the average is close"
    if isinstance(getattr(model, "problem", None), OneVsOne):
        return "it has a plane for each pair of classes; multiclass='joint' and 'ovr' have one for each class"
    return ""


# ONNX


def to_onnx(
    estimator: Learner,
    path: str | PathLike | None = None,
    names: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Convert a linear model to ONNX.

    The input of the ONNX model is X (rows, features); its outputs are `label` and `scores`, for a regressor `value`.

    Parameters
    ----------
    estimator : linear classifier or regressor
        A fitted one, whose predictions are those of one plane for each class.
    path : str or path-like, optional
        A file to write the ONNX model into.
    names : sequence of str, optional
        The names of the features, for the metadata; by default those that it learned with.
    dtype : float32 or float64, optional
        The type of X and of the scores; by default that of the weights.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    UnsupportedOperation
        If the model is not linear, or predicts by votes or by pairs of classes.
    MissingDependency
        If onnx is not installed.

    Examples
    --------
    >>> import onnxruntime                                                      # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())  # doctest: +SKIP
    >>> labels, scores = session.run(None, {"X": X})                            # doctest: +SKIP
    """
    try:
        from onnx import checker, helper, numpy_helper
    except ImportError:
        raise MissingDependency("onnx", "onnx", "ONNX models") from None
    planes = planes_of(estimator)
    kind = np.dtype(planes.coef.dtype if dtype is None else dtype)
    if kind not in (np.float32, np.float64):
        raise InvalidParameter("dtype", dtype, "float32 or float64")
    constants, nodes, outputs = _graph(planes, kind)
    width = planes.coef.shape[1]
    graph = helper.make_graph(
        [helper.make_node(operation, inputs, [output], **options) for operation, inputs, output, options in nodes],
        type(estimator).__name__,
        [helper.make_tensor_value_info("X", helper.np_dtype_to_tensor_dtype(kind), [None, width])],
        [helper.make_tensor_value_info(name, _element(element), shape) for name, element, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(
        graph,
        producer_name="rosenblatt",
        producer_version=VERSION,
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET)],
    )
    if columns := _names(estimator, names, width):
        helper.set_model_props(model, {"feature_names": json.dumps(columns, ensure_ascii=False)})
    checker.check_model(model, full_check=True)
    if path is not None:
        with atomic_write(path) as file:
            file.write(model.SerializeToString())
    return model


def _graph(planes: Planes, kind: np.dtype) -> tuple[dict[str, NDArray], list[tuple], list[tuple]]:
    """(constants, [(operation, inputs, output, options), ...], [(output, type, shape), ...])."""
    coef, intercept = planes.coef.T.astype(kind), planes.intercept.astype(kind)
    if planes.flat:
        coef, intercept = coef[:, 0], intercept[0]
    shape = [None] if planes.flat else [None, coef.shape[1]]
    scores = "value" if planes.classes is None else "scores"
    constants = {"weights": np.ascontiguousarray(coef), "intercept": np.asarray(intercept)}
    nodes: list[tuple] = [("MatMul", ["X", "weights"], "products", {}), ("Add", ["products", "intercept"], scores, {})]
    if planes.classes is None:
        return constants, nodes, [(scores, kind, shape)]
    labels = _labels(planes.classes)
    constants["classes"] = labels
    if planes.flat:
        constants["zero"] = np.zeros((), kind)
        nodes.append(("GreaterOrEqual", [scores, "zero"], "second", {}))
        nodes.append(("Cast", ["second"], "number", {"to": _element(np.dtype(np.int64))}))
    else:
        nodes.append(("ArgMax", [scores], "number", {"axis": 1, "keepdims": 0}))
    nodes.append(("Gather", ["classes", "number"], "label", {}))
    return constants, nodes, [("label", labels.dtype, [None]), (scores, kind, shape)]


def _element(dtype: np.dtype) -> int:
    from onnx import TensorProto, helper

    return TensorProto.STRING if dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(dtype)


def _labels(classes: NDArray) -> NDArray:
    """The labels, text as objects."""
    if classes.dtype.kind in "biuf":
        return classes
    texts = classes.tolist()
    if not all(isinstance(label, str) for label in texts):
        raise UnsupportedOperation(f"the labels {texts[:5]} cannot be stored in ONNX: it has text, or numbers of one type")
    return np.array(texts, dtype=object)


def _names(estimator: Any, names: Sequence[str] | None, width: int) -> list[str]:
    """Return the names of the columns: those passed, else those that were learned with; empty if there are none."""
    names = getattr(estimator, "feature_names_in_", None) if names is None else names
    if names is not None and len(names) != width:
        raise InvalidParameter("names", list(names), f"{width} names, one for each column")
    return [] if names is None else [str(name) for name in names]


# Text


class Section(NamedTuple):
    """The weights for a class, or of a target."""

    title: str
    weights: Sequence[tuple[str, float]]
    intercept: float
    zeros: int  # weights that are zero, which are left out


def to_text(
    estimator: Learner,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    path: str | PathLike | None = None,
) -> str:
    """Write a linear model as lines that people can read.

    For each class there are the weights that speak for it, the largest first, to the last digit, without those of zero.

    Parameters
    ----------
    estimator : linear classifier or regressor, or OnlinePerceptron
        A fitted one, whose predictions are those of one plane for each class.
    names : sequence of str, optional
        The names of the columns; by default those that it learned with.
    classes : sequence of str, optional
        What to call the classes, in the order of `classes_`.
    path : str or path-like, optional
        A file to write the text into.

    Returns
    -------
    str

    Raises
    ------
    UnsupportedOperation
        If the model is not linear, or predicts by votes or by pairs of classes.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> clf = Perceptron(keep="last", order="cyclic").fit([[1, 0, 2], [0, 1, 2], [2, 0, 0]], ["spam", "ham", "spam"])
    >>> print(to_text(clf, names=["win", "noon", "the"]), end="")
    Perceptron(keep='last', order='cyclic')
    rosenblatt 0.1.0, 3 columns, 2 classes
    score = intercept + the sum of weight · value
    ham if it is below 0, else spam
    <BLANKLINE>
    for spam
      1.0  win
      -1.0  noon
      0.0  (intercept)
      1 weight is zero
    """
    if isinstance(estimator, OnlinePerceptron):
        width, labels, sections = _sections_by_name(estimator)
    else:
        width, labels, sections = _sections_by_column(estimator, names, classes)
    answers = f"{len(labels)} classes" if labels else f"{len(sections)} targets"
    lines = [" ".join(repr(estimator).split()), f"rosenblatt {VERSION}, {width}, {answers}"]
    lines += ["score = intercept + the sum of weight · value", _decision(labels, len(sections))]
    for title, weights, intercept, zeros in sections:
        lines += ["", title]
        lines += [f"  {weight!r}  {name}" for name, weight in sorted(weights, key=lambda item: -abs(item[1]))]
        lines.append(f"  {intercept!r}  (intercept)")
        if zeros:
            lines.append(f"  {zeros} {'weight is' if zeros == 1 else 'weights are'} zero")
    text = "\n".join(lines) + "\n"
    if path is not None:
        with atomic_write(path) as file:
            file.write(text.encode())
    return text


def _sections_by_column(
    estimator: Learner, names: Sequence[str] | None, classes: Sequence[str] | None
) -> tuple[str, list[str], list[Section]]:
    planes = planes_of(estimator)
    count, width = planes.coef.shape
    columns = [_on_one_line(name) for name in _names(estimator, names, width) or [f"column {j}" for j in range(width)]]
    known = [] if planes.classes is None else planes.classes.tolist()
    if classes is not None and len(classes) != len(known):
        raise InvalidParameter("classes", list(classes), f"{len(known)} names, one for each class")
    labels = [_on_one_line(label) for label in (known if classes is None else classes)]
    if labels:
        titles = [f"for {label}" for label in labels[-count:]]
    else:
        titles = ["the value"] if planes.flat else [f"target {k}" for k in range(count)]
    sections = []
    for title, row, intercept in zip(titles, planes.coef, planes.intercept.tolist(), strict=True):
        used = np.flatnonzero(row)
        sections.append(Section(title, [(columns[j], row[j].item()) for j in used], intercept, width - len(used)))
    return f"{width} columns", labels, sections


def _sections_by_name(model: OnlinePerceptron) -> tuple[str, list[str], list[Section]]:
    weights = model.named_weights()
    _check_several(type(model).__name__, list(weights))
    sections = []
    for label in list(weights)[1 if len(weights) == 2 else 0 :]:
        named = [(_on_one_line(name), weight) for name, weight in weights[label].items()]
        sections.append(Section(f"for {_on_one_line(label)}", named, model.intercept_of(label), 0))
    return f"{model.n_features_} features", [_on_one_line(label) for label in weights], sections


def _on_one_line(name: object) -> str:
    """Return a name as it stands on one line: text as it is, unless it has line ends or nothing."""
    if isinstance(name, np.generic):
        name = name.item()
    return name if isinstance(name, str) and name.splitlines() == [name] else repr(name)


def _decision(labels: Sequence[str], count: int) -> str:
    if not labels:
        return "which is the answer"
    if count == 1:
        return f"{labels[0]} if it is below 0, else {labels[-1]}"
    return "the class with the highest score, the first among equals"
