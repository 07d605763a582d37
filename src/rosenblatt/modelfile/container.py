"""A model is one file of arrays and a header of facts, and never code: the format is safetensors, with the facts as JSON in
its metadata. What is loaded is checked before it is believed, sizes before anything is allocated for them, and the XXH64 of
header and data, so that a file in which a bit was flipped is refused; what is saved replaces the old file at once or not at
all. The same model has the same bytes: no time of day and no duration is part of a file.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from math import isfinite, prod
from os import PathLike
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh64

from rosenblatt.errors import (
    DamagedModel,
    InvalidDataType,
    InvalidParameterType,
    RosenblattError,
    UnreadableModel,
    UnsupportedOperation,
)
from rosenblatt.modelfile.atomic import atomic_write
from rosenblatt.modelfile.values import Arrays, Facts, check_list, check_mapping

__all__ = ["UnreadableModel", "blocks", "decoding", "facts", "read", "read_bytes", "write"]

FORMAT = 1
VERSION: str = import_module("rosenblatt").__version__  # by name, because the package imports what imports this
_NAME = "rosenblatt"
_SUMS = ("xxh64 of header", "xxh64 of data")  # beside the facts in the metadata; files of older versions have none
_UNKNOWN = "0" * 16  # what stands for the sum of the header where it is computed
_LARGEST_HEADER = 1 << 26  # bytes
_MOST_KEYS = 1 << 20  # of the facts
_MOST_VALUES = 1 << 22  # of the facts
_MOST_ARRAYS = 1 << 16
_MOST_AXES = 8
_LARGEST = 1 << 47  # bytes, and numbers on an axis
_DIGITS = 20  # of a whole number: those of 2⁶⁴
_DEEPEST = 40  # lists and objects within each other
_AT_ONCE = 1 << 24  # bytes handed to the disk, so that Ctrl-C is heard in between

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_WORDS = {np.dtype(code): word for word, code in _TYPES.items()}


class Place(NamedTuple):
    """Where an array lies in the data of a file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int  # bytes
    end: int


def write(path: str | PathLike, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Save facts and arrays in one file, which replaces an old one only when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    facts : mapping
        Values of JSON by name. The file also has the facts format and version.
    arrays : mapping of str to ndarray
        Numbers and truth values of any shape.

    Raises
    ------
    OutputError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "spam.model")
    ...     write(path, {"classes": ["ham", "spam"]}, {"weights": np.array([0.5, -2.0])})
    ...     read(path)[1]
    {'weights': array([ 0.5, -2. ])}
    """
    with atomic_write(path) as file:
        for block in blocks(facts, arrays):
            file.write(block)


def blocks(facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Iterator[bytes | memoryview]:
    """Yield the content of the file of facts and arrays, some bytes at a time.

    Parameters
    ----------
    facts : mapping
        Values of JSON by name.
    arrays : mapping of str to ndarray
        Numbers and truth values of any shape.

    Yields
    ------
    block : bytes or memoryview

    Examples
    --------
    >>> content = b"".join(blocks({"classes": ["ham", "spam"]}, {"weights": np.array([0.5, -2.0])}))
    >>> read_bytes(content)[0]["classes"]
    ['ham', 'spam']
    """
    columns = {name: _little_endian(name, arrays[name]) for name in sorted(arrays)}
    # Each array begins at a multiple of the size of its numbers, because larger ones come first.
    columns = dict(sorted(columns.items(), key=lambda item: -item[1].dtype.itemsize))
    header = _header({"format": FORMAT, "version": VERSION, **facts}, columns)
    yield len(header).to_bytes(8, "little") + header
    yield from _blocks(columns.values())


def read(path: str | PathLike) -> tuple[Facts, Arrays]:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    facts : dict
        Values of JSON by name.
    arrays : dict of str to ndarray

    Raises
    ------
    UnreadableModel
        If it is not a model file, or a damaged one.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "spam.model")
    ...     write(path, {"classes": ["ham", "spam"]}, {"weights": np.array([0.5, -2.0])})
    ...     facts, arrays = read(path)
    >>> facts["classes"], arrays["weights"]
    (['ham', 'spam'], array([ 0.5, -2. ]))
    """
    with decoding(path), open(path, "rb") as file:
        return _read(file, _size(file))


