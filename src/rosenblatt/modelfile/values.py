"""How values are written as JSON in a model file, and how they are checked when they are read back.

Numbers, text, truth values and None are themselves; what JSON has no number for is `{"float": "inf"}`. A NamedTuple such as
a rule is its fields under a word that a table knows. Whatever decodes raises a DamagedModel where a value is
not as it must be: nothing that a file says is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import DamagedModel, UnsupportedOperation

MOST = 1 << 62  # of what is counted; sums of two counts fit into 64 bits


class Facts(dict[str, Any]):
    """An object of JSON in a model file; one without a fact that is asked for is damaged."""

    def __missing__(self, name: str) -> Any:
        raise DamagedModel(f"the fact {name} is missing")


class Arrays(dict[str, NDArray]):
    """The arrays of a model file; one without an array that is asked for is damaged."""

    def __missing__(self, name: str) -> Any:
        raise DamagedModel(f"the array {name} is missing")

    def pop(self, name: str) -> NDArray:  # type: ignore[override]  # a default would hide that it is missing
        """Take an array out."""
        array = self[name]
        del self[name]
        return array


def check_list(value: object, name: str, kind: type | None = None) -> list[Any]:
    """Return a list, if need be one of values that all have this type."""
    if not isinstance(value, list) or not (kind is None or all(type(part) is kind for part in value)):
        raise DamagedModel(f"{name} must be a list{'' if kind is None else f' of {_KINDS[kind]}'}; it is {value!r:.40}")
    return value


def check_mapping(value: object, name: str) -> Facts:
    """Return an object of JSON."""
    if not isinstance(value, dict):
        raise DamagedModel(f"{name} must be an object; it is {value!r:.40}")
    return value if isinstance(value, Facts) else Facts(value)


_KINDS = {str: "texts", int: "whole numbers", bool: "truth values", list: "lists", float: "numbers", dict: "objects"}

RecordTypes = Mapping[str, Any]  # the words that a file knows, each with the type that it stands for

# Numbers

_FLOATS = {"inf": inf, "-inf": -inf, "nan": nan}


def check_whole(value: object, name: str, low: int = 0, high: int = MOST) -> int:
    """Return a whole number from `low` to `high`, both included."""
    if type(value) is not int or not low <= value <= high:
        raise DamagedModel(f"{name} must be a whole number from {low} to {high}; it is {value!r:.40}")
    return value


def encode_value(value: object) -> Any:
    """Encode a number, text, truth value or None."""
    if isinstance(value, np.generic):
        value = value.item()
    return {"float": repr(value)} if isinstance(value, float) and not isfinite(value) else value


def decode_number(value: object, allow_nan: bool = False) -> int | float:
    """Return a number as it was encoded, infinity too; NaN only where it is allowed."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, dict) and list(value) == ["float"] and value["float"] in list(_FLOATS)[: 3 if allow_nan else 2]:
        return _FLOATS[value["float"]]
    raise DamagedModel(f"a number is needed, not {value!r:.40}")


# Records: NamedTuples of numbers, such as a rule, a kernel, or what a history has of an epoch


def encode_record(record: Any, types: RecordTypes) -> dict[str, Any]:
    """Encode a NamedTuple of numbers of one of these types."""
    for word, kind in types.items():
        if type(record) is kind:
            fact = {"kind": word, **dict(zip(kind._fields, map(encode_value, record), strict=True))}
            decode_record(fact, types)
            return fact
    raise UnsupportedOperation(f"{record!r} cannot be saved in a file; of its kind only {', '.join(types)} can")


def decode_record(fact: object, types: RecordTypes) -> Any:
    """Return the NamedTuple that was encoded, each of its numbers of the type of its field."""
    if not isinstance(fact, dict) or not isinstance(fact.get("kind"), str) or fact["kind"] not in types:
        raise DamagedModel(f"{str(fact)[:80]} is not one of {', '.join(types)}")
    kind: Any = types[fact["kind"]]
    if set(fact) != {"kind", *kind._fields}:
        raise DamagedModel(f"{fact['kind']} is described by {', '.join(kind._fields)}; got {', '.join(fact)}")
    return kind(*(_decode_field(fact[name], name, kind.__annotations__[name]) for name in kind._fields))


def _decode_field(value: object, name: str, annotation: Any) -> bool | int | float:
    expected = getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation))
    if expected == "bool":
        if not isinstance(value, bool):
            raise DamagedModel(f"{name} must be true or false; it is {value!r:.40}")
        return value
    return check_whole(value, name, -MOST, 2 * MOST - 1) if expected == "int" else decode_number(value)


def decode_row(values: object, kind: Any) -> Any:
    """Return a NamedTuple of a history: numbers, words and None, each encoded by `encode_value`."""
    fewest = len(kind._fields) - len(kind._field_defaults)
    if not isinstance(values, list) or not fewest <= len(values) <= len(kind._fields):
        raise DamagedModel(f"{str(values)[:80]} is not a record of {', '.join(kind._fields)}")
    for name, value in zip(kind._fields, values, strict=False):
        allowed = str(kind.__annotations__[name])
        odd = (isinstance(value, str) and "str" not in allowed) or (value is None and "None" not in allowed)
        if isinstance(value, list) or odd:
            raise DamagedModel(f"{name} of a record must be a number; it is {value!r:.40}")
    return kind(*(decode_number(value, allow_nan=True) if isinstance(value, dict) else value for value in values))


