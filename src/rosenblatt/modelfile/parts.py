"""What has been learned, taken apart into named facts and arrays and put together again. Whoever puts it together says for
each part what it must be: nothing that a file says is believed beyond that, because compiled code checks no index.

A fact is a value of JSON. Whatever takes a part raises a ValueError, TypeError or KeyError where it is not as it must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

MOST = 1 << 62  # of what is counted; sums of two counts fit into 64 bits
_LAYOUTS: dict[str, Any] = {"dense": None, "csr": sp.csr_matrix, "csr array": sp.csr_array}


class Parts:
    """Facts and arrays by name. An array that is taken is gone, so that what nobody took can be told."""

    def __init__(self, facts: Mapping[str, Any] | None = None, arrays: dict[str, NDArray] | None = None):
        if not isinstance(facts, Mapping | None):
            raise TypeError(f"facts must be an object; they are {facts!r:.40}")
        self.facts: dict[str, Any] = dict(facts or {})
        self.arrays: dict[str, NDArray] = {} if arrays is None else arrays

    # Facts

    def whole(self, name: str, low: int = 0, high: int = MOST) -> int:
        """A whole number."""
        return whole(self.facts[name], name, low, high)

    def real(self, name: str) -> float:
        """A finite number, as a float."""
        value = real(self.facts[name])
        if not np.isfinite(value):
            raise ValueError(f"{name} must be a finite number; it is {value}")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self.facts[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be true or false; it is {value!r:.40}")
        return value

    def text(self, name: str, among: Iterable[str] | None = None) -> str:
        """Text, if need be one of these words."""
        value = self.facts[name]
        if not isinstance(value, str) or (among is not None and value not in set(among)):
            allowed = "text" if among is None else f"one of {', '.join(among)}"
            raise ValueError(f"{name} must be {allowed}; it is {value!r:.40}")
        return value

    # Parts within parts

    def put_parts(self, name: str, other: Parts, prefix: str | None = None) -> None:
        """Store other parts under a name: their facts as the fact `name`, their arrays as `prefix` + their own name.

        The prefix is `name/` where none is given; "" keeps the names of the arrays. Parts without facts store no fact.
        """
        if other.facts:
            self.facts[name] = other.facts
        prefix = f"{name}/" if prefix is None else prefix
        self.arrays.update({prefix + own: array for own, array in other.arrays.items()})

    def parts(self, name: str, prefix: str | None = None) -> Parts:
        """Return the parts that `put_parts` stored under a name, and take their arrays out of these parts.

        With the prefix "" both share the arrays: what is taken from one is taken from the other.
        """
        prefix = f"{name}/" if prefix is None else prefix
        arrays = self.arrays
        if prefix:
            arrays = {own[len(prefix) :]: arrays.pop(own) for own in [*arrays] if own.startswith(prefix)}
        return Parts(self.facts.get(name), arrays)

    # Arrays

    def array(
        self, name: str, dtype: Any, shape: tuple[int | None, ...], low: Any = None, high: Any = None, endless: bool = False
    ) -> NDArray:
        """An array of this type and shape (None: of any length), with values from `low` to `high` where these are given;
        floats are finite, or with `endless` perhaps −∞."""
        array = self.arrays.pop(name)
        if array.dtype != dtype:
            raise TypeError(f"the array {name} must have the type {np.dtype(dtype)}; it has {array.dtype}")
        if array.ndim != len(shape) or any(want not in (None, have) for have, want in zip(array.shape, shape, strict=True)):
            raise ValueError(f"the array {name} must have the shape {shape}; it has {array.shape}")
        check_finite(name, array, endless)
        for wrong, edge in ((np.less, low), (np.greater, high)):
            if edge is not None and wrong(array, edge).any():
                raise ValueError(f"the array {name} has {array[wrong(array, edge)][0]}; it must be from {low} to {high}")
        return array

    def put(self, name: str, array: NDArray, endless: bool = False) -> None:
        """Put an array that a reader will accept."""
        check_finite(name, array, endless)
        self.arrays[name] = array

    def counts(self, name: str, size: int) -> NDArray:
        """So many counts, int64."""
        return self.array(name, np.int64, (size,), 0, MOST)

    def put_rows(self, name: str, rows: Any) -> None:
        """Put a matrix, dense or CSR."""
        if not sp.issparse(rows):
            self.facts[name] = "dense"
            self.put(name, rows)
            return
        self.facts[name] = "csr array" if isinstance(rows, sp.sparray) else "csr"
        self.put(f"{name}/values", rows.data[: rows.indptr[-1]])
        self.put(f"{name}/columns", rows.indices[: rows.indptr[-1]])
        self.put(f"{name}/starts", rows.indptr)

    def rows(self, name: str, count: int | None, features: int) -> Any:
        """A matrix of float32 or float64, dense or CSR, with so many rows (None: any number)."""
        layout = self.text(name, _LAYOUTS)
        if layout == "dense":
            return self.array(name, _floats(self.arrays[name]), (count, features))
        kind = self.arrays[f"{name}/columns"].dtype
        if kind not in (np.int32, np.int64):
            raise TypeError(f"the columns of {name} must be int32 or int64; they are {kind}")
        starts = self.array(f"{name}/starts", kind, (None if count is None else count + 1,), 0)
        if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise ValueError(f"the starts of {name} must rise from 0")
        values = self.array(f"{name}/values", _floats(self.arrays[f"{name}/values"]), (int(starts[-1]),))
        columns = self.array(f"{name}/columns", kind, (int(starts[-1]),), 0, features - 1)
        return _LAYOUTS[layout]((values, columns, starts), shape=(len(starts) - 1, features))

    def put_records(self, name: str, records: NDArray) -> None:
        """Put an array of records, each field as an array."""
        for field in records.dtype.names or ():
            self.put(f"{name}/{field}", records[field])

    def records(self, name: str, dtype: np.dtype, bounds: Mapping[str, tuple[int, int]]) -> NDArray:
        """An array of records, whose fields of whole numbers are within these bounds, both included."""
        fields = {}
        for field in dtype.names or ():
            fields[field] = self.array(f"{name}/{field}", dtype[field], (None,), *bounds.get(field, ()))
        sizes = {len(field) for field in fields.values()}
        if len(sizes) != 1:
            raise ValueError(f"the fields of {name} must be equally long; they have {sorted(sizes)} values")
        records = np.empty(sizes.pop(), dtype)
        for field, values in fields.items():
            records[field] = values
        return records

    def put_texts(self, name: str, values: list) -> None:
        """Put a list of JSON that is too long for the facts."""
        self.arrays[name] = np.frombuffer(json.dumps(values, ensure_ascii=False, allow_nan=False).encode(), np.uint8)

    def texts(self, name: str, count: int | None = None) -> list:
        """Such a list, of so many values."""
        values = json.loads(self.array(name, np.uint8, (None,)).tobytes().decode())
        if not isinstance(values, list) or (count is not None and len(values) != count):
            raise ValueError(f"{name} must be a list of {'any number of' if count is None else count} values")
        return values


def _floats(array: NDArray) -> np.dtype:
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"rows must be float32 or float64; they are {array.dtype}")
    return array.dtype


def check_finite(name: str, array: NDArray, endless: bool = False) -> None:
    """Raise a ValueError if an array has NaN or infinity, which a file must not; `endless` allows −∞."""
    if array.dtype.kind == "f":
        fine = np.isfinite(array)
        if not (fine | np.isneginf(array) if endless else fine).all():
            raise ValueError(f"the array {name} has values that are no finite numbers")


def whole(value: Any, name: str, low: int = 0, high: int = MOST) -> int:
    """A whole number in a range, both ends included."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}; it is {value!r:.40}")
    return value


