"""One learner on many machines: iterative parameter mixing on a Dask cluster. A name is imported when it is first used.

The shortest use:

    from rosenblatt import Perceptron, cluster

    model = cluster.fit(Perceptron(), "s3://bucket/part-*.svm", client="tcp://scheduler:8786")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rosenblatt.errors import MissingDependency

if TYPE_CHECKING:
    from rosenblatt.cluster.connection import connect as connect
    from rosenblatt.cluster.dask_shards import ShardProgress as ShardProgress
    from rosenblatt.cluster.files import train as train
    from rosenblatt.cluster.fitting import fit as fit
    from rosenblatt.cluster.mixing import Mixing as Mixing
    from rosenblatt.cluster.report import MixingReport as MixingReport
    from rosenblatt.cluster.simulation import simulate as simulate

_HOMES = {
    "Mixing": "mixing", "MixingReport": "report", "ShardProgress": "dask_shards", "connect": "connection", "fit": "fitting",
    "simulate": "simulation", "train": "files",
}  # fmt: skip
__all__ = ["Mixing", "MixingReport", "ShardProgress", "connect", "fit", "simulate", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rosenblatt.cluster' has no attribute {name!r}")
    try:
        return getattr(import_module(f"rosenblatt.cluster.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("dask", "distributed"):
            raise MissingDependency("distributed", "cluster", "training on a cluster") from missing
        raise


def __dir__() -> list[str]:
    return __all__