# Names of features and labels of classes, one by one


def encode_name(name: object) -> Any:
    """Encode text, bytes, a number, None, or a tuple of these."""
    if isinstance(name, np.generic):
        name = name.item()
    if name is None or isinstance(name, str | bool | int) or (isinstance(name, float) and isfinite(name)):
        return name
    if isinstance(name, bytes):
        return {"bytes": name.decode("latin-1")}
    if type(name) is tuple:
        return [encode_name(part) for part in name]
    raise UnsupportedOperation(
        f"{name!r} cannot be saved in a file; names and labels of text, bytes, numbers, None and tuples of them can"
    )


def decode_name(value: object) -> Any:
    """Return the name that was encoded."""
    if isinstance(value, list):
        return tuple(map(decode_name, value))
    if not isinstance(value, dict):
        return value
    try:
        return check_mapping(value, "a name")["bytes"].encode("latin-1")
    except (AttributeError, UnicodeEncodeError):
        raise DamagedModel(f"a name that is bytes must be text of Latin-1; it is {value!r:.40}") from None


# Labels of classes, as an array of one type

_LABEL_TYPES = re.compile(r"[?]|[iuf][1248]|U[0-9]{1,6}|S[0-9]{1,6}|O|T")
_WIDEST = 1 << 22  # bytes of labels that are text of a fixed width


def encode_labels(classes: NDArray) -> dict[str, Any]:
    """Encode an array of labels with its type."""
    kind, width = classes.dtype.kind, classes.dtype.itemsize
    values = [value.decode("latin-1") if isinstance(value, bytes) else value for value in classes.tolist()]
    for value in values:
        if not isinstance(value, str | bool | int | float):
            raise UnsupportedOperation(f"the label {value!r} cannot be saved in a file; text, numbers and booleans can")
    code = {"b": "?", "O": "O", "T": "T", "U": f"U{width // 4}"}.get(kind, f"{kind}{width}")
    if not _LABEL_TYPES.fullmatch(code):
        raise UnsupportedOperation(f"labels of the type {classes.dtype} cannot be saved in a file")
    return {"type": code, "values": [encode_value(value) for value in values]}


def decode_labels(fact: object) -> NDArray:
    """Return the array of distinct labels that was encoded."""
    fact = check_mapping(fact, "classes")
    code, values = fact["type"], fact["values"]
    if not isinstance(code, str) or not _LABEL_TYPES.fullmatch(code) or not isinstance(values, list) or not values:
        raise DamagedModel(f"{code!r:.40} is not a type of labels")
    kind = {"?": bool, "U": str, "S": str, "T": str, "O": str | bool | int | float}.get(code[0], int | float)
    values = [decode_number(value) if isinstance(value, dict) else value for value in values]
    mixed = len({isinstance(value, str) for value in values}) > 1
    if mixed or not all(isinstance(value, kind) and (code[0] in "?O" or not isinstance(value, bool)) for value in values):
        raise DamagedModel(f"labels of the type {code} cannot be {str(values)[:80]}")
    dtype: Any = np.dtypes.StringDType() if code == "T" else np.dtype(code)
    if dtype.itemsize * len(values) > max(_WIDEST, 8 * sum(len(str(value)) for value in values)):
        raise DamagedModel(f"labels of the type {code} are far wider than they need be")
    try:
        values = [value.encode("latin-1") for value in values] if code[0] == "S" else values
        labels: NDArray = np.array(values, dtype=dtype)
    except (UnicodeError, OverflowError, ValueError, TypeError):
        raise DamagedModel(f"labels of the type {code} cannot be {str(values)[:80]}") from None
    if labels.ndim != 1 or labels.tolist() != values or len(set(values)) != len(values):
        raise DamagedModel(f"labels must be distinct and of the type {code}; they are {str(values)[:80]}")
    return labels


# Many strings, as arrays


def encode_strings(values: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the UTF-8 bytes of strings one after the other, and the offsets at which each begins and the last one ends."""
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def decode_strings(letters: NDArray, offsets: Sequence[int] | NDArray) -> list[str]:
    """Return the strings that were encoded."""
    if letters.dtype != np.uint8 or letters.ndim != 1:
        raise DamagedModel(f"strings must be a list of bytes; they are {letters.dtype} of shape {letters.shape}")
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or not len(bounds) or bounds[0] != 0 or bounds[-1] != len(letters) or (np.diff(bounds) < 0).any():
        raise DamagedModel(f"offsets of strings must increase from 0 to {len(letters)}, the number of their bytes")
    data, ends = letters.tobytes(), bounds.tolist()
    try:
        return [data[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends)]
    except UnicodeDecodeError:
        raise DamagedModel("strings must be UTF-8") from None
