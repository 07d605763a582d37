"""How fast does the number of operations grow with the size of the input? `growth` counts at several sizes and finds the
law behind the counts: 1, log n, n, n log n, n², n³, 2ⁿ or n·2ⁿ.

Counts are whole numbers, so a law is first asked to meet all of them exactly, with rational coefficients, at two sizes more
than it has coefficients. If one does, that is the answer, and it is a formula. Only if none does are the laws fitted by
least squares, each with the terms that usually come with it, and compared by what they leave unexplained: the information
criterion of Schwarz (1978), which charges ln m for each coefficient where there are m sizes.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, log2
from numbers import Real
from typing import Any

import numpy as np

from rosenblatt.counting.meter import KINDS, Flag
from rosenblatt.counting.operations import Operations, count_operations

TERMS: dict[str, Callable[[int], float]] = {
    "1": lambda n: 1,
    "log n": lambda n: log2(n),
    "n": lambda n: n,
    "n log n": lambda n: n * log2(n),
    "n²": lambda n: n**2,
    "n³": lambda n: n**3,
    "2ⁿ": lambda n: 2**n,
    "n·2ⁿ": lambda n: n * 2**n,
}
NAMES = {**{term: term for term in TERMS}, "log n": " log₂ n", "n log n": "n log₂ n"}
WHOLE_NAMES = {**NAMES, "log n": "⌊log₂ n⌋", "n log n": "n⌊log₂ n⌋"}
MEASURES = (*KINDS, "total", "steps", "flops")
UNDECIDED = "undecided"
SPARE = 2  # sizes, beside one for each coefficient, that could have contradicted an exact formula
SIZES = 4 + SPARE  # a cubic has four coefficients
DECISIVE = 6.0  # the difference of two criteria from which on one law is called far likelier than the other
COARSE = 0.2  # a law whose errors are larger than this part of the counts does not explain them

LONGEST = 64  # nobody has counted to 2⁶⁴, so beyond that size no count is exponential

# Whole numbers take the place of the logarithm: how often n can be halved before it is 1.
WHOLE = {**TERMS, "log n": lambda n: n.bit_length() - 1, "n log n": lambda n: n * (n.bit_length() - 1)}

# The terms of an exact formula, its law last, by their number.
EXACT = [
    ("1",), ("1", "n"), ("1", "log n"), ("1", "2ⁿ"), ("1", "n", "n²"), ("1", "n", "n log n"), ("1", "n", "2ⁿ"),
    ("1", "2ⁿ", "n·2ⁿ"), ("1", "n", "n²", "n³"), ("1", "log n", "n", "n log n"), ("1", "n", "2ⁿ", "n·2ⁿ"),
]  # fmt: skip

# The terms of a fitted law: itself and what usually comes with it.
FITTED = [
    ("1",), ("1", "log n"), ("1", "n"), ("1", "n", "n log n"), ("1", "n", "n²"), ("1", "n²", "n³"), ("1", "2ⁿ"),
    ("1", "2ⁿ", "n·2ⁿ"),
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Growth:
    """The law of growth of a function's operations.

    Attributes
    ----------
    law : str
        The term that grows fastest, "1", "log n", "n", "n log n", "n²", "n³", "2ⁿ" or "n·2ⁿ"; "undecided" where several
        explain the counts equally well, or none to within a fifth. That the list has no n⁴ does not make n⁴ undecided at
        sizes at which another law comes near.
    formula : str
        The whole of it. An exact formula meets every count; one that begins with ≈ was fitted. Empty if undecided.
    exact : bool
    coefficients : dict
        By term: a Fraction if exact, a float if fitted.
    sizes, counts : tuple of int
    fits : dict
        For each law, fitted by least squares with the terms that come with it: the root mean square of its relative
        errors. NaN for the exponential ones where n exceeds 64: nobody has counted so far.
    flags : tuple of Flag
        Calls whose cost the counts leave out and whose size changes with n: the counts of the function are then not its
        cost.
    """

    law: str
    formula: str
    exact: bool
    coefficients: Mapping[str, Fraction | float]
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    fits: Mapping[str, float]
    flags: tuple[Flag, ...]

    def __call__(self, n: int) -> Fraction | float:
        """What the formula says of a size."""
        if self.law == UNDECIDED:
            raise ValueError("the law is undecided: count at more sizes, or at sizes that double")
        terms = WHOLE if self.exact else TERMS
        return sum((c * terms[term](n) for term, c in self.coefficients.items()), start=Fraction(0) if self.exact else 0.0)

    def witness(self) -> tuple[Fraction, int]:
        """(c, n₀) such that the count is O(law): at most c times the law for every n ≥ n₀, as far as the formula holds.

        For n ≥ n₀ no term exceeds the law, so c is the sum of the positive coefficients.
        """
        if not self.exact:
            raise ValueError(f"{self.formula or self.law} was not met exactly, and only an exact formula proves a bound")
        c = sum((Fraction(c) for c in self.coefficients.values() if c > 0), start=Fraction(0))
        return c, 2 if self.law in ("log n", "n log n") else 1

    def __repr__(self) -> str:
        head = f"{self.law}: {self.formula}" if self.formula else self.law
        rows = [head, "", f"{'n':>8} {'counted':>12}"]
        rows += [f"{n:>8} {count:>12}" for n, count in zip(self.sizes, self.counts, strict=True)]
        rows += ["", f"{'law':>8} {'error':>12}"]
        rows += [f"{law:>8} {'—' if np.isnan(error) else f'{error:.2%}':>12}" for law, error in self.fits.items()]
        if self.flags:
            rows += ["", "Not in these counts, and growing with n:"]
            rows += [f"  {flag}" for flag in self.flags]
        return "\n".join(rows)


def growth(
    function: Callable[..., Any] | str,
    sizes: Iterable[int],
    *,
    make: Callable[[int], Any] | None = None,
    measure: str | Callable[[Operations], int] = "total",
    follow: bool | Collection[Callable[..., Any]] = True,
) -> Growth:
    """Count the operations of a function at several sizes and find the law of their growth.

    Parameters
    ----------
    function : function, method or str
        As in `count_operations`.
    sizes : iterable of int
        At least six different ones, from 1.
    make : callable, optional
        `make(n)` gives the arguments for size n: a tuple of them, or the only one. By default the function is given n.
        It decides which case is counted: the best, the worst, or a random one.
    measure : str or callable, default="total"
        What is to be counted: "total", "steps", "flops", one of the kinds ("arithmetic", "comparison", "logical",
        "indexing", "assignment", "calls", "control"), or a function of `Operations`.
    follow : bool or collection of functions, default=True
        As in `count_operations`.

    Examples
    --------
    >>> def pairs(n):
    ...     seen = 0
    ...     for i in range(n):
    ...         for j in range(i):
    ...             seen += 1
    ...     return seen
    >>> found = growth(pairs, range(1, 8))
    >>> found.law, found.formula
    ('n²', '2n² + 2n + 4')
    >>> found(1000) == count_operations(pairs, 1000).total
    True
    """
    sizes = checked(sizes)
    if not (callable(measure) or measure in MEASURES):
        raise ValueError(f"measure={measure!r}: it must be one of {', '.join(MEASURES)}, or a function of Operations")
    if make is None:
        takes_one(function)
    runs = []
    for n in sizes:
        made = n if make is None else make(n)
        runs.append(count_operations(function, *(made if isinstance(made, tuple) else (made,)), follow=follow))
    counts = tuple(measure(run) if callable(measure) else getattr(run.counts, measure) for run in runs)
    if not all(isinstance(count, Real) and 0 <= float(count) < inf for count in counts):
        raise TypeError(f"measure={measure!r} must give a count, a number of at least 0, for each run; got {counts}")
    return fit(sizes, counts, growing(runs))


def fit(sizes: tuple[int, ...], counts: tuple[int, ...], flags: tuple[Flag, ...] = ()) -> Growth:
    """The law behind counts, whatever they count: exact where one is, fitted otherwise."""
    tried = {terms[-1]: least_squares(terms, sizes, counts) for terms in FITTED}
    errors = {name: error for name, (_, error) in tried.items()}
    found = exact(sizes, counts)
    if found is not None:
        return Growth(dominant(found), written(found, WHOLE_NAMES), True, found, sizes, counts, errors, flags)
    name = decided(errors, {name: coefficients[name] for name, (coefficients, _) in tried.items()}, len(sizes))
    coefficients = tried[name][0] if name != UNDECIDED else {}
    formula = f"≈ {written(coefficients, NAMES)}" if coefficients else ""
    return Growth(name, formula, False, coefficients, sizes, counts, errors, flags)


def exact(sizes: tuple[int, ...], counts: tuple[int, ...]) -> dict[str, Fraction] | None:
    """The formula with the fewest terms that meets every count; None if there is none, or two of different laws."""
    for length in range(1, 5):
        found = []
        for terms in EXACT:
            if len(terms) == length <= len(sizes) - SPARE and possible(terms, sizes):
                coefficients = solve([[Fraction(WHOLE[term](n)) for term in terms] for n in sizes], counts)
                if coefficients is None:
                    continue
                formula = {term: c for term, c in zip(terms, coefficients, strict=True) if c}
                if formula.get(dominant(formula), 0) >= 0:  # no count is negative
                    found.append(formula)
        if len({dominant(formula) for formula in found}) == 1:
            return found[0]
        if found:
            return None
    return None


def possible(terms: tuple[str, ...], sizes: tuple[int, ...]) -> bool:
    return sizes[-1] <= LONGEST or not {"2ⁿ", "n·2ⁿ"} & set(terms)


def solve(matrix: list[list[Fraction]], right: Iterable[int]) -> list[Fraction] | None:
    """The only solution of more equations than unknowns; None if there is none, or more than one (Gauss and Jordan)."""
    rows = [[*row, Fraction(value)] for row, value in zip(matrix, right, strict=True)]
    unknowns = len(matrix[0])
    for k in range(unknowns):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[k]:
                rows[i] = [a - row[k] * b for a, b in zip(row, rows[k], strict=True)]
    return None if any(row[-1] for row in rows[unknowns:]) else [row[-1] for row in rows[:unknowns]]


def least_squares(
    terms: tuple[str, ...], sizes: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[dict[str, float], float]:
    """The coefficients with the least relative errors, and the root mean square of these."""
    if not possible(terms, sizes):
        return dict.fromkeys(terms, np.nan), np.nan
    matrix = np.array([[TERMS[term](n) for term in terms] for n in sizes], dtype=float)
    weight = 1 / np.maximum(np.array(counts, dtype=float), 1.0)
    scaled = matrix * weight[:, None]
    lengths = np.abs(scaled).max(axis=0)
    target = np.array(counts, dtype=float) * weight
    found = np.linalg.lstsq(scaled / lengths, target, rcond=None)[0]
    error = float(np.sqrt(np.mean((scaled / lengths @ found - target) ** 2)))
    return dict(zip(terms, (found / lengths).tolist(), strict=True)), error


def decided(errors: Mapping[str, float], leading: Mapping[str, float], sizes: int) -> str:
    """The law that explains the counts, and far better than the others, if there is one.

    A law whose terms another has too is preferred to that other unless the other is far better. A law whose own term comes
    out negative cannot be the answer, but if it is far better than the answer, the counts bend as none of the laws does.
    """
    terms = {each[-1]: set(each) for each in FITTED}
    criteria = {
        name: 2 * sizes * log(max(error, 1e-9)) + len(terms[name]) * log(sizes)
        for name, error in errors.items()
        if not np.isnan(error)
    }
    close = [name for name, value in criteria.items() if value <= min(criteria.values()) + DECISIVE]
    simplest = min(close, key=lambda name: len(terms[name]))
    certain = all(terms[simplest] <= terms[name] or leading[name] < 0 for name in close)
    return simplest if certain and leading[simplest] > 0 and errors[simplest] <= COARSE else UNDECIDED


def dominant(coefficients: Collection[str]) -> str:
    """The fastest of the terms that a formula has; a formula without terms is 0, and constant."""
    return next((term for term in reversed(TERMS) if term in coefficients), "1")


def written(coefficients: Mapping[str, Fraction | float], names: Mapping[str, str]) -> str:
    """A formula as one writes it, the fastest term first: 2n² + (1/2)n − 3."""
    text = ""
    for term in reversed(TERMS):
        c = coefficients.get(term, 0)
        if c == 0:
            continue
        number = f"{abs(c)}" if isinstance(c, Fraction) else f"{abs(c):.4g}"
        number = f"({number})" if "/" in number else number
        if term != "1":
            number = ("" if number == "1" else number + "·" * (term == "2ⁿ")) + names[term]
        text += (" − " if c < 0 else " + ") + number
    return text.removeprefix(" + ").replace(" − ", "−", int(text.startswith(" − "))) or "0"


def takes_one(function: Any) -> None:
    """Refuse a function that one number is not enough for."""
    if isinstance(function, str) or not callable(function):
        return
    try:
        inspect.signature(function).bind(1)
    except TypeError as error:
        raise TypeError(
            f"{getattr(function, '__qualname__', function)}{inspect.signature(function)} cannot be called with a size "
            f"alone ({error}): say how its arguments are made, as in make=lambda n: (list(range(n)), n)"
        ) from None
    except ValueError:  # no signature: counting it says why
        return


def growing(runs: list[Operations]) -> tuple[Flag, ...]:
    """The flags of the last run whose size is not the same in every run."""
    seen: dict[tuple[Any, ...], set[int]] = {}
    for run in runs:
        for flag in run.flags:
            seen.setdefault(flag[:4], set()).add(flag.size)
    last = {flag[:4]: flag for run in runs for flag in run.flags}
    return tuple(last[place] for place in sorted(last) if len(seen[place]) > 1)


def checked(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes in rising order, each once."""
    try:
        given = sorted({operator.index(n) for n in sizes})
    except TypeError as error:
        raise TypeError(f"sizes={sizes!r}: they must be whole numbers, such as [1, 2, 4, 8, 16, 32]") from error
    if given and given[0] < 1:
        raise ValueError(f"sizes={given}: the smallest is {given[0]}, and log n needs sizes from 1")
    if len(given) < SIZES:
        raise ValueError(
            f"sizes={given}: {len(given)} different sizes, and at least {SIZES} are needed: a cubic has four coefficients, "
            f"and {SPARE} more sizes have to agree with it"
        )
    return tuple(given)
