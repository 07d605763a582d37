"""A small learning server that loses nothing: examples and labels come in, predictions go out. A name is imported when it
is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.serve.client import Client as Client
    from rosenblatt.serve.limits import Limits as Limits
    from rosenblatt.serve.server import serve as serve
    from rosenblatt.serve.state import replay as replay

_HOMES = {"Client": "client", "Limits": "limits", "replay": "state", "serve": "server"}
__all__ = ["Client", "Limits", "replay", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt.serve' has no attribute {name!r}")
    return getattr(import_module(f"rosenblatt.serve.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
