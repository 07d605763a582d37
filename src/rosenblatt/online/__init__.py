"""Learn from one example at a time: a perceptron for streams of named features, progressive evaluation, and online-to-batch
conversion."""

from rosenblatt.online.conversion import OnlineToBatch
from rosenblatt.online.evaluation import Evaluation, progressive
from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.online.river import as_river

__all__ = ["Evaluation", "OnlinePerceptron", "OnlineToBatch", "as_river", "progressive"]
