"""Every Boolean function has its network, of the size promised, and the network says what it does."""

import re
from itertools import pairwise, product

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult, linprog

matplotlib.use("Agg")

from matplotlib import pyplot

from rosenblatt import Perceptron, plot
from rosenblatt.theory import network
from rosenblatt.theory.network import FORMS, Network, truth_rows

XOR = [0, 1, 1, 0]
THRESHOLD_FUNCTIONS = {1: 4, 2: 14, 3: 104}  # how many functions of n inputs one perceptron computes (Muroga 1971)


def test_a_unit_fires_where_its_sum_is_the_threshold():
    exact = Network(np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([2.0, 0.0]), np.array([1.0, 1.0]), 1.0)
    rows = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert exact.hidden(rows).tolist() == [[0, 1], [0, 0], [0, 1], [1, 1]]
    assert exact(rows).tolist() == [1, 0, 1, 1]


def tables(n):
    """Every Boolean function of n inputs."""
    return product([0, 1], repeat=2**n)


def separable(table):
    """Whether one perceptron computes the function: a linear program over all rows, without anything clever."""
    X = truth_rows(len(table).bit_length() - 1)
    padded = np.column_stack([X, np.ones(len(X))])
    signed = np.where(np.array(table) == 1, 1, -1)[:, None] * padded
    found = linprog(np.zeros(padded.shape[1]), A_ub=-signed, b_ub=-np.ones(len(X)), bounds=(None, None))
    assert found.status in (0, 2)
    return found.status == 0


def symmetric(table):
    X = truth_rows(len(table).bit_length() - 1)
    return len({(ones, value) for ones, value in zip(X.sum(axis=1), table, strict=True)}) == len(X[0]) + 1


def by_hand(net, x):
    """The output for one row, unit by unit."""
    fired = [
        sum(w * b for w, b in zip(row, x, strict=True)) >= t for row, t in zip(net.weights, net.thresholds, strict=True)
    ]
    return int(sum(v for v, on in zip(net.output_weights, fired, strict=True) if on) >= net.output_threshold)


def as_written(net, x):
    """The output for one row, computed from the words of the description alone."""
    values = {f"x{i + 1}": bool(bit) for i, bit in enumerate(x)}
    for line in net.describe().splitlines():
        unit, words = re.fullmatch(r"(\w+): .* ≥ \S+   (.*)", line).groups()
        if found := re.fullmatch(r"at least (\d+) of (.*)", words):
            values[unit] = sum(eval(literal, {}, values) for literal in found[2].split(", ")) >= int(found[1])
        else:
            values[unit] = eval(words, {"always": True, "never": False}, values)
    return int(values["y"])


# All functions


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_function_in_every_form(n):
    X, singles = truth_rows(n), 0
    for table in tables(n):
        true = sum(table)
        minterms, complement = Network.from_table(table, "minterms"), Network.from_table(table, "complement")
        assert len(minterms.weights) == true
        assert len(complement.weights) == 2**n - true
        found = [minterms, complement]
        for form, possible in {"symmetric": symmetric, "single": separable}.items():
            if possible(table):
                found.append(Network.from_table(table, form))
                singles += form == "single"
                assert len(found[-1].weights) <= (n if form == "symmetric" else 1)
            else:
                with pytest.raises(ValueError, match=f"form='{form}' is for functions"):
                    Network.from_table(table, form)
        auto = Network.from_table(table)
        assert len(auto.weights) == min(len(net.weights) for net in found) <= 2 ** (n - 1)
        for net in [*found, auto]:
            assert net(X).tolist() == list(table)
            assert [by_hand(net, x) for x in X] == list(table)
            if np.isin(net.weights, (-1, 0, 1)).all():
                assert [as_written(net, x) for x in X] == list(table)
    assert singles == THRESHOLD_FUNCTIONS[n]


