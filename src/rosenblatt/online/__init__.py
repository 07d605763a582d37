"""Learning one example at a time."""

from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.online.river import as_river

__all__ = ["OnlinePerceptron", "as_river"]
