"""A dependency parser that reads a sentence once, from left to right, and decides as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.mixing import WeightChange
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits
from rosenblatt.estimators.parameters import Number, OneOf, parameter, with_parameters
from rosenblatt.estimators.plan import Plan
from rosenblatt.estimators.progress import Units
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured.base import WIDEST, Rule, StructuredTrainer, as_rule, margin_offset, shard_seed
from rosenblatt.structured.features.fields import Fields
from rosenblatt.structured.features.templates import expand_templates, template_list
from rosenblatt.structured.features.weight_table import WeightLists, WeightTable, new_weight_table, squared_norm
from rosenblatt.structured.parser import DependencyParser, ParserCorpus, ParserModel, ParserNames, TrainingTrees
from rosenblatt.structured.transition import transitions
from rosenblatt.structured.transition.beam import learn_beam, parse_beam
from rosenblatt.structured.transition.greedy import TransitionOptions, learn_greedy, parse_greedy
from rosenblatt.structured.transition.quantized import QuantizedTable, index_quantized, quantize
from rosenblatt.structured.transition.state_features import STATE, parse_state_templates

MOST_LABELS = 2**15 - 1  # an action is one of 1 + 2 · labels, and a list names 2¹⁶

# What is looked at where no templates are given: words (w), tags (t) and coarse tags (c), alone and together; and of more
# than two tags those between the first and the last (m).
_TEMPLATES = """
s0.w; s0.t; s0.c; s0.t s0.w; s1.w; s1.t; s1.c; s1.t s1.w; s2.w; s2.t; s2.c
b0.w; b0.t; b0.c; b0.t b0.w; b1.w; b1.t; b1.c; b1.t b1.w; b2.w; b2.t; b2.c; b3.t; b3.c
s0.t b0.t; s0.t b0.w; s0.w b0.t; s0.w b0.w; s0.c b0.c; s0.c b0.w; s0.w b0.c; s0.t s0.w b0.t b0.w
s0.t s0.w b0.t; s0.t b0.t b0.w; s0.t s0.w b0.w; s0.w b0.t b0.w
s0.t s1.t; s0.t s1.w; s0.w s1.t; s0.w s1.w; s0.c s1.c; s0.c s1.w; s0.w s1.c; s0.t s0.w s1.t s1.w
s0.t s0.w s1.t; s0.t s1.t s1.w
s1.t b0.t; s1.c b0.c; s1.t b0.w; s1.w b0.t; s1.w b0.w; s0.t s2.t; s0.c s2.c; s2.c b0.c
b0.t b1.t; b0.c b1.c; b0.w b1.w; b0.w b1.c; b0.c b1.w; s0.t b1.t; s0.c b1.c; s0.w b1.c
s0.t b0.t b1.t; s0.c b0.c b1.c; s0.w b0.c b1.c; s0.c b0.w b1.c; s0.c b0.c b1.w; s0.c b0.c b1.c b2.c
b0.c b1.c b2.c; b0.t b1.t b2.t
s0.t b0.t s1.t; s0.c b0.c s1.c; s0.c b0.c s1.w; s0.w b0.c s1.c; s0.c b0.w s1.c; s0.c b0.c s1.c b1.c; s0.t b0.t s1.t b1.t
s0.c s1.c s2.c; s0.t s1.t s2.t; s0.c b0.c s1.c s2.c
s0l.w; s0l.t; s0l.c; s0l.label; s0r.w; s0r.t; s0r.c; s0r.label; s0l2.c; s0l2.label; s0r2.c; s0r2.label
s1l.w; s1l.t; s1l.label; s1r.w; s1r.t; s1r.c; s1r.label; s1r2.c; s1r2.label; s1l2.label
b0l.w; b0l.t; b0l.c; b0l.label; b0l2.c; b0l2.label
s0.c b0.c s0l.c; s0.c b0.c s0r.c; s0.c b0.c b0l.c; s0.t b0.t s0l.t; s0.t b0.t s0r.t; s0.t b0.t b0l.t
s0.c s0l.c s0l2.c; s0.c s0r.c s0r2.c; b0.c b0l.c b0l2.c
s0.c s1.c s0l.c; s0.c s1.c s0r.c; s0.c s1.c s1r.c; s0.c s1.c s1l.c; s0.t s1.t s1r.t; s0.t s1.t s0l.t; s0.t s1.t s0r.t
s0.c b0.c s0l.label; s0.c b0.c s0r.label; s0.c b0.c b0l.label; s0.c s1.c s1r.label; s0.c s1.c s0l.label
s0.c s1.c s0r.label; s0.c s1.c s1l.label; s0.w s0l.label; s0.w s0r.label; b0.w b0l.label; s1.w s1r.label
s0.w s0.distance; s0.c s0.distance; b0.w s0.distance; b0.c s0.distance; s0.c b0.c s0.distance
s0.t b0.t s0.distance; s0.w b0.w s0.distance
s0.c s1.c s1.distance; s0.t s1.t s1.distance; s0.c s1.w s1.distance; s0.w s1.c s1.distance; s1.c s1.distance
s0.c s1.distance
s0.w s0.lefts; s0.c s0.lefts; s0.w s0.rights; s0.c s0.rights; b0.w b0.lefts; b0.c b0.lefts
s1.w s1.rights; s1.c s1.rights; s1.c s1.lefts
s0.c s1.c s1.rights; s0.c b0.c s0.lefts; s0.c b0.c b0.lefts; s0.c b0.c s0.rights
s0.w s0.leftlabels; s0.c s0.leftlabels; s0.w s0.rightlabels; s0.c s0.rightlabels; b0.w b0.leftlabels; b0.c b0.leftlabels
s1.w s1.rightlabels; s1.c s1.rightlabels; s1.c s1.leftlabels; s1.w s1.leftlabels
s0.m; s1.m; b0.m; b1.m; s0.m b0.m; s0.m s1.m; s0.m b0.c; s0.c b0.m; s0.m s1.c; s0.c s1.m
"""
# The ends of words, where case and agreement stand in many languages. On dev parts (gold tags, greedy) they add 5.5 points
# of LAS for Hungarian, 1.1 for Italian, 0.4 for Vietnamese, none for English, for 13 to 27 % more CPU time in training.
# Longer ends, beginnings of words, ends of two words together and ends of children added nothing to these.
_SUFFIXES = """
s0.suffix1; s0.suffix2; s0.suffix3; s1.suffix1; s1.suffix2; s1.suffix3; b0.suffix1; b0.suffix2; b0.suffix3; b1.suffix3
s0.suffix2 s0.c b0.c; b0.suffix2 b0.c s0.c; s0.suffix2 s0.c s1.c; s1.suffix2 s1.c s0.c
"""


def templates_for(fields: Sequence[str], suffixes: bool = True) -> tuple[str, ...]:
    """Return the templates that are used where none are given.

    Parameters
    ----------
    fields : sequence of str
        What tokens are made of: the form, and the tags, of which the first is taken to be coarse and the last to be fine;
        those between them are used in few templates.
    suffixes : bool, default=True
        Whether to include templates of the last letters of words.

    Returns
    -------
    tuple of str
    """
    return expand_templates(_TEMPLATES + _SUFFIXES if suffixes else _TEMPLATES, fields)


class TransitionPredictor(NamedTuple):
    """What predicts: the weights in lists, as a file holds them, and ready to be looked up."""

    lists: WeightLists
    unit: float  # of the weights in lists
    table: QuantizedTable


class TransitionModel(ParserModel):
    """What a transition parser has learned, and how it reads."""

    def __init__(self, fields: Fields, templates: Sequence[str], seed: int = 0):
        super().__init__(fields)
        self.templates = tuple(templates)
        self.state_templates = parse_state_templates(self.templates, fields.attributes)
        self.uses = np.zeros(0, np.uint8)  # (labels,) the kinds of arcs that each is seen on
        self.table: WeightTable = new_weight_table()
        self.updates = 0
        self.n_lifted = 0  # words whose gold head was moved
        self.seed = seed  # of random exploration

    def copy(self) -> Self:
        """Return the same model, sharing nothing that learning changes."""
        other = super().copy()
        other.uses, other.table = self.uses.copy(), self.table.copy()
        return other

    def branch(self, shard: int) -> Self:
        """Return a copy for a shard to learn into, whose drift is its own and which explores in its own way. In the first
        epoch it uses labels as it meets them, as ever."""
        other = super().copy()
        other.seed, other.table = shard_seed(self.seed, shard), self.table.branch()
        other.uses = self.uses.copy() if self.seen else np.zeros_like(self.uses)
        return other

    def restart(self, average: bool, prune: float, seed: int) -> TransitionModel:
        """Return a model that has learned nothing yet and begins with the weights that predict here."""
        lists, unit, _ = self.freeze(average, prune)
        model = TransitionModel(self.fields.copy(), self.templates, seed)
        model.labels, model.uses = dict(self.labels), self.uses.copy()
        model.table = lists._replace(weights=(unit * lists.weights).astype(np.float32)).to_table()
        return model

    @property
    def nbytes(self) -> int:
        """The bytes that the weights take while learning."""
        return self.table.nbytes

    def norm(self) -> float:
        """Return the Euclidean norm of the weights."""
        return float(np.sqrt(squared_norm(self.table)))

    def weights_now(self) -> NDArray:
        """Return the weights as they are."""
        return self.table.w[: self.table.used[1]]

    def change_since(self, start: TransitionModel) -> WeightChange:
        """Return what has changed since this model was branched off."""
        counts = np.array([self.seen - start.seen, self.updates - start.updates])
        return WeightChange({"actions": self.table.change_since(start.table, self.seen)}, counts)

    def add_change(self, change: WeightChange) -> None:
        """Go over to the mixture of which this is the change."""
        self._frozen = None
        seen, updates = change.counts.tolist()
        self.seen += seen
        self.updates += updates
        self.table = self.table.with_change(change.tables["actions"], self.seen)

    def add_types(self, sentences: Sequence, labels: Mapping[str, int]) -> None:
        """Take in the words of sentences, and the names of labels, the known ones first."""
        super().add_types(sentences, labels)
        self.uses = np.concatenate([self.uses, np.zeros(len(labels) - len(self.uses), np.uint8)])

    def _predictor(self, average: bool, prune: float) -> TransitionPredictor:
        lists, unit = quantize(self.table, self.seen, average, prune)
        return TransitionPredictor(lists, unit, index_quantized(lists, 1 + 2 * max(len(self.labels), 1)))

    def to_parts(self, resume: bool) -> Parts:
        """Return the model for a file, after `freeze`; with `resume`, all that learning needs to go on."""
        lists, unit, _ = self._frozen[1]  # type: ignore[index]
        parts = super().to_parts(resume)
        parts.facts |= {
            "typed": list(self.fields.types()),
            "templates": list(self.templates),
            "updates": self.updates,
            "seed": self.seed,
            "unit": unit,
            "nonprojective": self.n_nonprojective,
            "lifted": self.n_lifted,
        }
        parts.put("uses", self.uses)
        small = np.uint8 if lists.outcomes.max(initial=0) < 256 else np.uint16
        parts.put_parts("", self.table.to_parts() if resume else lists.to_parts(np.uint16, small), "weights.")
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> TransitionModel:
        """Return the model that was saved."""
        model = cls(Fields.from_parts(parts), parts.values("templates", str), parts.whole("seed"))
        model._set_labels(parts)
        model.uses = parts.array("uses", np.uint8, (len(model.labels),)).copy()
        model.updates, unit, actions = parts.whole("updates"), parts.real("unit"), 1 + 2 * len(model.labels)
        if "lifted" in parts.facts:  # older files do not say
            model.n_nonprojective, model.n_lifted = parts.whole("nonprojective"), parts.whole("lifted")
        weights = parts.parts("", "weights.")
        if "drift" in weights.arrays:
            model.table = WeightTable.from_parts(weights, actions)
        else:
            lists = WeightLists.from_parts(weights, actions, np.int16)
            model._frozen = (True, 0.0), TransitionPredictor(lists, unit, index_quantized(lists, actions))
        return model


class TransitionTrainer(StructuredTrainer):
    """What learns from a corpus of trees into a model."""

    model: TransitionModel

    def __init__(self, parser: TransitionParser, model: TransitionModel, corpus: ParserCorpus, visits: Visits):
        super().__init__(model, visits)
        self.corpus, self.width, self.early = corpus, int(parser.beam), parser.update == "early"
        self.rule: Rule = as_rule(parser.rule)
        self.options = TransitionOptions(
            bool(parser.single_root),
            float(parser.margin),
            margin_offset(self.rule, parser.margin),
            float(parser.explore),
            np.uint64(mix(np.uint64(0), np.uint64(model.seed))),  # an int below 2⁶³ would be signed in the kernel
        )

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these sentences once; return what was done, and whether nothing is left to learn."""
        model, before = self.model, self.model.updates
        counts = (model.uses, model.seen, model.updates)
        known = (model.table, model.state_templates, self.corpus, order, self.rule, self.options, *counts)
        done = learn_greedy(*known) if self.width == 1 else learn_beam(*known, self.width, self.early)
        model.table, mistakes, model.updates = done
        model.seen += len(order)
        model._frozen = None
        updates = model.updates - before
        return Progress(len(order), int(mistakes), updates, -1), updates == 0


