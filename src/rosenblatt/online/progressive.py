"""Predict, then learn: on a stream every example is a test before it is a lesson, so no row need be held out, and the
mistakes over time are what the theorems of online learning are about.

`progressive(model, stream)` is this loop, with a record of it:

    mistakes = 0
    for x, y in stream:
        mistakes += model.predict_one(x) != y
        model.learn_one(x, y)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError


class Course(NamedTuple):
    """How a stream went: counts so far, at a few moments of it, the last of which is its end."""

    seen: NDArray  # (moments,) int64: examples
    mistakes: NDArray  # (moments,) int64: those not predicted before they were learned from
    rival: NDArray | None  # (moments,) int64: the mistakes of what was compared with

    @property
    def error(self) -> NDArray:
        """The share of mistakes so far."""
        return self.mistakes / np.maximum(self.seen, 1)

    @property
    def recent(self) -> NDArray:
        """The share of mistakes since the moment before."""
        return np.diff(self.mistakes, prepend=0) / np.maximum(np.diff(self.seen, prepend=0), 1)

    @property
    def regret(self) -> NDArray:
        """How many mistakes more than what was compared with."""
        if self.rival is None:
            raise AttributeError("regret is against somebody: run progressive(..., against=a fitted model)")
        return self.mistakes - self.rival


class Partner(NamedTuple):
    """Predicts and learns one example."""

    predict: Callable[[Any], Any]
    learn: Callable[..., Any]


def progressive(
    model: Any, stream: Iterable[Any], *, every: int = 1, against: Any = None, classes: Any = None, verbose: int = 0
) -> Course:
    """Predict each example of the stream, then learn from it; the mistakes, every so many examples and at the end.

    Parameters
    ----------
    model : learner
        With `predict_one` and `learn_one`, as `OnlinePerceptron` and River's models have; or a scikit-learn classifier with
        `partial_fit`, which then sees one row a call. A model that cannot predict yet is mistaken.
    stream : iterable
        Of (x, y) or (x, y, weight), in the order to learn them: `zip(X, y)` for arrays and lists; for a scipy matrix
        `rows(X, y)`.
    every : int, default=1
        Count every so many examples.
    against : fitted model or None, default=None
        With `predict_one` or `predict`: somebody whose mistakes on the same stream the regret is measured by. The best of
        its kind in hindsight, fitted on the whole stream, makes it the regret of the theorems.
    classes : sequence or None
        All labels, for a scikit-learn classifier that has to be told of them before the first row.
    verbose : int, default=0
        Whether to show the count on stderr.

    Examples
    --------
    >>> from rosenblatt.online import OnlinePerceptron, progressive
    >>> course = progressive(OnlinePerceptron(), [({"a": 1}, 0), ({"b": 1}, 1)] * 3, every=2)
    >>> course.seen.tolist(), course.mistakes.tolist(), course.recent.tolist()
    ([2, 4, 6], [2, 2, 2], [1.0, 0.0, 0.0])
    """
    if not (isinstance(every, int | np.integer) and every >= 1):
        raise ValueError(f"every must be a whole number ≥ 1; got {every!r}")
    learner = partner(model, classes)
    rival = None if against is None else partner(against, classes)
    counts: list[tuple[int, int, int]] = []
    seen = mistakes = others = 0
    for example in stream:
        x, y, *weight = example
        mistakes += not _equal(learner.predict(x), y)
        if rival is not None:
            others += not _equal(rival.predict(x), y)
        learner.learn(x, y, *weight)
        seen += 1
        if seen % every == 0:
            counts.append((seen, mistakes, others))
            if verbose:
                _show(seen, mistakes)
    if not counts or counts[-1][0] != seen:
        counts.append((seen, mistakes, others))
    if verbose:
        _show(seen, mistakes, "\n")
    columns = np.array(counts, dtype=np.int64).T
    return Course(columns[0], columns[1], None if rival is None else columns[2])


def rows(X: Any, y: Any) -> Iterable[tuple[Any, Any]]:
    """The rows of a scipy matrix, each as a matrix of one row, with their labels."""
    matrix = sp.csr_array(X)
    if matrix.shape[0] != len(y):
        raise ValueError(f"X has {matrix.shape[0]} rows and y {len(y)} labels; they must be as many")
    return ((matrix[i : i + 1], y[i]) for i in range(matrix.shape[0]))


def partner(model: Any, classes: Any = None) -> Partner:
    """The two functions of a model, whichever way it spells them; learning is missing from one that only predicts."""
    if hasattr(model, "predict_one"):
        return Partner(model.predict_one, _weighed(getattr(model, "learn_one", None), model))
    if not hasattr(model, "predict"):
        raise TypeError(f"{type(model).__name__} cannot predict: it has neither predict_one nor predict")

    def predict(x: Any) -> Any:
        try:
            return model.predict(_row(x))[0]
        except (NotFittedError, AttributeError):
            return None

    def learn(x: Any, y: Any, *weight: float) -> None:
        named = {} if classes is None else {"classes": classes}
        model.partial_fit(_row(x), [y], **named, **({"sample_weight": list(weight)} if weight else {}))

    return Partner(predict, learn if hasattr(model, "partial_fit") else _weighed(None, model))


def _weighed(learn_one: Any, model: Any) -> Callable[..., Any]:
    def learn(x: Any, y: Any, *weight: float) -> None:
        if learn_one is None:
            raise TypeError(f"{type(model).__name__} cannot learn from one example: it has no learn_one or partial_fit")
        learn_one(x, y, *weight)

    return learn


def _row(x: Any) -> Any:
    return x if sp.issparse(x) else np.asarray(x)[None]


def _equal(guess: Any, label: Any) -> bool:
    return guess is not None and bool(guess == label)


def _show(seen: int, mistakes: int, end: str = "") -> None:
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    line = f"{seen:,} examples  {mistakes:,} mistakes ({mistakes / max(seen, 1):.2%})"
    sys.stderr.write(start + line + (end if start else "\n"))
    sys.stderr.flush()
