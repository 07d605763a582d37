"""What came of looking for x with A x > 0: x, or a proof that there is none, or how far the search came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.exact.reading import numbers


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
            raise TypeError(
                f"{self}. This is neither true nor false: ask for `exists`, which is None, or allow more updates"
            )
        return self.exists


@dataclass(frozen=True)
class Found(Answer):
    """The answer to: is there x with ⟨aᵢ, x⟩ > 0 for every row?

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
    """

    certificate: Interior | Combination | None
    margin: tuple[float, float]
    method: str
    n_updates: int
    n_rescalings: int
    reason: str
    trace: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def verify(self, A: Any) -> bool:
        """Whether there is a certificate, and it is true of these rows, in exact arithmetic."""
        return self.certificate is not None and self.certificate.verify(numbers(A, "A", integers=True))

    def __str__(self) -> str:
        work = f"{self.method}, {count(self.n_updates, 'update')}"
        work += f", {count(self.n_rescalings, 'rescaling')}" if self.n_rescalings else ""
        low, high = self.margin
        if isinstance(self.certificate, Interior):
            return f"A x > 0 has a solution, checked exactly; margin of the unit rows in [{low:.3g}, {high:.3g}] ({work})"
        if isinstance(self.certificate, Combination):
            rows = len(self.certificate.rows)
            return f"A x > 0 has no solution: {count(rows, 'row')} with positive weights add up to 0, exactly ({work})"
        return f"undecided ({self.reason}): the margin of the unit rows is in [{low:.3g}, {high:.3g}] ({work})"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