def read_bytes(content: bytes, path: str = "this content") -> tuple[Facts, Arrays]:
    """Read a model file whose content is given.

    Parameters
    ----------
    content : bytes
        The content of the file.
    path : str
        What messages call it.

    Returns
    -------
    facts, arrays : dict
        As `read` returns them.

    Examples
    --------
    A file in which a bit was flipped is refused:

    >>> content = bytearray(b"".join(blocks({}, {"weights": np.array([0.5, -2.0])})))
    >>> content[-1] ^= 1
    >>> try:
    ...     read_bytes(bytes(content), "spam.model")
    ... except UnreadableModel as error:
    ...     print(error.problem[:64])
    the file is damaged: its arrays have changed since it was saved:
    """
    with decoding(path):
        return _read(BytesIO(content), len(content))


def facts(path: str | PathLike) -> Facts:
    """Read the facts of a model file, however large it is: only its header is read.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    facts : dict
        As `read` returns them.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "spam.model")
    ...     write(path, {"classes": ["ham", "spam"]}, {"weights": np.zeros(1000)})
    ...     facts(path)["classes"]
    ['ham', 'spam']
    """
    with decoding(path), open(path, "rb") as file:
        return _read_header(file, _size(file))[0]


@contextmanager
def decoding(path: str | PathLike) -> Iterator[None]:
    """Raise an UnreadableModel that names the file for whatever goes wrong where it is read and decoded.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    context manager
        What is done within it is said to be reading the file.

    Examples
    --------
    >>> try:
    ...     with decoding("spam.model"):
    ...         int("eleven")
    ... except UnreadableModel as error:
    ...     print(error.path, error.problem, sep=": ")
    spam.model: the file is damaged: its facts and arrays do not describe a model that could have been saved
    """
    if not isinstance(path, str | PathLike):  # open would take a number for an open file
        raise InvalidParameterType("path", path, "the path of a file, as text or path-like")
    try:
        yield
    except UnreadableModel as error:
        error.path = error.path or os.fspath(path)
        raise
    except OSError:
        raise
    except RosenblattError as error:  # a parameter with a value that is not allowed, and the like
        raise DamagedModel(error.problem, path=path) from None
    except MemoryError:
        raise DamagedModel("it asks for more memory than there is", path=path) from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamagedModel("its facts and arrays do not describe a model that could have been saved", path=path) from error


# Writing


def _little_endian(name: str, array: NDArray) -> NDArray:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _WORDS:
        raise InvalidDataType(f"the array {name} cannot be saved: a file holds numbers and truth values, not {array.dtype}")
    return np.asarray(array, dtype=dtype, order="C")


def _blocks(arrays: Iterable[NDArray]) -> Iterator[memoryview]:
    """Yield the bytes of arrays, some at a time."""
    for array in arrays:
        if array.size:
            flat = array.reshape(-1).view(np.uint8)
            for start in range(0, len(flat), _AT_ONCE):
                yield flat[start : start + _AT_ONCE].data


def _sum(arrays: Iterable[NDArray]) -> str:
    data = xxh64()
    for block in _blocks(arrays):
        data.update(block)
    return data.hexdigest()


