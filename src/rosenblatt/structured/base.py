"""What all structured learners share: a corpus is read, a model begun, and a kernel visits the sentences epoch by epoch.

An example proposes Δ = φ(x, gold) − φ(x, guess), where the guess maximises score + margin · (parts that are wrong). A rule
of `rosenblatt.rules` sees the margin of Δ, less the cost of the guess, and answers with a step. Messages count sentences
from 0, as Python does.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rosenblatt import rules
from rosenblatt.engine.train import Learner, Limits, NumericFailure, Visits
from rosenblatt.estimators.base import Estimator, unchanged_on_error
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.parameters import Number, OneOf, RuleName
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts, check_finite
from rosenblatt.modelfile.saving import COUNTS, fact

LEAST_CASES = 2
WIDEST = 4096  # beam; wider ones only take time
_ANY_FALL = 1e-9  # of the validation error: with early_stopping and no tol, an epoch without one counts against going on


def rule_of(rule: Any) -> Any:
    """The rule that a parameter names: the plain perceptron's, or the one given."""
    return rules.Perceptron(0.0, 1.0) if isinstance(rule, str) else rule


def threshold(rule: Any) -> float:
    """The margin up to which a rule moves: on the rule's own scale, what winning by nothing is."""
    if isinstance(rule, rules.PA1 | rules.PA2):
        return 1.0
    if isinstance(rule, rules.Uneven):
        return float(rule.positive)
    return float(getattr(rule, "margin", 0.0))


def offset(rule: Any, margin: float) -> float:
    """What is added to w·Δ − margin·loss before a rule sees it. With a margin, the cost of a guess takes the place of the
    margin that the rule has of its own; without one the rule keeps it, or passive-aggressive steps would never start."""
    return threshold(rule) if margin > 0 else 0.0


