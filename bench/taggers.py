"""The taggers of others: CRFsuite's averaged perceptron, with features written in Python as its users do, and NLTK's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.data import Missing

Sentences = Sequence[Sequence[str]]


def plain_features(words: Sequence[str]) -> list[list[str]]:
    """The features of python-crfsuite's own example, for part-of-speech tags: the word, its ends, its neighbours."""
    rows = []
    for i, word in enumerate(words):
        low = word.lower()
        row = ["bias", f"w={low}", f"s3={low[-3:]}", f"s2={low[-2:]}", f"up={word.isupper()}", f"title={word.istitle()}"]
        row.append(f"digit={word.isdigit()}")
        for name, at in (("-1", i - 1), ("+1", i + 1)):
            if 0 <= at < len(words):
                other = words[at]
                row += [f"{name}:w={other.lower()}", f"{name}:title={other.istitle()}", f"{name}:up={other.isupper()}"]
            else:
                row.append(f"{name}:none")
        rows.append(row)
    return rows


def rich_features(words: Sequence[str]) -> list[list[str]]:
    """More of the same: all ends up to four letters, two neighbours on each side, pairs of words."""
    rows = []
    low = ["<s>", "<s>", *(word.lower() for word in words), "</s>", "</s>"]
    for i, word in enumerate(words):
        here = low[i + 2]
        row = ["bias", f"form={word}", f"w={here}"]
        row += [f"p{n}={here[:n]}" for n in range(1, 5)] + [f"s{n}={here[-n:]}" for n in range(1, 5)]
        row += [f"digit={any(map(str.isdigit, word))}", f"hyphen={'-' in word}", f"title={word[:1].isupper()}"]
        row += [f"{k}:w={low[i + 2 + k]}" for k in (-2, -1, 1, 2)] + [f"{k}:s3={low[i + 2 + k][-3:]}" for k in (-1, 1)]
        row += [f"-1|0={low[i + 1]}|{here}", f"0|1={here}|{low[i + 3]}", f"-2|-1={low[i]}|{low[i + 1]}"]
        rows.append(row)
    return rows


class CRFsuite:
    """CRFsuite's averaged perceptron with features written in Python."""

    def __init__(self, features: Callable[[Any], list[list[str]]], epochs: int):
        try:
            import pycrfsuite
        except ImportError:
            raise Missing("python-crfsuite is not installed") from None
        self.suite, self.features, self.epochs = pycrfsuite, features, epochs
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "model"

    def fit(self, sentences: Sentences, tags: Sentences) -> CRFsuite:
        trainer = self.suite.Trainer(algorithm="ap", verbose=False)
        trainer.set_params({"max_iterations": self.epochs})
        for words, gold in zip(sentences, tags, strict=True):
            if words:
                trainer.append(self.features(words), gold)
        trainer.train(str(self.path))
        self.tagger = self.suite.Tagger()
        self.tagger.open(str(self.path))
        return self

    def predict(self, sentences: Sentences) -> list[list[str]]:
        return [self.tagger.tag(self.features(words)) for words in sentences]


class NLTK:
    """NLTK's PerceptronTagger: greedy, averaged."""

    def __init__(self, epochs: int):
        try:
            from nltk.tag.perceptron import PerceptronTagger
        except ImportError:
            raise Missing("NLTK is not installed") from None
        self.tagger, self.epochs = PerceptronTagger(load=False), epochs

    def fit(self, sentences: Sentences, tags: Sentences) -> NLTK:
        import random

        random.seed(0)
        pairs = [list(zip(words, gold, strict=True)) for words, gold in zip(sentences, tags, strict=True)]
        self.tagger.train(pairs, nr_iter=self.epochs)
        return self

    def predict(self, sentences: Sentences) -> list[list[str]]:
        return [[tag for _, tag in self.tagger.tag(words)] for words in sentences]
