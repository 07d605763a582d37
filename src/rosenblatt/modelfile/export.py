"""A linear model is a few planes: an intercept and a weight for each feature. So it can leave this library, as a graph that
onnxruntime computes just as we do, ties included, or as text that a person reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from rosenblatt.engine.problems import OneVsOne
from rosenblatt.modelfile.atomic import atomic_write
from rosenblatt.modelfile.container import VERSION
from rosenblatt.online.perceptron import OnlinePerceptron

_OPSET = 13  # of ONNX: from 2020, and all that this needs
_IR_VERSION = 8


class Planes(NamedTuple):
    """The score of a row is its products with the planes and their intercepts. One plane decides between two classes (≥ 0
    is the second), several are one for each class (the highest wins, the first among equals) or target."""

    coef: NDArray  # (planes, features)
    intercept: NDArray  # (planes,)
    classes: NDArray | None  # None: scores are the answers
    flat: bool  # whether answers to rows are numbers, not lists of them


def planes(estimator: Any) -> Planes:
    """The planes of a linear model; a TypeError if its predictions are not those of one plane for each class."""
    if isinstance(estimator, OnlinePerceptron):
        raise TypeError("an OnlinePerceptron reads features by name, and planes have columns; to_text writes it by name")
    check_is_fitted(estimator)
    name, reason = type(estimator).__name__, _obstacle(estimator)
    if reason:
        raise TypeError(
            f"{name} is not a plane for each class: {reason}; a linear model whose coef_ predict can be exported"
        )
    coef, intercept = np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
    if not is_regressor(estimator):
        _check_several(name, estimator.classes_.tolist())
    if is_regressor(estimator):
        return Planes(coef, intercept, None, estimator.coef_.ndim == 1)
    return Planes(coef, intercept, estimator.classes_, len(coef) == 1)


def _check_several(name: str, labels: Sequence) -> None:
    if len(labels) < 2:
        raise TypeError(f"{name} has seen no two classes, only {list(labels)}; planes tell one class from another")


def _obstacle(estimator: Any) -> str:
    """Why the predictions of an estimator are not those of its planes; empty if they are."""
    model = getattr(estimator, "_model", None)
    if not hasattr(estimator, "coef_"):
        return "its scores are no sums over columns"
    if hasattr(estimator, "vouches"):
        return "its scores are cosines, divided by the length of each row"
    if getattr(model, "votes", None) is not None and getattr(estimator, "how", "vote") == "vote":
        return "it predicts by the vote of all weights, to which the average is close"
    if isinstance(getattr(model, "problem", None), OneVsOne):
        return "it has a plane for each pair of classes; multiclass='joint' and 'ovr' have one for each class"
    return ""


# ONNX


def to_onnx(
    estimator: Any, path: str | PathLike | None = None, names: Sequence[str] | None = None, dtype: Any = None
) -> Any:
    """A linear model as an ONNX model, also written into a file where a path is given.

    The input X (rows, features) is of the type of the weights, or of `dtype`, float32 or float64; the outputs are `label`
    and `scores`, for a regressor `value`. The names of features, given or learned, go into its metadata. It needs onnx:
    pip install 'rosenblatt[onnx]'.

    >>> import onnxruntime                                                      # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())  # doctest: +SKIP
    >>> labels, scores = session.run(None, {"X": X})                            # doctest: +SKIP
    """
    try:
        from onnx import checker, helper, numpy_helper
    except ImportError:
        raise ImportError("ONNX models are made by onnx, which is not installed: pip install 'rosenblatt[onnx]'") from None
    found = planes(estimator)
    kind = np.dtype(found.coef.dtype if dtype is None else dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}")
    constants, nodes, outputs = _graph(found, kind)
    width = found.coef.shape[1]
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
    if (known := _names(estimator, names, width)) is not None:
        helper.set_model_props(model, {"feature_names": json.dumps(known, ensure_ascii=False)})
    checker.check_model(model, full_check=True)
    if path is not None:
        with atomic_write(path) as file:
            file.write(model.SerializeToString())
    return model


def _graph(found: Planes, kind: np.dtype) -> tuple[dict[str, NDArray], list[tuple], list[tuple]]:
    """(constants, [(operation, inputs, output, options), ...], [(output, type, shape), ...])."""
    coef, intercept = found.coef.T.astype(kind), found.intercept.astype(kind)
    if found.flat:
        coef, intercept = coef[:, 0], intercept[0]
    shape = [None] if found.flat else [None, coef.shape[1]]
    scores = "value" if found.classes is None else "scores"
    constants = {"weights": np.ascontiguousarray(coef), "intercept": np.asarray(intercept)}
    nodes: list[tuple] = [("MatMul", ["X", "weights"], "products", {}), ("Add", ["products", "intercept"], scores, {})]
    if found.classes is None:
        return constants, nodes, [(scores, kind, shape)]
    labels = _labels(found.classes)
    constants["classes"] = labels
    if found.flat:
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
        raise TypeError(f"the labels {texts[:5]} are neither text nor numbers of one type; ONNX has no others")
    return np.array(texts, dtype=object)


def _names(estimator: Any, names: Sequence[str] | None, width: int) -> list[str] | None:
    """The names of the columns: those given, else those that were learned with, else None."""
    names = getattr(estimator, "feature_names_in_", None) if names is None else names
    if names is None:
        return None
    if len(names) != width:
        raise ValueError(f"the model has {width} columns, but {len(names)} names are given")
    return [str(name) for name in names]


# Text


def to_text(
    estimator: Any,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    path: str | PathLike | None = None,
) -> str:
    """A linear model as lines that a person can read, also written into a file where a path is given: for each class the
    weights that speak for it, the largest first, to the last digit, without those that are zero.

    `names` are those of the columns, `classes` those of the classes, in the order of `classes_`.

    >>> from rosenblatt import Perceptron
    >>> clf = Perceptron(order="cyclic").fit([[1, 0, 2], [0, 1, 2], [2, 0, 0]], ["spam", "ham", "spam"])
    >>> print(to_text(clf, names=["win", "noon", "the"]), end="")
    Perceptron(order='cyclic')
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
    blocks, head = (
        _named_blocks(estimator) if isinstance(estimator, OnlinePerceptron) else _blocks(estimator, names, classes)
    )
    lines = [" ".join(repr(estimator).split()), *head]
    for title, weights, intercept, zeros in blocks:
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


