"""Mistake-driven learning: the perceptron and the family that grew from it."""

from rosenblatt.linear import Explanation, Perceptron
from rosenblatt.train import Epoch
from rosenblatt.weights import Weights

__version__ = "0.1.0"

__all__ = ["Epoch", "Explanation", "Perceptron", "Weights"]
