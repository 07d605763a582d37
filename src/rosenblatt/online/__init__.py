"""Learn from one example at a time: a perceptron for streams of named features, progressive evaluation, and online-to-batch
conversion. A name is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.online.conversion import OnlineToBatch as OnlineToBatch
    from rosenblatt.online.evaluation import Evaluation as Evaluation
    from rosenblatt.online.evaluation import progressive as progressive
    from rosenblatt.online.perceptron import OnlinePerceptron as OnlinePerceptron
    from rosenblatt.online.river import as_river as as_river

_HOMES = {
    "Evaluation": "evaluation",
    "OnlinePerceptron": "perceptron",
    "OnlineToBatch": "conversion",
    "as_river": "river",
    "progressive": "evaluation",
}
__all__ = ["Evaluation", "OnlinePerceptron", "OnlineToBatch", "as_river", "progressive"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt.online' has no attribute {name!r}")
    return getattr(import_module(f"rosenblatt.online.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
