"""What is kept in a model file, as named facts and arrays.

Everything that is kept has `to_parts`, which takes it apart, and `from_parts`, which puts it together again and says for
each part what it must be: nothing that a file says is believed beyond that, because compiled code checks no index.
A fact is a value of JSON. Whatever takes a part raises a DamagedModel where it is not as it must be.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from rosenblatt.errors import DamagedModel, NumericOverflow
from rosenblatt.modelfile.values import MOST, Arrays, Facts, check_list, check_mapping, check_whole, decode_number

_LAYOUTS: dict[str, Any] = {"dense": None, "csr": sp.csr_matrix, "csr array": sp.csr_array}


class Parts:
    """Facts and arrays by name.

    An array that is taken is gone, so that `check_all_taken` can find those that nothing uses.

    Parameters
    ----------
    facts : mapping of str to a value of JSON, optional
    arrays : dict of str to ndarray, optional
        They are not copied: arrays that are taken are taken out of this dictionary.
    """

    def __init__(self, facts: Mapping[str, Any] | None = None, arrays: dict[str, NDArray] | None = None):
        if not isinstance(facts, Mapping | None):
            raise DamagedModel(f"facts must be an object; they are {facts!r:.40}")
        self.facts = Facts(facts or {})
        self.arrays = arrays if isinstance(arrays, Arrays) else Arrays(arrays or {})

    # Facts

    def whole(self, name: str, low: int = 0, high: int = MOST) -> int:
        """Return a whole number from `low` to `high`."""
        return check_whole(self.facts[name], name, low, high)

    def real(self, name: str) -> float:
        """Return a finite number, as a float."""
        value = decode_number(self.facts[name])
        if not np.isfinite(value):
            raise DamagedModel(f"{name} must be a finite number; it is {value}")
        return float(value)

    def flag(self, name: str) -> bool:
        """Return True or False."""
        value = self.facts[name]
        if not isinstance(value, bool):
            raise DamagedModel(f"{name} must be true or false; it is {value!r:.40}")
        return value

    def text(self, name: str, choices: Collection[str] | None = None) -> str:
        """Return text, if need be one of these words."""
        value = self.facts[name]
        if not isinstance(value, str) or (choices is not None and value not in set(choices)):
            allowed = "text" if choices is None else f"one of {', '.join(choices)}"
            raise DamagedModel(f"{name} must be {allowed}; it is {value!r:.40}")
        return value

    def values(self, name: str, kind: type, count: int | None = None) -> list[Any]:
        """Return a list of values that all have this type, and are so many where that is known."""
        values = check_list(self.facts[name], name, kind)
        if count not in (None, len(values)):
            raise DamagedModel(f"{name} must have {count} values; it has {len(values)}")
        return values

    def wholes(self, name: str, count: int) -> list[int]:
        """Return so many counts."""
        return [check_whole(value, name) for value in self.values(name, int, count)]

    def mapping(self, name: str) -> Facts:
        """Return an object of JSON."""
        return check_mapping(self.facts[name], name)

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
            arrays = Arrays({own[len(prefix) :]: arrays.pop(own) for own in [*arrays] if own.startswith(prefix)})
        return Parts(check_mapping(self.facts.get(name, {}), name), arrays)

    def check_all_taken(self) -> None:
        """Raise a DamagedModel if there are arrays that were not taken."""
        if self.arrays:
            raise DamagedModel(f"it has arrays that nothing uses: {', '.join(sorted(self.arrays))}")

    # Arrays

    def array(
        self,
        name: str,
        dtype: DTypeLike,
        shape: tuple[int | None, ...],
        low: float | None = None,
        high: float | None = None,
        minus_infinity: bool = False,
    ) -> NDArray:
        """Return an array of this type and shape (None: of any length), with values from `low` to `high` where these are
        given; floats are finite, or with `minus_infinity` perhaps −∞."""
        array = self.arrays.pop(name)
        if array.dtype != dtype:
            raise DamagedModel(f"the array {name} must have the type {np.dtype(dtype)}; it has {array.dtype}")
        if array.ndim != len(shape) or any(want not in (None, have) for have, want in zip(array.shape, shape, strict=True)):
            raise DamagedModel(f"the array {name} must have the shape {shape}; it has {array.shape}")
        check_finite(name, array, minus_infinity)
        for outside, edge in ((np.less, low), (np.greater, high)):
            if edge is not None and outside(array, edge).any():
                raise DamagedModel(
                    f"the array {name} has {array[outside(array, edge)][0]}; it must be from {low} to {high}"
                )
        return array

    def floats(self, name: str, shape: tuple[int | None, ...], dtype: DTypeLike | None = None) -> NDArray:
        """Return an array of float32 or float64, whichever it is where `dtype` is None."""
        kind = self.arrays[name].dtype if dtype is None else dtype
        if kind not in (np.float32, np.float64):
            raise DamagedModel(f"{name} must be float32 or float64; it is {kind}")
        return self.array(name, kind, shape)

    def put(self, name: str, array: NDArray, minus_infinity: bool = False) -> None:
        """Store an array that a reader will accept."""
        check_finite(name, array, minus_infinity)
        self.arrays[name] = array

    def counts(self, name: str, size: int) -> NDArray:
        """Return so many counts, int64."""
        return self.array(name, np.int64, (size,), 0, MOST)

    def put_rows(self, name: str, rows: Any) -> None:
        """Store a matrix, dense or CSR."""
        if not sp.issparse(rows):
            self.facts[name] = "dense"
            self.put(name, rows)
            return
        self.facts[name] = "csr array" if isinstance(rows, sp.sparray) else "csr"
        self.put(f"{name}/values", rows.data[: rows.indptr[-1]])
        self.put(f"{name}/columns", rows.indices[: rows.indptr[-1]])
        self.put(f"{name}/starts", rows.indptr)

    def rows(self, name: str, count: int | None, features: int) -> Any:
        """Return a matrix of float32 or float64, dense or CSR, with so many rows (None: any number)."""
        layout = self.text(name, _LAYOUTS)
        if layout == "dense":
            return self.floats(name, (count, features))
        kind = self.arrays[f"{name}/columns"].dtype
        if kind not in (np.int32, np.int64):
            raise DamagedModel(f"the columns of {name} must be int32 or int64; they are {kind}")
        starts = self.array(f"{name}/starts", kind, (None if count is None else count + 1,), 0)
        if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise DamagedModel(f"the starts of {name} must increase from 0")
        values = self.floats(f"{name}/values", (int(starts[-1]),))
        columns = self.array(f"{name}/columns", kind, (int(starts[-1]),), 0, features - 1)
        return _LAYOUTS[layout]((values, columns, starts), shape=(len(starts) - 1, features))

    def put_records(self, name: str, records: NDArray) -> None:
        """Store an array of records, each field as an array."""
        for field in records.dtype.names or ():
            self.put(f"{name}/{field}", records[field])

    def records(self, name: str, dtype: np.dtype, bounds: Mapping[str, tuple[int, int]]) -> NDArray:
        """Return an array of records, whose fields of whole numbers are within these bounds, both included."""
        fields = {}
        for field in dtype.names or ():
            fields[field] = self.array(f"{name}/{field}", dtype[field], (None,), *bounds.get(field, ()))
        sizes = {len(field) for field in fields.values()}
        if len(sizes) != 1:
            raise DamagedModel(f"the fields of {name} must be equally long; they have {sorted(sizes)} values")
        records = np.empty(sizes.pop(), dtype)
        for field, values in fields.items():
            records[field] = values
        return records

    def put_json(self, name: str, values: Sequence[object]) -> None:
        """Store a list of values of JSON that is too long for the facts."""
        self.arrays[name] = np.frombuffer(json.dumps(values, ensure_ascii=False, allow_nan=False).encode(), np.uint8)

    def json_list(self, name: str, count: int | None = None) -> list[Any]:
        """Return such a list, of so many values."""
        try:
            values = json.loads(self.array(name, np.uint8, (None,)).tobytes().decode(), object_hook=Facts)
        except (ValueError, RecursionError):
            raise DamagedModel(f"the array {name} must be a list of JSON") from None
        if not isinstance(values, list) or (count is not None and len(values) != count):
            raise DamagedModel(f"{name} must be a list of {'any number of' if count is None else count} values")
        return values


def check_finite(name: str, array: NDArray, minus_infinity: bool = False) -> None:
    """Raise a ValueError if an array has NaN or infinity, which a file must not; −∞ where that is allowed."""
    if array.dtype.kind == "f":
        fine = np.isfinite(array)
        if not (fine | np.isneginf(array) if minus_infinity else fine).all():
            raise NumericOverflow(f"the array {name} has values that are infinite or NaN, which a model file cannot hold")