def test_monotone_functions_of_four_inputs_that_one_perceptron_computes():
    """168 monotone functions of four inputs (Dedekind), 150 of them computed by a perceptron (Muroga)."""
    X = truth_rows(4)
    below = (X[:, None, :] <= X[None, :, :]).all(axis=2)
    monotone = {(False,) * 16}
    for row in range(16):  # every monotone function is a union of upward closed sets
        monotone |= {tuple(np.array(table) | below[row]) for table in monotone}
    assert len(monotone) == 168
    single = 0
    for table in monotone:
        try:
            net = Network.from_table(table, "single")
        except ValueError:
            assert not separable(table)
            continue
        single += 1
        assert np.array_equal(net(X), table)
        assert (net.weights >= 0).all()
    assert single == 150


@pytest.mark.parametrize("n", [4, 5])
@given(data=st.data())
def test_drawn_functions(n, data):
    table = data.draw(st.lists(st.integers(0, 1), min_size=2**n, max_size=2**n))
    for form in ("minterms", "complement", "auto"):
        net = Network.from_table(table, form)
        assert net(truth_rows(n)).tolist() == table
    assert len(net.weights) <= min(sum(table), 2**n - sum(table))
    assert all(by_hand(net, x) == value for x, value in zip(truth_rows(n), table, strict=True))


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.integers(-12, 12))
def test_a_drawn_perceptron_is_found_again_with_weights_no_larger(weights, threshold):
    X = truth_rows(len(weights))
    table = X @ weights >= threshold - 0.5
    net = Network.from_table(table, "single")
    assert np.array_equal(net(X), table)
    assert np.array_equal(net.weights, np.rint(net.weights))
    assert net.thresholds[0] % 1 == 0.5
    assert np.abs(net.weights).sum() <= np.abs(weights).sum()
    assert len(Network.from_table(table).weights) <= 1


def test_a_single_unit_has_the_least_weights():
    """Against all weights from −2 to 2, which are enough for three inputs."""
    X, least = truth_rows(3), {}
    for *weights, k in product(range(-2, 3), range(-2, 3), range(-2, 3), range(-6, 8)):
        table = tuple((X @ weights >= k - 0.5).astype(int).tolist())
        least[table] = min(least.get(table, 99), sum(map(abs, weights)))
    assert len(least) == THRESHOLD_FUNCTIONS[3]
    for table, total in least.items():
        assert np.abs(Network.from_table(table, "single").weights).sum() == total
    # A solver content with any weights answers −6 for the last of these, at the threshold −2.5.
    X, heavy = truth_rows(7), [3, 3, -2, -2, 4, 2, -5]
    for threshold in range(-8, 14):
        net = Network.from_table(X @ heavy >= threshold - 0.5, "single")
        assert np.abs(net.weights).sum() <= 21


# The forms


@pytest.mark.parametrize("n", range(1, 11))
def test_parity_has_a_unit_for_each_input(n):
    X = truth_rows(n)
    net = Network.from_function(lambda *x: sum(x) % 2, n)
    assert np.array_equal(net(X), X.sum(axis=1) % 2)
    assert len(net.weights) == n
    listed = Network.from_function(lambda *x: sum(x) % 2, n, form="minterms")
    assert len(listed.weights) == 2 ** (n - 1)
    assert np.array_equal(listed(X), X.sum(axis=1) % 2)
    steps = Network.from_function(lambda *x: sum(x) % 2, n, form="symmetric")
    assert (steps.weights == 1).all()
    assert steps.thresholds.tolist() == [c - 0.5 for c in range(1, n + 1)]
    assert steps.output_weights.tolist() == [(-1) ** c for c in range(n)]
    assert steps.output_threshold == 0.5


def test_a_minterm_fires_at_its_row_and_nowhere_else():
    net = Network.from_function(lambda *x: True, 4, form="minterms")
    X = truth_rows(4)
    assert np.array_equal(net.hidden(X), np.eye(16))
    assert np.array_equal(net.weights, np.where(X, 1, -1))
    assert np.array_equal(net.thresholds, X.sum(axis=1) - 0.5)
    assert (net.output_weights.tolist(), net.output_threshold) == ([1] * 16, 0.5)
    opposite = Network.from_function(lambda *x: False, 4, form="complement")
    assert np.array_equal(opposite.weights, net.weights)
    assert (opposite.output_weights.tolist(), opposite.output_threshold) == ([-1] * 16, -0.5)


