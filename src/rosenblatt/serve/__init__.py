"""A small, durable learning server, and a client for it. A name is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.serve.client import Client as Client
    from rosenblatt.serve.state import replay as replay

_HOMES = {"Client": "client", "replay": "state"}
__all__ = ["Client", "replay"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt.serve' has no attribute {name!r}")
    return getattr(import_module(f"rosenblatt.serve.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
