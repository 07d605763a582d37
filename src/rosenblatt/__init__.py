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

from rosenblatt.modelfile.registry import PUBLIC

if TYPE_CHECKING:
    from rosenblatt.engine.train import Epoch as Epoch
    from rosenblatt.engine.weights import Weights as Weights
    from rosenblatt.estimators.explanation import Explanation as Explanation
    from rosenblatt.estimators.kernel.budget import BudgetPerceptron as BudgetPerceptron
    from rosenblatt.estimators.kernel.budget import Forgetron as Forgetron
    from rosenblatt.estimators.kernel.budget import Projectron as Projectron
    from rosenblatt.estimators.kernel.budget import ProjectronPlusPlus as ProjectronPlusPlus
    from rosenblatt.estimators.kernel.budget import RandomBudgetPerceptron as RandomBudgetPerceptron
    from rosenblatt.estimators.kernel.budget import Stoptron as Stoptron
    from rosenblatt.estimators.kernel.machine import KernelPerceptron as KernelPerceptron
    from rosenblatt.estimators.linear import Perceptron as Perceptron
    from rosenblatt.estimators.margins import MIRA as MIRA
    from rosenblatt.estimators.margins import PAUM as PAUM
    from rosenblatt.estimators.margins import PassiveAggressiveClassifier as PassiveAggressiveClassifier
    from rosenblatt.estimators.regression.delta import DeltaRuleClassifier as DeltaRuleClassifier
    from rosenblatt.estimators.regression.delta import DeltaRuleRegressor as DeltaRuleRegressor
    from rosenblatt.estimators.regression.regressor import PassiveAggressiveRegressor as PassiveAggressiveRegressor
    from rosenblatt.estimators.regression.stability import Diverged as Diverged
    from rosenblatt.estimators.sigma import SigmaPerceptron as SigmaPerceptron
    from rosenblatt.estimators.states.pnorm import PNormPerceptron as PNormPerceptron
    from rosenblatt.estimators.states.scaled import ALMA as ALMA
    from rosenblatt.estimators.states.scaled import ROMMA as ROMMA
    from rosenblatt.estimators.states.scaled import Ballseptron as Ballseptron
    from rosenblatt.estimators.states.second_order import AROW as AROW
    from rosenblatt.estimators.states.second_order import SecondOrderPerceptron as SecondOrderPerceptron
    from rosenblatt.estimators.states.winnow import BalancedWinnow as BalancedWinnow
    from rosenblatt.estimators.states.winnow import NormalisedWinnow as NormalisedWinnow
    from rosenblatt.estimators.states.winnow import Winnow1 as Winnow1
    from rosenblatt.estimators.states.winnow import Winnow2 as Winnow2
    from rosenblatt.modelfile.registry import load as load
    from rosenblatt.theory.network import Network as Network

__version__ = "0.1.0"

__all__ = sorted(PUBLIC)

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
_MOVED = {  # modules under the names that they had before they moved
    "rosenblatt.export": "rosenblatt.modelfile.export",
    "rosenblatt.kernel": "rosenblatt.estimators.kernel",
    "rosenblatt.network": "rosenblatt.theory.network",
    "rosenblatt.sigma": "rosenblatt.estimators.sigma",
    "rosenblatt.store": "rosenblatt.modelfile.container",
    "rosenblatt.structured.beams": "rosenblatt.structured.search.beam_search",
    "rosenblatt.structured.perceptron": "rosenblatt.structured.search.perceptron",
}


class _MovedModules(MetaPathFinder, Loader):
    """Finds a module under the name that it had before it moved."""

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
    if name not in PUBLIC:
        raise AttributeError(f"module 'rosenblatt' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(PUBLIC[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
