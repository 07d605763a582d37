"""What each parameter of an estimator may be, and which may not go together. Every refusal names the value received,
what is allowed and, where two parameters disagree, both of them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple


class OneOf(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]

    def refusal(self, value: Any) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        return "one of " + ", ".join(repr(word) for word in self.words)


class Number(NamedTuple):
    """A real (or whole) number in a range; None too where it is optional."""

    low: float
    open_low: bool = False
    high: float = float("inf")
    whole: bool = False
    optional: bool = False
    words: tuple[str, ...] = ()
    closed_high: bool = False

    def refusal(self, value: Any) -> str | None:
        kind: Any = Integral if self.whole else Real
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return None
        if isinstance(value, kind) and not isinstance(value, bool):
            number = float(value)
            above = number > self.low or (number == self.low and not self.open_low)
            if above and (number < self.high or (number == self.high and self.closed_high)):
                return None
        sentence = f"a {'whole ' if self.whole else ''}number {'>' if self.open_low else '≥'} {self.low:g}"
        sentence += f" and {'≤' if self.closed_high else '<'} {self.high:g}" if self.high < float("inf") else ""
        extra = [repr(word) for word in self.words] + (["None"] if self.optional else [])
        return " or ".join([sentence, *extra])


class Flag(NamedTuple):
    """True or False."""

    def refusal(self, value: Any) -> str | None:
        return None if isinstance(value, bool) or type(value).__name__ == "bool" else "True or False"


class ClassWeight(NamedTuple):
    """A weight for each class."""

    def refusal(self, value: Any) -> str | None:
        if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced"):
            return None
        return "a dictionary from class to weight, 'balanced' or None"


class RuleName(NamedTuple):
    """A rule of `rosenblatt.rules`, or the word for the plain perceptron's."""

    def refusal(self, value: Any) -> str | None:
        if value == "perceptron" or (isinstance(value, tuple) and hasattr(value, "bound")):
            return None
        return "'perceptron' or a rule, such as rosenblatt.rules.PA1(C=1.0)"


class Clash(NamedTuple):
    """Two parameters that mean nothing together when each has one of these values."""

    one: str
    values: tuple[Any, ...]
    other: str
    others: tuple[Any, ...]
    reason: str


def check(params: Mapping[str, Any], allowed: Mapping[str, Any], clashes: tuple[Clash, ...]) -> None:
    """Raise a ValueError for the first parameter that is not allowed, or for the first two that clash."""
    for name, kind in allowed.items():
        if (expected := kind.refusal(params[name])) is not None:
            raise ValueError(f"{name} must be {expected}; got {params[name]!r}")
    for clash in clashes:
        if _among(params[clash.one], clash.values) and _among(params[clash.other], clash.others):
            raise ValueError(
                f"{clash.one}={params[clash.one]!r} and {clash.other}={params[clash.other]!r} do not go together: "
                f"{clash.reason}"
            )


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    return any(test(value) if callable(test) else value == test for test in values)
