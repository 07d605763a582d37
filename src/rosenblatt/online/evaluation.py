"""Progressive evaluation: each example is predicted first and learned from afterwards, so every one of them tests the
learner, and none that it has seen."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TextIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from rosenblatt.estimators.parameters import Flag, Number, OneOf, check

ALLOWED = {
    "every": Number(1, whole=True),
    "loss": OneOf(("zero-one", "perceptron", "hinge")),
    "delay": Number(0, whole=True),
    "verbose": Flag(),
}


class Evaluation(NamedTuple):
    """What a learner did on a stream, up to each record."""

    seen: NDArray  # (records,) int64: examples predicted so far
    mistakes: NDArray  # (records,) int64: those of them that were predicted wrongly
    loss: NDArray  # (records,) float64: the sum of their losses
    against: NDArray | None  # (records,) float64: the sum of the losses of the model that it was compared with

    @property
    def error(self) -> NDArray:
        """The share of mistakes among all examples so far."""
        return self.mistakes / self.seen

    @property
    def window_error(self) -> NDArray:
        """The share of mistakes among the examples since the record before."""
        return np.diff(self.mistakes, prepend=0) / np.diff(self.seen, prepend=0)

    @property
    def regret(self) -> NDArray:
        """The loss so far beyond that of the model it was compared with.

        The regret of theorems is against the best fixed model in hindsight. Finding the linear model with the fewest
        mistakes is NP-hard, but no model is better than the best: this is a lower bound of that regret, whatever it is
        against.
        """
        if self.against is None:
            raise ValueError("regret is against something; pass a fitted model as `against`")
        return self.loss - self.against


class Judge(NamedTuple):
    """How a model predicts and scores a row, whatever its interface."""

    predict: Callable[[Any], Any]
    margin: Callable[[Any, Any], float]


def progressive(
    model: Any,
    stream: Iterable[Any],
    *,
    every: int = 1000,
    against: Any = None,
    loss: str = "zero-one",
    delay: int = 0,
    classes: Any = None,
    verbose: bool = False,
) -> Evaluation:
    """Predict each example of a stream, then learn from it; what happened, recorded every `every` examples and at the end.

    Without the options it is this loop:

        mistakes = 0
        for x, y in stream:
            mistakes += model.predict_one(x) != y
            model.learn_one(x, y)

    A model that predicts None, as most do before the first example, is wrong. (A learner's own `n_mistakes_` is another
    count: a tie is a mistake there, whichever class it would name.)

    Parameters
    ----------
    model : a learner
        With `predict_one` and `learn_one`, as OnlinePerceptron and the classifiers of River, or with `predict` and
        `partial_fit`, as those of scikit-learn and of this library, which are shown one row at a time.
    stream : iterable of (x, y) or (x, y, w)
        `zip(X, y)` makes one of arrays. A weight w goes to the learner; an example of weight 0 is not there.
    every : int, default=1000
        How many examples lie between two records.
    against : a fitted model or None, default=None
        What the regret is against. It predicts every example and learns from none.
    loss : {"zero-one", "perceptron", "hinge"}, default="zero-one"
        What is added up as loss: mistakes, max(0, −m) or max(0, 1 − m). The margin m is y times the score of two classes,
        and the lead over the best rival for more; the last two need `score_one` or `decision_function`.
    delay : int, default=0
        Learn from an example only after so many more have been predicted; from the last ones at the end.
    classes : list or None, default=None
        All classes, for a `partial_fit` that wants to know them on its first call.
    verbose : bool, default=False
        Whether to show each record on stderr.

    >>> from rosenblatt.online import OnlinePerceptron, progressive
    >>> stream = [({"win": 1, "money": 1}, "spam"), ({"see": 1, "you": 1}, "ham"), ({"money": 1}, "spam")] * 20
    >>> found = progressive(OnlinePerceptron(), stream, every=20)
    >>> found.seen.tolist(), found.mistakes.tolist(), found.window_error.tolist()
    ([20, 40, 60], [3, 3, 3], [0.15, 0.0, 0.0])
    """
    check({"every": every, "loss": loss, "delay": delay, "verbose": verbose}, ALLOWED, ())
    learner, learn = judge(model), teacher(model, classes)
    if hasattr(against, "fit"):
        check_is_fitted(against)
    rival = None if against is None else judge(against)
    bar = Line() if verbose else None
    records: list[tuple[int, int, float, float]] = []
    waiting: deque[tuple[Any, Any, Any]] = deque()
    seen, mistakes, total, others = 0, 0, 0.0, 0.0
    for x, y, *weight in stream:
        if weight and weight[0] == 0:
            continue
        wrong = bool(learner.predict(x) != y)
        seen += 1
        mistakes += wrong
        total += wrong if loss == "zero-one" else loss_at(loss, learner.margin(x, y))
        if rival is not None:
            others += bool(rival.predict(x) != y) if loss == "zero-one" else loss_at(loss, rival.margin(x, y))
        waiting.append((x, y, weight))
        if len(waiting) > delay:
            learn(*waiting.popleft())
        if seen % every == 0:
            records.append((seen, mistakes, total, others))
            if bar is not None:
                bar(records)
    for example in waiting:
        learn(*example)
    if seen and (not records or records[-1][0] != seen):
        records.append((seen, mistakes, total, others))
        if bar is not None:
            bar(records)
    if bar is not None:
        bar.done()
    columns = np.array(records, np.float64).reshape(-1, 4).T
    counts = columns[:2].astype(np.int64)
    return Evaluation(counts[0], counts[1], columns[2], None if rival is None else columns[3])


def loss_at(loss: str, margin: float) -> float:
    """The loss of a margin."""
    return max(0.0, (1.0 if loss == "hinge" else 0.0) - margin)


def judge(model: Any) -> Judge:
    """How a model predicts and scores a row."""
    if hasattr(model, "predict_one"):
        return Judge(model.predict_one, lambda x, y: lead(scores_by_label(model, x), y))
    if hasattr(model, "predict"):
        return Judge(
            lambda x: first_or_none(model.predict, x),
            lambda x, y: lead(decisions_by_label(model, x), y),
        )
    raise TypeError(f"a model must have predict_one or predict; {type(model).__name__} has neither")


def teacher(model: Any, classes: Any) -> Callable[[Any, Any, list], None]:
    """How a model learns from (x, y, [w] or [])."""
    if hasattr(model, "learn_one"):
        return lambda x, y, weight: model.learn_one(x, y, **({"w": weight[0]} if weight else {}))
    if not hasattr(model, "partial_fit"):
        raise TypeError(f"a learner must have learn_one or partial_fit; {type(model).__name__} has neither")
    told = {} if classes is None else {"classes": classes}

    def learn(x: Any, y: Any, weight: list) -> None:
        model.partial_fit(as_matrix(x), np.asarray([y]), **told, **({"sample_weight": np.array(weight)} if weight else {}))

    return learn


def as_matrix(x: Any) -> Any:
    """One row as a matrix of one row."""
    return x.reshape(1, -1) if sp.issparse(x) else np.asarray(x)[None]


def first_or_none(answer: Callable[[Any], Any], x: Any) -> Any:
    """The answer for a single row; None from a model that has not been fitted."""
    try:
        return answer(as_matrix(x))[0]
    except NotFittedError:
        return None


def scores_by_label(model: Any, x: Any) -> dict[Any, float]:
    if not hasattr(model, "score_one"):
        raise ValueError(f"this loss needs scores, and {type(model).__name__} has no score_one; use loss='zero-one'")
    return model.score_one(x)


def decisions_by_label(model: Any, x: Any) -> dict[Any, float]:
    if not hasattr(model, "decision_function"):
        raise ValueError(
            f"this loss needs scores, and {type(model).__name__} has no decision_function; use loss='zero-one'"
        )
    decision = first_or_none(model.decision_function, x)
    if decision is None:
        return {}
    values = np.ravel(decision).tolist()
    return dict(zip(model.classes_.tolist(), values if len(values) > 1 else [-values[0], values[0]], strict=True))


def lead(scores: dict[Any, float], y: Any) -> float:
    """The margin of a label: the score itself between two classes, else the lead over the best rival. A label that has not
    come yet has the score 0, as its weights will have."""
    own = scores.get(y, 0.0)
    if len(scores) == 2 and y in scores:
        return own
    return own - max((score for label, score in scores.items() if label != y), default=own)


class Line:
    """A line on stderr for each record; on a terminal it is rewritten in place."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream or sys.stderr
        self.rewriting = self.stream.isatty()

    def __call__(self, records: list[tuple[int, int, float, float]]) -> None:
        """Show the last record."""
        seen, mistakes = records[-1][:2]
        before, earlier = records[-2][:2] if len(records) > 1 else (0, 0)
        recent = (mistakes - earlier) / (seen - before)
        line = f"seen {seen:,}  mistakes {mistakes:,} ({mistakes / seen:.2%})  of the last {seen - before:,}: {recent:.2%}"
        self.stream.write(f"\r\x1b[K{line}" if self.rewriting else line + "\n")
        self.stream.flush()

    def done(self) -> None:
        """End the line."""
        if self.rewriting:
            self.stream.write("\n")
            self.stream.flush()
