"""A dependency parser that reads a sentence once, from left to right, and decides as it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.train import NO_LIMIT, Learner, Visits
from rosenblatt.estimators.parameters import Number, OneOf
from rosenblatt.estimators.plan import Plan
from rosenblatt.structured.base import WIDEST, offset, rule_of
from rosenblatt.structured.features import ledger as ledgers
from rosenblatt.structured.features.fields import Fields, starts_of
from rosenblatt.structured.features.ledger import Ledger, copied, new_ledger, squared_norm
from rosenblatt.structured.features.templates import listed
from rosenblatt.structured.features.words import packed, unpacked
from rosenblatt.structured.parser import Corpus, DependencyParser
from rosenblatt.structured.transition import beam, greedy, outlook, transitions
from rosenblatt.structured.transition.greedy import Manner
from rosenblatt.structured.transition.sheet import Lists, Sheet, bind, checked, written

MOST_LABELS = 2**15 - 1  # an action is one of 1 + 2 · labels, and a list names 2¹⁶

# What is looked at where no templates are given: words (w), tags (t) and coarse tags (c), alone and together.
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
"""


def templates_for(fields: Sequence[str]) -> tuple[str, ...]:
    """The templates that are used where none are given, for tokens of these fields: the form, and the tags, of which the
    first is taken to be coarse and the last to be fine."""
    names = {"w": "form", "c": fields[1] if len(fields) > 1 else "shape", "t": fields[-1] if len(fields) > 1 else "suffix3"}
    texts = []
    for text in _TEMPLATES.replace("\n", ";").split(";"):
        terms = [term.split(".") for term in text.split()]
        texts.append(" ".join(f"{names.get(attribute, attribute)}[{place}]" for place, attribute in terms))
    return tuple(text for text in dict.fromkeys(texts) if text)


