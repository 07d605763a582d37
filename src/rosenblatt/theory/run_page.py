"""A run of the perceptron as one HTML file: data, style and script are in it, and its security policy lets it load
nothing else. So it opens without a server and without a network, years later too.

The file holds the rows that were learned from, not the weights after each update: the script adds them up again, in the
order and in the arithmetic of the run, so that 10,000 updates take as much room as their row numbers.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.errors import InvalidParameter
from rosenblatt.exact.reading import dense
from rosenblatt.modelfile.atomic import atomic_write
from rosenblatt.theory.signed import Signed

MOST_POINTS = 20_000  # rows that are drawn; those that were learned from come first
_SCRIPTS = ("canvas.js", "plane.js", "walls.js", "player.js", "run.js", "drawings.js", "controls.js")
_FILES = ("run.html", "run.css", *_SCRIPTS)
_DIGITS = 7  # of the numbers that are shown; rows have all of theirs
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def write_page(path: str | os.PathLike[str], title: str, content: Mapping[str, object]) -> None:
    """Write the page that shows this content; the file appears when it is complete."""
    with atomic_write(path) as file:
        file.write(page_html(title, content).encode("utf-8", "backslashreplace"))  # a file's name need not be UTF-8


def page_html(title: str, content: Mapping[str, object]) -> str:
    """The page as text. Its policy allows its own style and script by their digests, and nothing from elsewhere."""
    folder = files("rosenblatt.theory").joinpath("page")
    frame, style, *scripts = (folder.joinpath(name).read_text(encoding="utf-8") for name in _FILES)
    script = "\n".join(scripts)
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    parts = {
        "policy": f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'",
        "title": html.escape(title),
        "style": style,
        "data": data.replace("<", "\\u003c"),  # no label can end the element
        "script": script,
    }
    before, *pieces = frame.split("{{")
    return before + "".join(parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces))


def column_names(rows: Signed, names: Sequence[str] | None) -> list[str]:
    """A name for each column of `rows.A`: those given or x₁, x₂, …, and "1" for the constant feature."""
    if names is None:
        names = [f"x{str(j + 1).translate(_SUBSCRIPTS)}" for j in range(rows.features)]
    if len(names) != rows.features:
        raise InvalidParameter("names", names, f"{rows.features} names, one for each column of X; got {len(names)}")
    return [*map(str, names), *[f"{rows.constant:g}"] * (rows.constant != 0)]


def plane_axes(rows: Signed, names: Sequence[str], axes: Sequence[int | str] | None) -> tuple[int, int] | None:
    """The two columns to draw rows by: those named, or the only two there are; None if there is no such pair."""
    if axes is None:
        only_two = rows.features == 2 or rows.A.shape[1] == 2
        return (0, 1) if only_two else None
    features = list(names[: rows.features])
    found = [features.index(axis) if axis in features else axis for axis in axes]
    numbers = [axis for axis in found if isinstance(axis, (int, np.integer)) and 0 <= axis < rows.features]
    if isinstance(axes, str) or len(found) != 2 or len({*numbers}) != 2:
        shown = ", ".join(features[:8]) + (", …" if len(features) > 8 else "")
        allowed = f"two different columns of X, by number from 0 to {rows.features - 1} or by name ({shown})"
        raise InvalidParameter("axes", axes, allowed)
    return int(numbers[0]), int(numbers[1])


def page_rows(
    rows: Signed, example: NDArray, names: Sequence[str], axes: tuple[int, int] | None
) -> tuple[NDArray, dict[str, object]]:
    """(the columns that the page has, what it knows of the rows).

    Columns in which no update changed a weight are left out. Of rows that were learned from the page has all numbers, of
    the others only their place in the plane.
    """
    learned = np.unique(example)
    moves = sp.csr_array(rows.A[learned])
    moves.eliminate_zeros()
    columns = np.unique(np.concatenate([moves.indices, np.array(axes or (), dtype=np.int64)])).astype(np.int64)
    place = np.searchsorted(columns, moves.indices)
    spans = map(slice, moves.indptr[:-1], moves.indptr[1:])
    content: dict[str, object] = {
        "names": [names[j] for j in columns],
        "moves": {
            int(i): [place[span].tolist(), moves.data[span].tolist(), int(rows.y[i])]
            for i, span in zip(learned, spans, strict=True)
        },
        "axes": None,
    }
    if axes is not None:
        others = np.setdiff1d(np.arange(len(rows.y)), learned)
        room = max(0, MOST_POINTS - len(learned))
        if len(others) > room:
            others = others[np.linspace(0, len(others) - 1, room).astype(np.int64)]
        drawn = np.concatenate([learned, others])
        points = dense(rows.A[:, list(axes)])[drawn] * rows.y[drawn, None]
        content["axes"] = np.searchsorted(columns, axes).tolist()
        content["points"] = [short(points[:, 0]), short(points[:, 1]), rows.y[drawn].astype(int).tolist()]
        content["drawn"] = drawn.tolist()
    return columns, content


def short(values: NDArray) -> list[float]:
    """The numbers as they are shown, which takes half the room; for integers, integers."""
    texts = (f"{value:.{_DIGITS}g}" for value in np.asarray(values, dtype=float).tolist())
    return [int(text) if text.lstrip("-").isdecimal() else float(text) for text in texts]


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
