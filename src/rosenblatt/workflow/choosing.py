"""What was asked for in words: a format by the name of a file or by its first line, a learner by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import rosenblatt
from rosenblatt.data.formats import detect_format, reading_for

__all__ = ["LEARNERS", "format_of", "learner_named", "reading_for", "setting"]

format_of = detect_format

LEARNERS = (
    "Perceptron", "PassiveAggressiveClassifier", "MIRA", "PAUM", "ALMA", "ROMMA", "Ballseptron", "PNormPerceptron",
    "SecondOrderPerceptron", "AROW", "NormalisedWinnow", "BalancedWinnow", "Winnow1", "Winnow2", "KernelPerceptron",
    "Forgetron", "RandomBudgetPerceptron", "Projectron", "ProjectronPlusPlus", "Stoptron", "BudgetPerceptron",
    "SigmaPerceptron", "DeltaRuleClassifier", "DeltaRuleRegressor", "PassiveAggressiveRegressor",
)  # fmt: skip
_SHORT = {"PA": "PassiveAggressiveClassifier", "PARegressor": "PassiveAggressiveRegressor", "Delta": "DeltaRuleClassifier"}


def learner_named(name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """The learner with this name (upper or lower case, hyphens as you like) and these parameters."""
    plain = {_plain(known): known for known in LEARNERS} | {_plain(short): known for short, known in _SHORT.items()}
    if _plain(name) not in plain:
        raise ValueError(f"there is no learner called {name!r}; there are {', '.join(LEARNERS)}")
    kind = getattr(rosenblatt, plain[_plain(name)])
    settings = dict(settings or {})
    known = kind().get_params(deep=False)
    strange = [parameter for parameter in settings if parameter not in known]
    if strange:
        raise ValueError(f"{kind.__name__} has no parameter {strange[0]!r}; it has {', '.join(sorted(known))}")
    defaults = {"keep": "average"} if "keep" in known else {"average": True} if "average" in known else {}
    return kind(**(defaults | settings))


def setting(text: str) -> tuple[str, Any]:
    """(name, value) of "name=value"; the value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r}: a setting is name=value, as margin=0.5")
    try:
        return name, json.loads({"None": "null", "True": "true", "False": "false"}.get(value, value))
    except ValueError:
        return name, value


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower().replace("plusplus", "++")
