"""What dependency parsers share, whatever finds the tree: sentences become arrays of hashes, trees become heads and labels,
and no answer leaves that is not a tree."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.jit import jit
from rosenblatt.engine.train import EpochTrainer
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import DamagedModel, InvalidData, InvalidDataType, InvalidParameter, InvalidParameterType, shown
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.parameters import Anything, Flag, Number, parameter, with_parameters
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured import trees
from rosenblatt.structured.base import StructuredEstimator, StructuredModel, StructuredTrainer, check_examples
from rosenblatt.structured.features.fields import Fields, attribute_names, sentence_starts
from rosenblatt.structured.features.templates import attributes_used
from rosenblatt.structured.features.weight_table import OUTCOMES

EMPTY = "_"  # a tag that is missing, as CoNLL-U writes it
_SENTENCES = 64  # that a thread takes at a time
_FEW_WORDS = 10  # that may all lack a tag which words lacked in learning too
_FARTHEST = 2**31 - 1


class ParserCorpus(NamedTuple):
    """Sentences end to end."""

    values: NDArray  # (words, attributes) uint64: what each word is
    starts: NDArray  # (sentences + 1,) int64
    heads: NDArray  # (words,) int32: 1-based in the sentence, 0 for a root
    labels: NDArray  # (words,) int32: numbers of names


class ParserModel(StructuredModel):
    """What a parser has learned, and how it reads: its fields and its labels. `branch(shard)` is a copy of it for the shard
    with this number to learn into, with a drift of its own."""

    def __init__(self, fields: Fields):
        self.fields = fields
        self.labels: dict[str, int] = {}
        self.seen = 0
        self.n_nonprojective = 0  # gold trees

    def copy(self) -> Self:
        """Return the same model, sharing nothing that learning changes."""
        other = super().copy()
        other.labels, other.fields = dict(self.labels), self.fields.copy()
        return other

    def add_types(self, sentences: Sequence, labels: Mapping[str, int]) -> None:
        """Take in the words of sentences, and the names of labels, the known ones first."""
        self.fields.learn(sentences)
        self.labels = dict(labels)
        self._frozen = None

    def to_parts(self, resume: bool) -> Parts:
        """Return how the parser reads, for a file."""
        parts = self.fields.to_parts()
        parts.facts |= {"labels": list(self.labels), "seen": self.seen}
        return parts

    def _set_labels(self, parts: Parts) -> None:
        """Know the labels and the counts that were saved."""
        labels = parts.values("labels", str)
        self.labels = {name: number for number, name in enumerate(labels)}
        if len(self.labels) < len(labels):
            raise DamagedModel("labels must be distinct")
        self.seen = parts.whole("seen")


class ParserNames(NamedTuple):
    """What a shard's trees are made of, which a model that learns in shards must know from the beginning."""

    types: dict[str, list[str]]  # of words and tags, by field
    labels: list[str]
    counts: dict[str, int]  # of unusual trees
    uses: NDArray  # (labels,) uint8: the kinds of arcs that each is seen on; empty where that does not matter


class TrainingTrees(NamedTuple):
    """A corpus with gold trees, its sentences, the labels there are now, and the model that reads it."""

    corpus: ParserCorpus
    sentences: Sequence
    labels: dict[str, int]
    model: Any  # ParserModel, of the parser's own kind


