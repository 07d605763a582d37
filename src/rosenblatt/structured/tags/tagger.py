"""A tagger gives each token of a sentence a tag: the best sequence of tags, by weights that were learned from mistakes.

Templates say what is looked at, Viterbi or a beam finds the best tags, and a scheme such as BIO forbids sequences that
spell no chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT, Visits
from rosenblatt.estimators.parameters import Number, OneOf
from rosenblatt.estimators.plan import Plan
from rosenblatt.structured.base import WIDEST, Structured, checked, offset, rule_of
from rosenblatt.structured.features.fields import located
from rosenblatt.structured.tags import chain, schemes
from rosenblatt.structured.tags.explaining import Explanation, explained, heaviest
from rosenblatt.structured.tags.model import Model, Reading, Ready, tagged
from rosenblatt.structured.tags.sources import Columns, Features, Named, Rows, Templated

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


class SchemeName(NamedTuple):
    """A scheme of tags, the word for finding it out, or None."""

    def refusal(self, value: Any) -> str | None:
        words = ("auto", *schemes.SCHEMES)
        return None if value is None or value in words else f"one of {', '.join(map(repr, words))}, or None"


class Stream(list):
    """Tags of sentences that arrive in this order: a tag is known from the first sentence that has it."""


class Gold(NamedTuple):
    """Sentences and their tags, as numbers."""

    features: Features
    types: Sequence  # of tokens, or the names of features
    source: Any
    names: list  # of tags, by number
    tags: NDArray  # (tokens,) int32
    arrivals: list[tuple[int, int]]  # (sentence, how many tags are known from there on)
    scheme: str | None

    def __len__(self) -> int:
        return len(self.features)


class Learner:
    """What learns from a corpus into a model."""

    def __init__(self, tagger: SequenceTagger, model: Model, gold: Gold, visits: Visits):
        self.visits = visits
        self.model = model
        self.gold = gold
        self.rule = rule_of(tagger.rule)
        self.width = None if tagger.search == "viterbi" else 1 if tagger.search == "greedy" else int(tagger.beam)
        self.pace = chain.Pace(
            float(tagger.margin),
            float(tagger.dropout),
            np.uint64(model.seed),
            offset(self.rule, float(tagger.margin)),
            bool(self.rule.uses_length),
        )
        model.meet(gold.types)
        self.corpus = model.corpus(gold.features, gold.tags)

    @property
    def seen(self) -> int:
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit the sentences of `order` once; what was done, and whether nothing is left to learn."""
        model, updates, mistakes = self.model, self.model.updates, 0
        ends = [start for start, _ in self.gold.arrivals[1:]] + [len(order)]
        for (start, known), end in zip(self.gold.arrivals, ends, strict=True):
            model.grow(self.gold.names[:known])
            while start < end:
                visited, model.ledger, wrong = chain.epoch(
                    self.corpus,
                    self.gold.features.values,
                    model.nodes,
                    model.ledger,
                    model.pairs,
                    model.triples,
                    self.width,
                    self.rule,
                    self.pace,
                    order[start:end],
                )
                start += int(visited)
                mistakes += int(wrong)
                if start < end:
                    model.make_room(self.gold.features, int(order[start]))
        model.remember()
        updates = model.updates - updates
        return Progress(len(order), mistakes, updates, -1), updates == 0 and self.pace.dropout == 0

    def size(self) -> float:
        """The norm of all weights."""
        return self.model.norm()

    def weights_now(self) -> NDArray:
        """The weights of features."""
        return self.model.nodes.w

    def finish(self) -> None:
        """Nothing is left to do."""


