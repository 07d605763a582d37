"""Learning one example at a time: streams of named features, how to judge them, and what to take home from one."""

from rosenblatt.online.conversion import OnlineToBatch
from rosenblatt.online.evaluation import Evaluation, progressive
from rosenblatt.online.perceptron import OnlinePerceptron
from rosenblatt.online.river import as_river

__all__ = ["Evaluation", "OnlinePerceptron", "OnlineToBatch", "as_river", "progressive"]
