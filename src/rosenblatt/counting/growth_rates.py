"""How fast does the number of operations grow with the size of the input? `growth` counts at several sizes and finds the
law behind the counts.

Counts are whole numbers, so a law is first asked to meet all of them exactly, with rational coefficients, at two sizes more
than it has coefficients: a polynomial of any degree, bⁿ or n·bⁿ with a polynomial beside it, log n or n log n. If one does,
that is the answer, and it is a formula. Powers and exponentials cannot be mistaken for one another in this way: a sum of k
terms nᵖbⁿ has at most k − 1 positive zeros, so two formulas of k coefficients that have all but two terms in common do not
agree at k + 2 sizes.

Only if none does are laws fitted by least squares, each with the terms that usually come with it, and compared by what they
leave unexplained: the information criterion of Schwarz (1978), which charges ln m for each coefficient where there are m
sizes. A fit is believed if it is within 2 % of the counts, foretells the two largest from the others as well as that, and
the sizes span a factor of 8; otherwise the law is undecided.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf, log
from numbers import Real
from typing import Any

import numpy as np

from rosenblatt.counting.laws import LOG, N_LOG, ONE, Growth, N, Term
from rosenblatt.counting.meter import KINDS, Flag
from rosenblatt.counting.operations import Operations, count_operations, from_text
from rosenblatt.counting.resources import measure_resources
from rosenblatt.errors import InvalidParameter, InvalidParameterType
from rosenblatt.exact.elimination import echelon

# The terms of a fitted law: itself, last, and what usually comes with it.
FITTED = [
    (ONE,), (ONE, LOG), (ONE, N), (ONE, N, N_LOG), (ONE, N, Term(1, 2)), (ONE, Term(1, 2), Term(1, 3)), (ONE, Term(2)),
    (ONE, Term(2), Term(2, 1)),
]  # fmt: skip
TERMS: dict[str, Callable[[float], float]] = {terms[-1].name: terms[-1].at for terms in FITTED}

MEASURES = (*KINDS, "total", "steps", "flops")
SPARE = 2  # sizes, beside one for each coefficient, that could have contradicted a formula
SIZES = 4 + SPARE  # a cubic has four coefficients
BASES = range(2, 17)  # of the exponentials that are tried
DECISIVE = 6.0  # the difference of two criteria from which on one law is called far likelier than the other
COARSE = 0.02  # a law whose errors are larger than this part of the counts does not explain them
SPAN = 8  # the largest size over the smallest: from closer sizes nothing fitted can be foretold of others
PRIME = 2**61 - 1
LONGEST = 64  # nobody has counted to 2⁶⁴, so beyond that size no count is exponential


def growth(
    function: Callable[..., Any] | str,
    sizes: Iterable[int],
    *,
    make: Callable[[int], Any] | None = None,
    measure: str | Callable[[Operations], int] = "total",
    follow: bool | Collection[Callable[..., Any]] = True,
    resources: bool = False,
) -> Growth:
    """Count the operations of a function at several sizes and find the law of their growth.

    A formula that meets all counts exactly is looked for first: a polynomial of any degree that the sizes allow, bⁿ, n·bⁿ,
    log n, n log n. Where there is none, laws are fitted, and one that is within 2 % is named; otherwise the law is
    "undecided".

    Parameters
    ----------
    function : function, method or str
        As in `count_operations`.
    sizes : iterable of int
        At least six different ones, from 1. A polynomial of degree k is recognised at k + 3 sizes.
    make : callable, optional
        `make(n)` gives the arguments for size n: a tuple of them, or the only one. By default the function is given n.
        It decides which case is counted: the best, the worst, or a random one.
    measure : str or callable, default="total"
        What is to be counted: "total", "steps", "flops", one of the kinds ("arithmetic", "comparison", "logical",
        "indexing", "assignment", "calls", "control"), or a function of `Operations`.
    follow : bool or collection of functions, default=True
        As in `count_operations`.
    resources : bool, default=False
        Whether to measure the seconds and the bytes of the function as it is, on copies of the arguments, as
        `measure_resources` does. `Growth.memory` is then the law of the bytes; times follow no law exactly.

    Returns
    -------
    Growth
        The law, its formula, and the counts.

    Raises
    ------
    InvalidParameter
        For sizes or a measure from which no law can be found.
    TypeError
        For a function that cannot be counted.

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
    sizes = check_sizes(sizes)
    if not (callable(measure) or measure in MEASURES):
        raise InvalidParameter("measure", measure, f"one of {', '.join(MEASURES)}, or a function of Operations")
    function = from_text(function) if isinstance(function, str) else function
    if make is None:
        check_takes_size(function)
    runs, costs = [], []
    for n in sizes:
        arguments = n if make is None else make(n)
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        if resources:
            costs.append(measure_resources(function, *arguments))
        runs.append(count_operations(function, *arguments, follow=follow))
    counts = tuple(measure(run) if callable(measure) else getattr(run.counts, measure) for run in runs)
    if not all(isinstance(count, Real) and 0 <= float(count) < inf for count in counts):
        raise InvalidParameterType("measure", measure, f"a function that returns a number ≥ 0 for each run, not {counts}")
    return replace(
        fit(sizes, counts, growing_flags(runs)),
        unit="operations" if callable(measure) or measure == "total" else measure,
        kinds=tuple(run.counts for run in runs),
        resources=tuple(costs),
        memory=replace(fit(sizes, tuple(cost.peak_bytes for cost in costs)), unit="bytes") if costs else None,
    )


