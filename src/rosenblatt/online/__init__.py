"""Learning one example at a time."""

from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.online.progressive import Evaluation, progressive
from rosenblatt.online.river import as_river

__all__ = ["Evaluation", "OnlinePerceptron", "as_river", "progressive"]
