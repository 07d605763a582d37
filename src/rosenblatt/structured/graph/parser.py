"""A dependency parser that scores all arcs there could be and finds the best tree among all trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.mixing import WeightChange
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import IncompatibleParameters, InvalidParameter
from rosenblatt.estimators.parameters import Anything, Number, OneOf, parameter, with_parameters
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured.base import Rule, StructuredTrainer, as_rule, rule_margin
from rosenblatt.structured.features.fields import Fields
from rosenblatt.structured.features.templates import expand_templates, parse_terms, template_list
from rosenblatt.structured.features.weight_table import (
    FrozenTable,
    WeightLists,
    WeightTable,
    freeze_lists,
    index_lists,
    new_weight_table,
    squared_norm,
)
from rosenblatt.structured.graph.arc_learning import ArcOptions, ArcScorer, Counts, Decoder, learn_arcs, parse_arcs
from rosenblatt.structured.graph.arc_weights import ArcWeights, arc_squared_norm, new_arc_weights
from rosenblatt.structured.graph.arcs import DISTANCE, parse_arc_templates
from rosenblatt.structured.graph.labels import STATE, assign_labels, learn_labels, parse_label_templates
from rosenblatt.structured.parser import DependencyParser, ParserCorpus, ParserModel, TrainingTrees
from rosenblatt.structured.trees import is_projective

DECODERS = ("eisner", "chu-liu-edmonds")

# What is looked at where no templates are given: words (w), coarse tags (c) and fine tags (t); p stands for both tags in
# turn, m for the tags between them, where there are more than two, and "~" for the same once more with the distance.
_ARCS = """
h.w; h.c; h.t; h.w h.t; m.w; m.c; m.t; m.w m.t; h.c m.distance; h.t m.distance; m.c m.distance; m.t m.distance; h.w m.w
h.w h.p m.w m.p; h.p m.w m.p; h.w m.w m.p; h.w h.p m.p; h.w h.p m.w; h.w m.p; h.p m.w
h.p m.p~; h.p b.p m.p
h.t h+1.t m-1.t m.t; h-1.t h.t m-1.t m.t; h.t h+1.t m.t m+1.t; h-1.t h.t m.t m+1.t
h.t h+1.t m.t; h-1.t h.t m.t; h.t m-1.t m.t; h.t m.t m+1.t
h.c h+1.c m-1.c m.c m.distance; h-1.c h.c m-1.c m.c m.distance; h.c h+1.c m.c m+1.c m.distance
h-1.c h.c m.c m+1.c m.distance
h.c h+1.c m.c m.distance; h-1.c h.c m.c m.distance; h.c m-1.c m.c m.distance; h.c m.c m+1.c m.distance
h.m m.m~; h.m m.c; h.c m.m; h.m; m.m
"""
_SIBLINGS = """
m.w s.w; s.w m.t; s.t m.w; s.t m.t~; s.c m.c; h.w s.w m.w; h.w s.c m.c; h.c s.w m.c; h.c s.c m.w; h.t s.t m.t; h.c s.c m.c~
"""
# The ends of words, of arcs and of labels, where case and agreement stand in many languages.
_ARC_SUFFIXES = """
m.suffix1; m.suffix2; m.suffix3; h.suffix2; h.c m.suffix2; h.suffix2 m.c; h.c m.c m.suffix2 m.distance; h.c m.suffix1 m.c
h.suffix2 m.suffix2; h.w m.suffix2
"""
_LABEL_SUFFIXES = """
m.suffix1; h.c m.suffix1; h.c m.suffix2; m.suffix2 m.c h.c m.distance; h.w m.suffix2; h.suffix2 m.suffix2
"""
_PRUNER = """
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
h.m; m.m; h.m m.m; h.m m.c; h.c m.m
"""


class GraphWeights(NamedTuple):
    """All that is learned: what prunes arcs, what scores them, and what labels them."""

    pruner: ArcScorer
    scorer: ArcScorer
    labels: WeightTable


class GraphPredictor(NamedTuple):
    """All that predicts."""

    pruner: ArcScorer
    scorer: ArcScorer
    lists: WeightLists  # for files: what the table was made of
    labels: FrozenTable


class GraphModel(ParserModel):
    """What a graph parser has learned, and how it reads."""

    def __init__(self, fields: Fields, texts: Mapping[str, Sequence[str]], decoder: str, siblings: bool):
        super().__init__(fields)
        self.texts = {kind: tuple(part) for kind, part in texts.items()}
        self.decoder = decoder
        self.siblings = siblings
        templates = [parse_arc_templates(self.texts[kind], fields.attributes) for kind in ("sieve", "templates")]
        pruner, scorer = (ArcScorer(each, new_arc_weights(1 << 12, True)) for each in templates)
        self.label_templates = parse_label_templates(self.texts["label_templates"], fields.attributes)
        self.learning = GraphWeights(pruner, scorer, new_weight_table())
        self.arc_updates, self.label_updates = 0, 0  # each the number of a rule's step, however a stream is cut
        self.n_too_long = 0  # sentences

    @property
    def updates(self) -> int:
        """Changes of the weights."""
        return self.arc_updates + self.label_updates

    def copy(self) -> Self:
        """Return the same model, sharing nothing that learning changes."""
        other = super().copy()
        pruner, scorer = (each._replace(weights=each.weights.copy()) for each in self.learning[:2])
        other.learning = GraphWeights(pruner, scorer, self.learning.labels.copy())
        return other

    def branch(self, shard: int) -> Self:
        """Return a copy for a shard to learn into, whose drift is its own."""
        other = super().copy()
        pruner, scorer = (each._replace(weights=each.weights.branch()) for each in self.learning[:2])
        other.learning = GraphWeights(pruner, scorer, self.learning.labels.branch())
        return other

    def restart(self, average: bool, prune: float, seed: int) -> GraphModel:
        """Return a model that has learned nothing yet and begins with the weights that predict here."""
        frozen: GraphPredictor = self.freeze(average, prune)
        model = GraphModel(self.fields.copy(), self.texts, self.decoder, self.siblings)
        model.labels = dict(self.labels)
        pruner, scorer = (each._replace(weights=each.weights.to_learning()) for each in frozen[:2])
        model.learning = GraphWeights(pruner, scorer, frozen.lists.to_table())
        return model

    @property
    def nbytes(self) -> int:
        """The bytes that the weights take while learning."""
        pruner, scorer, labels = self.learning
        return sum(each.weights.slots.nbytes + each.weights.drift.nbytes for each in (pruner, scorer)) + labels.nbytes

    def norm(self) -> float:
        """Return the Euclidean norm of the weights of arcs and labels."""
        return float(np.sqrt(arc_squared_norm(self.learning.scorer.weights) + squared_norm(self.learning.labels)))

    def weights_now(self) -> NDArray:
        """Return the weights of arcs as they are."""
        return self.learning.scorer.weights.w[:, 2:]

    def change_since(self, start: GraphModel) -> WeightChange:
        """Return what has changed since this model was branched off."""
        arcs = {
            name: now.weights.change_since(then.weights, self.seen)
            for name, now, then in zip(("pruner", "scorer"), self.learning[:2], start.learning[:2], strict=True)
        }
        labels = self.learning.labels.change_since(start.learning.labels, self.seen)
        return WeightChange({**arcs, "labels": labels}, self._counts() - start._counts())

    def add_change(self, change: WeightChange) -> None:
        """Go over to the mixture of which this is the change."""
        self._frozen = None
        self.seen, self.arc_updates, self.label_updates = (self._counts() + change.counts).tolist()
        pruner, scorer = (
            each._replace(weights=each.weights.with_change(change.tables[name], self.seen))
            for name, each in zip(("pruner", "scorer"), self.learning[:2], strict=True)
        )
        labels = self.learning.labels.with_change(change.tables["labels"], self.seen)
        self.learning = GraphWeights(pruner, scorer, labels)

    def _counts(self) -> NDArray:
        return np.array([self.seen, self.arc_updates, self.label_updates])

    def _predictor(self, average: bool, prune: float) -> GraphPredictor:
        pruner, scorer = (
            each._replace(weights=each.weights.freeze(self.seen, average, limit))
            for each, limit in zip(self.learning[:2], (0.0, prune), strict=True)
        )
        lists = freeze_lists(self.learning.labels, self.seen, average, prune)
        return GraphPredictor(pruner, scorer, lists, index_lists(*lists))

    def to_parts(self, resume: bool) -> Parts:
        """Return the model for a file, after `freeze`; with `resume`, all that learning needs to go on."""
        parts = super().to_parts(resume)
        parts.facts |= {
            "texts": {kind: list(texts) for kind, texts in self.texts.items()},
            "decoder": self.decoder,
            "siblings": self.siblings,
            "updates": [self.arc_updates, self.label_updates],
            "set_apart": [self.n_nonprojective, self.n_too_long],
        }
        weights: GraphWeights | GraphPredictor = self.learning if resume else self._frozen[1]  # type: ignore[index]
        labels = self.learning.labels if resume else weights.lists  # type: ignore[union-attr]  # a model that can resume has both
        for name, each in (("sieve", weights.pruner.weights), ("scorer", weights.scorer.weights), ("labels", labels)):
            parts.put_parts("", each.to_parts(), f"{name}.")
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> GraphModel:
        """Return the model that was saved."""
        decoder, siblings = parts.text("decoder", DECODERS), parts.flag("siblings")
        stored = parts.parts("texts", "")
        texts = {kind: stored.values(kind, str) for kind in ("sieve", "templates", "label_templates")}
        model = cls(Fields.from_parts(parts), texts, decoder, siblings)
        model._set_labels(parts)
        model.arc_updates, model.label_updates = parts.wholes("updates", 2)
        model.n_nonprojective, model.n_too_long = parts.wholes("set_apart", 2)
        resume, outcomes = "scorer.drift" in parts.arrays, len(model.labels)
        pruner, scorer = (
            each._replace(weights=ArcWeights.from_parts(parts.parts("", f"{name}.")))
            for name, each in zip(("sieve", "scorer"), model.learning[:2], strict=True)
        )
        labels = parts.parts("", "labels.")
        if resume:
            model.learning = GraphWeights(pruner, scorer, WeightTable.from_parts(labels, outcomes))
        else:
            lists = WeightLists.from_parts(labels, outcomes)
            model._frozen = (True, 0.0), GraphPredictor(pruner, scorer, lists, index_lists(*lists))
        return model


@jit
def count_unusual(heads, starts, longest):
    """(sentences whose tree is not projective, sentences that are too long)."""
    crossing, long = 0, 0
    for i in range(starts.size - 1):
        crossing += not is_projective(heads[starts[i] : starts[i + 1]])
        long += starts[i + 1] - starts[i] > longest
    return crossing, long


class GraphTrainer(StructuredTrainer):
    """What learns from a corpus of trees into a model."""

    model: GraphModel

    def __init__(self, parser: GraphParser, model: GraphModel, corpus: ParserCorpus, visits: Visits):
        super().__init__(model, visits)
        self.corpus, self.decoder = corpus, parser._decoder(model)
        self.rule: Rule = as_rule(parser.rule)
        own = rule_margin(self.rule)
        self.options = ArcOptions(float(parser.margin), own, parser._candidates(), int(parser.max_length))
        self.demand = own - float(parser.label_margin) if parser.label_margin else 0.0
        self.labels = len(model.labels) if parser.labelled else 0

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these sentences once; return what was done, and whether nothing is left to learn."""
        model, before = self.model, self.model.updates
        pruner, scorer, table = model.learning
        counts = Counts(model.seen, model.arc_updates, 0)
        pruner, scorer, counts = learn_arcs(
            self.decoder,
            self.rule,
            True if self.rule.uses_length else None,
            self.options,
            pruner,
            scorer,
            tuple(self.corpus[:3]),
            order,
            counts,
        )
        updates = model.label_updates
        if self.labels > 1:
            sizes = (self.demand, self.labels)
            done = (tuple(self.corpus), order, model.seen, updates)
            table, updates = learn_labels(model.label_templates, table, self.rule, *sizes, *done)
        model.learning, model._frozen = GraphWeights(pruner, scorer, table), None
        model.seen, model.arc_updates, model.label_updates = int(counts.seen), int(counts.updates), int(updates)
        return Progress(len(order), int(counts.mistakes), model.updates - before, -1), model.updates == before


