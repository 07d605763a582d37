"""Is there x with ⟨aᵢ, x⟩ > 0 for every row? A perceptron looks for x, and while it fails, the rows it adds up come near to
adding up to zero; one of the two is proved in exact arithmetic (Gordan 1873: never both, always one).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.dyadic import unit_floats
from rosenblatt.exact.reading import Matrix, MatrixLike, numbers
from rosenblatt.exact.rounding import interior
from rosenblatt.feasibility.first_order import Smooth, VonNeumann
from rosenblatt.feasibility.perceptron import Plain
from rosenblatt.feasibility.proof import prove
from rosenblatt.feasibility.rescaling import DunaganVempala, Rescaling
from rosenblatt.feasibility.rows import row_lengths
from rosenblatt.feasibility.search import Budget, Found, Method, RandomState, Stage, check_limit, random_generator

METHODS: dict[str, Method] = {
    method.name: method for method in (Rescaling(), Plain(), DunaganVempala(), VonNeumann(), Smooth())
}
_CLAIMS = 4  # points that are solutions for floats only, before float64 is held to be too coarse
_LENGTHS = (1e-145, 1e145)  # of rows whose squared length float64 holds with all its digits


def find_interior(
    A: MatrixLike,
    method: str | Method = "rescaling",
    *,
    max_updates: int | None = None,
    max_rescalings: int | None = None,
    random_state: RandomState = 0,
) -> Found:
    """Find x with A x > 0, or positive weights with which some rows of A add up to zero; both checked in exact arithmetic.

    Parameters
    ----------
    A : (rows, columns) array or scipy sparse matrix
        Finite floats, or Python's integers of any size (in an array of objects). The methods that rescale work on a dense
        copy.
    method : str, or a method with its parameters
        With the updates that n unit rows of margin γ in d dimensions take at most:

        - "rescaling" or `Rescaling()`: O(d⁴ log 1/γ); each costs the rows looked at (Peña and Soheili 2016);
        - "perceptron" or `Plain(order=...)`: 1/γ², on the rows as given (R/γ)²; the rows looked at (Novikoff 1962);
        - "dunagan-vempala" or `DunaganVempala()`: O(d³ log d log 1/γ), with high probability; the rows looked at (2008);
        - "von-neumann" or `VonNeumann(away=...)`: 2/γ², without away steps 1/γ²; a product with A (Dantzig 1992);
        - "smooth" or `Smooth()`: 2√(ln n)/γ − 1; three products with A (Soheili and Peña 2012).
    max_updates, max_rescalings : int, optional
        When to give up. Unless given: 10⁸ updates for "rescaling", 10⁷ for "perceptron" and "dunagan-vempala", 10⁵ for the
        others; 57·columns rescalings for "rescaling", any number for "dunagan-vempala", which gives up by itself.
    random_state : int, RandomState, Generator or None, default=0
        The source of the draws of "dunagan-vempala".

    Returns
    -------
    Found
        With a `certificate`, or without one, the `reason`, and the `margin` it reached.

    Raises
    ------
    InvalidData
        For rows that are not finite numbers, or too many of them for a method that rescales.
    InvalidParameter
        For an unknown method, or a limit that is not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.feasibility import find_interior
    >>> A = np.eye(12) - np.tril(np.ones((12, 12)), -1)  # the perceptron makes 5,592,405 updates on these
    >>> found = find_interior(A)
    >>> found.exists, found.verify(A), found.n_updates < 10_000
    (True, True, True)
    >>> found = find_interior([[1, 2], [1, -3], [-2, 0]])
    >>> found.exists, found.certificate
    (False, Combination(rows=(0, 1, 2), weights=(6, 4, 5)))
    """
    exact = numbers(A, "A", integers=True)
    rows = unit_floats(exact) if exact.dtype == object else exact
    chosen = _method(method)
    budget = Budget(check_limit(max_updates, "max_updates", 1), check_limit(max_rescalings, "max_rescalings", 0))
    lengths = _check_lengths(rows)
    if not lengths.all():
        return Found(Combination((int(lengths.argmin()),), (1,)), (-1.0, 0.0), chosen.name, 0, 0, "combination")
    search = chosen.search(rows, budget, random_generator(random_state))
    judge = _Judge(exact, rows)
    while True:
        try:
            stage = next(search)
        except StopIteration as end:
            reason = judge.last(stage) or end.value
            break
        reason = judge.verdict(stage)
        if reason:
            break
    low = float((rows @ stage.x / lengths).min() / (np.linalg.norm(stage.x) or 1.0))
    margin = (low, 0.0 if reason == "combination" else judge.reach)
    work = (stage.n_updates, stage.n_rescalings)
    return Found(judge.certificate, margin, chosen.name, *work, reason, tuple(judge.trace))


class _Judge:
    """Checks the stages of a search, and says when there is a proof."""

    def __init__(self, exact: Matrix, A: Matrix):
        self.exact, self.A = exact, A  # the rows as they were given, and as floats
        self.certificate: Interior | Combination | None = None
        self.reach, self.trace = 1.0, list[float]()
        self._tried, self._claims, self._seen = 2.0, 0, False

    def verdict(self, stage: Stage) -> str:
        """Why to stop; empty for no reason to."""
        self.trace.append(stage.reach)
        self.reach = min(self.reach, stage.reach)
        if stage.solved:
            self.certificate = interior(self.exact, stage.x)
            if self.certificate is not None:
                return "interior"
            self._claims += 1
            return "precision" if self._claims == _CLAIMS else ""
        # Each proof that is tried costs some products of matrices, so it is tried again when there is more to go by.
        self._seen = stage.reach < self._tried / 2 or len(self.trace).bit_count() == 1
        if self._seen:
            self._tried = min(self._tried, stage.reach)
            self.certificate = prove(self.A, stage.weights, self.exact)
            if self.certificate is not None:
                return "combination"
        return ""

    def last(self, stage: Stage) -> str:
        """The same of the last stage, if it was passed over."""
        if not self._seen and not stage.solved:
            self.certificate = prove(self.A, stage.weights, self.exact)
        return "combination" if self.certificate is not None else ""


def _method(method: str | Method) -> Method:
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if not isinstance(method, str | type) and isinstance(method, Method):
        return method
    raise InvalidParameter("method", method, f"one of {', '.join(map(repr, METHODS))}, or one such as Plain()")


def _check_lengths(A: Matrix) -> NDArray:
    """‖aᵢ‖ for each row: 0 for a row of zeros, otherwise a number whose square is one too."""
    with np.errstate(over="ignore", under="ignore"):
        lengths = row_lengths(A)
    low, high = _LENGTHS
    for i in np.flatnonzero((lengths < low) | (lengths > high)):
        if lengths[i] > high or abs(A[[i]]).max():
            word = "long" if lengths[i] > high else "short"
            raise InvalidData(
                f"row {i} of A is too {word} for its squared length to be a number", hint="scale it nearer to 1", row=int(i)
            )
    return lengths
