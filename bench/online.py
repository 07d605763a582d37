"""One example at a time: predict it, then learn from it, side by side with River."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Missing
from bench.report import Result
from rosenblatt import Perceptron
from rosenblatt.cli.workloads import measure_in_turns, timed
from rosenblatt.online import OnlinePerceptron

Stream = list[tuple[dict[str, float], bool]]


def mails(rows: int, vocabulary: int, words: int = 60, valued: bool = False, seed: int = 0) -> Stream:
    """Rows of `words` different words, frequent ones often and rare ones rarely, each with value 1 or between 0 and 2; a
    linear rule tells the label, and rows near its boundary are left out, so that a perceptron errs on one row in eight."""
    rng = np.random.default_rng(seed)
    names = [f"word={j}" for j in range(vocabulary)]
    share = np.cumsum(1 / np.arange(1, vocabulary + 1) ** 0.8)
    weight = rng.standard_normal(vocabulary)
    stream: Stream = []
    while len(stream) < rows:
        for row in np.searchsorted(share, rng.random((1000, 2 * words)) * share[-1]):
            chosen = np.array(list(dict.fromkeys(row.tolist()))[:words])
            values = rng.random(words) * 2 if valued else np.ones(words)
            score = weight[chosen] @ values
            if abs(score) > 9:
                stream.append(({names[j]: v for j, v in zip(chosen, values.tolist(), strict=True)}, bool(score > 0)))
    return stream[:rows]


def pass_over(stream: Stream, model: Callable[[], Any]) -> Callable[[], int]:
    """The mistakes of a new model that predicts each row, then learns from it."""

    def work() -> int:
        learner, mistakes = model(), 0
        for x, y in stream:
            mistakes += learner.predict_one(x) != y
            learner.learn_one(x, y)
        return mistakes

    return work


def one_at_a_time(
    folder: Path | None, repeat: int, vocabulary: int = 20_000, valued: bool = False, keep: str = "last"
) -> Result:
    """River's time / ours, for a pass that predicts and learns each of 10,000 rows of 60 named features."""
    try:
        from river import linear_model
    except ImportError:
        raise Missing("River is not installed") from None
    stream = mails(10_000, vocabulary, valued=valued)
    a, b = measure_in_turns(
        timed(pass_over(stream, lambda: OnlinePerceptron(keep=keep))),
        timed(pass_over(stream, linear_model.Perceptron)),
        repeat=repeat,
        warm_up=1,
    )
    each = [turn.cost / len(stream) * 1e6 for turn in (a, b)]
    name = f"10,000 rows of 60 named features out of {vocabulary:,}, predicted and learned one by one"
    name += (", values between 0 and 2" if valued else "") + ("" if keep == "last" else f", keep={keep!r}")
    errors = [turn.result / len(stream) for turn in (a, b)]
    note = (
        f"{each[0]:.1f} and {each[1]:.1f} µs a row; {errors[0]:.1%} and {errors[1]:.1%} mistakes; peer: River's Perceptron"
    )
    return Result(name, a.cost, b.cost, b.cost / a.cost, a.result <= 1.05 * b.result, note)


def one_dense_row(folder: Path | None, repeat: int, features: int = 100) -> Result:
    """Our time, in microseconds, for predicting one row of an array."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, features))
    model = OnlinePerceptron()
    model.learn_many(X, X[:, 0] > 0)
    (turn,) = measure_in_turns(timed(lambda: [model.predict_one(x) for x in X]), repeat=max(repeat, 5), warm_up=1)
    expected = Perceptron(unknown_class="grow", keep="last").partial_fit(X, X[:, 0] > 0).predict(X)
    right = turn.result == expected.tolist()
    each = turn.cost / len(X) * 1e6
    return Result(f"predict_one, dense row of {features}", turn.cost, None, each, right, "µs a row; 1,000 rows")
