"""Examples as JSON: a row is text, an object of values by name, or a list of numbers. A number is written with the fewest
digits that are read back as the same double, so a server learns what a model in the same process would have learned."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from rosenblatt.errors import InvalidData, InvalidDataType, NumericOverflow, shown
from rosenblatt.online.rows import RowLike, read_row

Label = str | int | float | bool
_NO_NUMBERS = (bytes, bytearray, complex, np.datetime64, np.timedelta64)
_UNKNOWN = "leave out what is not known"


def row_json(x: RowLike | str) -> tuple[str, str]:
    """Return the key of a row in an example, "x" or "text", and the row as JSON."""
    if isinstance(x, str):
        return "text", _encoded(str(x), x)
    row = read_row(x)
    if isinstance(row, dict):
        return "x", _encoded(_named(row), x)
    return "x", _encoded(row.tolist(), x)


def label_json(y: Hashable) -> str:
    """Return a label as JSON: text, a truth value or a number; 2.0 is the whole number 2."""
    label = y.item() if isinstance(y, np.generic) else y
    if not isinstance(label, str | int | float):
        raise InvalidDataType(f"a label must be text, a number or a truth value; got {shown(y)}")
    if isinstance(label, float) and not math.isfinite(label):
        raise InvalidData(f"a label must not be NaN or infinite; got {y!r}")
    return _encoded(int(label) if isinstance(label, float) and label.is_integer() else label, y)


def label_key(label: object) -> str:
    """Return a label as the key that it is in JSON objects: text as it is, all else as JSON writes it."""
    return label if isinstance(label, str) else json.dumps(label)


def weight_json(w: float) -> str:
    """Return the weight of an example as JSON."""
    try:
        weight = float(w)
    except (TypeError, ValueError):
        raise InvalidDataType(f"the weight of an example must be a finite number; got {shown(w)}") from None
    if not (weight >= 0.0 and math.isfinite(weight)):
        raise InvalidData(f"the weight of an example must be finite and not negative; got {w!r}")
    return repr(weight)


def batches(lines: Iterable[bytes], most_rows: int, most_bytes: int) -> Iterator[list[bytes]]:
    """Yield lines in lists of at most so many lines and bytes; a line that is longer has a list of its own."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == most_rows or size + len(line) > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line) + 1
    if batch:
        yield batch


def _named(row: Mapping[Hashable, object]) -> dict[str, object]:
    """Return a row with the names that JSON can have: text, and whole numbers as text."""
    if all(type(name) is str for name in row):
        return dict(row)  # type: ignore[arg-type]  # the line before has seen that all names are text
    named: dict[str, object] = {}
    for name, value in row.items():
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise InvalidDataType(
                f"the name of a feature must be text or a whole number to be sent to a server; got {shown(name)}"
            )
        text = str(name)
        if text in named:
            raise InvalidData(f"the row has the feature {text!r} twice: as a number and as text")
        named[text] = value
    return named


def _encoded(value: object, received: object) -> str:
    try:
        text = json.dumps(value, default=_plain_value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise InvalidData(f"text holds half of a surrogate pair, which is not a character; got {shown(received)}") from None
    except InvalidData:
        raise
    except (ValueError, RecursionError):
        raise InvalidData(f"the value of a feature must be finite; got {shown(received)}", hint=_UNKNOWN) from None
    return text


def _plain_value(value: object) -> object:
    """Return what `json` cannot write, such as a number of numpy, as what it can."""
    if isinstance(value, np.generic) and not isinstance(value, _NO_NUMBERS) and not isinstance(value, np.complexfloating):
        return value.item()
    if not isinstance(value, _NO_NUMBERS) and hasattr(value, "__float__"):
        try:
            return float(value)
        except OverflowError:
            raise NumericOverflow(f"the value of a feature is too large: it is {shown(value)}") from None
        except (TypeError, ValueError):
            pass
    raise InvalidDataType(
        f"the value of a feature must be a number, a truth value or text; got {shown(value)}", hint=_UNKNOWN
    )
