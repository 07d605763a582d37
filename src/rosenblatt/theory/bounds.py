"""Bounds of mistakes, updates and risks, one function for each theorem. Infinity: the theorem says nothing.

A quantity has one name in all of them, and rows are a = y·(x, κ), the constant feature κ included. Any unit vector u makes
a bound true with its own margin γ, the best one makes it sharpest. Bounds count updates, never epochs or examples seen.

    radius      R, the length of the longest row from the origin
    margin      γ, the least ⟨a, u⟩ for some unit vector u
    delta       δ, the margin up to which rows are learned from
    rate        η, by which a row is multiplied when it moves the weights
    start       ‖w₀‖, the length of the weights at the start
    along       ⟨w₀, u⟩; None for the worst, −‖w₀‖
    updates     how many updates were made
    power       the k-th rate is η/k^power
    size        rows of a batch
    offset      b of a plane ⟨u, x⟩ + b = 0; None for the worst
    constant    κ, the constant feature; None for R
    shortfall   D = √Σ max(0, γ − ⟨a, u⟩)²
    mistakes    wrong predictions of a pass
    examples    T, the examples of a pass
    failure     the probability with which the statement may be false
    loss        the losses of a pass, added up
    largest     the largest loss of an example
    survived    the examples that the weights were right about in a row
    norm        ‖u‖ of a u that asks for margins of 1: 1/γ for one that separates
    losses      the sum of the losses of u, or of their squares
    C           the largest step, or its softness
    goal        β, the margin that is aimed at
    alpha       α, the part of the margin that is asked for, or given up
    ball        r, the radius of the ball round each row
    p           the norm of the weights
    divergence  KL(u‖w₀)
    features    how many features there are
    factor      α of Winnow
    threshold   θ of Winnow; None for the number of features
    relevant    the features of the disjunction
    total       Σμ, the sum of the target's weights
    gap         how far apart the target holds the classes
    ridge       a, the ridge of the second-order matrix
    energy      ‖Xu‖²
    near        updates that were not mistakes
    dimensions  n or d, of the space
    sigma       σ, the cosine of a far mistake, or the noise
    budget      B, the rows that are kept
    distance    how far a row may be from the span, or the weights from the truth
    discount    what is taken off the price
    shards      S, the parts of the data
    iterations  k, steps made so far
    inscribed   r, the radius of a ball round 0 within the hull of the rows
    rows        how many rows there are
    curvature   λ_max of XᵀX
    eigenvalues those of XᵀX
    pairs       whether starts come in pairs ±w

Where lecture notes print a theorem, its docstring says so, and what they print that does not hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import cleandoc, signature
from typing import NamedTuple, ParamSpec

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidParameter
from rosenblatt.exact.reading import COUNT, NOT_NEGATIVE, NUMBER, POSITIVE, Quantity

_P = ParamSpec("_P")


_CHANCE = Quantity(open_low=True, high=1.0)
_SHARE = Quantity(open_low=True, high=1.0, open_high=False)
_ADVICE = "without a positive margin nothing is separated: see freund_schapire"

QUANTITIES: dict[str, Quantity] = {
    **dict.fromkeys(("radius", "delta", "start", "updates", "shortfall", "mistakes", "loss", "survived"), NOT_NEGATIVE),
    **dict.fromkeys(("norm", "losses", "goal", "ball", "divergence", "total", "energy", "near"), NOT_NEGATIVE),
    **dict.fromkeys(("distance", "discount"), NOT_NEGATIVE),
    **dict.fromkeys(("rate", "constant", "largest", "threshold", "ridge", "curvature"), POSITIVE),
    **dict.fromkeys(("size", "examples", "features", "dimensions", "budget", "shards", "iterations", "rows"), COUNT),
    **dict.fromkeys(("along", "offset"), NUMBER),
    **dict.fromkeys(("failure", "sigma"), _CHANCE),
    **dict.fromkeys(("alpha", "gap"), _SHARE),
    **dict.fromkeys(("power", "inscribed"), Quantity(high=1.0, open_high=False)),
    "margin": POSITIVE._replace(advice=_ADVICE),
    "C": Quantity(open_low=True, open_high=False),
    "p": Quantity(2.0),
    "factor": Quantity(1.0, open_low=True),
    "relevant": Quantity(whole=True),
}

THEOREMS: dict[str, Callable[..., float]] = {}


def theorem(function: Callable[_P, float]) -> Callable[_P, float]:
    """Return the function with checks of its arguments by `QUANTITIES`, and with its parameters in its docstring.

    The function is one of `THEOREMS` from then on.

    Parameters
    ----------
    function : callable
        A bound whose parameters are named in `QUANTITIES`.

    Returns
    -------
    callable
        The same function, which refuses values that the theorem does not allow.

    Examples
    --------
    >>> novikoff(radius=-1.0, margin=0.5)
    Traceback (most recent call last):
        ...
    rosenblatt.errors.InvalidParameter: radius must be a number ≥ 0 and finite; got -1.0
    """
    form = signature(function)

    @wraps(function)
    def bound(*args: _P.args, **kwargs: _P.kwargs) -> float:
        call = form.bind(*args, **kwargs)
        for name, value in call.arguments.items():
            if name in QUANTITIES and not (value is None and form.parameters[name].default is None):
                call.arguments[name] = QUANTITIES[name].check(name, value)
        return function(*call.args, **call.kwargs)

    meanings = dict(re.findall(r"^    (\w+) +(.+)$", __doc__ or "", re.MULTILINE))
    kinds = {
        name: QUANTITIES[name].allowed if name in QUANTITIES else form.parameters[name].annotation
        for name in form.parameters
    }
    lines = [f"{name} : {kind}\n    {meanings[name]}" for name, kind in kinds.items() if name in meanings]
    lines += ["", "Returns", "-------", "float\n    Infinity where the theorem says nothing."]
    bound.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), "", "Parameters", "----------", *lines])
    THEOREMS[function.__name__] = bound
    return bound


# The perceptron


@theorem
def novikoff(
    radius: float,
    margin: float,
    *,
    delta: float = 0.0,
    rate: float = 1.0,
    start: float = 0.0,
    along: float | None = None,
) -> float:
    """Bound the updates of the perceptron, w += ηa whenever ⟨w, a⟩ ≤ δ, in any order, chosen by an adversary if need be.

    From w = 0: (R² + 2δ/η)/γ². From w₀ of length `start`, with c = ⟨w₀, u⟩/η (`along`; None: the worst, −‖w₀‖), N = ‖w₀‖/η
    and B = R² + 2δ/η:

        t ≤ ((B − 2γc) + √((B − 2γc)² + 4γ²(N² − c²))) / (2γ²).

    *Proof.* An update adds at least ηγ to ⟨w, u⟩ and at most η²R² + 2ηδ to ‖w‖², and ⟨w, u⟩ ≤ ‖w‖. ∎ See `theory.trace`.
    Block 1962, Novikoff 1962 for δ = 0 and w₀ = 0. Printed by all five courses. Waterloo CS489/698 runs the algorithm with
    any δ and w₀ and bounds it for δ = 0, w₀ = 0 only: for δ > 0 the (R/γ)² of its corollary is exceeded. IIIT-H SMAI starts
    from random weights with a proof from 0, and takes for u the final weights, where any separator will do. CMU 10-607
    and UCSC NLP 202 say "less than" where equality occurs (one row), and that scaling the data changes nothing, which is
    false with a constant feature, whose R and γ these are. CMU 10-607 also counts k up at every example, where it must be
    at every update. Georgia Tech CS 4540 argues with ⟨w, u⟩/‖w‖ "starting at 0", which is 0/0.

    >>> novikoff(radius=2.0, margin=0.5), novikoff(radius=2.0, margin=0.5, delta=3.0)
    (16.0, 40.0)
    """
    plain = _from_zero(radius, margin, delta, rate)
    n = start / rate / margin
    c = -n if along is None else along / rate / margin
    if abs(c) > n * (1 + 1e-9):
        raise InvalidParameter("along", along, f"⟨w₀, u⟩ for a unit vector u, at most ‖w₀‖ = {start:g} in size")
    b, rest = plain - 2 * c, max(0.0, (n - c) * (n + c))
    root = math.hypot(b, 2 * math.sqrt(rest))
    return (b + root) / 2 if b >= 0 else 2 * rest / (root - b)


def _from_zero(radius: float, margin: float, delta: float, rate: float, times: float = 1.0) -> float:
    """(times·R² + 2δ/η)/γ², without a square that is too large or too small for a float where the quotient is not."""
    ratio = radius / margin
    return times * (ratio * ratio) + 2 * delta / rate / margin / margin


@theorem
def final_margin(radius: float, margin: float, delta: float, rate: float = 1.0) -> float:
    """Bound from below the margin ⟨a, w⟩/‖w‖ at which a perceptron from w = 0 can stop: γδ′/(R² + 2δ′), δ′ = δ/η.

    Towards γ/2 as δ grows, and nothing for δ = 0. *Proof.* ⟨a, w⟩ > δ at the end, and ‖w‖ ≤ √(t(η²R² + 2ηδ)) with
    t ≤ (R² + 2δ′)/γ². ∎ Waterloo CS489/698 promises ⟨a, w⟩ > δ, which says nothing before ‖w‖ is known.

    >>> [round(final_margin(1.0, 0.1, delta), 3) for delta in (0, 1, 100)]
    [0.0, 0.033, 0.05]
    """
    scaled = delta / rate
    return margin * scaled / (radius * radius + 2 * scaled) if scaled else 0.0


@theorem
def margin_ceiling(radius: float, updates: float, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the margin once t updates were made from w = 0: √((R² + 2δ/η)/t), the mistake bound read backwards.

    Also the length of the mean of the rows of all updates is at most that, with δ = 0: weights in a convex combination
    that nearly vanishes, an approximate certificate of Gordan's that nothing separates.

    >>> margin_ceiling(radius=2.0, updates=400)
    0.1
    """
    return math.sqrt((radius * radius + 2 * delta / rate) / updates) if updates else math.inf


