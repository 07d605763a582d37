"""The structured perceptron for whatever can be searched: see `rosenblatt.structured.search`."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from rosenblatt import rules
from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.mixing import LocalShards, MixingTrainer
from rosenblatt.engine.train import EpochTrainer, NumericFailure
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import IncompatibleParameters, InvalidParameterType, NumericOverflow, UnsupportedOperation
from rosenblatt.estimators.linear import Explanation
from rosenblatt.estimators.parameters import Anything, Number, parameter, with_parameters
from rosenblatt.estimators.plan import Plan
from rosenblatt.structured.base import StructuredEstimator, as_rule
from rosenblatt.structured.search.named_weights import NamedModel, NamedWeights, direction, total
from rosenblatt.structured.search.protocol import Input, Path, Search, count_parts, path_loss
from rosenblatt.structured.search.trainer import Example, SearchTrainer, decode_all, learn_examples


@with_parameters
class StructuredPerceptron(StructuredEstimator):
    """A structured perceptron for any search: after `fit`, `search.decode` with the weights learned finds the right paths.

    An input x and its gold path propose Δ = φ(x, gold) − φ(x, guess), where the guess is what the search finds with the
    weights w. Where the margin w·Δ is at most 0, or at most what the rule says, w += τΔ (Collins 2002). If ‖Δ‖ ≤ R for
    every wrong path and some unit vector scores gold above each by at least γ, there are at most R²/γ² updates, in any
    order, for however many paths.

    Parameters
    ----------
    search
        The problem: `decode(x, w)` and `features(x, path)`, and what else `rosenblatt.structured.search` describes.
        `rosenblatt.structured.BeamSearch` makes one of a problem that is solved step by step.
    margin
        By how much gold must beat a wrong path for each unit of its loss. Above 0 it takes the place of the rule's own
        margin. A search with a `violation` can look for the path that falls short most; without one the guess is what is
        predicted, and the margin only lengthens the step of rules that have one to lengthen.
    keep
        Which weights predict: the mean of those after every example, or the last. Both are kept; it may be changed.
    order
        How each epoch visits the examples: in a new random order, or as they come.
    max_updates
        The largest number of updates.
    shards
        Learn each epoch in so many parts, all from the same weights, and go on from their mean (iterative parameter mixing:
        McDonald, Hall and Mann 2010). With S shards the bound is S times as large, and S processes can share the work.
    n_jobs
        How many processes learn shards, and how many predict; None and −1: as many as there are processors. The search and
        the inputs are sent to them, which pays for slow searches. The results are the same for any number.

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

    >>> from rosenblatt.structured import StructuredPerceptron
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

    search: Any = parameter(MISSING, Anything("object"), positional=True)
    max_updates: int | None = parameter(None, Number(1, whole=True, optional=True))
    shards: int = parameter(1, Number(1, whole=True))
    n_jobs: int | None = parameter(1)

    _part: ClassVar[str] = "example"
    _model_type: ClassVar[Any] = NamedModel

    # Learning

    def fit(self, X: Iterable, y: Iterable, X_val: Iterable | None = None, y_val: Iterable | None = None) -> Self:
        """Learn in epochs until one of the reasons to stop.

        Ctrl-C finishes the epoch, stores the model and then interrupts. An error leaves the estimator as it was.

        Parameters
        ----------
        X : iterable
            The inputs.
        y : iterable
            The gold path of each input.
        X_val, y_val : iterable, optional
            Inputs and gold paths to judge the model by after each epoch.

        Returns
        -------
        self
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

    def partial_fit(self, X: Iterable, y: Iterable) -> Self:
        """Learn from these inputs and their gold paths, once, in the order given.

        Cutting a stream into calls in any way gives the same model.

        Parameters
        ----------
        X : iterable
            The inputs.
        y : iterable
            The gold path of each input.

        Returns
        -------
        self
        """
        if self.shards != 1:
            raise UnsupportedOperation(
                f"partial_fit learns a stream in its order and takes no shards; got shards={self.shards}",
                settings={"shards": 1},
            )
        if not self.__sklearn_is_fitted__():
            return super().partial_fit(X, y)
        with self._model.unchanged_on_error():
            return super().partial_fit(X, y)

    def _corpus(self, X: Sequence, y: Sequence, begin: bool) -> list[Example]:
        violation = getattr(self._check_search(), "violation", None)
        if violation is not None and not callable(violation):
            raise InvalidParameterType("search.violation", violation, "a method")
        return list(zip(X, y, strict=True))

    def _check_search(self) -> Search:
        if isinstance(self.search, type) or not isinstance(self.search, Search):
            raise InvalidParameterType(
                "search", self.search, "an object with the methods decode(x, w) and features(x, path)"
            )
        return self.search

    def _new_model(self, plan: Plan, corpus: list[Example]) -> NamedModel:
        return NamedModel()

    def _trainer(self, model: NamedModel, corpus: list[Example], visits: Visits) -> EpochTrainer:
        learned_by = (self.search, as_rule(self.rule), float(self.margin))
        if self.shards == 1:
            return SearchTrainer(*learned_by, model, corpus, visits)

        def take(rows: NDArray) -> dict[int, Example]:
            return {i: corpus[i] for i in rows.tolist()}

        processes = available_threads(self.n_jobs)
        return MixingTrainer(model, LocalShards(partial(learn_examples, *learned_by), self.shards, processes, take), visits)

    def _shard_corpus(self, X: Sequence, y: Sequence) -> tuple[list[Example], None]:
        return self._corpus(X, y, begin=True), None

    def _common_model(self, plan: Plan, names: Sequence[None]) -> NamedModel:
        return NamedModel()

    def _shard_trainer(self, model: NamedModel, corpus: list[Example], visits: Visits, shard: int) -> SearchTrainer:
        return SearchTrainer(self.search, as_rule(self.rule), float(self.margin), model.branch(), corpus, visits)

    def _plan(self) -> Plan:
        plan = super()._plan()
        if self.shards != 1 and self.max_updates is not None:
            raise IncompatibleParameters(
                ("shards", self.shards),
                ("max_updates", self.max_updates),
                "shards learn side by side, and none knows how many updates the others have made",
                hint="use max_iter",
            )
        return plan

    def _stream_model(self) -> NamedModel:
        return self._resumable()  # which takes back what was learned before an error

    def _not_finite(self, X: Any, broken: NumericFailure) -> ValueError:
        return NumericOverflow(
            "the weights have become too large for finite numbers", hint="make the features or the rule's rate smaller"
        )

    # Predicting

    def _predict(self, model: NamedModel, X: Sequence) -> list:
        return decode_all(self.search, self._freeze(model), X, available_threads(self.n_jobs))

    def _wrong(self, gold: Sequence, guesses: Sequence) -> tuple[Any, int]:
        """Return the loss of all paths together, and how many parts they have."""
        return sum(map(partial(path_loss, self.search), gold, guesses)), sum(map(count_parts, gold))

    def score(self, X: Iterable, y: Iterable) -> float:
        """Return 1 − loss per part: the share of parts that are right, unless the search has a loss of its own.

        Parameters
        ----------
        X : iterable
            The inputs.
        y : iterable
            The gold path of each input.

        Returns
        -------
        float
        """
        return super().score(X, y)

    def explain(self, x: Input, path: Path = None, against: Path = None) -> Explanation:
        """Return what each feature contributes to the score of a path.

        Parameters
        ----------
        x : object
            An input.
        path : object, optional
            A path of x; by default the one predicted.
        against : object, optional
            Another path of x: then it is contributions to the lead of `path` over this one.

        Returns
        -------
        Explanation
            The contributions, those of the greatest size first.
        """
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
        return self._freeze(self._fitted())

    @property
    def n_refused_(self) -> int:
        """Pairs of paths that were not learned from, since the model began."""
        return self._fitted().refused

    # What can be promised

    @property
    def bounds_updates(self) -> bool:
        """Whether `mistake_bound` also bounds the updates."""
        return as_rule(self.rule).bounds_updates

    def mistake_bound(self, radius: float, margin: float, largest_loss: float = math.inf) -> float:
        """Return the most mistakes that can be made from weights of zero.

        With the estimator's `margin` above 0 the bound is known for the perceptron at a constant or diminishing rate only;
        with shards, at a constant rate only.

        Parameters
        ----------
        radius : float
            ‖φ(x, right) − φ(x, wrong)‖ is at most this for all pairs that the search can bring.
        margin : float
            Some unit vector scores each right path above its wrong one by at least this.
        largest_loss : float, default=inf
            The largest loss of a path; needed where the estimator's `margin` is above 0.

        Returns
        -------
        float
            Infinity where there is no bound.
        """
        rule = as_rule(self.rule)
        if self.shards != 1 and not isinstance(rule, rules.Perceptron):
            return math.inf
        if self.margin != 0:
            if not isinstance(rule, rules.Perceptron | rules.Diminishing) or largest_loss == math.inf:
                return math.inf
            rule = rule._replace(margin=float(self.margin * largest_loss))
        return self.shards * rule.bound(radius, margin)

    # Files

    def save(self, path: str | PathLike, resume: bool = False) -> None:
        """Save parameters, weights and the names of the features in one file. The search is code and stays outside.

        Parameters
        ----------
        path : str or path-like
            The file to write; an old one is replaced only when the new one is complete.
        resume : bool, default=False
            Save all that learning needs to go on exactly where it stopped, rather than what predicts.

        Raises
        ------
        InvalidDataType
            If a feature's name is not text, a number, None or a tuple of these.
        """
        self._fitted()
        bare = copy.copy(self)
        bare.search = None
        super(StructuredPerceptron, bare).save(path, resume)

    @classmethod
    def load(cls, path: str | PathLike, search: Search | None = None) -> Self:
        """Load a learner that was saved.

        Parameters
        ----------
        path : str or path-like
            The file that `save` wrote.
        search : object
            The search that the learner is to use.

        Returns
        -------
        StructuredPerceptron
        """
        learner = super().load(path)
        learner.search = search
        learner._check_search()
        return learner
