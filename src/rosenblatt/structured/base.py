"""What all structured learners share: a corpus is read, a model begun, and a trainer visits the sentences epoch by epoch.

An example proposes Δ = φ(x, gold) − φ(x, guess), where the guess maximises score + margin · (parts that are wrong). A rule
of `rosenblatt.rules` sees the margin of Δ, less the cost of the guess, and answers with a step. Messages count sentences
from 1, as files do; the `row` of an error counts them from 0.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from operator import ne
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt import rules
from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.resuming import ResumedTrainer
from rosenblatt.engine.train import NO_LIMIT, EpochTrainer, Limits, NumericFailure
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import has_read_only
from rosenblatt.errors import (
    DamagedModel,
    IncompatibleParameters,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    NumericOverflow,
    UnsupportedOperation,
)
from rosenblatt.estimators.base import Estimator, unchanged_on_error
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.interface import check_is_fitted
from rosenblatt.estimators.parameters import (
    EpochParameters,
    Number,
    OneOf,
    OrderParameters,
    RuleName,
    ThreadParameters,
    ValidationParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import Plan
from rosenblatt.estimators.progress import Units
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import COUNTS

WIDEST = 4096  # beam; wider ones only take time
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_ANY_FALL = 1e-9  # of the validation error: with early_stopping and no tol, an epoch without one counts against going on


class Rule(Protocol):
    """A rule of `rosenblatt.rules`."""

    @property
    def uses_length(self) -> bool:
        """Whether its step depends on ‖Δ‖²."""

    @property
    def bounds_updates(self) -> bool:
        """Whether its mistake bound also bounds the updates."""

    def bound(self, radius: float, margin: float) -> float:
        """The most mistakes on separable data."""


def as_rule(rule: str | Rule) -> Rule:
    """Return the rule that a parameter names: the plain perceptron's, or the one given."""
    return rules.Perceptron(0.0, 1.0) if isinstance(rule, str) else rule


def rule_margin(rule: Rule) -> float:
    """Return the margin up to which a rule moves: on the rule's own scale, what winning by nothing is."""
    if isinstance(rule, rules.PA1 | rules.PA2):
        return 1.0
    if isinstance(rule, rules.Uneven):
        return float(rule.positive)
    return float(getattr(rule, "margin", 0.0))


def margin_offset(rule: Rule, margin: float) -> float:
    """Return what is added to w·Δ − margin·loss before a rule sees it.

    With a margin, the cost of a guess takes the place of the margin that the rule has of its own; without one the rule
    keeps it, or passive-aggressive steps would never start.
    """
    return rule_margin(rule) if margin > 0 else 0.0