def fit(sizes: tuple[int, ...], counts: tuple[int, ...], flags: tuple[Flag, ...] = ()) -> Growth:
    """The law behind counts, whatever they count: exact where one is, fitted otherwise."""
    fits = {terms[-1]: least_squares(terms, sizes, counts) for terms in FITTED}
    errors = {law.name: error for law, (_, error) in fits.items()}
    formula = find_formula(sizes, counts)
    if formula is not None:
        return Growth(formula, True, sizes, counts, errors, flags)
    law = choose_law(fits, sizes, counts)
    return Growth(fits[law][0] if law is not None else {}, False, sizes, counts, errors, flags)


def find_formula(sizes: tuple[int, ...], counts: tuple[int, ...]) -> dict[Term, Fraction] | None:
    """The formula with the fewest terms that meets every count; None if there is none, or two of different laws."""
    coefficients = count_coefficients(sizes, counts)
    powers = [Term(power=k) for k in range(max(coefficients, 4))]
    families = [[ONE, LOG, N, N_LOG], [ONE, N, N_LOG]]
    if coefficients <= len(sizes) - SPARE:
        families.insert(0, powers[:coefficients])
    for base in BASES if sizes[-1] <= LONGEST else ():
        families += [[Term(base), *powers[:4]], [Term(base), Term(base, 1), *powers[:4]]]
    found: dict[int, dict[Term, dict[Term, Fraction]]] = {}  # by the number of terms, and then by the law
    for family in families:
        terms = family[: len(sizes) - SPARE]
        values = [[Fraction(count) for count in counts], *([Fraction(term.whole(n)) for n in sizes] for term in terms)]
        weights = echelon(values, len(sizes)).dependence
        if weights is None or not weights[0]:
            continue
        formula = {term: -c / weights[0] for term, c in zip(terms, weights[1:], strict=False) if c}
        law = max(formula, default=ONE)
        levels = SPARE + 2 if any(term.logs for term in formula) else 0  # a line in log n needs as many as one in n
        if formula.get(law, 0) >= 0 and len({n.bit_length() for n in sizes}) >= levels:  # no count is negative
            found.setdefault(len(weights), {})[law] = formula
    fewest = found.get(min(found, default=0), {})
    return next(iter(fewest.values())) if len(fewest) == 1 else None


def count_coefficients(sizes: tuple[int, ...], counts: tuple[int, ...]) -> int:
    """The number of coefficients of the polynomial that meets every count, or fewer.

    Newton's divided differences of its degree are the last that are not zero. They are taken modulo a prime, where numbers
    do not grow, so that hundreds of sizes take no time; some polynomial may have fewer coefficients there.
    """
    fractions = (Fraction(count) for count in counts)
    level = [value.numerator * pow(value.denominator, -1, PRIME) % PRIME for value in fractions]
    order = 0
    while any(level):
        order += 1
        runs = zip(level, level[1:], sizes, sizes[order:], strict=False)
        level = [(after - before) * pow(last - first, -1, PRIME) % PRIME for before, after, first, last in runs]
    return order