def _header(facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> bytes:
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False)
    sums = dict(zip(_SUMS, (_UNKNOWN, _sum(arrays.values())), strict=True))
    table: dict[str, Any] = {"__metadata__": {**sums, _NAME: text}}
    begin = 0
    for name, array in arrays.items():
        end = begin + array.nbytes
        table[name] = {"dtype": _WORDS[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    header = json.dumps(table, ensure_ascii=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _LARGEST_HEADER or len(arrays) > _MOST_ARRAYS or _too_many(text):
        raise UnsupportedOperation(
            f"the model has {len(arrays):,} arrays and a header of {len(header):,} bytes; a file can have "
            f"{_MOST_ARRAYS:,} and {_LARGEST_HEADER:,}, with {_MOST_KEYS:,} keys and {_MOST_VALUES:,} values"
        )
    return header.replace(_UNKNOWN.encode(), xxh64(header).hexdigest().encode(), 1)


# Reading


def _size(file: IO[bytes]) -> int | None:
    """Return the size of a plain file; None of a pipe or a device, which tells it only by ending."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _read(file: IO[bytes], size: int | None) -> tuple[Facts, Arrays]:
    facts, places, expected_sum = _read_header(file, size)
    if size is None:
        expected = max((place.end for place in places.values()), default=0)
        content = _read_up_to(file, expected + 1)
        if len(content) != expected:
            more = "more" if len(content) > expected else len(content)
            raise DamagedModel(f"its arrays have {expected} bytes, but it holds {more}")
        file = BytesIO(content)
    arrays = Arrays()
    for name, place in places.items():
        array = arrays[name] = np.empty(place.shape, place.dtype)
        if array.size and file.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]  # bytes
            raise DamagedModel(f"it ends within the array {name}")
    if expected_sum is not None:
        _check_sum("arrays", _sum(arrays.values()), expected_sum)
    return facts, arrays


def _check_sum(what: str, found: str, expected: str) -> None:
    if found != expected:
        problem = f"its {what} have changed since it was saved: their XXH64 checksum is {found}, not {expected}"
        raise DamagedModel(problem, hint="copy or train it again")


def _read_up_to(file: IO[bytes], most: int) -> bytearray:
    """Return the next bytes of a file, as they come, so that memory is needed for those only that are there."""
    content = bytearray()
    while len(content) < most and (block := file.read(min(_AT_ONCE, most - len(content)))):
        content += block
    return content


def _read_header(file: IO[bytes], size: int | None) -> tuple[Facts, dict[str, Place], str | None]:
    """Return the facts, where the arrays lie, in their order in the file, which is then at the first of them, and what the
    XXH64 of all of them must be; None in a file of an older version."""
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    room = _LARGEST_HEADER if size is None else min(size - 8, _LARGEST_HEADER)
    if len(start) < 9 or not 2 <= length <= room or start[8:] != b"{":
        extent = "" if size is None else f" ({size} bytes)"
        raise UnreadableModel(f"not a model of rosenblatt: the file does not begin as one{extent}")
    header = start[8:] + file.read(length - 1)
    # Within the facts, which are text, a backslash goes before each quote.
    if header.count(b'":') - header.count(b'\\":') > 4 * _MOST_ARRAYS + 8 or header.count(b",") > 4 * _MOST_VALUES:
        raise DamagedModel(f"it has more than {_MOST_ARRAYS:,} arrays")
    table = _parse_json("the header", header)
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_NAME), str):
        raise UnreadableModel("not a model of rosenblatt: a file of arrays without facts about a model")
    if _too_many(metadata[_NAME]):
        raise DamagedModel(f"its facts have more than {_MOST_KEYS:,} keys or {_MOST_VALUES:,} values")
    facts = _parse_json("the text of its facts", metadata[_NAME])
    _check_format(facts)
    sums = [metadata.get(name) for name in _SUMS]
    if set(metadata) - {*_SUMS, _NAME} or (set(map(type, sums)) != {type(None)} and not all(map(_is_sum, sums))):
        raise DamagedModel(f"beside the facts its header must have {' and '.join(_SUMS)}, and nothing else")
    if sums[0] is not None:
        blank = header.replace(sums[0].encode(), _UNKNOWN.encode(), 1)
        _check_sum("facts", xxh64(blank).hexdigest(), sums[0])
    return facts, _find_arrays(table, None if size is None else size - 8 - length), sums[1]


def _is_sum(value: object) -> bool:
    return isinstance(value, str) and len(value) == len(_UNKNOWN) and value.isascii()


def _too_many(text: str) -> bool:
    """Return whether facts have more keys or values than a file may have; so much is known before they are parsed."""
    return text.count('":') > _MOST_KEYS or text.count(",") + text.count("[") + text.count("{") > _MOST_VALUES


def _parse_json(what: str, text: str | bytes) -> Facts:
    hooks: Any = {"parse_constant": _parse_finite, "parse_float": _parse_finite, "parse_int": _parse_whole}
    try:
        value = json.loads(text, object_pairs_hook=_distinct_keys, **hooks)
    except json.JSONDecodeError as error:
        raise DamagedModel(f"{what} is not JSON from character {error.pos + 1} on") from None
    except UnicodeDecodeError as error:
        raise DamagedModel(f"{what} is not UTF-8 from byte {error.start + 1} on") from None
    except RecursionError:
        raise DamagedModel(f"lists within lists are more than {_DEEPEST} deep") from None
    if not isinstance(value, Facts):
        raise DamagedModel(f"{what} must be an object of JSON; it is {value!r:.40}")
    _check_depth(value)
    return value


def _distinct_keys(pairs: Iterable[tuple[str, Any]]) -> Facts:
    known = Facts()
    for key, value in pairs:
        if key in known:
            raise DamagedModel(f"it has the key {key!r:.80} twice")
        known[key] = value
    return known


def _parse_finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise DamagedModel(f"{text} is not a finite number")
    return value


def _parse_whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise DamagedModel(f"{text[:_DIGITS]}… has more than {_DIGITS} digits")
    return int(text)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for whole in level if isinstance(whole, dict | list)
                 for part in (whole.values() if isinstance(whole, dict) else whole)]  # fmt: skip
        if not level:
            return
    raise DamagedModel(f"lists within lists are more than {_DEEPEST} deep")


def _check_format(facts: Mapping[str, Any]) -> None:
    found = facts.get("format")
    if isinstance(found, int) and found > FORMAT:
        raise UnreadableModel(
            f"the file has format {found}, of version {facts.get('version')}; this is rosenblatt {VERSION}, which reads "
            f"format {FORMAT}",
            hint="upgrade it, or save the model with this version",
        )
    if found != FORMAT or isinstance(found, bool):
        raise DamagedModel(f"its format is {found!r}, not a whole number from {FORMAT} on")


def _find_arrays(table: Mapping[str, Any], size: int | None) -> dict[str, Place]:
    """Return where each array lies, if all lie one after the other and fill the file, where its size is known."""
    if len(table) > _MOST_ARRAYS:
        raise DamagedModel(f"it has {len(table):,} arrays; {_MOST_ARRAYS:,} are the most")
    places = {name: _place(name, entry) for name, entry in table.items()}
    places = dict(sorted(places.items(), key=lambda item: (item[1].begin, item[1].end)))
    end = 0
    for name, place in places.items():
        if place.begin != end:
            raise DamagedModel(f"the array {name} begins at byte {place.begin}, the one before ends at {end}")
        end = place.end
    if size is not None and end != size:
        raise DamagedModel(f"its arrays have {end} bytes, but it holds {size}")
    return places


def _place(name: str, entry: Any) -> Place:
    entry = check_mapping(entry, f"the entry of the array {name}")
    word, shape, offsets = entry["dtype"], entry["shape"], check_list(entry["data_offsets"], "data_offsets", int)
    if len(offsets) != 2:
        raise DamagedModel(f"the array {name} must have two data_offsets; it has {len(offsets)}")
    begin, end = offsets
    if set(entry) != {"dtype", "shape", "data_offsets"} or not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise DamagedModel(f"the array {name} is described as {str(entry)[:200]}")
    if not isinstance(word, str) or word not in _TYPES:
        raise DamagedModel(f"the array {name} has the type {str(word)[:20]!r}; a model has {', '.join(_TYPES)}")
    numbers = (*shape, begin, end)
    if any(type(number) is not int or not 0 <= number <= _LARGEST for number in numbers) or (
        prod(number or 1 for number in shape) > _LARGEST
    ):
        raise DamagedModel(f"the array {name} has the shape {str(shape)[:200]} from byte {str(begin)[:20]} on")
    dtype = np.dtype(_TYPES[word])
    if end - begin != prod(shape) * dtype.itemsize:
        raise DamagedModel(f"the array {name} of shape {shape} has {end - begin} bytes")
    return Place(dtype, tuple(shape), begin, end)
