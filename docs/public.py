"""What is public: the names that have an entry in the reference, an example, and a promise to stay.

They are those in the `__all__` of a module; the modules of `WHOLE` have none, and every name is public that they define
and that does not begin with an underscore. The command line is public by its commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import rosenblatt

WHOLE = (
    "rosenblatt.errors",
    "rosenblatt.losses",
    "rosenblatt.rules",
    "rosenblatt.online.pricing",
    "rosenblatt.structured.decoders",
    "rosenblatt.structured.evaluation",
    "rosenblatt.theory.bounds",
    "rosenblatt.theory.hard",
    "rosenblatt.theory.labellings",
    "rosenblatt.theory.network",
)


def public_modules() -> Iterator[ModuleType]:
    """Yield the modules that have public names, in the order of their names; others are not imported."""
    yield rosenblatt
    for found in walk_packages(rosenblatt.__path__, "rosenblatt."):
        spec = find_spec(found.name)
        if found.name in WHOLE or "\n__all__" in Path(spec.origin).read_text(encoding="utf-8"):
            yield import_module(found.name)


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module, sorted, without the modules among them."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
        ]
    return sorted(name for name in names if not isinstance(getattr(module, name), ModuleType))


def public_names() -> Iterator[tuple[str, str, Any]]:
    """Yield (module, name, object) for all that is public; what two modules offer comes twice."""
    for module in public_modules():
        for name in names_of(module):
            yield module.__name__, name, getattr(module, name)
