"""Words in, tags and trees out: taggers first, then a parser that reads their tags.

A parser that will read predicted tags must learn from predicted tags, with the errors that taggers make on sentences they
have not seen. So the training sentences are tagged by jackknife: each part by taggers that learned from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple, Protocol, Self

from rosenblatt.data.conllu import Sentence
from rosenblatt.errors import (
    DamagedModel,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    InvalidParameterType,
    UnsupportedOperation,
    shown,
)
from rosenblatt.estimators.base import unchanged_on_error
from rosenblatt.estimators.interface import Learner, check_is_fitted, clone
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import SaveLoadMixin, decode_learner, encode_parameter
from rosenblatt.modelfile.values import check_list
from rosenblatt.structured.base import StructuredEstimator, check_examples, check_pair, fingerprint, take
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


def jackknife(
    learner: FitsAndPredicts, X: Sequence, y: Sequence, folds: int = 5, done: list | None = None, **fit: Any
) -> list:
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
    done : list, optional
        The answers for each of the first parts, from an earlier call that was interrupted: they are not computed again.
        Those of the other parts are appended to it.
    **fit
        What `fit` is given beside examples and answers.

    Returns
    -------
    list
        The answers, in the order of the examples.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> X, y = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1]
    >>> [int(answer) for answer in jackknife(Perceptron(), X, y, folds=2)]
    [1, 1, -1, -1]
    """
    if not 2 <= folds <= len(X):
        raise InvalidParameter("folds", folds, f"from 2 to the number of examples, {len(X)}")
    done = [] if done is None else done
    for fold in range(len(done), folds):
        rest = [i for i in range(len(X)) if i % folds != fold]
        trained = clone(learner).fit(take(X, rest), take(y, rest), **fit)
        done.append(list(trained.predict(take(X, range(fold, len(X), folds)))))
    return [done[i % folds][i // folds] for i in range(len(X))]


jackknifed = jackknife  # as it was called before


class PipelineProgress(NamedTuple):
    """How far the training of a pipeline has come: all that Ctrl-C leaves, but for the parser."""

    data: str  # the fingerprint of what is learned from
    answers: dict[str, list]  # by tag, those of the jackknife for each part that is done
    taggers: dict[str, SequenceTagger]  # that are trained
    start: TagAndParse | None = None  # whose weights were the first

    def to_parts(self, pipeline: TagAndParse) -> Parts:
        """Return the progress, and the parameters of a pipeline that may have no parser yet, for a file."""
        learners = {**_taggers_by_tag(pipeline), "parser": pipeline.parser}
        parts = Parts({"data": self.data, "learners": {name: _learner_to_facts(each) for name, each in learners.items()}})
        for tag, done in self.answers.items():
            parts.put_json(f"answers/{tag}", done)
        if self.start is not None:
            parts.put_parts("start", self.start.to_parts())
        return parts

    @classmethod
    def from_parts(cls, parts: Parts, taggers: dict[str, SequenceTagger], folds: int) -> PipelineProgress:
        """Return the progress that was saved."""
        start = TagAndParse.from_parts(parts.parts("start")) if "start" in parts.facts else None
        found = parts.parts("answers")
        answers = {tag: found.json_list(tag) for tag in list(found.arrays)}
        for tag, done in answers.items():
            sentences = [sentence for part in done for sentence in check_list(part, tag)]
            words = [word for sentence in sentences for word in check_list(sentence, tag)]
            if len(done) > folds or not all(isinstance(word, str) for word in words):
                raise DamagedModel(f"the tags {tag} must be text, in at most {folds} parts")
        return cls(parts.text("data"), answers, taggers, start)


class TagAndParse(SaveLoadMixin, Learner):
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
    _progress: PipelineProgress | None = None  # of a training that was interrupted

    def __init__(
        self, parser: DependencyParser, taggers: SequenceTagger | Mapping[str, SequenceTagger], folds: int = 5
    ) -> None:
        self.parser = parser
        self.taggers = taggers
        self.folds = folds

    def fit(
        self,
        X: Iterable,
        y: Iterable,
        X_val: Iterable | None = None,
        y_val: Iterable | None = None,
        start: TagAndParse | None = None,
    ) -> Self:
        """Learn taggers and parser.

        The features of the sentences are computed once for all taggers that have the same templates and fields, and for
        all parts of the jackknife. Ctrl-C keeps the taggers that are trained and, once an epoch of it is done, the parser;
        `resume` goes on from there.

        Parameters
        ----------
        X : iterable of sequences of str
            The sentences, as words.
        y : iterable of sequences of tuples
            For each word its tags, its head and its label.
        X_val, y_val : iterable, optional
            Sentences and answers to judge the parser by after each epoch, on tags that the taggers give them.
        start : TagAndParse, optional
            A trained pipeline whose weights, those that predict, are the first weights here, of taggers and parser. New
            words, tags and labels are learned. It may come from a file that is for prediction only; the fields must be the
            same.

        Returns
        -------
        self
        """
        if start is not None:
            if not isinstance(start, TagAndParse):
                raise InvalidParameterType("start", type(start).__name__, "a trained TagAndParse or None")
            start._check_complete()
        return self._learn(X, y, X_val, y_val, None, start)

    def resume(self, X: Iterable, y: Iterable, X_val: Iterable | None = None, y_val: Iterable | None = None) -> Self:
        """Continue a `fit` that Ctrl-C interrupted; the result is the model of a `fit` that was never interrupted.

        Also after `save(path, resume=True)` and `load`.

        Parameters
        ----------
        X, y, X_val, y_val
            The same as those of the interrupted `fit`.

        Returns
        -------
        self

        Raises
        ------
        UnsupportedOperation
            If no `fit` was interrupted.
        InvalidData
            If the sentences or answers are not the same.
        """
        if self._progress is None:
            raise UnsupportedOperation(
                "only an interrupted training can resume; this one was not interrupted",
                hint="to train a finished model further, start from it: start=model, or --from MODEL on the command line",
            )
        return self._learn(X, y, X_val, y_val, self._progress, None)

    def _learn(
        self,
        X: Iterable,
        y: Iterable,
        X_val: Iterable | None,
        y_val: Iterable | None,
        before: PipelineProgress | None,
        start: TagAndParse | None,
    ) -> Self:
        """Learn from nothing, from the weights of another pipeline, or on from an interruption."""
        interrupted = False
        with unchanged_on_error(self):
            X, y = check_pair(X, y)
            if (X_val is None) != (y_val is None):
                raise InvalidData("X_val and y_val must be passed together, or neither of them")
            held = None if X_val is None or y_val is None else check_pair(X_val, y_val, ("X_val", "y_val"))
            data = fingerprint(X, y, *(held or (None, None)))
            if before is not None and data != before.data:
                raise InvalidData(
                    "these are not the examples that the interrupted training learned from",
                    hint="give the same, or fit anew",
                )
            progress = before or PipelineProgress(data, {}, {}, start)
            parser = self.parser_ if before is not None and hasattr(self, "parser_") else None
            try:
                tokens, trees, validation = self._train_taggers(X, y, held, progress)
                if parser is None:
                    parser = clone(self.parser)
                    first = {} if progress.start is None else {"start": progress.start.parser_}
                    parser.fit(tokens, trees, *validation, **first)
                else:
                    parser.resume(tokens, trees, *validation)
            except KeyboardInterrupt:
                if not any(progress.answers.values()) and not progress.taggers:
                    raise
                interrupted = True
            self.taggers_, self._progress = progress.taggers, progress if interrupted else None
            if parser is not None and parser.__sklearn_is_fitted__():
                self.parser_ = parser
            elif hasattr(self, "parser_"):
                del self.parser_
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _train_taggers(
        self, X: Sequence, y: Sequence, held: tuple[Sequence, Sequence] | None, progress: PipelineProgress
    ) -> tuple[list, list, tuple]:
        """Train those taggers that are not yet; return what the parser learns from: tokens, trees, validation."""
        if not isinstance(self.parser, DependencyParser):
            allowed = "a GraphParser or a TransitionParser"
            raise InvalidParameterType("parser", type(self.parser).__name__, allowed)
        if isinstance(self.folds, bool) or not isinstance(self.folds, Integral):
            raise InvalidParameterType("folds", self.folds, "a whole number, 0 for no jackknife")
        tags = tuple(self.parser.fields[1:])
        if "parser" in tags:
            raise InvalidParameter("fields", tags, "names other than 'parser', which model files use for the parser")
        taggers = _taggers_by_tag(self)
        if set(taggers) != set(tags):
            raise InvalidParameter("taggers", list(taggers), f"given for the tags that the parser reads: {', '.join(tags)}")
        gold, trees = _columns(y, len(tags))
        words, read = FeaturedSentences(X), gold
        known = {} if progress.start is None else progress.start.taggers_
        if progress.start is not None and tuple(known) != tags:
            raise InvalidParameter("start", list(known), f"a pipeline whose parser reads the tags {', '.join(tags)}")
        first = {tag: {"start": known[tag]} if known else {} for tag in tags}
        if self.folds:
            read = [
                jackknife(taggers[tag], words, gold[i], self.folds, progress.answers.setdefault(tag, []), **first[tag])
                for i, tag in enumerate(tags)
            ]
        for i, tag in enumerate(tags):
            if tag not in progress.taggers:
                progress.taggers[tag] = clone(taggers[tag]).fit(words, gold[i], **first[tag])
        validation: tuple = ()
        if held is not None:
            guesses = [progress.taggers[tag].predict(held[0]) for tag in tags]
            validation = _tokens(held[0], guesses), _columns(held[1], len(tags))[1]
        return _tokens(X, read), trees, validation

    def __sklearn_is_fitted__(self) -> bool:
        return "parser_" in self.__dict__

    def _check_complete(self) -> None:
        """Raise an error if there is no parser yet."""
        if self._progress is not None and not self.__sklearn_is_fitted__():
            raise UnsupportedOperation(
                "its training was interrupted while the taggers were trained, and there is no parser yet",
                hint="resume the training",
            )
        check_is_fitted(self)

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
        self._check_complete()
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
        self._check_complete()
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
        progress = self._progress if resume else None
        if progress is None:
            self._check_complete()
        learners = Parts()
        for tag, tagger in self.taggers_.items():
            learners.put_parts(tag, tagger.to_parts(resume and not tagger._model.only_predicts))
        if self.__sklearn_is_fitted__():
            learners.put_parts("parser", self.parser_.to_parts(resume))
        parts = Parts({"learner": type(self).__name__, "parts": learners.facts, "folds": int(self.folds)}, learners.arrays)
        if progress is not None:
            parts.put_parts("progress", progress.to_parts(self))
        return parts

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
        progress = parts.parts("progress") if "progress" in parts.facts else None
        learners = Parts(parts.mapping("parts"), parts.arrays)
        made: dict[str, Any] = {}
        for name in learners.facts:
            part = learners.parts(name)
            made[name] = _KINDS[part.text("learner", _KINDS)].from_parts(part)
        parser, folds = made.pop("parser", None), parts.whole("folds")
        if progress is not None:
            plans = progress.parts("learners")
            planned = {name: _learner_from_facts(plans.parts(name)) for name in plans.facts}
        elif parser is None:
            raise DamagedModel("a pipeline without a parser")
        else:
            planned = {**{name: clone(tagger) for name, tagger in made.items()}, "parser": clone(parser)}
        parses = planned.pop("parser", None)
        fields = parses.fields if isinstance(parses, DependencyParser) else None
        if not isinstance(fields, tuple | list) or tuple(planned) != tuple(fields[1:]):
            raise DamagedModel(f"its parser reads {fields!r:.80}, but there are taggers for {list(planned)!r:.80}")
        if not all(isinstance(tagger, SequenceTagger) for tagger in (*planned.values(), *made.values())):
            raise DamagedModel("its taggers are not all taggers")
        pipeline = cls(parses, planned, folds)
        pipeline.taggers_ = made
        if parser is not None:
            pipeline.parser_ = parser
        if progress is not None:
            pipeline._progress = PipelineProgress.from_parts(progress, made, folds)
        return pipeline


def _taggers_by_tag(pipeline: TagAndParse) -> dict[str, SequenceTagger]:
    """Return the tagger of each tag, in the order in which the parser reads the tags."""
    tags = tuple(pipeline.parser.fields[1:])
    if not isinstance(pipeline.taggers, Mapping):
        return dict.fromkeys(tags, pipeline.taggers)
    return {tag: pipeline.taggers[tag] for tag in sorted(pipeline.taggers, key=lambda tag: (*tags, tag).index(tag))}


def _learner_to_facts(learner: StructuredEstimator) -> dict[str, Any]:
    """Return the parameters of a learner that may not have learned anything yet."""
    parameters = {name: encode_parameter(name, value) for name, value in learner.get_params(deep=False).items()}
    return {"learner": type(learner).__name__, "parameters": parameters}


def _learner_from_facts(parts: Parts) -> Any:
    """Return the learner with these parameters."""
    return decode_learner(_KINDS[parts.text("learner", _KINDS)], parts)


def _columns(y: Sequence, tags: int) -> tuple[list[list[list[str]]], list[list[tuple[int, str]]]]:
    """Return the tags, each as a list of sentences, and the trees."""
    for number, sentence in enumerate(y):
        for i, word in enumerate(sentence):
            if isinstance(word, str) or len(word) != tags + 2:
                place = f"sentence {number + 1}, word {i + 1}"
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
