"""A dependency parser that scores all arcs there could be and finds the best tree among all trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT, Learner, Visits
from rosenblatt.estimators.parameters import Number, OneOf
from rosenblatt.estimators.plan import Plan
from rosenblatt.structured.base import rule_of, threshold
from rosenblatt.structured.features import ledger, templates
from rosenblatt.structured.features.fields import Fields, starts_of
from rosenblatt.structured.features.templates import listed
from rosenblatt.structured.features.words import packed, unpacked
from rosenblatt.structured.graph import arcs, directed, kernels, labels
from rosenblatt.structured.parser import Corpus, DependencyParser
from rosenblatt.structured.trees import is_projective

DECODERS = ("eisner", "chu-liu-edmonds")
_LISTS = {"keys": np.uint64, "sizes": np.int64, "outcomes": np.uint16, "weights": np.float32}

# What is looked at where no templates are given: words (w), coarse tags (c) and fine tags (t); p stands for both tags in
# turn, and "~" for the same once more with the distance.
_ARCS = """
h.w; h.c; h.t; h.w h.t; m.w; m.c; m.t; m.w m.t; h.c m.distance; h.t m.distance; m.c m.distance; m.t m.distance; h.w m.w
h.w h.p m.w m.p; h.p m.w m.p; h.w m.w m.p; h.w h.p m.p; h.w h.p m.w; h.w m.p; h.p m.w
h.p m.p~; h.p b.p m.p
h.t h+1.t m-1.t m.t; h-1.t h.t m-1.t m.t; h.t h+1.t m.t m+1.t; h-1.t h.t m.t m+1.t
h.t h+1.t m.t; h-1.t h.t m.t; h.t m-1.t m.t; h.t m.t m+1.t
h.c h+1.c m-1.c m.c m.distance; h-1.c h.c m-1.c m.c m.distance; h.c h+1.c m.c m+1.c m.distance
h-1.c h.c m.c m+1.c m.distance
h.c h+1.c m.c m.distance; h-1.c h.c m.c m.distance; h.c m-1.c m.c m.distance; h.c m.c m+1.c m.distance
"""
_SIBLINGS = """
m.w s.w; s.w m.t; s.t m.w; s.t m.t~; s.c m.c; h.w s.w m.w; h.w s.c m.c; h.c s.w m.c; h.c s.c m.w; h.t s.t m.t; h.c s.c m.c~
"""
_SIEVE = """
h.c; m.c; h.t; m.t; h.c m.distance; h.c m.c~; h.t m.t~; h.c h+1.c m.c~; h-1.c h.c m.c~; h.c m-1.c m.c~; h.c m.c m+1.c~
"""
_LABELS = """
h.w; h.c; h.t; h.w h.t; h.suffix2; h.suffix3; h.t h.lefts h.rights; h.w h.lefts; h.w h.rights
m.w; m.c; m.t; m.w m.t; m.suffix2; m.suffix3; m.t m.lefts m.rights; m.w m.lefts; m.w m.rights
m.distance; h.w m.w; h.w m.t; h.t m.w; h.t m.t; h.c m.c; h.c m.c m.distance; h.t m.t m.distance
m.w m.distance; h.w m.distance; h.w m.c m.distance; h.c m.w m.distance
m-1.t m.t; m.t m+1.t; m-1.w; m+1.w; m-2.t m-1.t m.t; m.t m+1.t m+2.t; h-1.t h.t; h.t h+1.t; h-1.w; h+1.w
h.t m-1.t m.t; h.t m.t m+1.t; h.t h+1.t m.t; h-1.t h.t m.t; g.t h.t m.t; g.c h.c m.c; g.w m.c
s.w m.c; s.t m.t; s.c h.c m.c; s.w h.c m.c; s.t h.t m.t; s.c h.w m.c; s.c m.w; s.w h.w
y.w m.c; y.t m.t; y.c h.c m.c; y.w h.c m.c; y.t h.t m.t; y.c h.w m.c; y.c m.w; y.w h.w
l.w m.c; l.t m.t; l.c h.c m.c; l.w h.c m.c; l.t h.t m.t; l.c h.w m.c; l.c m.w; l.w h.w
r.w m.c; r.t m.t; r.c h.c m.c; r.w h.c m.c; r.t h.t m.t; r.c h.w m.c; r.c m.w; r.w h.w
l.c r.c h.c m.c; s.c y.c h.c m.c
"""


def _written_out(short: str, fields: Sequence[str]) -> tuple[str, ...]:
    """The templates of such a text, for tokens of these fields: of the tags, the first is taken to be coarse, the last
    fine; where there are none, shapes and ends of words stand in for them."""
    coarse, fine = (fields[1], fields[-1]) if len(fields) > 1 else ("shape", "suffix3")
    texts = []
    for text in short.replace("\n", ";").split(";"):
        for tag in (coarse, fine):
            names = {"w": "form", "c": coarse, "t": fine, "p": tag}
            terms = [term.rsplit(".", 1) for term in text.replace("~", "").split()]
            plain = " ".join(f"{names.get(attribute, attribute)}[{place}]" for place, attribute in terms)
            far = "distance[m]" if "s." not in text else "distance[s]"
            texts += [plain, f"{plain} {far}"] if "~" in text else [plain]
    return tuple(text for text in dict.fromkeys(texts) if text)


class Learning(NamedTuple):
    """All that is learned: what lets arcs through, what scores them, and what labels them."""

    sieve: kernels.Scorer
    scorer: kernels.Scorer
    ledger: ledger.Ledger


class Parsing(NamedTuple):
    """All that predicts."""

    sieve: kernels.Scorer
    scorer: kernels.Scorer
    lists: tuple[NDArray, ...]  # for files: what the book was bound from
    book: ledger.Book


class Model:
    """What a parser has learned, and how it reads."""

    only_predicts = False

    def __init__(self, fields: Fields, texts: Mapping[str, Sequence[str]], decoder: str, siblings: bool):
        self.fields = fields
        self.texts = {kind: tuple(part) for kind, part in texts.items()}
        self.decoder = decoder
        self.siblings = siblings
        plans = [arcs.read(self.texts[kind], fields.attributes) for kind in ("sieve", "templates")]
        sieve, scorer = (kernels.Scorer(plan, directed.new_table(1 << 12, True)) for plan in plans)
        self.label_plan = labels.read(self.texts["label_templates"], fields.attributes)
        self.learning = Learning(sieve, scorer, ledger.new_ledger())
        self.parsing: Parsing | None = None  # what predicts, made when it is needed
        self.parsing_of = (True, 0.0)
        self.labels: dict[str, int] = {}
        self.seen = 0
        self.arc_updates, self.label_updates = 0, 0  # each the number of a rule's step, however a stream is cut
        self.set_apart = (0, 0)  # sentences whose gold tree was not projective, and that were too long

    @property
    def updates(self) -> int:
        """Changes of the weights."""
        return self.arc_updates + self.label_updates

    def copy(self) -> Model:
        """The same, sharing nothing that learning changes."""
        other = object.__new__(Model)
        other.__dict__.update(self.__dict__)
        other.labels = dict(self.labels)
        sieve, scorer = (kernels.Scorer(part.plan, directed.copied(part.table)) for part in self.learning[:2])
        other.learning = Learning(sieve, scorer, ledger.copied(self.learning.ledger))
        return other

    def bytes(self) -> int:
        """The bytes that the weights take while learning."""
        tables = (part.table for part in self.learning[:2])
        return sum(table.slots.nbytes + table.drift.nbytes for table in tables) + ledger.bytes_of(self.learning.ledger)

    def predictor(self, average: bool, prune: float) -> Parsing:
        """What predicts, with the average of the weights or the last of them; what a file brought, as it came."""
        if self.parsing is None or (self.parsing_of != (average, prune) and not self.only_predicts):
            sieve, scorer = (
                kernels.Scorer(part.plan, directed.frozen(part.table, self.seen, average, limit))
                for part, limit in zip(self.learning[:2], (0.0, prune), strict=True)
            )
            lists = ledger.kept(self.learning.ledger, self.seen, average, prune)
            self.parsing = Parsing(sieve, scorer, lists, ledger.bound(*lists))
            self.parsing_of = (average, prune)
        return self.parsing


@jit
def set_apart(heads, starts, longest):
    """(sentences whose tree is not projective, sentences that are too long)."""
    crossing, long = 0, 0
    for i in range(starts.size - 1):
        crossing += not is_projective(heads[starts[i] : starts[i + 1]])
        long += starts[i + 1] - starts[i] > longest
    return crossing, long


class Reading(NamedTuple):
    """A corpus with gold trees, the labels there are now, and the model that reads it."""

    corpus: Corpus
    labels: dict[str, int]
    model: Model


class _Learner:
    """Learns from a corpus into a model: see `train.Learner`."""

    def __init__(self, model: Model, corpus: Corpus, visits: Visits, kernel: tuple, labels: int, demand: float):
        self.model, self.corpus, self.visits = model, corpus, visits
        self.decoder, self.rule, self.manner = kernel
        self.labels, self.demand = labels, demand

    @property
    def seen(self) -> int:
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        model, before = self.model, self.model.updates
        sieve, scorer, book = model.learning
        values, starts, heads, _ = self.corpus
        counts = kernels.Counts(model.seen, model.arc_updates, 0)
        sieve, scorer, counts = kernels.learn(
            self.decoder, self.rule, self.manner, sieve, scorer, (values, starts, heads), order, counts
        )
        updates = model.label_updates
        if self.labels > 1:
            book, updates = labels.learn(
                model.label_plan, book, self.rule, self.demand, self.labels, tuple(self.corpus), order, model.seen, updates
            )
        model.learning, model.parsing = Learning(sieve, scorer, book), None
        model.seen, model.arc_updates, model.label_updates = int(counts.seen), int(counts.updates), int(updates)
        return Progress(len(order), int(counts.mistakes), model.updates - before, -1), model.updates == before

    def size(self) -> float:
        learning = self.model.learning
        return float(np.sqrt(directed.squared_norm(learning.scorer.table) + ledger.squared_norm(learning.ledger)))

    def weights_now(self) -> NDArray:
        return self.model.learning.scorer.table.w[:, 2:]

    def finish(self) -> None:
        pass


class GraphParser(DependencyParser):
    """A parser that gives every possible arc a score and finds the best tree among all trees.

    Trees are projective and found by Eisner's algorithm, or any trees, found by that of Chu, Liu and Edmonds. Scores are
    sums over arcs (McDonald, Crammer and Pereira 2005) and, with `siblings`, over pairs of neighbouring modifiers of one
    head (McDonald and Pereira 2006). The weights are those of a structured perceptron (Collins 2002), averaged: on data
    that some weights of norm 1 tell apart by δ, it makes at most (R² + 2·margin·n)/δ² updates for sentences of up to n
    words, however many trees there are. Arcs get
    their labels from a second perceptron, once the tree stands.

    Train with the decoder you use. A model learned with one decoder and used with another gives a warning: with Eisner's
    trees in learning and those of Chu, Liu and Edmonds in use, a prototype lost 7 to 9 points of attachment on English.

    Parameters
    ----------
    fields : what tokens are made of: the form first, then tags, the coarsest first
    templates : what is looked at together in an arc, such as "upos[h] upos[m] distance[m]" (places: see
        `rosenblatt.structured.graph.arcs`); None for a set after McDonald's, made for the fields
    label_templates : the same for labels (places: see `rosenblatt.structured.graph.labels`)
    decoder : "eisner" or "chu-liu-edmonds"
    siblings : whether pairs of modifiers count; None for where the decoder can. The best non-projective tree of pairs
        cannot be found in reasonable time (it is NP-hard), so "chu-liu-edmonds" cannot
    candidates : how many heads of a word the sieve lets through to be scored in full; None for all. With 8 of them one
        gold arc in 171 did not pass on English-EWT
    single_root : whether one word alone hangs on the root
    labelled : whether arcs have labels
    margin, label_margin : the cost of a wrong head and of a wrong label while learning; 0 for none
    rule, keep, order : as everywhere in `rosenblatt.structured`
    prune : weights of at most this size are dropped before predicting
    max_length : longer sentences are parsed in pieces of this many words, which all hang on the root of the first; their
        trees are not learned from. Time grows with its cube, and memory too where siblings count
    max_iter, max_seconds, tol, n_iter_no_change, early_stopping, validation_fraction, warm_start, n_jobs, random_state,
        verbose : as everywhere

    With a projective decoder, gold trees that are not projective are learned from as they are: an update goes towards the
    gold arcs as long as some projective tree scores as high. `n_nonprojective_` counts the gold trees that were not
    projective, `n_too_long_` the sentences that were too long.

    Examples
    --------
    >>> from rosenblatt.structured import GraphParser
    >>> X = [[("dogs", "NOUN"), ("bark", "VERB")], [("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> parser = GraphParser(fields=("form", "upos")).fit(X, y)
    >>> parser.predict([[("the", "DET"), ("dogs", "NOUN"), ("sleep", "VERB")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]

    """

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **DependencyParser._own,
            "decoder": OneOf(DECODERS),
            "candidates": Number(1, whole=True, optional=True),
            "label_margin": Number(0),
            "prune": Number(0),
            "max_length": Number(1, whole=True),
        }
    )
    _places: ClassVar[tuple[str, ...]] = arcs.PLACES
    _state_attributes: ClassVar[tuple[str, ...]] = (arcs.DISTANCE, *labels.STATE)

    def __init__(
        self,
        *,
        fields: Sequence[str] = ("form", "upos", "xpos"),
        templates: Sequence[str] | None = None,
        label_templates: Sequence[str] | None = None,
        decoder: str = "eisner",
        siblings: bool | None = None,
        candidates: int | None = 8,
        single_root: bool = True,
        labelled: bool = True,
        rule: Any = "perceptron",
        margin: float = 5.0,
        label_margin: float = 10.0,
        prune: float = 0.0,
        max_length: int = 300,
        keep: str = "average",
        order: str = "shuffle",
        max_iter: int = 10,
        max_seconds: float | None = None,
        tol: float | None = None,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.fields = fields
        self.templates = templates
        self.label_templates = label_templates
        self.decoder = decoder
        self.siblings = siblings
        self.candidates = candidates
        self.single_root = single_root
        self.labelled = labelled
        self.rule = rule
        self.margin = margin
        self.label_margin = label_margin
        self.prune = prune
        self.max_length = max_length
        self.keep = keep
        self.order = order
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # What is looked at

    def _with_siblings(self) -> bool:
        if self.siblings not in (None, True, False):
            raise ValueError(f"siblings must be True, False or None; got {self.siblings!r}")
        if self.siblings and self.decoder != "eisner":
            raise ValueError(
                f"siblings=True and decoder={self.decoder!r} do not go together: finding the best non-projective tree of "
                f"pairs is NP-hard; use decoder='eisner', or siblings=False"
            )
        return self.decoder == "eisner" if self.siblings is None else bool(self.siblings)

    def _texts(self) -> dict[str, tuple[str, ...]]:
        """The templates of the sieve, of arcs and of labels."""
        fields, with_siblings = tuple(self.fields), self._with_siblings()
        default = _written_out(_ARCS + (_SIBLINGS if with_siblings else ""), fields)
        texts = {
            "sieve": _written_out(_SIEVE, fields) if self.candidates else (),
            "templates": default if self.templates is None else listed(self.templates),
            "label_templates": _written_out(_LABELS, fields)
            if self.label_templates is None
            else listed(self.label_templates),
        }
        if not with_siblings:
            for text in texts["templates"]:
                if any(place[0] == "s" for _, place in templates.terms(text)):
                    raise ValueError(
                        f"template {text!r} looks at a sibling, but siblings do not count here; see `siblings`"
                    )
        return texts if self.labelled else texts | {"label_templates": ()}

    def _every_template(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for texts in self._texts().values() for text in texts))

    # Learning

    def _corpus(self, X: Any, y: Any, begin: bool) -> Reading:
        texts = self._texts()
        if begin:
            model = Model(self._read_fields(), texts, self.decoder, self._with_siblings())
        else:
            model = self._resumable()
            for name, then, now in (
                ("fields", model.fields.fields, tuple(self.fields)),
                ("templates, siblings, candidates or labelled", model.texts, texts),
                ("decoder", model.decoder, self.decoder),
            ):
                if then != now:
                    raise ValueError(
                        f"{name} has changed since this model began to learn; fit a new one, or change it back"
                    )
        names = dict(model.labels)
        heads, numbers = self._read_trees(y, starts_of(X), names, learn=True)
        values, starts = model.fields.values(X, learn=True)
        if not self.labelled:
            names, numbers = {"_": 0}, np.zeros_like(numbers)
        if len(names) > ledger.OUTCOMES:
            raise ValueError(f"there are {len(names)} labels; at most {ledger.OUTCOMES} can be told apart")
        self._refuse_roots(heads, starts)
        return Reading(Corpus(values, starts, heads, numbers), names, model)

    def _begin(self, plan: Plan, corpus: Reading) -> Model:
        return corpus.model

    def _keep(self, model: Model, X: Any, learner: Any) -> None:
        self.n_nonprojective_, self.n_too_long_ = model.set_apart

    def _learner(self, plan: Plan, model: Model, corpus: Reading, visits: Visits) -> Learner:
        model.labels = dict(corpus.labels)
        apart = set_apart(corpus.corpus.heads, corpus.corpus.starts, int(self.max_length))
        model.set_apart = (model.set_apart[0] + int(apart[0]), model.set_apart[1] + int(apart[1]))
        rule = rule_of(self.rule)
        manner = kernels.Manner(
            float(self.margin), threshold(rule), self._let_through(), bool(rule.uses_length), int(self.max_length)
        )
        demand = threshold(rule) - float(self.label_margin) if self.label_margin else 0.0
        kernel = (self._decoder(model), rule, manner)
        return _Learner(model, corpus.corpus, visits, kernel, len(model.labels) if self.labelled else 0, demand)

    def _let_through(self) -> int:
        """Heads of a word that pass the sieve, 0 for all; more than there can be is the same as all."""
        return min(int(self.candidates or 0), int(self.max_length) + 1)

    def _decoder(self, model: Model) -> Any:
        projective = self.decoder == "eisner"
        return kernels.Decoder(projective, projective and model.siblings, bool(self.single_root))

    # Predicting

    def _searching(self) -> str:
        return f"decoder={self.decoder!r}"

    def _predict(self, model: Model, X: Sequence) -> list:
        values, starts = model.fields.values(X)
        parsing = model.predictor(self.keep == "average", float(self.prune))
        decoder, limits = self._decoder(model), (self._let_through(), int(self.max_length))
        heads, numbers = np.zeros(len(values), np.int32), np.zeros(len(values), np.int32)

        def parse(cut: slice) -> None:
            part = (values, starts[cut], heads)
            kernels.parse(decoder, parsing.sieve, parsing.scorer, *limits, part)
            if self.labelled and len(model.labels) > 1:
                labels.label(model.label_plan, parsing.book, len(model.labels), (*part, numbers))

        self._in_parts(parse, len(X))
        return self._written_trees(
            heads, numbers, list(model.labels) if self.labelled else [], starts, bool(self.single_root)
        )

    # Files

    def _arrays(self, model: Model, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        facts = {
            "fields": list(model.fields.fields),
            "attributes": list(model.fields.attributes),
            "texts": {kind: list(texts) for kind, texts in model.texts.items()},
            "decoder": model.decoder,
            "siblings": model.siblings,
            "labels": list(model.labels),
            "seen": model.seen,
            "updates": [model.arc_updates, model.label_updates],
            "set_apart": list(model.set_apart),
        }
        arrays: dict[str, NDArray] = {}
        for field, types in model.fields.types().items():
            arrays |= {f"{field}.{name}": array for name, array in packed(types).items()}
        source: Any = model.learning if resume else model.predictor(self.keep == "average", float(self.prune))
        parts = {"sieve": directed.written(source.sieve.table), "scorer": directed.written(source.scorer.table)}
        parts["labels"] = ledger.written(source.ledger) if resume else dict(zip(_LISTS, source.lists, strict=True))
        return facts, arrays | {f"{part}.{name}": array for part, named in parts.items() for name, array in named.items()}

    def _from_arrays(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Model:
        if not isinstance(facts["siblings"], bool) or facts["decoder"] not in DECODERS:
            raise ValueError(f"siblings={facts['siblings']!r} and decoder={facts['decoder']!r} make no parser")
        types = {}
        for field in facts["fields"]:
            if f"{field}.bytes" in arrays:
                types[field] = unpacked({name: arrays[f"{field}.{name}"] for name in ("bytes", "lengths")})
        model = Model(
            Fields(facts["fields"], facts["attributes"], types), facts["texts"], facts["decoder"], facts["siblings"]
        )
        model.labels = {str(name): number for number, name in enumerate(facts["labels"])}
        model.seen = int(facts["seen"])
        model.arc_updates, model.label_updates = map(int, facts["updates"])
        crossing, long = map(int, facts["set_apart"])
        self.n_nonprojective_, self.n_too_long_ = model.set_apart = crossing, long
        parts: dict[str, dict[str, NDArray]] = {"sieve": {}, "scorer": {}, "labels": {}}
        for name, array in arrays.items():
            part, _, of = name.rpartition(".")
            if part in parts:
                parts[part][of] = array
        sieve, scorer = (
            kernels.Scorer(blank.plan, directed.taken_up(parts[part]))
            for part, blank in zip(("sieve", "scorer"), model.learning[:2], strict=True)
        )
        outcomes = parts["labels"]["outcomes"]
        if len(outcomes) and outcomes.max() >= len(model.labels):
            raise ValueError(f"a weight speaks for label {outcomes.max()}, but there are {len(model.labels)}")
        if "drift" in parts["scorer"]:
            model.learning = Learning(sieve, scorer, ledger.taken_up(parts["labels"]))
        else:
            lists = tuple(ledger.of_kind(parts["labels"][name], name, kind).copy() for name, kind in _LISTS.items())
            ledger.check_lists(*lists)
            model.parsing = Parsing(sieve, scorer, lists, ledger.bound(*lists))
        return model
