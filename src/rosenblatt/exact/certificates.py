"""Of a finite set of rows a₁, …, aₙ exactly one is true: some x has ⟨aᵢ, x⟩ > 0 for all of them, or some of them, with
positive weights, add up to zero (Gordan 1873). Either can be written down and checked without trusting the program that
found it: each float is a rational number, and the check computes with those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from rosenblatt.exact.dyadic import about, cleared, fractions, products
from rosenblatt.exact.reading import Matrix


class Certificate:
    """A statement with its proof, which can be checked with the data that it is about."""

    refutation: Callable[..., str | None]  # None if the statement is true; otherwise a sentence that says why it is not

    def verify(self, *subject: Any) -> bool:
        """Return whether the statement is true, in exact arithmetic; only the data are trusted.

        Parameters
        ----------
        *subject
            What it is about, as `refutation` takes it: the rows A, or the examples X and y, or a linear program.

        Returns
        -------
        bool
        """
        return self.refutation(*subject) is None


@dataclass(frozen=True)
class Interior(Certificate):
    """A point x with ⟨aᵢ, x⟩ > 0 for every row.

    Attributes
    ----------
    x : tuple of Fraction
        The point. `numpy.asarray` gives it as floats.
    """

    x: tuple[Fraction, ...]

    @staticmethod
    def of(x: Iterable[Any]) -> Interior:
        """Return the point with these coordinates: integers, fractions or floats."""
        return Interior(tuple(fractions(x)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        return as_floats(self.x).astype(dtype or np.float64)

    def values(self, A: Matrix) -> list[Fraction]:
        """Return ⟨aᵢ, x⟩ for each row, exactly."""
        numbers = cleared(self.x)
        scale = next((value / number for value, number in zip(self.x, numbers, strict=True) if number), Fraction(1))
        found, e = products(A, numbers)
        scale *= Fraction(2) ** e
        return [p * scale for p in found]

    def refutation(self, A: Matrix) -> str | None:
        """Return None if it is true of these rows; otherwise a sentence that says why it is not."""
        if A.shape[1] != len(self.x):
            return f"the point has {len(self.x)} coordinates, the rows have {A.shape[1]}"
        if not all(isinstance(value, Fraction) for value in self.x):
            return "the coordinates of the point must be Fractions"
        found, _ = products(A, cleared(self.x))
        low = next((i for i, p in enumerate(found) if p <= 0), None)
        if low is None:
            return None
        sign = "0" if found[low] == 0 else "of negative sign"
        return f"row {low} has the product {sign} with the point, not a positive one"


@dataclass(frozen=True)
class Combination(Certificate):
    """Positive integer weights with which some rows add up to zero; so no point has positive products with all of them.

    Attributes
    ----------
    rows : tuple of int
        The numbers of these rows.
    weights : tuple of int
        The weight of each of them.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...]

    def refutation(self, A: Matrix) -> str | None:
        """Return None if it is true of these rows; otherwise a sentence that says why it is not."""
        n = A.shape[0]
        if not self.rows or len(self.rows) != len(self.weights):
            return f"it needs as many weights as rows, at least one; got {len(self.weights)} and {len(self.rows)}"
        if not all(type(i) is int and 0 <= i < n for i in self.rows) or len(set(self.rows)) != len(self.rows):
            return f"the rows must be different numbers from 0 to {n - 1}"
        if not all(type(weight) is int and weight > 0 for weight in self.weights):
            return "the weights must be positive integers"
        sums, e = products(columns_as_rows(A[list(self.rows)]), self.weights)
        column = next((j for j, total in enumerate(sums) if total), None)
        if column is None:
            return None
        return f"the combination is not zero in column {column}: {about(sums[column] * Fraction(2) ** e)}"


def columns_as_rows(A: Matrix) -> Matrix:
    """The transpose, in C order or CSR."""
    return sp.csr_array(A.T) if sp.issparse(A) else np.ascontiguousarray(A.T)


def entries(A: Matrix, i: int) -> list[tuple[int, float]]:
    """(column, value) of one row, dense or CSR."""
    if isinstance(A, np.ndarray):
        return list(enumerate(A[i].tolist()))
    part = slice(A.indptr[i], A.indptr[i + 1])
    return list(zip(A.indices[part].tolist(), A.data[part].tolist(), strict=True))


def as_floats(values: Sequence[Fraction]) -> NDArray:
    """The nearest floats; where the numbers are too large or too small for floats, those of a multiple by a power of 2."""
    largest = max((abs(value) for value in values), default=Fraction(0))
    if not largest:
        return np.zeros(len(values))
    size = largest.numerator.bit_length() - largest.denominator.bit_length()
    shift = Fraction(1) if -900 < size < 900 else Fraction(2) ** -size
    return np.array([float(value * shift) for value in values])
