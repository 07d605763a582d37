"""Is there a hyperplane between the classes? The answer is a certificate that anyone can check: a hyperplane with its
margins, or a few rows that make it impossible. Floats only look for it; what is returned has been checked in exact
arithmetic, and what could not be proved is called undecided.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import UnsupportedOperation
from rosenblatt.exact.certificates import Certificate, Combination, Interior, as_floats
from rosenblatt.exact.dyadic import about
from rosenblatt.exact.reading import MatrixLike
from rosenblatt.theory.alternative import Open, decide
from rosenblatt.theory.signed import Signed, read


@dataclass(frozen=True)
class Separable(Certificate):
    """A hyperplane ⟨w, x⟩ + b = 0 with the second class strictly on its positive side and the first on its negative.

    >>> from rosenblatt.theory import separability
    >>> proof = separability([[0, 0], [1, 0], [0, 1], [1, 1]], ["no", "yes", "yes", "yes"])
    >>> proof.verify([[0, 0], [1, 0], [0, 1], [1, 1]], ["no", "yes", "yes", "yes"])
    True
    >>> proof.verify([[0, 0], [1, 0], [0, 1], [1, 1]], ["no", "yes", "yes", "no"])
    False

    Attributes
    ----------
    w : tuple of Fraction
        The normal vector.
    b : Fraction
        The intercept.
    intercept : bool
        Whether an intercept was allowed.
    margin : Fraction
        The least y(⟨w, x⟩ + b) of all rows.
    row : int
        The row that has it.
    method : str
        The method that found the hyperplane.
    """

    w: tuple[Fraction, ...]
    b: Fraction
    intercept: bool
    margin: Fraction
    row: int
    method: str

    separable = True

    @property
    def plane(self) -> tuple[NDArray, float]:
        """(w, b) in floats; both scaled by a power of 2 where they are too large or too small for them."""
        both = as_floats((*self.w, self.b))
        return both[:-1], float(both[-1])

    def margins(self, X: MatrixLike, y: ArrayLike) -> list[Fraction]:
        """Return y(⟨w, x⟩ + b) of every row, exactly.

        Parameters
        ----------
        X : (rows, features) array or scipy sparse matrix
            The rows.
        y : (rows,) array
            Their labels.

        Returns
        -------
        list of Fraction
        """
        return self._point().values(_read(X, y, self.intercept).A)

    def refutation(self, X: MatrixLike, y: ArrayLike) -> str | None:
        """Return None if the certificate is true of these examples; otherwise a sentence that says why it is not.

        Parameters
        ----------
        X : (rows, features) array or scipy sparse matrix
            The rows.
        y : (rows,) array
            Their labels.

        Returns
        -------
        str or None
            None if it is true.
        """
        A = _read(X, y, self.intercept).A
        if not self.intercept and self.b:
            return f"the hyperplane is to go through the origin, but b is {about(self.b)}"
        if A.shape[1] != len(self.w) + self.intercept:
            return f"the hyperplane is in {len(self.w)} dimensions, the rows are in {A.shape[1] - self.intercept}"
        if not all(isinstance(value, Fraction) for value in (*self.w, self.b, self.margin)):
            return "w, b and the margin must be Fractions"
        values = self._point().values(A)
        least = min(range(len(values)), key=values.__getitem__)
        if values[least] <= 0:
            return f"row {least} has margin {about(values[least])}, which is not positive"
        named = type(self.row) is int and 0 <= self.row < len(values) and values[self.row] == values[least]
        if not named or values[least] != self.margin:
            return f"the least margin is {about(values[least])}, in row {least}"
        return None

    def __bool__(self) -> bool:
        return True

    def _point(self) -> Interior:
        return Interior((*self.w, self.b) if self.intercept else self.w)

    def __str__(self) -> str:
        return f"separable: the least functional margin is {about(self.margin)}, in row {self.row}; found by {self.method}"


@dataclass(frozen=True)
class Inseparable(Certificate):
    """Rows that no hyperplane can have on their right sides.

    With these positive weights, Σ λ y x = 0 and, where an intercept is allowed, Σ λ y = 0, so that
    Σ λ y(⟨w, x⟩ + b) = 0 for every w and b (Gordan 1873).

    >>> from rosenblatt.theory import separability
    >>> proof = separability([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])  # exclusive or
    >>> proof.rows, proof.combination
    ((0, 1, 2, 3), (1, 1, 1, 1))

    Attributes
    ----------
    rows : tuple of int
        The numbers of the rows.
    combination : tuple of int
        The weights λ > 0, one for each of the rows.
    intercept : bool
        Whether an intercept was allowed.
    method : str
        The method that found the rows.
    """

    rows: tuple[int, ...]
    combination: tuple[int, ...]
    intercept: bool
    method: str

    separable = False
    margin = Fraction(0)  # what the best hyperplane comes to, and no more

    def __bool__(self) -> bool:
        return False

    def refutation(self, X: MatrixLike, y: ArrayLike) -> str | None:
        """Return None if the certificate is true of these examples; otherwise a sentence that says why it is not.

        Parameters
        ----------
        X : (rows, features) array or scipy sparse matrix
            The rows.
        y : (rows,) array
            Their labels.

        Returns
        -------
        str or None
            None if it is true.
        """
        return Combination(self.rows, self.combination).refutation(_read(X, y, self.intercept).A)

    def __str__(self) -> str:
        some = ", ".join(map(str, self.rows[:8])) + (", …" if len(self.rows) > 8 else "")
        rows = f"row {some} is zero" if len(self.rows) == 1 else f"{len(self.rows)} rows ({some}) add up to zero"
        return f"not separable: {rows}; found by {self.method}"


@dataclass(frozen=True)
class Undecided:
    """Neither answer could be proved.

    The best margin lies between `lower` and `upper`, as far as floats can tell, with columns scaled to similar sizes and
    then rows to length 1: neither changes which answer is right.

    Attributes
    ----------
    lower, upper : float
        The bounds of the margin.
    reason : str
        Why the search ended.

    Examples
    --------
    >>> answer = Undecided(lower=-1e-9, upper=1e-9, reason="the time is over")
    >>> print(answer)
    undecided within [-1e-09, 1e-09]: the time is over
    >>> answer.separable is None
    True
    """

    lower: float
    upper: float
    reason: str

    separable = None

    def __bool__(self) -> bool:
        hint = "use the attribute `separable`, which is None, or allow more time"
        raise UnsupportedOperation(f"{self}. It is neither true nor false", hint=hint)

    def verify(self, X: MatrixLike, y: ArrayLike) -> bool:
        """Return False: nothing is proved.

        Parameters
        ----------
        X : (rows, features) array or scipy sparse matrix
            The rows.
        y : (rows,) array
            Their labels.

        Returns
        -------
        bool
        """
        return False

    def __str__(self) -> str:
        return f"undecided within [{self.lower:.3g}, {self.upper:.3g}]: {self.reason}"


def separability(
    X: MatrixLike,
    y: ArrayLike,
    *,
    intercept: bool = True,
    method: str = "auto",
    max_seconds: float = 600.0,
    verbose: bool = False,
) -> Separable | Inseparable | Undecided:
    """Find a hyperplane that separates two classes, or rows that prove that none does, checked in exact arithmetic.

    The answer is true or false as the data are separable or not, and `separable` says the same: True, False, or None.
    Whichever method finds it, what is returned has been checked exactly.

    Parameters
    ----------
    X : (rows, features) array, DataFrame or scipy sparse matrix
        The numbers in it are taken as the rational numbers they are.
    y : (rows,) array
        Two labels, of which the second is the positive one; without an intercept also one.
    intercept : bool, default=True
        Whether the hyperplane may have an intercept, or has to go through the origin.
    method : str, default="auto"
        "auto" goes through the others from the quickest to the surest: "look" (a row of zeros, two opposite rows),
        "perceptron", "nearest" (the point of the hull nearest to the origin), "highs" (a linear program in floats),
        "simplex" (one in integers: it always decides, given time) and "rescaling".
    max_seconds : float, default=600.0
        When to give up; a step that cannot be interrupted may take a little longer.
    verbose : bool, default=False
        Whether to say on stderr how each method went.

    Returns
    -------
    Separable, Inseparable or Undecided
        The hyperplane, or the rows, or how far the search came.

    Raises
    ------
    InvalidData
        For rows that are not finite numbers, or labels that are not two.
    InvalidParameter
        For an unknown method.

    Examples
    --------
    >>> from rosenblatt.theory import separability
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> bool(separability(corners, [0, 0, 0, 1])), bool(separability(corners, [0, 1, 1, 0]))  # and, exclusive or
    (True, False)
    """
    signed = _read(X, y, intercept)
    found = decide(signed.A, method=method, max_seconds=max_seconds, verbose=verbose)
    if isinstance(found, Open):
        return Undecided(found.lower, found.upper, found.reason)
    if isinstance(found.certificate, Combination):
        return Inseparable(found.certificate.rows, found.certificate.weights, intercept, found.method)
    point = found.certificate
    values = point.values(signed.A)
    row = min(range(len(values)), key=values.__getitem__)
    b = point.x[-1] if intercept else Fraction(0)
    return Separable(point.x[: signed.features], b, intercept, values[row], row, found.method)


def _read(X: MatrixLike, y: ArrayLike, intercept: bool) -> Signed:
    return read(X, y, constant=1.0 if intercept else 0.0)
