"""The step of a rule in CUDA C++ is the step in Python, to the last bit: each is compiled here with the C compiler."""

import ctypes
import math
import shutil
import struct
import subprocess
import sys
from math import inf, nan, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rosenblatt import rules
from rosenblatt.engine.jit import jit
from rosenblatt.errors import UnsupportedOperation
from rosenblatt.gpu.translation import rule_values, step_source
from rosenblatt.rules import step

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc, gcc or clang)")
# What CUDA has and C has not.
HEADER = "#include <math.h>\n#include <stdbool.h>\n#define __device__\n#define __forceinline__\n"

numbers = st.floats(-1e6, 1e6) | st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0, inf, -inf, nan])
margins = numbers | st.integers(-5, 5).map(float)
lengths = st.floats(0.0, 1e6) | st.sampled_from([0.0, 1.0, 2.0, inf])
counts = st.integers(1, 1000) | st.integers(1, 2**53)
positives = st.floats(0.0, 1e6, exclude_min=True)
RULES = {
    "Perceptron": st.builds(rules.Perceptron, positives | st.just(0.0), positives),
    "Diminishing": st.builds(rules.Diminishing, positives | st.just(0.0), positives, st.floats(0, 1)),
    "Uneven": st.builds(rules.Uneven, st.floats(-10, 10), st.floats(-10, 10), positives),
    "PA1": st.builds(rules.PA1, positives | st.just(inf)),
    "PA2": st.builds(rules.PA2, positives | st.just(inf)),
    "Mira": st.builds(rules.Mira, positives | st.just(0.0)),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that compiles the step of a rule, and gives it as a function of Python."""
    known = {}

    def compile_step(kind):
        if kind not in known:
            folder = tmp_path_factory.mktemp(kind.__name__)
            (folder / "step.c").write_text(HEADER + step_source(kind))
            command = [
                COMPILER,
                "-O2",
                "-ffp-contract=off",
                "-Wall",
                "-Werror",
                "-shared",
                "-fPIC",
                "step.c",
                "-o",
                "step.so",
            ]
            subprocess.run([*command, "-lm"], cwd=folder, check=True, timeout=60)
            function = ctypes.CDLL(str(folder / "step.so")).step
            function.restype = ctypes.c_double
            function.argtypes = [ctypes.POINTER(ctypes.c_double), *[ctypes.c_double] * 3, ctypes.c_bool]
            known[kind] = function
        pointer = ctypes.POINTER(ctypes.c_double)
        return lambda rule, *facts: known[kind](rule_values(rule).ctypes.data_as(pointer), *facts)

    return compile_step


def bits(number):
    """The bits of a float; one pattern for every NaN, whose sign Python does not show."""
    return struct.pack("d", nan if math.isnan(number) else number)


def test_every_rule_is_drawn():
    assert RULES.keys() == rules.KINDS.keys()


@needs_compiler
@pytest.mark.parametrize("name", RULES)
@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_rules_have_the_same_bits_in_c(compiled, name, data):
    rule = data.draw(RULES[name])
    facts = data.draw(st.tuples(margins, lengths, counts, st.booleans()))
    assert bits(compiled(type(rule))(rule, *facts)) == bits(float(step(rule, *facts)))


SHARE, TWICE = np.float64(0.1), 2


class EveryStatement(NamedTuple):
    """A rule of a user, with everything that a step may have."""

    low: float
    high: float
    whole: int


def make_step(scale):
    """Register the step; `scale` is a variable around it."""

    @step.register
    def _(self: EveryStatement, margin, square, count, side):
        """A docstring has no translation and needs none."""
        wrong = margin <= 0
        η: float = 1 / 3 if side else SHARE
        first = second = -η
        first *= scale
        pass
        if not self.low < margin <= self.high != 7.5:
            double = max(margin, second, -square)
            margin += first
        elif wrong or (side and square > 1e-3):
            double = min(square, TWICE * margin) - abs(margin)
        else:
            if count == 1:
                return math.inf
            double = np.minimum(np.maximum(square, η), math.pi)
        if square > 0:
            if side:
                return double / sqrt(square) + wrong * np.abs(margin)
            short = math.exp(-np.abs(margin) / 1e6)
        else:
            short = math.log(count) + +float(self.whole)
        return (wrong and short) + (margin or double) * (side == wrong)


make_step(scale=0.7)


@needs_compiler
@settings(deadline=None, max_examples=500)
@given(
    rule=st.builds(EveryStatement, st.floats(-10, 0), st.floats(0, 10), st.integers(-3, 3)),
    facts=st.tuples(st.floats(-1e3, 1e3), lengths.filter(math.isfinite), counts, st.booleans()),
)
@example(rule=EveryStatement(-1.0, 2.0, 1), facts=(0.5, 1e-4, 1, False))  # infinity
def test_every_statement_has_the_same_bits_in_c(compiled, rule, facts):
    expected = float(step(rule, *facts))
    assert bits(compiled(EveryStatement)(rule, *facts)) == bits(expected)


class Powers(NamedTuple):
    """Powers by constants, which numba and the translation multiply out."""

    rate: float


@step.register
def _(rule: Powers, m, length, k, positive):
    if m > 0.0:
        return m**2 if positive else m**-3
    return m**TWICE * 2.0 + length**7


@jit
def compiled_step(rule, m, length, k, positive):
    return step(rule, m, length, k, positive)


@needs_compiler
@settings(deadline=None, max_examples=300)
@given(facts=st.tuples(st.floats(-1e3, 0) | st.floats(1e-3, 1e3), st.floats(0, 1e3), st.integers(1, 9), st.booleans()))
def test_powers_by_integers_are_those_of_the_engine(compiled, facts):
    ours, engine = compiled(Powers)(Powers(1.0), *facts), compiled_step(Powers(1.0), *facts)
    # The engine may regroup a product. Each of the 6 of length⁷ and the sum is off by half an ε at most, on either side.
    assert ours == pytest.approx(engine, rel=7 * sys.float_info.epsilon)


@needs_compiler
def test_squares_have_the_bits_of_a_product(compiled):
    for m in np.random.default_rng(0).lognormal(0, 5, 5000).tolist():
        assert compiled(Powers)(Powers(1.0), m, 1.0, 1, True) == m * m


@needs_compiler
def test_nan_goes_where_python_sends_it(compiled):
    for facts in [(nan, 1.0, 1, True), (0.0, nan, 1, True), (nan, nan, 2, False)]:
        for rule in (rules.PA1(1.0), rules.PA2(1.0), rules.Mira(0.5), rules.Perceptron(0.0, 1.0)):
            assert bits(compiled(type(rule))(rule, *facts)) == bits(step(rule, *facts))


def test_the_source_of_a_rule_reads_like_the_rule():
    assert step_source(rules.PA1) == (
        "__device__ __forceinline__ double first_min(double a, double b) { return b < a ? b : a; }\n"
        "__device__ __forceinline__ double step(const double *rule, double m, double length, double k, bool positive) {\n"
        "    double short_5;\n"
        "    short_5 = (1.0 - m);\n"
        "    return (((short_5 > 1e-12) && (length > 0.0)) ? first_min(rule[0], (short_5 / length)) : 0.0);\n"
        "}\n"
    )


TABLE = [1.0, 2.0]
HUGE = 10**400


def helper(x):
    return x


class Refused(NamedTuple):
    rate: float

    @property
    def double(self):
        return 2 * self.rate


def step_of(body):
    """Register a body for a rule of its own, and give the rule."""
    kind = type("Refused", (Refused,), {})
    body.__annotations__ = {"rule": kind}
    step.register(body)
    return kind


def with_loop(rule, m, length, k, positive):
    tau = 0.0
    for i in range(3):  # here
        tau += i
    return tau


def with_walrus(rule, m, length, k, positive):
    return tau if (tau := m + 1.0) > 0 else 0.0  # here


def with_call(rule, m, length, k, positive):
    return helper(m)  # here


def with_keyword(rule, m, length, k, positive):
    return max(m, 1.0, key=abs)  # here


def with_one_argument(rule, m, length, k, positive):
    return max(TABLE)  # here


def with_table(rule, m, length, k, positive):
    return m * TABLE[0]  # here


def with_list(rule, m, length, k, positive):
    return TABLE  # here


def with_property(rule, m, length, k, positive):
    return rule.double  # here


def with_rule(rule, m, length, k, positive):
    return m + rule  # here


def with_new_rule(rule, m, length, k, positive):
    rule = m  # here
    return rule


def with_floor_division(rule, m, length, k, positive):
    return k // 2  # here


def with_identity(rule, m, length, k, positive):
    return 1.0 if m is None else 0.0  # here


def with_membership(rule, m, length, k, positive):
    return 1.0 if k in (1, 2) else 0.0  # here


def with_text(rule, m, length, k, positive):
    return "1"  # here


def with_huge(rule, m, length, k, positive):
    return m + HUGE  # here


def with_nan(rule, m, length, k, positive):
    return math.nan  # here


def with_unknown_name(rule, m, length, k, positive):
    return m + there_is_no_such_name  # noqa: F821  # here


def with_two_names(rule, m, length, k, positive):
    a, b = m, length  # here
    return a + b


def without_return(rule, m, length, k, positive):  # here
    if m <= 0.0:
        return 1.0


def without_value(rule, m, length, k, positive):
    if m > 0.0:
        return  # here
    return 1.0


def with_unset_name(rule, m, length, k, positive):
    if m <= 0.0:
        tau = 1.0
    return tau  # here


def with_four_parameters(rule, m, length, k):  # here
    return m


REFUSED = [value for name, value in list(globals().items()) if name.startswith(("with_", "without_"))]


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_what_has_no_translation_is_refused_with_its_line(body):
    with pytest.raises(UnsupportedOperation, match="the step of Refused cannot be translated for a GPU") as caught:
        step_source(step_of(body))
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[caught.value.line - 1].endswith("# here"), caught.value
    assert caught.value.path == __file__
    assert caught.value.settings == {"device": "cpu"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (with_loop, "`for i in range(3):` is not supported"),
        (with_call, "the function helper is not supported"),
        (with_property, "rule.double is not a field of the rule; it has rate"),
        (with_unset_name, "tau does not have a value on every path to this line"),
        (with_floor_division, "`k // 2` is not supported"),
        (without_return, "a path through it ends without returning a number"),
    ],
)
def test_a_refusal_says_what_is_not_supported(body, problem):
    with pytest.raises(UnsupportedOperation) as caught:
        step_source(step_of(body))
    assert caught.value.problem == f"the step of Refused cannot be translated for a GPU: {problem}"


def test_a_rule_must_have_a_step_and_fields():
    with pytest.raises(UnsupportedOperation, match="float is not a rule"):
        step_source(float)


def test_a_rule_without_a_source_is_refused():
    namespace = {"__name__": __name__}
    exec("def body(rule, m, length, k, positive):\n    return m", namespace)
    with pytest.raises(UnsupportedOperation, match="its source is not there to be read"):
        step_source(step_of(namespace["body"]))


def test_fields_of_a_rule_are_numbers():
    assert rule_values(rules.Uneven(2, True, 0.5)).tolist() == [2.0, 1.0, 0.5]
    with pytest.raises(UnsupportedOperation, match="its field 'rate' is 'fast', not a number"):
        rule_values(rules.Perceptron(0.0, "fast"))
