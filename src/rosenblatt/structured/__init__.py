"""Structured prediction: tag sequences, dependency trees, and whatever a search can find. An example proposes the direction
φ(x, gold) − φ(x, guess); all else is as everywhere in this library, a margin and a step.

Names are imported when they are first used.
"""

# ruff: noqa: F401 (the names for type checkers are those of __all__)

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.structured import decoders, evaluation
    from rosenblatt.structured.graph.parser import GraphParser
    from rosenblatt.structured.pipeline import TagAndParse, jackknife, jackknifed
    from rosenblatt.structured.search.beam_search import BeamSearch
    from rosenblatt.structured.search.perceptron import StructuredPerceptron
    from rosenblatt.structured.tags.tagger import SequenceTagger
    from rosenblatt.structured.transition.parser import TransitionParser

_MODULES = {
    "BeamSearch": "search.beam_search",
    "GraphParser": "graph.parser",
    "SequenceTagger": "tags.tagger",
    "StructuredPerceptron": "search.perceptron",
    "TagAndParse": "pipeline",
    "TransitionParser": "transition.parser",
    "jackknife": "pipeline",
    "jackknifed": "pipeline",
}
__all__ = sorted({*_MODULES, "decoders", "evaluation"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