@theorem
def diminishing(radius: float, margin: float, power: float, *, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the updates from w = 0 with the rate η/k^power at the k-th: γ Ση_k ≤ √(Σ(η_k²R² + 2η_kδ)) up to the last.

    Power ½ keeps (R/γ)² up to a logarithm. With power 1, Ση_k ≥ η ln t and Ση_k² ≤ η²π²/6, so that t ≤ exp(s/η) with
    s = (δ + √(δ² + (πηRγ)²/6))/γ², which is exp(πR/(√6 γ)) for δ = 0: a bound, but hardly a promise. Infinity beyond 10⁷.

    >>> diminishing(10.0, 1.0, 0.0), diminishing(10.0, 1.0, 0.5), round(diminishing(10.0, 1.0, 1.0))
    (100.0, 158.0, 371572)
    """
    if power == 0:
        return novikoff(radius, margin, delta=delta, rate=rate)
    if power == 1:
        pull = delta / rate / margin
        exponent = (pull + math.hypot(pull, math.pi * radius / math.sqrt(6))) / margin
        return math.exp(exponent) if exponent < 700 else math.inf
    done, gain, growth, chunk = 0, 0.0, 0.0, 2**12
    while done < 10**7:
        rates = rate / np.arange(done + 1.0, done + chunk + 1.0) ** power
        gains = gain + np.cumsum(margin * rates)
        growths = growth + np.cumsum(rates * (rates * radius**2 + 2 * delta))
        beyond = gains > np.sqrt(growths)
        if beyond.any():
            return float(done + int(beyond.argmax()))
        done, gain, growth, chunk = done + chunk, float(gains[-1]), float(growths[-1]), min(2 * chunk, 2**20)
    return math.inf


@theorem
def batch_sum(radius: float, margin: float, size: float, *, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the wrong rows of all batches together, when up to `size` of them move w at once by the sum of their moves.

    They are at most (size·R² + 2δ/η)/γ², and moves are no more than that.

    *Proof.* A move of e rows adds at least eηγ to ⟨w, u⟩ and at most e²η²R² + 2eηδ to ‖w‖². ∎ The batch form is in the
    notes of IIIT-H SMAI, which take for wrong the rows with wᵀx < 0: without the label, and none at all from w = 0.

    >>> batch_sum(radius=2.0, margin=0.5, size=1), batch_sum(radius=2.0, margin=0.5, size=10)
    (16.0, 160.0)
    """
    return _from_zero(radius, margin, delta, rate, times=size)


@theorem
def batch_mean(radius: float, margin: float, *, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the moves when a batch of any size moves w by the mean of its moves: (R² + 2δ/η)/γ².

    For a mean of rows is itself a row of length ≤ R and margin ≥ γ. A move may answer for as many wrong rows as the batch
    has.

    >>> batch_mean(radius=2.0, margin=0.5)
    16.0
    """
    return novikoff(radius, margin, delta=delta, rate=rate)


@theorem
def padded_margin(margin: float, offset: float, constant: float = 1.0) -> float:
    """Compute the margin through the origin of the rows (x, κ), given that of a plane ⟨u, x⟩ + b = 0 with ‖u‖ = 1.

    It is γ/√(1 + b²/κ²), that of the unit vector along (u, b/κ).

    The notes of CMU 10-607 ask for an intercept and bound the mistakes without one: with it, R and γ are those of the
    padded rows.

    >>> padded_margin(margin=0.5, offset=0.0), round(padded_margin(margin=0.5, offset=10.0), 3)
    (0.5, 0.05)
    """
    return margin / math.hypot(1.0, offset / constant)


@theorem
def intercept(radius: float, margin: float, offset: float | None = None, constant: float | None = None) -> float:
    """Bound the updates of the perceptron with a constant feature κ: (R² + κ²)(1 + b²/κ²)/γ².

    The rows have length ≤ R without it, and the plane ⟨u, x⟩ + b = 0 this margin.

    `offset` None: the worst, |b| = R, since a plane farther away has all rows on one side. `constant` None: R, which makes
    it at most 4R²/γ²; κ = 1 gives (R² + 1)(1 + b²)/γ², bad for rows far from the origin.

    >>> round(intercept(10.0, 1.0)), round(intercept(10.0, 1.0, constant=1.0))
    (400, 10201)
    """
    if radius == 0:
        return 0.0 if constant is None else novikoff(constant, padded_margin(margin, offset or 0.0, constant))
    constant = radius if constant is None else constant
    return novikoff(math.hypot(radius, constant), padded_margin(margin, radius if offset is None else offset, constant))


# Data that nothing separates


def shortfall(scores: Iterable[float], margin: float) -> float:
    """Compute D = √Σ max(0, γ − s)², how far in all the scores s = ⟨a, u⟩ of a unit vector u stay below γ.

    Parameters
    ----------
    scores : iterable of float
        The scores ⟨a, u⟩ of the rows.
    margin : float
        γ > 0.

    Returns
    -------
    float

    Examples
    --------
    >>> shortfall([0.5, 0.2, 0.1], margin=0.5)
    0.5
    """
    return float(np.linalg.norm(np.maximum(0.0, QUANTITIES["margin"].check("margin", margin) - _array(scores))))


def _array(values: Iterable[float]) -> NDArray:
    return np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)


@theorem
def freund_schapire(radius: float, margin: float, shortfall: float, *, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the updates in ONE pass of the perceptron from w = 0 over any rows: ((√(R² + 2δ/η) + D)/γ)².

    It holds for every unit vector u and every γ > 0, where D² = Σ max(0, γ − ⟨a, u⟩)² over the rows of the pass.

    Freund and Schapire 1999, Theorem 2, for δ = 0. *Proof.* Give each row a coordinate of its own, of size z: within a pass
    the scores stay what they are, rows have length² ≤ R² + z², and (u, max(0, γ − ⟨a, u⟩)/z) separates with margin γ;
    divide by its length, √(1 + D²/z²), and take z² = D√(R² + 2δ/η). ∎ In a second pass a row meets its own coordinate
    again. Waterloo CS489/698 prints the inequality ⟨a, u⟩ ≥ γ − max(0, γ − ⟨a, u⟩) and stops there.

    >>> freund_schapire(1.0, 0.5, shortfall=0.5)
    9.0
    """
    length = math.sqrt(radius * radius + 2 * delta / rate)
    ratio = (length + shortfall) / margin
    return ratio * ratio


class Widest(NamedTuple):
    """The γ that makes Freund and Schapire's bound least for one vector, and that bound.

    Attributes
    ----------
    bound : float
        The bound.
    margin : float
        γ; infinity where no γ does better than the number of rows.

    Examples
    --------
    >>> widest = least_freund_schapire(1.0, [0.5] * 40 + [-0.1])
    >>> round(widest.bound, 1), round(widest.margin, 2)
    (9.8, 0.54)
    """

    bound: float
    margin: float  # infinity: no γ does better than the number of rows


def least_freund_schapire(radius: float, scores: Iterable[float], *, delta: float = 0.0, rate: float = 1.0) -> Widest:
    """Compute Freund and Schapire's bound for the γ that makes it least, given the scores ⟨a, u⟩ of all rows of the pass.

    In z = 1/γ its root, z√(R² + 2δ/η) + ‖max(0, 1 − zs)‖, is convex, and at z = 0 it is √n: with n rows the bound is never
    worse than n. Any z gives a true bound, so that where the search ends does not matter for its truth.

    >>> bound, margin = least_freund_schapire(1.0, [0.5] * 40 + [-0.1])
    >>> round(bound, 1), round(margin, 2), round(freund_schapire(1.0, 0.5, shortfall([-0.1], 0.5)), 1)
    (9.8, 0.54, 10.2)

    Parameters
    ----------
    radius : float
        R, the length of the longest row.
    scores : iterable of float
        The scores ⟨a, u⟩ of all rows of the pass.
    delta, rate : float, default=0 and 1
        δ and η.

    Returns
    -------
    Widest
        The least bound, and the γ that gives it.
    """
    points = _array(scores)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise InvalidParameter("scores", scores, "finite numbers, one for each row of the pass, and at least one")
    known = {"radius": radius, "delta": delta, "rate": rate}
    radius, delta, rate = (QUANTITIES[name].check(name, value) for name, value in known.items())
    length = math.sqrt(radius * radius + 2 * delta / rate)

    def root(z: float) -> float:
        return z * length + float(np.linalg.norm(np.maximum(0.0, 1.0 - z * points)))

    least = float(points.min())
    candidates = [0.0, *([1.0 / least] if least > 0 else [])]
    low, high = 0.0, math.sqrt(len(points)) / length if length else 0.0
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if root(left) <= root(right) else (left, high)
    best = min([*candidates, (low + high) / 2], key=root)
    return Widest(root(best) ** 2, 1.0 / best if best else math.inf)


# Many classes and structures


@theorem
def multiclass(radius: float, margin: float, *, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the updates of the joint perceptron of many classes: (2R² + 2δ/η)/γ².

    It adds x to the label's weights and takes it from the best rival's; γ is the lead over every rival of weights of
    Frobenius norm 1, and R = max‖x‖.

    It is the perceptron on rows x ⊗ (e_label − e_rival), of length √2·‖x‖ (Kesler's construction; Crammer and Singer 2003
    for every way to share the −1 among the rivals that lead). UCSC NLP 202 has an argmax without a word on ties: were
    they the label's, nothing would ever be learned from w = 0. A tie must count as a mistake.

    >>> multiclass(radius=2.0, margin=0.5)
    32.0
    """
    return _from_zero(radius, margin, delta, rate, times=2)


@theorem
def collins(radius: float, margin: float, shortfall: float = 0.0) -> float:
    """Bound the updates of the structured perceptron: ((R + D)/γ)², however many outputs there are.

    For every wrong output z of an example, ‖Φ(x, y) − Φ(x, z)‖ ≤ R and ⟨u, Φ(x, y) − Φ(x, z)⟩ ≥ γ − d with a unit vector u;
    D = √Σd² over the examples. With D = 0 for any number of passes, otherwise for one. Collins 2002, Theorems 1 and 2; it
    holds for early and max-violation updates too, with γ over all prefixes, since only ⟨w, ΔΦ⟩ ≤ 0 is used (Huang, Fayong
    and Guo 2012). The algorithm is in the notes of UCSC NLP 202, with the proof for two classes.

    >>> collins(radius=2.0, margin=0.5), collins(radius=2.0, margin=0.5, shortfall=1.0)
    (16.0, 36.0)
    """
    return freund_schapire(radius, margin, shortfall)


@theorem
def parameter_mixing(radius: float, margin: float, shards: float = 1) -> float:
    """Bound the mistakes of iterative parameter mixing, of all S shards together: S·R²/γ².

    The shards learn an epoch each from the same weights, and the weights of the next epoch are their mean.

    McDonald, Hall and Mann 2010 for any mixture: Σ over epochs and shards of μ·mistakes ≤ R²/γ², which is this for
    μ = 1/S. Mixing once at the end of separate runs has no such bound and need not separate.

    >>> parameter_mixing(radius=2.0, margin=0.5, shards=8)
    128.0
    """
    return shards * novikoff(radius, margin)


# Steps that aim at a margin


@theorem
def pa(radius: float, norm: float) -> float:
    """Bound PA's squared losses Σℓ² from w = 0, if some u of this norm loses nothing: R²‖u‖².

    Wrong predictions lose at least 1 each. Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006, for classes and numbers.

    >>> pa(radius=2.0, norm=2.0)
    16.0
    """
    return radius * radius * norm * norm


@theorem
def pa1(radius: float, norm: float, C: float, losses: float = 0.0) -> float:
    """Bound the wrong predictions of PA-I from w = 0: max(R², 1/C)(‖u‖² + 2C Σℓ(u)) for every u, ℓ(u) its hinge losses.

    Crammer et al. 2006. For a u that separates, max(R², 1/C)/γ². Updates go on after the last wrong prediction.

    >>> pa1(radius=2.0, norm=2.0, C=1.0), pa1(radius=2.0, norm=2.0, C=1.0, losses=3.0)
    (16.0, 40.0)
    """
    rest = 2 * C * losses if losses else 0.0
    return max(radius * radius, 1 / C) * (norm * norm + rest)


@theorem
def pa2(radius: float, norm: float, C: float, losses: float = 0.0) -> float:
    """Bound PA-II's squared losses Σℓ² from w = 0: (R² + 1/(2C))(‖u‖² + 2C Σℓ(u)²) for every u.

    Crammer et al. 2006, for classes, where it bounds the wrong predictions too, and for numbers.

    >>> pa2(radius=2.0, norm=2.0, C=1.0), pa2(radius=2.0, norm=2.0, C=1.0, losses=3.0)
    (18.0, 45.0)
    """
    rest = 2 * C * losses if losses else 0.0
    return (radius * radius + 0.5 / C) * (norm * norm + rest)


@theorem
def mira(radius: float, margin: float, goal: float) -> float:
    """Bound the wrong predictions of MIRA for two classes that aims at a margin β with steps of at most 1: max(R², β)/γ².

    w/β is what PA-I learns with C = 1/β. For β = 0, the form of Crammer and Singer 2003, infinity: see `mira_steps`.

    >>> mira(radius=2.0, margin=0.5, goal=1.0), mira(radius=2.0, margin=0.5, goal=0.0)
    (16.0, inf)
    """
    return pa1(radius, 1 / margin, 1 / goal) if goal > 0 else math.inf


@theorem
def mira_steps(radius: float, margin: float) -> float:
    """Bound all steps τ of MIRA with β = 0: R/γ, since only the first makes w longer and γΣτ ≤ ⟨w, u⟩.

    >>> mira_steps(radius=2.0, margin=0.5)
    4.0
    """
    return radius / margin


@theorem
def alma(radius: float, margin: float, alpha: float) -> float:
    """Bound the updates of ALMA, which ends with a margin ≥ (1 − α)γ̂: (2/γ̂²)(2/α − 1)² + 8/α − 4.

    γ̂ ≥ γ/R is the margin of the rows scaled to length 1. Gentile 2001, p = 2.

    >>> alma(radius=2.0, margin=0.5, alpha=0.5)
    300.0
    """
    ratio = radius / margin * (2 / alpha - 1)
    return 2 * ratio * ratio + 8 / alpha - 4


@theorem
def romma(radius: float, margin: float, alpha: float = 1.0) -> float:
    """Bound the updates of ROMMA, on margins ≤ 1 − α: (R/(αγ))²; α = 1 updates on mistakes, at most (R/γ)² of them.

    Li and Long 2002. ‖w‖² never exceeds 1/γ², and each update lengthens it by at least (α/R)².

    >>> romma(radius=2.0, margin=0.5), romma(radius=2.0, margin=0.5, alpha=0.5)
    (16.0, 64.0)
    """
    ratio = radius / (alpha * margin)
    return ratio * ratio


@theorem
def ballseptron(radius: float, margin: float, ball: float) -> float:
    """Bound the updates of the ballseptron, which ends with a margin above r: (R² + r²)/(γ − r)². Infinity for r ≥ γ.

    Shalev-Shwartz and Singer 2005. It is the perceptron on the worst point of a ball round each row.

    >>> round(ballseptron(radius=2.0, margin=0.5, ball=0.25), 9), ballseptron(radius=2.0, margin=0.5, ball=0.5)
    (65.0, inf)
    """
    return novikoff(math.hypot(radius, ball), margin - ball) if margin > ball else math.inf


@theorem
def p_norm(radius: float, margin: float, p: float, *, delta: float = 0.0, rate: float = 1.0) -> float:
    """Bound the updates of the p-norm perceptron: ((p − 1)R² + 2δ/η)/γ², with R in the p-norm and ‖u‖_q = 1, 1/p + 1/q = 1.

    Grove, Littlestone and Schuurmans 2001; Gentile 2003. p = 2 is the perceptron; p = 2 ln d depends on the number of
    features by its logarithm, as Winnow does.

    >>> p_norm(radius=2.0, margin=0.5, p=2.0), p_norm(radius=1.0, margin=0.1, p=10.0)
    (16.0, 900.0)
    """
    return _from_zero(radius, margin, delta, rate, times=p - 1)


# Winnow


@theorem
def exponentiated(divergence: float, radius: float, margin: float, rate: float, delta: float = 0.0) -> float:
    """Bound the updates of normalised Winnow, w ∝ w ⊙ exp(ηa) whenever ⟨w, a⟩ ≤ δ: KL(u‖w₀)/(η(γ − δ) − η²R²/2).

    R is the largest |value| and γ the margin of a u on the simplex. Infinity unless **δ < γ and η < 2(γ − δ)/R²**.

    *Proof.* An update lowers KL(u‖w) by η⟨a, u⟩ − ln Σw exp(ηa) ≥ ηγ − ηδ − η²R²/2 (Hoeffding's lemma). ∎ The notes of
    Waterloo CS489/698 print the algorithm under Littlestone's name, whose Winnow it is not, with a theorem that lacks
    both conditions: with rows (1, −0.9), (−0.9, 1), w₀ = (0.9, 0.1) and η = 5 it runs in a circle for ever, though
    (½, ½) separates.

    >>> exponentiated(0.1, 1.0, 0.05, rate=5.0)
    inf
    """
    gain = rate * (margin - delta) - (rate * radius) ** 2 / 2
    return divergence / gain if gain > 0 else math.inf


@theorem
def normalised_winnow(radius: float, margin: float, features: float, delta: float = 0.0) -> float:
    """Compute the least that `exponentiated` promises from uniform weights on d features: 2R² ln d/(γ − δ)².

    The rate is η = (γ − δ)/R². Infinity for δ ≥ γ. With weights of either sign, d counts every feature twice.

    >>> round(normalised_winnow(radius=1.0, margin=0.1, features=1000), 1)
    1381.6
    """
    if delta >= margin or radius == 0:
        return math.inf if delta >= margin else 0.0
    return exponentiated(math.log(features), radius, margin, (margin - delta) / radius**2, delta)


@theorem
def balanced_winnow(radius: float, margin: float, features: float, factor: float) -> float:
    """Bound the mistakes of balanced Winnow, w⁺ ⊙= α^a and w⁻ ⊙= α^−a.

    It is `exponentiated` with ln 2d and η = ln α, for some u with Σ|u| ≤ 1, since its predictions are those of the
    normalised form with both signs (Littlestone 1989).

    >>> round(balanced_winnow(radius=1.0, margin=0.1, features=1000, factor=1.1), 1)
    1523.5
    """
    return exponentiated(math.log(2 * features), radius, margin, math.log(factor))


@theorem
def winnow1(features: float, relevant: float, factor: float = 2.0, threshold: float | None = None) -> float:
    """Bound the mistakes of Winnow1 on a disjunction of k among n features of 0 and 1: αk(log_α θ + 1) + n/θ.

    θ = n by default; for α = 2 it is then 2k(1 + log₂ n) + 1.

    Littlestone 1988. *Proof.* Each relevant weight is promoted log_α θ + 1 times at most and never eliminated; a promotion
    adds less than (α − 1)θ to the sum of the weights, n at first, and an elimination takes at least θ from it. ∎

    >>> winnow1(features=1024, relevant=3)
    67.0
    """
    threshold = features if threshold is None else threshold
    return factor * relevant * (math.log(threshold, factor) + 1) + features / threshold


@theorem
def winnow2(features: float, total: float, gap: float = 1.0, factor: float = 2.0, threshold: float | None = None) -> float:
    """Bound the mistakes of Winnow2 on features of 0 and 1.

    Some μ ≥ 0 of sum `total` has ⟨μ, x⟩ ≥ 1 on one class and ≤ 1 − gap on the other. Infinity unless α(1 − gap) < 1.

        p ≤ ((log_α θ + 1) Σμ + (1 − gap)c)/(1 − α(1 − gap)),    mistakes ≤ (1 + α)p + c,    c = αn/((α − 1)θ).

    θ = n by default. Littlestone 1988. *Proof.* p promotions and q demotions change Σμe, e the exponents, by at least
    p − (1 − gap)q, to at most (log_α θ + 1)Σμ; a promotion adds less than (α − 1)θ to the sum of the weights, n at first,
    and a demotion takes at least (1 − 1/α)θ, so that q ≤ αp + c. ∎ A disjunction of k features is Σμ = k, gap = 1: at
    most 3k(1 + log₂ n) + 2 for α = 2.

    >>> winnow2(features=1024, total=3)
    101.0
    """
    threshold = features if threshold is None else threshold
    rest = factor * features / ((factor - 1) * threshold)
    pace = 1 - factor * (1 - gap)
    if pace <= 0:
        return math.inf
    promotions = ((math.log(threshold, factor) + 1) * total + (1 - gap) * rest) / pace
    return (1 + factor) * promotions + rest


@theorem
def littlestone(features: float, total: float, gap: float, threshold: float | None = None) -> float:
    """Bound the mistakes of Winnow2 with α = 1 + gap/2, as Littlestone 1988 prints it.

    It is (8/gap²)(n/θ) + (5/gap + 14 ln θ/gap²) Σμ, for θ ≥ 1: rounder than `winnow2`, and larger.

    >>> round(littlestone(features=1024, total=3, gap=0.5)), round(winnow2(features=1024, total=3, gap=0.5, factor=1.25))
    (1226, 597)
    """
    threshold = features if threshold is None else threshold
    if threshold < 1:
        return math.inf
    return 8 / gap**2 * features / threshold + (5 / gap + 14 * math.log(threshold) / gap**2) * total


# The second order


@theorem
def spectral(
    eigenvalues: Iterable[float], ridge: float, norm: float, energy: float, losses: float = 0.0, near: float = 0
) -> float:
    """Bound the mistakes that a second-order learner can have made in its updates, whatever u is.

        mistakes ≤ Σg − near + √(a‖u‖² + ‖Xu‖²) · √(Σ ln(1 + λ/a) + near).

    X are the rows of all its updates, λ the eigenvalues of XᵀX, `norm` = ‖u‖, `energy` = ‖Xu‖², g = max(0, 1 − y⟨u, x⟩) the
    hinge losses of u with sum `losses`, and `near` how many updates were no mistakes (AROW; of margin in (0, 1)). The
    theorem of Cesa-Bianchi, Conconi and Gentile 2005, whose unit vector and margin are here u = unit vector/γ, and that of
    Crammer, Kulesza and Dredze 2009, a = r. *Proof.* With v = Σyx, vᵀM⁻¹v grows at an update of margin m by
    (2m − m² + c)/(1 + c), c = xᵀM⁻¹x: that is ≤ c/(1 + c) ≤ ln(1 + c) for m ≤ 0, and ≤ ln(1 + c) + 1 for m < 1. The
    logarithms add up to ln det(M/a). And updates − Σg ≤ ⟨u, v⟩ ≤ √(uᵀMu) √(vᵀM⁻¹v). ∎

    >>> round(spectral([9.0, 1.0], ridge=1.0, norm=2.0, energy=5.0), 2)
    5.19
    """
    values = _array(eigenvalues)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InvalidParameter("eigenvalues", values.min(), "finite and not negative, as those of XᵀX are")
    volume = float(np.log1p(values / ridge).sum()) + near
    return losses - near + math.sqrt((ridge * norm * norm + energy) * volume)


@theorem
def second_order(radius: float, margin: float, ridge: float, features: float | None = None) -> float:
    """Bound the mistakes of the second-order perceptron, before its eigenvalues are known.

    They are at most the largest m with

        m ≤ (1/γ) √((a + mR²) · d ln(1 + mR²/(ad))),    d the lesser of m and the features; None: m,

    because m mistakes have eigenvalues that sum up to mR² at most, in as many dimensions as there are. Near R²/γ² for large
    a. For small a it is above R²/γ², since it knows nothing of the spectrum; `spectral` does.

    >>> round(second_order(2.0, 0.5, ridge=1e6), 1), round(second_order(2.0, 0.5, ridge=1.0, features=2), 1)
    (16.0, 190.5)
    """
    square = radius * radius

    def possible(m: float) -> bool:
        d = m if features is None else min(m, features)
        return m * margin <= math.sqrt((ridge + m * square) * d * math.log1p(m * square / (ridge * d)))

    low, high = 0.0, 1.0
    while possible(high):
        low, high = high, 2 * high
        if high > 1e18:
            return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return high


# The σ-perceptron


@theorem
def sigma_updates(dimensions: float, sigma: float) -> float:
    """Bound the updates of the σ-perceptron from a start with ⟨w, u⟩ ≥ 1/√n, whatever the margin: ln n/ln(1/(1 − σ²)).

    That is at most ln n/σ².

    *Proof.* Projecting a far mistake out never lowers ⟨w, u⟩, and multiplies ‖w‖ by √(1 − σ²) at most. ∎ Theorem 2.1 in the
    notes of Georgia Tech CS 4540, after Blum, Frieze, Kannan and Vempala 1998; they write "mistakes", but near ones are
    ignored, not counted, and log for ln.

    >>> round(sigma_updates(12, 0.1), 1)
    247.2
    """
    return math.log(dimensions) / -math.log1p(-(sigma**2))


@theorem
def sigma_rounds(failure: float, pairs: bool = False) -> float:
    """Compute how many random starts contain a good one with probability ≥ 1 − failure: ⌈log_{8/7}(1/failure)⌉.

    Of pairs ±w of opposite starts they are ⌈log_{4/3}(1/failure)⌉.

    A start is good with probability ≥ 1/8 (0.1587 in the limit), one of a pair with twice that. The notes of Georgia Tech
    CS 4540 prove 1/8 for a start and then take log_{4/3}(1/δ) single ones, as if it were 1/4: the chance to fail is then
    (7/8)^(log_{4/3}(1/δ)) = δ^0.46.

    >>> sigma_rounds(0.05), sigma_rounds(0.05, pairs=True)
    (23, 11)
    """
    return math.ceil(math.log(failure) / math.log(3 / 4 if pairs else 7 / 8))


# Kernels on a budget


@theorem
def forgetron_reach(budget: float) -> float:
    """Compute the norm up to which the Forgetron competes: ¼√((B + 1)/ln(B + 1)).

    Dekel, Shalev-Shwartz and Singer 2008.

    >>> round(forgetron_reach(budget=1000), 2)
    3.01
    """
    return math.sqrt((budget + 1) / math.log(budget + 1)) / 4


@theorem
def forgetron(budget: float, norm: float, losses: float) -> float:
    """Bound the mistakes of the Forgetron in a pass, for K(x, x) ≤ 1 and any g of this norm: 2‖g‖² + 4Σ max(0, 1 − y·g(x)).

    Infinity unless B ≥ 83 and ‖g‖ ≤ ¼√((B + 1)/ln(B + 1)). Dekel, Shalev-Shwartz and Singer 2008.

    >>> forgetron(budget=1000, norm=2.0, losses=5.0), forgetron(budget=1000, norm=4.0, losses=5.0)
    (28.0, inf)
    """
    return 2 * norm * norm + 4 * losses if budget >= 83 and norm <= forgetron_reach(budget) else math.inf


@theorem
def projectron(norm: float, losses: float, distance: float) -> float:
    """Bound the mistakes M of the Projectron in one pass, for K(x, x) ≤ 1 and any g with ‖g‖ ≤ U.

    It is the largest M with M(1 − ηU) ≤ Σ max(0, 1 − y·g(x)) + U√M, where rows within the `distance` η of the span are
    projected.

    Infinity for ηU ≥ 1. Orabona, Keshet and Caputo 2008.

    >>> projectron(norm=4.0, losses=0.0, distance=0.0), projectron(norm=4.0, losses=0.0, distance=0.125)
    (16.0, 64.0)
    """
    pace = 1 - distance * norm
    if pace <= 0:
        return math.inf
    root = (norm + math.sqrt(norm * norm + 4 * pace * losses)) / (2 * pace)
    return root * root


@theorem
def projectron_plus(norm: float, losses: float, distance: float) -> float:
    """Bound the mistakes of Projectron++, which learns from margins below 1 too: (U² + 2Σ max(0, 1 − y·g(x)))/(1 − 2ηU).

    Infinity for 2ηU ≥ 1. Orabona, Keshet and Caputo 2009.

    >>> projectron_plus(norm=4.0, losses=5.0, distance=0.0625)
    52.0
    """
    pace = 1 - 2 * distance * norm
    return (norm * norm + 2 * losses) / pace if pace > 0 else math.inf


# Risk, from one pass over independent examples


@theorem
def leave_one_out(mistakes: float, examples: float) -> float:
    """Compute the expected risk of voting after T examples: 2/(T + 1) times the expected mistakes of a pass over T + 1.

    Freund and Schapire 1999, with `mistakes` their ((R + D)/γ)²; Collins 2002 for structures. If M were made in T, those
    of one more are at most M + 1.

    >>> leave_one_out(mistakes=50, examples=999)
    0.1
    """
    return 2 * mistakes / (examples + 1)


@theorem
def convex_risk(loss: float, examples: float, failure: float, largest: float = 1.0) -> float:
    """Bound, with probability ≥ 1 − failure, the most that the average hypothesis of a pass loses on an example to come.

    For a convex loss between 0 and `largest` that came to `loss` over the pass it is
    loss/T + largest·√((2/T) ln(1/failure)).

    Cesa-Bianchi, Conconi and Gentile 2004. The same of a hypothesis drawn at random, in the mean over the draw, for any
    loss, such as wrong predictions.

    >>> round(convex_risk(loss=500, examples=10_000, failure=0.05), 3)
    0.074
    """
    return loss / examples + largest * math.sqrt(2 / examples * math.log(1 / failure))


@theorem
def survivor_risk(survived: float, examples: float, failure: float) -> float:
    """Bound, with probability ≥ 1 − failure, the risk of weights that survived s examples of a pass: ln(T/failure)/s.

    *Proof.* Weights of risk r survive more than ln(T/δ)/r examples with probability ≤ (1 − r)^(ln(T/δ)/r) ≤ δ/T, and there
    are at most T. ∎ (Kearns, Li, Pitt and Valiant 1987; Gallant's pocket.)

    >>> round(survivor_risk(survived=1000, examples=10_000, failure=0.05), 4)
    0.0122
    """
    return math.log(examples / failure) / survived if survived else math.inf


@theorem
def suffix_risk(mistakes: float, examples: float, failure: float) -> float:
    """Bound, with probability ≥ 1 − failure, the risk of the hypothesis with the fewest penalised mistakes.

    They are counted on the rest of the pass; the risk is at most M/T + 6√(ln(2(T + 1)/failure)/T). Cesa-Bianchi, Conconi
    and Gentile 2004.

    >>> round(suffix_risk(mistakes=500, examples=10_000, failure=0.05), 3)
    0.265
    """
    return mistakes / examples + 6 * math.sqrt(math.log(2 * (examples + 1) / failure) / examples)


# Feasibility


@theorem
def von_neumann(margin: float) -> float:
    """Bound the iterations of von Neumann's algorithm on rows of length 1 until it has a separator: 1/γ² (Dantzig 1992).

    >>> von_neumann(margin=0.25)
    16.0
    """
    return novikoff(1.0, margin)


@theorem
def von_neumann_length(iterations: float, inscribed: float = 0.0) -> float:
    """Compute the most that ‖p‖ can be after k iterations of von Neumann's algorithm without a separator found.

    On rows of length 1 it is 1/√k, and (1 − r²)^(k/2) if their hull holds a ball of radius r round 0 (Dantzig 1992; Epelman
    and Freund 2000).

    >>> von_neumann_length(100), round(von_neumann_length(100, inscribed=0.5), 9)
    (0.1, 5.66e-07)
    """
    return min(1 / math.sqrt(iterations), (1 - inscribed * inscribed) ** (iterations / 2))


@theorem
def smooth(rows: float, margin: float) -> float:
    """Bound the iterations of the smooth perceptron on n rows of length 1: 2√(ln n)/γ − 1 (Soheili and Peña 2012).

    >>> round(smooth(rows=1000, margin=0.01)), round(von_neumann(margin=0.01))
    (525, 10000)
    """
    return max(0.0, 2 * math.sqrt(math.log(rows)) / margin - 1)


@theorem
def smoothed_order(dimensions: float, rows: float, sigma: float, failure: float) -> float:
    """Compute the order of the perceptron's updates on constraints with noise: d³m² ln²(m/failure)/(σ² failure²).

    It lacks its constant, and is for m constraints in d dimensions, each moved by a Gaussian of variance σ², with
    probability ≥ 1 − failure.

    Blum and Dunagan 2002, Theorem 1.1, for σ² ≤ 1/(2d): infinity beyond. It tells how things grow, and bounds no run.

    >>> round(smoothed_order(10, 100, 0.1, 0.1) / smoothed_order(10, 100, 0.2, 0.1), 9)
    4.0
    """
    if sigma * sigma > 1 / (2 * dimensions):
        return math.inf
    return dimensions**3 * rows**2 * math.log(rows / failure) ** 2 / (sigma * sigma * failure * failure)


# Other learners


@theorem
def stable_rate(curvature: float) -> float:
    """Compute the rate below which, and not from which on, the delta rule in full batches is stable: 2/λ_max(XᵀX).

    A pass takes w − w* to (I − ηXᵀX)(w − w*). IIIT-H SMAI prints the rule without a
    condition on η; it is Widrow and Hoff's of 1960.

    >>> import numpy as np
    >>> X = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> round(stable_rate(np.linalg.eigvalsh(X.T @ X).max()), 4)
    0.2222
    """
    return 2 / curvature


@theorem
def refusals(distance: float, radius: float, discount: float, rate: float) -> float:
    """Bound the refusals of a seller who asks ⟨w, x⟩ − discount and moves w by −rate·x when refused.

    Values are ⟨θ, x⟩, contexts have length ≤ R, and w starts within `distance` of θ: then
    distance²/(rate(2·discount − rate·R²)).

    Infinity for a rate ≥ 2·discount/R². Each refusal brings ‖w − θ‖² down by at least the divisor. The seller who learns
    from refusals is an example in the notes of Waterloo CS489/698, without a bound.

    >>> refusals(distance=2.0, radius=1.0, discount=0.5, rate=0.5)
    16.0
    """
    fall = rate * (2 * discount - rate * radius * radius)
    return distance * distance / fall if fall > 0 else math.inf
