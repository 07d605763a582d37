"""Read matrices as exact rational numbers: 0.1 is one tenth, and 1/3 a third.

A row a line, its numbers separated by commas, semicolons, tabs or blanks; # begins a comment, and a first line of names is
passed over. A program (`read_program`) is JSON with the arguments of `scipy.optimize.linprog`. Files may be compressed.

    from rosenblatt.data import matrix

    matrix.read("A.csv")  # a list of tuples of Fractions
    matrix.read_program("diet.json")  # {"c": [...], "A_ub": [...], "b_ub": [...]}
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from rosenblatt.data.opening import Input, name_of, text_lines
from rosenblatt.errors import FormatError

NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3}|/[0-9]+)?")
_BETWEEN = re.compile(r"\s*[,;\t]\s*|\s+")
_PARTS = {"c", "A_ub", "b_ub", "A_eq", "b_eq", "bounds"}
LARGEST = 1 << 28  # bytes of a program


def read(path: str | PathLike) -> list[tuple[Fraction, ...]]:
    """Read a matrix exactly, from a text or from an array that numpy saved (.npy).

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.

    Returns
    -------
    list of tuple of Fraction
        The rows.

    Raises
    ------
    FormatError
        If a number cannot be read, or rows differ in length.
    """
    with Input(path) as stream:
        if stream.peek(6) == b"\x93NUMPY":
            return _load_array(stream, name_of(path))
        text = io.TextIOWrapper(stream, "utf-8", errors="surrogateescape")
        return _rows(text_lines(text, name_of(path), stream.max_line), name_of(path))


def read_program(path: str | PathLike) -> dict[str, Any]:
    """Read a linear program exactly, from JSON.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.

    Returns
    -------
    dict
        c, and where they are given A_ub, b_ub, A_eq, b_eq and bounds, as Fractions.

    Raises
    ------
    FormatError
        If it is not JSON, or not a linear program.
    """
    name = name_of(path)
    with Input(path) as stream:
        content = _whole(stream, name)
    try:
        program = json.loads(content, parse_float=_number, parse_int=_number, parse_constant=_number)
    except json.JSONDecodeError as error:
        raise FormatError(f"the file is not JSON: {error.msg}", path=name, line=error.lineno, column=error.colno) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(str(error), path=name) from None
    if not isinstance(program, dict) or "c" not in program or not program.keys() <= _PARTS:
        got = ", ".join(program) if isinstance(program, dict) else type(program).__name__
        problem = f"a linear program must be a JSON object with c and any of {', '.join(sorted(_PARTS - {'c'}))}; got {got}"
        raise FormatError(problem, path=name)
    try:
        return {part: _numbers(value) for part, value in program.items()}
    except ValueError as error:
        raise FormatError(str(error), path=name) from None


def _whole(stream: Input, name: str) -> bytes:
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise FormatError(f"the file is larger than {LARGEST >> 20} MiB, too large to be solved exactly", path=name)
    return content


def _load_array(stream: Input, name: str) -> list[tuple[Fraction, ...]]:
    try:
        array = np.load(io.BytesIO(_whole(stream, name)), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(f"the file is not an array that numpy can read: {error}", path=name) from None
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or not np.isfinite(array).all():
        problem = f"the array must be a matrix of finite numbers; got {array.dtype} of shape {array.shape}"
        raise FormatError(problem, path=name)
    return [tuple(map(Fraction, row)) for row in array.tolist()]


def _rows(lines: Iterable[str], name: str) -> list[tuple[Fraction, ...]]:
    rows: list[tuple[Fraction, ...]] = []
    first = True
    for number, line in enumerate(lines, 1):
        text = line.removeprefix("\ufeff").partition("#")[0].strip()
        if not text:
            continue
        cells = _BETWEEN.split(text.rstrip(",;"))
        heading = first and not any(NUMBER.fullmatch(cell) for cell in cells)
        first = False
        if heading:
            continue
        wrong = next((j for j, cell in enumerate(cells) if not NUMBER.fullmatch(cell)), None)
        if wrong is not None:
            problem = f"{cells[wrong]!r:.40} is not a number; write it as 3, -0.5, 1e-3 or 1/3"
            raise FormatError(problem, path=name, line=number, column=wrong + 1)
        if rows and len(cells) != len(rows[0]):
            problem = f"{len(cells)} numbers where the rows before have {len(rows[0])}"
            raise FormatError(problem, path=name, line=number)
        try:
            rows.append(tuple(map(Fraction, cells)))
        except (ZeroDivisionError, ValueError) as error:
            raise FormatError(f"a number cannot be read: {error}", path=name, line=number) from None
    if not rows:
        raise FormatError("the file has no numbers", path=name, hint="write a row on each line, as in 1, -2, 0.5")
    return rows


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    return value if value is None or isinstance(value, Fraction) else _number(value)


def _number(text: Any) -> Fraction:
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise ValueError(f'{text!r:.40} is not a number; write it as 3, -0.5, 1e-3 or "1/3"')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError(f"{text} divides by zero") from None
