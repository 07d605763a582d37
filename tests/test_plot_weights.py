"""Pictures of weights from update to update, and of how sure a learner is of them."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from rosenblatt import plot
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.plot.canvas import spread


def test_each_weight_is_a_line_of_steps_and_names_stand_where_they_end():
    path = np.array([[1, 1, 1, 1], [2, 1, 0, 2], [4, 1, 0, 2]])
    ax = plot.weights(path, ["a", "b"])
    assert np.array_equal([line.get_ydata() for line in ax.lines], path.T[::-1])
    assert [text.get_text() for text in ax.texts] == ["a: 4", "b: 1"]
    assert [text.xy for text in ax.texts] == [(2, 4), (2, 1)]
    assert ax.get_title() == "4 weights, 2 updates"
    assert len({line.get_linewidth() for line in ax.lines}) == 2, "those without a name are thin"


def test_weights_are_a_row_for_each_update():
    for path in ([1, 2], np.ones((0, 3)), [[np.nan]], [[1, 2], [3]], [["a"]]):
        with pytest.raises(InvalidData, match="a row for each update"):
            plot.weights(path)
    with pytest.raises(InvalidParameter, match="up to 1 names"):
        plot.weights([[1]], ["a", "b"])


def test_labels_are_spread_from_below():
    assert spread(np.array([1.0, 0.0, 0.1, 1.0]), 0.5).tolist() == [1.0, 0.0, 0.5, 1.5]
    assert spread(np.array([3.0, 1.0]), 0.5).tolist() == [3.0, 1.0]


def test_ellipses_are_where_the_distance_is_one_and_two():
    mean, sigma = np.array([1, 2]), np.array([[2, 0.5], [0.5, 1]])
    ax = plot.confidence(mean, sigma)
    for line, size in zip(ax.lines, (1, 2), strict=False):
        away = np.column_stack(line.get_data()) - mean
        assert np.allclose(np.einsum("ij,jk,ik->i", away, np.linalg.inv(sigma), away), size**2)
    low, high = np.sqrt(np.linalg.eigvalsh(sigma))
    assert ax.get_title() == f"standard deviations from {low:.4g} to {high:.4g}"
    assert ax.get_aspect() == 1


def test_variances_are_an_ellipse_along_the_axes():
    ax = plot.confidence([0, 0], [4, 1])
    assert np.abs(ax.lines[0].get_data()).max(axis=1) == pytest.approx([2, 1], abs=1e-3)


@pytest.mark.parametrize(
    "covariance", [[1, -1], [[1, 2], [0, 1]], [[1, 2], [2, 1]], [1, 2, 3], [np.nan, 1], [[1], [2, 3]], "wide"]
)
def test_a_covariance_is_symmetric_and_positive(covariance):
    with pytest.raises(InvalidParameter, match="covariance"):
        plot.confidence([1, 2], covariance)
