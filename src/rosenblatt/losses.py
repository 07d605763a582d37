"""A loss says how bad a margin z = y·⟨w, x⟩ is, and its slope how hard to push: w −= η · slope(z) · y·x.

Two numbers make the family: T·log(1 + e^((δ − z)/T)), with the margin δ and the temperature T. At T = 0 that is
max(0, δ − z), and descending it row by row is the perceptron with margin δ.

    perceptron   δ = 0, T = 0   max(0, −z)
    hinge        δ = 1, T = 0   max(0, 1 − z)
    log          δ = 0, T = 1   log(1 + e^−z)
    zero_one                    1 if z ≤ 0, else 0: what one would like to minimise, but it has no slope to follow

Where z = δ and T = 0, every number from −1 to 0 is a subgradient. The one taken is −1, the one that moves: a tie is a
mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from rosenblatt.errors import InvalidData, InvalidParameter, UnknownLabel


class Graded(NamedTuple):
    """The loss of each row, and its subgradient in the scores.

    Attributes
    ----------
    value : (rows,) array
        The losses.
    slope : (rows, classes) array
        A subgradient of each loss in the scores of its row.

    Examples
    --------
    >>> value, slope = hinge.joint([[1.0, 3.0, 2.0], [5.0, 1.0, 0.0]], labels=[2, 0])
    >>> value.tolist(), slope.tolist()
    ([2.0, 0.0], [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0]])
    """

    value: NDArray
    slope: NDArray


class Rivalry(NamedTuple):
    """The margin of the label of each row over its rivals, and its gradient in the scores.

    Attributes
    ----------
    margin : (rows,) array
        The margins.
    direction : (rows, classes) array
        1 at the label, −1 at the best rival, or shared among the rivals.

    Examples
    --------
    >>> margin, direction = rivalry([[1.0, 3.0, 2.0]], labels=[2])
    >>> margin.tolist(), direction.tolist()
    ([-1.0], [[0.0, -1.0, 1.0]])
    """

    margin: NDArray
    direction: NDArray


class Criterion(NamedTuple):
    """The loss of all rows together, and a subgradient of it in the weights.

    Attributes
    ----------
    value : float
        The loss.
    subgradient : (features,) array
        The subgradient.

    Examples
    --------
    >>> value, subgradient = criterion([0, -1], [[1, 2], [3, 1], [0, 1]], [1, 1, -1])
    >>> value, subgradient.tolist()
    (3.0, [-4.0, -3.0])
    """

    value: float
    subgradient: NDArray


@dataclass(frozen=True)
class Loss:
    """The loss T·log(1 + e^((δ − z)/T)) of a margin z; at temperature T = 0, max(0, δ − z).

    Convex, never negative, never rising. It exceeds the loss at temperature 0 by T·log 2 at z = δ and by less elsewhere.
    float32 stays float32, NaN stays NaN, and no size of z overflows.

    Parameters
    ----------
    margin : float, default=0
        δ. With T = 0, a margin above δ costs nothing.
    temperature : float, default=0
        T ≥ 0.

    Examples
    --------
    >>> from rosenblatt.losses import Loss, hinge, log, perceptron
    >>> perceptron == Loss(margin=0), hinge == Loss(margin=1), log == Loss(temperature=1)
    (True, True, True)
    >>> z = [-2, 0, 1, 3]
    >>> perceptron(z).tolist(), perceptron.slope(z).tolist()
    ([2.0, 0.0, 0.0, 0.0], [-1.0, -1.0, 0.0, 0.0])
    >>> hinge(z).tolist(), hinge.slope(z).tolist()
    ([3.0, 1.0, 0.0, 0.0], [-1.0, -1.0, -1.0, 0.0])
    >>> log([-1e4, 1e4]).tolist(), log.slope([-1e4, 0, 1e4]).tolist()
    ([10000.0, 0.0], [-1.0, -0.5, 0.0])
    """

    margin: float = 0.0
    temperature: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.margin):
            raise InvalidParameter("margin", self.margin, "a finite number", hint="0 is the perceptron's, 1 the hinge's")
        if not 0 <= self.temperature < np.inf:
            raise InvalidParameter("temperature", self.temperature, "finite and at least 0")

    def __call__(self, z: ArrayLike) -> NDArray:
        """Return the loss of each margin.

        Parameters
        ----------
        z : array-like
            Margins y·⟨w, x⟩.

        Returns
        -------
        ndarray
            Of the shape of `z`.
        """
        short = self.margin - _real(z)
        if self.temperature == 0:
            return np.maximum(0.0, short)
        with np.errstate(over="ignore"):  # e^−∞ is then 0, as it should be
            return np.maximum(0.0, short) + self.temperature * np.log1p(np.exp(-np.abs(short) / self.temperature))

    def slope(self, z: ArrayLike) -> NDArray:
        """Return the derivative at each margin; at the kink of a loss of temperature 0, z = δ, the subgradient −1.

        Parameters
        ----------
        z : array-like
            Margins y·⟨w, x⟩.

        Returns
        -------
        ndarray
            Of the shape of `z`.
        """
        short = self.margin - _real(z)
        if self.temperature == 0:
            return 0.0 - np.heaviside(short, 1.0)
        with np.errstate(over="ignore"):
            return 0.0 - expit(short / self.temperature)

    def joint(self, scores: ArrayLike, labels: ArrayLike, cost: ArrayLike | None = None) -> Graded:
        """Compute the loss of one decision among many classes, for each row of `scores`, and its subgradient in them.

        It is the loss of the margin against the rivals (`rivalry`, at this temperature), which for a row of label y is

            perceptron           max_r s_r − s_y
            hinge                max_r (s_r + [r ≠ y]) − s_y
            log                  log Σ_r e^{s_r} − s_y
            perceptron, cost Δ   max_r (s_r + Δ[y, r]) − s_y, the hinge of structured prediction

        with r over all classes, y among them. At a temperature T it is at most T·log K above the perceptron's, for K
        classes, and falls to it as T → 0.

        Parameters
        ----------
        scores, labels, cost
            As in `rivalry`.

        Returns
        -------
        Graded
            The loss of each row and its subgradient in the scores.

        Examples
        --------
        >>> perceptron.joint([[1.0, 3.0, 2.0]], [2]).value.tolist()
        [1.0]
        >>> perceptron.joint([[1.0, 3.0, 2.0]], [2]).slope.tolist()
        [[0.0, 1.0, -1.0]]
        """
        margin, direction = rivalry(scores, labels, temperature=self.temperature, cost=cost)
        return Graded(self(margin), 0.0 + self.slope(margin)[:, None] * direction)


perceptron = Loss(margin=0.0)
hinge = Loss(margin=1.0)
log = Loss(temperature=1.0)


def zero_one(z: ArrayLike) -> NDArray:
    """Return 1 for each margin that is a mistake, z ≤ 0, and 0 for the others.

    Its slope is 0 wherever it has one.

    Parameters
    ----------
    z : array-like
        Margins y·⟨w, x⟩.

    Returns
    -------
    ndarray
        Of the shape of `z`.

    Examples
    --------
    >>> zero_one([-2, 0, 0.1]).tolist()
    [1.0, 1.0, 0.0]
    """
    return np.heaviside(-_real(z), 1.0)


def rivalry(scores: ArrayLike, labels: ArrayLike, temperature: float = 0.0, cost: ArrayLike | None = None) -> Rivalry:
    """Compute the margin of each row's label over its rivals, s_y − max_{r≠y} (s_r + Δ[y, r]).

    At a temperature T > 0 the maximum is soft, T·log Σ_{r≠y} e^((s_r + Δ[y, r])/T). Rivals that tie: the lowest number is
    the rival.

    Parameters
    ----------
    scores : array-like of shape (rows, classes)
        Finite numbers.
    labels : array-like of int, of shape (rows,)
        The class number of each row.
    temperature : float, default=0
        T ≥ 0.
    cost : array-like of shape (classes, classes), optional
        Δ, with zeros on its diagonal; its rows are labels.

    Returns
    -------
    Rivalry
        The margin of each row, and its subgradient in the scores.

    Examples
    --------
    >>> rivalry([[1.0, 3.0, 2.0], [5.0, 1.0, 0.0]], labels=[2, 0]).margin.tolist()
    [-1.0, 4.0]
    >>> cost = [[0, 1, 9], [1, 0, 1], [9, 1, 0]]  # to take class 0 for class 2 is the worst mistake
    >>> rivalry([[5.0, 1.0, 0.0]], labels=[0], cost=cost).margin.tolist()
    [-4.0]
    """
    scores = _real(scores)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise InvalidData(f"scores must be (rows, classes) with two classes or more; the shape is {scores.shape}")
    count, classes = scores.shape
    labels = _labels(labels, count, classes)
    rows = np.arange(count)
    rivals = scores.copy() if cost is None else scores + _cost(cost, classes)[labels]
    rivals[rows, labels] = -np.inf
    best = rivals.argmax(axis=1)
    top = rivals[rows, best]
    if temperature == 0:
        direction = np.zeros_like(rivals)
        direction[rows, best] = -1
    else:
        with np.errstate(over="ignore"):
            behind = (rivals - top[:, None]) / temperature
        top = top + temperature * np.log(np.exp(behind).sum(axis=1))
        direction = -softmax(behind, axis=1)
    direction[rows, labels] = 1
    return Rivalry(scores[rows, labels] - top, direction)


def criterion(w: ArrayLike, X: Any, y: ArrayLike, loss: Loss = perceptron) -> Criterion:
    """Compute J(w) = Σᵢ loss(yᵢ⟨w, xᵢ⟩) and its subgradient Σᵢ slope(yᵢ⟨w, xᵢ⟩)·yᵢxᵢ.

    With the perceptron loss, J(w) = Σ −yᵢ⟨w, xᵢ⟩ and the subgradient is −Σ yᵢxᵢ, both over the rows with yᵢ⟨w, xᵢ⟩ ≤ 0:
    a step against it is the batch perceptron, over one row at a time the perceptron. w = 0 minimises this J, so descending
    it is not the aim; no row left in the sum is. An intercept is the weight of a constant column.

    Parameters
    ----------
    w : array-like of shape (features,)
        The weights.
    X : array-like or sparse matrix of shape (rows, features)
        The rows.
    y : array-like of shape (rows,)
        −1 or 1 for each row.
    loss : Loss, default=perceptron
        The loss of a margin.

    Returns
    -------
    Criterion
        The sum of the losses and its subgradient in the weights.

    Examples
    --------
    >>> from rosenblatt.losses import criterion
    >>> criterion([0, -1], [[1, 2], [3, 1], [0, 1]], [1, 1, -1])
    Criterion(value=3.0, subgradient=array([-4., -3.]))
    """
    w, X, y = _problem(w, X, y)
    z = y * (X @ w)
    return Criterion(float(loss(z).sum()), X.T @ (loss.slope(z) * y))


def correction(w: ArrayLike, X: Any, t: ArrayLike, zero_sign: int = 1) -> NDArray:
    """Compute ½ Σᵢ (tᵢ − oᵢ)·xᵢ, the step written with targets t = ±1 and outputs oᵢ = sign⟨w, xᵢ⟩.

    It is −criterion(w, X, t).subgradient as long as no score is 0.

    Parameters
    ----------
    w : array-like of shape (features,)
        The weights.
    X : array-like or sparse matrix of shape (rows, features)
        The rows.
    t : array-like of shape (rows,)
        −1 or 1 for each row.
    zero_sign : {-1, 0, 1}, default=1
        The output at a score of 0: with 1 only rows of the negative class move there, with −1 only those of the positive,
        with 0 both move by half a step. The criterion moves both by a whole one.

    Returns
    -------
    ndarray of shape (features,)

    Examples
    --------
    >>> from rosenblatt.losses import correction
    >>> correction([0, 0], [[1, 2], [3, 1]], [1, -1])
    array([-3., -1.])
    """
    if zero_sign not in (-1, 0, 1):
        raise InvalidParameter("zero_sign", zero_sign, "−1, 0 or 1")
    w, X, t = _problem(w, X, t)
    score = X @ w
    return X.T @ ((t - np.where(score == 0, float(zero_sign), np.sign(score))) / 2)


def _real(values: ArrayLike) -> NDArray:
    """An array of float32 or float64."""
    array = np.asarray(values)
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "biuf":
        raise InvalidData(f"margins and scores must be real numbers; these are of type {array.dtype}")
    return array.astype(np.float64)


def _labels(labels: ArrayLike, count: int, classes: int) -> NDArray:
    array = np.asarray(labels)
    if array.shape != (count,):
        raise InvalidData(f"labels must have the shape ({count},), one for each row of scores; it is {array.shape}")
    if array.dtype.kind not in "iu" and count:
        raise InvalidData(f"labels must be class numbers from 0 to {classes - 1}; these are of type {array.dtype}")
    wrong = np.flatnonzero((array < 0) | (array >= classes))
    if len(wrong):
        raise UnknownLabel(int(array[wrong[0]]), range(classes), row=int(wrong[0]))
    return array.astype(np.intp)


def _cost(cost: ArrayLike, classes: int) -> NDArray:
    cost = np.asarray(cost, dtype=np.float64)
    if cost.shape != (classes, classes):
        raise InvalidData(f"cost must be a ({classes}, {classes}) matrix, rows for labels; its shape is {cost.shape}")
    if cost.diagonal().any():
        raise InvalidData(f"the diagonal of cost must be 0: to be right costs nothing; it is {cost.diagonal().tolist()}")
    return cost


def _problem(w: ArrayLike, X: Any, y: ArrayLike) -> tuple[NDArray, Any, NDArray]:
    """Weights (features,), rows (rows, features) and signs (rows,) that fit each other."""
    w, y = np.asarray(w, dtype=np.float64), np.asarray(y)
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or w.shape != X.shape[1:] or y.shape != X.shape[:1]:
        raise InvalidData(
            f"w must be (features,), X (rows, features) and y (rows,); the shapes are {w.shape}, {X.shape}, {y.shape}"
        )
    if not np.isin(y, (-1, 1)).all():
        raise InvalidData(
            f"y must be −1 and 1; it has {np.unique(y)[:5].tolist()}", hint="np.where(y == positive, 1, -1) makes them"
        )
    return w, X, y.astype(np.float64)
