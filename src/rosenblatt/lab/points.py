"""Points to begin with: those of lecture notes and of this library's hard cases, and those of a file."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.tables import Table
from rosenblatt.data.tables.schema import ColumnError
from rosenblatt.errors import InvalidData, RosenblattError
from rosenblatt.lab.recording import check_count, check_points
from rosenblatt.theory.hard import exponential


class Points(NamedTuple):
    """Named points of two classes.

    Attributes
    ----------
    name : str
        What they are.
    X : (points, 2) array
        The coordinates.
    y : (points,) array of −1 and 1
        The classes.
    intercept : bool
        Whether the example is one with an intercept.
    axes : tuple of str
        The names of the two coordinates.
    labels : tuple of str
        The names of the two classes, the positive one last.
    """

    name: str
    X: NDArray
    y: NDArray
    intercept: bool = True
    axes: tuple[str, str] = ("x₁", "x₂")
    labels: tuple[str, str] = ("−1", "+1")


def presets() -> list[Points]:
    """Return the points that the page offers."""
    hard = exponential(2)
    rng = np.random.default_rng(7)
    cloud, signs = rng.normal(size=(40, 2)).round(2), np.repeat([1, -1], 20)
    return [
        Points(
            "Six points (CMU 10-607)",
            np.array([[-1.0, 2], [1, 0], [1, 1], [-1, 0], [-1, -2], [1, -1]]),
            np.array([-1, 1, 1, -1, -1, 1]),
            intercept=False,
        ),
        Points(
            "Eight points (IIIT-H SMAI)",
            np.array([[1.0, 1], [1, 3], [2, 1], [2, 2], [-1, -1], [-1, -3], [-2, -1], [-2, -2]]),
            np.repeat([1, -1], 4),
        ),
        Points("XOR", np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([-1, 1, 1, -1])),
        Points("Exponential, n = 2", hard.X, hard.y, intercept=False),
        Points("Two clouds", cloud + 3.0 * signs[:, None] * [0.8, 0.6], signs),
        Points("Touching clouds", cloud + 1.5 * signs[:, None] * [0.8, 0.6], signs),
    ]


def read_points(path: str | Path) -> Points:
    """Read points from a table of two columns of numbers and one of labels.

    Parameters
    ----------
    path : path
        The file: CSV, TSV, JSON lines, Parquet or Arrow. The label is the column called label, target, class or y, or the
        third.

    Returns
    -------
    Points
        The points; of the two labels the second, sorted, is the positive class.

    Raises
    ------
    InvalidData
        If there are other than two columns of numbers, or other than two labels, or coordinates are too large;
        `LimitExceeded` for too many rows.
    """
    try:
        table, batches = _fitted(path, None)
    except ColumnError:
        try:
            table, batches = _fitted(path, 2)
        except ColumnError:
            problem = "the table must have two columns of numbers, and one of labels; it has fewer than three columns"
            raise InvalidData(problem, path=path) from None
    kinds = {name: kind for name, kind in table.kinds.items() if kind != "target"}
    if sorted(kinds.values()) != ["number", "number"]:
        said = ", ".join(f"{name} ({kind})" for name, kind in list(kinds.items())[:8])
        raise InvalidData(f"the table must have two columns of numbers beside the label; it has {said}", path=path)
    chunk = table.chunk(table.concatenate(batches))
    labels, numbers = np.unique(np.asarray(chunk.y), return_inverse=True)
    if len(labels) != 2:
        said = ", ".join(map(str, labels[:8].tolist()))
        raise InvalidData(f"the label must have two values; it has {len(labels)}: {said}", path=path)
    texts = [f"{label:g}" if isinstance(label, float) else str(label) for label in labels.tolist()]
    one, other = kinds
    X, y = check_points(chunk.X.toarray() if hasattr(chunk.X, "toarray") else chunk.X, 2 * numbers - 1)
    return Points(Path(path).name, X, y, axes=(one, other), labels=(texts[0], texts[1]))


def parse_points(content: bytes) -> Points:
    """Read points from the content of a CSV file, as `read_points` does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.csv"
        path.write_bytes(content)
        return read_points(path)


def _fitted(path: str | Path, target: int | None) -> tuple[Table, list[Any]]:
    table = Table(target=target, scale="none")
    try:
        with closing(table.batches([str(path)])) as read:
            batches = list[Any]()
            for batch in read:
                batches.append(batch)
                check_count(sum(batch.rows for batch in batches))  # before a large file is held, or a compressed one
        return table.fit(batches), batches
    except RosenblattError as error:
        error.settings = {}  # nothing about the reading can be set in the lab
        raise
