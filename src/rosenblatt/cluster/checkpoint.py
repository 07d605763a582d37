"""A training in shards as one file, written after every epoch, from which it goes on after whatever ended it.

An epoch is determined by the model before it, the shards and the random seed. So the file holds the model, what the shards
did so far, and what tells whether the data are the same.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from rosenblatt.cluster.report import MixingReport, report_from_parts, report_to_parts
from rosenblatt.errors import InvalidData, InvalidParameter, UnsupportedOperation
from rosenblatt.modelfile import registry
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.saving import SaveLoadMixin, encode_parameter
from rosenblatt.modelfile.values import decode_labels, encode_labels

_MAY_CHANGE = ("max_iter", "max_seconds", "n_jobs", "device", "random_state", "verbose")  # the seed is compared by itself


class MixingCheckpoint(SaveLoadMixin):
    """A training in shards that has not ended.

    Parameters
    ----------
    learner : estimator
        What has been learned, with the history of the epochs.
    report : MixingReport
        What the shards did.
    seed : int
        The random seed of the orders.
    data : str
        The fingerprint of the data.
    labels : array, optional
        The classes, in the order of their numbers.
    """

    def __init__(self, learner: Any, report: MixingReport, seed: int, data: str, labels: Any = None):
        self.learner, self.report, self.seed, self.data, self.labels = learner, report, seed, data, labels

    def to_parts(self, resume: bool = True) -> Parts:
        """Return the checkpoint as facts and arrays.

        Parameters
        ----------
        resume : bool, default=True
            A checkpoint always holds all that learning needs to go on.

        Returns
        -------
        parts : Parts
            Facts and arrays.
        """
        members = Parts()
        members.put_parts("learner", self.learner.to_parts(True))
        members.put_parts("report", report_to_parts(self.report))
        parts = Parts({"learner": type(self).__name__, "seed": self.seed, "data": self.data})
        parts.facts["labels"] = None if self.labels is None else encode_labels(self.labels)
        parts.put_parts("parts", members, "")
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> MixingCheckpoint:
        """Return the checkpoint that facts and arrays describe.

        Parameters
        ----------
        parts : Parts
            Facts and arrays, as `to_parts` returns them.

        Returns
        -------
        checkpoint : MixingCheckpoint
        """
        members = parts.parts("parts", "")
        learner = registry.from_parts(members.parts("learner"))
        report = report_from_parts(members.parts("report"))
        labels = None if parts.facts["labels"] is None else decode_labels(parts.facts["labels"])
        parts.check_all_taken()
        return cls(learner, report, parts.whole("seed"), parts.text("data"), labels)


def load_checkpoint(path: str | PathLike, learner: Any, shards: int, mixing: str, seed: int) -> MixingCheckpoint:
    """Return the checkpoint in a file, if it is of a training with this learner and these settings."""
    if not Path(path).exists():
        raise UnsupportedOperation(
            f"there is no checkpoint {str(path)!r} to resume from", hint="train without resume; it is written each epoch"
        )
    found = MixingCheckpoint.load(path)
    now = {"shards": shards, "mixing": mixing, "random_state": seed}
    then = {"shards": found.report.shards, "mixing": found.report.mixing, "random_state": found.seed}
    for name, value in now.items():
        if then[name] != value:
            raise InvalidParameter(name, value, f"the same as in the checkpoint {path}: {then[name]!r}")
    if type(found.learner) is not type(learner):
        raise UnsupportedOperation(f"{path} is of a {type(found.learner).__name__}, and this is a {type(learner).__name__}")
    kept = found.learner.get_params(deep=False)
    for name, value in learner.get_params(deep=False).items():
        if name not in _MAY_CHANGE and encode_parameter(name, value) != encode_parameter(name, kept[name]):
            raise InvalidParameter(name, value, f"the same as in the checkpoint {path}: {kept[name]!r}")
    changed = {name: getattr(learner, name) for name in _MAY_CHANGE if name in kept}
    found.learner.set_params(**changed)
    return found


def check_data(found: MixingCheckpoint, fingerprint: str, path: str | PathLike) -> None:
    """Refuse to go on with other data."""
    if found.data != fingerprint:
        raise InvalidData(
            f"these are not the data from which {path} has learned, or they are cut into shards in another way",
            hint="give the same data, or train without resume",
        )
