"""Pictures of vectors, of a margin and of a neuron have what they show where it is."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

from rosenblatt import Perceptron, plot
from rosenblatt.errors import InvalidData, InvalidParameter, UnknownLabel
from rosenblatt.theory import NotSeparable, gamma_affine, gamma_origin

POINTS = np.array([[3, -2], [-2, 2], [1, 2], [3, 3], [0, -2], [2, -2], [-1, 3]])
SIGNS = np.array([-1, -1, 1, 1, -1, -1, 1])


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def arrows(ax):
    """Where the arrows from the origin end."""
    return [tuple(text.xy) for text in ax.texts if text.arrow_patch is not None]


def lines(ax):
    return {line.get_label(): np.column_stack(line.get_data()) for line in ax.lines}


@pytest.mark.parametrize(
    ("y", "names", "after"), [(1, ["w", "x", "w + x"], (2, 3)), (-1, ["w", "−x", "x", "w − x"], (2, 3))]
)
def test_an_update_shows_three_vectors_and_two_lines_at_right_angles(y, names, after):
    w, x = np.array([3, 1]), y * np.array([-1, 2])
    ax = plot.update(w, x, y)
    assert arrows(ax) == [(3, 1), (-1, 2), after]
    assert texts(ax)[: len(names)] == names
    assert [text for text in texts(ax) if "°" in text] == ["98°", "60°"]
    assert lines(ax)["the line of w"] @ w == pytest.approx([0, 0], abs=1e-9)
    assert lines(ax)["the line of the new weights"] @ after == pytest.approx([0, 0], abs=1e-9)
    assert ax.get_title() == "The margin of x rises by ‖x‖² = 5, from −1 to 4"
    assert ax.get_aspect() == 1


def test_a_row_that_is_right_makes_no_update():
    ax = plot.update([1, 2], [2, 1], 1)
    assert arrows(ax) == [(1, 2), (2, 1)]
    assert ax.get_title() == "The margin of x is 4, above 0: no update"


def test_zero_weights_before_or_after_have_no_line():
    ax = plot.update([0, 0], [1, 2], -1)
    assert arrows(ax) == [(-1, -2), (-1, -2)]
    assert "the line of w" not in lines(ax)
    ax = plot.update([1, 2], [1, 2], -1)
    assert "the line of the new weights" not in lines(ax)
    assert ax.get_title().endswith("from −5 to 0")


@pytest.mark.parametrize(
    ("w", "x", "y", "name"), [([1, 2, 3], [1, 2], 1, "w"), ([1, 2], [1, np.nan], 1, "x"), ([1, 2], [1, 2], 0, "y"),
                              ([1, 2], [0, 0], 1, "x")]
)  # fmt: skip
def test_an_update_is_of_the_plane(w, x, y, name):
    with pytest.raises(InvalidParameter) as refusal:
        plot.update(w, x, y)
    assert refusal.value.parameter == name


STEPS = [
    (1, ["w and its line", "x is positive, its margin −1", "x as a vector", "x at the tip of w"]),
    (-1, ["w and its line", "x is negative, its margin −1", "−x as a vector", "−x at the tip of w"]),
]


@pytest.mark.parametrize(("y", "titles"), STEPS)
def test_an_update_in_six_steps(y, titles):
    w, x = np.array([3, 1]), y * np.array([-1, 2])
    panels = plot.update_steps(w, x, y)
    total = "w + x" if y > 0 else "w − x"
    titles = [*titles, f"the new weights {total}", "their line: x has margin 4"]
    assert [ax.get_title() for ax in panels] == [f"{k}. {title}" for k, title in enumerate(titles, 1)]
    ends = [[(3, 1)], [(3, 1)], [(3, 1), (-1, 2)], [(3, 1), (2, 3), (2, 3)], [(2, 3)], [(2, 3)]]
    assert [arrows(ax) for ax in panels] == ends
    third = [text for text in panels[3].texts if text.arrow_patch is not None][1]
    assert third.xyann == (3, 1), "y·x begins at the tip of w"
    for k, ax in enumerate(panels, 1):
        assert ("the line of w" in lines(ax)) == (k <= 4)
        assert ("the line of the new weights" in lines(ax)) == (k == 6)
        assert len(ax.patches) == (k in (1, 2, 6)), "the positive side is shaded"
        assert ax.get_aspect() == 1
    assert lines(panels[5])["the line of the new weights"] @ [2, 3] == pytest.approx([0, 0], abs=1e-9)


def test_six_steps_are_of_a_mistake_and_on_six_axes():
    with pytest.raises(InvalidParameter, match="this one has 4 and makes no update"):
        plot.update_steps([1, 2], [2, 1], 1)
    with pytest.raises(InvalidParameter, match="six of them"):
        plot.update_steps([1, 2], [-2, 1], 1, axes=pyplot.figure().subplots(1, 2))
    mine = pyplot.figure().subplots(1, 6)
    assert plot.update_steps([0, 0], [1, 2], -1, axes=mine)[0] is mine[0]
    plot.update_steps([1, 2], [1, 2], -1)  # the new weights are 0 and have no line


@pytest.mark.parametrize(("u", "v", "p"), [([1, 3], [4, 2], [2, 1]), ([-3, 1], [2, 0], [-3, 0]), ([1, -1], [1, 1], [0, 0])])
def test_a_projection_has_its_foot_its_distance_and_its_right_angle(u, v, p):
    ax = plot.projection(u, v)
    assert arrows(ax) == [tuple(v), tuple(u), tuple(p)][: 3 if any(p) else 2]
    rest = np.subtract(u, p)
    assert f"distance {np.hypot(*rest):.4g}" in texts(ax)
    assert f"p, ‖p‖ = {np.hypot(*p):.4g}" in texts(ax)
    assert np.column_stack(ax.lines[1].get_data()) == pytest.approx(np.array([p, u]))
    corner = np.column_stack(ax.lines[2].get_data())
    one, two = corner[0] - corner[1], corner[2] - corner[1]
    assert one @ two == pytest.approx(0, abs=1e-12)
    assert one @ rest == pytest.approx(-np.hypot(*one) * np.hypot(*rest)) or one @ rest == pytest.approx(0, abs=1e-12)
    assert ax.get_aspect() == 1


def test_a_vector_on_the_line_has_no_distance():
    assert not [text for text in texts(plot.projection([2, 4], [1, 2])) if "distance" in text]
    with pytest.raises(InvalidParameter):
        plot.projection([1, 2], [0, 0])


def test_lines_of_one_w_and_several_intercepts_are_parallel():
    ax = plot.intercept([1, 2], [4, -4, 0])
    found = lines(ax)
    for b in (-4, 0, 4):
        name = f"b = {b}".replace("-", "−")
        assert found[name] @ [1, 2] + b == pytest.approx([0, 0], abs=1e-9)
    assert texts(ax).count("+") == texts(ax).count("−") == 3
    (arrow,) = [text for text in ax.texts if text.arrow_patch is not None and text.xyann != (0, 0)]
    assert np.subtract(arrow.xy, arrow.xyann) @ [1, 2] == pytest.approx(-8), "against w as b grows from −4 to 4"
    marks = [text for text in ax.texts if text.get_text() in "+−" and text.get_text()]
    assert all((np.array(mark.xyann) @ [1, 2] > 0) == (mark.get_text() == "+") for mark in marks)


@pytest.mark.parametrize("intercepts", [[], [1, 1], [np.nan], [[1, 2]], [[1], [2, 3]], ["a"]])
def test_intercepts_are_numbers_each_once(intercepts):
    with pytest.raises(InvalidParameter, match="each once"):
        plot.intercept([1, 2], intercepts)


@pytest.mark.parametrize(("intercept", "gamma"), [(True, gamma_affine), (False, gamma_origin)])
def test_the_band_is_as_wide_as_the_margin_and_the_rows_that_hold_it_have_rings(intercept, gamma):
    points = POINTS if intercept else POINTS + SIGNS[:, None] * 3
    best = gamma(points, SIGNS)
    ax = plot.margin(points, SIGNS, intercept=intercept)
    offsets = [np.column_stack(line.get_data()) @ best.w + best.b for line in ax.lines[:3]]
    assert offsets == [pytest.approx([d, d], abs=1e-9) for d in (0, best.lower, -best.lower)]
    rings = next(drawn for drawn in ax.collections if drawn.get_label() == "support vector")
    assert np.array_equal(rings.get_offsets(), points[list(best.rows)])
    assert ax.get_title() == f"γ = {best.lower:.4g}, {len(best.rows)} support vectors"
    assert ax.get_aspect() == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["−1", "1", "support vector"]


def test_a_margin_is_drawn_where_there_is_one():
    mine = pyplot.figure().subplots()
    assert plot.margin(POINTS, SIGNS, ax=mine) is mine
    assert (
        plot.margin([[1.0, 2.0], [2.0, 1.0]], ["spam", "spam"], intercept=False).get_title().endswith("2 support vectors")
    )
    with pytest.raises(NotSeparable):
        plot.margin([[0, 0], [1, 1], [2, 2]], [1, -1, 1])
    with pytest.raises(InvalidData, match=r"two features, but its shape is \(3, 1\)"):
        plot.margin([[0], [1], [2]], [1, 1, -1])


def test_a_neuron_has_its_inputs_weights_and_answers():
    clf = Perceptron(order="cyclic", keep="last").fit([[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "no", "no", "yes"])
    ax = plot.neuron(clf)
    weights = [f"{weight:+g}".replace("-", "−") for weight in (*clf.coef_[0], clf.intercept_[0])]
    assert sorted(texts(ax)) == sorted(["x1", "x2", "1", *weights, "Σ", "≥ 0", "yes", "< 0", "no"])
    assert ax.get_title() == "Perceptron"
    thickness = [line.get_linewidth() for line in ax.lines[:3]]
    assert np.argmax(thickness) == np.argmax(np.abs([*clf.coef_[0], clf.intercept_[0]]))


def test_a_neuron_shows_the_largest_weights_and_says_how_many_it_leaves_out():
    clf = Perceptron()
    clf.fit(pd.DataFrame([[1, 0, 0, 0], [0, 0, 0, 1]], columns=["a", "b", "c", "d"]), [0, 1])
    clf.coef_ = np.array([[0.5, -7, 0.25, 2]])
    found = texts(plot.neuron(clf, most=2))
    assert [name for name in found if name in "abcd"] == ["b", "d"]
    assert {"−7", "+2", "2 more, of weight at most 0.5"} <= set(found)


def test_a_neuron_of_many_classes_is_that_of_one():
    y = np.array(["a", "b", "c", "a", "b", "c", "a"])
    clf = Perceptron(random_state=0).fit(POINTS, y)
    found = texts(plot.neuron(clf, "b", names=["left", "right"]))
    assert {"highest of 3", "b", "left", f"{clf.coef_[1, 0]:+.4g}".replace("-", "−")} <= set(found)
    assert "a" in texts(plot.neuron(clf))
    with pytest.raises(UnknownLabel):
        plot.neuron(clf, "z")
    with pytest.raises(InvalidParameter, match="names must be 2 names"):
        plot.neuron(clf, names=["one"])
    pairs = Perceptron(multiclass="ovo", max_iter=3, tol=None).fit(np.vstack([POINTS, POINTS[:1]]), [*y, "d"])
    with pytest.raises(InvalidData, match="4 classes have 6 weight vectors"):
        plot.neuron(pairs)


def test_a_neuron_needs_a_fitted_classifier_and_two_classes_no_label():
    with pytest.raises(InvalidParameter, match="a fitted linear classifier"):
        plot.neuron(Perceptron())
    with pytest.raises(InvalidParameter, match="two classes have one neuron"):
        plot.neuron(Perceptron().fit(POINTS, SIGNS), 1)


ZIGZAG = [[4, -2], [5, 0], [1, 1], [0, -5], [1, 4]]


def test_the_walk_ends_where_all_rows_are_on_one_side_of_its_line():
    ax = plot.hull(ZIGZAG)
    path = lines(ax)["p, step by step"]
    assert np.allclose(path[0], np.array([2, -1]) / np.sqrt(5))
    assert (np.diff(np.hypot(*path.T)) < 0).all()
    assert (ZIGZAG @ path[-1] > 0).all()
    assert not any((ZIGZAG @ p > 0).all() for p in path[:-1])
    assert lines(ax)["the line of p"] @ path[-1] == pytest.approx([0, 0], abs=1e-9)
    assert ax.get_title() == f"After 11 steps p separates the rows: ‖p‖ = {np.hypot(*path[-1]):.4g}"
    assert ax.get_aspect() == 1
    assert len(lines(plot.hull(ZIGZAG, away=True))["p, step by step"]) < 11


def test_the_walk_goes_on_where_nothing_separates():
    ax = plot.hull([[1, 0], [-1, 1], [-1, -2]], steps=3)
    assert len(lines(ax)["p, step by step"]) == 3
    assert "the line of p" not in lines(ax)
    assert ax.get_title().startswith("After 3 steps p does not separate the rows")
    assert plot.hull([[1, 2]]).get_title() == "After 1 step p separates the rows: ‖p‖ = 1"


@pytest.mark.parametrize("A", [[[1, 2, 3]], [[1, 2], [0, 0]]])
def test_a_walk_needs_rows_of_the_plane(A):
    with pytest.raises(InvalidData, match="two columns and no row of zeros"):
        plot.hull(A)


def test_the_cone_has_the_rows_that_are_near_and_far_mistakes_have_rings():
    rng = np.random.default_rng(1)
    X, w, sigma = rng.standard_normal((40, 2)), np.array([-0.2, 1]), 0.2
    y = np.where(X @ [1, 0.5] > 0, "up", "down")
    ax = plot.cone(w, X, y, sigma=sigma)
    cosine = X @ w / np.hypot(*X.T) / np.hypot(*w)
    near, wrong = np.abs(cosine) < sigma, (cosine > 0) != (y == "up")
    cones = [patch.get_path() for patch in ax.patches]
    inside = np.any([path.contains_points(X) for path in cones], axis=0)
    assert np.array_equal(inside, near)
    rings = next(drawn for drawn in ax.collections if drawn.get_label() == "far mistake")
    assert np.array_equal(rings.get_offsets(), X[wrong & ~near])
    assert ax.get_title() == f"σ = 0.2: {near.sum()} of 40 rows near the line, {(wrong & ~near).sum()} far mistakes"
    assert ax.get_aspect() == 1


def test_a_cone_needs_weights_a_sigma_and_the_plane():
    for w, sigma in [([0, 0], 0.1), ([1, 2], 0), ([1, 2], 1), ([1, 2, 3], 0.1)]:
        with pytest.raises(InvalidParameter):
            plot.cone(w, POINTS, SIGNS, sigma=sigma)
    with pytest.raises(InvalidData, match="two features"):
        plot.cone([1, 2], np.ones((2, 3)), [1, -1])
