"""Mistake-driven learning: the perceptron and the family that grew from it.

A name is imported when it is first used, so that `import rosenblatt` costs nothing and a command that only prints its help
does not wait for a compiler.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.engine.train import Epoch
    from rosenblatt.engine.weights import Weights
    from rosenblatt.estimators.kernel.budget import (
        BudgetPerceptron,
        Forgetron,
        Projectron,
        ProjectronPlusPlus,
        RandomBudgetPerceptron,
        Stoptron,
    )
    from rosenblatt.estimators.kernel.machine import KernelPerceptron
    from rosenblatt.estimators.linear import Explanation, Perceptron
    from rosenblatt.estimators.margins import MIRA, PAUM, PassiveAggressiveClassifier
    from rosenblatt.estimators.regression.delta import DeltaRuleClassifier, DeltaRuleRegressor
    from rosenblatt.estimators.regression.regressor import PassiveAggressiveRegressor
    from rosenblatt.estimators.regression.stability import Diverged
    from rosenblatt.estimators.sigma import SigmaPerceptron
    from rosenblatt.estimators.states.pnorm import PNormPerceptron
    from rosenblatt.estimators.states.scaled import ALMA, ROMMA, Ballseptron
    from rosenblatt.estimators.states.second_order import AROW, SecondOrderPerceptron
    from rosenblatt.estimators.states.winnow import BalancedWinnow, NormalisedWinnow, Winnow1, Winnow2
    from rosenblatt.modelfile.registry import load
    from rosenblatt.theory.network import Network

__version__ = "0.1.0"

_HOMES = {
    "ALMA": "rosenblatt.estimators.states.scaled",
    "AROW": "rosenblatt.estimators.states.second_order",
    "BalancedWinnow": "rosenblatt.estimators.states.winnow",
    "Ballseptron": "rosenblatt.estimators.states.scaled",
    "BudgetPerceptron": "rosenblatt.estimators.kernel.budget",
    "DeltaRuleClassifier": "rosenblatt.estimators.regression.delta",
    "DeltaRuleRegressor": "rosenblatt.estimators.regression.delta",
    "Diverged": "rosenblatt.estimators.regression.stability",
    "Epoch": "rosenblatt.engine.train",
    "Explanation": "rosenblatt.estimators.linear",
    "Forgetron": "rosenblatt.estimators.kernel.budget",
    "KernelPerceptron": "rosenblatt.estimators.kernel.machine",
    "MIRA": "rosenblatt.estimators.margins",
    "Network": "rosenblatt.theory.network",
    "NormalisedWinnow": "rosenblatt.estimators.states.winnow",
    "PAUM": "rosenblatt.estimators.margins",
    "PNormPerceptron": "rosenblatt.estimators.states.pnorm",
    "PassiveAggressiveClassifier": "rosenblatt.estimators.margins",
    "PassiveAggressiveRegressor": "rosenblatt.estimators.regression.regressor",
    "Perceptron": "rosenblatt.estimators.linear",
    "Projectron": "rosenblatt.estimators.kernel.budget",
    "ProjectronPlusPlus": "rosenblatt.estimators.kernel.budget",
    "ROMMA": "rosenblatt.estimators.states.scaled",
    "RandomBudgetPerceptron": "rosenblatt.estimators.kernel.budget",
    "SecondOrderPerceptron": "rosenblatt.estimators.states.second_order",
    "SigmaPerceptron": "rosenblatt.estimators.sigma",
    "Stoptron": "rosenblatt.estimators.kernel.budget",
    "Weights": "rosenblatt.engine.weights",
    "Winnow1": "rosenblatt.estimators.states.winnow",
    "Winnow2": "rosenblatt.estimators.states.winnow",
    "load": "rosenblatt.modelfile.registry",
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
    "counting",
    "data",
    "errors",
    "estimators",
    "feasibility",
    "losses",
    "modelfile",
    "online",
    "plot",
    "rules",
    "structured",
    "testing",
    "theory",
    "workflow",
}
_MOVED = {  # modules that had another name in version 0.1.0, under which they can still be imported
    "rosenblatt.export": "rosenblatt.modelfile.export",
    "rosenblatt.kernel": "rosenblatt.estimators.kernel",
    "rosenblatt.network": "rosenblatt.theory.network",
    "rosenblatt.sigma": "rosenblatt.estimators.sigma",
    "rosenblatt.store": "rosenblatt.modelfile.container",
}


class _MovedModules(MetaPathFinder, Loader):
    """Finds a module under the name that it had in version 0.1.0."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        home = next((home + name[len(old) :] for old, home in _MOVED.items() if f"{name}.".startswith(f"{old}.")), None)
        return None if home is None else ModuleSpec(name, self, loader_state=import_module(home).__spec__)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(spec.loader_state.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state  # the module is itself, under either name


sys.meta_path.insert(0, _MovedModules())


def __getattr__(name: str) -> Any:
    if name in _MODULES or f"rosenblatt.{name}" in _MOVED:
        return import_module(f"rosenblatt.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
