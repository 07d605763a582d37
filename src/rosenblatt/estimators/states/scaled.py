"""Learners that shrink or stretch what they know as they add to it: w ← keep·w + add·yx. Kept as w = scale·v, with ‖w‖²
beside it, an update costs as much as the row has values. How much to keep and to add, a blend says.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.engine.loop import axpy, dot
from rosenblatt.engine.rows import Rows
from rosenblatt.estimators.parameters import Number, StateParameters, parameter, with_parameters
from rosenblatt.estimators.states import blends
from rosenblatt.estimators.states.base import MODERATE, Stateful, everything_unless, learn, score, zero_counts
from rosenblatt.estimators.states.blends import blend

EXTREME = 1e100  # a scale past this, or below its inverse, goes into v


class Scaled(NamedTuple):
    """Weight vectors w = scale·v, and what blends them with examples."""

    rule: Any  # of rosenblatt.estimators.states.blends
    v: NDArray  # (vectors, features + 1)
    scale: NDArray  # (vectors,)
    squared: NDArray  # (vectors,): ‖w‖²
    tally: NDArray  # (vectors,) int64: updates
    clock: NDArray  # (1,) int64: examples seen

    def vectors(self) -> NDArray:
        """The weights w."""
        return self.v * self.scale[:, None]

    def changes(self, rows: Rows, constant: float) -> slice | None:
        """All weights, since they are rescaled now and then; none if ‖w‖ and the rows are moderate."""
        return everything_unless(float(self.squared.max()) <= MODERATE**2, self.v.size, rows, constant)


def zeros(rule: Any, vectors: int, features: int) -> Scaled:
    """Weights of zero."""
    v = np.zeros((vectors, features + 1))
    return Scaled(rule, v, np.ones(vectors), np.zeros(vectors), *zero_counts(vectors))


@score.register
def _(state: Scaled, vector, columns, values, constant):
    v = state.v[vector]
    return state.scale[vector] * (dot(columns, values, v) + constant * v[-1])


@learn.register
def _(state: Scaled, vector, columns, values, constant, sign, score, weight):
    squared = state.squared[vector]
    length, keep, add = verdict(state.rule, values, constant, sign * score, squared, state.tally[vector] + 1, weight)
    if add != 0.0:
        mix(state, vector, columns, values, constant, keep, sign * add)
        parts = keep * keep * squared + add * add * length
        remember(state, vector, parts + 2.0 * keep * add * sign * score, parts)
    return add != 0.0


@jit
def verdict(rule, values, constant, m, squared, k, weight):
    """(‖x‖², keep, add). A row of zeros adds nothing, and one whose length overflows a NaN, which the next score tells.

    Apart from `learn`, into which the body of `blend` would be inlined: that was measured at twice the time to compile.
    """
    length = constant * constant
    for j in range(values.size):
        length += np.float64(values[j]) * np.float64(values[j])
    keep, add = blend(rule, m, length, squared, k, weight) if 0.0 < length < np.inf else (1.0, length - length)
    return length, keep, add


@jit
def mix(state, vector, columns, values, constant, keep, add):
    """w ← keep·w + add·(row, constant)."""
    v = state.v[vector]
    if keep == 0.0:
        v[:] = 0.0
        state.scale[vector] = 1.0
    else:
        state.scale[vector] *= keep
    axpy(columns, values, constant, v, 0, add / state.scale[vector])


@jit
def remember(state, vector, squared, parts):
    """Keep ‖w‖², the sum of `parts` and a product that may cancel them, as long as it can be trusted; else measure it.

    Measured anew after as many updates as there are weights, it costs one weight an update.
    """
    state.squared[vector] = squared
    due = (state.tally[vector] + 1) % state.v.shape[1] == 0 or squared < 1e-6 * parts
    if due or not 1.0 / EXTREME < abs(state.scale[vector]) < EXTREME:
        fold(state, vector)


@jit
def fold(state, vector):
    """Multiply the scale into v, and measure ‖w‖² anew."""
    v, scale, total = state.v[vector], state.scale[vector], 0.0
    for j in range(v.size):
        v[j] *= scale
        total += v[j] * v[j]
    state.scale[vector] = 1.0
    state.squared[vector] = total


class Blended(Stateful):
    """A linear classifier of weights that are a blend of the old ones and the example; which blend, a subclass says."""

    @abstractmethod
    def _rule(self) -> Any:
        """The blend, from `rosenblatt.estimators.states.blends`."""

    def _state(self, vectors: int, features: int) -> Scaled:
        return zeros(self._rule(), vectors, features)

    def mistake_bound(self, radius: float, margin: float, classes: int | None = None) -> float:
        """Compute the most updates that rows can cause from weights of zero, if they can be separated.

        Radius and margin are those of the rows with the constant feature.

        Parameters
        ----------
        radius : float
            The length of the longest row.
        margin : float
            The margin of a unit vector that separates two classes, or the least margin of
            those that separate each class from the rest.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        return self._bound_for(classes, radius, lambda radius: self._rule().bound(radius, margin))


