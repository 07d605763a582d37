"""Where each class of the library is: the public names of `rosenblatt`, and those that a file may name.

Nothing else that a file names is looked up. A class is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rosenblatt.modelfile.parts import Parts

_ESTIMATORS = {
    "estimators.kernel.budget": (
        "BudgetPerceptron Forgetron Projectron ProjectronPlusPlus RandomBudgetPerceptron Stoptron"
    ),
    "estimators.kernel.machine": "KernelPerceptron",
    "estimators.linear": "Perceptron",
    "estimators.margins": "MIRA PAUM PassiveAggressiveClassifier",
    "estimators.regression.delta": "DeltaRuleClassifier DeltaRuleRegressor",
    "estimators.regression.regressor": "PassiveAggressiveRegressor",
    "estimators.sigma": "SigmaPerceptron",
    "estimators.states.pnorm": "PNormPerceptron",
    "estimators.states.scaled": "ALMA Ballseptron ROMMA",
    "estimators.states.second_order": "AROW SecondOrderPerceptron",
    "estimators.states.winnow": "BalancedWinnow NormalisedWinnow Winnow1 Winnow2",
}
_OTHER_NAMES = {
    "engine.train": "Epoch",
    "engine.weights": "Weights",
    "estimators.explanation": "Explanation",
    "estimators.regression.stability": "Diverged",
    "modelfile.registry": "load",
    "theory.network": "Network",
}
_OTHER_MODELS = {
    "cluster.checkpoint": "MixingCheckpoint",
    "online.conversion": "OnlineToBatch",
    "online.perceptron": "OnlinePerceptron",
    "structured.graph.parser": "GraphParser",
    "structured.search.perceptron": "StructuredPerceptron",
    "structured.pipeline": "TagAndParse",
    "structured.tags.tagger": "SequenceTagger",
    "structured.transition.parser": "TransitionParser",
    "workflow.model": "FileModel",
}


def _by_name(modules: dict[str, str]) -> dict[str, str]:
    return {name: f"rosenblatt.{module}" for module, names in modules.items() for name in names.split()}


PUBLIC = _by_name(_ESTIMATORS) | _by_name(_OTHER_NAMES)  # what `from rosenblatt import …` finds, and where
LEARNERS = _by_name(_ESTIMATORS) | _by_name(_OTHER_MODELS)  # what a file may hold


def load(path: str | PathLike) -> Any:
    """Load a model of any kind from a file. Nothing in the file is run as code.

    Parameters
    ----------
    path : str or path-like
        The file that the method `save` of a model wrote.

    Returns
    -------
    model
        As it was when it was saved.

    Raises
    ------
    UnreadableModel
        If the file is not a model of rosenblatt, or a damaged one, or one of a newer version.

    Examples
    --------
    >>> import tempfile, rosenblatt
    >>> clf = rosenblatt.Perceptron().fit([[0, 1], [1, 0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(f"{folder}/model")
    ...     again = rosenblatt.load(f"{folder}/model")
    >>> again.predict([[2, 1]]).tolist()
    ['yes']
    """
    from rosenblatt.modelfile import container
    from rosenblatt.modelfile.parts import Parts

    with container.decoding(path):
        return from_parts(Parts(*container.read(path)))


def from_parts(parts: Parts) -> Any:
    """Return the model that parts describe, of whatever kind it is."""
    from rosenblatt.errors import UnreadableModel

    name = parts.facts.get("learner")
    if not isinstance(name, str) or name not in LEARNERS:
        raise UnreadableModel(
            f"it holds a {name!r:.80}, which is not a learner of rosenblatt", hint="for a class of your own, call its load"
        )
    return learner_class(name).from_parts(parts)


def learner_class(name: str) -> Any:
    """Return the class of the learner with this name; KeyError if there is none."""
    return getattr(import_module(LEARNERS[name]), name)
