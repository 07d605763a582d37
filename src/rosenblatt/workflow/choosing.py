"""What was asked for in words: a format by the name of a file or by its first line, a learner by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import rosenblatt
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

LEARNERS = (
    "Perceptron", "PassiveAggressiveClassifier", "MIRA", "PAUM", "ALMA", "ROMMA", "Ballseptron", "PNormPerceptron",
    "SecondOrderPerceptron", "AROW", "NormalisedWinnow", "BalancedWinnow", "Winnow1", "Winnow2", "KernelPerceptron",
    "Forgetron", "RandomBudgetPerceptron", "Projectron", "ProjectronPlusPlus", "Stoptron", "BudgetPerceptron",
    "SigmaPerceptron", "DeltaRuleClassifier", "DeltaRuleRegressor", "PassiveAggressiveRegressor",
)  # fmt: skip
_SHORT = {"PA": "PassiveAggressiveClassifier", "PARegressor": "PassiveAggressiveRegressor", "Delta": "DeltaRuleClassifier"}


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


def learner_named(name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """The learner with this name (upper or lower case, hyphens as you like) and these parameters."""
    plain = {_plain(known): known for known in LEARNERS} | {_plain(short): known for short, known in _SHORT.items()}
    if _plain(name) not in plain:
        raise ValueError(f"there is no learner called {name!r}; there are {', '.join(LEARNERS)}")
    kind = getattr(rosenblatt, plain[_plain(name)])
    settings = dict(settings or {})
    known = kind().get_params(deep=False)
    strange = [parameter for parameter in settings if parameter not in known]
    if strange:
        raise ValueError(f"{kind.__name__} has no parameter {strange[0]!r}; it has {', '.join(sorted(known))}")
    defaults = {"keep": "average"} if "keep" in known else {"average": True} if "average" in known else {}
    return kind(**(defaults | settings))


def setting(text: str) -> tuple[str, Any]:
    """(name, value) of "name=value"; the value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r}: a setting is name=value, as margin=0.5")
    try:
        return name, json.loads({"None": "null", "True": "true", "False": "false"}.get(value, value))
    except ValueError:
        return name, value


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower().replace("plusplus", "++")
