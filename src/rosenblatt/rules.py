"""A rule looks at the margin m of a direction and at its squared length, and says how far to move along it: τ, and then
w += τΔ. A margin of exactly δ moves, so a tie is a mistake for every class.

To add a rule, write its NamedTuple, its step and its bound, and say whether the step uses the length; it then works for
two classes and for many, dense and sparse, row by row and in blocks. `k` is the number of the update about to be made,
counted from 1; `positive` tells on which side of a two-class problem the example stands (of many classes decided jointly,
each example stands on the side of its label).
"""

from __future__ import annotations

from math import exp, inf, pi, sqrt
from typing import NamedTuple

from rosenblatt._jit import generic


@generic
def step(rule, m, length, k, positive):
    """τ ≥ 0, the length of the step along a direction of margin m; 0 leaves the weights as they are."""
    raise TypeError(f"no step is defined for the rule {type(rule).__name__}")


class Perceptron(NamedTuple):
    """Move by `rate` whenever the margin is at most `margin` (Rosenblatt 1958; δ as in the notes of Waterloo CS489/698)."""

    margin: float  # δ ≥ 0
    rate: float  # η > 0

    @property
    def uses_length(self) -> bool:
        return False

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0, on rows of norm ≤ R with a unit separator of margin ≥ γ, in any order: updates ≤ (R² + 2δ/η)/γ².

        Block 1962 and Novikoff 1962 for δ = 0. ⟨w, u⟩ gains at least ηγ an update, ‖w‖² at most η²R² + 2ηδ. Batches
        that move by the mean of their moves keep the bound, since a mean of rows is a row; those that move by the sum of
        up to b moves at once make at most (b·R² + 2δ/η)/γ² moves.
        """
        return (batch * radius**2 + 2 * self.margin / self.rate) / gamma**2


@step.register
def _(rule: Perceptron, m, length, k, positive):
    return rule.rate if m <= rule.margin else 0.0


class Diminishing(NamedTuple):
    """The same with the rate of the k-th update rate / k**power: 1/√k (power ½) or 1/k (power 1)."""

    margin: float
    rate: float
    power: float

    @property
    def uses_length(self) -> bool:
        return False

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0: γ Σ η_k ≤ sqrt(Σ (η_k² R² + 2 η_k δ)), so the largest t that satisfies it bounds the updates.

        With η_k = 1/k and δ = 0 that allows as many as exp(πR / (√6 γ)): a bound, but hardly a promise. For summed
        batches R² counts as many times as a batch has rows, as it does at the constant rate.
        """
        radius *= sqrt(batch)
        if self.power == 1 and self.margin == 0:
            exponent = pi * radius / (sqrt(6) * gamma)
            return exp(exponent) if exponent < 700 else inf
        t, gain, growth = 0, 0.0, 0.0
        while gain <= sqrt(growth):
            t += 1
            if t > 10_000_000:
                return inf
            eta = self.rate / t**self.power
            gain += gamma * eta
            growth += eta**2 * radius**2 + 2 * eta * self.margin
        return t - 1


@step.register
def _(rule: Diminishing, m, length, k, positive):
    return rule.rate / k**rule.power if m <= rule.margin else 0.0
