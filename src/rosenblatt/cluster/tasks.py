"""What workers run. Every task is a function of what it is given, so that Dask may run it again wherever it likes.

A worker keeps the common model of the last epoch that it has met, shared by all shards that it learns, and brings it up to
date with what has changed since. That is a matter of time only: it could be made anew from the base and all changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from numpy.typing import NDArray

from rosenblatt.cluster.sums import Learned, Sum, add_sums, weigh

_MOST_RUNS = 2  # whose models a worker keeps
_models: OrderedDict[str, tuple[int, Any]] = OrderedDict()  # by run: (epochs that it has learned, the model)
_lock = Lock()
_begun: set[str] = set()  # kinds of work that this process has done
_first = Lock()  # held by work that is the first of its kind


def alone_at_first(what: str, work: Callable[[], Any]) -> Any:
    """Do some work, the first of its kind in this process alone, so that two threads do not compile the same at once."""
    if what in _begun:
        return work()
    with _first:
        result = work()
        _begun.add(what)
        return result


class Assignment(NamedTuple):
    """Which epoch of which run is to be learned, and from which model: that of a base and the changes since."""

    run: str
    number: int  # of the epoch, from 1
    base: int  # epochs that the base has learned; after the changes it is number − 1


def common_model(assignment: Assignment, base: Any, changes: Sequence[Any]) -> Any:
    """Return the model from which the epoch begins. Nobody may change it."""
    run, before = assignment.run, assignment.number - 1
    with _lock:
        number, model = _models.get(run, (-1, None))
        if not assignment.base <= number <= before:
            number, model = assignment.base, base
        if missing := changes[number - assignment.base :]:
            model = model.copy()
            for change in missing:
                model.add_change(change)
        _models[run] = before, model
        _models.move_to_end(run)
        while len(_models) > _MOST_RUNS:
            _models.popitem(last=False)
        return model


def learn_shard(shard: Any, number: int, setup: Any, assignment: Assignment, base: Any, changes: Sequence[Any]) -> Learned:
    """Return what the shard with this number makes of an epoch."""
    model = common_model(assignment, base, changes)
    return alone_at_first(assignment.run, partial(shard.learn, setup, model, assignment.number, number))


def add_learned(mixing: str, *learned: Learned) -> Sum:
    """Return the sum of what shards came to."""
    return add_sums([weigh(mixing, one) for one in learned])


def add_up(*sums: Sum) -> Sum:
    """Return the sum of sums."""
    return add_sums(sums)


def count_errors(shard: Any, number: int, setup: Any, w: NDArray) -> int:
    """Return how many rows of a shard the weights w do not predict."""
    return shard.errors(setup, w)


def itself(value: Any) -> Any:
    """Return a value that was sent: a model, a change, or a shard that is read again in each epoch."""
    return value


def load_shard(shard: Any) -> Any:
    """Return a shard with its rows in memory."""
    return alone_at_first("load", shard.load)


def summary_of(shard: Any, number: int) -> Any:
    """Return what a shard says of its examples before training."""
    return alone_at_first("summary", shard.summary)