class Model:
    """What a parser has learned, and how it reads."""

    only_predicts = False

    def __init__(self, fields: Fields, templates: Sequence[str], seed: int = 0):
        self.fields = fields
        self.templates = tuple(templates)
        self.outlook = outlook.read(self.templates, fields.attributes)
        self.labels: dict[str, int] = {}
        self.uses = np.zeros(0, np.uint8)  # (labels,) the kinds of arcs that each is seen on
        self.ledger: Ledger = new_ledger()
        self.seen = 0
        self.updates = 0
        self.seed = seed  # of what is left to chance
        self.unit = 1.0  # of the weights in lists
        self.asked: tuple[bool, float] | None = None  # what the lists were written for; None before
        self.lists: Lists
        self.sheet: Sheet  # the lists, ready to be looked up

    def copy(self) -> Model:
        """The same, sharing nothing that learning changes."""
        other = Model.__new__(Model)
        other.__dict__.update(self.__dict__)
        other.labels, other.uses, other.ledger = dict(self.labels), self.uses.copy(), copied(self.ledger)
        return other

    def bytes(self) -> int:
        """The bytes that the weights take while learning."""
        return ledgers.bytes_of(self.ledger)

    def know(self, labels: Mapping[str, int]) -> None:
        """Take in the names of labels, the known ones first."""
        self.labels = dict(labels)
        self.uses = np.concatenate([self.uses, np.zeros(len(labels) - len(self.uses), np.uint8)])
        self.asked = None

    def predicting(self, average: bool, prune: float) -> Sheet:
        """The weights that predict."""
        if self.asked != (average, prune) and not (self.asked and self.only_predicts):
            self.lists, self.unit = written(self.ledger, self.seen, average, prune)
            self.sheet = bind(self.lists, 1 + 2 * max(len(self.labels), 1))
            self.asked = average, prune
        return self.sheet

    def arrays(self, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The model as facts and arrays."""
        types = self.fields.types()
        facts = {
            "fields": list(self.fields.fields),
            "attributes": list(self.fields.attributes),
            "typed": list(types),
            "templates": list(self.templates),
            "labels": list(self.labels),
            "seen": self.seen,
            "updates": self.updates,
            "seed": self.seed,
            "unit": self.unit,
        }
        arrays = {f"{field}.{name}": array for field in types for name, array in packed(types[field]).items()}
        arrays["uses"] = self.uses
        parts = ledgers.written(self.ledger) if resume else self.lists._asdict()
        return facts, arrays | {f"weights.{name}": part for name, part in parts.items()}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Model:
        """The model that these facts and arrays describe."""
        types = {
            field: unpacked({name: arrays[f"{field}.{name}"] for name in ("bytes", "lengths")}) for field in facts["typed"]
        }
        model = cls(Fields(facts["fields"], facts["attributes"], types), facts["templates"], int(facts["seed"]))
        model.labels = {str(name): number for number, name in enumerate(facts["labels"])}
        model.uses = arrays["uses"].astype(np.uint8)
        model.seen, model.updates, model.unit = int(facts["seen"]), int(facts["updates"]), float(facts["unit"])
        actions = 1 + 2 * len(model.labels)
        if model.uses.shape != (len(model.labels),):
            raise ValueError(f"there are {len(model.labels)} labels, but the uses of {model.uses.size}")
        if "weights.drift" in arrays:
            parts = {name.removeprefix("weights."): part for name, part in arrays.items() if name.startswith("weights.")}
            model.ledger = ledgers.taken_up(parts)
            if model.ledger.outcomes.max(initial=0) >= actions:
                raise ValueError(f"a weight is for an action that is none of {actions}")
        else:
            model.lists = checked(Lists(*(arrays[f"weights.{name}"] for name in Lists._fields)), actions)
            model.sheet = bind(model.lists, actions)
            model.asked = True, 0.0
        return model


class Reading(NamedTuple):
    """A corpus with gold trees, made projective; the labels there are now; and the model that reads it."""

    corpus: Corpus
    labels: dict[str, int]
    model: Model


class _Learner:
    """Learns from a corpus into a model: see `train.Learner`."""

    def __init__(self, model: Model, corpus: Corpus, visits: Visits, ways: tuple[Any, ...], width: int, early: bool):
        self.model, self.corpus, self.visits, self.ways, self.width, self.early = model, corpus, visits, ways, width, early

    @property
    def seen(self) -> int:
        return self.model.seen

    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        model, before = self.model, self.model.updates
        known = (model.ledger, model.outlook, self.corpus, order, *self.ways, model.uses, model.seen, model.updates)
        done = greedy.learn(*known) if self.width == 1 else beam.learn(*known, self.width, self.early)
        model.ledger, mistakes, model.updates = done
        model.seen += len(order)
        model.asked = None
        updates = model.updates - before
        return Progress(len(order), int(mistakes), updates, -1), updates == 0

    def size(self) -> float:
        return float(np.sqrt(squared_norm(self.model.ledger)))

    def weights_now(self) -> NDArray:
        return self.model.ledger.w[: self.model.ledger.used[1]]

    def finish(self) -> None:
        pass


class TransitionParser(DependencyParser):
    """A parser that builds a tree by shifting words and joining them (arc-hybrid), greedily or with a beam.

    Greedily it learns from a dynamic oracle, which tells in any configuration, right or wrong, which actions lose no
    further gold arc (Goldberg and Nivre 2012, 2013); with a beam from the prefix in which a rival is furthest ahead of gold
    (maximum violation: Huang, Fayong and Guo 2012). By any rule: the averaged perceptron's unless told otherwise, and then,
    if some weights separate gold from all rivals by δ, the updates of a beam are at most (R² + 2·margin·n)/δ², with R
    the largest ‖Δ‖ and n the most arcs that a sentence can lose (Collins 2002; Huang, Fayong
    and Guo for violations).

    Its trees are projective. Gold trees that are not are made so, by hanging words onto the head of their head.

    Parameters
    ----------
    beam : how many configurations are kept; 1 is greedy. Train with the beam that will be used
    fields : what tokens are made of: the form first, then tags, the coarsest first
    templates : what is looked at together, such as "upos[s0] upos[b0]"; None for a rich set made for the fields
    single_root : whether one word alone hangs on the root
    labelled : whether arcs have labels
    rule, keep, order : as everywhere in `rosenblatt.structured`
    margin : what each gold arc that is lost, or gets a wrong label, adds to the score of a rival in learning
    update : of a beam, "max-violation" or "early" (when gold falls off the beam)
    explore : of a greedy parser, how often it follows itself rather than the oracle in learning
    prune : weights of at most this many times their mean size are dropped before predicting
    max_iter, max_seconds, tol, n_iter_no_change, early_stopping, validation_fraction : when to stop
    warm_start, n_jobs, random_state, verbose : as everywhere; n_jobs threads share the sentences to predict

    `n_mistakes_` counts what a rival scored at least as high in: actions if greedy, sentences with a beam.

    Examples
    --------
    >>> from rosenblatt.structured import TransitionParser
    >>> X = [[("dogs", "NOUN"), ("bark", "VERB")], [("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> parser = TransitionParser(fields=("form", "upos")).fit(X, y)
    >>> parser.predict([[("the", "DET"), ("dogs", "NOUN"), ("sleep", "VERB")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    """

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **DependencyParser._own,
            "beam": Number(1, whole=True, high=WIDEST, closed_high=True),
            "update": OneOf(("max-violation", "early")),
            "explore": Number(0, high=1, closed_high=True),
            "prune": Number(0),
        }
    )
    _places: ClassVar[tuple[str, ...]] = outlook.PLACES
    _state_attributes: ClassVar[tuple[str, ...]] = outlook.STATE

    def __init__(
        self,
        beam: int = 1,
        *,
        fields: Sequence[str] = ("form", "upos", "xpos"),
        templates: Sequence[str] | None = None,
        single_root: bool = True,
        labelled: bool = True,
        rule: Any = "perceptron",
        margin: float = 40.0,
        update: str = "max-violation",
        explore: float = 0.9,
        prune: float = 0.6,
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
        self.beam = beam
        self.fields = fields
        self.templates = templates
        self.single_root = single_root
        self.labelled = labelled
        self.rule = rule
        self.margin = margin
        self.update = update
        self.explore = explore
        self.prune = prune
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

    # Learning

    def _texts(self) -> tuple[str, ...]:
        return templates_for(tuple(self.fields)) if self.templates is None else listed(self.templates)

    def _every_template(self) -> tuple[str, ...]:
        return self._texts()

    def _corpus(self, X: Any, y: Any, begin: bool) -> Reading:
        model = Model(self._read_fields(), self._texts()) if begin else self._resumable()
        if not begin and (model.fields.fields, model.templates) != (tuple(self.fields), self._texts()):
            raise ValueError(
                "fields or templates has changed since this model began to learn; fit a new one, or change it back"
            )
        if not self.labelled and list(model.labels) not in ([], ["_"]):
            raise ValueError("labelled has changed since this model began to learn; fit a new one, or change it back")
        labels = dict(model.labels)
        heads, numbers = self._read_trees(y, starts_of(X), labels, learn=True)
        values, starts = model.fields.values(X, learn=True)
        if not self.labelled:
            labels, numbers = {"_": 0}, np.zeros_like(numbers)
        if len(labels) > MOST_LABELS:
            raise ValueError(f"there are {len(labels)} labels; at most {MOST_LABELS} can be told apart")
        self._refuse_roots(heads, starts)
        transitions.make_projective(heads, starts)
        return Reading(Corpus(values, starts, heads, numbers), labels, model)

    def _begin(self, plan: Plan, corpus: Reading) -> Model:
        corpus.model.seed = int(plan.rng().integers(2**62))
        return corpus.model

    def _learner(self, plan: Plan, model: Model, corpus: Reading, visits: Visits) -> Learner:
        model.know(corpus.labels)
        rule = rule_of(self.rule)
        seed = mix(np.uint64(0), np.uint64(model.seed))
        manner = Manner(bool(self.single_root), float(self.margin), offset(rule, self.margin), float(self.explore), seed)
        return _Learner(model, corpus.corpus, visits, (rule, manner), int(self.beam), self.update == "early")

    # Predicting

    def _searching(self) -> str:
        return "beam=1" if self.beam == 1 else "a beam"

    def _predict(self, model: Model, X: Sequence) -> list:
        values, starts = model.fields.values(X)
        heads, labels = np.zeros(len(values), np.int32), np.zeros(len(values), np.int32)
        sheet, single_root = model.predicting(self.keep == "average", float(self.prune)), bool(self.single_root)

        uses = model.uses if len(model.uses) else np.zeros(1, np.uint8)  # of empty sentences, no label has been learned

        def parse(part: slice) -> None:
            known = (sheet, model.outlook, Corpus(values, starts[part], heads, labels), uses, single_root)
            if self.beam == 1:
                greedy.parse(*known)
            else:
                beam.parse(*known, int(self.beam))

        self._in_parts(parse, len(X))
        return self._written_trees(heads, labels, list(model.labels) if self.labelled else [], starts, single_root)

    # Files

    def _arrays(self, model: Model, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        model.predicting(self.keep == "average", float(self.prune))
        return model.arrays(resume)

    def _from_arrays(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Model:
        return Model.restored(facts, arrays)
