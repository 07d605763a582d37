"""A perceptron that meets its examples one at a time. Features have names and classes have labels; both may appear at any
time. What it has learned is, at every moment, what `rosenblatt.Perceptron` would have learned from the same examples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt import rules
from rosenblatt.errors import (
    DamagedModel,
    IncompatibleParameters,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    NumericOverflow,
    UnknownLabel,
    UnsupportedOperation,
    shown,
)
from rosenblatt.estimators import parameters
from rosenblatt.estimators.explanation import Explanation
from rosenblatt.estimators.parameters import (
    Anything,
    InterceptParameters,
    NamedParameters,
    Number,
    OneOf,
    RuleName,
    parameter,
    with_parameters,
)
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import LearnerSaveLoadMixin
from rosenblatt.modelfile.values import decode_name, encode_name
from rosenblatt.online.hashing import HASHES
from rosenblatt.online.names import LARGEST_VALUE
from rosenblatt.online.rows import RowLike, RowsLike, check_weight, items, read_row, read_rows, read_weights
from rosenblatt.online.weights import NamedWeights

_COUNTS = ("n_seen_", "n_mistakes_", "n_updates_")


class Learned:
    """What an online perceptron has learned before its first example: nothing."""

    classes_: tuple[Hashable, ...] = ()
    n_seen_: int = 0
    n_mistakes_: int = 0
    n_updates_: int = 0
    _weights: NamedWeights | None = None  # until the first example
    _numbers: dict[Hashable, int]


@with_parameters
class OnlinePerceptron(Learned, LearnerSaveLoadMixin, NamedParameters, InterceptParameters):
    """A perceptron that learns from one example at a time: features have names, and classes may appear at any time.

    An example proposes a direction Δ: y·x for two classes; for more, x at its label and −x at the rival with the highest
    score. If the margin m = ⟨w, Δ⟩ is at most 0, or at most what the rule says, then w += τΔ. If the rows, constant feature
    included, have norm ≤ R and some unit vector separates two classes with margin γ, then the perceptron makes at most
    R²/γ² updates on a stream of any length (Block 1962, Novikoff 1962).

    A row is a dictionary from names (anything hashable) to numbers, or a sequence of numbers, whose names are the positions
    0, 1, 2, … A value may be text: {"color": "red"} is {"color=red": 1.0}, as in scikit-learn's DictVectorizer. NaN,
    infinity and values beyond ±1e100 are refused; what is not known is left out. An error leaves the model as it was.

    Parameters
    ----------
    rule
        How far an example moves the weights. The word is `rules.Perceptron(margin=0.0, rate=1.0)`.
    keep
        Which weights predict: the last, or the mean of those after every example. The mean errs less on a stream that does
        not change, and more after a change (concept drift), since it never forgets.
    hashing
        Keep weights for this many buckets, and put each feature into the bucket, with the sign, that a hash of its name
        says (`rosenblatt.online.hashing`). The size of the model is then fixed. As many names as there are buckets are
        remembered, so that weights can be shown by name; when there are more, all are forgotten, and those that come
        again are remembered again. None: each name has weights of its own.
    hash_bits
        The hash: MurmurHash3, the same buckets and signs as scikit-learn's FeatureHasher, or BLAKE2b.
    max_features
        Hold at most this many features. An update that brings more makes room first: the features with the smallest
        weights (largest absolute value over the classes, of the weights that predict; among equals the one that came
        first) are forgotten, with their part of the average, but none that is in the example itself; at least as many as
        are needed and, where there are, a tenth of `max_features`. If the example alone has more features than that, it
        brings in the first ones that fit.
    max_classes
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
    `max_features`, 8 bytes), twice that with `keep="average"`; two classes have one weight vector, three have one each, and
    more have one each and room for at most as many again, so that n new classes take time in proportion to n. And for each
    feature its name, 8 bytes that point to it, and 32 to 64 bytes of table. Features that never took part in an update take
    none. With `hashing`, 8 bytes for each weight vector and bucket, and for each name that is remembered the same as for a
    feature. A model file has no room to grow.

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

    rule: Any = parameter("perceptron", RuleName(), positional=True)
    hashing: int | None = parameter(None, Number(2, whole=True, high=2**31, optional=True))
    hash_bits: int = parameter(32, Anything("{32, 64}"))
    max_features: int | None = parameter(None, Number(1, whole=True, high=2**31, optional=True))
    max_classes: int | None = parameter(None, Number(2, whole=True, optional=True))
    keep: str = parameter("last", OneOf(("last", "average")))
    intercept_scaling: float = parameter(1.0, Number(0, open_low=True, high=1e50))

    _always_resumes = True

    # Learning

    def learn_one(self, x: RowLike, y: Hashable, w: float = 1.0) -> None:
        """Learn from one example. An error leaves the model as it was.

        Parameters
        ----------
        x : dict, mapping or sequence of numbers
            The row: values by name, or by position.
        y : hashable
            Its label. A new one becomes a class.
        w : float, default=1.0
            The weight of the example: it multiplies the step, and with 0 the example is ignored.

        Raises
        ------
        InvalidData
            The row, the label or the weight cannot be used, or there would be more than `max_classes` classes.
        NumericOverflow
            A value, the score or the step is too large.

        Examples
        --------
        >>> model = OnlinePerceptron()
        >>> for x, y in [({"win": 1, "money": 1}, "spam"), ({"see": 1, "you": 1}, "ham"), ({"money": 1}, "spam")]:
        ...     model.learn_one(x, y)
        >>> model.predict_one({"money": 2})
        'spam'
        """
        weights = self._weights or self._begin()
        if w != 1.0 and not check_weight(w):
            return
        try:
            number = self._numbers.get(y)
        except TypeError:
            raise InvalidDataType(f"a label must be hashable; got {shown(y)}") from None
        if number is None:
            self._learn_new_class(x, y, w)
            return
        classes = len(self.classes_)
        if classes == 1:
            weights.check(weights.read(x))
            self.n_seen_ += 1
            return
        row: Any = x
        score = weights.score(row)
        if score is None:
            row, score = weights.read_and_score(x)
        if classes == 2:
            gains, loses, positive = 0, -1, number == 1
            m = score if positive else -score
        else:
            gains, positive = number, True
            own, score[number] = score[number], -math.inf
            loses = int(score.argmax())
            m = float(own - score[loses])
        squared = weights.length(row) * (1 if classes == 2 else 2) if self._uses_length else 0.0
        tau = w * self._step(m, squared, self.n_updates_ + 1, positive)
        if tau != 0.0:
            if not -LARGEST_VALUE <= tau <= LARGEST_VALUE:
                raise NumericOverflow(
                    f"a step of {tau:g} is too long; at most {LARGEST_VALUE:g} is allowed",
                    hint="use a smaller weight of the example, a smaller rate, or rows that are not so short",
                )
            weights.push(row, gains, loses, tau if positive else -tau, self.n_seen_)
            self.n_updates_ += 1
        if not m > 0.0:
            self.n_mistakes_ += 1
        self.n_seen_ += 1

    def learn_many(self, X: RowsLike, y: Iterable[Hashable], w: ArrayLike | None = None) -> None:
        """Learn from examples in the order given: the same as `learn_one` for each of them.

        All rows, labels and weights are checked before the first is learned from. If an example fails after that, because
        its step is too long, those before it have been learned from and are counted; it and those after it have not.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or iterable of rows
            The rows. The columns of a DataFrame are the names of features, those of an array the numbers 0, 1, 2, …
        y : iterable of hashable
            Their labels.
        w : float or (rows,) array-like, optional
            Their weights. By default all are 1.

        Raises
        ------
        InvalidData
            An example cannot be used; the attribute `row` tells which.
        """
        rows, each = read_rows(X), items(y, "y", "labels")
        labels = y.tolist() if isinstance(y, np.ndarray) else list(each)
        weight = read_weights(w, len(labels))
        if not len(rows) == len(labels) == len(weight):
            raise InvalidData(f"X has {len(rows)} rows, but y has {len(labels)} labels and w {len(weight)} weights")
        weights = self._weights or self._begin()
        self._check_classes((row, label) for row, label in enumerate(labels) if weight[row])
        live, row = [], 0
        try:
            for row, one in enumerate(weight):
                if check_weight(one):
                    live.append((row, weights.check(weights.read(rows[row]))))
            for row, x in live:
                self.learn_one(x, labels[row], weight[row])
        except InvalidData as error:
            error.row = row
            raise

    # Predicting

    def predict_one(self, x: RowLike) -> Any:
        """Predict the label of a row.

        Parameters
        ----------
        x : dict, mapping or sequence of numbers
            The row.

        Returns
        -------
        label : hashable or None
            None before the first example. A score of exactly 0 is the second of two classes; of equal scores among more
            classes, the class that came first wins.

        Examples
        --------
        >>> model = OnlinePerceptron()
        >>> print(model.predict_one({"money": 1}))  # before anything was learned
        None
        >>> model.learn_one({"money": 1}, "spam")
        >>> model.predict_one({"money": 1})
        'spam'
        """
        classes = self.classes_
        if len(classes) < 2 or self._weights is None:
            return classes[0] if classes else None
        score = self._weights.predict_score(x, self.n_seen_)
        return classes[1 if score >= 0.0 else 0] if len(classes) == 2 else classes[score.argmax()]

    def score_one(self, x: RowLike) -> dict[Any, float]:
        """Compute the score of each class for a row; the highest wins.

        Parameters
        ----------
        x : dict, mapping or sequence of numbers
            The row.

        Returns
        -------
        scores : dict
            From label to score. Two classes have the scores −s and s, a single one has 0.
        """
        if len(self.classes_) < 2:
            return dict.fromkeys(self.classes_, 0.0)
        score = self._fitted().predict_score(x, self.n_seen_)
        scores = (0.0 - score, score) if len(self.classes_) == 2 else score.tolist()
        return dict(zip(self.classes_, scores, strict=True))

    def predict_many(self, X: RowsLike) -> list[Any]:
        """Predict the label of each row.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or iterable of rows
            The rows.

        Returns
        -------
        labels : list
        """
        return [self.predict_one(x) for x in read_rows(X)]

    def explain_one(self, x: RowLike, label: Hashable = None) -> Explanation:
        """Compute what each feature of a row contributes to the score of a label.

        Parameters
        ----------
        x : dict, mapping or sequence of numbers
            The row.
        label : hashable, optional
            The label; by default the one that is predicted.

        Returns
        -------
        explanation : Explanation
            The contributions by name, largest first; with the intercept they add up to the score.
        """
        label = self.predict_one(x) if label is None else label
        column, sign = self._column(label)
        row = read_row(x)
        row = self._fitted().check(row if isinstance(row, dict) else dict(enumerate(row.tolist())))
        products = {}
        for name, value in row.items():
            code = self._fitted().code(name)
            if code >= 0 and value:
                products[name] = sign * float(column[code >> 1]) * (-float(value) if code & 1 else float(value))
        contributions = dict(sorted(products.items(), key=lambda item: -abs(item[1])))
        constant = self.intercept_of(label)
        return Explanation(label, math.fsum([constant, *contributions.values()]), constant, contributions)

    # What has been learned

    def weights_of(self, label: Hashable) -> dict[Any, float]:
        """Return the weights for a label, without those that are zero.

        Parameters
        ----------
        label : hashable
            One of the classes. For two classes the weights of the first are minus those of the second.

        Returns
        -------
        weights : dict
            From the name of a feature to its weight. With `hashing`, a bucket none of whose names is remembered has its
            number as a name.
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
        """Return the weights for each label, as `weights_of` does for one.

        Returns
        -------
        weights : dict of dict
            From label to the weights by name.
        """
        return {label: self.weights_of(label) for label in self.classes_}

    def intercept_of(self, label: Hashable) -> float:
        """Return the score of a label for a row without features.

        Parameters
        ----------
        label : hashable
            One of the classes.

        Returns
        -------
        intercept : float
        """
        column, sign = self._column(label)
        return sign * float(column[-1]) + 0.0

    @property
    def n_features_(self) -> int:
        """The number of features that have weights of their own; with `hashing`, of names that are remembered."""
        return 0 if self._weights is None else len(self._weights.names)

    # Copies

    def clone(self, new_params: Mapping[str, Any] | None = None, include_attributes: bool = False) -> Any:
        """Return a new model with the same parameters.

        Parameters
        ----------
        new_params : mapping of str to object, optional
            Parameters that differ.
        include_attributes : bool, default=False
            Whether the new model has learned what this one has; otherwise it has seen nothing.

        Returns
        -------
        model : OnlinePerceptron
        """
        if new_params and include_attributes:
            raise IncompatibleParameters(
                ("new_params", dict(new_params)),
                ("include_attributes", True),
                "with other parameters the model would have learned something else",
            )
        twin = type(self)(**(self.get_params(deep=False) | dict(new_params or {})))
        if include_attributes:
            twin.__setstate__(copy.deepcopy(self.__getstate__()) | twin.get_params(deep=False))
        return twin

    def set_params(self, **params: Any) -> Any:
        """Set parameters of a model that has seen nothing yet, and return it.

        Parameters
        ----------
        **params : object
            Values by the names of parameters.

        Returns
        -------
        self : OnlinePerceptron

        Raises
        ------
        UnsupportedOperation
            The model has begun to learn.
        """
        if params and self.n_seen_:
            raise UnsupportedOperation(
                "the parameters of a model that has begun to learn cannot be changed",
                hint="clone(new_params) makes a new model with other parameters",
            )
        self._weights = None if params else self._weights
        return super().set_params(**params)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_step"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._weights is not None:
            self._set_step()

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
        parameters.check(self.get_params(deep=False), self._allowed)
        classes = parts.facts["classes"]
        self.classes_ = tuple(map(decode_name, classes)) if isinstance(classes, list) else ()
        if not self.classes_ or len(set(self.classes_)) != len(self.classes_):
            raise DamagedModel(f"classes must be non-empty and distinct; they are {str(classes)[:80]}")
        if self.hashing is not None and parts.arrays["weights"].shape[:1] != (self.hashing + 1,):
            raise DamagedModel(f"there must be weights for {self.hashing} buckets")  # before there is room for as many
        self._begin().set_from_parts(parts, len(self.classes_))
        self._numbers = {label: number for number, label in enumerate(self.classes_)}
        counts = parts.parts("counts")
        self.__dict__.update({name: counts.whole(name) for name in _COUNTS})
        if self.n_seen_ < 1:
            raise DamagedModel("the model has classes but has seen no example")

    # Steps

    def _begin(self) -> NamedWeights:
        """Check the parameters and make the weights of a model that has seen nothing."""
        parameters.check(self.get_params(deep=False), self._allowed)
        if self.hash_bits not in HASHES:
            raise InvalidParameter("hash_bits", self.hash_bits, "32 or 64")
        if self.hashing is not None and self.max_features is not None:
            one, other = ("hashing", self.hashing), ("max_features", self.max_features)
            raise IncompatibleParameters(one, other, "hashing has a fixed size and forgets nothing")
        self._set_step()
        self._numbers = {}
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        self._weights = NamedWeights(constant, self.keep == "average", self.max_features, self.hashing, self.hash_bits)
        return self._weights

    def _set_step(self) -> None:
        """Have the step of the rule as a function of margin, squared length, number of the update and side."""
        rule = rules.Perceptron(0.0, 1.0) if self.rule == "perceptron" else self.rule
        self._step, self._uses_length = partial(rules.step.dispatch(type(rule)), rule), rule.uses_length

    def _fitted(self) -> NamedWeights:
        if self._weights is None or not self.classes_:
            raise UnsupportedOperation("this model has not seen an example yet", hint="call learn_one first")
        return self._weights

    def _learn_new_class(self, x: RowLike, label: Hashable, w: float) -> None:
        """Learn from the first example of a class; an error leaves the classes as they were."""
        weights = self._weights
        assert weights is not None
        row = weights.check(weights.read(x))
        self._check_classes([(None, label)])
        classes, before = self.classes_, (weights.w, weights.vectors)
        self.classes_ += (label.item() if isinstance(label, np.generic) else label,)
        self._numbers[label] = len(classes)
        try:
            weights.grow(len(self.classes_))
            self.learn_one(row, label, w)
        except BaseException:
            self.classes_ = classes
            del self._numbers[label]
            weights.set_weights(*before)
            raise

    def _check_classes(self, labels: Iterable[tuple[int | None, Hashable]]) -> None:
        """Refuse the first of some labels, each with its row, that cannot be a class or would be one too many."""
        added: dict[Hashable, None] = {}
        for row, label in labels:
            try:
                new = label not in self._numbers and label not in added
            except TypeError:
                raise InvalidDataType(f"a label must be hashable; got {shown(label)}", row=row) from None
            if not new:
                continue
            if label is None or label != label:
                raise InvalidData(f"a label must not be None or NaN; got {label!r}", row=row)
            if len(self._numbers) + len(added) == self.max_classes:
                raise InvalidData(
                    f"the label {shown(label)} would be one class more than max_classes={self.max_classes}; the classes "
                    f"are {[*self._numbers, *added]}",
                    row=row,
                )
            added[label] = None

    def _column(self, label: Hashable) -> tuple[NDArray, float]:
        """Return the weights that predict, and the sign with which they speak for a label."""
        predicting = self._fitted().predicting(self.n_seen_)
        if label not in self._numbers:
            raise UnknownLabel(label, self.classes_)
        number = self._numbers[label]
        return (predicting[:, 0], 1.0 if number else -1.0) if predicting.shape[1] == 1 else (predicting[:, number], 1.0)
