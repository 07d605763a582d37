"""Functions in a Python file of the user, run as importing it would, with errors that show their place in the file."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from rosenblatt.cli.errors import Code, Failure


def split_target(target: str) -> tuple[Path, str]:
    """Return the file and the function that FILE.py::FUNCTION names."""
    file, _, name = target.rpartition("::")
    if file and name:
        return Path(file), name
    path = Path(target.rstrip(":"))
    hint = _one_of(path) if path.is_file() else "rosenblatt count search.py::search"
    raise Failure(f"FILE.py::FUNCTION must name a file and a function in it; got {target}", Code.USAGE, hint)


@contextmanager
def running(path: Path, quiet: bool) -> Iterator[UserCode]:
    """Run a file, and let a block call what it defines.

    The file can import its neighbours. What it prints goes to standard error, or nowhere if quiet; no compiled files are
    left; and what it raises, there or in the block, becomes a failure that shows the line.
    """
    code, tree = UserCode(path), _syntax_tree(path)
    kept = sys.path.copy(), sys.dont_write_bytecode
    sys.path.insert(0, str(path.resolve().parent))
    sys.dont_write_bytecode = True
    sys.modules[code.module.__name__] = code.module  # dataclasses look there
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere if quiet else sys.stderr):
            exec(compile(tree, str(path), "exec", dont_inherit=True), code.module.__dict__)
            yield code
    except (Exception, SystemExit) as error:
        code.blame(error)
        raise
    finally:
        sys.path[:], sys.dont_write_bytecode = kept
        sys.modules.pop(code.module.__name__, None)


class UserCode:
    """The code of a file, and for its errors the size that it is at and what to try."""

    def __init__(self, path: Path):
        self.path = path
        self.size: int | None = None
        self.hint: str | None = None  # what to try if a call raises a TypeError
        self.module = ModuleType(f"counted {path.stem}")  # with a blank, so that it is no other module's name
        self.module.__file__ = str(path)

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function of this name."""
        function = getattr(self.module, name, None)
        if callable(function):
            return function
        raise Failure(f"{self.path} has no function {name}", Code.USAGE, _one_of(self.path))

    def blame(self, error: Exception | SystemExit) -> None:
        """Raise a failure with the line of the file in which this error came up; return if it was in none."""
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(self.path)]
        if not own:
            return
        place = f"{self.path}, line {own[-1].lineno}" + ("" if self.size is None else f", at size {self.size}")
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        hint = self.hint if isinstance(error, TypeError) and self.size is not None else None
        raise Failure(f"{place}: {what}, in: {own[-1].line}", Code.INPUT, hint) from error


def check_call(function: Callable[..., Any], arguments: tuple[Any, ...], made_by: str, hint: str) -> None:
    """Refuse arguments that a function does not take."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # one that is not written in Python: counting it says so
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__name__", str(function))
        raise Failure(f"{name}{signature} cannot be called with {made_by}: {error}", Code.USAGE, hint) from None


def _syntax_tree(path: Path) -> ast.Module:
    content = path.read_bytes()
    try:
        return ast.parse(content, str(path))
    except SyntaxError as error:
        place = f"{path}, line {error.lineno}" if error.lineno else str(path)
        raise Failure(f"{place}: it is not Python: {error.msg}", Code.INPUT) from None
    except ValueError as error:  # bytes that no text has
        raise Failure(f"{path}: it is not Python: {error}", Code.INPUT) from None


def _one_of(path: Path) -> str:
    """The functions that a file defines, by its text: nothing is run."""
    names = [f"{path}::{node.name}" for node in _syntax_tree(path).body if isinstance(node, ast.FunctionDef)]
    return " or ".join(names[:10]) if names else f"{path} must define one with def"