def real(value: Any) -> Any:
    """A number, which JSON may not know: int or float as it was, and infinity."""
    if type(value) in (int, float):
        return value
    if isinstance(value, dict) and list(value) == ["float"] and value["float"] in ("inf", "-inf"):
        return float(value["float"])
    raise TypeError(f"a number is needed, not {value!r:.40}")


def as_fact(value: Any) -> Any:
    """A number as a value of JSON, infinity too."""
    value = value.item() if isinstance(value, np.generic) else value
    return {"float": repr(float(value))} if isinstance(value, float) and np.isinf(value) else value


# Records: a NamedTuple of numbers, such as a rule, under a word that a table knows.


def put_record(told: Any, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """A NamedTuple of numbers as a fact; a TypeError if its type is none of those that a file can name."""
    for word, kind in kinds.items():
        if type(told) is kind:
            return {"kind": word, **{name: as_fact(value) for name, value in zip(kind._fields, told, strict=True)}}
    raise TypeError(f"{told!r} cannot be written into a file; of its kind only {', '.join(kinds)} can")


def record(told: Any, kinds: Mapping[str, Any]) -> Any:
    """The NamedTuple that a fact describes, if each of its numbers has the type of its field."""
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str) or told["kind"] not in kinds:
        raise ValueError(f"{str(told)[:80]} is none of {', '.join(kinds)}")
    kind: Any = kinds[told["kind"]]
    if set(told) != {"kind", *kind._fields}:
        raise ValueError(f"{told['kind']} is described by {', '.join(kind._fields)}; got {', '.join(told)}")
    return kind(*(_typed(told[name], name, kind.__annotations__[name]) for name in kind._fields))


def _typed(value: Any, name: str, annotation: Any) -> Any:
    expected = getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", annotation))
    if expected == "bool":
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be true or false; it is {value!r:.40}")
        return value
    if expected == "int":
        return whole(value, name, -MOST, 2 * MOST - 1)
    return real(value)