@pytest.mark.parametrize("value", [0, 1])
def test_a_constant_needs_no_hidden_unit(value):
    for n in (1, 4):
        net = Network.from_table([value] * 2**n)
        assert net.weights.shape == (0, n)
        assert net(truth_rows(n)).tolist() == [value] * 2**n
        assert net(sp.csr_array(truth_rows(n))).tolist() == [value] * 2**n
        assert net.describe() == ("y: 0 ≥ −0.5   always" if value else "y: 0 ≥ 0.5   never")


@given(st.lists(st.integers(0, 1), min_size=2, max_size=9))
def test_counts_decide(counts):
    net = Network.from_counts(counts)
    X = truth_rows(len(counts) - 1)
    assert net(X).tolist() == [counts[ones] for ones in X.sum(axis=1)]
    assert len(net.weights) == sum(a != b for a, b in pairwise(counts))


def test_counts_have_no_limit():
    net = Network.from_counts([c % 2 for c in range(301)])
    X = np.random.default_rng(0).integers(0, 2, (50, 300))
    assert net.weights.shape == (300, 300)
    assert np.array_equal(net(X), X.sum(axis=1) % 2)


def test_no_perceptron_computes_exclusive_or_and_two_levels_do():
    assert not separable(XOR)
    assert all(separable(table) for table in ([0, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 0], [0, 0, 1, 0]))
    X = truth_rows(2)
    for form in ("minterms", "complement", "symmetric", "auto"):
        net = Network.from_table(XOR, form)
        assert len(net.weights) == 2
        assert net(X).tolist() == XOR
    with pytest.raises(ValueError, match="not linearly separable"):
        Network.from_table(XOR, "single")
    # What the output unit looks at is separable, so it can be learned as well as constructed.
    alone = Perceptron(order="cyclic", tol=None, max_iter=50).fit(X, XOR)
    above = Perceptron(order="cyclic", tol=None, max_iter=50).fit(net.hidden(X), XOR)
    assert (alone.stop_reason_, above.stop_reason_) == ("max_iter", "converged")
    assert above.predict(net.hidden(X)).tolist() == XOR


# Ways in


def test_table_function_and_rows_agree():
    def function(a, b, c):
        return (a and not b) or c

    table = [bool(function(*x)) for x in product([0, 1], repeat=3)]
    order = np.random.default_rng(0).permutation(8)
    X, y = truth_rows(3)[order], np.array(table)[order]
    nets = [
        Network.from_table(table, "minterms"),
        Network.from_table(np.array(table, dtype=float), "minterms"),
        Network.from_function(function, 3, "minterms"),
        Network.from_rows(X, y, "minterms"),
        Network.from_rows(sp.csc_array(X), y, "minterms"),
        Network.from_rows(np.vstack([X, X]), np.append(y, y), "minterms"),
    ]
    for net in nets:
        assert all(np.array_equal(a, b) for a, b in zip(net, nets[0], strict=True))


def test_the_first_input_is_the_highest_digit():
    assert truth_rows(3).tolist() == [list(x) for x in product([0, 1], repeat=3)]
    first = Network.from_table([0, 0, 0, 0, 1, 1, 1, 1])
    assert first.describe() == "h1: x1 ≥ 0.5   x1\ny: h1 ≥ 0.5   h1"


def test_missing_rows_are_refused_or_given_a_value():
    X, y = [[0, 1, 1], [1, 1, 1]], [1, 0]
    with pytest.raises(ValueError, match="6 of the 8 rows of the truth table are not in X, the first is 000; missing=0"):
        Network.from_rows(X, y)
    assert Network.from_rows(X, y, missing=0)(truth_rows(3)).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert Network.from_rows(X, y, missing=1)(truth_rows(3)).tolist() == [1, 1, 1, 1, 1, 1, 1, 0]
    assert Network.from_rows(np.zeros((0, 2)), [], missing=1)(truth_rows(2)).tolist() == [1] * 4


# Evaluation


