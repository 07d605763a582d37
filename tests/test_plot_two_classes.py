"""Pictures of two classes: the proof that a line separates them or that none does, several lines, and slack."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from sklearn.svm import SVC

matplotlib.use("Agg")

from matplotlib import pyplot

from rosenblatt import Perceptron, plot
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.plot.plane import hull_corners
from rosenblatt.theory import gamma_affine, gamma_origin, margins

HALF = np.array([[-2, 2], [-3, -1], [-1, 0], [0, 2]])
SIGNS = np.repeat([-1, 1], 4)
XOR = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def rings(ax, name):
    return np.asarray(next(drawn for drawn in ax.collections if drawn.get_label() == name).get_offsets())


@pytest.mark.parametrize(("shift", "intercept"), [(0, False), (5, True)])
def test_of_separable_rows_the_widest_band_is_drawn(shift, intercept):
    points = np.vstack([HALF, -HALF]) + shift
    best = (gamma_affine if intercept else gamma_origin)(points, SIGNS)
    ax = plot.separability(points, SIGNS, intercept=intercept)
    assert ax.get_title() == f"separable: γ = {best.lower:.4g}"
    middle = np.column_stack(ax.lines[0].get_data())
    assert middle @ best.w + best.b == pytest.approx([0, 0], abs=1e-9)


def test_of_others_the_common_point_of_the_hulls_with_its_shares():
    ax = plot.separability(XOR, [0, 0, 1, 1])
    assert ax.get_title() == "not separable: both hulls contain (0.5, 0.5)"
    assert texts(ax) == ["1/2"] * 4
    star = ax.lines[-1]
    assert (*star.get_xdata(), *star.get_ydata()) == (0.5, 0.5)
    assert np.array_equal(np.sort(rings(ax, "share of the common point"), axis=0), np.sort(XOR, axis=0))
    assert len(ax.patches) == 2, "two hulls"
    assert ax.get_aspect() == 1


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=4, max_size=9), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_shares_of_either_class_make_the_common_point(points, intercept):
    points = np.array(points, dtype=float)
    signs = np.where(np.arange(len(points)) % 2, 1.0, -1.0)
    ax = plot.separability(points, signs, intercept=intercept)
    if ax.get_title().startswith("not separable"):
        star = np.array([*ax.lines[-1].get_xdata(), *ax.lines[-1].get_ydata()])
        for name in (-1, 1):
            hull = hull_corners(points[signs == name] if intercept else points * signs[:, None])
            ahead = np.roll(hull, -1, axis=0) - hull
            side = ahead[:, 0] * (star - hull)[:, 1] - ahead[:, 1] * (star - hull)[:, 0]
            assert (side >= -1e-9).all(), "the star is in either hull"
        shares = [eval(text) for text in texts(ax)]
        assert sum(shares) == pytest.approx(2 if intercept else 1, abs=0.05)
        ends = [
            np.column_stack(line.get_data()) for line in ax.lines[2 if intercept else 1 : -1]
        ]  # the outlines of the hulls come first
        assert all(np.allclose(end[1], star) for end in ends)
    pyplot.close("all")


def test_a_line_through_the_origin_that_is_not_there_is_refuted_by_the_signed_rows():
    ax = plot.separability([[1, 1], [2, 2]], [-1, 1], intercept=False)
    assert ax.get_title() == "not separable: 0 is a mean of the rows y·x"
    assert texts(ax) == ["2/3", "1/3"]
    assert np.array_equal(rings(ax, "share of 0"), [[-1, -1], [2, 2]])


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12))
def test_the_corners_of_a_hull_are_those_of_qhull(points):
    points = np.array(points, dtype=float)
    corners = hull_corners(points)
    assert {*map(tuple, corners)} <= {*map(tuple, points)}
    if np.linalg.matrix_rank(points - points[0]) == 2:
        expected = points[ConvexHull(points).vertices]
        assert {*map(tuple, corners)} == {*map(tuple, expected)}
    else:
        ends = points[np.lexsort(points.T[::-1])[[0, -1]]]
        assert {*map(tuple, corners)} == {*map(tuple, ends)}


def test_separators_have_their_margins_or_their_mistakes():
    points = np.vstack([HALF, -HALF])
    clf = Perceptron(keep="last", order="cyclic").fit(points, SIGNS)
    ax = plot.separators(points, SIGNS, {"mine": ([1, 0], 0.0), "learned": clf, "wrong": ([-1, 0], 0.5)})
    worst = margins(points, SIGNS, clf.coef_[0], clf.intercept_[0]).min()
    wrong = (SIGNS * (0.5 - points[:, 0]) <= 0).sum()
    right = (SIGNS * points[:, 0] <= 0).sum()
    words = [f"mine: {right} misclassified", f"learned: margin {worst:.3g}", f"wrong: {wrong} misclassified"]
    assert legend(ax) == ["−1", "1", *words]
    for line, (w, b) in zip(ax.lines, [([1, 0], 0), (clf.coef_[0], clf.intercept_[0]), ([-1, 0], 0.5)], strict=True):
        assert np.column_stack(line.get_data()) @ w + b == pytest.approx([0, 0], abs=1e-8)


@pytest.mark.parametrize(
    "lines",
    [
        {},
        {"a": 3},
        {"a": ([0, 0], 1)},
        {"a": ([1, 2, 3], 1)},
        {"a": ([1, 2], np.nan)},
        {"a": (["x", 2], 1)},
        {"a": Perceptron()},
    ],
)
def test_separators_are_lines(lines):
    with pytest.raises(InvalidParameter) as refusal:
        plot.separators(HALF, [1, 1, -1, -1], lines)
    assert refusal.value.parameter.startswith("lines")


def in_64_bits(X, y, C, start):
    """(w, b) of the least ½‖w‖² + C·Σξ, by a solver of general programs."""
    rows = np.hstack([y[:, None] * np.column_stack([X, np.ones(len(y))]), np.eye(len(y))])
    found = minimize(
        lambda v: v[:2] @ v[:2] / 2 + C * v[3:].sum(),
        np.append(start, np.maximum(0, 1 - rows[:, :3] @ start)),
        jac=lambda v: np.concatenate([v[:2], [0], np.full(len(y), C)]),
        constraints={"type": "ineq", "fun": lambda v: rows @ v - 1, "jac": lambda v: rows},
        bounds=[(None, None)] * 3 + [(0, None)] * len(y),
        method="SLSQP",
        options={"ftol": 1e-15},
    )
    return found.x[:2], found.x[2]


@pytest.mark.parametrize("C", [0.1, 10])
def test_slack_reaches_from_a_row_to_its_edge(C):
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 15)
    X = rng.normal(size=(30, 2)) + y[:, None]
    solved = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)  # whose kernels are in 32 bits
    w, b = in_64_bits(X, y, C, [*solved.coef_[0], *solved.intercept_])
    value = y * (X @ w + b)
    ax = plot.soft_margin(X, y, C)
    segments = [np.column_stack(line.get_data()) for line in ax.lines[3:]]
    short = value < 1 - 1e-4
    assert np.allclose([start for start, _ in segments], X[short])
    assert np.allclose([end @ w + b for _, end in segments], y[short], atol=1e-7)
    assert len(rings(ax, "support vector")) == (value < 1 + 1e-4).sum() == len(solved.support_)
    edges = [np.column_stack(line.get_data()) @ w + b for line in ax.lines[:3]]
    assert np.allclose(edges, [[0, 0], [1, 1], [-1, -1]], atol=1e-7)
    assert ax.get_title() == f"C = {C:g}: 1/‖w‖ = {1 / np.hypot(*w):.4g}, slack Σξ = {(1 - value[short]).sum():.4g}"


def test_a_large_price_of_slack_gives_the_widest_band():
    points = np.vstack([HALF, -HALF])
    ax = plot.soft_margin(points, SIGNS, C=1e6)
    assert ax.get_title() == f"C = 1e+06: 1/‖w‖ = {gamma_affine(points, SIGNS).lower:.4g}, slack Σξ = 0"


def test_rows_are_of_the_plane_and_the_price_is_positive():
    for draw in (plot.separability, plot.soft_margin, lambda X, y: plot.separators(X, y, {"a": ([1, 2], 0)})):
        with pytest.raises(InvalidData, match=r"two features, but its shape is \(2, 3\)"):
            draw(np.ones((2, 3)), [1, -1])
    with pytest.raises(InvalidParameter, match="C"):
        plot.soft_margin(XOR, [0, 0, 1, 1], C=0)


def test_rows_whose_best_weights_are_zero_have_no_band():
    with pytest.raises(InvalidData, match="least at w = 0 for these rows and C = 2"):
        plot.soft_margin([[0, 0], [1, 1], [0, 1], [1, 0]], [-1, -1, 1, 1], C=2)


def test_one_support_vector_is_one():
    assert plot.margin([[3, 4]], [1], intercept=False).get_title() == "γ = 5, 1 support vector"


@pytest.mark.parametrize("shift", [1e4, 1e8])
def test_the_soft_margin_far_from_the_origin_is_the_same(shift):
    points, labels = np.array([[0, 0], [1, 0], [2, 1], [3, 0]]), [-1, 1, -1, 1]
    assert (
        plot.soft_margin(points + shift, labels, C=100).get_title() == plot.soft_margin(points, labels, C=100).get_title()
    )


def test_the_soft_margin_of_rows_in_thousands_is_that_of_rows_in_ones():
    rng = np.random.default_rng(0)
    points, labels = np.vstack([rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + 1]), np.repeat([-1, 1], 6)
    small, large = (plot.soft_margin(size * points, labels, C=10 / size**2).get_title() for size in (1, 1000))
    assert small.partition("slack")[2] == large.partition("slack")[2]


def test_a_soft_margin_that_floats_cannot_minimise_is_refused_in_time():
    points = 1000 * np.random.default_rng(0).normal(size=(30, 2)) + 1e4
    with pytest.raises(InvalidData, match=r"could not be minimised within 0.01 % for C = 100"):
        plot.soft_margin(points, np.resize([-1, 1], 30), C=100)
    with pytest.raises(InvalidData, match=r"C = 1 is too large or too small for rows that are .* from their mean"):
        plot.soft_margin([[0, 0], [1e150, 1]], [0, 1])
