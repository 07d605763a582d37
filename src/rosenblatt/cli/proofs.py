"""How proofs are written, checked and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rosenblatt.cli.console import Console, check_writable
from rosenblatt.cli.errors import Code, Failure, ending

MOST = 12  # coordinates or rows that are shown


def prepared(output: str | None, check: str | None, inputs: Sequence[str]) -> None:
    """Refuse what cannot be done, before anything is."""
    if check is not None and output is not None:
        raise Failure("--check reads a proof and --output writes one; give one of the two", Code.USAGE)
    check_writable(output, *inputs)


def written(path: str | None, question: str, proofs: Mapping[str, Any], facts: Mapping[str, Any], console: Console) -> None:
    """Save proofs where they were asked for."""
    from rosenblatt.exact.documents import write

    if path is not None:
        with ending(Code.OUTPUT, OSError):
            write(path, question, proofs, facts)
        console.note(f"the proof is in {path}; --check {path} verifies it")


def checked(path: str, claims: Mapping[str, str | None], console: Console, of: str) -> int:
    """Say whether what a file claims holds of the data; the values are refutations, and None refutes nothing."""
    wrong = next((reason for reason in claims.values() if reason is not None), None)
    text = f"{path} holds of {of}: {'; '.join(claims)}" if wrong is None else f"{path} does not hold of {of}: {wrong}"
    console.result({"holds": wrong is None, "claims": list(claims), "refutation": wrong}, text)
    return Code.DONE if wrong is None else Code.NO


def vector(values: Sequence[Fraction]) -> str:
    """The first coordinates."""
    return f"({', '.join(map(number, values[:MOST]))}{', …' if len(values) > MOST else ''})"


def number(value: Fraction) -> str:
    """A fraction as it is if it is short, else six digits of it."""
    from rosenblatt.exact.dyadic import about

    return str(value) if max(abs(value.numerator), value.denominator) < 10**9 else about(value)


def some(lines: Sequence[str]) -> list[str]:
    """The first lines, and how many there are beside."""
    return [*lines[:MOST], *[f"  … and {len(lines) - MOST:,} more"] * (len(lines) > MOST)]
