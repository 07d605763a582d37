"""Words in, tags and trees out: taggers first, then a parser that reads their tags.

A parser that will read predicted tags must learn from predicted tags, with the errors that taggers make on sentences they
have not seen. So the training sentences are tagged by jackknife: each part by taggers that learned from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral
from os import PathLike
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rosenblatt.data.conllu import Sentence
from rosenblatt.estimators.base import unchanged_on_error
from rosenblatt.modelfile import container
from rosenblatt.structured.base import Structured, checked, checked_pair
from rosenblatt.structured.graph.parser import GraphParser
from rosenblatt.structured.parser import DependencyParser
from rosenblatt.structured.tags.tagger import SequenceTagger
from rosenblatt.structured.transition.parser import TransitionParser

_PARTS: dict[str, type[Structured]] = {kind.__name__: kind for kind in (SequenceTagger, GraphParser, TransitionParser)}
_HEAD_COLUMNS = ("head", "deprel")


def jackknifed(learner: Any, X: Sequence, y: Sequence, folds: int = 5) -> list:
    """An answer for each example, by a learner that learned from the others: from all parts but its own, of `folds` parts
    that take every `folds`-th example each. The learner itself is left as it is."""
    if not 2 <= folds <= len(X):
        raise ValueError(f"folds must be from 2 to the number of examples, {len(X)}; got {folds}")
    answers: list = [None] * len(X)
    for fold in range(folds):
        rest = [i for i in range(len(X)) if i % folds != fold]
        part = range(fold, len(X), folds)
        able = clone(learner).fit([X[i] for i in rest], [y[i] for i in rest])
        for i, answer in zip(part, able.predict([X[i] for i in part]), strict=True):
            answers[i] = answer
    return answers


class TagAndParse(BaseEstimator):
    """Tags and trees for plain words.

    Parameters
    ----------
    parser : a parser, whose `fields` after the form are the tags it reads
    taggers : one tagger for all these tags, or a dictionary from the name of a tag to its tagger
    folds : parts of the jackknife; 0 trains the parser on the tags as they are given

    An answer for a word is the tags that the parser reads, in its order, then the head and the label: with the usual fields
    (upos, xpos, head, label). `fit` takes the same.

    >>> from rosenblatt.structured import SequenceTagger, TagAndParse, TransitionParser
    >>> X = [["dogs", "bark"], ["cats", "sleep"]] * 5
    >>> y = [[("NOUN", 2, "nsubj"), ("VERB", 0, "root")]] * 10
    >>> both = TagAndParse(TransitionParser(fields=("form", "upos")), SequenceTagger(), folds=2).fit(X, y)
    >>> both.predict([["cats", "bark"]])
    [[('NOUN', 2, 'nsubj'), ('VERB', 0, 'root')]]
    """

    taggers_: dict[str, SequenceTagger]
    parser_: DependencyParser

    def __init__(
        self, parser: DependencyParser, taggers: SequenceTagger | Mapping[str, SequenceTagger], folds: int = 5
    ) -> None:
        self.parser = parser
        self.taggers = taggers
        self.folds = folds

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> TagAndParse:
        """Learn taggers and parser from sentences (lists of words) and what is right for their words.

        With `X_val` and `y_val`, the error of the parser on these sentences, tagged by the taggers, is measured after each
        epoch.
        """
        with unchanged_on_error(self):
            X, y = checked_pair(X, y)
            if not isinstance(self.parser, DependencyParser):
                raise TypeError(f"parser must be a GraphParser or a TransitionParser; got {type(self.parser).__name__}")
            if isinstance(self.folds, bool) or not isinstance(self.folds, Integral):
                raise TypeError(f"folds must be a whole number, 0 for no jackknife; got {self.folds!r}")
            tags = tuple(self.parser.fields[1:])
            if "parser" in tags:
                raise ValueError("a tag cannot be called 'parser', for that is what the file calls the parser; rename it")
            asked = self.taggers if isinstance(self.taggers, Mapping) else dict.fromkeys(tags, self.taggers)
            if set(asked) != set(tags):
                raise ValueError(f"the parser reads {', '.join(tags)}; taggers are given for {', '.join(asked)}")
            gold, trees = _columns(y, len(tags))
            read = gold
            if self.folds:
                read = [jackknifed(asked[tag], X, gold[i], self.folds) for i, tag in enumerate(tags)]
            taggers = {tag: clone(asked[tag]).fit(X, gold[i]) for i, tag in enumerate(tags)}
            validation: tuple[Any, Any] = (None, None)
            if X_val is not None:
                X_val, y_val = checked_pair(X_val, y_val)
                guesses = [tagger.predict(X_val) for tagger in taggers.values()]
                validation = _tokens(X_val, guesses), _columns(y_val, len(tags))[1]
            parser = clone(self.parser).fit(_tokens(X, read), trees, *validation)
            self.taggers_, self.parser_ = taggers, parser
        return self

    def tag(self, X: Any) -> list[list[tuple[str, ...]]]:
        """Each sentence as tokens that the parser reads: (form, tag, ...)."""
        check_is_fitted(self)
        X = checked(X)
        return _tokens(X, [tagger.predict(X) for tagger in self.taggers_.values()])

    def predict(self, X: Any) -> list[list[tuple]]:
        """For each word of each sentence its tags, its head and its label."""
        tokens = self.tag(X)
        return [
            [(*token[1:], head, label) for token, (head, label) in zip(sentence, tree, strict=True)]
            for sentence, tree in zip(tokens, self.parser_.predict(tokens), strict=True)
        ]

    def score(self, X: Any, y: Any) -> float:
        """The share of words whose head and label are right, whatever their tags. Labels count whole; `evaluation.trees`
        leaves out what follows a colon, as CoNLL 2018 does."""
        X, y = checked_pair(X, y)
        right = parts = 0
        for gold, guess in zip(y, self.predict(X), strict=True):
            right += sum(tuple(a)[-2:] == b[-2:] for a, b in zip(gold, guess, strict=True))
            parts += len(gold)
        return right / max(parts, 1)

    def annotate(self, sentences: Iterable[Sentence], batch: int = 1000) -> Iterator[Sentence]:
        """The sentences of a CoNLL-U file with tags, heads and labels written into their columns, in a stream.

        Fields of the parser must be called as the columns of the file are.
        """
        check_is_fitted(self)
        if batch < 1:
            raise ValueError(f"batch must be at least 1 sentence; got {batch}")
        stream = opened(sentences)
        while some := list(islice(stream, batch)):
            answers = self.predict([sentence.forms for sentence in some])
            for sentence, answer in zip(some, answers, strict=True):
                names = (*self.taggers_, *_HEAD_COLUMNS)
                columns = {name: [str(word[i]) for word in answer] for i, name in enumerate(names)}
                yield sentence.with_columns(**columns)

    # Files

    def save(self, path: str | PathLike, resume: bool = False) -> None:
        """Write taggers and parser into one file, which replaces an old one only when it is complete. With `resume=True`
        each of them can go on learning."""
        container.write(path, *self._written(resume))

    def _written(self, resume: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        check_is_fitted(self)
        parts: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name, part in {**self.taggers_, "parser": self.parser_}.items():
            parts[name], own = part._written(resume)
            arrays |= {f"{name}/{array}": value for array, value in own.items()}
        return {"learner": type(self).__name__, "parts": parts, "folds": int(self.folds)}, arrays

    @classmethod
    def load(cls, path: str | PathLike) -> TagAndParse:
        """The taggers and the parser that were saved in a file. Nothing in the file is run as code."""
        return cls._restored(*container.read(path), str(path))

    @classmethod
    def _restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, Any], source: str) -> TagAndParse:
        if facts.get("learner") != cls.__name__:
            raise container.UnreadableModel(f"{source} holds a {facts.get('learner')}, not a {cls.__name__}")
        made: dict[str, Any] = {}
        try:
            for name, part in facts["parts"].items():
                own = {key.removeprefix(f"{name}/"): value for key, value in arrays.items() if key.startswith(f"{name}/")}
                made[name] = _PARTS[part["learner"]]._restored(part, own, f"{source} ({name})")
            parser = made.pop("parser")
            if not isinstance(parser, DependencyParser) or tuple(made) != tuple(parser.fields[1:]):
                raise ValueError(
                    f"its parser reads {parser.get_params().get('fields')}, but there are taggers for {list(made)}"
                )
            pipeline = cls(clone(parser), {name: clone(tagger) for name, tagger in made.items()}, int(facts["folds"]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise container.UnreadableModel(f"{source} is damaged: {type(error).__name__}: {error}") from None
        pipeline.taggers_, pipeline.parser_ = made, parser
        return pipeline


def _columns(y: Sequence, tags: int) -> tuple[list[list[list[str]]], list[list[tuple[int, str]]]]:
    """The tags, each as a list of sentences, and the trees."""
    for number, sentence in enumerate(y):
        for i, word in enumerate(sentence):
            if isinstance(word, str) or len(word) != tags + 2:
                raise ValueError(
                    f"sentence {number}, word {i + 1}: an answer must be {tags} tags, a head and a label; got {word!r}"
                )
    columns = [[[word[i] for word in sentence] for sentence in y] for i in range(tags)]
    return columns, [[(word[-2], word[-1]) for word in sentence] for sentence in y]


def _tokens(X: Sequence, tags: Sequence) -> list[list[tuple[str, ...]]]:
    return [list(zip(*parts, strict=True)) for parts in zip(X, *tags, strict=True)]


def opened(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sentences, if they are such; a path must be opened first."""
    if isinstance(sentences, str | PathLike):
        raise TypeError(f"sentences must be those of a file: conllu.read({str(sentences)!r}); got its name")
    for sentence in sentences:
        if not isinstance(sentence, Sentence):
            raise TypeError(f"a sentence of conllu.read, conllu.parse or conllu.Sentence.of is needed; got {sentence!r}")
        yield sentence


def examples(sentences: Iterable[Sentence], tags: Sequence[str] = ("upos", "xpos")) -> tuple[list, list]:
    """(X, y) of the sentences of a CoNLL-U file: their forms, and the tags, head and label of each word."""
    X, y = [], []
    for sentence in opened(sentences):
        X.append(sentence.forms)
        columns = [sentence.column(tag) for tag in tags]
        y.append([(*word[:-1], *word[-1]) for word in zip(*columns, sentence.tree(), strict=True)])
    return X, y
