"""Any labels outside, class numbers inside; and the weight that each example carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.rows import numpy_array
from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, InvalidParameterType, shown

_SEQUENCES = (list, tuple, np.ndarray)
FEW = 2**16  # integers in a range this small are looked up in a table, which is several times faster than a search


def _few_integers(y: NDArray) -> tuple[int, int] | None:
    """The lowest and the highest of whole numbers in a small range, as integers or floats; None for anything else."""
    if y.dtype.kind not in "iuf" or y.dtype == np.uint64 or len(y) == 0:
        return None
    low, high = y.min().item(), y.max().item()
    if not (high - low < FEW and -(2**53) < low < 2**53):  # as is any number that is compared with NaN
        return None
    return (int(low), int(high)) if y.dtype.kind != "f" or bool((y == np.rint(y)).all()) else None


def are_whole_numbers(y: NDArray) -> bool:
    """Return whether floats are whole numbers in a small range, such as 1.0 and -1.0, which can name classes."""
    return y.dtype.kind == "f" and _few_integers(y) is not None


def need_no_validation(y: Any, X: Any, kinds: str) -> bool:
    """Return whether y is an array of one of these kinds of dtype with a value for each row of X, which scikit-learn would
    return unchanged, apart from its check for NaN."""
    return type(y) is np.ndarray and y.shape == getattr(X, "shape", ())[:1] and y.dtype.kind in kinds


def checked_labels(y: NDArray) -> NDArray:
    """y, one label a row, if its labels are of one kind and can name classes."""
    if y.dtype.kind == "O":
        refuse_mixed(y)
    if y.dtype.kind not in "biuSUT":
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)
    return y


def refuse_several(y: Any, learner: str) -> None:
    """Raise InvalidData if rows have several labels each: a table of 0 and 1, or a sequence of labels for each row."""
    labels = y if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype.kind == "O" and y.ndim == 1) else ()
    lengths = {len(row) for row in labels if isinstance(row, _SEQUENCES)}
    shape = (len(labels), *lengths) if len(lengths) == 1 else getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] != 1:
        found, table = f"its shape is {shape}", "y"
    elif lengths - {1} or any(isinstance(row, set | frozenset) for row in labels):
        found = "it is a sequence of collections of labels"
        table = "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
    else:
        return
    raise InvalidData(
        f"y must have one label for each row; {found}",
        hint=f"sklearn.multioutput.MultiOutputClassifier({learner}()).fit(X, {table}) learns several labels",
    )


def refuse_mixed(y: ArrayLike) -> None:
    """Raise a TypeError if some labels are text and others are not: numpy would turn them all into text."""
    if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype.kind == "O"):
        kinds = {type(label).__name__ for label in y if isinstance(label, str) != isinstance(y[0], str)}
        if kinds:
            raise InvalidDataType(
                f"the labels mix {type(y[0]).__name__} with {', '.join(sorted(kinds))}",
                hint="convert them to one type, for example with [str(label) for label in y]",
            )


def distinct(y: NDArray) -> NDArray:
    """The distinct labels, sorted."""
    if span := _few_integers(y):
        return (np.flatnonzero(np.bincount(y.astype(np.int64, copy=False) - span[0])) + span[0]).astype(y.dtype)
    return np.unique(y)


def numbers(y: NDArray, classes: NDArray) -> NDArray:
    """The class number of each label, −1 for those that are not among the classes."""
    if len(classes) == 0:
        return np.full(len(y), -1, np.int64)
    if (span := _few_integers(y)) and (others := _few_integers(classes)):
        low, high = min(span[0], others[0]), max(span[1], others[1])
        if high - low < FEW:
            table = np.full(high - low + 1, -1, np.int64)
            table[classes.astype(np.int64) - low] = np.arange(len(classes))
            return table[y.astype(np.int64, copy=False) - low]
    sorter = np.argsort(classes)
    places = np.searchsorted(classes, y, sorter=sorter)
    found = sorter[np.minimum(places, len(classes) - 1)].astype(np.int64)
    return np.where(classes[found] == y, found, -1)


def arrivals(y: NDArray) -> tuple[NDArray, NDArray]:
    """(labels, positions): the distinct labels in the order in which they first appear, and where."""
    labels, first = np.unique(y, return_index=True)
    order = np.argsort(first)
    return labels[order], first[order]


def sample_weights(sample_weight: ArrayLike | None, rows: int) -> NDArray | None:
    """One weight ≥ 0 a row, not all zero; None where none were given."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(numpy_array(sample_weight, "sample_weight"), dtype=np.float64)
    except InvalidData:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidData(f"sample_weight must be numbers; got {shown(sample_weight)} ({error})") from error
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.shape != (rows,):
        raise InvalidData(f"sample_weight must have one value for each of the {rows} rows; its shape is {weight.shape}")
    for kind, wrong in (("be finite", ~np.isfinite(weight)), ("not be negative", weight < 0)):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidData(f"sample_weight must {kind}; it is {weight[row]:g} at row {row}", row=row)
    if not (weight > 0).any():
        raise InvalidData("sample_weight is zero for every row, which leaves nothing to learn from")
    return weight


def live_rows(weight: NDArray | None, rows: int) -> NDArray:
    """The rows that count: those of positive weight."""
    return np.arange(rows) if weight is None else np.flatnonzero(weight)


def weights_of_classes(class_weight: Mapping[object, float], classes: NDArray) -> NDArray:
    """One weight a class from a dictionary; 1 for those it does not name."""
    try:
        weight = np.array([float(class_weight.get(name, 1.0)) for name in classes.tolist()])
    except (TypeError, ValueError):
        raise InvalidParameterType("class_weight", class_weight, "a dictionary from classes to numbers") from None
    if not np.isfinite(weight).all() or (weight < 0).any() or not (weight > 0).any():
        raise InvalidParameter("class_weight", class_weight, "finite and not negative, with one above zero")
    return weight


def balance(labels: NDArray, live: NDArray) -> NDArray:
    """The weight that "balanced" gives each row: rows / (classes · rows of the class), over the rows that count."""
    counts = np.bincount(labels[live], minlength=labels.max() + 1)
    by_class = len(live) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return by_class[labels]


def running_balance(labels: NDArray, live: NDArray, counts: NDArray) -> NDArray:
    """The weight that "balanced" gives each row of a stream, from the rows up to and including it.

    `counts` (classes,) holds how many of each class came before and is brought up to date. Classes that have not come
    yet do not count, so the weights do not depend on how the stream is cut.
    """
    weight = np.ones(len(labels))
    total, present = int(counts.sum()), int(np.count_nonzero(counts))
    for i in live:
        present += counts[labels[i]] == 0
        counts[labels[i]] += 1
        total += 1
        weight[i] = total / (present * counts[labels[i]])
    return weight


def pair_weights(weight: NDArray | None, by_class: NDArray | None, rows: int) -> NDArray | None:
    """(rows, 2): the weight of each row and that of its class; None when all are 1."""
    if weight is None and by_class is None:
        return None
    one = np.ones(rows)
    return np.column_stack([one if weight is None else weight, one if by_class is None else by_class])
