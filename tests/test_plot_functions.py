"""Pictures of functions of a margin have what they show where it is."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from rosenblatt import plot
from rosenblatt.errors import InvalidParameter
from rosenblatt.rules import PA1, PA2, Perceptron


def drawn(ax):
    return {line.get_label(): np.column_stack(line.get_data()) for line in ax.lines if line.get_label()[0] != "_"}


LINES = [(-2, 0), (0, 1), (1, -1)]


@pytest.mark.parametrize(
    ("x0", "least", "most"), [(-0.5, -2, 0), (0, 0, 0), (2, 0, 1), (3, 1, 1)]
)  # kinks where neighbouring lines cross
def test_lines_of_subgradients_stay_below_and_others_do_not(x0, least, most):
    slopes = [-3, -2, -1, 0, 0.5, 1, 2]
    ax = plot.subgradient(x0, slopes, LINES)
    found = drawn(ax)
    x, f = found["f"].T
    assert np.allclose(f, np.max([a * x + b for a, b in LINES], axis=0))
    for line in ax.lines:
        if line.get_label().startswith("c = "):
            c = float(line.get_label()[4:].replace("−", "-"))
            below = (line.get_ydata() <= f + 1e-9).all()
            assert below == (least <= c <= most) == (line.get_linestyle() == "-")
            assert np.interp(x0, x, line.get_ydata()) == pytest.approx(np.interp(x0, x, f))
    said = [f"every c from {least} to {most} is a", f"{most} is the only"][least == most].replace("-", "−")
    assert ax.get_title() == f"f(x) = max(−2x, 1, x − 1): {said} subgradient at {x0:g}".replace("at -", "at −")


def test_the_inequality_is_drawn_for_one_place():
    ax = plot.subgradient()
    arrows = [text for text in ax.texts if text.arrow_patch is not None]
    (left, top), (right, lower) = arrows[0].xy, arrows[1].xy
    assert top == pytest.approx(1.8)
    assert lower == pytest.approx(0.6 * 1.8)
    assert left < -1.8 < right
    words = [text.get_text() for text in ax.texts]
    assert {"f(x) − f(x₀)", "c(x − x₀)", "(x₀, f(x₀))", "c = 0.5, above f"} <= set(words)


@pytest.mark.parametrize(
    "given",
    [{"lines": [1, 2]}, {"lines": []}, {"lines": [[1], [1, 2]]}, {"slopes": [np.inf]}, {"slopes": ["up"]}, {"x0": np.nan}],
)
def test_a_subgradient_is_of_numbers(given):
    with pytest.raises(InvalidParameter):
        plot.subgradient(**given)


def test_steps_are_those_of_the_rules():
    rules = {"perceptron": Perceptron(0.0, 1.0), "PA": PA1(float("inf")), "PA-I": PA1(0.5), "PA-II": PA2(0.5)}
    ax = plot.steps(rules, length=4.0)
    formulas = [
        lambda m: np.where(m <= 0, 1, 0),
        lambda m: np.maximum(0, 1 - m) / 4,
        lambda m: np.minimum(0.5, np.maximum(0, 1 - m) / 4),
        lambda m: np.maximum(0, 1 - m) / 5,
    ]
    for line, formula in zip(ax.lines, formulas, strict=False):
        m, tau = line.get_data()
        drawn = np.isfinite(m)
        assert np.allclose(tau[drawn], formula(m[drawn]))
    assert np.isnan(ax.lines[0].get_xdata()).sum() == 1, "the perceptron's jumps, and no line is drawn there"
    assert [text.get_text() for text in ax.texts] == list(rules)
    with pytest.raises(InvalidParameter, match="one rule or more"):
        plot.steps({})
    with pytest.raises(InvalidParameter, match="length"):
        plot.steps(rules, length=0)


def test_a_steep_step_is_one_line_and_a_rule_that_stops_at_once_is_two():
    ax = plot.steps({"PA": PA1(float("inf")), "perceptron": Perceptron(0.0, 1.0)}, length=0.01)
    steep, stopping = (line.get_ydata() for line in ax.lines[:2])
    assert not np.isnan(steep).any()
    assert np.isnan(stopping).sum() == 1


def test_names_of_steep_lines_are_beside_the_frame():
    ax = plot.subgradient(0, slopes=[-50, 50], lines=[(0, 1)])
    ax.figure.draw_without_rendering()  # names far away would leave no room for the Axes, of which matplotlib warns
    low, high = ax.get_ylim()
    assert all(low <= text.xy[1] <= high for text in ax.texts)
