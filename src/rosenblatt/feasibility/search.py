"""One search for x with A x > 0: what it may spend, what it shows at each stage, and what came of it.

A method is a walk through stages. At each it shows a point and weights of rows, and the caller decides whether one of
them is proof enough. Asked to go on after it said "solved", it asks for a larger margin: what it had found was positive for
floats, but not for the numbers they stand for.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from numbers import Integral
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidParameter, UnsupportedOperation
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.reading import Matrix, MatrixLike, numbers

RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


class Stage(NamedTuple):
    """What a method has at one moment. Weights are ≥ 0 and belong to the rows as given."""

    x: NDArray
    solved: bool  # every row's product with x is positive, as far as floats can tell
    weights: NDArray
    reach: float  # ‖Σ weightᵢ·aᵢ‖ / Σ weightᵢ·‖aᵢ‖: the margin of the unit rows is not above it
    n_updates: int
    n_rescalings: int = 0


class Budget(NamedTuple):
    """How much work is allowed; None leaves it to the method."""

    updates: int | None = None
    rescalings: int | None = None


@runtime_checkable
class Method(Protocol):
    """A way to look for x with A x > 0."""

    @property
    def name(self) -> str: ...

    def search(self, A: Matrix, budget: Budget, rng: np.random.Generator) -> Generator[Stage, None, str]:
        """Look for x with A x > 0, stage by stage.

        Parameters
        ----------
        A : array or sparse matrix (rows, columns)
            The matrix; it has no rows of zeros.
        budget : Budget
            How much may be spent.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        generator of Stage
            The stages, until the budget is spent; it returns a word for what was.
        """
        ...


class Answer:
    """What every answer with a certificate says: the point, whether there is one, and nothing where it is not known."""

    certificate: Interior | Combination | None

    @property
    def x(self) -> NDArray | None:
        """The point of the certificate as floats, without rounding; None if there is none or none was found."""
        return np.asarray(self.certificate) if isinstance(self.certificate, Interior) else None

    @property
    def exists(self) -> bool | None:
        """Whether there is x; None if that is not known."""
        return None if self.certificate is None else isinstance(self.certificate, Interior)

    def __bool__(self) -> bool:
        if self.exists is None:
            hint = "use the attribute `exists`, which is None, or allow more updates"
            raise UnsupportedOperation(f"{self}. It is neither true nor false", hint=hint)
        return self.exists


@dataclass(frozen=True)
class Found(Answer):
    """The answer of `find_interior`, with its proof.

    The question is whether there is x with ⟨aᵢ, x⟩ > 0 for every row.

    Attributes
    ----------
    certificate : Interior, Combination or None
        x, or positive integer weights with which some rows add up to zero, so that there is no x. Either has been checked
        in exact arithmetic, and `certificate.verify(A)` checks it again. None if the search ended without one.
    margin : (float, float)
        Bounds of γ = max over ‖u‖ = 1 of the least ⟨aᵢ, u⟩/‖aᵢ‖, in floats: the least cosine of the last point with a row,
        and the least length of a convex combination of the unit rows that was met; not above 0 where there is no x.
    method : str
        The method that answered.
    n_updates, n_rescalings : int
        What it did: updates of the perceptron, steps of von Neumann's walk, iterations of the smooth perceptron.
    reason : str
        "interior", "combination", or why it ended without either: "max_updates", "max_rescalings", "no_improvement",
        "precision".
    trace : tuple of float
        At each stage of the search the length of the convex combination of unit rows it had.

    Examples
    --------
    >>> from rosenblatt.feasibility import find_interior
    >>> A = [[1, 2], [1, -3], [-2, 0]]
    >>> found = find_interior(A)
    >>> found.exists, found.reason, found.certificate.weights, found.verify(A)
    (False, 'combination', (6, 4, 5), True)
    """

    certificate: Interior | Combination | None
    margin: tuple[float, float]
    method: str
    n_updates: int
    n_rescalings: int
    reason: str
    trace: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def verify(self, A: MatrixLike) -> bool:
        """Return whether there is a certificate, and it is true of these rows, in exact arithmetic.

        Parameters
        ----------
        A : (rows, columns) array or scipy sparse matrix
            The rows.

        Returns
        -------
        bool
        """
        return self.certificate is not None and self.certificate.verify(numbers(A, "A", integers=True))

    def __str__(self) -> str:
        work = f"{self.method}, {plural(self.n_updates, 'update')}"
        work += f", {plural(self.n_rescalings, 'rescaling')}" if self.n_rescalings else ""
        low, high = self.margin
        if isinstance(self.certificate, Interior):
            return f"A x > 0 has a solution, checked exactly; margin of the unit rows in [{low:.3g}, {high:.3g}] ({work})"
        if isinstance(self.certificate, Combination):
            rows = len(self.certificate.rows)
            return f"A x > 0 has no solution: {plural(rows, 'row')} with positive weights add up to 0, exactly ({work})"
        return f"undecided ({self.reason}): the margin of the unit rows is in [{low:.3g}, {high:.3g}] ({work})"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def check_limit(value: object, name: str, least: int) -> int | None:
    """The number, or None."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InvalidParameter(name, value, f"a whole number ≥ {least}, or None to leave it to the method")
    return int(value)


def random_generator(random_state: RandomState) -> np.random.Generator:
    """The source of randomness that an int, RandomState, Generator or None stands for."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)
