"""What `rosenblatt doctor --warm` compiles. Each set of kernels is compiled by running what needs it on a few examples."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from rosenblatt.engine import kernel_cache

_WORDS = [["the", "dog", "barks"], ["a", "cat", "sees", "the", "dog"], ["cats", "sleep", "here"]]
_TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB", "DET", "NOUN"], ["NOUN", "VERB", "ADV"]]
_TREES = [
    [(2, "det"), (3, "nsubj"), (0, "root")],
    [(2, "det"), (3, "nsubj"), (0, "root"), (5, "det"), (3, "obj")],
    [(2, "nsubj"), (0, "root"), (2, "advmod")],
]


def linear() -> None:
    """Perceptron and passive-aggressive on dense and sparse matrices, two classes and more"""
    import scipy.sparse as sp

    from rosenblatt import PassiveAggressiveClassifier, Perceptron

    X = np.random.default_rng(0).normal(size=(60, 5))
    for matrix in (X, sp.csr_array(X)):
        for y in ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])):
            for learner in (Perceptron(), PassiveAggressiveClassifier()):
                learner.fit(matrix, y).predict(matrix)


def text() -> None:
    """train and predict of text files"""
    from rosenblatt.workflow import Options, make_learner, reading_for, train

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mail.tsv"
        path.write_text("ham\tsee you at noon\nspam\twin a free prize\nham\tlunch at noon\nspam\tclaim your prize\n")
        reading = reading_for([str(path)], target=0, text=[1])
        model = train(str(path), reading, make_learner("perceptron"), Options(passes=2))
        model.save(Path(folder) / "model")
        model.predict(str(path))


def online() -> None:
    """OnlinePerceptron, one example at a time"""
    from rosenblatt.online import OnlinePerceptron

    for labels in ((False, True), ("a", "b", "c")):
        model = OnlinePerceptron()
        for number in range(6):
            example = {"bias": 1.0, f"word{number}": 2.0}
            model.predict_one(example)
            model.learn_one(example, labels[number % len(labels)])


def kernel() -> None:
    """KernelPerceptron with a Gaussian kernel"""
    from rosenblatt import KernelPerceptron

    X = np.random.default_rng(0).normal(size=(30, 3))
    KernelPerceptron().fit(X, (X[:, 0] > 0).astype(int)).predict(X)


def tagger() -> None:
    """SequenceTagger"""
    from rosenblatt.structured import SequenceTagger

    SequenceTagger().fit(_WORDS, _TAGS).predict(_WORDS)


def parser() -> None:
    """TransitionParser, greedy and with a beam, and GraphParser"""
    from rosenblatt.structured import GraphParser, TransitionParser

    X = [list(zip(*sentence, strict=True)) for sentence in zip(_WORDS, _TAGS, strict=True)]
    for each in (TransitionParser, GraphParser):
        each(fields=("form", "upos")).fit(X, _TREES).predict(X)
    TransitionParser(beam=4, fields=("form", "upos")).fit(X, _TREES).predict(X)


SETS: dict[str, Callable[[], None]] = {each.__name__: each for each in (linear, text, online, kernel, tagger, parser)}
DEFAULT = ("linear", "text", "online")


def compile_set(name: str) -> dict[str, Any]:
    """Compile one set; return how long it took, how many kernels were compiled and how many were cached before."""
    start, before = perf_counter(), kernel_cache.COUNTS.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # training on so few examples does not converge
        SETS[name]()
    new = kernel_cache.COUNTS - before
    return {"what": name, "seconds": perf_counter() - start, "compiled": new["compiled"], "cached": new["loaded"]}
