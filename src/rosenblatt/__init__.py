"""Mistake-driven learning: the perceptron and the family that grew from it."""

from rosenblatt.linear import Explanation, Perceptron
from rosenblatt.margins import MIRA, PAUM, PassiveAggressiveClassifier
from rosenblatt.network import Network
from rosenblatt.sigma import SigmaPerceptron
from rosenblatt.train import Epoch
from rosenblatt.weights import Weights

__version__ = "0.1.0"

__all__ = [
    "MIRA",
    "PAUM",
    "Epoch",
    "Explanation",
    "Network",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "SigmaPerceptron",
    "Weights",
]