@given(st.integers(1, 5), st.data())
def test_layout_and_type_do_not_matter(n, data):
    net = Network.from_table(data.draw(st.lists(st.integers(0, 1), min_size=2**n, max_size=2**n)))
    rows = np.array(data.draw(st.lists(st.integers(0, 2**n - 1), max_size=6)), dtype=int)
    X = truth_rows(n)[rows]
    expected, hidden = [by_hand(net, x) for x in X], net.hidden(X)
    layouts = [layout(X) for layout in (np.asfortranarray, pd.DataFrame, sp.csr_array, sp.csc_matrix, sp.coo_array)]
    for same in [*layouts, X.astype(bool), X.astype(np.int8), X.astype(np.float32), sp.csr_array(X.astype(bool))]:
        assert net(same).tolist() == expected
        assert np.array_equal(net.hidden(same), hidden)
    for x, value in zip(X, expected, strict=True):
        assert net(x) == net(x.tolist()) == value


def test_blocks_do_not_matter(monkeypatch):
    net = Network.from_function(lambda *x: sum(x) % 2, 6, form="minterms")
    monkeypatch.setattr(network, "BLOCK", 5 * 32)
    for X in (truth_rows(6), sp.csr_array(truth_rows(6))):
        assert np.array_equal(net(X), truth_rows(6).sum(axis=1) % 2)


