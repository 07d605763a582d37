"""Words in, tags and trees out: taggers first, then a parser that reads their tags.

A parser that will read predicted tags must learn from predicted tags, with the errors that taggers make on sentences they
have not seen. So the training sentences are tagged by jackknife: each part by taggers that learned from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral
from os import PathLike
from typing import Any, Protocol, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rosenblatt.data.conllu import Sentence
from rosenblatt.errors import DamagedModel, InvalidData, InvalidDataType, InvalidParameter, InvalidParameterType, shown
from rosenblatt.estimators.base import unchanged_on_error
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import SaveLoadMixin
from rosenblatt.structured.base import StructuredEstimator, check_examples, check_pair, take
from rosenblatt.structured.graph.parser import GraphParser
from rosenblatt.structured.parser import DependencyParser
from rosenblatt.structured.tags.sources import FeaturedSentences
from rosenblatt.structured.tags.tagger import SequenceTagger
from rosenblatt.structured.transition.parser import TransitionParser

_KINDS: dict[str, type[StructuredEstimator]] = {
    kind.__name__: kind for kind in (SequenceTagger, GraphParser, TransitionParser)
}
_HEAD_COLUMNS = ("head", "deprel")


class FitsAndPredicts(Protocol):
    """A learner that scikit-learn can clone."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from examples and their answers."""

    def predict(self, X: Any) -> Iterable:
        """Return an answer for each example."""


def jackknife(learner: FitsAndPredicts, X: Sequence, y: Sequence, folds: int = 5) -> list:
    """Return an answer for each example, by a learner that learned from the others.

    Parameters
    ----------
    learner : estimator
        What learns; it is cloned, and left as it is.
    X : sequence
        The examples.
    y : sequence
        Their answers.
    folds : int, default=5
        How many parts the examples are cut into: each takes every `folds`-th example, and is answered by a learner that
        learned from all other parts.

    Returns
    -------
    list
        The answers, in the order of the examples.
    """
    if not 2 <= folds <= len(X):
        raise InvalidParameter("folds", folds, f"from 2 to the number of examples, {len(X)}")
    answers: list = [None] * len(X)
    for fold in range(folds):
        rest = [i for i in range(len(X)) if i % folds != fold]
        part = range(fold, len(X), folds)
        trained = clone(learner).fit(take(X, rest), take(y, rest))
        for i, answer in zip(part, trained.predict(take(X, part)), strict=True):
            answers[i] = answer
    return answers


jackknifed = jackknife  # as it was called before


