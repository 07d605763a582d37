"""A law of growth: a sum of terms such as 7n + 4, the counts that it was found from, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log, log2
from typing import NamedTuple

import numpy as np

from rosenblatt.counting.meter import Flag
from rosenblatt.counting.operations import Counts
from rosenblatt.counting.resources import Resources
from rosenblatt.errors import UnsupportedOperation

UNDECIDED = "undecided"


class Term(NamedTuple):
    """baseⁿ · n^power · (log₂ n)^logs. Terms are in the order of their growth, since tuples are compared from the left."""

    base: int = 1
    power: int = 0
    logs: int = 0

    def at(self, n: float) -> float:
        """The value at a size."""
        return self.base**n * n**self.power * (log2(n) if self.logs else 1)

    def whole(self, n: int) -> int:
        """The same with ⌊log₂ n⌋, how often n can be halved before it is 1."""
        return self.base**n * n**self.power * (n.bit_length() - 1 if self.logs else 1)

    def spell(self, logarithm: str = " log n") -> str:
        """The term as one writes it, with this for the logarithm; empty for 1."""
        power = "n" + (str(self.power).translate(_RAISED) if self.power > 1 else "") if self.power else ""
        if self.base > 1:
            return f"{power}·{self.base}ⁿ" if power else f"{self.base}ⁿ"
        return power + logarithm if self.logs else power

    @property
    def name(self) -> str:
        """As a law is called: "n²", "n log n", "n·2ⁿ"."""
        return self.spell().strip() or "1"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
ONE, LOG, N, N_LOG = Term(), Term(logs=1), Term(power=1), Term(power=1, logs=1)


@dataclass(frozen=True, repr=False)
class Growth:
    """The law of growth of a function's operations.

    Attributes
    ----------
    law : str
        The term that grows fastest: "1", "log n", "n", "n log n", "n²", "n³", "n⁴", …, "2ⁿ", "n·2ⁿ", "3ⁿ", …; "undecided"
        where no formula meets the counts and several laws fit them equally well, or none fits within 2 %.
    formula : str
        The whole of it. An exact formula meets every count; one that begins with ≈ was fitted. Empty if undecided.
    exact : bool
        Whether the formula meets every count.
    terms, coefficients : dict
        The terms of the formula with their coefficients, by `Term` and by name: Fractions if exact, floats if fitted.
    sizes, counts : tuple of int
        What was counted, and at which sizes.
    fits : dict
        For each law that can be fitted, with the terms that come with it: the root mean square of its relative errors.
        NaN for the exponential ones where n exceeds 64, which no count can reach.
    flags : tuple of Flag
        Calls whose cost the counts leave out and whose size changes with n: the counts of the function are then not its
        cost.
    unit : str
        What was counted: "operations", "steps", "flops", one of the kinds, or "bytes".
    kinds : tuple of Counts
        The operations of each run by kind, whatever the law is about.
    resources : tuple of Resources
        The seconds and the bytes of each run, if `growth` was asked to measure them; else empty. No part of equality.
    memory : Growth or None
        The law of the bytes, likewise.

    Examples
    --------
    >>> from rosenblatt.counting import growth
    >>> def handshakes(n):
    ...     count = 0
    ...     for i in range(n):
    ...         for j in range(i):
    ...             count += 1
    ...     return count
    >>> found = growth(handshakes, range(1, 8))
    >>> found.law, found.formula, found.exact, found.counts[:3]
    ('n²', '2n² + 2n + 4', True, (8, 16, 28))
    """

    terms: Mapping[Term, Fraction | float]
    exact: bool
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    fits: Mapping[str, float]
    flags: tuple[Flag, ...]
    unit: str = "operations"
    kinds: tuple[Counts, ...] = ()
    resources: tuple[Resources, ...] = field(default=(), compare=False)
    memory: Growth | None = field(default=None, compare=False)

    @property
    def law(self) -> str:
        """The term that grows fastest, or "undecided"."""
        return max(self.terms, default=ONE).name if self.terms or self.exact else UNDECIDED

    @property
    def formula(self) -> str:
        """The whole of it, the fastest term first: 2n² + (1/2)n − 3."""
        text = ""
        for term, c in sorted(self.terms.items(), reverse=True):
            number = f"{abs(c)}" if isinstance(c, Fraction) else f"{abs(c):.4g}"
            number = f"({number})" if "/" in number else number
            name = term.spell("⌊log₂ n⌋" if self.exact else " log₂ n")
            number = ("" if number == "1" else number + "·" * name[0].isdigit()) if name else number
            text += (" − " if c < 0 else " + ") + number + name
        text = text.removeprefix(" + ").replace(" − ", "−", int(text.startswith(" − ")))
        return (text or "0") if self.exact else text and f"≈ {text}"

    @property
    def coefficients(self) -> dict[str, Fraction | float]:
        """The coefficients by the name of their term."""
        return {term.name: c for term, c in self.terms.items()}

    def __call__(self, n: int) -> Fraction | float:
        """Return what the formula says of a size.

        Parameters
        ----------
        n : int
            The size.

        Returns
        -------
        Fraction or float
            A Fraction if the formula is exact.

        Raises
        ------
        UnsupportedOperation
            If the law is undecided.
        """
        if self.law == UNDECIDED:
            raise UnsupportedOperation("the law is undecided", hint="count at more sizes, or at sizes that double")
        values = (c * (term.whole(n) if self.exact else term.at(n)) for term, c in self.terms.items())
        return sum(values, start=Fraction(0) if self.exact else 0.0)

    def witness(self) -> tuple[Fraction, int]:
        """Return (c, n₀) such that the count is at most c times the law for every n ≥ n₀, as far as the formula holds.

        For n ≥ n₀ no term exceeds the law, so c is the sum of the positive coefficients.

        Returns
        -------
        c, n₀
            The factor, and the size from which on it holds.

        Raises
        ------
        UnsupportedOperation
            If the formula is not exact.
        """
        if not self.exact:
            raise UnsupportedOperation(
                f"{self.formula or self.law} does not fit the counts exactly, and only an exact formula proves a bound"
            )
        positive = {term: Fraction(c) for term, c in self.terms.items() if c > 0}
        law, start = max(self.terms, default=ONE), 1
        for term in positive:  # nᵖbⁿ over the law falls from n = p/ln(B/b) on
            start = max(start, 2) if law.logs else start
            if law.base > term.base and term.power > law.power:
                start = max(start, ceil((term.power - law.power) / log(law.base / term.base)))

        def exceeds_law(n: int) -> bool:
            return any(term.whole(n) > law.whole(n) for term in positive)

        while exceeds_law(start):
            start += 1
        while start > 1 and not exceeds_law(start - 1):
            start -= 1
        return sum(positive.values(), start=Fraction(0)), start

    def __repr__(self) -> str:
        head = f"{self.law}: {self.formula}" if self.formula else self.law
        rows = [head, "", f"{'n':>8} {'counted':>12}" + f" {'seconds':>12} {'peak bytes':>12}" * bool(self.resources)]
        costs = [f" {seconds:>12.3g} {peak:>12}" for seconds, peak in self.resources] or [""] * len(self.sizes)
        rows += [f"{n:>8} {count:>12}{cost}" for n, count, cost in zip(self.sizes, self.counts, costs, strict=True)]
        if self.memory is not None:
            rows += ["", f"bytes, {self.memory.law}: {self.memory.formula}" if self.memory.formula else "bytes: undecided"]
        rows += ["", f"{'law':>8} {'error':>12}"]
        rows += [f"{law:>8} {'—' if np.isnan(error) else f'{error:.2%}':>12}" for law, error in self.fits.items()]
        if self.flags:
            rows += ["", "Not in these counts, and growing with n:"]
            rows += [f"  {flag}" for flag in self.flags]
        return "\n".join(rows)
