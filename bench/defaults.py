"""What one gets without asking: estimators with no parameter set, ours and scikit-learn's, on the same splits of data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets, linear_model
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.data import file_in, mnist, newsgroups, svmlight
from bench.report import Result
from rosenblatt import Perceptron
from rosenblatt.cli.workloads import measure_in_turns, timed

SPLITS = 20
_EQUAL = 0.0005  # the accuracies of mushrooms are 1 to the third digit


def _spambase(folder: Path | None) -> tuple[Any, Any]:
    table = np.genfromtxt(file_in(folder, "spambase.csv.gz"), delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1]


TABLES: dict[str, Callable[[Path | None], tuple[Any, Any]]] = {
    "iris": lambda folder: datasets.load_iris(return_X_y=True),
    "wine": lambda folder: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda folder: datasets.load_breast_cancer(return_X_y=True),
    "spambase": _spambase,
}
OTHERS: dict[str, Callable[[Path | None], tuple[Any, Any]]] = {
    "digits": lambda folder: datasets.load_digits(return_X_y=True),
    "mushrooms": lambda folder: svmlight(folder, "mushrooms.svm.gz")[1:],
    "a9a": lambda folder: svmlight(folder, "a9a.train.svm.gz")[1:],
    "w8a": lambda folder: svmlight(folder, "w8a.svm.gz")[1:],
    "MNIST, 10,000 rows": lambda folder: tuple(part[:10_000] for part in mnist(folder)[1:]),
    "20 newsgroups": lambda folder: newsgroups(folder)[1:],
}


def default_accuracy(folder: Path | None, repeat: int, scaled: bool) -> Result:
    """Return our mean accuracy − scikit-learn's, in points, over data sets and 20 splits of each, a quarter held out. It
    is right if ours is nowhere lower. With `scaled`, tables only, behind a StandardScaler, where it may be."""
    scores: dict[str, tuple[float, float]] = {}
    for name, read in TABLES.items() if scaled else (TABLES | OTHERS).items():
        X, y = read(folder)
        pairs = [_accuracies(X, y, split, scaled) for split in range(SPLITS)]
        ours, theirs = np.mean(pairs, axis=0).tolist()
        scores[name] = (ours, theirs)
    ours, theirs = np.mean(list(scores.values()), axis=0).tolist()
    note = "; ".join(f"{name} {a:.3f} against {b:.3f}" for name, (a, b) in scores.items())
    what = "standardised tables" if scaled else f"{len(scores)} data sets as they come"
    right = scaled or all(a >= b - _EQUAL for a, b in scores.values())
    return Result(f"`Perceptron()`, {what}", ours, theirs, 100 * (ours - theirs), right, note, "accuracy")


def _accuracies(X: Any, y: Any, split: int, scaled: bool) -> list[float]:
    train, test, labels, answers = train_test_split(X, y, random_state=split, stratify=y)
    found = []
    for model in (Perceptron(random_state=split), linear_model.Perceptron(random_state=split)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            chosen = make_pipeline(StandardScaler(), model) if scaled else model
            found.append(float(chosen.fit(train, labels).score(test, answers)))
    return found


def separable_sets(folder: Path | None, repeat: int) -> Result:
    """Return how many of 1,000 random separable sets `Perceptron()` separates, and how many scikit-learn's does."""
    rng, ours, theirs, count = np.random.default_rng(0), 0, 0, 1000
    for _ in range(count):
        features = int(rng.integers(2, 11))
        X = rng.normal(size=(30, features))
        scores = X @ rng.normal(size=features)
        y = scores > np.sort(scores)[int(rng.integers(28))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            ours += Perceptron().fit(X, y).score(X, y) == 1
            theirs += linear_model.Perceptron().fit(X, y).score(X, y) == 1
    note = "30 rows of 2 to 10 normal features, labels by a random hyperplane; the rest need over 1,000 epochs"
    return Result("random separable sets, `Perceptron().fit`", ours, theirs, ours / count, True, note, "")


def default_time(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the time of a fit with no parameter set / that of a fit that keeps the last weights."""
    X, y = OTHERS[name](folder)
    a, b = measure_in_turns(
        timed(lambda: Perceptron().fit(X, y)), timed(lambda: Perceptron(keep="last").fit(X, y)), repeat=repeat, warm_up=1
    )
    note = f"{a.result.n_iter_} epochs, {b.result.n_iter_} of the peer: ours that keeps the last weights"
    return Result(f"{name}, fit of `Perceptron()`", a.cost, b.cost, a.cost / b.cost, True, note)
