"""The table of file formats: their names, suffixes, how their content begins, and which reading they need.

A format is detected by the suffix of the file name, below that of a compression; else by the first bytes and lines. This is
the only detector: `reading_for` and the readings of tables use it.

>>> [format.name for format in TABLE]
['npy', 'parquet', 'arrow', 'jsonl', 'vw', 'svmlight', 'tsv', 'csv']
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rosenblatt.data.compression import SUFFIXES
from rosenblatt.data.opening import BOM, Input, rereadable
from rosenblatt.data.reading import Reading
from rosenblatt.data.remote import is_url
from rosenblatt.errors import FormatError, IncompatibleParameters, InvalidParameter

START = 1 << 16  # bytes of a file that are looked at
DELIMITERS = ",;\t|"
# The class that reads a format, by the name that model files have for it.
READINGS = {
    "svmlight": ("rosenblatt.data.svmlight", "Svmlight"),
    "vw": ("rosenblatt.data.vw", "Vw"),
    "table": ("rosenblatt.data.tables", "Table"),
    "npy": ("rosenblatt.data.npy", "Npy"),
}
_PAIR = re.compile(r"\s\d+:\S")
_SVMLIGHT = re.compile(r"\S+(\s+qid:\d+)?(\s+\d+:\S+)*\s*(#.*)?")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# [label [importance [base]]] ['tag]|namespace: a number that touches the bar is a field of a table. A label and a blank go
# before a tag without an apostrophe.
_VW = re.compile(rf"\s*(?:(?:{_NUMBER}\s+){{1,3}}[^|\s]*|(?:'[^|\s]*\s*)?)\|\S*(\s|$)")


class Start(NamedTuple):
    """The beginning of a file."""

    data: bytes
    lines: list[str]  # that are neither blank nor comments; empty where there are none


class Format(NamedTuple):
    """A file format."""

    name: str
    suffixes: tuple[str, ...]
    matches: Callable[[Start], bool]  # whether the beginning of a file looks like this format


def _is_json(start: Start) -> bool:
    first = start.lines[0].lstrip()
    return first.startswith(("{", "[{")) or first.strip() == "["


def _is_svmlight(start: Start) -> bool:
    return _SVMLIGHT.fullmatch(start.lines[0]) is not None and any(map(_PAIR.search, start.lines))


# In the order in which they are tried.
TABLE = (
    Format("npy", (".npy",), lambda start: start.data.startswith(b"\x93NUMPY")),
    Format("parquet", (".parquet", ".pq"), lambda start: start.data.startswith(b"PAR1")),
    Format(
        "arrow",
        (".arrow", ".feather", ".ipc", ".arrows"),
        lambda start: start.data.startswith((b"ARROW1", b"\xff\xff\xff\xff")),
    ),
    Format("jsonl", (".jsonl", ".ndjson", ".json"), _is_json),
    Format("vw", (".vw",), lambda start: _VW.match(start.lines[0]) is not None),
    Format("svmlight", (".svm", ".libsvm", ".svmlight", ".svml", ".dat"), _is_svmlight),
    Format("tsv", (".tsv", ".tab"), lambda start: "\t" in start.lines[0]),
    Format("csv", (".csv",), lambda start: any(delimiter in start.lines[0] for delimiter in DELIMITERS)),
)
TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")
FORMATS = ("svmlight", "vw", *TABLES, "npy")  # in the order in which messages name them
# Options of readings that are not tables.
_OPTIONS = {"svmlight": ("hashing",), "vw": ("bits", "hashing"), "npy": ("target",)}


def format_of_suffix(path: str | os.PathLike[str], among: Collection[str] = FORMATS) -> str | None:
    """Return the format that the suffix of a file names, below that of a compression; None if it names none of these."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else None
    return next((format.name for format in TABLE if suffix in format.suffixes and format.name in among), None)


def format_of_start(data: bytes, among: Collection[str] = FORMATS) -> str | None:
    """Return the format that the first bytes of a file look like; None if they look like none of these."""
    text = data.removeprefix(BOM).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and line[0] != "#"]
    start = Start(data, lines or [""])
    return next((format.name for format in TABLE if format.name in among and format.matches(start)), None)


def detect_format(path: str | os.PathLike[str]) -> str:
    """Return the name of the format of a file.

    Parameters
    ----------
    path : str or path
        The file, which may be compressed. Its suffix decides; without a known one, its content does.

    Returns
    -------
    str
        One of ``FORMATS``.

    Raises
    ------
    FormatError
        If neither tells the format, or if the file is a pipe without a known suffix.
    """
    if path != "-" and not is_url(path):
        os.stat(path)  # a file that cannot be there is no pipe
    found = format_of_suffix(path)
    problem = "the format cannot be detected: input from a pipe has no name that tells it"
    if found is None and rereadable([path]):
        with Input(path) as stream:
            found = format_of_start(stream.read(START))
        problem = "the format cannot be detected from the name of the file or its first line"
    if found is None:
        raise FormatError(
            problem,
            path=path,
            hint=f"the formats are {', '.join(FORMATS[:-1])} and {FORMATS[-1]}",
            settings={"format": "csv"},
        )
    return found


def reading_class(name: str) -> Any:
    """Return the class of the reading with this name in model files; KeyError if there is none."""
    module, kind = READINGS[name]
    return getattr(import_module(module), kind)


FilePaths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def reading_for(paths: FilePaths, format: str | None = None, **options: Any) -> Reading:
    """Return the reading for files of one format.

    Parameters
    ----------
    paths : path or list of paths
        The files.
    format : str, optional
        One of ``FORMATS``; without it, it is detected.
    **options
        Parameters of `rosenblatt.data.tables.Table`, ``bits`` and ``hashing`` of `rosenblatt.data.vw.Vw`, ``hashing`` of
        `rosenblatt.data.svmlight.Svmlight`, or ``target`` of `rosenblatt.data.npy.Npy`.

    Returns
    -------
    Reading
        A reading of LIBSVM text, of Vowpal Wabbit text, of tables or of .npy matrices.

    Raises
    ------
    FormatError
        If a format cannot be detected, or if the files have several.
    InvalidParameter
        If the format is unknown, or has no use for an option.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mail.data"
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:0.25\\n")
    ...     reading_for([str(path)])
    Svmlight(text=None, hashing=None)
    """
    if format is not None and format not in FORMATS:
        raise InvalidParameter("format", format, f"one of {', '.join(FORMATS)}")
    paths = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if format is None and options.get("delimiter") is not None:
        found = {format_of_suffix(path) or "csv" for path in paths}
    else:
        found = {format or detect_format(path) for path in paths}
    if len(found) != 1:
        raise FormatError(
            f"the files have several formats: {', '.join(sorted(found))}", hint="give files of one format at a time"
        )
    name = found.pop()
    kind = reading_class(name if name in READINGS else "table")
    if name in TABLES:
        return kind(format=format, **options)
    for option, value in options.items():
        if option not in _OPTIONS[name]:
            reason = "the first is for tables only"
            raise IncompatibleParameters((option, value), ("format", name), reason)
    return kind(**options)