class SequenceTagger(Structured):
    """Tags sequences of tokens: the structured averaged perceptron (Collins 2002).

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
    templates : what is looked at: texts such as 'suffix3[0]' or 'form[-1] form[0]', places from -5 to 5. A template with
        `tag[-1]` is weighed for the tag before and the tag together. None: tokens come with their attributes.
    fields : the names of the parts of a token, the form first; templates name the others as they are: 'pos[-1] pos[0]'.
    markov : 1 or 2, on how many tags before a tag depends.
    search : "viterbi" finds the best sequence, "beam" keeps the `beam` best beginnings, "greedy" one. Training uses the
        same search; with a beam it updates where a beginning is furthest ahead of gold's (Huang, Fayong and Guo 2012).
    scheme : "bio", "iob1", "bilou" or "iobes" forbid sequences that the scheme does not allow; "auto" takes the one that
        all tags given to `fit` obey, if there is one (none in `partial_fit`, which cannot know what will come); None
        forbids nothing.
    margin : the cost of a wrong tag: gold must win by as much as the number of wrong tags times this.
    dropout : the share of a sentence's features that a visit does not see, drawn from `random_state`.
    prune : weights up to this size are dropped when the model predicts or is saved.
    rule, keep, order, max_iter, tol, n_iter_no_change, max_seconds, early_stopping, validation_fraction, n_jobs,
    random_state, verbose, warm_start : as for other learners. `n_jobs` threads predict, with the same result.

    `history_` counts as mistakes the sentences whose guess, costs included, was not gold. Memory: 12 bytes for each tag of
    each feature that took part in an update, and 8 for its key; see `memory_`.
    """

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **Structured._own,
            "markov": Number(1, whole=True, high=2, closed_high=True),
            "search": OneOf(("viterbi", "beam", "greedy")),
            "beam": Number(1, whole=True, high=WIDEST, closed_high=True),
            "scheme": SchemeName(),
            "dropout": Number(0, high=1),
            "prune": Number(0),
        }
    )

    def __init__(
        self,
        templates: Sequence[str] | None = FAST,
        *,
        fields: Sequence[str] = ("form",),
        markov: int = 1,
        search: str = "viterbi",
        beam: int = 8,
        scheme: str | None = "auto",
        margin: float = 10.0,
        dropout: float = 0.1,
        prune: float = 0.0,
        rule: Any = "perceptron",
        keep: str = "average",
        order: str = "shuffle",
        max_iter: int = 10,
        tol: float | None = None,
        n_iter_no_change: int = 5,
        max_seconds: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        warm_start: bool = False,
    ):
        self.templates = templates
        self.fields = fields
        self.markov = markov
        self.search = search
        self.beam = beam
        self.scheme = scheme
        self.margin = margin
        self.dropout = dropout
        self.prune = prune
        self.rule = rule
        self.keep = keep
        self.order = order
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.max_seconds = max_seconds
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    @classmethod
    def chunking(cls, **changes: Any) -> SequenceTagger:
        """A tagger for tokens (form, pos), whose tags spell chunks."""
        ours: dict[str, Any] = {"templates": CHUNKING, "fields": ("form", "pos")}
        return cls(**(ours | changes))

    @classmethod
    def fast(cls, **changes: Any) -> SequenceTagger:
        """A tagger for speed: first order, templates mostly of one word. These are the defaults."""
        return cls(**changes)

    @classmethod
    def accurate(cls, **changes: Any) -> SequenceTagger:
        """A tagger for accuracy: second order, more templates, a greater margin."""
        ours: dict[str, Any] = {"templates": ACCURATE, "markov": 2, "margin": 20.0}
        return cls(**(ours | changes))

    # Learning

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None, lengths: Any = None) -> SequenceTagger:
        """Learn in epochs until one of the reasons to stop; the tagger itself.

        With `lengths`, X is a matrix with a row for each token, y has a tag for each row, and `lengths` says how many
        rows each sentence has.
        """
        return super().fit(*cut(X, y, lengths), X_val, y_val)

    def partial_fit(self, X: Any, y: Any, lengths: Any = None) -> SequenceTagger:
        """Learn from these sentences, once, in the order given; tags that are new are learned from here on. Cutting a
        stream into calls in any way gives the same model."""
        X, y = cut(X, y, lengths)
        return super().partial_fit(X, Stream(y))

    def _kind(self, X: Any) -> Any:
        """The source of features that sentences of this kind have."""
        if isinstance(X, Rows) or (len(X) and hasattr(X[0], "tocsr")):
            return Columns
        return Named if self.templates is None else Templated

    def _corpus(self, X: Any, y: Any, begin: bool) -> Gold:
        kind = self._kind(X)
        source = Templated(self.templates or (), self.fields) if kind is Templated else kind()
        if not begin:
            self._check_same(source)
        features, types = source.features(X)
        known = [] if begin else list(self._model.tags)
        names, tags, arrivals = numbered_tags(y, features.starts, known, isinstance(y, Stream))
        if begin:
            scheme = self.scheme
            if scheme == "auto":
                scheme = None if isinstance(y, Stream) else schemes.detected(y)
        else:
            scheme = self._model.scheme
        if scheme is not None:
            check_scheme(y, scheme)
        if len(names) > chain.MOST_TAGS:
            raise ValueError(f"there are {len(names)} tags; a tagger takes at most {chain.MOST_TAGS}")
        return Gold(features, types, source, names, tags, arrivals, scheme)

    def _check_same(self, source: Any) -> None:
        """Refuse to go on with what the model did not begin with."""
        model = self._resumable()
        if type(source) is not type(model.source):
            raise TypeError(f"this tagger has learned from {model.source.what}; it cannot go on with {source.what}")
        for name, then, now in (
            ("markov", 1 if model.triples is None else 2, self.markov),
            ("templates", getattr(model.source, "texts", None), getattr(source, "texts", None)),
            ("fields", getattr(model.source, "fields", None), getattr(source, "fields", None)),
            ("scheme", model.scheme, model.scheme if self.scheme == "auto" else self.scheme),
        ):
            if then != now:
                raise ValueError(f"{name} has changed since this model began to learn; fit a new one, or change it back")

    def _begin(self, plan: Plan, corpus: Gold) -> Model:
        seed = int(plan.rng().integers(2**62))
        edges = corpus.features.edges.shape[1] > 0
        return Model.new(corpus.source, corpus.scheme, self.markov == 2, edges, seed)

    def _learner(self, plan: Plan, model: Model, corpus: Gold, visits: Visits) -> Learner:
        return Learner(self, model, corpus, visits)

    @property
    def classes_(self) -> NDArray:
        """The tags, in the order in which they were met."""
        return np.array(self._fitted().tags)

    @property
    def memory_(self) -> int:
        """The bytes that the weights take while learning."""
        return self._fitted().bytes()

    # Predicting

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """A list of tags for each sentence; with `lengths`, an array with a tag for each row."""
        if lengths is None:
            return super().predict(X)
        found = self._predict(self._answering(), Rows(X, lengths))
        return np.array([tag for tags in found for tag in tags], self.classes_.dtype)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """The share of tokens whose tag is right."""
        return super().score(*cut(X, y, lengths))

    def _reading(self, model: Model, X: Any) -> Reading:
        kind = self._kind(X)
        if kind is not type(model.source):
            raise TypeError(f"this tagger has learned from {model.source.what}; it cannot tag {kind.what}")
        return Reading(self._ready(model), X)

    def _ready(self, model: Model) -> Ready:
        return model.ready(self.keep == "average", float(self.prune))

    def _searching(self) -> str:
        return f"search={self.search!r}"

    def _width(self) -> int | None:
        return None if self.search == "viterbi" else 1 if self.search == "greedy" else int(self.beam)

    def _predict(self, model: Model, X: Any) -> list:
        return tagged(model, self._reading(model, X), self._width(), available_threads(self.n_jobs))

    def predict_k_best(self, X: Any, k: int) -> list[list[tuple[list, float]]]:
        """For each sentence its k best sequences of tags with their scores, best first; fewer where there are fewer."""
        check_is_fitted(self)
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be a whole number ≥ 1; got {k!r}")
        X = checked(X)
        reading = self._reading(self._answering(), X)
        answers = []
        for number in range(len(X)):
            scores, paths = reading.k_best(number, int(k))
            answers.append(
                [
                    ([self._model.tags[tag] for tag in path], float(score))
                    for path, score in zip(paths.tolist(), scores, strict=True)
                ]
            )
        return answers

    # Explaining

    def explain(self, sentence: Any, position: int) -> Explanation:
        """Why the token at this position of a sentence has its tag, and not the best other one: named weights."""
        check_is_fitted(self)
        if isinstance(sentence, str):
            raise TypeError(f"a sentence must be a list of tokens; got the text {sentence!r}: cut it into tokens")
        if not isinstance(self._model.source, Columns):
            sentence = [tuple(token) if isinstance(token, list) and self.templates else token for token in sentence]
        reading = self._reading(self._answering(), Rows.of([sentence]) if hasattr(sentence, "tocsr") else [sentence])
        length = int(reading.starts[-1])
        if not -length <= position < length:
            raise IndexError(f"the sentence has {length} tokens, and none at position {position}")
        path = np.empty(length, np.int32)
        if reading.decode(0, 1, self._width(), path) >= 0:
            raise ValueError(f"no sequence of {length} tags is allowed by the scheme {self._model.scheme!r}")
        return explained(reading, sentence, self._model.tags, path, position % length)

    def weights(self, tag: Any, n: int = 20) -> list[tuple[str, float]]:
        """The n features with the greatest weights for a tag and the n with the least, with their names.

        A feature that combines places is shown by its key, as only a sentence can name it: see `explain`.
        """
        model = self._fitted()
        if tag not in model.tags:
            raise ValueError(f"no tag is called {tag!r}; there are {', '.join(map(repr, model.tags))}")
        return heaviest(self._ready(model), model.tags.index(tag), n, model.columns)

    @property
    def transitions_(self) -> NDArray:
        """(K + 1, K + 1): the weight of one tag after another; the last row is for the start, the last column the end."""
        return self._ready(self._fitted()).frozen.pairs

    # Files

    def _arrays(self, model: Model, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        return model.arrays(self.keep == "average", float(self.prune), resume)

    def _from_arrays(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Model:
        kinds = {"columns": Columns, "named": Named}
        source = kinds[facts["source"]]() if facts["source"] in kinds else Templated(self.templates or (), self.fields)
        return Model.restored(source, facts, arrays)


def cut(X: Any, y: Any, lengths: Any) -> tuple[Any, Any]:
    """X and y as lists of sentences."""
    if lengths is None:
        return X, y
    rows = Rows(X, lengths)
    tags = np.asarray(y).tolist()
    if len(tags) != rows.starts[-1]:
        raise ValueError(f"X has {rows.starts[-1]} rows, y has {len(tags)} tags; each row needs its tag")
    return rows, [tags[a:b] for a, b in zip(rows.starts[:-1], rows.starts[1:], strict=True)]


def numbered_tags(y: Sequence, starts: NDArray, known: list, stream: bool) -> tuple[list, NDArray, list[tuple[int, int]]]:
    """(names, numbers, arrivals): the tags of all tokens, numbered from those that are known on, in order of arrival; and
    from which sentence on how many are known: all at once, or in a stream one after another."""
    index = {tag: number for number, tag in enumerate(known)}
    numbers = np.empty(int(starts[-1]), np.int32)
    arrivals = [(0, len(index))]
    for sentence, tags in enumerate(y):
        begin, end = int(starts[sentence]), int(starts[sentence + 1])
        if isinstance(tags, str) or not hasattr(tags, "__len__") or len(tags) != end - begin:
            got = f"{len(tags)} tags" if hasattr(tags, "__len__") and not isinstance(tags, str) else repr(tags)
            raise ValueError(f"sentence {sentence} has {end - begin} tokens, but {got}; each token needs its tag")
        before = len(index)
        for i, tag in enumerate(tags.tolist() if isinstance(tags, np.ndarray) else tags):
            tag = tag.item() if isinstance(tag, np.generic) else tag
            if not isinstance(tag, str | int):
                raise TypeError(f"{located(starts, begin + i)}: a tag must be text or a whole number; got {tag!r}")
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
    """Refuse tags that are not the scheme's, naming the sentence."""
    for sentence, tags in enumerate(y):
        for i, tag in enumerate(tags):
            if not schemes.fits(tag, scheme):
                raise ValueError(f"sentence {sentence}, word {i + 1}: {tag!r} is no tag of the scheme {scheme!r}")
        at = schemes.first_violation(tags, scheme)
        if at is not None:
            before, after = (
                ("the start" if at == 0 else repr(tags[at - 1])),
                ("the end" if at == len(tags) else repr(tags[at])),
            )
            raise ValueError(
                f"sentence {sentence}: {after} may not follow {before} in the scheme {scheme!r} (word {at + 1}); "
                f"rosenblatt.structured.tags.schemes.repaired(tags, {scheme!r}) spells the same chunks in it"
            )
