"""A blend looks at the margin of an example, at ‖x‖² and at ‖w‖², and says how much of the weights to keep and how much of
the example to add: w ← keep·w + add·yx. Keeping all and adding nothing leaves the weights as they are.

To add such a learner, write its NamedTuple, its blend and its bound. `k` is the number of the update about to be made,
counted from 1, and `weight` that of the example. A margin of exactly the threshold updates. Rows of length zero teach
nothing and are not shown.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from rosenblatt.engine.jit import generic
from rosenblatt.theory import bounds

# ROMMA cannot tell a margin below a millionth of a row's length from none: ‖w‖²‖x‖² ≤ (R/γ)² is past this, or two
# directions are so opposite that the difference ‖w‖²‖x‖² − (w·x)² has lost its digits.
RESOLVED = 1e12


@generic
def blend(rule, m, length, squared, k, weight):
    """(keep, add) after an example of margin m, where length = ‖x‖² > 0 and squared = ‖w‖²; (1, 0) changes nothing."""
    raise TypeError(f"no blend is defined for {type(rule).__name__}")


class ALMABlend(NamedTuple):
    """Approximately the largest margin (Gentile 2001), by smaller and smaller steps along rows of length 1, with weights
    that stay in the unit ball."""

    alpha: float  # in (0, 1]: the share of the best margin that may be missed

    def bound(self, radius: float, gamma: float) -> float:
        """From w = 0: updates ≤ (2/γ̂²)(2/α − 1)² + 8/α − 4, where γ̂ ≥ γ/R is the margin of the rows scaled to length 1."""
        return bounds.alma(radius, gamma, self.alpha)


@blend.register
def _(rule: ALMABlend, m, length, squared, k, weight):
    norm = sqrt(length)
    if m > (1.0 - rule.alpha) * (sqrt(8.0) / rule.alpha) / sqrt(k) * norm:
        return 1.0, 0.0
    rate = weight * sqrt(2.0 / k)
    shrink = 1.0 / sqrt(max(1.0, squared + 2.0 * rate * m / norm + rate * rate))
    return shrink, shrink * rate / norm


class ROMMABlend(NamedTuple):
    """The shortest weights that give this example a margin of 1 and lie beyond the half-space through the old ones, which
    stands for all examples before (Li and Long 2002). An example of another weight is to have that for its margin."""

    alpha: float  # in (0, 1]: a margin of 1 − alpha is enough; 1: only mistakes update

    def bound(self, radius: float, gamma: float) -> float:
        """From w = 0: updates ≤ R²/(αγ)². Mistakes ≤ R²/γ²."""
        return bounds.romma(radius, gamma, self.alpha)


@blend.register
def _(rule: ROMMABlend, m, length, squared, k, weight):
    m, length = m / weight, length / (weight * weight)  # a margin of `weight` is a margin of 1 for x/weight
    if m > 1.0 - rule.alpha:
        return 1.0, 0.0
    product = squared * length
    apart = product - m * m
    if product <= m or apart * RESOLVED <= product:  # the example implies what was known, or contradicts it
        return 0.0, 1.0 / length / weight
    keep, add = (product - m) / apart, squared * (1.0 - m) / apart
    longer = product * (product - 2.0 * m + 1.0) / apart  # ‖w‖²‖x‖² to come
    if longer > RESOLVED:  # keep the direction, and go back to the length of a first update
        shrink = 1.0 / sqrt(longer)
        return shrink * keep, shrink * add / weight
    return keep, add / weight


class BallseptronBlend(NamedTuple):
    """The perceptron of balls round the rows: it learns from that point of the ball which is classified worst
    (Shalev-Shwartz and Singer 2005)."""

    ball: float  # r ≥ 0

    def bound(self, radius: float, gamma: float) -> float:
        """From w = 0, for r < γ: updates ≤ (R² + r²)/(γ − r)². For r ≥ γ there is none."""
        return bounds.ballseptron(radius, gamma, self.ball)


@blend.register
def _(rule: BallseptronBlend, m, length, squared, k, weight):
    if m <= 0.0:
        return 1.0, weight
    norm = sqrt(squared)
    if m <= rule.ball * norm:
        return 1.0 - weight * rule.ball / norm, weight
    return 1.0, 0.0
