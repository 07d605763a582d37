"""A tagger gives each token of a sentence a tag: the best sequence of tags, by weights that were learned from mistakes.

Templates say what is looked at, Viterbi or a beam finds the best tags, and a scheme such as BIO forbids sequences that
stand for no chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import (
    DamagedModel,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    InvalidParameterType,
    UnknownLabel,
    shown,
)
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.interface import check_is_fitted
from rosenblatt.estimators.parameters import Anything, Number, OneOf, parameter, with_parameters
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured.base import (
    WIDEST,
    Rule,
    StructuredEstimator,
    StructuredTrainer,
    as_rule,
    check_examples,
    margin_offset,
)
from rosenblatt.structured.features.fields import word_place
from rosenblatt.structured.tags import schemes
from rosenblatt.structured.tags.explanations import Explanation, Tag, explain_tag, extreme_weights
from rosenblatt.structured.tags.linear_chain import MOST_TAGS, TaggerOptions, learn_tags
from rosenblatt.structured.tags.model import EncodedSentences, TaggerModel, predict_tags
from rosenblatt.structured.tags.sources import (
    AttributeSource,
    FeaturedSentences,
    Features,
    FeatureSource,
    MatrixSentences,
    MatrixSource,
    TemplateSource,
)

# Templates of one place cost nothing when tagging, as they are summed once for each type of word; each of the others costs
# a visit to memory for every token.
FAST = (
    "form[0]", "lower[0]", "prefix1[0]", "prefix2[0]", "prefix3[0]", "prefix4[0]",
    "suffix1[0]", "suffix2[0]", "suffix3[0]", "suffix4[0]", "suffix5[0]", "shape[0]", "digit[0]", "hyphen[0]", "capital[0]",
    "form[-2]", "form[-1]", "form[1]", "form[2]",
    "suffix2[-1]", "suffix3[-1]", "shape[-1]", "suffix2[1]", "suffix3[1]", "shape[1]",
    "form[-1] form[0]", "form[0] form[1]", "form[-1] form[1]",
    "tag[-1] lower[0]", "tag[-1] lower[-1]",
)  # fmt: skip
ACCURATE = (
    *FAST,
    "longshape[0]", "length[0]", "suffix6[0]", "prefix5[0]", "shape[0] suffix3[0]", "shape[0] prefix3[0]",
    "suffix3[0] form[-1]", "suffix3[0] form[1]", "suffix2[0] form[-1]", "suffix2[0] form[1]",
)  # fmt: skip
CHUNKING = (
    "form[-2]", "form[-1]", "form[0]", "form[1]", "form[2]", "form[-1] form[0]", "form[0] form[1]", "form[-1] form[1]",
    "pos[-2]", "pos[-1]", "pos[0]", "pos[1]", "pos[2]",
    "pos[-2] pos[-1]", "pos[-1] pos[0]", "pos[0] pos[1]", "pos[1] pos[2]", "pos[-1] pos[1]",
    "pos[-2] pos[-1] pos[0]", "pos[-1] pos[0] pos[1]", "pos[0] pos[1] pos[2]",
    "form[0] pos[0]", "pos[-1] form[0]", "form[0] pos[1]", "form[-1] pos[0]", "pos[0] form[1]", "pos[-1] form[0] pos[1]",
    "lower[0]", "prefix3[0]", "suffix2[0]", "suffix3[0]", "shape[0]", "pos[0] suffix3[0]",
)  # fmt: skip

Sentences = Any  # a list of sentences, or a matrix with a row for each token


class SchemeName(NamedTuple):
    """A scheme of tags, the word for finding it out, or None."""

    @property
    def type_name(self) -> str:
        return OneOf(("auto", *schemes.SCHEMES)).type_name + " or None"

    def refusal(self, value: object) -> str | None:
        expected = OneOf(("auto", *schemes.SCHEMES)).refusal(value)
        return None if value is None or expected is None else f"{expected}, or None"


class TagStream(list):
    """Tags of sentences that arrive in this order: a tag is known from the first sentence that has it."""


class TaggedCorpus(NamedTuple):
    """Sentences and their tags, as numbers."""

    features: Features
    source: FeatureSource
    names: list[Tag]  # of tags, by number
    tags: NDArray  # (tokens,) int32
    arrivals: list[tuple[int, int]]  # (sentence, how many tags are known from there on)
    scheme: str | None


class TaggerNames(NamedTuple):
    """What a shard's sentences are made of, which a model that learns in shards must know from the beginning."""

    source: FeatureSource | None  # None of no sentences
    tags: list[Tag]
    types: Sequence  # of tokens, or the names of features
    steps: set[tuple]  # of tags, where they tell the scheme: see `schemes.tag_steps`