class TagAndParse(SaveLoadMixin, BaseEstimator):
    """A pipeline that gives plain words tags and trees.

    An answer for a word is the tags that the parser reads, in its order, then the head and the label: with the usual fields
    (upos, xpos, head, label). `fit` takes the same.

    Parameters
    ----------
    parser : GraphParser or TransitionParser
        The parser, whose `fields` after the form are the tags it reads.
    taggers : SequenceTagger or mapping of str to SequenceTagger
        One tagger for all these tags, or a dictionary from the name of a tag to its tagger.
    folds : int, default=5
        Parts of the jackknife; 0 trains the parser on the tags as they are given.

    Attributes
    ----------
    taggers_ : dict of str to SequenceTagger
        The trained taggers.
    parser_ : GraphParser or TransitionParser
        The trained parser.

    Examples
    --------
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

    def fit(self, X: Iterable, y: Iterable, X_val: Iterable | None = None, y_val: Iterable | None = None) -> Self:
        """Learn taggers and parser.

        The features of the sentences are computed once for all taggers that have the same templates and fields, and for
        all parts of the jackknife.

        Parameters
        ----------
        X : iterable of sequences of str
            The sentences, as words.
        y : iterable of sequences of tuples
            For each word its tags, its head and its label.
        X_val, y_val : iterable, optional
            Sentences and answers to judge the parser by after each epoch, on tags that the taggers give them.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            X, y = check_pair(X, y)
            if not isinstance(self.parser, DependencyParser):
                allowed = "a GraphParser or a TransitionParser"
                raise InvalidParameterType("parser", type(self.parser).__name__, allowed)
            if isinstance(self.folds, bool) or not isinstance(self.folds, Integral):
                raise InvalidParameterType("folds", self.folds, "a whole number, 0 for no jackknife")
            tags = tuple(self.parser.fields[1:])
            if "parser" in tags:
                raise InvalidParameter("fields", tags, "names other than 'parser', which model files use for the parser")
            taggers = self.taggers if isinstance(self.taggers, Mapping) else dict.fromkeys(tags, self.taggers)
            if set(taggers) != set(tags):
                raise InvalidParameter(
                    "taggers", list(taggers), f"given for the tags that the parser reads: {', '.join(tags)}"
                )
            gold, trees = _columns(y, len(tags))
            words, read = FeaturedSentences(X), gold
            if self.folds:
                read = [jackknife(taggers[tag], words, gold[i], self.folds) for i, tag in enumerate(tags)]
            trained = {tag: clone(taggers[tag]).fit(words, gold[i]) for i, tag in enumerate(tags)}
            validation: tuple = ()
            if X_val is not None and y_val is not None:
                X_val, y_val = check_pair(X_val, y_val, ("X_val", "y_val"))
                guesses = [tagger.predict(X_val) for tagger in trained.values()]
                validation = _tokens(X_val, guesses), _columns(y_val, len(tags))[1]
            parser = clone(self.parser).fit(_tokens(X, read), trees, *validation)
            self.taggers_, self.parser_ = trained, parser
        return self

    def tag(self, X: Iterable) -> list[list[tuple[str, ...]]]:
        """Return each sentence as tokens that the parser reads.

        Parameters
        ----------
        X : iterable of sequences of str
            The sentences, as words.

        Returns
        -------
        list of lists of tuples
            (form, tag, ...) for each word.
        """
        check_is_fitted(self)
        X = check_examples(X)
        return _tokens(X, [tagger.predict(X) for tagger in self.taggers_.values()])

    def predict(self, X: Iterable) -> list[list[tuple]]:
        """Return for each word of each sentence its tags, its head and its label.

        Parameters
        ----------
        X : iterable of sequences of str
            The sentences, as words.

        Returns
        -------
        list of lists of tuples
        """
        tokens = self.tag(X)
        return [
            [(*token[1:], head, label) for token, (head, label) in zip(sentence, tree, strict=True)]
            for sentence, tree in zip(tokens, self.parser_.predict(tokens), strict=True)
        ]

    def score(self, X: Iterable, y: Iterable) -> float:
        """Return the share of words whose head and label are right, whatever their tags.

        Labels count whole; `evaluation.trees` leaves out what follows a colon, as CoNLL 2018 does.

        Parameters
        ----------
        X : iterable of sequences of str
            The sentences, as words.
        y : iterable of sequences of tuples
            For each word its tags, its head and its label.

        Returns
        -------
        float
            Between 0 and 1.
        """
        X, y = check_pair(X, y)
        right = parts = 0
        for gold, guess in zip(y, self.predict(X), strict=True):
            right += sum(tuple(a)[-2:] == b[-2:] for a, b in zip(gold, guess, strict=True))
            parts += len(gold)
        return right / max(parts, 1)

    def annotate(self, sentences: Iterable[Sentence], batch: int = 1000) -> Iterator[Sentence]:
        """Yield the sentences of a CoNLL-U file with tags, heads and labels in their columns.

        Fields of the parser must be called as the columns of the file are.

        Parameters
        ----------
        sentences : iterable of conllu.Sentence
            The sentences, perhaps a stream.
        batch : int, default=1000
            How many sentences are tagged and parsed at a time.

        Yields
        ------
        conllu.Sentence
        """
        check_is_fitted(self)
        if batch < 1:
            raise InvalidParameter("batch", batch, "at least 1 sentence")
        stream = check_sentences(sentences)
        while some := list(islice(stream, batch)):
            answers = self.predict([sentence.forms for sentence in some])
            for sentence, answer in zip(some, answers, strict=True):
                names = (*self.taggers_, *_HEAD_COLUMNS)
                columns = {name: [str(word[i]) for word in answer] for i, name in enumerate(names)}
                yield sentence.with_columns(**columns)

    # Files

    def save(self, path: str | PathLike, resume: bool = False) -> None:
        """Save taggers and parser in one file, which replaces an old one only when it is complete.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        resume : bool, default=False
            Save all that learning needs to go on; without it the file holds what predicts, which is several times smaller.
        """
        super().save(path, resume)

    def to_parts(self, resume: bool = False) -> Parts:
        """Return taggers and parser as facts and arrays.

        Parameters
        ----------
        resume : bool, default=False
            Whether to include all that learning needs to go on.

        Returns
        -------
        Parts
        """
        check_is_fitted(self)
        learners = Parts()
        for name, learner in {**self.taggers_, "parser": self.parser_}.items():
            learners.put_parts(name, learner.to_parts(resume))
        return Parts({"learner": type(self).__name__, "parts": learners.facts, "folds": int(self.folds)}, learners.arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Return the pipeline that was saved.

        Parameters
        ----------
        parts : Parts
            What `to_parts` returned.

        Returns
        -------
        TagAndParse
        """
        learners = Parts(parts.mapping("parts"), parts.arrays)
        made: dict[str, Any] = {}
        for name in learners.facts:
            part = learners.parts(name)
            made[name] = _KINDS[part.text("learner", _KINDS)].from_parts(part)
        if "parser" not in made:
            raise DamagedModel("a pipeline without a parser")
        parser = made.pop("parser")
        fields = parser.fields if isinstance(parser, DependencyParser) else None
        if not isinstance(fields, tuple | list) or tuple(made) != tuple(fields[1:]):
            raise DamagedModel(f"its parser reads {fields!r:.80}, but there are taggers for {list(made)!r:.80}")
        pipeline = cls(clone(parser), {name: clone(tagger) for name, tagger in made.items()}, parts.whole("folds"))
        pipeline.taggers_, pipeline.parser_ = made, parser
        return pipeline


def _columns(y: Sequence, tags: int) -> tuple[list[list[list[str]]], list[list[tuple[int, str]]]]:
    """Return the tags, each as a list of sentences, and the trees."""
    for number, sentence in enumerate(y):
        for i, word in enumerate(sentence):
            if isinstance(word, str) or len(word) != tags + 2:
                place = f"sentence {number}, word {i + 1}"
                raise InvalidData(
                    f"{place}: an answer must be {tags} tags, a head and a label; got {shown(word)}", row=number
                )
    columns = [[[word[i] for word in sentence] for sentence in y] for i in range(tags)]
    return columns, [[(word[-2], word[-1]) for word in sentence] for sentence in y]


def _tokens(X: Sequence, tags: Sequence) -> list[list[tuple[str, ...]]]:
    return [list(zip(*parts, strict=True)) for parts in zip(X, *tags, strict=True)]


def check_sentences(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences, if they are those of a file; a path must be opened first."""
    if isinstance(sentences, str | PathLike):
        raise InvalidDataType(
            f"sentences must be those of a file; got its name, {shown(str(sentences))}",
            hint=f"conllu.read({str(sentences)!r})",
        )
    for sentence in sentences:
        if not isinstance(sentence, Sentence):
            raise InvalidDataType(
                f"a sentence of conllu.read, conllu.parse or conllu.Sentence.of is needed; got {shown(sentence)}"
            )
        yield sentence


def examples(sentences: Iterable[Sentence], tags: Sequence[str] = ("upos", "xpos")) -> tuple[list, list]:
    """Return words and answers to train a pipeline with, from the sentences of a CoNLL-U file.

    Parameters
    ----------
    sentences : iterable of conllu.Sentence
        The sentences.
    tags : sequence of str, default=("upos", "xpos")
        The columns whose tags the parser reads.

    Returns
    -------
    X : list of lists of str
        The forms of each sentence.
    y : list of lists of tuples
        For each word the tags, the head and the label.
    """
    X, y = [], []
    for sentence in check_sentences(sentences):
        X.append(sentence.forms)
        columns = [sentence.column(tag) for tag in tags]
        y.append([(*word[:-1], *word[-1]) for word in zip(*columns, sentence.tree(), strict=True)])
    return X, y