def test_repeated_sparse_entries_are_added_up():
    twice = sp.csr_array((np.array([0.5, 0.5, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    before = twice.data.copy()
    assert Network.from_table([0, 0, 1, 0])(twice).tolist() == [1, 0]
    assert np.array_equal(twice.data, before)


# What is refused

AND = Network.from_table([0, 0, 0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AND([[0, 2]]), r"X must hold zeros and ones; it has 2"),
        (lambda: AND([[-1, 1]]), r"it has -1; \(x \+ 1\) / 2 makes 0 and 1 of −1 and 1"),
        (lambda: AND([[np.nan, 1]]), "it has nan"),
        (lambda: AND(sp.csr_array([[0, 3.0]])), "it has 3.0"),
        (lambda: AND([["0", "1"]]), "it holds values of type <U1"),
        (lambda: AND([[0, 1, 1]]), r"X must be \(rows, 2\), or a single row; its shape is \(1, 3\)"),
        (lambda: AND(np.zeros((2, 2, 2))), r"its shape is \(2, 2, 2\)"),
        (lambda: AND.describe(["a"]), "a name for each of the 2 inputs"),
        (lambda: Network.from_table([0, 1, 1]), r"2\^n entries: 2, 4, 8, …; this one has shape \(3,\)"),
        (lambda: Network.from_table([1]), r"this one has shape \(1,\)"),
        (lambda: Network.from_table([]), r"this one has shape \(0,\)"),
        (lambda: Network.from_table([[0, 1], [1, 0]]), r"this one has shape \(2, 2\)"),
        (lambda: Network.from_table([0, 2]), "the truth table must hold zeros and ones; it has 2"),
        (
            lambda: Network.from_table(XOR, "parity"),
            "form must be one of auto, minterms, complement, symmetric",
        ),
        (lambda: Network.from_table([0, 0, 1, 1], "symmetric"), "both values at equally many"),
        (
            lambda: Network.from_function(lambda a: "yes", 1),
            "the truth table must hold zeros and ones; it holds values of type",
        ),
        (lambda: Network.from_function(all, 0), "inputs must be a whole number ≥ 1 and ≤ 20; got 0"),
        (lambda: Network.from_function(all, 2.5), "inputs must be a whole number ≥ 1 and ≤ 20; got 2.5"),
        (lambda: Network.from_function(all, 60), r"≤ 20; got 60; .* Network.from_counts"),
        (lambda: Network.from_table(np.zeros(1 << 21, dtype=bool)), r"≤ 20; got 21"),
        (lambda: Network.from_rows(np.zeros((1, 70)), [1], missing=0), r"≤ 20; got 70"),
        (lambda: Network.from_rows([[0, 1], [0, 1]], [0, 1]), "the row 01 is in X with y = 0 and with y = 1"),
        (lambda: Network.from_rows([[0], [1]], [-1, 1]), "y must hold zeros and ones; it has -1"),
        (lambda: Network.from_rows([[0], [1]], [1]), r"y \(rows,\); they are \(2, 1\) and \(1,\)"),
        (lambda: Network.from_rows(np.zeros((2, 0)), [1, 1]), r"at least one input, .* they are \(2, 0\) and \(2,\)"),
        (
            lambda: Network.from_rows([[0], [1]], [0, 1], missing=2),
            "missing must be 0 or 1, the value at rows that X does not have",
        ),
        (lambda: Network.from_counts([1]), r"counts has the values for 0, 1, …, n ones, n ≥ 1; its shape is \(1,\)"),
    ],
)
def test_what_is_refused_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("x", [None, np.array([1.0, 1.0, 1.0])])
def test_a_solution_is_checked_at_every_row(monkeypatch, x):
    table = [0, 0, 0, 1]
    monkeypatch.setattr(network, "milp", lambda *_, **__: OptimizeResult(status=1 if x is None else 0, x=x, message="late"))
    with pytest.raises(ArithmeticError, match=r"not solved exactly \(late\); the forms minterms"):
        Network.from_table(table, "single")


def test_the_forms_are_those_documented():
    assert [*FORMS, "auto"] == re.findall(r"^    (\w+)  +\S.*$", Network.__doc__, flags=re.MULTILINE)[:5]


# Words and pictures


def test_the_description():
    majority = Network.from_counts([0, 0, 1, 1])
    assert str(majority) == ("3 inputs, 1 hidden unit\nh1: x1 + x2 + x3 ≥ 1.5   at least 2 of x1, x2, x3\ny: h1 ≥ 0.5   h1")
    heavy = Network.from_function(lambda a, b, c: a or (b and c), 3)
    assert heavy.describe(["a", "b", "c"]) == "h1: 2·a + b + c ≥ 1.5\ny: h1 ≥ 0.5   h1"
    nor = Network.from_table([1, 0, 0, 1], "complement")
    assert nor.describe().splitlines()[-1] == "y: −h1 − h2 ≥ −0.5   not h1 and not h2"
    assert (
        str(Network.from_function(lambda *x: sum(x) % 2, 6, "minterms"))
        == "6 inputs, 32 hidden units; describe() writes them out"
    )


@pytest.mark.parametrize("counts", [[0, 1, 0], [0, 0, 1, 1], [0, 1, 0, 1, 0]], ids=["xor", "majority", "parity"])
def test_the_picture_shows_every_unit_weight_and_threshold(counts):
    net = Network.from_counts(counts)
    ax = plot.network(net)
    units, inputs = net.weights.shape
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if re.fullmatch(r"x\d+", text)] == [f"x{i + 1}" for i in range(inputs)]
    assert [text for text in texts if text[0] == "h"] == [f"h{h + 1}\n≥ {t:g}" for h, t in enumerate(net.thresholds)]
    assert f"y\n≥ {net.output_threshold:g}" in texts
    weights = sorted(float(text.replace("−", "-")) for text in texts if text[0] in "+−")
    assert weights == sorted([*net.weights.ravel(), *net.output_weights])
    assert len(ax.lines) == units * inputs + units
    assert {line.get_linestyle() for line in ax.lines} <= {"-", "--"}
    assert sum(line.get_linestyle() == "--" for line in ax.lines) == sum(weight < 0 for weight in weights)
    assert ax.get_title() == str(net).splitlines()[0]
    pyplot.close("all")


def test_labels_of_edges_are_apart():
    ax = plot.network(Network.from_function(lambda *x: sum(x) % 2, 4, "minterms"))
    places = [text.get_position() for text in ax.texts if text.get_text()[0] in "+−"]
    first = sorted(y for x, y in places if np.isclose(x, places[0][0]))
    assert len(first) == 32
    assert np.allclose(np.diff(first), np.diff(first)[0])
    pyplot.close("all")


def test_weights_of_zero_have_no_edge_and_large_networks_no_picture():
    ax = plot.network(Network.from_table([0, 0, 0, 0, 1, 1, 1, 1]))
    assert len(ax.lines) == 2
    mine = pyplot.figure().subplots()
    assert plot.network(AND, mine) is mine
    with pytest.raises(ValueError, match="32 hidden units with 6 inputs have 192 edges, of which at most 64"):
        plot.network(Network.from_function(lambda *x: sum(x) % 2, 6, "minterms"))
    pyplot.close("all")