@with_parameters
class DependencyParser(StructuredEstimator):
    """A parser: `fit(sentences, trees)`, `predict(sentences)`.

    A sentence is a list of tokens, a token a tuple of texts as named by `fields`; a tree is a list of (head, label), heads
    counted from 1 and 0 for the root. What searches for trees, a subclass says.

    Parameters
    ----------
    fields
        What tokens are made of: the form first, then tags, the coarsest first.
    templates
        What is looked at together; None for a rich set made for the fields.
    suffixes
        Whether that set uses the last letters of words (up to three).
    single_root
        Whether one word alone hangs on the root.
    labelled
        Whether arcs have labels.
    prune
        Weights of at most this size are dropped before predicting.

    Attributes
    ----------
    labels_ : list of str
        The labels of arcs, in the order in which they were met.
    memory_ : int
        The bytes that the weights take while learning.
    """

    fields: Sequence[str] = parameter(("form", "upos", "xpos"), Anything("sequence of str"))
    templates: Sequence[str] | None = parameter(None, Anything("sequence of str or None"))
    suffixes: bool = parameter(True, Flag())
    single_root: bool = parameter(True, Flag())
    labelled: bool = parameter(True, Flag())
    prune: float = parameter(0.0, Number(0))

    _state_attributes: ClassVar[tuple[str, ...]] = ()  # what templates may ask that is no attribute of a word
    _most_labels: ClassVar[int] = OUTCOMES
    _tree_counts: ClassVar[tuple[str, ...]] = ()  # what the model counts of gold trees when it begins to learn from them

    # What a parser is

    @abstractmethod
    def _every_template(self) -> Sequence[str]:
        """Return all templates that are looked at: those given, or those made for the fields."""

    @abstractmethod
    def _blank_model(self, fields: Fields) -> Any:
        """Return a model that has learned nothing."""

    @abstractmethod
    def _take_in(self, model: Any, trees: TrainingTrees) -> None:
        """Let a model know the words and labels of a corpus, and count its unusual trees; they may be changed in place."""

    @abstractmethod
    def _tree_trainer(self, model: Any, corpus: ParserCorpus, visits: Visits) -> StructuredTrainer:
        """Return what learns from a corpus of trees into a model that knows it."""

    @abstractmethod
    def _settings(self, model: Any) -> list[tuple[str, object, object]]:
        """Return (name, then, now) of the parameters that must not change while a model learns."""

    @abstractmethod
    def _parse(self, model: Any) -> Callable[[ParserCorpus], None]:
        """Return what writes the heads and labels of sentences into a corpus."""

    # Learning

    def _read_fields(self) -> Fields:
        """Return how tokens are read, from `fields` and what the templates name of them."""
        allowed = attribute_names(self.fields)
        used = [name for name in attributes_used(self._every_template()) if name not in self._state_attributes]
        for name in used:
            if name not in allowed:
                reason = f"made of what tokens have: {', '.join(allowed)}"
                raise InvalidParameter("templates", name, reason, hint="name the parts of tokens in `fields`")
        return Fields(tuple(self.fields), used)

    def _corpus(self, X: Sequence, y: Sequence, begin: bool) -> TrainingTrees:
        if begin:
            model = self._blank_model(self._read_fields())
        else:
            model = self._resumable()
            self._check_unchanged_settings(("fields", model.fields.fields, tuple(self.fields)), *self._settings(model))
        labels = dict(model.labels)
        heads, numbers = self._read_trees(y, sentence_starts(X), labels)
        values, starts = model.fields.values(X)
        if not self.labelled:
            labels, numbers = {"_": 0}, np.zeros_like(numbers)
        self._check_labels(labels)
        if self.single_root and (several := first_invalid_tree(heads, starts, True)) >= 0:
            raise InvalidData(
                f"sentence {several + 1} has more than one word with head 0", row=several, settings={"single_root": False}
            )
        return TrainingTrees(ParserCorpus(values, starts, heads, numbers), X, labels, model)

    def _new_model(self, plan: Plan, corpus: TrainingTrees) -> Any:
        return corpus.model

    def _trainer(self, model: Any, corpus: TrainingTrees, visits: Visits) -> EpochTrainer:
        self._take_in(model, corpus)
        return self._tree_trainer(model, corpus.corpus, visits)

    def _shard_corpus(self, X: Sequence, y: Sequence) -> tuple[TrainingTrees, ParserNames]:
        trees = self._corpus(X, y, begin=True)
        model = trees.model
        self._take_in(model, trees)
        counts = {name: getattr(model, name) for name in self._tree_counts}
        names = ParserNames(model.fields.types(), list(model.labels), counts, np.zeros(0, np.uint8))
        return trees._replace(sentences=(), model=None), names

    def _common_model(self, plan: Plan, names: Sequence[ParserNames]) -> Any:
        model = self._blank_model(self._read_fields())
        for part in names:
            model.fields.learn_types(part.types)
            for label in part.labels:
                model.labels.setdefault(label, len(model.labels))
            for name, count in part.counts.items():
                setattr(model, name, getattr(model, name) + count)
        self._check_labels(model.labels)
        return model

    def _shard_trainer(self, model: Any, corpus: TrainingTrees, visits: Visits, shard: int) -> StructuredTrainer:
        numbers = np.array([model.labels[label] for label in corpus.labels], np.int32)
        trees = corpus.corpus._replace(labels=numbers[corpus.corpus.labels])
        return self._tree_trainer(model.branch(shard), trees, visits)

    def _check_labels(self, labels: Mapping[str, int]) -> None:
        if len(labels) > self._most_labels:
            raise InvalidData(f"there are {len(labels)} labels; at most {self._most_labels} are supported")

    @with_callbacks
    def fit(
        self,
        X: Iterable,
        y: Iterable,
        X_val: Iterable | None = None,
        y_val: Iterable | None = None,
        start: DependencyParser | None = None,
    ) -> Self:
        """Learn in epochs until one of the reasons to stop.

        An error leaves the parser as it was; Ctrl-C finishes the epoch, stores the model and then interrupts.

        Parameters
        ----------
        X : iterable of sequences of tuples
            The sentences, as tokens of `fields`.
        y : iterable of sequences of (int, str)
            The tree of each sentence: for each word its head, counted from 1 and 0 for the root, and its label.
        X_val, y_val : iterable, optional
            Sentences and trees to judge the parser by after each epoch.
        start : parser of the same kind, optional
            A trained parser whose weights, those that predict, are the first weights here. Its labels and words are known
            from the beginning, and new ones are learned. It may come from a file that is for prediction only; fields and
            templates must be the same.

        Returns
        -------
        self
        """
        if start is not None and not isinstance(start, type(self)):
            raise InvalidParameterType("start", type(start).__name__, f"a trained {type(self).__name__} or None")
        return self._learn(X, y, X_val, y_val, start=None if start is None else start._restart)

    def resume(self, X: Iterable, y: Iterable, X_val: Iterable | None = None, y_val: Iterable | None = None) -> Self:
        """Continue a `fit` that Ctrl-C interrupted; the result is the model of a `fit` that was never interrupted.

        Also after `save(path, resume=True)` and `load`. A greater `max_iter` than before lets it train for longer.

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
            If no `fit` was interrupted, or if its random order cannot be repeated.
        InvalidData
            If the examples are not the same.
        """
        model = getattr(self, "_model", None)
        counted = {name: getattr(model, name, 0) for name in self._tree_counts}
        try:
            return super().resume(X, y, X_val, y_val)
        finally:
            if model is not None:
                self._model.__dict__.update(counted)  # trees that were counted before are not counted twice

    def _read_trees(self, y: Sequence, starts: NDArray, number_of: dict[str, int]) -> tuple[NDArray, NDArray]:
        """Return heads and numbers of labels of all words; new labels are entered into `number_of`."""
        heads = np.empty(int(starts[-1]), np.int32)
        labels = np.empty(int(starts[-1]), np.int32)
        for number, tree in enumerate(y):
            start, end = int(starts[number]), int(starts[number + 1])
            if isinstance(tree, str) or not hasattr(tree, "__len__"):
                raise InvalidDataType(
                    f"sentence {number + 1}: a tree is a list of (head, label); got {shown(tree)}", row=number
                )
            self._check_length(tree, end - start, number)
            for i, part in enumerate(tree):
                heads[start + i], label = self._arc(part, number, i)
                labels[start + i] = number_of.setdefault(label, len(number_of))
            trees.check(heads[start:end], number)
        return heads, labels

    def _arc(self, part: Any, number: int, i: int) -> tuple[int, str]:
        """Return the head and the label of a word; where there are no labels, the head alone will do."""
        place = f"sentence {number + 1}, word {i + 1}"
        if not self.labelled and isinstance(part, Integral) and not isinstance(part, bool):
            part = (part, "_")
        try:
            head, label = part
        except (TypeError, ValueError):
            raise InvalidData(f"{place}: a tree is a list of (head, label); got {shown(part)}", row=number) from None
        if isinstance(part, str) or isinstance(head, bool) or not isinstance(head, Integral) or abs(int(head)) > _FARTHEST:
            raise InvalidData(f"{place}: the head must be a whole number, 0 for the root; got {shown(head)}", row=number)
        if self.labelled and not isinstance(label, str):
            raise InvalidDataType(f"{place}: the label must be text; got {shown(label)}", row=number)
        return int(head), label if self.labelled else "_"

    # Predicting

    def predict(self, X: Iterable) -> list:
        """Return a tree for each sentence; warn where tags are missing that the parser learned to read.

        Parameters
        ----------
        X : iterable of sequences of tuples
            The sentences, as tokens of `fields`.

        Returns
        -------
        list of lists of (int, str)
            For each word its head, counted from 1 and 0 for the root, and its label.

        Examples
        --------
        >>> from rosenblatt.structured import TransitionParser
        >>> X = [["dogs", "bark"], ["cats", "sleep"]] * 5
        >>> parser = TransitionParser(fields=("form",)).fit(X, [[(2, "nsubj"), (0, "root")]] * 10)
        >>> parser.predict([["cats", "bark"]])
        [[(2, 'nsubj'), (0, 'root')]]
        """
        X = check_examples(X)
        answers = super().predict(X)
        if missing := self._missing_tags(X):
            warnings.warn(
                f"no word has a value of {', '.join(missing)} (all are _), which this parser learned to read; expect poor "
                "trees, or tag the words first",
                stacklevel=2,
            )
        return answers

    def _missing_tags(self, X: Sequence) -> list[str]:
        """Return the tags that learning saw, and that no word of these sentences has."""
        size, missing = sum(map(len, X)), []
        for number, _, words in self._fitted().fields.parts:
            learned = number > 0 and set(words.index) - {EMPTY} and size >= (_FEW_WORDS if EMPTY in words.index else 1)
            if learned and all(token[number] == EMPTY for sentence in X for token in sentence):
                missing.append(self.fields[number])
        return missing

    def _predict(self, model: Any, X: Sequence) -> list:
        values, starts = model.fields.values(X)
        heads, labels = np.zeros(len(values), np.int32), np.zeros(len(values), np.int32)
        parse, names = self._parse(model), list(model.labels)

        def parse_some(first: int) -> None:
            parse(ParserCorpus(values, starts[first : first + _SENTENCES + 1], heads, labels))

        blocks = range(0, len(X), _SENTENCES)
        threads = min(available_threads(self.n_jobs), len(blocks))
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(parse_some, blocks))
        else:
            for first in blocks:
                parse_some(first)
        if (broken := first_invalid_tree(heads, starts, bool(self.single_root))) >= 0:
            raise AssertionError(f"sentence {broken + 1}: the heads that were found are not a tree; please report this")
        named = list(map(names.__getitem__, labels.tolist())) if self.labelled and names else ["_"] * len(labels)
        pairs = list(zip(heads.tolist(), named, strict=True))
        return [pairs[start:end] for start, end in pairwise(starts.tolist())]

    def _gold_parts(self, answer: Sequence, number: int) -> list[tuple[int, str]]:
        return [self._arc(part, number, i) for i, part in enumerate(answer)]

    # What has been learned

    @property
    def labels_(self) -> list[str]:
        """The labels of arcs, in the order in which they were met."""
        return list(self._fitted().labels)

    @property
    def memory_(self) -> int:
        """The bytes that the weights take while learning."""
        return self._fitted().nbytes


@jit
def first_invalid_tree(heads, starts, single_root):
    """The first sentence whose heads are not a tree, or have several roots where one is asked for; −1 if there is none."""
    for sentence in range(starts.size - 1):
        part = heads[starts[sentence] : starts[sentence + 1]]
        roots = 0
        for i in range(part.size):
            roots += part[i] == 0
        if trees.first_unrooted(part) != 0 or (single_root and roots > 1):
            return sentence
    return -1
