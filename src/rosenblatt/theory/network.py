"""Every Boolean function is a network of perceptrons two levels deep: hidden units look at the inputs, one output unit
looks at the hidden units, and each fires where its weighted sum reaches its threshold.

The proof is a construction. A hidden unit for a row of the truth table fires at that row and nowhere else: its weights are
+1 for ones and −1 for zeros, its threshold is the number of ones less ½. The output is the OR of the units for the true
rows, or NOR for the false rows, whichever are fewer. A function of how many inputs are 1, as parity is, needs one unit for
each change: n units instead of 2^(n−1). A function that a perceptron computes needs one.

Nothing is learned here. All thresholds lie halfway between the sums that can occur, so there are no ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import LinearConstraint, milp

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.exact.reading import Matrix, MatrixLike, Quantity, check_csr
from rosenblatt.feasibility.search import plural

MOST_INPUTS = 20  # of a truth table: 2^19 hidden units with 20 weights are 84 MB
MOST_INPUTS_SINGLE = 12  # up to which "auto" asks for a single unit
_SMALLEST = {"form": "auto"}
BLOCK = 1 << 22  # outputs of hidden units that are held at a time


class Network(NamedTuple):
    """Threshold units in two levels, which compute any Boolean function.

    Hidden unit h fires if weights[h]·x ≥ thresholds[h], and the network if
    output_weights·(hidden units) ≥ output_threshold.

    Made by `from_table`, `from_function`, `from_rows` or `from_counts`, it takes one of these forms:

    minterms    a unit for each true row, and OR
    complement  a unit for each false row, and NOR
    symmetric   a unit "at least c inputs are 1" for each c at which the value changes: at most n; parity has exactly n
    single      one unit, for a function that a perceptron computes, with the least sum of integer weights
    auto        the smallest of these: never more than 2^(n−1) units. In case of a tie, the first in this list.

    A constant function needs no unit. "single" solves an integer program, and so "auto" tries it up to 12 inputs only.

    Attributes
    ----------
    weights : (units, inputs) float64 array
        The weights of the hidden units.
    thresholds : (units,) float64 array
        The thresholds of the hidden units.
    output_weights : (units,) float64 array
        The weights of the output unit.
    output_threshold : float
        The threshold of the output unit.

    Examples
    --------
    Exclusive or, which no perceptron computes: either input and not both.

    >>> from rosenblatt import Network
    >>> xor = Network.from_table([0, 1, 1, 0], form="symmetric")
    >>> print(xor)
    2 inputs, 2 hidden units
    h1: x1 + x2 ≥ 0.5   x1 or x2
    h2: x1 + x2 ≥ 1.5   x1 and x2
    y: h1 − h2 ≥ 0.5   h1 and not h2
    >>> xor([[0, 0], [0, 1], [1, 0], [1, 1]])
    array([0, 1, 1, 0])
    """

    weights: NDArray
    thresholds: NDArray
    output_weights: NDArray
    output_threshold: float

    @classmethod
    def from_table(cls, table: ArrayLike, form: str = "auto") -> Network:
        """Return the network of a truth table.

        Parameters
        ----------
        table : 2^n zeros and ones, in the order of counting
            Entry k is the value at the row that writes k in binary, with x1 the first (highest) digit, as `truth_rows`
            lists them: for two inputs 00, 01, 10, 11.
        form : str, default="auto"
            "minterms", "complement", "symmetric", "single", or the smallest of them.

        Returns
        -------
        Network
        """
        values = _bits(table, "the truth table")
        inputs = values.size.bit_length() - 1
        if values.ndim != 1 or inputs < 1 or values.size != 1 << inputs:
            raise InvalidData(f"a truth table of n inputs has 2^n entries: 2, 4, 8, …; this one has shape {values.shape}")
        _check_inputs(inputs)
        if form != "auto" and form not in FORMS:
            raise InvalidParameter("form", form, f"one of auto, {', '.join(FORMS)}")
        return cls._make(_smallest(values) if form == "auto" else FORMS[form](values))

    @classmethod
    def from_function(cls, function: Callable[..., float], inputs: int, form: str = "auto") -> Network:
        """Return the network of a function of `inputs` arguments, each 0 or 1.

        Parameters
        ----------
        function : callable
            It is called once for each of the 2^n rows.
        inputs : int
            n, the number of its arguments.
        form : str, default="auto"
            As in `from_table`.

        Returns
        -------
        Network

        Examples
        --------
        >>> Network.from_function(lambda a, b, c: (a and b) or c, 3)([1, 1, 0])
        np.int64(1)
        """
        return cls.from_table([function(*row) for row in truth_rows(inputs).tolist()], form)

    @classmethod
    def from_rows(cls, X: MatrixLike, y: ArrayLike, form: str = "auto", missing: int | None = None) -> Network:
        """Return the network whose value at each row of X is that of y.

        Parameters
        ----------
        X : (rows, inputs) array or scipy sparse matrix of zeros and ones
            In any order. A row may come more than once, but not with both values.
        y : (rows,) array of zeros and ones
        form : str, default="auto"
            As in `from_table`.
        missing : 0, 1 or None, default=None
            The value at all rows that X does not have; None to refuse them.

        Returns
        -------
        Network
        """
        rows = _rows(X)
        values = _bits(y, "y")
        count, inputs = rows.shape
        if inputs < 1 or values.shape != (count,):
            raise InvalidData(
                f"X must be (rows, inputs) with at least one input, and y (rows,); they are {rows.shape} and {values.shape}"
            )
        if missing not in (None, 0, 1):
            raise InvalidParameter("missing", missing, "0 or 1, the value at rows that X does not have, or None to refuse")
        _check_inputs(inputs)
        number = (rows @ (1 << np.arange(inputs)[::-1])).astype(np.int64)
        present = np.zeros((2, 1 << inputs), dtype=bool)  # by value: whether the row is in X with it
        present[values, number] = True
        both, absent = present.all(axis=0), ~present.any(axis=0)
        if both.any():
            raise InvalidData(f"the row {both.argmax():0{inputs}b} is in X with y = 0 and with y = 1")
        if missing is None and absent.any():
            raise InvalidData(
                f"{absent.sum()} of the {absent.size} rows of the truth table are not in X, the first is "
                f"{absent.argmax():0{inputs}b}",
                hint="missing=0 or missing=1 gives the value at all of them",
            )
        return cls.from_table(np.where(absent, missing or 0, present[1]), form)

    @classmethod
    def from_counts(cls, counts: ArrayLike) -> Network:
        """Return the symmetric network whose value is counts[c] where c inputs are 1, c = 0 … n. There is no limit to n.

        Parameters
        ----------
        counts : n + 1 zeros and ones

        Returns
        -------
        Network

        Examples
        --------
        >>> parity = Network.from_counts([c % 2 for c in range(1001)])
        >>> parity.weights.shape
        (1000, 1000)
        """
        values = _bits(counts, "counts")
        if values.ndim != 1 or values.size < 2:
            raise InvalidData(f"counts has the values for 0, 1, …, n ones, n ≥ 1; its shape is {values.shape}")
        return cls._make(_steps(values))

    def __call__(self, X: MatrixLike) -> NDArray:
        """Return the output, 0 or 1, for each row of zeros and ones, dense or sparse; for a single row, a single number."""
        rows = _rows(X, self.weights.shape[1])
        result = np.empty(rows.shape[0], dtype=np.int64)
        size = max(BLOCK // max(len(self.weights), 1), 1)
        for first in range(0, len(result), size):
            hidden = _fires(rows[first : first + size], self.weights, self.thresholds)
            result[first : first + size] = hidden @ self.output_weights >= self.output_threshold
        return result if sp.issparse(X) or np.ndim(X) == 2 else result[0]

    def hidden(self, X: MatrixLike) -> NDArray:
        """Return the outputs of the hidden units for rows of zeros and ones.

        Parameters
        ----------
        X : (rows, inputs) array or scipy sparse matrix of zeros and ones
            The rows, or a single row.

        Returns
        -------
        (rows, units) int64 array
            What the output unit sees.
        """
        return _fires(_rows(X, self.weights.shape[1]), self.weights, self.thresholds).astype(np.int64)

    def describe(self, names: Sequence[str] | None = None) -> str:
        """Return a line for each unit: its sum, its threshold and, where all weights are −1, 0 and 1, when it fires.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the inputs; x1, x2, … by default.

        Returns
        -------
        str
        """
        units, inputs = self.weights.shape
        names = [f"x{i + 1}" for i in range(inputs)] if names is None else list(names)
        if len(names) != inputs:
            raise InvalidParameter("names", names, f"a name for each of the {inputs} inputs")
        inner = [f"h{h + 1}" for h in range(units)]
        lines = [_line(inner[h], self.weights[h], self.thresholds[h], names) for h in range(units)]
        return "\n".join([*lines, _line("y", self.output_weights, self.output_threshold, inner)])

    def __str__(self) -> str:
        units, inputs = self.weights.shape
        size = f"{plural(inputs, 'input')}, {plural(units, 'hidden unit')}"
        return f"{size}\n{self.describe()}" if units <= 20 else f"{size}; describe() writes them out"


def truth_rows(inputs: int) -> NDArray:
    """Return all 2^n rows of n zeros and ones, in the order of counting: (2^n, n).

    Parameters
    ----------
    inputs : int
        n, from 1 to 20.

    Examples
    --------
    >>> truth_rows(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    _check_inputs(inputs)
    return np.arange(1 << inputs)[:, None] >> np.arange(inputs)[::-1] & 1


# A network before it has its name: the fields in order.
Fields = tuple[NDArray, NDArray, NDArray, float]


def _minterms(table: NDArray) -> Fields:
    return *_detectors(table == 1), np.ones(int(table.sum())), 0.5


def _complement(table: NDArray) -> Fields:
    return *_detectors(table == 0), np.full(int((table == 0).sum()), -1.0), -0.5


def _symmetric(table: NDArray) -> Fields:
    counts = _counts(table)
    if counts is None:
        problem = "form='symmetric' is for functions of the number of ones, and this one has both values at equally many"
        raise InvalidData(problem, settings=_SMALLEST)
    return _steps(counts)


def _single(table: NDArray) -> Fields:
    unit = _perceptron(table)
    if unit is None:
        problem = "form='single' is for functions that one perceptron computes, and this one is not linearly separable"
        raise InvalidData(problem, settings=_SMALLEST)
    return _alone(*unit)


FORMS: dict[str, Callable[[NDArray], Fields]] = {
    "minterms": _minterms,
    "complement": _complement,
    "symmetric": _symmetric,
    "single": _single,
}


def _smallest(table: NDArray) -> Fields:
    """The form with the fewest hidden units, found without making the large ones."""
    true = int(table.sum())
    listed, fewest = (_minterms, true) if 2 * true <= table.size else (_complement, table.size - true)
    if fewest <= 1:
        return listed(table)
    counts = _counts(table)
    changes = fewest if counts is None else np.count_nonzero(np.diff(counts))
    unit = _perceptron(table) if changes > 1 and table.size <= 1 << MOST_INPUTS_SINGLE else None
    if unit is not None:
        return _alone(*unit)
    return _steps(counts) if counts is not None and changes < fewest else listed(table)


def _detectors(chosen: NDArray) -> tuple[NDArray, NDArray]:
    """(weights, thresholds) of a unit for each chosen row, which fires there and nowhere else.

    The sum is the number of ones in the row, less one for each input that differs from it.
    """
    inputs = chosen.size.bit_length() - 1
    rows = np.flatnonzero(chosen)[:, None] >> np.arange(inputs)[::-1] & 1
    return 2.0 * rows - 1, rows.sum(axis=1) - 0.5


def _counts(table: NDArray) -> NDArray | None:
    """The value for each number of ones; None if that number does not decide it."""
    inputs = table.size.bit_length() - 1
    ones = np.bitwise_count(np.arange(table.size))
    counts = table[(1 << np.arange(inputs + 1)) - 1]
    return counts if np.array_equal(counts[ones], table) else None


def _steps(counts: NDArray) -> Fields:
    """A unit for each change of the value. With c ones, those up to c fire, and their changes add up to
    counts[c] − counts[0]."""
    change = np.diff(counts.astype(np.float64))
    at = np.flatnonzero(change)
    return np.ones((at.size, change.size)), at + 0.5, change[at], 0.5 - float(counts[0])


def _alone(weights: NDArray, threshold: float) -> Fields:
    return weights[None, :], np.array([threshold]), np.ones(1), 0.5


def _perceptron(table: NDArray) -> tuple[NDArray, float] | None:
    """(weights, threshold) of a perceptron that computes the table, with the least sum of integer weights; None if none
    does.

    A perceptron does not rise with an input at one row and fall with it at another. Where the function keeps to that, turn
    the inputs with which it falls. The weights are then ≥ 0, and it is enough to tell the true rows of which no one can be
    made a zero from the false rows of which no zero can be made a one.
    """
    inputs = table.size.bit_length() - 1
    row, bits = np.arange(table.size), 1 << np.arange(inputs)[::-1]
    change = [table[row | bit] - table[row & ~bit] for bit in bits]
    if any(step.min() < 0 < step.max() for step in change):
        return None
    falls = np.array([step.min() < 0 for step in change])
    turned = table[row ^ bits[falls].sum()]
    lowest, highest = turned == 1, turned == 0
    for bit in bits:
        lowest &= (row & bit == 0) | (turned[row ^ bit] == 0)
        highest &= (row & bit != 0) | (turned[row ^ bit] == 1)
    # Integers v ≥ 0 and k, such that v·x ≥ k at those true rows and v·x ≤ k − 1 at those false ones.
    edge = row[lowest | highest]
    sums = np.column_stack([edge[:, None] & bits > 0, -np.ones(edge.size)])
    limits = LinearConstraint(sums, np.where(lowest[edge], 0, -np.inf), np.where(lowest[edge], np.inf, -1))
    found = milp(np.append(np.ones(inputs), 0), integrality=np.ones(inputs + 1), constraints=limits)
    if found.status == 2:
        return None
    *v, k = np.rint(np.full(inputs + 1, np.nan) if found.x is None else found.x)
    weights, threshold = np.where(falls, -1, 1) * v, k - 0.5 - np.dot(v, falls)
    if not np.array_equal(truth_rows(inputs) @ weights >= threshold, table == 1):
        raise ArithmeticError(
            f"the integer program for a single unit was not solved exactly ({found.message}); the forms minterms, "
            "complement and symmetric solve none"
        )
    return weights + 0.0, float(threshold)


def _fires(rows: Matrix, weights: NDArray, thresholds: NDArray) -> NDArray:
    """Whether each unit fires at each row: (rows, units)."""
    return rows @ weights.T >= thresholds


def _line(unit: str, weights: NDArray, threshold: float, names: Sequence[str]) -> str:
    terms = [(weight, name) for weight, name in zip(weights.tolist(), names, strict=True) if weight]
    total = " ".join(
        f"{'−' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{abs(weight):g}·'}{name}" for weight, name in terms
    )
    total = "−" + total[2:] if total.startswith("−") else total[2:]
    line = f"{unit}: {total or '0'} ≥ {threshold:g}".replace("≥ -", "≥ −")
    return line if any(abs(weight) != 1 for weight, _ in terms) else f"{line}   {_words(terms, threshold)}"


def _words(terms: list[tuple[float, str]], threshold: float) -> str:
    """When a unit with weights −1 and 1 fires: where enough of its literals hold, an input with −1 counting as negated."""
    literals = [name if weight > 0 else f"not {name}" for weight, name in terms]
    enough = math.ceil(threshold + sum(weight < 0 for weight, _ in terms))
    if enough <= 0:
        return "always"
    if enough > len(literals):
        return "never"
    if enough == len(literals):
        return " and ".join(literals)
    return " or ".join(literals) if enough == 1 else f"at least {enough} of {', '.join(literals)}"


def _check_inputs(inputs: int) -> None:
    """Refuse a number of inputs whose truth table, of 2^inputs rows, would be too large."""
    advice = "a function of the number of ones has a network for any number of inputs, by Network.from_counts"
    Quantity(1, high=MOST_INPUTS, open_high=False, whole=True, advice=advice).check("inputs", inputs)


def _bits(values: ArrayLike, what: str) -> NDArray:
    """Zeros and ones as int8."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InvalidData(f"{what} must hold zeros and ones; it holds values of type {array.dtype}")
    wrong = array[(array != 0) & (array != 1)]
    if wrong.size:
        hint = "(x + 1) / 2 makes 0 and 1 of −1 and 1" if -1 in wrong else None
        raise InvalidData(f"{what} must hold zeros and ones; it has {wrong[0]}", hint=hint)
    return array.astype(np.int8)


def _rows(X: MatrixLike, inputs: int | None = None) -> Matrix:
    """Rows of zeros and ones as float64, dense or CSR; a single row counts as one of them."""
    rows: Any = sp.csr_array(X, copy=True) if sp.issparse(X) else np.atleast_2d(np.asarray(X))
    if sp.issparse(rows):
        check_csr(rows, "X")
        rows.sum_duplicates()
    _bits(rows.data if sp.issparse(rows) else rows, "X")
    if rows.ndim != 2 or inputs not in (None, rows.shape[1]):
        raise InvalidData(f"X must be (rows, {inputs or 'inputs'}), or a single row; its shape is {rows.shape}")
    return rows.astype(np.float64)
