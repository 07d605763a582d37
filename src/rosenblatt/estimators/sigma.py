"""Where the margin is too small to wait for, ask for less: be right on every row that is not near the plane.

A row is far if |cos(w, x)| ≥ σ. From a random unit vector, each far mistake projects its row out of the weights,
w ← w − ⟨w, x̂⟩x̂. This never lowers ⟨w, w*⟩ for a separator w*, and multiplies ‖w‖ by √(1 − σ²) at most. So if ⟨w, w*⟩ ≥ 1/√n
at the start, n coordinates, then after T updates 1/√n ≤ ⟨w, w*⟩ ≤ ‖w‖ ≤ (1 − σ²)^(T/2): there are at most
ln n / ln(1/(1 − σ²)) updates, whatever the margin. A start is that good with probability 1/8 or more, and starts are cheap.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from sklearn.exceptions import ConvergenceWarning

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import axpy, dot
from rosenblatt.engine.problems import winner
from rosenblatt.engine.rows import Examples, Rows, as_rows, count, frozen, lengths, numpy_array, row_bytes, row_values, take
from rosenblatt.errors import InvalidData, InvalidParameter, NumericOverflow
from rosenblatt.estimators import parameters, targets
from rosenblatt.estimators.base import unchanged_on_error
from rosenblatt.estimators.inputs import invalid_data, read_examples, read_rows
from rosenblatt.estimators.interface import ClassifierMixin, check_is_fitted
from rosenblatt.estimators.parameters import (
    Flag,
    InterceptParameters,
    NamedParameters,
    Number,
    RandomParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import generator
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import LearnerSaveLoadMixin, put_feature_names, set_feature_names
from rosenblatt.modelfile.values import decode_labels, decode_row, encode_labels, encode_value
from rosenblatt.theory import bounds

_STRETCH = 2**28  # bytes of rows to look at before Python is asked whether to go on: well under a second
_SHORT = 2.0**-20  # a squared length below which the weights are measured anew, before rounding shows
_NOTHING = 1e-12  # a length that is what rounding leaves of zero
_SQUARES = (1e-290, 1e290)  # squared lengths of rows that float64 holds with all its digits


def cap_probability(n: int) -> float:
    """Compute the probability that a random unit vector has a cosine ≥ 1/√n with a given one.

    1/2, 1/4, 0.2113 for n = 1, 2, 3; it falls to 0.1587, a normal variable's chance to be ≥ 1, and is never below. So the
    1/8 of the notes of Georgia Tech CS 4540 is right for every n.

    *Proof.* A normal vector g has a random direction, and g₁ ≥ ‖g‖/√n is g₁ ≥ √S for S the mean of the n − 1 other gᵢ²:
    Student's t with n − 1 degrees of freedom is ≥ 1. The chance is E[f(S)] with f(s) = P(g₁ ≥ √s), which is convex. S is
    1 on average, so that E[f(S)] ≥ f(1) = 0.1587 (Jensen); and with one more number S is the mean of what it is without
    each of them in turn, so that E[f(S)] does not grow. ∎

    Parameters
    ----------
    n : int
        The number of dimensions.

    Returns
    -------
    probability : float

    Examples
    --------
    >>> [round(cap_probability(n), 4) for n in (1, 2, 3, 10, 10**6)]
    [0.5, 0.25, 0.2113, 0.1717, 0.1587]
    """
    if n < 1:
        raise InvalidParameter("n", n, "a number of dimensions, at least 1")
    return 0.5 if n == 1 else float(betainc((n - 1) / 2, 0.5, 1 - 1 / n)) / 2


def update_bound(n: int, sigma: float) -> float:
    """Compute a bound on the updates from a start with ⟨w, w*⟩ ≥ 1/√n for a unit vector w* that separates.

    Parameters
    ----------
    n : int
        The number of features, with the constant one.
    sigma : float in (0, 1)
        σ.

    Returns
    -------
    bound : float
        ln n / ln(1/(1 − σ²)).

    Examples
    --------
    >>> round(update_bound(12, 0.1), 1), round(math.log(12) / 0.1**2, 1)
    (247.2, 248.5)
    """
    if n < 1:
        raise InvalidParameter("n", n, "a number of dimensions, at least 1")
    if not 0 < sigma < 1:
        raise InvalidParameter("sigma", sigma, "a number between 0 and 1")
    return bounds.sigma_updates(n, sigma)


def draws_needed(delta: float, pairs: bool) -> int:
    """Compute how many starts, or pairs of opposite starts, contain a good one with probability ≥ 1 − δ.

    A start is good with probability ≥ 1/8, one of a pair ±w with twice that: ⌈log₈⸝₇(1/δ)⌉ and ⌈log₄⸝₃(1/δ)⌉.

    Parameters
    ----------
    delta : float in (0, 1)
        δ.
    pairs : bool
        Whether each start is tried with both signs.

    Returns
    -------
    draws : int

    Examples
    --------
    >>> draws_needed(0.05, pairs=False), draws_needed(0.05, pairs=True)
    (23, 11)
    """
    if not 0 < delta < 1:
        raise InvalidParameter("delta", delta, "a probability between 0 and 1")
    return int(bounds.sigma_rounds(delta, pairs))


class Round(NamedTuple):
    """What became of one start."""

    vector: int  # the row of coef_ it was for
    draw: int  # counted from 1 for each vector
    mirrored: bool  # whether the start was minus the vector drawn
    updates: int
    far_mistakes: int  # left at the end; of a start that vanished, its own
    length: float  # of the weights, had they not been scaled back to 1: no separator has a greater cosine with the start
    outcome: str  # "solved", "aborted" (more updates than a good start can need), "vanished" (projected to zero)


class Walk(NamedTuple):
    """How far a round has come."""

    position: int  # the row to look at next
    clean: int  # rows in a row that were no far mistake
    updates: int
    square: float  # ‖w‖²; 0 when w has vanished
    shrunk: float  # what ‖w‖² would be without rescaling


@jit
def walk(examples, vector, sigma, w, begun, limit, looks):
    """Look at the rows in turn and project far mistakes out of w, until every row has gone by without one, or there are
    more updates than `limit`, or w vanishes, or `looks` rows were looked at; the Walk so far."""
    rows, labels, constant, squares = examples.rows, examples.labels, examples.constant, examples.lengths
    i, clean, updates, square, shrunk = begun
    total = labels.size
    while looks > 0 and clean < total and updates <= limit and square > 0.0:
        columns, values = take(rows, i)
        score = dot(columns, values, w) + constant * w[-1]
        sign = 1.0 if labels[i] == vector else -1.0
        looks -= 1
        clean += 1
        if sign * score < 0.0 and score * score >= sigma * sigma * squares[i] * square:
            axpy(columns, values, constant, w, 0, -score / squares[i])
            left = max(0.0, 1.0 - score * score / (squares[i] * square))  # Pythagoras
            clean, updates, square, shrunk = 0, updates + 1, square * left, shrunk * left
            if square < _SHORT:
                square = rescale(w)
        i = i + 1 if i + 1 < total else 0
    return Walk(i, clean, updates, square, shrunk)


@jit
def rescale(w):
    """Give w the length 1; the squared length it then has: 1, or 0 if there was nothing left of it."""
    length = math.sqrt(np.dot(w, w))
    if length <= _NOTHING:
        return 0.0
    w /= length
    return 1.0


@jit
def cosines(rows, squares, coef, intercept, result):
    """result[i, k] = cos of row i with weight vector k, which has length 1; 0 for a row of zeros."""
    total = result.shape[0]
    for i in range(total):
        columns, values = take(rows, i)
        for k in range(result.shape[1]):
            score = dot(columns, values, coef[k]) + intercept[k]
            result[i, k] = score / math.sqrt(squares[i]) if squares[i] > 0.0 else 0.0


def check_lengths(rows: Rows, constant: float) -> NDArray:
    """Compute ‖(row, constant)‖² of each row; raise NumericOverflow where float64 cannot hold a square."""
    squares = lengths(rows, constant)
    low, high = _SQUARES
    for i in np.flatnonzero((squares < low) | (squares > high)).tolist():
        if squares[i] > high or np.any(row_values(rows, i)):
            problem = (
                f"row {i} of X is too {'long' if squares[i] > high else 'short'} for its squared length to be a number"
            )
            raise NumericOverflow(problem, hint="scale X to values nearer to 1", row=i)
    return squares


def run_round(examples: Examples, label: int, sigma: float, w: NDArray, limit: int) -> tuple[Walk, str]:
    """Move w, of length 1, until no row is a far mistake, and rescale it; give up after more than `limit` updates. Return
    how far it came, and the outcome."""
    looks = max(1, _STRETCH // max(row_bytes(examples.rows), 1))
    done = Walk(0, 0, 0, 1.0, 1.0)
    while done.square > 0 and done.updates <= limit and done.clean < len(examples.labels):
        done = walk(examples, label, sigma, w, done, limit, looks)
    if done.square == 0:
        return done, "vanished"
    rescale(w)
    return done, "aborted" if done.updates > limit else "solved"


def far_mistakes(examples: Examples, label: int, sigma: float, w: NDArray) -> int:
    """Count the rows that are far from the plane of w, on the wrong side."""
    found = _cosines(examples.rows, examples.constant, w[None, :-1], examples.constant * w[None, -1])[:, 0]
    signs = np.where(examples.labels == label, 1, -1)
    return int(np.count_nonzero(signs * found <= -sigma))


def _cosines(rows: Rows, constant: float, coef: NDArray, intercept: NDArray) -> NDArray:
    result = np.empty((count(rows), len(coef)))
    weights = frozen(np.ascontiguousarray(coef)), frozen(np.ascontiguousarray(intercept))
    cosines(rows, check_lengths(rows, constant), *weights, result)
    return result


def _starts(rng: np.random.Generator, n: int, draws: int, pairs: bool) -> Iterator[tuple[int, bool, NDArray]]:
    """Yield (draw, whether mirrored, unit vector), in the order in which they are tried."""
    for draw in range(1, draws + 1):
        w = rng.standard_normal(n)
        w /= np.linalg.norm(w)
        for mirrored in (False, True)[: 1 + pairs]:
            yield draw, mirrored, -w if mirrored else w


@with_parameters
class SigmaPerceptron(LearnerSaveLoadMixin, ClassifierMixin, InterceptParameters, RandomParameters, NamedParameters):
    """The σ-perceptron: a linear classifier that is right on every training row far from its plane, with any margin.

    A row is far if |cos(w, x)| ≥ `sigma`, both with the constant feature. If a hyperplane separates the classes, then with
    probability ≥ 1 − `delta` no far row is on the wrong side after `fit`. A round takes at most ln n / sigma² updates, n
    the number of features and the constant one; no margin enters. The plain perceptron may need 4ⁿ/3. Nothing is promised
    for near rows, nor that there are few of them: see what share the learner `vouches` for.

    This is the modified perceptron of the notes of Georgia Tech CS 4540 (Vempala, 2023; the idea is from Blum, Frieze,
    Kannan and Vempala, 1998), with the number of rounds and the test for giving one up put right: the notes visit each row
    once, here until no far mistake is left; they give a round up at ln n / sigma² updates, here beyond them, and do not say
    what happens if all are given up.

    Parameters
    ----------
    sigma
        How far is far; at least 1e-8, where rounding begins. Rows in general position have cosines of about 1/√n with any
        w, so a sigma well above that promises nothing about them.
    delta
        The probability of failing on data that can be separated. There are ⌈log(1/delta)/log(4/3)⌉ pairs of starts.
    pairs
        Whether each vector drawn is also tried with its sign turned; otherwise there are ⌈log(1/delta)/log(8/7)⌉ starts.
    intercept_scaling
        The size of that constant. Cosines are those of the rows with it.
    random_state
        The source of the starts.
    verbose
        Whether to show a line for each round on stderr.

    Attributes
    ----------
    coef_, intercept_ : (vectors, features) and (vectors,) float64 arrays
        The weights, of length 1 with the constant feature's: one vector for two classes, otherwise one a class.
    classes_ : array
        The labels, sorted.
    success_ : bool
        Whether no far mistake is left. If not, a ConvergenceWarning said so and the weights are those with the fewest.
    solved_ : (vectors,) bool array
        The same of each vector.
    stop_reason_ : str
        no_far_mistake or failed.
    history_ : list of Round
        For each start: its vector, the draw, updates, far mistakes left, length, and the outcome.
    n_rounds_, n_updates_ : int
        Starts tried, and updates in all of them.

    Notes
    -----
    Many classes are as many problems, each class against the rest, each with delta divided by their number. If all are
    solved, a training row whose highest cosine is ≥ sigma belongs to that class. One class against the rest often cannot
    be separated where the classes can be told apart otherwise.

    There is no `partial_fit`: the promise is about a fixed point over all rows, and a stream has none.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.estimators.sigma import SigmaPerceptron, update_bound
    >>> X = np.tril(-np.ones((12, 12)), -1) + np.eye(12)  # the plain perceptron makes 5,592,405 updates on these
    >>> y = np.arange(12) % 2
    >>> clf = SigmaPerceptron(fit_intercept=False).fit(X * np.where(y, 1, -1)[:, None], y)
    >>> clf.stop_reason_, clf.n_rounds_, bool(clf.n_updates_ <= clf.n_rounds_ * update_bound(12, 0.1))
    ('no_far_mistake', 1, True)
    """

    sigma: float = parameter(0.1, Number(1e-8, high=1))  # below this, 1 − σ² is 1 in float64
    delta: float = parameter(0.05, Number(0, open_low=True, high=1))
    pairs: bool = parameter(True, Flag())

    def fit(self, X: MatrixLike, y: ArrayLike) -> SigmaPerceptron:
        """Fit the model: draw starts until one leads to weights without a far mistake.

        An error leaves the estimator as it was. If no start does, there is no error but a ConvergenceWarning.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.
        y : (rows,) array-like
            Their labels.

        Returns
        -------
        self : SigmaPerceptron
            The fitted estimator.
        """
        with unchanged_on_error(self):
            parameters.check(self.get_params(deep=False), self._allowed)
            y = numpy_array(y, "y")
            targets.refuse_several(y, type(self).__name__)
            targets.refuse_mixed(y)
            table, labels = read_examples(self, X, y, reset=True)
            with invalid_data():
                classes = targets.distinct(targets.checked_labels(labels))
            if len(classes) < 2:
                raise InvalidData(f"y must have at least two classes; it has one class only: {classes[0].item()!r}")
            constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
            rows = as_rows(table)
            examples = Examples(rows, targets.numbers(labels, classes), None, constant, check_lengths(rows, constant))
            positive = [1] if len(classes) == 2 else range(len(classes))
            rng = generator(self.random_state)
            runs = [self._solve(examples, label, vector, len(positive), table.shape[1] + self.fit_intercept, rng)
                    for vector, label in enumerate(positive)]  # fmt: skip
        weights = np.array([w for w, _ in runs])
        self.classes_, self._constant, self._sigma = classes, constant, float(self.sigma)
        self.coef_, self.intercept_ = weights[:, :-1].copy(), constant * weights[:, -1]
        self.history_ = [record for _, records in runs for record in records]
        self.solved_ = np.array([records[-1].outcome == "solved" for _, records in runs])
        self._count()
        if not self.success_:
            warnings.warn(self._report(), ConvergenceWarning, stacklevel=2)
        return self

    def _check_learned(self) -> None:
        check_is_fitted(self)

    def _count(self) -> None:
        """Set what follows from the history and from `solved_`."""
        self.n_rounds_, self.n_updates_ = len(self.history_), sum(record.updates for record in self.history_)
        self.success_ = bool(self.solved_.all())
        self.stop_reason_ = "no_far_mistake" if self.success_ else "failed"

    def decision_function(self, X: MatrixLike) -> NDArray:
        """Compute the cosine of each row with the weights. Near rows are those between −sigma and sigma.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.

        Returns
        -------
        cosines : (rows,) array for two classes, else (rows, classes)
            ≥ 0 for the second of two classes; of more classes, the highest wins.
        """
        check_is_fitted(self)
        found = _cosines(as_rows(read_rows(self, X)), self._constant, self.coef_, self.intercept_)
        return found[:, 0] if len(self.classes_) == 2 else found

    def predict(self, X: MatrixLike) -> NDArray:
        """Predict the class of each row, near or far.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.

        Returns
        -------
        labels : (rows,) array
            A cosine of exactly 0 is the second of two classes; of equal cosines, the first class wins.
        """
        decision = self.decision_function(X)
        return self.classes_[winner(decision)]

    def vouches(self, X: MatrixLike) -> NDArray:
        """Tell which rows are far, so that their predictions would be right if they were training rows.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.

        Returns
        -------
        far : (rows,) bool array
            |cosine| ≥ sigma; for many classes, the highest cosine ≥ sigma. False for a vector that is not `solved_`.
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return (np.abs(decision) >= self._sigma) & self.solved_[0]
        return (decision.max(axis=1) >= self._sigma) & self.solved_[decision.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Files

    _always_resumes = True  # there is no more than what predicts

    def _learned_to_parts(self, resume: bool) -> Parts:
        parts = Parts({
            "features": int(self.n_features_in_), "classes": encode_labels(self.classes_), "constant": self._constant,
            "sigma": self._sigma, "history": [[encode_value(value) for value in record] for record in self.history_],
        })  # fmt: skip
        put_feature_names(parts, self)
        for name in ("coef", "intercept", "solved"):
            parts.put(name, getattr(self, f"{name}_"))
        return parts

    def _learned_from_parts(self, parts: Parts, resume: bool) -> None:
        parameters.check(self.get_params(deep=False), self._allowed)
        self.n_features_in_ = parts.whole("features", 1)
        set_feature_names(parts, self)
        self.classes_ = decode_labels(parts.facts["classes"])
        self._constant, self._sigma = parts.real("constant"), parts.real("sigma")
        vectors = 1 if len(self.classes_) == 2 else len(self.classes_)
        self.coef_ = parts.array("coef", np.float64, (vectors, self.n_features_in_))
        self.intercept_ = parts.array("intercept", np.float64, (vectors,))
        self.solved_ = parts.array("solved", np.bool_, (vectors,))
        self.history_ = [decode_row(values, Round) for values in parts.values("history", list)]
        self._count()

    def _solve(
        self, examples: Examples, label: int, vector: int, vectors: int, n: int, rng: np.random.Generator
    ) -> tuple[NDArray, list[Round]]:
        """Run rounds until one is solved, or all there may be; return the weights with the fewest far mistakes, and rounds.

        The weights have a place for the constant feature, which is 0 where there is none.
        """
        records: list[Round] = []
        best, fewest = np.zeros(0), math.inf
        sigma, limit = float(self.sigma), math.floor(math.log(n) / self.sigma**2)
        for draw, mirrored, w in _starts(rng, n, draws_needed(self.delta / vectors, self.pairs), self.pairs):
            start = w if self.fit_intercept else np.append(w, 0.0)
            w = start.copy()
            done, outcome = run_round(examples, label, sigma, w, limit)
            w = start if outcome == "vanished" else w
            missed = 0 if outcome == "solved" else far_mistakes(examples, label, sigma, w)
            record = Round(vector, draw, mirrored, done.updates, missed, math.sqrt(done.shrunk), outcome)
            records.append(record)
            if self.verbose:
                print(f"vector {vector}, draw {draw}{', mirrored' if mirrored else ''}: {done.updates:,} updates, "
                      f"{missed:,} far mistakes left, {outcome}", file=sys.stderr)  # fmt: skip
            if missed < fewest:
                best, fewest = w, missed
            if outcome == "solved":
                break
        return best, records

    def _report(self) -> str:
        failed = np.flatnonzero(~self.solved_)
        left = sum(min(r.far_mistakes for r in self.history_ if r.vector == vector) for vector in failed)
        where = "" if len(self.solved_) == 1 else f" for {len(failed)} of {len(self.solved_)} classes"
        rounds = sum(record.vector in failed for record in self.history_)
        return (
            f"no start led to weights without a far mistake{where}: {rounds} rounds were given up, and the weights kept "
            f"leave {left} far mistakes. If a hyperplane separates the classes this happens with probability ≤ delta = "
            f"{self.delta:g}, so it is a sign that none does. Try a larger sigma, more features, or "
            "Perceptron(keep='average'), which needs no separator; a smaller delta allows more rounds."
        )
