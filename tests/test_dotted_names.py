"""Every dotted name that a docstring or an error message recommends exists, and stands for one thing."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import ModuleType

import pytest

import rosenblatt

SOURCES = Path(rosenblatt.__file__).parent
DOTTED = re.compile(r"(?<![\w./])rosenblatt(?:\.[A-Za-z_]\w*)+")


def names() -> dict[str, str]:
    """The dotted names in the strings of all sources, each with a place where it stands."""
    found: dict[str, str] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in DOTTED.findall(node.value):
                    found.setdefault(name, f"{path.relative_to(SOURCES)}:{node.lineno}")
    return found


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    try:
        import_module(name)
    except ModuleNotFoundError:
        if not module:
            return False
        try:
            return hasattr(import_module(module), attribute)
        except ModuleNotFoundError:
            owner, _, middle = module.rpartition(".")
            return bool(owner) and exists(module) and hasattr(getattr(import_module(owner), middle), attribute)
    return True


def test_every_dotted_name_in_a_docstring_or_message_can_be_imported():
    missing = {name: place for name, place in names().items() if not exists(name)}
    assert not missing, "\n".join(f"{place}: {name}" for name, place in missing.items())


@pytest.mark.parametrize(("name", "known"), [("rosenblatt.rules.PA1", True), ("rosenblatt.structured.schemes", False)])
def test_what_exists_is_told_from_what_does_not(name, known):
    assert exists(name) == known


PACKAGES = ["rosenblatt", *(info.name for info in walk_packages(rosenblatt.__path__, "rosenblatt.") if info.ispkg)]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_exported_name_hides_a_module_of_the_package(package):
    """`import rosenblatt.theory.trace` must not give a function where another import of the same name gives a module."""
    owner = import_module(package)
    modules = {info.name for info in iter_modules(owner.__path__)} - {"__main__"}
    exported = {*getattr(owner, "__all__", ()), *(name for name in vars(owner) if not name.startswith("_"))}
    hidden = [name for name in sorted(modules & exported) if not isinstance(getattr(owner, name), ModuleType)]
    assert not hidden
