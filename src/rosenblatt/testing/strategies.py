"""Hypothesis strategies for data sets. The values are small integers, on which all arithmetic is exact: two algorithms that
are the same must then agree to the last bit."""

from __future__ import annotations

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


@st.composite
def samples(draw, classes=None, most_rows: int = 12, most_features: int = 4) -> Sample:
    """Draw a few examples of a few classes, each class at least once; many ties and repeated rows among them."""
    number = draw(st.integers(2, 4) if classes is None else classes)
    rows = draw(st.integers(number, max(number, most_rows)))
    features = draw(st.integers(1, most_features))
    cells = draw(st.lists(st.integers(-3, 3), min_size=rows * features, max_size=rows * features))
    rest = draw(st.lists(st.integers(0, number - 1), min_size=rows - number, max_size=rows - number))
    labels = np.array(draw(st.permutations([*range(number), *rest])), dtype=np.int64)
    return Sample(np.array(cells, dtype=np.float64).reshape(rows, features), labels, number)


@st.composite
def separated(draw, most_rows: int = 20, most_features: int = 4) -> Separated:
    """Draw two classes separated by an integer hyperplane; rows on it are left out."""
    features = draw(st.integers(1, most_features))
    constant = float(draw(st.sampled_from([0, 1, 3])))
    normal = np.array(draw(st.lists(st.integers(-3, 3), min_size=features + 1, max_size=features + 1)), dtype=np.float64)
    normal[-1] *= constant != 0
    rows = draw(st.integers(2, most_rows))
    cells = draw(st.lists(st.integers(-4, 4), min_size=rows * features, max_size=rows * features))
    X = np.array(cells, dtype=np.float64).reshape(rows, features)
    padded = np.hstack([X, np.full((rows, 1), constant)])
    X, padded = X[padded @ normal != 0], padded[padded @ normal != 0]
    if len(X) < 2 or len(set(np.sign(padded @ normal))) < 2:  # too few left: two rows that a coordinate separates
        X, normal = np.eye(2, features) if features > 1 else np.array([[1.0], [-1.0]]), np.zeros(features + 1)
        X[1] = -X[0]
        normal[0] = 1.0
        padded = np.hstack([X, np.full((2, 1), constant)])
    unit = normal / np.linalg.norm(normal)
    signs = np.sign(padded @ normal)
    margin = float((signs * (padded @ unit)).min())
    radius = float(np.linalg.norm(padded, axis=1).max())
    return Separated(X, (signs > 0).astype(np.int64), unit, margin, radius, constant)
