"""Mistake-driven learning: the perceptron and the family that grew from it."""

from rosenblatt.kernel.budget import (
    BudgetPerceptron,
    Forgetron,
    Projectron,
    ProjectronPlusPlus,
    RandomBudgetPerceptron,
    Stoptron,
)
from rosenblatt.kernel.machine import KernelPerceptron
from rosenblatt.linear import Explanation, Perceptron
from rosenblatt.margins import MIRA, PAUM, PassiveAggressiveClassifier
from rosenblatt.network import Network
from rosenblatt.regression.delta import DeltaRuleClassifier, DeltaRuleRegressor
from rosenblatt.regression.regressor import PassiveAggressiveRegressor
from rosenblatt.regression.stability import Diverged
from rosenblatt.sigma import SigmaPerceptron
from rosenblatt.states.pnorm import PNormPerceptron
from rosenblatt.states.scaled import ALMA, ROMMA, Ballseptron
from rosenblatt.states.second_order import AROW, SecondOrderPerceptron
from rosenblatt.states.winnow import BalancedWinnow, NormalisedWinnow, Winnow1, Winnow2
from rosenblatt.train import Epoch
from rosenblatt.weights import Weights

__version__ = "0.1.0"

__all__ = [
    "ALMA",
    "AROW",
    "MIRA",
    "PAUM",
    "ROMMA",
    "BalancedWinnow",
    "Ballseptron",
    "BudgetPerceptron",
    "DeltaRuleClassifier",
    "DeltaRuleRegressor",
    "Diverged",
    "Epoch",
    "Explanation",
    "Forgetron",
    "KernelPerceptron",
    "Network",
    "NormalisedWinnow",
    "PNormPerceptron",
    "PassiveAggressiveClassifier",
    "PassiveAggressiveRegressor",
    "Perceptron",
    "Projectron",
    "ProjectronPlusPlus",
    "RandomBudgetPerceptron",
    "SecondOrderPerceptron",
    "SigmaPerceptron",
    "Stoptron",
    "Weights",
    "Winnow1",
    "Winnow2",
]
