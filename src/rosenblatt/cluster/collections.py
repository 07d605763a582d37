"""Dask arrays, DataFrames and bags as shards: each takes its partitions in turn, on the worker that learns from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from distributed import Client, Future

from rosenblatt.cluster.rows import MemoryShard
from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.estimators import targets
from rosenblatt.estimators.inputs import refuse_non_finite
from rosenblatt.estimators.linear import Linear


class Partition(NamedTuple):
    """A part of a collection, not computed yet: rows, labels and weights, or one value that holds rows and labels."""

    X: Any
    y: Any = None
    weight: Any = None


def is_collection(data: object) -> bool:
    """Return whether something is a Dask collection."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "__dask_keys__")


def partitions(data: Any, y: Any, weight: Any, shards: int | None) -> list[Partition]:
    """Return the parts of a collection, cut anew where there are fewer than shards."""
    if hasattr(data, "to_dataframe") and not hasattr(data, "columns"):  # a bag of pairs
        return [Partition(part) for part in _enough(data, shards, data.npartitions, data.repartition).to_delayed()]
    if hasattr(data, "columns"):
        return _frame_partitions(data, y, weight, shards)
    if data.ndim != 2:
        raise InvalidData(f"X must have two axes, rows and features; it has {data.ndim}")
    rows = data.shape[0]
    if shards is not None and shards > data.numblocks[0]:
        if np.isnan(rows):
            raise _too_many(shards, data.numblocks[0])
        data = data.rechunk({0: -(-rows // shards)})
    data = data.rechunk({1: -1}) if data.numblocks[1] > 1 else data
    blocks = data.to_delayed().ravel().tolist()
    return [Partition(*part) for part in zip(blocks, *(_beside(data, one, blocks) for one in (y, weight)), strict=True)]


def _frame_partitions(data: Any, y: Any, weight: Any, shards: int | None) -> list[Partition]:
    """The parts of a DataFrame; y is the name of a column, or has the same partitions."""
    if isinstance(y, str):
        if y not in data.columns:
            raise InvalidParameter("y", y, f"a column of the DataFrame: {', '.join(map(str, data.columns))}")
        data, y = data.drop(columns=y), data[y]
    if shards is not None and shards > data.npartitions:
        if y is not None and hasattr(y, "repartition"):
            y = y.repartition(npartitions=shards)
        data = data.repartition(npartitions=shards)
        if data.npartitions < shards:
            raise _too_many(shards, data.npartitions)
    parts = data.to_delayed()
    others = [[None] * len(parts) if one is None else one.to_delayed() for one in (y, weight)]
    for name, other in zip(("y", "sample_weight"), others, strict=True):
        if len(other) != len(parts):
            raise InvalidData(f"{name} has {len(other)} partitions, and the rows have {len(parts)}; they must be the same")
    return [Partition(*part) for part in zip(parts, *others, strict=True)]


def _beside(data: Any, other: Any, blocks: Sequence[Any]) -> list[Any]:
    """The parts of labels or weights that belong to the blocks of an array."""
    if other is None:
        return [None] * len(blocks)
    import dask.array as da

    if not is_collection(other):
        other = da.from_array(np.asarray(other), chunks=(data.chunks[0],))
    elif hasattr(other, "to_dask_array"):
        other = other.to_dask_array()
    if not np.isnan(data.shape[0]) and other.chunks[0] != data.chunks[0]:
        other = other.rechunk((data.chunks[0],))
    parts = other.to_delayed().ravel().tolist()
    if len(parts) != len(blocks):
        raise InvalidData(f"the rows have {len(blocks)} blocks and their labels {len(parts)}; they must be the same")
    return parts


def _enough(data: Any, shards: int | None, there: int, repartition: Callable[..., Any]) -> Any:
    if shards is None or shards <= there:
        return data
    larger = repartition(npartitions=shards)
    if larger.npartitions < shards:
        raise _too_many(shards, larger.npartitions)
    return larger


def _too_many(shards: int, there: int) -> InvalidParameter:
    return InvalidParameter(
        "shards", shards, f"at most the number of partitions, {there}", hint="cut the collection into smaller partitions"
    )


def loads_of(
    client: Client, parts: Sequence[Partition], shards: int, load: Callable[..., Any], learner: Any
) -> list[Callable[[Client], Future]]:
    """Return what has workers load each shard: `load(learner, partition, …)`, with the partitions i, i + shards, …

    All partitions begin to be computed now, in one message to the scheduler; those of a shard that was lost are computed
    again.
    """
    begun = dict(enumerate(client.compute([part for one in parts for part in one if part is not None])))
    ends = np.cumsum([0, *(sum(part is not None for part in one) for one in parts)]).tolist()

    def make(number: int) -> Callable[[Client], Future]:
        own = range(number, len(parts), shards)

        def send(client: Client) -> Future:
            values: list[Future] = []
            for i in own:
                found = [begun.pop(at) for at in range(ends[i], ends[i + 1]) if at in begun]
                values += found or client.compute([part for part in parts[i] if part is not None])
            sizes = [ends[i + 1] - ends[i] for i in own]
            return client.submit(_load, load, learner, sizes, *values, pure=False)

        return send

    return [make(number) for number in range(shards)]


def _load(load: Callable[..., Any], learner: Any, sizes: Sequence[int], *values: Any) -> Any:
    """Put the values of partitions together again, and load them."""
    found, at = [], 0
    for size in sizes:
        found.append(Partition(*values[at : at + size]))
        at += size
    return load(learner, found)


def load_rows(learner: Linear, parts: Sequence[Partition]) -> MemoryShard:
    """Return partitions of rows as one shard."""
    if parts[0].y is None:
        parts = [Partition(*_columns(part.X)) for part in parts]
    learner = _copy(learner)
    X = _stack([_plain(part.X) for part in parts])
    y = np.concatenate([np.asarray(part.y) for part in parts])
    weight = None if parts[0].weight is None else np.concatenate([np.asarray(part.weight) for part in parts])
    if not len(y):
        return MemoryShard(np.empty((0, X.shape[1])), y)
    X, y = learner._read(X, y, reset=True)
    refuse_non_finite(learner, X)
    names = tuple(learner.feature_names_in_) if hasattr(learner, "feature_names_in_") else None
    return MemoryShard(X, y, targets.sample_weights(weight, len(y)), names=names)


def _columns(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Rows and labels of a list of pairs."""
    pairs = list(pairs)
    return np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])


def _copy(learner: Linear) -> Any:
    import copy

    return copy.copy(learner)


def _plain(X: Any) -> Any:
    return X.tocsr() if hasattr(X, "tocsr") and not sp.issparse(X) else X


def _stack(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        import pandas as pd

        return pd.concat(parts)
    return np.concatenate(parts)