@with_parameters
class ALMA(Blended, StateParameters):
    """The approximate large margin algorithm: comes as near to the largest margin as asked.

    Rows are scaled to length 1, x̂ = x/‖x‖. At the k-th update, on y·⟨w, x̂⟩ ≤ (1 − α)√8/(α√k): w += √(2/k)·y·x̂, and then w
    is pulled back to length 1 if it is longer. If some unit vector separates the scaled rows with margin γ̂, there are at
    most (2/γ̂²)(2/α − 1)² + 8/α − 4 updates from w = 0, in any order, and when none is left to make, the weights separate
    them with margin (1 − α)γ̂ (Gentile, A new approximate maximal margin classification algorithm, JMLR 2001, for p = 2).
    For ‖x‖ ≤ R and margin γ of the rows as they are, γ̂ ≥ γ/R.

    Parameters
    ----------
    alpha
        The share of the best margin that may be missed. 1 updates on mistakes only.
    fit_intercept
        Whether to learn an intercept, as the weight of a constant feature, which counts in ‖x‖.
    tol
        Stop when the share of mistakes in an epoch has not fallen by more than `tol` for `n_iter_no_change` epochs in a
        row. None: never for this reason, which is what the margin asks for, since it grows after the last mistake.

    Notes
    -----
    A row of zeros, without a constant feature, has no direction and teaches nothing.

    Examples
    --------
    >>> from rosenblatt import ALMA
    >>> X, y = [[4, 3], [1, 2], [-1, 2], [-3, 1]], ["right", "right", "left", "left"]
    >>> clf = ALMA(alpha=0.5, fit_intercept=False, tol=None).fit(X, y)
    >>> clf.stop_reason_, clf.predict([[1, 1]]).tolist()
    ('converged', ['right'])
    """

    alpha: float = parameter(0.9, Number(0, open_low=True, high=1, closed_high=True))

    def _rule(self) -> blends.ALMABlend:
        return blends.ALMABlend(float(self.alpha))


@with_parameters
class ROMMA(Blended, StateParameters):
    """The relaxed online maximum margin algorithm, plain and aggressive.

    It keeps the shortest weights that its memory allows: they give the example at hand a margin of 1, and all examples
    before it are remembered as one half-space.

    On y·⟨w, x⟩ ≤ 1 − α, w becomes the shortest w' with y·⟨w', x⟩ ≥ 1 and ⟨w', w⟩ ≥ ‖w‖²: a blend of w and x, and y·x/‖x‖²
    alone where that fulfils both. With α = 1 this is ROMMA, the relaxed online maximum margin algorithm, which learns from
    its mistakes; with α < 1 it is aggressive ROMMA, which also learns from examples that are nearer than they need be (Li
    and Long, The relaxed online maximum margin algorithm, Machine Learning 2002).

    If the rows, constant feature included, have norm ≤ R and some unit vector separates them with margin γ, then from
    w = 0, in any order, ‖w‖ ≤ 1/γ always, there are at most R²/γ² mistakes and R²/(αγ)² updates, and when none is left to
    make, the weights separate the rows with margin (1 − α)γ.

    Parameters
    ----------
    alpha
        The share of the best margin that may be missed. 1 updates on mistakes only; 0.01 ends with 99 % of the best margin.
    tol
        Stop when the share of mistakes in an epoch has not fallen by more than `tol` for `n_iter_no_change` epochs in a
        row. None: never for this reason, which is what the margin asks for, since it grows after the last mistake.

    Notes
    -----
    No weights are the right ones for data that cannot be separated, and the half-spaces then drive them to infinity. Where
    ‖w‖·‖x‖ would exceed 10⁶, which on separable data takes a margin below R/10⁶, the weights keep their direction and go
    back to the length 1/‖x‖; an example exactly against them replaces them. A row of zeros, without a constant feature,
    teaches nothing.

    Examples
    --------
    >>> from rosenblatt import ROMMA
    >>> X, y = [[4, 3], [1, 2], [-1, 2], [-3, 1]], ["right", "right", "left", "left"]
    >>> clf = ROMMA(alpha=0.01, fit_intercept=False, tol=None).fit(X, y)
    >>> clf.stop_reason_, clf.predict([[1, 1]]).tolist()
    ('converged', ['right'])
    """

    alpha: float = parameter(1.0, Number(1e-9, high=1, closed_high=True))

    def _rule(self) -> blends.ROMMABlend:
        return blends.ROMMABlend(float(self.alpha))


@with_parameters
class Ballseptron(Blended, StateParameters):
    """The Ballseptron: a perceptron that separates balls around the rows, so that its margin is wider than the balls.

    A mistake, y·⟨w, x⟩ ≤ 0, is learned as the perceptron does, w += y·x. A row within distance r of the separator, on the
    right side, stands for the point of its ball that is furthest to the wrong side: w += y·x − r·w/‖w‖. If the rows,
    constant feature included, have norm ≤ R and some unit vector separates them with margin γ > r, there are at most
    (R² + r²)/(γ − r)² updates from w = 0, in any order, and when none is left to make, the weights separate the rows with a
    margin wider than r (Shalev-Shwartz and Singer, A new perspective on an old perceptron algorithm, COLT 2005).

    Parameters
    ----------
    ball
        The radius r of the balls, in the units of the rows. 0 is the perceptron; γ or more asks for what no weights can do.
    tol
        Stop when the share of mistakes in an epoch has not fallen by more than `tol` for `n_iter_no_change` epochs in a
        row. None: never for this reason, which is what the margin asks for, since it grows after the last mistake.

    Notes
    -----
    A row of zeros, without a constant feature, teaches nothing.

    Examples
    --------
    >>> from rosenblatt import Ballseptron
    >>> X, y = [[4, 3], [1, 2], [-1, 2], [-3, 1]], ["right", "right", "left", "left"]
    >>> clf = Ballseptron(ball=0.5, fit_intercept=False, tol=None).fit(X, y)
    >>> clf.stop_reason_, clf.predict([[1, 1]]).tolist()
    ('converged', ['right'])
    """

    ball: float = parameter(0.1, Number(0))

    def _rule(self) -> blends.BallseptronBlend:
        return blends.BallseptronBlend(float(self.ball))