@with_parameters
class TransitionParser(DependencyParser):
    """A parser that builds a tree by shifting words and joining them (arc-hybrid), greedily or with a beam.

    Greedily it learns from a dynamic oracle, which tells in any configuration, right or wrong, which actions lose no
    further gold arc (Goldberg and Nivre 2012, 2013); with a beam from the prefix in which a rival is furthest ahead of gold
    (maximum violation: Huang, Fayong and Guo 2012). By any rule; with the averaged perceptron's, the default,
    if some weights separate gold from all rivals by δ, the updates of a beam are at most (R² + 2·margin·n)/δ², with R
    the largest ‖Δ‖ and n the most arcs that a sentence can lose (Collins 2002; Huang, Fayong
    and Guo for violations).

    Its trees are projective. Gold trees that are not are made so, by hanging words onto the head of their head:
    `n_nonprojective_` and `n_lifted_` count them.

    Parameters
    ----------
    beam
        How many configurations are kept; 1 is greedy. Train with the beam that will be used.
    templates
        What is looked at together, such as "upos[s0] upos[b0]"; None for a rich set made for the fields. A model keeps the
        templates that it was first trained with.
    margin
        What each gold arc that is lost, or gets a wrong label, adds to the score of a rival in learning.
    update
        Of a beam: learn where a rival is furthest ahead, or where gold falls off the beam.
    explore
        Of a greedy parser, how often it follows itself rather than the oracle in learning.
    prune
        Weights of at most this many times their mean size are dropped before predicting.

    Attributes
    ----------
    labels_ : list of str
        The labels of arcs, in the order in which they were met.
    n_mistakes_ : int
        How often a rival scored at least as high as gold: actions if greedy, sentences with a beam.
    n_nonprojective_ : int
        The gold trees with crossing arcs, which were made projective before learning.
    n_lifted_ : int
        The words in them that got another head by that.
    memory_ : int
        The bytes that the weights take while learning.

    Examples
    --------
    >>> from rosenblatt.structured import TransitionParser
    >>> X = [[("dogs", "NOUN"), ("bark", "VERB")], [("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> parser = TransitionParser(fields=("form", "upos")).fit(X, y)
    >>> parser.predict([[("the", "DET"), ("dogs", "NOUN"), ("sleep", "VERB")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    """

    beam: int = parameter(1, Number(1, whole=True, high=WIDEST, closed_high=True), positional=True)
    margin: float = parameter(40.0)
    update: str = parameter("max-violation", OneOf(("max-violation", "early")))
    explore: float = parameter(0.9, Number(0, high=1, closed_high=True))
    prune: float = parameter(0.6)

    _state_attributes: ClassVar[tuple[str, ...]] = STATE
    _most_labels: ClassVar[int] = MOST_LABELS
    _tree_counts: ClassVar[tuple[str, ...]] = ("n_nonprojective", "n_lifted")
    _model_type: ClassVar[Any] = TransitionModel

    # Learning

    def _every_template(self) -> tuple[str, ...]:
        if self.templates is None:
            return templates_for(tuple(self.fields), bool(self.suffixes))
        return template_list(self.templates)

    def _blank_model(self, fields: Fields) -> TransitionModel:
        return TransitionModel(fields, self._every_template())

    def _settings(self, model: TransitionModel) -> list[tuple[str, object, object]]:
        learned_labels = list(model.labels) not in ([], ["_"])
        return [
            ("templates", model.templates, model.templates if self.templates is None else template_list(self.templates)),
            ("labelled", learned_labels, learned_labels and bool(self.labelled)),
        ]

    def _new_model(self, plan: Plan, corpus: TrainingTrees) -> TransitionModel:
        corpus.model.seed = int(plan.rng().integers(2**62))
        return corpus.model

    def _take_in(self, model: TransitionModel, trees: TrainingTrees) -> None:
        model.add_types(trees.sentences, trees.labels)
        crossing, lifted = transitions.make_projective(trees.corpus.heads, trees.corpus.starts)
        model.n_nonprojective += int(crossing)
        model.n_lifted += int(lifted)

    def _tree_trainer(self, model: TransitionModel, corpus: ParserCorpus, visits: Visits) -> TransitionTrainer:
        return TransitionTrainer(self, model, corpus, visits)

    def _shard_corpus(self, X: Sequence, y: Sequence) -> tuple[TrainingTrees, ParserNames]:
        trees, names = super()._shard_corpus(X, y)
        uses = np.zeros(len(names.labels), np.uint8)
        transitions.note_corpus_uses(*trees.corpus[1:], uses)
        return trees, names._replace(uses=uses)

    def _common_model(self, plan: Plan, names: Sequence[ParserNames]) -> TransitionModel:
        model = super()._common_model(plan, names)
        model.seed = int(plan.rng().integers(2**62))
        model.uses = np.zeros(len(model.labels), np.uint8)
        for part in names:
            model.uses[[model.labels[label] for label in part.labels]] |= part.uses
        return model

    @property
    def n_nonprojective_(self) -> int:
        """The gold trees with crossing arcs, which were made projective before learning."""
        return self._fitted().n_nonprojective

    @property
    def n_lifted_(self) -> int:
        """The words in them that got another head by that."""
        return self._fitted().n_lifted

    # Predicting

    def _units(self) -> Units:
        return Units("sentences", "actions" if self.beam == 1 else "")

    def _search_name(self) -> str:
        return "beam=1" if self.beam == 1 else "a beam"

    def _parse(self, model: TransitionModel) -> Callable[[ParserCorpus], None]:
        table, width, single_root = self._freeze(model).table, int(self.beam), bool(self.single_root)
        uses = model.uses if len(model.uses) else np.zeros(1, np.uint8)  # of empty sentences, no label has been learned

        def parse(corpus: ParserCorpus) -> None:
            known = (table, model.state_templates, corpus, uses, single_root)
            if width == 1:
                parse_greedy(*known)
            else:
                parse_beam(*known, width)

        return parse
