"""Read matrices as exact rational numbers: 0.1 is one tenth, and 1/3 a third.

A row a line, its numbers separated by commas, semicolons, tabs or blanks; # begins a comment, and a first line of names is
passed over. A program (`read_program`) is JSON with the arguments of `scipy.optimize.linprog`. Files may be compressed.

    from rosenblatt.data import matrix

    matrix.read("A.csv")  # a list of tuples of Fractions
    matrix.read_program("diet.json")  # {"c": [...], "A_ub": [...], "b_ub": [...]}
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from fractions import Fraction
from os import PathLike
from tokenize import TokenError
from typing import Any

import numpy as np

from rosenblatt.data import json_text
from rosenblatt.data.opening import Input, name_of, text_lines
from rosenblatt.errors import FormatError

NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3}|/[0-9]+)?")
_BETWEEN = re.compile(r"\s*[,;\t]\s*|\s+")
_PARTS = {"c", "A_ub", "b_ub", "A_eq", "b_eq", "bounds"}
LARGEST = 1 << 28  # bytes of a program
# What numpy raises for headers that are not its own: of its parser, and for a shape that is far larger than the file.
_NO_ARRAY = (ArithmeticError, EOFError, MemoryError, SyntaxError, TokenError, TypeError, ValueError)
_LONGEST = 4000  # characters of a number; of more than 4,300 digits Python makes none


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
    program = json_text.parse(content, name, parse_float=_number, parse_int=_number, parse_constant=_number)
    if not isinstance(program, dict) or "c" not in program or not program.keys() <= _PARTS:
        got = ", ".join(program) if isinstance(program, dict) else type(program).__name__
        problem = f"a linear program must be a JSON object with c and any of {', '.join(sorted(_PARTS - {'c'}))}; got {got}"
        raise FormatError(problem, path=name)
    try:
        return {part: _numbers(value) for part, value in program.items()}
    except FormatError as error:
        raise FormatError(error.problem, path=name) from None


def _whole(stream: Input, name: str) -> bytes:
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise FormatError(f"the file is larger than {LARGEST >> 20} MiB, too large to be solved exactly", path=name)
    return content


def _load_array(stream: Input, name: str) -> list[tuple[Fraction, ...]]:
    try:
        array = np.load(io.BytesIO(_whole(stream, name)), allow_pickle=False)
    except _NO_ARRAY:
        problem = "this is not an array of numbers that numpy saved, or a damaged one"
        raise FormatError(problem, path=name, hint="save it again with numpy.save") from None
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
            rows.append(tuple(map(_number, cells)))
        except FormatError as error:
            raise FormatError(error.problem, path=name, line=number) from None
    if not rows:
        raise FormatError("the file has no numbers", path=name, hint="write a row on each line, as in 1, -2, 0.5")
    return rows


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    return value if value is None or isinstance(value, Fraction) else _number(value)


def _number(text: Any) -> Fraction:
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise FormatError(f'{text!r:.40} is not a number; write it as 3, -0.5, 1e-3 or "1/3"')
    if len(text) > _LONGEST:
        raise FormatError(f"a number has {len(text):,} characters; {_LONGEST:,} are the most")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise FormatError(f"{text:.40} divides by zero") from None
