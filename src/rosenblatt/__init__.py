"""Mistake-driven learning: the perceptron and the family that grew from it.

A name is imported when it is first used, so that `import rosenblatt` costs nothing and a command that only prints its help
does not wait for a compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from rosenblatt.loading import load
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

_HOMES = {
    "ALMA": "rosenblatt.states.scaled",
    "AROW": "rosenblatt.states.second_order",
    "BalancedWinnow": "rosenblatt.states.winnow",
    "Ballseptron": "rosenblatt.states.scaled",
    "BudgetPerceptron": "rosenblatt.kernel.budget",
    "DeltaRuleClassifier": "rosenblatt.regression.delta",
    "DeltaRuleRegressor": "rosenblatt.regression.delta",
    "Diverged": "rosenblatt.regression.stability",
    "Epoch": "rosenblatt.train",
    "Explanation": "rosenblatt.linear",
    "Forgetron": "rosenblatt.kernel.budget",
    "KernelPerceptron": "rosenblatt.kernel.machine",
    "MIRA": "rosenblatt.margins",
    "Network": "rosenblatt.network",
    "NormalisedWinnow": "rosenblatt.states.winnow",
    "PAUM": "rosenblatt.margins",
    "PNormPerceptron": "rosenblatt.states.pnorm",
    "PassiveAggressiveClassifier": "rosenblatt.margins",
    "PassiveAggressiveRegressor": "rosenblatt.regression.regressor",
    "Perceptron": "rosenblatt.linear",
    "Projectron": "rosenblatt.kernel.budget",
    "ProjectronPlusPlus": "rosenblatt.kernel.budget",
    "ROMMA": "rosenblatt.states.scaled",
    "RandomBudgetPerceptron": "rosenblatt.kernel.budget",
    "SecondOrderPerceptron": "rosenblatt.states.second_order",
    "SigmaPerceptron": "rosenblatt.sigma",
    "Stoptron": "rosenblatt.kernel.budget",
    "Weights": "rosenblatt.weights",
    "Winnow1": "rosenblatt.states.winnow",
    "Winnow2": "rosenblatt.states.winnow",
    "load": "rosenblatt.loading",
}

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
    "load",
]


_MODULES = {
    "data",
    "feasibility",
    "kernel",
    "losses",
    "online",
    "plot",
    "rules",
    "store",
    "structured",
    "testing",
    "theory",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"rosenblatt.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