class StructuredModel:
    """What a structured learner has learned.

    A subclass counts what it has `seen` and its `updates`; it has `weights_now()` and their `norm()`, `to_parts(resume)`,
    which is called after `freeze`, and `from_parts(parts)`. To be mixed (see `engine.mixing`) it has `branch`, a copy for a
    shard to learn into whose drift begins at 0; `change_since(start)`, what a branch has changed; and `add_change(change)`.
    """

    only_predicts = False  # whether it comes from a file that holds no more
    trained_with = ""  # how answers were searched for while learning
    saved_with: Mapping[str, object] = MappingProxyType({})  # parameters that a model which only predicts depends on
    _frozen: tuple[tuple[bool, float], Any] | None = None
    _predictor: Callable[[bool, float], Any]  # makes what predicts: of the average or the last weights, without small ones

    def copy(self) -> Self:
        """Return the same model, sharing what learning does not change in place."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def freeze(self, average: bool, prune: float) -> Any:
        """Return what predicts: made when it is first needed after learning, or as a file brought it."""
        if self._frozen is None or (self._frozen[0] != (average, prune) and not self.only_predicts):
            self._frozen = (average, prune), self._predictor(average, prune)
        return self._frozen[1]


class StructuredTrainer(ABC):
    """What learns from a corpus into a model: see `engine.train.EpochTrainer`."""

    def __init__(self, model: StructuredModel, visits: Visits):
        self.model: Any = model
        self.visits = visits

    @property
    def seen(self) -> int:
        """Examples visited so far."""
        return self.model.seen

    @abstractmethod
    def epoch(self, order: NDArray, budget: int = NO_LIMIT) -> tuple[Progress, bool]:
        """Visit these sentences once; return what was done, and whether nothing is left to learn."""

    def size(self) -> float:
        """Return the norm of the weights."""
        return self.model.norm()

    def weights_now(self) -> NDArray:
        """Return the weights as they are."""
        return self.model.weights_now()


def shard_seed(seed: int, shard: int) -> int:
    """Return a random seed for each shard, of which the first has that of the whole."""
    return seed if shard == 0 else int(mix(np.uint64(seed), np.uint64(shard)))


class Interruption(NamedTuple):
    """What a training that Ctrl-C interrupted needs to go on, beyond the model, the history and the parameters."""

    data: str  # the fingerprint of what was learned from
    converged: bool  # whether the epoch in which it was interrupted left nothing to learn


@with_parameters
class StructuredEstimator(Estimator, OrderParameters, EpochParameters, ValidationParameters, ThreadParameters):
    """A learner whose answers have parts. A subclass says how a corpus is read, what a model is and what learns.

    Parameters
    ----------
    rule
        How far an update moves. The word is `rules.Perceptron(margin=0.0, rate=1.0)`; `rules.PA1(C)` with a `margin` is
        1-best MIRA with its step capped at C (McDonald, Crammer and Pereira 2005).
    margin
        The cost of each wrong part: gold must win by as much as the number of wrong parts times this.
    keep
        Which weights predict: the mean of those after every example, or the last.
    order
        How each epoch visits the sentences: in a new random order, or as they come.
    max_seconds
        Stop at the end of the first epoch that ends later than this.
    tol
        Stop when the validation error, or without validation the share of mistakes, has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row. None: never for this reason, but with `early_stopping` any fall counts.
    early_stopping
        Hold out `validation_fraction` of the sentences and judge by the error on these. Sentences given to `fit` as
        `X_val, y_val` do the same without holding any out.
    validation_fraction
        The share of sentences held out.
    n_jobs
        The number of threads that predict; None and −1 use every core. Results do not depend on it.
    """

    rule: Any = parameter("perceptron", RuleName())
    margin: float = parameter(0.0, Number(0))
    keep: str = parameter("average", OneOf(("average", "last")))
    order: str = parameter("shuffle", OneOf(("cyclic", "shuffle")))
    max_iter: int = parameter(10)
    max_seconds: float | None = parameter(None, Number(0, open_low=True, optional=True))
    tol: float | None = parameter(None)

    prune = 0.0  # of learners without such a parameter
    _part: ClassVar[str] = "sentence"
    _model_type: ClassVar[Any]  # a StructuredModel with from_parts(parts)
    _interruption = None  # type: Interruption | None

    # What a learner is

    @abstractmethod
    def _corpus(self, X: Sequence, y: Sequence, begin: bool) -> Any:
        """Return the examples as numbers; with `begin`, forgetting all that has been learned before."""

    @abstractmethod
    def _new_model(self, plan: Plan, corpus: Any) -> Any:
        """Return a model that has learned nothing."""

    @abstractmethod
    def _trainer(self, model: Any, corpus: Any, visits: Visits) -> EpochTrainer:
        """Return what learns from a corpus into the model."""

    @abstractmethod
    def _predict(self, model: Any, X: Sequence) -> list:
        """Return an answer for each example, by the weights of the model that predict."""

    # In shards: see `rosenblatt.structured.shards`

    @abstractmethod
    def _shard_corpus(self, X: Sequence, y: Sequence) -> tuple[Any, Any]:
        """Return the examples of a shard as numbers, and what the common model must know of them; as small as may be."""

    @abstractmethod
    def _common_model(self, plan: Plan, names: Sequence) -> Any:
        """Return a model that has learned nothing and knows what all shards need."""

    @abstractmethod
    def _shard_trainer(self, model: Any, corpus: Any, visits: Visits, shard: int) -> StructuredTrainer:
        """Return what learns from the shard with this number, from 0, into a branch of the common model."""

    def _search_name(self) -> str:
        """Return how answers are searched for, in the words of the parameters; a model should be used as it was trained."""
        return ""

    def _freeze(self, model: Any) -> Any:
        """Return what predicts, as the parameters ask."""
        return model.freeze(self.keep == "average", float(self.prune))

    # Learning

    @with_callbacks
    def fit(self, X: Iterable, y: Iterable, X_val: Iterable | None = None, y_val: Iterable | None = None) -> Self:
        """Learn in epochs until one of the reasons to stop.

        An error leaves the estimator as it was; Ctrl-C finishes the epoch, stores the model and then interrupts.

        Parameters
        ----------
        X : iterable
            The examples: sentences, or whatever the learner reads.
        y : iterable
            The right answer for each example.
        X_val, y_val : iterable, optional
            Examples and answers to judge the model by after each epoch.

        Returns
        -------
        self
        """
        return self._learn(X, y, X_val, y_val)

    @with_callbacks
    def resume(self, X: Iterable, y: Iterable, X_val: Iterable | None = None, y_val: Iterable | None = None) -> Self:
        """Continue a `fit` that Ctrl-C interrupted; the result is the model of a `fit` that was never interrupted.

        Also after `save(path, resume=True)` and `load`. A greater `max_iter` than before lets it train for longer.

        Parameters
        ----------
        X, y, X_val, y_val : iterable
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
        check_is_fitted(self)
        interruption = self._interruption
        if interruption is None:
            raise UnsupportedOperation(
                f"only an interrupted training can resume; this one was not interrupted, but ended: {self.stop_reason_}",
                hint="to train a finished model further: warm_start=True, or --from MODEL on the command line",
            )
        if not isinstance(self.random_state, Integral) and (self.order == "shuffle" or self.early_stopping):
            raise UnsupportedOperation(
                "the training cannot resume: its random order is not known", hint="train with a number as random_state"
            )
        if self.max_iter < len(self.history_):
            raise InvalidParameter("max_iter", self.max_iter, f"at least the {len(self.history_)} epochs that are done")
        return self._learn(X, y, X_val, y_val, interruption)

    def _learn(
        self,
        X: Iterable,
        y: Iterable,
        X_val: Iterable | None,
        y_val: Iterable | None,
        interruption: Interruption | None = None,
        start: Callable[[Plan], Any] | None = None,
    ) -> Self:
        """Learn in epochs: from nothing, from the model there is with `warm_start`, from the model that `start` returns, or
        on from an interruption."""
        with unchanged_on_error(self):
            plan = self._plan()
            X, y = check_pair(X, y)
            if len(X) == 0:
                raise InvalidData(f"there is no {self._part} to learn from")
            if (X_val is None) != (y_val is None):
                raise InvalidData("X_val and y_val must be passed together, or neither of them")
            if X_val is not None and y_val is not None:
                X_val, y_val = check_pair(X_val, y_val, ("X_val", "y_val"))
            data = (X, y, X_val, y_val)
            if interruption is not None and fingerprint(*data) != interruption.data:
                raise InvalidData(
                    "these are not the examples that the interrupted training learned from and was validated on",
                    hint="give the same",
                )
            record = () if interruption is None else tuple(self.history_)
            rng = plan.rng()
            if X_val is None and self.early_stopping:
                X, y, X_val, y_val = self._hold_out(X, y, rng)
            if start is not None:
                self._model = start(plan)
            going_on = interruption is not None or start is not None
            going_on = going_on or (self.warm_start and self.__sklearn_is_fitted__())
            corpus = self._corpus(X, y, begin=not going_on)
            model = self._resumable().copy() if going_on else self._new_model(plan, corpus)
            model.trained_with = self._search_name()
            trainer = self._trainer(model, corpus, Visits(np.arange(len(X)), self.order, rng))
            trainer = ResumedTrainer(trainer, record, interruption is not None and interruption.converged)
            error = None
            if X_val is not None and y_val is not None:
                held = check_pair(X_val, y_val, ("X_val", "y_val"))
                error = partial(trainer.validation_error, partial(self._validate, model, *held))
            reason = self._run(plan, model, trainer, (X, y), error, {})
            self.history_[: len(record)] = record
            self.n_mistakes_ = sum(epoch.mistakes for epoch in self.history_)
            self.n_updates_ = sum(epoch.updates for epoch in self.history_)
            self.n_seen_ = sum(epoch.seen for epoch in self.history_)
            self._interruption = Interruption(fingerprint(*data), trainer.converged) if reason == "interrupted" else None
        if reason == "interrupted":
            raise KeyboardInterrupt
        return self

    def partial_fit(self, X: Iterable, y: Iterable) -> Self:
        """Learn from these examples, once, in the order given.

        Cutting a stream into calls in any way gives the same model.

        Parameters
        ----------
        X : iterable
            The examples.
        y : iterable
            The right answer for each example.

        Returns
        -------
        self
        """
        first = not self.__sklearn_is_fitted__()
        with unchanged_on_error(self):
            plan = self._plan_to_stream()
            X, y = check_pair(X, y)
            corpus = self._corpus(X, y, begin=first)
            model = self._new_model(plan, corpus) if first else self._stream_model()
            model.trained_with = self._search_name()
            updates, seen = model.updates, model.seen
            trainer = self._trainer(model, corpus, Visits(np.arange(len(X)), "cyclic", np.random.default_rng(0)))
            try:
                done, _ = trainer.epoch(np.arange(len(X)))
            except NumericFailure as broken:
                raise self._not_finite(X, broken) from None
            if not isinstance(self.rule, str) and not np.isfinite(trainer.size()):
                raise NumericOverflow("the weights are no longer finite numbers", hint="make the rule's rate smaller")
            self._store(model, X, trainer)
            self._model, self._interruption = model, None
            if first:
                self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
                self.n_mistakes_, self.n_updates_, self.n_seen_ = 0, 0, 0
            self.n_mistakes_ += done.mistakes
            self.n_updates_ += model.updates - updates
            self.n_seen_ += model.seen - seen
        return self

    def _stream_model(self) -> Any:
        """Return the model that a stream goes on with: a copy, where a rule of the user's may let weights overflow, or
        where its arrays must not be written to."""
        model = self._resumable()
        return model if isinstance(self.rule, str) and not has_read_only(vars(model).values()) else model.copy()

    def _hold_out(self, X: Sequence, y: Sequence, rng: np.random.Generator) -> tuple[list, list, list, list]:
        """Return what to learn from and what to validate on: X, y, X_val, y_val."""
        if len(X) == 1:
            reason = f"there is one {self._part} only, and a part of them is held out for validation"
            raise IncompatibleParameters(("early_stopping", True), ("X", X), reason)
        held = max(1, min(len(X) - 1, round(len(X) * self.validation_fraction)))
        order = rng.permutation(len(X)).tolist()
        out, rest = sorted(order[:held]), sorted(order[held:])
        return take(X, rest), take(y, rest), take(X, out), take(y, out)

    def _validate(self, model: Any, X: Sequence, y: Sequence) -> float:
        """Return the error on validation examples; a failure names none, which would be taken for a training example."""
        try:
            return self._error(model, X, y)
        except InvalidData as error:
            raise type(error)(f"validation: {error.problem}", hint=error.hint, settings=error.settings) from None

    def _error(self, model: Any, X: Sequence, y: Sequence) -> float:
        """Return the share of parts that a model predicts wrong."""
        wrong, parts = self._wrong(y, self._predict(model, X))
        return wrong / max(parts, 1)

    # Predicting

    def predict(self, X: Iterable) -> list:
        """Return an answer for each example.

        Parameters
        ----------
        X : iterable
            The examples.

        Returns
        -------
        list
            The answers, in the order of the examples.
        """
        return self._predict(self._predicting_model(), check_examples(X))

    def score(self, X: Iterable, y: Iterable) -> float:
        """Return the share of parts that are predicted right.

        Parameters
        ----------
        X : iterable
            The examples.
        y : iterable
            The right answer for each example.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return 1 - self._error(self._predicting_model(), *check_pair(X, y))

    def _restart(self, plan: Plan) -> Any:
        """Return a new model that begins with the weights that predict here."""
        seed = int(plan.rng().integers(2**62))
        return self._predicting_model().restart(self.keep == "average", float(self.prune), seed)

    def _predicting_model(self) -> Any:
        """Return the model, if it can answer as the parameters ask; warn if it was not trained to be searched like that."""
        check_is_fitted(self)
        model = self._model
        then, now = model.trained_with, self._search_name()
        if then and then != now:
            warnings.warn(
                f"this model learned with {then} and is used with {now}; expect worse answers, or fit it again",
                stacklevel=3,
            )
        for name, then in model.saved_with.items():
            if getattr(self, name) != then:
                raise UnsupportedOperation(
                    f"this model was saved for prediction only, with {name}={then!r}, and has no weights for "
                    f"{name}={getattr(self, name)!r}",
                    hint="save it with save(path, resume=True)",
                )
        return model

    def _units(self) -> Units:
        return Units(f"{self._part}s")

    def _limits(self, plan: Plan, learner: Any) -> Limits:
        limits = plan.limits()
        if self.early_stopping and limits.tol is None:
            return limits._replace(tol=_ANY_FALL)
        return limits

    def _wrong(self, gold: Sequence, guesses: Sequence) -> tuple[int, int]:
        """Return how many parts differ, and how many parts there are."""
        wrong = parts = 0
        for number, (right, guess) in enumerate(zip(gold, guesses, strict=True)):
            self._check_length(right, len(guess), number)
            wrong += sum(map(ne, self._gold_parts(right, number), guess))
            parts += len(right)
        return wrong, parts

    def _gold_parts(self, answer: Sequence, number: int) -> Sequence:
        """Return the parts of an answer as predictions have them."""
        return answer

    def _check_length(self, answer: Sequence, parts: int, number: int) -> None:
        if len(answer) != parts:
            raise InvalidData(f"sentence {number + 1} has {parts} words, but its answer has {len(answer)}", row=number)

    def _not_finite(self, X: Any, broken: NumericFailure) -> ValueError:
        where = "" if broken.row is None else f" of {self._part} {broken.row + 1}"
        return NumericOverflow(
            f"the weights or scores{where} are no longer finite numbers",
            hint="make the rule's rate smaller",
            row=broken.row,
        )

    def _check_unchanged_settings(self, *settings: tuple[str, object, object]) -> None:
        """Refuse to go on learning where a parameter (name, then, now) is not as it was when the model began."""
        for name, then, now in settings:
            if then != now:
                raise UnsupportedOperation(
                    f"{name} has changed since this model began to learn", hint="fit a new one, or change it back"
                )

    # Files

    def save(self, path: str | PathLike, resume: bool = False) -> None:
        """Save the model in one file, which replaces an old one only when it is complete.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        resume : bool, default=False
            Save all that learning needs to go on exactly where it stopped. Without it the file holds what predicts, which
            is several times smaller.
        """
        super().save(path, resume)

    def _learned_to_parts(self, resume: bool) -> Parts:
        self._freeze(self._model)
        parts = Parts({**self._history_to_facts(), "trained_with": self._model.trained_with})
        if resume and self._interruption is not None:
            parts.facts["interruption"] = self._interruption._asdict()
        parts.put_parts("model", self._model.to_parts(resume), prefix="")
        return parts

    def _learned_from_parts(self, parts: Parts, resume: bool) -> None:
        if resume and not any("drift" in name for name in parts.arrays):
            raise DamagedModel("its header says that training can continue, but it holds only what prediction needs")
        self._plan()
        model = self._model = self._model_from_parts(parts.parts("model", prefix=""))
        parts.check_all_taken()
        model.only_predicts, model.trained_with = not resume, parts.text("trained_with")
        if not resume:
            model.saved_with = {name: getattr(self, name) for name in ("keep", "prune")}
        self._set_history(parts, set(COUNTS))
        if "interruption" in parts.facts:
            found = parts.parts("interruption")
            self._interruption = Interruption(found.text("data"), found.flag("converged"))

    def _model_from_parts(self, parts: Parts) -> Any:
        """Return the model that these parts describe."""
        return self._model_type.from_parts(parts)


def check_examples(X: Iterable, name: str = "X") -> Sequence:
    """Return the examples as a list; InvalidDataType if they are none."""
    if isinstance(X, str | bytes) or not hasattr(X, "__iter__"):
        raise InvalidDataType(f"{name} must be a list of examples; got {type(X).__name__}")
    X = X if isinstance(X, list) else list(X)  # a Series is indexed by labels, a generator not at all
    if X and hasattr(X[0], "tree") and hasattr(X[0], "forms"):
        raise InvalidDataType(
            f"{name} holds Sentence objects of a file",
            hint="pass what is to be learned: sentence.forms, sentence.column('upos'), "
            "sentence.tokens('form', 'upos', 'xpos'), sentence.tree()",
        )
    return X


def check_pair(X: Iterable, y: Iterable, names: tuple[str, str] = ("X", "y")) -> tuple[Sequence, Sequence]:
    """Return examples and answers as lists of equal length."""
    X, y = check_examples(X, names[0]), check_examples(y, names[1])
    if len(X) != len(y):
        raise InvalidData(f"{names[0]} has {len(X)} examples, {names[1]} has {len(y)}; the numbers must be equal")
    return X, y


def fingerprint(*corpora: Any) -> str:
    """Return the XXH64 of examples and answers: of how they are printed, without addresses in memory."""
    digest = xxh64()
    for corpus in corpora:
        matrix = getattr(corpus, "matrix", None)
        parts = ((matrix.data, matrix.indices, matrix.indptr, corpus.starts) if matrix is not None else corpus) or ()
        for part in parts:
            text = repr(part.tolist() if isinstance(part, np.ndarray) else part)
            digest.update((_ADDRESS.sub("", text) if " at 0x" in text else text).encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()


def take(examples: Sequence, numbers: Sequence[int]) -> Any:
    """Return the examples with these numbers; those that know their features keep them."""
    return examples.take(numbers) if hasattr(examples, "take") else [examples[i] for i in numbers]