class Structured(Estimator):
    """A learner whose answers have parts. A subclass says how a corpus is read, what a model is and what learns."""

    rule: Any = "perceptron"
    margin: float = 0.0
    keep: str = "average"
    tol: float | None = None
    max_iter: int = 10

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"rule": RuleName(), "margin": Number(0), "keep": OneOf(("average", "last")), "order": OneOf(("cyclic", "shuffle"))}
    )
    _part: ClassVar[str] = "sentence"

    # What a learner is

    @abstractmethod
    def _corpus(self, X: Any, y: Any, begin: bool) -> Any:
        """The examples as numbers; with `begin`, forgetting all that has been learned before. y is None to predict."""

    @abstractmethod
    def _begin(self, plan: Plan, corpus: Any) -> Any:
        """A model that has learned nothing: `seen`, `updates`, `copy()`."""

    @abstractmethod
    def _learner(self, plan: Plan, model: Any, corpus: Any, visits: Visits) -> Learner:
        """What learns from a corpus into the model."""

    @abstractmethod
    def _predict(self, model: Any, X: Sequence) -> list:
        """An answer for each example, by the weights of the model that predict."""

    def _searching(self) -> str:
        """How answers are searched for, in the words of the parameters; a model should be used as it was trained."""
        return ""

    # Learning

    @with_callbacks
    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Any:
        """Learn in epochs until one of the reasons to stop; the estimator itself.

        `X_val` and `y_val` are judged after each epoch. An error leaves the estimator as it was; Ctrl-C finishes the epoch,
        stores the model and then interrupts.
        """
        with unchanged_on_error(self):
            plan = self._plan()
            X, y = checked_pair(X, y)
            if len(X) == 0:
                raise ValueError(f"there is no {self._part} to learn from")
            if (X_val is None) != (y_val is None):
                raise ValueError("X_val and y_val go together: pass both, or neither")
            rng = plan.rng()
            if X_val is None and self.early_stopping:
                X, y, X_val, y_val = self._held_out(X, y, rng)
            going_on = self.warm_start and self.__sklearn_is_fitted__()
            corpus = self._corpus(X, y, begin=not going_on)
            model = self._resumable().copy() if going_on else self._begin(plan, corpus)
            model.trained_with = self._searching()
            error = None if X_val is None else self._validation(model, *checked_pair(X_val, y_val, ("X_val", "y_val")))
            learner = self._learner(plan, model, corpus, Visits(np.arange(len(X)), self.order, rng))
            reason = self._run(plan, model, learner, (X, y), error, self._learned())
            self.n_mistakes_ = sum(epoch.mistakes for epoch in self.history_)
        if reason == "interrupted":
            raise KeyboardInterrupt
        return self

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from these examples, once, in the order given; the estimator itself. Cutting a stream into calls in any way
        gives the same model."""
        first = not self.__sklearn_is_fitted__()
        with unchanged_on_error(self):
            plan = self._plan()
            X, y = checked_pair(X, y)
            corpus = self._corpus(X, y, begin=first)
            model = self._begin(plan, corpus) if first else self._resumable()
            model.trained_with = self._searching()
            updates, seen = model.updates, model.seen
            learner = self._learner(plan, model, corpus, Visits(np.arange(len(X)), "cyclic", np.random.default_rng(0)))
            try:
                done, _ = learner.epoch(np.arange(len(X)))
            except NumericFailure as broken:
                raise self._not_finite(X, broken) from None
            learner.finish()
            if not isinstance(self.rule, str) and not np.isfinite(learner.size()):
                raise ValueError(
                    "the weights are no longer finite numbers, and this model is spoiled; fit a new one with a smaller rate"
                )
            self._keep(model, X, learner)
            self._model = model
            self.__dict__.update(self._learned())
            if first:
                self.history_, self.stop_reason_, self.n_iter_ = [], "partial_fit", 1
                self.n_mistakes_, self.n_updates_, self.n_seen_ = 0, 0, 0
            self.n_mistakes_ += done.mistakes
            self.n_updates_ += model.updates - updates
            self.n_seen_ += model.seen - seen
        return self

    def _learned(self) -> dict[str, Any]:
        """Further attributes that end in an underscore."""
        return {}

    def _held_out(self, X: Sequence, y: Sequence, rng: np.random.Generator) -> tuple[list, list, list, list]:
        if len(X) < LEAST_CASES:
            raise ValueError(f"early_stopping=True holds out a part for validation, but there is one {self._part} only")
        held = max(1, min(len(X) - 1, round(len(X) * self.validation_fraction)))
        order = rng.permutation(len(X)).tolist()
        out, rest = sorted(order[:held]), sorted(order[held:])
        return [X[i] for i in rest], [y[i] for i in rest], [X[i] for i in out], [y[i] for i in out]

    def _validation(self, model: Any, X: Sequence, y: Sequence) -> Callable[[], float]:
        def error() -> float:
            wrong, parts = self._wrong(y, self._predict(model, X))
            return wrong / max(parts, 1)

        return error

    # Predicting

    def predict(self, X: Any) -> list:
        """An answer for each example."""
        return self._predict(self._answering(), checked(X))

    def score(self, X: Any, y: Any) -> float:
        """The share of parts that are predicted right."""
        model = self._answering()
        X, y = checked_pair(X, y)
        wrong, parts = self._wrong(y, self._predict(model, X))
        return 1 - wrong / max(parts, 1)

    def _answering(self) -> Any:
        """The model, if it can answer as the parameters ask; a warning if it was not trained to be searched like that."""
        check_is_fitted(self)
        model = self._model
        then, now = getattr(model, "trained_with", ""), self._searching()
        if then and then != now:
            warnings.warn(
                f"this model learned with {then} and is used with {now}; expect worse answers, or fit it again",
                stacklevel=3,
            )
        for name, then in getattr(model, "saved_with", {}).items():
            if getattr(self, name) != then:
                raise ValueError(
                    f"this model was saved for prediction only, with {name}={then!r}, and has no weights for "
                    f"{name}={getattr(self, name)!r}; save it with save(path, resume=True)"
                )
        return model

    def _limits(self, plan: Plan, learner: Any) -> Limits:
        limits = plan.limits()
        if self.early_stopping and limits.tol is None:
            return limits._replace(tol=_ANY_FALL)
        return limits

    def _wrong(self, gold: Sequence, guessed: Sequence) -> tuple[int, int]:
        """(parts that differ, parts)."""
        wrong = parts = 0
        for number, (right, guess) in enumerate(zip(gold, guessed, strict=True)):
            if len(right) != len(guess):
                raise ValueError(f"{self._part} {number} has {len(guess)} parts, but {len(right)} answers are given for it")
            wrong += sum(a != b for a, b in zip(right, guess, strict=True))
            parts += len(right)
        return wrong, parts

    def _not_finite(self, X: Any, broken: NumericFailure) -> ValueError:
        return ValueError(
            f"the weights or scores of {self._part} {broken.row} are no longer finite numbers; make the rule's rate smaller"
        )

    # Files

    def save(self, path: str | PathLike, resume: bool = False) -> None:
        """Write the model into one file, which replaces an old one only when it is complete.

        With `resume=True` it holds all that learning needs to go on exactly where it stopped; else what predicts, which
        is several times smaller.
        """
        super().save(path, resume)

    def _parts(self, resume: bool) -> Parts:
        facts, arrays = self._arrays(self._model, resume)
        return Parts(
            {
                "counts": {name: int(getattr(self, name)) for name in COUNTS},
                "history": [[fact(value) for value in epoch] for epoch in self.history_],
                "stop_reason": self.stop_reason_,
                "trained_with": getattr(self._model, "trained_with", ""),
                "model": facts,
            },
            arrays,
        )

    def _put_together(self, parts: Parts, resume: bool) -> None:
        if resume and not any("drift" in name for name in parts.arrays):
            raise ValueError("it says that it can go on learning, but has only what predicts")
        for name, array in parts.arrays.items():
            check_finite(name, array, endless=name.startswith("pairs"))  # −∞ is what a scheme does not allow
        self._plan()
        self._model = self._from_arrays(parts.facts["model"], parts.arrays)
        self._model.only_predicts = not resume
        self._model.trained_with = parts.text("trained_with")
        if not resume:
            self._model.saved_with = {name: getattr(self, name) for name in ("keep", "prune") if hasattr(self, name)}
        self.__dict__.update(self._learned())
        self._recall(parts, set(COUNTS))


def checked(X: Any, name: str = "X") -> Sequence:
    """X as a list."""
    if isinstance(X, str | bytes) or not hasattr(X, "__iter__"):
        raise TypeError(f"{name} must be a list of examples; got {type(X).__name__}")
    X = X if isinstance(X, list) else list(X)  # a Series is indexed by labels, a generator not at all
    if X and hasattr(X[0], "tree") and hasattr(X[0], "forms"):
        raise TypeError(
            f"{name} holds sentences of a file; take from them what is to be learned: sentence.forms, "
            "sentence.column('upos'), sentence.tokens('form', 'upos', 'xpos'), sentence.tree()"
        )
    return X


def checked_pair(X: Any, y: Any, names: tuple[str, str] = ("X", "y")) -> tuple[Sequence, Sequence]:
    """X and y of equal length."""
    X, y = checked(X, names[0]), checked(y, names[1])
    if len(X) != len(y):
        raise ValueError(f"{names[0]} has {len(X)} examples, {names[1]} has {len(y)}; each needs its answer")
    return X, y
