"""Outputs that have parts: tag sequences, trees, and whatever a search can find. An example proposes the direction
φ(x, gold) − φ(x, guess); all else is as everywhere in this library, a margin and a step."""

from rosenblatt.structured import decoders, evaluation
from rosenblatt.structured.beams import BeamSearch
from rosenblatt.structured.graph.parser import GraphParser
from rosenblatt.structured.perceptron import StructuredPerceptron
from rosenblatt.structured.pipeline import TagAndParse, jackknifed
from rosenblatt.structured.tags.tagger import SequenceTagger
from rosenblatt.structured.transition.parser import TransitionParser

__all__ = [
    "BeamSearch",
    "GraphParser",
    "SequenceTagger",
    "StructuredPerceptron",
    "TagAndParse",
    "TransitionParser",
    "decoders",
    "evaluation",
    "jackknifed",
]
