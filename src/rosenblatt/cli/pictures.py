"""Pictures become files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rosenblatt.cli.console import check_writable, writing
from rosenblatt.cli.errors import Code, Failure

SUFFIXES = ("png", "svg", "pdf")


def prepared(path: str | None) -> None:
    """Refuse what cannot be drawn, before the work."""
    if path is None:
        return
    if Path(path).suffix.lower().removeprefix(".") not in SUFFIXES:
        raise Failure(f"--plot {path}: a picture ends in .{', .'.join(SUFFIXES)}", Code.USAGE)
    check_writable(path)
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise Failure(
            "--plot needs matplotlib, which is not installed", Code.USAGE, "pip install 'rosenblatt[plot]'"
        ) from None
    matplotlib.use("Agg")


def saved(axes: Any, path: str) -> None:
    """Write the picture that these Axes are on."""
    import matplotlib.pyplot as plt

    figure = getattr(axes, "figure", None) or next(iter(axes)).figure
    with writing(path) as file:
        figure.savefig(file, format=Path(path).suffix.lower().removeprefix("."), dpi=150)
    plt.close(figure)
