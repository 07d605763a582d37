"""The delta rule is stable while its rate is small for the rows: each step must not push an error further than it was.

One pass of batch="full" takes w − w* to (I − ηXᵀX)(w − w*), w* a least squares solution, so it is stable if and only if
η < 2/λ_max(XᵀX). A batch of k rows sees at most min(k·max‖x‖², λ_max(XᵀX)) of that curvature, a single row ‖x‖²: rates
below 2 over these are stable whatever the order, and higher ones may be. Rows count with their constant feature and times
the root of their weight; the normalised rule divides them by √(ε + ‖x‖²), which leaves none longer than 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from rosenblatt.errors import NumericOverflow, RosenblattError


class Diverged(RosenblattError, ValueError):
    """The delta rule diverged, because its rate is too high for the rows.

    Attributes
    ----------
    losses : list of float
        The mean loss of each epoch.
    rate : float
        The rate.
    stable : float
        The rate below which learning is stable.
    advised : float
        A rate that works.

    Examples
    --------
    >>> from rosenblatt import DeltaRuleRegressor
    >>> try:
    ...     DeltaRuleRegressor(eta0=0.2, batch="full").fit([[0], [1], [2], [3]], [1, 3, 5, 7])
    ... except Diverged as error:
    ...     print(f"{error.rate} is too high: below {error.stable:.3f} it is stable, {error.advised:.3f} works")
    0.2 is too high: below 0.119 it is stable, 0.059 works
    """

    def __init__(self, problem: str, losses: list[float], rate: float, stable: float, advised: float):
        settings = {"eta0": float(f"{advised:.3g}")}
        super().__init__(
            problem, hint="eta0='auto' computes a rate that works", settings=settings, parameter="eta0", value=rate
        )
        self.losses, self.rate, self.stable, self.advised = losses, rate, stable, advised


class Steps(NamedTuple):
    """How rows are taken together: how many there are, how many make a batch, whether it moves by their mean, and whether
    one may come twice in an epoch."""

    rows: int
    batch: int
    mean: bool
    repeated: bool

    @property
    def full(self) -> bool:
        """Whether every step sees every row."""
        return self.batch >= self.rows and not self.repeated

    @property
    def smallest(self) -> int:
        """The rows of the smallest batch."""
        return self.rows % self.batch or self.batch


class Stability(NamedTuple):
    """Which rates are stable, and why."""

    limit: float  # every rate below it is
    exact: bool  # no rate from it on is
    formula: str  # where the limit comes from
    advised: float  # a rate well below it


def stability(X: Any, constant: float, lengths: NDArray, stakes: NDArray, steps: Steps) -> Stability:
    """Find which rates are stable on the rows of X, of these squared lengths with the constant feature, when the step of
    each is multiplied by its stake (0: the row is not there).

    The advised rate is half the limit for full batches, where the loss then falls in every epoch. Smaller batches are
    noisy: at 1/(4·max‖x‖²) the last weights lose about 1/7 more than the noise itself at most, and the average of all
    weights approaches least squares (Bach and Moulines 2013).
    """
    from rosenblatt.theory.bounds import stable_rate

    radius = longest(lengths, stakes)
    if not np.isfinite(radius):
        raise NumericOverflow("the squared length of a row of X overflows", hint="scale X down")
    if radius == 0:
        return Stability(np.inf, True, "∞, for rows of length 0", 1.0)
    seldom = steps.repeated or (steps.batch == 1 and steps.rows > 1)  # when the whole matrix has no say
    whole = np.inf if seldom else curvature(X, constant, lengths, stakes)
    one = "2/max‖x‖²" if steps.batch == 1 else f"2/({steps.batch}·max‖x‖²)"
    reasons = [(steps.batch * radius, one), (whole, "2/λ_max(XᵀX)")]
    if steps.mean:
        reasons = [(radius, "2/max‖x‖²"), (whole / steps.smallest, f"2·{steps.smallest}/λ_max(XᵀX)")]
    steepest, formula = min(reasons[1:] if steps.full else reasons)
    quiet = np.inf if steps.full else (steps.smallest if steps.mean else 1) / (4 * radius)
    return Stability(stable_rate(steepest), steps.full, formula, min(quiet, 1 / steepest))


def longest(lengths: NDArray, stakes: NDArray) -> float:
    """Compute max stake·‖x‖² over the rows that have a stake."""
    there = stakes > 0
    return float((stakes[there] * lengths[there]).max(initial=0.0))


def curvature(X: Any, constant: float, lengths: NDArray, stakes: NDArray) -> float:
    """Compute λ_max of Σ stake·xxᵀ, by a few Lanczos steps: some twenty products with X, and no matrix of its own."""
    rows, features = X.shape
    if rows == 1:
        return float((stakes * lengths).sum())
    roots = np.sqrt(stakes)

    def forward(v: NDArray) -> NDArray:
        v = v.ravel()
        return roots * (X @ v[:-1].astype(X.dtype) + constant * v[-1])

    def back(u: NDArray) -> NDArray:
        u = roots * u.ravel()
        return np.append(X.T @ u.astype(X.dtype), constant * u.sum())

    matrix = LinearOperator((rows, features + 1), matvec=forward, rmatvec=back, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(min(rows, features + 1))
    return float(svds(matrix, k=1, v0=start, tol=1e-8, return_singular_vectors=False)[0]) ** 2


class Guard:
    """Notices when the losses show that the rate is too high.

    Nothing is computed until a loss gives rise to doubt, because it is no number or, where rows come again and again,
    because it rises: at all with full batches, whose loss falls at every stable rate, else to a hundred times that of
    weights of zero. And a rate below the stable one is left in peace whatever the loss.
    """

    def __init__(self, rate: float, stable: Callable[[], Stability], words: tuple[str, str]):
        self.rate = rate
        self.stable = stable
        self.words = words  # how rows are taken together, and what counts as a row, for the user
        self.losses: list[float] = []
        self.nothing = np.inf  # the loss of weights of zero
        self.full = False

    def expect(self, nothing: float, full: bool) -> None:
        """Expect the losses of rows that come again and again: `nothing` is that of weights of zero."""
        self.nothing, self.full = nothing, full

    def judge(self, loss: float) -> Diverged | None:
        """Record the mean loss of an epoch; return the error if it shows that the rate is too high."""
        self.losses.append(loss)
        rose = len(self.losses) == 1 or loss > self.losses[-2]
        doubt = not np.isfinite(loss) or (rose and loss > 100 * self.nothing)
        doubt = doubt or (self.full and rose and len(self.losses) > 1)
        if doubt and self.rate >= (stable := self.stable()).limit:
            return Diverged(self._message(stable), self.losses, self.rate, stable.limit, stable.advised)
        return None

    def _message(self, stable: Stability) -> str:
        loss = f"the mean loss is {self.losses[-1]:.6g}"
        loss += f" in epoch {len(self.losses)}, after {self.losses[-2]:.6g}" if len(self.losses) > 1 else ""
        claim = "is stable if and only if" if stable.exact else "is certain to be stable if"
        batches, row = self.words
        return (
            f"the delta rule diverges with eta0={self.rate:g}: {loss}. With {batches} it {claim} "
            f"eta0 < {stable.formula} = {stable.limit:.6g}, {row}"
        )