def least_squares(
    terms: tuple[Term, ...], sizes: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[dict[Term, float], float]:
    """The coefficients with the least relative errors, and the root mean square of these."""
    if sizes[-1] > LONGEST and terms[-1].base > 1:
        return dict.fromkeys(terms, np.nan), np.nan
    weight = 1 / np.maximum(np.array(counts, dtype=float), 1.0)
    scaled = np.array([[term.at(n) for term in terms] for n in sizes], dtype=float) * weight[:, None]
    lengths = np.abs(scaled).max(axis=0)
    target = np.array(counts, dtype=float) * weight
    coefficients = np.linalg.lstsq(scaled / lengths, target, rcond=None)[0]
    error = float(np.sqrt(np.mean((scaled / lengths @ coefficients - target) ** 2)))
    return dict(zip(terms, (coefficients / lengths).tolist(), strict=True)), error


def choose_law(
    fits: Mapping[Term, tuple[dict[Term, float], float]], sizes: tuple[int, ...], counts: tuple[int, ...]
) -> Term | None:
    """The law that explains the counts, and far better than the others, if there is one.

    A law whose terms another has too is preferred to that other unless the other is far better. A law whose own term comes
    out negative cannot be the answer, but if it is far better than the answer, the counts bend as none of the laws does.
    """
    criteria = {
        law: 2 * len(sizes) * log(max(error, 1e-9)) + len(terms) * log(len(sizes))
        for law, (terms, error) in fits.items()
        if not np.isnan(error)
    }
    close = [law for law, value in criteria.items() if value <= min(criteria.values()) + DECISIVE]
    law = min(close, key=lambda law: len(fits[law][0]))
    terms, error = fits[law]
    certain = all(terms.keys() <= fits[other][0].keys() or fits[other][0][other] < 0 for other in close)
    wide = sizes[-1] >= SPAN * sizes[0] or law.base > 1
    if not (certain and wide and terms[law] > 0 and error <= COARSE):
        return None
    before, _ = least_squares(tuple(terms), sizes[:-SPARE], counts[:-SPARE])
    rest = zip(sizes[-SPARE:], counts[-SPARE:], strict=True)
    missed = [sum(c * term.at(n) for term, c in before.items()) / max(count, 1) - 1 for n, count in rest]
    return law if float(np.sqrt(np.mean(np.square(missed)))) <= COARSE else None


def check_takes_size(function: Callable[..., Any]) -> None:
    """Refuse a function that one number is not enough for."""
    if not callable(function):
        return
    try:
        inspect.signature(function).bind(1)
    except TypeError as error:
        name = f"{getattr(function, '__qualname__', function)}{inspect.signature(function)}"
        hint = "say how its arguments are made, as in make=lambda n: (list(range(n)), n)"
        allowed = f"one that can be called with a size alone ({error})"
        raise InvalidParameterType("function", name, allowed, hint=hint) from None
    except ValueError:  # no signature: counting it says why
        return


def growing_flags(runs: list[Operations]) -> tuple[Flag, ...]:
    """The flags of the last run whose size is not the same in every run."""
    seen: dict[tuple[Any, ...], set[int]] = {}
    for run in runs:
        for flag in run.flags:
            seen.setdefault(flag[:4], set()).add(flag.size)
    last = {flag[:4]: flag for run in runs for flag in run.flags}
    return tuple(last[place] for place in sorted(last) if len(seen[place]) > 1)


def check_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """The sizes in rising order, each once."""
    try:
        each = sorted({operator.index(n) for n in sizes})
    except TypeError as error:
        raise InvalidParameterType("sizes", sizes, "whole numbers, such as [1, 2, 4, 8, 16, 32]") from error
    if each and each[0] < 1:
        raise InvalidParameter("sizes", each, "at least 1: log n needs that")
    if len(each) < SIZES:
        reason = f"a cubic has four coefficients, and {SPARE} more sizes have to agree with it"
        raise InvalidParameter("sizes", each, f"at least {SIZES} different numbers: {reason}")
    return tuple(each)
