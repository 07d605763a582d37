"""A file says which learner it holds, and a table where that learner is: nothing else that a file names is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Any

from numpy.typing import NDArray

from rosenblatt import _HOMES
from rosenblatt.modelfile import container
from rosenblatt.modelfile.container import UnreadableModel

_ELSEWHERE = {
    "FileModel": "rosenblatt.workflow.model",
    "GraphParser": "rosenblatt.structured.graph.parser",
    "OnlinePerceptron": "rosenblatt.online.perceptron",
    "OnlineToBatch": "rosenblatt.online.conversion",
    "SequenceTagger": "rosenblatt.structured.tags.tagger",
    "StructuredPerceptron": "rosenblatt.structured.search.perceptron",
    "TagAndParse": "rosenblatt.structured.pipeline",
    "TransitionParser": "rosenblatt.structured.transition.parser",
}
_NO_LEARNERS = {"Diverged", "Epoch", "Explanation", "Network", "Weights", "load"}
_LEARNERS = {name: home for name, home in _HOMES.items() if name not in _NO_LEARNERS} | _ELSEWHERE


def load(path: str | PathLike) -> Any:
    """The learner that was saved in a file, of whatever kind it is. Nothing in the file is run as code.

    >>> import tempfile, rosenblatt
    >>> clf = rosenblatt.Perceptron().fit([[0, 1], [1, 0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(f"{folder}/model")
    ...     again = rosenblatt.load(f"{folder}/model")
    >>> again.predict([[2, 1]]).tolist()
    ['yes']
    """
    return restored(*container.read(path), str(path))


def restored(facts: Mapping[str, Any], arrays: Mapping[str, NDArray], source: str) -> Any:
    """The learner that facts and arrays describe; `source` is what messages call where they come from."""
    name = facts.get("learner")
    if not isinstance(name, str) or name not in _LEARNERS:
        raise UnreadableModel(
            f"{source} holds a {name!r:.80}, which is no learner of rosenblatt; if it is one of your own, use its load"
        )
    return kind(name)._restored(facts, arrays, source)


def kind(name: str) -> Any:
    """The class of the learner with this name; KeyError if there is none."""
    return getattr(import_module(_LEARNERS[name]), name)


def names() -> list[str]:
    """The learners that can be loaded."""
    return sorted(_LEARNERS)
