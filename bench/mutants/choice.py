"""Which mutants are tried: those of a table, and others drawn from the rooms of the package, as many from each."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.mutants.operators import Mutant, changes, mutant
from bench.mutants.private_tree import PACKAGE, REPOSITORY
from bench.mutants.reach import FOLDER, MODULE, function_names

SOURCES = REPOSITORY / PACKAGE
ROOMS = "rules", "losses", "engine", "estimators", "data", "modelfile", "serve", "cluster", "theory", "structured"


class Equivalent(NamedTuple):
    """A mutant that does what the source does, so that no test can fail."""

    file: str
    old: str  # the lines as they are, without indentation
    new: str
    reason: str


def draw(room: str, seed: int, count: int) -> Iterator[Mutant]:
    """Yield mutants of a room, which another count does not change.

    Parameters
    ----------
    room : str
        A folder or a file of the package.
    seed : int
        Another seed draws others.
    count : int
        How many, at most.

    Yields
    ------
    Mutant
    """
    paths = sorted((SOURCES / room).rglob("*.py")) or [SOURCES / f"{room}.py"]
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    places = [(path, change) for path, tree in trees.items() for change in changes(tree)]
    Random(f"{seed} {room}").shuffle(places)

    keys: set[str] = set()
    for path, change in places:
        if len(keys) == count:
            return
        found = mutant(path.relative_to(SOURCES).as_posix(), sources[path], trees[path], change)
        if found is not None and found.key not in keys:
            keys.add(found.key)
            yield found


def named_mutants(sources: Path = SOURCES) -> list[Mutant]:
    """Return the mutants of the table `named.toml`.

    Raises
    ------
    ValueError
        The text of one does not stand exactly once where it should.
    """
    with open(FOLDER / "named.toml", "rb") as file:
        table = tomllib.load(file)["mutant"]
    return [_named(sources, **row) for row in table]


def _named(sources: Path, name: str, file: str, old: str, new: str, within: str = "") -> Mutant:
    source = (sources / file).read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    names = function_names(ast.parse(source))
    chosen = [number for number in range(1, len(lines) + 1) if within in ("", names.get(number))]
    part = "".join(lines[number - 1] for number in chosen)
    if part.count(old) != 1:
        raise ValueError(f"{name}: {old!r} stands {part.count(old)} times in {within or file}; it must stand there once")

    at = source.index(part) + part.index(old)
    text = source[:at] + new + source[at + len(old) :]
    line = source.count("\n", 0, at) + 1
    return Mutant(file, names.get(line, MODULE), name, line, old, new, text)


def equivalent_mutants() -> dict[tuple[str, str, str], str]:
    """Return the reasons of `equivalent.toml` by file, lines before and lines after."""
    with open(FOLDER / "equivalent.toml", "rb") as file:
        rows = [Equivalent(**row) for row in tomllib.load(file)["mutant"]]
    return {(row.file, row.old, row.new): row.reason for row in rows}
