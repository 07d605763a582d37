"""A rule looks at the margin m of a direction and at its squared length, and says how far to move along it: τ, and then
w += τΔ. A margin of exactly δ moves, so a tie is a mistake for every class.

To add a rule, write its NamedTuple, its step and its bound, and say whether the step uses the length and whether the bound
is one of all updates or of wrong predictions only; and, if no step is longer, its `largest_step`, which spares a stream the
work of being able to undo an overflow. `bound(radius, gamma, batch)` takes R, the length of the longest row, γ, the margin
of a unit vector that separates the rows, and the number of rows that move the weights at once. The rule then works for two
classes and for many, dense and sparse, row by row and in blocks, for kernels and for streams of dictionaries. `k` is the
number of the update about to be made, counted from 1; `positive` tells on which side of a two-class problem the example
stands (of many classes decided jointly, each example stands on the side of its label).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

from rosenblatt.engine.jit import generic


@generic
def step(rule, m, length, k, positive):
    """Return τ ≥ 0, the length of the step along a direction of margin m; 0 leaves the weights as they are.

    Parameters
    ----------
    rule : NamedTuple
        A rule, such as `Perceptron`.
    m : float
        The margin of the direction.
    length : float
        Its squared length.
    k : int
        The number of the update about to be made, from 1.
    positive : bool
        On which side of a two-class problem the example stands.

    Returns
    -------
    float
        τ.

    Examples
    --------
    >>> from rosenblatt.rules import PA1, Perceptron, step
    >>> step(Perceptron(margin=0.0, rate=1.0), m=0.0, length=4.0, k=1, positive=True)
    1.0
    >>> step(PA1(C=1.0), m=0.0, length=4.0, k=1, positive=True)
    0.25
    """
    raise TypeError(f"no step is defined for the rule {type(rule).__name__}")


class Perceptron(NamedTuple):
    """Move by `rate` whenever the margin is at most `margin` (Rosenblatt 1958; δ as in the notes of Waterloo CS489/698).

    The test is m ≤ δ and not "the predicted sign is wrong", as CMU 10-607, UCSC NLP 202 and Georgia Tech CS 4540 also
    write it, nor m < 0, as Waterloo CS489/698 says of a wrong prediction, nor IIIT-H SMAI's ⟨w, x⟩ < 0, without the
    label: at a score of 0, where every run from w = 0 begins, these pass over one class or both.

    Attributes
    ----------
    margin : float
        δ ≥ 0.
    rate : float
        η > 0.

    Examples
    --------
    A margin of exactly δ moves, one above it rests:

    >>> rule = Perceptron(margin=0.5, rate=2.0)
    >>> [step(rule, m, 1.0, 1, True) for m in (-1.0, 0.5, 0.6)]
    [2.0, 2.0, 0.0]
    >>> rule.bound(radius=2.0, gamma=0.5)
    18.0
    """

    margin: float
    rate: float

    @property
    def uses_length(self) -> bool:
        return False

    @property
    def bounds_updates(self) -> bool:
        return True

    @property
    def largest_step(self) -> float:
        return self.rate

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0, on rows of norm ≤ R with a unit separator of margin ≥ γ, in any order: updates ≤ (R² + 2δ/η)/γ².

        Block 1962 and Novikoff 1962 for δ = 0. Batches that move by the sum of up to b moves at once make at most
        (b·R² + 2δ/η)/γ² moves.
        """
        from rosenblatt.theory import bounds

        return bounds.batch_sum(radius, gamma, batch, delta=self.margin, rate=self.rate)

    @property
    def plain(self) -> Perceptron:
        """The perceptron whose proof this rule borrows: itself."""
        return self


@step.register
def _(rule: Perceptron, m, length, k, positive):
    return rule.rate if m <= rule.margin else 0.0


