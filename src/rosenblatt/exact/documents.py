"""A certificate as a file that anyone can read, keep and check: JSON, in which every number is exactly the one meant.

Fractions are texts such as "-3/4"; integers beyond 2⁵³ are texts in hexadecimal, which no reader rounds and which are read
in time linear in their length; floats are in hexadecimal too. What is read is believed no further than its form: whether it
is true, the certificate itself says of the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from os import PathLike
from typing import Any, NamedTuple, cast, get_type_hints

from rosenblatt.data import json_text
from rosenblatt.errors import FormatError, UnreadableCertificate
from rosenblatt.exact.certificates import Certificate
from rosenblatt.modelfile.atomic import atomic_write

FORMAT = 1
_NAME = "certificate of rosenblatt"
_LARGEST = 1 << 28  # bytes of a file that is read
_EXACT = 1 << 53  # from where on readers of JSON may round
_INTEGER = r"-?(?:0x[0-9a-f]+|[0-9]{1,20})"
_FRACTION = re.compile(rf"({_INTEGER})(?:/({_INTEGER}))?")


class Document(NamedTuple):
    """What a file of certificates says: certificates by name, and facts about what they are certificates of."""

    certificates: dict[str, Any]
    facts: dict[str, Any]


def write(
    path: str | PathLike, question: str, certificates: Mapping[str, Certificate], facts: Mapping[str, object]
) -> None:
    """Save certificates as a file of JSON, which replaces an old one only when it is complete.

    Parameters
    ----------
    path : str or path
        The file.
    question : str
        What the certificates answer, such as "separability"; `read` asks for the same.
    certificates : mapping of str to Certificate
        The certificates by name: dataclasses of numbers, texts and tuples of them.
    facts : mapping
        What they are about, as values of JSON.
    """
    header = {"what": _NAME, "format": FORMAT, "question": question, **facts}
    proofs = {name: as_facts(certificate) for name, certificate in certificates.items()}
    with atomic_write(path) as file:
        file.write((_json_text({**header, "certificates": proofs}) + "\n").encode("utf-8"))


def read(path: str | PathLike, question: str, kinds: Mapping[str, type]) -> Document:
    """Read the certificates of a file that answers this question.

    Parameters
    ----------
    path : str or path
        The file.
    question : str
        What the certificates are to answer.
    kinds : mapping of str to type
        The type of certificate that each name stands for.

    Returns
    -------
    Document
        The certificates by name, and the facts. Whether a certificate is true, its own `verify` says.

    Raises
    ------
    UnreadableCertificate
        If the file is not a certificate, or a damaged one, or answers another question.
    """
    with open(path, "rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise UnreadableCertificate(f"larger than any certificate, {_LARGEST >> 20} MiB", path=path)
    try:
        facts = json_text.parse(content, path)
    except FormatError as error:
        raise UnreadableCertificate(f"not a certificate: {error.problem}", path=path) from None
    if not isinstance(facts, dict) or facts.get("what") != _NAME:
        raise UnreadableCertificate("not a certificate of rosenblatt", path=path)
    if facts.get("format") != FORMAT:
        raise UnreadableCertificate(f"it has format {facts.get('format')!r}; this version reads format {FORMAT}", path=path)
    if facts.get("question") != question:
        raise UnreadableCertificate(f"it answers another question: {facts.get('question')!r}, not {question!r}", path=path)
    proofs = facts.pop("certificates", None)
    if not isinstance(proofs, dict) or not proofs:
        raise UnreadableCertificate("damaged: it holds no certificates", path=path)
    found = {}
    for name, proof in proofs.items():
        if name not in kinds:
            raise UnreadableCertificate(f"damaged: the kind {name!r} is not one of {', '.join(kinds)}", path=path)
        try:
            found[name] = from_facts(kinds[name], proof)
        except ValueError as error:
            raise UnreadableCertificate(f"damaged: {name}: {error}", path=path) from None
    return Document(found, facts)


def as_facts(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate (a dataclass of numbers, texts and tuples of them) as values of JSON, exactly.

    >>> from rosenblatt.exact.certificates import Interior
    >>> as_facts(Interior((Fraction(-3, 4), Fraction(2**70))))
    {'x': ['-3/4', '0x400000000000000000']}
    """
    return {field.name: _to_json(getattr(certificate, field.name)) for field in fields(cast(Any, certificate))}


def from_facts(kind: type, facts: object) -> Any:
    """Return the certificate of this kind that the facts describe; ValueError where they cannot be of one.

    >>> from rosenblatt.exact.certificates import Combination
    >>> from_facts(Combination, {"rows": [0, 3], "weights": [1, "0x400000000000000000"]}).weights[1] == 2**70
    True
    """
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    if not isinstance(facts, dict) or facts.keys() != set(names):
        got = sorted(facts) if isinstance(facts, dict) else type(facts).__name__
        raise ValueError(f"it must have {', '.join(names)}; it has {got}")
    return kind(**{name: _from_json(hints[name], facts[name], name) for name in names})


def _json_text(value: object, depth: int = 3) -> str:
    """JSON with a line for each key; lists stay on one."""
    if not isinstance(value, dict) or not depth or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    blanks = "  " * (4 - depth)
    lines = [f"{blanks}{json.dumps(key)}: {_json_text(part, depth - 1)}" for key, part in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{blanks[2:]}}}"


def _to_json(value: object) -> object:
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    if isinstance(value, Fraction):
        ends = (value.numerator, value.denominator)[: 1 if value.denominator == 1 else 2]
        return "/".join(map(str if max(map(abs, ends)) < _EXACT else hex, ends))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _EXACT:
        return hex(value)
    return value.hex() if isinstance(value, float) else value


def _from_json(kind: Any, value: object, name: str) -> Any:
    if getattr(kind, "__origin__", None) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list; got {value!r:.40}")
        return tuple(_from_json(kind.__args__[0], part, name) for part in value)
    if kind is int and type(value) is int:
        return value
    if kind in (int, Fraction) and isinstance(value, str) and (found := _FRACTION.fullmatch(value)):
        over, under = int(found[1], 0), int(found[2] or "1", 0)
        if under > 0 and (kind is Fraction or found[2] is None):
            return over if kind is int else Fraction(over, under)
    if kind is float and isinstance(value, str):
        with suppress(ValueError, OverflowError):
            return float.fromhex(value)
    if kind in (bool, str) and type(value) is kind:
        return value
    raise ValueError(f"{name} must be {_NAMES[kind]}; got {value!r:.40}")


_NAMES = {
    int: "an integer",
    Fraction: "a fraction such as '-3/4'",
    float: "a float in hexadecimal",
    bool: "true or false",
    str: "a text",
}
