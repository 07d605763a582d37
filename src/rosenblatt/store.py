"""A model is one file of arrays and a header of facts, and never code: safetensors, with the facts as JSON in its metadata.
What is loaded is checked before it is believed; what is saved replaces the old file at once or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as _load
from safetensors.numpy import save as _save

from rosenblatt.files import replacing

FORMAT = 1
_NAME = "rosenblatt"
_LARGEST_HEADER = 1 << 26


class UnreadableModel(ValueError):
    """A file that is no model of this library, or a damaged one."""


def write(path: str | PathLike, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Save facts (values of JSON) and arrays in one file, which replaces an old one only when it is complete."""
    header = json.dumps({"format": FORMAT, **facts}, ensure_ascii=True, allow_nan=False)
    content = _save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_NAME: header})
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    with replacing(path) as file:
        file.write(content)


def read(path: str | PathLike) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The facts and the arrays of a file; an UnreadableModel says what is wrong with one that is no model."""
    return read_bytes(Path(path).read_bytes(), str(path))


def read_bytes(content: bytes, path: str = "this content") -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The facts and the arrays of a file with this content; `path` is what messages call it."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 10 or not 2 <= size <= min(len(content) - 8, _LARGEST_HEADER) or content[8:9] != b"{":
        raise UnreadableModel(f"{path} is not a model of rosenblatt: it does not begin as one ({len(content)} bytes)")
    try:
        metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        facts = json.loads(metadata[_NAME]) if isinstance(metadata, dict) and _NAME in metadata else None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableModel(f"{path} is damaged: its header cannot be read ({error})") from None
    if not isinstance(facts, dict):
        raise UnreadableModel(f"{path} is a file of arrays, but not a model of rosenblatt: it has no facts about one")
    if facts.get("format") != FORMAT:
        raise UnreadableModel(
            f"{path} has format {facts.get('format')!r}; this version of rosenblatt reads format {FORMAT}"
        )
    try:
        return facts, _load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise UnreadableModel(f"{path} is damaged: {error}") from None
