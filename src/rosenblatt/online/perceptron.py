"""A perceptron that meets its examples one at a time. Features have names and classes have labels; both may appear at any
time. What it has learned is, at every moment, what `rosenblatt.Perceptron` would have learned from the same examples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rosenblatt import rules
from rosenblatt.errors import NumericOverflow, UnsupportedOperation
from rosenblatt.estimators import parameters
from rosenblatt.estimators.linear import Explanation
from rosenblatt.estimators.parameters import Clash, Flag, Number, OneOf
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import LearnerSaveLoadMixin
from rosenblatt.modelfile.values import decode_name, encode_name
from rosenblatt.online.hashing import HASHES
from rosenblatt.online.names import LARGEST_VALUE
from rosenblatt.online.reading import row_of, rows_of, weighs
from rosenblatt.online.weights import NamedWeights

_COUNTS = ("n_seen_", "n_mistakes_", "n_updates_")
RULES = {"perceptron": rules.Perceptron(0.0, 1.0)}

_GIVEN = (lambda value: value is not None,)
ALLOWED = {
    "keep": OneOf(("last", "average")),
    "fit_intercept": Flag(),
    "intercept_scaling": Number(0, open_low=True, high=1e50),
    "hashing": Number(2, whole=True, high=2**31, optional=True),
    "max_features": Number(1, whole=True, high=2**31, optional=True),
    "max_classes": Number(2, whole=True, optional=True),
}
CLASHES = (
    Clash("hashing", _GIVEN, "max_features", _GIVEN, "hashing has a fixed size and forgets nothing; set one of them"),
)


def stepper(rule: Any) -> Callable[[float, float, int, bool], float]:
    """How far a rule moves, as a function of margin, squared length, number of the update and side."""
    return partial(rules.step.dispatch(type(rule)), rule)


class OnlinePerceptron(LearnerSaveLoadMixin, BaseEstimator):
    """Learns from one example at a time: features by name, classes as they come, and at once.

    An example proposes a direction Δ: y·x for two classes; for more, x at its label and −x at the rival with the highest
    score. If the margin m = ⟨w, Δ⟩ is at most 0, or at most what the rule says, then w += τΔ. If the rows, constant feature
    included, have norm ≤ R and some unit vector separates two classes with margin γ, then the perceptron makes at most
    R²/γ² updates on a stream of any length (Block 1962, Novikoff 1962).

    A row is a dictionary from names (anything hashable) to numbers, or a sequence of numbers, whose names are the positions
    0, 1, 2, … A value may be text: {"color": "red"} is {"color=red": 1.0}, as in scikit-learn's DictVectorizer. NaN and
    infinity are refused; what is not known is left out. An error leaves the model as it was.

    Parameters
    ----------
    rule : NamedTuple of rosenblatt.rules or "perceptron", default="perceptron"
        How far an example moves the weights. The word is `rules.Perceptron(margin=0.0, rate=1.0)`.
    keep : {"last", "average"}, default="last"
        Which weights predict: the last, or the mean of those after every example.
    fit_intercept : bool, default=True
        Whether to learn an intercept, as the weight of a constant feature.
    intercept_scaling : float, default=1
        The size of that constant.
    hashing : int or None, default=None
        Keep weights for this many buckets, and put each feature into the bucket, with the sign, that a hash of its name
        says (`rosenblatt.online.hashing`). The size of the model is then fixed. As many names as there are buckets are
        remembered, so that weights can be told by name; when there are more, all are forgotten, and those that come
        again are remembered again. None: each name has weights of its own.
    hash_bits : {32, 64}, default=32
        The hash: MurmurHash3, the same buckets and signs as scikit-learn's FeatureHasher, or BLAKE2b.
    max_features : int or None, default=None
        Hold at most this many features. An update that brings more makes room first: the features with the smallest
        weights (largest absolute value over the classes, of the weights that predict; among equals the one that came
        first) are forgotten, with their part of the average, but none that is in the example itself; at least as many as
        are needed and, where there are, a tenth of `max_features`. If the example alone has more features than that, it
        brings in the first ones that fit.
    max_classes : int or None, default=None
        Refuse an example that would bring more classes than this.

    Attributes
    ----------
    classes_ : tuple
        The labels, in order of arrival.
    n_seen_, n_mistakes_, n_updates_ : int
        Examples learned from; those that the last weights did not predict before (a tie is not a prediction, and one class
        alone is never mistaken); changes of the weights.

    Notes
    -----
    Memory: 16 bytes for each weight vector and feature that ever took part in an update (half of it is room to grow; with
    `max_features`, 8 bytes), twice that with `keep="average"`; two classes have one weight vector, more have one each. And
    for each feature its name, 8 bytes that point to it, and 32 to 64 bytes of table. Features that never took part in an
    update take none.

    Examples
    --------
    >>> from rosenblatt.online import OnlinePerceptron
    >>> model = OnlinePerceptron()
    >>> for text, label in [("win money now", "spam"), ("see you at noon", "ham"), ("money for you", "spam")]:
    ...     model.learn_one(dict.fromkeys(text.split(), 1), label)
    >>> model.predict_one({"money": 1, "now": 1})
    'spam'
    >>> model.n_seen_, model.n_mistakes_, model.n_updates_
    (3, 2, 2)
    """

    classes_: tuple[Any, ...] = ()
    n_seen_: int = 0
    n_mistakes_: int = 0
    n_updates_: int = 0
    _weights: NamedWeights | None = None  # until the first example
    _numbers: dict[Any, int]
    _always_resumes = True

    def __init__(
        self,
        rule: Any = "perceptron",
        *,
        keep: str = "last",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        hashing: int | None = None,
        hash_bits: int = 32,
        max_features: int | None = None,
        max_classes: int | None = None,
    ):
        self.rule = rule
        self.keep = keep
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.hashing = hashing
        self.hash_bits = hash_bits
        self.max_features = max_features
        self.max_classes = max_classes

    # Learning

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn that the label of the row x is y; w multiplies the step, and an example of weight 0 is not there."""
        weights = self._weights or self._begun()
        if w != 1.0 and not weighs(w):
            return
        number = self._numbers.get(y)
        if number is None:
            self._learn_new_class(x, y, w)
            return
        classes = len(self.classes_)
        if classes == 1:
            weights.checked(weights.read(x))
            self.n_seen_ += 1
            return
        score = weights.score(x)
        if score is None:
            x, score = weights.clear(x)
        if classes == 2:
            gains, loses, positive = 0, -1, number == 1
            m = score if positive else -score
        else:
            gains, positive = number, True
            own, score[number] = score[number], -math.inf
            loses = int(score.argmax())
            m = float(own - score[loses])
        squared = weights.length(x) * (1 if classes == 2 else 2) if self._uses_length else 0.0
        tau = w * self._step(m, squared, self.n_updates_ + 1, positive)
        if tau != 0.0:
            if not -LARGEST_VALUE <= tau <= LARGEST_VALUE:
                raise NumericOverflow(
                    f"a step of {tau:g} is too long; at most {LARGEST_VALUE:g} is allowed",
                    hint="use a smaller weight of the example, a smaller rate, or rows that are not so short",
                )
            weights.push(x, gains, loses, tau if positive else -tau, self.n_seen_)
            self.n_updates_ += 1
        if not m > 0.0:
            self.n_mistakes_ += 1
        self.n_seen_ += 1

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn from rows in the order given: the same as `learn_one` for each of them.

        X is an array, a sparse matrix, a DataFrame (its columns are the names) or any iterable of rows. Their values and
        labels are looked at before the first is learned from; an error after that, such as a score that overflows, leaves
        the rows before it learned.
        """
        rows, labels = rows_of(X), y.tolist() if isinstance(y, np.ndarray) else list(y)
        each = np.asarray(1.0 if w is None else w, np.float64)
        weight = [float(each)] * len(labels) if each.ndim == 0 else each.tolist()
        if not len(rows) == len(labels) == len(weight):
            raise ValueError(f"X has {len(rows)} rows, but y has {len(labels)} labels and w {len(weight)} weights")
        weights = self._weights or self._begun()
        there = [i for i, one in enumerate(weight) if weighs(one)]
        checked = {i: weights.checked(weights.read(rows[i])) for i in there}
        self._check_classes({labels[i] for i in there})
        for i in there:
            self.learn_one(checked[i], labels[i], weight[i])

    # Predicting

    def predict_one(self, x: Any) -> Any:
        """The label of the row x; None before the first example. A score of exactly 0 is the second of two classes, equal
        scores name the class that came first."""
        classes = self.classes_
        if len(classes) < 2 or self._weights is None:
            return classes[0] if classes else None
        score = self._weights.kept(x, self.n_seen_)
        return classes[1 if score >= 0.0 else 0] if len(classes) == 2 else classes[score.argmax()]

    def score_one(self, x: Any) -> dict[Any, float]:
        """The score of each class, the highest wins. Two classes have the scores −s and s."""
        if len(self.classes_) < 2:
            return dict.fromkeys(self.classes_, 0.0)
        score = self._fitted().kept(x, self.n_seen_)
        scores = (0.0 - score, score) if len(self.classes_) == 2 else score.tolist()
        return dict(zip(self.classes_, scores, strict=True))

    def predict_many(self, X: Any) -> list[Any]:
        """The label of each row."""
        return [self.predict_one(x) for x in rows_of(X)]

    def explain_one(self, x: Any, label: Any = None) -> Explanation:
        """What each feature of a row contributes to the score of `label`, by default of the label it is predicted."""
        label = self.predict_one(x) if label is None else label
        column, sign = self._column(label)
        row = row_of(x)
        row = self._fitted().checked(row if isinstance(row, dict) else dict(enumerate(row.tolist())))
        products = {}
        for name, value in row.items():
            code = self._fitted().code(name)
            if code >= 0 and value:
                products[name] = sign * float(column[code >> 1]) * (-float(value) if code & 1 else float(value))
        contributions = dict(sorted(products.items(), key=lambda item: -abs(item[1])))
        constant = self.intercept_of(label)
        return Explanation(label, math.fsum([constant, *contributions.values()]), constant, contributions)

    # What has been learned

    def weights_of(self, label: Any) -> dict[Any, float]:
        """The weights that speak for a label, by the names of the features, without those that are zero.

        For two classes those of the first are minus those of the second. With `hashing`, a bucket none of whose names is
        remembered goes by its number.
        """
        column, sign = self._column(label)
        names = self._fitted().names
        codes = names.codes(names.known).tolist()
        found = {}
        for name, code in zip(names.known, codes, strict=True):
            if weight := sign * float(column[code >> 1]):
                found[name] = -weight if code & 1 else weight
        if self.hashing is not None:
            nameless = set(np.flatnonzero(column[:-1]).tolist()) - {code >> 1 for code in codes}
            found |= {bucket: sign * float(column[bucket]) for bucket in sorted(nameless)}
        return found

    def named_weights(self) -> dict[Any, dict[Any, float]]:
        """For each label, the weights that speak for it."""
        return {label: self.weights_of(label) for label in self.classes_}

    def intercept_of(self, label: Any) -> float:
        """The score of a label for a row without features."""
        column, sign = self._column(label)
        return sign * float(column[-1]) + 0.0

    @property
    def n_features_(self) -> int:
        """Features that have weights of their own; with `hashing`, names that are remembered."""
        return 0 if self._weights is None else len(self._weights.names)

    # Copies

    def clone(self, new_params: Mapping[str, Any] | None = None, include_attributes: bool = False) -> Any:
        """A model with the same parameters, but for the new ones, that has seen nothing; or, with `include_attributes`, one
        that has learned the same."""
        if new_params and include_attributes:
            raise ValueError("with other parameters it would have learned something else; pass one of the two")
        twin = type(self)(**(self.get_params(deep=False) | dict(new_params or {})))
        if include_attributes:
            twin.__setstate__(copy.deepcopy(self.__getstate__()) | twin.get_params(deep=False))
        return twin

    def set_params(self, **params: Any) -> Any:
        """Set parameters of a model that has seen nothing yet; the model itself."""
        if params and self.n_seen_:
            raise ValueError("this model has begun to learn; clone(new_params) makes a new one with other parameters")
        self._weights = None if params else self._weights
        return super().set_params(**params)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_step"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._weights is not None:
            self._step = stepper(self._rule)

    # Files

    def _check_learned(self) -> None:
        if not self.n_seen_:
            raise UnsupportedOperation("this model has not seen an example yet", hint="call learn_one before save")

    def _learned_to_parts(self, resume: bool) -> Parts:
        parts = self._fitted().to_parts()
        parts.facts["classes"] = [encode_name(label) for label in self.classes_]
        parts.facts["counts"] = {name: int(getattr(self, name)) for name in _COUNTS}
        return parts

    def _learned_from_parts(self, parts: Parts, resume: bool) -> None:
        classes = parts.facts["classes"]
        self.classes_ = tuple(map(decode_name, classes)) if isinstance(classes, list) else ()
        if not self.classes_ or len(set(self.classes_)) != len(self.classes_):
            raise ValueError(f"classes must be non-empty and distinct; they are {str(classes)[:80]}")
        if self.hashing is not None and parts.arrays["weights"].shape[:1] != (self.hashing + 1,):
            raise ValueError(f"there must be weights for {self.hashing} buckets")  # before there is room for as many
        self._begun().set_from_parts(parts, len(self.classes_))
        self._numbers = {label: number for number, label in enumerate(self.classes_)}
        counts = parts.parts("counts")
        self.__dict__.update({name: counts.whole(name) for name in _COUNTS})
        if self.n_seen_ < 1:
            raise ValueError("a model that has classes has seen an example")

    # Steps

    def _begun(self) -> NamedWeights:
        """The weights of a model that has seen nothing, if its parameters are allowed."""
        parameters.check(self.get_params(deep=False), ALLOWED, CLASHES)
        if self.hash_bits not in HASHES:
            raise ValueError(f"hash_bits must be one of {', '.join(map(str, HASHES))}; got {self.hash_bits!r}")
        self._rule = rule_of(self.rule)
        self._step = stepper(self._rule)
        self._uses_length = self._rule.uses_length
        self._numbers = {}
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        self._weights = NamedWeights(constant, self.keep == "average", self.max_features, self.hashing, self.hash_bits)
        return self._weights

    def _fitted(self) -> NamedWeights:
        if self._weights is None or not self.classes_:
            raise ValueError("this model has not seen an example yet; call learn_one first")
        return self._weights

    def _learn_new_class(self, x: Any, label: Any, w: float) -> None:
        """Learn from the first example of a class; an error leaves the classes as they were."""
        weights = self._weights
        assert weights is not None
        row = weights.checked(weights.read(x))
        self._check_classes({label})
        classes, before = self.classes_, (weights.w, weights.vectors)
        self.classes_ += (label.item() if isinstance(label, np.generic) else label,)
        self._numbers[label] = len(classes)
        try:
            weights.grow(len(self.classes_))
            self.learn_one(row, label, w)
        except BaseException:
            self.classes_ = classes
            del self._numbers[label]
            weights.hold(*before)
            raise

    def _check_classes(self, labels: set[Any]) -> None:
        new = [label for label in labels if label not in self._numbers]
        for label in new:
            if label is None or label != label:
                raise ValueError(f"a label must name a class; got {label!r}")
        if self.max_classes is not None and len(self._numbers) + len(new) > self.max_classes:
            raise ValueError(
                f"the label {new[0]!r} would be one class more than max_classes={self.max_classes}; the classes are "
                f"{list(self.classes_)}"
            )

    def _column(self, label: Any) -> tuple[NDArray, float]:
        """(weights, sign): those that predict, and the sign with which they speak for a label."""
        kept = self._fitted().kept_weights(self.n_seen_)
        if label not in self._numbers:
            raise ValueError(f"label must be one of the classes {list(self.classes_)}; got {label!r}")
        number = self._numbers[label]
        return (kept[:, 0], 1.0 if number else -1.0) if kept.shape[1] == 1 else (kept[:, number], 1.0)


def rule_of(rule: Any) -> Any:
    """A rule, from itself or from its name."""
    if isinstance(rule, str) and rule in RULES:
        return RULES[rule]
    if isinstance(rule, str) or rules.step.dispatch(type(rule)) is rules.step.dispatch(object):
        raise ValueError(
            f"rule must be a rule of rosenblatt.rules, such as rules.Perceptron(margin=0.0, rate=1.0), or one of "
            f"{', '.join(map(repr, RULES))}; got {rule!r}"
        )
    return rule