Block = tuple[str, Sequence[tuple[str, float]], float, int]  # title, weights, intercept, weights that are zero


def _blocks(estimator: Any, names: Sequence[str] | None, classes: Sequence[str] | None) -> tuple[list[Block], list[str]]:
    found = planes(estimator)
    count, width = found.coef.shape
    known = [_shown(name) for name in _names(estimator, names, width) or [f"column {j}" for j in range(width)]]
    shown = None if found.classes is None else [_shown(label) for label in found.classes.tolist()]
    if classes is not None:
        if len(classes) != len(shown or ()):
            raise ValueError(f"the model has {len(shown or ())} classes, but {len(classes)} names are given")
        shown = [_shown(label) for label in classes]
    answers = f"{count} targets" if shown is None else f"{len(shown)} classes"
    head = _head(f"{width} columns, {answers}", shown, count)
    if shown is None:
        titles = ["the value"] if found.flat else [f"target {k}" for k in range(count)]
    else:
        titles = [f"for {label}" for label in (shown[1:] if count == 1 else shown)]
    blocks: list[Block] = []
    for title, row, intercept in zip(titles, found.coef, found.intercept.tolist(), strict=True):
        there = np.flatnonzero(row)
        blocks.append((title, [(known[j], row[j].item()) for j in there], intercept, width - len(there)))
    return blocks, head


def _named_blocks(model: OnlinePerceptron) -> tuple[list[Block], list[str]]:
    weights = model.named_weights()
    _check_several(type(model).__name__, list(weights))
    labels = list(weights)[1:] if len(weights) == 2 else list(weights)
    blocks: list[Block] = []
    for label in labels:
        named = [(_shown(name), weight) for name, weight in weights[label].items()]
        blocks.append((f"for {_shown(label)}", named, model.intercept_of(label), 0))
    size = f"{model.n_features_} features, {len(weights)} classes"
    return blocks, _head(size, [_shown(label) for label in weights], len(labels))


def _shown(name: Any) -> str:
    """A name as it stands on one line: text as it is, unless it has line ends or nothing."""
    if isinstance(name, np.generic):
        name = name.item()
    return name if isinstance(name, str) and name.splitlines() == [name] else repr(name)


def _head(size: str, classes: Sequence[str] | None, count: int) -> list[str]:
    return [f"rosenblatt {VERSION}, {size}", "score = intercept + the sum of weight · value", _verdict(classes, count)]


def _verdict(classes: Sequence[str] | None, count: int) -> str:
    if classes is None:
        return "which is the answer"
    if count == 1:
        return f"{classes[0]} if it is below 0, else {classes[-1]}"
    return "the class with the highest score, the first among equals"
