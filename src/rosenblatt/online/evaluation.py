"""Progressive evaluation: each example is predicted first and learned from afterwards, so every one of them tests the
learner, and none that it has seen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import UnsupportedOperation
from rosenblatt.estimators.interface import check_is_fitted
from rosenblatt.estimators.parameters import Flag, Number, OneOf, check
from rosenblatt.estimators.progress import StatusLine
from rosenblatt.online.rows import RowLike

_ALLOWED = {
    "every": Number(1, whole=True),
    "loss": OneOf(("zero-one", "perceptron", "hinge")),
    "delay": Number(0, whole=True),
    "verbose": Flag(),
}


class Evaluation(NamedTuple):
    """The result of a progressive evaluation, up to each record.

    Attributes
    ----------
    seen, mistakes : (records,) int64 arrays
        Examples predicted so far, and those of them that were predicted wrongly.
    loss : (records,) float64 array
        The sum of their losses.
    against : (records,) float64 array or None
        The sum of the losses of the model that the learner was compared with.

    Examples
    --------
    >>> from rosenblatt.online import OnlinePerceptron
    >>> stream = [({"win": 1, "money": 1}, "spam"), ({"see": 1, "you": 1}, "ham")] * 20
    >>> found = progressive(OnlinePerceptron(), stream, every=20)
    >>> found.mistakes.tolist(), found.error.tolist(), found.window_error.tolist()
    ([3, 3], [0.15, 0.075], [0.15, 0.0])
    """

    seen: NDArray
    mistakes: NDArray
    loss: NDArray
    against: NDArray | None

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
            raise UnsupportedOperation("regret needs a model to compare with", hint="pass a fitted model as `against`")
        return self.loss - self.against


def progressive(
    model: Any,
    stream: Iterable[Any],
    *,
    every: int = 1000,
    against: Any = None,
    loss: str = "zero-one",
    delay: int = 0,
    classes: ArrayLike | None = None,
    verbose: bool = False,
) -> Evaluation:
    """Evaluate a learner on a stream: predict each example, then learn from it.

    Without the options it is this loop:

        mistakes = 0
        for x, y in stream:
            mistakes += model.predict_one(x) != y
            model.learn_one(x, y)

    A model that predicts None, as most do before the first example, is wrong. (A learner's own `n_mistakes_` is another
    count: a tie is a mistake there, whichever class it would name.)

    Parameters
    ----------
    model : learner
        With `predict_one` and `learn_one`, as OnlinePerceptron and the classifiers of River, or with `predict` and
        `partial_fit`, as those of scikit-learn and of this library, which are shown one row at a time.
    stream : iterable of (x, y) or (x, y, w)
        `zip(X, y)` makes one of arrays. A weight w goes to the learner; an example of weight 0 is not there.
    every : int, default=1000
        How many examples lie between two records.
    against : fitted model or None, default=None
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

    Returns
    -------
    evaluation : Evaluation
        Examples, mistakes and losses, recorded after every `every` examples and at the end.

    Examples
    --------
    >>> from rosenblatt.online import OnlinePerceptron, progressive
    >>> stream = [({"win": 1, "money": 1}, "spam"), ({"see": 1, "you": 1}, "ham"), ({"money": 1}, "spam")] * 20
    >>> found = progressive(OnlinePerceptron(), stream, every=20)
    >>> found.seen.tolist(), found.mistakes.tolist(), found.window_error.tolist()
    ([20, 40, 60], [3, 3, 3], [0.15, 0.0, 0.0])
    """
    check({"every": every, "loss": loss, "delay": delay, "verbose": verbose}, _ALLOWED)
    judge, learn = _judge(model, loss), _learning(model, classes)
    if hasattr(against, "fit"):
        check_is_fitted(against)
    rival = None if against is None else _judge(against, loss)
    records, line = [(0, 0, 0.0, 0.0)], StatusLine()
    waiting: deque[tuple[Any, Any, list]] = deque()

    def record() -> None:
        records.append((seen, mistakes, total, others))
        if verbose:
            line.show(_describe(*records[-2][:2], seen, mistakes))

    seen, mistakes, total, others = records[0]
    for x, y, *weight in stream:
        if weight and weight[0] == 0:
            continue
        wrong, lost = judge(x, y)
        seen, mistakes, total = seen + 1, mistakes + wrong, total + lost
        if rival is not None:
            others += rival(x, y)[1]
        waiting.append((x, y, weight))
        if len(waiting) > delay:
            learn(*waiting.popleft())
        if seen % every == 0:
            record()
    for example in waiting:
        learn(*example)
    if seen != records[-1][0]:
        record()
    if verbose:
        line.end()
    columns = np.array(records[1:], np.float64).reshape(-1, 4).T
    counts = columns[:2].astype(np.int64)
    return Evaluation(counts[0], counts[1], columns[2], None if rival is None else columns[3])


def _describe(seen_before: int, mistakes_before: int, seen: int, mistakes: int) -> str:
    last = seen - seen_before
    recent = (mistakes - mistakes_before) / last
    return f"seen {seen:,}  mistakes {mistakes:,} ({mistakes / seen:.2%})  of the last {last:,}: {recent:.2%}"


def _judge(model: Any, loss: str) -> Callable[[RowLike, Any], tuple[bool, float]]:
    """Return a function that tells whether a model predicts a row wrongly, and its loss there."""
    online = hasattr(model, "predict_one")
    if not online and not hasattr(model, "predict"):
        raise UnsupportedOperation(f"a model must have predict_one or predict; {type(model).__name__} has neither")
    predict = model.predict_one if online else lambda x: _first(model.predict, x)
    scores = "score_one" if online else "decision_function"

    def judge(x: RowLike, y: Any) -> tuple[bool, float]:
        wrong = bool(predict(x) != y)
        if loss == "zero-one":
            return wrong, float(wrong)
        if not hasattr(model, scores):
            raise UnsupportedOperation(
                f"loss={loss!r} needs scores, and {type(model).__name__} has no {scores}", settings={"loss": "zero-one"}
            )
        by_label = model.score_one(x) if online else _decisions(model, x)
        return wrong, max(0.0, (1.0 if loss == "hinge" else 0.0) - _margin(by_label, y))

    return judge


def _learning(model: Any, classes: ArrayLike | None) -> Callable[[RowLike, Any, list], None]:
    """Return a function by which a model learns from a row, its label, and [its weight] or []."""
    if hasattr(model, "learn_one"):
        return lambda x, y, weight: model.learn_one(x, y, **({"w": weight[0]} if weight else {}))
    if not hasattr(model, "partial_fit"):
        raise UnsupportedOperation(f"a learner must have learn_one or partial_fit; {type(model).__name__} has neither")
    options = {} if classes is None else {"classes": classes}

    def learn(x: RowLike, y: Any, weight: list) -> None:
        weights = {"sample_weight": np.array(weight)} if weight else {}
        model.partial_fit(_matrix(x), np.asarray([y]), **options, **weights)

    return learn


def _matrix(x: Any) -> Any:
    """Return one row as a matrix of one row."""
    return x.reshape(1, -1) if sp.issparse(x) else np.asarray(x)[None]


def _first(method: Callable[[Any], Any], x: RowLike) -> Any:
    """Return what a method of a model returns for a single row; None from a model that has not been fitted."""
    try:
        return method(_matrix(x))[0]
    except ValueError as error:
        if not isinstance(error, AttributeError):  # a NotFittedError is both
            raise
        return None


def _decisions(model: Any, x: RowLike) -> dict[Any, float]:
    decision = _first(model.decision_function, x)
    if decision is None:
        return {}
    values = np.ravel(decision).tolist()
    return dict(zip(model.classes_.tolist(), values if len(values) > 1 else [-values[0], values[0]], strict=True))


def _margin(scores: Mapping[Any, float], y: Any) -> float:
    """Return the margin of a label: the score itself between two classes, else the lead over the best rival. A label that
    has not come yet has the score 0, as its weights will have."""
    own = scores.get(y, 0.0)
    if len(scores) == 2 and y in scores:
        return own
    return own - max((score for label, score in scores.items() if label != y), default=own)
