"""Steps and bounds of the rules, in numbers that floating point holds exactly, on both sides of each edge."""

import math

import pytest

from rosenblatt.rules import KINDS, PA1, PA2, SHORT, Diminishing, Mira, Perceptron, Uneven, step

STEPS = [
    (Perceptron(margin=0.5, rate=2.0), [(-3.0, 4.0, 1, 2.0), (0.5, 4.0, 7, 2.0), (0.75, 4.0, 1, 0.0)]),
    (Diminishing(0.5, 2.0, 1.0), [(0.5, 4.0, 1, 2.0), (0.5, 4.0, 8, 0.25), (0.75, 4.0, 8, 0.0)]),
    (Diminishing(0.0, 2.0, 0.5), [(0.0, 4.0, 16, 0.5), (0.25, 4.0, 16, 0.0)]),
    # to the margin of 1, however short the row, and by C at most; a row of length 0 stays
    (PA1(C=3.0), [(0.5, 0.5, 1, 1.0), (-3.0, 1.0, 1, 3.0), (-3.0, 2.0, 1, 2.0), (1.0, 4.0, 1, 0.0), (-1.0, 0.0, 1, 0.0)]),
    (PA2(C=0.25), [(0.0, 2.0, 1, 0.25), (0.0, 0.5, 1, 0.4), (-4.0, 0.5, 9, 2.0), (1.0, 4.0, 1, 0.0), (-1.0, 0.0, 1, 0.0)]),
    # of the steps of MIRA with β = 0 only the first, at a margin of exactly 0, is that of the perceptron
    (
        Mira(margin=0.0),
        [(0.0, 4.0, 1, 1.0), (0.0, 4.0, 2, 0.0), (-2.0, 4.0, 1, 0.5), (-9.0, 4.0, 2, 1.0), (1.0, 4.0, 1, 0.0)],
    ),
    (Mira(margin=0.0), [(-1.0, 0.0, 1, 0.0), (0.0, 0.0, 1, 0.0), (-0.25, 0.5, 2, 0.5)]),
    (Mira(margin=2.0), [(0.0, 4.0, 1, 0.5), (0.0, 4.0, 2, 0.5), (1.5, 1.0, 3, 0.5), (2.0, 4.0, 1, 0.0)]),
]


@pytest.mark.parametrize(("rule", "cases"), STEPS, ids=repr)
def test_the_step_of_a_rule(rule, cases):
    for positive in (False, True):
        assert [step(rule, m, length, k, positive) for m, length, k, _ in cases] == [tau for *_, tau in cases]


@pytest.mark.parametrize(
    ("m", "positive", "tau"), [(3.0, True, 0.5), (3.25, True, 0.0), (-1.0, False, 0.5), (-0.75, False, 0.0)]
)
def test_each_side_of_uneven_margins_has_its_own(m, positive, tau):
    assert step(Uneven(positive=3.0, negative=-1.0, rate=0.5), m, 4.0, 1, positive) == tau


@pytest.mark.parametrize("rule", [PA1(C=math.inf), PA2(C=math.inf), Mira(margin=1.0)], ids=repr)
def test_a_margin_that_rounding_missed_is_no_reason_to_move(rule):
    assert step(rule, 1.0 - SHORT / 2, 1.0, 2, True) == 0.0
    assert step(rule, 1.0 - 2 * SHORT, 1.0, 2, True) > 0.0


# With R = 2 and γ = ½: what the theorems promise for one row at a time, and for batches of 3.
BOUNDS = [
    (Perceptron(margin=3.0, rate=2.0), 28.0, 60.0),
    (Diminishing(margin=3.0, rate=2.0, power=0.0), 28.0, 60.0),
    (Uneven(positive=3.0, negative=-1.0, rate=2.0), 28.0, 60.0),
    (Uneven(positive=-1.0, negative=3.0, rate=2.0), 28.0, 60.0),
    (Uneven(positive=-1.0, negative=-2.0, rate=2.0), 16.0, 48.0),
    (PA1(C=0.125), 32.0, math.inf),
    (PA1(C=1.0), 16.0, math.inf),
    (PA2(C=0.125), 32.0, math.inf),
    (Mira(margin=8.0), 32.0, math.inf),
    (Mira(margin=0.0), math.inf, math.inf),
]


@pytest.mark.parametrize(("rule", "single", "batches"), BOUNDS, ids=repr)
def test_the_bound_of_a_rule(rule, single, batches):
    assert rule.bound(2.0, 0.5) == rule.bound(2.0, 0.5, batch=1) == pytest.approx(single, rel=1e-12)
    assert rule.bound(2.0, 0.5, batch=3) == pytest.approx(batches, rel=1e-12)


def test_what_a_rule_says_of_its_steps():
    """Whether they use the length, whether the bound is one of updates, and which step is the longest."""
    said = {
        "Perceptron": (False, True, 2.0),
        "Diminishing": (False, True, 2.0),
        "Uneven": (False, True, 2.0),
        "PA1": (True, False, 3.0),
        "PA2": (True, False, None),
        "Mira": (True, False, 1.0),
    }
    rules = [Perceptron(0.5, 2.0), Diminishing(0.5, 2.0, 1.0), Uneven(3.0, -1.0, 2.0), PA1(3.0), PA2(0.25), Mira(2.0)]
    assert {type(rule).__name__: type(rule) for rule in rules} == KINDS
    found = [(rule.uses_length, rule.bounds_updates, getattr(rule, "largest_step", None)) for rule in rules]
    assert found == [said[type(rule).__name__] for rule in rules]


def test_what_is_no_rule_has_no_step():
    with pytest.raises(TypeError, match="no step is defined for the rule tuple"):
        step((0.0, 1.0), 0.0, 1.0, 1, True)
