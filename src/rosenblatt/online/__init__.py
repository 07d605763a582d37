"""Learning one example at a time."""

from rosenblatt.online.conversion import GUARANTEES, Guarantee, OnlineToBatch
from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.online.progressive import Evaluation, progressive
from rosenblatt.online.river import as_river

__all__ = ["GUARANTEES", "Evaluation", "Guarantee", "OnlinePerceptron", "OnlineToBatch", "as_river", "progressive"]
