"""The rescaled perceptron needs no rows, only a function that returns a cut for a point outside.

Belloni, Freund and Vempala (2009), the scheme of Dunagan and Vempala for any convex cone in d dimensions, σ = 1/(32d):

1. the perceptron, from 0, on the cuts it is given, at length 1, for at most 16d² updates;
2. x at random; while a cut has a cosine ≤ −σ with it, project the cut out of x; if that takes more than ln d/σ² updates, or
   x vanishes, draw anew;
3. stretch space along x, and begin anew.

With high probability O(d log 1/τ) stretches are enough, τ the width of the cone: the radius of the largest ball inside it
around a point of length 1.

Step 2 asks for a deep cut or the word that there is none, and depth is measured in the space that was stretched. A user
should not have to know of that. The deepest cut is the one at the projection of x on the cone; so ask for a cut at x,
project x on what the cuts so far leave, ask again there, until the projection is inside. A sum of cuts is a cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from rosenblatt.errors import IncompatibleParameters, InvalidData, InvalidParameter, UnsupportedOperation
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.feasibility.cones import Cone, Cut, SecondOrder, WithDual, as_cut
from rosenblatt.feasibility.proof import prove
from rosenblatt.feasibility.search import Answer, RandomState, check_limit, plural, random_generator

_DRAWS = 47
_LADDER = (4, 8, 16, 26, 40, 53)  # bits of the points tried
_PROJECTIONS = 32  # cuts for one projection at most
_SHALLOW = 1e-5  # a cosine up to which a cut may miss the point: its numbers are rounded
_THIN = 1e15  # how much longer space may be stretched one way than another
_NOTHING = 1e-12  # a length that is what rounding leaves of zero
_LENGTHS = (1e-120, 1e120)  # of the largest number of a cut: its square and what is made of it are floats


Oracle: TypeAlias = Callable[[NDArray], Cut | ArrayLike | None]  # a cut at a point, or None if the point is inside


class _TooThin(Exception):
    """Rounding decides on which side of a cut the point lies."""


@dataclass(frozen=True)
class FoundInCone(Answer):
    """The answer of `find_in_cone`: whether there is a point inside the cone, with its proof.

    Attributes
    ----------
    certificate : Interior, Combination or None
        The point; or positive integer weights with which some of the `cuts` add up to zero, so that nothing can be inside.
    cuts : (k, dimension) array
        The rows of the combination, as the cone returned them.
    checked : bool
        Whether the point was confirmed in exact arithmetic, by the cone's `contains`. A combination of cuts always is.
    n_updates, n_rescalings, n_cuts : int
        Updates of the perceptron and of the corrections, stretches of space, and cuts asked for.
    reason : str
        "interior" or "combination"; otherwise "max_updates", "max_rescalings", "no_improvement" (47 draws failed: there is
        probably nothing inside) or "precision" (the cone is thinner than floats can tell from one without an inside).
    dual : tuple of Fraction, or None
        Where it alone proves that nothing is inside: v with Pᵀv = c and ‖v‖ ≤ 1 for the cone ‖P x‖ < ⟨c, x⟩, so that
        ⟨c, x⟩ = ⟨v, P x⟩ ≤ ‖P x‖. The only cut is then c − Pᵀv = 0.

    Examples
    --------
    >>> from rosenblatt.feasibility import Polyhedral
    >>> cone = Polyhedral([[1, 0], [0, 1]])
    >>> found = find_in_cone(cone)
    >>> found.exists, found.reason, found.verify(cone)
    (True, 'interior', True)
    """

    certificate: Interior | Combination | None
    cuts: NDArray
    checked: bool
    n_updates: int
    n_rescalings: int
    n_cuts: int
    reason: str
    method: str = "belloni-freund-vempala"
    dual: tuple[Fraction, ...] | None = None

    def verify(self, cone: Cone) -> bool:
        """Return whether there is a certificate and it is true in exact arithmetic: of the cone, or of the cuts it named.

        Parameters
        ----------
        cone : Cone
            The cone that was asked about.

        Returns
        -------
        bool

        Raises
        ------
        UnsupportedOperation
            For a point and a cone without `contains`, such as a function.
        """
        if isinstance(self.certificate, Interior):
            if not hasattr(cone, "contains"):
                raise UnsupportedOperation(
                    f"verify needs a cone with a method `contains`; {cone!r} has none", hint="test the point `x` with it"
                )
            return cone.dimension == len(self.certificate.x) and cone.contains(self.certificate.x)
        if self.dual is not None:
            return isinstance(cone, WithDual) and cone.refuted_by(self.dual)
        return self.certificate is not None and self.certificate.verify(self.cuts)

    def __str__(self) -> str:
        work = f"{plural(self.n_updates, 'update')}, {plural(self.n_rescalings, 'rescaling')}, {plural(self.n_cuts, 'cut')}"
        if isinstance(self.certificate, Interior):
            return f"a point inside, {'checked exactly' if self.checked else 'by the word of the oracle'} ({work})"
        if self.dual is not None:
            return "nothing inside: a dual vector proves it, exactly"
        if isinstance(self.certificate, Combination):
            few = plural(len(self.certificate.rows), "cut")
            return f"nothing inside: {few} with positive weights add up to 0, exactly ({work})"
        return f"undecided ({self.reason}; {work})"


def find_in_cone(
    cone: Cone | Oracle,
    dimension: int | None = None,
    *,
    max_updates: int | None = None,
    max_rescalings: int | None = None,
    random_state: RandomState = 0,
) -> FoundInCone:
    """Find a point inside an open convex cone, or a proof that there is none: cuts of it that add up to zero.

    Parameters
    ----------
    cone : a cone of `rosenblatt.feasibility.cones`, or a function
        The function gets x, an array, and returns a cut: a vector a with ⟨a, x⟩ ≤ 0 and ⟨a, z⟩ > 0 for every z inside; or
        None if x is inside. Its answers are not checked; those of a cone are, in exact arithmetic.
    dimension : int
        Of the space; a cone knows its own.
    max_updates, max_rescalings : int, optional
        When to give up; unless given, 100,000 and any number.
    random_state : int, RandomState, Generator or None, default=0
        The source of the draws.

    Returns
    -------
    FoundInCone
        With a `certificate`, or without one and with the `reason`.

    Raises
    ------
    InvalidParameter
        If `cone` is neither a cone nor a function, a limit is not allowed, or the dimension is missing or wrong.
    InvalidData
        If the function returns a vector that is not a cut.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.feasibility import Polyhedral, SecondOrder, Intersection, find_in_cone
    >>> ice = SecondOrder(P=np.eye(3)[:2], c=[0, 0, 1])  # ‖(x₁, x₂)‖ < x₃
    >>> found = find_in_cone(Intersection(ice, Polyhedral([[5, 0, -4]])))  # and 5x₁ > 4x₃
    >>> found.exists, found.checked
    (True, True)
    >>> find_in_cone(Intersection(ice, Polyhedral([[4, 0, -5]]))).exists
    False
    """
    separate, contains, d = _oracle(cone, dimension)
    limit = check_limit(max_updates, "max_updates", 1) or 100_000
    stretches = check_limit(max_rescalings, "max_rescalings", 0)
    dual = cone.dual_vector() if isinstance(cone, WithDual) else None
    if dual is not None:  # the cut c − Pᵀv is zero
        return FoundInCone(Combination((0,), (1,)), np.zeros((1, d)), True, 0, 0, 1, "combination", dual=dual)
    search = _ConeSearch(separate, contains, d, limit, random_generator(random_state))
    try:
        reason = search.run(math.inf if stretches is None else stretches)
    except _TooThin:
        reason = "precision"
    if search.certificate is None and isinstance(cone, SecondOrder) and (point := cone.point()) is not None:
        search.certificate, reason = Interior(point), "interior"
    checked = reason == "combination" or (reason == "interior" and contains is not None)
    work = (search.updates, search.rescalings, search.asked)
    return FoundInCone(search.certificate, search.cuts(), checked, *work, reason)


class _ConeSearch:
    """One search: the cuts met, the map B, and the counts of what was done."""

    def __init__(self, separate: Oracle, contains: Callable | None, d: int, limit: int, rng: np.random.Generator):
        self.separate, self.contains, self.d, self.limit, self.rng = separate, contains, d, limit, rng
        self.B = np.eye(d)
        self.updates = self.rescalings = self.asked = 0
        self.certificate: Interior | Combination | None = None
        self.met: list[NDArray] = []  # cuts, each once
        self._exact: list[bool] = []  # whether each of them may be part of a proof
        self._numbers: dict[bytes, int] = {}

    def run(self, stretches: float) -> str:
        """The reason why the search ended."""
        while True:
            for step in (self.climb, self.improve):
                reason = step()
                if reason:
                    return reason
            if self.rescalings >= stretches:
                return "max_rescalings"
            self.B += np.outer(self.B @ self.x, self.x)
            self.B /= np.abs(self.B).max()
            self.rescalings += 1
            if np.linalg.cond(self.B) > _THIN:
                return "precision"

    def cuts(self) -> NDArray:
        return np.array(self.met).reshape(-1, self.d)

    def ask(self, x: NDArray) -> tuple[NDArray, int] | None:
        """(the cut at B x in the stretched space, at length 1; its number); None if B x is said to be inside."""
        point = self.B @ x
        point /= np.linalg.norm(point)
        self.asked += 1
        cut = self.separate(point.copy())
        if cut is None:
            return None
        a, exact = as_cut(cut)
        if a.shape != (self.d,) or not np.isfinite(a).all():
            raise InvalidData(f"a cut must be {self.d} finite numbers; got {a!r}")
        if a.any() and not _LENGTHS[0] < np.abs(a).max() < _LENGTHS[1]:
            raise InvalidData(f"the squared length of a cut must not overflow or underflow; got {a!r}")
        if a @ point > _SHALLOW * np.linalg.norm(a):
            if self.contains:  # a cone's cut, which rounding has turned past the point
                raise _TooThin
            raise InvalidData(
                f"a cut must not have the point on its positive side; {a!r} has a product {a @ point:g} with it"
            )
        number = self._numbers.setdefault(a.tobytes(), len(self._numbers))
        if number == len(self.met):
            self.met.append(a)
            self._exact.append(exact)
        mapped = a @ self.B
        length = float(np.linalg.norm(mapped))
        if not a.any() and exact:
            self.certificate = Combination((number,), (1,))
        elif not length:
            raise _TooThin
        return mapped / (length or 1.0), number

    def inside(self, x: NDArray) -> str:
        """Say so, if the point that the oracle holds to be inside is."""
        point = self.B @ x
        point /= np.abs(point).max()
        for bits in _LADDER:
            rounded = np.ldexp(np.round(np.ldexp(point, bits)), -bits) if bits < _LADDER[-1] else point
            exact = tuple(Fraction(value) for value in rounded.tolist())
            if self.contains(exact) if self.contains else rounded.any() and self.separate(rounded) is None:
                self.certificate = Interior(exact)
                return "interior"
        return "precision"

    def climb(self) -> str:
        w, counts = np.zeros(self.d), dict[int, float]()
        start = self.rng.standard_normal(self.d)
        for _ in range(16 * self.d**2):
            found = self.ask(w if w.any() else start)
            if found is None:
                return self.inside(w if w.any() else start)
            a, number = found
            if self.certificate is not None:
                return "combination"
            w = w + a
            length = float(np.linalg.norm(self.met[number] @ self.B))
            counts[number] = counts.get(number, 0.0) + 1 / length
            self.updates += 1
            if np.linalg.norm(w) < _NOTHING:
                w[:] = 0.0
            if self.updates.bit_count() == 1 and self._proved(counts):
                return "combination"
            if self.updates >= self.limit:
                return "combination" if self._proved(counts) else "max_updates"
        return "combination" if self._proved(counts) else ""

    def improve(self) -> str:
        """Leave in `self.x` a unit vector that no cut is deep for."""
        sigma = 1 / (32 * self.d)
        longest = math.floor(math.log(self.d) / sigma**2)
        for _ in range(_DRAWS):
            x = self.rng.standard_normal(self.d)
            x /= np.linalg.norm(x)
            for _ in range(longest + 1):
                cut = self.deepest(x)
                if self.certificate is not None:
                    return "combination"
                if cut is None:
                    return self.inside(x)
                depth = -float(cut @ x)
                if depth < sigma:
                    self.x = x
                    return ""
                if self.updates >= self.limit:
                    return "max_updates"
                x = x + depth * cut
                self.updates += 1
                length = float(np.linalg.norm(x))
                if length < _NOTHING:
                    break
                x /= length
        return "no_improvement"

    def deepest(self, x: NDArray) -> NDArray | None:
        """The cut, at length 1, that has the least cosine with x, of length 1; None if x is inside."""
        met: list[NDArray] = []
        cut, before = np.zeros(self.d), 0.0
        for _ in range(_PROJECTIONS):
            found = self.ask(x + cut)
            if found is None or self.certificate is not None:
                break
            met.append(found[0])
            weights, _ = nnls(np.array(met).T, -x)
            cut = np.array(met).T @ weights  # x + cut is the projection of x on what the cuts leave
            if np.linalg.norm(x + cut) < _NOTHING or np.linalg.norm(cut) - before < 1e-3 * np.linalg.norm(cut):
                break
            before = float(np.linalg.norm(cut))
        if not met:
            return None
        length = float(np.linalg.norm(cut))
        return cut / length if length else met[0]

    def _proved(self, counts: dict[int, float]) -> bool:
        cuts = self.cuts()
        weights = np.zeros(len(cuts))
        weights[list(counts)] = list(counts.values())
        weights[~np.array(self._exact, dtype=bool)] = 0.0
        if not weights.any():
            return False
        self.certificate = prove(cuts, weights)
        return self.certificate is not None


def _oracle(cone: Cone | Oracle, dimension: int | None) -> tuple[Oracle, Callable | None, int]:
    """(what names cuts, what decides exactly whether a point is inside, the dimension)."""
    if hasattr(cone, "separate") and hasattr(cone, "dimension"):
        if dimension not in (None, cone.dimension):
            reason = f"the cone has {cone.dimension} dimensions; leave it out"
            raise IncompatibleParameters(("dimension", dimension), ("cone", cone), reason)
        return cone.separate, getattr(cone, "contains", None), cone.dimension
    if not callable(cone):
        raise InvalidParameter("cone", cone, "a cone with `separate`, or a function from x to a cut or None")
    size = check_limit(dimension, "dimension", 1)
    if size is None:
        raise InvalidParameter("dimension", None, "a whole number with a function: how many coordinates its points have")
    return cone, None, size