class TaggerTrainer(StructuredTrainer):
    """What learns from a corpus of tagged sentences into a model."""

    model: TaggerModel

    def __init__(self, tagger: SequenceTagger, model: TaggerModel, corpus: TaggedCorpus, visits: Visits):
        super().__init__(model, visits)
        self.tagged = corpus
        self.rule: Rule = as_rule(tagger.rule)
        self.width = tagger._width()
        self.options = TaggerOptions(
            float(tagger.margin),
            float(tagger.dropout),
            np.uint64(model.seed),
            margin_offset(self.rule, float(tagger.margin)),
        )
        self.corpus = model.corpus(corpus.features, corpus.tags)

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these sentences once; return what was done, and whether nothing is left to learn."""
        model, updates, mistakes = self.model, self.model.updates, 0
        features, arrivals = self.tagged.features, self.tagged.arrivals
        ends = [start for start, _ in arrivals[1:]] + [len(order)]
        for (start, known), end in zip(arrivals, ends, strict=True):
            model.grow(self.tagged.names[:known])
            while start < end:
                weights = (model.nodes, model.table, model.pairs, model.triples)
                rule = (self.rule, True if self.rule.uses_length else None)
                visited, model.table, wrong = learn_tags(
                    self.corpus, features.values, *weights, self.width, *rule, self.options, order[start:end]
                )
                start += int(visited)
                mistakes += int(wrong)
                if start < end:
                    model.make_room(features, int(order[start]))
        model.index_new_rows()
        updates = model.updates - updates
        return Progress(len(order), mistakes, updates, -1), updates == 0 and self.options.dropout == 0


@with_parameters
class SequenceTagger(StructuredEstimator):
    """A tagger of token sequences: the structured averaged perceptron (Collins 2002).

    >>> tagger = SequenceTagger(max_iter=3).fit([["the", "dog", "barks"], ["a", "cat"]], [["D", "N", "V"], ["D", "N"]])
    >>> tagger.predict([["the", "cat", "barks"]])
    [['D', 'N', 'V']]

    A sentence is a list of tokens. A token is a text; a tuple of texts, named by `fields`, whose first is the form; with
    `templates=None` a list or a dictionary of attributes, as python-crfsuite takes them; or, with `lengths`, a row of a
    matrix, as seqlearn takes them. A tag is a text or a whole number.

    Bound: if unit weights u score gold above every other sequence by ‖φ(gold) − φ(other)‖ ≤ R and at least δ, then from
    w = 0 the perceptron makes at most R²/δ² updates, however many sequences there are (Collins 2002, theorem 1). That is
    for `margin=0`; with a margin they are at most (R² + 2·margin·n)/δ², n the tokens of the longest sentence. There is no
    such bound with `dropout`.

    Parameters
    ----------
    templates
        What is looked at: texts such as 'suffix3[0]' or 'form[-1] form[0]', places from -5 to 5. A template with `tag[-1]`
        is weighed for the tag before and the tag together. None: tokens come with their attributes.
    fields
        The names of the parts of a token, the form first; templates name the others as they are: 'pos[-1] pos[0]'.
    markov
        On how many tags before a tag depends, 1 or 2.
    search
        "viterbi" finds the best sequence, "beam" keeps the `beam` best beginnings, "greedy" one. Training uses the same
        search; with a beam it updates where a beginning is furthest ahead of gold's (Huang, Fayong and Guo 2012).
    beam
        How many beginnings a beam keeps.
    scheme
        "bio", "iob1", "bilou" or "iobes" forbid sequences that the scheme does not allow; "auto" takes the one that all
        tags given to `fit` obey, if there is one (none in `partial_fit`, which cannot know what will come); None forbids
        nothing.
    margin
        The cost of a wrong tag: gold must win by as much as the number of wrong tags times this.
    dropout
        The share of a sentence's features that a visit does not see, drawn from `random_state`.
    prune
        Weights up to this size are dropped when the model predicts or is saved.

    Attributes
    ----------
    classes_ : ndarray
        The tags, in the order in which they were met.
    column : str, int or None
        The column of files that the tags come from, by name or by number. Set it when you train from a file: `save` keeps
        it, so that a program that loads the tagger finds and writes the column without asking. None: not known.
    vocabulary_ : set of str
        The words that were met while learning; `evaluation.tags` tells known from unknown words by it.
    transitions_ : ndarray, (K + 1, K + 1)
        The weight of one tag after another; the last row is for the start, the last column for the end.
    memory_ : int
        The bytes that the weights take while learning: 12 for each tag of each feature that took part in an update, and 8
        for its key.
    history_, n_iter_, stop_reason_
        What each epoch did, how many there were, and why they ended. A mistake is a sentence whose guess, costs included,
        was not gold.
    """

    templates: Sequence[str] | None = parameter(FAST, Anything("sequence of str or None"), positional=True)
    fields: Sequence[str] = parameter(("form",), Anything("sequence of str"))
    markov: int = parameter(1, Number(1, whole=True, high=2, closed_high=True))
    search: str = parameter("viterbi", OneOf(("viterbi", "beam", "greedy")))
    beam: int = parameter(8, Number(1, whole=True, high=WIDEST, closed_high=True))
    scheme: str | None = parameter("auto", SchemeName())
    margin: float = parameter(10.0)
    dropout: float = parameter(0.1, Number(0, high=1))
    prune: float = parameter(0.0, Number(0))

    _model_type: ClassVar[Any] = TaggerModel

    column = None  # type: str | int | None

    @classmethod
    def chunking(cls, **changes: Any) -> Self:
        """Return a tagger for tokens (form, pos), whose tags stand for chunks.

        Parameters
        ----------
        **changes
            Parameters that are to be otherwise.

        Returns
        -------
        SequenceTagger
        """
        ours: dict[str, Any] = {"templates": CHUNKING, "fields": ("form", "pos")}
        return cls(**(ours | changes))

    @classmethod
    def fast(cls, **changes: Any) -> Self:
        """Return a tagger for speed: first order, templates mostly of one word. These are the defaults.

        Parameters
        ----------
        **changes
            Parameters that are to be otherwise.

        Returns
        -------
        SequenceTagger
        """
        return cls(**changes)

    @classmethod
    def accurate(cls, **changes: Any) -> Self:
        """Return a tagger for accuracy: second order, more templates, a greater margin.

        Parameters
        ----------
        **changes
            Parameters that are to be otherwise.

        Returns
        -------
        SequenceTagger
        """
        ours: dict[str, Any] = {"templates": ACCURATE, "markov": 2, "margin": 20.0}
        return cls(**(ours | changes))

    # Learning

    @with_callbacks
    def fit(
        self,
        X: Sentences,
        y: Sentences,
        X_val: Sentences | None = None,
        y_val: Sentences | None = None,
        lengths: ArrayLike | None = None,
        start: SequenceTagger | None = None,
    ) -> Self:
        """Learn in epochs until one of the reasons to stop.

        An error leaves the tagger as it was; Ctrl-C finishes the epoch, stores the model and then interrupts.

        Parameters
        ----------
        X : iterable of sequences
            The sentences; with `lengths`, a matrix with a row for each token.
        y : iterable of sequences
            The tags of each sentence; with `lengths`, a tag for each row.
        X_val, y_val : iterable of sequences, optional
            Sentences and tags to judge the tagger by after each epoch.
        lengths : array-like of int, optional
            How many rows of the matrix each sentence has.
        start : SequenceTagger, optional
            A trained tagger whose weights, those that predict, are the first weights here. Its tags and words are known
            from the beginning, and new ones are learned. It may come from a file that is for prediction only; templates,
            fields and markov must be the same.

        Returns
        -------
        self
        """
        if start is not None and not isinstance(start, SequenceTagger):
            raise InvalidParameterType("start", type(start).__name__, "a trained SequenceTagger or None")
        return self._learn(*cut_rows(X, y, lengths), X_val, y_val, start=None if start is None else start._restart)

    def resume(
        self,
        X: Sentences,
        y: Sentences,
        X_val: Sentences | None = None,
        y_val: Sentences | None = None,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """Continue a `fit` that Ctrl-C interrupted; the result is the model of a `fit` that was never interrupted.

        Also after `save(path, resume=True)` and `load`. A greater `max_iter` than before lets it train for longer.

        Parameters
        ----------
        X, y, X_val, y_val, lengths
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
        return super().resume(*cut_rows(X, y, lengths), X_val, y_val)

    def partial_fit(self, X: Sentences, y: Sentences, lengths: ArrayLike | None = None) -> Self:
        """Learn from these sentences, once, in the order given; tags that are new are learned from here on.

        Cutting a stream into calls in any way gives the same model.

        Parameters
        ----------
        X : iterable of sequences
            The sentences; with `lengths`, a matrix with a row for each token.
        y : iterable of sequences
            The tags of each sentence; with `lengths`, a tag for each row.
        lengths : array-like of int, optional
            How many rows of the matrix each sentence has.

        Returns
        -------
        self
        """
        X, y = cut_rows(X, y, lengths)
        return super().partial_fit(X, TagStream(y))

    def _source_type(self, X: Sequence) -> type:
        """Return the source of features that sentences of this kind have."""
        if isinstance(X, MatrixSentences) or (len(X) and hasattr(X[0], "tocsr")):
            return MatrixSource
        return AttributeSource if self.templates is None else TemplateSource

    def _source(self, kind: type) -> Any:
        return TemplateSource(self.templates or (), self.fields) if kind is TemplateSource else kind()

    def _corpus(self, X: Sequence, y: Sequence, begin: bool) -> TaggedCorpus:
        source = self._source(self._source_type(X))
        if not begin:
            self._check_same(source)
        if isinstance(X, FeaturedSentences) and isinstance(source, TemplateSource):
            features = X.features(source)
        else:
            features = source.features(X)
        stream = isinstance(y, TagStream)
        names, tags, arrivals = number_tags(y, features.starts, [] if begin else list(self._model.tags), stream)
        scheme = self.scheme if begin else self._model.scheme
        if scheme == "auto":
            scheme = None if stream else schemes.detect_scheme(y)
        if scheme is not None:
            check_scheme(y, scheme)
        if len(names) > MOST_TAGS:
            raise InvalidData(f"there are {len(names)} tags; a tagger takes at most {MOST_TAGS}")
        return TaggedCorpus(features, source, names, tags, arrivals, scheme)

    def _check_same(self, source: FeatureSource) -> None:
        """Refuse to go on with what the model did not begin with."""
        model = self._resumable()
        if type(source) is not type(model.source):
            raise InvalidDataType(f"this tagger has learned from {model.source.what}; it cannot learn from {source.what}")
        self._check_unchanged_settings(
            ("markov", 1 if model.triples is None else 2, self.markov),
            ("templates", getattr(model.source, "texts", None), getattr(source, "texts", None)),
            ("fields", getattr(model.source, "fields", None), getattr(source, "fields", None)),
            ("scheme", model.scheme, model.scheme if self.scheme == "auto" else self.scheme),
        )

    def _new_model(self, plan: Plan, corpus: TaggedCorpus) -> TaggerModel:
        seed = int(plan.rng().integers(2**62))
        return TaggerModel(corpus.source, corpus.scheme, self.markov == 2, corpus.features.edges.shape[1] > 0, seed)

    def _trainer(self, model: TaggerModel, corpus: TaggedCorpus, visits: Visits) -> TaggerTrainer:
        model.add_types(corpus.features.types)
        return TaggerTrainer(self, model, corpus, visits)

    def _shard_corpus(self, X: Sequence, y: Sequence) -> tuple[TaggedCorpus, TaggerNames]:
        corpus = self._corpus(X, y, begin=True)
        steps = schemes.tag_steps(y) if self.scheme == "auto" else set()
        return corpus, TaggerNames(corpus.source if len(X) else None, corpus.names, corpus.features.types, steps)

    def _common_model(self, plan: Plan, names: Sequence[TaggerNames]) -> TaggerModel:
        sources = {source.kind: source for part in names if (source := part.source) is not None}
        if len(sources) > 1:
            found = " and in others of ".join(source.what for source in sources.values())
            raise InvalidDataType(f"in some shards sentences are made of {found}; they must be the same in all")
        source = next(iter(sources.values()), None) or self._source(self._source_type(()))
        scheme = self.scheme
        if scheme == "auto":
            scheme = schemes.scheme_of_steps(set().union(*(part.steps for part in names)))
        edges = isinstance(source, TemplateSource) and bool(source.history)
        model = TaggerModel(source, scheme, self.markov == 2, edges, int(plan.rng().integers(2**62)))
        for part in names:
            model.add_types(part.types)
        tags = list(dict.fromkeys(tag for part in names for tag in part.tags))
        if len(tags) > MOST_TAGS:
            raise InvalidData(f"there are {len(tags)} tags; a tagger takes at most {MOST_TAGS}")
        model.grow(tags)
        return model

    def _shard_trainer(self, model: TaggerModel, corpus: TaggedCorpus, visits: Visits, shard: int) -> TaggerTrainer:
        number_of = {tag: number for number, tag in enumerate(model.tags)}
        numbers = np.array([number_of[tag] for tag in corpus.names], np.int32)
        tagged = corpus._replace(names=model.tags, tags=numbers[corpus.tags], arrivals=[(0, len(model.tags))])
        return TaggerTrainer(self, model.branch(corpus.features, shard), tagged, visits)

    @property
    def classes_(self) -> NDArray:
        """The tags, in the order in which they were met."""
        return np.array(self._fitted().tags)

    @property
    def vocabulary_(self) -> set[str]:
        """The words that were met while learning; none where tokens came with their attributes, or as rows."""
        model = self._fitted()
        if not isinstance(model.source, TemplateSource):
            return set()
        return {word if isinstance(word, str) else word[0] for word in model.vocabulary}

    @property
    def memory_(self) -> int:
        """The bytes that the weights take while learning."""
        return self._fitted().nbytes

    # Predicting

    def predict(self, X: Sentences, lengths: ArrayLike | None = None) -> Any:
        """Return the tags of each sentence.

        Parameters
        ----------
        X : iterable of sequences
            The sentences; with `lengths`, a matrix with a row for each token.
        lengths : array-like of int, optional
            How many rows of the matrix each sentence has.

        Returns
        -------
        list of lists, or ndarray
            A list of tags for each sentence; with `lengths`, an array with a tag for each row.

        Examples
        --------
        >>> from rosenblatt.structured import SequenceTagger
        >>> tagger = SequenceTagger().fit([["dogs", "bark"], ["cats", "sleep"]] * 5, [["NOUN", "VERB"]] * 10)
        >>> tagger.predict([["cats", "bark"]])
        [['NOUN', 'VERB']]
        """
        if lengths is None:
            return super().predict(X)
        found = self._predict(self._predicting_model(), MatrixSentences(X, lengths))
        return np.array([tag for tags in found for tag in tags], self.classes_.dtype)

    def score(self, X: Sentences, y: Sentences, lengths: ArrayLike | None = None) -> float:
        """Return the share of tokens whose tag is right.

        Parameters
        ----------
        X : iterable of sequences
            The sentences; with `lengths`, a matrix with a row for each token.
        y : iterable of sequences
            The right tags.
        lengths : array-like of int, optional
            How many rows of the matrix each sentence has.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return super().score(*cut_rows(X, y, lengths))

    def _encode(self, model: TaggerModel, X: Sequence) -> EncodedSentences:
        kind: Any = self._source_type(X)
        if kind is not type(model.source):
            raise InvalidDataType(f"this tagger has learned from {model.source.what}; it cannot tag {kind.what}")
        return EncodedSentences(self._freeze(model), X)

    def _search_name(self) -> str:
        return f"search={self.search!r}"

    def _width(self) -> int | None:
        return None if self.search == "viterbi" else 1 if self.search == "greedy" else int(self.beam)

    def _predict(self, model: TaggerModel, X: Sequence) -> list:
        return predict_tags(model, self._encode(model, X), self._width(), available_threads(self.n_jobs))

    def predict_k_best(self, X: Sentences, k: int) -> list[list[tuple[list, float]]]:
        """Return the k best sequences of tags of each sentence.

        Parameters
        ----------
        X : iterable of sequences
            The sentences.
        k : int
            How many sequences.

        Returns
        -------
        list of lists of (tags, score)
            Best first, fewer than k where there are fewer.
        """
        check_is_fitted(self)
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
            raise InvalidParameter("k", k, "a whole number ≥ 1")
        X = check_examples(X)
        encoded, tags = self._encode(self._predicting_model(), X), self._model.tags
        found = (encoded.k_best(number, int(k)) for number in range(len(X)))
        return [
            [([tags[tag] for tag in path], float(score)) for path, score in zip(paths.tolist(), scores, strict=True)]
            for scores, paths in found
        ]

    # Explaining

    def explain(self, sentence: Sequence, position: int) -> Explanation:
        """Return why a token has its tag, and not the best other one, as named weights.

        Parameters
        ----------
        sentence : sequence
            A sentence.
        position : int
            Which of its tokens.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        if isinstance(sentence, str):
            raise InvalidDataType(
                f"a sentence must be a list of tokens; got the text {shown(sentence)}", hint="cut it into tokens"
            )
        if not isinstance(self._model.source, MatrixSource):
            sentence = [tuple(token) if isinstance(token, list) and self.templates else token for token in sentence]
        sentences: Any = MatrixSentences.of([sentence]) if hasattr(sentence, "tocsr") else [sentence]
        encoded = self._encode(self._predicting_model(), sentences)
        length = int(encoded.starts[-1])
        if not -length <= position < length:
            raise IndexError(f"the sentence has {length} tokens, and none at position {position}")
        path = np.empty(length, np.int32)
        if encoded.decode(0, 1, self._width(), path) >= 0:
            raise InvalidData(f"no sequence of {length} tags is allowed by the scheme {self._model.scheme!r}")
        return explain_tag(encoded, sentence, self._model.tags, path, position % length)

    def weights(self, tag: Tag, n: int = 20) -> list[tuple[str, float]]:
        """Return the features with the greatest and with the least weights for a tag.

        A feature that combines places is shown by its key, as only a sentence can name it: see `explain`.

        Parameters
        ----------
        tag : str or int
            One of `classes_`.
        n : int, default=20
            How many features of each end.

        Returns
        -------
        list of (name, weight)
            The greatest first.
        """
        model = self._fitted()
        if tag not in model.tags:
            raise UnknownLabel(tag, model.tags)
        return extreme_weights(self._freeze(model), model.tags.index(tag), n, model.columns)

    @property
    def transitions_(self) -> NDArray:
        """(K + 1, K + 1): the weight of one tag after another; the last row is for the start, the last column the end."""
        return self._freeze(self._fitted()).pairs

    # Files

    def _learned_to_parts(self, resume: bool) -> Parts:
        parts = super()._learned_to_parts(resume)
        if self.column is not None:
            parts.facts["column"] = self.column
        return parts

    def _learned_from_parts(self, parts: Parts, resume: bool) -> None:
        super()._learned_from_parts(parts, resume)
        self.column = parts.facts.get("column")
        if type(self.column) not in (str, int, type(None)):
            raise DamagedModel(f"column must be the name or the number of a column; it is {self.column!r:.40}")

    def _model_from_parts(self, parts: Parts) -> TaggerModel:
        kinds: dict[str, type] = {kind.kind: kind for kind in (TemplateSource, MatrixSource, AttributeSource)}
        return TaggerModel.from_parts(parts, self._source(kinds[parts.text("source", kinds)]))


