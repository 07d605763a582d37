"""Learners by name, and their parameters as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from rosenblatt.errors import InvalidParameter
from rosenblatt.modelfile.registry import learner_class

LEARNERS = (
    "Perceptron", "PassiveAggressiveClassifier", "MIRA", "PAUM", "ALMA", "ROMMA", "Ballseptron", "PNormPerceptron",
    "SecondOrderPerceptron", "AROW", "NormalisedWinnow", "BalancedWinnow", "Winnow1", "Winnow2", "KernelPerceptron",
    "Forgetron", "RandomBudgetPerceptron", "Projectron", "ProjectronPlusPlus", "Stoptron", "BudgetPerceptron",
    "SigmaPerceptron", "DeltaRuleClassifier", "DeltaRuleRegressor", "PassiveAggressiveRegressor",
)  # fmt: skip
_SHORT = {"PA": "PassiveAggressiveClassifier", "PARegressor": "PassiveAggressiveRegressor", "Delta": "DeltaRuleClassifier"}


TASKS = ("classification", "regression")


def default_learner(task: str | None) -> tuple[str, dict[str, object]]:
    """Return the name and the parameters of the learner for a task where none is named. Of the regressors it is the one
    that learns numbers of any size, from loaded rows and from a stream."""
    return ("DeltaRuleRegressor", {"normalised": True}) if task == "regression" else ("Perceptron", {})


def make_learner(name: str, settings: Mapping[str, object] | None = None) -> Any:
    """Return a learner by its name.

    Parameters
    ----------
    name : str
        The name of the class, in upper or lower case, with or without hyphens; "pa" is PassiveAggressiveClassifier.
    settings : mapping, optional
        Parameters of the learner. A learner that can average its weights does so unless these say otherwise.

    Returns
    -------
    estimator
        The learner, which has learned nothing.

    Raises
    ------
    InvalidParameter
        If there is no such learner; `UnknownParameter` if it has no such parameter.

    Examples
    --------
    >>> make_learner("pa", {"C": 0.5})
    PassiveAggressiveClassifier(C=0.5, average=True)
    """
    names = {_plain(known): known for known in LEARNERS} | {_plain(short): known for short, known in _SHORT.items()}
    if _plain(name) not in names:
        near = get_close_matches(_plain(name), names, 1)
        hint = f"did you mean {names[near[0]]!r}?" if near else None
        raise InvalidParameter("learner", name, f"one of {', '.join(LEARNERS)}", hint=hint)
    kind = learner_class(names[_plain(name)])
    settings = dict(settings or {})
    parameters = kind().get_params(deep=False)
    averaging = {"keep": "average"} if parameters.get("keep") == "last" else {"average": True}
    defaults = {name: value for name, value in averaging.items() if name in parameters}
    return kind(**(defaults | settings))


def parse_setting(text: str) -> tuple[str, Any]:
    """Return (name, value) of "name=value"; the value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidParameter("settings", text, "name=value, as margin=0.5")
    try:
        return name, json.loads({"None": "null", "True": "true", "False": "false"}.get(value, value))
    except ValueError:
        return name, value


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower().replace("plusplus", "++")