@with_parameters
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

    With a projective decoder, gold trees that are not projective are learned from as they are: an update goes towards the
    gold arcs as long as some projective tree scores as high.

    Parameters
    ----------
    templates
        What is looked at together in an arc, such as "upos[h] upos[m] distance[m]" (places: see
        `rosenblatt.structured.graph.arcs`); None for a set after McDonald's, made for the fields.
    label_templates
        The same for labels (places: see `rosenblatt.structured.graph.labels`).
    decoder
        How the best tree is found.
    siblings
        Whether pairs of modifiers count; None for where the decoder can. The best non-projective tree of pairs cannot be
        found in reasonable time (it is NP-hard), so "chu-liu-edmonds" cannot.
    candidates
        How many heads of a word the pruner lets through to be scored in full; None for all. With 8 of them one gold arc in
        171 did not pass on English-EWT.
    margin
        The cost of a wrong head while learning; 0 for none.
    label_margin
        The cost of a wrong label while learning; 0 for none.
    max_length
        Longer sentences are parsed in pieces of this many words, which all hang on the root of the first; their trees are
        not learned from. Time grows with its cube, and memory too where siblings count.

    Attributes
    ----------
    labels_ : list of str
        The labels of arcs, in the order in which they were met.
    n_nonprojective_ : int
        The gold trees that were not projective.
    n_too_long_ : int
        The sentences that were too long.
    memory_ : int
        The bytes that the weights take while learning.

    Examples
    --------
    >>> from rosenblatt.structured import GraphParser
    >>> X = [[("dogs", "NOUN"), ("bark", "VERB")], [("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> parser = GraphParser(fields=("form", "upos")).fit(X, y)
    >>> parser.predict([[("the", "DET"), ("dogs", "NOUN"), ("sleep", "VERB")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]

    """

    label_templates: Sequence[str] | None = parameter(None, Anything("sequence of str or None"))
    decoder: str = parameter("eisner", OneOf(DECODERS))
    siblings: bool | None = parameter(None, Anything("bool or None"))
    candidates: int | None = parameter(8, Number(1, whole=True, optional=True))
    margin: float = parameter(5.0)
    label_margin: float = parameter(10.0, Number(0))
    max_length: int = parameter(300, Number(1, whole=True))

    _state_attributes: ClassVar[tuple[str, ...]] = (DISTANCE, *STATE)
    _tree_counts: ClassVar[tuple[str, ...]] = ("n_nonprojective", "n_too_long")
    _model_type: ClassVar[Any] = GraphModel

    # What is looked at

    def _with_siblings(self) -> bool:
        if self.siblings not in (None, True, False):
            raise InvalidParameter("siblings", self.siblings, "True, False or None")
        if self.siblings and self.decoder != "eisner":
            raise IncompatibleParameters(
                ("siblings", True),
                ("decoder", self.decoder),
                "finding the best non-projective tree of pairs is NP-hard",
                settings={"siblings": False},
            )
        return self.decoder == "eisner" if self.siblings is None else bool(self.siblings)

    def _texts(self) -> dict[str, tuple[str, ...]]:
        """Return the templates of the pruner, of arcs and of labels."""
        fields, with_siblings = tuple(self.fields), self._with_siblings()

        def chosen(templates: Sequence[str] | None, default: str) -> tuple[str, ...]:
            return expand_templates(default, fields) if templates is None else template_list(templates)

        arcs, labels = (_ARC_SUFFIXES, _LABEL_SUFFIXES) if self.suffixes else ("", "")
        texts = {
            "sieve": expand_templates(_PRUNER, fields) if self.candidates else (),
            "templates": chosen(self.templates, _ARCS + (_SIBLINGS if with_siblings else "") + arcs),
            "label_templates": chosen(self.label_templates, _LABELS + labels),
        }
        if not with_siblings:
            for text in texts["templates"]:
                if any(place[0] == "s" for _, place in parse_terms(text)):
                    allowed = "such that they look at no sibling where siblings do not count"
                    raise InvalidParameter("templates", text, allowed, hint="see `siblings`")
        return texts if self.labelled else texts | {"label_templates": ()}

    def _every_template(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for texts in self._texts().values() for text in texts))

    # Learning

    def _blank_model(self, fields: Fields) -> GraphModel:
        return GraphModel(fields, self._texts(), self.decoder, self._with_siblings())

    def _settings(self, model: GraphModel) -> list[tuple[str, object, object]]:
        texts = self._texts()
        for kind in ("templates", "label_templates"):  # where none are given, those that the model began with
            if getattr(self, kind) is None and texts[kind]:
                texts[kind] = model.texts[kind] or texts[kind]
        return [
            ("templates, siblings, candidates or labelled", (model.texts, model.siblings), (texts, self._with_siblings())),
            ("decoder", model.decoder, self.decoder),
        ]

    def _take_in(self, model: GraphModel, trees: TrainingTrees) -> None:
        model.add_types(trees.sentences, trees.labels)
        crossing, long = count_unusual(trees.corpus.heads, trees.corpus.starts, int(self.max_length))
        model.n_nonprojective += int(crossing)
        model.n_too_long += int(long)

    def _tree_trainer(self, model: GraphModel, corpus: ParserCorpus, visits: Visits) -> GraphTrainer:
        return GraphTrainer(self, model, corpus, visits)

    def _candidates(self) -> int:
        """Return the heads of a word that are scored in full, 0 for all; more than there can be is the same as all."""
        return min(int(self.candidates or 0), int(self.max_length) + 1)

    def _decoder(self, model: GraphModel) -> Decoder:
        crossing = self.decoder != "eisner"
        arcs_alone = not crossing and not model.siblings
        return Decoder(True if crossing else None, True if arcs_alone else None, bool(self.single_root))

    # Predicting

    def _search_name(self) -> str:
        return f"decoder={self.decoder!r}"

    def _parse(self, model: GraphModel) -> Callable[[ParserCorpus], None]:
        pruner, scorer, _, table = self._freeze(model)
        decoder, limits = self._decoder(model), (self._candidates(), int(self.max_length))

        def parse(corpus: ParserCorpus) -> None:
            parse_arcs(decoder, pruner, scorer, *limits, tuple(corpus[:3]))
            if self.labelled and len(model.labels) > 1:
                assign_labels(model.label_templates, table, len(model.labels), tuple(corpus))

        return parse

    # What has been learned

    @property
    def n_nonprojective_(self) -> int:
        """The gold trees that were not projective."""
        return self._fitted().n_nonprojective

    @property
    def n_too_long_(self) -> int:
        """The sentences that were too long."""
        return self._fitted().n_too_long