class Diminishing(NamedTuple):
    """The perceptron with a rate that falls: that of the k-th update is rate / k**power, 1/√k (power ½) or 1/k (power 1).

    Attributes
    ----------
    margin : float
        δ ≥ 0.
    rate : float
        η > 0.
    power : float
        The exponent, from 0 to 1.

    Examples
    --------
    >>> rule = Diminishing(margin=0.0, rate=1.0, power=0.5)
    >>> [step(rule, -1.0, 1.0, k, True) for k in (1, 4, 100)]
    [1.0, 0.5, 0.1]
    """

    margin: float
    rate: float
    power: float

    @property
    def uses_length(self) -> bool:
        return False

    @property
    def bounds_updates(self) -> bool:
        return True

    @property
    def largest_step(self) -> float:
        return self.rate

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0: γ Σ η_k ≤ sqrt(Σ (η_k² R² + 2 η_k δ)), so the largest t that satisfies it bounds the updates.

        For summed batches R² counts as many times as a batch has rows, as it does at the constant rate.
        """
        from rosenblatt.theory import bounds

        return bounds.diminishing(sqrt(batch) * radius, gamma, self.power, delta=self.margin, rate=self.rate)


@step.register
def _(rule: Diminishing, m, length, k, positive):
    return rule.rate / k**rule.power if m <= rule.margin else 0.0


class Uneven(NamedTuple):
    """The perceptron with a margin for each side.

    With few positive examples, use a large margin for them and a small or negative one for the others (PAUM: Li, Zaragoza,
    Herbrich, Shawe-Taylor and Kandola 2002).

    Attributes
    ----------
    positive, negative : float
        τ₊ and τ₋, the margin of positive and of negative examples.
    rate : float
        η > 0.

    Examples
    --------
    >>> rule = Uneven(positive=2.0, negative=0.0, rate=1.0)
    >>> step(rule, 1.0, 1.0, 1, positive=True), step(rule, 1.0, 1.0, 1, positive=False)
    (1.0, 0.0)
    """

    positive: float
    negative: float
    rate: float

    @property
    def uses_length(self) -> bool:
        return False

    @property
    def bounds_updates(self) -> bool:
        return True

    @property
    def largest_step(self) -> float:
        return self.rate

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """That of the perceptron with the larger of the two margins, and with 0 if both are negative."""
        return self.plain.bound(radius, gamma, batch)

    @property
    def plain(self) -> Perceptron:
        """The perceptron whose proof this rule borrows."""
        return Perceptron(max(self.positive, self.negative, 0.0), self.rate)


@step.register
def _(rule: Uneven, m, length, k, positive):
    return rule.rate if m <= (rule.positive if positive else rule.negative) else 0.0


# A step that ends at its margin is short of it by a few bits, for rounding; that is no reason to move again.
SHORT = 1e-12


class PA1(NamedTuple):
    """Move as far as a margin of 1 asks for, and by at most C: τ = min(C, (1 − m)/‖Δ‖²).

    This is PA-I, and with C = ∞ PA (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006). A margin of exactly 1 rests;
    so does a direction of length 0.

    Attributes
    ----------
    C : float
        The largest step, > 0; infinity is allowed.

    Examples
    --------
    >>> [step(PA1(C=0.25), m, 4.0, 1, True) for m in (-3.0, 0.5, 1.0)]
    [0.25, 0.125, 0.0]
    """

    C: float

    @property
    def uses_length(self) -> bool:
        return True

    @property
    def bounds_updates(self) -> bool:
        return False

    @property
    def largest_step(self) -> float:
        return self.C

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0, with a unit separator of margin ≥ γ: wrong predictions ≤ max(R², 1/C)/γ²."""
        from rosenblatt.theory import bounds

        return bounds.pa1(radius, 1 / gamma, self.C) if batch == 1 else inf


@step.register
def _(rule: PA1, m, length, k, positive):
    short = 1.0 - m
    return min(rule.C, short / length) if short > SHORT and length > 0.0 else 0.0


class PA2(NamedTuple):
    """Move by the passive-aggressive step, damped rather than capped: τ = (1 − m)/(‖Δ‖² + 1/(2C)) (PA-II).

    Attributes
    ----------
    C : float
        > 0; the larger, the less damping.

    Examples
    --------
    >>> [step(PA2(C=0.125), m, 4.0, 1, True) for m in (-3.0, 0.0, 1.0)]
    [0.5, 0.125, 0.0]
    """

    C: float

    @property
    def uses_length(self) -> bool:
        return True

    @property
    def bounds_updates(self) -> bool:
        return False

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0: wrong predictions ≤ Σ ℓ² ≤ (R² + 1/(2C))/γ²."""
        from rosenblatt.theory import bounds

        return bounds.pa2(radius, 1 / gamma, self.C) if batch == 1 else inf


@step.register
def _(rule: PA2, m, length, k, positive):
    short = 1.0 - m
    return short / (length + 0.5 / rule.C) if short > SHORT and length > 0.0 else 0.0


class Mira(NamedTuple):
    """Move by the step from 0 to 1 that makes ‖w + τΔ‖ smallest: τ = (β − m)/‖Δ‖², cut off at 0 and 1.

    Crammer and Singer 2003; β = 0 in their first form.

    With β = 0 weights of zero would never move; their first move is the perceptron's, τ = 1.

    Attributes
    ----------
    margin : float
        β ≥ 0.

    Examples
    --------
    >>> [step(Mira(margin=0.0), m, 4.0, 2, True) for m in (-8.0, -2.0, 1.0)]
    [1.0, 0.5, 0.0]
    """

    margin: float

    @property
    def uses_length(self) -> bool:
        return True

    @property
    def bounds_updates(self) -> bool:
        return False

    @property
    def largest_step(self) -> float:
        return 1.0

    def bound(self, radius: float, gamma: float, batch: int = 1) -> float:
        """From w = 0: wrong predictions ≤ max(R², β)/γ². With β = 0 only the steps are bounded, Σ τ ≤ R/γ."""
        from rosenblatt.theory import bounds

        return bounds.mira(radius, gamma, self.margin) if batch == 1 else inf


@step.register
def _(rule: Mira, m, length, k, positive):
    if length == 0.0:
        return 0.0
    if m == 0.0 and rule.margin == 0.0 and k == 1:
        return 1.0
    tau = min(1.0, (rule.margin - m) / length)
    return tau if tau > SHORT else 0.0


KINDS: dict[str, type] = {kind.__name__: kind for kind in (Perceptron, Diminishing, Uneven, PA1, PA2, Mira)}  # in files
