"""Hypothesis strategies for tests of learners: data, and the values that learners are tried with.

All numbers are small whole ones or halves, on which all arithmetic is exact: two algorithms that are
the same must then agree to the last bit.

They draw by default what a tidy example leaves out, for that is where mistakes live: rows of zeros,
rows that come twice or with the opposite sign, ties, classes that come one after the other, constants
other than 0 and 1, weights of zero, costs that differ from one side to the other, orders that skip
rows and repeat them, and sizes around those that a loop is cut by.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


class Sample(NamedTuple):
    """Integer examples and their class numbers."""

    X: NDArray  # (rows, features) float64, whole numbers
    labels: NDArray  # (rows,) int64
    classes: int


class Separated(NamedTuple):
    """Examples of two classes that a known unit vector separates, with or without the constant feature."""

    X: NDArray
    labels: NDArray
    separator: NDArray  # (features + 1,), of norm 1; the last coordinate is the constant feature's
    margin: float  # the least y·⟨separator, (x, constant)⟩
    radius: float  # the greatest ‖(x, constant)‖
    constant: float


# Data


@st.composite
def samples(draw, classes=None, most_rows: int = 12, most_features: int = 4) -> Sample:
    """Draw a few examples of a few classes, each class at least once.

    Ties are many: some rows are zero, or another row, or its opposite. Of half of the samples the
    classes come one after the other, so that in a stream each of them is late.
    """
    number = draw(st.integers(2, 4) if classes is None else classes)
    rows = draw(st.integers(number, max(number, most_rows)))
    features = draw(st.integers(1, most_features))
    X = draw(related_rows(rows, features, 3))
    rest = draw(st.lists(st.integers(0, number - 1), min_size=rows - number, max_size=rows - number))
    labels = np.array(draw(st.permutations([*range(number), *rest])), dtype=np.int64)
    if draw(st.booleans()):
        labels.sort()
    return Sample(X, labels, number)


@st.composite
def related_rows(draw, rows: int, features: int, largest: int) -> NDArray:
    """Draw whole numbers up to this size; some rows are zero, or another row, or its opposite."""
    cell, number = st.integers(-largest, largest), st.integers(0, rows - 1)
    cells = draw(st.lists(cell, min_size=rows * features, max_size=rows * features))
    X = np.array(cells, dtype=np.float64).reshape(rows, features)
    relation = st.tuples(number, number, st.sampled_from([1, -1, 0]))
    for row, other, sign in draw(st.lists(relation, max_size=rows // 2)):
        X[row] = sign * X[other] + 0.0  # not −0
    return X


@st.composite
def separated(draw, most_rows: int = 20, most_features: int = 4) -> Separated:
    """Draw two classes separated by an integer hyperplane; rows on it are left out."""
    features = draw(st.integers(1, most_features))
    constant = draw(constants())
    normal = np.array(draw(st.lists(st.integers(-3, 3), min_size=features + 1, max_size=features + 1)), dtype=np.float64)
    normal[-1] *= constant != 0
    rows = draw(st.integers(2, most_rows))
    X = draw(related_rows(rows, features, 4))
    padded = np.hstack([X, np.full((rows, 1), constant)])
    X, padded = X[padded @ normal != 0], padded[padded @ normal != 0]
    if len(X) < 2 or len(set(np.sign(padded @ normal))) < 2:  # too few left: two rows that a coordinate separates
        X, normal = np.eye(2, features) if features > 1 else np.array([[1.0], [-1.0]]), np.zeros(features + 1)
        X[1] = -X[0]
        normal[0] = 1.0
        padded = np.hstack([X, np.full((2, 1), constant)])
    unit = normal / np.linalg.norm(normal)
    signs = np.sign(padded @ normal)
    least = float(np.abs(padded @ normal).min())
    margin = math.sqrt(least**2 / (normal @ normal))  # one rounding of a quotient of integers: never above the radius
    radius = float(np.linalg.norm(padded, axis=1).max())
    return Separated(X, (signs > 0).astype(np.int64), unit, margin, radius, constant)


# What learners are told


def constants() -> st.SearchStrategy[float]:
    """Draw a constant feature; 0 for none. A square must not be taken for the number itself."""
    return st.sampled_from([1.0, 0.0, 3.0, 0.5])


def margins() -> st.SearchStrategy[float]:
    """Draw the margin δ of a rule; whole numbers are reached exactly."""
    return st.sampled_from([0.0, 1.0, 2.5, 4.0])


def rates() -> st.SearchStrategy[float]:
    """Draw the rate η of a rule."""
    return st.sampled_from([1.0, 0.5, 3.0])


def row_weights(rows: int) -> st.SearchStrategy[NDArray]:
    """Draw one weight for each row, some of them 0, not all."""
    weight = st.sampled_from([1.0, 0.0, 0.5, 2.0, 3.0])
    return st.lists(weight, min_size=rows, max_size=rows).map(_not_all_zero)


def class_weights(classes: int) -> st.SearchStrategy[NDArray]:
    """Draw one weight for each class, some of them 0, not all."""
    return row_weights(classes)


def _not_all_zero(weight: list[float]) -> NDArray:
    return np.array(weight) if any(weight) else np.ones(len(weight))


@st.composite
def costs(draw, classes: int) -> NDArray:
    """Draw a cost matrix (labels, classes) with zeros on its diagonal.

    It is never symmetric: to take one class for another costs more than to take the other for it.
    """
    size = classes**2
    halves = draw(st.lists(st.integers(0, 8), min_size=size, max_size=size))
    cost = np.array(halves, dtype=np.float64).reshape(classes, classes) / 2
    np.fill_diagonal(cost, 0.0)
    if np.array_equal(cost, cost.T):
        cost[0, -1] += 1
    return cost


# How rows are visited


def sizes(unit: int, most: int = 3) -> st.SearchStrategy[int]:
    """Draw a number of rows around a multiple of an internal size, up to `most` times that size.

    It is just as many rows, one less or one more; and at least one.
    """
    times, beside = st.integers(0, most), st.integers(-1, 1)
    return st.builds(lambda times, beside: max(times * unit + beside, 1), times, beside)


@st.composite
def orders(draw, rows: int) -> NDArray:
    """Draw the numbers of the rows that an epoch visits, one at least.

    They are all rows, as they stand or in any order; or a part of them, two of which have changed
    places, so that nothing shows at the ends; or any of them, with repeats and gaps.
    """
    kind = draw(st.sampled_from(["as they stand", "any order", "a part", "repeats and gaps"]))
    if kind == "as they stand":
        return np.arange(rows)
    if kind == "any order":
        return np.array(draw(st.permutations(range(rows))), dtype=np.int64)
    if kind == "repeats and gaps":
        any_rows = st.lists(st.integers(0, rows - 1), min_size=1, max_size=2 * rows)
        return np.array(draw(any_rows), dtype=np.int64)
    first, last = sorted(draw(st.tuples(st.integers(0, rows - 1), st.integers(0, rows - 1))))
    order = np.arange(first, last + 1)
    if len(order) >= 4:
        at = draw(st.integers(1, len(order) - 3))
        order[[at, at + 1]] = order[[at + 1, at]]
    return order


@st.composite
def chunks(draw, rows: int) -> list[NDArray]:
    """Draw the parts in which a stream of so many rows comes: their row numbers, none empty."""
    ends = draw(st.sets(st.integers(1, rows - 1))) if rows > 1 else set()
    return np.split(np.arange(rows), sorted(ends))
