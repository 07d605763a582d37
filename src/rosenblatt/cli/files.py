"""The files that a command writes and the models that it reads, checked before any work is done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rosenblatt.cli.errors import Code, Failure, describe
from rosenblatt.errors import MissingDependency, OutputError, UnreadableModel

PLOT_FORMATS = ("png", "svg", "pdf")


@contextmanager
def writing(path: str | os.PathLike[str] | None) -> Iterator[IO[bytes]]:
    """Open a binary file for results: stdout for None and "-"; else one that replaces `path` when all is written."""
    from rosenblatt.modelfile.atomic import atomic_write

    if path in (None, "-"):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_write(path) as file:
        yield file


def check_writable(path: str | os.PathLike[str] | None, *inputs: str) -> None:
    """Refuse a path that cannot be written, or that is one of the command's own inputs."""
    if path is None or path == "-":
        return
    from rosenblatt.modelfile import atomic

    place = os.path.realpath(path)
    if any(place == os.path.realpath(file) or _same_file(place, file) for file in inputs if file != "-"):
        raise Failure(f"{path} is an input of this command and would be replaced", Code.USAGE, "another output file")
    atomic.check_writable(path)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.isfile(one) and os.path.samefile(one, other)
    except OSError:  # one that is not there, or a pattern
        return False


def check_replaceable(path: str, hint: str) -> None:
    """Refuse to replace a file that is not a model."""
    if os.path.isfile(path) and os.path.getsize(path) and not is_model(path):
        raise OutputError("the file exists and is not a model; it is not replaced", path, hint=hint)


def is_model(path: str) -> bool:
    """Return whether a path is a file that holds a model."""
    from rosenblatt.modelfile import container

    try:
        return os.path.isfile(path) and bool(container.facts(path))
    except UnreadableModel:
        return False


def load_model(path: str, *kinds: type) -> Any:
    """Return the model in a file; it must be of one of these kinds, if there are some."""
    from rosenblatt.modelfile import registry

    try:
        model = registry.load(path)
    except OSError as error:
        raise UnreadableModel(describe(error)[1]) from error
    if kinds and not isinstance(model, kinds):
        name = type(model).__name__
        command = "tag" if "Tag" in name and "Parse" not in name else "parse" if "Pars" in name else None
        command = "predict" if name == "FileModel" else command
        wanted = " or ".join(kind.__name__ for kind in kinds)
        hint = f"rosenblatt {command}" if command else f"rosenblatt.load({path!r}) in Python"
        raise UnreadableModel(f"it holds a {name}, and this command needs a {wanted}", path=path, hint=hint)
    return model


# Plots


def check_plot(path: str | None) -> None:
    """Refuse a plot that cannot be drawn or saved."""
    if path is None:
        return
    if Path(path).suffix.lower().removeprefix(".") not in PLOT_FORMATS:
        raise Failure(f"--plot must be a file that ends in .{', .'.join(PLOT_FORMATS)}; got {path}", Code.USAGE)
    check_writable(path)
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise MissingDependency("matplotlib", "plot", "plots") from None
    matplotlib.use("Agg")


def save_plot(axes: Any, path: str) -> None:
    """Save the figure that these Axes are on."""
    import matplotlib.pyplot as plt

    figure = getattr(axes, "figure", None) or next(iter(axes)).figure
    with writing(path) as file:
        figure.savefig(file, format=Path(path).suffix.lower().removeprefix("."), dpi=150)
    plt.close(figure)
