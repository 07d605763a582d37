"""The structured perceptron for whatever can be searched. A problem is a search; the learner adds only what every learner
of this library has: a margin, a step, an average, and reasons to stop.
"""

from __future__ import annotations

import copy
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt import rules
from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.train import Learner, NumericFailure, Visits
from rosenblatt.estimators.linear import Explanation
from rosenblatt.estimators.parameters import Number
from rosenblatt.estimators.plan import Plan
from rosenblatt.structured.base import Structured, rule_of
from rosenblatt.structured.named import NamedModel, NamedWeights, direction, total
from rosenblatt.structured.search import Search, loss, parts
from rosenblatt.structured.searching import Mixing, Searching, decoded


class StructuredPerceptron(Structured):
    """Learns to score paths from a search: after `fit`, `search.decode` with the weights learned finds the right ones.

    An input x and its gold path propose Δ = φ(x, gold) − φ(x, guess), where the guess is what the search finds with the
    weights w. Where the margin w·Δ is at most 0, or at most what the rule says, w += τΔ (Collins 2002). If ‖Δ‖ ≤ R for
    every wrong path and some unit vector scores gold above each by at least γ, there are at most R²/γ² updates, in any
    order, for however many paths.

    Parameters
    ----------
    search : object
        The problem: `decode(x, w)` and `features(x, path)`, and what else `rosenblatt.structured.search` describes.
        `rosenblatt.structured.beams.BeamSearch` makes one of a problem that is solved step by step.
    rule : NamedTuple of rosenblatt.rules or "perceptron", default="perceptron"
        How far an update moves. The word is `rules.Perceptron(margin=0.0, rate=1.0)`; `rules.PA1(C)` with a `margin` is
        1-best MIRA with its step capped at C (McDonald, Crammer and Pereira 2005).
    margin : float, default=0
        By how much gold must beat a wrong path for each unit of its loss. Above 0 it takes the place of the rule's own
        margin. A search with a `violation` can look for the path that falls short most; without one the guess is what is
        predicted, and the margin only lengthens the step of rules that have one to lengthen.
    keep : {"average", "last"}, default="average"
        Which weights predict: the mean of those after every example, or the last. Both are kept; it may be changed.
    order : {"shuffle", "cyclic"}, default="shuffle"
        How each epoch visits the examples: in a new random order, or as they come.
    max_iter, max_updates, max_seconds : when to stop at the latest; default 10 epochs, no limit, no limit.
    tol, n_iter_no_change : float or None, default=None; int, default=5
        Stop when the validation error, or without validation the share of mistakes, has not fallen by more than `tol` for
        so many epochs. None: do not. An epoch without an update always ends the run.
    early_stopping, validation_fraction : bool, default=False; float, default=0.1
        Hold out this share of the examples for validation, where `fit` is given none. It needs a `tol`.
    shards : int, default=1
        Learn each epoch in so many parts, all from the same weights, and go on from their mean (iterative parameter mixing:
        McDonald, Hall and Mann 2010). With S shards the bound is S times as large, and S processes can share the work.
    n_jobs : int or None, default=1
        How many processes learn shards, and how many predict; None and −1: as many as there are processors. The search and
        the inputs are sent to them, which pays for slow searches. The results are the same for any number.
    warm_start : bool, default=False
        Whether `fit` goes on from what has been learned.
    random_state : int, RandomState, Generator or None, default=0
        Where the orders come from.
    verbose : int, default=0
        Above 0, a line on stderr follows the epochs.

    Attributes
    ----------
    weights_ : NamedWeights
        The weights that predict, by name: a dictionary to be read, which answers 0.0 for a name without a weight.
    n_mistakes_, n_updates_, n_seen_ : int
        Examples that were not predicted before they were learned from, changes of the weights, examples visited.
    n_refused_ : int
        Since the model began, pairs of paths that the search brought and that were not learned from, because the right one
        was ahead by what is asked for, or had the same features: an update would break the theorem (Huang, Fayong and Guo
        2012). An exact search that answers None where gold has won brings none of the first kind.
    history_, n_iter_, stop_reason_
        What each epoch did, how many there were, and why they ended.

    Notes
    -----
    At w = 0 all paths tie. Learning starts at the first example that has a wrong path, whatever `decode` does with ties:
    until a weight has moved, a `decode` that answers with gold is asked again for the path least like it. Later, a tie that
    `decode` breaks in favour of gold counts as right; a search with a `violation` can, and should, hold ties against gold.

    Memory: one weight, one drift and one name for each feature that took part in an update. An error leaves the estimator
    as it was.

    Examples
    --------
    Which of the words of a list is said: the path is a word, and a wrong one has one part.

    >>> from rosenblatt.structured.perceptron import StructuredPerceptron
    >>> class Pick:
    ...     def decode(self, words, w):
    ...         return max(words, key=lambda word: w.score(self.features(words, word)))
    ...     def features(self, words, word):
    ...         return {("last letter", word[-1]): 1, ("length", len(word)): 1}
    >>> X = [["cat", "dogs"], ["birds", "cow"], ["hens", "fox", "ant"]]
    >>> model = StructuredPerceptron(Pick()).fit(X, ["dogs", "birds", "hens"])
    >>> model.predict([["rat", "mice", "rats"]])
    ['rats']
    >>> model.stop_reason_, model.n_updates_
    ('converged', 1)
    """

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType({**Structured._own, "shards": Number(1, whole=True)})
    _part: ClassVar[str] = "example"

    def __init__(
        self,
        search: Any,
        *,
        rule: Any = "perceptron",
        margin: float = 0.0,
        keep: str = "average",
        order: str = "shuffle",
        max_iter: int = 10,
        max_updates: int | None = None,
        max_seconds: float | None = None,
        tol: float | None = None,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        shards: int = 1,
        n_jobs: int | None = 1,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self.search = search
        self.rule = rule
        self.margin = margin
        self.keep = keep
        self.order = order
        self.max_iter = max_iter
        self.max_updates = max_updates
        self.max_seconds = max_seconds
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.shards = shards
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # Learning

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Any:
        """Learn from the inputs X and their gold paths y until one of the reasons to stop; the estimator itself.

        `X_val` and `y_val` are judged after each epoch. Ctrl-C finishes the epoch, stores the model and then interrupts.
        """
        super().fit(X, y, X_val, y_val)
        if self._model.updates == 0:
            warnings.warn(
                "nothing was learned: for every example the search answers with gold, whatever the weights, or with a path "
                "of the same features. Does decode use the weights, and is there more than one path?",
                UserWarning,
                stacklevel=2,
            )
        return self

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from these inputs and their gold paths, once, in the order given; the estimator itself. Cutting a stream
        into calls in any way gives the same model."""
        if self.shards != 1:
            raise ValueError(
                f"shards={self.shards} and partial_fit do not go together: a stream is learned in its order; use shards=1"
            )
        if not self.__sklearn_is_fitted__():
            return super().partial_fit(X, y)
        with self._model.unchanged_on_error():
            return super().partial_fit(X, y)

    def _corpus(self, X: Any, y: Any, begin: bool) -> list[tuple[Any, Any]]:
        search = self._search()
        if not callable(getattr(search, "violation", lambda: None)):
            raise TypeError(f"search.violation must be a method; got {type(search.violation).__name__}")
        return list(zip(X, y, strict=True))

    def _search(self) -> Any:
        if isinstance(self.search, type) or not isinstance(self.search, Search):
            kind = f"the class {self.search.__name__}" if isinstance(self.search, type) else repr(self.search)
            raise TypeError(f"search must be an object with the methods decode(x, w) and features(x, path); got {kind}")
        return self.search

    def _begin(self, plan: Plan, corpus: Any) -> NamedModel:
        return NamedModel()

    def _learner(self, plan: Plan, model: NamedModel, corpus: list, visits: Visits) -> Learner:
        learner = Searching(self.search, rule_of(self.rule), float(self.margin), model, corpus, visits)
        return learner if self.shards == 1 else Mixing(learner, self.shards, available_threads(self.n_jobs))

    def _plan(self) -> Plan:
        plan = super()._plan()
        if self.shards != 1 and self.max_updates is not None:
            raise ValueError(
                f"shards={self.shards} and max_updates={self.max_updates} do not go together: shards learn side by side, "
                "and none knows how many updates the others have made; use max_iter"
            )
        return plan

    def _not_finite(self, X: Any, broken: NumericFailure) -> ValueError:
        return ValueError(
            "the weights have become too large for finite numbers; make the features or the rule's rate smaller"
        )

    # Predicting

    def _predict(self, model: NamedModel, X: Sequence) -> list:
        return decoded(self.search, model.kept(self.keep), list(X), available_threads(self.n_jobs))

    def _wrong(self, gold: Sequence, guessed: Sequence) -> tuple[Any, int]:
        """(loss, parts) of all paths together."""
        return sum(map(partial(loss, self.search), gold, guessed)), sum(map(parts, gold))

    def score(self, X: Any, y: Any) -> float:
        """1 − loss per part: the share of parts that are right, unless the search has a loss of its own."""
        return super().score(X, y)

    def explain(self, x: Any, path: Any = None, against: Any = None) -> Explanation:
        """What each feature contributes to the score of a path of x, by default of the one predicted; with `against`, to
        its lead over that path."""
        w = self.weights_
        path = self.search.decode(x, w) if path is None else path
        features = self.search.features(x, path)
        if against is not None:
            features = direction(features, self.search.features(x, against))
        products = {name: w[name] * value for name, value in features.items()}
        contributions = dict(sorted(products.items(), key=lambda item: -abs(item[1])))
        return Explanation(path, total(contributions.values()), 0.0, contributions)

    # What has been learned

    @property
    def weights_(self) -> NamedWeights:
        """The weights that predict, by name."""
        return self._fitted().kept(self.keep)

    @property
    def n_refused_(self) -> int:
        """Pairs of paths that were not learned from, since the model began."""
        return self._fitted().refused

    # What can be promised

    @property
    def bounds_updates(self) -> bool:
        """Whether `mistake_bound` also bounds the updates."""
        return rule_of(self.rule).bounds_updates

    def mistake_bound(self, radius: float, margin: float, largest_loss: float = math.inf) -> float:
        """The most mistakes that can be made from weights of zero, if ‖φ(x, right) − φ(x, wrong)‖ ≤ `radius` for all pairs
        that the search can bring, and some unit vector scores each right one above its wrong one by at least `margin`.

        With the parameter `margin` above 0 it takes the largest loss of a path, and is known for the perceptron at a
        constant or diminishing rate only; with shards, at a constant rate only. Infinity: there is no bound.
        """
        rule = rule_of(self.rule)
        if self.shards != 1 and not isinstance(rule, rules.Perceptron):
            return math.inf
        if self.margin != 0:
            if not isinstance(rule, rules.Perceptron | rules.Diminishing) or largest_loss == math.inf:
                return math.inf
            rule = rule._replace(margin=float(self.margin * largest_loss))
        return self.shards * rule.bound(radius, margin)

    # Files

    def save(self, path: str | PathLike, resume: bool = False) -> None:
        """Write the model into one file: parameters, weights and the names of the features, which must be text, numbers,
        None or tuples of them. The search is code and stays outside; `load` is given it again.

        With `resume=True` it holds all that learning needs to go on exactly where it stopped; else what predicts.
        """
        self._fitted()
        bare = copy.copy(self)
        bare.search = None
        super(StructuredPerceptron, bare).save(path, resume)

    @classmethod
    def load(cls, path: str | PathLike, search: Any = None) -> Any:
        """The learner that was saved in a file, with the search that it is to use."""
        loaded = super().load(path)
        loaded.search = search
        loaded._search()
        return loaded

    def _arrays(self, model: NamedModel, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        w = model.w if resume else model.kept(self.keep)
        names = json.dumps([_plainly(name) for name in w], ensure_ascii=True, allow_nan=False).encode()
        arrays: dict[str, NDArray] = {
            "names": np.frombuffer(names, np.uint8),
            "w": np.fromiter(w.values(), np.float64, len(w)),
        }
        if resume:
            arrays["drift"] = np.fromiter((model.drift[name] for name in w), np.float64, len(w))
        return {"seen": model.seen, "updates": model.updates, "refused": model.refused}, arrays

    def _from_arrays(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> NamedModel:
        model = NamedModel()
        names = [_back(name) for name in json.loads(arrays["names"].tobytes())]
        drift = arrays.get("drift", np.zeros(len(names)))  # none is needed to predict
        model.w = NamedWeights(zip(names, arrays["w"].tolist(), strict=True))
        model.drift = dict(zip(names, drift.tolist(), strict=True))
        model.seen, model.updates, model.refused = (int(facts[name]) for name in ("seen", "updates", "refused"))
        return model


def _plainly(name: Any) -> Any:
    """A name of a feature as a value of JSON: text and numbers as they are, a tuple as a list."""
    if type(name) is tuple:
        return [_plainly(part) for part in name]
    if type(name) in (str, int, float, bool, type(None)):
        return name
    raise TypeError(
        f"the feature name {name!r} cannot be written into a file; names of text, numbers, None and tuples of them can"
    )


def _back(value: Any) -> Any:
    """The name that was written."""
    return tuple(map(_back, value)) if isinstance(value, list) else value