def cut_rows(X: Sentences, y: Sentences, lengths: ArrayLike | None) -> tuple[Any, Any]:
    """Return X and y as lists of sentences; with `lengths`, from a matrix and a tag for each of its rows."""
    if lengths is None:
        return X, y
    rows = MatrixSentences(X, lengths)
    tags = np.asarray(y).tolist()
    if len(tags) != rows.starts[-1]:
        raise InvalidData(f"X has {rows.starts[-1]} rows, y has {len(tags)} tags; each row needs its tag")
    return rows, [tags[a:b] for a, b in zip(rows.starts[:-1], rows.starts[1:], strict=True)]


def number_tags(y: Sequence, starts: NDArray, known: list, stream: bool) -> tuple[list, NDArray, list[tuple[int, int]]]:
    """(names, numbers, arrivals): the tags of all tokens, numbered from those that are known on, in order of arrival; and
    from which sentence on how many are known: all at once, or in a stream one after another."""
    index = {tag: number for number, tag in enumerate(known)}
    numbers = np.empty(int(starts[-1]), np.int32)
    arrivals = [(0, len(index))]
    for sentence, tags in enumerate(y):
        begin, end = int(starts[sentence]), int(starts[sentence + 1])
        if isinstance(tags, str) or not hasattr(tags, "__len__") or len(tags) != end - begin:
            got = f"{len(tags)} tags" if hasattr(tags, "__len__") and not isinstance(tags, str) else shown(tags)
            raise InvalidData(
                f"sentence {sentence + 1} has {end - begin} tokens, but {got}; each token needs its tag", row=sentence
            )
        before = len(index)
        for i, tag in enumerate(tags.tolist() if isinstance(tags, np.ndarray) else tags):
            tag = tag.item() if isinstance(tag, np.generic) else tag
            if not isinstance(tag, str | int):
                place = word_place(starts, begin + i)
                raise InvalidDataType(f"{place}: a tag must be text or a whole number; got {shown(tag)}", row=sentence)
            numbers[begin + i] = index.setdefault(tag, len(index))
        if stream and len(index) > before:
            arrivals.append((sentence, len(index)))
    names = list(index)
    if not stream or not names:
        arrivals = [(0, len(names))]
    elif arrivals[0][1] == 0 or (len(arrivals) > 1 and arrivals[1][0] == 0):
        arrivals = [(0, arrivals[1][1]), *arrivals[2:]]
    return names, numbers, arrivals


def check_scheme(y: Sequence, scheme: str) -> None:
    """Raise InvalidData, with the sentence, if tags are not the scheme's."""
    for sentence, tags in enumerate(y):
        for i, tag in enumerate(tags):
            if not schemes.fits(tag, scheme):
                place = f"sentence {sentence + 1}, word {i + 1}"
                raise InvalidData(f"{place}: {tag!r} is not a tag of the scheme {scheme!r}", row=sentence)
        at = schemes.first_violation(tags, scheme)
        if at is not None:
            before = "the start" if at == 0 else repr(tags[at - 1])
            after = "the end" if at == len(tags) else repr(tags[at])
            raise InvalidData(
                f"sentence {sentence + 1}: {after} may not follow {before} in the scheme {scheme!r} (word {at + 1})",
                hint=f"rosenblatt.structured.tags.schemes.convert_tags(tags, {scheme!r}) gives the same chunks in it",
                row=sentence,
            )
