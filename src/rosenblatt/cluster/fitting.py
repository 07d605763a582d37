"""Fit a learner on a cluster: from whatever the data are to shards, from shards to the fitted learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distributed import Client
from numpy.typing import ArrayLike, NDArray

from rosenblatt.cluster.dask_shards import DaskShards, Watch
from rosenblatt.cluster.rows import MemoryShard
from rosenblatt.cluster.run import LinearRun, RunOptions, check_linear, labels_of_arrays, seed_of
from rosenblatt.engine.rows import Matrix
from rosenblatt.errors import InvalidParameter
from rosenblatt.estimators import targets
from rosenblatt.estimators.base import refuse_non_finite
from rosenblatt.estimators.interface import clone
from rosenblatt.estimators.linear import Linear

if TYPE_CHECKING:
    pass

SHARDS = 8  # by default, of data in memory, and the least of files


def check_shards(shards: int | None) -> None:
    """Refuse what is not a number of shards."""
    if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or shards < 1):
        raise InvalidParameter("shards", shards, "a whole number ≥ 1, or None")


def fit_arrays(
    estimator: Linear, X: Any, y: ArrayLike, weight: ArrayLike | None, client: Client, shards: int | None,
    options: RunOptions, watch: Watch,
) -> Any:  # fmt: skip
    """Return the estimator fitted to rows in memory, which are dealt to the shards one by one."""
    learner = clone(estimator)
    count = SHARDS if shards is None else shards
    if count == 1:
        return client.submit(_fit_alone, learner, *client.scatter([X, y, weight]), pure=False).result()
    check_linear(learner)
    learner._plan()
    X, y = learner._read(X, y, reset=True)
    refuse_non_finite(learner, X)
    weights = targets.sample_weights(weight, len(y))
    names = tuple(learner.feature_names_in_) if hasattr(learner, "feature_names_in_") else None
    parts = [deal(X, y, weights, names, i, count) for i in range(min(count, len(y)))]
    loads = [lambda client, part=part: client.scatter(part, hash=False) for part in parts]
    run = LinearRun(learner, DaskShards(client, loads, watch), options, seed_of(learner))
    return finish(run, run.fit(labels_of_arrays, lambda agreement: learner._limits(learner._plan(), None), False))


def deal(
    X: Matrix, y: NDArray, weight: NDArray | None, names: tuple[str, ...] | None, number: int, count: int
) -> MemoryShard:
    """Return the shard with this number: each of so many shards gets one row in turn, so that sorted rows do no harm."""
    rows = range(number, len(y), count)
    own = slice(number, None, count)
    return MemoryShard(X[own], y[own], None if weight is None else weight[own], rows, names)


def finish(run: LinearRun, finished: Any) -> Any:
    """Return the fitted learner of a training that is over."""
    learner = run.learner
    learner.mixing_ = finished.report
    learner._tell(finished.reason)
    return learner


def _fit_alone(learner: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit as usual: one shard is ordinary training, wherever it runs."""
    return learner.fit(X, y) if weight is None else learner.fit(X, y, sample_weight=weight)
