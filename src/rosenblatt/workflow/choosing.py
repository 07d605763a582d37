"""The format of a file, by its name or by its first line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from rosenblatt.data.opening import rereadable
from rosenblatt.data.reading import Reading
from rosenblatt.workflow.model import READINGS

SUFFIXES = {
    **dict.fromkeys((".svm", ".libsvm", ".svmlight", ".svml", ".dat"), "svmlight"),
    ".vw": "vw",
    ".csv": "csv",
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
}
FORMATS = ("svmlight", "vw", "csv", "tsv", "parquet", "arrow", "jsonl")
_COMPRESSIONS = {".gz", ".bz2", ".xz", ".zst"}
_PEEKED = 1 << 16
_SVMLIGHT = re.compile(r"\S+(\s+qid:\d+)?(\s+\d+:\S+)*\s*(#.*)?")
_PAIR = re.compile(r"\s\d+:\S")
_VW = re.compile(r"[^|]*\|\S*(\s|$)")


def format_of(path: str) -> str:
    """The format of a file: by its suffix, under that of a compression; else by what its first line looks like."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    if not rereadable([path]):
        raise ValueError("what comes through a pipe has no name to tell its format by; name one of " + ", ".join(FORMATS))
    return sniffed(path)


def sniffed(path: str) -> str:
    """The format that the first line of a file with text looks like."""
    from rosenblatt.data.opening import Input

    with Input(path) as stream:
        begin = stream.read(_PEEKED)
    if begin[:4] == b"PAR1":
        return "parquet"
    if begin[:6] == b"ARROW1":
        return "arrow"
    lines = [line for line in begin.decode("utf-8", "replace").splitlines() if line.strip() and line[0] != "#"]
    first = lines[0] if lines else ""
    if first.startswith("{"):
        return "jsonl"
    if _VW.match(first):
        return "vw"
    if _SVMLIGHT.fullmatch(first) and any(_PAIR.search(line) for line in lines):
        return "svmlight"
    if "\t" in first:
        return "tsv"
    if "," in first:
        return "csv"
    raise ValueError(f"{path}: neither its name nor its first line tells its format; name one of {', '.join(FORMATS)}")


def reading_for(paths: Iterable[str], format: str | None = None, **options: Any) -> Reading:
    """The reading for files of one format; `options` are those of tables (see `data.tables.Table`), or `bits` of VW text.

    Options that the format has no use for are refused.
    """
    found = {format or format_of(path) for path in paths}
    if len(found) != 1:
        raise ValueError(f"the files have several formats: {', '.join(sorted(found))}; give files of one format at a time")
    name = found.pop()
    if name not in FORMATS:
        raise ValueError(f"format={name!r}: it must be one of {', '.join(FORMATS)}")
    module, reading = READINGS.get(name, READINGS["table"])
    kind = getattr(import_module(module), reading)
    if name in READINGS:
        strange = [option for option in options if option != "bits" or name != "vw"]
        if strange:
            raise ValueError(f"{strange[0]} is about columns of a table, and the files are {name}")
        return kind(**options)
    return kind(format=name, **options)
